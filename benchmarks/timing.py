"""The stopwatch: checked results, warm-up, interleaved rounds, medians and quartiles.

Every round times each library once, as a block of calls after one untimed call that brings its data
into the caches; the order of the libraries rotates. Drift of the machine so hits all of them alike, and
ratios are taken within a round before their median is.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any

import numpy as np

from benchmarks.libraries import Library
from benchmarks.registry import Case

__all__ = ["Budget", "Spread", "build", "largest_error", "measure", "spread"]

Call = Callable[[], Any]


@dataclass(frozen=True)
class Budget:
    """How much time one case may take."""

    block: float  # seconds of calls timed at a time
    seconds: float  # for all rounds of a case, more or less
    least: int  # rounds, whatever they take
    most: int


QUICK = Budget(block=0.003, seconds=0.25, least=5, most=9)
FULL = Budget(block=0.02, seconds=5.0, least=7, most=31)


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
    case: Case, libraries: Mapping[str, Library], seed: int = 20
) -> tuple[dict[str, Call], dict[str, str]]:
    """The calls of a case whose results agree with NumPy's, and for the others why they are absent."""
    calls: dict[str, Call] = {}
    absent: dict[str, str] = {}
    reference: list[np.ndarray] | None = None
    for name in sorted(case.builders, key=lambda name: name != "numpy"):
        if name not in libraries:
            absent[name] = "not installed"
            continue
        lib = libraries[name]
        inputs = case.inputs(np.random.default_rng(seed))
        try:
            call = lib.finished(case.builders[name](lib, *inputs))
            got = [np.array(r) for r in lib.results(call())]
        except Exception as error:  # noqa: BLE001 - one row must not end the run; it is reported
            absent[name] = f"failed: {type(error).__name__}: {error}"
            continue
        reference = got if reference is None else reference
        error_found = largest_error(got, reference)
        if error_found <= case.tolerance:
            calls[name] = call
        else:
            absent[name] = f"WRONG: differs from numpy by {error_found:.2g} of the largest entry"
    return calls, absent


def largest_error(got: Sequence[np.ndarray], expected: Sequence[np.ndarray]) -> float:
    """The largest difference, relative to the largest entry of the expected array."""
    if len(got) != len(expected):
        return float("inf")
    worst = 0.0
    for g, e in zip(got, expected, strict=True):
        if g.shape != e.shape or not np.isfinite(g).all():
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


def _calls_per_block(call: Call, seconds: float) -> int:
    """How many calls fill a block; the calls made to find out warm up as well."""
    count = 1
    while True:
        each = time_block(call, count)
        if each * count >= seconds / 4:
            return max(1, round(seconds / each))
        count *= 4


def measure(
    calls: Mapping[str, Call], budget: Budget
) -> tuple[dict[str, list[float]], dict[str, int]]:
    """Seconds a call of each library in every round, and the calls in a block."""
    names = list(calls)
    counts = {name: _calls_per_block(calls[name], budget.block) for name in names}
    samples: dict[str, list[float]] = {name: [] for name in names}
    gc.collect()
    gc.disable()
    try:
        begin = time.perf_counter()
        for done in range(budget.most):
            if done >= budget.least and time.perf_counter() - begin > budget.seconds:
                break
            turn = done % len(names)
            for name in names[turn:] + names[:turn]:
                calls[name]()
                samples[name].append(time_block(calls[name], counts[name]))
    finally:
        gc.enable()
    return samples, counts
