"""Padding layers: values by NumPy, and everything as in PyTorch."""

from __future__ import annotations

import re

import numpy as np
import pytest
from torch_layers import same_as_torch

import minigrad as mg
from minigrad import nn

MODES = {"Reflection": "reflect", "Replication": "edge", "Circular": "wrap", "Zero": "constant"}
LAYERS = [f"{kind}Pad{axes}d" for kind in MODES for axes in (1, 2, 3)]


def read(name):
    return MODES[name.partition("Pad")[0]], int(name[-2])


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("batch", [True, False])
def test_values(name, batch, rng):
    mode, axes = read(name)
    x = rng.standard_normal((2,) * batch + (3,) + (4, 3, 5)[:axes])
    amounts = tuple(range(1, 2 * axes + 1)) if mode == "constant" else (1, 2) * axes
    padding = (amounts[k : k + 2] for k in range(2 * axes - 2, -1, -2))
    expected = np.pad(x, [(0, 0)] * (1 + batch) + list(padding), mode)
    assert np.array_equal(getattr(nn, name)(amounts)(mg.tensor(x)).numpy(), expected)


@pytest.mark.parametrize("name", LAYERS)
def test_gradients(name, rng):
    _, axes = read(name)
    x = mg.tensor(rng.standard_normal((2, 3, 3, 3)[: axes + 1]), requires_grad=True)
    assert mg.gradcheck(getattr(nn, name)(1), (x,))


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("amounts", [1, (1, 2, 2, 1, 1, 1), (0, 1, 2, 0, 1, 2)])
def test_as_pytorch(name, amounts):
    _, axes = read(name)
    given = amounts if isinstance(amounts, int) else amounts[: 2 * axes]
    same_as_torch(lambda n: getattr(n, name)(given), (2, 3, 4, 3, 5)[: axes + 2])


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_constant_as_pytorch(axes):
    shape = (2, 3, 4, 3, 5)[: axes + 2]
    same_as_torch(lambda n: getattr(n, f"ConstantPad{axes}d")(2, 3.5), shape)
    same_as_torch(lambda n: getattr(n, f"ConstantPad{axes}d")((1, -1) * axes, -1), shape)
    same_as_torch(lambda n: getattr(n, f"ZeroPad{axes}d")((-1, 2) * axes), shape)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (
            lambda: nn.ReflectionPad2d((1, 2)),
            ValueError,
            "[ReflectionPad2d] padding is (1, 2): give a number or 4 of them",
        ),
        (
            lambda: nn.ZeroPad1d(1.5),
            TypeError,
            "[ZeroPad1d] padding must be an integer, not float",
        ),
        (
            lambda: nn.CircularPad1d(1)(mg.ones(3)),
            ValueError,
            "[CircularPad1d] the input has shape (3,), but must have 2 or 3 dimensions",
        ),
        (
            lambda: nn.ReflectionPad1d(3)(mg.ones(1, 3)),
            ValueError,
            "[pad] 3 elements to reflect where size 3 has 2: pad less",
        ),
    ],
)
def test_refusals(call, error, text):
    with pytest.raises(error, match=re.escape(text)):
        call()
