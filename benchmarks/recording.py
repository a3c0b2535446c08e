"""A machine's recorded benchmarks: one CSV file, read and written with the csv module.

The file begins with facts, one per line: ``#``, the number of threads, the fact's name, its value.
After the line of column names each line is a row of the table, measured with ``threads`` threads:

* ``group``, ``row``, ``dtype``: the row's name.
* ``unit``: of all its figures: us, MB or none.
* ``time``, ``low``, ``high``: median and quartiles of minigrad; in the group control, of NumPy.
* ``numpy``, ``torch``, ``jax`` and others: the median of each library it is compared with.
* ``/numpy`` and so on: the time divided by that library's in the same round, the median of these.
* ``limit``, ``limit of``: the least time the machine needs, and what limits it.
* ``targets``, ``short of``: how many targets the row has; which it did not meet, and at what.
* ``note``: the way a library computed the row, where it had a choice.

Writing the recording of a number of threads replaces that recording and keeps the others.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.libraries import PEERS
from benchmarks.registry import SUBJECT
from benchmarks.rows import MET, MISSED, NEAR, UNKNOWN, Row, Verdict, best_peer
from benchmarks.timing import Spread

__all__ = ["FOLDER", "Recording", "read", "read_all", "write"]

FOLDER = Path(__file__).parent / "results"
_FACT = "#"
_BEFORE = ("threads", "group", "row", "dtype", "unit", "time", "low", "high")
_AFTER = ("limit", "limit of", "targets", "short of", "note")
_UNITS = {"s": ("us", 1e6)}  # written unit, and its factor
_CONTROL = "again"  # the library under test in the group control


@dataclass
class Recording:
    """The rows of one run, and facts of machine and software by name."""

    threads: int
    facts: dict[str, str]
    rows: list[Row]


# ---- writing -------------------------------------------------------------------------------------


def write(path: Path, recording: Recording) -> None:
    """Write a recording to a file, in place of the recording with the same number of threads."""
    others = read_all(path) if path.exists() else []
    kept = [other for other in others if other.threads != recording.threads]
    recordings = sorted([*kept, recording], key=lambda r: r.threads)
    peers = _peers(row for r in recordings for row in r.rows)
    columns = [*_BEFORE, *peers, *[f"/{name}" for name in peers], *_AFTER]
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        plain = csv.writer(file, lineterminator="\n")
        for r in recordings:
            plain.writerows([_FACT, r.threads, name, value] for name, value in r.facts.items())
        lines = csv.DictWriter(file, columns, restval="", lineterminator="\n")
        lines.writeheader()
        lines.writerows(_line(row, r.threads) for r in recordings for row in r.rows)


def _peers(rows: Iterable[Row]) -> list[str]:
    """The libraries besides the subject: the usual ones, then others in order of appearance."""
    found = dict.fromkeys(name for row in rows for name in row.times if name != row.subject)
    return [n for n in PEERS if n in found] + [n for n in found if n not in PEERS]


def _number(value: float) -> str:
    """Four significant digits, with an exponent only if necessary."""
    return f"{float(f'{value:.4g}'):.12g}"


def _line(row: Row, threads: int) -> dict[str, Any]:
    unit, factor = _UNITS.get(row.unit, (row.unit, 1.0))
    line = {
        "threads": threads,
        "group": row.group,
        "row": row.name,
        "dtype": row.dtype,
        "unit": unit,
        "limit of": row.limit_of,
        "targets": len(row.verdicts),
        "short of": "; ".join(_shortfall(v) for v in row.verdicts if v.result != MET),
        "note": row.note,
    }
    for name, found in row.times.items():
        line["time" if name == row.subject else name] = _number(found.median * factor)
    if row.subject in row.times:
        line["low"] = _number(row.times[row.subject].low * factor)
        line["high"] = _number(row.times[row.subject].high * factor)
    for name, found in row.ratios.items():
        line[f"/{name}"] = _number(found.median)
    if row.limit is not None:
        line["limit"] = _number(row.limit.median * factor)
    return line


def _shortfall(verdict: Verdict) -> str:
    """A target that was not met: ``missed at 0.72: >= 0.85 of the limit``."""
    found = "" if verdict.found is None else f" at {verdict.found:.3g}"
    return f"{verdict.result}{found}: {verdict.target}"


# ---- reading -------------------------------------------------------------------------------------


def read(path: Path, threads: int) -> Recording:
    """Read the recording with so many threads. Raises ValueError if there is none."""
    found = {r.threads: r for r in read_all(path)}
    if threads not in found:
        there = ", ".join(map(str, found)) or "none"
        raise ValueError(f"[benchmarks] {path} has no recording of {threads} threads, but {there}")
    return found[threads]


def read_all(path: Path) -> list[Recording]:
    """Read all recordings of a file. Raises ValueError for other content."""
    found: dict[int, Recording] = {}
    columns: list[str] = []
    with path.open(encoding="utf-8", newline="") as file:
        for cells in csv.reader(file):
            if cells[:1] == [_FACT]:
                threads = int(cells[1])
                recording = found.setdefault(threads, Recording(threads, {}, []))
                recording.facts[cells[2]] = cells[3]
            elif not columns:
                columns = cells
                if missing := {*_BEFORE, *_AFTER}.difference(columns):
                    raise ValueError(f"[benchmarks] {path} lacks the columns {sorted(missing)}")
            else:
                line = dict(zip(columns, cells, strict=True))
                threads = int(line["threads"])
                recording = found.setdefault(threads, Recording(threads, {}, []))
                recording.rows.append(_row(line))
    if not columns:
        raise ValueError(f"[benchmarks] {path} has no line of column names")
    return list(found.values())


def _row(line: Mapping[str, str]) -> Row:
    """A row as far as it was written: peers have no quartiles, and met targets no names."""
    unit, factor = next(
        ((ours, f) for ours, (written, f) in _UNITS.items() if written == line["unit"]),
        (line["unit"], 1.0),
    )

    def figure(column: str) -> float:
        return float(line[column]) / factor

    subject = _CONTROL if line["group"] == "control" else SUBJECT
    times = {}
    if line["time"]:
        times[subject] = Spread(figure("time"), figure("low"), figure("high"))
    ratios = {}
    for column, text in line.items():
        if column.startswith("/") and text:
            ratios[column[1:]] = _exactly(float(text))
        elif f"/{column}" in line and text:
            times[column] = _exactly(figure(column))
    limit = _exactly(figure("limit")) if line["limit"] else None
    return Row(
        group=line["group"],
        name=line["row"],
        dtype=line["dtype"],
        subject=subject,
        times=times,
        ratios=ratios,
        best=best_peer(times, subject),
        unit=unit,
        limit=limit,
        limit_of=line["limit of"],
        share=_share(limit, times.get(subject)),
        verdicts=_verdicts(int(line["targets"]), line["short of"]),
        note=line["note"],
    )


def _exactly(value: float) -> Spread:
    return Spread(value, value, value)


def _share(limit: Spread | None, time: Spread | None) -> Spread | None:
    return _exactly(limit.median / time.median) if limit and time else None


def _verdicts(count: int, short: str) -> list[Verdict]:
    """The missed targets in the text, then the met targets, without names."""
    named = []
    for text in filter(None, short.split("; ")):
        head, _, target = text.partition(": ")
        result, _, found = head.partition(" at ")
        if result not in (NEAR, MISSED, UNKNOWN):
            raise ValueError(f"[benchmarks] no result of a target: {text}")
        named.append(Verdict(target, float(found) if found else None, result))
    return [*named, *[Verdict("", None, MET)] * (count - len(named))]
