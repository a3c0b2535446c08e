"""Creation functions: tensors from Python and NumPy data, of constants and of ranges."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from minigrad.functions.arguments import integer, real, renamed, size_of, tensor_operand
from minigrad.functions.lists import from_lists
from minigrad.functions.operands import check_range
from minigrad.runtime.batched import by_rules, running
from minigrad.runtime.devices import on_cpu
from minigrad.runtime.dtypes import (
    DType,
    as_dtype,
    bfloat16,
    bool_,
    by_name,
    default_dtype,
    float32,
    float64,
    int64,
    promoted_dtype,
)
from minigrad.runtime.lazy_numpy import is_numpys, np
from minigrad.runtime.native import Array, call, ffi, keep, kernels, lib, widened
from minigrad.runtime.numpy_view import numpy_view
from minigrad.runtime.recorders import constant, give_up
from minigrad.runtime.recorders import running as recording
from minigrad.tape.node import LEAF
from minigrad.tape.tensor_base import Size, TensorBase, wrap

if TYPE_CHECKING:
    from minigrad._tensor import Tensor

__all__ = [
    "arange",
    "as_tensor",
    "asarray",
    "empty",
    "empty_like",
    "eye",
    "from_numpy",
    "full",
    "full_like",
    "linspace",
    "ones",
    "ones_like",
    "tensor",
    "zeros",
    "zeros_like",
]


@cache
def _named(name: str) -> np.dtype[Any]:
    return np.dtype(name)


def numpy_dtype(dtype: DType) -> np.dtype[Any]:
    """The NumPy dtype of a dtype."""
    return _named(dtype.name)


def require_grad(x: Tensor, requires_grad: bool = True) -> Tensor:
    """Make ``x`` a leaf that requires a gradient. Raises TypeError unless its dtype is a float."""
    if requires_grad and (x.dtype.is_storage or not x.dtype.is_floating_point):
        why = "minigrad trains in float32 and float64" if x.dtype.is_floating_point else ""
        raise TypeError(
            f"[requires_grad] only float tensors can have gradients, this one is {x.dtype.name}"
            f"{': ' if why else ''}{why}; convert it with .to(mg.float32)"
        )
    x._edge = LEAF if requires_grad else None
    return x


# ---- from data -----------------------------------------------------------------------------------


class _Ours(dict[Any, Any]):
    """Map from a NumPy dtype to minigrad's dtype of the same layout, or None."""

    def __missing__(self, dtype: np.dtype[Any]) -> DType | None:
        found = self[dtype] = by_name.get(dtype.name) if dtype.isnative else None
        return found


_OURS = _Ours()


def _kept_dtype(array: np.ndarray[Any, Any]) -> DType:
    """The dtype that keeps the values of a NumPy array of any dtype."""
    kind, name = array.dtype.kind, array.dtype.name
    if name in by_name:
        return by_name[name]
    if kind in "iu":
        return int64
    raise TypeError(
        f"[tensor] cannot hold NumPy's {name}: use a dtype that minigrad has too"
        + (" (rows of different lengths?)" if kind == "O" else "")
    )


