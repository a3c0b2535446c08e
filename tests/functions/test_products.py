"""Matrix and tensor products beside matmul: values, derivatives, edges and messages."""

from __future__ import annotations

import itertools
import math

import numpy as np
import oracle
import pytest

import minigrad as mg
import minigrad.nn.functional

NAN = math.nan


def tensors(arrays):
    return [mg.tensor(a) for a in arrays]


def drawn(rng, shapes):
    return [np.asarray(rng.normal(size=s)) for s in shapes]


# ---- products of fixed shapes --------------------------------------------------------------------

# name: (what NumPy gives, shapes of the operands)
FIXED = {
    "mm": (np.matmul, [(2, 3), (3, 4)]),
    "bmm": (np.matmul, [(2, 2, 3), (2, 3, 4)]),
    "mv": (np.matmul, [(2, 3), (3,)]),
    "dot": (np.dot, [(3,), (3,)]),
    "vdot": (np.dot, [(3,), (3,)]),
    "outer": (np.outer, [(2,), (3,)]),
    "ger": (np.outer, [(2,), (3,)]),
    "inner": (np.inner, [(2, 3), (4, 3)]),
    "kron": (np.kron, [(2, 3), (2, 2)]),
    "cross": (np.cross, [(2, 3), (2, 3)]),
}
by_fixed = pytest.mark.parametrize("name", FIXED)


@by_fixed
def test_values_and_derivatives(name, rng):
    op, (numpy, shapes) = getattr(mg, name), FIXED[name]
    arrays = drawn(rng, shapes)
    np.testing.assert_allclose(op(*tensors(arrays)).numpy(), numpy(*arrays), rtol=1e-13)
    oracle.check_gradients(op, arrays, rng)
    method = getattr(mg.tensor(arrays[0]), name)
    oracle.assert_same(method(mg.tensor(arrays[1])).numpy(), op(*tensors(arrays)).numpy())


@by_fixed
def test_integers_mixed_dtypes_and_layouts(name, rng):
    op, (numpy, shapes) = getattr(mg, name), FIXED[name]
    whole = [rng.integers(-9, 9, s) for s in shapes]
    want = np.asarray(numpy(*whole))
    oracle.assert_same(op(*tensors(whole)).numpy(), want)
    wide = op(mg.tensor(whole[0], mg.float64), mg.tensor(whole[1], mg.float32))
    oracle.assert_same(wide.numpy() + 0, want.astype(np.float64))
    for layout in oracle.LAYOUTS:
        given = [oracle.tensor_in_layout(a.astype(np.float32), layout) for a in whole]
        oracle.assert_same(op(*given).numpy() + np.float32(0), want.astype(np.float32))


@pytest.mark.parametrize(
    ("name", "shapes"),
    [
        ("mm", [(2, 0), (0, 3)]),
        ("mm", [(0, 2), (2, 3)]),
        ("bmm", [(0, 2, 3), (0, 3, 2)]),
        ("mv", [(2, 0), (0,)]),
        ("dot", [(0,), (0,)]),
        ("outer", [(0,), (3,)]),
        ("inner", [(2, 0), (3, 0)]),
        ("kron", [(0, 2), (3, 3)]),
        ("cross", [(0, 3), (0, 3)]),
    ],
)
def test_nothing_to_multiply(name, shapes):
    arrays = [np.ones(s) for s in shapes]
    xs = [mg.tensor(a, requires_grad=True) for a in arrays]
    y = getattr(mg, name)(*xs)
    oracle.assert_same(y.detach().numpy(), np.asarray(FIXED[name][0](*arrays)))
    for x, g in zip(xs, mg.grad(y, xs, mg.ones_like(y)), strict=True):
        oracle.assert_same(g.numpy(), np.zeros(x.shape))


