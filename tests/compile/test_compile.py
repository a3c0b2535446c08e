"""Compiled functions do what the functions do: values, gradients, states, errors and reasons."""

from __future__ import annotations

import argparse
import collections
import contextlib
import copy
import functools
import itertools
import os
import random
import threading
import types
import warnings
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn
from minigrad.nn import functional as F
from minigrad.runtime import recorders
from minigrad.runtime.native import lib, tracers
from minigrad.tape.hooks import forwards

ROW_FACTOR, ROW_SHIFT = 2.0, mg.zeros(2)

pytestmark = [
    pytest.mark.usefixtures("restore_random"),
    pytest.mark.filterwarnings("ignore:.*runs without a program"),
]


@pytest.fixture(autouse=True)
def _no_recorder_stays():
    yield
    assert not tracers
    assert not forwards
    assert not recorders.running
    assert recorders.own.recorder is None


class Options(dict):
    factor = 2.0

    def scale(self):
        return self.factor


class Items(list):
    factor = 2.0

    def scale(self):
        return self.factor


class Other(Items):
    def scale(self):
        return 10.0


@pytest.mark.parametrize("kind", [Options, Items])
def test_attributes_of_containers_of_ones_own(kind, monkeypatch):
    held = kind()
    f = mg.compile(lambda x: x * held.scale())
    assert f(mg.ones(2)).tolist() == [2.0] * 2
    for factor in (3.0, 4.0):
        held.factor = factor
        for _ in range(2):
            assert f(mg.ones(2)).tolist() == [factor] * 2
    del held.factor
    monkeypatch.setattr(kind, "factor", 5.0)
    for _ in range(2):
        assert f(mg.ones(2)).tolist() == [5.0] * 2


@dataclass
class Pair:
    x: mg.Tensor
    factor: ClassVar[float] = 2.0

    def __post_init__(self):
        self.shift = mg.zeros(2)

    def scaled(self):
        return self.x * self.factor + self.shift


class Row(NamedTuple):
    x: mg.Tensor

    def scaled(self):
        return self.x * ROW_FACTOR + ROW_SHIFT


class Tensors(list):
    factor = 2.0
    shift = mg.zeros(2)

    def scaled(self):
        return self[0] * self.factor + self.shift


@pytest.mark.parametrize("kind", [Pair, Row, Tensors])
def test_classes_and_attributes_of_arguments(kind, monkeypatch):
    f = mg.compile(lambda given: given.scaled())

    def seen(factor=None, shift=None):
        given = kind([mg.ones(2)]) if kind is Tensors else kind(mg.ones(2))
        if factor is not None:
            given.factor, given.shift = factor, shift
        return f(given).tolist()

    for _ in range(3):
        assert seen() == [2.0] * 2
    if kind is Row:
        monkeypatch.setitem(globals(), "ROW_FACTOR", 5.0)
    else:
        monkeypatch.setattr(kind, "factor", 5.0)
    for _ in range(3):
        assert seen() == [5.0] * 2
    for number in (3.0, 4.0) if kind is not Row else ():
        for _ in range(2):
            assert seen(number, mg.full((2,), number)) == [2 * number] * 2
            assert seen(number, mg.full((2,), number + 1)) == [2 * number + 1] * 2


def test_an_object_of_another_class():
    held = Items()
    f = mg.compile(lambda x: x * held.scale())
    assert f(mg.ones(2)).tolist() == [2.0] * 2
    held.__class__ = Other
    for _ in range(2):
        assert f(mg.ones(2)).tolist() == [10.0] * 2
    assert f.reasons == ["the class of held was a type and is a type"]


def test_an_attribute_under_another_name():
    held = types.SimpleNamespace(a=2.0)
    f = mg.compile(lambda x: x * (held.a if hasattr(held, "a") else 7.0))
    assert f(mg.ones(2)).tolist() == [2.0] * 2
    held.b = held.a
    del held.a
    for _ in range(2):
        assert f(mg.ones(2)).tolist() == [7.0] * 2


def test_views_of_dicts():
    options = {"scale": 2.0}
    shown = types.MappingProxyType(options)
    f = mg.compile(lambda x: x * shown["scale"])
    for scale in (2.0, 3.0):
        options["scale"] = scale
        for _ in range(2):
            assert f(mg.ones(2)).tolist() == [scale] * 2


@pytest.mark.parametrize("kind", [np.float32, np.int64, np.datetime64])
def test_numbers_of_numpy_are_values(kind):
    f = mg.compile(lambda x, n: x * int(n.astype(np.int64)))
    for number in (2, 3, 2, 3):
        n = kind(number, "s") if kind is np.datetime64 else kind(number)
        assert f(mg.ones(2), n).tolist() == [number] * 2
        del n
    assert f.recordings == 2


