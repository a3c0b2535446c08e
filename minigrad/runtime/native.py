"""Interface to the C core: instruction set, arrays, calls of kernels, and errors.

The instruction set is chosen at import. :func:`call` runs a kernel by its number in
``csrc/ops.def``: ``kernels.matmul`` is the number of ``matmul``. A failure in C becomes a Python
error. An :class:`Array` is the Python object that holds a C array and releases it.

This module defines arrays and calls in Python. The accelerator's versions replace them if it was
built: see :mod:`minigrad.runtime.accelerator`.
"""

from __future__ import annotations

import contextlib
import importlib
import itertools
import os
from collections.abc import Callable, Iterator
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, final

from minigrad.runtime.accelerator import speed
from minigrad.runtime.batched import BatchedArray, BatchedOperandError, batched_call
from minigrad.runtime.lazy_numpy import np

__all__ = [
    "Array",
    "Saved",
    "available_isas",
    "call",
    "check_result",
    "ffi",
    "function_of",
    "isa",
    "kernels",
    "lib",
    "names",
    "run_steps",
    "save",
    "save_as_is",
    "saved_handle",
    "step",
    "trace",
    "tracers",
    "vjp_of",
    "widened",
]

# ---- the instruction set -------------------------------------------------------------------------

try:
    _native = importlib.import_module("minigrad._native")
except ModuleNotFoundError as error:
    if error.name != "minigrad._native":  # a dependency of the module is missing: cffi
        raise
    raise ImportError(
        "minigrad's C extension is missing: install the package with "
        "`python -m pip install .`, and do not run Python from its source folder"
    ) from None
ffi: Any = _native.ffi
lib: Any = _native.lib
_NULL = ffi.NULL


def _choose(available: tuple[str, ...]) -> str:
    wanted = os.environ.get("MINIGRAD_ISA", "").strip().lower()
    if not wanted:
        return available[-1]
    if wanted not in available:
        raise ImportError(
            f"MINIGRAD_ISA={wanted!r} is not available here; choose one of: {', '.join(available)}"
        )
    return wanted


_NUMBERS = {
    "MINIGRAD_NUM_THREADS": (range(1, 257), "number of threads from 1 to 256"),
    "MINIGRAD_STREAM_BYTES": (range(2**63), "number of bytes"),
    "MINIGRAD_CACHE_LIMIT": (range(2**63), "number of bytes"),
}


def _check_numbers() -> None:
    """Raise an error if an environment variable that C reads as a number holds no valid number."""
    for variable, (allowed, what) in _NUMBERS.items():
        given = os.environ.get(variable, "")
        plain = given.isascii() and given.isdecimal()
        if given and not (plain and int(given) in allowed):
            raise ImportError(f"{variable}={given!r} is not a {what}")


_check_numbers()
# Instruction sets that were built and that this machine can run, the best one last.
_offered = itertools.takewhile(bool, map(lib.mg_isa_offered, itertools.count()))
available_isas = tuple(ffi.string(name).decode() for name in _offered)
isa = _choose(available_isas)

lib.mg_isa_use(available_isas.index(isa))

# ---- operations ----------------------------------------------------------------------------------


def _text(text: Any) -> str:
    return str(ffi.string(text).decode())


# Operations by number: the elementwise operations, their derivatives, the derivatives that write
# over the gradient, then the kernels of ops.def.
_ELEMENTWISE = lib.mg_elementwise_count()
_numbers = range(lib.mg_run_count())
signatures = [_text(lib.mg_run_signature(number)) for number in _numbers]
names = [_text(lib.mg_run_name(number)) for number in _numbers]  # names of kernels
for _number in _numbers[_ELEMENTWISE : 3 * _ELEMENTWISE]:
    names[_number] += "_vjp" if _number < 2 * _ELEMENTWISE else "_vjp_over"
kernels: Any = SimpleNamespace(**{name: number for number, name in enumerate(names)})


if speed is None:  # the parts of signatures; C has its own
    _takes, _results = zip(*[signature.split(":") for signature in signatures], strict=True)


def title_of(number: int) -> str:
    """The name of the public operation that errors of a kernel name."""
    return _text(lib.mg_run_title(number))


