"""Tensors from data, filled and counted ones, and their way back to Python."""

from __future__ import annotations

import copy
import math
import pickle

import numpy as np
import oracle
import pytest

import minigrad as mg

DTYPES = [mg.float32, mg.float64, mg.int64, mg.bool]

# ---- from data -----------------------------------------------------------------------------------

DATA = [
    (2.5, np.float32(2.5)),
    (3, np.int64(3)),
    (True, np.bool_(True)),
    ([1.0, 2], np.array([1, 2], np.float32)),
    ([1, 2], np.array([1, 2])),
    ([True, False], np.array([True, False])),
    ([[1, 2.0], [3, 4]], np.array([[1, 2], [3, 4]], np.float32)),
    ((1, (2)), np.array([1, 2])),
    ([], np.zeros(0, np.float32)),
    ([[], []], np.zeros((2, 0), np.float32)),
    (np.float64(1.5), np.float64(1.5)),
    (np.float32(1.5), np.float32(1.5)),
    (np.float16(1.5), np.float16(1.5)),
    (np.array([1, 2], np.int8), np.array([1, 2], np.int8)),
    (np.array([1, 2], np.uint16), np.array([1, 2])),
    (np.array([1, 2], np.float16), np.array([1, 2], np.float16)),
    (np.arange(3.0), np.arange(3.0)),
    (np.arange(3.0).astype(">f8"), np.arange(3.0)),
    (np.arange(3, dtype=">i4"), np.arange(3, dtype=np.int32)),
    ([np.arange(2.0), np.arange(2.0)], np.array([[0, 1], [0, 1.0]])),
    (np.arange(6.0)[::-2], np.array([5, 3, 1.0])),
    (2**62, np.int64(2**62)),
    ([-(2**63), 2**63 - 1], np.array([-(2**63), 2**63 - 1])),
    ([math.nan, math.inf], np.array([math.nan, math.inf], np.float32)),
    (-0.0, np.float32(-0.0)),
    (range(3), np.arange(3)),
]


@pytest.mark.parametrize(("data", "want"), DATA, ids=lambda d: repr(d)[:30])
def test_tensor(data, want):
    oracle.assert_same(mg.tensor(data).numpy(), np.asarray(want))


def test_tensor_copies():
    a = np.arange(3.0)
    t = mg.tensor(a)
    a[0] = 9
    assert t.tolist() == [0, 1, 2]
    again = mg.tensor(t)
    again[0] = 9
    assert t.tolist() == [0, 1, 2]
    assert again.is_leaf


def test_tensor_of_tensors():
    assert mg.tensor([mg.tensor([1.0, 2.0]), mg.tensor([3.0, 4.0])]).tolist() == [[1, 2], [3, 4]]
    assert mg.tensor([mg.tensor(1.0), 2.0]).tolist() == [1, 2]


@pytest.mark.parametrize("dtype", DTYPES)
def test_tensor_with_a_dtype(dtype):
    t = mg.tensor([0, 1, 2], dtype)
    assert t.dtype is dtype
    assert t.tolist() == ([False, True, True] if dtype is mg.bool else [0, 1, 2])


BAD_DATA = [
    ("text", TypeError, "str"),
    (["a"], TypeError, "str"),
    (None, TypeError, "NoneType"),
    ([None], TypeError, "NoneType"),
    (object(), TypeError, "object"),
    ({1: 2}, TypeError, "dict"),
    (1j, TypeError, "complex"),
    (np.array([1j]), TypeError, "complex128"),
    (np.array(["2020-01-01"], "M8[D]"), TypeError, "datetime64"),
    (np.array([1, "a"], object), TypeError, "object"),
    ([[1, 2], [3]], ValueError, "differ in length"),
    ([1, [2]], ValueError, "differ in length"),
    (np.array([2**63], np.uint64), OverflowError, "does not fit in int64"),
]


@pytest.mark.parametrize(("data", "error", "message"), BAD_DATA, ids=lambda d: repr(d)[:30])
def test_bad_data(data, error, message):
    with pytest.raises(error, match=rf"\[tensor\].*{message}"):
        mg.tensor(data)


