"""Functions that reduce one, several or all dimensions.

``dim`` is a dimension, a tuple of dimensions, or None for all. ``axis`` and ``keepdims`` are
accepted for dim and keepdim. Sums are computed in blocks and pairwise along every dimension. Their
bits are the same for any memory layout and number of threads.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Sequence
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple, overload

from minigrad.functions import elementwise as e
from minigrad.functions.arguments import one_dim, real, renamed, some_dims, spelled, yes_or_no
from minigrad.functions.arguments import tensor_operand as operand
from minigrad.functions.selection import along, handles, picked, where
from minigrad.functions.shaping import movedim, reshape, stored_as, to, widen
from minigrad.ops import reduction as _r
from minigrad.ops.indexing import PICK
from minigrad.ops.shape import DIAGONAL
from minigrad.runtime.dtypes import float32
from minigrad.runtime.native import call, kernels
from minigrad.tape.apply import apply, of_all
from minigrad.tape.tensor_base import TensorBase, wrap

if TYPE_CHECKING:
    from minigrad._tensor import Tensor

__all__ = [
    "all",
    "amax",
    "amin",
    "aminmax",
    "any",
    "argmax",
    "argmin",
    "count_nonzero",
    "dist",
    "logsumexp",
    "max",
    "mean",
    "min",
    "nanmean",
    "nansum",
    "norm",
    "prod",
    "std",
    "std_mean",
    "sum",
    "trace",
    "var",
    "var_mean",
    "vector_norm",
]


_OF_ALL = {"sum": of_all(_r.SUM, kernels.sum), "mean": of_all(_r.MEAN, kernels.mean)}


def _reduced(
    row: Any, x: Any, dim: Any, keepdim: Any, numpy: dict[str, Any], dtype: Any = None
) -> Tensor:
    """Apply a row of the op table along the given dimensions, after a cast to ``dtype`` if any."""
    if dim is dtype is None and row.name in _OF_ALL and keepdim is False and not numpy:
        out = _OF_ALL[row.name](x)
        if out is not NotImplemented:
            return out
    if not isinstance(x, TensorBase):
        x = operand(row.name, x)
    if dtype is not None:
        x = to(x, dtype)
    if numpy or type(keepdim) is not bool:
        dim, keepdim = spelled(row.name, dim, keepdim, numpy)
    y = apply(row, (x,), (some_dims(row.name, dim, x._h.ndim), keepdim))
    return y if dtype is None else stored_as(y, dtype)


def _over(
    op: str, x: Tensor, dim: Any, keepdim: Any, numpy: dict[str, Any]
) -> tuple[tuple[int, ...], bool]:
    """The dimensions and keepdim of a function that is made of other reductions."""
    dim, keepdim = spelled(op, dim, keepdim, numpy)
    return some_dims(op, dim, x._h.ndim), keepdim


def _cast(op: str, x: Any, dtype: Any) -> Tensor:
    """x as a tensor, cast to ``dtype`` if it is given."""
    x = operand(op, x)
    return x if dtype is None else to(x, dtype)


def as_float(op: str, x: Any, dtype: Any = None) -> Tensor:
    """x as a float tensor. Integers and booleans become float32 unless a dtype is given."""
    x = widen(_cast(op, x, dtype))
    return x if x.dtype.is_floating_point else to(x, float32)


# ---- sums and products ---------------------------------------------------------------------------


def sum(
    input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None, **numpy: Any
) -> Tensor:
    """The sum x1 + x2 + ... + xn, which is 0 for no elements.

    bool and int64 give int64, which wraps around. With ``dtype`` the input is cast first. In
    float32 the sum of n terms of one sign is within 11 + log2(n / 128) ULP.

    >>> import minigrad as mg
    >>> mg.sum(mg.tensor([[1.0, 2.0], [3.0, 4.0]]), dim=0)
    tensor([4., 6.])
    """
    return _reduced(_r.SUM, input, dim, keepdim, numpy, dtype)


def mean(
    input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None, **numpy: Any
) -> Tensor:
    """The mean (x1 + ... + xn) / n, which is NaN for no elements.

    The mean of bool and int64 is float32, from an exact sum. With ``dtype`` the input is cast
    first.
    """
    return _reduced(_r.MEAN, input, dim, keepdim, numpy, dtype)


def prod(
    input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None, **numpy: Any
) -> Tensor:
    """The product x1 * x2 * ... * xn, which is 1 for no elements.

    bool and int64 give int64, which wraps around. With ``dtype`` the input is cast first. The
    gradient is the product of the other elements, computed without division. Any number of zeros is
    therefore right.
    """
    return _reduced(_r.PROD, input, dim, keepdim, numpy, dtype)


def nansum(
    input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None, **numpy: Any
) -> Tensor:
    """The sum of all elements except NaN. NaN elements get a gradient of 0."""
    x = _cast("nansum", input, dtype)
    if x.dtype.is_floating_point:
        x = where(e.eq(x, x), x, 0.0)
    return stored_as(sum(x, *_over("nansum", x, dim, keepdim, numpy)), dtype)


def nanmean(
    input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None, **numpy: Any
) -> Tensor:
    """The mean of all elements except NaN. It is NaN if there is no other element.

    NaN elements get a gradient of 0.
    """
    x = as_float("nanmean", input, dtype)
    dim, keepdim = _over("nanmean", x, dim, keepdim, numpy)
    counted = to(e.eq(x, x), x.dtype)
    return stored_as(e.div(nansum(x, dim, keepdim), sum(counted, dim, keepdim)), dtype)


def logsumexp(input: Tensor, dim: Any = None, keepdim: bool = False, **numpy: Any) -> Tensor:
    """log(exp(x1) + ... + exp(xn)) without overflow. It is -inf for no elements.

    The gradient is exp(input - y). If all elements are -inf, the result is -inf and the gradient 0.
    Elements of +inf get a gradient of 1 each, and all other elements 0. Integers become float32.
    """
    return _reduced(_r.LOGSUMEXP, as_float("logsumexp", input), dim, keepdim, numpy)


def trace(input: Tensor) -> Tensor:
    """The sum of a matrix's diagonal. Raises ValueError unless there are two dimensions."""
    x = operand("trace", input)
    if x._h.ndim != 2:
        raise ValueError(f"[trace] of a matrix, not of shape {x.shape}")
    return sum(apply(DIAGONAL, (x,), (0,)))


