"""Forward mode for many tangents at once: batches of tangents, the batch in front.

What a rule needs of the tape it reads once for all of them. Elementwise rows, the usual linear rows
and products run once on the whole batch. Any other node is run through for each tangent alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from minigrad.ops import contraction, indexing, reduction, scan, shape
from minigrad.ops.table import PLACES, TABLE, Row
from minigrad.runtime.native import call, kernels
from minigrad.tape.apply import apply
from minigrad.tape.jvp import (
    LinearMap,
    Tangent,
    Tangents,
    arguments_of,
    by_formula,
    in_one_dtype,
    joined,
    sum_of,
)
from minigrad.tape.node import Node
from minigrad.tape.tensor_base import TensorBase
from minigrad.tape.vjp import rules, unpack

__all__ = ["BatchedLinearMap"]


class BatchedLinearMap(LinearMap):
    """A linear map of batches of tangents."""

    def _pushed(self, node: Node, tangents: Tangents, by_kernels: bool) -> Any:
        """The batch of tangents of a node's output; a list for a node with several outputs."""
        size = next(
            len(t) if isinstance(t, list) else t.shape[0] for t in tangents if t is not None
        )
        op = node.op
        rule = _rule_of(op) if type(op) is Row else None
        made = NotImplemented if rule is None else rule(op, node, tangents, size)
        if made is not NotImplemented:
            return made
        parts = []
        for k in range(size):
            alone = [_slice_of(t, k) for t in tangents]
            some = any(t is not None for t in alone)
            parts.append(super()._pushed(node, alone, by_kernels) if some else None)
        like = next((t for t in parts if t is not None), None)
        if like is None:
            return None
        if not isinstance(like, TensorBase):
            return parts
        given = [like.new_zeros(like.shape) if t is None else t for t in parts]  # type: ignore[attr-defined]
        return apply(shape.STACK, given, (0, size))


def _slice_of(t: Any, k: int) -> Any:
    if t is None:
        return None
    return t[k] if isinstance(t, list) else t.select(0, k)


Rule = Callable[[Row, Node, Tangents, int], Any]


def _rule_of(row: Row) -> Rule | None:
    """The rule of a row for a batch, which may return NotImplemented."""
    own = _ROWS.get(row) or _NAMED.get(row.name)
    if own is not None:
        return own
    if row.family == "pointwise":
        return _pointwise
    if row.family == "custom" and row.jvp and not callable(row.jvp):
        names = row.jvp_needs[0]
        if row.is_symmetric:
            return _last_axis if "axis" in names else _elementwise
        if "pull" in names and "axes" in names:
            return _reduced
    return None


# ---- elementwise ---------------------------------------------------------------------------------


def _shape_of(node: Node, tangents: Tangents) -> tuple[int, ...]:
    """The shape of an elementwise node's output."""
    shapes = [meta[0] for meta in node.input_meta or ()]
    shapes = shapes or [t.shape[1:] for t in tangents if t is not None]
    ndim = max(map(len, shapes))
    lines = [(1,) * (ndim - len(one)) + tuple(one) for one in shapes]
    return tuple([next((n for n in sizes if n != 1), 1) for sizes in zip(*lines, strict=True)])


def _lined_up(node: Node, tangents: Tangents) -> tuple[list[Tangent], tuple[int, ...]]:
    """Batches of tangents with as many dimensions as the output, and its shape."""
    to = _shape_of(node, tangents)
    return [_with_dims(t, len(to)) for t in in_one_dtype(node, tangents)], to


def _with_dims(t: Tangent, ndim: int) -> Tangent:
    if t is None or t.ndim == ndim + 1:
        return t
    return t.reshape((t.shape[0], *(1,) * (ndim + 1 - t.ndim), *t.shape[1:]))


def _spread(t: Tangent, size: int, to: tuple[int, ...]) -> Tangent:
    return t if t is None or t.shape == (size, *to) else t.expand((size, *to))


def _pointwise(row: Row, node: Node, tangents: Tangents, size: int) -> Tangent:
    given, to = _lined_up(node, tangents)
    parts = [
        None if t is None or row.derivatives[i] == 0.0 else by_formula(row, i, node, t)
        for i, t in enumerate(given)
    ]
    return _spread(sum_of(parts), size, to)


