"""Functions for sorting and binary search.

Sorting is stable: ties keep their order. NaN counts as the largest value, and -0 equals 0. The
gradient of a result goes to the element with this value.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from minigrad.functions.arguments import integer, spelled, tensor_operand
from minigrad.functions.operands import as_operand, tensor_operands
from minigrad.functions.reductions import Found, found_at
from minigrad.functions.scans import along
from minigrad.functions.selection import along as on_axis
from minigrad.functions.selection import gather_rows, index_operand, picked
from minigrad.functions.shaping import to, widen
from minigrad.ops import scan as _s
from minigrad.runtime.dtypes import float64, int32, int64
from minigrad.tape.apply import apply

if TYPE_CHECKING:
    from minigrad._tensor import Tensor

__all__ = [
    "argsort",
    "bucketize",
    "kthvalue",
    "searchsorted",
    "sort",
    "topk",
]

# ---- sorting -------------------------------------------------------------------------------------


def argsort(
    input: Tensor, dim: int = -1, descending: bool = False, stable: bool = True, **numpy: Any
) -> Tensor:
    """The indices that sort the input along a dimension, as int64. Ties keep their order.

    NaN comes last, or first if ``descending``. Sorting is always stable, so ``stable`` changes
    nothing. Long lines are sorted by radix sort, in linear time. In short lines, smaller elements
    are counted. Both are from Knuth, "The art of computer programming", volume 3, sections 5.2.5
    and 5.2.
    """
    x = tensor_operand("argsort", input)
    return along(
        "argsort", x, _last(dim, numpy), numpy, lambda t, axis: order_of(t, axis, descending)
    )


def sort(
    input: Tensor, dim: int = -1, descending: bool = False, stable: bool = True, **numpy: Any
) -> Found:
    """The input sorted along a dimension: values, and indices as int64. Ties keep their order.

    NaN comes last, or first if ``descending``. Sorting is always stable.

    >>> import minigrad as mg
    >>> mg.sort(mg.tensor([3.0, 1.0, 2.0]))
    Found(values=tensor([1., 2., 3.]), indices=tensor([1, 2, 0]))
    """
    x = tensor_operand("sort", input)
    return along("sort", x, _last(dim, numpy), numpy, lambda t, axis: _sorted(t, axis, descending))


def _last(dim: Any, numpy: dict[str, Any]) -> Any:
    """``dim``, or ``axis`` in its place; the last dimension by default."""
    return None if "axis" in numpy and dim == -1 else dim


def order_of(x: Tensor, axis: int, descending: bool = False) -> Tensor:
    """The positions of x's elements in sorted order along an axis."""
    return apply(_s.ARGSORT, (x,), (axis, bool(descending)))


def _sorted(x: Tensor, axis: int, descending: bool) -> Found:
    order = order_of(x, axis, descending)
    return Found(picked(x, order, axis), order)


def topk(
    input: Tensor,
    k: int,
    dim: int = -1,
    largest: bool = True,
    sorted: bool = True,  # noqa: A002 - PyTorch's name
    **numpy: Any,
) -> Found:
    """The k largest or smallest elements along a dimension: values, and indices as int64.

    The result is sorted whatever ``sorted`` says. Ties keep the order of the input. NaN counts as
    the largest value. Raises ValueError unless 0 <= k <= the size of the dimension.

    >>> import minigrad as mg
    >>> mg.topk(mg.tensor([3.0, 1.0, 2.0]), 2)
    Found(values=tensor([3., 2.]), indices=tensor([0, 2]))
    """
    k = integer("topk", "k", k)

    def found(t: Tensor, axis: int) -> Found:
        _check_rank("topk", k, 0, t.shape[axis])
        indices = apply(_s.TOPK, (t,), (k, axis, bool(largest)))
        return Found(picked(t, indices, axis), indices)

    x = tensor_operand("topk", input)
    if not x._h.ndim:
        _check_rank("topk", k, 1, 1)
    return along("topk", x, _last(dim, numpy), numpy, found)


