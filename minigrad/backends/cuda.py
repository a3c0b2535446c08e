"""Switches of CUDA's matrix products, which programs may set: they change nothing."""

from types import SimpleNamespace

__all__ = ["is_built", "matmul"]

matmul = SimpleNamespace(allow_tf32=False, allow_fp16_reduced_precision_reduction=True)


def is_built() -> bool:
    """False."""
    return False
