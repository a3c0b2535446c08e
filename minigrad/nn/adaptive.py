"""Adaptive softmax: a softmax for many classes of which few are frequent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from minigrad import functions as f
from minigrad.functions.arguments import integer, real
from minigrad.functions.creation import zeros
from minigrad.nn import functional as F  # noqa: N812 - its usual name
from minigrad.nn.layers import Linear, ModuleList, Sequential
from minigrad.nn.module import Module
from minigrad.runtime.devices import on_cpu

if TYPE_CHECKING:
    from minigrad._tensor import Tensor

__all__ = ["AdaptiveLogSoftmaxWithLoss"]

_OP = "AdaptiveLogSoftmaxWithLoss"


class _Output(NamedTuple):
    """The log-probabilities of the targets, and the mean of their negatives."""

    output: Any
    loss: Any


class AdaptiveLogSoftmaxWithLoss(Module):
    """Log-probabilities of many classes, sorted by frequency (Grave et al. 2017).

    The ``head`` scores the classes before the first of the ``cutoffs``, and one cluster for each
    further range of classes. A cluster has two linear layers, the first with in_features /
    div_value**k outputs.

    A call takes inputs (N, in_features) and targets (N,), or both without N. The result is (output,
    loss): the targets' log-probabilities, and the mean of their negatives.

    Raises ValueError for cutoffs that do not rise within 1..n_classes - 1. A call raises ValueError
    if shapes do not fit, and IndexError for a target that is no class.

    >>> import minigrad as mg
    >>> layer = mg.nn.AdaptiveLogSoftmaxWithLoss(8, 20, [4, 10], div_value=2.0)
    >>> layer(mg.ones(3, 8), mg.tensor([0, 5, 19])).output.shape, layer.predict(mg.ones(3, 8)).shape
    ((3,), (3,))
    """

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Sequence[int],
        div_value: float = 4.0,
        head_bias: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        on_cpu(device)
        self.in_features = integer(_OP, "in_features", in_features, 1)
        self.n_classes = integer(_OP, "n_classes", n_classes, 1)
        inner = [integer(_OP, "a cutoff", n) for n in cutoffs]
        if not inner or sorted({0, *inner, n_classes}) != [0, *inner, n_classes]:
            raise ValueError(
                f"[{_OP}] cutoffs is {inner}, but must rise within 1..{self.n_classes - 1}"
            )
        self.cutoffs = [*inner, self.n_classes]
        self.div_value = real(_OP, "div_value", div_value)
        self.head_bias = head_bias
        self.shortlist_size = inner[0]
        self.n_clusters = len(inner)
        self.head_size = self.shortlist_size + self.n_clusters
        self.head = Linear(self.in_features, self.head_size, head_bias, dtype=dtype)
        self.tail = ModuleList(self._cluster(k, dtype) for k in range(self.n_clusters))

    def _cluster(self, k: int, dtype: Any) -> Sequential:
        width = int(self.in_features // self.div_value ** (k + 1))
        size = self.cutoffs[k + 1] - self.cutoffs[k]
        return Sequential(
            Linear(self.in_features, width, False, dtype=dtype),
            Linear(width, size, False, dtype=dtype),
        )

    def reset_parameters(self) -> None:
        """Draw new starting values."""
        for module in self.modules():
            if isinstance(module, Linear):
                module.reset_parameters()

    def forward(self, x: Tensor, target: Tensor) -> _Output:
        """The targets' log-probabilities, and the mean of their negatives."""
        if target.ndim > 1 or x.shape != (*target.shape, self.in_features):
            raise ValueError(
                f"[{_OP}] the input has shape {x.shape} and the target {target.shape}, but must be "
                f"(N, {self.in_features}) and (N,), or ({self.in_features},) and ()"
            )
        rows, classes = x.reshape(-1, self.in_features), target.reshape(-1)
        if (
            classes.size
            and not 0 <= classes.amin().item() <= classes.amax().item() < self.n_classes
        ):
            raise IndexError(f"[{_OP}] a target is not in 0..{self.n_classes - 1}")
        head = F.log_softmax(self.head(rows), 1)
        places = classes.clamp(max=self.shortlist_size - 1)
        rest = zeros(classes.shape, dtype=head.dtype)
        for k, cluster in enumerate(self.tail):
            low, high = self.cutoffs[k : k + 2]
            inside = (classes >= low) & (classes < high)
            (at,) = f.nonzero(inside, as_tuple=True)
            if at.shape[0]:
                within = F.log_softmax(cluster(rows[at]), 1)
                rest = rest.index_add(
                    0, at, within.gather(1, (classes[at] - low).unsqueeze(1))[:, 0]
                )
                places = f.where(inside, self.shortlist_size + k, places)
        output = head.gather(1, places.unsqueeze(1))[:, 0] + rest
        return _Output(output.reshape(target.shape), -output.mean())

    def log_prob(self, x: Tensor) -> Tensor:
        """The log-probabilities of all classes: (N, in_features) gives (N, n_classes)."""
        head = F.log_softmax(self.head(x), 1)
        parts = [head[:, : self.shortlist_size]]
        for k, cluster in enumerate(self.tail):
            at = self.shortlist_size + k
            parts.append(F.log_softmax(cluster(x), 1) + head[:, at : at + 1])
        return f.cat(parts, 1)

    def predict(self, x: Tensor) -> Tensor:
        """The class with the head's highest score, or the most probable class if a cluster wins."""
        first = self.head(x).argmax(1)
        return f.where(first < self.shortlist_size, first, self.log_prob(x).argmax(1))
