"""Tests of the transforms of mg.func: values, structures, nesting, and what is refused."""

from __future__ import annotations

import itertools
from collections import namedtuple
from dataclasses import dataclass

import numpy as np
import pytest
from samples import CATALOGUE

import minigrad as mg
from minigrad import func, nn
from minigrad.runtime.native import trace

pytestmark = pytest.mark.usefixtures("restore_random")  # layers draw their weights

A = np.array([[1.0, -2.0, 0.5], [0.3, 4.0, -1.0]])


def double(values, **options):
    return mg.tensor(values, dtype=mg.float64, **options)


def same(found, wanted, tolerance=1e-12):
    found = found.detach().numpy()
    np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance)


def cube(x):
    return (x**3).sum()


# ---- products ------------------------------------------------------------------------------------


def test_jvp_and_vjp_are_products_with_the_jacobian():
    x, v, w = double([0.5, -1.0, 2.0]), double([1.0, 0.0, -2.0]), double([3.0, 1.0])
    jacobian = A * np.exp(x.numpy())
    value, product = func.jvp(lambda t: double(A) @ t.exp(), (x,), (v,))
    same(value, A @ np.exp(x.numpy()))
    same(product, jacobian @ v.numpy())
    value, pull = func.vjp(lambda t: double(A) @ t.exp(), x)
    same(value, A @ np.exp(x.numpy()))
    for scale in (1.0, 2.0):
        (product,) = pull(scale * w)
        same(product, scale * w.numpy() @ jacobian)
    assert not any(t.requires_grad for t in (value, product))


def test_linearize_runs_the_function_once():
    calls = []

    def f(x, y):
        calls.append(1)
        return x * y, {"sum": x.sum() + 1.0}

    x, y = double([1.0, 2.0]), double([3.0, 4.0])
    (value, beside), push = func.linearize(f, x, y)
    same(value, [3.0, 8.0])
    same(beside["sum"], 4.0)
    for k in range(3):
        product, beside = push(k * x, y)
        same(product, (k * x * y + x * y).numpy())
        same(beside["sum"], 3.0 * k)
    assert len(calls) == 1


def test_a_tangent_of_zeros_stays_zero_against_an_infinite_slope():
    _value, t = func.jvp(mg.sqrt, (double([0.0, 4.0]),), (double([0.0, 1.0]),))
    same(t, [0.0, 0.25])


def test_what_does_not_depend_has_a_tangent_of_zeros():
    x = double([1.0, 2.0])
    outputs = func.jvp(lambda t: (mg.ones(3), t > 0, t.detach()), (x,), (x,))
    assert [t.shape for t in outputs[1]] == [(3,), (2,), (2,)]
    assert not any(t.to(mg.float64).any() for t in outputs[1])
    with pytest.raises(RuntimeError, match=r"\[jvp\] an output does not depend on the primals"):
        func.jvp(lambda t: mg.ones(3), (x,), (x,), strict=True)


def test_results_share_no_memory_with_tangents():
    x, v = double([1.0, 2.0]), double([3.0, 4.0])
    for f in (lambda t: t, lambda t: t.view(2, 1), lambda t: t + 1.0):
        _, product = func.jvp(f, (x,), (v,))
        product.zero_()
        (product,) = func.vjp(f, x)[1](v.view(f(x).shape))
        product.zero_()
        same(v, [3.0, 4.0])
    _, (a, b) = func.jvp(lambda t: (t, t), (x,), (v,))
    a.zero_()
    same(b, [3.0, 4.0])


def test_hessian_products():
    x, v = double([1.0, 2.0]), double([1.0, -1.0])
    for product in (func.hvp, func.vhp):
        value, (found,) = product(cube, (x,), (v,))
        same(value, 9.0)
        same(found, [6.0, -12.0])
        value, found, aux = product(lambda a, b: ((a * b).prod(), a), (x, x), (v, x), has_aux=True)
        same(value, 4.0)
        same(aux, x.numpy())
        whole = func.hessian(lambda a, b: (a * b).prod(), (0, 1))(x, x)
        for row, each in zip(whole, found, strict=True):
            same(each, (row[0] @ v + row[1] @ x).numpy())


