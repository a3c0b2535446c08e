"""Reading and writing by index, as functions, against NumPy; gradients to second order."""

from __future__ import annotations

import numpy as np
import oracle
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import minigrad as mg
import minigrad.nn.functional as F
from minigrad import _c
from minigrad.tape.tensor_base import wrap

X = np.arange(24.0).reshape(2, 3, 4)
ALONG = np.array([[[2, 0, 1, 1]], [[0, -1, 2, 0]]])  # positions in dim 1, for every other
UFUNCS = {"sum": np.add, "prod": np.multiply, "amax": np.maximum, "amin": np.minimum}


def grid(index, axis):
    """Index arrays by ``index`` along an axis, and by position along the others."""
    return tuple(index if d == axis else g for d, g in enumerate(np.indices(index.shape)))


# ---- reading -------------------------------------------------------------------------------------

# name: (on a tensor, on an array)
READS = {
    "gather": (
        lambda t: t.gather(1, mg.tensor(ALONG)),
        lambda a: np.take_along_axis(a, ALONG, 1),
    ),
    "gather of a part": (
        lambda t: mg.gather(t, 2, mg.tensor(ALONG[:1])),
        lambda a: np.take_along_axis(a[:1, :1], ALONG[:1], 2),
    ),
    "take": (lambda t: t.take([[0, -1], [7, 7]]), lambda a: np.take(a, [[0, -1], [7, 7]])),
    "take_along_dim": (
        lambda t: t.take_along_dim(mg.tensor(ALONG), 1),
        lambda a: np.take_along_axis(a, ALONG, 1),
    ),
    "take_along_dim, broadcast": (
        lambda t: mg.take_along_dim(t, mg.tensor([[[2], [0], [0], [1]]]), dim=1),
        lambda a: a[:, [2, 0, 0, 1]],
    ),
    "take_along_dim, flat": (
        lambda t: mg.take_along_dim(t, mg.tensor([3, 3, 20])),
        lambda a: a.ravel()[[3, 3, 20]],
    ),
    "index_select": (lambda t: t.index_select(1, [2, 0, 2]), lambda a: a[:, [2, 0, 2]]),
    "index_select first": (lambda t: t.index_select(0, [1, 1]), lambda a: a[[1, 1]]),
    "index_select last": (lambda t: t.index_select(-1, []), lambda a: a[..., :0]),
    "masked_select": (
        lambda t: t.masked_select(mg.tensor(X % 3 == 1)),
        lambda a: a[X % 3 == 1],
    ),
    "masked_select, broadcast": (
        lambda t: mg.masked_select(t, mg.tensor([[True], [False], [True]])),
        lambda a: a[:, [0, 2]].ravel(),
    ),
}


@pytest.mark.parametrize("name", READS)
@pytest.mark.parametrize("layout", [*oracle.LAYOUTS, "spread"])
def test_reads(name, layout, rng):
    on_tensor, on_array = READS[name]
    if layout == "spread":  # stride 0
        values = np.broadcast_to(X[:1, :, :1], X.shape)
        x = mg.tensor(X[:1, :, :1]).expand(X.shape).requires_grad_()
    else:
        values, x = X, oracle.tensor_in_layout(X, layout, True)
    y = on_tensor(x)
    oracle.assert_same(y.detach().numpy(), np.ascontiguousarray(on_array(values)))
    g = rng.integers(1, 9, y.shape).astype(np.float64)
    want = np.zeros(24)
    np.add.at(want, on_array(np.arange(24).reshape(X.shape)).ravel(), g.ravel())
    for graph in (False, True):
        for upstream in (mg.tensor(g), oracle.tensor_in_layout(g, "reversed")):
            (got,) = mg.grad(y, x, upstream, True, graph)
            oracle.assert_same(got.detach().numpy(), want.reshape(X.shape))


