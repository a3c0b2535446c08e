"""The edge table's rows on linear algebra: singular, repeated, zero, NaN."""

from __future__ import annotations

import math

import numpy as np
import oracle
import pytest
from oracle import assert_row, derivatives

import minigrad as mg

la = mg.linalg
INF, NAN = math.inf, math.nan
by_dtype = pytest.mark.parametrize("dtype", [mg.float32, mg.float64], ids=lambda d: d.name)


def minors(a):
    """The cofactors by their definition, as exact as determinants of minors are."""
    n = len(a)
    signs = 1.0 - 2.0 * (np.indices((n, n)).sum(0) % 2)
    return signs * [
        [np.linalg.det(np.delete(np.delete(a, i, 0), j, 1)) for j in range(n)] for i in range(n)
    ]


def of_rank(rng, n, rank):
    return rng.normal(size=(n, rank)) @ rng.normal(size=(rank, n))


@by_dtype
@pytest.mark.parametrize("short", [0, 1, 2, 9], ids=lambda k: f"rank n-{k}")
@pytest.mark.parametrize("n", [1, 2, 3, 4, 6])
def test_det_of_any_rank(n, short, dtype, rng):
    """The gradient is the matrix of cofactors, and the second derivative that of those."""
    a = of_rank(rng, n, max(n - short, 0))
    x = mg.tensor(a, dtype, requires_grad=True)
    a = x.detach().numpy().astype(np.float64)
    tolerance = (
        {"rtol": 2e-4, "atol": 2e-4} if dtype is mg.float32 else {"rtol": 1e-9, "atol": 1e-9}
    )
    np.testing.assert_allclose(la.det(x).item(), np.linalg.det(a), **tolerance)
    (g,) = mg.grad(la.det(x), [x], create_graph=True)
    assert g.dtype is dtype
    np.testing.assert_allclose(g.detach().numpy(), minors(a), **tolerance)
    direction = rng.normal(size=(n, n))
    total = (g * mg.tensor(direction, dtype)).sum()
    second = mg.grad(total, [x])[0].numpy() if total.requires_grad else np.zeros((n, n))
    step = 1e-3
    # the cofactors are polynomials: five points are enough up to degree four
    near = minors(a + step * direction) - minors(a - step * direction)
    far = minors(a + 2 * step * direction) - minors(a - 2 * step * direction)
    np.testing.assert_allclose(second, (8 * near - far) / (12 * step), **tolerance)


def test_det_of_zeros():
    """PyTorch's second derivative is NaN here."""
    zero = np.zeros((2, 2)).tolist()
    assert_row(la.det, (zero,), 0.0, (zero,), ([[1, -1], [-1, 1]],))
    zero = np.zeros((3, 3)).tolist()
    assert_row(la.det, (zero,), 0.0, (zero,), (zero,))
    assert_row(la.det, ([[0.0]],), 0.0, ([[1]],), ([[0]],))
    zero = np.zeros((4, 4)).tolist()
    assert_row(la.det, (zero,), 0.0, (zero,), (zero,))


@pytest.mark.parametrize("short", [0, 1, 2, 4])
def test_the_third_derivative_of_det(short, rng):
    """d^3 det in three directions is a coefficient of a polynomial, found by interpolation."""
    n = 4
    a, (u, v, w) = of_rank(rng, n, n - short), rng.normal(size=(3, n, n))
    points = np.linspace(-1, 1, n + 1)
    inverse = np.linalg.inv(np.vander(points, increasing=True))
    grid = [[[a + r * u + s * v + t * w for t in points] for s in points] for r in points]
    want = np.einsum("a,b,c,abc", *[inverse[1]] * 3, np.linalg.det(grid))
    x = mg.tensor(a, requires_grad=True)
    slope = la.det(x)
    for direction in (u, v, w):
        slope = (mg.grad(slope, [x], create_graph=True)[0] * direction).sum()
    np.testing.assert_allclose(slope.item(), want, rtol=1e-9, atol=1e-9)
    assert np.isfinite(mg.grad(slope, [x])[0].numpy()).all()


