"""Writes into tensors on the tape: differentiated as they are executed, views included."""

from __future__ import annotations

import numpy as np
import oracle
import pytest

import minigrad as mg


def leaf(values):
    return mg.tensor(values, mg.float64, requires_grad=True)


def gradients(y, *leaves, graph=False):
    return [g.detach().tolist() for g in mg.grad(y, leaves, None, True, graph)]


by_graph = pytest.mark.parametrize("graph", [False, True], ids=["fused", "formula"])


# ---- assignment ----------------------------------------------------------------------------------


@by_graph
def test_what_was_overwritten_gets_no_gradient(graph):
    x, v = leaf([1.0, 2.0, 3.0]), leaf(5.0)
    y = x * 2
    y[1] = v * v
    assert y.tolist() == [2, 25, 6]
    assert gradients((y * y).sum(), x, v, graph=graph) == [[8, 0, 24], 500]


@by_graph
def test_of_repeated_positions_the_last_wins(graph):
    x, v = leaf([1.0, 2.0, 3.0, 4.0]), leaf([5.0, 6.0, 7.0])
    y = x.clone()
    y[[0, 0, -4]] = v
    assert y.tolist() == [7, 2, 3, 4]
    assert gradients((y * y).sum(), x, v, graph=graph) == [[0, 4, 6, 8], [0, 0, 14]]


@by_graph
@pytest.mark.parametrize(
    "index",
    [
        1,
        slice(None),
        ...,
        (slice(None, None, -2), 0),
        (None, 1),
        [2, 0],
        [True, False, True],
        (slice(None), [1, 1, 0]),
        ([0, 2], None, [1, 0]),
        np.array([[True, False], [False, False], [True, True]]),
        [],
    ],
    ids=str,
)
def test_every_index_form(index, graph, rng):
    """The gradient of an assignment against one made by writing numbers one by one."""
    a, weights = rng.normal(size=(3, 2)), rng.normal(size=(3, 2))
    places = np.arange(6).reshape(3, 2)
    value = rng.normal(size=places[index].shape)
    x, v = leaf(a), leaf(value)
    y = x * 1
    y[index] = v
    expected = a.copy()
    expected[index] = value
    oracle.assert_same(y.detach().numpy(), expected)
    by_x, by_v = mg.grad((y * mg.tensor(weights)).sum(), (x, v), create_graph=graph)
    want_x, want_v = weights.copy(), np.zeros(value.size)
    winners = {place: k for k, place in enumerate(places[index].ravel())}
    for place, k in winners.items():
        want_x.flat[place] = 0
        want_v[k] = weights.flat[place]
    oracle.assert_same(by_x.detach().numpy(), want_x)
    oracle.assert_same(by_v.detach().numpy(), want_v.reshape(value.shape))


def test_a_broadcast_and_cast_value():
    x, v = leaf(np.zeros((2, 3))), mg.tensor([1.0], requires_grad=True)
    y = x + 0
    y[:, 1:] = v * 3
    (y * mg.tensor([[1.0, 2, 3], [4, 5, 6]])).sum().backward()
    assert v.grad.dtype is mg.float32
    assert v.grad.tolist() == [48]
    assert x.grad.tolist() == [[1, 0, 0], [4, 0, 0]]


def test_a_plain_tensor_becomes_tracked_by_what_is_written_into_it():
    v = leaf([1.0, 2.0])
    table = mg.zeros(3, 2, dtype=mg.float64)
    for row in range(3):
        table[row] = v * row
    assert table.requires_grad
    assert gradients(table.sum(), v) == [[3, 3]]


def test_second_derivatives():
    x = leaf([2.0, 3.0])
    y = x**3
    y[1] = x[0] ** 4 * x[1]
    (g,) = mg.grad(y.sum(), x, create_graph=True)
    assert g.tolist() == [3 * 4 + 4 * 8 * 3, 16]
    assert gradients(g.sum(), x) == [[6 * 2 + 12 * 4 * 3 + 4 * 8, 4 * 8]]


