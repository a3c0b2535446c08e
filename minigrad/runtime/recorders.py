"""The recorder of a thread: what the layers below ``mg.compile`` tell it.

A recorder writes down the kernel calls of a function. Some values do not come from kernels: random
numbers, options of an optimizer, NumPy's memory. Code that makes such values says so here.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar

__all__ = [
    "RecordingError",
    "active",
    "constant",
    "drawn",
    "give_up",
    "repeated",
    "stepped",
    "unrecorded",
]

T = TypeVar("T")


class RecordingError(RuntimeError):
    """A value is read of which a recorded program has none yet."""


class _Own(threading.local):
    recorder: Any = None


own = _Own()
running: list[Any] = []  # the recorders of all threads; empty for programs that record nothing


def active() -> Any:
    """The recorder of this thread, or None."""
    return own.recorder if running else None


def give_up(op: str, why: str) -> None:
    """Tell the recorder that no program can repeat what this thread does."""
    recorder = active()
    if recorder is not None:
        recorder.give_up(op, why)


def drawn(make: Callable[[], T]) -> T:
    """The tensor that ``make`` draws. A recorded program calls ``make`` for each run."""
    recorder = active()
    return make() if recorder is None else recorder.draw(make)


def constant(x: T) -> T:
    """A tensor of Python's numbers. A recorded program keeps its values."""
    recorder = active()
    if recorder is not None:
        recorder.keep(x)
    return x


def stepped(move: Any) -> None:
    """Tell the recorder that the last kernel call is a step of an optimizer."""
    recorder = active()
    if recorder is not None:
        recorder.step(move)


def repeated(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method that changes Python's state alone. A recorded program calls it for each run."""

    @functools.wraps(method)
    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        recorder = active()
        if recorder is None:
            return method(self, *args, **kwargs)
        return recorder.repeat(functools.partial(method, self, *args, **kwargs))

    return run


def unrecorded() -> AbstractContextManager[None]:
    """Context manager: what this thread computes is not recorded."""
    recorder = active()
    return nullcontext() if recorder is None else recorder.paused()
