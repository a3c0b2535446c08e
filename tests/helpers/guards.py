"""Operands between protected pages, and separate processes for tests that may crash."""

from __future__ import annotations

import ctypes
import mmap
import os
import subprocess
import sys

import numpy as np

HAS_GUARDS = sys.platform == "linux"

_libc = ctypes.CDLL(None, use_errno=True)


def guarded(rng, a):
    """The same values, read-only, between two protected pages and next to one of them.

    The elements are adjacent, or have gaps on the last axis, in any order of the axes.
    """
    order, step = np.arange(a.ndim), 1
    if rng.random() < 0.4:
        order, step = rng.permutation(a.ndim), int(rng.integers(1, 4))
    strides = [0] * a.ndim
    for d in order[::-1]:
        strides[d] = step
        step *= max(a.shape[d], 1)
    span = (sum(max(n - 1, 0) * s for n, s in zip(a.shape, strides, strict=True)) + 1) * a.itemsize
    page = mmap.PAGESIZE
    room = -(-span // page) * page
    memory = mmap.mmap(-1, room + 2 * page)
    start = np.frombuffer(memory, np.uint8).ctypes.data
    for at in (start, start + page + room):
        assert _libc.mprotect(ctypes.c_void_p(at), page, 0) == 0, os.strerror(ctypes.get_errno())
    offset = page + (room - span if rng.random() < 0.7 else 0)
    to = np.ndarray(a.shape, a.dtype, memory, offset, [s * a.itemsize for s in strides])
    to[...] = a
    to.flags.writeable = False  # so that the tape saves this memory and no copy
    return to


def apart(file, *arguments):
    """Run a test's file as a program. On failure its last output is shown."""
    done = subprocess.run(
        [sys.executable, file, *map(str, arguments)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join([p for p in sys.path if p])},
        capture_output=True,
        text=True,
        check=False,
    )
    last = done.stdout.strip().rpartition("\n")[2]
    assert done.returncode == 0, f"{last}\nended with {done.returncode}: {done.stderr[-3000:]}"
