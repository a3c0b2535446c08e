"""Report of a run: the table and the summary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.libraries import PEERS
from benchmarks.recording import Recording
from benchmarks.rows import MET, MISSED, NEAR, UNKNOWN, Row

__all__ = ["si", "summary", "table"]

_MARKS = {MET: "ok", NEAR: "NEAR", MISSED: "MISSED", UNKNOWN: "?"}
_NAME, _TIME, _RATIO = 64, 15, 8


def si(value: float, unit: str) -> str:
    """A number with three digits and an SI prefix: 12.3 µs."""
    for factor, prefix in ((1e9, "G"), (1e6, "M"), (1e3, "k"), (1, ""), (1e-3, "m"), (1e-6, "µ")):
        if value >= factor:
            return f"{value / factor:.3g} {prefix}{unit}"
    return f"{value * 1e9:.3g} n{unit}"


def _time(row: Row, name: str) -> str:
    found = row.times.get(name)
    if found is None:
        why = row.absent.get(name, "")
        return "-" if why in ("", "not installed") else why.partition(":")[0]
    if row.unit != "s":
        return f"{found.median:.3g} {row.unit}".rstrip()
    half = (found.high - found.low) / 2 / found.median
    return si(found.median, "s") + (f" ±{half:.0%}" if half else "")


def _share(row: Row) -> str:
    """The share of the limit; in brackets, the share of the limit with ordinary stores."""
    if row.share is None:
        return ""
    share = f"{row.share.median:.0%}"
    if row.ordinary > 1:
        share += f" ({row.share.median * row.ordinary:.0%})"
    return f"{share} of {row.limit_of.partition(',')[0]}"


def _line(row: Row) -> str:
    columns = [row.subject, *PEERS[1:]]
    cells = [f"{f'{row.name} {row.dtype}'.strip():<{_NAME}}"]
    cells += [f"{_time(row, name):>{_TIME}}" for name in columns]
    cells += [
        f"{f'{row.ratios[name].median:.2f}' if name in row.ratios else '-':>{_RATIO}}"
        for name in (row.best, *PEERS[1:])
    ]
    cells.append(f"{si(row.rate, row.rate_unit) if row.rate else '':>14}")
    cells.append(f"{_share(row):>22}")
    cells.append(
        "  " + "; ".join(f"{_MARKS[v.result]} {v.target}" for v in row.verdicts if v.target)
    )
    return "".join(cells).rstrip()


def _header(row: Row) -> str:
    head = ["minigrad" if row.subject == "minigrad" else "numpy again", *PEERS[1:]]
    cells = [" " * _NAME, *(f"{name:>{_TIME}}" for name in head)]
    cells += [f"{'/' + name:>{_RATIO}}" for name in ("best", *PEERS[1:])]
    return "".join(cells) + f"{'rate':>14}{'share of the limit':>22}  targets"


def table(recording: Recording) -> str:
    """The table: all rows by group, under the facts of the run."""
    lines = [
        *[f"{name}: {value}" for name, value in recording.facts.items()],
        "time: median of the rounds ± half the distance of the quartiles; ratio: minigrad's time / "
        "the other's in the same round, below 1 minigrad is faster;",
        "share: of a loop of multiply-adds, or of one that only reads and writes as many bytes "
        "once in the same cache or memory, by the faster kind of stores (in brackets: by ordinary "
        "stores, where those are slower), timed in the same rounds;",
        "jax is jitted and waited for, its compilation is not timed",
    ]
    group = None
    for row in recording.rows:
        if row.group != group:
            group = row.group
            lines += ["", group.upper(), _header(row)]
        lines.append(_line(row))
    return "\n".join(lines)


def _fell_short(row: Row) -> list[str]:
    return [
        f"  {_MARKS[v.result]:<7}{row.key}: {v.target}; found "
        + ("nothing" if v.found is None else f"{v.found:.3g}")
        for v in row.verdicts
        if v.result != MET
    ]


def _noise(rows: Sequence[Row]) -> str:
    ratios = [r.ratios["numpy"] for r in rows if r.group == "control" and "numpy" in r.ratios]
    if not ratios:
        return ""
    worst = max(abs(r.median - 1) for r in ratios)
    widest = max(r.high - r.low for r in ratios)
    text = f"control (NumPy against itself): medians stray up to {worst:.1%} from 1"
    # A recording has no quartiles of ratios.
    return text + (f", quartiles lie up to {widest:.1%} apart" if widest else "")


def summary(rows: Sequence[Row], machine: Mapping[str, Any]) -> str:
    """The summary: missed targets, failed cases, the number of met targets, and the noise."""
    verdicts = [v for row in rows for v in row.verdicts]
    missed = [row for row in rows if row.worst() == MISSED]
    others = [row for row in rows if row.worst() in (NEAR, UNKNOWN)]
    lines = ["TARGETS MISSED" if missed else "No target is missed."]
    lines += [line for row in missed for line in _fell_short(row)]
    if others:
        lines.append("NEAR (within the spread) OR NOT MEASURED")
        lines += [line for row in others for line in _fell_short(row)]
    broken = [
        f"  {row.key}: {name} {why}"
        for row in rows
        for name, why in row.absent.items()
        if why != "not installed"
    ]
    if broken:
        lines += ["NOT TIMED", *broken]
    met = sum(v.result == MET for v in verdicts)
    lines.append(f"{met} of {len(verdicts)} targets met in {len(rows)} rows.")
    lines.append(_noise(rows))
    lines += [
        f"{name}={value} chose a library's kernels. These figures are not what it does by itself."
        for name, value in machine.get("held to", {}).items()
    ]
    load = machine.get("load average")
    if load and load[0] > machine["cores"] / 2:
        lines.append(
            f"The machine was busy at the start: load average {load[0]:.1f} on "
            f"{machine['cores']} cores. Do not keep these figures."
        )
    return "\n".join(filter(None, lines))