# ---- Jacobians and Hessians ----------------------------------------------------------------------


@pytest.mark.parametrize("transform", [func.jacrev, func.jacfwd, func.jacobian])
def test_jacobians(transform):
    x, y = double([1.0, 2.0]), double([[3.0], [4.0]])

    def f(a, b):
        return {"p": a * b.sum(), "q": (b[:, 0] * a[0], a.sum())}

    same(transform(f, 1)(x, y)["p"], np.stack([np.ones((2, 1)), 2 * np.ones((2, 1))]))
    found = transform(f, (1, 0))(x, y)
    assert [j.shape for j in found["p"]] == [(2, 2, 1), (2, 2)]
    same(found["p"][1], 7 * np.eye(2))
    same(found["q"][0][0], np.eye(2)[:, :, None])
    same(found["q"][1][0], [[0.0], [0.0]])
    same(found["q"][1][1], [1.0, 1.0])
    jacobian, aux = transform(lambda a: (a**2, a.sum()), has_aux=True)(x)
    same(jacobian, np.diag([2.0, 4.0]))
    same(aux, 3.0)
    assert transform(lambda a: a[:0])(x).shape == (0, 2)
    assert transform(lambda a: a.sum())(double(np.zeros((0, 3)))).shape == (0, 3)


@pytest.mark.parametrize("chunk_size", [None, 1, 2, 3, 7])
def test_chunks_of_tangents(chunk_size):
    x = double([[0.5, -1.0, 2.0], [1.0, 0.3, 0.1]])

    def f(t):
        a, b = Products.apply(t, 2.0, t.exp())
        return a @ b.t(), t[0], mg.ones(2), b.softmax(1).sum(0)

    wanted = func.jacrev(f)(x)
    found = func.jacfwd(f, chunk_size=chunk_size)(x)
    for got, want in zip(found, wanted, strict=True):
        assert got.is_contiguous()
        same(got, want.numpy())
    second = func.jacfwd(func.jacfwd(f, chunk_size=chunk_size), chunk_size=chunk_size)(x)
    for got, want in zip(second, func.jacrev(func.jacrev(f))(x), strict=True):
        same(got, want.numpy())


def test_a_hessian_pushes_all_tangents_at_once():
    x = mg.randn(20)
    names = []
    with trace(lambda name, args, made: names.append(name)):
        func.hessian(lambda t: (t.sin() * t.exp()).sum() + (t[1:] * t[:-1]).square().sum())(x)
    assert len(names) < 200


def test_jacobian_takes_the_mode_with_fewer_passes():
    def passes(f, x):
        names = []
        with trace(lambda name, args, made: names.append(name)):
            func.jacobian(f)(x)
        return len(names)

    wide = passes(lambda x: x.sum() * mg.ones(50), mg.ones(2))
    assert wide < 100
    tall = passes(lambda x: x[:2] * 2.0, mg.ones(50))
    assert tall < 100


def test_hessian():
    x, y = double([1.0, 2.0]), double(3.0)
    same(func.hessian(cube)(x), np.diag([6.0, 12.0]))
    (xx, xy), (yx, yy) = func.hessian(lambda a, b: (a**2).sum() * b**2, (0, 1))(x, y)
    same(xx, 18 * np.eye(2))
    same(xy, [12, 24])
    same(yx, [12, 24])
    same(yy, 10.0)


SMOOTH = {
    f"{name}-{k}": sample
    for name, samples in CATALOGUE.items()
    for k, sample in enumerate(samples)
    if sample.smooth and 0 < sum(int(np.prod(shape)) for shape in sample.shapes) <= 40
}


