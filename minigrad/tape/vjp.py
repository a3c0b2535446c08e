"""Rules of the op table's rows: functions that compute the vector-Jacobian products of a node.

Each row has two rules. One calls fused kernels and records nothing. The other evaluates the row's
formulas and leaves a graph that can be differentiated again. This module is loaded with the first
backward.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from minigrad.ops.composed import product
from minigrad.ops.pointwise import SCALE
from minigrad.ops.shape import SLICE, SLICE_VIEW
from minigrad.ops.table import PLACES, Row
from minigrad.runtime.dtypes import DType
from minigrad.runtime.errors import freed_error
from minigrad.runtime.native import call, kernels, saved_handle, vjp_of
from minigrad.tape.apply import operation
from minigrad.tape.grad_mode import without_recording
from minigrad.tape.node import Node
from minigrad.tape.slice_grad import SliceGrad
from minigrad.tape.speed import accelerator
from minigrad.tape.tensor_base import wrap

if TYPE_CHECKING:
    from minigrad._tensor import Tensor

__all__ = ["fused_or_formula", "pointwise_formula", "rules", "unpack"]

Rule = Callable[[Node, Any], Sequence[Any]]


def rules(op: Any) -> tuple[Rule, Rule]:
    """The two rules of an operation: without a graph, and by formulas that leave a graph."""
    if type(op) is not Row:
        return op.vjp, op.graph_vjp
    if op.rules is None:
        op.places = tuple([tuple([PLACES[n] for n in names if n in PLACES]) for names in op.needs])
        graph = _each(op, _formula_of(op))
        if op.joint is not None:
            graph = _jointly(op, graph)
        op.rules = _fused_rule(op) or without_recording(graph), graph
    return op.rules


def _formula_of(row: Row) -> Callable[[Row, int, Node, Any], Any]:
    if row.family == "variadic":
        derivative: Any = row.derivatives[0]
        return lambda row, i, node, g: derivative(g, i, *node.args)
    if row is SCALE:
        return _scale_formula
    return pointwise_formula if row.family == "pointwise" else _formula


def _fused_rule(row: Row) -> Rule | None:
    """A row's rule on arrays, which records nothing; None if the row has none."""
    if row.family == "variadic" or row is SCALE:
        return None
    if row.family == "pointwise":
        if any(map(callable, row.derivatives)) and vjp_of(row.id) is None:
            return None
        return kernel_rule(row, tuple(map(_partial, row.derivatives)))
    if row.vjp_kernel >= 0:
        return kernel_rule(row, (None,) * row.arity)
    if row in (SLICE, SLICE_VIEW):
        return _slice_vjp
    if row.together is not None:
        return _together(row)
    if not any(row.fused):
        return None
    if row.arity == 1 and not row.keeps:
        return linear_rule(row)
    each = _each(row, fused_or_formula)
    by_formula = any(
        fused is None and derivative is not None
        for fused, derivative in zip(row.fused, row.derivatives, strict=True)
    )
    return without_recording(each) if by_formula else each


def kernel_rule(row: Row, partials: tuple[Any, ...]) -> Rule:
    """A rule whose gradients come from one kernel call.

    ``partials`` has an entry per input. None: the kernel computes the gradient. True: the gradient
    is the upstream gradient itself. A function: the gradient is its result for the upstream
    gradient.
    """
    kernel: Any = vjp_of(row.id) if row.id >= 0 else row.vjp_kernel
    arity, pointwise = row.arity, row.family == "pointwise"

    def vjp(node: Node, g: Any) -> Sequence[Any]:
        parents, saved = node._parents, node.saved
        if len(parents) != arity:
            raise freed_error(node)  # another thread freed it meanwhile
        needed = 0
        for i in range(arity):
            if parents[i] is not None and partials[i] is None:
                needed |= 1 << i
        grads: Any = ()
        if needed:
            if saved is None and pointwise:
                raise freed_error(node)
            if arity == 1:
                return (wrap(call(kernel, g._h, saved)),)
            grads = call(kernel, needed, g._h, saved)
        gradients: list[Any] = []
        for parent, partial, gi in zip_longest(parents, partials, grads):
            if parent is None:
                gradients.append(None)
            elif partial is None:
                gradients.append(wrap(gi))
            else:
                gradients.append(g if partial is True else partial(g))
        return gradients

    return vjp


def linear_rule(row: Row) -> Rule:
    """A rule for a linear operation whose transpose is a function on arrays."""
    transpose: Any = row.fused[0]
    return lambda node, g: (wrap(transpose(g._h, *node.args)),)


if accelerator:
    kernel_rule, linear_rule = accelerator.kernel_rule, accelerator.linear_rule


