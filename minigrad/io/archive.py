"""minigrad's file format: a zip with the structure of an object as JSON and its arrays as NPY.

JSON values stand for themselves. Any other value is a list: its kind, and its content.
"""

from __future__ import annotations

import io
import json
import math
import zipfile
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import IO, Any

from minigrad.functions.creation import tensor
from minigrad.runtime.dtypes import DType, as_dtype, bfloat16, int16
from minigrad.runtime.lazy_numpy import np
from minigrad.tape.tensor_base import TensorBase

__all__ = ["STRUCTURE", "FormatError", "OtherClassError", "read", "write"]

STRUCTURE = "minigrad/structure.json"
_ARRAYS = "minigrad/arrays/{}.npy"
_VERSION = 1
_LONGEST_HEADER = 2**16


class FormatError(ValueError):
    """Error for a damaged or forbidden file. The message says why."""


class OtherClassError(TypeError):
    """Error for an object of a class that the format does not support."""


# ---- writing -------------------------------------------------------------------------------------


def write(obj: Any, file: Any) -> None:
    """Write an object to an open binary file.

    An OtherClassError comes before anything is written.
    """
    writer = _Writer()
    try:
        structure = json.dumps([_VERSION, writer.coded(obj, "the object")], allow_nan=False)
    except RecursionError:
        raise ValueError("[save] the containers are nested too deeply") from None
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as zipped:
        zipped.writestr(STRUCTURE, structure)
        for place, array in enumerate(writer.arrays):
            with zipped.open(_ARRAYS.format(place), "w", force_zip64=True) as entry:
                np.lib.format.write_array(entry, array, allow_pickle=False)


class _Writer:
    """The arrays of an object, and its structure with a number in place of each array."""

    def __init__(self) -> None:
        self.arrays: list[Any] = []
        self._places: dict[int, int] = {}  # id of a tensor or array -> its number
        self._held: list[Any] = []  # keeps objects alive, so that ids stay unique
        self._open: set[int] = set()  # ids of the enclosing containers

    def coded(self, x: Any, name: str) -> Any:
        """Convert an object to JSON. ``name`` is its place in the structure, for errors."""
        if x is None or type(x) in (bool, int, str):
            return x
        if type(x) is float:
            return x if math.isfinite(x) else ["float", repr(x)]
        if isinstance(x, TensorBase):
            return self._tensor(x)
        if isinstance(x, (np.ndarray, np.generic)):
            return self._array(x, name)
        if type(x) in _CONTAINERS or isinstance(x, OrderedDict):
            return self._container(x, name)
        for kind, (cls, code, _) in _ATOMS.items():
            if type(x) is cls:
                return [kind, code(x)]
        raise OtherClassError(f"[save] {name} is {_what(x)}")

    def _tensor(self, x: Any) -> list[Any]:
        from minigrad.nn import Parameter

        kind = "Parameter" if isinstance(x, Parameter) else "tensor"
        values = (x.view(int16) if x.dtype is bfloat16 else x.detach()).numpy()
        return [kind, self._placed(x, values), x.dtype.name, bool(x.requires_grad)]

    def _array(self, x: Any, name: str) -> list[Any]:
        if x.dtype.hasobject:
            raise OtherClassError(
                f"[save] {name} is an array of Python objects: save a list of them"
            )
        kind = "array" if isinstance(x, np.ndarray) else "scalar"
        return [kind, self._placed(x, np.asarray(x))]

    def _placed(self, x: Any, values: Any) -> int:
        place = self._places.setdefault(id(x), len(self.arrays))
        if place == len(self.arrays):
            self._held.append(x)
            self.arrays.append(values)
        return place

    def _container(self, x: Any, name: str) -> list[Any]:
        if id(x) in self._open:
            raise ValueError(f"[save] {name} holds itself")
        self._open.add(id(x))
        kind = "OrderedDict" if isinstance(x, OrderedDict) else type(x).__name__
        if isinstance(x, Mapping):
            items = [
                [self.coded(key, f"a key of {name}"), self.coded(value, f"{name}[{key!r}]")]
                for key, value in x.items()
            ]
        else:
            items = [self.coded(value, f"{name}[{place}]") for place, value in enumerate(x)]
        self._open.discard(id(x))
        return [kind, items]


def _what(x: Any) -> str:
    return (
        f"of the class {type(x).__name__}, which files do not hold: make it of numbers, strings, "
        "tensors, arrays, lists, tuples, sets and dicts"
    )


# ---- reading -------------------------------------------------------------------------------------


def read(zipped: zipfile.ZipFile) -> Any:
    """Read the object of a file."""
    return _Reader(zipped).whole(json.loads(entry(zipped, STRUCTURE)))


