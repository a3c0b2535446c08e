"""Dispatch of operations on batched tensors: by the rule of a row, or in a loop over the slices.

A row of the op table runs once, on the physical tensors, if it has a batching rule. The graph of
gradients is that of the physical tensors. A row without a rule runs once for each slice, on the
tape too, and a kernel that a function calls by itself likewise.
"""

from __future__ import annotations

import sys
import warnings
from typing import Any

from minigrad import functions as f
from minigrad._tensor.indexing import index_in_python
from minigrad.func import batched_tensor as b
from minigrad.func.batched_functions import function
from minigrad.func.batched_gradients import gradients, pulled_rows, pushed, pushed_columns
from minigrad.func.batching_rules import Call, rule_of
from minigrad.functions.shaping import split_in_python
from minigrad.ops.table import Row
from minigrad.runtime.batched import BatchedArray, BatchedOperandError, arrays_in
from minigrad.runtime.dtypes import DType
from minigrad.runtime.native import Array, call, kernels, names, signatures, title_of
from minigrad.tape.apply import apply, operation
from minigrad.tape.tensor_base import TensorBase, wrap

__all__ = [
    "basic_index",
    "check_writable",
    "cut",
    "every_slice",
    "function",
    "gradients",
    "kernel",
    "level_of",
    "like",
    "lists",
    "looped",
    "no_parent",
    "no_value",
    "pulled_rows",
    "pushed",
    "pushed_columns",
    "recurrent_steps",
    "row",
    "split",
    "wrapped",
    "write",
    "write_error",
]

check_writable, cut, every_slice = b.check_all_writable, b.cut, b.every_slice
level_of, like, no_value = b.level_of, b.like, b.no_value
write, write_error = b.write, b.write_error

# Kernels whose result's shape depends on values.
_DATA_DEPENDENT = {"nonzero", "distinct", "repeat_positions", "bincount"}
_said: set[str] = set()


def warn_of_loop(name: str, level: b.Level) -> None:
    """Say once that an operation runs once for each slice."""
    if name not in _said and not level.quiet:
        _said.add(name)
        text = f"[vmap] {name} has no batching rule: it runs once for each slice"
        warnings.warn(text, UserWarning, stacklevel=_depth_of_program())


def _depth_of_program() -> int:
    """How many calls away the nearest line outside of this package is."""
    frame: Any = sys._getframe(1)
    depth = 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("minigrad"):
        frame, depth = frame.f_back, depth + 1
    return depth


# ---- rows ----------------------------------------------------------------------------------------


def row(row: Row, inputs: Any, args: Any) -> Any:
    """A row of the op table on tensors some of which, or of the arguments, are batched."""
    if not all(isinstance(x, TensorBase) for x in inputs):
        return NotImplemented
    if args is None:
        args = (tuple(range(inputs[0].ndim)), False)
    level = b.level_of((inputs, args))
    assert level is not None
    rule = rule_of(row)
    one = Call(row, level, inputs, args)
    physical = None
    if rule is not None and not (one.batched_args and not rule.takes_arrays):
        physical = rule.run(one)
    if physical is NotImplemented:
        return NotImplemented
    if physical is not None:
        return b.made(level, physical)
    return _looped(row, level, inputs, args)


def _run(row: Row, inputs: Any, args: Any) -> Any:
    return operation(row)(*inputs) if row.alone else apply(row, tuple(inputs), args)


def _looped(row: Row, level: b.Level, inputs: Any, args: Any) -> Any:
    _check_loops(row, args)
    warn_of_loop(row.name, level)
    results = []
    for place in range(level.size):
        some = [x._physical.select(0, place) if b.is_batched(x, level) else x for x in inputs]
        made = _run(row, some, _cut(args, level, place, True))
        if made is NotImplemented:
            return NotImplemented
        results.append(made)
    return b.made(level, _stack(row.name, results))


_PLAIN = (bool, int, float, str, type(None), DType, Array, BatchedArray)


def _check_loops(row: Row, args: Any) -> None:
    """Refuse arguments that a row fills or keeps: each slice would fill the same."""
    for x in args:
        if isinstance(x, (list, tuple)):
            _check_loops(row, x)
        elif not isinstance(x, _PLAIN):
            raise BatchedOperandError(
                f'[{row.name}] has no batching rule: call vmap with fallback="loop"'
            )


