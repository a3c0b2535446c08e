"""Each part imports only what stands above it in the table of docs/design.md."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from minigrad import functions

ROOT = Path(__file__).parent.parent
ROWS = [
    line.split("|")[1:3]
    for line in (ROOT / "docs/design.md").read_text(encoding="utf-8").splitlines()
    if line.startswith("| `")
]
TOP = len(ROWS)


def _named(pattern):
    """By what is named in the table, by which pattern, the number of its row."""
    found = [(name, k) for k, row in enumerate(ROWS) for name in re.findall(pattern, "".join(row))]
    return dict(reversed(found))


MODULES = _named(r"`(?:minigrad/)?(\w+)(?:\.py)?`") | {"nn.functional": TOP}
MODULES |= dict.fromkeys(functions.TOPICS, MODULES["functions"])
HEADERS = _named(r"`(?:csrc/)?(\w+\.h)`")
FOLDERS = _named(r"`csrc/([\w/]+)`")


def _imported(tree):
    """What a module imports of the package when it is loaded itself."""
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module == "minigrad":
            yield from [name.name for name in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module.startswith("minigrad."):
            yield node.module.removeprefix("minigrad.")


@pytest.mark.parametrize("file", sorted((ROOT / "minigrad").rglob("*.py")), ids=lambda f: f.name)
def test_modules_import_what_stands_above(file):
    own = MODULES.get(file.relative_to(ROOT / "minigrad").parts[0].removesuffix(".py"), TOP)
    for name in _imported(ast.parse(file.read_text(encoding="utf-8"))):
        assert MODULES.get(name.partition(".")[0], TOP) <= own, name


@pytest.mark.parametrize("file", sorted((ROOT / "csrc").rglob("*.[ch]")), ids=lambda f: f.name)
def test_c_includes_what_stands_above(file):
    def row(path):
        rooms = [room.as_posix() for room in path.relative_to(ROOT / "csrc").parents]
        found = [FOLDERS[room] for room in rooms if room in FOLDERS]  # the innermost room first
        return found[0] if found else HEADERS.get(path.name, TOP)

    for name in re.findall(r'#include "(.*\.h)"', file.read_text(encoding="utf-8")):
        beside, at_root = file.parent / name, ROOT / "csrc" / name
        path = (beside if beside.exists() else at_root).resolve()
        if path.name != "minigrad.h":  # which declares everything
            assert row(path) <= row(file), name
