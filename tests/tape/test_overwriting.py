"""VJPs write over an upstream gradient only where nothing else can see it."""

from __future__ import annotations

import gc
import threading
import weakref

import numpy as np
import pytest

import minigrad as mg
from minigrad.ops import TABLE
from minigrad.runtime import native
from minigrad.runtime.accelerator import tape_name
from minigrad.tape.apply import operation
from minigrad.tape.node import record
from minigrad.tape.tensor_base import wrap
from minigrad.tape.vjp import rules

FUSED = [
    row
    for row in TABLE.values()
    if row.family == "pointwise" and native.vjp_of(row.id) is not None and row.name != "scale"
]
by_dtype = pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float32", "float64"])


def leaf(values, dtype=np.float64):
    return mg.tensor(np.asarray(values, dtype=dtype), requires_grad=True)


def through(x, hook, w):
    """exp and tanh of x, with a hook on the gradient of each: w times its slope arrives."""
    y = x.exp()
    z = y.tanh()
    y.register_hook(hook)
    z.register_hook(hook)
    return z * w


def expected(x, w):
    """The gradients of tanh(exp(x)) w: of z, y and x."""
    y = np.exp(x)
    by_y = w * (1 - np.tanh(y) ** 2)
    return w, by_y, by_y * y


@pytest.mark.parametrize("n", [1, 5, 64, 1003, 70_001])
@by_dtype
@pytest.mark.parametrize("row", FUSED, ids=lambda row: row.name)
def test_what_is_written_over_a_gradient_has_the_same_bits(rng, row, dtype, n):
    """As the rule gives them apart from it; and in C the memory is the gradient's."""
    arrays = [rng.uniform(low, high, n).astype(dtype) for low, high in row.domain]
    w = mg.tensor(rng.standard_normal(n).astype(dtype) * (rng.random(n) < 0.8))
    for wanted in range(1, 1 << row.arity):
        inputs = [mg.tensor(a, requires_grad=bool(wanted >> i & 1)) for i, a in enumerate(arrays)]
        y, places = operation(row)(*inputs), []
        apart = rules(y.grad_fn.op)[0](y.grad_fn, w)
        y.register_hook(lambda g, places=places: places.append(g._h.data))
        (y * w).sum().backward()
        for x, g in zip(inputs, apart, strict=True):
            assert (x.grad is None) is (g is None)
            assert g is None or x.grad.numpy().tobytes() == g.numpy().tobytes()
        if all(map(callable, row.derivatives)) and tape_name == "C":
            first = next(x for x in inputs if x.grad is not None)
            assert first.grad._h.data == places[0]


@pytest.mark.parametrize(
    "keep",
    [
        lambda g: g,
        lambda g: g._h,
        lambda g: g.detach(),
        lambda g: g[1:],
        lambda g: g.reshape(2, 3).permute(1, 0),
        lambda g: g.numpy(),
        lambda g: memoryview(g.numpy()),
        lambda g: lambda: g,
        lambda g: iter([g]),
    ],
)
@by_dtype
def test_what_a_hook_keeps_stays_as_it_is(rng, dtype, keep):
    x, w = rng.standard_normal((2, 6)).astype(dtype)
    kept, then = [], []

    def hook(g):
        kept.append(keep(g))
        then.append((g._h.data, g.numpy().copy()))

    a = leaf(x, dtype)
    through(a, hook, mg.tensor(w)).sum().backward()
    for (_, values), right in zip(then, expected(x, w), strict=False):
        np.testing.assert_allclose(values, right, rtol=1e-4, atol=1e-5)
    assert len({place for place, _ in then} | {a.grad._h.data}) == 3
    for one, (_, values) in zip(kept, then, strict=True):
        if isinstance(one, mg.Tensor):
            one = one.numpy()
        if callable(one):
            one = one().numpy()
        if isinstance(one, (np.ndarray, memoryview)) and np.ndim(one) == 1:
            np.testing.assert_array_equal(one, values[values.size - len(one) :])


def test_a_hook_that_knows_the_gradient_weakly_finds_it_unchanged():
    known, seen = [], []

    def hook(g):
        known.append((weakref.ref(g), g.numpy().copy()))

    def look(g):
        for ref, values in known:
            held = ref()
            seen.append(held is None or np.array_equal(held.numpy(), values))

    x = leaf([0.1, 0.2, 0.3])
    y = x.exp()
    z = y.tanh()
    z.register_hook(hook)
    y.register_hook(look)
    (z * mg.tensor([2.0, 3.0, 4.0], dtype=mg.float64)).sum().backward()
    assert seen == [True]


