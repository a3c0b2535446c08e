"""Application of an op table's row to tensors: run the forward kernel and record a node."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from minigrad.ops.table import Row
from minigrad.runtime.batched import batched_row, running
from minigrad.runtime.dtypes import DType, float32
from minigrad.runtime.native import Array, function_of, save, tracers
from minigrad.tape.grad_mode import mode, no_grad_scopes
from minigrad.tape.node import LEAF, Node, Parent, new_node, record
from minigrad.tape.speed import accelerator
from minigrad.tape.tensor_base import TensorBase, link, mark_under_no_grad, wrap

if TYPE_CHECKING:
    from minigrad._tensor import Tensor

__all__ = ["apply", "check_keeps_grad", "of_all", "operation", "view_node"]

_FIRST_FLOAT = float32.code


def apply(row: Row, inputs: Sequence[TensorBase], args: tuple[Any, ...] = ()) -> Tensor:
    """Run a row on tensors and other arguments, and record a node if an input needs a gradient."""
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
            if tracers:
                _tell(out)
        elif len(handles) > 1:
            check_keeps_grad(row.name, out.dtype)
    return out


def _tell(out: TensorBase) -> None:
    from minigrad.tape.watching import recorded  # which stands on the rules, and they on this

    recorded(out)


def _save(row: Row, parents: list[Parent], arrays: tuple[Array | None, ...]) -> Any:
    """Pin the arrays that the derivatives need. ``arrays`` has the inputs, the result and None."""
    needs_grad = tuple([parent is not None for parent in parents])
    sources = row.sources.get(needs_grad)
    if sources is None:
        sources = row.find_sources(needs_grad)
    if not sources:
        return None
    a, b, c = sources
    return save(arrays[a], arrays[b], arrays[c])


def view_node(row: Row, base: TensorBase, args: tuple[Any, ...], parent: Parent) -> Node | None:
    """The edge of a view of ``base``: a recorded node, or None if ``parent`` is None."""
    if parent is None:
        return None
    if row.wants_shape:
        args = (base.shape, *args)
    return record(row, None, args, None, parent)


def check_keeps_grad(op: str, kind: DType) -> None:
    """Raise a TypeError if a recorded result is a half, whose gradient would be lost."""
    if kind.is_storage and kind.is_floating_point:
        raise TypeError(
            f"[{op}] a {kind.name} tensor cannot require grad: minigrad trains in float32 and "
            "float64, and halves are for storage; detach() first"
        )


def operation(row: Row) -> Callable[..., Any]:
    """The function that applies a row to tensors.

    For a row that is one kernel call, the function takes the inputs. It returns NotImplemented if
    an input is no tensor or the kernel does not take such operands. For any other row, the function
    takes the one input, or the sequence of inputs, and a tuple of the other arguments.
    """
    if row.run is None:
        row.run = _on_inputs(row) if row.alone else _on_args(row)
    return row.run


def _on_args(row: Row) -> Callable[..., Any]:
    def run(inputs: Any, args: tuple[Any, ...] = ()) -> Tensor:
        return apply(row, (inputs,) if row.arity == 1 else inputs, args)

    return run


def _on_inputs(row: Row) -> Callable[..., Any]:
    takes, fits = row.takes, None if row.fits < 0 else function_of(row.fits)

    def on_one(x: Any) -> Any:
        return apply(row, (x,)) if isinstance(x, TensorBase) else NotImplemented

    def on_two(a: Any, b: Any = None) -> Any:
        if isinstance(a, TensorBase) and isinstance(b, TensorBase):
            return apply(row, (a, b))
        return NotImplemented

    def on_all(*inputs: Any) -> Any:
        tensors = [x for x in inputs if isinstance(x, TensorBase)]
        if len(tensors) != len(inputs) or len(tensors) != row.arity:
            return NotImplemented
        if running and (made := batched_row(row, inputs, ())):
            return made[0]
        handles = [x._h for x in tensors]
        if (takes and not takes(*handles)) or (fits and not fits(*handles)):
            return NotImplemented
        return apply(row, inputs)

    if takes is not None or fits is not None or row.arity > 2:
        return on_all
    return on_one if row.arity == 1 else on_two


def of_all(row: Row, number: int) -> Callable[..., Any]:
    """The function that reduces all elements of a tensor. The accelerator knows it by number."""

    def run(x: Any) -> Any:
        if not isinstance(x, TensorBase):
            return NotImplemented
        return apply(row, (x,), (tuple(range(x._h.ndim)), False))

    return run


if accelerator:
    apply, operation, of_all = accelerator.apply, accelerator.operation, accelerator.of_all
