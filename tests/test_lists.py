"""Nested lists of Python's numbers: into tensors as NumPy reads them, and out again."""

from __future__ import annotations

import enum
import gc
import math
import random
import threading

import numpy as np
import oracle
import pytest

import minigrad as mg
from minigrad import creation
from minigrad._c import lib
from minigrad.lists import from_lists

DTYPES = [mg.bool, mg.int64, mg.float32, mg.float64]
BOOLS = [True, False]
INTS = [0, 1, -1, 7, 2**24 + 1, 2**53 + 1, 2**62, 2**63 - 1, -(2**63)]
FLOATS = [0.0, -0.0, 0.1, -2.5, 16777217.0, 1e-60, 5e-324, 1e39, -1e300, math.nan, math.inf]
POOLS = [BOOLS, INTS, FLOATS, BOOLS + INTS, BOOLS + FLOATS, INTS + FLOATS, BOOLS + INTS + FLOATS]


def read(data, floats=mg.float32, weak=False):
    return from_lists(data, floats.code, weak)


def same(x, wanted):
    """In shape, dtype and bits."""
    found = x.numpy()
    assert found.dtype == wanted.dtype
    assert found.shape == wanted.shape
    assert found.tobytes() == wanted.tobytes()


def nested(chance, shape, pool):
    """Lists and tuples of a shape, filled from a pool."""
    if not shape:
        return chance.choice(pool)
    made = [nested(chance, shape[1:], pool) for _ in range(shape[0])]
    return made if chance.random() < 0.7 else tuple(made)


def some_data(chance):
    shape = [chance.choice([0, 1, 1, 2, 2, 3, 5]) for _ in range(chance.randrange(5))]
    return nested(chance, shape, chance.choice(POOLS))


# ---- into tensors --------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(20))
def test_they_are_read_as_numpy_reads_them(seed):
    chance = random.Random(seed)
    for _ in range(100):
        data = some_data(chance)
        array = np.asarray(data)
        assert read(data) is not None
        with np.errstate(all="ignore"):
            single = array.astype(np.float32) if array.dtype == np.float64 else array
        same(mg.tensor(data), single)
        x = creation.from_sequence(data)
        assert x._h.weak
        same(x, array)
        for dtype in DTYPES:
            same(mg.tensor(data, dtype), mg.tensor(array, dtype).numpy())


MIXED = [
    ([True, 2], [1, 2], mg.int64),
    ([2, True], [2, 1], mg.int64),
    ([True, 0.5], [1, 0.5], mg.float32),
    ([0.5, True, 2], [0.5, 1, 2], mg.float32),
    ([[True, False], [1, 0.5]], [[1, 0], [1, 0.5]], mg.float32),
    ([-0.0, 0], [-0.0, 0.0], mg.float32),
    ([math.nan, 1], [math.nan, 1], mg.float32),
    ((), [], mg.float32),
    ([[], ()], [[], []], mg.float32),
    ([()], [[]], mg.float32),
    (True, True, mg.bool),
]


@pytest.mark.parametrize(("data", "values", "dtype"), MIXED, ids=lambda d: repr(d)[:30])
def test_numbers_of_several_kinds(data, values, dtype):
    x = mg.tensor(data)
    assert x.dtype is dtype
    assert repr(x.tolist()) == repr(np.asarray(values, dtype.name).tolist())


def test_integers_among_floats_are_rounded_to_doubles_first():
    halfway = 2**54 + 2**30 + 1  # a double rounds it to halfway between two of float32's
    assert mg.tensor([halfway]).tolist() == [halfway]
    assert mg.tensor([halfway], mg.float32).tolist() == [2.0**54 + 2.0**31]
    assert mg.tensor([halfway, 0.5]).tolist() == [2.0**54, 0.5]
    assert mg.tensor([2**53 + 1, 0.5], mg.float64).tolist() == [2.0**53, 0.5]


class Colour(enum.IntEnum):
    RED = 3


class Degrees(float):
    pass


class Row(list):
    pass


