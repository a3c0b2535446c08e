"""The class Tensor: an array and its edge on the tape."""

from __future__ import annotations

import builtins
from collections.abc import Iterator
from typing import Any

from minigrad import functions as f
from minigrad._tensor import autograd, conversion, indexing, late_methods, new_tensors
from minigrad._tensor.count import Count
from minigrad._tensor.inplace import (
    catch_up,
    kept_by,
    overwrite,
    replace,
    stale_views_are,
)
from minigrad._tensor.operators import IN_C, OPERATORS, augmented, both_orders, reflected
from minigrad.functions import creation
from minigrad.functions.arguments import one_dim, renamed
from minigrad.functions.creation import require_grad
from minigrad.functions.elementwise import scale
from minigrad.functions.operands import floats, ints, value_for
from minigrad.functions.row_functions import binary, operator
from minigrad.ops import pointwise as p
from minigrad.ops.table import Row
from minigrad.runtime.devices import CPU, destination, device, on_cpu
from minigrad.runtime.dtypes import (
    bfloat16,
    bool_,
    default_dtype,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
)
from minigrad.runtime.lazy_numpy import np
from minigrad.runtime.native import call, ffi, kernels
from minigrad.tape.apply import apply
from minigrad.tape.grad_mode import is_grad_enabled, no_grad_scopes
from minigrad.tape.node import LEAF, Node
from minigrad.tape.slice_grad import SliceGrad
from minigrad.tape.speed import accelerator
from minigrad.tape.tensor_base import (
    Fields,
    TensorBase,
    Views,
    copied,
    results_are,
    wrap,
)

__all__ = ["Tensor"]


