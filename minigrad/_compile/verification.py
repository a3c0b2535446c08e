"""Verified calls: a program and its function, both run on the same state and compared bit for bit.

The program runs first. Its results and the state that it left are copied, and the state from before
is put back. Then the function runs, and each of its kernels is recorded with a copy of its results.
The function's state and results stay. If something differs, the program runs once more with a copy
after each step, and the first step with another result than the function's kernel is named.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from minigrad._compile.arguments import is_value, parts
from minigrad._compile.attempt import Attempt
from minigrad._compile.cost import members_of, title
from minigrad._compile.differences import copied, difference_of
from minigrad._compile.located import Run, Watching, first_difference_of, name_at, other_step
from minigrad._compile.plan import Plan
from minigrad._compile.planner import improved
from minigrad._compile.program import Misfit
from minigrad._compile.snapshot import State
from minigrad._compile.surroundings import Surroundings
from minigrad.functions.creation import tensor
from minigrad.runtime.lazy_numpy import np
from minigrad.tape.engine import gradients
from minigrad.tape.node import Node
from minigrad.tape.tensor_base import TensorBase

__all__ = ["verified"]

_COTANGENT = (0.5, -1.25, 2.0, 0.25, -0.75, 1.5, 1.0)  # repeated


class _Found(NamedTuple):
    """A difference: the place, what differs there, and the function's array if there is one."""

    place: str
    text: str
    array: Any = None


def verified(recorded: Any, tensors: list[Any], others: list[Any], args: Any, kwargs: Any) -> Any:
    """The function's result, after the program of a recorded call was compared with it.

    Raises RuntimeError if anything differs that the two leave, Misfit if the program does not fit,
    and the function's error if both fail.
    """
    state = State(recorded, tensors)
    before = state.take()
    result, error, results = None, None, list[Any]()
    try:
        result = recorded.run(tensors, args, kwargs)
        results = _copies(result, recorded)
    except Misfit:
        state.restore(before)
        raise
    except Exception as failure:
        error = failure
    after = state.take()
    state.restore(before)
    attempt = Attempt(
        recorded.function,
        recorded.kind,
        tensors,
        others,
        Surroundings([recorded.function, *others]),
        recorder=Watching(),
    )
    try:
        returned = attempt.run(args, kwargs)
    except Exception as failure:
        if error is not None:
            raise
        text = f"the program has a result and the function raises {type(failure).__name__}"
        raise _error(recorded, f"{text}: {failure}") from failure
    if error is not None:
        text = f"the function has a result and the program raises {type(error).__name__}"
        raise _error(recorded, f"{text}: {error}") from error
    changed = other_step(recorded, attempt.recorder) or attempt.refused_changes()
    if changed:
        raise _error(recorded, f"the function is no longer what was recorded: {changed}")
    left = state.take()
    found = _other_result(recorded, results, returned)
    if found is None:
        other = state.difference(after, left)
        found = None if other is None else _Found(*other)
    if found is not None:
        where = _where(recorded, attempt, state, before, found)
        raise _error(recorded, f"{found.place} differs: {found.text}\n  {where}")
    text = _other_gradient(recorded, attempt, result, returned)
    if text:
        raise _error(recorded, text)
    return returned


def _error(recorded: Any, text: str) -> RuntimeError:
    name = getattr(recorded.function, "__name__", type(recorded.function).__name__)
    return RuntimeError(f"[compile] verify: {name}: {text}")


# ---- results -------------------------------------------------------------------------------------


class _Copy(NamedTuple):
    """A tensor of the program's result, and a copy of its values at the time."""

    tensor: Any
    array: Any


def _copies(result: Any, recorded: Any) -> list[Any]:
    """The values in a result, with copies of tensors, whose memory may be written again."""
    return [
        _Copy(x, copied(x._h)) if isinstance(x, TensorBase) else x
        for x in parts(result, recorded._reached)
    ]


def _other_result(recorded: Any, program: list[Any], returned: Any) -> _Found | None:
    """The first part of the result that differs."""
    function = list(parts(returned, recorded._reached))
    if len(program) != len(function):
        text = f"the program gives {len(program)} values and the function {len(function)}"
        return _Found("the result", text)
    known = {id(x) for x in recorded.surroundings.tensors.values()}
    for place, (first, second) in enumerate(zip(program, function, strict=True)):
        name = "the result" if len(program) == 1 else f"result {place}"
        if not isinstance(first, _Copy) or not isinstance(second, TensorBase):
            alike = first is second or (is_value(first) and repr(first) == repr(second))
            if not alike:
                return _Found(name, f"the program gives {first!r} and the function {second!r}")
            continue
        other = difference_of(first.array, second._h)
        if other is not None:
            return _Found(name, other, second._h)
        if first.tensor is not second and {id(first.tensor), id(second)} & known:
            return _Found(name, "one is a tensor that the function reaches, the other is new")
        if (first.tensor._edge is None) != (second._edge is None):
            words = ["does not require", "requires"]
            was, now = [words[x._edge is not None] for x in (first.tensor, second)]
            return _Found(name, f"that of the program {was} grad, that of the function {now} it")
    return None


# ---- where a difference begins -------------------------------------------------------------------


