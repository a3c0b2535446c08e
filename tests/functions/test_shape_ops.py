"""Operations on shapes: views share memory, copies do not; all have gradients to second order."""

from __future__ import annotations

import math

import numpy as np
import oracle
import pytest
import scipy.linalg
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import minigrad as mg
from minigrad.ops.shape import CAT

X = np.arange(24.0).reshape(2, 3, 4)


def windows(a, axis, size, step):
    """All windows along an axis, every ``step``-th kept, what is inside them last."""
    every = np.lib.stride_tricks.sliding_window_view(a, size, axis, writeable=True)
    return every[(slice(None),) * axis + (slice(None, None, step),)]


def diagonal(a, *args):
    """NumPy's, which is read-only."""
    view = np.diagonal(a, *args)
    view.flags.writeable = a.flags.writeable
    return view


def diag_embed(a, offset):
    """Zeros with the last axis on a diagonal of two new ones."""
    n = a.shape[-1]
    out = np.zeros((*a.shape[:-1], n + abs(offset), n + abs(offset)), a.dtype)
    at = np.arange(n)
    out[..., at + max(-offset, 0), at + max(offset, 0)] = a
    return out


# name: (on a tensor, on an array); all views of a contiguous (2, 3, 4)
VIEWS = {
    "reshape": (lambda t: t.reshape(6, 4), lambda a: a.reshape(6, 4)),
    "reshape -1": (lambda t: t.reshape((-1, 2)), lambda a: a.reshape(-1, 2)),
    "reshape_as": (lambda t: t.reshape_as(mg.zeros(8, 3)), lambda a: a.reshape(8, 3)),
    "view": (lambda t: t.view(2, 2, 6), lambda a: a.reshape(2, 2, 6)),
    "view_as": (lambda t: t.view_as(mg.zeros(8, 3)), lambda a: a.reshape(8, 3)),
    "ravel": (lambda t: t.ravel(), lambda a: a.ravel()),
    "unflatten": (lambda t: t.unflatten(-1, (2, -1)), lambda a: a.reshape(2, 3, 2, 2)),
    "permute": (lambda t: t.permute(2, 0, 1), lambda a: a.transpose(2, 0, 1)),
    "permute negative": (lambda t: t.permute(-1, 0, -2), lambda a: a.transpose(2, 0, 1)),
    "transpose": (lambda t: t.transpose(0, -1), lambda a: a.swapaxes(0, 2)),
    "swapaxes": (lambda t: t.swapaxes(0, -1), lambda a: a.swapaxes(0, 2)),
    "swapdims": (lambda t: t.swapdims(1, 2), lambda a: a.swapaxes(1, 2)),
    "movedim": (lambda t: t.movedim(0, -1), lambda a: np.moveaxis(a, 0, -1)),
    "movedim two": (lambda t: t.movedim((0, -1), (1, 0)), lambda a: np.moveaxis(a, (0, 2), (1, 0))),
    "moveaxis": (lambda t: mg.moveaxis(t, -1, 0), lambda a: np.moveaxis(a, -1, 0)),
    "t": (lambda t: t[0].t(), lambda a: a[0].T),
    "T": (lambda t: t.T, lambda a: a.T),
    "mT": (lambda t: t.mT, lambda a: a.swapaxes(1, 2)),
    "unsqueeze": (lambda t: t.unsqueeze(1), lambda a: a[:, None]),
    "unsqueeze -1": (lambda t: t.unsqueeze(-1), lambda a: a[..., None]),
    "squeeze": (lambda t: t.unsqueeze(0).squeeze(0), lambda a: a),
    "squeeze all": (lambda t: t.unsqueeze(0).unsqueeze(-1).squeeze(), lambda a: a),
    "atleast_3d": (lambda t: mg.atleast_3d(t[0]), lambda a: a[0][:, :, None]),
    "flatten": (lambda t: t.flatten(), lambda a: a.reshape(-1)),
    "flatten 1": (lambda t: t.flatten(1), lambda a: a.reshape(2, 12)),
    "flatten 0 1": (lambda t: t.flatten(0, 1), lambda a: a.reshape(6, 4)),
    "flip": (lambda t: t.flip((0, 2)), lambda a: a[::-1, :, ::-1]),
    "flip one": (lambda t: t.flip(1), lambda a: a[:, ::-1]),
    "flip two": (lambda t: t.flip(1, -1), lambda a: a[:, ::-1, ::-1]),
    "flip axis": (lambda t: t.flip(axis=0), lambda a: a[::-1]),
    "fliplr": (lambda t: t.fliplr(), lambda a: np.fliplr(a)),
    "flipud": (lambda t: t.flipud(), lambda a: np.flipud(a)),
    "rot90": (lambda t: t.rot90(), lambda a: np.rot90(a)),
    "rot90 back": (lambda t: t.rot90(-1, (2, 0)), lambda a: np.rot90(a, -1, (2, 0))),
    "rot90 twice": (lambda t: t.rot90(2, (1, 2)), lambda a: np.rot90(a, 2, (1, 2))),
    "rot90 not": (lambda t: t.rot90(4, (1, 2)), lambda a: a),
    "narrow": (lambda t: t.narrow(1, 1, 2), lambda a: a[:, 1:3]),
    "narrow negative": (lambda t: t.narrow(-1, -3, 2), lambda a: a[..., 1:3]),
    "select": (lambda t: t.select(1, -1), lambda a: a[:, -1]),
    "unbind": (lambda t: t.unbind(-1)[2], lambda a: a[..., 2]),
    "split": (lambda t: t.split(2, 1)[1], lambda a: a[:, 2:]),
    "split sizes": (lambda t: t.split([1, 3], -1)[1], lambda a: a[..., 1:]),
    "split_with_sizes": (lambda t: t.split_with_sizes((1, 3), 2)[1], lambda a: a[..., 1:]),
    "chunk": (lambda t: t.chunk(2, 1)[1], lambda a: a[:, 2:]),
    "tensor_split": (lambda t: t.tensor_split(3, 2)[0], lambda a: a[..., :2]),
    "tensor_split at": (lambda t: t.tensor_split((1, -1), 2)[1], lambda a: a[..., 1:3]),
    "hsplit": (lambda t: t.hsplit(3)[2], lambda a: a[:, 2:]),
    "vsplit": (lambda t: t.vsplit([1])[1], lambda a: a[1:]),
    "dsplit": (lambda t: t.dsplit(2)[0], lambda a: a[..., :2]),
    "diagonal": (lambda t: t.diagonal(), lambda a: diagonal(a, 0, 0, 1)),
    "diagonal above": (lambda t: t.diagonal(2, 1, 2), lambda a: diagonal(a, 2, 1, 2)),
    "diagonal below": (lambda t: t.diagonal(-1, 2, 0), lambda a: diagonal(a, -1, 2, 0)),
    "unfold": (lambda t: t.unfold(2, 2, 2), lambda a: windows(a, 2, 2, 2)),
    "unfold apart": (lambda t: t.unfold(1, 1, 2), lambda a: windows(a, 1, 1, 2)),
    "slice": (lambda t: t[:, ::-2, 1:], lambda a: a[:, ::-2, 1:]),
    "integer": (lambda t: t[1, :, 2], lambda a: a[1, :, 2]),
}
COPIES = {
    "clone": (lambda t: t.clone(), lambda a: a),
    "reshape of a transpose": (lambda t: t.T.reshape(24), lambda a: a.T.reshape(24)),
    "contiguous of a transpose": (lambda t: t.T.contiguous(), lambda a: a.T),
    "flatten of a flip": (lambda t: t.flip(0).flatten(), lambda a: a[::-1].reshape(-1)),
    "ravel of a transpose": (lambda t: t.T.ravel(), lambda a: a.T.ravel()),
    "index array": (lambda t: t[[0, 1]], lambda a: a),
    "concat": (lambda t: mg.concat([t, t[:, :1]], 1), lambda a: np.concatenate([a, a[:, :1]], 1)),
    "concatenate": (lambda t: mg.concatenate([t, t]), lambda a: np.concatenate([a, a])),
    "hstack": (lambda t: mg.hstack([t, t]), lambda a: np.hstack([a, a])),
    "vstack": (lambda t: mg.vstack([t[0, 0], t[1]]), lambda a: np.vstack([a[0, 0], a[1]])),
    "row_stack": (lambda t: mg.row_stack([t[0, 0]] * 2), lambda a: np.vstack([a[0, 0]] * 2)),
    "dstack": (lambda t: mg.dstack([t[0], t[1]]), lambda a: np.dstack([a[0], a[1]])),
    "column_stack": (
        lambda t: mg.column_stack([t[0, :, 0], t[1]]),
        lambda a: np.column_stack([a[0, :, 0], a[1]]),
    ),
    "block_diag": (
        lambda t: mg.block_diag(t[0], t[1, 1], t[0, 0, 0]),
        lambda a: scipy.linalg.block_diag(a[0], a[1, 1], a[0, 0, 0]).astype(a.dtype),
    ),
    "roll": (lambda t: t.roll(5), lambda a: np.roll(a, 5)),
    "roll dims": (lambda t: t.roll((1, -2), (0, 2)), lambda a: np.roll(a, (1, -2), (0, 2))),
    "roll twice": (lambda t: t.roll((1, 1), (1, 1)), lambda a: np.roll(a, 2, 1)),
    "repeat": (lambda t: t.repeat(2, 1, 3), lambda a: np.tile(a, (2, 1, 3))),
    "repeat more": (lambda t: t.repeat(2, 2, 1, 3, 2), lambda a: np.tile(a, (2, 2, 1, 3, 2))),
    "repeat once": (lambda t: t.repeat(1, 1, 1), lambda a: a),
    "repeat ones": (lambda t: t[:1].repeat(3, 1, 1), lambda a: np.tile(a[:1], (3, 1, 1))),
    "tile": (lambda t: t.tile(2), lambda a: np.tile(a, 2)),
    "tile more": (lambda t: t.tile((2, 1, 2, 1)), lambda a: np.tile(a, (2, 1, 2, 1))),
    "repeat_interleave": (lambda t: t.repeat_interleave(3), lambda a: np.repeat(a, 3)),
    "repeat_interleave dim": (lambda t: t.repeat_interleave(2, 1), lambda a: np.repeat(a, 2, 1)),
    "repeat_interleave each": (
        lambda t: t.repeat_interleave(mg.tensor([2, 0, 1]), axis=1),
        lambda a: np.repeat(a, [2, 0, 1], 1),
    ),
    "tril": (lambda t: t.tril(), lambda a: np.tril(a)),
    "tril above": (lambda t: t.tril(1), lambda a: np.tril(a, 1)),
    "triu": (lambda t: t.triu(), lambda a: np.triu(a)),
    "triu below": (lambda t: t.triu(-1), lambda a: np.triu(a, -1)),
    "triu of nothing": (lambda t: t.triu(2**62), lambda a: np.zeros_like(a)),
    "diag of a matrix": (lambda t: t[0].diag(1), lambda a: np.diag(a[0], 1)),
    "diag of a vector": (lambda t: t[0, 0].diag(-2), lambda a: np.diag(a[0, 0], -2)),
    "diagflat": (lambda t: t[1].diagflat(1), lambda a: np.diagflat(a[1], 1)),
    "diag_embed": (lambda t: t.diag_embed(), lambda a: diag_embed(a, 0)),
    "diag_embed below": (lambda t: t.diag_embed(-2), lambda a: diag_embed(a, -2)),
    "pad": (lambda t: mg.pad(t, (1, 2, 0, 1)), lambda a: np.pad(a, [(0, 0), (0, 1), (1, 2)])),
    "pad and cut": (
        lambda t: mg.pad(t, (-1, 2, 1, -1)),
        lambda a: np.pad(a, [(0, 0), (1, 0), (0, 2)])[:, :3, 1:],
    ),
}
for torch_mode, numpy_mode in (("reflect", "reflect"), ("replicate", "edge"), ("circular", "wrap")):
    COPIES[f"pad {torch_mode}"] = (
        lambda t, mode=torch_mode: mg.pad(t, (3, 1, 0, 2, 1, 1), mode),
        lambda a, mode=numpy_mode: np.pad(a, [(1, 1), (2, 0)[::-1], (3, 1)], mode),
    )
