"""Backward pass taken apart: for each node, the gradient that comes and those that it pushes on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from minigrad.autograd.bundle import Bundle
from minigrad.functions.grad_modes import no_grad
from minigrad.tape.engine import hooked_off_tape, topological_order, unbroadcast
from minigrad.tape.node import Gradient, Node, Parent
from minigrad.tape.slice_grad import SliceGrad
from minigrad.tape.tensor_base import TensorBase, copied
from minigrad.tape.vjp import rules

__all__ = ["NodeStep", "node_steps"]


class NodeStep(NamedTuple):
    """One node of a backward pass: the gradient of its result, and one for each parent or None.

    The gradient of a Function with several outputs is a :class:`Bundle`, which holds one of each.
    """

    node: Node
    upstream: Gradient
    gradients: tuple[Gradient, ...]


def node_steps(
    root: Node, g: Gradient, ends: frozenset[Any] = frozenset(), hooks: bool = True
) -> Iterator[NodeStep]:
    """The steps of a backward pass from ``root``, youngest node first; the graph is retained.

    Rules run as in the engine, and so do hooks of results unless ``hooks`` is false. No ``grad``
    changes. The pass does not go beyond the nodes in ``ends``. RuntimeError where the graph was
    freed.
    """
    grads: dict[Parent, Gradient] = {root: g}
    for node in reversed(topological_order([root])):
        if node not in grads or node in ends:
            continue
        g = grads.pop(node)
        g = _hooked(node, g) if hooks else g
        pushed = tuple(_pushed(node, g))
        for parent, gi in zip(node.parents or (), pushed, strict=True):
            if isinstance(parent, Node) and gi is not None:
                grads[parent] = _sum(grads[parent], gi) if parent in grads else gi
        yield NodeStep(node, g, pushed)


@no_grad
def _sum(a: Gradient, b: Gradient) -> Gradient:
    return a + b


def _hooked(node: Node, g: Gradient) -> Gradient:
    """The gradient as hooks of the result make it; those that only read it are not called."""
    if all(hasattr(hook, "only_reads") for hook in node.hooks or ()):
        return g
    return hooked_off_tape(node, g, False)


def _pushed(node: Node, g: Gradient) -> Iterator[Gradient]:
    """The gradients of a node's inputs, as tensors of their shapes and dtypes."""
    if hasattr(node.op, "lends"):  # the user's rule may write over it
        whole = not isinstance(g, Bundle)
        g = copied(g) if whole else Bundle({k: copied(gk) for k, gk in g.parts.items()})
    parents = node.parents or ()
    # A rule may give more than is asked for.
    for i, (parent, gi) in enumerate(zip(parents, rules(node.op)[0](node, g), strict=False)):
        if parent is None:
            gi = None
        if type(gi) is SliceGrad:
            gi = gi.whole()
        cast = node.input_meta is not None and isinstance(gi, TensorBase)
        yield unbroadcast(gi, node.input_meta[i]) if cast else gi  # type: ignore[index]