@results_are
class Tensor(TensorBase):
    """An n-dimensional array, differentiable if it holds float32 or float64.

    :func:`minigrad.tensor`, :func:`minigrad.from_numpy` and the other creation functions make
    tensors. Operations return new ones. Shapes and the meaning of methods are PyTorch's. NumPy's
    ``axis`` and ``keepdims`` are accepted for ``dim`` and ``keepdim``.

    >>> import minigrad as mg
    >>> x = mg.tensor([1.0, 2.0], requires_grad=True)
    >>> (x * x).sum().backward()
    >>> x.grad
    tensor([2., 4.])

    Users may set their own attributes, which copies, deep copies and pickles keep.
    """

    __slots__ = ()
    __hash__ = object.__hash__

    def __new__(
        cls,
        *data: Any,
        dtype: Any = None,
        requires_grad: builtins.bool = False,
        device: Any = None,
    ) -> Tensor:
        """A tensor of given sizes or data, in the default float dtype unless another is given.

        As in PyTorch, integers are sizes, and so is the shape of a tensor: ``Tensor(2, 3)`` and
        ``Tensor(x.shape)`` are uninitialised. Any other argument is data, as for
        :func:`minigrad.tensor`. A call of a subclass makes an instance of it.

        >>> import minigrad as mg
        >>> mg.Tensor([1, 2]), mg.Tensor(2, 3).shape
        (tensor([1., 2.]), (2, 3))
        """
        kind = dtype or default_dtype()
        made = require_grad(creation.of_sizes_or_data("Tensor", data, kind, device), requires_grad)
        return made if cls is Tensor else _of_class(cls, made)

    # ---- what it is ----

    @property
    def ndim(self) -> builtins.int:
        """The number of dimensions."""
        return int(self._h.ndim)

    @property
    def size(self) -> Count:
        """The number of elements. A call returns the shape, or the size of one dimension.

        >>> import minigrad as mg
        >>> x = mg.zeros(2, 3)
        >>> x.size, x.size(), x.size(-1)
        (6, (2, 3), 3)
        """
        made = Count(self._h.size)
        made.shape = self.shape
        return made

    def numel(self) -> builtins.int:
        """The number of elements."""
        return int(self._h.size)

    nelement = numel

    def dim(self) -> builtins.int:
        """The number of dimensions."""
        return int(self._h.ndim)

    ndimension = dim

    def stride(self, dim: builtins.int | None = None) -> Any:
        """The strides in elements, or the stride of one dimension."""
        steps = self.strides
        return steps if dim is None else steps[one_dim("stride", dim, len(steps))]

    def storage_offset(self) -> builtins.int:
        """The offset of the first element in the shared memory, in elements."""
        first = ffi.cast("char **", self._h.buffer)[0]  # first field of mg_buffer
        return (self.data_ptr() - int(ffi.cast("uintptr_t", first))) // self.itemsize

    def data_ptr(self) -> builtins.int:
        """The address of the first element."""
        return int(ffi.cast("uintptr_t", self._h.data))

    def resize_(self, *sizes: Any, memory_format: Any = None) -> Tensor:
        """Give this tensor another size. The first elements are kept, new ones are uninitialised.

        Raises RuntimeError for a tensor that requires grad.
        """
        if self._edge is not None:
            raise RuntimeError("[resize_] a tensor that requires grad is not resized: use reshape")
        made = creation.empty(*sizes, dtype=self.dtype)
        kept = builtins.min(made._h.size, self._h.size)
        f.reshape(made, (-1,))[:kept] = f.reshape(self, (-1,))[:kept]
        replace(self, made._h)
        return self

    def resize_as_(self, other: Tensor, memory_format: Any = None) -> Tensor:
        """:meth:`resize_` to the shape of another tensor."""
        return self.resize_(other.shape)

    def detach_(self) -> Tensor:
        """Make this a leaf that requires no grad. Raises RuntimeError for a view."""
        if getattr(self, "_alias", None) is not None:
            raise RuntimeError("[detach_] this tensor is a view: use detach()")
        self._edge = None
        return self

    def share_memory_(self) -> Tensor:
        """The tensor itself: threads share all memory."""
        return self

    def is_shared(self) -> builtins.bool:
        """False: processes share no memory."""
        return False

    @property
    def retains_grad(self) -> builtins.bool:
        """True if this is no leaf and keeps its gradient in ``grad``."""
        return type(self._edge) is Node and bool(kept_by(self._edge, self))

    @property
    def output_nr(self) -> builtins.int:
        """The position among the results of a Function; 0 if the operation has one result."""
        op = getattr(self._edge, "op", None)
        return int(getattr(getattr(op, "op", op), "place", 0))

    def element_size(self) -> builtins.int:
        """The size of an element in bytes."""
        return self.dtype.itemsize

    def is_complex(self) -> builtins.bool:
        """False: minigrad has no complex dtypes."""
        return False

    def is_signed(self) -> builtins.bool:
        """True if the dtype has negative numbers."""
        return self.dtype.is_signed

    def is_nonzero(self) -> builtins.bool:
        """True unless the only element is 0. Raises RuntimeError for more or fewer elements."""
        from minigrad.functions.predicates import is_nonzero

        return is_nonzero(self)

    def is_same_size(self, other: Tensor) -> builtins.bool:
        """True if the other tensor has the same shape."""
        return self.shape == other.shape

    @property
    def strides(self) -> tuple[builtins.int, ...]:
        """The stride of each dimension, in elements."""
        return self._h.strides

    def is_contiguous(self, memory_format: Any = None) -> builtins.bool:
        """True if the elements lie in row-major order without gaps.

        With ``memory_format=mg.channels_last``, the order of an image's dimensions has the channels
        last. ``mg.channels_last_3d`` does the same for volumes.
        """
        ndim = {"channels_last": 4, "channels_last_3d": 5}.get(str(memory_format))
        if ndim is None:
            return builtins.bool(self._h.contiguous)
        return self.ndim == ndim and f.movedim(self.detach(), 1, -1).is_contiguous()

    @property
    def _version(self) -> builtins.int:
        """The version of the memory, which grows with every in-place write."""
        return self._h.version

    # ---- the tape ----

    @property
    def requires_grad(self) -> builtins.bool:
        """True if a backward computes a gradient for this tensor, or through it."""
        return self._edge is not None

    @requires_grad.setter
    def requires_grad(self, value: builtins.bool) -> None:
        self.requires_grad_(value)

    requires_grad_ = autograd.requires_grad_

    @property
    def grad_fn(self) -> Node | None:
        """The node of the recorded operation that made this tensor, or None."""
        return self._edge if type(self._edge) is Node else None

    @property
    def is_leaf(self) -> builtins.bool:
        """True if no recorded operation made this tensor."""
        return type(self._edge) is not Node

    detach = autograd.detach

    @property
    def data(self) -> Tensor:
        """The tensor as from :meth:`detach`.

        An assignment replaces the values behind the tape's back.

        A leaf takes the dtype of an assigned tensor or array. If the leaf requires a gradient, any
        dtype except float32 and float64 raises TypeError. Other tensors keep their dtype, and other
        values are cast. ``grad`` stays as it is, as in PyTorch: after values of another shape set
        it to None.
        """
        return self.detach()

    @data.setter
    def data(self, values: Any) -> None:
        source = value_for("data", self, values).detach()
        if self._edge is LEAF and (source.dtype.is_storage or not source.dtype.is_floating_point):
            raise TypeError(
                "[data] a tensor that requires grad holds float32 or float64, not "
                f"{source.dtype.name}"
            )
        if type(self._edge) is Node:  # the node passes on gradients of this dtype
            source = f.to(source, self.dtype)
        replace(self, source._h)

    register_hook = autograd.register_hook
    register_post_accumulate_grad_hook = autograd.register_post_accumulate_grad_hook
    retain_grad = autograd.retain_grad

    # ---- out of it ----

    item = conversion.item
    tolist = conversion.tolist
    numpy = conversion.numpy

    def __array__(
        self, dtype: Any = None, copy: builtins.bool | None = None
    ) -> np.ndarray[Any, Any]:
        """NumPy's conversion protocol. Raises RuntimeError for a tensor that requires grad."""
        view = self.numpy()
        kind = view.dtype if dtype is None else np.dtype(dtype)
        if kind != view.dtype:
            if copy is False:
                raise ValueError(f"[numpy] {view.dtype} to {kind} needs a copy")
            return view.astype(kind)
        return view.copy() if copy else view

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        """NumPy's protocol for universal functions, and for operators with an array on the left."""
        from minigrad.interop.numpy_protocol import array_ufunc

        return array_ufunc(ufunc, method, inputs, options)

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        """NumPy's protocol for its other functions."""
        from minigrad.interop.numpy_protocol import array_function, is_ours

        return array_function(function, args, options) if is_ours(types) else NotImplemented

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: Any = None,
        dl_device: Any = None,
        copy: builtins.bool | None = None,
    ) -> Any:
        """A DLPack capsule on the same memory, from which other libraries make an array.

        Raises BufferError for a tensor that requires grad and for bfloat16. Raises it also for
        memory that a graph needs, if the other library does not know read-only memory.
        """
        from minigrad.interop.dlpack import capsule

        return capsule(self, stream, max_version, dl_device, copy)

    def __dlpack_device__(self) -> tuple[builtins.int, builtins.int]:
        """The CPU in DLPack's form."""
        return 1, 0

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        """The functions of the array API standard, :mod:`minigrad.array_api`.

        Raises ValueError for an unsupported version of the standard.
        """
        from minigrad import array_api

        if api_version not in (None, "2022.12", "2023.12", array_api.__array_api_version__):
            raise ValueError(
                f"[array_namespace] version {api_version!r} of the array API is not offered: use "
                f"{array_api.__array_api_version__!r}"
            )
        return array_api

    def __complex__(self) -> complex:
        return complex(self.item())

    def __float__(self) -> builtins.float:
        return float(self.item())

    def __int__(self) -> builtins.int:
        return int(self.item())

    def __bool__(self) -> builtins.bool:
        if self._h.size != 1:
            raise ValueError(
                f"[bool] the truth of a tensor of shape {self.shape} is not one value: "
                "use .any() or .all()"
            )
        return bool(self.item())

    def __index__(self) -> builtins.int:
        if self.dtype.is_floating_point:
            raise TypeError(f"[index] a {self.dtype.name} tensor cannot be an index")
        return int(self.item())

    def __len__(self) -> builtins.int:
        if not self._h.ndim:
            raise TypeError("[len] a 0-d tensor has no length")
        return self.shape[0]

    def __iter__(self) -> Iterator[Tensor]:
        if not self._h.ndim:
            raise TypeError("[iter] a 0-d tensor cannot be iterated")
        return (f.select(self, 0, i) for i in range(self.shape[0]))

    def __contains__(self, value: Any) -> builtins.bool:
        found: Any = self == value
        if not isinstance(found, Tensor):
            raise TypeError(f"[in] a tensor holds numbers, not {type(value).__name__}")
        return bool(f.any(found))

    def __format__(self, spec: str) -> str:
        """Format a tensor of 0 dimensions as a number, any other as its repr."""
        return format(repr(self) if self._h.ndim else self.item(), spec)

    def __repr__(self) -> str:
        from minigrad._tensor import printing

        return printing.text(self)

    def _repr_html_(self) -> str:
        """The HTML that a notebook shows."""
        from minigrad._tensor import printing

        return printing.html(self)

    # ---- into it ----

    def copy_(self, other: Any, non_blocking: builtins.bool = False) -> Tensor:
        """Write ``other``, broadcast and cast, into this tensor, and return it."""
        return overwrite("copy_", self, value_for("copy_", self, other))

    def fill_(self, value: builtins.float) -> Tensor:
        """Fill the tensor with one value, and return it."""
        return self.copy_(value)

    def zero_(self) -> Tensor:
        """Fill the tensor with 0, and return it."""
        return self.copy_(0)

    def fill_diagonal_(self, fill_value: builtins.float) -> Tensor:
        """Fill the diagonal of a matrix with one value, and return the tensor."""
        if self.ndim != 2:
            raise ValueError(f"[fill_diagonal_] a matrix has 2 dimensions, this one {self.ndim}")
        value = value_for("fill_diagonal_", self, fill_value)
        try:
            overwrite("fill_diagonal_", f.diagonal(self), value)
        except ValueError as error:
            raise renamed("fill_diagonal_", error) from None
        return self

    accumulate_ = autograd.accumulate_

    def apply_row(self, row: Row, *args: Any, beside: tuple[TensorBase, ...] = ()) -> Any:
        """Apply a row of the op table that has no public name to this tensor and others."""
        return apply(row, (self, *beside), args)

    def __getitem__(self, index: Any) -> Tensor:
        return indexing.get(self, index)

    def __setitem__(self, index: Any, value: Any) -> None:
        indexing.put(self, index, value)

    def __copy__(self) -> Tensor:
        """A leaf on the same memory, with the same attributes."""
        copy = _of_class(_class_of(self), require_grad(self.detach(), self._edge is LEAF))
        copy.__dict__.update(self.__dict__)
        return copy

    def __deepcopy__(self, memo: dict[builtins.int, Any]) -> Tensor:
        """A leaf with its own memory, ``grad`` and attributes.

        The copy of an operation's result does not require grad.
        """
        values = require_grad(wrap(call(kernels.copy, self._h)), self._edge is LEAF)
        copy = memo[id(self)] = _of_class(_class_of(self), values)
        if self.grad is not None and self._edge is LEAF:
            copy.grad = self.grad.__deepcopy__(memo)
        if self.__dict__:
            from copy import deepcopy

            copy.__dict__.update(deepcopy(self.__dict__, memo))
        return copy

    def __reduce__(self) -> tuple[Any, ...]:
        dtype = bfloat16 if self.dtype is bfloat16 else None  # NumPy knows only its bits
        values = (self.detach() if dtype is None else f.view(self, int16)).numpy().copy()
        given = (values, self._edge is LEAF, _class_of(self), dtype)
        return _rebuild, given, self.__dict__ or None

    # ---- dtypes ----

    def to(
        self,
        *args: Any,
        dtype: Any = None,
        device: Any = None,
        non_blocking: builtins.bool = False,
        copy: builtins.bool = False,
        memory_format: Any = None,
    ) -> Tensor:
        """The tensor in another dtype, or in another tensor's dtype; itself if nothing changes.

        A device, which is the CPU, may stand before the dtype or in its place. With ``copy`` the
        result is always a new tensor. The other flags are PyTorch's and change nothing.

        Raises TypeError for an unknown dtype, RuntimeError for another device.

        >>> import minigrad as mg
        >>> mg.ones(2).to("cpu", mg.float64)
        tensor([1., 1.], dtype=minigrad.float64)
        """
        kind = destination("to", args, device, dtype)
        made: Tensor = self if kind is None else f.to(self, kind)
        return f.clone(made) if copy and made is self else made

    def astype(self, dtype: Any) -> Tensor:
        """:meth:`to` under NumPy's name."""
        return f.to(self, dtype)

    def type(self, dtype: Any = None, non_blocking: builtins.bool = False, **kwargs: Any) -> Any:
        """The tensor in another dtype; without a dtype, the name of this dtype's class.

        As in old programs, a class or its name may stand for the dtype: "torch.FloatTensor".

        >>> import minigrad as mg
        >>> mg.ones(1).type(), mg.ones(1).type(mg.LongTensor)
        ('minigrad.FloatTensor', tensor([1]))
        """
        from minigrad._tensor.typed_classes import dtype_of_class, name_of_class

        return name_of_class(self.dtype) if dtype is None else f.to(self, dtype_of_class(dtype))

    def svd(self, some: builtins.bool = True, compute_uv: builtins.bool = True) -> Any:
        """The method form of :func:`minigrad.svd`."""
        from minigrad.interop.legacy import svd

        return svd(self, some, compute_uv)

    def float(self, memory_format: Any = None) -> Tensor:
        """This tensor in float32."""
        return f.to(self, float32)

    def double(self, memory_format: Any = None) -> Tensor:
        """This tensor in float64."""
        return f.to(self, float64)

    def long(self, memory_format: Any = None) -> Tensor:
        """This tensor in int64."""
        return f.to(self, int64)

    def int(self, memory_format: Any = None) -> Tensor:
        """This tensor in int32, a storage dtype."""
        return f.to(self, int32)

    def short(self, memory_format: Any = None) -> Tensor:
        """This tensor in int16, a storage dtype."""
        return f.to(self, int16)

    def char(self, memory_format: Any = None) -> Tensor:
        """This tensor in int8, a storage dtype."""
        return f.to(self, int8)

    def byte(self, memory_format: Any = None) -> Tensor:
        """This tensor in uint8, a storage dtype."""
        return f.to(self, uint8)

    def half(self, memory_format: Any = None) -> Tensor:
        """This tensor in float16, a storage dtype. Raises TypeError for one that requires grad."""
        return f.to(self, float16)

    def bfloat16(self, memory_format: Any = None) -> Tensor:
        """This tensor in bfloat16, a storage dtype. Raises TypeError for one that requires grad."""
        return f.to(self, bfloat16)

    def bool(self, memory_format: Any = None) -> Tensor:
        """This tensor in bool: True where an element is not 0."""
        return f.to(self, bool_)

    def is_floating_point(self) -> builtins.bool:
        """True if the dtype is a float."""
        return self.dtype.is_floating_point

    @property
    def itemsize(self) -> builtins.int:
        """The size of an element in bytes."""
        return self.dtype.itemsize

    @property
    def ctypes(self) -> Any:
        """NumPy's attribute with the address of the values: ``x.ctypes.data``.

        Raises ValueError for a tensor that is not contiguous.
        """
        if not self.is_contiguous():
            raise ValueError(
                "[ctypes] a tensor that is not contiguous has no one block of values: use "
                "x.contiguous()"
            )
        return self.numpy().ctypes

    @property
    def nbytes(self) -> builtins.int:
        """The size of all elements in bytes."""
        return self.dtype.itemsize * self.size

    # ---- the device ----

    @property
    def device(self) -> device:
        """The CPU."""
        return CPU

    def to_device(self, device: Any, /, *, stream: Any = None) -> Tensor:
        """The tensor itself, on the CPU. Raises RuntimeError for another device."""
        on_cpu(device)
        return self

    def get_device(self) -> builtins.int:
        """-1, as in PyTorch: the CPU has no index."""
        return -1

    def cpu(self, memory_format: Any = None) -> Tensor:
        """The tensor itself: there is no other device."""
        return self

    def cuda(
        self, device: Any = None, non_blocking: builtins.bool = False, memory_format: Any = None
    ) -> Tensor:
        """Raise a RuntimeError: minigrad computes on the CPU."""
        on_cpu("cuda" if device is None else f"cuda:{device}")
        return self

    def pin_memory(self, device: Any = None) -> Tensor:
        """The tensor itself: all memory is the CPU's."""
        return self

    def is_pinned(self, device: Any = None) -> builtins.bool:
        """False: no memory is pinned."""
        return False

    is_cpu = property(lambda self: True, doc="True.")
    is_cuda = property(lambda self: False, doc="False.")
    is_mps = property(lambda self: False, doc="False.")
    is_xpu = property(lambda self: False, doc="False.")
    is_meta = property(lambda self: False, doc="False.")
    is_sparse = property(lambda self: False, doc="False: all tensors are dense.")
    is_quantized = property(lambda self: False, doc="False.")

    # ---- others of its dtype ----

    new_zeros = new_tensors.new_zeros
    new_ones = new_tensors.new_ones
    new_empty = new_tensors.new_empty
    new_full = new_tensors.new_full
    new_tensor = new_tensors.new_tensor
    new = new_tensors.new

    # ---- operations: the functions of minigrad.functions become methods below ----

    scale = scale

    def where(self, condition: Tensor, other: Any) -> Tensor:
        """The elements of this tensor where the condition is true, else of the other."""
        chosen: Tensor = f.where(condition, self, other)
        return chosen

    def cat_with(self, other: Tensor, dim: builtins.int) -> Tensor:
        """This tensor and another, concatenated along a dimension."""
        return f.cat((self, other), dim)

    def copy(self) -> Tensor:
        """:meth:`clone` under NumPy's name."""
        return f.clone(self)

    @property
    def real(self) -> Tensor:
        """The tensor itself, which is real."""
        return self

    @property
    def imag(self) -> Tensor:
        """Zeros, the imaginary parts of real numbers."""
        return f.imag(self)

    @property
    def T(self) -> Tensor:  # noqa: N802 - the field's name
        """A view with the dimensions in reverse order."""
        return f.transpose(self)

    @property
    def H(self) -> Tensor:  # noqa: N802
        """A view of a matrix, transposed."""
        return f.transpose(self, -2, -1)

    @property
    def mH(self) -> Tensor:  # noqa: N802
        """The last two dimensions swapped; a view."""
        return f.transpose(self, -2, -1)

    @property
    def mT(self) -> Tensor:  # noqa: N802
        """The last two dimensions swapped; a view."""
        return f.transpose(self, -2, -1)

    __neg__, __abs__ = f.neg, f.abs
    __pos__ = f.positive
    __matmul__, __rmatmul__ = f.matmul, reflected(f.matmul)
    __eq__ = binary(p.EQ, True)  # type: ignore[assignment]
    __ne__ = binary(p.NE, True)  # type: ignore[assignment]
    __lt__, __le__, __gt__, __ge__ = (binary(row, True) for row in (p.LT, p.LE, p.GT, p.GE))

    def __divmod__(self, other: Any) -> tuple[Tensor, Tensor]:
        return f.floor_divide(self, other), f.remainder(self, other)

    def __round__(self, ndigits: builtins.int | None = None) -> Tensor:
        return f.round(self, decimals=ndigits or 0)

    def __rdivmod__(self, other: Any) -> tuple[Tensor, Tensor]:
        return f.floor_divide(other, self), f.remainder(other, self)

    __invert__ = f.bitwise_not
    __imatmul__ = augmented(f.matmul)


