"""Joining, splitting and padding: values, gradients, limits and errors."""

from __future__ import annotations

import itertools

import numpy as np
import oracle
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import minigrad as mg
import minigrad.nn.functional as F

X = np.arange(24.0).reshape(2, 3, 4)


def shapes(tensors):
    return [t.shape for t in tensors]


@pytest.mark.parametrize("dtype", [np.bool_, np.int64, np.float32, np.float64])
def test_each_element_any_number_of_times(dtype, rng):
    x = rng.integers(0, 2 if dtype is np.bool_ else 99, (3, 10)).astype(dtype)
    for times in (*range(20), 31, 32, 33, 63, 64, 65, 127, 128, 129, 300):
        for a, t in ((x, mg.tensor(x)), (x[:, ::3], mg.tensor(x)[:, ::3]), (x.T, mg.tensor(x).T)):
            got = mg.repeat_interleave(t, times, 1).numpy()
            oracle.assert_same(got, np.repeat(a, times, 1))


@pytest.mark.parametrize("dtype", [np.bool_, np.float32, np.float64])
def test_long_runs_are_moved_by_any_distance(dtype, rng):
    """A little ahead of their source, but for whole pages, too."""
    a, b = (rng.integers(0, 2, n).astype(dtype) for n in (70, 12000))
    for first in (0, 1, 2, 7, 15, 16, 31, 63, 64, 65):
        for n in (300, 520, 1100, 4097, 12000):
            joined = mg.cat([mg.tensor(a)[:first], mg.tensor(b)[:n]])
            oracle.assert_same(joined.numpy(), np.concatenate([a[:first], b[:n]]))


# ---- several in, several out ---------------------------------------------------------------------


@pytest.mark.parametrize("indexing", ["ij", "xy"])
@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_meshgrid(indexing, count, rng):
    vectors = [rng.normal(size=n) for n in (3, 1, 4)[:count]]
    tensors = [mg.tensor(v) for v in vectors]
    want = np.meshgrid(*vectors, indexing=indexing)
    for grids in (
        mg.meshgrid(*tensors, indexing=indexing),
        mg.meshgrid(tensors, indexing=indexing),
    ):
        for got, expected in zip(grids, want, strict=True):
            oracle.assert_same(got.numpy(), expected)
    if count == 2:
        oracle.check_gradients(
            lambda a, b: mg.meshgrid(a * a, b, indexing=indexing)[0] * b.sum(), vectors, rng
        )


def test_broadcast_tensors_and_expand_as(rng):
    a, b = rng.normal(size=(3, 1)), rng.normal(size=(2, 1, 4))
    for got, want in zip(
        mg.broadcast_tensors(mg.tensor(a), mg.tensor(b)), np.broadcast_arrays(a, b), strict=True
    ):
        oracle.assert_same(got.numpy(), want)
        assert 0 in got.strides
    oracle.check_gradients(lambda x, y: mg.broadcast_tensors(x * x, y)[0] * y, [a, b], rng)
    oracle.assert_same(
        mg.tensor(a).expand_as(mg.zeros(2, 3, 4)).numpy(), np.broadcast_to(a, (2, 3, 4))
    )
    assert shapes(mg.broadcast_tensors(mg.zeros(0, 1), mg.zeros(3))) == [(0, 3)] * 2
    assert mg.broadcast_tensors() == ()
    with pytest.raises(ValueError, match=r"\[broadcast_tensors\] shapes \(2,\), \(3,\) do not"):
        mg.broadcast_tensors(mg.ones(2), mg.ones(3))


