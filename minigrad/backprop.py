"""How gradients run back over the tape. Loaded with the first backward."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from heapq import heappop, heappush, heappushpop
from operator import attrgetter
from typing import Any

from minigrad._c import lib, settle_run, tracers
from minigrad.parts import Part
from minigrad.tape import Gradient, Node, Parent, begin, end, no_grad

__all__ = ["Bundle", "backward", "topological_order"]


class Bundle:
    """The gradients of a node with several outputs, by output position; they add up as one."""

    __slots__ = ("parts",)

    def __init__(self, parts: dict[int, Gradient]) -> None:
        self.parts = parts

    def __add__(self, other: Bundle) -> Bundle:
        parts = dict(self.parts)
        for k, g in other.parts.items():
            parts[k] = parts[k] + g if k in parts else g
        return Bundle(parts)


_accumulate = lib.mg_accumulate

_JOINT = (Bundle, Part)  # gradients that no other is added to in place

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
            continue  # nothing before it is wanted
        parents = node.parents
        if parents is None:
            raise freed_error(node)
        for parent in parents:
            if type(parent) is Node and parent not in found:
                found.add(parent)
                stack.append(parent)
    return sorted(found, key=_by_age)


def freed_error(node: Node) -> RuntimeError:
    """The graph was used up by an earlier backward."""
    return RuntimeError(
        f"[backward] the graph was freed at {node.name!r} by an earlier backward; "
        "call that one with retain_graph=True, or compute the forward again"
    )


def _leading_to(wanted: set[Any], roots: Sequence[Parent]) -> set[Node]:
    """The nodes that a gradient passes through on its way from the roots to something wanted."""
    # What is older than all that is wanted was not made from any of it.
    oldest = min([edge.serial if type(edge) is Node else -1 for edge in wanted], default=-1)
    useful: set[Node] = set()
    for node in topological_order([edge for edge in roots if type(edge) is Node], oldest):
        parents = node.parents
        if parents is None:
            if node.serial > oldest:  # by another thread, meanwhile
                raise freed_error(node)
            continue
        if any(p is not None and (p in wanted or p in useful) for p in parents):
            useful.add(node)
    return useful


# ---- the run -------------------------------------------------------------------------------------


def backward(
    roots: Sequence[Parent],
    upstream: Sequence[Gradient],
    deliver: Callable[[Any, Gradient, bool], None],
    wanted: set[Any] | None,
    retain_graph: bool,
    create_graph: bool,
) -> None:
    """Run gradients from the roots back to the leaves.

    ``roots`` are edges, ``upstream`` has a gradient for each. ``deliver(edge, gradient, shared)``
    is called once for each leaf reached, or, where ``wanted`` is given, for each edge in it;
    ``shared`` says that others may hold the gradient too. The graph is freed on the way unless it
    is retained. Unless a graph is created no gradient is on the tape, so that adding and casting
    them is not recorded, and rules that compute with more than the gradient see to it themselves.
    """
    useful = None if wanted is None else _leading_to(wanted, roots)
    gradients: dict[Any, Gradient] = {}
    owned: set[Any] = set()  # edges whose gradient was made here by adding, and may be added to
    shared: set[Any] = set()  # leaves whose gradient was handed on as it came
    queue: list[tuple[int, Node]] = []  # nodes that have a gradient: a heap, youngest first
    scope = begin(True) if create_graph else None
    try:
        parents: Sequence[Parent] = roots
        backs: Sequence[Gradient | None] = upstream
        g: Gradient = None
        while True:
            only = parents[0] if len(parents) == 1 and not queue else None
            if type(only) is Node and backs[0] is not None:
                node, g = only, backs[0]  # in a chain, where nobody else waits or adds to it
            else:
                # Hand the gradients to the parents. The first that is ready waits beside the heap.
                ready: Node | None = None
                for parent, back in zip(parents, backs):  # noqa: B905 - ops give one each
                    if back is None or parent is None:
                        continue
                    held = gradients.get(parent)
                    if held is None:
                        gradients[parent] = back
                        if type(parent) is not Node:
                            if back is g or g is None:
                                shared.add(parent)
                        elif ready is None:
                            ready = parent
                        else:
                            heappush(queue, (-parent.serial, parent))
                    elif parent in owned:
                        if type(back) is Part:
                            back.add_to(held._h)
                        else:  # as Tensor.accumulate_ does it
                            code = _accumulate(held._h, back._h)
                            if code or tracers:
                                settle_run(code, _accumulate, (held._h, back._h))
                    else:
                        made = (  # by the last rule, and nobody else has it
                            not create_graph
                            and back is not g
                            and g is not None
                            and type(back) not in _JOINT
                            and lib.mg_sole_owner(back._h)
                        )
                        if made:
                            back.accumulate_(held)
                        else:
                            back = held + back
                        gradients[parent] = back
                        shared.discard(parent)
                        if not create_graph and type(back) not in _JOINT:
                            owned.add(parent)
                # The youngest node that has a gradient has all of it.
                if ready is None:
                    if not queue:
                        break
                    node = heappop(queue)[1]
                elif queue:
                    node = heappushpop(queue, (-ready.serial, ready))[1]
                else:
                    node = ready
                g = gradients.pop(node)
            if type(g) is Part:
                g = g.whole()
            if node.hooks is not None:
                g = _hooked(node, g) if create_graph else _hooked_off_tape(node, g)
            if useful is not None and wanted is not None:
                if node in wanted:
                    deliver(node, g, True)
                if node not in useful:
                    parents = ()
                    continue
            # The rule may run another backward, which frees the node.
            parents = node.parents  # type: ignore[assignment]
            if parents is None:
                raise freed_error(node)
            backs = node.op.graph_vjp(node, g) if create_graph else node.op.vjp(node, g)
            if node.adapted is not None:
                backs = unadapted(backs, node.adapted)
            if not retain_graph:
                node.release()
    finally:
        if scope is not None:
            end(scope)
    for edge, g in gradients.items():
        if wanted is None or edge in wanted:
            deliver(edge, g.whole() if type(g) is Part else g, edge in shared)


def unadapted(gradients: Sequence[Gradient], adapted: Sequence[Any]) -> list[Gradient]:
    """Broadcasting and casts of the inputs undone: the gradient in each input's shape and dtype."""
    back = []
    for gi, (shape, dtype) in zip(gradients, adapted, strict=True):
        if gi is not None and gi.shape != shape:
            gi = gi.sum_to_size(shape)
        if gi is not None and gi.dtype is not dtype:
            gi = gi.to(dtype)
        back.append(gi)
    return back


def _hooked(node: Node, g: Gradient) -> Gradient:
    for hook in tuple(node.hooks or ()):
        replaced = hook(g)
        if replaced is None:
            continue
        if not isinstance(replaced, type(g)):
            raise TypeError(
                f"[{node.name}] a hook returned {type(replaced).__name__}, not a Tensor or None"
            )
        if replaced.shape != g.shape or replaced.dtype is not g.dtype:
            raise ValueError(
                f"[{node.name}] a hook returned {replaced.dtype.name} of shape {replaced.shape} "
                f"for a gradient that is {g.dtype.name} of shape {g.shape}"
            )
        g = replaced
    return g


@no_grad
def _hooked_off_tape(node: Node, g: Gradient) -> Gradient:
    return off_tape(_hooked(node, g))


def off_tape(g: Gradient) -> Gradient:
    """What the user gave as a gradient, without its history."""
    return g if getattr(g, "_edge", None) is None else g.detach()