def test_det_and_slogdet_of_what_is_not_finite():
    a = [[NAN, 1.0], [0.0, 0.0]]
    y, (g,), _ = derivatives(la.det, a)
    assert math.isnan(y)
    np.testing.assert_equal(np.array(g) + 0.0, [[0, 0], [-1, NAN]])
    assert la.det(mg.tensor([[INF, 0.0], [0.0, 2.0]])).item() == INF
    sign, logabsdet = la.slogdet(mg.tensor([[[NAN, 1.0], [0.0, 0.0]], [[2.0, 0.0], [0.0, -1.0]]]))
    np.testing.assert_equal(sign.tolist(), [NAN, -1])
    np.testing.assert_allclose(logabsdet.numpy(), [NAN, math.log(2)], rtol=1e-7)


def test_slogdet_of_a_singular_matrix():
    def logabsdet(a):
        return la.slogdet(a).logabsdet

    singular = [[1.0, 2.0], [2.0, 4.0]]
    assert la.slogdet(mg.tensor(singular)).sign.item() == 0
    assert_row(logabsdet, (singular,), -INF, ([[INF, -INF], [-INF, INF]],))
    assert_row(logabsdet, (singular,), -INF, (np.zeros((2, 2)),), upstream=0.0)
    assert_row(logabsdet, ([[0.0]],), -INF, ([[INF]],))
    # what where() drops contributes nothing, and the others are right
    stack = np.array([singular, [[1.0, 0.0], [0.0, 2.0]]])
    kept = mg.tensor([False, True])
    _, (g,), (gg,) = derivatives(lambda a: mg.where(kept, logabsdet(a), 0.0).sum(), stack)
    np.testing.assert_allclose(g, [np.zeros((2, 2)), [[1, 0], [0, 0.5]]], atol=1e-15)
    np.testing.assert_allclose(gg, [np.zeros((2, 2)), [[-1, -0.5], [-0.5, -0.25]]], atol=1e-15)


def test_slogdet_does_not_overflow():
    a = 1e30 * np.eye(20)
    sign, logabsdet = la.slogdet(mg.tensor(a))
    assert sign.item() == 1
    np.testing.assert_allclose(logabsdet.item(), 20 * math.log(1e30))
    assert la.det(mg.tensor(a)).item() == INF


def test_logdet():
    assert mg.logdet(mg.tensor([[1.0, 0.0], [0.0, 0.0]])).item() == -INF
    y, (g,), _ = derivatives(mg.logdet, [[-2.0]])
    assert math.isnan(y)
    assert g == [[-0.5]]  # as log: NaN with the derivative 1 / x


# ---- repeated eigenvalues and singular values ----------------------------------------------------


@by_dtype
def test_eigh_of_repeated_eigenvalues(dtype, rng):
    """Functions independent of the choice of vectors have a finite and right gradient."""
    rotation = np.linalg.qr(rng.normal(size=(4, 4)))[0]
    a = rotation @ np.diag([1.0, 1, 1, 3]) @ rotation.T
    tolerance = (
        {"rtol": 1e-4, "atol": 1e-4} if dtype is mg.float32 else {"rtol": 1e-9, "atol": 1e-9}
    )
    x = mg.tensor((a + a.T) / 2, dtype, requires_grad=True)

    def spaces(t):
        v = la.eigh(t).eigenvectors
        first = v[:, :3] @ v[:, :3].mT  # the projection onto the space of the repeated one
        return first + (la.eigvalsh(t) ** 2).sum()

    g = rng.normal(size=(4, 4))
    (got,) = mg.grad(spaces(x), [x], mg.tensor(g, dtype))
    # a change between the two spaces turns the projection, by one over the gap of 3 - 1
    p = rotation @ np.diag([1.0, 1, 1, 0]) @ rotation.T
    turn = -p @ (g + g.T) @ (np.eye(4) - p) / 4
    np.testing.assert_allclose(got.numpy(), turn + turn.T + 2 * a * g.sum(), **tolerance)
    one = mg.tensor(np.eye(3), dtype, requires_grad=True)
    (got,) = mg.grad(la.eigh(one).eigenvalues.sum(), [one])
    np.testing.assert_array_equal(got.numpy(), np.eye(3))
    v = la.eigh(one).eigenvectors
    (got,) = mg.grad((v @ v.mT).sum(), [one])
    np.testing.assert_array_equal(got.numpy(), np.zeros((3, 3)))


