"""Ctrl-C at every step of bytecode: a step or a backward is done as a whole or not at all.

KeyboardInterrupt is raised before the n-th instruction of the package, until none is left.
"""

from __future__ import annotations

import copy

import pytest
from interrupts import interrupted

import minigrad as mg


def bits(tensors):
    return [None if x is None else x.detach().numpy().tobytes() for x in tensors]


def check(made, action, values, step=1):
    """Also that what was not done can be done again."""
    one = made()
    before = bits(values(one))
    action(one)
    after = bits(values(one))
    assert before != after
    n, one = 1, made()
    while interrupted(lambda one=one: action(one), n):
        found = bits(values(one))
        assert found in (before, after), f"instruction {n}"
        if found == before:
            action(one)
            assert bits(values(one)) == after, f"again, after instruction {n}"
        n, one = n + step, made()
    assert n > 20


@pytest.mark.parametrize(
    ("kind", "options"),
    [("SGD", {"momentum": 0.9}), ("Adam", {"amsgrad": True}), ("RMSprop", {"centered": True})],
)
@pytest.mark.parametrize("first", [True, False])
def test_a_step(kind, options, first):
    def made():
        ps = [mg.nn.Parameter(mg.tensor([1.0, 2.0])), mg.nn.Parameter(mg.tensor([[3.0]]))]
        optimizer = getattr(mg.optim, kind)(ps, lr=0.1, **options)
        for p in ps:
            p.grad = mg.ones_like(p)
        if not first:
            optimizer.step()
        return ps, optimizer

    check(made, lambda both: both[1].step(), lambda both: both[0], 7 if first else 1)


@pytest.mark.usefixtures("restore_random")  # layers draw their weights
@pytest.mark.parametrize("kind", ["GRU", "LSTM"])
def test_a_recurrent_layer_and_its_backward(kind):
    """Whose result is overwritten."""
    layer = getattr(mg.nn, kind)(2, 2)
    x = mg.tensor([[[1.0, 2.0]], [[3.0, -1.0]]])

    def action(ps):
        for p in ps:
            p.grad = None
        layer(x)[0].relu_().sum().backward()

    def made():
        layer.zero_grad()
        return list(layer.parameters())

    check(made, action, lambda ps: [p.grad for p in ps], 29)


def test_backward():
    def made():
        a, b = (mg.tensor([x, 2.0], requires_grad=True) for x in (1.0, 3.0))
        y = (a * b).softmax(0).var() + mg.cat([a, b]).norm() + (a[1] ** 1.5)
        return (a, b), y

    check(
        made,
        lambda both: both[1].backward(retain_graph=True),
        lambda both: [x.grad for x in both[0]],
        3,
    )


def test_an_optimizers_state_is_loaded():
    def made():
        p = mg.nn.Parameter(mg.tensor([1.0, 2.0]))
        optimizer = mg.optim.Adam([p], lr=0.1)
        p.grad = mg.ones(2)
        optimizer.step()
        kept = copy.deepcopy(optimizer.state_dict())
        optimizer.step()
        return optimizer, kept

    def moments(both):
        states = both[0].state_dict()["state"].values()
        return [x for state in states for x in state.values() if isinstance(x, mg.Tensor)]

    check(made, lambda both: both[0].load_state_dict(both[1]), moments)