@pytest.mark.parametrize("value", [2**63, -(2**63) - 1, 10**30])
def test_integers_that_do_not_fit(value):
    for make in (
        lambda: mg.tensor(value),
        lambda: mg.tensor([value]),
        lambda: mg.tensor(1) + value,
    ):
        with pytest.raises(OverflowError, match="int64"):
            make()


# ---- filled --------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0, 3), (2, 3)], ids=str)
def test_filled(dtype, shape):
    numpy = np.dtype(dtype.name)
    oracle.assert_same(mg.zeros(shape, dtype=dtype).numpy(), np.zeros(shape, numpy))
    oracle.assert_same(mg.ones(*shape, dtype=dtype).numpy(), np.ones(shape, numpy))
    oracle.assert_same(mg.full(shape, 7, dtype=dtype).numpy(), np.full(shape, 7, numpy))
    empty = mg.empty(shape, dtype=dtype)
    assert (empty.shape, empty.dtype) == (shape, dtype)
    for like in (mg.zeros_like, mg.ones_like, mg.empty_like):
        assert (like(empty).shape, like(empty).dtype) == (shape, dtype)
        assert like(empty, dtype=mg.float64).dtype is mg.float64
    assert mg.full_like(empty, 1).dtype is dtype


def test_full_takes_the_dtype_of_its_value():
    assert mg.full((2,), 1).dtype is mg.int64
    assert mg.full((2,), 1.0).dtype is mg.float32
    assert mg.full((2,), True).dtype is mg.bool
    assert mg.full(2, 2**62).tolist() == [2**62] * 2
    assert mg.full((2,), 0.1, dtype=mg.float64).tolist() == [0.1, 0.1]
    assert mg.full((1,), math.inf).item() == math.inf
    with pytest.raises(ValueError, match=r"\[full\] nan has no value in int64"):
        mg.full((2,), math.nan, dtype=mg.int64)
    with pytest.raises((OverflowError, ValueError), match="int64"):
        mg.full((2,), 2**63)


@pytest.mark.parametrize(
    "bounds",
    [
        (5,),
        (0,),
        (-2,),
        (1, 5),
        (5, 1),
        (5, 1, -2),
        (0, 1, 0.25),
        (1.5, 4),
        (0.0, 1.0, 0.1),
        (2, 7, 2),
        (0, -5, -1),
        (1, 2, 0.3),
    ],
    ids=str,
)
@pytest.mark.parametrize("dtype", [None, mg.float32, mg.float64])
def test_arange(bounds, dtype):
    got = mg.arange(*bounds, dtype=dtype)
    want = np.arange(*bounds)
    assert got.shape == want.shape
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-6)
    if dtype is None:
        assert got.dtype is (mg.int64 if want.dtype == np.int64 else mg.float32)


def test_arange_refuses():
    for bounds in ((0, 1, 0), (0, math.inf), (math.nan,), (0, 1, math.nan)):
        with pytest.raises(ValueError, match=r"\[arange\] cannot count"):
            mg.arange(*bounds)


@pytest.mark.parametrize("steps", [0, 1, 2, 7])
def test_linspace(steps):
    got = mg.linspace(-1, 2, steps, dtype=mg.float64).numpy()
    oracle.assert_same(got, np.linspace(-1, 2, steps))
    assert mg.linspace(0, 1, 3).tolist() == [0, 0.5, 1]
    with pytest.raises(ValueError, match=r"\[linspace\] steps is -1"):
        mg.linspace(0, 1, -1)


def test_eye():
    assert mg.eye(2).tolist() == [[1, 0], [0, 1]]
    oracle.assert_same(mg.eye(2, 3, dtype=mg.int64).numpy(), np.eye(2, 3, dtype=np.int64))
    assert mg.eye(0).shape == (0, 0)