def test_methods_of_builtin_objects():
    f = mg.compile(lambda x, get: x * get("scale"))
    for scale in (2.0, 3.0, 4.0):
        assert f(mg.ones(2), {"scale": scale}.get).tolist() == [scale] * 2
    options = {"scale": 2.0}
    get = options.get
    g = mg.compile(lambda x: x * get("scale"))
    for scale in (2.0, 3.0):
        options["scale"] = scale
        for _ in range(2):
            assert g(mg.ones(2)).tolist() == [scale] * 2


def same(a, b):
    assert a.dtype is b.dtype
    assert a.shape == b.shape
    assert a.detach().numpy().tobytes() == b.detach().numpy().tobytes(), (a, b)


def has_program(f):
    return bool(f._recorded)


# ---- containers ----------------------------------------------------------------------------------


@dataclass
class Batch:
    x: mg.Tensor
    scale: float


class Pair(NamedTuple):
    first: mg.Tensor
    second: mg.Tensor


def test_nested_containers_go_in_and_come_out():
    @mg.compile
    def f(batch, more):
        y = batch.x * batch.scale + more["a"][0]
        return Batch(y, 2.0), {"k": [y, (y.sum(), "text")]}, Pair(y * 2, y * 3)

    for k in range(4):
        x = mg.full((3,), float(k))
        batch, named, pair = f(Batch(x, 2.0), {"a": [x]})
        same(batch.x, x * 3)
        assert named["k"][0] is batch.x
        assert named["k"][1][1] == "text"
        assert type(pair) is Pair
        same(pair.second, x * 9)
    assert f.recordings == 1
    f(Batch(x, 3.0), {"a": [x]})
    assert f.recordings == 2
    assert f.reasons == ["batch.scale was 2.0 and is 3.0"]


@pytest.mark.parametrize("kind", [collections.OrderedDict, dict])
def test_a_dict_comes_back_as_it_was(kind):
    f = mg.compile(lambda x: kind(a=x * 2))
    for _ in range(3):
        assert type(f(mg.ones(2))) is kind


def test_a_tensor_returned_twice_is_one_tensor():
    f = mg.compile(lambda x: (lambda y: [y, y])(x * 2))
    for _ in range(3):
        a, b = f(mg.ones(3))
        assert a is b


@pytest.mark.parametrize("what", [lambda d: d.update(z=d["x"] * 2), lambda d: d.pop("x")])
def test_a_changed_argument_container_is_no_program(what):
    f = mg.compile(lambda d: (d["x"] * 2, what(d))[0])
    for k in range(3):
        d, e = {"x": mg.ones(3) * k}, {"x": mg.ones(3) * k}
        f(d)
        what(e)
        assert d.keys() == e.keys()
    assert not has_program(f)


def test_an_iterator_in_the_result_is_no_program():
    f = mg.compile(lambda x: (x * 2, iter([1, 2])))
    for _ in range(3):
        assert list(f(mg.ones(2))[1]) == [1, 2]


# ---- transforms and modules ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "make",
    [
        lambda f: mg.func.grad(lambda x: f(x).sum()),
        lambda f: lambda x: mg.func.jvp(f, (x,), (x * 2,))[1],
        lambda f: mg.vmap(f),
        lambda f: mg.func.hessian(lambda x: f(x).sum()),
        lambda f: lambda x: mg.func.vjp(f, x)[1](x)[0],
        lambda f: mg.vmap(mg.func.grad(lambda x: f(x).sum())),
    ],
)
def test_transforms_inside(make):
    transform = make(lambda x: x.sin() * x)
    f = mg.compile(lambda x: transform(x))
    for k in range(1, 4):
        x = mg.full((2, 2), 0.3 * k)
        same(f(x), transform(x))
    assert has_program(f)


def test_the_function_behind_a_transform_is_guarded():
    scale = 2.0
    gradient = mg.func.grad(lambda x: (x * x * scale).sum())
    f = mg.compile(lambda x: gradient(x))
    x = mg.ones(3)
    f(x), f(x)
    scale = 5.0
    same(f(x), x * 10)


class Net(nn.Module):
    scale = 2.0

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 2)

    def forward(self, x):
        return self.layer(x) * self.scale * FACTOR

    @mg.compile
    def loss(self, x):
        return self(x).sum()


FACTOR = 3.0


def test_methods_globals_and_class_attributes(monkeypatch):
    mg.manual_seed(0)
    net, x = Net(), mg.ones(2, 3)
    f = mg.compile(net.forward)
    with mg.no_grad():
        for _ in range(3):
            same(f(x), net(x))
            same(net.loss(x), net(x).sum())
        for change in (
            lambda: monkeypatch.setattr(Net, "scale", 0.5),
            lambda: monkeypatch.setitem(globals(), "FACTOR", 7.0),
            lambda: setattr(net, "scale", 4.0),
            lambda: setattr(net, "layer", nn.Linear(3, 2)),
        ):
            change()
            same(f(x), net(x))
            same(net.loss(x), net(x).sum())
    assert f.recordings == 5
    assert "Net.scale was 2.0 and is 0.5" in f.reasons[0]
    assert f.reasons[1] == "FACTOR was 3.0 and is 7.0"