MOVES = VIEWS | COPIES


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


# Operations that need the sizes (2, 3, 4), where NumPy's slices take any.
FOR_THIS_SIZE = {
    "narrow",
    "narrow negative",
    "split",
    "split sizes",
    "split_with_sizes",
    "pad and cut",
    "index array",
}
by_move = pytest.mark.parametrize("name", MOVES)


def transposed(on_array, g, shape):
    """The gradient of each element: the sum of g over the places that show it."""
    count = math.prod(shape)
    places = on_array(np.arange(1, count + 1).reshape(shape))  # 0 is what was filled in
    out = np.zeros(count + 1)
    np.add.at(out, places.reshape(-1), g.reshape(-1))
    return out[1:].reshape(shape)


@by_move
def test_gradients(name, rng):
    on_tensor, on_array = MOVES[name]
    x = mg.tensor(X, requires_grad=True)
    y = on_tensor(x)
    g = rng.integers(-9, 9, y.shape).astype(np.float64)  # whose sums are exact
    for graph in (False, True):
        (got,) = mg.grad(y, x, mg.tensor(g), True, graph)
        oracle.assert_same(got.detach().numpy(), transposed(on_array, g, X.shape))
    oracle.check_gradients(lambda t: on_tensor(t * t), [X / 10 + 0.1], rng, second=y.size < 60)


