"""Runs a row of the op table: forward through the door, a node on the tape, and its VJP.

:class:`TensorBase` is what operations work on: a C array and its *edge* on the tape. The edge is None
for what needs no gradient, ``LEAF`` for a leaf that does, the node of a result, or, for a saved copy of
a leaf, that leaf.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from minigrad._c import NULL, Handle, call, lib, overwritten_at, save, saved_handle, shape_of
from minigrad._c import run as run_kernel
from minigrad.dtypes import DType, by_code
from minigrad.ops.table import PLACES, Row
from minigrad.tape import LEAF, Node, mode

if TYPE_CHECKING:
    from minigrad._tensor import Tensor

__all__ = ["TensorBase", "apply", "as_operand", "binary", "results_are", "unary", "vjp", "wrap", "write"]


class TensorBase:
    """A C array and its edge on the tape."""

    __slots__ = ("__weakref__", "_edge", "_h", "_shape", "grad")

    _h: Handle
    _edge: Any
    _shape: tuple[int, ...] | None
    grad: Any

    @property
    def shape(self) -> tuple[int, ...]:
        """The size of each dimension."""
        if self._shape is None:
            self._shape = shape_of(self._h)
        return self._shape

    @property
    def dtype(self) -> DType:
        """The element type."""
        return by_code[self._h.dtype]

    def apply_row(self, row: Row, *args: Any) -> Any:
        """A row of the table on this tensor: for rows that have no public name."""
        return apply(row, (self,), args)


_new = object.__new__
_result_type: Any = TensorBase
_T = TypeVar("_T", bound=type)


def results_are(cls: _T) -> _T:
    """Class decorator: operations return instances of this subclass of TensorBase."""
    global _result_type
    _result_type = cls
    return cls


def wrap(handle: Handle, edge: Any = None) -> Tensor:
    """A tensor around a C array."""
    out = _new(_result_type)
    out._h = handle
    out._edge = edge
    out._shape = None
    out.grad = None
    return out  # type: ignore[no-any-return]


# ---- numbers and arrays as operands --------------------------------------------------------------

_weak: dict[tuple[type, float], Handle] = {}  # the handles of plain numbers in recent use
_WEAK_LIMIT = 256
_INT64 = range(-(2**63), 2**63)


def weak_handle(value: float) -> Handle:
    """A 0-d array for a Python number, which takes on the dtype of what it meets."""
    key = (type(value), value)
    handle = _weak.get(key)
    if handle is None:
        if isinstance(value, bool):
            handle = call(lib.mg_weak_bool, value)
        elif isinstance(value, int):
            if value not in _INT64:
                raise OverflowError(f"{value} does not fit in int64; use a float")
            handle = call(lib.mg_weak_int, value)
        else:
            handle = call(lib.mg_weak_float, value)
        if value != 0:  # 0.0 and -0.0 are equal and yet differ
            if len(_weak) >= _WEAK_LIMIT:
                _weak.clear()
            _weak[key] = handle
    return handle


def as_operand(value: Any) -> Any:
    """A tensor, a Python or NumPy number, or anything NumPy reads as an array, as an operand.

    None for what none of these is.
    """
    if isinstance(value, TensorBase):
        return value
    if isinstance(value, (bool, int, float)):
        return wrap(weak_handle(value))
    import numpy as np

    if isinstance(value, np.generic):
        return as_operand(value.item())
    if isinstance(value, (np.ndarray, list, tuple)):
        from minigrad.creation import asarray

        return asarray(value)
    return None


def operand_error(name: str, value: object) -> TypeError:
    """Not something to compute with."""
    return TypeError(
        f"[{name}] expected a Tensor, a number or an array, not {type(value).__name__}"
    )


# ---- recording -----------------------------------------------------------------------------------


def _parents(inputs: Sequence[TensorBase]) -> tuple[Any, ...]:
    return tuple([x if x._edge is LEAF else x._edge for x in inputs])


def record(
    row: Row, handle: Handle, inputs: Sequence[TensorBase], args: tuple[Any, ...] = ()
) -> Tensor:
    """The result of a row as a tensor, with a node on the tape if an input needs a gradient."""
    out = wrap(handle)
    if mode.enabled and handle.dtype >= _FIRST_FLOAT:
        parents = _parents(inputs)
        for parent in parents:
            if parent is not None:
                break
        else:
            return out
        if row.wants_shape:
            args = (inputs[0].shape, *args)
        node = Node(row, parents, _save(row, handle, inputs, parents), args)
        if handle.adapted:
            node.adapted = tuple([(x.shape, x.dtype) for x in inputs])
        out._edge = node
    return out


_FIRST_FLOAT = lib.MG_FLOAT32
_save_plans: dict[tuple[Row, tuple[bool, ...]], tuple[str, ...]] = {}


def _save(row: Row, y: Handle, inputs: Sequence[TensorBase], parents: Sequence[Any]) -> Any:
    """Pin what the derivatives of the wanted inputs take; None when they take nothing."""
    wanted = tuple([p is not None for p in parents])
    names = _save_plans.get((row, wanted))
    if names is None:
        names = _save_plans[row, wanted] = row.saves(wanted)
    if not names:
        return None
    places = [NULL, NULL, NULL]
    for name in names:
        place = PLACES[name]
        places[place] = y if name == "y" else inputs[place]._h
    return save(*places)


def apply(row: Row, inputs: tuple[TensorBase, ...], args: tuple[Any, ...] = ()) -> Tensor:
    """Compute a row that has a forward of its own, and record it."""
    assert row.forward is not None
    handle = row.forward(*[x._h for x in inputs], *args)
    return record(row, handle, inputs, args)


def unary(row: Row) -> Callable[[Any], Tensor]:
    """The public function of a pointwise row with one input."""
    kernel, op, name = lib.mg_unary, row.id, row.name
    keeps = row.saves((True,))
    keeps_x, keeps_y = "x" in keeps, "y" in keeps
    row.fast_vjp = _unary_vjp(row)

    def function(x: Any) -> Tensor:
        if not isinstance(x, TensorBase):
            given, x = x, as_operand(x)
            if x is None:
                raise operand_error(name, given)
        handle = call(kernel, op, x._h)
        out = _new(_result_type)
        out._h = handle
        out._shape = out.grad = None
        edge = x._edge
        if edge is None or not mode.enabled:
            out._edge = None
            return out  # type: ignore[no-any-return]
        saved = None
        if keeps_x:
            saved = save(x._h)
        elif keeps_y:
            saved = save(NULL, handle)
        out._edge = Node(row, (x if edge is LEAF else edge,), saved, ())
        return out  # type: ignore[no-any-return]

    return _named(function, row)


def binary(row: Row, operator: bool = False) -> Callable[[Any, Any], Tensor]:
    """The public function of a pointwise row with two inputs.

    As an operator it leaves types it does not know to their own methods.
    """
    kernel, op, name = lib.mg_binary, row.id, row.name
    plans = {}
    if row.derivatives:
        row.fast_vjp = _binary_vjp(row)
        wants = ((True, True), (True, False), (False, True))
        plans = {want: row.saves(want) for want in wants}

    def function(a: Any, b: Any) -> Tensor:
        if not isinstance(a, TensorBase):
            given, a = a, as_operand(a)
            if a is None:
                raise operand_error(name, given)
        if not isinstance(b, TensorBase):
            given, b = b, as_operand(b)
            if b is None:
                if operator:
                    return NotImplemented
                raise operand_error(name, given)
        ha, hb = a._h, b._h
        handle = call(kernel, op, ha, hb)
        out = _new(_result_type)
        out._h = handle
        out._edge = out._shape = out.grad = None
        edge_a, edge_b = a._edge, b._edge
        if (edge_a is not None or edge_b is not None) and plans and mode.enabled:
            names = plans[edge_a is not None, edge_b is not None]
            saved = None
            if names:
                saved = save(
                    ha if "a" in names else NULL,
                    hb if "b" in names else NULL,
                    handle if "y" in names else NULL,
                )
            parents = (a if edge_a is LEAF else edge_a, b if edge_b is LEAF else edge_b)
            out._edge = node = Node(row, parents, saved, ())
            if handle.adapted:
                node.adapted = ((a.shape, a.dtype), (b.shape, b.dtype))
        return out  # type: ignore[no-any-return]

    return _named(function, row)


def _named(function: Callable[..., Tensor], row: Row) -> Callable[..., Tensor]:
    function.__name__ = function.__qualname__ = row.name
    function.__doc__ = f"{row.doc[0].upper()}{row.doc[1:]}."
    return function


# ---- vector-Jacobian products --------------------------------------------------------------------


def vjp(node: Node, g: Any, graph: bool) -> Sequence[Any]:
    """The gradient of each input of ``node`` from its upstream gradient.

    With ``graph`` through the row's formulas, which can be differentiated again; else through the
    fused kernels where there are any. Broadcasting and casts of the inputs are undone here, for all
    operations.
    """
    row = node.op
    if type(row) is not Row:
        return row.vjp(node, g, graph)  # type: ignore[no-any-return]
    if not graph and row.fast_vjp is not None:
        gradients = row.fast_vjp(node, g)
    elif row.family == "pointwise":
        gradients = _by_input(row, node, g, _pointwise_formula)
    elif row.family == "variadic":
        gradients = _by_input(row, node, g, _variadic_formula)
    else:
        gradients = _by_input(row, node, g, _formula if graph else _fused)
    return gradients if node.adapted is None else _unadapted(gradients, node.adapted)


def _by_input(row: Row, node: Node, g: Tensor, rule: Callable[..., Any]) -> list[Any]:
    parents = node.parents or ()
    return [None if p is None else rule(row, i, node, g) for i, p in enumerate(parents)]


def _unadapted(gradients: Sequence[Any], adapted: Sequence[Any]) -> list[Any]:
    """Summed over the axes along which the input was broadcast, in the input's dtype."""
    back = []
    for gi, (shape, dtype) in zip(gradients, adapted, strict=True):
        if gi is not None and gi.shape != shape:
            gi = gi.sum_to_size(shape)
        if gi is not None and gi.dtype is not dtype:
            gi = gi.to(dtype)
        back.append(gi)
    return back


