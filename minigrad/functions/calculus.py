"""Functions for differences and integrals of sampled functions, and Vandermonde matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from minigrad.functions.arguments import integer, one_dim, real, some_dims, tensor_operand
from minigrad.functions.creation import empty, ones_like
from minigrad.functions.elementwise import add, div, eq, mul, neg, sub
from minigrad.functions.operands import tensor_operands
from minigrad.functions.reductions import all as every
from minigrad.functions.reductions import as_float
from minigrad.functions.reductions import sum as total
from minigrad.functions.scans import cumprod, cumsum, diff
from minigrad.functions.shaping import cat, expand, moveaxis, narrow, reshape, to, unsqueeze
from minigrad.runtime.dtypes import bool_, int64
from minigrad.tape.tensor_base import TensorBase

if TYPE_CHECKING:
    from minigrad._tensor import Tensor

__all__ = ["cumulative_trapezoid", "gradient", "trapezoid", "trapz", "vander"]

# ---- derivatives ---------------------------------------------------------------------------------


def gradient(
    input: Tensor,
    *,
    spacing: Any = 1,
    dim: Any = None,
    edge_order: int = 1,
) -> tuple[Tensor, ...]:
    """Derivatives of a sampled function: a tensor for each of the dimensions, by default all.

    Inner differences are of second order (Fornberg, Generation of Finite Difference Formulas on
    Arbitrarily Spaced Grids, 1988). Differences at the ends are of ``edge_order``, 1 or 2.

    ``spacing`` is the distance of neighbours, a list with a number per dimension, or a list with a
    vector of coordinates per dimension. Coordinates get gradients too. Integers give float32.

    Raises ValueError for too few elements along a dimension, and for a list of the wrong length.

    >>> import minigrad as mg
    >>> mg.gradient(mg.tensor([0.0, 1.0, 4.0, 9.0]))
    (tensor([1., 2., 4., 5.]),)
    """
    y = as_float("gradient", input)
    axes = some_dims("gradient", dim, y._h.ndim)
    if isinstance(dim, (tuple, list)):  # in the given order, to which the spacings belong
        axes = tuple([one_dim("gradient", d, y._h.ndim) for d in dim])
    if edge_order not in (1, 2):
        raise ValueError(f"[gradient] edge_order is {edge_order}, but must be 1 or 2")
    each = isinstance(spacing, (tuple, list))
    distance = 1 if spacing is None else spacing
    steps = list(spacing) if each else [real("gradient", "spacing", distance)] * len(axes)
    if len(steps) != len(axes):
        raise ValueError(f"[gradient] {len(steps)} spacings for {len(axes)} dimensions: one each")
    return tuple(
        [
            slopes("gradient", y, d, tensor_operands("gradient", y, step)[1], edge_order)
            for d, step in zip(axes, steps, strict=True)
        ]
    )


def slopes(op: str, y: Any, axis: int, step: Any, order: int) -> Any:
    """Differences of second order along an axis, and of ``order`` at its ends.

    ``step`` is a distance, or a vector of coordinates.
    """
    n = y.shape[axis]
    if n < order + 1:
        raise ValueError(f"[{op}] {n} elements along dim {axis}: {order + 1} are needed")
    if step.ndim > 1 or (step.ndim and step.size != n):
        raise ValueError(f"[{op}] coordinates of shape {step.shape} for {n} elements")
    y = moveaxis(y, axis, -1)
    h = step if step.dtype.is_floating_point else to(step, y.dtype)
    h = diff(h) if h.ndim else expand(h, (n - 1,))
    if _even(h, step):
        inner = div(sub(y[..., 2:], y[..., :-2]), 2 * h[0])
    else:
        a, b = h[:-1], h[1:]
        inner = (
            -b / (a * (a + b)) * y[..., :-2]
            + (b - a) / (a * b) * y[..., 1:-1]
            + a / (b * (a + b)) * y[..., 2:]
        )
    first, last = _slope_at_end(y, h, 0, order), _slope_at_end(y, h, -1, order)
    return moveaxis(cat([first, inner, last], -1), -1, axis)


def _even(h: Any, step: Any) -> bool:
    """True if all distances are equal. Coordinates that require grad never count as equal."""
    return not step.ndim or (step._edge is None and bool(every(eq(h, h[0]))))


def _slope_at_end(y: Any, h: Any, end: int, order: int) -> Any:
    """The derivative at the first point of a line, or at the last if ``end`` is -1."""
    at, towards = (0, 1) if end == 0 else (-1, -2)
    first, second = y[..., at], y[..., towards]
    if order == 1:
        slope = (second - first) / h[end]
    else:
        a, b = h[end], h[towards]
        slope = (
            -(2 * a + b) / (a * (a + b)) * first
            + (a + b) / (a * b) * second
            - a / (b * (a + b)) * y[..., 2 if end == 0 else -3]
        )
    return unsqueeze(slope if end == 0 else neg(slope), -1)


# ---- integrals -----------------------------------------------------------------------------------


def trapezoid(y: Tensor, x: Any = None, *, dx: Any = None, dim: int = -1) -> Tensor:
    """The integral along a dimension by the trapezoidal rule: the sum of (y[i] + y[i+1]) / 2 * dx.

    ``x`` has the coordinates: one vector, or a vector for each line of y, broadcast. Without ``x``
    the distance of neighbours is ``dx``, 1 by default. Integers give float32.

    >>> import minigrad as mg
    >>> mg.trapezoid(mg.tensor([1.0, 2.0, 3.0]), dx=0.5)
    tensor(2.)
    """
    areas, axis = _areas("trapezoid", y, x, dx, dim)
    return total(areas, axis)


trapz = trapezoid


def cumulative_trapezoid(y: Tensor, x: Any = None, *, dx: Any = None, dim: int = -1) -> Tensor:
    """The integrals from the first element to each later one, by the trapezoidal rule.

    Arguments are as for :func:`minigrad.trapezoid`. The dimension has one element less than in y.
    """
    areas, axis = _areas("cumulative_trapezoid", y, x, dx, dim)
    return cumsum(areas, axis)


def _areas(op: str, y: Any, x: Any, dx: Any, dim: Any) -> tuple[Any, int]:
    """The area between each pair of neighbours, and the dimension of the pairs."""
    y = as_float(op, y)
    axis = one_dim(op, dim, y._h.ndim) - y._h.ndim
    n = y.shape[axis]
    if x is None:
        width = tensor_operand(op, 1.0 if dx is None else dx) if isinstance(dx, TensorBase) else dx
        width = 1.0 if width is None else width
    elif dx is not None:
        raise TypeError(f"[{op}] x and dx are two ways to say where the points are: give one")
    else:
        points = as_float(op, tensor_operands(op, y, x)[1])
        if points._h.ndim == 1:
            points = reshape(points, (-1,) + (1,) * (-axis - 1))
        if points._h.ndim < -axis or points.shape[axis] != n:
            raise ValueError(f"[{op}] coordinates of shape {points.shape} for {n} elements")
        width = diff(points, 1, axis)
    count = max(n - 1, 0)
    pairs = add(narrow(y, axis, min(n, 1), count), narrow(y, axis, 0, count))
    return div(mul(width, pairs), 2.0), axis


# ---- powers --------------------------------------------------------------------------------------


def vander(x: Tensor, N: int | None = None, increasing: bool = False) -> Tensor:  # noqa: N803
    """The Vandermonde matrix of a vector: each row has the powers of one element, down to 0.

    There are N columns, by default as many as rows. With ``increasing`` the powers start from 0.
    The gradient is right at 0 too. Raises ValueError unless the input is a vector.

    >>> import minigrad as mg
    >>> mg.vander(mg.tensor([1, 2, 3]))
    tensor([[1, 1, 1],
            [4, 2, 1],
            [9, 3, 1]])
    """
    x = tensor_operand("vander", x)
    if x._h.ndim != 1:
        raise ValueError(f"[vander] x has {x._h.ndim} dimensions, but must have one")
    powers = powers_of("vander", x, N)
    return powers if increasing else powers.flip(-1)


def powers_of(op: str, x: Tensor, count: int | None) -> Tensor:
    """The powers 0, 1, ... of each element along a new last dimension of size ``count``."""
    if x.dtype is bool_:
        x = to(x, int64)
    n = x.shape[-1] if count is None else integer(op, "N", count, 0)
    if n == 0:
        return empty(*x.shape, 0, dtype=x.dtype)
    column = unsqueeze(x, -1)
    rising = cumprod(expand(column, (*x.shape, n - 1)), -1)
    return cat([ones_like(column), rising], -1)
