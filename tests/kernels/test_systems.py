"""Elimination, substitution, Cholesky and QR in C: sizes around their halves, scales, stacks."""

from __future__ import annotations

import math

import numpy as np
import oracle
import pytest
import scipy.linalg

import minigrad as mg

la = mg.linalg
INF, NAN = math.inf, math.nan
SIZES = [1, 2, 3, 7, 8, 23, 24, 25, 49, 64, 65, 96, 200]
by_size = pytest.mark.parametrize("n", SIZES)
by_dtype = pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float32", "float64"])


def residual(a, x, b, dtype):
    """That is as small as rounding, in doubles and then of the result, leaves it."""
    n = a.shape[-1]
    bound = np.abs(a) @ np.abs(x) + np.abs(b)
    assert (np.abs(a @ x - b) <= (8 + n) * np.finfo(dtype).eps * bound).all()


@by_size
@by_dtype
def test_solve_and_inv(n, dtype, rng):
    """Rows have to be swapped: nothing stands out on the diagonal."""
    a, b = rng.normal(size=(n, n)).astype(dtype), rng.normal(size=(n, 3)).astype(dtype)
    x = la.solve(mg.tensor(a), mg.tensor(b)).numpy()
    assert x.dtype == dtype
    wide = a.astype(np.float64)
    residual(wide, x.astype(np.float64), b, dtype)
    column = la.solve(mg.tensor(a), mg.tensor(b[:, 0])).numpy()
    residual(wide, column.astype(np.float64), b[:, 0], dtype)
    inverse = la.inv(mg.tensor(a)).numpy().astype(np.float64)
    residual(wide, inverse, np.eye(n), dtype)
    tolerance = 1e-3 if dtype == np.float32 else 1e-9
    np.testing.assert_allclose(inverse, np.linalg.inv(wide), rtol=tolerance, atol=tolerance)


@by_size
@pytest.mark.parametrize("unit", [False, True])
@pytest.mark.parametrize("is_upper", [False, True])
def test_triangles_of_every_size(n, is_upper, unit, rng):
    a = rng.uniform(-1, 1, (n, n)) / n + np.eye(n) * rng.uniform(1, 2, n)
    triangle = (np.triu if is_upper else np.tril)(a, 0)
    unread = np.tril(np.full((n, n), NAN), -1) if is_upper else np.triu(np.full((n, n), NAN), 1)
    given = triangle + unread
    if unit:
        np.fill_diagonal(triangle, 1)
        np.fill_diagonal(given, NAN)
    for k in (1, 5, 70):
        b = rng.normal(size=(n, k))
        want = scipy.linalg.solve_triangular(triangle, b, lower=not is_upper)
        for layout in ("contiguous", "transposed", "reversed"):
            x = la.solve_triangular(
                oracle.tensor_in_layout(given, layout),
                oracle.tensor_in_layout(b, layout),
                upper=is_upper,
                unitriangular=unit,
            )
            np.testing.assert_allclose(x.numpy(), want, rtol=1e-10, atol=1e-12)


