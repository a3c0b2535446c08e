"""The modules where PyTorch's programs import them from."""

from minigrad.nn import *  # noqa: F403
from minigrad.nn import __all__ as __all__
