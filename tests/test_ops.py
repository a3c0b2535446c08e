"""Every elementwise operation, from the op table: values, derivatives, layouts, shapes.

The table says which operations there are, on which domain they are smooth and which values are
exact; what they should give comes from oracle.py.
"""

from __future__ import annotations

import numpy as np
import oracle
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import minigrad as mg
import minigrad.nn.functional
from minigrad import elementwise, functions, special
from minigrad._c import ffi, lib
from minigrad.ops import TABLE
from minigrad.row_functions import binary, unary

KERNELS = [row for row in TABLE.values() if row.family == "pointwise"]
COMPOSED = [row for row in TABLE.values() if row.family == "composition"]
POINTWISE = [row for row in KERNELS + COMPOSED if row.name in oracle.POINTWISE]
COMPARISONS = [TABLE[name] for name in oracle.COMPARISONS]
TESTS = [TABLE[name] for name in oracle.TESTS]
# Used by other operations only
INTERNAL = {"scale", "index", "index_put_zeros", "slice", "embed", "linear_bias"}
INTERNAL |= {"gelu_tanh", "leaky", "trigamma"}

by_row = pytest.mark.parametrize("row", POINTWISE, ids=lambda row: row.name)
by_dtype = pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float32", "float64"])


def function_of(row):
    for place in (elementwise, special):
        if hasattr(place, row.name):
            return getattr(place, row.name)
    # an activation, whose public function takes more arguments
    return unary(row) if row.arity == 1 else binary(row)


def on_domain(row, rng, shape, dtype=np.float64):
    return [rng.uniform(low, high, shape).astype(dtype) for low, high in row.domain]


def leaves(arrays):
    return [mg.tensor(a, requires_grad=True) for a in arrays]


# ---- the world is closed -------------------------------------------------------------------------


def test_every_kernel_has_a_row_and_every_row_a_kernel():
    kernels = {ffi.string(lib.mg_op_name(i)).decode(): i for i in range(lib.mg_op_count())}
    with_kernel = {row.name: row.id for row in TABLE.values() if row.id >= 0}
    assert with_kernel == kernels
    for row in TABLE.values():
        own = (row.forward is not None, row.formula is not None)
        assert sum(own) == 1, f"{row.name}: a kernel, a forward or a formula"
        if row.id >= 0:
            assert lib.mg_op_arity(row.id) == row.arity
    assert lib.mg_op_name(-1) == ffi.NULL
    assert lib.mg_op_name(lib.mg_op_count()) == ffi.NULL


def test_every_row_has_an_oracle_and_every_oracle_a_row():
    assert {row.name for row in POINTWISE} == set(oracle.POINTWISE) == set(oracle.PARTIALS)
    assert {row.name for row in KERNELS} <= set(oracle.POINTWISE)
    without_gradient = {row.name for row in TABLE.values() if row.family == "zero" and row.id >= 0}
    assert without_gradient == {*oracle.TESTS, *oracle.COMPARISONS, *oracle.BITS}


def test_fused_derivatives_are_those_that_are_not_constant():
    """A constant partial has no kernel: it is a factor."""
    for row in KERNELS:
        if not any(map(callable, row.derivatives)):
            assert not lib.mg_op_has_vjp(row.id), row.name


def test_every_row_is_public_or_internal():
    public = set(functions.__all__)
    assert INTERNAL.isdisjoint(public)
    elsewhere = {*mg.nn.functional.__all__, *special.__all__, *INTERNAL}
    missing = {row.name for row in POINTWISE + COMPARISONS + TESTS} - public - elsewhere
    assert not missing, f"rows without a public function: {sorted(missing)}"
    for name in public:
        assert getattr(mg, name) is getattr(functions, name)


@pytest.mark.parametrize("row", TABLE.values(), ids=lambda row: row.name)
def test_a_row_is_complete(row):
    assert row.doc
    assert not row.doc.endswith(".")
    if row.family == "pointwise":
        assert len(row.derivatives) == row.arity
    if row in POINTWISE:
        assert len(row.domain) == row.arity
        assert all(low < high for low, high in row.domain)
        assert all(len(values) == row.arity + 1 for values in row.special)
        for names in row.needs:
            assert set(names) <= {"x", "a", "b", "y"}