@by_size
@by_dtype
def test_cholesky_of_every_size(n, dtype, rng):
    root = rng.normal(size=(n, n))
    a = (root @ root.T / n + np.eye(n)).astype(dtype)
    given = np.tril(a) + np.triu(np.full((n, n), NAN), 1).astype(dtype)
    factor = la.cholesky(mg.tensor(given)).numpy()
    assert factor.dtype == dtype
    np.testing.assert_array_equal(np.triu(factor, 1), np.zeros((n, n)))
    tolerance = 1e-5 if dtype == np.float32 else 1e-12
    want = np.linalg.cholesky(np.tril(a) + np.tril(a, -1).T)
    np.testing.assert_allclose(factor, want, rtol=tolerance, atol=tolerance)
    upper = la.cholesky(mg.tensor(given.T), True).numpy()
    np.testing.assert_array_equal(upper, factor.T)
    for wrong in {0, n // 2, n - 1}:
        spoilt = a.copy()
        spoilt[wrong, wrong] = -1
        with pytest.raises(la.LinAlgError, match=r"\[cholesky\] the matrix is not positive"):
            la.cholesky(mg.tensor(spoilt))


@by_size
def test_determinants_of_every_size(n, rng):
    a = rng.normal(size=(2, n, n)) / math.sqrt(n)
    a[1, 0] = -a[0, 0]
    sign, logarithm = np.linalg.slogdet(a)
    found = la.slogdet(mg.tensor(a))
    np.testing.assert_array_equal(found.sign.numpy(), sign)
    np.testing.assert_allclose(found.logabsdet.numpy(), logarithm, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(la.det(mg.tensor(a)).numpy(), np.linalg.det(a), rtol=1e-8)


def test_determinants_do_not_overflow_on_the_way():
    a = np.diag([1e200, 1e200, -1e-300, 1e-300, 3.0])
    np.testing.assert_allclose(la.det(mg.tensor(a)).item(), -3e-200, rtol=1e-14)
    assert la.det(mg.tensor(np.diag([5e-324, 5e-324, 2.0**600]))).item() == 0
    np.testing.assert_allclose(la.det(mg.tensor(np.diag([5e-324, 2.0**1023]))).item(), 2.0**-51)
    sign, logarithm = la.slogdet(mg.tensor(np.diag([5e-324, 5e-324])))
    assert sign.item() == 1
    np.testing.assert_allclose(logarithm.item(), -2148 * math.log(2), rtol=1e-15)
    near = np.diag([1 + 2.0**-40, 1.0])
    np.testing.assert_allclose(la.slogdet(mg.tensor(near)).logabsdet.item(), math.log1p(2.0**-40))
    assert la.slogdet(mg.tensor(np.diag([0.5, 2.0]))).logabsdet.item() == 0


@pytest.mark.parametrize("n", [1, 2, 5, 30, 64])
@pytest.mark.parametrize("row", [0, -1])
def test_the_singular_one_is_named(n, row, rng):
    stack = rng.normal(size=(2, 3, n, n)) + 3 * np.eye(n)
    stack[1, 0, :, row] = 0
    x = mg.tensor(stack)
    for op in (la.inv, lambda a: la.solve(a, a), lambda a: la.solve(a, mg.ones(n, 0))):
        with pytest.raises(la.LinAlgError, match=r"matrix \(1, 0\) of the batch is singular"):
            op(x)
    assert la.det(x).numpy()[1, 0] == 0
    sign, logarithm = la.slogdet(x)
    assert (sign.numpy()[1, 0], logarithm.numpy()[1, 0]) == (0, -INF)
    with pytest.raises(la.LinAlgError, match=r"matrix \(1, 0\) of the batch has a 0 on its diag"):
        la.solve_triangular(x, x, upper=True)
    la.solve_triangular(x, x, upper=True, unitriangular=True)


def test_a_spoilt_matrix_hides_no_singular_one():
    stack = np.stack([np.full((2, 2), NAN), np.zeros((2, 2))])
    with pytest.raises(la.LinAlgError, match=r"matrix 1 of the batch is singular"):
        la.inv(mg.tensor(stack))
    assert np.isnan(la.inv(mg.tensor(stack[:1])).numpy()).all()


@pytest.mark.parametrize(
    "shape",
    [(1, 1), (5, 1), (4, 4), (9, 4), (64, 64), (300, 64), (65, 65), (70, 30), (30, 70)],
    ids=str,
)
@by_dtype
def test_qr_of_every_size(shape, dtype, rng):
    a = rng.normal(size=(2, *shape)).astype(dtype)
    q, r = (t.numpy() for t in la.qr(mg.tensor(a)))
    tolerance = {"rtol": 1e-4, "atol": 1e-5} if dtype == np.float32 else {"atol": 1e-12}
    want_q, want_r = np.linalg.qr(a.astype(np.float64))
    np.testing.assert_allclose(q, want_q, **tolerance)
    np.testing.assert_allclose(r, want_r, **tolerance)
    np.testing.assert_array_equal(np.tril(r, -1), np.zeros_like(r))


@pytest.mark.parametrize("scale", [1e-310, 1e-200, 1e200, 1e307])
def test_qr_neither_overflows_nor_underflows(scale):
    a = np.array([[1.0, 2, 0], [2, 1, 1], [2, 0, 1], [4, 1, 1]]) * scale
    q, r = (t.numpy() for t in la.qr(mg.tensor(a)))
    tolerance = 1e-10 if scale < 1e-300 else 1e-14
    np.testing.assert_allclose(q.T @ q, np.eye(3), atol=tolerance)
    np.testing.assert_allclose((q / 4) @ r, a / 4, rtol=tolerance, atol=scale * tolerance)


def test_qr_of_dependent_columns():
    a = np.array([[0.0, 0, 1], [0, 0, 2], [0, 3, 0], [0, 4, 0]])
    q, r = (t.numpy() for t in la.qr(mg.tensor(a)))
    np.testing.assert_allclose(q.T @ q, np.eye(3), atol=1e-15)
    np.testing.assert_allclose(q @ r, a, atol=1e-15)
    zero = mg.zeros(3, 2)
    q, r = la.qr(zero)
    assert q.tolist() == [[1, 0], [0, 1], [0, 0]]
    assert r.tolist() == [[0, 0], [0, 0]]


def test_infinities_in_a_determinant():
    """They count, as in a product of pivots; with a pivot of 0 it is 0."""
    values = np.array([[[INF, 0], [0, 2]], [[INF, 0], [0, 0]], [[-INF, 1], [0, 2]]])
    assert la.det(mg.tensor(values)).tolist() == [INF, 0, -INF]
    assert la.slogdet(mg.tensor(values)).logabsdet.tolist() == [INF, -INF, INF]


OPERATIONS = {
    "solve": lambda a: la.solve(a, a + 1),
    "inv": la.inv,
    "det": la.det,
    "cholesky": lambda a: la.cholesky(a @ a.mT),
    "upper": lambda a: la.solve_triangular(a, a + 1, upper=True),
    "qr": lambda a: la.qr(a).Q,
}


@pytest.mark.parametrize("op", OPERATIONS.values(), ids=OPERATIONS)
@pytest.mark.parametrize("shape", [(4000, 3, 3), (40, 33, 33), (1, 300, 300)], ids=str)
def test_any_number_of_threads_gives_the_same_bits(op, shape, rng):
    a = mg.tensor(rng.normal(size=shape) + 4 * np.eye(shape[-1]))
    results = []
    before = mg.get_num_threads()
    for threads in (1, 2, 3):
        mg.set_num_threads(threads)
        results.append(op(a).numpy())
    mg.set_num_threads(before)
    for result in results[1:]:
        oracle.assert_same(result, results[0])
    oracle.assert_same(op(a[-1]).numpy(), results[0][-1])


@pytest.mark.parametrize("n", [26, 60])
def test_derivatives_of_larger_systems(n, rng):
    """A random direction, by differences."""
    a, b = rng.normal(size=(n, n)) + 8 * np.eye(n), rng.normal(size=(n, 2))
    da, db = rng.normal(size=(n, n)), rng.normal(size=(n, 2))
    operations = {
        "solve": la.solve,
        "triangular": lambda s, t: la.solve_triangular(s, t, upper=False),
        "cholesky": lambda s, t: la.cholesky(s @ s.mT) @ t,
        "qr": lambda s, t: la.qr(s).R @ t,
        "slogdet": lambda s, t: la.slogdet(s).logabsdet * t,
    }
    for name, op in operations.items():
        g = rng.normal(size=(n, 2))
        x, y = mg.tensor(a, requires_grad=True), mg.tensor(b, requires_grad=True)
        by_a, by_b = mg.grad(op(x, y), (x, y), mg.tensor(g))
        got = (by_a.numpy() * da).sum() + (by_b.numpy() * db).sum()
        step = 1e-5
        ends = [op(mg.tensor(a + h * da), mg.tensor(b + h * db)).numpy() for h in (step, -step)]
        want = ((ends[0] - ends[1]) * g).sum() / (2 * step)
        np.testing.assert_allclose(got, want, rtol=1e-6, err_msg=name)
