"""Linear algebra: values against NumPy and SciPy, derivatives to second order, edges and errors."""

from __future__ import annotations

import math

import numpy as np
import oracle
import pytest
import scipy.linalg

import minigrad as mg

la = mg.linalg
INF, NAN = math.inf, math.nan
BATCHES = [(), (2,), (2, 1), (0,)]
by_batch = pytest.mark.parametrize("batch", BATCHES, ids=str)
by_dtype = pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float32", "float64"])


def symmetric(a):
    return (a + a.mT) * 0.5


def definite(a):
    """A matrix that is symmetric and positive definite, made of any square one."""
    return a @ a.mT + mg.tensor(np.eye(a.shape[-1]), a.dtype)


def lower(a):
    """A well conditioned lower triangle, with something above it that should not be read."""
    return np.tril(a) / 2 + 2 * np.eye(a.shape[-1]) + np.triu(np.full_like(a, 7), 1)


def upper(a):
    return lower(a).swapaxes(-1, -2)


def squared_vectors(a):
    """A function that does not depend on the vectors' signs."""
    u, s, vh = la.svd(a, full_matrices=False)
    parts = [u * u * s.unsqueeze(-2), u @ vh, vh * vh]
    return mg.cat([p.reshape((-1,)) if p.size else p.reshape((0,)) for p in parts])


# name: (the operation, what NumPy gives, how its inputs are made of random ones, their shapes)
SQUARE = [(1, 1), (3, 3)]
OPERATIONS = {
    "inv": (la.inv, np.linalg.inv, None, SQUARE),
    "det": (la.det, np.linalg.det, None, [(1, 1), (2, 2), (3, 3), (4, 4), (5, 5)]),
    "logabsdet": (
        lambda a: la.slogdet(a).logabsdet,
        lambda a: np.linalg.slogdet(a)[1],
        None,
        SQUARE,
    ),
    "logdet": (lambda a: mg.logdet(definite(a)), None, None, SQUARE),
    "matrix_power 3": (lambda a: la.matrix_power(a, 3), lambda a: a @ a @ a, None, SQUARE),
    "matrix_power 0": (
        lambda a: la.matrix_power(a, 0),
        lambda a: np.linalg.matrix_power(a, 0),
        None,
        SQUARE,
    ),
    "matrix_power -2": (
        lambda a: la.matrix_power(a, -2),
        lambda a: np.linalg.inv(a @ a),
        None,
        SQUARE,
    ),
    "matrix_exp": (la.matrix_exp, scipy.linalg.expm, None, SQUARE),
    "cholesky": (lambda a: la.cholesky(definite(a)), None, None, SQUARE),
    "cholesky upper": (lambda a: la.cholesky(definite(a), True), None, None, SQUARE),
    "cholesky_inverse": (mg.cholesky_inverse, None, lower, SQUARE),
    "pinv": (la.pinv, np.linalg.pinv, None, [(1, 1), (3, 3), (4, 2), (2, 4)]),
    "eigvalsh": (lambda a: la.eigvalsh(symmetric(a)), None, None, SQUARE),
    "eigenvectors": (lambda a: la.eigh(symmetric(a)).eigenvectors.square(), None, None, SQUARE),
    "svdvals": (
        la.svdvals,
        lambda a: np.linalg.svd(a, compute_uv=False),
        None,
        [(1, 1), (3, 3), (4, 2), (2, 4)],
    ),
    "singular vectors": (squared_vectors, None, None, [(3, 3), (4, 2), (2, 4)]),
    "qr Q": (lambda a: la.qr(a).Q, lambda a: np.linalg.qr(a)[0], None, [(3, 3), (4, 2), (2, 4)]),
    "qr R": (lambda a: la.qr(a).R, lambda a: np.linalg.qr(a)[1], None, [(3, 3), (4, 2), (2, 4)]),
    "cond": (la.cond, np.linalg.cond, None, [(3, 3), (4, 2)]),
    "cond 1": (lambda a: la.cond(a, 1), lambda a: np.linalg.cond(a, 1), None, [(3, 3)]),
    "cond fro": (lambda a: la.cond(a, "fro"), lambda a: np.linalg.cond(a, "fro"), None, [(3, 3)]),
}
CASES = [
    pytest.param(op, numpy, make, shape, id=f"{name} {shape}")
    for name, (op, numpy, make, shapes) in OPERATIONS.items()
    for shape in shapes
]


@pytest.mark.parametrize(("op", "numpy", "make", "shape"), CASES)
def test_derivatives(op, numpy, make, shape, rng):
    a = rng.normal(size=shape)
    oracle.check_gradients(op, [a if make is None else make(a)], rng, rtol=1e-7, atol=1e-7)


