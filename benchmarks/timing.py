"""Timing: checked results, warm-up, interleaved rounds, medians and quartiles.

Every round times each library once, as a block of calls. An untimed call before the block brings
the data into the caches, unless a call is long. If there are threads to wake, an untimed block
comes first, since the threads slept while the other libraries ran. Each round draws a new order of
the libraries, so that no library always follows the same one.

Drift of the machine therefore affects all libraries alike. Ratios are computed within a round, and
then their median. A block during which the process lost its core is timed again: on a shared
machine it would measure the other processes.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any

import numpy as np

from benchmarks.libraries import KINDS, PEERS, Library
from benchmarks.registry import SUBJECT, Case

__all__ = ["Budget", "Spread", "build", "largest_error", "measure", "spread"]

Call = Callable[[], Any]
_JUDGES = ("numpy", "torch", "jax", *[name for name in KINDS if name not in PEERS], SUBJECT)


@dataclass(frozen=True)
class Budget:
    """The time that one case may take."""

    block: float  # seconds of calls timed at a time
    seconds: float  # for all rounds of a case, approximately
    least: int  # least number of rounds, whatever they take
    most: int
    placements: int  # builds of a case, each at different addresses


QUICK = Budget(block=0.001, seconds=0.1, least=4, most=16, placements=2)
FULL = Budget(block=0.004, seconds=1.0, least=6, most=40, placements=8)
_PATIENCE, _KEPT = 0.02, 0.97  # seconds for one block, and the least CPU / wall time
_ROOM = 2**27  # bytes of a library's inputs, over all builds of a case
_LONG = 0.05  # seconds of a call that needs no warm caches
_AT_MOST = 6  # factor of a case's time, to reach the least number of rounds
_FEWEST = 3  # least number of rounds, however long they take
_SETTLED = 0.06  # seconds until another library's idle threads have stopped spinning


@dataclass(frozen=True)
class Spread:
    """Median and quartiles."""

    median: float
    low: float
    high: float


def spread(samples: Sequence[float]) -> Spread:
    """Median and quartiles of some samples."""
    low, median, high = np.percentile(samples, [25, 50, 75])
    return Spread(float(median), float(low), float(high))


# ---- the same results ----------------------------------------------------------------------------


def build(
    case: Case, libraries: Mapping[str, Library], placements: int = 1, seed: int = 20
) -> tuple[dict[str, list[Call]], dict[str, str]]:
    """The calls of a case whose results agree. For other libraries, the reason of their absence.

    NumPy gives the reference, or torch or jax if a case is not written for NumPy.

    A case is built ``placements`` times per library, with gaps of random size. The distance of
    inputs and results modulo a page can change the time of the same code by half. The part of a
    large array in huge pages can change it by a fifth. The largest inputs are built less often.
    """
    rng = np.random.default_rng(seed)
    inputs = case.inputs(rng)
    held = sum(np.asarray(v).nbytes for v in inputs)
    placements = max(1, min(placements, _ROOM // max(held, 1)))
    calls: dict[str, list[Call]] = {}
    absent: dict[str, str] = {}
    reference: list[np.ndarray] | None = None
    judge = ""
    gaps: list[np.ndarray] = []
    for name in sorted(case.builders, key=_JUDGES.index):
        if name not in libraries:
            if name in PEERS:
                absent[name] = "not installed"
            continue
        lib = libraries[name]
        built: list[Call] = []
        try:
            for _ in range(placements if lib.rebuilt else 1):
                gaps.append(np.empty(16 * int(rng.integers(1, 4096)), np.uint8))
                built.append(lib.finished(case.builders[name](lib, *inputs)))
            got = case.compared(name, [np.array(r) for r in lib.results(built[0]())])
        except Exception as error:
            absent[name] = f"failed: {type(error).__name__}: {error}"
            continue
        if reference is None:
            reference, judge = got, name
        error_found = largest_error(got, reference)
        if error_found <= case.tolerance:
            calls[name] = built
        else:
            absent[name] = f"WRONG: differs from {judge} by {error_found:.2g} of the largest entry"
    return calls, absent


def largest_error(got: Sequence[np.ndarray], expected: Sequence[np.ndarray]) -> float:
    """The largest difference, relative to the largest element of the expected array."""
    if len(got) != len(expected):
        return float("inf")
    worst = 0.0
    for g, e in zip(got, expected, strict=True):
        if (g.shape, g.dtype) != (e.shape, e.dtype) or not np.isfinite(g).all():
            return float("inf")
        largest = float(np.max(np.abs(e), initial=0.0)) or 1.0
        worst = max(worst, float(np.max(np.abs(g - e), initial=0.0)) / largest)
    return worst


# ---- the stopwatch -------------------------------------------------------------------------------


def time_block(call: Call, count: int) -> float:
    """Seconds per call, over a block of calls."""
    clock = time.perf_counter
    begin = clock()
    for _ in repeat(None, count):
        call()
    return (clock() - begin) / count


def _undisturbed(call: Call, count: int) -> float:
    """Seconds per call, over a block in which the process kept its core; else the best of a few.

    With several threads CPU time exceeds wall time, and a disturbed block may pass unnoticed.
    """
    best = float("inf")
    begin = time.perf_counter()
    while best == float("inf") or time.perf_counter() - begin < _PATIENCE:
        busy = time.process_time()
        seconds = time_block(call, count)
        busy = time.process_time() - busy
        best = min(best, seconds)
        if busy >= _KEPT * seconds * count:
            return seconds
    return best


def _calls_per_block(call: Call, seconds: float) -> int:
    """The number of calls that fill a block. The calls to find it warm up as well."""
    count = 1
    while True:
        each = time_block(call, count)
        if each * count >= seconds / 4:
            return max(1, round(seconds / each))
        count *= 4


def measure(
    calls: Mapping[str, Sequence[Call]], budget: Budget, threads: int = 1, patience: float = 1.0
) -> tuple[dict[str, list[float]], dict[str, int]]:
    """Seconds per call of each library in every round, and the number of calls in a block."""
    names = list(calls)
    for built in calls.values():  # allocations of the first call do not count
        for call in built:
            call()
    counts = {name: _calls_per_block(calls[name][0], budget.block) for name in names}
    samples: dict[str, list[float]] = {name: [] for name in names}
    order = np.random.default_rng(21)
    gc.collect()
    gc.disable()
    try:
        begin = time.perf_counter()
        for done in range(budget.most):
            spent = time.perf_counter() - begin
            enough = 1 if done >= budget.least else _AT_MOST
            if done >= _FEWEST and spent > budget.seconds * patience * enough:
                break
            for name in order.permutation(names):
                call = calls[name][done % len(calls[name])]
                if threads > 1:
                    time.sleep(_SETTLED)
                if not samples[name] or samples[name][-1] < _LONG:
                    time_block(call, counts[name] if threads > 1 else 1)
                samples[name].append(_undisturbed(call, counts[name]))
    finally:
        gc.enable()
    return samples, counts
