"""First sentences of files: short, and beginning with the thing that the file is."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
ROOMS = ("minigrad", "csrc", "tests", "benchmarks", "docs", "examples")
NEVER_FIRST = {"of", "what", "so", "those", "these", "where", "how", "it"}


def files():
    found = [path for room in ROOMS for path in (ROOT / room).rglob("*")]
    kept = [path for path in found if path.suffix in (".py", ".c", ".h", ".def")]
    return sorted([*kept, ROOT / "setup.py", *(ROOT / ".ci").glob("*")])  # .ci is in no archive


def head(path):
    """The text at the beginning of a file: its docstring, or its first comment."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        return ast.get_docstring(ast.parse(text)) or ""
    if path.suffix:
        comment = re.match(r"/\*(.*?)\*/", text, re.DOTALL)
        lines = comment.group(1) if comment else ""
        # The name of the file comes first.
        return re.sub(r"^[\w./]+: ", "", re.sub(r"\n \*", "\n", lines).strip())
    return "".join(re.findall(r"^# (.*\n)", text, re.MULTILINE)[:3])


@pytest.mark.parametrize("path", files(), ids=lambda path: str(path.relative_to(ROOT)))
def test_the_first_sentence_says_what_the_file_is(path):
    paragraph = head(path).strip().partition("\n\n")[0].split()
    ends = [i for i, word in enumerate(paragraph, 1) if word.endswith((".", "?", "!"))]
    sentence = paragraph[: ends[0] if ends else len(paragraph)]
    assert sentence, "a file begins with what it is"
    assert len(sentence) <= 25, " ".join(sentence)
    assert sentence[0].strip("`*,").lower() not in NEVER_FIRST, " ".join(sentence)
