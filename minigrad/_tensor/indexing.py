"""Indexing: ``x[index]`` in every NumPy form, as a view and one gather.

An index is applied in two steps. First, slices, integers and new axes make a view. Then integer and
boolean arrays gather along their axes, which a permutation brings to the front. The gathered axes
lie in the result as in NumPy: in place if they were adjacent, else first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from minigrad import functions as f
from minigrad._tensor.inplace import (
    check_writable,
    overwrite,
    overwrite_part,
    shows_tracked,
    update,
)
from minigrad.functions.arguments import common_shape
from minigrad.functions.creation import asarray
from minigrad.functions.operands import value_for
from minigrad.functions.selection import gather_rows, masked_rows, true_places
from minigrad.ops import shape as shape_ops
from minigrad.ops.table import Row
from minigrad.runtime.batched import BatchedOperandError, by_rules
from minigrad.runtime.dtypes import bool_, int64, uint8
from minigrad.runtime.lazy_numpy import is_numpys
from minigrad.runtime.native import call, kernels, lib
from minigrad.tape.apply import apply
from minigrad.tape.grad_mode import mode
from minigrad.tape.speed import accelerator
from minigrad.tape.tensor_base import TensorBase, wrap
from minigrad.tape.writing import write

if TYPE_CHECKING:
    from minigrad._tensor import Tensor

__all__ = ["get", "put"]


class _Plan:
    """A parsed index: a view, index arrays for some of its axes, and their axes in the result."""

    __slots__ = ("args", "arrays", "axes", "front", "row")

    def __init__(
        self, row: Any, args: Any, arrays: list[Tensor], axes: list[int], front: bool
    ) -> None:
        self.row = row  # row that makes the view, with its arguments; None for x itself
        self.args = args
        self.arrays = arrays
        self.axes = axes
        self.front = front

    def view(self, x: Tensor) -> Tensor:
        """The view of ``x`` by the index's slices, integers and new axes."""
        return x if self.row is None else apply(self.row, (x,), self.args)


def _as_index_array(item: Any) -> Tensor:
    array = asarray(item)
    if not (array._h.size or isinstance(item, TensorBase) or is_numpys("ndarray", item)):
        array = f.to(array, int64)
    if array.dtype.is_floating_point:
        raise IndexError(
            "[index] indices must be integers, booleans, slices, None or ...: got floats"
        )
    if array.dtype is uint8 and not isinstance(item, (list, tuple)):
        return f.ne(array, 0)  # a mask in PyTorch's older form
    return f.to(array, int64) if array.dtype.is_storage else array


def _is_array(item: Any) -> bool:
    ours = isinstance(item, (TensorBase, list, tuple, range, bool))
    return ours or is_numpys("ndarray", item) or is_numpys("bool_", item)


def _items(index: Any, ndim: int) -> list[Any]:
    """The index as a list with one item per axis or new axis, and the ellipsis expanded."""
    items = list(index) if isinstance(index, tuple) else [index]
    consumed, ellipsis = 0, -1
    for place, item in enumerate(items):
        if type(item) is slice or type(item) is int:
            consumed += 1
        elif item is Ellipsis:
            if ellipsis >= 0:
                raise IndexError("[index] an index can have only one ellipsis ('...')")
            ellipsis = place
        elif item is None:
            continue
        elif _is_array(item):
            items[place] = array = _as_index_array(item)
            consumed += array._h.ndim if array.dtype is bool_ else 1
        else:
            consumed += 1
    if consumed > ndim:
        hint = "" if ndim else ": the number that a 0-d tensor holds is x.item()"
        raise IndexError(f"[index] {consumed} indices for {ndim} dimensions{hint}")
    fill: list[Any] = [slice(None)] * (ndim - consumed)
    if ellipsis < 0:
        return items + fill
    # An ellipsis that stands for no axis still separates the arrays on its two sides.
    return items[:ellipsis] + (fill or [Ellipsis]) + items[ellipsis + 1 :]