def kthvalue(input: Tensor, k: int, dim: int = -1, keepdim: bool = False, **numpy: Any) -> Found:
    """The k-th smallest element along a dimension, counted from 1: values, and indices as int64.

    NaN counts as the largest value. Raises ValueError unless 1 <= k <= the size of the dimension.
    """
    k = integer("kthvalue", "k", k)
    dim, keepdim = spelled("kthvalue", _last(dim, numpy), keepdim, numpy)

    def found(t: Tensor, axis: int) -> Found:
        _check_rank("kthvalue", k, 1, t.shape[axis])
        return found_at(t, apply(_s.ORDER_STATISTICS, (t,), ((k - 1,), False, axis)), axis, keepdim)

    return along("kthvalue", tensor_operand("kthvalue", input), dim, {}, found)


def _check_rank(op: str, k: int, least: int, size: int) -> None:
    if not least <= k <= size:
        raise ValueError(f"[{op}] k is {k}, but must be in {least}..{size} along a size of {size}")


# ---- searching -----------------------------------------------------------------------------------


def searchsorted(
    sorted_sequence: Tensor,
    input: Any,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Tensor | None = None,
) -> Tensor:
    """Binary search: the positions i in sorted lines s with s[i-1] < v <= s[i] for values v.

    With ``right``, or ``side="right"``, the position is after elements equal to v: s[i-1] <= v <
    s[i]. The result is int64, or int32 with ``out_int32``.

    The sequence is one line for all values. Otherwise it has a line for each line of values, and
    the same sizes except the last. ``sorter`` has the indices that sort an unsorted sequence. NaN
    counts as the largest value. Different dtypes are compared in float64, or in int64 if neither is
    a float.

    Raises ValueError for shapes that do not fit and for ``right`` with ``side="left"``.

    >>> import minigrad as mg
    >>> mg.searchsorted(mg.tensor([1, 3, 5]), mg.tensor([3, 4]))
    tensor([1, 2])
    """
    return _searched("searchsorted", sorted_sequence, input, out_int32, right, side, sorter)


def bucketize(
    input: Any,
    boundaries: Tensor,
    *,
    out_int32: bool = False,
    right: bool = False,
) -> Tensor:
    """The bucket of each value: the integer i with boundaries[i-1] < v <= boundaries[i].

    With ``right`` the bucket has boundaries[i-1] <= v < boundaries[i]. The boundaries are one
    sorted vector.
    """
    boundaries = tensor_operands("bucketize", boundaries, input)[0]
    if boundaries._h.ndim != 1:
        raise ValueError(
            f"[bucketize] boundaries have {boundaries._h.ndim} dimensions, but must have one"
        )
    return _searched("bucketize", boundaries, input, out_int32, right, None, None)


def _searched(
    op: str, line: Any, values: Any, out_int32: bool, right: bool, side: Any, sorter: Any
) -> Tensor:
    if side not in (None, "left", "right") or (side == "left" and right):
        raise ValueError(f"[{op}] side is {side!r} with right={right}: give one, left or right")
    line, found = widen(tensor_operands(op, line, values)[0]), widen(as_operand(values))
    if sorter is not None and line._h.ndim:
        order = index_operand(op, sorter)
        if order.shape != line.shape:
            raise ValueError(f"[{op}] a sorter of shape {order.shape} for lines of {line.shape}")
        line = gather_rows(line, on_axis(order, line._h.ndim - 1), op)
    lines_fit = line._h.ndim == 1 or line.shape[:-1] == found.shape[:-1]
    if not line._h.ndim or not lines_fit or (line._h.ndim > 1 and not found._h.ndim):
        raise ValueError(
            f"[{op}] a sequence of shape {line.shape} is neither one line nor a line for each of "
            f"the values of shape {found.shape}"
        )
    if found._h.weak and (line.dtype.is_floating_point or not found.dtype.is_floating_point):
        found = to(found, line.dtype)
    if line.dtype is not found.dtype:
        floats = line.dtype.is_floating_point or found.dtype.is_floating_point
        common = float64 if floats else int64
        line, found = to(line, common), to(found, common)
    places = apply(_s.SEARCHSORTED, (line, found), (bool(right) or side == "right",))
    return to(places, int32) if out_int32 else places