def _where(recorded: Any, attempt: Any, state: State, before: Any, found: _Found) -> str:
    """Sentences that name the first step whose result differs from the function's kernel."""
    left = state.take()

    def run(plan: Plan) -> Run:
        state.restore(before)
        ints, floats, done = list[int](), list[float](), list[Any]()
        for event in recorded._events:
            event(ints, floats, done)
        drawn = [x._h for x in done if isinstance(x, TensorBase)]
        given = [*recorded._arrays(state.tensors), *drawn]
        writes = recorded.program.writes
        return Run(recorded.steps, recorded._order, plan, given, ints, floats, writes)

    constants, without = recorded.constant_slots, recorded.options.without
    try:
        text = _first(run, recorded.plan, constants, without, attempt.recorder)
    finally:
        state.restore(left)
    if text:
        return text
    slot = None if found.array is None else attempt.recorder.slot_of(found.array)
    line = name_at(attempt.recorder, slot)
    if line:
        return f"No kernel differs, but the program lacks {line}, or leaves something else"
    return "No kernel differs: the program leaves something else than it computes"


def _first(
    run: Callable[[Plan], Run], plan: Plan, constants: range, without: Any, recorder: Any
) -> str:
    """Sentences that name the first step of a plan that differs, or "".

    A plan with chains runs without them too, since the results inside a chain are not seen.
    """
    found = first_difference_of(run(plan), recorder)
    if found is None:
        return ""
    alone = None
    if any(map(members_of, plan.steps)):
        apart = improved(plan.start or plan, constants, {*without, "fuse_elementwise"})
        alone = first_difference_of(run(apart), recorder)
    if alone is not None:
        inside = alone.step.name in members_of(found.step)
        more = f". It is in {title(found.step)}" if inside else ""
        return f"The first kernel that differs is {alone.text}{more}"
    more = ". Its kernels one by one do not differ" if members_of(found.step) else ""
    return f"The first kernel that differs is {found.text}{more}"


# ---- gradients outside ---------------------------------------------------------------------------


def _other_gradient(recorded: Any, attempt: Any, result: Any, returned: Any) -> str:
    """A sentence on the first gradient of a backward outside that differs, or ""."""
    history = recorded._history
    if history is None or history.is_chained:  # a chained one has the function's own nodes
        return ""
    roots: dict[int, tuple[Any, Any]] = {}
    shown = [
        [x for x in parts(one, recorded._reached) if isinstance(x, TensorBase)]
        for one in (result, returned)
    ]
    for place, *pair in zip(recorded._outputs, *shown, strict=True):
        source, number, _ = recorded.left[place]
        if source == "living" and all(type(x._edge) is Node for x in pair):
            roots[number] = pair[0], pair[1]
    if len(roots) != len(history.roots):
        return ""
    chosen = [roots[k] for k in range(len(roots))]
    edges = {id(x) if type(x) is not int else x: edge for edge, x in attempt.sources.items()}
    ends = [edges.get(x if type(x) is int else id(x)) for x in history.ends]
    edge = chosen[0][0]._edge
    node = edge if len(chosen) == 1 else next(iter(edge.parents or ()), None)
    if type(node) is not Node or node.op is not history.op:
        return ""  # a question had another answer, so the function itself made the result
    try:
        expected = gradients(
            [x._edge for _, x in chosen], _cotangents(chosen), True, False, set(ends), ends=True
        )
        program = _by_program(history, node, chosen)
    except RuntimeError:  # something that is saved was overwritten: the real backward says so
        return ""
    for end, target, first in zip(ends, history.ends, program, strict=True):
        second = expected.get(end)
        name = f"the gradient of {recorded.name_of(target)} by a backward outside"
        if first is None or second is None:
            if first is not second:
                which = "program" if first is None else "function"
                return f"{name} differs: that of the {which} is None"
            continue
        text = difference_of(first._h, second._h)
        if text is not None:
            where = _where_in_pass(history, node, chosen)
            return f"{name} differs: {text}\n  {where}" if where else f"{name} differs: {text}"
    return ""


def _where_in_pass(history: Any, node: Any, chosen: list[Any]) -> str:
    """Sentences that name the first step of a recorded backward pass that differs, or ""."""
    upstream = _cotangents(chosen)
    for one in history.passes():
        given, recorder = one.given(history, node.saved, upstream), Watching()
        key = tuple(range(len(upstream)))
        if given is None or not history.know(recorder, key, node.saved, upstream):
            continue
        history.watched(recorder, node, node.saved, upstream)
        if [x.number for x in one.steps] != [x.number for x in recorder.steps]:
            continue

        def run(plan: Plan, one: Any = one, given: Any = given) -> Run:
            return Run(one.steps, one.order, plan, given, [], [], False)

        text = _first(run, one.plan, one.constants, history.without, recorder)
        if text:
            return text
    return ""


def _by_program(history: Any, node: Any, chosen: list[Any]) -> list[Any]:
    """The gradients by the recorded backward pass, which is recorded first if there is none."""
    count = len(history.passes())
    found: list[Any] = history.backward(node, _cotangents(chosen), False)
    if len(history.passes()) != count:
        found = history.backward(node, _cotangents(chosen), False)
    return found


def _cotangents(chosen: list[Any]) -> list[Any]:
    """Gradients for the results: some numbers, always the same."""
    return [tensor(np.resize(np.array(_COTANGENT), x.shape), dtype=x.dtype) for x, _ in chosen]