@pytest.mark.parametrize("sample", SMOOTH.values(), ids=SMOOTH)
def test_the_hessian_is_the_same_in_all_orders(sample, rng):
    """Along a direction: forward over reverse, reverse over forward and over reverse.

    It is the difference of gradients along the direction, too.
    """
    xs = tuple(double(x) for x in sample.inputs())
    vs = tuple(double(rng.normal(size=x.shape)) for x in xs)

    def f(*inputs):
        floats = [y for y in sample(*inputs) if isinstance(y, mg.Tensor) and y.requires_grad]
        return sum([(0.3 * y + 0.1).sin().sum() for y in floats], double(0.0))

    everything = tuple(range(len(xs)))
    _, forward_over_reverse = func.hvp(f, xs, vs)
    _, reverse_over_reverse = func.vhp(f, xs, vs)
    reverse_over_forward = func.grad(lambda *ts: func.jvp(f, ts, vs)[1], everything)(*xs)
    step = 1e-5
    gradients = [
        func.grad(f, everything)(*[x + sign * step * v for x, v in zip(xs, vs, strict=True)])
        for sign in (1, -1)
    ]
    for place, wanted in enumerate(forward_over_reverse):
        wanted = wanted.numpy()
        size = 1 + np.abs(wanted).max(initial=0.0)
        for other in (reverse_over_reverse, reverse_over_forward):
            np.testing.assert_allclose(other[place].numpy(), wanted, rtol=1e-8, atol=1e-8 * size)
        ahead, behind = (g[place].numpy() for g in gradients)
        slope = (ahead - behind) / (2 * step)
        np.testing.assert_allclose(slope, wanted, rtol=1e-4, atol=2e-5 * size)


# ---- equal eigenvalues ---------------------------------------------------------------------------


def _exp_by_eigh(a):
    w, v = mg.linalg.eigh(a)
    return (v * w.exp()) @ v.mT


def _exp_by_svd(a):
    u, s, vt = mg.linalg.svd(a, full_matrices=False)
    return (u * s.exp()) @ vt


@pytest.mark.parametrize("f", [_exp_by_eigh, _exp_by_svd])
def test_vectors_of_equal_values_are_refused(f):
    """A transposed rule would lose the NaN that reverse mode gives."""
    one, t = mg.eye(3, dtype=mg.float64), double(np.diag([1.0, 2.0], 1) + np.eye(3))
    for transform in (func.jacfwd(f), lambda a: func.jvp(f, (a,), (t,)), func.hessian(f)):
        with pytest.raises(RuntimeError, match="the vectors of equal values have no derivative"):
            transform(one)
    apart = double(np.diag([1.0, 2.0, 4.0]) + 0.1)
    same(func.jacfwd(f)(apart), func.jacrev(f)(apart).numpy(), 1e-10)
    second = func.jacfwd(func.jacfwd(f))(apart)
    same(second, func.jacrev(func.jacrev(f))(apart).numpy(), 1e-9)


@pytest.mark.parametrize("shape", [(4, 3), (3, 4), (2, 3, 3)])
def test_singular_vectors_of_any_shape(shape, rng):
    a = double(rng.normal(size=shape))

    def f(x):
        u, s, vt = mg.linalg.svd(x, full_matrices=False)
        return (u * s.square().unsqueeze(-2)) @ vt

    same(func.jacfwd(f)(a), func.jacrev(f)(a).numpy(), 1e-9)


def test_equal_values_alone_have_tangents():
    one, t = mg.eye(3, dtype=mg.float64), double(np.full((3, 3), 2.0))
    for values in (mg.linalg.eigvalsh, mg.linalg.svdvals):
        same(func.jvp(lambda a, f=values: f(a).exp().sum(), (one,), (t,))[1], 6.0 * np.e)


# ---- nesting -------------------------------------------------------------------------------------


def _first_derivative(kind, f):
    """A function whose values are made of first derivatives of f."""
    return {
        "grad": func.grad(lambda x: f(x).sum()),
        "jvp": lambda x: func.jvp(f, (x,), (0.5 * x + 1.0,))[1],
        "linearize": lambda x: func.linearize(f, x)[1](x.sin()),
        "vjp": lambda x: func.vjp(f, x)[1](x.cos())[0],
        "jacfwd": lambda x: func.jacfwd(f)(x) @ x,
        "jacrev": lambda x: x @ func.jacrev(f)(x),
    }[kind]