def test_finite_differences_agree(rng):
    def f(x, v):
        y = x * x
        y[1:, ::2] = v.sin()
        y[[0, 0], [1, 1]] = v[0] * 2
        y[0] *= v.cos().sum()
        return y

    oracle.check_gradients(f, [rng.normal(size=(3, 4)), rng.normal(size=(2, 2))], rng)


def test_integers_take_values_without_a_history():
    n = mg.zeros(3, dtype=mg.int64)
    n[0] = leaf(2.7)
    n[[1]] = leaf([3.2])
    assert n.tolist() == [2, 3, 0]
    assert not n.requires_grad


# ---- views ---------------------------------------------------------------------------------------


def test_a_write_through_a_view_reaches_its_base():
    x = leaf([[1.0, 2.0], [3.0, 4.0]])
    y = x * 1
    y[0][1] = 0.0
    y.T[0, 1] = x[0, 0] * 10
    assert y.tolist() == [[1, 0], [10, 4]]
    assert gradients((y * y).sum(), x) == [[[2 + 200, 0], [0, 8]]]


def test_a_write_to_the_base_reaches_its_views():
    v = leaf(2.0)
    base = mg.zeros(2, 3, dtype=mg.float64)
    row, column, later = base[0], base[:, 1], base.reshape(6)[1:4]
    base[0, 1] = v * v
    for view, want in ((row, 4), (column, 4), (later, 4)):
        assert view.requires_grad
        assert gradients(view.sum(), v) == [want]


def test_a_write_to_a_view_reaches_its_siblings():
    x = leaf([1.0, 2.0, 3.0])
    y = x * 1
    left, right = y[:2], y[1:]
    left.mul_(5)
    right[0] += 1
    assert y.tolist() == [5, 11, 3]
    assert gradients(left.sum(), x) == [[5, 5, 0]]
    x = leaf([1.0, 2.0, 3.0])
    y = x * 1
    left, right = y[:2], y[1:]
    left[1] = right[1] * 7
    assert gradients(right.sum(), x) == [[0, 0, 8]]


def test_a_view_of_a_view():
    x = leaf(np.arange(24.0).reshape(2, 3, 4))
    y = x * 1
    inner = y[1].T[2:].flip(0)
    inner.zero_()
    expected = np.arange(24.0).reshape(2, 3, 4)
    expected[1, :, 2:] = 0
    assert y.tolist() == expected.tolist()
    (g,) = mg.grad(y.sum(), x)
    assert (
        g.tolist()
        == (expected * 0 + (expected != 0) + (np.arange(24).reshape(2, 3, 4) == 0)).tolist()
    )


def test_a_detached_view_has_no_history():
    x = leaf([1.0, 2.0])
    y = x * 1
    y.detach()[0] = 9.0
    assert y.tolist() == [9, 2]
    assert gradients(y.sum(), x) == [[1, 1]]


def test_dead_views_are_forgotten():
    base = mg.zeros(100, 2)
    for _ in range(100):
        for row in base:
            row.sum()
    assert len(base._views.refs) <= 32
    kept = list(base)
    base[3] = leaf(1.0)
    assert all(row.requires_grad for row in kept)


def test_a_write_costs_the_same_however_many_views_there_are():
    def nodes(count):
        """How many are made by a write among this many views, and by the use of one of them."""
        x = leaf(1.0)
        base = x.expand(count).clone()
        views = [base[i] for i in range(count)]
        begin = base.grad_fn.serial + count
        views[0] *= 2
        last = views[-1] * 3
        assert gradients(last + base.sum(), x) == [3 + count + 1]
        return last.grad_fn.serial - begin

    assert nodes(30) == nodes(300) < 10
    assert nodes(3) < 10


def test_a_write_into_expanded_memory_is_refused():
    x = leaf([1.0])
    y = (x * 1).expand(3)
    with pytest.raises(ValueError, match="several elements share one place"):
        y[0] = x[0]
    assert gradients(y.sum(), x) == [[3]]


# ---- operations in place -------------------------------------------------------------------------


