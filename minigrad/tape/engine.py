"""The engine: the backward pass over the tape. Loaded with the first one."""

from __future__ import annotations

from _thread import RLock
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from heapq import heappop, heappush
from operator import attrgetter
from typing import Any

from minigrad.ops.table import Row
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

__all__ = ["ends", "gradients", "off_tape", "topological_order", "unbroadcast"]


# ---- the order -----------------------------------------------------------------------------------

_by_age = attrgetter("serial")


def topological_order(roots: Iterable[Node], oldest: int = -1) -> list[Node]:
    """Every node that the roots were computed from, inputs before what was made of them.

    That is the order in which they were made, so finding them is enough, and sorting puts them
    right; nothing recurses, so a chain of a million nodes is no deeper than one.
    """
    found = set(roots)
    stack = list(found)
    while stack:
        node = stack.pop()
        if node.serial <= oldest:
            continue  # nothing before it is needed
        parents = node.parents
        if parents is None:
            raise freed_error(node)
        for parent in parents:
            if type(parent) is Node and parent not in found:
                found.add(parent)
                stack.append(parent)
    return sorted(found, key=_by_age)


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


def _leading_to(inputs: set[Any], roots: Sequence[Parent]) -> set[Node]:
    """The nodes that a gradient passes through on its way from the roots to one of the inputs."""
    # A node older than all inputs was not made from any of them.
    oldest = min([edge.serial if type(edge) is Node else -1 for edge in inputs], default=-1)
    reaching: set[Node] = set()
    for node in topological_order([edge for edge in roots if type(edge) is Node], oldest):
        parents = node.parents
        if parents is None:
            if node.serial > oldest:  # by another thread, meanwhile
                raise freed_error(node)
            continue
        if not (inputs.isdisjoint(parents) and reaching.isdisjoint(parents)):
            reaching.add(node)
    return reaching


# ---- the pass ------------------------------------------------------------------------------------


