"""In-place writes into tensors, and the new histories of these tensors and their views.

Outside the tape, a write changes the memory. The write clock tells later backward passes of the
write. On the tape, the tensor gets a new history, and so does every tensor that shares its memory.
A view knows its base (``_alias``), which knows its living views (``_views``).

After a write into a view, each tensor above it gets a node. This node hands the written part of a
gradient to the value, and the rest to the old history. All views become views of the new history.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from minigrad.functions import shaping as s
from minigrad.functions.creation import full
from minigrad.functions.operands import number
from minigrad.ops.table import Row
from minigrad.runtime.batched import BatchedOperandError, by_rules, running
from minigrad.runtime.native import call, kernels
from minigrad.tape.apply import apply, view_node
from minigrad.tape.grad_mode import mode, no_grad_scopes
from minigrad.tape.node import LEAF, Node, record
from minigrad.tape.tensor_base import TensorBase, link, mark, parent_of, result_type, wrap
from minigrad.tape.writing import Change, commit, write

if TYPE_CHECKING:
    from minigrad._tensor import Tensor

__all__ = [
    "OVERWRITE",
    "WRITE_VIEW",
    "KeepGrad",
    "catch_up",
    "check_writable",
    "kept_by",
    "overwrite",
    "overwrite_part",
    "replace",
    "shows_tracked",
    "stale_views_are",
    "update",
]


def check_writable(op: str, x: TensorBase) -> None:
    """Refuse a write that the tape cannot follow.

    Raises RuntimeError if x is a leaf that requires grad, a view of one, or a view made under
    no_grad. Raises ValueError if x is a view of an expanded tensor, whose other elements would
    change unnoticed.
    """
    root: Any = x
    while True:
        if root._edge is LEAF:
            what = "a tensor" if root is x else "a view of a tensor"
            raise RuntimeError(
                f"[{op}] cannot write in place into {what} that requires grad: do it under "
                "no_grad(), or use an operation that returns a new tensor"
            )
        try:
            overlapping = root._h.overlapping
        except BatchedOperandError:
            by_rules("check_writable")(op, x)
            return
        if overlapping:
            raise ValueError(
                f"[{op}] cannot write: several elements share one place in memory "
                "(an expanded or aliased tensor); clone() it first"
            )
        alias = getattr(root, "_alias", None)
        if alias is None:
            return
        if len(alias) == 1:
            raise RuntimeError(
                f"[{op}] cannot write in place, while gradients are recorded, into a view that was "
                "made under no_grad(): write under no_grad(), or clone() it first"
            )
        root = alias[0]


def shows_tracked(x: TensorBase) -> bool:
    """True if x does not require grad, but a tensor that x is a view of does."""
    alias = getattr(x, "_alias", None)
    while alias is not None:
        base: Any = alias[0]() if len(alias) == 1 else alias[0]
        if base is None:
            return False
        if base._edge is not None:
            return True
        alias = getattr(base, "_alias", None)
    return False


def overwrite(op: str, x: Tensor, source: Tensor) -> Tensor:
    """Write ``source``, broadcast and cast, over all of ``x``, and return x.

    The operands from which x was computed get a gradient of 0 from here on.
    """
    tracked = x._edge is not None or source._edge is not None or shows_tracked(x)
    if not (tracked and mode.enabled and x.dtype.is_floating_point):
        write(kernels.write, x, x._h, source._h)
        return x
    check_writable(op, x)
    fitted = s.expand(s.to(source, x.dtype), x.shape)
    try:
        old, new = x._edge, parent_of(fitted)
    except BatchedOperandError:
        raise by_rules("write_error")(op, x.shape, source.shape) from None
    edge = new if old is None else record(OVERWRITE, None, (), None, old, new)
    _write_recorded(x, x, fitted, edge, new)
    return x


def overwrite_part(
    x: Tensor, row: Row, args: tuple[Any, ...], part: Tensor, source: Tensor
) -> None:
    """Write ``source`` over the view of ``x`` that ``row`` makes, which has the same shape."""
    source = s.to(source, x.dtype)
    edge = record(WRITE_VIEW, None, (row, args, x.shape), None, x._edge, parent_of(source))
    _write_recorded(x, part, source, edge, edge)


def update(op: str, x: Tensor, result: Tensor) -> Tensor:
    """Write ``result``, which was computed from ``x``, over x, and return x.

    Raises ValueError if the shapes differ, TypeError if x cannot hold the result's dtype.
    """
    if result.shape != x.shape:
        raise ValueError(
            f"[{op}] in place, the result of shape {result.shape} does not fit {x.shape}"
        )
    if result.dtype is not x.dtype:
        if result.dtype.kind > x.dtype.kind:
            raise TypeError(
                f"[{op}] in place, a {result.dtype.name} result does not fit into {x.dtype.name}"
            )
        result = s.to(result, x.dtype)
    try:
        edge = parent_of(result)
        parent_of(x)
    except BatchedOperandError:
        by_rules("write")(op, x, result)
        return x
    if (edge is not None or x._edge is not None) and not (no_grad_scopes and not mode.enabled):
        _write_recorded(x, x, result, edge, edge)
    else:
        write(kernels.write, x, x._h, result._h)
    return x


def _write_recorded(x: Any, part: Any, source: Any, edge: Any, written: Any) -> None:
    """Write ``source`` over ``part`` of ``x``, whose edge is then ``edge``, and update all views.

    ``written`` is the edge of the new values. The tensors above x need only this edge. If a view
    covers its whole base, no gradient is left for the old values. The topmost base gets the new
    history, and x becomes a view of this history, like the other views.

    Histories are made first. Then ``commit`` changes memory and tensors in one step.
    """
    target = x
    if isinstance(edge, TensorBase):  # the values of a leaf were copied in: x is not this leaf
        edge = written = record(OVERWRITE, None, (), None, None, edge)
    alias = getattr(x, "_alias", None)
    while alias is not None:
        parent, row, args = alias
        alias = getattr(parent, "_alias", None)
        before = parent._edge if alias is None or x._h.size < parent._h.size else None
        about = (row, args, parent.shape)
        edge = written = record(WRITE_VIEW, None, about, None, before, written)
        x = parent
    changes: list[Change] = []
    _renew(changes, x, edge)
    told = _outdate_views(changes, x, edge)
    write(kernels.write, target, part._h, source._h, changes=changes)
    for views, count, current in told:
        views.current[:count] = current  # views that other threads added meanwhile stay


_FEW = 4  # number of views that are updated at once
_BEHIND = False  # marks the edge of a view that becomes stale


def _outdate_views(changes: list[Change], x: Any, edge: Any) -> list[tuple[Any, int, list[Any]]]:
    """Add the changes that make the living views of ``x`` views of its new history, ``edge``.

    If there are many views, they stay stale until they are used. A write then costs only as much as
    the views that were used since the last write. Returns the lists ``Views.current``, their
    lengths at this time, and their new contents.
    """
    found = []
    stack = [(x, edge)]
    while stack:
        parent, edge = stack.pop()
        views = getattr(parent, "_views", None)
        if views is None:
            continue
        told, current = views.current[:], []
        many = len(told) > _FEW
        for reference in told:
            view = reference()
            marked = len(getattr(view, "_alias", ())) == 1
            if not marked and not _is_view(view, parent):  # the view died, or has other memory now
                continue
            if view._edge is LEAF or (marked and edge is None):  # a leaf stays a leaf
                current.append(reference)
            elif marked:
                made = view._edge or record(_OUTDATED, None, (), None, edge)
                changes.append((view, "_edge", made))
                stack.append((view, made))
            elif (many or edge is _BEHIND) and _may_be_stale(view):
                changes.append((view, "__class__", _stale_class))
                stack.append((view, _BEHIND))
            else:
                _, row, args = view._alias
                made = view_node(row, parent, args, edge)
                _renew(changes, view, made)
                current.append(reference)
                stack.append((view, made))
        found.append((views, len(told), current))
    return found


def _is_view(view: Any, base: Any) -> bool:
    """True if ``view`` is alive and a view of ``base``."""
    return view is not None and getattr(view, "_alias", (None,))[0] is base


def _may_be_stale(view: Any) -> bool:
    """True if neither this view nor a view of it needs its new edge at once."""
    if type(view) is not result_type() or _is_kept(view):
        return False
    views = getattr(view, "_views", None)
    for reference in () if views is None else views.current[:]:
        below = reference()
        if below is not None and below._edge is not LEAF and not _may_be_stale(below):
            return False
    return True


_stale_class: Any = None


def stale_views_are(cls: type) -> type:
    """Class decorator: sets the class of views whose base has a newer history."""
    global _stale_class
    _stale_class = cls
    return cls


def catch_up(view: Any) -> None:
    """Give a stale view, and the views between it and its base, the history of the base."""
    behind = []
    while type(view) is _stale_class:
        behind.append(view)
        view = view._alias[0]
    for view in reversed(behind):
        parent, row, args = view._alias
        edge = view_node(row, parent, args, parent_of(parent))
        parent._views.current.append(weakref.ref(view))
        commit(None, (), [(view, "__class__", result_type()), (view, "_edge", edge)])


def _is_kept(x: Any) -> bool:
    """True if ``x`` is no leaf and its gradient is kept."""
    return type(x._edge) is Node and kept_by(x._edge, x) is not None


def _renew(changes: list[Change], x: Any, edge: Any) -> None:
    """Add the changes that give ``x`` a new history.

    A kept gradient then belongs to this history.
    """
    old = x._edge
    changes.append((x, "_edge", edge))
    if type(old) is not Node or type(edge) is not Node or old.hooks is None:
        return
    keeping = kept_by(old, x)
    if keeping is not None:
        edge.hooks = [*(edge.hooks or ()), KeepGrad(x)]
        changes.append((keeping, "of", _nobody))


def _nobody() -> None:
    """A dead weak reference: always returns None."""


def replace(x: TensorBase, handle: Any) -> None:
    """Give ``x`` new memory, which neither its base nor its views share.

    The views stay views of the old x: a new tensor takes the place of x as their base.
    """
    catch_up(x)
    views, alias = getattr(x, "_views", None), getattr(x, "_alias", None)
    changes: list[Change] = [(x, "_h", handle), (x, "_shape", None)]
    if alias is not None:
        changes.append((x, "_alias", ...))
    if views is not None:
        changes.append((x, "_views", ...))
        living = [view for view in [reference() for reference in views.refs] if _is_view(view, x)]
        if living:
            old = wrap(x._h, x._edge)
            old._views = views
            if alias is not None and len(alias) == 3:
                link(old, *alias)
            elif alias is not None:
                mark(old, alias)
            changes += [(view, "_alias", (old, *view._alias[1:])) for view in living]
    commit(None, (), changes)


def become(op: str, x: Any, change: Callable[[Any], Any]) -> Any:
    """Apply a view operation to ``x`` in place: x keeps its memory and gets another shape.

    Raises RuntimeError for a leaf that requires grad, unless recording is off. Raises it also for a
    view or a tensor with views, since their positions in the memory would be lost.
    """
    catch_up(x)
    views = getattr(x, "_views", None)
    living = views is not None and any(
        _is_view(view, x) for view in [reference() for reference in views.refs]
    )
    if living or getattr(x, "_alias", None) is not None:
        raise RuntimeError(
            f"[{op}] this tensor is a view or has views: use x = x.{op[:-1]}(...) in its place"
        )
    if x._edge is LEAF and mode.enabled:
        raise RuntimeError(f"[{op}] a leaf that requires grad is not changed while recording is on")
    made = change(wrap(x._h, x._edge))
    edge = x._edge if x._edge is LEAF else made._edge
    commit(None, (), [(x, "_h", made._h), (x, "_shape", None), (x, "_edge", edge)])
    return x


class KeepGrad:
    """A hook that adds gradients to the ``grad`` of a non-leaf tensor while the tensor lives."""

    __slots__ = ("of",)
    only_reads = True

    def __init__(self, x: TensorBase) -> None:
        self.of = weakref.ref(x)

    def __call__(self, g: Tensor) -> None:
        """Add this gradient to the tensor's ``grad``."""
        x: Any = self.of()
        if x is not None:
            x._grad = s.clone(g) if x._grad is None else x._grad + g


