"""Reference implementations of the public functions in NumPy, SciPy and mpmath, by name.

Each reference takes the function's arguments, with arrays in place of tensors, and returns the
expected result. None uses the engine. Names are those of the catalogue of samples.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from expected.activations import ACTIVATIONS
from expected.base import Given
from expected.cases import CASES
from expected.elementwise import ELEMENTWISE
from expected.layers import LAYERS
from expected.linear_algebra import LINALG, PRODUCTS
from expected.losses import LOSSES
from expected.operators import OPERATORS
from expected.planes import PLANES
from expected.reductions import REDUCTIONS
from expected.rows import ROWS
from expected.sampled import Sampled
from expected.shapes import SELECTION, SHAPES
from expected.windows import WINDOWS

__all__ = ["CASES", "FUNCTIONS", "OPERATORS", "ROWS", "Given", "Sampled"]

FUNCTIONS: dict[str, Callable[..., Any]] = {
    **ELEMENTWISE,
    **REDUCTIONS,
    **SHAPES,
    **SELECTION,
    **PRODUCTS,
    **LINALG,
    **ACTIVATIONS,
    **WINDOWS,
    **LAYERS,
    **PLANES,
    **LOSSES,
}
