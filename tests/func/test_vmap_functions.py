"""Functions of one's own in ``vmap``: rules that they state, generated ones, and loops."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import minigrad as mg
from minigrad import func
from minigrad.func import dispatch

pytestmark = pytest.mark.usefixtures("restore_random")

R = np.random.default_rng(0)


def drawn(*shape):
    return mg.tensor(R.normal(size=shape))


X, Y, W = drawn(6, 5), drawn(6, 5), drawn(5)


def near(got, want, rtol=1e-9):
    assert got.shape == want.shape
    assert got.dtype is want.dtype
    got, want = got.detach().numpy(), want.detach().numpy()
    np.testing.assert_allclose(got, want, rtol=rtol, atol=1e-11)


told: list[object] = []


def product(library):
    """A product by arrays in ``library``, with a rule for batches, which come last."""

    class Product(library.autograd.Function):
        @staticmethod
        def forward(x, y):
            return library.tensor(x.detach().numpy() * y.detach().numpy())

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx, g):
            x, y = ctx.saved_tensors
            return Product.apply(g, y), Product.apply(g, x)

        @staticmethod
        def vmap(info, in_dims, x, y):
            told.append((info.batch_size, info.randomness, in_dims))
            x, y = (
                v.unsqueeze(-1) if d is None else v.movedim(d, -1)
                for v, d in zip((x, y), in_dims, strict=True)
            )
            return Product.apply(x, y), -1

    return Product


Times = product(mg)


class Cubed(mg.autograd.Function):
    """x^3 * w, of operations, which keeps values of every kind."""

    generate_vmap_rule = True

    @staticmethod
    def forward(ctx, x, w, power):
        y = x**power
        ctx.save_for_backward(x, w)
        ctx.power, ctx.more = power, {"one": [mg.ones(2), power]}
        return y * w

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        by_x = ctx.power * x ** (ctx.power - 1) * w * g if ctx.needs_input_grad[0] else None
        return by_x, x**ctx.power * g, None


def by_slices(function, *args):
    return mg.stack([function(*one) for one in zip(*args, strict=True)])


def checked(function, *given):
    given = [x.detach().requires_grad_() for x in given]
    assert mg.gradcheck(function, given)
    assert mg.gradgradcheck(function, given)


# ---- rules that are stated -----------------------------------------------------------------------


def test_a_rule_runs_once_on_all_slices():
    told.clear()
    near(mg.vmap(Times.apply)(X, Y), X * Y)
    near(mg.vmap(Times.apply, (None, 0))(W, Y), W * Y)
    near(mg.vmap(Times.apply, (1, None), randomness="same")(X, drawn(6) * 0 + 2), 2 * X.T)
    want = [(6, "error", (0, 0)), (6, "error", (None, 0)), (5, "same", (0, None))]
    assert told == want


def test_gradients_go_through_a_rule():
    checked(mg.vmap(Times.apply), X[:2, :3], Y[:2, :3])
    checked(mg.vmap(Times.apply, (0, None)), X[:2, :3], W[:3])
    near(mg.vmap(func.grad(lambda x, y: Times.apply(x, y).sin().sum()))(X, Y), (X * Y).cos() * Y)
    near(
        mg.vmap(func.hessian(lambda x: Times.apply(x, Times.apply(x, x)).sum()))(X)[1],
        mg.diag(6 * X[1]),
    )


def test_rules_of_nested_vmaps():
    def outer(w, x):
        return mg.vmap(Times.apply, (None, 0))(w, x)

    near(mg.vmap(outer, (None, 1))(mg.tensor(2.0, dtype=mg.float64), X), 2 * X.T)
    near(mg.vmap(mg.vmap(Times.apply, (None, 0)), (0, None))(Y, X), Y.unsqueeze(1) * X)


def test_a_rule_is_that_of_torch():
    torch = pytest.importorskip("torch")
    theirs = product(torch)
    x, y = torch.tensor(X.numpy()), torch.tensor(W.numpy())
    want = torch.func.vmap(torch.func.grad(lambda x, y: theirs.apply(x, y).exp().sum()), (0, None))
    found = mg.vmap(func.grad(lambda x, y: Times.apply(x, y).exp().sum()), (0, None))(X, W)
    near(found, mg.tensor(want(x, y).numpy()))


def test_several_outputs_and_what_is_no_tensor():
    class Parts(mg.autograd.Function):
        @staticmethod
        def forward(ctx, x, n):
            return x * n, x.sum(), n

        @staticmethod
        def vmap(info, in_dims, x, n):
            assert in_dims == (0, None)
            return (x.movedim(0, 1) * n, x.sum(1), n), (1, 0, None)

    assert Parts.apply(X[0], 3)[2] == 3
    near(mg.vmap(lambda x: Parts.apply(x, 3)[0])(X), 3 * X)
    near(mg.vmap(lambda x: Parts.apply(x, 3)[1] * Parts.apply(x, 3)[2])(X), 3 * X.sum(1))


@pytest.mark.parametrize(
    ("returned", "error", "text"),
    [
        (lambda x: x, TypeError, r"\[Bad\] vmap returned Tensor, not a pair"),
        (lambda x: (x, (0, 0)), ValueError, r"\[Bad\] vmap returned 2 out_dims for 1 outputs"),
        (lambda x: (x, 7), ValueError, r"\[Bad\] vmap returned the out_dim 7"),
        (lambda x: (x, 1), ValueError, r"\[Bad\] vmap returned the shape \(6, 5\)"),
        (lambda x: (3.0, 0), TypeError, r"\[Bad\] vmap returned float with the out_dim 0"),
    ],
)
def test_what_a_rule_may_return(returned, error, text):
    class Bad(mg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def vmap(info, in_dims, x):
            return returned(x)

    with pytest.raises(error, match=text):
        mg.vmap(Bad.apply)(X)


def test_a_rule_is_stated_or_generated():
    class Both(Times):
        generate_vmap_rule = True

    with pytest.raises(RuntimeError, match=r"\[Both\] states vmap and sets generate_vmap_rule"):
        mg.vmap(Both.apply)(X, Y)


# ---- rules that are generated --------------------------------------------------------------------


def test_a_generated_rule_runs_everything_once():
    runs = []

    class Counted(mg.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(ctx, x):
            runs.append("forward")
            ctx.save_for_backward(x)
            return x.sin()

        @staticmethod
        def backward(ctx, g):
            runs.append("backward")
            (x,) = ctx.saved_tensors
            return g * x.cos()

    near(mg.vmap(func.grad(lambda x: Counted.apply(x).sum()))(X), X.cos())
    assert runs == ["forward", "backward"]


def test_gradients_of_a_generated_rule():
    checked(lambda x, w: mg.vmap(lambda x: Cubed.apply(x, w, 3))(x), X[:2, :3], W[:3])
    checked(lambda x, w: mg.vmap(lambda x, w: Cubed.apply(x, w, 3))(x, w), X[:2, :3], Y[:2, :3])
    checked(lambda x, w: mg.vmap(lambda x: Cubed.apply(w, x, 3), 1)(x), X[:2, :3], W[:2])
    near(mg.vmap(func.hessian(lambda x: Cubed.apply(x, W, 3).sum()))(X)[2], mg.diag(6 * X[2] * W))
    near(mg.vmap(func.jacfwd(lambda x: Cubed.apply(x, W, 3)))(X)[2], mg.diag(3 * X[2] ** 2 * W))


def test_generated_rules_of_nested_vmaps():
    def f(x, w):
        return Cubed.apply(x, w, 2)

    over = mg.vmap(mg.vmap(f, (None, 0)), (0, None))
    near(over(Y, X), Y.unsqueeze(1) ** 2 * X)
    by_y = func.grad(lambda y: over(y, X).sum())(Y)
    near(by_y, 2 * Y * X.sum(0))
    twice = mg.vmap(mg.vmap(func.grad(lambda x, w: f(x, w).sum()), (None, 0)), (0, None))
    near(twice(Y, X), 2 * Y.unsqueeze(1) * X)


def test_a_jvp_that_is_stated():
    class Halved(mg.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(ctx, x, w):
            ctx.save_for_backward(x)
            ctx.save_for_forward(w)
            return x * w / 2, x.sum()

        @staticmethod
        def jvp(ctx, tx, tw):
            (w,) = ctx.saved_tensors
            return tx * w / 2, tx.sum()

    found = mg.vmap(lambda x, t: func.jvp(lambda x: Halved.apply(x, W), (x,), (t,))[1])(X, Y)
    near(found[0], Y * W / 2)
    near(found[1], Y.sum(1))


def test_outputs_without_a_gradient_and_without_a_batch():
    class Ranked(mg.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(False)
            order = x.argsort()
            ranked = x[order]
            ctx.save_for_backward(order)
            rounded = x.round()
            ctx.mark_non_differentiable(rounded)
            return ranked, rounded, mg.ones(2)

        @staticmethod
        def backward(ctx, g, no, none):
            assert no is None
            assert none is None
            (order,) = ctx.saved_tensors
            return mg.zeros_like(g).index_put((order,), g)

    x = X.clone().requires_grad_()
    ranked, rounded, ones = mg.vmap(Ranked.apply)(x)
    near(ranked, X.sort()[0])
    assert not rounded.requires_grad
    assert ones.shape == (6, 2)
    (ranked * Y).sum().backward()
    near(x.grad, by_slices(lambda x, y: mg.zeros_like(x).index_put((x.argsort(),), y), X, Y))


def test_values_that_the_tape_does_not_know_have_no_second_derivative():
    class Kept(mg.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(ctx, x):
            ctx.slope = [x.cos()]
            return x.sin()

        @staticmethod
        def backward(ctx, g):
            return g * ctx.slope[0]

    near(mg.vmap(func.grad(lambda x: Kept.apply(x).sum()))(X), X.cos())
    for second in (
        lambda x: mg.vmap(func.hessian(lambda x: Kept.apply(x).sum()))(x),
        lambda x: func.grad(lambda x: mg.vmap(func.grad(lambda x: Kept.apply(x).sum()))(x).sum())(
            x
        ),
    ):
        with pytest.raises(RuntimeError, match=r"\[Kept\] the second derivative is not known"):
            second(X)


def test_wrong_gradients_of_slices_name_the_class():
    def wrong(*gradients):
        class Wrong(mg.autograd.Function):
            generate_vmap_rule = True

            @staticmethod
            def forward(ctx, x):
                return x * 2

            @staticmethod
            def backward(ctx, g):
                return gradients

        return lambda: mg.vmap(func.grad(lambda x: Wrong.apply(x).sum()))(X)

    for gradients, text in (
        ((W, W), r"\[Wrong\] backward returned 2 gradients for 1 arguments"),
        ((W[:3],), r"\[Wrong\] backward returned shape \(3,\) as gradient 0 .* shape \(5,\)"),
    ):
        with pytest.raises(RuntimeError, match=text):
            wrong(*gradients)()


def test_mark_dirty_needs_a_rule():
    class Dirty(mg.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(ctx, x):
            x.mul_(2)
            ctx.mark_dirty(x)
            return x

    with pytest.raises(RuntimeError, match=r"\[Dirty\] mark_dirty does not go with"):
        mg.vmap(lambda x: Dirty.apply(x * 1))(X)


def test_once_differentiable_backwards():
    class Once(mg.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        @mg.autograd.function.once_differentiable
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return 2 * x * g

    near(mg.vmap(func.grad(lambda x: Once.apply(x).sum()))(X), 2 * X)
    with pytest.raises(RuntimeError, match=r"\[Once\]"):
        mg.vmap(func.hessian(lambda x: Once.apply(x).sum()))(X)


# ---- loops ---------------------------------------------------------------------------------------


@pytest.fixture
def said(monkeypatch):
    monkeypatch.setattr(dispatch, "_said", set())
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        yield lambda: [str(one.message) for one in found]


class ByNumPy(mg.autograd.Function):
    """The sine, by arrays."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return mg.tensor(np.sin(x.detach().numpy()))

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * x.cos()


