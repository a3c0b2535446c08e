"""Tests of Jacobians, Hessians, products with them, and of functions of functions."""

from __future__ import annotations

from collections import namedtuple

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn
from minigrad.autograd.functional import hessian, hvp, jacobian, jvp, vhp, vjp

pytestmark = pytest.mark.usefixtures("restore_random")  # layers draw their weights

A = np.array([[1.0, -2.0, 0.5], [0.3, 4.0, -1.0]])


def double(values, **options):
    return mg.tensor(values, dtype=mg.float64, **options)


def same(found, wanted):
    np.testing.assert_allclose(found.detach().numpy(), wanted, rtol=1e-12, atol=1e-12)


# ---- autograd.functional -------------------------------------------------------------------------


def test_jacobian_of_one_input():
    x = double([0.5, -1.0, 2.0])
    found = jacobian(lambda t: double(A) @ t.exp(), x)
    same(found, A * np.exp(x.numpy()))
    assert not found.requires_grad
    assert x.grad is None


def test_jacobian_of_several_inputs_and_outputs():
    x, y = double([1.0, 2.0]), double([[3.0], [4.0]])
    found = jacobian(lambda a, b: (a * b.sum(), b[:, 0] * a[0], a.sum()), (x, y))
    assert [[j.shape for j in row] for row in found] == [
        [(2, 2), (2, 2, 1)],
        [(2, 2), (2, 2, 1)],
        [(2,), (2, 1)],
    ]
    same(found[0][0], 7 * np.eye(2))
    same(found[0][1], [[[1], [1]], [[2], [2]]])
    same(found[1][0], [[3, 0], [4, 0]])
    same(found[1][1], np.eye(2)[:, :, None])
    same(found[2][1], [[0], [0]])


def test_jacobian_of_nothing():
    assert jacobian(lambda t: t[:0], double([1.0, 2.0])).shape == (0, 2)
    assert jacobian(lambda t: t.sum(), double(np.zeros((0, 3)))).shape == (0, 3)


def test_jacobian_is_differentiated_again():
    x = double([0.5, 2.0], requires_grad=True)
    jacobian(lambda t: t**3, x, create_graph=True).sum().backward()
    same(x.grad, 6 * x.detach().numpy())


def test_hessian():
    x, y = double([1.0, 2.0]), double(3.0)
    same(hessian(lambda t: (t**3).sum(), x), np.diag([6.0, 12.0]))
    (xx, xy), (yx, yy) = hessian(lambda a, b: (a**2).sum() * b**2, (x, y))
    same(xx, 18 * np.eye(2))
    same(xy, [12, 24])
    same(yx, [12, 24])
    same(yy, 10.0)
    z = double([1.0, 2.0], requires_grad=True)
    hessian(lambda t: (t**4).sum(), z, create_graph=True).sum().backward()
    same(z.grad, 24 * z.detach().numpy())


def test_products_with_the_jacobian():
    x, v, w = double([0.5, -1.0, 2.0]), double([1.0, 0.0, -2.0]), double([3.0, 1.0])
    full = A * np.exp(x.numpy())

    def f(t):
        return double(A) @ t.exp()

    for product, wanted in ((vjp(f, x, w), w.numpy() @ full), (jvp(f, x, v), full @ v.numpy())):
        same(product[0], A @ np.exp(x.numpy()))
        same(product[1], wanted)
        assert not product[0].requires_grad
        assert not product[1].requires_grad
    _, (by_a, by_b) = vjp(lambda a, b: a * b, (x, v), v)
    same(by_a, v.numpy() ** 2)
    same(by_b, v.numpy() * x.numpy())


@pytest.mark.parametrize("product", [vhp, hvp])
def test_products_with_the_hessian(product):
    x, v = double([1.0, 2.0]), double([3.0, -1.0])
    value, found = product(lambda t: t[0] ** 2 * t[1] ** 3, x, v)
    same(value, 8.0)
    same(found, np.array([[16.0, 24.0], [24.0, 12.0]]) @ [3, -1])


