"""Runs PyTorch programs of the classic kinds under minigrad, and under PyTorch where it is there.

Each program in ``tests/programs`` imports torch, trains something, and asserts a result itself.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAMS = sorted((Path(__file__).parent.parent / "programs").glob("*.py"))
each = pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)


def run(*command: str) -> None:
    here = Path(__file__).parent  # not the checkout, whose package may lack its extension
    whole = [sys.executable, *command]
    done = subprocess.run(whole, capture_output=True, text=True, timeout=600, cwd=here)
    assert done.returncode == 0, done.stdout + done.stderr


def test_there_are_fourteen():
    assert len(PROGRAMS) == 14


@each
def test_under_minigrad(program):
    run("-m", "minigrad", str(program))


@each
@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")
def test_under_pytorch(program):
    run(str(program))
