"""Operations on shapes: views share memory, copies do not; all have gradients to second order."""

from __future__ import annotations

import math

import numpy as np
import oracle
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import minigrad as mg

X = np.arange(24.0).reshape(2, 3, 4)

# name: (on a tensor, on an array); all views of a contiguous (2, 3, 4)
VIEWS = {
    "reshape": (lambda t: t.reshape(6, 4), lambda a: a.reshape(6, 4)),
    "reshape -1": (lambda t: t.reshape((-1, 2)), lambda a: a.reshape(-1, 2)),
    "view": (lambda t: t.view(2, 2, 6), lambda a: a.reshape(2, 2, 6)),
    "permute": (lambda t: t.permute(2, 0, 1), lambda a: a.transpose(2, 0, 1)),
    "permute negative": (lambda t: t.permute(-1, 0, -2), lambda a: a.transpose(2, 0, 1)),
    "transpose": (lambda t: t.transpose(0, -1), lambda a: a.swapaxes(0, 2)),
    "T": (lambda t: t.T, lambda a: a.T),
    "mT": (lambda t: t.mT, lambda a: a.swapaxes(1, 2)),
    "unsqueeze": (lambda t: t.unsqueeze(1), lambda a: a[:, None]),
    "unsqueeze -1": (lambda t: t.unsqueeze(-1), lambda a: a[..., None]),
    "squeeze": (lambda t: t.unsqueeze(0).squeeze(0), lambda a: a),
    "squeeze all": (lambda t: t.unsqueeze(0).unsqueeze(-1).squeeze(), lambda a: a),
    "flatten": (lambda t: t.flatten(), lambda a: a.reshape(-1)),
    "flatten 1": (lambda t: t.flatten(1), lambda a: a.reshape(2, 12)),
    "flatten 0 1": (lambda t: t.flatten(0, 1), lambda a: a.reshape(6, 4)),
    "flip": (lambda t: t.flip((0, 2)), lambda a: a[::-1, :, ::-1]),
    "flip one": (lambda t: t.flip(1), lambda a: a[:, ::-1]),
    "narrow": (lambda t: t.narrow(1, 1, 2), lambda a: a[:, 1:3]),
    "narrow negative": (lambda t: t.narrow(-1, -3, 2), lambda a: a[..., 1:3]),
    "split": (lambda t: t.split(2, 1)[1], lambda a: a[:, 2:]),
    "split sizes": (lambda t: t.split([1, 3], -1)[1], lambda a: a[..., 1:]),
    "slice": (lambda t: t[:, ::-2, 1:], lambda a: a[:, ::-2, 1:]),
    "integer": (lambda t: t[1, :, 2], lambda a: a[1, :, 2]),
}
COPIES = {
    "clone": (lambda t: t.clone(), lambda a: a),
    "reshape of a transpose": (lambda t: t.T.reshape(24), lambda a: a.T.reshape(24)),
    "contiguous of a transpose": (lambda t: t.T.contiguous(), lambda a: a.T),
    "flatten of a flip": (lambda t: t.flip(0).flatten(), lambda a: a[::-1].reshape(-1)),
    "index array": (lambda t: t[[0, 1]], lambda a: a),
}


@pytest.mark.parametrize("name", VIEWS)
def test_views_share_memory(name):
    on_tensor, on_array = VIEWS[name]
    values = X.copy()
    x = mg.tensor(values)
    view = on_tensor(x)
    oracle.assert_same(view.numpy(), on_array(values))
    assert np.shares_memory(view.numpy(), x.numpy())
    with mg.no_grad():
        view.fill_(-1)
    on_array(values)[...] = -1
    oracle.assert_same(x.numpy(), values)


@pytest.mark.parametrize("name", COPIES)
def test_copies_do_not(name):
    on_tensor, on_array = COPIES[name]
    x = mg.tensor(X)
    copy = on_tensor(x)
    oracle.assert_same(copy.numpy(), np.ascontiguousarray(on_array(X)))
    assert not np.shares_memory(copy.numpy(), x.numpy())
    assert copy.is_contiguous()
    copy.fill_(-1)
    oracle.assert_same(x.numpy(), X)


