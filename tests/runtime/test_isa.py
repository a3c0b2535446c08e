"""Every instruction set this machine has gives right results, and those with FMA the same bits."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

import minigrad as mg
from minigrad import _c

PROGRAM = Path(__file__).parent.parent / "helpers/isa_selftest.py"


@pytest.fixture
def run(fresh):
    """Output of the program of all operations with an instruction set."""
    return lambda isa: json.loads(fresh(PROGRAM, MINIGRAD_ISA=isa))


@pytest.mark.parametrize("isa", _c.available_isas)
def test_every_instruction_set_is_right(isa, run):
    assert run(isa)["isa"] == isa


@pytest.mark.skipif("avx512" not in _c.available_isas, reason="needs a machine with AVX-512")
def test_the_same_bits_with_avx2_and_avx512(run):
    a, b = (run(isa)["digests"] for isa in ("avx2", "avx512"))
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


def test_every_wrong_name_is_explained(fresh):
    said = fresh("import minigrad", fails=True, MINIGRAD_ISA="quantum")
    choices = ", ".join(_c.available_isas)
    assert f"MINIGRAD_ISA='quantum' is not available here; choose one of: {choices}" in said
