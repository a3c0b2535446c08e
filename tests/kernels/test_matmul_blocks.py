"""Matrix products of sizes that meet every way of blocking, between pages that must not be touched.

The elements are small whole numbers, so every order of summing gives the same bits.
"""

from __future__ import annotations

import ctypes
import mmap
import sys

import numpy as np
import oracle
import pytest

import minigrad as mg
import minigrad.nn.functional

PAGE = mmap.PAGESIZE
SIZES = [  # m, k, n: what is read where it lies, what is packed, and their edges
    *((m, k, n) for m in (1, 2, 13, 14, 15, 57) for k in (1, 17) for n in (1, 15, 16, 17, 33)),
    (28, 64, 96),
    (64, 700, 64),
    (65, 513, 127),
    (90, 1100, 40),
    (40, 1030, 330),
    (60, 512, 330),
    (90, 1024, 170),
    (129, 128, 129),
    (150, 151, 149),
    (140, 133, 192),
    (171, 700, 401),
    (345, 130, 259),
    (700, 70, 70),
    (100, 520, 2100),
    (500, 40, 400),
    (101, 190, 201),  # A read where it lies, B packed a sliver at a time, in one block of k and two
    (120, 300, 140),
    (130, 300, 700),
    (64, 128, 10),  # the last columns, together no whole vectors
    (20, 33, 26),
    (16, 128, 1024),  # rows of B that share a set of L1, few rows of A
    (15, 140, 1024),
    (66, 64, 1024),
    (513, 20, 1100),
    (1030, 65, 1031),
    (99, 51, 96),  # runs of tiles, whose steps are no multiple of four: in place, from a sliver
    (126, 131, 128),
    (64, 2048, 64),  # rows of A that are copied, and runs beside a B that crowds L1
    (120, 784, 256),  # a B beyond L2 that crowds it
    (60, 64, 256),  # no runs: a sliver of B in place would fill its sets of L1
    (259, 66, 192),  # such a B, packed for many rows of A
]


