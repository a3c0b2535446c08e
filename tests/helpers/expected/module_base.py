"""The class Layer: a layer together with its reference in NumPy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from expected.activations import ACTIVATIONS
from expected.base import Given
from expected.layers import LAYERS
from expected.losses import LOSSES
from expected.planes import PLANES
from expected.windows import WINDOWS

FUNCTIONS = {**ACTIVATIONS, **WINDOWS, **LAYERS, **PLANES, **LOSSES}
State = dict[str, np.ndarray]
# input shapes by the number of spatial axes
LINES = {1: (2, 2, 6), 2: (1, 2, 4, 5), 3: (1, 1, 4, 3, 4)}


@dataclass(frozen=True)
class Layer:
    """A layer, its inputs as arrays or as shapes of random ones, and its reference."""

    make: Callable[[], Any]
    inputs: tuple[Any, ...]
    reference: Callable[..., Any]


def f(name: str) -> Any:
    """The reference of a function of minigrad.nn.functional."""
    found = FUNCTIONS[f"nn.functional.{name}"]
    return found.reference if isinstance(found, Given) else found


def plain(make: Callable[[], Any], reference: Callable[..., Any], *inputs: Any) -> Layer:
    """A layer without a state, with arrays or shapes as inputs."""
    given = isinstance(reference, Given)
    call = reference.reference if given else reference
    stateless = (lambda y, _, *xs: call(y, *xs)) if given else (lambda _, *xs: call(*xs))
    return Layer(make, inputs, Given(stateless) if given else stateless)