@pytest.mark.parametrize("generates", [False, True])
def test_a_function_without_a_rule_loops_and_says_so(said, generates):
    name = "ByNumPy"
    cls = type(name, (ByNumPy,), {"generate_vmap_rule": generates})
    near(mg.vmap(cls.apply)(X), X.sin())  # recorded or not
    near(mg.vmap(func.grad(lambda x: cls.apply(x).sum()))(X), X.cos())
    assert said() == ["[vmap] ByNumPy has no batching rule: it runs once for each slice"]


def test_a_backward_that_asks_for_values_loops(said):
    class Clipped(mg.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 1

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * 2 if x.sum().item() > 0 else None

    found = mg.vmap(func.grad(lambda x: Clipped.apply(x).sum()))(X)
    near(
        found,
        mg.where(X.sum(1, keepdim=True) > 0, mg.tensor(2.0, dtype=mg.float64), 0.0).expand(6, 5),
    )
    assert said() == ["[vmap] Clipped has no batching rule: it runs once for each slice"]


def test_cotangents_of_a_function_by_arrays(said):
    class Doubled(ByNumPy):
        @staticmethod
        def backward(ctx, g):
            return mg.tensor(g.detach().numpy() * 2)

    _, pull = func.vjp(Doubled.apply, W)
    near(mg.vmap(pull)(X)[0], 2 * X)


def test_custom_vjp(said):
    runs = []

    def cube(x, *, scale):
        runs.append(x.shape)
        return scale * x**3

    by_tensors = func.custom_vjp(cube, lambda g, x, *, scale: 3 * scale * g * x**2, tensors=True)
    near(mg.vmap(func.grad(lambda x: by_tensors(x, scale=2.0).sum()))(X), 6 * X**2)
    near(mg.vmap(func.hessian(lambda x: by_tensors(x, scale=2.0).sum()))(X)[1], mg.diag(12 * X[1]))
    assert len(runs) == 2
    assert not said()
    runs.clear()
    near(mg.vmap(lambda x, w: by_tensors(x, scale=w))(X, Y), Y * X**3)
    assert len(runs) == 6  # what a keyword gives is cut by a loop
    sine = func.custom_vjp(np.sin, lambda g, x: g * np.cos(x))
    near(mg.vmap(func.grad(lambda x: sine(x).sum()))(X), X.cos())
    assert [one.split()[1] for one in said()] == ["cube", "sin"]


def test_roots_and_fixed_points(said):
    def residual(x, a, b):
        return x**3 + a * x - b

    def solve(a, b):
        x = mg.ones_like(a)
        for _ in range(60):
            x = x - residual(x, a, b) / (3 * x**2 + a)
        return x.numpy()

    root = func.custom_root(residual, solve)
    a, b = mg.rand(3, 2, dtype=mg.float64) + 0.5, mg.tensor([1.0, 2.0], dtype=mg.float64)
    found = mg.vmap(root, (0, None))(a, b)
    near(found**3 + a * found, b.expand(3, 2))
    near(mg.vmap(func.grad(lambda a: root(a, b).sum()))(a), -found / (3 * found**2 + a))
    checked(lambda a, b: mg.vmap(root, (0, None))(a, b), a, b)

    def halved(x0, a):
        return func.fixed_point(lambda x, a: (x + a / x) / 2, x0, a)

    near(mg.vmap(halved)(mg.ones(3, 2, dtype=mg.float64), a), a.sqrt())
    slopes = mg.vmap(func.grad(lambda a: halved(mg.ones(2, dtype=mg.float64), a).sum()))(a)
    near(slopes, 0.5 / a.sqrt())
    assert [one.split()[1] for one in said()] == ["custom_root", "fixed_point"]
