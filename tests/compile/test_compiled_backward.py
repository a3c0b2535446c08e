"""Results of compiled functions that are differentiated outside: right, or an error."""

from __future__ import annotations

import threading

import pytest

import minigrad as mg
from minigrad import nn
from minigrad.runtime.native import lib


@pytest.fixture(autouse=True)
def _seeded(restore_random):
    mg.manual_seed(0)


def bits(tensors):
    """The values of tensors, exactly; None for what has none."""
    return [None if x is None else x.detach().numpy().tobytes() for x in tensors]


def leaf(*shape):
    return mg.randn(*shape, requires_grad=True)


def warm(function, *args, times=2):
    """The compiled function, after calls that recorded forward and backward."""
    run = mg.compile(function)
    for _ in range(times):
        result = run(*args)
        results = result if isinstance(result, tuple) else (result,)
        sum(y.sum() for y in results).backward()
    for x in args:
        x.grad = None
    return run


def product(x, w):
    return (x @ w).tanh() * w.sum()


def test_gradients_of_arguments():
    x, w = leaf(3, 4), leaf(4, 4)
    run = warm(product, x, w)
    a = bits(mg.grad(product(x, w).sum(), [x, w]))
    assert bits(mg.grad(run(x, w).sum(), [x, w])) == a
    assert run.recordings == 1


def test_arguments_with_a_history():
    w = leaf(4, 4)
    run = mg.compile(product)
    for k in range(4):
        x = leaf(3, 4)
        expected = bits(mg.grad(product(x.exp(), w * 2).sum(), [x, w]))
        assert bits(mg.grad(run(x.exp(), w * 2).sum(), [x, w])) == expected, k
    assert run.recordings == 1


def test_a_chain_of_compiled_functions():
    f, g = mg.compile(lambda x: x.sin() * x), mg.compile(lambda x: x.exp().sum())
    for _ in range(3):
        x = leaf(5)
        g(f(x)).backward()
        expected = mg.grad((x.sin() * x).exp().sum(), x)
        assert bits([x.grad]) == bits(
            [expected if not isinstance(expected, tuple) else expected[0]]
        )


@pytest.mark.parametrize("used", [(0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)])
def test_some_outputs_get_a_gradient(used):
    a, b, c = leaf(3), leaf(3), leaf(3)

    def function(a, b, c):
        y = a * b
        return y.sin(), y * c, b.exp()

    run = mg.compile(function)
    for _ in range(3):
        for x in (a, b, c):
            x.grad = None
        found = run(a, b, c)
        sum((found[k] * (k + 1)).sum() for k in used).backward()
        grads = bits([x.grad for x in (a, b, c)])
        for x in (a, b, c):
            x.grad = None
        found = function(a, b, c)
        sum((found[k] * (k + 1)).sum() for k in used).backward()
        assert grads == bits([x.grad for x in (a, b, c)])
    assert run.recordings == 1


def test_the_same_gradient_for_two_outputs_then_different_ones():
    x = leaf(3)
    run = mg.compile(lambda x: (x.sin(), x.exp()))
    for same in (True, True, False, False, True):
        s, e = run(x)
        g = mg.randn(3)
        h = g if same else mg.randn(3)
        (found,) = mg.grad([s, e], [x], [g, h])
        (expected,) = mg.grad([x.sin(), x.exp()], [x], [g, h])
        assert bits([found]) == bits([expected])


def test_an_output_that_is_an_argument_and_one_twice():
    x, w = leaf(3), leaf(3)

    def function(x, w):
        y = x * w
        return x, y, y

    run = mg.compile(function)
    for _ in range(3):
        a, b, c = run(x, w)
        assert a is x
        assert b is c
        assert bits(mg.grad((a + b + c).sum(), [x, w])) == bits(
            mg.grad((x + 2 * (x * w)).sum(), [x, w])
        )


