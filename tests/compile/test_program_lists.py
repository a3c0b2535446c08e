"""Lists of steps that are damaged: C refuses them, or a kernel does, and nothing crashes."""

from __future__ import annotations

import numpy as np
import pytest

import minigrad as mg
from minigrad._compile.program import _new
from minigrad.runtime.native import call, ffi, kernels, lib, names, signatures


def given():
    """Arrays of several shapes and dtypes."""
    made = []
    for name in ("float32", "float64", "int64", "bool", "float16", "int32"):
        made += [mg.ones(shape).to(getattr(mg, name)) for shape in ((), (4,), (2, 3), (3, 3))]
    return [x._h for x in made]


def head(arrays, slots, steps):
    """The begin of a list: counts and what the given arrays look like."""
    code = [slots, len(arrays), steps, 0, 0, 1]
    for k, x in enumerate(arrays):
        code += [x.dtype, x.ndim, *x.shape, *x.strides, k]
    return code


def attempt(arrays, code, floats):
    """Make and run a program; the state in which it stopped, or None if it was refused."""
    try:
        program = _new(code, floats)
    except ValueError:
        return None
    address = int(ffi.cast("intptr_t", program))
    state = 0
    if call(kernels.program_run, address, arrays, [], []):
        state = lib.mg_program_state()
    call(kernels.program_end, address)
    return state


def step(name, inputs, ints=(), floats=0, outputs=(), saved=None, expected=-1):
    """A step as integers."""
    code = [getattr(kernels, name), expected, len(inputs), *inputs]
    code += [0] if saved is None else [1, *saved]
    return [*code, len(ints), *ints, floats, len(outputs), *outputs, 0]


FLOAT, WIDE, WHOLE, HALF = 1, 5, 9, 17  # given arrays of shape (4,)


@pytest.mark.parametrize(
    ("code", "floats"),
    [
        (step("add", [FLOAT, 24], outputs=[25]), []),  # a slot that no step has made
        (step("matmul", [HALF, HALF], outputs=[24]), []),  # a storage dtype
        (step("stack", [FLOAT, -1], [2, 0], outputs=[24]), []),  # a hole in a list
        (step("hardtanh", [FLOAT], [1, 1], 1, [24]), [1.0]),  # too few numbers
        (step("linear", [FLOAT, FLOAT, -1], outputs=[24]), []),  # a weight that is no matrix
        (step("linear_vjp", [FLOAT], [7], 0, [24, 25, 26], [-1, -1, -1]), []),
        (step("matmul_vjp", [FLOAT], [3], 0, [24, 25], [FLOAT, -1, -1]), []),
        (step("scale_units", [WHOLE], [0], outputs=[24]), []),
        (step("product_exponents", [WHOLE], [0, 0], outputs=[24]), []),
        (step("view_around", [FLOAT, FLOAT], [7, 0, 1, 1, 4], outputs=[24]), []),
        (step("sgd_step", [FLOAT], [1, -1, -1, 0, 0], 4), [0.1, 0.0, 0.0, 0.0]),
        (step("relu_vjp_over", [FLOAT], outputs=[24], saved=[FLOAT, -1, -1]), []),
    ],
    ids=lambda x: names[x[0]] if x and isinstance(x[0], int) else "",
)
def test_arguments_that_no_kernel_takes_are_refused(code, floats):
    arrays = given()
    assert attempt(arrays, head(arrays, 27, 1) + code, floats) in (None, 2)


def test_a_list_is_refused_at_every_length():
    arrays = given()
    code = head(arrays, 26, 2)
    code += step("add", [FLOAT, FLOAT], outputs=[24]) + step("sum", [24], [-1, 0], outputs=[25])
    assert attempt(arrays, code, []) == 0
    for end in range(len(code)):
        assert attempt(arrays, code[:end], []) is None


def test_changed_lists_are_refused_or_run():
    arrays = given()
    code = head(arrays, 27, 3)
    code += step("add", [FLOAT, FLOAT], outputs=[24]) + step("sum", [24], [-1, 0], outputs=[25])
    code += step("concatenate", [FLOAT, WIDE], [2, 0], outputs=[26])
    rng = np.random.default_rng(0)
    taken = [k for k in range(lib.mg_run_count()) if "p" not in signatures[k]]
    refused = 0
    for _ in range(3000):
        made = list(code)
        for _ in range(rng.integers(1, 4)):
            at = int(rng.integers(len(code) - 50, len(made)))
            made[at] = int(rng.choice([-2, -1, 0, 1, 2, 3, 7, 24, 60, 2**31, taken[at % 90]]))
        refused += attempt(arrays, made, []) is None
    assert refused > 1500
