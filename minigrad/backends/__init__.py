"""``torch.backends`` for PyTorch programs: none of the backends is here."""

from minigrad.backends import cuda, cudnn, mkl, mkldnn, mps, openmp

__all__ = ["cuda", "cudnn", "mkl", "mkldnn", "mps", "openmp"]
