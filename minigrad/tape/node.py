"""A node of the graph: one recorded operation.

A node has one parent per input: another node, a leaf tensor, or None if the input needs no
gradient. Nodes point only to their inputs and keep only what their derivatives need. A graph has no
cycle, so reference counting frees it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from minigrad.tape.speed import accelerator

__all__ = ["LEAF", "Node", "new_node", "next_serial", "record"]

LEAF = True  # the edge of a leaf that requires a gradient, which goes to the tensor itself
Gradient = Any  # a Tensor, whose class this layer may not import
Parent = Any  # a Node, a leaf Tensor or None

_serials = itertools.count()


class Node:
    """One recorded operation, made by :meth:`record`."""

    __slots__ = ("__weakref__", "_parents", "args", "hooks", "input_meta", "op", "saved", "serial")

    # A row of the op table, or another object with a `name` and two rules. `vjp(node, g)` returns a
    # gradient or None for each input, and records nothing. `graph_vjp(node, g)` returns gradients
    # that can be differentiated again.
    op: Any
    saved: Any  # saved arrays, pinned
    args: Any  # the operation's other arguments; None once the graph was freed
    # Input metadata: (shape, code of the dtype) of each input, if an input was broadcast or cast;
    # else None. The backward pass undoes broadcast and cast.
    input_meta: tuple[Any, ...] | None
    hooks: list[Callable[[Gradient], Gradient | None]] | None
    serial: int  # age of the node: a node is younger than its parents
    _parents: tuple[Parent, ...]  # empty once the graph was freed

    @staticmethod
    def record(
        op: Any, saved: Any, args: Any, input_meta: tuple[Any, ...] | None, /, *parents: Parent
    ) -> Node:
        """A node for the operation that was just run."""
        if not parents:
            raise TypeError("record(op, saved, args, input_meta, *parents)")
        return new_node(op, saved, args, input_meta, parents)

    @property
    def parents(self) -> tuple[Parent, ...] | None:
        """The parent of each input; None once the graph was freed."""
        return self._parents or None

    @property
    def needs_grad(self) -> int:
        """Bits of the first 16 inputs. A bit is set if its input needs a gradient."""
        return sum([1 << i for i, parent in enumerate(self._parents[:16]) if parent is not None])

    def release(self) -> None:
        """Drop the parents, the saved arrays and the arguments."""
        self._parents, self.saved, self.args = (), None, None

    def name(self) -> str:
        """The name of the operation."""
        return self.op.name

    def __repr__(self) -> str:
        return f"<{self.op.name}>"


def new_node(
    op: Any, saved: Any, args: Any, input_meta: tuple[Any, ...] | None, parents: tuple[Parent, ...]
) -> Node:
    """:meth:`Node.record` with a tuple of parents. A function is faster than ``__init__``."""
    node = Node()
    node.op = op
    node.saved = saved
    node.args = args
    node.input_meta = input_meta
    node.hooks = None
    node._parents = parents
    node.serial = next(_serials)
    return node


if accelerator:
    Node, new_node = accelerator.Node, accelerator.new_node  # type: ignore[misc]
record = Node.record


def next_serial() -> int:
    """The number of a node that is made now: nodes that come are younger."""
    return record(None, None, (), None, None).serial


def _of_graph(name: str, *more: Any) -> Callable[..., Any]:
    """A method that loads ``autograd.graph`` and calls the function of this name there."""

    def method(node: Node, *args: Any) -> Any:
        from minigrad.autograd import graph

        return getattr(graph, name)(node, *args, *more)

    method.__name__ = name
    return method


for _name in ("register_hook", "register_prehook"):
    setattr(Node, _name, _of_graph(_name))
for _name in ("next_functions", "metadata"):
    setattr(Node, _name, property(_of_graph(_name)))
for _name in ("_saved_self", "_saved_other", "_saved_result"):
    setattr(Node, _name, property(_of_graph("saved_value", _name)))


def _text(node: Node) -> str:
    """The operation and the expression that it stands for."""
    from minigrad.autograd.expression import node_text

    return node_text(node)


setattr(Node, "__str__", _text)  # noqa: B010 - the class may be the accelerator's