def test_the_same_argument_twice():
    w, v = leaf(3), leaf(3)
    run = mg.compile(lambda a, b: a * b.exp())
    pairs = [(w, w), (w, v), (w, w), (v, w), (v, v)]
    for a, b in pairs * 2:
        assert bits(mg.grad(run(a, b).sum(), list({id(a): a, id(b): b}.values()))) == bits(
            mg.grad((a * b.exp()).sum(), list({id(a): a, id(b): b}.values()))
        )


def test_an_argument_that_is_captured_too():
    p = leaf(3)
    run = mg.compile(lambda x: x.sin() * p)
    for x in (leaf(3), p, leaf(3), p):
        asked = [x] if x is p else [x, p]
        assert bits(mg.grad(run(x).sum(), asked)) == bits(mg.grad((x.sin() * p).sum(), asked))


# ---- writes in place ----


@pytest.mark.parametrize("which", ["parameter", "argument", "output"])
def test_a_write_before_backward_is_the_usual_error(which):
    w, x = leaf(3, 3), mg.randn(3, 3)
    run = warm(lambda x: (x @ w).exp(), x)
    for again in range(2):
        y = run(x)
        loss = y.sum()
        with mg.no_grad():
            {"parameter": x, "argument": x, "output": y}[which].mul_(2.0)
        with pytest.raises(RuntimeError, match="overwritten in place") as error:
            loss.backward()
        assert "test_compiled_backward" in str(error.value) or again


def test_a_write_into_what_backward_does_not_read_is_none():
    b, x = leaf(3), mg.randn(3)
    run = warm(lambda x: x.exp() + b, x)
    b.grad = None
    y = run(x)
    with mg.no_grad():
        b.add_(1.0)
        x.add_(1.0)
    y.sum().backward()
    assert b.grad.tolist() == [1.0, 1.0, 1.0]


def test_an_overwritten_result_is_computed_again_where_eager_does():
    x = leaf(4)
    function = lambda x: x.sigmoid().relu()  # noqa: E731
    run = warm(function, x)
    outcomes = []
    for f in (function, run):
        y = f(x)
        with mg.no_grad():
            y.mul_(3.0)
        try:
            outcomes.append(bits(mg.grad(y.sum(), [x])))
        except RuntimeError as error:
            outcomes.append(str(error))
    assert outcomes[0] == outcomes[1]


def test_a_write_on_the_tape_into_an_output():
    x = leaf(4)
    run = warm(lambda x: x * 2, x)
    y = run(x)
    y[0] = 5.0
    y *= 3
    y.sum().backward()
    assert x.grad.tolist() == [0.0, 6.0, 6.0, 6.0]


SEEN = "it returns a view of a tensor that can be seen outside"


def test_outputs_that_share_memory():
    x = leaf(4)

    def function(x):
        y = x * 2
        return y, y[1:], y[1:][1:].view(2, 1)

    run = mg.compile(function)
    with pytest.warns(UserWarning, match=SEEN):
        run(x)
    for _ in range(3):
        y, part, last = run(x)
        part *= 3
        last += part[2]
        (g,) = mg.grad(y.sum() + part.sum() + last.sum(), [x])
        assert g.tolist() == [2.0, 12.0, 18.0, 54.0]


def test_outputs_that_are_views_of_something_hidden():
    x = leaf(4, 4)
    run = mg.compile(lambda x: (x * 2).chunk(2, dim=1))
    with pytest.warns(UserWarning, match=SEEN):
        run(x)
    for _ in range(3):
        a, b = run(x)
        a *= 3
        (g,) = mg.grad(a.sum() + b.sum(), [x])
        assert g.tolist() == [[6.0, 6.0, 2.0, 2.0]] * 4


def test_views_of_results_that_need_no_gradient_yet():
    def function(x):
        y = x * 2
        return y, y[1:]

    run = mg.compile(function)
    w = leaf(2)
    for _ in range(3):
        y, part = run(mg.ones(3))
        part += w
        assert mg.grad(y.sum(), [w])[0].tolist() == [1.0, 1.0]