def test_a_frame_that_an_error_keeps_holds_the_gradient():
    errors = []

    def hook(g):
        values = g.numpy().copy()
        try:
            values.item(values.size)
        except IndexError as error:
            errors.append(error)

    through(leaf([0.1, 0.2]), hook, mg.tensor([2.0, 3.0], dtype=mg.float64)).sum().backward()
    for error in errors:
        held = error.__traceback__.tb_frame.f_locals
        np.testing.assert_array_equal(held["g"].numpy(), held["values"])


def test_the_gradient_that_is_given_stays_as_it_is(rng):
    x, w = rng.standard_normal((2, 6))
    g = mg.tensor(w)
    before = g._h.data
    for run in (
        lambda y, a: y.backward(g),
        lambda y, a: mg.grad(y, a, g),
        lambda y, a: mg.grad([y, y], [a], [g, g]),
    ):
        a = leaf(x)
        run(a.exp().tanh(), a)
        np.testing.assert_array_equal(g.numpy(), w)
        assert g._h.data == before


def test_what_grad_and_retain_grad_are_asked_for_stays_as_it_is(rng):
    x, w = rng.standard_normal((2, 6))
    by_z, by_y, by_x = expected(x, w)
    a = leaf(x)
    y = a.exp()
    z = y.tanh()
    total = (z * mg.tensor(w)).sum()
    found = mg.grad(total, [z, y, a], retain_graph=True)
    for g, right in zip(found, (by_z, by_y, by_x), strict=True):
        np.testing.assert_allclose(g.numpy(), right)
    y.retain_grad()
    z.retain_grad()
    for times in (1, 2):
        total.backward(retain_graph=True)
        for one, right in ((z, by_z), (y, by_y), (a, by_x)):
            np.testing.assert_allclose(one.grad.numpy(), times * right)


def test_what_a_hook_returns_may_be_held():
    mine = mg.tensor([5.0, 7.0], dtype=mg.float64)
    x = leaf([0.1, 0.2])
    y = x.exp()
    y.register_hook(lambda g: mine)
    y.sum().backward()
    assert mine.tolist() == [5.0, 7.0]
    np.testing.assert_allclose(x.grad.numpy(), [5.0 * np.exp(0.1), 7.0 * np.exp(0.2)])


def test_an_array_of_numpys_that_a_hook_returns_stays_as_it_is():
    mine = np.array([5.0, 7.0])
    x = leaf([0.1, 0.2])
    y = x.exp()
    y.register_hook(lambda g: mg.from_numpy(mine))
    y.sum().backward()
    assert mine.tolist() == [5.0, 7.0]


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize(("op", "sign"), [(mg.add, 1.0), (mg.sub, -1.0)])
def test_a_gradient_that_two_edges_get(rng, op, sign, turned):
    """Whichever goes back first; the second one alone may lose it."""
    x, v, w = rng.standard_normal((3, 6))
    a, b = leaf(x), leaf(v)
    if turned:
        z, y = b.sin(), a.exp()
    else:
        y, z = a.exp(), b.sin()
    (op(y, z) * mg.tensor(w)).sum().backward()
    np.testing.assert_allclose(a.grad.numpy(), w * np.exp(x))
    np.testing.assert_allclose(b.grad.numpy(), sign * w * np.cos(v))


def test_a_gradient_that_a_node_and_a_leaf_get(rng):
    x, v, w = rng.standard_normal((3, 6))
    a, b = leaf(x), leaf(v)
    y = a.exp() + b
    (y * mg.tensor(w)).sum().backward()
    np.testing.assert_allclose(a.grad.numpy(), w * np.exp(x))
    np.testing.assert_array_equal(b.grad.numpy(), w)