KINDS = ["grad", "jvp", "linearize", "vjp", "jacfwd", "jacrev"]


@pytest.mark.parametrize("kinds", [*itertools.product(KINDS, KINDS, KINDS)], ids="-".join)
def test_transforms_nest(kinds):
    """A derivative of derivatives is the difference of these."""

    def base(x):
        return (x.sin() * x.flip((0,))).exp() * x.sum()

    inner = _first_derivative(kinds[0], base)
    middle = _first_derivative(kinds[1], inner)
    x, v = double([0.3, 0.5]), double([1.0, -0.5])
    step = 1e-5
    slope = (middle(x + step * v) - middle(x - step * v)).numpy() / (2 * step)
    outer = {
        "grad": lambda: func.jacrev(middle)(x) @ v,
        "jvp": lambda: func.jvp(middle, (x,), (v,))[1],
        "linearize": lambda: func.linearize(middle, x)[1](v),
        "vjp": lambda: mg.stack([func.vjp(middle, x)[1](e)[0] @ v for e in mg.eye(2).double()]),
        "jacfwd": lambda: func.jacfwd(middle)(x) @ v,
        "jacrev": lambda: func.jacrev(middle)(x) @ v,
    }[kinds[2]]()
    np.testing.assert_allclose(outer.numpy(), slope, rtol=1e-6, atol=1e-6)


def test_perturbations_are_not_confused():
    """d/dx (x d/dy (x + y)) at 1 is 1: the inner derivative does not see x."""
    one = double(1.0)
    for outer, inner in itertools.product([func.grad, _slope], repeat=2):
        same(outer(lambda x, d=inner: x * d(lambda y: x + y)(one))(one), 1.0)
        same(outer(lambda x, d=inner: x * d(lambda y: x * y * y)(one))(double(3.0)), 12.0)


def _slope(f):
    return lambda x: func.jvp(f, (x,), (mg.ones_like(x),))[1]


def test_results_are_on_the_tape_of_what_the_function_uses_besides():
    x, w = double([1.0, 2.0]), double(3.0, requires_grad=True)
    for found in (
        func.grad(lambda t: (w * t * t).sum())(x),
        func.jvp(lambda t: w * t * t, (x,), (mg.ones_like(x),))[1],
        func.jacfwd(lambda t: w * t * t)(x).sum(0),
        func.vjp(lambda t: w * t * t, x)[1](mg.ones_like(x))[0],
    ):
        (g,) = mg.grad(found.sum(), w)
        same(g, 6.0)
    with mg.no_grad():
        assert not func.grad(lambda t: (w * t).sum())(x).requires_grad
        same(func.jvp(lambda t: w * t * t, (x,), (x,))[1], [6.0, 24.0])
    assert not func.grad(lambda t: t * func.grad(lambda y: t * y)(t))(double(2.0)).requires_grad


def test_products_are_on_the_tape_of_vectors():
    x, v = double([1.0, 2.0]), double([3.0, 4.0], requires_grad=True)
    for found in (
        func.jvp(mg.exp, (x,), (v,))[1],
        func.linearize(mg.exp, x)[1](v),
        func.vjp(mg.exp, x)[1](v)[0],
    ):
        (g,) = mg.grad(found.sum(), v)
        same(g, np.exp(x.numpy()))


def test_the_gradient_first_or_the_value_first():
    x = double([1.0, 2.0])
    value, gradient = func.value_and_grad(cube)(x)
    same(value, 9.0)
    same(gradient, [3.0, 12.0])
    gradient, value = func.grad_and_value(cube)(x)
    same(value, 9.0)
    same(gradient, [3.0, 12.0])
    gradient, (value, aux) = func.grad_and_value(lambda t: (cube(t), 2.0 * t), has_aux=True)(x)
    same(aux, [2.0, 4.0])


# ---- nested data ---------------------------------------------------------------------------------

Pair = namedtuple("Pair", "weight bias")


