"""Configuration of ``pytest benchmarks``: sets thread counts before anything loads NumPy."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks import environment


def pytest_addoption(parser: Any) -> None:
    """Add two options of ``python -m benchmarks``. ``-k`` selects rows."""
    group = parser.getgroup("minigrad benchmarks")
    group.addoption("--full-sizes", action="store_true", help="the sizes of a full run (slow)")
    group.addoption("--bench-threads", type=int, default=1, help="threads of every library")


def pytest_configure(config: Any) -> None:
    """Prepare the process. Refuse to measure if it is too late for that."""
    try:
        config.stash[SETTINGS] = environment.prepare(config.getoption("--bench-threads"))
    except RuntimeError as error:
        raise pytest.UsageError(str(error)) from error
    import minigrad  # noqa: F401 - now: to collect, pytest puts the root in front of all again


def pytest_report_header(config: Any) -> str:
    """The settings, as header of the report."""
    settings = config.stash[SETTINGS]
    return "benchmarks: " + ", ".join(f"{name}={value}" for name, value in settings.items())


SETTINGS = pytest.StashKey[dict[str, str]]()
