"""Operators of Tensor: reflected and augmented forms, and in-place methods made from functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from minigrad._tensor.inplace import check_writable, shows_tracked, update
from minigrad.functions.operands import as_operand
from minigrad.functions.row_functions import operator
from minigrad.ops import pointwise as p
from minigrad.ops.table import Row
from minigrad.runtime.native import call, kernels
from minigrad.tape.apply import apply
from minigrad.tape.grad_mode import mode, no_grad_scopes
from minigrad.tape.tensor_base import TensorBase, wrap

if TYPE_CHECKING:
    from minigrad._tensor import Tensor

__all__ = ["IN_C", "OPERATORS", "augmented", "both_orders", "in_place_method", "reflected"]

# Rows of the binary operators. Each operator has a reflected form and an in-place form.
OPERATORS = {
    "add": p.ADD,
    "sub": p.SUB,
    "mul": p.MUL,
    "truediv": p.DIV,
    "floordiv": p.FLOOR_DIVIDE,
    "mod": p.REMAINDER,
    "pow": p.POW,
    "and": p.BITWISE_AND,
    "or": p.BITWISE_OR,
    "xor": p.BITWISE_XOR,
    "lshift": p.BITWISE_LEFT_SHIFT,
    "rshift": p.BITWISE_RIGHT_SHIFT,
}
IN_C = ("add", "sub", "mul", "truediv", "pow")  # operators that the accelerator installs


def reflected(function: Callable[[Any, Any], Tensor]) -> Callable[[Tensor, Any], Tensor]:
    def reflected(self: Tensor, other: Any) -> Tensor:
        operand = as_operand(other)
        return NotImplemented if operand is None else function(operand, self)

    return reflected


def both_orders(row: Row) -> tuple[Any, Any]:
    """The methods of an operator and of its reflected form."""
    _, otherwise = operator(row)

    def operate(self: Tensor, other: Any, modulo: Any = None) -> Any:
        if modulo is not None:
            return NotImplemented
        if isinstance(other, TensorBase):
            return apply(row, (self, other))
        return otherwise(self, other)

    def reflected(self: Tensor, other: Any, modulo: Any = None) -> Any:
        return otherwise(other, self) if modulo is None else NotImplemented

    return operate, reflected


def in_place_method(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """A method that writes the function's result over the tensor, and returns the tensor."""
    op = function.__name__

    def in_place(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        before = self
        tracked = self._edge is not None or any(
            isinstance(x, TensorBase) and x._edge is not None for x in (*args, *kwargs.values())
        )
        if (tracked or shows_tracked(self)) and not (no_grad_scopes and not mode.enabled):
            check_writable(op, self)
            # old values, which the graph may save
            before = wrap(call(kernels.copy, self._h), self._edge)
            args = tuple([before if x is self else x for x in args])
            kwargs = {name: before if x is self else x for name, x in kwargs.items()}
        return update(op, self, function(before, *args, **kwargs))

    in_place.__name__, in_place.__qualname__ = f"{op}_", f"Tensor.{op}_"
    in_place.__doc__ = f":func:`minigrad.{op}`, written over this tensor; returns it."
    return in_place


def augmented(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """An augmented assignment. It writes in place, and returns NotImplemented for unknown types."""
    in_place = in_place_method(function)

    def augmented(self: Tensor, other: Any) -> Tensor:
        operand = as_operand(other)
        return NotImplemented if operand is None else in_place(self, operand)

    return augmented