NOT_OURS = [
    ([np.float64(1.5), 2.0], [1.5, 2.0], mg.float64),
    ([1.5, np.float32(2)], [1.5, 2.0], mg.float32),
    ([1, np.int8(2)], [1, 2], mg.int64),
    ([Colour.RED, 1], [3, 1], mg.int64),
    ([Degrees(1.5)], [1.5], mg.float32),
    (Degrees(1.5), 1.5, mg.float32),
    (Row([1.0, 2.0]), [1.0, 2.0], mg.float32),
    ([Row([1, 2]), [3, 4]], [[1, 2], [3, 4]], mg.int64),
    ([np.arange(2), [5, 6]], [[0, 1], [5, 6]], mg.int64),
    ([mg.ones(2), [5, 6]], [[1, 1], [5, 6]], mg.float32),
    (range(3), [0, 1, 2], mg.int64),
    ([range(2), [5, 6]], [[0, 1], [5, 6]], mg.int64),
    ([2**63, 0.5], [2.0**63, 0.5], mg.float32),
    ([2**63, 1], [2.0**63, 1.0], mg.float32),
]


@pytest.mark.parametrize(("data", "values", "dtype"), NOT_OURS, ids=lambda d: repr(d)[:30])
def test_what_else_is_in_a_list_is_left_to_numpy(data, values, dtype):
    assert read(data) is None
    x = mg.tensor(data)
    assert x.dtype is dtype
    assert x.tolist() == values


WRONG = [
    ([1, [2]], ValueError, "differ in length"),
    ([[1], 2], ValueError, "differ in length"),
    ([[], [1]], ValueError, "differ in length"),
    ([[1, 2], [3]], ValueError, "differ in length"),
    ([[1, 2], (3, 4, 5)], ValueError, "differ in length"),
    ([[[1]], [1]], ValueError, "differ in length"),
    ([1.0, "a"], TypeError, "cannot make a tensor from str data"),
    ([1.0, None], TypeError, "cannot make a tensor from NoneType data"),
    ([1, 2**64], OverflowError, "does not fit in int64"),
    ([-(2**63) - 1], OverflowError, "does not fit in int64"),
    ([0.5, -(2**63) - 1], OverflowError, "does not fit in int64"),
    ([True, 2**63], OverflowError, "9223372036854775808 does not fit in int64"),
]


@pytest.mark.parametrize(("data", "error", "message"), WRONG, ids=lambda d: repr(d)[:30])
def test_what_cannot_be_read_says_why(data, error, message):
    assert read(data) is None
    with pytest.raises(error, match=rf"^\[tensor\] .*{message}"):
        mg.tensor(data)
    with pytest.raises(error, match=rf"^\[tensor\] .*{message}"):
        mg.ones(2) + data


def test_nesting_is_as_deep_as_dimensions_go():
    data = 1.0
    for _ in range(lib.MG_MAX_NDIM):
        data = [data]
    assert mg.tensor(data).shape == (1,) * lib.MG_MAX_NDIM
    with pytest.raises(ValueError, match="17 dimensions where at most 16"):
        mg.tensor([data])
    endless = []
    endless.append(endless)
    with pytest.raises((ValueError, RecursionError)):
        mg.tensor(endless)


def test_only_numbers_of_the_dtype_asked_for_are_given_back():
    assert mg.tensor([1, 2], mg.float64).dtype is mg.float64
    assert mg.tensor([0.1], mg.float64).item() == 0.1
    assert mg.tensor([1e-60], mg.bool).item() is True  # it is not rounded to float32 before
    assert mg.tensor([1e18 + 128], mg.int64).item() == 10**18 + 128
    x = mg.tensor([[1.0, 2.0]], requires_grad=True)
    (x * [[3, 4]]).sum().backward()
    assert x.grad.tolist() == [[3, 4]]
    with pytest.raises(TypeError, match="only float tensors can have gradients"):
        mg.tensor([1, 2], requires_grad=True)


def test_lists_as_operands_take_the_dtype_of_what_they_meet():
    for dtype in (mg.float32, mg.float64):
        x = mg.tensor([1.0, 2.0], dtype)
        assert (x + [1.5, 2]).dtype is dtype
        assert ([1, True] * x).dtype is dtype
    assert (mg.tensor([1, 2]) + [1.5, 2]).dtype is mg.float32
    assert (mg.tensor([1, 2]) + [True, 2]).dtype is mg.int64


# ---- whatever happens meanwhile ------------------------------------------------------------------


