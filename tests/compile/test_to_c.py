"""Programs as C: compiled by the system's compiler, they give the same bits as the replay."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import minigrad as mg

ROOT = Path(__file__).resolve().parent.parent.parent

pytestmark = pytest.mark.usefixtures("restore_random")
needs_compiler = pytest.mark.skipif(
    shutil.which("cc") is None or shutil.which("make") is None or not (ROOT / "csrc").is_dir(),
    reason="no C compiler, or no sources",
)


def trained():
    """A compiled training step that has run several times, and its arguments."""
    mg.manual_seed(0)
    model = mg.nn.Sequential(mg.nn.Linear(4, 8), mg.nn.Tanh(), mg.nn.Linear(8, 3))
    optimizer = mg.optim.Adam(model.parameters(), lr=0.01)

    def train(x, y):
        optimizer.zero_grad()
        loss = mg.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return {"loss": loss, "weight": model[0].weight, "x": x}

    step = mg.compile(train)
    rng = np.random.default_rng(0)
    given = mg.tensor(rng.normal(size=(5, 4)).astype("float32")), mg.tensor([0, 1, 2, 0, 1])
    for _ in range(4):
        step(*given)
    return step, given


def run(*command, folder):
    """The output of a command in a folder."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def shown(x):
    """A tensor as the C program prints it, with each float as the exact number."""
    return [x.dtype.name, *[float(value) for value in x.flatten().tolist()]]


def read(line):
    """The dtype and the values of a line that the C program printed."""
    head, _, values = line.partition("]")
    return [head.split()[0], *[float.fromhex(value) for value in values.split()]]


@needs_compiler
def test_the_files_compile(tmp_path):
    step, _ = trained()
    step.to_c(tmp_path / "c", csrc=ROOT / "csrc")
    warnings = ["-Wall", "-Wextra", "-Werror", "-std=gnu11", "-D_GNU_SOURCE", "-Icsrc", "-I."]
    run("cc", *warnings, "-fsyntax-only", "main.c", "program_data.c", folder=tmp_path / "c")
    names = {path.name for path in (tmp_path / "c").iterdir()}
    assert names == {"csrc", "Makefile", "main.c", "program_data.c", "program_data.h", "thunks.c"}
    assert not list((tmp_path / "c").rglob("*.py"))


@needs_compiler
@pytest.mark.exhaustive
def test_the_compiled_program_gives_the_same_bits(tmp_path):
    step, (x, y) = trained()
    step.to_c(tmp_path, csrc=ROOT / "csrc")
    (tmp_path / "inputs.bin").write_bytes(x.numpy().tobytes() + y.numpy().tobytes())
    run("make", "-s", f"-j{os.cpu_count()}", "OPTIMIZE=-O1", folder=tmp_path)
    lines = run("./program", "inputs.bin", "3", folder=tmp_path).splitlines()
    wanted = [shown(made) for _ in range(3) for made in step(x, y).values()]
    assert [read(line) for line in lines] == wanted
    (tmp_path / "short.bin").write_bytes(b"123")
    done = subprocess.run(
        ["./program", "short.bin"], cwd=tmp_path, capture_output=True, check=False
    )
    assert done.returncode == 1
    assert b"too few values" in done.stderr


def test_what_c_cannot_do_is_refused(tmp_path):
    step = mg.compile(lambda x: mg.nn.functional.dropout(x))
    step(mg.ones(3))
    with pytest.raises(ValueError, match="random numbers"):
        step.to_c(tmp_path / "c", csrc=ROOT / "csrc")
    step = mg.compile(lambda x: x + 1)
    step(mg.ones(3))
    with pytest.raises(ValueError, match="has no C sources"):
        step.to_c(tmp_path / "c", csrc=tmp_path)
    with pytest.raises(ValueError, match="isa is 'other'"):
        step.to_c(tmp_path / "c", csrc=ROOT / "csrc", isa="other")
    step(mg.ones(3, 2).T)
    with pytest.raises(ValueError, match="not contiguous"):
        step.to_c(tmp_path / "c", csrc=ROOT / "csrc")
    assert not (tmp_path / "c").exists()
