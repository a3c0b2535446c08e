"""Optimizers that programs write as PyTorch's users do: a subclass whose ``step`` is its own."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import minigrad as mg
from minigrad import optim


def methods(lib):
    """Two methods for a library: Lion, and one that keeps the mean of each row's squares."""

    class Lion(lib.optim.Optimizer):
        def __init__(self, params, lr=1e-3, betas=(0.9, 0.99), weight_decay=0.0):
            if lr <= 0.0:
                raise ValueError(f"Invalid learning rate: {lr}")
            super().__init__(params, {"lr": lr, "betas": betas, "weight_decay": weight_decay})

        def __setstate__(self, state):
            super().__setstate__(state)
            for group in self.param_groups:
                group.setdefault("weight_decay", 0.0)

        @lib.no_grad()
        def step(self, closure=None):
            loss = None
            if closure is not None:
                with lib.enable_grad():
                    loss = closure()
            for group in self.param_groups:
                for p in group["params"]:
                    if p.grad is None:
                        continue
                    p.data.mul_(1 - group["lr"] * group["weight_decay"])
                    state = self.state[p]
                    if len(state) == 0:
                        state["exp_avg"] = lib.zeros_like(p)
                    average = state["exp_avg"]
                    beta1, beta2 = group["betas"]
                    update = average * beta1 + p.grad * (1 - beta1)
                    p.add_(lib.sign(update), alpha=-group["lr"])
                    average.mul_(beta2).add_(p.grad, alpha=1 - beta2)
            return loss

    class Rows(lib.optim.Optimizer):
        def __init__(self, params, lr=0.1):
            super().__init__(params, {"lr": lr})

        def step(self, closure=None):
            for group in self.param_groups:
                for p in group["params"]:
                    state = self.state[p]
                    if "step" not in state:
                        state.update(step=0, seen=lib.tensor([3, 4]), rows=lib.zeros(p.shape[0]))
                    state["step"] += 1
                    state["rows"].add_(p.grad.data.pow(2).mean(1))
                    root = state["rows"].sqrt()[:, None] + 1e-8
                    p.data.addcdiv_(p.grad.data, root, value=-group["lr"])

    return {"Lion": Lion, "Rows": Rows}


OURS = methods(mg)
START = np.linspace(-1, 1, 6).reshape(3, 2)


def path(lib, make, steps, reload=False):
    """The losses of a small problem, with the optimizer's state loaded anew before each step."""
    w = lib.tensor(START.tolist(), dtype=lib.float64, requires_grad=True)
    x = lib.tensor([[1.0, 2.0, -1.0], [0.5, -1.0, 2.0]], dtype=lib.float64)
    optimizer, losses = make([w]), []
    for _ in range(steps):
        if reload:
            saved = copy.deepcopy(optimizer.state_dict())
            optimizer = make([w])
            optimizer.load_state_dict(saved)
        optimizer.zero_grad()
        loss = ((x @ w) ** 2).sum()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@pytest.mark.parametrize("reload", [False, True])
@pytest.mark.parametrize("name", OURS)
def test_their_steps_are_those_under_pytorch(name, reload):
    torch = pytest.importorskip("torch")
    ours = path(mg, OURS[name], 8, reload)
    theirs = path(torch, methods(torch)[name], 8)
    np.testing.assert_allclose(ours, theirs, rtol=1e-6)
    assert ours[-1] < ours[0]


def test_a_state_begins_as_an_empty_dict():
    w = mg.ones(2, requires_grad=True)
    optimizer = OURS["Lion"]([w])
    assert optimizer.state == {}
    optimizer.state[w]["exp_avg"] = mg.zeros(2)
    assert list(optimizer.state_dict()["state"]) == [0]
    optimizer.load_state_dict(optimizer.state_dict())
    assert optimizer.state[mg.ones(1)] == {}


def test_schedules_and_copies_take_them():
    w = mg.ones(2, requires_grad=True)
    optimizer = OURS["Lion"]([{"params": [w], "lr": 0.5}])
    schedule = optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.1)
    w.grad = mg.ones(2)
    assert optimizer.step(lambda: 3) == 3
    schedule.step()
    assert optimizer.param_groups[0]["lr"] == pytest.approx(0.05)
    assert w.tolist() == [0.5, 0.5]
    twin = copy.deepcopy(optimizer)
    assert twin.state[twin.param_groups[0]["params"][0]]["exp_avg"].tolist() == pytest.approx(
        [0.01, 0.01]
    )
    again = pickle.loads(pickle.dumps(optim.SGD([w], lr=0.1)))
    assert again.state[again.param_groups[0]["params"][0]] == {}
