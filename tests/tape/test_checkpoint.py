"""Checkpoints: gradients as without them, random numbers replayed, what is let go, and errors."""

from __future__ import annotations

import gc
import weakref
from collections import defaultdict
from contextlib import contextmanager

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn
from minigrad.runtime import native
from minigrad.utils.checkpoint import checkpoint, checkpoint_sequential

pytestmark = pytest.mark.usefixtures("restore_random")


def model():
    mg.manual_seed(1)
    layers = (nn.Linear(3, 8), nn.Tanh(), nn.Dropout(0.3), nn.Linear(8, 8), nn.GELU())
    return nn.Sequential(*layers, nn.Linear(8, 2)).double()


def gradients_of(run):
    """The loss, the gradients of x and of all parameters, and a number drawn after that."""
    made = model()
    x = mg.arange(12.0, dtype=mg.float64).reshape(4, 3).requires_grad_()
    mg.manual_seed(5)
    loss = (run(made, x * 0.1) ** 2).sum()
    loss.backward()
    return [loss.item(), mg.rand(1).item(), x.grad, *[p.grad for p in made.parameters()]]


def assert_same_bits(a, b):
    for left, right in zip(a, b, strict=True):
        np.testing.assert_array_equal(np.asarray(left), np.asarray(right))


RUNS = {
    "whole": lambda made, x: checkpoint(made, x),
    "reentrant": lambda made, x: checkpoint(made, x, use_reentrant=True),
    "in parts": lambda made, x: checkpoint(made[3:], checkpoint(made[:3], x)),
    "nested": lambda made, x: checkpoint(lambda t: made[3:](checkpoint(made[:3], t)), x),
    "sequential": lambda made, x: checkpoint_sequential(made, 3, x),
    "sequential of one": lambda made, x: checkpoint_sequential(made, 1, x),
    "by keyword": lambda made, x: checkpoint(lambda *, t: made(t), t=x),
    "captured": lambda made, x: checkpoint(lambda: made(x)),
}


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
def test_gradients_and_random_numbers_are_those_without_it(run):
    assert_same_bits(gradients_of(run), gradients_of(lambda made, x: made(x)))


def test_gradients_are_pytorchs():
    torch = pytest.importorskip("torch")
    from torch.utils import checkpoint as theirs

    found = []
    for m, run in ((mg, checkpoint), (torch, theirs.checkpoint)):
        x = m.tensor([0.5, -1.0], dtype=m.float64, requires_grad=True)
        w = m.tensor([2.0, 3.0], dtype=m.float64, requires_grad=True)
        y = run(lambda t, w=w: (t.exp() * w).sin(), x * 2, use_reentrant=False)
        y.sum().backward()
        found.append([y.detach().numpy(), x.grad.numpy(), w.grad.numpy()])
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


def test_second_derivatives(rng):
    x = mg.tensor(rng.normal(size=3), requires_grad=True)
    w = mg.tensor(rng.normal(size=3), requires_grad=True)

    def f(t):
        return (t.exp() * w).sin()

    found = []
    for run in (f, lambda t: checkpoint(f, t)):
        first = mg.grad(run(x * x).sum(), [x, w], create_graph=True)
        found.append([*first, *mg.grad((first[0] * first[1]).sum(), [x, w])])
    assert_same_bits([g.detach() for g in found[0]], [g.detach() for g in found[1]])
    assert mg.gradgradcheck(lambda a: checkpoint(f, a), [x])


def test_several_results_in_containers():
    x = mg.tensor([1.0, 2.0], requires_grad=True)
    plain = mg.ones(2)

    def f(t):
        y = t * t
        return {"a": y, "b": [y, t * 3, plain, 7]}, t

    made, same = checkpoint(f, x)
    assert made["a"] is made["b"][0]
    assert same is x
    assert made["b"][2:] == [plain, 7]
    assert (made["a"].output_nr, made["b"][1].output_nr) == (0, 1)
    (made["b"][1] * 2).sum().backward(retain_graph=True)
    assert x.grad.tolist() == [6.0, 6.0]
    (made["a"] + made["b"][1]).sum().backward()
    assert x.grad.tolist() == [11.0, 13.0]


def test_steps_are_let_go():
    kept = []

    def f(t):
        y = t.exp()
        kept.append(weakref.ref(y.grad_fn))
        return y.sin()

    x = mg.ones(4, requires_grad=True)
    y = checkpoint(f, x)
    gc.collect()
    assert kept[0]() is None
    y.sum().backward()
    gc.collect()
    assert len(kept) == 2
    assert kept[1]() is None


