"""References of layers and losses of minigrad.nn: construction, call and result in NumPy.

A reference takes the layer's state, as arrays by name, and the inputs. The test draws the weights.
"""

from __future__ import annotations

from expected.loss_modules import LOSS_LAYERS
from expected.module_base import Layer
from expected.plain_modules import PLAIN
from expected.weighted_modules import WEIGHTED

MODULES: dict[str, Layer] = {**PLAIN, **WEIGHTED, **LOSS_LAYERS}

# Classes that compute nothing themselves.
CONTAINERS = {
    *("Module", "ModuleDict", "ModuleList", "ParameterDict", "ParameterList"),
    *("RNNBase", "RNNCellBase", "LinearCrossEntropyOptions"),
    *("Parameter", "UninitializedBuffer", "UninitializedParameter"),
}
