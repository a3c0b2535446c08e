"""Hooks of saved tensors: what the tape saves is packed at once, and unpacked by the backward pass.

As long as such hooks are on, the tape tells of each result that it records. What the node saved is
then exchanged for what ``pack`` makes of it. The node's rule gets arrays that ``unpack`` gives.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from minigrad.functions.grad_modes import no_grad
from minigrad.ops.saved_values import SavedValues
from minigrad.runtime.dtypes import bfloat16, by_code
from minigrad.runtime.errors import freed_error
from minigrad.runtime.lazy_numpy import is_numpys, np
from minigrad.runtime.native import Array, Saved, call, kernels, save, save_as_is, saved_handle
from minigrad.runtime.numpy_view import numpy_view
from minigrad.tape.node import Node, record
from minigrad.tape.tensor_base import TensorBase, wrap
from minigrad.tape.vjp import rules
from minigrad.tape.watching import Watcher

__all__ = [
    "Packed",
    "PackedArray",
    "PackedOp",
    "PackedValues",
    "packed_array",
    "save_on_cpu",
    "saved_tensors_hooks",
    "whole_node",
]

_OP = "saved_tensors_hooks"


class _Scope:
    """A part of a thread's run in which hooks are on; or none, while one of them runs."""

    __slots__ = ("hooks", "open")

    def __init__(self, hooks: saved_tensors_hooks | None) -> None:
        self.hooks, self.open = hooks, True


class _Here(threading.local):
    """The scopes of this thread, innermost last. Another thread may have closed some of them."""

    def __init__(self) -> None:
        self.scopes: list[_Scope] = []


_here = _Here()


class saved_tensors_hooks(Watcher):  # noqa: N801 - PyTorch's name
    """Context in which ``pack(tensor)`` takes the place of each tensor that the tape saves.

    ``pack`` is called when an operation of this thread saves a tensor, and may return anything.
    ``unpack`` gets that in backward, and returns a tensor of the same shape and dtype. A leaf comes
    to ``pack`` as it is, other tensors without their history. The innermost hooks count. Neither
    function is recorded.

    A later write into the memory of a tensor or NumPy array that ``pack`` returns, alone or in
    tuples, lists and dicts, is a RuntimeError in backward. It is not noticed in other objects.

    Raises TypeError where one of both is no function, and in backward where ``unpack`` returns no
    tensor or another dtype. Another shape is a ValueError.

    >>> import minigrad as mg
    >>> x = mg.tensor([1.0, 2.0], requires_grad=True)
    >>> with mg.autograd.graph.saved_tensors_hooks(lambda t: t.half(), lambda t: t.float()):
    ...     y = (x * x).sum()
    >>> y.backward()
    >>> x.grad
    tensor([2., 4.])
    """

    def __init__(self, pack_hook: Callable[[Any], Any], unpack_hook: Callable[[Any], Any]) -> None:
        for hook in (pack_hook, unpack_hook):
            if not callable(hook):
                raise TypeError(f"[{_OP}] a hook is a function, not {type(hook).__name__}")
        self.pack, self.unpack = pack_hook, unpack_hook
        self._scopes: list[_Scope] = []  # that are open, of all threads

    def __enter__(self) -> None:
        _innermost()  # which removes closed scopes
        scope = _Scope(self)
        self._scopes.append(scope)
        _here.scopes.append(scope)
        self.begin()

    def __exit__(self, *error: object) -> None:
        # A generator may be closed by another thread than the one that it ran in.
        here = [scope for scope in _here.scopes if scope in self._scopes]
        scope = (here or self._scopes)[-1]
        scope.open = False
        self._scopes.remove(scope)
        self.end()

    def on_record(self, out: TensorBase) -> None:
        """Exchange what the node saved."""
        if _innermost() is not self:
            return
        node = out._edge
        leaves = [p for p in node.parents or () if isinstance(p, TensorBase)]
        if type(node.saved) is Saved:
            node.saved = Packed(self, node.saved, leaves, node.op.name)
            node.op = PackedOp(node.op, (out.shape, out.dtype))
        if any(type(x) is SavedValues for x in node.args):
            node.args = tuple(
                [
                    PackedValues(self, x, leaves, node.op.name) if type(x) is SavedValues else x
                    for x in node.args
                ]
            )


def save_on_cpu(
    pin_memory: bool = False, device_type: str = "cuda"
) -> AbstractContextManager[None]:
    """A context that changes nothing: what the tape saves is in the CPU's memory anyway.

    >>> import minigrad as mg
    >>> with mg.autograd.graph.save_on_cpu(pin_memory=True):
    ...     y = mg.ones(2, requires_grad=True).exp()
    """
    return nullcontext()


def _innermost() -> saved_tensors_hooks | None:
    scopes = _here.scopes
    while scopes and not scopes[-1].open:
        scopes.pop()
    return scopes[-1].hooks if scopes else None


@contextmanager
def _unhooked() -> Iterator[None]:
    """Operations of a hook are neither recorded nor packed."""
    scope = _Scope(None)
    _here.scopes.append(scope)
    try:
        with no_grad():
            yield
    finally:
        scope.open = False


