"""The backward pass: its order, interrupts, and gradients that others give it."""

from __future__ import annotations

import signal
import sys
import threading

import numpy as np
import pytest

import minigrad as mg
from minigrad import autograd
from minigrad.runtime import native
from minigrad.tape.node import record
from minigrad.tape.vjp import rules


def leaf(values, dtype=mg.float64):
    return mg.tensor(np.asarray(values, dtype=float), dtype=dtype, requires_grad=True)


def chain(x, length):
    y = x
    for _ in range(length):
        y = y + x
    return y


@pytest.mark.parametrize(("nodes", "near", "ends"), [(300, 60, 100), (5000, 2000, 3000)])
def test_many_nodes_wait_and_the_youngest_goes_first(nodes, near, ends, rng):
    """Sums of earlier results picked at random: the gradient is the number of ways to a leaf."""
    results, ways = [leaf(1.0)], [1]
    for _ in range(nodes):
        a, b = rng.integers(max(0, len(results) - near), len(results), 2)
        results.append(results[a] + results[b] * 0.5)
        ways.append(ways[a] + 0.5 * ways[b])
    some = rng.permutation(len(results))[:ends]
    total = sum(results[k] for k in some)
    seen = []
    for node in {results[k].grad_fn for k in some} - {None}:
        node.hooks = [lambda g, serial=node.serial: seen.append(serial)]
    total.backward()
    np.testing.assert_allclose(results[0].grad.item(), sum(ways[k] for k in some), rtol=1e-14)
    assert seen == sorted(seen, reverse=True)


def test_it_starts_at_a_tensor():
    with pytest.raises(TypeError, match=r"^\[backward\] expected a Tensor to start from$"):
        autograd.backward(3.0)


def test_thousands_of_leaves_each_get_theirs(rng):
    values = rng.normal(size=(2, 3000))
    a, b = [[leaf(v) for v in row] for row in values]
    mg.stack([x * y for x, y in zip(a, b, strict=True)]).sum().backward()
    np.testing.assert_array_equal([[x.grad.item() for x in row] for row in (b, a)], values)


def test_an_interrupt_is_seen_between_nodes():
    def interrupt(number, frame):
        raise KeyboardInterrupt

    def interrupted():
        signal.setitimer(signal.ITIMER_REAL, 0.002)
        y.backward()

    x = leaf(1.0)
    y = chain(x, 200_000)
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            interrupted()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert x.grad is None
    z = x * 3
    z.backward()  # what was interrupted has left nothing behind
    assert x.grad.item() == 3


def test_other_threads_have_their_turn_during_a_long_run():
    """As another thread sees it: the run has begun, and no gradient has arrived."""
    x, seen, done, begun = leaf(1.0), [], [], False
    y = chain(x, 100_000)

    def begin(g):  # of the first node; nothing of Python's is run from here to the end
        nonlocal begun
        begun = True

    def other():
        while not done:
            if begun and x.grad is None:
                seen.append(True)

    y.register_hook(begin)
    y.backward(retain_graph=True)  # what is loaded with the first gives others a turn as well
    begun, x.grad = False, None
    thread = threading.Thread(target=other)
    thread.start()
    for _ in range(20):  # a busy machine may let it wait for as long as a run or more
        begun, x.grad = False, None
        y.backward(retain_graph=True)
        if seen:
            break
    done.append(True)
    thread.join()
    assert seen
    assert x.grad.item() == 100_001


@pytest.mark.parametrize("dtype", [mg.float32, mg.float64])
@pytest.mark.parametrize("op", [mg.sum, mg.mean])
@pytest.mark.parametrize("dim", [None, 0, -1, (0, 2), ()])
@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("shape", [(2, 3, 7), (2, 0, 7), (0, 3, 7)])
def test_sums_and_means_run_back_as_python_does(rng, op, dtype, dim, keepdim, shape):
    """In C, and where it is watched by functions of Python's: the same bits."""
    x, calls = leaf(rng.standard_normal(shape), dtype), []
    y = op(x, dim, keepdim)
    g = mg.tensor(rng.standard_normal(y.shape), dtype=dtype)
    (ours,) = mg.grad(y, x, g, retain_graph=True)
    with native.trace(lambda kernel, args, made: calls.append(kernel)):
        (theirs,) = mg.grad(y, x, g)
    assert {"view_repeat", "repeat_mean"} & set(calls)
    assert ours.shape == theirs.shape == shape
    assert ours.dtype is theirs.dtype is dtype
    assert ours.numpy().tobytes() == theirs.numpy().tobytes()


