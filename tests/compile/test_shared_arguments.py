"""Compiled calls in which one tensor, or one memory, comes from several places."""

from __future__ import annotations

import minigrad as mg


def pairs():
    a, b = mg.tensor([1.0, 2.0]), mg.tensor([10.0, 20.0])
    return a, b


def test_the_same_tensor_twice_and_then_two_tensors():
    a, b = pairs()
    f = mg.compile(lambda x, y: x - 2 * y)
    assert f(a, a).tolist() == [-1.0, -2.0]
    assert f(a, b).tolist() == [-19.0, -38.0]
    assert f(b, b).tolist() == [-10.0, -20.0]
    assert f.recordings == 2


def test_two_tensors_on_the_same_memory_and_then_two_memories():
    a, b = pairs()
    f = mg.compile(lambda x, y: x - 2 * y)
    assert f(a, a.detach()).tolist() == [-1.0, -2.0]
    assert f(a, b).tolist() == [-19.0, -38.0]
    assert f(b, b.detach()).tolist() == [-10.0, -20.0]


def test_a_captured_tensor_as_argument_and_then_another():
    w, b = pairs()
    f = mg.compile(lambda x: x - 2 * w)
    assert f(w).tolist() == [-1.0, -2.0]
    assert f(b).tolist() == [8.0, 16.0]
    assert f(w.detach()).tolist() == [-1.0, -2.0]
    assert f(w).tolist() == [-1.0, -2.0]


def test_leaves_passed_twice_get_the_sum_of_both_gradients():
    def step(x, y):
        (x * x * y).sum().backward()

    f = mg.compile(step)
    for _ in range(2):
        a, b = mg.tensor([3.0], requires_grad=True), mg.tensor([5.0], requires_grad=True)
        f(a, b)
        assert (a.grad.item(), b.grad.item()) == (30.0, 9.0)
    c = mg.tensor([2.0], requires_grad=True)
    f(c, c)
    assert c.grad.item() == 12.0


def test_a_captured_leaf_as_argument_gets_the_sum_of_both_gradients():
    w = mg.tensor([3.0], requires_grad=True)

    def step(x):
        (x * x * w).sum().backward()

    f = mg.compile(step)
    for _ in range(2):
        w.grad, a = None, mg.tensor([5.0], requires_grad=True)
        f(a)
        assert (a.grad.item(), w.grad.item()) == (30.0, 25.0)
    w.grad = None
    f(w)
    assert w.grad.item() == 27.0
    a = mg.tensor([5.0], requires_grad=True)
    w.grad = None
    f(a)
    assert (a.grad.item(), w.grad.item()) == (30.0, 25.0)


def test_a_constant_of_numbers_is_new_for_each_call():
    def count(x):
        total = mg.tensor([0.0, 0.0])
        total += x
        return total

    f = mg.compile(count)
    a, b = pairs()
    first = f(a)
    assert f(b).tolist() == [10.0, 20.0]
    assert first.tolist() == [1.0, 2.0]
    kept = mg.compile(lambda x: (x, mg.tensor([7.0])))
    _, seven = kept(a)
    kept(a)[1].fill_(0.0)
    assert kept(a)[1].tolist() == seven.tolist() == [7.0]
