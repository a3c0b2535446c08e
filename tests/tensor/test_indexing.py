"""``x[index]`` and ``x[index] = value`` against NumPy in every form."""

from __future__ import annotations

import numpy as np
import oracle
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import minigrad as mg


@st.composite
def arrays_and_indices(draw):
    """An array and an index of all that NumPy takes: ints, 0-d arrays, slices, None, ..., booleans,
    masks of any rank, integer arrays and lists that broadcast together; anywhere, mixed.
    """
    shape = draw(hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4))
    ndim = len(shape)
    items, axis, ellipsis = [], 0, False
    block = draw(hnp.array_shapes(min_dims=0, max_dims=2, min_side=0, max_side=3))
    while len(items) < 8:
        # After an ellipsis the items use up exactly the axes that it left.
        kinds = ["none", "boolean"] + ["stop"] * (2 if not ellipsis or axis == ndim else 0)
        if not ellipsis:
            kinds.append("ellipsis")
        if axis < ndim:
            kinds += ["slice"] * 4 + ["mask", "array", "array", "list", "integer", "number"]
        kind = draw(st.sampled_from(kinds))
        if kind == "stop":
            break
        if kind == "none":
            items.append(None)
        elif kind == "boolean":
            items.append(draw(st.sampled_from([True, False, np.True_, np.array(False)])))
        elif kind == "ellipsis":
            items.append(Ellipsis)
            ellipsis = True
            axis += draw(st.integers(0, ndim - axis))
        elif kind == "slice":
            items.append(draw(st.slices(shape[axis])))
            axis += 1
        elif kind == "mask":
            dims = draw(st.integers(1, ndim - axis))
            items.append(draw(hnp.arrays(bool, shape[axis : axis + dims])))
            axis += dims
        else:
            n = shape[axis]
            sides = draw(hnp.broadcastable_shapes(block, max_dims=len(block), max_side=3))
            sides = () if kind in ("integer", "number") else sides
            assume(n > 0)
            array = draw(hnp.arrays(np.int64, sides, elements=st.integers(-n, n - 1)))
            as_list = kind == "integer" or (kind == "list" and 0 not in sides)
            items.append(array.tolist() if as_list else array)
            axis += 1
    assume(not ellipsis or axis == ndim)
    index = tuple(items)
    if len(items) == 1 and draw(st.booleans()):
        index = items[0]
    return shape, index


def as_ours(index):
    """The same index with tensors in place of half of the arrays."""
    if isinstance(index, tuple):
        return tuple(
            mg.tensor(i) if isinstance(i, np.ndarray) and n % 2 else i for n, i in enumerate(index)
        )
    return mg.tensor(index) if isinstance(index, np.ndarray) else index


@settings(max_examples=300)
@given(arrays_and_indices())
def test_any_index(drawn):
    shape, index = drawn
    a = np.arange(np.prod(shape, dtype=int), dtype=np.float64).reshape(shape)
    try:
        want = np.asarray(a[index])
    except IndexError:
        with pytest.raises(IndexError):
            mg.tensor(a)[as_ours(index)]
        return
    x = mg.tensor(a, requires_grad=True)
    y = x[as_ours(index)]
    oracle.assert_same(y.detach().numpy(), want)
    g = np.random.default_rng(0).integers(1, 9, want.shape).astype(np.float64)
    for graph in (False, True):
        (got,) = mg.grad(y, x, mg.tensor(g), True, graph)
        expected = np.zeros(shape)
        np.add.at(expected, index, g)
        oracle.assert_same(got.detach().numpy(), expected)


@settings(max_examples=300)
@given(arrays_and_indices(), st.data())
def test_any_assignment(drawn, data):
    shape, index = drawn
    a = np.negative(
        np.arange(np.prod(shape, dtype=int), dtype=np.float64).reshape(shape), out=np.empty(shape)
    )
    try:
        target = np.asarray(a[index]).shape
    except IndexError:
        return
    value_shape = data.draw(
        hnp.broadcastable_shapes(target, max_dims=len(target), max_side=4, min_side=0)
    )
    try:
        fits = np.broadcast_shapes(value_shape, target) == target
    except ValueError:
        fits = False
    value = np.arange(1.0, 1 + np.prod(value_shape, dtype=int)).reshape(value_shape)
    x = mg.tensor(a)
    if not fits:
        with pytest.raises(ValueError, match=r"\[index assignment\] a value of shape"):
            x[as_ours(index)] = mg.tensor(value)
        oracle.assert_same(x.numpy(), a)
        return
    x[as_ours(index)] = mg.tensor(value)
    want = a.copy()
    want[index] = value
    oracle.assert_same(x.numpy(), want)


