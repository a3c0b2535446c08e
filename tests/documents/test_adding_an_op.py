"""Two operations added to a copy of the tree by the steps of docs/adding-an-op.md.

The steps are the code blocks of the document: each goes above or below the line that it names. The
commands of its last section then build the copy and run the generated tests on the new operation.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import minigrad as mg
from minigrad.runtime.native import isa

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "adding-an-op.md"
STEP = re.compile(r"In `([^`]+)`, (above|below) `([^`]+)`:\n\n```\w+\n(.*?)```", re.DOTALL)
COPIED = ("csrc", "docs", "minigrad", "tests", "pyproject.toml", "setup.py", "README.md", "LICENSE")


def section(title):
    """The text under a heading of the document."""
    found = re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    assert found, f"the document has no section {title!r}"
    return found[1]


def commands(starting):
    """The commands of the last section that begin with these words."""
    blocks = re.findall(r"```sh\n(.*?)```", section("Build and test"), re.DOTALL)
    return [c for c in "".join(blocks).splitlines() if c.startswith(starting)]


@pytest.fixture
def tree(tmp_path):
    """A copy of the tree, with the extension as it was built."""
    if not (ROOT / "setup.py").exists() or not (ROOT / "csrc").exists():
        pytest.skip("the tests are not in a checkout")
    for name in COPIED:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, tmp_path / name)
    for module in Path(mg.__file__).parent.glob("*.so"):
        shutil.copy(module, tmp_path / "minigrad")
    return tmp_path


def apply_steps(tree, title):
    """Put each block of a section above or below its line, once."""
    steps = STEP.findall(section(title))
    assert len(steps) > 5
    for path, side, anchor, block in steps:
        lines = (tree / path).read_text().splitlines(keepends=True)
        at = [k for k, line in enumerate(lines) if line.strip().startswith(anchor)]
        assert at, f"{path} has no line that begins with {anchor}"
        apart = "\n\n" if side == "above" and not block.startswith(" ") else ""
        lines.insert(at[0] + (side == "below"), block + apart)
        (tree / path).write_text("".join(lines))


def run(tree, command, succeeds=True):
    """A command of the document, in the copy, with this interpreter; what it prints."""
    command = re.sub(r"\bpython (?=[a-z])", f"{sys.executable} ", command)
    command = re.sub(r"^pytest ", f"{sys.executable} -m pytest ", command)
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=tree,
        env=os.environ | {"PYTHONPATH": str(tree)},
        capture_output=True,
        text=True,
        check=False,
    )
    said = f"{command}\n{done.stdout[-4000:]}{done.stderr[-4000:]}"
    assert (done.returncode == 0) is succeeds, said
    return done.stdout


# The tests that the tables of operations, samples and references are complete.
COMPLETE = "every_row or every_kernel or every_operation or every_public"


def run_tests(tree, command, chosen, succeeds=True):
    """Run the chosen tests of a command."""
    return run(tree, f"{command} -p no:cacheprovider -k '{chosen}'", succeeds)


def passed(said):
    """How many tests passed, by the last line of pytest."""
    return int(re.search(r"(\d+) passed", said)[1])


def replace(file, *pairs):
    """Exchange texts that the file has once."""
    text = file.read_text()
    for old, new in pairs:
        assert text.count(old) == 1, f"{file} has {old!r} {text.count(old)} times"
        text = text.replace(old, new)
    file.write_text(text)


def test_a_row_with_a_forward_of_its_own(tree):
    apply_steps(tree, "A row with a forward of its own")
    for command in commands("python docs"):
        run(tree, command)
    every, _ = commands("pytest ")
    assert passed(run_tests(tree, every, f"inv_trace or generated or {COMPLETE}")) > 20

    # Three times too large, in value and in gradient alike: only the reference value notices.
    replace(
        tree / "minigrad/ops/linalg.py",
        ("np.trace(np.linalg.inv(a)", "3 * np.trace(np.linalg.inv(a)"),
        ("return -g.unsqueeze(-1)", "return -3.0 * g.unsqueeze(-1)"),
    )
    generated = "pytest tests/ops/test_samples.py tests/numerics/test_reference_values.py"
    said = run_tests(tree, generated, "inv_trace", succeeds=False)
    failed = re.findall(r"^FAILED (\S+)", said, re.MULTILINE)
    assert failed == ["tests/numerics/test_reference_values.py::test_functions[linalg.inv_trace]"]
    assert passed(said) > 15

    # Without a sample and a reference both the row and the name are asked for.
    for file in ("samples", "expected"):
        at = tree / "tests" / file / "linear_algebra.py"
        at.write_text(re.sub(r'    "linalg.inv_trace": .*\n', "", at.read_text()))
    said = run_tests(
        tree, "pytest tests/numerics/test_reference_values.py", COMPLETE, succeeds=False
    )
    assert "without a reference value in tests/helpers/expected: ['linalg.inv_trace']" in said
    assert "rows without a value in tests/helpers/expected/rows.py: ['inv_trace']" in said


@pytest.mark.exhaustive
def test_an_elementwise_kernel(tree):
    pytest.importorskip("setuptools")
    apply_steps(tree, "An elementwise kernel")
    (build,) = commands("MINIGRAD_DEV=")
    run(tree, re.sub(r"(?<==)\w+", isa, build, count=1))  # for this processor
    for command in commands("python docs"):
        run(tree, command)
    for command in commands("pytest "):
        assert passed(run_tests(tree, command, f"signed_square or generated or {COMPLETE}")) > 20
