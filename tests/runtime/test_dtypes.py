"""Element types: promotion, weak numbers, casts."""

from __future__ import annotations

import itertools
import math

import numpy as np
import oracle
import pytest

import minigrad as mg

DTYPES = [mg.bool, mg.int64, mg.float32, mg.float64]  # in order of promotion
ARITHMETIC = ["add", "sub", "mul", "div", "pow", "maximum", "minimum"]


def test_what_a_dtype_is():
    assert [d.name for d in DTYPES] == ["bool", "int64", "float32", "float64"]
    assert [d.itemsize for d in DTYPES] == [1, 8, 4, 8]
    assert [d.is_floating_point for d in DTYPES] == [False, False, True, True]
    assert repr(mg.float32) == "minigrad.float32"
    assert mg.float32 == "float32"
    assert mg.float32 == np.float32
    assert mg.float64 == np.dtype("float64")
    assert mg.float32 != mg.float64
    assert mg.float32 != "complex"
    assert mg.float32 != 3
    assert len(dict.fromkeys(DTYPES, 0)) == 4
    assert mg.dtype is type(mg.float32)


@pytest.mark.parametrize(
    ("spelled", "dtype"),
    [
        ("float32", mg.float32),
        (np.float64, mg.float64),
        (np.dtype("int64"), mg.int64),
        (bool, mg.bool),
        (int, mg.int64),
        (float, mg.float64),
    ],
    ids=str,
)
def test_spellings(spelled, dtype):
    assert mg.zeros(1, dtype=spelled).dtype is dtype
    assert mg.tensor([1]).to(spelled).dtype is dtype


@pytest.mark.parametrize("wrong", ["uint16", np.uint32, "abc", complex, 3, object(), "S1"], ids=str)
def test_unknown_dtypes(wrong):
    with pytest.raises(
        TypeError, match=r"\[dtype\].*is not supported: use float32, float64, int64 or bool"
    ):
        mg.zeros(1, dtype=wrong)


def expected(op, a, b):
    higher = max(a, b, key=DTYPES.index)
    if op == "div" and not higher.is_floating_point:
        return mg.float32
    return mg.int64 if op == "pow" and higher is mg.bool else higher


@pytest.mark.parametrize("op", ARITHMETIC)
@pytest.mark.parametrize(
    ("a", "b"), list(itertools.product(DTYPES, repeat=2)), ids=lambda d: d.name
)
@pytest.mark.parametrize("shape", [(), (2,)], ids=str)
def test_promotion_of_tensors(op, a, b, shape):
    """Arrays of 0 dimensions count like any other."""
    x, y = mg.ones(shape, dtype=a), mg.ones(2, dtype=b)
    if op == "sub" and a is b is mg.bool:
        with pytest.raises(TypeError, match=r"\[sub\] not offered for bool and bool"):
            mg.sub(x, y)
        return
    for p, q in ((x, y), (y, x)):
        got = getattr(mg, op)(p, q)
        assert got.dtype is expected(op, a, b)
        assert (
            got.tolist()
            == [{"add": 2 if expected(op, a, b) is not mg.bool else True, "sub": 0}.get(op, 1)] * 2
        )


WEAK = [
    (True, {"bool": "bool", "int64": "int64", "float32": "float32", "float64": "float64"}),
    (2, {"bool": "int64", "int64": "int64", "float32": "float32", "float64": "float64"}),
    (2.5, {"bool": "float32", "int64": "float32", "float32": "float32", "float64": "float64"}),
    (
        np.float64(2.5),
        {"bool": "float32", "int64": "float32", "float32": "float32", "float64": "float64"},
    ),
    (
        np.float32(2.5),
        {"bool": "float32", "int64": "float32", "float32": "float32", "float64": "float64"},
    ),
    (np.int64(2), {"bool": "int64", "int64": "int64", "float32": "float32", "float64": "float64"}),
    (np.int8(2), {"bool": "int64", "int64": "int64", "float32": "float32", "float64": "float64"}),
    (
        np.bool_(True),
        {"bool": "bool", "int64": "int64", "float32": "float32", "float64": "float64"},
    ),
]


