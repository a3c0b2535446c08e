"""Scans along an axis, and sorting."""

from __future__ import annotations

from typing import Any

from minigrad.ops.composed import product
from minigrad.ops.pointwise import SCALE, SUB
from minigrad.ops.shape import EMBED
from minigrad.ops.table import Row, custom, linear, zero
from minigrad.runtime.dtypes import float32, float64
from minigrad.runtime.native import Array, call, kernels

T = Any  # a Tensor; this layer stands below it

CUMSUM = linear(
    "cumsum",
    lambda x, axis: call(kernels.cumsum, x, axis, False),
    lambda g, axis: g.flip(axis).cumsum(axis).flip(axis),
    fused=lambda g, axis: call(kernels.cumsum, g, axis, True),
    doc="the sums of the elements up to each, which is included",
)


def recurred_back(steps: T, g: T, axis: int) -> T:
    """r[i] = g[i] + steps[i] * r[i + 1] from the last element back; one step less than elements."""
    if not g.size:
        return g
    factors = g.narrow(axis, 0, 1).detach().cat_with(steps.flip(axis), axis)  # the first: not used
    return factors.apply_row(RECURRENCE, axis, beside=(g.flip(axis),)).flip(axis)


def _by_factor(g: T, a: T, y: T, axis: int) -> T:
    """y[i] = b[i] + a[i] * y[i - 1]: what y[i] weighs in all that follows, times y[i - 1]."""
    if not g.size:
        return g
    n = g.shape[axis]
    weight = recurred_back(a.narrow(axis, 1, n - 1), g, axis)
    partial = product(weight.narrow(axis, 1, n - 1), y.narrow(axis, 0, n - 1))
    second = tuple([int(d == axis) for d in range(len(g.shape))])
    return partial.apply_row(EMBED, g.shape, second, (1,) * len(g.shape), partial.shape)


RECURRENCE: Row = custom(
    "recurrence",
    kernels.recurrence,
    _by_factor,
    lambda g, a, axis: recurred_back(_tail(a, axis), g, axis),
    doc="y[i] = b[i] + a[i] * y[i - 1], and y[0] = b[0]",
)


def _tail(x: T, axis: int) -> T:
    n = x.shape[axis]
    return x.narrow(axis, 1, n - 1) if n else x


def cumprod_vjp(g: T, x: T, y: T, axis: int) -> T:
    """The product of all before x[i] times r[i] = g[i] + x[i + 1] * r[i + 1]; nothing is divided.

    Blelloch, "Prefix sums and their applications", 1990, section 1.4, for the recurrence.
    """
    if not g.size:
        return g
    n = g.shape[axis]
    r = recurred_back(x.narrow(axis, 1, n - 1), g, axis)
    after = r.narrow(axis, 1, n - 1).scale(y.narrow(axis, 0, n - 1))
    return r.narrow(axis, 0, 1).cat_with(after, axis)


SHIFTED: Row = linear(
    "shifted",
    kernels.scale_by_exponents,
    lambda g, powers: g.apply_row(SHIFTED, powers),
    doc="the input times powers of two that are given",
)


def last_cumprod_vjp(g: T, x: T, axis: int) -> T:
    """The gradient of the last of the products, which g has in its place, zeros before it.

    Where products of neighbours leave the range, each x is first divided by a power of two.
    """
    if not call(kernels.product_overflows, x._h, axis):
        return cumprod_vjp(g, x, x.apply_row(CUMPROD, axis), axis)
    near = x.apply_row(SHIFTED, call(kernels.product_exponents, x._h, axis, False))
    partial = cumprod_vjp(g, near, near.apply_row(CUMPROD, axis), axis)
    return partial.apply_row(SHIFTED, call(kernels.product_exponents, x._h, axis, True))


def _cumprod_formula(g: T, x: T, y: T, axis: int) -> T:
    """In doubles where products of neighbours leave the range of floats."""
    if x.dtype is not float32 or not call(kernels.product_overflows, x._h, axis):
        return cumprod_vjp(g, x, y, axis)
    wide = x.to(float64)
    return cumprod_vjp(g.to(float64), wide, wide.apply_row(CUMPROD, axis), axis).to(x.dtype)


CUMPROD: Row = custom(
    "cumprod",
    kernels.cumprod,
    _cumprod_formula,
    fused=[lambda g, x, y, axis: call(kernels.cumprod_vjp, g, x, axis)],
    doc="the products of the elements up to each; its gradient never divides",
)


def share_of(x: T, y: T) -> T:
    """exp(x - y), the share of x in y; with an infinite y, 1 for +inf and 0 for all else."""
    infinite = (x == y) & ((y - y) != 0.0)
    share = (x - y).masked_fill(infinite, 0.0).exp()
    return share.masked_fill(infinite & (y < 0.0), 0.0)


def _logcumsumexp_vjp(g: T, x: T, y: T, axis: int) -> T:
    """exp(x[i]) times the sum over k >= i of g[k] * exp(-y[k]), without forming either factor.

    With r[i] = g[i] + exp(y[i] - y[i + 1]) * r[i + 1] it is exp(x[i] - y[i]) * r[i], and no
    exponent is positive.
    """
    if not g.size:
        return g
    n = g.shape[axis]
    fading = share_of(y.narrow(axis, 0, n - 1), y.narrow(axis, 1, n - 1))
    return recurred_back(fading, g, axis).scale(share_of(x, y))


LOGCUMSUMEXP = custom(
    "logcumsumexp",
    kernels.logcumsumexp,
    _logcumsumexp_vjp,
    doc="the logarithm of the running sum of exponentials, without overflow",
)

# Where running extrema are: the values, and the gradient, follow these places.
CUMMAX = zero("cummax", 1, "where the maximum so far is", forward=kernels.cummax)
CUMMIN = zero("cummin", 1, "where the minimum so far is", forward=kernels.cummin)
ARGSORT = zero(
    "argsort",
    1,
    "the places of the elements in sorted order, ties in their own order",
    forward=kernels.argsort,
)
TOPK = zero(
    "topk",
    1,
    "the places of the first k elements in sorted order",
    forward=kernels.topk,
)
ORDER_STATISTICS = zero(
    "order_statistics",
    1,
    "the places of the elements of some ranks in sorted order",
    forward=kernels.order_statistics,
)
MEDIAN_POSITIONS = zero(
    "median_positions",
    1,
    "the places of the two elements in the middle of sorted order",
    forward=kernels.median,
)


def _rest(part: Array) -> Array:
    return call(SUB.id, call(kernels.python_float, 1.0), part)


def _weighed(g: Array, part: Array) -> Array:
    return call(SCALE.id, g, part)


WEIGHED: Row = linear(
    "weighed",
    _weighed,
    lambda g, part: _apply(WEIGHED, g, part),
    doc="the input in parts of it that are given, as many as it has or one for each in a line",
)
BETWEEN = custom(
    "between",
    kernels.between,
    lambda g, part: _apply(WEIGHED, g, _rest(part)),
    lambda g, part: _apply(WEIGHED, g, part),
    fused=[lambda g, part: _weighed(g, _rest(part)), _weighed],
    symmetric=True,
    doc="a + part * (b - a); where that is not finite, what has a part in it decides",
)


def _apply(row: Row, x: T, *args: Any) -> T:
    return x.apply_row(row, *args)


SEARCHSORTED = zero(
    "searchsorted",
    2,
    "where values go in sorted lines",
    forward=kernels.searchsorted,
)
