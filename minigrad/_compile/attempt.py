"""Attempts: calls of a function that are recorded, and the reasons why no program came of one."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator
from typing import Any

from minigrad._compile.arguments import form_of, is_value, parts
from minigrad._compile.history import History, NoHistory, outside
from minigrad._compile.options import PLAIN, Options
from minigrad._compile.recorded import Recorded
from minigrad._compile.recorder import Recorder
from minigrad._compile.surroundings import Surroundings, first_difference
from minigrad.nn import global_hooks
from minigrad.nn.module import Module, changes
from minigrad.optim.lr_scheduler import LRScheduler
from minigrad.runtime.dtypes import default_dtype
from minigrad.tape.grad_mode import is_grad_enabled
from minigrad.tape.hooks import hook_changes
from minigrad.tape.node import LEAF, Node, next_serial, record
from minigrad.tape.tensor_base import TensorBase, grad_uses, result_type

__all__ = ["Attempt"]


class Attempt:
    """A call of a function that is recorded.

    ``targets`` has for each known tensor its number among the arguments, or the tensor itself.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        kind: Any,
        tensors: list[Any],
        others: list[Any],
        surroundings: Surroundings,
        options: Options = PLAIN,
        recorder: Recorder | None = None,
    ) -> None:
        self.options = options
        self.function, self.kind, self.tensors, self.others = function, kind, tensors, others
        self.surroundings = surroundings
        self.recorder = Recorder() if recorder is None else recorder
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
        self.recorder.before = self._note_cleared
        self.cleared: list[Any] = []  # targets without the grad that they had, at the first kernel
        self.modes = is_grad_enabled(), default_dtype()
        self.uses_grads = True  # whether the function reads or sets the grad of a tensor
        self.begin = next_serial()
        # where a graph may end: the edge in the recording, and the argument or captured tensor
        self.sources: dict[Any, Any] = {}

    def _know(self, kind: str, array: Any, target: Any) -> None:
        count = len(self.recorder.values)
        value = self.recorder.values[self.recorder.know(kind, array, target)]
        if len(self.recorder.values) == count:
            self.merged.append(((value.kind, value.source), (kind, target)))

    def _note_cleared(self) -> None:
        before = zip(self.known, self.targets, self.before, strict=True)
        self.cleared = [t for x, t, (_, _, grad) in before if x._grad is None and grad is not None]

    def run(self, args: Any, kwargs: Any) -> Any:
        """The result of the function, recorded."""
        if Module.__call__ is not global_hooks._plain:
            self.recorder.failed = "there are hooks of all modules"
        self.arguments, self.argument_names = (*args, *kwargs.values()), tuple(kwargs)
        marked = self._marked()
        uses = grad_uses()
        self.recorder.begin()
        try:
            result = self.function(*args, **kwargs)
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
        tensors: list[Any] = []
        form = form_of(args, kwargs, tensors, [])
        same = form == self.kind[0] and list(map(id, tensors)) == list(map(id, self.tensors))
        self.own_arguments = same
        self.containers = _containers(args) | _containers(tuple(kwargs.values()))
        return result

    def _marked(self) -> list[tuple[Any, Any, Any]]:
        """Tensors with a history, their edges, and the nodes that stand before these meanwhile.

        A backward in the function that goes on behind such a node is thereby seen.
        """
        marked = []
        for x, target in zip(self.known, self.targets, strict=True):
            edge: Any = x
            if type(x._edge) is Node:
                edge = record(outside, None, (), None, x._edge)
                marked.append((x, x._edge, edge))
                x._edge = edge
            elif x._edge is not LEAF:
                continue
            self.sources[edge] = target
        return marked

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
        living: list[Any] = []
        try:
            history = self._history(outputs, living)
        except NoHistory as why:
            return (
                None,
                f"{why}: compile the step with its backward, or call it under no_grad",
                False,
            )
        grads, moved = self._changed()
        left = self._left(outputs, grads)
        explained = {id(x._h) for x in (*left, *[x for _, x in moved])}
        if history is not None:
            explained.update([id(self.recorder.values[slot].array) for slot in history.slots])
        explained.update([id(base._h) for x in outputs for base in _bases(x)])
        kept = self._survivors(explained)
        if kept:
            return (None, *self._blame(kept))
        return Recorded(self, result, outputs, left, grads, moved, history, living), "", False

    def _left(self, outputs: list[Any], grads: list[tuple[Any, Any]]) -> list[Any]:
        """Tensors that the call leaves: its results, gradients, and what results are views of."""
        waiting = [*outputs, *[g for _, g in grads if g is not None]]
        known = {id(x) for x in self.known}
        left: dict[int, Any] = {}
        while waiting:
            x = waiting.pop(0)
            left[id(x)] = x
            alias: Any = getattr(x, "_alias", ()) if id(x) not in known and not is_living(x) else ()
            base = alias[0]() if len(alias) == 1 else alias[0] if alias else None
            wanted = base is not None and (len(alias) == 3 or id(base) in known)
            if wanted and id(base) not in left:
                waiting.append(base)
        return list(left.values())

    def _history(self, outputs: list[Any], made: list[Any]) -> History | None:
        """The graph behind the results, if a backward outside can go through it.

        The results that have a graph are appended to ``made``.
        """
        shown = [*self.known]
        for x in outputs:
            if any(x is y for y in shown):
                continue
            alias = getattr(x, "_alias", None)
            others = [y for y in (*self.known, *outputs) if _shares(x, y)]
            if alias is not None and any(map(is_living, (x, *others) if others else ())):
                raise NoHistory("it returns a view of a tensor that can be seen outside")
            shown.append(x)
            if is_living(x):
                made.append(x)
        if not made:
            return None
        roots = [x._edge for x in made]
        history = History(roots, self.begin, self.recorder, self.sources)
        history.metas = [(x.shape, x.dtype) for x in made]
        history.without = self.options.without
        return history

    def _refusal(self, result: Any, outputs: list[Any], objects: list[Any]) -> str:
        known = {id(x) for x in (*self.known, *[grad for _, _, grad in self.before])}
        grads = {id(x._grad) for x in self.known}
        for x in outputs:
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
        return self.refused_changes()

    def refused_changes(self) -> str:
        """Why no program repeats what the call changed in Python; "" if there is no reason."""
        for x, (_, edge, grad) in zip(self.known, self.before, strict=True):
            if x._edge is not edge and type(x._edge) is Node:
                return f"it writes a tensor with a history into {self._name(x)}"
            if x._edge is not edge:
                return f"it changes whether {self._name(x)} requires grad"
            if x._grad is not grad and x._grad is not None and x._grad._edge is not None:
                return f"it leaves a gradient with a history in {self._name(x)}"
        if (is_grad_enabled(), default_dtype()) != self.modes:
            return "it changes the grad mode or the default dtype"
        changed = first_difference(self.surroundings.guards)
        if changed:
            return f"it changes a value in Python: {changed}"
        if changes.count != self.changes and not self.surroundings.modules_hold():
            return f"it changes a module: {self.surroundings.modules_difference()}"
        if hook_changes.count != self.hooks:
            return "it adds or removes a hook of a tensor"
        for step in self.recorder.steps:
            if step.move is not None and not self._is_ours(step.move.renew):
                return "it steps an optimizer that it made"
        for event in self.recorder.events:
            if callable(event) and not self._is_ours(event):
                return "it steps a schedule that it made"
        advanced = self.surroundings.advanced()
        if advanced:
            return f"it draws from {advanced}, which no program repeats: use mg.rand and its like"
        return self.surroundings.unknown

    def _is_ours(self, run: Any) -> bool:
        """True if a method is of an object that was there before."""
        own = getattr(run, "args", None) or (getattr(run.func, "__self__", None),)
        owner = own[0] if isinstance(own[0], LRScheduler) else getattr(run.func, "__self__", None)
        return owner is None or id(owner) in self.surroundings.reached

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


def _shares(x: Any, y: Any) -> bool:
    return x is not y and bool(x._h.buffer == y._h.buffer)


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
