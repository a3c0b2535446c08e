"""The description of a recorded call for the accelerator, which then makes the call by itself.

``csrc/python/replay.c`` reads the description, and says what its parts are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import is_dataclass
from functools import partial
from typing import Any

from minigrad._compile.arguments import HOLE, filled
from minigrad._compile.program import Misfit
from minigrad._compile.recorder import Live, Step
from minigrad._compile.surroundings import Check
from minigrad.nn.module import changes
from minigrad.runtime import recorders
from minigrad.runtime.accelerator import speed
from minigrad.runtime.batched import running as vmaps
from minigrad.runtime.dtypes import defaults
from minigrad.runtime.native import kernels
from minigrad.tape.hooks import hook_changes, watchers
from minigrad.tape.node import LEAF
from minigrad.tape.tensor_base import TensorBase, result_type

__all__ = ["replay_of", "values_of"]

_FROM_TENSOR, _FROM_GRAD, _FROM_CONSTANT = range(3)
_LEFT = {"made": 0, "living": 1, "argument": 2, "captured": 2, "grad": 3}
_EDGE_NONE, _EDGE_LEAF, _EDGE_NODE, _EDGE_CONSTANT = range(4)
_MOVE, _ACT = range(2)
_MOST_VALUES = 64
_UNSTEADY = {"numbers": ...}  # options that may change unseen, so that numbers are always renewed
_CONTAINERS = (tuple, list, dict)
_OPERATIONS = (
    kernels.program_run,
    kernels.program_accepts,
    kernels.program_take,
    kernels.program_end,
)


def values_of(given: Sequence[Any]) -> list[tuple[int, Any]] | None:
    """The kind of edge of each argument, or its value; None if an argument is of another kind."""
    found: list[tuple[int, Any]] = []
    for x in given:
        if type(x) is result_type():
            found.append((_edge_kind(x._edge), None))
        elif x is None or type(x) in (bool, int, float, str):
            found.append((_EDGE_CONSTANT, x))
        else:
            return None
    return found


def _edge_kind(edge: Any) -> int:
    if edge is None:
        return _EDGE_NONE
    return _EDGE_LEAF if edge is LEAF else _EDGE_NODE


def replay_of(recorded: Any) -> Any:
    """The same call by the accelerator; None if it is of a kind that needs the way in Python.

    It returns Ellipsis if the call does not fit.
    """
    one = recorded
    if speed is None or one.options.verify or one.values is None or len(one.values) > _MOST_VALUES:
        return None
    if one._moved or one.links or one._merged:
        return None
    if one._history is not None and one._history.is_chained:
        return None
    if len(set(one._pattern)) < len(one._pattern) or one._template is ...:
        return None
    values: list[tuple[int, Any]] = list(one.values)
    places: list[int] = []
    for k, (kind, _) in enumerate(one.values):
        if kind != _EDGE_CONSTANT:
            values[k] = kind, one.surroundings.tensors.get(one._own[len(places)])
            places.append(k)

    def at(target: Any) -> Any:
        return places[target] if type(target) is int else target

    def leaf(target: Any, without: bool | None, edge: Any) -> tuple[Any, ...]:
        return at(target), without, _edge_kind(edge)

    leaves = [leaf(*given) for given in one._given_grads]
    watched = zip(one._watched, one._without, one._edges, strict=True)
    leaves += [leaf(x, without, edge) for x, without, edge in watched]
    sources = [(_FROM_TENSOR, at(x)) for x in (*one._arguments, *one._captured)]
    sources += [(_FROM_GRAD, at(x)) for x in one._with_grad]
    sources += [(_FROM_CONSTANT, x) for x in one._constants]
    left = [(_LEFT[source], at(x) if _LEFT[source] > 1 else x, e) for source, x, e in one.left]
    return speed.Replay(
        (
            one.program.address,
            tuple(values),
            one.names,
            (recorders.running, vmaps, watchers),
            one.records,
            tuple(_guards(one)),
            tuple(leaves),
            tuple(sources),
            tuple([_event(one, *pair) for pair in zip(one._events, one.moves, strict=True)]),
            tuple(one.program.results),
            _history(one, at),
            tuple(left),
            tuple([(at(x), place) for x, place in one._grads]),
            tuple(one._outputs),
            _filling(one._template, one._reached),
            one._ways_back if one.acts else None,
            tuple(one._undo),
            one.stopped,
            tuple(map(at, one.cleared)),
            _OPERATIONS,
        )
    )


def _filling(template: Any, reached: set[int]) -> Any:
    """How the accelerator fills a template: an Ellipsis for each hole, values and containers."""
    try:
        return _parts(template, reached)
    except TypeError:
        return partial(filled, template, reached=reached)


def _parts(x: Any, reached: set[int]) -> Any:
    if x is HOLE:
        return ...
    if id(x) in reached and not isinstance(x, tuple):
        return (x,)
    if type(x) in _CONTAINERS:
        items = x.values() if type(x) is dict else x
        found = tuple([_parts(item, reached) for item in items])
        return _CONTAINERS.index(type(x)), found, tuple(x) if type(x) is dict else None
    if isinstance(x, _CONTAINERS) or is_dataclass(x):
        raise TypeError
    return (x,)


def _guards(one: Any) -> list[tuple[Any, ...]]:
    found = [check for guard in one.guards for check in guard.checks()]
    found.append((Check.ITEM, vars(hook_changes), "count", one.hooks))
    found.append((Check.ITEM, vars(changes), "count", one.changes))
    found.append((Check.ITEM, defaults, 0, defaults[0]))
    for step in one.moves:
        if isinstance(step, Step):
            found += [(Check.ITEM, held, key, held[key]) for held, key in step.move.places]
    return found


def _event(one: Any, event: Callable[..., Any], step: Any) -> tuple[Any, ...]:
    """An event: a kind, a function, and what the accelerator knows of an optimizer's step."""
    if step is None:
        return _ACT, partial(_acted, event), None, (), 0, 0, -1
    if isinstance(step, Live):
        return _MOVE, partial(_renewed, event), _UNSTEADY, (), 0, len(one.places_of(step)), -1
    move, reals = step.move, len(step.floats)
    place = move.step_at - reals if move.step_at >= 0 else -1
    count = len(move.options) - reals
    return _MOVE, partial(_renewed, event), move.group, move.counted, count, reals, place


def _acted(event: Callable[..., Any]) -> Any:
    """The tensor that an event drew, or None."""
    done: list[Any] = []
    event([], [], done)
    return done[0] if isinstance(done[0], TensorBase) else None


def _renewed(event: Callable[..., Any], ints: list[int], floats: list[float]) -> Any:
    """The note of an optimizer's step; Ellipsis if there is no such step now."""
    try:
        return event(ints, floats)
    except Misfit:
        return ...


def _history(one: Any, at: Callable[[Any], Any]) -> tuple[Any, ...] | None:
    """The graph that a call leaves: its operation, what it keeps, where it ends, its results."""
    history = one._history
    if history is None:
        return None
    groups = [-1 if place < 0 else one._kept[place] for group in history.groups for place in group]
    loose = [one._kept[place] for place in history.loose]
    ends = [at(x) for x in history.ends]
    return (
        history.op,
        tuple(groups),
        tuple(loose),
        tuple(ends),
        tuple(history.outputs),
        tuple(one._living),
    )
