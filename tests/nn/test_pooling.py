"""Pooling against its definition, element by element, and the kernels of pooling windows."""

from __future__ import annotations

import itertools
import math

import numpy as np
import oracle
import pytest

import minigrad as mg
from minigrad.nn import functional as F
from minigrad.ops.window import POOL_ARGMAX, POOL_SUM, POOL_SUM_TRANSPOSE, PoolingWindows

MAX = {1: F.max_pool1d, 2: F.max_pool2d, 3: F.max_pool3d}
AVG = {1: F.avg_pool1d, 2: F.avg_pool2d, 3: F.avg_pool3d}
ADAPTIVE_MAX = {1: F.adaptive_max_pool1d, 2: F.adaptive_max_pool2d, 3: F.adaptive_max_pool3d}
ADAPTIVE_AVG = {1: F.adaptive_avg_pool1d, 2: F.adaptive_avg_pool2d, 3: F.adaptive_avg_pool3d}


def per_axis(value, axes):
    return value if isinstance(value, tuple) else (value,) * axes


def windows(sizes, kernel, stride=None, padding=0, dilation=1, ceil_mode=False):
    """For each window its places in the input, and how many elements it has with the padding."""
    axes = len(sizes)
    kernel = per_axis(kernel, axes)
    along = []
    for n, k, s, p, d in zip(
        sizes,
        kernel,
        per_axis(kernel if stride is None else stride, axes),
        per_axis(padding, axes),
        per_axis(dilation, axes),
        strict=True,
    ):
        room = (n + 2 * p - d * (k - 1) - 1) / s
        count = (math.ceil(room) if ceil_mode else math.floor(room)) + 1
        firsts = [c * s - p for c in range(count) if c * s - p < n]
        along.append(
            [
                ([f + j * d for j in range(k) if 0 <= f + j * d < n], min(f + k, n + p) - f)
                for f in firsts
            ]
        )
    shape = tuple(map(len, along))
    for place in np.ndindex(*shape):
        parts = [along[d][i] for d, i in enumerate(place)]
        yield place, [p for p, _ in parts], math.prod(n for _, n in parts)


