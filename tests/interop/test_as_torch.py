"""Tests of running PyTorch programs with minigrad, in processes of their own."""

import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
PROGRAM = """
import sys
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import optim
from torch.optim.lr_scheduler import StepLR

assert torch.nn is nn and nn.functional is F and torch.optim is optim
assert torch.__version__.startswith("2."), torch.__version__
model = nn.Sequential(nn.Linear(2, 1))
optimizer = optim.SGD(model.parameters(), lr=0.1)
schedule = StepLR(optimizer, 1)
F.mse_loss(model(torch.ones(4, 2)), torch.zeros(4, 1)).backward()
optimizer.step()
print(sys.argv[1:], __name__, isinstance(model[0].weight, torch.Tensor), hasattr(torch, "spam"))
"""


def run(*arguments: str, code: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *arguments] + (["-c", code] if code else [])
    # not in the checkout, whose package may lie there without its extension
    return subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=HERE)


@pytest.fixture
def program(tmp_path: Path):
    def write(text: str) -> str:
        path = tmp_path / "program.py"
        path.write_text(text)
        return str(path)

    return write


def test_the_command_shows_the_configuration():
    done = run("-m", "minigrad")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("minigrad ")
    assert "instruction set" in done.stdout


def test_a_program_runs_and_what_is_missing_is_named(program):
    done = run("-m", "minigrad", program(PROGRAM), "a", "b")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "['a', 'b'] __main__ True False\n"
    assert done.stderr == "minigrad has no torch.spam\n"


@pytest.mark.parametrize(
    ("line", "error", "missing"),
    [
        ("torch.spam", "AttributeError: minigrad has no torch.spam", "torch.spam"),
        ("from torch.nn import Spam", "ImportError: cannot import name 'Spam'", "torch.nn.Spam"),
        ("import torch.spam", "ModuleNotFoundError: No module named 'torch.spam'", "torch.spam"),
        ("torch.ones(1).spam()", "AttributeError: ", "torch.Tensor.spam"),
    ],
)
def test_a_program_that_fails(program, line, error, missing):
    done = run("-m", "minigrad", program(f"import torch\n{line}\n"))
    assert done.returncode == 1
    *_, last, named = done.stderr.splitlines()
    assert last.startswith(error)
    assert named == f"minigrad has no {missing}"


def test_a_program_imports_its_neighbours_and_sets_the_exit_code(program, tmp_path):
    (tmp_path / "beside.py").write_text("import torch\nvalue = torch.tensor(3)\n")
    done = run("-m", "minigrad", program("import sys, beside\nsys.exit(int(beside.value))\n"))
    assert (done.returncode, done.stdout, done.stderr) == (3, "", "")


def test_there_is_no_such_program():
    done = run("-m", "minigrad", "nowhere.py")
    assert done.returncode == 1
    assert done.stderr.startswith("[minigrad] there is no program 'nowhere.py'")


def test_the_hook_leaves_no_trace():
    done = run(
        code="""
import sys
import minigrad as mg, minigrad.nn

before = {n: dict(vars(m)) for n, m in sys.modules.items() if n.startswith("minigrad")}
finders = list(sys.meta_path)
with mg.as_torch() as names:
    import torch, torch.nn
    assert mg.as_torch() is names
    assert torch.nn.Linear is mg.nn.Linear and not hasattr(torch.nn, "Spam")
assert list(names.missing) == ["torch.nn.Spam"]
assert sys.meta_path == finders and not [n for n in sys.modules if n.startswith("torch")]
for name, held in before.items():
    spec = vars(sys.modules[name]).get("__spec__")
    assert spec is held.get("__spec__") and (spec is None or spec.name == name), name
"""
    )
    assert done.returncode == 0, done.stderr


def test_modules_that_lie_elsewhere():
    done = run(
        code="""
import minigrad as mg, minigrad.nn.normalization
from minigrad.interop.torch_places import PLACES

with mg.as_torch() as names:
    import torch
    from torch.distributions.normal import Normal
    from torch.optim.adam import Adam
    from torch.utils.data.dataloader import DataLoader, default_collate
    from torch.utils.data.sampler import SubsetRandomSampler
    assert Normal is mg.distributions.Normal and Adam is mg.optim.Adam
    assert (DataLoader, SubsetRandomSampler) == (mg.data.DataLoader, mg.data.SubsetRandomSampler)
    assert torch.functional.norm is mg.norm and torch.nn.modules.conv.Conv2d is mg.nn.Conv2d
    assert torch.nn.modules.batchnorm._BatchNorm is mg.nn.normalization._BatchNorm
    from torch.nn.modules.activation import MultiheadAttention
    assert MultiheadAttention is mg.nn.MultiheadAttention
    assert issubclass(mg.nn.ConvTranspose1d, torch.nn.modules.conv._ConvNd)
    for name in PLACES:
        __import__(name)
    try:
        from torch.optim.adam import Spam
    except ImportError:
        pass
assert list(names.missing) == ["torch.optim.adam.Spam"], names.missing
"""
    )
    assert done.returncode == 0, done.stderr


def test_pytorch_itself_was_imported():
    code = "import sys, types; sys.modules['torch'] = types.ModuleType('torch')\n"
    done = run(code=code + "import minigrad as mg; mg.as_torch()")
    assert "RuntimeError: [as_torch] PyTorch itself has been imported" in done.stderr