def test_sizes_are_refused_with_a_reason():
    with pytest.raises(ValueError, match=r"\[\w+\] negative size -1 in dimension 1"):
        mg.zeros(2, -1)
    with pytest.raises(ValueError, match=r"negative size"):
        mg.empty(-3)
    with pytest.raises(ValueError, match=r"negative size"):
        mg.rand(-3)
    with pytest.raises(TypeError, match=r"\[zeros\] sizes are integers"):
        mg.zeros(2.0)
    with pytest.raises(TypeError, match=r"\[ones\] sizes are integers"):
        mg.ones("a")
    with pytest.raises(ValueError, match="17 dimensions where at most 16"):
        mg.ones((1,) * 17)


def test_requires_grad():
    for make in (
        lambda **k: mg.tensor([1.0], **k),
        lambda **k: mg.zeros(1, **k),
        lambda **k: mg.ones(1, **k),
        lambda **k: mg.full((1,), 1.0, **k),
        lambda **k: mg.empty(1, **k),
        lambda **k: mg.eye(1, **k),
        lambda **k: mg.linspace(0, 1, 2, **k),
        lambda **k: mg.arange(2.0, **k),
    ):
        assert make(requires_grad=True).requires_grad
        assert not make().requires_grad
        assert make(requires_grad=True).is_leaf
    for wrong in (
        lambda: mg.tensor([1], requires_grad=True),
        lambda: mg.ones(2, dtype=bool).requires_grad_(),
    ):
        with pytest.raises(TypeError, match="only float tensors can have gradients"):
            wrong()


# ---- back to Python ------------------------------------------------------------------------------


def test_item():
    assert mg.tensor(2.5).item() == 2.5
    assert isinstance(mg.tensor([[3]]).item(), int)
    assert mg.tensor(True).item() is True
    assert mg.tensor(2**62 + 1).item() == 2**62 + 1
    assert math.isnan(mg.tensor(math.nan).item())
    for shape in ((2,), (0,)):
        with pytest.raises(
            ValueError, match=rf"\[item\] a tensor of shape \({shape[0]},\) has {shape[0]} elements"
        ):
            mg.ones(shape).item()


def test_numbers():
    x = mg.tensor(2.75)
    assert float(x) == 2.75
    assert int(x) == 2
    assert bool(x)
    assert not mg.tensor(0.0)
    assert bool(mg.tensor(math.nan))
    assert f"{x:.1f}" == "2.8"
    assert f"{mg.tensor(3):03d}" == "003"
    assert f"{x}" == "2.75"
    assert math.sqrt(mg.tensor(4.0)) == 2.0
    assert round(float(mg.tensor([1.5])), 1) == 1.5
    for wrong in (mg.ones(2), mg.ones(0)):
        with pytest.raises(
            ValueError, match=r"\[bool\] the truth of a tensor of shape.*\.any\(\) or \.all\(\)"
        ):
            bool(wrong)
        with pytest.raises(ValueError, match="elements, not one"):
            float(wrong)


def test_sequences():
    x = mg.tensor([[1, 2], [3, 4]])
    assert len(x) == 2
    assert [row.tolist() for row in x] == [[1, 2], [3, 4]]
    assert 3 in x
    assert 5 not in x
    _, b = x
    assert b.tolist() == [3, 4]
    assert x.tolist() == [[1, 2], [3, 4]]
    assert mg.tensor(2).tolist() == 2
    assert mg.zeros(2, 0).tolist() == [[], []]
    assert list(mg.zeros(0)) == []
    for function in (len, iter):
        with pytest.raises(TypeError, match="a 0-d tensor"):
            function(mg.tensor(1.0))