@pytest.mark.parametrize("name", READS)
def test_reads_of_all_dtypes_and_second_derivatives(name, rng):
    on_tensor, on_array = READS[name]
    for dtype in (np.bool_, np.int64, np.float32):
        values = (X % 3).astype(dtype)
        oracle.assert_same(
            on_tensor(mg.tensor(values)).numpy(), np.ascontiguousarray(on_array(values))
        )
    oracle.check_gradients(lambda t: on_tensor(t * t), [X / 10 + 0.1], rng)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_positions_along_the_other_axes_need_no_array(axis, rng):
    x, shape = rng.standard_normal((3, 4, 5)), (2, 3, 4)  # smaller than x along every axis
    index = rng.integers(-x.shape[axis], x.shape[axis], shape)
    at = [None] * 3
    at[axis] = mg.tensor(index)._h
    made = _c.call(_c.lib.mg_gather, mg.tensor(x)._h, 3, at)
    assert np.array_equal(wrap(made).numpy(), x[grid(index, axis)])


def test_positions_are_checked():
    x, index = mg.zeros(2, 3), mg.zeros(4, 1, dtype=mg.int64)
    with pytest.raises(IndexError, match="index 3 is out of range for size 2"):
        _c.call(_c.lib.mg_gather, x._h, 2, (None, index._h))
    with pytest.raises(IndexError):  # no array says how many
        _c.call(_c.lib.mg_gather, x._h, 2, (_c.NULL, _c.NULL))
    line = mg.zeros(2, dtype=mg.int64)
    with pytest.raises(ValueError, match="dimensions"):
        _c.call(_c.lib.mg_gather, x._h, 2, (line._h, None))


def test_picking_along_a_dimension_is_one_call(rng):
    seen = []
    x, index = mg.tensor(rng.standard_normal((3, 4, 5))), mg.tensor([2, 0])
    with _c.trace(lambda kernel, args, result: seen.append(kernel.__name__)):
        x.sort(1)
        x.max(1, keepdim=True)
        x[index]
    assert seen == ["mg_argsort", "mg_gather", "mg_arg_reduce", "mg_gather", "mg_gather"]


def test_take_along_dim_sorts(rng):
    x = rng.normal(size=(3, 4, 2))
    for axis in (0, 1, 2, -1):
        order = np.argsort(x, axis)
        got = mg.take_along_dim(mg.tensor(x), mg.tensor(order), axis=axis)
        oracle.assert_same(got.numpy(), np.sort(x, axis))


def test_numbers_are_vectors_of_one(rng):
    x = mg.tensor(2.0, requires_grad=True)
    zero = mg.tensor(0)
    for y in (
        mg.gather(x, 0, zero),
        mg.index_select(x, 0, zero),
        mg.take(x, zero),
        mg.masked_select(x, mg.tensor(True)).reshape(()),
        mg.scatter(mg.tensor(1.0), 0, zero, x),
        mg.index_copy(mg.tensor(1.0), 0, zero, x.reshape(1)),
        mg.masked_scatter(mg.tensor(1.0), mg.tensor(True), x),
    ):
        assert y.shape == ()
        assert y.item() == 2
        assert mg.grad(y, x)[0].item() == 1
    assert mg.gather(x, 0, [0, 0, -1]).tolist() == [2, 2, 2]
    assert mg.gather(mg.ones(3), 0, mg.zeros(2, 0, dtype=mg.int64)).shape == (2, 0)
    assert mg.scatter_add(x, 0, [0, 0], mg.tensor([3.0, 4.0])).item() == 9
    assert mg.index_add(x, 0, zero, mg.tensor([3.0])).item() == 5
    assert mg.index_fill(x, 0, zero, 7.0).item() == 7
    assert mg.scatter_reduce(x, 0, zero, mg.tensor(3.0), "amax").item() == 3


def test_nonzero(rng):
    x = rng.integers(0, 2, (3, 4, 5))
    for t in [mg.tensor(x), *[oracle.tensor_in_layout(x > 0, a) for a in oracle.LAYOUTS]]:
        for found in (mg.nonzero(t, as_tuple=True), mg.where(t)):
            for got, want in zip(found, np.nonzero(x), strict=True):
                oracle.assert_same(got.numpy(), want)
        oracle.assert_same(mg.nonzero(t).numpy(), np.argwhere(x))
        oracle.assert_same(mg.argwhere(t).numpy(), np.argwhere(x))
    nothing = mg.zeros(3, 0)
    assert mg.nonzero(nothing).shape == (0, 2)
    assert [n.shape for n in mg.nonzero(nothing, as_tuple=True)] == [(0,), (0,)]
    assert mg.nonzero(mg.tensor(5.0)).shape == (1, 0)
    assert mg.nonzero(mg.tensor(0.0)).shape == (0, 0)
    assert [n.tolist() for n in mg.nonzero(mg.tensor(5.0), as_tuple=True)] == [[0]]
    assert mg.nonzero(mg.tensor([0.0, -0.0, np.nan, 1e-45])).tolist() == [[2], [3]]