for _name, _row in OPERATORS.items():
    if _name in IN_C and not accelerator:
        for _form, _method in zip(("", "r"), both_orders(_row), strict=True):
            setattr(Tensor, f"__{_form}{_name}__", _method)
    elif _name not in IN_C:
        setattr(Tensor, f"__{_name}__", binary(_row, True))
        setattr(Tensor, f"__r{_name}__", reflected(binary(_row)))
    setattr(Tensor, f"__i{_name}__", augmented(binary(_row)))
late_methods.install(Tensor)


_EDGE: Any = vars(Fields)["_edge"]  # the slot, which the property below hides


@stale_views_are
class _StaleView(Tensor):
    """A view whose base was written since. It becomes a Tensor again when its edge is read."""

    __slots__ = ()

    @property
    def _edge(self) -> Any:
        catch_up(self)
        return _EDGE.__get__(self)

    @_edge.setter
    def _edge(self, edge: Any) -> None:
        catch_up(self)
        _EDGE.__set__(self, edge)


_StaleView.__name__ = _StaleView.__qualname__ = "Tensor"  # users see the class Tensor


if accelerator:
    accelerator.use(
        *(Tensor, _StaleView, is_grad_enabled, no_grad_scopes, ints, floats),
        *(copied, SliceGrad, Views, Row, accelerator.callbacks),
        *[operator(OPERATORS[_name]) for _name in IN_C],
    )


def _class_of(x: Tensor) -> type[Tensor]:
    """The class of x as the user sees it."""
    return Tensor if type(x) is _StaleView else type(x)


def _of_class(cls: type[Tensor], x: Tensor) -> Tensor:
    """Turn a new leaf into an instance of a subclass."""
    if cls is Tensor:
        return x
    made: Tensor = object.__new__(cls)
    made._h, made._edge, made._shape, made._grad = x._h, x._edge, None, None
    return made


def _rebuild(
    values: Any, requires_grad: builtins.bool, cls: type[Tensor] = Tensor, dtype: Any = None
) -> Tensor:
    made = creation.tensor(values, requires_grad=requires_grad)
    return _of_class(cls, made if dtype is None else f.view(made, dtype))
