"""Storage dtypes: what is kept, moved and converted in them, and what arithmetic makes of them."""

from __future__ import annotations

import copy
import gc
import itertools
import pickle
import warnings

import numpy as np
import pytest
from samples import CATALOGUE

import minigrad as mg
from minigrad.runtime.native import call, kernels, lib
from minigrad.tape.tensor_base import wrap

pytestmark = pytest.mark.usefixtures("restore_random")  # layers draw their weights

INTEGERS = [mg.uint8, mg.int8, mg.int16, mg.int32]
HALVES = [mg.float16, mg.bfloat16]
STORAGE = INTEGERS + HALVES
WIDE = [mg.bool, mg.int64, mg.float32, mg.float64]
SHOWN = INTEGERS + [mg.float16]  # that NumPy has too

every_dtype = pytest.mark.parametrize("dtype", STORAGE, ids=lambda d: d.name)
every_shown = pytest.mark.parametrize("dtype", SHOWN, ids=lambda d: d.name)


def bits_of(x):
    """The memory of a tensor of halves as unsigned integers."""
    return x.view(mg.int16).numpy().view(np.uint16)


def halves(bits, dtype):
    """The tensor of halves with these bits."""
    return mg.tensor(np.asarray(bits, np.uint16).view(np.int16)).view(dtype)


def values(dtype, *shape):
    """Small numbers, different from one to the next, that every dtype has."""
    return np.arange(np.prod(shape, dtype=int)).reshape(shape) % 97


def stored(dtype, *shape):
    return mg.tensor(values(dtype, *shape)).to(dtype)


def same(x, array):
    """Has the tensor these values?"""
    return x.shape == np.shape(array) and np.array_equal(x.to(mg.float64).numpy(), array)


# ---- conversions ---------------------------------------------------------------------------------

ALL_BITS = np.arange(2**16).astype(np.uint16)


def bfloat16_value(bits):
    return (np.asarray(bits, np.uint32) << 16).view(np.float32)


def bfloat16_bits(x):
    """The bits of floats rounded to nearest, ties to even, in exact arithmetic of integers."""
    bits = np.asarray(x, np.float32).view(np.uint32).astype(np.uint64)
    rest, kept = bits & 0xFFFF, bits >> 16
    up = (rest > 0x8000) | ((rest == 0x8000) & (kept & 1 == 1))
    return (kept + up).astype(np.uint16)


def test_every_float16_as_a_float():
    mine, theirs = halves(ALL_BITS, mg.float16), ALL_BITS.view(np.float16)
    for dtype in (np.float32, np.float64):
        got, want = mine.to(dtype).numpy(), theirs.astype(dtype)
        np.testing.assert_array_equal(got, want)
        assert np.array_equal(np.signbit(got), np.signbit(want))
    assert np.array_equal(mine.to(mg.bool).numpy(), theirs.astype(bool))


def test_every_bfloat16_as_a_float():
    mine, theirs = halves(ALL_BITS, mg.bfloat16), bfloat16_value(ALL_BITS)
    assert np.array_equal(mine.float().numpy().view(np.uint32), theirs.view(np.uint32))
    with np.errstate(invalid="ignore"):  # a signalling NaN
        np.testing.assert_array_equal(mine.double().numpy(), theirs.astype(np.float64))


@pytest.mark.parametrize("dtype", HALVES, ids=lambda d: d.name)
@pytest.mark.parametrize("through", [mg.float32, mg.float64], ids=lambda d: d.name)
def test_every_half_comes_back(dtype, through):
    mine = halves(ALL_BITS, dtype)
    back = bits_of(mine.to(through).to(dtype))
    nan = np.isnan(mine.float().numpy())
    assert np.array_equal(back[~nan], ALL_BITS[~nan])
    assert np.isnan(halves(back[nan], dtype).float().numpy()).all()
    assert np.array_equal(back[nan] & 0x8000, ALL_BITS[nan] & 0x8000)


def between_halves(dtype):
    """Doubles at, just below and just above each half and the middle of each two neighbours."""
    finite = np.sort(np.unique(halves(ALL_BITS, dtype).double().numpy()))
    finite = finite[np.isfinite(finite)]
    spots = np.concatenate([finite, (finite[1:] + finite[:-1]) / 2])
    largest = finite[-1] + (finite[-1] - finite[-2]) / 2  # from here on it is infinite
    spots = np.concatenate([spots, [largest, -largest, 1e300, -1e300, np.inf, -np.inf, 5e-324]])
    return np.concatenate([spots, np.nextafter(spots, np.inf), np.nextafter(spots, -np.inf)])


def test_floats_are_rounded_once_to_float16():
    x = between_halves(mg.float16)
    with np.errstate(all="ignore"):
        single = x.astype(np.float32)
        single = np.concatenate([single, np.nextafter(single, np.float32(np.inf))])
        for given in (x, single):
            want = given.astype(np.float16)
            got = bits_of(mg.tensor(given).to(mg.float16)).view(np.float16)
            np.testing.assert_array_equal(got, want)
            assert np.array_equal(np.signbit(got), np.signbit(want))