@by_batch
@pytest.mark.parametrize(("op", "numpy", "make", "shape"), CASES)
def test_a_stack_is_its_matrices(op, numpy, make, shape, batch, rng):
    """Values and gradients, in batches of every kind, of none and of nothing."""
    a = rng.normal(size=(*batch, *shape))
    a = a if make is None else make(a)
    x = mg.tensor(a, requires_grad=True)
    if op is squared_vectors and batch:
        return  # it flattens
    y = op(x)
    if numpy is not None and a.size:
        np.testing.assert_allclose(y.detach().numpy(), numpy(a), rtol=1e-9, atol=1e-10)
    g = rng.normal(size=y.shape)
    (got,) = mg.grad(y, [x], mg.tensor(np.asarray(g)))
    assert got.shape == x.shape
    for at in np.ndindex(batch):
        one = mg.tensor(a[at], requires_grad=True)
        alone = op(one)
        np.testing.assert_allclose(y.detach().numpy()[at], alone.detach().numpy(), rtol=1e-12)
        (want,) = mg.grad(alone, [one], mg.tensor(np.asarray(g[at])))
        np.testing.assert_allclose(got.numpy()[at], want.numpy(), rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("layout", ["transposed", "reversed", "stepped"])
@pytest.mark.parametrize(("op", "numpy", "make", "shape"), CASES)
def test_layouts(op, numpy, make, shape, layout, rng):
    a = rng.normal(size=(2, *shape))
    a = a if make is None else make(a)
    y = op(mg.tensor(a))
    x = oracle.tensor_in_layout(a, layout, requires_grad=True)
    oracle.assert_same(op(x).detach().numpy(), y.numpy())
    g = np.asarray(rng.normal(size=y.shape))
    (got,) = mg.grad(op(x), [x], oracle.tensor_in_layout(g, layout))
    other = mg.tensor(a, requires_grad=True)
    (want,) = mg.grad(op(other), [other], mg.tensor(g))
    np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("op", "numpy", "make", "shape"), CASES)
def test_float32_stays_float32(op, numpy, make, shape, rng):
    a = rng.normal(size=shape) + 3 * np.eye(*shape)
    a = (a if make is None else make(a)).astype(np.float32)
    x, wide = mg.tensor(a, requires_grad=True), mg.tensor(a.astype(np.float64), requires_grad=True)
    y, want = op(x), op(wide)
    assert y.dtype is mg.float32
    np.testing.assert_allclose(y.detach().numpy(), want.detach().numpy(), rtol=2e-4, atol=2e-5)
    g = np.asarray(rng.normal(size=y.shape), np.float32)
    (by,), (by_wide,) = mg.grad(y, [x], mg.tensor(g)), mg.grad(want, [wide], mg.tensor(g * 1.0))
    assert by.dtype is mg.float32
    np.testing.assert_allclose(by.numpy(), by_wide.numpy(), rtol=2e-3, atol=2e-4)


def test_integers_become_float32():
    a = mg.tensor([[2, 1], [1, 3]])
    results = (la.inv(a), la.det(a), la.solve(a, a), la.cholesky(a), la.qr(a).R, la.svdvals(a))
    assert all(y.dtype is mg.float32 for y in results)
    assert la.solve(a, mg.tensor([[1.0], [2.0]], mg.float64)).dtype is mg.float64
    assert la.matrix_power(a, 2).tolist() == [[5, 5], [5, 10]]
    assert la.matrix_power(a, 2).dtype is la.matrix_power(a, 0).dtype is mg.int64
    assert la.matrix_power(a, -1).dtype is mg.float32
    assert la.matrix_rank(a).dtype is mg.int64


SIZE_0 = [
    la.inv,
    la.matrix_exp,
    la.cholesky,
    la.pinv,
    lambda a: la.solve(a, a),
    lambda a: la.qr(a).R,
]


@pytest.mark.parametrize("batch", [(), (2,), (0,)], ids=str)
def test_matrices_of_size_0(batch):
    empty = np.zeros((*batch, 0, 0))
    for op in SIZE_0:
        x = mg.tensor(empty, requires_grad=True)
        y = op(x)
        assert y.shape == empty.shape
        assert mg.grad(y, [x], mg.zeros_like(y))[0].shape == empty.shape
    x = mg.tensor(empty, requires_grad=True)
    oracle.assert_same(la.det(x).detach().numpy(), np.ones(batch))
    assert mg.grad(la.det(x).sum(), [x])[0].shape == empty.shape
    oracle.assert_same(la.slogdet(x).logabsdet.detach().numpy(), np.zeros(batch))
    oracle.assert_same(la.cond(x).numpy(), np.zeros(batch))
    oracle.assert_same(la.matrix_rank(x).numpy(), np.zeros(batch, np.int64))


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (2, 0, 3), (0, 3, 2)], ids=str)
def test_factorisations_of_nothing(shape):
    x = mg.tensor(np.zeros(shape), requires_grad=True)
    m, n = shape[-2:]
    u, s, vh = la.svd(x)
    assert (u.shape, s.shape, vh.shape) == (
        (*shape[:-2], m, m),
        (*shape[:-2], min(m, n)),
        (*shape[:-2], n, n),
    )
    assert mg.grad(s, [x], mg.zeros_like(s))[0].shape == shape
    q, r = la.qr(x)
    assert (q @ r).shape == shape
    assert mg.grad(q @ r, [x], mg.zeros(shape, dtype=mg.float64))[0].shape == shape
    assert la.pinv(x).shape == (*shape[:-2], n, m)


