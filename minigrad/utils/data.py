"""PyTorch's name of :mod:`minigrad.data`."""

from minigrad.data import *  # noqa: F403
from minigrad.data import __all__ as __all__
