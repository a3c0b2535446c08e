"""The C half, and the only module that touches it.

Picks the instruction set at import, turns C failures into Python errors, and is the one door
through which Python calls kernels: :func:`call` for those that make an array, :func:`run` for those
that write into one. (Operations of ``csrc/operation.h`` call theirs in C, and settle failures
here.) A *handle* is what Python holds of a C array, which is released with it.
"""

from __future__ import annotations

import contextlib
import importlib
import itertools
import operator
import os
from collections.abc import Callable, Iterator
from typing import Any

from minigrad.runtime.lazy_numpy import np

__all__ = [
    "NULL",
    "Handle",
    "available_isas",
    "call",
    "ffi",
    "for_c",
    "isa",
    "lib",
    "node_class",
    "run",
    "save",
    "save_as_is",
    "saved_handle",
    "settle",
    "settle_run",
    "trace",
    "tracers",
]

Handle = Any  # csrc/handle.h; cffi has no static types

# ---- the instruction set -------------------------------------------------------------------------

try:
    _native = importlib.import_module("minigrad._native")
except ModuleNotFoundError as error:
    if error.name != "minigrad._native":  # but what it needs: cffi
        raise
    raise ImportError(
        "minigrad's C extension is missing: install the package with "
        "`python -m pip install .`, and do not run Python from its source folder"
    ) from None
ffi: Any = _native.ffi
lib: Any = _native.lib
NULL = ffi.NULL


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
    """A variable of our own that holds no such number is an error, not a guess; C reads them."""
    for variable, (allowed, what) in _NUMBERS.items():
        given = os.environ.get(variable, "")
        plain = given.isascii() and given.isdecimal()
        if given and not (plain and int(given) in allowed):
            raise ImportError(f"{variable}={given!r} is not a {what}")


_check_numbers()
# Those that are built in and that this machine can run, best last.
_offered = itertools.takewhile(bool, map(lib.mg_isa_offered, itertools.count()))
available_isas = tuple(ffi.string(name).decode() for name in _offered)
isa = _choose(available_isas)

node_class: Any = lib.mg_node_class()  # first of all that C keeps: a second import ends here
lib.mg_isa_use(available_isas.index(isa))

# ---- the door ------------------------------------------------------------------------------------

_save = lib.mg_save

Tracer = Callable[[Any, tuple[Any, ...], Any], None]
tracers: list[Tracer] = []  # those that watch, the last of which is told


def call(kernel: Any, *args: Any) -> Handle:
    """Call a kernel that makes an array, or a tuple of them; its failure becomes a Python error.

    This is also where operands of storage dtypes are widened, for a kernel that refused them.
    """
    try:
        made = kernel(*args)
    except OverflowError:
        raise ValueError(f"[{op_name(kernel, args)}] a size or index is beyond int64") from None
    except TypeError:
        again = widened(args)
        if again is args:
            raise
    else:
        if made is None or tracers:
            settle(made, kernel, args)
        return made
    return call(kernel, *again)


def widened(value: Any) -> Any:
    """A handle, or a list of them, in the dtypes that are computed in; anything else as it is."""
    if isinstance(value, (list, tuple)):
        found = [widened(one) for one in value]
        return value if all(map(operator.is_, found, value)) else found
    if type(value).__name__ == "Array" and value.dtype < lib.MG_BOOL:
        return call(lib.mg_cast, value, _wide[value.dtype])
    return value


_wide = dict.fromkeys((lib.MG_FLOAT16, lib.MG_BFLOAT16), lib.MG_FLOAT32) | dict.fromkeys(
    (lib.MG_UINT8, lib.MG_INT8, lib.MG_INT16, lib.MG_INT32), lib.MG_INT64
)


def settle(made: Handle | None, kernel: Any, args: tuple[Any, ...], op: str = "") -> None:
    """What is left to do after a call that failed, or that somebody watches."""
    if made is None:
        raise failure(kernel, args, op)
    tracers[-1](kernel, args, made)


def run(kernel: Any, *args: Any) -> None:
    """Call a kernel that writes into arrays it is given; its failure becomes a Python error."""
    code = kernel(*args)
    if code or tracers:
        settle_run(code, kernel, args)


def settle_run(code: int, kernel: Any, args: tuple[Any, ...]) -> None:
    """As settle, after a call that wrote into arrays it was given."""
    if code:
        raise failure(kernel, args)
    tracers[-1](kernel, args, None)


def for_c(op: str, kind: str, values: Any) -> Any:
    """Integers as C reads them; ValueError, in the name of ``op``, for those beyond int64."""
    try:
        return ffi.new(kind, values)
    except OverflowError:
        raise ValueError(f"[{op}] a size or index is beyond int64") from None


@contextlib.contextmanager
def trace(tracer: Tracer) -> Iterator[None]:
    """Show every call through the door to ``tracer(kernel, args, result)``, from all threads."""
    tracers.append(tracer)
    try:
        yield
    finally:
        tracers.pop()


def save(a: Handle, b: Handle = NULL, c: Handle = NULL) -> Any:
    """Pin up to three arrays for a backward; they are unpinned when the result is dropped."""
    made = _save(a, b, c)
    if made is None:
        raise failure(_save, ())
    return made


def save_as_is(x: Handle) -> Any:
    """The same of one array that no rule computes with: it keeps a storage dtype."""
    made = lib.mg_save_as_is(x)
    if made is None:
        raise failure(_save, ())
    return made