A = np.arange(120.0).reshape(2, 3, 4, 5)
FORMS = [
    (slice(None), [0, 1], ..., [0, 1], 1),
    (slice(None), [0, 1], [0, 1], ...),
    ([0, 1], ..., True),
    (1, slice(None), [0, 1]),
    ([0, 1], slice(None), [0, 1]),
    (slice(None), [0, 1], [1, 2]),
    (slice(None), [[0], [1]], [1, 2]),
    (0, [1, 2], slice(None), [3, 4]),
    (slice(None), 1, [2, 3]),
    (slice(None), [1, 2], 3),
    (None, [0, 1], None, [1, 2]),
    (..., [0, 4, 4]),
    ([True, False], ..., 0),
    (slice(None), np.array([[True] * 4, [False] * 4, [True, False] * 2])),
    (True,),
    (False,),
    (None, True, ..., 1),
    ([],),
    (slice(None), [], 1),
    (np.int64(1), np.array(2)),
    (slice(2, 0, -1), slice(None, None, -2), ..., -1),
    (slice(5, 2), slice(100, None)),
    (),
    (...,),
    ((0, 1), (1, 2)),
    (range(2),),
]


@pytest.mark.parametrize("index", FORMS, ids=str)
def test_forms(index, rng):
    got = mg.tensor(A)[index]
    oracle.assert_same(got.numpy(), np.asarray(A[index]))
    x = mg.tensor(A)
    x[index] = 7
    want = A.copy()
    want[index] = 7
    oracle.assert_same(x.numpy(), want)


@pytest.mark.parametrize("layout", oracle.LAYOUTS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.bool_])
def test_layouts_and_dtypes(layout, dtype, rng):
    a = rng.integers(0, 2 if dtype is np.bool_ else 100, (4, 5, 6)).astype(dtype)
    t = oracle.tensor_in_layout(a, layout)
    for index in (
        [1, 3, 1],
        (slice(None), [4, 0]),
        ([1, 2], slice(None), [5, 0]),
        (slice(None, None, -1), 2),
        a > 50,
    ):
        oracle.assert_same(t[index].numpy(), a[index])


def test_repeated_indices_accumulate(rng):
    x = mg.tensor([1.0, 2.0, 3.0], requires_grad=True)
    (g,) = mg.grad(x[[0, 0, 1]].sum(), x)
    assert g.tolist() == [2, 1, 0]
    index = rng.integers(-5, 5, 40)
    oracle.check_gradients(lambda t: (t * t)[index], [rng.normal(size=(5, 2))], rng)
    oracle.check_gradients(lambda t: (t * t)[:, index, ::-1], [rng.normal(size=(2, 5, 2))], rng)


def test_of_repeated_positions_the_last_one_wins():
    x = mg.tensor([1.0, 1.0, 0.0])
    x[[0, 0, 1]] = mg.tensor([1.0, 2.0, 3.0])
    assert x.tolist() == [2, 3, 0]


def test_basic_indices_are_views_and_arrays_copy():
    x = mg.tensor(A)
    for index in (0, slice(1, None), (..., 0), (None, 1), (slice(None, None, -1),), ...):
        assert np.shares_memory(x[index].numpy(), x.numpy())
    for index in ([0], np.array([True, False])):
        assert not np.shares_memory(x[index].numpy(), x.numpy())


def test_an_index_that_changes_later_does_not_change_the_gradient():
    index = mg.tensor([0, 1, 1])
    x = mg.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = x[index]
    index[...] = 2
    assert mg.grad(y.sum(), x)[0].tolist() == [1, 2, 0]


def test_assignment_casts_and_broadcasts():
    x = mg.zeros(2, 3, dtype=mg.int64)
    x[0] = 2.9
    x[1, :2] = True
    assert x.tolist() == [[2, 2, 2], [1, 1, 0]]
    y = mg.zeros(2, 3)
    y[:, 1] = np.array([5, 6])
    y[0] = mg.ones(1, 1, 3)
    assert y.tolist() == [[1, 1, 1], [0, 6, 0]]


