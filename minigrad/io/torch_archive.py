"""Reader of PyTorch's ``.pt`` files: a zip of storages, and a pickle run by a restricted machine.

The machine supports only the opcodes for containers, numbers and strings. A name in the pickle,
such as ``torch._utils._rebuild_tensor_v2``, is looked up in a table of this module's functions.
Nothing is imported, so a file cannot run code.
"""

from __future__ import annotations

import io
import math
import pickletools
import zipfile
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, NamedTuple

from minigrad.functions.creation import from_numpy
from minigrad.io.archive import FormatError, entry, numbers
from minigrad.runtime.dtypes import DType, bfloat16, by_name
from minigrad.runtime.lazy_numpy import np
from minigrad.tape.tensor_base import TensorBase

__all__ = ["PICKLE", "read"]

PICKLE = "data.pkl"

_STORAGES = {
    "BoolStorage": "bool",
    "ByteStorage": "uint8",
    "CharStorage": "int8",
    "ShortStorage": "int16",
    "IntStorage": "int32",
    "LongStorage": "int64",
    "HalfStorage": "float16",
    "BFloat16Storage": "bfloat16",
    "FloatStorage": "float32",
    "DoubleStorage": "float64",
}


def read(zipped: zipfile.ZipFile, name: str) -> Any:
    """Read the object whose pickle is this entry."""
    folder = name[: -len(PICKLE)]
    return _Machine(_Storages(zipped, folder).find).run(entry(zipped, name))


# ---- storages and tensors ------------------------------------------------------------------------


class _Storage(NamedTuple):
    values: Any  # a writable array of one dimension; of bfloat16, its bits as int16
    dtype: DType


class _Storages:
    """The storages of a file. Each is read once, so tensors that shared memory share it again."""

    def __init__(self, zipped: zipfile.ZipFile, folder: str) -> None:
        self._zipped = zipped
        self._folder = folder
        self._made: dict[Any, _Storage] = {}
        order = folder + "byteorder"
        big = order in zipped.namelist() and entry(zipped, order) == b"big"
        self._order: Any = ">" if big else "<"

    def find(self, given: Any) -> _Storage:
        """The storage of a persistent id: ("storage", class, key, device, number of elements)."""
        kind, cls, key, _, count = given
        if kind != "storage" or not isinstance(cls, _Name) or count < 0:
            raise FormatError("damaged: no storage")
        name = _STORAGES.get(cls.rpartition(".")[2])
        if cls == "torch.storage.UntypedStorage":
            name = "uint8"
        if name is None:
            raise FormatError(f"it holds values of the kind {cls}, which minigrad does not have")
        if (key, name) not in self._made:
            stored = np.dtype("int16" if name == "bfloat16" else name)
            content = bytearray(entry(self._zipped, f"{self._folder}data/{key}"))
            if len(content) < count * stored.itemsize:
                raise FormatError(f"damaged: storage {key} has {len(content)} bytes")
            values = numbers(content, stored.newbyteorder(self._order), count)
            self._made[key, name] = _Storage(values.astype(stored, copy=False), by_name[name])
        return self._made[key, name]


def _tensor(
    storage: Any, offset: int, size: Any, stride: Any, requires_grad: bool = False, *more: Any
) -> Any:
    """A tensor on the memory of a storage. All elements must lie inside the storage."""
    values, dtype = storage
    if min((offset, *size, *stride)) < 0 or len(size) != len(stride):
        raise FormatError("damaged: a tensor of a negative size")
    last = offset + sum((n - 1) * step for n, step in zip(size, stride, strict=True))
    if math.prod(size) and last >= values.size:
        raise FormatError(f"damaged: a tensor of the shape {tuple(size)} is outside its storage")
    if not math.prod(size):
        view = np.empty(size, values.dtype)
    else:
        steps = [step * values.itemsize for step in stride]
        view = np.lib.stride_tricks.as_strided(values[offset:], size, steps)
    made: Any = from_numpy(view)
    if dtype is bfloat16:
        return made.view(bfloat16)
    return made.requires_grad_() if requires_grad and dtype.itemsize > 2 else made


