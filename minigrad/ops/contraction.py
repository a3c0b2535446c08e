"""Matrix products and the linear layer."""

from __future__ import annotations

from typing import Any

from minigrad.ops.reduction import part_of_root
from minigrad.ops.table import Row, bilinear, custom
from minigrad.runtime.native import kernels

T = Any  # a Tensor; this layer stands below it


def _matmul_by_a(g: T, a: T, b: T) -> T:
    """g @ b^T, with the axes that a vector operand lacks put back and removed."""
    if a.ndim == 1 and b.ndim == 1:
        return g * b
    if b.ndim == 1:
        return g.unsqueeze(-1) * b
    if a.ndim == 1:
        # (..., n) against (..., k, n): batches are summed by the driver
        return (b @ g.unsqueeze(-1)).squeeze(-1)
    return g @ b.mT


def _matmul_by_b(g: T, a: T, b: T) -> T:
    """a^T @ g, likewise."""
    if a.ndim == 1 and b.ndim == 1:
        return g * a
    if b.ndim == 1:
        return (a.mT @ g.unsqueeze(-1)).squeeze(-1)
    if a.ndim == 1:
        return a.unsqueeze(-1) * g.unsqueeze(-2)
    return a.mT @ g


MATMUL = bilinear(
    "matmul",
    kernels.matmul,
    _matmul_by_a,
    _matmul_by_b,
    doc="the matrix product by NumPy's rules: vectors, matrices, broadcast batches",
    vjp_kernel=kernels.matmul_vjp,
)

# ---- distances -----------------------------------------------------------------------------------


def _cdist_parts(g: T, a: T, b: T, y: T) -> T:
    """g times the unit vector from each b to each a."""
    apart = a.unsqueeze(-2) - b.unsqueeze(-3)
    y = (y + (y - y).detach()).unsqueeze(-1)  # of an infinite distance nothing is known
    return g.unsqueeze(-1).scale(part_of_root(apart, y))


CDIST = custom(
    "cdist",
    kernels.cdist,
    lambda g, a, b, y: _cdist_parts(g, a, b, y).sum(-2),
    lambda g, a, b, y: -_cdist_parts(g, a, b, y).sum(-3),
    together=kernels.cdist_vjp,
    doc="the 2-norm of each a - b, for points in two stacks of one batch shape; its derivatives are"
    " 0 where it is",
)

# ---- the linear layer ----------------------------------------------------------------------------

# Weights (out, in), inputs (..., in) with at least two axes, and one float dtype.


def _row_count(shape: tuple[int, ...]) -> int:
    count = 1
    for n in shape[:-1]:
        count *= n
    return count


def _linear_by_input(g: T, b: T) -> T:
    return g @ b


def _linear_by_weight(g: T, a: T) -> T:
    """g^T @ a, summed over all rows: it comes out in the weight's own layout."""
    rows = _row_count(a.shape)
    return g.reshape((rows, g.shape[-1])).mT @ a.reshape((rows, a.shape[-1]))


def _products(t: T, b: T) -> T:
    return t.apply_row(LINEAR, beside=(b,))


LINEAR: Row = custom(
    "linear",
    kernels.linear,
    _linear_by_input,
    _linear_by_weight,
    jvp=(_products, lambda t, a: _products(a, t)),
    vjp_kernel=kernels.linear_vjp,
    fits=kernels.linear_fits,
    doc="a @ b^T: inputs by weights of shape (out, in)",
)
LINEAR_BIAS = custom(
    "linear_bias",
    kernels.linear,
    _linear_by_input,
    _linear_by_weight,
    lambda g: g.sum_to_size(g.shape[-1:]),
    jvp=(_products, lambda t, a: _products(a, t), lambda t, size: t.expand(size)),
    vjp_kernel=kernels.linear_vjp,
    fits=kernels.linear_fits,
    doc="a @ b^T + bias",
)
