"""``torch.backends.cudnn`` for PyTorch programs: switches that change nothing."""

__all__ = ["allow_tf32", "benchmark", "deterministic", "enabled", "is_available", "version"]

enabled = True
benchmark = False
deterministic = False
allow_tf32 = True


def is_available() -> bool:
    """False: minigrad computes on the CPU."""
    return False


def version() -> None:
    """None."""
