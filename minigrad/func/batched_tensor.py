"""Batched tensors: all slices of a vmap in one tensor, which shows the shape of one.

A BatchedTensor holds a *physical* tensor, whose first dimension is the batch. It shows the dtype,
the edge and the other dimensions of that. It has no array: ``_h`` is a BatchedArray, which no
kernel takes, so no code can use the physical shape by mistake.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from minigrad import functions as f
from minigrad._tensor import Tensor
from minigrad._tensor.inplace import check_writable, shows_tracked, update
from minigrad.functions import creation
from minigrad.functions.operands import value_for
from minigrad.runtime.batched import BatchedArray, BatchedOperandError, BatchedValueError, running
from minigrad.runtime.native import call, kernels
from minigrad.runtime.size import Size
from minigrad.tape.grad_mode import mode, no_grad_scopes
from minigrad.tape.node import LEAF
from minigrad.tape.tensor_base import TensorBase, wrap

__all__ = ["BatchedTensor", "Level", "level_of", "no_value", "of_all_slices", "write_error"]

_numbers = itertools.count()


class Level:
    """One vmap: the size of its batch. An inner level has a higher number.

    It runs from ``begin`` on until ``alive`` becomes false, which is one store. The next vmap
    removes from the lists of levels whatever an interrupt left there.

    A ``quiet`` one is nobody's vmap: no warning says that an operation loops over its slices.
    """

    __slots__ = ("alive", "number", "quiet", "randomness", "size")

    def __init__(self, size: int, randomness: str = "error", quiet: bool = False) -> None:
        self.size = size
        self.randomness = randomness
        self.quiet = quiet
        self.number = next(_numbers)
        self.alive = True

    def begin(self) -> None:
        """Run from here on."""
        _forget_ended()
        running.append(self)
        _levels().append(self)

    def end(self) -> None:
        """No tensor of this level can be used from here on."""
        self.alive = False
        _forget_ended()


_own = threading.local()


def _levels() -> list[Level]:
    levels: list[Level] = _own.__dict__.setdefault("levels", [])
    return levels


def levels_of_thread() -> list[Level]:
    """The vmaps in which this thread is, from the outermost on."""
    return [level for level in _levels() if level.alive]


def _forget_ended() -> None:
    for levels in (running, _levels()):
        for level in [level for level in levels if not level.alive]:
            with suppress(ValueError):  # another thread did so
                levels.remove(level)


def no_value(op: str) -> BatchedValueError:
    """The error of a question that has one answer for each slice."""
    return BatchedValueError(
        f"[{op}] in vmap this tensor stands for all slices and has a value for each: choose with "
        'where(), or call vmap with fallback="loop"'
    )


def write_error(op: str, shape: Any, value: Any) -> RuntimeError:
    """The error of a write of one value for each slice into memory that they share."""
    return RuntimeError(
        f"[{op}] a value of shape {tuple(value)} that vmap has for each slice cannot be written "
        f"into a tensor of shape {tuple(shape)} that all slices share: use an operation that "
        "returns a new tensor, or make the target of a batched one, as in zeros_like(x)"
    )


class BatchedTensor(Tensor):
    """All slices of a running vmap; see the top of this module."""

    __slots__ = ("_level", "_physical")

    _level: Level
    _physical: Any  # the tensor with all slices, the batch in front

    # ---- fields ----

    @property
    def _h(self) -> Any:  # type: ignore[override]
        _check_alive(self._level)
        return BatchedArray(self._level, self._physical._h)

    @property
    def _edge(self) -> Any:
        return self._physical._edge

    @_edge.setter
    def _edge(self, edge: Any) -> None:
        if edge is not None and edge is not LEAF:
            raise BatchedOperandError("[vmap] a batched tensor has no node of its own")
        self._physical._edge = edge

    def detach(self) -> Tensor:
        """The same memory, without a history."""
        return made(self._level, self._physical.detach())

    def __repr__(self) -> str:
        slices = f"one of {self._level.size} slices"
        return f"tensor(..., shape={tuple(self.shape)}, dtype={self.dtype}, {slices})"

    def __format__(self, spec: str) -> str:
        return format(repr(self), spec)

    # ---- writes ----

    def __setitem__(self, index: Any, value: Any) -> None:
        source = value_for("index assignment", self, value)
        _check_levels("index assignment", self, (index, source))
        physical = self._physical
        items = index if isinstance(index, tuple) else (index,)
        if all(item is None or item is ... or type(item) in (int, slice) for item in items):
            part = _shape_only(self)[index]
            source = _with_dims(source, part.ndim, self._level)
            whole = slice(None), *items
            physical[whole] = source
            return
        for place in range(self._level.size):
            at = tuple([_slice_of(item, self._level, place) for item in items])
            row = physical.select(0, place)
            row[at if isinstance(index, tuple) else at[0]] = _slice_of(source, self._level, place)

    def copy_(self, other: Any, non_blocking: bool = False) -> Tensor:
        """Write ``other``, broadcast and cast, into this tensor; returns it."""
        self[...] = other
        return self

    def fill_(self, value: Any) -> Tensor:
        """Write one value everywhere; returns the tensor."""
        return self.copy_(value)

    def zero_(self) -> Tensor:
        """Write 0 everywhere; returns the tensor."""
        return self.copy_(0)

    def _write(self, op: str, result: Any) -> None:
        """Write the result of an operation on this tensor over it."""
        if result.shape != self.shape:
            raise ValueError(
                f"[{op}] in place, the result of shape {result.shape} does not fit {self.shape}"
            )
        write(op, self._physical, of_all_slices(result, self._level))


def made(level: Level, physical: Any) -> BatchedTensor:
    """A batched tensor around a physical one."""
    x = object.__new__(BatchedTensor)
    x._level = level
    x._physical = physical
    x._shape = Size(physical.shape[1:])
    x._grad = None
    return x


def write(op: str, x: Any, result: Any) -> None:
    """Write the result of an operation on ``x`` over it, whatever the levels of both."""
    if isinstance(x, BatchedTensor):
        x._write(op, result)
    elif level_of((result,)) is None:
        update(op, x, result)
    else:
        raise write_error(op, x.shape, result.shape)


def _check_alive(level: Level) -> None:
    if not level.alive:
        raise RuntimeError(
            "[vmap] a tensor of a vmap was used after it: return it from the function in place of "
            "keeping it"
        )


# ---- levels --------------------------------------------------------------------------------------


def tensors_in(values: Any) -> Any:
    """The batched tensors and arrays in nested lists, tuples and dicts."""
    for x in values:
        if type(x) is BatchedTensor or type(x) is BatchedArray:
            yield x
        elif isinstance(x, (list, tuple)):
            yield from tensors_in(x)
        elif isinstance(x, dict):
            yield from tensors_in(x.values())
        elif isinstance(x, slice):
            yield from tensors_in((x.start, x.stop, x.step))


def level_of(values: Any) -> Level | None:
    """The innermost level of the batched tensors among these."""
    found: Level | None = None
    for x in tensors_in(values):
        level: Level = x.level if type(x) is BatchedArray else x._level
        _check_alive(level)
        if found is None or level.number > found.number:
            found = level
    return found


def is_batched(x: Any, level: Level) -> bool:
    """Whether a tensor is one of this level."""
    return type(x) is BatchedTensor and x._level is level


def has_level(x: Any, level: Level) -> bool:
    """Whether a tensor has a value for each slice of this level, which may lie below others."""
    while type(x) is BatchedTensor:
        if x._level is level:
            return True
        x = x._physical
    return False


def of_all_slices(x: Any, level: Level) -> Any:
    """The physical tensor of a level: of a tensor that is not batched there, an expanded one."""
    return x._physical if is_batched(x, level) else f.expand(x, (level.size, *x.shape))


def cut(x: Any) -> Any:
    """A tensor with a value for each slice of the vmaps in which this thread is.

    Such a tensor is differentiated by slice by slice. One that has all levels comes back itself.
    """
    for level in levels_of_thread():
        if not has_level(x, level):
            x = _with_slices(x, level)
    return x


def _with_slices(x: Any, level: Level) -> Any:
    if type(x) is BatchedTensor and x._level.number > level.number:
        return made(x._level, _with_slices(x._physical, level))
    return made(level, f.expand(x, (level.size, *x.shape)))


def like(x: Any, other: Any) -> Any:
    """A new tensor with memory of its own for each slice that another one has."""
    levels = []
    while type(other) is BatchedTensor:
        levels.append(other._level)
        other = other._physical
    if not levels:
        return x
    made = x.detach()
    for level in reversed(levels):
        made = _with_slices(made, level)
    return f.clone(made).requires_grad_(x.requires_grad)


def every_slice(x: Any) -> Any:
    """The values of all slices in one ordinary tensor, for checks of arguments."""
    while type(x) is BatchedTensor:
        x = x._physical
    return x.detach()


def _slice_of(x: Any, level: Level, place: int) -> Any:
    if isinstance(x, (list, tuple)):
        return type(x)([_slice_of(item, level, place) for item in x])
    return x._physical.select(0, place) if is_batched(x, level) else x


def _shape_only(x: Any) -> Any:
    """A tensor of this shape, whatever its values."""
    return f.expand(creation.zeros((), dtype=x.dtype), x.shape)


def _with_dims(x: Any, ndim: int, level: Level) -> Any:
    """The physical tensor of a value that is to be broadcast to so many dimensions."""
    while x.ndim > ndim and x.shape[0] == 1:
        x = f.squeeze(x, 0)
    if not is_batched(x, level) or x.ndim >= ndim:
        return x._physical if is_batched(x, level) else x
    ones = (1,) * (ndim - x.ndim)
    return f.reshape(x._physical, (level.size, *ones, *x.shape))


def _check_levels(op: str, x: BatchedTensor, others: Any) -> None:
    """Refuse to write what only an inner vmap has for each slice."""
    for other in tensors_in(others):
        level = level_of((other,))
        own = level_of((x,))
        if level is not None and (own is None or level.number > own.number):
            raise write_error(op, x.shape, other.shape)


# ---- methods that a batched tensor has in another way --------------------------------------------

_ONE_VALUE = """
item tolist numpy __bool__ __int__ __float__ __complex__ __index__ __array__ __dlpack__ is_nonzero
data_ptr __reduce__ __deepcopy__ __copy__ __contains__
"""
_NOT_HERE = {
    "backward": "take the gradient in vmap by mg.func.grad, or call backward on what vmap returns",
    "register_hook": "register it on a tensor outside of vmap",
    "register_post_accumulate_grad_hook": "register it on a tensor outside of vmap",
    "retain_grad": "take the gradient by mg.func.grad",
    "resize_": "use reshape",
    "detach_": "use detach()",
    "set_": "use copy_()",
}
_RESHAPED = "squeeze_ unsqueeze_ t_ transpose_ swapaxes_ swapdims_"
_RANDOM = "uniform_ normal_ bernoulli_ exponential_ random_ geometric_ log_normal_ cauchy_"


def _without_value(name: str) -> Callable[..., Any]:
    def method(self: BatchedTensor, *args: Any, **kwargs: Any) -> Any:
        raise no_value(name.strip("_"))

    return method


def _refused(name: str, way_out: str) -> Callable[..., Any]:
    def method(self: BatchedTensor, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(f"[{name}] not in vmap, of a tensor that it cuts into slices: {way_out}")

    return method


def _in_place(name: str) -> Callable[..., Any]:
    """The method that writes an operation's result over its tensor."""

    def method(self: BatchedTensor, *args: Any, **kwargs: Any) -> Any:
        function = _function(name)
        _check_levels(name, self, (args, kwargs))
        target = self._physical
        before: Any = self
        tracked = any(x._edge is not None for x in (self, *_tensors(args, kwargs)))
        if (tracked or shows_tracked(target)) and not (no_grad_scopes and not mode.enabled):
            check_all_writable(name, target)
            copy = wrap(call(kernels.copy, target._h), target._edge)  # what the graph may keep
            before = made(self._level, copy)
            args = tuple([before if x is self else x for x in args])
            kwargs = {key: before if x is self else x for key, x in kwargs.items()}
        result = function(before, *args, **kwargs)
        self._write(name, result)
        return self

    return method


