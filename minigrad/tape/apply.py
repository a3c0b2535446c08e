"""Applies a row of the op table to tensors: forward by its kernel, and a node on the tape."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from minigrad._c import NULL, Handle, save
from minigrad.dtypes import DType, float32
from minigrad.ops.table import Row
from minigrad.tape.grad_mode import mode, no_grad_scopes
from minigrad.tape.node import LEAF, Node, Parent, record
from minigrad.tape.speed import accelerator
from minigrad.tape.tensor_base import Fields, TensorBase, link, mark_under_no_grad, wrap

if TYPE_CHECKING:
    from minigrad._tensor import Tensor

__all__ = ["apply", "check_keeps_grad", "of_all", "operation", "view_node"]

_FIRST_FLOAT = float32.code


def apply(row: Row, inputs: Sequence[TensorBase], args: tuple[Any, ...] = ()) -> Tensor:
    """Compute a row of its inputs and other arguments; record it if an input needs a gradient."""
    handles = [x._h for x in inputs]
    handle = row.forward(*handles, *args)  # type: ignore[misc]
    out = wrap(handle)
    recording = not no_grad_scopes or mode.enabled
    if row.kernel is None and len(handles) == 1 and handle.buffer == handles[0].buffer:
        if recording:
            link(out, inputs[0], row, args)
        else:
            mark_under_no_grad(out, inputs[0])
    if recording and row.derivatives:
        for x in inputs:
            if x._edge is not None:
                if handle.dtype >= _FIRST_FLOAT:
                    out._edge = _node(row, inputs, handles, handle, args)
                elif len(handles) > 1:
                    check_keeps_grad(row.name, out.dtype)
                break
    return out


def _node(
    row: Row,
    inputs: Sequence[TensorBase],
    handles: list[Handle],
    result: Handle,
    args: tuple[Any, ...],
) -> Node:
    """The node of a row that was just computed."""
    parents = []
    needs_grad = 1
    for x in inputs:
        edge = x._edge
        parents.append(x if edge is LEAF else edge)
        needs_grad += needs_grad + (edge is not None)
    sources = row.sources.get(needs_grad)
    if sources is None:
        sources = row.find_sources(parents, needs_grad)
    saved = input_meta = None
    if sources:
        a, b, c = sources
        arrays = (*handles, result, NULL)
        saved = save(arrays[a], arrays[b], arrays[c])
    if len(handles) > 1 and result.adapted:
        input_meta = tuple([(h.shape, h.dtype) for h in handles])
    if row.wants_shape:
        args = (inputs[0].shape, *args)
    return record(row, saved, args, input_meta, *parents)


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
        row.run = _on_one(row) if row.kernel is None else _on_inputs(row)
    return row.run


def _on_one(row: Row) -> Callable[..., Any]:
    def run(x: TensorBase, args: tuple[Any, ...] = ()) -> Tensor:
        return apply(row, (x,), args)

    return run


def _on_inputs(row: Row) -> Callable[..., Any]:
    arity, takes = row.arity, row.takes

    def run(*inputs: Any) -> Any:
        for x in inputs:
            if not isinstance(x, Fields):
                return NotImplemented
        if len(inputs) != arity or (takes is not None and not takes(*[x._h for x in inputs])):
            return NotImplemented
        return apply(row, inputs)

    return run


def of_all(row: Row, number: int) -> Callable[..., Any]:
    """The function of a reduction, which C knows by number, on all elements of a tensor."""

    def run(x: Any) -> Any:
        if not isinstance(x, TensorBase):
            return NotImplemented
        return apply(row, (x,), (tuple(range(x._h.ndim)), False))

    return run


if accelerator:
    apply, operation, of_all = accelerator.applying(apply)
