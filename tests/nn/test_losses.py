"""Losses and distances against formulas in NumPy and SciPy: values, derivatives, edges, modules.

Cross entropy, and the differences without weights, are tested in test_nn.
"""

from __future__ import annotations

import copy
import inspect
import math
import pickle

import mpmath
import numpy as np
import oracle
import pytest
from scipy import special

import minigrad as mg
from minigrad import nn
from minigrad.nn import functional as F

INF, NAN = math.inf, math.nan
REDUCE = {"mean": np.mean, "sum": np.sum, "none": lambda v: v}
by_reduction = pytest.mark.parametrize("reduction", REDUCE)


def reals(rng, *shape):
    return rng.standard_normal(shape)


def probabilities(rng, *shape):
    return rng.uniform(0.25, 0.75, shape)


def signs(rng, *shape):
    return rng.choice([-1.0, 1.0], shape)


def apart(rng, *shape):
    """Numbers with absolute values away from 0, 1 and 1.5, where losses have kinks."""
    return signs(rng, *shape) * rng.choice([0.5, 1.25, 2.5], shape) + rng.uniform(-0.1, 0.1, shape)


def softplus(x):
    return np.maximum(x, 0) + np.log1p(np.exp(-abs(x)))


def huber(d, delta):
    d = abs(d)
    return np.where(d < delta, d * d / 2, delta * (d - delta / 2))


def norm(x, p=2):
    return np.linalg.norm(x, p, -1)


def cosine(a, b, axis=-1):
    return (a * b).sum(axis) / np.linalg.norm(a, 2, axis) / np.linalg.norm(b, 2, axis)


def stirling(t):
    safe = np.maximum(t, 1)
    return np.where(t > 1, safe * np.log(safe) - safe + np.log(2 * np.pi * safe) / 2, 0)


def triplet(a, p, n, margin=1.0, order=2, swap=False):
    far = norm(a - n + 1e-6, order)
    if swap:
        far = np.minimum(far, norm(p - n + 1e-6, order))
    return np.maximum(0, norm(a - p + 1e-6, order) - far + margin)


def multi_margin(x, t, p=1, margin=1.0, weight=None):
    w = np.ones(x.shape[1]) if weight is None else weight
    rows = []
    for row, k in zip(x, t, strict=True):
        excess = np.maximum(0, margin - row[k] + np.delete(row, k)) ** p
        rows.append(w[k] * excess.sum() / len(row))
    return np.array(rows)


SHAPE = (3, 4)
CLASSES = np.array([1, 0, 3])
WEIGHT = np.array([[0.5, 2.0, 0.0, 1.5]])

