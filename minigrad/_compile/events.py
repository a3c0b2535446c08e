"""Events of recorded calls: what runs in Python before the program does.

An event appends the live integers and floats of a step to two lists, and what it drew to a third.
It returns what to call after the run, or None.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minigrad._compile.program import Misfit
from minigrad._compile.recorder import Step

__all__ = ["Event", "act_event", "live_event", "move_event"]

Event = Callable[..., Any]  # of the lists of live integers and floats, and of what was done


def move_event(step: Step) -> Event:
    """The event that reads the numbers of an optimizer's step anew."""
    reals = len(step.floats)
    renew = step.move.renew

    def event(ints: list[int], floats: list[float], done: Any = None) -> Any:
        move = _renewed(renew)
        options = move.options
        ints.extend(map(int, options[reals:]))
        floats.extend(map(float, options[:reals]))
        return move.note

    return event


def live_event(turn: Any, places: list[int]) -> Event:
    """The event that asks a turn for the numbers of a run. The program has those at ``places``."""
    renew = turn.renew

    def event(ints: list[int], floats: list[float], done: Any = None) -> Any:
        numbers, note = _renewed(renew)
        floats.extend([numbers[place] for place in places])
        return note

    return event


def _renewed(renew: Callable[[], Any]) -> Any:
    """The numbers that an optimizer gives for a run, and the function to call after it.

    Raises Misfit for another step than the recorded one, and for options or a state out of range.
    The function itself then runs, and its error tells more than one of this call.
    """
    try:
        found = renew()
    except Exception:
        raise Misfit from None
    if found is None:
        raise Misfit
    return found


def act_event(run: Callable[[], Any]) -> Event:
    """The event that draws, or does something else in Python."""

    def event(ints: list[int], floats: list[float], done: list[Any]) -> None:
        done.append(run())

    return event
