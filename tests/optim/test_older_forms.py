"""PyTorch's older argument orders, with factors before operands, as in older optimizers."""

import numpy as np
import pytest

import minigrad as mg


def t(lib, *values):
    return [lib.tensor(np.asarray(v, np.float64)) for v in values]


M, A, B = [[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0], [7.0, 9.0]], [[0.5, 2.0], [4.0, 8.0]]
V, W = [1.0, 3.0], [2.0, 5.0]

# In the older order, and by keyword.
ELEMENTWISE = {
    "add": (lambda f, x, a, b: f(x, 3, a), lambda f, x, a, b: f(x, a, alpha=3)),
    "sub": (lambda f, x, a, b: f(x, -0.5, a), lambda f, x, a, b: f(x, a, alpha=-0.5)),
    "addcmul": (lambda f, x, a, b: f(x, 3, a, b), lambda f, x, a, b: f(x, a, b, value=3)),
    "addcdiv": (lambda f, x, a, b: f(x, -2.5, a, b), lambda f, x, a, b: f(x, a, b, value=-2.5)),
}
PRODUCTS = {
    "addmm": (M, A, B),
    "addmv": (V, A, W),
    "addr": (M, V, W),
    "addbmm": (M, [A, B], [B, A]),
    "baddbmm": ([M, M], [A, B], [B, A]),
}


@pytest.mark.parametrize("lib", ["minigrad", "torch"])
@pytest.mark.parametrize("name", ELEMENTWISE)
@pytest.mark.filterwarnings("ignore:This overload")
def test_elementwise(name, lib):
    lib = pytest.importorskip(lib)
    older, keyword = ELEMENTWISE[name]
    x, a, b = t(lib, M, A, B)
    want = keyword(getattr(lib, name), x, a, b).tolist()
    for f in (getattr(lib, name), getattr(lib.Tensor, name), getattr(lib.Tensor, f"{name}_")):
        assert older(f, x.clone(), a, b).tolist() == want
    x.requires_grad_()
    a.requires_grad_()
    older(getattr(lib, name), x, a, b).sum().backward()
    assert x.grad.tolist() == [[1, 1], [1, 1]]
    got, a.grad = a.grad.tolist(), None
    keyword(getattr(lib, name), x, a, b).sum().backward()
    assert got == a.grad.tolist()


@pytest.mark.parametrize("lib", ["minigrad", "torch"])
@pytest.mark.parametrize("name", PRODUCTS)
@pytest.mark.filterwarnings("ignore:This overload")
def test_products(name, lib):
    lib = pytest.importorskip(lib)
    x, a, b = t(lib, *PRODUCTS[name])
    f, method = getattr(lib, name), getattr(lib.Tensor, name)
    in_place = getattr(lib.Tensor, f"{name}_")
    both = f(x, a, b, beta=0.5, alpha=3).tolist()
    one = f(x, a, b, beta=0.5).tolist()
    assert f(0.5, x, 3, a, b).tolist() == method(x, 0.5, 3, a, b).tolist() == both
    assert f(0.5, x, a, b).tolist() == method(x, 0.5, a, b).tolist() == one
    assert in_place(x.clone(), 0.5, 3, a, b).tolist() == both
    assert in_place(x.clone(), 0.5, a, b).tolist() == one


def test_a_step_of_adam_as_it_once_was_written():
    p, g = t(mg, [1.0, -2.0], [0.5, 4.0])
    first, second = mg.zeros_like(p), mg.zeros_like(p)
    first.mul_(0.9).add_(1 - 0.9, g)
    second.mul_(0.999).addcmul_(1 - 0.999, g, g)
    denom = second.sqrt().add_(1e-8)
    p.addcdiv_(-0.1, first, denom)
    gn = g.numpy()
    want = np.array([1.0, -2.0]) - 0.1 * (0.1 * gn) / (np.sqrt(0.001 * gn * gn) + 1e-8)
    np.testing.assert_allclose(p.numpy(), want, rtol=1e-12)


def test_integers_stay_integers():
    assert mg.add(mg.tensor([1]), 2, mg.tensor([3])).dtype is mg.int64
    assert mg.tensor([1]).addcmul_(2, mg.tensor([3]), mg.tensor([4])).tolist() == [25]


X = mg.ones(2)
ERRORS = [
    (lambda: mg.add(X, X, X), "[add] alpha must be a number, not Tensor"),
    (lambda: mg.add(X, 1, X, X), "[add] takes 2 operands, and alpha before the last one, but 4"),
    (lambda: mg.add(X, 2, X, alpha=3), "[add] alpha is given twice"),
    (lambda: mg.addcmul(X, X, X, X), "[addcmul] value must be a number, not Tensor"),
    (
        lambda: mg.addcdiv(X, 1, 2, X, X),
        "[addcdiv] takes 3 operands, and value before the last 2, but 5",
    ),
    (lambda: mg.addmm(X, X, X, X), "[addmm] beta must be a number, not Tensor"),
    (lambda: mg.addmm(1, X, X, X, X), "[addmm] alpha must be a number, not Tensor"),
    (lambda: mg.addmm(1, X, 2, X, X, beta=2), "[addmm] beta is given twice"),
    (lambda: mg.addmm(1, X, 2, X, X, alpha=2), "[addmm] alpha is given twice"),
    (lambda: mg.addmm(1, X, 2, X, X, X), "[addmm] takes 3 operands, and beta before the last 2"),
    (
        lambda: mg.add(X, mg.tensor(2.0, requires_grad=True), X),
        "[add] alpha is a tensor that requires grad",
    ),
]


@pytest.mark.parametrize(("call", "message"), ERRORS)
def test_refusals(call, message):
    with pytest.raises(TypeError) as caught:
        call()
    assert str(caught.value).startswith(message)
