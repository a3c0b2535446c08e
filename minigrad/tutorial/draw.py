"""Drawings of a graph: leaves, constants, operations, and modules as boxes that open."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from minigrad.autograd.expression import constant
from minigrad.autograd.steps import node_steps
from minigrad.functions.creation import ones_like, to_numpy
from minigrad.functions.grad_modes import enable_grad
from minigrad.nn.calls import ModuleCall, check_depth, run_model, unchanged, watched_calls
from minigrad.nn.module import Module
from minigrad.runtime.dtypes import by_code
from minigrad.runtime.native import Saved, saved_handle
from minigrad.tape.engine import topological_order
from minigrad.tape.node import Node
from minigrad.tape.tensor_base import TensorBase
from minigrad.tutorial.dot import Drawing, quoted
from minigrad.tutorial.names import names_by_id, tensor_of
from minigrad.tutorial.scalar import Value

__all__ = ["draw_graph"]

_LEAF = "shape=ellipse style=filled fillcolor=palegreen"
_CONSTANT = "shape=ellipse style=filled fillcolor=lightgray"
_OPERATION = "shape=box style=filled fillcolor=lightblue"
_MODULE = "shape=box3d style=filled fillcolor=wheat"
_RESULT = "shape=ellipse"


def draw_graph(
    y: Any, names: Any = None, *, inputs: Any = None, depth: int | None = 1, shapes: bool = True
) -> Drawing:
    """The graph that ``y`` (a Tensor, Variable or Value) was computed by, or that of a module.

    Leaves that require a gradient are green, constants gray and operations blue boxes. Numbers are
    shown with their value and, once there is one, their gradient; arrays with their shape and
    dtype. An operation on arrays shows its result's shape and dtype, and the bytes that it holds
    for backward, operands and parameters among them. ``names`` names leaves: a dict from names to
    tensors, or a module, whose parameters have names. A Value that has a label is shown with it.

    If ``y`` is a module, it is run on ``inputs``: a tensor, a tuple of arguments or a dict of
    keyword arguments. Its modules are boxes with their output, their number of parameters and the
    bytes that they save. ``depth`` is how many levels of them are open: 0 for one box, 1 for the
    parts of the model, None for all operations. Buffers and the random generator are as before.

    The shapes are those of the gradients of a backward, which runs without hooks and changes no
    ``grad``; ``shapes=False`` leaves it out. The result has the DOT text as ``source``, and
    notebooks show it as a picture if Graphviz's ``dot`` is installed::

        mg.draw_graph(y, {"x": x}).render("graph", format="png")

    Raises TypeError for other objects, ValueError for a negative ``depth``, RuntimeError where
    the graph was freed by a backward.

    >>> import minigrad as mg
    >>> x = mg.tensor(2.0, requires_grad=True)
    >>> picture = mg.draw_graph(x * x, {"x": x})
    >>> print(picture.source.splitlines()[4].strip())
    op0 [label="mul" shape=box style=filled fillcolor=lightblue]
    >>> model = mg.nn.Sequential(mg.nn.Linear(2, 8), mg.nn.Tanh())
    >>> mg.draw_graph(model, inputs=mg.ones(1, 2)).source.count("box3d")
    2
    """
    check_depth("draw_graph", depth)
    if isinstance(y, Module):
        with unchanged(y), enable_grad(), watched_calls(y) as (calls, _):
            given = _needing_grad(inputs)
            output = run_model(y, given)
        results = [x for x in _tensors(output) if isinstance(x._edge, Node)]
        labels = names_by_id("draw_graph", y) | names_by_id("draw_graph", names)
        for place, x in enumerate(_tensors(given)):
            labels.setdefault(id(x), "input" if place == 0 else f"input {place}")
        picture = _Picture(results, labels, shapes, calls, depth)
        return picture.drawing(list(_tensors(output)), list(_tensors(given)))
    result = tensor_of(y)
    if result is None:
        raise TypeError(f"[draw_graph] expected a Tensor, a Value or a Module, not {_kind(y)}")
    labels = names_by_id("draw_graph", names)
    if isinstance(y, Value) and y.label:
        labels[id(result)] = y.label
    return _Picture([result], labels, shapes).drawing([result])


def _kind(x: Any) -> str:
    return type(x).__name__


def _tensors(value: Any) -> Iterable[Any]:
    """The tensors in lists, tuples and dicts."""
    if isinstance(value, TensorBase):
        yield value
    elif isinstance(value, Mapping):
        yield from _tensors(list(value.values()))
    elif isinstance(value, (list, tuple)):
        for x in value:
            yield from _tensors(x)


def _needing_grad(value: Any) -> Any:
    """The inputs with floats that require grad, so that the graph leads to them."""
    if isinstance(value, TensorBase):
        x: Any = value.detach()  # type: ignore[attr-defined]
        trains = x.dtype.is_floating_point and not x.dtype.is_storage
        return x.requires_grad_() if trains else x
    if isinstance(value, Mapping):
        return {key: _needing_grad(x) for key, x in value.items()}
    if isinstance(value, (list, tuple)):
        parts = [_needing_grad(x) for x in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    return value


class _Picture:
    """The lines of a drawing: a graph's nodes, each an operation or part of a module's box."""

    def __init__(
        self,
        results: list[Any],
        labels: Mapping[int, str],
        shapes: bool,
        calls: list[ModuleCall] | None = None,
        depth: int | None = None,
    ) -> None:
        self.labels = labels
        self.calls = calls or []
        self.depth = depth
        self.nodes = _nodes([x._edge for x in results if isinstance(x._edge, Node)])
        self.kinds = _kinds(results) if shapes else {}
        self.boxes = self.closed()
        self.drawn: dict[Any, str] = {}  # the names of nodes, leaves and calls
        self.arrows: list[tuple[str, str]] = []
        self.within: dict[ModuleCall | None, list[str]] = {}  # the lines of an open module

    def drawing(self, outputs: list[Any], inputs: Iterable[Any] = ()) -> Drawing:
        """The whole picture of what led to the outputs."""
        for node in self.nodes:
            box = self.boxes.get(node)
            if box is None:
                self.operation(node)
            elif box not in self.drawn:
                self.module(box)
        for node in self.nodes:
            self.connect(node)
        self.connect_inputs(inputs)
        for place, y in enumerate(outputs):
            self.result("y" if len(outputs) == 1 else f"y{place}", y)
        arrows = [f"\t{source} -> {target}" for source, target in self.arrows]
        return Drawing(["\tgraph [rankdir=LR]", *self.nested(None, "\t"), *arrows])

    # ---- modules ----

    def closed(self) -> dict[Node, ModuleCall]:
        """The closed module that a node is drawn in; none for one that is drawn itself."""
        found = {}
        for node in self.nodes:
            chain = self.chain(node)
            if self.depth is not None and len(chain) > self.depth:
                found[node] = chain[self.depth]
        return found

    def chain(self, node: Node) -> list[ModuleCall]:
        """The calls during which a node was recorded, outermost first."""
        around = [call for call in self.calls if call.first < node.serial < call.last]
        return around[-1].around() if around else []

    def module(self, call: ModuleCall) -> None:
        """A closed module."""
        name = self.drawn[call] = f"op{len(self.drawn)}"
        lines = [_title(call), *[_kind_text(x.shape, x.dtype) for x in _tensors(call.output)]]
        count = sum([p.size for p in call.module.parameters()])
        if count:
            lines.append(f"{count:,} parameters")
        lines += _saved_text([node for node, box in self.boxes.items() if box is call])
        self.put(call.outer, name, "\n".join(lines), _MODULE)

    def put(self, call: ModuleCall | None, name: str, label: str, style: str) -> None:
        """A line within the cluster of an open module, or outside of all."""
        line = f"{name} [label={quoted(label)} {style}]"
        self.within.setdefault(call, []).append(line)

    def nested(self, call: ModuleCall | None, indent: str) -> list[str]:
        """The lines in an open module, and those of the modules in it."""
        lines = [indent + line for line in self.within.get(call, ())]
        for place, inner in enumerate(self.calls):
            if inner.outer is not call:
                continue
            body = self.nested(inner, indent + "\t")
            if not body:
                continue
            lines.append(f"{indent}subgraph cluster_{place} {{")
            lines.append(f"{indent}\tlabel={quoted(_title(inner))}")
            lines += [*body, f"{indent}}}"]
        return lines

    # ---- operations and leaves ----

    def operation(self, node: Node) -> None:
        """An operation by itself, with its constants."""
        chain = self.chain(node)
        call = chain[-1] if chain else None
        name = self.drawn[node] = f"op{len(self.drawn)}"
        for place, parent in enumerate(node.parents or ()):
            if parent is None:
                self.put(call, f"{name}_{place}", _constant_text(node, place), _CONSTANT)
                self.arrows.append((f"{name}_{place}", name))
            elif not isinstance(parent, Node):
                self.leaf(parent)
        lines = [node.op.name]
        if node in self.kinds and self.kinds[node][0]:
            lines += [_kind_text(*self.kinds[node]), *_saved_text([node])]
        self.put(call, name, "\n".join(lines), _OPERATION)

    def leaf(self, leaf: Any) -> str:
        """A leaf, once."""
        if leaf not in self.drawn:
            self.drawn[leaf] = f"leaf{len(self.drawn)}"
            self.put(None, self.drawn[leaf], _text(leaf, self.labels), _LEAF)
        return self.drawn[leaf]

    def connect(self, node: Node) -> None:
        """Arrows to a node: one for each input, but a closed module gets one from each source."""
        box = self.boxes.get(node)
        target = self.drawn[node if box is None else box]
        for parent in node.parents or ():
            if parent is None:
                continue
            if isinstance(parent, Node):
                source = self.drawn[self.boxes.get(parent, parent)]
            elif box is not None and any(p is parent for p in box.module.parameters()):
                continue  # it counts among the module's parameters
            else:
                source = self.leaf(parent)
            inside = box is not None and (source == target or (source, target) in self.arrows)
            if not inside:
                self.arrows.append((source, target))

    def connect_inputs(self, inputs: Iterable[Any]) -> None:
        """Inputs without a gradient, as of an embedding, lead to the modules that get them."""
        for place, x in enumerate(inputs):
            takers = [call for call in self.drawn if isinstance(call, ModuleCall)]
            takers = [call for call in takers if id(x) in call.inputs]
            if x in self.drawn or not takers:
                continue
            self.put(None, f"input{place}", _text(x, self.labels), _CONSTANT)
            self.arrows += [(f"input{place}", self.drawn[call]) for call in takers]

    def result(self, name: str, y: Any) -> None:
        """An output, behind the operation or module that made it."""
        if not isinstance(y._edge, Node):
            style = _CONSTANT if y._edge is None else _LEAF
            self.put(None, name, _text(y, self.labels), style)
            return
        self.put(None, name, _text(y, self.labels), _RESULT)
        self.arrows.append((self.drawn[self.boxes.get(y._edge, y._edge)], name))


def _nodes(roots: list[Node]) -> list[Node]:
    """The operations in order; RuntimeError if some were freed."""
    try:
        return topological_order(roots)
    except RuntimeError:
        raise RuntimeError(
            "[draw_graph] the graph was freed by backward: draw it before, "
            "or call backward(retain_graph=True)"
        ) from None


def _kinds(results: list[Any]) -> dict[Node, tuple[tuple[int, ...], Any]]:
    """Shape and dtype of each node's result, which are those of its gradient."""
    found = {}
    for y in results:
        if not isinstance(y._edge, Node):
            continue
        try:
            for step in node_steps(y._edge, ones_like(y.detach()), hooks=False):
                if isinstance(step.upstream, TensorBase):
                    found[step.node] = (tuple(step.upstream.shape), step.upstream.dtype)
        except RuntimeError:  # what it saved was overwritten
            continue
    return found