@by_dtype
def test_what_equal_eigenvalues_do_not_tell_is_nan(dtype, rng):
    """V f(w) V^T and f(w) summed beside V V^T have the same gradients of w and V, not of A."""

    def of_both(f):
        def function(t):
            w, v = la.eigh(t)
            return ((v * f(w)) @ v.mT).sum()

        return function

    def first_vector(t):
        v = la.eigh(t).eigenvectors
        return v[..., 0, 0] * v[..., 1, 0]

    for f in (of_both(mg.sqrt), of_both(mg.log), of_both(mg.square), first_vector):
        for a in (np.eye(2), np.diag([1.0, 1, 2])):
            x = mg.tensor(a, dtype, requires_grad=True)
            assert np.isnan(mg.grad(f(x), [x])[0].numpy()).all()
        # of a stack, the other matrices have theirs
        x = mg.tensor(np.stack([np.eye(2), np.diag([1.0, 2])]), dtype, requires_grad=True)
        got = mg.grad(f(x).sum(), [x])[0].numpy()
        assert np.isnan(got[0]).all()
        assert np.isfinite(got[1]).all()

    def largest(t):  # of a matrix with several zeros, which have no gradient here
        w, v = la.eigh(t)
        return w[-1] * v[:, -1] @ mg.tensor(g, dtype) @ v[:, -1]

    g, u = rng.normal(size=(4, 4)), np.linalg.qr(rng.normal(size=(4, 4)))[0][:, 0]
    x = mg.tensor(np.outer(u, u) * 3.0, dtype, requires_grad=True)
    (got,) = mg.grad(largest(x), [x])
    # the derivative of the best approximation of rank 1 at a matrix of rank 1
    p, s = np.outer(u, u), (g + g.T) / 2
    want = s @ p + p @ s - p @ s @ p
    tolerance = 1e-5 if dtype is mg.float32 else 1e-12
    np.testing.assert_allclose(got.numpy(), want, rtol=tolerance, atol=tolerance)


@by_dtype
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize(
    "values", [[1, 1], [1, 1, 2], [2, 2, 2, 2], [0.5, 0.5, 3, 3, 3, 5]], ids=str
)
def test_functions_of_a_matrix_of_repeated_eigenvalues(values, turned, dtype, rng):
    """V f(w) V^T by Daleckii and Krein; f(w) summed beside V V^T, which is 1, by f alone."""
    n, g = len(values), rng.normal(size=(len(values),) * 2)
    q = np.linalg.qr(rng.normal(size=(n, n)))[0] if turned else np.eye(n)
    a = q * values @ q.T
    equal = np.equal.outer(values, values)
    gaps = np.where(equal, 1.0, np.subtract.outer(values, values))
    tolerance = 1e-4 if dtype is mg.float32 else 1e-11
    for f, by_numpy, slope in (
        (mg.exp, np.exp, np.exp),
        (lambda w: w, np.asarray, np.ones_like),
        (mg.square, np.square, lambda w: 2 * w),
        (lambda w: w**-0.5, lambda w: w**-0.5, lambda w: -0.5 * w**-1.5),
    ):
        x = mg.tensor((a + a.T) / 2, dtype, requires_grad=True)
        w, v = la.eigh(x)
        (got,) = mg.grad((v * f(w) @ v.mT * mg.tensor(g, dtype)).sum(), [x], create_graph=True)
        made = by_numpy(np.array(values, float))
        inner = np.where(
            equal, slope(np.array(values, float)), np.subtract.outer(made, made) / gaps
        )
        want = q @ (inner * (q.T @ (g + g.T) @ q / 2)) @ q.T
        np.testing.assert_allclose(got.detach().numpy(), want, rtol=tolerance, atol=tolerance)
        assert not np.isfinite(mg.grad(got.square().sum(), [x])[0].numpy()).any()
        w, v = la.eigh(x)
        apart = f(w).sum() + (v @ v.mT * mg.tensor(g, dtype)).sum()
        (got,) = mg.grad(apart, [x])
        want = q * slope(np.array(values, float)) @ q.T
        np.testing.assert_allclose(got.numpy(), want, rtol=tolerance, atol=10 * tolerance)


