"""``trace_backward``: a backward pass step by step, as a table and as a structure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from minigrad.autograd.bundle import Bundle
from minigrad.autograd.expression import Term, applied, constant
from minigrad.autograd.steps import NodeStep, node_steps
from minigrad.autograd.upstream import start
from minigrad.functions.grad_modes import no_grad
from minigrad.tape.engine import topological_order
from minigrad.tape.node import Node
from minigrad.tutorial.names import names_by_id, shown, tensor_of
from minigrad.tutorial.scalar import Value

__all__ = ["trace_backward"]


class Pushed(NamedTuple):
    """A gradient that a step pushes on, and the name of the input that gets it.

    ``gradient`` is None where the operation has no derivative by this input. The outputs of a
    Function with several push a tuple, with one item for each output.
    """

    to: str
    gradient: Any


class Step(NamedTuple):
    """One step: a node, its operation, the gradient of its result, and what it pushes on."""

    name: str
    operation: str
    expression: str
    upstream: Any
    pushed: tuple[Pushed, ...]
    node: Node


class BackwardTrace:
    """The steps of a backward pass, and the gradients that the leaves get, by their names."""

    def __init__(self, steps: list[Step], gradients: dict[str, Any]) -> None:
        self.steps = steps
        self.gradients = gradients

    def __repr__(self) -> str:
        return f"<backward of {len(self.steps)} steps to {', '.join(self.gradients) or 'no leaf'}>"

    def __str__(self) -> str:
        rows = [("step", "node", "operation", "gradient", "pushed to its inputs")]
        for number, step in enumerate(self.steps, 1):
            pushed = ", ".join([f"{p.to} += {_shown(p.gradient)}" for p in step.pushed])
            node = f"{step.name} = {step.expression}"
            rows.append((str(number), node, step.operation, _shown(step.upstream), pushed))
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [
            "  ".join([text.ljust(width) for text, width in zip(row, widths, strict=True)]).rstrip()
            for row in rows
        ]
        lines.insert(1, "  ".join(["-" * width for width in widths]))
        lines += [f"gradient of {name}: {shown(g)}" for name, g in self.gradients.items()]
        return "\n".join(lines)


def trace_backward(
    y: Any, gradient: Any = None, *, names: Any = None, quiet: bool = False
) -> BackwardTrace:
    """Run a backward from ``y`` (a Tensor, Variable or Value) step by step, and print the steps.

    A step takes the youngest node that has a gradient: that has all of it. Its operation pushes a
    gradient to each input, and gradients that come to one place add up. The table has a line for
    each step, and then the gradient of each leaf. Arrays of more than 6 elements are shown by shape
    and dtype.

    ``gradient`` is the upstream gradient, 1 for a single element. ``names`` names leaves and
    results: a dict from names to tensors, or a module, whose parameters have names. Other leaves
    are x, or x1, x2 and so on; results are v1, v2 and so on, oldest first, and y. Nothing is
    printed if ``quiet``.

    The graph is kept, and no ``grad`` changes. Hooks of results are called. Returns the steps, and
    the gradients of the leaves by name.

    Raises TypeError for other objects, RuntimeError for a ``y`` without a graph or whose graph was
    freed, ValueError for a gradient of another shape.

    >>> import minigrad as mg
    >>> x = mg.tensor(2.0, requires_grad=True)
    >>> trace = mg.trace_backward(x**2 + 3 * x, names={"x": x})
    step  node         operation  gradient  pushed to its inputs
    ----  -----------  ---------  --------  --------------------
    1     y = v1 + v2  add        1         v1 += 1, v2 += 1
    2     v2 = 3 * x   mul        1         x += 3
    3     v1 = x ** 2  pow        1         x += 4
    gradient of x: 7
    >>> trace.gradients["x"]
    tensor(7.)
    """
    result = tensor_of(y)
    if result is None:
        raise TypeError(f"[trace_backward] expected a Tensor or a Value, not {type(y).__name__}")
    edge, g = start(result, gradient, "trace_backward")
    root: Any = edge
    given = names_by_id("trace_backward", names)
    if isinstance(y, Value) and y.label:
        given.setdefault(id(result), y.label)
    labels = _labels(root, given, given.get(id(result), "y"))
    steps: list[Step] = []
    totals: dict[Any, Any] = {}
    for step in node_steps(root, g) if isinstance(root, Node) else ():
        steps.append(_step(step, labels))
        for parent, gi in zip(step.node.parents or (), step.gradients, strict=True):
            if gi is not None and not isinstance(parent, Node):
                totals[parent] = _sum(totals[parent], gi) if parent in totals else gi
    if not isinstance(root, Node):
        totals[root] = g
    trace = BackwardTrace(steps, {labels[id(leaf)]: g for leaf, g in totals.items()})
    if not quiet:
        print(trace)
    return trace


@no_grad
def _sum(a: Any, b: Any) -> Any:
    return a + b


def _labels(root: Any, given: Mapping[int, str], last: str) -> dict[int, str]:
    """A name for each node and leaf, by its ``id``; no name twice."""
    nodes = topological_order([root]) if isinstance(root, Node) else []
    leaves = {}
    for node in nodes:
        for parent in node.parents or ():
            if parent is not None and not isinstance(parent, Node):
                leaves[id(parent)] = parent
    if not nodes:
        leaves[id(root)] = root
    taken = {*given.values(), last}
    labels = {key: given[key] for key in leaves if key in given}
    unnamed = [key for key in leaves if key not in labels]
    fresh = ["x"] if len(unnamed) == 1 and "x" not in taken else _numbered("x", unnamed, taken)
    labels.update(zip(unnamed, fresh, strict=True))
    results = [id(node) for node in nodes[:-1]]
    labels.update(zip(results, _numbered("v", results, {*taken, *labels.values()}), strict=True))
    if nodes:
        labels[id(nodes[-1])] = last
    return labels


def _numbered(letter: str, things: list[int], taken: set[str]) -> list[str]:
    """Names x1, x2 and so on, as many as there are things, without those that are taken."""
    count = len(things) + len(taken)
    free = [f"{letter}{k}" for k in range(1, count + 1) if f"{letter}{k}" not in taken]
    return free[: len(things)]


def _step(step: NodeStep, labels: Mapping[int, str]) -> Step:
    node = step.node
    parents = node.parents or ()
    terms = [
        constant(node, i) if parent is None else Term(labels[id(parent)])
        for i, parent in enumerate(parents)
    ]
    pushed = tuple(
        Pushed(labels[id(parent)], _parts(g))
        for parent, g in zip(parents, step.gradients, strict=True)
        if parent is not None
    )
    text = applied(node, terms).text
    return Step(labels[id(node)], node.op.name, text, _parts(step.upstream), pushed, node)


def _parts(g: Any) -> Any:
    """A gradient; for a Function with several outputs a tuple with that of each, or None."""
    if not isinstance(g, Bundle):
        return g
    return tuple([g.parts.get(k) for k in range(max(g.parts) + 1)])


def _shown(g: Any) -> str:
    return f"({', '.join(map(shown, g))})" if isinstance(g, tuple) else shown(g)
