"""Every case in every installed library, checked as the suite does, then timed by pytest-benchmark.

A row's libraries make one benchmark group. For interleaved rounds, ratios and targets see
``python -m benchmarks``.
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


# Warnings of a peer are not ours to judge.
@pytest.mark.filterwarnings("ignore")
@pytest.mark.benchmark(max_time=0.1, min_rounds=5, warmup=True, disable_gc=True)
def test_case(benchmark: Any, case: Case, name: str, libraries: dict[str, Any]) -> None:
    """The result agrees with NumPy's (or torch's) within the case's tolerance; then the time."""
    judge = "numpy" if "numpy" in case.builders else "torch"
    calls, absent = build(case, {n: libraries[n] for n in {judge, name} if n in libraries})
    assert name in calls, absent[name]
    benchmark.group = case.key
    benchmark.extra_info.update(library=name, flops=case.flops, bytes=case.reads + case.writes)
    benchmark(calls[name][0])