def test_augmented_assignment_is_in_place_and_followed():
    x = leaf([1.0, 2.0])
    y = x * 2
    same = y
    y += x
    y *= 3
    y -= 1
    y /= 2
    y **= 2
    assert same is y
    assert same.tolist() == [16, 72.25]
    (g,) = mg.grad(y.sum(), x)
    assert g.tolist() == [36, 76.5]


def test_into_a_plain_tensor():
    x = leaf([1.0, 2.0])
    total = mg.zeros(2, dtype=mg.float64)
    same = total
    for k in range(3):
        total += x * k
    assert same is total
    assert gradients(total.sum(), x) == [[3, 3]]


@pytest.mark.parametrize(
    ("name", "args"),
    [("exp", ()), ("sigmoid", ()), ("relu", ()), ("add", (2.0,)), ("pow", (2.0,)), ("div", (4.0,))],
)
def test_methods_in_place(name, args, rng):
    a = rng.uniform(0.5, 2, 4)
    x, z = leaf(a), leaf(a)
    y = x * 1
    assert getattr(y, f"{name}_")(*args) is y
    plain = getattr(z * 1, name)(*args)
    oracle.assert_same(y.detach().numpy(), plain.detach().numpy())
    oracle.assert_same(mg.grad(y.sum(), x)[0].numpy(), mg.grad(plain.sum(), z)[0].numpy())


def test_zeros_over_everything():
    x = leaf([1.0, 2.0])
    y = x * 1
    y.zero_()
    assert y.requires_grad
    assert gradients(y.sum(), x) == [[0, 0]]


def test_a_copy_of_a_leaf():
    x, y = leaf([1.0, 2.0]), mg.zeros(2, 2)
    y.copy_(x)
    assert not y.is_leaf
    (y * 3).sum().backward()
    assert x.grad.tolist() == [6, 6]
    assert y.grad is None


def test_a_saved_value_that_is_overwritten_is_noticed():
    x = leaf([1.0, 2.0])
    y = x.exp()
    y[0] = 1.0
    with pytest.raises(RuntimeError, match=r"\[exp\] .* overwritten in place at .*test_inplace"):
        y.sum().backward()


def test_a_leaf_and_its_views_are_not_written():
    x = leaf([[1.0, 2.0]])
    for write in (
        lambda: x.add_(1),
        lambda: x.__iadd__(1),
        lambda: x.__setitem__(0, 1),
        lambda: x[0].mul_(2),
        lambda: x[0].T.__setitem__([0, 1], 2),
        lambda: x.T.copy_(x.T),
    ):
        with pytest.raises(
            RuntimeError,
            match=r"cannot write in place into a (view of a )?tensor that requires grad: do it "
            r"under no_grad\(\), or use an operation that returns a new tensor",
        ):
            write()
    assert x.tolist() == [[1, 2]]


def test_what_does_not_fit():
    y = leaf([1.0, 2.0]) * 1
    with pytest.raises(ValueError, match=r"\[add\] in place, the result of shape \(3, 2\)"):
        y += mg.ones(3, 2)
    n = mg.zeros(2, dtype=mg.int64)
    with pytest.raises(
        TypeError, match=r"\[add\] in place, a float32 result does not fit into int64"
    ):
        n += 0.5
    assert y.tolist() == [1, 2]
    assert n.tolist() == [0, 0]


def test_under_no_grad_nothing_is_recorded():
    x = leaf([1.0, 2.0])
    y = x * 1
    with mg.no_grad():
        y[0] = 5.0
        y += 1
    assert y.tolist() == [6, 3]
    assert gradients(y.sum(), x) == [[1, 1]]


# ---- at the edges --------------------------------------------------------------------------------


def test_integers_below_a_view_take_no_history():
    n = mg.zeros(3, dtype=mg.int64)
    n[:2].copy_(leaf([1.5, 2.0]))
    assert n.tolist() == [1, 2, 0]
    assert not n.requires_grad


def test_a_tracked_argument_given_by_name():
    low, y = leaf([1.5, 1.0]), mg.tensor([1.0, 2.0], mg.float64)
    y.clamp_(min=low)
    assert gradients(y.sum(), low) == [[1, 0]]
    x = leaf([1.0, 2.0])
    with pytest.raises(RuntimeError, match="requires grad: do it under"):
        x.clamp_(min=low)


