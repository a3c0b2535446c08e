"""A few operations without the table: numbers worked out by hand, and whole small programs."""

from __future__ import annotations

import math

import numpy as np
import oracle
import pytest

import minigrad as mg


def test_a_polynomial():
    x = mg.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = (x**2 + 3 * x).sum()
    assert y.item() == 32
    y.backward()
    assert x.grad.tolist() == [5, 7, 9]


def test_a_product_rule():
    a, b = mg.tensor(2.0, requires_grad=True), mg.tensor(5.0, requires_grad=True)
    (a * b * a).backward()
    assert a.grad.item() == 20  # d(a^2 b) = 2ab
    assert b.grad.item() == 4


def test_a_quotient():
    a, b = mg.tensor(6.0, requires_grad=True), mg.tensor(2.0, requires_grad=True)
    y = a / b
    y.backward()
    assert (y.item(), a.grad.item(), b.grad.item()) == (3, 0.5, -1.5)


def test_the_chain_rule():
    x = mg.tensor(0.5, mg.float64, requires_grad=True)
    mg.exp(mg.sin(x)).backward()
    assert x.grad.item() == pytest.approx(math.exp(math.sin(0.5)) * math.cos(0.5), rel=1e-15)


def test_third_derivative_of_a_fourth_power():
    x = mg.tensor(2.0, requires_grad=True)
    y = x**4
    for want in (32, 48, 48, 24):
        (y,) = mg.grad(y, x, create_graph=True)
        assert y.item() == want
    assert mg.grad(y, x)[0].item() == 0


def test_higher_derivatives_of_the_sine_go_round():
    x = mg.tensor(0.3, mg.float64, requires_grad=True)
    y = mg.sin(x)
    for want in (math.cos(0.3), -math.sin(0.3), -math.cos(0.3), math.sin(0.3)):
        (y,) = mg.grad(y, x, create_graph=True)
        assert y.item() == pytest.approx(want, rel=1e-14)


def test_a_matrix_product():
    a = mg.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    b = mg.tensor([[5.0, 6.0], [7.0, 8.0]], requires_grad=True)
    y = a @ b
    assert y.tolist() == [[19, 22], [43, 50]]
    y.backward(mg.tensor([[1.0, 0.0], [0.0, 2.0]]))
    assert a.grad.tolist() == [[5, 7], [12, 16]]
    assert b.grad.tolist() == [[1, 6], [2, 8]]


def test_a_bias_is_summed_over_the_batch():
    x, b = mg.ones(4, 3), mg.zeros(3, requires_grad=True)
    ((x + b) * mg.tensor([1.0, 2.0, 3.0])).sum().backward()
    assert b.grad.tolist() == [4, 8, 12]


def test_softmax_of_two():
    x = mg.tensor([0.0, math.log(3)], mg.float64, requires_grad=True)
    y = x.softmax(0)
    np.testing.assert_allclose(y.detach().numpy(), [0.25, 0.75], rtol=1e-15)
    (g,) = mg.grad(y, x, mg.tensor([1.0, 0.0], mg.float64))
    np.testing.assert_allclose(g.numpy(), [3 / 16, -3 / 16], rtol=1e-15)


def test_the_variance_and_its_gradient():
    x = mg.tensor([1.0, 2.0, 6.0], requires_grad=True)
    y = x.var()
    assert y.item() == 7
    y.backward()
    assert x.grad.tolist() == [-2, -1, 3]


def test_the_product_and_its_gradient():
    x = mg.tensor([2.0, 3.0, 4.0], requires_grad=True)
    y = x.prod()
    y.backward()
    assert (y.item(), x.grad.tolist()) == (24, [12, 8, 6])


def test_gradients_add_up_over_uses_and_backwards():
    x = mg.tensor(3.0, requires_grad=True)
    (x * x + x).backward()
    assert x.grad.item() == 7
    (2 * x).backward()
    assert x.grad.item() == 9