def looped(name: str, function: Any, *args: Any) -> Any:
    """A function called once for each slice: for those with nodes of their own."""
    level = b.level_of(args)
    assert level is not None
    warn_of_loop(name, level)
    results = [function(*_cut_tree(args, level, place)) for place in range(level.size)]
    return _stacked_trees(name, level, results)


def recurrent_steps(name: str, run: Any, inputs: Any, cells: int) -> Any:
    """All steps of a recurrent layer: slices that share the weights are sequences of one batch.

    The layout of the state and of the result is that of :mod:`minigrad.ops.recurrent`.
    """
    projected, state, weight, *beside = inputs
    level = b.level_of(inputs)
    assert level is not None
    if any(b.is_batched(x, level) for x in (weight, *beside)):
        return looped(name, run, *inputs)
    steps, batch, wide = projected.shape
    many, out = level.size * batch, weight.shape[-1]
    rows = f.movedim(b.of_all_slices(projected, level), 0, 1)
    h, c = f.tensor_split(b.of_all_slices(state, level), (batch * out,), 1)
    first = f.cat([f.flatten(h), f.flatten(c)])
    made = run(f.reshape(rows, (steps, many, wide)), first, weight, *beside)
    parts = []
    for count, part in ((steps, made[: steps * many * out]), (cells, made[steps * many * out :])):
        width = part.shape[0] // max(count * many, 1)
        each = f.movedim(f.reshape(part, (count, level.size, batch, width)), 1, 0)
        parts.append(f.flatten(each, 1))
    return b.made(level, f.cat(parts, 1))


def _cut_tree(x: Any, level: b.Level, place: int) -> Any:
    if isinstance(x, (list, tuple)) and not hasattr(x, "_fields"):
        return type(x)([_cut_tree(one, level, place) for one in x])
    if type(x) is dict:
        return {key: _cut_tree(one, level, place) for key, one in x.items()}
    if b.is_batched(x, level):
        return x._physical.select(0, place)
    return x


def _stacked_trees(name: str, level: b.Level, results: list[Any]) -> Any:
    first = results[0]
    if isinstance(first, (list, tuple)):
        each = [_stacked_trees(name, level, list(one)) for one in zip(*results, strict=True)]
        return type(first)(*each) if hasattr(first, "_fields") else type(first)(each)
    if isinstance(first, TensorBase):
        return b.made(level, _stack(name, results))
    if any(x is not first and x != first for x in results):
        raise depends(name)
    return first


def _stack(name: str, results: list[Any]) -> Any:
    shapes = {x.shape for x in results}
    if len(shapes) > 1:
        raise depends(name)
    return f.stack(results)


def depends(name: str) -> RuntimeError:
    """The error of an operation whose result's shape depends on values."""
    return RuntimeError(
        f"[{name}] in vmap the shape of the result would depend on each slice's values: choose "
        'with where() in place of a mask, or call vmap with fallback="loop"'
    )


def _cut(args: Any, level: b.Level, place: int, copies: bool = False) -> Any:
    """The arguments of one slice."""
    if type(args) is BatchedArray and args.level is level:
        return slice_of_array(args.held, place)
    if type(args) is Array and copies:  # a row may fill it
        return call(kernels.copy, args)
    if isinstance(args, (list, tuple)) and (copies or arrays_in(args)):
        parts = [_cut(x, level, place, copies) for x in args]
        return type(args)(*parts) if hasattr(args, "_fields") else type(args)(parts)
    return args


def slice_of_array(held: Any, place: int) -> Any:
    """One slice of an array, as a view."""
    shape, n = held.shape, len(held.shape)
    start, step = (place, *(0,) * (n - 1)), (1,) * n
    return call(kernels.view_slice_reshape, held, start, step, (1, *shape[1:]), shape[1:])


# ---- kernels -------------------------------------------------------------------------------------


# Kernels of functions that read their result: these run once for each slice themselves.
_OF_OTHERS = {"median"}
# Questions whose answer is no for each slice if it is no for all.
_RARE = {"roots_extreme", "squares_lost", "norm_lost"}


def _same(size: int, x: BatchedArray, *more: Any) -> Any:
    return x.held, *more


def _sized(size: int, x: BatchedArray, to: Any) -> Any:
    return x.held, (size, *to)