# ---- extrema -------------------------------------------------------------------------------------


def amax(input: Tensor, dim: Any = None, keepdim: bool = False, **numpy: Any) -> Tensor:
    """The maximum. Ties share the gradient evenly. NaN counts as the largest value.

    ValueError, naming the dimension, where one of size 0 is reduced.
    """
    return _reduced(_r.AMAX, input, dim, keepdim, numpy)


def amin(input: Tensor, dim: Any = None, keepdim: bool = False, **numpy: Any) -> Tensor:
    """The minimum. Ties share the gradient evenly. NaN counts as the smallest value.

    ValueError, naming the dimension, where one of size 0 is reduced.
    """
    return _reduced(_r.AMIN, input, dim, keepdim, numpy)


if TYPE_CHECKING:

    class Extrema(NamedTuple):
        """A minimum and a maximum."""

        min: Tensor
        max: Tensor

    class Found(NamedTuple):
        """Values along a dimension, and the places in it where they were found."""

        values: Tensor
        indices: Tensor

else:
    # collections.namedtuple, since typing's NamedTuple takes 0.2 ms of every import.

    class Extrema(namedtuple("Extrema", "min max")):
        """A minimum and a maximum."""

        __slots__ = ()

    class Found(namedtuple("Found", "values indices")):
        """Values along a dimension, and the places in it where they were found."""

        __slots__ = ()


def aminmax(input: Tensor, *, dim: Any = None, keepdim: bool = False, **numpy: Any) -> Extrema:
    """The minimum and the maximum, as a pair (min, max). Ties share the gradient evenly."""
    x = operand("aminmax", input)
    dim, keepdim = _over("aminmax", x, dim, keepdim, numpy)
    return Extrema(amin(x, dim, keepdim), amax(x, dim, keepdim))


