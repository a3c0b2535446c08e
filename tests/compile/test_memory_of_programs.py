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
