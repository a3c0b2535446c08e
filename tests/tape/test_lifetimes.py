"""Lifetimes of graphs and saved arrays, and other users of their memory."""

from __future__ import annotations

import gc
import multiprocessing
import threading
import tracemalloc
import weakref

import numpy as np
import pytest

import minigrad as mg
from minigrad.runtime import native
from minigrad.tape.node import Node


def leaf(values, dtype=mg.float64):
    return mg.tensor(np.asarray(values, dtype=float), dtype=dtype, requires_grad=True)


def live_bytes():
    return int(native.lib.mg_live_bytes())


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
    assert z.grad_fn.parents == (y.grad_fn, y.grad_fn)
    assert y.grad_fn.parents == (x,)
    gone = weakref.ref(z.grad_fn)
    del z
    assert gone() is None


def test_a_node_lets_go_of_what_only_its_backward_needed(no_gc):
    x, c = leaf([1.0, 2.0]), mg.tensor([3.0, 4.0], dtype=mg.float64)
    y = x * c
    node = y.grad_fn
    assert (node.parents, node.needs_grad, node.args) == ((x, None), 1, ())
    assert (node.name(), repr(node)) == ("mul", "<mul>")
    assert (y + x).grad_fn.serial > node.serial
    y.backward(c)
    assert (node.parents, node.needs_grad, node.args) == (None, 0, None)
    assert (node.saved, node.next_functions) == (None, ())
    assert c.numpy().flags.writeable


class Again(mg.Function):
    """Runs backward of what it was asked to before its own is over."""

    then = None

    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        then, Again.then = Again.then, None
        if then is not None:
            then()
        return g * 2


@pytest.mark.parametrize("retain", [False, True])
def test_a_rule_may_free_its_own_node(retain):
    x = leaf([1.0, 2.0])
    y = Again.apply(x)
    Again.then = y.sum().backward
    y.sum().backward(retain_graph=retain)
    assert x.grad.tolist() == [4.0, 4.0]


@pytest.mark.parametrize("retain", [False, True])
def test_no_gradient_is_lost_where_a_rule_frees_the_graph(retain):
    x = leaf([1.0, 2.0])
    y = Again.apply(x * x)
    Again.then = y.sum().backward
    with pytest.raises(RuntimeError, match="freed at 'mul'"):
        y.sum().backward(retain_graph=retain)
    assert x.grad.tolist() == [4.0, 8.0]


def test_a_node_without_its_fields_can_be_released():
    node = (leaf(1.0) * 2).grad_fn
    del node.op, node.saved, node.args, node.input_meta, node.hooks
    for _ in range(2):
        node.release()
        assert (node.parents, node.saved, node.args) == (None, None, None)
    with pytest.raises(AttributeError):
        repr(node)


def test_nodes_come_from_operations():
    assert Node.__doc__
    with pytest.raises(TypeError, match="parents"):
        Node.record(None, None, (), None)


@pytest.mark.only_tape("C", "to refuse would take a third of the time that a node takes in Python")
def test_nodes_are_not_made_by_their_class():
    with pytest.raises(TypeError, match="come from operations"):
        Node()


def test_cycles_through_tensors_are_collected():
    for name in ("_grad", "_alias", "_views", "_hooks"):
        x = mg.ones(3, requires_grad=True)
        setattr(x, name, [x])
        gone = weakref.ref(x)
        del x
        gc.collect()
        assert gone() is None, name


def test_cycles_through_nodes_are_collected():
    def hooked(x):
        y = x * 2
        y.register_hook(lambda g: y)
        return y

    def kept(x):
        y = (x * x).exp()
        x.grad = y
        return y

    for make in (hooked, kept):
        y = make(leaf([1.0, 2.0]))
        gone = weakref.ref(y.grad_fn)
        del y
        gc.collect()
        assert gone() is None


def test_what_a_node_drops_may_drop_nodes(no_gc):
    class Chain:  # its last reference is a node's, and it holds the node before
        def __init__(self, before):
            self.before = before

    node = None
    for _ in range(100_000):
        node = Node.record(None, None, Chain(node), None, None)
    gone = weakref.ref(node)
    del node
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


def test_threads_share_a_weight():
    """Each lets go of it while others differentiate by it: a race is for the sanitizer to see."""
    w = leaf(np.arange(4.0).reshape(2, 2))
    x = mg.ones(300, 2, dtype=mg.float64)
    found = []

    def work():
        for _ in range(30):
            y = mg.ones(40_000, 2, dtype=mg.float64) @ (w @ w)  # gives up the interpreter
            found.append(mg.grad((x @ w).sum() + y[0].sum(), w)[0].tolist())

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # by (x @ w): 300 everywhere; by the row sum of w @ w: sums of w's columns and of its rows
    columns, rows = w.detach().numpy().sum(0), w.detach().numpy().sum(1)
    assert found == [(300 + columns[:, None] + rows[None, :]).tolist()] * 90


@pytest.mark.parametrize("there", [False, True])
@pytest.mark.parametrize("of", [lambda x: x, lambda x: x * 1.0, lambda x: x + x * 0.0])
def test_nothing_is_lost_of_what_threads_bring_to_one_leaf(of, there):
    n, runs = 400_000, 8  # enough for a copy, or a sum, to give up the interpreter
    x, g = leaf(np.zeros(n)), mg.ones(n, dtype=mg.float64)
    for _ in range(3):
        x.grad = mg.zeros(n, dtype=mg.float64) if there else None
        start = threading.Barrier(3)

        def work(start=start):
            start.wait()
            for _ in range(runs):
                of(x).backward(g)

        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert (x.grad == 3.0 * runs).all()


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
