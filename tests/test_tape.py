"""The tape, by hand: what it records, what runs back over it, what it keeps and when it lets go."""

from __future__ import annotations

import asyncio
import gc
import inspect
import multiprocessing
import threading
import tracemalloc
import weakref

import numpy as np
import oracle
import pytest

import minigrad as mg
from minigrad import _c, tape
from minigrad.tape import Node


def leaf(values, dtype=mg.float64):
    return mg.tensor(np.asarray(values, dtype=float), dtype=dtype, requires_grad=True)


@pytest.fixture
def no_gc():
    """Reference counts alone must do."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def live_bytes():
    return int(_c.lib.mg_live_bytes())


# ---- accumulation --------------------------------------------------------------------------------


def test_a_tensor_used_often_gets_the_sum():
    x = leaf(3.0)
    (x * x + x * 2 + x).backward()
    assert x.grad.item() == 2 * 3 + 2 + 1


def test_a_diamond():
    x = leaf(2.0)
    a = x * x
    b, c = a * 3, a * a
    (b * c).backward()  # 3 x^6
    assert x.grad.item() == 18 * 2.0**5


def test_a_ladder_of_shared_results_is_walked_once():
    x = leaf(1.0)
    y = x
    for _ in range(200):  # 2^200 paths
        y = y + y
    y.backward()
    assert x.grad.item() == 2.0**200


SLICED = {
    "pieces": lambda x: [x[:2] * 2, x[2:] * 3],
    "pieces that leave a gap": lambda x: [x[:1] * 2, x[3:] * 3],
    "overlapping": lambda x: [x[1:] * x[:-1]],
    "interleaved": lambda x: [x[::2] * 2, x[1::2].sin()],
    "from the end": lambda x: [x[::-1][:2] * 5, x[-1:] * 2],
    "rows": lambda x: [x[i] * i for i in range(4)],
    "numbers": lambda x: [x[i, j] * (i + j) for i in range(4) for j in range(3)],
    "again and again": lambda x: [x[1:3] * i for i in range(9)],
    "beside the whole": lambda x: [x[0] * 2, x * 3, x[1] * 4, x.sin(), x[1:] * 5],
    "nothing": lambda x: [x[2:2], x[0]],
    "new axes": lambda x: [x[None, 1:, None, 2] * 2, x[..., 0]],
    "split": lambda x: [p * i for i, p in enumerate(x.split(1, 1))],
    "of a slice": lambda x: [x[1:][:, 1:] * 2, x[1:][0]],
}


@pytest.mark.parametrize("name", SLICED)
def test_gradients_of_slices(name, rng):
    def f(x):
        return mg.cat([y.reshape(-1) for y in SLICED[name](x * 2)])

    oracle.check_gradients(f, [rng.normal(size=(4, 3))], rng)
    x = mg.tensor(rng.normal(size=(4, 3)), requires_grad=True)
    mg.cat([y.reshape(-1) for y in SLICED[name](x)]).sum().backward(retain_graph=True)
    (g,) = mg.grad(mg.cat([y.reshape(-1) for y in SLICED[name](x)]).sum(), x, create_graph=True)
    np.testing.assert_allclose(x.grad.numpy(), g.detach().numpy(), 1e-15)


def test_gradients_of_slices_cost_what_the_slices_hold():
    def made(n):
        """How many elements a backward over the rows of a table makes."""
        x = mg.ones(n, 3, requires_grad=True)
        y = mg.stack([x[i] for i in range(n)]).sum()
        sizes = []
        with _c.trace(lambda kernel, args, made: sizes.append(made.size if made else 0)):
            y.backward()
        assert x.grad.tolist() == [[1, 1, 1]] * n
        return sum(sizes)

    assert made(400) < 2.1 * made(200)


def test_repeated_backward_calls_add_up():
    x = leaf([1.0, 2.0])
    (x * x).sum().backward()
    assert x.grad.tolist() == [2.0, 4.0]
    (x * 3).sum().backward()
    assert x.grad.tolist() == [5.0, 7.0]


def test_accumulation_spares_a_gradient_that_a_graph_has_saved():
    x, c = leaf([1.0, 2.0]), leaf([1.0, 1.0])
    (x * x).sum().backward()
    y = (c * x.grad).sum()
    (x * 3).sum().backward()
    assert x.grad.tolist() == [5.0, 7.0]
    y.backward()
    assert c.grad.tolist() == [2.0, 4.0]


def test_setting_grad_to_none_starts_over():
    x = leaf(2.0)
    (x * x).backward()
    x.grad = None
    (x * 5).backward()
    assert x.grad.item() == 5.0


def test_an_upstream_gradient():
    x = leaf([1.0, 2.0])
    (x * x).backward(mg.tensor([1.0, 10.0], dtype=mg.float64))
    assert x.grad.tolist() == [2.0, 40.0]
    with pytest.raises(RuntimeError, match=r"only for a single element, not for shape \(2,\)"):
        (x * x).backward()
    with pytest.raises(ValueError, match=r"the gradient has shape \(3,\), the tensor \(2,\)"):
        (x * x).backward(mg.ones(3))


def test_backward_on_a_leaf():
    x = leaf(2.0)
    x.backward()
    assert x.grad.item() == 1.0


def test_without_a_graph():
    with pytest.raises(RuntimeError, match="does not require grad and has no graph"):
        mg.tensor(1.0).backward()


def test_untouched_leaves_have_no_gradient():
    x, y, z = leaf(1.0), leaf(2.0), leaf(3.0)
    _ = z * 2
    (x * y.detach()).backward()
    assert x.grad.item() == 2.0
    assert y.grad is None
    assert z.grad is None


def test_a_fixed_operand_gets_no_gradient():
    x, c = leaf([1.0, 2.0]), mg.tensor([3.0, 4.0])
    (x * c).sum().backward()
    assert x.grad.tolist() == [3.0, 4.0]
    assert c.grad is None
    assert (c * c).grad_fn is None


@pytest.mark.parametrize(
    "operation",
    [
        lambda a, b: a + b,
        lambda a, b: b + a + a * 0,
        lambda a, b: mg.cat((a, b)),
        lambda a, b: (a + b).reshape(3, 1),
        lambda a, b: a + b.clone(),
    ],
)
def test_leaf_gradients_never_share_memory(operation):
    a, b = leaf([1.0, 2.0, 3.0]), leaf([4.0, 5.0, 6.0])
    operation(a, b).sum().backward()
    assert a.grad.tolist() == b.grad.tolist() == [1.0] * 3
    assert not np.shares_memory(a.grad.numpy(), b.grad.numpy())
    a.grad.zero_()
    assert b.grad.tolist() == [1.0] * 3


def test_a_leaf_gradient_does_not_share_the_callers_memory():
    x = leaf([1.0, 2.0])
    g = mg.tensor([3.0, 4.0], dtype=mg.float64)
    x.backward(g)
    (x + 0).backward(g)
    assert x.grad.tolist() == [6.0, 8.0]
    assert g.tolist() == [3.0, 4.0]
    assert not np.shares_memory(x.grad.numpy(), g.numpy())


def test_the_default_upstream_gradient_stays_one():
    x, y = leaf(1.0), leaf(1.0)
    x.backward()
    x.grad.fill_(7.0)
    (y * 2).backward()
    assert y.grad.item() == 2.0


# ---- the graph is used up ------------------------------------------------------------------------


def test_a_second_backward_is_refused():
    x = leaf(2.0)
    y = x.exp() * x
    y.backward()
    with pytest.raises(
        RuntimeError,
        match=r"\[backward\] the graph was freed at 'mul' by an earlier backward; .*retain_graph",
    ):
        y.backward()


def test_a_second_backward_through_a_shared_part_is_refused_and_changes_nothing():
    x = leaf(2.0)
    shared = x.exp()
    (shared * 2).backward()
    first = x.grad.item()
    with pytest.raises(RuntimeError, match="the graph was freed at 'exp'"):
        (shared * 3 + x).backward()
    assert x.grad.item() == first


def test_retain_graph():
    x = leaf(2.0)
    y = x * x * x
    y.backward(retain_graph=True)
    assert x.grad.item() == 12.0
    y.backward()
    assert x.grad.item() == 24.0
    with pytest.raises(RuntimeError, match="freed"):
        y.backward()


def test_grad_keeps_or_frees_as_backward_does():
    x = leaf(2.0)
    y = x * x
    assert mg.grad(y, x, retain_graph=True)[0].item() == 4.0
    assert mg.grad(y, x)[0].item() == 4.0
    with pytest.raises(RuntimeError, match="freed"):
        mg.grad(y, x)
    assert x.grad is None


# ---- saved, then overwritten ---------------------------------------------------------------------


def test_an_overwritten_saved_tensor_names_the_operation_and_the_line():
    x = leaf([1.0, 2.0])
    c = mg.tensor([3.0, 4.0], dtype=mg.float64)
    y = (x * c).sum()
    c.fill_(5.0)
    line = inspect.currentframe().f_lineno - 1
    with pytest.raises(RuntimeError) as caught:
        y.backward()
    message = str(caught.value)
    assert message.startswith("[mul] a tensor saved for backward was overwritten in place")
    assert f"{__file__}:{line}" in message
    assert x.grad is None


@pytest.mark.parametrize(
    "write",
    [
        lambda c: c.copy_(mg.zeros(2)),
        lambda c: c.zero_(),
        lambda c: c.__setitem__(0, 9.0),
        lambda c: c[:1].fill_(9.0),
        lambda c: c.__iadd__(1),
        lambda c: c.detach().fill_(1.0),
        lambda c: c.reshape(1, 2).zero_(),
    ],
    ids=["copy_", "zero_", "setitem", "slice", "iadd", "detached", "view"],
)
def test_every_way_of_overwriting_is_noticed(write):
    x = leaf([1.0, 2.0])
    c = mg.tensor([3.0, 4.0], dtype=mg.float64)
    y = (x * c).sum()
    write(c)
    with pytest.raises(RuntimeError, match=r"\[mul\] .*overwritten in place at .*test_tape.py:\d+"):
        y.backward()


def test_an_overwritten_output_is_noticed():
    x = leaf([1.0, 2.0])
    y = x.exp()
    y.detach().zero_()
    with pytest.raises(RuntimeError, match=r"\[exp\] .*overwritten"):
        y.sum().backward()


def test_overwriting_what_was_not_saved_is_allowed():
    x = leaf([1.0, 2.0])
    c = mg.tensor([3.0, 4.0], dtype=mg.float64)
    y = (x + c).sum() + (c * 2).sum()
    c.fill_(5.0)
    y.backward()
    assert x.grad.tolist() == [1.0, 1.0]


def test_overwriting_another_tensor_is_allowed():
    x, c, other = leaf([1.0, 2.0]), mg.ones(2), mg.ones(2)
    y = (x * c).sum()
    other.fill_(3.0)
    y.backward()
    assert x.grad.tolist() == [1.0, 1.0]


def test_writing_before_saving_is_allowed():
    x, c = leaf([1.0, 2.0]), mg.ones(2)
    c.fill_(3.0)
    (x * c).sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]


def test_a_leaf_changes_under_no_grad_only():
    x = leaf([1.0, 2.0])
    with pytest.raises(
        RuntimeError, match="cannot write in place into a tensor that requires grad"
    ):
        x.fill_(0.0)
    with pytest.raises(
        RuntimeError, match="cannot write in place into a tensor that requires grad"
    ):
        x[0] = 1.0
    assert x.tolist() == [1.0, 2.0]
    before = x._version
    with mg.no_grad():
        x -= 0.5
    assert x._version > before
    assert x.tolist() == [0.5, 1.5]
    assert x.requires_grad
    assert x.is_leaf


def test_a_leaf_written_between_forward_and_backward_is_noticed():
    x = leaf([1.0, 2.0])
    y = (x * x).sum()
    with mg.no_grad():
        x -= 0.5
    with pytest.raises(RuntimeError, match=r"\[mul\] .*overwritten"):
        y.backward()


def test_versions_only_grow_with_writes_and_are_shared_by_views():
    c = mg.zeros(3)
    view = c[1:]
    start = c._version
    _ = c + 1
    assert c._version == view._version == start
    view.fill_(1.0)
    assert c._version == view._version > start


# ---- grad mode -----------------------------------------------------------------------------------


def test_no_grad_and_enable_grad_nest():
    x = leaf(1.0)
    assert mg.is_grad_enabled()
    with mg.no_grad():
        assert not (x * 2).requires_grad
        with mg.enable_grad():
            assert (x * 2).requires_grad
            with mg.no_grad():
                assert not (x * 2).requires_grad
            assert mg.is_grad_enabled()
        assert not mg.is_grad_enabled()
    assert mg.is_grad_enabled()


def test_one_context_manager_entered_twice():
    off = mg.no_grad()
    with off:
        with off:
            assert not mg.is_grad_enabled()
        assert not mg.is_grad_enabled()
    assert mg.is_grad_enabled()


def test_grad_modes_as_decorators():
    @mg.no_grad()
    def off(x):
        """Off."""
        return x * 2

    @mg.enable_grad()
    def on(x, *, factor):
        return x * factor

    x = leaf(1.0)
    assert off.__name__ == "off"
    assert off.__doc__ == "Off."
    assert not off(x).requires_grad
    assert mg.is_grad_enabled()
    with mg.no_grad():
        assert on(x, factor=3).requires_grad
        assert not mg.is_grad_enabled()


def test_grad_modes_as_decorators_without_parentheses():
    @mg.no_grad
    def off(x):
        return x * 2

    @mg.enable_grad
    def on(x):
        return x * 2

    assert not off(leaf(1.0)).requires_grad
    with mg.no_grad():
        assert on(leaf(1.0)).requires_grad


def test_grad_mode_is_put_back_after_an_error():
    @mg.no_grad()
    def fails():
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fails()
    assert mg.is_grad_enabled()
    x = leaf(1.0)

    class Fails(mg.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        Fails.apply(x).backward()
    assert mg.is_grad_enabled()


def test_grad_mode_is_per_thread():
    seen = []
    with mg.no_grad():
        thread = threading.Thread(target=lambda: seen.append(mg.is_grad_enabled()))
        thread.start()
        thread.join()
        assert not mg.is_grad_enabled()
    assert seen == [True]


def test_grad_mode_is_per_asynchronous_task():
    async def quiet():
        with mg.no_grad():
            await asyncio.sleep(0)
            assert not mg.is_grad_enabled()

    async def loud():
        await asyncio.sleep(0)
        assert (leaf(1.0) * 2).requires_grad

    async def both():
        await asyncio.gather(quiet(), loud(), quiet())

    asyncio.run(both())


def test_a_task_outlives_the_scope_it_was_made_in():
    async def late():
        return mg.is_grad_enabled(), (leaf(1.0) * 2).requires_grad

    async def both():
        with mg.no_grad():
            task = asyncio.create_task(late())
        return await task

    assert asyncio.run(both()) == (True, True)


def test_a_generator_may_leave_its_scope_anywhere():
    def generator():
        with mg.no_grad():
            yield

    x = leaf(1.0)
    first = generator()
    next(first)
    with mg.no_grad():
        first.close()
        assert not (x * 2).requires_grad
    assert (x * 2).requires_grad
    running = generator()
    next(running)
    for _ in range(5):  # one begins before the other ends: no list of them grows
        following = generator()
        next(following)
        running.close()
        running = following
    scope, depth = tape._scope.get(), 0
    while scope is not None:
        scope, depth = scope.outer, depth + 1
    assert depth <= 2
    running.close()
    assert (x * 2).requires_grad


def test_no_grad_refuses_functions_that_run_later():
    def generator():
        yield

    async def task():
        pass

    for later in (generator, task):
        with pytest.raises(TypeError, match=f"{later.__name__} runs after it has returned"):
            mg.no_grad()(later)


def test_backward_under_no_grad():
    x = leaf(2.0)
    y = x * x
    with mg.no_grad():
        y.backward()
    assert x.grad.item() == 4.0
    assert not x.grad.requires_grad


def test_what_requires_grad():
    x = leaf([1.0, 2.0])
    assert x.is_leaf
    assert x.grad_fn is None
    y = x * 2
    assert not y.is_leaf
    assert y.requires_grad
    assert y.grad_fn.name == "mul"
    assert not y.detach().requires_grad
    assert np.shares_memory(y.detach().numpy(), y.detach().numpy())
    assert not x.argmax().requires_grad
    assert not (x > 1).requires_grad
    with pytest.raises(TypeError, match="only float tensors can have gradients"):
        mg.tensor([1, 2]).requires_grad_()
    with pytest.raises(RuntimeError, match="only leaves can stop requiring grad"):
        y.requires_grad_(False)
    with pytest.raises(RuntimeError, match=r"detach\(\)\.numpy\(\)"):
        y.numpy()


# ---- gradients of gradients ----------------------------------------------------------------------


def test_derivatives_to_fifth_order():
    x = leaf(3.0)
    y = x**4
    for expected in (4 * 27.0, 12 * 9.0, 24 * 3.0, 24.0, 0.0):
        (y,) = mg.grad(y, x, create_graph=True)
        assert y.item() == expected


def test_third_order_of_several_operations():
    x = leaf([0.3, 0.7])
    y = (x.sin() * x.exp()).sum()
    for _ in range(3):
        (g,) = mg.grad(y, x, create_graph=True)
        y = g.sum()
    v = np.array([0.3, 0.7])
    np.testing.assert_allclose(
        g.detach().numpy(), 2 * np.exp(v) * (np.cos(v) - np.sin(v)), rtol=1e-13
    )


def test_backward_with_create_graph():
    x = leaf(2.0)
    (x * x * x).backward(create_graph=True)
    assert x.grad.item() == 12.0
    assert x.grad.requires_grad
    first, x.grad = x.grad, None
    first.backward()
    assert x.grad.item() == 12.0  # 6 x


def test_without_create_graph_gradients_have_no_history():
    x = leaf(2.0)
    (g,) = mg.grad(x * x, x)
    assert not g.requires_grad
    (x * x).backward()
    assert not x.grad.requires_grad


def test_a_gradient_penalty():
    x, w = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    (g,) = mg.grad((x * w * w).sum(), x, create_graph=True)  # w^2
    (g * g).sum().backward()  # w^4
    assert w.grad.tolist() == [4 * 27.0, 4 * 64.0]
    assert x.grad is None


# ---- grad ----------------------------------------------------------------------------------------


def test_grad_of_results_in_between():
    x = leaf(2.0)
    a = x * x
    b = a * 3
    y = b * a
    ga, gb, gx = mg.grad(y, [a, b, x])
    assert (ga.item(), gb.item(), gx.item()) == (6 * 4.0, 4.0, 12 * 8.0)
    assert x.grad is None
    assert a.grad is None


def test_grad_of_a_result_leaves_what_is_before_it_alone():
    x = leaf(2.0)
    a = x.exp()
    (ga,) = mg.grad(a * a, a)
    assert ga.item() == 2 * a.item()
    a.backward()  # the graph behind a was not used, so it is not used up
    assert x.grad.item() == a.item()


def test_grad_of_a_result_does_not_need_what_it_saved():
    x = leaf(2.0)
    a = x.exp()
    a.detach().fill_(3.0)
    assert mg.grad(a * a, a)[0].item() == 6.0


def test_grad_of_a_result_whose_own_graph_is_used_up():
    x = leaf(2.0)
    a = x.exp()
    a.backward()
    assert mg.grad(a * a * 3, a)[0].item() == 6 * a.item()
    with pytest.raises(RuntimeError, match="the graph was freed at 'exp'"):
        mg.grad(a * a, [a, x])


def test_grad_of_the_output_itself():
    x = leaf([1.0, 2.0])
    y = x * 2
    g = mg.tensor([3.0, 4.0], dtype=mg.float64)
    assert mg.grad(y, y, g)[0].tolist() == [3.0, 4.0]
    assert mg.grad(x, x, g)[0].tolist() == [3.0, 4.0]


def test_grad_of_several_outputs_and_inputs():
    x, y = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    g = mg.tensor([1.0, 10.0], dtype=mg.float64)
    gx, gy = mg.grad([(x * y).sum(), x * x], [x, y], [None, g])
    assert gx.tolist() == [3 + 2.0, 4 + 40.0]
    assert gy.tolist() == [1.0, 2.0]
    assert [v.tolist() for v in mg.grad(x.sum(), [x, x])] == [[1.0, 1.0]] * 2


def test_the_same_output_twice():
    x = leaf(2.0)
    y = x * x
    assert mg.grad([y, y], x)[0].item() == 8.0


def test_unused_inputs_are_zeros_or_none():
    x, unused = leaf([1.0, 2.0]), leaf([[1.0], [2.0]])
    gx, gu = mg.grad((x * x).sum(), [x, unused])
    assert gx.tolist() == [2.0, 4.0]
    assert gu.tolist() == [[0.0], [0.0]]
    assert gu.dtype is unused.dtype
    assert mg.grad((x * x).sum(), [unused], allow_unused=True) == (None,)


def test_grad_refuses():
    x = leaf([1.0, 2.0])
    with pytest.raises(RuntimeError, match="input 1 does not require grad"):
        mg.grad(x.sum(), [x, mg.ones(2)])
    with pytest.raises(TypeError, match=r"\[grad\] .*float"):
        mg.grad(x.sum(), [3.0])
    with pytest.raises(ValueError, match="2 grad_outputs for 1 outputs"):
        mg.grad([x.sum()], [x], [None, None])


def test_gradients_have_the_inputs_dtype():
    x, y = leaf([1.0, 2.0], mg.float32), leaf([3.0, 4.0], mg.float64)
    (x * y).sum().backward()
    assert x.grad.dtype is mg.float32
    assert y.grad.dtype is mg.float64
    assert x.grad.tolist() == [3.0, 4.0]


def test_gradients_have_the_inputs_shape():
    x, row, one = leaf(np.ones((2, 3))), leaf([1.0, 2.0, 3.0]), leaf([[2.0]])
    (x * row * one).sum().backward()
    assert x.grad.tolist() == [[2.0, 4.0, 6.0]] * 2
    assert row.grad.tolist() == [4.0, 4.0, 4.0]
    assert one.grad.tolist() == [[12.0]]


# ---- hooks ---------------------------------------------------------------------------------------


def test_hooks_see_and_replace_gradients():
    x = leaf(2.0)
    y = x * x
    seen = []
    y.register_hook(lambda g: seen.append(g.item()))
    y.register_hook(lambda g: g * 10)
    y.register_hook(lambda g: seen.append(g.item()))
    (y * 3).backward()
    assert seen == [3.0, 30.0]
    assert x.grad.item() == 120.0


def test_hooks_see_the_whole_gradient_once():
    x = leaf(2.0)
    y = x * x
    seen = []
    y.register_hook(lambda g: seen.append(g.item()))
    (y * 3 + y * 4).backward()
    assert seen == [7.0]


def test_a_removed_hook_is_not_called():
    x = leaf(2.0)
    y = x * x
    seen = []
    remove = y.register_hook(lambda g: seen.append(g))
    remove()
    remove()
    y.backward()
    assert seen == []


def test_hooks_are_for_results():
    with pytest.raises(RuntimeError, match="only results of recorded operations"):
        mg.ones(2).register_hook(print)


def test_hooks_must_return_tensors():
    y = leaf(2.0) * 2
    y.register_hook(lambda g: 3.0)
    with pytest.raises(TypeError, match="hook"):
        y.backward()


@pytest.mark.parametrize("wrong", [mg.zeros(2, dtype=mg.float64), mg.zeros(2, 2)])
def test_hooks_must_return_gradients_of_the_same_kind(wrong):
    y = leaf([[1.0, 2.0], [3.0, 4.0]]) @ leaf([[1.0, 2.0], [3.0, 4.0]])
    y.register_hook(lambda g: wrong)
    with pytest.raises(ValueError, match=r"\[matmul\] a hook returned float.. of shape"):
        y.sum().backward()


def test_retain_grad_keeps_what_hooks_make():
    y = leaf(2.0) * 3
    y.retain_grad()
    y.register_hook(lambda g: g * 10)
    y.backward()
    assert y.grad.item() == 10.0


def test_retain_grad():
    x = leaf(2.0)
    y = x * x
    y.retain_grad()
    z = y * 3
    z.backward()
    assert y.grad.item() == 3.0
    assert z.grad is None
    assert x.grad.item() == 12.0
    x.retain_grad()  # nothing to do for a leaf


def test_retain_grad_makes_no_cycle(no_gc):
    x = leaf(2.0)
    y = x * x
    y.retain_grad()
    gone = weakref.ref(y)
    del y
    assert gone() is None


# ---- Function ------------------------------------------------------------------------------------


class StaticCube(mg.Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.save_for_backward(x)
        ctx.factor = factor
        return x * x * x * factor

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 3 * x * x * ctx.factor * g, None


class Cube(mg.Function):
    def forward(self, x, factor):
        self.save_for_backward(x)
        self.factor = factor
        return x * x * x * factor

    def backward(self, g):
        (x,) = self.saved_tensors
        return 3 * x * x * self.factor * g, None


SPELLINGS = [
    pytest.param(StaticCube.apply, id="static"),
    pytest.param(Cube.apply, id="instance-apply"),
    pytest.param(lambda *args: Cube()(*args), id="instance"),
    pytest.param(lambda *args: StaticCube()(*args), id="static-called"),
]


@pytest.mark.parametrize("cube", SPELLINGS)
def test_function_in_both_spellings(cube):
    x = leaf([1.0, 2.0])
    y = cube(x, 2.0)
    assert y.tolist() == [2.0, 16.0]
    assert y.grad_fn.name in ("StaticCube", "Cube")
    y.sum().backward()
    assert x.grad.tolist() == [6.0, 24.0]


@pytest.mark.parametrize("cube", SPELLINGS)
def test_function_to_third_order(cube):
    y = x = leaf(2.0)
    y = cube(x, 2.0)
    for expected in (24.0, 24.0, 12.0):
        (y,) = mg.grad(y, x, create_graph=True)
        assert y.item() == expected


@pytest.mark.parametrize("cube", SPELLINGS)
def test_function_records_nothing_without_need(cube):
    assert not cube(mg.ones(2), 2.0).requires_grad
    with mg.no_grad():
        assert not cube(leaf([1.0]), 2.0).requires_grad


def test_one_instance_called_twice():
    cube, x, y = Cube(), leaf(1.0), leaf(2.0)
    (cube(x, 1.0) + cube(y, 10.0)).backward()
    assert x.grad.item() == 3.0
    assert y.grad.item() == 120.0


@pytest.mark.parametrize("cube", SPELLINGS)
def test_function_watches_what_it_saved(cube):
    x = leaf([1.0, 2.0])
    y = cube(x, 2.0).sum()
    with mg.no_grad():
        x += 1
    with pytest.raises(RuntimeError, match=r"overwritten in place at .*test_tape\.py"):
        y.backward()


@pytest.mark.parametrize("cube", SPELLINGS)
def test_function_is_used_up_and_can_be_retained(cube):
    x = leaf(1.0)
    y = cube(x, 1.0)
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.item() == 6.0
    with pytest.raises(RuntimeError, match=r"freed at '(Static)?Cube'"):
        y.backward()


class SinCos(mg.Function):
    """Both outputs are saved, and each is the other's derivative."""

    @staticmethod
    def forward(ctx, x):
        s, c = x.sin(), x.cos()
        ctx.save_for_backward(s, c)
        return s, c

    @staticmethod
    def backward(ctx, gs, gc):
        s, c = ctx.saved_tensors
        total = mg.zeros_like(s)
        if gs is not None:
            total = total + gs * c
        if gc is not None:
            total = total - gc * s
        return total


