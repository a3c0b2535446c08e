"""Tests of views on the tape: other memory, aliases, views that the tape does not know."""

import itertools

import numpy as np
import pytest
from samples import CATALOGUE

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


READS = {
    "itself": lambda v: v,
    "a view": lambda v: v[:1],
    "a view of a view": lambda v: v[:, None].T,
    "under no_grad": lambda v: mg.no_grad()(lambda: v[:1])(),
}


@pytest.mark.parametrize("make", [leaf, mg.Variable], ids=["Tensor", "Variable"])
@pytest.mark.parametrize("others", [0, 8])
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("read", READS)
def test_a_view_made_under_no_grad_is_not_read_after_a_write_on_the_tape(read, when, others, make):
    a, b = make([1.0, 1.0, 1.0]), leaf([5.0, 5.0, 5.0])
    x = a * 1
    with mg.no_grad():
        views = [x[:1] for _ in range(others)]
        view = x[:2]
    shown = READS[read](view) if when == "before" else None
    x[1:].mul_(b[1:])
    x.mul_(b)
    shown = READS[read](view) if shown is None else shown
    assert (view.tolist(), len(views)) == ([5, 25], others)
    with mg.no_grad():
        assert not (shown * 2).requires_grad
    assert not (shown.detach() * 2).requires_grad
    with pytest.raises(RuntimeError, match="view made under no_grad"):
        (shown * 2).sum().backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="view made under no_grad"):
        mg.grad((shown * a[0]).sum(), a, create_graph=True)
    x.sum().backward()
    assert (a.grad.tolist(), b.grad.tolist()) == ([5, 25, 25], [1, 10, 10])


def test_a_view_made_under_no_grad_may_be_read_where_nothing_was_recorded():
    a, t = leaf([1.0, 1.0]), mg.zeros(2)
    with mg.no_grad():
        views = a[:1], t[:1], (a * 1)[:1]
        a.add_(1)
        t.add_(a)
    t.add_(1)
    for view, value in zip(views, (2, 3, 1), strict=True):
        assert view.tolist() == [value]
        assert not view.requires_grad
    t.mul_(a)
    assert views[1].requires_grad
    with pytest.raises(RuntimeError, match="view made under no_grad"):
        views[1].sum().backward()


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


F = mg.nn.functional

# Operations that may return the memory that they are given.
UNCHANGED = {
    "contiguous": lambda x: x.contiguous(),
    "to": lambda x: x.to(mg.float32),
    "expand": lambda x: x.expand(3, 3),
    "reshape": lambda x: x.reshape(3, 3),
    "flatten": lambda x: x.flatten(),
    "ravel": lambda x: x.ravel(),
    "squeeze": lambda x: x.squeeze(),
    "broadcast_tensors": lambda x: mg.broadcast_tensors(x, x)[0],
    "atleast_3d": lambda x: mg.atleast_3d(x),
    "asarray": lambda x: mg.asarray(x),
    "movedim": lambda x: x.movedim(0, 0),
    "pad": lambda x: F.pad(x, (0, 0)),
    "dropout of nothing": lambda x: F.dropout(x, 0.0),
    "dropout in evaluation": lambda x: F.dropout(x, 0.5, training=False),
    "Identity": lambda x: mg.nn.Identity()(x),
    "repeat": lambda x: x.repeat(1, 1),
    "tile": lambda x: x.tile((1,)),
    "roll": lambda x: x.roll(0, 0),
    "einsum": lambda x: mg.einsum("ij->ji", x),
    "einsum of a diagonal": lambda x: mg.einsum("ii->i", x),
    "matrix_power": lambda x: mg.linalg.matrix_power(x, 1),
    "diag": lambda x: mg.diag(x),
    "cat": lambda x: mg.cat([x]),
    "stack": lambda x: mg.stack([x]),
    "flip": lambda x: x.flip(0),
    "unfold": lambda x: x.unfold(0, 2, 2),
    "chunk": lambda x: x.chunk(1)[0],
    "unbind": lambda x: x.unbind()[1],
    "sum of no dimension": lambda x: x.sum(()),
    "rot90": lambda x: mg.rot90(x, 4),
    "triu": lambda x: x.triu(-5),
    "positive": lambda x: +x,
    "np.roll": lambda x: np.roll(x, 0),
    "np.reshape": lambda x: np.reshape(x, (3, 3)),
    "np.broadcast_to": lambda x: np.broadcast_to(x, (3, 3)),
    "np.moveaxis": lambda x: np.moveaxis(x, 0, 0),
    "np.hstack": lambda x: np.hstack([x]),
    "np.split": lambda x: np.split(x, 1)[0],
    "ellipsis": lambda x: x[...],
    "view": lambda x: x.view(9),
    "interpolate": lambda x: F.interpolate(x[None, None], size=(3, 3)),
    "avg_pool2d": lambda x: F.avg_pool2d(x[None], 1),
    "block_diag": lambda x: mg.block_diag(x),
    "meshgrid": lambda x: mg.meshgrid(x[0])[0],
    "cartesian_prod": lambda x: mg.cartesian_prod(x[0]),
    "sum_to_size": lambda x: x.sum_to_size(3, 3),
    "Sequential": lambda x: mg.nn.Sequential()(x),
}


@pytest.mark.parametrize("name", UNCHANGED)
@pytest.mark.parametrize("write", ["result", "input"])
def test_writes_are_followed_where_a_result_may_share_memory(name, write):
    a = mg.ones(3, 3, requires_grad=True)
    x = a * 1
    y = UNCHANGED[name](x)
    (y if write == "result" else x).mul_(3)
    for part in (x, y):
        weights = mg.arange(1, part.size + 1).to(mg.float32).reshape(part.shape)
        total = (part * weights).sum()
        (g,) = mg.grad(total, a, retain_graph=True)  # all is linear, and a is 1 everywhere
        assert g.sum().item() == pytest.approx(total.item())


SAMPLES = {f"{name}-{k}": s for name, samples in CATALOGUE.items() for k, s in enumerate(samples)}


def pairs_on_one_memory(sample):
    """The leaves, and pairs of an input or result and a result that share memory."""
    leaves = [mg.tensor(x, requires_grad=True) for x in sample.inputs()]
    inputs = [x * 1 for x in leaves]
    results = [y for y in sample.called(*sample.prepared(*inputs)) if isinstance(y, mg.Tensor)]
    arrays = {id(x): x.detach().numpy() for x in (*inputs, *results)}
    pairs = itertools.product((*inputs, *results), results)
    return leaves, [
        (x, y) for x, y in pairs if x is not y and np.shares_memory(arrays[id(x)], arrays[id(y)])
    ]


@pytest.mark.parametrize("sample", SAMPLES.values(), ids=SAMPLES)
def test_a_write_through_any_result_is_seen_by_all_that_share_its_memory(sample):
    for number in range(len(pairs_on_one_memory(sample)[1])):
        for swapped in (False, True):
            leaves, pairs = pairs_on_one_memory(sample)
            written, other = pairs[number][:: -1 if swapped else 1]
            try:
                written.mul_(3.0)
            except ValueError as error:
                assert "several elements share one place" in str(error)  # noqa: PT017
                continue
            for part in (written, other):  # which show the leaves, each element times a number
                weights = mg.arange(1, part.size + 1).to(part.dtype).reshape(part.shape)
                total = (part * weights).sum()
                found = mg.grad(total, leaves, retain_graph=True, allow_unused=True)
                along = [
                    (g * x).sum().item()
                    for g, x in zip(found, leaves, strict=True)
                    if g is not None
                ]
                assert sum(along) == pytest.approx(total.item())