def test_a_view_of_an_argument():
    x = leaf(4)
    run = mg.compile(lambda x: x[1:])
    with pytest.warns(UserWarning, match=SEEN):
        run(x * 1)
    for _ in range(3):
        h = x * 1
        part = run(h)
        part *= 3
        (g,) = mg.grad(h.sum(), [x])
        assert g.tolist() == [1.0, 3.0, 3.0, 3.0]


# ---- graphs ----


def test_backward_twice():
    x = leaf(3)
    run = warm(lambda x: x.exp(), x)
    y = run(x).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert bits([x.grad]) == bits([x.exp() + x.exp()])
    with pytest.raises(RuntimeError, match="freed"):
        y.backward()


def test_a_freed_graph_releases_what_it_kept(no_gc):
    run = mg.compile(lambda x: x.exp().sin().sum())
    x = leaf(10_000)
    for _ in range(3):
        run(x).backward()
    x.grad = None
    before = lib.mg_live_bytes()
    y = run(x)
    assert lib.mg_live_bytes() - before >= 40_000
    y.backward()
    x.grad = None
    assert lib.mg_live_bytes() - before < 40_000
    y = run(x)
    del y
    assert lib.mg_live_bytes() - before < 40_000


def test_calls_before_backward_keep_their_own_values():
    w = leaf(3)
    run = warm(lambda x: (x * w).exp(), mg.randn(3))
    xs = [mg.randn(3) for _ in range(3)]
    ys = [run(x) for x in xs]
    for order in ([2, 0, 1], [0, 1, 2]):
        for k in order:
            found = mg.grad(ys[k].sum(), [w], retain_graph=True)
            assert bits(found) == bits(mg.grad((xs[k] * w).exp().sum(), [w]))
    w.grad = None
    sum(y.sum() for y in ys).backward()
    assert mg.allclose(w.grad, sum(mg.grad((x * w).exp().sum(), [w])[0] for x in xs))


def test_gradients_add_up():
    model = nn.Linear(3, 2)
    run = mg.compile(model)
    for _ in range(5):
        run(mg.ones(1, 3)).sum().backward()
    assert run.recordings == 1
    assert model.weight.grad.tolist() == [[5.0] * 3] * 2


def test_hooks():
    w = leaf(3)
    run = warm(lambda x: (x * w).exp(), mg.randn(3))
    w.grad = None
    x, seen = mg.randn(3), []
    handle = w.register_hook(lambda g: g * 2)
    y = run(x)
    y.retain_grad()
    y.register_hook(lambda g: seen.append(g.tolist()))
    (y * 3).sum().backward()
    assert seen == [[3.0] * 3]
    assert y.grad.tolist() == [3.0] * 3
    handle.remove()
    expected = mg.grad(((x * w).exp() * 3).sum(), [w])[0] * 2
    assert bits([w.grad]) == bits([expected])


def test_second_derivatives():
    x, w = leaf(3), leaf(3)

    def function(x, w):
        return (x * w).sin() * x.exp(), (w * w).sum()

    def twice(f):
        y, z = f(x, w)
        first = mg.grad(y.sum() * z, [x, w], create_graph=True)
        return mg.grad((first[0] * first[1]).sum(), [x, w])

    run = warm(function, x, w)
    for _ in range(2):
        for a, b in zip(twice(run), twice(function), strict=True):
            assert mg.allclose(a, b, rtol=1e-6)
    assert run.recordings == 1


def test_a_gradient_penalty():
    mg.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    run = mg.compile(model)
    for _ in range(3):
        grads = []
        x = leaf(5, 3)
        for f in (model, run):
            model.zero_grad()
            (g,) = mg.grad(f(x).sum(), [x], create_graph=True)
            ((g * g).sum() + f(x).mean()).backward()
            grads.append([p.grad.clone() for p in model.parameters()])
        assert all(mg.allclose(a, b, rtol=1e-5) for a, b in zip(*grads, strict=True))