def test_cartesian_prod():
    got = mg.cartesian_prod(mg.tensor([1, 2]), mg.tensor([3, 4, 5]))
    assert got.tolist() == [[1, 3], [1, 4], [1, 5], [2, 3], [2, 4], [2, 5]]
    assert mg.cartesian_prod(mg.tensor([1, 2])).tolist() == [1, 2]
    assert mg.cartesian_prod(mg.zeros(2), mg.zeros(0), mg.zeros(3)).shape == (0, 3)
    assert mg.cartesian_prod(mg.tensor(5), mg.tensor([1.5])).tolist() == [[5, 1.5]]
    with pytest.raises(ValueError, match=r"\[cartesian_prod\] expected vectors"):
        mg.cartesian_prod(mg.zeros(2, 2), mg.zeros(2))


def test_gradients_of_cartesian_prod(rng):
    a, b, c = (rng.normal(size=n) for n in (2, 3, 1))
    oracle.check_gradients(lambda x, y, z: mg.cartesian_prod(x, y, z), [a, b, c], rng)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (mg.atleast_1d, np.atleast_1d),
        (mg.atleast_2d, np.atleast_2d),
        (mg.atleast_3d, np.atleast_3d),
    ],
)
def test_at_least_so_many_dimensions(ours, theirs):
    arrays = [np.float64(2), X[0, 0], X[0], X, X[None]]
    for a in arrays:
        oracle.assert_same(ours(mg.tensor(a)).numpy(), theirs(a))
    for given_as in (ours(*map(mg.tensor, arrays)), ours([mg.tensor(a) for a in arrays])):
        assert isinstance(given_as, tuple)
        assert shapes(given_as) == [theirs(a).shape for a in arrays]


@pytest.mark.parametrize("n", [0, 1, 5, 6, 7])
@pytest.mark.parametrize("count", [1, 2, 3, 4, 9])
def test_chunk_and_tensor_split(n, count):
    t = mg.arange(2 * n).reshape(n, 2)
    size = -(-n // count)
    expected = [t[k : k + size] for k in range(0, n, size)] if n else [t] * count
    assert [p.tolist() for p in t.chunk(count)] == [p.tolist() for p in expected]
    pieces = np.array_split(t.numpy(), count)
    assert [p.tolist() for p in t.tensor_split(count)] == [p.tolist() for p in pieces]


@settings(max_examples=60)
@given(st.lists(st.integers(-9, 9), max_size=4), st.integers(0, 6))
def test_tensor_split_at_indices(indices, n):
    pieces = mg.arange(n).tensor_split(indices)
    wanted = np.array_split(np.arange(n), indices)
    assert [p.tolist() for p in pieces] == [p.tolist() for p in wanted]
    assert [p.tolist() for p in mg.arange(n).tensor_split(mg.tensor(indices, mg.int64))] == [
        p.tolist() for p in wanted
    ]


def test_pieces_put_together_again(rng):
    x = rng.normal(size=(5, 7))
    for cut in (
        lambda t: t.split(3, 1),
        lambda t: t.split([0, 5, 2], axis=1),
        lambda t: t.chunk(3, 1),
        lambda t: t.tensor_split((2, 3), 1),
        lambda t: [p.unsqueeze(1) for p in t.unbind(1)],
    ):
        oracle.assert_same(mg.cat(list(cut(mg.tensor(x))), 1).numpy(), x)
        oracle.check_gradients(
            lambda t, cut=cut: mg.cat([p * p.sum() for p in cut(t)], 1), [x[:2]], rng
        )


def test_cat_takes_empty_vectors_of_whatever_shape():
    x = mg.ones(2, 3, requires_grad=True)
    y = mg.cat([mg.zeros(0), x, mg.zeros(0)])
    assert y.shape == (2, 3)
    assert mg.grad(y.sum(), x)[0].tolist() == [[1] * 3] * 2
    assert mg.cat([mg.zeros(0), mg.zeros(0)]).shape == (0,)
    assert mg.cat([mg.zeros(0), mg.ones(2)]).tolist() == [1, 1]


def test_block_diag_of_odd_blocks():
    assert mg.block_diag().shape == (1, 0)
    assert mg.block_diag(mg.zeros(0)).shape == (1, 0)
    got = mg.block_diag(mg.zeros(2, 0), mg.tensor([[True]]), mg.tensor([2.5]))
    assert got.dtype is mg.float32
    assert got.tolist() == [[0, 0], [0, 0], [1, 0], [0, 2.5]]


# ---- windows -------------------------------------------------------------------------------------


@settings(max_examples=80)
@given(data=st.data())
def test_unfold(data):
    """Overlapping windows of any size and step along any dimension, and sums of their gradients."""
    shape = data.draw(hnp.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=6))
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    size, step = data.draw(st.integers(0, shape[axis])), data.draw(st.integers(1, 7))
    values = np.arange(np.prod(shape, dtype=int), dtype=np.float64).reshape(shape)
    starts = range(0, shape[axis] - size + 1, step)
    at = np.array([range(k, k + size) for k in starts], int).reshape(len(starts), size)
    want = np.moveaxis(np.moveaxis(values, axis, -1)[..., at], -2, axis % len(shape))
    x = mg.tensor(values, requires_grad=True)
    y = x.unfold(axis, size, step)
    oracle.assert_same(y.detach().numpy(), np.ascontiguousarray(want))
    g = np.random.default_rng(0).integers(1, 9, want.shape).astype(np.float64)
    summed = np.zeros(shape)
    np.add.at(summed.reshape(-1), want.astype(int).reshape(-1), g.reshape(-1))
    for graph in (False, True):
        oracle.assert_same(mg.grad(y, x, mg.tensor(g), True, graph)[0].detach().numpy(), summed)


