"""Files of programs: a safetensors file whose metadata says what to compute with its arrays.

``docs/program-files.md`` specifies the format. This module knows bytes, JSON and arrays, and
nothing of what a program does.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any

from minigrad.functions.creation import tensor
from minigrad.io.safetensors import NAMES
from minigrad.runtime.dtypes import DType, bfloat16, bool_, by_name, int16, uint8
from minigrad.runtime.lazy_numpy import np
from minigrad.tape.tensor_base import TensorBase

__all__ = ["FORMAT", "VERSION", "FormatError", "bytes_of", "number", "parse", "plain", "write_to"]

FORMAT = "minigrad program"
VERSION = "1"
_CODES = {name: code for code, name in NAMES.items()}
_MOST_HEADER = 100_000_000  # bytes, as in safetensors


class FormatError(ValueError):
    """A file is no program, or is damaged."""


# ---- numbers in JSON -----------------------------------------------------------------------------


def plain(x: Any) -> Any:
    """A number as JSON has it: infinities and NaN as text."""
    if isinstance(x, bool) or not isinstance(x, float):
        return x
    return x if math.isfinite(x) else repr(x)


def number(x: Any) -> float:
    """A float from JSON."""
    if type(x) in (int, float):
        try:
            return float(x)
        except OverflowError:
            raise FormatError(f"{x} is beyond the floats") from None
    if x in ("inf", "-inf", "nan"):
        return float(x)
    raise FormatError(f"{x!r} is no number")


# ---- writing -------------------------------------------------------------------------------------


def write_to(file: IO[bytes], arrays: Mapping[str, Any], program: Mapping[str, Any]) -> None:
    """Write tensors by name, and what to compute with them."""
    text = json.dumps(program, allow_nan=False, separators=(",", ":"))
    header: dict[str, Any] = {
        "__metadata__": {"format": FORMAT, "version": VERSION, "program": text}
    }
    values = {name: _values(x) for name, x in arrays.items()}
    # Wide items first, so that every array lies at a multiple of its item.
    order = sorted(values, key=lambda name: -values[name].itemsize)
    at = 0
    for name in order:
        x = arrays[name]
        end = at + values[name].nbytes
        entry = {"dtype": _CODES[x.dtype.name], "shape": list(x.shape), "data_offsets": [at, end]}
        header[name], at = entry, end
    head = json.dumps(header, allow_nan=False, separators=(",", ":")).encode()
    head += b" " * (-len(head) % 8)
    file.write(struct.pack("<Q", len(head)))
    file.write(head)
    for name in order:
        file.write(values[name].tobytes())


def _values(x: Any) -> Any:
    view = (x.view(int16) if x.dtype is bfloat16 else x.detach()).numpy()
    return np.ascontiguousarray(view).astype(view.dtype.newbyteorder("<"), copy=False)


def bytes_of(x: Any) -> bytes:
    """The values of a tensor, row-major and little-endian."""
    return bytes(_values(x).tobytes())


# ---- reading -------------------------------------------------------------------------------------


def parse(path: Path) -> tuple[dict[str, Callable[[], TensorBase]], Any]:
    """The arrays of a file by name, each as a function that makes a tensor; and the program.

    Nothing is allocated but the bytes of the file. Raises FormatError if it is damaged.
    """
    with path.open("rb") as file:
        start = file.read(8)
        if len(start) < 8:
            raise FormatError("it is shorter than its header")
        (length,) = struct.unpack("<Q", start)
        size = path.stat().st_size - 8 - length
        if length > _MOST_HEADER or size < 0:
            raise FormatError(f"its header would have {length} bytes")
        head, data = file.read(length), file.read(size)
    if len(head) != length or len(data) != size:
        raise FormatError("it is shorter than it was a moment ago")
    header = _json(head)
    about = header.pop("__metadata__", None) if isinstance(header, dict) else None
    if not isinstance(about, dict) or about.get("format") != FORMAT:
        raise FormatError("it is no program of minigrad's")
    if about.get("version") != VERSION:
        raise FormatError(f"it has the version {about.get('version')!r}, and {VERSION} is read")
    arrays = {name: _array(name, entry, data) for name, entry in header.items()}
    _check_cover(header, size)
    return arrays, _json(about.get("program"))


def _json(text: Any) -> Any:
    try:
        return json.loads(text)
    except (ValueError, TypeError, RecursionError) as error:
        raise FormatError(f"its header is no JSON: {error}") from None


def _array(name: str, entry: Any, data: bytes) -> Callable[[], TensorBase]:
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        raise FormatError(f"the array {name!r} has no dtype, shape and place")
    kind = by_name.get(NAMES.get(entry["dtype"], "") if isinstance(entry["dtype"], str) else "")
    shape, place = entry["shape"], entry["data_offsets"]
    whole = [type(x) is int and 0 <= x < 2**63 for x in shape] if type(shape) is list else [False]
    if kind is None or not all(whole) or len(whole) > 16:
        raise FormatError(f"the array {name!r} has a dtype or shape that no array has")
    good = type(place) is list and len(place) == 2 and all(type(x) is int for x in place)
    if not good or not 0 <= place[0] <= place[1] <= len(data):
        raise FormatError(f"the array {name!r} lies beyond the end of the file")
    if math.prod(shape) * kind.itemsize != place[1] - place[0]:
        raise FormatError(f"the array {name!r} has more or fewer bytes than its shape needs")
    return lambda: _made(kind, shape, memoryview(data)[place[0] : place[1]])


def _check_cover(header: Mapping[str, Any], size: int) -> None:
    """Raise an error unless the arrays lie side by side, from the first byte to the last."""
    at = 0
    for begin, end in sorted(entry["data_offsets"] for entry in header.values()):
        if begin != at:
            raise FormatError("its arrays overlap, or leave bytes between them")
        at = end
    if at != size:
        raise FormatError(f"{size - at} bytes follow its arrays")


def _made(kind: DType, shape: list[int], data: memoryview) -> Any:
    stored = {bfloat16: "int16", bool_: "uint8"}.get(kind, kind.name)
    values = np.frombuffer(data, np.dtype(stored).newbyteorder("<"))
    made: Any = tensor(values.astype(stored).reshape(shape))
    if kind is bool_:
        return made.to(uint8) != 0
    return made.view(bfloat16) if kind is bfloat16 else made
