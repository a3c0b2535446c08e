"""Hooks of saved tensors: what is packed, when, and gradients as without them."""

from __future__ import annotations

import gc
import threading

import numpy as np
import pytest
from samples import CATALOGUE

import minigrad as mg
from minigrad import nn
from minigrad.autograd.graph import saved_tensors_hooks
from minigrad.runtime import native
from minigrad.runtime.native import lib
from minigrad.tape.hooks import watchers


@pytest.fixture(autouse=True)
def _nothing_watches_afterwards():
    yield
    assert not watchers
    assert not native.tracers


def to_numpy(t):
    return t.detach().numpy().copy()


def identity(t):
    return t


def gradients(sample, context, graph=False):
    """First, and with ``graph`` second, gradients of a sample's results."""
    inputs = [mg.tensor(x, requires_grad=True) for x in sample.inputs()]
    with context:
        ys = [y for y in sample(*inputs) if isinstance(y, mg.Tensor) and y.requires_grad]
    if not ys:
        return []
    weights = [mg.ones_like(y) * 0.7 for y in ys]
    found = mg.grad(ys, inputs, weights, create_graph=graph, materialize_grads=True)
    if not graph:
        return found
    twice = [g.exp().sum() for g in found if g.requires_grad]
    return [*found, *mg.grad(twice, inputs, materialize_grads=True)] if twice else found


@pytest.mark.parametrize("name", sorted(CATALOGUE))
def test_gradients_are_as_without_hooks(name):
    for sample in CATALOGUE[name]:
        if not sample.smooth or sample.matrix or sample.random:
            continue
        for graph in (False, True):
            plain = gradients(sample, mg.enable_grad(), graph)
            packed = gradients(sample, saved_tensors_hooks(to_numpy, mg.tensor), graph)
            for a, b in zip(plain, packed, strict=True):
                np.testing.assert_allclose(
                    b.detach().numpy(), a.detach().numpy(), rtol=1e-9, atol=1e-12
                )


def test_a_transformer_layer_to_disk_and_back(tmp_path, restore_random):
    mg.manual_seed(0)
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True).double()
    x = mg.randn(2, 4, 8, dtype=mg.float64, requires_grad=True)
    files = []

    def to_disk(t):
        path = tmp_path / f"{len(files)}.npy"
        np.save(path, t.detach().numpy())
        files.append(path)
        return path

    (expected,) = mg.grad((layer(x) ** 2).sum(), x)
    with saved_tensors_hooks(to_disk, lambda path: mg.tensor(np.load(path))):
        y = (layer(x) ** 2).sum()
    assert len(files) > 20  # attention's statistics among them
    (found,) = mg.grad(y, x)
    np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-12, atol=1e-14)


def test_recurrent_layers(restore_random):
    for make in (nn.RNN, nn.LSTM, nn.GRU):
        mg.manual_seed(0)
        layer = make(3, 4).double()
        x = mg.randn(5, 2, 3, dtype=mg.float64, requires_grad=True)
        (expected,) = mg.grad(layer(x)[0].sum(), x)
        with saved_tensors_hooks(to_numpy, mg.tensor):
            y = layer(x)[0].sum()
        np.testing.assert_array_equal(mg.grad(y, x)[0].numpy(), expected.numpy())


def test_when_hooks_are_called_and_with_what():
    w = nn.Parameter(mg.ones(3, 3))
    x = mg.ones(2, 3)
    seen = []

    def pack(t):
        seen.append(("pack", t.shape, t is w))
        assert not mg.is_grad_enabled()
        return len(seen) - 1, t

    def unpack(packed):
        seen.append(("unpack", packed[0]))
        assert not mg.is_grad_enabled()
        return packed[1]

    with saved_tensors_hooks(pack, unpack):
        y = (x @ w).exp()
        assert seen == [("pack", (2, 3), False), ("pack", (3, 3), True), ("pack", (2, 3), False)]
        y + 1  # saves nothing
        assert len(seen) == 3
    del seen[:]
    y.sum().backward()
    assert seen == [("unpack", 2), ("unpack", 0), ("unpack", 1)]
    assert w.grad is not None


def test_a_view_of_a_leaf_is_not_the_leaf():
    x = mg.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    (expected,) = mg.grad((x @ x.mT).exp().sum(), x)
    with saved_tensors_hooks(to_numpy, mg.tensor):
        y = (x @ x.mT).exp().sum()
    assert mg.grad(y, x)[0].tolist() == expected.tolist()


def test_the_innermost_hooks_of_the_thread_count():
    x = mg.ones(2, requires_grad=True)
    seen = []

    def noting(name):
        return saved_tensors_hooks(lambda t: seen.append(name) or t, identity)

    with noting("outer"):
        x.exp()
        with noting("inner"):
            x.exp()
        x.exp()
        thread = threading.Thread(target=x.exp)
        thread.start()
        thread.join()
    x.exp()
    assert seen == ["outer", "inner", "outer"]