def test_a_tensor_combined_with_itself():
    x = leaf([1.0, 2.0, 3.0])
    y = x * 1
    y *= y
    assert gradients(y.sum(), x) == [[2, 4, 6]]
    y = x * 1
    y[1:] = y[:-1]
    assert y.tolist() == [1, 1, 2]
    assert gradients((y * mg.tensor([1.0, 10.0, 100.0])).sum(), x) == [[11, 100, 0]]
    square = leaf([[1.0, 2.0], [3.0, 4.0]]) * 1
    square += square.T
    assert square.tolist() == [[2, 5], [5, 8]]


def test_a_view_that_was_made_a_leaf_stays_one():
    base = mg.zeros(3, dtype=mg.float64)
    view = base[:2].requires_grad_()
    base[1] = leaf(2.0)
    assert view.is_leaf
    assert view.tolist() == [0, 2]
    (view * 3).sum().backward()
    assert view.grad.tolist() == [3, 3]


def test_a_kept_gradient_is_that_of_the_last_values():
    x = leaf([1.0, 2.0])
    y = x * 1
    y.retain_grad()
    y.retain_grad()
    y *= 2
    view = y[0]
    view.retain_grad()
    y += 1
    (y * 3).sum().backward(retain_graph=True)
    assert y.grad.tolist() == [3, 3]
    assert view.grad is None
    view.backward()
    assert view.grad.item() == 1
    assert y.grad.tolist() == [4, 3]


@by_graph
def test_what_was_written_through_a_view_is_part_of_its_base(graph):
    x = leaf([1.0, 2.0, 3.0])
    y = x * 1
    view = y[1:]
    view *= 2
    assert gradients((view * 3).sum(), y, x, graph=graph) == [[0, 3, 3], [0, 6, 6]]
    y.retain_grad()
    view[0] += 1
    y.register_hook(lambda g: g * 10)
    (view * 3).sum().backward(create_graph=graph)
    assert y.grad.tolist() == [0, 30, 30]
    assert x.grad.tolist() == [0, 60, 60]


def test_an_augmented_index_is_written_once():
    y = leaf([1.0, 2.0, 3.0]) * 1
    for index in (slice(0, 2), slice(None), 1):
        y[index] *= 2
        names = []
        node = y.grad_fn
        while node is not None and node.name() == "write":
            names.append(node.name())
            node = node.parents[0]
    assert names == ["write"] * 3
    assert y.tolist() == [4, 16, 6]
    y[:2] = y.detach()[:2]  # the same numbers, but constants
    assert gradients(y.sum(), y) == [[1, 1, 1]]
    with mg.no_grad():
        version = y._version
        y[1:] += 1
        assert y._version == version + 1


def test_writing_what_is_there_is_refused_where_other_writes_are():
    frozen = np.zeros((2, 3), np.float32)
    frozen.flags.writeable = False
    refused = (
        (mg.from_numpy(frozen), "read-only"),
        (mg.zeros(3).expand(2, 3), "several elements share one place"),
    )
    for x, why in refused:
        for index in (0, slice(None), (slice(None), 1), ..., slice(0, 0)):
            if x.strides[0] == 0 and index in (0, slice(0, 0)):
                continue  # no two elements of this part are one
            with pytest.raises(ValueError, match=rf"\[copy_\] .*{why}"):
                x[index] = x[index]
            with pytest.raises(ValueError, match=why):
                x[index] += 1
    assert mg.equal(mg.from_numpy(frozen), mg.zeros(2, 3))
    x = mg.tensor([1.0, 2.0])
    x[:1] = x[:1]
    x[:1] += 1
    assert x.tolist() == [2, 2]


def test_a_tensor_may_be_its_own_operand_by_name():
    x = leaf([1.0, 2.0])
    y = x * 1
    y.mul_(other=y)
    assert gradients(y.sum(), x) == [[2, 4]]


