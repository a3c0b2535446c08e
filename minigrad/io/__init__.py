"""Saving and loading of tensors, states and checkpoints, without running code from a file."""

from minigrad.io.files import load, save

__all__ = ["load", "save"]
