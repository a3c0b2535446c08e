"""Pictures of a graph, drawn by Graphviz."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from minigrad._c import lib, saved_handle, shape_of
from minigrad.creation import to_numpy
from minigrad.ops.table import Row
from minigrad.scalar import Value
from minigrad.tape.engine import topological_order
from minigrad.tape.node import Node
from minigrad.tape.tensor_base import TensorBase

if TYPE_CHECKING:
    import graphviz

__all__ = ["draw_graph"]

_LEAF = {"shape": "ellipse", "style": "filled", "fillcolor": "palegreen"}
_CONSTANT = {"shape": "ellipse", "style": "filled", "fillcolor": "lightgray"}
_OPERATION = {"shape": "box", "style": "filled", "fillcolor": "lightblue"}
_RESULT = {"shape": "ellipse"}


def draw_graph(y: Any, names: Mapping[str, Any] | None = None) -> graphviz.Digraph:
    """The graph that ``y`` (a Tensor, Variable or Value) was computed by, as a graphviz.Digraph.

    Leaves that require a gradient are green, constants gray and operations blue boxes. Numbers are
    shown with their value and, once there is one, their gradient; arrays with their shape.
    ``names`` maps labels to tensors, and a Value that has a label is shown with it.

    Raises ImportError where the Python package graphviz is missing, TypeError for other objects,
    RuntimeError where the graph was freed by a backward. Rendering needs Graphviz's ``dot``::

        mg.draw_graph(y, {"x": x}).render("graph", format="png")
    """
    try:
        import graphviz
    except ImportError:
        raise ImportError(
            "[draw_graph] drawing needs the Python package graphviz: pip install graphviz; "
            "to render, it needs Graphviz's program dot as well (apt install graphviz)"
        ) from None
    result = _tensor_of(y)
    if result is None:
        raise TypeError(f"[draw_graph] expected a Tensor or a Value, not {type(y).__name__}")
    labels = {id(_tensor_of(x)): name for name, x in (names or {}).items()}
    if isinstance(y, Value) and y.label:
        labels[id(result)] = y.label
    graph = graphviz.Digraph("graph", graph_attr={"rankdir": "LR"})
    if not isinstance(result._edge, Node):
        style = _CONSTANT if result._edge is None else _LEAF
        graph.node("y", _text(result, labels), **style)
        return graph
    ids: dict[Any, str] = {}
    for node in _nodes(result._edge):
        name = ids[node] = f"op{len(ids)}"
        graph.node(name, node.op.name, **_OPERATION)
        for place, parent in enumerate(node.parents or ()):
            if parent is None:
                source = f"{name}_{place}"
                graph.node(source, _constant_text(node, place), **_CONSTANT)
            else:
                if parent not in ids:  # a leaf: nodes come after what they were made of
                    ids[parent] = f"leaf{len(ids)}"
                    graph.node(ids[parent], _text(parent, labels), **_LEAF)
                source = ids[parent]
            graph.edge(source, name)
    graph.node("y", _text(result, labels), **_RESULT)
    graph.edge(ids[result._edge], "y")
    return graph


def _tensor_of(x: Any) -> Any:
    if isinstance(x, Value):
        return x.tensor
    return x if isinstance(x, TensorBase) else None


def _nodes(last: Node) -> list[Node]:
    """The operations in order; RuntimeError if some were freed."""
    try:
        return topological_order([last])
    except RuntimeError:
        raise RuntimeError(
            "[draw_graph] the graph was freed by backward: draw it before, "
            "or call backward(retain_graph=True)"
        ) from None


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
    return f"{shape_of(handle)}"


def _constant_text(node: Node, place: int) -> str:
    """What is known of an input without a gradient: the tape keeps only what derivatives take."""
    arity = node.op.arity if isinstance(node.op, Row) else 0
    pointwise = arity and node.op.family == "pointwise"
    if pointwise and node.saved is not None and lib.mg_saved_buffer(node.saved, place):
        with suppress(RuntimeError):  # overwritten since
            return _value_text(saved_handle(node.saved, place))
    if node.input_meta is not None:
        return f"constant {node.input_meta[place][0]}"
    return "constant"