class _Pass:
    """One backward pass. It takes the youngest node that has a gradient: that has all of it."""

    def __init__(
        self,
        retain_graph: bool,
        create_graph: bool,
        inputs: set[Any] | None,
        reaches_inputs: set[Node] | None,
        ends: bool,
    ) -> None:
        self.retain_graph = retain_graph
        self.create_graph = create_graph
        self.inputs = inputs  # the edges whose gradients are asked for; None for all leaves
        self.reaches_inputs = reaches_inputs  # None for all nodes
        self.ends = ends  # the pass ends at the inputs, and their hooks are another pass's
        self.grads: dict[Any, Gradient] = {}  # edge -> the gradient accumulated so far
        self.owned: set[Any] = set()  # edges whose gradient was made here by adding
        self.shared: set[Any] = set()  # leaves whose gradient others hold too
        self.queue: list[tuple[int, Node]] = []  # nodes that have a gradient: a heap

    def run(self, edges: Sequence[Parent], backs: Sequence[Gradient]) -> None:
        """Run from the roots, each with its gradient, to where nothing leads on."""
        queue, grads, g = self.queue, self.grads, None
        while True:
            for edge, back in zip(edges, backs):  # noqa: B905 - operations give one each
                if edge is not None and back is not None:
                    self.accumulate(edge, back, g is None or back is g)
            edges, backs, back = (), (), None
            if not queue:
                return
            node = heappop(queue)[1]
            g = None  # what is held here is held too long
            self.owned.discard(node)
            edges, backs, g = self.step(node, grads.pop(node))
            del node

    def accumulate(self, edge: Parent, g: Gradient, as_it_came: bool) -> None:
        """Add a gradient to that of an edge; ``as_it_came`` says that other edges may get it."""
        grads = self.grads
        held = grads.get(edge)
        if held is None:
            grads[edge] = g
            if type(edge) is Node:
                heappush(self.queue, (-edge.serial, edge))
            elif as_it_came:
                self.shared.add(edge)
        elif edge in self.owned:
            held.accumulate_(g)
        else:
            if not self.create_graph and not as_it_came and _is_sole(g):
                g.accumulate_(held)  # the last rule made it, and nobody else has it
            else:
                g = held + g
            grads[edge] = g
            self.shared.discard(edge)
            if not self.create_graph and isinstance(g, TensorBase):
                self.owned.add(edge)

    def step(self, node: Node, g: Gradient) -> tuple[Any, Any, Gradient]:
        """A node's parents, their gradients and its own; nothing where no input lies behind it."""
        if type(g) is SliceGrad:
            g = g.whole()
        inputs, reaching = self.inputs, self.reaches_inputs
        asked = inputs is not None and node in inputs
        leads_on = reaching is None or node in reaching
        if asked or leads_on:
            if node.hooks and not (asked and self.ends):
                g = self.hooked(node, node.hooks, g)
            if asked:
                self.grads[node] = g
        if not leads_on or (asked and self.ends):
            return (), (), None
        parents = node._parents  # as they are now: the rule may run a pass that frees the node
        if not parents:
            raise freed_error(node)
        backs, g = self.apply_rule(node, g)
        input_meta = node.input_meta
        if input_meta is not None:
            backs = [
                gi if gi is None else unbroadcast(gi, meta)
                for gi, meta in zip(backs, input_meta)  # noqa: B905
            ]
        if not self.retain_graph:
            node.release()
        return parents, backs, g

    def apply_rule(self, node: Node, g: Gradient) -> tuple[Any, Gradient]:
        """The gradients of the inputs, and that of the node: none if the user's code had it.

        A rule of the user's may write over the gradient that it is given, and keep those that it
        returns. A later write to what it keeps must change none of the others.
        """
        op = node.op
        vjp, graph_vjp = rules(op)
        rule = graph_vjp if self.create_graph else vjp
        if type(op) is Row or not hasattr(op, "lends"):
            return rule(node, g), g
        return [self.own(gi) for gi in rule(node, self.own(g))], _NOBODYS

    def own(self, g: Gradient) -> Gradient:
        """A copy of the gradient, unless nobody may write over it."""
        if not isinstance(g, TensorBase) or not _is_writable(g._h):
            return g
        return g.clone() if self.create_graph else copied(g)  # type: ignore[attr-defined]

    def hooked(self, edge: Any, hooks: Any, g: Gradient) -> Gradient:
        """The gradient as hooks make it; what they keep of it is not what goes on."""
        alone = isinstance(g, TensorBase) and not _is_writable(g._h)
        g = (hooked if self.create_graph else hooked_off_tape)(edge, g, alone)
        only_read = all(hasattr(hook, "only_reads") for hook in hooks)
        return g if only_read else self.own(g)

    # ---- what has come to the ends ----

    def results(self) -> dict[Any, Gradient]:
        """The gradients by edge, as the hooks of leaves make them."""
        self.hook_leaves()
        asked = [edge for edge in self.grads if self.is_asked(edge)]
        return {edge: _whole(self.grads[edge]) for edge in asked}

    def deliver(self) -> None:
        """Add the gradients to the ``grad`` of leaves, once all of them are ready.

        A failure before that changes no ``grad``.
        """
        self.hook_leaves()
        ready = []
        for leaf, g in self.grads.items():
            if type(leaf) is Node or getattr(leaf, "_edge", LEAF) is not LEAF:
                continue  # a node; or a leaf that has ceased to require a gradient
            if not self.is_asked(leaf):
                continue
            if not isinstance(leaf, TensorBase):
                raise TypeError("gradients end at tensors")
            g = _whole(g)
            if leaf._grad is None and (leaf in self.shared or not _is_sole(g)):
                g = copied(g)
                self.shared.discard(leaf)
            ready.append((leaf, g))
        with _delivering:
            run_steps([_delivery(leaf, g, leaf in self.shared) for leaf, g in ready])
        for leaf, _ in ready:
            if hasattr(leaf, "_hooks"):
                accumulated_off_tape(leaf)

    def is_asked(self, edge: Any) -> bool:
        """Whether this edge's gradient is asked for."""
        return self.inputs is None or edge in self.inputs

    def hook_leaves(self) -> None:
        """Have the hooks of leaves change their gradients, all before one leaf gets its own."""
        for leaf, g in () if self.ends else self.grads.items():
            hooks = getattr(leaf, "_hooks", None) if type(leaf) is not Node else None
            if hooks and self.is_asked(leaf):
                self.grads[leaf] = self.hooked(leaf, hooks, _whole(g))
                self.shared.add(leaf)


_NOBODYS = object()  # in place of a gradient that no parent gets as it came


def _whole(g: Gradient) -> Gradient:
    return g.whole() if type(g) is SliceGrad else g


def _is_writable(x: Array) -> bool:
    """Whether a user's write into the array is allowed."""
    return x.writable and not x.overlapping


def _is_sole(g: Gradient) -> bool:
    """Whether it can be added to where it lies."""
    return isinstance(g, TensorBase) and g._h.sole


_delivering = RLock()  # again in this thread: a finalizer may run a backward