def vjp_of(number: int) -> int | None:
    """The number of an elementwise operation's derivative, or None if C has none."""
    return _ELEMENTWISE + number if lib.mg_elementwise_has_vjp(number) else None


# ---- arrays --------------------------------------------------------------------------------------


@final
class Array:
    """Handle of a C array, which is released with this object."""

    __slots__ = ("__weakref__", "dtype", "pointer")

    pointer: Any  # of mg_array *
    dtype: int  # code of the dtype

    def __init__(self) -> None:
        raise TypeError("arrays come from kernels")

    @property
    def shape(self) -> tuple[int, ...]:
        """The size of each dimension."""
        p = self.pointer
        return tuple(ffi.unpack(p.shape, p.ndim)) if p.ndim else ()

    @property
    def strides(self) -> tuple[int, ...]:
        """The stride of each dimension, in elements."""
        p = self.pointer
        return tuple(ffi.unpack(p.strides, p.ndim)) if p.ndim else ()

    size = property(lambda self: self.pointer.size, doc="The number of elements.")
    ndim = property(lambda self: self.pointer.ndim, doc="The number of dimensions.")
    weak = property(lambda self: self.pointer.weak, doc="1 for a Python number, else 0.")
    adapted = property(
        lambda self: self.pointer.adapted, doc="1 where an input was broadcast or cast, else 0."
    )
    data = property(
        lambda self: int(ffi.cast("intptr_t", self.pointer.data)),
        doc="The address of the first element.",
    )
    buffer = property(
        lambda self: lib.mg_buffer_id(self.pointer), doc="The address of the shared buffer."
    )
    version = property(
        lambda self: lib.mg_version(self.pointer), doc="The write clock at the last write."
    )
    pins = property(lambda self: lib.mg_pins(self.pointer), doc="How often the tape saved it.")
    writable = property(
        lambda self: bool(lib.mg_writable(self.pointer)), doc="Whether it may be written."
    )
    contiguous = property(
        lambda self: bool(lib.mg_contiguous_now(self.pointer)), doc="Whether it has no gaps."
    )
    sole = property(
        lambda self: bool(lib.mg_sole_owner(self.pointer)),
        doc="Whether nothing else sees its memory, which is contiguous and writable.",
    )
    overlapping = property(
        lambda self: bool(lib.mg_overlaps_itself(self.pointer)),
        doc="Whether two elements share a place.",
    )

    def alike(self, other: Array) -> bool:
        """True if the other array has the same shape and dtype."""
        return bool(lib.mg_alike(self.pointer, other.pointer))

    def item(self) -> float:
        """The first element as a Python number: a float, or an int for other dtypes."""
        p = self.pointer
        real = p.dtype >= lib.MG_FLOAT32 or p.dtype in (lib.MG_FLOAT16, lib.MG_BFLOAT16)
        return float(lib.mg_item_float(p)) if real else int(lib.mg_item_int(p))

    def mark_weak(self) -> None:
        """Mark this as a python scalar, which takes the dtype of the array it meets."""
        self.pointer.weak = 1

    def freeze(self) -> None:
        """Refuse all writes from now on."""
        lib.mg_seal(self.pointer)

    def share(self, count: int) -> None:
        """Count one more (1) or one fewer (-1) NumPy view that may write the memory."""
        lib.mg_share(self.pointer, count)


@final
class Saved:
    """Up to three arrays that the tape saved, unpinned and released with this object."""

    __slots__ = ("pointer",)

    pointer: Any  # of mg_saved *

    def __init__(self) -> None:
        raise TypeError("saved arrays come from save")

    def buffer(self, i: int) -> int:
        """The address of the i-th array's buffer, or 0 if there is no such array."""
        return int(lib.mg_saved_buffer(self.pointer, i))


_gc, _new, _release = ffi.gc, object.__new__, lib.mg_release


def _array(pointer: Any) -> Array:
    """The handle of a new C array. Every kernel call makes one, so no __init__ runs."""
    array = _new(Array)
    array.pointer = _gc(pointer, _release)
    array.dtype = pointer.dtype
    return array


# ---- calls ---------------------------------------------------------------------------------------

Tracer = Callable[[str, tuple[Any, ...], Any], None]
tracers: list[Tracer] = []  # open traces; all of them get the calls