def test_floats_are_rounded_once_to_bfloat16():
    x = between_halves(mg.bfloat16)
    with np.errstate(all="ignore"):
        single = x.astype(np.float32)
    single = single[~np.isnan(single)]
    assert np.array_equal(bits_of(mg.tensor(single).bfloat16()), bfloat16_bits(single))
    got = halves(bits_of(mg.tensor(x).bfloat16()), mg.bfloat16).double().numpy()
    grid = bfloat16_value(ALL_BITS[:0x7F81]).astype(np.float64)  # by growing bits, to infinity
    grid[-1] = 2.0**128  # which that stands for in rounding
    size = np.minimum(np.abs(x), grid[-1])
    place = np.clip(np.searchsorted(grid, size), 1, len(grid) - 1)
    below, above = size - grid[place - 1], grid[place] - size
    down = np.where(below == above, place % 2 == 1, below < above)  # the even of the two
    grid[-1] = np.inf
    assert np.array_equal(got, np.copysign(grid[place - down], x))


def test_random_bits_as_halves():
    rng = np.random.default_rng(0)
    single = rng.integers(0, 2**32, 300_000, np.uint32).view(np.float32)
    double = rng.integers(0, 2**64, 300_000, np.uint64).view(np.float64)
    with np.errstate(all="ignore"):
        for x in (single, double):
            got = bits_of(mg.tensor(x).half()).view(np.float16)
            np.testing.assert_array_equal(got, x.astype(np.float16))
    ordinary = ~np.isnan(single)
    assert np.array_equal(
        bits_of(mg.tensor(single[ordinary]).bfloat16()), bfloat16_bits(single[ordinary])
    )


NUMBERS = [0, 1, -1, 2, 0.5, -0.75, 1.9, 127, 128, -128, -129, 255, 256, 300, 32767, 32768, -40000]
NUMBERS += [65504, 65519, 65520, 70000, 2**24 + 1, 2**31 - 1, 2**31, 3e9, -3e9, 1e10, 2.0**63]
NUMBERS += [np.inf, -np.inf, np.nan, -0.0, 1e-8, 3e-5]


@pytest.mark.parametrize(
    ("was", "to"), list(itertools.product(SHOWN + WIDE, repeat=2)), ids=lambda d: d.name
)
def test_conversions_are_numpys(was, to):
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        x = np.array(NUMBERS, np.float64).astype(was.name)
        if (to is mg.int64 and was is mg.float64) or (to is mg.uint8 and was.is_floating_point):
            x = x[np.abs(x) < 2.0**31]  # beyond, C leaves it open
        want = np.resize(x, 1000).astype(to.name)
        for array in (x, x[:0], x[::-2], x[:1].reshape(()), np.resize(x, 1000)):
            got = mg.from_numpy(array).to(to)
            assert got.dtype is to
            np.testing.assert_array_equal(got.numpy(), array.astype(to.name))
    assert want.dtype == to.name


@pytest.mark.parametrize("to", SHOWN + WIDE, ids=lambda d: d.name)
def test_conversions_of_bfloat16_are_those_of_its_floats(to):
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        x = mg.tensor(np.array(NUMBERS)).bfloat16()
        assert x.to(to).dtype is to
        np.testing.assert_array_equal(x.to(to).numpy(), x.float().to(to).numpy())
    whole = mg.arange(-100, 100).to(to)
    np.testing.assert_array_equal(
        whole.bfloat16().float().numpy(), whole.float().bfloat16().float().numpy()
    )


def test_long_conversions_on_all_threads():
    x = np.random.default_rng(1).normal(size=(700, 1003)).astype(np.float32) * 100
    for array in (x, x.T, x[::2, ::-1], np.broadcast_to(x[:1], (900, 1003))):
        for dtype in SHOWN:
            with np.errstate(invalid="ignore"):
                wanted = array.astype(np.int32).astype(dtype.name)
            if dtype is mg.float16:
                wanted = array.astype(np.float16)
            got = mg.tensor(array).to(dtype)
            assert np.array_equal(got.numpy(), wanted)
            assert np.array_equal(got.float().numpy(), wanted.astype(np.float32))


# ---- in and out ----------------------------------------------------------------------------------


@every_shown
def test_numpys_memory_is_shared_both_ways(dtype):
    array = values(dtype, 3, 4).astype(dtype.name)
    x = mg.from_numpy(array)
    assert x.dtype is dtype
    array[0, 0] = 7
    assert x[0, 0].item() == 7
    x[1, 1] = 9
    assert array[1, 1] == 9
    for shown in (x.numpy(), np.asarray(x), x.__array__()):
        assert shown.dtype == array.dtype
        assert np.shares_memory(shown, array)
    assert mg.as_tensor(array).dtype is dtype
    assert not np.shares_memory(mg.tensor(array).numpy(), array)
    assert np.array_equal(mg.tensor(array).numpy(), array)


@every_shown
def test_layouts_of_numpys(dtype):
    whole = values(dtype, 6, 8).astype(dtype.name)
    for array in (whole.T, whole[::2, ::-1], whole[:0], whole[2, 3], whole[1:5, 2:3], whole[::-1]):
        array = np.asarray(array)
        for x in (mg.from_numpy(array), mg.tensor(array), mg.asarray(array)):
            assert x.dtype is dtype
            assert x.shape == array.shape
            assert np.array_equal(x.numpy(), array)
    whole.flags.writeable = False
    x = mg.from_numpy(whole)
    with pytest.raises(ValueError, match="read-only"):
        x[0] = 1
    assert not x.numpy().flags.writeable


@every_shown
def test_the_other_byte_order_is_copied_not_shared(dtype):
    if dtype.itemsize == 1:
        return
    swapped = values(dtype, 5).astype(np.dtype(dtype.name).newbyteorder(">"))
    with pytest.raises(ValueError, match=r"\[from_numpy\].*byte-swapped"):
        mg.from_numpy(swapped)
    assert mg.tensor(swapped).dtype is dtype
    assert np.array_equal(mg.tensor(swapped).numpy(), values(dtype, 5))