@pytest.mark.parametrize(
    ("number", "results"), WEAK, ids=lambda x: repr(x) if not isinstance(x, dict) else ""
)
@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: d.name)
@pytest.mark.parametrize("shape", [(), (2,)], ids=str)
def test_numbers_are_weak_in_either_order(number, results, dtype, shape):
    x = mg.ones(shape, dtype=dtype)
    want = results[dtype.name]
    for got in (
        x * number,
        number * x,
        mg.mul(x, number),
        mg.mul(number, x),
        mg.maximum(number, x),
        mg.where(mg.tensor(True), x, number),
        mg.where(mg.tensor(False), number, x),
    ):
        assert got.dtype == want
    assert (x > number).dtype is mg.bool


def test_a_weak_number_keeps_its_digits():
    """0.1 meets a float64 tensor as the float64 that it is."""
    x = mg.tensor([1.0], mg.float64)
    assert (x * 0.1).item() == 0.1
    assert (0.1 + x).item() == 1.1
    assert (mg.tensor([1.0]) * 0.1).item() == float(np.float32(0.1))
    assert (mg.tensor(2**53 + 1) + 0).item() == 2**53 + 1
    assert (mg.tensor([0]) + (2**62 + 1)).item() == 2**62 + 1


def test_the_cache_of_numbers_keeps_signs_and_types():
    x = mg.ones(1)
    assert math.copysign(1, (x * -0.0).item()) == -1
    assert math.copysign(1, (x * 0.0).item()) == 1
    assert (mg.ones(1, dtype=bool) * 1).dtype is mg.int64
    assert (mg.ones(1, dtype=bool) * True).dtype is mg.bool
    assert (mg.ones(1, dtype=bool) * 1.0).dtype is mg.float32
    assert math.isnan((x * math.nan).item())
    for k in range(600):  # more than the cache holds
        assert (x * k).item() == k


def test_a_number_means_the_same_the_first_time_and_later():
    x = mg.tensor([2.0, 3.0], mg.float64, requires_grad=True)
    for _ in range(3):
        got = [x + 7919, 7919 - x, x * 0.3, 0.3 / x, x**7, 7**x, mg.maximum(2.5, x), x < 2.5]
        a = np.array([2.0, 3.0])
        wanted = [a + 7919, 7919 - a, a * 0.3, 0.3 / a, a**7, 7**a, np.maximum(2.5, a), a < 2.5]
        for y, values in zip(got, wanted, strict=True):
            np.testing.assert_allclose(y.detach().numpy(), values, rtol=1e-15)
        (slope,) = mg.grad((x**3 + 0.3 * x).sum(), x)
        np.testing.assert_allclose(slope.numpy(), 3 * a**2 + 0.3, rtol=1e-15)
        kinds = [(mg.ones(1, dtype=bool) * n).dtype for n in (True, 1, 1.0, False, 0)]
        assert kinds == [mg.bool, mg.int64, mg.float32, mg.bool, mg.int64]
        with pytest.raises(OverflowError, match="int64"):
            x + 2**63
        with pytest.raises(TypeError):
            pow(x, 2, 5)
        with pytest.raises(TypeError):
            x ** "2"
        assert mg.add(2, 3).item() == 5


@pytest.mark.parametrize("value", [2**53 + 1, 2**24 + 1, (2**24 + 1) * 2**37 + 1, -(2**63)])
def test_a_whole_number_is_rounded_once(value):
    for dtype, kind in ((mg.float32, np.float32), (mg.float64, np.float64)):
        assert (mg.zeros(1, dtype=dtype) + value).item() == float(np.int64(value).astype(kind))


