"""Jacobians whose rows or columns are computed together: values, limits and numbers of kernels."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from samples import CATALOGUE
from slices import floats

import minigrad as mg
from minigrad import func
from minigrad.autograd import recording
from minigrad.func import hessian, jacfwd, jacrev

F = mg.nn.functional
R = np.random.default_rng(0)


def drawn(*shape):
    return mg.tensor(R.normal(size=shape))


X, V = drawn(10), drawn(8)
W = drawn(8, 10)


def near(got, want, rtol=1e-9):
    assert got.shape == want.shape
    assert got.dtype is want.dtype
    got, want = got.detach().numpy(), want.detach().numpy()
    np.testing.assert_allclose(got, want, rtol=rtol, atol=1e-11, equal_nan=True)


def kernels_of(function):
    """How many kernels a call runs."""
    with mg.profiler.profile() as found:
        function()
    return len(found.events)


@pytest.fixture(autouse=True)
def _no_warnings():  # all others are errors
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "`torch.jit", DeprecationWarning)
        yield


@pytest.fixture
def _all_together(monkeypatch):
    monkeypatch.setattr(recording, "_FEW", 0)


# ---- rows ----------------------------------------------------------------------------------------

SMOOTH = {
    f"{name}-{k}": sample
    for name, samples in CATALOGUE.items()
    for k, sample in enumerate(samples)
    if sample.shapes and sample.smooth and not sample.random and not name.endswith("_")
    # A Jacobian of more columns takes long and shows nothing else.
    if sum(math.prod(shape) for shape in sample.shapes) <= 400
}


@pytest.mark.usefixtures("_all_together")
@pytest.mark.parametrize("name", SMOOTH)
def test_rows_of_every_operation_are_pulled_together(name, monkeypatch):
    sample = SMOOTH[name]
    xs = [mg.tensor(x) for x in sample.inputs()]

    def function(*given):
        return tuple(y for y in floats(sample(*given)) if y.is_floating_point())

    numbers = tuple(range(len(xs)))
    want = jacrev(function, numbers, chunk_size=1)(*xs)
    monkeypatch.setattr(recording, "_rows_one_by_one", None)
    for got, one in zip(jacrev(function, numbers)(*xs), want, strict=True):
        for a, b in zip(got, one, strict=True):
            near(a, b)


@pytest.mark.parametrize("count", [1, 2, 7, 30])
def test_jacobians_of_any_number_of_rows(count):
    m = drawn(count, 10)
    found = jacrev(lambda x: (m @ x).tanh())(X)
    near(found, (1 - (m @ X).tanh() ** 2).unsqueeze(1) * m)
    for chunk_size in (1, 2, 3, 100):
        near(jacrev(lambda x: (m @ x).tanh(), chunk_size=chunk_size)(X), found)


def test_the_number_of_kernels_is_that_of_one_pass():
    def counted(rows):
        m = drawn(rows, 10)
        return kernels_of(lambda: jacrev(lambda x: (m @ x).tanh().exp())(X))

    assert counted(10) == counted(200)
    assert counted(200) < 60


def test_all_ways_to_a_jacobian_by_rows_take_one_pass():
    def counted(jacobian):
        return kernels_of(jacobian)

    def f(x):
        return (W @ x).tanh().repeat(4)

    alone = counted(lambda: jacrev(f, chunk_size=1)(X))
    for way in (
        lambda: jacrev(f)(X),
        lambda: func.jacobian(lambda x: f(x)[:9])(X),
        lambda: mg.autograd.functional.jacobian(f, X),
        lambda: mg.autograd.functional.jacobian(f, X, create_graph=True),
        lambda: mg.vmap(jacrev(f))(mg.stack([X, X])),
    ):
        assert counted(way) < alone / 3


def test_several_outputs_arguments_and_aux():
    def f(x, p):
        y = p["w"] @ x
        return {"a": y.sin(), "b": (x * p["s"], p["s"])}, y

    p = {"w": W, "s": mg.tensor(2.0, dtype=mg.float64)}
    found, aux = jacrev(f, (0, 1), has_aux=True)(X, p)
    want, _ = jacrev(f, (0, 1), has_aux=True, chunk_size=1)(X, p)
    near(aux, W @ X)
    assert aux.grad_fn is None
    for key in ("a",):
        near(found[key][0], want[key][0])
        near(found[key][1]["w"], want[key][1]["w"])
        near(found[key][1]["s"], mg.zeros(8, dtype=mg.float64))
    near(found["b"][0][0], 2.0 * mg.eye(10, dtype=mg.float64))
    near(found["b"][0][1]["s"], X)
    near(found["b"][1][1]["s"], mg.tensor(1.0, dtype=mg.float64))


def test_float32_inputs_in_a_float64_function():
    x = X.to(mg.float32)
    found = jacrev(lambda x: W @ x.to(mg.float64))(x)
    assert found.dtype is mg.float32
    near(found, W.to(mg.float32))


def test_inputs_that_share_an_output_get_jacobians_of_their_own():
    by_x, by_y = jacrev(lambda x, y: x + y, (0, 1))(X, X)
    by_x.zero_()
    near(by_y, mg.eye(10, dtype=mg.float64))
    by_x.copy_(by_y)
    wide = jacrev(lambda x: x.sum().expand(9))(X)
    wide[0, 0] = 5.0
    assert wide.sum().item() == 94.0


def test_writes_and_views():
    def f(x):
        out = mg.zeros(20, dtype=mg.float64)
        out[:10] = x * x
        part = out[5:15].view(5, 2)
        part[1:3] *= 3.0
        part.transpose(0, 1)[1] += x[:5].exp()
        return out

    near(jacrev(f)(X), jacrev(f, chunk_size=1)(X))
    near(jacrev(f)(X), jacfwd(f)(X))


def test_jacobians_of_jacobians():
    def f(x):
        return (W @ x).tanh() * x.sum().exp()

    x = X * 0.1
    second = jacrev(jacrev(f))(x)
    near(second, jacfwd(jacrev(f))(x))
    near(second, jacrev(jacfwd(f))(x))
    near(second, jacrev(jacrev(f, chunk_size=1), chunk_size=1)(x))
    near(
        func.grad(lambda x: jacrev(f)(x).square().sum())(x),
        (second * jacrev(f)(x)[..., None]).sum(dim=(0, 1)) * 2,
    )
    near(mg.vmap(jacrev(jacrev(f)))(mg.stack([x, 2 * x]))[0], second)


def test_jacobians_can_be_differentiated_by_what_the_function_uses():
    scale = mg.tensor(2.0, dtype=mg.float64, requires_grad=True)
    found = jacrev(lambda x: scale**2 * x.sin())(X)
    assert found.requires_grad
    (by_scale,) = mg.grad(found.sum(), scale)
    near(by_scale, 4.0 * X.cos().sum())


@pytest.mark.parametrize("rows", [3, 12])
def test_constant_jacobians_have_zeros_as_gradients(rows):
    x = X.clone().requires_grad_()
    found = mg.autograd.functional.jacobian(
        lambda x: 2.0 * x[:1].expand(rows), x, create_graph=True
    )
    (g,) = mg.grad(found.sum(), x)
    near(g, mg.zeros(10, dtype=mg.float64))
    slope = func.grad(lambda x: jacrev(lambda x: W @ x)(x).sum())(X)
    near(slope, mg.zeros(10, dtype=mg.float64))


# ---- what runs code of the user's gets ordinary gradients ----------------------------------------


def test_hooks_see_ordinary_gradients():
    seen = []

    def note(g):
        seen.append((type(g), tuple(g.shape), g.sum().item()))

    def on_node(x):
        y = x.sin()
        y.register_hook(note)
        return y.exp()

    def on_argument(x):
        x.register_hook(note)
        return x.exp()

    def doubled(x):
        y = x.exp()
        y.register_hook(lambda g: g * 2)
        return y

    def kept(x):
        y = x.sin()
        y.retain_grad()
        found.append(y)
        return y.exp()

    found = []
    for function in (on_node, on_argument):
        seen.clear()
        jacrev(function)(X)
        assert [one[:2] for one in seen] == [(mg.Tensor, (10,))] * 10
    near(jacrev(doubled)(X), mg.diag(2 * X.exp()))
    jacrev(kept)(X)
    assert type(found[0].grad) is mg.Tensor

    def on_grad_fn(x):
        y = x.sin()
        y.grad_fn.register_prehook(lambda gs: seen.append(type(gs[0])))
        return y.exp()

    seen.clear()
    jacrev(on_grad_fn)(X)
    assert seen == [mg.Tensor] * 10


class Doubled(mg.autograd.Function):
    """Twice its argument, by arrays."""

    calls = 0

    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        Doubled.calls += 1
        assert type(g) is mg.Tensor
        return mg.tensor(g.detach().numpy() * 2)


def test_functions_get_one_gradient_at_a_time():
    Doubled.calls = 0
    near(jacrev(lambda x: Doubled.apply(x.sin()))(X), mg.diag(2 * X.cos()))
    assert Doubled.calls == 10


def test_a_checkpoint_is_computed_again_for_each_row():
    found = jacrev(lambda x: mg.utils.checkpoint.checkpoint(lambda x: (W @ x).tanh(), x))(X)
    near(found, jacrev(lambda x: (W @ x).tanh())(X))


def test_tools_see_a_pass_of_rows():
    with mg.autograd.detect_anomaly(), pytest.raises(mg.autograd.anomaly_mode.AnomalyError) as e:
        jacrev(lambda x: (x - x).sqrt() * 3.0)(X)
    assert "sqrt" in str(e.value)
    packed = []
    with mg.autograd.graph.saved_tensors_hooks(lambda x: packed.append(x) or x, lambda x: x):
        near(jacrev(lambda x: x.exp().sin())(X), mg.diag(X.exp().cos() * X.exp()))
    assert all(type(x) is mg.Tensor for x in packed)


def test_values_that_were_overwritten_are_an_error():
    def f(x):
        y = x.exp()
        z = y * y
        y.zero_()
        return z

    with pytest.raises(RuntimeError, match="overwritten"):
        jacrev(f)(X)


# ---- columns in a vmap ---------------------------------------------------------------------------


def network(v, p):
    return (p["w2"] @ (p["w1"] @ v + p["b1"]).tanh()).sum()


P = {"w1": drawn(5, 4), "b1": drawn(5), "w2": drawn(2, 5)}
BATCH = drawn(6, 4)


def stacked(function, batch):
    return mg.stack([function(one) for one in batch])


def test_hessians_of_samples():
    near(
        mg.vmap(hessian(network), (0, None))(BATCH, P),
        stacked(lambda v: hessian(network)(v, P), BATCH),
    )
    found = mg.vmap(hessian(network, 1), (0, None))(BATCH, P)
    alone = [hessian(network, 1)(v, P) for v in BATCH]
    for a in P:
        for b in P:
            near(found[a][b], mg.stack([one[a][b] for one in alone]))


def test_hessians_of_samples_are_those_of_torch():
    torch = pytest.importorskip("torch")

    def theirs(v, p):
        return (p["w2"] @ (p["w1"] @ v + p["b1"]).tanh()).sum()

    p = {name: torch.tensor(x.numpy()) for name, x in P.items()}
    want = torch.func.vmap(torch.func.hessian(theirs, 1), (0, None))(torch.tensor(BATCH.numpy()), p)
    found = mg.vmap(hessian(network, 1), (0, None))(BATCH, P)
    for a in P:
        for b in P:
            near(found[a][b], mg.tensor(want[a][b].numpy()))


@pytest.mark.parametrize(
    "of",
    [
        lambda v: hessian(network)(v, P),
        lambda v: hessian(network, 1)(v, P)["w1"]["w2"],
        lambda v: jacfwd(lambda v: (W[:, :4] @ v).sin())(v),
        lambda v: jacrev(lambda v: (W[:, :4] @ v).sin())(v),
        lambda v: jacrev(jacrev(lambda v: (W[:, :4] @ v).sin()))(v),
    ],
    ids=["hessian", "hessian-params", "jacfwd", "jacrev", "jacrev-twice"],
)
def test_the_number_of_kernels_does_not_grow_with_the_batch(of):
    few, many = drawn(40, 4), drawn(80, 4)  # small batches multiply matrices in other ways
    assert kernels_of(lambda: mg.vmap(of)(few)) == kernels_of(lambda: mg.vmap(of)(many))


def test_columns_in_vmaps_of_vmaps():
    def f(v, w):
        return (w @ v).tanh() * v.sum()

    ws = drawn(3, 4, 4)
    want = mg.stack([stacked(lambda v, w=w: jacfwd(f)(v, w), BATCH) for w in ws])
    over = mg.vmap(mg.vmap(jacfwd(f), (0, None)), (None, 0))
    near(over(BATCH, ws), want)
    near(mg.vmap(mg.vmap(jacrev(f), (0, None)), (None, 0))(BATCH, ws), want)
    near(
        mg.vmap(lambda v: jacfwd(lambda w: mg.vmap(f, (None, 0))(v, w))(ws))(BATCH)[1],
        jacfwd(lambda w: mg.vmap(f, (None, 0))(BATCH[1], w))(ws),
    )
    for chunk_size in (1, 3):
        each = jacfwd(f, chunk_size=chunk_size)
        near(mg.vmap(mg.vmap(each, (0, None)), (None, 0))(BATCH, ws), want)


def test_columns_in_a_vmap_can_be_differentiated():
    def total(batch):
        return mg.vmap(hessian(network), (0, None))(batch, P).square().sum()

    def by_loop(batch):
        return stacked(lambda v: hessian(network)(v, P), batch).square().sum()

    near(func.grad(total)(BATCH), func.grad(by_loop)(BATCH))
    third = mg.vmap(jacfwd(jacfwd(jacfwd(lambda v: network(v, P)))))(BATCH)
    near(third, stacked(jacfwd(jacfwd(jacfwd(lambda v: network(v, P)))), BATCH))


def test_outputs_that_do_not_depend_on_the_slice():
    found = mg.vmap(jacfwd(lambda v: (v.sin(), mg.ones(2, dtype=mg.float64))))(BATCH)
    near(found[0][2], mg.diag(BATCH[2].cos()))
    near(found[1], mg.zeros(6, 2, 4, dtype=mg.float64))


def test_nodes_that_push_one_tangent_at_a_time():
    class Cubed(mg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return 3 * g * x**2

        @staticmethod
        def jvp(ctx, t):
            (x,) = ctx.saved_tensors
            return 3 * t * x**2

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"\[vmap\] Cubed has no batching rule")
        found = mg.vmap(jacfwd(lambda v: Cubed.apply(v.sin())))(BATCH)
    near(found[1], mg.diag(3 * BATCH[1].sin() ** 2 * BATCH[1].cos()))
    near(
        mg.vmap(jacfwd(lambda v: v.sort()[0].cumprod(0)))(BATCH),
        stacked(jacfwd(lambda v: v.sort()[0].cumprod(0)), BATCH),
    )