@by_dtype
@pytest.mark.parametrize("values", [[1.0, 1, 2, 3], [2.0, 2, 2, 2]], ids=str)
@pytest.mark.parametrize("turned", [False, True])
def test_a_cotangent_that_commutes_tells_enough(values, turned, dtype, rng):
    """The norm of f(A) has a cotangent without entries between the vectors of equal values."""
    q = np.linalg.qr(rng.normal(size=(4, 4)))[0] if turned else np.eye(4)
    other = np.linalg.qr(rng.normal(size=(4, 4)))[0] if turned else np.eye(4)
    tolerance = 1e-4 if dtype is mg.float32 else 1e-11
    w = np.array(values)
    for f, made, slope in (
        (lambda w: w, w, w**0),
        (mg.square, w**2, 2 * w),
        (mg.exp, *[np.exp(w)] * 2),
    ):
        x = mg.tensor(q * w @ q.T, dtype, requires_grad=True)
        found, v = la.eigh((x + x.mT) / 2)
        (got,) = mg.grad(la.norm((v * f(found)) @ v.mT), [x])
        inner = made / np.linalg.norm(made) * slope
        np.testing.assert_allclose(got.numpy(), q * inner @ q.T, rtol=tolerance, atol=tolerance)
        x = mg.tensor(q * w @ other.T, dtype, requires_grad=True)
        u, s, vh = la.svd(x, full_matrices=False)
        (got,) = mg.grad(la.norm((u * f(s)) @ vh), [x])
        np.testing.assert_allclose(got.numpy(), q * inner @ other.T, rtol=tolerance, atol=tolerance)


def by_two_calls(f, vectors_first, prepare=lambda t: t):
    """V f(w) V^T G with w and V from two factorisations."""

    def function(t, g):
        if vectors_first:
            v, w = la.eigh(prepare(t)).eigenvectors, la.eigvalsh(prepare(t))
        else:
            w, v = la.eigvalsh(prepare(t)), la.eigh(prepare(t)).eigenvectors
        return ((v * f(w).unsqueeze(-2)) @ v.mT * g).sum()

    return function


@by_dtype
@pytest.mark.parametrize("vectors_first", [False, True])
@pytest.mark.parametrize(
    "prepare", [lambda t: t, mg.clone, lambda t: (t + t.mT) / 2], ids=["same", "clone", "symmetric"]
)
def test_values_and_vectors_from_two_calls(prepare, vectors_first, dtype, rng):
    """NaN beside equal values, where neither call's gradient sees what the other's does."""
    function = by_two_calls(mg.exp, vectors_first, prepare)
    q = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    values = np.array([[2.0, 2, 2], [1, 1, 3], [1, 2, 3]])
    a, g = (q * values[:, None, :]) @ q.T, mg.tensor(rng.normal(size=(3, 3)), dtype)
    x = mg.tensor((a + a.swapaxes(-1, -2)) / 2, dtype, requires_grad=True)
    got = mg.grad(function(x, g), [x])[0].numpy()
    assert np.isnan(got[:2]).all()
    for result in (got[2], mg.grad(function(x[2], g), [x])[0].numpy()[2]):  # those are apart
        made = np.exp(values[2])
        gaps = np.subtract.outer(values[2], values[2]) + np.eye(3)
        inner = np.subtract.outer(made, made) / gaps + np.diag(made)
        want = q @ (inner * (q.T @ (g.numpy() + g.numpy().T) @ q / 2)) @ q.T
        tolerance = 1e-4 if dtype is mg.float32 else 1e-11
        np.testing.assert_allclose(result, want, rtol=tolerance, atol=tolerance)