def test_lists_that_change_while_they_are_read():
    """Memory for many numbers is asked for without the interpreter's lock."""
    rows = [[1.0] * 300 for _ in range(300)]
    over, said = threading.Event(), []

    def change():
        chance = random.Random(0)
        while not over.is_set():
            row = rows[chance.randrange(300)]
            if isinstance(row, list):
                row.append(2) if chance.random() < 0.5 else row.clear()
            rows[chance.randrange(300)] = chance.choice([[0.5] * 300, [], 3, [2**70] * 300])
            rows.append([1.0] * 300)
            del rows[300:]

    threads = [threading.Thread(target=change) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(50):
            try:
                assert mg.tensor(rows).shape[1:] == (300,)
            except (ValueError, OverflowError) as error:
                said.append(str(error))
            rows[:] = [[1.0] * 300 for _ in range(300)]
    finally:
        over.set()
        for thread in threads:
            thread.join()
    assert all(text.startswith("[tensor]") for text in said)


def test_memory_that_runs_out_anywhere():
    """Whichever allocation of Python's fails: a MemoryError, or the numbers."""
    testing = pytest.importorskip("_testcapi")
    data = [[1.5, 2.5], [3.5, 4.5]]

    def run(fails):
        testing.set_nomemory(fails, fails + 1)
        try:
            return mg.tensor(data, mg.float64).tolist()
        finally:
            testing.remove_mem_hooks()

    failed = 0
    for n in range(40):
        try:
            assert run(n) == data
        except MemoryError:
            failed += 1
    assert failed > 5


def test_what_is_begun_in_vain_is_given_back():
    many = 100_000
    vain = [
        [0.5] * many + ["a"],
        [True] * many + [2, 0.5],
        [[1] * many, [1]],
        [2] * many + [2**64],
    ]
    kinds = (TypeError, ValueError, OverflowError)
    with pytest.raises(kinds):
        mg.tensor(vain[0])  # what is made once for all, is made
    gc.collect()
    before = lib.mg_live_bytes()
    for data in vain:
        if data[-1] == 0.5:
            assert mg.tensor(data).dtype is mg.float32
        else:
            with pytest.raises(kinds):
                mg.tensor(data)
    assert lib.mg_live_bytes() == before


BEYOND_MEMORY = """
import resource
import minigrad as mg

many, error = 2**17, None
resource.setrlimit(resource.RLIMIT_AS, (2**34, resource.RLIM_INFINITY))
for data in ([[0.0] * many] * many, [[0.0] * many] + [[]] * many):
    try:
        mg.tensor(data)
    except (MemoryError, ValueError) as error:
        print(type(error).__name__, str(error).partition(": ")[0])
"""


@pytest.mark.only_tape("C", "Python lists all numbers before it makes an array")
def test_sizes_beyond_memory(fresh):
    """The first row says how much is asked for: where others differ, that is what is wrong."""
    assert fresh(BEYOND_MEMORY).splitlines() == [
        f"MemoryError [tensor] no memory for {2**36} bytes",
        "ValueError [tensor] the sequences differ in length",
    ]


# ---- out of tensors ------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("layout", oracle.LAYOUTS)
@pytest.mark.parametrize(
    "shape", [(), (1,), (0,), (3,), (2, 0), (0, 2), (2, 3, 4), (40, 50)], ids=str
)
def test_to_lists(dtype, layout, shape, rng):
    array = oracle.laid_out((rng.standard_normal(shape) * 3).astype(dtype.name), layout)
    found = mg.from_numpy(array).tolist()
    assert repr(found) == repr(array.tolist())  # in types too


def test_to_lists_of_what_shares_memory():
    x = mg.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert x.T.tolist() == [[1, 3], [2, 4]]
    assert x.flip(0).tolist() == [[3, 4], [1, 2]]
    assert x[:, :1].expand(2, 3).tolist() == [[1, 1, 1], [3, 3, 3]]
    assert mg.tensor([math.nan, -0.0, math.inf, 5e-324], mg.float64).tolist()[1:] == [
        -0.0,
        math.inf,
        5e-324,
    ]
    assert mg.from_numpy(np.array([0, 2, 255], np.uint8).view(bool)).tolist() == [False, True, True]
    big = [-(2**63), 2**63 - 1]
    assert mg.tensor(big).tolist() == big
