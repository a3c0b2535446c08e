"""Memory that operations allocate, save and release."""

from __future__ import annotations

import gc
import sys
import threading

import numpy as np
import pytest

import minigrad as mg
from minigrad.runtime.native import lib

MB = 2**20


@pytest.fixture(autouse=True)
def _nothing_is_left():
    """Every test gives back all memory it took, without the help of the garbage collector."""
    gc.collect()
    gc.disable()
    before = lib.mg_live_bytes()
    yield
    left = lib.mg_live_bytes() - before
    gc.enable()
    # numbers that operations met stay in a small cache of theirs
    assert left < 256 * 1024, f"{left} bytes were not given back"


def taken(action):
    before = lib.mg_live_bytes()
    result = action()
    return lib.mg_live_bytes() - before, result


def test_views_take_no_memory():
    x = mg.zeros(MB)
    for view in (
        lambda: x[::2],
        lambda: x.reshape(1024, 1024).T,
        lambda: x.unsqueeze(0).expand(100, MB),
        lambda: x.detach(),
        lambda: x.flip(0),
        lambda: x.split(MB // 4),
    ):
        size, kept = taken(view)
        assert size < 64 * 1024
        del kept


def test_results_take_their_size_and_give_it_back():
    x = mg.zeros(MB)
    size, y = taken(lambda: x + 1)
    assert 4 * MB <= size < 5 * MB
    z = y[:1]  # a view keeps all of it
    del y
    assert taken(lambda: None)[0] == 0
    before = lib.mg_live_bytes()
    del z
    assert lib.mg_live_bytes() < before - 4 * MB + 1


@pytest.mark.parametrize(
    ("op", "kept"),
    [
        (lambda x: x + 1, 0),
        (lambda x: -x, 0),
        (lambda x: x * 2, 0),
        (lambda x: x - x, 0),
        (lambda x: x.T, 0),
        (lambda x: x.sum(0), 0),
        (lambda x: x.mean(0), 0),
        (lambda x: x.exp(), 0),
        (lambda x: x.sin(), 0),
        (lambda x: x.relu(), 0),
        (lambda x: x[1:], 0),
    ],
)
def test_a_graph_keeps_no_more_than_inputs_and_outputs(op, kept):
    """Beyond its result, which is counted, an operation keeps nothing that was not there."""
    x = mg.ones(1024, 1024, requires_grad=True)
    size, y = taken(lambda: op(x))
    own = 0 if np.shares_memory(y.detach().numpy(), x.detach().numpy()) else y.size * 4
    assert size <= own + kept + 64 * 1024


def test_what_is_not_saved_is_freed_though_the_graph_lives():
    x = mg.ones(MB, requires_grad=True)
    y = x + 1
    for _ in range(20):  # sums and sign changes need no input: nothing piles up
        y = -(y + 1)
    assert taken(lambda: None)[0] == 0
    live = lib.mg_live_bytes()
    y.sum().backward()
    assert x.grad[0].item() == 1
    del y
    assert lib.mg_live_bytes() <= live + 64 * 1024  # y's memory went, the gradient's came


def test_a_dropped_graph_is_freed_at_once():
    x = mg.ones(MB, requires_grad=True)
    before = lib.mg_live_bytes()
    y = x
    for _ in range(10):
        y = y.exp() * 0.1
    assert lib.mg_live_bytes() > before + 40 * MB
    del y
    assert lib.mg_live_bytes() <= before + 64 * 1024


def test_backward_frees_as_it_goes():
    x = mg.ones(MB, requires_grad=True)
    y = x
    for _ in range(10):
        y = y.exp() * 0.1
    loss = y.sum()
    del y
    loss.backward()
    assert x.grad is not None
    size = lib.mg_live_bytes()
    del loss
    assert size - lib.mg_live_bytes() < 64 * 1024


def test_a_training_loop_is_flat():
    w = mg.ones(100, 100, requires_grad=True)
    sizes = []
    for _ in range(30):
        loss = (mg.tanh(w @ w) * 0.01).sum()
        loss.backward()
        with mg.no_grad():
            w -= 0.1 * w.grad
        w.grad = None
        del loss
        sizes.append(lib.mg_live_bytes())
    assert max(sizes[5:]) - min(sizes[5:]) == 0


def test_higher_order_graphs_hold_no_cycle():
    x = mg.ones(MB, requires_grad=True)
    before = lib.mg_live_bytes()
    y = (x.exp() * x.sin()).tanh().sum()
    (g,) = mg.grad(y, x, create_graph=True)
    (gg,) = mg.grad(g.sum(), x, create_graph=True)
    assert np.isfinite(gg.detach().numpy()).all()
    del y, g, gg
    assert lib.mg_live_bytes() <= before + 64 * 1024


def test_a_long_chain_is_built_differentiated_and_freed():
    x = mg.ones(1, requires_grad=True)
    y = x
    for _ in range(200_000):
        y = y * 1.0
    y.backward()
    assert x.grad.item() == 1
    y = x
    for _ in range(200_000):
        y = -y
    del y


def test_the_cache_can_be_emptied():
    x = mg.zeros(MB)
    del x
    lib.mg_cache_clear()
    assert lib.mg_cache_bytes() == 0
    assert mg.zeros(MB).sum().item() == 0


@pytest.mark.parametrize("n", [1, 1000, 10**5, 10**6, MB])
def test_what_was_given_back_to_the_system_can_be_used_again(n):
    kept = [mg.full((n,), 1.0 + k, dtype=mg.float64) for k in range(5)]
    gone = [mg.full((n,), -1.0, dtype=mg.float64) for k in range(5)]
    del gone
    lib.mg_cache_clear()
    assert lib.mg_cache_bytes() == 0
    kept += [mg.full((n,), 6.0 + k, dtype=mg.float64) for k in range(7)]
    assert [(x.amin().item(), x.amax().item()) for x in kept] == [(k, k) for k in range(1, 13)]


def test_new_memory_does_not_disturb_old():
    """Blocks handed out again never belong to someone still."""
    rng = np.random.default_rng(0)
    kept = {}
    for k in range(3000):
        n = int(rng.integers(1, 5000))
        kept[k] = mg.full((n,), k)
        if len(kept) > 40:
            gone = list(kept)[int(rng.integers(0, len(kept)))]
            assert (kept.pop(gone).numpy() == gone).all()
    for k, t in kept.items():
        assert (t.numpy() == k).all()


def test_threads_allocate_and_free_each_others_memory():
    shared: list[mg.Tensor] = []
    wrong: list[object] = []

    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        for _ in range(400):
            n = int(rng.integers(1, 3000))
            t = mg.full((n,), float(n), requires_grad=True)
            y = (t * 2).sum()
            y.backward()
            if t.grad.tolist()[-1] != 2 or y.item() != 2.0 * n * n:
                wrong.append((n, y.item()))
            shared.append(t.detach())
            if len(shared) > 30:
                shared.pop(0)

    threads = [threading.Thread(target=work, args=(s,)) for s in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    shared.clear()


@pytest.mark.parametrize("saver", ["input", "output", "matmul", "amax"])
def test_what_the_tape_saved_must_not_be_overwritten(saver):
    x = mg.tensor([1.0, 2.0], requires_grad=True)
    a = x * 1  # not a leaf: its memory is the tape's
    y = {
        "input": lambda: a.sin(),
        "output": lambda: a.exp(),
        "matmul": lambda: a @ a,
        "amax": lambda: a.amax(),
    }[saver]()
    with mg.no_grad():
        (y if saver == "output" else a).detach().fill_(5)
    with pytest.raises(
        RuntimeError,
        match=r"saved for backward was overwritten in place at .*test_memory\.py:\d+; write into",
    ):
        y.sum().backward()


def test_a_write_that_nobody_saved_is_fine():
    x = mg.tensor([1.0, 2.0], requires_grad=True)
    a = x * 2
    y = a + 1
    a.detach().fill_(5)
    y.sum().backward()
    assert x.grad.tolist() == [2, 2]


def _fails_at(allocation, action):
    """Whether the action fails where that allocation of Python's does, if it comes to it."""
    testcapi = pytest.importorskip("_testcapi")
    testcapi.set_nomemory(allocation, allocation + 1)
    try:
        action()
    except MemoryError:
        return True
    finally:
        testcapi.remove_mem_hooks()
    return False


def _with_a_closure(action, name):
    falls = sys.version_info >= (3, 12)
    mark = pytest.mark.skipif(falls, reason="Python itself falls without memory for a closure")
    return pytest.param(action, id=name, marks=mark)


@pytest.mark.only_tape("C", "without memory Python itself leaks the arguments of f(*args)")
@pytest.mark.parametrize(
    "action",
    [
        pytest.param(mg.exp, id="of C"),
        pytest.param(lambda x: x / x, id="that is saved"),
        pytest.param(lambda x: x[1:] * 1, id="of a view"),
        pytest.param(lambda x: mg.var(x), id="of Python's"),
        _with_a_closure(lambda x: mg.softmax(x, 0), "of a function of Python's"),
        _with_a_closure(lambda x: mg.sort(x), "several"),
    ],
)
def test_results_for_which_python_has_no_memory_are_given_back(action):
    x = mg.ones(64 * 1024, requires_grad=True)
    action(x)
    before = lib.mg_live_bytes()
    failed = 0
    while _fails_at(failed + 1, lambda: action(x)):
        failed += 1
    assert failed
    assert lib.mg_live_bytes() - before < 64 * 1024


@pytest.mark.only_tape("C", "without memory Python itself leaks the arguments of f(*args)")
def test_borrowed_memory_for_which_python_has_no_handle_is_given_back(monkeypatch):
    a = np.ones(5, np.float32)
    mg.from_numpy(a)
    told = []
    monkeypatch.setattr(sys, "unraisablehook", lambda what: told.append(repr(what.exc_value)))
    before = lib.mg_live_bytes()
    failed, kept = 0, []  # what is made goes later: to be told of an end takes memory, too
    for allocation in range(60):
        failed += _fails_at(allocation, lambda: kept.append(mg.from_numpy(a)))
        kept.clear()
    assert failed
    assert lib.mg_live_bytes() == before
    assert not told