def test_where_and_masked_fill(rng):
    x, mask = rng.normal(size=(3, 4)), rng.uniform(size=(3, 4)) < 0.5
    a, b, c = rng.normal(size=(3, 1)), rng.normal(size=(4,)), mask[:, :1]
    oracle.assert_same(
        mg.where(mg.tensor(c), mg.tensor(a), mg.tensor(b)).numpy(), np.where(c, a, b)
    )
    oracle.check_gradients(lambda s, t: mg.where(mg.tensor(mask), s * s, t * t * t), [a, b], rng)
    oracle.assert_same(
        mg.tensor(x).masked_fill(mg.tensor(mask), 0.1).numpy(), np.where(mask, 0.1, x)
    )
    oracle.check_gradients(
        lambda t, v: (t * t).masked_fill(mg.tensor(mask), v * v), [x, a[0, 0]], rng
    )
    assert (
        mg.ones(2).masked_fill(mg.tensor([True, False]), mg.tensor(2.0, mg.float64)).dtype
        is mg.float32
    )
    with pytest.raises(TypeError, match=r"\[where\] the condition must be bool, not int64"):
        mg.where(mg.tensor([1, 0]), 1.0, 2.0)
    with pytest.raises(TypeError, match=r"\[masked_fill\] the mask must be bool, not int64"):
        mg.ones(2).masked_fill(mg.tensor([1, 0]), 1.0)
    with pytest.raises(TypeError, match=r"\[masked_fill\] a value of dtype float64 does not fit"):
        mg.tensor([1, 2]).masked_fill(mg.tensor([True, False]), 1.5)
    with pytest.raises(ValueError, match=r"\[masked_fill\] the value has shape \(1,\)"):
        mg.ones(2).masked_fill(mg.tensor([True, False]), mg.ones(1))


# ---- writing -------------------------------------------------------------------------------------


def written(a, index, value, ufunc=None):
    out = a.copy()
    if ufunc is None:
        out[index] = value
    else:
        ufunc.at(out, index, value)
    return out


SRC = -1.0 - np.arange(24.0).reshape(2, 3, 4)
INDEX = np.array([[[2, 0, 1, 1], [2, 1, 1, 0]], [[0, -1, 2, 0], [0, 0, 0, 0]]])  # repeats
AT = grid(INDEX, 1)
PART = SRC[:, :2]
ROWS = np.array([2, 0, 2])