SINGLE, DOUBLE = mg.tensor(1.0), mg.tensor(1.0, dtype=mg.float64)
# Elements of sequences and the dtype they give: PyTorch's, whatever comes first.
MIXED = [
    ([SINGLE, 2], mg.float32),
    ([SINGLE, 2.5], mg.float32),
    ([SINGLE, mg.tensor(2)], mg.float32),
    ([mg.tensor(2), 2.5], mg.float32),
    ([mg.tensor(True), 2.5], mg.float32),
    ([np.int64(3), 2.5], mg.float32),
    ([np.float32(1), 2], mg.float32),
    ([np.float16(1), np.uint8(2)], mg.float16),
    ([[1, 2], np.ones(2, np.float32)], mg.float32),
    ([np.ones(2, np.float32), np.ones(2, np.int64)], mg.float32),
    ([DOUBLE, 2], mg.float64),
    ([SINGLE, DOUBLE], mg.float64),
    ([2.5, np.float64(1)], mg.float64),
    ([[2.5, SINGLE], (np.float64(1), 3)], mg.float64),
    ([mg.tensor(2), 3], mg.int64),
    ([mg.tensor(True), False], mg.bool),
    ([[], np.zeros(0, np.float64)], mg.float32),
    ([np.zeros(0, np.float64)], mg.float64),
]


@pytest.mark.parametrize(("data", "dtype"), MIXED)
def test_sequences_of_several_kinds_have_the_widest(data, dtype):
    forth, back = mg.tensor(data), mg.tensor(data[::-1])
    assert forth.dtype is dtype
    assert forth.flip(0).tolist() == back.tolist()
    if forth.numel():
        assert back.dtype is dtype
        assert forth.tolist() == np.asarray([np.asarray(row) for row in data]).tolist()
    assert mg.tensor(data, dtype=mg.float64).dtype is mg.float64


def test_a_list_of_tensors_does_not_widen_what_it_meets():
    assert (mg.ones(2) + [SINGLE, 2]).dtype is mg.float32
    assert (mg.ones(2) + [SINGLE, DOUBLE]).dtype is mg.float64


def test_iteration_carries_gradients():
    x = mg.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    a, b = x
    (a * b).sum().backward()
    assert x.grad.tolist() == [[3, 4], [1, 2]]


def test_repr():
    assert repr(mg.tensor([1.0, 2.5])) == "tensor([1. , 2.5])"
    assert repr(mg.tensor(3)) == "tensor(3)"
    assert repr(mg.tensor([True])) == "tensor([ True])"
    assert repr(mg.tensor(1.5, mg.float64)) == "tensor(1.5, dtype=minigrad.float64)"
    assert repr(mg.zeros(0, 2)) == "tensor([], shape=(0, 2), dtype=minigrad.float32)"
    x = mg.tensor([1.0], requires_grad=True)
    assert repr(x) == "tensor([1.], requires_grad=True)"
    assert repr(x * 2) == "tensor([2.], grad_fn=<mul>)"
    rows = repr(mg.ones(2, 2)).splitlines()
    assert rows == ["tensor([[1., 1.],", "        [1., 1.]])"]


def test_attributes():
    x = mg.ones(2, 3, 4)
    assert (x.shape, x.ndim, x.dim(), x.size, x.numel()) == ((2, 3, 4), 3, 3, 24, 24)
    assert x.strides == (12, 4, 1)
    assert x.is_contiguous()
    assert not x.T.is_contiguous()
    assert x.T.shape == (4, 3, 2)
    assert x.mT.shape == (2, 4, 3)
    assert mg.Tensor([1.0, 2.0]).tolist() == [1, 2]
    assert hash(x) != hash(mg.ones(2, 3, 4))


# ---- copies --------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
def test_pickle_and_deepcopy(dtype):
    x = mg.tensor([[0, 1], [1, 0]], dtype)
    for again in (
        pickle.loads(pickle.dumps(x)),
        copy.deepcopy(x),
        pickle.loads(pickle.dumps(x.T)).T,
    ):
        oracle.assert_same(again.numpy(), x.numpy())
        assert not np.shares_memory(again.numpy(), x.numpy())
    assert pickle.loads(pickle.dumps(dtype)) is dtype
    assert copy.deepcopy(dtype) is dtype


def test_copies_keep_requires_grad_and_grad():
    x = mg.tensor([1.0, 2.0], requires_grad=True)
    (x * x).sum().backward()
    again = copy.deepcopy(x)
    assert again.requires_grad
    assert again.is_leaf
    assert again.grad.tolist() == [2, 4]
    assert pickle.loads(pickle.dumps(x)).requires_grad
    pair = copy.deepcopy([x, x])
    assert pair[0] is pair[1]
    shallow = copy.copy(x)
    assert shallow.detach().tolist() == [1, 2]