# ---- systems -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("a", "b", "left"),
    [
        ((3, 3), (3, 2), True),
        ((3, 3), (3,), True),
        ((2, 3, 3), (2, 3), True),
        ((2, 3, 3), (3,), True),
        ((2, 1, 2, 2), (3, 2, 1), True),
        ((3, 3), (2, 3), False),
        ((2, 2, 2), (3, 2), False),
        ((3, 3), (3,), False),
        ((1, 1), (1, 1), True),
        ((2, 3, 3), (2, 3, 0), True),
        ((0, 3, 3), (3, 2), True),
    ],
    ids=str,
)
def test_solve(a, b, left, rng):
    a, b = rng.normal(size=a) + 2 * np.eye(a[-1]), rng.normal(size=b)
    x = la.solve(mg.tensor(a), mg.tensor(b), left=left).numpy()
    if b.ndim == 1 or (b.ndim == a.ndim - 1 and b.shape == a.shape[:-1]):
        back = (a @ x[..., None])[..., 0] if left else (x[..., None, :] @ a)[..., 0, :]
    else:
        back = a @ x if left else x @ a
    np.testing.assert_allclose(back, np.broadcast_to(b, back.shape), atol=1e-12)
    if a.size:
        oracle.check_gradients(
            lambda s, t: la.solve(s, t, left=left), [a, b], rng, rtol=1e-6, atol=1e-6
        )


def test_a_stack_of_vectors_is_told_from_a_matrix(rng):
    """PyTorch's rule: B of A's shape but for the last dimension holds vectors."""
    a, b = rng.normal(size=(3, 3, 3)), rng.normal(size=(3, 3))
    np.testing.assert_allclose(
        la.solve(mg.tensor(a), mg.tensor(b)).numpy(), np.linalg.solve(a, b[..., None])[..., 0]
    )


SYSTEMS = {
    "solve": la.solve,
    "upper": lambda a, b: la.solve_triangular(a, b, upper=True),
    "lower": lambda a, b: la.solve_triangular(a, b, upper=False, unitriangular=True),
}


@pytest.mark.parametrize("solve", SYSTEMS.values(), ids=SYSTEMS)
def test_a_system_runs_back_alike_for_both_and_for_one(solve, rng):
    """One system backward serves both gradients, and each is the same alone."""
    a, b = rng.normal(size=(4, 4)) + 3 * np.eye(4), rng.normal(size=(4, 2))
    both = [mg.tensor(v, requires_grad=True) for v in (a, b)]
    for x, grad in zip(both, mg.grad(solve(*both).square().sum(), both), strict=True):
        alone = [v if v is x else v.detach() for v in both]
        (expected,) = mg.grad(solve(*alone).square().sum(), [x])
        np.testing.assert_array_equal(grad.numpy(), expected.numpy())


@pytest.mark.parametrize("unit", [False, True])
@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("is_upper", [False, True])
def test_solve_triangular(is_upper, left, unit, rng):
    a = (upper if is_upper else lower)(rng.normal(size=(3, 3)))
    b = rng.normal(size=(2, 3, 1) if left else (2, 1, 3))

    def op(s, t):
        return la.solve_triangular(s, t, upper=is_upper, left=left, unitriangular=unit)

    triangle = (np.triu if is_upper else np.tril)(a)
    if unit:
        np.fill_diagonal(triangle, 1)
    x = op(mg.tensor(a), mg.tensor(b)).numpy()
    np.testing.assert_allclose(triangle @ x if left else x @ triangle, b, atol=1e-13)
    oracle.check_gradients(op, [a, b], rng, rtol=1e-7, atol=1e-7)


def test_substitution_is_as_accurate_as_it_should_be(rng):
    """A triangle with a condition number of 1e30 and more, solved to full precision."""
    n = 40
    a = np.tril(rng.uniform(0.5, 1, (n, n))) * 10.0 ** -np.arange(n)[:, None]
    b = rng.normal(size=(n, 1))
    x = la.solve_triangular(mg.tensor(a), mg.tensor(b), upper=False).numpy()
    want = scipy.linalg.solve_triangular(a, b, lower=True)
    np.testing.assert_allclose(x, want, rtol=1e-6)
    assert (np.abs(a @ x - b) <= n * 2.0**-52 * (np.abs(a) @ np.abs(x))).all()


@pytest.mark.parametrize("is_upper", [False, True])
def test_cholesky_solve(is_upper, rng):
    factor = (upper if is_upper else lower)(rng.normal(size=(3, 3)))
    b = rng.normal(size=(2, 3, 1))
    t = np.triu(factor) if is_upper else np.tril(factor)
    a = t.swapaxes(-1, -2) @ t if is_upper else t @ t.swapaxes(-1, -2)
    x = mg.cholesky_solve(mg.tensor(b), mg.tensor(factor), is_upper)
    np.testing.assert_allclose(x.numpy(), np.linalg.solve(a, b), rtol=1e-10)
    inverse = mg.cholesky_inverse(mg.tensor(factor), is_upper)
    np.testing.assert_allclose(inverse.numpy(), np.linalg.inv(a), rtol=1e-10)
    oracle.check_gradients(
        lambda p, q: mg.cholesky_solve(p, q, is_upper), [b, factor], rng, rtol=1e-7, atol=1e-7
    )


