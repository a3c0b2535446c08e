"""NumPy's own functions and operators on tensors: they record, differentiate, or refuse by name."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import oracle
import pytest

import minigrad as mg

UFUNCS_1 = dict.fromkeys(
    (
        *("absolute", "fabs", "negative", "positive", "exp", "exp2", "expm1", "log", "log2"),
        *("log10", "log1p", "sqrt", "square", "cbrt", "reciprocal", "sin", "cos", "tan", "arcsin"),
        *(
            "arccos",
            "arctan",
            "sinh",
            "cosh",
            "tanh",
            "arcsinh",
            "arctanh",
            "sign",
            "floor",
            "ceil",
        ),
        *("trunc", "rint", "deg2rad", "rad2deg", "degrees", "radians", "isnan", "isinf"),
        *("isfinite", "signbit", "logical_not"),
    ),
    (0.2, 0.9),
) | {"arccosh": (1.2, 3.0)}
UFUNCS_2 = (
    *("add", "subtract", "multiply", "divide", "true_divide", "power", "float_power"),
    *("floor_divide", "remainder", "mod", "fmod", "maximum", "minimum", "fmax", "fmin", "hypot"),
    *("arctan2", "logaddexp", "logaddexp2", "copysign", "nextafter", "heaviside", "equal"),
    *("not_equal", "less", "less_equal", "greater", "greater_equal", "logical_and", "logical_or"),
    "logical_xor",
)


def leaf(values):
    return mg.tensor(values, requires_grad=True)


def assert_close(got, want):
    assert isinstance(got, mg.Tensor)
    got, want = got.detach().numpy(), np.asarray(want)
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("name", UFUNCS_1)
def test_ufuncs_of_one(name, rng):
    a = rng.uniform(*UFUNCS_1[name], (2, 3))
    ufunc = getattr(np, name)
    got = ufunc(leaf(a))
    assert_close(got, ufunc(a))
    assert got.requires_grad == got.dtype.is_floating_point


@pytest.mark.parametrize("name", UFUNCS_2)
def test_ufuncs_of_two_in_either_order(name, rng):
    a, b = rng.uniform(0.2, 3, (2, 3)), rng.uniform(0.2, 3, 3)
    ufunc = getattr(np, name)
    for x, y in ((leaf(a), leaf(b)), (a, leaf(b)), (leaf(a), b), (leaf(a), 2.0), (2.0, leaf(b))):
        values = [v.detach().numpy() if isinstance(v, mg.Tensor) else v for v in (x, y)]
        assert_close(ufunc(x, y), ufunc(*values))


def test_operators_with_arrays_and_numpy_numbers_record(rng):
    a = rng.uniform(1, 2, 3)
    x = leaf(a)
    for call in (
        lambda x, k: k + x,
        lambda x, k: k - x,
        lambda x, k: k * x,
        lambda x, k: k / x,
        lambda x, k: k**x,
        lambda x, k: k @ x if np.ndim(k) else k * x,
        lambda x, k: x - k,
    ):
        for k in (np.array([1.0, 2.0, 3.0]), np.float64(2), np.int64(3)):
            oracle.check_gradients(lambda x, call=call, k=k: call(x, k), [a], rng)
    assert (np.float64(2) * mg.ones(2)).dtype is mg.float32
    assert (np.ones(2) * mg.ones(2)).dtype is mg.float64
    assert (np.array(2.0) * mg.ones(2)).dtype is mg.float64
    assert isinstance(np.ones(3) == x, mg.Tensor)


def test_reductions_and_accumulations_of_ufuncs(rng):
    a = rng.uniform(1, 2, (3, 4))
    for got, want in (
        (np.add.reduce(leaf(a)), np.add.reduce(a)),
        (np.add.reduce(leaf(a), axis=None), a.sum()),
        (np.multiply.reduce(leaf(a), axis=1, keepdims=True), a.prod(1, keepdims=True)),
        (np.maximum.reduce(leaf(a), axis=(0, 1)), a.max()),
        (np.logaddexp.reduce(leaf(a), axis=1), np.logaddexp.reduce(a, axis=1)),
        (np.add.accumulate(leaf(a), axis=1), a.cumsum(1)),
        (np.multiply.outer(leaf(a[0]), a[1]), np.multiply.outer(a[0], a[1])),
    ):
        assert_close(got, want)


SPD = np.array([[4.0, 1.0], [1.0, 3.0]])
CALLS = {
    "sum": lambda np, x: np.sum(x, axis=0),
    "sum keepdims": lambda np, x: np.sum(x, 1, keepdims=True),
    "sum dtype": lambda np, x: np.sum(x, dtype=float if np is mg else "float64"),
    "mean": lambda np, x: np.mean(x, axis=(0, 1)),
    "prod": lambda np, x: np.prod(x, axis=1),
    "max": lambda np, x: np.max(x, axis=0),
    "min": lambda np, x: np.min(x),
    "amax": lambda np, x: np.amax(x, axis=1, keepdims=True),
    "argmax": lambda np, x: np.argmax(x, axis=1),
    "argmin": lambda np, x: np.argmin(x),
    "all": lambda np, x: np.all(x),
    "any": lambda np, x: np.any(x, axis=0),
    "var": lambda np, x: np.var(x, ddof=1),
    "std": lambda np, x: np.std(x, axis=0, ddof=1),
    "cumsum": lambda np, x: np.cumsum(x, axis=1),
    "cumprod": lambda np, x: np.cumprod(x, axis=0),
    "ptp": lambda np, x: np.ptp(x, axis=0),
    "nansum": lambda np, x: np.nansum(x, axis=0),
    "nanmean": lambda np, x: np.nanmean(x),
    "median": lambda np, x: np.median(x),
    "quantile": lambda np, x: np.quantile(x, 0.3),
    "count_nonzero": lambda np, x: np.count_nonzero(x),
    "reshape": lambda np, x: np.reshape(x, (4, 3)),
    "ravel": lambda np, x: np.ravel(x),
    "transpose": lambda np, x: np.transpose(x),
    "transpose axes": lambda np, x: np.transpose(x, (1, 0)),
    "swapaxes": lambda np, x: np.swapaxes(x, 0, 1),
    "moveaxis": lambda np, x: np.moveaxis(x, 0, -1),
    "expand_dims": lambda np, x: np.expand_dims(x, (0, 2)),
    "squeeze": lambda np, x: np.squeeze(x[:1]),
    "broadcast_to": lambda np, x: np.broadcast_to(x, (2, 3, 4)),
    "concatenate": lambda np, x: np.concatenate([x, x], axis=1),
    "stack": lambda np, x: np.stack([x, x * 2], axis=-1),
    "hstack": lambda np, x: np.hstack([x, x]),
    "vstack": lambda np, x: np.vstack([x, x]),
    "dstack": lambda np, x: np.dstack([x, x]),
    "column_stack": lambda np, x: np.column_stack([x, x]),
    "flip": lambda np, x: np.flip(x, 0),
    "fliplr": lambda np, x: np.fliplr(x),
    "roll": lambda np, x: np.roll(x, 2, axis=1),
    "rot90": lambda np, x: np.rot90(x),
    "tile": lambda np, x: np.tile(x, (2, 1)),
    "repeat": lambda np, x: np.repeat(x, 2, axis=0),
    "tril": lambda np, x: np.tril(x),
    "triu": lambda np, x: np.triu(x, 1),
    "diagonal": lambda np, x: np.diagonal(x),
    "trace": lambda np, x: np.trace(x),
    "where": lambda np, x: np.where(x > 1.5, x, 0.0),
    "clip": lambda np, x: np.clip(x, 1.2, 1.8),
    "round": lambda np, x: np.round(x, 1),
    "dot": lambda np, x: np.dot(x, x.T),
    "matmul": lambda np, x: np.matmul(x, x.T),
    "inner": lambda np, x: np.inner(x, x),
    "outer": lambda np, x: np.outer(x[0], x[1]),
    "kron": lambda np, x: np.kron(x, x),
    "tensordot": lambda np, x: np.tensordot(x, x, axes=([1], [1])),
    "einsum": lambda np, x: np.einsum("ij,kj->ik", x, x),
    "take": lambda np, x: np.take(x, [2, 0], axis=1),
    "take flat": lambda np, x: np.take(x, [5, 0]),
    "take_along_axis": lambda np, x: np.take_along_axis(x, np.argmax(x, axis=1)[:, None], axis=1),
    "sort": lambda np, x: np.sort(x, axis=0),
    "argsort": lambda np, x: np.argsort(x, axis=1),
    "nan_to_num": lambda np, x: np.nan_to_num(x),
    "isclose": lambda np, x: np.isclose(x, x + 1e-12),
    "diff": lambda np, x: np.diff(x, axis=1),
    "zeros_like": lambda np, x: np.zeros_like(x),
    "copy": lambda np, x: np.copy(x),
    "atleast_2d": lambda np, x: np.atleast_2d(x[0]),
    "norm": lambda np, x: np.linalg.norm(x),
    "inv": lambda np, x: np.linalg.inv(x[:2, :2] @ x[:2, :2].T + SPD),
    "det": lambda np, x: np.linalg.det(x[:3, :3]),
    "solve": lambda np, x: np.linalg.solve(x[:2, :2] @ x[:2, :2].T + SPD, x[:2]),
    "cholesky": lambda np, x: np.linalg.cholesky(x[:2, :2] @ x[:2, :2].T + SPD),
}


@pytest.mark.parametrize("name", CALLS)
def test_numpys_functions(name, rng):
    a = rng.uniform(1, 2, (3, 4))
    got = CALLS[name](np, leaf(a))
    assert_close(got, CALLS[name](np, a))
    still = {"zeros_like", "round"}
    assert (
        got.requires_grad == (got.dtype.is_floating_point and name not in still) or name == "round"
    )


def test_results_that_are_no_tensors(rng):
    a = rng.uniform(1, 2, (3, 4))
    x = leaf(a)
    assert (np.shape(x), np.ndim(x), np.size(x)) == ((3, 4), 2, 12)
    assert np.allclose(x, a) is True
    assert np.array_equal(x, a) is True
    assert [t.shape for t in np.split(x, 2, axis=1)] == [(3, 2), (3, 2)]
    assert [t.tolist() for t in np.nonzero(mg.tensor([0, 3, 4]))] == [[1, 2]]


def test_what_is_not_offered_raises_and_names_itself():
    x = leaf([1.0, 2.0])
    for call, message in (
        (lambda: np.fft.fft(x), r"\[numpy\.fft\.fft\] not offered for tensors"),
        (lambda: np.roots(x), r"\[numpy\.roots\] not offered"),
        (lambda: np.frexp(x), r"\[numpy\.frexp\] not offered"),
        (lambda: np.add.reduceat(x, [0]), r"\[numpy\.add\.reduceat\] not offered"),
        (lambda: np.copy(x, order="F"), r"\[numpy\.copy\] .*order"),
        (lambda: np.logaddexp.reduce(x, initial=3.0), r"\[numpy\.logaddexp\.reduce\] .*init"),
        (lambda: np.exp(x, where=[True, False]), r"\[numpy\.exp\] where= is offered with out="),
        (lambda: np.exp(x, out=np.zeros(2)), r"\[numpy\.exp\] .*out="),
        (lambda: np.zeros(2).__iadd__(x), r"\[numpy\.add\] .*out="),
    ):
        with pytest.raises(TypeError, match=message):
            call()


def test_conversion_of_a_tracked_tensor_raises_with_the_way_out():
    with pytest.raises(RuntimeError, match=r"requires grad.*use x\.detach\(\)\.numpy\(\)"):
        np.asarray(leaf([1.0]))


@pytest.mark.parametrize("dtype", [None, np.float32, np.float64, np.int64])
@pytest.mark.parametrize("copying", [None, True, False])
def test_the_array_protocol(dtype, copying):
    x = mg.tensor([1.0, 2.0])
    if copying is False and dtype not in (None, np.float32):
        with pytest.raises(ValueError, match="needs a copy"):
            x.__array__(dtype, copy=False)
        return
    # asarray copies where it must, which is what copy=None says from NumPy 2 on.
    found = np.asarray(x, dtype) if copying is None else np.array(x, dtype=dtype, copy=copying)
    assert found.dtype == (dtype or np.float32)
    shares = np.shares_memory(found, x.numpy())
    assert shares == (copying is not True and dtype in (None, np.float32))


def test_matplotlib_plots_detached_tensors():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    x = mg.linspace(0, 1, 5)
    pyplot.switch_backend("agg")
    figure, axes = pyplot.subplots()
    try:
        (line,) = axes.plot(x, x.sin())
        axes.scatter(x, x**2)
        axes.bar(x, x)
        axes.hist(x.numpy())
        axes.imshow(mg.outer(x, x))
        axes.fill_between(x, x, x + 1)
        np.testing.assert_array_equal(line.get_ydata(), x.sin().numpy())
    finally:
        pyplot.close(figure)


# ---- Python's protocols --------------------------------------------------------------------------


def test_iteration_length_and_numbers():
    x = mg.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert len(x) == 2
    assert [row.tolist() for row in x] == x.tolist()
    _, b = x
    assert b.tolist() == [3, 4]
    assert float(mg.tensor(2.5)) == 2.5
    assert int(mg.tensor([[2.9]])) == 2
    assert bool(mg.tensor(0.0)) is False
    assert list(range(5))[mg.tensor(3)] == 3
    assert 3.0 in x
    assert 7.0 not in x
    for wrong, kind, message in (
        (lambda: len(mg.tensor(1.0)), TypeError, "0-d tensor has no length"),
        (lambda: iter(mg.tensor(1.0)), TypeError, "0-d tensor cannot be iterated"),
        (lambda: bool(x), ValueError, r"use \.any\(\) or \.all\(\)"),
        (lambda: float(x), ValueError, "has 4 elements"),
        (lambda: list(range(5))[mg.tensor(1.0)], TypeError, "cannot be an index"),
    ):
        with pytest.raises(kind, match=message):
            wrong()


def test_formatting():
    x = mg.tensor(2.0, requires_grad=True)
    assert f"{x:.3f} {x}" == "2.000 2.0"
    assert f"{mg.tensor([1.0])}" == "tensor([1.])"
    assert f"{mg.tensor(3):>4}" == "   3"


def test_identity_and_hash():
    x, y = mg.tensor([1.0]), mg.tensor([1.0])
    assert len({x, y, x}) == 2
    assert {x: 1}[x] == 1


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
@pytest.mark.parametrize("dtype", [mg.bool, mg.int64, mg.float32, mg.float64], ids=lambda d: d.name)
def test_copies(copied, dtype):
    base = mg.tensor([[0, 1, 2], [3, 4, 5]]).to(dtype)
    for x in (base, base.T, base[:, ::-1], base[:0], base[0, 0]):
        other = copied(x)
        oracle.assert_same(other.numpy(), x.numpy())
        assert other.is_leaf
        assert not other.requires_grad
        assert not x.size or not np.shares_memory(other.numpy(), x.numpy())


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_copies_of_tracked_tensors(copied):
    x = leaf([1.0, 2.0])
    (x * x).sum().backward()
    other = copied(x)
    assert other.requires_grad
    assert other.is_leaf
    if copied is copy.deepcopy:
        assert other.grad.tolist() == [2, 4]
        assert not np.shares_memory(other.grad.numpy(), x.grad.numpy())
    result = copied(x * 2)
    assert result.is_leaf
    assert not result.requires_grad
    assert result.tolist() == [2, 4]


def test_a_shallow_copy_shares_memory():
    x = leaf([1.0, 2.0])
    other = copy.copy(x)
    assert other is not x
    assert other.requires_grad
    assert other.is_leaf
    assert np.shares_memory(other.detach().numpy(), x.detach().numpy())
    assert not copy.copy(x * 2).requires_grad


# ---- printing ------------------------------------------------------------------------------------


def test_repr():
    x = leaf([1.0, 2.0])
    assert repr(x) == "tensor([1., 2.], requires_grad=True)"
    assert repr(x * 2) == "tensor([2., 4.], grad_fn=<mul>)"
    assert repr(mg.zeros(2, dtype=mg.float64)) == "tensor([0., 0.], dtype=minigrad.float64)"
    assert repr(mg.tensor([True, False])) == "tensor([ True, False])"
    assert repr(mg.tensor(3)) == "tensor(3)"
    assert repr(mg.zeros(0, 3)) == "tensor([], shape=(0, 3), dtype=minigrad.float32)"
    assert repr(mg.tensor([np.nan, -np.inf])) == "tensor([ nan, -inf])"
    lines = repr(mg.arange(6.0).reshape(2, 3)).splitlines()
    assert lines == ["tensor([[0., 1., 2.],", "        [3., 4., 5.]])"]


def test_large_tensors_are_summarised():
    text = repr(mg.zeros(1000, 1000))
    assert "..." in text
    assert "shape=(1000, 1000)" in text
    assert len(text) < 1000


def test_notebooks_show_a_table():
    x = mg.tensor([[1.0, np.nan], [-3.0, np.inf]], requires_grad=True)
    table = (x * 1)._repr_html_()
    for name, value in (
        ("shape", "(2, 2)"),
        ("dtype", "float32"),
        ("grad_fn", "&lt;mul&gt;"),
        ("min", "-3"),
        ("max", "inf"),
        ("mean", "inf"),
        ("NaN", "1"),
    ):
        assert f"<tr><th>{name}</th><td><pre>{value}</pre></td></tr>" in table
    assert "requires_grad" in x._repr_html_()
    assert "<th>NaN</th>" not in mg.tensor([1, 2])._repr_html_()
    assert "<th>min</th>" not in mg.zeros(0)._repr_html_()
    assert "<th>mean</th><td><pre>0.5</pre>" in mg.tensor([True, False])._repr_html_()
    assert len(mg.zeros(500, 500)._repr_html_()) < 2000


# ---- where NumPy's meaning is not ours -----------------------------------------------------------


@pytest.mark.parametrize(
    "call",
    [
        lambda x: np.var(x),
        lambda x: np.var(x, 0),
        lambda x: np.std(x, axis=1, keepdims=True),
        pytest.param(
            lambda x: np.std(x, correction=1),
            marks=pytest.mark.skipif(np.__version__ < "2", reason="NumPy 2 has it first"),
        ),
        lambda x: np.median(x, axis=1),
        lambda x: np.median(x, 0, keepdims=True),
        lambda x: np.median(x),
        lambda x: np.cumsum(x),
        lambda x: np.cumprod(x, axis=None),
        lambda x: np.cumsum(x, 0),
        lambda x: np.sort(x, axis=None),
        lambda x: np.sort(x),
        lambda x: np.argsort(x, axis=None),
        lambda x: np.concatenate((x, x), axis=None),
        lambda x: np.outer(x, x),
        lambda x: np.around(x, 1),
        lambda x: np.diag(x),
        lambda x: np.diag(x[0], 1),
        lambda x: np.argwhere(x > 1.5),
        lambda x: np.hsplit(x, 2)[1],
        lambda x: divmod(np.full((3, 4), 5.0), x)[1],
        lambda x: np.divmod(x, 0.5)[0],
        lambda x: divmod(7, x)[0],
    ],
)
def test_defaults_are_numpys(call, rng):
    a = rng.uniform(1, 2, (3, 4))
    assert_close(call(leaf(a)), call(a))


def test_comparisons_with_other_things():
    x = leaf([1.0, 2.0])
    assert (x == None) is False  # noqa: E711
    assert (x != "a") is True
    for value, name in ((None, "NoneType"), ("a", "str"), ({}, "dict")):
        with pytest.raises(TypeError) as caught:
            value in x  # noqa: B015
        assert str(caught.value) == f"[in] a tensor holds numbers, not {name}"
    with pytest.raises(TypeError, match="not supported between"):
        x < "a"  # noqa: B015


def test_rounding():
    x = mg.tensor([0.25, 1.5, 2.5])
    assert round(x).tolist() == [0, 2, 2]
    assert round(x, 1).tolist() == pytest.approx([0.2, 1.5, 2.5])


def test_shallow_copies_and_pickles_keep_the_kind():
    parameter = mg.nn.Parameter(mg.ones(2))
    other = copy.copy(parameter)
    assert type(other) is mg.nn.Parameter
    assert np.shares_memory(other.detach().numpy(), parameter.detach().numpy())
    result = pickle.loads(pickle.dumps(mg.Variable([1.0, 2.0]) * 2))
    assert type(result) is mg.Variable
    assert not result.requires_grad


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: np.take(x, [0], axis=2), r"\[numpy.take\] dim 2 is out of range for 2 dim"),
        (lambda x: np.take(x, [0], axis=-3), r"\[numpy.take\] dim -3 is out of range for 2 dim"),
        (
            lambda x: np.take(x[0, 0], [0], axis=1),
            r"\[numpy.take\] dim 1 is out of range for 0 dim",
        ),
        (lambda x: np.expand_dims(x, 3), r"\[numpy.expand_dims\] dim 3 is out of range for 3 dim"),
        (lambda x: np.expand_dims(x, (1, -3)), r"\[numpy.expand_dims\] dim 1 is given twice"),
    ],
)
def test_axes_that_there_are_not(call, message):
    x = np.ones((2, 3))
    with pytest.raises((IndexError, ValueError)):
        call(x)
    with pytest.raises((IndexError, ValueError), match=message):
        call(mg.tensor(x))


@pytest.mark.parametrize("asks", [np.shares_memory, np.may_share_memory])
def test_numpy_tells_whether_tensors_share_memory(asks):
    x = mg.arange(6, dtype=mg.float32).reshape(2, 3).requires_grad_()
    y = x * 1
    for a, b, same in (
        (x, x[1:], True),
        (y.T, y, True),
        (x, x.detach().numpy(), True),
        (y.detach().numpy(), y, True),
        (x, y, False),
        (y[:1], y[1:], False),
        (x, x.clone(), False),
    ):
        assert asks(a, b) is same


@pytest.mark.parametrize(
    ("shift", "axis"),
    [
        (1, ()),
        (1, None),
        ((1, 2), None),
        ((1, 2), (0, 1)),
        (2, (0, 1)),
        ((1, 1), 0),
        (-3, 2),
        ((1, 1, 1), (0, 1, -3)),
    ],
)
def test_roll_broadcasts_shifts_and_axes(shift, axis):
    values = np.arange(24.0).reshape(2, 3, 4)
    x = mg.tensor(values, requires_grad=True)
    y = np.roll(x, shift, axis=axis)
    np.testing.assert_array_equal(y.detach().numpy(), np.roll(values, shift, axis=axis))
    (g,) = mg.grad(y, x, mg.tensor(np.roll(values, shift, axis=axis)))
    np.testing.assert_array_equal(g.numpy(), values)


def test_numbers_count_as_vectors_of_one_where_numpy_has_it_so():
    for function in (
        lambda x: np.cumsum(x, axis=0),
        lambda x: np.cumprod(x, axis=0),
        np.argsort,
        lambda x: np.repeat(x, 3, axis=0),
        lambda x: np.repeat(x, 2),
    ):
        want = function(np.float32(3.0))
        got = function(mg.tensor(3.0))
        assert got.shape == want.shape
        np.testing.assert_array_equal(got.numpy(), want)
    with pytest.raises(ValueError, match="0-d tensor has no axis to sort along"):
        np.sort(mg.tensor(3.0))


def test_sinc_and_a_transpose_by_a_number():
    x = mg.tensor([0.0, 0.5, 2.25], mg.float64, requires_grad=True)
    y = np.sinc(x)
    np.testing.assert_allclose(y.detach().numpy(), np.sinc([0.0, 0.5, 2.25]), atol=1e-15)
    (g,) = mg.grad(y.sum(), x)
    steps = (np.sinc([1e-6, 0.500001, 2.250001]) - np.sinc([-1e-6, 0.499999, 2.249999])) / 2e-6
    np.testing.assert_allclose(g.numpy(), steps, atol=1e-8)
    np.testing.assert_array_equal(np.transpose(x, 0).detach().numpy(), [0.0, 0.5, 2.25])
