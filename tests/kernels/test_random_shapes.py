"""Random tests of operations on windows, of matrix products and of attention.

Extents, kernels, strides, dilations and paddings are drawn for each axis by itself, and often 1.
A kernel that takes a step along an axis for granted reads outside its operands there. Values and
all gradients are compared with sums over tables of windows, in NumPy and float64. Like draws run in
a process whose operands lie between pages that cannot be read.
"""

from __future__ import annotations

import faulthandler
import math
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from guards import HAS_GUARDS, apart, guarded

import minigrad as mg
from minigrad.nn import functional as F

SHARE = 500  # draws of each kind in the default run
GUARDED = 150  # of these between guards
MANY = 20000  # and with -m exhaustive
PIECES = 10  # of which these are separate tests

# ---- tables of windows ---------------------------------------------------------------------------


class Axis(NamedTuple):
    """One axis: element j of window i is input ``i * stride - padding + j * dilation`` of n."""

    n: int
    kernel: int
    stride: int
    dilation: int
    padding: int
    count: int

    def table(self):
        """(count, kernel, n): 1 where that element of a window is that input."""
        out = np.zeros((self.count, self.kernel, self.n))
        for i in range(self.count):
            for j in range(self.kernel):
                at = i * self.stride - self.padding + j * self.dilation
                if 0 <= at < self.n:
                    out[i, j, at] = 1
        return out


def three(axes):
    """The axes with those in front that make them three."""
    return [Axis(1, 1, 1, 1, 0, 1)] * (3 - len(axes)) + list(axes)


def windows(x, axes):
    """x (..., *sizes) as (..., a, p, b, q, c, r): window (a, b, c), element (p, q, r) of it."""
    t = [axis.table() for axis in three(axes)]
    x = x.reshape(*x.shape[: x.ndim - len(axes)], *[axis.n for axis in three(axes)])
    x = np.einsum("...xyz,cpz->...xycp", x, t[2])
    x = np.einsum("...xycp,bqy->...xbqcp", x, t[1])
    return np.einsum("...xbqcr,apx->...apbqcr", x, t[0])


def unwindows(y, axes):
    """The transpose of ``windows``."""
    t = [axis.table() for axis in three(axes)]
    y = np.einsum("...apbqcr,apx->...xbqcr", y, t[0])
    y = np.einsum("...xbqcr,bqy->...xycr", y, t[1])
    y = np.einsum("...xycr,crz->...xyz", y, t[2])
    return y.reshape(*y.shape[:-3], *[axis.n for axis in axes])


# ---- draws ---------------------------------------------------------------------------------------


class Case(NamedTuple):
    """An operation, what it is given, and a reference.

    ``value(*inputs)`` and ``gradients(g, *inputs)`` are linear in each argument if ``linear``. Of
    magnitudes they then give the size of the sums, to each of which ``terms`` roundings belong.
    """

    name: str
    call: object
    inputs: list
    value: object
    gradients: object
    terms: int
    linear: bool = True


def few(rng, most):
    """1 half the time, else up to ``most``."""
    return 1 if rng.random() < 0.4 else int(rng.integers(1, most + 1))


def extent(rng, last):
    """Extent of an axis: often 1 or 2, on the last axis sometimes full vectors and more."""
    if last and rng.random() < 0.2:
        return int(rng.integers(10, 80))
    return few(rng, 8) + int(rng.random() < 0.3)