# loss, its arguments, inputs (drawn), elementwise reference, which inputs are differentiated
CASES = {
    "mse_loss": (F.mse_loss, {}, (reals, reals), lambda x, t: (x - t) ** 2, 2),
    "l1_loss": (F.l1_loss, {}, (apart, lambda *_: np.zeros(SHAPE)), lambda x, t: abs(x - t), 1),
    "huber_loss": (
        F.huber_loss,
        {"delta": 1.5},
        (apart, lambda *_: np.zeros(SHAPE)),
        lambda x, t: huber(x - t, 1.5),
        2,
    ),
    "smooth_l1_loss": (
        F.smooth_l1_loss,
        {"beta": 1.5},
        (apart, lambda *_: np.zeros(SHAPE)),
        lambda x, t: huber(x - t, 1.5) / 1.5,
        2,
    ),
    "smooth_l1_loss, beta 0": (
        F.smooth_l1_loss,
        {"beta": 0.0},
        (apart, lambda *_: np.zeros(SHAPE)),
        lambda x, t: abs(x - t),
        1,
    ),
    "kl_div": (
        F.kl_div,
        {},
        (reals, probabilities),
        lambda x, t: t * (np.log(t) - x),
        2,
    ),
    "kl_div, log_target": (
        F.kl_div,
        {"log_target": True},
        (reals, reals),
        lambda x, t: np.exp(t) * (t - x),
        2,
    ),
    "gaussian_nll_loss": (
        F.gaussian_nll_loss,
        {},
        (reals, reals, probabilities),
        lambda x, t, v: (np.log(v) + (x - t) ** 2 / v) / 2,
        3,
    ),
    "gaussian_nll_loss, full": (
        F.gaussian_nll_loss,
        {"full": True, "eps": 0.5},
        (reals, reals, lambda *_: np.linspace(0.6, 2, 12).reshape(SHAPE)),
        lambda x, t, v: (np.log(2 * np.pi * v) + (x - t) ** 2 / v) / 2,
        3,
    ),
    "poisson_nll_loss": (
        F.poisson_nll_loss,
        {},
        (reals, probabilities),
        lambda x, t: np.exp(x) - t * x,
        2,
    ),
    "poisson_nll_loss, full": (
        F.poisson_nll_loss,
        {"log_input": False, "full": True, "eps": 0.25},
        (probabilities, lambda rng, *s: abs(apart(rng, *s))),
        lambda x, t: x - t * np.log(x + 0.25) + stirling(t),
        2,
    ),
    "binary_cross_entropy": (
        F.binary_cross_entropy,
        {},
        (probabilities, probabilities),
        lambda x, t: -(t * np.log(x) + (1 - t) * np.log1p(-x)),
        2,
    ),
    "binary_cross_entropy, weight": (
        F.binary_cross_entropy,
        {"weight": mg.tensor(WEIGHT)},
        (probabilities, probabilities),
        lambda x, t: -WEIGHT * (t * np.log(x) + (1 - t) * np.log1p(-x)),
        2,
    ),
    "binary_cross_entropy_with_logits": (
        F.binary_cross_entropy_with_logits,
        {},
        (reals, probabilities),
        lambda x, t: (1 - t) * softplus(x) + t * softplus(-x),
        2,
    ),
    "binary_cross_entropy_with_logits, weights": (
        F.binary_cross_entropy_with_logits,
        {"weight": mg.tensor(WEIGHT), "pos_weight": mg.tensor(WEIGHT[0] + 1)},
        (reals, probabilities),
        lambda x, t: WEIGHT * ((1 - t) * softplus(x) + (WEIGHT + 1) * t * softplus(-x)),
        2,
    ),
    "soft_margin_loss": (
        F.soft_margin_loss,
        {},
        (reals, signs),
        lambda x, t: np.log1p(np.exp(-t * x)),
        2,
    ),
    "multilabel_soft_margin_loss": (
        F.multilabel_soft_margin_loss,
        {"weight": mg.tensor(WEIGHT)},
        (reals, probabilities),
        lambda x, t: (WEIGHT * ((1 - t) * softplus(x) + t * softplus(-x))).mean(1),
        2,
    ),
    "multi_margin_loss": (
        F.multi_margin_loss,
        {"margin": 0.7},
        (reals, lambda *_: CLASSES),
        lambda x, t: multi_margin(x, t, 1, 0.7),
        1,
    ),
    "multi_margin_loss, weight": (
        F.multi_margin_loss,
        {"p": 2, "weight": mg.tensor(WEIGHT[0])},
        (reals, lambda *_: CLASSES),
        lambda x, t: multi_margin(x, t, 2, 1.0, WEIGHT[0]),
        1,
    ),
    "hinge_embedding_loss": (
        F.hinge_embedding_loss,
        {"margin": 0.9},
        (apart, signs),
        lambda x, t: np.where(t == 1, x, np.maximum(0, 0.9 - x)),
        1,
    ),
    "margin_ranking_loss": (
        F.margin_ranking_loss,
        {"margin": 0.1},
        (reals, reals, signs),
        lambda a, b, t: np.maximum(0, -t * (a - b) + 0.1),
        2,
    ),
    "cosine_embedding_loss": (
        F.cosine_embedding_loss,
        {"margin": -0.9},
        (reals, reals, lambda *_: np.array([1.0, -1.0, -1.0])),
        lambda a, b, t: np.where(t == 1, 1 - cosine(a, b), np.maximum(0, cosine(a, b) + 0.9)),
        2,
    ),
    "triplet_margin_loss": (
        F.triplet_margin_loss,
        {},
        (reals, reals, reals),
        triplet,
        3,
    ),
    "triplet_margin_loss, p and swap": (
        F.triplet_margin_loss,
        {"margin": 3.0, "p": 3.0, "swap": True},
        (reals, reals, reals),
        lambda a, p, n: triplet(a, p, n, 3.0, 3, True),
        3,
    ),
    "triplet_margin_with_distance_loss": (
        F.triplet_margin_with_distance_loss,
        {"distance_function": lambda a, b: mg.amax(mg.abs(a - b), -1), "margin": 4.0},
        (reals, reals, reals),
        lambda a, p, n: np.maximum(0, norm(a - p, np.inf) - norm(a - n, np.inf) + 4.0),
        3,
    ),
}
every = pytest.mark.parametrize("name", CASES)


def drawn(name, rng):
    return [draw(rng, *SHAPE) for draw in CASES[name][2]]


# ---- values and derivatives ----------------------------------------------------------------------


@every
@by_reduction
def test_values(rng, name, reduction):
    loss, arguments, _, reference, _ = CASES[name]
    inputs = drawn(name, rng)
    expected = REDUCE[reduction](reference(*inputs))
    got = loss(*map(mg.tensor, inputs), reduction=reduction, **arguments)
    assert got.dtype is mg.float64
    assert got.shape == np.shape(expected)
    np.testing.assert_allclose(got.numpy(), expected, rtol=1e-13, atol=1e-14)


@every
def test_values_in_float32(rng, name):
    loss, arguments, _, reference, _ = CASES[name]
    inputs = [x if x.dtype == np.int64 else x.astype(np.float32) for x in drawn(name, rng)]
    wide = [x if x.dtype == np.int64 else x.astype(np.float64) for x in inputs]
    arguments = {k: v.float() if isinstance(v, mg.Tensor) else v for k, v in arguments.items()}
    got = loss(*map(mg.tensor, inputs), reduction="none", **arguments)
    assert got.dtype is mg.float32
    np.testing.assert_allclose(got.numpy(), reference(*wide), rtol=2e-6, atol=1e-6)


def multi_margins(x, t, p):
    excess = np.maximum(0, 1 - x[np.arange(len(t)), t][:, None] + x) ** p
    excess[np.arange(len(t)), t] = 0
    return excess.sum(1) / x.shape[1]


