"""Grad mode: recording in scopes, threads, tasks and generators."""

from __future__ import annotations

import asyncio
import inspect
import threading

import numpy as np
import pytest

import minigrad as mg
from minigrad.functions import grad_modes
from minigrad.tape import grad_mode
from minigrad.tape.node import record


def leaf(values, dtype=mg.float64):
    return mg.tensor(np.asarray(values, dtype=float), dtype=dtype, requires_grad=True)


def nodes_made():
    """How many nodes there have been; this makes another."""
    return record(None, None, (), None, None).serial


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


class Interrupted:
    """A ContextVar or a list; Ctrl-C was pressed during a method, and is seen after it."""

    def __init__(self, of, method):
        self._of, self._method = of, method

    def __len__(self):
        return len(self._of)

    def __iter__(self):
        return iter(self._of)

    def __getitem__(self, place):
        return self._of[place]

    def __getattr__(self, name):
        def call(*args):
            result = getattr(self._of, name)(*args)
            if name == self._method:
                self._method = None
                raise KeyboardInterrupt
            return result

        return call


@pytest.mark.parametrize("manager", [mg.no_grad, mg.enable_grad])
@pytest.mark.parametrize("method", ["append", "pop"])
def test_a_mode_that_is_interrupted_is_over(manager, method):
    recording = manager is mg.no_grad
    with (mg.enable_grad if recording else mg.no_grad)():
        mode = manager()
        mode._scopes = Interrupted(mode._scopes, method)
        with pytest.raises(KeyboardInterrupt), mode:
            pass
        assert mg.is_grad_enabled() is recording


def test_a_mode_is_over_that_is_interrupted_when_it_is_set(monkeypatch):
    count = len(grad_mode.no_grad_scopes)
    monkeypatch.setattr(grad_mode, "_scope", Interrupted(grad_mode._scope, "set"))
    with pytest.raises(KeyboardInterrupt), mg.no_grad():
        pytest.fail("it was not entered")
    assert mg.is_grad_enabled()
    assert len(grad_mode.no_grad_scopes) == count


def test_a_mode_is_over_that_is_interrupted_when_it_is_counted(monkeypatch):
    kept = list(grad_mode.no_grad_scopes)
    monkeypatch.setattr(grad_mode, "no_grad_scopes", Interrupted(kept, "append"))
    with pytest.raises(KeyboardInterrupt), mg.no_grad():
        pytest.fail("it was not entered")
    assert mg.is_grad_enabled()
    assert not kept


def test_a_decorated_function_leaves_no_mode_behind_when_its_end_is_interrupted(monkeypatch):
    def interrupted(scope):
        raise KeyboardInterrupt

    off = mg.no_grad(lambda: mg.is_grad_enabled())
    with monkeypatch.context() as patch:
        patch.setattr(grad_modes, "end", interrupted)
        with pytest.raises(KeyboardInterrupt):
            off()
    assert mg.is_grad_enabled()
    with mg.no_grad():
        assert len(grad_mode.no_grad_scopes) == 1  # what the interrupt left is forgotten
    assert not grad_mode.no_grad_scopes


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
    scope, depth = grad_mode._scope.get(), 0
    while scope is not None:
        scope, depth = scope.outer, depth + 1
    assert depth <= 2
    running.close()
    assert (x * 2).requires_grad


def test_decorated_generators_record_nothing_while_they_run():
    x, left = leaf(2.0), []

    @mg.no_grad()
    def generator(n):
        try:
            for k in range(n):
                try:
                    sent = yield k, (x * k).requires_grad
                except KeyError:
                    sent = yield "caught", mg.is_grad_enabled()
                assert sent is None or sent == k
            return "done"
        finally:
            left.append(mg.is_grad_enabled())

    assert list(generator(2)) == [(0, False), (1, False)]
    running = generator(3)
    assert next(running) == (0, False)
    assert (x * 2).requires_grad  # between its steps all is recorded
    assert running.send(0) == (1, False)
    assert running.throw(KeyError("x")) == ("caught", False)
    assert next(running) == (2, False)
    with pytest.raises(StopIteration) as stop:
        next(running)
    assert stop.value.value == "done"
    running = generator(3)
    next(running)
    running.close()
    running = generator(3)
    next(running)
    with pytest.raises(ValueError, match="thrown"):
        running.throw(ValueError("thrown"))
    assert left == [False] * 4
    assert mg.is_grad_enabled()