def test_function_with_several_outputs():
    v = np.array([0.5, 1.0])
    for choose, expected in (
        (lambda s, c: s * c, np.cos(2 * v)),
        (lambda s, c: s, np.cos(v)),
        (lambda s, c: c * 2, -2 * np.sin(v)),
    ):
        x = leaf(v)
        choose(*SinCos.apply(x)).sum().backward()
        np.testing.assert_allclose(x.grad.numpy(), expected, rtol=1e-14)


def test_saved_outputs_can_be_differentiated_again_though_their_tensors_are_gone():
    x = leaf(0.5)
    (g,) = mg.grad(SinCos.apply(x)[0], x, create_graph=True)  # cos
    (g,) = mg.grad(g * x, x, create_graph=True)  # cos - x sin
    assert g.item() == pytest.approx(np.cos(0.5) - 0.5 * np.sin(0.5), rel=1e-14)
    (g,) = mg.grad(g, x)
    assert g.item() == pytest.approx(-2 * np.sin(0.5) - 0.5 * np.cos(0.5), rel=1e-14)


def test_saved_outputs_can_be_differentiated_again():
    x = leaf(0.5)
    s, _ = SinCos.apply(x)
    for expected in (np.cos(0.5), -np.sin(0.5), -np.cos(0.5)):
        (s,) = mg.grad(s, x, create_graph=True)
        assert s.item() == pytest.approx(expected, rel=1e-14)