def test_hooks_of_a_generator_that_another_thread_closes():
    x, outer, inner = mg.ones(2, requires_grad=True), [], []

    def noted(log):
        return saved_tensors_hooks(lambda t: (log.append(1), t)[1], lambda t: t)

    def generator():
        with noted(inner):
            yield
            yield

    with noted(outer):
        running = generator()
        next(running)
        x.exp()
        thread = threading.Thread(target=running.close)
        thread.start()
        thread.join()
        x.exp()
    x.exp()
    assert (len(outer), len(inner)) == (1, 1)


def test_operations_in_hooks_are_not_packed():
    x = mg.ones(2, requires_grad=True)
    count = []

    def pack(t):
        count.append(1)
        with mg.enable_grad():
            return (t.detach().requires_grad_() * 2.0).exp().log().detach() / 2

    with saved_tensors_hooks(pack, identity):
        y = (x * x).sum()
    y.backward()
    np.testing.assert_allclose(x.grad.numpy(), [2, 2], rtol=1e-6)
    assert len(count) == 2


# ---- memory --------------------------------------------------------------------------------------


def held(action):
    """Bytes that an action left allocated, and its result."""
    gc.collect()
    before = lib.mg_live_bytes()
    result = action()
    gc.collect()
    return lib.mg_live_bytes() - before, result


def deep(x):
    for _ in range(10):
        x = x.sin()
    return x.sum()


def test_half_the_memory_in_float32():
    x = mg.full((1 << 16,), 0.5, dtype=mg.float64, requires_grad=True)
    plain, y = held(lambda: deep(x))
    del y

    def packed():
        with saved_tensors_hooks(lambda t: t.float(), lambda t: t.double()):
            return deep(x)

    small, y = held(packed)
    assert plain > 9 * x.nbytes
    assert small < plain * 0.6
    y.backward()
    np.testing.assert_allclose(x.grad.numpy(), mg.grad(deep(x), x)[0].numpy(), rtol=1e-5)


def test_what_is_packed_goes_with_the_graph():
    x = mg.full((1 << 16,), 0.5, requires_grad=True)

    def run():
        with saved_tensors_hooks(lambda t: t.clone(), identity):
            y = deep(x)
        y.backward()
        x.grad = None
        return y

    left, _ = held(run)
    assert left < x.nbytes


# ---- staleness, and wrong hooks ------------------------------------------------------------------


PACKS = [identity, lambda t: (1, [t]), lambda t: {"t": t.detach()}, lambda t: t.detach().numpy()]


@pytest.mark.parametrize("pack", PACKS)
def test_a_write_into_what_is_packed_is_noticed(pack):
    def unpack(packed):
        while isinstance(packed, (tuple, list, dict)):
            packed = list(packed.values() if isinstance(packed, dict) else packed)[-1]
        return mg.as_tensor(packed)

    x = mg.ones(3, requires_grad=True)
    w = mg.ones(3)
    with saved_tensors_hooks(pack, unpack):
        y = (x * w).sum()
    w += 1
    with pytest.raises(RuntimeError, match="a tensor saved for backward was overwritten in place"):
        y.backward()


def test_a_write_into_what_was_copied_is_none():
    x = mg.ones(3, requires_grad=True)
    w = mg.ones(3)
    with saved_tensors_hooks(lambda t: t.clone(), identity):
        y = (x * w).sum()
    w += 1
    y.backward()
    assert x.grad.tolist() == [1, 1, 1]


WRONG = {
    "no tensor": (lambda p: 1, TypeError, r"int for a tensor that mul saved, not a Tensor"),
    "shape": (
        lambda p: p[:1],
        ValueError,
        r"shape \(1,\) for a tensor of shape \(3,\) that mul saved",
    ),
    "dtype": (
        lambda p: p.double(),
        TypeError,
        r"float64 for a float32 tensor that mul saved: convert it with \.to\(mg\.float32\)",
    ),
}


@pytest.mark.parametrize("case", WRONG.values(), ids=WRONG)
def test_what_unpack_returns_is_checked(case):
    unpack, error, text = case
    x = mg.ones(3, requires_grad=True)
    with saved_tensors_hooks(identity, unpack):
        y = (x * mg.ones(3)).sum()
    with pytest.raises(error, match=r"\[saved_tensors_hooks\] unpack returned " + text):
        y.backward()
    assert x.grad is None


def test_errors():
    with pytest.raises(TypeError, match=r"\[saved_tensors_hooks\] a hook is a function, not int"):
        saved_tensors_hooks(1, identity)
    x = mg.ones(3, requires_grad=True)

    def fail(t):
        raise KeyError("pack")

    with pytest.raises(KeyError), saved_tensors_hooks(fail, identity):
        x.exp()
    assert x.exp().requires_grad
    with saved_tensors_hooks(identity, fail):
        y = x.exp().sum()
    with pytest.raises(KeyError):
        y.backward()


def test_a_graph_is_used_up_with_hooks_too():
    x = mg.ones(3, requires_grad=True)
    with saved_tensors_hooks(to_numpy, mg.tensor):
        y = x.exp().sum()
    y.backward(retain_graph=True)
    y.backward()
    with pytest.raises(RuntimeError, match="the graph was freed"):
        y.backward()
    np.testing.assert_allclose(x.grad.numpy(), 2 * np.e, rtol=1e-6)


