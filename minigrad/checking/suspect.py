"""Search for the operation whose derivative is wrong, by numeric tangents of all results.

Let f be run at x - h u and x + h u. The results of each operation then show its tangent along u.
A node with upstream gradient g, result y and inputs x_i pushes on the gradients g_i. Its rule is
right if <g, dy> = sum <g_i, dx_i>. The differences of the two sides, summed over the nodes of a
backward pass, are the error of the gradient along u. The node with the largest one is to blame.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Callable, Sequence
from math import isfinite
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
from minigrad.runtime.native import names, trace
from minigrad.tape.engine import topological_order
from minigrad.tape.node import Node, record
from minigrad.tape.tensor_base import parent_of

__all__ = ["first_difference", "suspect"]


_MOST_NAMED = 4  # operations in a report
# Kernels that make an array for NumPy to write, or of what NumPy made.
_OF_NUMPY = ("borrow", "empty")


class _Mark:
    """The operation of nodes that only tell how far the serials have come."""

    name = "mark"


_MARK = _Mark()


class _Call(NamedTuple):
    """One call of a kernel: its name, what it took, and its result; arrays are copies."""

    name: str
    numbers: list[float]
    arrays: list[Array]
    result: Array | None  # None where it made no array, or several


class _Recording:
    """The calls of kernels of one run of a function, by the age of the nodes around them."""

    def __init__(self, run: Callable[[], Any]) -> None:
        self.serials: list[int] = []
        self.calls: list[_Call] = []
        self.thread = get_ident()
        self.busy = False
        with trace(self._note):
            self.output = run()
        self.result = values_of(self.output)  # now: it may be a view of what is moved
        root = self.output._edge
        self.nodes = topological_order([root]) if isinstance(root, Node) else []

    def _note(self, name: str, args: tuple[Any, ...], made: Any) -> None:
        if self.busy or get_ident() != self.thread:
            return
        self.busy = True  # copying calls kernels too
        try:
            each = [x for a in args for x in (a if isinstance(a, (list, tuple)) else (a,))]
            arrays = [np.array(to_numpy(x)) for x in each if isinstance(x, Handle)]
            result = np.array(to_numpy(made)) if isinstance(made, Handle) else None
            numbers = [x for x in args if isinstance(x, (int, float))]
            self.calls.append(_Call(name, numbers, arrays, result))
            self.serials.append(record(_MARK, None, (), None, None).serial)
        finally:
            self.busy = False

    def call_of(self, node: Node) -> _Call | None:
        """The call right before a node of the op table was recorded, if that made its result."""
        place, row = bisect(self.serials, node.serial) - 1, _plain(node.op)
        if type(row) is not Row or place < 0 or self.serials[place] + 1 != node.serial:
            return None
        call = self.calls[place]
        expected = names[row.kernel] if row.kernel >= 0 else call.name
        return call if call.name == expected and call.name not in _OF_NUMPY else None

    def values(self) -> list[Array | None]:
        """The result of each node, None where it is not known."""
        found: dict[Node, Array] = {}
        if self.nodes:
            found[self.nodes[-1]] = self.result
        for node in reversed(self.nodes):
            call = self.call_of(node)
            if call is None:
                continue
            if call.result is not None:
                found.setdefault(node, call.result)
            for parent, values in zip(node.parents or (), self.inputs(node), strict=False):
                if isinstance(parent, Node) and type(_plain(parent.op)) is not Row:
                    found.setdefault(parent, values)
        return [found.get(node) for node in self.nodes]

    def inputs(self, node: Node) -> list[Array]:
        """The values of a node's inputs, if its row is one kernel that takes these and no more."""
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
    """The report of what is to blame for an error ``off`` of <v, J u>, or an empty text.

    ``run_at(t)`` gives a function that computes the output with the input x moved by t u.
    """
    edge = parent_of(x)
    here = _Recording(run_at(0.0))
    if not here.nodes:
        return ""
    seed = tensor(v, here.output.dtype)
    steps = list(node_steps(here.nodes[-1], seed, frozenset([edge])))  # before x is moved
    if not steps:
        return ""
    left, right = (_Recording(run_at(t)) for t in (-step, step))
    first, *others = ([node.op.name for node in run.nodes] for run in (here, left, right))
    if any(other != first for other in others):
        return ""
    tangents: dict[Any, Array] = {}
    for node, a, b in zip(here.nodes, left.values(), right.values(), strict=True):
        if a is not None and b is not None and a.shape == b.shape:
            tangents[node] = (b - a) / (2 * step)
    tangents[edge] = u
    groups = _groups(steps, tangents)
    fault = max(groups, key=lambda group: group.size)
    if fault.size > off / 2:
        return _lost(fault, here, left, right) or fault.text()
    hooked = [step.node.op.name for step in steps if step.node.hooks]
    return f"; the suspect is a hook of the result of {hooked[0]!r}" if hooked else ""