def _tensors(args: Any, kwargs: Any) -> list[Any]:
    return [x for x in (*args, *kwargs.values()) if isinstance(x, TensorBase)]


def check_all_writable(op: str, x: Any) -> None:
    """Refuse to write what the tape could not follow, of the tensor with all slices."""
    while type(x) is BatchedTensor:
        x = x._physical
    check_writable(op, x)


def _function(name: str) -> Callable[..., Any]:
    """The function of which a method writes the result over its tensor."""
    found: Callable[..., Any] = getattr(f, name[:-1])
    return found


def _new(name: str) -> Callable[..., Any]:
    """The method that makes a tensor of this dtype: one for each slice."""
    of_one = getattr(Tensor, name)

    def method(self: BatchedTensor, *args: Any, **kwargs: Any) -> Any:
        return like(of_one(self, *args, **kwargs), self)

    return method


def _augmented(name: str, in_place: str) -> Callable[..., Any]:
    def method(self: BatchedTensor, other: Any) -> Any:
        return getattr(self, in_place)(other)

    return method


_AUGMENTED = {
    "add": "add_",
    "sub": "sub_",
    "mul": "mul_",
    "truediv": "div_",
    "floordiv": "floor_divide_",
    "mod": "remainder_",
    "pow": "pow_",
    "and": "bitwise_and_",
    "or": "bitwise_or_",
    "xor": "bitwise_xor_",
    "lshift": "bitwise_left_shift_",
    "rshift": "bitwise_right_shift_",
    "matmul": "matmul_",
}