@pytest.mark.parametrize("value", [1e-45, 1e-42, 0.1, 16777217.0, 3.4028235677973366e38, math.inf])
def test_a_float_is_rounded_to_the_dtype_it_meets(value):
    with np.errstate(over="ignore"):
        assert (mg.zeros(1) + value).item() == float(np.float32(value))


def test_division_of_integers():
    got = mg.tensor([7]) / mg.tensor([2])
    assert got.dtype is mg.float32
    assert got.item() == 3.5
    assert (mg.tensor([7]) / 2).item() == 3.5
    assert (7 / mg.tensor([2])).item() == 3.5


@pytest.mark.parametrize(
    ("a", "b"), list(itertools.product([mg.float32, mg.float64], repeat=2)), ids=lambda d: d.name
)
def test_gradients_have_their_inputs_dtype(a, b):
    x, y = mg.ones(2, dtype=a, requires_grad=True), mg.ones(2, dtype=b, requires_grad=True)
    for graph in (False, True):
        by_x, by_y = mg.grad((x * y + x / y).sum(), (x, y), create_graph=graph)
        assert (by_x.dtype, by_y.dtype) == (a, b)


CASTS = np.array([0.0, -0.0, 1.0, -1.5, 2.9, 1e10, math.nan, math.inf, 1e-40])


@pytest.mark.parametrize(
    ("source", "target"), list(itertools.product(DTYPES, repeat=2)), ids=lambda d: d.name
)
def test_casts(source, target):
    with np.errstate(all="ignore"):
        a = (CASTS[:6] if not source.is_floating_point or target is mg.int64 else CASTS).astype(
            source.name
        )
        want = a.astype(target.name)
    for layout in ("contiguous", "reversed", "stepped"):
        oracle.assert_same(oracle.tensor_in_layout(a, layout).to(target).numpy(), want)
    if source is target:
        x = mg.tensor(a)
        assert x.to(target) is x


def test_casts_out_of_range_do_not_crash():
    for value in (math.nan, math.inf, -math.inf, 1e30):
        mg.tensor([value]).to(mg.int64)
        assert mg.tensor([value]).to(mg.bool).item() is True


def test_cast_methods_and_gradients():
    x = mg.tensor([1.0, 2.0], requires_grad=True)
    assert x.float() is x
    assert x.double().dtype is mg.float64
    assert x.astype("int64").dtype is mg.int64
    assert x.type_as(mg.ones(1, dtype=mg.float64)).dtype is mg.float64
    y = x.double() * 3
    (g,) = mg.grad(y.sum(), x)
    assert g.dtype is mg.float32
    assert g.tolist() == [3, 3]
    assert not x.to(mg.int64).requires_grad


def test_logical_operators():
    a, b = mg.tensor([True, True, False, False]), mg.tensor([True, False, True, False])
    assert (a & b).tolist() == [True, False, False, False]
    assert (a | b).tolist() == [True, True, True, False]
    assert (a ^ b).tolist() == [False, True, True, False]
    assert (~a).tolist() == [False, False, True, True]
    assert (a & True).tolist() == [True, True, False, False]
    assert (True ^ a).tolist() == [False, False, True, True]
    assert all(t.dtype is mg.bool for t in (a & b, a | b, a ^ b, ~a, a & True))
    with pytest.raises(TypeError, match=r"\[bitwise_not\] not offered for float32"):
        ~mg.ones(2)
    with pytest.raises(TypeError, match=r"\[bitwise_and\] not offered for float32"):
        mg.ones(2) & a


def test_in_place_operators_keep_the_dtype():
    x = mg.ones(2)
    before = x
    x += 1
    x *= mg.tensor([2.0, 3.0])
    assert x is before
    assert x.tolist() == [4, 6]
    n = mg.tensor([1, 2])
    with pytest.raises(TypeError, match="a float32 result does not fit into int64"):
        n += 0.5
    with pytest.raises(TypeError, match="does not fit"):
        n /= 2
    with pytest.raises(
        ValueError, match=r"in place, the result of shape \(3, 2\) does not fit \(2,\)"
    ):
        n += mg.ones(3, 2, dtype=mg.int64)
    assert n.tolist() == [1, 2]


