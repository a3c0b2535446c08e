"""Attempts: calls of a function that are recorded, and the reasons why no program came of one."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from typing import Any

from minigrad._compile.arguments import form_of, is_value, parts
from minigrad._compile.recorded import Recorded
from minigrad._compile.recorder import Recorder
from minigrad._compile.surroundings import Surroundings, first_difference
from minigrad.nn.module import changes
from minigrad.tape.hooks import hook_changes
from minigrad.tape.node import Node
from minigrad.tape.tensor_base import TensorBase, result_type

__all__ = ["Attempt"]


class Attempt:
    """A call of a function that is recorded.

    ``targets`` has for each known tensor its number among the arguments, or the tensor itself.
    """

    def __init__(
        self, function: Callable[..., Any], kind: Any, tensors: list[Any], others: list[Any]
    ) -> None:
        self.function, self.kind, self.tensors, self.others = function, kind, tensors, others
        self.surroundings = Surroundings([function, *others])
        self.recorder = Recorder()
        self.changes, self.hooks = changes.count, hook_changes.count
        places: dict[int, int] = {}
        for place, x in enumerate(tensors):
            places.setdefault(id(x), place)
        captured = [x for x in self.surroundings.tensors.values() if id(x) not in places]
        self.known = [*[tensors[place] for place in places.values()], *captured]
        self.targets = [*places.values(), *captured]
        self.merged: list[tuple[Any, Any]] = []  # pairs of places that lie on the same memory
        for x, target in zip(self.known, self.targets, strict=True):
            self._know("captured" if target is x else "argument", x._h, target)
        for x, target in zip(self.known, self.targets, strict=True):
            if x._grad is not None:
                self._know("grad", x._grad._h, target)
        self.before = [(x._h, x._edge, x._grad) for x in self.known]

    def _know(self, kind: str, array: Any, target: Any) -> None:
        slot = self.recorder.know(kind, array, target)
        value = self.recorder.values[slot]
        if (value.kind, value.source) != (kind, target):
            self.merged.append(((value.kind, value.source), (kind, target)))

    def run(self, args: Any, kwargs: Any) -> Any:
        """The result of the function, recorded."""
        self.recorder.begin()
        try:
            result = self.function(*args, **kwargs)
        finally:
            self.recorder.end()
        tensors: list[Any] = []
        form = form_of(args, kwargs, tensors, [])
        same = form == self.kind[0] and list(map(id, tensors)) == list(map(id, self.tensors))
        self.own_arguments = same
        self.containers = _containers(args) | _containers(tuple(kwargs.values()))
        return result

    def recorded(self, result: Any) -> tuple[Recorded | None, str, bool]:
        """The recorded call; or why there is none, and whether a second attempt may succeed."""
        if self.recorder.failed:
            return None, self.recorder.failed, False
        values = list(parts(result, self.surroundings.reached))
        outputs = [x for x in values if isinstance(x, TensorBase)]
        reason = self._refusal(result, outputs, [x for x in values if not is_value(x)])
        if reason:
            return None, reason, False
        if first_difference(self.surroundings.state_guards):
            return None, "the first step of an optimizer made its state", True
        grads, moved = self._changed()
        left = self._left(outputs, grads)
        explained = {id(x._h) for x in (*left, *[x for _, x in moved])}
        kept = self._survivors(explained)
        if kept:
            return (None, *self._blame(kept))
        return Recorded(self, result, outputs, left, grads, moved), "", False

    def _left(self, outputs: list[Any], grads: list[tuple[Any, Any]]) -> list[Any]:
        """Tensors that the call leaves: its results, gradients, and what results are views of."""
        waiting = [*outputs, *[g for _, g in grads if g is not None]]
        known = {id(x) for x in self.known}
        left: dict[int, Any] = {}
        while waiting:
            x = waiting.pop(0)
            left[id(x)] = x
            alias = getattr(x, "_alias", ())
            if len(alias) == 3 and id(x) not in known and id(alias[0]) not in left:
                waiting.append(alias[0])
        return list(left.values())

    def _refusal(self, result: Any, outputs: list[Any], objects: list[Any]) -> str:
        known = {id(x) for x in (*self.known, *[grad for _, _, grad in self.before])}
        grads = {id(x._grad) for x in self.known}
        for x in outputs:
            if type(x._edge) is Node and x._edge.parents:
                return (
                    "it returns a tensor that can be differentiated outside: compile the step with "
                    "its backward, or call it under no_grad"
                )
            if id(x) in known or id(x) in grads:
                continue
            if type(x) is not result_type():
                return f"it returns a new {type(x).__name__}"
        given = self.surroundings.reached | {id(x) for x in self.others}
        for x in objects:
            if not isinstance(x, TensorBase) and id(x) not in given:
                return f"it returns a new {type(x).__name__}, which no program makes"
        if not self.own_arguments:
            return "it changes a container that it was given: return the new values instead"
        if _containers(result) & self.containers:
            return "it returns a container that it was given: make a new one"
        return self._refused_changes()

    def _refused_changes(self) -> str:
        for x, (_, edge, _) in zip(self.known, self.before, strict=True):
            if x._edge is not edge and type(x._edge) is Node:
                return f"it writes a tensor with a history into {self._name(x)}"
            if x._edge is not edge:
                return f"it changes whether {self._name(x)} requires grad"
        changed = first_difference(self.surroundings.guards)
        if changed:
            return f"it changes a value in Python: {changed}"
        if changes.count != self.changes and not self.surroundings.modules_hold():
            return f"it changes a module: {self.surroundings.modules_difference()}"
        if hook_changes.count != self.hooks:
            return "it adds or removes a hook of a tensor"
        advanced = self.surroundings.advanced()
        if advanced:
            return f"it draws from {advanced}, which no program repeats: use mg.rand and its like"
        return self.surroundings.unknown

    def _name(self, x: Any) -> str:
        return self.surroundings.names.get(id(x), "an argument")

    def _changed(self) -> tuple[list[tuple[Any, Any]], list[tuple[Any, Any]]]:
        """The places whose ``grad`` is another one, with it; and those with other memory."""
        grads, moved = [], []
        for x, target, (array, _, grad) in zip(self.known, self.targets, self.before, strict=True):
            if x._grad is not grad:
                grads.append((target, x._grad))
            if x._h is not array:
                moved.append((target, x))
        return grads, moved

    def _survivors(self, explained: set[int]) -> list[Any]:
        """Arrays made in the call that somebody still holds, and nobody hands back."""
        for _ in range(2):
            found = [
                v.array
                for v in self.recorder.values
                if v.kind in ("made", "drawn") and id(v.array) not in explained
            ]
            found = [x for x in found if sys.getrefcount(x) > _REFERENCES]
            if not found:
                return []
            gc.collect()
        return found

    def _blame(self, kept: list[Any]) -> tuple[str, bool]:
        ids = {id(x) for x in kept}
        after = Surroundings([self.function, *self.others])
        for optimizer in after.optimizers:
            states = [v for state in optimizer.state.values() for v in state.values()]
            ids -= {id(v._h) for v in states if isinstance(v, TensorBase)}
        if not ids:
            return "the first step of an optimizer made its state", True
        names = [name for key, name in after.names.items() if id(after.tensors[key]._h) in ids]
        where = f" in {names[0]}" if names else ""
        return f"it keeps a tensor{where} that it made: return the tensor instead", False


def _containers(x: Any) -> set[int]:
    """The lists and dicts in a value."""
    if isinstance(x, dict):
        return {id(x)}.union(*[_containers(item) for item in x.values()])
    if isinstance(x, (list, tuple)):
        own = {id(x)} if isinstance(x, list) else set()
        return own.union(*[_containers(item) for item in x])
    return set()


def _references() -> int:
    """The references of an array that the recorder alone holds, as :func:`_survivors` counts."""
    holder = [object()]
    found = list(holder)
    return max([sys.getrefcount(x) for x in found])


_REFERENCES = _references()
