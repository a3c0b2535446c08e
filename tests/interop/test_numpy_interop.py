"""To NumPy and back without a copy, and what each side may then do to the memory."""

from __future__ import annotations

import contextlib
import gc
import sys
import weakref

import numpy as np
import oracle
import pytest

import minigrad as mg
from minigrad.functions import creation

DTYPES = [np.float32, np.float64, np.int64, np.bool_]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("layout", oracle.LAYOUTS)
@pytest.mark.parametrize("shape", [(), (4,), (2, 3), (2, 1, 3), (0, 3)], ids=str)
def test_there_and_back_is_the_same_memory(dtype, layout, shape, rng):
    a = oracle.laid_out(rng.integers(0, 2, shape).astype(dtype), layout)
    t = mg.from_numpy(a)
    back = t.numpy()
    oracle.assert_same(back, a)
    assert t.shape == a.shape
    if a.size:
        assert np.shares_memory(back, a)
        assert back.strides == a.strides or 1 in shape
    assert not back.flags.writeable  # as the array it came from


def test_writes_are_seen_on_both_sides():
    a = np.zeros(3)
    t = mg.from_numpy(a)
    t[0] = 1
    a[1] = 2
    t.numpy()[2] = 3
    assert a.tolist() == t.tolist() == [1, 2, 3]


def test_read_only_memory_is_not_written():
    a = np.zeros(3)
    a.flags.writeable = False
    t = mg.from_numpy(a)
    for write in (
        lambda: t.fill_(1),
        lambda: t.__setitem__(0, 1),
        lambda: t.__iadd__(1),
        lambda: t[1:].zero_(),
        lambda: t.__setitem__([0, 1], 1),
    ):
        with pytest.raises(
            ValueError,
            match=r"read-only \(it came from a read-only NumPy array\); clone\(\) it first",
        ):
            write()
    assert a.tolist() == [0, 0, 0]
    assert t.clone().fill_(1).tolist() == [1, 1, 1]


def test_memory_outlives_either_side():
    a = np.arange(100000.0)
    alive = weakref.ref(a)
    t = mg.from_numpy(a)[::2]
    del a
    gc.collect()
    assert alive() is not None
    assert t[5].item() == 10
    del t
    gc.collect()
    assert alive() is None
    view = mg.arange(100000.0).numpy()[::2]
    gc.collect()
    mg.zeros(100000)  # would take the memory if it had been given back
    assert view[5] == 10


def test_a_result_kept_by_the_tape_keeps_numpys_memory():
    a = np.arange(3.0)
    x = mg.from_numpy(a).requires_grad_()
    y = (x * x).sum()
    a[:] = 100  # the tape has its own copy of memory that NumPy can write
    (g,) = mg.grad(y, x)
    assert g.tolist() == [0, 2, 4]


def test_numpy_gets_no_write_access_to_what_a_graph_needs():
    x = mg.tensor([1.0, 2.0], requires_grad=True)
    y = x * x
    shown = x.detach().numpy()
    assert not shown.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        shown[0] = 5
    del y, shown
    assert x.detach().numpy().flags.writeable


def test_a_view_handed_out_before_the_graph_cannot_change_it():
    x = mg.tensor([1.0, 2.0], requires_grad=True)
    shown = x.detach().numpy()
    y = (x * x).sum()
    shown[0] = 100
    (g,) = mg.grad(y, x)
    assert g.tolist() == [2, 4]


def test_a_tensor_that_requires_grad_is_not_handed_out():
    x = mg.tensor([1.0], requires_grad=True)
    for take in (x.numpy, lambda: np.asarray(x), (x * 2).numpy):
        with pytest.raises(RuntimeError, match=r"requires grad.*x\.detach\(\)\.numpy\(\)"):
            take()
    assert x.detach().numpy().tolist() == [1]


def test_array_protocol():
    x = mg.tensor([1.0, 2.0])
    assert np.shares_memory(np.asarray(x), x.numpy())
    assert np.asarray(x, np.float64).dtype == np.float64
    assert not np.shares_memory(np.array(x), x.numpy())
    assert np.sum(np.asarray(x)) == 3
    np.testing.assert_allclose(np.exp(np.asarray(x)), mg.exp(x).numpy(), rtol=1e-6)
    with pytest.raises(ValueError, match="needs a copy"):
        x.__array__(np.float64, copy=False)


