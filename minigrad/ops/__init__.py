"""The operations: every row of the table, by topic."""

from minigrad.ops import (
    attention,
    composed,
    contraction,
    convolution,
    elementary,
    factorisation,
    indexing,
    linalg,
    loss,
    normalization,
    pointwise,
    random,
    reduction,
    scan,
    shape,
    special,
    window,
)
from minigrad.ops.table import TABLE, Row

__all__ = [
    "TABLE",
    "Row",
    "attention",
    "composed",
    "contraction",
    "convolution",
    "elementary",
    "factorisation",
    "indexing",
    "linalg",
    "loss",
    "normalization",
    "pointwise",
    "random",
    "reduction",
    "scan",
    "shape",
    "special",
    "window",
]
