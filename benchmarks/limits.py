"""What the machine can do: FMA peak and memory bandwidth, from C loops compiled on the spot.

The loops are built with the system's C compiler into a temporary folder and called through ctypes,
which releases the GIL: with several threads, each runs the loops on data of its own.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np

__all__ = ["Limits", "Loops", "best_of", "load_loops"]

Limits = dict[str, float]  # FLOP/s and bytes/s by name

# Vectors as wide as the machine has them; 12 independent chains cover the latency of two FMA units.
_SOURCE = r"""
#include <stddef.h>
#if defined(__AVX512F__)
#define WIDTH 64
#elif defined(__AVX__)
#define WIDTH 32
#else
#define WIDTH 16
#endif
enum { CHAINS = 12 };

void copy(float *restrict out, const float *restrict a, const float *b, size_t n)
{
    (void)b;
    for (size_t i = 0; i < n; i++) out[i] = a[i];
}

void add(float *restrict out, const float *restrict a, const float *restrict b, size_t n)
{
    for (size_t i = 0; i < n; i++) out[i] = a[i] + b[i];
}

void read(float *restrict out, const float *restrict a, const float *b, size_t n)
{
    (void)b;
    enum { LANES = 64 };
    float sum[LANES] = {0};
    for (size_t i = 0; i + LANES <= n; i += LANES)
        for (int l = 0; l < LANES; l++) sum[l] += a[i + l];
    for (int l = 0; l < LANES; l++) out[l] = sum[l];
}
"""
# Once for each width of float, with VEC and REAL replaced.
_FMA_SOURCE = r"""
typedef REAL VEC __attribute__((vector_size(WIDTH)));

double fma_VEC(size_t rounds)
{
    VEC chain[CHAINS], factor, term;
    for (size_t i = 0; i < WIDTH / sizeof(REAL); i++) {
        factor[i] = (REAL)0.999;
        term[i] = (REAL)0.001;
        for (int c = 0; c < CHAINS; c++) chain[c][i] = (REAL)c;
    }
    for (size_t r = 0; r < rounds; r++) {
        _Pragma("GCC unroll 12")
        for (int c = 0; c < CHAINS; c++) chain[c] = chain[c] * factor + term;
    }
    double sum = 0;
    for (int c = 0; c < CHAINS; c++) sum += (double)chain[c][0];
    return sum;
}

double flops_per_round_VEC(void) { return 2.0 * CHAINS * WIDTH / sizeof(REAL); }
"""
_FLAG_SETS = (["-march=native"], ["-mcpu=native"], [])  # for this machine only: nothing is shipped
_VECTORS = {"float32": "f32", "float64": "f64"}
_REALS = {"f32": "float", "f64": "double"}
_TRAFFIC = {"copy": 2, "read": 1, "add": 3}  # arrays moved, as the program sees it
_ROUNDS = 2_000_000  # of the FMA loop
_LENGTH = 2**25  # 128 MiB an array


class Loops:
    """The compiled loops, run side by side in as many threads as the libraries have."""

    def __init__(self, library: ctypes.CDLL, threads: int) -> None:
        """Take over a loaded library."""
        self._library = library
        self._threads = threads
        self._pool = ThreadPoolExecutor(threads)

    def _side_by_side(self, calls: Sequence[Callable[[], object]]) -> None:
        if self._threads == 1:
            calls[0]()
            return
        for future in [self._pool.submit(call) for call in calls]:
            future.result()

    def fma(self, dtype: str, rounds: int) -> tuple[Callable[[], None], float]:
        """A call that does nothing but multiply-adds in registers, and the FLOPs of it."""
        name = _VECTORS[dtype]
        kernel = getattr(self._library, f"fma_{name}")
        kernel.restype, kernel.argtypes = ctypes.c_double, [ctypes.c_size_t]
        per_round = getattr(self._library, f"flops_per_round_{name}")
        per_round.restype = ctypes.c_double
        calls = [partial(kernel, rounds)] * self._threads
        return partial(self._side_by_side, calls), per_round() * rounds * self._threads

    def measure(self, quick: bool) -> Limits:
        """FMA peaks and memory bandwidths."""
        repeats = 5 if quick else 15
        limits: Limits = {}
        for dtype in _VECTORS:
            call, flops = self.fma(dtype, _ROUNDS)
            limits[f"fma {dtype}"] = flops / _fastest(call, repeats)
        arrays = [np.ones(_LENGTH, np.float32) for _ in range(3)]
        part = _LENGTH // self._threads
        for name, moved in _TRAFFIC.items():
            kernel = getattr(self._library, name)
            kernel.restype, kernel.argtypes = None, [ctypes.c_void_p] * 3 + [ctypes.c_size_t]
            calls = [
                partial(kernel, *[a[i * part :].ctypes.data for a in arrays], part)
                for i in range(self._threads)
            ]
            seconds = _fastest(partial(self._side_by_side, calls), repeats)
            limits[f"memory {name}"] = moved * part * self._threads * 4 / seconds
        return limits


def _fastest(call: Callable[[], object], repeats: int) -> float:
    """Seconds of the fastest of several runs: what is wanted is a limit."""
    best = float("inf")
    for _ in range(repeats + 1):
        begin = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - begin)
    return best


def load_loops(threads: int) -> Loops | str:
    """The loops, or why there are none."""
    with tempfile.TemporaryDirectory() as folder:
        found = _compile(Path(folder))
    return found if isinstance(found, str) else Loops(found, threads)


def best_of(first: Limits, second: Limits) -> Limits:
    """The higher of two measurements of each limit."""
    return {name: max(value, second[name]) for name, value in first.items()}


def _compile(folder: Path) -> ctypes.CDLL | str:
    """The loops, or why there are none."""
    compiler = os.environ.get("CC") or next(
        filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None
    )
    if compiler is None:
        return "no C compiler found (CC, cc, gcc, clang)"
    source, library = folder / "limits.c", folder / "limits.so"
    fma = [_FMA_SOURCE.replace("VEC", v).replace("REAL", r) for v, r in _REALS.items()]
    source.write_text(_SOURCE + "".join(fma))
    said = ""
    for flags in _FLAG_SETS:
        command = [*compiler.split(), "-O3", "-ffp-contract=fast", *flags, "-fPIC", "-shared"]
        try:
            done = subprocess.run(
                [*command, "-o", str(library), str(source)],
                capture_output=True,
                text=True,
                check=False,
            )
        except OSError as error:
            return f"the C compiler cannot be run: {error}"
        if done.returncode == 0:
            return ctypes.CDLL(str(library))
        said = done.stderr.strip().partition("\n")[0]
    return f"the C compiler failed: {said}"