# ---- values --------------------------------------------------------------------------------------


def any_floats(rng, dtype, n):
    """Floats of every size and kind: random bits, moderate numbers, and the edges of the format."""
    bits = rng.integers(0, 2**64, n, np.uint64)
    random = (
        bits.astype(np.uint32).view(np.float32) if dtype is np.float32 else bits.view(np.float64)
    )
    info = np.finfo(dtype)
    edges = [
        0.0,
        0.5,
        1.0,
        2.0,
        np.pi,
        info.tiny,
        info.smallest_subnormal,
        info.max,
        info.eps,
        np.inf,
    ]
    edges += [
        np.nextafter(dtype(1), dtype(2)),
        np.nextafter(dtype(1), dtype(0)),
        88.5,
        709.5,
        np.nan,
    ]
    edges = np.array(edges, dtype)
    near = rng.uniform(-20, 20, n).astype(dtype)
    small = (rng.uniform(-1, 1, n) * 2.0 ** rng.integers(-30, 1, n)).astype(dtype)
    return np.concatenate([random, edges, -edges, near, small])


def is_slow(row, dtype):
    return dtype is np.float64 and hasattr(oracle.POINTWISE[row.name], "is_slow")


@by_dtype
@by_row
def test_values(row, dtype, rng):
    n = 40 if is_slow(row, dtype) else 4000
    inputs = [rng.permutation(any_floats(rng, dtype, n)) for _ in range(row.arity)]
    got = function_of(row)(*[mg.from_numpy(x) for x in inputs]).numpy()
    assert got.dtype == dtype
    oracle.assert_pointwise(row, got, *inputs)


@by_dtype
@by_row
def test_values_on_the_domain(row, dtype, rng):
    inputs = on_domain(row, rng, 200 if is_slow(row, dtype) else 10000, dtype)
    got = function_of(row)(*[mg.from_numpy(x) for x in inputs]).numpy()
    oracle.assert_pointwise(row, got, *inputs)


@by_dtype
@pytest.mark.parametrize("name", ["sin", "cos"])
def test_large_angles(name, dtype, rng):
    """Reduced with all of pi that it takes, in values and in derivatives."""
    other = {"sin": np.cos, "cos": lambda x: -np.sin(x)}[name]
    x = rng.uniform(1, 2, (9, 40)) * 10.0 ** rng.integers(-3, 37, (9, 40))
    x = x.astype(dtype)
    wide = x.astype(oracle.wide(dtype))
    for layout in oracle.LAYOUTS:
        leaf = oracle.tensor_in_layout(x, layout, True)
        y = getattr(mg, name)(leaf)
        oracle.assert_ulps(y.detach().numpy(), oracle.pointwise(name, x), 1.5, [x])
        for graph in (False, True):
            (g,) = mg.grad(y.sum(), leaf, retain_graph=True, create_graph=graph)
            oracle.assert_ulps(g.detach().numpy(), other(wide), 1.5, [x])
    for n in (1, 2, 5, 17):
        lone = getattr(mg, name)(mg.tensor(x[0, :n])).numpy()
        oracle.assert_same(lone, getattr(mg, name)(mg.tensor(x)).numpy()[0, :n])


SPECIAL = [(row, values) for row in POINTWISE for values in row.special]


@by_dtype
@pytest.mark.parametrize(("row", "values"), SPECIAL, ids=[f"{r.name}{v}" for r, v in SPECIAL])
def test_special_values_are_exact(row, values, dtype):
    *inputs, expected = values
    for n in (1, 3, 37):  # a lone element, less than a vector, vectors and a rest
        arrays = [np.full(n, x, dtype) for x in inputs]
        got = function_of(row)(*[mg.tensor(a) for a in arrays])
        oracle.assert_same(got.numpy(), np.full(n, expected, dtype))