def test_memory_of_a_deep_net(restore_random):
    """Of 32 layers in 8 checkpoints, forward keeps 8 inputs, and backward 4 layers at a time."""
    mg.manual_seed(0)
    blocks = [nn.Sequential(nn.Linear(64, 64), nn.Tanh()) for _ in range(32)]
    model, x = nn.Sequential(*blocks), mg.randn(2048, 64)
    layer = x.nbytes

    def measured(run):
        gc.collect()
        before = native.lib.mg_live_bytes()
        peak = []
        with native.trace(lambda *_: peak.append(native.lib.mg_live_bytes() - before)):
            loss = run(x).square().sum()
            after_forward = native.lib.mg_live_bytes() - before
            loss.backward()
        gradients = [p.grad.numpy().copy() for p in model.parameters()]
        model.zero_grad()
        return after_forward / layer, max(peak) / layer, gradients

    forward, peak, expected = measured(model)
    assert forward > 32
    forward_less, peak_less, found = measured(lambda x: mg.checkpoint_sequential(model, 8, x))
    assert forward_less < 14  # seven inputs, and the last part as it is
    assert peak_less < 16 < 32 < peak
    assert_same_bits(found, expected)


def test_names_at_the_top():
    assert mg.checkpoint is checkpoint
    assert mg.checkpoint_sequential is checkpoint_sequential


def test_hooks_are_called_once():
    x, seen = mg.ones(2, requires_grad=True), []
    x.register_hook(lambda g: seen.append("leaf") or g * 2)
    inner = x * 3
    inner.register_hook(lambda g: seen.append("node") or g * 5)
    w = mg.ones(2, requires_grad=True)
    w.register_hook(lambda g: seen.append("captured"))
    checkpoint(lambda t: t * w * x, inner).sum().backward()
    assert sorted(seen) == ["captured", "leaf", "node"]
    assert x.grad.tolist() == [2 * (5 * 3 + 3)] * 2


def test_an_end_that_another_end_was_computed_from():
    x = mg.tensor(2.0, requires_grad=True)
    y = x * x
    z = checkpoint(lambda a, b: a * b, y, x)
    z.backward()
    assert x.grad.item() == 12.0


def test_backward_again():
    x = mg.tensor(2.0, requires_grad=True)
    y = checkpoint(lambda t: t * t, x)
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.item() == 8.0
    with pytest.raises(RuntimeError, match="graph was freed at 'checkpoint'"):
        y.backward()


def test_without_gradients_it_is_the_call():
    seen = []
    with mg.no_grad():
        assert not checkpoint(lambda t: t * 2, mg.ones(1, requires_grad=True)).requires_grad
    assert checkpoint(lambda t: seen.append(1) or t, mg.ones(1)).item() == 1.0
    assert checkpoint(lambda: 3) == 3
    assert seen == [1]


def test_a_result_that_is_a_view_has_its_own_memory():
    x = mg.arange(4.0).requires_grad_()
    y = x * 1.0
    part = checkpoint(lambda t: t[:2], y)
    part.mul_(5.0)
    assert y.tolist() == [0.0, 1.0, 2.0, 3.0]
    part.sum().backward()
    assert x.grad.tolist() == [5.0, 5.0, 0.0, 0.0]


def test_contexts_of_both_calls():
    seen = []

    @contextmanager
    def note(name):
        seen.append(name)
        yield

    x = mg.ones(1, requires_grad=True)
    y = checkpoint(lambda t: t * t, x, context_fn=lambda: (note("first"), note("again")))
    assert seen == ["first"]
    y.backward()
    assert seen == ["first", "again"]


def test_an_argument_that_was_overwritten():
    x = mg.ones(2, requires_grad=True) * 2.0
    y = checkpoint(lambda t: t * t, x)
    x += 1.0
    with pytest.raises(RuntimeError, match=r"\[checkpoint\] a tensor saved .* overwritten"):
        y.sum().backward()


def test_a_weight_that_was_overwritten():
    w = mg.ones(2, requires_grad=True)
    y = checkpoint(lambda t: t + w, mg.ones(2))
    with mg.no_grad():
        w.mul_(2.0)
    with pytest.raises(RuntimeError, match=r"\[checkpoint\] the function gave results of other va"):
        y.sum().backward()


USES = {
    "in a list": (lambda x, f: checkpoint(lambda t: f(t[0]), [x])),
    "in a dict by keyword": (lambda x, f: checkpoint(lambda *, t: f(t["x"]), t={"x": x})),
    "captured": (lambda x, f: checkpoint(lambda: f(x))),
    "captured in a checkpoint": (lambda x, f: checkpoint(lambda: checkpoint(lambda: f(x)))),
    "captured by a Function": (lambda x, f: checkpoint(lambda: Magnitude.apply(x))),
}