def _typed_tensor(
    storage: Any,
    offset: int,
    size: Any,
    stride: Any,
    requires_grad: bool,
    hooks: Any,
    dtype: Any,
    *more: Any,
) -> Any:
    """A tensor on a storage of bytes, with a given dtype."""
    stored = np.dtype("int16" if dtype is bfloat16 else dtype.name)
    count = storage.values.size // stored.itemsize
    values = storage.values[: count * stored.itemsize].view(stored)
    return _tensor(_Storage(values, dtype), offset, size, stride, requires_grad)


def _parameter(data: Any, requires_grad: bool, *more: Any) -> Any:
    from minigrad.nn import Parameter

    return Parameter(data.detach(), requires_grad)


# ---- NumPy's scalars and arrays ------------------------------------------------------------------


class _Array:
    """A NumPy array before its state is set."""

    values: Any = None

    def build(self, state: Any) -> Any:
        _, shape, dtype, fortran, content = state
        content = content.encode("latin1") if isinstance(content, str) else content
        values = np.frombuffer(content, dtype.values).copy()
        return values.reshape(shape, order="F" if fortran else "C")


class _NumpyDType:
    """A NumPy dtype. Only numbers and bools are allowed."""

    def __init__(self, name: str, *more: Any) -> None:
        self.values = np.dtype(str(name))
        if self.values.kind not in "biuf":
            raise FormatError(f"it holds an array of NumPy's dtype {name}")

    def build(self, state: Any) -> Any:
        if state[1] in ("<", ">"):
            self.values = self.values.newbyteorder(state[1])
        return self


def _scalar(dtype: Any, content: Any) -> Any:
    content = content.encode("latin1") if isinstance(content, str) else content
    return np.frombuffer(content, dtype.values)[0]


# ---- names ---------------------------------------------------------------------------------------


class _Name(str):
    """A name in a pickle. It can be called only if the table has it."""

    __slots__ = ()


_CALLED: dict[str, Callable[..., Any]] = {
    "collections.OrderedDict": OrderedDict,
    "torch._utils._rebuild_tensor": _tensor,
    "torch._utils._rebuild_tensor_v2": _tensor,
    "torch._utils._rebuild_tensor_v3": _typed_tensor,
    "torch._utils._rebuild_parameter": _parameter,
    "torch._utils._rebuild_parameter_with_state": _parameter,
    "torch.Size": lambda sizes: tuple(sizes),
    "torch.device": lambda *given: "cpu",
    "builtins.set": set,
    "builtins.frozenset": frozenset,
    "builtins.complex": complex,
    "_codecs.encode": lambda text, code: str(text).encode("latin1"),
    "numpy.dtype": _NumpyDType,
    "numpy.core.multiarray.scalar": _scalar,
    "numpy.core.multiarray._reconstruct": lambda *given: _Array(),
}


_CLASSES = {"numpy.ndarray", "torch.storage.UntypedStorage"} | {f"torch.{n}" for n in _STORAGES}


def _named(module: str, name: str) -> Any:
    """The object with a name in a pickle: a dtype, a storage class, or an allowed function."""
    if module == "torch" and name in by_name:
        return by_name[name]
    old = {"__builtin__": "builtins", "numpy._core.multiarray": "numpy.core.multiarray"}
    full = f"{old.get(module, module)}.{name}"
    if full not in _CALLED and full not in _CLASSES:
        raise FormatError(
            f"it holds an object of {full}. Tensors, numbers, strings and containers are read: "
            "with PyTorch, save model.state_dict() in place of the model"
        )
    return _Name(full)


def _called(function: Any, given: Any) -> Any:
    if not isinstance(function, _Name) or function not in _CALLED:
        raise FormatError("damaged: it calls what is no function")
    return _CALLED[function](*given)


# ---- the machine ---------------------------------------------------------------------------------

_MARK = object()
_CONSTANTS: dict[str, Callable[[], Any]] = {
    "NONE": lambda: None,
    "NEWTRUE": lambda: True,
    "NEWFALSE": lambda: False,
    "EMPTY_DICT": dict,
    "EMPTY_LIST": list,
    "EMPTY_TUPLE": tuple,
    "EMPTY_SET": set,
    "MARK": lambda: _MARK,
}
_VALUES = {
    "INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT",
    "UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8",
    "STRING", "BINSTRING", "SHORT_BINSTRING", "BINBYTES", "SHORT_BINBYTES", "BINBYTES8",
}  # fmt: skip
_PASSED = {"PROTO", "FRAME", "STOP"}
_TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}