def test_training_mode_is_guarded():
    net = nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5), nn.BatchNorm1d(3))
    twin = copy.deepcopy(net)
    f = mg.compile(net)
    with mg.no_grad():
        for train in (True, True, False, False, True):
            net.train(train), twin.train(train)
            for _ in range(2):
                mg.manual_seed(1)
                x = mg.randn(4, 3)
                a = f(x)
                mg.manual_seed(1)
                same(a, twin(mg.randn(4, 3)))
                same(net[2].running_mean, twin[2].running_mean)
                assert net[2].num_batches_tracked.item() == twin[2].num_batches_tracked.item()
    assert f.compiled.recordings == 2


# ---- training ------------------------------------------------------------------------------------


def trainer(make, schedule=None, clip=None, model=None):
    mg.manual_seed(3)
    net = model() if model else nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))
    optimizer = make(net.parameters())
    schedule = schedule and schedule(optimizer)

    def step(x, y):
        optimizer.zero_grad()
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        if clip:
            nn.utils.clip_grad_norm_(net.parameters(), clip)
        optimizer.step()
        if schedule:
            schedule.step()
        return loss

    return net, optimizer, step


def data(k):
    rng = np.random.default_rng(k)
    return mg.tensor(rng.normal(size=(5, 4)).astype("f")), mg.tensor(rng.integers(0, 3, 5))


OPTIMIZERS = sorted(
    name
    for name in mg.optim.__all__
    if isinstance(getattr(mg.optim, name), type)
    and issubclass(getattr(mg.optim, name), mg.optim.Optimizer)
    and name not in ("Optimizer", "LBFGS", "Muon")
)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_every_optimizer_trains_to_the_same_bits(name):
    made = [trainer(lambda p: getattr(mg.optim, name)(p, lr=0.05), clip=1.0) for _ in range(2)]
    (one, _, eager), (two, _, step) = made
    f = mg.compile(step)
    for k in range(6):
        same(eager(*data(k)), f(*data(k)))
        for p, q in zip(one.parameters(), two.parameters(), strict=True):
            same(p, q)
            same(p.grad, q.grad)
    assert has_program(f)


@pytest.mark.parametrize(
    "options", [{}, {"momentum": 0.9}, {"momentum": 0.9, "nesterov": True, "weight_decay": 0.1}]
)
def test_schedules_options_and_checkpoints_are_seen(options):
    make = functools.partial(mg.optim.SGD, lr=0.1, **options)
    plan = functools.partial(mg.optim.lr_scheduler.StepLR, step_size=2, gamma=0.5)
    (one, opt1, eager), (two, opt2, step) = (trainer(make, plan) for _ in range(2))
    f = mg.compile(step)

    def both(count=3):
        for k in range(count):
            same(eager(*data(k)), f(*data(k)))
        assert opt1.param_groups[0]["lr"] == opt2.param_groups[0]["lr"]
        for p, q in zip(one.parameters(), two.parameters(), strict=True):
            same(p, q)

    both()
    pairs = (one, opt1), (two, opt2)
    states = [copy.deepcopy((m.state_dict(), o.state_dict())) for m, o in pairs]
    both()
    for (m, o), (weights, rest) in zip(pairs, states, strict=True):
        m.load_state_dict(weights)
        o.load_state_dict(rest)
    both()
    for m, o in pairs:
        with mg.no_grad():
            m[0].weight.mul_(0.5)
        m[2].bias.data = mg.ones(3)
        o.param_groups[0]["lr"] = 0.01
    both()
    assert has_program(f)


def test_an_added_group_a_cleared_state_and_another_parameter_are_seen():
    w, b = (mg.ones(3, requires_grad=True) for _ in range(2))
    optimizer = mg.optim.Adam([w], lr=0.1)

    @mg.compile
    def f(x):
        optimizer.zero_grad()
        (w * b * x).sum().backward()
        optimizer.step()

    for _ in range(4):
        f(mg.ones(3))
    optimizer.add_param_group({"params": [b]})
    f(mg.ones(3))
    assert b.tolist() != [1.0] * 3
    optimizer.state.clear()
    f(mg.ones(3))
    assert optimizer.state[w]["step"] == 1


