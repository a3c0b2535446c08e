"""NumPy's reductions and running sums on tensors, with ``initial=``, ``where=`` and ``dtype=``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from minigrad import functions as f
from minigrad.functions import creation
from minigrad.functions.arguments import one_dim, some_dims
from minigrad.functions.operands import strong_operand
from minigrad.functions.reductions import as_float
from minigrad.interop.numpy_functions.reading import as_line, beside, refused
from minigrad.runtime.dtypes import as_dtype, bool_

__all__ = ["ACCUMULATE", "REDUCE", "TABLE"]

_MISSING: Any = object()


def _masks(where: Any) -> bool:
    return where is not _MISSING and where is not True


def _mask(op: str, where: Any, a: Any) -> Any:
    """``where`` as a mask of a's shape."""
    mask = strong_operand(f"numpy.{op}", where)
    if mask.dtype is not bool_:
        raise TypeError(f"[numpy.{op}] where= is a mask of bools, not of {mask.dtype.name}")
    return f.broadcast_to(mask, a.shape)


def _chosen(op: str, a: Any, where: Any, neutral: Any) -> Any:
    """The elements where ``where`` is true. Others are replaced by the neutral element."""
    if not _masks(where):
        return a
    return f.where(_mask(op, where, a), a, creation.tensor(neutral, a.dtype))


def _typed(op: str, a: Any, dtype: Any) -> Any:
    a = strong_operand(f"numpy.{op}", a)
    return a if dtype is None else f.to(a, as_dtype(dtype))


# ---- sums, products and extrema ------------------------------------------------------------------


def _total(
    op: str, ours: Callable[..., Any], both: Callable[..., Any], neutral: int
) -> Callable[..., Any]:
    """A sum or a product. ``both`` combines the result with the initial value."""

    def total(
        a: Any,
        axis: Any = None,
        dtype: Any = None,
        keepdims: bool = False,
        initial: Any = _MISSING,
        where: Any = _MISSING,
    ) -> Any:
        a = _chosen(op, _typed(op, a, dtype), where, neutral)
        if axis == ():  # NumPy reduces no axis, but casts to the dtype of a sum
            result = f.clone(f.to(a, ours(f.reshape(a, (-1,))[:0]).dtype))
        else:
            result = ours(a, axis, keepdims=keepdims)
        return result if initial is _MISSING else both(result, initial)

    return total


def _extremum(op: str, ours: Callable[..., Any], both: Callable[..., Any]) -> Callable[..., Any]:
    """The maximum or minimum. ``both`` is the function of two values."""

    def extremum(
        a: Any,
        axis: Any = None,
        keepdims: bool = False,
        initial: Any = _MISSING,
        where: Any = _MISSING,
    ) -> Any:
        a = strong_operand(f"numpy.{op}", a)
        if initial is _MISSING:
            if _masks(where):
                raise ValueError(f"[numpy.{op}] where= needs an initial value: give initial=")
            return f.clone(a) if axis == () else ours(a, axis, keepdims=keepdims)
        first = f.to(beside(op, a, initial), a.dtype)
        if _masks(where):
            a = f.where(_mask(op, where, a), a, first)
        if axis == ():
            return both(a, first)
        if any(not a.shape[d] for d in some_dims(f"numpy.{op}", axis, a.ndim)):
            return f.sum(a, axis, keepdims=keepdims, dtype=a.dtype) + first  # 0 + the initial value
        return both(ours(a, axis, keepdims=keepdims), first)

    return extremum


def _truth(op: str, ours: Callable[..., Any], neutral: bool) -> Callable[..., Any]:
    """The functions all and any."""

    def truth(a: Any, axis: Any = None, keepdims: bool = False, where: Any = _MISSING) -> Any:
        true = f.ne(strong_operand(f"numpy.{op}", a), 0)
        true = _chosen(op, true, where, neutral)
        return true if axis == () else ours(true, axis, keepdims=keepdims)

    return truth


# ---- means and spreads ---------------------------------------------------------------------------


def _count(mask: Any, axis: Any, keepdims: bool, like: Any) -> Any:
    return f.sum(mask, axis, keepdims=keepdims, dtype=like.dtype)


def _mean(
    a: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False, where: Any = _MISSING
) -> Any:
    a = as_float("numpy.mean", a, dtype)
    result = _mean_of_floats(a, axis, keepdims, where)
    return result if dtype is None else f.to(result, as_dtype(dtype))