NUMBERS = {
    "x ** 0.1": (lambda x: x**0.1, lambda x: 0.1 * x**-0.9),
    "0.1 ** x": (lambda x: 0.1**x, lambda x: math.log(0.1) * 0.1**x),
    "x / 0.3": (lambda x: x / 0.3, lambda x: 1 / 0.3),
    "0.3 / x": (lambda x: 0.3 / x, lambda x: -0.3 / x**2),
    "x * 0.1": (lambda x: x * 0.1, lambda x: 0.1),
    "0.1 - x": (lambda x: 0.1 - x, lambda x: -1.0),
    "1 / (x + 0.1)": (lambda x: 1 / (x + 0.1), lambda x: -1 / (x + 0.1) ** 2),
}


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("graph", [False, True], ids=["fused", "formula"])
def test_numbers_keep_their_digits_in_gradients(name, graph):
    f, slope = NUMBERS[name]
    x = mg.tensor(0.7, mg.float64, requires_grad=True)
    y = f(x)
    assert y.item() == pytest.approx(f(0.7), rel=1e-15)
    (g,) = mg.grad(y, x, create_graph=graph)
    assert g.item() == pytest.approx(slope(0.7), rel=1e-14)


# ---- lists ---------------------------------------------------------------------------------------

WITH_LISTS = {
    "add": lambda x, v: x + v,
    "reflected": lambda x, v: v + x,
    "hypot": mg.hypot,
    "where": lambda x, v: mg.where(mg.tensor([True, False]), v, x),
    "clamp": lambda x, v: mg.clamp(x, v, [1, 2]),
    "lerp": lambda x, v: mg.lerp(x, v, v),
    "cat": lambda x, v: mg.cat([x, v]),
    "stack": lambda x, v: mg.stack([v, x]),
    "matmul": lambda x, v: x @ v,
    "reflected matmul": lambda x, v: v @ x,
    "outer": mg.outer,
    "kron": mg.kron,
    "vecdot": lambda x, v: mg.linalg.vecdot(x, v),
    "einsum": lambda x, v: mg.einsum("i,j->ij", x, v),
    "tensordot": lambda x, v: mg.tensordot(x, v, 1),
    "masked_fill": lambda x, v: mg.masked_fill(x, [True, False], v[0]),
    "index_put": lambda x, v: x.index_put(([1, 0],), v),
    "pow": lambda x, v: x**v,
}


@pytest.mark.parametrize("name", WITH_LISTS)
@pytest.mark.parametrize("dtype", [mg.float32, mg.float64], ids=lambda d: d.name)
def test_a_list_takes_on_the_dtype_of_the_floats_it_meets(name, dtype):
    x = mg.tensor([0.3, 0.7], dtype)
    for values in ([0.1, 0.2], (0.1, 0.2)):
        got = WITH_LISTS[name](x, values)
        assert got.dtype is dtype
        oracle.assert_same(got.numpy(), WITH_LISTS[name](x, mg.tensor(values, dtype)).numpy())