def test_decorated_coroutines_record_nothing_while_they_run():
    x, seen = leaf(2.0), []

    @mg.no_grad()
    async def inside(n):
        await asyncio.sleep(0)
        seen.append((x * n).requires_grad)
        await asyncio.sleep(0)
        return n

    async def outside():
        for _ in range(4):
            seen.append((x * 2).requires_grad)
            await asyncio.sleep(0)

    async def main():
        return await asyncio.gather(inside(3), outside())

    assert inspect.iscoroutinefunction(inside)
    assert asyncio.run(main()) == [3, None]
    assert sorted(seen) == [False, True, True, True, True]
    assert mg.is_grad_enabled()


def test_no_grad_refuses_asynchronous_generators():
    async def generator():
        yield

    with pytest.raises(TypeError, match="generator is an asynchronous generator: use"):
        mg.no_grad()(generator)


def test_backward_under_no_grad():
    x = leaf(2.0)
    y = x * x
    with mg.no_grad():
        y.backward()
    assert x.grad.item() == 4.0
    assert not x.grad.requires_grad


def test_nothing_that_a_backward_runs_is_recorded_unless_it_makes_a_graph():
    w = leaf(3.0)
    seen = []

    class Times(mg.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 3

        @staticmethod
        def backward(ctx, g):
            seen.append(mg.is_grad_enabled())
            return w  # what the user returns may have a history

    def hook(g):
        seen.append(mg.is_grad_enabled())
        return w

    x = leaf(2.0)
    for graph in (False, True):
        y = Times.apply(x * 1.0)
        y.register_hook(hook)
        z = y * 1.0 + y
        before = nodes_made()
        (found,) = mg.grad(z, x, grad_outputs=w, create_graph=graph)
        assert found.requires_grad is graph
        assert (nodes_made() == before + 1) is not graph
        assert seen == [graph, graph]
        seen.clear()
    assert mg.is_grad_enabled()


def test_what_requires_grad():
    x = leaf([1.0, 2.0])
    assert x.is_leaf
    assert x.grad_fn is None
    y = x * 2
    assert not y.is_leaf
    assert y.requires_grad
    assert y.grad_fn.name() == "mul"
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


def test_set_grad_enabled_in_a_block():
    with mg.set_grad_enabled(False):
        assert not mg.is_grad_enabled()
        with mg.set_grad_enabled(True):
            assert mg.is_grad_enabled()
        assert not mg.is_grad_enabled()
    assert mg.is_grad_enabled()
    assert not grad_mode.no_grad_scopes


def test_set_grad_enabled_from_here_on():
    for _ in range(3):
        mg.set_grad_enabled(False)
        assert not mg.is_grad_enabled()
        assert not (mg.tensor(1.0, requires_grad=True) * 2).requires_grad
        with mg.enable_grad():
            assert mg.is_grad_enabled()
        mg.set_grad_enabled(False)
        assert len(grad_mode.no_grad_scopes) == 1
        mg.set_grad_enabled(True)
        assert (mg.tensor(1.0, requires_grad=True) * 2).requires_grad
        assert not grad_mode.no_grad_scopes


def test_set_grad_enabled_ends_with_the_block_it_is_called_in():
    with mg.no_grad():
        mg.set_grad_enabled(True)
        assert mg.is_grad_enabled()
    assert mg.is_grad_enabled()
    assert not grad_mode.no_grad_scopes
    with mg.enable_grad():
        mg.set_grad_enabled(False)
        assert not mg.is_grad_enabled()
    assert mg.is_grad_enabled()
    assert not grad_mode.no_grad_scopes


def test_set_grad_enabled_as_a_decorator():
    @mg.set_grad_enabled(False)
    def enabled():
        return mg.is_grad_enabled()

    assert mg.is_grad_enabled()
    assert not enabled()
    assert mg.is_grad_enabled()


def test_inference_mode_is_no_grad():
    with mg.inference_mode():
        assert not mg.is_grad_enabled()

    @mg.inference_mode()
    def enabled():
        return mg.is_grad_enabled()

    assert not enabled()
    assert mg.is_grad_enabled()