def _check_mask(mask: Tensor, shape: tuple[int, ...], axis: int) -> None:
    for d, n in enumerate(mask.shape):
        if n != shape[axis + d]:
            raise IndexError(
                f"[index] the mask has size {n} where dim {axis + d} has size {shape[axis + d]}"
            )


def _mask_arrays(mask: Tensor, shape: tuple[int, ...], axis: int) -> list[Tensor]:
    _check_mask(mask, shape, axis)
    return list(true_places(mask))


_MOST_ITEMS = 64


def basic_index(x: TensorBase, index: Any, /) -> tuple[int, tuple[Any, ...]] | None:
    """The kernel and its arguments for the view by integers, slices, None and the ellipsis.

    The kernel is -1 for x itself. The result is None for all other indices, and for wrong ones.
    """
    shape = x._h.shape
    items = index if isinstance(index, tuple) else (index,)
    taken = sum([type(item) is int or isinstance(item, slice) for item in items])
    others = [item for item in items if type(item) is not int and not isinstance(item, slice)]
    dots = sum([item is ... for item in others])
    if taken > len(shape) or dots > 1 or len(items) > _MOST_ITEMS:
        return None
    if any(item is not None and item is not ... for item in others):
        return None
    start: list[int] = []
    step: list[int] = []
    count: list[int] = []
    kept: list[int] = []  # sizes of the result
    for item in items if dots else (*items, ...):
        axis = len(start)
        if item is None:
            kept.append(1)
        elif item is ...:
            sizes = shape[axis : axis + len(shape) - taken] if dots else shape[axis:]
            start += [0] * len(sizes)
            step += [1] * len(sizes)
            count += sizes
            kept += sizes
        elif isinstance(item, slice):
            try:
                span = range(*item.indices(shape[axis]))
            except (TypeError, ValueError, OverflowError):
                return None
            n = len(span)
            start.append(span.start if n else 0)
            step.append(span.step if n > 1 else 1)
            count.append(n)
            kept.append(n)
        else:
            if not -shape[axis] <= item < shape[axis]:
                return None
            start.append(item % shape[axis])
            step.append(1)
            count.append(1)
    whole = tuple(count) == shape and step == [1] * len(shape)
    same = len(others) == dots and len(kept) == len(shape)
    if whole:
        return (-1, ()) if same else (shape_ops.VIEW.kernel, (tuple(kept),))
    slices = tuple(start), tuple(step), tuple(count)
    if same:
        return shape_ops.SLICE.kernel, slices
    return shape_ops.SLICE_VIEW.kernel, (*slices, tuple(kept))


index_in_python = basic_index
if accelerator:
    basic_index = accelerator.basic_index


# The rows of the views that basic indices make, by kernel.
_VIEWS: dict[int, Row] = {
    row.kernel: row for row in (shape_ops.VIEW, shape_ops.SLICE, shape_ops.SLICE_VIEW)
}


def _plan(x: Tensor, index: Any) -> _Plan:
    found = basic_index(x, index)
    if found is not None:
        return _Plan(_VIEWS.get(found[0]), found[1], [], [], False)
    shape = x.shape
    items = _items(index, len(shape))
    has_array = any(isinstance(i, TensorBase) for i in items)
    plain: list[Any] = []  # each item's part in the view
    arrays: list[Tensor] = []
    axes: list[int] = []  # axes of the view that the arrays index
    groups: list[int] = []  # position of each run of array items among the items
    axis, kept, last_array = 0, 0, -2  # axis of x, axis of the view
    for place, item in enumerate(items):
        if item is Ellipsis:
            continue
        if item is None or isinstance(item, slice):
            plain.append(item)
            axis += item is not None
            kept += 1
            continue
        picked = _picked(item, shape, axis, has_array)
        if isinstance(picked, int):
            plain.append(picked)
            axis += 1
            continue
        if place != last_array + 1:
            groups.append(place)
        last_array = place
        if not picked:  # True or False: a new axis of size 1, gathered once or not at all
            plain.append(None)
            picked = [f.nonzero(f.reshape(item, (1,)), as_tuple=True)[0]]
        else:
            plain += [slice(None)] * len(picked)
            axis += len(picked)
        axes += range(kept, kept + len(picked))
        kept += len(picked)
        arrays += picked
    found = basic_index(x, tuple(plain))
    if found is None:
        raise _wrong(plain)
    return _Plan(_VIEWS.get(found[0]), found[1], arrays, axes, len(groups) > 1)


