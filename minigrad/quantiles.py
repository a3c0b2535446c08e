"""Order statistics: medians and quantiles, as functions.

NaN is the largest of all. The gradient goes to the elements that the result was made of.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from minigrad import elementwise as e
from minigrad._numpy import np
from minigrad.arguments import some_dims, spelled, tensor_operand
from minigrad.creation import asarray, full
from minigrad.dispatch import TensorBase, apply, operand_error
from minigrad.dtypes import float64, int64
from minigrad.ops import reduction as _r
from minigrad.ops import scan as _s
from minigrad.reductions import Found, as_float, mean
from minigrad.reductions import sum as total
from minigrad.scans import along
from minigrad.selection import gather_rows, picked, where
from minigrad.shaping import narrow, permute, reshape, to
from minigrad.sorting import order_of, unkept

if TYPE_CHECKING:
    from minigrad._tensor import Tensor

__all__ = [
    "median",
    "nanmedian",
    "nanquantile",
    "quantile",
]


def median(x: Tensor, dim: Any = None, keepdim: bool = False, **numpy: Any) -> Any:
    """The middle value in sorted order; of an even number of them the mean of the middle two.

    ``median(x)``: the median of all, which all elements that equal a middle value share the
    gradient of evenly. ``median(x, dim)``: values, and indices as int64; of an even number the
    index is that of the lower middle element, while the gradient goes to both, a half each. This is
    NumPy's median; PyTorch's is the lower of the middle two. NaN wherever there is a NaN, and of
    nothing. Integers give float32.

    >>> import minigrad as mg
    >>> mg.median(mg.tensor([4.0, 1.0, 3.0, 2.0]))
    tensor(2.5)
    """
    return _median("median", x, dim, keepdim, numpy, skip_nan=False)


def nanmedian(x: Tensor, dim: Any = None, keepdim: bool = False, **numpy: Any) -> Any:
    """The median of all elements but NaN; NaN where there is no other. As median else."""
    return _median("nanmedian", x, dim, keepdim, numpy, skip_nan=True)


def _median(op: str, x: Any, dim: Any, keepdim: bool, numpy: dict[str, Any], skip_nan: bool) -> Any:
    x = tensor_operand(op, x)
    dim, keepdim = spelled(op, dim, keepdim, numpy)
    if dim is None:
        return _median_of_all(x, keepdim, skip_nan)

    def found(t: Tensor, axis: int) -> Found:
        if not t.shape[axis]:
            raise ValueError(f"[{op}] no index in an empty dim {axis} of shape {t.shape}")
        below, above = _middle(t, axis, skip_nan)
        lower = picked(t, below, axis)
        upper = lower if above is below else picked(t, above, axis)
        return unkept(Found(_mean_of_two(lower, upper, below, above), below), axis, keepdim)

    return along(op, x, dim, {}, found)


def _median_of_all(x: Tensor, keepdim: bool, skip_nan: bool) -> Tensor:
    flat = reshape(x, (x._h.size,))
    shape = (1,) * x._h.ndim if keepdim else ()
    if not x._h.size:
        return reshape(mean(flat), shape)
    below, above = _middle(flat, 0, skip_nan)
    lower = _tied(flat, below)
    upper = lower if above is below else _tied(flat, above)
    return reshape(_mean_of_two(lower, upper, below, above), shape)


def _tied(flat: Tensor, place: Tensor) -> Tensor:
    """The element at a place, as a number, whose gradient all that equal it share."""
    found = gather_rows(flat.detach(), (reshape(place, ()),))
    return apply(_r.TIED, (flat, found)) if flat.dtype.is_floating_point else found


def _middle(x: Tensor, axis: int, skip_nan: bool) -> tuple[Tensor, Tensor]:
    """The places of the lower and the upper middle element along an axis, which stays with size 1.

    They are the same for an odd number of elements; and where a NaN counts, both are that NaN's.
    """
    places = apply(_s.MIDDLE, (x,), (axis, skip_nan))
    lower = narrow(places, axis, 0, 1)
    one = x.shape[axis] % 2 and not skip_nan
    return lower, lower if one else narrow(places, axis, 1, 1)


def _mean_of_two(lower: Tensor, upper: Tensor, below: Tensor, above: Tensor) -> Tensor:
    """(lower + upper) / 2, and lower itself where the two are the same element."""
    lower = as_float("median", lower)
    if above is below:
        return lower
    upper = as_float("median", upper)
    mean_of = e.mul(e.add(lower, upper), 0.5)
    return where(e.eq(below, above), lower, mean_of)  # type: ignore[no-any-return]


_INTERPOLATIONS = ("linear", "lower", "higher", "midpoint", "nearest")


def quantile(
    x: Tensor,
    q: Any,
    dim: Any = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
    **numpy: Any,
) -> Tensor:
    """What a share q of the elements does not exceed: the value at rank q (n - 1) in sorted order.

    ``q`` is a number in [0, 1], or several, which then are the first dimension of the result.
    Between two ranks ``interpolation`` takes the line between their values (``linear``), either
    (``lower``, ``higher``), their mean (``midpoint``), or that of the nearest rank, the even one of
    two (``nearest``). Without a dim, of all elements. NaN where there is a NaN. The gradient goes
    to the one or two elements in their parts, and for ``linear`` to a tensor q: the slope of that
    line times n - 1, and 0 at a rank itself. Integers become float32.

    Raises ValueError for q outside [0, 1], for an empty dimension and for other interpolations.

    >>> import minigrad as mg
    >>> mg.quantile(mg.tensor([0.0, 1.0, 4.0]), mg.tensor([0.25, 0.5]))
    tensor([0.5, 1. ])
    """
    return _quantile("quantile", x, q, dim, keepdim, interpolation, numpy, skip_nan=False)


def nanquantile(
    x: Tensor,
    q: Any,
    dim: Any = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
    **numpy: Any,
) -> Tensor:
    """The quantile of all elements but NaN; NaN where there is no other. As quantile else."""
    return _quantile("nanquantile", x, q, dim, keepdim, interpolation, numpy, skip_nan=True)


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
    kept = [d for d in range(x._h.ndim) if d not in axes]
    outer = [x.shape[d] for d in kept]
    n = 1
    for d in axes:
        n *= x.shape[d]
    if not n:
        raise ValueError(f"[{op}] no quantile of nothing: shape {x.shape}, dim {dim}")
    lines = reshape(permute(x, *kept, *axes), (*outer, n))
    values = _at_share(lines, reshape(shares, (shares._h.size,)), interpolation, skip_nan)
    values = permute(values, len(outer), *range(len(outer)))  # the shares come first
    if keepdim:
        outer = [1 if d in axes else size for d, size in enumerate(x.shape)]
    return reshape(values, (*shares.shape, *outer))


def _shares(op: str, q: Any) -> Tensor:
    """q as a tensor of at most one dimension: a plain number in double precision."""
    if isinstance(q, (int, float)):
        q = np.float64(q)
    if not isinstance(q, TensorBase):
        given, q = q, np.asarray(q)
        if q.dtype.kind not in "biuf":
            raise operand_error(op, given)
    shares = asarray(q)
    if not shares.dtype.is_floating_point:
        shares = to(shares, float64)
    if shares._h.ndim > 1:
        raise ValueError(f"[{op}] q has {shares._h.ndim} dimensions, but must have at most one")
    for share in np.ravel(shares.detach().numpy()):
        if not 0 <= share <= 1:
            raise ValueError(f"[{op}] q is {share}, but must be in 0..1")
    return shares


def _at_share(x: Tensor, shares: Tensor, interpolation: str, skip_nan: bool) -> Tensor:
    """The quantiles of the lines along the last axis, which becomes that of the shares."""
    axis = x._h.ndim - 1
    order = order_of(x, axis)
    last = x.shape[-1] - 1
    count = total(e.eq(x, x), -1, True)
    top = to(e.sub(count, 1) if skip_nan else full((1,), last), shares.dtype)
    rank = to(e.mul(shares, top), float64)
    rank = where(e.lt(rank, 0.0), 0.0, rank)  # a line without numbers has rank 0
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
    if not skip_nan:  # where a NaN is, it is last
        below, above = [where(e.le(count, last), last, place) for place in (below, above)]
    lower = picked(x, picked(order, below, axis), axis)
    if above is below:
        return lower
    upper = picked(x, picked(order, above, axis), axis)
    return _between(lower, upper, to(part, x.dtype))


def _between(lower: Tensor, upper: Tensor, part: Tensor) -> Tensor:
    """lower + part * (upper - lower); where one is infinite, what has a part in it decides."""
    gap = e.sub(upper, lower)
    mixed = e.add(e.scale(e.sub(1.0, part), lower), e.scale(part, upper))
    return where(e.eq(e.sub(gap, gap), 0.0), e.add(lower, e.mul(part, gap)), mixed)  # type: ignore[no-any-return]
