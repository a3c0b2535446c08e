"""NumPy's functions of mathematics on tensors: products, differences, interpolation, histograms."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from minigrad import creation, special
from minigrad import functions as f
from minigrad.arguments import common_shape, one_dim
from minigrad.dispatch import TensorBase, strong_operand, tensor_operands
from minigrad.dtypes import as_dtype, bool_, float64, int64
from minigrad.numpy_functions.reading import (
    as_line,
    as_tensors,
    beside,
    check_cast,
    exactly,
    values_of,
)
from minigrad.reductions import as_float

__all__ = ["TABLE", "divmod", "gcd", "lcm", "matvec", "modf", "vecmat"]

# ---- products ------------------------------------------------------------------------------------


def _dot(a: Any, b: Any) -> Any:
    a, b = tensor_operands("numpy.dot", a, b)
    if not a.ndim or not b.ndim:
        return a * b
    return f.matmul(a, b) if b.ndim <= 2 else f.tensordot(a, b, ([-1], [-2]))


def _vdot(a: Any, b: Any) -> Any:
    x, y = [f.ravel(t) for t in tensor_operands("numpy.vdot", a, b)]
    if x.size != y.size:
        raise ValueError(f"[numpy.vdot] {x.size} and {y.size} elements: both need the same number")
    return f.matmul(x, y)


def matvec(a: Any, b: Any) -> Any:
    """Matrices times vectors, which both may be batches."""
    a, b = tensor_operands("numpy.matvec", a, b)
    return f.squeeze(f.matmul(a, f.unsqueeze(b, -1)), -1)


def vecmat(a: Any, b: Any) -> Any:
    """Vectors times matrices, which both may be batches."""
    a, b = tensor_operands("numpy.vecmat", a, b)
    return f.squeeze(f.matmul(f.unsqueeze(a, -2), b), -2)


def _cross(
    a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: Any = None
) -> Any:
    if axis is not None:
        axisa = axisb = axisc = axis
    x, y = tensor_operands("numpy.cross", a, b)
    x, y = f.moveaxis(x, axisa, -1), f.moveaxis(y, axisb, -1)
    if x.shape[-1] != 3 or y.shape[-1] != 3:
        raise ValueError(
            f"[numpy.cross] vectors of {x.shape[-1]} and {y.shape[-1]} elements: both need 3"
        )
    shape = common_shape("numpy.cross", x, y)
    (x0, x1, x2), (y0, y1, y2) = (f.unbind(f.broadcast_to(t, shape), -1) for t in (x, y))
    result = f.stack([x1 * y2 - x2 * y1, x2 * y0 - x0 * y2, x0 * y1 - x1 * y0], -1)
    return f.moveaxis(result, -1, axisc) if result.ndim > 1 else result


# ---- sliding products ----------------------------------------------------------------------------


def _correlate(a: Any, v: Any, mode: str = "valid") -> Any:
    return _slid("correlate", a, v, mode, flipped=False)


def _convolve(a: Any, v: Any, mode: str = "full") -> Any:
    return _slid("convolve", a, v, mode, flipped=True)


_MODES = "valid", "same", "full"


def _slid(op: str, a: Any, v: Any, mode: Any, flipped: bool) -> Any:
    """The products of the windows of a line with a shorter one, which ``flipped`` turns round."""
    x, y = map(as_line, tensor_operands(f"numpy.{op}", a, v))
    if x.ndim > 1 or y.ndim > 1:
        raise ValueError(f"[numpy.{op}] shapes {x.shape} and {y.shape} are not both vectors")
    if not x.size or not y.size:
        raise ValueError(f"[numpy.{op}] a vector has no elements")
    if isinstance(mode, int) and 0 <= mode < 3:
        mode = _MODES[mode]
    if mode not in _MODES:
        raise ValueError(f"[numpy.{op}] mode is {mode!r}, but must be one of {', '.join(_MODES)}")
    swapped = x.size < y.size
    if swapped:
        x, y = y, x
    found = _windows(x, f.flip(y, 0) if flipped else y, mode)
    return f.flip(found, 0) if swapped and not flipped else found


def _windows(x: Any, y: Any, mode: str) -> Any:
    m = y.size
    left = {"valid": 0, "same": m // 2, "full": m - 1}[mode]
    right = {"valid": 0, "same": m - m // 2 - 1, "full": m - 1}[mode]
    padded = f.pad(x, (left, right))
    if x.dtype.is_floating_point or y.dtype.is_floating_point:
        from minigrad.nn.functional import conv1d

        dtype = max(x.dtype, y.dtype, key=lambda d: d.code)
        lines = [f.reshape(f.to(t, dtype), (1, 1, -1)) for t in (padded, y)]
        return f.reshape(conv1d(lines[0], lines[1]), (-1,))
    return f.to(f.sum(f.unfold(padded, 0, m, 1) * y, 1), (x[:1] * y[:1]).dtype)


# ---- differences, integrals and interpolation ----------------------------------------------------


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
    found = [_slopes(y, d, step, edge_order) for d, step in zip(axes, steps, strict=True)]
    if len(found) == 1:
        return found[0]
    return found if np.lib.NumpyVersion(np.__version__) < "2.0.0" else tuple(found)


def _slopes(y: Any, d: int, step: Any, order: int) -> Any:
    """Differences of second order along an axis, and at its ends of this order.

    Fornberg, Generation of Finite Difference Formulas on Arbitrarily Spaced Grids (1988).
    """
    n = y.shape[d]
    if n < order + 1:
        raise ValueError(f"[numpy.gradient] {n} elements along axis {d}: {order + 1} are needed")
    if step.ndim > 1 or (step.ndim and step.size != n):
        raise ValueError(f"[numpy.gradient] coordinates of shape {step.shape} for {n} elements")
    y = f.moveaxis(y, d, -1)
    h = step if step.dtype.is_floating_point else f.to(step, y.dtype)
    h = f.diff(h) if h.ndim else f.expand(h, (n - 1,))
    if _even(h, step):
        inner = (y[..., 2:] - y[..., :-2]) / (2 * h[0])
    else:
        a, b = h[:-1], h[1:]
        inner = (
            -b / (a * (a + b)) * y[..., :-2]
            + (b - a) / (a * b) * y[..., 1:-1]
            + a / (b * (a + b)) * y[..., 2:]
        )
    first = _end_slope(y, h, order)
    last = -_end_slope(f.flip(y, -1), f.flip(h, 0), order)
    return f.moveaxis(f.cat([first, inner, last], -1), -1, d)


def _even(h: Any, step: Any) -> bool:
    """Whether points stand at one distance; those that move each by itself never do."""
    return not step.ndim or (step._edge is None and bool((h == h[0]).all()))


def _end_slope(y: Any, h: Any, order: int) -> Any:
    """The derivative at the first of a line of points."""
    if order == 1:
        return (y[..., 1:2] - y[..., :1]) / h[0]
    a, b = h[0], h[1]
    return (
        -(2 * a + b) / (a * (a + b)) * y[..., :1]
        + (a + b) / (a * b) * y[..., 1:2]
        - a / (b * (a + b)) * y[..., 2:3]
    )


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
        # Between two equal coordinates nothing is asked for.
        slope = (fp[at + 1] - fp[at]) / f.where(f.eq(run, 0), 1.0, run)
        result = slope * (x - xp[at]) + fp[at]
    else:
        result = f.expand(fp[0], x.shape)
    result = f.where(f.lt(x, xp[0]), fp[0] if left is None else left, result)
    result = f.where(f.eq(x, xp[-1]), fp[-1], result)
    result = f.where(f.gt(x, xp[-1]), fp[-1] if right is None else right, result)
    return f.where(f.isnan(x), x, result) if last else result  # as NumPy has it


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


def _linspace(
    start: Any,
    stop: Any,
    num: Any = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: Any = None,
    axis: int = 0,
    device: Any = None,
) -> Any:
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


# ---- parts of numbers ----------------------------------------------------------------------------


def modf(x: Any) -> tuple[Any, Any]:
    """The fractional and the whole part, both of the number's sign."""
    x = as_float("numpy.modf", x)
    whole = f.trunc(x)
    apart = f.where(f.isinf(x), 0.0, x - whole)
    # The sign of a part that is 0 is that of x, and the part else as it is.
    return f.where(
        f.eq(apart, 0), f.copysign(creation.zeros_like(apart), x.detach()) + apart, apart
    ), whole


