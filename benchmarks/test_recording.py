"""Tests of writing, reading, comparing, showing and drawing recordings."""

from __future__ import annotations

import sys
from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.__main__ import _facts, _read_before, _show
from benchmarks.chart import draw
from benchmarks.compare import changes
from benchmarks.recording import FOLDER, Recording, read, read_all, write
from benchmarks.registry import Case, share, time_ratio
from benchmarks.report import table
from benchmarks.rows import MISSED, UNKNOWN, Row, row_of
from benchmarks.timing import Spread


def made(targets: list[Any], **seconds: list[float]) -> Row:
    """A row of a case with these targets and times."""
    case = Case("matmul", "case", lambda rng: [], {}, targets=targets)
    return row_of(case, seconds, {}, None, "avx512")


def _recording(threads: int, ours: float, name: str = "a, b") -> Recording:
    targets = [time_ratio(1.0, "numpy"), time_ratio(0.1, "torch"), share(0.9)]
    row = made(targets, minigrad=[ours, ours, 2 * ours], torch=[1.5e-6] * 3, numpy=[1e-6] * 3)
    row.name, row.note = name, "NumPy has none; torch: fused"
    row.limit, row.limit_of = Spread(5e-7, 4e-7, 6e-7), "L3, streaming stores"
    size = Row("startup", "wheel size", "", "minigrad", {"minigrad": Spread(1.25, 1.25, 1.25)}, {})
    size.unit = "MB"
    failed = Row("nn", "fails", "float64", "minigrad", {"torch": Spread(2.0, 2.0, 2.0)}, {})
    control = Row("control", "add", "float32", "again", {"again": Spread(1e-6, 1e-6, 1e-6)}, {})
    return Recording(threads, {"date": "today", "cpu": "one, or two"}, [control, row, size, failed])


# ---- files ---------------------------------------------------------------------------------------


def test_a_recording_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "machine.csv"
    write(path, _recording(1, 1.23456e-6))
    found = read(path, 1)
    assert found.facts == {"date": "today", "cpu": "one, or two"}
    assert [row.key for row in found.rows] == [
        "control/add/float32",
        "matmul/a, b/float32",
        "startup/wheel size/",
        "nn/fails/float64",
    ]
    control, row, size, failed = found.rows
    assert control.subject == "again"
    assert row.times["minigrad"].median == pytest.approx(1.235e-6)
    assert row.times["minigrad"].high > row.times["minigrad"].median
    assert row.ratios["numpy"].median == pytest.approx(1.235)
    assert set(row.times) == {"minigrad", "numpy", "torch"}
    assert (row.best, row.limit_of, row.unit) == ("numpy", "L3, streaming stores", "s")
    assert row.share is not None
    assert row.share.median == pytest.approx(5e-7 / 1.235e-6)
    assert [v.result for v in row.verdicts] == [MISSED, MISSED, UNKNOWN]
    assert [v.found for v in row.verdicts] == [1.23, 0.823, None]
    assert row.note == "NumPy has none; torch: fused"
    assert (size.times["minigrad"].median, size.unit) == (1.25, "MB")
    assert set(failed.times) == {"torch"}
    assert "a, b float32" in table(found)


def test_a_recording_replaces_the_one_with_as_many_threads(tmp_path: Path) -> None:
    path = tmp_path / "machine.csv"
    write(path, _recording(2, 2e-6))
    write(path, _recording(1, 1e-6))
    before = path.read_text()
    write(path, _recording(1, 1e-6))
    assert path.read_text() == before
    write(path, _recording(1, 3e-6, "another"))
    assert [r.threads for r in read_all(path)] == [1, 2]
    assert [row.name for row in read(path, 1).rows][1] == "another"
    assert read(path, 2).rows[1].times["minigrad"].median == pytest.approx(2e-6)


def test_what_is_no_recording_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "machine.csv"
    write(path, _recording(2, 2e-6))
    with pytest.raises(ValueError, match="no recording of 3 threads, but 2"):
        read(path, 3)
    path.write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match="lacks the columns"):
        read(path, 1)
    path.write_text("")
    with pytest.raises(ValueError, match="no line of column names"):
        read(path, 1)