def test_functions_may_keep_and_return_what_they_get_and_saved(rng):
    x, w = rng.standard_normal((2, 6))
    kept = []

    class Same(mg.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x + 0.0

        @staticmethod
        def backward(ctx, g):
            kept.append((g, g.numpy().copy()))
            return g

    class Saved(Same):
        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return x

    class Attribute(Same):
        @staticmethod
        def backward(ctx, g):
            return mine

    mine = mg.tensor(w)
    a = leaf(x)
    (Same.apply(a.exp()) * mine).sum().backward()
    np.testing.assert_allclose(a.grad.numpy(), w * np.exp(x))
    for g, values in kept:
        np.testing.assert_array_equal(g.numpy(), values)
    y = a.exp()
    z = Saved.apply(y)
    for _ in range(2):
        a.grad = None
        z.sum().backward(retain_graph=True)
        np.testing.assert_allclose(a.grad.numpy(), np.exp(x) ** 2)
    np.testing.assert_array_equal(y.detach().numpy(), np.exp(a.detach()).numpy())
    a.grad = None
    Attribute.apply(a.exp()).sum().backward()
    np.testing.assert_allclose(a.grad.numpy(), w * np.exp(x))
    np.testing.assert_array_equal(mine.numpy(), w)


def test_a_rule_may_return_what_it_holds():
    class Constant:
        name = "constant"
        held = mg.tensor([2.0, 3.0], dtype=mg.float64)

        @classmethod
        def vjp(cls, node, g):
            return [cls.held]

        graph_vjp = vjp

    x = leaf([0.1, 0.2])
    y = x.exp()
    z = y + 0
    z._edge = record(Constant, None, (), None, y._edge)
    z.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), [2 * np.exp(0.1), 3 * np.exp(0.2)])
    assert Constant.held.tolist() == [2.0, 3.0]


def test_a_graph_that_is_retained_gives_the_same_again(rng):
    """Saved arrays share no memory with a gradient."""
    x, w = rng.standard_normal((2, 1003))
    a = leaf(x)
    total = ((a * 2.0).relu().tanh().exp() * mg.tensor(w)).sum()
    first = mg.grad(total, a, retain_graph=True)[0].numpy().copy()
    for _ in range(2):
        again = mg.grad(total, a, retain_graph=True)[0].numpy()
        np.testing.assert_array_equal(again, first)
    graph = mg.grad(total, a, create_graph=True)[0].detach().numpy()
    np.testing.assert_allclose(graph, first)


def test_who_watches_sees_gradients_as_they_were(rng):
    x, w = rng.standard_normal((2, 6))
    seen = []

    def watch(kernel, args, made):
        if kernel in ("exp_vjp", "tanh_vjp"):
            seen.append((args[0], made))

    a = leaf(x)
    total = (a.exp().tanh() * mg.tensor(w)).sum()
    with native.trace(watch):
        total.backward()
    by_z, by_y, by_x = expected(x, w)
    for (g, made), right in zip(seen, [(by_z, by_y), (by_y, by_x)], strict=True):
        assert g.data != made.data
        np.testing.assert_allclose(wrap(g).numpy(), right[0])
        np.testing.assert_allclose(wrap(made).numpy(), right[1])


@pytest.mark.parametrize("shape", [(2, 3), (1, 3), (2, 1), (1, 1)])
def test_gradients_of_operands_that_were_broadcast(rng, shape):
    x, w = rng.standard_normal(shape), rng.standard_normal((2, 3))
    a, b = leaf(x), leaf(rng.standard_normal((2, 3)))
    y = a.exp() * b.sin()
    (y * mg.tensor(w)).sum().backward()
    axes = tuple(d for d in range(2) if shape[d] == 1)
    by_exp = (w * np.sin(b.detach().numpy())).sum(axes, keepdims=True)
    np.testing.assert_allclose(a.grad.numpy(), by_exp * np.exp(x))
    np.testing.assert_allclose(b.grad.numpy(), w * np.exp(x) * np.cos(b.detach().numpy()))


def test_threads_that_run_one_retained_graph(rng):
    x, w = rng.standard_normal((2, 5000))
    a = leaf(x)
    total = ((a * 2.0).sin().tanh().exp() * mg.tensor(w)).sum()
    right = mg.grad(total, a, retain_graph=True)[0].numpy().copy()
    wrong = []

    def run():
        for _ in range(50):
            (g,) = mg.grad(total, a, retain_graph=True)
            if not np.array_equal(g.numpy(), right):
                wrong.append(g)

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.only_tape("C", "it writes results over gradients")
def test_a_chain_needs_one_gradient_at_a_time():
    """A chain in which nobody looks takes no memory beside its first gradient."""
    x = mg.ones(1 << 18, requires_grad=True)
    y = x
    for _ in range(8):
        y = y.tanh()
    w = mg.ones(1 << 18)
    (total := (y * w).sum()).backward(retain_graph=True)
    x.grad = None
    gc.collect()
    native.lib.mg_cache_clear()
    live = native.lib.mg_live_bytes()
    total.backward(retain_graph=True)
    assert native.lib.mg_live_bytes() - live < 1.3 * 4 * (1 << 18)  # the leaf's
    assert native.lib.mg_cache_bytes() < 0.3 * 4 * (1 << 18)  # and nothing came and went