# ---- texts ---------------------------------------------------------------------------------------


def _title(call: ModuleCall) -> str:
    """The name of a module within the one that holds it, and its class."""
    name, kind = call.name.rpartition(".")[2], _kind(call.module)
    return f"{name}: {kind}" if name else kind


def _kind_text(shape: Iterable[int], dtype: Any) -> str:
    return f"{tuple(shape)} {dtype.name}"


def _text(x: Any, labels: Mapping[int, str]) -> str:
    """A tensor's name, its value or shape, and its gradient if that is a number."""
    lines = [labels[id(x)]] if id(x) in labels else []
    lines.append(_value_text(x._h))
    if x.grad is not None and x.grad._h.size == 1:
        lines.append(f"grad {_value_text(x.grad._h)}")
    return "\n".join(lines)


def _value_text(handle: Any) -> str:
    if handle.size == 1:
        return f"{to_numpy(handle).item():.4g}"
    return _kind_text(handle.shape, by_code[handle.dtype])


def _constant_text(node: Node, place: int) -> str:
    """Label of an input without a gradient: the tape saves only what derivatives take."""
    text = constant(node, place).text
    if text != "c":
        return text
    if node.input_meta is not None:
        shape, dtype = node.input_meta[place]
        return f"constant\n{_kind_text(shape, by_code[dtype])}"
    return "constant"


def _saved_text(nodes: Iterable[Node]) -> list[str]:
    """The bytes that nodes save for backward, each buffer counted once; nothing for none."""
    buffers: dict[int, int] = {}
    for node in nodes:
        for saved, places in _saved(node):
            for place in range(places):
                buffer = saved.buffer(place)
                if buffer:
                    buffers[buffer] = max(buffers.get(buffer, 0), _bytes(saved, place))
    total = sum(buffers.values())
    return [f"saves {_amount(total)}"] if total else []


def _saved(node: Node) -> Iterable[tuple[Saved, int]]:
    """The saved arrays of a node: of a row, or of a Function."""
    if isinstance(node.saved, (tuple, list)):
        for kept in node.saved:
            if hasattr(kept, "pin"):
                yield kept.pin, 1
    elif isinstance(node.saved, Saved):
        yield node.saved, 3


def _bytes(saved: Saved, place: int) -> int:
    try:
        handle = saved_handle(saved, place)
    except RuntimeError:  # overwritten since
        return 0
    return int(handle.size * by_code[handle.dtype].itemsize)


def _amount(count: int) -> str:
    """Bytes in a unit that leaves few digits."""
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("KB", 1e3)):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count} B"