def test_manual_updates_accumulation_averages_and_tied_weights():
    def make():
        mg.manual_seed(1)
        w = mg.randn(3, 3, requires_grad=True)
        average = w.detach().clone()

        def step(x, last):
            loss = ((x @ w @ w.t()).tanh() ** 2).mean()  # tied
            loss.backward()
            if last:
                with mg.no_grad():
                    w.sub_(0.1 * w.grad)
                    average.mul_(0.9).add_(w, alpha=0.1)
                    w.grad.zero_()
            return loss.detach()

        return w, average, step

    (w1, a1, eager), (w2, a2, step) = make(), make()
    f = mg.compile(step)
    for k in range(9):
        x = mg.full((2, 3), 0.1 * k)
        same(eager(x, k % 3 == 2), f(x, k % 3 == 2))
        same(w1, w2)
        same(a1, a2)
        same(w1.grad, w2.grad)
    assert f.recordings == 3


def test_a_schedule_goes_on_once_where_a_step_does_not_fit():
    w = mg.ones(3, requires_grad=True)
    optimizer = mg.optim.SGD([w], lr=0.1, momentum=0.9)
    schedule = mg.optim.lr_scheduler.StepLR(optimizer, 2)

    @mg.compile
    def step(x):
        optimizer.zero_grad()
        (w * x).sum().backward()
        schedule.step()
        optimizer.step()

    for _ in range(4):
        step(mg.ones(3))
    assert schedule.last_epoch == 4
    optimizer.param_groups[0]["momentum"] = 0.0
    step(mg.ones(3))
    assert schedule.last_epoch == 5


def test_a_step_that_no_longer_fits_is_recorded_again():
    w = mg.ones(3, requires_grad=True)
    optimizer = mg.optim.SGD([w], lr=0.5, momentum=0.5)

    @mg.compile
    def step(x):
        optimizer.zero_grad()
        loss = (w * x).sum()
        loss.backward()
        optimizer.step()
        return loss

    for _ in range(3):
        step(mg.ones(3))
    before = w.tolist()
    optimizer.param_groups[0]["momentum"] = 0.0
    step(mg.ones(3))
    assert w.tolist() == [x - 0.5 for x in before]


@pytest.mark.parametrize("name", ["Adam", "RMSprop"])
def test_two_steps_that_count_are_no_program(name):
    found = []
    for compiled in (False, True):
        w = mg.ones(3, requires_grad=True)
        optimizer = getattr(mg.optim, name)([w], lr=0.1)

        def step(x, w=w, optimizer=optimizer):
            for _ in range(2):
                optimizer.zero_grad()
                (w * x).square().sum().backward()
                optimizer.step()

        run = mg.compile(step) if compiled else step
        with pytest.warns(UserWarning, match="twice") if compiled else contextlib.nullcontext():
            run(mg.arange(3.0))
        run(mg.arange(3.0))
        found.append((w.tolist(), optimizer.state[w]["step"]))
    assert found[0] == found[1]


def test_zero_grad_in_place_and_two_optimizers():
    def make():
        a, b = mg.ones(3, requires_grad=True), mg.full((3,), 2.0, requires_grad=True)
        one, two = mg.optim.SGD([a], lr=0.1), mg.optim.Adam([b], lr=0.1)

        def step(x):
            for o in (one, two):
                o.zero_grad(set_to_none=False)
            ((a * x - b) ** 2).sum().backward()
            one.step()
            two.step()

        return a, b, step

    (a1, b1, eager), (a2, b2, step) = make(), make()
    f = mg.compile(step)
    for k in range(6):
        eager(mg.full((3,), float(k))), f(mg.full((3,), float(k)))
        same(a1, a2), same(b1, b2), same(a1.grad, a2.grad)
    assert has_program(f)


def test_gradients_of_arguments_are_set_or_added():
    f = mg.compile(lambda x: (x * x).sum().backward())
    for k in range(6):
        x = mg.full((3,), float(k), requires_grad=True)
        if k % 2:
            x.grad = mg.ones(3)
        f(x)
        same(x.grad, 2 * x.detach() + (k % 2))
    assert f.recordings == 2
    assert f.reasons == ["x.grad was None and is a tensor"]


def test_a_tensor_that_begins_to_require_grad_is_seen():
    w = mg.ones(3)

    @mg.compile
    def f(x):
        y = (x * w).sum()
        if y.requires_grad:
            y.backward()
        return y.detach()

    f(mg.ones(3)), f(mg.ones(3))
    w.requires_grad_(True)
    f(mg.ones(3))
    assert w.grad is not None
    w.requires_grad_(False)
    w.grad = None
    f(mg.ones(3))
    assert w.grad is None


def test_hooks_that_come_and_go_are_seen():
    w = mg.ones(3, requires_grad=True)

    @mg.compile
    def f(x):
        w.grad = None
        (w * x).sum().backward()

    x = mg.ones(3)
    for _ in range(3):
        f(x)
    hook = w.register_hook(lambda g: g * 5)
    f(x)
    same(w.grad, x * 5)
    hook.remove()
    f(x)
    same(w.grad, x)


# ---- sharing -------------------------------------------------------------------------------------