class Exp(mg.Function):
    @staticmethod
    def forward(ctx, x):
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[0]


@pytest.mark.parametrize("function", [Exp.apply, lambda x: SinCos.apply(x)[0], mg.exp, mg.sqrt])
def test_a_saved_output_makes_no_cycle(no_gc, function):
    x = leaf(0.5)
    before = live_bytes()
    y = function(x)
    node = weakref.ref(y.grad_fn)
    tensor = weakref.ref(y)
    del y
    assert node() is None
    assert tensor() is None
    assert live_bytes() == before


def test_a_saved_output_after_its_tensor_is_gone():
    x = leaf(0.5)
    z = Exp.apply(x) * 2
    z = z.sum()
    z.backward()
    assert x.grad.item() == pytest.approx(2 * np.exp(0.5), rel=1e-14)


def test_wrong_number_of_gradients():
    class Wrong(mg.Function):
        @staticmethod
        def forward(ctx, x, y):
            return x * y

        @staticmethod
        def backward(ctx, g):
            return g

    with pytest.raises(
        RuntimeError, match=r"\[Wrong\] backward returned 1 gradients for 2 arguments"
    ):
        Wrong.apply(leaf(1.0), leaf(2.0)).backward()


def test_wrong_gradients():
    def spoiled(gradient):
        class Spoiled(mg.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2

            @staticmethod
            def backward(ctx, g):
                return gradient

        return Spoiled.apply(leaf([1.0, 2.0])).sum()

    with pytest.raises(RuntimeError, match=r"\[Spoiled\] .* shape \(3,\) as gradient 0 .* \(2,\)"):
        spoiled(mg.ones(3)).backward()
    with pytest.raises(TypeError, match=r"\[Spoiled\] backward returned float as gradient 0"):
        spoiled(1.0).backward()


def test_function_parts_without_gradients():
    class Pair(mg.Function):
        @staticmethod
        def forward(ctx, x, n):
            ctx.needs = ctx.needs_input_grad
            largest = x.argmax()
            rounded = x * 0
            ctx.mark_non_differentiable(rounded)
            return x * n, largest, rounded

        @staticmethod
        def backward(ctx, g, *_):
            assert ctx.needs == (True, False)
            return g * 3, None

    x = leaf([1.0, 2.0])
    y, largest, rounded = Pair.apply(x, 3)
    assert y.requires_grad
    assert not largest.requires_grad
    assert not rounded.requires_grad
    y.sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]


