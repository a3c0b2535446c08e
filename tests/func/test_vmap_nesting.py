"""``vmap`` in and around other transforms, against loops over slices."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import minigrad as mg
from minigrad import func
from minigrad.func.batched_tensor import Level
from minigrad.nn import functional as F
from minigrad.runtime.batched import running

pytestmark = pytest.mark.usefixtures("restore_random")
R = np.random.default_rng(0)


def drawn(*shape):
    return mg.tensor(R.normal(size=shape))


X, V, W, Y = drawn(6, 5), drawn(6, 5), drawn(5, 3), drawn(6, 3)
A = drawn(3, 4, 5)
EYE = mg.eye(5, dtype=mg.float64)


def f(x):
    return (x @ W).tanh().exp() * x.sum()


def s(x):
    return (f(x) ** 2).sum()


def g(w, x, y):
    return ((x @ w).tanh() * y).sum()


def inner(w, x):
    return mg.vmap(lambda row: mg.tanh(row @ x).sum())(w).prod()


def by_loop(function, in_dims, *args):
    dims = in_dims if isinstance(in_dims, tuple) else (in_dims,) * len(args)
    size = next(x.shape[d] for x, d in zip(args, dims, strict=True) if d is not None)
    results = []
    for k in range(size):
        given = [x if d is None else x.select(d, k) for x, d in zip(args, dims, strict=True)]
        results.append(function(*given))
    return mg.stack(results)


def near(got, want):
    assert got.shape == want.shape
    assert got.dtype is want.dtype
    np.testing.assert_allclose(got.detach().numpy(), want.detach().numpy(), rtol=1e-8, atol=1e-10)


def second(pair):
    return pair[1][0] if isinstance(pair[1], tuple) else pair[1]


CASES = {
    "vmap by another dimension": (
        lambda a: mg.vmap(lambda c: c.sin() * c.sum(), 1)(a), 0, A,
    ),
    "pairs": (lambda x: mg.vmap(lambda y: (x * y).sum() + x.max())(X), 0, X),
    "gradient of a vmap by what it cuts": (func.grad(inner), (0, None), A, X[0]),
    "gradient of a vmap by what it shares": (func.grad(inner, 1), (0, None), A, X[0]),
    "gradient of a vmap over what it shares": (func.grad(inner, 1), (None, 0), A[0], X),
    "gradient in two vmaps": (
        lambda y: mg.vmap(lambda x: func.grad(g)(W, x, y))(X), 0, Y,
    ),
    "gradient by a closed-over tensor": (lambda x: func.grad(g)(W, x, Y[0]), 0, X),
    "gradient by a shared argument": (func.grad(g), (None, 0, 0), W, X, Y),
    "jvp": (lambda x, v: func.jvp(f, (x,), (v,))[1], 0, X, V),
    "jvp by tangents": (lambda v: func.jvp(f, (X[0],), (v,))[1], 0, V),
    "jvp by primals": (lambda x: func.jvp(f, (x,), (V[0],))[1], 0, X),
    "jvp by closed-over and cut": (
        lambda x, v: func.jvp(lambda w, z: g(w, z, Y[0]), (W, x), (W, v))[1], 0, X, V,
    ),
    "jvp in two vmaps": (
        lambda v: mg.vmap(lambda x: func.jvp(f, (x,), (v,))[1])(X), 0, V,
    ),
    "jvp in two vmaps, tangents inside": (
        lambda x: mg.vmap(lambda v: func.jvp(f, (x,), (v,))[1])(V), 0, X,
    ),
    "jacrev": (func.jacrev(f), 0, X),
    "jacfwd": (func.jacfwd(f), 0, X),
    "hessian": (func.hessian(s), 0, X),
    "hvp": (lambda x, v: second(func.hvp(s, (x,), (v,))), 0, X, V),
    "vhp": (lambda x, v: second(func.vhp(s, (x,), (v,))), 0, X, V),
    "pulls of one recording": (lambda e: func.vjp(f, X[0])[1](e)[0], 0, EYE[:3, :3]),
    "pushes of one recording": (lambda e: func.linearize(f, X[0])[1](e), 0, EYE),
    "gradient of a jvp": (
        func.grad(lambda w, x: func.jvp(lambda z: g(w, z, Y[0]), (x,), (V[0],))[1]), (None, 0),
        W, X,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_transforms_inside_are_those_of_each_slice(name):
    function, dims, *args = CASES[name]
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # none of these runs once for each slice
        found = mg.vmap(function, dims)(*args)
    want = by_loop(function, dims, *args)
    near(found, want)
    assert found.requires_grad == want.requires_grad


def test_gradients_around_are_those_of_a_loop():
    def through(w, each):
        return (each(func.grad(g), (None, 0, 0), w, X, Y) ** 2).sum()

    def by_vmap(function, dims, *args):
        return mg.vmap(function, dims)(*args)

    want = func.grad(lambda w: through(w, by_loop))(W)
    near(func.grad(lambda w: through(w, by_vmap))(W), want)
    leaf = W.clone().requires_grad_()
    through(leaf, by_vmap).backward()
    near(leaf.grad, want)


@pytest.mark.filterwarnings("ignore:.*grad by a tensor that all slices share")
def test_autograd_grad_inside():
    p = W.clone().requires_grad_()

    def both(x):
        x = x.detach().requires_grad_()
        a, b = mg.grad(g(p, x, Y[0]), [p, x], create_graph=True)
        return (a**2).sum() + (b**3).sum()

    near(mg.vmap(both)(X), by_loop(both, 0, X))
    near(mg.grad(mg.vmap(both)(X).sum(), p)[0], mg.grad(by_loop(both, 0, X).sum(), p)[0])


@pytest.mark.filterwarnings("ignore:.*grad by a tensor that all slices share")
def test_gradients_by_a_shared_tensor_are_not_made_nan_by_other_slices():
    w = mg.tensor([1.0, 2.0], requires_grad=True)
    bad = mg.tensor([[[1.0, 2.0], [3.0, 4.0]], [[float("inf"), 1.0], [1.0, 1.0]]])

    def of_product(x):
        return mg.grad((x @ w).sum(), w)[0]

    with pytest.raises(RuntimeError, match=r"\[grad\] by a tensor that all slices share, infinite"):
        mg.vmap(of_product)(bad)
    near(mg.vmap(of_product, fallback="loop")(bad), by_loop(of_product, 0, bad))
    alone = func.grad(lambda w, x: (x @ w).sum())
    near(mg.vmap(alone, (None, 0))(w.detach(), bad), by_loop(of_product, 0, bad))

    # A NaN of a slice's own is no error: a partial of an upstream gradient of zero is zero.
    def of_log(x):
        return mg.grad((w * x).log().sum(), w)[0]

    found = mg.vmap(of_log)(mg.tensor([[1.0, 2.0], [float("nan"), 1.0]]))
    assert found[0].tolist() == [1.0, 0.5]
    assert found[1].isnan().tolist() == [True, False]


@pytest.mark.filterwarnings("ignore:.*no batching rule")
def test_a_gradient_that_some_slices_lack_is_zeros_there():
    class OnlyIfAny(mg.Function):
        @staticmethod
        def forward(ctx, x, c):
            ctx.save_for_backward(c)
            return x * c

        @staticmethod
        def backward(ctx, g):
            (c,) = ctx.saved_tensors
            return (g * c if c.sum().item() > 0 and g.any().item() else None), None

    w = mg.tensor([1.0, 2.0], requires_grad=True)
    c = mg.tensor([[1.0, 2.0], [-3.0, -4.0], [5.0, 6.0]])

    def gradient(c):
        return mg.grad(OnlyIfAny.apply(w, c).sum(), w, allow_unused=True)[0]

    assert mg.vmap(gradient)(c).tolist() == [[1.0, 2.0], [0.0, 0.0], [5.0, 6.0]]


def test_upstream_gradients_of_all_slices_run_through_one_graph():
    w = drawn(5).requires_grad_()
    (first,) = mg.grad(s(w), w, create_graph=True)
    hessian = mg.vmap(lambda e: mg.grad(first, w, e, retain_graph=True)[0])(EYE)
    near(hessian, func.hessian(s)(w.detach()))

    def jacobian(x):
        x = x.detach().requires_grad_()
        y = f(x)
        pull = mg.vmap(lambda e: mg.grad(y, x, e, retain_graph=True)[0])
        return pull(EYE[:3, :3])

    near(mg.vmap(jacobian)(X), by_loop(func.jacrev(f), 0, X))


def test_an_input_that_is_not_used_has_no_gradient():
    def unused(x):
        a, b = x.detach().requires_grad_(), x.detach().requires_grad_()
        (found,) = mg.grad((a * 2).sum(), [b], allow_unused=True)
        (zeros,) = mg.grad((a * 2).sum(), [b], materialize_grads=True)
        assert found is None
        return zeros

    near(mg.vmap(unused)(X), mg.zeros_like(X))


def test_per_sample_gradients_of_a_network_and_ensembles():
    def net():
        layers = mg.nn.Linear(5, 4), mg.nn.LayerNorm(4), mg.nn.Tanh(), mg.nn.Linear(4, 3)
        return mg.nn.Sequential(*layers).double()

    models = [net() for _ in range(3)]
    targets = mg.tensor([0, 2, 1, 1, 0, 2])

    def loss(params, x, t):
        return F.cross_entropy(func.functional_call(models[0], params, (x,)), t)

    params = {name: p.detach() for name, p in models[0].named_parameters()}
    found = mg.vmap(func.grad(loss), (None, 0, 0))(params, X, targets)
    for name in params:
        want = [func.grad(loss)(params, x, t)[name] for x, t in zip(X, targets, strict=True)]
        near(found[name], mg.stack(want))
    stacked, buffers = func.stack_module_state(models)

    def run(params, buffers, x):
        return func.functional_call(models[0], (params, buffers), (x,))

    out = mg.vmap(run, (0, 0, None))(stacked, buffers, X)
    near(out, mg.stack([model(X) for model in models]))
    (out**2).sum().backward()
    grads = [mg.grad((model(X) ** 2).sum(), model[0].weight)[0] for model in models]
    near(stacked["0.weight"].grad, mg.stack(grads))


@pytest.mark.parametrize("size", [1, 2, 4, 6, 7])
def test_chunks_bound_how_many_slices_are_held(size):
    seen = []

    def one(x, y):
        seen.append(1)
        return x * y.sum(), {"t": x.outer(y)}

    out = mg.vmap(one, (0, None), (1, {"t": -1}), chunk_size=size)(X, X[0])
    near(out[0], (X * X[0].sum()).T)
    near(out[1]["t"], mg.stack([x.outer(X[0]) for x in X], -1))
    assert len(seen) == -(-6 // size)


def test_layers_are_those_of_a_loop():
    attention = mg.nn.MultiheadAttention(4, 2, batch_first=True).double()
    block = mg.nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, batch_first=True).double()
    conv = mg.nn.Sequential(mg.nn.Conv1d(3, 6, 2, groups=3), mg.nn.ReLU(), mg.nn.MaxPool1d(2))
    norm = mg.nn.BatchNorm1d(3).double().eval()
    table = mg.nn.Embedding(7, 4).double()
    x = drawn(3, 2, 5, 4)
    cases = [
        (lambda a: attention(a, a, a)[0], x),
        (block, x),
        (conv.double(), drawn(3, 2, 3, 8)),
        (norm, drawn(3, 4, 3)),
        (table, mg.tensor(R.integers(0, 7, (3, 2, 5)))),
    ]
    for layer, given in cases:
        near(mg.vmap(layer)(given), by_loop(layer, 0, given))


@pytest.mark.filterwarnings("ignore:.*no batching rule")
def test_tangents_of_all_slices_run_through_a_function_of_ones_own():
    class Product(mg.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(x, y)
            return x * x * y

        @staticmethod
        def backward(ctx, g):
            x, y = ctx.saved_tensors
            return 2 * g * x * y, g * x * x

    x, y, s = mg.tensor([1.0, 2.0]), mg.tensor([3.0, 4.0]), mg.ones(2)
    _, push = func.linearize(Product.apply, x, y)
    near(mg.vmap(lambda t: push(t, s))(mg.eye(2)), mg.diag(2 * x * y) + x * x)

    class Clipped(mg.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1.0

        @staticmethod
        def backward(ctx, g):
            return g.clamp(-1.0, 1.0)

    _, push = func.linearize(Clipped.apply, x)
    with pytest.raises(RuntimeError, match=r"\[Clipped\] .* not linear"):
        mg.vmap(push)(mg.eye(2))


@pytest.mark.parametrize("name", ["begin", "end"])
def test_an_interrupt_leaves_no_vmap_running(monkeypatch, name):
    def interrupted(level):
        if name == "begin":
            begin(level)
        raise KeyboardInterrupt

    begin = Level.begin
    with monkeypatch.context() as patch:
        patch.setattr(Level, name, interrupted)
        with pytest.raises(KeyboardInterrupt):
            mg.vmap(mg.sin)(X)
    assert func.grad(s)(X[0]).shape == X[0].shape
    mg.vmap(mg.sin)(X)
    assert not running


@pytest.mark.filterwarnings("ignore:.*grad by a tensor that all slices share")
@pytest.mark.parametrize("of", ["owned", "shared"])
@pytest.mark.parametrize("by", ["owned", "shared", "owned by one level"])
def test_gradients_that_are_constant_can_be_differentiated(of, by):
    shared = W.clone().requires_grad_()

    def second(x, y):
        own = [t.detach().requires_grad_() for t in (x, y)]
        inputs = {"owned": own[0], "shared": shared, "owned by one level": own[1]}
        y, wanted = (own[0] if of == "owned" else shared).sum() * 2, inputs[by]
        (first,) = mg.grad(y, wanted, create_graph=True)
        return first, *mg.grad(first.sum(), wanted)

    def each(x, y):
        return mg.vmap(second, (0, None))(x, y)

    first, zeros = mg.vmap(each)(drawn(6, 2, 2), X)
    assert not zeros.any().item()
    assert first.requires_grad
    is_used = (of, by) in {("owned", "owned"), ("shared", "shared")}
    assert first.flatten()[0].item() == (2.0 if is_used else 0.0)


def test_tangents_of_all_slices_run_through_writes():
    def function(x, y):
        z = x * y
        z[mg.tensor([1, 0])] = y[:2] * 3
        z[2:].mul_(x[2:])
        z[3] = 2.0
        w = mg.zeros_like(x)
        w[1:3] = x[1:3] ** 2
        return z * w + z

    x, y, s = drawn(5), drawn(5), drawn(5)
    _, push = func.linearize(function, x, y)
    for given in ((X, s), (s, X), (X, V)):
        dims = tuple([0 if t.ndim == 2 else None for t in given])
        near(mg.vmap(push, dims)(*given), by_loop(push, dims, *given))

    def twice(x, t):
        value, push = func.linearize(lambda x: function(x, y), x)
        return mg.vmap(lambda u: push(u) * value)(mg.stack([t, x])).sum()

    def one_by_one(x, t):
        value, push = func.linearize(lambda x: function(x, y), x)
        return sum((push(u) * value).sum() for u in (t, x))

    near(func.grad(twice)(x, s), func.grad(one_by_one)(x, s))
    near(mg.vmap(func.grad(twice))(X, V), by_loop(func.grad(one_by_one), 0, X, V))
