"""The recorder of a thread: what the layers below ``mg.compile`` tell it.

A recorder writes down the kernel calls of a function. Some values do not come from kernels: random
numbers, options of an optimizer, NumPy's memory. Code that makes such values says so here.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

__all__ = [
    "RecordingError",
    "active",
    "cached",
    "constant",
    "drawn",
    "drawn_again",
    "draws_from",
    "draws_so_far",
    "give_up",
    "live",
    "live_before",
    "repeated",
    "stepped",
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


def draws_so_far() -> Any:
    """The draws of this recording from the shared generator, in order; None if none is recorded."""
    recorder = active()
    return None if recorder is None or recorder.failed else recorder.draws_made


@contextmanager
def drawn_again(draws: Sequence[Any], go_back: Callable[[], Any]) -> Iterator[None]:
    """Context manager: the shared generator's next draws are these of the same recording.

    ``go_back`` sets the generator to where it was before them. It is called if others are drawn,
    and the recorder gives up.
    """
    with active().drawn_again(draws, go_back):
        yield


def draws_from(generator: Any) -> None:
    """Tell the recorder that numbers come from a generator, or from the shared one for None."""
    recorder = active()
    if recorder is not None:
        recorder.draws(generator)


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


def live(numbers: list[float], turn: Any) -> list[Any]:
    """Numbers that tensors are computed with. While recording they are 0-d tensors.

    A recorded program asks ``turn.renew()`` for the numbers of each run. That gives the numbers and
    a function to call after the run, or None if the program does not fit. ``turn.written`` are the
    tensors that the run writes with the numbers.
    """
    recorder = active()
    return numbers if recorder is None else recorder.live(numbers, turn)


def live_before() -> list[Any]:
    """The turns whose numbers this recording has so far."""
    recorder = active()
    return [] if recorder is None else [x.turn for x in recorder.events if hasattr(x, "turn")]


def cached(size: int) -> Callable[[Callable[..., T]], Callable[..., T]]:
    """``lru_cache`` for functions that make arrays. A recorder sees them made, and none is kept."""

    def decorate(make: Callable[..., T]) -> Callable[..., T]:
        kept = functools.lru_cache(size)(make)

        @functools.wraps(make)
        def found(*args: Any) -> T:
            return make(*args) if running and active() is not None else kept(*args)

        return found

    return decorate


def repeated(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method that changes Python's state alone. A recorded program calls it for each run."""

    @functools.wraps(method)
    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        recorder = active()
        if recorder is None:
            return method(self, *args, **kwargs)
        return recorder.repeat(functools.partial(method, self, *args, **kwargs))

    return run
