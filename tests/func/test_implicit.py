"""Roots and fixed points: gradients by the implicit function theorem, to any order."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import optimize

import minigrad as mg
from minigrad import func, nn
from minigrad.func import implicit

F64 = {"dtype": mg.float64}


def leaf(values):
    return mg.tensor(values, requires_grad=True, **F64)


def cubic(x, a, b):
    return x**3 + a * x - b


def by_scipy(a, b):
    return optimize.root(lambda x: cubic(mg.tensor(x), a, b).numpy(), np.ones(3)).x


cubic_root = func.custom_root(cubic, by_scipy)
A, B = [1.0, 2.0, 3.0], [1.0, 5.0, -2.0]


def test_values_and_gradients_by_hand():
    a, b = leaf(A), leaf(B)
    x = cubic_root(a, b)
    values = x.detach().numpy()
    np.testing.assert_allclose(values**3 + A * values, B, atol=1e-12)
    x.sum().backward()
    slope = 3 * values**2 + A
    np.testing.assert_allclose(a.grad.numpy(), -values / slope, rtol=1e-12)
    np.testing.assert_allclose(b.grad.numpy(), 1 / slope, rtol=1e-12)
    assert x.grad_fn.name() == "custom_root"


def test_gradients_of_gradients():
    a, b = leaf(A), leaf(B)
    assert mg.gradcheck(cubic_root, (a, b))
    assert mg.gradgradcheck(cubic_root, (a, b))
    (first,) = mg.grad(cubic_root(a, b).sum(), b, create_graph=True)
    (second,) = mg.grad(first.sum(), b, create_graph=True)
    (third,) = mg.grad(second.sum(), b)
    x = cubic_root(a, b).detach().numpy()
    s = 3 * x**2 + A
    np.testing.assert_allclose(second.detach().numpy(), -6 * x / s**3, rtol=1e-10)
    np.testing.assert_allclose(third.numpy(), (-6 + 108 * x**2 / s) / s**4, rtol=1e-9)


def test_a_coupled_system(rng):
    def equations(x, w, c):
        return x + 0.5 * (w @ x).tanh() - c

    def newton(w, c):
        x = c.numpy()
        return optimize.root(lambda x: equations(mg.tensor(x), w, c).numpy(), x, tol=1e-13).x

    root = func.custom_root(equations, newton)
    w, c = leaf(rng.standard_normal((4, 4))), leaf(rng.standard_normal(4))
    assert mg.gradcheck(root, (w, c))
    assert mg.gradgradcheck(root, (w, c))


def test_many_unknowns_by_products_alone(rng, monkeypatch):
    n = 300
    d = leaf(2 + rng.random(n))
    c = leaf(rng.standard_normal(n))

    def equations(x, d, c):
        return d * x + 0.3 * x.roll(1).sin() + x**3 / 10 - c

    def newton(d, c):
        return optimize.root(
            lambda x: equations(mg.tensor(x), d, c).numpy(), np.zeros(n), method="krylov", tol=1e-10
        ).x

    root = func.custom_root(equations, newton)
    weights = mg.tensor(rng.standard_normal(n))
    found = mg.grad((root(d, c) * weights).sum(), (d, c))
    monkeypatch.setattr(implicit, "_DENSE", 1000)
    dense = mg.grad((root(d, c) * weights).sum(), (d, c))
    for a, b in zip(found, dense, strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-9, atol=1e-11)
    monkeypatch.setattr(implicit, "_DENSE", 2)
    assert mg.gradgradcheck(cubic_root, (leaf(A), leaf(B)))


def test_gmres_that_does_not_converge(monkeypatch):
    monkeypatch.setattr(implicit, "_DENSE", 1)
    shift = mg.tensor([[0.0, 1.0], [0.0, 0.0]], **F64)
    root = func.custom_root(lambda x, b: shift @ x - b * 0.0, lambda b: b.numpy() * 0)
    b = leaf([1.0, 1.0])
    with pytest.raises(RuntimeError, match=r"\[custom_root\] GMRES reaches a relative error of"):
        root(b).sum().backward()


def test_a_fixed_point():
    def f(x, a):
        return (x + a / x) / 2

    a = leaf([2.0, 9.0])
    x0 = mg.ones(2, **F64)

    def root(a):
        return func.fixed_point(f, x0, a)

    np.testing.assert_allclose(root(a).detach().numpy(), [2**0.5, 3], rtol=1e-14)
    assert mg.gradcheck(root, (a,))
    assert mg.gradgradcheck(root, (a,))
    assert root(a).grad_fn.name() == "fixed_point"
    assert func.fixed_point(f, 1.0, mg.tensor(4.0)).item() == pytest.approx(2)
    assert func.fixed_point(f, 1, mg.tensor(4.0)).item() == pytest.approx(2)


def test_parameters_of_a_module_are_found(restore_random):
    """A deep equilibrium layer, against the gradient through very many steps."""
    mg.manual_seed(0)
    layer = nn.Linear(4, 4).double()
    with mg.no_grad():
        layer.weight *= 0.5
    u = mg.randn(3, 4, requires_grad=True, **F64)

    def f(x, u):
        return (layer(x) + u).tanh()

    x = func.fixed_point(f, mg.zeros(3, 4, **F64), u)
    inputs = (u, layer.weight, layer.bias)
    found = mg.grad(x.square().sum(), inputs, create_graph=True)
    y = mg.zeros(3, 4, **F64)
    for _ in range(100):
        y = f(y, u)
    expected = mg.grad(y.square().sum(), inputs, create_graph=True)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-10, atol=1e-13)
    second = [mg.grad(sum(g.sin().sum() for g in gs), inputs) for gs in (found, expected)]
    for a, b in zip(*second, strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-9, atol=1e-12)


def test_other_arguments_and_keywords():
    def f(x, a, power, *, shift):
        return x**power - a - shift

    root = func.custom_root(f, lambda a, power, shift: (a.numpy() + shift) ** (1 / power))
    a = leaf([3.0])
    x = root(a, 2, shift=1.0)
    x.backward()
    assert (x.item(), a.grad.item()) == (2, pytest.approx(0.25))
    assert not root(mg.tensor([3.0], **F64), 2, shift=1.0).requires_grad
    with mg.no_grad():
        assert not root(a, 2, shift=1.0).requires_grad


def test_a_parameter_that_the_root_does_not_depend_on():
    root = func.custom_root(lambda x, a, b: x - a, lambda a, b: a)
    a, b = leaf([3.0]), leaf([1.0])
    da, db = mg.grad(root(a, b).sum(), (a, b), allow_unused=True)
    assert (da.item(), db) == (1, None)
    assert mg.grad(func.custom_root(lambda x, a: x * 2, lambda a: a * 0)(a).sum(), a)[0].item() == 0


def test_float32_and_scalars():
    root = func.custom_root(lambda x, a: x * x - a, lambda a: a.sqrt())
    a = mg.tensor(9.0, requires_grad=True)
    x = root(a)
    x.backward()
    assert (x.dtype, a.grad.dtype, x.shape) == (mg.float32, mg.float32, ())
    assert a.grad.item() == pytest.approx(1 / 6)


def test_results_of_operations_as_parameters():
    a = leaf([2.0, 3.0])
    (cubic_root(mg.cat([a, a[:1]]) ** 2, mg.tensor(B)) * 2).sum().backward()
    assert np.isfinite(a.grad.numpy()).all()
    h = leaf([4.0]) * 1
    with pytest.raises(RuntimeError, match=r"uses a result of 'mul' that is not given to it"):
        func.custom_root(lambda x: x - h, lambda: h.detach())()


def test_an_overwritten_parameter_is_an_error():
    h = leaf([2.0]) * 1
    x = func.custom_root(lambda x, a: x - a, lambda a: a)(h)
    h += 1
    with pytest.raises(RuntimeError, match="overwritten in place"):
        x.sum().backward()


ERRORS = {
    "no root": (lambda x, a: x - a, lambda a: a + 1, RuntimeError, "the residual is up to 1 at"),
    "NaN": (lambda x, a: x - a, lambda a: a * mg.nan, RuntimeError, "the residual is up to nan"),
    "shape": (
        lambda x, a: (x - a).sum(),
        lambda a: a,
        ValueError,
        r"the residual has shape \(\), and x has \(2,\)",
    ),
    "no tensor": (lambda x, a: 0.0, lambda a: a, TypeError, "the residual is float, not a Tensor"),
    "integers": (lambda x, a: x, lambda a: [1, 2], TypeError, "solve returned int64"),
}


@pytest.mark.parametrize("case", ERRORS.values(), ids=ERRORS)
def test_errors(case):
    residual, solve, error, text = case
    with pytest.raises(error, match=r"\[custom_root\] " + text):
        func.custom_root(residual, solve)(leaf([1.0, 2.0]))


def test_more_errors():
    with pytest.raises(TypeError, match=r"\[custom_root\] expected a function, not int"):
        func.custom_root(lambda x: x, 3)
    with pytest.raises(TypeError, match=r"\[fixed_point\] the function returned float, not a Ten"):
        func.fixed_point(lambda x: 1.0, 1)
    with pytest.raises(RuntimeError, match=r"\[fixed_point\] x still moves by .* after 5 steps"):
        func.fixed_point(lambda x: x + 1, mg.tensor(0.0), max_iter=5)
    root = func.custom_root(lambda x, a: (x - a) ** 2, lambda a: a)
    a = leaf([1.0, 2.0])
    with pytest.raises(np.linalg.LinAlgError, match="the Jacobian of the residual is singular"):
        root(a).sum().backward()


def test_nothing_of_the_solution_is_recorded():
    a = leaf([4.0])
    seen = []

    def solve(a):
        seen.append((mg.is_grad_enabled(), a.requires_grad))
        return a.sqrt()

    x = func.custom_root(lambda x, a: x * x - a, solve)(a)
    assert seen == [(False, False)]
    assert mg.graph_memory(x).nodes == 1
    x.backward(retain_graph=True)
    x.backward()
    assert a.grad.item() == pytest.approx(0.5)
    with pytest.raises(RuntimeError, match="the graph was freed"):
        x.backward()


@pytest.mark.parametrize("how", ["captured", "by keyword"])
def test_a_constant_of_the_residual_that_was_overwritten_is_noticed(how):
    a, factor = mg.tensor([4.0, 9.0], requires_grad=True), mg.ones(2)
    given = {"factor": factor} if how == "by keyword" else {}

    def residual(x, a, factor=factor):
        return factor * x * x - a

    root = mg.func.custom_root(residual, lambda a, **named: a.numpy() ** 0.5)
    y = root(a, **given)
    factor.mul_(2.0)
    with pytest.raises(RuntimeError, match=r"\[custom_root\] a tensor saved .* overwritten"):
        y.sum().backward()


def test_a_solver_may_use_its_memory_again():
    a, memory = mg.tensor([4.0, 9.0], requires_grad=True), mg.zeros(2)
    root = mg.func.custom_root(lambda x, a: x * x - a, lambda a: memory.copy_(a.sqrt()))
    y = root(a)
    root(a.detach() + 1.0)
    y.sum().backward()
    assert y.tolist() == [2.0, 3.0]
    assert a.grad.tolist() == pytest.approx([1 / 4, 1 / 6])


def test_forward_mode_twice():
    root = mg.func.custom_root(lambda x, a: x**3 - a, lambda a: a.numpy() ** (1 / 3))
    a = mg.tensor([1.0, 8.0], dtype=mg.float64)
    found = mg.func.jacfwd(mg.func.jacfwd(lambda a: root(a).sum()))(a)
    np.testing.assert_allclose(
        found.detach().numpy(), np.diag(-2 / 9 * a.numpy() ** (-5 / 3)), rtol=1e-9
    )


def test_constants_that_numpy_writes_are_noticed():
    c = np.ones(2)
    t = mg.from_numpy(c)
    root = mg.func.custom_root(lambda r, q: t * r * r - q, lambda q: (q.numpy() / c) ** 0.5)
    q = mg.tensor([4.0, 9.0], dtype=mg.float64, requires_grad=True)
    y = root(q)
    c *= 2
    with pytest.raises(RuntimeError, match="other values than when the root was found"):
        y.sum().backward()
    c /= 2
    y.sum().backward()
    assert q.grad.tolist() == [0.25, 1 / 6]
