"""Every elementwise function keeps the accuracy that its row of the op table states."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import mpmath
import numpy as np
import oracle
import pytest
import ulp

import minigrad as mg
from minigrad.ops import TABLE

by_dtype = pytest.mark.parametrize("dtype", ulp.DTYPES, ids=["float32", "float64"])


@by_dtype
@pytest.mark.parametrize("row", ulp.ROWS, ids=lambda row: row.name)
def test_contracts(row, dtype, rng):
    batches = list(ulp.arguments(row, dtype, 1000, rng))
    report = ulp.measure(row, dtype, batches, settled=16)
    assert report.count == sum(batch[0].size for batch in batches)
    assert report.ok, report


@by_dtype
@pytest.mark.parametrize("name", ["expm1", "sinh", "cosh", "sigmoid", "silu", "softplus"])
def test_ends_of_the_table_of_powers(name, dtype):
    """Beside every change of the power T, most of all where T - 1 is T, and before infinity."""
    first, last, lost = (-480, 2080, 24) if dtype is np.float32 else (-12100, 16420, 53)
    ends = ((np.arange(first, last) + 0.5) * np.log(2) / 16).astype(dtype)
    x = ends[:, None] + np.spacing(np.abs(ends))[:, None] * np.arange(-4, 5, dtype=dtype)
    highest = last / 16 * np.log(2)
    spans = [(-0.05, 0.05), np.log(2) * np.array([lost - 1, lost + 2]), (highest - 3, highest)]
    x = np.concatenate([x.ravel(), *[np.linspace(low, high, 4001) for low, high in spans]])
    report = ulp.measure(TABLE[name], dtype, [(x.astype(dtype),)])
    assert report.ok, report


@by_dtype
@pytest.mark.parametrize(("name", "unit"), [("exp", np.log(2)), ("exp2", 1.0)])
def test_ends_of_the_table_of_eighths(name, unit, dtype):
    """Beside every change of the power that is looked up, and where the result is subnormal."""
    powers = (-8600, 8192) if dtype is np.float64 else (-1200, 1024)
    ends = ((np.arange(*powers) + 0.5) / 8 * unit).astype(dtype)
    x = ends[:, None] + np.spacing(np.abs(ends))[:, None] * np.arange(-4, 5).astype(dtype)
    report = ulp.measure(TABLE[name], dtype, [(x.ravel(),)])
    assert report.ok, report


BY_BLOCKS = ["exp", "expm1", "sinh", "cosh", "tanh", "erf", "erfc", "asin", "acos", "atan"]
BY_BLOCKS += ["sigmoid"]


@by_dtype
@pytest.mark.parametrize("name", BY_BLOCKS)
def test_results_do_not_depend_on_their_neighbours(name, dtype, rng):
    """Several vectors take one way or another by all that is in them, beside the next few."""
    rare = [0.0, -0.0, 1, -1, 10.999, -11, 15.999, 16, -16.5, 16.7, 39.99, -40, 41, 88.8, 100, -700]
    rare += [np.inf, -np.inf, np.nan]
    x = np.concatenate([rng.uniform(-1, 1, 300), rng.uniform(-18, 18, 300), rare]).astype(dtype)
    function = getattr(mg, name)
    alone = np.array([function(mg.from_numpy(np.full(64, v))).numpy()[0] for v in x])
    for _ in range(4):
        order = rng.permutation(x.size)
        for size in (1, 64, 65, 300, x.size):
            y = function(mg.from_numpy(x[order[:size]])).numpy()
            np.testing.assert_array_equal(y, alone[order[:size]])


@by_dtype
@pytest.mark.parametrize("name", ["atan2", "pow"])
def test_results_of_pairs_do_not_depend_on_their_neighbours(name, dtype, rng):
    """Each of two adjacent blocks may be one for which the short path is right, or not."""
    rare = [0.0, -0.0, -1, -2.5, 1e-30, 1e30, np.inf, -np.inf, np.nan]
    x, y = rng.uniform(0.1, 3, (2, 2000)).astype(dtype)
    at = rng.choice(2000, 40, replace=False)
    x[at[:30]], y[at[20:]] = rng.choice(rare, 30), rng.choice(rare, 20)
    function = getattr(mg, name)
    pairs = zip(x, y, strict=True)
    alone = [function(*(mg.from_numpy(np.full(64, v)) for v in pair)).numpy()[0] for pair in pairs]
    for size in (1, 64, 65, 300, x.size):
        result = function(mg.from_numpy(x[:size]), mg.from_numpy(y[:size])).numpy()
        np.testing.assert_array_equal(result, alone[:size])


@by_dtype
@pytest.mark.parametrize("name", ["atan2", "pow"])
def test_slopes_of_pairs_do_not_depend_on_their_neighbours(name, dtype, rng):
    """Blocks that need the long way have the bits of others, and zero gradients give zero there."""
    rare = [0.0, -0.0, -1, -2.5, 1e-30, 1e30, np.inf, -np.inf, np.nan]
    x, y = rng.uniform(0.1, 3, (2, 1000)).astype(dtype)
    at = rng.choice(1000, 40, replace=False)
    x[at[:30]], y[at[20:]] = rng.choice(rare, 30), rng.choice(rare, 20)
    g = rng.standard_normal(1000).astype(dtype)
    g[at[::2]] = 0

    def slopes(*values):
        pair = [mg.tensor(v, requires_grad=True) for v in values[:2]]
        result = getattr(mg, name)(*pair)
        return [d.numpy() for d in mg.grad(result, pair, mg.from_numpy(values[2]))]

    alone = [slopes(*(np.full(64, v) for v in row)) for row in zip(x, y, g, strict=True)]
    for by in (0, 1):
        expected = np.array([slope[by][0] for slope in alone])
        assert not expected[g == 0].any()
        for size in (1, 64, 65, 300, x.size):
            got = slopes(x[:size], y[:size], g[:size])[by]
            np.testing.assert_array_equal(got, expected[:size])


NEAR = ["exp", "expm1", "sinh", "cosh", "tanh", "erf", "atan", "sigmoid", "silu", "gelu"]


@by_dtype
@pytest.mark.parametrize("name", NEAR)
@pytest.mark.parametrize("far", [17, 41, -60, np.inf])
def test_signaling_nans_hide_nothing(name, dtype, far):
    """Not for a minimum or maximum of several vectors, either, wherever in a block both stand."""
    f = getattr(mg, name, None) or getattr(mg.nn.functional, name)
    bits = np.array([np.inf], dtype).view(np.uint32 if dtype is np.float32 else np.uint64)
    x = np.full((64, 64, 64), 0.5, dtype)
    x[:, np.arange(64), np.arange(64)] = (bits + 1).view(dtype)
    x[np.arange(64), :, np.arange(64)] = far
    y = f(mg.from_numpy(x)).numpy()
    np.testing.assert_array_equal(y[x == 0.5], f(mg.tensor(0.5, dtype=y.dtype)).item())
    np.testing.assert_array_equal(y[x == far], f(mg.tensor(far, dtype=y.dtype)).item())
    assert np.isnan(y[np.isnan(x)]).all()


@by_dtype
@pytest.mark.parametrize("name", ["log", "log1p", "softplus", "logsigmoid"])
def test_ends_of_the_table_of_logarithms(name, dtype, rng):
    """Beside 1, where the result is least beside what it is made of, on both sides of every end."""
    first = 0.7346 if dtype is np.float64 else 0.7512  # all but the first few bits of V_LOG_FIRST
    ends = first + np.arange(-2, 24) / 32
    near_1 = np.exp(np.array([-1 / 16, -1 / 32, -1 / 64, 1 / 64, 1 / 32, 1 / 16]))
    x = np.concatenate([ends, near_1])[:, None] * (1 + np.linspace(-1e-3, 1e-3, 801))
    x = np.concatenate([x.ravel(), 1 + rng.uniform(-0.07, 0.1, 20000)])
    if name != "log":
        x = x - 1
    if name in ("softplus", "logsigmoid"):
        x = np.log(x[x > 0]) * (-1 if name == "logsigmoid" else 1)
    report = ulp.measure(TABLE[name], dtype, [(x.astype(dtype),)])
    assert report.ok, report


@by_dtype
@pytest.mark.parametrize("name", ["expm1", "sinh", "tan"])
def test_zeros_keep_their_sign(name, dtype):
    x = np.tile(np.array([0.0, -0.0], dtype), 64)
    y = getattr(mg, name)(mg.from_numpy(x)).numpy()
    np.testing.assert_array_equal(np.signbit(y), np.signbit(x))
    assert not y.any()


@by_dtype
@pytest.mark.parametrize("sign", [1, -1], ids=["softplus", "logsigmoid"])
def test_slopes_that_are_made_of_the_result(sign, dtype):
    """Partials of softplus and its mirror image are sigmoids, nearly as good, to subnormals."""
    lowest = np.log(np.finfo(dtype).smallest_subnormal)
    x = np.concatenate([np.linspace(lowest, -lowest, 5001), np.linspace(-4, 4, 5001)])
    x = (sign * np.append(x, [0, np.inf, -np.inf, np.nan])).astype(dtype)
    leaf = mg.from_numpy(x.copy()).requires_grad_()
    function = mg.nn.functional.softplus if sign > 0 else mg.nn.functional.logsigmoid
    function(leaf).backward(mg.ones(x.shape, dtype=leaf.dtype))
    want = oracle.wide(dtype)(1) / (1 + np.exp(-sign * x.astype(oracle.wide(dtype))))
    unit = np.maximum(np.spacing(np.abs(want).astype(dtype)), np.finfo(dtype).smallest_subnormal)
    error = np.abs(leaf.grad.numpy() - want)[:-1] / unit[:-1]
    assert error.max() < 2.5
    assert np.isnan(leaf.grad.numpy()[-1])


@pytest.mark.exhaustive
@pytest.mark.parametrize("row", [r for r in ulp.ROWS if r.arity == 1], ids=lambda row: row.name)
def test_every_float32(row):
    report = ulp.measure(row, np.float32, ((x,) for x in ulp.every(1)))
    assert report.count == 2**32
    assert report.ok, report


# ---- the instrument ------------------------------------------------------------------------------


@by_dtype
@pytest.mark.parametrize("name", ["exp", "erf", "floor"])
@pytest.mark.parametrize("wrong", ["off", np.nan])
def test_a_planted_error_is_found(name, wrong, dtype, rng):
    """At one argument out of many, in each of the three ways of measuring."""
    row, place = TABLE[name], dtype(1.25)
    units = max(2, oracle.accuracy(row, dtype) + 1)

    def spoilt(x):
        y = ulp.function_of(row)(x).numpy().copy()
        here = x.numpy() == place
        if wrong is np.nan:
            y[here] = np.nan
        else:
            y[here] += units * np.spacing(y[here])
        return mg.from_numpy(y)

    x = np.append(rng.uniform(-4, 4, 5000).astype(dtype), place)
    sound = ulp.measure(row, dtype, [(x,)])
    report = ulp.measure(row, dtype, [(x[:2000],), (x[2000:],)], spoilt)
    assert sound.ok
    assert not report.ok
    assert report.at == (place,)
    assert report.count == x.size
    assert report.error > 1.4
    assert "NOT OK" in str(report)
    assert str(report).endswith("0x1.4000000000000p+0  (1.25)")


def test_the_program_prints_a_table(capsys, monkeypatch):
    monkeypatch.setattr(ulp, "CHUNK", 2**10)
    assert ulp.main(["exp", "hypot", "--stride", "999983", "--samples", "100"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:2] for line in lines[2:]] == [
        [name, dtype] for dtype in ("float32", "float64") for name in ("exp", "hypot")
    ]
    assert all(" ok " in line for line in lines[2:])


def test_the_program_fails_where_a_contract_is_broken(capsys, monkeypatch):
    monkeypatch.setattr(TABLE["exp"], "accuracy", (0.1, 0.1))
    assert ulp.main(["exp", "--dtype", "float64", "--samples", "100"]) == 1
    assert "NOT OK" in capsys.readouterr().out
    with pytest.raises(SystemExit, match="2"):
        ulp.main(["expp"])
    assert "no such function: expp" in capsys.readouterr().err


def test_the_program_runs_beside_sources_that_were_not_compiled(tmp_path):
    (tmp_path / "tests").symlink_to(Path(ulp.__file__).parent.parent)
    (tmp_path / "minigrad").mkdir()
    (tmp_path / "minigrad" / "__init__.py").write_text("raise ImportError('not compiled')")
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "tests.helpers.ulp",
            "exp",
            "--samples",
            "10",
            "--stride",
            "999999937",
        ],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert " ok " in done.stdout


def test_every_float32_comes_once(monkeypatch):
    monkeypatch.setattr(ulp, "CHUNK", 1000)
    x = np.concatenate(list(ulp.every(77777)))
    assert (x.view(np.uint32) == np.arange(0, 2**32, 77777)).all()


# ---- the references ------------------------------------------------------------------------------

MPMATH = {
    name: getattr(mpmath, name)
    for name in (
        *("exp", "expm1", "log", "log1p", "sqrt", "cbrt", "hypot", "sin", "cos", "tan", "asin"),
        *("acos", "atan", "atan2", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh"),
    )
}
MPMATH |= {
    "exp2": lambda x: mpmath.mpf(2) ** x,
    "log2": lambda x: mpmath.log(x) / mpmath.log(2),
    "log10": lambda x: mpmath.log(x) / mpmath.log(10),
    "rsqrt": lambda x: 1 / mpmath.sqrt(x),
    "sinc": lambda x: mpmath.sinpi(x) / (mpmath.pi * x),
    "softsign": lambda x: x / (1 + abs(x)),
    "sigmoid": lambda x: 1 / (1 + mpmath.exp(-x)),
    "softplus": lambda x: mpmath.log1p(mpmath.exp(x)),
    "logsigmoid": lambda x: -mpmath.log1p(mpmath.exp(-x)),
    "silu": lambda x: x / (1 + mpmath.exp(-x)),
    "hardsigmoid": lambda x: (x + 3) / 6,
    "hardswish": lambda x: x * (x + 3) / 6,
    "entr": lambda x: -x * mpmath.log(x),
    "pow": lambda a, b: a**b,
    "xlogy": lambda a, b: a * mpmath.log(b),
    "xlog1py": lambda a, b: a * mpmath.log1p(b),
    "logit": lambda x: mpmath.log(x) - mpmath.log1p(-x),
    "deg2rad": mpmath.radians,
    "rad2deg": mpmath.degrees,
}


@by_dtype
@pytest.mark.parametrize("row", ulp.ELEMENTARY, ids=lambda row: row.name)
def test_references_are_right(row, dtype, rng):
    """In the wide type they are some digits better than the results they are compared with.

    The references of functions that are settled by mpmath are compared with SciPy's.
    """
    inputs = [rng.uniform(low, high, 30).astype(dtype) for low, high in row.domain]
    wide = [x.astype(oracle.wide(dtype)) for x in inputs]
    got = oracle.pointwise(row.name, *inputs)
    if hasattr(oracle.POINTWISE[row.name], "is_slow"):
        exact = oracle.POINTWISE[row.name](*[x.astype(oracle.LONG) for x in inputs])
        quick = oracle.POINTWISE[row.name](*[x.astype(np.float64) for x in inputs])
        np.testing.assert_allclose(exact.astype(np.float64), quick, rtol=1e-12, atol=1e-15)
        return
    with mpmath.workdps(40):
        exact = [MPMATH[row.name](*map(_mpf, values)) for values in zip(*wide, strict=True)]
        errors = [abs(_mpf(y) - e) / abs(e) for y, e in zip(got, exact, strict=True)]
    digits = max(float(np.finfo(oracle.wide(dtype)).eps), 2.0**-63)  # more than 64 bits are spare
    assert max(errors) < 4 * digits


def _mpf(x):
    """A NumPy float of any width, exactly: the widest, of 113 bits, is three doubles."""
    exact = mpmath.mpf(0)
    for _ in range(3):
        exact += float(x)
        x -= type(x)(float(x))
    return exact
