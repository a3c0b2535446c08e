# Written by docs/stubs.py from the modules themselves: change those.
import builtins
from collections.abc import Callable, Iterator, Sequence
from minigrad._tensor.count import Count
from minigrad.functions.reductions import Extrema, Found
from minigrad.functions.solving import Slogdet
from minigrad.functions.statistics import Histogram
from minigrad.ops.table import Row
from minigrad.random import Generator
from minigrad.runtime.devices import device
from minigrad.tape.hooks import Removable
from minigrad.tape.node import Node
from minigrad.tape.slice_grad import SliceGrad
from minigrad.tape.tensor_base import TensorBase
import numpy as np
from typing import Any, Literal, overload

__all__ = ["Tensor"]

class Tensor(TensorBase):
    """An n-dimensional array, differentiable if it holds float32 or float64."""
    def __new__(cls, *data: Any, dtype: Any = None, requires_grad: builtins.bool = False, device: Any = None) -> Tensor:
        """A tensor of given sizes or data, in the default float dtype unless another is given."""
    @property
    def ndim(self) -> builtins.int:
        """The number of dimensions."""
    @property
    def size(self) -> Count:
        """The number of elements. A call returns the shape, or the size of one dimension."""
    def numel(self) -> builtins.int:
        """The number of elements."""
    def nelement(self) -> builtins.int:
        """The number of elements."""
    def dim(self) -> builtins.int:
        """The number of dimensions."""
    def ndimension(self) -> builtins.int:
        """The number of dimensions."""
    def stride(self, dim: builtins.int | None = None) -> Any:
        """The strides in elements, or the stride of one dimension."""
    def storage_offset(self) -> builtins.int:
        """The offset of the first element in the shared memory, in elements."""
    def data_ptr(self) -> builtins.int:
        """The address of the first element."""
    def resize_(self, *sizes: Any, memory_format: Any = None) -> Tensor:
        """Give this tensor another size. The first elements are kept, new ones are uninitialised."""
    def resize_as_(self, other: Tensor, memory_format: Any = None) -> Tensor:
        """:meth:`resize_` to the shape of another tensor."""
    def detach_(self) -> Tensor:
        """Make this a leaf that requires no grad. Raises RuntimeError for a view."""
    def share_memory_(self) -> Tensor:
        """The tensor itself: threads share all memory."""
    def is_shared(self) -> builtins.bool:
        """False: processes share no memory."""
    @property
    def retains_grad(self) -> builtins.bool:
        """True if this is no leaf and keeps its gradient in ``grad``."""
    @property
    def output_nr(self) -> builtins.int:
        """The position among the results of a Function; 0 if the operation has one result."""
    def element_size(self) -> builtins.int:
        """The size of an element in bytes."""
    def is_complex(self) -> builtins.bool:
        """False: minigrad has no complex dtypes."""
    def is_signed(self) -> builtins.bool:
        """True if the dtype has negative numbers."""
    def is_nonzero(self) -> builtins.bool:
        """True unless the only element is 0. Raises RuntimeError for more or fewer elements."""
    def is_same_size(self, other: Tensor) -> builtins.bool:
        """True if the other tensor has the same shape."""
    @property
    def strides(self) -> tuple[builtins.int, ...]:
        """The stride of each dimension, in elements."""
    def is_contiguous(self, memory_format: Any = None) -> builtins.bool:
        """True if the elements lie in row-major order without gaps."""
    @property
    def _version(self) -> builtins.int:
        """The version of the memory, which grows with every in-place write."""
    @property
    def requires_grad(self) -> builtins.bool:
        """True if a backward computes a gradient for this tensor, or through it."""
    @requires_grad.setter
    def requires_grad(self, value: Any) -> None: ...
    def requires_grad_(self, requires_grad: builtins.bool = True) -> Tensor:
        """Set whether this leaf requires a gradient, and return it."""
    @property
    def grad_fn(self) -> Node | None:
        """The node of the recorded operation that made this tensor, or None."""
    @property
    def is_leaf(self) -> builtins.bool:
        """True if no recorded operation made this tensor."""
    def detach(self) -> Tensor:
        """A tensor on the same memory, without a history."""
    @property
    def data(self) -> Tensor:
        """The tensor as from :meth:`detach`."""
    @data.setter
    def data(self, value: Any) -> None: ...
    def register_hook(self, hook: Callable[[Tensor], Tensor | None]) -> Removable:
        """Call ``hook(gradient)`` when this tensor's gradient is known."""
    def register_post_accumulate_grad_hook(self, hook: Callable[[Tensor], None]) -> Removable:
        """Call ``hook(tensor)`` after each backward that added to this leaf's ``grad``."""
    def retain_grad(self) -> None:
        """Keep the gradient of this non-leaf tensor in ``grad`` at each backward."""
    def item(self) -> builtins.float | builtins.int | builtins.bool:
        """The only element as a Python number. Raises ValueError unless there is exactly one."""
    def tolist(self) -> Any:
        """The elements as nested lists of Python numbers, or one number for 0 dimensions."""
    def numpy(self, *, force: builtins.bool = False) -> np.ndarray[Any, Any]:
        """A NumPy array on the same memory. It is read-only while a graph needs this memory."""
    def __array__(self, dtype: Any = None, copy: builtins.bool | None = None) -> np.ndarray[Any, Any]:
        """NumPy's conversion protocol. Raises RuntimeError for a tensor that requires grad."""
    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        """NumPy's protocol for universal functions, and for operators with an array on the left."""
    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        """NumPy's protocol for its other functions."""
    def __dlpack__(self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: builtins.bool | None = None) -> Any:
        """A DLPack capsule on the same memory, from which other libraries make an array."""
    def __dlpack_device__(self) -> tuple[builtins.int, builtins.int]:
        """The CPU in DLPack's form."""
    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        """The functions of the array API standard, :mod:`minigrad.array_api`."""
    def __complex__(self) -> complex: ...
    def __float__(self) -> builtins.float: ...
    def __int__(self) -> builtins.int: ...
    def __bool__(self) -> builtins.bool: ...
    def __index__(self) -> builtins.int: ...
    def __len__(self) -> builtins.int: ...
    def __iter__(self) -> Iterator[Tensor]: ...
    def __contains__(self, value: Any) -> builtins.bool: ...
    def __format__(self, spec: str) -> str:
        """Format a tensor of 0 dimensions as a number, any other as its repr."""
    def __repr__(self) -> str:
        """Return repr(self)."""
    def _repr_html_(self) -> str:
        """The HTML that a notebook shows."""
    def copy_(self, other: Any, non_blocking: builtins.bool = False) -> Tensor:
        """Write ``other``, broadcast and cast, into this tensor, and return it."""
    def fill_(self, value: builtins.float) -> Tensor:
        """Fill the tensor with one value, and return it."""
    def zero_(self) -> Tensor:
        """Fill the tensor with 0, and return it."""
    def fill_diagonal_(self, fill_value: builtins.float) -> Tensor:
        """Fill the diagonal of a matrix with one value, and return the tensor."""
    def accumulate_(self, g: Tensor | SliceGrad) -> None:
        """Add a gradient of the same shape and dtype in place. Only the caller has this memory."""
    def apply_row(self, row: Row, *args: Any, beside: tuple[TensorBase, ...] = ...) -> Any:
        """Apply a row of the op table that has no public name to this tensor and others."""
    def __getitem__(self, index: Any) -> Tensor: ...
    def __setitem__(self, index: Any, value: Any) -> None: ...
    def __copy__(self) -> Tensor:
        """A leaf on the same memory, with the same attributes."""
    def __deepcopy__(self, memo: dict[builtins.int, Any]) -> Tensor:
        """A leaf with its own memory, ``grad`` and attributes."""
    def __reduce__(self) -> tuple[Any, ...]:
        """Helper for pickle."""
    def to(self, *args: Any, dtype: Any = None, device: Any = None, non_blocking: builtins.bool = False, copy: builtins.bool = False, memory_format: Any = None) -> Tensor:
        """The tensor in another dtype, or in another tensor's dtype; itself if nothing changes."""
    def astype(self, dtype: Any) -> Tensor:
        """:meth:`to` under NumPy's name."""
    def type(self, dtype: Any = None, non_blocking: builtins.bool = False, **kwargs: Any) -> Any:
        """The tensor in another dtype; without a dtype, the name of this dtype's class."""
    def svd(self, some: builtins.bool = True, compute_uv: builtins.bool = True) -> Any:
        """The method form of :func:`minigrad.svd`."""
    def float(self, memory_format: Any = None) -> Tensor:
        """This tensor in float32."""
    def double(self, memory_format: Any = None) -> Tensor:
        """This tensor in float64."""
    def long(self, memory_format: Any = None) -> Tensor:
        """This tensor in int64."""
    def int(self, memory_format: Any = None) -> Tensor:
        """This tensor in int32, a storage dtype."""
    def short(self, memory_format: Any = None) -> Tensor:
        """This tensor in int16, a storage dtype."""
    def char(self, memory_format: Any = None) -> Tensor:
        """This tensor in int8, a storage dtype."""
    def byte(self, memory_format: Any = None) -> Tensor:
        """This tensor in uint8, a storage dtype."""
    def half(self, memory_format: Any = None) -> Tensor:
        """This tensor in float16, a storage dtype. Raises TypeError for one that requires grad."""
    def bfloat16(self, memory_format: Any = None) -> Tensor:
        """This tensor in bfloat16, a storage dtype. Raises TypeError for one that requires grad."""
    def bool(self, memory_format: Any = None) -> Tensor:
        """This tensor in bool: True where an element is not 0."""
    def is_floating_point(self) -> builtins.bool:
        """True if the dtype is a float."""
    @property
    def itemsize(self) -> builtins.int:
        """The size of an element in bytes."""
    @property
    def ctypes(self) -> Any:
        """NumPy's attribute with the address of the values: ``x.ctypes.data``."""
    @property
    def nbytes(self) -> builtins.int:
        """The size of all elements in bytes."""
    @property
    def device(self) -> device:
        """The CPU."""
    def to_device(self, device: Any, *, stream: Any = None) -> Tensor:
        """The tensor itself, on the CPU. Raises RuntimeError for another device."""
    def get_device(self) -> builtins.int:
        """-1, as in PyTorch: the CPU has no index."""
    def cpu(self, memory_format: Any = None) -> Tensor:
        """The tensor itself: there is no other device."""
    def cuda(self, device: Any = None, non_blocking: builtins.bool = False, memory_format: Any = None) -> Tensor:
        """Raise a RuntimeError: minigrad computes on the CPU."""
    def pin_memory(self, device: Any = None) -> Tensor:
        """The tensor itself: all memory is the CPU's."""
    def is_pinned(self, device: Any = None) -> builtins.bool:
        """False: no memory is pinned."""
    @property
    def is_cpu(self) -> Any:
        """True."""
    @property
    def is_cuda(self) -> Any:
        """False."""
    @property
    def is_mps(self) -> Any:
        """False."""
    @property
    def is_xpu(self) -> Any:
        """False."""
    @property
    def is_meta(self) -> Any:
        """False."""
    @property
    def is_sparse(self) -> Any:
        """False: all tensors are dense."""
    @property
    def is_quantized(self) -> Any:
        """False."""
    def new_zeros(self, *sizes: Any, size: Any = None, dtype: Any = None, requires_grad: builtins.bool = False, device: Any = None, pin_memory: builtins.bool = False) -> Tensor:
        """A tensor of zeros of the given size, in this tensor's dtype unless another is given."""
    def new_ones(self, *sizes: Any, size: Any = None, dtype: Any = None, requires_grad: builtins.bool = False, device: Any = None, pin_memory: builtins.bool = False) -> Tensor:
        """A tensor of ones of the given size, in this tensor's dtype unless another is given."""
    def new_empty(self, *sizes: Any, size: Any = None, dtype: Any = None, requires_grad: builtins.bool = False, device: Any = None, pin_memory: builtins.bool = False) -> Tensor:
        """An uninitialised tensor, in this tensor's dtype unless another is given."""
    def new_full(self, size: Any, fill_value: builtins.float, *, dtype: Any = None, requires_grad: builtins.bool = False, device: Any = None, pin_memory: builtins.bool = False) -> Tensor:
        """A tensor filled with one value, in this tensor's dtype unless another is given."""
    def new_tensor(self, data: Any, *, dtype: Any = None, requires_grad: builtins.bool = False, device: Any = None, pin_memory: builtins.bool = False) -> Tensor:
        """A tensor with a copy of the data, in this tensor's dtype unless another is given."""
    def new(self, *args: Any, device: Any = None) -> Tensor:
        """A tensor of this dtype with the given sizes or data: PyTorch's older form."""
    def scale(self, other: Any) -> Tensor:
        """a * b, and 0 where a is 0 whatever b is: how a gradient meets a partial derivative."""
    def where(self, condition: Tensor, other: Any) -> Tensor:
        """The elements of this tensor where the condition is true, else of the other."""
    def cat_with(self, other: Tensor, dim: builtins.int) -> Tensor:
        """This tensor and another, concatenated along a dimension."""
    def copy(self) -> Tensor:
        """:meth:`clone` under NumPy's name."""
    @property
    def real(self) -> Tensor:
        """The tensor itself, which is real."""
    @property
    def imag(self) -> Tensor:
        """Zeros, the imaginary parts of real numbers."""
    @property
    def T(self) -> Tensor:
        """A view with the dimensions in reverse order."""
    @property
    def H(self) -> Tensor:
        """A view of a matrix, transposed."""
    @property
    def mH(self) -> Tensor:
        """The last two dimensions swapped; a view."""
    @property
    def mT(self) -> Tensor:
        """The last two dimensions swapped; a view."""
    def __neg__(self) -> Tensor:
        """-x."""
    def __abs__(self) -> Tensor:
        """|x|; its derivative at 0 is 0."""
    def __pos__(self) -> Tensor:
        """The input itself. Raises TypeError for bool."""
    def __matmul__(self, other: Any) -> Tensor:
        """The matrix product by NumPy's rules, y[i, k] = sum over j of a[i, j] * b[j, k]."""
    def __rmatmul__(self, other: Any) -> Tensor: ...
    def __eq__(self, other: Any) -> Tensor: ...  # type: ignore[override]
    def __ne__(self, other: Any) -> Tensor: ...  # type: ignore[override]
    def __lt__(self, other: Any) -> Tensor:
        """a < b."""
    def __le__(self, other: Any) -> Tensor:
        """a <= b."""
    def __gt__(self, other: Any) -> Tensor:
        """a > b."""
    def __ge__(self, other: Any) -> Tensor:
        """a >= b."""
    def __divmod__(self, other: Any) -> tuple[Tensor, Tensor]: ...
    def __round__(self, ndigits: builtins.int | None = None) -> Tensor: ...
    def __rdivmod__(self, other: Any) -> tuple[Tensor, Tensor]: ...
    def __invert__(self) -> Tensor:
        """The complement of every bit of an int64, and `not` of a bool."""
    def __imatmul__(self, other: Any) -> Tensor: ...
    def __iadd__(self, other: Any) -> Tensor: ...
    def __isub__(self, other: Any) -> Tensor: ...
    def __imul__(self, other: Any) -> Tensor: ...
    def __itruediv__(self, other: Any) -> Tensor: ...
    def __floordiv__(self, other: Any) -> Tensor:
        """The largest integer not above a / b, as Python's //; its derivative is 0 everywhere."""
    def __rfloordiv__(self, other: Any) -> Tensor: ...
    def __ifloordiv__(self, other: Any) -> Tensor: ...
    def __mod__(self, other: Any) -> Tensor:
        """The exact remainder a - b floor(a / b), which has the sign of b, as Python's %."""
    def __rmod__(self, other: Any) -> Tensor: ...
    def __imod__(self, other: Any) -> Tensor: ...
    def __ipow__(self, other: Any) -> Tensor: ...
    def __and__(self, other: Any) -> Tensor:
        """The bits set in both a and b; int64 and bool."""
    def __rand__(self, other: Any) -> Tensor: ...
    def __iand__(self, other: Any) -> Tensor: ...
    def __or__(self, other: Any) -> Tensor:
        """The bits set in a or b; int64 and bool."""
    def __ror__(self, other: Any) -> Tensor: ...
    def __ior__(self, other: Any) -> Tensor: ...
    def __xor__(self, other: Any) -> Tensor:
        """The bits set in just one of a and b; int64 and bool."""
    def __rxor__(self, other: Any) -> Tensor: ...
    def __ixor__(self, other: Any) -> Tensor: ...
    def __lshift__(self, other: Any) -> Tensor:
        """a 2^b in int64, which wraps around; 0 where b is not in 0..63."""
    def __rlshift__(self, other: Any) -> Tensor: ...
    def __ilshift__(self, other: Any) -> Tensor: ...
    def __rshift__(self, other: Any) -> Tensor:
        """a / 2^b rounded down in int64; for b not in 0..63 as by 63."""
    def __rrshift__(self, other: Any) -> Tensor: ...
    def __irshift__(self, other: Any) -> Tensor: ...
    def backward(self, gradient: Any = None, retain_graph: builtins.bool | None = None, create_graph: builtins.bool = False, inputs: Tensor | Sequence[Tensor] | None = None, grad_tensors: Any = None) -> None:
        """Add the gradient of this tensor with respect to every leaf to the leaf's ``grad``."""
    def squeeze_(self, *args: Any, **kwargs: Any) -> Tensor:
        """As :func:`minigrad.squeeze`, of this tensor itself; returns it."""
    def unsqueeze_(self, *args: Any, **kwargs: Any) -> Tensor:
        """As :func:`minigrad.unsqueeze`, of this tensor itself; returns it."""
    def t_(self, *args: Any, **kwargs: Any) -> Tensor:
        """As :func:`minigrad.t`, of this tensor itself; returns it."""
    def transpose_(self, *args: Any, **kwargs: Any) -> Tensor:
        """As :func:`minigrad.transpose`, of this tensor itself; returns it."""
    def swapaxes_(self, *args: Any, **kwargs: Any) -> Tensor:
        """As :func:`minigrad.swapaxes`, of this tensor itself; returns it."""
    def swapdims_(self, *args: Any, **kwargs: Any) -> Tensor:
        """As :func:`minigrad.swapdims`, of this tensor itself; returns it."""
    def abs_(self, *args: Any, **kwargs: Any) -> Tensor:
        """:func:`minigrad.abs`, written over this tensor; returns it."""
    def neg_(self, *args: Any, **kwargs: Any) -> Tensor:
        """:func:`minigrad.neg`, written over this tensor; returns it."""
    def square_(self, *args: Any, **kwargs: Any) -> Tensor:
        """:func:`minigrad.square`, written over this tensor; returns it."""
    def sqrt_(self, *args: Any, **kwargs: Any) -> Tensor:
        """:func:`minigrad.sqrt`, written over this tensor; returns it."""
    def rsqrt_(self, *args: Any, **kwargs: Any) -> Tensor:
        """:func:`minigrad.rsqrt`, written over this tensor; returns it."""
    def reciprocal_(self, *args: Any, **kwargs: Any) -> Tensor:
        """:func:`minigrad.reciprocal`, written over this tensor; returns it."""
    def exp_(self, *args: Any, **kwargs: Any) -> Tensor:
        """:func:`minigrad.exp`, written over this tensor; returns it."""
    def exp2_(self, *args: Any, **kwargs: Any) -> Tensor:
        """:func:`minigrad.exp2`, written over this tensor; returns it."""
    def expm1_(self, *args: Any, **kwargs: Any) -> Tensor:
        """:func:`minigrad.expm1`, written over this tensor; returns it."""
    def log_(self, *args: Any, **kwargs: Any) -> Tensor:
        """:func:`minigrad.log`, written over this tensor; returns it."""
    def log2_(self, *args: Any, **kwargs: Any) -> Tensor:
        """:func:`minigrad.log2`, written over this tensor; returns it."""
    def log10_(self, *args: Any, **kwargs: Any) -> Tensor:
        """:func:`minigrad.log10`, written over this tensor; returns it."""
    def log1p_(self, *args: Any, **kwargs: Any) -> Tensor:
        """:func:`minigrad.log1p`, written over this tensor; returns it."""
    def sin_(self, *args: Any, **kwargs: Any) -> Tensor:
        """:func:`minigrad.sin`, written over this tensor; returns it."""
    def cos_(self, *args: Any, **kwargs: Any) -> Tensor:
        """:func:`minigrad.cos`, written over this tensor; returns it."""
    def tan_(self, *args: Any, **kwargs: Any) -> Tensor:
        """:func:`minigrad.tan`, written over this tensor; returns it."""
    def asin_(self, *args: Any, **kwargs: Any) -> Tensor:
        """:func:`minigrad.asin`, written over this tensor; returns it."""
    def acos_(self, *args: Any, **kwargs: Any) -> Tensor:
        """:func:`minigrad.acos`, written over this tensor; returns it."""
    def atan_(self, *args: Any, **kwargs: Any) -> Tensor:
        """:func:`minigrad.atan`, written over this tensor; returns it."""
    def sinh_(self, *args: Any, **kwargs: Any) -> Tensor:
        """:func:`minigrad.sinh`, written over this tensor; returns it."""
    def cosh_(self, *args: Any, **kwargs: Any) -> Tensor:
        """:func:`minigrad.cosh`, written over this tensor; returns it."""
    def tanh_(self, *args: Any, **kwargs: Any) -> Tensor:
        """:func:`minigrad.tanh`, written over this tensor; returns it."""
    def asinh_(self, *args: Any, **kwargs: Any) -> Tensor:
        """:func:`minigrad.asinh`, written over this tensor; returns it."""
    def acosh_(self, *args: Any, **kwargs: Any) -> Tensor:
        """:func:`minigrad.acosh`, written over this tensor; returns it."""
    def atanh_(self, *args: Any, **kwargs: Any) -> Tensor:
        """:func:`minigrad.atanh`, written over this tensor; returns it."""
    def sigmoid_(self, *args: Any, **kwargs: Any) -> Tensor:
        """:func:`minigrad.sigmoid`, written over this tensor; returns it."""
    def sign_(self, *args: Any, **kwargs: Any) -> Tensor:
        """:func:`minigrad.sign`, written over this tensor; returns it."""
    def floor_(self, *args: Any, **kwargs: Any) -> Tensor:
        """:func:`minigrad.floor`, written over this tensor; returns it."""
    def ceil_(self, *args: Any, **kwargs: Any) -> Tensor:
        """:func:`minigrad.ceil`, written over this tensor; returns it."""
    def round_(self, *args: Any, **kwargs: Any) -> Tensor:
        """:func:`minigrad.round`, written over this tensor; returns it."""
    def trunc_(self, *args: Any, **kwargs: Any) -> Tensor:
        """:func:`minigrad.trunc`, written over this tensor; returns it."""
    def frac_(self, *args: Any, **kwargs: Any) -> Tensor:
        """:func:`minigrad.frac`, written over this tensor; returns it."""
    def erf_(self, *args: Any, **kwargs: Any) -> Tensor:
        """:func:`minigrad.erf`, written over this tensor; returns it."""
    def erfc_(self, *args: Any, **kwargs: Any) -> Tensor:
        """:func:`minigrad.erfc`, written over this tensor; returns it."""
    def erfinv_(self, *args: Any, **kwargs: Any) -> Tensor:
        """:func:`minigrad.erfinv`, written over this tensor; returns it."""
    def lgamma_(self, *args: Any, **kwargs: Any) -> Tensor:
        """:func:`minigrad.lgamma`, written over this tensor; returns it."""
    def digamma_(self, *args: Any, **kwargs: Any) -> Tensor:
        """:func:`minigrad.digamma`, written over this tensor; returns it."""
    def relu_(self, *args: Any, **kwargs: Any) -> Tensor:
        """:func:`minigrad.relu`, written over this tensor; returns it."""
    def nan_to_num_(self, *args: Any, **kwargs: Any) -> Tensor:
        """:func:`minigrad.nan_to_num`, written over this tensor; returns it."""
    def logit_(self, *args: Any, **kwargs: Any) -> Tensor:
        """:func:`minigrad.logit`, written over this tensor; returns it."""
    def add_(self, *args: Any, **kwargs: Any) -> Tensor:
        """:func:`minigrad.add`, written over this tensor; returns it."""
    def sub_(self, *args: Any, **kwargs: Any) -> Tensor:
        """:func:`minigrad.sub`, written over this tensor; returns it."""
    def mul_(self, *args: Any, **kwargs: Any) -> Tensor:
        """:func:`minigrad.mul`, written over this tensor; returns it."""
    def div_(self, *args: Any, **kwargs: Any) -> Tensor:
        """:func:`minigrad.div`, written over this tensor; returns it."""
    def floor_divide_(self, *args: Any, **kwargs: Any) -> Tensor:
        """:func:`minigrad.floor_divide`, written over this tensor; returns it."""
    def remainder_(self, *args: Any, **kwargs: Any) -> Tensor:
        """:func:`minigrad.remainder`, written over this tensor; returns it."""
    def fmod_(self, *args: Any, **kwargs: Any) -> Tensor:
        """:func:`minigrad.fmod`, written over this tensor; returns it."""
    def pow_(self, *args: Any, **kwargs: Any) -> Tensor:
        """:func:`minigrad.pow`, written over this tensor; returns it."""
    def atan2_(self, *args: Any, **kwargs: Any) -> Tensor:
        """:func:`minigrad.atan2`, written over this tensor; returns it."""
    def hypot_(self, *args: Any, **kwargs: Any) -> Tensor:
        """:func:`minigrad.hypot`, written over this tensor; returns it."""
    def copysign_(self, *args: Any, **kwargs: Any) -> Tensor:
        """:func:`minigrad.copysign`, written over this tensor; returns it."""
    def lerp_(self, *args: Any, **kwargs: Any) -> Tensor:
        """:func:`minigrad.lerp`, written over this tensor; returns it."""
    def addcmul_(self, *args: Any, **kwargs: Any) -> Tensor:
        """:func:`minigrad.addcmul`, written over this tensor; returns it."""
    def addcdiv_(self, *args: Any, **kwargs: Any) -> Tensor:
        """:func:`minigrad.addcdiv`, written over this tensor; returns it."""
    def addmm_(self, *args: Any, **kwargs: Any) -> Tensor:
        """:func:`minigrad.addmm`, written over this tensor; returns it."""
    def addmv_(self, *args: Any, **kwargs: Any) -> Tensor:
        """:func:`minigrad.addmv`, written over this tensor; returns it."""
    def addbmm_(self, *args: Any, **kwargs: Any) -> Tensor:
        """:func:`minigrad.addbmm`, written over this tensor; returns it."""
    def baddbmm_(self, *args: Any, **kwargs: Any) -> Tensor:
        """:func:`minigrad.baddbmm`, written over this tensor; returns it."""
    def addr_(self, *args: Any, **kwargs: Any) -> Tensor:
        """:func:`minigrad.addr`, written over this tensor; returns it."""
    def clamp_(self, *args: Any, **kwargs: Any) -> Tensor:
        """:func:`minigrad.clamp`, written over this tensor; returns it."""
    def clamp_min_(self, *args: Any, **kwargs: Any) -> Tensor:
        """:func:`minigrad.clamp_min`, written over this tensor; returns it."""
    def clamp_max_(self, *args: Any, **kwargs: Any) -> Tensor:
        """:func:`minigrad.clamp_max`, written over this tensor; returns it."""
    def eq_(self, *args: Any, **kwargs: Any) -> Tensor:
        """:func:`minigrad.eq`, written over this tensor; returns it."""
    def ne_(self, *args: Any, **kwargs: Any) -> Tensor:
        """:func:`minigrad.ne`, written over this tensor; returns it."""
    def lt_(self, *args: Any, **kwargs: Any) -> Tensor:
        """:func:`minigrad.lt`, written over this tensor; returns it."""
    def le_(self, *args: Any, **kwargs: Any) -> Tensor:
        """:func:`minigrad.le`, written over this tensor; returns it."""
    def gt_(self, *args: Any, **kwargs: Any) -> Tensor:
        """:func:`minigrad.gt`, written over this tensor; returns it."""
    def ge_(self, *args: Any, **kwargs: Any) -> Tensor:
        """:func:`minigrad.ge`, written over this tensor; returns it."""
    def logical_and_(self, *args: Any, **kwargs: Any) -> Tensor:
        """:func:`minigrad.logical_and`, written over this tensor; returns it."""
    def logical_or_(self, *args: Any, **kwargs: Any) -> Tensor:
        """:func:`minigrad.logical_or`, written over this tensor; returns it."""
    def logical_xor_(self, *args: Any, **kwargs: Any) -> Tensor:
        """:func:`minigrad.logical_xor`, written over this tensor; returns it."""
    def logical_not_(self, *args: Any, **kwargs: Any) -> Tensor:
        """:func:`minigrad.logical_not`, written over this tensor; returns it."""
    def bitwise_and_(self, *args: Any, **kwargs: Any) -> Tensor:
        """:func:`minigrad.bitwise_and`, written over this tensor; returns it."""
    def bitwise_or_(self, *args: Any, **kwargs: Any) -> Tensor:
        """:func:`minigrad.bitwise_or`, written over this tensor; returns it."""
    def bitwise_xor_(self, *args: Any, **kwargs: Any) -> Tensor:
        """:func:`minigrad.bitwise_xor`, written over this tensor; returns it."""
    def bitwise_not_(self, *args: Any, **kwargs: Any) -> Tensor:
        """:func:`minigrad.bitwise_not`, written over this tensor; returns it."""
    def masked_fill_(self, *args: Any, **kwargs: Any) -> Tensor:
        """:func:`minigrad.masked_fill`, written over this tensor; returns it."""
    def masked_scatter_(self, *args: Any, **kwargs: Any) -> Tensor:
        """:func:`minigrad.masked_scatter`, written over this tensor; returns it."""
    def put_(self, *args: Any, **kwargs: Any) -> Tensor:
        """:func:`minigrad.put`, written over this tensor; returns it."""
    def renorm_(self, *args: Any, **kwargs: Any) -> Tensor:
        """:func:`minigrad.renorm`, written over this tensor; returns it."""
    def index_add_(self, *args: Any, **kwargs: Any) -> Tensor:
        """:func:`minigrad.index_add`, written over this tensor; returns it."""
    def index_copy_(self, *args: Any, **kwargs: Any) -> Tensor:
        """:func:`minigrad.index_copy`, written over this tensor; returns it."""
    def index_fill_(self, *args: Any, **kwargs: Any) -> Tensor:
        """:func:`minigrad.index_fill`, written over this tensor; returns it."""
    def index_put_(self, *args: Any, **kwargs: Any) -> Tensor:
        """:func:`minigrad.index_put`, written over this tensor; returns it."""
    def scatter_(self, *args: Any, **kwargs: Any) -> Tensor:
        """:func:`minigrad.scatter`, written over this tensor; returns it."""
    def scatter_add_(self, *args: Any, **kwargs: Any) -> Tensor:
        """:func:`minigrad.scatter_add`, written over this tensor; returns it."""
    def scatter_reduce_(self, *args: Any, **kwargs: Any) -> Tensor:
        """:func:`minigrad.scatter_reduce`, written over this tensor; returns it."""
    def cumsum_(self, *args: Any, **kwargs: Any) -> Tensor:
        """:func:`minigrad.cumsum`, written over this tensor; returns it."""
    def cumprod_(self, *args: Any, **kwargs: Any) -> Tensor:
        """:func:`minigrad.cumprod`, written over this tensor; returns it."""
    def tril_(self, *args: Any, **kwargs: Any) -> Tensor:
        """:func:`minigrad.tril`, written over this tensor; returns it."""
    def triu_(self, *args: Any, **kwargs: Any) -> Tensor:
        """:func:`minigrad.triu`, written over this tensor; returns it."""
    def absolute_(self, *args: Any, **kwargs: Any) -> Tensor:
        """:func:`minigrad.abs`, written over this tensor; returns it."""
    def negative_(self, *args: Any, **kwargs: Any) -> Tensor:
        """:func:`minigrad.neg`, written over this tensor; returns it."""
    def arccos_(self, *args: Any, **kwargs: Any) -> Tensor:
        """:func:`minigrad.acos`, written over this tensor; returns it."""
    def arccosh_(self, *args: Any, **kwargs: Any) -> Tensor:
        """:func:`minigrad.acosh`, written over this tensor; returns it."""
    def arcsin_(self, *args: Any, **kwargs: Any) -> Tensor:
        """:func:`minigrad.asin`, written over this tensor; returns it."""
    def arcsinh_(self, *args: Any, **kwargs: Any) -> Tensor:
        """:func:`minigrad.asinh`, written over this tensor; returns it."""
    def arctan_(self, *args: Any, **kwargs: Any) -> Tensor:
        """:func:`minigrad.atan`, written over this tensor; returns it."""
    def arctanh_(self, *args: Any, **kwargs: Any) -> Tensor:
        """:func:`minigrad.atanh`, written over this tensor; returns it."""
    def arctan2_(self, *args: Any, **kwargs: Any) -> Tensor:
        """:func:`minigrad.atan2`, written over this tensor; returns it."""
    def clip_(self, *args: Any, **kwargs: Any) -> Tensor:
        """:func:`minigrad.clamp`, written over this tensor; returns it."""
    def deg2rad_(self, *args: Any, **kwargs: Any) -> Tensor:
        """:func:`minigrad.deg2rad`, written over this tensor; returns it."""
    def rad2deg_(self, *args: Any, **kwargs: Any) -> Tensor:
        """:func:`minigrad.rad2deg`, written over this tensor; returns it."""
    def divide_(self, *args: Any, **kwargs: Any) -> Tensor:
        """:func:`minigrad.div`, written over this tensor; returns it."""
    def true_divide_(self, *args: Any, **kwargs: Any) -> Tensor:
        """:func:`minigrad.div`, written over this tensor; returns it."""
    def multiply_(self, *args: Any, **kwargs: Any) -> Tensor:
        """:func:`minigrad.mul`, written over this tensor; returns it."""
    def subtract_(self, *args: Any, **kwargs: Any) -> Tensor:
        """:func:`minigrad.sub`, written over this tensor; returns it."""
    def fix_(self, *args: Any, **kwargs: Any) -> Tensor:
        """:func:`minigrad.trunc`, written over this tensor; returns it."""
    def greater_(self, *args: Any, **kwargs: Any) -> Tensor:
        """:func:`minigrad.gt`, written over this tensor; returns it."""
    def greater_equal_(self, *args: Any, **kwargs: Any) -> Tensor:
        """:func:`minigrad.ge`, written over this tensor; returns it."""
    def less_(self, *args: Any, **kwargs: Any) -> Tensor:
        """:func:`minigrad.lt`, written over this tensor; returns it."""
    def less_equal_(self, *args: Any, **kwargs: Any) -> Tensor:
        """:func:`minigrad.le`, written over this tensor; returns it."""
    def not_equal_(self, *args: Any, **kwargs: Any) -> Tensor:
        """:func:`minigrad.ne`, written over this tensor; returns it."""
    def heaviside_(self, *args: Any, **kwargs: Any) -> Tensor:
        """:func:`minigrad.heaviside`, written over this tensor; returns it."""
    def i0_(self, *args: Any, **kwargs: Any) -> Tensor:
        """:func:`minigrad.i0`, written over this tensor; returns it."""
    def sgn_(self, *args: Any, **kwargs: Any) -> Tensor:
        """:func:`minigrad.sign`, written over this tensor; returns it."""
    def sinc_(self, *args: Any, **kwargs: Any) -> Tensor:
        """:func:`minigrad.sinc`, written over this tensor; returns it."""
    def xlogy_(self, *args: Any, **kwargs: Any) -> Tensor:
        """:func:`minigrad.xlogy`, written over this tensor; returns it."""
    def bitwise_left_shift_(self, *args: Any, **kwargs: Any) -> Tensor:
        """:func:`minigrad.bitwise_left_shift`, written over this tensor; returns it."""
    def bitwise_right_shift_(self, *args: Any, **kwargs: Any) -> Tensor:
        """:func:`minigrad.bitwise_right_shift`, written over this tensor; returns it."""
    def uniform_(self, from_: builtins.float = 0.0, to: builtins.float = 1.0, *, generator: Generator | None = None) -> Tensor:
        """Fill with uniform values in [from, to), and return the tensor."""
    def normal_(self, mean: builtins.float = 0.0, std: builtins.float = 1.0, *, generator: Generator | None = None) -> Tensor:
        """Fill with normally distributed values, and return the tensor."""
    def bernoulli_(self, p: Any = 0.5, *, generator: Generator | None = None) -> Tensor:
        """Fill with 1 with probability p, a number or a tensor, else 0. Returns the tensor."""
    def exponential_(self, lambd: builtins.float = 1.0, *, generator: Generator | None = None) -> Tensor:
        """Fill with exponentially distributed values with a rate, and return the tensor."""
    def random_(self, from_: builtins.int = 0, to: builtins.int | None = None, *, generator: Generator | None = None) -> Tensor:
        """Fill with integers in [from, to), and return the tensor."""
    def geometric_(self, p: builtins.float, *, generator: Generator | None = None) -> Tensor:
        """Fill with numbers of trials up to the first success with probability p. Returns the tensor."""
    def log_normal_(self, mean: builtins.float = 1.0, std: builtins.float = 2.0, *, generator: Generator | None = None) -> Tensor:
        """Fill with numbers whose logarithm is normally distributed, and return the tensor."""
    def cauchy_(self, median: builtins.float = 0.0, sigma: builtins.float = 1.0, *, generator: Generator | None = None) -> Tensor:
        """Fill with numbers of the Cauchy distribution, and return the tensor."""
    def abs(self) -> Tensor:
        """|x|; its derivative at 0 is 0."""
    def absolute(self) -> Tensor:
        """|x|; its derivative at 0 is 0."""
    def acos(self) -> Tensor:
        """The angle from 0 to pi whose cosine is x; NaN beyond -1 and 1."""
    def acosh(self) -> Tensor:
        """The inverse hyperbolic cosine, log(x + sqrt(x^2 - 1)); NaN below 1."""
    def add(self, other: Any, *older: Any, alpha: builtins.float = 1) -> Tensor:
        """input + alpha * other, broadcast together. For two bools it is logical or."""
    def addcdiv(self, tensor1: Any, tensor2: Any, *older: Any, value: builtins.float = 1) -> Tensor:
        """input + value * tensor1 / tensor2, broadcast together. Integers become floats."""
    def addcmul(self, tensor1: Any, tensor2: Any, *older: Any, value: builtins.float = 1) -> Tensor:
        """input + value * tensor1 * tensor2, broadcast together."""
    def allclose(self, other: Any, rtol: builtins.float = 1e-05, atol: builtins.float = 1e-08, equal_nan: builtins.bool = False) -> builtins.bool:
        """True if all elements are close, as a Python bool. See :func:`isclose`."""
    def arccos(self) -> Tensor:
        """The angle from 0 to pi whose cosine is x; NaN beyond -1 and 1."""
    def arccosh(self) -> Tensor:
        """The inverse hyperbolic cosine, log(x + sqrt(x^2 - 1)); NaN below 1."""
    def arcsin(self) -> Tensor:
        """The angle from -pi/2 to pi/2 whose sine is x; NaN beyond -1 and 1."""
    def arcsinh(self) -> Tensor:
        """The inverse hyperbolic sine, log(x + sqrt(x^2 + 1))."""
    def arctan(self) -> Tensor:
        """The angle from -pi/2 to pi/2 whose tangent is x."""
    def arctan2(self, other: Any) -> Tensor:
        """The angle of the point (b, a) in radians, from -pi to pi; its gradient at (0, 0) is 0."""
    def arctanh(self) -> Tensor:
        """The inverse hyperbolic tangent, log((1 + x) / (1 - x)) / 2; NaN beyond -1 and 1."""
    def asin(self) -> Tensor:
        """The angle from -pi/2 to pi/2 whose sine is x; NaN beyond -1 and 1."""
    def asinh(self) -> Tensor:
        """The inverse hyperbolic sine, log(x + sqrt(x^2 + 1))."""
    def atan(self) -> Tensor:
        """The angle from -pi/2 to pi/2 whose tangent is x."""
    def atan2(self, other: Any) -> Tensor:
        """The angle of the point (b, a) in radians, from -pi to pi; its gradient at (0, 0) is 0."""
    def atanh(self) -> Tensor:
        """The inverse hyperbolic tangent, log((1 + x) / (1 - x)) / 2; NaN beyond -1 and 1."""
    def bitwise_and(self, other: Any) -> Tensor:
        """The bits set in both a and b; int64 and bool."""
    def bitwise_left_shift(self, other: Any) -> Tensor:
        """a 2^b in int64, which wraps around; 0 where b is not in 0..63."""
    def bitwise_not(self) -> Tensor:
        """The complement of every bit of an int64, and `not` of a bool."""
    def bitwise_or(self, other: Any) -> Tensor:
        """The bits set in a or b; int64 and bool."""
    def bitwise_right_shift(self, other: Any) -> Tensor:
        """a / 2^b rounded down in int64; for b not in 0..63 as by 63."""
    def bitwise_xor(self, other: Any) -> Tensor:
        """The bits set in just one of a and b; int64 and bool."""
    def cbrt(self) -> Tensor:
        """The real cube root."""
    def ceil(self) -> Tensor:
        """The smallest integer not below x; its derivative is 0 everywhere."""
    def clamp(self, min: Any = None, max: Any = None) -> Tensor:
        """The input raised to ``min`` and lowered to ``max``. Where min > max the result is ``max``."""
    def clamp_max(self, max: Any) -> Tensor:
        """The input lowered to ``max``. Gradients are as for :func:`clamp`."""
    def clamp_min(self, min: Any) -> Tensor:
        """The input raised to ``min``. Gradients are as for :func:`clamp`."""
    def clip(self, min: Any = None, max: Any = None) -> Tensor:
        """The input raised to ``min`` and lowered to ``max``. Where min > max the result is ``max``."""
    def copysign(self, other: Any) -> Tensor:
        """|a| with the sign of b; the derivative with respect to a is 0 at a = 0, as that of abs."""
    def cos(self) -> Tensor:
        """The cosine of x radians."""
    def cosh(self) -> Tensor:
        """The hyperbolic cosine, (exp(x) + exp(-x)) / 2."""
    def deg2rad(self) -> Tensor:
        """x degrees in radians, x pi / 180."""
    def digamma(self) -> Tensor:
        """The derivative of lgamma; NaN at negative integers, where that has poles."""
    def div(self, other: Any, *, rounding_mode: str | None = None) -> Tensor:
        """input / other, broadcast together. Integers give the default float dtype."""
    def divide(self, other: Any, *, rounding_mode: str | None = None) -> Tensor:
        """input / other, broadcast together. Integers give the default float dtype."""
    def eq(self, other: Any) -> Tensor:
        """a == b."""
    def equal(self, other: Any) -> builtins.bool:
        """True if shapes and all elements are equal, as a Python bool. NaN is equal to nothing."""
    def erf(self) -> Tensor:
        """The error function 2 / sqrt(pi) times the integral of exp(-t^2) from 0 to x."""
    def erfc(self) -> Tensor:
        """1 - erf(x), precise where that is small."""
    def erfinv(self) -> Tensor:
        """The y with erf(y) = x; NaN beyond -1 and 1."""
    def exp(self) -> Tensor:
        """e to the power x."""
    def exp2(self) -> Tensor:
        """2 to the power x."""
    def expm1(self) -> Tensor:
        """exp(x) - 1, precise near 0."""
    def fix(self) -> Tensor:
        """x without its fraction, rounded towards 0; its derivative is 0 everywhere."""
    def floor(self) -> Tensor:
        """The largest integer not above x; its derivative is 0 everywhere."""
    def floor_divide(self, other: Any) -> Tensor:
        """The largest integer not above a / b, as Python's //; its derivative is 0 everywhere."""
    def fmax(self, other: Any) -> Tensor:
        """The larger of a and b, or the one that is not NaN; a tie shares the gradient."""
    def fmin(self, other: Any) -> Tensor:
        """The smaller of a and b, or the one that is not NaN; a tie shares the gradient."""
    def fmod(self, other: Any) -> Tensor:
        """The exact remainder a - b trunc(a / b), which has the sign of a."""
    def frac(self) -> Tensor:
        """The fraction x - trunc(x), with the sign of x."""
    def ge(self, other: Any) -> Tensor:
        """a >= b."""
    def greater(self, other: Any) -> Tensor:
        """a > b."""
    def greater_equal(self, other: Any) -> Tensor:
        """a >= b."""
    def gt(self, other: Any) -> Tensor:
        """a > b."""
    def heaviside(self, values: Any) -> Tensor:
        """The step function: 0 for negative input, ``values`` for input = 0, 1 for positive input."""
    def hypot(self, other: Any) -> Tensor:
        """sqrt(a^2 + b^2) without overflow on the way; its gradient at (0, 0) is 0."""
    def i0(self) -> Tensor:
        """The modified Bessel function of the first kind of order 0: sum of (x / 2)^2k / k!^2."""
    def isclose(self, other: Any, rtol: builtins.float = 1e-05, atol: builtins.float = 1e-08, equal_nan: builtins.bool = False) -> Tensor:
        """True where |input - other| <= atol + rtol |other|. Equal infinities are close."""
    def isfinite(self) -> Tensor:
        """Whether x is neither infinite nor NaN; of integers always."""
    def isinf(self) -> Tensor:
        """Whether x is inf or -inf; of integers never."""
    def isnan(self) -> Tensor:
        """Whether x is NaN; of integers never."""
    def isneginf(self) -> Tensor:
        """True where the input is -inf."""
    def isposinf(self) -> Tensor:
        """True where the input is inf."""
    def le(self, other: Any) -> Tensor:
        """a <= b."""
    def lerp(self, end: Any, weight: Any) -> Tensor:
        """input + weight * (end - input). It is exact for the weights 0 and 1."""
    def less(self, other: Any) -> Tensor:
        """a < b."""
    def less_equal(self, other: Any) -> Tensor:
        """a <= b."""
    def lgamma(self) -> Tensor:
        """The logarithm of |gamma(x)|, the integral of t^(x - 1) exp(-t) from 0 to infinity."""
    def log(self) -> Tensor:
        """The natural logarithm; NaN below 0."""
    def log1p(self) -> Tensor:
        """log(1 + x), precise near 0."""
    def log2(self) -> Tensor:
        """The logarithm to base 2; NaN below 0."""
    def log10(self) -> Tensor:
        """The logarithm to base 10; NaN below 0."""
    def logaddexp(self, other: Any) -> Tensor:
        """log(exp(a) + exp(b)) without overflow; the gradient of two -inf is 0."""
    def logaddexp2(self, other: Any) -> Tensor:
        """log2(2^a + 2^b) without overflow; the gradient of two -inf is 0."""
    def logical_and(self, other: Any) -> Tensor:
        """Whether a and b both differ from 0, as bool."""
    def logical_not(self) -> Tensor:
        """x == 0, as bool."""
    def logical_or(self, other: Any) -> Tensor:
        """Whether a or b differs from 0, as bool."""
    def logical_xor(self, other: Any) -> Tensor:
        """Whether exactly one of a and b differs from 0, as bool."""
    def logit(self, eps: builtins.float | None = None) -> Tensor:
        """log(input / (1 - input)), the inverse of the sigmoid."""
    def lt(self, other: Any) -> Tensor:
        """a < b."""
    def maximum(self, other: Any) -> Tensor:
        """The larger of a and b; a tie shares the gradient, NaN wins."""
    def minimum(self, other: Any) -> Tensor:
        """The smaller of a and b; a tie shares the gradient, NaN wins."""
    def mul(self, other: Any) -> Tensor:
        """a * b."""
    def multiply(self, other: Any) -> Tensor:
        """a * b."""
    def nan_to_num(self, nan: builtins.float = 0.0, posinf: builtins.float | None = None, neginf: builtins.float | None = None) -> Tensor:
        """The input with NaN, inf and -inf replaced by numbers."""
    def ne(self, other: Any) -> Tensor:
        """a != b."""
    def neg(self) -> Tensor:
        """-x."""
    def negative(self) -> Tensor:
        """-x."""
    def nextafter(self, other: Any) -> Tensor:
        """The next number after a towards b; its derivatives are 1 and 0, and both 0 where a = b."""
    def not_equal(self, other: Any) -> Tensor:
        """a != b."""
    def polygamma(self, input: Any) -> Tensor:
        """The n-th derivative of the digamma function, n = 0, 1, 2, ..."""
    def positive(self) -> Tensor:
        """The input itself. Raises TypeError for bool."""
    def pow(self, exponent: Any) -> Tensor:
        """The input to the power ``exponent``. For int64 the exponent must not be negative."""
    def rad2deg(self) -> Tensor:
        """x radians in degrees, 180 x / pi."""
    def reciprocal(self) -> Tensor:
        """1 / x."""
    def relu(self) -> Tensor:
        """max(x, 0); its derivative at 0 is 0, and NaN passes."""
    def remainder(self, other: Any) -> Tensor:
        """The exact remainder a - b floor(a / b), which has the sign of b, as Python's %."""
    def round(self, *, decimals: builtins.int = 0) -> Tensor:
        """The nearest multiple of 10^-decimals, halves to even. The derivative is 0 everywhere."""
    def rsqrt(self) -> Tensor:
        """1 / sqrt(x)."""
    def sgn(self) -> Tensor:
        """-1, 0 or 1; its derivative is 0 everywhere."""
    def sigmoid(self) -> Tensor:
        """1 / (1 + exp(-x))."""
    def sign(self) -> Tensor:
        """-1, 0 or 1; its derivative is 0 everywhere."""
    def signbit(self) -> Tensor:
        """Whether the sign bit is set, also of -0.0; of integers x < 0."""
    def sin(self) -> Tensor:
        """The sine of x radians."""
    def sinc(self) -> Tensor:
        """sin(pi x) / (pi x), and 1 at 0."""
    def sinh(self) -> Tensor:
        """The hyperbolic sine, (exp(x) - exp(-x)) / 2."""
    def sqrt(self) -> Tensor:
        """The square root; NaN below 0."""
    def square(self) -> Tensor:
        """x * x."""
    def sub(self, other: Any, *older: Any, alpha: builtins.float = 1) -> Tensor:
        """input - alpha * other, broadcast together. Raises TypeError for bools: use logical_xor."""
    def subtract(self, other: Any, *older: Any, alpha: builtins.float = 1) -> Tensor:
        """input - alpha * other, broadcast together. Raises TypeError for bools: use logical_xor."""
    def tan(self) -> Tensor:
        """The tangent of x radians."""
    def tanh(self) -> Tensor:
        """The hyperbolic tangent, sinh(x) / cosh(x)."""
    def true_divide(self, other: Any) -> Tensor:
        """a / b; integers give the default float dtype."""
    def trunc(self) -> Tensor:
        """x without its fraction, rounded towards 0; its derivative is 0 everywhere."""
    def xlogy(self, other: Any) -> Tensor:
        """a log(b), and 0 where a is 0 unless b is NaN."""
    def all(self, dim: Any = None, keepdim: builtins.bool = False, **numpy: Any) -> Tensor:
        """True if all elements are true (not 0). NaN is true. For no elements the result is True."""
    def amax(self, dim: Any = None, keepdim: builtins.bool = False, **numpy: Any) -> Tensor:
        """The maximum. Ties share the gradient evenly. NaN counts as the largest value."""
    def amin(self, dim: Any = None, keepdim: builtins.bool = False, **numpy: Any) -> Tensor:
        """The minimum. Ties share the gradient evenly. NaN counts as the smallest value."""
    def aminmax(self, *, dim: Any = None, keepdim: builtins.bool = False, **numpy: Any) -> Extrema:
        """The minimum and the maximum, as a pair (min, max). Ties share the gradient evenly."""
    def any(self, dim: Any = None, keepdim: builtins.bool = False, **numpy: Any) -> Tensor:
        """True if any element is true (not 0). NaN is true. For no elements the result is False."""
    def argmax(self, dim: builtins.int | None = None, keepdim: builtins.bool = False, **numpy: Any) -> Tensor:
        """The index of the maximum as int64: the first of ties, or the first NaN."""
    def argmin(self, dim: builtins.int | None = None, keepdim: builtins.bool = False, **numpy: Any) -> Tensor:
        """The index of the minimum as int64: the first of ties, or the first NaN."""
    def count_nonzero(self, dim: Any = None, keepdim: builtins.bool = False, **numpy: Any) -> Tensor:
        """The number of elements that are not 0, as int64. NaN counts."""
    def dist(self, other: Any, p: builtins.float = 2.0) -> Tensor:
        """The p-norm of ``input - other``, broadcast together, as one number."""
    def logsumexp(self, dim: Any = None, keepdim: builtins.bool = False, **numpy: Any) -> Tensor:
        """log(exp(x1) + ... + exp(xn)) without overflow. It is -inf for no elements."""
    @overload
    def max(self, dim: builtins.int, keepdim: builtins.bool = False, *, keepdims: builtins.bool = False) -> Found:
        """The maximum of all elements, along a dimension with its indices, or of two tensors."""
    @overload
    def max(self, *, axis: builtins.int, keepdims: builtins.bool = False) -> Found:
        """The maximum of all elements, along a dimension with its indices, or of two tensors."""
    @overload
    def max(self, dim: Tensor | Sequence[builtins.int] | None = None, keepdim: builtins.bool = False, *, axis: Sequence[builtins.int] | None = None, keepdims: builtins.bool = False, other: Tensor | None = None) -> Tensor:
        """The maximum of all elements, along a dimension with its indices, or of two tensors."""
    def mean(self, dim: Any = None, keepdim: builtins.bool = False, *, dtype: Any = None, **numpy: Any) -> Tensor:
        """The mean (x1 + ... + xn) / n, which is NaN for no elements."""
    @overload
    def min(self, dim: builtins.int, keepdim: builtins.bool = False, *, keepdims: builtins.bool = False) -> Found:
        """The minimum of all elements, along a dimension with its indices, or of two tensors."""
    @overload
    def min(self, *, axis: builtins.int, keepdims: builtins.bool = False) -> Found:
        """The minimum of all elements, along a dimension with its indices, or of two tensors."""
    @overload
    def min(self, dim: Tensor | Sequence[builtins.int] | None = None, keepdim: builtins.bool = False, *, axis: Sequence[builtins.int] | None = None, keepdims: builtins.bool = False, other: Tensor | None = None) -> Tensor:
        """The minimum of all elements, along a dimension with its indices, or of two tensors."""
    def nanmean(self, dim: Any = None, keepdim: builtins.bool = False, *, dtype: Any = None, **numpy: Any) -> Tensor:
        """The mean of all elements except NaN. It is NaN if there is no other element."""
    def nansum(self, dim: Any = None, keepdim: builtins.bool = False, *, dtype: Any = None, **numpy: Any) -> Tensor:
        """The sum of all elements except NaN. NaN elements get a gradient of 0."""
    def norm(self, p: builtins.float | str | None = 'fro', dim: Any = None, keepdim: builtins.bool = False, dtype: Any = None, **numpy: Any) -> Tensor:
        """The p-norm (|x1|^p + ... + |xn|^p)^(1/p), as vector_norm. The default ``"fro"`` is p = 2."""
    def prod(self, dim: Any = None, keepdim: builtins.bool = False, *, dtype: Any = None, **numpy: Any) -> Tensor:
        """The product x1 * x2 * ... * xn, which is 1 for no elements."""
    def std(self, dim: Any = None, unbiased: builtins.bool | None = None, keepdim: builtins.bool = False, **given: Any) -> Tensor:
        """The standard deviation, the square root of the variance, by default with ``correction=1``."""
    def sum(self, dim: Any = None, keepdim: builtins.bool = False, *, dtype: Any = None, **numpy: Any) -> Tensor:
        """The sum x1 + x2 + ... + xn, which is 0 for no elements."""
    def trace(self) -> Tensor:
        """The sum of a matrix's diagonal. Raises ValueError unless there are two dimensions."""
    def var(self, dim: Any = None, unbiased: builtins.bool | None = None, keepdim: builtins.bool = False, **given: Any) -> Tensor:
        """The variance sum((input - mean)^2) / (n - correction), by default with ``correction=1``."""
    def cummax(self, dim: Any = None, **numpy: Any) -> Found:
        """y[i] = max(input[0], ..., input[i]) along a dimension: values, and indices as int64."""
    def cummin(self, dim: Any = None, **numpy: Any) -> Found:
        """y[i] = min(input[0], ..., input[i]) along a dimension: values and indices. See cummax."""
    def cumprod(self, dim: Any = None, *, dtype: Any = None, **numpy: Any) -> Tensor:
        """y[i] = input[0] * input[1] * ... * input[i] along a dimension."""
    def cumsum(self, dim: Any = None, *, dtype: Any = None, **numpy: Any) -> Tensor:
        """y[i] = input[0] + input[1] + ... + input[i] along a dimension."""
    def diff(self, n: builtins.int = 1, dim: Any = -1, prepend: Tensor | None = None, append: Tensor | None = None, **numpy: Any) -> Tensor:
        """y[i] = input[i + 1] - input[i] along a dimension, n times. For bools it is logical xor."""
    def log_softmax(self, dim: Any = None, *, dtype: Any = None, where: Any = None, **numpy: Any) -> Tensor:
        """input - log(sum(exp(input))) along a dimension, the log of softmax without losing precision."""
    def logcumsumexp(self, dim: Any = None, **numpy: Any) -> Tensor:
        """y[i] = log(exp(input[0]) + ... + exp(input[i])) along a dimension, without overflow."""
    def renorm(self, p: builtins.float, dim: builtins.int, maxnorm: builtins.float) -> Tensor:
        """Scale entries along a dimension down to the p-norm ``maxnorm`` if theirs is larger."""
    def softmax(self, dim: Any = None, *, dtype: Any = None, where: Any = None, **numpy: Any) -> Tensor:
        """exp(input) / sum(exp(input)) along a dimension, without overflow. NaN for a row of -inf."""
    def adjoint(self) -> Tensor:
        """A view with the last two dimensions swapped, as ``input.mT``."""
    def broadcast_to(self, shape: Any) -> Tensor:
        """:func:`expand` under NumPy's name."""
    def clone(self, *, memory_format: Any = None) -> Tensor:
        """A contiguous copy that passes gradients on. ``memory_format`` changes nothing."""
    def conj(self) -> Tensor:
        """The input itself: minigrad has no complex dtypes, and reals are their own conjugates."""
    def contiguous(self, memory_format: Any = None) -> Tensor:
        """x itself if it is contiguous, else a contiguous copy."""
    def expand(self, *size: Any, **named: Any) -> Tensor:
        """A view with size-1 dimensions repeated, and new dimensions in front. -1 keeps a size."""
    def expand_as(self, other: Tensor) -> Tensor:
        """``expand(x, other.shape)``."""
    def flatten(self, start_dim: builtins.int | str = 0, end_dim: builtins.int = -1, *, order: str = 'C') -> Tensor:
        """The dimensions from start_dim to end_dim merged into one. A view if possible."""
    def moveaxis(self, source: Any, destination: Any) -> Tensor:
        """:func:`movedim` under NumPy's name."""
    def movedim(self, source: Any, destination: Any) -> Tensor:
        """A view with the dimensions ``source`` moved to ``destination``, the others in order."""
    def narrow(self, dim: builtins.int, start: builtins.int, length: builtins.int) -> Tensor:
        """A view of ``length`` elements from ``start`` on along a dimension."""
    def narrow_copy(self, dim: builtins.int, start: builtins.int, length: builtins.int) -> Tensor:
        """A copy of :func:`minigrad.narrow`'s result."""
    def permute(self, *dims: Any, **named: Any) -> Tensor:
        """A view with the dimensions in another order."""
    def ravel(self, order: str = 'C') -> Tensor:
        """All elements in one dimension, in NumPy's order C, F, A or K. A view if possible."""
    def reshape(self, *shape: Any, **named: Any) -> Tensor:
        """The same elements in another shape. One size may be -1. The result is a view if possible."""
    def reshape_as(self, other: Tensor) -> Tensor:
        """``reshape(x, other.shape)``."""
    def select(self, dim: builtins.int, index: builtins.int) -> Tensor:
        """A view of entry ``index`` along a dimension, without this dimension."""
    def squeeze(self, dim: Any = None, **numpy: Any) -> Tensor:
        """A view without the dimensions of size 1: all of them, or only the given ones."""
    def sum_to_size(self, *size: Any) -> Tensor:
        """The sum over the dimensions along which a tensor of ``size`` broadcasts to x's shape."""
    def swapaxes(self, axis0: builtins.int, axis1: builtins.int) -> Tensor:
        """Two dimensions swapped; a view."""
    def swapdims(self, dim0: builtins.int, dim1: builtins.int) -> Tensor:
        """Two dimensions swapped; a view."""
    def t(self) -> Tensor:
        """A view of a matrix, transposed. A vector or a 0-d tensor is unchanged."""
    def transpose(self, dim0: builtins.int | None = None, dim1: builtins.int | None = None) -> Tensor:
        """A view with two dimensions swapped, or all reversed if none is given, as in NumPy."""
    def type_as(self, other: Tensor) -> Tensor:
        """``to(x, other.dtype)``."""
    def unbind(self, dim: builtins.int = 0, **numpy: Any) -> tuple[Tensor, ...]:
        """Views of all entries along a dimension, without this dimension."""
    def unflatten(self, dim: builtins.int, sizes: Sequence[builtins.int]) -> Tensor:
        """A view with one dimension split into several of the given sizes. One size may be -1."""
    def unfold(self, dimension: builtins.int, size: builtins.int, step: builtins.int) -> Tensor:
        """A view of windows of ``size`` elements along a dimension, ``step`` apart."""
    def unsqueeze(self, dim: builtins.int) -> Tensor:
        """A view with a new dimension of size 1 at ``dim``."""
    def view(self, *shape: Any, dtype: Any = None) -> Tensor:
        """:func:`reshape` without a copy. Raises ValueError if a copy is needed."""
    def view_as(self, other: Tensor) -> Tensor:
        """``view(x, other.shape)``."""
    def argwhere(self) -> Tensor:
        """The positions of the elements that are not 0, as rows: ``nonzero(input)``."""
    def gather(self, dim: builtins.int, index: Tensor, *, sparse_grad: builtins.bool = False) -> Tensor:
        """Elements along a dimension: ``y[i, j] = input[index[i, j], j]``, here for dim 0."""
    def index_select(self, dim: builtins.int, index: Tensor) -> Tensor:
        """The entries along a dimension at the positions of a one-dimensional index, in its order."""
    def masked_fill(self, mask: Tensor, value: Any) -> Tensor:
        """A copy of the input with ``value``, a number or a 0-d tensor, where the mask is true."""
    def masked_select(self, mask: Tensor) -> Tensor:
        """The elements of the input where the mask is true, in row-major order, as one dimension."""
    @overload
    def nonzero(self, *, as_tuple: Literal[True]) -> tuple[Tensor, ...]:
        """The positions of the elements that are not 0, in row-major order, as int64."""
    @overload
    def nonzero(self, *, as_tuple: Literal[False] = False) -> Tensor:
        """The positions of the elements that are not 0, in row-major order, as int64."""
    def take(self, index: Tensor) -> Tensor:
        """The elements of the flattened input at the indices, in the index's shape."""
    def take_along_dim(self, indices: Tensor, dim: builtins.int | None = None, **numpy: Any) -> Tensor:
        """The elements input[..., indices[..., k, ...], ...] along a dimension."""
    def addbmm(self, batch1: Any, batch2: Any, *older: Any, beta: builtins.float = 1, alpha: builtins.float = 1) -> Tensor:
        """beta * input + alpha * (the sum over the stack of batch1 @ batch2)."""
    def addmm(self, mat1: Any, mat2: Any, *older: Any, beta: builtins.float = 1, alpha: builtins.float = 1) -> Tensor:
        """beta * input + alpha * (mat1 @ mat2) for matrices. The input is broadcast."""
    def addmv(self, mat: Any, vec: Any, *older: Any, beta: builtins.float = 1, alpha: builtins.float = 1) -> Tensor:
        """beta * input + alpha * (mat @ vec) for a matrix and a vector. The rest is as for addmm."""
    def addr(self, vec1: Any, vec2: Any, *older: Any, beta: builtins.float = 1, alpha: builtins.float = 1) -> Tensor:
        """beta * input + alpha * outer(vec1, vec2). The rest is as for addmm."""
    def baddbmm(self, batch1: Any, batch2: Any, *older: Any, beta: builtins.float = 1, alpha: builtins.float = 1) -> Tensor:
        """beta * input + alpha * (batch1 @ batch2) for stacks of matrices. The rest is as for addmm."""
    def bmm(self, mat2: Any) -> Tensor:
        """Products of the matrices of two stacks: shapes (s, n, k) and (s, k, m) give (s, n, m)."""
    def cross(self, other: Any, dim: builtins.int | None = None, **numpy: Any) -> Tensor:
        """The cross product of 3-vectors along ``dim``. The other dimensions are broadcast."""
    def dot(self, tensor: Any) -> Tensor:
        """The sum of input * tensor for two vectors of one length."""
    def ger(self, vec2: Any) -> Tensor:
        """:func:`outer` under BLAS's name."""
    def kron(self, other: Any) -> Tensor:
        """The Kronecker product: a with every element replaced by this element times b."""
    def matmul(self, other: Any) -> Tensor:
        """The matrix product by NumPy's rules, y[i, k] = sum over j of a[i, j] * b[j, k]."""
    def mm(self, mat2: Any) -> Tensor:
        """The product of two matrices: shapes (n, k) and (k, m) give (n, m)."""
    def mv(self, vec: Any) -> Tensor:
        """A matrix times a vector: shapes (n, k) and (k,) give (n,)."""
    def outer(self, vec2: Any) -> Tensor:
        """The products a[i] * b[j]: vectors of lengths n and m give (n, m)."""
    def vdot(self, other: Any) -> Tensor:
        """:func:`dot` under another name: real numbers are their own conjugates."""
    def argsort(self, dim: builtins.int = -1, descending: builtins.bool = False, stable: builtins.bool = True, **numpy: Any) -> Tensor:
        """The indices that sort the input along a dimension, as int64. Ties keep their order."""
    def kthvalue(self, k: builtins.int, dim: builtins.int = -1, keepdim: builtins.bool = False, **numpy: Any) -> Found:
        """The k-th smallest element along a dimension, counted from 1: values, and indices as int64."""
    def sort(self, dim: builtins.int = -1, descending: builtins.bool = False, stable: builtins.bool = True, **numpy: Any) -> Found:
        """The input sorted along a dimension: values, and indices as int64. Ties keep their order."""
    def topk(self, k: builtins.int, dim: builtins.int = -1, largest: builtins.bool = True, sorted: builtins.bool = True, **numpy: Any) -> Found:
        """The k largest or smallest elements along a dimension: values, and indices as int64."""
    @overload
    def median(self, dim: builtins.int, keepdim: builtins.bool = False, *, keepdims: builtins.bool = False) -> Found:
        """The median: the middle value in sorted order, or the mean of the middle two."""
    @overload
    def median(self, *, axis: builtins.int, keepdims: builtins.bool = False) -> Found:
        """The median: the middle value in sorted order, or the mean of the middle two."""
    @overload
    def median(self, dim: None = None, keepdim: builtins.bool = False, *, axis: None = None, keepdims: builtins.bool = False) -> Tensor:
        """The median: the middle value in sorted order, or the mean of the middle two."""
    @overload
    def nanmedian(self, dim: builtins.int, keepdim: builtins.bool = False, *, keepdims: builtins.bool = False) -> Found:
        """The median of all elements except NaN; NaN if there is no other element."""
    @overload
    def nanmedian(self, *, axis: builtins.int, keepdims: builtins.bool = False) -> Found:
        """The median of all elements except NaN; NaN if there is no other element."""
    @overload
    def nanmedian(self, dim: None = None, keepdim: builtins.bool = False, *, axis: None = None, keepdims: builtins.bool = False) -> Tensor:
        """The median of all elements except NaN; NaN if there is no other element."""
    def nanquantile(self, q: Any, dim: Any = None, keepdim: builtins.bool = False, *, interpolation: str = 'linear', **numpy: Any) -> Tensor:
        """The quantile of all elements except NaN; NaN if there is no other element."""
    def quantile(self, q: Any, dim: Any = None, keepdim: builtins.bool = False, *, interpolation: str = 'linear', **numpy: Any) -> Tensor:
        """The q-quantile: the value at rank q (n - 1) in sorted order."""
    def bincount(self, weights: Tensor | None = None, minlength: builtins.int = 0) -> Tensor:
        """How often each of 0, 1, 2, ... occurs, as int64, or the sum of its weights."""
    def histc(self, bins: builtins.int = 100, min: builtins.float = 0, max: builtins.float = 0) -> Tensor:
        """The number of elements in each of ``bins`` equal parts of [min, max], in the input's dtype."""
    @overload
    def unique(self, sorted: builtins.bool = True, return_inverse: Literal[False] = False, return_counts: Literal[False] = False, dim: builtins.int | None = None) -> Tensor:
        """The distinct elements in sorted order, or the distinct slices along a dimension."""
    @overload
    def unique(self, sorted: builtins.bool = True, return_inverse: builtins.bool = False, return_counts: builtins.bool = False, dim: builtins.int | None = None) -> Any:
        """The distinct elements in sorted order, or the distinct slices along a dimension."""
    def unique_consecutive(self, return_inverse: builtins.bool = False, return_counts: builtins.bool = False, dim: builtins.int | None = None) -> Any:
        """The input without elements that equal their predecessor. Arguments are as for unique."""
    def inner(self, other: Any) -> Tensor:
        """The sum of products over the last dimensions, or the product if one operand is 0-d."""
    def cholesky(self, upper: builtins.bool = False) -> Tensor:
        """Lower triangular L with L @ L^T = A, or upper triangular U with U^T @ U = A."""
    def cholesky_inverse(self, upper: builtins.bool = False) -> Tensor:
        """The inverse of A, from its Cholesky factor."""
    def cholesky_solve(self, L: Any, upper: builtins.bool = False) -> Tensor:
        """X with A @ X = B, from a Cholesky factor: L with A = L @ L^T, or U with A = U^T @ U."""
    def det(self) -> Tensor:
        """The determinant of every matrix: 1 for size 0, NaN for a matrix with NaN."""
    def inverse(self) -> Tensor:
        """:func:`minigrad.linalg.inv` under another name."""
    def logdet(self) -> Tensor:
        """log(det(A)): -inf for a singular matrix, NaN for a negative determinant."""
    def matrix_exp(self) -> Tensor:
        """The matrix exponential exp(A) = I + A + A @ A / 2! + A @ A @ A / 3! + ..."""
    def matrix_power(self, n: builtins.int) -> Tensor:
        """input @ input @ ... @ input, n times. For n = 0 it is the identity."""
    def pinverse(self, rcond: builtins.float = 1e-15) -> Tensor:
        """:func:`minigrad.linalg.pinv` with ``rtol=rcond``."""
    def slogdet(self) -> Slogdet:
        """The sign and log|det(input)|, for determinants that overflow: sign * exp(logabsdet)."""
    def chunk(self, chunks: builtins.int, dim: builtins.int = 0, **numpy: Any) -> tuple[Tensor, ...]:
        """At most ``chunks`` pieces of one size, as views. The last may be shorter."""
    def dsplit(self, indices_or_sections: Any) -> tuple[Tensor, ...]:
        """tensor_split into equal pieces along the third dimension."""
    def flip(self, *dims: Any, **named: Any) -> Tensor:
        """A view with the elements in reverse order along the given dimensions."""
    def fliplr(self) -> Tensor:
        """A view with the columns, the second dimension, in reverse order."""
    def flipud(self) -> Tensor:
        """A view with the rows, the first dimension, in reverse order."""
    def hsplit(self, indices_or_sections: Any) -> tuple[Tensor, ...]:
        """tensor_split into equal pieces along the second dimension, or the first of a vector."""
    def repeat(self, *repeats: Any, **named: Any) -> Tensor:
        """A copy with the tensor repeated so many times along each dimension."""
    def repeat_interleave(self, repeats: Any = None, dim: builtins.int | None = None, *, output_size: builtins.int | None = None, **numpy: Any) -> Tensor:
        """Repeat each entry along a dimension, next to itself. This is NumPy's repeat."""
    def roll(self, shifts: Any, dims: Any = None, **numpy: Any) -> Tensor:
        """The elements shifted by ``shifts``. Elements shifted past the end reappear at the start."""
    def rot90(self, k: builtins.int = 1, dims: Sequence[builtins.int] = ...) -> Tensor:
        """A view rotated by k quarter turns in the plane of two dims, from the first to the second."""
    def split(self, split_size_or_sections: Any, dim: builtins.int = 0, **numpy: Any) -> tuple[Tensor, ...]:
        """Pieces as views: of one size (the last may be shorter), or of the sizes in a list."""
    def split_with_sizes(self, split_sizes: Sequence[builtins.int], dim: builtins.int = 0) -> tuple[Tensor, ...]:
        """Pieces of the given sizes, as views."""
    def tensor_split(self, indices_or_sections: Any, dim: builtins.int = 0, **numpy: Any) -> tuple[Tensor, ...]:
        """Exactly so many pieces, or pieces that begin at each index, as views."""
    def tile(self, *dims: Any, **named: Any) -> Tensor:
        """:func:`repeat` as NumPy's tile: missing repeats at the front count as 1."""
    def vsplit(self, indices_or_sections: Any) -> tuple[Tensor, ...]:
        """tensor_split into equal pieces along the first of at least two dimensions."""
    def diag(self, diagonal: builtins.int = 0) -> Tensor:
        """The diagonal matrix of a vector, or a copy of the diagonal of a matrix."""
    def diag_embed(self, offset: builtins.int = 0, dim1: builtins.int = -2, dim2: builtins.int = -1) -> Tensor:
        """Square planes of zeros whose diagonals are the last dimension of the input."""
    def diagflat(self, offset: builtins.int = 0) -> Tensor:
        """A matrix with the flattened input on a diagonal."""
    def diagonal(self, offset: builtins.int = 0, dim1: builtins.int = 0, dim2: builtins.int = 1) -> Tensor:
        """A view of ``input[i, i + offset]`` for all i. The diagonal becomes the last dimension."""
    def diagonal_scatter(self, src: Tensor, offset: builtins.int = 0, dim1: builtins.int = 0, dim2: builtins.int = 1) -> Tensor:
        """``input`` with ``src`` in place of ``diagonal(input, offset, dim1, dim2)``."""
    def tril(self, diagonal: builtins.int = 0) -> Tensor:
        """The lower triangle of the last two dimensions, with 0 above diagonal number ``diagonal``."""
    def triu(self, diagonal: builtins.int = 0) -> Tensor:
        """The upper triangle of the last two dimensions, with 0 below diagonal number ``diagonal``."""
    def corrcoef(self) -> Tensor:
        """The correlation matrix of variables, which are rows."""
    def cov(self, *, correction: builtins.int = 1, fweights: Tensor | None = None, aweights: Tensor | None = None) -> Tensor:
        """The covariance matrix of variables, which are rows. Observations are columns."""
    def histogram(self, bins: Any = 100, *, range: Any = None, weight: Tensor | None = None, density: builtins.bool = False) -> Histogram:
        """The number of elements in each bin, in the input's dtype, and the edges of the bins."""
    def mode(self, dim: builtins.int = -1, keepdim: builtins.bool = False, **numpy: Any) -> Found:
        """The most frequent values along a dimension, and the last index of each as int64."""
    def index_add(self, dim: builtins.int, index: Tensor, source: Tensor, *, alpha: Any = 1) -> Tensor:
        """A copy of the input with ``alpha * source`` added to entries along ``dim`` at the index."""
    def index_copy(self, dim: builtins.int, index: Tensor, source: Tensor) -> Tensor:
        """A copy of the input with the entries along ``dim`` in the index replaced by ``source``."""
    def index_fill(self, dim: builtins.int, index: Tensor, value: Any) -> Tensor:
        """A copy of the input with the entries along ``dim`` in the index filled with ``value``."""
    def index_put(self, indices: Sequence[Any], values: Any, accumulate: builtins.bool = False) -> Tensor:
        """A copy of the input after ``input[indices] = values``, or ``+=`` if ``accumulate``."""
    def index_reduce(self, dim: builtins.int, index: Tensor, source: Tensor, reduce: str, *, include_self: builtins.bool = True) -> Tensor:
        """scatter_reduce for whole entries along ``dim``: "prod", "mean", "amax" or "amin"."""
    def masked_scatter(self, mask: Tensor, source: Tensor) -> Tensor:
        """A copy of the input with the elements of ``source``, in order, where the mask is true."""
    def put(self, index: Tensor, source: Any, accumulate: builtins.bool = False) -> Tensor:
        """A copy of the input with elements of ``source`` written, or added, at flat indices."""
    def scatter(self, dim: builtins.int, index: Tensor, src: Any = None, reduce: str | None = None, *, value: Any = None) -> Tensor:
        """A copy of the input after ``input[index[i, j], j] = src[i, j]``, here for dim 0."""
    def scatter_add(self, dim: builtins.int, index: Tensor, src: Tensor) -> Tensor:
        """A copy of the input after ``input[index[i, j], j] += src[i, j]``, here for dim 0."""
    def scatter_reduce(self, dim: builtins.int, index: Tensor, src: Tensor, reduce: str, *, include_self: builtins.bool = True) -> Tensor:
        """A copy of the input where the values of ``src`` with the same index are combined."""
    def select_scatter(self, src: Tensor, dim: builtins.int, index: builtins.int) -> Tensor:
        """A copy of ``input`` with entry ``index`` along a dimension replaced by ``src``."""
    def slice_scatter(self, src: Tensor, dim: builtins.int = 0, start: builtins.int | None = None, end: builtins.int | None = None, step: builtins.int = 1) -> Tensor:
        """A copy of ``input`` with ``input[start:end:step]`` along a dimension replaced by ``src``."""