def test_writing_through_a_view_is_followed_by_the_tape():
    """A diagonal, and windows that do not overlap."""
    for view, want in (
        (lambda t: t.diagonal(), [[6, 2, 2], [2, 6, 2], [2, 2, 6]]),
        (lambda t: t.unfold(1, 3, 3)[1:], [[2] * 3, [6] * 3, [6] * 3]),
        (lambda t: t.movedim(0, 1).select(0, 2), [[2, 2, 6]] * 3),
        (lambda t: t.tensor_split(2, 1)[0], [[6, 6, 2]] * 3),
    ):
        x = mg.ones(3, 3, requires_grad=True)
        y = x * 2
        part = view(y)
        part *= 3
        assert mg.grad(y.sum(), x)[0].tolist() == want


def test_unfold_is_a_view(rng):
    x = mg.arange(6.0)
    windows = x.unfold(0, 3, 1)
    assert windows.strides == (1, 1)
    assert np.shares_memory(windows.numpy(), x.numpy())
    with pytest.raises(ValueError, match="several elements share one place in memory"):
        windows.fill_(0)
    assert mg.tensor(3.0).unfold(0, 1, 1).tolist() == [3]
    oracle.check_gradients(lambda t: (t * t).unfold(1, 2, 1), [rng.normal(size=(2, 4))], rng)


# ---- triangles and diagonals ---------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(3, 3), (2, 5), (4, 2), (0, 3), (3, 0)], ids=str)
@pytest.mark.parametrize("offset", [-5, -2, -1, 0, 1, 2, 5])
def test_triangles_and_diagonals(shape, offset, rng):
    a = rng.normal(size=(2, *shape))
    t = mg.tensor(a)
    oracle.assert_same(t.tril(offset).numpy(), np.tril(a, offset))
    oracle.assert_same(t.triu(offset).numpy(), np.triu(a, offset))
    oracle.assert_same(t.diagonal(offset, 1, 2).numpy(), np.diagonal(a, offset, 1, 2))
    oracle.assert_same(t[0].diag(offset).numpy(), np.diag(a[0], offset))
    n, m = shape
    oracle.assert_same(
        mg.tril_indices(n, m, offset).numpy(), np.array(np.tril_indices(n, offset, m))
    )
    oracle.assert_same(
        mg.triu_indices(n, m, offset).numpy(), np.array(np.triu_indices(n, offset, m))
    )
    x = mg.tensor(a, requires_grad=True)
    (g,) = mg.grad(x.diagonal(offset, -2, -1).sum(), x)
    oracle.assert_same(g.numpy(), np.broadcast_to(np.eye(n, m, offset), a.shape).copy())
    oracle.assert_same(
        mg.tensor(a[0, :1].ravel()).diag(offset).numpy(), np.diag(a[0, :1].ravel(), offset)
    )