def _saved(row: Row, node: Node, names: Sequence[str]) -> list[Any]:
    return [unpack(row, node, name) for name in names if name in PLACES]


def _elementwise(row: Row, node: Node, tangents: Tangents, size: int) -> Tangent:
    given, to = _lined_up(node, tangents)
    parts = []
    for i, t in enumerate(given):
        formula: Any = row.jvp[i]  # type: ignore[index]
        if t is not None:
            names = row.jvp_needs[i]
            parts.append(formula(t, *_saved(row, node, names), *arguments_of(row, names, node)))
    return _spread(sum_of(parts), size, to)


def _last_two_axes(row: Row, node: Node, tangents: Tangents, size: int) -> Tangent:
    """A formula of matrices, which stand behind all other axes."""
    formula: Any = row.jvp[0]  # type: ignore[index]
    return formula(tangents[0], *_saved(row, node, row.jvp_needs[0]))


def _last_axis(row: Row, node: Node, tangents: Tangents, size: int) -> Tangent:
    """A formula along one axis, which is counted from the last."""
    (t,) = tangents
    (axis,), names = node.args, row.jvp_needs[0]
    formula: Any = row.jvp[0]  # type: ignore[index]
    return formula(t, *_saved(row, node, names), axis if axis < 0 else axis - (t.ndim - 1))


# ---- reductions ----------------------------------------------------------------------------------


def _reduced(row: Row, node: Node, tangents: Tangents, size: int) -> Tangent:
    """The formula on the batch; what it pulls is the same for all tangents."""
    (t,) = tangents
    to, axes, keep, *more = node.args
    rule = rules(row)[1]
    formula: Any = row.jvp[0]  # type: ignore[index]

    def pull(g: Any) -> Any:
        return rule(node, g.select(0, 0))[0]

    return formula(t, pull, (size, *to), tuple([axis + 1 for axis in axes]), keep, *more)


# ---- linear rows, by their arguments for a batch -------------------------------------------------


def _linear(change: Callable[..., Any]) -> Rule:
    """The rule of a linear row whose arguments ``change`` makes those for a batch."""

    def rule(row: Row, node: Node, tangents: Tangents, size: int) -> Any:
        (t,) = tangents
        return apply(row, (t,), change(size, *arguments_of(row, (), node)))

    return rule


def _reshaped(row: Row, node: Node, tangents: Tangents, size: int) -> Any:
    (t,) = tangents
    (to,) = arguments_of(row, (), node)
    return t.reshape((size, *to)) if -1 not in to or t._h.size else NotImplemented


def _expanded(row: Row, node: Node, tangents: Tangents, size: int) -> Any:
    (t,) = tangents
    (to,) = arguments_of(row, (), node)
    return _with_dims(t, len(to)).expand((size, *to))


def _summed_to(row: Row, node: Node, tangents: Tangents, size: int) -> Any:
    (t,) = tangents
    (to,) = arguments_of(row, (), node)
    lead = t.ndim - 1 - len(to)
    return t.sum_to_size((size, *(1,) * lead, *to)).reshape((size, *to))


def _padded(row: Row, node: Node, tangents: Tangents, size: int) -> Any:
    (t,) = tangents
    to, start, _ = arguments_of(row, (), node)
    return apply(row, (t,), ((size, *to), (0, *start), 0.0))


def _index(size: int, index: Any) -> Any:
    """An index of all slices, on the axes behind the batch."""
    return None, *[
        None if x is None else call(kernels.view_expand, x, (size, *x.shape)) for x in index
    ]


def _picked(size: int, index: Any, to: Any) -> Any:
    return _index(size, index), (size, *to)


def _permuted(size: int, axes: Any) -> Any:
    return ((0, *[axis % len(axes) + 1 for axis in axes]),)


def _parts(size: int, start: Any, step: Any, count: Any, *to: Any) -> Any:
    return (0, *start), (1, *step), (size, *count), *[(size, *one) for one in to]


def _axes(size: int, axes: Any, keep: bool) -> Any:
    return tuple([axis + 1 for axis in axes]), keep


def _placed(size: int, to: Any, index: Any) -> Any:
    return (size, *to), _index(size, index)


# ---- products ------------------------------------------------------------------------------------