def test_what_does_not_depend_is_zero_or_an_error():
    x, y = double([1.0, 2.0]), double([3.0])
    same(jacobian(lambda a, b: a * 2, (x, y))[1], np.zeros((2, 1)))
    same(jacobian(lambda a: double([1.0]), x), np.zeros((1, 2)))
    same(hessian(lambda a: a.sum(), x), np.zeros((2, 2)))
    for f, given in ((lambda a, b: a * 2, (x, y)), (lambda a: double([1.0]), x)):
        with pytest.raises(RuntimeError, match=r"^\[jacobian\] .* does not depend on"):
            jacobian(f, given, strict=True)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda x: jacobian(mg.exp, [1.0]), TypeError, r"\[jacobian\] inputs: number 0 is float"),
        (lambda x: jacobian(lambda t: 3, x), TypeError, r"\[jacobian\] the outputs of func must"),
        (
            lambda x: hessian(mg.exp, x),
            RuntimeError,
            r"\[hessian\] the output of func has",
        ),
        (lambda x: vjp(mg.exp, x), RuntimeError, r"\[vjp\] v may be left out only if the output"),
        (lambda x: jvp(mg.exp, x, x[:1]), RuntimeError, r"\[jvp\] v has the shapes \[\(1,\)\]"),
    ],
)
def test_refusals(call, error, text):
    with pytest.raises(error, match=text):
        call(double([1.0, 2.0]))


# ---- func ----------------------------------------------------------------------------------------


def test_grad_to_any_order():
    f = mg.sin
    for wanted in (np.sin, np.cos, lambda x: -np.sin(x), lambda x: -np.cos(x)):
        found = f(double(0.7))
        same(found, wanted(0.7))
        assert not found.requires_grad
        f = mg.func.grad(f)


def test_argnums_and_aux():
    x, y = double([1.0, 2.0]), double([3.0, 4.0])

    def f(a, b, *, scale=1.0):
        return (a**2 * b).sum() * scale, {"product": a * b}

    by_y, aux = mg.func.grad(f, argnums=1, has_aux=True)(x, y, scale=2.0)
    same(by_y, [2, 8])
    same(aux["product"], [3, 8])
    assert not aux["product"].requires_grad
    (value, _), (first, last) = mg.func.value_and_grad(f, (0, -1), has_aux=True)(x, y)
    same(value, 19.0)
    same(first, [6, 16])
    same(last, [1, 4])


def test_trees():
    pair = namedtuple("pair", "left right")
    tree = {"a": [double([1.0]), (double([2.0]),)], "b": pair(double([3.0]), double([4.0]))}

    def f(t):
        return (t["a"][0] * t["a"][1][0] * t["b"].left + t["b"].right * 0).sum()

    found = mg.func.grad(f)(tree)
    assert isinstance(found["b"], pair)
    same(found["a"][0], [6])
    same(found["a"][1][0], [3])
    same(found["b"].left, [2])
    same(found["b"].right, [0])


def test_what_the_function_holds_gets_gradients_too():
    w, x = double(3.0, requires_grad=True), double(2.0)
    slope = mg.func.grad(lambda t: w * t**2)(x)
    same(slope, 12.0)
    slope.backward()
    same(w.grad, 4.0)
    with mg.no_grad():
        assert not mg.func.grad(lambda t: w * t**2)(x).requires_grad
    z = double(2.0, requires_grad=True)
    mg.func.grad(lambda t: t**3)(z).backward()
    same(z.grad, 12.0)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda g, x: g(mg.sin, 1)(x), ValueError, "argnums is 1, but there are 1 positional"),
        (lambda g, x: g(mg.sin, 0.5)(x), TypeError, "argnums must be integers, not float"),
        (lambda g, x: g(mg.sin)(2.0), TypeError, "an argument to differentiate by holds float"),
        (
            lambda g, x: g(mg.sin)(x.reshape(1).expand(2)),
            RuntimeError,
            r"returned the shape",
        ),
        (lambda g, x: g(lambda t: 3)(x), TypeError, "must return a tensor, not int"),
        (lambda g, x: g(mg.sin, has_aux=True)(x), TypeError, "with has_aux the function must"),
    ],
)
def test_refusals_of_grad(call, error, text):
    with pytest.raises(error, match=rf"^\[grad\] .*{text}"):
        call(mg.func.grad, double(1.0))


def test_functional_call():
    net = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3)).eval()
    before = {name: value.clone() for name, value in net.state_dict().items()}
    x = mg.ones(4, 2)
    weight = mg.zeros(3, 2, requires_grad=True)
    given = {"0.weight": weight, "0.bias": mg.ones(3), "1.running_mean": mg.ones(3)}
    same(mg.func.functional_call(net, given, (x,)), np.zeros((4, 3)))
    mg.func.functional_call(net, [given, {"1.weight": mg.full((3,), 2.0)}], x).sum().backward()
    np.testing.assert_allclose(weight.grad.numpy(), np.full((3, 2), 8 / np.sqrt(1 + 1e-5)), 1e-6)
    after = net.state_dict()
    assert list(after) == list(before)
    assert all((after[name] == before[name]).all() for name in before)
    with pytest.raises(KeyError, match=r"no parameter or buffer '0\.spam'"):
        mg.func.functional_call(net, {"0.spam": weight}, x)
    with pytest.raises(RuntimeError, match=r"strict: '0\.bias' is not given"):
        mg.func.functional_call(net, {"0.weight": weight}, x, strict=True)
    with pytest.raises(ValueError, match="linear"):
        mg.func.functional_call(net, {"0.weight": mg.ones(5, 5)}, x)
    assert (net[0].weight == before["0.weight"]).all()


