"""The safetensors file format, read and written by the package safetensors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from minigrad.functions.creation import tensor
from minigrad.io.archive import FormatError
from minigrad.runtime.dtypes import bfloat16, by_name, int16
from minigrad.runtime.lazy_numpy import np
from minigrad.tape.tensor_base import TensorBase

__all__ = ["NAMES", "content", "read"]

NAMES = {  # the format's names of dtypes
    "BOOL": "bool",
    "U8": "uint8",
    "I8": "int8",
    "I16": "int16",
    "I32": "int32",
    "I64": "int64",
    "F16": "float16",
    "BF16": "bfloat16",
    "F32": "float32",
    "F64": "float64",
}


def _package() -> Any:
    try:
        import safetensors
    except ImportError:
        raise ImportError(
            "[safetensors] files of this format need a package: pip install safetensors"
        ) from None
    return safetensors


def content(obj: Any) -> bytes:
    """The bytes of a file for a flat dict of tensors or arrays."""
    if not isinstance(obj, Mapping) or not all(isinstance(name, str) for name in obj):
        raise TypeError("[save] a .safetensors file holds a dict of names and tensors")
    package = _package()
    # kept alive until everything is written
    arrays = {name: _values(name, x) for name, x in obj.items()}
    specs = {
        name: package.TensorSpec(
            dtype=dtype, shape=x.shape, data_ptr=x.ctypes.data, data_len=x.nbytes
        )
        for name, (dtype, x) in arrays.items()
    }
    return bytes(package.serialize(specs, None))


def _values(name: str, x: Any) -> tuple[str, Any]:
    """The name of a tensor's dtype, and its values as a contiguous array."""
    if not isinstance(x, (TensorBase, np.ndarray)):
        raise TypeError(f"[save] {name!r} is {type(x).__name__}: .safetensors files hold tensors")
    made: Any = tensor(x) if isinstance(x, np.ndarray) else x
    view = (made.view(int16) if made.dtype is bfloat16 else made.detach()).numpy()
    return made.dtype.name, np.ascontiguousarray(view).reshape(view.shape)


def read(given: bytes) -> dict[str, Any]:
    """The tensors of a file, by name."""
    package = _package()
    try:
        found = package.deserialize(given)
    except package.SafetensorError as error:
        raise FormatError(f"damaged: {error}") from None
    return {name: _made(name, entry) for name, entry in sorted(found)}


def _made(name: str, entry: Mapping[str, Any]) -> Any:
    dtype = by_name.get(NAMES.get(entry["dtype"], ""))
    if dtype is None:
        raise FormatError(
            f"{name!r} is of the dtype {entry['dtype']}, which minigrad does not have"
        )
    stored = "int16" if dtype is bfloat16 else dtype.name
    values = np.frombuffer(entry["data"], stored).reshape(entry["shape"])
    made: Any = tensor(values)
    return made.view(bfloat16) if dtype is bfloat16 else made
