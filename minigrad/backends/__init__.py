"""Backends as PyTorch's programs ask for them and set them: none of them is here."""

from minigrad.backends import cuda, cudnn, mkl, mkldnn, mps, openmp

__all__ = ["cuda", "cudnn", "mkl", "mkldnn", "mps", "openmp"]
