"""The operations: rows of the table, by topic.

Those that only `minigrad.nn` and `minigrad.linalg` need come with them.
"""

from minigrad.ops import (
    composed,
    contraction,
    elementary,
    indexing,
    linalg,
    pointwise,
    random,
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
    "linalg",
    "pointwise",
    "random",
    "reduction",
    "scan",
    "shape",
    "special",
]
