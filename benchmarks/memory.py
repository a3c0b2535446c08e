"""Peak memory of each training step, measured in a fresh process for each library.

``python -m benchmarks.memory LIBRARY THREADS PROBLEM`` is such a process. It first takes two steps
of a tiny model of the same kind, so that loaded code is not counted. Then it builds the model and
takes a few steps. The result is the rise of the resident memory: weights, gradients, optimiser
state, and temporary memory of a step.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from benchmarks import environment
from benchmarks.models import PROBLEMS, Problem
from benchmarks.registry import SUBJECT
from benchmarks.rows import Row, best_peer, judged
from benchmarks.timing import spread

__all__ = ["memory_rows"]

_STEPS = 3
_QUICK = ("MLP 784", "GPT")
_TORCH_WAY = {"fused": True}  # the implementation without temporary arrays
_NOTE = "above what a tiny model of the same kind left; jax: with what its compiler takes"


def memory_rows(names: list[str], quick: bool, threads: int, only: str) -> list[Row]:
    """A row for each training step whose key matches."""
    keys = {name: f"memory/{name}/float32" for name in PROBLEMS}
    return [
        _row(problem, names[:3] if quick else names, threads, 1 if quick else 2)
        for name, problem in PROBLEMS.items()
        if re.search(only, keys[name]) and (not quick or name.startswith(_QUICK))
    ]


def _row(problem: Problem, names: list[str], threads: int, rounds: int) -> Row:
    able = problem.builders()
    samples: dict[str, list[float]] = {}
    absent: dict[str, str] = {}
    for name in (name for name in names if name in able):
        command = [sys.executable, "-m", "benchmarks.memory", name, str(threads), problem.name]
        for _ in range(rounds):
            done = subprocess.run(
                command,
                cwd=Path(__file__).resolve().parent.parent,
                capture_output=True,
                text=True,
                check=False,
            )
            if done.returncode:
                absent[name] = "failed: " + done.stderr.strip().rpartition("\n")[2]
                break
            samples.setdefault(name, []).append(float(done.stdout))
    times = {name: spread(found) for name, found in samples.items()}
    ours = samples.get(SUBJECT, [])
    row = Row(
        group="memory",
        name=problem.name,
        dtype="float32",
        subject=SUBJECT,
        times=times,
        ratios={
            name: spread([a / b for a, b in zip(ours, found, strict=True)])
            for name, found in samples.items()
            if name != SUBJECT and ours
        },
        best=best_peer(times, SUBJECT),
        absent=absent,
        unit="MB",
        note=_NOTE,
    )
    if "torch" in row.ratios:
        row.verdicts = [judged("<= torch's", 1.0, row.ratios["torch"])]
    return row


# ---- the fresh process ---------------------------------------------------------------------------


def _resident(field: str) -> float:
    """A field of this process's status, in MB."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024 / 1e6
    raise RuntimeError(f"[benchmarks] this system does not say {field}")


def _steps(problem: Problem, name: str, threads: int, count: int) -> None:
    import numpy as np

    from benchmarks.libraries import load

    lib = load(name, threads)
    step = lib.finished(
        problem.builders(torch_way=_TORCH_WAY)[name](
            lib, *problem.inputs(np.random.default_rng(20))
        )
    )
    for _ in range(count):
        step()


def main() -> None:
    """Print the MB that the steps of one library use."""
    name, threads, title = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    environment.prepare(threads)
    problem = PROBLEMS[title]
    _steps(problem.tiny(), name, threads, 2)
    before = _resident("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # reset the peak
    _steps(problem, name, threads, _STEPS)
    print(_resident("VmHWM") - before)


if __name__ == "__main__":
    main()
