"""Compiled modules: PyTorch's OptimizedModule, ``model.compile()`` and decorated methods."""

from __future__ import annotations

import copy
import pickle
import warnings

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn

SCALE = 2.0


@pytest.fixture(autouse=True)
def _seeded(restore_random):
    mg.manual_seed(0)


class Scaled(nn.Module):
    """A module that names a global variable, and has a method beside forward."""

    def __init__(self):
        self.linear = nn.Linear(3, 2)
        self.norm = nn.BatchNorm1d(2)
        self.factor = 3.0

    def forward(self, x):
        return self.scaled(self.norm(self.linear(x)))

    def scaled(self, x):
        return x * SCALE * self.factor


def same(a, b):
    return a.detach().numpy().tobytes() == b.detach().numpy().tobytes()


def test_it_is_a_module_with_the_modules_parts():
    model = Scaled()
    run = mg.compile(model)
    assert isinstance(run, nn.Module)
    assert run._orig_mod is model
    assert [id(p) for p in run.parameters()] == [id(p) for p in model.parameters()]
    assert list(run.state_dict()) == [f"_orig_mod.{name}" for name in model.state_dict()]
    assert [name for name, _ in run.named_children()] == ["_orig_mod"]
    assert run.linear is model.linear
    assert run.factor == 3.0
    assert same(run.scaled(mg.ones(2)), model.scaled(mg.ones(2)))
    assert {"linear", "factor", "_orig_mod"} <= set(dir(run))
    other = mg.compile(Scaled())
    other.load_state_dict(run.state_dict())
    assert same(other.linear.weight, model.linear.weight)
    with pytest.raises(AttributeError, match="nothing"):
        run.nothing  # noqa: B018 - it raises
    assert run.double().linear.weight.dtype is mg.float64


def test_attributes_are_those_of_the_module():
    model = Scaled()
    run = mg.compile(model)
    x = mg.randn(4, 3)
    run(x)
    run.factor = 5.0
    assert model.factor == 5.0
    assert same(run(x), model(x))
    run.linear = nn.Linear(3, 2)
    assert model.linear is run.linear
    assert same(run(x), model(x))
    del run.factor
    assert not hasattr(model, "factor")


def test_train_and_eval_reach_the_module():
    model = Scaled()
    run = mg.compile(model)
    assert run.training
    run.eval()
    assert not run.training
    assert not model.training
    assert not model.norm.training
    model.train()
    assert run.training
    assert run.train(False) is run
    assert not model.norm.training


def test_hooks_of_the_wrapper_and_of_the_module():
    model = nn.Linear(2, 2)
    run = mg.compile(model)
    calls = []
    handle = run.register_forward_hook(lambda m, args, out: calls.append(m) or out * 2)
    for _ in range(3):
        assert same(run(mg.ones(1, 2)), model(mg.ones(1, 2)) * 2)
    handle.remove()
    assert calls == [run] * 3
    seen = []
    model.register_forward_pre_hook(lambda m, args: (args[0] + 1,))
    assert same(run(mg.ones(1, 2)), model(mg.ones(1, 2)))
    model.register_forward_hook(lambda m, args, out: seen.append(1))
    with pytest.warns(UserWarning, match="changes a value in Python"):
        run(mg.ones(1, 2))
    run(mg.ones(1, 2))
    assert seen == [1, 1]


def test_hooks_of_a_part_that_change_python_are_seen():
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    kept = {}
    model[0].register_forward_hook(lambda m, args, out: kept.update(out=out.detach()))
    run = mg.compile(model)
    with pytest.warns(UserWarning, match="runs without a program"):
        run(mg.ones(1, 2))
    for k in range(3):
        run(mg.full((1, 2), float(k)))
        assert same(kept["out"], model[0](mg.full((1, 2), float(k))))


def test_backward_hooks_of_a_part_run():
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))
    seen = []
    model[0].register_full_backward_hook(lambda m, g_in, g_out: seen.append(g_out[0].shape))
    run = mg.compile(model)
    with pytest.warns(UserWarning, match="runs without a program"):
        run(mg.ones(1, 2)).sum().backward()
    run(mg.ones(1, 2)).sum().backward()
    assert seen == [(1, 2), (1, 2)]