@pytest.mark.parametrize("is_upper", [False, True])
def test_cholesky_reads_one_triangle(is_upper, rng):
    a = rng.normal(size=(3, 3))
    a = a @ a.T + np.eye(3)
    want = np.linalg.cholesky(a)
    other = np.tril(np.full((3, 3), NAN), -1) if is_upper else np.triu(np.full((3, 3), NAN), 1)
    got = la.cholesky(mg.tensor(a + other), is_upper).numpy()
    np.testing.assert_allclose(got, want.T if is_upper else want, rtol=1e-14)
    oracle.assert_same(got, la.cholesky(mg.tensor(a), is_upper).numpy())


# ---- least squares and pseudoinverses ------------------------------------------------------------


@pytest.mark.parametrize(("m", "n"), [(5, 3), (3, 5), (3, 3)])
def test_lstsq(m, n, rng):
    a, b = rng.normal(size=(2, m, n)), rng.normal(size=(2, m, 2))
    x, residuals, rank, s = la.lstsq(mg.tensor(a), mg.tensor(b))
    for k in range(2):
        want = np.linalg.lstsq(a[k], b[k], rcond=None)
        np.testing.assert_allclose(x.numpy()[k], want[0], rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(s.numpy()[k], want[3], rtol=1e-12)
        assert rank.numpy()[k] == want[2]
        if m > n:
            np.testing.assert_allclose(residuals.numpy()[k], want[1], rtol=1e-9, atol=1e-11)
    if m <= n:
        assert residuals.shape == (0,)
    oracle.check_gradients(
        lambda p, q: la.lstsq(p, q).solution, [a[0], b[0, :, 0]], rng, rtol=1e-6, atol=1e-6
    )


@by_dtype
@pytest.mark.parametrize(("m", "n"), [(4, 2), (2, 4), (3, 3)])
def test_lstsq_of_a_stack_of_any_rank(m, n, dtype, rng):
    """Each as it is alone; of the deficient and the zero matrix as by the pseudoinverse."""
    a = rng.normal(size=(4, m, n)).astype(dtype)
    a[1] = a[1, :, :1] * [[1] * n]
    a[2] = 0
    b = rng.normal(size=(4, m, 2)).astype(dtype)
    x, y = mg.tensor(a, requires_grad=True), mg.tensor(b, requires_grad=True)
    solution, residuals, rank, values = la.lstsq(x, y)
    assert rank.tolist() == [min(m, n), 1, 0, min(m, n)]
    assert (residuals.shape, values.shape) == ((0,), (4, min(m, n)))
    tolerance = 1e-4 if dtype == np.float32 else 1e-11
    want = np.linalg.pinv(a, 1e-6) @ b
    np.testing.assert_allclose(solution.detach().numpy(), want, rtol=tolerance, atol=tolerance)
    g = rng.normal(size=solution.shape).astype(dtype)
    grads = mg.grad(solution, (x, y), mg.tensor(g))
    for k in range(4):
        alone = [mg.tensor(v[k], requires_grad=True) for v in (a, b)]
        one = la.lstsq(*alone).solution
        oracle.assert_same(one.detach().numpy(), solution.detach().numpy()[k])
        for got, wanted in zip(grads, mg.grad(one, alone, mg.tensor(g[k])), strict=True):
            np.testing.assert_allclose(
                got.numpy()[k], wanted.numpy(), rtol=tolerance, atol=tolerance
            )


def test_pinv_and_rank_of_a_deficient_matrix(rng):
    a = rng.normal(size=(5, 2)) @ rng.normal(size=(2, 4))
    for dtype, tolerance in ((np.float32, 1e-5), (np.float64, 1e-12)):
        x = mg.tensor(a.astype(dtype))
        assert la.matrix_rank(x).item() == 2
        np.testing.assert_allclose(
            la.pinv(x).numpy(), np.linalg.pinv(a, 1e-5), rtol=tolerance, atol=tolerance
        )
    assert la.matrix_rank(mg.zeros(3, 2)).item() == 0


def test_the_gradient_of_pinv_where_the_rank_is_constant(rng):
    """Changes that keep the column space and the row space do not change the rank."""
    left, right = rng.normal(size=(4, 2)), rng.normal(size=(2, 3))
    oracle.check_gradients(
        lambda c: la.pinv(mg.tensor(left) @ c @ mg.tensor(right)),
        [rng.normal(size=(2, 2))],
        rng,
        rtol=1e-6,
        atol=1e-6,
    )


def test_tolerances():
    a = mg.tensor(np.diag([4.0, 1.0, 0.25]))
    assert [la.matrix_rank(a, atol=t).item() for t in (0.2, 0.25, 1.5, 5)] == [3, 2, 1, 0]
    assert [la.matrix_rank(a, rtol=t).item() for t in (0.05, 0.1, 0.5)] == [3, 2, 1]
    assert la.matrix_rank(a, atol=0.5, rtol=0.3).item() == 1
    assert np.diag(la.pinv(a, atol=0.5).numpy()).tolist() == [0.25, 1, 0]
    assert np.diag(la.pinv(a, rtol=0.5).numpy()).tolist() == [0.25, 0, 0]
    assert np.diag(mg.pinverse(a, 0.5).numpy()).tolist() == [0.25, 0, 0]
    each = mg.tensor([0.5, 2.0])
    stack = a.expand(2, 3, 3)
    assert la.matrix_rank(stack, atol=each).tolist() == [2, 1]
    assert la.matrix_rank(stack, rtol=mg.tensor([0.0, 0.25])).tolist() == [3, 1]
    inverse = la.pinv(stack, atol=each).numpy()
    assert np.diagonal(inverse, axis1=1, axis2=2).tolist() == [[0.25, 1, 0], [0.25, 0, 0]]


def test_hermitian_says_that_the_gradient_is_symmetric(rng):
    a = rng.normal(size=(3, 3))
    x = mg.tensor(a + a.T, requires_grad=True)
    y = la.pinv(x, hermitian=True)
    np.testing.assert_allclose(y.detach().numpy(), np.linalg.inv(a + a.T), rtol=1e-9)
    (g,) = mg.grad(y, [x], mg.tensor(a))
    np.testing.assert_array_equal(g.numpy(), g.numpy().T)
    assert la.matrix_rank(x, hermitian=True).item() == 3


# ---- factorisations ------------------------------------------------------------------------------


@by_dtype
@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (3, 5), (2, 5, 3), (2, 1, 3, 5)], ids=str)
def test_what_a_factorisation_promises(shape, dtype, rng):
    a = rng.normal(size=shape).astype(dtype)
    tolerance = {"rtol": 1e-5, "atol": 1e-5} if dtype == np.float32 else {"atol": 1e-13}
    m, n = shape[-2:]
    for mode in ("reduced", "complete"):
        q, r = (t.numpy() for t in la.qr(mg.tensor(a), mode))
        assert q.shape[-2:] == (m, m if mode == "complete" else min(m, n))
        np.testing.assert_allclose(q @ r, a, **tolerance)
        one = np.broadcast_to(np.eye(q.shape[-1]), (*shape[:-2], q.shape[-1], q.shape[-1]))
        np.testing.assert_allclose(q.swapaxes(-1, -2) @ q, one, **tolerance)
        np.testing.assert_array_equal(np.tril(r, -1), np.zeros_like(r))
    empty, r = la.qr(mg.tensor(a), "r")
    assert empty.shape == (0,)
    oracle.assert_same(r.numpy(), la.qr(mg.tensor(a)).R.numpy())
    for full in (False, True):
        u, s, vh = (t.numpy() for t in la.svd(mg.tensor(a), full))
        k = s.shape[-1]
        assert u.shape[-1] == (m if full else k)
        assert vh.shape[-2] == (n if full else k)
        np.testing.assert_allclose((u[..., :k] * s[..., None, :]) @ vh[..., :k, :], a, **tolerance)
        assert (np.diff(s) <= 0).all()
        for v in (u, vh.swapaxes(-1, -2)):
            one = np.broadcast_to(np.eye(v.shape[-1]), (*shape[:-2], v.shape[-1], v.shape[-1]))
            np.testing.assert_allclose(v.swapaxes(-1, -2) @ v, one, **tolerance)


