"""The graph as programs look at it: a node's neighbours, hooks, metadata and saved tensors.

These are the methods of :class:`minigrad.tape.Node` that no backward needs. They are loaded when
one of them is first called.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakKeyDictionary, WeakValueDictionary

from minigrad.autograd.bundle import Bundle
from minigrad.autograd.graph_memory import source_lines
from minigrad.autograd.saved_tensors import (
    Packed,
    PackedOp,
    save_on_cpu,
    saved_tensors_hooks,
    whole_node,
)
from minigrad.functions.grad_modes import no_grad
from minigrad.functions.shaping import clone
from minigrad.ops.pointwise import ADD, MUL
from minigrad.ops.table import Row
from minigrad.runtime.errors import forward_hook_error, freed_error
from minigrad.tape.engine import off_tape, unbroadcast
from minigrad.tape.hooks import Removable
from minigrad.tape.node import Gradient, Node
from minigrad.tape.slice_grad import SliceGrad
from minigrad.tape.tensor_base import TensorBase, wrap
from minigrad.tape.vjp import rules, unpack
from minigrad.tape.watching import WatchedOp

__all__ = [
    "AccumulateGrad",
    "metadata",
    "next_functions",
    "register_hook",
    "register_prehook",
    "save_on_cpu",
    "saved_tensors_hooks",
    "saved_value",
    "source_lines",
]

# ---- neighbours ----------------------------------------------------------------------------------


class AccumulateGrad:
    """The end of the graph at a leaf: what comes here is added to ``variable.grad``."""

    __slots__ = ("__weakref__", "metadata", "variable")

    next_functions = ()

    def __init__(self, variable: TensorBase) -> None:
        self.variable = variable
        self.metadata: dict[Any, Any] = {}

    def name(self) -> str:
        """The kind of the node."""
        return "AccumulateGrad"

    def __repr__(self) -> str:
        return "<AccumulateGrad>"

    def register_prehook(self, hook: Callable[[tuple[Gradient]], Any]) -> Removable:
        """Call ``hook((gradient,))`` before the gradient is added; it may return another one."""
        _check_hook("register_prehook", hook)
        leaf: Any = self.variable

        def of_leaf(g: Gradient) -> Gradient | None:
            changed = _replaced("AccumulateGrad", hook((g,)), (g,))
            return changed[0]

        return leaf.register_hook(of_leaf)


# One for each leaf, as long as somebody holds it.
_ends: WeakValueDictionary[int, AccumulateGrad] = WeakValueDictionary()


def _end(leaf: TensorBase) -> AccumulateGrad:
    end = _ends.get(id(leaf))
    if end is None or end.variable is not leaf:
        end = _ends[id(leaf)] = AccumulateGrad(leaf)
    return end


def next_functions(node: Node) -> tuple[tuple[Node | AccumulateGrad | None, int], ...]:
    """Where each input came from: pairs of a node and 0, the place among its outputs.

    A leaf that requires grad is an :class:`AccumulateGrad` with the leaf as ``variable``. None
    stands for what needs no gradient; it comes second in sums and products of two, as in PyTorch
    where ``2 * x`` is x times 2. Empty once the graph was freed.
    """
    parents = _ordered(node, node.parents or ())
    return tuple([(_end(p) if isinstance(p, TensorBase) else p, 0) for p in parents])


def _swapped(node: Node) -> bool:
    """Does the second operand come first?"""
    parents = node.parents or ()
    return _plain(node.op) in (ADD, MUL) and parents[0] is None


def _ordered(node: Node, each: Sequence[Any]) -> Sequence[Any]:
    """One item for each input, in the order shown; a second call restores the order."""
    return each[::-1] if each and _swapped(node) else each


# ---- metadata and saved values -------------------------------------------------------------------

_metadata: WeakKeyDictionary[Node, dict[Any, Any]] = WeakKeyDictionary()


def metadata(node: Node) -> dict[Any, Any]:
    """A dict for what programs note of a node."""
    found = _metadata.get(node)
    if found is None:
        found = _metadata[node] = {}
    return found


def saved_value(node: Node, attribute: str) -> Any:
    """A tensor that was saved, with its history: PyTorch's ``_saved_self`` and its like.

    AttributeError where the operation saved no such tensor. RuntimeError where it was overwritten
    or the graph was freed.
    """
    row, parents = _plain(node.op), node.parents
    if parents is None:
        raise freed_error(node)
    saves = row.saves([p is not None for p in parents]) if type(row) is Row else ()
    operands = "ba" if _swapped(node) else "ab"
    names = {"_saved_self": "x" + operands[0], "_saved_other": operands[1], "_saved_result": "y"}
    for name in names[attribute]:
        if name in saves and type(node.saved) is Packed:
            found = unpack(row, whole_node(row, node), name)
            return wrap(found._h, node) if name == "y" else found
        if name in saves:
            return unpack(row, node, name)
    raise AttributeError(f"the node of {row.name!r} has no attribute {attribute!r}")


# ---- hooks ---------------------------------------------------------------------------------------


def register_hook(node: Node, hook: Callable[[Any, Any], Any]) -> Removable:
    """Call ``hook(grad_inputs, grad_outputs)`` once the node computed its inputs' gradients.

    Both are tuples, with None where there is no gradient. The tuple that the hook returns, unless
    that is None, takes the place of ``grad_inputs``. It gets copies: what it writes into them
    changes nothing. Returns what removes the hook, ``handle.remove()``.

    >>> import minigrad as mg
    >>> x = mg.tensor(3.0, requires_grad=True)
    >>> y = x * 2
    >>> handle = y.grad_fn.register_hook(lambda inputs, outputs: (inputs[0] * 10, None))
    >>> y.backward()
    >>> x.grad
    tensor(20.)
    """
    _check_hook("register_hook", hook)
    hooks = _hooked(node).after
    hooks.append(hook)
    return Removable(hooks, hook)


def register_prehook(node: Node, hook: Callable[[Any], Any]) -> Removable:
    """Call ``hook(grad_outputs)`` before the node computes its inputs' gradients.

    It gets a tuple of copies, and may return another tuple to take their place. Hooks of the
    result itself, ``y.register_hook``, come first.
    """
    _check_hook("register_prehook", hook)
    hooks = _hooked(node).before
    hooks.append(hook)
    return Removable(hooks, hook)


def _check_hook(op: str, hook: Any) -> None:
    if not callable(hook):
        raise TypeError(f"[{op}] a hook is a function, not {type(hook).__name__}")


class _HookedOp:
    """An operation on the tape with hooks before and after its rule; the ``op`` of a node."""

    lends = True  # an operation of the user's may be within, which gets a gradient of its own

    def __init__(self, op: Any) -> None:
        self.op = op
        self.name = op.name
        self.before: list[Callable[[Any], Any]] = []
        self.after: list[Callable[[Any, Any], Any]] = []

    @no_grad
    def vjp(self, node: Node, g: Any) -> list[Any]:
        return [off_tape(gi) for gi in self._run(node, off_tape(g), rules(self.op)[0])]

    def graph_vjp(self, node: Node, g: Any) -> list[Any]:
        return self._run(node, g, rules(self.op)[1])

    @property
    def jvp(self) -> Any:
        """The rule of forward mode; RuntimeError unless all hooks were removed."""
        if self.before or self.after:
            raise forward_hook_error(self.name)
        return None if type(self.op) is Row else getattr(self.op, "jvp", None)

    def _run(self, node: Node, g: Any, rule: Callable[[Node, Any], Any]) -> list[Any]:
        for before in tuple(self.before):
            shown = self._outputs(g)
            g = self._as_given(g, _replaced(self.name, before(_copies(shown)), shown))
        outputs = _copies(self._outputs(g)) if self.after else ()
        made = [_fitting(node, i, gi) for i, gi in enumerate(rule(node, g))]
        for after in tuple(self.after):
            inputs = _ordered(node, made)
            returned = _replaced(self.name, after(_copies(inputs), outputs), inputs)
            made = list(_ordered(node, returned))
        return made

    def _outputs(self, g: Any) -> list[Any]:
        """The gradient of each output: a Function may have several."""
        if type(g) is not Bundle:
            return [g]
        return [g.parts.get(k) for k in range(len(self.op.outputs))]

    def _as_given(self, g: Any, changed: Sequence[Any]) -> Any:
        """The gradients of the outputs in the form of ``g``."""
        if type(g) is Bundle:
            return Bundle({k: gk for k, gk in enumerate(changed) if gk is not None})
        if changed[0] is None:
            raise TypeError(f"[{self.name}] a hook returned None as gradient 0, not a Tensor")
        return changed[0]


def _plain(op: Any) -> Any:
    """The operation itself, of one with hooks or in a pass that is watched."""
    while type(op) in (_HookedOp, PackedOp, WatchedOp):
        op = op.op
    return op


def _hooked(node: Node) -> _HookedOp:
    """The holder of the hooks of a node, or of the Function that the node is one output of."""
    op, parents = _plain(node.op), node.parents
    if parents is None:
        raise RuntimeError(
            f"[register_hook] the graph was freed at {op.name!r}: no gradient comes to the node"
        )
    if hasattr(op, "place"):  # one of several outputs
        return _hooked(parents[0])
    holder = node.op.op if type(node.op) is WatchedOp else node.op
    if type(holder) is not _HookedOp:
        holder = node.op = _HookedOp(holder)
    return holder


def _fitting(node: Node, i: int, g: Any) -> Any:
    """The gradient of an input, in its shape and dtype, as one tensor."""
    if type(g) is SliceGrad:
        g = g.whole()
    if g is None or node.input_meta is None or type(g) is Bundle:
        return g
    return unbroadcast(g, node.input_meta[i])


def _copies(given: Sequence[Any]) -> tuple[Any, ...]:
    return tuple([clone(g) if isinstance(g, TensorBase) else g for g in given])  # type: ignore[arg-type]


def _replaced(name: str, returned: Any, before: Sequence[Any]) -> list[Any]:
    """A hook's result, or the gradient before it; TypeError or ValueError for what does not fit."""
    if returned is None:
        return list(before)
    if isinstance(returned, TensorBase):
        returned = (returned,)
    if not isinstance(returned, (tuple, list)):
        raise TypeError(
            f"[{name}] a hook returned {type(returned).__name__}, not a tuple of Tensors or None"
        )
    if len(returned) != len(before):
        raise ValueError(f"[{name}] a hook returned {len(returned)} gradients for {len(before)}")
    for k, (new, old) in enumerate(zip(returned, before, strict=True)):
        if new is None or type(old) is Bundle:
            continue
        if not isinstance(new, TensorBase):
            raise TypeError(
                f"[{name}] a hook returned {type(new).__name__} as gradient {k}, not a Tensor"
            )
        if old is not None and (new.shape != old.shape or new.dtype is not old.dtype):
            raise ValueError(
                f"[{name}] a hook returned {new.dtype.name} of shape {new.shape} as gradient {k}, "
                f"which is {old.dtype.name} of shape {old.shape}"
            )
    return list(returned)
