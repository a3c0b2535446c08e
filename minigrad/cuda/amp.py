"""``torch.cuda.amp``, the older import path of :mod:`minigrad.amp`."""

from minigrad.amp import GradScaler, autocast

__all__ = ["GradScaler", "autocast"]
