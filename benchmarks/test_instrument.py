"""Tests of the benchmark instrument: loops, timing, comparison of results and verdicts."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import subprocess
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import environment
from benchmarks.libraries import Library
from benchmarks.limits import Loops, _compile, load_loops
from benchmarks.registry import Case, either, faster, share, time_ratio
from benchmarks.report import summary
from benchmarks.rows import LIMIT, MET, MISSED, NEAR, UNKNOWN, row_of
from benchmarks.timing import Budget, build, largest_error, measure

VECTORS = 20  # an odd number of fours


@pytest.fixture(scope="module")
def loops() -> Loops:
    """The compiled loops, in one thread."""
    found = load_loops(1)
    if isinstance(found, str):
        pytest.skip(found)
    return found


# ---- limits --------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", [0, 1, 2])
@pytest.mark.parametrize(("reads", "writes"), [(1, 1), (2, 1), (3, 2), (1, 2), (3, 1), (0, 1)])
def test_the_loop_writes_every_vector_it_counts(
    loops: Loops, how: int, reads: int, writes: int
) -> None:
    library = loops._libraries["float32"]
    vector = library.vector_bytes()
    source = np.arange(VECTORS * 3 * vector // 4 + vector // 4, dtype=np.float32)
    target = np.full(VECTORS * 2 * vector // 4 + vector // 4, np.nan, np.float32)
    source, target = (a[-a.ctypes.data % vector // 4 :] for a in (source, target))
    library.move(
        ctypes.c_void_p(target.ctypes.data),
        ctypes.c_void_p(source.ctypes.data),
        ctypes.c_size_t(reads * VECTORS),
        ctypes.c_size_t(writes * VECTORS),
        how,
        ctypes.c_size_t(1),
    )
    size = VECTORS * vector // 4
    written = target[: writes * size]
    parts = [source[i * size : (i + 1) * size] for i in range(3)]
    expected = {
        (1, 1): [parts[0]],
        (2, 1): [parts[0] + parts[1]],
        (3, 2): [parts[0] + parts[1], parts[2]],
        (1, 2): [parts[0], np.ones(size)],
        (3, 1): [parts[0] + parts[1]],
        (0, 1): [np.ones(size)],
    }[reads, writes]
    np.testing.assert_array_equal(written, np.concatenate(expected))
    assert np.isnan(target[writes * size :]).all()


@pytest.mark.skipif(len(environment.GRANTED) < 2, reason="needs two cores")
def test_loops_side_by_side_have_a_core_each() -> None:
    before, found = os.sched_getaffinity(0), []
    environment.release()
    try:
        loops = Loops({}, 2)
        for _ in range(3):
            loops._side_by_side([lambda: found.append(os.sched_getaffinity(0))] * 2)
        assert os.sched_getaffinity(0) == set(environment.GRANTED)
    finally:
        os.sched_setaffinity(0, before)
    first, second = environment.GRANTED[:2]
    assert sorted(found, key=min) == [{first}] * 3 + [{second}] * 3


def test_a_limit_is_scaled_to_the_work_of_the_case(loops: Loops) -> None:
    limit = loops.fma("float32", flops=1e6)
    assert loops.fma("float32", flops=3e6).scale == pytest.approx(3 * limit.scale)
    assert loops.moving(2**30, 2**30).scale == 8  # a call moves a quarter of a gigabyte
    assert loops.moving(2**28, 2**28, footprint=2**28).scale == 2
    assert loops.moving(2**28, 2**27, footprint=2**28, in_place=True).scale == 1


@pytest.mark.parametrize("real", ["float", "double"])
def test_the_loop_of_multiply_adds_has_all_that_it_counts(tmp_path: Path, real: str) -> None:
    """A chain whose value the compiler can predict would be counted but not computed."""
    library = _compile(tmp_path, real)
    if isinstance(library, str) or shutil.which("objdump") is None:
        pytest.skip("no compiler, or none to read what it made")
    library.flops_per_round.restype = ctypes.c_double
    lanes = library.vector_bytes() // ctypes.sizeof(getattr(ctypes, f"c_{real}"))
    command = ["objdump", "-d", "--disassemble=fma_rounds", str(tmp_path / f"loops_{real}.so")]
    code = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = len(re.findall(r"\bvfn?madd\d+p[sd]\b|\bfmla\b", code))
    if found == 0:
        pytest.skip("this machine has no multiply-add in one operation")
    assert found >= library.flops_per_round() / (2 * lanes)


# ---- rows and targets ----------------------------------------------------------------------------


def _row(targets: list[Any], **seconds: list[float]) -> Any:
    case = Case("matmul", "case", lambda rng: [], {}, targets=targets)
    return row_of(case, seconds, {}, None, "avx512")


@pytest.mark.parametrize(
    ("target", "result"),
    [
        (faster(1.5), MET),  # the best peer is torch, at 2
        (faster(2.5), MISSED),
        (faster(2.5, "numpy"), MET),
        (time_ratio(0.5), MET),
        (time_ratio(0.4, "torch"), MISSED),
        (share(0.9), UNKNOWN),
        (either(share(0.9), faster(1.2)), MET),
        (either(share(0.9), faster(2.5)), MISSED),
        (faster(1.0, "jax"), UNKNOWN),
        (faster(9.0, isa="avx2"), None),
    ],
)
def test_targets_are_judged_against_the_best_peer_or_the_one_named(
    target: Any, result: str | None
) -> None:
    row = _row([target], minigrad=[1.0] * 4, numpy=[3.0] * 4, torch=[2.0] * 4, contiguous=[0.5] * 4)
    assert row.best == "torch"
    assert [v.result for v in row.verdicts] == ([result] if result else [])


def test_a_target_may_be_of_some_number_of_threads_only() -> None:
    case = Case("matmul", "case", lambda rng: [], {}, targets=[faster(1.85, "alone", threads=2)])
    seconds = {"minigrad": [1.0] * 3, "alone": [1.9] * 3}
    found = [row_of(case, seconds, {}, None, "avx512", threads) for threads in (1, 2, 3)]
    assert [[v.result for v in row.verdicts] for row in found] == [[], [MET], []]


def test_a_target_within_the_spread_is_near() -> None:
    row = _row([time_ratio(1.0, "numpy")], minigrad=[0.9, 1.1, 1.1, 0.9, 1.3], numpy=[1.0] * 5)
    assert [v.result for v in row.verdicts] == [NEAR]


def test_the_limit_is_no_peer(loops: Loops) -> None:
    case = Case("matmul", "case", lambda rng: [], {}, flops=1e6)
    limit = loops.of(case)
    assert limit is not None
    samples = {"minigrad": [2.0] * 3, "numpy": [4.0] * 3, LIMIT: [1.0 / limit.scale] * 3}
    row = row_of(case, samples, {}, limit, "avx512")
    assert set(row.ratios) == {"numpy"}
    assert row.share is not None
    assert row.share.median == pytest.approx(0.5)


# ---- the stopwatch -------------------------------------------------------------------------------


def test_large_inputs_are_built_less_often_and_never_share_memory() -> None:
    def builds(size: int) -> list[Any]:
        def lies_at(lib: Any, x: Any) -> Any:
            held = lib.array(x)
            return lambda: np.array([held.ctypes.data])

        case = Case("control", "where", lambda rng: [np.zeros(size, np.uint8)], {"numpy": lies_at})
        calls, absent = build(case, {"numpy": Library(1)}, placements=4)
        assert not absent
        return calls["numpy"]

    assert [len(builds(size)) for size in (8, 2**24, 2**26, 2**28)] == [4, 4, 2, 1]
    assert len({int(call()[0]) for call in builds(8)}) == 4


def test_every_library_has_its_turn_in_a_round_and_none_always_follows_the_same() -> None:
    turns: list[str] = []

    def noting(name: str) -> Any:
        return lambda: turns.append(name)

    names, rounds = list("abcde"), 40
    budget = Budget(block=0, seconds=60, least=rounds, most=rounds, placements=1)
    samples, counts = measure({name: [noting(name)] for name in names}, budget)
    assert {name: len(samples[name]) for name in names} == dict.fromkeys(names, rounds)
    assert counts == dict.fromkeys(names, 1)
    follows = Counter(pair for pair in pairwise(turns) if pair[0] != pair[1])
    assert max(follows.values()) < rounds / 2


def test_no_first_call_is_timed() -> None:
    turns: list[int] = []

    def noting(placement: int) -> Any:
        return lambda: turns.append(placement)

    budget = Budget(block=0, seconds=60, least=3, most=3, placements=3)
    measure({"a": [noting(placement) for placement in range(3)]}, budget)
    assert turns[:3] == [0, 1, 2]


def test_a_library_that_is_held_to_other_kernels_is_named(monkeypatch: Any) -> None:
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Haswell")
    machine = environment.machine_facts()
    assert machine["held to"]["OPENBLAS_CORETYPE"] == "Haswell"
    assert "OPENBLAS_CORETYPE=Haswell" in summary([], machine)
    monkeypatch.delenv("OPENBLAS_CORETYPE")
    assert "OPENBLAS_CORETYPE" not in summary([], environment.machine_facts())


# ---- results compared ----------------------------------------------------------------------------


def test_results_differ_in_shape_dtype_and_value() -> None:
    a = np.array([1.0, -2.0], np.float32)
    assert largest_error([a], [a]) == 0
    assert largest_error([a + np.float32([0, 0.5])], [a]) == 0.25
    assert largest_error([a], [a.astype(float)]) == float("inf")
    assert largest_error([a[:1]], [a]) == float("inf")
    assert largest_error([a, a], [a]) == float("inf")
    assert largest_error([a * np.float32(np.nan)], [a]) == float("inf")