def test_operators_with_arrays_give_tensors():
    a = np.array([1.0, 2.0], np.float32)
    x = mg.tensor([3.0, 4.0], requires_grad=True)
    for got, want in (
        (a * x, [3, 8]),
        (x * a, [3, 8]),
        (a - x, [-2, -2]),
        (a / x, [1 / 3, 0.5]),
        (a**x, [1, 16]),
        (np.float32(2) * x, [6, 8]),
        (x + np.float64(1), [4, 5]),
    ):
        assert isinstance(got, mg.Tensor)
        assert got.dtype is mg.float32
        np.testing.assert_allclose(got.detach().numpy(), want, rtol=1e-6)
    assert (a < x).tolist() == [True, True]
    assert (a == mg.tensor(a)).tolist() == [True, True]
    a *= 2
    assert a.tolist() == [2, 4]


@pytest.mark.parametrize("call", [1, 2])
def test_a_view_that_is_interrupted_gives_nothing_back(monkeypatch, call):
    x = mg.tensor([1.0, 2.0], requires_grad=True)
    complaints, calls, made = [], [], creation.numpy_dtype

    def interrupted(dtype):
        calls.append(dtype)
        if len(calls) == call:
            raise KeyboardInterrupt
        return made(dtype)

    monkeypatch.setattr("sys.unraisablehook", complaints.append)
    with monkeypatch.context() as patch, contextlib.suppress(KeyboardInterrupt):
        patch.setattr(creation, "numpy_dtype", interrupted)
        x.detach().numpy()
    assert not complaints
    shown = x.detach().numpy()  # still counted: the graph keeps a copy of what this may write
    y = (x * x).sum()
    shown[0] = 100
    (g,) = mg.grad(y, x)
    assert g.tolist() == [2, 4]


def test_from_numpy_refuses():
    for wrong in ([1.0], 1.0, None, mg.ones(2), np.float64(1)):
        with pytest.raises(TypeError, match=r"\[from_numpy\] expected a numpy.ndarray"):
            mg.from_numpy(wrong)
    for dtype in (np.uint16, np.uint32, np.uint64, np.complex64, object, "S3", "M8[D]"):
        with pytest.raises(
            TypeError, match=r"\[from_numpy\] cannot share memory of dtype .*mg\.tensor"
        ):
            mg.from_numpy(np.zeros(2, dtype))
    with pytest.raises(ValueError, match=r"\[from_numpy\].*byte-swapped.*copy it with mg\.tensor"):
        mg.from_numpy(np.zeros(2, ">f8"))
    packed = np.zeros(3, [("a", np.int8), ("b", np.float32)])
    with pytest.raises(ValueError, match=r"\[from_numpy\] the array is misaligned"):
        mg.from_numpy(packed["b"])
    assert mg.tensor(packed["b"]).tolist() == [0, 0, 0]
    with pytest.raises(ValueError, match="17 dimensions where at most 16"):
        mg.from_numpy(np.zeros((1,) * 17))


def test_odd_arrays():
    a = np.lib.stride_tricks.as_strided(np.arange(5.0), (3, 3), (8, 8))  # elements overlap
    t = mg.from_numpy(a)
    oracle.assert_same((t + 0).numpy(), a)
    with pytest.raises(ValueError, match="several elements share one place"):
        t.fill_(0)
    oracle.assert_same(
        mg.from_numpy(np.broadcast_to(np.float32(2), (2, 3))).sum().numpy(),
        np.asarray(np.float32(12)),
    )
    subclass = np.ones((1, 2)).view(type("Subclass", (np.ndarray,), {}))
    assert mg.from_numpy(subclass).shape == (1, 2)
    masked = mg.tensor(np.ma.masked_array([1.0, 2.0], [False, True]))
    assert masked.shape == (2,)


class Liar(np.ndarray):
    """It is an array of 3 numbers, whatever it says."""

    shape = property(lambda self: (1 << 20,))
    strides = property(lambda self: (8,))
    size = property(lambda self: 1 << 20)
    nbytes = property(lambda self: 8 << 20)
    ndim = property(lambda self: 1)
    itemsize = property(lambda self: 8)
    base = property(lambda self: None)
    dtype = property(lambda self: np.dtype(np.int64))
    flags = property(lambda self: np.zeros(1).flags)
    __array_interface__ = property(lambda self: {"data": (1 << 12, False)})
    ctypes = property(lambda self: None)

    def __len__(self):
        return 1 << 20


def liar(values, step=1):
    """Whose elements are neighbours, or not."""
    made = np.zeros(len(values) * step)[::step]
    made[:] = values
    return made.view(Liar)


