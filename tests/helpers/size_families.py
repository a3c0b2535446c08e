"""Families of operations of varied size, for the tests of the sizes at which work is cut.

A function makes operations with operands of a size ``n``, which is an axis of n elements. For
functions named after a total or after work, n is about the number of elements or multiply-adds.
"""

from __future__ import annotations

import itertools
import math
from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

import minigrad as mg
from minigrad.nn import functional as F
from minigrad.nn.functional.recurrent import layer_steps

# ---- what a family makes -------------------------------------------------------------------------


class Op(NamedTuple):
    """An operation, its NumPy equivalent, and its inputs. ``smooth`` if it has a gradient."""

    name: str
    call: object
    value: object
    inputs: list
    smooth: bool = True
    slack: float = 1.0  # factor of float32's error, for sums that cancel


def numpy_of(result):
    return np.asarray(result.detach().numpy())


def close(got, want, limit, what):
    assert got.shape == want.shape, what
    if want.dtype == bool or want.dtype.kind == "i":
        assert (got == want).all(), what
        return
    size = np.abs(want).max(initial=0)
    wrong = ~(abs(got - want) <= limit * (size + 1e-3))
    assert not wrong.any(), f"{what}: {wrong.sum()} of {want.size}, first {np.argwhere(wrong)[:3]}"


def distinct(rng, *shape):
    """Numbers that differ by more than a finite difference's step."""
    size = math.prod(shape)
    return (rng.permutation(size) - size / 2).reshape(shape) / 64


# ---- families ------------------------------------------------------------------------------------

FAMILIES = {}


def family(f):
    FAMILIES[f.__name__] = f
    return f


@family
def elementwise(n, rng):
    x, y = rng.standard_normal((2, n))
    wide = rng.standard_normal(2 * n)
    yield Op("exp", mg.exp, np.exp, [x])
    yield Op("mul", mg.mul, np.multiply, [x, y])
    yield Op("silu", F.silu, lambda x: x / (1 + np.exp(-x)), [x])
    yield Op("tanh of every second", lambda x: x[::2].tanh(), lambda x: np.tanh(x[::2]), [wide])
    yield Op("a row and a column", mg.add, np.add, [rng.standard_normal((3, 1)), x])
    yield Op("halves", lambda x: x[:n] * x[n:], lambda x: x[:n] * x[n:], [wide])
    yield Op("compare", mg.gt, np.greater, [x, y], smooth=False)
    rows, across = rng.standard_normal((2, n)), rng.standard_normal((n, 2))
    yield Op("turned", lambda x, y: x * y.T, lambda x, y: x * y.T, [rows, across])
    mask = rng.random(n) < 0.5
    where = lambda x, y: mg.where(mg.tensor(mask), x, y)  # noqa: E731
    yield Op("where", where, lambda x, y: np.where(mask, x, y), [x, y])


@family
def optim(n, rng):
    x, g = rng.standard_normal((2, n))
    for name in ("SGD", "Adam"):

        def call(x, name=name):
            x = x.detach().clone().requires_grad_()
            options = {"momentum": 0.5} if name == "SGD" else {}
            stepper = getattr(mg.optim, name)([x], lr=0.1, **options)
            for _ in range(2):
                x.grad = mg.tensor(numpy_of(mg.tensor(g, x.dtype)))
                stepper.step()
            return x

        def value(x, name=name):
            g32 = g.astype(np.float32).astype(np.float64)
            g64 = g if x.dtype == np.float64 else g32
            return x - 0.25 * g64 if name == "SGD" else x - 0.2 * g64 / (abs(g64) + 1e-8)

        yield Op(name, call, value, [x], smooth=False)


def copies(x):
    yield "turned", lambda x: x.T.contiguous(), lambda x: x.T
    yield "falling", lambda x: mg.flip(x, -1), lambda x: x[..., ::-1]
    yield "every second", lambda x: x[:, ::2].clone(), lambda x: x[:, ::2]
    yield "twice", lambda x: mg.cat([x, x], 1), lambda x: np.concatenate([x, x], 1)
    yield "in rows", lambda x: x[:1].expand(7, -1).clone(), lambda x: np.repeat(x[:1], 7, 0)
    yield "in a stack", lambda x: mg.stack([x.T, x.T]), lambda x: np.stack([x.T, x.T])
    yield "rolled", lambda x: mg.roll(x, 3, 1), lambda x: np.roll(x, 3, 1)
    yield "cast", lambda x: x.to(mg.float32).to(mg.float64), lambda x: x
    yield "written", written, lambda x: np.where(np.arange(x.shape[1]) % 2, x, 2 * x)


def written(x):
    y = x.clone()
    y[:, ::2] = 2 * x[:, ::2]
    return y


@family
def copy_row(n, rng):
    x = rng.standard_normal((3, n))
    for name, call, value in copies(x):
        yield Op(name, call, value, [x])