@pytest.mark.parametrize("n", [1, 15, 64, 513, 1300])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_kernels_at_any_size(rng, n, dtype):
    """Beyond a vector, and beyond what is worked on at a time; gradients are those of formulas."""
    x, t = (3 * rng.standard_normal((3, n)).astype(dtype) for _ in range(2))
    p, share, hits = (rng.uniform(0, 1, (3, n)).astype(dtype) for _ in range(3))
    at = rng.integers(0, n, 3)
    wide_x, wide_p, z = x.astype(float), p.astype(float), share.astype(float)
    far, w = wide_x - t, mg.tensor(hits)
    cases = [
        (lambda a: F.huber_loss(a, mg.tensor(t), "none", 1.5), x, huber(far, 1.5)),
        (lambda a: F.smooth_l1_loss(a, mg.tensor(t), "none", 0.5), x, huber(far, 0.5) / 0.5),
        (
            lambda a: F.binary_cross_entropy(a, mg.tensor(share), reduction="none"),
            p,
            -(z * np.log(wide_p) + (1 - z) * np.log1p(-wide_p)),
        ),
        (
            lambda a: F.binary_cross_entropy_with_logits(
                a, mg.tensor(share), reduction="none", pos_weight=w
            ),
            x,
            (1 - z) * softplus(wide_x) + hits * z * softplus(-wide_x),
        ),
        *(
            (
                lambda a, power=power: F.multi_margin_loss(
                    a, mg.tensor(at), power, reduction="none"
                ),
                x,
                multi_margins(wide_x, at, power),
            )
            for power in (1, 2)
        ),
    ]
    near = 3e-6 if dtype is np.float32 else 1e-13
    for loss, given, expected in cases:
        a = mg.tensor(given, requires_grad=True)
        y = loss(a)
        np.testing.assert_allclose(y.detach().numpy(), expected, near, near)
        g = mg.tensor(rng.standard_normal(y.shape).astype(dtype))
        fused, formula = (mg.grad(y, [a], g, True, graph)[0] for graph in (False, True))
        np.testing.assert_allclose(fused.numpy(), formula.detach().numpy(), 10 * near, near)


def test_values_without_end():
    def found(y, cotangent):
        x = leaves[0]
        for graph in (False, True):
            yield mg.grad(y, [x], mg.tensor(cotangent), True, graph)[0].detach().numpy()

    leaves = [mg.tensor([INF, -INF, NAN, 0.0], requires_grad=True)]
    y = F.huber_loss(leaves[0], mg.zeros(4), "none", 2.0)
    np.testing.assert_array_equal(y.detach().numpy(), [INF, INF, NAN, 0])
    for g in found(y, [1.0] * 4):
        np.testing.assert_array_equal(g, [2, -2, NAN, 0])
    for g in found(y, [0.0] * 4):
        np.testing.assert_array_equal(g, [0] * 4)
    t = mg.tensor([1.0, 0.0, 1.0, 0.5])
    y = F.binary_cross_entropy_with_logits(leaves[0], t, reduction="none")
    np.testing.assert_array_equal(y.detach().numpy()[:3], [0, 0, NAN])
    for g in found(y, [1.0] * 4):
        np.testing.assert_array_equal(g, [0, 0, NAN, 0])
    leaves = [mg.tensor([[NAN, 0.0, 1.0], [0.0, INF, 1.0]], requires_grad=True)]
    y = F.multi_margin_loss(leaves[0], mg.tensor([2, 1]), reduction="none")
    np.testing.assert_array_equal(y.detach().numpy(), [NAN, 0])
    for g in found(y, [0.0, 1.0]):
        np.testing.assert_array_equal(g, np.zeros((2, 3)))


@every
@by_reduction
def test_derivatives(rng, name, reduction):
    loss, arguments, _, _, count = CASES[name]
    inputs = drawn(name, rng)
    rest = [mg.tensor(x) for x in inputs[count:]]

    def op(*xs):
        return loss(*xs, *rest, reduction=reduction, **arguments)

    oracle.check_gradients(op, inputs[:count], rng, second=reduction != "sum")


@every
def test_any_layout(rng, name):
    loss, arguments, _, _, _ = CASES[name]
    inputs = drawn(name, rng)
    plain = loss(*map(mg.tensor, inputs), reduction="none", **arguments)
    for layout in oracle.LAYOUTS:
        strided = [oracle.tensor_in_layout(x, layout) for x in inputs]
        oracle.assert_same(loss(*strided, reduction="none", **arguments).numpy(), plain.numpy())


@every
def test_an_unknown_reduction_is_named(rng, name):
    loss, arguments, _, _, _ = CASES[name]
    op = loss.__name__
    with pytest.raises(ValueError, match=rf"\[{op}\] reduction is 'men'.*'mean', 'sum' or 'none'"):
        loss(*map(mg.tensor, drawn(name, rng)), reduction="men", **arguments)


EQUAL_SHAPES = [
    F.mse_loss,
    F.l1_loss,
    F.huber_loss,
    F.smooth_l1_loss,
    F.kl_div,
    F.binary_cross_entropy,
    F.binary_cross_entropy_with_logits,
    F.soft_margin_loss,
    F.multilabel_soft_margin_loss,
    F.hinge_embedding_loss,
]


@pytest.mark.parametrize("loss", EQUAL_SHAPES, ids=lambda f: f.__name__)
def test_losses_do_not_broadcast(loss):
    text = (
        rf"\[{loss.__name__}\] input has shape \(4, 1\), target \(4,\): a loss does not broadcast"
    )
    with pytest.raises(ValueError, match=text):
        loss(mg.ones(4, 1), mg.ones(4))


@pytest.mark.parametrize("loss", EQUAL_SHAPES, ids=lambda f: f.__name__)
def test_of_nothing(loss):
    x = mg.zeros(0, 3, dtype=mg.float64, requires_grad=True)
    for reduction in ("sum", "mean"):
        value = loss(x, mg.zeros(0, 3), reduction=reduction)
        np.testing.assert_equal(value.item(), 0.0 if reduction == "sum" else NAN)
        (g,) = mg.grad(value, (x,))
        assert (g.shape, g.dtype) == ((0, 3), mg.float64)