# name: (on tensors x and source, on arrays)
WRITES = {
    "scatter": (lambda x, v: x.scatter(1, INDEX, v), lambda a, v: written(a, AT, v[:, :2])),
    "scatter add": (
        lambda x, v: mg.scatter(x, 1, mg.tensor(INDEX), v, reduce="add"),
        lambda a, v: written(a, AT, v[:, :2], np.add),
    ),
    "scatter multiply": (
        lambda x, v: mg.scatter(x, 1, mg.tensor(INDEX), v, "multiply"),
        lambda a, v: written(a, AT, v[:, :2], np.multiply),
    ),
    "scatter_add": (
        lambda x, v: x.scatter_add(1, mg.tensor(INDEX), v),
        lambda a, v: written(a, AT, v[:, :2], np.add),
    ),
    "index_put": (
        lambda x, v: x.index_put((mg.tensor([1, -1, 0]), mg.tensor([[2]])), v[0]),
        lambda a, v: written(a, ([1, -1, 0], [[2]]), v[0]),
    ),
    "index_put mask": (
        lambda x, v: x.index_put([mg.tensor(X[:, :, 0] > 5)], v[0, 0]),
        lambda a, v: written(a, X[:, :, 0] > 5, v[0, 0]),
    ),
    "index_put accumulate": (
        lambda x, v: x.index_put([mg.tensor([1, 1, 0])], v[0, 0], True),
        lambda a, v: written(a, [1, 1, 0], v[0, 0], np.add),
    ),
    "index_add": (
        lambda x, v: x.index_add(1, ROWS, v),
        lambda a, v: written(a, (slice(None), ROWS), v, np.add),
    ),
    "index_add alpha": (
        lambda x, v: mg.index_add(x, -2, mg.tensor(ROWS), v, alpha=2),
        lambda a, v: written(a, (slice(None), ROWS), 2 * v, np.add),
    ),
    "index_copy": (
        lambda x, v: x.index_copy(1, ROWS, v),
        lambda a, v: written(a, (slice(None), ROWS), v),
    ),
    "index_fill": (
        lambda x, v: x.index_fill(2, [0, 3], v[0, 0, 0]),
        lambda a, v: written(a, (..., [0, 3]), v[0, 0, 0]),
    ),
    "masked_scatter": (
        lambda x, v: x.masked_scatter(mg.tensor(X % 3 == 1), v),
        lambda a, v: written(a, X % 3 == 1, v.ravel()[:8]),
    ),
    "select_scatter": (
        lambda x, v: x.select_scatter(v[:, 0], 1, -1),
        lambda a, v: written(a, (slice(None), 2), v[:, 0]),
    ),
    "slice_scatter": (
        lambda x, v: mg.slice_scatter(x, v[..., :2], 2, 1, 9, 2),
        lambda a, v: written(a, (..., slice(1, 9, 2)), v[..., :2]),
    ),
    "slice_scatter nothing": (
        lambda x, v: mg.slice_scatter(x, v[:0], 0, 5),
        lambda a, v: a.copy(),
    ),
    "diagonal_scatter": (
        lambda x, v: x.diagonal_scatter(v[:, :, 0], 1, 1, 2),
        lambda a, v: written(a, (slice(None), [0, 1, 2], [1, 2, 3]), v[:, :, 0]),
    ),
}


@pytest.mark.parametrize("name", WRITES)
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.bool_])
def test_writes(name, dtype):
    on_tensors, on_arrays = WRITES[name]
    a, v = (X % 3).astype(dtype), (SRC % 2).astype(dtype)
    if dtype is np.bool_ and name == "index_add alpha":
        return  # 2 * True is an integer
    x = mg.tensor(a)
    oracle.assert_same(on_tensors(x, mg.tensor(v)).numpy(), on_arrays(a, v))
    oracle.assert_same(x.numpy(), a)  # a new tensor: x is as it was


@pytest.mark.parametrize("name", WRITES)
def test_gradients_of_writes(name, rng):
    """Distinct values, so that a finite difference sees which of several writes has won."""
    on_tensors, _ = WRITES[name]
    oracle.check_gradients(
        lambda x, v: on_tensors(x * x, v * v), [X / 10 + 0.1, SRC / 20], rng, second=name[0] != "m"
    )


@pytest.mark.parametrize("name", WRITES)
@pytest.mark.parametrize("layout", oracle.LAYOUTS)
def test_layouts_of_writes(name, layout, rng):
    on_tensors, on_arrays = WRITES[name]
    plain = [mg.tensor(a, requires_grad=True) for a in (X, SRC)]
    laid = [oracle.tensor_in_layout(a, layout, True) for a in (X, SRC)]
    y, z = on_tensors(*plain), on_tensors(*laid)
    oracle.assert_same(z.detach().numpy(), on_arrays(X, SRC))
    g = rng.integers(1, 9, y.shape).astype(np.float64)
    want = mg.grad(y, plain, mg.tensor(g))
    for got, expected in zip(
        mg.grad(z, laid, oracle.tensor_in_layout(g, layout)), want, strict=True
    ):
        oracle.assert_same(got.numpy(), expected.numpy())
    ones = mg.grad(on_tensors(*plain), plain, mg.tensor(1.0, mg.float64).expand(y.shape))
    for got, a in zip(ones, (X, SRC), strict=True):
        assert got.shape == a.shape


REDUCES = [
    (r, include) for r in ("sum", "prod", "mean", "amax", "amin") for include in (True, False)
]


def reduced(a, index, value, reduce, include):
    """scatter_reduce by NumPy, on a copy."""
    out, touched = a.copy(), np.zeros(a.shape, np.int64)
    np.add.at(touched, index, 1)
    ufunc = UFUNCS.get(reduce, np.add)
    if not include:
        start = {"amax": -np.inf, "amin": np.inf, "prod": 1}.get(reduce, 0)
        out[touched > 0] = start
    ufunc.at(out, index, value)
    if reduce == "mean":
        out = out / np.maximum(touched + (1 if include else (touched == 0)), 1)
    return out