@pytest.mark.parametrize("step", [1, 2])
@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (mg.from_numpy, [1, 2, 3]),
        (mg.tensor, [1, 2, 3]),
        (mg.asarray, [1, 2, 3]),
        (lambda a: mg.tensor([a, a])[1], [1, 2, 3]),
        (lambda a: mg.zeros(3).copy_(a), [1, 2, 3]),
        (lambda a: mg.zeros(3).add_(a), [1, 2, 3]),
        (lambda a: mg.zeros(3, dtype=mg.float64) + a, [1, 2, 3]),
        (lambda a: a + mg.zeros(3, dtype=mg.float64), [1, 2, 3]),
        (lambda a: np.add(mg.zeros(3, dtype=mg.float64), a), [1, 2, 3]),
        (lambda a: mg.where(mg.ones(3) > 0, a, 0.0), [1, 2, 3]),
        (lambda a: mg.stack([mg.zeros(3), a])[1], [1, 2, 3]),
        (lambda a: mg.dot(mg.ones(3, dtype=mg.float64), a), 6),
        (lambda a: setitem(mg.zeros(3), slice(None), a), [1, 2, 3]),
        (lambda a: mg.sum(a), 6),
    ],
)
def test_a_subclass_is_what_numpy_knows_of_it(call, expected, step):
    """It may say anything of itself, and wild memory would be read."""
    assert call(liar([1.0, 2.0, 3.0], step)).tolist() == expected


def setitem(x, index, value):
    x[index] = value
    return x


def test_indices_and_states_of_a_subclass(restore_random):
    class Short(np.ndarray):
        shape = property(lambda self: (1 << 20,))
        strides = property(lambda self: (8,))

    index = np.array([2, 0]).view(Short)
    assert mg.arange(3)[index].tolist() == [2, 0]
    assert setitem(mg.zeros(3), index, 1.0).tolist() == [1, 0, 1]
    mask = np.array([True, False, True]).view(Short)
    assert mg.arange(3)[mask].tolist() == [0, 2]
    module = mg.nn.Linear(1, 3, bias=False)
    weight = np.ones((3, 1), np.float32).view(Short)
    module.load_state_dict({"weight": mg.tensor(weight)})
    assert module.weight.tolist() == [[1], [1], [1]]


def test_memory_from_numpy_lives_as_long_as_the_last_array_on_it():
    array = np.ones(3)
    alive = weakref.ref(array)
    x = mg.from_numpy(array)
    part = x[1:]
    del array, x
    assert alive() is not None
    assert part.tolist() == [1, 1]
    del part
    assert alive() is None


@pytest.mark.only_tape("C", "the tape in Python gives memory back from a callback")
def test_no_bytecode_runs_where_memory_goes_back():
    """Ctrl-C would come there, and be lost."""
    seen = []
    x = mg.from_numpy(np.ones(3))
    before = sys.gettrace()
    sys.settrace(lambda frame, what, _: seen.append((frame.f_code.co_name, what)))
    try:
        del x
    finally:
        sys.settrace(before)
    assert seen == []


def test_asarray():
    t = mg.ones(2)
    assert mg.asarray(t) is t
    a = np.ones(2)
    assert np.shares_memory(mg.asarray(a).numpy(), a)
    assert mg.asarray(a, mg.float32).dtype is mg.float32
    assert mg.asarray([1, 2]).dtype is mg.int64
    assert mg.asarray(np.ones(2, np.float16)).dtype is mg.float16


def test_a_writable_view_is_a_write():
    """The tape does not trust memory that NumPy may write: it saves a copy instead."""
    a = np.ones(4, np.float32)
    w = mg.from_numpy(a).requires_grad_()
    outs = [(w * w).sum() for _ in range(2)]
    a += 1
    outs.append((w * w).sum())
    grads = [mg.grad(y, w)[0].tolist() for y in outs]
    assert grads == [[2] * 4, [2] * 4, [4] * 4]


@pytest.mark.parametrize("shape", [(), (1,), (0, 3), (2, 3, 4), (300,), (40, 30)])
@pytest.mark.parametrize("dtype", ["bool", "int64", "float32", "float64"])
def test_arrays_small_and_large_come_and_go_as_they_are(shape, dtype, rng):
    array = np.asarray(rng.standard_normal(shape) * 10).astype(dtype)
    frozen = array.copy()
    frozen.flags.writeable = False
    for given in (array, frozen, array.T, array[::-1] if shape else array):
        for x in (mg.tensor(given), mg.from_numpy(given)):
            assert x.dtype.name == dtype
            assert x.tolist() == given.tolist()
            np.testing.assert_array_equal(x.numpy(), given)
        assert not np.shares_memory(mg.tensor(given).numpy(), given)
        assert mg.tensor(given, dtype=mg.float32).tolist() == given.astype("f").tolist()
