"""Constructors of public functions and operators from rows of the op table."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from minigrad.functions.operands import as_operand, is_foreign_tensor, operand_error, strong_operand
from minigrad.ops.table import Row
from minigrad.tape.apply import operation
from minigrad.tape.tensor_base import TensorBase

if TYPE_CHECKING:
    from minigrad._tensor import Tensor

__all__ = ["binary", "composed", "operator", "unary"]


def unary(row: Row) -> Callable[[Any], Tensor]:
    """The public function of a pointwise row with one input."""
    run, name = operation(row), row.name

    def function(input: Any) -> Tensor:
        out = run(input)
        if out is NotImplemented:
            out = run(strong_operand(name, input))
        return out

    return _named(function, row)


def binary(row: Row, operator: bool = False) -> Callable[[Any, Any], Tensor]:
    """The public function of a pointwise row with two inputs, or of a product.

    As an operator it returns NotImplemented for unknown types, so that Python asks their methods.
    """
    run, name = operation(row), row.name

    def function(input: Any, other: Any) -> Tensor:
        out = run(input, other)
        if out is NotImplemented:
            pair = _operands(name, input, other, operator)
            if pair is not None:
                out = run(*pair)
        return out

    return _named(function, row)


def operator(row: Row) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The two functions of an operator of the accelerator: for tensors, and for other operands."""
    run = operation(row)

    def otherwise(a: Any, b: Any) -> Any:
        left = a if isinstance(a, TensorBase) else as_operand(a)
        right = b if isinstance(b, TensorBase) else as_operand(b)
        if left is None or right is None:
            for given in (a, b):
                if is_foreign_tensor(given):
                    raise operand_error(row.name, given)
            return NotImplemented
        return run(left, right)

    return run, otherwise


def composed(row: Row) -> Callable[..., Tensor]:
    """The public function of a composition row, whose formula takes tensors, numbers and arrays."""
    name, formula = row.name, row.formula

    def unary_function(input: Any) -> Tensor:
        x = input if isinstance(input, TensorBase) else strong_operand(name, input)
        return formula(x)  # type: ignore[misc]

    def binary_function(input: Any, other: Any) -> Tensor:
        a, b = input, other
        if not isinstance(a, TensorBase):
            a = as_operand(a) if isinstance(b, TensorBase) else strong_operand(name, a)
        if not isinstance(b, TensorBase):
            b = as_operand(b)
        if a is None or b is None:
            raise TypeError(f"[{name}] expected Tensors, numbers or arrays")
        return formula(a, b)  # type: ignore[misc]

    return _named(unary_function if row.arity == 1 else binary_function, row)


def _operands(name: str, a: Any, b: Any, operator: bool) -> tuple[Any, Any] | None:
    """Both operands as tensors. None if the second operand of an operator has an unknown type.

    A number beside a tensor takes the tensor's dtype. Two numbers keep their own dtypes.
    """
    if not isinstance(a, TensorBase):
        given, a = a, as_operand(a) if isinstance(b, TensorBase) else strong_operand(name, a)
        if a is None:
            raise operand_error(name, given)
    if not isinstance(b, TensorBase):
        given, b = b, as_operand(b)
        if b is None and (not operator or is_foreign_tensor(given)):
            raise operand_error(name, given)
    return None if b is None else (a, b)


def _named(function: Callable[..., Tensor], row: Row) -> Callable[..., Tensor]:
    function.__name__ = function.__qualname__ = row.name
    word, doc = row.doc.split()[0], row.doc
    if word.isalpha() and len(word) > 1:  # neither a variable nor part of a formula
        doc = doc[0].upper() + doc[1:]
    function.__doc__ = f"{doc}."
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals is globals():
        frame = frame.f_back
    function.__module__ = frame.f_globals["__name__"]  # the calling module, where pickle looks
    return function
