"""Numbers, lists and arrays as operands beside tensors."""

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

# The tensors of plain numbers in recent use; the accelerator looks there first.
ints: dict[int, Any] = {}
floats: dict[float, Any] = {}
_known: dict[type, dict[Any, Any]] = {int: ints, float: floats}
_NUMBERS_LIMIT = 256
_FIRST_FLOAT = lib.MG_FLOAT32
_INT64 = range(-(2**63), 2**63)


def number(value: float) -> Tensor:
    """A 0-d tensor for a Python number, which takes on the dtype of what it meets.

    Raises OverflowError for an integer beyond int64.
    """
    if isinstance(value, bool):
        made = wrap(call(kernels.python_bool, value))
    elif isinstance(value, int):
        if int(value) not in _INT64:  # a range looks for what is not exactly an int one by one
            raise OverflowError(f"[int64] {value} does not fit; use a float")
        made = wrap(call(kernels.python_int, value))
    else:
        made = wrap(call(kernels.python_float, value))
    made._h.freeze()
    known: dict[Any, Any] | None = _known.get(type(value))
    if known is not None and (value or known is ints):  # 0.0 and -0.0 are equal and yet differ
        if len(known) >= _NUMBERS_LIMIT:
            known.clear()
        known[value] = made
    return made


def as_operand(value: Any) -> Any:
    """A tensor, a Python or NumPy number, or anything NumPy reads as an array, as an operand.

    None for what none of these is.
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
    if is_numpys("generic", value):  # a longdouble is its own item
        return as_operand(float(value) if isinstance(value, np.longdouble) else value.item())
    if is_numpys("ndarray", value):
        from minigrad.functions.creation import asarray

        return asarray(value)
    return None


def strong_operand(op: str, value: Any) -> Any:
    """An operand with a dtype of its own: of a plain float that is float32."""
    return tensor_operands(op, value)[0]


def tensor_operands(op: str, *values: Any) -> list[Any]:
    """Operands with dtypes of their own: numbers and lists have that of the float tensors beside
    them, or float32.
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
    """A number or list in a dtype of its own: this one if it holds floats."""
    return wrap(call(kernels.cast, x._h, floats if x._h.dtype >= _FIRST_FLOAT else x._h.dtype))


def value_for(op: str, x: TensorBase, value: Any) -> Any:
    """The value to write into x: numbers and lists in x's dtype."""
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
    """OverflowError for Python's numbers that an integer dtype of storage has not; negative ones
    wrap around in uint8, as in PyTorch.
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
    """Not something to compute with."""
    kind = type(value).__name__
    if is_foreign_tensor(value):
        library = type(value).__module__.partition(".")[0]
        kind = f"a {kind} of {library}'s: take its values with mg.tensor(x.detach().numpy())"
    return TypeError(f"[{name}] expected a Tensor, a number or an array, not {kind}")


def is_foreign_tensor(value: object) -> bool:
    """Whether it is a tensor of another library that has a tape of its own, such as PyTorch's."""
    kind = type(value)
    return hasattr(kind, "detach") and hasattr(kind, "numpy") and not isinstance(value, TensorBase)
