"""Modules that an import loads, and modules that wait until they are asked for."""

from __future__ import annotations

import pickle
import sys
import threading
from importlib import import_module
from pathlib import Path

import pytest

import minigrad as mg
from minigrad import functions, nn


@pytest.fixture
def printed(fresh):
    """The words that a fresh interpreter prints."""
    return lambda code: fresh(code).split()


def test_what_is_built_on_top_waits(printed):
    code = "import sys, minigrad; print(*[m for m in sys.modules if m.startswith('minigrad.')])"
    loaded = printed(code)
    assert "minigrad.functions" in loaded
    later = (
        "nn optim linalg special checking tutorial interop random runtime.config runtime.settings "
        "autograd tape.engine tape.vjp"
    )
    later = [*later.split(), *(f"functions.{topic}" for topic in functions.LATER.values())]
    assert not [m for m in later if f"minigrad.{m}" in loaded]


def test_random_numbers_load_no_topic_of_operations(printed):
    code = "import sys, minigrad as mg; mg.randn(3); mg.randint(0, 3, (3,)); print(*sys.modules)"
    assert not {f"minigrad.functions.{m}" for m in functions.LATER.values()} & set(printed(code))


THREADS = """
import os
import minigrad as mg
from minigrad import nn, optim

mg.set_num_threads(3)
x = mg.ones(64, 64, requires_grad=True)
(x @ x).exp().sum().backward()
small = len(os.listdir("/proc/self/task"))
mg.exp(mg.ones(2**22))
print(small, len(os.listdir("/proc/self/task")))
"""


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="the system lists no threads")
def test_no_thread_is_started_before_something_large(printed):
    assert printed(THREADS) == ["1", "3"]


ORDINARY = """
import sys
import minigrad as mg
from minigrad import nn, optim
from minigrad.nn import functional as F

x = mg.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
y = (x @ mg.eye(2) + [[0, True], (0.5, 1)]) * 2 - mg.arange(2)
loss = (y / mg.full((2,), 2) + mg.zeros(2) * mg.linspace(0, 1, 2)).square().mean()
loss.backward()
assert x.grad.tolist() == [[0.5, 1.25], [1.75, 2.25]]
assert mg.grad((x * x).sum(), x)[0].tolist() == [[2, 4], [6, 8]]
with mg.no_grad():
    assert x[0, 1:].item() == x[::-1][0][0].item() - 1 == 2
    assert x[[1, 0], [0, 1]].tolist() == [3, 2]
    assert x[[True, False]].tolist() == x[x.sum(1) < 4].tolist() == [[1, 2]]
    assert mg.cat([x, mg.ones(1, 2)]).max(0).values.tolist() == [3, 4]
    assert float(loss) == loss.item() and f"{loss:.2f}" == "9.94"
    assert x.detach().to("float64").numel() == 4

model = nn.Sequential(nn.LayerNorm(2), nn.ReLU())
step = optim.Adam(model.parameters(), lr=0.1)
F.cross_entropy(model(x), mg.tensor([0, 1])).backward()
step.step()
assert model.state_dict()["0.bias"].shape == (2,)
print("numpy" in sys.modules)
"""


def test_numpy_waits_for_what_needs_it(printed):
    assert printed(ORDINARY) == ["False"]
    needing = "mg.randn(2)", "repr(x)", "x.numpy()", "nn.Linear(2, 2)", "mg.linalg.inv(x)"
    for code in needing:
        assert printed(
            "import sys, minigrad as mg; from minigrad import nn; x = mg.eye(2)\n"
            f"before = 'numpy' in sys.modules; {code}; print(before, 'numpy' in sys.modules)"
        ) == ["False", "True"]


@pytest.mark.parametrize("order", ["numpy as np, minigrad as mg", "minigrad as mg, numpy as np"])
def test_numpy_may_be_imported_before_and_after(printed, order):
    code = (
        f"import {order}\n"
        "a = np.arange(3.0); x = mg.from_numpy(a); x += np.float32(1); y = x + a + np.int64(1)\n"
        "print(a.tolist() == [1, 2, 3], y.tolist() == [3, 5, 7], x[np.array([0, 2])].tolist(),"
        "mg.full((1,), np.int8(3)).dtype, mg.arange(np.int64(2)).dtype, mg.tensor(a).dtype)"
    )
    kinds = ["minigrad.int64", "minigrad.int64", "minigrad.float64"]
    assert printed(code) == ["True", "True", "[1.0,", "3.0]", *kinds]


def test_numpy_may_be_needed_by_several_threads_at_once(printed):
    code = """
import threading
import minigrad as mg

x, found, ready = mg.eye(2), [], threading.Barrier(8)

def use(i):
    ready.wait()
    use = (lambda: mg.tensor(range(3)).tolist(), lambda: repr(x[0]), lambda: x.numpy().tolist(),
           lambda: mg.rand(2, generator=mg.Generator().manual_seed(0)).shape)[i % 4]
    found.append((i % 4, use()))

threads = [threading.Thread(target=use, args=(i,)) for i in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
wanted = [(0, [0, 1, 2]), (1, "tensor([1., 0.])"), (2, [[1.0, 0.0], [0.0, 1.0]]), (3, (2,))]
print(sorted(found, key=repr) == sorted(wanted * 2, key=repr))
"""
    assert printed(code) == ["True"]