@pytest.mark.parametrize("graph", [False, True])
def test_a_hook_that_fails_changes_no_gradient(graph):
    def hook(g):
        raise ZeroDivisionError

    x = leaf([1.0, 2.0])
    y = x * x
    z = y.exp() + y
    y.register_hook(hook)
    with pytest.raises(ZeroDivisionError):
        z.sum().backward(create_graph=graph)
    assert x.grad is None
    assert mg.is_grad_enabled()


@pytest.mark.parametrize("make", [lambda x: x.exp(), lambda x: x * x, lambda x: x @ x])
def test_a_rule_without_what_it_saved_says_so(make):
    x = leaf([1.0, 2.0])
    node = make(x).grad_fn
    node.release()
    with pytest.raises(RuntimeError, match="freed"):
        rules(node.op)[0](node, mg.ones(2, dtype=mg.float64))


@pytest.mark.only_tape("C", "C looks at the types of what it is given")
@pytest.mark.parametrize("make", [lambda x: x.exp(), lambda x: x * x, lambda x: x @ x])
def test_a_rule_takes_a_node_and_its_gradient(make):
    x = leaf([1.0, 2.0])
    node = make(x).grad_fn
    with pytest.raises(TypeError, match="a node and its gradient"):
        rules(node.op)[0](node, 1.0)
    with pytest.raises(TypeError, match="a node and its gradient"):
        rules(node.op)[0](x, x)


def test_nodes_that_lost_fields_fail_and_no_more():
    for name in ("op", "saved", "args", "input_meta", "hooks"):
        y = leaf([1.0, 2.0]).exp().sum()
        for node in (y.grad_fn, y.grad_fn.parents[0]):
            delattr(node, name)
        try:
            y.backward()
        except (AttributeError, RuntimeError):
            continue
        assert name in ("input_meta", "hooks")


def test_gradients_end_at_tensors():
    node = record((leaf(1.0) * 2).grad_fn.op, native.save(leaf(1.0)._h), (), None, "x", None)
    y = leaf(1.0) + 0
    y._edge = node
    with pytest.raises((TypeError, ValueError, RuntimeError)):
        y.backward()


def test_a_rule_that_gives_too_few_gradients():
    class Half:
        name = "half"

        @staticmethod
        def vjp(node, g):
            return [g]

        graph_vjp = vjp

    x, z = leaf(1.0), leaf(1.0)
    y = x + 0
    y._edge = record(Half, None, (), None, x, z)
    y.backward()
    assert x.grad.item() == 1
    assert z.grad is None


def test_a_node_of_many_parents(rng):
    """Nodes, leaves, one of them twice, and what wants no gradient."""
    x, y = leaf(rng.standard_normal(2)), leaf(rng.standard_normal(2))
    given = [x * 2, mg.ones(2, dtype=mg.float64), y, x, y.exp(), x * y, y]
    g = rng.standard_normal(14)
    mg.concatenate(given).backward(mg.tensor(g, dtype=mg.float64))
    a, _, b, c, d, e, f = g.reshape(7, 2)
    np.testing.assert_allclose(x.grad.numpy(), 2 * a + c + e * y.detach().numpy())
    by_exp = d * np.exp(y.detach().numpy())
    np.testing.assert_allclose(y.grad.numpy(), b + by_exp + e * x.detach().numpy() + f)


def test_memory_that_runs_out_anywhere():
    """Whichever allocation of Python's fails: a MemoryError, or all gradients."""
    testing = pytest.importorskip("_testcapi")

    def run(fails):
        leaves = [leaf([1.0, 2.0]) for _ in range(5)]
        made = mg.concatenate([*(x * k for k, x in enumerate(leaves, 2)), leaves[0]])
        y = (made.exp() * leaf([1.0])).sum()
        testing.set_nomemory(fails, fails + 1)
        try:
            y.backward()
        finally:
            testing.remove_mem_hooks()
        return [x.grad.tolist() for x in leaves]

    expected = run(10**6)
    failed = 0
    for n in range(150):
        try:
            assert run(n) == expected
        except MemoryError:
            failed += 1
    assert failed > 20