def test_two_decompositions_share_what_they_know(rng):
    g = mg.tensor(rng.normal(size=(3, 3)))
    one = mg.tensor(np.eye(3), requires_grad=True)
    for first in (False, True):  # a logarithm that is 0 leaves no trace at the vectors
        assert np.isnan(mg.grad(by_two_calls(mg.log, first)(one, g), [one])[0].numpy()).all()
    x = mg.tensor(2 * np.eye(3), requires_grad=True)
    other = mg.tensor(np.diag([3.0, 3, 4]), requires_grad=True)

    def projected(t):
        v = la.eigh(t).eigenvectors[:, :2]
        return (v @ v.mT * g).sum()

    v = la.eigh(x).eigenvectors
    w = la.eigh(x).eigenvalues
    assert np.isnan(mg.grad(((v * w) @ v.mT * g).sum(), [x])[0].numpy()).all()
    u, _, vh = la.svd(x)
    s = la.svdvals(x)
    for loss in ((u * s) @ vh * g, (u * s) @ u.mT * g):
        got = mg.grad(loss.sum(), [x], retain_graph=True)[0].numpy()
        assert np.isnan(got).all()
    # other matrices, and losses that are run apart, share nothing
    got = mg.grad(projected(other) + la.eigvalsh(x).sum(), [x, other])
    np.testing.assert_array_equal(got[0].numpy(), np.eye(3))
    assert np.isfinite(got[1].numpy()).all()
    la.eigvalsh(other).sum().backward()
    projected(other).backward()
    np.testing.assert_allclose(other.grad.numpy(), np.eye(3) + got[1].numpy(), atol=1e-15)


def test_a_backward_inside_another_shares_nothing_with_it(rng):
    x = mg.tensor(2 * np.eye(3), requires_grad=True)

    class Inner(mg.autograd.Function):
        @staticmethod
        def forward(ctx, t):
            return t * 1.0

        @staticmethod
        def backward(ctx, g):
            one = mg.tensor(2 * np.eye(3), requires_grad=True)
            with mg.enable_grad():
                la.eigvalsh(one).square().sum().backward()
            return g * one.grad

    v = la.eigh(Inner.apply(x)).eigenvectors
    (got,) = mg.grad((v @ v.mT * mg.tensor(rng.normal(size=(3, 3)))).sum(), [x])
    np.testing.assert_allclose(got.numpy(), np.zeros((3, 3)), atol=1e-14)
    # that of the values ran inside; those of the outer one are still known after it
    w, v = la.eigvalsh(x), la.eigh(Inner.apply(x)).eigenvectors
    (got,) = mg.grad(((v * w) @ v.mT * mg.tensor(rng.normal(size=(3, 3)))).sum(), [x])
    assert np.isnan(got.numpy()).all()


def test_pinv_of_a_tiny_matrix(rng):
    a, g = rng.normal(size=(3, 3)), rng.normal(size=(3, 3))
    got = []
    for scale in (1.0, 2.0**-60):
        x = mg.tensor(a * scale, mg.float32, requires_grad=True)
        got.append(mg.grad(la.pinv(x), [x], mg.tensor(g, mg.float32))[0].numpy() * scale**2)
    np.testing.assert_allclose(got[1], got[0], rtol=1e-3, atol=1e-3)


@by_dtype
def test_what_equal_singular_values_do_not_tell_is_nan(dtype):
    def of_both(t):
        u, s, vh = la.svd(t, full_matrices=False)
        return ((u * s**3) @ vh).sum()

    for a in (np.eye(2), np.eye(3)[:, :2], np.zeros((3, 3)), np.diag([1.0, 2, 2])):
        x = mg.tensor(a, dtype, requires_grad=True)
        got = mg.grad(of_both(x), [x])[0].numpy()
        if a.any():
            assert np.isnan(got).all()
        else:
            np.testing.assert_array_equal(got, a)
    # functions of U, of S and of V apart whose gradients agree with those of one of U S V^T
    x = mg.tensor(2 * np.eye(3), dtype, requires_grad=True)
    u, s, vh = la.svd(x)
    apart = s.sum() + (u @ u.mT).sum() + (vh.mT @ vh).sum()
    assert np.isnan(mg.grad(apart, [x])[0].numpy()).all()
    x = mg.tensor(np.eye(2), dtype, requires_grad=True)
    u = la.svd(x).U
    assert np.isnan(mg.grad(u[0, 0] * u[1, 0], [x])[0].numpy()).all()


