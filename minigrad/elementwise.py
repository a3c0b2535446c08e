"""Elementwise operations as functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from minigrad.dispatch import apply, as_operand, binary, operand_error, unary
from minigrad.dtypes import bool_
from minigrad.ops import pointwise as _p
from minigrad.shaping import tensor_operand

if TYPE_CHECKING:
    from minigrad._tensor import Tensor

__all__ = [
    "abs",
    "add",
    "cos",
    "div",
    "eq",
    "exp",
    "ge",
    "gt",
    "le",
    "log",
    "lt",
    "masked_fill",
    "maximum",
    "minimum",
    "mul",
    "ne",
    "neg",
    "pow",
    "reciprocal",
    "relu",
    "sigmoid",
    "sign",
    "sin",
    "sqrt",
    "square",
    "sub",
    "tanh",
    "where",
]

neg = unary(_p.NEG)
abs = unary(_p.ABS)  # noqa: A001 - NumPy's and PyTorch's name
sign = unary(_p.SIGN)
exp = unary(_p.EXP)
log = unary(_p.LOG)
sqrt = unary(_p.SQRT)
square = unary(_p.SQUARE)
reciprocal = unary(_p.RECIPROCAL)
sin = unary(_p.SIN)
cos = unary(_p.COS)
tanh = unary(_p.TANH)
sigmoid = unary(_p.SIGMOID)
relu = unary(_p.RELU)

add = binary(_p.ADD)
sub = binary(_p.SUB)
mul = binary(_p.MUL)
div = binary(_p.DIV)
pow = binary(_p.POW)  # noqa: A001
maximum = binary(_p.MAXIMUM)
minimum = binary(_p.MINIMUM)
scale = binary(_p.SCALE)
eq = binary(_p.EQ)
ne = binary(_p.NE)
lt = binary(_p.LT)
le = binary(_p.LE)
gt = binary(_p.GT)
ge = binary(_p.GE)


def where(condition: Any, a: Any, b: Any) -> Tensor:
    """a where the condition holds, else b; the three are broadcast together.

    The gradient of what was not chosen is exactly 0, also where it is infinite or NaN.
    """
    c = tensor_operand("where", condition)
    if c.dtype is not bool_:
        raise TypeError(f"[where] the condition must be bool, not {c.dtype.name}: compare it first")
    x, y = as_operand(a), as_operand(b)
    for given, found in ((a, x), (b, y)):
        if found is None:
            raise operand_error("where", given)
    return apply(_p.WHERE, (c, x, y))


def masked_fill(x: Tensor, mask: Tensor, value: float) -> Tensor:
    """x with ``value`` where the mask is true."""
    return where(mask, value, x)