# ---- Functions, hooks of nodes, checkpoints ------------------------------------------------------


class Cube(mg.Function):
    """x to the third."""

    @staticmethod
    def forward(ctx, x):
        y = x * x
        ctx.save_for_backward(x, y.detach(), None)
        return x * y

    @staticmethod
    def backward(ctx, g):
        x, _, nothing = ctx.saved_tensors
        assert nothing is None
        return g * 3 * x * x


class Exp(mg.Function):
    """The exponential, which saves its result."""

    @staticmethod
    def forward(ctx, x):
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[0]


def test_functions_are_packed_too():
    x = mg.tensor([2.0, 3.0], requires_grad=True)
    count = []
    with saved_tensors_hooks(lambda t: count.append(1) or to_numpy(t), mg.tensor):
        y = Cube.apply(x)
        z = Exp.apply(x)
    assert len(count) == 3
    (dx,) = mg.grad(y.sum(), x, create_graph=True)
    assert dx.tolist() == [12, 27]
    assert mg.grad(dx.sum(), x)[0].tolist() == [12, 18]
    (dx,) = mg.grad(z.sum(), x, create_graph=True)
    np.testing.assert_allclose(mg.grad(dx.sum(), x)[0].numpy(), np.exp([2, 3]), rtol=1e-6)


def test_saved_attributes_of_nodes():
    x = mg.tensor([2.0, 3.0], requires_grad=True)
    with saved_tensors_hooks(to_numpy, mg.tensor):
        y = x.exp()
        z = y * y
    assert y.grad_fn._saved_result.tolist() == y.tolist()
    assert y.grad_fn._saved_result.grad_fn is y.grad_fn
    assert z.grad_fn._saved_self.tolist() == y.tolist()
    assert z.grad_fn.name() == "mul"


def test_gradients_through_a_packed_result():
    """A saved result is still the result, when its own gradient is asked for."""
    x = mg.tensor([0.5], requires_grad=True)
    with saved_tensors_hooks(to_numpy, mg.tensor):
        y = x.exp()
    (dx,) = mg.grad(y.sum(), x, create_graph=True)
    assert mg.grad(dx.sum(), y)[0].tolist() == [1]


def test_with_hooks_of_nodes_checkpoints_and_anomalies():
    x = mg.tensor([0.5, 0.7], requires_grad=True)
    seen = []
    with mg.detect_anomaly(), saved_tensors_hooks(to_numpy, mg.tensor):
        y = x.exp()
        y.grad_fn.register_hook(lambda inputs, outputs: seen.append(len(inputs)))
        z = mg.utils.checkpoint.checkpoint(lambda t: t.sin() * t, y).sum()
        z.backward()
    e = np.exp([0.5, 0.7])
    np.testing.assert_allclose(x.grad.numpy(), (np.cos(e) * e + np.sin(e)) * e, rtol=1e-6)
    assert seen == [1]


def test_the_hooks_are_called_as_pytorchs():
    torch = pytest.importorskip("torch")

    def run(lib, hooks):
        seen = []
        x = lib.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)

        def pack(t):
            seen.append(("pack", tuple(t.shape)))
            return t

        def unpack(t):
            seen.append(("unpack", tuple(t.shape)))
            return t

        with hooks(pack, unpack):
            y = ((x * x).exp() / x.sin()).sum()
        y.backward()
        return sorted(seen), x.grad.tolist()

    ours, theirs = (
        run(mg, saved_tensors_hooks),
        run(torch, torch.autograd.graph.saved_tensors_hooks),
    )
    assert ours[0] == theirs[0]
    np.testing.assert_allclose(ours[1], theirs[1], rtol=1e-6)


def test_a_backward_within_a_hook_is_not_watched():
    x = mg.ones(2, requires_grad=True)

    def unpack(t):
        z = mg.ones(1, requires_grad=True)
        with mg.enable_grad():
            (z * 2.0).sum().backward()
        return t * z.grad / 2

    with mg.detect_anomaly(), saved_tensors_hooks(lambda t: t.clone(), unpack):
        y = (x.exp() * x.exp()).sum()
        y.backward()
        with pytest.raises(RuntimeError, match="log made -inf"):
            mg.zeros(1).log()
    np.testing.assert_allclose(x.grad.numpy(), 2 * np.exp(2), rtol=1e-6)


def test_forward_mode_where_no_gradient_comes():
    class Sine(mg.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(x)
            return x.sin()

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * x.cos(), None

    def function(x):
        with saved_tensors_hooks(lambda t: t.clone(), lambda t: t):
            y = x * x
        return Sine.apply(x, y)

    x = mg.tensor([1.0, 2.0])
    np.testing.assert_allclose(mg.func.jvp(function, (x,), (x,))[1].numpy(), (x * x.cos()).numpy())
    np.testing.assert_allclose(mg.func.jacfwd(function)(x).numpy(), x.cos().diag().numpy())