def test_lists_beside_integers_and_of_other_things():
    n = mg.tensor([1, 2])
    assert (n + [0.5, 1.5]).dtype is mg.float32
    assert (n + [1, 2]).dtype is mg.int64
    assert (mg.tensor([True, False]) + [1, 2]).dtype is mg.int64
    assert mg.add([0.5], [1]).dtype is mg.float32
    assert mg.exp([0.5]).dtype is mg.float32
    assert (mg.tensor([1.0]) + [np.float64(2)]).dtype is mg.float64
    assert (mg.tensor([1.0]) + [mg.tensor(2.0, mg.float64)]).dtype is mg.float64
    assert (n[:0] + []).shape == (0,)
    assert mg.searchsorted([0.1], mg.tensor([0.1], mg.float64)).tolist() == [0]
    assert mg.searchsorted([0.1], mg.tensor([0.1])).tolist() == [0]
    assert mg.isclose(mg.tensor([0.1], mg.float64), [0.1], 0, 0).item()
    assert mg.equal(mg.tensor([0.1], mg.float64), [0.1])


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x ** [2.0, 3.0],
        lambda x: [2.0, 3.0] ** x,
        lambda x: x * [[2.0, 3.0], [0.1, 4.0]],
        lambda x: [[2.0, 3.0], [0.1, 4.0]] @ x,
        lambda x: mg.atan2([0.1, 3.0], x),
        lambda x: mg.where([True, False], x * x, [1.0, 2.0]),
    ],
)
def test_gradients_beside_lists(f, rng):
    oracle.check_gradients(f, [rng.uniform(0.5, 1.5, 2)], rng)


@pytest.mark.parametrize(
    "write",
    [
        lambda x: x.__setitem__(slice(None), 0.1),
        lambda x: x.__setitem__(slice(None), [0.1]),
        lambda x: x.__setitem__([0, 1], (0.1, 0.1)),
        lambda x: x.__setitem__(mg.tensor([True, True]), 0.1),
        lambda x: x.fill_(0.1),
        lambda x: x.copy_([0.1, 0.1]),
        lambda x: x.masked_fill_([True, True], 0.1),
        lambda x: setattr(x, "data", [0.1, 0.1]),
    ],
)
def test_numbers_and_lists_are_written_with_all_digits(write):
    x = mg.zeros(2, dtype=mg.float64)
    write(x)
    assert x.tolist() == [0.1, 0.1]
    n = mg.zeros(2, dtype=mg.int64)
    n[...] = [16777217.0, 2.0**53]
    assert n.tolist() == [16777217, 2**53]


def test_a_long_double_is_a_number():
    assert (np.longdouble(2) * mg.tensor([1.5])).tolist() == [3]


def test_no_dtype_means_the_default():
    """As in PyTorch, where layers hand their own ``dtype=None`` on."""
    g = mg.Generator().manual_seed(0)
    made = (mg.zeros(2, dtype=None), mg.empty(2, dtype=None), mg.eye(2, dtype=None))
    assert [x.dtype for x in (*made, mg.rand(2, dtype=None, generator=g))] == [mg.float32] * 4
    assert mg.nn.LayerNorm(2, dtype=None).weight.dtype is mg.float32
    drawn = mg.randint(0, 3, (2,), dtype=None, generator=g), mg.randperm(2, dtype=None, generator=g)
    assert [x.dtype for x in drawn] == [mg.int64] * 2
    assert mg.float32 != None  # noqa: E711 - the comparison is the matter
    assert mg.float64 != None  # noqa: E711


def test_pytorchs_other_names():
    assert mg.long is mg.int64
    assert mg.double is mg.float64
    assert mg.as_tensor is mg.asarray


@pytest.mark.parametrize("least", [0, -(2**63), 2**63 - 1, 2**63, -(2**63) - 1])
def test_integers_of_other_classes_are_integers(least):
    """They have once been looked for among all of int64."""

    class Other(int):
        pass

    if -(2**63) <= least < 2**63:
        assert (mg.tensor([0]) + Other(least)).tolist() == [least]
        assert (Other(3) * mg.ones(2)).dtype is mg.float32
    else:
        with pytest.raises(OverflowError, match="does not fit"):
            mg.tensor([0]) + Other(least)


def test_pythons_float_is_float64():
    assert mg.zeros(2, dtype=float).dtype is mg.float64
    assert mg.ones(2).to(float).dtype is mg.float64
    assert mg.tensor([1.0, 2.0]).dtype is mg.float32