def test_the_same_tensor_twice_views_and_captured_tensors():
    w = mg.full((3,), 2.0)
    f = mg.compile(lambda x, y: x * 2 + y * 3 + w)
    a, b = mg.arange(6.0)[:3], mg.full((3,), 5.0)
    for x, y in ((a, a), (a, b), (w, a), (b, b), (a, a.view(3)), (a, b), (w, w)):
        same(f(x, y), x * 2 + y * 3 + w)


def test_writes_into_arguments_that_overlap():
    def step(x, y):
        x.add_(y)
        y.mul_(2.0)
        return x + y, x

    f = mg.compile(step)
    for how in (0, 1, 2, 0, 1):
        bases = [mg.arange(6.0) for _ in range(2)]
        pairs = [((b[:3], b[3:]), (b[:3], b[1:4]), (b[:3],) * 2)[how] for b in bases]
        for a, b in zip(step(*pairs[0]), f(*pairs[1]), strict=True):
            same(a, b)
        same(*bases)
        assert f(*pairs[1])[1] is pairs[1][0]
        step(*pairs[0])


def test_results_stay_and_are_ones_own():
    @mg.compile
    def f(x):
        c = mg.tensor([1.0, 2.0, 3.0])
        c += x
        return c, mg.tensor([7.0]), x * 2, mg.zeros(2)

    kept = []
    for k in range(4):
        found = f(mg.full((3,), float(k)))
        kept.append(found)
        for y in found:
            y.add_(0.0)
        found[1].mul_(0.0)
        found[3].add_(1.0)
    for k, (c, _, y, _) in enumerate(kept):
        assert c.tolist() == [1.0 + k, 2.0 + k, 3.0 + k]
        assert y.tolist() == [2.0 * k] * 3
    assert f(mg.ones(3))[1].tolist() == [7.0]
    assert has_program(f)


def test_a_returned_view_follows_later_writes_on_the_tape():
    f = mg.compile(lambda x: (x[1:][0:1], x * 2))
    for _ in range(3):
        w, x = mg.ones(3, requires_grad=True), mg.ones(3)
        view, _ = f(x)
        x.mul_(w)
        view.sum().backward()
        assert w.grad.tolist() == [0.0, 1.0, 0.0]


def test_an_undone_write_into_memory_that_is_also_expanded():
    base = mg.ones(1, 3)
    wide = base.expand(4, 3)

    def step(x, y):
        base.add_(x)
        return wide * 2 if mg.equal(x, y) else wide * 3

    f = mg.compile(step)
    a, b = mg.ones(1, 3), mg.zeros(1, 3)
    for y in (a, a, b, a):
        before = base.clone()
        found = f(a, y)
        same(base, before + a)
        same(found, wide * (2 if y is a else 3))


# ---- random numbers ------------------------------------------------------------------------------


def test_random_numbers_continue_the_stream_of_the_calling_thread():
    def g(x):
        return F.dropout(x, 0.5) + mg.rand(3) + mg.randn(3)

    f = mg.compile(g)
    x = mg.ones(3)
    f(x)
    mg.manual_seed(5)
    found = [f(x) for _ in range(3)]
    mg.manual_seed(5)
    for y in found:
        same(y, g(x))
    made = []

    def other():
        with mg.random.own_generator(9):
            made.extend([f(x), g(x)])
        with mg.random.own_generator(9):
            made.extend([g(x), f(x)])

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    same(made[0], made[2])
    same(made[1], made[3])
    generator = mg.Generator().manual_seed(4)
    h = mg.compile(lambda x: x + mg.rand(3, generator=generator))
    found = [h(x) for _ in range(3)]
    generator.manual_seed(4)
    for y in found:
        same(y, x + mg.rand(3, generator=generator))
    assert has_program(f)
    assert has_program(h)


def test_another_answer_draws_nothing_twice():
    def step(x, y):
        return mg.rand(3) if mg.equal(x, y) else mg.randn(4)

    f, a, b = mg.compile(step), mg.ones(2), mg.zeros(2)
    for args in ((a, a), (a, a), (a, b), (a, a), (b, a)):
        state = mg.get_rng_state()
        expected, after = step(*args), mg.rand(1)
        mg.set_rng_state(state)
        same(f(*args), expected)
        same(mg.rand(1), after)


@pytest.mark.parametrize("what", ["random", "numpy", "generator", "count", "list", "generators"])
def test_what_gives_another_value_each_time_is_no_program(what):
    def source():
        random.seed(0)
        rng = np.random.default_rng(0)
        np.random.seed(0)
        numbers, items = itertools.count(), iter([3.0, 4.0, 5.0, 6.0])
        made = (float(k) for k in range(9))
        return {
            "random": random.random,
            "numpy": np.random.rand,
            "generator": lambda: float(rng.random()),
            "count": lambda: next(numbers),
            "list": lambda: next(items),
            "generators": lambda: next(made),
        }[what]

    def make(draw):
        return lambda x: x + draw()

    expected = [make(draw)(mg.ones(2)) for draw in [source()] for _ in range(3)]
    f = mg.compile(make(source()))
    for y in expected:
        same(f(mg.ones(2)), y)