@dataclass(frozen=True)
class State:
    position: mg.Tensor
    layers: list[Pair]


def _energy(state, scale=1.0):
    pair = state.layers[0]
    return scale * ((state.position @ pair.weight) ** 2 + pair.bias * state.position).sum()


def test_trees_of_dataclasses_namedtuples_and_lists():
    state = State(double([1.0, 2.0]), [Pair(double([3.0, 4.0]), double(5.0))])
    gradient = func.grad(_energy)(state, scale=2.0)
    assert type(gradient) is State
    assert type(gradient.layers[0]) is Pair
    same(gradient.position, 2 * (4 * 11 * np.array([3.0, 4.0]) + 5.0))
    same(gradient.layers[0].bias, 6.0)
    _, slope = func.jvp(_energy, (state,), (state,))
    direct = sum(
        (a * b).sum()
        for a, b in zip(_leaves(func.grad(_energy)(state)), _leaves(state), strict=False)
    )
    same(slope, direct.numpy())
    value, push = func.linearize(lambda s: State(s.position * 2.0, s.layers), state)
    assert type(value) is type(push(state)) is State
    same(push(state).position, [2.0, 4.0])
    (back,) = func.vjp(lambda s: s, state)[1](state)
    same(back.layers[0].weight, [3.0, 4.0])
    whole = func.hessian(_energy)(state)
    same(whole.position.layers[0].bias, [1.0, 1.0])


def _leaves(state):
    return [state.position, *state.layers[0]]


def test_models_by_their_parameters():
    model = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1)).double()
    parameters = {name: p.detach() for name, p in model.named_parameters()}
    x = double([[1.0, -1.0], [0.5, 2.0]])

    def loss(p):
        return func.functional_call(model, p, (x,)).square().mean()

    gradient = func.grad(loss)(parameters)
    _, slope = func.jvp(loss, (parameters,), (gradient,))
    same(slope, sum(float((g**2).sum()) for g in gradient.values()))
    assert func.hessian(loss)(parameters)["0.weight"]["2.bias"].shape == (3, 2, 1)


def test_stack_module_state():
    models = [nn.BatchNorm1d(3) for _ in range(2)]
    models[1].weight.data.fill_(2.0)
    parameters, buffers = func.stack_module_state(models)
    same(parameters["weight"], [[1.0] * 3, [2.0] * 3])
    assert parameters["weight"].is_leaf
    assert parameters["weight"].requires_grad
    assert buffers["num_batches_tracked"].shape == (2,)
    assert not buffers["running_mean"].requires_grad
    for some, message in (
        ([], "there is no model"),
        ([nn.Linear(1, 1), nn.ReLU()], "of one class, not Linear and ReLU"),
        ([nn.ReLU(), nn.ReLU().eval()], "some models are in training mode"),
        ([nn.Linear(1, 1), nn.Linear(1, 1).requires_grad_(False)], "'weight' requires grad in"),
        ([nn.Linear(1, 1), nn.Linear(2, 1)], "'weight' has the shapes"),
        ([nn.Linear(1, 1), nn.Linear(1, 1, bias=False)], "a model has no 'bias'"),
    ):
        with pytest.raises(RuntimeError, match=rf"\[stack_module_state\] .*{message}"):
            func.stack_module_state(some)


# ---- what functions do ---------------------------------------------------------------------------


def _writes(x):
    out = mg.zeros(2, 3, dtype=mg.float64)
    out[0, :2] = x**2
    out[1] = x.sum()
    row = out[0]
    row.mul_(2.0)
    out[:, 0] += x
    return out


WRITES = {
    "views": _writes,
    "own argument": lambda x: (x * 1.0).mul_(x).add_(x),
    "overwritten": lambda x: (x * 1.0).copy_(x.exp()),
    "part by index": lambda x: mg.zeros(3, dtype=mg.float64).index_put_((mg.tensor([2, 0]),), x),
    "masked": lambda x: (x * 2.0).masked_fill_(x > 1.5, 7.0),
    "no_grad": lambda x: _under_no_grad(x),
    "transposed": lambda x: _into_transposed(x),
    "diagonal": lambda x: mg.zeros(2, 2, dtype=mg.float64).diagonal_scatter(x),
    "detached": lambda x: x * x.detach(),
}


