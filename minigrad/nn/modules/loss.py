"""The losses where PyTorch's programs import them from."""

from minigrad.nn.losses import *  # noqa: F403
from minigrad.nn.losses import __all__ as __all__
