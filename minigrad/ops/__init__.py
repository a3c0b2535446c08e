"""Rows of the op table, by topic.

Rows that only `minigrad.nn`, linear algebra or random numbers need are loaded by these modules.
"""

from minigrad.ops import (
    composed,
    contraction,
    elementary,
    indexing,
    pointwise,
    reduction,
    scan,
    shape,
    special,
)
from minigrad.ops.table import TABLE, Row

__all__ = [
    "TABLE",
    "Row",
    "composed",
    "contraction",
    "elementary",
    "indexing",
    "pointwise",
    "reduction",
    "scan",
    "shape",
    "special",
]