@pytest.mark.parametrize("name", [*VIEWS, *COPIES])
def test_gradients(name, rng):
    on_tensor, on_array = (VIEWS | COPIES)[name]
    x = mg.tensor(X, requires_grad=True)
    y = on_tensor(x)
    g = rng.normal(size=y.shape)
    for graph in (False, True):
        (got,) = mg.grad(y, x, mg.tensor(g), True, graph)
        want = np.zeros(X.shape)
        place = on_array(np.arange(24).reshape(X.shape))
        np.add.at(want.reshape(-1), place.reshape(-1), g.reshape(-1))
        oracle.assert_same(got.detach().numpy(), want)
    oracle.check_gradients(lambda t: on_tensor(t * t), [X / 10 + 0.1], rng)


def test_contiguous_is_itself_where_it_can_be():
    x = mg.tensor(X)
    assert x.contiguous() is x
    assert x.T.T.contiguous().is_contiguous()


def test_view_refuses_what_needs_a_copy():
    x = mg.tensor(X)
    with pytest.raises(
        ValueError, match=r"\[view\] shape \(4, 3, 2\).*cannot be a view \(24,\); use reshape"
    ):
        x.T.view(24)
    assert x.T.reshape(24).shape == (24,)
    assert x[:, :, ::2].view(2, 3, 2, 1).tolist() == X[:, :, ::2, None].tolist()
    assert x[:, :, ::2].view(6, 2).tolist() == X[:, :, ::2].reshape(6, 2).tolist()


def test_expand():
    x = mg.tensor([[1.0], [2.0]], requires_grad=True)
    y = x.expand(3, 2, 4)
    assert y.shape == (3, 2, 4)
    assert y.strides == (0, 1, 0)
    oracle.assert_same(y.detach().numpy(), np.broadcast_to(np.float32([[1], [2]]), (3, 2, 4)))
    assert x.expand(-1, 5).shape == (2, 5)
    assert mg.broadcast_to(x, (2, 3)).shape == (2, 3)
    (g,) = mg.grad(y, x, mg.ones(3, 2, 4))
    assert g.tolist() == [[12], [12]]
    assert mg.ones(1, 3).expand(0, 3).shape == (0, 3)
    with pytest.raises(
        ValueError,
        match=r"\[expand\] shape \(2, 1\) cannot expand to \(3, 1\): 2 is neither 1 nor 3",
    ):
        x.expand(3, 1)
    with pytest.raises(ValueError, match="-1 keeps a size, but a new dimension has none"):
        x.expand(-1, 2, 1)
    with pytest.raises(ValueError, match="expand"):
        x.expand(2)


def test_an_expanded_tensor_cannot_be_written():
    x = mg.ones(2, 1).expand(2, 3)
    with pytest.raises(
        ValueError, match=r"several elements share one place in memory.*clone\(\) it first"
    ):
        x.fill_(2)
    with pytest.raises(ValueError, match="several elements share one place"):
        x[:, 1:] = 2
    assert x.tolist() == [[1, 1, 1], [1, 1, 1]]


def test_sum_to_size(rng):
    x = rng.normal(size=(3, 2, 4))
    got = mg.tensor(x).sum_to_size(2, 1)
    np.testing.assert_allclose(got.numpy(), x.sum(0).sum(1, keepdims=True), rtol=1e-14)
    oracle.check_gradients(
        lambda t: t.sum_to_size((2, 1)) * t.sum_to_size((2, 1)), [x[:2, :, :2]], rng
    )
    with pytest.raises(ValueError, match=r"\[sum_to_size\]"):
        mg.tensor(x).sum_to_size(3, 1)


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
@pytest.mark.parametrize("layout", oracle.LAYOUTS)
def test_cat_and_stack(axis, layout, rng):
    parts = [rng.normal(size=(2, 3, 4)) for _ in range(3)]
    parts[1] = np.take(parts[1], [0], axis)
    tensors = [oracle.tensor_in_layout(p, layout) for p in parts]
    oracle.assert_same(mg.cat(tensors, axis).numpy(), np.concatenate(parts, axis))
    oracle.assert_same(mg.cat(tensors, axis=axis).numpy(), np.concatenate(parts, axis))
    same = [parts[0], parts[2]]
    oracle.assert_same(mg.stack([tensors[0], tensors[2]], axis).numpy(), np.stack(same, axis))