@pytest.mark.parametrize("row", COMPARISONS, ids=lambda row: row.name)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.bool_])
def test_comparisons(row, dtype, rng):
    values = (
        np.array([0, -0.0, 1, -1, 2, np.nan, np.inf, -np.inf])
        if np.dtype(dtype).kind == "f"
        else [0, 1, 2, -3]
    )
    a = rng.choice(values, 500).astype(dtype)
    b = rng.choice(values, 500).astype(dtype)
    got = function_of(row)(mg.tensor(a), mg.tensor(b))
    assert not got.requires_grad
    oracle.assert_same(got.numpy(), oracle.COMPARISONS[row.name](a, b))


@pytest.mark.parametrize("row", TESTS, ids=lambda row: row.name)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.bool_])
def test_tests(row, dtype, rng):
    values = [0, -0.0, 1, -1, np.nan, -np.nan, np.inf, -np.inf, 5e-324, 1e308, 1e-40]
    if np.dtype(dtype).kind != "f":
        values = [0, 1, -1, 2**40]
    with np.errstate(all="ignore"):
        x = np.array(values * 9).astype(dtype)
    got = function_of(row)(mg.tensor(x))
    oracle.assert_same(got.numpy(), oracle.TESTS[row.name](x))


@pytest.mark.parametrize("row", COMPARISONS + TESTS, ids=lambda row: row.name)
def test_questions_have_no_gradient(row):
    x = mg.tensor([1.0, 2.0], requires_grad=True)
    assert not function_of(row)(*[x, 1.5][: row.arity]).requires_grad


# ---- derivatives ---------------------------------------------------------------------------------


@by_row
def test_derivatives_by_finite_differences(row, rng):
    oracle.check_gradients(function_of(row), on_domain(row, rng, (2, 3)), rng)


@by_dtype
@by_row
def test_first_derivative_by_hand(row, dtype, rng):
    inputs = on_domain(row, rng, (7, 11), dtype)
    g = rng.normal(size=(7, 11)).astype(dtype)
    wide = [x.astype(oracle.wide(dtype)) for x in inputs]
    for graph in (False, True):
        xs = leaves(inputs)
        found = mg.grad(function_of(row)(*xs), xs, mg.tensor(g), create_graph=graph)
        for got, partial in zip(found, oracle.PARTIALS[row.name], strict=True):
            want = (g * partial(*wide)).astype(dtype)
            # A partial made from the rounded output has the condition of that: 1 - y*y near 1.
            unit = np.finfo(dtype).eps
            np.testing.assert_allclose(got.detach().numpy(), want, rtol=8 * unit, atol=4 * unit)


def points(row, rng, dtype):
    """Domain points and everything special: zeros of both signs, infinities, NaN, ones."""
    edges = np.array([0.0, -0.0, 1.0, -1.0, 2.0, -2.5, 0.5, np.inf, -np.inf, np.nan], dtype)
    grids = np.meshgrid(*[edges] * row.arity, indexing="ij")
    return [
        np.concatenate([grid.ravel(), x])
        for grid, x in zip(grids, on_domain(row, rng, 40, dtype), strict=True)
    ]


@by_dtype
@by_row
def test_fused_kernel_and_formula_agree(row, dtype, rng):
    """Also at every special point; the two round differently, so finite values get a few ULP."""
    inputs = points(row, rng, dtype)
    g = rng.normal(size=inputs[0].shape).astype(dtype)
    g[::7] = 0
    results = []
    for graph in (False, True):
        xs = leaves(inputs)
        found = mg.grad(function_of(row)(*xs), xs, mg.tensor(g), create_graph=graph)
        results.append([f.detach().numpy() for f in found])
    for i, (fused, formula) in enumerate(zip(*results, strict=True)):
        unit = np.finfo(dtype).eps
        close = np.isclose(fused, formula, rtol=8 * unit, atol=8 * unit, equal_nan=True)
        at = [x[~close] for x in inputs]
        assert close.all(), (
            f"input {i} at {at}, g {g[~close]}: {fused[~close]} != {formula[~close]}"
        )


