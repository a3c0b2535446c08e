"""Conditions of a run: equal thread counts, one set of cores, and the facts of the machine.

Thread counts are read by each library when it is loaded, so :func:`prepare` must run before the
first ``import numpy``. This module imports nothing beyond the standard library at the top.
"""

from __future__ import annotations

import datetime
import importlib.metadata
import importlib.util
import os
import platform
import sys
from pathlib import Path
from typing import Any

__all__ = ["GRANTED", "caches", "machine_facts", "prepare", "release", "thread_facts"]

# The cores of this process before it is pinned.
GRANTED = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []

_THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "MINIGRAD_NUM_THREADS",
)
# Environment variables that keep a library from its best kernels on this machine.
_HOLDING = (
    "MINIGRAD_ISA",
    "OPENBLAS_CORETYPE",
    "OPENBLAS_L2_SIZE",
    "NPY_DISABLE_CPU_FEATURES",
    "NPY_ENABLE_CPU_FEATURES",
    "MKL_ENABLE_INSTRUCTIONS",
    "ONEDNN_MAX_CPU_ISA",
    "ATEN_CPU_CAPABILITY",
)
_JAX = {
    "JAX_PLATFORMS": "cpu",
    "JAX_ENABLE_X64": "true",  # float64 rows need it; float32 inputs stay float32
    "JAX_CPU_ENABLE_ASYNC_DISPATCH": "false",  # avoids a hand-over between threads, in jax's favour
}


def prepare(threads: int) -> dict[str, str]:
    """Set thread counts and affinity of this process. Returns the settings as text, by name.

    Raises RuntimeError if NumPy is already loaded and would not read the variables.
    """
    late = "numpy" in sys.modules
    wanted = dict.fromkeys(_THREAD_VARIABLES, str(threads)) | _JAX
    wanted["XLA_FLAGS"] = f"--xla_cpu_multi_thread_eigen={'true' if threads > 1 else 'false'}"
    if late and any(os.environ.get(name) != value for name, value in wanted.items()):
        raise RuntimeError("[benchmarks] NumPy was loaded before the thread counts were set")
    os.environ.update(wanted)
    _prefer_the_installed_package()
    return wanted | {"affinity": _pin(threads)}


def release() -> None:
    """Let this process run on all cores that it was started with."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, GRANTED)


def _pin(threads: int) -> str:
    """Pin the process to its last ``threads`` cores. The first cores serve most interrupts."""
    if not hasattr(os, "sched_setaffinity"):
        return "not pinned: this system offers no sched_setaffinity"
    if threads > len(GRANTED):
        raise RuntimeError(
            f"[benchmarks] {threads} threads asked for, {len(GRANTED)} cores allowed"
        )
    chosen = GRANTED[-threads:]
    os.sched_setaffinity(0, chosen)
    return "cores " + ", ".join(map(str, chosen))


def _prefer_the_installed_package() -> None:
    """In a checkout that was not compiled, use the installed minigrad."""
    root = Path(__file__).resolve().parent.parent
    if (root / "minigrad").is_dir() and not list((root / "minigrad").glob("_native*")):
        sys.path[:] = [entry for entry in sys.path if Path(entry or ".").resolve() != root]


# ---- facts ---------------------------------------------------------------------------------------


def _cpu_model() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith(("model name", "Model")):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _vector_extensions() -> list[str]:
    known = {
        "sse2",
        "sse4_2",
        "avx",
        "avx2",
        "fma",
        "avx512f",
        "avx512vl",
        "avx512_bf16",
        "asimd",
        "sve",
    }
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return []
    for line in lines:
        if line.startswith(("flags", "Features")):
            return sorted(known.intersection(line.partition(":")[2].split()))
    return []


def caches() -> dict[str, int]:
    """The sizes of the data caches in bytes, nearest first. Empty if the system does not tell."""
    units = {"K": 2**10, "M": 2**20}
    found = {}
    for path in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        level, kind, size = (_first_line(str(path / name)) for name in ("level", "type", "size"))
        if level and size and size[-1] in units and kind in ("Data", "Unified"):
            found[f"L{level}"] = int(size[:-1]) * units[size[-1]]
    return found


def _first_line(path: str) -> str | None:
    try:
        return Path(path).read_text().strip().partition("\n")[0]
    except OSError:
        return None


def version_of(package: str) -> str | None:
    """The version of an installed distribution, or None."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def machine_facts() -> dict[str, Any]:
    """The facts of machine and software that a reader of the figures needs."""
    import minigrad

    return {
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "cpu": _cpu_model(),
        "vector extensions": _vector_extensions(),
        "instruction set": minigrad.runtime.native.isa,
        "held to": {name: os.environ[name] for name in _HOLDING if os.environ.get(name)},
        "cores": os.cpu_count(),
        "caches": caches(),
        "load average": os.getloadavg() if hasattr(os, "getloadavg") else None,
        "huge pages": _first_line("/sys/kernel/mm/transparent_hugepage/enabled"),
        "frequency governor": _first_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        "system": platform.platform(),
        "python": platform.python_version(),
        "versions": {"minigrad": minigrad.__version__}
        | {name: version_of(name) for name in ("numpy", "torch", "jax", "cffi")},
        "minigrad build": minigrad.show_config().splitlines(),
    }


def thread_facts() -> dict[str, Any]:
    """The thread counts that the loaded libraries report."""
    import minigrad

    said: dict[str, Any] = {"minigrad": minigrad.get_num_threads()}
    if "torch" in sys.modules:
        said["torch"] = sys.modules["torch"].get_num_threads()
    if importlib.util.find_spec("threadpoolctl"):
        import threadpoolctl

        said["pools"] = [
            f"{pool['prefix']} {pool.get('version')} {pool.get('architecture', '')}: "
            f"{pool['num_threads']}"
            for pool in threadpoolctl.threadpool_info()
        ]
    return said
