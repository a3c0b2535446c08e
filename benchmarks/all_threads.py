"""A few rows of a run in one thread, measured on every core as well, in a process of their own."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks import environment
from benchmarks.rows import Row, Verdict
from benchmarks.timing import Spread

__all__ = ["all_threads_rows"]

_KEYS = tuple(
    f"matmul/{n}x{n} @ {n}x{n}/{dtype}" for n in (512, 1024) for dtype in ("float32", "float64")
)


def all_threads_rows(only: str) -> list[Row]:
    """Those whose key matches; their names say how many threads."""
    threads = len(environment.GRANTED)
    wanted = [key for key in _KEYS if re.search(only, _renamed(key, threads))]
    if threads < 2 or not wanted:
        return []
    pattern = "|".join(f"^{re.escape(key)}$" for key in wanted)
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "benchmarks", "--only", pattern, "--out", folder]
        command += ["--threads", str(threads)]
        subprocess.run(
            command,
            cwd=Path(__file__).resolve().parent.parent,
            stdout=subprocess.DEVNULL,
            preexec_fn=environment.release,
            check=False,
        )
        figures = json.loads((Path(folder) / "benchmarks.json").read_text(encoding="utf-8"))
    return [_row(found, threads) for found in figures["rows"]]


def _renamed(name: str, threads: int) -> str:
    title, slash, dtype = name.rpartition("/")
    return f"{title or dtype}, {threads} threads" + (slash and f"/{dtype}")


def _row(found: dict[str, Any], threads: int) -> Row:
    """A row from its JSON."""
    for field in ("times", "ratios"):
        found[field] = {name: Spread(**spread) for name, spread in found[field].items()}
    for field in ("limit", "share"):
        found[field] = found[field] and Spread(**found[field])
    found["verdicts"] = [Verdict(**verdict) for verdict in found["verdicts"]]
    found["key"] = _renamed(found["key"], threads)
    found["name"] = f"{found['name']}, {threads} threads"
    return Row(**found)
