"""``torch.accelerator`` for PyTorch programs: there is no accelerator."""

from __future__ import annotations

from typing import Any

__all__ = [
    "current_accelerator",
    "current_device_index",
    "device_count",
    "is_available",
    "synchronize",
]


def is_available() -> bool:
    """False: minigrad computes on the CPU."""
    return False


def current_accelerator(check_available: bool = False) -> None:
    """None: there is no accelerator."""


def device_count() -> int:
    """0: there is no accelerator."""
    return 0


def current_device_index() -> int:
    """-1: there is no device."""
    return -1


def synchronize(device: Any = None) -> None:
    """Do nothing: an operation is complete when it returns."""
