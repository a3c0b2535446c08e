"""Effects in Python that no program repeats: such calls run as always, and say why."""

from __future__ import annotations

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


def test_checkpoints_with_dropout_have_the_same_mask_in_backward():
    x = mg.ones(64, requires_grad=True)

    def step():
        x.grad = None
        y = mg.checkpoint(lambda v: nn.functional.dropout(v, 0.5), x)
        y.sum().backward()
        return y.detach(), x.grad

    compiled = refused(step, "the state of a generator .* is set")
    for _ in range(3):
        y, g = compiled()
        assert mg.equal(y, g)


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
