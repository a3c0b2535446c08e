"""Measurement of the machine's limits, multiply-adds and bandwidths, by C loops.

``loops.c`` is built with the system's C compiler into a temporary folder, and called by ctypes,
which releases the GIL. With several threads each runs the loops on its own data. Each is pinned to
its own core, since a scheduler may wake two threads on one core.
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
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.environment import caches
from benchmarks.registry import Case

__all__ = ["Limit", "Limits", "Loops", "load_loops"]

Limits = dict[str, float]  # FLOP/s and bytes/s by name

_SOURCE = Path(__file__).with_name("loops.c")
_REALS = {"float32": "float", "float64": "double"}
_FLAGS = ["-O3", "-ffp-contract=fast", "-fno-tree-loop-distribute-patterns", "-fPIC", "-shared"]
_FLAG_SETS = (["-march=native"], ["-mcpu=native"], [])  # for this machine only; nothing is shipped
_TRAFFIC = {"read": (1, 0), "copy": (1, 1), "add": (2, 1)}  # arrays read and written
_ORDINARY, _ORDINARY_AHEAD, _STREAMING_AHEAD = range(3)  # as in loops.c
_FMA_ROUNDS = 100_000  # about half a millisecond
_LONGER = 20  # factor for several threads, whose start takes longer
_LARGEST = 2**28  # most bytes moved; beyond the caches a rate does not depend on the size
_SHORTEST = 5e-4  # least seconds of a call; small movements are repeated
_PAGE, _APART = 4096, 2048  # offset of an output from its input modulo a page: far from equal


@dataclass(frozen=True)
class Limit:
    """A call that does the work of a case at the machine's limit, scaled by ``scale``."""

    call: Callable[[], None]
    scale: float  # seconds of the case's work / seconds of the call
    what: str  # the limit: FMA, or the cache or memory and the kind of stores
    ordinary: float = 1.0  # time of the loop with ordinary stores / with the chosen stores


