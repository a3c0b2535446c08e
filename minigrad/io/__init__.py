"""Files: tensors, states and checkpoints saved and loaded, without running code that is in them."""

from minigrad.io.files import load, save

__all__ = ["load", "save"]