def test_a_line_is_fitted():
    t = np.linspace(-1, 1, 20)
    w, b = (
        mg.tensor(0.0, mg.float64, requires_grad=True),
        mg.tensor(0.0, mg.float64, requires_grad=True),
    )
    for _ in range(300):
        loss = ((w * t + b - (3 * t - 0.5)) ** 2).mean()
        by_w, by_b = mg.grad(loss, (w, b))
        with mg.no_grad():
            w -= 0.5 * by_w
            b -= 0.5 * by_b
    assert w.item() == pytest.approx(3, abs=1e-9)
    assert b.item() == pytest.approx(-0.5, abs=1e-9)


def test_a_small_network_against_finite_differences(rng):
    x = mg.tensor(rng.normal(size=(5, 3)))
    target = mg.tensor(np.eye(2)[rng.integers(0, 2, 5)])

    def loss(w, b, v):
        hidden = mg.tanh(x @ w + b)
        return -(mg.log_softmax(hidden @ v, -1) * target).sum(1).mean()

    parameters = [rng.normal(size=s) for s in ((3, 4), (4,), (4, 2))]
    oracle.check_gradients(loss, parameters, rng)


def test_a_hessian():
    """Hessian of x'Ax + exp(x0 x1): A + A' + the exponential's, entry by entry."""
    a = np.array([[2.0, -1.0], [3.0, 0.5]])
    x = mg.tensor([0.3, -0.7], mg.float64, requires_grad=True)
    y = x @ mg.tensor(a) @ x + mg.exp(x[0] * x[1])
    (g,) = mg.grad(y, x, create_graph=True)
    rows = [mg.grad(g[i], x, retain_graph=True)[0].numpy() for i in range(2)]
    p, q = 0.3, -0.7
    e = math.exp(p * q)
    want = a + a.T + e * np.array([[q * q, 1 + p * q], [1 + p * q, p * p]])
    np.testing.assert_allclose(rows, want, rtol=1e-14)


def test_a_gradient_penalty():
    """A loss of a gradient: first and second order meet in one graph."""
    w = mg.tensor([1.0, -2.0], requires_grad=True)
    x = mg.tensor([3.0, 0.5], requires_grad=True)
    (by_x,) = mg.grad((w * x * x).sum(), x, create_graph=True)
    (by_x * by_x).sum().backward()
    np.testing.assert_allclose(w.grad.numpy(), 8 * np.array([9.0, 0.25]) * [1, -2], rtol=1e-6)


def test_a_random_cotangent_is_linear(rng):
    """vjp(a g + b h) = a vjp(g) + b vjp(h), through a program with broadcasts and views."""
    x = mg.tensor(rng.normal(size=(3, 4)), requires_grad=True)
    y = mg.tanh(x.T @ x[:, :2]) * x.sum(0, True).T
    g, h = rng.normal(size=y.shape), rng.normal(size=y.shape)
    parts = [
        mg.grad(y, x, mg.tensor(c), retain_graph=True)[0].numpy() for c in (g, h, 2 * g - 3 * h)
    ]
    np.testing.assert_allclose(parts[2], 2 * parts[0] - 3 * parts[1], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("graph", [False, True])
def test_a_zero_derivative_is_zero_against_any_upstream_gradient(graph):
    x = mg.tensor([-2.0, 0.0, 3.0, 1.0], requires_grad=True)
    upstream = mg.tensor([np.inf, 1.0, np.nan, -np.inf])
    (g,) = mg.grad(x.sign(), x, upstream, create_graph=graph)
    assert g.tolist() == [0.0, 0.0, 0.0, 0.0]


@pytest.mark.parametrize("dropping", [mg.where, lambda c, y, z: y.masked_fill(~c, z)])
def test_the_dropped_branch_of_where_is_zero_in_second_derivatives_too(dropping):
    """The gradient 1 / x is infinite there, and so is its derivative by the upstream gradient."""
    x = mg.tensor([0.0, 2.0], requires_grad=True)
    upstream = mg.tensor([1.0, 1.0], requires_grad=True)
    y = dropping(x > 0, x.log(), 0.0)
    (g,) = mg.grad(y, x, upstream, create_graph=True)
    assert g.tolist() == [0.0, 0.5]
    by_x, by_upstream = mg.grad(g.sum(), [x, upstream])
    assert by_x.tolist() == [0.0, -0.25]
    assert by_upstream.tolist() == [0.0, 0.5]
