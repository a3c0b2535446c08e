"""Embedding layers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from minigrad.functions.arguments import integer, tensor_operand
from minigrad.functions.grad_modes import no_grad
from minigrad.nn import functional as F  # noqa: N812 - its usual name
from minigrad.nn.module import Module, Parameter
from minigrad.random import randn
from minigrad.runtime.devices import on_cpu
from minigrad.runtime.dtypes import as_dtype

if TYPE_CHECKING:
    from minigrad._tensor import Tensor

__all__ = ["Embedding", "EmbeddingBag"]


class _Table(Module):
    """Base of embeddings: the weight, and the arguments of the lookup."""

    num_embeddings: int
    embedding_dim: int
    padding_idx: int | None
    weight: Parameter

    def _set(
        self, num_embeddings: int, embedding_dim: int, padding_idx: Any, weight: Any, dtype: Any
    ) -> None:
        op = type(self).__name__
        self.num_embeddings = integer(op, "num_embeddings", num_embeddings, 0)
        self.embedding_dim = integer(op, "embedding_dim", embedding_dim, 0)
        self.padding_idx = self._place(padding_idx)
        shape = (self.num_embeddings, self.embedding_dim)
        if weight is None:
            values = randn(*shape, dtype=as_dtype(dtype))
            if self.padding_idx is not None:
                values[self.padding_idx] = 0.0
        else:
            values = tensor_operand(op, weight)
            if values.shape != shape:
                raise ValueError(f"[{op}] the weight has shape {values.shape}, not {shape}")
        self.weight = values if isinstance(values, Parameter) else Parameter(values)

    def reset_parameters(self) -> None:
        """Draw new starting values."""
        with no_grad():
            self.weight.normal_()
            if self.padding_idx is not None:
                self.weight[self.padding_idx] = 0.0

    def _place(self, padding_idx: Any) -> int | None:
        """Check the padding's row, and count it from the front."""
        if padding_idx is None:
            return None
        op, count = type(self).__name__, self.num_embeddings
        place = integer(op, "padding_idx", padding_idx)
        if not -count <= place < count:
            raise ValueError(f"[{op}] padding_idx {padding_idx} is not in 0..{count - 1}")
        return place % count


def _rows(op: str, embeddings: Any) -> tuple[Tensor, tuple[int, int]]:
    table = tensor_operand(op, embeddings)
    if table.ndim != 2:
        raise ValueError(f"[{op}] embeddings has shape {table.shape}, but must be (classes, size)")
    return table, (table.shape[0], table.shape[1])


class Embedding(_Table):
    """A table of vectors, one for each class: int64 of shape (...) gives (..., embedding_dim).

    The weight (num_embeddings, embedding_dim) starts from the standard normal distribution. The row
    ``padding_idx`` starts with zeros and gets no gradient. With ``max_norm`` each forward first
    scales the used rows down to this norm of order ``norm_type``, in place. With
    ``scale_grad_by_freq`` the gradient of a row is divided by the number of its uses in the batch.
    ``sparse`` changes nothing: gradients are dense.

    >>> import minigrad as mg
    >>> mg.nn.Embedding(10, 3)(mg.tensor([[1, 2]])).shape
    (1, 2, 3)
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: Tensor | None = None,
        _freeze: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        on_cpu(device)
        self._set(num_embeddings, embedding_dim, padding_idx, _weight, dtype)
        self.weight.requires_grad_(not _freeze)
        self.max_norm, self.norm_type = max_norm, norm_type
        self.scale_grad_by_freq, self.sparse = scale_grad_by_freq, sparse

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
    ) -> Embedding:
        """A layer with the weight ``embeddings``, on its memory; it requires no grad if frozen.

        Raises ValueError for other than two dimensions.

        >>> import minigrad as mg
        >>> layer = mg.nn.Embedding.from_pretrained(mg.tensor([[1.0, 2.0], [3.0, 4.0]]))
        >>> layer(mg.tensor(1)).tolist(), layer.weight.requires_grad
        ([3.0, 4.0], False)
        """
        table, sizes = _rows("Embedding.from_pretrained", embeddings)
        return cls(
            *sizes,
            padding_idx,
            max_norm,
            norm_type,
            scale_grad_by_freq,
            sparse,
            _weight=table,
            _freeze=freeze,
        )

    def forward(self, x: Tensor) -> Tensor:
        """The rows of the weight for the classes in x."""
        return F.embedding(
            x,
            self.weight,
            self.padding_idx,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
        )

    def extra_repr(self) -> str:
        """The sizes, and the arguments that are not as usual."""
        usual = {
            "padding_idx": None,
            "max_norm": None,
            "norm_type": 2,
            "scale_grad_by_freq": False,
            "sparse": False,
        }
        own = {name: getattr(self, name) for name in usual}
        parts = [f"{name}={value}" for name, value in own.items() if value != usual[name]]
        return ", ".join([str(self.num_embeddings), str(self.embedding_dim), *parts])


class EmbeddingBag(_Table):
    """:func:`minigrad.nn.functional.embedding_bag` as a module with a weight.

    The weight starts as in :class:`Embedding`, and the arguments have the same meaning.

    >>> import minigrad as mg
    >>> layer = mg.nn.EmbeddingBag(10, 3, mode="sum")
    >>> layer(mg.tensor([1, 2, 4, 5]), mg.tensor([0, 3])).shape
    (2, 3)
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        _weight: Tensor | None = None,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        on_cpu(device)
        self._set(num_embeddings, embedding_dim, padding_idx, _weight, dtype)
        self.max_norm, self.norm_type = max_norm, norm_type
        self.scale_grad_by_freq, self.sparse = scale_grad_by_freq, sparse
        self.mode, self.include_last_offset = mode, include_last_offset

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
    ) -> EmbeddingBag:
        """A layer with the weight ``embeddings``, on its memory; it requires no grad if frozen."""
        table, sizes = _rows("EmbeddingBag.from_pretrained", embeddings)
        layer = cls(
            *sizes,
            max_norm,
            norm_type,
            scale_grad_by_freq,
            mode,
            sparse,
            table,
            include_last_offset,
            padding_idx,
        )
        layer.weight.requires_grad_(not freeze)
        return layer

    def forward(
        self, x: Tensor, offsets: Tensor | None = None, per_sample_weights: Tensor | None = None
    ) -> Tensor:
        """The sums, means or maxima of the bags in x."""
        return F.embedding_bag(
            x,
            self.weight,
            offsets,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.mode,
            self.sparse,
            per_sample_weights,
            self.include_last_offset,
            self.padding_idx,
        )

    def extra_repr(self) -> str:
        """The sizes, and the arguments that are not as usual."""
        usual = {"max_norm": None, "norm_type": 2, "scale_grad_by_freq": False}
        own = {name: getattr(self, name) for name in usual}
        parts = [f"{name}={value}" for name, value in own.items() if value != usual[name]]
        parts.append(f"mode={self.mode!r}")
        if self.padding_idx is not None:
            parts.append(f"padding_idx={self.padding_idx}")
        return ", ".join([str(self.num_embeddings), str(self.embedding_dim), *parts])
