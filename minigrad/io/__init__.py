"""Files: tensors, states and checkpoints saved and loaded, without code in them."""

from minigrad.io.files import load, save

__all__ = ["load", "save"]
