"""Normalisation against NumPy in a wider type, running statistics, edges, and dropout."""

from __future__ import annotations

import math

import numpy as np
import oracle
import pytest

import minigrad as mg
from minigrad import nn
from minigrad.nn import functional as F


def standardised(x, axes, eps):
    x = x.astype(oracle.wide(x.dtype))
    mean = x.mean(axes, keepdims=True)
    return (x - mean) / np.sqrt(((x - mean) ** 2).mean(axes, keepdims=True) + eps)


def over_channels(v, ndim):
    return v.reshape(-1, *(1,) * (ndim - 2))


SHAPES = [(4, 3), (2, 3, 5), (2, 4, 3, 2), (1, 2, 3, 2, 2)]
CLOSE = {np.float32: {"rtol": 2e-6, "atol": 2e-6}, np.float64: {"rtol": 1e-13, "atol": 1e-14}}
DTYPES = pytest.mark.parametrize("dtype", [np.float32, np.float64])


# ---- batches -------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", SHAPES)
@DTYPES
def test_batch_norm_in_training(rng, shape, dtype):
    x = (rng.standard_normal(shape) * 3 + 2).astype(dtype)
    w, b, mean, var = (rng.uniform(0.5, 2, shape[1]).astype(dtype) for _ in range(4))
    running = mg.tensor(mean), mg.tensor(var)
    y = F.batch_norm(mg.tensor(x), *running, mg.tensor(w), mg.tensor(b), True, 0.3, 1e-3)
    axes = (0, *range(2, x.ndim))
    expected = standardised(x, axes, 1e-3) * over_channels(w, x.ndim) + over_channels(b, x.ndim)
    np.testing.assert_allclose(y.numpy(), expected, **CLOSE[dtype])
    assert y.dtype == dtype
    wide = x.astype(np.float64)
    np.testing.assert_allclose(
        running[0].numpy(), 0.7 * mean + 0.3 * wide.mean(axes), **CLOSE[dtype]
    )
    np.testing.assert_allclose(
        running[1].numpy(), 0.7 * var + 0.3 * wide.var(axes, ddof=1), **CLOSE[dtype]
    )


@pytest.mark.parametrize("shape", SHAPES)
def test_batch_norm_in_use(rng, shape):
    x, mean, var = rng.standard_normal(shape), *rng.uniform(0.5, 2, (2, shape[1]))
    running = mg.tensor(mean), mg.tensor(var)
    y = F.batch_norm(mg.tensor(x), *running, eps=0.1)
    expected = (x - over_channels(mean, x.ndim)) / np.sqrt(over_channels(var, x.ndim) + 0.1)
    np.testing.assert_allclose(y.numpy(), expected, rtol=1e-14)
    assert running[0].tolist() == mean.tolist()
    assert running[1].tolist() == var.tolist()


def test_batch_norm_gradients(rng):
    x, w, b = rng.standard_normal((3, 2, 2)), rng.standard_normal(2), rng.standard_normal(2)
    mean, var = mg.tensor([0.5, -1.0], mg.float64), mg.tensor([2.0, 0.3], mg.float64)
    oracle.check_gradients(
        lambda x, w, b: F.batch_norm(x, None, None, w, b, True), [x, w, b], rng, rtol=1e-7
    )
    oracle.check_gradients(lambda x, w, b: F.batch_norm(x, mean, var, w, b), [x, w, b], rng)


def test_running_statistics_are_written_in_place_and_outside_the_graph(rng):
    mean, var = mg.zeros(2, dtype=mg.float64), mg.ones(2, dtype=mg.float64)
    shown = mean.numpy()
    x = mg.tensor(rng.standard_normal((4, 2)), requires_grad=True)
    y = F.batch_norm(x, mean, var, training=True, momentum=1.0)
    np.testing.assert_allclose(shown, x.detach().numpy().mean(0), atol=1e-15)
    assert not mean.requires_grad
    mean.zero_()
    var.zero_()
    y.sum().backward()  # nothing that was saved has been overwritten
    assert abs(x.grad.numpy()).max() < 1e-14  # a shift of all ones changes nothing