@by_dtype
@by_row
def test_a_zero_gradient_stays_zero(row, dtype, rng):
    """Rule 2: whatever the partial is, an upstream gradient of exactly 0 gives exactly 0."""
    inputs = points(row, rng, dtype)
    for graph in (False, True):
        xs = leaves(inputs)
        found = mg.grad(
            function_of(row)(*xs),
            xs,
            mg.tensor(np.zeros(inputs[0].shape, dtype)),
            create_graph=graph,
        )
        for i, got in enumerate(found):
            got = got.detach().numpy()
            wrong = got != 0
            assert not wrong.any(), f"graph={graph}, input {i} at {[x[wrong] for x in inputs]}"


@by_row
def test_only_the_wanted_gradients(row, rng):
    """An input that needs no gradient gets none, and the others get the same as always."""
    inputs = on_domain(row, rng, (5,))
    xs = leaves(inputs)
    every = mg.grad(function_of(row)(*xs).sum(), xs)
    for i in range(row.arity):
        some = [mg.tensor(x, requires_grad=k == i) for k, x in enumerate(inputs)]
        function_of(row)(*some).sum().backward()
        assert [x.grad is not None for x in some] == [k == i for k in range(row.arity)]
        oracle.assert_same(some[i].grad.numpy(), every[i].numpy())


# ---- layouts -------------------------------------------------------------------------------------


@by_dtype
@by_row
@pytest.mark.parametrize("shape", [(5, 33), (3, 1, 7)], ids=str)
def test_layouts_give_the_same_bits(row, dtype, shape, rng):
    inputs = on_domain(row, rng, shape, dtype)
    g = rng.normal(size=shape).astype(dtype)
    xs = leaves(inputs)
    y = function_of(row)(*xs)
    expected = mg.grad(y, xs, mg.tensor(g))
    for layout in oracle.LAYOUTS:
        zs = [oracle.tensor_in_layout(x, layout, True) for x in inputs]
        z = function_of(row)(*zs)
        assert z.is_contiguous()
        oracle.assert_same(z.detach().numpy(), y.detach().numpy())
        found = mg.grad(z, zs, oracle.tensor_in_layout(g, layout))
        for got, want in zip(found, expected, strict=True):
            oracle.assert_same(got.numpy(), want.numpy())


@by_row
def test_stride_zero_inputs_and_cotangents(row, rng):
    shape = (4, 6)
    inputs = on_domain(row, rng, (4, 1), np.float32)
    g = rng.normal(size=(1, 6)).astype(np.float32)
    full = leaves([np.broadcast_to(x, shape).copy() for x in inputs])
    y = function_of(row)(*full)
    expected = mg.grad(y, full, mg.tensor(np.broadcast_to(g, shape)))
    spread = [mg.tensor(x).expand(shape).requires_grad_() for x in inputs]
    z = function_of(row)(*spread)
    oracle.assert_same(z.detach().numpy(), y.detach().numpy())
    found = mg.grad(z, spread, mg.tensor(g).expand(shape))
    for got, want in zip(found, expected, strict=True):
        oracle.assert_same(got.numpy(), want.numpy())


@settings(max_examples=300)
@given(data=st.data())
def test_any_strides(data):
    """Operands of any strides, broadcast together: exact sums, and what reads only one of them."""
    shapes = data.draw(
        hnp.mutually_broadcastable_shapes(num_shapes=2, max_dims=5, min_side=0, max_side=5)
    )
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    dtype = data.draw(st.sampled_from([np.float32, np.float64, np.int64]))
    (a, x), (b, y) = (
        oracle.any_view(data, shape, lambda s: rng.integers(-99, 99, s).astype(dtype))
        for shape in shapes.input_shapes
    )
    oracle.assert_same((x + y).numpy(), np.asarray(a + b))
    oracle.assert_same((x < y).numpy(), np.asarray(a < b))
    oracle.assert_same((x * x).numpy(), np.asarray(a * a))
    oracle.assert_same(mg.where(x > y, x, y).numpy(), np.asarray(np.where(a > b, a, b)))
    oracle.assert_same(x.clone().numpy(), np.ascontiguousarray(a).reshape(a.shape))
    oracle.assert_same(x.to(mg.float64).numpy(), a.astype(np.float64))
    into = mg.zeros(shapes.result_shape, dtype=dtype)
    oracle.assert_same(into.copy_(y).numpy(), np.broadcast_to(b, into.shape))
    target, _ = oracle.any_view(data, into.shape, lambda s: np.zeros(s, dtype))
    if target.flags.writeable:
        mg.from_numpy(target).copy_(x)
        oracle.assert_same(target, np.broadcast_to(a, into.shape))