@pytest.mark.parametrize("numpy", ["None", "type(sys)('numpy')"])
def test_nothing_is_numpys_while_numpy_is_half_loaded_or_refused(printed, numpy):
    code = (
        f"import sys; sys.modules['numpy'] = {numpy}\n"
        "import minigrad as mg\n"
        "x = mg.full((2,), 3) + [1, 2]\n"
        "try: x + object()\n"
        "except TypeError: print(x[[0]].tolist(), mg.asarray([1.5]).tolist())"
    )
    assert printed(code) == ["[4]", "[1.5]"]


def test_what_waits_is_what_its_module_offers():
    topics = {name: f"functions.{topic}" for name, topic in functions.LATER.items()}
    tables = [(topics, set(topics.values()))]
    tables.append((mg._LATER, {"runtime.config", "tutorial.draw", "random"}))
    for room, package in (("nn", mg.nn), ("nn.utils", mg.nn.utils)):
        waiting = {name: f"{room}.{home}" for name, home in package._LATER.items() if home}
        tables.append((waiting, set(waiting.values())))
    for table, homes in tables:
        for home in homes:
            names = {name for name, place in table.items() if place == home}
            assert names == set(import_module(f"minigrad.{home}").__all__), home
    assert set(functions.TOPICS) > set(functions.LATER.values())


def test_a_method_that_waited(printed):
    code = (
        "import sys, minigrad as mg; x = mg.tensor([1, 2]); "
        "assert 'minigrad.functions.arranging' not in sys.modules; "
        "print(x.flip(0).item.__name__, mg.Tensor.flip.__name__, x.exp_.__name__, "
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


def test_a_module_that_several_threads_use_first():
    found, interval = [], sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(10):

            class Scaled(nn.function_module.FunctionModule, function=lambda x, by: x * by):
                by: float = 2.0

            start = threading.Barrier(4)

            def use(start=start, kind=Scaled):
                start.wait()
                found.append(kind(3.0)(5.0))

            threads = [threading.Thread(target=use) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert found == [15.0] * 40


def test_a_module_that_another_use_makes_meanwhile():
    """As if threads were switched at a line of what makes the class, at each line in turn."""
    tracer, lines, switched = sys.gettrace(), 0, True
    while switched:
        switched, left = False, lines

        class Scaled(nn.function_module.FunctionModule, function=lambda x, by: x * by):
            by: float = 2.0

        def step(frame, event, argument, kind=Scaled):
            nonlocal left, switched
            if frame.f_code.co_filename != nn.function_module.__file__:
                return None
            left -= event == "line"
            if left < 0 and not switched:
                switched = True
                assert kind(4.0)(5.0) == 20.0
            return step

        sys.settrace(step)
        try:
            got = Scaled(3.0)(5.0)
        finally:
            sys.settrace(tracer)
        assert got == 15.0
        assert Scaled._arguments == ("by",)
        lines += 1
    assert lines > 20


def test_it_runs_in_a_subinterpreter_or_says_what_stops_it(printed):
    """Interpreters with a lock of their own are refused by cffi, in a sentence."""
    code = """
try: import _xxsubinterpreters as interpreters
except ImportError:
    try: import _interpreters as interpreters
    except ImportError: interpreters = None
import minigrad as mg
inner = '''
try:
    import minigrad as mg
    x = mg.tensor([1.0, 2.0], requires_grad=True)
    (x * x).sum().backward()
    assert x.grad.tolist() == [2.0, 4.0]
except ImportError as error:
    assert "subinterpreters" in str(error), error
'''
if interpreters is not None:
    other = interpreters.create()
    failed = interpreters.run_string(other, inner)
    assert failed is None, failed
    interpreters.destroy(other)
x = mg.tensor([3.0], requires_grad=True)
(x * x).sum().backward()
print(x.grad.tolist())
"""
    assert printed(code) == ["[6.0]"]


def test_it_can_be_imported_twice_in_one_process(printed):
    """As after sys.modules was purged: each import has classes and a tape of its own."""
    code = """
import gc, sys
import minigrad as mg

def purge():
    for name in [m for m in sys.modules if m.startswith("minigrad")]:
        del sys.modules[name]

x = mg.tensor([1.0], requires_grad=True)
y = (x * x).sum()
y.backward(retain_graph=True)  # loads what is loaded when it is first used
x.grad = None
purge()
import minigrad as again
u = again.tensor([3.0], requires_grad=True)
(u * u + u).sum().backward()
y.backward(retain_graph=True)
print(x.grad.tolist(), u.grad.tolist(), again is mg, isinstance(u, mg.Tensor))
try: x + u
except TypeError as error: print("expected a Tensor" in str(error) or "unsupported" in str(error))
del u, again
purge()
gc.collect()
y.backward()
print(x.grad.tolist())
"""
    assert printed(code) == ["[2.0]", "[7.0]", "False", "False", "True", "[4.0]"]


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