@family
def copy_column(n, rng):
    for width in (3, 37) if n < 20000 else (3,):
        x = rng.standard_normal((n, width))
        for name, call, value in copies(x):
            yield Op(f"{name}, of {width}", call, value, [x])


def reductions(x, axis, name):
    """All reductions along one axis, or of all elements."""

    def pair(f, g):
        return (lambda x: f(x, axis)) if axis is not None else f, lambda x: g(x, axis=axis)

    positive = 1 + x / (8 * np.abs(x).max())
    count = x.size if axis is None else x.shape[axis]
    ordered = distinct(np.random.default_rng(x.size), *x.shape)
    for f in ("sum", "mean", "prod", "logsumexp"):
        if f == "logsumexp" and axis is None:
            continue
        ref = getattr(np, f, None) or (lambda x, axis: np.log(np.exp(x).sum(axis)))
        data = positive ** (0.1 if count > 9 else 1) if f == "prod" else x
        yield Op(f"{f}, {name}", *pair(getattr(mg, f), ref), [data], slack=4)
    if count > 1:
        yield Op(f"var, {name}", *pair(mg.var, lambda x, axis: x.var(axis, ddof=1)), [x])
        yield Op(f"std, {name}", *pair(mg.std, lambda x, axis: x.std(axis, ddof=1)), [x])
    for f in ("amax", "amin"):
        yield Op(f"{f}, {name}", *pair(getattr(mg, f), getattr(np, f)), [ordered])
    for f in ("argmax", "argmin"):
        yield Op(f"{f}, {name}", *pair(getattr(mg, f), getattr(np, f)), [x], smooth=False)
    keep = {} if axis is None else {"dim": axis}
    norm = lambda x: mg.linalg.vector_norm(x, **keep)  # noqa: E731
    yield Op(f"norm, {name}", norm, lambda x: np.sqrt((x * x).sum(axis)), [x])
    whole = lambda f: lambda x: f((x * 8).to(mg.int64), **keep)  # noqa: E731
    for f in ("sum", "amax"):
        g = getattr(np, f)
        value = lambda x, g=g: g((x * 8).astype(np.int64), axis=axis)  # noqa: E731
        yield Op(f"{f} of integers, {name}", whole(getattr(mg, f)), value, [x], smooth=False)
    for f in ("any", "all"):
        g = getattr(np, f)
        call = lambda x, f=f: getattr(mg, f)(x > (2.5 if f == "any" else -2.5), **keep)  # noqa: E731
        value = lambda x, f=f, g=g: g(x > (2.5 if f == "any" else -2.5), axis=axis)  # noqa: E731
        yield Op(f"{f}, {name}", call, value, [x], smooth=False)


@family
def reduce_row(n, rng):
    yield from reductions(rng.standard_normal((3, n)), 1, "rows")
    yield from reductions(rng.standard_normal(n), None, "all")


@family
def reduce_lead(n, rng):
    yield from reductions(rng.standard_normal((n, 600)), 1, "rows")


@family
def reduce_column(n, rng):
    yield from reductions(rng.standard_normal((n, 3)), 0, "columns")
    yield from reductions(rng.standard_normal((2, n, 19)), 1, "columns of a stack")


@family
def reduce_width(n, rng):
    yield from reductions(rng.standard_normal((5, n)), 0, "wide columns")