@by_move
@pytest.mark.parametrize("dtype", [np.bool_, np.int64, np.float32])
def test_dtypes(name, dtype):
    on_tensor, on_array = MOVES[name]
    values = (X % 3).astype(dtype)
    oracle.assert_same(on_tensor(mg.tensor(values)).numpy(), np.ascontiguousarray(on_array(values)))


@by_move
@pytest.mark.parametrize("layout", oracle.LAYOUTS)
def test_layouts(name, layout, rng):
    """Inputs and upstream gradients in any memory layout, read-only, and with stride 0."""
    if name.startswith(("view", "unflatten")):
        pytest.skip("needs a layout that can be a view")
    on_tensor, on_array = MOVES[name]
    x = oracle.tensor_in_layout(X, layout, True)
    y = on_tensor(x)
    oracle.assert_same(y.detach().numpy(), np.ascontiguousarray(on_array(X)))
    g = rng.integers(1, 9, y.shape).astype(np.float64)
    for upstream in (
        oracle.tensor_in_layout(g, layout),
        mg.tensor(3.0, mg.float64).expand(y.shape),
    ):
        want = transposed(on_array, upstream.numpy(), X.shape)
        for graph in (False, True):
            (got,) = mg.grad(y, x, upstream, True, graph)
            oracle.assert_same(got.detach().numpy(), want)