def test_gradients_of_a_function_are_not_shared():
    held = []

    class Add(mg.Function):
        @staticmethod
        def forward(ctx, a, b):
            return a + b

        @staticmethod
        def backward(ctx, g):
            held.append(g * 2)
            return held[-1], held[-1]

    a, b = leaf([1.0]), leaf([1.0])
    Add.apply(a, b).backward()
    (a * 1).backward()
    assert (a.grad.item(), b.grad.item(), held[0].item()) == (3.0, 2.0, 2.0)


def test_function_returning_its_input():
    class Flip(mg.Function):
        """The identity, with the gradient reversed."""

        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, g):
            return -g

    x = leaf([1.0, 2.0])
    Flip.apply(x).sum().backward()
    assert x.grad.tolist() == [-1.0, -1.0]
    assert x.is_leaf


# ---- freeing, and what it costs ------------------------------------------------------------------


def test_nodes_go_when_the_result_goes(no_gc):
    x = leaf(np.ones(1000))
    before = live_bytes()
    y = x.exp()
    nodes = [weakref.ref(y.grad_fn)]
    y = (y * y).tanh()
    nodes.append(weakref.ref(y.grad_fn))
    y = y.sum()
    nodes.append(weakref.ref(y.grad_fn))
    assert all(n() is not None for n in nodes)
    del y
    assert [n() for n in nodes] == [None] * 3
    assert live_bytes() == before