def kept_by(node: Node, x: TensorBase) -> KeepGrad | None:
    """The hook on this node that keeps the gradient of ``x``."""
    for hook in node.hooks or ():
        if type(hook) is KeepGrad and hook.of() is x:
            return hook
    return None


# ---- the nodes of a write ------------------------------------------------------------------------


class _WriteView:
    """Operation of a base's node after a write into a view.

    The node's args are the row and arguments of the view, and the shape of the base.
    """

    name = "write"

    @staticmethod
    def vjp(node: Node, g: Tensor) -> tuple[Any, Any]:
        """:meth:`graph_vjp` without recording."""
        row, args, _ = node.args
        before, written = node.parents  # type: ignore[misc]
        kept = part = None
        if before is not None:
            kept = wrap(call(kernels.copy, g._h))
            call(kernels.write, row.forward(kept._h, *args), number(0)._h)
        if written is not None:
            part = wrap(row.forward(s.contiguous(g)._h, *args))
        return kept, part

    @staticmethod
    def graph_vjp(node: Node, g: Tensor) -> tuple[Any, Any]:
        row: Row
        row, args, _ = node.args
        before, written = node.parents  # type: ignore[misc]
        kept = part = None
        if before is not None:
            kept = s.clone(g)
            apply(row, (kept,), args).zero_()
        if written is not None:
            # the row that made a view of the base makes one of g
            part = apply(row, (s.contiguous(g),), args)
        return kept, part

    @staticmethod
    def jvp(node: Node, tangents: Sequence[Any]) -> Tensor:
        """The tangent of the base, with that of what was written in its place."""
        row, args, shape = node.args
        before, written = tangents
        dtype = (written if before is None else before).dtype
        zeros = full(shape, 0.0, dtype=dtype)
        if running and written is not None:
            zeros = by_rules("like")(zeros, written)  # with memory for each slice of a vmap
        whole: Any = zeros
        if before is not None:
            whole = before + zeros if running else s.clone(s.contiguous(before))
        part = apply(row, (whole,), args)
        source = number(0) if written is None else written
        if running:
            by_rules("write")("write", part, s.expand(s.to(source, dtype), part.shape))
        else:
            overwrite("write", part, source)
        return whole