@by_move
@pytest.mark.parametrize("shape", [(0, 3, 4), (2, 0, 4), (2, 3, 0)], ids=str)
def test_sizes_of_zero(name, shape):
    """Where NumPy has a result, the same, and a gradient of the input's shape."""
    on_tensor, on_array = MOVES[name]
    try:
        want = on_array(np.zeros(shape, np.float32))
    except (ValueError, IndexError):
        return
    x = mg.zeros(shape, requires_grad=True)
    try:
        y = on_tensor(x)
    except (ValueError, IndexError):  # a size that fits (2, 3, 4) only
        assert name in FOR_THIS_SIZE
        return
    assert y.shape == want.shape
    for graph in (False, True):
        (g,) = mg.grad(y, x, mg.ones(y.shape), True, graph)
        assert g.shape == shape
        assert g.dtype is mg.float32


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


def test_cat_of_many(rng):
    """Parts of no size among them; and nothing is noted of which of so many want a gradient."""
    sizes = rng.integers(0, 4, 500)
    parts = [mg.tensor(rng.normal(size=(2, n)), requires_grad=bool(n % 2)) for n in sizes]
    upstream = rng.normal(size=(2, sizes.sum()))
    mg.cat(parts, 1).backward(mg.tensor(upstream))
    shares = np.split(upstream, np.cumsum(sizes)[:-1], 1)
    for part, share in zip(parts, shares, strict=True):
        if part.requires_grad:
            np.testing.assert_array_equal(part.grad.numpy(), share)
        else:
            assert part.grad is None
    assert not CAT.sources


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


def test_entries_of_every_kind_are_views_with_gradients(rng):
    x = mg.tensor(rng.standard_normal((3, 2, 4)), requires_grad=True)
    want = x.detach().numpy()
    for k, axis in ((0, 0), (1, -2), (2, 2)):
        parts = mg.unbind(x, axis)
        assert len(parts) == x.shape[axis]
        for i, part in enumerate(parts):
            assert part.tolist() == np.take(want, i, k).tolist()
            assert mg.select(x, axis, i - x.shape[axis]).tolist() == part.tolist()
    assert [row.tolist() for row in x] == want.tolist() == [x[i].tolist() for i in (-3, 1, 2)]
    y = x * 1.0
    first, _, last = y
    first.mul_(2.0)
    y[1] = last
    (y[0] * y[-2]).sum().backward()
    assert x.grad.tolist() == np.stack([2 * want[2], 0 * want[1], 2 * want[0]]).tolist()
    for wrong in (3, -4):
        with pytest.raises(IndexError, match=rf"\[index\] index {wrong} is out of range"):
            x[wrong]
    with pytest.raises(IndexError, match="0 dimensions"):
        mg.tensor(1.0)[0]
    assert mg.unbind(mg.zeros(0, 2)) == ()
    assert mg.unbind(mg.zeros(2, 0))[1].shape == (0,)