def test_each_kernel_of_a_run_is_watched():
    x, w, b = leaf(np.ones((2, 3)), mg.float32), leaf(np.ones((3, 3)), mg.float32), leaf([1.0] * 3)
    y = ((x.exp() @ w) - b.to(mg.float32)).sum()
    x.grad = mg.ones(2, 3)
    seen = []

    def watch(kernel, args, result):
        seen.append((kernel, len(result) if isinstance(result, tuple) else None))
        assert all(type(h).__name__ == "Array" or h is None for h in np.ravel(result or []))

    with native.trace(watch):
        y.backward()
    assert ("matmul_vjp", 2) in seen
    assert ("exp_vjp", None) in seen
    names = [name for name, _ in seen]
    assert names.count("accumulate") == 1  # into x.grad
    assert "sum_to" in names  # b was broadcast
    np.testing.assert_allclose(x.grad.numpy(), 1 + 3 * np.e, rtol=1e-6)
    assert b.grad.tolist() == [-2.0] * 3


@pytest.mark.parametrize("shape", [(), (0, 3), (2, 3), (64, 1024)])
@pytest.mark.parametrize("dtype", [mg.float32, mg.float64])
def test_leaves_get_copies_of_a_gradient_that_several_have(rng, dtype, shape):
    a, b = (mg.ones(*shape, dtype=dtype, requires_grad=True) for _ in range(2))
    g = mg.tensor(rng.standard_normal(shape[::-1]), dtype=dtype).permute(*range(len(shape))[::-1])
    (a + b).backward(g)
    for x in (a, b):
        assert (x.grad.shape, x.grad.dtype, x.grad.requires_grad) == (shape, dtype, False)
        assert x.grad.is_contiguous()
        np.testing.assert_array_equal(x.grad.numpy(), g.numpy())
    assert len({x._h.data for x in (a.grad, b.grad, g)}) == 3 or a.size == 0
    a.grad += 1
    np.testing.assert_array_equal(b.grad.numpy(), g.numpy())


@pytest.mark.parametrize("full", [(), (0,), (1,), (2,), (3,), (1, 2)])
@pytest.mark.parametrize("n", [0, 1, 3, 255, 1024, 40_001, 300_000])
@pytest.mark.parametrize("dtype", [mg.float32, mg.float64])
def test_leaves_of_a_chain_get_copies_of_one_gradient(rng, dtype, n, full):
    leaves = [mg.ones(n, dtype=dtype, requires_grad=True) for _ in range(5)]
    for k in full:
        leaves[k].grad = mg.ones(n, dtype=dtype)
    g = mg.tensor(rng.standard_normal(n), dtype=dtype)
    sum(leaves[1:], leaves[0]).backward(g)
    for k, x in enumerate(leaves):
        np.testing.assert_array_equal(x.grad.numpy(), g.numpy() + (k in full))
    assert len({x._h.data for x in (g, *(x.grad for x in leaves))}) == 6 or n == 0


def test_no_memory_for_a_copy_changes_no_gradient():
    xs = [leaf([1.0, 2.0]) for _ in range(3)]
    total, g, copies = xs[0] + xs[1] + xs[2], mg.tensor([3.0, 4.0], dtype=mg.float64), []

    def fail(kernel, args, made):
        if kernel == "copy":
            copies.append(made)
            if len(copies) == 2:
                raise MemoryError

    with native.trace(fail), pytest.raises(MemoryError):
        total.backward(g, retain_graph=True)
    assert len(copies) == 2
    assert [x.grad for x in xs] == [None] * 3
    total.backward(g)
    assert [x.grad.tolist() for x in xs] == [[3.0, 4.0]] * 3


def test_copies_for_leaves_are_watched():
    a, b, g = leaf([1.0, 2.0]), leaf([3.0, 4.0]), mg.tensor([5.0, 6.0], dtype=mg.float64)
    seen = []
    with native.trace(lambda kernel, args, result: seen.append((kernel, result))):
        (a + b).backward(g)
    assert [result for name, result in seen if name == "copy"] == [a.grad._h, b.grad._h]


