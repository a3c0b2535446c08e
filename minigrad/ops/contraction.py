"""Matrix products, and the layer that networks are made of."""

from __future__ import annotations

from typing import Any

from minigrad._c import NULL, Handle, call, lib
from minigrad.dtypes import by_code
from minigrad.ops.reduction import part_of_root
from minigrad.ops.table import bilinear, custom

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
    lambda a, b: call(lib.mg_bilinear, lib.MG_MATMUL, a, b),
    _matmul_by_a,
    _matmul_by_b,
    doc="the matrix product by NumPy's rules: vectors, matrices, broadcast batches",
    product=lib.MG_MATMUL,
)

# ---- distances -----------------------------------------------------------------------------------


def _cdist_parts(g: T, a: T, b: T, y: T) -> T:
    """g times the unit vector from each b to each a."""
    apart = a.unsqueeze(-2) - b.unsqueeze(-3)
    y = (y + (y - y).detach()).unsqueeze(-1)  # of an infinite distance nothing is known
    return g.unsqueeze(-1).scale(part_of_root(apart, y))


CDIST = custom(
    "cdist",
    lambda a, b: call(lib.mg_cdist, a, b),
    lambda g, a, b, y: _cdist_parts(g, a, b, y).sum(-2),
    lambda g, a, b, y: -_cdist_parts(g, a, b, y).sum(-3),
    together=lambda g, a, b, y: call(lib.mg_cdist_vjp, g, a, b, y),
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


def _linear_takes(x: Handle, weight: Handle, bias: Handle | None = None) -> bool:
    """Whether one kernel computes a linear layer of these arrays."""
    dtype = by_code[weight.dtype].wide
    alike = dtype.is_floating_point and by_code[x.dtype].wide is dtype
    if not alike or x.ndim < 2 or weight.ndim != 2 or x.shape[-1] != weight.shape[1]:
        return False
    return bias is None or (by_code[bias.dtype].wide is dtype and bias.shape == weight.shape[:1])


LINEAR = custom(
    "linear",
    lambda a, b: call(lib.mg_linear, a, b, NULL),
    _linear_by_input,
    _linear_by_weight,
    product=lib.MG_LINEAR,
    takes=_linear_takes,
    doc="a @ b^T: inputs by weights of shape (out, in)",
)
LINEAR_BIAS = custom(
    "linear_bias",
    lambda a, b, bias: call(lib.mg_linear, a, b, bias),
    _linear_by_input,
    _linear_by_weight,
    lambda g: g.sum_to_size(g.shape[-1:]),
    product=lib.MG_LINEAR,
    takes=_linear_takes,
    doc="a @ b^T + bias",
)