@pytest.mark.parametrize(
    "loss", [f for f in EQUAL_SHAPES if f is not F.multilabel_soft_margin_loss]
)
def test_of_numbers_and_integers(loss):
    assert loss(0.25, 1.0).shape == ()
    whole = loss(mg.tensor([1, 0]), mg.tensor([1, 1]), reduction="none")
    assert whole.dtype is mg.float32
    expected = loss(mg.tensor([1.0, 0.0]), mg.tensor([1.0, 1.0]), reduction="none")
    np.testing.assert_array_equal(whole.numpy(), expected.numpy())
    classes = loss(mg.tensor([0.5, 0.25], mg.float64), mg.tensor([1, 0]))
    assert classes.dtype is mg.float64


# ---- weights -------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", [F.mse_loss, F.l1_loss, F.huber_loss])
def test_weighted_differences(rng, loss):
    x, t, w = apart(rng, *SHAPE), np.zeros(SHAPE), rng.uniform(0, 2, SHAPE)
    each = loss(mg.tensor(x), mg.tensor(t), reduction="none").numpy() * w
    mean = each.mean() if loss is F.huber_loss else each.sum() / w.sum()
    for reduction, expected in (("none", each), ("sum", each.sum()), ("mean", mean)):
        got = loss(*map(mg.tensor, (x, t)), reduction=reduction, weight=mg.tensor(w))
        np.testing.assert_allclose(got.numpy(), expected, rtol=1e-14)
    oracle.check_gradients(lambda a, b, c: loss(a, b, weight=c), [x, t, w], rng)
    with pytest.raises(ValueError, match=r"weight has shape \(4,\), but the input \(3, 4\)"):
        loss(mg.tensor(x), mg.tensor(t), weight=mg.ones(4))


@pytest.mark.parametrize(
    "loss",
    [
        F.binary_cross_entropy,
        F.binary_cross_entropy_with_logits,
        F.multilabel_soft_margin_loss,
        lambda x, t, weight: F.binary_cross_entropy_with_logits(x, t, pos_weight=weight),
    ],
)
def test_weights_broadcast_to_the_input_only(loss, rng):
    x, t = mg.tensor(probabilities(rng, 3, 4)), mg.ones(3, 4)
    assert loss(x, t, weight=mg.full((4,), 2.0)).item() == loss(x, t, weight=2.0).item()
    for shape in ((3,), (2, 3, 4)):
        with pytest.raises(ValueError, match=r"weight|broadcast"):
            loss(x, t, weight=mg.ones(shape))
    oracle.check_gradients(
        lambda a, w: loss(a, t, weight=w), [x.numpy(), rng.uniform(0.5, 2, 4)], rng
    )


@pytest.mark.parametrize("loss", [F.mse_loss, F.huber_loss, F.binary_cross_entropy_with_logits])
def test_a_weight_of_zero_hides_infinity(loss):
    x = mg.tensor([INF, 1.0], requires_grad=True)
    value = loss(x, mg.zeros(2), weight=mg.tensor([0.0, 1.0]), reduction="sum")
    (g,) = mg.grad(value, (x,))
    assert math.isfinite(value.item())
    assert g[0].item() == 0.0


def test_numbers_take_on_the_dtype():
    x = mg.ones(1, dtype=mg.float64)
    assert F.poisson_nll_loss(x, 0.1).item() == pytest.approx(math.e - 0.1, rel=1e-15)
    assert F.poisson_nll_loss(x.float(), 0.1).dtype is mg.float32
    assert F.mse_loss(x, x + 1.0, weight=mg.full((1,), 0.1)).item() == 1.0
    bce = F.binary_cross_entropy_with_logits
    assert bce(x, x * 0.0, 0.1).item() == pytest.approx(0.1 * math.log1p(math.e), rel=1e-15)
    assert F.prelu(-x, 0.1).item() == -0.1
    assert F.pairwise_distance(x, 0.1, eps=0.0).item() == 0.9


# ---- regression ----------------------------------------------------------------------------------


def test_huber_is_smooth_l1_times_delta(rng):
    x, t = mg.tensor(reals(rng, 50)), mg.zeros(50)
    for delta in (0.1, 1.0, 3.0):
        np.testing.assert_allclose(
            F.huber_loss(x, t, "none", delta).numpy(),
            delta * F.smooth_l1_loss(x, t, "none", delta).numpy(),
            rtol=1e-14,
        )
    big = mg.tensor([INF, -INF], requires_grad=True)
    for loss in (F.huber_loss, F.smooth_l1_loss):
        y = loss(big, mg.zeros(2), "none")
        assert y.tolist() == [INF, INF]
        assert mg.grad(y.sum(), (big,))[0].tolist() == [1, -1]


@pytest.mark.parametrize("delta", [0.0, -1.0, NAN])
def test_huber_refuses_bad_deltas(delta):
    with pytest.raises(ValueError, match=r"\[huber_loss\] delta is .* must be positive"):
        F.huber_loss(1.0, 1.0, delta=delta)
    if delta != 0.0:
        with pytest.raises(ValueError, match=r"\[smooth_l1_loss\] beta is .* not be negative"):
            F.smooth_l1_loss(1.0, 1.0, beta=delta)


# ---- distributions -------------------------------------------------------------------------------