def test_assignment_from_itself():
    x = mg.arange(6)
    x[1:] = x[:-1]
    assert x.tolist() == [0, 0, 1, 2, 3, 4]
    x[...] = x.flip(0)
    assert x.tolist() == [4, 3, 2, 1, 0, 0]
    x[[0, 1, 2]] = x[3:]
    assert x.tolist() == [1, 0, 0, 1, 0, 0]
    y = mg.arange(6)
    y[[5, 4, 3, 2, 1, 0]] = y
    assert y.tolist() == [5, 4, 3, 2, 1, 0]


def test_assignment_needs_no_grad():
    x = mg.zeros(3, requires_grad=True)
    with pytest.raises(
        RuntimeError, match=r"cannot write in place into a tensor that requires grad.*no_grad"
    ):
        x[0] = 1
    with mg.no_grad():
        x[0] = 1
    assert x.detach().tolist() == [1, 0, 0]
    assert x.requires_grad


ERRORS = [
    (5, r"index 5 is out of range for dim 0 of size 2"),
    (-3, r"index -3 is out of range for dim 0 of size 2"),
    ((0, [0, 3]), r"index 3 is out of range for size 3"),
    ((0, [-4]), r"index -4 is out of range for size 3"),
    ((0, 0, 0, 0, 0), r"5 indices for 4 dimensions"),
    ((..., 0, ...), r"only one ellipsis"),
    (1.0, r"indices must be integers, booleans, slices, None or \.\.\.: got float"),
    ([0.5], r"got floats"),
    ("a", r"indices must be"),
    (np.array([True, False, True]), r"mask has size 3 where dim 0 has size 2"),
    (([0, 1], [0, 1, 2]), r"index arrays of shapes \(2,\), \(3,\) do not broadcast"),
]


@pytest.mark.parametrize(("index", "message"), ERRORS, ids=str)
def test_errors(index, message):
    x = mg.tensor(A)
    with pytest.raises(IndexError, match=r"\[index\] .*" + message):
        x[index]
    with pytest.raises(IndexError, match=message):
        x[index] = 0
    oracle.assert_same(x.numpy(), A)


def test_a_failed_assignment_writes_nothing():
    x = mg.zeros(3)
    with pytest.raises(IndexError, match="out of range"):
        x[[0, 1, 7]] = 5
    assert x.tolist() == [0, 0, 0]


def test_slice_errors():
    x = mg.ones(3)
    with pytest.raises(ValueError, match=r"\[index\] the step of a slice must not be 0"):
        x[::0]
    with pytest.raises(TypeError, match=r"\[index\] the bounds of a slice are integers"):
        x["a":]
    with pytest.raises(IndexError, match="0 dimensions"):
        mg.tensor(1.0)[0]


def test_what_a_bound_raises_is_raised_at_once():
    asked = []

    class Bound:
        def __index__(self):
            asked.append(1)
            raise KeyError("no bound")

    x = mg.ones(3, 4)
    for index in (
        slice(Bound(), None),
        (..., slice(None, Bound())),
        (0, slice(None, None, Bound())),
    ):
        for act in (x.__getitem__, lambda i: x.__setitem__(i, 2.0)):
            asked.clear()
            with pytest.raises(KeyError, match="no bound"):
                act(index)
            assert len(asked) == 1


def test_huge_slices():
    a = np.arange(5)
    for item in (
        slice(None, 2**70),
        slice(-(2**70), None),
        slice(None, None, 2**70),
        slice(None, None, -(2**70)),
    ):
        oracle.assert_same(mg.tensor(a)[item].numpy(), a[item])
    with pytest.raises(IndexError, match="out of range for dim 0 of size 5"):
        mg.tensor(a)[2**70]


def test_tensors_as_integers():
    x = mg.arange(5)
    assert x[mg.tensor(2)].item() == 2
    assert x[mg.tensor(1) : mg.tensor(4)].tolist() == [1, 2, 3]
    assert [10, 11, 12][mg.tensor(1)] == 11
    with pytest.raises(TypeError, match="cannot be an index"):
        [1, 2][mg.tensor(1.0)]


def test_empty_results_and_sources():
    x = mg.zeros(0, 3)
    assert x[[]].shape == (0, 3)
    assert x[:, [0, 1]].shape == (0, 2)
    assert x[mg.zeros(0, dtype=bool)].shape == (0, 3)
    with pytest.raises(IndexError, match="out of range"):
        x[[0]]
    with pytest.raises(IndexError, match="out of range"):
        x[0]