def draw_axis(rng, last, most):
    """An axis into which at least one window fits, of at most so many elements."""
    n, kernel, dilation = extent(rng, last), few(rng, most), few(rng, 3)
    padding = int(rng.integers(0, 4)) if rng.random() < 0.4 else 0
    short = dilation * (kernel - 1) + 1 - n - 2 * padding
    n += max(short, 0)
    stride = few(rng, 4) if rng.random() < 0.8 else n + 1
    count = (n + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1
    return Axis(n, kernel, stride, dilation, padding, count)


def draw_axes(rng):
    axes, most = int(rng.integers(1, 4)), 1 if rng.random() < 0.25 else 4
    found = [draw_axis(rng, d == axes - 1, most) for d in range(axes)]
    while math.prod(a.count * a.kernel * a.n for a in found) > 30000:
        found = [draw_axis(rng, False, most) for _ in range(axes)]
    return found


def maybe_none(rng, n):
    return 0 if rng.random() < 0.03 else n


def channels(rng):
    """Channels of a group: few, or more than a register tile has, or none."""
    if rng.random() < 0.03:
        return 0
    return int(rng.integers(5, 40)) if rng.random() < 0.15 else few(rng, 5)


def options(axes, *names):
    return {name: tuple(getattr(axis, name) for axis in axes) for name in names}


def draw_conv(rng):
    axes, groups, batch = draw_axes(rng), few(rng, 3), maybe_none(rng, few(rng, 3))
    c, o = channels(rng), channels(rng)
    sizes, kernel = [a.n for a in axes], [a.kernel for a in axes]
    x = rng.standard_normal((batch, groups * c, *sizes))
    w = rng.standard_normal((groups * o, c, *kernel))
    b = rng.standard_normal(groups * o)

    def apart(x, w):
        seen = windows(x.reshape(batch, groups, c, *sizes), axes)
        return seen, w.reshape(groups, o, c, *[a.kernel for a in three(axes)])

    def value(x, w, b):
        y = np.einsum("ngcxpyqzr,gocpqr->ngoxyz", *apart(x, w), optimize=True)
        return y.reshape(batch, groups * o, *[a.count for a in axes]) + b.reshape(
            -1, *[1] * len(axes)
        )

    def gradients(g, x, w, b):
        seen, kernels = apart(x, w)
        up = g.reshape(batch, groups, o, *[a.count for a in three(axes)])
        dx = np.einsum("ngoxyz,gocpqr->ngcxpyqzr", up, kernels, optimize=True)
        dw = np.einsum("ngoxyz,ngcxpyqzr->gocpqr", up, seen, optimize=True)
        return [
            unwindows(dx, axes).reshape(x.shape),
            dw.reshape(w.shape),
            up.sum((0, 3, 4, 5)).reshape(b.shape),
        ]

    call = getattr(F, f"conv{len(axes)}d")
    keys = options(axes, "stride", "padding", "dilation")
    terms = max(
        c * math.prod(kernel), o * math.prod(kernel), batch * math.prod(a.count for a in axes)
    )
    return Case(
        f"conv{len(axes)}d {x.shape} {w.shape} {keys} groups={groups}",
        lambda x, w, b: call(x, w, b, **keys, groups=groups),
        [x, w, b],
        value,
        gradients,
        terms,
    )


def draw_transposed(rng):
    """A transpose whose output is ``axes``' inputs: the input has an element a window."""
    axes, groups, batch = draw_axes(rng), few(rng, 3), maybe_none(rng, few(rng, 3))
    c, o = channels(rng), channels(rng)
    extra = []
    for d, a in enumerate(axes):
        size = (a.count - 1) * a.stride + a.dilation * (a.kernel - 1) + 1 - 2 * a.padding
        if size < 1:
            a = a._replace(padding=0)
            size += 2 * axes[d].padding
        extra.append(int(rng.integers(0, max(a.stride, a.dilation))))
        axes[d] = a._replace(n=size + extra[-1])
    count, kernel = [a.count for a in axes], [a.kernel for a in axes]
    x = rng.standard_normal((batch, groups * c, *count))
    w = rng.standard_normal((groups * c, o, *kernel))
    b = rng.standard_normal(groups * o)

    def apart(x, w):
        return (
            x.reshape(batch, groups, c, *[a.count for a in three(axes)]),
            w.reshape(groups, c, o, *[a.kernel for a in three(axes)]),
        )

    def value(x, w, b):
        y = np.einsum("ngcxyz,gcopqr->ngoxpyqzr", *apart(x, w), optimize=True)
        y = unwindows(y, axes).reshape(batch, groups * o, *[a.n for a in axes])
        return y + b.reshape(-1, *[1] * len(axes))

    def gradients(g, x, w, b):
        x_parts, kernels = apart(x, w)
        up = windows(g.reshape(batch, groups, o, *[a.n for a in axes]), axes)
        dx = np.einsum("ngoxpyqzr,gcopqr->ngcxyz", up, kernels, optimize=True)
        dw = np.einsum("ngoxpyqzr,ngcxyz->gcopqr", up, x_parts, optimize=True)
        sums = g.sum((0, *range(2, g.ndim)))
        return [dx.reshape(x.shape), dw.reshape(w.shape), sums]

    call = getattr(F, f"conv_transpose{len(axes)}d")
    keys = options(axes, "stride", "padding", "dilation") | {"output_padding": tuple(extra)}
    terms = max(c, o) * math.prod(kernel) + batch * math.prod(a.n for a in axes)
    return Case(
        f"conv_transpose{len(axes)}d {x.shape} {w.shape} {keys} groups={groups}",
        lambda x, w, b: call(x, w, b, **keys, groups=groups),
        [x, w, b],
        value,
        gradients,
        terms,
    )


def pool_axes(rng):
    """Windows of which each has an element of the input."""
    found = []
    for a in draw_axes(rng):
        padding = min(a.padding, a.kernel // 2)
        a = a._replace(padding=padding, n=max(a.n, a.dilation * (a.kernel - 1) + 1))
        count = (a.n + 2 * padding - a.dilation * (a.kernel - 1) - 1) // a.stride + 1
        found.append(a._replace(count=count))
    if all(a.table().any((1, 2)).size and a.table().any((1, 2)).all() for a in found):
        return found
    return pool_axes(rng)


def planes(rng, axes):
    """Number of planes: several, or enough to be lanes, or one."""
    lead = (maybe_none(rng, few(rng, 2)), few(rng, 20) if rng.random() < 0.3 else few(rng, 3))
    return rng.standard_normal((*lead, *[a.n for a in axes]))


def terms_of(axes):
    """The elements of a window, or the windows that an element lies in."""
    tables = [a.table() for a in axes]
    return math.prod(int(max(t.sum((1, 2)).max(), t.sum((0, 1)).max())) for t in tables)


def first_maxima(x, inside):
    """The maxima of x (..., windows, elements) where it is ``inside``, and their first places."""
    seen = np.where(inside, x, -np.inf)
    best = seen.argmax(-1)
    return np.take_along_axis(seen, best[..., None], -1)[..., 0], best


def of_windows(axes, x):
    """Windows with their elements last: (..., *counts, elements)."""
    seen = np.moveaxis(windows(x, axes), (-5, -3, -1), (-3, -2, -1))
    return seen.reshape(*seen.shape[:-3], math.prod(a.kernel for a in axes))


def to_windows(axes, y):
    """The inverse of ``of_windows``, as ``unwindows`` takes it."""
    y = y.reshape(*y.shape[:-1], *[a.kernel for a in three(axes)])
    return np.moveaxis(y, (-3, -2, -1), (-5, -3, -1))


def maxima(rng, x, axes, call, name):
    if rng.random() < 0.5:
        x = np.round(x)  # ties go to the first
    inside = of_windows(axes, np.ones(x.shape[-len(axes) :])) > 0

    def value(x):
        top, _ = first_maxima(of_windows(axes, x), inside)
        return top.reshape(*x.shape[: x.ndim - len(axes)], *[a.count for a in axes])

    def gradients(g, x):
        seen = of_windows(axes, x)
        _, best = first_maxima(seen, inside)
        up = np.zeros_like(seen)
        np.put_along_axis(up, best[..., None], g.reshape(*best.shape, 1), -1)
        return [unwindows(to_windows(axes, up), axes).reshape(x.shape)]

    return Case(name, call, [x], value, gradients, terms_of(axes), linear=False)


def draw_max_pool(rng):
    axes = pool_axes(rng)
    x, keys = planes(rng, axes), options(axes, "stride", "padding", "dilation")
    f, kernel = getattr(F, f"max_pool{len(axes)}d"), tuple(a.kernel for a in axes)
    name = f"max_pool{len(axes)}d {x.shape} {kernel} {keys}"
    return maxima(rng, x, axes, lambda x: f(x, kernel, **keys), name)


def means(name, call, x, axes, divisor):
    lead = x.ndim - len(axes)

    def value(x):
        y = windows(x, axes).sum((-5, -3, -1)) / divisor
        return y.reshape(*x.shape[:lead], *[a.count for a in axes])

    def gradients(g, x):
        up = g.reshape(*x.shape[:lead], *[a.count for a in three(axes)]) / divisor
        up = (
            up[..., :, None, :, None, :, None]
            * np.ones([a.kernel for a in three(axes)])[:, None, :, None, :]
        )
        return [unwindows(up, axes).reshape(x.shape)]

    return Case(name, call, [x], value, gradients, terms_of(axes))


def draw_avg_pool(rng):
    axes = [a._replace(dilation=1) for a in pool_axes(rng)]
    axes = [a._replace(count=(a.n + 2 * a.padding - a.kernel) // a.stride + 1) for a in axes]
    x, keys = planes(rng, axes), options(axes, "stride", "padding")
    f, kernel = getattr(F, f"avg_pool{len(axes)}d"), tuple(a.kernel for a in axes)
    include = bool(rng.random() < 0.5)
    divisor = np.full([a.count for a in three(axes)], math.prod(kernel))
    if not include:
        divisor = windows(np.ones([a.n for a in axes]), axes).sum((-5, -3, -1))
    name = f"avg_pool{len(axes)}d {x.shape} {kernel} {keys} count_include_pad={include}"
    call = lambda x: f(x, kernel, **keys, count_include_pad=include)  # noqa: E731
    return means(name, call, x, axes, divisor)


class Adaptive(NamedTuple):
    """An axis whose window i of m holds the elements from floor(i n / m) to ceil((i + 1) n / m)."""

    n: int
    count: int

    @property
    def kernel(self):
        return max(
            -(-(i + 1) * self.n // self.count) - i * self.n // self.count for i in range(self.count)
        )

    def table(self):
        out = np.zeros((self.count, self.kernel, self.n))
        for i in range(self.count):
            low, end = i * self.n // self.count, -(-(i + 1) * self.n // self.count)
            for at in range(low, end):
                out[i, at - low, at] = 1
        return out


def adaptive_axes(rng):
    axes = int(rng.integers(1, 4))
    return [Adaptive(extent(rng, d == axes - 1), extent(rng, d == axes - 1)) for d in range(axes)]


def draw_adaptive(rng):
    axes = adaptive_axes(rng)
    x, sizes = planes(rng, axes), tuple(a.count for a in axes)
    kind = rng.choice(["max", "avg", "area"])
    name = f"{kind}, adaptive, {x.shape} to {sizes}"
    if kind == "max":
        f = getattr(F, f"adaptive_max_pool{len(axes)}d")
        return maxima(rng, x, axes, lambda x: f(x, sizes), name)
    divisor = windows(np.ones([a.n for a in axes]), axes).sum((-5, -3, -1))
    if kind == "area":
        return means(name, lambda x: F.interpolate(x, sizes, mode="area"), x, axes, divisor)
    f = getattr(F, f"adaptive_avg_pool{len(axes)}d")
    return means(name, lambda x: f(x, sizes), x, axes, divisor)


def draw_columns(rng):
    """Unfold or fold."""
    axes = [draw_axis(rng, False, 4), draw_axis(rng, True, 4)]
    batch, c = few(rng, 3), few(rng, 5)
    sizes, kernel = tuple(a.n for a in axes), tuple(a.kernel for a in axes)
    keys = options(axes, "dilation", "padding", "stride")
    rows, count = c * math.prod(kernel), math.prod(a.count for a in axes)

    def columns(x):
        seen = windows(x.reshape(batch, c, *sizes), axes)
        seen = np.moveaxis(seen, (-5, -3, -1), (-6, -5, -4))
        return seen.reshape(batch, rows, count)

    def image(y):
        y = y.reshape(batch, c, *[a.kernel for a in three(axes)], *[a.count for a in three(axes)])
        return unwindows(np.moveaxis(y, (-6, -5, -4), (-5, -3, -1)), axes)

    if rng.random() < 0.5:
        x = rng.standard_normal((batch, c, *sizes))
        return Case(
            f"unfold {x.shape} {kernel} {keys}",
            lambda x: F.unfold(x, kernel, **keys),
            [x],
            columns,
            lambda g, x: [image(g)],
            rows,
        )
    x = rng.standard_normal((batch, rows, count))
    return Case(
        f"fold {x.shape} to {sizes} {kernel} {keys}",
        lambda x: F.fold(x, sizes, kernel, **keys),
        [x],
        image,
        lambda g, x: [columns(g)],
        rows,
    )


def cubic(d):
    a, d = -0.75, abs(d)
    if d <= 1:
        return (a + 2) * d**3 - (a + 3) * d**2 + 1
    return a * d**3 - 5 * a * d**2 + 8 * a * d - 4 * a if d < 2 else 0.0


def resampling(n, m, mode, align):
    """(m, n): how much each input counts for each output."""
    out = np.zeros((m, n))
    for i in range(m):
        if mode == "nearest":
            out[i, min(i * n // m, n - 1)] = 1
            continue
        if mode == "nearest-exact":
            out[i, min((2 * i + 1) * n // (2 * m), n - 1)] = 1
            continue
        at = (i * (n - 1) / (m - 1) if m > 1 else 0.0) if align else (i + 0.5) * n / m - 0.5
        low = math.floor(at)
        for k in range(-1, 3):
            if mode == "bicubic":
                out[i, min(max(low + k, 0), n - 1)] += cubic(at - (low + k))
            elif abs(at - (low + k)) < 1:
                out[i, min(max(low + k, 0), n - 1)] += 1 - abs(at - (low + k))
    return out


def draw_interpolate(rng):
    modes = ["nearest", "nearest-exact", "linear", "bilinear", "trilinear", "bicubic"]
    mode = str(rng.choice(modes))
    axes = {"linear": 1, "bilinear": 2, "trilinear": 3, "bicubic": 2}.get(
        mode, int(rng.integers(1, 4))
    )
    sizes = [extent(rng, d == axes - 1) for d in range(axes)]
    wanted = tuple(extent(rng, d == axes - 1) for d in range(axes))
    align = None if mode.startswith("nearest") else bool(rng.random() < 0.5)
    x = rng.standard_normal((few(rng, 2), few(rng, 4), *sizes))
    tables = [resampling(n, m, mode, align) for n, m in zip(sizes, wanted, strict=True)]

    def along(x, tables):
        for d, table in enumerate(tables):
            x = np.moveaxis(np.moveaxis(x, 2 + d, -1) @ table.T, -1, 2 + d)
        return x

    case = Case(
        f"interpolate {x.shape} to {wanted} mode={mode} align_corners={align}",
        lambda x: F.interpolate(x, wanted, mode=mode, align_corners=align),
        [x],
        lambda x: along(x, tables),
        lambda g, x: [along(g, [t.T for t in tables])],
        4**axes * max(1, *[m // n for m, n in zip(wanted, sizes, strict=True)]),
    )
    # Weights may be negative, and a position is rounded at the axis' length.
    return case._replace(linear=False, terms=case.terms * 16 * max(*sizes, *wanted))


# ---- products ------------------------------------------------------------------------------------


def side(rng):
    """Extent of a matrix: often 1, sometimes more than a register tile or a vector has."""
    return int(rng.integers(9, 70)) if rng.random() < 0.3 else few(rng, 8)


def spread_shape(rng, shape):
    """A shape that broadcasts to the given one: some axes are 1, some in front are left out."""
    shape = [1 if rng.random() < 0.3 else n for n in shape]
    return tuple(shape[int(rng.integers(0, len(shape) + 1)) if rng.random() < 0.3 else 0 :])


def summed(x, shape):
    """The sum over the axes along which ``shape`` was broadcast to that of x."""
    x = x.sum(tuple(range(x.ndim - len(shape))))
    return x.sum(tuple(d for d, n in enumerate(shape) if n == 1), keepdims=True)


def draw_matmul(rng):
    m, k, n = (maybe_none(rng, side(rng)) for _ in range(3))
    lead = tuple(few(rng, 4) for _ in range(int(rng.integers(0, 3))))
    x, y = (rng.standard_normal((*spread_shape(rng, lead), *s)) for s in ((m, k), (k, n)))

    def gradients(g, x, y):
        return [summed(g @ y.swapaxes(-1, -2), x.shape), summed(x.swapaxes(-1, -2) @ g, y.shape)]

    terms = max(m, k, n) * math.prod(lead)
    return Case(f"matmul {x.shape} {y.shape}", mg.matmul, [x, y], np.matmul, gradients, terms)


def draw_attention(rng):
    length, keys, depth, width = (side(rng) for _ in range(4))
    length = maybe_none(rng, length)
    lead = tuple(few(rng, 3) for _ in range(int(rng.integers(0, 3))))
    q, k, v = (
        rng.standard_normal((*lead, *s)) for s in ((length, depth), (keys, depth), (keys, width))
    )
    causal, masked = bool(rng.random() < 0.3), rng.random() < 0.5
    inputs = [q, k, v]
    if masked:
        inputs.append(rng.standard_normal((*spread_shape(rng, lead), length, keys)))
    seen = np.tri(length, keys) > 0 if causal else np.ones((length, keys), bool)

    def weights(q, k, mask):
        scores = q @ k.swapaxes(-1, -2) / math.sqrt(depth) + (mask[0] if mask else 0)
        scores = np.where(seen, scores, -np.inf)
        e = np.exp(scores - scores.max(-1, keepdims=True))
        return e / e.sum(-1, keepdims=True)

    def gradients(g, q, k, v, *mask):
        p = weights(q, k, mask)
        up = g @ v.swapaxes(-1, -2)
        ds = p * (up - (p * up).sum(-1, keepdims=True))
        scaled = ds / math.sqrt(depth)
        found = [scaled @ k, scaled.swapaxes(-1, -2) @ q, p.swapaxes(-1, -2) @ g]
        return found + [summed(ds, m.shape) for m in mask]

    return Case(
        f"attention {q.shape} {k.shape} {v.shape} is_causal={causal} mask={masked}",
        lambda q, k, v, *mask: F.scaled_dot_product_attention(q, k, v, *mask, is_causal=causal),
        inputs,
        lambda q, k, v, *mask: weights(q, k, mask) @ v,
        gradients,
        4 * (depth + keys + length + width) * math.prod(lead),
        linear=False,
    )


DRAWS = {
    "conv": draw_conv,
    "conv_transpose": draw_transposed,
    "max_pool": draw_max_pool,
    "avg_pool": draw_avg_pool,
    "adaptive_pool": draw_adaptive,
    "columns": draw_columns,
    "interpolate": draw_interpolate,
    "matmul": draw_matmul,
    "attention": draw_attention,
}

# ---- layouts -------------------------------------------------------------------------------------


def strided(rng, a):
    """The same values where neither neighbours nor axes are in order."""
    order = rng.permutation(a.ndim)
    wide = np.empty([2 * a.shape[d] + 1 for d in order], a.dtype)
    view = wide[(slice(1, None, 2),) * a.ndim].transpose(np.argsort(order))
    if rng.random() < 0.3:
        view = view[..., ::-1]
    view[...] = a
    return view


def plain(rng, a):
    return a if rng.random() < 0.6 else strided(rng, a)


# ---- the test ------------------------------------------------------------------------------------


def check(case, rng, dtype, place):
    """Value and all gradients of a case, with operands where ``place`` puts them."""
    inputs = [a.astype(dtype) for a in case.inputs]
    wide = [a.astype(np.float64) for a in inputs]
    want = case.value(*wide)
    g = rng.standard_normal(want.shape).astype(dtype)
    tensors = [mg.from_numpy(place(rng, a)).requires_grad_() for a in inputs]
    y = case.call(*tensors)
    got = mg.grad(y, tensors, mg.from_numpy(place(rng, g)))
    up = g.astype(np.float64)
    grads = case.gradients(up, *wide)
    if case.linear:
        sizes = [np.abs(a) for a in wide]
        limits = [case.value(*sizes), *case.gradients(abs(up), *sizes)]
    else:
        limits = [np.abs(v).max(initial=1) for v in (want, *grads)]
    unit = (case.terms + 8) * np.finfo(dtype).eps
    for what, found, true, size in zip(
        ["value", *[f"gradient {i}" for i in range(len(got))]],
        [y.detach(), *got],
        [want, *grads],
        limits,
        strict=True,
    ):
        assert found.shape == true.shape, f"{what} of {case.name}"
        wrong = ~(abs(found.numpy() - true) <= unit * size)  # NaN is wrong
        assert not wrong.any(), f"{what} of {case.name}, {np.dtype(dtype)}: {wrong.sum()} wrong"


def run(kind, seed, count, place):
    """``count`` draws; tells where it is, for a process that does not come back."""
    for i in range(count):
        rng = np.random.default_rng([seed, i, *kind.encode()])
        case, dtype = DRAWS[kind](rng), rng.choice([np.float32, np.float64])
        if place is guarded:
            print(f"draw {i}: {case.name}", flush=True)
        check(case, rng, dtype, place)


@pytest.mark.parametrize("kind", DRAWS)
def test_random_shapes(kind):
    run(kind, 0, SHARE, plain)


@pytest.mark.exhaustive
@pytest.mark.parametrize("piece", range(PIECES))
@pytest.mark.parametrize("kind", DRAWS)
def test_many_random_shapes(kind, piece):
    run(kind, 1 + piece, MANY // PIECES, plain)


@pytest.mark.skipif(not HAS_GUARDS, reason="protects pages by Linux's mprotect")
def test_no_operand_is_read_outside():
    apart(__file__, 100, GUARDED)


@pytest.mark.exhaustive
@pytest.mark.skipif(not HAS_GUARDS, reason="protects pages by Linux's mprotect")
@pytest.mark.parametrize("piece", range(PIECES))
def test_no_operand_is_read_outside_of_many(piece):
    apart(__file__, 101 + piece, MANY // PIECES)


if __name__ == "__main__":
    faulthandler.enable()
    sys.path.insert(0, str(Path(__file__).parent.parent.parent))
    for each in DRAWS:
        run(each, int(sys.argv[1]), int(sys.argv[2]), guarded)
