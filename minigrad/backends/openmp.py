"""``torch.backends.openmp`` for PyTorch programs: minigrad has its own kernels and threads."""

__all__ = ["is_available"]


def is_available() -> bool:
    """False."""
    return False