def test_backward_frees_what_was_saved(no_gc):
    x = leaf(np.ones(100_000))
    y = (x.exp() * x).tanh().sum()
    held = live_bytes()
    y.backward()
    x.grad = None
    assert live_bytes() < held - 2 * x.size * 8


def test_a_branch_that_led_nowhere_is_freed_too(no_gc):
    x = leaf(1.0)
    y = x.exp()
    node = weakref.ref((y * 2).grad_fn)
    assert node() is None
    y.backward()
    assert x.grad.item() == pytest.approx(np.e)


def test_memory_is_flat_over_ten_thousand_steps(no_gc):
    rng = np.random.default_rng(0)
    x, target = mg.tensor(rng.random((4, 3))), mg.tensor(rng.random((4, 2)))
    w, b = leaf(rng.random((3, 2))), leaf(np.zeros(2))

    def steps(n):
        for _ in range(n):
            off = (x @ w + b).tanh() - target
            loss = (off * off).mean()
            loss.backward()
            with mg.no_grad():
                w.copy_(w - 0.1 * w.grad)
                b.copy_(b - 0.1 * b.grad)
            w.grad = b.grad = None
        return loss.item()

    first = steps(10)
    held, objects = live_bytes(), len(gc.get_objects())
    last = steps(9500)
    tracemalloc.start()
    steps(100)
    traced, _ = tracemalloc.get_traced_memory()
    steps(400)
    now, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert last < first
    assert live_bytes() == held
    assert len(gc.get_objects()) - objects < 10
    assert now - traced < 1024


