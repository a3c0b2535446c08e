"""The engine: the backward pass over the tape."""

from __future__ import annotations

from _thread import RLock
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from heapq import heappop, heappush
from operator import attrgetter
from typing import Any

from minigrad.ops.table import Row
from minigrad.runtime.batched import BatchedArray
from minigrad.runtime.dtypes import by_code
from minigrad.runtime.errors import freed_error, hook_error, nested_error
from minigrad.runtime.native import Array, call, kernels, run_steps, step
from minigrad.runtime.passes import passes
from minigrad.tape.grad_mode import begin, end, without_recording
from minigrad.tape.hooks import watchers
from minigrad.tape.node import LEAF, Gradient, Node, Parent
from minigrad.tape.slice_grad import SliceGrad
from minigrad.tape.speed import accelerator
from minigrad.tape.tensor_base import TensorBase, copied, wrap
from minigrad.tape.vjp import rules

__all__ = ["ends", "gradients", "leading_to", "off_tape", "topological_order", "unbroadcast"]


# ---- the order -----------------------------------------------------------------------------------

_by_age = attrgetter("serial")


def topological_order(roots: Iterable[Node], oldest: int = -1) -> list[Node]:
    """The roots and all nodes that they were computed from, a node after its parents.

    Serial numbers give this order: a node is younger than its parents. A search with a stack finds
    the nodes, and a sort orders them. There is no recursion, so a chain may have a million nodes.
    """
    nodes = set(roots)
    stack = list(nodes)
    while stack:
        node = stack.pop()
        if node.serial <= oldest:
            continue  # this node's parents are not needed
        parents = node.parents
        if parents is None:
            raise freed_error(node)
        for parent in parents:
            if type(parent) is Node and parent not in nodes:
                nodes.add(parent)
                stack.append(parent)
    return sorted(nodes, key=_by_age)


def ends(roots: Iterable[Any], begin: int) -> list[Any]:
    """The leaves, and the nodes from before, that the nodes since ``begin`` were computed from."""
    found: dict[Any, None] = {}
    stack = list(roots)
    seen = set(stack)
    while stack:
        for parent in stack.pop().parents or ():
            if parent is None or parent in seen:
                continue
            if type(parent) is Node and parent.serial > begin:
                seen.add(parent)
                stack.append(parent)
            else:
                found[parent] = None
    return list(found)


def leading_to(inputs: set[Any], roots: Sequence[Parent]) -> set[Node]:
    """The nodes on a path from the roots to one of the inputs."""
    # A node older than all inputs was not made from any of them.
    oldest = min([edge.serial if type(edge) is Node else -1 for edge in inputs], default=-1)
    reaching: set[Node] = set()
    for node in topological_order([edge for edge in roots if type(edge) is Node], oldest):
        parents = node.parents
        if parents is None:
            if node.serial > oldest:  # another thread freed this node meanwhile
                raise freed_error(node)
            continue
        if not (inputs.isdisjoint(parents) and reaching.isdisjoint(parents)):
            reaching.add(node)
    return reaching


# ---- the pass ------------------------------------------------------------------------------------