@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_checkpoints(dropout):
    w = mg.ones(50, requires_grad=True)

    @mg.compile
    def f(x):
        w.grad = None
        y = mg.checkpoint(lambda p: F.dropout(p * x, dropout).sin(), w, use_reentrant=False)
        y.sum().backward()
        return y.detach()

    for _ in range(4):
        y = f(mg.ones(50))
        assert mg.allclose((y != 0).float() * w.detach().cos() * (2 if dropout else 1), w.grad) or (
            dropout and mg.equal(y != 0, w.grad != 0)
        )
    assert has_program(f)


def test_a_seed_inside():
    f = mg.compile(lambda x: (mg.manual_seed(3), x + mg.rand(3))[1])
    first = f(mg.zeros(3))
    for _ in range(3):
        same(f(mg.zeros(3)), first)


# ---- guards --------------------------------------------------------------------------------------


class Config:
    scale = 2.0


class Slotted:
    __slots__ = ("scale",)


def places():
    """Places from which a function reads a number: how to read, and how to set."""
    settings = types.ModuleType("user_settings")
    spaces, box, slotted = argparse.Namespace(), types.SimpleNamespace(), Slotted()
    held, items, queue = {"scale": 2.0}, [2.0], collections.deque([2.0])
    names, array = {"double"}, np.array([2.0])
    part = functools.partial(lambda scale, x: x * scale, 2.0)
    optimizer = mg.optim.SGD([mg.ones(1, requires_grad=True)], lr=2.0)
    for x in (settings, spaces, box, slotted, Config):
        x.scale = 2.0

    def renamed(value):
        names.clear()
        names.add("triple")

    return {
        "module": (lambda x: x * settings.scale, lambda v: setattr(settings, "scale", v)),
        "class": (lambda x: x * Config.scale, lambda v: setattr(Config, "scale", v)),
        "namespace": (lambda x: x * spaces.scale, lambda v: setattr(spaces, "scale", v)),
        "object": (lambda x: x * box.scale, lambda v: setattr(box, "scale", v)),
        "slots": (lambda x: x * slotted.scale, lambda v: setattr(slotted, "scale", v)),
        "dict": (lambda x: x * held["scale"], lambda v: held.update(scale=v)),
        "list": (lambda x: x * items[0], lambda v: items.__setitem__(0, v)),
        "deque": (lambda x: x * queue[0], lambda v: queue.appendleft(v)),
        "set": (lambda x: x * (2.0 if "double" in names else 3.0), renamed),
        "array": (lambda x: x * float(array[0]), lambda v: array.__setitem__(0, v)),
        "partial": (lambda x: part(x), lambda v: None),
        "group": (
            lambda x: x * optimizer.param_groups[0]["lr"],
            lambda v: optimizer.param_groups[0].update(lr=v),
        ),
    }


@pytest.mark.parametrize("place", sorted(places()))
def test_a_number_is_seen_wherever_it_is(place):
    read, change = places()[place]
    f, x = mg.compile(read), mg.ones(3)
    for _ in range(3):
        same(f(x), read(x))
    assert has_program(f)
    change(3.0)
    for _ in range(2):
        same(f(x), read(x))
    change(4.0)
    same(f(x), read(x))


def test_a_captured_container_that_changes_is_seen():
    weights = [mg.ones(3)]
    f = mg.compile(lambda x: sum((x * w for w in weights), x * 0))
    x = mg.ones(3)
    f(x), f(x)
    weights.append(mg.full((3,), 2.0))
    same(f(x), x * 3)
    weights[0] = mg.zeros(3)
    same(f(x), x * 2)


def test_reasons_name_the_argument_the_old_and_the_new():
    def step(x, k=1):
        return x * k

    f = mg.compile(step)
    x = mg.ones(2, 3)
    f(x)
    f(mg.ones(4, 3))
    assert f.reasons[-1] == (
        "x was float32(2, 3) with strides (3, 1) and is float32(4, 3) with strides (3, 1)"
    )
    f(x.double())
    assert "is float64(2, 3)" in f.reasons[-1]
    f(mg.ones(3, 2).t())
    assert "with strides (1, 2)" in f.reasons[-1]
    f(x, k=3)
    assert f.reasons[-1] == "k was absent and is 3"
    f(x, k=4)
    assert f.reasons[-1] == "k was 3 and is 4"
    with mg.no_grad():
        f(x, k=4)
    assert f.reasons[-1] == "grad mode was True and is False"
    assert f.recordings == 7
    f(x)
    assert f.recordings == 7