def _mean_of_floats(a: Any, axis: Any, keepdims: bool, where: Any) -> Any:
    if axis == ():
        axis, a, where, keepdims = -1, f.unsqueeze(a, -1), _unsqueezed(where), False
    if not _masks(where):
        return f.mean(a, axis, keepdims=keepdims)
    mask = _mask("mean", where, a)
    total = f.sum(_chosen("mean", a, mask, 0), axis, keepdims=keepdims)
    return total / _count(mask, axis, keepdims, a)


def _unsqueezed(where: Any) -> Any:
    return f.unsqueeze(strong_operand("numpy.mean", where), -1) if _masks(where) else where


def _deviations(op: str, a: Any, axis: Any, where: Any, mean: Any) -> tuple[Any, Any]:
    """The masked elements less their mean, 0 elsewhere, and the mask."""
    mask = _mask(op, True if not _masks(where) else where, a)
    if mean is _MISSING:
        mean = f.sum(_chosen(op, a, mask, 0), axis, keepdims=True)
        mean = mean / _count(mask, axis, True, a)
    return _chosen(op, a - mean, mask, 0), mask


def _spread(op: str, ours: Callable[..., Any]) -> Callable[..., Any]:
    """The functions var and std, which divide by n by default."""

    def spread(
        a: Any,
        axis: Any = None,
        dtype: Any = None,
        ddof: float = 0,
        keepdims: bool = False,
        where: Any = _MISSING,
        mean: Any = _MISSING,
        correction: Any = _MISSING,
    ) -> Any:
        a = as_float(f"numpy.{op}", a, dtype)
        less = ddof if correction is _MISSING or correction is None else correction
        if axis == ():
            axis, a, where = -1, f.unsqueeze(a, -1), _unsqueezed(where)
        if not _masks(where) and mean is _MISSING:
            return ours(a, axis, correction=less, keepdims=keepdims)
        apart, mask = _deviations(op, a, axis, where, mean)
        n = f.clamp(_count(mask, axis, keepdims, a) - less, min=0)
        if op == "var":
            return f.sum(f.square(apart), axis, keepdims=keepdims) / n
        return f.vector_norm(apart, 2, axis, keepdims) / f.sqrt(n)  # the gradient at 0 is 0

    return spread


# ---- without NaN ---------------------------------------------------------------------------------


def _there(a: Any) -> Any:
    """True where a is not NaN."""
    return f.logical_not(f.isnan(a))


def _nan_extremum(op: str, ours: Callable[..., Any], worst: float) -> Callable[..., Any]:
    """The functions nanmax and nanmin. NaN if there is no other value."""

    def extremum(
        a: Any,
        axis: Any = None,
        keepdims: bool = False,
        initial: Any = _MISSING,
        where: Any = _MISSING,
    ) -> Any:
        a = strong_operand(f"numpy.{op}", a)
        if initial is not _MISSING or _masks(where):
            raise refused(op, "initial= and where= are not offered for tensors")
        if not a.dtype.is_floating_point:
            return ours(a, axis, keepdims=keepdims)
        missing = f.isnan(a)
        result = ours(f.where(missing, worst, a), axis, keepdims=keepdims)
        return f.where(f.all(missing, axis, keepdims=keepdims), np.nan, result)

    return extremum


def _nan_arg(op: str, ours: Callable[..., Any], worst: float) -> Callable[..., Any]:
    """The functions nanargmax and nanargmin."""

    def arg(a: Any, axis: Any = None, keepdims: bool = False) -> Any:
        a = strong_operand(f"numpy.{op}", a)
        if a.dtype.is_floating_point:
            missing = f.isnan(a)
            if bool(f.any(f.all(missing, axis))):
                raise ValueError(f"[numpy.{op}] a line holds nothing but NaN")
            a = f.where(missing, worst, a)
        return ours(a, axis, keepdims=keepdims)

    return arg


def _skipping(op: str, theirs: Callable[..., Any], neutral: int) -> Callable[..., Any]:
    """A function in which the neutral element replaces NaN."""

    def function(a: Any, *args: Any, **options: Any) -> Any:
        a = strong_operand(f"numpy.{op}", a)
        if a.dtype.is_floating_point:
            a = f.where(f.isnan(a), creation.tensor(neutral, a.dtype), a)
        return theirs(a, *args, **options)

    return function