@pytest.mark.parametrize(
    "shapes",
    [[(2,), (3, 2)], [(), (2,)], [(2, 1, 3), (2,)], [(), ()], [(1, 3, 2), (4, 3)]],
    ids=str,
)
def test_kron_of_different_dimensions(shapes, rng):
    a, b = drawn(rng, shapes)
    got = mg.kron(mg.tensor(a), mg.tensor(b))
    np.testing.assert_allclose(got.numpy(), np.kron(a, b), rtol=1e-14)
    oracle.check_gradients(mg.kron, [a, b], rng)


@pytest.mark.parametrize("shapes", [[(3,), (2, 3)], [(), (2,)], [(2, 4, 3), (3,)]], ids=str)
def test_inner_of_different_dimensions(shapes, rng):
    a, b = drawn(rng, shapes)
    np.testing.assert_allclose(mg.inner(*tensors([a, b])).numpy(), np.inner(a, b), rtol=1e-13)


def test_cross_along_a_dimension(rng):
    a, b = rng.normal(size=(3, 2, 3)), rng.normal(size=(3, 1, 3))
    x, y = tensors([a, b])
    first = np.cross(a, b, axis=0)
    np.testing.assert_allclose(mg.cross(x, y).numpy(), first, rtol=1e-12)  # the first of size 3
    np.testing.assert_allclose(mg.cross(x, y, 0).numpy(), first, rtol=1e-12)
    np.testing.assert_allclose(mg.cross(x, y, dim=-1).numpy(), np.cross(a, b), rtol=1e-12)
    oracle.check_gradients(mg.cross, [a, b], rng)


# ---- a product added to something ----------------------------------------------------------------

ADDED = {
    "addmm": ([(2, 2), (2, 3), (3, 2)], lambda a, b: a @ b),
    "addmv": ([(2,), (2, 3), (3,)], lambda a, b: a @ b),
    "addr": ([(2, 3), (2,), (3,)], np.outer),
    "baddbmm": ([(2, 1, 2), (2, 1, 2), (2, 2, 2)], lambda a, b: a @ b),
    "addbmm": ([(1, 2), (2, 1, 2), (2, 2, 2)], lambda a, b: (a @ b).sum(0)),
}
by_added = pytest.mark.parametrize("name", ADDED)


@by_added
@pytest.mark.parametrize(("beta", "alpha"), [(1, 1), (0.5, -2), (0, 3), (2, 0)])
def test_added(name, beta, alpha, rng):
    shapes, product = ADDED[name]
    op = getattr(mg, name)
    given = drawn(rng, shapes)
    for first in (given[0], given[0][..., :1]):
        arrays = [first, *given[1:]]
        got = op(*tensors(arrays), beta=beta, alpha=alpha)
        want = beta * first + alpha * product(*arrays[1:])
        np.testing.assert_allclose(got.numpy(), want, rtol=1e-12, atol=1e-14)
    oracle.check_gradients(lambda *t: op(*t, beta=beta, alpha=alpha), arrays, rng)


@by_added
def test_a_beta_of_0_ignores_nan(name, rng):
    shapes, product = ADDED[name]
    given = drawn(rng, shapes)
    given[0] = np.full(shapes[0], NAN)
    xs = [mg.tensor(a, requires_grad=True) for a in given]
    y = getattr(xs[0], name)(*xs[1:], beta=0)
    np.testing.assert_allclose(y.detach().numpy(), product(*given[1:]), rtol=1e-13)
    oracle.assert_same(mg.grad(y.sum(), xs)[0].numpy(), np.zeros(shapes[0]))


@by_added
def test_added_integers(name, rng):
    shapes, product = ADDED[name]
    arrays = [rng.integers(-5, 5, s) for s in shapes]
    got = getattr(mg, name)(*tensors(arrays), beta=2, alpha=3)
    oracle.assert_same(got.numpy(), 2 * arrays[0] + 3 * product(*arrays[1:]))
    got = getattr(mg, name)(*tensors(arrays), beta=0)
    oracle.assert_same(got.numpy(), product(*arrays[1:]))


