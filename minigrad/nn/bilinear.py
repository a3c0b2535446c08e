"""The bilinear layer."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from minigrad.functions.arguments import integer
from minigrad.nn import functional as F  # noqa: N812 - its usual name
from minigrad.nn.layers import redraw, uniform_parameter
from minigrad.nn.module import Module
from minigrad.runtime.devices import on_cpu
from minigrad.runtime.dtypes import as_dtype

if TYPE_CHECKING:
    from minigrad._tensor import Tensor

__all__ = ["Bilinear"]


class Bilinear(Module):
    """``x1 @ weight[k] @ x2 + bias[k]`` for each output k.

    Shapes (..., in1_features) and (..., in2_features) give (..., out_features).

    The weight has shape (out_features, in1_features, in2_features). Weight and bias start in U(-b,
    b) with b = 1/sqrt(in1_features), as in PyTorch. Raises ValueError for sizes below 1.

    >>> import minigrad as mg
    >>> mg.nn.Bilinear(2, 3, 4)(mg.ones(5, 2), mg.ones(5, 3)).shape
    (5, 4)
    """

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        on_cpu(device)
        op = "Bilinear"
        self.in1_features = integer(op, "in1_features", in1_features, 1)
        self.in2_features = integer(op, "in2_features", in2_features, 0)
        self.out_features = integer(op, "out_features", out_features, 0)
        kind, bound = as_dtype(dtype), 1.0 / math.sqrt(self.in1_features)
        shape = (self.out_features, self.in1_features, self.in2_features)
        self.weight = uniform_parameter(op, shape, bound, kind)
        self.bias = uniform_parameter(op, shape[:1], bound, kind) if bias else None

    def reset_parameters(self) -> None:
        """Draw new starting values."""
        redraw(self, 1.0 / math.sqrt(self.in1_features))

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        """Apply the bilinear form to both inputs."""
        return F.bilinear(x1, x2, self.weight, self.bias)

    def extra_repr(self) -> str:
        """The sizes."""
        return (
            f"in1_features={self.in1_features}, in2_features={self.in2_features}, "
            f"out_features={self.out_features}, bias={self.bias is not None}"
        )