def test_bfloat16_and_numpy():
    x = mg.tensor([1.0, 2.5]).bfloat16()
    for action in (x.numpy, lambda: np.asarray(x)):
        with pytest.raises(TypeError, match=r"\[numpy\] NumPy has no bfloat16: use x\.float\(\)"):
            action()
    assert x.float().numpy().tolist() == x.tolist() == [1.0, 2.5]
    assert x.view(mg.int16).numpy().view(np.uint16).tolist() == [0x3F80, 0x4020]
    assert mg.tensor([x, x]).dtype is mg.bfloat16
    assert mg.tensor([x, x]).tolist() == [[1.0, 2.5]] * 2


def test_arrays_of_ml_dtypes():
    ml = pytest.importorskip("ml_dtypes")
    array = np.arange(6).reshape(2, 3).astype(ml.bfloat16)
    for given in (array, array.T, array[:, ::2], array[:0]):
        for x in (mg.tensor(given), mg.from_numpy(given)):
            assert x.dtype is mg.bfloat16
            assert same(x, given.astype(np.float64))
    mg.from_numpy(array)[0, 0] = 5
    assert array[0, 0] == 5


def test_what_makes_them():
    assert mg.tensor([1, 2], dtype=mg.int32).dtype is mg.int32
    assert mg.tensor([1.5], dtype=mg.half).tolist() == [1.5]
    assert mg.tensor([True], dtype=mg.uint8).tolist() == [1]
    assert mg.tensor([0.1], dtype="bfloat16").item() == 0.10009765625
    assert mg.tensor(np.uint8(3)).dtype is mg.uint8
    assert mg.tensor([np.int16(3), np.int16(4)]).dtype is mg.int16
    assert (mg.half, mg.short, mg.int) == (mg.float16, mg.int16, mg.int32)
    assert (mg.float, mg.double, mg.long) == (mg.float32, mg.float64, mg.int64)


@every_dtype
def test_filled_and_counted(dtype):
    for made, want in (
        (mg.zeros(2, 3, dtype=dtype), np.zeros((2, 3))),
        (mg.ones(3, dtype=dtype), np.ones(3)),
        (mg.full((2,), 7, dtype=dtype), [7, 7]),
        (mg.arange(5, dtype=dtype), np.arange(5)),
        (mg.arange(0, 10, 3, dtype=dtype), [0, 3, 6, 9]),
        (mg.linspace(0, 4, 5, dtype=dtype), np.arange(5)),
        (mg.eye(3, dtype=dtype), np.eye(3)),
        (mg.zeros_like(mg.ones(2), dtype=dtype), [0, 0]),
        (mg.ones_like(stored(dtype, 2)), [1, 1]),
        (stored(dtype, 2).new_full((2,), 3), [3, 3]),
        (mg.zeros(0, dtype=dtype), np.zeros(0)),
        (mg.zeros((), dtype=dtype), 0),
    ):
        assert made.dtype is dtype
        assert same(made, want)
    assert mg.empty(2, dtype=dtype).dtype is dtype
    assert (dtype.itemsize, stored(dtype, 3).nbytes) == (dtype.itemsize, 3 * dtype.itemsize)


def test_random_numbers():
    for dtype in HALVES:
        x = mg.rand(5000, dtype=dtype)
        assert x.dtype is dtype
        assert bool((x >= 0).all())
        assert bool((x < 1).all())
        assert mg.randn(3, dtype=dtype).dtype is dtype
        assert mg.zeros(3, dtype=dtype).normal_().dtype is dtype
    x = mg.randint(0, 256, (2000,), dtype=mg.uint8)
    assert x.dtype is mg.uint8
    assert x.amax().item() == 255
    with pytest.raises(OverflowError, match=r"\[randint\] 299 does not fit in uint8"):
        mg.randint(0, 300, (2,), dtype=mg.uint8)


@every_dtype
def test_pickles_and_copies(dtype):
    x = stored(dtype, 2, 3)
    for made in (pickle.loads(pickle.dumps(x)), copy.deepcopy(x), copy.copy(x), x.clone()):
        assert made.dtype is dtype
        assert same(made, values(dtype, 2, 3))
    assert pickle.loads(pickle.dumps(dtype)) is dtype
    assert same(pickle.loads(pickle.dumps(x.T)), values(dtype, 2, 3).T)


@every_dtype
def test_how_they_are_shown(dtype):
    x = stored(dtype, 3)
    numbers = "[0., 1., 2.]" if dtype.is_floating_point else "[0, 1, 2]"
    assert repr(x) == f"tensor({numbers}, dtype=minigrad.{dtype.name})"
    assert repr(mg.zeros(0, dtype=dtype)) == f"tensor([], shape=(0,), dtype=minigrad.{dtype.name})"
    assert dtype.name in x._repr_html_()
    assert x.tolist() == [0, 1, 2]
    assert [type(v) for v in x.tolist()] == [float if dtype.is_floating_point else int] * 3
    assert type(x[1].item()) is (float if dtype.is_floating_point else int)
    assert bool(x[1])
    if dtype.is_floating_point:
        with pytest.raises(TypeError, match="cannot be an index"):
            range(x[2])
    else:
        assert list(range(x[2])) == [0, 1]