def _plain(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The array as a plain ndarray, since a subclass may report another shape."""
    return array if type(array) is np.ndarray else np.asarray(array)


def _exported(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The array, or its bits, as an object that supports Python's buffer protocol."""
    return array.view(np.int16) if array.dtype.name == "bfloat16" else array


def _shared_dtype(array: np.ndarray[Any, Any]) -> DType | None:
    """The dtype of a tensor that shares the array's memory; None if a copy is needed."""
    found: DType | None = _OURS[array.dtype]
    if found is None:
        return None
    flags, size = array.flags, found.itemsize
    whole = flags.c_contiguous or all(s % size == 0 for s in array.strides)
    return found if whole and flags.aligned else None


def _borrowed(array: np.ndarray[Any, Any], dtype: DType) -> Array:
    """A handle on the array's memory, read as this dtype."""
    array = _exported(array)
    size = array.itemsize
    if array.flags.c_contiguous:  # NumPy takes three times as long for the address
        address = int(ffi.cast("uintptr_t", ffi.from_buffer(array)))
    else:
        address = array.__array_interface__["data"][0]
    steps = [s // size for s in array.strides]
    writable = array.flags.writeable
    made = call(kernels.borrow, address, dtype.code, array.shape, steps, writable)
    keep(made, array)
    return made


_FEW_BYTES = 4096  # up to here a copy is faster than sharing memory


def _from_array(array: np.ndarray[Any, Any], dtype: DType | None) -> Array:
    """A copy of the array in a dtype of minigrad."""
    kept = _shared_dtype(array)
    if kept is None:
        kept = _kept_dtype(array)
        if array.dtype.kind == "u" and array.size and int(array.max()) > 2**63 - 1:
            raise OverflowError(f"[tensor] {int(array.max())} does not fit in int64")
        array = np.ascontiguousarray(array, numpy_dtype(kept)).reshape(array.shape)
    code = (dtype or kept).code
    few = array.nbytes <= _FEW_BYTES and array.ndim <= lib.MG_MAX_NDIM
    if not few or not array.flags.c_contiguous:
        return call(kernels.cast, _borrowed(array, kept), code)
    if recording:
        give_up("a tensor", "is made from NumPy's memory: pass it as an argument")
    made = call(kernels.empty, kept.code, array.shape)
    ffi.memmove(ffi.cast("void *", made.data), _exported(array), array.nbytes)
    return made if code == kept.code else call(kernels.cast, made, code)


def _first(data: Any) -> Any:
    while isinstance(data, (list, tuple)) and data:
        data = data[0]
    return data


def _items(data: Any) -> list[Any]:
    """Iterate over the elements of nested sequences."""
    if isinstance(data, (list, tuple)):
        return [item for part in data for item in _items(part)]
    return [data]


def _detensored(data: Any) -> Any:
    """Nested lists with each tensor replaced by a NumPy array."""
    if isinstance(data, (list, tuple)):
        return [_detensored(item) for item in data]
    if isinstance(data, TensorBase):
        return np.asarray(data if data.dtype is not bfloat16 else data.to(float32))  # type: ignore[attr-defined]
    return data


def _is_numpys(data: Any) -> bool:
    return is_numpys("ndarray", data) or is_numpys("generic", data)


def _shows_an_array(data: Any) -> bool:
    """True for another library's object that NumPy can read as an array."""
    kind = type(data)
    return hasattr(kind, "__array__") or hasattr(kind, "__array_interface__")


def foreign_values(op: str, value: Any) -> Tensor:
    """A detached tensor of the values of a tensor, number or array, also of another library."""
    if isinstance(value, TensorBase) or not _shows_an_array(value):
        return tensor_operand(op, value).detach()
    if hasattr(value, "detach"):  # PyTorch's tensors give no array while they require grad
        value = value.detach()
    return asarray(np.asarray(value))


def _together(data: Any) -> DType | None:
    """The float dtype of the elements of nested sequences, promoted as operations do.

    Python numbers and integers do not widen float32, the dtype of Python numbers alone. None if the
    promoted dtype is no float.
    """
    kinds = {getattr(item, "dtype", type(item)): item for item in _items(data)}
    found = []
    for item in kinds.values():
        if isinstance(item, TensorBase):
            found.append(item.dtype)
        elif _is_numpys(item):
            found.append(_kept_dtype(np.asarray(item)))
        elif np.asarray(item).dtype.kind == "f":
            found.append(default_dtype())
    widest = functools.reduce(promoted_dtype, found) if found else default_dtype()
    return widest if widest.is_floating_point else None


def _from_sequences(data: Any) -> tuple[np.ndarray[Any, Any], DType | None, bool]:
    """Numbers or nested sequences as an array, their dtype, and whether a Python number is first.

    The dtype is None if the array has it already.

    Lists and tuples of Python numbers alone do not come here: C reads them (``from_lists``).
    """
    try:
        array = np.asarray(_detensored(data))
    except ValueError as error:
        raise ValueError(f"[tensor] the sequences differ in length: {error}") from None
    if array.dtype.kind in "OUSM":
        foreign = [item for item in _items(data) if not isinstance(item, (int, float))]
        if not foreign:
            raise OverflowError("[tensor] an integer in the data does not fit in int64; use floats")
        raise TypeError(f"[tensor] cannot make a tensor from {type(foreign[0]).__name__} data")
    first, kept = _first(data), None
    from_python = not (isinstance(first, TensorBase) or _is_numpys(first))
    if from_python and array.size == 0:
        kept = default_dtype()
    elif array.dtype.kind == "f":
        kept = _together(data)
    return array, kept, from_python


def from_sequence(data: Sequence[Any]) -> Tensor:
    """A list as an operand. Python numbers in it take the dtype of the array they meet."""
    made = from_lists(data, float64.code, True)
    if made is None:
        array, kept, from_python = _from_sequences(data)
        handle = _from_array(array, None if from_python else kept)
        if from_python:  # a python scalar has a dtype of Python's numbers
            handle = widened(handle)
            handle.mark_weak()
        return wrap(handle)
    return constant(made) if recording else made


def tensor(
    data: Any,
    dtype: Any = None,
    requires_grad: bool = False,
    *,
    device: Any = None,
    pin_memory: bool = False,
) -> Tensor:
    """A new tensor that holds a copy of the data.

    ``data`` is a number, nested sequences, a Tensor, a NumPy array, or an object that NumPy reads
    as one. Python floats get the default dtype (float32 unless set), integers int64, booleans bool.
    An array keeps its dtype. Unsigned integers of 16 bits and more become int64. Sequences of
    several kinds get the widest of these dtypes.

    Raises TypeError for data of other types or ragged sequences, and ValueError for too many
    dimensions. Raises OverflowError for integers out of the dtype's range.

    >>> import minigrad as mg
    >>> mg.tensor([[1.0, 2.0], [3.0, 4.0]]).shape
    (2, 2)
    """
    if device is not None:
        on_cpu(device)
    target = None if dtype is None else as_dtype(dtype)
    single = (default_dtype() if target is None else target) is float32
    made = from_lists(data, (float32 if single else float64).code, False)
    if made is None:
        made = wrap(_copied(data, target))
        return require_grad(made) if requires_grad else made
    if recording:
        constant(made)
    if target is not None and made._h.dtype != target.code:
        check_range("tensor", made._h, target.code)
        made = wrap(call(kernels.cast, made._h, target.code))
    return require_grad(made) if requires_grad else made


def _copied(data: Any, target: DType | None) -> Array:
    """A copy of data other than Python numbers in lists and tuples."""
    if isinstance(data, TensorBase):
        return call(kernels.cast, data._h, (target or data.dtype).code)
    if _is_numpys(data) or _shows_an_array(data):
        return _from_array(np.asarray(data), target)
    if hasattr(type(data), "__dlpack__"):
        return _from_array(np.from_dlpack(data), target)
    array, kept, _ = _from_sequences(data)
    return _from_array(array, target or kept)


def from_numpy(array: np.ndarray[Any, Any]) -> Tensor:
    """A tensor on the array's memory. A write to one is seen in the other.

    The tape saves a copy of such a tensor, so that later writes by NumPy do not change a gradient
    unnoticed. Raises TypeError for other objects and for dtypes without a counterpart. Raises
    ValueError for memory in another byte order or whose strides are not whole elements.
    """
    if not is_numpys("ndarray", array):
        raise TypeError(f"[from_numpy] expected a numpy.ndarray, not {type(array).__name__}")
    array = _plain(array)
    kept = _shared_dtype(array)
    if kept is not None:
        return wrap(_borrowed(array, kept))
    if array.dtype.name not in by_name:
        raise TypeError(
            f"[from_numpy] cannot share memory of dtype {array.dtype.name}: "
            "use a dtype that minigrad has too, or copy with mg.tensor"
        )
    raise ValueError(
        "[from_numpy] the array is misaligned, byte-swapped or strided by part elements; "
        "copy it with mg.tensor"
    )


def asarray(
    data: Any,
    dtype: Any = None,
    device: Any = None,
    *,
    copy: bool | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """The data as a tensor, without a copy where possible (tensors and NumPy arrays).

    ``copy=True`` always copies. ``copy=False`` raises ValueError if a copy is needed.
    """
    if copy is not None or requires_grad:
        return _asarray(data, dtype, device, copy, requires_grad)
    if device is not None:
        on_cpu(device)
    target = None if dtype is None else as_dtype(dtype)
    if isinstance(data, TensorBase):
        same = target is None or data.dtype is target
        return data if same else data.to(target)  # type: ignore[return-value, attr-defined]
    if is_numpys("ndarray", data):
        data = _plain(data)
        kept = _shared_dtype(data)
        if kept is not None:
            shared = wrap(_borrowed(data, kept))
            return shared if target is None or kept is target else shared.to(target)
    return tensor(data, target)


as_tensor = asarray  # PyTorch's name


def _asarray(data: Any, dtype: Any, device: Any, copy: bool | None, requires_grad: bool) -> Tensor:
    """:func:`asarray` with the flags ``copy`` and ``requires_grad``."""
    shares = _has_memory(data, None if dtype is None else as_dtype(dtype))
    if copy is False and not shares:
        raise ValueError(
            f"[asarray] {type(data).__name__} data needs a copy here: leave out copy=False"
        )
    made: Any = asarray(data, dtype, device)
    if copy and shares:
        made = made.clone()
    return require_grad(made.detach()) if requires_grad else made


def _has_memory(data: Any, target: DType | None) -> bool:
    """True if a tensor of this dtype can share the memory of the data."""
    if isinstance(data, TensorBase):
        return target is None or data.dtype is target
    kept = _shared_dtype(_plain(data)) if is_numpys("ndarray", data) else None
    return kept is not None and (target is None or kept is target)


# ---- filled --------------------------------------------------------------------------------------

_PLENTY = 1 << 26  # elements; smaller tensors are not checked


def check_room(op: str, shape: Sequence[int], dtype: DType = float64) -> None:
    """Raise a MemoryError of minigrad if NumPy or Python could not allocate so many elements."""
    if math.prod(shape) > _PLENTY:
        _sized(op, kernels.empty, dtype.code, shape)


def _sized(op: str, kernel: Any, *args: Any) -> Array:
    """Call a kernel that takes a size. Its errors name the operation ``op``."""
    try:
        return call(kernel, *args)
    except (ValueError, MemoryError) as error:
        raise renamed(op, error) from None


def _filled(op: str, size: Sequence[Any], value: Any, dtype: Any, requires_grad: bool) -> Tensor:
    kind = as_dtype(dtype)
    shape = size_of(op, size)
    try:
        number = int(value) if kind.kind < 2 else 0
    except (ValueError, OverflowError):
        raise ValueError(f"[{op}] {value} has no value in {kind.name}") from None
    if kind is bool_:
        number = bool(value)
    if not -(2**63) <= number < 2**63:
        raise OverflowError(f"[{op}] {value} does not fit in int64")
    if kind.is_storage:
        check_range(op, call(kernels.python_int, number), kind.code)
    handle = _sized(op, kernels.full, kind.code, shape, float(value), number)
    return require_grad(wrap(handle), requires_grad)


def _whole(op: str, size: Sequence[Any], value: int, dtype: Any, requires_grad: bool) -> Tensor:
    """A tensor filled with a number that every dtype has."""
    shape, kind = size_of(op, size), as_dtype(dtype)
    made = wrap(_sized(op, kernels.full, kind.code, shape, float(value), value))
    return require_grad(made) if requires_grad else made


def zeros(
    *sizes: Any,
    size: Any = None,
    dtype: Any = None,
    requires_grad: bool = False,
    device: Any = None,
    layout: Any = None,
    pin_memory: bool = False,
) -> Tensor:
    """A tensor of zeros: ``zeros(2, 3)``, ``zeros((2, 3))`` or ``zeros(size=(2, 3))``."""
    if device is not None:
        on_cpu(device)
    return _whole("zeros", sizes if size is None else (size,), 0, dtype, requires_grad)


def ones(
    *sizes: Any,
    size: Any = None,
    dtype: Any = None,
    requires_grad: bool = False,
    device: Any = None,
    layout: Any = None,
    pin_memory: bool = False,
) -> Tensor:
    """A tensor of ones: ``ones(2, 3)``, ``ones((2, 3))`` or ``ones(size=(2, 3))``."""
    if device is not None:
        on_cpu(device)
    return _whole("ones", sizes if size is None else (size,), 1, dtype, requires_grad)


def full(
    size: Any,
    fill_value: float,
    *,
    dtype: Any = None,
    requires_grad: bool = False,
    device: Any = None,
    layout: Any = None,
    pin_memory: bool = False,
) -> Tensor:
    """A tensor filled with one value, in the value's dtype unless another is given."""
    if device is not None:
        on_cpu(device)
    kind, value = _kind_of(fill_value), fill_value
    if kind.is_floating_point:
        value = real("full", "fill_value", fill_value)
    return _filled("full", (size,), value, kind if dtype is None else dtype, requires_grad)


def _kind_of(value: Any) -> DType:
    """The default dtype of a Python or NumPy number; float32 for anything else."""
    if isinstance(value, float):
        return default_dtype()
    if isinstance(value, bool) or is_numpys("bool_", value):
        return bool_
    return int64 if isinstance(value, int) or is_numpys("integer", value) else default_dtype()


def empty(
    *sizes: Any,
    size: Any = None,
    dtype: Any = None,
    requires_grad: bool = False,
    device: Any = None,
    layout: Any = None,
    pin_memory: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """An uninitialised tensor."""
    if device is not None:
        on_cpu(device)
    shape = size_of("empty", sizes if size is None else (size,))
    handle = call(kernels.empty, as_dtype(dtype).code, shape)
    return require_grad(wrap(handle), requires_grad)


def zeros_like(
    input: Tensor,
    *,
    dtype: Any = None,
    requires_grad: bool = False,
    device: Any = None,
    layout: Any = None,
    pin_memory: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """A tensor of zeros with the input's shape and dtype."""
    if device is not None:
        on_cpu(device)
    x = tensor_operand("zeros_like", input)
    made = zeros(x.shape, dtype=dtype or x.dtype, requires_grad=requires_grad)
    return made if not running else by_rules("like")(made, x)


def ones_like(
    input: Tensor,
    *,
    dtype: Any = None,
    requires_grad: bool = False,
    device: Any = None,
    layout: Any = None,
    pin_memory: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """A tensor of ones with the input's shape and dtype."""
    if device is not None:
        on_cpu(device)
    x = tensor_operand("ones_like", input)
    made = ones(x.shape, dtype=dtype or x.dtype, requires_grad=requires_grad)
    return made if not running else by_rules("like")(made, x)


def full_like(
    input: Tensor,
    fill_value: float,
    *,
    dtype: Any = None,
    requires_grad: bool = False,
    device: Any = None,
    layout: Any = None,
    pin_memory: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """A tensor filled with one value, with the input's shape and dtype."""
    if device is not None:
        on_cpu(device)
    x = tensor_operand("full_like", input)
    made = full(x.shape, fill_value, dtype=dtype or x.dtype, requires_grad=requires_grad)
    return made if not running else by_rules("like")(made, x)


def of_sizes_or_data(name: str, given: tuple[Any, ...], dtype: Any, device: Any = None) -> Tensor:
    """A tensor as PyTorch's classes make it: uninitialised of given sizes, or of given data."""
    if not given or type(given[0]) is int:
        return empty(given or (0,), dtype=dtype, device=device)
    if len(given) > 1:
        raise TypeError(f"[{name}] takes sizes or one argument of data: use mg.tensor(data, dtype)")
    made_of = empty if type(given[0]) is Size else tensor
    return made_of(given[0], dtype=dtype, device=device)


def empty_like(
    input: Tensor,
    *,
    dtype: Any = None,
    requires_grad: bool = False,
    device: Any = None,
    layout: Any = None,
    pin_memory: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """An uninitialised tensor with the input's shape and dtype."""
    if device is not None:
        on_cpu(device)
    x = tensor_operand("empty_like", input)
    made = empty(x.shape, dtype=dtype or x.dtype, requires_grad=requires_grad)
    return made if not running else by_rules("like")(made, x)


def arange(
    start: float,
    end: float | None = None,
    step: float = 1,
    *,
    dtype: Any = None,
    requires_grad: bool = False,
    device: Any = None,
    layout: Any = None,
    pin_memory: bool = False,
) -> Tensor:
    """The values start, start + step, ... below end. ``arange(n)`` counts from 0.

    The dtype is int64 if all arguments are integers, else float32. Raises ValueError for a zero
    step and for bounds that are not finite.
    """
    if device is not None:
        on_cpu(device)
    if end is None:
        start, end = 0, start
    whole = type(start) is type(end) is type(step) is int or all(
        isinstance(v, int) or is_numpys("integer", v) for v in (start, end, step)
    )
    kind = as_dtype(dtype) if dtype is not None else int64 if whole else default_dtype()
    if not whole:
        start, end, step = (real("arange", "a bound or the step", v) for v in (start, end, step))
    if step == 0 or not all(map(math.isfinite, (start, end, step))):
        raise ValueError(f"[arange] cannot count from {start} to {end} by {step}")
    if whole:
        count = max(0, -((int(start) - int(end)) // int(step)))
    else:
        count = max(0, math.ceil((end - start) / step))
    exact = (int(start), int(step)) if whole or kind.wide is int64 else (0, 0)
    handle = call(kernels.arange, kind.code, float(start), float(step), *exact, count)
    return require_grad(wrap(handle), requires_grad)


def linspace(
    start: float,
    end: float,
    steps: int,
    *,
    dtype: Any = None,
    requires_grad: bool = False,
    device: Any = None,
    layout: Any = None,
    pin_memory: bool = False,
) -> Tensor:
    """``steps`` evenly spaced values from start to end, both included."""
    if device is not None:
        on_cpu(device)
    kind, count = as_dtype(dtype), integer("linspace", "steps", steps, 0)
    first, last = real("linspace", "start", start), real("linspace", "end", end)
    step = (last - first) / max(count - 1, 1)
    out = _sized("linspace", kernels.arange, float64.code, first, step, 0, 0, count)
    if count > 1:
        end_of = call(kernels.view_slice, out, (count - 1,), (1,), (1,))
        call(kernels.write, end_of, call(kernels.python_float, last))
    return require_grad(wrap(call(kernels.cast, out, kind.code)), requires_grad)


def eye(
    n: int,
    m: int | None = None,
    *,
    dtype: Any = None,
    requires_grad: bool = False,
    device: Any = None,
    layout: Any = None,
    pin_memory: bool = False,
) -> Tensor:
    """The n x m matrix with ones on the diagonal. It is square unless m is given."""
    if device is not None:
        on_cpu(device)
    rows = integer("eye", "n", n, 0)
    columns = rows if m is None else integer("eye", "m", m, 0)
    out = _sized("eye", kernels.full, as_dtype(dtype).code, (rows, columns), 0.0, 0)
    call(kernels.write, call(kernels.view_diagonal, out, 0), call(kernels.python_int, 1))
    return require_grad(wrap(out), requires_grad)


# ---- to NumPy ------------------------------------------------------------------------------------


def to_numpy(handle: Array) -> np.ndarray[Any, Any]:
    """A NumPy array on the memory of a C array, read-only while a graph needs this memory."""
    return np.asarray(numpy_view(handle))
