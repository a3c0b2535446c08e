"""How gradients run back over the tape. Loaded with the first backward."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from minigrad._c import call, lib
from minigrad.dispatch import TensorBase, parent_of, wrap
from minigrad.functions.arguments import renamed
from minigrad.functions.creation import tensor
from minigrad.runtime.dtypes import by_code
from minigrad.tape import Gradient, Node, Parent, begin, end, no_grad

__all__ = ["Bundle", "gradients", "into_grads", "rule", "start", "topological_order"]


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
        if not (wanted.isdisjoint(parents) and useful.isdisjoint(parents)):
            useful.add(node)
    return useful


# ---- the run -------------------------------------------------------------------------------------

if TYPE_CHECKING:

    def into_grads(output: Any, gradient: Any, retain_graph: bool, /) -> None:
        """Run a gradient from an output back to the leaves, and add what arrives to their ``grad``.

        Where the output is a single number and no gradient is given it starts at once, else with
        what :func:`start` says.

        The graph is freed on the way unless it is retained. No gradient is on the tape, so that
        adding and casting them is not recorded, and rules that compute with more than the gradient
        see to it themselves. It is C: ``csrc/backward.h``.
        """

    def _gradients(*args: Any) -> Any: ...

    def rule(kernel: Any, number: int, pointwise: bool, slopes: tuple[Any, ...], /) -> Any:
        """The rule of a row whose gradients are one call of a kernel.

        ``slopes`` has for each input None where the kernel computes its gradient, True where that
        is the upstream gradient itself, else a function of that. Of a linear operation ``kernel``
        is a function of the gradient's array and the node's arguments, and ``number`` says what C
        does itself: -1 a sum's way back, multiplication's number a mean's, -2 nothing.
        """

    def _one(dtype: int, /) -> Gradient:
        """A 1 whose memory is shared, so sealed against writes; ``dtype`` is its code."""

else:
    into_grads, _gradients, rule, _one = lib.mg_back_parts()


def start(
    output: Any, gradient: Any, op: str = "backward", create_graph: bool = False
) -> tuple[Parent, Gradient]:
    """Where a backward starts: the output's edge, and its upstream gradient."""
    if output._edge is None:
        raise RuntimeError(
            f"[{op}] this tensor does not require grad and has no graph: none of what it was "
            "computed from had requires_grad=True, or it was computed under no_grad()"
        )
    return parent_of(output), _upstream(op, output, gradient, create_graph)


def _upstream(op: str, output: Any, gradient: Any, create_graph: bool) -> Gradient:
    """The gradient given, or 1 for one element; on the tape for a graph only."""
    if gradient is None:
        h = output._h
        if h.size != 1:
            raise RuntimeError(
                f"[{op}] a gradient can be left out only for a single element, not for shape "
                f"{output.shape}: pass one of that shape, or reduce first, as in y.sum()"
            )
        one = _one(h.dtype)
        return one.expand(output.shape) if h.ndim else one
    if not isinstance(gradient, TensorBase):
        try:
            gradient = tensor(gradient, output.dtype)
        except (TypeError, ValueError) as error:
            raise renamed(op, error) from None
    if gradient._edge is not None and not create_graph:
        gradient = gradient.detach()
    if lib.mg_alike(gradient._h, output._h):
        return gradient
    if gradient.shape != output.shape:
        raise ValueError(
            f"[{op}] the gradient has shape {gradient.shape}, the tensor {output.shape}"
        )
    return gradient.to(output.dtype)