@pytest.mark.parametrize("partial", [{"quick": True}, {"only": "matmul"}])
def test_some_rows_do_not_replace_a_recording(tmp_path: Path, partial: dict[str, Any]) -> None:
    path = tmp_path / "machine.csv"
    write(path, _recording(2, 2e-6))
    given = {"record": path, "compare": path, "threads": 2, "quick": False, "only": ""}
    assert _read_before(Namespace(**given)).threads == 2
    with pytest.raises(ValueError, match="name another file"):
        _read_before(Namespace(**given | partial))
    given.update(compare=None, threads=1)
    assert _read_before(Namespace(**given | partial)) is None


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.csv")), ids=lambda path: path.stem)
def test_the_kept_recordings_are_whole(path: Path, tmp_path: Path) -> None:
    for recording in read_all(path):
        keys = [row.key for row in recording.rows]
        assert len(keys) == len(set(keys)) > 500
        assert {"date", "cpu", "versions", "limits"} <= recording.facts.keys()
        write(tmp_path / "again.csv", recording)
    assert (tmp_path / "again.csv").read_text() == path.read_text()


# ---- runs compared -------------------------------------------------------------------------------


def test_a_change_is_what_the_peers_did_not_do_as_well() -> None:
    def run(ours: float, theirs: float) -> Recording:
        row = made([], minigrad=[ours] * 3, numpy=[theirs] * 3)
        return Recording(1, {"date": "today"}, [row])

    assert "faster" in changes(run(2.0, 1.0), run(1.0, 1.0))
    assert "SLOWER" in changes(run(1.0, 2.0), run(1.0, 1.0))
    drifted = changes(run(2.0, 2.0), run(1.0, 1.0))
    assert "faster" not in drifted
    assert "SLOWER" not in drifted


def test_a_target_that_fared_otherwise_is_named_also_against_a_recording(tmp_path: Path) -> None:
    def run(ours: float) -> Recording:
        target = [time_ratio(1.0, "numpy"), share(0.5)]
        return Recording(1, {"date": "today"}, [made(target, minigrad=[ours] * 3, numpy=[1.0] * 3)])

    path = tmp_path / "machine.csv"
    write(path, run(2.0))
    said = [line for line in changes(read(path, 1), run(0.5)).splitlines() if "target" in line]
    assert said == ["  target missed -> met: matmul/case/float32: <= 1x numpy's time"]
    write(path, run(0.5))
    said = [line for line in changes(read(path, 1), run(2.0)).splitlines() if "target" in line]
    assert said == ["  target met -> missed: matmul/case/float32: <= 1x numpy's time"]


# ---- shown and drawn -----------------------------------------------------------------------------


def test_facts_are_text_and_none_is_empty() -> None:
    machine = {"cpu": "x", "caches": {"L1": 32768}, "load average": (0.5, 1.0), "governor": None}
    found = _facts(machine, {"A": "1"}, {"FMA float32": 2e9, "L1 read": 1e9})
    assert found == {
        "cpu": "x",
        "caches": "L1 32768",
        "load average": "0.50, 1.00",
        "settings": "A 1",
        "limits": "FMA float32 2 GFLOP/s, L1 read 1 GB/s",
    }
    assert _facts({}, {}, "no compiler") == {"limits": "no compiler"}


def test_a_recording_is_shown_with_what_its_targets_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "machine.csv"
    write(path, _recording(1, 1e-6))
    write(path, _recording(2, 2e-6))
    _show(path)
    shown = capsys.readouterr().out
    assert shown.count("cpu: one, or two") == 2
    assert "MISSED matmul/a, b/float32: <= 0.1x torch's time; found 1.33" in shown
    assert "control (NumPy against itself)" not in shown  # this recording has no ratio of it


def test_charts_are_drawn_of_a_recording(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    written = draw(_recording(2, 1e-6), "machine", tmp_path)
    assert [path.name for path in written] == ["machine-t2-matmul.png"]
    assert written[0].read_bytes().startswith(b"\x89PNG")


def test_charts_without_matplotlib_say_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match="pip install 'matplotlib"):
        draw(_recording(1, 1e-6), "machine", tmp_path)