# ---- moved ---------------------------------------------------------------------------------------

MOVES = {
    "slice": lambda x: x[1:, ::2],
    "backwards": lambda x: x.flip(0) if hasattr(x, "clone") else x[::-1],
    "number": lambda x: x[1, 2],
    "newaxis": lambda x: x[:, None],
    "reshape": lambda x: x.reshape(2, -1),
    "transposed": lambda x: x.T.reshape(-1),
    "swapped": lambda x: x.swapaxes(0, 1),
    "squeeze": lambda x: x[:, :1].squeeze(1),
    "positions": lambda x: x[[2, 0, 2]],
    "columns": lambda x: x[:, [3, 1]],
    "one each": lambda x: x[[0, 1], [1, 2]],
    "nothing": lambda x: x[:0],
    "diagonal": lambda x: x.diagonal(),
    "ravel": lambda x: x.ravel(),
    "repeat": lambda x: x.T.T.reshape(-1)[1:-1],
}


@every_dtype
@pytest.mark.parametrize("move", MOVES)
@pytest.mark.parametrize("shape", [(4, 6), (40, 66), (150, 130)], ids=str)
def test_moves_are_numpys(dtype, move, shape):
    got, want = MOVES[move](stored(dtype, *shape)), MOVES[move](values(dtype, *shape))
    assert got.dtype is dtype
    assert same(got, want)
    assert same(got.contiguous(), want)
    assert same(got.clone(), want)


@every_dtype
def test_rows_and_repeats_of_every_length(dtype):
    """Copies by rows and by elements, between layouts, about the sizes at which they are cut."""
    for n in (1, 2, 3, 7, 8, 15, 16, 17, 31, 33, 63, 64, 65, 127, 129, 300):
        a, x = values(dtype, 5, n + 3), stored(dtype, 5, n + 3)
        assert same(x[:, 1 : n + 1].contiguous(), a[:, 1 : n + 1])
        assert same(x.T.contiguous(), a.T)
        assert same(x[:, :1].expand(5, n).contiguous(), np.repeat(a[:, :1], n, 1))
        assert same(x[:1, :n].expand(9, n).contiguous(), np.repeat(a[:1, :n], 9, 0))
        assert same(x[[3, 0, 3]][:, :n], a[[3, 0, 3]][:, :n])
        assert same(x.tile(2, 1), np.tile(a, (2, 1)))


@every_dtype
def test_joined_and_chosen(dtype):
    a, b = values(dtype, 3, 4), 1 + values(dtype, 3, 4)
    x, y = stored(dtype, 3, 4), mg.tensor(b).to(dtype)
    mask = a % 3 == 0
    index = np.array([[1, 0, 2, 1]])
    for got, want in (
        (mg.cat([x, y]), np.concatenate([a, b])),
        (mg.cat([x, y], 1), np.concatenate([a, b], 1)),
        (mg.stack([x, y], -1), np.stack([a, b], -1)),
        (mg.where(mg.tensor(mask), x, y), np.where(mask, a, b)),
        (mg.where(mg.tensor(mask), x, 0), np.where(mask, a, 0)),
        (mg.where(mg.tensor(mask[:1]), 5, x[:, :1]), np.where(mask[:1], 5, a[:, :1])),
        (x[mg.tensor(mask)], a[mask]),
        (x.masked_select(mg.tensor(mask)), a[mask]),
        (x.masked_fill(mg.tensor(mask), 3), np.where(mask, 3, a)),
        (x.index_select(1, mg.tensor([2, 0])), a[:, [2, 0]]),
        (x.gather(0, mg.tensor(index)), np.take_along_axis(a, index, 0)),
        (x.take(mg.tensor([3, 5])), a.ravel()[[3, 5]]),
        (mg.roll(x, 1, 0), np.roll(a, 1, 0)),
        (mg.tril(x), np.tril(a)),
        (mg.nn.functional.pad(x, (1, 2)), np.pad(a, ((0, 0), (1, 2)))),
        (mg.sort(x, 1, descending=True).values, np.sort(a, 1)[:, ::-1]),
        (x.topk(2, 1).values, np.sort(a, 1)[:, :-3:-1]),
        (x.unfold(1, 2, 1), np.stack([a[:, :-1], a[:, 1:]], -1)),
        (x.scatter(0, mg.tensor(index), y), None),
    ):
        assert got.dtype is dtype
        assert want is None or same(got, want)


@every_dtype
def test_written_into(dtype):
    a, x = values(dtype, 4, 5), stored(dtype, 4, 5)
    mask = a % 2 == 0
    for key, value in (
        ((0, 0), 9),
        (slice(1, 3), 4),
        ((slice(None), 2), [1, 2, 3, 4]),
        ([0, 2], 6),
        (mask, 8),
    ):
        a[key] = value
        x[mg.tensor(key) if key is mask else key] = value
        assert same(x, a)
    x[1] = mg.tensor([1.0, 2, 3, 4, 5])
    assert x[1].tolist() == [1, 2, 3, 4, 5]
    assert same(x.copy_(mg.ones(5)), np.ones((4, 5)))
    assert same(x.fill_(3), np.full((4, 5), 3))
    assert same(x.zero_(), np.zeros((4, 5)))
    view = x[:, 1:3]
    view += 2
    view *= 3
    assert x.dtype is dtype
    assert x[0].tolist() == [0, 6, 6, 0, 0]
    assert (
        x.index_put_((mg.tensor([0]), mg.tensor([0])), mg.tensor([1]).to(dtype))[0, 0].item() == 1
    )


