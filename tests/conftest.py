"""Fixtures of all tests: fixed randomness, and a check that no test changes global state."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings


def pytest_addoption(parser):
    """``--tape python`` runs the tests on the tape in Python, as MINIGRAD_TAPE=python does."""
    parser.addoption("--tape", choices=["c", "python"], help="the tape that the tests run on")


def pytest_configure(config):
    """Choose the tape, before minigrad is imported."""
    if config.getoption("--tape"):
        os.environ["MINIGRAD_TAPE"] = config.getoption("--tape")


def pytest_collection_modifyitems(items):
    """Skip tests marked as being of the other tape: ``only_tape(name, reason)``."""
    from minigrad.runtime.accelerator import tape_name

    for item in items:
        for mark in item.iter_markers("only_tape"):
            name, reason = mark.args
            if name != tape_name:
                item.add_marker(pytest.mark.skip(reason=f"of the tape in {name}: {reason}"))


settings.register_profile(
    "default",
    deadline=None,
    derandomize=True,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("default")


def _place(state):
    """Where in its stream a generator is, as something to compare."""
    philox = state["philox"]
    numbers = (philox["state"]["counter"], philox["state"]["key"], philox["buffer"])
    return state["seed"], philox["buffer_pos"], philox["uinteger"], *(x.tobytes() for x in numbers)


@pytest.fixture(autouse=True)
def _no_leaks():
    """Fail a test that leaves grad mode, thread count, random generator or error mode changed."""
    import minigrad as mg
    from minigrad.tape import grad_mode

    before = (mg.is_grad_enabled(), mg.get_num_threads(), np.geterr())
    state = mg.get_rng_state()
    place = _place(state)
    yield
    after = (mg.is_grad_enabled(), mg.get_num_threads(), np.geterr())
    same_random = _place(mg.get_rng_state()) == place
    mg.set_rng_state(state)  # put things right for the tests that follow
    grad_mode._scope.set(None)
    mg.set_num_threads(before[1])
    np.seterr(**before[2])
    assert after == before, f"the test left (grad mode, threads, float errors) at {after}"
    assert same_random, "the test drew from, or replaced, the global random generator"


@pytest.fixture
def rng(request):
    """A generator seeded by the test's file and name, whatever folder the file lies in."""
    file, _, name = request.node.nodeid.partition("::")
    return np.random.default_rng(list(f"tests/{Path(file).name}::{name}".encode()))


@pytest.fixture
def restore_random():
    """For tests of the global random generator: puts it back as it was."""
    import minigrad as mg

    state = mg.get_rng_state()
    yield
    mg.set_rng_state(state)


@pytest.fixture
def fresh(tmp_path):
    """A function that runs a program, or a file, in a fresh interpreter, and returns what it says.

    That is what it prints; of one that ``fails``, which has to end with an error, what it says of
    that. Further keywords are environment variables.
    """

    def run(program, *, fails=False, timeout=None, **variables):
        done = subprocess.run(
            [sys.executable, *(["-c", program] if isinstance(program, str) else [program])],
            env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)} | variables,
            capture_output=True,
            text=True,
            check=False,
            cwd=tmp_path,  # from the sources' own folder these would be found first
            timeout=timeout,
        )
        assert done.returncode == int(fails), done.stderr[-3000:]
        return done.stderr if fails else done.stdout

    return run


@pytest.fixture
def no_gc():
    """Reference counts alone must do."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()
