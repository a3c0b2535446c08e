"""A linear layer and the cross entropy of its outputs, as one module."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from minigrad.functions.arguments import integer
from minigrad.functions.shaping import reshape
from minigrad.nn import functional as F  # noqa: N812 - its usual name
from minigrad.nn.layers import Linear
from minigrad.nn.module import Module

if TYPE_CHECKING:
    from minigrad._tensor import Tensor

__all__ = ["LinearCrossEntropyLoss", "LinearCrossEntropyOptions"]


@dataclass
class LinearCrossEntropyOptions:
    """PyTorch's options for cutting a batch to save memory. They are kept and change nothing."""

    allow_retain_graph: bool = False
    batch_chunk_size: int | None = None
    chunking_method: str | None = "auto"
    acc_policy: str = "auto"
    acc_dtype: Any = None


class LinearCrossEntropyLoss(Module):
    """:func:`minigrad.nn.functional.linear_cross_entropy` as a module with its own weights.

    ``linear`` scores ``num_classes`` classes for each target of a row. ``out_features`` is the
    shape of a row's targets. A call takes inputs (N, in_features) and targets (N, *out_features).

    >>> import minigrad as mg
    >>> loss = mg.nn.LinearCrossEntropyLoss(4, 3)
    >>> loss(mg.ones(2, 4), mg.tensor([0, 2])).shape
    ()
    """

    weight: Tensor | None

    def __init__(
        self,
        in_features: int,
        num_classes: int,
        *,
        out_features: Sequence[int] = (),
        bias: bool = False,
        device: Any = None,
        dtype: Any = None,
        reduction: str = "mean",
        weight: Tensor | None = None,
        ignore_index: int | None = None,
        label_smoothing: float = 0.0,
        options: LinearCrossEntropyOptions | None = None,
    ) -> None:
        op = "LinearCrossEntropyLoss"
        self.num_classes = integer(op, "num_classes", num_classes, 1)
        self.out_features = tuple([integer(op, "a size", n, 1) for n in out_features])
        count = self.num_classes * math.prod(self.out_features)
        self.linear = Linear(in_features, count, bias, device=device, dtype=dtype)
        self.register_buffer("weight", weight)
        self.reduction = reduction
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing
        self.options = options

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """The loss."""
        shape = self.num_classes, *self.out_features
        weight, bias = self.linear.weight, self.linear.bias
        return F.linear_cross_entropy(
            input,
            reshape(weight, (*shape, -1)),
            target,
            linear_bias=None if bias is None else reshape(bias, shape),
            weight=self.weight,
            reduction=self.reduction,
            ignore_index=self.ignore_index,
            label_smoothing=self.label_smoothing,
        )

    def extra_repr(self) -> str:
        """The arguments."""
        return (
            f"in_features={self.linear.in_features}, num_classes={self.num_classes}, "
            f"out_features={self.out_features}, bias={self.linear.bias is not None}, "
            f"reduction={self.reduction}, ignore_index={self.ignore_index}, "
            f"label_smoothing={self.label_smoothing}, options={self.options}"
        )
