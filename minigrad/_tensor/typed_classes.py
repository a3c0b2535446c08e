"""Tensor classes of old PyTorch programs: ``FloatTensor`` and its kin per dtype, ``Variable``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from minigrad.functions.creation import asarray, of_sizes_or_data
from minigrad.runtime.devices import on_cpu
from minigrad.runtime.dtypes import (
    DType,
    bfloat16,
    bool_,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
)
from minigrad.tape.tensor_base import TensorBase

if TYPE_CHECKING:
    from minigrad._tensor import Tensor

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
]


class _OfDType(type):
    """Metaclass of classes whose instances are the tensors of one dtype."""

    dtype: DType

    def __instancecheck__(cls, obj: Any) -> bool:
        return isinstance(obj, TensorBase) and obj.dtype is cls.dtype

    def __call__(cls, *data: Any, device: Any = None) -> Tensor:
        """A tensor of given sizes or data in this dtype."""
        return of_sizes_or_data(cls.__name__, data, cls.dtype, device)


class FloatTensor(metaclass=_OfDType):
    """Tensors of float32: ``FloatTensor(2, 3)`` is given sizes, ``FloatTensor([1, 2])`` data.

    >>> import minigrad as mg
    >>> mg.FloatTensor([1, 2]), isinstance(mg.ones(1), mg.FloatTensor)
    (tensor([1., 2.]), True)
    """

    dtype = float32


class DoubleTensor(metaclass=_OfDType):
    """Like :class:`FloatTensor`, for float64."""

    dtype = float64


class HalfTensor(metaclass=_OfDType):
    """Like :class:`FloatTensor`, for float16."""

    dtype = float16


class BFloat16Tensor(metaclass=_OfDType):
    """Like :class:`FloatTensor`, for bfloat16."""

    dtype = bfloat16


class LongTensor(metaclass=_OfDType):
    """Like :class:`FloatTensor`, for int64."""

    dtype = int64


class IntTensor(metaclass=_OfDType):
    """Like :class:`FloatTensor`, for int32."""

    dtype = int32


class ShortTensor(metaclass=_OfDType):
    """Like :class:`FloatTensor`, for int16."""

    dtype = int16


class CharTensor(metaclass=_OfDType):
    """Like :class:`FloatTensor`, for int8."""

    dtype = int8


class ByteTensor(metaclass=_OfDType):
    """Like :class:`FloatTensor`, for uint8."""

    dtype = uint8


class BoolTensor(metaclass=_OfDType):
    """Like :class:`FloatTensor`, for bool."""

    dtype = bool_


_CLASSES = (
    *(FloatTensor, DoubleTensor, HalfTensor, BFloat16Tensor, LongTensor),
    *(IntTensor, ShortTensor, CharTensor, ByteTensor, BoolTensor),
)
_BY_NAME = {cls.__name__: cls.dtype for cls in _CLASSES}
_BY_DTYPE = {cls.dtype: f"minigrad.{cls.__name__}" for cls in _CLASSES}


def name_of_class(dtype: DType) -> str:
    """The name of a dtype's tensor class, such as "minigrad.FloatTensor"."""
    return _BY_DTYPE[dtype]


def dtype_of_class(given: Any) -> Any:
    """The dtype of such a class or its name ("torch.FloatTensor").

    Other values are returned as is.
    """
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
    """PyTorch's older wrapper: a tensor on the same memory that by default requires no grad.

    ``mg.Variable`` is another class, for tutorials: it requires a gradient by default.

    >>> import minigrad as mg
    >>> mg.autograd.Variable(mg.tensor([1, 2])).requires_grad
    False
    """
