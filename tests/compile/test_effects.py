"""Effects in Python that no program repeats: such calls run as always, and say why."""

from __future__ import annotations

import contextlib

import pytest

import minigrad as mg
from minigrad import nn


@pytest.fixture(autouse=True)
def own_random_state():
    with mg.random.fork_rng():
        yield


def refused(function, reason, *args):
    compiled = mg.compile(function)
    with pytest.warns(UserWarning, match=reason):
        compiled(*args)
    return compiled


def test_seeding_is_repeated():
    def draw():
        mg.manual_seed(7)
        return mg.rand(3)

    compiled = refused(draw, "a generator .* starts anew")
    assert mg.equal(compiled(), compiled())


def masks(v):
    return nn.functional.dropout(v, 0.5) * v.sin()


def nested(v):
    v = nn.functional.dropout(v.cos(), 0.25)
    return masks(mg.checkpoint(masks, v)) + mg.rand(64)


def by_itself(v):
    """A draw that is written over before it is used."""
    return v * mg.rand(64).mul_(2.0)


def anew(function, v):
    """A checkpoint that computes another value in backward."""
    return mg.checkpoint(function, v, preserve_rng_state=False, determinism_check="none")


CHECKPOINTS = {
    "one": lambda x: mg.checkpoint(masks, x),
    "nested": lambda x: mg.checkpoint(nested, x),
    "two": lambda x: mg.checkpoint(nested, mg.checkpoint(masks, x) + mg.rand(64)),
    "drawn anew": lambda x: anew(masks, x),
    "inner drawn anew": lambda x: mg.checkpoint(lambda v: masks(anew(masks, v)), x),
    "named generator": lambda x: mg.checkpoint(
        lambda v: v * v * mg.rand(64, generator=mg.random.default_generator()), x
    ),
    "sequence": lambda x: mg.checkpoint_sequential([masks, nested, masks, masks], 3, x),
}


def trained_through(part, compiled):
    """What five steps compute, and the state of the generator after them."""
    mg.manual_seed(3)
    x = mg.linspace(0.0, 1.0, 64).requires_grad_()

    def step():
        x.grad = None
        y = part(x)
        (y * mg.rand(64)).sum().backward()
        return y.detach(), x.grad

    run = mg.compile(step, fullgraph=True) if compiled else step
    found = [[z.numpy().tobytes() for z in run()] for _ in range(5)]
    assert not compiled or run.recordings <= 2
    return found, repr(mg.random.get_rng_state())


@pytest.mark.parametrize("name", CHECKPOINTS)
def test_checkpoints_with_random_numbers_are_programs(name):
    expected = trained_through(CHECKPOINTS[name], False)
    assert trained_through(CHECKPOINTS[name], True) == expected


def test_checkpoints_with_a_generator_of_their_own_draw_anew():
    found = []
    for compiled in (False, True):
        own = mg.Generator().manual_seed(5)

        def part(x, own=own):
            def function(v):
                return masks(v) * v * mg.rand(64, generator=own)

            return mg.checkpoint(function, x, determinism_check="none")

        found.append((trained_through(part, compiled), repr(own.get_state())))
    assert found[0] == found[1]


def test_a_checkpoint_that_writes_over_a_draw_is_no_program():
    x = mg.ones(64, requires_grad=True)

    def step():
        x.grad = None
        mg.checkpoint(by_itself, x).sum().backward()
        return x.grad

    mg.manual_seed(0)
    expected = [step().tolist() for _ in range(3)]
    mg.manual_seed(0)
    compiled = mg.compile(step)
    with pytest.warns(UserWarning, match="draws other random numbers"):
        assert compiled().tolist() == expected[0]
    assert [compiled().tolist() for _ in range(2)] == expected[1:]


def test_a_checkpoint_that_draws_otherwise_is_no_program():
    calls = []

    def part(v):
        calls.append(1)
        if len(calls) % 2 == 0:
            mg.rand(3)
        return masks(v)

    def step(x):
        return mg.checkpoint(part, x, determinism_check="none").sum()

    def step_of(x):
        return mg.grad(step(x), x)

    found = []
    for compiled in (False, True):
        mg.manual_seed(0)
        calls.clear()
        x = mg.ones(64, requires_grad=True)
        run = mg.compile(step_of) if compiled else step_of
        with (
            pytest.warns(UserWarning, match="runs without")
            if compiled
            else contextlib.nullcontext()
        ):
            (g,) = run(x)
        found.append((g.tolist(), mg.rand(2).tolist()))
    assert found[0] == found[1]


def test_the_shared_generator_may_begin_in_a_recording(monkeypatch):
    monkeypatch.setattr(mg.random, "_default", None)
    compiled = mg.compile(lambda x: x + mg.rand(3), fullgraph=True)
    first, second = compiled(mg.ones(3)), compiled(mg.ones(3))
    assert not mg.equal(first, second)


def test_checkpoints_without_random_numbers_are_programs():
    x = mg.ones(8, requires_grad=True)

    def step():
        x.grad = None
        mg.checkpoint(lambda v: v.tanh() * v, x).sum().backward()

    step()
    expected = x.grad
    compiled = mg.compile(step, fullgraph=True)
    for _ in range(3):
        compiled()
        assert mg.equal(x.grad, expected)


def test_requiring_a_gradient_is_an_effect():
    def step(x):
        x.requires_grad_()
        return x.detach() * 2

    compiled = refused(step, "changes whether an argument requires grad", mg.ones(2))
    x = mg.ones(2)
    compiled(x)
    assert x.requires_grad


def test_the_grad_mode_is_an_effect():
    def step(x):
        mg.set_grad_enabled(False)
        return x * 2

    try:
        refused(step, "changes the grad mode", mg.ones(2))
    finally:
        mg.set_grad_enabled(True)


def test_gradients_with_a_history_stay_so():
    w = mg.ones(2, requires_grad=True)

    def step():
        w.grad = None
        (w * w).sum().backward(create_graph=True)

    with pytest.warns(UserWarning, match="makes a cycle"):
        refused(step, "leaves a gradient with a history in w")


def test_questions_of_the_library_are_asked_again_in_each_run():
    def second(x):
        return mg.func.hessian(lambda v: (v**3).sum())(x)

    compiled = mg.compile(second, fullgraph=True)
    for values in ([1.0, 2.0], [0.5, -3.0], [0.0, 1.0], [2.0, 2.0]):
        x = mg.tensor(values)
        assert mg.equal(compiled(x), second(x))


def test_hidden_memory_is_written_where_it_is():
    class Hidden:
        __slots__ = ("state",)

    hidden = Hidden()
    hidden.state = mg.zeros(2)

    def step(x, hidden=hidden):
        hidden.state += x
        return hidden.state * 2

    compiled = mg.compile(step)
    for k in range(1, 4):
        assert compiled(mg.ones(2)).tolist() == [2.0 * k, 2.0 * k]
        assert hidden.state.tolist() == [k, k]


def test_the_first_backward_of_a_process_leaves_a_program(fresh):
    program = """
import minigrad as mg
w = mg.ones(2, requires_grad=True)
def step(x):
    (w * x).sum().backward()
f = mg.compile(step, fullgraph=True)
f(mg.ones(2)), f(mg.ones(2)), f(mg.ones(2))
print(w.grad.tolist(), f.recordings)
"""
    for tape in ("c", "python"):
        assert fresh(program, MINIGRAD_TAPE=tape).strip() == "[3.0, 3.0] 2"