def call(number: int, *args: Any) -> Any:
    """Run an operation by its number. A failure becomes a Python error.

    The result is an Array or a tuple of Arrays. It is None for a kernel that writes, and a number
    for a kernel that answers a question.

    Arguments are arrays, integers, floats, and tuples or lists of these, in the order of
    ``csrc/ops.def``. None stands for an array or list that is left out. Missing arrays at the end
    count as None. An array of a storage dtype is cast to a compute dtype, unless the kernel takes
    storage dtypes or writes.
    """
    try:
        arrays, ints, floats, saved, held = _request(number, args)
    except BatchedOperandError:
        return batched_call(number, args)[0]
    if len(arrays) + len(ints) + len(floats) > _FEW:
        ints, floats = _c_numbers(number, ints, floats)
    result = _results[number]
    made: Any = None
    try:
        if result == "1":
            pointer = lib.mg_call_one(number, len(arrays), arrays, ints, floats, saved)
            if not pointer:
                raise failure(number, args)
            made = _array(pointer)
        else:
            out = ffi.new("mg_arrays *")
            code = lib.mg_call(number, len(arrays), arrays, ints, floats, saved, out)
            if result == "?":
                made = bool(code)
            elif code:
                raise failure(number, args)
            elif result == "n":
                each = ffi.unpack(out.made, out.count)
                made = tuple([_array(one) if one else None for one in each])
    except OverflowError:
        raise _beyond_int64(number) from None
    del held
    if tracers:
        _tell(number, args, made)
    return made


def _tell(number: int, args: tuple[Any, ...], made: Any) -> None:
    for tracer in tuple(tracers):
        tracer(names[number], args, made)


def function_of(number: int) -> Callable[..., Any]:
    """:func:`call` of one operation, faster if all arguments are arrays."""
    takes, result = _takes[number], _results[number]
    general = partial(call, number)
    if takes.strip("am") or result not in "1?":
        return general
    run, count, one = lib.mg_call_one, len(takes), result == "1"

    def of_two(a: Array, b: Array) -> Array:
        if type(a) is type(b) is Array and a.dtype >= 0 and b.dtype >= 0 and not tracers:
            pointer = run(number, 2, (a.pointer, b.pointer), _NULL, _NULL, _NULL)
            if pointer:
                return _array(pointer)
        return general(a, b)

    def of_arrays(*arrays: Array) -> Any:
        try:
            pointers = [x.pointer for x in arrays if x.dtype >= 0]
        except (AttributeError, BatchedOperandError):
            return general(*arrays)
        if len(pointers) != count or tracers:
            return general(*arrays)
        if not one:
            return bool(lib.mg_call(number, count, pointers, _NULL, _NULL, _NULL, _NULL))
        pointer = run(number, count, pointers, _NULL, _NULL, _NULL)
        return _array(pointer) if pointer else general(*arrays)

    return of_two if takes == "aa" and one else of_arrays