@by_dtype
@pytest.mark.parametrize("shape", [(3, 3), (5, 3), (3, 5), (6, 5), (2, 5, 6)], ids=str)
@pytest.mark.parametrize("rank", [1, 2])
def test_what_a_matrix_of_low_rank_tells(shape, rank, dtype, rng):
    """U f(S) V^T with f(0) = 0, where values are 0 but for rounding; others there get NaN."""
    *batch, m, n = shape
    a = rng.normal(size=(*batch, m, rank)) @ rng.normal(size=(*batch, rank, n))
    x, g = mg.tensor(a, dtype, requires_grad=True), rng.normal(size=shape)

    def through(f, x):
        u, s, vh = la.svd(x, full_matrices=False)
        return (u * f(s).unsqueeze(-2) @ vh * mg.tensor(g, x.dtype)).sum()

    if (la.svdvals(x.detach()) == 0).any():
        pytest.skip("a value that is exactly 0 tells nothing")
    y = through(lambda s: s, x)
    (got,) = mg.grad(y, [x], create_graph=True)
    tolerance = 1e-3 if dtype is mg.float32 else 1e-10
    np.testing.assert_allclose(got.detach().numpy(), g, rtol=tolerance, atol=tolerance)
    several = rank < min(m, n) - 1
    if several or m != n:  # else the one value of 0 has vectors that nothing else could be
        (second,) = mg.grad(got.square().sum(), [x])
        assert not np.isfinite(second.numpy()).any()
        other = mg.grad(through(lambda s: 1 + s, x), [x])[0]
        assert np.isnan(other.numpy()).all()
    if several:
        least = mg.tensor(np.arange(min(m, n)) == min(m, n) - 1)
        assert np.isnan(mg.grad(through(lambda s: s * least, x), [x])[0].numpy()).all()
    for f in (lambda s: 2 * s + s.square(), mg.sin):
        near = mg.tensor(a + 1e-7 * rng.normal(size=shape), requires_grad=True)
        (want,) = mg.grad(through(f, near), [near])  # all of its values are apart
        (got,) = mg.grad(through(f, x), [x])
        np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-3, atol=1e-3)


def test_second_derivatives_at_repeated_eigenvalues(rng):
    """0 for a sum of values; NaN where what an equal pair adds cannot be found."""
    w = rng.normal(size=(3, 3))
    for f, want in (
        (lambda t: la.eigvalsh(t).sum(), 0.0),
        (lambda t: (la.eigvalsh(t) ** 2).sum(), NAN),
        (lambda t: (la.svdvals(t) ** 2).sum(), NAN),
    ):
        x = mg.tensor(np.eye(3), requires_grad=True)
        (g,) = mg.grad(f(x), [x], create_graph=True)
        (gg,) = mg.grad((g * w).sum(), [x])
        np.testing.assert_array_equal(gg.numpy(), np.full((3, 3), want))


@pytest.mark.parametrize("shape", [(3, 3), (4, 2), (2, 4)], ids=str)
def test_svd_of_repeated_and_zero_singular_values(shape, rng):
    """U @ Vh is unique and smooth where the rank is full; elsewhere the gradient is finite."""

    def polar(t):
        u, _, vh = la.svd(t, full_matrices=False)
        return u @ vh

    k = min(shape)
    for values in ([2.0, 2, 2], [1.0, 1, 0], [0.0, 0, 0]):
        u, _, vh = np.linalg.svd(rng.normal(size=shape), full_matrices=False)
        a, g = (u * values[:k]) @ vh, rng.normal(size=shape)
        x = mg.tensor(a, requires_grad=True)
        (got,) = mg.grad(polar(x), [x], mg.tensor(g))
        assert np.isfinite(got.numpy()).all()
        if values[-1]:
            (want,) = oracle.numerical_vjp(oracle.forward_of(polar), [a], g)
            np.testing.assert_allclose(got.numpy(), want, rtol=1e-8, atol=1e-9)


# ---- norms of zeros and ties ---------------------------------------------------------------------


@by_dtype
def test_matrix_norms_of_zeros_have_gradient_0(dtype):
    for order in ("fro", "nuc", 2, 1, INF):
        x = mg.zeros(3, 3, dtype=dtype, requires_grad=True)
        y = la.matrix_norm(x, order)
        (g,) = mg.grad(y, [x], create_graph=True)
        assert y.item() == 0
        oracle.assert_same(np.abs(g.detach().numpy()), np.zeros((3, 3), dtype.name))
        (gg,) = mg.grad(g.sum(), [x]) if g.requires_grad else (mg.zeros_like(x),)
        np.testing.assert_array_equal(gg.numpy(), np.zeros((3, 3)))