@pytest.mark.parametrize(("reduce", "include"), REDUCES)
def test_scatter_reduce(reduce, include, rng):
    distinct = rng.permutation(np.arange(1, 65)) / 32  # further apart than finite differences step
    a, v = distinct[:24].reshape(2, 3, 4), distinct[24:40].reshape(2, 2, 4)
    want = reduced(a, AT, v, reduce, include)
    got = mg.scatter_reduce(
        mg.tensor(a), 1, mg.tensor(INDEX), mg.tensor(v), reduce, include_self=include
    )
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-14)
    oracle.check_gradients(
        lambda x, s: mg.scatter_reduce(
            x * x, 1, mg.tensor(INDEX), s * s, reduce, include_self=include
        ),
        [a, v],
        rng,
    )
    if reduce == "sum":
        return
    v = distinct[40:].reshape(2, 3, 4)
    want = reduced(a, (slice(None), ROWS), v, reduce, include)
    got = mg.index_reduce(mg.tensor(a), 1, ROWS, mg.tensor(v), reduce, include_self=include)
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-14)
    oracle.check_gradients(
        lambda x, s: mg.index_reduce(x * x, 1, ROWS, s * s, reduce, include_self=include),
        [a, v],
        rng,
    )


@settings(max_examples=150)
@given(data=st.data())
def test_any_scatter(data):
    """Any shape, dim, index and reduction: values, and gradients of sums and of writes."""
    shape = data.draw(hnp.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=4))
    axis = data.draw(st.integers(0, len(shape) - 1))
    size = tuple(data.draw(st.integers(0, 6 if d == axis else n)) for d, n in enumerate(shape))
    index = data.draw(
        hnp.arrays(np.int64, size, elements=st.integers(-shape[axis], shape[axis] - 1))
    )
    reduce, include = data.draw(st.sampled_from(REDUCES))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    a, v = (
        rng.integers(-4, 5, shape).astype(np.float64),
        rng.integers(-4, 5, size).astype(np.float64),
    )
    at = grid(index, axis)
    x, s = mg.tensor(a, requires_grad=True), mg.tensor(v, requires_grad=True)
    y = mg.scatter_reduce(x, axis, mg.tensor(index), s, reduce, include_self=include)
    oracle.assert_same(y.detach().numpy() + 0.0, reduced(a, at, v, reduce, include) + 0.0)
    g = rng.integers(-4, 5, shape).astype(np.float64)
    for got, leaf in zip(mg.grad(y, (x, s), mg.tensor(g)), (x, s), strict=True):
        assert got.shape == leaf.shape
    z = mg.scatter(x, axis, mg.tensor(index), s)
    oracle.assert_same(z.detach().numpy(), written(a, at, v))
    by_x, by_s = mg.grad(z, (x, s), mg.tensor(g))
    owner = written(np.full(shape, -1), at, np.arange(index.size).reshape(size))
    want = np.zeros(index.size)
    want[owner[owner >= 0]] = g[owner >= 0]
    oracle.assert_same(by_s.numpy(), want.reshape(size))
    oracle.assert_same(by_x.numpy(), np.where(owner < 0, g, 0.0))


def test_an_index_that_changes_later_does_not_change_the_gradient():
    for write in (
        lambda x, i, v: x.index_put([i], v),
        lambda x, i, v: x.scatter(0, i, v),
        lambda x, i, v: x.index_copy(0, i, v),
    ):
        index = mg.tensor([0, 1, 1])
        x, v = (mg.tensor([1.0, 2.0, 3.0], requires_grad=True) for _ in range(2))
        y = write(x, index, v)
        index[...] = 2
        assert [g.tolist() for g in mg.grad(y.sum(), (x, v))] == [[0, 0, 1], [1, 0, 1]]
    index = mg.tensor([0, 0, 1])
    x = mg.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = mg.gather(x, 0, index)
    index[...] = 2
    assert mg.grad(y.sum(), x)[0].tolist() == [2, 1, 0]