@pytest.mark.parametrize("shape", [(), (2,), (0,), (2, 3), (1, 0, 2)])
def test_stack_of_all_shapes(shape, rng):
    arrays = [rng.standard_normal(shape) for _ in range(3)]
    for dim in range(-len(shape) - 1, len(shape) + 1):
        parts = [mg.tensor(a, requires_grad=True) for a in arrays]
        got = mg.stack(parts, dim)
        want = np.stack(arrays, dim)
        assert got.shape == want.shape
        assert got.tolist() == want.tolist()
        (got * mg.tensor(want)).sum().backward()
        assert [p.grad.tolist() for p in parts] == [a.tolist() for a in arrays]


def test_a_stack_of_as_many_dimensions_as_there_are():
    x = mg.zeros((1,) * 16)
    with pytest.raises(ValueError, match=r"\[stack\] 17 dimensions where at most 16 are possible"):
        mg.stack([x, x])


@pytest.mark.parametrize("dtype", [np.bool_, np.float32, np.float64, np.int64])
def test_short_rows_of_any_length_are_copied_whole(dtype, rng):
    """Out of longer rows, into them, and as an operand over several chunks; no byte around them."""
    for n in (*range(1, 20), 31, 32, 33, 63, 64, 65, 127, 128, 129):
        x = rng.integers(0, 2 if dtype is np.bool_ else 99, (5, 7, n + 3)).astype(dtype)
        t = mg.tensor(x)
        oracle.assert_same(t[:, :, 1:-2].contiguous().numpy(), x[:, :, 1:-2])
        oracle.assert_same(t[:, ::2, 2:-1].contiguous().numpy(), x[:, ::2, 2:-1])
        oracle.assert_same(t[::-1, :, 1:-2].contiguous().numpy(), x[::-1, :, 1:-2])
        to, expected = mg.zeros(5, 7, n + 2, dtype=t.dtype), np.zeros((5, 7, n + 2), dtype)
        to[:, :, 1:-1] = t[:, :, 2:-1]
        expected[:, :, 1:-1] = x[:, :, 2:-1]
        oracle.assert_same(to.numpy(), expected)
        if dtype is not np.bool_:
            row = x[2, 3:4, 3:]
            oracle.assert_same((t[:, :, 1:-2] + t[2, 3:4, 3:]).numpy(), x[:, :, 1:-2] + row)
            product = t[::-1, 1:, 1:-2] * t[:, :-1, 2:-1]
            oracle.assert_same(product.numpy(), x[::-1, 1:, 1:-2] * x[:, :-1, 2:-1])


def test_a_size_that_could_be_any_is_refused():
    with pytest.raises(ValueError, match="any size could stand for -1"):
        mg.unflatten(mg.zeros(2, 0), 1, (0, -1))
    with pytest.raises(TypeError):
        mg.zeros(3).reshape(True, 3)


@pytest.mark.parametrize("order", ["C", "F", "A", "K"])
@pytest.mark.parametrize("turned", [False, True])
def test_numpys_orders_of_elements(order, turned, rng):
    a = rng.normal(size=(2, 3, 4))
    x = mg.tensor(a, requires_grad=True)
    a, y = (a.T, x.T) if turned else (a, x)
    found = [
        (y.ravel(order), a.ravel(order)),
        (y.ravel(order=order), a.ravel(order)),
        (y.flatten(order), a.flatten(order)),
        (y.flatten(order=order), a.flatten(order)),
    ]
    if order != "K":
        found += [
            (y.reshape(6, -1, order=order), a.reshape(6, -1, order=order)),
            (mg.reshape(y, (4, 6), order=order), a.reshape((4, 6), order=order)),
        ]
    for got, want in found:
        np.testing.assert_array_equal(got.detach().numpy(), want)
        (g,) = mg.grad(got, x, mg.tensor(np.ascontiguousarray(want)), retain_graph=True)
        np.testing.assert_array_equal(g.numpy(), x.detach().numpy())


def test_orders_that_there_are_not():
    x = mg.ones(2, 3, 4)
    for call, message in (
        (lambda: x.reshape(-1, order="K"), r"\[reshape\] order is 'K', but must be one of C, F, A"),
        (lambda: x.ravel("Q"), r"\[ravel\] order is 'Q', but must be one of C, F, A, K"),
        (lambda: x.flatten(1, order="F"), r"\[flatten\] order='F' is of all dimensions"),
        (lambda: x.transpose(0, 1).ravel("K"), r"\[ravel\] order='K' is of memory in the order of"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