class _Pass:
    """One backward pass.

    The pass takes the youngest node that has a gradient. All nodes made from it are younger and
    were taken before, so its gradient is complete.
    """

    def __init__(
        self,
        retain_graph: bool,
        create_graph: bool,
        inputs: set[Any] | None,
        reaches_inputs: set[Node] | None,
        stop_at_inputs: bool,
    ) -> None:
        self.retain_graph = retain_graph
        self.create_graph = create_graph
        self.inputs = inputs  # edges whose gradients are asked for; None: all leaves
        self.reaches_inputs = reaches_inputs  # nodes that lead to the inputs; None: all nodes
        self.stop_at_inputs = stop_at_inputs  # end at the inputs, and leave their hooks uncalled
        self.grads: dict[Any, Gradient] = {}  # grad map: edge -> the gradient accumulated so far
        self.owned: set[Any] = set()  # edges whose gradient is a sum that this pass made
        self.shared: set[Any] = set()  # leaves whose gradient is held elsewhere too
        self.queue: list[tuple[int, Node]] = []  # heap of nodes that have a gradient

    def run(self, edges: Sequence[Parent], edge_grads: Sequence[Gradient]) -> None:
        """Run backward from the roots, whose gradients are given, until no node has a gradient."""
        queue, grads, g = self.queue, self.grads, None
        while True:
            for edge, edge_grad in zip(edges, edge_grads):  # noqa: B905 - one each
                if edge is not None and edge_grad is not None:
                    self.accumulate(edge, edge_grad, g is None or edge_grad is g)
            edges, edge_grads, edge_grad = (), (), None
            if not queue:
                return
            node = heappop(queue)[1]
            g = None  # drop this reference, so that the gradient has one owner
            self.owned.discard(node)
            edges, edge_grads, g = self.step(node, grads.pop(node))
            del node

    def accumulate(self, edge: Parent, g: Gradient, may_be_shared: bool) -> None:
        """Add a gradient to the grad map.

        ``may_be_shared`` is True if other edges may get the same object.
        """
        grads = self.grads
        current = grads.get(edge)
        if current is None:
            grads[edge] = g
            if type(edge) is Node:
                heappush(self.queue, (-edge.serial, edge))
            elif may_be_shared:
                self.shared.add(edge)
        elif edge in self.owned:
            current.accumulate_(g)
        else:
            if not self.create_graph and not may_be_shared and _is_sole(g):
                g.accumulate_(current)  # g is new, and nothing else refers to it
            else:
                g = current + g
            grads[edge] = g
            self.shared.discard(edge)
            if not self.create_graph and isinstance(g, TensorBase):
                self.owned.add(edge)

    def step(self, node: Node, g: Gradient) -> tuple[Any, Any, Gradient]:
        """Run a node's rule, and return its parents, their gradients and the node's own gradient.

        Parents and gradients are empty if the pass goes no further from this node.
        """
        if type(g) is SliceGrad:
            g = g.whole()
        inputs, reaching = self.inputs, self.reaches_inputs
        is_input = inputs is not None and node in inputs
        reaches = reaching is None or node in reaching
        if is_input or reaches:
            if node.hooks and not (is_input and self.stop_at_inputs):
                g = self.run_hooks(node, node.hooks, g)
            if is_input:
                self.grads[node] = g
        if not reaches or (is_input and self.stop_at_inputs):
            return (), (), None
        parents = node._parents  # read before the rule, which may run a pass that frees the node
        if not parents:
            raise freed_error(node)
        edge_grads, g = self.apply_rule(node, g)
        input_meta = node.input_meta
        if input_meta is not None:
            edge_grads = [
                gi if gi is None else unbroadcast(gi, meta)
                for gi, meta in zip(edge_grads, input_meta)  # noqa: B905
            ]
        if not self.retain_graph:
            node.release()
        return parents, edge_grads, g

    def apply_rule(self, node: Node, g: Gradient) -> tuple[Any, Gradient]:
        """The gradients of the inputs, and the node's own gradient.

        A user's rule may write over the gradient that it gets, and keep the gradients that it
        returns. Both are copied, so that a later write changes no other gradient. The second result
        is then ``_NOT_PASSED_ON``.
        """
        op = node.op
        rule = (op.rules if type(op) is Row and op.rules else rules(op))[self.create_graph]
        if type(op) is Row or not hasattr(op, "lends"):
            return rule(node, g), g
        return [self.own(gi) for gi in rule(node, self.own(g))], _NOT_PASSED_ON

    def own(self, g: Gradient) -> Gradient:
        """A copy of a gradient that user code can write over; any other gradient itself."""
        if not isinstance(g, TensorBase) or not _is_writable(g._h):
            return g
        return g.clone() if self.create_graph else copied(g)  # type: ignore[attr-defined]

    def run_hooks(self, edge: Any, hooks: Any, g: Gradient) -> Gradient:
        """The gradient that the hooks return, copied if a hook may have kept it."""
        sole_owner = isinstance(g, TensorBase) and not _is_writable(g._h)
        g = (hooked if self.create_graph else hooked_off_tape)(edge, g, sole_owner)
        only_read = all(hasattr(hook, "only_reads") for hook in hooks)
        return g if only_read else self.own(g)

    # ---- what has come to the ends ----

    def results(self) -> dict[Any, Gradient]:
        """The gradients that were asked for, by edge, after the hooks of leaves."""
        self.hook_leaves()
        edges = [edge for edge in self.grads if self.is_asked(edge)]
        return {edge: _whole(self.grads[edge]) for edge in edges}

    def deliver(self) -> None:
        """Add the gradients to the ``grad`` of leaves after all gradients are ready.

        A failure before this point changes no ``grad``.
        """
        self.hook_leaves()
        inputs, ready = self.inputs, []
        for leaf, g in self.grads.items():
            if type(leaf) is Node or (inputs is not None and leaf not in inputs):
                continue
            if not isinstance(leaf, TensorBase):
                raise TypeError("gradients end at tensors")
            if leaf._edge is not LEAF:
                continue  # the leaf no longer requires a gradient
            g = _whole(g)
            unshared = leaf not in self.shared and _is_sole(g)
            if leaf._grad is None and not unshared:
                g, unshared = copied(g), True
            ready.append((leaf, g, unshared))
        with _delivering:
            run_steps([_delivery(*one) for one in ready])
        for leaf, *_ in ready:
            if hasattr(leaf, "_hooks"):
                accumulated_off_tape(leaf)

    def is_asked(self, edge: Any) -> bool:
        """True if this edge's gradient was asked for."""
        return self.inputs is None or edge in self.inputs

    def hook_leaves(self) -> None:
        """Call the hooks of all leaves before any ``grad`` changes."""
        for leaf, g in () if self.stop_at_inputs else self.grads.items():
            if type(leaf) is Node:
                continue
            hooks = getattr(leaf, "_hooks", None)
            if hooks and self.is_asked(leaf):
                self.grads[leaf] = self.run_hooks(leaf, hooks, _whole(g))
                self.shared.add(leaf)