def _each(row: Row, derive: Callable[[Row, int, Node, Any], Any]) -> Rule:
    """A rule that calls ``derive`` for each input that needs a gradient."""
    return lambda node, g: [
        None if p is None else derive(row, i, node, g) for i, p in enumerate(node.parents or ())
    ]


def _together(row: Row) -> Rule:
    """A rule whose kernel computes the gradients of all inputs at once."""
    kernel: Any = row.together
    places = row.places[0]

    def vjp(node: Node, g: Any) -> Sequence[Any]:
        handles = [saved_handle(node.saved, place, node.op.name) for place in places]
        return [wrap(handle) for handle in kernel(g._h, *handles, *node.args)]

    return vjp


def _jointly(row: Row, each_input: Rule) -> Rule:
    """A rule with one formula for all inputs."""
    joint: Any = row.joint
    names = [name for name in row.needs[0] if name in PLACES]

    def vjp(node: Node, g: Any) -> Sequence[Any]:
        if any(p is None for p in node.parents or ()):
            return each_input(node, g)
        return joint(g, *[unpack(row, node, name) for name in names], *node.args)

    return vjp


def _slice_vjp(node: Node, g: Any) -> tuple[SliceGrad]:
    shape, start, step, count, *to = node.args
    values = call(kernels.reshape, g._h, count) if to else g._h
    return (SliceGrad(shape, values, start, step, count),)


def _partial(derivative: Any) -> Any:
    """The entry of ``kernel_rule``'s ``partials`` for a derivative of the op table."""
    if callable(derivative):
        return None
    return True if derivative == 1.0 else lambda g: _times_constant(derivative, g)


def _times_constant(derivative: Any, g: Tensor) -> Tensor:
    if derivative == 1.0:
        return g
    if derivative == 0.0:
        return wrap(call(kernels.python_float, 0.0)).scale(g)  # also 0 for an infinite g
    return -g if derivative == -1.0 else g * derivative


def cast(x: Tensor, dtype: DType) -> Tensor:
    """The tensor in a dtype. Most have it, and need no call of ``to``."""
    return x if x.dtype is dtype else x.to(dtype)


def pointwise_formula(row: Row, i: int, node: Node, g: Tensor) -> Tensor:
    """The i-th partial of a pointwise row times a gradient or a tangent."""
    partial = row.derivatives[i]
    if not callable(partial):
        return _times_constant(partial, g)
    # Saved values are cast to the gradient's dtype, so that the partial is no float32 because of an
    # int64 or float32 operand. Only the kernel takes parameters with a default.
    names = row.needs[i][: len(row.needs[i]) - len(partial.__defaults__ or ())]
    saved = [cast(unpack(row, node, name), g.dtype) for name in names]
    return g.scale(partial(*saved))


def _scale_formula(row: Row, i: int, node: Node, g: Tensor) -> Tensor:
    """The gradient of ``scale``: that of a product, but 0 for the second input where ``a`` is 0.

    This holds even if g is infinite. A zero upstream gradient therefore gives zero to any order,
    whatever the partial is.
    """
    if i == 0:
        return pointwise_formula(row, i, node, g)
    a = cast(unpack(row, node, "a"), g.dtype)
    return product(g, a)


def _formula(row: Row, i: int, node: Node, g: Tensor) -> Tensor:
    saved = [unpack(row, node, name) for name in row.needs[i] if name in PLACES]
    return row.derivatives[i](g, *saved, *_arguments(row, i, node))  # type: ignore[misc, operator]


def fused_or_formula(row: Row, i: int, node: Node, g: Tensor) -> Tensor:
    """The gradient of the i-th input by its kernel, or by its formula where there is none."""
    fused = row.fused[i]
    if fused is None:
        return _formula(row, i, node, g)
    handles = [saved_handle(node.saved, place, node.op.name) for place in row.places[i]]
    return wrap(fused(g._h, *handles, *_arguments(row, i, node)))


def _arguments(row: Row, i: int, node: Node) -> tuple[Any, ...]:
    """The node's arguments for one derivative, without ``shape`` if that does not take it."""
    skips = row.wants_shape and "shape" not in row.needs[i]
    return node.args[1:] if skips else node.args


def unpack(row: Row, node: Node, name: str) -> Tensor:
    """A saved array as a tensor with its edge at the time of saving."""
    if name == "y":
        try:
            return wrap(saved_handle(node.saved, row.place_of("y"), node.op.name), node)
        except RuntimeError:  # overwritten: compute y again if all operands were saved
            operands = "x" if row.arity == 1 else "ab"
            saved = [node.saved.buffer(PLACES[n]) for n in operands]
            if not (row.family == "pointwise" and all(saved)):
                raise
            return operation(row)(*[unpack(row, node, n) for n in operands])
    place = PLACES[name]
    return wrap(saved_handle(node.saved, place, node.op.name), (node.parents or ())[place])