@pytest.mark.parametrize("uplo", ["L", "U"])
def test_eigh(uplo, rng):
    a = rng.normal(size=(2, 4, 4))
    w, v = (t.numpy() for t in la.eigh(mg.tensor(a), uplo))
    half = np.tril(a, -1) if uplo == "L" else np.triu(a, 1)
    whole = half + half.swapaxes(-1, -2) + np.eye(4) * a
    np.testing.assert_allclose(whole @ v, v * w[..., None, :], atol=1e-13)
    assert (np.diff(w) >= 0).all()
    np.testing.assert_allclose(la.eigvalsh(mg.tensor(a), uplo).numpy(), w, rtol=1e-12)


def test_the_columns_that_complete_a_basis_have_no_gradient(rng):
    a = rng.normal(size=(4, 2))
    x = mg.tensor(a, requires_grad=True)
    for full in (la.qr(x, "complete").Q, la.svd(x).U):
        (g,) = mg.grad(full[:, 2:].sum(), [x])
        np.testing.assert_array_equal(g.numpy(), np.zeros_like(a))
    reduced = mg.grad((la.svd(x, False).U ** 2 * a).sum(), [x])[0]
    full = mg.grad((la.svd(x).U[:, :2] ** 2 * a).sum(), [x])[0]
    np.testing.assert_allclose(full.numpy(), reduced.numpy(), rtol=1e-12)


@by_dtype
def test_matrix_exp_of_every_size(dtype, rng):
    a = rng.normal(size=(7, 5, 5)) * np.array([0, 1e-9, 1e-3, 0.3, 3, 30, 100])[:, None, None]
    a = (a - a.swapaxes(-1, -2)).astype(dtype)  # the exponential is a rotation
    got = la.matrix_exp(mg.tensor(a)).numpy()
    assert got.dtype == dtype
    want = np.stack([scipy.linalg.expm(x.astype(np.float64)) for x in a])
    tolerance = 1e-6 if dtype == np.float32 else 1e-12
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