class Magnitude(mg.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.abs()

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * x.sign()


@pytest.mark.parametrize("use", USES.values(), ids=USES)
@pytest.mark.parametrize("is_leaf", [True, False])
def test_a_write_that_changes_no_result_is_noticed(use, is_leaf):
    leaf = mg.tensor([1.0, -2.0], requires_grad=True)
    x = leaf if is_leaf else leaf * 1.0
    y = use(x, mg.abs)
    with mg.no_grad():
        x.neg_()
    with pytest.raises(RuntimeError, match=r"\[checkpoint\] a tensor saved .* overwritten"):
        y.sum().backward()
    assert leaf.grad is None


@pytest.mark.parametrize("captured", [False, True])
@pytest.mark.parametrize("borrowed", [False, True])
def test_a_write_by_numpy_that_changes_no_result_is_noticed(captured, borrowed):
    values = np.array([[1.0, -2.0]])
    x = (mg.from_numpy(values) if borrowed else mg.tensor(values)).requires_grad_()
    memory = values if borrowed else x.detach().numpy()
    y = checkpoint(lambda: x.abs()) if captured else checkpoint(mg.abs, x)
    y.sum().backward(retain_graph=True)
    assert x.grad.tolist() == [[1.0, -1.0]]
    memory *= -1.0
    with pytest.raises(RuntimeError, match=r"\[checkpoint\] NumPy wrote into a tensor"):
        y.sum().backward()


@pytest.mark.parametrize("shape", [(), (0,), (2, 0)])
def test_memory_of_numpys_without_elements_or_dimensions(shape):
    x = mg.from_numpy(np.ones(shape)).requires_grad_()
    checkpoint(lambda t: t * 2, x).sum().backward()
    assert x.grad.tolist() == (2.0 * np.ones(shape)).tolist()


def test_a_write_by_the_function_itself_is_noticed():
    x = mg.tensor([1.0, -2.0], requires_grad=True) * 1.0

    def function():
        y = x.abs()
        with mg.no_grad():
            x.neg_()
        return y

    y = checkpoint(function)
    with pytest.raises(RuntimeError, match=r"\[checkpoint\] a tensor saved .* overwritten"):
        y.sum().backward()


def test_arguments_are_as_they_were_in_lists_too():
    x = mg.ones(2, requires_grad=True)
    given = [x * 2.0]

    def function(tensors):
        tensors.append(tensors[0] * 3.0)
        return sum(tensors)

    y = checkpoint(function, given)
    given[0] = None
    y.sum().backward()
    assert x.grad.tolist() == [8.0, 8.0]


def test_arguments_of_other_collections_are_given_on():
    numbers = defaultdict(list, {"factor": 2.0})
    x = mg.ones(2, requires_grad=True)
    checkpoint(lambda t, d, size: t * d["factor"] * len(size), x, numbers, x.shape).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


def test_forward_mode_asks_for_hooks_on_its_way_alone():
    w = mg.tensor([2.0], requires_grad=True)
    w.register_hook(lambda g: g * 3)
    x, t = mg.ones(1), mg.ones(1)
    assert mg.func.jvp(lambda x: checkpoint(lambda x: x * w, x), (x,), (t,))[1].item() == 2.0
    with pytest.raises(RuntimeError, match=r"\[jvp\] .* has a hook"):
        mg.func.jvp(lambda x: checkpoint(lambda x: hooked(x) * w, x), (x,), (t,))


def hooked(x):
    y = x * 1.0
    y.register_hook(lambda g: g * 3)
    return y


def test_a_captured_tensor_of_a_vmap():
    w, x = mg.tensor(2.0, requires_grad=True), mg.tensor([[1.0], [2.0]])
    y = mg.vmap(lambda row: checkpoint(lambda t: t * row, w))(x)
    y.sum().backward()
    assert y.tolist() == [[2.0], [4.0]]
    assert w.grad.item() == 3.0


def test_a_function_that_computes_something_else():
    x, w = mg.ones(2, requires_grad=True), mg.ones(2, requires_grad=True)
    turns = iter([x, w])
    y = checkpoint(lambda: next(turns) * 1.0)
    with pytest.raises(RuntimeError, match="gave results of other tensors"):
        y.sum().backward()
    counts = iter([1, 2])
    y = checkpoint(lambda t: [t * k for k in range(1, 1 + next(counts))], x)[0]
    with pytest.raises(RuntimeError, match="gave 2 results in place of 1"):
        y.sum().backward()
    assert x.grad is None


def test_random_numbers_that_are_not_replayed():
    x = mg.ones(50, requires_grad=True)

    def f(t):
        return nn.functional.dropout(t)

    y = checkpoint(f, x, preserve_rng_state=False)
    with pytest.raises(RuntimeError, match="gave results of other values"):
        y.sum().backward()
    y = checkpoint(f, x, preserve_rng_state=False, determinism_check="none")
    y.sum().backward()


def test_an_error_in_the_second_call_leaves_the_random_state():
    turns = iter([False, True])

    def f(t):
        if next(turns):
            raise ZeroDivisionError
        return t * mg.rand(1)

    y = checkpoint(f, mg.ones(1, requires_grad=True))
    state = mg.get_rng_state()["philox"]
    with pytest.raises(ZeroDivisionError):
        y.backward()
    assert str(mg.get_rng_state()["philox"]) == str(state)


def test_errors():
    with pytest.raises(TypeError, match=r"\[checkpoint\] expected a function or a module"):
        checkpoint(mg.ones(1), 1)
    with pytest.raises(ValueError, match="determinism_check is 'some'"):
        checkpoint(abs, mg.ones(1), determinism_check="some")
    for segments in (0, 3):
        with pytest.raises(ValueError, match=rf"2 functions cannot be in {segments} segments"):
            checkpoint_sequential([abs, abs], segments, mg.ones(1))