class _Overwrite:
    """Operation of a node after a write over all elements: the old values get no gradient."""

    name = "overwrite"

    @staticmethod
    def vjp(node: Node, g: Tensor) -> tuple[Any, Any]:
        before, written = node.parents  # type: ignore[misc]
        zeros = None if before is None else full(g.shape, 0.0, dtype=g.dtype)
        return zeros, None if written is None else g

    graph_vjp = vjp

    @staticmethod
    def jvp(node: Node, tangents: Sequence[Any]) -> Any:
        """The tangent of what was written."""
        return tangents[1]


class _Outdated:
    """Operation of a no_grad view whose base was written on the tape: its history is unknown."""

    name = "outdated view"

    @staticmethod
    def vjp(node: Node, g: Any) -> tuple[Any, ...]:
        """Raise an error, since the tape cannot tell whose gradient is asked for."""
        raise RuntimeError(
            "[backward] a view made under no_grad() was used after a recorded write had changed "
            "what it shows: make both under no_grad() or neither, or use the view's detach()"
        )

    graph_vjp = vjp

    @classmethod
    def jvp(cls, node: Node, tangents: Sequence[Any]) -> Any:
        return cls.vjp(node, None)


WRITE_VIEW, OVERWRITE, _OUTDATED = _WriteView(), _Overwrite(), _Outdated()