def _unary_vjp(row: Row) -> Callable[[Node, Any], Sequence[Any]]:
    kernel, op, derivative = lib.mg_unary_vjp, row.id, row.derivatives[0]
    if not callable(derivative):
        return lambda node, g: (_constant(derivative, g),)
    return lambda node, g: (wrap(call(kernel, op, g._h, node.saved)),)


def _binary_vjp(row: Row) -> Callable[[Node, Any], Sequence[Any]]:
    kernel, op = lib.mg_binary_vjp, row.id
    by_a, by_b = row.derivatives

    def fast(node: Node, g: Any) -> Sequence[Any]:
        parent_a, parent_b = node.parents  # type: ignore[misc]
        ga = gb = None
        if parent_a is not None:
            ga = wrap(call(kernel, op, 0, g._h, node.saved)) if callable(by_a) else _constant(by_a, g)
        if parent_b is not None:
            gb = wrap(call(kernel, op, 1, g._h, node.saved)) if callable(by_b) else _constant(by_b, g)
        return ga, gb

    return fast


def _constant(derivative: Any, g: Tensor) -> Tensor:
    if derivative == 1.0:
        return g
    return -g if derivative == -1.0 else g * derivative


def _pointwise_formula(row: Row, i: int, node: Node, g: Tensor) -> Tensor:
    partial = row.derivatives[i]
    if not callable(partial):
        return _constant(partial, g)
    return g.scale(partial(*[_unpack(row, node, name) for name in row.needs[i]]))


