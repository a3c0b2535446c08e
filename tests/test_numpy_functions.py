"""NumPy's functions on tensors agree with NumPy on arrays: values, shapes, dtypes, gradients."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import minigrad as mg

NUMPY2 = np.lib.NumpyVersion(np.__version__) >= "2.0.0"

M, V, W = (3, 4), (5,), (4,)  # shapes of arguments
MASK = np.array([[1, 0, 1, 1], [0, 1, 1, 0], [1, 1, 0, 1]], bool)
COLUMNS = np.array([True, False, True, True])
INDEX = np.array([2, 0, 1, 2])
CHOICE = np.array([[0, 1, 2, 0], [1, 1, 0, 2], [2, 0, 1, 1]])


def spell(call, *shapes):
    return call, shapes


# Functions that are differentiable, of tensors of the given shapes.
SMOOTH = {
    "append": spell(lambda a, b: np.append(a, b), M, V),
    "append axis": spell(lambda a, b: np.append(a, b, axis=1), M, (3, 2)),
    "append list": spell(lambda a: np.append(a, [1.0, 2.0]), M),
    "append to a list": spell(lambda a: np.append([1.0, 2.0], a), V),
    "astype": spell(lambda a: np.astype(a, np.float64) if NUMPY2 else a * 1.0, M),
    "average": spell(lambda a: np.average(a), M),
    "average axis": spell(lambda a: np.average(a, axis=1, keepdims=True), M),
    "average weights": spell(lambda a, w: np.average(a, 1, w), M, W),
    "average all weights": spell(lambda a, w: np.average(a, weights=w), M, M),
    "average returned": spell(lambda a, w: np.average(a, 0, w, returned=True), M, M),
    "bincount": spell(lambda w: np.bincount(INDEX, w, 5), W),
    "block": spell(lambda a, b: np.block([[a, a], [b, b]]), (2, 2), (1, 2)),
    "choose": spell(lambda a, b, c: np.choose(CHOICE, [a, b, c]), M, M, W),
    "choose wrap": spell(lambda a, b: np.choose(CHOICE, (a, b), mode="wrap"), M, M),
    "choose clip": spell(lambda a, b: np.choose(CHOICE, (a, b), mode="clip"), M, ()),
    "compress": spell(lambda a: np.compress(COLUMNS, a, axis=1), M),
    "compress flat": spell(lambda a: np.compress(COLUMNS, a), M),
    "concatenate dtype": spell(lambda a: np.concatenate([a, a], dtype=np.float64), M),
    "conj": spell(lambda a: np.conj(a), M),
    "convolve": spell(lambda a, b: np.convolve(a, b), V, W),
    "convolve same": spell(lambda a, b: np.convolve(a, b, "same"), W, V),
    "convolve valid": spell(lambda a, b: np.convolve(a, b, mode="valid"), V, (2,)),
    "correlate": spell(lambda a, b: np.correlate(a, b), V, W),
    "correlate same": spell(lambda a, b: np.correlate(a, b, "same"), W, V),
    "correlate full": spell(lambda a, b: np.correlate(a, b, "full"), (2,), V),
    "corrcoef": spell(lambda a: np.corrcoef(a), M),
    "corrcoef two": spell(lambda a, b: np.corrcoef(a, b), V, V),
    "cov": spell(lambda a: np.cov(a), M),
    "cov columns": spell(lambda a: np.cov(a, rowvar=False, ddof=0), M),
    "cov two": spell(lambda a, b: np.cov(a, b, bias=True), V, V),
    "cov weights": spell(lambda a, w: np.cov(a, aweights=w), M, W),
    "cov repeats": spell(lambda a: np.cov(a, fweights=INDEX), M),
    "cov both": spell(lambda a, w: np.cov(a, fweights=INDEX, aweights=w, ddof=0), M, W),
    "cov of one": spell(lambda a: np.cov(a), V),
    "cross": spell(lambda a, b: np.cross(a, b), (4, 3), (3,)),
    "cross axes": spell(lambda a, b: np.cross(a, b, axisa=0, axisb=1, axisc=0), (3, 4), (4, 3)),
    "cross axis": spell(lambda a, b: np.cross(a, b, axis=0), (3, 2), (3, 2)),
    "cumsum dtype": spell(lambda a: np.cumsum(a, axis=0, dtype=np.float64), M),
    "delete": spell(lambda a: np.delete(a, 1, axis=0), M),
    "delete several": spell(lambda a: np.delete(a, [0, -1], axis=1), M),
    "delete slice": spell(lambda a: np.delete(a, slice(1, 3), 1), M),
    "delete mask": spell(lambda a: np.delete(a, COLUMNS, 1), M),
    "delete flat": spell(lambda a: np.delete(a, [3, 5, 3]), M),
    "ediff1d": spell(lambda a: np.ediff1d(a, to_begin=[1.0, 2.0], to_end=0.5), M),
    "extract": spell(lambda a: np.extract(MASK, a), M),
    "gradient": spell(lambda a: np.gradient(a), M),
    "gradient line": spell(lambda a: np.gradient(a), V),
    "gradient step": spell(lambda a: np.gradient(a, 0.5, axis=1, edge_order=2), M),
    "gradient steps": spell(lambda a: np.gradient(a, 0.5, [0.0, 1.0, 2.5, 3.0]), M),
    "gradient axes": spell(lambda a: np.gradient(a, 2.0, axis=(1, 0)), M),
    "gradient points": spell(lambda a, x: np.gradient(a, np.cumsum(x), edge_order=2), V, V),
    "histogram weights": spell(lambda w: np.histogram(INDEX, 3, weights=w)[0], W),
    "histogram edges": spell(lambda a: np.histogram(a, 4)[1], V),
    "histogram density": spell(lambda a: np.histogram(a, 3, density=True), V),
    "i0": spell(lambda a: np.i0(a), M),
    "insert": spell(lambda a, v: np.insert(a, 1, v, axis=0), M, W),
    "insert number": spell(lambda a: np.insert(a, 2, 7.0), M),
    "insert several": spell(lambda a, v: np.insert(a, [0, 2, 2], v, axis=1), M, (3, 3)),
    "insert column": spell(lambda a, v: np.insert(a, 1, v, axis=1), M, (3,)),
    "insert slice": spell(lambda a, v: np.insert(a, slice(0, 2), v), V, (2,)),
    "interp": spell(lambda x, f: np.interp(x, [1.1, 1.4, 1.6, 1.9], f), M, W),
    "interp all": spell(lambda x, p, f: np.interp(x, np.cumsum(p) - 0.7, f), M, W, W),
    "interp ends": spell(lambda x, f: np.interp(x, [1.3, 1.5, 1.6, 1.7], f, 9.0, -9.0), M, W),
    "interp period": spell(lambda x, f: np.interp(x, [0.3, 0.1, 0.6, 0.75], f, period=0.8), M, W),
    "intersect1d": spell(lambda a: np.intersect1d(a, a[1:]), V),
    "linspace": spell(lambda a, b: np.linspace(a, b, 5), (3,), (3,)),
    "linspace open": spell(lambda a: np.linspace(0.0, a, 4, endpoint=False, axis=-1), (3,)),
    "linspace step": spell(lambda a: np.linspace(a, 9.0, 4, retstep=True), (2,)),
    "matrix_transpose": spell(lambda a: np.matrix_transpose(a) if NUMPY2 else a.T, M),
    "max initial": spell(lambda a: np.max(a, axis=1, initial=1.5), M),
    "max where": spell(lambda a: np.max(a, axis=1, initial=1.2, where=MASK), M),
    "mean where": spell(lambda a: np.mean(a, axis=0, where=MASK), M),
    "mean dtype": spell(lambda a: np.mean(a, dtype=np.float64), M),
    "median axes": spell(lambda a: np.median(a, axis=(0, 1)), M),
    "meshgrid": spell(lambda a, b: np.meshgrid(a, b), V, W),
    "meshgrid ij": spell(lambda a, b: np.meshgrid(a, b, indexing="ij"), V, W),
    "meshgrid three": spell(lambda a, b: np.meshgrid(a, b, [1.0, 2.0], sparse=True), (2,), (3,)),
    "min initial": spell(lambda a: np.min(a, initial=1.5, keepdims=True), M),
    "modf": spell(lambda a: np.modf(a)[0], M),
    "nancumsum": spell(lambda a: np.nancumsum(a, axis=1), M),
    "nancumprod": spell(lambda a: np.nancumprod(a), M),
    "nanmax": spell(lambda a: np.nanmax(a, axis=0), M),
    "nanmin": spell(lambda a: np.nanmin(a), M),
    "nanmedian": spell(lambda a: np.nanmedian(a, axis=1), M),
    "nanpercentile": spell(lambda a: np.nanpercentile(a, [20, 70], axis=1), M),
    "nanprod": spell(lambda a: np.nanprod(a, axis=1), M),
    "nanquantile": spell(lambda a: np.nanquantile(a, 0.3), M),
    "nanstd": spell(lambda a: np.nanstd(a, axis=1, ddof=1), M),
    "nanvar": spell(lambda a: np.nanvar(a, axis=0, keepdims=True), M),
    "pad": spell(lambda a: np.pad(a, 1), M),
    "pad constants": spell(
        lambda a: np.pad(a, ((1, 2), (0, 1)), constant_values=((1.0, 2.0), (3.0, 4.0))), M
    ),
    "pad edge": spell(lambda a: np.pad(a, (2, 1), "edge"), M),
    "pad reflect": spell(lambda a: np.pad(a, ((4, 3), (0, 5)), mode="reflect"), M),
    "pad symmetric": spell(lambda a: np.pad(a, [(1, 2), (3, 0)], "symmetric"), M),
    "pad wrap": spell(lambda a: np.pad(a, ((1, 2), (5, 0)), "wrap"), M),
    "partition": spell(lambda a: np.partition(a, 2, axis=0)[2], M),
    "percentile": spell(lambda a: np.percentile(a, 35.0, axis=0), M),
    "percentile list": spell(lambda a: np.percentile(a, [25, 50], method="midpoint"), M),
    "permute_dims": spell(lambda a: np.transpose(a, axes=(1, 0)), M),
    "piecewise": spell(
        lambda a: np.piecewise(a, [a < 1.3, a > 1.6], [lambda t: t * t, -1.0, np.sin]), M
    ),
    "polyval": spell(lambda p, x: np.polyval(p, x), V, M),
    "polyval numbers": spell(lambda x: np.polyval([1.0, -2.0, 3.0], x), M),
    "prod initial": spell(lambda a: np.prod(a, axis=0, initial=2.0, where=MASK), M),
    "quantile method": spell(lambda a: np.quantile(a, 0.4, axis=1, method="higher"), M),
    "ravel F": spell(lambda a: np.ravel(a, order="F"), M),
    "ravel K": spell(lambda a: np.ravel(a.T, order="K"), M),
    "ravel A": spell(lambda a: np.ravel(a.T, order="A"), M),
    "real": spell(lambda a: np.real(a), M),
    "repeat": spell(lambda a: np.repeat(a, [1, 2, 0], axis=0), M),
    "reshape F": spell(lambda a: np.reshape(a, (2, -1), order="F"), M),
    "resize": spell(lambda a: np.resize(a, (3, 5)), V),
    "rollaxis": spell(lambda a: np.rollaxis(a, 2), (2, 3, 4)),
    "rollaxis to": spell(lambda a: np.rollaxis(a, 0, 3), (2, 3, 4)),
    "select": spell(lambda a, b: np.select([MASK, a > 1.5], [a, b * 2], 7.0), M, M),
    "setdiff1d": spell(lambda a: np.setdiff1d(a, a[1:2]), V),
    "sinc": spell(lambda a: np.sinc(a), M),
    "std where": spell(lambda a: np.std(a, axis=1, where=MASK, ddof=1), M),
    "sum initial": spell(lambda a: np.sum(a, axis=0, initial=2.0, where=COLUMNS), M),
    "sum of no axes": spell(lambda a: np.sum(a, axis=()), M),
    "trapezoid": spell(lambda a: (np.trapezoid if NUMPY2 else np.trapz)(a, dx=0.3), M),
    "trapezoid points": spell(
        lambda a, x: (np.trapezoid if NUMPY2 else np.trapz)(a, x, axis=0), M, (3,)
    ),
    "trapezoid grids": spell(lambda a, x: (np.trapezoid if NUMPY2 else np.trapz)(a, x), M, M),
    "trim_zeros": spell(lambda a: np.trim_zeros(a), V),
    "union1d": spell(lambda a, b: np.union1d(a, b), V, M),
    "unique": spell(lambda a: np.unique(a), M),
    "unique rows": spell(lambda a: np.unique(a, axis=0), M),
    "unstack": spell(lambda a: np.unstack(a, axis=1) if hasattr(np, "unstack") else list(a), M),
    "var where": spell(lambda a: np.var(a, axis=0, where=MASK), M),
    "var correction": spell(lambda a: np.var(a, ddof=1, keepdims=True), M),
    "vdot": spell(lambda a, b: np.vdot(a, b), M, M),
    "apply_along_axis": spell(lambda a: np.apply_along_axis(np.cumsum, 0, a), M),
    "apply to numbers": spell(lambda a: np.apply_along_axis(lambda t: t[0] * t[1], 1, a), M),
    "apply to matrices": spell(lambda a: np.apply_along_axis(np.diag, 1, a), (2, 3)),
    "apply_over_axes": spell(lambda a: np.apply_over_axes(np.sum, a, [0, 2]), (2, 3, 4)),
    "linalg.outer": spell(lambda a, b: np.linalg.outer(a, b) if NUMPY2 else np.outer(a, b), V, W),
    "linalg.trace": spell(lambda a: np.linalg.trace(a) if NUMPY2 else np.trace(a), M),
    "exp dtype": spell(lambda a: np.exp(a, dtype=np.float64), M),
    "add.reduce": spell(lambda a: np.add.reduce(a, 1, initial=3.0, where=MASK), M),
    "maximum.reduce": spell(lambda a: np.maximum.reduce(a, axis=None, keepdims=True), M),
    "maximum.accumulate": spell(lambda a: np.maximum.accumulate(a, axis=1), M),
    "multiply.accumulate": spell(lambda a: np.multiply.accumulate(a), M),
    "logaddexp.accumulate": spell(lambda a: np.logaddexp.accumulate(a, axis=1), M),
    "subtract.outer": spell(lambda a, b: np.subtract.outer(a, b), V, M),
}
if hasattr(np, "cumulative_sum"):
    SMOOTH |= {
        "cumulative_sum": spell(lambda a: np.cumulative_sum(a, axis=1), M),
        "cumulative_sum initial": spell(
            lambda a: np.cumulative_sum(a, axis=0, include_initial=True), M
        ),
        "cumulative_prod": spell(lambda a: np.cumulative_prod(a, include_initial=True), V),
    }
if hasattr(np, "matvec"):
    SMOOTH |= {
        "matvec": spell(lambda a, b: np.matvec(a, b), (2, 3, 4), (4,)),
        "vecmat": spell(lambda a, b: np.vecmat(a, b), (2, 3), (3, 4)),
        "vecdot axis": spell(lambda a, b: np.vecdot(a, b, axis=0), M, M),
    }

# Functions without a gradient, or whose gradient is 0.
FLAT = {
    "angle": spell(lambda a: np.angle(a - 1.5), M),
    "angle deg": spell(lambda a: np.angle(a - 1.5, deg=True), M),
    "argpartition": spell(lambda a: np.argpartition(a, 2, axis=1)[:, 2], M),
    "array_equiv": spell(lambda a: np.array_equiv(a, a), M),
    "array_str": spell(lambda a: np.array_str(a), V),
    "array2string": spell(lambda a: np.array2string(a, precision=2), V),
    "bincount": spell(lambda a: np.bincount(np.argsort(a)), V),
    "can_cast": spell(lambda a: np.result_type(a, 1), V),
    "digitize": spell(lambda a: np.digitize(a, [1.2, 1.5]), M),
    "fix": spell(lambda a: np.fix(a * 2), M),
    "flatnonzero": spell(lambda a: np.flatnonzero(a > 1.5), M),
    "histogram": spell(lambda a: np.histogram(a, bins=[1.0, 1.3, 2.0])[0], M),
    "histogram range": spell(lambda a: np.histogram(a, 4, range=(1.2, 1.8))[0], M),
    "imag": spell(lambda a: np.imag(a), M),
    "iscomplex": spell(lambda a: np.iscomplex(a), M),
    "iscomplexobj": spell(lambda a: np.iscomplexobj(a), M),
    "isin": spell(lambda a: np.isin(a, a[0]), M),
    "isneginf": spell(lambda a: np.isneginf(-a / (a - a[0])), M),
    "isposinf": spell(lambda a: np.isposinf(a / (a - a[0])), M),
    "isreal": spell(lambda a: np.isreal(a), M),
    "isrealobj": spell(lambda a: np.isrealobj(a), M),
    "lexsort": spell(lambda a: np.lexsort((a, a)), V),
    "modf": spell(lambda a: np.modf(-a * 2)[1], M),
    "nanargmax": spell(lambda a: np.nanargmax(a, axis=1), M),
    "nanargmin": spell(lambda a: np.nanargmin(a), M),
    "all where": spell(lambda a: np.all(a > 1.5, axis=1, where=MASK), M),
    "any where": spell(lambda a: np.any(a > 1.5, axis=0, where=MASK), M),
    "unique parts": spell(
        lambda a: np.unique(
            np.floor(a * 4), return_index=True, return_inverse=True, return_counts=True
        ),
        M,
    ),
    "sum dtype": spell(lambda a: np.sum(np.floor(a * 4), dtype=np.int64), M),
    "reduce bool": spell(lambda a: np.logical_and.reduce(a > 1.1), M),
    "gcd": spell(lambda a: np.gcd(np.argsort(a), 6), V),
    "unravel_index": spell(lambda a: np.unravel_index(np.argmax(a), (3, 4)), M),
    "less dtype": spell(lambda a: np.less(a, 1.5, dtype=bool), M),
}
if NUMPY2:
    FLAT |= {
        "unique_all": spell(lambda a: tuple(np.unique_all(np.floor(a * 4))), M),
        "unique_counts": spell(lambda a: tuple(np.unique_counts(np.floor(a * 4))), M),
        "unique_inverse": spell(lambda a: tuple(np.unique_inverse(np.floor(a * 4))), M),
        "unique_values": spell(lambda a: np.sort(np.unique_values(np.floor(a * 4))), M),
    }


# A list, or numbers, beside a float32 tensor is float32, where NumPy makes float64 of a list.
WITH_LISTS = {
    "append list",
    "append to a list",
    "meshgrid three",
    "nanpercentile",
    "percentile list",
    "polyval numbers",
}


def made(shapes, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.uniform(1, 2, shape) for shape in shapes]


def listed(found):
    return list(found) if isinstance(found, (list, tuple)) else [found]


def values(x):
    return x.detach().numpy() if isinstance(x, mg.Tensor) else x


def agree(got, want, rtol, any_float=False):
    """The same structure, shapes, dtypes and values."""
    if isinstance(want, (list, tuple)):
        assert len(got) == len(want)
        for x, y in zip(got, want, strict=True):
            agree(x, y, rtol, any_float)
        return
    if not isinstance(want, (np.ndarray, np.generic)):
        assert got == want
        return
    if isinstance(want, (np.bool_, np.integer)) and not isinstance(got, mg.Tensor):
        assert got == want
        return
    assert isinstance(got, mg.Tensor)
    x, y = values(got), np.asarray(want)
    assert x.shape == y.shape
    assert x.dtype == y.dtype or (any_float and x.dtype.kind == y.dtype.kind == "f")
    np.testing.assert_allclose(x, y, rtol=rtol, atol=rtol)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", [*SMOOTH, *(f"flat {n}" for n in FLAT)])
def test_values_shapes_and_dtypes(name, dtype):
    call, shapes = FLAT[name[5:]] if name.startswith("flat ") else SMOOTH[name]
    arrays = [a.astype(dtype) for a in made(shapes)]
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        want = call(*arrays)
    rtol = 1e-12 if dtype == np.float64 else 2e-5
    agree(call(*[mg.tensor(a) for a in arrays]), want, rtol, name in WITH_LISTS)
    agree(call(*[mg.tensor(a, requires_grad=True) for a in arrays]), want, rtol, name in WITH_LISTS)


def slopes(call, arrays, cotangents):
    """The gradient by central differences of NumPy's own function."""
    found = []
    for k, a in enumerate(arrays):
        g = np.zeros_like(a)
        for at in np.ndindex(a.shape):
            sides = []
            for step in (1e-6, -1e-6):
                moved = [x.copy() for x in arrays]
                moved[k][at] += step
                outs = listed(call(*moved))
                sides.append(sum(np.sum(c * o) for c, o in zip(cotangents, outs, strict=True)))
            g[at] = (sides[0] - sides[1]) / 2e-6
        found.append(g)
    return found


@pytest.mark.parametrize("name", SMOOTH)
def test_gradients(name, rng):
    call, shapes = SMOOTH[name]
    arrays = made(shapes)
    leaves = [mg.tensor(a, requires_grad=True) for a in arrays]
    outs = listed(call(*leaves))
    cotangents = [rng.normal(size=x.shape) for x in outs]
    total = sum((x * c).sum() for x, c in zip(outs, cotangents, strict=True))
    got = mg.grad(total, leaves)
    for g, want in zip(got, slopes(call, arrays, cotangents), strict=True):
        np.testing.assert_allclose(g.numpy(), want, rtol=1e-6, atol=1e-7)
