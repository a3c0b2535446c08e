"""Element types: float32, float64, int64 and bool."""

from __future__ import annotations

from typing import Any

from minigrad._c import lib
from minigrad._numpy import np

__all__ = ["DType", "as_dtype", "bool_", "by_code", "by_name", "float32", "float64", "int64"]


class DType:
    """An element type. Compares equal to itself, its name and its NumPy counterpart.

    >>> import minigrad as mg
    >>> mg.float32.itemsize, mg.float32 == "float32", mg.int64.is_floating_point
    (4, True, False)
    """

    __slots__ = ("code", "is_floating_point", "itemsize", "name")

    def __init__(self, name: str, code: int, itemsize: int, is_floating_point: bool) -> None:
        self.name = name
        self.code = code
        self.itemsize = itemsize
        self.is_floating_point = is_floating_point

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


bool_ = DType("bool", lib.MG_BOOL, 1, False)
int64 = DType("int64", lib.MG_INT64, 8, False)
float32 = DType("float32", lib.MG_FLOAT32, 4, True)
float64 = DType("float64", lib.MG_FLOAT64, 8, True)

by_code: dict[int, DType] = {d.code: d for d in (bool_, int64, float32, float64)}
by_name = {d.name: d for d in by_code.values()}
_by_type: dict[object, DType] = {bool: bool_, int: int64, float: float64}


def as_dtype(dtype: object) -> DType:
    """The DType for a DType, a name, a NumPy dtype or scalar type, or Python's bool, int, float.

    Python's ``float`` is float64, as for NumPy and PyTorch; None is the default, float32. Raises
    TypeError for anything else.
    """
    if isinstance(dtype, DType):
        return dtype
    if dtype is None:
        return float32
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
        raise TypeError(f"[dtype] {name} is not supported: use float32, float64, int64 or bool")
    return found
