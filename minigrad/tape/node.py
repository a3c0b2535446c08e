"""A node of the graph: one recorded operation.

A node's parents say where each input came from: another node, a leaf tensor, or None for what
needs no gradient. Nodes point only backwards and keep only what their derivative needs, so a graph
holds no cycle and is freed the moment it is dropped.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from minigrad.tape.speed import accelerator

__all__ = ["LEAF", "Node", "new_node", "record"]

LEAF = True  # the edge of a leaf that requires a gradient: it ends at the tensor itself
Gradient = Any  # a Tensor; this layer stands below it
Parent = Any  # a Node, a leaf Tensor or None

_serials = itertools.count()


class Node:
    """One recorded operation; :meth:`record` makes one."""

    __slots__ = ("__weakref__", "_parents", "args", "hooks", "input_meta", "op", "saved", "serial")

    # A row of the op table, or anything else with a `name` and two rules for the gradients of a
    # node's inputs, None where there is none: `vjp(node, g)`, which records nothing, and
    # `graph_vjp(node, g)`, whose results can be differentiated again.
    op: Any
    saved: Any  # the arrays that the derivative needs, pinned
    args: Any  # the operation's other arguments; None once the graph was freed
    # (shape, code of the dtype) of each input where one was broadcast or cast, which the backward
    # pass undoes; else None.
    input_meta: tuple[Any, ...] | None
    hooks: list[Callable[[Gradient], Gradient | None]] | None
    serial: int  # a node is always younger than its parents
    _parents: tuple[Parent, ...]  # empty once the graph was freed

    @staticmethod
    def record(
        op: Any, saved: Any, args: Any, input_meta: tuple[Any, ...] | None, /, *parents: Parent
    ) -> Node:
        """The node of an operation that was just executed."""
        if not parents:
            raise TypeError("record(op, saved, args, input_meta, *parents)")
        return new_node(op, saved, args, input_meta, parents)

    @property
    def parents(self) -> tuple[Parent, ...] | None:
        """Where each input came from; None once the graph was freed."""
        return self._parents or None

    @property
    def needs_grad(self) -> int:
        """A bit for each of the first 16 parents: is it not None?"""
        return sum([1 << i for i, parent in enumerate(self._parents[:16]) if parent is not None])

    def release(self) -> None:
        """Drop the parents, and whatever else only this node's own rule needs."""
        self._parents, self.saved, self.args = (), None, None

    def name(self) -> str:
        """The name of the operation."""
        return self.op.name

    def __repr__(self) -> str:
        return f"<{self.op.name}>"


def new_node(
    op: Any, saved: Any, args: Any, input_meta: tuple[Any, ...] | None, parents: tuple[Parent, ...]
) -> Node:
    """As :meth:`Node.record`. Every operation with a gradient comes here, so it is no __init__."""
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


def _of_graph(name: str, *more: Any) -> Callable[..., Any]:
    """A function of autograd.graph, which is loaded when programs first look at the graph."""

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
