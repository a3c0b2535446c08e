"""The linear layer as a function."""

from __future__ import annotations

from typing import TYPE_CHECKING

from minigrad.dispatch import apply
from minigrad.ops.contraction import LINEAR, LINEAR_BIAS
from minigrad.shaping import tensor_operand

if TYPE_CHECKING:
    from minigrad._tensor import Tensor

__all__ = ["linear"]


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:  # noqa: A002
    """``input @ weight.T + bias``: shapes (..., in), (out, in) and (out,) give (..., out).

    Raises ValueError where the shapes do not fit.

    >>> import minigrad as mg
    >>> linear(mg.tensor([[1.0, 2.0]]), mg.tensor([[3.0, 4.0]]), mg.tensor([5.0]))
    tensor([[16.]])
    """
    x, w = tensor_operand("linear", input), tensor_operand("linear", weight)
    hx, hw = x._h, w._h
    if hw.ndim != 2:
        raise ValueError(f"[linear] the weight has shape {w.shape}, but must be (out, in)")
    if not hx.ndim or hx.shape[hx.ndim - 1] != hw.shape[1]:
        raise ValueError(
            f"[linear] the last dimension of the input {x.shape} must be the in of the weight "
            f"{w.shape}, (out, in): {hw.shape[1]}"
        )
    one_dtype = hx.dtype == hw.dtype and hx.ndim > 1
    if bias is None:
        return apply(LINEAR, (x, w)) if one_dtype else x @ w.mT
    b = tensor_operand("linear", bias)
    if b._h.ndim != 1 or b._h.size != hw.shape[0]:
        raise ValueError(
            f"[linear] the bias has shape {b.shape}, but must be ({hw.shape[0]},) "
            f"for a weight of shape {w.shape}"
        )
    if one_dtype and b._h.dtype == hw.dtype:
        return apply(LINEAR_BIAS, (x, w, b))
    return x @ w.mT + b
