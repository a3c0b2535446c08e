"""Start-up rows: an import in a fresh interpreter, its threads, and the package's size."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.registry import SUBJECT
from benchmarks.rows import Row, Verdict, best_peer, judged
from benchmarks.timing import Spread, spread

__all__ = ["startup_rows"]

IMPORT_MARGIN = 0.020  # seconds more than `import numpy`
LARGEST_WHEEL, LARGEST_INSTALLED = 3, 8  # MB
_PACKAGES = {
    "minigrad": ("minigrad",),
    "numpy": ("numpy", "numpy.libs"),
    "torch": ("torch",),
    "jax": ("jax", "jaxlib"),
}
_ASKS_FOR_THREADS = (
    "import {name}; print(next(line.split()[1] for line in open('/proc/self/status')"
    " if line.startswith('Threads')))"
)


def _row(name: str, times: dict[str, Spread], verdicts: list[Verdict], **more: Any) -> Row:
    ours = times[SUBJECT].median
    ratios = {
        other: Spread(*[ours / found.median] * 3)
        for other, found in times.items()
        if other != SUBJECT and found.median
    }
    row: dict[str, Any] = {
        "group": "startup",
        "name": name,
        "dtype": "",
        "subject": SUBJECT,
        "times": times,
        "ratios": ratios,
        "best": best_peer(times, SUBJECT),
        "verdicts": verdicts,
    }
    return Row(**row | more)


# ---- time ----------------------------------------------------------------------------------------


def _fresh(code: str, folder: str) -> str:
    """The output of a fresh interpreter. Bytecode stays in ``folder``, as after an installation."""
    home = str(_folder(SUBJECT).parent)
    path = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH", ""), home]))
    environment = os.environ | {"PYTHONPATH": path, "PYTHONPYCACHEPREFIX": folder}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env=environment,
        check=True,
        capture_output=True,
        text=True,
    ).stdout


def _import_rows(names: list[str], rounds: int) -> list[Row]:
    """Rows of import times, including the interpreter's start. A first round warms the caches."""
    samples: dict[str, list[float]] = {name: [] for name in names}
    threads = {}
    with tempfile.TemporaryDirectory() as folder:
        for counted in [False] + [True] * rounds:
            for name in names:
                begin = time.perf_counter()
                _fresh(f"import {name}", folder)
                if counted:
                    samples[name].append(time.perf_counter() - begin)
        if Path("/proc/self/status").exists():
            for name in (SUBJECT, "numpy"):
                count = float(_fresh(_ASKS_FOR_THREADS.format(name=name), folder))
                threads[name] = Spread(count, count, count)
    ours = samples[SUBJECT]
    extra = spread([a - b for a, b in zip(ours, samples["numpy"], strict=True)])
    others = [name for name in names if name != SUBJECT]
    rows = [
        _row(
            "import in a fresh interpreter",
            {name: spread(found) for name, found in samples.items()},
            [judged(f"<= import numpy + {IMPORT_MARGIN * 1e3:g} ms", IMPORT_MARGIN, extra)],
            ratios={
                name: spread([a / b for a, b in zip(ours, samples[name], strict=True)])
                for name in others
            },
        )
    ]
    if threads:
        target = "no thread beside NumPy's"
        verdict = judged(target, threads["numpy"].median, threads[SUBJECT])
        rows.append(_row("threads after import", threads, [verdict], unit=""))
    return rows


# ---- size ----------------------------------------------------------------------------------------


def _folder(package: str) -> Path:
    spec = importlib.util.find_spec(package)
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent


def _files(name: str) -> Iterator[Path]:
    """The files of a package, without Python's bytecode."""
    site = _folder(_PACKAGES[name][0]).parent
    for package in _PACKAGES[name]:
        for path in (site / package).rglob("*"):
            if path.is_file() and path.suffix != ".pyc":
                yield path


def _wheel_row() -> Row:
    with tempfile.TemporaryFile() as target:
        with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
            for path in _files(SUBJECT):
                archive.write(path, path.relative_to(_folder(SUBJECT).parent))
        size = target.tell() / 1e6
    found = Spread(size, size, size)
    modules = sum(path.suffix in (".so", ".pyd") for path in _files(SUBJECT))
    return _row(
        "wheel size",
        {SUBJECT: found},
        [judged(f"<= {LARGEST_WHEEL} MB, {modules} native modules", LARGEST_WHEEL, found)],
        unit="MB",
        note="the package as it is installed here, compressed as a wheel is",
    )


def _size_row(names: list[str]) -> Row:
    sizes = {name: sum(path.stat().st_size for path in _files(name)) / 1e6 for name in names}
    times = {name: Spread(mb, mb, mb) for name, mb in sizes.items()}
    verdict = judged(f"<= {LARGEST_INSTALLED} MB", LARGEST_INSTALLED, times[SUBJECT])
    note = "without dependencies and bytecode"
    return _row("installed size", times, [verdict], unit="MB", note=note)


def startup_rows(names: list[str], quick: bool) -> list[Row]:
    """The rows of this group. A quick run only has the imports of the target."""
    imported, rounds = ([SUBJECT, "numpy"], 5) if quick else (names, 15)
    return [*_import_rows(imported, rounds), _wheel_row(), _size_row(names)]