def _delivery(leaf: Any, g: Gradient, shared: bool) -> partial[Any]:
    """The step that adds a gradient to a leaf's ``grad``, which shares its memory with nothing."""
    held = leaf._grad
    if held is None:
        made = copied(g) if shared or not _is_sole(g) else g
    elif held._edge is None and held._h is not g._h and held.dtype is g.dtype and _is_sole(held):
        return step(kernels.accumulate, held._h, g._h)
    else:  # the leaf may have taken on another dtype since: the sum is of what arrives
        made = added(held, g)
    return partial(setattr, leaf, "_grad", made)


def added(held: Any, g: Gradient) -> Gradient:
    """A leaf's ``grad`` and what arrives, where it cannot be added to as it lies."""
    return held.detach().to(g.dtype) + g


_MOST_NESTED = 1000


def gradients(
    roots: Sequence[Parent],
    upstream: Sequence[Gradient],
    retain_graph: bool,
    create_graph: bool,
    inputs: set[Any] | None = None,
    add: bool = False,
    ends: bool = False,
) -> Any:
    """Run gradients from the roots back: those of the leaves, a dict by edge.

    Where edges are given as ``inputs`` it is their gradients, and only what leads to them is run
    through. With ``add`` the gradients are not returned but added to the ``grad`` of the leaves.
    The graph is freed on the way unless it is retained. The gradients can be differentiated again
    where a graph is created. Else no gradient is on the tape, and adding and casting them is not
    recorded. Rules that compute with more than the gradient turn recording off themselves. With
    ``ends`` the pass ends at the inputs, and does not call their hooks.
    """
    reaching = None if inputs is None or ends else _leading_to(inputs, roots)
    scope = begin(True) if create_graph else None
    try:
        with _watched(roots) if watchers else _unwatched:
            return run_pass(
                roots, upstream, retain_graph, create_graph, inputs, reaching, add, ends
            )
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
    ends: bool,
) -> Any:
    """As :func:`gradients`, where it is known which nodes reach the inputs."""
    if passes.depth >= _MOST_NESTED:
        raise nested_error()
    outer = passes.number
    passes.depth += 1
    passes.begun += 1
    passes.number = passes.begun
    try:
        one_pass = _Pass(retain_graph, create_graph, inputs, reaches_inputs, ends)
        one_pass.run(roots, upstream)
        return one_pass.deliver() if add else one_pass.results()
    finally:
        passes.depth -= 1
        passes.number = outer


def unbroadcast(g: Gradient, meta: tuple[tuple[int, ...], int]) -> Gradient:
    """The gradient in the shape and dtype of an input that was broadcast or cast."""
    shape, dtype = meta
    h = g._h
    if g.shape == shape and h.dtype == dtype:
        return g
    if g._edge is not None:
        g = g.sum_to_size(shape)
        return g if h.dtype == dtype else g.to(by_code[dtype])
    if g.shape != shape:
        h = call(kernels.sum_to, h, shape)
    return wrap(h if h.dtype == dtype else call(kernels.cast, h, dtype))


def pause() -> None:
    """Nothing; but the interpreter handles signals here, and lets other threads run."""


# ---- hooks ---------------------------------------------------------------------------------------


def hooked(edge: Any, g: Gradient, alone: bool) -> Gradient:
    """The gradient of a node, or of a leaf, as its hooks return it.

    A hook may write over what it is given: that changes this edge's gradient and no other. It gets
    a copy unless the gradient is ``alone``, which means that nobody else has its memory.
    """
    node = type(edge) is Node
    name, hooks = (edge.op.name, edge.hooks) if node else ("backward", edge._hooks)
    for hook in tuple(hooks or ()):
        if not (alone or hasattr(hook, "only_reads")):
            g = g.clone()
        alone = False  # the hook may have kept it
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
def hooked_off_tape(edge: Any, g: Gradient, alone: bool) -> Gradient:
    """The same, where no graph is made of it."""
    return off_tape(hooked(edge, g, alone))


def accumulated(leaf: Any) -> None:
    """Call the hooks that wait until the gradient of a leaf is there."""
    for hook in tuple(leaf._hooks.after):
        hook(leaf)


@without_recording
def accumulated_off_tape(leaf: Any) -> None:
    """The same, where no graph is made of the gradient."""
    accumulated(leaf)


def off_tape(g: Gradient) -> Gradient:
    """A gradient that the user gave, without its history."""
    return g if getattr(g, "_edge", None) is None else g.detach()


if accelerator:
    run_pass = accelerator.run_pass