def test_empty_indices():
    x = mg.ones(2, 3, requires_grad=True)
    none = mg.zeros(0, 3, dtype=mg.int64)
    for y in (
        mg.scatter(x, 0, none, 5.0),
        mg.scatter_add(x, 0, none, mg.zeros(0, 3)),
        mg.scatter_add(x, 0, [], mg.ones(5)),
        mg.scatter_reduce(x, 0, none, mg.zeros(0, 3, requires_grad=True), "prod"),
        mg.scatter_reduce(x, 0, none, mg.zeros(0, 3), "amax", include_self=False),
        mg.scatter_reduce(x, 0, none, mg.zeros(0, 3), "mean", include_self=False),
        mg.index_add(x, 0, [], mg.zeros(0, 3)),
        mg.index_copy(x, 1, [], mg.zeros(2, 0)),
        mg.index_fill(x, 0, [], 7.0),
        mg.index_put(x, [mg.zeros(0, dtype=mg.int64)], 7.0),
        mg.masked_scatter(x, mg.tensor(False), mg.zeros(0)),
    ):
        assert y.tolist() == [[1, 1, 1]] * 2
        assert mg.grad(y.sum(), x)[0].tolist() == [[1, 1, 1]] * 2


def test_values_are_cast_to_what_they_are_written_into(rng):
    x, v = mg.zeros(3), mg.tensor([1.5, 2.5], mg.float64, requires_grad=True)
    y = mg.scatter(x, 0, [0, 2], v)
    assert y.dtype is mg.float32
    (g,) = mg.grad(y.sum(), v)
    assert g.dtype is mg.float64
    assert g.tolist() == [1, 1]
    assert mg.scatter(mg.zeros(2, dtype=mg.float64), 0, [0], 0.1).tolist() == [0.1, 0]
    assert mg.index_put(mg.zeros(2, dtype=mg.float64), [[0]], [0.1]).tolist() == [0.1, 0]
    with pytest.raises(TypeError, match=r"\[scatter\] a value of dtype float64 does not fit"):
        mg.scatter(mg.tensor([1]), 0, [0], 0.5)


# ---- classes -------------------------------------------------------------------------------------


def test_one_hot():
    classes = np.array([[0, 3], [1, 1]])
    oracle.assert_same(F.one_hot(mg.tensor(classes)).numpy(), np.eye(4, dtype=np.int64)[classes])
    oracle.assert_same(F.one_hot(classes, 5).numpy(), np.eye(5, dtype=np.int64)[classes])
    assert F.one_hot(mg.tensor(2)).tolist() == [0, 0, 1]
    assert F.one_hot([], 3).shape == (0, 3)
    assert F.one_hot(mg.zeros(2, 0, dtype=mg.int64), 3).shape == (2, 0, 3)
    oracle.assert_same(
        F.one_hot(mg.tensor(classes).T).numpy(), np.eye(4, dtype=np.int64)[classes.T]
    )
    with pytest.raises(ValueError, match=r"\[one_hot\] num_classes is -2"):
        F.one_hot(classes, -2)
    with pytest.raises(ValueError, match=r"\[one_hot\] 17 dimensions where at most 16"):
        F.one_hot(mg.zeros((1,) * 16, dtype=mg.int64))
    with pytest.raises((ValueError, MemoryError), match=r"\[one_hot\] "):
        F.one_hot(mg.tensor([2**63 - 1]))
    with pytest.raises(ValueError, match=r"\[one_hot\] classes from 0 to 3 are not in 0..2"):
        F.one_hot(classes, 3)
    with pytest.raises(ValueError, match=r"\[one_hot\] classes from -1 to 0"):
        F.one_hot([-1, 0])
    with pytest.raises(ValueError, match=r"\[one_hot\] no classes to count"):
        F.one_hot([])


def test_embedding(rng):
    weight = rng.normal(size=(5, 3))
    classes = np.array([[1, 4], [1, 0]])
    oracle.assert_same(F.embedding(mg.tensor(classes), mg.tensor(weight)).numpy(), weight[classes])
    oracle.check_gradients(lambda w: F.embedding(mg.tensor(classes), w * w), [weight], rng)
    w = mg.tensor(weight, requires_grad=True)
    for padding in (1, -4):
        (g,) = mg.grad(F.embedding(mg.tensor(classes), w, padding).sum(), w)
        assert g.tolist() == [[1] * 3, [0] * 3, [0] * 3, [0] * 3, [1] * 3]
    assert F.embedding(mg.zeros(0, 2, dtype=mg.int64), w).shape == (0, 2, 3)
    for wrong in (-1, 5):
        with pytest.raises(IndexError, match=r"\[embedding\] indices from .* are not in 0..4"):
            F.embedding([0, wrong], w)
    with pytest.raises(IndexError, match=r"\[embedding\] padding_idx 5 is out of range"):
        F.embedding([0], w, 5)
    with pytest.raises(ValueError, match=r"\[embedding\] the weight has shape \(3,\)"):
        F.embedding([0], w[0])