def _among(theirs: Callable[..., Any]) -> Callable[..., Any]:
    """A function with ``where=``, applied to the elements that are not NaN."""

    def function(a: Any, *args: Any, where: Any = _MISSING, **options: Any) -> Any:
        a = as_float("numpy.nanvar", a)
        there = _there(a)
        if _masks(where):
            there = f.logical_and(there, where)
        return theirs(a, *args, where=there, **options)

    return function


# ---- running sums --------------------------------------------------------------------------------


def _running(op: str, ours: Callable[..., Any]) -> Callable[..., Any]:
    """The functions cumsum and cumprod: over the flattened elements unless an axis is given."""

    def running(a: Any, axis: Any = None, dtype: Any = None) -> Any:
        a = as_line(strong_operand(f"numpy.{op}", a))
        if axis is None:
            return ours(f.ravel(a), 0, dtype=dtype)
        return ours(a, one_dim(f"numpy.{op}", axis, a.ndim), dtype=dtype)

    return running


def _cumulative(op: str, ours: Callable[..., Any], neutral: int) -> Callable[..., Any]:
    """The functions cumulative_sum and cumulative_prod of the array API standard."""

    def cumulative(
        x: Any, axis: Any = None, dtype: Any = None, include_initial: bool = False
    ) -> Any:
        x = as_line(strong_operand(f"numpy.{op}", x))
        if axis is None and x.ndim != 1:
            raise ValueError(f"[numpy.{op}] a tensor of {x.ndim} dimensions needs an axis")
        d = one_dim(f"numpy.{op}", 0 if axis is None else axis, x.ndim)
        result = ours(x, d, dtype=dtype)
        if include_initial:
            first = (*x.shape[:d], 1, *x.shape[d + 1 :])
            result = f.cat([creation.full(first, neutral, dtype=result.dtype), result], d)
        return result

    return cumulative


_sum, _prod = _total("sum", f.sum, f.add, 0), _total("prod", f.prod, f.mul, 1)
_max, _min = _extremum("max", f.amax, f.maximum), _extremum("min", f.amin, f.minimum)
_var, _std = _spread("var", f.var), _spread("std", f.std)
_cumsum, _cumprod = _running("cumsum", f.cumsum), _running("cumprod", f.cumprod)

TABLE: dict[str, Callable[..., Any]] = {
    "sum": _sum,
    "prod": _prod,
    "max": _max,
    "min": _min,
    "amax": _max,
    "amin": _min,
    "all": _truth("all", f.all, True),
    "any": _truth("any", f.any, False),
    "mean": _mean,
    "var": _var,
    "std": _std,
    "ptp": lambda a, axis=None, keepdims=False: (
        _max(a, axis, keepdims=keepdims) - _min(a, axis, keepdims=keepdims)
    ),
    "nansum": _skipping("nansum", _sum, 0),
    "nanprod": _skipping("nanprod", _prod, 1),
    "nancumsum": _skipping("nancumsum", _cumsum, 0),
    "nancumprod": _skipping("nancumprod", _cumprod, 1),
    "nanmax": _nan_extremum("nanmax", f.amax, -np.inf),
    "nanmin": _nan_extremum("nanmin", f.amin, np.inf),
    "nanargmax": _nan_arg("nanargmax", f.argmax, -np.inf),
    "nanargmin": _nan_arg("nanargmin", f.argmin, np.inf),
    "nanmean": _among(_mean),
    "nanvar": _among(_var),
    "nanstd": _among(_std),
    "cumsum": _cumsum,
    "cumprod": _cumprod,
    "cumulative_sum": _cumulative("cumulative_sum", f.cumsum, 0),
    "cumulative_prod": _cumulative("cumulative_prod", f.cumprod, 1),
}

# Implementations of ufunc.reduce and ufunc.accumulate, by the name of the ufunc.
REDUCE: dict[str, Callable[..., Any]] = {
    "add": _sum,
    "multiply": _prod,
    "maximum": _max,
    "minimum": _min,
    "logical_and": TABLE["all"],
    "logical_or": TABLE["any"],
    "logaddexp": lambda a, axis, keepdims=False: f.logsumexp(a, axis, keepdims=keepdims),
}
ACCUMULATE: dict[str, Callable[..., Any]] = {
    "add": _cumsum,
    "multiply": _cumprod,
    "maximum": lambda a, axis: f.cummax(a, axis).values,
    "minimum": lambda a, axis: f.cummin(a, axis).values,
    "logaddexp": lambda a, axis: f.logcumsumexp(a, axis),
}