def test_functional_call_of_tied_weights():
    net = nn.Sequential(nn.Linear(2, 2, bias=False), nn.Linear(2, 2, bias=False))
    net[1].weight = net[0].weight
    x, w = mg.ones(1, 2), {"0.weight": mg.eye(2) * 2}
    same(mg.func.functional_call(net, w, x), [[4, 4]])
    same(mg.func.functional_call(net, w, x, tie_weights=False), (x * 2) @ net[0].weight.detach().T)


def test_gradients_of_a_module_by_its_state():
    net = nn.Linear(2, 1)
    x, t = mg.randn(5, 2), mg.randn(5, 1)

    def loss(params):
        return nn.functional.mse_loss(mg.func.functional_call(net, params, x), t)

    found = mg.func.grad(loss)(dict(net.named_parameters()))
    nn.functional.mse_loss(net(x), t).backward()
    for name, p in net.named_parameters():
        np.testing.assert_allclose(found[name].detach().numpy(), p.grad.numpy(), rtol=1e-6)


# ---- strategies of autograd.functional -----------------------------------------------------------


def _products(x, y):
    return (x.sin() * y).sum(1) * y[0], x[0, 0] * y


def test_forward_mode_gives_the_same():
    inputs = double([[0.5, -1.0, 2.0], [1.0, 0.3, 0.1]]), double([1.0, -2.0, 0.5])
    wanted = jacobian(_products, inputs)
    for vectorize in (False, True):
        found = jacobian(_products, inputs, vectorize=vectorize, strategy="forward-mode")
        for got, want in zip(found, wanted, strict=True):
            for a, b in zip(got, want, strict=True):
                same(a, b.numpy())
                assert not a.requires_grad

    def loss(x, y):
        return sum((part**3).sum() for part in _products(x, y))

    found = hessian(loss, inputs, outer_jacobian_strategy="forward-mode")
    for got, want in zip(found, hessian(loss, inputs), strict=True):
        for a, b in zip(got, want, strict=True):
            same(a, b.numpy())
    vectors = double([[1.0, 0.0, 2.0], [0.0, 1.0, 1.0]]), double([1.0, 1.0, -1.0])
    for a, b in zip(hvp(loss, inputs, vectors)[1], vhp(loss, inputs, vectors)[1], strict=True):
        same(a, b.numpy())


@pytest.mark.parametrize("strategy", ["forward-mode", "reverse-mode"])
def test_jacobians_of_both_modes_are_differentiated_again(strategy):
    x = double([0.5, 2.0], requires_grad=True)
    with mg.no_grad():
        found = jacobian(lambda t: t**3, x, create_graph=True, strategy=strategy)
    (g,) = mg.grad(found.sum(), x)
    same(g, 6 * x.detach().numpy())


def test_strict_forward_mode():
    x = double([1.0, 2.0])
    for given, inputs in ((lambda a: mg.ones(2), x), (lambda a, b: a * 2.0, (x, x))):
        with pytest.raises(RuntimeError, match=r"\[jacobian\] .*does not depend on"):
            jacobian(given, inputs, strict=True, strategy="forward-mode")
        with pytest.raises(RuntimeError, match=r"\[jvp\] .*does not depend on"):
            jvp(given, inputs, inputs, strict=True)
    for product in (hvp, vhp):
        with pytest.raises(RuntimeError, match="does not depend on"):
            product(lambda a, b: (a**2).sum(), (x, x), (x, x), strict=True)
    with pytest.raises(ValueError, match=r"\[jacobian\] strategy is 'sideways': give"):
        jacobian(mg.exp, x, strategy="sideways")
    with pytest.raises(ValueError, match=r"\[hessian\] outer_jacobian_strategy is 'x': give"):
        hessian(cubes, x, outer_jacobian_strategy="x")


def cubes(x):
    return (x**3).sum()