def test_kl_div_is_the_divergence(rng):
    p, q = (special.softmax(reals(rng, 5, 3), 1) for _ in range(2))
    expected = special.rel_entr(p, q).sum(1).mean()
    x, t = mg.tensor(np.log(q)), mg.tensor(p)
    got = F.kl_div(x, t, reduction="batchmean").item()
    assert got == pytest.approx(expected, rel=1e-13)
    got = F.kl_div(x, t.log(), reduction="batchmean", log_target=True).item()
    assert got == pytest.approx(expected, rel=1e-13)
    assert F.kl_div(0.5, 1.0, "batchmean").item() == -0.5
    assert nn.KLDivLoss("batchmean")(x, t).item() == F.kl_div(x, t, "batchmean").item()


def test_kl_div_of_what_cannot_happen():
    x = mg.tensor([-INF, 0.0], mg.float64, requires_grad=True)
    for t, log_target in (([0.0, 1.0], False), ([-INF, 0.0], True)):
        y = F.kl_div(x, mg.tensor(t, mg.float64), "none", log_target)
        assert y.tolist() == [0, 0]
        (g,) = mg.grad(y.sum(), (x,), create_graph=True)
        assert g.tolist() == [0, -1]
    t = mg.tensor([-INF, 0.0], mg.float64, requires_grad=True)
    y = F.kl_div(x, t, "none", True)
    by_x, by_t = mg.grad(y.sum(), (x, t), create_graph=True)
    assert (by_x.tolist(), by_t.tolist()) == ([0, -1], [0, 1])
    assert [g.tolist() for g in mg.grad(by_t.sum(), (x, t))] == [[0, -1], [0, 2]]


@pytest.mark.parametrize("shape", [(3, 4), (3, 1), (3,), ()])
def test_variances_of_several_shapes(rng, shape):
    x, t, v = reals(rng, 3, 4), reals(rng, 3, 4), np.asarray(rng.uniform(0.5, 2, shape))
    wide = v[:, None] if shape == (3,) else v
    expected = (np.log(wide) + (x - t) ** 2 / wide) / 2
    got = F.gaussian_nll_loss(*map(mg.tensor, (x, t, v)), reduction="none")
    np.testing.assert_allclose(got.numpy(), expected, rtol=1e-13)
    if shape == ():
        got = F.gaussian_nll_loss(mg.tensor(x), mg.tensor(t), float(v), reduction="none")
        np.testing.assert_allclose(got.numpy(), expected, rtol=1e-13)
    oracle.check_gradients(F.gaussian_nll_loss, [x, t, v], rng)


def test_a_small_variance_counts_as_eps():
    v = mg.tensor([0.0, 0.25, 1.0], mg.float64, requires_grad=True)
    y = F.gaussian_nll_loss(
        mg.full((3,), 2.0, dtype=mg.float64), mg.zeros(3), v, False, 0.5, "none"
    )
    assert y.tolist() == [(math.log(0.5) + 8) / 2] * 2 + [2.0]
    (g,) = mg.grad(y.sum(), (v,), create_graph=True)
    assert g.tolist() == [(2 - 16) / 2] * 2 + [(1 - 4) / 2]


def test_gaussian_nll_loss_refuses():
    x = mg.ones(3, 4)
    with pytest.raises(ValueError, match=r"var has shape \(4,\).*\(3, 4\)"):
        F.gaussian_nll_loss(x, x, mg.ones(4))
    with pytest.raises(ValueError, match=r"target has shape \(2, 3, 4\)"):
        F.gaussian_nll_loss(x, mg.ones(2, 3, 4), 1.0)
    for var in (-1.0, mg.tensor(-0.5)):
        with pytest.raises(ValueError, match="negative entries"):
            F.gaussian_nll_loss(x, x, var)


def test_poisson_nll_loss_broadcasts_and_counts_of_zero():
    x = mg.tensor([-INF, 1.0], mg.float64, requires_grad=True)
    y = F.poisson_nll_loss(x, mg.zeros(2), reduction="sum")
    assert y.item() == pytest.approx(math.e, rel=1e-15)
    assert mg.grad(y, (x,))[0].tolist() == pytest.approx([0, math.e], rel=1e-15)
    assert F.poisson_nll_loss(mg.ones(3, 1), mg.ones(4), reduction="none").shape == (3, 4)
    with pytest.raises(ValueError, match="shape"):
        F.poisson_nll_loss(mg.ones(3), mg.ones(4))


# ---- classes -------------------------------------------------------------------------------------


def test_binary_cross_entropy_refuses_what_is_no_probability():
    ok = mg.tensor([0.0, 1.0])
    for bad in ([-0.1, 0.5], [0.5, 1.5], [NAN, 0.5]):
        with pytest.raises(ValueError, match=r"input has values from .* probabilities are in"):
            F.binary_cross_entropy(mg.tensor(bad), ok)
        with pytest.raises(ValueError, match=r"target has values from .* probabilities are in"):
            F.binary_cross_entropy(ok, mg.tensor(bad))
        with pytest.raises(ValueError, match=r"input has values from .* probabilities are in"):
            F.binary_cross_entropy(mg.tensor(bad), ok, mg.zeros(2), reduction="none")


