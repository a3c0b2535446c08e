"""NumPy's functions that rearrange and pick elements of tensors.

NumPy says which element goes where: its own function is called on the positions of the elements,
and the elements are gathered from there. So shapes, broadcasting and errors are NumPy's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minigrad import creation
from minigrad import functions as f
from minigrad.arguments import one_dim, size_of, some_dims
from minigrad.dispatch import TensorBase, strong_operand, tensor_operands
from minigrad.inplace import overwrite
from minigrad.numpy_functions.reading import (
    as_line,
    as_tensors,
    beside,
    check_cast,
    refused,
    values_of,
)
from minigrad.shaping import in_order

__all__ = ["TABLE", "picked", "place"]


def picked(tensors: Sequence[Any], rearrange: Callable[..., Any]) -> Any:
    """The elements of tensors as ``rearrange``, a function of arrays, arranges their positions."""
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
    places = values_of(obj)
    return picked([strong_operand("numpy.delete", arr)], lambda p: np.delete(p, places, axis))


def _insert(arr: Any, obj: Any, values: Any, axis: Any = None) -> Any:
    a, v = tensor_operands("numpy.insert", arr, values)
    v = f.to(v, a.dtype)
    places = values_of(obj)
    return picked([a, v], lambda pa, pv: np.insert(pa, places, pv, axis))


_MODES = "constant", "edge", "reflect", "symmetric", "wrap"
_NO_MODES = "empty", "linear_ramp", "maximum", "mean", "median", "minimum"  # which NumPy has


def _pad(array: Any, pad_width: Any, mode: Any = "constant", **options: Any) -> Any:
    a = strong_operand("numpy.pad", array)
    if mode in _NO_MODES or callable(mode):
        raise refused("pad", f"mode {mode!r} is not offered for tensors, but {', '.join(_MODES)}")
    if options.get("reflect_type", "even") != "even":
        raise refused("pad", "reflect_type='odd' is not offered for tensors")
    widths = values_of(pad_width)
    if mode != "constant":
        return picked([a], lambda p: np.pad(p, widths, mode, **options))
    values = f.to(beside("pad", a, options.pop("constant_values", 0)), a.dtype)
    return picked([a, values], lambda p, v: np.pad(p, widths, mode, constant_values=v, **options))


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
    """A function of a list of tensors, or of the rows of one."""
    return lambda tup: ours(list(tup))


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
    """The entries of a at positions along an axis; of all elements in order where it is None."""
    if axis is None:
        a, axis = f.ravel(a), 0
    return f.index_select(a, axis, creation.tensor(np.asarray(positions, np.int64)))


def _unique_of(name: str) -> Callable[..., Any]:
    """unique_all and its kin, whose first result holds the values."""

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


# ---- orders of elements --------------------------------------------------------------------------


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
    """By all shifts in order where there is no axis; shifts and axes are broadcast."""
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
    # Plotting libraries broadcast None along, which only an array can hold.
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


# ---- writes --------------------------------------------------------------------------------------


def place(op: str, target: Any, values: Any, write: Callable[[Any, Any], Any]) -> None:
    """Write values into a tensor where ``write``, NumPy's function of two arrays, puts them.

    The write is on the tape. An array takes the values of tensors that need no gradient.
    """
    if not isinstance(target, TensorBase):
        if isinstance(values, TensorBase) and values._edge is not None:
            raise refused(op, "a tensor that requires grad cannot be written into an array")
        write(target, values_of(values))
        return
    new = f.ravel(f.to(beside(op, target, values), target.dtype))
    shape = np.shape(values_of(values))
    source = np.full(target.shape, -1)
    write(source, np.arange(new.size).reshape(shape))
    if (source >= 0).any():
        chosen = new[creation.tensor(np.maximum(source, 0))]
        mask = creation.tensor(source >= 0)
        overwrite(f"numpy.{op}", target, f.where(mask, chosen, f.clone(target)))  # type: ignore[arg-type]


def _copyto(dst: Any, src: Any, casting: str = "same_kind", where: Any = True) -> None:
    given = getattr(values_of(src), "dtype", None)
    if given is not None and isinstance(dst, TensorBase):
        check_cast("copyto", given, dst.dtype, casting)
    mask = values_of(where)
    place("copyto", dst, src, lambda a, v: np.copyto(a, v, where=mask))


def _put(a: Any, ind: Any, v: Any, mode: str = "raise") -> None:
    at = values_of(ind)
    place("put", a, v, lambda a, v: np.put(a, at, v, mode=mode))  # type: ignore[arg-type]


def _put_along_axis(arr: Any, indices: Any, values: Any, axis: Any = -1) -> None:
    at = values_of(indices)
    place("put_along_axis", arr, values, lambda a, v: np.put_along_axis(a, at, v, axis))


def _putmask(a: Any, mask: Any, values: Any) -> None:
    chosen = values_of(mask)
    place("putmask", a, values, lambda a, v: np.putmask(a, chosen, v))


def _place(arr: Any, mask: Any, vals: Any) -> None:
    chosen = values_of(mask)
    place("place", arr, vals, lambda a, v: np.place(a, chosen, v))


def _fill_diagonal(a: Any, val: Any, wrap: bool = False) -> None:
    place("fill_diagonal", a, val, lambda a, v: np.fill_diagonal(a, v, wrap))


TABLE: dict[str, Callable[..., Any]] = {
    "append": _append,
    "argsort": _argsort,
    "array_split": lambda ary, indices_or_sections, axis=0: f.tensor_split(
        ary, indices_or_sections, axis
    ),
    "block": _block,
    "broadcast_arrays": _broadcast_arrays,
    "choose": _choose,
    "column_stack": _rows(f.column_stack),
    "compress": _compress,
    "concatenate": _concatenate,
    "copyto": _copyto,
    "delete": _delete,
    "diag": lambda v, k=0: f.diag(v, k),
    "dstack": _rows(f.dstack),
    "expand_dims": _expand_dims,
    "extract": _extract,
    "fill_diagonal": _fill_diagonal,
    "hstack": _rows(f.hstack),
    "insert": _insert,
    "intersect1d": _intersect1d,
    "matrix_transpose": lambda x: x.mT,
    "meshgrid": _meshgrid,
    "nonzero": lambda a: f.nonzero(a, as_tuple=True),
    "pad": _pad,
    "partition": _partition,
    "place": _place,
    "put": _put,
    "put_along_axis": _put_along_axis,
    "putmask": _putmask,
    "ravel": lambda a, order="C": f.ravel(a, order),
    "repeat": lambda a, repeats, axis=None: f.repeat_interleave(as_line(a), repeats, axis),
    "reshape": _reshape,
    "resize": _resize,
    "roll": _roll,
    "rollaxis": _rollaxis,
    "select": _select,
    "setdiff1d": _setdiff1d,
    "sort": _sort,
    "split": _split,
    "take": _take,
    "take_along_axis": lambda arr, indices, axis=-1: f.take_along_dim(arr, indices, axis),
    "transpose": _transpose,
    "tril": lambda m, k=0: f.tril(m, k),
    "trim_zeros": _trim_zeros,
    "triu": lambda m, k=0: f.triu(m, k),
    "union1d": _union1d,
    "unique": _unique,
    "unique_all": _unique_of("unique_all"),
    "unique_counts": _unique_of("unique_counts"),
    "unique_inverse": _unique_of("unique_inverse"),
    "unique_values": _unique_of("unique_values"),
    "unstack": lambda x, axis=0: f.unbind(x, axis),
    "vstack": _rows(f.vstack),
    "where": _where,
}