@pytest.mark.parametrize("dtype", [mg.float32, mg.float64])
def test_an_input_that_was_broadcast_and_cast_gets_its_own_shape_and_dtype(dtype):
    a, b = leaf([[1.0], [2.0]], dtype), leaf([3.0, 4.0, 5.0])
    (a * b).sum().backward()
    assert (a.grad.dtype, a.grad.shape) == (dtype, (2, 1))
    assert (b.grad.dtype, b.grad.shape) == (mg.float64, (3,))
    assert a.grad.tolist() == [[12.0], [12.0]]
    assert b.grad.tolist() == [3.0] * 3
    found = mg.grad((a * b).sum(), (a, b), create_graph=True)
    assert [g.shape for g in found] == [(2, 1), (3,)]
    (again,) = mg.grad(found[0].sum(), b)
    assert again.tolist() == [2.0] * 3


@pytest.mark.parametrize("values", [[[1.0, 2.0], [3.0, 5.0]], [], 7.0])
@pytest.mark.parametrize("op", [mg.sum, mg.mean])
def test_a_reduction_of_all_is_that_along_all_axes(op, values):
    x = leaf(values)
    y, same = op(x), op(x, tuple(range(x.ndim)))
    np.testing.assert_equal(y.item(), same.item())
    assert y.grad_fn.args == same.grad_fn.args
    assert y.shape == ()
    g = mg.tensor(3.0, dtype=mg.float64)
    for graph in (False, True):
        ours, theirs = (mg.grad(z, x, g, True, create_graph=graph)[0] for z in (y, same))
        np.testing.assert_array_equal(ours.detach().numpy(), theirs.detach().numpy())
    assert op(mg.tensor([1, 2, 4])).item() == pytest.approx(7 if op is mg.sum else 7 / 3)


def test_what_is_said_of_the_graph_may_fail():
    """An error in a flag's truth is raised before anything runs."""

    class Undecided:
        def __bool__(self):
            raise KeyError("undecided")

    x = leaf([1.0, 2.0])
    seen = []
    y = x * 2.0
    y.register_hook(seen.append)
    z = y.sum()
    with pytest.raises(KeyError, match="undecided"):
        z.backward(retain_graph=Undecided())
    assert not seen
    assert x.grad is None
    z.backward()
    assert x.grad.tolist() == [2.0, 2.0]


@pytest.mark.parametrize("before", [mg.float32, mg.float64])
def test_a_gradient_of_the_dtype_the_leaf_had(before):
    """Arriving gradients have the leaf's present dtype, and so has the sum."""
    x = leaf([1.0, 2.0], before)
    (x * 2.0).sum().backward()
    after = mg.float32 if before is mg.float64 else mg.float64
    x.data = mg.tensor([3.0, 4.0], dtype=after)
    (x * x).sum().backward()
    assert (x.grad.dtype, x.grad.tolist()) == (after, [8.0, 10.0])


@pytest.mark.parametrize("of", [lambda x: x, lambda x: x + 1.0, lambda x: x + x.detach()])
def test_the_gradient_that_a_leaf_has_may_be_the_one_that_comes(of):
    x = leaf([1.0, 2.0])
    x.grad = mg.tensor([3.0, 4.0], dtype=mg.float64)
    of(x).backward(x.grad)
    assert x.grad.tolist() == [6.0, 8.0]


def test_a_hook_of_a_leaf_may_return_its_gradient():
    x = leaf([1.0, 2.0])
    x.grad = mg.tensor([3.0, 4.0], dtype=mg.float64)
    x.register_hook(lambda g: x.grad)
    x.sum().backward()
    assert x.grad.tolist() == [6.0, 8.0]


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="None lives for ever, and is not counted")
def test_no_reference_to_none_is_left_behind():
    """References to an input without a gradient (PEP 683: not visible from Python 3.12 on)."""
    x, constant = leaf([1.0, 2.0]), mg.tensor([3.0, 4.0], dtype=mg.float64)
    before = sys.getrefcount(None)
    for _ in range(1000):
        mg.grad((x * constant).sum(), x)
    assert abs(sys.getrefcount(None) - before) < 500
