"""``torch.backends.cuda`` for PyTorch programs: switches of matrix products that change nothing."""

from types import SimpleNamespace

__all__ = ["is_built", "matmul"]

matmul = SimpleNamespace(allow_tf32=False, allow_fp16_reduced_precision_reduction=True)


def is_built() -> bool:
    """False."""
    return False