def test_binary_cross_entropy_right_at_the_ends():
    """On the right side the loss is 0 and the slope the true one; PyTorch's is 0."""
    x = mg.tensor([0.0, 1.0], mg.float64, requires_grad=True)
    y = F.binary_cross_entropy(x, mg.tensor([0.0, 1.0]), reduction="none")
    assert y.tolist() == [0, 0]
    assert mg.grad(y.sum(), (x,))[0].tolist() == [1, -1]
    tiny = mg.tensor([1e-13], mg.float64, requires_grad=True)
    y = F.binary_cross_entropy(tiny, mg.ones(1))
    assert y.item() == pytest.approx(-math.log(1e-13), rel=1e-14)
    (g,) = mg.grad(y, (tiny,), create_graph=True)
    assert g.item() == -1e12


def test_the_logits_form_is_the_other_of_the_sigmoid(rng):
    x, t = mg.tensor(reals(rng, 20)), mg.tensor(probabilities(rng, 20))
    a = F.binary_cross_entropy(x.sigmoid(), t, reduction="none").numpy()
    b = F.binary_cross_entropy_with_logits(x, t, reduction="none").numpy()
    np.testing.assert_allclose(a, b, rtol=1e-12)


def test_multi_margin_loss_of_one_sample_and_what_it_refuses():
    x = mg.tensor([0.0, 0.5, -1.0], mg.float64)
    for target in (mg.tensor(1), mg.tensor([1])):
        y = F.multi_margin_loss(x, target, reduction="none")
        assert y.shape == target.shape
        assert y.sum().item() == pytest.approx(0.5 / 3)
    assert F.multi_margin_loss(2.0, mg.tensor(0)).item() == 0.0
    with pytest.raises(ValueError, match=r"\[multi_margin_loss\] p is 3, but must be 1 or 2"):
        F.multi_margin_loss(x, mg.tensor(1), p=3)
    with pytest.raises(IndexError, match=r"\[multi_margin_loss\] target 3 is no class"):
        F.multi_margin_loss(x, mg.tensor(3))
    with pytest.raises(ValueError, match=r"\(N, C\) or \(C,\)"):
        F.multi_margin_loss(mg.ones(2, 3, 4), mg.ones(2, 4, dtype=mg.int64))
    with pytest.raises(ValueError, match="0-d input has no classes"):
        F.multilabel_soft_margin_loss(1.0, 1.0)


# ---- distances -----------------------------------------------------------------------------------


@pytest.mark.parametrize("p", [1.0, 2.0, 3.5, INF])
@pytest.mark.parametrize("shapes", [((3, 4), (3, 4)), ((4,), (4,)), ((2, 1, 4), (3, 4))])
def test_pairwise_distance(rng, p, shapes):
    a, b = (reals(rng, *s) for s in shapes)
    got = F.pairwise_distance(mg.tensor(a), mg.tensor(b), p, 1e-3)
    np.testing.assert_allclose(got.numpy(), norm(a - b + 1e-3, p), rtol=1e-13)
    kept = F.pairwise_distance(mg.tensor(a), mg.tensor(b), p, 1e-3, True)
    assert kept.shape == (*got.shape, 1)
    oracle.check_gradients(lambda x, y: F.pairwise_distance(x, y, p, 1e-3), [a, b], rng)


@pytest.mark.parametrize(
    ("shapes", "dim"),
    [(((3, 4), (3, 4)), 1), (((3, 4), (3, 4)), 0), (((4,), (4,)), 0), (((2, 1, 4), (3, 4)), -1)],
)
def test_cosine_similarity(rng, shapes, dim):
    a, b = (reals(rng, *s) for s in shapes)
    got = F.cosine_similarity(mg.tensor(a), mg.tensor(b), dim)
    np.testing.assert_allclose(got.numpy(), cosine(a, b, dim), rtol=1e-12, atol=1e-14)
    oracle.check_gradients(lambda x, y: F.cosine_similarity(x, y, dim), [a, b], rng)


@pytest.mark.parametrize("power", [-30, -64, -100, -120])
def test_cosine_similarity_of_vectors_below_eps(power, rng):
    """x y / eps^2 has the slope y / eps^2, also where the product of the two norms is lost."""
    a, b = ((rng.standard_normal((3, 5)) * 2.0**power).astype(np.float32) for _ in range(2))
    x, y = (mg.tensor(v, requires_grad=True) for v in (a, b))
    got = mg.grad(F.cosine_similarity(x, y, 1, 1e-8).sum(), [x, y])
    for found, other in zip(got, (b, a), strict=True):
        np.testing.assert_allclose(found.numpy(), other * 1e16, rtol=1e-5)


@pytest.mark.parametrize("power", [-120, -100, 70, 100, 120])
def test_gaussian_nll_loss_whose_square_leaves_the_range(power, rng):
    scale = np.float32(2.0**power)
    x, t, v = rng.standard_normal((2, 5)), rng.standard_normal((2, 5)), rng.uniform(1, 2, (2, 5))
    inputs = [mg.tensor(a.astype("f4") * scale, requires_grad=True) for a in (x, t, v)]
    y = F.gaussian_nll_loss(*inputs, eps=0.0, reduction="none")
    got = mg.grad(y.sum(), inputs)
    d, each = x - t, v * scale
    want = (np.log(each) + d**2 * scale / v) / 2
    near = {"rtol": 1e-5, "atol": 1e-5}
    np.testing.assert_allclose(y.detach().numpy(), want, **near)
    for found, slope in zip(got, (d / v, -d / v, (1 - d**2 * scale / v) / each / 2), strict=True):
        np.testing.assert_allclose(found.numpy(), slope, 1e-5, 1e-5 * abs(slope).max())