def test_narrow_integers_wrap_around_in_place_as_in_pytorch():
    x = mg.tensor([250], dtype=mg.uint8)
    x += 10
    assert (x.tolist(), x.dtype) == ([4], mg.uint8)
    with pytest.raises(TypeError, match=r"\[add\] in place, a float32 result .* into uint8"):
        x += 0.5


@every_dtype
def test_views_as_other_dtypes(dtype):
    x = stored(dtype, 2, 3)
    for other in [d for d in STORAGE + WIDE if d.itemsize == dtype.itemsize and d is not mg.bool]:
        seen = x.view(other)
        assert seen.dtype is other
        assert same(seen.view(dtype), values(dtype, 2, 3))
    other = mg.float64
    with pytest.raises(ValueError, match=rf"\[view\] elements of {dtype.name} have"):
        x.view(other)
    bits = mg.tensor([1.0, -2.0]).view(mg.int32)
    assert bits.tolist() == [0x3F800000, -(2**30)]
    assert bits.view(dtype=np.float32).tolist() == bits.view(np.float32).tolist() == [1, -2]
    bits[0] = 0x40000000
    with pytest.raises(RuntimeError, match=r"\[view\] bits have no gradient"):
        mg.ones(2, requires_grad=True).view(mg.int32)
    with pytest.raises(ValueError, match=r"\[view\] the bits of a bool"):
        mg.zeros(2, dtype=mg.uint8).view(mg.bool)
    assert x.view(3, 2).shape == x.view((6,)).reshape(3, 2).shape == (3, 2)


# ---- computed with -------------------------------------------------------------------------------


@every_dtype
def test_arithmetic_is_wide(dtype):
    x = stored(dtype, 4)
    wide = x.to(dtype.wide)
    for act in (
        lambda t: t + t,
        lambda t: t * 2,
        lambda t: 3 - t,
        lambda t: t / 255,
        lambda t: -t,
        lambda t: t**2,
        lambda t: t == 2,
        lambda t: t < 2.5,
        lambda t: t.sum(),
        lambda t: t.sum(0),
        lambda t: t.max(),
        lambda t: t.cumsum(0),
        lambda t: t.argmax(),
        lambda t: t @ mg.ones(4, dtype=dtype.wide),
        lambda t: t.exp(),
        lambda t: t.clamp(1, 2),
        lambda t: t + mg.ones(4),
        lambda t: mg.ones(4, dtype=mg.float64) * t,
        lambda t: mg.ones(2, 4, dtype=mg.bool) * t,
        lambda t: np.ones(4, np.float32) * t,
    ):
        got, want = act(x), act(wide)
        assert got.dtype is want.dtype
        assert got.tolist() == want.tolist()
    assert (x + x).dtype is dtype.wide
    assert (x / 255).dtype is mg.float32


def test_a_storage_dtype_that_is_asked_for():
    x = mg.tensor([1.0, 2.0, 4.0])
    for act in (mg.sum, mg.mean, mg.prod, mg.nansum, mg.nanmean, mg.norm, mg.linalg.vector_norm):
        assert act(x, dtype=mg.half).dtype is mg.half
        assert act(x, dtype=mg.half).item() == act(x).half().item()
    for act in (mg.cumsum, mg.cumprod, mg.softmax, mg.log_softmax):
        assert act(x, 0, dtype=mg.bfloat16).tolist() == act(x, 0).bfloat16().tolist()
    assert mg.sum(mg.tensor([200, 100]), dtype=mg.int32).dtype is mg.int32
    for found in (mg.searchsorted(x, x, out_int32=True), mg.bucketize(x, x, out_int32=True)):
        assert (found.dtype, found.tolist()) == (mg.int32, [0, 1, 2])
    assert mg.searchsorted(x.byte(), 300).item() == 3


SKIPPED = {  # which make constants of the inputs' dtype, or of their NumPy arrays
    ("quantile", 1),
    ("nanquantile", 1),
    ("nn.functional.batch_norm", 0),
    ("nn.functional.batch_norm", 1),
    ("nn.functional.instance_norm", 1),
}


@every_dtype
def test_every_operation_takes_them(dtype):
    """As it takes the same values in the dtype that is computed in; or it moves them."""
    failed = []
    for name, samples in CATALOGUE.items():
        for k, sample in enumerate(samples):
            if (name, k) in SKIPPED:
                continue
            given = [mg.tensor(x).to(dtype) for x in sample.inputs()]
            both = []
            for inputs in (given, [x.to(dtype.wide) for x in given]):
                try:
                    both.append(sample.called(*sample.prepared(*inputs)))
                except Exception as error:
                    both.append(type(error))
            if isinstance(both[1], type):
                if both[0] is not both[1]:
                    failed.append((name, k, both))
                continue
            for got, want in zip(both[0], both[1], strict=True):
                if not isinstance(want, mg.Tensor):
                    continue
                kept = want.dtype is dtype.wide and got.dtype is dtype
                if kept:  # rounded once, where a number was put in
                    want = want.to(dtype)
                a, b = got.double().numpy(), want.double().numpy()
                if not (got.dtype is want.dtype and np.allclose(a, b, 1e-5, 1e-6, equal_nan=True)):
                    failed.append((name, k, got.dtype, want.dtype))
    assert not failed


