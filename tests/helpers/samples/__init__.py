"""Sample calls of every public operation, keyed by its name without ``mg.``.

Each is a function of float tensors with the shapes of these and the intervals that they are drawn
from, chosen so that the function is smooth there. Other arguments, and tensors of integers and
booleans, stand in the call. The tests that any operation must pass run over this catalogue, and
docs/reference.py observes in it what operations keep for their gradients.
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
