"""Reductions over any set of axes, and log-softmax.

``axes`` is a tuple of non-negative axes; ``keep`` says whether they stay with size 1. A gradient
that arrives without the reduced axes gets them back through ``keep_dims`` before it is broadcast.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf, nan
from typing import Any

from minigrad.ops.composed import product
from minigrad.ops.pointwise import ABS, DIV, GE, LE, LOGICAL_AND, MUL, POW
from minigrad.ops.scan import last_cumprod_vjp, share_of
from minigrad.ops.shape import EMBED
from minigrad.ops.table import Row, custom, linear, zero
from minigrad.runtime.native import Array, call, kernels, lib

T = Any  # a Tensor; this layer stands below it
Axes = tuple[int, ...]


def keep_dims(shape: tuple[int, ...], axes: Axes) -> tuple[int, ...]:
    """``shape`` with 1 in place of the reduced axes."""
    return tuple(1 if d in axes else n for d, n in enumerate(shape))


def _count(shape: tuple[int, ...], axes: Axes) -> int:
    count = 1
    for axis in axes:
        count *= shape[axis]
    return count


def _sizes(shape: tuple[int, ...]) -> int:
    return _count(shape, tuple(range(len(shape))))


def _spread(g: T, shape: tuple[int, ...], axes: Axes) -> T:
    """The gradient of a reduction, seen at every element that was reduced."""
    return g.reshape(keep_dims(shape, axes)).expand(shape)


def _spread_view(g: Array, shape: tuple[int, ...], axes: Axes, keep: bool) -> Array:
    return call(kernels.view_repeat, g, shape, axes)


def _spread_share(g: Array, shape: tuple[int, ...], axes: Axes, keep: bool) -> Array:
    return call(kernels.repeat_mean, g, shape, axes)


def _share(shape: tuple[int, ...], axes: Axes) -> float:
    return 1.0 / max(_count(shape, axes), 1)


SUM = linear(
    "sum",
    kernels.sum,
    lambda g, shape, axes, keep: _spread(g, shape, axes),
    fused=_spread_view,
    doc="the sum over the axes; booleans and integers give int64",
)
MEAN = linear(
    "mean",
    kernels.mean,
    lambda g, shape, axes, keep: _spread(g * _share(shape, axes), shape, axes),
    fused=_spread_share,
    doc="the mean over the axes; NaN where there is nothing to average",
)


def _extremum_vjp(g: T, x: T, y: T, shape: tuple[int, ...], axes: Axes, keep: bool) -> T:
    """Shared evenly among the elements that equal the extremum; among the NaN if that is NaN."""
    kept = keep_dims(shape, axes)
    y = y.detach().reshape(kept)
    x = x.detach()
    hit = ((x == y) | ((x != x) & (y != y))).to(g.dtype)
    return hit.scale(g.reshape(kept) / hit.sum(axes, True))


def _pushed(t: T, pull: Any, shape: tuple[int, ...], axes: Axes, keep: bool, *rest: Any) -> T:
    """The tangent of a reduction: the sum of partials, which a pull of ones gives, times t."""
    kept = keep_dims(shape, axes)
    to = kept if keep else tuple([n for d, n in enumerate(shape) if d not in axes])
    return t.scale(pull(t.new_ones(to))).apply_row(SUM, axes, keep)


def _extremum(name: str, kernel: int, doc: str) -> Any:
    return custom(
        name,
        kernel,
        _extremum_vjp,
        fused=[lambda g, x, y, shape, axes, keep: call(kernels.extremum_vjp, g, x, y, axes, keep)],
        jvp=[_pushed],
        doc=doc,
    )


AMAX = _extremum("amax", kernels.amax, "the maximum over the axes; ties share the gradient")
AMIN = _extremum("amin", kernels.amin, "the minimum over the axes; ties share the gradient")


def _tied_vjp(g: T, a: T, b: T) -> T:
    """Each value in ``b`` has the same share of g, which those in ``a`` that equal it share."""
    axes = tuple(range(len(a.shape)))
    shares = [
        _extremum_vjp(g * (1.0 / b.size), a, b[i], a.shape, axes, False) for i in range(b.size)
    ]
    return shares[0] if len(shares) == 1 else shares[0] + shares[1]


def _tied_fused(g: Array, a: Array, b: Array) -> Any:
    count = b.size
    if count > 1:
        g = call(MUL.id, g, call(kernels.python_float, 1.0 / count))
    made = None
    for i in range(count):
        one = call(kernels.view_reshape, call(kernels.view_slice, b, (i,), (1,), (1,)), ())
        part = call(kernels.extremum_vjp, g, a, one, None, False)
        if made is None:
            made = part
        else:
            call(kernels.accumulate, made, part)
    return made


def _tied(a: Array, b: Array) -> Array:
    if b.size == 1:
        return call(kernels.view_reshape, call(kernels.copy, b), ())
    return call(kernels.mean, b, None, False)


TIED = custom(
    "median",
    _tied,
    _tied_vjp,
    None,
    fused=[_tied_fused, None],
    jvp=[lambda t, pull: t.scale(pull(t.new_ones(()))).sum(), None],
    doc="the mean of b, one element of a or two; all that equal one share its gradient evenly",
)


def _prod_vjp(g: T, x: T, shape: tuple[int, ...], axes: Axes, keep: bool) -> T:
    """The partial is the product of all others, without dividing: prod ends cumprod."""
    if not x.size:
        return x
    order = tuple(d for d in range(len(shape)) if d not in axes) + axes
    rows = x.permute(order).reshape((-1, _count(shape, axes)))
    m, n = rows.shape
    last = g.reshape((m, 1)).apply_row(EMBED, (m, n), (0, n - 1), (1, 1), (m, 1))
    back = [0] * len(order)
    for place, axis in enumerate(order):
        back[axis] = place
    made = last_cumprod_vjp(last, rows, 1)
    return made.reshape(tuple(shape[d] for d in order)).permute(tuple(back))


def _prod_fused(g: Array, x: Array, shape: tuple[int, ...], axes: Axes, keep: bool) -> Array:
    if not axes or axes == tuple(range(axes[0], axes[-1] + 1)):  # neighbours: lines as they lie
        first = axes[0] if axes else 0
        lines = _sizes(shape[:first]), _count(shape, axes), _sizes(shape[first + len(axes) :])
        rows = call(kernels.reshape, x, lines)
        return call(kernels.reshape, call(kernels.prod_vjp, g, rows, 1), shape)
    order = tuple(d for d in range(len(shape)) if d not in axes) + axes
    turned = call(kernels.view_permute, x, order)
    n = _count(shape, axes)
    rows = call(kernels.reshape, turned, (x.size // n if n else 0, n))
    made = call(kernels.reshape, call(kernels.prod_vjp, g, rows, 1), turned.shape)
    back = tuple(order.index(d) for d in range(len(order)))
    return call(kernels.copy, call(kernels.view_permute, made, back))


PROD = custom(
    "prod",
    kernels.prod,
    _prod_vjp,
    fused=[_prod_fused],
    jvp=[_pushed],
    doc="the product over the axes; its gradient never divides",
)


def _degrees(shape: tuple[int, ...], axes: Axes, correction: float) -> float:
    """Factor 1 / n of the variance's sum of squares; inf for nothing."""
    degrees = _count(shape, axes) - correction
    return 1.0 / degrees if degrees > 0 else inf


