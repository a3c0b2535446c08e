"""A measured row: times, ratios, the share of the machine's limit, and how its targets fared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from benchmarks.environment import last_level_cache
from benchmarks.limits import Limits
from benchmarks.registry import Case, Target
from benchmarks.timing import Spread, spread

__all__ = ["MET", "MISSED", "NEAR", "UNKNOWN", "Row", "Verdict", "judged", "row_of"]

MET, NEAR, MISSED, UNKNOWN = "met", "near", "missed", "not measured"


@dataclass(frozen=True)
class Verdict:
    """A target and what was found. Near: missed by the median, met by the better quartile."""

    target: str
    found: float | None
    result: str


@dataclass
class Row:
    """One line of the table; times in seconds, sizes in MB."""

    key: str
    group: str
    name: str
    dtype: str
    subject: str
    times: dict[str, Spread]
    ratios: dict[str, Spread]  # the subject's time / the library's, by round
    absent: dict[str, str] = field(default_factory=dict)
    unit: str = "s"
    calls: dict[str, int] = field(default_factory=dict)  # in a block
    rounds: int = 0
    rate: float | None = None  # of the subject, in rate_unit
    rate_unit: str = ""
    share: float | None = None  # of the limit
    verdicts: list[Verdict] = field(default_factory=list)
    tolerance: float | None = None
    note: str = ""

    def worst(self) -> str:
        """The worst result among the targets; met where there are none."""
        results = [v.result for v in self.verdicts]
        return next((r for r in (MISSED, NEAR, UNKNOWN) if r in results), MET)

    def as_json(self) -> dict[str, Any]:
        """Plain dictionaries and lists."""
        return asdict(self)


def judged(target: str, bound: float, found: Spread, at_least: bool = False) -> Verdict:
    """Whether a figure stays within a bound: below it, or above it if ``at_least``."""
    better = found.high if at_least else found.low
    sign = -1 if at_least else 1
    if sign * found.median <= sign * bound:
        return Verdict(target, found.median, MET)
    return Verdict(target, found.median, NEAR if sign * better <= sign * bound else MISSED)


def _inverse(s: Spread, numerator: float = 1.0) -> Spread:
    return Spread(numerator / s.median, numerator / s.high, numerator / s.low)


def _verdict(target: Target, row: Row, roof: float | None, work: float) -> Verdict:
    if target.kind == "share":
        if roof is None or row.subject not in row.times:
            return Verdict(str(target), None, UNKNOWN)
        reached = _inverse(row.times[row.subject], work / roof)
        return judged(str(target), target.bound, reached, at_least=True)
    ratio = row.ratios.get(target.peer)
    if ratio is None:
        return Verdict(str(target), None, UNKNOWN)
    if target.kind == "speed":
        return judged(str(target), target.bound, _inverse(ratio), at_least=True)
    return judged(str(target), target.bound, ratio)


def _roof(case: Case, limits: Limits | str) -> float | None:
    """The limit for the work of a case: FMA peak, or memory where it does not fit in a cache."""
    if isinstance(limits, str):
        return None
    if case.flops:
        return limits[f"fma {case.dtype}"]
    if case.bytes > 2 * last_level_cache():
        return max(v for name, v in limits.items() if name.startswith("memory"))
    return None


def row_of(
    case: Case,
    samples: Mapping[str, Sequence[float]],
    calls: dict[str, int],
    absent: dict[str, str],
    limits: Limits | str,
    isa: str,
) -> Row:
    """The row of a case from the seconds a call in every round."""
    subject = samples.get(case.subject, ())
    row = Row(
        key=case.key,
        group=case.group,
        name=case.name,
        dtype=case.dtype,
        subject=case.subject,
        times={name: spread(found) for name, found in samples.items()},
        ratios={
            name: spread([s / o for s, o in zip(subject, found, strict=True)])
            for name, found in samples.items()
            if subject and name != case.subject
        },
        absent=absent,
        calls=calls,
        rounds=max(map(len, samples.values()), default=0),
        tolerance=case.tolerance,
        note=case.note,
    )
    work, roof = case.flops or case.bytes, _roof(case, limits)
    if work and subject:
        row.rate = work / row.times[case.subject].median
        row.rate_unit = "FLOP/s" if case.flops else "B/s"
        row.share = row.rate / roof if roof else None
    row.verdicts = [_verdict(t, row, roof, work) for t in case.targets if t.isa in ("", isa)]
    return row