def test_an_index_out_of_range_is_an_error_also_where_nothing_is_picked():
    x = mg.zeros(3, 3)
    for index in (([5], []), ([5], [[]]), (5, False)):
        with pytest.raises(IndexError, match="out of range"):
            x[index]


@pytest.mark.parametrize("features", [2, 8, 15, 16, 17, 32, 1030])
@pytest.mark.parametrize("elements", [10_000, 200_000])
def test_rows_of_any_length_from_near_and_far(elements, features, rng):
    """Rows of a table that a core's own cache holds are copied as they are, others asked for."""
    table = rng.standard_normal((elements // features, features)).astype(np.float32)
    rows = rng.integers(-len(table), len(table), (3, 41))
    np.testing.assert_array_equal(mg.from_numpy(table)[mg.from_numpy(rows)].numpy(), table[rows])


def test_slices_beyond_any_size_and_indices_of_many_items():
    array = np.arange(12.0).reshape(3, 4)
    x = mg.from_numpy(array)
    far = 2**62
    for index in (
        slice(far, -far, -far),
        slice(None, None, 2**70),
        (..., slice(2**70), None, 1),
        (None, -1, None, slice(3, None, -2)),
        (None,) * 14,
    ):
        np.testing.assert_array_equal(x[index].numpy(), array[index])
    for index in (2**70, -4, (..., far), (0, 0, None, 0)):
        with pytest.raises(IndexError):
            x[index]
    for index in ((None,) * 15, (None,) * 63, (None,) * 70):
        with pytest.raises(ValueError, match="dimensions"):
            x[index]
    with pytest.raises(ValueError, match="must not be 0"):
        x[0, ::0]
    with pytest.raises(TypeError, match="bounds of a slice are integers"):
        x[[0], 1.0:]


def test_a_view_dies_before_its_base_and_after():
    base = mg.zeros(2, 2)
    view = base[0]
    del base
    view[0] = mg.tensor(1.0, requires_grad=True)
    assert view.requires_grad
    assert view.tolist() == [1, 0]
    base = mg.zeros(40)
    for i in range(40):
        base[i]
    assert len(base._views.refs) <= 16


def test_a_bound_that_gives_the_tensor_other_memory():
    x = mg.ones(2, 500_000)

    class Bound:
        def __index__(self):
            x.data = mg.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
            return 1

    with pytest.raises(IndexError):
        x[:, 400_000 :: Bound()]
    x.data = mg.ones(2, 500_000)
    with pytest.raises(IndexError):
        x[Bound() :, 400_000:]
    assert x[Bound() :, :].tolist() == [[4.0, 5.0, 6.0]]


def test_one_index_array_may_be_given_for_several_axes(rng):
    x = rng.standard_normal((5, 6, 5, 3))
    at = mg.tensor([[4, -5, 0], [1, 2, 3]])
    t = mg.tensor(x, requires_grad=True)
    i = at.numpy()
    assert t[at, at].tolist() == x[i, i].tolist()
    assert t[at, at, at].tolist() == x[i, i, i].tolist()
    assert t[:, at, at].tolist() == x[:, i, i].tolist()
    y = t[at, :, at]
    assert y.tolist() == x[i, :, i].tolist()
    y.sum().backward()
    expected = np.zeros_like(x)
    np.add.at(expected, (i, slice(None), i), 1.0)
    assert t.grad.tolist() == expected.tolist()


@pytest.mark.parametrize("shape", [(7,), (3, 40), (2, 3, 33)])
def test_every_position_outside_is_found(shape, rng):
    x = mg.tensor(rng.standard_normal((5, *shape)))
    inside = rng.integers(-5, 5, shape)
    for wrong in (5, -6, 2**62, -(2**63)):
        at = inside.copy()
        at.flat[-2] = wrong
        for index in (mg.tensor(at), mg.tensor(at.repeat(2, -1))[..., ::2]):
            with pytest.raises(IndexError, match=str(wrong)):
                mg.gather(x, 0, index[None])


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.bool_])
def test_short_rows_are_picked_whole(dtype, rng):
    for n in (*range(1, 20), 31, 32, 33, 63, 64, 65, 127, 128, 129):
        x = rng.integers(0, 2 if dtype is np.bool_ else 99, (6, n)).astype(dtype)
        at = rng.integers(-6, 6, 11)
        assert mg.tensor(x)[mg.tensor(at)].tolist() == x[at].tolist()
