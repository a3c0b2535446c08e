"""What an import loads, and what waits until it is asked for."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from importlib import import_module

import pytest

import minigrad as mg
from minigrad import functions, nn


@pytest.fixture
def printed(tmp_path):
    """A function that says what a fresh interpreter prints."""

    def run(code):
        done = subprocess.run(
            [sys.executable, "-c", code],
            env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
            cwd=tmp_path,
        )
        return done.stdout.split()

    return run


def test_what_is_built_on_top_waits(printed):
    code = "import sys, minigrad; print(*[m for m in sys.modules if m.startswith('minigrad.')])"
    loaded = printed(code)
    assert "minigrad.functions" in loaded
    later = (
        "nn optim linalg special checking draw scalar variable numpy_protocol random config "
        "autograd backprop vjp"
    )
    later = [*later.split(), *set(functions.LATER.values())]
    assert not [m for m in later if f"minigrad.{m}" in loaded]


def test_numpy_is_loaded_from_the_top(printed):
    loaded = printed("import sys, minigrad; print(*sys.modules)")
    first = next(m for m in loaded if m.startswith("minigrad."))
    assert loaded.index("numpy.linalg") < loaded.index(first)


def test_what_waits_is_what_its_module_offers():
    tables = [(functions.LATER, set(functions.LATER.values()))]
    tables.append((mg._LATER, {"config", "draw", "random"}))
    for table, homes in tables:
        for home in homes:
            names = {name for name, place in table.items() if place == home}
            assert names == set(import_module(f"minigrad.{home}").__all__), home
    assert set(functions.TOPICS) > set(functions.LATER.values())


def test_a_method_that_waited(printed):
    code = (
        "import sys, minigrad as mg; x = mg.tensor([1, 2]); assert 'minigrad.arranging' not in "
        "sys.modules; print(x.flip(0).item.__name__, mg.Tensor.flip.__name__, x.exp_.__name__, "
        "mg.Tensor.flip is mg.flip is vars(mg.Tensor)['flip'])"
    )
    assert printed(code) == ["item", "flip", "exp_", "True"]


def test_a_method_that_waited_is_found_from_a_subclass(printed):
    code = (
        "import minigrad as mg\n"
        "class Turned(mg.Tensor):\n"
        "    __slots__ = ()\n"
        "    def flip(self): return super().flip(0)\n"
        "x = mg.tensor([1, 2]); x.__class__ = Turned; print(x.flip().tolist())"
    )
    assert printed(code) == ["[2,", "1]"]


def test_every_public_name_is_found(printed):
    assert not [name for name in mg.__all__ if not hasattr(mg, name)]
    assert set(mg.__all__) == set(dir(mg))  # and nothing that only we need
    assert printed("import minigrad as mg; print(mg.nn.Linear(1, 2).weight.shape)") == ["(2,", "1)"]
    assert printed("from minigrad import *; print(nn.ReLU(), gradcheck.__name__)") == [
        "ReLU()",
        "gradcheck",
    ]


@pytest.mark.parametrize("module", [functions, mg.linalg, mg.special, mg.nn.functional, mg.Tensor])
def test_functions_can_be_pickled(module):
    for name in dir(module):
        function = getattr(module, name)
        if callable(function) and not name.startswith("_"):
            assert pickle.loads(pickle.dumps(function)) is function


def test_an_unknown_name():
    assert not hasattr(mg, "no_such_thing")


def test_modules_are_dataclasses_from_their_first_use():
    class Twice(nn.function_module.FunctionModule, function=lambda x, by: x * by):
        by: float = 2.0

    class Thrice(Twice, function=lambda x, by: x * by):
        by: float = 3.0

    assert Thrice()(5.0) == 15
    assert Twice(4.0)(5.0) == 20
    assert Twice()(5.0) == 10


def test_a_second_import_in_one_process_is_refused(printed):
    code = (
        "import sys, minigrad as mg; x = mg.tensor([1.0], requires_grad=True)\n"
        "(x * x).sum().backward(); x.grad = None\n"
        "for name in [m for m in sys.modules if m.startswith('minigrad')]: del sys.modules[name]\n"
        "try: import minigrad\n"
        "except ImportError as error: print('cannot be twice' in str(error))\n"
        "(x * x).sum().backward(); print(x.grad.tolist())"
    )
    assert printed(code) == ["True", "[2.0]"]


@pytest.mark.parametrize(
    ("name", "said"),
    [("minigrad._native", "C extension is missing"), ("_cffi_backend", "_cffi_backend")],
)
def test_what_is_not_installed_is_named(printed, name, said):
    code = f"""
import sys
sys.modules[{name!r}] = None
try:
    import minigrad
except ImportError as error:
    print(error)
"""
    assert said in " ".join(printed(code))