def _under_no_grad(x):
    y = x * 1.0
    with mg.no_grad():
        z = x * 5.0
    return y * z


def _into_transposed(x):
    whole = mg.zeros(2, 2, dtype=mg.float64)
    whole.t()[0] = x
    whole.t()[1].copy_(x.sin())
    return whole


@pytest.mark.parametrize("f", WRITES.values(), ids=WRITES)
def test_forward_and_reverse_agree_about_writes_and_breaks(f):
    x = double([1.0, 2.0])
    same(func.jacfwd(f)(x), func.jacrev(f)(x).numpy())
    same(func.jacfwd(func.jacfwd(f))(x), func.jacrev(func.jacrev(f))(x).numpy())
    same(x, [1.0, 2.0])


def test_a_write_into_an_argument():
    """A leaf refuses it. An argument with a history is a copy of what the caller has."""
    x = double([1.0, 2.0])
    for transform in (func.grad, func.jacfwd, lambda f: lambda t: func.jvp(f, (t,), (t,))):
        with pytest.raises(RuntimeError, match="cannot write in place"):
            transform(lambda t: t.mul_(t).sum())(x)
        outer = func.grad(
            lambda t, d=transform: func.grad(lambda s: s.mul_(s).sum())(t * 1.0).sum()
        )
        same(outer(x), [2.0, 2.0])
    same(x, [1.0, 2.0])


def test_a_saved_value_overwritten_before_a_push_is_an_error():
    w = double([1.0, 2.0])
    _, push = func.linearize(lambda x: x * w, double([3.0, 4.0]))
    w.add_(1.0)
    with pytest.raises(RuntimeError, match=r"\[mul\]"):
        push(double([1.0, 1.0]))


def test_hooks_are_refused_and_kept_gradients_are_not():
    x = double([1.0, 2.0])

    def hooked(t):
        y = t * 2.0
        y.register_hook(lambda g: 3.0 * g)
        return y.exp()

    def input_hooked(t):
        t.register_hook(lambda g: 3.0 * g)
        return t.exp()

    def node_hooked(t):
        y = t.exp()
        y.grad_fn.register_hook(lambda *given: None)
        return y

    with pytest.raises(RuntimeError, match=r"\[jvp\] an input has a hook"):
        func.grad(lambda s: func.jvp(input_hooked, (s,), (s,))[1].sum())(x)
    for f, name in ((hooked, "mul"), (input_hooked, "an input"), (node_hooked, "exp")):
        with pytest.raises(RuntimeError, match=rf"\[jvp\] {name} has a hook, which may change"):
            func.jvp(f, (x,), (x,))

    def keeping(t):
        y = t * 2.0
        y.retain_grad()
        return y.exp()

    same(func.jvp(keeping, (x,), (x,))[1], (2 * x * (2 * x).exp()).numpy())


def test_checkpoints():
    x = double([1.0, 2.0])
    checkpoint = mg.utils.checkpoint.checkpoint
    w = double([3.0, 5.0], requires_grad=True)

    def f(t):
        a, b = checkpoint(lambda s: (s.sin() * w, s * s), t)
        return a * b + checkpoint(lambda s: s.exp(), t)

    def plain(t):
        return t.sin() * w * t * t + t.exp()

    same(func.jacfwd(f)(x), func.jacrev(plain)(x).detach().numpy())
    same(func.hessian(lambda t: f(t).sum())(x), func.hessian(lambda t: plain(t).sum())(x).detach())


# ---- autograd.Function ---------------------------------------------------------------------------


class Exp(mg.Function):
    @staticmethod
    def forward(ctx, x):
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return g * y