def test_repeated_rows_add_in_their_order_in_every_range_of_a_large_table(rng):
    classes = rng.integers(0, 5000, 700)
    g = rng.standard_normal((700, 129)).astype(np.float32)
    expected = np.zeros((5000, 129), np.float32)
    np.add.at(expected, classes, g)
    w, before = mg.zeros(5000, 129, requires_grad=True), mg.get_num_threads()
    for threads in (1, 2, 3):
        mg.set_num_threads(threads)
        y = F.embedding(mg.tensor(classes), w)
        oracle.assert_same(mg.grad(y, [w], mg.tensor(g))[0].numpy(), expected)
    mg.set_num_threads(before)


# ---- errors --------------------------------------------------------------------------------------

T3 = mg.ones(2, 3, 4)
ERRORS = [
    (
        lambda: mg.gather(T3, 0, mg.ones(1, 1, 1)),
        TypeError,
        "[gather] indices must be integers, not float32",
    ),
    (lambda: mg.gather(T3, 0, [0]), ValueError, "[gather] 1 dimensions of indices for 3 of x"),
    (lambda: mg.gather(T3, 0, [[[5]]]), IndexError, "[gather] index 5 is out of range for size 2"),
    (lambda: mg.gather(T3, 3, [[[0]]]), IndexError, "[gather] dim 3 is out of range"),
    (
        lambda: mg.gather(T3, 0, mg.zeros(1, 4, 1, dtype=mg.int64)),
        ValueError,
        "[gather] the index of shape (1, 4, 1) is larger than x, of shape (2, 3, 4), in dim 1",
    ),
    (lambda: mg.take(T3, [24]), IndexError, "[take] index 24 is out of range for size 24"),
    (lambda: mg.take_along_dim(T3, [[[9]]], 1), IndexError, "[take_along_dim] index 9 is out of"),
    (lambda: mg.take_along_dim(T3, [[[0]] * 3] * 3, 1), ValueError, "[take_along_dim] shapes"),
    (lambda: mg.index_select(T3, 1, [3]), IndexError, "[index_select] index 3 is out of range"),
    (lambda: mg.index_select(T3, 1, [[0]]), ValueError, "[index_select] the index has 2 dim"),
    (lambda: mg.masked_select(T3, mg.ones(4)), TypeError, "[masked_select] the mask must be bool"),
    (lambda: mg.masked_select(T3, [True, False]), ValueError, "[masked_select] shapes"),
    (
        lambda: mg.scatter(T3, 0, [[[0]]], mg.ones(1, 1)),
        ValueError,
        "[scatter] 2 dimensions of src",
    ),
    (
        lambda: mg.scatter(T3, 0, [[[0, 0]]], mg.ones(1, 1, 1)),
        ValueError,
        "[scatter] the index of shape",
    ),
    (lambda: mg.scatter(T3, 0, [[[2]]], 1.0), IndexError, "[scatter] index 2 is out of range for"),
    (lambda: mg.scatter(T3, 0, [[[0]]]), TypeError, "[scatter] needs src"),
    (lambda: mg.scatter(T3, 0, [[[0]]], 1.0, "mean"), ValueError, "[scatter] reduce is 'add'"),
    (lambda: mg.scatter_add(T3, 0, [[[-3]]], T3), IndexError, "[scatter_add] index -3 is out of"),
    (
        lambda: mg.scatter_reduce(T3, 0, [[[0]]], T3, "max"),
        ValueError,
        "[scatter_reduce] reduce is sum, prod, mean, amax or amin, not 'max'",
    ),
    (
        lambda: mg.scatter_reduce(T3, 0, [[[7]]], T3, "mean", include_self=False),
        IndexError,
        "[scatter_reduce]",
    ),
    (
        lambda: mg.index_add(T3, 1, [0], T3),
        ValueError,
        "[index_add] the source has shape (2, 3, 4), but 1",
    ),
    (lambda: mg.index_copy(T3, 1, [0, 1, 3], T3), IndexError, "[index_copy] index 3 is out of"),
    (lambda: mg.index_fill(T3, 1, [0], T3), ValueError, "[index_fill] the value has shape"),
    (lambda: mg.index_put(T3, [], 1.0), IndexError, "[index_put] 0 indices for 3 dimensions"),
    (
        lambda: mg.index_put(T3, [[0, 1]], mg.ones(5)),
        ValueError,
        "[index_put] values of shape (5,) do",
    ),
    (lambda: mg.index_put(T3, [[0.5]], 1.0), TypeError, "[index_put] indices must be integers"),
    (
        lambda: mg.masked_scatter(T3, T3 > 0, mg.ones(5)),
        ValueError,
        "[masked_scatter] the source has 5",
    ),
    (lambda: mg.select_scatter(T3, T3[0], 0, 2), IndexError, "[select_scatter] index 2 is out of"),
    (
        lambda: mg.select_scatter(T3, T3, 0, 0),
        ValueError,
        "[select_scatter] src has shape (2, 3, 4)",
    ),
    (lambda: mg.slice_scatter(T3, T3, 0, 1), ValueError, "[slice_scatter] src has shape (2, 3, 4)"),
    (
        lambda: mg.slice_scatter(T3, T3, step=0),
        ValueError,
        "[slice_scatter] step is 0",
    ),
    (lambda: mg.diagonal_scatter(T3, T3), ValueError, "[diagonal_scatter] src has shape"),
    (lambda: mg.diagonal_scatter(T3, T3, 0, 1, 1), ValueError, "[diagonal_scatter] dim1 and dim2"),
]