# ---- einsum --------------------------------------------------------------------------------------

EQUATIONS = [
    ("ii", [(3, 3)]),
    ("ii->i", [(3, 3)]),
    ("iij->j", [(2, 2, 3)]),
    ("iiii->i", [(2, 2, 2, 2)]),
    ("iijj->ij", [(2, 2, 3, 3)]),
    ("ba", [(2, 3)]),
    ("ij->", [(2, 3)]),
    ("ij->j", [(2, 3)]),
    (" i j , j k -> i k ", [(2, 3), (3, 2)]),
    ("ij,jk", [(2, 3), (3, 2)]),
    ("ij,kj->ik", [(2, 3), (4, 3)]),
    ("bij,bjk->bik", [(2, 2, 3), (2, 3, 2)]),
    ("i,j->ij", [(2,), (3,)]),
    ("i,i", [(3,), (3,)]),
    ("i,i->i", [(3,), (3,)]),
    ("ij,ij->j", [(2, 3), (2, 3)]),
    ("ij,kl->", [(2, 3), (2, 2)]),
    ("ij,kl->ki", [(2, 3), (2, 2)]),
    (",->", [(), ()]),
    (",i->i", [(), (3,)]),
    ("...ij,...jk->...ik", [(2, 2, 3), (3, 2)]),
    ("...ij,...jk", [(2, 1, 2, 3), (3, 3, 2)]),
    ("...ij->...ji", [(2, 2, 3)]),
    ("...ii->...i", [(2, 3, 3)]),
    ("i...->...", [(3, 2)]),
    ("...,...->...", [(2, 3), (3,)]),
    ("a...b,b...->a...", [(2, 3, 2), (2, 3)]),
    ("bn,anm,bm->ba", [(2, 3), (3, 3, 2), (2, 2)]),
    ("ab,bc,ca->", [(2, 3), (3, 2), (2, 2)]),
    ("ij,jk,kl,lm->im", [(2, 3), (3, 2), (2, 3), (3, 2)]),
    ("ijk,ilk->jl", [(2, 3, 2), (2, 2, 2)]),
    ("bA,Ac", [(2, 3), (3, 2)]),
]
by_equation = pytest.mark.parametrize(("equation", "shapes"), EQUATIONS, ids=str)


@by_equation
def test_einsum(equation, shapes, rng):
    arrays = drawn(rng, shapes)
    got = mg.einsum(equation, *tensors(arrays))
    want = np.einsum(equation, *arrays)
    assert got.shape == want.shape
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-12, atol=1e-13)
    oracle.assert_same(mg.einsum(equation, tensors(arrays)).numpy(), got.numpy())
    oracle.check_gradients(lambda *t: mg.einsum(equation, *t), arrays, rng)


