"""Start-up: the time of an import in a fresh interpreter, and what the package weighs on disk."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.registry import SUBJECT
from benchmarks.rows import Row, judged
from benchmarks.timing import Spread, spread

__all__ = ["startup_rows"]

IMPORT_MARGIN = 0.030  # seconds beyond `import numpy`
LARGEST_SIZE = 3.0  # MB
_PACKAGES = {
    "minigrad": ("minigrad",),
    "numpy": ("numpy", "numpy.libs"),
    "torch": ("torch",),
    "jax": ("jax", "jaxlib"),
}


def _import_seconds(name: str, folder: str, environment: dict[str, str]) -> float:
    begin = time.perf_counter()
    subprocess.run(
        [sys.executable, "-c", f"import {name}"], cwd=folder, env=environment, check=True
    )
    return time.perf_counter() - begin


def _import_row(names: list[str], rounds: int) -> Row:
    """Interpreter start included. Caches are warm: one round goes before those that count.

    Bytecode is kept in a folder of this run for all alike, as an installer leaves it.
    """
    home = str(_folder(SUBJECT).parent)
    path = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH", ""), home]))
    samples: dict[str, list[float]] = {name: [] for name in names}
    with tempfile.TemporaryDirectory() as folder:
        for counted in [False] + [True] * rounds:
            for name in names:
                environment = os.environ | {"PYTHONPATH": path, "PYTHONPYCACHEPREFIX": folder}
                environment.pop("PYTHONDONTWRITEBYTECODE", None)
                seconds = _import_seconds(name, folder, environment)
                if counted:
                    samples[name].append(seconds)
    ours = samples[SUBJECT]
    extra = spread([a - b for a, b in zip(ours, samples["numpy"], strict=True)])
    others = [name for name in names if name != SUBJECT]
    return Row(
        key="startup/import/",
        group="startup",
        name="import in a fresh interpreter",
        dtype="",
        subject=SUBJECT,
        times={name: spread(found) for name, found in samples.items()},
        ratios={
            name: spread([a / b for a, b in zip(ours, samples[name], strict=True)])
            for name in others
        },
        rounds=rounds,
        verdicts=[judged(f"<= import numpy + {IMPORT_MARGIN * 1e3:g} ms", IMPORT_MARGIN, extra)],
    )


def _folder(package: str) -> Path:
    spec = importlib.util.find_spec(package)
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent


def _megabytes(name: str) -> float:
    """What the files of a package weigh, without what Python compiles itself."""
    site = _folder(_PACKAGES[name][0]).parent
    files = (p for package in _PACKAGES[name] for p in (site / package).rglob("*"))
    return sum(p.stat().st_size for p in files if p.is_file() and p.suffix != ".pyc") / 1e6


def _size_row(names: list[str]) -> Row:
    sizes = {name: _megabytes(name) for name in names}
    spreads = {name: Spread(mb, mb, mb) for name, mb in sizes.items()}
    ours = sizes[SUBJECT]
    return Row(
        key="startup/installed size/",
        group="startup",
        name="installed size",
        dtype="",
        subject=SUBJECT,
        times=spreads,
        ratios={
            n: Spread(ours / mb, ours / mb, ours / mb) for n, mb in sizes.items() if n != SUBJECT
        },
        unit="MB",
        rounds=1,
        verdicts=[judged(f"<= {LARGEST_SIZE:g} MB", LARGEST_SIZE, spreads[SUBJECT])],
        note="without dependencies",
    )


def startup_rows(names: list[str], quick: bool) -> list[Row]:
    """The rows of this group for the libraries that are installed."""
    return [_import_row(names, 3 if quick else 15), _size_row(names)]