class Products(mg.Function):
    """Two outputs, and an argument that is no tensor."""

    @staticmethod
    def forward(ctx, x, factor, y):
        ctx.save_for_backward(x, y)
        ctx.factor = factor
        return factor * x * y, x + y

    @staticmethod
    def backward(ctx, g, h):
        x, y = ctx.saved_tensors
        return ctx.factor * g * y + h, None, ctx.factor * g * x + h


class ProductsByJvp(Products):
    @staticmethod
    def jvp(ctx, tx, factor, ty):
        assert factor is None
        x, y = ctx.saved_tensors
        return ctx.factor * (tx * y + x * ty), tx + ty


class Saves(mg.Function):
    """A jvp that needs other tensors than backward."""

    @staticmethod
    def forward(x):
        return x.square()

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs, output)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2.0 * g * x

    @staticmethod
    def jvp(ctx, t):
        x, y = ctx.saved_tensors
        return 2.0 * t * y / x


def test_functions_are_transposed_or_state_their_jvp():
    x, y = double([1.0, 2.0]), double([3.0, 4.0])
    same(func.jacfwd(Exp.apply)(x), np.diag(np.exp(x.numpy())))
    same(func.hessian(lambda t: Exp.apply(t).sum())(x), np.diag(np.exp(x.numpy())))
    same(func.jacfwd(Saves.apply)(x), np.diag([2.0, 4.0]))
    same(func.jacfwd(func.jacfwd(Saves.apply))(x)[1, 1, 1], 2.0)
    for f in (Products, ProductsByJvp):
        a, b = func.jvp(lambda s, t, f=f: f.apply(s, 2.0, t), (x, y), (x, y))[1]
        same(a, (4 * x * y).numpy())
        same(b, (x + y).numpy())
        _, one = func.jvp(lambda s, f=f: f.apply(s, 2.0, y)[0], (x,), (x,))
        same(one, (2 * x * y).numpy())
        cubic = func.jacfwd(func.jacfwd(lambda s, f=f: f.apply(s, 2.0, s * s)[0].sum()))
        same(cubic(x), np.diag([12.0, 24.0]))


class Maximum(mg.Function):
    """The largest element, and where it is."""

    @staticmethod
    def forward(ctx, x):
        y, place = x.max(0)
        ctx.save_for_backward(x, place)
        rest = x - y
        ctx.mark_non_differentiable(place, rest)
        return y, place, rest

    @staticmethod
    def backward(ctx, g, g_place, g_rest):
        assert not g_place.any()
        assert not g_rest.any()
        x, place = ctx.saved_tensors
        return g * nn.functional.one_hot(place, x.shape[0])


def test_outputs_without_a_gradient_have_tangents_of_zeros():
    x = double([1.0, 5.0, 2.0])
    _, (t, place, rest) = func.jvp(Maximum.apply, (x,), (2.0 * x,))
    same(t, 10.0)
    assert not place.any()
    assert not rest.any()
    same(func.jacfwd(lambda s: Maximum.apply(s)[0] * s)(x), func.jacrev(lambda s: s.max() * s)(x))


def _function(**methods):
    """A Function that returns a copy, with these methods."""
    members = {"forward": staticmethod(lambda ctx, x: x.clone())}
    members |= {name: staticmethod(method) for name, method in methods.items()}
    return type("Own", (mg.Function,), members)


REFUSED = {
    "clipped": ({"backward": lambda ctx, g: g.clamp(-1.0, 1.0)}, "is not linear in the gradient"),
    "sign": ({"backward": lambda ctx, g: g.sign()}, "is not linear in the gradient"),
    "detached": ({"backward": lambda ctx, g: g.detach() * 2.0}, "or detaches it"),
    "once": (
        {"backward": mg.autograd.once_differentiable(lambda ctx, g: g * 2.0)},
        "which is once_differentiable",
    ),
    "number": (
        {"backward": lambda ctx, g: g, "jvp": lambda ctx, t: (t, t)},
        "jvp returned 2 tangents for 1 outputs",
    ),
    "shape": (
        {"backward": lambda ctx, g: g, "jvp": lambda ctx, t: t.sum()},
        r"jvp returned float64 of shape \(\) as tangent 0",
    ),
    "dtype": (
        {"backward": lambda ctx, g: g, "jvp": lambda ctx, t: t.float()},
        r"jvp returned float32 of shape \(2,\) as tangent 0",
    ),
}