def test_cosine_similarity_of_numbers_and_of_short_vectors():
    assert F.cosine_similarity(-2.0, 3.0, 0).item() == pytest.approx(-1, rel=1e-6)
    short = mg.tensor([3e-10, 4e-10], mg.float64)
    assert F.cosine_similarity(short, short, 0, 1e-8).item() == pytest.approx(0.0025)
    assert F.cosine_similarity(mg.zeros(2, 0), mg.zeros(2, 0)).tolist() == [0, 0]
    with pytest.raises(IndexError, match=r"\[cosine_similarity\] dim 1"):
        F.cosine_similarity(mg.ones(3), mg.ones(3))
    with pytest.raises(ValueError, match="broadcast"):
        F.cosine_similarity(mg.ones(2, 3), mg.ones(2, 4))


# At the margin max(0, .) has a kink, where the gradient is 0; PyTorch's is one-sided.
AT_THE_MARGIN = [
    (lambda x: F.hinge_embedding_loss(x, -1.0), 1.0),
    (lambda x: F.margin_ranking_loss(x, 0.5, 1.0), 0.5),
    (lambda x: F.margin_ranking_loss(x, 0.5, -1.0, 1.0), -0.5),
    (lambda x: F.multi_margin_loss(mg.stack([x, x * 0]), mg.tensor(0)), 1.0),
]


@pytest.mark.parametrize(("loss", "at"), AT_THE_MARGIN)
def test_the_gradient_at_the_margin_is_zero(loss, at):
    x = mg.tensor(at, requires_grad=True)
    y = loss(x)
    (g,) = mg.grad(y, (x,), create_graph=True)
    assert (y.item(), g.item()) == (0, 0)


def test_embedding_losses_refuse():
    with pytest.raises(ValueError, match=r"\[margin_ranking_loss\].*\(2, 3\).*as many dimensions"):
        F.margin_ranking_loss(mg.ones(2, 3), mg.ones(3), mg.ones(3))
    ones = map(mg.ones, ((3, 1), (1, 4), (1, 1)))
    assert F.margin_ranking_loss(*ones, reduction="none").shape == (3, 4)
    for shapes in (((2, 3), (2, 3), ()), ((3,), (3,), (3,)), ((2, 3), (3,), (2,))):
        with pytest.raises(ValueError, match=r"\[cosine_embedding_loss\].*\(N, D\) and \(N,\)"):
            F.cosine_embedding_loss(*map(mg.ones, shapes))
    assert F.cosine_embedding_loss(mg.ones(3), mg.ones(3), 1).item() == pytest.approx(0, abs=1e-6)
    for loss in (F.triplet_margin_loss, F.triplet_margin_with_distance_loss):
        with pytest.raises(ValueError, match=rf"\[{loss.__name__}\] margin is 0.0.*positive"):
            loss(mg.ones(2), mg.ones(2), mg.ones(2), margin=0.0)
        with pytest.raises(ValueError, match="as many dimensions"):
            loss(mg.ones(1, 2), mg.ones(2), mg.ones(2))
    a, p, n = mg.tensor([[0.0]]), mg.tensor([[2.0]]), mg.tensor([[1.5]])
    assert F.triplet_margin_with_distance_loss(a, p, n).item() == pytest.approx(1.5, rel=1e-6)


# ---- modules -------------------------------------------------------------------------------------


def module_class(name):
    return getattr(nn, name)


@pytest.mark.parametrize("name", nn.losses.__all__)
def test_arguments_of_modules_are_those_of_the_function(name):
    """The same names in the same order with the same defaults; weights are buffers."""
    cls = module_class(name)
    own = inspect.signature(cls).parameters
    theirs = inspect.signature(cls._function).parameters
    assert list(own) == [n for n in theirs if n in own]
    assert {n: p.default for n, p in own.items()} == {n: theirs[n].default for n in own}
    left = set(theirs) - set(own)
    needed = {n for n, p in theirs.items() if p.default is p.empty}
    old = {"size_average", "reduce"}
    assert left - needed - old <= {"weight"}  # of differences: to be given with each call
    assert set(cls._buffers) == {n for n in own if n.endswith("weight")}
    assert repr(cls()) == repr(pickle.loads(pickle.dumps(cls()))) == f"{name}()"


@pytest.mark.parametrize(
    ("old", "reduction"),
    [
        ({"size_average": False}, "sum"),
        ({"size_average": True}, "mean"),
        ({"reduce": False}, "none"),
        ({"reduce": True}, "mean"),
        ({"size_average": False, "reduce": True}, "sum"),
        ({"size_average": False, "reduce": False}, "none"),
    ],
)
def test_older_names_of_reductions(old, reduction):
    x, t = mg.tensor([1.0, 4.0]), mg.zeros(2)
    wanted = F.l1_loss(x, t, reduction=reduction).tolist()
    with pytest.warns(UserWarning, match=f"are deprecated: use reduction='{reduction}'"):
        assert F.l1_loss(x, t, **old).tolist() == wanted
    with pytest.warns(UserWarning, match="are deprecated"):
        assert nn.L1Loss(**old)(x, t).tolist() == wanted


@every
def test_modules(rng, name):
    loss, arguments, _, _, _ = CASES[name]
    (cls,) = [c for c in map(module_class, nn.losses.__all__) if c._function is loss]
    inputs = [mg.tensor(x) for x in drawn(name, rng)]
    module = cls(reduction="sum", **arguments)
    assert module(*inputs).item() == loss(*inputs, reduction="sum", **arguments).item()
    assert copy.copy(module)(*inputs).item() == module(*inputs).item()