@every_dtype
def test_constants_beside_what_has_a_gradient(dtype):
    x = mg.tensor([1.0, 2.0, 3.0], requires_grad=True)
    c = stored(dtype, 3)
    (x * c + c).sum().backward()
    assert x.grad.tolist() == [0, 1, 2]
    w = mg.ones(3, 2, requires_grad=True)
    mg.matmul(stored(dtype, 2, 3), w).sum().backward()
    assert w.grad.tolist() == [[3, 3], [5, 5], [7, 7]]
    y = mg.ones(3, requires_grad=True)
    mg.where(c > 1, y, c).sum().backward()
    assert y.grad.tolist() == [0, 0, 1]
    z = mg.ones(3, requires_grad=True)
    (z / (c + 1)).sum().backward()
    assert z.grad.tolist() == pytest.approx([1, 1 / 2, 1 / 3])
    c.fill_(1)  # what was saved was a copy
    out = mg.nn.functional.linear(stored(dtype, 2, 3), mg.ones(4, 3, requires_grad=True))
    assert out.requires_grad
    joined = mg.cat([mg.ones(1, requires_grad=True), c])
    assert (joined.dtype, joined.requires_grad) == (mg.float32, True)


def test_values_of_several_dtypes_are_held_in_one_as_in_pytorch():
    torch = pytest.importorskip("torch")
    both = [(a, b) for a in STORAGE + WIDE for b in STORAGE + WIDE]
    for a, b in both:
        ta, tb = getattr(torch, a.name), getattr(torch, b.name)
        held = mg.promote_types(a, b)
        assert held.name == str(torch.promote_types(ta, tb)).removeprefix("torch.")
        assert mg.can_cast(a, b) == torch.can_cast(ta, tb)
        assert mg.cat([mg.ones(1, dtype=a), mg.ones(1, dtype=b)]).dtype is held
        assert mg.stack([mg.ones(1, dtype=a), mg.ones(1, dtype=b)]).dtype is held
        assert mg.where(mg.tensor([True]), mg.ones(1, dtype=a), mg.ones(1, dtype=b)).dtype is held
        wide = mg.result_type(mg.ones(1, dtype=a), mg.ones(1, dtype=b))
        assert wide is (mg.ones(1, dtype=a) * mg.ones(1, dtype=b)).dtype
        assert wide is mg.result_type(a, b)
    for a in STORAGE + WIDE:
        for number in (True, 2, 2.5):
            x = mg.ones(2, dtype=a)
            assert mg.result_type(x, number) is (x * number).dtype is mg.result_type(number, a)


def test_limits():
    torch = pytest.importorskip("torch")
    for dtype in [*INTEGERS, mg.int64]:
        mine, theirs = mg.iinfo(dtype), torch.iinfo(getattr(torch, dtype.name))
        for name in ("bits", "max", "min", "dtype"):
            assert getattr(mine, name) == getattr(theirs, name)
    assert repr(mg.iinfo(mg.short)) == "iinfo(min=-32768, max=32767, dtype=int16)"
    for dtype in [*HALVES, mg.float32, mg.float64]:
        mine, theirs = mg.finfo(dtype), torch.finfo(getattr(torch, dtype.name))
        for name in ("bits", "max", "min", "eps", "tiny", "smallest_normal", "resolution", "dtype"):
            assert getattr(mine, name) == getattr(theirs, name)
        assert repr(mine) == repr(theirs)
    assert mg.finfo().dtype == "float32"
    with pytest.raises(TypeError, match=r"\[finfo\] int8 holds no floats: use iinfo"):
        mg.finfo(mg.int8)
    with pytest.raises(TypeError, match=r"\[iinfo\] bool holds no integers"):
        mg.iinfo(bool)
    assert mg.is_floating_point(mg.ones(1, dtype=mg.half))
    assert not mg.is_floating_point(mg.ones(1, dtype=mg.short))
    assert (mg.uint8.is_signed, mg.int8.is_signed, mg.half.is_signed) == (False, True, True)
    assert mg.result_type(True, 2) is mg.int64
    with pytest.raises(ValueError, match=r"\[result_type\] needs"):
        mg.result_type()
    with pytest.raises(TypeError, match=r"\[result_type\] expected"):
        mg.result_type(object())


# ---- as indices, masks and targets ---------------------------------------------------------------


@pytest.mark.parametrize("dtype", [mg.int8, mg.int16, mg.int32], ids=lambda d: d.name)
def test_as_indices(dtype):
    a = np.arange(12.0).reshape(4, 3)
    x, i = mg.tensor(a), mg.tensor([2, 0, -1]).to(dtype)
    n = i.to(mg.int64)
    assert same(x[i], a[[2, 0, -1]])
    assert same(x[i, 1], a[[2, 0, -1], 1])
    assert same(x[:, i], a[:, [2, 0, -1]])
    assert same(x[i.numpy()], a[[2, 0, -1]])
    assert same(x[i[0]], a[2])
    assert same(x.index_select(0, n.abs().to(dtype)), a[[2, 0, 1]])
    assert same(x.gather(0, i[None].abs()), np.take_along_axis(a, np.array([[2, 0, 1]]), 0))
    x[i] = 0.0
    assert x[2].tolist() == [0, 0, 0]
    table = mg.ones(4, 2, requires_grad=True)
    mg.nn.functional.embedding(i.abs(), table).sum().backward()
    assert table.grad[:, 0].tolist() == [1, 1, 1, 0]
    assert mg.nn.functional.one_hot(i.abs()).tolist() == [[0, 0, 1], [1, 0, 0], [0, 1, 0]]
    assert mg.bincount(i.abs()).tolist() == [1, 1, 1]
    assert mg.repeat_interleave(mg.arange(3), i.abs()).tolist() == [0, 0, 2]
    assert [10, 20, 30][i[0]] == 30