# ---- beside PyTorch ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["jacobian", "hessian", "vjp", "jvp", "vhp", "hvp"])
def test_as_pytorch(name, rng):
    torch = pytest.importorskip("torch")
    theirs = getattr(torch.autograd.functional, name)
    ours = getattr(mg.autograd.functional, name)
    a, b = rng.standard_normal((2, 3)), rng.standard_normal(3)

    def f(x, y):
        z = (x.sin() * y).sum(1) * y[0]
        return z if name in ("jacobian", "vjp", "jvp") else (z**2).sum()

    v = (rng.standard_normal((2, 3)), rng.standard_normal(3))
    vectors = {"vjp": rng.standard_normal(2), "jvp": v, "vhp": v, "hvp": v}
    given = [vectors[name]] if name in vectors else []

    def on(kind):
        more = [tuple(map(kind, x)) if isinstance(x, tuple) else kind(x) for x in given]
        return (kind(a), kind(b)), *more

    def flat(x):
        return [y for z in x for y in flat(z)] if isinstance(x, tuple) else [x.numpy()]

    found, wanted = ours(f, *on(double)), theirs(f, *on(torch.tensor))
    for x, y in zip(flat(found), flat(wanted), strict=True):
        assert x.shape == y.shape
        np.testing.assert_allclose(x, y, rtol=1e-10, atol=1e-12)


# ---- vmap ----------------------------------------------------------------------------------------


def test_vmap_cuts_and_stacks():
    x, y = double(A), double(A + 1)
    same(mg.vmap(mg.dot)(x, y), (A * (A + 1)).sum(1))
    same(mg.vmap(mg.dot, in_dims=-1)(x, y), (A * (A + 1)).sum(0))
    same(mg.func.vmap(lambda a, b: a * b, (None, 0), 1)(y[0], x), ((A[0] + 1) * A).T)
    same(mg.vmap(mg.vmap(lambda a: a * a))(x), A * A)
    low, (high, both) = mg.vmap(lambda a: (a.min(), [a.max(), a]), out_dims=(0, [0, 1]))(x)
    same(low, A.min(1))
    same(high, A.max(1))
    same(both, A.T)
    same(mg.vmap(lambda d, k=None: d["a"] + d["b"] * k)({"a": x, "b": y}, k=x), A + (A + 1) * A)
    given = {"a": x, "n": 3}
    same(mg.vmap(lambda d: d["a"] * d["n"], in_dims=({"a": 1, "n": None},))(given), 3 * A.T)


def test_vmap_of_gradients_is_a_gradient_for_each_sample():
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1)).double()
    params = {k: p.detach() for k, p in model.named_parameters()}
    x, y = double(A), double([[0.5], [-1.0]])

    def loss(params, x, y):
        return ((mg.func.functional_call(model, params, (x,)) - y) ** 2).sum()

    found = mg.vmap(mg.func.grad(loss), in_dims=(None, 0, 0))(params, x, y)
    for place in range(2):
        wanted = mg.grad(
            loss(dict(model.named_parameters()), x[place], y[place]), model.parameters()
        )
        for g, w in zip(found.values(), wanted, strict=True):
            same(g[place], w.numpy())


def test_gradients_go_through_vmap():
    x = double(A, requires_grad=True)
    mg.vmap(lambda a: (a**3).sum())(x).sum().backward()
    same(x.grad, 3 * A**2)


def test_vmap_and_random_numbers():
    x = mg.zeros(3, 2)
    alike = mg.vmap(lambda a: a + mg.rand(2), randomness="same")(x)
    assert (alike == alike[0]).all()
    apart = mg.vmap(lambda a: a + mg.rand(2), randomness="different")(x)
    assert len(set(apart[:, 0].tolist())) == 3
    for values in (x, x[:1]):  # which numbers are drawn has to be said
        place = repr(mg.get_rng_state())
        with pytest.raises(RuntimeError, match=r"\[vmap\] the function draws random numbers: give"):
            mg.vmap(lambda a: a + mg.rand(2))(values)
        assert repr(mg.get_rng_state()) == place


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda x: mg.vmap(mg.add)(x, x[0]), ValueError, "the sizes to cut must be one .*: 2, 3"),
        (lambda x: mg.vmap(mg.sin)(x[:0]), ValueError, "the sizes to cut must be one .*: 0"),
        (lambda x: mg.vmap(mg.sin, None)(x), ValueError, "the sizes to cut must be .*: none"),
        (lambda x: mg.vmap(mg.sin, 2)(x), ValueError, "there is no dimension 2 in the shape"),
        (lambda x: mg.vmap(mg.add)(x, 2), TypeError, "int cannot be cut: its in_dims must be None"),
        (lambda x: mg.vmap(mg.add, (0,))(x, x), ValueError, "in_dims is not as nested .*: 1 dim"),
        (lambda x: mg.vmap(lambda a: 3)(x), TypeError, "the function returned int, not a tensor"),
        (lambda x: mg.vmap(mg.sin, randomness="x")(x), ValueError, "randomness is 'x': give"),
    ],
)
def test_what_vmap_refuses(call, error, text):
    with pytest.raises(error, match=rf"^\[vmap\] {text}"):
        call(double(A))
