"""Matrix products."""

from __future__ import annotations

from typing import Any

from minigrad._c import call, lib
from minigrad.ops.table import bilinear

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
    lambda a, b: call(lib.mg_matmul, a, b),
    _matmul_by_a,
    _matmul_by_b,
    doc="the matrix product by NumPy's rules: vectors, matrices, broadcast batches",
)