def test_pickling_a_result_keeps_its_values():
    x = mg.tensor([1.0, 2.0], requires_grad=True)
    assert pickle.loads(pickle.dumps((x * 2).detach())).tolist() == [2, 4]


@pytest.mark.usefixtures("restore_random")
@pytest.mark.parametrize(
    ("name", "error", "call"),
    [
        ("eye", MemoryError, lambda: mg.eye(2**21)),
        ("eye", ValueError, lambda: mg.eye(2**40)),
        ("eye", ValueError, lambda: mg.eye(2**70)),
        ("linspace", MemoryError, lambda: mg.linspace(0, 1, 2**50)),
        ("linspace", ValueError, lambda: mg.linspace(0, 1, 2**70)),
        ("rand", MemoryError, lambda: mg.rand(2**50)),
        ("randn", MemoryError, lambda: mg.randn(2**50)),
        ("randn", ValueError, lambda: mg.randn(2**62, 2**62)),
        ("randn", ValueError, lambda: mg.randn(2**70)),
        ("randint", MemoryError, lambda: mg.randint(5, (2**50,))),
        ("randperm", MemoryError, lambda: mg.randperm(2**50)),
        ("randperm", ValueError, lambda: mg.randperm(2**70)),
        ("normal", MemoryError, lambda: mg.normal(0.0, 1.0, (2**50,))),
        ("multinomial", MemoryError, lambda: mg.multinomial(mg.ones(3), 2**50, True)),
        ("tril_indices", MemoryError, lambda: mg.tril_indices(2**25, 2**25)),
        ("triu_indices", ValueError, lambda: mg.triu_indices(2**40, 2**40)),
        ("triu_indices", ValueError, lambda: mg.triu_indices(2**70, 2)),
        ("Linear", ValueError, lambda: mg.nn.Linear(2**40, 2**40)),
        ("Linear", MemoryError, lambda: mg.nn.Linear(2**40, 1)),
        ("Conv2d", ValueError, lambda: mg.nn.Conv2d(2**30, 2**30, 3)),
    ],
)
def test_sizes_beyond_memory_are_refused_in_our_words(name, error, call):
    words = {
        MemoryError: "no memory for [0-9]+ bytes",
        ValueError: "(the result is too large|a size)",
    }
    with pytest.raises(error, match=rf"^\[{name}\] {words[error]}") as caught:
        call()
    assert type(caught.value) is error


def test_new_tensors_of_a_tensors_dtype():
    x = mg.zeros(2, dtype=mg.float64)
    assert x.new_zeros(2, 3).tolist() == [[0.0] * 3] * 2
    assert x.new_ones((2,)).tolist() == [1.0, 1.0]
    assert x.new_full((2,), 7).tolist() == [7.0, 7.0]
    assert x.new_empty(0, 3).shape == (0, 3)
    assert x.new_tensor([1, 2]).tolist() == [1.0, 2.0]
    made = [x.new_zeros(1), x.new_ones(1), x.new_full((1,), 7), x.new_empty(1), x.new_tensor(1)]
    assert {y.dtype for y in made} == {mg.float64}
    y = x.new_zeros(2, dtype=mg.float32, requires_grad=True)
    assert y.dtype is mg.float32
    assert y.requires_grad


def test_arrays_of_other_libraries_keep_their_dtype():
    class Shown:
        def __init__(self, values):
            self.values = values

        def __array__(self, dtype=None, copy=None):
            return self.values

    for dtype in ("float32", "float64", "int64", "bool"):
        values = np.array([[0, 1], [2, 1]]).astype(dtype)
        for made in (mg.tensor(Shown(values)), mg.asarray(Shown(values))):
            assert made.dtype.name == dtype
            np.testing.assert_array_equal(made.numpy(), values)
    exact = np.array([0.1])
    assert mg.tensor(Shown(exact)).item() == 0.1
    assert mg.tensor(Shown(exact), dtype=mg.float32).dtype is mg.float32
