"""Comparison of two runs, row by row, with the changes of the other libraries' times."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import median

from benchmarks.libraries import PEERS
from benchmarks.recording import Recording
from benchmarks.report import si
from benchmarks.rows import MET, Row

__all__ = ["changes"]

_NOTICEABLE = 0.05  # a smaller change is not marked
_NAME = 64


def _drift(old: Row, new: Row) -> float:
    """The speed-up of the other libraries, whose code has not changed."""
    found = [
        old.times[name].median / new.times[name].median
        for name in old.times
        if name in PEERS and name != old.subject and name in new.times
    ]
    return median(found) if found else 1.0


def _line(key: str, old: Row, new: Row) -> str | None:
    """Old and new time, their ratio, the peers' ratio, and the remaining change."""
    subject = old.subject
    if subject not in old.times or subject not in new.times:
        return None if old.times.keys() == new.times.keys() else f"  {key}: in one run only"
    a, b = old.times[subject], new.times[subject]
    if not (a.median and b.median):
        return None
    factor, drift = a.median / b.median, _drift(old, new)
    left = factor / drift
    apart = b.low * drift > a.high or b.high * drift < a.low
    mark = ""
    if apart and abs(left - 1) > _NOTICEABLE and old.group != "control":
        mark = "faster" if left > 1 else "SLOWER"
    times = [si(t.median, "s") if old.unit == "s" else f"{t.median:.4g} {old.unit}" for t in (a, b)]
    return (
        f"  {key:<{_NAME}}{times[0]:>11}{times[1]:>11}{factor:>9.2f}{drift:>9.2f}{left:>9.2f}"
        f"  {mark}"
    ).rstrip()


def _control(old: Mapping[str, Row], new: Mapping[str, Row]) -> str:
    """The change of the machine's speed, by the rows without minigrad."""
    found = [
        old[key].times["numpy"].median / row.times["numpy"].median
        for key, row in new.items()
        if row.group == "control" and key in old and "numpy" in old[key].times
    ]
    if not found:
        return "  no control rows in both"
    return (
        f"  control rows (NumPy, no code of ours): old / new {min(found):.2f} to {max(found):.2f}, "
        f"median {median(found):.2f}"
    )


def _targets(old: Row, new: Row) -> list[str]:
    """Targets whose result changed. A recording does not name targets that were met."""
    if len(old.verdicts) != len(new.verdicts):
        return []  # the declared targets changed
    before, after = (
        {v.target.partition(" (")[0]: v.result for v in row.verdicts if v.target}
        for row in (old, new)
    )
    found = ((t, before.get(t, MET), after.get(t, MET)) for t in {**before, **after})
    return [f"  target {a} -> {b}: {new.key}: {target}" for target, a, b in found if a != b]


def changes(old: Recording, new: Recording) -> str:
    """A line for each row of both runs, then the targets whose result changed."""
    lines = ["COMPARED with " + old.facts["date"]]
    for fact in ("cpu", "instruction set", "versions", "settings"):
        a, b = old.facts.get(fact, "unknown"), new.facts.get(fact, "unknown")
        if a != b:
            lines.append(f"  other {fact}: {a} -> {b}")
    before = {row.key: row for row in old.rows}
    after = {row.key: row for row in new.rows}
    common = [key for key in after if key in before]
    lines.append(_control(before, after))
    lines.append(
        f"  {'':<{_NAME}}{'old':>11}{'new':>11}{'old/new':>9}{'peers':>9}{'left':>9}  "
        "(left: old/new beyond what the peers changed by; marked where quartiles are apart)"
    )
    lines += filter(None, (_line(key, before[key], after[key]) for key in common))
    if old.facts.get("instruction set") == new.facts.get("instruction set"):
        for key in common:  # otherwise they have other targets
            lines += _targets(before[key], after[key])
    fresh, gone = len(after.keys() - before.keys()), len(before.keys() - after.keys())
    if fresh or gone:
        lines.append(f"  {fresh} rows are new, {gone} rows of the older run were not measured")
    return "\n".join(lines)