def adaptive(sizes, output):
    along = [
        [list(range(i * n // m, -(-(i + 1) * n // m))) for i in range(m)]
        for n, m in zip(sizes, output, strict=True)
    ]
    for place in np.ndindex(*output):
        parts = [along[d][i] for d, i in enumerate(place)]
        yield place, parts, math.prod(map(len, parts))


def pooled(x, axes, boxes, reduce):
    """``reduce(elements, count)`` of every box, the elements of a box last."""
    boxes = list(boxes)
    shape = tuple(np.max([place for place, _, _ in boxes], 0) + 1)
    out = np.zeros((*x.shape[:-axes], *shape))
    for place, parts, count in boxes:
        inside = x[(..., *np.ix_(*parts))]
        inside = inside.reshape(*x.shape[:-axes], math.prod(map(len, parts)))
        out[(..., *place)] = reduce(inside, count)
    return out


# shape, arguments that maxima and means share
CASES = [
    ((2, 3, 8), {"kernel_size": 2}),
    ((3, 9), {"kernel_size": 3, "stride": 2, "padding": 1}),
    ((1, 2, 7), {"kernel_size": 3, "stride": 3, "ceil_mode": True}),
    ((1, 1, 5), {"kernel_size": 2, "stride": 3, "padding": 1, "ceil_mode": True}),
    ((0, 2, 5), {"kernel_size": 2}),
    ((2, 0, 5), {"kernel_size": 2}),
    ((1, 2, 6, 5), {"kernel_size": (3, 2), "stride": (2, 1), "padding": (1, 0)}),
    ((1, 6, 6), {"kernel_size": 3, "stride": 2, "padding": 1, "ceil_mode": True}),
    ((1, 2, 4, 4), {"kernel_size": 4, "stride": [], "padding": 2}),
    ((1, 2, 3, 4, 5), {"kernel_size": 2, "stride": 1, "padding": (1, 0, 1)}),
    ((1, 2, 3, 4), {"kernel_size": (1, 2, 3), "stride": 2, "ceil_mode": True}),
    # tiles: those that cover their lines, with columns left over, between them, rows overlapping
    ((1, 2, 40, 56), {"kernel_size": 2}),
    ((2, 24, 48), {"kernel_size": (4, 8)}),
    ((2, 9, 13), {"kernel_size": (3, 6)}),
    ((2, 7, 14), {"kernel_size": (2, 2), "stride": (3, 4)}),
    ((2, 6, 12), {"kernel_size": (3, 4), "stride": (1, 4)}),
    ((1, 2, 4, 6, 20), {"kernel_size": 2}),
]
AXES = [1, 1, 1, 1, 1, 1, 2, 2, 2, 3, 3, 2, 2, 2, 2, 2, 3]
POOLS = [(axes, *case) for axes, case in zip(AXES, CASES, strict=True)]


def plain(options):
    """The arguments as the reference takes them."""
    rest = {k: v for k, v in options.items() if not (k == "stride" and v == [])}
    return rest.pop("kernel_size"), rest


@pytest.mark.parametrize(("axes", "shape", "options"), POOLS)
@pytest.mark.parametrize("dilation", [1, 2])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
def test_max_pool_is_its_definition(rng, axes, shape, options, dilation, dtype):
    x = rng.integers(-50, 50, shape).astype(dtype)
    kernel, rest = plain(options)
    try:
        y = MAX[axes](mg.tensor(x), **options, dilation=dilation)
    except ValueError:
        span = dilation * (np.max(kernel) - 1) + 1
        assert span > min(shape[-axes:]) + 2 * np.max(rest.get("padding", 0))
        return
    boxes = windows(shape[-axes:], kernel, dilation=dilation, **rest)
    expected = pooled(x, axes, boxes, lambda inside, _: inside.max(-1))
    oracle.assert_same(y.numpy(), expected.astype(dtype))


@pytest.mark.parametrize(("axes", "shape", "options"), POOLS)
@pytest.mark.parametrize("include", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_avg_pool_is_its_definition(rng, axes, shape, options, include, dtype):
    x = rng.standard_normal(shape).astype(dtype)
    kernel, rest = plain(options)
    y = AVG[axes](mg.tensor(x), **options, count_include_pad=include)

    def mean(inside, count):
        return inside.astype(np.float64).sum(-1) / (count if include else inside.shape[-1])

    expected = pooled(x, axes, windows(shape[-axes:], kernel, **rest), mean)
    assert y.dtype == dtype
    eps = np.finfo(dtype).eps
    np.testing.assert_allclose(y.numpy(), expected, rtol=2 * eps, atol=8 * eps)


@pytest.mark.parametrize(
    ("axes", "shape", "output"),
    [
        (1, (2, 7), 3),
        (1, (1, 2, 3), 5),
        (2, (2, 3, 5, 4), (2, 3)),
        (2, (3, 6, 6), (3, 2)),
        (2, (0, 2, 4, 4), (1, 1)),
        (3, (2, 3, 4, 5), (2, 4, 3)),
        (2, (2, 30, 40), (1, 1)),
        (3, (2, 3, 4, 5), (2, 1, 1)),
        (3, (2, 1, 8, 8), (2, 2, 2)),  # boxes that share the one element of an axis
        (3, (2, 1, 8, 66), (3, 4, 33)),
        (3, (2, 1, 4, 2), (2, 1, 1)),
    ],
)
def test_adaptive_pools_are_their_definition(rng, axes, shape, output):
    x = rng.standard_normal(shape)
    size = output if isinstance(output, tuple) else (output,)
    boxes = list(adaptive(shape[-axes:], size))
    mean = pooled(x, axes, boxes, lambda inside, count: inside.sum(-1) / count)
    top = pooled(x, axes, boxes, lambda inside, _: inside.max(-1))
    np.testing.assert_allclose(ADAPTIVE_AVG[axes](mg.tensor(x), output).numpy(), mean, atol=1e-15)
    oracle.assert_same(ADAPTIVE_MAX[axes](mg.tensor(x), output).numpy(), top)


LONG = [
    ({"kernel_size": 2}, 1300),
    ({"kernel_size": (2, 3), "stride": (1, 2), "padding": (1, 1)}, 1301),
    ({"kernel_size": (2, 300), "stride": (1, 1)}, 900),
    ({"kernel_size": (1, 700), "stride": (1, 5)}, 720),
    ({"kernel_size": (3, 1100)}, 1100),
    ({"kernel_size": (2, 650)}, 1300),
    ({"kernel_size": (4, 1100)}, 1100),
    # lines that a strip holds, with more boxes than it does
    ({"kernel_size": 2, "stride": 1, "padding": 1}, 511),
    ({"kernel_size": 2, "stride": 1, "padding": 1}, 512),
    ({"kernel_size": (1, 4), "stride": 1, "padding": (0, 2)}, 512),
]


@pytest.mark.parametrize(("options", "columns"), LONG)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_lines_longer_than_a_strip(rng, options, columns, dtype):
    x = rng.permutation(2 * 4 * columns).reshape(2, 4, columns).astype(dtype)
    kernel, rest = plain(options)
    boxes = list(windows(x.shape[-2:], kernel, **rest))
    t = mg.tensor(x, requires_grad=True)
    y = F.max_pool2d(t, **options)
    top = y.detach().numpy()
    oracle.assert_same(top, pooled(x, 2, boxes, lambda i, _: i.max(-1)).astype(dtype))
    mean = F.avg_pool2d(t, **options)
    expected = pooled(x, 2, boxes, lambda i, n: i.astype(np.float64).sum(-1) / n)
    np.testing.assert_allclose(mean.detach().numpy(), expected, rtol=4 * np.finfo(dtype).eps)
    g = rng.integers(-9, 9, top.shape).astype(dtype)
    by_max, by_mean = np.zeros_like(x), np.zeros(x.shape)
    for place, parts, count in boxes:
        for lead in range(2):
            at = (lead, *np.ix_(*parts))
            by_mean[at] += g[(lead, *place)] / count
            by_max[lead][np.where(x[lead] == top[(lead, *place)])] += g[(lead, *place)]
    oracle.assert_same(mg.grad(y, [t], mg.tensor(g))[0].numpy(), by_max)
    found = mg.grad(mean, [t], mg.tensor(g))[0].numpy()
    np.testing.assert_allclose(found, by_mean, atol=2000 * np.finfo(dtype).eps)


@pytest.mark.parametrize("shape", [(1, 256), (3, 511), (1, 512), (1, 513)])
@pytest.mark.parametrize("output", [511, 512, 513, 1024, 1025])
def test_gradients_of_more_adaptive_boxes_than_a_strip_holds(rng, shape, output):
    x = mg.tensor(rng.standard_normal(shape), requires_grad=True)
    g = rng.standard_normal((*shape[:-1], output))
    expected = np.zeros(shape)
    for (i,), (places,), count in adaptive(shape[-1:], (output,)):
        expected[:, places] += g[:, i : i + 1] / count
    for y in (
        F.adaptive_avg_pool1d(x, output),
        F.interpolate(x[None], output, mode="area")[0],
    ):
        found = mg.grad(y, [x], mg.tensor(g))[0].numpy()
        np.testing.assert_allclose(found, expected, atol=1e-13)


def test_boxes_of_rows_in_any_order(rng):
    x = rng.standard_normal((5, 600))
    at = PoolingWindows((3, 2), (3, 0, 2, 590, 0), (2, 1, 3, 9, 580), (1, 1))
    t = mg.tensor(x, requires_grad=True)
    y = t.apply_row(POOL_SUM, at)
    rows, columns = (slice(3, 5), slice(0, 1), slice(2, 5)), (slice(590, 599), slice(0, 580))
    expected = [[x[r, c].sum() for c in columns] for r in rows]
    np.testing.assert_allclose(y.detach().numpy(), expected, rtol=1e-13)
    oracle.check_gradients(lambda t: t.apply_row(POOL_SUM, at).square(), [x], rng)


def test_adaptive_sizes_may_be_kept_or_nothing():
    x = mg.arange(24).to(mg.float64).reshape(1, 2, 3, 4)
    assert F.adaptive_avg_pool2d(x, None).tolist() == x.tolist()
    assert F.adaptive_avg_pool2d(x, (1, None)).tolist() == x.mean(2, True).tolist()
    assert F.adaptive_max_pool2d(x, (None, 1)).tolist() == x.amax(3, True).tolist()
    assert F.adaptive_avg_pool2d(x, (0, 2)).shape == (1, 2, 0, 2)
    assert F.adaptive_max_pool2d(x, 0).shape == (1, 2, 0, 0)


@pytest.mark.parametrize(("axes", "shape", "options"), POOLS)
def test_indices_say_where_the_maxima_are(rng, axes, shape, options):
    x = rng.integers(0, 3, shape).astype(np.float64)  # with ties
    values, indices = MAX[axes](mg.tensor(x), **options, return_indices=True)
    assert indices.dtype is mg.int64
    assert values.shape == indices.shape
    flat = x.reshape(*shape[:-axes], math.prod(shape[-axes:]))
    rows = indices.numpy().reshape(*shape[:-axes], math.prod(indices.shape[-axes:]))
    picked = np.take_along_axis(flat, rows, -1)
    oracle.assert_same(picked.reshape(values.shape), values.numpy())
    kernel, rest = plain(options)
    sizes = shape[-axes:]
    for place, parts, _ in windows(sizes, kernel, **rest):
        inside = [np.ravel_multi_index(p, sizes) for p in itertools.product(*parts)]
        for lead in np.ndindex(*shape[:-axes]):
            first = inside[int(np.argmax(flat[lead][inside]))]
            assert indices.numpy()[(*lead, *place)] == first


def test_the_gradient_goes_to_the_first_of_ties_and_to_the_first_nan():
    for dtype in (mg.float32, mg.float64):
        x = mg.tensor([[1.0, 2.0, 2.0, 0.0]], dtype, requires_grad=True)
        (g,) = mg.grad(F.max_pool1d(x, 4).square().sum(), [x], create_graph=True)
        assert g.tolist() == [[0.0, 4.0, 0.0, 0.0]]
        assert mg.grad(g.sum(), [x])[0].tolist() == [[0.0, 2.0, 0.0, 0.0]]
        x = mg.tensor([[1.0, math.nan, math.inf, math.nan]], dtype, requires_grad=True)
        y = F.max_pool1d(x, 4)
        y.sum().backward()
        assert math.isnan(y.item())
        assert x.grad.tolist() == [[0.0, 1.0, 0.0, 0.0]]


# Tiles that cover their lines, in strips of one and of several; rows of them that overlap and that
# leave lines out.
TILES = [
    ((2, 9, 12), {"kernel_size": (3, 4)}),
    ((1, 8, 35), {"kernel_size": (2, 7), "stride": (3, 7)}),
    ((2, 6, 24), {"kernel_size": (3, 8), "stride": (1, 8)}),
    ((1, 7, 1030), {"kernel_size": (2, 5)}),
    ((1, 2, 600), {"kernel_size": (2, 600)}),
]


@pytest.mark.parametrize(("shape", "options"), TILES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", ["apart", "tied", "nan"])
def test_gradients_of_tiles_go_where_the_indices_say(rng, shape, options, dtype, kind):
    x = rng.permutation(math.prod(shape)).reshape(shape).astype(dtype)
    if kind != "apart":  # in some of the strips
        x[..., : shape[1] // 2, :] = -1 if kind == "tied" else math.nan
    t = mg.tensor(x, requires_grad=True)
    y, indices = F.max_pool2d(t, **options, return_indices=True)
    g = rng.standard_normal(y.shape).astype(dtype)
    y.backward(mg.tensor(g))
    expected = np.zeros((shape[0], shape[1] * shape[2]), dtype)
    for c, places in enumerate(indices.numpy()):
        for place, upstream in zip(places.ravel(), g[c].ravel(), strict=True):
            expected[c, place] += upstream
    oracle.assert_same(t.grad.numpy(), expected.reshape(shape))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("rows", [{}, {"stride": (1, 2)}, {"stride": (3, 2), "dilation": (2, 1)}])
@pytest.mark.parametrize("lines", [1, 2])
@pytest.mark.parametrize("columns", [2, 5, 14, 16, 18, 30, 32, 34, 56, 66, 512, 514])
def test_maxima_of_pairs_of_columns(columns, lines, rows, dtype, rng):
    """Windows of one or two lines, which may skip some and the last column, or overlap."""
    x = rng.integers(0, 4, (3, 7, columns)).astype(dtype)  # with ties
    x[rng.random(x.shape) < 0.1] = math.nan
    t = mg.tensor(x, requires_grad=True)
    y = F.max_pool2d(t, (lines, 2), **rows)
    step, apart = rows.get("stride", (lines,))[0], rows.get("dilation", (1,))[0]
    g = rng.standard_normal(y.shape).astype(dtype)
    maxima, expected = np.zeros_like(g), np.zeros_like(x)
    for c, i, j in np.ndindex(y.shape):
        at = (c, slice(i * step, i * step + apart * lines, apart), slice(2 * j, 2 * j + 2))
        tile = x[at]
        place = np.unravel_index(np.argmax(tile), tile.shape)  # the first, or the first NaN
        maxima[c, i, j] = tile[place]
        expected[at][place] += g[c, i, j]
    oracle.assert_same(y.detach().numpy(), maxima)
    y.backward(mg.tensor(g))
    oracle.assert_same(t.grad.numpy(), expected)


@pytest.mark.parametrize("rows", [1, 3, 4])
def test_gradients_of_rows_that_several_tiles_share(rng, rows):
    t = mg.tensor(rng.standard_normal((2, rows, 12)), requires_grad=True)
    y, indices = F.adaptive_max_pool2d(t, (5, 3), return_indices=True)
    y.backward(mg.ones(y.shape, dtype=mg.float64))
    expected = np.zeros((2, rows * 12))
    for c, places in enumerate(indices.numpy()):
        np.add.at(expected[c], places.ravel(), 1)
    oracle.assert_same(t.grad.numpy(), expected.reshape(t.shape))


def test_minus_infinity_in_the_input_is_not_the_padding():
    x = mg.full((1, 4), -math.inf, requires_grad=True)
    y, indices = F.max_pool1d(x, 3, stride=2, padding=1, return_indices=True)
    assert y.tolist() == [[-math.inf, -math.inf]]
    assert indices.tolist() == [[0, 1]]
    y.sum().backward()
    assert x.grad.tolist() == [[1.0, 1.0, 0.0, 0.0]]


def test_infinities_stay_in_their_windows():
    x = mg.tensor([[1.0, 2.0, math.inf, 4.0]])
    assert F.avg_pool1d(x, 2).tolist() == [[1.5, math.inf]]
    assert F.adaptive_avg_pool1d(x, 2).tolist() == [[1.5, math.inf]]


@pytest.mark.parametrize("value", [math.nan, math.inf])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("kernel", "stride"), [((2, 4), 3), ((3, 3), 2), ((2, 2), 2), ((4, 5), 4)])
def test_gradients_that_are_no_numbers_stay_in_their_windows(kernel, stride, dtype, value):
    for sizes in ((6, 5), (12, 40), (9, 33)):
        x = mg.tensor(np.ones((1, *sizes), dtype), requires_grad=True)
        y = F.avg_pool2d(x, kernel, stride, padding=1)
        g = np.ones(y.shape, dtype)
        g[0, 1, 0] = value
        y.backward(mg.tensor(g))
        touched = np.zeros(sizes, bool)
        touched[stride - 1 : stride - 1 + kernel[0], : kernel[1] - 1] = True
        np.testing.assert_array_equal(np.isfinite(x.grad.numpy()[0]), ~touched)


def test_means_of_float32_are_summed_in_float64(rng):
    x = rng.uniform(1, 2, (1, 300, 300)).astype(np.float32) + np.float32(1000)
    exact = x.astype(np.float64).mean()
    for y in (F.adaptive_avg_pool2d(mg.tensor(x), 1), F.avg_pool2d(mg.tensor(x), 300)):
        # the sum and the quotient, rounded
        oracle.assert_ulps(y.numpy(), exact.reshape(1, 1, 1), 1.5)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [1, 2, 7, 16, 33, 63, 64, 127, 128, 129, 300, 4096, 4097, 10000])
def test_a_plane_that_is_one_box(n, dtype, rng):
    x = rng.uniform(1, 2, (3, n)).astype(dtype)
    t = mg.tensor(x, requires_grad=True)
    y = F.adaptive_avg_pool1d(t, 1)
    exact = x.astype(np.longdouble).mean(1, keepdims=True)
    oracle.assert_ulps(y.detach().numpy(), exact, 1.5 if dtype is np.float32 else 4)
    y.backward(mg.tensor([[1.0], [0.0], [-3.0]], dtype=t.dtype))
    rows = [np.full(n, g * dtype(1 / n)) for g in (1, 0, -3)]
    oracle.assert_ulps(t.grad.numpy(), np.array(rows, dtype), 1)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("lines", [1, 2])
@pytest.mark.parametrize("columns", [4, 8, 16, 18, 32, 33, 46, 56, 66, 512, 514])
def test_means_of_pairs_of_columns(columns, lines, dtype, rng):
    """Windows of one or two lines, which may leave out the last ones and the last column."""
    for rows in (2 * lines, 5 * lines, 7 * lines + lines - 1):
        x = rng.uniform(-1, 1, (3, rows, columns)).astype(dtype)
        x[1, 1, 2], x[2, -1, -1] = math.inf, math.nan
        t = mg.tensor(x, requires_grad=True)
        y = F.avg_pool2d(t, (lines, 2))
        high, wide = rows // lines, columns // 2
        tiles = x[:, : high * lines, : wide * 2].reshape(3, high, lines, wide, 2)
        exact = tiles.astype(np.longdouble).mean((2, 4))
        inside = np.isfinite(exact)
        got = y.detach().numpy()
        assert abs(got[inside] - exact[inside]).max() <= np.finfo(dtype).eps
        oracle.assert_same(got[~inside], exact[~inside].astype(dtype))
        g = rng.standard_normal(y.shape).astype(dtype)
        y.backward(mg.tensor(g))
        expected = np.zeros_like(x)
        shares = (g / dtype(2 * lines)).repeat(lines, 1).repeat(2, 2)
        expected[:, : high * lines, : wide * 2] = shares
        oracle.assert_same(t.grad.numpy(), expected)


@pytest.mark.parametrize("n", [40, 128, 1000])
def test_a_mean_of_floats_whose_pairs_overflow(n):
    x = np.full((4, n), 3e38, np.float32)
    x[1, -1], x[2, 0] = math.inf, math.nan
    y = F.adaptive_avg_pool1d(mg.tensor(x), 1).numpy()[:, 0]
    oracle.assert_same(y, np.array([3e38, math.inf, math.nan, 3e38], np.float32))


@pytest.mark.parametrize(("axes", "shape", "options"), [p for p in POOLS if 0 < np.prod(p[1]) < 40])
def test_pools_have_gradients_of_every_order(rng, axes, shape, options):
    x = rng.permutation(np.prod(shape)).reshape(shape) / 5.0  # far from ties
    oracle.check_gradients(lambda t: MAX[axes](t, **options).square(), [x], rng)
    oracle.check_gradients(lambda t: AVG[axes](t, **options), [x], rng)
    oracle.check_gradients(
        lambda t: AVG[axes](t, **options, count_include_pad=False).square(), [x], rng
    )


def test_adaptive_pools_have_gradients_of_every_order(rng):
    x = rng.permutation(40).reshape(2, 4, 5) / 5.0
    oracle.check_gradients(lambda t: F.adaptive_avg_pool2d(t, (3, 2)).square(), [x], rng)
    oracle.check_gradients(lambda t: F.adaptive_max_pool2d(t, (3, 2)).square(), [x], rng)
    oracle.check_gradients(lambda t: F.avg_pool2d(t, 2, divisor_override=-3), [x], rng)


@pytest.mark.parametrize("pool", [F.max_pool1d, F.avg_pool1d])
def test_gradients_of_empty_batches_have_their_shape(pool):
    x = mg.zeros(0, 2, 5, requires_grad=True)
    (g,) = mg.grad(pool(x, 2).sum(), [x])
    assert g.shape == (0, 2, 5)


@pytest.mark.parametrize("layout", oracle.LAYOUTS)
def test_any_layout_gives_the_same_bits(rng, layout):
    x = rng.standard_normal((2, 3, 6, 5))
    t = oracle.tensor_in_layout(x, layout)
    for pool in (F.max_pool2d, F.avg_pool2d):
        oracle.assert_same(pool(t, 3, 2, 1).numpy(), pool(mg.tensor(x), 3, 2, 1).numpy())


X = mg.ones(1, 3, 5, 5)
MESSAGES = [
    (lambda: F.max_pool2d(mg.ones(5, 5), 2), ValueError, "[max_pool2d] the input has shape (5, 5)"),
    (lambda: F.max_pool2d(X, 6), ValueError, "no window of (6, 6) with dilation (1, 1) fits"),
    (
        lambda: F.max_pool2d(X, 2, padding=2),
        ValueError,
        "padding 2 is more than half of the kernel",
    ),
    (lambda: F.max_pool2d(X, 0), ValueError, "kernel_size is 0, but must be at least 1"),
    (lambda: F.max_pool2d(X, 2, stride=0), ValueError, "stride is 0, but must be at least 1"),
    (lambda: F.max_pool2d(X, (2, 2, 2)), ValueError, "kernel_size is (2, 2, 2), but there are 2"),
    (lambda: F.max_pool2d(X, 2.0), TypeError, "kernel_size must be an integer, not float"),
    (lambda: F.max_pool2d(X > 0, 2), TypeError, "[max_pool2d] offered for numbers, not bool"),
    (
        lambda: F.max_pool1d(mg.ones(1, 2), 2, padding=1, dilation=3),
        ValueError,
        "[max_pool1d] a window of (2,) with dilation (3,) lies in the padding (1,)",
    ),
    (lambda: F.max_pool1d(mg.ones(1, 0), 2, padding=1), ValueError, "fits into the input"),
    (lambda: F.avg_pool2d(X, 2, divisor_override=0), ValueError, "divisor_override is 0"),
    (lambda: F.avg_pool2d(X.to(mg.int64), 2), TypeError, "[avg_pool2d] offered for floats"),
    (lambda: F.adaptive_avg_pool2d(X, -1), ValueError, "output_size is -1"),
    (lambda: F.adaptive_avg_pool2d(X, (1, 2, 3)), ValueError, "output_size is (1, 2, 3)"),
    (
        lambda: F.adaptive_avg_pool1d(mg.ones(2, 0), 1),
        ValueError,
        "[adaptive_avg_pool1d] the input of shape (2, 0) has an empty spatial dimension",
    ),
]


@pytest.mark.parametrize("number", range(len(MESSAGES)))
def test_errors_show_the_values_and_the_rule(number):
    f, kind, text = MESSAGES[number]
    with pytest.raises(kind) as caught:
        f()
    assert text in str(caught.value)


# ---- boxes ---------------------------------------------------------------------------------------

AT = PoolingWindows((2, 3), (0, 2, 1, 0, 4), (3, 1, 2, 3, 1), (1, 2))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_boxes_are_summed_and_spread(rng, dtype):
    x = mg.tensor(rng.integers(-9, 9, (2, 3, 5)).astype(dtype))
    sums = x.apply_row(POOL_SUM, AT)
    for i, (rows, j) in enumerate(itertools.product((slice(0, 3), slice(2, 3)), range(3))):
        columns = ([1, 3], [0, 2, 4], [4])[j]
        expected = x.numpy()[:, rows][..., columns].sum((1, 2))
        assert (sums.numpy().reshape(2, 6)[:, i] == expected).all()
    g = mg.tensor(rng.integers(-9, 9, (2, 2, 3)).astype(dtype))
    spread = g.apply_row(POOL_SUM_TRANSPOSE, (2, 3, 5), AT)
    assert (spread * x).sum().item() == (sums * g).sum().item()
    assert spread.dtype == dtype


def test_boxes_have_gradients_of_every_order(rng):
    x, g = rng.standard_normal((2, 3, 5)), rng.standard_normal((2, 2, 3))
    oracle.check_gradients(lambda t: t.apply_row(POOL_SUM, AT).square(), [x], rng)
    oracle.check_gradients(
        lambda t: t.apply_row(POOL_SUM_TRANSPOSE, (2, 3, 5), AT).square(), [g], rng
    )


def test_the_kernels_refuse_boxes_beyond_the_array():
    x = mg.ones(2, 5)
    for starts, sizes, step in (((4,), (2,), (1,)), ((5,), (1,), (1,)), ((0,), (3,), (3,))):
        for row in (POOL_SUM, POOL_ARGMAX):
            with pytest.raises(IndexError):
                x.apply_row(row, PoolingWindows((1,), starts, sizes, step))
        with pytest.raises(IndexError):
            mg.ones(2, 1).apply_row(
                POOL_SUM_TRANSPOSE, (2, 5), PoolingWindows((1,), starts, sizes, step)
            )
    for starts, sizes, step in (((-1,), (2,), (1,)), ((0,), (0,), (1,)), ((0,), (2,), (0,))):
        with pytest.raises(ValueError, match="avg_pool"):
            x.apply_row(POOL_SUM, PoolingWindows((1,), starts, sizes, step))
    with pytest.raises(ValueError, match="avg_pool"):
        mg.ones(2, 2).apply_row(POOL_SUM_TRANSPOSE, (2, 5), PoolingWindows((1,), (0,), (2,), (1,)))
    with pytest.raises(TypeError, match="int64"):
        x.to(mg.int64).apply_row(POOL_SUM, PoolingWindows((1,), (0,), (2,), (1,)))


def test_boxes_give_the_same_bits_for_any_number_of_threads(rng):
    x = mg.tensor(rng.standard_normal((64, 40, 40)).astype(np.float32))
    found, before = [], mg.get_num_threads()
    for threads in (1, 2, 3):
        mg.set_num_threads(threads)
        t = x.detach().requires_grad_(True)
        y = F.avg_pool2d(t, 3, 2, 1) + F.max_pool2d(t, 3, 2, 1)
        found.append((y.detach().numpy(), mg.grad(y.sum(), [t])[0].numpy()))
    mg.set_num_threads(before)
    for value, gradient in found[1:]:
        oracle.assert_same(value, found[0][0])
        oracle.assert_same(gradient, found[0][1])


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("adaptive_avg_pool1d", lambda: F.adaptive_avg_pool1d(mg.ones(1, 1, 4), 2**40)),
        ("adaptive_max_pool2d", lambda: F.adaptive_max_pool2d(mg.ones(1, 4, 4), (2**40, 3))),
        ("interpolate", lambda: F.interpolate(mg.ones(1, 1, 4), 2**40)),
        ("interpolate", lambda: F.interpolate(mg.ones(1, 1, 4), scale_factor=2.0**40, mode="area")),
    ],
)
def test_outputs_beyond_memory_are_refused_at_once(name, call):
    with pytest.raises(MemoryError, match=rf"^\[{name}\] no memory for"):
        call()


# Small planes are worked on several at a time. Windows overlap, lie apart, are tiles, pairs, of
# every size, all of a plane; lines are longer than a vector; there are three axes.
SMALL = [
    ((7, 7), lambda x, pool: pool[0](x, 3, 1, 1)),
    ((7, 7), lambda x, pool: pool[0](x, 2, 2)),
    ((5, 6), lambda x, pool: pool[0](x, 2, 2, 1)),
    ((3, 3), lambda x, pool: pool[0](x, 2, 1)),
    ((14, 14), lambda x, pool: pool[0](x, 5, 2, 2)),
    ((8, 8), lambda x, pool: pool[0](x, 4)),
    ((12, 20), lambda x, pool: pool[0](x, (3, 6))),
    ((2, 128), lambda x, pool: pool[0](x, (1, 2), (2, 4))),
    ((7, 7), lambda x, pool: pool[1](x, 3)),
    ((7, 6), lambda x, pool: pool[1](x, (9, 1))),
    ((4, 4), lambda x, pool: pool[1](x, 1)),
    ((6, 6, 6), lambda x, pool: pool[2](x, 3, 2, 1)),
]
KINDS = [
    (F.max_pool2d, F.adaptive_max_pool2d, F.max_pool3d),
    (F.avg_pool2d, F.adaptive_avg_pool2d, F.avg_pool3d),
]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("pool", KINDS, ids=["max", "avg"])
@pytest.mark.parametrize(("sizes", "run"), SMALL)
def test_small_planes_together_are_what_each_is_alone(rng, sizes, run, pool, dtype):
    for planes in (9, 16, 37):
        x = rng.integers(-4, 4, (planes, *sizes)).astype(dtype)  # with ties
        x[2].flat[1], x[4].flat[:3], x[7] = math.nan, math.inf, -math.inf
        t = mg.tensor(x, requires_grad=True)
        y = run(t, pool)
        g = rng.integers(-9, 9, y.shape).astype(dtype)
        y.backward(mg.tensor(g))
        for plane in range(planes):
            alone = mg.tensor(x[plane : plane + 1], requires_grad=True)
            expected = run(alone, pool)
            oracle.assert_same(y.detach().numpy()[plane], expected.detach().numpy()[0])
            expected.backward(mg.tensor(g[plane : plane + 1]))
            oracle.assert_same(t.grad.numpy()[plane], alone.grad.numpy()[0])


# Tiles of pairs of columns, which are summed up in pairs of lines too, side by side or apart, and
# with the first further right; and boxes that are no tiles.
@pytest.mark.parametrize(
    ("kernel", "stride", "padding"),
    [
        *[((lines, 2), (1, 2), 0) for lines in range(1, 7)],
        *[((lines, 4), (lines, 4), 0) for lines in range(1, 7)],
        *[((3, 6), (2, columns), 0) for columns in (1, 2, 6, 7, 8)],
        *[((5, 3), (2, 6), (0, 1)), ((4, 8), 10, 0), ((4, 3), 3, 0), ((3, 3), 2, 1)],
    ],
)
@pytest.mark.parametrize("sizes", [(6, 8), (9, 13), (16, 16), (7, 21)])
def test_means_of_boxes_round_as_those_of_a_plane_alone(sizes, kernel, stride, padding, rng):
    x = rng.standard_normal((17, *sizes)) * 2.0 ** rng.integers(-9, 9, (17, *sizes))
    y = F.avg_pool2d(mg.tensor(x), kernel, stride, padding).numpy()
    for plane in range(len(x)):
        alone = F.avg_pool2d(mg.tensor(x[plane : plane + 1]), kernel, stride, padding).numpy()
        oracle.assert_same(y[plane], alone[0])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [4, 25, 49, 196, 1000, 4097])
def test_means_of_planes_together_are_what_each_is_alone(n, dtype, rng):
    x = rng.standard_normal((21, n)).astype(dtype)
    x[3, 1], x[8, -1], x[9] = math.inf, math.nan, np.finfo(dtype).max / 1.5
    y = F.adaptive_avg_pool1d(mg.tensor(x), 1).numpy()
    for plane in range(len(x)):
        alone = F.adaptive_avg_pool1d(mg.tensor(x[plane : plane + 1]), 1).numpy()
        oracle.assert_same(y[plane], alone[0])
    finite = np.isfinite(x).all(1) & (np.arange(len(x)) != 9)
    exact = x[finite].astype(np.longdouble).mean(1, keepdims=True)
    assert abs(y[finite] - exact).max() <= np.finfo(dtype).eps