def test_cat_gradients(rng):
    parts = [rng.normal(size=(2, n)) for n in (1, 0, 2)]
    oracle.check_gradients(lambda *p: mg.cat([t * t for t in p], 1), parts, rng)
    oracle.check_gradients(lambda a, b: mg.stack([a * b, a], -1), [parts[2], parts[2] + 1], rng)
    x = mg.tensor([1.0, 2.0], requires_grad=True)
    mg.cat([x, x * 3, mg.ones(2)]).sum().backward()
    assert x.grad.tolist() == [4, 4]


def test_cat_promotes_and_refuses():
    a = mg.cat([mg.tensor([1]), mg.tensor([1.5]), mg.tensor([True])])
    assert a.dtype is mg.float32
    assert a.tolist() == [1, 1.5, 1]
    assert mg.cat([mg.zeros(0, 2), mg.ones(1, 2)]).tolist() == [[1, 1]]
    with pytest.raises(
        ValueError, match=r"\[cat\] shapes \(2, 3\) and \(2, 4\) differ outside dim 0"
    ):
        mg.cat([mg.ones(2, 3), mg.ones(2, 4)])
    with pytest.raises(ValueError, match=r"\[stack\] shapes differ: \(2,\) and \(3,\)"):
        mg.stack([mg.ones(2), mg.ones(3)])
    with pytest.raises(ValueError, match=r"\[cat\] needs at least one tensor"):
        mg.cat([])
    with pytest.raises(IndexError, match=r"\[cat\] dim 1 is out of range"):
        mg.cat([mg.ones(2)], 1)


def test_split(rng):
    x = rng.normal(size=(7, 2))
    t = mg.tensor(x)
    assert [p.shape for p in t.split(3)] == [(3, 2), (3, 2), (1, 2)]
    for got, want in zip(t.split([2, 0, 5]), np.split(x, [2, 2]), strict=True):
        oracle.assert_same(got.numpy(), want)
    assert [p.shape for p in mg.zeros(0, 2).split(3)] == [(0, 2)]
    with pytest.raises(ValueError, match=r"\[split\] the sizes \[2, 3\] add up to 5, not to 7"):
        t.split([2, 3])
    with pytest.raises(ValueError, match=r"must be at least 1"):
        t.split(0)


def test_take_along_dim(rng):
    x = rng.normal(size=(3, 4, 2))
    for axis in (0, 1, 2, -1):
        order = np.argsort(x, axis)
        got = mg.take_along_dim(mg.tensor(x), mg.tensor(order), axis)
        oracle.assert_same(got.numpy(), np.sort(x, axis))
    index = mg.tensor(np.array([[[0], [1]]]).repeat(3, 0))  # (3, 2, 1): the last axis is broadcast
    want = np.take_along_axis(x, np.broadcast_to(index.numpy(), (3, 2, 2)), 1)
    oracle.assert_same(mg.take_along_dim(mg.tensor(x), index, 1).numpy(), want)
    repeated = mg.tensor([[0, 0, 1], [1, 1, 1]])
    oracle.check_gradients(lambda t: mg.take_along_dim(t * t, repeated, 1), [x[:2, :, 0]], rng)
    with pytest.raises(TypeError, match=r"\[take_along_dim\] indices must be int64, not float32"):
        mg.take_along_dim(mg.ones(2), mg.ones(2), 0)
    with pytest.raises(IndexError, match="out of range"):
        mg.take_along_dim(mg.ones(2), mg.tensor([2]), 0)


