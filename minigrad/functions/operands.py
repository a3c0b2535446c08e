"""Conversion of numbers, lists and arrays to operands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from minigrad.runtime.dtypes import by_code
from minigrad.runtime.lazy_numpy import is_numpys, np
from minigrad.runtime.native import Array, call, kernels, lib
from minigrad.tape.tensor_base import TensorBase, wrap

if TYPE_CHECKING:
    from minigrad._tensor import Tensor

__all__ = [
    "as_operand",
    "check_range",
    "floats",
    "ints",
    "is_foreign_tensor",
    "number",
    "operand_error",
    "strong_operand",
    "tensor_operands",
    "value_for",
]

# Cache of 0-d tensors for Python numbers. The accelerator looks there first.
ints: dict[int, Any] = {}
floats: dict[float, Any] = {}
_known: dict[type, dict[Any, Any]] = {int: ints, float: floats}
_NUMBERS_LIMIT = 256
_FIRST_FLOAT = lib.MG_FLOAT32
_INT64 = range(-(2**63), 2**63)


def number(value: float) -> Tensor:
    """A 0-d tensor for a Python number, which takes the dtype of the array it meets.

    Raises OverflowError for an integer out of int64's range.
    """
    if isinstance(value, bool):
        made = wrap(call(kernels.python_bool, value))
    elif isinstance(value, int):
        if int(value) not in _INT64:  # ``in range`` is slow for anything but int
            raise OverflowError(f"[int64] {value} does not fit; use a float")
        made = wrap(call(kernels.python_int, value))
    else:
        made = wrap(call(kernels.python_float, value))
    made._h.freeze()
    known: dict[Any, Any] | None = _known.get(type(value))
    if known is not None and (value or known is ints):  # 0.0 and -0.0 compare equal but differ
        if len(known) >= _NUMBERS_LIMIT:
            known.clear()
        known[value] = made
    return made


def as_operand(value: Any) -> Any:
    """A tensor, number, list or any object that NumPy reads as an array, as an operand.

    The result is None for anything else.
    """
    known = _known.get(type(value))
    if known is not None:
        found = known.get(value)
        return number(value) if found is None else found
    if isinstance(value, TensorBase):
        return value
    if isinstance(value, (bool, int, float)):
        return number(value)
    if isinstance(value, (list, tuple, range)):
        from minigrad.functions.creation import from_sequence

        return from_sequence(value)
    if is_numpys("generic", value):  # item() of a longdouble returns a longdouble
        return as_operand(float(value) if isinstance(value, np.longdouble) else value.item())
    if is_numpys("ndarray", value):
        from minigrad.functions.creation import asarray

        return asarray(value)
    return None


def strong_operand(op: str, value: Any) -> Any:
    """An operand with a fixed dtype: float32 for a Python float."""
    return tensor_operands(op, value)[0]


def tensor_operands(op: str, *values: Any) -> list[Any]:
    """Operands with fixed dtypes.

    Numbers and lists get the dtype of the float tensors among the values, else float32.
    """
    found = []
    floats, weak = _FIRST_FLOAT, False
    for value in values:
        x = value if isinstance(value, TensorBase) else as_operand(value)
        if x is None:
            raise operand_error(op, value)
        found.append(x)
        if x._h.weak:
            weak = True
        elif x._h.dtype > floats:
            floats = x._h.dtype
    return [_settled(x, floats) if x._h.weak else x for x in found] if weak else found


def _settled(x: Any, floats: int) -> Any:
    """A number or list with a fixed dtype: ``floats`` for floats."""
    return wrap(call(kernels.cast, x._h, floats if x._h.dtype >= _FIRST_FLOAT else x._h.dtype))


def value_for(op: str, x: TensorBase, value: Any) -> Any:
    """The value to write into x. Numbers and lists get x's dtype."""
    found = as_operand(value)
    if found is None:
        raise operand_error(op, value)
    if not found._h.weak:
        return found
    code = x._h.dtype
    if code < 0:
        check_range(op, found._h, code)
    return wrap(call(kernels.cast, found._h, code))


def check_range(op: str, numbers: Array, code: int) -> None:
    """Raise an OverflowError for Python numbers out of the range of a storage integer dtype.

    Negative numbers wrap around in uint8, as in PyTorch.
    """
    kind = by_code[code]
    if code >= 0 or kind.kind != 1 or numbers.dtype == lib.MG_BOOL or not numbers.size:
        return
    most = 2 ** (8 * kind.itemsize - kind.is_signed) - 1
    for which in (kernels.amin, kernels.amax):
        found = call(which, numbers, None, False).item()
        if not -most - kind.is_signed <= found <= most:
            raise OverflowError(f"[{op}] {found} does not fit in {kind.name}")


def operand_error(name: str, value: object) -> TypeError:
    """Error: a value is no operand."""
    kind = type(value).__name__
    if is_foreign_tensor(value):
        library = type(value).__module__.partition(".")[0]
        kind = f"a {kind} of {library}'s: take its values with mg.tensor(x.detach().numpy())"
    return TypeError(f"[{name}] expected a Tensor, a number or an array, not {kind}")


def is_foreign_tensor(value: object) -> bool:
    """True for a tensor of another library with a tape of its own, such as PyTorch."""
    kind = type(value)
    return hasattr(kind, "detach") and hasattr(kind, "numpy") and not isinstance(value, TensorBase)
