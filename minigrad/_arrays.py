"""Calls of the core on arrays that no operation makes: the tape's own needs."""

from __future__ import annotations

from functools import partial
from typing import Any

from minigrad._c import NULL, Handle, call, lib, run, settle, settle_run, tracers

__all__ = [
    "adding",
    "alike",
    "allocate",
    "around",
    "buffer_of_saved",
    "cast",
    "contiguous",
    "copy",
    "empty",
    "freeze",
    "has_partials",
    "is_sole_owner",
    "is_writable",
    "overlaps_itself",
    "reshape",
    "run_and_settle",
    "run_steps",
    "scalar_one",
    "scalar_zero",
    "slice_of",
    "sum_to",
    "write",
    "zeros",
]

Shape = tuple[int, ...]

alike = lib.mg_alike  # (a, b): have they the same shape and dtype?
is_sole_owner = lib.mg_sole_owner  # can no other array, saved array or NumPy view see the memory?
overlaps_itself = lib.mg_overlaps_itself
freeze = lib.mg_seal  # the memory is never writable again
buffer_of_saved = lib.mg_saved_buffer  # (saved, place): 0 where nothing was saved
has_partials = lib.mg_op_has_vjp  # has a pointwise kernel of this number one for its gradient?


def is_writable(x: Handle) -> bool:
    """Whether a write into the array is allowed."""
    return not lib.mg_check_writable(x)


def adding(to: Handle, g: Handle) -> partial[int]:
    """The step that adds one array to another of the same shape and dtype where that lies."""
    return partial(lib.mg_accumulate, to, g)


def run_steps(steps: list[partial[Any]]) -> int:
    """Run C functions until one returns a code of failure; that, or 0.

    No bytecode runs in between, unless a step does: an interrupt comes before all or after all.
    """
    return next(filter(None, map(_run_step, steps)), 0)


_run_step = partial.__call__


def run_and_settle(steps: list[partial[Any]]) -> None:
    """The same, where a failure becomes an error and who watches is told."""
    code = run_steps(steps)
    for step in steps if code or tracers else ():
        if step.func is lib.mg_accumulate:
            settle_run(code, step.func, step.args)


def copy(x: Handle) -> Handle:
    """A contiguous copy."""
    return call(lib.mg_copy, x)


def cast(x: Handle, dtype: int) -> Handle:
    """The array in the dtype of this code."""
    return call(lib.mg_cast, x, dtype)


def sum_to(x: Handle, shape: Shape) -> Handle:
    """The sum over the axes along which ``shape`` would be broadcast."""
    return call(lib.mg_sum_to, x, len(shape), shape)


def reshape(x: Handle, shape: Shape) -> Handle:
    """The array in another shape: a view, or else a copy."""
    return call(lib.mg_reshape, x, len(shape), shape)


def slice_of(x: Handle, start: Shape, step: Shape, count: Shape) -> Handle:
    """A view of ``count`` elements of every axis, ``step`` apart."""
    return call(lib.mg_view_slice, x, start, step, count)


def around(a: Handle, b: Handle, axis: int, a_start: int, b_start: int, shape: Shape) -> Handle:
    """The array of this shape in whose memory two slices along an axis lie; None if it has none."""
    return lib.mg_view_around(a, b, axis, a_start, b_start, shape)


def write(to: Handle, values: Handle) -> None:
    """Write values over an array."""
    run(lib.mg_write, to, values)


def contiguous(x: Handle) -> Handle:
    """The array itself, if it is contiguous, or a copy."""
    return x if lib.mg_contiguous_now(x) else copy(x)


def allocate(op: str, dtype: int, shape: Shape) -> Handle:
    """An array whose values are anything; MemoryError in the name of ``op``."""
    made = lib.mg_empty(dtype, len(shape), shape)
    if made is None:
        settle(made, None, (), op)
    return made


def empty(dtype: int, shape: Shape) -> Handle:
    """An array of this shape, whose values are anything."""
    return call(lib.mg_empty, dtype, len(shape), shape)


def zeros(dtype: int, shape: Shape) -> Handle:
    """An array of zeros."""
    return call(lib.mg_full, dtype, len(shape), shape, 0.0, 0)


def scalar_one(dtype: int) -> Handle:
    """A 1 without dimensions."""
    return call(lib.mg_full, dtype, 0, NULL, 1.0, 1)


def scalar_zero() -> Handle:
    """A 0 that takes on the dtype of what it meets, as Python's own."""
    return call(lib.mg_weak_float, 0.0)
