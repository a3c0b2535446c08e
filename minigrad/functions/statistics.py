"""Functions for statistics of samples: covariances, histograms and modes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from minigrad.functions.arguments import integer, real, spelled, tensor_operand
from minigrad.functions.counting import bincount
from minigrad.functions.creation import arange, linspace, zeros
from minigrad.functions.diagonals import diagonal
from minigrad.functions.elementwise import clamp, div, ge, le, logical_and, mul, ne, sqrt, sub
from minigrad.functions.products import matmul
from minigrad.functions.reductions import Found, amax, amin, argmax, as_float, found_at, mean
from minigrad.functions.reductions import sum as total
from minigrad.functions.scans import along, cummax, diff
from minigrad.functions.selection import masked_select, where
from minigrad.functions.shaping import cat, narrow, ravel, reshape, squeeze, t, to, unsqueeze
from minigrad.functions.sorting import order_of, searchsorted
from minigrad.runtime.dtypes import int64
from minigrad.tape.tensor_base import TensorBase

if TYPE_CHECKING:
    from minigrad._tensor import Tensor

__all__ = ["corrcoef", "cov", "histogram", "mode"]

# ---- covariances ---------------------------------------------------------------------------------


def cov(
    input: Tensor,
    *,
    correction: int = 1,
    fweights: Tensor | None = None,
    aweights: Tensor | None = None,
) -> Tensor:
    """The covariance matrix of variables, which are rows. Observations are columns.

    A vector is one variable, whose variance is a 0-d tensor. Sums are divided by the number of
    observations less ``correction``. ``fweights`` are integers that say how often each observation
    occurs. ``aweights`` are weights of observations. Integers give float32.

    Raises ValueError for more than 2 dimensions. Raises it also for weights that are negative, all
    0, or of another number than the observations. Raises TypeError for ``fweights`` that are no
    integers.

    >>> import minigrad as mg
    >>> mg.cov(mg.tensor([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]]))
    tensor([[ 1., -1.],
            [-1.,  1.]])
    """
    x = as_float("cov", input)
    if x._h.ndim > 2:
        raise ValueError(f"[cov] input has {x._h.ndim} dimensions, but at most 2 are possible")
    if x._h.ndim < 2:
        x = reshape(x, (1, -1))
    less = integer("cov", "correction", correction)
    repeats = None if fweights is None else _weights("fweights", fweights, x)
    return covariance(
        x, less, repeats, None if aweights is None else _weights("aweights", aweights, x)
    )


def _weights(name: str, given: Any, x: Any) -> Any:
    """Check that there is one weight for each observation, and cast the weights to x's dtype."""
    w = tensor_operand("cov", given)
    if w.dtype.is_floating_point == (name == "fweights"):
        kind = "integers" if name == "fweights" else "floats"
        raise TypeError(f"[cov] {name} holds {w.dtype.name}, but must hold {kind}")
    if w.shape != x.shape[1:]:
        raise ValueError(f"[cov] {name} of shape {w.shape} for {x.shape[1]} observations")
    if w._h.size and float(amin(w).item()) < 0:
        raise ValueError(f"[cov] {name} cannot be negative")
    return to(w, x.dtype)


def covariance(x: Any, less: int, repeats: Any, weights: Any) -> Any:
    """The covariances of rows, with weights of columns.

    ``less`` is subtracted from their number.
    """
    count: Any = x.shape[1]
    squares: Any = 1.0
    w = repeats
    if weights is not None:
        w = weights if w is None else mul(w, weights)
    if w is None:
        middle = mean(x, 1, keepdim=True)
    else:
        count = total(w)
        middle = div(total(mul(x, w), 1, keepdim=True), count)
        squares = 1.0 if weights is None else div(total(mul(w, weights)), count)
    apart = sub(x, middle)
    n = count - less * squares
    weighed = apart if w is None else mul(apart, w)
    divisor = max(n, 0) if w is None else clamp(n, min=0)
    return squeeze(div(matmul(apart, t(weighed)), divisor))


def corrcoef(input: Tensor) -> Tensor:
    """The correlation matrix of variables, which are rows.

    A correlation is a covariance divided by both standard deviations, clipped to [-1, 1]. A single
    variable gives 1, or NaN if it is constant.

    >>> import minigrad as mg
    >>> mg.corrcoef(mg.tensor([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]]))
    tensor([[ 1., -1.],
            [-1.,  1.]])
    """
    x = as_float("corrcoef", input)
    if x._h.ndim > 2:
        raise ValueError(f"[corrcoef] input has {x._h.ndim} dimensions, but at most 2 are possible")
    return correlations(cov(x))


def correlations(c: Any) -> Any:
    """Convert covariances to correlations."""
    if not c._h.ndim:
        return div(c, c)
    deviations = sqrt(diagonal(c))
    return clamp(div(div(c, unsqueeze(deviations, 1)), unsqueeze(deviations, 0)), -1, 1)


# ---- counts --------------------------------------------------------------------------------------