def part_of_root(x: T, y: T) -> T:
    """x / y for a root y of x's size, and 0 where that is 0; it is near 1, as 1 / y need not be."""
    zero = y == 0.0
    return x.masked_fill(zero, 0.0) / y.masked_fill(zero, 1.0)


UNITS = zero(
    "units",
    1,
    "powers of two that bring very small or large inputs, or all, near 1",
    forward=kernels.scale_units,
)


def _in_units(x: T, y: T, kept: tuple[int, ...], row: Any, *args: Any) -> tuple[T, T]:
    """x and its root y, with the axes kept; in other units where y may have lost digits."""
    y = y.reshape(kept)
    if call(kernels.roots_extreme, y._h):
        x = x * y.detach().apply_row(UNITS, False)
        y = x.apply_row(row, *args)
    return x, y


def deviations(x: T, axes: Axes) -> T:
    """x - mean(x), from sums of what x is beside the first of its line, which do not overflow."""
    first = x.detach()
    for axis in axes:
        first = first.narrow(axis, 0, min(1, x.shape[axis]))
    beside = x - first if x.size else x
    return beside - beside.mean(axes, True)


def _spread_vjp(
    g: Array, x: Array, y: Array | None, axes: Axes, keep: bool, scale: float, centred: bool
) -> Array:
    return call(kernels.deviation_vjp, g, x, y, axes, scale, centred, keep)


