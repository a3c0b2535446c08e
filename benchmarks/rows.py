"""A measured row: times, ratios, the share of the machine's limit, and how its targets fared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from benchmarks.environment import last_level_cache
from benchmarks.limits import Limits
from benchmarks.registry import Case, Target
from benchmarks.timing import Spread, spread

__all__ = ["MET", "MISSED", "NEAR", "PEAK", "UNKNOWN", "Row", "Verdict", "judged", "row_of"]

PEAK = "FMA peak"  # measured beside the libraries where a case counts floating-point operations
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
    share: Spread | None = None  # of the limit
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


def _verdict(target: Target, row: Row) -> Verdict:
    if target.kind == "share":
        if row.share is None:
            return Verdict(str(target), None, UNKNOWN)
        return judged(str(target), target.bound, row.share, at_least=True)
    ratio = row.ratios.get(target.peer)
    if ratio is None:
        return Verdict(str(target), None, UNKNOWN)
    if target.kind == "speed":
        return judged(str(target), target.bound, _inverse(ratio), at_least=True)
    return judged(str(target), target.bound, ratio)


def _share(
    case: Case,
    subject: Sequence[float],
    peak: Sequence[float],
    peak_flops: float,
    limits: Limits | str,
) -> Spread | None:
    """Of the FMA peak of the same round, or of memory bandwidth where no cache holds the data."""
    if peak:
        reached = [case.flops / s for s in subject]
        return spread([r / (peak_flops / p) for r, p in zip(reached, peak, strict=True)])
    if isinstance(limits, str) or case.bytes <= 2 * last_level_cache():
        return None
    memory = max(v for name, v in limits.items() if name.startswith("memory"))
    return spread([case.bytes / s / memory for s in subject])


def row_of(
    case: Case,
    samples: Mapping[str, Sequence[float]],
    calls: dict[str, int],
    absent: dict[str, str],
    peak_flops: float,
    limits: Limits | str,
    isa: str,
) -> Row:
    """The row of a case from the seconds a call in every round."""
    subject = samples.get(case.subject, ())
    libraries = {name: found for name, found in samples.items() if name != PEAK}
    row = Row(
        key=case.key,
        group=case.group,
        name=case.name,
        dtype=case.dtype,
        subject=case.subject,
        times={name: spread(found) for name, found in libraries.items()},
        ratios={
            name: spread([s / o for s, o in zip(subject, found, strict=True)])
            for name, found in libraries.items()
            if subject and name != case.subject
        },
        absent=absent,
        calls=calls,
        rounds=max(map(len, samples.values()), default=0),
        tolerance=case.tolerance,
        note=case.note,
    )
    work = case.flops or case.bytes
    if work and subject:
        row.rate = work / row.times[case.subject].median
        row.rate_unit = "FLOP/s" if case.flops else "B/s"
        row.share = _share(case, subject, samples.get(PEAK, ()), peak_flops, limits)
    row.verdicts = [_verdict(t, row) for t in case.targets if t.isa in ("", isa)]
    return row
