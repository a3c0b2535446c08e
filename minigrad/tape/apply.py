"""Application of a row of the op table to tensors: forward by a kernel, and a node."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from minigrad.ops.table import Row
from minigrad.runtime.batched import batched_row, running
from minigrad.runtime.dtypes import DType, float32
from minigrad.runtime.native import Array, call, save, widened
from minigrad.tape.grad_mode import mode, no_grad_scopes
from minigrad.tape.node import LEAF, Node, Parent, new_node, record
from minigrad.tape.speed import accelerator
from minigrad.tape.tensor_base import TensorBase, link, mark_under_no_grad, wrap

if TYPE_CHECKING:
    from minigrad._tensor import Tensor

__all__ = ["apply", "check_keeps_grad", "of_all", "operation", "view_node"]

_FIRST_FLOAT = float32.code


def apply(row: Row, inputs: Sequence[TensorBase], args: tuple[Any, ...] = ()) -> Tensor:
    """Compute a row of its inputs and other arguments; record it if an input needs a gradient."""
    if running and (made := batched_row(row, inputs, args)):
        return made[0]
    handles: list[Array] = []
    parents: list[Parent] = []
    needs_grad = False
    for x in inputs:
        edge = x._edge
        if edge is not None:
            needs_grad = True
            if edge is LEAF:
                edge = x
        handles.append(x._h)
        parents.append(edge)
    handle = row.forward(*handles, *args) if args else row.forward(*handles)
    out = wrap(handle)
    recording = not no_grad_scopes or mode.enabled
    if not row.alone and len(handles) == 1 and handle.buffer == handles[0].buffer:
        if recording:
            link(out, inputs[0], row, args)
        else:
            mark_under_no_grad(out, inputs[0])
    if needs_grad and recording and row.derivatives:
        if handle.dtype >= _FIRST_FLOAT:
            saved = _save(row, parents, (*handles, handle, None)) if row.keeps else None
            input_meta = None
            if len(handles) > 1 and handle.adapted:
                input_meta = tuple([(h.shape, h.dtype) for h in handles])
            if row.wants_shape:
                args = (inputs[0].shape, *args)
            out._edge = new_node(row, saved, args, input_meta, tuple(parents))
        elif len(handles) > 1:
            check_keeps_grad(row.name, out.dtype)
    return out


def _save(row: Row, parents: list[Parent], arrays: tuple[Array | None, ...]) -> Any:
    """Pin what the derivatives need among the arrays of the inputs, the result and None."""
    needs_grad = tuple([parent is not None for parent in parents])
    sources = row.sources.get(needs_grad)
    if sources is None:
        sources = row.find_sources(needs_grad)
    if not sources:
        return None
    a, b, c = sources
    return save(arrays[a], arrays[b], arrays[c])


def view_node(row: Row, base: TensorBase, args: tuple[Any, ...], parent: Parent) -> Node | None:
    """The edge of a view of ``base``, whose own place on the tape is ``parent``."""
    if parent is None:
        return None
    if row.wants_shape:
        args = (base.shape, *args)
    return record(row, None, args, None, parent)


def check_keeps_grad(op: str, kind: DType) -> None:
    """Refuse a half as the result of what is recorded: its gradient would be lost unnoticed."""
    if kind.is_storage and kind.is_floating_point:
        raise TypeError(
            f"[{op}] a {kind.name} tensor cannot require grad: minigrad trains in float32 and "
            "float64, and halves are for storage; detach() first"
        )


def operation(row: Row) -> Callable[..., Any]:
    """The function of a row on tensors.

    A row that is one call of a kernel takes its inputs. The result is NotImplemented where one is
    no tensor, or the kernel does not take such operands. Another row takes its one input, and the
    tuple of its other arguments.
    """
    if row.run is None:
        row.run = _on_inputs(row) if row.alone else _on_args(row)
    return row.run


def _on_args(row: Row) -> Callable[..., Any]:
    def run(inputs: Any, args: tuple[Any, ...] = ()) -> Tensor:
        return apply(row, (inputs,) if row.arity == 1 else inputs, args)

    return run


def _on_inputs(row: Row) -> Callable[..., Any]:
    takes, fits = row.takes, row.fits

    def on_one(x: Any) -> Any:
        return apply(row, (x,)) if isinstance(x, TensorBase) else NotImplemented

    def on_two(a: Any, b: Any = None) -> Any:
        if isinstance(a, TensorBase) and isinstance(b, TensorBase):
            return apply(row, (a, b))
        return NotImplemented

    def on_all(*inputs: Any) -> Any:
        tensors = len(inputs) == row.arity and all(isinstance(x, TensorBase) for x in inputs)
        if running and tensors and (made := batched_row(row, inputs, ())):
            return made[0]
        if not tensors or (takes is not None and not takes(*[x._h for x in inputs])):
            return NotImplemented
        if fits >= 0 and not call(fits, *[widened(x._h) for x in inputs]):
            return NotImplemented
        return apply(row, inputs)

    if takes is not None or fits >= 0 or row.arity > 2:
        return on_all
    return on_one if row.arity == 1 else on_two


def of_all(row: Row, number: int) -> Callable[..., Any]:
    """The function of a reduction, which C knows by number, on all elements of a tensor."""

    def run(x: Any) -> Any:
        if not isinstance(x, TensorBase):
            return NotImplemented
        return apply(row, (x,), (tuple(range(x._h.ndim)), False))

    return run


if accelerator:
    apply, operation, of_all = accelerator.apply, accelerator.operation, accelerator.of_all
