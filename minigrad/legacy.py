"""Classes and names of old PyTorch programs: ``FloatTensor``, ``Variable``."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from minigrad import linalg
from minigrad._tensor import Tensor
from minigrad.creation import arange, asarray, of_sizes_or_data, require_grad
from minigrad.devices import on_cpu
from minigrad.dtypes import (
    DType,
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
    set_default_dtype,
    uint8,
)
from minigrad.tape.tensor_base import TensorBase

__all__ = [
    "BFloat16Tensor",
    "BoolTensor",
    "ByteTensor",
    "CharTensor",
    "DoubleTensor",
    "FloatTensor",
    "HalfTensor",
    "IntTensor",
    "LongTensor",
    "ShortTensor",
    "Variable",
    "dtype_of_class",
    "name_of_class",
    "range",
    "set_default_tensor_type",
    "svd",
]


class _OfDType(type):
    """A class whose instances are the tensors of one dtype."""

    dtype: DType

    def __instancecheck__(cls, obj: Any) -> bool:
        return isinstance(obj, TensorBase) and obj.dtype is cls.dtype

    def __call__(cls, *data: Any, device: Any = None) -> Tensor:
        """A tensor of sizes or of data in this dtype."""
        return of_sizes_or_data(cls.__name__, data, cls.dtype, device)


class FloatTensor(metaclass=_OfDType):
    """Tensors of float32: ``FloatTensor(2, 3)`` of these sizes, ``FloatTensor([1, 2])`` of data.

    >>> import minigrad as mg
    >>> mg.FloatTensor([1, 2]), isinstance(mg.ones(1), mg.FloatTensor)
    (tensor([1., 2.]), True)
    """

    dtype = float32


class DoubleTensor(metaclass=_OfDType):
    """As :class:`FloatTensor`, of float64."""

    dtype = float64


class HalfTensor(metaclass=_OfDType):
    """As :class:`FloatTensor`, of float16."""

    dtype = float16


class BFloat16Tensor(metaclass=_OfDType):
    """As :class:`FloatTensor`, of bfloat16."""

    dtype = bfloat16


class LongTensor(metaclass=_OfDType):
    """As :class:`FloatTensor`, of int64."""

    dtype = int64


class IntTensor(metaclass=_OfDType):
    """As :class:`FloatTensor`, of int32."""

    dtype = int32


class ShortTensor(metaclass=_OfDType):
    """As :class:`FloatTensor`, of int16."""

    dtype = int16


class CharTensor(metaclass=_OfDType):
    """As :class:`FloatTensor`, of int8."""

    dtype = int8


class ByteTensor(metaclass=_OfDType):
    """As :class:`FloatTensor`, of uint8."""

    dtype = uint8


class BoolTensor(metaclass=_OfDType):
    """As :class:`FloatTensor`, of bool."""

    dtype = bool_


_CLASSES = (
    *(FloatTensor, DoubleTensor, HalfTensor, BFloat16Tensor, LongTensor),
    *(IntTensor, ShortTensor, CharTensor, ByteTensor, BoolTensor),
)
_BY_NAME = {cls.__name__: cls.dtype for cls in _CLASSES}
_BY_DTYPE = {cls.dtype: f"minigrad.{cls.__name__}" for cls in _CLASSES}


def name_of_class(dtype: DType) -> str:
    """The name of the class of tensors of a dtype, as "minigrad.FloatTensor"."""
    return _BY_DTYPE[dtype]


def dtype_of_class(given: Any) -> Any:
    """The dtype of such a class, or of its name ("torch.FloatTensor"); all else as it is."""
    if isinstance(given, _OfDType):
        return given.dtype
    if isinstance(given, str):
        if ".cuda." in given:
            on_cpu("cuda")
        return _BY_NAME.get(given.rpartition(".")[2], given)
    return given


class _OfTensors(type):
    def __instancecheck__(cls, obj: Any) -> bool:
        return isinstance(obj, TensorBase)

    def __call__(cls, data: Any, requires_grad: bool = False, volatile: Any = None) -> Tensor:
        x: Any = asarray(data).detach()
        found: Tensor = x.requires_grad_() if requires_grad else x
        return found


class Variable(metaclass=_OfTensors):
    """PyTorch's older wrapper: a tensor on the same memory, without a gradient by default.

    ``mg.Variable`` is another: that of tutorials, which wants a gradient unless told otherwise.

    >>> import minigrad as mg
    >>> mg.autograd.Variable(mg.tensor([1, 2])).requires_grad
    False
    """


def set_default_tensor_type(t: Any) -> None:
    """Make the dtype of a class, ``FloatTensor`` or ``DoubleTensor``, the default of new floats.

    The class may be named: "torch.DoubleTensor". See :func:`minigrad.set_default_dtype`.
    """
    set_default_dtype(dtype_of_class(t))


def range(  # noqa: A001 - PyTorch's name
    start: float,
    end: float,
    step: float = 1,
    *,
    dtype: Any = None,
    requires_grad: bool = False,
    device: Any = None,
) -> Tensor:
    """start, start + step, ... up to and with end, as floats; ``arange`` leaves the end out.

    >>> import minigrad as mg
    >>> mg.range(1, 3)
    tensor([1., 2., 3.])
    """
    on_cpu(device)
    first, last, by = float(start), float(end), float(step)
    if not by or not all(map(math.isfinite, (first, last, by))) or (last - first) / by < 0:
        raise ValueError(f"[range] cannot count from {start} to {end} by {step}")
    count = math.floor((last - first) / by) + 1
    found = arange(count, dtype=float64) * by + first
    made: Any = found.to(default_dtype() if dtype is None else dtype)
    return require_grad(made, requires_grad)


def svd(input: Tensor, some: bool = True, compute_uv: bool = True) -> SVD:
    """The singular values S of a matrix, and U and V: ``U @ diag(S) @ V.mT`` is the matrix.

    With ``some`` False U and V are square. ``linalg.svd`` gives V transposed.

    >>> import minigrad as mg
    >>> U, S, V = mg.svd(mg.tensor([[3.0, 0.0], [0.0, -2.0]]))
    >>> S
    tensor([3., 2.])
    """
    found = linalg.svd(input, full_matrices=not some)
    u, s, v = found.U, found.S, found.Vh.mT
    return SVD(u, s, v) if compute_uv else SVD(u.detach() * 0, s, v.detach() * 0)


class SVD(NamedTuple):
    """The result of :func:`svd`."""

    U: Tensor
    S: Tensor
    V: Tensor