def test_transforms_of_a_compiled_function():
    def function(x):
        return (x * x).sin().sum()

    run = mg.compile(function)
    x = mg.randn(3)
    for _ in range(2):
        y = leaf(3)
        run(y).backward()
    v = mg.randn(3)
    for transform in (
        lambda f: mg.func.grad(f)(x),
        lambda f: mg.func.hessian(f)(x),
        lambda f: mg.func.jvp(f, (x,), (v,))[1],
        lambda f: mg.func.vmap(f)(mg.stack([x, v])),
        lambda f: mg.func.vmap(mg.func.grad(f))(mg.stack([x, v])),
    ):
        assert mg.allclose(transform(run), transform(function))


def test_gradients_of_several_upstream_vectors_at_once():
    x = leaf(3)
    run = warm(lambda x: x.exp() * x, x)
    y = run(x)
    g = mg.eye(3)
    found = mg.func.vmap(lambda g: mg.grad(y, [x], g, retain_graph=True)[0])(g)
    z = x.exp() * x
    expected = mg.func.vmap(lambda g: mg.grad(z, [x], g, retain_graph=True)[0])(g)
    assert bits([found]) == bits([expected])


def test_several_threads():
    mg.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
    run = mg.compile(model)
    run(mg.randn(2, 4)).sum().backward()
    xs = [mg.randn(2, 4) for _ in range(8)]
    parameters = list(model.parameters())
    expected = [bits(mg.grad(model(x).sum(), parameters)) for x in xs]
    wrong = []

    def work(k):
        for _ in range(20):
            if bits(mg.grad(run(xs[k]).sum(), parameters)) != expected[k]:
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_dropout_has_one_mask_forward_and_backward():
    w = leaf(50)
    run = mg.compile(lambda: nn.functional.dropout(w * 1, 0.5))
    masks = []
    for _ in range(4):
        w.grad = None
        y = run()
        y.sum().backward()
        assert (w.grad != 0).tolist() == (y != 0).tolist()
        masks.append((y != 0).tolist())
    assert masks[2] != masks[3]


@pytest.mark.parametrize("layout", ["expanded", "transposed", "contiguous"])
def test_upstream_gradients_of_other_layouts(layout):
    w = leaf(3, 4)
    run = warm(lambda x: (x * w).exp(), mg.randn(3, 4))
    x = mg.randn(3, 4)
    for _ in range(3):
        g = {
            "expanded": lambda: mg.randn(1, 4).expand(3, 4),
            "transposed": lambda: mg.randn(4, 3).T,
            "contiguous": lambda: mg.randn(3, 4),
        }[layout]()
        assert bits(mg.grad(run(x), [w], g)) == bits(mg.grad((x * w).exp(), [w], g))


def test_an_upstream_gradient_that_is_a_saved_array():
    w = leaf(3)
    run = warm(lambda x: (x * w).exp(), mg.randn(3))
    x = mg.randn(3)
    for g in (x, w.detach(), mg.randn(3), x):
        assert bits(mg.grad(run(x), [w], g)) == bits(mg.grad((x * w).exp(), [w], g))


def test_gradients_are_memory_of_their_own():
    a, b = leaf(3), leaf(3)

    def function(a, b):
        y = a + b
        return y, y * 3

    run = mg.compile(function)
    for _ in range(4):
        a.grad = b.grad = None
        g, h = mg.ones(3), mg.ones(3)
        mg.autograd.backward(run(a, b), [g, h])
        a.grad.mul_(5.0)
        assert b.grad.tolist() == [4.0] * 3
        a.grad = b.grad = None
        run(a, b)[0].backward(g)
        a.grad.mul_(5.0)
        assert g.tolist() == h.tolist() == b.grad.tolist() == [1.0] * 3
        a.grad = b.grad = None
        y, z = run(a, b)
        mg.autograd.backward([y, z], [g, h], retain_graph=True)
        mg.autograd.backward([y, z], [g, h])
        assert a.grad.tolist() == b.grad.tolist() == [8.0] * 3


