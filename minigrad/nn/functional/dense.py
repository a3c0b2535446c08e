"""The functions ``linear`` and ``bilinear``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from minigrad.functions.arguments import tensor_operand
from minigrad.functions.contraction import einsum
from minigrad.ops.contraction import LINEAR, LINEAR_BIAS
from minigrad.tape.apply import operation

if TYPE_CHECKING:
    from minigrad._tensor import Tensor

__all__ = ["bilinear", "linear"]

Shape = tuple[int, ...]


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """``input @ weight.T + bias``: shapes (..., in), (out, in) and (out,) give (..., out).

    Raises ValueError if the shapes do not fit.

    >>> import minigrad as mg
    >>> linear(mg.tensor([[1.0, 2.0]]), mg.tensor([[3.0, 4.0]]), mg.tensor([5.0]))
    tensor([[16.]])
    """
    given = (input, weight) if bias is None else (input, weight, bias)
    run = _product if bias is None else _sum
    out = run(*given)
    if out is NotImplemented:
        operands = [tensor_operand("linear", x) for x in given]
        out = run(*operands)
        # shapes or dtypes that the kernel of the linear layer does not take
        if out is NotImplemented:
            _check_linear(*[x.shape for x in operands])
            out = operands[0] @ operands[1].mT
            return out if bias is None else out + operands[2]
    return out


_product, _sum = operation(LINEAR), operation(LINEAR_BIAS)


def _check_linear(x: Shape, w: Shape, b: Shape | None = None) -> None:
    if len(w) != 2:
        raise ValueError(f"[linear] the weight has shape {w}, but must be (out, in)")
    if x[-1:] != w[1:]:
        raise ValueError(
            f"[linear] the last dimension of the input {x} must be the in of the weight "
            f"{w}, (out, in): {w[1]}"
        )
    if b is not None and b != w[:1]:
        raise ValueError(
            f"[linear] the bias has shape {b}, but must be ({w[0]},) for a weight of shape {w}"
        )


def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """``sum_ij input1[..., i] * weight[:, i, j] * input2[..., j] + bias``.

    Shapes (..., in1), (..., in2), (out, in1, in2) and (out,) give (..., out). Raises ValueError if
    the shapes do not fit.

    >>> import minigrad as mg
    >>> bilinear(mg.tensor([[1.0, 2.0]]), mg.tensor([[3.0]]), mg.tensor([[[1.0], [1.0]]]))
    tensor([[9.]])
    """
    x, y = tensor_operand("bilinear", input1), tensor_operand("bilinear", input2)
    w = tensor_operand("bilinear", weight)
    fits = x._h.ndim and y._h.ndim and w.shape[1:] == (x.shape[-1], y.shape[-1])
    if not fits or x.shape[:-1] != y.shape[:-1]:
        raise ValueError(
            f"[bilinear] shapes {x.shape} and {y.shape} of the inputs and {w.shape} of the weight, "
            "(out, in1, in2), do not fit"
        )
    out = einsum("...i,kij,...j->...k", x, w, y)
    if bias is None:
        return out
    b = tensor_operand("bilinear", bias)
    if b.shape != w.shape[:1]:
        raise ValueError(
            f"[bilinear] the bias has shape {b.shape}, but must be {w.shape[:1]} "
            f"for a weight of shape {w.shape}"
        )
    return out + b