_NOT_PASSED_ON = object()  # the rule got a copy of the upstream gradient, which no parent gets


def _whole(g: Gradient) -> Gradient:
    return g.whole() if type(g) is SliceGrad else g


def _is_writable(x: Array) -> bool:
    """True if a user may write into the array."""
    return x.writable and not x.overlapping


def _is_sole(g: Gradient) -> bool:
    """True if nothing else refers to the gradient's memory, so a sum can be written into it."""
    return isinstance(g, TensorBase) and g._h.sole


_delivering = RLock()  # reentrant: a finalizer in this thread may run a backward


def _delivery(leaf: Any, g: Gradient, unshared: bool) -> partial[Any]:
    """The step that adds a gradient to a leaf's ``grad``.

    The new ``grad`` shares memory with nothing. ``unshared`` says that ``g`` does not either.
    """
    current = leaf._grad
    if current is None:
        new_grad = g if unshared else copied(g)
    elif (
        current._edge is None
        and current._h is not g._h
        and current.dtype is g.dtype
        and _is_sole(current)
    ):
        return step(kernels.accumulate, current._h, g._h)
    else:  # the leaf's dtype may have changed: the sum has the dtype of g
        new_grad = added(current, g)
    return partial(setattr, leaf, "_grad", new_grad)


def added(current: Any, g: Gradient) -> Gradient:
    """The sum of a leaf's ``grad`` and a gradient in new memory, with the gradient's dtype."""
    return current.detach().to(g.dtype) + g


_MAX_DEPTH = 1000


def gradients(
    roots: Sequence[Parent],
    upstream: Sequence[Gradient],
    retain_graph: bool,
    create_graph: bool,
    inputs: set[Any] | None = None,
    add: bool = False,
    ends: bool = False,
    by_formulas: bool = False,
) -> Any:
    """Run a backward pass from the roots, whose gradients are given, and return a dict by edge.

    The dict has the gradients of ``inputs``, or of all leaves if ``inputs`` is None. With
    ``inputs`` the pass runs only through nodes that lead to them. With ``add`` the gradients are
    added to the ``grad`` of the leaves, and nothing is returned. The graph is freed on the way
    unless ``retain_graph`` is set.

    With ``create_graph`` the gradients can be differentiated again. Without it no gradient is on
    the tape, so sums and casts of gradients are not recorded. Rules that compute with more than the
    gradient turn recording off themselves. With ``ends`` the pass ends at the inputs, and does not
    call their hooks. With ``by_formulas`` the rules are formulas also where nothing is recorded:
    kernels take no batched gradients.
    """
    reaching = None if inputs is None or ends else leading_to(inputs, roots)
    formulas = create_graph or by_formulas
    scope = begin(create_graph) if formulas else None
    try:
        with _watched(roots) if watchers else _unwatched:
            return run_pass(roots, upstream, retain_graph, formulas, inputs, reaching, add, ends)
    finally:
        if scope is not None:
            end(scope)


