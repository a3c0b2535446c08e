"""Attempts: calls of a function that are recorded, and the reasons why no program came of one."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator
from typing import Any

from minigrad._compile.arguments import flatten
from minigrad._compile.history import History, NoHistory, outside
from minigrad._compile.recorded import Recorded
from minigrad._compile.recorder import Recorder
from minigrad._compile.surroundings import Surroundings
from minigrad.nn import global_hooks
from minigrad.nn.module import Module, changes
from minigrad.runtime.dtypes import default_dtype
from minigrad.tape.grad_mode import is_grad_enabled
from minigrad.tape.node import LEAF, Node, next_serial, record
from minigrad.tape.tensor_base import TensorBase, grad_uses, result_type

__all__ = ["Attempt"]


class Attempt:
    """A call of a function that is recorded."""

    def __init__(
        self,
        function: Callable[..., Any],
        kind: Any,
        tensors: list[Any],
        surroundings: Surroundings,
    ) -> None:
        self.function, self.kind, self.tensors = function, kind, tensors
        self.surroundings = surroundings
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
        self.modes = is_grad_enabled(), default_dtype()
        self.before = [(x._h, x._edge, x._grad) for x in self.known]
        self.begin = next_serial()
        self.uses_grads = True  # whether the function reads or sets the grad of a tensor
        self.places = {id(x): place for place, x in enumerate(tensors)}
        # where a graph may end: the edge in the recording, and the argument or captured tensor
        self.sources: dict[Any, Any] = {}

    def run(self, args: Any, kwargs: Any) -> Any:
        """The result of the function, recorded."""
        if Module.__call__ is not global_hooks._plain:
            self.recorder.failed = "there are hooks of all modules"
        marked = self._marked()
        uses = grad_uses()
        self.recorder.begin()
        try:
            return self.function(*args, **kwargs)
        finally:
            self.recorder.end()
            self.uses_grads = grad_uses() != uses
            for x, edge, mark in marked:
                if x._edge is mark:
                    x._edge = edge
                if mark.hooks:
                    edge.hooks = [*(edge.hooks or ()), *mark.hooks]
                    mark.hooks = None
                    self.recorder.failed = f"it registers a hook on {self._name(x)}"

    def _marked(self) -> list[tuple[Any, Any, Any]]:
        """Tensors with a history, their edges, and the nodes that stand before these meanwhile.

        A backward in the function that goes on behind such a node is thereby seen.
        """
        marked = []
        for x in self.known:
            edge: Any = x
            if type(x._edge) is Node:
                edge = record(outside, None, (), None, x._edge)
                marked.append((x, x._edge, edge))
                x._edge = edge
            elif x._edge is not LEAF:
                continue
            self.sources[edge] = self.places.get(id(x), x)
        return marked

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
        views = self._views(outputs)
        shown = [*outputs, *[base for base, _ in views.values()]]
        living: list[Any] = []
        try:
            history = self._history([x for x in shown if id(x) not in views], living)
        except NoHistory as why:
            way_out = "or compile the step with its backward, or call it under no_grad"
            return None, f"{why}; {way_out}", False
        grads, moved = self._changed()
        explained = {id(x._h) for x in (*shown, *moved, *[g for _, g in grads if g is not None])}
        if history is not None:
            explained.update([id(self.recorder.values[slot].array) for slot in history.slots])
        explained.update([id(base._h) for x in outputs for base in _bases(x)])
        kept = self._survivors(explained)
        if kept:
            return (None, *self._blame(kept))
        return Recorded(self, result, shown, views, grads, moved, history, living), "", False

    def _views(self, outputs: list[Any]) -> dict[int, tuple[Any, list[Any]]]:
        """Results that are views of memory which is seen outside, by their ids.

        For each there is the tensor that it is a view of, and the rows and arguments that make it.
        This tensor is known or a result, or else all that the call has of this memory.
        """
        seen = {id(x): x for x in (*self.known, *outputs)}
        found = {}
        for x in outputs:
            if any(x is y for y in self.known) or len(getattr(x, "_alias", ())) != 3:
                continue
            if all(y is x or y._h.buffer != x._h.buffer for y in seen.values()):
                continue
            base, rows = x, list[Any]()
            alias: Any = x._alias
            while len(alias) == 3 and (base is x or id(base) not in seen):
                base, *row = alias
                rows.insert(0, row)
                alias = getattr(base, "_alias", ())
            found[id(x)] = base, rows
        return found

    def _history(self, shown: list[Any], made: list[Any]) -> History | None:
        """The graph behind tensors that are handed out, if a backward outside can go through it.

        Those that have a graph are appended to ``made``.
        """
        ids = {id(x) for x in self.known}
        for x in shown:
            if id(x) not in ids and is_living(x):
                made.append(x)
            ids.add(id(x))
        if not made:
            return None
        roots = [x._edge for x in made]
        history = History(roots, self.begin, self.recorder, self.sources)
        history.metas = [(x.shape, x.dtype) for x in made]
        return history

    def _refusal(self, outputs: list[Any], others: list[Any]) -> str:
        for x in outputs:
            if type(x) is not result_type() and not any(x is y for y in self.known):
                return f"it returns a new {type(x).__name__}"
        for x, (_, edge, grad) in zip(self.known, self.before, strict=True):
            if x._edge is not edge:
                if type(x._edge) is Node:
                    return f"it writes a tensor with a history into {self._name(x)}"
                return f"it changes whether {self._name(x)} requires a gradient"
            if x._grad is not grad and x._grad is not None and x._grad._edge is not None:
                return f"it leaves a gradient with a history in {self._name(x)}"
        if (is_grad_enabled(), default_dtype()) != self.modes:
            return "it changes the grad mode or the default dtype"
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


def is_living(x: Any) -> bool:
    """True for a result that can be differentiated."""
    return type(x._edge) is Node and bool(x._edge.parents)


def _bases(x: Any) -> Iterator[Any]:
    """The tensors that x is a view of, which it keeps."""
    alias: Any = getattr(x, "_alias", ())
    while len(alias) == 3:
        x = alias[0]
        alias = getattr(x, "_alias", ())
        yield x


def _references() -> int:
    """The references of an array that the recorder alone holds, as :func:`_survivors` counts."""
    holder = [object()]
    found = list(holder)
    return max([sys.getrefcount(x) for x in found])


_REFERENCES = _references()
