"""NumPy's functions that rearrange and pick elements of tensors.

NumPy's own function is called on the positions of the elements. The elements are then gathered by
these positions. Shapes, broadcasting and errors are therefore NumPy's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minigrad import functions as f
from minigrad.functions import creation
from minigrad.functions.arguments import one_dim
from minigrad.functions.operands import strong_operand, tensor_operands
from minigrad.interop.numpy_functions.reading import (
    as_tensors,
    beside,
    refused,
    values_of,
)

__all__ = ["TABLE", "picked"]


def picked(tensors: Sequence[Any], rearrange: Callable[..., Any]) -> Any:
    """Rearrange the elements of tensors as ``rearrange``, a function of arrays, does."""
    start, positions = 0, []
    for x in tensors:
        positions.append(np.arange(start, start + x.size).reshape(x.shape))
        start += x.size
    places = np.asarray(rearrange(*positions))
    flat = f.ravel(tensors[0]) if len(tensors) == 1 else f.cat([f.ravel(x) for x in tensors], 0)
    return flat[creation.tensor(places.astype(np.int64))]


# ---- joining and cutting -------------------------------------------------------------------------


def _append(arr: Any, values: Any, axis: Any = None) -> Any:
    a, b = tensor_operands("numpy.append", arr, values)
    if axis is None:
        return f.cat([f.ravel(a), f.ravel(b)], 0)
    if a.ndim != b.ndim:
        raise ValueError(f"[numpy.append] a tensor of {b.ndim} dimensions is appended to {a.ndim}")
    return f.cat([a, b], one_dim("numpy.append", axis, a.ndim))


def _delete(arr: Any, obj: Any, axis: Any = None) -> Any:
    a = strong_operand("numpy.delete", arr)
    n = a.size if axis is None else a.shape[one_dim("numpy.delete", axis, a.ndim)]
    return _at(a, np.delete(np.arange(n), values_of(obj)), axis)


def _insert(arr: Any, obj: Any, values: Any, axis: Any = None) -> Any:
    a, v = tensor_operands("numpy.insert", arr, values)
    v = f.to(v, a.dtype)
    places = values_of(obj)
    return picked([a, v], lambda pa, pv: np.insert(pa, places, pv, axis))


_MODES = "constant", "edge", "reflect", "symmetric", "wrap"
# modes of NumPy without a counterpart
_NO_MODES = "empty", "linear_ramp", "maximum", "mean", "median", "minimum"


def _pad(array: Any, pad_width: Any, mode: Any = "constant", **options: Any) -> Any:
    a = strong_operand("numpy.pad", array)
    if mode not in (*_MODES, *_NO_MODES) and not callable(mode):
        raise ValueError(f"[numpy.pad] mode {mode!r} is not supported by NumPy")
    if mode in _NO_MODES or callable(mode):
        raise refused("pad", f"mode {mode!r} is not offered for tensors, but {', '.join(_MODES)}")
    if options.get("reflect_type", "even") != "even":
        raise refused("pad", "reflect_type='odd' is not offered for tensors")
    pairs = _widths(values_of(pad_width), a.ndim)
    if mode == "constant" and options.keys() <= {"constant_values"}:
        return _with_constants(a, pairs, options.get("constant_values", 0))
    for d, pair in enumerate(pairs):
        if any(pair) or options:  # NumPy refuses unknown options
            at: Any = np.pad(np.arange(a.shape[d]), pair, mode, **options)
            a = _at(a, at, d)
    return a if any(map(any, pairs)) else f.clone(a)


def _with_constants(a: Any, pairs: list[tuple[int, int]], values: Any) -> Any:
    """Pad with constants before and after each axis, one axis after another."""
    values = f.broadcast_to(f.to(beside("pad", a, values), a.dtype), (a.ndim, 2))
    a = a if any(map(any, pairs)) else f.clone(a)
    for d, pair in enumerate(pairs):
        if any(pair):
            shapes = [(*a.shape[:d], n, *a.shape[d + 1 :]) for n in pair]
            before, after = (f.expand(values[d, i], shapes[i]) for i in (0, 1))
            a = f.cat([before, a, after], d)
    return a


def _widths(widths: Any, ndim: int) -> list[tuple[int, int]]:
    """The numbers of elements to add before and after each axis, from any form that NumPy takes."""
    if isinstance(widths, dict):
        given: Any = np.zeros((ndim, 2), int)
        for axis, width in widths.items():
            given[axis] = width
    else:
        given = np.asarray(widths)
    if given.dtype.kind not in "iu":
        raise TypeError("[numpy.pad] pad_width must be of integers")
    if (given < 0).any():
        raise ValueError("[numpy.pad] pad_width cannot hold negative numbers")
    return [tuple(pair) for pair in np.broadcast_to(given, (ndim, 2)).tolist()]


def _block(arrays: Any) -> Any:
    found: list[Any] = []

    def noted(x: Any) -> Any:
        if isinstance(x, list):
            return [noted(y) for y in x]
        found.append(x)
        return len(found) - 1

    def filled(x: Any, positions: Sequence[Any]) -> Any:
        return [filled(y, positions) for y in x] if isinstance(x, list) else positions[x]

    shape = noted(arrays)
    operands = tensor_operands("numpy.block", *found)
    return picked(operands, lambda *positions: np.block(filled(shape, positions)))


# ---- choices -------------------------------------------------------------------------------------


def _choose(a: Any, choices: Any, mode: str = "raise") -> Any:
    index: Any = values_of(strong_operand("numpy.choose", a))
    options = tensor_operands("numpy.choose", *choices)
    return picked(options, lambda *positions: index.choose(positions, mode=mode))


def _select(condlist: Any, choicelist: Any, default: Any = 0) -> Any:
    masks = [np.asarray(values_of(mask)) for mask in condlist]
    options = tensor_operands("numpy.select", *choicelist, default)
    return picked(options, lambda *p: np.select(masks, list(p[:-1]), p[-1]))


def _extract(condition: Any, arr: Any) -> Any:
    mask = values_of(condition)
    return picked([strong_operand("numpy.extract", arr)], lambda p: np.extract(mask, p))


def _compress(condition: Any, a: Any, axis: Any = None) -> Any:
    mask = values_of(condition)
    return picked([strong_operand("numpy.compress", a)], lambda p: np.compress(mask, p, axis))


def _trim_zeros(filt: Any, trim: str = "fb") -> Any:
    a = strong_operand("numpy.trim_zeros", filt)
    if a.ndim != 1:
        raise refused(
            "trim_zeros", f"a tensor of {a.ndim} dimensions is not offered, only a vector"
        )
    there = np.flatnonzero(values_of(a))
    sides = trim.lower()
    if not there.size and sides:
        return a[:0]
    start = int(there[0]) if "f" in sides else 0
    stop = int(there[-1]) + 1 if "b" in sides else a.size
    return a[start:stop]


def _partition(a: Any, kth: Any, axis: Any = -1) -> Any:
    a = strong_operand("numpy.partition", a)
    if axis is None:
        a, axis = f.ravel(a), 0
    at = creation.tensor(np.argpartition(values_of(a), values_of(kth), axis))
    return f.take_along_dim(a, at, axis)


# ---- without repetition --------------------------------------------------------------------------


def _unique(
    ar: Any,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: Any = None,
    **options: Any,
) -> Any:
    a = strong_operand("numpy.unique", ar)
    unique: Any = np.unique
    _, at, *found = unique(values_of(a), True, return_inverse, return_counts, axis, **options)
    values = _at(a, at, axis)
    if return_index:
        found.insert(0, at)
    return (values, *[as_tensors(x) for x in found]) if found else values


def _at(a: Any, positions: Any, axis: Any = None) -> Any:
    """The entries of a at positions along an axis, or in the flattened a if the axis is None."""
    if axis is None:
        a, axis = f.ravel(a), 0
    return f.index_select(a, axis, creation.tensor(np.asarray(positions, np.int64)))


def _unique_of(name: str) -> Callable[..., Any]:
    """unique_all and similar functions, whose first result has the values."""

    def unique(x: Any, **options: Any) -> Any:
        x = strong_operand(f"numpy.{name}", x)
        all_of_them = np.unique_all(values_of(x))
        values = _at(x, all_of_them.indices)
        if name == "unique_values":
            return values
        made = getattr(np, name)(values_of(x))
        return type(made)(values, *[as_tensors(y) for y in made[1:]])

    return unique


def _union1d(ar1: Any, ar2: Any) -> Any:
    return _unique(_append(ar1, ar2))


def _setdiff1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Any:
    a = f.ravel(strong_operand("numpy.setdiff1d", ar1))
    if not assume_unique:
        a, ar2 = _unique(a), _unique(ar2)
    return a[creation.tensor(np.isin(values_of(a), values_of(ar2), assume_unique, invert=True))]


def _intersect1d(
    ar1: Any, ar2: Any, assume_unique: bool = False, return_indices: bool = False
) -> Any:
    a, b = tensor_operands("numpy.intersect1d", ar1, ar2)
    _, at, other = np.intersect1d(values_of(a), values_of(b), assume_unique, return_indices=True)
    values = _at(a, at)
    return (values, as_tensors(at), as_tensors(other)) if return_indices else values


TABLE: dict[str, Callable[..., Any]] = {
    "append": _append,
    "block": _block,
    "choose": _choose,
    "compress": _compress,
    "delete": _delete,
    "extract": _extract,
    "insert": _insert,
    "intersect1d": _intersect1d,
    "pad": _pad,
    "partition": _partition,
    "select": _select,
    "setdiff1d": _setdiff1d,
    "trim_zeros": _trim_zeros,
    "union1d": _union1d,
    "unique": _unique,
    "unique_all": _unique_of("unique_all"),
    "unique_counts": _unique_of("unique_counts"),
    "unique_inverse": _unique_of("unique_inverse"),
    "unique_values": _unique_of("unique_values"),
}