@pytest.mark.parametrize(("action", "error", "text"), ERRORS, ids=[e[2][:40] for e in ERRORS])
def test_errors(action, error, text):
    with pytest.raises(error) as caught:
        action()
    assert str(caught.value).startswith(text)
    assert caught.value.__cause__ is None


# ---- places in what is flattened -----------------------------------------------------------------


def test_unravel_index_is_numpys():
    for shape in ((2, 3), (4,), (2, 1, 5), 6):
        places = np.arange(np.prod(shape))[::-1].reshape(2, -1)
        ours = mg.unravel_index(mg.tensor(places), shape)
        for got, want in zip(ours, np.unravel_index(places, shape), strict=True):
            oracle.assert_same(got.numpy(), want)
    assert mg.unravel_index(mg.tensor(0), ()) == ()
    assert mg.unravel_index(mg.zeros(0, dtype=mg.int64), (2, 2))[1].shape == (0,)


@pytest.mark.parametrize("index", [-1, 6])
def test_unravel_index_outside_of_the_shape(index):
    with pytest.raises(ValueError, match=rf"\[unravel_index\] {index} is not a position in"):
        mg.unravel_index(mg.tensor([0, index]), (2, 3))


@pytest.mark.parametrize("accumulate", [False, True])
def test_put_is_the_inverse_of_take(accumulate):
    for dtype in (mg.float32, mg.float64, mg.int64):
        x, index = mg.arange(6, dtype=dtype).reshape(2, 3), mg.tensor([[0, -1], [4, 0]])
        source = mg.tensor([10, 20, 30, 40], dtype=dtype)
        want = x.numpy().copy()
        if accumulate:
            np.add.at(want.reshape(-1), index.numpy(), source.numpy().reshape(2, 2))
        else:
            np.put(want, index.numpy(), source.numpy())
        oracle.assert_same(x.put(index, source, accumulate).numpy(), want)
        x.put_(index, source.reshape(2, 2), accumulate=accumulate)
        oracle.assert_same(x.numpy(), want)


def test_errors_of_put():
    with pytest.raises(ValueError, match=r"\[put\] the source has 1 elements for 2 places"):
        mg.put(mg.zeros(3), mg.tensor([0, 1]), mg.ones(1))
    with pytest.raises(IndexError, match="3"):
        mg.put(mg.zeros(3), mg.tensor([3]), mg.ones(1))
    with pytest.raises(TypeError, match="put"):
        mg.put(mg.zeros(3, dtype=mg.int64), mg.tensor([0]), mg.ones(1))
