"""The matrix product by NumPy's rules: every combination of dimensions, layout and dtype."""

from __future__ import annotations

import itertools
import math

import numpy as np
import oracle
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import minigrad as mg
import minigrad.nn.functional

PAIRS = [
    ((3,), (3,)),
    ((2, 3), (3,)),
    ((3,), (3, 4)),
    ((2, 3), (3, 4)),
    ((5, 2, 3), (3,)),
    ((3,), (5, 3, 4)),
    ((5, 2, 3), (3, 4)),
    ((2, 3), (5, 3, 4)),
    ((5, 2, 3), (5, 3, 4)),
    ((1, 2, 3), (5, 3, 4)),
    ((6, 1, 2, 3), (5, 3, 4)),
    ((2, 1, 2, 3), (1, 3, 3, 2)),
]


def close(got, a, b):
    want = np.matmul(a.astype(np.float64), b.astype(np.float64))
    bound = np.matmul(np.abs(a).astype(np.float64), np.abs(b).astype(np.float64))
    assert got.shape == want.shape
    eps = np.finfo(got.dtype).eps
    assert (np.abs(got - want) <= 2 * eps * math.sqrt(max(a.shape[-1], 1)) * bound + 1e-300).all()


@pytest.mark.parametrize(("p", "q"), PAIRS, ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float32", "float64"])
def test_values(p, q, dtype, rng):
    a, b = rng.normal(size=p).astype(dtype), rng.normal(size=q).astype(dtype)
    got = mg.tensor(a) @ mg.tensor(b)
    close(got.numpy(), a, b)
    oracle.assert_same(mg.matmul(mg.tensor(a), mg.tensor(b)).numpy(), got.numpy())


@pytest.mark.parametrize(("p", "q"), PAIRS, ids=str)
def test_derivatives(p, q, rng):
    small = {5: 2, 6: 2}
    p, q = (tuple(small.get(n, n) for n in s) for s in (p, q))
    oracle.check_gradients(mg.matmul, [rng.normal(size=p), rng.normal(size=q)], rng)


@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float32", "float64"])
@settings(max_examples=60)
@given(
    m=st.integers(0, 70), k=st.integers(0, 300), n=st.integers(0, 70), seed=st.integers(0, 2**32)
)
def test_sizes(dtype, m, k, n, seed):
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(m, k)).astype(dtype), rng.normal(size=(k, n)).astype(dtype)
    close((mg.tensor(a) @ mg.tensor(b)).numpy(), a, b)
    close(
        (mg.tensor(a) @ mg.tensor(b[:, :1].reshape(-1) if n else np.zeros(k, dtype))).numpy(),
        a,
        b[:, :1].reshape(-1) if n else np.zeros(k, dtype),
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float32", "float64"])
@pytest.mark.parametrize("left", oracle.LAYOUTS)
@pytest.mark.parametrize("right", oracle.LAYOUTS)
def test_stacks_of_tiny_matrices(left, right, dtype, rng):
    """Sums of integers are exact; what lies around a matrix, NaN, must not come in."""
    for m, k, n in itertools.product(range(1, 6), repeat=3):
        a = rng.integers(-9, 10, (5, m, k)).astype(dtype)
        b = rng.integers(-9, 10, (5, k, n)).astype(dtype)
        a[1], b[3] = np.nan, np.nan
        got = oracle.tensor_in_layout(a, left) @ oracle.tensor_in_layout(b, right)
        oracle.assert_same(got.numpy(), np.einsum("bij,bjk->bik", a, b))


@pytest.mark.parametrize(
    "size",
    [(1, 1000, 1), (300, 1, 200), (129, 257, 65), (1, 519, 400), (1, 29, 4500), (400, 513, 1)],
    ids=str,
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float32", "float64"])
def test_larger_sizes(size, dtype, rng):
    m, k, n = size
    a, b = rng.normal(size=(m, k)).astype(dtype), rng.normal(size=(k, n)).astype(dtype)
    close((mg.tensor(a) @ mg.tensor(b)).numpy(), a, b)
    close((mg.tensor(a.T).T @ mg.tensor(b.T).T).numpy(), a, b)


@pytest.mark.parametrize(("left", "right"), list(itertools.product(oracle.LAYOUTS, repeat=2)))
@pytest.mark.parametrize(
    ("p", "q"),
    [((3, 9, 17), (3, 17, 20)), ((33, 40), (40,)), ((7,), (7, 5)), ((11,), (11,))],
    ids=str,
)
def test_layouts(left, right, p, q, rng):
    a, b = rng.normal(size=p).astype(np.float32), rng.normal(size=q).astype(np.float32)
    close((oracle.tensor_in_layout(a, left) @ oracle.tensor_in_layout(b, right)).numpy(), a, b)


# A vector adds along memory: a matrix that lies the other way is added in another order.
SAME_BITS = [*oracle.LAYOUTS, "both_stepped", "misaligned"]
SIZES = [
    *((1, k, n) for k in (1, 5, 17, 300, 700, 4097) for n in (1, 3, 33, 200)),
    *((m, k, 1) for k in (5, 17, 300, 700, 4097) for m in (2, 18, 65, 130)),
    *[(2, 700, 2), (5, 33, 4), (17, 300, 33), (64, 64, 64), (130, 700, 70), (70, 1500, 40)],
]


def operand(values, layout):
    if layout == "both_stepped":
        wide = np.zeros(tuple(2 * n for n in values.shape), values.dtype)
        steps = (slice(None, None, 2),) * values.ndim
        wide[steps] = values
        return mg.from_numpy(wide)[steps]
    if layout == "misaligned":  # to vectors and lines
        wide = np.zeros(values.size + 3, values.dtype)
        wide[1 : 1 + values.size] = values.ravel()
        return mg.from_numpy(wide[1 : 1 + values.size].reshape(values.shape))
    return oracle.tensor_in_layout(values, layout)


@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float32", "float64"])
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_layouts_give_the_same_bits(size, dtype, rng):
    """Layouts of both operands, and of the transposed ones in the gradients' products."""
    m, k, n = size
    a, b = (rng.standard_normal(s).astype(dtype) for s in ((m, k), (k, n)))
    lone = 1 in (m, n)
    layouts = [how for how in SAME_BITS if not (lone and how == "transposed")]
    expected = (mg.tensor(a) @ mg.tensor(b)).numpy()
    for left, right in itertools.product(layouts, layouts):
        got = (operand(a, left) @ operand(b, right)).numpy()
        assert got.tobytes() == expected.tobytes(), (left, right)
    if m == 1:
        for left, right in itertools.product(layouts, layouts):
            got = (operand(a[0], left) @ operand(b, right)).numpy()
            assert got.tobytes() == expected.tobytes(), (left, right)
    if n == 1:
        for left, right in itertools.product(layouts, layouts):
            got = (operand(a, left) @ operand(b[:, 0], right)).numpy()
            assert got.tobytes() == expected.tobytes(), (left, right)


@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float32", "float64"])
@pytest.mark.parametrize(
    ("p", "q"),
    [
        ((3, 4, 5, 300), (300, 7)),
        ((3, 4, 1, 300), (300, 7)),
        ((3, 4, 1, 300), (4, 300, 7)),
        ((3, 4, 2, 300), (3, 1, 300, 1)),
        ((6, 1, 700), (6, 700, 40)),
        ((6, 40, 700), (6, 700, 1)),
    ],
    ids=str,
)
def test_stacks_give_the_same_bits_in_every_layout(p, q, dtype, rng):
    """Batches turned, and operands that are expanded, beside copies of them."""
    a, b = (rng.standard_normal(s).astype(dtype) for s in (p, q))
    expected = (mg.tensor(a) @ mg.tensor(b)).numpy().tobytes()

    def forms(x):
        values = mg.tensor(x)
        yield values
        for layout in ("stepped", "reversed", "offset", "padded_rows", "both_stepped"):
            yield operand(x, layout)
        if x.ndim == 4:  # the batch axes the other way round in memory
            yield values.transpose(0, 1).contiguous().transpose(0, 1)

    for left, right in itertools.product(forms(a), forms(b)):
        assert (left @ right).numpy().tobytes() == expected


@pytest.mark.parametrize("m", [1, 5])
def test_expanded_operands_give_the_bits_of_their_copies(m, rng):
    a, b = mg.tensor(rng.standard_normal((m, 300))), mg.tensor(rng.standard_normal((300, 7)))
    column = mg.tensor(rng.standard_normal((300, 1)))
    for left, right in (
        (a.expand(4, m, 300), b),
        (a.expand(4, m, 300), b.expand(4, 300, 7)),
        (a, column.expand(300, 7)),
        (a[:, :1].expand(m, 300), b),
        (a[:, :1].expand(m, 300), b[:, 0]),
        (a[:1].expand(9, 300), b[:, 0]),
        (a[:1, :1].expand(9, 300), b),
        (a[0, :1].expand(300), b),
    ):
        assert ((left @ right) == (left.clone() @ right.clone())).all()


@pytest.mark.parametrize("layout", oracle.LAYOUTS)
def test_cotangent_layouts(layout, rng):
    a, b = rng.normal(size=(3, 5, 7)), rng.normal(size=(7, 6))
    g = rng.normal(size=(3, 5, 6))
    x, y = mg.tensor(a, requires_grad=True), mg.tensor(b, requires_grad=True)
    by_x, by_y = mg.grad(x @ y, (x, y), oracle.tensor_in_layout(g, layout))
    np.testing.assert_allclose(by_x.numpy(), g @ b.T, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(by_y.numpy(), np.einsum("bik,bij->kj", a, g), rtol=1e-12, atol=1e-12)


def test_stride_zero_operands(rng):
    a, b = rng.normal(size=(1, 9)), rng.normal(size=(9, 1))
    x, y = mg.tensor(a).expand(12, 9), mg.tensor(b).expand(9, 11)
    close((x @ y).numpy(), np.broadcast_to(a, (12, 9)), np.broadcast_to(b, (9, 11)))
    batch = mg.tensor(rng.normal(size=(4, 5)))
    got = batch.expand(6, 4, 5) @ mg.tensor(np.broadcast_to(b[:5], (5, 3)).copy())
    close(got.numpy(), np.broadcast_to(batch.numpy(), (6, 4, 5)), np.broadcast_to(b[:5], (5, 3)))


@pytest.mark.parametrize(
    ("p", "q"),
    [
        ((2, 0), (0, 3)),
        ((0, 3), (3, 2)),
        ((2, 3), (3, 0)),
        ((0,), (0,)),
        ((0, 2, 3), (3, 4)),
        ((2, 0), (0,)),
        ((3, 2, 0), (0, 4)),
    ],
    ids=str,
)
def test_nothing_to_sum_or_nothing_to_give(p, q):
    a, b = mg.ones(p, requires_grad=True), mg.ones(q, requires_grad=True)
    y = a @ b
    want = np.ones(p) @ np.ones(q)
    oracle.assert_same(y.detach().numpy(), np.asarray(want, np.float32))
    for graph in (False, True):
        for x, g in zip((a, b), mg.grad(y, (a, b), mg.ones_like(y), True, graph), strict=True):
            oracle.assert_same(
                g.detach().numpy(),
                np.zeros(x.shape, np.float32)
                if 0 in want.shape or 0 in x.shape
                else g.detach().numpy(),
            )
            assert g.shape == x.shape


def test_nan_and_infinity_propagate():
    a, b = np.ones((5, 40), np.float32), np.ones((40, 6), np.float32)
    a[2, 7] = np.nan
    b[3, 4] = np.inf
    a[1, 3] = 0.0  # 0 * inf
    got = (mg.tensor(a) @ mg.tensor(b)).numpy()
    with np.errstate(all="ignore"):
        want = (a[:, :, None] * b).sum(1)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    np.testing.assert_array_equal(np.isinf(got), np.isinf(want))
    np.testing.assert_array_equal(got[np.isfinite(want)], want[np.isfinite(want)])


def test_zero_times_nan_is_not_skipped():
    a, b = mg.zeros(3, 4), mg.full((4, 5), math.nan)
    assert np.isnan((a @ b).numpy()).all()
    assert np.isnan((a @ b[:, 0]).numpy()).all()


@pytest.mark.parametrize(("p", "q"), PAIRS, ids=str)
def test_int64(p, q, rng):
    a, b = rng.integers(-100, 100, p), rng.integers(-100, 100, q)
    oracle.assert_same((mg.tensor(a) @ mg.tensor(b)).numpy(), np.asarray(a @ b))


def test_int64_wraps_around():
    a = np.array([[2**62, 2**62]])
    oracle.assert_same((mg.tensor(a) @ mg.tensor(np.array([2, 3]))).numpy(), a @ np.array([2, 3]))


def test_bool(rng):
    a, b = rng.uniform(size=(4, 5)) < 0.4, rng.uniform(size=(5, 3)) < 0.4
    got = (mg.tensor(a) @ mg.tensor(b)).numpy()
    np.testing.assert_array_equal(got.astype(bool), a @ b)


def test_mixed_dtypes_promote(rng):
    a = rng.normal(size=(2, 3)).astype(np.float32)
    b = rng.normal(size=(3, 2))
    x, y = mg.tensor(a, requires_grad=True), mg.tensor(b, requires_grad=True)
    z = x @ y
    assert z.dtype is mg.float64
    by_x, by_y = mg.grad(z.sum(), (x, y))
    assert (by_x.dtype, by_y.dtype) == (mg.float32, mg.float64)
    assert (mg.tensor(a) @ mg.tensor([1, 2, 3])).dtype is mg.float32


def test_numpy_and_lists_as_operands(rng):
    a = rng.normal(size=(2, 2)).astype(np.float32)
    t = mg.tensor(a)
    for got in (t @ a, a @ t, t @ a.tolist(), a.tolist() @ t):
        assert isinstance(got, mg.Tensor)
        np.testing.assert_allclose(got.numpy(), a @ a, rtol=1e-6)


def test_wrong_shapes():
    with pytest.raises(
        ValueError, match=r"\[matmul\] inner dimensions differ: \(2, 3\) @ \(4, 5\), 3 != 4"
    ):
        mg.ones(2, 3) @ mg.ones(4, 5)
    with pytest.raises(ValueError, match=r"\[matmul\].*\(3,\) @ \(4,\)"):
        mg.ones(3) @ mg.ones(4)
    with pytest.raises(ValueError, match=r"\[matmul\]"):
        mg.ones(2, 2, 3) @ mg.ones(3, 3, 4)
    with pytest.raises(ValueError, match=r"\[matmul\] a 0-d operand has no inner dimension"):
        mg.ones(3) @ mg.tensor(2.0)
    with pytest.raises(TypeError, match=r"matmul|@"):
        mg.ones(3) @ "three"


def test_batch_mismatch_is_not_called_an_inner_one():
    with pytest.raises(ValueError, match="2 != 3") as caught:
        mg.ones(2, 2, 3) @ mg.ones(3, 3, 4)
    assert "inner" not in str(caught.value)


@settings(max_examples=150)
@given(data=st.data())
def test_any_strides(data):
    """Whole numbers, so that every order of summing agrees: batches and matrices of any strides."""
    shapes = data.draw(
        hnp.mutually_broadcastable_shapes(signature=np.matmul.signature, max_dims=2, max_side=9)
    )
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    dtype = data.draw(st.sampled_from([np.float32, np.float64, np.int64]))
    (a, x), (b, y) = (
        oracle.any_view(data, shape, lambda s: rng.integers(-9, 9, s).astype(dtype))
        for shape in shapes.input_shapes
    )
    oracle.assert_same((x @ y).numpy() + 0, np.asarray(a @ b) + 0)


@settings(max_examples=150)
@given(data=st.data())
def test_gradients_for_any_strides(data):
    """The kernel of an ordinary backward and the formula, on whole numbers, to the bit."""
    shapes = data.draw(
        hnp.mutually_broadcastable_shapes(signature=np.matmul.signature, max_dims=2, max_side=9)
    )
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    dtype = data.draw(st.sampled_from([np.float32, np.float64]))
    leaves = []
    for shape in shapes.input_shapes:
        turned = len(shape) > 1 and data.draw(st.booleans())
        made = shape[:-2] + shape[:-3:-1] if turned else shape
        x = mg.tensor(rng.integers(-9, 9, made).astype(dtype))
        leaves.append((x.mT if turned else x).requires_grad_())
    y = mg.matmul(*leaves)
    _, g = oracle.any_view(data, y.shape, lambda s: rng.integers(-9, 9, s).astype(dtype))
    fused, formula = (mg.grad(y, leaves, g, True, graph) for graph in (False, True))
    for got, want in zip(fused, formula, strict=True):
        oracle.assert_same(got.numpy() + 0, want.detach().numpy() + 0)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("batch", [(), (5,), (2, 3), (0,), (2, 0, 3)], ids=str)
def test_linear(batch, bias, rng):
    """x @ w^T + b over the last axis, and its derivatives to second order."""
    linear = mg.nn.functional.linear
    arrays = [rng.normal(size=s) for s in ((*batch, 4), (3, 4), (3,))[: 3 if bias else 2]]
    got = linear(*[mg.tensor(a) for a in arrays])
    want = arrays[0] @ arrays[1].T + (arrays[2] if bias else 0)
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-13, atol=1e-13)
    oracle.check_gradients(linear, arrays, rng)


@pytest.mark.parametrize("layout", oracle.LAYOUTS)
def test_linear_in_every_layout(layout, rng):
    linear = mg.nn.functional.linear
    arrays = [rng.integers(-9, 9, s).astype(np.float32) for s in ((6, 5, 7), (9, 7), (9,))]
    g = rng.integers(-9, 9, (6, 5, 9)).astype(np.float32)
    xs = [oracle.tensor_in_layout(a, layout, True) for a in arrays]
    y = linear(*xs)
    a, w, b = arrays
    oracle.assert_same(y.detach().numpy(), a @ w.T + b)
    want = [g @ w, np.einsum("ijo,ijk->ok", g, a), g.sum((0, 1))]
    for graph in (False, True):
        found = mg.grad(y, xs, oracle.tensor_in_layout(g, layout), True, graph)
        for got, expected in zip(found, want, strict=True):
            oracle.assert_same(got.detach().numpy() + 0, expected + 0)