def test_writes_in_the_function():
    def function(x, w):
        y = x * w
        y[0] = w[1] * 2
        y[1] = 4.0
        y.mul_(x)
        return y

    x, w = leaf(3), leaf(3)
    run = warm(function, x, w)
    assert bits(mg.grad(run(x, w).sum(), [x, w])) == bits(mg.grad(function(x, w).sum(), [x, w]))
    assert run.recordings == 1


def test_a_backward_behind_the_arguments_is_no_program():
    w = leaf(3)

    def step(loss):
        loss.backward()
        return loss * 1

    run = mg.compile(step)
    with pytest.warns(UserWarning, match="behind the arguments"):
        run((w * 2).sum())
    for _ in range(2):
        w.grad = None
        run((w * w).sum())
        assert bits([w.grad]) == bits([w * 2])


def test_a_function_of_the_users_runs_without_a_program():
    class Double(mg.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    x = leaf(3)
    run = mg.compile(lambda x: Double.apply(x).sum())
    with pytest.warns(UserWarning, match="Double"):
        run(x)
    run(x).backward()
    assert x.grad.tolist() == [2.0] * 3


def test_indices_and_masks():
    def function(x, index, mask):
        picked = x[index].where(mask, x[0])
        return nn.functional.cross_entropy(picked, index), x.gather(1, index[:, None])

    x = leaf(4, 4)
    run = mg.compile(function)
    for k in range(4):
        index, mask = mg.tensor([k, 3 - k, 1]), mg.tensor([[True], [k > 1], [False]])
        a, b = function(x, index, mask)
        c, d = run(x, index, mask)
        assert bits([a, b]) == bits([c, d])
        assert bits(mg.grad(a + b.sum(), [x])) == bits(mg.grad(c + d.sum(), [x]))
    assert run.recordings == 1


def test_attention_with_a_mask_that_learns():
    def function(q, mask):
        return nn.functional.scaled_dot_product_attention(q, q, q, attn_mask=mask * 1)

    q, mask = leaf(1, 2, 3, 4), leaf(3, 3)
    run = mg.compile(function)
    for _ in range(3):
        assert bits(mg.grad(run(q, mask).sum(), [q, mask])) == bits(
            mg.grad(function(q, mask).sum(), [q, mask])
        )
    (g,) = mg.grad(run(q, mask).pow(2).sum(), [q], create_graph=True)
    (h,) = mg.grad(function(q, mask).pow(2).sum(), [q], create_graph=True)
    for a, b in zip(
        mg.grad(g.pow(2).sum(), [q, mask]), mg.grad(h.pow(2).sum(), [q, mask]), strict=True
    ):
        assert mg.allclose(a, b, rtol=1e-4)


# ---- results that are computed from one another --------------------------------------------------


def two(x):
    a = x * 2
    b = a * a
    return a, b


def after(use):
    """What ``use`` finds for the function and for three calls of the compiled one."""
    compiled = mg.compile(two, fullgraph=True)
    found = []
    for function in (two, *[compiled] * 3):
        x = mg.tensor([1.0, 3.0], requires_grad=True)
        found.append([None if g is None else g.tolist() for g in use(x, *function(x))])
    return found


def by_the_other(x, a, b):
    return mg.autograd.grad(b.sum(), [a, x])


def with_a_hook(x, a, b):
    a.register_hook(lambda g: g * 0)
    a.retain_grad()
    b.sum().backward()
    return x.grad, a.grad


def of_both(x, a, b):
    (a + b).sum().backward()
    return (x.grad,)


def twice(x, a, b):
    (g,) = mg.autograd.grad(b.sum(), [a], create_graph=True)
    (g * g).sum().backward()
    return x.grad, g


@pytest.mark.parametrize("use", [by_the_other, with_a_hook, of_both, twice])
def test_gradients_pass_through_a_result_that_another_is_computed_from(use):
    wanted, *found = after(use)
    assert found == [wanted] * 3
