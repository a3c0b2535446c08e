"""Functions for scans along a dimension, and softmax."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from math import inf
from typing import TYPE_CHECKING, Any

from minigrad.functions import elementwise as e
from minigrad.functions import selection
from minigrad.functions.arguments import integer, one_dim, real, spelled, tensor_operand
from minigrad.functions.reductions import Found, as_float, vector_norm
from minigrad.functions.shaping import cat, clone, narrow, reshape, stored_as, to
from minigrad.ops import reduction as _r
from minigrad.ops import scan as _s
from minigrad.runtime.dtypes import bool_
from minigrad.tape.apply import apply

if TYPE_CHECKING:
    from minigrad._tensor import Tensor

__all__ = [
    "cummax",
    "cummin",
    "cumprod",
    "cumsum",
    "diff",
    "log_softmax",
    "logcumsumexp",
    "renorm",
    "softmax",
    "softmin",
]


def along(
    op: str, x: Tensor, dim: Any, numpy: dict[str, Any], apply_to: Callable[[Tensor, int], Any]
) -> Any:
    """Call ``apply_to(x, axis)``. As in PyTorch, a 0-d tensor counts as a line of one element."""
    if numpy:
        dim, _ = spelled(op, dim, False, numpy)
    if dim is None:
        raise TypeError(f"[{op}] a dim is needed: {op}(x, dim=-1)")
    if x._h.ndim:
        return apply_to(x, one_dim(op, dim, x._h.ndim))
    out = apply_to(reshape(x, (1,)), one_dim(op, dim, 1))
    if isinstance(out, Found):
        return Found(reshape(out.values, ()), reshape(out.indices, ()))
    return reshape(out, ())


# ---- running -------------------------------------------------------------------------------------


def cumsum(input: Tensor, dim: Any = None, *, dtype: Any = None, **numpy: Any) -> Tensor:
    """y[i] = input[0] + input[1] + ... + input[i] along a dimension.

    bool and int64 give int64, which wraps around. With ``dtype`` the input is cast first. The sums
    are compensated for rounding. Sums of terms of one sign are within 1 ULP, however long the line.
    The bits depend on neither the memory layout nor the number of threads.

    >>> import minigrad as mg
    >>> mg.cumsum(mg.tensor([1.0, 2.0, 3.0]), dim=0)
    tensor([1., 3., 6.])
    """
    return _scanned(_s.CUMSUM, input, dim, dtype, numpy)


def cumprod(input: Tensor, dim: Any = None, *, dtype: Any = None, **numpy: Any) -> Tensor:
    """y[i] = input[0] * input[1] * ... * input[i] along a dimension.

    bool and int64 give int64, which wraps around. With ``dtype`` the input is cast first. The
    gradient is a linear recurrence without division. Any number of zeros is therefore right.
    """
    return _scanned(_s.CUMPROD, input, dim, dtype, numpy)


def logcumsumexp(input: Tensor, dim: Any = None, **numpy: Any) -> Tensor:
    """y[i] = log(exp(input[0]) + ... + exp(input[i])) along a dimension, without overflow.

    The result is -inf as long as all elements are. Infinities share the gradient as in logsumexp.
    Integers become float32.
    """
    return _scanned(_s.LOGCUMSUMEXP, as_float("logcumsumexp", input), dim, None, numpy)


def _scanned(row: Any, x: Any, dim: Any, dtype: Any, numpy: dict[str, Any]) -> Tensor:
    x = tensor_operand(row.name, x)
    if dtype is not None:
        x = to(x, dtype)
    y = along(row.name, x, dim, numpy, lambda t, axis: apply(row, (t,), (axis,)))
    return stored_as(y, dtype)


def cummax(input: Tensor, dim: Any = None, **numpy: Any) -> Found:
    """y[i] = max(input[0], ..., input[i]) along a dimension: values, and indices as int64.

    The index is that of the first of ties. NaN counts as the largest value, so the first NaN stays.
    The gradient goes to the element at the index.
    """
    return _running(_s.CUMMAX, input, dim, numpy)


def cummin(input: Tensor, dim: Any = None, **numpy: Any) -> Found:
    """y[i] = min(input[0], ..., input[i]) along a dimension: values and indices. See cummax."""
    return _running(_s.CUMMIN, input, dim, numpy)


def _running(row: Any, x: Any, dim: Any, numpy: dict[str, Any]) -> Found:
    def found(t: Tensor, axis: int) -> Found:
        indices = apply(row, (t,), (axis,))
        return Found(selection.picked(t, indices, axis), indices)

    return along(row.name, tensor_operand(row.name, x), dim, numpy, found)


def diff(
    input: Tensor,
    n: int = 1,
    dim: Any = -1,
    prepend: Tensor | None = None,
    append: Tensor | None = None,
    **numpy: Any,
) -> Tensor:
    """y[i] = input[i + 1] - input[i] along a dimension, n times. For bools it is logical xor.

    ``prepend`` and ``append`` are first concatenated with the input. n = 0 returns the input
    unchanged. Raises ValueError for a negative n or a 0-d input.
    """
    if numpy:
        dim, _ = spelled("diff", None, False, numpy)
    x = tensor_operand("diff", input)
    if not x._h.ndim:
        raise ValueError("[diff] a number has no neighbours: x must have a dimension")
    n = integer("diff", "n", n, 0)
    axis = one_dim("diff", dim, x._h.ndim)
    if not n:
        return clone(x)
    if prepend is not None or append is not None:
        x = cat([part for part in (prepend, x, append) if part is not None], axis)
    if not x._h.size:  # whatever n is
        return clone(narrow(x, axis, 0, max(x.shape[axis] - n, 0)))
    for _ in range(n):
        left = x.shape[axis] - 1
        if left < 0:
            break
        change = e.ne if x.dtype is bool_ else e.sub
        x = change(narrow(x, axis, 1, left), narrow(x, axis, 0, left))
    return x


# ---- normalised ----------------------------------------------------------------------------------


def softmax(
    input: Tensor, dim: Any = None, *, dtype: Any = None, where: Any = None, **numpy: Any
) -> Tensor:
    """exp(input) / sum(exp(input)) along a dimension, without overflow. NaN for a row of -inf.

    Without ``dim`` the dimension is guessed as in PyTorch, with a warning: 0 if there are 0, 1 or 3
    dimensions, else 1. With ``dtype`` the input is cast first.

    ``where`` is a bool mask, broadcast to the input, that leaves elements out. The result and the
    gradient are 0 where the mask is false, even if the whole row is false.

    >>> import minigrad as mg
    >>> mg.softmax(mg.tensor([0.0, 1.0, 0.0]), dim=0, where=mg.tensor([True, False, True]))
    tensor([0.5, 0. , 0.5])
    """
    return _normalised(_r.SOFTMAX, input, dim, dtype, where, 0.0, numpy)


def log_softmax(
    input: Tensor, dim: Any = None, *, dtype: Any = None, where: Any = None, **numpy: Any
) -> Tensor:
    """input - log(sum(exp(input))) along a dimension, the log of softmax without losing precision.

    With ``dtype`` the input is cast first. ``where`` is a bool mask, broadcast to the input, that
    leaves elements out. The result is -inf and the gradient 0 where the mask is false.
    """
    return _normalised(_r.LOG_SOFTMAX, input, dim, dtype, where, -inf, numpy)


def softmin(input: Tensor, dim: Any = None, *, dtype: Any = None, **numpy: Any) -> Tensor:
    """exp(-input) / sum(exp(-input)) along a dimension: the softmax of -input."""
    return softmax(e.neg(input), dim, dtype=dtype, **numpy)


def _normalised(
    row: Any, x: Any, dim: Any, dtype: Any, where: Any, left_out: float, numpy: dict[str, Any]
) -> Tensor:
    x = tensor_operand(row.name, x)
    if dtype is not None:
        x = to(x, dtype)
    if where is not None:
        where = tensor_operand(row.name, where)
        x = selection.where(where, x, -inf)
    if dim is None and not numpy:
        dim = 0 if x._h.ndim in (0, 1, 3) else 1  # PyTorch's guess
        warnings.warn(
            f"[{row.name}] without dim the dimension is guessed, {dim} here: say dim={dim}",
            stacklevel=3,
        )
    y = along(row.name, x, dim, numpy, lambda t, axis: apply(row, (t,), (axis,)))
    # A row without any element is NaN up to here. Both masks drop its gradient.
    return stored_as(y if where is None else selection.where(where, y, left_out), dtype)


def renorm(input: Tensor, p: float, dim: int, maxnorm: float) -> Tensor:
    """Scale entries along a dimension down to the p-norm ``maxnorm`` if theirs is larger.

    The norm is taken over all other dimensions. Entries with a smaller norm stay unchanged.

    Raises ValueError unless p > 0 and maxnorm >= 0, and for fewer than 2 dimensions. Raises
    TypeError unless the dtype is a float.

    >>> import minigrad as mg
    >>> mg.renorm(mg.tensor([[3.0, 4.0], [0.3, 0.4]]), 2, 0, 1.0)
    tensor([[0.6, 0.8],
            [0.3, 0.4]])
    """
    x, order = tensor_operand("renorm", input), real("renorm", "p", p)
    bound = real("renorm", "maxnorm", maxnorm)
    if not x.dtype.is_floating_point:
        raise TypeError(f"[renorm] not offered for {x.dtype.name}: use to(float32)")
    if x._h.ndim < 2:
        raise ValueError(f"[renorm] input has {x._h.ndim} dimensions, but must have at least 2")
    if not order > 0 or bound < 0:
        raise ValueError(f"[renorm] p is {order} and maxnorm {bound}: p > 0 and maxnorm >= 0")
    axis = one_dim("renorm", dim, x._h.ndim)
    others = tuple([d for d in range(x._h.ndim) if d != axis])
    norms = vector_norm(x, order, others, keepdim=True)
    # PyTorch's constant: the sum keeps the result below the bound despite rounding.
    return e.mul(x, selection.where(e.gt(norms, bound), e.div(bound, e.add(norms, 1e-7)), 1.0))