def _extremum(op: str, x: Any, dim: Any, keepdim: bool, numpy: dict[str, Any]) -> Any:
    whole, at, pair = (amax, argmax, e.maximum) if op == "max" else (amin, argmin, e.minimum)
    if "other" in numpy:
        dim = numpy.pop("other")
    if numpy or type(keepdim) is not bool:
        dim, keepdim = spelled(op, dim, keepdim, numpy)
    if isinstance(dim, TensorBase):
        return pair(x, dim)
    x = operand(op, x)
    if dim is None or isinstance(dim, (tuple, list)):
        try:
            return whole(x, dim, keepdim)
        except ValueError as error:  # of nothing
            raise renamed(op, error) from None
    if not x._h.ndim:  # a 0-d tensor counts as a line of one element
        return _extremum(op, reshape(x, (1,)), dim, False, {})
    axis = one_dim(op, dim, x._h.ndim)
    return found_at(x, at(x, axis, True), axis, keepdim)


def found_at(x: Tensor, indices: Tensor, axis: int, keepdim: bool) -> Found:
    """The element at one index of each line of x. ``keepdim`` keeps the axis with size 1."""
    if keepdim:
        return Found(picked(x, indices, axis), indices)
    index = handles(along(indices, axis), x)
    kept = x.shape[:axis] + x.shape[axis + 1 :]
    flat = call(kernels.view_reshape, indices._h, kept)
    return Found(apply(PICK, (x,), (index, kept)), wrap(flat))


@overload
def max(input: Any, dim: int, keepdim: bool = False, *, keepdims: bool = False) -> Found: ...
@overload
def max(input: Any, *, axis: int, keepdims: bool = False) -> Found: ...
@overload
def max(
    input: Any,
    dim: Tensor | Sequence[int] | None = None,
    keepdim: bool = False,
    *,
    axis: Sequence[int] | None = None,
    keepdims: bool = False,
    other: Tensor | None = None,
) -> Tensor: ...
def max(input: Any, dim: Any = None, keepdim: bool = False, **numpy: Any) -> Any:
    """The maximum of all elements, along a dimension with its indices, or of two tensors.

    ``max(input)`` is the maximum of all elements. Ties share the gradient evenly. ``max(input,
    dim)`` gives values and indices. The gradient goes to the element at the index. ``max(a, b)`` is
    the elementwise maximum.

    The index is that of the first of ties, or of the first NaN. A tuple of dims gives values only,
    like amax.

    >>> import minigrad as mg
    >>> mg.max(mg.tensor([[1.0, 3.0], [5.0, 2.0]]), dim=1)
    Found(values=tensor([3., 5.]), indices=tensor([1, 0]))
    """
    return _extremum("max", input, dim, keepdim, numpy)


@overload
def min(input: Any, dim: int, keepdim: bool = False, *, keepdims: bool = False) -> Found: ...
@overload
def min(input: Any, *, axis: int, keepdims: bool = False) -> Found: ...
@overload
def min(
    input: Any,
    dim: Tensor | Sequence[int] | None = None,
    keepdim: bool = False,
    *,
    axis: Sequence[int] | None = None,
    keepdims: bool = False,
    other: Tensor | None = None,
) -> Tensor: ...
def min(input: Any, dim: Any = None, keepdim: bool = False, **numpy: Any) -> Any:
    """The minimum of all elements, along a dimension with its indices, or of two tensors.

    Arguments, ties and NaN are as for :func:`max`.
    """
    return _extremum("min", input, dim, keepdim, numpy)


def _arg(row: Any, x: Any, dim: Any, keepdim: bool, numpy: dict[str, Any]) -> Tensor:
    x = operand(row.name, x)
    if numpy or type(keepdim) is not bool:
        dim, keepdim = spelled(row.name, dim, keepdim, numpy)
    axis = None if dim is None else one_dim(row.name, dim, x._h.ndim or 1)
    return apply(row, (x,), (axis if x._h.ndim else None, keepdim))


def argmax(input: Tensor, dim: int | None = None, keepdim: bool = False, **numpy: Any) -> Tensor:
    """The index of the maximum as int64: the first of ties, or the first NaN.

    Without a dimension it is the index in the flattened input. The result never requires a
    gradient.
    """
    return _arg(_r.ARGMAX, input, dim, keepdim, numpy)


def argmin(input: Tensor, dim: int | None = None, keepdim: bool = False, **numpy: Any) -> Tensor:
    """The index of the minimum as int64: the first of ties, or the first NaN.

    See :func:`argmax`.
    """
    return _arg(_r.ARGMIN, input, dim, keepdim, numpy)


# ---- truth ---------------------------------------------------------------------------------------