@by_equation
def test_einsum_of_integers_and_layouts(equation, shapes, rng):
    arrays = [np.asarray(rng.integers(-9, 9, s)) for s in shapes]
    want = np.asarray(np.einsum(equation, *arrays))
    oracle.assert_same(mg.einsum(equation, *tensors(arrays)).numpy(), want)
    for layout in ("transposed", "reversed"):
        given = [oracle.tensor_in_layout(a.astype(np.float32), layout) for a in arrays if a.ndim]
        given = [mg.tensor(a, mg.float32) for a in arrays if not a.ndim] + given
        got = mg.einsum(equation, *given).numpy()
        oracle.assert_same(got + np.float32(0), want.astype(np.float32))


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("ij,jk->ik", [(0, 3), (3, 2)]),
        ("ij,jk->ik", [(2, 0), (0, 2)]),
        ("ijk->", [(2, 0, 3)]),
        ("ij,ij->i", [(2, 0), (2, 0)]),
        ("ii", [(0, 0)]),
    ],
)
def test_einsum_of_nothing(equation, shapes):
    xs = [mg.ones(s, dtype=mg.float64, requires_grad=True) for s in shapes]
    y = mg.einsum(equation, *xs)
    oracle.assert_same(y.detach().numpy(), np.asarray(np.einsum(equation, *map(np.ones, shapes))))
    for x, g in zip(xs, mg.grad(y, xs, mg.ones_like(y)), strict=True):
        assert g.shape == x.shape


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("ij,jk->ik", [(2, 1), (3, 4)]),
        ("ij,ij->i", [(2, 1), (2, 3)]),
        ("ij,ij->ij", [(1, 3), (2, 3)]),
        ("ij,ij,ij->", [(1, 3), (2, 1), (1, 1)]),
    ],
)
def test_einsum_broadcasts_sizes_of_1(equation, shapes, rng):
    arrays = drawn(rng, shapes)
    sizes = {}
    for names, shape in zip(equation.split("->")[0].split(","), shapes, strict=True):
        sizes |= {n: max(size, sizes.get(n, 1)) for n, size in zip(names, shape, strict=True)}
    wide = [
        np.broadcast_to(a, [sizes[n] for n in names])
        for a, names in zip(arrays, equation.split("->")[0].split(","), strict=True)
    ]
    got = mg.einsum(equation, *tensors(arrays)).numpy()
    np.testing.assert_allclose(got, np.einsum(equation, *wide), rtol=1e-12)
    oracle.check_gradients(lambda *t: mg.einsum(equation, *t), arrays, rng)


def test_einsum_with_lists_of_labels(rng):
    a, b = drawn(rng, [(2, 2, 3), (3, 4)])
    x, y = tensors([a, b])
    got = mg.einsum(x, [..., 0, 1], y, [1, 2], [..., 2, 0])
    np.testing.assert_allclose(got.numpy(), np.einsum("...ij,jk->...ki", a, b), rtol=1e-13)
    got = mg.einsum(x, [0, 2, 1], y, [1, 3])
    np.testing.assert_allclose(got.numpy(), np.einsum("acb,bd", a, b), rtol=1e-13)


def test_einsum_sums_an_ellipsis_that_the_output_lacks(rng):
    a = rng.normal(size=(3, 2, 2))
    np.testing.assert_allclose(mg.einsum("...ij->ij", mg.tensor(a)).numpy(), a.sum(0), rtol=1e-13)


def test_einsum_of_a_view_is_a_view():
    x = mg.ones(3, 3)
    mg.einsum("ij->ji", x).zero_()
    assert x.sum().item() == 0


def test_einsum_does_the_cheapest_pair_first():
    """In a product of column, row and column, the last two make a number."""
    column, row = mg.ones(300, 1), mg.ones(1, 300)
    sizes = []
    with mg._c.trace(lambda kernel, args, made: sizes.append(made.size if made else 0)):
        mg.einsum("ij,jk,kl->il", column, row, column)
    assert max(sizes) == 300


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("ij->k", (2, 3)), "the output has 'k', which no operand has"),
        (("ij->ii", (2, 3)), "the output has 'i' twice"),
        (("ij,jk", (2, 3)), "2 terms for 1 operands"),
        (("ij", (2, 3), (2, 3)), "1 terms for 2 operands"),
        (("i1", (2, 3)), "'1' in 'i1': a term is made of letters and one '...'"),
        (("i.j", (2, 3)), r"'\.' in 'i\.j'"),
        (("ij->i->j", (2, 3)), "'-' in 'ij->i->j'"),
        (("......", (2, 3)), "operand 0 has more than one ellipsis"),
        (("...->......", (2, 3)), "the output has"),
        (("ii", (2, 3)), "'i' stands twice for operand 0, but sizes 2 and 3 differ"),
        (("i", (2, 3)), r"operand 0 of shape \(2, 3\) has 2 dimensions for 1 labels$"),
        (("...ijk", (2, 3)), r"operand 0 of shape \(2, 3\) has 2 dimensions for 3 labels beside"),
        (("ij,jk", (2, 3), (4, 5)), "operand 1 has size 4 for 'j', which has size 3"),
        (("...,...", (2, 3), (4,)), "operand 1 has size 4 for a dimension of the ellipsis, which"),
    ],
)
def test_einsum_messages(args, message):
    equation, *shapes = args
    with pytest.raises(ValueError, match=r"\[einsum\] " + message):
        mg.einsum(equation, *[mg.ones(s) for s in shapes])