class _Machine:
    """Machine that runs a pickle's opcodes with a stack and a memo, as documented in ``pickle``."""

    def __init__(self, storage: Callable[[Any], Any]) -> None:
        self._storage = storage
        self._stack: list[Any] = []
        self._memo: dict[int, Any] = {}

    def run(self, content: bytes) -> Any:
        """Run the pickle, and return its object."""
        for opcode, argument, _ in pickletools.genops(io.BytesIO(content)):
            self._step(opcode.name, argument)
        (found,) = self._stack
        return found

    def _step(self, name: str, argument: Any) -> None:
        stack = self._stack
        if name in _VALUES:
            stack.append(argument)
        elif name in _CONSTANTS:
            stack.append(_CONSTANTS[name]())
        elif name in _TUPLES:
            count = _TUPLES[name]
            stack[-count:] = [tuple(stack[-count:])]
        elif name not in _PASSED:
            step = getattr(self, f"_{name.lower()}", None)
            if step is None:
                raise FormatError(
                    f"its pickle uses {name}, which tensors and containers do not need"
                )
            step(argument)

    def _since_mark(self) -> list[Any]:
        """Pop the values that were pushed since the last mark, and the mark."""
        place = max(k for k, x in enumerate(self._stack) if x is _MARK)
        found = self._stack[place + 1 :]
        del self._stack[place:]
        return found

    def _tuple(self, _: Any) -> None:
        self._stack.append(tuple(self._since_mark()))

    def _list(self, _: Any) -> None:
        self._stack.append(self._since_mark())

    def _dict(self, _: Any) -> None:
        items = self._since_mark()
        self._stack.append(dict(zip(items[::2], items[1::2], strict=True)))

    def _append(self, _: Any) -> None:
        value = self._stack.pop()
        self._stack[-1].append(value)

    def _appends(self, _: Any) -> None:
        self._stack_top_after(lambda top, items: top.extend(items))

    def _additems(self, _: Any) -> None:
        self._stack_top_after(lambda top, items: top.update(items))

    def _setitem(self, _: Any) -> None:
        key, value = self._stack[-2:]
        del self._stack[-2:]
        _set(self._stack[-1], [key, value])

    def _setitems(self, _: Any) -> None:
        self._stack_top_after(_set)

    def _stack_top_after(self, change: Callable[[Any, list[Any]], Any]) -> None:
        items = self._since_mark()
        change(self._stack[-1], items)

    def _put(self, place: Any) -> None:
        self._memo[int(place)] = self._stack[-1]

    _binput = _long_binput = _put

    def _memoize(self, _: Any) -> None:
        self._memo[len(self._memo)] = self._stack[-1]

    def _get(self, place: Any) -> None:
        self._stack.append(self._memo[int(place)])

    _binget = _long_binget = _get

    def _pop(self, _: Any) -> None:
        self._stack.pop()

    def _global(self, argument: str) -> None:
        module, name = argument.split(" ", 1)
        self._stack.append(_named(module, name))

    def _stack_global(self, _: Any) -> None:
        module, name = self._stack[-2:]
        self._stack[-2:] = [_named(module, name)]

    def _binpersid(self, _: Any) -> None:
        self._stack.append(self._storage(self._stack.pop()))

    def _reduce(self, _: Any) -> None:
        given = self._stack.pop()
        self._stack[-1] = _called(self._stack[-1], given)

    _newobj = _reduce

    def _build(self, _: Any) -> None:
        state = self._stack.pop()
        at = self._stack[-1]
        if isinstance(at, (_Array, _NumpyDType)):
            made = at.build(state)
            self._stack[-1] = made
            self._memo.update({k: made for k, x in self._memo.items() if x is at})
        elif not isinstance(at, (OrderedDict, TensorBase)):
            raise FormatError(f"it holds an object of {type(at).__name__} with a state of its own")


def _set(to: Any, items: list[Any]) -> None:
    to.update(zip(items[::2], items[1::2], strict=True))
