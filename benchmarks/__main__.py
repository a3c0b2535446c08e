"""``python -m benchmarks``: measure, print the table and record it; or draw recordings."""

from __future__ import annotations

import argparse
import gc
import re
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks import environment


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rows, under two minutes")
    parser.add_argument("--only", default="", metavar="REGEX", help="rows whose key matches")
    parser.add_argument("--threads", type=int, default=1, metavar="N", help="for every library")
    parser.add_argument(
        "--record",
        type=Path,
        metavar="CSV",
        help="the machine's file; this run replaces its rows of as many threads "
        "(default: benchmarks/out/benchmarks.csv)",
    )
    parser.add_argument("--compare", type=Path, metavar="CSV", help="print what changed since")
    parser.add_argument(
        "--draw",
        type=Path,
        metavar="FOLDER",
        help="measure nothing; draw charts of --record, or of every file of benchmarks/results",
    )
    parser.add_argument("--show", type=Path, metavar="CSV", help="measure nothing; print a file")
    parser.add_argument("--list", action="store_true", help="print the keys of the rows and stop")
    given = parser.parse_args()
    try:
        re.compile(given.only)
    except re.error as error:
        parser.error(f"--only: not a regular expression: {error}")
    if given.threads < 1:
        parser.error("--threads: at least 1")
    return given


def _progress(text: str) -> None:
    """Print a progress line that the next one overwrites, if the output is a terminal."""
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def _timed_rows(given: argparse.Namespace, libraries: Any, loops: Any, isa: str) -> list[Any]:
    """The rows of the cases."""
    from benchmarks import timing
    from benchmarks.registry import selected
    from benchmarks.rows import LIMIT, row_of

    cases = selected(given.quick, given.only)
    # The control rows again at the end, to show changes of the machine.
    cases += [case for case in cases if case.group == "control" and len(cases) > 5]
    budget = timing.QUICK if given.quick else timing.FULL
    rows: list[Any] = []
    gc.freeze()  # the collector takes 0.1 s for the libraries' objects before each case
    for place, case in enumerate(cases, 1):
        _progress(f"[{place}/{len(cases)}] {case.key}")
        calls, absent = timing.build(case, libraries, budget.placements)
        limit = None if isinstance(loops, str) or not calls else loops.of(case)
        if limit is not None:
            # The clock rate drifts, so the limit is measured in each round, like the libraries.
            calls[LIMIT] = [limit.call]
        if way := getattr(calls.get("torch", [None])[0], "way", ""):
            case = replace(case, note=f"{case.note}; torch: {way}")
        samples, _ = timing.measure(calls, budget, given.threads, case.patience)
        row = row_of(case, samples, absent, limit, isa, given.threads)
        if any(row.key == other.key for other in rows):
            row.name += ", at the end"
        rows.append(row)
    return rows


def _fresh_rows(given: argparse.Namespace, names: list[str]) -> list[Any]:
    """The rows that are measured in separate processes."""
    from benchmarks.all_threads import all_threads_rows
    from benchmarks.memory import memory_rows
    from benchmarks.startup import startup_rows

    _progress("all threads")
    rows = all_threads_rows(given.only) if given.threads == 1 and not given.quick else []
    _progress("memory")
    rows += memory_rows(names, given.quick, given.threads, given.only)
    if re.search(given.only, "startup/"):
        _progress("start-up")
        rows += startup_rows(names, given.quick)
    return rows


def _facts(
    machine: Mapping[str, Any], settings: Mapping[str, str], limits: Mapping[str, float] | str
) -> dict[str, str]:
    """Machine and software of a recording, as text."""
    from benchmarks.report import si

    rates: Mapping[str, str] | str = (
        limits
        if isinstance(limits, str)
        else {
            name: si(value, "FLOP/s" if name.startswith("FMA") else "B/s")
            for name, value in limits.items()
        }
    )
    facts = {**machine, "settings": settings, "limits": rates}
    return {name: _text(value) for name, value in facts.items() if value not in (None, {}, [])}