def test_a_diagonal_is_a_view():
    x = mg.tensor(X)
    x.diagonal(1, 1, 2).fill_(-1)
    want = X.copy()
    want[:, [0, 1, 2], [1, 2, 3]] = -1
    oracle.assert_same(x.numpy(), want)
    assert x.diagonal(2**62, 1, 2).shape == (2, 0)
    assert x.diagonal(-(2**62), 1, 2).shape == (2, 0)


def test_dropped_triangle_gets_no_gradient():
    """NaN and infinities there too: what is 0 does not depend on them."""
    x = mg.tensor([[1.0, np.inf], [2.0, np.nan]], requires_grad=True)
    y = (x * x).tril(-1)
    assert y.tolist() == [[0, 0], [4, 0]]
    assert mg.grad(y.sum(), x)[0].tolist() == [[0, 0], [4, 0]]


# ---- padding -------------------------------------------------------------------------------------


MODES = {"reflect": "reflect", "replicate": "edge", "circular": "wrap", "constant": "constant"}


@pytest.mark.parametrize("mode", MODES)
@settings(max_examples=40)
@given(data=st.data())
def test_pad(mode, data):
    """Any amounts that a mode allows, of any number of dimensions; negative ones cut off first."""
    shape = data.draw(hnp.array_shapes(min_dims=1, max_dims=4, min_side=1, max_side=4))
    a = np.arange(1.0, 1 + np.prod(shape)).reshape(shape)
    amounts, pairs, cut = [], [], []
    for n in reversed(shape[-data.draw(st.integers(0, len(shape))) :]):
        left = data.draw(st.integers(-(n // 2), 3))
        right = data.draw(st.integers(-(n // 2), 3)) if n + min(left, 0) > n // 2 else 0
        kept = n + min(left, 0) + min(right, 0)
        most = {"reflect": kept - 1, "circular": kept}.get(mode, 3 if kept else 0)
        left, right = min(left, max(most, 0)), min(right, max(most, 0))
        amounts += [left, right]
        pairs.insert(0, (max(left, 0), max(right, 0)))
        cut.insert(0, slice(max(-left, 0), n - max(-right, 0)))
    start = len(shape) - len(pairs)
    pairs, cut = [(0, 0)] * start + pairs, [slice(None)] * start + cut
    want = np.pad(a[tuple(cut)], pairs, MODES[mode])
    x = mg.tensor(a, requires_grad=True)
    y = F.pad(x, amounts, mode)
    oracle.assert_same(y.detach().numpy(), want)
    g = np.random.default_rng(0).integers(1, 9, want.shape).astype(np.float64)
    places = np.zeros(a.size + 1)
    np.add.at(places, want.astype(int).ravel(), g.ravel())
    (got,) = mg.grad(y, x, mg.tensor(g))
    oracle.assert_same(got.numpy(), places[1:].reshape(shape))


def test_pad_with_a_value():
    assert mg.pad(mg.tensor([1.0]), (1, 1), value=0.1).dtype is mg.float32
    assert mg.pad(mg.tensor([1.0], mg.float64), (1, 0), value=0.1).tolist() == [0.1, 1]
    assert mg.pad(mg.tensor([1]), (1, 1), value=7).tolist() == [7, 1, 7]
    assert mg.pad(mg.tensor([2**62 + 1]), (0, 1), value=-(2**62) - 1).tolist() == [
        2**62 + 1,
        -(2**62) - 1,
    ]
    assert mg.pad(mg.tensor([False]), (1, 1), value=True).tolist() == [True, False, True]
    assert mg.pad(mg.tensor([1.0]), (1, 1), value=np.nan).tolist()[1] == 1
    assert mg.pad(mg.tensor(5.0), ()).item() == 5


# ---- limits --------------------------------------------------------------------------------------


def test_eight_dimensions_and_more(rng):
    shape = (2, 1, 3, 1, 2, 1, 2, 2)
    a = rng.normal(size=shape)
    t = mg.tensor(a)
    order = tuple(rng.permutation(8))
    oracle.assert_same(
        t.permute(*order).contiguous().numpy(), np.ascontiguousarray(a.transpose(order))
    )
    oracle.assert_same(t.repeat(*[2] * 8).numpy(), np.tile(a, [2] * 8))
    oracle.assert_same(mg.pad(t, (1, 1) * 8).numpy(), np.pad(a, 1))
    oracle.assert_same(t.flip(*range(8)).numpy(), np.flip(a))
    oracle.assert_same(t.movedim((0, 7), (7, 0)).numpy(), np.moveaxis(a, (0, 7), (7, 0)))
    index = rng.integers(0, 2, shape)
    oracle.assert_same(t.gather(0, mg.tensor(index)).numpy(), np.take_along_axis(a, index, 0))
    oracle.assert_same(t.diagonal(0, 2, 7).numpy(), np.diagonal(a, 0, 2, 7))
    oracle.assert_same(t.unfold(2, 2, 1)[..., 1].numpy(), a[:, :, 1:])
    assert mg.meshgrid(*[mg.arange(2)] * 8)[7].shape == (2,) * 8
    for beyond in (
        lambda: mg.ones((1,) * 16).unsqueeze(0),
        lambda: mg.ones((1,) * 16).expand((2,) * 17),
        lambda: mg.ones((1,) * 16).unfold(0, 1, 1),
        lambda: mg.stack([mg.ones((1,) * 16)] * 2),
        lambda: mg.ones((1,) * 16).diag_embed(),
        lambda: mg.ones((2,) * 9).repeat(*[2] * 9),
    ):
        with pytest.raises(ValueError, match=r"1[678] dimensions where at most 16 are possible"):
            beyond()


@pytest.mark.parametrize(
    "dims", [(0, 2), ((0, 2),), ([0, 2],), (range(0, 3, 2),), (np.array([0, 2]),), (-3, -1)]
)
def test_flip_takes_dims_in_any_form(dims):
    x = mg.arange(24).reshape(2, 3, 4)
    assert x.flip(*dims).tolist() == np.flip(x.numpy(), (0, 2)).tolist()


# ---- errors --------------------------------------------------------------------------------------

T = mg.ones(2, 3, 4)
ERRORS = [
    (
        lambda: T.unflatten(2, (3, 2)),
        ValueError,
        "[unflatten] size 4 of dim 2 is not the product of",
    ),
    (lambda: T.unflatten(2, (-1, 3)), ValueError, "[unflatten] size 4"),
    (lambda: T.t(), ValueError, "[t] expected at most 2 dimensions, not 3"),
    (lambda: T.movedim(0, 3), IndexError, "[movedim] dim 3 is out of range"),
    (lambda: T.movedim((0, 0), (1, 2)), ValueError, "[movedim] a dim is given twice"),
    (lambda: T.movedim((0, 1), 2), ValueError, "[movedim] 2 dims to move to 1 places"),
    (lambda: T.select(1, 3), IndexError, "[select] index 3 is out of range for dim 1 of size 3"),
    (lambda: T.unfold(2, 5, 1), ValueError, "[unfold] windows of 5 elements, 1 apart, in 4"),
    (lambda: T.unfold(2, 2, 0), ValueError, "[unfold] windows of 2 elements, 0 apart"),
    (
        lambda: mg.ones(0).unflatten(0, (-1, 0)),
        ValueError,
        "[unflatten] any size could stand for -1 in (-1, 0)",
    ),
    (lambda: T.unflatten(2, (-1, -1)), ValueError, "[unflatten] only one of (-1, -1) can be -1"),
    (lambda: T.flip(1.0), TypeError, "[flip] dim must be an integer, not float"),
    (lambda: T.flip("a"), TypeError, "[flip] dim must be an integer, not str"),
    (lambda: T.flip((0, True)), TypeError, "[flip] dim must be an integer, not bool"),
    (lambda: T.flip(None), TypeError, "[flip] dim must be an integer, not NoneType"),
    (lambda: T.flip(0, 0), ValueError, "[flip] dim 0 is given twice"),
    (lambda: T.squeeze(axs=0), TypeError, "[squeeze] unexpected argument 'axs'"),
    (lambda: T[0, 0].fliplr(), ValueError, "[fliplr] expected at least 2"),
    (lambda: T[0, 0, 0].flipud(), ValueError, "[flipud] expected at least 1"),
    (lambda: T.rot90(1, (0, 0)), ValueError, "[rot90] dim 0 is given twice"),
    (lambda: T.rot90(1, (0,)), ValueError, "[rot90] dims are two"),
    (lambda: T.roll((1, 2)), ValueError, "[roll] 2 shifts without dims"),
    (lambda: T.roll((1, 2), 0), ValueError, "[roll] 2 shifts for 1 dims"),
    (lambda: T.roll(1.5, 0), TypeError, "[roll] a shift must be an integer, not float"),
    (lambda: T.repeat(2, 2), ValueError, "[repeat] 2 repeats for 3 dimensions"),
    (lambda: T.repeat(2, 2, -1), ValueError, "[repeat] (2, 2, -1): a number of repeats cannot be"),
    (lambda: T.tile(-1), ValueError, "[tile] (-1,): a number"),
    (lambda: T.repeat_interleave(-1), ValueError, "[repeat_interleave] a number of repeats cannot"),
    (
        lambda: T.repeat_interleave([1, 2], 1),
        ValueError,
        "[repeat_interleave] repeats of shape (2,)",
    ),
    (lambda: T.repeat_interleave(1.5), TypeError, "[repeat_interleave] indices must be integers"),
    (
        lambda: T.repeat_interleave(2, 0, output_size=3),
        ValueError,
        "[repeat_interleave] output_size is 3, but 4 come out",
    ),
    (lambda: T.chunk(0), ValueError, "[chunk] chunks is 0, but must be at least 1"),
    (lambda: T.split([3, -1]), ValueError, "[split] the sizes [3, -1]"),
    (lambda: T.tensor_split(0), ValueError, "[tensor_split] the number of pieces is 0"),
    (lambda: T.hsplit(2), ValueError, "[hsplit] size 3 does not split into 2 equal pieces"),
    (lambda: T[0, 0].vsplit(2), ValueError, "[vsplit] expected at least 2 dimensions"),
    (lambda: T[0].dsplit(2), ValueError, "[dsplit] expected at least 3"),
    (lambda: mg.hstack([]), ValueError, "[cat] needs at least one tensor"),
    (lambda: mg.meshgrid(T), ValueError, "[meshgrid] expected vectors"),
    (
        lambda: mg.meshgrid(T[0, 0], indexing="ji"),
        ValueError,
        "[meshgrid] indexing is 'ij' or 'xy'",
    ),
    (lambda: T.diagonal(0, 1, 1), ValueError, "[diagonal] dim1 and dim2 are both 1"),
    (lambda: T[0, 0].diagonal(), IndexError, "[diagonal] dim 1 is out of range"),
    (lambda: T.diag(), ValueError, "[diag] expected a vector or a matrix, not 3"),
    (lambda: T[0, 0, 0].diag_embed(), ValueError, "[diag_embed] expected at least 1"),
    (lambda: T[0, 0].tril(), ValueError, "[tril] expected at least 2 dimensions, not 1"),
    (
        lambda: mg.triu_indices(-1, 2),
        ValueError,
        "[triu_indices] row is -1, but",
    ),
    (lambda: mg.block_diag(T), ValueError, "[block_diag] expected matrices"),
    (lambda: mg.pad(T, (1,)), ValueError, "[pad] 1 amounts for 3 dimensions"),
    (lambda: mg.pad(T, (1,) * 8), ValueError, "[pad] 8 amounts for 3 dimensions"),
    (lambda: mg.pad(T, (-3, -3)), ValueError, "[pad] -3 and -3 leave less than nothing of size 4"),
    (
        lambda: mg.pad(T, (4, 0), "reflect"),
        ValueError,
        "[pad] 4 elements to reflect where size 4 has 3",
    ),
    (
        lambda: mg.pad(T, (0, 5), "circular"),
        ValueError,
        "[pad] 5 elements to wrap around where size 4",
    ),
    (lambda: mg.pad(T[:, :, :0], (1, 0), "replicate"), ValueError, "[pad] 1 elements to replicate"),
    (lambda: mg.pad(T, (1, 0), "mirror"), ValueError, "[pad] mode is constant, reflect"),
    (lambda: mg.pad(T, (1, 0), "reflect", 1.0), ValueError, "[pad] mode 'reflect' takes no value"),
    (
        lambda: mg.pad(mg.tensor([1]), (1, 0), value=0.5),
        TypeError,
        "[pad] the value 0.5 does not fit",
    ),
]


@pytest.mark.parametrize(("action", "error", "text"), ERRORS, ids=[e[2][:40] for e in ERRORS])
def test_errors(action, error, text):
    with pytest.raises(error) as caught:
        action()
    assert str(caught.value).startswith(text)
    assert caught.value.__cause__ is None


def test_one_copy_of_each_is_a_copy():
    x = mg.tensor([1.0, 2.0])
    y = x.repeat_interleave(1)
    y[0] = 9.0
    assert x.tolist() == [1, 2]
    assert mg.tensor(3.0).repeat_interleave(2).tolist() == [3, 3]
    assert mg.zeros(0, 3).repeat_interleave(2, 0).shape == (0, 3)
    assert mg.ones(2, 3).repeat_interleave(0, 1).shape == (2, 0)


def test_places_are_repeated_where_only_repeats_are_given():
    assert mg.repeat_interleave(mg.tensor([2, 0, 3])).tolist() == [0, 0, 2, 2, 2]


def test_lists_of_tensors_are_no_tensors():
    for function in (mg.hstack, mg.vstack, mg.dstack, mg.column_stack):
        with pytest.raises(TypeError, match="expected a list of tensors"):
            function(mg.ones(2, 2))


# ---- combinations --------------------------------------------------------------------------------


@pytest.mark.parametrize("replaced", [False, True])
def test_combinations_are_those_of_itertools(replaced):
    of = itertools.combinations_with_replacement if replaced else itertools.combinations
    for n in (0, 1, 4):
        for r in (1, 2, 3):
            got = mg.combinations(mg.arange(n) * 2, r, replaced)
            want = np.array([[2 * k for k in row] for row in of(range(n), r)], np.int64)
            oracle.assert_same(got.numpy(), want.reshape(-1, r))
    assert mg.combinations(mg.ones(3), 0).shape == (0,)


def test_errors_of_combinations():
    with pytest.raises(ValueError, match=r"\[combinations\] expected a vector"):
        mg.combinations(mg.ones(2, 2))
    with pytest.raises(ValueError, match=r"\[combinations\] r is -1"):
        mg.combinations(mg.ones(2), -1)


def test_narrow_copy_has_memory_of_its_own():
    x = mg.arange(5)
    part = x.narrow_copy(0, 1, 2)
    part += 10
    assert (part.tolist(), x.tolist()) == ([11, 12], [0, 1, 2, 3, 4])