def _spread(size: int, x: BatchedArray, to: Any) -> Any:
    lined = call(kernels.view_reshape, x.held, (size, *(1,) * (len(to) - x.ndim), *x.shape))
    return lined, (size, *to)


def _sliced(size: int, x: BatchedArray, start: Any, step: Any, count: Any, *to: Any) -> Any:
    return x.held, (0, *start), (1, *step), (size, *count), *[(size, *one) for one in to]


def _permuted(size: int, x: BatchedArray, axes: Any) -> Any:
    return x.held, (0, *[axis % x.ndim + 1 for axis in axes])


# Kernels with one array, by what their arguments are for all slices.
_SHIFTED = {
    "copy": _same,
    "cast": _same,
    "view_alias": _same,
    "view_as": _same,
    "view_diagonal": _same,
    "check_writable": _same,
    "index_within": _same,
    "reshape": _sized,
    "view_reshape": _sized,
    "view_expand": _spread,
    "view_slice": _sliced,
    "view_slice_reshape": _sliced,
    "view_permute": _permuted,
}
_CALLS = ("minigrad.runtime.native", "minigrad.runtime.batched", __name__)


def _in_a_row() -> bool:
    """Whether the row of an operation makes this call: then that row is batched."""
    frame: Any = sys._getframe(1)
    while frame.f_globals.get("__name__") in _CALLS:
        frame = frame.f_back
    caller = frame.f_globals.get("__name__", "")
    return caller == "minigrad.tape.apply" or caller.startswith("minigrad.ops.")


def kernel(number: int, args: Any) -> Any:
    """A kernel on arrays some of which are batched."""
    name, title = names[number], title_of(number)
    if _in_a_row() or name in _OF_OTHERS:
        raise BatchedOperandError(f"[{title}] does not take a batched tensor")
    level = b.level_of(args)
    assert level is not None
    writes = signatures[number].endswith(":s")
    if name in _DATA_DEPENDENT:
        raise depends(title)
    if name in _RARE and not call(number, args[0].held, *args[1:]):
        return False
    if writes and not (type(args[0]) is BatchedArray and args[0].level is level):
        value = next(x for x in arrays_in(args) if x.level is level)
        raise b.write_error(title, args[0].shape, value.shape)
    shifted = _SHIFTED.get(name)
    if shifted is not None and not arrays_in(args[1:]):
        made = call(number, *shifted(level.size, *args))
        return None if made is None else BatchedArray(level, made)
    if name.startswith("view_"):
        raise BatchedOperandError(f'[{title}] has no batching rule: call vmap with fallback="loop"')
    warn_of_loop(title, level)
    results = [call(number, *_cut(args, level, place)) for place in range(level.size)]
    return _together(title, level, results)


def _together(title: str, level: b.Level, results: list[Any]) -> Any:
    first = results[0]
    if first is None:
        return None
    if isinstance(first, bool):
        if any(x != first for x in results):
            raise BatchedOperandError(
                f'[{title}] the slices need different ways: use fallback="loop"'
            )
        return first
    if isinstance(first, tuple):
        return tuple([_together(title, level, list(one)) for one in zip(*results, strict=True)])
    if len({x.shape for x in results}) > 1:
        raise depends(title)
    return BatchedArray(level, call(kernels.stack, results, 0))


def wrapped(handle: BatchedArray, edge: Any) -> Any:
    """A batched array as a tensor."""
    return b.made(handle.level, wrap(handle.held, edge))


def no_parent() -> BatchedOperandError:
    """The error of code that would put a node of its own behind a batched tensor."""
    return BatchedOperandError(
        "[vmap] this puts a node of its own on the tape, which vmap cannot cut into slices: call "
        'vmap with fallback="loop"'
    )


def lists() -> BatchedOperandError:
    """The error of a list of a batched tensor's values."""
    return BatchedOperandError(str(b.no_value("tolist")))


# ---- views ---------------------------------------------------------------------------------------


def basic_index(x: Any, index: Any) -> Any:
    """The view that a basic index makes, of a slice."""
    return index_in_python(x, index)


def split(run: Any, x: Any, axis: int, bounds: Any, drop: bool) -> Any:
    """Pieces of a slice along an axis."""
    return split_in_python(run, x, axis, bounds, drop)