def packed_array(x: TensorBase, op: str) -> PackedArray | None:
    """A tensor as the hooks of this thread pack it, or None without hooks."""
    hooks = _innermost()
    if hooks is None:
        return None
    return PackedArray(hooks, x._h, [x] if x.is_leaf else [], op)  # type: ignore[attr-defined]


class PackedArray:
    """An array that hooks packed."""

    def __init__(
        self, hooks: saved_tensors_hooks, array: Array, leaves: Sequence[Any], op: str
    ) -> None:
        self.hooks, self.op, self.shape, self.dtype = hooks, op, array.shape, array.dtype
        given = [x for x in leaves if _is(x._h, array)]
        with _unhooked():
            self.packed = hooks.pack(given[0] if given else wrap(call(kernels.view_alias, array)))
        held = any(_shows(x, array) for x in _items(self.packed))
        self.pin = save_as_is(array) if held else None

    def buffer(self, place: int) -> int:
        """The address of the memory that is saved: none."""
        return 0

    def array(self) -> Array:
        """The array that is unpacked."""
        if self.pin is not None:
            saved_handle(self.pin, 0, self.op)
        with _unhooked():
            x = self.hooks.unpack(self.packed)
        if not isinstance(x, TensorBase):
            raise TypeError(
                f"[{_OP}] unpack returned {type(x).__name__} for a tensor that {self.op} saved, "
                "not a Tensor"
            )
        if x.shape != self.shape:
            raise ValueError(
                f"[{_OP}] unpack returned shape {x.shape} for a tensor of shape {self.shape} that "
                f"{self.op} saved"
            )
        if x._h.dtype != self.dtype:
            dtype = by_code[self.dtype].name
            raise TypeError(
                f"[{_OP}] unpack returned {x.dtype.name} for a {dtype} tensor that {self.op} "
                f"saved: convert it with .to(mg.{dtype})"
            )
        return x._h


def _is(x: Array, array: Array) -> bool:
    """Whether both show the same elements of the same memory in the same order."""
    return x.alike(array) and (x.data, x.strides) == (array.data, array.strides)


def _items(packed: Any) -> Iterator[Any]:
    """The packed value, or the values in tuples, lists and dicts of it."""
    if isinstance(packed, dict):
        packed = list(packed.values())
    if isinstance(packed, (tuple, list)):
        for x in packed:
            yield from _items(x)
    else:
        yield packed


def _shows(x: Any, array: Array) -> bool:
    """Whether x is a tensor, or an array of NumPy's, in the memory of this one."""
    if isinstance(x, TensorBase):
        return bool(x._h.buffer == array.buffer)
    if not is_numpys("ndarray", x) or array.dtype == bfloat16.code:
        return False
    return bool(np.may_share_memory(x, np.asarray(numpy_view(array))))


class Packed:
    """Up to three arrays that hooks packed."""

    def __init__(
        self, hooks: saved_tensors_hooks, saved: Saved, leaves: Sequence[Any], op: str
    ) -> None:
        arrays = [saved_handle(saved, k) if saved.buffer(k) else None for k in range(3)]
        self.arrays = [None if x is None else PackedArray(hooks, x, leaves, op) for x in arrays]

    def saved(self) -> Saved:
        """The arrays that are unpacked, as the tape saves them."""
        return save(*[None if x is None else x.array() for x in self.arrays])


class PackedOp:
    """The operation of a node whose saved arrays were packed: ``node.saved`` is a :class:`Packed`.

    Once a graph was made of its gradients, the node holds the arrays themselves.
    """

    jvp = None  # a row's own formulas want its arrays: forward mode transposes graph_vjp

    def __init__(self, op: Any, meta: Any) -> None:
        self.op = op
        self.meta = meta  # shape and dtype of the output, which forward mode asks for

    def __getattr__(self, name: str) -> Any:
        return getattr(self.op, name)

    def vjp(self, node: Node, g: Any) -> Any:
        """The rule that records nothing."""
        return rules(self.op)[0](whole_node(self.op, node), g)

    def graph_vjp(self, node: Node, g: Any) -> Any:
        """The rule that leaves a graph."""
        if type(node.saved) is Packed:
            node.saved = node.saved.saved()
        return rules(self.op)[1](node, g)


def whole_node(op: Any, node: Node) -> Node:
    """A node of this operation like another one, with the arrays that this one has packed."""
    saved, args, parents = node.saved, node.args, node.parents
    if parents is None:
        raise freed_error(node)
    if type(saved) is Packed:
        saved = saved.saved()
    return record(op, saved, args, node.input_meta, *parents)


class PackedValues:
    """What hooks made of :class:`SavedValues`, with the same methods for rules."""

    def __init__(
        self, hooks: saved_tensors_hooks, values: SavedValues, leaves: Sequence[Any], op: str
    ) -> None:
        self._packed = Packed(hooks, values._saved, leaves, op)
        self._values = values
        values._saved = None

    def _whole(self) -> SavedValues:
        return self._values.like(self._packed.saved(), self._values.edge)

    def handles(self, op: str) -> tuple[Array | None, ...]:
        """The operand or None, and what was made."""
        return self._whole().handles(op)

    def operand(self, op: str) -> Any:
        """The operand for a formula."""
        return self._whole().operand(op)