class Histogram(NamedTuple):
    """The number or weight of elements in each bin, and the edges of the bins."""

    hist: Tensor
    bin_edges: Tensor


def histogram(
    input: Tensor,
    bins: Any = 100,
    *,
    range: Any = None,  # noqa: A002
    weight: Tensor | None = None,
    density: bool = False,
) -> Histogram:
    """The number of elements in each bin, in the input's dtype, and the edges of the bins.

    ``bins`` is a number of equal bins over ``range``, or a vector of rising edges. ``range`` is by
    default from the smallest element to the largest. Only the last bin includes its right edge.
    Elements outside and NaN are not counted. ``weight`` has a weight for each element. With
    ``density`` the integral over the bins is 1. There is no gradient.

    Raises TypeError unless the dtype is a float, ValueError for no bins or a range that is not
    finite.

    >>> import minigrad as mg
    >>> mg.histogram(mg.tensor([0.0, 1.0, 1.0, 3.0]), 3)
    Histogram(hist=tensor([1., 2., 1.]), bin_edges=tensor([0., 1., 2., 3.]))
    """
    x = ravel(tensor_operand("histogram", input)).detach()
    if not x.dtype.is_floating_point:
        raise TypeError(f"[histogram] not offered for {x.dtype.name}: use histc, or to(float32)")
    edges = _given_edges(bins, x) if isinstance(bins, TensorBase) else _edges(bins, range, x)
    count = edges._h.size - 1
    inside = logical_and(ge(x, edges[0]), le(x, edges[-1]))
    kept = masked_select(x, inside)
    place = clamp(sub(searchsorted(edges, kept, right=True), 1), max=count - 1)
    if weight is None:
        found = to(bincount(place, minlength=count), x.dtype)
    else:
        w = tensor_operand("histogram", weight).detach()
        if w.shape != input.shape:
            raise ValueError(f"[histogram] a weight of shape {w.shape} for {input.shape}")
        found = to(bincount(place, masked_select(ravel(w), inside), count), x.dtype)
    if density:
        found = div(div(found, diff(edges)), total(found))
    return Histogram(found, edges)


def _given_edges(bins: Any, x: Any) -> Any:
    edges = to(bins.detach(), x.dtype)
    if edges._h.ndim != 1 or edges._h.size < 2:
        raise ValueError(f"[histogram] edges of shape {edges.shape}: a vector of 2 or more")
    return edges


def _edges(bins: Any, limits: Any, x: Any) -> Any:
    """The edges of ``bins`` equal bins."""
    count = integer("histogram", "bins", bins, 1)
    if limits is not None:
        low, high = [real("histogram", "a limit", v) for v in limits]
    elif x._h.size:
        low, high = float(amin(x).item()), float(amax(x).item())
    else:
        low, high = 0.0, 0.0
    if low == high:
        low, high = (low - 0.5, high + 0.5) if limits is not None or x._h.size else (0.0, 1.0)
    if not (low < high and high - low < float("inf")):
        raise ValueError(f"[histogram] [{low}, {high}] is no finite range: give range=(low, high)")
    return linspace(low, high, count + 1, dtype=x.dtype)


def mode(input: Tensor, dim: int = -1, keepdim: bool = False, **numpy: Any) -> Found:
    """The most frequent values along a dimension, and the last index of each as int64.

    If several are equally frequent, the smallest is taken. NaN differs from NaN. The gradient goes
    to the element at the index.

    >>> import minigrad as mg
    >>> mg.mode(mg.tensor([3.0, 1.0, 3.0, 2.0]))
    Found(values=tensor(3.), indices=tensor(2))
    """
    dim, keepdim = spelled("mode", None if "axis" in numpy and dim == -1 else dim, keepdim, numpy)

    def found(line: Tensor, axis: int) -> Found:
        if not line.shape[axis]:
            raise ValueError(f"[mode] dim {dim} of shape {line.shape} has no elements")
        return found_at(line, _most_frequent(line.detach(), axis), axis, keepdim)

    return along("mode", tensor_operand("mode", input), dim, {}, found)


def _most_frequent(x: Tensor, axis: int) -> Tensor:
    """The position of the last of the most frequent elements, with a dimension of size 1."""
    order = order_of(x, axis)
    line = x.gather(axis, order)
    n = line.shape[axis]
    shape = tuple([n if d == axis else 1 for d in range(line._h.ndim)])
    place = reshape(arange(n), shape)
    fresh = ne(narrow(line, axis, 1, n - 1), narrow(line, axis, 0, n - 1))
    begin = where(fresh, narrow(place, axis, 1, n - 1), 0)
    first = narrow(begin, axis, 0, 0) if n == 1 else begin
    lead = zeros(tuple([1 if d == axis else m for d, m in enumerate(line.shape)]), dtype=int64)
    start = cummax(cat([lead, first], axis), axis).values
    most = argmax(sub(place, start), axis, keepdim=True)
    return order.gather(axis, most)