def _request(number: int, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Convert the arguments of a call to the arguments of ``mg_call``.

    The result has the list of arrays, the lists of integers and floats, the saved arrays, and casts
    that must live until the call ends.
    """
    if not 0 <= number < len(_takes):
        raise ValueError(f"no operation has the number {number}")
    takes = _takes[number]
    arrays: list[Any] = []
    ints: list[int] = []
    floats: list[float] = []
    saved = _NULL
    held: list[Array] = []
    for kind, value in zip(takes, args):  # noqa: B905 - optional arrays at the end may be left out
        if type(value) is Array and (value.dtype >= 0 or kind == "s"):
            if kind not in "asm":
                raise _misfit(number, args)
            arrays.append(value.pointer)
        elif kind in "ip":
            ints.append(value)
        elif kind == "d":
            floats.append(value)
        elif kind == "k":
            if value is not None:
                saved = value.pointer
        elif kind in "ILD":
            ints.append(-1 if value is None else len(value))
            if value:
                (floats if kind == "D" else ints).extend(value)
        elif kind in "AS":
            ints.append(-1 if value is None else len(value))
            for x in value or ():
                arrays.append(_pointer(number, kind, x, held))
        else:
            arrays.append(_pointer(number, kind, value, held))
    if len(args) != len(takes):
        left = takes[len(args) :]
        if len(args) > len(takes) or left.strip("m"):
            raise _misfit(number, args)
        arrays += [_NULL] * len(left)
    return arrays, ints, floats, saved, held


# cffi takes memory for longer lists, and does not release it when a later argument is refused.
_FEW = 80


def _c_numbers(number: int, ints: list[int], floats: list[float]) -> tuple[Any, Any]:
    """The integers and floats of a call as C arrays."""
    try:
        return ffi.new("int64_t[]", ints), ffi.new("double[]", floats)
    except OverflowError:
        raise _beyond_int64(number) from None


def _misfit(number: int, args: tuple[Any, ...]) -> TypeError:
    takes = signatures[number]
    return TypeError(f"[{title_of(number)}] takes {takes}, not {len(args)} arguments")


def _beyond_int64(number: int) -> ValueError:
    return ValueError(f"[{title_of(number)}] a size or index is beyond int64")


def _pointer(number: int, kind: str, x: Any, held: list[Any]) -> Any:
    """The C pointer of an array: NULL for None, a cast for a storage dtype.

    ``held`` keeps the cast.
    """
    if x is None and kind in "mAS":
        return ffi.NULL
    if type(x) is not Array:
        error = BatchedOperandError if type(x) is BatchedArray else TypeError
        raise error(f"[{title_of(number)}] takes arrays, not {type(x)!r}")
    if x.dtype < 0 and kind not in "sS":
        if signatures[number][-1] == "s":
            raise TypeError(f"[{title_of(number)}] does not write storage dtypes")
        x = widened(x)
        held.append(x)
    return x.pointer


def step(number: int, *args: Any) -> partial[int]:
    """A step of :func:`run_steps` that calls a writing kernel."""
    try:
        arrays, ints, floats, saved, held = _request(number, args)
    except BatchedOperandError:
        batched_call(number, args)  # an error, unless the target is batched too
        return partial(int)
    c_ints, c_floats = _c_numbers(number, ints, floats)
    out = ffi.new("mg_arrays *")
    made: partial[int] = partial(
        lib.mg_call, number, len(arrays), arrays, c_ints, c_floats, saved, out
    )
    made.of = number, args, held  # type: ignore[attr-defined]
    return made


def run_steps(steps: list[partial[Any]]) -> None:
    """Run steps in order until a kernel fails. The failure becomes a Python error.

    No bytecode runs between the steps, except inside a step. An interrupt therefore comes before
    all steps or after all.
    """
    code = next(filter(None, map(_run_step, steps)), 0)
    for each in steps if code or tracers else ():
        if not hasattr(each, "of"):
            continue
        number, args, _ = each.of
        if code:
            raise failure(number, args)
        _tell(number, args, None)


_run_step = partial.__call__


def widened(array: Array) -> Array:
    """The array, cast to a compute dtype if it has a storage dtype."""
    kind = _WIDE.get(array.dtype)
    return array if kind is None else call(kernels.cast, array, kind)


_WIDE = dict.fromkeys((lib.MG_FLOAT16, lib.MG_BFLOAT16), lib.MG_FLOAT32) | dict.fromkeys(
    (lib.MG_UINT8, lib.MG_INT8, lib.MG_INT16, lib.MG_INT32), lib.MG_INT64
)


def check_result(failed: bool, number: int, args: tuple[Any, ...], made: Any) -> None:
    """After a call by the accelerator, raise its error, or tell the tracers if it succeeded."""
    if failed:
        raise failure(number, args)
    _tell(number, args, made)


@contextlib.contextmanager
def trace(tracer: Tracer) -> Iterator[None]:
    """Context manager: call ``tracer(name, args, result)`` for each kernel call of any thread."""
    tracers.append(tracer)
    try:
        yield
    finally:
        tracers.remove(tracer)


def save(a: Array | None, b: Array | None = None, c: Array | None = None) -> Saved:
    """Pin up to three arrays for a backward. They are unpinned when the result is dropped."""
    return _saved(
        lib.mg_save(
            _NULL if a is None else a.pointer,
            _NULL if b is None else b.pointer,
            _NULL if c is None else c.pointer,
        )
    )


def save_as_is(x: Array) -> Saved:
    """:func:`save` one array that no derivative computes with, in its own dtype."""
    return _saved(lib.mg_save_as_is(x.pointer))


def _saved(made: Any) -> Saved:
    if not made:
        raise failure(kernels.saved_array, ())
    saved = _new(Saved)
    saved.pointer = ffi.gc(made, lib.mg_unsave)
    return saved


def saved_handle(saved: Saved, i: int, title: str = "") -> Array:
    """The ``i``-th array that an operation saved.

    Raises RuntimeError if it was overwritten since.
    """
    try:
        return call(kernels.saved_array, saved, i)
    except RuntimeError as error:
        if not title:
            raise
        raise RuntimeError(str(error).replace("[backward]", f"[{title}]", 1)) from None


# ---- foreign memory ------------------------------------------------------------------------------

_owners: dict[int, object] = {}


def keep(array: Array, owner: object) -> None:
    """Keep the owner of borrowed memory alive until the last array on this memory is released."""
    key = id(owner)
    while key in _owners:
        key += 1
    _owners[key] = owner
    if lib.mg_set_owner(array.pointer, ffi.cast("void *", key), lib.mg_owner_released):
        del _owners[key]
        raise ValueError("keep: the memory has an owner")


@ffi.def_extern()  # type: ignore[untyped-decorator]
def mg_owner_released(key: Any) -> None:
    """Release an owner. C calls this on any thread, after the last array was released."""
    del _owners[int(ffi.cast("intptr_t", key))]


if speed is not None and not TYPE_CHECKING:

    def function_of(number):
        """:func:`call` of one operation."""
        return partial(speed.call, number)

    Array, Saved, call, save, save_as_is, keep = (
        getattr(speed, name) for name in ("Array", "Saved", "call", "save", "save_as_is", "keep")
    )

# ---- failures ------------------------------------------------------------------------------------

_DTYPE_NAMES = {
    lib.MG_UINT8: "uint8",
    lib.MG_INT8: "int8",
    lib.MG_INT16: "int16",
    lib.MG_INT32: "int32",
    lib.MG_FLOAT16: "float16",
    lib.MG_BFLOAT16: "bfloat16",
    lib.MG_BOOL: "bool",
    lib.MG_INT64: "int64",
    lib.MG_FLOAT32: "float32",
    lib.MG_FLOAT64: "float64",
}
# Where a saved array was last overwritten: buffer -> "file, line". Only writes into pinned buffers
# are noted.
overwritten_at: dict[int, str] = {}


def failure(number: int, args: tuple[Any, ...], title: str = "") -> Exception:
    """The Python error for the failure that a kernel just reported in this thread."""
    code = lib.mg_error()
    first, second = lib.mg_error_detail(0), lib.mg_error_detail(1)
    op = title or title_of(number)
    arrays = [a for a in args if type(a) is Array]
    shapes = [a.shape for a in arrays]
    dtypes = [_DTYPE_NAMES[a.dtype] for a in arrays]
    if code == lib.MG_ENOMEM:
        return MemoryError(f"[{op}] no memory for {first} bytes")
    if code == lib.MG_ESIZE:
        return ValueError(f"[{op}] the result is too large: its size in bytes overflows 63 bits")
    if code == lib.MG_ENDIM:
        return ValueError(f"[{op}] {first} dimensions where at most {second} are possible")
    if code == lib.MG_ESHAPE:
        return ValueError(f"[{op}] {_shape_rule(op, args, shapes, first, second)}")
    if code == lib.MG_EDTYPE:
        return TypeError(f"[{op}] not offered for {' and '.join(dtypes) or 'this dtype'}")
    if code == lib.MG_EAXIS:
        if second == -1:
            return ValueError(f"[{op}] dim {first} is given twice")
        return IndexError(
            f"[{op}] dim {first} is out of range for {second} dimensions"
            + (f": use {-second}..{second - 1}" if second else "")
        )
    if code == lib.MG_EINDEX and op == "cross_entropy":
        return IndexError(f"[{op}] {no_class(first, second)}")
    if code == lib.MG_EINDEX:
        return IndexError(f"[{op}] index {first} is out of range for size {second}")
    if code == lib.MG_EEMPTY:
        return ValueError(
            f"[{op}] no result for an empty dim {first} of shape {shapes[0]}: it has no identity"
        )
    if code == lib.MG_ESTALE:
        is_result = first == 2 or (first == 1 and signatures[number] == "ak:1")
        return stale_error(op, args, is_result)
    if code == lib.MG_EREADONLY:
        return ValueError(
            f"[{op}] the memory is read-only (it came from a read-only NumPy array); "
            "clone() it first"
        )
    if code == lib.MG_EOVERLAP:
        return ValueError(
            f"[{op}] cannot write: several elements share one place in memory "
            f"(an expanded or aliased tensor); clone() it first"
        )
    if code == lib.MG_EZERO:
        return ZeroDivisionError(f"[{op}] an integer divided by zero: convert to float first")
    if code == lib.MG_ESINGULAR:
        return _no_solution(op, shapes[0][:-2], first)
    if op == "matmul":
        return ValueError("[matmul] a 0-d operand has no inner dimension: use * for a number")
    if op == "bincount":
        return ValueError(f"[bincount] {first} in x: only non-negative integers are counted")
    if op == "repeat_interleave":
        return ValueError("[repeat_interleave] a number of repeats cannot be negative")
    if op == "pow":
        return ValueError("[pow] integers have no negative powers: convert to float first")
    return ValueError(f"[{op}] bad argument: {', '.join(map(str, shapes)) or first}")


def _shape_rule(
    op: str, args: tuple[Any, ...], shapes: list[tuple[int, ...]], first: int, second: int
) -> str:
    if op == "matmul":
        inner = shapes[0][-1], shapes[1][-2 if len(shapes[1]) > 1 else 0]
        if inner != (first, second):
            return (
                f"batch dimensions do not broadcast: {shapes[0]} @ {shapes[1]}, {first} != {second}"
            )
        return f"inner dimensions differ: {shapes[0]} @ {shapes[1]}, {first} != {second}"
    if op in ("reshape", "view"):
        if first == -1:
            wanted = tuple(args[1])
            return f"shape {shapes[0]} with these strides cannot be a view {wanted}; use reshape"
        return f"cannot turn shape {shapes[0]} ({first} elements) into {tuple(args[1])}"
    if op == "expand":
        wanted = tuple(args[1])
        return f"shape {shapes[0]} cannot expand to {wanted}: {first} is neither 1 nor {second}"
    if op == "sum_to_size":
        return f"shape {shapes[0]} is not what {tuple(args[1])} broadcasts to: {first} != {second}"
    if op == "copy_":
        return f"shapes {shapes[0]} and {shapes[1]} do not fit: {second} != {first}"
    if op in ("empty", "full"):
        return f"negative size {first} in dimension {second}"
    return f"shapes {' and '.join(map(str, shapes))} do not fit: {first} != {second}"


_TROUBLE = {
    "inv": "is singular; use pinv, or lstsq for a system",
    "solve": "is singular; use lstsq, or pinv(A) @ B",
    "solve_triangular": "has a 0 on its diagonal: it is singular",
    "cholesky": "is not positive definite",
}


def _no_solution(op: str, batch: tuple[int, ...], number: int) -> Exception:
    """NumPy's LinAlgError for one matrix of a stack."""
    place = tuple([int(i) for i in np.unravel_index(number, batch)])
    at = place[0] if len(place) == 1 else place
    which = f"matrix {at} of the batch" if place else "the matrix"
    return np.linalg.LinAlgError(f"[{op}] {which} {_TROUBLE[op]}")


def no_class(target: int, classes: int) -> str:
    """The reason why a target is not a valid class."""
    return f"target {target} is no class: there are {classes}, 0..{classes - 1}"


def stale_error(op: str, args: tuple[Any, ...], is_result: bool = False) -> RuntimeError:
    """Error: a saved array was overwritten between forward and backward."""
    where = ""
    for saved in args:
        if type(saved) is Saved:
            for i in range(3):
                place = overwritten_at.get(saved.buffer(i))
                where = f" at {place}" if place else where
    return RuntimeError(
        f"[{op}] a tensor saved for backward was overwritten in place{where}; "
        "write into a clone(), or run backward before the write"
        + (f"; it is the result of {op}: y = y + 1 in place of y += 1 will do" if is_result else "")
    )


if speed is not None:
    speed.connect(int(ffi.cast("uintptr_t", lib.mg_core_table())), check_result, tracers)