def test_distances_as_modules(rng):
    a, b = (mg.tensor(reals(rng, 3, 4)) for _ in range(2))
    far, near = nn.PairwiseDistance(1.0, keepdim=True)(a, b), nn.CosineSimilarity(0)(a, b)
    np.testing.assert_array_equal(far.numpy(), F.pairwise_distance(a, b, 1.0, keepdim=True).numpy())
    np.testing.assert_array_equal(near.numpy(), F.cosine_similarity(a, b, 0).numpy())


def test_weights_are_part_of_the_state():
    module = nn.BCEWithLogitsLoss(pos_weight=[1.0, 2.0])
    assert {k: v.tolist() for k, v in module.state_dict().items()} == {"pos_weight": [1, 2]}
    module.double().load_state_dict({"pos_weight": mg.tensor([3.0, 4.0])})
    assert module.pos_weight.dtype is mg.float64
    assert module.pos_weight.tolist() == [3, 4]
    assert nn.NLLLoss().state_dict() == {}
    with pytest.raises(TypeError, match=r"\[NLLLoss\]"):
        nn.NLLLoss(weight="heavy")


def test_inputs_by_name():
    module = nn.PoissonNLLLoss(log_input=False)
    assert module(input=1.0, target=2.0).item() == module(1.0, 2.0).item()
    assert nn.GaussianNLLLoss(full=True)(0.0, 0.0, var=1.0).item() == pytest.approx(
        math.log(2 * math.pi) / 2
    )
    with pytest.raises(TypeError):
        nn.GaussianNLLLoss(True)


@pytest.mark.parametrize("dtype", [mg.float32, mg.float64])
def test_a_probability_at_a_bound_changes_nothing_for_the_others(dtype):
    inner, targets = [0.25, 1e-6, 0.9], [0.5, 1.0, 0.0]

    def gradient(more, wanted):
        x = mg.tensor(inner + more, dtype=dtype, requires_grad=True)
        t = mg.tensor(targets + wanted, dtype=dtype)
        losses = F.binary_cross_entropy(x, t, reduction="none")
        losses.sum().backward()
        return losses[:3].tolist(), x.grad.tolist()

    losses, slopes = gradient([], [])
    for more, wanted, end in (([0.0], [1.0], -1e12), ([1.0], [0.0], 1e12), ([1e-13], [1.0], -1e12)):
        found, found_slopes = gradient(more, wanted)
        assert (found, found_slopes[:3]) == (losses, slopes)
        np.testing.assert_allclose(found_slopes[3], end, rtol=1e-6)


# ---- targets with a gradient ---------------------------------------------------------------------

LOGITS = [1e-45, 1e-30, 1e-20, 1e-8, 1e-4, 0.3, 1.0, 8.0, 20.0, 90.0, 1e4, 1e8, 1e20, 3e38]


@pytest.mark.parametrize("graph", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_slope_by_a_target_is_the_logit_at_every_magnitude(dtype, graph):
    """softplus(-x) - softplus(x) is -x: nothing may cancel."""
    x = np.array([*LOGITS, *np.negative(LOGITS), 0.0]).astype(dtype)
    for name in ("binary_cross_entropy_with_logits", "multilabel_soft_margin_loss"):
        loss = getattr(F, name)
        for share in (0.0, 0.3, 1.0):
            t = mg.full(x.shape, share, dtype=mg.tensor(x).dtype).requires_grad_()
            if name.startswith("binary"):
                y = loss(mg.tensor(x), t, reduction="sum")
            else:
                y = loss(mg.tensor(x), t, reduction="sum") * x.size
            (g,) = mg.grad(y, t, create_graph=graph)
            np.testing.assert_allclose(g.detach().numpy(), -x, rtol=4 * np.finfo(dtype).eps)


@pytest.mark.parametrize("graph", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_logits_of_every_magnitude_in_mpmath(dtype, graph):
    """By the logit, the target and its weight, each within rounding of the terms."""
    x = np.array([*LOGITS, *np.negative(LOGITS)]).astype(dtype)
    eps = float(np.finfo(dtype).eps)
    for share, weight in ((0.0, 1.0), (0.3, 2.0), (1.0, 0.5), (0.75, 1e-10), (0.5, 1e10)):
        xs = [mg.tensor(x), mg.full(x.shape, share), mg.full(x.shape, weight)]
        xs = [v.to(xs[0].dtype).requires_grad_() for v in xs]
        y = F.binary_cross_entropy_with_logits(xs[0], xs[1], reduction="sum", pos_weight=xs[2])
        found = [g.detach().numpy() for g in mg.grad(y, xs, create_graph=graph)]
        with mpmath.workdps(60):
            for k, v in enumerate(x):
                p = mpmath.mpf(float(v))
                t, w = (mpmath.mpf(float(leaf.detach().numpy()[k])) for leaf in xs[1:])
                yes, no = 1 / (1 + mpmath.exp(-p)), 1 / (1 + mpmath.exp(p))
                big, small = mpmath.log1p(mpmath.exp(-abs(p))) + max(p, 0), 0
                small = big - p  # softplus(-p)
                for got, want, terms in (
                    (found[0][k], (1 - t) * yes - w * t * no, (1 - t) * yes + w * t * no),
                    (found[1][k], w * small - big, w * small + big),
                    (found[2][k], t * small, t * small),
                ):
                    limit = 16 * eps * terms + float(np.finfo(dtype).tiny)
                    if terms > float(np.finfo(dtype).max):
                        continue
                    assert abs(mpmath.mpf(float(got)) - want) <= limit, (v, share, weight)
