"""In-place writes into tensors, and the histories that the tape gives to them and their views.

Outside the tape a write changes the memory, and its write clock tells later backward passes. On the
tape, the tensor gets a new history, and so does everything that shares its memory. A view knows the
tensor it was taken from (``_alias``), which knows its living views (``_views``). After a write each
tensor above gets a node. The node hands the written part of a gradient to the value and the rest to
the former history. All views become views of the new history.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from minigrad.functions import shaping as s
from minigrad.functions.creation import full
from minigrad.functions.operands import number
from minigrad.ops.table import Row
from minigrad.runtime.batched import BatchedOperandError, by_rules
from minigrad.runtime.native import call, kernels
from minigrad.tape.apply import apply, view_node
from minigrad.tape.grad_mode import mode, no_grad_scopes
from minigrad.tape.node import LEAF, Node, record
from minigrad.tape.tensor_base import TensorBase, link, mark, parent_of, result_type, wrap
from minigrad.tape.writing import Change, commit, write

if TYPE_CHECKING:
    from minigrad._tensor import Tensor

__all__ = [
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
    """Refuse what the tape could not follow.

    RuntimeError if a later backward needs the gradient by the present values. ValueError if x is a
    view of an expanded tensor, whose other elements would change unnoticed.
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
    """Whether a tensor that ``x`` is a view of requires grad, though x does not."""
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
    """Write ``source``, broadcast and cast, over all of ``x``; returns x.

    The operands of x get a gradient of 0 from here on.
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
    edge = new if old is None else record(_OVERWRITE, None, (), None, old, new)
    _write_recorded(x, x, fitted, edge, new)
    return x


def overwrite_part(
    x: Tensor, row: Row, args: tuple[Any, ...], part: Tensor, source: Tensor
) -> None:
    """Write ``source``, of the same shape, over a part of ``x``: what ``row`` shows of it."""
    source = s.to(source, x.dtype)
    edge = record(_WRITE_VIEW, None, (row, args, x.shape), None, x._edge, parent_of(source))
    _write_recorded(x, part, source, edge, edge)


def update(op: str, x: Tensor, result: Tensor) -> Tensor:
    """Write ``result``, which was computed from a writable ``x``, over it; returns x.

    Raises ValueError where the shapes differ, TypeError where x cannot hold the result's dtype.
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
    """Write ``source`` over ``part`` of ``x``, whose history is then ``edge``, and tell all views.

    ``written`` is the edge of what is new in it. The tensors above x need no more. Where a view
    covers its whole base, no former value has a gradient left to pass on. The topmost gets the new
    history, and x is a view of that again, like the others.

    Histories are made first. Memory and tensors are changed in one step, for which see ``commit``.
    """
    target = x
    if isinstance(edge, TensorBase):  # a leaf's values were copied in: x is not that leaf
        edge = written = record(_OVERWRITE, None, (), None, None, edge)
    alias = getattr(x, "_alias", None)
    while alias is not None:
        parent, row, args = alias
        alias = getattr(parent, "_alias", None)
        before = parent._edge if alias is None or x._h.size < parent._h.size else None
        about = (row, args, parent.shape)
        edge = written = record(_WRITE_VIEW, None, about, None, before, written)
        x = parent
    changes: list[Change] = []
    _renew(changes, x, edge)
    told = _outdate_views(changes, x, edge)
    write(kernels.write, target, part._h, source._h, changes=changes)
    for views, count, current in told:
        views.current[:count] = current  # what other threads have added meanwhile stays


_FEW = 4  # views
_BEHIND = False  # the edge of a view that will lag