def test_memory_is_flat_with_functions_hooks_and_second_order(no_gc):
    x = leaf([0.5, 0.7])

    def steps(n):
        for _ in range(n):
            s, c = SinCos.apply(x)
            y = s * Exp.apply(c)
            y.register_hook(lambda g: g * 2)
            y.retain_grad()
            (g,) = mg.grad(y.sum(), x, create_graph=True)
            (g * g).sum().backward()
            x.grad = None

    steps(10)
    held, objects = live_bytes(), len(gc.get_objects())
    steps(300)
    assert live_bytes() == held
    assert len(gc.get_objects()) - objects < 10


def test_a_chain_of_a_million_nodes(no_gc):
    x = leaf(1.0)
    one = mg.tensor(1.0, dtype=mg.float64)

    def run(n):
        y = x
        for _ in range(n):
            y = y + one
        value = y.item()
        y.backward(retain_graph=True)
        gradient, x.grad = x.grad.item(), None
        last = weakref.ref(y.grad_fn)
        del y  # freed from one end to the other, without deep recursion
        assert last() is None
        return value, gradient

    run(1)  # what is made once and kept
    before = live_bytes()
    assert run(1_000_000) == (1_000_001.0, 1.0)
    assert live_bytes() == before


def test_nodes_point_backwards_only(no_gc):
    x = leaf(1.0)
    y = x.exp()
    z = y * y
    assert isinstance(z.grad_fn, Node)
    assert z.grad_fn.next_functions == (y.grad_fn, y.grad_fn)
    assert y.grad_fn.next_functions == (x,)
    gone = weakref.ref(z.grad_fn)
    del z
    assert gone() is None


