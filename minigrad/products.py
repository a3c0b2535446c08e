"""Matrix and tensor products as functions."""

from __future__ import annotations

from minigrad._c import lib
from minigrad.dispatch import bilinear
from minigrad.ops import contraction as _c

__all__ = [
    "matmul",
]

matmul = bilinear(_c.MATMUL, lib.MG_MATMUL)
matmul.__doc__ = """The matrix product by NumPy's rules.

Vectors count as a row on the left and a column on the right, and the added dimension is removed
from the result; leading dimensions are broadcast. Raises ValueError where inner sizes differ and
for 0-d operands.

>>> import minigrad as mg
>>> (mg.ones(2, 3) @ mg.ones(3)).tolist()
[3.0, 3.0]
"""