def divmod(a: Any, b: Any) -> tuple[Any, Any]:  # noqa: A001 - NumPy's name
    """The whole quotient, rounded down, and the remainder."""
    return f.floor_divide(a, b), f.remainder(a, b)


def _fix(x: Any) -> Any:
    return f.trunc(strong_operand("numpy.fix", x))


def _angle(z: Any, deg: bool = False) -> Any:
    z = as_float("numpy.angle", z)
    turned = f.atan2(creation.zeros_like(z), z)
    return f.rad2deg(turned) if deg else turned


def _all_of(value: bool) -> Callable[..., Any]:
    return lambda x: creation.full_like(x, value, dtype="bool")


def _infinite(value: float) -> Callable[..., Any]:
    return lambda x: f.eq(strong_operand("numpy.isposinf", x), value)


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
    bins = values_of(bins) if not isinstance(bins, TensorBase) or bins._edge is None else bins
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
    """The bin of each element, those outside in one more, and the weights in float."""
    number = np.searchsorted(edges, values, "right") - 1
    number[values == edges[-1]] = len(edges) - 2
    outside = (number < 0) | (number > len(edges) - 2)
    return creation.tensor(np.where(outside, len(edges) - 1, number)), as_float("bincount", w)


def _edges(a: Any, bins: Any, limits: Any, edges: Any) -> Any:
    """The edges of bins, which move with the extrema where those are the limits."""
    if isinstance(bins, TensorBase):
        return bins
    if limits is not None or np.ndim(bins) or a._edge is None:
        return as_tensors(edges)
    low, high = f.amin(a), f.amax(a)
    if low.item() == high.item():
        low, high = low - 0.5, high + 0.5
    return f.to(_linspace(low, high, len(edges)), edges.dtype.name)


