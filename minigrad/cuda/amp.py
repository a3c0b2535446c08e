"""Mixed precision as PyTorch's older programs import it; see :mod:`minigrad.amp`."""

from minigrad.amp import GradScaler, autocast

__all__ = ["GradScaler", "autocast"]