def test_bytes_as_masks():
    x, mask = mg.arange(4.0), mg.tensor([1, 0, 2, 0], dtype=mg.uint8)
    assert x[mask].tolist() == x[mask.numpy()].tolist() == [0, 2]
    assert mg.where(mask, x, -1.0).tolist() == [0, -1, 2, -1]
    x[mask] = 9.0
    assert x.tolist() == [9, 1, 9, 3]
    assert mg.index_put(x, [mask], mg.tensor(5.0)).tolist() == [5, 1, 5, 3]
    assert x[[np.uint8(1), np.uint8(2)]].tolist() == [1, 9]  # a list is one of positions
    assert mask.bool().tolist() == [True, False, True, False]
    assert mask.nonzero().tolist() == [[0], [2]]
    with pytest.raises(TypeError, match="the mask must be bool, not uint8"):
        x.masked_fill(mask, 0.0)


@pytest.mark.parametrize("dtype", INTEGERS, ids=lambda d: d.name)
def test_as_class_targets(dtype):
    x = mg.randn(3, 4, requires_grad=True)
    t = mg.tensor([1, 3, 0])
    f = mg.nn.functional
    for loss in (
        f.cross_entropy,
        lambda x, t: f.nll_loss(x.log_softmax(1), t),
        f.multi_margin_loss,
    ):
        assert loss(x, t.to(dtype)).item() == loss(x, t).item()
        (g,), (h,) = mg.grad(loss(x, t.to(dtype)), [x]), mg.grad(loss(x, t), [x])
        assert g.tolist() == h.tolist()


def test_images():
    image = np.random.default_rng(0).integers(0, 256, (2, 5, 5, 3), np.uint8)
    x = mg.from_numpy(image).permute(0, 3, 1, 2)
    got = x / 255
    assert np.array_equal(got.numpy(), image.transpose(0, 3, 1, 2).astype(np.float32) / 255)
    assert np.array_equal((x.float() / 255).numpy(), got.numpy())
    out = mg.nn.Conv2d(3, 2, 3)(got)
    assert out.shape == (2, 2, 3, 3)
    assert x.float().mean().item() == pytest.approx(image.mean(), rel=1e-6)


# ---- refused -------------------------------------------------------------------------------------


def test_halves_do_not_train():
    x = mg.ones(2, requires_grad=True)
    for action in (
        x.half,
        x.bfloat16,
        lambda: x.to(mg.float16),
        lambda: mg.zeros(2, dtype=mg.half).copy_(x),
        lambda: mg.zeros(2, dtype=mg.half).__setitem__(0, x[0]),
        lambda: mg.slice_scatter(mg.zeros(2, dtype=mg.half), x[:1], 0, 0, 1),
    ):
        with pytest.raises(TypeError, match="cannot require grad: minigrad trains in float32"):
            action()
    with mg.no_grad():
        assert not x.half().requires_grad
    assert x.detach().half().tolist() == [1, 1]
    for dtype in HALVES:
        y = mg.ones(2, dtype=dtype)
        with pytest.raises(TypeError, match=rf"{dtype.name}: minigrad trains .*\.to\(mg\.float32"):
            y.requires_grad_()
        with pytest.raises(TypeError, match=r"\[requires_grad\]"):
            mg.zeros(2, dtype=dtype, requires_grad=True)
        leaf = y.float().requires_grad_()
        (leaf * 2).sum().backward()
        assert leaf.grad.tolist() == [2, 2]
        with pytest.raises(TypeError, match="holds float32 or float64"):
            leaf.data = y
    with pytest.raises(TypeError, match="this one is int16; convert it"):
        mg.zeros(2, dtype=mg.short, requires_grad=True)


def test_modules_keep_floats_and_take_halves():
    layer = mg.nn.Linear(2, 2)
    for action in (layer.half, layer.bfloat16, lambda: layer.to(mg.float16)):
        with pytest.raises(TypeError, match=r"\[Module\.to\] b?float16 is for storage"):
            action()
    state = {name: value.half() for name, value in layer.state_dict().items()}
    other = mg.nn.Linear(2, 2)
    other.load_state_dict(state)
    assert other.weight.dtype is mg.float32
    assert same(other.weight.detach(), state["weight"].double().numpy())
    assert layer(mg.ones(1, 2).half()).dtype is mg.float32
    with pytest.raises(TypeError, match="only float tensors can be optimized"):
        mg.optim.SGD([mg.ones(2).half()], lr=0.1)


