"""Grad mode of generators and coroutines: it holds while they run, not between their steps."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Generator
from typing import Any

from minigrad.tape.grad_mode import begin, end

__all__ = ["in_steps"]


def in_steps(mode: str, enabled: bool, function: Any) -> Any:
    """A generator function, or an async function, whose steps run with recording on or off.

    Raises TypeError for an asynchronous generator; ``mode`` is the name of the decorator.
    """
    if function.__code__.co_flags & inspect.CO_ASYNC_GENERATOR:
        raise TypeError(
            f"[{mode}] {function.__name__} is an asynchronous generator: use `with {mode}():` in it"
        )
    if function.__code__.co_flags & inspect.CO_COROUTINE:

        @functools.wraps(function)
        async def awaited(*args: Any, **kwargs: Any) -> Any:
            return await _Awaited(_resumed(enabled, function(*args, **kwargs)))

        return awaited

    @functools.wraps(function)
    def generated(*args: Any, **kwargs: Any) -> Any:
        return _resumed(enabled, function(*args, **kwargs))

    return generated


def _resumed(enabled: bool, generator: Any) -> Generator[Any, Any, Any]:
    """A generator or coroutine that has this grad mode while it runs, but not between its steps."""
    step: Callable[[Any], Any] = generator.send
    given: Any = None
    while True:
        scope = begin(enabled)
        try:
            made = step(given)
        except StopIteration as stop:
            return stop.value
        finally:
            scope.open = False
            end(scope)
        try:
            step, given = generator.send, (yield made)
        except BaseException as error:  # from throw(), or GeneratorExit from close()
            step, given = generator.throw, error


class _Awaited:
    """Awaitable that runs a coroutine step by step."""

    def __init__(self, steps: Generator[Any, Any, Any]) -> None:
        self.steps = steps

    def __await__(self) -> Generator[Any, Any, Any]:
        return self.steps