def test_einsum_takes_nothing_else():
    for args in ((mg.ones(2), mg.ones(2)), (mg.ones(2), ["i"]), (3, 4)):
        with pytest.raises(TypeError, match=r"\[einsum\] expected an equation and tensors, or"):
            mg.einsum(*args)


# ---- tensordot -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dims", "p", "q"),
    [
        (2, (2, 3, 2), (3, 2, 2)),
        (0, (2,), (3,)),
        (1, (3,), (3,)),
        (([1], [0]), (2, 3), (3, 2)),
        ((1, 0), (2, 3), (3, 2)),
        (([0, 1], [1, 0]), (2, 3), (3, 2)),
        (([-1], [-2]), (2, 3), (3, 2)),
        (([0, 2], [1, 0]), (2, 3, 2), (2, 2, 3)),
    ],
    ids=str,
)
def test_tensordot(dims, p, q, rng):
    a, b = drawn(rng, [p, q])
    got = mg.tensordot(mg.tensor(a), mg.tensor(b), dims)
    want = np.tensordot(a, b, dims)
    assert got.shape == want.shape
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-12)
    oracle.check_gradients(lambda x, y: mg.tensordot(x, y, dims), [a, b], rng)


def test_tensordot_broadcasts_a_size_of_1(rng):
    a, b = drawn(rng, [(2, 1), (3, 4)])
    got = mg.tensordot(mg.tensor(a), mg.tensor(b), 1)
    np.testing.assert_allclose(got.numpy(), a * b.sum(0), rtol=1e-13)


# ---- distances and the bilinear layer ------------------------------------------------------------


@pytest.mark.parametrize("p", [0.5, 1.0, 2.0, 3.0, math.inf])
def test_cdist(p, rng):
    a, b = rng.normal(size=(2, 1, 2)), rng.normal(size=(2, 2))
    got = mg.cdist(mg.tensor(a), mg.tensor(b), p)
    difference = np.abs(a[:, :, None] - b)
    want = difference.max(-1) if p == math.inf else (difference**p).sum(-1) ** (1 / p)
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-13)
    oracle.check_gradients(lambda x, y: mg.cdist(x, y, p), [a, b], rng, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("dtype", [mg.float32, mg.float64], ids=lambda d: d.name)
@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((300, 3), (700, 3)),
        ((5, 200), (9, 200)),
        ((2, 1, 4, 3), (3, 5, 3)),
        ((3, 1), (257, 1)),
        ((0, 2), (3, 2)),
        ((3, 2), (0, 2)),
        ((2, 3, 0), (2, 4, 0)),
    ],
    ids=str,
)
def test_cdist_of_many_points(a, b, dtype, rng):
    """Against differences written out, from every layout, for any number of threads."""
    of_x, of_y = (mg.tensor(rng.normal(size=s), dtype).numpy() for s in (a, b))
    wide = of_x[..., :, None, :].astype(np.float64) - of_y[..., None, :, :]
    want = np.sqrt((wide**2).sum(-1))
    g = np.asarray(rng.normal(size=want.shape), dtype.name)
    slope = (g / np.where(want, want, 1))[..., None] * wide
    by_x = slope.sum(-2).reshape(-1, *a).sum(0) if slope.size else np.zeros(a)
    by_y = -slope.sum(-3).reshape(-1, *b).sum(0) if slope.size else np.zeros(b)
    if len(a) > 2 and slope.size:
        by_x, by_y = slope.sum(-2).sum(1, keepdims=True), -slope.sum(-3).sum(0)
    tolerance = 1e-5 if dtype is mg.float32 else 1e-12
    results, before = [], mg.get_num_threads()
    for threads, layout in ((1, "contiguous"), (2, "transposed"), (3, "reversed")):
        mg.set_num_threads(threads)
        x, y = (oracle.tensor_in_layout(t, layout, requires_grad=True) for t in (of_x, of_y))
        d = mg.cdist(x, y)
        np.testing.assert_allclose(d.detach().numpy(), want, rtol=tolerance)
        grads = mg.grad(d, (x, y), oracle.tensor_in_layout(g, layout))
        for got, wanted in zip(grads, (by_x, by_y), strict=True):
            scale = tolerance * max(np.abs(wanted).max(initial=0), 1) * 10
            np.testing.assert_allclose(got.numpy(), wanted, rtol=tolerance, atol=scale)
        results.append([d.detach().numpy(), *(t.numpy() for t in grads)])
    mg.set_num_threads(before)
    for result in results[1:]:
        for got, first in zip(result, results[0], strict=True):
            oracle.assert_same(got, first)


