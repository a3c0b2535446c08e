"""Tests of every case in every installed library: checked, then timed by pytest-benchmark.

A row's libraries are one benchmark group. ``python -m benchmarks`` has interleaved rounds, ratios
and targets.
"""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.libraries import installed
from benchmarks.registry import Case, selected
from benchmarks.timing import build


def pytest_generate_tests(metafunc: Any) -> None:
    """One test for each case and library."""
    option = metafunc.config.getoption
    libraries = installed(option("--bench-threads"))
    pairs = [
        pytest.param(case, name, libraries, id=f"{case.key}-{name}")
        for case in selected(quick=not option("--full-sizes"))
        for name in case.builders
        if name in libraries
    ]
    metafunc.parametrize(("case", "name", "libraries"), pairs)


# Ignore warnings of the other libraries.
@pytest.mark.filterwarnings("ignore")
@pytest.mark.benchmark(max_time=0.1, min_rounds=5, warmup=True, disable_gc=True)
def test_case(benchmark: Any, case: Case, name: str, libraries: dict[str, Any]) -> None:
    """Check the result against NumPy's (or torch's) within the case's tolerance, then time it."""
    judge = "numpy" if "numpy" in case.builders else "torch"
    calls, absent = build(case, {n: libraries[n] for n in {judge, name} if n in libraries})
    assert name in calls, absent[name]
    benchmark.group = case.key
    benchmark.extra_info.update(library=name, flops=case.flops, bytes=case.reads + case.writes)
    benchmark(calls[name][0])
