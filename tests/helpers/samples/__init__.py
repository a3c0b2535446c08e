"""Sample calls of every public operation, keyed by its name without ``mg.``.

Each sample is a function of float tensors, with their shapes and the intervals from which they are
drawn. The function is smooth on these intervals. Other arguments, and tensors of integers and
booleans, are part of the call. The tests for all operations run over this catalogue.
docs/reference.py observes with it what operations save for their gradients.
"""

from __future__ import annotations

from samples.base import Sample, function
from samples.elementwise import ELEMENTWISE, from_the_table
from samples.layers import ACTIVATIONS, LAYERS, LOSSES
from samples.linear_algebra import LINALG, PRODUCTS
from samples.reductions import REDUCTIONS
from samples.shapes import SELECTION, SHAPES

__all__ = ["CATALOGUE", "Sample", "function"]

CATALOGUE: dict[str, tuple[Sample, ...]] = from_the_table()
for _topic in (
    ELEMENTWISE,
    REDUCTIONS,
    SHAPES,
    SELECTION,
    PRODUCTS,
    LINALG,
    ACTIVATIONS,
    LAYERS,
    LOSSES,
):
    for _name, _samples in _topic.items():
        CATALOGUE[_name] = CATALOGUE.get(_name, ()) + _samples
