"""Tests of views on the tape: other memory, aliases, views that the tape does not know."""

import pytest

import minigrad as mg


def leaf(values):
    return mg.tensor(values, requires_grad=True)


# ---- other memory --------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [2, 6])
def test_a_view_with_other_memory_leaves_the_others_views(count):
    a = leaf([1.0] * count)
    base = a * 1
    views = [base[i : i + 1] for i in range(count)]
    views[0].data = mg.zeros(1)
    base.mul_(3.0)
    assert [v.tolist() for v in views] == [[0.0]] + [[3.0]] * (count - 1)
    for i, view in enumerate(views):
        (g,) = mg.grad(view.sum(), a, retain_graph=True)
        assert g.tolist() == [(1.0 if not i else 3.0) if k == i else 0.0 for k in range(count)]


def test_views_of_a_view_with_other_memory_stay_views_of_its_base():
    a = leaf([1.0, 2.0, 3.0])
    base = a * 1
    view = base[:2]
    below = view[:1]
    view.data = mg.zeros(2)
    base.mul_(3)
    assert below.tolist() == [3]
    assert mg.grad(below.sum(), a, retain_graph=True)[0].tolist() == [3, 0, 0]
    below.mul_(2)
    assert base.tolist() == [6, 6, 9]
    assert mg.grad(base.sum(), a)[0].tolist() == [6, 3, 3]
    assert view.tolist() == [0, 0]


def test_parameters_that_are_views_of_one_may_all_get_other_memory():
    flat = mg.zeros(10)
    p, q = flat[:5].requires_grad_(), flat[5:].requires_grad_()
    p.data = mg.ones(5)
    flat.data = mg.ones(10) * 2
    q.data = mg.ones(5) * 3
    (p * q).sum().backward()
    assert p.grad.tolist() == [3] * 5
    assert q.grad.tolist() == [1] * 5


# ---- views that the tape does not know -----------------------------------------------------------


def test_a_view_made_under_no_grad_is_not_written_through_on_the_tape():
    x, b = leaf([1.0, 1.0, 1.0]) * 1, leaf([1.0, 1.0])
    with mg.no_grad():
        view = x[:2]
        below = view[:1]
    for write in (
        lambda v: v.mul_(5),
        lambda v: v.copy_(b[: v.size]),
        lambda v: v.fill_(2),
        lambda v: v.__setitem__(0, b[0]),
        lambda v: v.__setitem__([0], 3.0),
        lambda v: v.uniform_(),
    ):
        for v in (view, below, view[:1]):
            with pytest.raises(RuntimeError, match="made under no_grad"):
                write(v)
    assert x.tolist() == [1, 1, 1]
    with mg.no_grad():
        view.mul_(5)
    assert x.tolist() == [5, 5, 1]


def test_a_view_made_under_no_grad_of_what_is_tracked_later():
    a, t = leaf([1.0, 1.0]), mg.zeros(2)
    with mg.no_grad():
        view = t[:1]
    view.add_(1)
    assert t.tolist() == [1, 0]
    t.add_(a)
    with pytest.raises(RuntimeError, match="made under no_grad"):
        view.mul_(2)


def test_a_view_taken_before_its_base_required_grad_is_not_written_through():
    t = mg.zeros(4)
    view = t[:2]
    t.requires_grad_()
    with pytest.raises(RuntimeError, match="view of a tensor that requires grad"):
        view.add_(1)
    with mg.no_grad():
        view.add_(1)
    assert t.tolist() == [1, 1, 0, 0]


# ---- what shares memory is known to share it -----------------------------------------------------


def test_sum_to_size_without_a_change_is_a_view():
    a = leaf([[1.0, 2.0, 3.0]])
    x = a * 1
    y = x.sum_to_size((1, 3))
    y.mul_(3)
    assert x.tolist() == [[3, 6, 9]]
    assert mg.grad(x.sum(), a, retain_graph=True)[0].tolist() == [[3, 3, 3]]
    x.mul_(2)
    assert mg.grad(y.sum(), a)[0].tolist() == [[6, 6, 6]]


@pytest.mark.parametrize("show", [lambda x: x, lambda x: x.view(-1), lambda x: x[:2]])
def test_what_a_function_returns_of_its_input_is_apart(show):
    class Shows(mg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return show(x), show(x)

        @staticmethod
        def backward(ctx, g, h):
            whole = mg.zeros(3)
            whole[: g.size] = g + h
            return whole

    a = leaf([1.0, 1.0, 1.0])
    x = a * 1
    y, z = Shows.apply(x)
    y.mul_(3)
    x.mul_(5)
    assert x.tolist() == [5, 5, 5]
    for part, factor in ((x, 5), (y, 3), (z, 1)):
        assert part.tolist() == [factor] * part.size
        (g,) = mg.grad(part.sum(), a, retain_graph=True)
        assert g.tolist() == [factor] * part.size + [0] * (3 - part.size)
