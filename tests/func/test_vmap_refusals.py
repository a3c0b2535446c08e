"""Refusals of ``vmap``, with its writes and its random numbers."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest

import minigrad as mg

pytestmark = pytest.mark.usefixtures("restore_random")

X = mg.tensor(np.arange(1.0, 7.0).reshape(3, 2))
SHARED = mg.zeros(2, dtype=mg.float64)
HELD = []


def kept(x):
    HELD.append(x)
    return x


VALUE = "in vmap this tensor stands for all slices and has a value for each: choose with where"
SHAPE = "in vmap the shape of the result would depend on each slice's values: choose with where"
WRITE = (
    "a value of shape (2,) that vmap has for each slice cannot be written into a tensor of shape"
)


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (lambda x: x.sum().item(), f"[item] {VALUE}"),
        (lambda x: x if x.sum() > 0 else -x, f"[bool] {VALUE}"),
        (lambda x: x * float(x[0]), f"[float] {VALUE}"),
        (lambda x: x.numpy(), f"[numpy] {VALUE}"),
        (lambda x: np.asarray(x), f"[array] {VALUE}"),
        (lambda x: x.tolist(), f"[tolist] {VALUE}"),
        (lambda x: mg.tensor([x[0], x[1]]), f"[array] {VALUE}"),
        (lambda x: SHARED[x.long()[0] :], f"[index] {VALUE}"),
        (lambda x: mg.nonzero(x), f"[nonzero] {SHAPE}"),
        (lambda x: x[x > 2], f"[nonzero] {SHAPE}"),
        (lambda x: mg.unique(x), f"[distinct] {SHAPE}"),
        (lambda x: SHARED.copy_(x), f"[copy_] {WRITE} (2,) that all slices share"),
        (lambda x: SHARED.add_(x), f"[add] {WRITE} (2,) that all slices share"),
        (lambda x: SHARED.mul_(x.sum()), f"[mul] {WRITE}"),
        (
            lambda x: SHARED.__setitem__(0, x[0]),
            "[index assignment] a value of shape ()",
        ),
        (lambda x: SHARED.__setitem__(x.long() * 0, 1.0), f"[index assignment] {WRITE}"),
        (lambda x: x.requires_grad_().sum().backward(), "[backward] not in vmap, of a tensor that"),
        (lambda x: x.register_hook(print), "[register_hook] not in vmap"),
        (lambda x: x + mg.rand(2), "[vmap] the function draws random numbers: give randomness="),
        (
            lambda x: x + mg.rand(2, generator=mg.Generator()),
            "[vmap] the function draws random numbers: give randomness=",
        ),
        (lambda x: x.uniform_(), "[uniform_] not in vmap, of a tensor that it cuts"),
    ],
)
def test_messages(function, text):
    with pytest.raises(RuntimeError, match=re.escape(text)):
        mg.vmap(function)(X)
    assert SHARED.tolist() == [0, 0]


def test_a_tensor_of_a_vmap_ends_with_it():
    mg.vmap(kept)(X)
    with pytest.raises(RuntimeError, match=r"^\[vmap\] a tensor of a vmap was used after it"):
        HELD.pop() + 1


def test_a_result_that_differs_needs_a_dimension():
    with pytest.raises(ValueError, match=r"^\[vmap\] out_dims is None for a result that differs"):
        mg.vmap(lambda x: x, out_dims=None)(X)
    assert mg.vmap(lambda x: SHARED, out_dims=None)(X) is SHARED
    with pytest.raises(ValueError, match=r"^\[vmap\] there is no dimension 2 for a result"):
        mg.vmap(lambda x: x, out_dims=2)(X)


@pytest.mark.parametrize("size", [0, -1, 1.5])
def test_chunk_sizes_are_numbers_above_0(size):
    with pytest.raises(ValueError, match=r"^\[vmap\] chunk_size is .*, but must be a number above"):
        mg.vmap(mg.sin, chunk_size=size)(X)


def test_an_exception_leaves_nothing_behind():
    def fails(x):
        mg.vmap(lambda y: 1 / 0)(x)

    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            mg.vmap(fails)(X)
    assert mg.rand(2).shape == (2,)  # drawn as outside of vmap
    assert mg.tape.tensor_base.running == []


# ---- writes --------------------------------------------------------------------------------------

POSITIONS = mg.tensor([[0, 1], [1, 1], [1, 0]])
WRITES = {
    "part": lambda x, i: x[0].mul_(3.0),
    "slice": lambda x, i: x.__setitem__(slice(0, 1), x[1] * 2),
    "value of its own": lambda x, i: x.__setitem__(0, x.sum()),
    "positions": lambda x, i: x.__setitem__(i, 7.0),
    "values at positions": lambda x, i: x.__setitem__(i, x * 5),
    "mask": lambda x, i: x.masked_fill_(x > 2.5, 0.0),
    "operator": lambda x, i: x.__iadd__(x.flip(0)),
    "zero": lambda x, i: x.zero_(),
    "fill": lambda x, i: x.fill_(x[1]),
    "copy": lambda x, i: x.copy_(i),
    "transposed view": lambda x, i: x.view(1, 2).T[1].add_(10.0),
    "index": lambda x, i: x.index_add_(0, i, x * 2),
}


@pytest.mark.parametrize("tracked", [False, True])
@pytest.mark.parametrize("name", WRITES)
def test_writes_are_those_of_a_loop(name, tracked):
    def written(x, i):
        y = x * 1.0
        base = y[...]
        WRITES[name](y, i)
        return y + base * 0.5

    leaf = X.clone().requires_grad_(tracked)
    want = mg.stack([written(x, i) for x, i in zip(leaf, POSITIONS, strict=True)])
    found = mg.vmap(written)(leaf, POSITIONS)
    np.testing.assert_allclose(found.detach().numpy(), want.detach().numpy())
    if tracked:
        weights = mg.tensor([[1.0, 2.0], [3.0, 5.0], [7.0, 11.0]])
        got, expected = (mg.grad((y * weights).sum(), leaf)[0] for y in (found, want))
        np.testing.assert_allclose(got.numpy(), expected.numpy())


def test_a_write_into_a_slice_reaches_the_batch():
    x = X.clone()
    mg.vmap(lambda a: a.mul_(2.0))(x)
    np.testing.assert_array_equal(x.numpy(), 2 * X.numpy())


# ---- random numbers ------------------------------------------------------------------------------


def test_each_slice_draws_by_itself_or_as_the_others():
    mg.manual_seed(3)
    loop = mg.stack([x + mg.rand(2, dtype=mg.float64) for x in X])
    mg.manual_seed(3)
    apart = mg.vmap(lambda x: x + mg.rand(2, dtype=mg.float64), randomness="different")(X)
    np.testing.assert_array_equal(apart.numpy(), loop.numpy())
    mg.manual_seed(3)
    first = mg.rand(2, dtype=mg.float64)
    for size in (None, 1, 2):
        mg.manual_seed(3)
        draw = mg.vmap(
            lambda x: x + mg.rand(2, dtype=mg.float64), randomness="same", chunk_size=size
        )
        np.testing.assert_array_equal(draw(X).numpy(), (X + first).numpy())


def test_dropout_by_randomness():
    x = mg.ones(3, 50)
    drop = mg.nn.functional.dropout
    same = mg.vmap(drop, randomness="same")(x)
    assert mg.equal(same[0], same[1])
    apart = mg.vmap(drop, randomness="different")(x)
    assert not mg.equal(apart[0], apart[1])
    with pytest.raises(RuntimeError, match="draws random numbers"):
        mg.vmap(drop)(x)


def test_the_outer_vmap_says_how_an_inner_one_draws():
    def row(x):
        return mg.vmap(lambda a: a * 0 + mg.rand(1)[0].double(), randomness="different")(x)

    out = mg.vmap(row, randomness="same")(X)
    assert mg.equal(out[0], out[1])
    assert out[0, 0] != out[0, 1]
    with pytest.raises(RuntimeError, match="draws random numbers"):
        mg.vmap(row)(X)


def test_a_generator_of_ones_own_with_chunks_is_refused():
    generator = mg.Generator().manual_seed(0)
    draw = mg.vmap(lambda x: x + mg.rand(2, generator=generator), randomness="same", chunk_size=2)
    with pytest.raises(RuntimeError, match=r"^\[vmap\] with chunk_size a generator of one's own"):
        draw(X)


def test_the_slow_way_may_do_anything():
    count = mg.vmap(lambda x: mg.tensor(len(x[x > 2.0])), fallback="loop")(X)
    assert count.tolist() == [0, 2, 2]
    with pytest.raises(ValueError, match=r"^\[vmap\] fallback is 'x': give"):
        mg.vmap(mg.sin, fallback="x")


def test_tensors_like_a_slice_have_memory_for_each():
    def filled(x):
        out = mg.zeros_like(x)
        out[0] = x[1]
        other = x.new_full((3,), 2.0)
        other[1:] *= x
        return mg.cat([out, other, mg.ones_like(x) + mg.full_like(x, 3.0)])

    want = mg.stack([filled(x) for x in X])
    np.testing.assert_array_equal(mg.vmap(filled)(X).numpy(), want.numpy())

    def slopes(x):
        zeros = mg.zeros_like(x, requires_grad=True)
        return mg.grad((zeros * x).sum() + (zeros**2).sum(), zeros)[0]

    np.testing.assert_array_equal(mg.vmap(slopes)(X).numpy(), X.numpy())
    inside = mg.vmap(lambda x: mg.vmap(lambda y: mg.zeros_like(y).add_(x))(x.expand(2, 2)))(X)
    np.testing.assert_array_equal(inside[:, 1].numpy(), X.numpy())


def test_numpy_and_sequences_of_a_slice():
    def several(x):
        pair = np.concatenate([np.sin(x), np.add(x, 1.0)])
        return mg.stack([v * 2 for v in pair]) + mg.tensor(x).sum() + sum(v for v in x)

    want = mg.stack([several(x) for x in X])
    np.testing.assert_allclose(mg.vmap(several)(X).numpy(), want.numpy(), rtol=1e-12)


def test_values_overwritten_since_are_noticed():
    def over(x):
        y = x.exp()
        z = y.sin()
        y.mul_(2.0)
        return z

    leaf = X.clone().requires_grad_()
    out = mg.vmap(over)(leaf)
    with pytest.raises(RuntimeError, match=r"^\[sin\] a tensor saved for backward was overwritten"):
        out.sum().backward()
    with pytest.raises(RuntimeError, match=r"that requires grad: do it under no_grad"):
        mg.vmap(lambda x: x.mul_(2.0))(leaf)


def test_a_function_of_ones_own_runs_for_each_slice():
    class Cube(mg.autograd.Function):
        @staticmethod
        def forward(ctx, x, k):
            ctx.save_for_backward(x)
            ctx.k = k
            return x**3 * k

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return 3 * x * x * g * ctx.k, None

    def cubes(x):
        return Cube.apply(x, 2.0)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        np.testing.assert_allclose(mg.vmap(cubes)(X).numpy(), 2 * X.numpy() ** 3)
        slopes = mg.vmap(mg.func.grad(lambda x: cubes(x).sum()))(X)
        np.testing.assert_allclose(slopes.numpy(), 6 * X.numpy() ** 2)
        leaf = X.clone().requires_grad_()
        (g,) = mg.grad(mg.vmap(cubes)(leaf).sum(), leaf)
        np.testing.assert_allclose(g.numpy(), 6 * X.numpy() ** 2)


@pytest.mark.filterwarnings("ignore:.*no batching rule")
def test_a_function_of_ones_own_gets_a_slice_whatever_requires_grad():
    class Weighted(mg.autograd.Function):
        power = 1

        def forward(self, w, x):
            self.save_for_backward(x)
            return mg.tensor(w.detach().numpy() * x.detach().numpy() ** self.power)

        def backward(self, g):
            (x,) = self.saved_tensors
            return g * x**self.power, None

    def squared(w, x):
        one = Weighted()
        one.power = 2
        return one(w, x)

    w, x = mg.tensor([1.0, 2.0]), mg.tensor([[1.0, 3.0], [2.0, 4.0]])
    want = [[1.0, 18.0], [4.0, 32.0]]
    assert mg.vmap(squared, (None, 0))(w, x).tolist() == want
    w.requires_grad_()
    y = mg.vmap(squared, (None, 0))(w, x)
    assert y.tolist() == want
    y.sum().backward()
    assert w.grad.tolist() == [5.0, 25.0]

    power = mg.func.custom_vjp(lambda x, *, n: x ** n.item(), lambda g, x, *, n: None)
    n = mg.tensor([2.0, 3.0])
    found = mg.vmap(lambda x, n: power(x, n=n))(x, n)
    np.testing.assert_allclose(found.numpy(), [[1.0, 9.0], [8.0, 64.0]])


@pytest.mark.filterwarnings("ignore:.*grad of a function of one's own")
def test_a_graph_is_not_freed_before_a_function_of_ones_own_is_met():
    sine = mg.func.custom_vjp(np.sin, lambda g, x: g * np.cos(x))
    x = mg.tensor([0.0, 1.0], requires_grad=True)
    y = sine(x).exp()
    found = mg.vmap(lambda g: mg.grad(y, x, g)[0])(mg.eye(2))
    np.testing.assert_allclose(found.numpy(), np.diag((y * x.cos()).detach().numpy()), rtol=1e-6)
