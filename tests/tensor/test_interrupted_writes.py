"""Tests that an interrupt in an in-place write leaves value and gradient agreeing."""

import pytest
from interrupts import interrupted

import minigrad as mg


def assign(y, index, value):
    y[index] = value


# Each is linear, so a value is the inputs times their gradients.
WRITES = {
    "mul_": lambda y, b: y.mul_(2.0),
    "imul": lambda y, b: y.__imul__(2.0),
    "add_": lambda y, b: y.add_(b),
    "zero_": lambda y, b: y.zero_(),
    "copy_": lambda y, b: y.copy_(b),
    "setitem": lambda y, b: assign(y, slice(1, 3), b[1:3]),
    "setitem_all": lambda y, b: assign(y, slice(None), b),
    "setitem_array": lambda y, b: assign(y, [0, 2], b[:2]),
    "view": lambda y, b: y[1:].mul_(3.0),
    "view_copy_": lambda y, b: y[1:][:2].copy_(b[:2]),
    "index_add_": lambda y, b: y.index_add_(0, mg.tensor([0, 2]), b[:2]),
    "index_copy_": lambda y, b: y.index_copy_(0, mg.tensor([0, 2]), b[:2]),
    "index_fill_": lambda y, b: y.index_fill_(0, mg.tensor([0, 2]), 0.0),
    "scatter_": lambda y, b: y.scatter_(0, mg.tensor([0, 2]), b[:2]),
    "scatter_add_": lambda y, b: y.scatter_add_(0, mg.tensor([0, 2]), b[:2]),
    "masked_fill_": lambda y, b: y.masked_fill_(mg.tensor([True, False, True, False]), 0.0),
}


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("count", [1, 6], ids=["few", "many"])
def test_value_and_gradient_agree(write, count):
    n = 0
    while True:
        x = mg.tensor([1.0, 2.0, 3.0, 4.0], mg.float64, requires_grad=True)
        b = mg.tensor([5.0, 7.0, 11.0, 13.0], mg.float64, requires_grad=True)
        y = x * 1
        views = [y[i % 4 :] for i in range(count)]
        views[0].retain_grad()
        if not interrupted(lambda y=y, b=b: WRITES[write](y, b), n + 1):
            break
        y.mul_(2.0)
        for part in (y, views[0], views[-1]):
            weighed = (part * mg.tensor([1.0, 100.0, 1e4, 1e6], mg.float64)[: part.size]).sum()
            gradients = mg.grad(weighed, (x, b), retain_graph=True)
            pairs = zip(gradients, (x, b), strict=True)
            total = sum((g * v.detach()).sum().item() for g, v in pairs)
            assert weighed.item() == total, (n, part, gradients)
        n += 1 if count == 1 else 13
    assert n > 3


def test_other_memory_comes_whole_or_not_at_all():
    n = 0
    while True:
        x = mg.tensor([1.0, 2.0, 3.0, 4.0], mg.float64, requires_grad=True)
        base = x * 1
        view, other = base[:3], base[2:]
        below = view[1:]
        done = not interrupted(lambda view=view: setattr(view, "data", mg.zeros(3)), n + 1)
        base.mul_(2.0)
        for part, first in ((base, 0), (other, 2), (below, 1)):
            (g,) = mg.grad(part.sum(), x, retain_graph=True)
            assert part.tolist() == [2.0 * (first + i + 1) for i in range(part.size)]
            assert g.tolist()[first : first + part.size] == [2.0] * part.size, n
        assert view.tolist() in ([0.0, 0.0, 0.0], [2.0, 4.0, 6.0])
        if done:
            break
        n += 1
    assert n > 3
