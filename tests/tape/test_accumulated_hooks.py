"""Hooks that wait until a leaf's gradient is in its ``grad``, and the numbers of results."""

from __future__ import annotations

import numpy as np
import pytest

import minigrad as mg


def test_it_is_called_when_the_gradient_is_there():
    x, w = mg.ones(2, requires_grad=True), mg.ones(2, requires_grad=True)
    seen = []
    x.register_hook(lambda g: g * 10)
    handle = x.register_post_accumulate_grad_hook(
        lambda leaf: seen.append((leaf is x, leaf.grad.tolist(), w.grad is not None))
    )
    for _ in range(2):
        (x * w).sum().backward()
    handle.remove()
    handle.remove()
    (x * w).sum().backward()
    assert seen == [(True, [10.0, 10.0], True), (True, [20.0, 20.0], True)]
    assert x.grad.tolist() == [30.0, 30.0]


@pytest.mark.usefixtures("restore_random")
def test_an_optimizer_steps_in_it():
    model = mg.nn.Linear(3, 2)
    before = [p.detach().clone() for p in model.parameters()]
    for p in model.parameters():
        optimizer = mg.optim.SGD([p], lr=0.5)

        def step(leaf, optimizer=optimizer):
            assert not mg.is_grad_enabled()
            optimizer.step()
            leaf.grad = None

        p.register_post_accumulate_grad_hook(step)
    model(mg.ones(4, 3)).sum().backward()
    for p, old in zip(model.parameters(), before, strict=True):
        np.testing.assert_allclose(p.detach().numpy(), old.numpy() - 2.0)
        assert p.grad is None


def test_only_backward_into_grads_calls_it():
    x, seen = mg.tensor(3.0, requires_grad=True), []
    x.register_post_accumulate_grad_hook(lambda leaf: seen.append(leaf.grad.requires_grad))
    mg.grad(x * x, x)
    assert seen == []
    (x * x).backward(inputs=[x])
    assert seen == [False]
    x.grad = None
    with pytest.warns(UserWarning, match="create_graph"):
        (x * x).backward(create_graph=True)
    assert seen == [False, True]
    x.grad = None


def test_it_sees_what_other_leaves_have_and_its_error_comes_out():
    x, w = mg.ones(1, requires_grad=True), mg.ones(1, requires_grad=True)

    def fail(leaf):
        raise ZeroDivisionError

    x.register_post_accumulate_grad_hook(fail)
    with pytest.raises(ZeroDivisionError):
        (x * w).backward()
    assert x.grad.item() == w.grad.item() == 1.0


def test_a_gradient_is_not_copied_for_it():
    x = mg.ones(3, requires_grad=True)
    x.register_post_accumulate_grad_hook(lambda leaf: None)
    g = mg.ones(3)
    (x * 1.0).backward(g)
    g += 1
    assert x.grad.tolist() == [1.0, 1.0, 1.0]


def test_errors():
    x = mg.ones(2, requires_grad=True)
    op = "register_post_accumulate_grad_hook"
    for wrong in (x * 2, mg.ones(2)):
        with pytest.raises(RuntimeError, match=rf"\[{op}\] only a leaf that requires grad"):
            wrong.register_post_accumulate_grad_hook(print)
    with pytest.raises(TypeError, match=rf"\[{op}\] a hook is a function, not int"):
        x.register_post_accumulate_grad_hook(3)


class _Both(mg.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2, x * 3

    @staticmethod
    def backward(ctx, a, b):
        return a * 2 + b * 3


def test_the_number_of_a_result():
    x = mg.ones(2, requires_grad=True)
    a, b = _Both.apply(x)
    assert (x.output_nr, a.output_nr, b.output_nr, (a + b).output_nr) == (0, 0, 1, 0)
    b.grad_fn.register_hook(lambda inputs, outputs: None)
    assert b.output_nr == 1