@pytest.mark.parametrize("p", [0, 0.5, 1, 2, 3, math.inf])
def test_cdist_of_points_without_coordinates(p):
    assert mg.cdist(mg.zeros(2, 0), mg.zeros(3, 0), p).tolist() == [[0, 0, 0]] * 2


def test_cdist_where_no_gradient_arrives():
    """Partials that a gradient of exactly 0 meets do not count, be they infinite or NaN."""
    x = mg.tensor([[0.0, 0.0], [NAN, 1.0]], requires_grad=True)
    y = mg.tensor([[3.0, 4.0], [math.inf, 1.0]], requires_grad=True)
    by_x, by_y = mg.grad(mg.cdist(x, y), (x, y), mg.tensor([[10.0, 0.0], [0.0, 0.0]]))
    assert by_x.tolist() == [[-6, -8], [0, 0]]
    assert by_y.tolist() == [[6, 8], [0, 0]]


def test_cdist_of_equal_points():
    x = mg.tensor([[1.0, 2.0], [1.0, 2.0]], mg.float64, requires_grad=True)
    for p in (1.0, 2.0, 3.0, math.inf):
        y = mg.cdist(x, x.detach(), p)
        assert y.tolist() == [[0, 0], [0, 0]]
        assert np.abs(mg.grad(y.sum(), [x])[0].numpy()).max() == 0


def test_cdist_keeps_small_distances():
    """Through inner products this would be 0, or off by a thousand times."""
    x = mg.tensor([[1e4, 0.0]])
    assert mg.cdist(x, mg.tensor([[1e4 + 2**-8, 0.0]])).item() == 2**-8
    mode = "donot_use_mm_for_euclid_dist"
    assert mg.cdist(x, x, compute_mode=mode).item() == 0


@pytest.mark.parametrize("batch", [(), (2,), (1, 2), (0,)], ids=str)
def test_bilinear(batch, rng):
    bilinear = mg.nn.functional.bilinear
    arrays = drawn(rng, [(*batch, 2), (*batch, 3), (2, 2, 3), (2,)])
    want = np.einsum("...i,kij,...j->...k", arrays[0], arrays[2], arrays[1])
    got = bilinear(*tensors(arrays[:3]))
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-12)
    got = bilinear(*tensors(arrays))
    np.testing.assert_allclose(got.numpy(), want + arrays[3], rtol=1e-12)
    oracle.check_gradients(bilinear, arrays, rng)


# ---- messages ------------------------------------------------------------------------------------