def all(input: Tensor, dim: Any = None, keepdim: bool = False, **numpy: Any) -> Tensor:
    """True if all elements are true (not 0). NaN is true. For no elements the result is True."""
    return _reduced(_r.ALL, input, dim, keepdim, numpy)


def any(input: Tensor, dim: Any = None, keepdim: bool = False, **numpy: Any) -> Tensor:
    """True if any element is true (not 0). NaN is true. For no elements the result is False."""
    return _reduced(_r.ANY, input, dim, keepdim, numpy)


def count_nonzero(input: Tensor, dim: Any = None, keepdim: bool = False, **numpy: Any) -> Tensor:
    """The number of elements that are not 0, as int64. NaN counts."""
    x = operand("count_nonzero", input)
    if dim is None and keepdim is False and not numpy:
        return sum(e.ne(x, 0))
    return sum(e.ne(x, 0), *_over("count_nonzero", x, dim, keepdim, numpy))


# ---- spread --------------------------------------------------------------------------------------


def _variance(
    row: Any, op: str, x: Any, dim: Any, unbiased: bool | None, keepdim: Any, given: dict[str, Any]
) -> tuple[Tensor, tuple[int, ...], bool]:
    """The variance or the standard deviation, with the parsed dimensions and keepdim."""
    x = operand(op, x)
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    named = [k for k in ("correction", "ddof") if given.get(k) is not None]
    if len(named) + (unbiased is not None) > 1:
        raise TypeError(f"[{op}] give one of correction, ddof and unbiased")
    correction = 1.0 if unbiased is None else float(yes_or_no(op, "unbiased", unbiased))
    if named:
        correction = real(op, named[0], given[named[0]])
    numpy = {k: v for k, v in given.items() if k not in ("correction", "ddof")}
    axes, keepdim = _over(op, x, dim, keepdim, numpy)
    return apply(row, (x,), (axes, keepdim, correction)), axes, keepdim


def var(
    input: Tensor,
    dim: Any = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    **given: Any,
) -> Tensor:
    """The variance sum((input - mean)^2) / (n - correction), by default with ``correction=1``.

    The default is PyTorch's. NumPy's ``ddof`` is accepted for ``correction``. ``unbiased`` True or
    False means a correction of 1 or 0, also in place of dim: ``var(input, False)``. Deviations are
    taken from the mean of a block, so that a large mean costs no digits.

    The result is NaN if n and the correction are 1. It is inf, as in NumPy, if the correction is
    larger than n. The input must be a float.

    >>> import minigrad as mg
    >>> x = mg.tensor([1.0, 2.0, 3.0, 4.0])
    >>> x.var(correction=0).item(), x.var(ddof=0).item(), x.var(False).item()
    (1.25, 1.25, 1.25)
    """
    return _variance(_r.VAR, "var", input, dim, unbiased, keepdim, given)[0]


def std(
    input: Tensor,
    dim: Any = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    **given: Any,
) -> Tensor:
    """The standard deviation, the square root of the variance, by default with ``correction=1``.

    It is sqrt(sum((input - mean)^2) / (n - correction)). Arguments and edge cases are as for var.
    If all elements are equal, the result and its derivatives are 0.
    """
    return _variance(_r.STD, "std", input, dim, unbiased, keepdim, given)[0]


def var_mean(
    input: Tensor,
    dim: Any = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    **given: Any,
) -> tuple[Tensor, Tensor]:
    """The variance, by default with ``correction=1``, and the mean. Arguments are as for var."""
    spread, axes, keep = _variance(_r.VAR, "var_mean", input, dim, unbiased, keepdim, given)
    return spread, mean(input, axes, keep)


def std_mean(
    input: Tensor,
    dim: Any = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    **given: Any,
) -> tuple[Tensor, Tensor]:
    """The standard deviation, by default with ``correction=1``, and the mean."""
    spread, axes, keep = _variance(_r.STD, "std_mean", input, dim, unbiased, keepdim, given)
    return spread, mean(input, axes, keep)


# ---- norms ---------------------------------------------------------------------------------------