def test_nobody_can_tell_that_a_view_lags_behind():
    y = leaf([1.0, 2.0]) * 1
    view = y[:1]
    y += 1
    assert type(view) is mg.Tensor
    many = [y[:1] for _ in range(9)]
    y += 1
    assert {repr(type(each)) for each in many} == {repr(mg.Tensor)}
    view = many[0]
    other = leaf([1.0]) * 1
    other.register_hook(lambda g: view)
    (other * 2).backward()


def test_a_view_that_lags_behind_gets_other_memory():
    x = leaf([1.0, 2.0])
    y = x * 1
    view = y[:1]
    y *= 2
    view.data = mg.tensor([7.0])
    assert view.tolist() == [7]
    assert y.tolist() == [2, 4]
    assert gradients((view * 3).sum(), x) == [[6, 0]]


@pytest.mark.parametrize("make", [lambda x: x, mg.Variable], ids=["Tensor", "Variable"])
def test_other_memory_ends_the_link_to_views(make):
    x = make(leaf([1.0, 2.0]))
    y = x * 1
    view = y[0]
    y.data = mg.zeros(2, dtype=mg.float64)
    view += 1
    assert y.tolist() == [0, 0]
    assert mg.grad(y.sum(), x, retain_graph=True)[0].tolist() == [1, 1]
    y[0] = leaf(5.0)
    assert mg.grad(view.sum(), x)[0].tolist() == [1, 0]


@pytest.mark.parametrize("flip", [lambda a: a.T, lambda a: a[::-1], lambda a: a[::-1, ::-1]])
def test_memory_that_numpy_shares_may_overlap(flip, rng):
    """Two tensors on one array are the same memory, though each has a handle of its own."""
    array = rng.normal(size=(70, 70))
    expected = flip(array).copy()
    mg.from_numpy(array)[...] = mg.from_numpy(flip(array))
    oracle.assert_same(array, expected)


def test_a_gradient_in_any_layout_goes_through_a_write_into_a_view():
    x = leaf([[1.0, 2.0], [3.0, 4.0]])
    y = x * 1
    y.view(4).mul_(mg.tensor([1.0, 2.0, 3.0, 4.0]))
    upstream = mg.tensor([[0.0, 1.0], [2.0, 3.0]], mg.float64).T
    assert mg.grad(y, x, upstream)[0].tolist() == [[0, 4], [3, 12]]


STATEMENTS = {
    "slice": lambda t, v, rng: t.__setitem__(slice(None, None, 2), v * 0.5),
    "row": lambda t, v, rng: t.__setitem__(-1, v.sin()),
    "positions": lambda t, v, rng: t.__setitem__([2, 0, 2], v.cos()),
    "column": lambda t, v, rng: t[:, 1].copy_(v[0]),
    "mask": lambda t, v, rng: t.__setitem__(t.detach() > 0.5, v[1]),
    "transposed": lambda t, v, rng: t.T[1:].mul_(v[2]),
    "flat": lambda t, v, rng: t.reshape(-1)[::5].add_(v[0]),
    "shifted": lambda t, v, rng: t.__setitem__(slice(1, None), t[:-1]),
    "exp": lambda t, v, rng: t[0].exp_(),
    "sigmoid": lambda t, v, rng: t.sigmoid_(),
    "itself": lambda t, v, rng: t.__imul__(t),
    "lerp": lambda t, v, rng: t[1].lerp_(v, t[0].clone()),
    "fill": lambda t, v, rng: t.diagonal().fill_(0.25),
    "diagonal": lambda t, v, rng: t.diagonal().sub_(v),
}


@pytest.mark.parametrize("seed", range(12))
def test_random_programs(seed, rng):
    """Any sequence of writes, and a view from the start, against finite differences."""
    choice = np.random.default_rng(seed)
    names = choice.choice(list(STATEMENTS), 5)

    def f(x, v):
        y = x * 1
        views = y[1:].T, y.reshape(-1)
        for name in names:
            STATEMENTS[name](y, v, choice)
        return mg.cat([y.sin().reshape(-1), *(view.reshape(-1).cos() for view in views)])

    oracle.check_gradients(f, [rng.uniform(0.1, 0.4, (3, 3)), rng.uniform(-0.4, 0.4, 3)], rng)


