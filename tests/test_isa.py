"""Every instruction set this machine has gives right results, and those with FMA the same bits."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import minigrad as mg
from minigrad import _c

PROGRAM = Path(__file__).parent / "isa_selftest.py"


def run(isa, tmp_path):
    done = subprocess.run(
        [sys.executable, str(PROGRAM)],
        env=os.environ | {"MINIGRAD_ISA": isa, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


@pytest.mark.parametrize("isa", _c.available_isas)
def test_every_instruction_set_is_right(isa, tmp_path):
    assert run(isa, tmp_path)["isa"] == isa


@pytest.mark.skipif("avx512" not in _c.available_isas, reason="needs a machine with AVX-512")
def test_the_same_bits_with_avx2_and_avx512(tmp_path):
    a, b = (run(isa, tmp_path)["digests"] for isa in ("avx2", "avx512"))
    differ = [name for name in a if a[name] != b[name]]
    assert a.keys() == b.keys()
    assert not differ, f"other bits with avx2 than with avx512: {differ}"


def test_the_best_is_chosen_and_shown():
    if "MINIGRAD_ISA" not in os.environ:
        assert _c.isa == _c.available_isas[-1]
    assert (
        f"instruction set: {_c.isa} (available: {', '.join(_c.available_isas)})" in mg.show_config()
    )
    assert _c.ffi.string(_c.lib.mg_isa()).decode() == _c.isa


def test_every_wrong_name_is_explained(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", "import minigrad"],
        env=os.environ | {"MINIGRAD_ISA": "quantum", "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 1
    choices = ", ".join(_c.available_isas)
    assert f"MINIGRAD_ISA='quantum' is not available here; choose one of: {choices}" in done.stderr
