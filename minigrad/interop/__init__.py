"""Bridges to neighbours: running programs that were written for PyTorch."""

from minigrad.interop.torch_names import TorchNames, as_torch

__all__ = ["TorchNames", "as_torch"]
