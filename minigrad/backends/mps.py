"""``torch.backends.mps`` for PyTorch programs: there are no Apple GPUs."""

__all__ = ["is_available", "is_built"]


def is_available() -> bool:
    """False: minigrad computes on the CPU."""
    return False


def is_built() -> bool:
    """False."""
    return False