def saved_handle(saved: Any, i: int, op: str = "") -> Handle:
    """The ``i``-th array that ``op`` saved; RuntimeError if it was overwritten since."""
    made = lib.mg_saved_array(saved, i)
    if made is None or tracers:
        settle(made, lib.mg_saved_array, (saved, i), op)
    return made


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
_REDUCTIONS = {
    lib.MG_SUM: "sum",
    lib.MG_MEAN: "mean",
    lib.MG_PROD: "prod",
    lib.MG_MAX: "amax",
    lib.MG_MIN: "amin",
    lib.MG_ALL: "all",
    lib.MG_ANY: "any",
}
_PUBLIC_NAMES = {
    "mg_attention": "scaled_dot_product_attention",
    "mg_borrow": "tensor",
    "mg_drop": "dropout",
    "mg_keep": "dropout",
    "mg_norm_channels": "batch_norm",
    "mg_norm_rows": "layer_norm",
    "mg_save": "backward",
    "mg_triangle": "tril",
    "mg_save_as_is": "backward",
    "mg_view_alias": "detach",
    "mg_view_as": "view",
    "mg_view_spread": "sum",
    "mg_weak_bool": "tensor",
    "mg_weak_float": "tensor",
    "mg_weak_int": "tensor",
    "mg_box_argmax": "max_pool",
    "mg_box_max": "max_pool",
    "mg_box_spread": "avg_pool",
    "mg_box_sum": "avg_pool",
    "mg_cast": "to",
    "mg_check_writable": "copy_",
    "mg_conv_spread": "convolution",
    "mg_conv_sum": "convolution",
    "mg_conv_weight": "convolution",
    "mg_gather": "index",
    "mg_gather_last": "index",
    "mg_scatter_add": "index",
    "mg_scatter_write": "index assignment",
    "mg_write": "copy_",
    "mg_concatenate": "cat",
    "mg_view_reshape": "view",
    "mg_view_permute": "permute",
    "mg_view_expand": "expand",
    "mg_view_slice": "index",
    "mg_view_diagonal": "diagonal",
    "mg_triangle_indices": "tril_indices",
    "mg_spans": "pad",
    "mg_spans_added": "pad",
    "mg_repeat_positions": "repeat_interleave",
    "mg_saved_array": "backward",
    "mg_sum_to": "sum_to_size",
    "mg_sgd_step": "SGD",
    "mg_adam_step": "Adam",
    "mg_rmsprop_step": "RMSprop",
}

# Where a saved array was last overwritten: buffer -> "file, line". Written only for pinned buffers.
overwritten_at: dict[int, str] = {}


def op_name(kernel: Any, args: tuple[Any, ...]) -> str:
    """The public name of the operation behind a kernel call, forward or backward."""
    name: str = kernel.__name__.removesuffix("_vjp")
    if name in ("mg_unary", "mg_binary"):
        return str(ffi.string(lib.mg_op_name(args[0])).decode())
    if name == "mg_bilinear":
        return "linear" if args[0] == lib.MG_LINEAR else "matmul"
    if name == "mg_reduce":
        return _REDUCTIONS[args[0]]
    if name == "mg_var":
        return "std" if args[4] else "var"
    if name == "mg_arg_reduce":
        return "argmax" if args[0] == lib.MG_MAX else "argmin"
    return _PUBLIC_NAMES.get(name, name.removeprefix("mg_"))


def _arrays(args: tuple[Any, ...]) -> list[Handle]:
    return [a for a in args if type(a).__name__ == "Array"]  # of csrc/handle.h


def shape_of(handle: Handle) -> tuple[int, ...]:
    """The shape of a C array."""
    return handle.shape  # type: ignore[no-any-return]


def failure(kernel: Any, args: tuple[Any, ...], op: str = "") -> Exception:
    """The Python error for the failure a kernel has just reported in this thread."""
    code = lib.mg_error()
    first, second = lib.mg_error_detail(0), lib.mg_error_detail(1)
    op = op or op_name(kernel, args)
    arrays = _arrays(args)
    shapes = [shape_of(a) for a in arrays]
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
        is_result = first == 2 or (first == 1 and kernel is lib.mg_unary_vjp)
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
            wanted = tuple(args[2])
            return f"shape {shapes[0]} with these strides cannot be a view {wanted}; use reshape"
        return f"cannot turn shape {shapes[0]} ({first} elements) into {tuple(args[2])}"
    if op == "expand":
        wanted = tuple(args[2])
        return f"shape {shapes[0]} cannot expand to {wanted}: {first} is neither 1 nor {second}"
    if op == "sum_to_size":
        return f"shape {shapes[0]} is not what {tuple(args[2])} broadcasts to: {first} != {second}"
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
    """What is wrong with this matrix of a stack, in NumPy's class for it."""
    place = tuple([int(i) for i in np.unravel_index(number, batch)])
    at = place[0] if len(place) == 1 else place
    which = f"matrix {at} of the batch" if place else "the matrix"
    return np.linalg.LinAlgError(f"[{op}] {which} {_TROUBLE[op]}")


def no_class(target: int, classes: int) -> str:
    """Why a target is refused."""
    return f"target {target} is no class: there are {classes}, 0..{classes - 1}"


def stale_error(op: str, args: tuple[Any, ...], is_result: bool = False) -> RuntimeError:
    """A saved array was overwritten between forward and backward."""
    where = ""
    for saved in args:
        if type(saved).__name__ == "Saved":
            for i in range(3):
                place = overwritten_at.get(lib.mg_saved_buffer(saved, i))
                where = f" at {place}" if place else where
    return RuntimeError(
        f"[{op}] a tensor saved for backward was overwritten in place{where}; "
        "write into a clone(), or run backward before the write"
        + (f"; it is the result of {op}: y = y + 1 in place of y += 1 will do" if is_result else "")
    )