# ---- NumPy on the same memory --------------------------------------------------------------------


def test_numpy_of_a_saved_tensor_is_read_only_until_the_graph_is_gone():
    x, c = leaf([1.0, 2.0]), mg.tensor([3.0, 4.0], dtype=mg.float64)
    y = (x * c).sum()
    shown = c.numpy()
    assert not shown.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        shown[0] = 9.0
    y.backward()
    free = c.numpy()
    assert free.flags.writeable
    free[0] = 9.0
    assert c.tolist() == [9.0, 4.0]


def test_numpy_of_a_saved_tensor_is_writable_once_the_graph_is_dropped():
    x, c = leaf([1.0, 2.0]), mg.tensor([3.0, 4.0], dtype=mg.float64)
    y = (x * c).sum()
    assert not c.numpy().flags.writeable
    assert not c[:1].numpy().flags.writeable
    del y
    assert c.numpy().flags.writeable


def test_writes_through_numpy_cannot_change_a_gradient():
    x, c = leaf([1.0, 2.0]), mg.tensor([3.0, 4.0], dtype=mg.float64)
    shown = c.numpy()
    assert shown.flags.writeable
    y = (x * c).sum()
    shown[:] = 100.0
    assert c.tolist() == [100.0, 100.0]
    y.backward()
    assert x.grad.tolist() == [3.0, 4.0]


