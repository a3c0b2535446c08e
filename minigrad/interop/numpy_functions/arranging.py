"""NumPy's functions that reshape, order and join tensors. Most equal minigrad's functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from minigrad import functions as f
from minigrad.functions import creation
from minigrad.functions.arguments import one_dim, size_of, some_dims
from minigrad.functions.operands import strong_operand, tensor_operands
from minigrad.functions.shaping import in_order
from minigrad.interop.numpy_functions.picking import picked
from minigrad.interop.numpy_functions.reading import (
    as_line,
    refused,
    values_of,
)

__all__ = ["TABLE"]


def _reshape(a: Any, shape: Any = None, order: str = "C", copy: Any = None, **named: Any) -> Any:
    a = strong_operand("numpy.reshape", a)
    size = size_of("numpy.reshape", (named.pop("newshape", shape),))
    if copy is False:
        raise refused("reshape", "copy=False is not offered: x.view() never copies")
    return in_order("numpy.reshape", f.clone(a) if copy else a, size, order)


def _resize(a: Any, new_shape: Any) -> Any:
    a = strong_operand("numpy.resize", a)
    if not a.size:
        return creation.zeros(*np.resize(0, new_shape).shape, dtype=a.dtype)
    return picked([a], lambda positions: np.resize(positions, new_shape))


def _roll(a: Any, shift: Any, axis: Any = None) -> Any:
    """NumPy's roll.

    Shifts and axes are broadcast. Without an axis all shifts are applied in order.
    """
    if axis is None:
        return f.roll(a, int(np.sum(np.asarray(shift))))
    shifts, axes = np.broadcast_arrays(np.asarray(shift, int), np.asarray(axis, int))
    if shifts.ndim > 1:
        raise ValueError("[numpy.roll] shift and axis are numbers or flat sequences of them")
    if not shifts.size:
        return f.clone(a)
    total: dict[int, int] = {}
    for n, d in zip(shifts.flat, axes.flat, strict=True):
        place = one_dim("numpy.roll", int(d), a.ndim)
        total[place] = total.get(place, 0) + int(n)
    return f.roll(a, tuple(total.values()), tuple(total))


def _rollaxis(a: Any, axis: int, start: int = 0) -> Any:
    axis = one_dim("numpy.rollaxis", axis, a.ndim)
    if not -a.ndim <= start <= a.ndim:
        raise IndexError(f"[numpy.rollaxis] start {start} is out of range for {a.ndim} dimensions")
    start = start + a.ndim if start < 0 else start
    return f.moveaxis(a, axis, start - 1 if axis < start else start)


def _transpose(a: Any, axes: Any = None) -> Any:
    if axes is None:
        return a.T
    return f.permute(a, *(axes if isinstance(axes, (tuple, list)) else (axes,)))


def _sort(a: Any, axis: Any = -1, **_kind: Any) -> Any:
    if axis is None:
        return f.sort(f.ravel(a), 0).values
    if not a.ndim:
        raise ValueError("[numpy.sort] a 0-d tensor has no axis to sort along: ravel() it")
    return f.sort(a, axis).values


def _argsort(a: Any, axis: Any = -1, **_kind: Any) -> Any:
    return f.argsort(f.ravel(a), 0) if axis is None else f.argsort(as_line(a), axis)


def _concatenate(arrays: Any, axis: Any = 0, dtype: Any = None) -> Any:
    arrays = list(arrays)
    if dtype is not None:
        arrays = [f.to(strong_operand("numpy.concatenate", a), dtype) for a in arrays]
    return f.cat([f.ravel(a) for a in arrays], 0) if axis is None else f.cat(arrays, axis)


def _broadcast_arrays(*args: Any) -> Any:
    if not any(x is None for x in args):
        return f.broadcast_tensors(*args)
    # Plotting libraries also broadcast None, which only a NumPy array can hold.
    return np.broadcast_arrays(*[np.asarray(x) for x in args])


def _expand_dims(a: Any, axis: Any) -> Any:
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    ndim = a.ndim + len(axes)
    for d in some_dims("numpy.expand_dims", tuple(axes), ndim):
        a = f.unsqueeze(a, d)
    return a


def _where(condition: Any, x: Any = None, y: Any = None) -> Any:
    if x is None and y is None:
        return f.nonzero(condition, as_tuple=True)
    return f.where(condition, x, y)


def _take(a: Any, indices: Any, axis: Any = None, mode: str = "raise") -> Any:
    n = a.size if axis is None else a.shape[one_dim("numpy.take", axis, a.ndim)]
    if mode != "raise":
        indices = np.take(np.arange(n), values_of(indices), mode=mode)  # type: ignore[call-overload]
        indices = creation.tensor(indices)
    if axis is None:
        return f.reshape(a, (-1,))[indices]
    return a[(slice(None),) * one_dim("numpy.take", axis, a.ndim) + (indices,)]


def _split(ary: Any, indices_or_sections: Any, axis: int = 0) -> Any:
    if isinstance(indices_or_sections, int) and ary.shape[axis] % indices_or_sections:
        raise ValueError("[numpy.split] the array does not divide into equal parts")
    return f.tensor_split(ary, indices_or_sections, axis)


def _meshgrid(*xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> Any:
    if indexing not in ("xy", "ij"):
        raise ValueError(f"[numpy.meshgrid] indexing is {indexing!r}, but must be 'xy' or 'ij'")
    lines = tensor_operands("numpy.meshgrid", *xi)
    axes = list(range(len(lines)))
    if indexing == "xy":
        axes[:2] = axes[:2][::-1]
    grids = [
        f.reshape(x, (1,) * d + (x.size,) + (1,) * (len(lines) - 1 - d))
        for x, d in zip(lines, axes, strict=True)
    ]
    if not sparse and grids:
        grids = list(f.broadcast_tensors(*grids))
    return tuple([f.clone(x) for x in grids] if copy else grids)


def _rows(ours: Callable[..., Any]) -> Callable[..., Any]:
    """A function of a list of tensors, or of the rows of one tensor."""
    return lambda tup: ours(list(tup))


TABLE: dict[str, Callable[..., Any]] = {
    "argsort": _argsort,
    "array_split": lambda ary, indices_or_sections, axis=0: f.tensor_split(
        ary, indices_or_sections, axis
    ),
    "broadcast_arrays": _broadcast_arrays,
    "column_stack": _rows(f.column_stack),
    "concatenate": _concatenate,
    "diag": lambda v, k=0: f.diag(v, k),
    "dstack": _rows(f.dstack),
    "expand_dims": _expand_dims,
    "hstack": _rows(f.hstack),
    "matrix_transpose": lambda x: x.mT,
    "meshgrid": _meshgrid,
    "nonzero": lambda a: f.nonzero(a, as_tuple=True),
    "ravel": lambda a, order="C": f.ravel(a, order),
    "repeat": lambda a, repeats, axis=None: f.repeat_interleave(as_line(a), repeats, axis),
    "reshape": _reshape,
    "resize": _resize,
    "roll": _roll,
    "rollaxis": _rollaxis,
    "sort": _sort,
    "split": _split,
    "take": _take,
    "take_along_axis": lambda arr, indices, axis=-1: f.take_along_dim(arr, indices, axis),
    "transpose": _transpose,
    "tril": lambda m, k=0: f.tril(m, k),
    "triu": lambda m, k=0: f.triu(m, k),
    "unstack": lambda x, axis=0: f.unbind(x, axis),
    "vstack": _rows(f.vstack),
    "where": _where,
}
