"""Dtypes: compute dtypes, and storage dtypes that are only kept, moved and converted."""

from __future__ import annotations

from typing import Any

from minigrad.runtime.lazy_numpy import np
from minigrad.runtime.native import lib

__all__ = [
    "DType",
    "as_dtype",
    "bfloat16",
    "bool_",
    "by_code",
    "by_name",
    "default_dtype",
    "float16",
    "float32",
    "float64",
    "get_default_dtype",
    "int8",
    "int16",
    "int32",
    "int64",
    "promoted_dtype",
    "set_default_dtype",
    "uint8",
]


class DType:
    """An element type. It equals itself, its name and its NumPy counterpart.

    Kernels compute in float32, float64, int64 and bool. uint8, int8, int16, int32, float16 and
    bfloat16 are *storage dtypes*. Arrays of storage dtypes are kept, moved and converted.
    Arithmetic casts them to ``wide``, which is int64 or float32.

    >>> import minigrad as mg
    >>> mg.float32.itemsize, mg.float32 == "float32", mg.int64.is_floating_point
    (4, True, False)
    >>> mg.uint8.itemsize, mg.uint8.wide, mg.float16.wide
    (1, minigrad.int64, minigrad.float32)
    """

    __slots__ = ("code", "is_floating_point", "is_storage", "itemsize", "kind", "name")

    def __init__(self, name: str, code: int, itemsize: int, kind: int) -> None:
        self.name = name
        self.code = code
        self.itemsize = itemsize
        self.kind = kind  # order of promotion: 0 for bool, 1 for integers, 2 for floats
        self.is_floating_point = kind == 2
        self.is_storage = code < 0  # storage dtypes have negative codes

    @property
    def wide(self) -> DType:
        """The dtype that arithmetic computes in. A storage dtype has int64 or float32."""
        return self if self.code >= 0 else int64 if self.kind == 1 else float32

    @property
    def byteorder(self) -> str:
        """NumPy's character for the byte order: ``|`` for one byte, else ``=``, this machine's."""
        return "|" if self.itemsize == 1 else "="

    @property
    def is_signed(self) -> bool:
        """True if the dtype has negative numbers."""
        return self.name not in ("bool", "uint8")

    @property
    def is_complex(self) -> bool:
        """False: minigrad has no complex dtypes."""
        return False

    def __repr__(self) -> str:
        return f"minigrad.{self.name}"

    def __eq__(self, other: object) -> bool:
        if isinstance(other, DType) or other is None:
            return self is other
        try:
            return as_dtype(other) is self
        except TypeError:
            return NotImplemented

    def __hash__(self) -> int:
        return hash(self.name)

    def __reduce__(self) -> tuple[Any, ...]:
        return as_dtype, (self.name,)


uint8 = DType("uint8", lib.MG_UINT8, 1, 1)
int8 = DType("int8", lib.MG_INT8, 1, 1)
int16 = DType("int16", lib.MG_INT16, 2, 1)
int32 = DType("int32", lib.MG_INT32, 4, 1)
float16 = DType("float16", lib.MG_FLOAT16, 2, 2)
bfloat16 = DType("bfloat16", lib.MG_BFLOAT16, 2, 2)
bool_ = DType("bool", lib.MG_BOOL, 1, 0)
int64 = DType("int64", lib.MG_INT64, 8, 1)
float32 = DType("float32", lib.MG_FLOAT32, 4, 2)
float64 = DType("float64", lib.MG_FLOAT64, 8, 2)

_ALL = (uint8, int8, int16, int32, float16, bfloat16, bool_, int64, float32, float64)
by_code: dict[int, DType] = {d.code: d for d in _ALL}
by_name = {d.name: d for d in _ALL}
_by_type: dict[object, DType] = {bool: bool_, int: int64, float: float64}


defaults = [float32]  # the default dtype, as the only item


def default_dtype() -> DType:
    """The dtype of new floats: float32 unless ``set_default_dtype`` was called."""
    return defaults[0]


def set_default_dtype(dtype: Any) -> None:
    """Set the dtype of new floating-point tensors, which is float32 or float64.

    This dtype holds for tensors made from Python numbers, and for functions such as ``zeros`` if no
    dtype is given. It does not change arithmetic between tensors: integers divided still give
    float32. Raises TypeError for other dtypes.

    >>> import minigrad as mg
    >>> mg.set_default_dtype(mg.float64)
    >>> mg.tensor([0.5]).dtype
    minigrad.float64
    >>> mg.set_default_dtype(mg.float32)
    """
    kind = as_dtype(dtype)
    if kind not in (float32, float64):
        raise TypeError(f"[set_default_dtype] {kind.name} is not float32 or float64")
    defaults[0] = kind


def get_default_dtype() -> DType:
    """The dtype of new floats."""
    return defaults[0]


def as_dtype(dtype: object) -> DType:
    """The DType for a DType, a name, a NumPy dtype or scalar type, or Python's bool, int, float.

    Python's ``float`` means float64, as in NumPy and PyTorch. None means the default dtype. Raises
    TypeError for anything else.
    """
    if isinstance(dtype, DType):
        return dtype
    if dtype is None:
        return defaults[0]
    if isinstance(dtype, type) and dtype in _by_type:
        return _by_type[dtype]
    name = dtype if isinstance(dtype, str) else None
    if name is None:
        try:
            name = np.dtype(dtype).name  # type: ignore[call-overload]
        except (TypeError, ValueError):
            name = f"a {type(dtype).__name__}" if hasattr(dtype, "shape") else repr(dtype)
    found = by_name.get(name)
    if found is None:
        raise TypeError(
            f"[dtype] {name} is not supported: use float32, float64, int64 or bool; or, to store "
            "values, uint8, int8, int16, int32, float16 or bfloat16"
        )
    return found


def promoted_dtype(a: DType, b: DType) -> DType:
    """The common dtype of two dtypes, by PyTorch's table.

    Floats win over integers, and integers over bool. Within one kind the longer dtype wins: int16
    for uint8 and int8, float32 for the two halves.
    """
    if a is b or a.kind != b.kind:
        return a if a.kind >= b.kind else b
    if a.itemsize == b.itemsize:
        return int16 if a.kind == 1 else float32
    return a if a.itemsize > b.itemsize else b