def test_memory_from_numpy_changed_after_the_forward():
    x, data = leaf([1.0, 2.0]), np.array([3.0, 4.0])
    c = mg.from_numpy(data)
    y = (x * c).sum()
    data[:] = 100.0
    assert c.tolist() == [100.0, 100.0]
    y.backward()
    assert x.grad.tolist() == [3.0, 4.0]


def test_numpy_keeps_the_memory_alive(no_gc):
    c = mg.tensor([3.0, 4.0])
    shown = c.numpy()
    del c
    filler = [mg.zeros(2) for _ in range(100)]
    assert shown.tolist() == [3.0, 4.0]
    del filler


# ---- threads and processes -----------------------------------------------------------------------


def test_threads_run_backward_passes_side_by_side():
    expected = np.cos(np.linspace(0, 1, 200)) * 2
    failures = []
    start = threading.Barrier(8)
    shared = mg.tensor(np.full(200, 2.0))

    def work():
        try:
            start.wait()
            for _ in range(50):
                x = leaf(np.linspace(0, 1, 200))
                (x.sin() * shared).sum().backward()
                np.testing.assert_allclose(x.grad.numpy(), expected, rtol=1e-14)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_threads_record_on_separate_tapes_from_one_leaf():
    x = leaf(np.arange(4.0))
    results = []

    def work(n):
        results.append((n, mg.grad((x * x * n).sum(), x)[0].tolist()))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(1, 6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == [(n, [0.0, 2.0 * n, 4.0 * n, 6.0 * n]) for n in range(1, 6)]
    assert x.grad is None


def _in_the_child(w, queue):
    x = leaf(np.ones((300, 300)))
    (x @ w).sum().backward()
    queue.put((mg.is_grad_enabled(), float(x.grad.numpy()[0, 0]), w.requires_grad))


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="needs fork")
def test_a_forked_child_computes():
    threads = mg.get_num_threads()
    mg.set_num_threads(2)
    w = leaf(np.full((300, 300), 0.5))
    (w @ w).sum().backward()  # the pool is running when the process forks
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_in_the_child, args=(w, queue))
    child.start()
    result = queue.get(timeout=60)
    child.join(timeout=60)
    assert result == (True, 150.0, True)
    assert child.exitcode == 0
    mg.set_num_threads(threads)
    assert w.grad.numpy()[0, 0] == 300.0
