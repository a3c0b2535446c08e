"""Softmax of long rows, computed in blocks with a maximum each."""

from __future__ import annotations

import math
import sys

import numpy as np
import pytest
from scipy import special

import minigrad as mg

PIECE = 2048
LONG = 8192  # a row alone is long beyond, and up to eight rows together beyond as many times
N = 5 * PIECE + 777
AT = np.arange(N)
IN = AT // PIECE  # the piece that an element is in


def lowest(dtype):
    return math.log(np.finfo(dtype).smallest_subnormal)


def rows_of_all_kinds(usual, dtype):
    kinds = [usual, np.full(N, -math.inf), usual + lowest(dtype) / 4 * IN, usual.copy()]
    kinds[3][100] = math.nan
    return np.stack(kinds * 3)


ROWS = {
    "the maximum comes last": lambda x, dtype: np.where(AT == N - 1, 50, x),
    "1e4 apart": lambda x, dtype: x + 1e4 * np.array([3, 0, 5, 1, 4, 2])[IN],
    "less and less": lambda x, dtype: x + lowest(dtype) / 4 * IN,
    "subnormal pieces": lambda x, dtype: x + (lowest(dtype) + 14) * (IN != 3),
    "subnormal elements": lambda x, dtype: x + (lowest(dtype) + 14) * (AT % 5 > 0),
    "beyond the largest number": lambda x, dtype: np.finfo(dtype).max * np.where(IN % 2, -1.0, 1),
    "pieces of -inf": lambda x, dtype: np.where(IN % 2, -math.inf, x),
    "-inf but for one": lambda x, dtype: np.where(AT == 3 * PIECE, -7, -math.inf),
    "all -inf": lambda x, dtype: np.full(N, -math.inf),
    **{
        f"{value} at {at}, {name}": lambda x, dtype, value=value, at=at, others=others: np.where(
            at == AT, value, np.where((IN[at] == IN) & others, -math.inf, x)
        )
        for value in (math.inf, math.nan)
        for at in (0, 2 * PIECE + 5, N - 1)
        for name, others in (("among numbers", False), ("among -inf", True))
    },
    "rows of all kinds": rows_of_all_kinds,
}
SHAPES = [
    *((n,) for n in (LONG - 1, LONG, LONG + 1, 5 * PIECE - 1, 5 * PIECE, 5 * PIECE + 1)),
    *((rows, rows * LONG + more) for rows in (2, 3, 8) for more in (-1, 0, 1, 1000)),
    (9, 8 * LONG + 17),
]
by_dtype = pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float32", "float64"])


@pytest.fixture
def threads():
    before = mg.get_num_threads()
    yield mg.set_num_threads
    mg.set_num_threads(before)


def assert_softmax_of(x):
    """Within what the roundings allow, the last of which is to a multiple of the least one."""
    got, wide = mg.softmax(mg.tensor(x), -1).numpy(), x.astype(np.longdouble)
    with np.errstate(invalid="ignore"):  # of infinite maxima
        want = special.softmax(wide, axis=-1)
        # x - max is rounded, and exp makes that a relative error of its size
        below = np.where(want > 0, wide.max(-1, keepdims=True) - wide, 0)
    bound = (below + 8) * np.finfo(x.dtype).eps * want + 1.5 * np.finfo(x.dtype).smallest_subnormal
    none = np.isnan(want)
    assert got.dtype == x.dtype
    np.testing.assert_array_equal(np.isnan(got), none)
    assert (np.abs(got - want) <= bound)[~none].all()


def assert_gradient_of(x, rng):
    leaf = mg.tensor(x, requires_grad=True)
    y, g = mg.softmax(leaf, -1), rng.normal(size=x.shape).astype(x.dtype)
    (got,) = mg.grad(y, leaf, mg.tensor(g))
    p = y.detach().numpy().astype(np.longdouble)
    want, sizes = p * (g - (g * p).sum(-1, keepdims=True)), np.abs(g) * p
    eps, least = np.finfo(x.dtype).eps, np.finfo(x.dtype).smallest_subnormal
    # the sum of g * y, as reduce.h has it, and three roundings more
    bound = p * (11 + math.log2(max(x.shape[-1] / 128, 1)) + 3) * sizes.sum(-1, keepdims=True)
    bound = (bound + 3 * np.abs(want) + sizes) * eps + least
    none = np.isnan(want)
    np.testing.assert_array_equal(np.isnan(got.numpy()), none)
    assert (np.abs(got.numpy() - want) <= bound)[~none].all()


@by_dtype
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_rows_about_as_long_as_those_made_in_pieces(shape, dtype, rng):
    x = (10 * rng.normal(size=shape)).astype(dtype)
    assert_softmax_of(x)
    assert_gradient_of(x, rng)


@by_dtype
@pytest.mark.parametrize("name", ROWS)
def test_long_rows_of_extremes(name, dtype, rng):
    x = ROWS[name](rng.normal(size=N), dtype).astype(dtype)
    assert_softmax_of(x)
    assert_gradient_of(x, rng)


@by_dtype
def test_long_rows_have_the_same_bits_for_any_number_of_threads(dtype, rng, threads):
    leaf = mg.tensor(rows_of_all_kinds(rng.normal(size=N), dtype).astype(dtype))
    one = mg.tensor((10 * rng.normal(size=40 * PIECE + 3)).astype(dtype))
    g = mg.tensor(rng.normal(size=one.shape).astype(dtype))
    results = []
    for count in (1, 2, 3):
        threads(count)
        x = one.detach().requires_grad_()
        y = mg.softmax(x, 0)
        made = mg.softmax(leaf[:3], 1), y.detach(), mg.grad(y, x, g)[0]
        results.append([t.numpy().tobytes() for t in made])
    assert results[0] == results[1] == results[2]


WITHOUT_MEMORY = """
import resource
import minigrad as mg

x = mg.zeros(2**24, dtype=mg.float64)
mg.empty_like(x)  # leaves its memory for the result
pages = int(open("/proc/self/statm").read().split()[0])
resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize(), resource.RLIM_INFINITY))
filled = []
try:
    while True:
        filled.append(bytearray(2**16))
except MemoryError:
    pass
for _ in range(2):
    try:
        mg.softmax(x, 0)
    except MemoryError as error:
        print(error)
resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY,) * 2)
assert mg.softmax(x, 0)[-1].item() == 2**-24
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the limit and what is used are Linux's")
def test_no_memory_for_what_is_known_of_pieces(fresh):
    told = f"[softmax] no memory for {3 * 8 * 2**24 // PIECE} bytes"
    assert fresh(WITHOUT_MEMORY).splitlines() == [told] * 2