@pytest.mark.parametrize(("methods", "message"), REFUSED.values(), ids=REFUSED)
def test_functions_without_a_tangent_are_refused(methods, message):
    x = double([1.0, 2.0])
    with pytest.raises(RuntimeError, match=rf"\[Own\] .*{message}"):
        func.jvp(_function(**methods).apply, (x,), (x,))


def test_a_tangent_that_is_no_tensor_is_refused():
    f = _function(backward=lambda ctx, g: g, jvp=lambda ctx, t: 1.0)
    with pytest.raises(TypeError, match=r"\[Own\] jvp returned float as tangent 0, not a Tensor"):
        func.jvp(f.apply, (double(1.0),), (double(1.0),))


def test_a_straight_through_function_has_its_own_tangent():
    f = _function(backward=lambda ctx, g: -g)
    same(func.jvp(f.apply, (double(1.0),), (double(2.0),))[1], -2.0)


# ---- what is refused -----------------------------------------------------------------------------


def test_messages():
    x = double([1.0, 2.0])
    for error, message, wrong in (
        (TypeError, r"\[jvp\] primals and tangents are tuples", lambda: func.jvp(mg.exp, x, x)),
        (
            ValueError,
            r"\[jvp\] a tangent must be nested as the primals",
            lambda: func.jvp(mg.exp, (x,), (x, x)),
        ),
        (
            ValueError,
            r"\[jvp\] a tangent has shape \(1,\) for a tensor of \(2,\)",
            lambda: func.jvp(mg.exp, (x,), (x[:1],)),
        ),
        (
            TypeError,
            r"\[jvp\] a tangent must hold tensors, not float",
            lambda: func.jvp(mg.exp, (x,), (1.0,)),
        ),
        (
            TypeError,
            r"\[jvp\] an argument to differentiate by holds int",
            lambda: func.jvp(mg.exp, (1,), (1,)),
        ),
        (
            TypeError,
            r"\[jacfwd\] an argument to differentiate by is int64",
            lambda: func.jacfwd(mg.exp)(mg.tensor([1, 2])),
        ),
        (
            TypeError,
            r"\[linearize\] the function must return a tensor, not str",
            lambda: func.linearize(lambda t: (t, "a"), x),
        ),
        (
            TypeError,
            r"\[vjp\] with has_aux the function must return a pair",
            lambda: func.vjp(mg.exp, x, has_aux=True),
        ),
        (
            ValueError,
            r"\[vjp\] the vector must be nested as the output",
            lambda: func.vjp(mg.exp, x)[1]((x,)),
        ),
        (ValueError, r"\[vjp\] the vector has shape", lambda: func.vjp(mg.exp, x)[1](x[:1])),
        (
            ValueError,
            r"\[jacrev\] argnums is 1, but there are 1",
            lambda: func.jacrev(mg.exp, 1)(x),
        ),
        (ValueError, r"\[jacrev\] argnums is empty", lambda: func.jacrev(mg.exp, ())(x)),
        (
            TypeError,
            r"\[jacrev\] argnums must be integers, not str",
            lambda: func.jacrev(mg.exp, "x")(x),
        ),
        (
            RuntimeError,
            r"\[grad\] the function returned the shape \(2,\)",
            lambda: func.hvp(mg.exp, (x,), (x,)),
        ),
    ):
        with pytest.raises(error, match=message):
            wrong()


def test_an_error_in_the_function_leaves_nothing_behind():
    x = double([1.0, 2.0])

    def fails(t):
        raise KeyError("mine")

    for transform in (func.jacfwd, func.jacrev, func.hessian, func.grad):
        with pytest.raises(KeyError, match="mine"):
            transform(lambda t: fails(t))(x)
    same(func.jvp(mg.exp, (x,), (x,))[1], (x * x.exp()).numpy())