def guarded(values, columns_first=False, at_end=True):
    """The values in memory that begins or ends at a page which faults when touched."""
    count = -(-max(values.nbytes, 1) // PAGE)
    pages = mmap.mmap(-1, (count + 2) * PAGE)
    start = ctypes.addressof(ctypes.c_char.from_buffer(pages))
    libc = ctypes.CDLL(None)
    for guard in (start, start + (count + 1) * PAGE):
        assert libc.mprotect(ctypes.c_void_p(guard), PAGE, 0) == 0  # PROT_NONE
    offset = PAGE + (count * PAGE - values.nbytes if at_end else 0)
    flat = np.frombuffer(pages, values.dtype, values.size, offset)
    out = flat.reshape(values.T.shape).T if columns_first else flat.reshape(values.shape)
    out[...] = values
    return out


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs mprotect")
@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float32", "float64"])
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_reads_nothing_beyond_its_operands(size, dtype, rng):
    m, k, n = size
    a, b = (rng.integers(-9, 10, s).astype(dtype) for s in ((m, k), (k, n)))
    want = (a.astype(np.float64) @ b).astype(dtype)
    for a_turned in (False, True):
        for b_turned in (False, True):
            for at_end in (False, True):
                x, y = guarded(a, a_turned, at_end), guarded(b, b_turned, at_end)
                oracle.assert_same((mg.from_numpy(x) @ mg.from_numpy(y)).numpy() + 0, want + 0)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs mprotect")
@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float32", "float64"])
@pytest.mark.parametrize(
    "size",
    [(4, 4, 4), (6, 3, 8), (8, 8, 8), (13, 17, 31), (14, 64, 32), (14, 65, 16), (40, 30, 70)],
)
def test_stacks_of_small_products_read_nothing_beyond_their_operands(size, dtype, rng):
    m, k, n = size
    a, b = (rng.integers(-9, 10, (5, *s)).astype(dtype) for s in ((m, k), (k, n)))
    want = a @ b
    for b_turned in (False, True):
        for at_end in (False, True):
            x = mg.from_numpy(guarded(a, False, at_end))
            y = guarded(b.swapaxes(1, 2).copy() if b_turned else b, False, at_end)
            y = mg.from_numpy(y.swapaxes(1, 2) if b_turned else y)
            oracle.assert_same((x @ y).numpy() + 0, want + 0)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs mprotect")
@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float32", "float64"])
@pytest.mark.parametrize("step", [2, 3, -2], ids=str)
@pytest.mark.parametrize(
    "size", [(14, 33, 32), (57, 17, 33), (60, 300, 130), (129, 512, 97), (171, 700, 401)], ids=str
)
def test_elements_apart(size, step, dtype, rng):
    """Along rows, columns or both; what lies between is not used, nor what lies beyond read."""
    m, k, n = size
    a, b = (rng.integers(-9, 10, s).astype(dtype) for s in ((m, k), (k, n)))
    want = (a.astype(np.float64) @ b).astype(dtype)

    def apart(values, axes):
        index = tuple(slice(None, None, step if d in axes else 1) for d in range(2))
        shape = [(z - 1) * abs(step) + 1 if d in axes else z for d, z in enumerate(values.shape)]
        out = guarded(np.full(shape, np.nan, dtype))[index]
        out[...] = values
        return mg.from_numpy(out)

    for a_axes in ((), (0,), (1,), (0, 1)):
        for b_axes in ((), (0,), (1,), (0, 1)):
            got = (apart(a, a_axes) @ apart(b, b_axes)).numpy()
            oracle.assert_same(got + 0, want + 0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float32", "float64"])
@pytest.mark.parametrize("size", [(5, 9, 7), (40, 70, 33), (171, 300, 401)], ids=str)
def test_operands_whose_elements_share_memory(size, dtype, rng):
    m, k, n = size
    a, b = (rng.integers(-9, 10, s).astype(dtype) for s in ((m, k), (k, n)))
    for a_one in (a[:1, :1], a[:1], a[:, :1]):
        shared = np.broadcast_to(a_one, a.shape)
        oracle.assert_same((mg.from_numpy(shared) @ mg.from_numpy(b)).numpy() + 0, shared @ b + 0)
    for b_one in (b[:1, :1], b[:1], b[:, :1]):
        shared = np.broadcast_to(b_one, b.shape)
        oracle.assert_same((mg.from_numpy(a) @ mg.from_numpy(shared)).numpy() + 0, a @ shared + 0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float32", "float64"])
@pytest.mark.parametrize("size", [(60, 40, 60), (171, 700, 401), (345, 130, 259)], ids=str)
def test_nan_and_infinity_stay_in_their_row_and_column(size, dtype, rng):
    m, k, n = size
    a, b = (rng.integers(-9, 10, s).astype(dtype) for s in ((m, k), (k, n)))
    a[m - 1, k - 1], a[m // 2, 0] = np.nan, np.inf
    b[0, n - 1] = -np.inf
    with np.errstate(invalid="ignore"):
        want = a.astype(np.float64) @ b
    got = (mg.tensor(a) @ mg.tensor(b)).numpy()
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float32", "float64"])
@pytest.mark.parametrize(
    "size", [(170, 300, 170), (171, 700, 401), (1000, 40, 90), *SIZES[-2:]], ids=str
)
def test_the_bits_depend_on_neither_threads_nor_layout(size, dtype, rng):
    m, k, n = size
    a, b = rng.normal(size=(m, k)).astype(dtype), rng.normal(size=(k, n)).astype(dtype)
    x, y = mg.from_numpy(a), mg.from_numpy(b)
    threads = mg.get_num_threads()
    try:
        mg.set_num_threads(1)
        want = (x @ y).numpy()
        mg.set_num_threads(3)
        oracle.assert_same((x @ y).numpy(), want)
    finally:
        mg.set_num_threads(threads)
    oracle.assert_same((mg.from_numpy(a.T.copy()).T @ y).numpy(), want)
    oracle.assert_same((x @ mg.from_numpy(b.T.copy()).T).numpy(), want)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs mprotect")
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
@pytest.mark.parametrize("size", SIZES[::3] + SIZES[-10:], ids=str)
def test_linear_adds_its_bias_in_the_product(size, dtype, rng):
    m, k, n = size
    x, w, bias = (rng.integers(-9, 10, s).astype(dtype) for s in ((m, k), (n, k), (n,)))
    want = (x.astype(np.float64) @ w.T + bias).astype(dtype)
    for turned in (False, True):
        operands = [mg.from_numpy(guarded(a, turned)) for a in (x, w, bias)]
        got = mg.nn.functional.linear(*operands)
        oracle.assert_same(got.numpy() + 0, want + 0)


@pytest.mark.parametrize("batch", [(3, 2), (3, 0)], ids=str)
def test_linear_of_nothing_is_its_bias(batch):
    x, w, bias = mg.ones(*batch, 0), mg.ones(4, 0), mg.tensor([1.0, 2.0, 3.0, 4.0])
    got = mg.nn.functional.linear(x, w, bias)
    oracle.assert_same(got.numpy(), np.broadcast_to(bias.numpy(), (*batch, 4)))