def _wrong(items: Sequence[Any]) -> Exception:
    for item in items:
        try:
            if isinstance(item, slice):
                item.indices(1)
        except ValueError:
            return ValueError("[index] the step of a slice must not be 0")
        except TypeError:
            return TypeError(f"[index] the bounds of a slice are integers: {item}")
    count = sum([type(item) is not int for item in items])
    return ValueError(f"[index] {count} dimensions where at most {lib.MG_MAX_NDIM} are possible")


def _picked(item: Any, shape: tuple[int, ...], axis: int, has_array: bool) -> int | list[Tensor]:
    """One item in normal form: an integer, or one array per axis.

    Beside arrays an integer is one.
    """
    if isinstance(item, TensorBase):
        if item.dtype is bool_:
            return _mask_arrays(item, shape, axis) if item._h.ndim else []  # type: ignore[arg-type]
        return [item]  # type: ignore[list-item]
    try:
        position: int = item.__index__()
    except AttributeError:
        raise IndexError(
            "[index] indices must be integers, booleans, slices, None or ...: "
            f"got {type(item).__name__}"
        ) from None
    size = shape[axis]
    if not -size <= position < size:
        raise IndexError(f"[index] index {position} is out of range for dim {axis} of size {size}")
    position %= size
    return [asarray(position)] if has_array else position


def _broadcast(arrays: list[Tensor]) -> list[Tensor]:
    try:
        shape = common_shape("index", *arrays)
    except ValueError:
        shapes = ", ".join(str(a.shape) for a in arrays)
        raise IndexError(f"[index] index arrays of shapes {shapes} do not broadcast") from None
    return [f.expand(a, shape) for a in arrays]


def _fronted(plan: _Plan, x: Tensor) -> tuple[Tensor, list[Tensor], tuple[int, ...]]:
    """The view with the gathered axes first, the arrays in one shape, and the order of axes.

    The order names, for each axis of the result, an axis of (index shape, other axes).
    """
    ndim = x._h.ndim
    others = [d for d in range(ndim) if d not in plan.axes]
    view = f.permute(x, *plan.axes, *others)
    arrays = _broadcast(plan.arrays)
    if not arrays[0].size:  # nothing is gathered, but an index out of range is still an error
        for array, d in zip(plan.arrays, plan.axes, strict=True):
            gather_rows(f.expand(asarray(0.0), x.shape[d : d + 1]), [array])
    block = arrays[0]._h.ndim
    before = 0 if plan.front else sum(1 for d in others if d < plan.axes[0])
    order = (
        *range(block, block + before),
        *range(block),
        *range(block + before, block + len(others)),
    )
    return view, arrays, order


def get(x: Tensor, index: Any) -> Tensor:
    """``x[index]``: a view for slices, integers, None and the ellipsis; a copy for arrays."""
    found = basic_index(x, index)
    if found is not None:
        row = _VIEWS.get(found[0])
        return f.permute(x, *range(x._h.ndim)) if row is None else apply(row, (x,), found[1])
    if isinstance(index, TensorBase) and index._h.ndim and x._h.ndim:
        if index.dtype is int64:
            return gather_rows(x, (index,))  # type: ignore[arg-type]
        if index.dtype is bool_ and index._h.ndim <= x._h.ndim:
            _check_mask(index, x.shape, 0)  # type: ignore[arg-type]
            return masked_rows(x, index)  # type: ignore[arg-type]
    if type(index) is tuple and len(index) <= x._h.ndim and _are_alike(index):
        return gather_rows(x, index)
    plan = _plan(x, index)
    view = plan.view(x)
    if not plan.arrays:
        return f.permute(view, *range(view._h.ndim)) if view is x else view
    view, arrays, order = _fronted(plan, view)
    picked = gather_rows(view, arrays)
    return picked if order == tuple(range(len(order))) else f.permute(picked, *order)