def vector_norm(
    x: Tensor,
    ord: float = 2,  # noqa: A002 - PyTorch's and NumPy's name
    dim: Any = None,
    keepdim: bool = False,
    *,
    dtype: Any = None,
    **numpy: Any,
) -> Tensor:
    """The p-norm (|x1|^p + ... + |xn|^p)^(1/p) for ``p = ord``, of all elements or along dims.

    p may be any number: inf gives the largest |x|, -inf the smallest, 0 the number of elements that
    are not 0. Ties for an extremum share the gradient evenly. An element of 0 gets a gradient of 0,
    the subgradient of least norm, and so does a vector of zeros. Second derivatives there are 0
    too. For p = 2 this holds only for a vector of zeros. Integers become float32.

    Raises ValueError for the largest or smallest of no elements. All other norms of no elements are
    0.
    """
    return stored_as(_norm("vector_norm", x, ord, dim, keepdim, dtype, numpy), dtype)


def norm(
    input: Tensor,
    p: float | str | None = "fro",
    dim: Any = None,
    keepdim: bool = False,
    dtype: Any = None,
    **numpy: Any,
) -> Tensor:
    """The p-norm (|x1|^p + ... + |xn|^p)^(1/p), as vector_norm. The default ``"fro"`` is p = 2.

    ``"nuc"`` is the sum of a matrix's singular values, or of the matrices in two dims: see
    ``linalg.matrix_norm``. Raises ValueError for other names, and for ``"nuc"`` with other than two
    dims.

    >>> import minigrad as mg
    >>> mg.norm(mg.tensor([3.0, -4.0])).item(), mg.norm(mg.tensor([3.0, -4.0]), 1).item()
    (5.0, 7.0)
    """
    if isinstance(p, str) and p == "nuc":
        return stored_as(_nuclear(input, dim, keepdim, dtype, numpy), dtype)
    order = 2.0 if p is None or p == "fro" else p
    made = _norm("norm", input, order, dim, keepdim, dtype, numpy)
    return made if dtype is None else stored_as(made, dtype)


def dist(input: Tensor, other: Any, p: float = 2.0) -> Tensor:
    """The p-norm of ``input - other``, broadcast together, as one number.

    >>> import minigrad as mg
    >>> mg.dist(mg.tensor([3.0, 0.0]), mg.tensor([0.0, 4.0])).item()
    5.0
    """
    return norm(e.sub(input, other), p)


def _nuclear(x: Any, dim: Any, keepdim: Any, dtype: Any, numpy: dict[str, Any]) -> Tensor:
    from minigrad.ops.factorisation import SINGULAR_VALUES  # rare: loaded when it is used

    x = as_float("norm", x, dtype)
    dims, keepdim = _over("norm", x, dim, keepdim, numpy)
    if len(dims) != 2:
        raise ValueError(
            f"[norm] 'nuc' is a norm of matrices, not over the {len(dims)} dims {dims} of shape "
            f"{x.shape}: name two dims"
        )
    values = apply(SINGULAR_VALUES, (movedim(x, dims, (-2, -1)),))
    made = vector_norm(values, 1, -1)
    if keepdim:
        kept = [1 if d in dims else n for d, n in enumerate(x.shape)]
        made = reshape(made, kept)
    return made


def _norm(
    op: str, x: Any, p: Any, dim: Any, keepdim: bool, dtype: Any, numpy: dict[str, Any]
) -> Tensor:
    if isinstance(p, str):
        raise ValueError(  # noqa: TRY004 - other names are values that linalg knows
            f"[{op}] {p!r} is no vector norm: give a number or inf, "
            f"or see linalg.matrix_norm(x, {p!r})"
        )
    x = as_float(op, x, dtype)
    dim, keepdim = _over(op, x, dim, keepdim, numpy)
    p = real(op, "ord" if op == "vector_norm" else "p", p)
    if p != p:
        raise ValueError(f"[{op}] the order is NaN; give a number, inf or -inf")
    if p == 2.0:
        return apply(_r.NORM, (x,), (dim, keepdim))
    size = e.abs(x)
    if p == 1.0:
        return sum(size, dim, keepdim)
    if p in (inf, -inf):
        try:
            return (amax if p > 0 else amin)(size, dim, keepdim)
        except ValueError as error:  # of nothing
            raise renamed(op, error) from None
    if p == 0.0:  # the derivative of sign is a real zero
        return sum(where(e.eq(x, x), e.abs(e.sign(x)), 1.0), dim, keepdim)
    return apply(_r.P_NORM, (x,), (dim, keepdim, p))