@family
def reduce_total(n, rng):
    yield from reductions(rng.standard_normal((n // 8, 8)), 1, "short rows")
    yield from reductions(rng.standard_normal((n // 8, 8)), 0, "columns")


def log_softmax_of(x, axis):
    x = x - x.max(axis, keepdims=True)
    return x - np.log(np.exp(x).sum(axis, keepdims=True))


@family
def softmax(n, rng):
    for shape, axis in (((3, n), 1), ((n, 3), 0), ((3, n), 0)):
        x = 3 * rng.standard_normal(shape)
        log = lambda x, axis=axis: log_softmax_of(x, axis)  # noqa: E731
        name = f"softmax {shape} {axis}"
        call = lambda x, axis=axis: F.softmax(x, axis)  # noqa: E731
        yield Op(name, call, lambda x, log=log: np.exp(log(x)), [x])
        yield Op(f"log_{name}", lambda x, axis=axis: F.log_softmax(x, axis), log, [x], slack=2)


def normalised(x, axes, w, b):
    mean, var = x.mean(axes, keepdims=True), x.var(axes, keepdims=True)
    return (x - mean) / np.sqrt(var + 1e-5) * w + b


def layer_norms(shape, rng):
    x, (w, b) = rng.standard_normal(shape), rng.standard_normal((2, shape[-1]))
    layer = lambda x, w, b: F.layer_norm(x, shape[-1:], w, b)  # noqa: E731
    yield Op("layer_norm", layer, lambda x, w, b: normalised(x, -1, w, b), [x, w, b], slack=8)
    rms = lambda x, w: F.rms_norm(x, shape[-1:], w, eps=1e-5)  # noqa: E731
    root = lambda x, w: x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * w  # noqa: E731
    yield Op("rms_norm", rms, root, [x, w], slack=8)


def batch_norms(shape, rng):
    x, (w, b) = rng.standard_normal(shape), rng.standard_normal((2, shape[1]))
    axes, across = (0, *range(2, len(shape))), (-1, *[1] * (len(shape) - 2))
    batch = lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True)  # noqa: E731
    value = lambda x, w, b: normalised(x, axes, w.reshape(across), b.reshape(across))  # noqa: E731
    yield Op("batch_norm", batch, value, [x, w, b], slack=8)


@family
def norm_row(n, rng):
    if n > 1:
        yield from layer_norms((3, n), rng)


@family
def norm_channel(n, rng):
    if n == 1:
        return
    yield from batch_norms((2, 3, n), rng)
    x, (w, b) = rng.standard_normal((2, 4, n)), rng.standard_normal((2, 4))

    def value(x, w, b):
        flat = normalised(x.reshape(2, 2, 2 * n), -1, 1, 0).reshape(2, 4, n)
        return flat * w[:, None] + b[:, None]

    yield Op("group_norm", lambda x, w, b: F.group_norm(x, 2, w, b), value, [x, w, b], slack=8)
    yield Op("instance_norm", F.instance_norm, lambda x: normalised(x, -1, 1, 0), [x], slack=8)


@family
def norm_column(n, rng):
    if n > 1:
        yield from batch_norms((n, 3), rng)


@family
def norm_width(n, rng):
    yield from batch_norms((5, n), rng)


@family
def norm_total(n, rng):
    yield from layer_norms((n // 8, 8), rng)
    yield from batch_norms((n // 8, 8), rng)
    yield from batch_norms((4, n // 32, 8), rng)


def entropies(rows, n, rng):
    target = rng.integers(0, n, rows)
    x, weight = 2 * rng.standard_normal((rows, n)), rng.uniform(0.5, 2, n)
    weight = weight.astype(np.float32).astype(np.float64)

    def value(x, w, smoothing):
        y = log_softmax_of(x, 1)
        own, all_of = w[target] * -y[np.arange(rows), target], -(y * w).sum(1) / n
        return (1 - smoothing) * own + smoothing * all_of

    for smoothing, reduction in itertools.product((0.0, 0.1), ("mean", "none")):

        def call(x, smoothing=smoothing, reduction=reduction):
            w = mg.tensor(weight, x.dtype)
            return F.cross_entropy(
                x, mg.tensor(target), w, reduction=reduction, label_smoothing=smoothing
            )

        def reference(x, smoothing=smoothing, reduction=reduction):
            each = value(x, weight, smoothing)
            return each if reduction == "none" else each.sum() / weight[target].sum()

        yield Op(f"cross_entropy {smoothing} {reduction}", call, reference, [x], slack=2)

    def plain(x):
        return value(x, np.ones(n), 0.0).mean()

    yield Op("cross_entropy", lambda x: F.cross_entropy(x, mg.tensor(target)), plain, [x])
    swapped = lambda x: F.cross_entropy(x.T[None], mg.tensor(target[None]))  # noqa: E731
    yield Op("cross_entropy, classes apart", swapped, plain, [x])
    shares = np.exp(log_softmax_of(rng.standard_normal((rows, n)), 1)).astype(np.float32)
    yield Op(
        "cross_entropy of shares",
        lambda x: F.cross_entropy(x, mg.tensor(shares).to(x.dtype)),
        lambda x: -(shares.astype(np.float64) * log_softmax_of(x, 1)).sum(1).mean(),
        [x],
    )


@family
def entropy(n, rng):
    yield from entropies(3, n, rng)


@family
def entropy_total(n, rng):
    yield from entropies(n // 8, 8, rng)


@family
def distance(n, rng):
    x, y = rng.standard_normal((4, n)), rng.standard_normal((5, n))
    value = lambda x, y: np.sqrt(((x[:, None] - y) ** 2).sum(-1))  # noqa: E731
    yield Op("cdist", mg.cdist, value, [x, y], slack=4)
    yield Op("cdist of many", mg.cdist, value, [rng.standard_normal((n, 3)), y[:, :3]], slack=4)


def scans(x, axis):
    unit = 1 + x / (4 * np.abs(x).max() * max(1, math.sqrt(x.shape[axis])))
    ordered = distinct(np.random.default_rng(x.size), *x.shape)
    name = f"{x.shape} {axis}"
    yield Op(
        f"cumsum {name}", lambda x: mg.cumsum(x, axis), lambda x: np.cumsum(x, axis), [x], slack=8
    )
    yield Op(
        f"cumprod {name}",
        lambda x: mg.cumprod(x, axis),
        lambda x: np.cumprod(x, axis),
        [unit],
        slack=8,
    )
    value = lambda x: np.logaddexp.accumulate(x, axis)  # noqa: E731
    yield Op(f"logcumsumexp {name}", lambda x: mg.logcumsumexp(x, axis), value, [x], slack=8)
    for f, g in (("cummax", np.maximum), ("cummin", np.minimum)):
        call = lambda x, f=f: getattr(mg, f)(x, axis)[0]  # noqa: E731
        value = lambda x, g=g: g.accumulate(x, axis)  # noqa: E731
        yield Op(f"{f} {name}", call, value, [ordered])


@family
def scan_row(n, rng):
    yield from scans(rng.standard_normal((3, n)), 1)
    yield from scans(rng.standard_normal((n, 3)), 0)
    yield from scans(rng.standard_normal(n), 0)


@family
def scan_width(n, rng):
    yield from scans(rng.standard_normal((5, n)), 0)


@family
def scan_parts(n, rng):
    x = rng.standard_normal(8192 * n)
    yield Op("cumsum", lambda x: mg.cumsum(x, 0), np.cumsum, [x], slack=8)


@family
def scan_total(n, rng):
    yield from scans(rng.standard_normal((n // 8, 8)), 1)


def sorts(x):
    rows, n = x.shape
    x = distinct(np.random.default_rng(x.size), rows, n)
    yield Op("sort", lambda x: mg.sort(x, 1)[0], lambda x: np.sort(x, 1), [x])
    yield Op("falling", lambda x: mg.sort(x, 1, True)[0], lambda x: np.sort(x, 1)[:, ::-1], [x])
    call = lambda x: mg.argsort(mg.round(x), 1)  # noqa: E731
    stable = lambda x: np.argsort(np.round(x), 1, kind="stable")  # noqa: E731
    yield Op("argsort", call, stable, [x], smooth=False)
    whole = lambda x: mg.sort((64 * x).to(mg.int64), 1)[0]  # noqa: E731
    value = lambda x: np.sort((64 * x).astype(np.int64), 1)  # noqa: E731
    yield Op("sort of integers", whole, value, [x], smooth=False)
    yield Op("median", lambda x: mg.median(x, 1)[0], lambda x: np.median(x, 1), [x])
    k = min(3, n)
    yield Op("topk", lambda x: mg.topk(x, k)[0], lambda x: np.sort(x, 1)[:, ::-1][:, :k], [x])


@family
def sort_row(n, rng):
    yield from sorts(rng.standard_normal((3, n)))


@family
def sort_total(n, rng):
    yield from sorts(rng.standard_normal((n // 8, 8)))


@family
def top(n, rng):
    for more in (0, 5, 1000):
        x = distinct(rng, 3, n + more)
        value = lambda x: np.sort(x, 1)[:, ::-1][:, :n]  # noqa: E731
        yield Op(f"topk of {n + more}", lambda x: mg.topk(x, n)[0], value, [x])


@family
def search(n, rng):
    edges = np.sort(rng.standard_normal(100)).astype(np.float32).astype(np.float64)
    for side in ("left", "right"):
        call = lambda x, s=side: mg.searchsorted(mg.tensor(edges, x.dtype), x, side=s)  # noqa: E731
        value = lambda x, s=side: np.searchsorted(edges, x, s)  # noqa: E731
        yield Op(f"of many, {side}", call, value, [rng.standard_normal(n)], smooth=False)
    points = rng.standard_normal(50)
    call = lambda x: mg.searchsorted(mg.sort(x)[0], mg.tensor(points, x.dtype))  # noqa: E731
    points = points.astype(np.float32).astype(np.float64)
    value = lambda x: np.searchsorted(np.sort(x), points)  # noqa: E731
    yield Op("among many", call, value, [rng.standard_normal(n)], smooth=False)


@family
def index_row(n, rng):
    x, at = rng.standard_normal((7, n)), np.array([3, 0, 3, 6, 1])
    yield Op("rows", lambda x: x[mg.tensor(at)], lambda x: x[at], [x])
    yield Op("embedding", lambda x: F.embedding(mg.tensor(at), x), lambda x: x[at], [x])
    more = rng.standard_normal((5, n))

    def added(x, more):
        y = x.copy()
        np.add.at(y, at, more)
        return y

    call = lambda x, more: mg.index_add(x, 0, mg.tensor(at), more)  # noqa: E731
    yield Op("index_add", call, added, [x, more])
    columns = rng.integers(0, n, (7, n))
    call = lambda x: mg.gather(x, 1, mg.tensor(columns))  # noqa: E731
    yield Op("gather", call, lambda x: np.take_along_axis(x, columns, 1), [x])
    mask = rng.random((7, n)) < 0.5
    yield Op("mask", lambda x: x[mg.tensor(mask)], lambda x: x[mask], [x])


@family
def index_count(n, rng):
    at = rng.integers(0, 50, n)
    for width in (1, 3, 20):
        x = rng.standard_normal((50, width))
        yield Op(f"rows of {width}", lambda x: x[mg.tensor(at)], lambda x: x[at], [x], slack=4)
    wide = rng.standard_normal((n, 3))

    def summed(x):
        y = np.zeros((50, 3))
        np.add.at(y, at, x)
        return y

    call = lambda x: mg.index_add(mg.zeros(50, 3, dtype=x.dtype), 0, mg.tensor(at), x)  # noqa: E731
    yield Op("summed", call, summed, [wide], slack=4)
    order = rng.permutation(n)
    yield Op("permuted", lambda x: x[mg.tensor(order)], lambda x: x[order], [wide])


def products(m, k, n, rng):
    x, y = rng.standard_normal((m, k)), rng.standard_normal((k, n))
    name = f"{m} {k} {n}"
    slack = max(1.0, math.sqrt(k) / 8)
    yield Op(f"product {name}", mg.matmul, np.matmul, [x, y], slack=slack)
    turned = [np.ascontiguousarray(x.T), np.ascontiguousarray(y.T)]
    yield Op(f"turned {name}", lambda x, y: x.T @ y.T, lambda x, y: x.T @ y.T, turned, slack=slack)


def matrices(m, k, n, rng):
    yield from products(m, k, n, rng)
    if m * k * n < 50000:
        x, y = rng.standard_normal((3, m, k)), rng.standard_normal((3, k, n))
        yield Op(f"stack {m} {k} {n}", mg.matmul, np.matmul, [x, y], slack=2)


@family
def gemm_m(n, rng):
    for k, columns in ((5, 3), (40, 33), (1, 17), (17, 1)):
        yield from matrices(n, k, columns, rng)


@family
def gemm_k(n, rng):
    for rows, columns in ((7, 9), (30, 33), (1, 17), (17, 1)):
        yield from matrices(rows, n, columns, rng)


@family
def gemm_n(n, rng):
    for rows, k in ((3, 5), (31, 40), (1, 17), (17, 1)):
        yield from matrices(rows, k, n, rng)


@family
def gemm_plane(n, rng):
    yield from products(20, 64, max(n // 64, 1), rng)
    yield from products(20, max(n // 300, 1), 300, rng)


@family
def gemm_work(n, rng):
    for d in (-1, 0, 1):
        yield from products(32, 32, max(n // 1024 + d, 1), rng)
        side = round(n ** (1 / 3))
        yield from products(side, side, side + d, rng)


def attentions(heads, queries, keys, depth, width, rng):
    q, k, v = (
        rng.standard_normal((heads, *s)) for s in ((queries, depth), (keys, depth), (keys, width))
    )
    for causal in (False, True):
        seen = np.tri(queries, keys) > 0 if causal else np.ones((queries, keys), bool)

        def value(q, k, v, seen=seen):
            scores = np.where(seen, q @ k.swapaxes(1, 2) / math.sqrt(depth), -np.inf)
            return np.exp(log_softmax_of(scores, -1)) @ v

        def call(q, k, v, causal=causal):
            return F.scaled_dot_product_attention(q, k, v, is_causal=causal)

        yield Op(f"attention, causal {causal}", call, value, [q, k, v], slack=4)


def recurrences(steps, batch, size, rng):
    x = rng.standard_normal((steps, batch, 4 * size))
    state, w = rng.standard_normal((2, batch, size)), rng.standard_normal((4 * size, size)) / size

    def lstm(x, state, w, p=None):
        (h, c), every = state, []
        for own in x:
            i, f, g, o = np.split(own + h @ w.T, 4, -1)
            i, f, o = (1 / (1 + np.exp(-gate)) for gate in (i, f, o))
            c = f * c + i * np.tanh(g)
            h = o * np.tanh(c)
            h = h if p is None else h @ p.T
            every.append((h, c))
        return every

    def elman(x, state, w):
        h, every = state[0], []
        for own in x:
            h = np.tanh(own + h @ w.T)
            every.append(h)
        return np.stack(every)[None]

    def gru(x, state, w, b):
        h, every = state[0], []
        for own in x:
            own, inner = np.split(own, 3, -1), np.split(h @ w.T + b, 3, -1)
            r, z = (1 / (1 + np.exp(-own[k] - inner[k])) for k in (0, 1))
            n = np.tanh(own[2] + r * inner[2])
            h = (1 - z) * n + z * h
            every.append(h)
        return np.stack(every)[None]

    def states(x, state, w):
        return np.stack(lstm(x, state, w), 1)

    def projected(x, h, c, w, p):
        every = lstm(x, (h, c), w, p)
        return np.concatenate([*[h for h, _ in every], every[-1][1]], -1)

    def call(x, h, c, w, p):
        every, (_, c) = layer_steps("LSTM", x, (h, c), w, p)
        return mg.cat([*every.unbind(0), c], -1)

    yield Op("lstm_steps", F.lstm_steps, states, [x, state, w], slack=8)
    half = (size + 1) // 2
    p = rng.standard_normal((half, size)) / size
    inputs = [x, state[0, :, :half].copy(), state[1], w[:, :half].copy(), p]
    yield Op("projected lstm_steps", call, projected, inputs, slack=8)
    inputs = [x[..., size:].copy(), state[1:].copy(), w[size:].copy(), x[0, 0, size:].copy()]
    yield Op("gru_steps", F.gru_steps, gru, inputs, slack=8)
    inputs = [x[..., :size].copy(), state[:1].copy(), w[:size].copy()]
    yield Op("rnn_steps", F.rnn_steps, elman, inputs, slack=8)


@family
def recurrent_batch(n, rng):
    yield from recurrences(3, n, 5, rng)


@family
def recurrent_size(n, rng):
    yield from recurrences(2, 2, n, rng)


@family
def attention_queries(n, rng):
    yield from attentions(2, n, 11, 8, 5, rng)
    if n < 600:
        yield from attentions(1, n, n, 8, 5, rng)


@family
def attention_keys(n, rng):
    yield from attentions(2, 5, n, 8, 5, rng)
    yield from attentions(2, 70, n, 3, 19, rng)


@family
def attention_heads(n, rng):
    yield from attentions(n, 3, 4, 5, 2, rng)
    yield from attentions(n, 3, 600, 2, 2, rng)


def convolved(x, w, b, stride, padding, groups):
    axes = w.ndim - 2
    x = np.pad(x, [(0, 0), (0, 0), *[(p, p) for p in padding]])
    seen = sliding_window_view(x, w.shape[2:], tuple(range(2, 2 + axes)))
    seen = seen[(slice(None), slice(None), *[slice(None, None, s) for s in stride])]
    batch, outs, counts = x.shape[0], w.shape[0], seen.shape[2 : 2 + axes]
    seen = seen.reshape(batch, groups, w.shape[1], math.prod(counts), -1)
    w = w.reshape(groups, outs // groups, w.shape[1], -1)
    y = np.einsum("ngcxp,gocp->ngox", seen, w, optimize=True)
    return y.reshape(batch, outs, *counts) + b.reshape(-1, *[1] * axes)


def convolution(x, w, rng, stride=1, padding=0, groups=1):
    axes = len(w) - 2
    stride, padding = ([v] * axes if isinstance(v, int) else v for v in (stride, padding))
    f, options = getattr(F, f"conv{axes}d"), (tuple(stride), tuple(padding), 1, groups)
    inputs = [rng.standard_normal(s) for s in (x, w, w[:1])]
    terms = max(math.prod(w[1:]), x[0] * math.prod(x[2:]))
    return Op(
        f"conv {x} {w} {stride} {padding} {groups}",
        lambda x, w, b: f(x, w, b, *options),
        lambda x, w, b: convolved(x, w, b, stride, padding, groups),
        inputs,
        slack=4 * max(1.0, math.sqrt(terms) / 16),
    )


@family
def conv_line(n, rng):
    yield convolution((2, 3, n), (4, 3, 3), rng, padding=1)
    yield convolution((2, 2, n), (20, 2, 1), rng)
    yield convolution((2, 3, n), (5, 3, 3), rng, stride=2, padding=1)
    yield convolution((1, 3, 2 * n), (3, 1, 2), rng, stride=2, groups=3)
    yield convolution((1, 2, 3, n), (3, 2, 3, 3), rng, padding=1)
    yield convolution((1, 2, 5, n), (2, 1, 3, 3), rng, padding=1, groups=2)
    yield convolution((1, 2, 5, n), (2, 1, 5, 5), rng, padding=2, groups=2)
    x, w = rng.standard_normal((2, 3, n)), rng.standard_normal((3, 4, 3))

    def spread(x, w):
        y = np.zeros((2, 4, 2 * n + 1))
        for k in range(3):
            y[:, :, k : k + 2 * n : 2][:, :, :n] += np.einsum("ncx,co->nox", x, w[:, :, k])
        return y

    yield Op("transposed", lambda x, w: F.conv_transpose1d(x, w, stride=2), spread, [x, w], slack=4)


@family
def conv_channels(n, rng):
    yield convolution((2, n, 9), (5, n, 3), rng, padding=1)
    yield convolution((1, n, 6, 6), (20, n, 3, 3), rng, padding=1)
    yield convolution((2, n, 7), (3, n, 1), rng)
    yield convolution((2, n, 9), (n, 1, 3), rng, padding=1, groups=n)


@family
def conv_outs(n, rng):
    yield convolution((2, 3, 9), (n, 3, 3), rng, padding=1)
    yield convolution((1, 20, 6, 6), (n, 20, 3, 3), rng, padding=1)
    yield convolution((2, 3, 7), (n, 3, 1), rng)


@family
def conv_taps(n, rng):
    yield convolution((1, 2, n + 10), (3, 2, n), rng, padding=n // 2)
    yield convolution((1, 1, 9, n + 3), (20, 1, 2, n), rng, padding=(1, 3))


@family
def conv_batch(n, rng):
    yield convolution((n, 2, 9), (3, 2, 3), rng, padding=1)
    if n < 40:
        yield convolution((n, 4, 40, 40), (5, 4, 3, 3), rng, padding=1)
        yield convolution((n, 2, 40, 40), (2, 1, 3, 3), rng, padding=1, groups=2)


@family
def conv_plane(n, rng):
    yield convolution((1, 2, 8, max(n // 8, 3)), (3, 2, 3, 3), rng, padding=1)
    yield convolution((1, 8, max(n // 8, 3)), (20, 8, 2), rng, stride=2)
    yield convolution((1, 1, 8, max(n // 8, 3)), (2, 1, 3, 3), rng, padding=1)


@family
def conv_lists(n, rng):
    for d in (-1, 0, 1):
        yield convolution((1, 32, 4, 5), (max(n // 32 + d, 1), 32, 3, 3), rng, padding=1)


@family
def conv_work(n, rng):
    for d in (-1, 0, 1):
        rows = max(n // (16 * 16 * 9 * 32) + d, 1)
        yield convolution((1, 16, rows, 32), (16, 16, 3, 3), rng, padding=1)


@family
def conv_copies(n, rng):
    """Convolutions too large for NumPy: a batch's gradient is the sum of its halves' gradients."""
    images, length = 8, max(n // (8 * 16), 8)
    x = rng.standard_normal((images, 16, length)).astype(np.float32)
    g = rng.standard_normal((images, 70, length)).astype(np.float32)
    w = rng.standard_normal((70, 16, 2)).astype(np.float32)

    def gradient(part):
        t = mg.tensor(w, requires_grad=True)
        y = F.conv1d(mg.tensor(np.pad(x[part], [(0, 0), (0, 0), (1, 0)])), t)
        return numpy_of(mg.grad(y, [t], mg.tensor(g[part]))[0]).astype(np.float64)

    halves = gradient(slice(0, 4)) + gradient(slice(4, 8))
    close(gradient(slice(0, 8)), halves, 1e-3, "gradient of a batch")
    return []


def seen_by(x, kernel, stride, padding, fill):
    around = [(0, 0)] * (x.ndim - len(kernel)) + [(p, p) for p in padding]
    x = np.pad(x, around, constant_values=fill)
    axes = tuple(range(x.ndim - len(kernel), x.ndim))
    seen = sliding_window_view(x, kernel, axes)
    lead = [slice(None)] * (x.ndim - len(kernel))
    return seen[(*lead, *[slice(None, None, s) for s in stride])]


def pools(shape, kernel, stride, padding, rng):
    axes = len(kernel)
    inside = tuple(range(-axes, 0))
    for kind in ("max", "avg"):
        f = getattr(F, f"{kind}_pool{axes}d")
        call = lambda x, f=f: f(x, kernel, stride, padding)  # noqa: E731
        fill = -np.inf if kind == "max" else 0

        def value(x, kind=kind, fill=fill):
            seen = seen_by(x, kernel, stride, padding, fill)
            return seen.max(inside) if kind == "max" else seen.mean(inside)

        x = distinct(rng, *shape) if kind == "max" else rng.standard_normal(shape)
        yield Op(f"{kind} {shape} {kernel} {stride} {padding}", call, value, [x], slack=2)


def adaptive_pools(shape, count, rng):
    n = shape[-1]
    low = [i * n // count for i in range(count)]
    end = [-(-(i + 1) * n // count) for i in range(count)]

    def mean(x):
        sums = np.concatenate([np.zeros((*x.shape[:-1], 1)), np.cumsum(x, -1)], -1)
        return (sums[..., end] - sums[..., low]) / (np.array(end) - low)

    def most(x):
        return np.stack([x[..., a:b].max(-1) for a, b in zip(low, end, strict=True)], -1)

    x, y = rng.standard_normal(shape), distinct(rng, *shape)
    name = f"adaptive {shape} {count}"
    yield Op(f"avg, {name}", lambda x: F.adaptive_avg_pool1d(x, count), mean, [x], slack=4)
    area = lambda x: F.interpolate(x[None], count, mode="area")[0]  # noqa: E731
    yield Op(f"area, {name}", area, mean, [x], slack=4)
    yield Op(f"max, {name}", lambda x: F.adaptive_max_pool1d(x, count), most, [y])


@family
def pool_inputs(n, rng):
    yield from pools((2, n), (2,), (1,), (1,), rng)
    if n > 4:
        yield from pools((2, n), (2,), (2,), (0,), rng)
        yield from pools((2, n), (3,), (2,), (1,), rng)
        yield from pools((2, n), (4,), (4,), (2,), rng)
        yield from pools((2, 3, n), (2, 2), (1, 1), (1, 1), rng)
        yield from pools((1, 4, n), (2, 2), (2, 2), (0, 0), rng)
        yield from pools((1, 4, n), (2, 3), (2, 3), (0, 0), rng)
    yield from adaptive_pools((2, n), 7, rng)
    yield from adaptive_pools((2, n), n // 2 + 1, rng)


@family
def pool_outputs(n, rng):
    yield from adaptive_pools((2, n // 3 + 1), n, rng)
    yield from adaptive_pools((2, max(n - 1, 1)), n, rng)
    yield from adaptive_pools((2, 2 * n), n, rng)
    yield from pools((2, 2 * n), (2,), (2,), (0,), rng)


@family
def pool_kernel(n, rng):
    yield from pools((2, n + 5), (n,), (1,), (0,), rng)
    yield from pools((2, 3, n), (3, n), (1, 1), (0, 0), rng)
    yield from pools((2, 2 * n), (n,), (n,), (0,), rng)
    yield from pools((9, n), (n,), (1,), (0,), rng)


@family
def pool_plane(n, rng):
    yield from pools((20, n), (2,), (1,), (1,), rng)
    if n > 15:
        yield from pools((20, n // 8, 8), (2, 2), (2, 2), (0, 0), rng)
        yield from pools((20, n // 8, 8), (2, 3), (1, 1), (1, 1), rng)
        yield from pools((20, 8, n // 8), (2, 2), (1, 2), (1, 0), rng)


@family
def pool_total(n, rng):
    yield from pools((n // 8, 8), (2,), (1,), (1,), rng)
    yield from pools((n // 64, 8, 8), (2, 2), (2, 2), (0, 0), rng)


@family
def window(n, rng):
    x = rng.standard_normal((max(n // 40, 1), 1, 3, 5))

    def columns(x):
        seen = seen_by(x, (2, 3), (1, 1), (0, 0), 0)  # (N, 1, 2, 3, 2, 3)
        return np.moveaxis(seen.reshape(len(x), 6, 6), 1, 2)

    def image(y):
        out = np.zeros((len(y), 1, 3, 5))
        parts = y.reshape(len(y), 2, 3, 2, 3)
        for i, j in np.ndindex(2, 3):
            out[:, 0, i : i + 2, j : j + 3] += parts[:, i, j]
        return out

    yield Op("unfold", lambda x: F.unfold(x, (2, 3)), columns, [x])
    y = rng.standard_normal((len(x), 6, 6))
    yield Op("fold", lambda y: F.fold(y, (3, 5), (2, 3)), image, [y])


def stretched(n, m):
    """The matrix (m, n) of linear interpolation: the weights of n elements for each of m."""
    at = np.clip((np.arange(m) + 0.5) * n / m - 0.5, 0, n - 1)
    low = at.astype(int)
    out = np.zeros((m, n))
    out[np.arange(m), low] += 1 - (at - low)
    out[np.arange(m), np.minimum(low + 1, n - 1)] += at - low
    return out


@family
def resample_width(n, rng):
    table = stretched(4, 7)
    call = lambda x: F.interpolate(x, (7, n), mode="bilinear")  # noqa: E731
    value = lambda x: np.einsum("ij,ncjx->ncix", table, x)  # noqa: E731
    yield Op("bilinear", call, value, [rng.standard_normal((1, 2, 4, n))])


@family
def resample_total(n, rng):
    for shape in ((n // 8, 1, 8), (3, 1, max(n // 8, 1))):
        table = stretched(shape[-1], 16)
        call = lambda x: F.interpolate(x, 16, mode="linear")  # noqa: E731
        value = lambda x, table=table: x @ table.T  # noqa: E731
        yield Op(f"linear {shape}", call, value, [rng.standard_normal(shape)])


@family
def random(n, rng):
    """Random draws: with the same seed, a shorter draw is the beginning of a longer one."""
    for draw in (mg.rand, mg.randn):
        for dtype in (mg.float32, mg.float64):
            few, many = (
                numpy_of(draw(m, generator=mg.Generator().manual_seed(5), dtype=dtype))
                for m in (n, 2 * n + 7)
            )
            assert (few == many[:n]).all(), f"{draw.__name__} of {n}"
            assert len(np.unique(few)) > 0.99 * n, f"{draw.__name__} of {n} repeats itself"
    return []


def systems(lead, n, rng):
    a = rng.standard_normal((*lead, n, n)) / math.sqrt(n) + 3 * np.eye(n)
    b = rng.standard_normal((*lead, n, 3))
    square = lambda a: a @ a.swapaxes(-1, -2) + np.eye(a.shape[-1])  # noqa: E731
    made = lambda a: a @ a.mT + mg.eye(n, dtype=a.dtype)  # noqa: E731
    yield Op(f"solve {n}", mg.linalg.solve, np.linalg.solve, [a, b], slack=8)
    factor = lambda a: np.linalg.cholesky(square(a))  # noqa: E731
    yield Op(f"cholesky {n}", lambda a: mg.linalg.cholesky(made(a)), factor, [a], slack=8)
    volume = lambda a: np.linalg.slogdet(a)[1]  # noqa: E731
    yield Op(f"slogdet {n}", lambda a: mg.linalg.slogdet(a)[1], volume, [a], slack=8)
    yield Op(f"inv {n}", mg.linalg.inv, np.linalg.inv, [a], slack=8)


@family
def system(n, rng):
    yield from systems((2,), n, rng)


@family
def system_work(n, rng):
    yield from systems((n // 512,), 8, rng)