def _limit_vjp(g: T, x: T, shape: tuple[int, ...], axes: Axes) -> T:
    """Where nothing is divided by 0: infinite but at the mean, and NaN where all are equal."""
    g = g.reshape(keep_dims(shape, axes))
    apart = product(g.scale(inf), deviations(x, axes))
    alone = x.detach().var(axes, correction=0, keepdim=True) == 0.0
    return apart.masked_fill(alone & (g.detach() != 0.0), nan)


def _var_vjp(g: T, x: T, shape: tuple[int, ...], axes: Axes, keep: bool, correction: float) -> T:
    share = _degrees(shape, axes, correction)
    if share == inf:
        return _limit_vjp(g, x, shape, axes)
    return g.reshape(keep_dims(shape, axes)).scale((2.0 * share) * deviations(x, axes))


def _std_vjp(
    g: T, x: T, y: T, shape: tuple[int, ...], axes: Axes, keep: bool, correction: float
) -> T:
    share, kept = _degrees(shape, axes, correction), keep_dims(shape, axes)
    if share == inf:
        return _limit_vjp(g, x, shape, axes)
    x, y = _in_units(x, y, kept, STD, axes, True, correction)
    return g.reshape(kept).scale(share * part_of_root(deviations(x, axes), y))


def _norm_vjp(g: T, x: T, y: T, shape: tuple[int, ...], axes: Axes, keep: bool) -> T:
    kept = keep_dims(shape, axes)
    x, y = _in_units(x, y, kept, NORM, axes, True)
    return g.reshape(kept).scale(part_of_root(x, y))


VAR = custom(
    "var",
    lambda x, axes, keep, correction: call(kernels.var, x, axes, correction, keep),
    _var_vjp,
    fused=[
        lambda g, x, shape, axes, keep, correction: _spread_vjp(
            g, x, None, axes, keep, 2.0 * _degrees(shape, axes, correction), True
        )
    ],
    jvp=[_pushed],
    doc="the variance over the axes, divided by n - correction; the data is read once",
)
STD: Row = custom(
    "std",
    lambda x, axes, keep, correction: call(kernels.std, x, axes, correction, keep),
    _std_vjp,
    fused=[
        lambda g, x, y, shape, axes, keep, correction: _spread_vjp(
            g, x, y, axes, keep, _degrees(shape, axes, correction), True
        )
    ],
    jvp=[_pushed],
    doc="the root of the variance; its derivatives are 0 where it is",
)
NORM: Row = custom(
    "norm",
    kernels.norm,
    _norm_vjp,
    fused=[lambda g, x, y, shape, axes, keep: _spread_vjp(g, x, y, axes, keep, 1.0, False)],
    jvp=[_pushed],
    doc="the root of the sum of squares over the axes; its derivatives are 0 where it is",
)


_NEAR = {lib.MG_FLOAT32: 2.0**96, lib.MG_FLOAT64: 2.0**960}  # as csrc/kernels/reduce/backward.inc.c