def test_matrix_exp_of_a_jordan_block():
    a = mg.tensor([[1.0, 1.0], [0.0, 1.0]], mg.float64)
    np.testing.assert_allclose(la.matrix_exp(a).numpy(), math.e * np.array([[1, 1], [0, 1]]))


# ---- norms ---------------------------------------------------------------------------------------

ORDERS = ["fro", "nuc", INF, -INF, 1, -1, 2, -2]


@pytest.mark.parametrize("order", ORDERS)
def test_matrix_norms(order, rng):
    a = rng.normal(size=(3, 2, 4))
    for dims in ((-2, -1), (0, 2), (2, 0), (1, 0)):
        for keep in (False, True):
            want = np.linalg.norm(a, order, dims, keep)
            got = la.matrix_norm(mg.tensor(a), order, dims, keep)
            assert got.shape == want.shape
            np.testing.assert_allclose(got.numpy(), want, rtol=1e-12)
            np.testing.assert_allclose(
                la.norm(mg.tensor(a), order, dims, keep).numpy(), want, rtol=1e-12
            )
    oracle.check_gradients(lambda x: la.matrix_norm(x, order), [a], rng, rtol=1e-6, atol=1e-6)


def test_numpy_spellings(rng):
    a = rng.normal(size=(3, 3, 3))
    x = mg.tensor(a)
    np.testing.assert_allclose(
        la.norm(x, axis=1, keepdims=True).numpy(), np.linalg.norm(a, axis=1, keepdims=True)
    )
    got = la.matrix_norm(x, 1, axis=(0, 2), keepdims=True)
    np.testing.assert_allclose(got.numpy(), np.linalg.norm(a, 1, (0, 2), True))
    assert la.matrix_norm(x, keepdims=True).shape == (3, 1, 1)
    np.testing.assert_allclose(la.cross(x, x + 1, axis=0).numpy(), np.cross(a, a + 1, axis=0))
    np.testing.assert_allclose(mg.cross(x, x + 1, axis=1).numpy(), np.cross(a, a + 1, axis=1))
    np.testing.assert_allclose(la.vecdot(x, x, axis=0).numpy(), (a * a).sum(0))
    with pytest.raises(TypeError, match=r"\[cross\] unexpected argument 'axes'"):
        la.cross(x, x, axes=0)


@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (3, 0), (2, 0, 3), (0, 2, 2)])
def test_norms_of_empty_matrices_are_zero(shape):
    for order in ("fro", "nuc", 1, 2, math.inf):
        x = mg.zeros(shape, dtype=mg.float64, requires_grad=True)
        y = la.matrix_norm(x, order)
        assert y.detach().numpy().tolist() == np.zeros(shape[:-2]).tolist()
        assert mg.grad(y.sum(), x)[0].shape == shape
        assert la.matrix_norm(x, order, keepdim=True).shape == (*shape[:-2], 1, 1)


def test_the_smallest_singular_value_of_none_is_an_error():
    for order in (-2, -math.inf):
        with pytest.raises(ValueError, match=r"^\[matrix_norm\] no result for an empty dim"):
            la.norm(mg.zeros(0, 3), order)


def test_norm_chooses(rng):
    a = rng.normal(size=(2, 3))
    x = mg.tensor(a)
    np.testing.assert_allclose(la.norm(x).item(), np.sqrt((a * a).sum()))
    np.testing.assert_allclose(la.norm(x[0], 1).item(), np.abs(a[0]).sum())
    np.testing.assert_allclose(la.norm(x, 1).item(), np.abs(a).sum(0).max())
    np.testing.assert_allclose(la.norm(x, 1, dim=1).numpy(), np.abs(a).sum(1))
    np.testing.assert_allclose(
        la.norm(x, dim=0, keepdim=True).numpy()[0], np.linalg.norm(a, axis=0)
    )
    assert la.norm(mg.tensor([3, 4]), dtype=mg.float64).dtype is mg.float64
    assert la.matrix_norm(mg.ones(2, 2), dtype=mg.float64).dtype is mg.float64


@pytest.mark.parametrize("p", [None, *ORDERS])
def test_cond(p, rng):
    a = rng.normal(size=(2, 3, 3))
    np.testing.assert_allclose(la.cond(mg.tensor(a), p).numpy(), np.linalg.cond(a, p), rtol=1e-10)
    if p != -2:
        a[1] = np.diag([1, 2, 0])
        assert la.cond(mg.tensor(a), p)[1].item() == INF


# ---- products ------------------------------------------------------------------------------------


def test_multi_dot(rng):
    shapes = [(6,), (6, 30), (30, 2), (2, 20), (20, 5), (5,)]
    arrays = [rng.normal(size=s) for s in shapes]
    for first, last in ((0, 6), (1, 6), (0, 5), (1, 5), (1, 3)):
        given = arrays[first:last]
        want = given[0]
        for b in given[1:]:
            want = want @ b
        got = la.multi_dot([mg.tensor(a) for a in given])
        assert got.shape == np.shape(want)
        np.testing.assert_allclose(got.numpy(), want, rtol=1e-11)
    small = [rng.normal(size=s) for s in ((2, 3), (3, 1), (1, 4))]
    oracle.check_gradients(lambda *t: la.multi_dot(t), small, rng)


