"""Reductions, and what normalises with them, as functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from minigrad.dispatch import TensorBase, apply
from minigrad.elementwise import maximum, minimum
from minigrad.ops import reduction as _r
from minigrad.selection import take_along_dim
from minigrad.shaping import one_dim, reshape, some_dims, spelled, squeeze, tensor_operand, to

if TYPE_CHECKING:
    from minigrad._tensor import Tensor

__all__ = [
    "all",
    "amax",
    "amin",
    "any",
    "argmax",
    "argmin",
    "log_softmax",
    "logsumexp",
    "max",
    "mean",
    "min",
    "prod",
    "softmax",
    "sum",
    "var",
]


def sum(  # noqa: A001
    x: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None, **numpy: Any
) -> Tensor:
    """The sum over one, several or all dimensions; bool and int64 give int64.

    Summed in blocks and pairwise along every dimension, with the same result for any memory layout
    and number of threads. ``axis`` and ``keepdims`` are accepted for dim and keepdim.
    """
    x = tensor_operand("sum", x)
    if numpy:
        dim, keepdim = spelled("sum", dim, keepdim, numpy)
    if dtype is not None:
        x = to(x, dtype)
    return apply(_r.SUM, (x,), (some_dims("sum", dim, x._h.ndim), keepdim))


def mean(x: Tensor, dim: Any = None, keepdim: bool = False, **numpy: Any) -> Tensor:
    """The mean over one, several or all dimensions; NaN of nothing."""
    x = tensor_operand("mean", x)
    if numpy:
        dim, keepdim = spelled("mean", dim, keepdim, numpy)
    return apply(_r.MEAN, (x,), (some_dims("mean", dim, x._h.ndim), keepdim))


def prod(x: Tensor, dim: Any = None, keepdim: bool = False, **numpy: Any) -> Tensor:
    """The product over one, several or all dimensions."""
    x = tensor_operand("prod", x)
    if numpy:
        dim, keepdim = spelled("prod", dim, keepdim, numpy)
    return apply(_r.PROD, (x,), (some_dims("prod", dim, x._h.ndim), keepdim))


def amax(x: Tensor, dim: Any = None, keepdim: bool = False, **numpy: Any) -> Tensor:
    """The maximum over one, several or all dimensions; ties share the gradient evenly."""
    x = tensor_operand("amax", x)
    if numpy:
        dim, keepdim = spelled("amax", dim, keepdim, numpy)
    return apply(_r.AMAX, (x,), (some_dims("amax", dim, x._h.ndim), keepdim))


def amin(x: Tensor, dim: Any = None, keepdim: bool = False, **numpy: Any) -> Tensor:
    """The minimum over one, several or all dimensions; ties share the gradient evenly."""
    x = tensor_operand("amin", x)
    if numpy:
        dim, keepdim = spelled("amin", dim, keepdim, numpy)
    return apply(_r.AMIN, (x,), (some_dims("amin", dim, x._h.ndim), keepdim))


class Extremum(NamedTuple):
    """The values of a maximum or minimum along a dimension, and where they were found."""

    values: Any
    indices: Any


def _extremum(op: str, x: Any, dim: Any, keepdim: bool, numpy: dict[str, Any]) -> Any:
    whole, at, pair = (amax, argmax, maximum) if op == "max" else (amin, argmin, minimum)
    if numpy:
        dim, keepdim = spelled(op, dim, keepdim, numpy)
    if isinstance(dim, TensorBase):
        return pair(x, dim)
    x = tensor_operand(op, x)
    if dim is None:
        return whole(x)
    axis = one_dim(op, dim, x._h.ndim)
    indices = at(x, axis, True)
    values = take_along_dim(x, indices, axis)
    if not keepdim:
        values, indices = squeeze(values, axis), squeeze(indices, axis)
    return Extremum(values, indices)


def max(x: Any, dim: Any = None, keepdim: bool = False, **numpy: Any) -> Any:  # noqa: A001
    """``max(x)``: the maximum of all, ties sharing the gradient. ``max(x, dim)``: values and
    indices, whose gradient goes to that one index. ``max(a, b)``: the elementwise maximum.
    """
    return _extremum("max", x, dim, keepdim, numpy)


def min(x: Any, dim: Any = None, keepdim: bool = False, **numpy: Any) -> Any:  # noqa: A001
    """As max, for the minimum."""
    return _extremum("min", x, dim, keepdim, numpy)


def _arg(row: Any, x: Any, dim: Any, keepdim: bool, numpy: dict[str, Any]) -> Tensor:
    x = tensor_operand(row.name, x)
    if numpy:
        dim, keepdim = spelled(row.name, dim, keepdim, numpy)
    axis = None if dim is None else one_dim(row.name, dim, x._h.ndim)
    return apply(row, (x,), (axis, keepdim))


def argmax(x: Tensor, dim: int | None = None, keepdim: bool = False, **numpy: Any) -> Tensor:
    """Where the maximum is, as int64: the first of ties, NaN before all. Of all elements,
    flattened, unless a dimension is given.
    """
    return _arg(_r.ARGMAX, x, dim, keepdim, numpy)


def argmin(x: Tensor, dim: int | None = None, keepdim: bool = False, **numpy: Any) -> Tensor:
    """Where the minimum is; as argmax."""
    return _arg(_r.ARGMIN, x, dim, keepdim, numpy)


def all(x: Tensor, dim: Any = None, keepdim: bool = False, **numpy: Any) -> Tensor:  # noqa: A001
    """Are all elements true (not 0)?"""
    x = tensor_operand("all", x)
    if numpy:
        dim, keepdim = spelled("all", dim, keepdim, numpy)
    return apply(_r.ALL, (x,), (some_dims("all", dim, x._h.ndim), keepdim))


def any(x: Tensor, dim: Any = None, keepdim: bool = False, **numpy: Any) -> Tensor:  # noqa: A001
    """Is any element true (not 0)?"""
    x = tensor_operand("any", x)
    if numpy:
        dim, keepdim = spelled("any", dim, keepdim, numpy)
    return apply(_r.ANY, (x,), (some_dims("any", dim, x._h.ndim), keepdim))


def var(
    x: Tensor, dim: Any = None, correction: float | None = None, keepdim: bool = False, **numpy: Any
) -> Tensor:
    """The variance, divided by n - correction with ``correction=1`` by default, as in PyTorch.

    NumPy's ``ddof`` is accepted for correction; two passes over the data. NaN where n equals the
    correction.
    """
    x = tensor_operand("var", x)
    if "ddof" in numpy and correction is None:
        correction = numpy.pop("ddof")
    if numpy:
        dim, keepdim = spelled("var", dim, keepdim, numpy)
    axes = some_dims("var", dim, x._h.ndim)
    return apply(_r.VAR, (x,), (axes, keepdim, 1.0 if correction is None else float(correction)))


def logsumexp(x: Tensor, dim: Any = None, keepdim: bool = False, **numpy: Any) -> Tensor:
    """log(sum(exp(x))) without overflow; -inf of nothing."""
    x = tensor_operand("logsumexp", x)
    if numpy:
        dim, keepdim = spelled("logsumexp", dim, keepdim, numpy)
    return apply(_r.LOGSUMEXP, (x,), (some_dims("logsumexp", dim, x._h.ndim), keepdim))


def softmax(x: Tensor, dim: int | None = None, **numpy: Any) -> Tensor:
    """exp(x) / sum(exp(x)) along a dimension; a row of only -inf gives NaN."""
    return _normalised(_r.SOFTMAX, x, dim, numpy)


def log_softmax(x: Tensor, dim: int | None = None, **numpy: Any) -> Tensor:
    """log(softmax(x)) along a dimension, without losing precision."""
    return _normalised(_r.LOG_SOFTMAX, x, dim, numpy)


def _normalised(row: Any, x: Any, dim: Any, numpy: dict[str, Any]) -> Tensor:
    x = tensor_operand(row.name, x)
    if numpy:
        dim, _ = spelled(row.name, dim, False, numpy)
    if dim is None:
        raise TypeError(f"[{row.name}] a dim is needed: {row.name}(x, dim=-1)")
    if not x._h.ndim:  # as in PyTorch, a number is a row of one
        return reshape(apply(row, (reshape(x, (1,)),), (one_dim(row.name, dim, 1),)), ())
    return apply(row, (x,), (one_dim(row.name, dim, x._h.ndim),))
