"""The Tensor: an array that remembers where it came from."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from minigrad import functions as f
from minigrad import indexing, printing
from minigrad._c import call, lib
from minigrad._c import run as run_kernel
from minigrad.autograd import backward
from minigrad.creation import require_grad, to_numpy
from minigrad.dispatch import TensorBase, as_operand, binary, results_are, wrap, write
from minigrad.dtypes import float32, float64
from minigrad.elementwise import scale
from minigrad.ops import pointwise as p
from minigrad.shaping import tensor_operand
from minigrad.tape import LEAF, Node, mode

if TYPE_CHECKING:
    import numpy as np

__all__ = ["Tensor"]


def _reflected(function: Callable[[Any, Any], Tensor]) -> Callable[[Tensor, Any], Tensor]:
    def reflected(self: Tensor, other: Any) -> Tensor:
        operand = as_operand(other)
        return NotImplemented if operand is None else function(operand, self)

    return reflected


def _in_place(function: Callable[[Any, Any], Tensor]) -> Callable[[Tensor, Any], Tensor]:
    """``x += y``: a write into x, or a new tensor where a gradient is to flow."""

    def in_place(self: Tensor, other: Any) -> Tensor:
        other = as_operand(other)
        if other is None:
            return NotImplemented  # type: ignore[no-any-return]
        tracked = self._edge is not None or other._edge is not None
        if tracked and mode.enabled:
            return function(self, other)
        self.copy_(_keeping_shape(self, function(self, other), function.__name__))
        return self

    return in_place


def _keeping_shape(x: Tensor, result: Tensor, op: str) -> Tensor:
    if result.shape != x.shape:
        raise ValueError(
            f"[{op}] in place, the result of shape {result.shape} does not fit {x.shape}"
        )
    if result.dtype is not x.dtype and result.dtype.code > x.dtype.code:
        raise TypeError(
            f"[{op}] in place, a {result.dtype.name} result does not fit into {x.dtype.name}"
        )
    return result


@results_are
class Tensor(TensorBase):
    """An n-dimensional array of float32, float64, int64 or bool, differentiable if it holds floats.

    Make one with :func:`minigrad.tensor`, :func:`minigrad.from_numpy` and the other creation
    functions; operations return new ones. Shapes and meaning of the methods are PyTorch's; NumPy's
    ``axis`` and ``keepdims`` are accepted for ``dim`` and ``keepdim``.

    >>> import minigrad as mg
    >>> x = mg.tensor([1.0, 2.0], requires_grad=True)
    >>> (x * x).sum().backward()
    >>> x.grad
    tensor([2., 4.])
    """

    __slots__ = ()
    __array_ufunc__ = None  # NumPy leaves `ndarray * tensor` to the tensor
    __hash__ = object.__hash__

    def __new__(cls, data: Any = None, dtype: Any = None, requires_grad: bool = False) -> Tensor:
        """As :func:`minigrad.tensor`."""
        from minigrad.creation import tensor

        return tensor(() if data is None else data, dtype, requires_grad)

    # ---- what it is ----

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return int(self._h.ndim)

    @property
    def size(self) -> int:
        """The number of elements."""
        return int(self._h.size)

    def numel(self) -> int:
        """The number of elements."""
        return int(self._h.size)

    def dim(self) -> int:
        """The number of dimensions."""
        return int(self._h.ndim)

    @property
    def strides(self) -> tuple[int, ...]:
        """The step between neighbours along each dimension, in elements."""
        h = self._h
        return tuple(h.strides[0 : h.ndim])

    def is_contiguous(self) -> bool:
        """Whether the elements lie in row-major order without gaps."""
        return bool(lib.mg_contiguous_now(self._h))

    @property
    def _version(self) -> int:
        """Grows with every in-place write to the memory."""
        return int(lib.mg_version(self._h))

    # ---- the tape ----

    @property
    def requires_grad(self) -> bool:
        """Whether a backward computes a gradient for it, or through it."""
        return self._edge is not None

    @requires_grad.setter
    def requires_grad(self, wanted: bool) -> None:
        self.requires_grad_(wanted)

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        """Make it a leaf that requires a gradient, or not; returns it."""
        if type(self._edge) is Node:
            if not requires_grad:
                raise RuntimeError(
                    "[requires_grad_] only leaves can stop requiring grad; use detach()"
                )
            return self
        return require_grad(self, requires_grad)

    @property
    def grad_fn(self) -> Node | None:
        """The operation it is the result of, if that was recorded."""
        return self._edge if type(self._edge) is Node else None

    @property
    def is_leaf(self) -> bool:
        """Whether it was made by the user, not by a recorded operation."""
        return type(self._edge) is not Node

    def backward(
        self,
        gradient: Any = None,
        retain_graph: bool | None = None,
        create_graph: bool = False,
    ) -> None:
        """Add the gradient of this tensor with respect to every leaf to the leaf's ``grad``.

        ``gradient`` is the upstream gradient, of this tensor's shape; it may be left out for a
        tensor with one element. The graph is freed unless ``retain_graph`` (default: create_graph).

        Raises RuntimeError if there is no graph, or it was freed, or a saved tensor was
        overwritten.
        """
        backward(self, gradient, retain_graph, create_graph)

    def detach(self) -> Tensor:
        """The same memory, without a history."""
        return wrap(call(lib.mg_view_alias, self._h))

    def register_hook(self, hook: Callable[[Tensor], Tensor | None]) -> Callable[[], None]:
        """Call ``hook(gradient)`` when this tensor's gradient is known; it may return another one.

        Returns a function that removes the hook. RuntimeError for a leaf or an untracked tensor.
        """
        node = self._edge
        if type(node) is not Node:
            raise RuntimeError("[register_hook] only results of recorded operations can have hooks")
        if node.hooks is None:
            node.hooks = []
        hooks = node.hooks
        hooks.append(hook)
        return lambda: hooks.remove(hook) if hook in hooks else None

    def retain_grad(self) -> None:
        """Keep the gradient of this non-leaf in ``grad`` too."""
        if self.is_leaf:
            return
        me = weakref.ref(self)

        def keep(g: Tensor) -> None:
            x = me()
            if x is not None:
                x.grad = g.clone() if x.grad is None else x.grad + g

        self.register_hook(keep)

    # ---- out of it ----

    def item(self) -> float | int | bool:
        """The one element as a Python number; ValueError unless there is exactly one."""
        h = self._h
        if h.size != 1:
            raise ValueError(
                f"[item] a tensor of shape {self.shape} has {h.size} elements, not one"
            )
        if h.dtype >= lib.MG_FLOAT32:
            return float(lib.mg_item_float(h))
        value = int(lib.mg_item_int(h))
        return bool(value) if h.dtype == lib.MG_BOOL else value

    def tolist(self) -> Any:
        """The elements as nested lists of Python numbers; a number for 0 dimensions."""
        return to_numpy(self._h).tolist()

    def numpy(self) -> np.ndarray[Any, Any]:
        """A NumPy array on the same memory; read-only while a graph needs that memory.

        RuntimeError for a tensor that requires grad: use ``detach().numpy()``.
        """
        if self._edge is not None:
            raise RuntimeError(
                "[numpy] this tensor requires grad, which NumPy cannot follow; "
                "use x.detach().numpy()"
            )
        return to_numpy(self._h)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        """NumPy's conversion protocol."""
        import numpy as np

        shown = self.numpy()
        wanted = shown.dtype if dtype is None else np.dtype(dtype)
        if wanted != shown.dtype:
            if copy is False:
                raise ValueError(f"[numpy] {shown.dtype} to {wanted} needs a copy")
            return shown.astype(wanted)
        return shown.copy() if copy else shown

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __bool__(self) -> bool:
        if self._h.size != 1:
            raise ValueError(
                f"[bool] the truth of a tensor of shape {self.shape} is not one value: "
                "use .any() or .all()"
            )
        return bool(self.item())

    def __index__(self) -> int:
        if self.dtype.is_floating_point:
            raise TypeError(f"[index] a {self.dtype.name} tensor cannot be an index")
        return int(self.item())

    def __len__(self) -> int:
        if not self._h.ndim:
            raise TypeError("[len] a 0-d tensor has no length")
        return self.shape[0]

    def __iter__(self) -> Iterator[Tensor]:
        if not self._h.ndim:
            raise TypeError("[iter] a 0-d tensor cannot be iterated")
        return (self[i] for i in range(self.shape[0]))

    def __contains__(self, value: Any) -> bool:
        return bool((self == value).any())

    def __format__(self, spec: str) -> str:
        if spec and self._h.ndim == 0:
            return format(self.item(), spec)
        return format(repr(self), spec)

    def __repr__(self) -> str:
        return printing.text(self)

    # ---- into it ----

    def copy_(self, source: Any) -> Tensor:
        """Write ``source``, broadcast and cast, into this tensor; returns it."""
        write(lib.mg_write, self, self._h, tensor_operand("copy_", source)._h)
        return self

    def fill_(self, value: float) -> Tensor:
        """Write one value everywhere; returns the tensor."""
        return self.copy_(value)

    def zero_(self) -> Tensor:
        """Write 0 everywhere; returns the tensor."""
        return self.copy_(0)

    def accumulate_(self, g: Tensor) -> None:
        """Add a gradient of the same shape and dtype into memory that only the caller holds."""
        run_kernel(lib.mg_accumulate, self._h, g._h)

    def __getitem__(self, index: Any) -> Tensor:
        return indexing.get(self, index)

    def __setitem__(self, index: Any, value: Any) -> None:
        indexing.put(self, index, value)

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        if not self.is_leaf:
            raise RuntimeError("[deepcopy] only leaves can be copied deeply; use detach().clone()")
        copy = require_grad(wrap(call(lib.mg_copy, self._h)), self._edge is LEAF)
        memo[id(self)] = copy
        if self.grad is not None:
            copy.grad = self.grad.__deepcopy__(memo)
        return copy

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (self.detach().numpy().copy(), self._edge is not None)

    # ---- dtypes ----

    def to(self, dtype: Any) -> Tensor:
        """The same values in another dtype; the tensor itself where nothing changes."""
        return f.to(self, dtype)

    def astype(self, dtype: Any) -> Tensor:
        """As :meth:`to`; NumPy's name."""
        return f.to(self, dtype)

    def float(self) -> Tensor:
        """As float32."""
        return f.to(self, float32)

    def double(self) -> Tensor:
        """As float64."""
        return f.to(self, float64)

    def type_as(self, other: Tensor) -> Tensor:
        """In the other tensor's dtype."""
        return f.to(self, other.dtype)

    # ---- operations: the functions of minigrad.functions become methods below ----

    scale = scale

    def where(self, condition: Tensor, other: Any) -> Tensor:
        """This tensor where the condition holds, else the other."""
        return f.where(condition, self, other)

    def cat_with(self, other: Tensor, dim: int) -> Tensor:
        """This tensor and another side by side."""
        return f.cat((self, other), dim)

    def copy(self) -> Tensor:
        """As clone; NumPy's name."""
        return f.clone(self)

    @property
    def T(self) -> Tensor:  # noqa: N802 - the field's name
        """The dimensions in reverse order; a view."""
        return f.transpose(self)

    @property
    def mT(self) -> Tensor:  # noqa: N802
        """The last two dimensions swapped; a view."""
        return f.transpose(self, -2, -1)

    __neg__, __abs__ = f.neg, f.abs
    __pos__ = f.clone
    __add__, __radd__, __iadd__ = binary(p.ADD, True), _reflected(f.add), _in_place(f.add)
    __sub__, __rsub__, __isub__ = binary(p.SUB, True), _reflected(f.sub), _in_place(f.sub)
    __mul__, __rmul__, __imul__ = binary(p.MUL, True), _reflected(f.mul), _in_place(f.mul)
    __truediv__, __rtruediv__ = binary(p.DIV, True), _reflected(f.div)
    __itruediv__ = _in_place(f.div)
    __pow__, __rpow__, __ipow__ = binary(p.POW, True), _reflected(f.pow), _in_place(f.pow)
    __matmul__, __rmatmul__ = f.matmul, _reflected(f.matmul)
    __eq__ = binary(p.EQ, True)  # type: ignore[assignment]
    __ne__ = binary(p.NE, True)  # type: ignore[assignment]
    __lt__, __le__, __gt__, __ge__ = (binary(row, True) for row in (p.LT, p.LE, p.GT, p.GE))

    def __invert__(self) -> Tensor:
        return f.eq(_logical("~", self), False)

    def __and__(self, other: Any) -> Tensor:
        return f.mul(*_logical_pair("&", self, other))

    def __or__(self, other: Any) -> Tensor:
        return f.add(*_logical_pair("|", self, other))

    def __xor__(self, other: Any) -> Tensor:
        return f.ne(*_logical_pair("^", self, other))

    __rand__, __ror__, __rxor__ = __and__, __or__, __xor__


for _name in f.__all__:
    if _name not in f.NOT_METHODS and _name not in Tensor.__dict__:
        setattr(Tensor, _name, getattr(f, _name))


def _logical(op: str, x: Any) -> Tensor:
    if x.dtype.name != "bool":
        raise TypeError(f"[{op}] offered for bool tensors, not {x.dtype.name}: compare them first")
    return x  # type: ignore[no-any-return]


def _logical_pair(op: str, a: Tensor, b: Any) -> tuple[Tensor, Tensor]:
    other = as_operand(b)
    if other is None:
        raise TypeError(f"[{op}] expected a bool tensor, not {type(b).__name__}")
    return _logical(op, a), _logical(op, other)


def _rebuild(values: Any, requires_grad: bool) -> Tensor:
    from minigrad.creation import tensor

    return tensor(values, requires_grad=requires_grad)
