"""Limits of the machine, measured: floating-point operations and bytes of memory a second."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

from minigrad.functions.creation import ones
from minigrad.functions.grad_modes import no_grad
from minigrad.functions.products import matmul
from minigrad.runtime.native import call, kernels

__all__ = ["Limits", "measured_limits"]

_SIDE = 1024  # of square matrices, which fit in a cache near the processor
_FLOATS = 1 << 24  # copied, in 64 MB that fit in no cache of most machines


class Limits(NamedTuple):
    """Operations and bytes a second."""

    flops: float
    bandwidth: float


@cache
def measured_limits() -> Limits:
    """The best of several products and copies, with as many threads as are set."""
    with no_grad():
        a = ones(_SIDE, _SIDE)
        flops = 2 * _SIDE**3 / _fastest(lambda: matmul(a, a))
        x = ones(_FLOATS)
        bandwidth = 2 * x._h.size * 4 / _fastest(lambda: call(kernels.copy, x._h))
    return Limits(flops, bandwidth)


def _fastest(action: Callable[[], object], seconds: float = 0.25) -> float:
    best, end = float("inf"), time.perf_counter() + seconds
    while best == float("inf") or time.perf_counter() < end:
        begin = time.perf_counter()
        action()
        best = min(best, time.perf_counter() - begin)
    return best
