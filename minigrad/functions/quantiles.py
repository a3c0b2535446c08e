"""Functions for order statistics: medians and quantiles.

NaN counts as the largest value. The gradient goes to the elements that make up the result.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, overload

from minigrad.functions import elementwise as e
from minigrad.functions.arguments import some_dims, spelled, tensor_operand
from minigrad.functions.creation import asarray
from minigrad.functions.lists import to_lists
from minigrad.functions.operands import operand_error
from minigrad.functions.reductions import Found, as_float, found_at, mean
from minigrad.functions.reductions import sum as total
from minigrad.functions.scans import along
from minigrad.functions.selection import picked, where
from minigrad.functions.shaping import narrow, permute, reshape, select, to, widen
from minigrad.functions.sorting import order_of
from minigrad.ops import reduction as _r
from minigrad.ops import scan as _s
from minigrad.runtime.batched import BatchedOperandError, by_rules
from minigrad.runtime.dtypes import float64, int64
from minigrad.runtime.lazy_numpy import np
from minigrad.runtime.native import call, kernels
from minigrad.tape.apply import apply
from minigrad.tape.tensor_base import TensorBase, wrap

if TYPE_CHECKING:
    from minigrad._tensor import Tensor

__all__ = [
    "median",
    "nanmedian",
    "nanquantile",
    "quantile",
]


@overload
def median(input: Any, dim: int, keepdim: bool = False, *, keepdims: bool = False) -> Found: ...
@overload
def median(input: Any, *, axis: int, keepdims: bool = False) -> Found: ...
@overload
def median(
    input: Any,
    dim: None = None,
    keepdim: bool = False,
    *,
    axis: None = None,
    keepdims: bool = False,
) -> Tensor: ...
def median(input: Tensor, dim: Any = None, keepdim: bool = False, **numpy: Any) -> Any:
    """The median: the middle value in sorted order, or the mean of the middle two.

    ``median(input)`` is the median of all elements. Elements that equal a middle value share the
    gradient evenly. ``median(input, dim)`` gives values, and indices as int64. For an even number
    of elements the index is that of the lower middle element, while each middle element gets half
    of the gradient.

    This is NumPy's median. PyTorch's is the lower of the middle two. The result is NaN if there is
    a NaN, or no element. Integers give float32.

    >>> import minigrad as mg
    >>> mg.median(mg.tensor([4.0, 1.0, 3.0, 2.0]))
    tensor(2.5)
    """
    return _median("median", input, dim, keepdim, numpy, skip_nan=False)


@overload
def nanmedian(input: Any, dim: int, keepdim: bool = False, *, keepdims: bool = False) -> Found: ...
@overload
def nanmedian(input: Any, *, axis: int, keepdims: bool = False) -> Found: ...
@overload
def nanmedian(
    input: Any,
    dim: None = None,
    keepdim: bool = False,
    *,
    axis: None = None,
    keepdims: bool = False,
) -> Tensor: ...
def nanmedian(input: Tensor, dim: Any = None, keepdim: bool = False, **numpy: Any) -> Any:
    """The median of all elements except NaN; NaN if there is no other element.

    The rest is as for :func:`median`.
    """
    return _median("nanmedian", input, dim, keepdim, numpy, skip_nan=True)


def _median(op: str, x: Any, dim: Any, keepdim: bool, numpy: dict[str, Any], skip_nan: bool) -> Any:
    x = widen(tensor_operand(op, x))
    dim, keepdim = spelled(op, dim, keepdim, numpy)
    if dim is None:
        return _median_of_all(x, keepdim, skip_nan)

    def found(t: Tensor, axis: int) -> Found:
        if not t.shape[axis]:
            raise ValueError(f"[{op}] no index in an empty dim {axis} of shape {t.shape}")
        places = apply(_s.MEDIAN_POSITIONS, (t,), (axis, skip_nan))
        below = narrow(places, axis, 0, 1)
        if t.shape[axis] % 2 and not skip_nan:
            found = found_at(t, below, axis, keepdim)
            return Found(as_float(op, found.values), found.indices)
        both = as_float(op, picked(t, places, axis))
        middle = mean(both, axis, keepdim)
        if skip_nan:
            lower, upper = (_end(places, axis, i, keepdim) for i in (0, 1))
            middle = where(e.eq(lower, upper), _end(both, axis, 0, keepdim), middle)
        return Found(middle, below if keepdim else select(places, axis, 0))

    return along(op, x, dim, {}, found)


def _end(x: Tensor, axis: int, i: int, keepdim: bool) -> Tensor:
    return narrow(x, axis, i, 1) if keepdim else select(x, axis, i)


def _median_of_all(x: Tensor, keepdim: bool, skip_nan: bool) -> Tensor:
    flat = reshape(x, (x._h.size,))
    shape = (1,) * x._h.ndim if keepdim else ()
    if not x._h.size:
        return reshape(mean(flat), shape)
    try:
        places = call(kernels.median, flat._h, 0, skip_nan)
        lower, upper = to_lists(places)
    except BatchedOperandError:
        made: Tensor = by_rules("looped")("median", _median_of_all, x, keepdim, skip_nan)
        return made
    if lower == upper:  # an odd number of elements, or a NaN
        places = call(kernels.view_slice, places, (0,), (1,), (1,))
    found = wrap(call(kernels.gather, flat._h, (places,)))
    if flat.dtype.is_floating_point:
        middle = apply(_r.TIED, (flat, found))
    else:
        middle = mean(as_float("median", found))
    return reshape(middle, shape) if shape else middle


_INTERPOLATIONS = ("linear", "lower", "higher", "midpoint", "nearest")


def quantile(
    input: Tensor,
    q: Any,
    dim: Any = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
    **numpy: Any,
) -> Tensor:
    """The q-quantile: the value at rank q (n - 1) in sorted order.

    ``q`` is a number in [0, 1], or a vector of them, which adds a first dimension to the result.
    Between two ranks ``interpolation`` takes a point on the line between their values (``linear``),
    one of them (``lower``, ``higher``) or their mean (``midpoint``). ``nearest`` takes the nearest
    rank, and the even one of two. Without ``dim`` all elements count. NaN gives NaN. Integers
    become float32.

    The gradient goes to the one or two elements in proportion. For ``linear`` a tensor q gets the
    slope of the line times n - 1, and 0 at an exact rank.

    Raises ValueError for q outside [0, 1], for an empty dimension and for other interpolations.

    >>> import minigrad as mg
    >>> mg.quantile(mg.tensor([0.0, 1.0, 4.0]), mg.tensor([0.25, 0.5]))
    tensor([0.5, 1. ])
    """
    return _quantile("quantile", input, q, dim, keepdim, interpolation, numpy, skip_nan=False)


def nanquantile(
    input: Tensor,
    q: Any,
    dim: Any = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
    **numpy: Any,
) -> Tensor:
    """The quantile of all elements except NaN; NaN if there is no other element.

    The rest is as for :func:`quantile`.
    """
    return _quantile("nanquantile", input, q, dim, keepdim, interpolation, numpy, skip_nan=True)


def _quantile(
    op: str,
    x: Any,
    q: Any,
    dim: Any,
    keepdim: bool,
    interpolation: str,
    numpy: dict[str, Any],
    skip_nan: bool,
) -> Tensor:
    x = as_float(op, x)
    dim, keepdim = spelled(op, dim, keepdim, numpy)
    shares = _shares(op, q)
    if interpolation not in _INTERPOLATIONS:
        raise ValueError(
            f"[{op}] interpolation {interpolation!r} is none of {', '.join(_INTERPOLATIONS)}"
        )
    if isinstance(dim, (tuple, list)):
        raise TypeError(f"[{op}] dim must be one dimension or None, not {dim}")
    axes = some_dims(op, dim, x._h.ndim)
    others = [d for d in range(x._h.ndim) if d not in axes]
    outer = [x.shape[d] for d in others]
    n = 1
    for d in axes:
        n *= x.shape[d]
    if not n:
        raise ValueError(f"[{op}] no quantile of nothing: shape {x.shape}, dim {dim}")
    lines = reshape(permute(x, *others, *axes), (*outer, n))
    line_of = _nan_skipped if skip_nan else _at_share
    values = line_of(lines, reshape(shares, (shares._h.size,)), interpolation)
    values = permute(values, len(outer), *range(len(outer)))  # the dimension of q comes first
    if keepdim:
        outer = [1 if d in axes else size for d, size in enumerate(x.shape)]
    return reshape(values, (*shares.shape, *outer))


def _shares(op: str, q: Any) -> Tensor:
    """q as a tensor of at most one dimension. A Python number becomes float64."""
    if isinstance(q, (int, float)):
        q = np.float64(q)
    if not isinstance(q, TensorBase):
        given, q = q, np.asarray(q)
        if q.dtype.kind not in "biuf":
            raise operand_error(op, given)
    shares = widen(asarray(q))
    if not shares.dtype.is_floating_point:
        shares = to(shares, float64)
    if shares._h.ndim > 1:
        raise ValueError(f"[{op}] q has {shares._h.ndim} dimensions, but must have at most one")
    for share in np.ravel(shares.detach().numpy()):
        if not 0 <= share <= 1:
            raise ValueError(f"[{op}] q is {share}, but must be in 0..1")
    return shares


def _at_share(x: Tensor, shares: Tensor, interpolation: str) -> Tensor:
    """The quantiles of the lines along the last axis. The axis of ``shares`` replaces it."""
    axis, count = x._h.ndim - 1, shares._h.size
    rank = to(e.mul(shares, x.shape[axis] - 1), float64)
    ranks: list[float] = to_lists(rank._h)
    below = [int(r) for r in ranks]
    above = [i + (r > i) for i, r in zip(below, ranks, strict=True)]
    if interpolation == "nearest":
        below = above = [round(r) for r in ranks]
    elif interpolation == "lower":
        above = below
    elif interpolation == "higher":
        below = above
    places = apply(
        _s.ORDER_STATISTICS, (x,), ((*below, *above) if above != below else (*below,), True, axis)
    )
    if above == below and rank._edge is None:
        return picked(x, places, axis)
    lower = picked(x, narrow(places, axis, 0, count), axis)
    upper = picked(x, narrow(places, axis, -count, count), axis)
    if interpolation == "midpoint":
        part = asarray([0.5 * (r > i) for i, r in zip(below, ranks, strict=True)])
    else:
        part = e.sub(rank, asarray(below))
    return _between(lower, upper, to(part, x.dtype))


def _nan_skipped(x: Tensor, shares: Tensor, interpolation: str) -> Tensor:
    """:func:`_at_share` for the elements of each line that are not NaN."""
    axis = x._h.ndim - 1
    order = order_of(x, axis)
    count = total(e.eq(x, x), -1, True)
    rank = to(e.mul(shares, to(e.sub(count, 1), shares.dtype)), float64)
    rank = where(e.lt(rank, 0.0), 0.0, rank)  # a line of NaN alone gets rank 0
    below = to(rank, int64)
    part = e.sub(rank, below)
    above = e.add(below, to(e.gt(part, 0.0), int64))
    if interpolation == "nearest":
        half = to(e.mul(to(below, float64), 0.5), int64)
        even = e.eq(e.add(half, half), below)
        upper = where(even, e.gt(part, 0.5), e.ge(part, 0.5))
        below = above = where(upper, above, below)
    elif interpolation == "lower":
        above = below
    elif interpolation == "higher":
        below = above
    elif interpolation == "midpoint":
        part = where(e.gt(part, 0.0), 0.5, part)
    lower = picked(x, picked(order, below, axis), axis)
    if above is below:
        return lower
    upper = picked(x, picked(order, above, axis), axis)
    return _between(lower, upper, to(part, x.dtype))


def _between(lower: Tensor, upper: Tensor, part: Tensor) -> Tensor:
    """lower + part * (upper - lower). An infinite value with a weight above 0 is the result."""
    if part._edge is None:
        return apply(_s.BETWEEN, (lower, upper), (part._h,))
    gap = e.sub(upper, lower)
    mixed = e.add(e.scale(e.sub(1.0, part), lower), e.scale(part, upper))
    return where(e.eq(e.sub(gap, gap), 0.0), e.add(lower, e.mul(part, gap)), mixed)