def test_the_number_of_recordings_is_bounded():
    f = mg.compile(lambda x, k: x * k)
    for k in range(8):
        same(f(mg.ones(2), k), mg.ones(2) * k)
    with pytest.warns(UserWarning, match="recorded 8 times, at last since k was 7 and is 8"):
        f(mg.ones(2), 8)
    for k in range(12):
        same(f(mg.ones(2), k), mg.ones(2) * k)
    assert f.recordings == 8


def test_fullgraph_raises_where_no_program_is_possible():
    f = mg.compile(lambda x: x[x > 0], fullgraph=True)
    with pytest.raises(RuntimeError, match="shape depends on values"):
        f(mg.ones(3))


# ---- reading values ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "read",
    [
        float,
        int,
        bool,
        repr,
        str,
        format,
        "{}".format,
        lambda t: t.item(),
        lambda t: t.tolist(),
        lambda t: t.numpy(),
        lambda t: np.sin(np.asarray(t)),
        lambda t: [0] if t > 0 else [1],
        lambda t: t in [1.0, 2.0],
        lambda t: range(5)[t.long()],
        lambda t: list(map(float, [t])),
        print,
    ],
)
def test_reading_a_value_raises_and_leaves_no_trace(read):
    def step(x, reads=True):
        y = (x * 2).sum()
        if reads:
            read(y)
        return y

    f = mg.compile(step)
    for _ in range(2):
        with pytest.raises(RuntimeError, match=r"compile.py:\d+ reads a tensor's value.*where"):
            f(mg.ones(1))
    assert f.recordings == 0
    same(f(mg.ones(1), False), mg.tensor(2.0))


def test_shapes_and_lengths_can_be_read():
    f = mg.compile(lambda x: x * len(x) * x.shape[1] * x.numel() * x.dim())
    for _ in range(2):
        same(f(mg.ones(2, 3)), mg.full((2, 3), 72.0))
    assert has_program(f)


def test_a_kept_tensor_is_no_program():
    history = []
    f = mg.compile(lambda x: history.append(x * 2))
    for k in range(3):
        f(mg.full((2,), float(k)))
    assert [h.tolist() for h in history] == [[2.0 * k] * 2 for k in range(3)]


def test_a_counter_is_no_program():
    class Counter:
        n = 0

    counter = Counter()

    @mg.compile
    def f(x):
        counter.n += 1
        return x * counter.n

    for k in range(1, 4):
        same(f(mg.ones(2)), mg.ones(2) * k)
    assert "it changes a value in Python" in f.reasons[-1]


@pytest.mark.parametrize("where", [lambda x: x[x > 0], lambda x: x.nonzero(), mg.unique])
def test_shapes_that_depend_on_values_are_no_program(where):
    f = mg.compile(lambda x: where(x) * 2)
    for values in ([1.0, -1.0, 2.0], [1.0, 1.0, 2.0], [-1.0, 3.0, 2.0]):
        x = mg.tensor(values)
        try:
            found = f(x)
        except RuntimeError as error:
            assert "reads a tensor's value" in str(error)  # noqa: PT017
        else:
            same(found, where(x) * 2)


# ---- errors, threads, processes ------------------------------------------------------------------


def test_an_error_of_the_function_leaves_no_trace():
    def step(x, fail):
        y = x * 2
        if fail:
            raise KeyError("of the user's")
        return y

    f = mg.compile(step)
    for _ in range(12):
        with pytest.raises(KeyError):
            f(mg.ones(2), True)
    assert f.recordings == 0
    same(f(mg.ones(2), False), mg.full((2,), 2.0))
    assert has_program(f)


def test_an_error_of_a_kernel_leaves_what_the_function_leaves():
    def make():
        w = mg.ones(3, requires_grad=True)
        optimizer = mg.optim.Adam([w], lr=0.1)

        def step(x, i):
            optimizer.zero_grad()
            (w * x).sum().backward()
            optimizer.step()
            return x[i]

        return w, optimizer, step

    (w1, o1, eager), (w2, o2, step) = make(), make()
    f = mg.compile(step)
    for i in (0, 1, 2, 1, 9, 0, 2):
        texts = []
        for g in (eager, f):
            try:
                g(mg.ones(3), mg.tensor([i]))
            except IndexError as error:
                texts.append(str(error))
        assert len(set(texts)) <= 1
        same(w1, w2)
        assert o1.state[w1]["step"] == o2.state[w2]["step"]


def test_without_memory_nothing_changes():
    w = mg.ones(4000, requires_grad=True)
    optimizer = mg.optim.SGD([w], lr=0.1)

    @mg.compile
    def f(x):
        optimizer.zero_grad()
        (w * x).exp().sum().backward()
        optimizer.step()

    x = mg.ones(4000)
    for _ in range(3):
        f(x)
    before = w.detach().clone()
    lib.mg_deny_blocks(1, 1 << 60)
    try:
        with pytest.raises(MemoryError):
            f(x)
    finally:
        lib.mg_deny_blocks(1, 0)
    same(w, before)
    f(x)
    assert not mg.equal(w, before)