def _matmul(row: Row, node: Node, tangents: Tangents, size: int) -> Any:
    """The product rule; other axes in front of a matrix are lined up with the batch."""
    a, b = in_one_dtype(node, tangents)
    return sum_of(
        [
            None if a is None else _product(a, unpack(row, node, "b"), True),
            None if b is None else _product(b, unpack(row, node, "a"), False),
        ]
    )


def _product(t: Any, other: Any, first: bool) -> Any:
    """A batch times a tensor, or a tensor times a batch."""
    vector = t.ndim == 2
    if vector:
        t = t.unsqueeze(-2 if first else -1)
    t = _with_dims(t, max(2, other.ndim))
    made = apply(contraction.MATMUL, (t, other) if first else (other, t), ())
    if not vector:
        return made
    axis = (-2 if other.ndim > 1 else -1) if first else -1
    return made.squeeze(axis)


def _linear_layer(row: Row, node: Node, tangents: Tangents, size: int) -> Any:
    a, b, *bias = tangents
    parts = []
    if a is not None:
        parts.append(apply(contraction.LINEAR, (a, unpack(row, node, "b")), ()))
    if b is not None:
        parts.append(_product(b.mT, unpack(row, node, "a"), False))
    total = sum_of(parts)
    if bias and bias[0] is not None:
        if total is None:
            return NotImplemented
        total = total + _with_dims(bias[0], total.ndim - 1)
    return total


def _conv(row: Row, node: Node, tangents: Tangents, size: int) -> Any:
    """A batch of inputs as more samples."""
    t, *others = tangents
    if any(other is not None for other in others):
        return NotImplemented
    many = t.reshape((size * t.shape[1], *t.shape[2:]))
    made = apply(TABLE["conv"], (many, unpack(row, node, "b")), node.args)
    return made.reshape((size, t.shape[1], *made.shape[1:]))


def _joined(row: Row, node: Node, tangents: Tangents, size: int) -> Any:
    axis, more = node.args
    parts = joined(row, node, tangents, 1)
    return None if parts is None else apply(row, parts, (axis + 1, more))


_ROWS: dict[Row, Rule] = {
    shape.RESHAPE: _reshaped,
    shape.VIEW: _reshaped,
    shape.EXPAND: _expanded,
    shape.SUM_TO: _summed_to,
    shape.PAD: _padded,
    shape.PERMUTE: _linear(_permuted),
    shape.COPY: _linear(lambda size: ()),
    shape.CAST: _linear(lambda size, *args: args),
    shape.SLICE: _linear(_parts),
    shape.SLICE_VIEW: _linear(_parts),
    shape.SLICE_BLANK: _linear(_parts),
    shape.EMBED: _linear(lambda size, to, *at: ((size, *to), *_parts(size, *at))),
    shape.DIAGONAL: _linear(lambda size, *args: args),
    shape.DIAG_EMBED: _linear(lambda size, to, offset: ((size, *to), offset)),
    shape.DIAGONAL_BLANK: _linear(lambda size, *args: args),
    shape.TRIANGLE: _linear(lambda size, *args: args),
    shape.SPANS: _linear(lambda size, axis, spans: (axis + 1, spans)),
    shape.SPANS_ADDED: _linear(lambda size, axis, *rest: (axis + 1, *rest)),
    shape.ROLL: _linear(lambda size, axis, *rest: (axis + 1, *rest)),
    shape.CAT: _joined,
    shape.STACK: _joined,
    reduction.SUM: _linear(_axes),
    reduction.MEAN: _linear(_axes),
    reduction.LOG_SOFTMAX: _last_axis,
    indexing.GATHER: _linear(lambda size, index: (_index(size, index),)),
    indexing.PICK: _linear(_picked),
    indexing.SCATTER_ADD: _linear(_placed),
    scan.CUMSUM: _linear(lambda size, axis: (axis + 1,)),
    contraction.MATMUL: _matmul,
    contraction.LINEAR: _linear_layer,
    contraction.LINEAR_BIAS: _linear_layer,
}
# Rows of modules that programs load when they need them.
_NAMED: dict[str, Rule] = {
    "conv": _conv,
    "conv_bias": _conv,
    "inv": _last_two_axes,
    "det": _last_two_axes,
}