def test_an_empty_batch_changes_no_statistics():
    mean, var = mg.zeros(2), mg.ones(2)
    x = mg.zeros(0, 2, 3, requires_grad=True)
    for norm in (F.batch_norm, F.instance_norm):
        y = norm(x, mean, var, mg.ones(2), mg.ones(2), True)
        assert y.shape == (0, 2, 3)
        assert mg.grad(y.sum(), [x])[0].shape == (0, 2, 3)
        assert (mean.tolist(), var.tolist()) == ([0.0, 0.0], [1.0, 1.0])


# ---- instances, layers, groups -------------------------------------------------------------------


@pytest.mark.parametrize("shape", SHAPES[1:])
@DTYPES
def test_instance_norm(rng, shape, dtype):
    x = rng.standard_normal(shape).astype(dtype)
    w, b, mean, var = (rng.uniform(0.5, 2, shape[1]).astype(dtype) for _ in range(4))
    running = mg.tensor(mean), mg.tensor(var)
    axes = tuple(range(2, x.ndim))
    y = F.instance_norm(mg.tensor(x), *running, mg.tensor(w), mg.tensor(b), momentum=0.2, eps=1e-3)
    expected = standardised(x, axes, 1e-3) * over_channels(w, x.ndim) + over_channels(b, x.ndim)
    np.testing.assert_allclose(y.numpy(), expected, **CLOSE[dtype])
    wide = x.astype(np.float64)
    each = wide.mean(axes).mean(0), wide.var(axes, ddof=1).mean(0)
    for got, before, now in zip(running, (mean, var), each, strict=True):
        np.testing.assert_allclose(got.numpy(), 0.8 * before + 0.2 * now, **CLOSE[dtype])
    used = F.instance_norm(mg.tensor(x), *running, use_input_stats=False)
    assert used.tolist() == F.batch_norm(mg.tensor(x), *running).tolist()


@pytest.mark.parametrize(
    ("shape", "normalized"), [((4,), 4), ((2, 5), (5,)), ((2, 3, 4), (3, 4)), ((2, 3), [2, 3])]
)
@DTYPES
def test_layer_and_rms_norm(rng, shape, normalized, dtype):
    x = (rng.standard_normal(shape) + 1).astype(dtype)
    size = (normalized,) if isinstance(normalized, int) else tuple(normalized)
    w, b = rng.standard_normal(size).astype(dtype), rng.standard_normal(size).astype(dtype)
    axes = tuple(range(len(shape) - len(size), len(shape)))
    y = F.layer_norm(mg.tensor(x), normalized, mg.tensor(w), mg.tensor(b), 1e-3)
    np.testing.assert_allclose(y.numpy(), standardised(x, axes, 1e-3) * w + b, **CLOSE[dtype])
    wide = x.astype(oracle.wide(dtype))
    square = (wide**2).mean(axes, keepdims=True)
    y = F.rms_norm(mg.tensor(x), normalized, mg.tensor(w), 1e-3)
    np.testing.assert_allclose(y.numpy(), wide / np.sqrt(square + 1e-3) * w, **CLOSE[dtype])
    y = F.rms_norm(mg.zeros(size, dtype=dtype) + 1e-8, normalized)
    small = 1e-8 / np.sqrt(1e-16 + np.finfo(dtype).eps)
    np.testing.assert_allclose(y.numpy(), np.full(size, small), rtol=1e-5)


@pytest.mark.parametrize(("shape", "groups"), [((2, 4), 2), ((2, 6, 3), 3), ((1, 2, 2, 3), 1)])
@DTYPES
def test_group_norm(rng, shape, groups, dtype):
    x = rng.standard_normal(shape).astype(dtype)
    w, b = (rng.standard_normal(shape[1]).astype(dtype) for _ in range(2))
    y = F.group_norm(mg.tensor(x), groups, mg.tensor(w), mg.tensor(b), 1e-3)
    rows = standardised(x.reshape(shape[0], groups, -1), 2, 1e-3).reshape(shape)
    expected = rows * over_channels(w, x.ndim) + over_channels(b, x.ndim)
    np.testing.assert_allclose(y.numpy(), expected, **CLOSE[dtype])


