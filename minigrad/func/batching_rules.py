"""Batching rules: rows of the op table on all slices at once.

A rule computes a row on physical tensors, the batch in front. It shifts axes and shapes in the
row's arguments, lines up dimensions, or folds the batch into a dimension that the kernel treats
alike. It returns None where it does not hold: then the row runs once for each slice.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from minigrad import functions as f
from minigrad.func.batched_tensor import Level, is_batched, level_of, of_all_slices
from minigrad.functions import creation
from minigrad.ops import TABLE
from minigrad.ops.convolution import Geometry
from minigrad.ops.table import Row
from minigrad.runtime.batched import BatchedArray, BatchedOperandError
from minigrad.runtime.native import call, kernels, lib
from minigrad.tape.apply import apply, operation

__all__ = ["Call", "rule_of"]


@dataclass(slots=True)
class Call:
    """One application of a row: its inputs as they were given, and what is known of them."""

    row: Row
    level: Level
    inputs: Any
    args: tuple[Any, ...]
    batched: list[bool] = field(init=False)
    batched_args: bool = field(init=False)

    def __post_init__(self) -> None:
        self.batched = [is_batched(x, self.level) for x in self.inputs]
        self.batched_args = level_of(self.args) is self.level

    @property
    def size(self) -> int:
        """The number of slices."""
        return self.level.size

    def ndim(self, i: int) -> int:
        """The dimensions of a slice of an input."""
        count: int = self.inputs[i].ndim
        return count

    def physical(self, i: int) -> Any:
        """An input with all slices; as it is where it is not batched."""
        x = self.inputs[i]
        return x._physical if self.batched[i] else x

    def with_dims(self, i: int, ndim: int) -> Any:
        """The same with so many dimensions behind the batch: sizes of 1 come first."""
        x, missing = self.inputs[i], ndim - self.ndim(i)
        if not self.batched[i] or missing <= 0:
            return self.physical(i)
        return f.reshape(x._physical, (self.size, *(1,) * missing, *x.shape))

    def whole(self, i: int, ndim: int = 0) -> Any:
        """The same with a batch also where it has none."""
        x = self.inputs[i]
        if self.batched[i]:
            return self.with_dims(i, ndim)
        return f.expand(x, (self.size, *(1,) * max(ndim - x.ndim, 0), *x.shape))

    def run(self, *inputs: Any, args: Any = None, row: Row | None = None) -> Any:
        """A row, this one if none is named, on physical tensors."""
        row = self.row if row is None else row
        args = self.args if args is None else args
        return operation(row)(*inputs) if row.alone else apply(row, inputs, tuple(args))


@dataclass(slots=True, frozen=True)
class Rule:
    """A rule, the fewest dimensions that the slices must have, and whether arrays among the
    arguments may be batched.
    """

    run: Callable[[Call], Any]
    takes_arrays: bool = False


_RULES: dict[str, Rule] = {}


def rule_of(row: Row) -> Rule | None:
    """The batching rule of a row, if it has one."""
    found = _RULES.get(row.name)
    if found is None and (row.id >= 0 or row.family == "pointwise"):
        return _POINTWISE
    return found


def _rule(names: str, arrays: bool = False) -> Callable[[Callable[[Call], Any]], Any]:
    def note(function: Callable[[Call], Any]) -> Any:
        for name in names.split():
            _RULES[name] = Rule(function, arrays)
        return function

    return note


# ---- elementwise ---------------------------------------------------------------------------------


def _most(c: Call) -> int:
    return max(map(c.ndim, range(len(c.inputs))))


@_rule("where clamp")
def _aligned(c: Call) -> Any:
    """Broadcast together: dimensions of 1 come in behind the batch."""
    ndim = _most(c)
    return c.run(*[c.with_dims(i, ndim) for i in range(len(c.inputs))])


_POINTWISE = Rule(_aligned)


@_rule("between huber entropy entropy_of_scores weighted_entropy_of_scores")
def _alike(c: Call) -> Any:
    """Elementwise kernels of operands of one shape."""
    shape = c.inputs[0].shape
    if any(x.shape != shape for x in c.inputs):
        return None
    return c.run(*[f.contiguous(c.whole(i)) for i in range(len(c.inputs))])


@_rule("clone to shrink hardtanh elu clip units")
def _each(c: Call) -> Any:
    """Element by element, with numbers beside."""
    return c.run(c.physical(0))


@_rule("dropout", arrays=True)
def _masked_by(c: Call) -> Any:
    keep, factor = c.args
    return c.run(c.whole(0), args=(of_all_slices(keep, c.level), factor))


def _array(c: Call, x: Any) -> Any:
    """An array among the arguments with a batch in front."""
    if type(x) is BatchedArray and x.level is c.level:
        return x.held
    lined = call(kernels.reshape, x, (1, *x.shape))
    return call(kernels.copy, call(kernels.view_expand, lined, (c.size, *x.shape)))


# ---- shapes --------------------------------------------------------------------------------------


@_rule("reshape view")
def _reshaped(c: Call) -> Any:
    (to,) = c.args
    if -1 in to and not c.inputs[0]._h.size:
        return None
    return c.run(c.physical(0), args=((c.size, *to),))


@_rule("permute")
def _permuted(c: Call) -> Any:
    (axes,) = c.args
    if len(axes) != c.ndim(0) or any(not -len(axes) <= axis < len(axes) for axis in axes):
        return None
    return c.run(c.physical(0), args=((0, *[axis % len(axes) + 1 for axis in axes]),))


@_rule("expand")
def _expanded(c: Call) -> Any:
    (to,) = c.args
    if len(to) < c.ndim(0):
        return None
    return c.run(c.with_dims(0, len(to)), args=((c.size, *to),))


@_rule("sum_to_size")
def _summed_to(c: Call) -> Any:
    (to,) = c.args
    if not c.inputs[0].is_floating_point():
        return None  # the dtype says whether anything was summed
    ones = (1,) * (c.ndim(0) - len(to))
    made = c.run(c.physical(0), args=((c.size, *ones, *to),))
    return f.reshape(made, (c.size, *to)) if ones else made


def _placed(c: Call, at: Any) -> Any:
    """Start, step and count on every axis."""
    start, step, count = at
    return (0, *start), (1, *step), (c.size, *count)


@_rule("slice slice_blank")
def _sliced(c: Call) -> Any:
    return c.run(c.physical(0), args=_placed(c, c.args))


@_rule("slice_view")
def _slice_viewed(c: Call) -> Any:
    return c.run(c.physical(0), args=(*_placed(c, c.args[:3]), (c.size, *c.args[3])))


@_rule("embed")
def _embedded(c: Call) -> Any:
    to, *at = c.args
    return c.run(c.physical(0), args=((c.size, *to), *_placed(c, at)))


@_rule("slice_scatter")
def _slice_put(c: Call) -> Any:
    return c.run(c.whole(0), c.whole(1, c.ndim(0)), args=_placed(c, c.args))


@_rule("pad")
def _padded(c: Call) -> Any:
    to, start, value = c.args
    return c.run(c.physical(0), args=((c.size, *to), (0, *start), value))


@_rule("repeat")
def _repeated(c: Call) -> Any:
    return c.run(c.physical(0), args=[(c.size, *one) for one in c.args])


@_rule("cat")
def _joined(c: Call) -> Any:
    axis, bounds = c.args
    count = len(c.inputs)
    if any(not c.ndim(i) for i in range(count)) or axis < 0:
        return None
    return c.run(*[c.whole(i) for i in range(count)], args=(axis + 1, bounds))


@_rule("stack")
def _stacked(c: Call) -> Any:
    axis, count = c.args
    if axis < 0:
        return None
    return c.run(*[c.whole(i) for i in range(len(c.inputs))], args=(axis + 1, count))


# ---- the last axes -------------------------------------------------------------------------------


def _on_last(least: int) -> Callable[[Call], Any]:
    """Rows of one input that work on its last axes, whatever stands before."""

    def rule(c: Call) -> Any:
        return c.run(c.physical(0)) if c.ndim(0) >= least else None

    return rule


_rule("diagonal triangle diagonal_blank inv cholesky det cofactors slogdet matrix_exp")(_on_last(2))
_rule("eigh eigvalsh svd svdvals qr basis marked")(_on_last(2))


@_rule("pinv")
def _inverted(c: Call) -> Any:
    if c.ndim(0) < 2 or not all(isinstance(x, (int, float)) for x in c.args):
        return None
    return c.run(c.physical(0))


@_rule("windows pool_sum pool_max pool_argmax")
def _pooled(c: Call) -> Any:
    return c.run(c.physical(0)) if c.ndim(0) >= len(c.args[0].counts) else None


@_rule("fold_windows pool_sum_transpose")
def _unpooled(c: Call) -> Any:
    to, at = c.args
    return c.run(c.physical(0), args=((c.size, *to), at))


@_rule("diag_embed")
def _diagonal_embedded(c: Call) -> Any:
    to, offset = c.args
    return c.run(c.physical(0), args=((c.size, *to), offset))


@_rule("diagonal_scatter")
def _diagonal_put(c: Call) -> Any:
    if c.ndim(0) < 2 or c.ndim(1) != c.ndim(0) - 1:
        return None
    return c.run(c.whole(0), c.whole(1))


@_rule("solve solve_triangular cdist")
def _systems(c: Call) -> Any:
    """Two stacks of matrices: neither may be a vector."""
    if min(c.ndim(0), c.ndim(1)) < 2:
        return None
    if c.inputs[0].shape[:-2] != c.inputs[1].shape[:-2]:
        return None
    return c.run(c.whole(0), c.whole(1))


# ---- one axis, or several ------------------------------------------------------------------------


def _shifted(axes: Any, ndim: int) -> Any:
    """Axes of a slice as those of all slices."""
    if axes is None:
        return tuple(range(1, ndim + 1))
    if isinstance(axes, int):
        return axes % ndim + 1 if ndim else None
    return tuple([axis % ndim + 1 for axis in axes])


@_rule("sum mean amax amin prod var std norm p_norm logsumexp all any")
def _reduced(c: Call) -> Any:
    axes, *more = c.args
    return c.run(c.physical(0), args=(_shifted(axes, c.ndim(0)), *more))


@_rule("argmax argmin")
def _best(c: Call) -> Any:
    axis, keep = c.args
    if axis is not None:
        return c.run(c.physical(0), args=(_shifted(axis, c.ndim(0)), keep)) if c.ndim(0) else None
    if not c.inputs[0]._h.size:
        return None
    line = f.reshape(c.physical(0), (c.size, c.inputs[0]._h.size))
    made = c.run(line, args=(1, False))
    return f.reshape(made, (c.size, *(1,) * c.ndim(0))) if keep else made


@_rule("cumsum cumprod logcumsumexp cummax cummin softmax log_softmax argsort spans roll")
def _along_first(c: Call) -> Any:
    """Rows whose first argument is an axis."""
    axis, *more = c.args
    if not c.ndim(0):
        return None
    return c.run(c.physical(0), args=(_shifted(axis, c.ndim(0)), *more))


_rule("spans_added median_positions")(_along_first)


@_rule("topk")
def _largest(c: Call) -> Any:
    k, axis, largest = c.args
    if not c.ndim(0):
        return None
    return c.run(c.physical(0), args=(k, _shifted(axis, c.ndim(0)), largest))


@_rule("order_statistics")
def _ranked(c: Call) -> Any:
    ranks, nan_all, axis = c.args
    if not c.ndim(0):
        return None
    return c.run(c.physical(0), args=(ranks, nan_all, _shifted(axis, c.ndim(0))))


@_rule("searchsorted")
def _searched(c: Call) -> Any:
    """A line for each line of values."""
    lines, values = c.ndim(0), c.ndim(1)
    if not lines or not values:
        return None
    if lines == 1 and not c.batched[0]:
        return c.run(c.inputs[0], c.physical(1))
    if lines == 1 and values > 1:
        return None
    return c.run(f.contiguous(c.whole(0)), f.contiguous(c.whole(1)))


@_rule("scaled_dot_product_attention")
def _attended(c: Call) -> Any:
    """Leading dimensions broadcast, those of the mask too."""
    ndim = _most(c)
    return c.run(*[c.with_dims(i, ndim) for i in range(3)])


@_rule("layer_norm rms_norm channel_norm masked_attention")
def _by_operations(c: Call) -> Any:
    """Rows that fill one of their arguments: the public function has another way."""
    raise BatchedOperandError(f"[{c.row.name}] runs by other operations")


# ---- losses --------------------------------------------------------------------------------------


@_rule(
    "cross_entropy weighted_cross_entropy nll_loss weighted_nll_loss multi_margin_loss "
    "weighted_multi_margin_loss",
    arrays=True,
)
def _of_classes(c: Call) -> Any:
    """The slices' samples as one batch, then each slice's mean or sum."""
    target, stats, ignore, share, reduction, kind = c.args[0]
    if any(c.batched[1:]):
        return _classes_one_by_one(c)
    x = c.whole(0)
    folded = _front_folded(x)
    t = f.reshape(of_all_slices(target, c.level), (-1,))
    if stats is not None:
        stats = call(kernels.empty, stats.dtype, (2, t._h.size))
    options = (t, stats, ignore, share, lib.MG_LOSS_NONE, kind)
    losses = c.run(folded, *c.inputs[1:], args=(options,))
    losses = f.reshape(losses, (c.size, -1))
    if reduction == lib.MG_LOSS_NONE:
        return losses
    total = f.sum(losses, 1)
    if reduction == lib.MG_LOSS_SUM:
        return total
    if "margin" in c.row.name:
        return total / losses.shape[1]
    counted = f.ne(t, ignore)
    weights = f.to(counted, x.dtype)
    if len(c.inputs) == 2:
        weights = weights * c.inputs[1][f.where(counted, t, 0)]
    return total / f.sum(f.reshape(weights, losses.shape), 1)


def _classes_one_by_one(c: Call) -> Any:
    target, stats, *more = c.args[0]
    made = []
    for place in range(c.size):
        some = [x._physical.select(0, place) if is_batched(x, c.level) else x for x in c.inputs]
        t = target._physical.select(0, place) if is_batched(target, c.level) else target
        own = None if stats is None else call(kernels.copy, stats)
        made.append(c.run(*some, args=((f.clone(t), own, *more),)))
    return f.stack(made)


@_rule("recurrence")
def _recurred(c: Call) -> Any:
    (axis,) = c.args
    if not c.ndim(0) or c.inputs[0].shape != c.inputs[1].shape:
        return None
    return c.run(c.whole(0), c.whole(1), args=(_shifted(axis, c.ndim(0)),))


@_rule("resample")
def _resampled(c: Call) -> Any:
    axis, terms = c.args
    return c.run(c.physical(0), args=(_shifted(axis, c.ndim(0)), terms))


@_rule("resample_transpose")
def _resampled_back(c: Call) -> Any:
    to, axis, terms = c.args
    return c.run(c.physical(0), args=((c.size, *to), _shifted(axis, len(to)), terms))


# ---- products ------------------------------------------------------------------------------------


@_rule("matmul")
def _product(c: Call) -> Any:
    a, b = c.ndim(0), c.ndim(1)
    if not a or not b:
        return None
    if a == 1 and c.batched[0] and not c.batched[1] and b == 2:
        return c.run(c.physical(0), c.inputs[1])  # one product of all rows
    left, right = c.physical(0), c.physical(1)
    if a == 1:
        left = f.unsqueeze(left, -2)
    if b == 1:
        right = f.unsqueeze(right, -1)
    most = max(a, b, 2)
    left = _padded_front(left, most, c.batched[0])
    right = _padded_front(right, most, c.batched[1])
    made = c.run(left, right)
    if b == 1:
        made = f.squeeze(made, -1)
    if a == 1:
        made = f.squeeze(made, -1 if b == 1 else -2)
    return made


def _padded_front(x: Any, ndim: int, batched: bool) -> Any:
    """Dimensions of 1 behind the batch, so that there are so many behind it."""
    missing = ndim + 1 - x.ndim
    if not batched or missing <= 0:
        return x
    return f.reshape(x, (x.shape[0], *(1,) * missing, *x.shape[1:]))


@_rule("linear linear_bias")
def _linear(c: Call) -> Any:
    weight = c.inputs[1]
    if c.ndim(1) != 2 or not c.ndim(0):
        return NotImplemented
    if not any(c.batched[1:]):
        return c.run(c.physical(0), *c.inputs[1:])
    made: Any = f.matmul(c.inputs[0], f.transpose(weight, 0, 1))
    if len(c.inputs) == 3:
        made = f.add(made, c.inputs[2])
    return made._physical


# ---- convolutions --------------------------------------------------------------------------------


def _front_folded(x: Any) -> Any:
    """The batch and the dimension after it as one."""
    return f.reshape(x, (x.shape[0] * x.shape[1], *x.shape[2:]))


def _beside(x: Any) -> Any:
    """(B, N, C, ...) as (N, B * C, ...): the batch beside the channels."""
    x = f.movedim(x, 0, 1)
    return f.reshape(x, (x.shape[0], x.shape[1] * x.shape[2], *x.shape[3:]))


def _apart(c: Call, x: Any) -> Any:
    """The reverse."""
    x = f.reshape(x, (x.shape[0], c.size, x.shape[1] // c.size, *x.shape[2:]))
    return f.movedim(x, 1, 0)


def _in_groups(c: Call) -> Geometry:
    at: Geometry = c.args[-1]
    return at._replace(groups=at.groups * c.size)


@_rule("conv conv_spread")
def _convolved(c: Call) -> Any:
    if not c.batched[1]:
        x = c.physical(0)
        made = c.run(_front_folded(x), c.inputs[1])
        return f.reshape(made, (c.size, x.shape[1], *made.shape[1:]))
    made = c.run(_beside(c.whole(0)), _front_folded(c.physical(1)), args=(_in_groups(c),))
    return _apart(c, made)


@_rule("conv_bias")
def _convolved_with_bias(c: Call) -> Any:
    if not any(c.batched[1:]):
        x = c.physical(0)
        folded = c.run(_front_folded(x), *c.inputs[1:])
        return f.reshape(folded, (c.size, x.shape[1], *folded.shape[1:]))
    bias = c.inputs[2]
    made: Any = apply(TABLE["conv"], tuple(c.inputs[:2]), c.args)
    bias = f.reshape(bias, (bias.shape[0], *(1,) * len(c.args[0].size)))
    made = f.add(made, bias)
    return made._physical


@_rule("conv_weight")
def _convolved_weights(c: Call) -> Any:
    made = c.run(_beside(c.whole(0)), _beside(c.whole(1)), args=(_in_groups(c),))
    return f.reshape(made, (c.size, made.shape[0] // c.size, *made.shape[1:]))


# ---- indices -------------------------------------------------------------------------------------


def _places(c: Call, index: Any, target_is_whole: bool) -> Any:
    """Index arrays for all slices, of a target with a batch in front or of one without."""
    shape = next(x for x in index if x is not None).shape
    found: list[Any] = []
    for d, x in enumerate(index):
        if x is None and target_is_whole:
            found.append(None)
            continue
        if x is None:
            line = (shape[d], *(1,) * (len(shape) - d - 1))
            x = call(kernels.reshape, _count(shape[d]), line)
            x = call(kernels.view_expand, x, shape)
        if type(x) is BatchedArray and x.level is c.level:
            found.append(x.held)
        else:
            lined = call(kernels.view_reshape, x, (1, *shape))
            found.append(call(kernels.view_expand, lined, (c.size, *shape)))
    return (None, *found) if target_is_whole else tuple(found)


def _count(n: int) -> Any:
    """0, 1, ... n - 1."""
    return creation.arange(n)._h


@_rule("index index_last", arrays=True)
def _gathered(c: Call) -> Any:
    (index,) = c.args
    return c.run(c.physical(0), args=(_places(c, index, c.batched[0]),))


@_rule("pick", arrays=True)
def _picked(c: Call) -> Any:
    index, to = c.args
    return c.run(c.physical(0), args=(_places(c, index, c.batched[0]), (c.size, *to)))


@_rule("index_put_zeros index_put_last", arrays=True)
def _scattered(c: Call) -> Any:
    to, index = c.args
    return c.run(c.whole(0), args=((c.size, *to), _places(c, index, True)))


@_rule("index_blank", arrays=True)
def _blanked(c: Call) -> Any:
    (index,) = c.args
    return c.run(c.whole(0), args=(_places(c, index, True),))


@_rule("index_add index_put scatter_prod scatter_amax scatter_amin", arrays=True)
def _combined(c: Call) -> Any:
    index, *more = c.args
    shape = next(x for x in index if x is not None).shape
    ndim = len(shape) + c.ndim(0) - len(index)
    return c.run(c.whole(0), c.whole(1, ndim), args=(_places(c, index, True), *more))


@_rule("masked")
def _at_places(c: Call) -> Any:
    axes, places = c.args
    x = c.physical(0)
    line = f.reshape(x, (c.size, -1, *x.shape[1 + axes :]))
    index = (None, call(kernels.view_expand, places, (c.size, places.shape[0])))
    return c.run(line, args=(index,), row=TABLE["index"])


@_rule("mask_blank", arrays=True)
def _mask_blanked(c: Call) -> Any:
    (mask,) = c.args
    return c.run(c.whole(0), args=(_array(c, mask),))
