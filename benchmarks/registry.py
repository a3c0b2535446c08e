"""Registry of benchmark cases: the class of a case, and the list of all cases.

A case is declared once: its name, its inputs, each library's computation, its work and its targets.
The modules of ``benchmarks.cases`` register their cases.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = [
    "BACKWARD",
    "CASES",
    "GROUPS",
    "Builder",
    "Case",
    "Target",
    "either",
    "faster",
    "register",
    "selected",
    "share",
    "time_ratio",
]

Builder = Callable[..., Callable[[], Any]]  # (Library, *inputs) -> the timed call
SUBJECT = "minigrad"
BEST = "the best peer"
BACKWARD = ", forward+backward"  # suffix of the names of rows with backward

GROUPS = (
    "control",
    "overhead",
    "elementwise",
    "reductions",
    "matmul",
    "nn",
    "data",
    "training",
    "transforms",
    "compiled",
    "memory",
    "startup",
)


@dataclass(frozen=True)
class Target:
    """A target of a row: a bound and its kind."""

    kind: str  # "time" or "speed" relative to a peer, "share" of the limit, or "either"
    bound: float = 0.0
    peer: str = ""
    isa: str = ""  # applies only to this instruction set
    threads: int = 0  # applies only to this number of threads; 0: any
    choices: tuple[Target, ...] = ()

    def __str__(self) -> str:
        """The text in the table."""
        if self.kind == "either":
            return " or ".join(map(str, self.choices))
        if self.kind == "share":
            return f">= {self.bound:g} of the limit"
        if self.kind == "speed":
            return f">= {self.bound:g}x {self.peer}'s speed"
        return f"<= {self.bound:g}x {self.peer}'s time"


def time_ratio(bound: float, peer: str = BEST) -> Target:
    """Target: takes at most ``bound`` times as long as the peer."""
    return Target("time", bound, peer)


def faster(factor: float, peer: str = BEST, isa: str = "", threads: int = 0) -> Target:
    """Target: runs at least ``factor`` times as fast as the peer."""
    return Target("speed", factor, peer, isa, threads)


def share(bound: float) -> Target:
    """Target: reaches at least this fraction of the measured limit, FMA peak or bandwidth."""
    return Target("share", bound)


def either(*choices: Target) -> Target:
    """Target: meets at least one of several targets."""
    return Target("either", choices=choices)


@dataclass(frozen=True)
class Case:
    """One row of the table.

    ``inputs(rng)`` makes NumPy arrays. ``builders[library](lib, *inputs)`` returns a call without
    arguments, whose result is an array or a sequence of arrays. All libraries agree on
    ``compared(library, results)`` within ``tolerance`` of the largest element. The work of a call
    is ``flops``, or the bytes to read and write. ``footprint`` is the size of its arrays, if some
    are read twice or overwritten ``in_place``.
    """

    group: str
    name: str
    inputs: Callable[[Any], Sequence[Any]]
    builders: Mapping[str, Builder]
    dtype: str = "float32"
    flops: float = 0
    reads: float = 0
    writes: float = 0
    footprint: float = 0
    in_place: bool = False
    patience: float = 1.0  # factor of the time spent on a case
    quick: bool = True
    full: bool = True
    tolerance: float = 2e-5
    targets: Sequence[Target] = ()
    note: str = ""
    subject: str = SUBJECT  # the library under test; different for control rows
    compared: Callable[[str, list[Any]], list[Any]] = lambda _, results: results

    @property
    def key(self) -> str:
        """The unique key that ``--only`` is matched against."""
        return f"{self.group}/{self.name}/{self.dtype}"


CASES: dict[str, Case] = {}


def register(case: Case) -> None:
    """Add a case. Its key must be new."""
    if case.key in CASES:
        raise ValueError(f"[benchmarks] two cases are called {case.key}")
    CASES[case.key] = case


_MODULES = (
    "control",
    "overhead",
    "elementwise",
    "reductions",
    "matmul",
    "nn_dense",
    "nn_window",
    "nn_attention",
    "nn_recurrent",
    "data",
    "optimisers",
    "training",
    "transforms",
    "compiled",
)


def selected(quick: bool, only: str = "") -> list[Case]:
    """The cases of a quick or full run whose key matches, in order of declaration."""
    for module in _MODULES:
        importlib.import_module(f"benchmarks.cases.{module}")
    wanted = re.compile(only)
    return [c for c in CASES.values() if (c.quick if quick else c.full) and wanted.search(c.key)]
