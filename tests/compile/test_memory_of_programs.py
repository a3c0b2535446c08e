"""Memory of programs: steps write over arrays that nobody reads again, and runs need little."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import minigrad as mg
from minigrad.runtime.native import lib

LAST = 1 << 60


def requests(call):
    """How often a call asks the system for memory when nothing is cached."""
    lib.mg_deny_blocks(LAST, LAST)
    try:
        call()
    finally:
        asked = lib.mg_deny_blocks(1, 0)
    return asked


def compiled(f, *xs):
    c = mg.compile(f, fullgraph=True)
    c(*xs), c(*xs)
    return c


def test_a_chain_writes_over_an_operand_that_it_reads_last():
    x = mg.ones(8, 8)
    once = compiled(lambda x: x @ x, x)
    twice = compiled(lambda x: (x @ x).sin().tanh(), x)
    kept = compiled(lambda x: (lambda y: (y, y.sin().tanh()))(x @ x), x)
    assert requests(lambda: twice(x)) == requests(lambda: once(x)) < requests(lambda: kept(x))


def test_a_derivative_writes_over_the_gradient_that_it_reads_last():
    def grads(f):
        def step(x):
            y = x.detach().requires_grad_()
            f(y).backward()
            return y.grad

        return compiled(step, x)

    x = mg.ones(8, 8)
    plain = grads(lambda y: (y @ y).norm())
    more = grads(lambda y: (y @ y).relu().norm())
    assert more.explain().programs[0].kernels["relu"] == 1
    one = requests(lambda: x + x)
    assert requests(lambda: more(x)) == requests(lambda: plain(x)) + one  # of relu alone


@pytest.mark.parametrize("shape", [(3,), (64,), (700,), (5, 300)])
@pytest.mark.parametrize("dtype", [mg.float32, mg.float64])
def test_a_result_that_lies_on_an_operand_which_is_read_later(shape, dtype):
    def f(x):
        a = x.cumsum(-1)  # a new array, for the chain to write over
        y = a * 2
        z = y.sin() + a
        return y, z, (a - z) > y

    rng = np.random.default_rng(0)
    c = mg.compile(f, fullgraph=True)
    for _ in range(3):
        x = mg.tensor(rng.normal(size=shape), dtype=dtype)
        for a, b in zip(c(x), f(x), strict=True):
            assert a.numpy().tobytes() == b.numpy().tobytes()


def test_an_argument_a_parameter_and_a_result_are_not_written_over():
    w = mg.ones(70)

    def f(x):
        y = x.cumsum(0)
        return y, (y * x + w).tanh()

    c = mg.compile(f, fullgraph=True)
    x = mg.ones(70)
    c(x)
    y, z = c(x)
    before = y.clone(), z.clone()
    c(x * 2)
    assert mg.equal(x, mg.ones(70))
    assert mg.equal(w, mg.ones(70))
    assert mg.equal(y, before[0])
    assert mg.equal(z, before[1])


def test_a_view_keeps_its_memory_from_being_written_over():
    def f(x):
        y = x.cumsum(0)
        view = y[1:]
        z = (y * 2).sin()
        return z[:-1] + view

    c = mg.compile(f, fullgraph=True)
    for _ in range(3):
        x = mg.tensor(np.random.default_rng(0).normal(size=80))
        assert mg.equal(c(x), f(x))


def test_a_recording_leaves_no_cached_memory_behind():
    def f(x):
        for _ in range(20):
            x = x.cumsum(0) * 0.5
        return x

    x = mg.ones(1 << 16)
    c = mg.compile(f)
    gc.collect()
    c(x)
    assert lib.mg_cache_bytes() < 4 * x.nbytes


# ---- gradients of the last call ------------------------------------------------------------------


def training(clears):
    """A compiled step on a large parameter, which clears gradients first, or after the forward."""
    w = mg.ones(200, 200, requires_grad=True)

    def step(x, index):
        if clears == "first":
            w.grad = None
        y = (w * x)[index].sum()
        if clears == "later":
            w.grad = None
        y.backward()
        return y.detach()

    return w, mg.compile(step, fullgraph=True)


@pytest.mark.parametrize("clears", ["first", "later", "never"])
def test_gradients_are_dropped_before_a_run_as_the_function_drops_them(clears):
    w, step = training(clears)
    x, index = mg.ones(200, 200), mg.tensor([0, 199])
    for _ in range(3):
        step(x, index)
    kept = w.grad
    before = kept.clone()
    step(x * 2, index)
    assert w.grad is not kept or clears == "never"
    assert mg.equal(kept, before) or clears == "never"
    assert w.grad[0, 0].item() == {"first": 2.0, "later": 2.0, "never": 5.0}[clears]
    assert bool(step._recorded[0].cleared) == (clears == "first")


@pytest.mark.parametrize("clears", ["first", "later"])
def test_a_failing_run_leaves_the_gradients_that_the_function_leaves(clears):
    w, step = training(clears)
    x, index = mg.ones(200, 200), mg.tensor([0, 199])
    for _ in range(3):
        step(x, index)
    with pytest.raises(IndexError):
        step(x, mg.tensor([0, 200]))
    assert (w.grad is None) == (clears == "first")
    step(x, index)
    assert w.grad[0, 0].item() == 1.0
    assert step.recordings <= 3


def test_a_gradient_that_is_read_is_not_dropped():
    w = mg.ones(200, 200, requires_grad=True)

    def step(x):
        last = w.grad
        w.grad = None
        (w * x).sum().backward()
        return last, last * 1.0

    compiled_step = mg.compile(step, fullgraph=True)
    w.grad = mg.zeros(200, 200)
    for k in range(4):
        last, copy = compiled_step(mg.full((200, 200), float(k)))
        assert mg.equal(last, copy)
        assert last[0, 0].item() == max(k - 1.0, 0.0)


def test_a_call_that_does_not_fit_drops_no_gradient():
    w = mg.ones(200, 200, requires_grad=True)

    def step(x):
        if x.shape[0] == 200:
            w.grad = None
        (w * x).sum().backward()

    compiled_step = mg.compile(step, fullgraph=True)
    for _ in range(3):
        compiled_step(mg.ones(200, 200))
    compiled_step(mg.ones(1, 200))
    assert w.grad[0, 0].item() == 2.0
    compiled_step(mg.ones(1, 200))
    assert w.grad[0, 0].item() == 3.0