def _histogram_bin_edges(a: Any, bins: Any = 10, range: Any = None, weights: Any = None) -> Any:  # noqa: A002
    return _histogram(a, bins, range)[1]


# ---- functions of functions ----------------------------------------------------------------------


def _apply_along_axis(func1d: Any, axis: int, arr: Any, *args: Any, **options: Any) -> Any:
    a = strong_operand("numpy.apply_along_axis", arr)
    d = one_dim("numpy.apply_along_axis", axis, a.ndim)
    outer = a.shape[:d] + a.shape[d + 1 :]
    if 0 in outer:
        raise ValueError("[numpy.apply_along_axis] there is no line to apply the function to")
    lines = f.reshape(f.moveaxis(a, d, -1), (math.prod(outer), a.shape[d]))
    found = [beside("apply_along_axis", a, func1d(line, *args, **options)) for line in lines]
    made = f.stack(found, 0)
    made = f.reshape(made, outer + made.shape[1:])
    inner = range(len(outer), made.ndim)
    return f.moveaxis(made, tuple(inner), tuple([d + i for i in range(len(inner))]))


def _apply_over_axes(func: Any, a: Any, axes: Any) -> Any:
    value = strong_operand("numpy.apply_over_axes", a)
    ndim = value.ndim
    for axis in axes if isinstance(axes, (tuple, list)) else (axes,):
        d = one_dim("numpy.apply_over_axes", axis, ndim)
        found = func(value, d)
        value = found if found.ndim == ndim else f.unsqueeze(found, d)
        if value.ndim != ndim:
            raise ValueError("[numpy.apply_over_axes] the function takes away more than an axis")
    return value


def _piecewise(x: Any, condlist: Any, funclist: Any, *args: Any, **options: Any) -> Any:
    x = strong_operand("numpy.piecewise", x)
    given = values_of(condlist)
    one = np.isscalar(given) or (np.ndim(given[0]) == 0 and x.ndim)
    masks = [np.asarray(mask, bool) for mask in ([given] if one else given)]
    if len(funclist) == len(masks) + 1:
        masks.append(~np.any(masks, axis=0))
    elif len(funclist) != len(masks):
        raise ValueError(
            f"[numpy.piecewise] {len(funclist)} functions for {len(masks)} conditions: one each, "
            "or one more"
        )
    y = creation.zeros_like(x)
    for mask, func in zip(masks, funclist, strict=True):
        if mask.any():
            chosen = creation.tensor(mask)
            y[chosen] = func(x[chosen], *args, **options) if callable(func) else func
    return y


# ---- no gradient comes of these ------------------------------------------------------------------

_BY_NUMPY = """
argpartition array2string array_equiv array_repr array_str can_cast common_type digitize
diag_indices_from flatnonzero histogram2d histogramdd isin ix_ lexsort min_scalar_type packbits
ravel_multi_index result_type shares_memory may_share_memory tril_indices_from triu_indices_from
unpackbits unravel_index
"""


def _by_numpy(theirs: Callable[..., Any]) -> Callable[..., Any]:
    """NumPy's function on the values, for counts, indices, masks and texts."""

    def function(*args: Any, **options: Any) -> Any:
        named = {name: values_of(x) for name, x in options.items()}
        return as_tensors(theirs(*values_of(args), **named))

    return function


gcd, lcm = _by_numpy(np.gcd), _by_numpy(np.lcm)

TABLE: dict[str, Callable[..., Any]] = {
    name: _by_numpy(getattr(np, name)) for name in _BY_NUMPY.split() if hasattr(np, name)
}
TABLE |= {
    "angle": _angle,
    "apply_along_axis": _apply_along_axis,
    "apply_over_axes": _apply_over_axes,
    "bincount": _bincount,
    "convolve": _convolve,
    "correlate": _correlate,
    "cross": _cross,
    "dot": _dot,
    "ediff1d": _ediff1d,
    "fix": _fix,
    "gradient": _gradient,
    "histogram": _histogram,
    "histogram_bin_edges": _histogram_bin_edges,
    "i0": special.i0,
    "imag": lambda val: creation.zeros_like(val),
    "interp": _interp,
    "iscomplex": _all_of(False),
    "iscomplexobj": lambda x: False,
    "isneginf": _infinite(-np.inf),
    "isposinf": _infinite(np.inf),
    "isreal": _all_of(True),
    "isrealobj": lambda x: True,
    "linspace": _linspace,
    "outer": lambda a, b: f.outer(f.ravel(a), f.ravel(b)),
    "piecewise": _piecewise,
    "polyval": _polyval,
    "real": lambda val: val,
    "real_if_close": lambda a, tol=100: a,
    "tensordot": lambda a, b, axes=2: f.tensordot(a, b, axes),
    "trapezoid": _trapezoid,
    "trapz": _trapezoid,
    "vdot": _vdot,
}
