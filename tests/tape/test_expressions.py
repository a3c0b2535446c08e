"""Text of a node: ``print(y.grad_fn)`` shows the expression, and ``repr`` the operation."""

from __future__ import annotations

import pytest

import minigrad as mg

X = mg.tensor([1.0, 2.0], requires_grad=True)
W = mg.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda x, w: x**2 + 3 * x, "<add: x ** 2 + 3 * x>"),
        (lambda x, w: x * w + w, "<add: x1 * x2 + x2>"),
        (lambda x, w: (x + x) * x, "<mul: (x + x) * x>"),
        (lambda x, w: x - (x - x), "<sub: x - (x - x)>"),
        (lambda x, w: x - x - x, "<sub: x - x - x>"),
        (lambda x, w: x / (x * x), "<div: x / (x * x)>"),
        (lambda x, w: (-x) ** 2, "<pow: (-x) ** 2>"),
        (lambda x, w: -(x**2), "<neg: -x ** 2>"),
        (lambda x, w: -(x + x), "<neg: -(x + x)>"),
        (lambda x, w: x**-2, "<pow: x ** (-2)>"),
        (lambda x, w: (x**x) ** x, "<pow: (x ** x) ** x>"),
        (lambda x, w: x ** (x**x), "<pow: x ** x ** x>"),
        (lambda x, w: x * 0.5, "<mul: x * 0.5>"),
        (lambda x, w: x @ w.T, "<matmul: x1 @ x2.T>"),
        (lambda x, w: (x @ w).tanh().sum(), "<sum: sum(tanh(x1 @ x2))>"),
        (lambda x, w: x + 1, "<add: x + c>"),  # the value of c is not saved
        (lambda x, w: x.exp()[0], "<slice_view: exp(x)[0]>"),
        (lambda x, w: (x * x)[1:], "<slice: (x * x)[1:2]>"),
        (lambda x, w: w[:, 0], "<slice_view: x[:, 0]>"),
        (lambda x, w: w[1], "<slice_view: x[1]>"),
        (lambda x, w: w[:, ::2], "<slice: x[:, 0:1]>"),
        (lambda x, w: mg.cat([x] * 9), "<cat: cat(x, x, x, x, x, x, ...)>"),
        (lambda x, w: (x * 2).relu_(), "<relu: relu(x * 2)>"),
    ],
)
def test_expressions(make, text):
    assert str(make(X, W).grad_fn) == text


def test_the_text_of_a_function_and_its_outputs():
    class Two(mg.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2, x * 3

        @staticmethod
        def backward(ctx, g, h):
            return g * 2 + h * 3

    a, b = Two.apply(X)
    assert str((a + b).grad_fn) == "<add: Two(x)[0] + Two(x)[1]>"


def test_long_expressions_are_cut():
    y = X
    for _ in range(1000):
        y = y * y
    text = str(y.grad_fn)
    assert len(text) < 100
    assert "..." in text
    z = X
    for _ in range(3000):
        z = z.exp()
    text = str(z.grad_fn)
    assert text.startswith("<exp: exp(exp(")
    assert len(text) < 100


def test_a_wide_operation_shows_one_level_at_least():
    text = str(mg.stack([x for x in W for _ in range(50)]).grad_fn)
    assert text == "<stack: stack(x[0], x[0], x[0], x[0], x[0], x[0], ...)>"


def test_a_freed_graph_shows_the_operation_alone():
    y = (X.exp() * 2).sum()
    node = y.grad_fn.parents[0]
    y.backward()
    assert str(y.grad_fn) == repr(y.grad_fn) == "<sum>"
    assert str(node) == "<mul>"
    X.grad = None


def test_the_repr_stays_short():
    assert repr((X * 2).grad_fn) == "<mul>"
    assert "grad_fn=<mul>" in repr(X * 2)


def test_an_overwritten_constant_is_not_shown():
    c = mg.tensor(2.0)
    y = X * c
    assert str(y.grad_fn) == "<mul: x * 2>"
    c.fill_(3.0)
    assert str(y.grad_fn) == "<mul: x * c>"
