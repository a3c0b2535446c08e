"""``torch.backends`` for PyTorch programs: minigrad has none of these backends."""

from minigrad.backends import cuda, cudnn, mkl, mkldnn, mps, openmp

__all__ = ["cuda", "cudnn", "mkl", "mkldnn", "mps", "openmp"]
