"""Search for the operation whose derivative is wrong, by numeric tangents of all results.

Let f be run at x - h u and x + h u. The results of each operation then show its tangent along u.
A node with upstream gradient g, result y and inputs x_i pushes on the gradients g_i. Its rule is
right if <g, dy> = sum <g_i, dx_i>. The differences of the two sides, summed over the nodes of a
backward pass, are the error of the gradient along u. The node with the largest one is to blame.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Callable, Sequence
from math import nan
from threading import get_ident
from typing import Any, NamedTuple

import numpy as np

from minigrad.autograd.bundle import Bundle
from minigrad.autograd.graph import _plain
from minigrad.autograd.steps import NodeStep, node_steps
from minigrad.checking.inputs import Array, values_of
from minigrad.functions.creation import tensor, to_numpy
from minigrad.ops.table import Row
from minigrad.runtime.native import Array as Handle
from minigrad.runtime.native import trace
from minigrad.tape.engine import topological_order
from minigrad.tape.node import Node, record
from minigrad.tape.tensor_base import TensorBase, parent_of

__all__ = ["suspect"]


class _Mark:
    """The operation of nodes that only tell how far the serials have come."""

    name = "mark"


_MARK = _Mark()


class _Call(NamedTuple):
    """One call of a kernel: copies of the arrays that it took, and of its result."""

    arrays: list[Array]
    result: Array


class _Recording:
    """The calls of kernels of one run of a function, by the age of the nodes around them."""

    def __init__(self, run: Callable[[], Any]) -> None:
        self.serials: list[int] = []
        self.calls: list[_Call] = []
        self.thread = get_ident()
        self.busy = False
        with trace(self._note):
            self.output = run()
        root = self.output._edge
        self.nodes = topological_order([root]) if isinstance(root, Node) else []

    def _note(self, name: str, args: tuple[Any, ...], made: Any) -> None:
        if self.busy or get_ident() != self.thread or not isinstance(made, Handle):
            return
        self.busy = True  # copying calls kernels too
        try:
            each = [x for a in args for x in (a if isinstance(a, (list, tuple)) else (a,))]
            arrays = [np.array(to_numpy(x)) for x in each if isinstance(x, Handle)]
            self.calls.append(_Call(arrays, np.array(to_numpy(made))))
            self.serials.append(record(_MARK, None, (), None, None).serial)
        finally:
            self.busy = False

    def call_of(self, node: Node) -> _Call | None:
        """The last call before a node was recorded: for a row of the op table, that made it."""
        place = bisect(self.serials, node.serial) - 1
        return self.calls[place] if place >= 0 and type(_plain(node.op)) is Row else None

    def values(self) -> list[Array | None]:
        """The result of each node, None where it is not known."""
        found: dict[Node, Array] = {}
        if self.nodes:
            found[self.nodes[-1]] = values_of(self.output)
        for node in reversed(self.nodes):
            call = self.call_of(node)
            if call is None:
                continue
            found.setdefault(node, call.result)
            for parent, values in zip(node.parents or (), self.inputs(node), strict=False):
                if isinstance(parent, Node) and type(_plain(parent.op)) is not Row:
                    found.setdefault(parent, values)
        return [found.get(node) for node in self.nodes]

    def inputs(self, node: Node) -> list[Array]:
        """What the node's inputs were, if its row is one kernel that takes these and no more."""
        call = self.call_of(node)
        count = len(node.parents or ())
        if call is None or _plain(node.op).kernel < 0 or len(call.arrays) != count:
            return []
        return call.arrays


def suspect(
    run_at: Callable[[float], Callable[[], Any]],
    x: Any,
    u: Array,
    v: Array,
    step: float,
    off: float,
) -> str:
    """What is to blame for an error ``off`` of <v, J u>, or an empty text.

    ``run_at(t)`` gives a function that computes the output with the input x moved by t u.
    """
    edge = parent_of(x)
    here = _Recording(run_at(0.0))
    if not here.nodes:
        return ""
    seed = tensor(v, here.output.dtype)
    steps = list(node_steps(here.nodes[-1], seed, frozenset([edge])))  # before x is moved
    left, right = (_Recording(run_at(t)) for t in (-step, step))
    names = [[node.op.name for node in run.nodes] for run in (here, left, right)]
    if names[0] != names[1] or names[0] != names[2]:
        return ""
    tangents: dict[Any, Array] = {}
    for node, a, b in zip(here.nodes, left.values(), right.values(), strict=True):
        if a is not None and b is not None and a.shape == b.shape:
            tangents[node] = (b - a) / (2 * step)
    tangents[edge] = u
    found = _blame(steps, tangents, off)
    if isinstance(found, str):
        return found
    place = here.nodes.index(found.node)
    before, after = left.inputs(left.nodes[place]), right.inputs(right.nodes[place])
    for i, (parent, a, b) in enumerate(zip(found.node.parents or (), before, after, strict=False)):
        if parent is None and not np.array_equal(a, b, equal_nan=True):
            return (
                f"; operand {i} of the operation {found.node.op.name!r} varies with this input but "
                "needs no gradient: its graph was lost, as by detach() or numpy()"
            )
    return (
        f"; the suspect is the operation {found.node.op.name!r}: its rule gives "
        f"{found.pushed:.10g} along this direction, differences of its result {found.arrives:.10g}"
    )


class _Fault(NamedTuple):
    """A node, and both sides of what should be equal there."""

    node: Any = None
    arrives: float = 0.0
    pushed: float = 0.0

    @property
    def size(self) -> float:
        return abs(self.arrives - self.pushed)


def _blame(steps: Sequence[NodeStep], tangents: dict[Any, Array], off: float) -> _Fault | str:
    """The node whose two sides differ most, if that is half of the error; else what may be."""
    bundled: dict[Node, float] = {}  # what reaches a Function with several outputs, by its node
    worst, unknown = _Fault(), []
    for node, g, gradients in steps:
        if type(g) is Bundle:
            arrives = bundled.get(node)
        else:
            arrives = _inner(g, tangents[node]) if node in tangents else None
        pushed: float | None = 0.0
        for parent, gi in zip(node.parents or (), gradients, strict=True):
            if type(gi) is Bundle:
                bundled[parent] = bundled.get(parent, 0.0) + (nan if arrives is None else arrives)
                pushed = arrives
            elif gi is not None:
                part = _part(gi, parent, tangents)
                pushed = None if part is None or pushed is None else pushed + part
        if arrives is None or pushed is None:
            unknown.append(node.op.name)
        elif (fault := _Fault(node, arrives, pushed)).size > worst.size:
            worst = fault
    if worst.size > off / 2:
        return worst
    hooked = [step.node.op.name for step in steps if step.node.hooks]
    if hooked:
        return f"; the suspect is a hook of the result of {hooked[0]!r}"
    if unknown:
        listed = ", ".join([repr(name) for name in dict.fromkeys(unknown)][:4])
        return f"; the suspects are operations that cannot be checked one by one: {listed}"
    return ""


def _part(g: Any, parent: Any, tangents: dict[Any, Array]) -> float | None:
    """<g, dx> for one input; None if the tangent of the input is not known."""
    if isinstance(parent, Node) and parent not in tangents:
        return None
    # A leaf that is not moved has no tangent.
    return _inner(g, tangents[parent]) if parent in tangents else 0.0


def _inner(g: Any, tangent: Array) -> float | None:
    if not isinstance(g, TensorBase) or g.shape != tangent.shape:
        return None
    return float(np.vdot(values_of(g), tangent))
