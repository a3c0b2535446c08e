"""``python -m benchmarks``: measure, print the table, write JSON and a chart."""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path
from typing import Any

from benchmarks import environment

SCHEMA = 1  # of the JSON file


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="smaller sizes, under two minutes")
    parser.add_argument("--only", default="", metavar="REGEX", help="rows whose key matches")
    parser.add_argument("--threads", type=int, default=1, metavar="N", help="for every library")
    parser.add_argument(
        "--out",
        type=Path,
        default=Path(__file__).parent / "out",
        metavar="DIR",
        help="where benchmarks.json and benchmarks.png go (default: benchmarks/out)",
    )
    parser.add_argument("--compare", type=Path, metavar="OLD.json", help="print what changed since")
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
    """One line that is written over, where somebody is looking."""
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def _measured(
    given: argparse.Namespace, libraries: Any, isa: str
) -> tuple[list[Any], dict[str, float] | str]:
    """The rows and the machine's limits."""
    from benchmarks import timing
    from benchmarks.limits import best_of, load_loops
    from benchmarks.registry import selected
    from benchmarks.rows import PEAK, row_of
    from benchmarks.startup import startup_rows

    cases = selected(given.quick, given.only)
    # The control rows once more at the end, to show what changed meanwhile.
    cases += [case for case in cases if case.group == "control" and len(cases) > 5]
    budget = timing.QUICK if given.quick else timing.FULL
    loops = load_loops(given.threads)
    limits = loops if isinstance(loops, str) else loops.measure(given.quick)
    taken = []
    for place, case in enumerate(cases, 1):
        _progress(f"[{place}/{len(cases)}] {case.key}")
        calls, absent = timing.build(case, libraries, budget.placements)
        peak_flops = 0.0
        if case.flops and case.subject in calls and not isinstance(loops, str):
            # The clock rate wanders: the peak is taken again in each round, beside the products.
            peak, peak_flops = loops.fma(case.dtype, 20_000)
            calls[PEAK] = [peak]
        samples, counts = timing.measure(calls, budget)
        taken.append((case, samples, counts, absent, peak_flops))
    if not isinstance(loops, str) and not isinstance(limits, str):
        limits = best_of(limits, loops.measure(given.quick))
    rows: list[Any] = []
    for found in taken:
        row = row_of(*found, limits, isa)
        if any(row.key == other.key for other in rows):
            row.key, row.name = row.key + " again", row.name + ", at the end"
        rows.append(row)
    if re.search(given.only, "startup/import/"):
        _progress("start-up")
        names = [name for name in libraries if name != "again"]
        rows += startup_rows(names, given.quick)
    _progress("")
    return sorted(rows, key=lambda row: row.group == "control"), limits


def main() -> int:
    """Run what was asked for; 1 if a case of ours failed or gave a wrong result."""
    given = _arguments()
    try:
        settings = environment.prepare(given.threads)
    except RuntimeError as error:
        print(error, file=sys.stderr)
        return 2

    from benchmarks.chart import draw
    from benchmarks.libraries import installed
    from benchmarks.registry import selected
    from benchmarks.report import changes, summary, table

    if given.list:
        print("\n".join(case.key for case in selected(given.quick, given.only)))
        return 0
    # Read before the run: a wrong path should not cost it, and --out may replace the file.
    old = json.loads(given.compare.read_text()) if given.compare else None
    machine = environment.machine_facts()
    libraries = installed(given.threads)
    rows, limits = _measured(given, libraries, machine["minigrad ISA"])
    if not rows:
        print(f"no row matches {given.only!r}; --list shows the keys", file=sys.stderr)
        return 2
    facts = {
        "schema": SCHEMA,
        "command": sys.argv[1:],
        "machine": machine,
        "settings": settings,
        "threads in use": environment.thread_facts(),
        "limits": limits,
        "rows": [row.as_json() for row in rows],
    }
    print(summary(rows, machine), table(rows, facts, limits), sep="\n\n", end="\n\n")
    given.out.mkdir(parents=True, exist_ok=True)
    written = given.out / "benchmarks.json"
    written.write_text(json.dumps(facts, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"figures: {written}")
    print(draw(rows, machine, given.out / "benchmarks.png"))
    if old is not None:
        print("\n" + changes(old, json.loads(written.read_text(encoding="utf-8"))))
    return int(any(row.subject not in row.times for row in rows))


if __name__ == "__main__":
    sys.exit(main())