def test_views_taken_by_threads_are_all_known():
    from concurrent.futures import ThreadPoolExecutor

    base = mg.zeros(400, 2, dtype=mg.float64)
    with ThreadPoolExecutor(4) as pool:
        views = list(pool.map(lambda i: base[i % 400], range(4000)))
    base[...] = leaf(1.0)
    assert all(view.requires_grad for view in views)


def test_fill_diagonal_is_differentiated():
    x = mg.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], requires_grad=True)
    y = x * x
    assert y.fill_diagonal_(-1.0) is y
    assert y.tolist() == [[-1.0, 4.0, 9.0], [16.0, -1.0, 36.0]]
    y.sum().backward()
    assert x.grad.tolist() == [[0.0, 4.0, 6.0], [8.0, 0.0, 12.0]]
    with pytest.raises(ValueError, match="2 dimensions, this one 1"):
        mg.zeros(3).fill_diagonal_(1.0)


def test_a_leafs_data_brings_its_dtype():
    w = mg.nn.Parameter(mg.ones(2))
    w.data = mg.full((3,), 2.0, dtype=mg.float64)
    assert (w.dtype, w.shape, w.requires_grad) == (mg.float64, (3,), True)
    (w * w).sum().backward()
    assert w.grad.dtype is mg.float64
    w.data = np.ones(2)
    assert w.dtype is mg.float64
    w.data = mg.ones(2)
    w.data = 5
    assert (w.dtype, w.shape) == (mg.float32, ())
    with pytest.raises(
        TypeError, match=r"\[data\] a tensor that requires grad holds float32 or float64, not i"
    ):
        w.data = mg.tensor([1, 2])
    assert w.item() == 5.0
    y = w * 1
    y.data = np.ones(())
    assert y.dtype is mg.float32


@pytest.mark.parametrize(
    ("x", "value", "error", "message"),
    [
        (mg.zeros(2, 2), "x", TypeError, "expected a Tensor, a number or an array, not str"),
        (mg.zeros(2, 2), [1.0, 2.0, 3.0], ValueError, r"shapes \(2,\) and \(3,\) do not fit"),
        (mg.zeros(1).expand(2, 2), 1.0, ValueError, "cannot write: several elements share"),
        (mg.zeros(2), 1.0, ValueError, "a matrix has 2 dimensions, this one 1"),
    ],
)
def test_fill_diagonal_errors(x, value, error, message):
    with pytest.raises(error, match=rf"\[fill_diagonal_\] {message}"):
        x.fill_diagonal_(value)


@pytest.mark.parametrize("name", ["logaddexp", "logaddexp2", "fmod", "remainder", "pow", "silu"])
def test_a_result_is_made_again_where_its_operands_were_saved(name):
    values = [[1.5, 2.5], [0.5, 0.75]]
    function = getattr(mg, name, None) or getattr(mg.nn.functional, name)
    xs = [leaf(v) for v in values][: 1 if name == "silu" else 2]

    def slopes(write, create_graph):
        y = function(*xs)
        if write:
            y += 1.0
        g = mg.grad(y.sum(), xs, create_graph=create_graph)
        return [s.tolist() for s in g], g

    for create_graph in (False, True):
        plain, first = slopes(False, create_graph)
        again, second = slopes(True, create_graph)
        assert again == plain
    if second[0].requires_grad:
        a, b = (mg.grad((g[0] ** 2).sum(), xs) for g in (first, second))
        for u, v in zip(a, b, strict=True):
            assert u.tolist() == pytest.approx(v.tolist())


def test_an_overwritten_result_that_cannot_be_made_again_is_named():
    y = leaf([1.0, 2.0]) / leaf([3.0, 4.0])
    y += 1.0
    with pytest.raises(RuntimeError, match=r"\[div\] .* it is the result of div: y = y \+ 1 in"):
        y.sum().backward()
    a = leaf([1.0, 2.0]) * 1
    y = a * leaf([3.0, 4.0])
    a += 1.0
    with pytest.raises(RuntimeError, match=r"\[mul\] .* before the write$"):
        y.sum().backward()
