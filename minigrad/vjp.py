"""How the rows of the op table run backward: the vector-Jacobian products of a node.

Each row has two rules: through fused kernels, and through its formulas, which leave a graph that
can be differentiated again. Loaded with the first backward.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import neg
from typing import TYPE_CHECKING, Any

from minigrad.backprop import rule
from minigrad.dispatch import number, operation, wrap
from minigrad.ops.composed import product
from minigrad.ops.pointwise import SCALE
from minigrad.ops.reduction import MEAN, SUM
from minigrad.ops.shape import SLICE, SLICE_VIEW
from minigrad.ops.table import PLACES, Row
from minigrad.parts import Part
from minigrad.runtime.native import call, kernels, lib, saved_handle, vjp_of
from minigrad.tape import Node, no_grad

if TYPE_CHECKING:
    from minigrad._tensor import Tensor

__all__ = ["rules", "unpack"]

Rule = Callable[[Node, Any], Sequence[Any]]


def rules(row: Row) -> tuple[Rule, Rule]:
    """How a row runs backward: recording nothing, and through formulas that leave a graph."""
    if row.family == "variadic":
        graph = _each(row, _variadic_formula)
    elif row is SCALE:
        graph = _each(row, _scale_formula)
    elif row.family == "pointwise":
        graph = _each(row, _pointwise_formula)
    else:
        graph = _each(row, _formula)
    if row.joint is not None:
        graph = _jointly(row, graph)
    return _fused_rule(row) or no_grad(graph), graph


def _fused_rule(row: Row) -> Rule | None:
    """The rule that runs on C arrays, and so records nothing, if there is one."""
    if row.family == "variadic" or row is SCALE:
        return None
    if row.family == "pointwise":
        kernel = vjp_of(row.id)
        if kernel is None:
            if any(map(callable, row.derivatives)):
                return None
            kernel = kernels.copy  # never run: there are constants only
        over = kernel + lib.mg_elementwise_count()
        kind = 1 if row.arity == 1 else 2
        return rule(None, tuple(map(_slope, row.derivatives)), kind, kernel, over)
    if row.product >= 0:
        return rule(None, (None,) * row.arity, 2, row.product, -1)
    if row in (SLICE, SLICE_VIEW):
        return _slice_vjp
    if row.together is not None:
        return _together(row)
    if not any(row.fused):
        return None
    if row.arity == 1 and not row.keeps:  # linear, with a kernel of its own: nothing to unpack
        spread = kernels.view_spread if row is SUM else kernels.spread_mean if row is MEAN else -1
        return rule(row.fused[0], (None,), 0, spread, -1)  # type: ignore[no-any-return]
    each = _each(row, _fused)
    by_formula = any(
        fused is None and derivative is not None
        for fused, derivative in zip(row.fused, row.derivatives, strict=True)
    )
    return no_grad(each) if by_formula else each


def _each(row: Row, one: Callable[[Row, int, Node, Any], Any]) -> Rule:
    """A rule for one input, for all that want a gradient."""
    return lambda node, g: [
        None if p is None else one(row, i, node, g) for i, p in enumerate(node.parents or ())
    ]


def _together(row: Row) -> Rule:
    """A rule for all inputs at once."""
    kernel: Any = row.together
    places = row.places[0]

    def vjp(node: Node, g: Any) -> Sequence[Any]:
        handles = [saved_handle(node.saved, place, node.op.name) for place in places]
        return [wrap(handle) for handle in kernel(g._h, *handles, *node.args)]

    return vjp


def _jointly(row: Row, each: Rule) -> Rule:
    """The formula for all inputs where all want a gradient, else one for each that does."""
    joint: Any = row.joint
    names = [name for name in row.needs[0] if name in PLACES]

    def vjp(node: Node, g: Any) -> Sequence[Any]:
        if any(p is None for p in node.parents or ()):
            return each(node, g)
        return joint(g, *[unpack(row, node, name) for name in names], *node.args)  # type: ignore[no-any-return]

    return vjp


def _slice_vjp(node: Node, g: Any) -> tuple[Part]:
    shape, start, step, count, *to = node.args
    values = call(kernels.reshape, g._h, count) if to else g._h
    return (Part(shape, values, start, step, count),)


def _slope(derivative: Any) -> Any:
    """None for what the kernel computes, True for g itself, else a function of g."""
    if callable(derivative):
        return None
    if derivative == 1.0:
        return True
    return neg if derivative == -1.0 else lambda g: _constant(derivative, g)


def _constant(derivative: Any, g: Tensor) -> Tensor:
    if derivative == 1.0:
        return g
    if derivative == 0.0:
        return number(0.0).scale(g)  # 0 also against an infinite gradient
    return -g if derivative == -1.0 else g * derivative


def _pointwise_formula(row: Row, i: int, node: Node, g: Tensor) -> Tensor:
    partial = row.derivatives[i]
    if not callable(partial):
        return _constant(partial, g)
    # In the gradient's dtype: an int64 or float32 operand must not make the partial a float32.
    # Those with a default are only for the kernel.
    names = row.needs[i][: len(row.needs[i]) - len(partial.__defaults__ or ())]
    saved = [unpack(row, node, name).to(g.dtype) for name in names]
    return g.scale(partial(*saved))


def _scale_formula(row: Row, i: int, node: Node, g: Tensor) -> Tensor:
    """A product's, but where the first factor is 0 the second has no slope, whatever arrives.

    So what a zero gradient was multiplied by counts for nothing to any order.
    """
    if i == 0:
        return _pointwise_formula(row, i, node, g)
    a = unpack(row, node, "a").to(g.dtype)
    return product(g, a)  # type: ignore[no-any-return]


def _variadic_formula(row: Row, i: int, node: Node, g: Tensor) -> Tensor:
    return row.derivatives[0](g, i, *node.args)  # type: ignore[no-any-return, misc, operator]


def _formula(row: Row, i: int, node: Node, g: Tensor) -> Tensor:
    saved = [unpack(row, node, name) for name in row.needs[i] if name in PLACES]
    return row.derivatives[i](g, *saved, *_arguments(row, i, node))  # type: ignore[no-any-return, misc, operator]


def _fused(row: Row, i: int, node: Node, g: Tensor) -> Tensor:
    fused = row.fused[i]
    if fused is None:
        return _formula(row, i, node, g)
    handles = [saved_handle(node.saved, place, node.op.name) for place in row.places[i]]
    return wrap(fused(g._h, *handles, *_arguments(row, i, node)))


def _arguments(row: Row, i: int, node: Node) -> tuple[Any, ...]:
    """The node's arguments that this derivative takes: ``shape`` comes first when it is kept."""
    skips = row.wants_shape and "shape" not in row.needs[i]
    return node.args[1:] if skips else node.args  # type: ignore[no-any-return]


def unpack(row: Row, node: Node, name: str) -> Tensor:
    """A saved array as a tensor with the place on the tape that it had."""
    if name == "y":
        pointwise = row.family == "pointwise"
        place = 1 if pointwise and row.arity == 1 else 2
        try:
            return wrap(saved_handle(node.saved, place, node.op.name), node)
        except RuntimeError:  # overwritten: it is made again of the operands if they were saved too
            operands = "x" if row.arity == 1 else "ab"
            kept = [node.saved.buffer(PLACES[n]) for n in operands]
            if not (pointwise and all(kept)):
                raise
            return operation(row)(*[unpack(row, node, n) for n in operands])  # type: ignore[no-any-return]
    place = PLACES[name]
    return wrap(saved_handle(node.saved, place, node.op.name), (node.parents or ())[place])