def _outdate_views(changes: list[Change], x: Any, edge: Any) -> list[tuple[Any, int, list[Any]]]:
    """Add what makes living views of ``x`` views of its new history, ``edge``.

    Many of them stay stale until they are used. A write costs as much as the views that were used
    since the last one, however many there are. Returns the lists of views that know all writes, the
    lengths that were looked at, and what is to stand there.
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
            if not marked and not _is_view(view, parent):  # it is gone, or has other memory
                continue
            if view._edge is LEAF or (marked and edge is None):  # a leaf of its own stays one
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
    """Whether this is a living view of ``base``."""
    return view is not None and getattr(view, "_alias", (None,))[0] is base


def _may_be_stale(view: Any) -> bool:
    """Whether neither this view nor a view of it needs its new place on the tape at once."""
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
    """Class decorator: a view is of this class while its base has a newer history."""
    global _stale_class
    _stale_class = cls
    return cls


def catch_up(view: Any) -> None:
    """Give a stale view, and those it was taken from, the history of their base."""
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
    """Whether the gradient of ``x`` is kept, though it is no leaf."""
    return type(x._edge) is Node and kept_by(x._edge, x) is not None


def _renew(changes: list[Change], x: Any, edge: Any) -> None:
    """Add what gives ``x`` a new history; a kept gradient is then the gradient of this."""
    old = x._edge
    changes.append((x, "_edge", edge))
    if type(old) is not Node or type(edge) is not Node or old.hooks is None:
        return
    keeping = kept_by(old, x)
    if keeping is not None:
        edge.hooks = [*(edge.hooks or ()), KeepGrad(x)]
        changes.append((keeping, "of", _nobody))


def _nobody() -> None:
    """As a weak reference to something that is gone."""


def replace(x: TensorBase, handle: Any) -> None:
    """Give ``x`` other memory, which neither its base nor its views share.

    The views stay views of what x was until now: of a tensor that takes its place among them.
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
    """Make ``x`` what a view operation makes of it: the same memory in another shape.

    Raises RuntimeError for a leaf that requires grad, unless recording is off. A view, or a tensor
    with views, is a RuntimeError too: their places in its memory would no longer be known.
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
    """A hook that adds to the ``grad`` of a tensor that is no leaf, as long as that lives."""

    __slots__ = ("of",)
    only_reads = True

    def __init__(self, x: TensorBase) -> None:
        self.of = weakref.ref(x)

    def __call__(self, g: Tensor) -> None:
        """Keep this gradient."""
        x: Any = self.of()
        if x is not None:
            x._grad = s.clone(g) if x._grad is None else x._grad + g


def kept_by(node: Node, x: TensorBase) -> KeepGrad | None:
    """The hook of this node that keeps the gradient of ``x``."""
    for hook in node.hooks or ():
        if type(hook) is KeepGrad and hook.of() is x:
            return hook
    return None


# ---- the nodes of a write ------------------------------------------------------------------------


class _WriteView:
    """A write into a view, as its base sees it.

    The node's args are the row and arguments of the view, and the shape of the base.
    """

    name = "write"

    @staticmethod
    def vjp(node: Node, g: Tensor) -> tuple[Any, Any]:
        """As below, on the arrays alone."""
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
            part = apply(row, (s.contiguous(g),), args)  # what was a view of the base is one of g
        return kept, part

    @staticmethod
    def jvp(node: Node, tangents: Sequence[Any]) -> Tensor:
        """The tangent of the base, with that of what was written in its place."""
        row, args, shape = node.args
        before, written = tangents
        dtype = (written if before is None else before).dtype
        whole = full(shape, 0.0, dtype=dtype) if before is None else s.clone(s.contiguous(before))
        part = apply(row, (whole,), args)
        overwrite("write", part, number(0) if written is None else written)
        return whole


class _Overwrite:
    """A write over everything: nothing of what was there before counts."""

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
    """The place on the tape of a no_grad view whose base was written on the tape."""

    name = "outdated view"

    @staticmethod
    def vjp(node: Node, g: Any) -> tuple[Any, ...]:
        """Refuse: whether the view's reader wants the gradient of what was written is unclear."""
        raise RuntimeError(
            "[backward] a view made under no_grad() was used after a recorded write had changed "
            "what it shows: make both under no_grad() or neither, or use the view's detach()"
        )

    graph_vjp = vjp

    @classmethod
    def jvp(cls, node: Node, tangents: Sequence[Any]) -> Any:
        return cls.vjp(node, None)


_WRITE_VIEW, _OVERWRITE, _OUTDATED = _WriteView(), _Overwrite(), _Outdated()