def _p_norm(x: Array, axes: Axes, keep: bool, p: float) -> Array:
    """Where powers leave the range, a second time in units of a power of two for each line."""

    def of(op: int, a: Array, b: Array | float) -> Array:
        return call(op, a, call(kernels.python_float, b) if isinstance(b, float) else b)

    size = call(ABS.id, x)
    total = call(kernels.sum, of(POW.id, size, p), axes, keep)
    made = of(POW.id, total, 1.0 / p)
    if not x.size or not (
        call(kernels.roots_extreme, total)
        or call(kernels.squares_lost, total, _count(x.shape, axes))
    ):
        return made
    careful, top = size, call(kernels.amax if p > 0.0 else kernels.amin, size, axes, True)
    steps = []
    for _ in range(2):  # from a subnormal number to 1 takes two
        steps.append(call(kernels.scale_units, top, True))
        careful, top = of(MUL.id, careful, steps[-1]), of(MUL.id, top, steps[-1])
    careful = of(POW.id, call(kernels.sum, of(POW.id, careful, p), axes, keep), 1.0 / p)
    for step in reversed(steps):
        careful = of(DIV.id, careful, call(kernels.reshape, step, careful.shape))
    most = _NEAR[x.dtype]
    near = of(LOGICAL_AND.id, of(GE.id, total, 1.0 / most), of(LE.id, total, most))
    return call(kernels.where, near, made, careful)


def _p_norm_vjp(g: T, x: T, y: T, shape: tuple[int, ...], axes: Axes, keep: bool, p: float) -> T:
    """sign(x) (|x| / y)^(p - 1), and 0 for an element and a vector of 0."""
    kept = keep_dims(shape, axes)
    x, y = _in_units(x, y, kept, P_NORM, axes, True, p)
    none = (x == 0.0) | (y == 0.0)
    share = (x.abs() / y.masked_fill(y == 0.0, 1.0)).masked_fill(none, 1.0) ** (p - 1.0)
    return g.reshape(kept).scale((share * x.sign()).masked_fill(none, 0.0))


P_NORM: Row = custom(
    "p_norm",
    _p_norm,
    _p_norm_vjp,
    jvp=[_pushed],
    doc="the root of order p of the sum of p-th powers of magnitudes; 0 where that is",
)


def _logsumexp_vjp(g: T, x: T, y: T, shape: tuple[int, ...], axes: Axes, keep: bool) -> T:
    kept = keep_dims(shape, axes)
    return g.reshape(kept).scale(share_of(x, y.reshape(kept)))


LOGSUMEXP = custom(
    "logsumexp",
    kernels.logsumexp,
    _logsumexp_vjp,
    fused=[lambda g, x, y, shape, axes, keep: call(kernels.logsumexp_vjp, g, x, y, axes, keep)],
    jvp=[_pushed],
    doc="log(sum(exp(x))) over the axes, without overflow",
)

SOFTMAX = custom(
    "softmax",
    kernels.softmax,
    lambda g, y, axis: (g - g.scale(y).sum((axis,), True)).scale(y),
    fused=[kernels.softmax_vjp],
    symmetric=True,
    doc="exp(x) / sum(exp(x)) along the axis",
)


def _log_softmax_vjp(g: T, y: T, axis: int) -> T:
    """g - exp(y) * sum(g); a factor of 0 makes it 0 whatever the other is."""
    return g - product(g.sum((axis,), True), y.exp())


LOG_SOFTMAX = custom(
    "log_softmax",
    kernels.log_softmax,
    _log_softmax_vjp,
    fused=[kernels.log_softmax_vjp],
    jvp=[lambda t, y, axis: t - y.exp().scale(t).sum((axis,), True)],
    doc="x - logsumexp(x) along the axis",
)

ALL = zero("all", 1, "are all elements true?", forward=kernels.all)
ANY = zero("any", 1, "is any element true?", forward=kernels.any)


def _arg(kernel: int) -> Callable[[Array, int | None, bool], Array]:
    return lambda x, axis, keep: call(kernel, x, 0 if axis is None else axis, axis is None, keep)


ARGMAX = zero(
    "argmax", 1, "where the maximum is: the first of ties, NaN first", forward=_arg(kernels.argmax)
)
ARGMIN = zero(
    "argmin", 1, "where the minimum is: the first of ties, NaN first", forward=_arg(kernels.argmin)
)