def test_multi_dot_takes_the_cheapest_order():
    """A column times a row times a column: 2 n multiplications, or n^2 the other way."""
    sizes = []
    column, row = mg.ones(300, 1), mg.ones(1, 300)
    with mg._c.trace(lambda kernel, args, made: sizes.append(made.size if made else 0)):
        la.multi_dot([column, row, column])
    assert max(sizes) == 300


@pytest.mark.parametrize(
    ("shapes", "dim"),
    [(((3,), (1,)), -1), (((2, 3), (2, 1)), 1), (((1, 3), (2, 3)), 0), (((3,), ()), -1)],
)
def test_vecdot_broadcasts_only_the_other_dimensions(shapes, dim):
    a, b = map(mg.ones, shapes)
    for x, y in ((a, b), (b, a)):
        with pytest.raises(ValueError, match=r"\[vecdot\] shapes .* along dim -?\d, which is not"):
            la.vecdot(x, y, dim=dim)
    assert la.vecdot(mg.ones(1, 3), mg.ones(2, 1, 3)).shape == (2, 1)


def test_vecdot_cross_and_diagonal(rng):
    a, b = rng.normal(size=(2, 1, 3)), rng.normal(size=(4, 3))
    x, y = mg.tensor(a), mg.tensor(b)
    np.testing.assert_allclose(la.vecdot(x, y).numpy(), (a * b).sum(-1), rtol=1e-13)
    wide = np.repeat(a, 4, 1)
    np.testing.assert_allclose(
        la.vecdot(mg.tensor(wide), y, dim=1).numpy(), (wide * b).sum(1), rtol=1e-13
    )
    np.testing.assert_allclose(
        la.cross(x, y.unsqueeze(0)).numpy(), np.cross(a, b[None]), rtol=1e-12, atol=1e-14
    )
    c = rng.normal(size=(2, 3, 4))
    oracle.assert_same(
        la.diagonal(mg.tensor(c), offset=1).numpy(), np.diagonal(c, 1, axis1=-2, axis2=-1)
    )


def test_tensorinv_and_tensorsolve(rng):
    a, b = rng.normal(size=(2, 3, 6)), rng.normal(size=(2, 3))
    np.testing.assert_allclose(
        la.tensorinv(mg.tensor(a)).numpy(), np.linalg.tensorinv(a), rtol=1e-9
    )
    got = la.tensorsolve(mg.tensor(a), mg.tensor(b))
    np.testing.assert_allclose(got.numpy(), np.linalg.tensorsolve(a, b), rtol=1e-9)
    moved = np.moveaxis(a, 0, 2)
    got = la.tensorsolve(mg.tensor(moved), mg.tensor(np.moveaxis(b, 0, 1)), (1,))
    want = np.linalg.tensorsolve(moved, np.moveaxis(b, 0, 1), (1,))
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-9)
    oracle.check_gradients(la.tensorsolve, [a, b], rng, rtol=1e-6, atol=1e-6)


def test_top_level_names_and_methods(rng):
    a = mg.tensor(rng.normal(size=(3, 3)))
    d = definite(a)
    for name in ("det", "slogdet", "cholesky", "matrix_power", "matrix_exp"):
        args = (2,) if name == "matrix_power" else ()
        want = getattr(la, name)(d, *args)
        for got in (getattr(mg, name)(d, *args), getattr(d, name)(*args)):
            for p, q in zip(
                *((t if isinstance(t, tuple) else (t,)) for t in (got, want)), strict=True
            ):
                oracle.assert_same(p.numpy(), q.numpy())
    oracle.assert_same(a.inverse().numpy(), la.inv(a).numpy())
    oracle.assert_same(a.pinverse().numpy(), la.pinv(a, rtol=1e-15).numpy())
    np.testing.assert_allclose(d.logdet().item(), np.log(np.linalg.det(d.numpy())))


# ---- errors --------------------------------------------------------------------------------------

