"""The stopwatch: checked results, warm-up, interleaved rounds, medians and quartiles.

Every round times each library once, as a block of calls after one untimed call that brings its data
into the caches (unless a call is long), or after an untimed block where there are threads to wake,
which have slept while the others had their turn. The order of the libraries is drawn anew, so that
no one of them always finds the caches as the same other left them. Drift of the machine so hits all
alike, and ratios are taken within a round before their median is. A block during which the process
was put off its core is timed again: on a shared machine that would measure the neighbours.
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
    """How much time one case may take."""

    block: float  # seconds of calls timed at a time
    seconds: float  # for all rounds of a case, more or less
    least: int  # rounds, whatever they take
    most: int
    placements: int  # builds of a case, each at other addresses


QUICK = Budget(block=0.001, seconds=0.1, least=4, most=16, placements=2)
FULL = Budget(block=0.004, seconds=1.0, least=6, most=40, placements=8)
_PATIENCE, _KEPT = 0.02, 0.97  # seconds for one block, and the CPU / wall time it has to reach
_ROOM = 2**27  # bytes of a library's inputs, over all builds of a case
_LONG = 0.05  # seconds of a call that no earlier call of the same need warm the caches for
_AT_MOST = 6  # times the time of a case, to have the least number of rounds
_FEWEST = 3  # rounds, however long they take
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
    """The calls of a case whose results agree, and for the other libraries why they are absent.

    NumPy says what is right, or torch or jax where a case is not written for NumPy.

    A case is built ``placements`` times a library, with gaps of random size between: how inputs and
    results lie to each other modulo a page can change the time of the same code by half, and how
    much of a large array lies in huge pages by a fifth. The largest inputs are built less often.
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
    """The largest difference, relative to the largest entry of the expected array."""
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
    """Seconds a call, over a block of calls."""
    clock = time.perf_counter
    begin = clock()
    for _ in repeat(None, count):
        call()
    return (clock() - begin) / count


def _undisturbed(call: Call, count: int) -> float:
    """Seconds a call, over a block in which the process kept its core; else the best of a few.

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
    """How many calls fill a block; the calls made to find out warm up as well."""
    count = 1
    while True:
        each = time_block(call, count)
        if each * count >= seconds / 4:
            return max(1, round(seconds / each))
        count *= 4


def measure(
    calls: Mapping[str, Sequence[Call]], budget: Budget, threads: int = 1, patience: float = 1.0
) -> tuple[dict[str, list[float]], dict[str, int]]:
    """Seconds a call of each library in every round, and the calls in a block."""
    names = list(calls)
    for built in calls.values():  # what the first call of each allocates is no part of the time
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