def test_threads_share_a_compiled_function():
    f = mg.compile(lambda x, k: (x * k).tanh().sum())
    wrong = []

    def run(seed):
        for k in range(40):
            x = mg.full((50,), 0.01 * (seed * 40 + k))
            if not mg.equal(f(x, k % 3), (x * (k % 3)).tanh().sum()):
                wrong.append((seed, k))

    threads = [threading.Thread(target=run, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert f.recordings == 3


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_child_runs_programs():
    f = mg.compile(lambda x: (x * 2).sum())
    f(mg.ones(3)), f(mg.ones(3))
    with f._lock:
        pid = os.fork()
        if not pid:
            os._exit(0 if f(mg.full((3,), 2.0)).tolist() == 12.0 else 1)
    assert os.waitpid(pid, 0)[1] == 0


def test_an_interrupt_comes_between_the_kernels(fresh):
    program = """
import signal, time, minigrad as mg
mg.set_num_threads(1)
def step(x):
    for _ in range(4000):
        x = x @ x
        x = x / x.norm()
    return x
f = mg.compile(step)
x = mg.randn(60, 60)
f(x); f(x)
def handler(*_): raise KeyboardInterrupt
signal.signal(signal.SIGALRM, handler)
signal.setitimer(signal.ITIMER_REAL, 0.02)
try:
    while True: f(x)
except KeyboardInterrupt:
    print("interrupted")
signal.setitimer(signal.ITIMER_REAL, 0)
print(mg.equal(f(x), step(x)))
"""
    assert fresh(program).split() == ["interrupted", "True"]


# ---- extreme arguments ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "x",
    [mg.zeros(0), mg.zeros(0, 3), mg.tensor(2.0), mg.tensor([float("nan"), float("inf"), -0.0])],
)
def test_empty_0d_and_special_values(x):
    def step(x):
        return (x * 2).exp().sum(), x.sin() / x, mg.where(x > 0, x, -x), x.reshape(-1)

    f = mg.compile(step)
    for _ in range(3):
        for a, b in zip(f(x), step(x), strict=True):
            same(a, b)
    assert f.recordings == 1


@pytest.mark.parametrize("dtype", [mg.float16, mg.bfloat16, mg.int8, mg.uint8, mg.bool, mg.int64])
def test_other_dtypes(dtype):
    def step(x, y):
        y.copy_(x)
        return x + 1, (x * 2).sum(), x.to(mg.float32).tanh()

    f = mg.compile(step)
    for k in range(3):
        x = mg.tensor([k, 1, 0]).to(dtype)
        y, z = mg.zeros(3, dtype=dtype), mg.zeros(3, dtype=dtype)
        for a, b in zip(f(x, y), step(x, z), strict=True):
            assert a.dtype is b.dtype
            assert mg.equal(a, b)
        assert mg.equal(y, z)


# ---- compiled in compiled ------------------------------------------------------------------------


def test_compiled_functions_nest_and_recur():
    inner = mg.compile(lambda x: x * 2)

    @mg.compile
    def outer(x, depth=2):
        return inner(x) if depth == 0 else outer(x, depth - 1) + 1

    for _ in range(3):
        same(outer(mg.ones(2)), mg.full((2,), 4.0))
        same(inner(mg.ones(2)), mg.full((2,), 2.0))
    assert has_program(outer)
    assert outer.recordings == 1


def test_copies_have_no_recordings():
    f = mg.compile(lambda x: x * 2)
    f(mg.ones(2))
    other = copy.deepcopy(f)
    assert other.recordings == 0
    same(other(mg.ones(2)), mg.full((2,), 2.0))


def test_disable_and_the_environment(fresh):
    assert mg.compile(same, disable=True) is same
    program = "import minigrad as mg; f = lambda x: x; print(mg.compile(f) is f)"
    assert fresh(program, MINIGRAD_COMPILE="0").strip() == "True"
    assert fresh(program).strip() == "False"


def test_a_warning_says_why():
    f = mg.compile(lambda x: x[x > 0])
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        f(mg.ones(3)), f(mg.ones(3))
    assert len(said) == 1
    assert "nonzero at" in str(said[0].message)


def test_explain_tells_what_was_recorded():
    scale = 2.0
    f = mg.compile(lambda x: ((x * x + scale).tanh() * mg.tensor([1.0, 2.0])).sum() + mg.rand(1))
    f(mg.ones(2))
    f(mg.ones(3, 2))
    found = f.explain()
    program = found.programs[0]
    assert (found.recordings, program.draws, program.constants) == (2, 1, ["float32(2,)"])
    assert program.kernels["chain_reduce"] == 1
    assert sum(program.kernels.values()) < program.recorded
    assert "scale" in program.guards
    assert "x was float32(2,) with strides (1,) and is float32(3, 2)" in str(found)