def _install() -> None:
    own = vars(BatchedTensor)
    for name in _ONE_VALUE.split():
        setattr(BatchedTensor, name, _without_value(name))
    for name, way_out in _NOT_HERE.items():
        setattr(BatchedTensor, name, _refused(name, way_out))
    for name in _RESHAPED.split():
        setattr(BatchedTensor, name, _refused(name, f"use {name[:-1]}()"))
    for name in _RANDOM.split():
        setattr(BatchedTensor, name, _refused(name, "draw a new tensor"))
    names = [n for n in dir(Tensor) if n.endswith("_") and not n.startswith("_") and n not in own]
    keep = ("requires_grad_", "share_memory_", "accumulate_")
    for name in (*names, "matmul_"):
        if name == "fill_diagonal_":
            setattr(BatchedTensor, name, _refused(name, "write into diagonal()"))
        elif name not in keep and name not in own:
            setattr(BatchedTensor, name, _in_place(name))
    for name in ("new_zeros", "new_ones", "new_full", "new_empty"):
        setattr(BatchedTensor, name, _new(name))
    fields = (
        ("data", BatchedTensor.detach, "write by copy_()"),
        ("grad", lambda self: None, "take gradients by mg.func.grad"),
    )
    for name, get, way_out in fields:
        setattr(BatchedTensor, name, property(get, _refused(name, way_out)))
    for name, method in _AUGMENTED.items():
        setattr(BatchedTensor, f"__i{name}__", _augmented(name, method))


_install()
BatchedTensor.__name__ = BatchedTensor.__qualname__ = "Tensor"  # users see a Tensor
