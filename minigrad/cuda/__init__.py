"""``torch.cuda`` for PyTorch programs: there are no CUDA GPUs, so programs choose the CPU."""

from __future__ import annotations

from typing import Any

from minigrad.random import manual_seed
from minigrad.runtime.devices import on_cpu

__all__ = [
    "current_device",
    "device_count",
    "empty_cache",
    "get_device_name",
    "is_available",
    "is_initialized",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "memory_allocated",
    "reset_peak_memory_stats",
    "set_device",
    "synchronize",
]

manual_seed_all = manual_seed  # there is one generator


def is_available() -> bool:
    """False: minigrad computes on the CPU."""
    return False


def is_initialized() -> bool:
    """False."""
    return False


def device_count() -> int:
    """0."""
    return 0


def current_device() -> int:
    """Raise a RuntimeError: there is no CUDA device."""
    on_cpu("cuda")
    return -1


def set_device(device: Any) -> None:
    """Raise a RuntimeError for any device."""
    on_cpu(f"cuda:{device}" if isinstance(device, int) else device)


def get_device_name(device: Any = None) -> str:
    """Raise a RuntimeError: there is no CUDA device."""
    on_cpu("cuda")
    return ""


def empty_cache() -> None:
    """Do nothing: there is no device memory."""


def synchronize(device: Any = None) -> None:
    """Do nothing: an operation is complete when it returns."""


def memory_allocated(device: Any = None) -> int:
    """0: there is no device memory."""
    return 0


max_memory_allocated = memory_allocated


def reset_peak_memory_stats(device: Any = None) -> None:
    """Do nothing: there is no device memory."""