class Loops:
    """The compiled loops, run in parallel in as many threads as the libraries have."""

    def __init__(self, libraries: dict[str, ctypes.CDLL], threads: int) -> None:
        """Keep the loaded libraries, one for each float width."""
        self._libraries = libraries
        self._threads = threads
        self._stretch = _LONGER if threads > 1 else 1
        self._workers = _workers(threads)
        self._memory: list[np.ndarray] = []
        self._caches = caches()

    def _side_by_side(self, calls: Sequence[Callable[[], object]]) -> None:
        if self._threads == 1:
            calls[0]()
            return
        pairs = zip(self._workers, calls, strict=True)
        for future in [worker.submit(call) for worker, call in pairs]:
            future.result()

    def of(self, case: Case) -> Limit | None:
        """The limit of a case for its declared work, or None if no work is declared."""
        if case.flops:
            return self.fma(case.dtype, case.flops)
        if case.reads or case.writes:
            return self.moving(case.reads, case.writes, case.footprint, case.in_place)
        return None

    def fma(self, dtype: str, flops: float, rounds: int = _FMA_ROUNDS) -> Limit:
        """The limit of multiply-adds in registers."""
        rounds *= self._stretch
        library = self._libraries[dtype]
        kernel, per_round = library.fma_rounds, library.flops_per_round
        kernel.restype, kernel.argtypes = ctypes.c_double, [ctypes.c_size_t]
        per_round.restype = ctypes.c_double
        calls = [partial(kernel, rounds)] * self._threads
        done = per_round() * rounds * self._threads
        return Limit(partial(self._side_by_side, calls), flops / done, "FMA")

    def moving(
        self, reads: float, writes: float, footprint: float = 0, in_place: bool = False
    ) -> Limit:
        """The limit of reading and writing so many bytes, with the fastest kind of stores.

        A call moves each byte of the footprint once. A footprint that fits in a cache is moved
        repeatedly, and stays there.
        """
        footprint = footprint or reads + writes
        pass_over = 1.0 if in_place else footprint / (reads + writes)  # fraction of the work
        moved = pass_over * min(1.0, _LARGEST / footprint)
        sizes = int(reads * moved) // self._threads, int(writes * moved) // self._threads
        once = self._movement(*sizes, _ORDINARY, in_place)
        repeats = max(1, round(_SHORTEST * self._stretch / _fastest(once, 3)))
        kinds = [_ORDINARY, _ORDINARY_AHEAD]
        if sizes[1] and not in_place and self._libraries["float32"].has_streaming_stores():
            kinds.append(_STREAMING_AHEAD)
        calls = {kind: self._movement(*sizes, kind, in_place, repeats) for kind in kinds}
        seconds = {kind: _fastest(call, 3) for kind, call in calls.items()}
        chosen = min(seconds, key=lambda kind: seconds[kind])
        what, cost = self._level(min(footprint, _LARGEST) / self._threads), 1.0
        if chosen == _STREAMING_AHEAD:
            what += ", streaming stores"
            cost = min(seconds[_ORDINARY], seconds[_ORDINARY_AHEAD]) / seconds[chosen]
        return Limit(calls[chosen], 1 / (moved * repeats), what, cost)

    def _movement(
        self, reads: int, writes: int, how: int, in_place: bool = False, repeats: int = 1
    ) -> Callable[[], None]:
        library = self._libraries["float32"]
        library.move.restype = None
        library.move.argtypes = [
            *([ctypes.c_void_p] * 2),
            *([ctypes.c_size_t] * 2),
            ctypes.c_int,
            ctypes.c_size_t,
        ]
        vector = library.vector_bytes()
        if not self._memory:
            self._memory = [np.ones(_LARGEST + 2 * _PAGE, np.uint8) for _ in range(2)]
        source, target = (-(-m.ctypes.data // _PAGE) * _PAGE for m in self._memory)
        starts = [
            (
                target + _APART + i * (writes // _PAGE * _PAGE),
                source + i * (reads // _PAGE * _PAGE),
            )
            for i in range(self._threads)
        ]
        calls = [
            partial(
                library.move,
                begin if in_place else out,
                begin,
                reads // vector,
                writes // vector,
                how,
                repeats,
            )
            for out, begin in starts
        ]
        return partial(self._side_by_side, calls)

    def _level(self, size: float) -> str:
        fitting = [name for name, capacity in self._caches.items() if size <= capacity]
        return fitting[0] if fitting else "memory"

    def measure(self, quick: bool) -> Limits:
        """FMA peaks, and bandwidths of memory and each cache, in bytes as a program counts them.

        An ordinary store first reads a line that is in no cache. A copy in memory therefore moves
        half as much again as is counted. A copy with streaming stores moves what is counted.
        """
        repeats = 4 if quick else 12
        limits: Limits = {}
        for dtype in self._libraries:
            limit = self.fma(dtype, 1.0, 20 * _FMA_ROUNDS)
            limits[f"FMA {dtype}"] = 1 / (_fastest(limit.call, repeats) * limit.scale)
        sizes = {name: size // 2 for name, size in self._caches.items()}
        for level, size in (sizes | {"memory": _LARGEST}).items():
            for name, (reads, writes) in _TRAFFIC.items():
                part = size // (reads + writes) // self._threads
                count = max(1, self._stretch * 2**24 // size)
                kinds = {"": _ORDINARY}
                if level == "memory":
                    kinds = {"": _ORDINARY_AHEAD, ", streaming stores": _STREAMING_AHEAD}
                for kind, how in kinds.items() if writes else (("", _ORDINARY),):
                    call = self._movement(reads * part, writes * part, how, repeats=count)
                    moved = (reads + writes) * part * self._threads * count
                    limits[f"{level} {name}{kind}"] = moved / _fastest(call, repeats)
        return limits


def _workers(threads: int) -> list[ThreadPoolExecutor]:
    """``threads`` threads, each pinned to one core of this process."""
    if not hasattr(os, "sched_setaffinity"):
        return [ThreadPoolExecutor(1) for _ in range(threads)]
    cores = sorted(os.sched_getaffinity(0))
    return [
        ThreadPoolExecutor(1, initializer=partial(os.sched_setaffinity, 0, {cores[i % len(cores)]}))
        for i in range(threads)
    ]


def _fastest(call: Callable[[], object], repeats: int) -> float:
    """Seconds of the fastest of several runs, since a limit is measured."""
    best = float("inf")
    for _ in range(repeats + 1):
        begin = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - begin)
    return best


def load_loops(threads: int) -> Loops | str:
    """The loops, or the reason why there are none."""
    libraries = {}
    with tempfile.TemporaryDirectory() as folder:
        for dtype, real in _REALS.items():
            found = _compile(Path(folder), real)
            if isinstance(found, str):
                return found
            libraries[dtype] = found
    return Loops(libraries, threads)


def _compile(folder: Path, real: str) -> ctypes.CDLL | str:
    """The loops for one float width, or the reason why there are none."""
    compiler = os.environ.get("CC") or next(
        filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None
    )
    if compiler is None:
        return "no C compiler found (CC, cc, gcc, clang)"
    library = folder / f"loops_{real}.so"
    said = ""
    for flags in _FLAG_SETS:
        command = [*compiler.split(), *_FLAGS, *flags, f"-DREAL={real}", str(_SOURCE)]
        try:
            done = subprocess.run(
                [*command, "-o", str(library)], capture_output=True, text=True, check=False
            )
        except OSError as error:
            return f"the C compiler cannot be run: {error}"
        if done.returncode == 0:
            return ctypes.CDLL(str(library))
        said = done.stderr.strip().partition("\n")[0]
    return f"the C compiler failed: {said}"