def test_hooks_of_all_modules():
    model, calls = nn.Linear(2, 1), []
    run = mg.compile(model)
    run(mg.ones(1, 2))
    hook = nn.modules.module.register_module_forward_hook(lambda *_: calls.append(1))
    with pytest.warns(UserWarning, match="hooks of all modules"):
        run(mg.ones(1, 2))
    run(mg.ones(1, 2))
    assert calls == [1] * 4  # of the model, and of what compile returned
    hook.remove()
    run(mg.ones(1, 2))
    assert len(calls) == 4


@pytest.mark.parametrize("value", [nn.Parameter(mg.full((2,), 5.0)), mg.full((2,), 5.0), 5.0])
@pytest.mark.parametrize("kind", [nn.ParameterList, nn.ParameterDict])
def test_entries_of_lists_and_dicts_of_parameters_are_guarded(kind, value):
    first = nn.Parameter(mg.ones(2))
    held, key = (kind([first]), 0) if kind is nn.ParameterList else (kind({"a": first}), "a")
    run = mg.compile(lambda x: x * held[key])
    for _ in range(2):
        assert run(mg.ones(2)).tolist() == [1.0, 1.0]
    held[key] = value
    for _ in range(2):
        assert run(mg.ones(2)).tolist() == [5.0, 5.0]
    held.pop(key)
    with pytest.raises((IndexError, KeyError)):
        run(mg.ones(2))


def test_a_global_variable_that_forward_names_is_guarded(monkeypatch):
    model = Scaled().eval()
    run = mg.compile(model)
    x = mg.randn(4, 3)
    for scale in (2.0, 3.0, 2.0):
        monkeypatch.setitem(globals(), "SCALE", scale)
        assert same(run(x), model(x))
    assert run.recordings == 2


def test_copies_and_pickles():
    model = Scaled()
    run = mg.compile(model)
    x = mg.randn(4, 3)
    run(x).sum().backward()
    for made in (copy.deepcopy(run), pickle.loads(pickle.dumps(run))):
        assert type(made) is type(run)
        assert made._orig_mod is not model
        assert made.recordings == 0
        assert all(same(a, b) for a, b in zip(made.parameters(), run.parameters(), strict=True))
        made.eval()
        made(x).sum().backward()
        assert made.recordings == 1
        assert model.training
    shallow = copy.copy(run)
    assert shallow._orig_mod is model
    assert same(shallow(x), run(x))


def test_a_module_compiled_in_place():
    model = Scaled()
    plain = copy.deepcopy(model)
    names = list(model.state_dict())
    model.compile()
    assert list(model.state_dict()) == names
    sgd = [mg.optim.SGD(m.parameters(), lr=0.1, momentum=0.9) for m in (plain, model)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(4):
            x = mg.randn(4, 3)
            for m, optimizer in zip((plain, model), sgd, strict=True):
                optimizer.zero_grad()
                m(x).pow(2).sum().backward()
                optimizer.step()
    assert all(same(a, b) for a, b in zip(plain.parameters(), model.parameters(), strict=True))
    assert all(same(a, b) for a, b in zip(plain.buffers(), model.buffers(), strict=True))
    assert model.forward.recordings == 1
    model.compile()
    assert model.forward.recordings == 0
    for made in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert made.forward.function.__self__ is made
        assert same(made.eval()(x), plain.eval()(x))


def test_hooks_and_compile_in_place():
    model, calls = nn.Linear(2, 1), []
    handle = model.register_forward_hook(lambda m, args, out: calls.append("first"))
    model.compile()
    second = model.register_forward_hook(lambda m, args, out: calls.append("second"))
    for _ in range(3):
        model(mg.ones(1, 2)).sum().backward()
    assert calls == ["first", "second"] * 3
    handle.remove()
    second.remove()
    model(mg.ones(1, 2))
    assert calls == ["first", "second"] * 3
    assert model.forward.recordings == 1


def test_compile_in_place_may_be_switched_off(monkeypatch):
    monkeypatch.setenv("MINIGRAD_COMPILE", "0")
    model = nn.Linear(2, 1)
    model.compile()
    assert "forward" not in model.__dict__


class Decorated(nn.Module):
    """A module with compiled methods."""

    def __init__(self, factor):
        self.w = nn.Parameter(mg.ones(2))
        self.factor = factor

    @mg.compile
    def forward(self, x):
        return self.w * x * self.factor

    @mg.compile
    def loss(self, x):
        return (self(x) ** 2).sum()


class Plain:
    """An object that is no module."""

    def __init__(self, factor):
        self.factor = factor

    @mg.compile
    def __call__(self, x):
        return x * self.factor


def test_decorated_methods():
    a, b = Decorated(2.0), Decorated(3.0)
    x = mg.tensor([1.0, 2.0])
    for _ in range(3):
        assert a(x).tolist() == [2.0, 4.0]
        assert b(x).tolist() == [3.0, 6.0]
        a.w.grad = None
        a.loss(x).backward()
        assert a.w.grad.tolist() == [8.0, 32.0]
    a.factor = 5.0
    assert a(x).tolist() == [5.0, 10.0]
    c, d = Plain(2.0), Plain(3.0)
    for _ in range(2):
        assert (c(x).tolist(), d(x).tolist()) == ([2.0, 4.0], [3.0, 6.0])
    c.factor = 7.0
    assert c(x).tolist() == [7.0, 14.0]


@mg.compile
def doubled(x):
    return x * 2


def test_a_decorated_function_can_be_pickled():
    assert pickle.loads(pickle.dumps(doubled)) is doubled
    assert doubled(mg.ones(2)).tolist() == [2.0, 2.0]


def test_a_lazy_layer_is_recorded_once_it_has_its_parameters():
    model = nn.Sequential(nn.LazyLinear(4), nn.ReLU(), nn.Linear(4, 1))
    run = mg.compile(model)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(3):
            run(mg.randn(2, 3)).sum().backward()
    assert run.recordings == 1


def test_functional_call_of_a_compiled_module():
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh())
    run = mg.compile(model)
    x = mg.randn(2, 3)
    for _ in range(3):
        assert same(run(x), model(x))
        values = {name: mg.randn(*p.shape) for name, p in model.named_parameters()}
        renamed = {f"_orig_mod.{name}": value for name, value in values.items()}
        found = mg.func.functional_call(run, renamed, (x,))
        assert same(found, mg.func.functional_call(model, values, (x,)))
    assert run.recordings == 1


