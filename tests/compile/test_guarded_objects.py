"""Objects of the standard library that a compiled function reads, and library code that reads."""

from __future__ import annotations

import array
import contextvars
import ctypes
import threading
import warnings
import weakref

import pytest

import minigrad as mg


def outcomes(function, change):
    """What a compiled function gives before and after a change, and its recordings."""
    compiled = mg.compile(function)
    x = mg.ones(2)
    before = [compiled(x).tolist() for _ in range(3)]
    change()
    after = [compiled(x).tolist() for _ in range(2)]
    assert before == [before[0]] * 3
    assert after == [function(x).tolist()] * 2
    return compiled


class Held:
    scale = 2.0


def test_memory_of_the_standard_library_is_compared():
    raw, numbers, number = bytearray(b"\x02"), array.array("d", [2.0]), ctypes.c_double(2.0)
    outcomes(lambda x: x * raw[0], lambda: raw.__setitem__(0, 3))
    outcomes(lambda x: x * numbers[0], lambda: numbers.__setitem__(0, 3.0))
    c = outcomes(lambda x: x * number.value, lambda: setattr(number, "value", 3.0))
    assert c.recordings == 2
    assert "the content of number" in c.reasons[0]


def test_a_context_variable_and_a_weak_reference_are_compared():
    variable = contextvars.ContextVar("variable", default=2.0)
    outcomes(lambda x: x * variable.get(), lambda: variable.set(3.0))
    held = Held()
    reference = weakref.ref(held)
    outcomes(lambda x: x * reference().scale, lambda: setattr(held, "scale", 3.0))


def test_a_function_that_reads_thread_locals_runs_without_a_program():
    own = threading.local()
    own.scale = 2.0
    with pytest.warns(UserWarning, match="own differs from thread to thread"):
        outcomes(lambda x: x * own.scale, lambda: setattr(own, "scale", 3.0))


LIBRARY = {
    "ctc_loss": lambda x: mg.nn.functional.ctc_loss(
        x.expand(4, 1, 3).log_softmax(-1), mg.tensor([[1]]), mg.tensor([4]), mg.tensor([1])
    ),
    "multinomial": lambda x: mg.multinomial(x[0, 0] + 1, 1),
    "histc": lambda x: mg.histc(x),
}


@pytest.mark.usefixtures("restore_random")
@pytest.mark.parametrize("name", LIBRARY)
def test_an_operation_that_reads_values_runs_without_a_program(name):
    compiled = mg.compile(LIBRARY[name])
    with pytest.warns(UserWarning, match=rf"{name} at .* reads a tensor's value"):
        compiled(mg.ones(4, 1, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compiled(mg.ones(4, 1, 3))


def test_a_value_that_a_module_of_the_user_reads_is_an_error_with_the_line():
    class Reads(mg.nn.Module):
        def forward(self, x):
            return x * float(x.sum())

    with pytest.raises(RuntimeError, match=r"test_guarded_objects.py:.* reads a tensor's value"):
        mg.compile(mg.nn.Sequential(Reads()))(mg.ones(2))


def test_a_global_that_hides_a_builtin_and_other_code_are_seen():
    def function(x):
        return x * abs(-2.0)

    compiled = mg.compile(function)
    compiled(mg.ones(2)), compiled(mg.ones(2))
    try:
        globals()["abs"] = lambda x: 5.0
        assert compiled(mg.ones(2)).tolist() == [5.0, 5.0]
    finally:
        del globals()["abs"]
    assert compiled(mg.ones(2)).tolist() == [2.0, 2.0]
    function.__code__ = (lambda x: x * 7.0).__code__
    assert compiled(mg.ones(2)).tolist() == [7.0, 7.0]
    assert "that a global hides abs was False and is True" in compiled.reasons