# ---- shapes --------------------------------------------------------------------------------------


@by_row
@pytest.mark.parametrize(
    "shape", [(), (0,), (3, 0, 2), (1,), (1, 1, 1), (2, 3, 1, 2, 1, 2)], ids=str
)
def test_shapes(row, shape, rng):
    inputs = on_domain(row, rng, shape)
    xs = leaves(inputs)
    y = function_of(row)(*xs)
    assert y.shape == shape
    oracle.assert_pointwise(row, y.detach().numpy(), *inputs)
    for graph in (False, True):
        for x, got in zip(xs, mg.grad(y, xs, mg.ones_like(y), True, graph), strict=True):
            assert got.shape == x.shape
            assert got.dtype is x.dtype


BINARY = [row for row in POINTWISE if row.arity == 2]


@pytest.mark.parametrize("row", BINARY, ids=lambda row: row.name)
@settings(max_examples=15)
@given(data=st.data())
def test_broadcasting(row, data):
    """Values as NumPy broadcasts, and gradients summed over exactly the broadcast axes."""
    shapes = data.draw(
        hnp.mutually_broadcastable_shapes(num_shapes=2, max_dims=4, min_side=0, max_side=4)
    )
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    inputs = [
        rng.uniform(*interval, s)
        for interval, s in zip(row.domain, shapes.input_shapes, strict=True)
    ]
    xs = leaves(inputs)
    y = function_of(row)(*xs)
    assert y.shape == shapes.result_shape
    full = [np.broadcast_to(x, shapes.result_shape) for x in inputs]
    oracle.assert_pointwise(row, y.detach().numpy(), *full)
    g = rng.normal(size=y.shape)
    for graph in (False, True):
        found = mg.grad(y, xs, mg.tensor(g), retain_graph=True, create_graph=graph)
        for x, got, partial in zip(inputs, found, oracle.PARTIALS[row.name], strict=True):
            want = g * partial(*full)
            added = tuple(range(want.ndim - x.ndim))
            want = want.sum(added)
            ones = tuple(d for d, n in enumerate(x.shape) if n == 1)
            want = want.sum(ones, keepdims=True)
            assert got.shape == x.shape
            np.testing.assert_allclose(got.detach().numpy(), want, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("row", BINARY, ids=lambda row: row.name)
def test_derivatives_of_broadcast_inputs(row, rng):
    (low, high), (low2, high2) = row.domain
    inputs = [rng.uniform(low, high, (2, 1)), rng.uniform(low2, high2, (3,))]
    oracle.check_gradients(function_of(row), inputs, rng)


@pytest.mark.parametrize("row", BINARY, ids=lambda row: row.name)
def test_the_same_tensor_twice(row, rng):
    """f(x, x): both partials reach the one leaf."""
    low = max(interval[0] for interval in row.domain)
    high = min(interval[1] for interval in row.domain)
    if low >= high:
        low, high = row.domain[1]
    x = rng.uniform(low, high, 6)
    leaf = mg.tensor(x, requires_grad=True)
    function_of(row)(leaf, leaf).sum().backward()
    if row.name in ("maximum", "minimum", "fmax", "fmin"):
        want = np.ones(6)
    else:
        want = sum(partial(x, x) for partial in oracle.PARTIALS[row.name])
    np.testing.assert_allclose(leaf.grad.numpy(), want, rtol=1e-12, atol=1e-12)


@by_dtype
@by_row
def test_every_length_has_the_right_rest(row, dtype, rng):
    """Vector loops and their rests give an element the same bits wherever it stands."""
    whole = on_domain(row, rng, 70001, dtype)
    expected = function_of(row)(*[mg.from_numpy(x) for x in whole]).numpy()
    for n in (1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 127, 4095, 4097):
        start = rng.integers(0, 60000)
        inputs = [x[start : start + n] for x in whole]
        got = function_of(row)(*[mg.from_numpy(x) for x in inputs]).numpy()
        oracle.assert_same(got, expected[start : start + n])


# ---- integers and booleans -----------------------------------------------------------------------

INTEGER = {
    "neg",
    "abs",
    "sign",
    "square",
    "relu",
    "relu6",
    "floor",
    "ceil",
    "trunc",
    "round",
    "frac",
}
INTEGER |= {"add", "sub", "mul", "pow", "maximum", "minimum", "fmax", "fmin", "heaviside"}
INTEGER |= {"fmod", "remainder", "floor_divide"}
BOOLEAN = {"add", "mul", "maximum", "minimum", "fmax", "fmin"}
REFUSED = {("bool", "neg"), ("bool", "sub"), ("bool", "scale"), ("int64", "scale")}


def check_on_integers(row, inputs):
    """int64 and bool: whole results where they are, else those of the default float dtype."""
    operands = [mg.tensor(x) for x in inputs]
    dtype = operands[0].dtype.name
    if (dtype, row.name) in REFUSED:
        with pytest.raises(TypeError, match=rf"\[{row.name}\] not offered for {dtype}"):
            function_of(row)(*operands)
        return
    got = function_of(row)(*operands).numpy()
    whole = [x.astype(np.int64) for x in inputs]
    if row.name in BOOLEAN and dtype == "bool":
        oracle.assert_same(got, oracle.POINTWISE[row.name](*inputs))
    elif row.name in INTEGER:
        with np.errstate(all="ignore"):
            oracle.assert_same(got, np.asarray(oracle.POINTWISE[row.name](*whole)).astype(np.int64))
    else:
        assert got.dtype == np.float32
        oracle.assert_pointwise(row, got, *[x.astype(np.float32) for x in inputs])


@by_row
def test_int64(row, rng):
    inputs = [rng.integers(-1000, 1000, 300) for _ in range(row.arity)]
    if row.name == "pow":
        inputs[1] = rng.integers(0, 30, 300)  # wraps around, as NumPy's
    elif row.name in ("fmod", "remainder", "floor_divide"):
        inputs[1][inputs[1] == 0] = 7
        inputs[0][:3], inputs[1][:3] = -(2**63), [-1, 1, 3]
    check_on_integers(row, inputs)


@by_row
def test_bool(row):
    inputs = [np.array([False, False, True, True]), np.array([False, True, False, True])]
    if row.name in ("fmod", "remainder", "floor_divide"):
        inputs[1][:] = True
    check_on_integers(row, inputs[: row.arity])


@pytest.mark.parametrize("name", oracle.BITS)
@pytest.mark.parametrize("dtype", [np.int64, np.bool_])
def test_bits(name, dtype, rng):
    inputs = [rng.integers(-(2**63), 2**63, 200), rng.integers(-3, 70, 200)]
    if dtype is np.bool_:
        inputs = [x > 20 for x in inputs]
    inputs = inputs[: TABLE[name].arity]
    got = getattr(mg, name)(*[mg.tensor(x) for x in inputs]).numpy()
    if "shift" in name:
        inputs = [x.astype(np.int64) for x in inputs]
    oracle.assert_same(got, oracle.BITS[name](*inputs))
    with pytest.raises(TypeError, match=rf"\[{name}\] not offered for float32"):
        getattr(mg, name)(*[mg.ones(2)] * len(inputs))


@pytest.mark.parametrize("name", ["fmod", "remainder", "floor_divide"])
def test_integers_are_not_divided_by_zero(name):
    f = getattr(mg, name)
    with pytest.raises(ZeroDivisionError, match=rf"\[{name}\] an integer divided by zero"):
        f(mg.tensor([1, 2]), mg.tensor([1, 0]))
    with pytest.raises(ZeroDivisionError):
        f(mg.tensor([1, 2]), 0)
    with pytest.raises(ZeroDivisionError):
        f(5, mg.tensor([True, False]))
    assert f(mg.zeros(0, dtype=mg.int64), mg.zeros(0, dtype=mg.int64)).shape == (0,)