def gradients(
    roots: Sequence[Parent],
    upstream: Sequence[Gradient],
    retain_graph: bool,
    create_graph: bool,
    wanted: set[Any] | None = None,
    add: bool = False,
    ends: bool = False,
) -> Any:
    """As :func:`into_grads` from several roots: the gradients of the leaves, a dict by edge.

    Of other edges too, where those are ``wanted``, and then nothing else is run through. The
    gradients can be differentiated again where a graph is created. With ``add`` they are not
    returned but added to the ``grad`` of the leaves. Where the ``wanted`` edges are the ``ends`` of
    a part of the tape, that part is all that is run through, and hooks of the edges are not called.
    """
    useful = None if wanted is None or ends else _leading_to(wanted, roots)
    scope = begin(True) if create_graph else None
    try:
        return _gradients(roots, upstream, retain_graph, create_graph, wanted, useful, add, ends)
    finally:
        if scope is not None:
            end(scope)


# What C asks for by name.


def pause() -> None:
    """Nothing; but the interpreter handles signals here, and lets other threads run."""


def freed_error(node: Node) -> RuntimeError:
    """The graph was used up by an earlier backward."""
    return RuntimeError(
        f"[backward] the graph was freed at {node.op.name!r} by an earlier backward; "
        "call that one with retain_graph=True, or compute the forward again"
    )


def nested_error() -> RecursionError:
    """Too many backwards run inside one another."""
    return RecursionError(
        "[backward] 1000 backwards run inside one another: a Function's backward, or a hook, that "
        "calls backward must not do so without end"
    )


def misfit_error(x: Any, g: Any) -> Exception:
    """``g`` cannot be assigned to the ``grad`` of ``x``."""
    if not isinstance(g, TensorBase):
        return TypeError(f"[grad] expected a Tensor or None, not {type(g).__name__}")
    if g is x:
        return ValueError("[grad] a tensor cannot be its own gradient: use detach().clone()")
    if g.shape != x.shape:
        return ValueError(f"[grad] the gradient has shape {g.shape}, the tensor {x.shape}")
    return TypeError(
        f"[grad] the gradient is {g.dtype.name}, the tensor {x.dtype.name}: "
        f"convert it with .to(mg.{x.dtype.name})"
    )


def unadapted(g: Gradient, adapted: tuple[tuple[int, ...], int]) -> Gradient:
    """The gradient in the shape and dtype of an input that was broadcast or cast."""
    shape, dtype = adapted
    h = g._h
    if g._edge is not None:
        g = g.sum_to_size(shape)
        return g if h.dtype == dtype else g.to(by_code[dtype])
    if g.shape != shape:
        h = call(lib.mg_sum_to, h, len(shape), shape)
    if h.dtype != dtype:
        h = call(lib.mg_cast, h, dtype)
    return wrap(h)


def added(held: Gradient, g: Gradient) -> Gradient:
    """A leaf's ``grad`` and what arrives, where it cannot be added to as it lies.

    The leaf may have taken on another dtype since: the sum is of what arrives.
    """
    return held.detach().to(g.dtype) + g


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
        replaced = hook(g)
        if replaced is None:
            continue
        if not isinstance(replaced, type(g)):
            raise TypeError(
                f"[{name}] a hook returned {type(replaced).__name__}, not a Tensor or None"
            )
        if replaced.shape != g.shape or replaced.dtype is not g.dtype:
            raise ValueError(
                f"[{name}] a hook returned {replaced.dtype.name} of shape {replaced.shape} "
                f"for a gradient that is {g.dtype.name} of shape {g.shape}"
            )
        g = replaced
    return g


@no_grad
def hooked_off_tape(edge: Any, g: Gradient, alone: bool) -> Gradient:
    """The same, where no graph is made of it."""
    return off_tape(hooked(edge, g, alone))


def accumulated(leaf: Any) -> None:
    """Call the hooks that wait until the gradient of a leaf is there."""
    for hook in tuple(leaf._hooks.after):
        hook(leaf)


@no_grad
def accumulated_off_tape(leaf: Any) -> None:
    """The same, where no graph is made of the gradient."""
    accumulated(leaf)


def off_tape(g: Gradient) -> Gradient:
    """What the user gave as a gradient, without its history."""
    return g if getattr(g, "_edge", None) is None else g.detach()