def _variadic_formula(row: Row, i: int, node: Node, g: Tensor) -> Tensor:
    return row.derivatives[0](g, i, *node.args)  # type: ignore[no-any-return, misc, operator]


def _formula(row: Row, i: int, node: Node, g: Tensor) -> Tensor:
    saved = [_unpack(row, node, name) for name in row.needs[i] if name in PLACES]
    return row.derivatives[i](g, *saved, *_arguments(row, i, node))  # type: ignore[no-any-return, misc, operator]


def _fused(row: Row, i: int, node: Node, g: Tensor) -> Tensor:
    fused = row.fused[i]
    if fused is None:
        return _formula(row, i, node, g)
    handles = [saved_handle(node.saved, place) for place in row.places[i]]
    return wrap(fused(g._h, *handles, *_arguments(row, i, node)))


def _arguments(row: Row, i: int, node: Node) -> tuple[Any, ...]:
    """The node's arguments that this derivative takes: ``shape`` comes first when it is kept."""
    skips = row.wants_shape and "shape" not in row.needs[i]
    return node.args[1:] if skips else node.args  # type: ignore[no-any-return]


def _unpack(row: Row, node: Node, name: str) -> Tensor:
    """A saved array as a tensor with the place on the tape that it had."""
    if name == "y":
        place = 1 if row.family == "pointwise" and row.arity == 1 else 2
        return wrap(saved_handle(node.saved, place), node)
    place = PLACES[name]
    return wrap(saved_handle(node.saved, place), (node.parents or ())[place])


# ---- writing in place ----------------------------------------------------------------------------


def write(kernel: Any, target: TensorBase, *args: Any) -> None:
    """Run a kernel that writes into ``target``, whose gradient history must not need it."""
    if target._edge is not None and mode.enabled:
        raise RuntimeError(
            f"[{kernel.__name__.removeprefix('mg_')}] cannot write in place into a tensor that "
            "requires grad: do it under no_grad(), or use an operation that returns a new tensor"
        )
    if target._edge is not None and target._edge is not LEAF:
        raise RuntimeError(
            f"[{kernel.__name__.removeprefix('mg_')}] cannot write in place into the result of "
            f"{target._edge!r}: detach() or clone() it first"
        )
    handle = target._h
    pinned = lib.mg_pins(handle) > 0
    run_kernel(kernel, *args)
    if pinned:
        if len(overwritten_at) > 1000:
            overwritten_at.clear()
        overwritten_at[lib.mg_buffer_id(handle)] = _caller()


def _caller() -> str:
    """The nearest line outside this package, as ``file:line``."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("minigrad"):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"
