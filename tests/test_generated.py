"""Files that are written from the package are what would be written now."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "docs"))

import reference  # noqa: E402
import stubs  # noqa: E402

STUBS = stubs.stubs()


def test_the_reference():
    assert reference.PAGE.read_text() == reference.page(), "run: python docs/reference.py"


@pytest.mark.only_tape("C", "the operators are methods of Tensor in Python, and in no stub")
@pytest.mark.parametrize("path", STUBS, ids=lambda path: str(path.relative_to(stubs.ROOT)))
def test_stubs(path):
    assert path.read_text() == STUBS[path], "run: python docs/stubs.py"