# ---- what the user's code writes over a gradient that it was given ------------------------------


class Scales(mg.Function):
    """The identity, with a backward that writes over its upstream gradient."""

    @staticmethod
    def forward(ctx, x):
        return x + 0.0

    @staticmethod
    def backward(ctx, g):
        g.mul_(10.0)
        return g


class ScalesOneOfTwo(Scales):
    @staticmethod
    def forward(ctx, x):
        return x + 0.0, x * 0.0

    @staticmethod
    def backward(ctx, g, h):
        h.fill_(3.0)
        g.mul_(10.0)
        return g


def tenfold(g):
    g.mul_(10.0)


def hooked(x):
    y = x * 1.0
    y.register_hook(tenfold)
    return y


def hooked_and_kept(x):
    kept = []
    y = x * 1.0
    y.register_hook(kept.append)
    y.register_hook(tenfold)
    return y


def hooked_leaf(x):
    x.register_hook(tenfold)
    return x


WRITERS = [hooked, hooked_and_kept, hooked_leaf, Scales.apply, lambda x: ScalesOneOfTwo.apply(x)[0]]


@pytest.mark.parametrize("graph", [False, True])
@pytest.mark.parametrize("join", [mg.add, lambda a, b: b + a, lambda a, b: mg.cat([a, b])])
@pytest.mark.parametrize("writer", WRITERS)
def test_who_writes_over_a_gradient_changes_that_branch_alone(writer, join, graph):
    a, b, c = leaf([1.0, 2.0]), leaf([3.0, 4.0]), leaf([5.0, 6.0])
    middle = a * 1.0
    y = join(writer(middle if writer is not hooked_leaf else a) + c, b)
    given = mg.tensor(np.linspace(1.0, 2.0, y.size))
    first = given[:2].tolist()
    last = given[-2:].tolist()
    inputs = [a, b, c, y]
    found = mg.grad(y, inputs, given, create_graph=graph)
    wanted = [[10 * v for v in first], last, first, given.tolist()]
    for g, want in zip(found, wanted, strict=True):
        assert g.tolist() == want
    np.testing.assert_array_equal(given.numpy(), np.linspace(1.0, 2.0, y.size))


def test_a_write_over_a_gradient_in_a_graph_is_differentiated():
    """The hook makes 10 x of the gradient 1 of x^2, which makes 20 x^2: its derivative is 40 x."""
    x = leaf([1.0, 2.0])
    other = leaf([3.0, 4.0])
    y = (x * x) * 1.0

    def hook(g):
        g.mul_(x)
        g.mul_(10.0)

    y.register_hook(hook)
    ones = mg.ones(2, dtype=mg.float64)
    first, untouched = mg.grad(y + other * other, [x, other], ones, create_graph=True)
    assert first.tolist() == [20.0, 80.0]
    assert untouched.tolist() == [6.0, 8.0]
    assert mg.grad(first.sum(), x)[0].tolist() == [40.0, 80.0]


def test_a_gradient_that_was_asked_for_is_not_the_one_a_hook_or_function_writes_over():
    x = leaf([1.0, 2.0])
    y = x * 2.0
    z = Scales.apply(y)
    w = mg.tensor([3.0, 5.0], mg.float64)
    by_z, by_x = mg.grad((z * w).sum(), [z, x], retain_graph=True)
    z.retain_grad()
    (z * w).sum().backward()
    assert by_z.tolist() == z.grad.tolist() == [3.0, 5.0]
    assert by_x.tolist() == x.grad.tolist() == [60.0, 100.0]


@pytest.mark.only_tape("C", "it counts references; in Python a hook gets a copy")
def test_a_hook_gets_the_gradient_itself_where_nobody_else_has_it():
    places = []
    x = leaf(np.linspace(0.0, 1.0, 1000))
    y = x.exp()
    y.register_hook(lambda g: places.append(g._h.data))
    (y.sin() * mg.tensor(np.ones(1000))).sum().backward()
    assert x.grad._h.data == places[0]
