"""Base class of Tensor: an array, its edge on the tape, its grad, its base and its views.

The *edge* says where a tensor's gradient goes. It is None for a tensor that needs no gradient,
``LEAF`` for a leaf that requires one, and a node for a result. A tensor made from a saved array of
a leaf has that leaf tensor as its edge.
"""

from __future__ import annotations

import weakref
from _thread import RLock
from typing import TYPE_CHECKING, Any, TypeVar

from minigrad.runtime.batched import batched_parent, batched_wrap, running
from minigrad.runtime.dtypes import DType, by_code
from minigrad.runtime.errors import misfit_error
from minigrad.runtime.native import Array, call, kernels
from minigrad.runtime.size import Size
from minigrad.tape.node import LEAF, Parent
from minigrad.tape.speed import accelerator

if TYPE_CHECKING:
    from minigrad._tensor import Tensor
    from minigrad.ops.table import Row
    from minigrad.tape.hooks import LeafHooks

__all__ = [
    "Fields",
    "Size",
    "TensorBase",
    "Views",
    "copied",
    "edge_of",
    "grad_uses",
    "link",
    "mark",
    "parent_of",
    "result_type",
    "results_are",
    "wrap",
]


class Fields:
    """The fields of a tensor: its array and its place on the tape."""

    # Views have _alias, tensors with views have _views, and leaves with hooks have _hooks.
    __slots__ = (
        "__dict__",
        "__weakref__",
        "_alias",
        "_edge",
        "_grad",
        "_h",
        "_hooks",
        "_shape",
        "_views",
    )

    _h: Array
    _edge: Any
    _shape: Size | None
    _grad: Any
    # A view's base, row and arguments. A view made under no_grad has no place on the tape: it has
    # only a weak reference to its topmost base.
    _alias: tuple[Any, ...]
    _views: Views
    _hooks: LeafHooks

    @property
    def shape(self) -> Size:
        """The size of each dimension."""
        shape = self._shape
        if shape is None:
            shape = self._shape = Size(self._h.shape)
        return shape

    @property
    def grad(self) -> Tensor | None:
        """The sum of the gradients of all backward calls, or None."""
        _grad_uses[0] += 1
        return self._grad

    @grad.setter
    def grad(self, g: Any) -> None:
        _grad_uses[0] += 1
        if g is not None and (g is self or not isinstance(g, Fields) or not self._h.alike(g._h)):
            raise misfit_error(self, g)
        self._grad = g

    @grad.deleter
    def grad(self) -> None:
        _grad_uses[0] += 1
        self._grad = None


_grad_uses = [0]


def grad_uses() -> int:
    """How often the ``grad`` of a tensor was read or set: in C by this thread, else by all."""
    return _grad_uses[0]


_new = object.__new__


def wrap(handle: Array, edge: Any = None, /) -> Tensor:
    """A tensor that holds this array and has this edge."""
    if type(handle) is not Array:
        return batched_wrap(handle, edge)[0]
    out = _new(_result_type)
    out._h = handle
    out._edge = edge
    out._shape = out._grad = None
    return out


def parent_of(x: TensorBase, /) -> Parent:
    """The parent that an input gives a node: the input's node, the leaf itself, or None."""
    edge = x._edge
    if type(x) is not _result_type:
        batched_parent(x)
    return x if edge is LEAF else edge


def edge_of(x: TensorBase, /) -> Parent:
    """As :func:`parent_of`, also of a batched tensor: that of the tensor with all slices."""
    while running and hasattr(type(x), "_level"):
        x = x._physical  # type: ignore[attr-defined]
    return parent_of(x)


# ---- views ---------------------------------------------------------------------------------------


class Views:
    """Weak references to the living views of a tensor.

    ``refs`` has all views. ``current`` has the views whose edges are up to date: the next write
    must mark them stale. From ``limit`` views on, dead ones are removed from both lists.
    """

    __slots__ = ("current", "limit", "refs")

    def __init__(self) -> None:
        self.refs: list[weakref.ref[TensorBase]] = []
        self.current: list[weakref.ref[TensorBase]] = []
        self.limit = 16

    def add(self, view: TensorBase) -> None:
        """Register a view with a weak reference."""
        ref = weakref.ref(view)
        self.refs.append(ref)
        if not len(self.refs) % 16 and len(self.refs) >= self.limit:
            with _changing_views:  # other threads may append meanwhile, but not remove
                for refs in (self.refs, self.current):
                    count = len(refs)
                    refs[:count] = [ref for ref in refs[:count] if ref() is not None]
                self.limit = max(16, 2 * len(self.refs))
        self.current.append(ref)


_changing_views = RLock()  # reentrant: a finalizer in this thread may take views


def _views_of(base: TensorBase) -> Views:
    views = getattr(base, "_views", None)
    if views is None:
        with _changing_views:
            views = getattr(base, "_views", None)
            if views is None:
                views = base._views = Views()
    return views


def link(view: TensorBase, base: TensorBase, row: Row, args: tuple[Any, ...], /) -> None:
    """Record that ``view`` is a view of ``base``, made by a row of the op table."""
    view._alias = (base, row, args)
    _views_of(base).add(view)


def mark(view: TensorBase, alias: tuple[Any, ...]) -> None:
    """Give ``view``, which has no place on the tape, this ``_alias``, and tell its base of it."""
    view._alias = alias
    top = alias[0]()
    if top is not None:
        _views_of(top).add(view)


def mark_under_no_grad(view: TensorBase, base: Any) -> None:
    """Mark a view of ``base`` that was made under no_grad.

    Its topmost base will tell it of a recorded write. A view of a marked view gets the same mark
    and the same edge.
    """
    alias = getattr(base, "_alias", None)
    while alias is not None and len(alias) == 3:
        base = alias[0]
        alias = getattr(base, "_alias", None)
    if alias is not None and base._edge is not LEAF:
        view._edge = base._edge
    mark(view, (weakref.ref(base),) if alias is None else alias)


if accelerator:
    Fields = accelerator.Fields  # type: ignore[misc]
    Size = accelerator.Size  # type: ignore[misc]
    wrap, parent_of, link = accelerator.wrap, accelerator.parent_of, accelerator.link
    grad_uses = accelerator.grad_uses


class TensorBase(Fields):
    """An array and its edge on the tape."""

    __slots__ = ()

    if TYPE_CHECKING:  # the operators of Tensor

        def __add__(self, other: Any, /) -> Tensor: ...

        __sub__ = __mul__ = __truediv__ = __pow__ = __add__
        __radd__ = __rsub__ = __rmul__ = __rtruediv__ = __rpow__ = __add__

    @property
    def dtype(self) -> DType:
        """The element type."""
        return by_code[self._h.dtype]


_result_type: Any = TensorBase
_T = TypeVar("_T", bound=type)


def results_are(cls: _T) -> _T:
    """Class decorator: operations return instances of this subclass of TensorBase."""
    global _result_type
    _result_type = cls
    return cls


def result_type() -> Any:
    """The class of the tensors that operations return."""
    return _result_type


def copied(x: TensorBase) -> Tensor:
    """A contiguous copy without an edge."""
    return wrap(call(kernels.copy, x._h))
