"""Attempts: calls of a function that are recorded, and the reasons why no program came of one."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from typing import Any

from minigrad._compile.arguments import flatten
from minigrad._compile.recorded import Recorded
from minigrad._compile.recorder import Recorder
from minigrad._compile.surroundings import Surroundings
from minigrad.nn.module import changes
from minigrad.tape.node import Node
from minigrad.tape.tensor_base import TensorBase, result_type

__all__ = ["Attempt"]


class Attempt:
    """A call of a function that is recorded."""

    def __init__(
        self, function: Callable[..., Any], kind: Any, tensors: list[Any], others: list[Any]
    ) -> None:
        self.function, self.kind, self.tensors = function, kind, tensors
        self.surroundings = Surroundings([function, *others])
        self.recorder = Recorder()
        self.changes = changes.count
        arguments = {id(x) for x in tensors}
        captured = [x for x in self.surroundings.tensors.values() if id(x) not in arguments]
        self.known = list({id(x): x for x in (*tensors, *captured)}.values())
        for place, x in enumerate(tensors):
            self.recorder.know("argument", x._h, place)
        for x in captured:
            self.recorder.know("captured", x._h, x)
        for x in self.known:
            if x._grad is not None:
                self.recorder.know("grad", x._grad._h, x)
        self.before = [(x._h, x._edge, x._grad) for x in self.known]

    def run(self, args: Any, kwargs: Any) -> Any:
        """The result of the function, recorded."""
        self.recorder.begin()
        try:
            return self.function(*args, **kwargs)
        finally:
            self.recorder.end()

    def recorded(self, result: Any) -> tuple[Recorded | None, str, bool]:
        """The recorded call; or why there is none, and whether a second attempt may succeed."""
        if self.recorder.failed:
            return None, self.recorder.failed, False
        outputs: list[Any] = []
        others: list[Any] = []
        flatten(result, outputs, others)
        reason = self._refusal(outputs, others)
        if reason:
            return None, reason, False
        grads, moved = self._changed()
        explained = {id(x._h) for x in (*outputs, *moved, *[g for _, g in grads if g is not None])}
        kept = self._survivors(explained)
        if kept:
            return (None, *self._blame(kept))
        return Recorded(self, result, outputs, grads, moved), "", False

    def _refusal(self, outputs: list[Any], others: list[Any]) -> str:
        for x in outputs:
            if type(x._edge) is Node and x._edge.parents:
                return (
                    "it returns a tensor that can be differentiated outside: compile the step with "
                    "its backward, or call it under no_grad"
                )
            if type(x) is not result_type() and not any(x is y for y in self.known):
                return f"it returns a new {type(x).__name__}"
        for x, (_, edge, _) in zip(self.known, self.before, strict=True):
            if x._edge is not edge and type(x._edge) is Node:
                return f"it writes a tensor with a history into {self._name(x)}"
        changed = [g for g in self.surroundings.guards if not g.holds()]
        if changed:
            return f"it changes a value in Python: {changed[0].difference()}"
        if changes.count != self.changes and not self.surroundings.modules_hold():
            return f"it changes a module: {self.surroundings.modules_difference()}"
        return ""

    def _name(self, x: Any) -> str:
        return self.surroundings.names.get(id(x), "an argument")

    def _changed(self) -> tuple[list[tuple[Any, Any]], list[Any]]:
        """The tensors whose ``grad`` is another one, with it; and those with other memory."""
        grads, moved = [], []
        for x, (array, _, grad) in zip(self.known, self.before, strict=True):
            if x._grad is not grad:
                grads.append((x, x._grad))
            if x._h is not array:
                moved.append(x)
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
        after = Surroundings([self.function])
        for optimizer in after.optimizers:
            states = [v for state in optimizer.state.values() for v in state.values()]
            ids -= {id(v._h) for v in states if isinstance(v, TensorBase)}
        if not ids:
            return "the first step of an optimizer made its state", True
        names = [name for key, name in after.names.items() if id(after.tensors[key]._h) in ids]
        where = f" in {names[0]}" if names else ""
        return f"it keeps a tensor{where} that it made: return the tensor instead", False


def _references() -> int:
    """The references of an array that the recorder alone holds, as :func:`_survivors` counts."""
    holder = [object()]
    found = list(holder)
    return max([sys.getrefcount(x) for x in found])


_REFERENCES = _references()
