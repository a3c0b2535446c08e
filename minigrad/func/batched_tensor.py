"""Batched tensors: all slices of a vmap in one tensor, which shows the shape of one.

A BatchedTensor holds a *physical* tensor, whose first dimension is the batch. It shows the dtype,
the edge and the other dimensions of that. It has no array: ``_h`` is a BatchedArray, which no
kernel takes, so no code can use the physical shape by mistake. A *shared* one holds a tensor that
all slices have in common, without a batch, until a gradient by it is asked for.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
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
from minigrad.tape.node import LEAF, Node, record
from minigrad.tape.tensor_base import TensorBase, wrap

__all__ = ["BatchedTensor", "Level", "level_of", "no_value", "of_all_slices", "write_error"]

_numbers = itertools.count()


class Level:
    """One running vmap: the size of its batch. An inner level has a higher number."""

    __slots__ = ("alive", "leaves", "number", "size")

    def __init__(self, size: int) -> None:
        self.size = size
        self.number = next(_numbers)
        self.alive = True
        self.leaves: list[BatchedTensor] = []
        running.append(self)

    def end(self) -> None:
        """No tensor of this level can be used from here on."""
        self.alive = False
        running.remove(self)
        for leaf in self.leaves:
            leaf._physical = leaf._physical.detach()  # it and its node hold each other


class _IntoLeaf:
    """The node by which the gradient of all slices comes to a batched leaf."""

    name = "batched leaf"

    @staticmethod
    def vjp(node: Node, g: Any) -> tuple[Any]:
        return (g,)

    graph_vjp = vjp


_INTO_LEAF = _IntoLeaf()


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

    __slots__ = ("_is_leaf", "_level", "_physical", "_shared")

    _level: Level
    _physical: Any  # the batch in front; for a shared one the tensor that all slices have
    _shared: bool
    _is_leaf: bool

    # ---- fields ----

    @property
    def _h(self) -> Any:  # type: ignore[override]
        _check_alive(self._level)
        return BatchedArray(self._level, self._physical._h, self._shared)

    @property
    def _edge(self) -> Any:
        return LEAF if self._is_leaf else self._physical._edge

    @_edge.setter
    def _edge(self, edge: Any) -> None:
        if edge is not None and edge is not LEAF:
            raise BatchedOperandError("[vmap] a batched tensor has no node of its own")
        _check_alive(self._level)
        values = of_all_slices(self, self._level)
        node = None if edge is None else record(_INTO_LEAF, None, (), None, self)
        self._is_leaf = edge is LEAF
        self._shared = False
        self._physical = wrap(values._h, node)
        if node is not None:
            self._level.leaves.append(self)

    def detach(self) -> Tensor:
        """The same memory, without a history."""
        return made(self._level, self._physical.detach(), self._shared)

    def __repr__(self) -> str:
        kind = "shared by all slices" if self._shared else f"one of {self._level.size} slices"
        return f"tensor(..., shape={tuple(self.shape)}, dtype={self.dtype}, {kind})"

    def __format__(self, spec: str) -> str:
        return format(repr(self), spec)

    # ---- writes ----

    def __setitem__(self, index: Any, value: Any) -> None:
        source = value_for("index assignment", self, value)
        _check_levels("index assignment", self, (index, source))
        if self._shared:
            self._physical[_whole(index)] = _whole(source)
            return
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
        if self._shared:
            if level_of((result,)) is self._level:
                raise write_error(op, self.shape, result.shape)
            write(op, self._physical, _whole(result))
        else:
            write(op, self._physical, of_all_slices(result, self._level))


def made(level: Level, physical: Any, shared: bool = False) -> BatchedTensor:
    """A batched tensor around a physical one."""
    x = object.__new__(BatchedTensor)
    x._level = level
    x._physical = physical
    x._shared = shared
    x._is_leaf = False
    x._shape = Size(physical.shape if shared else physical.shape[1:])
    x._grad = None
    return x


def write(op: str, x: Any, result: Any) -> None:
    """Write the result of an operation on ``x`` over it, whatever the levels of both."""
    if isinstance(x, BatchedTensor):
        x._write(op, result)
    else:
        update(op, x, result)


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


def level_of(values: Any, shared: bool = False) -> Level | None:
    """The innermost level of which a tensor among these is batched; or, also, shared."""
    found: Level | None = None
    for x in tensors_in(values):
        is_shared = x.shared if type(x) is BatchedArray else x._shared
        level = x.level if type(x) is BatchedArray else x._level
        _check_alive(level)
        if (shared or not is_shared) and (found is None or level.number > found.number):
            found = level
        if is_shared:
            inner = level_of((x.held if type(x) is BatchedArray else x._physical,), shared)
            if inner is not None and (found is None or inner.number > found.number):
                found = inner
    return found


def is_batched(x: Any, level: Level) -> bool:
    """Whether a tensor has a value for each slice of this level."""
    return type(x) is BatchedTensor and x._level is level and not x._shared


def unshared(x: Any) -> Any:
    """What all slices have in common, where this is it; anything else as it is."""
    while type(x) is BatchedTensor and x._shared:
        x = x._physical
    while type(x) is BatchedArray and x.shared:
        x = x.held
    return x


def of_all_slices(x: Any, level: Level) -> Any:
    """The physical tensor of a level: of a tensor that is not batched there, an expanded one."""
    if is_batched(x, level):
        return x._physical
    x = unshared(x)
    return f.expand(x, (level.size, *x.shape))


def every_slice(x: Any) -> Any:
    """The values of all slices in one ordinary tensor, for checks of arguments."""
    while type(x) is BatchedTensor:
        x = x._physical
    return x.detach()


def _whole(x: Any) -> Any:
    """Without shared tensors, in an index too."""
    if isinstance(x, tuple):
        return tuple([_whole(item) for item in x])
    return unshared(x)


def _slice_of(x: Any, level: Level, place: int) -> Any:
    if isinstance(x, (list, tuple)):
        return type(x)([_slice_of(item, level, place) for item in x])
    return x._physical.select(0, place) if is_batched(x, level) else unshared(x)


def _shape_only(x: Any) -> Any:
    """A tensor of this shape, whatever its values."""
    return f.expand(creation.zeros((), dtype=x.dtype), x.shape)


def _with_dims(x: Any, ndim: int, level: Level) -> Any:
    """The physical tensor of a value that is to be broadcast to so many dimensions."""
    while x.ndim > ndim and x.shape[0] == 1:
        x = f.squeeze(x, 0)
    if not is_batched(x, level) or x.ndim >= ndim:
        return x._physical if is_batched(x, level) else unshared(x)
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
            before = made(self._level, copy, self._shared)
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
    for name, method in _AUGMENTED.items():
        setattr(BatchedTensor, f"__i{name}__", _augmented(name, method))


_install()
BatchedTensor.__name__ = BatchedTensor.__qualname__ = "Tensor"  # users see a Tensor