def first_difference(run: Callable[[], Any]) -> str:
    """The kernel that first gives two results of the same values when a function runs twice.

    It is empty if there is none, as where the program itself does other things.
    """
    for a, b in zip(*[_Recording(run).calls for _ in range(2)], strict=False):
        if a.name != b.name or len(a.arrays) != len(b.arrays):
            break
        pairs = zip(a.arrays, b.arrays, strict=True)
        same = a.numbers == b.numbers and all(_equal(x, y) for x, y in pairs)
        if same and a.name != "empty" and not _equal(a.result, b.result):
            return a.name
    return ""


def _equal(a: Array | None, b: Array | None) -> bool:
    if a is None or b is None:
        return a is b
    return np.array_equal(a, b, equal_nan=True)


class _Group:
    """Nodes between which no tangent is known, and both sides of what should be equal there."""

    def __init__(self, node: Node) -> None:
        self.nodes = [node]
        self.arrives = 0.0
        self.pushed = 0.0

    @property
    def size(self) -> float:
        """The difference of the two sides; 0 where a tangent is not finite."""
        size = abs(self.arrives - self.pushed)
        return size if isfinite(size) else 0.0

    def text(self) -> str:
        """The report of an operation whose rule is wrong, or of several, one of which has one."""
        ops = [_plain(node.op) for node in self.nodes]
        # An output of a Function with several does nothing by itself.
        named = dict.fromkeys([repr(op.name) for op in ops if not hasattr(op, "place")])
        sides = (
            f"{self.pushed:.10g} along this direction, differences of its result "
            f"{self.arrives:.10g}"
        )
        if len(named) == 1:
            return f"; the suspect is the operation {next(iter(named))}: its rule gives {sides}"
        listed = ", ".join([*named][:_MOST_NAMED])
        return f"; the suspects are the operations {listed}: together their rules give {sides}"


def _groups(steps: Sequence[NodeStep], tangents: dict[Any, Array]) -> list[_Group]:
    """The nodes of a backward pass, those together that a result without a tangent connects."""
    of = {step.node: _Group(step.node) for step in steps}
    for node, g, gradients in steps:
        if type(g) is not Bundle and _fits(node, g, tangents):
            of[node].arrives += _inner(g, tangents[node])
        for parent, gi in zip(node.parents or (), gradients, strict=True):
            if gi is None:
                continue
            if type(gi) is not Bundle and _fits(parent, gi, tangents):
                of[node].pushed += _inner(gi, tangents[parent])
            elif parent in of:
                _join(of, node, parent)
            # The tangent of any other leaf is 0.
    return list({id(group): group for group in of.values()}.values())


def _join(of: dict[Node, _Group], a: Node, b: Node) -> None:
    """Put the groups of two nodes together."""
    first, second = of[a], of[b]
    if first is second:
        return
    first.nodes += second.nodes
    first.arrives += second.arrives
    first.pushed += second.pushed
    of.update(dict.fromkeys(second.nodes, first))


def _fits(edge: Any, g: Any, tangents: dict[Any, Array]) -> bool:
    return edge in tangents and tangents[edge].shape == g.shape


def _inner(g: Any, tangent: Array) -> float:
    return float(np.vdot(values_of(g), tangent))


def _lost(fault: _Group, here: _Recording, left: _Recording, right: _Recording) -> str:
    """A report of an operand of the one node that moved although it needs no gradient."""
    for node in fault.nodes if len(fault.nodes) == 1 else ():
        place = here.nodes.index(node)
        before, after = left.inputs(left.nodes[place]), right.inputs(right.nodes[place])
        for i, (parent, a, b) in enumerate(zip(node.parents or (), before, after, strict=False)):
            if parent is None and not np.array_equal(a, b, equal_nan=True):
                return (
                    f"; operand {i} of the operation {node.op.name!r} varies with this input but "
                    "needs no gradient: its graph was lost, as by detach() or numpy()"
                )
    return ""
