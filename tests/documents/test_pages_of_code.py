"""Pages of code: Python blocks run in order, and print what the text blocks after them show."""

from __future__ import annotations

import contextlib
import doctest
import io
import linecache
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parent.parent.parent / "docs"
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
PAGES = ["custom-operations.md", "finding-nan-and-slow-spots.md", "program-files.md"]

pytestmark = pytest.mark.usefixtures("restore_random")


def blocks(page):
    """Pairs of code and what it prints, and the number of each block's first line."""
    text = (DOCS / page).read_text(encoding="utf-8")
    pattern = r"```python\n(.*?)```(?:\n\n```text\n(.*?)```)?"
    for found in re.finditer(pattern, text, re.DOTALL):
        yield found.group(1), found.group(2) or "", text.count("\n", 0, found.start()) + 2


@pytest.mark.parametrize("page", PAGES)
def test_the_blocks_run_and_print_what_the_page_shows(page, tmp_path, monkeypatch):
    pytest.importorskip("scipy")
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": page, "sources": DOCS.parent / "csrc"}
    same = doctest.OutputChecker().check_output
    count = 0
    for code, expected, line in blocks(page):
        printed = io.StringIO()
        monkeypatch.setitem(linecache.cache, "train.py", (1, None, code.splitlines(True), ""))
        with contextlib.redirect_stdout(printed):
            exec(compile(code, "train.py", "exec"), names)
        shown = printed.getvalue()
        assert same(expected, shown, FLAGS), f"line {line} prints:\n{shown}"
        count += 1
    assert count > 3
