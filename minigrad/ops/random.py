"""Rows of the random operations that have a gradient."""

from __future__ import annotations

from typing import Any

from minigrad.ops.table import Row, linear
from minigrad.runtime.native import call, kernels

T = Any  # a Tensor, whose class this layer may not import

DROP: Row = linear(
    "dropout",
    lambda x, keep, factor: call(kernels.apply_mask, x, keep._h, factor),
    lambda g, keep, factor: g.apply_row(DROP, keep, factor),
    fused=lambda g, keep, factor: call(kernels.apply_mask, g, keep._h, factor),
    doc="x * factor where keep is true, else 0 whatever x is",
)