_unwatched = nullcontext()


def _watched(roots: Sequence[Parent]) -> AbstractContextManager[None]:
    from minigrad.tape.watching import watched_pass

    return watched_pass(roots)


def run_pass(
    roots: Sequence[Parent],
    upstream: Sequence[Gradient],
    retain_graph: bool,
    create_graph: bool,
    inputs: set[Any] | None,
    reaches_inputs: set[Node] | None,
    add: bool,
    stop_at_inputs: bool,
) -> Any:
    """Run :func:`gradients` with a known set of nodes that reach the inputs."""
    if passes.depth >= _MAX_DEPTH:
        raise nested_error()
    outer = passes.number
    passes.depth += 1
    passes.begun += 1
    passes.number = passes.begun
    try:
        backward_pass = _Pass(retain_graph, create_graph, inputs, reaches_inputs, stop_at_inputs)
        backward_pass.run(roots, upstream)
        return backward_pass.deliver() if add else backward_pass.results()
    finally:
        passes.depth -= 1
        passes.number = outer


def unbroadcast(g: Gradient, meta: tuple[tuple[int, ...], int]) -> Gradient:
    """Sum and cast a gradient to the shape and dtype of an input that was broadcast or cast."""
    shape, dtype = meta
    h = g._h
    if g.shape == shape and h.dtype == dtype:
        return g
    if g._edge is not None or type(h) is BatchedArray:
        g = g.sum_to_size(shape)
        return g if h.dtype == dtype else g.to(by_code[dtype])
    if g.shape != shape:
        h = call(kernels.sum_to, h, shape)
    return wrap(h if h.dtype == dtype else call(kernels.cast, h, dtype))


def pause() -> None:
    """Do nothing. During this call the interpreter handles signals and lets other threads run."""


# ---- hooks ---------------------------------------------------------------------------------------


def hooked(edge: Any, g: Gradient, sole_owner: bool) -> Gradient:
    """The gradient that the hooks of a node, or of a leaf, return.

    A hook may write over the gradient that it gets without changing other edges' gradients. It gets
    a copy unless ``sole_owner`` is True: then no other object has the gradient's memory.
    """
    is_node = type(edge) is Node
    name, hooks = (edge.op.name, edge.hooks) if is_node else ("backward", edge._hooks)
    for hook in tuple(hooks or ()):
        if not (sole_owner or hasattr(hook, "only_reads")):
            g = g.clone()
        sole_owner = False  # the hook may have kept it
        returned = hook(g)
        if returned is None:
            continue
        if (
            not isinstance(returned, type(g))
            or returned.shape != g.shape
            or returned.dtype is not g.dtype
        ):
            raise hook_error(name, returned, g)
        g = returned
    return g


@without_recording
def hooked_off_tape(edge: Any, g: Gradient, sole_owner: bool) -> Gradient:
    """Run :func:`hooked` without recording."""
    return off_tape(hooked(edge, g, sole_owner))


def accumulated(leaf: Any) -> None:
    """Call the hooks of a leaf that run after its ``grad`` was set."""
    for hook in tuple(leaf._hooks.after):
        hook(leaf)


@without_recording
def accumulated_off_tape(leaf: Any) -> None:
    """Run :func:`accumulated` without recording."""
    accumulated(leaf)


def off_tape(g: Gradient) -> Gradient:
    """A gradient that user code returned, detached from its history."""
    return g if getattr(g, "_edge", None) is None else g.detach()


if accelerator:
    run_pass = accelerator.run_pass
