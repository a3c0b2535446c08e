"""The operations: every row of the table, by topic."""

from minigrad.ops import contraction, indexing, pointwise, reduction, shape
from minigrad.ops.table import TABLE, Row

__all__ = ["TABLE", "Row", "contraction", "indexing", "pointwise", "reduction", "shape"]