@pytest.mark.parametrize("size", [1, 2, 3, 8])
def test_local_response_norm(rng, size):
    x = rng.standard_normal((2, 5, 3, 2))
    y = F.local_response_norm(mg.tensor(x), size, 0.3, 0.6, 0.9)
    for c in range(5):
        near = x[:, max(c - size // 2, 0) : c + (size - 1) // 2 + 1]
        expected = x[:, c] / (0.9 + 0.3 * (near**2).sum(1) / size) ** 0.6
        np.testing.assert_allclose(y.numpy()[:, c], expected, rtol=1e-14)


GRADIENTS = {
    "layer_norm": (lambda x, w, b: F.layer_norm(x, (2, 2), w, b), [(3, 2, 2), (2, 2), (2, 2)]),
    "rms_norm": (lambda x, w: F.rms_norm(x, 3, w), [(2, 3), (3,)]),
    "group_norm": (lambda x, w, b: F.group_norm(x, 2, w, b), [(2, 4, 2), (4,), (4,)]),
    "instance_norm": (
        lambda x, w, b: F.instance_norm(x, weight=w, bias=b),
        [(2, 2, 4), (2,), (2,)],
    ),
    "local_response_norm": (lambda x: F.local_response_norm(x, 2, 0.5), [(1, 3, 2)]),
    "normalize": (lambda x: F.normalize(x, dim=1), [(2, 3)]),
    "normalize p=3": (lambda x: F.normalize(x, 3.0, -1), [(2, 3)]),
    "normalize p=1": (lambda x: F.normalize(x, 1.0, 0), [(2, 3)]),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients(rng, name):
    f, shapes = GRADIENTS[name]
    inputs = [rng.uniform(0.3, 2, s) * rng.choice([-1.0, 1.0], s) for s in shapes]
    oracle.check_gradients(f, inputs, rng, rtol=1e-7, atol=1e-8)


@DTYPES
def test_a_large_mean_costs_no_digits(rng, dtype):
    x = (rng.standard_normal((4, 3, 50)) + 1e4).astype(dtype)  # the rounding of x itself counts not
    for axes, y in (
        ((0, 2), F.batch_norm(mg.tensor(x), None, None, training=True)),
        (2, F.instance_norm(mg.tensor(x))),
        (2, F.layer_norm(mg.tensor(x), 50)),
    ):
        error = abs(y.numpy() - standardised(x, axes, 1e-5)).max()
        # the mean is rounded to the spacing of numbers at 1e4
        assert error <= 2 * np.spacing(dtype(1e4))


@DTYPES
@pytest.mark.parametrize("n", [17, 100, 1024, 3000])
def test_rows_that_begin_far_from_their_mean(rng, dtype, n):
    x = rng.standard_normal((6, n))
    x[0, :16] += 1e3
    x[1] += np.linspace(0, 1e3, n)
    x[2] = 0
    x[2, -1] = 1
    x[3, 0] = 1e4
    x[4] = 3e18  # squares about the first elements, but not about the mean, are too large to add up
    x[4, :16] = 0
    x = x.astype(dtype)
    y = F.layer_norm(mg.tensor(x), n).numpy()
    expected = standardised(x, 1, 1e-5)
    assert abs(y - expected).max() <= 8 * np.finfo(dtype).eps * abs(expected).max()


@DTYPES
@pytest.mark.parametrize("n", [17, 100, 1024, 3000])
def test_a_row_does_not_depend_on_those_beside_it(rng, dtype, n):
    x, g = rng.standard_normal((2, 6, n)).astype(dtype)
    x[1, :16] += 1000  # moments are taken again
    x[2] = np.nan

    def results(rows):
        t = mg.tensor(x[rows], requires_grad=True)
        y = F.layer_norm(t, n)
        return [r.detach().numpy() for r in (y, *mg.grad(y, t, mg.tensor(g[rows])))]

    together = results(slice(None))
    for row in range(6):
        for all_rows, alone in zip(together, results(slice(row, row + 1)), strict=True):
            np.testing.assert_array_equal(all_rows[row], alone[0])


def test_constant_input_gives_zeros_with_gradients():
    x = mg.full((2, 3, 4), 7.0, requires_grad=True)
    for y in (
        F.layer_norm(x, 4),
        F.instance_norm(x),
        F.group_norm(x, 3),
        F.batch_norm(x, None, None, training=True),
    ):
        (g,) = mg.grad((y * mg.arange(4)).sum(), [x], create_graph=True)
        assert not y.detach().numpy().any()
        assert np.isfinite(g.detach().numpy()).all()
        assert np.isfinite(mg.grad(g.square().sum(), [x])[0].numpy()).all()


def test_empty_inputs_keep_their_shape():
    for f, shape in (
        (lambda t: F.layer_norm(t, (0,)), (2, 0)),
        (lambda t: F.layer_norm(t, 3), (0, 3)),
        (lambda t: F.rms_norm(t, 3), (0, 3)),
        (lambda t: F.group_norm(t, 2), (0, 4, 2)),
        (lambda t: F.local_response_norm(t, 2), (0, 4, 2)),
        (lambda t: F.normalize(t), (0, 4)),
    ):
        x = mg.zeros(shape, requires_grad=True)
        y = f(x)
        assert y.shape == shape
        assert mg.grad(y.sum(), [x])[0].shape == shape


# ---- the kernels -------------------------------------------------------------------------------

KERNELS = {
    "layer_norm": (lambda x, w, b: F.layer_norm(x, w.shape, w, b), -1),
    "rms_norm": (lambda x, w, b: F.rms_norm(x, w.shape, w) + b, -1),
    "batch_norm": (lambda x, w, b: F.batch_norm(x, None, None, w, b, True), 1),
    "batch_norm in use": (
        lambda x, w, b: F.batch_norm(x, mg.zeros_like(w) + 0.5, mg.ones_like(w), w, b),
        1,
    ),
    "instance_norm": (lambda x, w, b: F.instance_norm(x, weight=w, bias=b), 1),
    "group_norm": (lambda x, w, b: F.group_norm(x, 3, w, b), 1),
}
# Around the sizes of vectors, of four rows, of blocks and of strips.
SIZES = [(5, 3), (4, 33), (1, 1026), (9, 2049), (33, 66), (3, 3, 17), (6, 3, 1030), (3, 6, 5, 5)]
every_kernel = pytest.mark.parametrize("name", KERNELS)


def drawn_for(name, shape, rng, dtype=np.float64):
    axis = KERNELS[name][1]
    if name == "instance_norm" and len(shape) == 2:
        shape = (*shape, 7)
    n = shape[axis]
    return [rng.standard_normal(s).astype(dtype) for s in (shape, (n,), (n,), shape)]


@every_kernel
@pytest.mark.parametrize("shape", SIZES)
@DTYPES
def test_kernel_and_formula_agree(rng, name, shape, dtype):
    f = KERNELS[name][0]
    if name.startswith("batch") and shape[0] == 1:
        shape = (7, *shape[1:])
    x, w, b, g = (v.astype(dtype).astype(np.float64) for v in drawn_for(name, shape, rng))
    wide = [mg.tensor(v, requires_grad=True) for v in (x, w, b)]
    y = f(*wide)
    expected = [y, *mg.grad(y, wide, mg.tensor(g), create_graph=True)]
    given = [mg.tensor(v.astype(dtype), requires_grad=True) for v in (x, w, b)]
    y = f(*given)
    got = [y, *mg.grad(y, given, mg.tensor(g.astype(dtype)))]
    for a, e in zip(got, expected, strict=True):
        size = max(1.0, abs(e.detach().numpy()).max())
        error = abs(a.detach().numpy() - e.detach().numpy()).max()
        assert error <= (2e-5 if dtype is np.float32 else 1e-13) * size


@every_kernel
@pytest.mark.parametrize("shape", [(700, 129), (40, 48, 7, 7), (3, 66000)])
def test_the_same_bits_for_any_number_of_threads(rng, name, shape):
    x, w, b, g = drawn_for(name, shape, rng, np.float32)

    def results():
        given = [mg.tensor(v, requires_grad=True) for v in (x, w, b)]
        y = KERNELS[name][0](*given)
        return [t.detach().numpy().tobytes() for t in (y, *mg.grad(y, given, mg.tensor(g)))]

    before = mg.get_num_threads()
    try:
        mg.set_num_threads(1)
        alone = results()
        mg.set_num_threads(3)
        assert results() == alone
    finally:
        mg.set_num_threads(before)


@DTYPES
@pytest.mark.parametrize("n", [3, 100, 5000])
def test_equal_values_give_exactly_the_bias(dtype, n):
    x = mg.tensor(np.full((6, n), 7.1, dtype))  # whose sum is rounded
    bias = mg.arange(n).to(x.dtype)
    assert (F.layer_norm(x, n, None, bias) == bias).all()
    columns = mg.tensor(np.full((n, 6), 7.1, dtype))
    assert not F.batch_norm(columns, None, None, training=True).numpy().any()
    assert not F.instance_norm(x.unsqueeze(0)).numpy().any()


@every_kernel
@pytest.mark.parametrize("shape", [(6, 6), (6, 6, 5)])
@pytest.mark.parametrize("wrong", [math.nan, math.inf])
def test_what_has_no_upstream_gradient_counts_nothing(rng, name, shape, wrong):
    if name == "instance_norm" and len(shape) == 2:
        return
    x, w, b, g = drawn_for(name, shape, rng)
    alone = (slice(None), 1) if name.startswith("batch") else 1  # a set of values of its own
    x[alone], g[alone] = wrong, 0.0
    for graph in (False, True):
        given = [mg.tensor(v, requires_grad=True) for v in (x, w, b)]
        y = KERNELS[name][0](*given)
        dx, dw, db = mg.grad(y, given, mg.tensor(g), create_graph=graph)
        assert not dx.detach().numpy()[alone].any(), f"graph={graph}"
        for found in (dx, dw, db):
            assert np.isfinite(found.detach().numpy()).all(), f"graph={graph}"


# ---- length --------------------------------------------------------------------------------------


@pytest.mark.parametrize("p", [1.0, 2.0, 3.0, math.inf])
@pytest.mark.parametrize("dim", [0, 1, -1, (0, 2)])
def test_normalize(rng, p, dim):
    x = rng.standard_normal((2, 3, 4))
    size = np.abs(x)
    length = size.max(dim, keepdims=True) if p == math.inf else (size**p).sum(dim, keepdims=True)
    expected = x / (length if p == math.inf else length ** (1 / p))
    np.testing.assert_allclose(F.normalize(mg.tensor(x), p, dim).numpy(), expected, rtol=1e-14)


@DTYPES
@pytest.mark.parametrize("p", [1.0, 2.0, 3.0, math.inf])
def test_the_zero_vector_stays_and_has_no_gradient(dtype, p):
    x = mg.tensor(np.array([[0.0, -0.0], [3.0, 4.0]], dtype), requires_grad=True)
    y = F.normalize(x, p)
    oracle.assert_same(y.detach().numpy()[0], np.array([0.0, -0.0], dtype))
    (g,) = mg.grad(y.sum(), [x], create_graph=True)
    assert g.tolist()[0] == [0.0, 0.0]
    (gg,) = mg.grad(g.sum(), [x])
    assert gg.tolist()[0] == [0.0, 0.0]
    assert gg.dtype == dtype


def test_short_vectors_are_divided_by_eps():
    x = mg.tensor([[3e-3, 4e-3]], mg.float64, requires_grad=True)
    y = F.normalize(x, eps=0.1)
    np.testing.assert_allclose(y.detach().numpy(), [[0.03, 0.04]], rtol=1e-15)
    np.testing.assert_allclose(mg.grad(y.sum(), [x])[0].numpy(), [[10.0, 10.0]], rtol=1e-15)


# ---- dropout -------------------------------------------------------------------------------------


@pytest.mark.usefixtures("restore_random")
@DTYPES
def test_dropout_keeps_the_mean(dtype):
    mg.manual_seed(0)
    x = mg.tensor(np.full((100, 1000), 2.0, dtype), requires_grad=True)
    y = F.dropout(x, 0.25)
    kept = y.detach().numpy() != 0
    assert y.dtype == dtype
    assert abs(kept.mean() - 0.75) < 4 * math.sqrt(0.25 * 0.75 / kept.size)
    factor = dtype(1 / 0.75)
    oracle.assert_same(y.detach().numpy(), np.where(kept, factor * dtype(2), dtype(0)))
    (g,) = mg.grad(y.sum(), [x])
    oracle.assert_same(g.numpy(), np.where(kept, factor, dtype(0)))
    mg.manual_seed(0)
    assert (F.dropout(x, 0.25).detach().numpy() == y.detach().numpy()).all()


@pytest.mark.usefixtures("restore_random")
def test_what_is_dropped_is_zero_even_where_it_is_infinite():
    mg.manual_seed(1)
    x = mg.tensor([math.inf, math.nan] * 20, requires_grad=True)
    y = F.dropout(x, 0.5)
    dropped = y.detach().numpy() == 0
    assert 5 < dropped.sum() < 35
    assert not np.isfinite(y.detach().numpy()[~dropped]).any()
    assert mg.grad(y.sum(), [x])[0].tolist() == [0.0 if d else 2.0 for d in dropped]


@pytest.mark.usefixtures("restore_random")
def test_nothing_and_everything_dropped():
    x = mg.ones(3, 4)
    for drop in (F.dropout, F.dropout1d, F.alpha_dropout):
        assert drop(x, 0.5, False) is x
        assert drop(x, 0.0, True) is x
        assert drop(x, 1.0, True).tolist() == [[0.0] * 4] * 3


@pytest.mark.usefixtures("restore_random")
@pytest.mark.parametrize(
    ("drop", "shape", "space"),
    [
        (F.dropout1d, (40, 5), (1,)),
        (F.dropout1d, (8, 5, 3), (2,)),
        (F.dropout2d, (8, 5, 2, 3), (2, 3)),
        (F.dropout2d, (8, 5, 3), (2,)),
        (F.dropout3d, (8, 5, 2, 2, 2), (2, 3, 4)),
        (F.dropout3d, (40, 2, 2, 2), (1, 2, 3)),
    ],
)
def test_whole_channels_are_dropped(drop, shape, space):
    mg.manual_seed(2)
    y = drop(mg.ones(shape), 0.5).numpy()
    assert ((y == 0).all(space) | (y == 2).all(space)).all()
    assert 0.2 < (y == 0).mean() < 0.8


@pytest.mark.usefixtures("restore_random")
def test_alpha_dropout_keeps_mean_and_variance():
    mg.manual_seed(3)
    x = mg.randn(200_000, dtype=mg.float64)
    y = F.alpha_dropout(x, 0.3, True)
    assert abs(y.mean().item()) < 0.01
    assert abs(y.var().item() - 1.0) < 0.02
    g = mg.tensor(y.numpy(), requires_grad=True)
    assert len(set(np.round(mg.grad(F.alpha_dropout(g, 0.3, True).sum(), [g])[0].tolist(), 9))) == 2


@pytest.mark.usefixtures("restore_random")
def test_dropout_in_place():
    mg.manual_seed(4)
    x = mg.ones(100)
    assert F.dropout(x, 0.5, inplace=True) is x
    assert set(x.tolist()) == {0.0, 2.0}
    with pytest.raises(RuntimeError, match="in place"):
        F.dropout(mg.ones(3, requires_grad=True), 0.5, inplace=True)


# ---- errors --------------------------------------------------------------------------------------

X = mg.ones(2, 4, 3)
MESSAGES = [
    (lambda: F.batch_norm(mg.ones(3), None, None, training=True), ValueError, "at least 2 dim"),
    (lambda: F.batch_norm(X, None, None), ValueError, "are needed without training"),
    (lambda: F.batch_norm(X, mg.ones(3), mg.ones(4)), ValueError, "running_mean has shape (3,)"),
    (lambda: F.batch_norm(X, None, None, mg.ones(3), None, True), ValueError, "weight has shape"),
    (lambda: F.batch_norm(mg.ones(1, 4), None, None, training=True), ValueError, "one value a"),
    (lambda: F.batch_norm(mg.arange(4).reshape(2, 2), None, None), TypeError, "[batch_norm]"),
    (lambda: F.instance_norm(mg.ones(2, 4, 1)), ValueError, "one element of space"),
    (lambda: F.layer_norm(X, 4), ValueError, "[layer_norm] normalized_shape (4,) must be the last"),
    (lambda: F.layer_norm(X, ()), ValueError, "normalized_shape () must be"),
    (lambda: F.layer_norm(X, 3, mg.ones(4)), ValueError, "weight has shape (4,), but must be (3,)"),
    (lambda: F.rms_norm(X, 3.0), TypeError, "[rms_norm] normalized_shape must be an integer"),
    (lambda: F.group_norm(X, 3), ValueError, "num_groups=3 does not divide the 4 channels"),
    (lambda: F.group_norm(X, 0), ValueError, "num_groups is 0, but must be at least 1"),
    (lambda: F.local_response_norm(mg.ones(2, 3), 2), ValueError, "at least 3 dimensions"),
    (lambda: F.local_response_norm(X, 0), ValueError, "size is 0"),
    (lambda: F.normalize(X, dim=3), IndexError, "dim 3 is out of range"),
    (lambda: F.normalize(mg.arange(3), dim=0), TypeError, "[normalize] offered for floats"),
    (lambda: F.dropout(X, 1.5), ValueError, "[dropout] p is 1.5, but a probability is between"),
    (lambda: F.dropout(X, -0.1), ValueError, "[dropout] p is -0.1"),
    (lambda: F.dropout(mg.arange(3)), TypeError, "[dropout] offered for floats, not int64"),
    (lambda: F.dropout2d(mg.ones(3, 4)), ValueError, "[dropout2d] the input has shape (3, 4)"),
]


@pytest.mark.parametrize("number", range(len(MESSAGES)))
def test_errors_show_the_values_and_the_rule(number):
    f, kind, text = MESSAGES[number]
    with pytest.raises(kind) as caught:
        f()
    assert text in str(caught.value)


# ---- large means ---------------------------------------------------------------------------------

NORMS = {
    "layer_norm": ((4, 40), (40,), lambda x, w, b: F.layer_norm(x, 40, w, b)),
    "batch_norm": ((5, 4, 9), (4,), lambda x, w, b: F.batch_norm(x, None, None, w, b, True)),
    "group_norm": ((3, 4, 33), (4,), lambda x, w, b: F.group_norm(x, 2, w, b)),
    "instance_norm": (
        (3, 4, 33),
        (4,),
        lambda x, w, b: F.instance_norm(x, None, None, w, b),
    ),
}


@pytest.mark.parametrize("graph", [False, True])
@pytest.mark.parametrize("weights", [np.float32, np.float64])  # the latter without a kernel
@pytest.mark.parametrize("name", NORMS)
def test_a_large_mean_costs_no_digits_by_either_rule(name, weights, graph, rng):
    """Float32 values and gradients are those of the same numbers in float64."""
    shape, size, norm = NORMS[name]
    for mean, deviation in ((1e4, 1.0), (-6e4, 0.5), (3e6, 100.0)):
        x = (rng.standard_normal(shape) * deviation + mean).astype(np.float32)
        w, b = rng.uniform(0.5, 2, (2, *size)).astype(np.float32)
        g = rng.standard_normal(shape).astype(np.float32)
        found = []
        for dtype, of_weights in ((np.float32, weights), (np.float64, np.float64)):
            xs = [mg.tensor(x.astype(dtype)), *(mg.tensor(v.astype(of_weights)) for v in (w, b))]
            for leaf in xs:
                leaf.requires_grad_()
            y = norm(*xs)
            upstream = mg.tensor(g).to(y.dtype)
            found.append([y, *mg.grad(y, xs, upstream, create_graph=graph)])
        for got, want in zip(*found, strict=True):
            a, b_ = got.detach().numpy(), want.detach().numpy()
            np.testing.assert_allclose(a, b_, rtol=1e-5, atol=1e-5 * np.abs(b_).max())


@pytest.mark.parametrize("graph", [False, True])
@pytest.mark.parametrize("name", NORMS)
def test_a_constant_has_no_deviation(name, graph):
    """Neither by a mean that is rounded: the gradient of the weight is 0."""
    shape, size, norm = NORMS[name]
    for value in (60000.3, 1e-3, -1234567.0):
        x = mg.full(shape, value, dtype=mg.float32).requires_grad_()
        w, b = mg.ones(size, requires_grad=True), mg.zeros(size, requires_grad=True)
        y = norm(x, w, b)
        dx, dw, _ = mg.grad(y.sum(), [x, w, b], create_graph=graph)
        assert np.abs(dw.detach().numpy()).max() < 1e-3
        assert np.abs(dx.detach().numpy()).max() < 1e-2


@pytest.mark.parametrize("graph", [False, True])
@pytest.mark.parametrize("axes", [(1,), (0,), (0, 2), (0, 1, 2)], ids=str)
@pytest.mark.parametrize("name", ["var", "std"])
def test_variances_of_a_large_mean(name, axes, graph, rng):
    """The gradient, too, is that of the deviations, in cache and beyond, along any axes."""
    for shape in ((5, 40, 6), (3, 3000, 2)):
        for mean, deviation in ((1e4, 0.01), (-3e6, 1.0), (1e4, 1e4)):
            x = (rng.standard_normal(shape) * deviation + mean).astype(np.float32)
            found = []
            for dtype in (np.float32, np.float64):
                leaf = mg.tensor(x.astype(dtype), requires_grad=True)
                y = getattr(leaf, name)(axes)
                g = mg.grad(y.sum(), leaf, create_graph=graph)[0]
                found.append(g.detach().numpy())
            size = np.abs(found[1]).max()
            np.testing.assert_allclose(*found, rtol=0, atol=2e-5 * size)


def test_statistics_that_are_no_longer_tracked_stay_as_they_are(rng):
    module = nn.BatchNorm2d(3)
    module.track_running_stats = False
    x = mg.tensor(rng.standard_normal((4, 3, 2, 2)).astype(np.float32) + 5)
    np.testing.assert_allclose(module(x).detach().numpy().mean((0, 2, 3)), 0, atol=1e-5)
    assert module.num_batches_tracked.item() == 0
    assert module.running_mean.tolist() == [0, 0, 0]
    assert module.running_var.tolist() == [1, 1, 1]


def test_instance_norm_counts_no_batches(rng):
    x = mg.tensor(rng.standard_normal((4, 3, 5)).astype(np.float32) + 5)
    module = nn.InstanceNorm1d(3, track_running_stats=True)
    module(x)
    assert module.num_batches_tracked.item() == 0
    np.testing.assert_allclose(module.running_mean.numpy(), 0.1 * x.numpy().mean((0, 2)), rtol=1e-5)
    still = nn.InstanceNorm1d(3, track_running_stats=True, momentum=None)
    still(x)
    assert still.running_mean.tolist() == [0, 0, 0]


def test_groups_of_one_value_are_refused():
    with pytest.raises(ValueError, match="one value a group"):
        nn.functional.group_norm(mg.ones(1, 2), 2)
