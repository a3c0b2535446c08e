"""NumPy's averages with weights, quantiles, covariances and histograms of tensors."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from minigrad import functions as f
from minigrad.functions import creation
from minigrad.functions.arguments import integer, one_dim, some_dims
from minigrad.functions.operands import tensor_operands
from minigrad.functions.reductions import as_float
from minigrad.functions.statistics import correlations, covariance
from minigrad.interop.numpy_functions.calculus import linspace
from minigrad.interop.numpy_functions.reading import (
    as_tensors,
    beside,
    exactly,
    values_of,
)
from minigrad.runtime.dtypes import as_dtype, bool_, float64, int64
from minigrad.tape.tensor_base import TensorBase

__all__ = ["TABLE"]

# ---- averages and quantiles ----------------------------------------------------------------------


def _average(
    a: Any, axis: Any = None, weights: Any = None, returned: bool = False, keepdims: bool = False
) -> Any:
    a, w = tensor_operands("numpy.average", a, 1.0 if weights is None else weights)
    axes = some_dims("numpy.average", axis, a.ndim)
    if weights is None:
        result = f.mean(a, axis, keepdims=keepdims)
        count = float(np.prod([a.shape[d] for d in axes]))
        return (result, creation.full_like(result, count)) if returned else result
    w = as_float("numpy.average", _weights(w, a, axis))
    total = f.sum(w, axis, keepdims=keepdims)
    if bool((total == 0).any()):
        raise ZeroDivisionError("[numpy.average] the weights add up to 0, which divides nothing")
    result = f.sum(a * w, axis, keepdims=keepdims) / total
    return (result, f.broadcast_to(total, result.shape)) if returned else result


def _weights(w: Any, a: Any, axis: Any) -> Any:
    """Weights for the averaged axes, broadcast to all of a."""
    if w.shape == a.shape:
        return w
    if axis is None:
        raise TypeError("[numpy.average] weights of another shape than a's need an axis")
    given = axis if isinstance(axis, tuple) else (axis,)
    order = [one_dim("numpy.average", d, a.ndim) for d in given]
    if w.shape != tuple([a.shape[d] for d in order]):
        raise ValueError(
            f"[numpy.average] weights of shape {w.shape} do not fit axis {axis} of shape {a.shape}"
        )
    w = f.permute(w, *np.argsort(order).tolist())
    w = f.reshape(w, tuple([n if d in order else 1 for d, n in enumerate(a.shape)]))
    return f.broadcast_to(w, a.shape)


def _over_axes(
    function: Callable[..., Any], a: Any, axis: Any, keepdims: bool, before: int = 0
) -> Any:
    """Extend a function along one axis, or over all elements, to several axes."""
    if not isinstance(axis, (tuple, list)):
        return function(a, axis, keepdims)
    axes = some_dims("numpy.quantile", axis, a.ndim)
    others = [d for d in range(a.ndim) if d not in axes]
    shape = [a.shape[d] for d in others]
    line = f.reshape(f.permute(a, *others, *axes), (*shape, a.size // max(math.prod(shape), 1)))
    found = function(line, -1, False)
    if not keepdims:
        return found
    sizes = [1 if d in axes else n for d, n in enumerate(a.shape)]
    return f.reshape(found, (*found.shape[:before], *sizes))


def _quantile(op: str, share: float) -> Callable[..., Any]:
    """The functions quantile and percentile, also without NaN. ``share`` is the unit of q."""
    ours = f.nanquantile if op.startswith("nan") else f.quantile

    def quantile(
        a: Any, q: Any, axis: Any = None, method: str = "linear", keepdims: bool = False
    ) -> Any:
        if method not in ("linear", "lower", "higher", "midpoint", "nearest"):
            raise TypeError(
                f"[numpy.{op}] method {method!r} is not offered for tensors: use 'linear', "
                "'lower', 'higher', 'midpoint' or 'nearest'"
            )
        a = as_float(f"numpy.{op}", a)
        q = f.to(beside(op, a, q), a.dtype) / share
        return _over_axes(
            lambda x, d, keep: ours(x, q, d, keep, interpolation=method), a, axis, keepdims, q.ndim
        )

    return quantile


def _median(op: str) -> Callable[..., Any]:
    ours = getattr(f, op)
    several = getattr(f, op.replace("median", "quantile"))

    def median(a: Any, axis: Any = None, keepdims: bool = False) -> Any:
        if isinstance(axis, int):
            return ours(a, axis, keepdims=keepdims).values
        return _over_axes(lambda x, d, keep: several(x, 0.5, d, keep), a, axis, keepdims)

    return median


# ---- covariances ---------------------------------------------------------------------------------


def _cov(
    m: Any,
    y: Any = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: Any = None,
    fweights: Any = None,
    aweights: Any = None,
    dtype: Any = None,
) -> Any:
    less = (0 if bias else 1) if ddof is None else integer("numpy.cov", "ddof", ddof)
    x = _observations(m, rowvar, dtype)
    if y is not None:
        x = f.cat([x, _observations(y, rowvar, dtype)], 0)
    whole, weights = _repeats(fweights, x), _repeats(aweights, x, whole=False)
    return covariance(x, less, whole, weights)


def _repeats(weights: Any, x: Any, whole: bool = True) -> Any:
    """Check the weights or repeats of observations."""
    if weights is None:
        return None
    w = f.to(exactly(weights), x.dtype)
    kind = "fweights" if whole else "aweights"
    values = values_of(w)
    if whole and not np.array_equal(values, np.around(values)):
        raise TypeError("[numpy.cov] fweights must be integers")
    if w.ndim != 1:
        raise RuntimeError(f"[numpy.cov] {kind} of {w.ndim} dimensions: a vector is needed")
    if w.shape[0] != x.shape[1]:
        raise RuntimeError(f"[numpy.cov] {w.shape[0]} {kind} for {x.shape[1]} observations")
    if (values < 0).any():
        raise ValueError(f"[numpy.cov] {kind} cannot be negative")
    return w


def _observations(m: Any, rowvar: bool, dtype: Any) -> Any:
    """The variables as rows, as in NumPy in float64 unless another dtype is given."""
    m = exactly(m)
    if m.ndim > 2:
        raise ValueError(f"[numpy.cov] a tensor of {m.ndim} dimensions: at most 2 are possible")
    x = f.atleast_2d(f.to(m, as_dtype("float64" if dtype is None else dtype)))
    return x if rowvar or m.ndim < 2 else x.T


def _corrcoef(x: Any, y: Any = None, rowvar: bool = True, dtype: Any = None) -> Any:
    return correlations(_cov(x, y, rowvar, dtype=dtype))


# ---- counts --------------------------------------------------------------------------------------


def _bincount(x: Any, weights: Any = None, minlength: int = 0) -> Any:
    x = exactly(x)
    if x.dtype is bool_:
        x = f.to(x, int64)
    if weights is not None:
        weights = f.to(exactly(weights), float64)
    return f.bincount(x, weights, minlength)


def _histogram(
    a: Any,
    bins: Any = 10,
    range: Any = None,  # noqa: A002 - NumPy's name
    density: Any = None,
    weights: Any = None,
) -> Any:
    a = f.ravel(exactly(a))
    shown_bins, values = values_of(bins), values_of(a)
    w = None if weights is None else f.ravel(exactly(weights))
    counts, edges = np.histogram(values, shown_bins, values_of(range), weights=values_of(w))
    found = as_tensors(counts)
    if w is not None and w._edge is not None:
        found = f.bincount(*_in_bins(values, edges, w), minlength=len(edges) - 1)[: len(edges) - 1]
    made = _edges(a, bins, range, edges)
    if density:
        found = f.to(found, float64) if not found.dtype.is_floating_point else found
        found = found / f.diff(made) / f.sum(found)
    return found, made


def _in_bins(values: Any, edges: Any, w: Any) -> tuple[Any, Any]:
    """The bin of each element, with one more bin for elements outside, and the float weights."""
    number = np.searchsorted(edges, values, "right") - 1
    number[values == edges[-1]] = len(edges) - 2
    outside = (number < 0) | (number > len(edges) - 2)
    return creation.tensor(np.where(outside, len(edges) - 1, number)), as_float("bincount", w)


def _edges(a: Any, bins: Any, limits: Any, edges: Any) -> Any:
    """The edges of bins, differentiable by the limits, or by the extrema if there are no limits."""
    if isinstance(bins, TensorBase):
        return bins
    ends = (a,) if limits is None else limits
    if np.ndim(bins) or not any(isinstance(x, TensorBase) and x._edge is not None for x in ends):
        return as_tensors(edges)
    low, high = (f.amin(a), f.amax(a)) if limits is None else tensor_operands("histogram", *limits)
    if low.item() == high.item():
        low, high = low - 0.5, high + 0.5
    return f.to(linspace(low, high, len(edges)), edges.dtype.name)


def _histogram_bin_edges(a: Any, bins: Any = 10, range: Any = None, weights: Any = None) -> Any:  # noqa: A002
    return _histogram(a, bins, range)[1]


TABLE: dict[str, Callable[..., Any]] = {
    "average": _average,
    "corrcoef": _corrcoef,
    "cov": _cov,
    "median": _median("median"),
    "nanmedian": _median("nanmedian"),
    "nanpercentile": _quantile("nanpercentile", 100),
    "nanquantile": _quantile("nanquantile", 1),
    "percentile": _quantile("percentile", 100),
    "quantile": _quantile("quantile", 1),
    "bincount": _bincount,
    "histogram": _histogram,
    "histogram_bin_edges": _histogram_bin_edges,
}
