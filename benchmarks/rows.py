"""Measured rows: times, ratios, shares of the machine's limit, and results of targets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from benchmarks.libraries import PEERS
from benchmarks.limits import Limit
from benchmarks.registry import BEST, Case, Target
from benchmarks.timing import Spread, spread

__all__ = ["LIMIT", "MET", "MISSED", "NEAR", "UNKNOWN", "Row", "Verdict", "judged", "row_of"]

LIMIT = "limit"  # the machine's own loops, timed beside the libraries
MET, NEAR, MISSED, UNKNOWN = "met", "near", "missed", "not measured"
_BEST_FIRST = (MET, NEAR, MISSED, UNKNOWN)


@dataclass(frozen=True)
class Verdict:
    """A target and its result. Near: missed by the median, met by the better quartile."""

    target: str
    found: float | None
    result: str


@dataclass
class Row:
    """One line of the table. Times are in seconds, sizes in MB."""

    group: str
    name: str
    dtype: str
    subject: str
    times: dict[str, Spread]
    ratios: dict[str, Spread]  # the subject's time / the library's, by round
    best: str = ""  # the fastest of the peers
    absent: dict[str, str] = field(default_factory=dict)
    unit: str = "s"
    rate: float | None = None  # rate of the subject, in rate_unit
    rate_unit: str = ""
    limit: Spread | None = None  # time at the machine's limit
    limit_of: str = ""  # FMA, or the place of the data and the kind of stores
    share: Spread | None = None  # share of the limit, by round
    ordinary: float = 1.0  # time of the limit's loop with ordinary stores / with its own stores
    verdicts: list[Verdict] = field(default_factory=list)
    note: str = ""

    @property
    def key(self) -> str:
        """Unique within a recording."""
        return f"{self.group}/{self.name}/{self.dtype}"

    def worst(self) -> str:
        """The worst result of the targets, or met if there are none."""
        results = [v.result for v in self.verdicts]
        return next((r for r in (MISSED, NEAR, UNKNOWN) if r in results), MET)


def judged(target: str, bound: float, found: Spread, at_least: bool = False) -> Verdict:
    """The verdict of a figure and a bound: at most, or at least if ``at_least``."""
    better = found.high if at_least else found.low
    sign = -1 if at_least else 1
    if sign * found.median <= sign * bound:
        return Verdict(target, found.median, MET)
    return Verdict(target, found.median, NEAR if sign * better <= sign * bound else MISSED)


def _inverse(s: Spread) -> Spread:
    return Spread(1 / s.median, 1 / s.high, 1 / s.low)


def _verdict(target: Target, row: Row) -> Verdict:
    if target.kind == "either":
        tried = [_verdict(choice, row) for choice in target.choices]
        best = min(tried, key=lambda v: _BEST_FIRST.index(v.result))
        return Verdict(str(target), best.found, best.result)
    if target.kind == "share":
        if row.share is None:
            return Verdict(str(target), None, UNKNOWN)
        return judged(str(target), target.bound, row.share, at_least=True)
    peer = row.best if target.peer == BEST else target.peer
    if peer not in row.ratios:
        return Verdict(str(target), None, UNKNOWN)
    name = str(target) + (f" ({peer})" if target.peer == BEST else "")
    if target.kind == "speed":
        return judged(name, target.bound, _inverse(row.ratios[peer]), at_least=True)
    return judged(name, target.bound, row.ratios[peer])


def _verdicts(targets: Sequence[Target], row: Row, isa: str, threads: int) -> list[Verdict]:
    """The verdicts of the targets that apply to this instruction set and number of threads."""
    held = [t for t in targets if t.isa in ("", isa) and t.threads in (0, threads)]
    return [_verdict(target, row) for target in held]


def best_peer(times: Mapping[str, Spread], subject: str) -> str:
    """The fastest of the libraries besides the subject, or ''."""
    peers = [name for name in times if name in PEERS and name != subject]
    return min(peers, key=lambda name: times[name].median, default="")


def row_of(
    case: Case,
    samples: Mapping[str, Sequence[float]],
    absent: dict[str, str],
    limit: Limit | None,
    isa: str,
    threads: int = 1,
) -> Row:
    """The row of a case from the seconds per call in every round."""
    subject = samples.get(case.subject, ())
    libraries = {name: found for name, found in samples.items() if name != LIMIT}
    row = Row(
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
        note=case.note,
    )
    row.best = best_peer(row.times, case.subject)
    work = case.flops or case.reads + case.writes
    if work and subject:
        row.rate = work / row.times[case.subject].median
        row.rate_unit = "FLOP/s" if case.flops else "B/s"
    if limit is not None and subject:
        needed = [limit.scale * s for s in samples[LIMIT]]
        row.limit, row.limit_of, row.ordinary = spread(needed), limit.what, limit.ordinary
        row.share = spread([n / s for n, s in zip(needed, subject, strict=True)])
    row.verdicts = _verdicts(case.targets, row, isa, threads)
    return row