def test_nonzero(rng):
    x = rng.integers(0, 2, (3, 4, 5))
    for got, want in zip(mg.nonzero(mg.tensor(x)), np.nonzero(x), strict=True):
        oracle.assert_same(got.numpy(), want)
    for layout in oracle.LAYOUTS:
        for got, want in zip(
            mg.nonzero(oracle.tensor_in_layout(x > 0, layout)), np.nonzero(x), strict=True
        ):
            oracle.assert_same(got.numpy(), want)
    assert [n.shape for n in mg.nonzero(mg.zeros(3, 0))] == [(0,), (0,)]


@settings(max_examples=60)
@given(data=st.data())
def test_reshape_of_any_view(data):
    """Whatever strides a tensor has, reshape gives what NumPy gives."""
    shape = data.draw(hnp.array_shapes(min_dims=0, max_dims=4, min_side=1, max_side=4))
    base = np.arange(math.prod(shape)).reshape(shape)
    index = data.draw(hnp.basic_indices(shape, allow_newaxis=True))
    view = np.asarray(base[index])
    order = data.draw(st.permutations(range(view.ndim)))
    view = view.transpose(order)
    t = mg.tensor(base)[index].permute(*order)
    factors = [d for d in range(1, view.size + 1) if view.size % d == 0] or [0]
    first = data.draw(st.sampled_from(factors))
    new = (first, view.size // first if first else 3)
    oracle.assert_same(t.reshape(new).numpy(), view.reshape(new))
    oracle.assert_same(t.flatten().numpy(), view.reshape(-1))


def test_wrong_shapes():
    x = mg.ones(2, 3)
    with pytest.raises(
        ValueError, match=r"\[reshape\] cannot turn shape \(2, 3\) \(6 elements\) into \(4, 2\)"
    ):
        x.reshape(4, 2)
    with pytest.raises(ValueError, match=r"\[reshape\].*into \(-1, 4\)"):
        x.reshape(-1, 4)
    with pytest.raises(ValueError, match="reshape"):
        x.reshape(-1, -1)
    with pytest.raises(ValueError, match="reshape"):
        x.reshape(-2, -3)
    with pytest.raises(ValueError, match="reshape"):
        mg.ones(0, 3).reshape(-1, 0)
    with pytest.raises(TypeError, match=r"\[reshape\] sizes are integers"):
        x.reshape(2.0, 3)
    with pytest.raises(ValueError, match=r"\[permute\] 3 dims given for 2 dimensions"):
        x.permute(0, 1, 2)
    with pytest.raises(ValueError, match=r"\[permute\].*twice"):
        x.permute(0, 0)
    with pytest.raises(
        IndexError, match=r"\[transpose\] dim 2 is out of range for 2 dimensions: use -2..1"
    ):
        x.transpose(0, 2)
    with pytest.raises(IndexError, match=r"\[unsqueeze\] dim 3 is out of range"):
        x.unsqueeze(3)
    with pytest.raises(IndexError, match=r"\[squeeze\] dim 2 is out of range"):
        x.squeeze(2)
    with pytest.raises(ValueError, match=r"\[flip\] dim 1 is given twice"):
        x.flip((1, -1))
    with pytest.raises(IndexError, match=r"\[narrow\]"):
        x.narrow(1, 2, 2)
    with pytest.raises(ValueError, match=r"\[flatten\] start_dim 1 comes after end_dim 0"):
        x.flatten(1, 0)
    with pytest.raises(IndexError, match=r"\[mT\]|\[transpose\]"):
        _ = mg.ones(3).mT


def test_squeeze_leaves_other_sizes():
    x = mg.ones(1, 3, 1)
    assert x.squeeze().shape == (3,)
    assert x.squeeze(0).shape == (3, 1)
    assert x.squeeze(1).shape == (1, 3, 1)
    assert x.squeeze((0, -1)).shape == (3,)
    assert mg.tensor(2.0).squeeze().shape == ()


def test_shapes_of_numbers():
    x = mg.tensor(2.0)
    assert x.reshape(1, 1).shape == (1, 1)
    assert x.reshape(()).shape == ()
    assert x.flatten().shape == (1,)
    assert x.T.shape == ()
    assert x.permute().shape == ()
    assert x.unsqueeze(0).shape == (1,)
    assert x.expand(2, 3).shape == (2, 3)
    assert x.flip(()).item() == 2
