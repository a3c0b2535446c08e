"""Neural networks: modules, parameters, layers and losses.

>>> import minigrad as mg
>>> mg.manual_seed(0)
>>> model = mg.nn.Sequential(mg.nn.Linear(2, 8), mg.nn.Tanh(), mg.nn.Linear(8, 1))
>>> sum(p.size for p in model.parameters())
33
"""

from minigrad.nn import functional
from minigrad.nn.layers import (
    CrossEntropyLoss,
    Linear,
    MSELoss,
    ReLU,
    Sequential,
    Sigmoid,
    Tanh,
)
from minigrad.nn.module import Module, Parameter

__all__ = [
    "CrossEntropyLoss",
    "Linear",
    "MSELoss",
    "Module",
    "Parameter",
    "ReLU",
    "Sequential",
    "Sigmoid",
    "Tanh",
    "functional",
]