def test_the_largest_singular_values_share_the_gradient():
    x = mg.tensor(np.diag([2.0, 2.0, 1.0]), requires_grad=True)
    (g,) = mg.grad(la.matrix_norm(x, 2), [x])
    np.testing.assert_allclose(g.numpy(), np.diag([0.5, 0.5, 0]), atol=1e-15)


def test_the_nuclear_norm_of_a_deficient_matrix_takes_the_least_subgradient():
    x = mg.tensor(np.diag([3.0, 0.0]), requires_grad=True)
    (g,) = mg.grad(la.matrix_norm(x, "nuc"), [x])
    np.testing.assert_array_equal(np.abs(g.numpy()), np.diag([1.0, 0.0]))


# ---- NaN and infinities --------------------------------------------------------------------------

SPOILT = {
    "inv": la.inv,
    "solve": lambda a: la.solve(a, mg.ones(3, 2, dtype=a.dtype)),
    "solve_triangular": lambda a: la.solve_triangular(a, mg.ones(3, 2), upper=True),
    "cholesky": la.cholesky,
    "pinv": la.pinv,
    "matrix_exp": la.matrix_exp,
    "qr": lambda a: la.qr(a).Q,
    "svd": lambda a: la.svd(a).U,
    "svdvals": la.svdvals,
    "eigh": lambda a: la.eigh(a).eigenvectors,
    "lstsq": lambda a: la.lstsq(a, mg.ones(3, 2, dtype=a.dtype)).solution,
}


@pytest.mark.parametrize("spoilt", [NAN, INF, -INF])
@pytest.mark.parametrize("op", SPOILT.values(), ids=SPOILT)
def test_a_spoilt_matrix_gives_nan_and_leaves_the_others(op, spoilt):
    good = np.array([[3.0, 1, 0], [1, 4, 1], [0, 1, 5]])
    bad = good.copy()
    bad[1, 1] = spoilt
    x = mg.tensor(np.stack([good, bad]), requires_grad=True)
    y = op(x)
    assert np.isnan(y[1].detach().numpy()).all()
    oracle.assert_same(y[0].detach().numpy(), op(mg.tensor(good)).numpy())
    (g,) = mg.grad(y, [x], mg.ones_like(y))
    alone = mg.tensor(good, requires_grad=True)
    (want,) = mg.grad(op(alone), [alone], mg.ones_like(y[0]))
    np.testing.assert_allclose(g[0].numpy(), want.numpy(), rtol=1e-12, atol=1e-13)
    assert np.isnan(g[1].numpy()).any()


def test_a_triangle_is_not_spoilt_by_the_other_one():
    a = np.array([[2.0, NAN], [1.0, 4.0]])
    x = la.solve_triangular(mg.tensor(a), mg.tensor([[2.0], [5.0]]), upper=False)
    assert x.tolist() == [[1.0], [1.0]]


def test_nan_on_the_right_hand_side_stays_in_its_column():
    b = mg.tensor([[1.0, NAN], [2.0, 1.0]])
    x = la.solve(mg.tensor([[2.0, 1.0], [1.0, 3.0]]), b).numpy()
    assert np.isfinite(x[:, 0]).all()
    assert np.isnan(x[:, 1]).all()


@by_dtype
@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (3, 5)])
def test_what_equal_singular_values_tell(shape, dtype, rng):
    """U f(S) V^T with f linear at values that are equal: its gradient does not ask for f'."""
    m, n = shape
    k = min(m, n)
    g = rng.normal(size=shape)
    u, vt = (np.linalg.qr(rng.normal(size=(side, k)))[0] for side in (m, n))
    for values in (np.full(k, 2.0), np.array([3.0, 1, 1, 0.5])[:k]):
        x = mg.tensor(u * values @ vt.T, dtype, requires_grad=True)

        def through(f, x=x):
            u, s, vh = la.svd(x, full_matrices=False)
            return mg.grad((u * f(s) @ vh * mg.tensor(g, dtype)).sum(), [x])[0].numpy()

        tolerance = 1e-4 if dtype is mg.float32 else 1e-12
        np.testing.assert_allclose(through(lambda s: s), g, rtol=tolerance, atol=tolerance)
        np.testing.assert_allclose(through(lambda s: 3 * s), 3 * g, tolerance, 3 * tolerance)
        assert np.isnan(through(mg.square)).all()
        assert np.isnan(through(lambda s: s - 1)).all()