def entry(zipped: zipfile.ZipFile, name: str) -> bytes:
    """The bytes of an entry, which must be stored without compression."""
    info = zipped.NameToInfo.get(name)
    if info is None:
        raise FormatError(f"damaged: it lacks {name}")
    if info.compress_type != zipfile.ZIP_STORED or info.file_size > info.compress_size:
        raise FormatError(f"damaged: {name} is compressed")
    return zipped.read(name)


class _Reader:
    """Rebuilds an object from its structure. Shared arrays are shared again."""

    def __init__(self, zipped: zipfile.ZipFile) -> None:
        self._zipped = zipped
        self._made: dict[tuple[Any, ...], Any] = {}

    def whole(self, content: Any) -> Any:
        version, code = content
        if version != _VERSION:
            raise FormatError(f"its version is {version}, this minigrad reads {_VERSION}")
        return self.decoded(code)

    def decoded(self, code: Any) -> Any:
        if not isinstance(code, list):
            return code
        kind, *given = code
        if kind in ("tensor", "Parameter", "array", "scalar"):
            key = (kind, *given)
            if key not in self._made:
                self._made[key] = getattr(self, f"_{kind.lower()}")(*given)
            return self._made[key]
        (content,) = given
        if kind in _BY_NAME:
            make, mapping = _BY_NAME[kind]
            if mapping:
                return make((self.decoded(key), self.decoded(value)) for key, value in content)
            return make(self.decoded(value) for value in content)
        if kind not in _ATOMS:
            raise FormatError(f"it holds {kind!r}, which this minigrad does not know")
        return _ATOMS[kind][2](content)

    def _values(self, place: int) -> Any:
        return from_npy(entry(self._zipped, _ARRAYS.format(int(place))))

    def _tensor(self, place: int, dtype: str, requires_grad: bool) -> Any:
        made = tensor(self._values(place))
        if dtype == bfloat16.name:
            made = made.view(bfloat16)
        if made.dtype.name != dtype:
            raise FormatError(f"damaged: array {place} is {made.dtype.name}, not {dtype}")
        return made.requires_grad_() if requires_grad else made

    def _parameter(self, place: int, dtype: str, requires_grad: bool) -> Any:
        from minigrad.nn import Parameter

        return Parameter(self._tensor(place, dtype, False), requires_grad)

    def _array(self, place: int) -> Any:
        return self._values(place).copy()

    def _scalar(self, place: int) -> Any:
        return self._values(place)[()]


def from_npy(content: bytes) -> Any:
    """The array of an NPY file. The header must match the number of bytes exactly."""
    file: IO[bytes] = io.BytesIO(content)
    version = np.lib.format.read_magic(file)
    readers = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    if version not in readers:
        raise FormatError(f"an array is of the NPY version {version}")
    shape, fortran, dtype = readers[version](file, max_header_size=_LONGEST_HEADER)
    begin = file.tell()
    if dtype.hasobject or any(n < 0 for n in shape):
        raise FormatError("an array of Python objects, or of a negative size")
    if math.prod(shape) * dtype.itemsize != len(content) - begin:
        raise FormatError(f"damaged: an array of the shape {shape} has {len(content)} bytes")
    if not math.prod(shape):
        return np.empty(shape, dtype)
    values = numbers(content, dtype, math.prod(shape), begin)
    return values.reshape(shape[::-1]).T if fortran else values.reshape(shape)


def numbers(content: Any, dtype: Any, count: int, begin: int = 0) -> Any:
    """An array on these bytes. A bool array is copied, with every byte turned into 0 or 1."""
    if dtype.kind == "b":
        return np.frombuffer(content, np.uint8, count, begin) != 0
    return np.frombuffer(content, dtype, count, begin)


# ---- kinds ---------------------------------------------------------------------------------------

_CONTAINERS = (dict, list, tuple, set, frozenset)
_BY_NAME: dict[str, tuple[Callable[..., Any], bool]] = {
    cls.__name__: (cls, issubclass(cls, dict)) for cls in (*_CONTAINERS, OrderedDict)
}
# a class, its conversion to JSON and back
_Atom = tuple[type, Callable[[Any], Any], Callable[[Any], Any]]
_ATOMS: dict[str, _Atom] = {
    "float": (float, repr, float),
    "complex": (complex, lambda x: [repr(x.real), repr(x.imag)], lambda x: complex(*map(float, x))),
    "bytes": (bytes, bytes.hex, bytes.fromhex),
    "dtype": (DType, lambda x: x.name, as_dtype),
}