def _are_alike(items: tuple[Any, ...]) -> bool:
    """True if the items are int64 tensors of one shape with more than one number."""
    for item in items:
        if not isinstance(item, TensorBase) or item.dtype is not int64 or not item._h.ndim:
            return False
    return len({item.shape for item in items}) == 1


def _inverse(order: Sequence[int]) -> list[int]:
    inverse = [0] * len(order)
    for place, axis in enumerate(order):
        inverse[axis] = place
    return inverse


def put(x: Tensor, index: Any, value: Any) -> None:
    """``x[index] = value``, broadcast and cast. For repeated positions the last value wins.

    On the tape, overwritten elements get a gradient of 0 from here on. The value gets the gradient
    of the elements that it fills. Raises RuntimeError for a leaf that requires grad, unless under
    no_grad.
    """
    op = "index assignment"
    source = value_for(op, x, value)
    try:
        tracked = (
            mode.enabled
            and (x._edge is not None or source._edge is not None or shows_tracked(x))
            and x.dtype.is_floating_point
        )
        if tracked:
            check_writable(op, x)
        plan = _plan(x, index)
        if not plan.arrays:
            _put_block(op, x, plan, source, tracked)
            return
        view, arrays, order = _fronted(plan, plan.view(x if tracked else x.detach()))
        block = arrays[0].shape
        picked = block + view.shape[len(plan.axes) :]
        source = _fitted(source, tuple([picked[d] for d in order]))
        source = f.permute(source, *_inverse(order))
        if tracked:
            update(op, view, f.index_put(view, arrays, source))
            return
        chosen = [a._h for a in arrays]
        write(kernels.scatter_write, x, view._h, chosen, source._h)
    except BatchedOperandError:
        raise by_rules("write_error")(op, x.shape, source.shape) from None


def _put_block(op: str, x: Tensor, plan: _Plan, source: Tensor, tracked: bool) -> None:
    """Write over the view of ``x`` by slices and integers."""
    part = x if plan.row is None else wrap(plan.row.forward(x._h, *plan.args))
    if tracked or source._h.ndim:
        source = _fitted(source, part.shape)
    if _is_there(source, x, part, tracked):
        call(kernels.check_writable, part._h)  # an empty write is refused where any write is
        return
    if not tracked:
        write(kernels.write, x, part._h, source._h)
    elif part._h.size == x._h.size:
        overwrite(op, plan.view(x), source)
    else:
        overwrite_part(x, plan.row, plan.args, part, source)


def _is_there(source: Tensor, x: Tensor, part: Tensor, tracked: bool) -> bool:
    """True if ``source`` is already the view to be written, as in ``x[index] += 1``."""
    if tracked and getattr(source, "_alias", (None,))[0] is not x:
        return False
    a, b = source._h, part._h
    return bool(a.data == b.data and a.dtype == b.dtype and a.strides == b.strides)


def _fitted(source: Tensor, shape: tuple[int, ...]) -> Tensor:
    """The value broadcast to ``shape``, after extra leading axes of size 1 were dropped."""
    while source._h.ndim > len(shape) and source.shape[0] == 1:
        source = f.squeeze(source, 0)
    if source.shape == shape:
        return source
    try:
        return f.expand(source, shape)
    except ValueError:
        raise ValueError(
            f"[index assignment] a value of shape {source.shape} does not fit into {shape}"
        ) from None
