"""Rows of a one-thread run that are also measured on all cores, in another process."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks import environment
from benchmarks.recording import read
from benchmarks.rows import Row

__all__ = ["all_threads_rows"]

_KEYS = tuple(
    f"matmul/{n}x{n} @ {n}x{n}/{dtype}" for n in (512, 1024) for dtype in ("float32", "float64")
)


def all_threads_rows(only: str) -> list[Row]:
    """The rows whose key matches. Their names include the number of threads."""
    threads = len(environment.GRANTED)
    wanted = [key for key in _KEYS if re.search(only, _renamed(key, threads))]
    if threads < 2 or not wanted:
        return []
    pattern = "|".join(f"^{re.escape(key)}$" for key in wanted)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "all_threads.csv"
        command = [sys.executable, "-m", "benchmarks", "--only", pattern, "--record", str(path)]
        command += ["--threads", str(threads)]
        subprocess.run(
            command,
            cwd=Path(__file__).resolve().parent.parent,
            stdout=subprocess.DEVNULL,
            preexec_fn=environment.release,
            check=False,
        )
        rows = read(path, threads).rows
    for row in rows:
        row.name = f"{row.name}, {threads} threads"
    return rows


def _renamed(key: str, threads: int) -> str:
    title, _, dtype = key.rpartition("/")
    return f"{title}, {threads} threads/{dtype}"