TWO = mg.ones(2, 3)
MESSAGES = [
    (lambda: mg.mm(TWO, TWO), r"\[mm\] inner dimensions differ: \(2, 3\) @ \(2, 3\), 3 != 2"),
    (lambda: mg.mm(TWO, mg.ones(3)), r"\[mm\] takes 2-d and 2-d tensors, not shapes \(2, 3\) and"),
    (
        lambda: mg.bmm(mg.ones(2, 1, 1), mg.ones(3, 1, 1)),
        r"\[bmm\] batch sizes differ: \(2, 1, 1\)",
    ),
    (lambda: mg.mv(TWO, mg.ones(2)), r"\[mv\] inner dimensions differ: \(2, 3\) @ \(2,\), 3 != 2"),
    (lambda: mg.dot(mg.ones(2), mg.ones(3)), r"\[dot\] inner dimensions differ"),
    (lambda: mg.dot(TWO, TWO), r"\[dot\] takes 1-d and 1-d tensors"),
    (lambda: mg.outer(TWO, mg.ones(2)), r"\[outer\] takes 1-d and 1-d tensors"),
    (lambda: mg.inner(TWO, mg.ones(2)), r"\[inner\] the last sizes differ: \(2, 3\) and \(2,\)"),
    (
        lambda: mg.addmm(mg.ones(3, 3), TWO, TWO.mT),
        r"\[addmm\] the input \(3, 3\) does not broadcast to the product's shape \(2, 2\)",
    ),
    (lambda: mg.addmm(TWO, TWO, TWO), r"\[addmm\] inner dimensions differ"),
    (lambda: mg.cross(mg.ones(2), mg.ones(2)), r"\[cross\] no dimension of \(2,\) has size 3"),
    (lambda: mg.cross(TWO, TWO, 0), r"\[cross\] dim 0 of shapes .* must have size 3"),
    (lambda: mg.cross(TWO, mg.ones(3)), r"\[cross\] shapes .* differ in number of dimensions"),
    (lambda: mg.cdist(TWO, mg.ones(2, 2)), r"\[cdist\] takes \(\.\.\., n, k\) and"),
    (lambda: mg.cdist(TWO, TWO, compute_mode="mm"), r"\[cdist\] compute_mode is one of"),
    (
        lambda: mg.tensordot(TWO, TWO, 1),
        r"\[tensordot\] dim 1 of \(2, 3\) and dim 0 of \(2, 3\) differ: 3 != 2",
    ),
    (lambda: mg.tensordot(TWO, TWO, 3), r"\[tensordot\] 3 dims are not in \(2, 3\) and \(2, 3\)"),
    (lambda: mg.tensordot(TWO, TWO, ([0], [0, 1])), r"\[tensordot\] 1 dims of a for 2 of b"),
    (lambda: mg.tensordot(TWO, TWO, ([0, 0], [0, 0])), r"\[tensordot\] a dim is given twice"),
    (lambda: mg.tensordot(TWO, TWO, ([0],)), r"\[tensordot\] dims is a number, or a pair"),
    (
        lambda: mg.nn.functional.bilinear(TWO, TWO, mg.ones(1, 3, 2)),
        r"\[bilinear\] shapes \(2, 3\) and \(2, 3\) of the inputs and \(1, 3, 2\) of the weight",
    ),
    (
        lambda: mg.nn.functional.bilinear(TWO, TWO, mg.ones(1, 3, 3), mg.ones(2)),
        r"\[bilinear\] the bias has shape \(2,\), but must be \(1,\)",
    ),
]


@pytest.mark.parametrize(("action", "message"), MESSAGES, ids=[m[:40] for _, m in MESSAGES])
def test_messages(action, message):
    with pytest.raises(ValueError, match=message):
        action()


def test_wrong_types():
    for name, pair in itertools.product(FIXED, (("a", mg.ones(3)), (mg.ones(3), None))):
        with pytest.raises(TypeError, match=rf"\[{name}\]|\[outer\]"):
            getattr(mg, name)(*pair)
