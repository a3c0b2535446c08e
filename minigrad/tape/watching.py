"""Watchers: tools that are told of every kernel, and of every node of a backward pass.

As long as a watcher is on, kernels are traced, and the nodes that a pass may reach stand in for
themselves: their operation is a :class:`WatchedOp` until the pass ends.
"""

from __future__ import annotations

import threading
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from minigrad.ops.table import Row
from minigrad.runtime.batched import BatchedArray
from minigrad.runtime.caller import caller
from minigrad.runtime.native import tracers
from minigrad.tape.hooks import watchers
from minigrad.tape.node import Gradient, Node, Parent, next_serial
from minigrad.tape.tensor_base import TensorBase, wrap
from minigrad.tape.vjp import rules

__all__ = [
    "SourceLines",
    "WatchedOp",
    "Watcher",
    "lines",
    "recorded",
    "watched_pass",
]


class _Here(threading.local):
    """Whether a watcher runs in this thread."""

    busy = False


_here = _Here()


class Watcher:
    """A tool that is told of kernels and nodes, of all threads, between ``begin`` and ``end``.

    Kernels that a watcher calls itself are told to nobody.
    """

    wants_lines = False  # whether ``lines`` shall know the source lines of nodes

    def begin(self) -> None:
        """Watch from here on."""
        lines.watchers += self.wants_lines
        tracers.append(self._traced)
        watchers.append(self)

    def end(self) -> None:
        """Watch no longer."""
        tracers.remove(self._traced)
        watchers.remove(self)
        lines.watchers -= self.wants_lines
        if self.wants_lines and not lines.watchers:
            lines.end()

    def _traced(self, name: str, args: tuple[Any, ...], made: Any) -> None:
        if _here.busy:
            return
        place = lines.note() if self.wants_lines else None
        _run_alone(self.on_kernel, name, args, made, place)

    def on_kernel(self, name: str, args: tuple[Any, ...], made: Any, place: Any) -> None:
        """A kernel ran on these arguments; ``place`` is the file and line, if those are wanted."""

    def on_record(self, out: TensorBase) -> None:
        """The result of a row of the op table has a node now."""

    def before_node(self, node: Node, g: Gradient) -> None:
        """The pass is about to run the rule of a node on its gradient."""

    def after_node(self, node: Node, g: Gradient, made: Sequence[Any] | None) -> None:
        """The rule made these gradients of the inputs; None if it failed."""


def _run_alone(method: Callable[..., None], *args: Any) -> None:
    try:
        _here.busy = True
        method(*args)
    finally:
        _here.busy = False


def recorded(out: TensorBase) -> None:
    """Tell the watchers of a result that has a node now."""
    if not _here.busy:
        for watcher in tuple(watchers):
            _run_alone(watcher.on_record, out)


class WatchedOp:
    """The operation of a node, while a pass with watchers runs; else it is as that operation."""

    def __init__(self, op: Any) -> None:
        self.op = op

    def __getattr__(self, name: str) -> Any:
        return getattr(self.op, name)

    @property
    def jvp(self) -> Any:
        """The rule of forward mode, if it is not a row's formulas; those want a row."""
        return None if type(self.op) is Row else getattr(self.op, "jvp", None)

    def vjp(self, node: Node, g: Gradient) -> Sequence[Any]:
        """The rule that records nothing."""
        return self._run(node, g, 0)

    def graph_vjp(self, node: Node, g: Gradient) -> Sequence[Any]:
        """The rule that leaves a graph."""
        return self._run(node, g, 1)

    def _run(self, node: Node, g: Gradient, which: int) -> Sequence[Any]:
        told = () if _here.busy else tuple(watchers)
        return _told(told, node, g, lambda: rules(self.op)[which](node, g))


def _told(
    told: tuple[Watcher, ...], node: Node, g: Gradient, rule: Callable[[], Sequence[Any]]
) -> Sequence[Any]:
    """Run the rule of a node. A watcher is told of its end though another one fails."""
    if not told:
        return rule()
    first, *others = told
    made, shown = None, _with_all_slices(g)
    _run_alone(first.before_node, node, shown)
    try:
        made = _told(tuple(others), node, g, rule)
    finally:
        results = None if made is None else [_with_all_slices(gi) for gi in made]
        _run_alone(first.after_node, node, shown, results)
    return made


def _with_all_slices(g: Any) -> Any:
    """A gradient; a batched one as an ordinary tensor with all slices."""
    array: Any = g._h if isinstance(g, TensorBase) else None
    if type(array) is not BatchedArray:
        return g
    while type(array) is BatchedArray:
        array = array.held
    return wrap(array)


@contextmanager
def watched_pass(roots: Sequence[Parent]) -> Iterator[None]:
    """The watchers are told of the nodes that a backward pass from these roots comes to."""
    mine = []
    waiting = [] if _here.busy else [edge for edge in roots if type(edge) is Node]
    seen = set(waiting)
    while waiting:
        node = waiting.pop()
        if type(node.op) is not WatchedOp:  # as in a pass within a pass
            node.op = WatchedOp(node.op)
            mine.append(node)
        new = [p for p in node.parents or () if type(p) is Node and p not in seen]
        seen.update(new)
        waiting += new
    del seen, waiting
    try:
        yield
    finally:
        for node in mine:
            if type(node.op) is WatchedOp:
                node.op = node.op.op


# ---- source lines --------------------------------------------------------------------------------


class Lines:
    """The source lines that recorded nodes, found again by the nodes' age.

    A line is noted after a kernel of an operation and before its node. Of very many lines the
    older ones are forgotten.
    """

    most = 1 << 20
    watchers = 0  # that want lines

    def __init__(self) -> None:
        self._serials, self._numbers = array("q"), array("q")
        self._places: list[Any] = []
        self._number_of: dict[Any, int] = {}
        self._last: Any = None
        self._lock = threading.Lock()

    def note(self) -> tuple[str, int]:
        """Nodes that come are of the line outside this package that runs now; returns it."""
        place = caller()
        if place != self._last:
            self.mark(place)
        return place

    def end(self) -> None:
        """Nothing is known of nodes that come."""
        self.mark(None)

    def mark(self, place: Any) -> None:
        """Nodes that come are of this place, which may be anything that can be hashed."""
        with self._lock:
            self._last = place
            number = self._number_of.setdefault(place, len(self._places))
            if number == len(self._places):
                self._places.append(place)
            self._serials.append(next_serial())
            self._numbers.append(number)
            if len(self._serials) > self.most:
                del self._serials[: -self.most // 2], self._numbers[: -self.most // 2]

    def of(self, node: Node) -> Any:
        """The file and the number of the line that recorded a node; None if that is not known."""
        k = bisect_right(self._serials, node.serial) - 1
        return None if k < 0 else self._places[self._numbers[k]]


lines = Lines()


class SourceLines(Watcher):
    """Notes the source lines of what is recorded, for whoever looks at the graph later."""

    wants_lines = True