def test_numbers_that_do_not_fit():
    x = mg.zeros(2, dtype=mg.uint8)
    mask = mg.tensor([True, False])
    for action in (
        lambda: mg.tensor([300], dtype=mg.uint8),
        lambda: mg.full((2,), 300, dtype=mg.uint8),
        lambda: x.fill_(300),
        lambda: x.__setitem__(0, 300),
        lambda: x.masked_fill(mask, 300),
        lambda: mg.where(mask, x, 300),
        lambda: mg.nn.functional.pad(x, (1, 1), value=300),
        lambda: x.index_fill(0, mg.tensor([0]), 300),
        lambda: x.scatter(0, mg.tensor([0]), 300),
    ):
        with pytest.raises(OverflowError, match=r"\[.*\] 300 does not fit in uint8"):
            action()
    for action in (
        lambda: mg.tensor([0.5, -300.5], dtype=mg.int8),
        lambda: mg.zeros(2, dtype=mg.int8).__setitem__(0, [-300.5]),
        lambda: mg.zeros(2, dtype=mg.int8).fill_(-300.5),
    ):
        with pytest.raises(OverflowError, match=r"\[.*\] -300.5 does not fit in int8"):
            action()
    with pytest.raises(OverflowError, match=r"\[fill_\] nan does not fit in int8|copy_"):
        mg.zeros(2, dtype=mg.int8).fill_(float("nan"))
    assert mg.tensor([1.9, -1.9], dtype=mg.int8).tolist() == [1, -1]
    assert mg.tensor([-1], dtype=mg.uint8).item() == 255  # as PyTorch has it
    assert mg.tensor([-(2**31)], dtype=mg.int32).item() == -(2**31)
    with pytest.raises(OverflowError, match="2147483648 does not fit in int32"):
        mg.tensor([2**31], dtype=mg.int32)
    assert mg.where(mask, x, 0.5).dtype is mg.float32
    assert mg.where(mask, mg.zeros(2, dtype=mg.half), 0.5).dtype is mg.float16
    with pytest.raises(TypeError, match="a value of dtype float64 does not fit into uint8"):
        x.masked_fill(mask, 0.5)


def test_kernels_refuse_what_they_do_not_compute_in():
    """Whatever takes an mg_array in C, by its type, is given a cast of a storage dtype."""
    x, wide = mg.tensor([0.5, 2.0], dtype=mg.float16)._h, mg.tensor([0.5, 2.0])._h
    index = mg.tensor([1, 0])
    small = index.to(mg.int32)._h
    for kernel, args, as_wide in (
        (kernels.exp, (x,), (wide,)),
        (kernels.mul, (x, x), (wide, wide)),
        (kernels.softmax, (x, 0), (wide, 0)),
        (kernels.elu, ((x,), (1.0, 1.0, 1.0)), ((wide,), (1.0, 1.0, 1.0))),
        (kernels.gather, (wide, (small,)), (wide, (index._h,))),
    ):
        made, expected = call(kernel, *args), call(kernel, *as_wide)
        assert made.dtype == lib.MG_FLOAT32
        assert wrap(made).tolist() == wrap(expected).tolist()
    with pytest.raises(TypeError, match=r"\[accumulate\] does not write storage dtypes"):
        call(kernels.accumulate, x, x)


def test_running_statistics_in_halves():
    given = mg.tensor(np.random.default_rng(0).normal(size=(4, 3)))
    mean, var = mg.zeros(3, dtype=mg.half), mg.ones(3, dtype=mg.half)
    wide = mg.zeros(3), mg.ones(3)
    mg.nn.functional.batch_norm(given, mean, var, training=True)
    mg.nn.functional.batch_norm(given, *wide, training=True)
    assert same(mean, wide[0].half().double().numpy())
    assert same(var, wide[1].half().double().numpy())


@pytest.mark.parametrize("dtype", [mg.float16, mg.int16], ids=lambda d: d.name)
def test_gradients_beside_them(dtype):
    """The gradient of each input beside stored ones is that beside wide ones."""
    failed = []

    def gradient(sample, place, wide):
        given = [mg.tensor(x, mg.float32).to(dtype) for x in sample.inputs()]
        given = [x.to(dtype.wide) if wide else x for x in given]
        leaf = given[place] = mg.tensor(sample.inputs()[place], mg.float32, requires_grad=True)
        try:
            results = [
                y for y in sample.called(*sample.prepared(*given)) if isinstance(y, mg.Tensor)
            ]
            results = [y for y in results if y.requires_grad]
            ones = [mg.ones_like(y) for y in results]
            return mg.grad(results, [leaf], ones)[0].numpy() if results else None
        except Exception as error:
            return error

    for name, samples in CATALOGUE.items():
        for k, sample in enumerate(samples):
            for place in range(len(sample.inputs())):
                if len(sample.inputs()) < 2 or (name, k) in SKIPPED:
                    continue
                got, want = (gradient(sample, place, wide) for wide in (False, True))
                if isinstance(got, TypeError) and "cannot require grad: minigrad trains" in str(
                    got
                ):
                    continue  # it would be written into a half
                same_kind = type(got) is type(want)
                if not same_kind or (
                    isinstance(want, np.ndarray) and not np.allclose(got, want, 1e-4, 1e-5, True)
                ):
                    failed.append((name, k, place, got, want))
    assert not failed


def test_denied_memory():
    """On the way to the wide dtype, or through it, nothing is lost."""
    x, h = mg.arange(1000).byte(), mg.ones(1000).half()
    mask = x > 3
    for action in (
        lambda: x + h,
        lambda: x.half(),
        lambda: h.short(),
        lambda: h.view(mg.int16),
        lambda: mg.where(mask, x, 0.5),
        lambda: x.sum(0),
        lambda: mg.cat([x, h]),
        lambda: mg.arange(1000, dtype=mg.uint8),
    ):
        action()
        gc.collect()
        before = lib.mg_live_bytes()
        refused = 0
        for k in range(1, 20):
            lib.mg_deny_blocks(k, k)
            try:
                action()
            except MemoryError:
                refused += 1
            finally:
                lib.mg_deny_blocks(1, 0)
        assert refused
        gc.collect()
        assert lib.mg_live_bytes() <= before
