"""Normalisation: (x - mean) / sqrt(var + eps) * weight + bias, by statistics of rows or channels.

The forward fills the tensor ``stats`` for the fused backward. Its rows are the mean, the rounding
error of the mean, 1 / sqrt(var + eps) and the variance. Weights are ones and biases zeros where
there are none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minigrad.ops.table import Row, custom
from minigrad.runtime.native import Array, call, kernels

T = Any  # a Tensor; this layer stands below it


def _deviations(x: T, axes: tuple[int, ...]) -> T:
    """x less its mean; what rounding a large mean leaves is taken off once more."""
    near = x - x.detach().mean(axes, True)
    return near - near.mean(axes, True)


def _standardised(x: T, axes: tuple[int, ...], centred: bool, eps: float) -> tuple[T, T]:
    """x normalised over the axes, and 1 / sqrt(var + eps)."""
    if not centred:
        rstd = (x.square().mean(axes, True) + eps).rsqrt()
        return x.scale(rstd), rstd
    rstd = (x.var(axes, correction=0, keepdim=True) + eps).rsqrt()
    return _deviations(x, axes).scale(rstd), rstd


def _back(v: T, h: T, rstd: T, axes: tuple[int, ...], centred: bool) -> T:
    """rstd (v - mean(v) - h mean(v h)): the gradient of h's x against an upstream gradient v."""
    slope = v.scale(h).mean(axes, True).scale(h)
    return ((v - v.mean(axes, True) if centred else v) - slope).scale(rstd)


# ---- rows ----------------------------------------------------------------------------------------

# The last axes of x are those of w and b.


def _rows(x: T, w: T) -> T:
    return x.reshape((x.size // w.size, w.size))


def _of_rows(name: str, centred: bool, doc: str) -> Row:
    def forward(x: Array, w: Array, bias: Array, stats: T, eps: float) -> Array:
        return call(kernels.norm_rows, x, w, bias, stats._h, centred, eps)

    def vjp(g: Array, x: Array, w: Array, stats: T, eps: float) -> Sequence[Array]:
        return call(kernels.norm_rows_vjp, g, x, w, stats._h, centred)

    def by_x(g: T, a: T, b: T, stats: T, eps: float) -> T:
        h, rstd = _standardised(_rows(a, b), (1,), centred, eps)
        v = _rows(g, b).scale(b.reshape((b.size,)))
        return _back(v, h, rstd, (1,), centred).reshape(a.shape)

    def push_x(t: T, a: T, b: T, stats: T, eps: float) -> T:
        h, rstd = _standardised(_rows(a, b), (1,), centred, eps)
        made = _back(_rows(t, b), h, rstd, (1,), centred)
        return made.scale(b.reshape((b.size,))).reshape(a.shape)

    def push_weight(t: T, a: T, b: T, stats: T, eps: float) -> T:
        h, _ = _standardised(_rows(a, b), (1,), centred, eps)
        return t.reshape((b.size,)).scale(h).reshape(a.shape)

    def push_bias(t: T, a: T, b: T, stats: T, eps: float) -> T:
        return t.expand(a.shape)

    def by_weight(g: T, a: T, b: T, stats: T, eps: float) -> T:
        h, _ = _standardised(_rows(a, b), (1,), centred, eps)
        return _rows(g, b).scale(h).sum((0,)).reshape(b.shape)

    def by_bias(g: T, a: T, b: T, stats: T, eps: float) -> T:
        return g.sum_to_size(b.shape)

    pushes = (push_x, push_weight, push_bias)
    return custom(name, forward, by_x, by_weight, by_bias, together=vjp, jvp=pushes, doc=doc)


LAYER_NORM = _of_rows("layer_norm", True, "(x - mean) / sqrt(var + eps) * w + b over w's axes")
RMS_NORM = _of_rows("rms_norm", False, "x / sqrt(mean of squares + eps) * w + b over w's axes")

# ---- channels ------------------------------------------------------------------------------------

# x has the shape (N, C, ...), w and b (C,). Normalised together are `groups` groups of a sample's
# channels, or, where that is 0, all samples of a channel; then `given` may be the means and
# variances to use.

Given = tuple[Array, Array] | None


def _channels_forward(
    x: Array, w: Array, bias: Array, stats: T, groups: int, given: Given, eps: float
) -> Array:
    mean, var = given or (None, None)
    return call(kernels.norm_channels, x, w, bias, stats._h, groups, mean, var, eps)


def _channels_vjp(
    g: Array, x: Array, w: Array, stats: T, groups: int, given: Given, eps: float
) -> Sequence[Array]:
    return call(kernels.norm_channels_vjp, g, x, w, stats._h, groups, given is None)


def _planes(x: T) -> T:
    return x.reshape((*x.shape[:2], x.size // (x.shape[0] * x.shape[1])))


def _sets(x: T, groups: int) -> tuple[T, tuple[int, ...]]:
    """x with its sets of values along these axes."""
    if not groups:
        return _planes(x), (0, 2)
    return x.reshape((x.shape[0], groups, x.size // (x.shape[0] * groups))), (2,)


def _normalised(x: T, stats: T, groups: int, given: Given, eps: float) -> tuple[T, T]:
    """x normalised, in sets, and what its deviations were multiplied with."""
    sets, axes = _sets(x, groups)
    if given is None:
        return _standardised(sets, axes, True, eps)
    mean, rstd = (stats[i].reshape((1, -1, 1)) for i in (0, 2))
    return (sets - mean).scale(rstd), rstd


def _channels_by_x(g: T, a: T, b: T, stats: T, groups: int, given: Given, eps: float) -> T:
    h, rstd = _normalised(a, stats, groups, given, eps)
    v, axes = _sets(_planes(g).scale(b.reshape((-1, 1))), groups)
    dx = v.scale(rstd) if given else _back(v, h, rstd, axes, True)
    return dx.reshape(a.shape)


def _channels_by_weight(g: T, a: T, b: T, stats: T, groups: int, given: Given, eps: float) -> T:
    h, _ = _normalised(a, stats, groups, given, eps)
    planes = _planes(g)
    return planes.scale(h.reshape(planes.shape)).sum((0, 2))


def _channels_by_bias(g: T, a: T, b: T, stats: T, groups: int, given: Given, eps: float) -> T:
    return _planes(g).sum((0, 2))


def _channels_push_x(t: T, a: T, b: T, stats: T, groups: int, given: Given, eps: float) -> T:
    h, rstd = _normalised(a, stats, groups, given, eps)
    v, axes = _sets(_planes(t), groups)
    made = v.scale(rstd) if given else _back(v, h, rstd, axes, True)
    return _planes(made.reshape(a.shape)).scale(b.reshape((-1, 1))).reshape(a.shape)


def _channels_push_weight(t: T, a: T, b: T, stats: T, groups: int, given: Given, eps: float) -> T:
    h, _ = _normalised(a, stats, groups, given, eps)
    return t.reshape((-1, 1)).scale(_planes(h.reshape(a.shape))).reshape(a.shape)


def _channels_push_bias(t: T, a: T, b: T, stats: T, groups: int, given: Given, eps: float) -> T:
    return t.reshape((-1, *(1,) * (len(a.shape) - 2))).expand(a.shape)


CHANNEL_NORM = custom(
    "channel_norm",
    _channels_forward,
    _channels_by_x,
    _channels_by_weight,
    _channels_by_bias,
    together=_channels_vjp,
    jvp=(_channels_push_x, _channels_push_weight, _channels_push_bias),
    doc="(x - mean) / sqrt(var + eps) * w + b over channels of all samples or groups of them",
)
