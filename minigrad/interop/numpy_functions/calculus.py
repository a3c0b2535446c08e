"""NumPy's differences, integrals, interpolation and polynomials on tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from minigrad import functions as f
from minigrad.functions import creation
from minigrad.functions.arguments import one_dim
from minigrad.functions.calculus import slopes
from minigrad.functions.operands import strong_operand, tensor_operands
from minigrad.functions.reductions import as_float
from minigrad.interop.numpy_functions.reading import (
    beside,
    check_cast,
    exactly,
)
from minigrad.runtime.dtypes import as_dtype, float64

__all__ = ["TABLE", "linspace"]


def _trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    y = tensor_operands("numpy.trapezoid", y, 1.0 if x is None else x)[0]
    y = as_float("numpy.trapezoid", y)
    d = one_dim("numpy.trapezoid", axis, y.ndim)
    if x is None:
        width = dx
    else:
        x = beside("trapezoid", y, x)
        width = f.diff(x, 1, 0 if x.ndim == 1 else axis)
        if x.ndim == 1:
            width = f.reshape(width, (-1,) + (1,) * (y.ndim - 1 - d))
    n = y.shape[d]
    upper, lower = f.narrow(y, d, min(n, 1), max(n - 1, 0)), f.narrow(y, d, 0, max(n - 1, 0))
    return f.sum(width * (upper + lower) / 2.0, d)


def _ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Any:
    a = f.ravel(strong_operand("numpy.ediff1d", ary))

    def end(x: Any) -> Any:
        if x is None:
            return a[:0]
        given = f.ravel(beside("ediff1d", a, x))
        check_cast("ediff1d", given.dtype, a.dtype)
        return f.to(given, a.dtype)

    return f.cat([end(to_begin), f.diff(a) if a.size else a, end(to_end)], 0)


def _gradient(y: Any, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Any:
    y = as_float("numpy.gradient", y)
    axes = tuple(range(y.ndim))
    if axis is not None:
        given = axis if isinstance(axis, (tuple, list)) else (axis,)
        axes = tuple([one_dim("numpy.gradient", d, y.ndim) for d in given])
    if edge_order not in (1, 2):
        raise ValueError(f"[numpy.gradient] edge_order is {edge_order}, but must be 1 or 2")
    steps = [beside("gradient", y, s) for s in varargs] or [creation.tensor(1.0, y.dtype)]
    if len(steps) == 1 and not steps[0].ndim:
        steps = steps * len(axes)
    if len(steps) != len(axes):
        raise TypeError(f"[numpy.gradient] {len(steps)} distances for {len(axes)} axes")
    found = [
        slopes("numpy.gradient", y, d, step, edge_order)
        for d, step in zip(axes, steps, strict=True)
    ]
    if len(found) == 1:
        return found[0]
    return found if np.lib.NumpyVersion(np.__version__) < "2.0.0" else tuple(found)


def _interp(
    x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None
) -> Any:
    x, xp, fp = [f.to(exactly(t), float64) for t in (x, xp, fp)]
    if xp.ndim != 1 or xp.shape != fp.shape or not xp.size:
        raise ValueError(
            f"[numpy.interp] xp of shape {xp.shape} and fp of {fp.shape}: two vectors of one size "
            "are needed"
        )
    if period is not None:
        if period == 0:
            raise ValueError("[numpy.interp] period is 0, but must be another number")
        period, left, right = abs(period), None, None
        x, xp = x % period, xp % period
        order = f.argsort(xp, 0)
        xp, fp = xp[order], fp[order]
        xp = f.cat([xp[-1:] - period, xp, xp[:1] + period], 0)
        fp = f.cat([fp[-1:], fp, fp[:1]], 0)
    last = xp.size - 1
    at = f.clamp(f.searchsorted(xp.detach(), x.detach(), right=True) - 1, 0, max(last - 1, 0))
    if last:
        run = xp[at + 1] - xp[at]
        # No point lies between two equal coordinates.
        slope = (fp[at + 1] - fp[at]) / f.where(f.eq(run, 0), 1.0, run)
        result = slope * (x - xp[at]) + fp[at]
        # For infinite values the line from the right, or the value itself, may still be finite.
        result = f.where(f.isnan(result), slope * (x - xp[at + 1]) + fp[at + 1], result)
        given = f.logical_or(f.eq(x, xp[at]), f.eq(fp[at], fp[at + 1]))
        result = f.where(f.logical_and(f.isnan(result), given), fp[at], result)
    else:
        result = f.expand(fp[0], x.shape)
    result = f.where(f.lt(x, xp[0]), fp[0] if left is None else left, result)
    result = f.where(f.eq(x, xp[-1]), fp[-1], result)
    result = f.where(f.gt(x, xp[-1]), fp[-1] if right is None else right, result)
    return f.where(f.isnan(x), x, result) if last else result  # as in NumPy


def _polyval(p: Any, x: Any) -> Any:
    if isinstance(p, np.poly1d):
        p = p.coeffs
    p, x = tensor_operands("numpy.polyval", p, x)
    if not p.ndim:
        raise TypeError("[numpy.polyval] a number is no row of coefficients: give [p]")
    y = creation.zeros_like(x)
    for k in range(p.shape[0]):  # Horner's scheme
        y = y * x + p[k]
    return y


def linspace(
    start: Any,
    stop: Any,
    num: Any = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: Any = None,
    axis: int = 0,
    device: Any = None,
) -> Any:
    """Equidistant points from start to stop. Both may be tensors, and get gradients."""
    a, b = [as_float("numpy.linspace", x) for x in tensor_operands("numpy.linspace", start, stop)]
    if num < 0:
        raise ValueError(f"[numpy.linspace] {num} samples: the number cannot be negative")
    parts = num - 1 if endpoint else num
    step = (b - a) / parts if parts > 0 else (b - a) * float("nan")
    shares = creation.arange(num, dtype=as_float("numpy.linspace", a).dtype)
    shares = f.reshape(shares, (num,) + (1,) * step.ndim)
    y = a + shares * (b - a) / max(parts, 1)
    if endpoint and num > 1:
        y = f.cat([y[:-1], f.unsqueeze(f.broadcast_to(f.to(b, y.dtype), y.shape[1:]), 0)], 0)
    if dtype is not None:
        y = f.to(f.floor(y) if not as_dtype(dtype).is_floating_point else y, as_dtype(dtype))
    y = f.moveaxis(y, 0, axis)
    return (y, step) if retstep else y


TABLE: dict[str, Callable[..., Any]] = {
    "ediff1d": _ediff1d,
    "gradient": _gradient,
    "interp": _interp,
    "linspace": linspace,
    "polyval": _polyval,
    "trapezoid": _trapezoid,
    "trapz": _trapezoid,
}
