"""Code in the documents runs: the README's blocks and every docstring's example."""

from __future__ import annotations

import doctest
import importlib
import math
import pkgutil
import re
from pathlib import Path

import pytest

import minigrad as mg

ROOT = Path(__file__).resolve().parent.parent.parent

pytestmark = pytest.mark.usefixtures("restore_random")

MODULES = sorted(
    name for _, name, _ in pkgutil.walk_packages(mg.__path__, "minigrad.") if "._native" not in name
)


@pytest.mark.parametrize("name", MODULES)
def test_docstrings(name):
    found = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert found.failed == 0


def test_readme_code_runs_from_top_to_bottom(capsys):
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert len(blocks) >= 2
    names: dict[str, object] = {}
    for block in blocks:
        exec(block, names)
    shown = capsys.readouterr().out
    assert "tensor([[ 6., 12.]" in shown  # 6 x
    assert names["loss"].item() == pytest.approx(math.tanh(1.5) ** 2 + math.tanh(2.5) ** 2)


@pytest.mark.parametrize("page", ["vmap.md", "compile.md"])
def test_code_of_a_page_runs_from_top_to_bottom(page):
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / page).read_text(), re.DOTALL)
    assert len(blocks) >= 2
    names: dict[str, object] = {}
    for block in blocks:
        exec(block, names)


PAGES = [
    path
    for pattern in ("*.md", "docs/**/*.md", "benchmarks/**/*.md")
    for path in sorted(ROOT.glob(pattern))
]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_to_files_of_the_tree(path):
    targets = re.findall(r"\]\(([^)#\s]+)[^)]*\)", path.read_text())
    missing = [t for t in targets if "://" not in t and not (path.parent / t).exists()]
    assert not missing


def code_alone(text):
    """A page with empty lines in place of all but its code, so that lines keep their numbers."""
    inside, lines = False, []
    for line in text.splitlines():
        fence = line.startswith("```")
        inside = line == "```python" if fence else inside
        lines.append(line if inside and not fence else "")
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(
    "path",
    [path for path in PAGES if "```python\n>>>" in path.read_text()],
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_sessions_in_documents_run(path):
    """Blocks that begin with a prompt are one session for each page."""
    session = doctest.DocTestParser().get_doctest(
        code_alone(path.read_text()), {}, path.name, str(path), 0
    )
    assert len(session.examples) > 1
    shown = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    runner.run(session, out=shown.append)
    assert not runner.failures, "".join(shown)


def test_some_docstring_has_an_example():
    modules = [importlib.import_module(name) for name in MODULES]
    examples = sum(len(t.examples) for m in modules for t in doctest.DocTestFinder().find(m))
    assert examples > 20
