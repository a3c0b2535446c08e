"""Type stubs are what would be written now, and the reference of operations can be built."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "docs"))

import reference  # noqa: E402
import stubs  # noqa: E402
from samples import CATALOGUE  # noqa: E402

STUBS = stubs.stubs()


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    return reference.write(tmp_path_factory.mktemp("docs") / "folder").read_text()


def test_the_reference_lists_every_operation(page):
    listed = set(re.findall(r"(?m)^### (\S+)$", page))
    others = set(re.findall(r"`([\w.]+)`", " ".join(re.findall(r"(?m)^`.*`, also (.*)$", page))))
    public = {
        prefix + name
        for prefix, topic in reference.namespaces()
        for name in topic.__all__
        if callable(getattr(topic, name)) and not isinstance(getattr(topic, name), type)
    }
    assert len(listed) > 350
    assert not public - listed - others
    assert not set(CATALOGUE) - listed - others


def test_the_entries_of_the_reference_are_whole(page):
    entry = page.partition("\n### logaddexp\n")[2].partition("\n### ")[0]
    assert "`logaddexp(" in entry
    assert "x.logaddexp" in entry
    assert "*Keeps* " in entry
    assert "*Accuracy* 1 ULP." in entry


def test_the_links_of_the_reference_lead_to_its_entries(page):
    anchors = {h.replace(".", "").lower() for h in re.findall(r"(?m)^### (\S+)$", page)}
    assert set(re.findall(r"\]\(#([^)]+)\)", page)) == anchors


def test_the_reference_is_built_by_a_command(tmp_path):
    command = [sys.executable, str(ROOT / "docs" / "reference.py"), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == str(tmp_path / "ops.md")
    assert (tmp_path / "ops.md").stat().st_size > 100_000


@pytest.mark.only_tape("C", "the operators are methods of Tensor in Python, and in no stub")
@pytest.mark.parametrize("path", STUBS, ids=lambda path: str(path.relative_to(stubs.ROOT)))
def test_stubs(path):
    assert path.read_text() == STUBS[path], "run: python docs/stubs.py"