ONE, THREE = mg.ones(3), mg.ones(3, 4)
SINGULAR = mg.tensor([[1.0, 2.0], [2.0, 4.0]])
STACK = mg.tensor(np.stack([np.eye(2)] * 3 + [SINGULAR.numpy()]))
MESSAGES = [
    (lambda: la.inv(ONE), r"\[inv\] takes a matrix or a stack of matrices, not shape \(3,\)"),
    (lambda: la.inv(THREE), r"\[inv\] the matrices must be square, not 3 x 4; pinv and lstsq"),
    (lambda: la.det(THREE), r"\[det\] the matrices must be square, not 3 x 4"),
    (lambda: mg.logdet(THREE), r"\[logdet\] the matrices must be square, not 3 x 4"),
    (lambda: la.eigvalsh(THREE), r"\[eigvalsh\] the matrices must be square"),
    (lambda: la.inv(SINGULAR), r"\[inv\] the matrix is singular; use pinv, or lstsq for a system"),
    (lambda: la.inv(STACK), r"\[inv\] matrix 3 of the batch is singular; use pinv"),
    (
        lambda: la.inv(STACK.reshape(2, 2, 2, 2)),
        r"\[inv\] matrix \(1, 1\) of the batch is singular",
    ),
    (lambda: la.solve(STACK, ONE[:2]), r"\[solve\] matrix 3 of the batch is singular; use lstsq"),
    (lambda: la.matrix_power(SINGULAR, -1), r"\[inv\] the matrix is singular"),
    (lambda: la.cholesky(SINGULAR - 1), r"\[cholesky\] the matrix is not positive definite"),
    (lambda: la.cholesky(STACK - 1.5), r"\[cholesky\] matrix 0 of the batch is not positive"),
    (
        lambda: la.solve_triangular(mg.tensor([[1.0, 1.0], [1.0, 0.0]]), mg.ones(2, 1), upper=True),
        r"\[solve_triangular\] the matrix has a 0 on its diagonal: it is singular",
    ),
    (
        lambda: la.solve(mg.ones(2, 3, 3), mg.ones(4, 3, 1)),
        r"\[solve\] the batch dimensions of \(2, 3, 3\) and \(4, 3, 1\) do not broadcast",
    ),
    (
        lambda: la.solve(mg.ones(3, 3), mg.ones(2, 1)),
        r"\[solve\] A @ X = B: shapes \(3, 3\) of A and \(2, 1\) of B do not fit",
    ),
    (
        lambda: la.solve(mg.ones(3, 3), mg.ones(2, 1), left=False),
        r"\[solve\] X @ A = B: shapes \(3, 3\) of A and \(2, 1\) of B do not fit",
    ),
    (
        lambda: la.solve(mg.ones(3, 3), mg.ones(2)),
        r"\[solve\] shapes \(3, 3\) of A and \(2,\) of B",
    ),
    (lambda: la.lstsq(mg.ones(3, 2), mg.ones(2, 1)), r"\[lstsq\] shapes \(3, 2\) of A and"),
    (lambda: la.lstsq(THREE, THREE, driver="qr"), r"\[lstsq\] driver is gels, .* not 'qr'"),
    (lambda: la.pinv(THREE, hermitian=True), r"\[pinv\] symmetric matrices are square"),
    (lambda: la.qr(THREE, "full"), r"\[qr\] mode is 'reduced', 'complete' or 'r', not 'full'"),
    (lambda: la.eigh(SINGULAR, "X"), r"\[eigh\] UPLO is 'L' or 'U', not 'X'"),
    (lambda: la.matrix_norm(THREE, 3), r"\[matrix_norm\] ord is 'fro', 'nuc', .*: 3"),
    (lambda: la.matrix_norm(THREE, dim=1), r"\[matrix_norm\] dim is a pair of dimensions, not 1"),
    (lambda: la.matrix_norm(THREE, dim=(1, -1)), r"\[matrix_norm\] the dims \(1, -1\) are one"),
    (lambda: la.norm(mg.ones(2, 2, 2), 1), r"\[norm\] with ord and no dim, takes 1 or 2"),
    (lambda: la.multi_dot([THREE]), r"\[multi_dot\] takes at least two matrices, not 1"),
    (
        lambda: la.multi_dot([THREE, THREE]),
        r"\[multi_dot\] operands 0 and 1 do not fit: \(3, 4\) @",
    ),
    (
        lambda: la.multi_dot([THREE, ONE, THREE]),
        r"\[multi_dot\] operand 1 has shape \(3,\), but must be a matrix",
    ),
    (lambda: la.tensorinv(mg.ones(2, 3), 1), r"\[tensorinv\] \(2,\) and \(3,\) have 2 and 3"),
    (lambda: la.tensorinv(mg.ones(2, 2), 0), r"\[tensorinv\] ind is 0, but must be at least 1"),
    (lambda: la.tensorsolve(THREE, ONE), r"\[tensorsolve\] shapes \(3, 4\) of A and \(3,\) of B"),
]


@pytest.mark.parametrize(("action", "message"), MESSAGES, ids=[m[:40] for _, m in MESSAGES])
def test_messages(action, message):
    with pytest.raises(ValueError, match=message):
        action()


def test_what_lapack_refuses_is_a_linalg_error():
    with pytest.raises(la.LinAlgError):
        la.inv(SINGULAR)
    assert issubclass(la.LinAlgError, ValueError)
    with pytest.raises(TypeError, match=r"\[matrix_power\] n must be an integer, not float"):
        la.matrix_power(SINGULAR, 0.5)
    with pytest.raises(TypeError, match=r"\[inv\] expected a Tensor, a number or an array"):
        la.inv("matrix")
    with pytest.raises(IndexError, match=r"\[matrix_norm\] dim 2 is out of range"):
        la.matrix_norm(THREE, dim=(0, 2))


def test_the_gradient_of_qr_names_its_trouble():
    x = mg.tensor([[1.0, 0.0], [0.0, 0.0]], requires_grad=True)
    r = la.qr(x).R
    with pytest.raises(la.LinAlgError, match=r"has a 0 on its diagonal: it is singular"):
        r.sum().backward()