def _text(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {v}" for name, v in value.items() if v is not None)
    if isinstance(value, (list, tuple)):
        return ", ".join(f"{v:.2f}" if isinstance(v, float) else str(v) for v in value)
    return str(value)


def _show(path: Path) -> None:
    """Print the table and the summary of each recording of a file."""
    from benchmarks.recording import read_all
    from benchmarks.report import summary, table

    for recording in read_all(path):
        print(table(recording), summary(recording.rows, {}), sep="\n\n", end="\n\n")


def _draw(folder: Path, record: Path | None) -> None:
    """Draw the charts of one file of recordings, or of all files."""
    from benchmarks.chart import draw
    from benchmarks.recording import FOLDER, read_all

    for path in [record] if record else sorted(FOLDER.glob("*.csv")):
        for recording in read_all(path):
            print("\n".join(map(str, draw(recording, path.stem, folder))))


def _read_before(given: argparse.Namespace) -> Any:
    """The recording to compare with. A wrong path, or figures that would be lost, end the run."""
    from benchmarks.recording import read, read_all

    if given.record and given.record.exists():
        held = [r.threads for r in read_all(given.record)]
        if given.threads in held and (given.quick or given.only):
            raise ValueError(
                f"[benchmarks] {given.record} holds a recording of {given.threads} threads, which "
                "some rows alone would replace: name another file, or measure all rows"
            )
    return read(given.compare, given.threads) if given.compare else None


def _measured(given: argparse.Namespace, machine: Mapping[str, Any], settings: Any) -> Any:
    """Measure the selected rows, and return their recording."""
    from benchmarks.libraries import PEERS, installed
    from benchmarks.limits import load_loops
    from benchmarks.recording import Recording
    from benchmarks.registry import GROUPS

    libraries = installed(given.threads)
    loops = load_loops(given.threads)
    brief = given.quick or bool(given.only)
    limits = loops if isinstance(loops, str) else loops.measure(brief)
    # Steps that may fail because of the system come first, before the long part.
    rows = _fresh_rows(given, [name for name in PEERS if name in libraries])
    rows += _timed_rows(given, libraries, loops, machine["instruction set"])
    if not isinstance(loops, str) and not brief:
        limits = {name: max(limits[name], again) for name, again in loops.measure(False).items()}
    _progress("")
    rows.sort(key=lambda row: GROUPS.index(row.group))
    # Libraries report their thread counts after all are loaded.
    facts = _facts({**machine, "threads in use": environment.thread_facts()}, settings, limits)
    return Recording(given.threads, facts, rows)


def main() -> int:
    """Run the command line. Returns 1 if a case of minigrad failed or gave a wrong result."""
    given, begin = _arguments(), time.perf_counter()
    try:
        if given.show:
            _show(given.show)
        if given.draw:
            _draw(given.draw, given.record)
        if given.show or given.draw:
            return 0
        settings = environment.prepare(given.threads)
        old = _read_before(given)
    except (ImportError, RuntimeError, OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 2

    from benchmarks.compare import changes
    from benchmarks.recording import write
    from benchmarks.registry import selected
    from benchmarks.report import summary, table

    if given.list:
        print("\n".join(case.key for case in selected(given.quick, given.only)))
        return 0
    machine = environment.machine_facts()
    found = _measured(given, machine, settings)
    if not found.rows:
        print(f"no row matches {given.only!r}; --list shows the keys", file=sys.stderr)
        return 2
    found.facts["seconds"] = str(round(time.perf_counter() - begin))
    path = given.record or Path(__file__).parent / "out" / "benchmarks.csv"
    write(path, found)
    print(table(found), end="\n\n")
    if old is not None:
        print(changes(old, found), end="\n\n")
    print(f"{found.facts['seconds']} s; figures: {path}")
    print(summary(found.rows, machine))
    return int(any(row.subject not in row.times for row in found.rows))


if __name__ == "__main__":
    sys.exit(main())