def test_a_checkpoint_around_a_compiled_module():
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh())
    run = mg.compile(model)
    for _ in range(4):
        x = mg.randn(2, 3, requires_grad=True)
        asked = [x, *model.parameters()]
        found = mg.grad(mg.checkpoint(run, x * 2).sum(), asked)
        expected = mg.grad(model(x * 2).sum(), asked)
        assert all(same(a, b) for a, b in zip(found, expected, strict=True))


def test_results_in_containers():
    class Several(nn.Module):
        def __init__(self):
            self.linear = nn.Linear(3, 3)

        def forward(self, x, *, scale=1.0):
            y = self.linear(x)
            return {"a": y * scale, "b": (x.sum(), [self.linear.weight, y.relu()])}

    model = Several()
    run = mg.compile(model)
    x = mg.randn(2, 3)
    for scale in (1.0, 2.0, 1.0, 2.0):
        found, expected = run(x, scale=scale), model(x, scale=scale)
        assert found["b"][1][0] is model.linear.weight
        (g,) = mg.grad(found["a"].sum() + found["b"][1][1].sum(), [model.linear.weight])
        (h,) = mg.grad(expected["a"].sum() + expected["b"][1][1].sum(), [model.linear.weight])
        assert same(g, h)
    assert run.recordings == 2


def test_a_state_that_is_carried_from_call_to_call():
    layer = nn.GRU(3, 4, batch_first=True)
    run = mg.compile(layer)
    states = None, None
    for k in range(6):
        x = mg.randn(2, 3, 3)
        pairs = [f(x, h) for f, h in zip((layer, run), states, strict=True)]
        assert same(pairs[0][0], pairs[1][0])
        grads = [
            mg.grad(y.sum() + h.pow(2).sum(), list(layer.parameters()), retain_graph=True)
            for y, h in pairs
        ]
        for a, b in zip(*grads, strict=True):
            assert mg.allclose(a, b, rtol=1e-4, atol=1e-6)
        states = tuple(h.detach() if k % 2 else h for _, h in pairs)
    assert run.recordings == 3


def test_memory_of_numpys_runs_without_a_program():
    layer = nn.Linear(3, 2)
    run = mg.compile(layer)
    with pytest.warns(UserWarning, match="NumPy can write"):
        run(mg.from_numpy(np.ones((2, 3), "float32")))
    values = np.ones((2, 3), "float32")
    y = run(mg.from_numpy(values))
    values[:] = 5
    y.sum().backward()
    assert layer.weight.grad.tolist() == [[2.0] * 3] * 2
