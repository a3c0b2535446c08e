"""NumPy's functions on tensors agree with NumPy on arrays: values, shapes, dtypes, gradients."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import numpy as np
import pytest

import minigrad as mg
from minigrad.interop import numpy_protocol as protocol
from minigrad.interop.numpy_functions import table

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
    "histogram limits": spell(lambda a: np.histogram(a, 3, range=(a[0] - 1, a[1] + 1))[1], V),
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
    "max initial tensor": spell(lambda a, b: np.max(a, axis=1, initial=b[0] * 2, where=MASK), M, V),
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
    any_float = name in WITH_LISTS or not NUMPY2  # where a NumPy float is no weak operand
    agree(call(*[mg.tensor(a) for a in arrays]), want, rtol, any_float)
    agree(call(*[mg.tensor(a, requires_grad=True) for a in arrays]), want, rtol, any_float)


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


# ---- random axes, shapes and keywords ------------------------------------------------------------


class Draw:
    """Random arguments for functions of arrays."""

    def __init__(self, rng):
        self.rng = rng

    def number(self, low, high):
        return int(self.rng.integers(low, high + 1))

    def flag(self):
        return bool(self.rng.integers(2))

    def one(self, *choices):
        return choices[self.number(0, len(choices) - 1)]

    def shape(self, least=1, most=3, size=5):
        return tuple(self.number(1, size) for _ in range(self.number(least, most)))

    def array(self, shape):
        """Values that all differ by far more than a step of finite differences."""
        n = int(np.prod(shape))
        spread = self.rng.permutation(n).reshape(shape) / max(n, 1)
        return spread + self.rng.uniform(0.2, 0.21, shape)

    def axis(self, a):
        return self.number(-a.ndim, a.ndim - 1)

    def axes(self, a):
        """None, one axis or several."""
        several = self.rng.permutation(a.ndim)[: self.number(1, a.ndim)]
        signs = [int(d) - a.ndim * self.flag() for d in several]
        return self.one(None, self.axis(a), tuple(signs))

    def kept(self):
        return {"keepdims": True} if self.flag() else {}

    def mask(self, a):
        """A mask that broadcasts to a's shape."""
        shape = tuple(self.one(n, 1) for n in a.shape[self.number(0, a.ndim - 1) :])
        return self.rng.random(shape) < 0.7


def reduction(name, where=False, initial=False, several=True, **fixed):
    def draw(d):
        a = d.array(d.shape())
        options = {**d.kept(), **fixed}
        options["axis"] = d.axes(a) if several else d.one(None, d.axis(a))
        if where and d.flag():
            options["where"] = d.mask(a)
        if initial and (d.flag() or "where" in options):
            options["initial"] = 0.45
        return lambda a: getattr(np, name)(a, **options), [a]

    return draw


def with_nan(name, **fixed):
    def draw(d):
        a = d.array(d.shape(size=6))
        missing = d.rng.random(a.shape) < 0.3
        options = {"axis": d.one(None, d.axis(a)), **fixed}
        return lambda a: getattr(np, name)(np.where(missing, np.nan, a), **options), [a]

    return draw


def along(call):
    """A function of an array and an axis, or none."""

    def draw(d):
        a = d.array(d.shape())
        axis = d.axis(a)
        return lambda a: call(a, axis), [a]

    return draw


def drawn_pad(d):
    a = d.array(d.shape())
    mode = d.one("constant", "edge", "reflect", "symmetric", "wrap")
    widths = [(d.number(0, 7), d.number(0, 7)) for _ in a.shape]
    widths = d.one(widths, widths[0], widths[0][0])
    return lambda a: np.pad(a, widths, mode), [a]


def drawn_pad_constants(d):
    a = d.array(d.shape())
    return (
        lambda a, v: np.pad(a, ((2, 1),) * a.ndim, constant_values=v),
        [a, d.array((a.ndim, 2))],
    )


def drawn_delete(d):
    a = d.array(d.shape())
    axis = d.one(None, d.axis(a))
    n = a.size if axis is None else a.shape[axis]
    what = d.one(
        d.number(-n, n - 1), [d.number(-n, n - 1) for _ in range(3)], slice(d.number(0, n), None, 2)
    )
    return lambda a: np.delete(a, what, axis), [a]


def drawn_insert(d):
    a = d.array(d.shape())
    axis = d.one(None, d.axis(a))
    n = a.size if axis is None else a.shape[axis]
    where = d.one(d.number(-n, n), [d.number(-n, n) for _ in range(3)])
    shape = (
        a.shape if axis is None else np.delete(np.moveaxis(a, axis, 0), slice(1, None), 0)[0].shape
    )
    one = axis is not None and isinstance(where, int)
    return lambda a, v: np.insert(a, where, v, axis), [a, d.array(shape if one else ())]


def drawn_slide(name):
    def draw(d):
        mode = d.one("full", "same", "valid")
        a, b = d.array((d.number(1, 9),)), d.array((d.number(1, 9),))
        return lambda a, b: getattr(np, name)(a, b, mode), [a, b]

    return draw


def drawn_average(d):
    a = d.array(d.shape())
    axis = d.axis(a)
    w = d.array(d.one(a.shape, (a.shape[axis],)))
    options = d.kept()
    return lambda a, w: np.average(a, axis, w, **options), [a, w]


def drawn_gradient(d):
    a = d.array(tuple(d.number(3, 5) for _ in range(d.number(1, 3))))
    axis = d.axis(a)
    points = np.cumsum(d.rng.uniform(0.5, 1, a.shape[axis]))
    step = d.one(0.7, points)
    order = d.number(1, 2)
    return lambda a: np.gradient(a, step, axis=axis, edge_order=order), [a]


def drawn_trapezoid(d):
    a = d.array(d.shape())
    axis = d.axis(a)
    x = d.array(d.one(a.shape, (a.shape[axis],)))
    call = np.trapezoid if NUMPY2 else np.trapz
    return lambda a, x: call(a, x, axis=axis), [a, x]


def drawn_interp(d):
    n = d.number(1, 6)
    points = np.cumsum(d.rng.uniform(0.2, 0.6, n)) - 0.5
    options = d.one({}, {"left": -2.0}, {"right": 3.0}, {"period": d.rng.uniform(0.3, 2)})
    return lambda x, f: np.interp(x, points, f, **options), [d.array(d.shape()), d.array((n,))]


def drawn_cov(d):
    a = d.array((d.number(2, 4), d.number(2, 5)))
    rows = d.flag()
    n = a.shape[1] if rows else a.shape[0]
    options = {"ddof": d.number(0, 1)} | d.one({}, {"fweights": d.rng.integers(1, 4, n)})
    return lambda a, w: np.cov(a, rowvar=rows, aweights=w, **options), [a, d.array((n,))]


def drawn_choose(d):
    shape = d.shape()
    index = d.rng.integers(0, 3, shape)
    return (
        lambda a, b, c: np.choose(index, (a, b, c)),
        [d.array(shape), d.array(shape[-1:]), d.array(())],
    )


def drawn_select(d):
    shape = d.shape()
    masks = [d.rng.random(shape) < 0.4, d.rng.random(shape[-1:]) < 0.5]
    return lambda a, b: np.select(masks, [a, b], -3.0), [d.array(shape), d.array(shape[-1:])]


def drawn_reshape(d):
    a = d.array(d.shape(3, 3))
    order = d.one("C", "F", "A")
    shape = d.one((-1,), (a.shape[0], -1), (1, -1, a.shape[2]))
    return lambda a: np.reshape(a, shape, order=order), [a]


def drawn_cross(d):
    axis = d.number(0, 1)
    shape = (3, 2) if axis == 0 else (2, 3)
    return lambda a, b: np.cross(a, b, axis=axis), [d.array(shape), d.array(shape)]


def drawn_percentile(d):
    a = d.array(d.shape())
    q = d.one(37.0, np.array([11.0, 83.0]))
    method = d.one("linear", "lower", "higher", "midpoint", "nearest")
    options = {"axis": d.axes(a), "method": method, **d.kept()}
    return lambda a: np.percentile(a, q, **options), [a]


SWEEP = {
    "sum": reduction("sum", where=True, initial=True),
    "prod": reduction("prod", where=True, initial=True),
    "max": reduction("max", where=True, initial=True),
    "min": reduction("min", where=True, initial=True),
    "mean": reduction("mean", where=True),
    "var": reduction("var", where=True),
    "std": reduction("std", where=True),
    "median": reduction("median"),
    "ptp": reduction("ptp"),
    "any": reduction("any", where=True),
    "all": reduction("all", where=True),
    "argmax": reduction("argmax", several=False),
    "count_nonzero": reduction("count_nonzero"),
    "average": drawn_average,
    "percentile": drawn_percentile,
    "nansum": with_nan("nansum"),
    "nanprod": with_nan("nanprod"),
    "nanmax": with_nan("nanmax"),
    "nanmin": with_nan("nanmin", keepdims=True),
    "nanmean": with_nan("nanmean"),
    "nanvar": with_nan("nanvar"),
    "nanstd": with_nan("nanstd", keepdims=True),
    "nanmedian": with_nan("nanmedian"),
    "nancumsum": with_nan("nancumsum"),
    "nancumprod": with_nan("nancumprod"),
    "cumsum": along(lambda a, axis: np.cumsum(a, axis)),
    "cumprod": along(lambda a, axis: np.cumprod(a, axis)),
    "sort": along(lambda a, axis: np.sort(a, axis)),
    "argsort": along(lambda a, axis: np.argsort(a, axis)),
    "flip": along(lambda a, axis: np.flip(a, axis)),
    "diff": along(lambda a, axis: np.diff(a, axis=axis)),
    "repeat": along(lambda a, axis: np.repeat(a, 3, axis)),
    "append": along(lambda a, axis: np.append(a, a * 2, axis)),
    "unique": along(lambda a, axis: np.unique(a, axis=axis)),
    "apply_along_axis": along(lambda a, axis: np.apply_along_axis(lambda t: t * t[0], axis, a)),
    "rollaxis": along(lambda a, axis: np.rollaxis(a, axis)),
    "pad": drawn_pad,
    "pad constants": drawn_pad_constants,
    "delete": drawn_delete,
    "insert": drawn_insert,
    "convolve": drawn_slide("convolve"),
    "correlate": drawn_slide("correlate"),
    "gradient": drawn_gradient,
    "trapezoid": drawn_trapezoid,
    "interp": drawn_interp,
    "cov": drawn_cov,
    "choose": drawn_choose,
    "select": drawn_select,
    "reshape": drawn_reshape,
    "cross": drawn_cross,
}


def assert_directional(call, arrays, leaves, got, rng):
    """Derivatives along random directions are those of NumPy's function by differences."""
    outs = [x for x in listed(got) if isinstance(x, mg.Tensor) and x.requires_grad]
    if not outs:
        return
    cotangents = [rng.normal(size=x.shape) for x in listed(got)]
    total = sum((x * c).sum() for x, c in zip(listed(got), cotangents, strict=True))
    directions = [rng.normal(size=a.shape) for a in arrays]
    sides = []
    for step in (1e-6, -1e-6):
        moved = [a + step * v for a, v in zip(arrays, directions, strict=True)]
        ends = listed(call(*moved))
        sides.append([np.sum(c * x) for c, x in zip(cotangents, ends, strict=True)])
    want = sum(x - y for x, y in zip(*sides, strict=True)) / 2e-6
    grads = mg.grad(total, leaves)
    slope = sum(float((g.numpy() * v).sum()) for g, v in zip(grads, directions, strict=True))
    np.testing.assert_allclose(slope, want, rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("name", SWEEP)
def test_random_axes_shapes_and_keywords(name):
    rng = np.random.default_rng(sum(map(ord, name)))
    for _ in range(25):
        call, arrays = SWEEP[name](Draw(rng))
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            want = call(*arrays)
        leaves = [mg.tensor(a, requires_grad=True) for a in arrays]
        got = call(*leaves)
        agree(got, want, 1e-11)
        finite = all(np.isfinite(np.asarray(x, float)).all() for x in listed(want))
        if finite:
            assert_directional(call, arrays, leaves, got, rng)


# ---- out=, where=, dtype= and at -----------------------------------------------------------------


def test_out_is_written_on_the_tape(rng):
    a = rng.uniform(1, 2, (3, 4))
    x = mg.tensor(a, requires_grad=True)
    for call in (
        lambda x, out: np.exp(x, out=out),
        lambda x, out: np.multiply(x, x, out=out),
        lambda x, out: np.add(x, 1.5, out=(out,)),
        lambda x, out: np.exp(x, out=out, where=MASK),
        lambda x, out: np.cumsum(x, axis=1, out=out),
        lambda x, out: np.clip(x, 1.2, 1.7, out),
        lambda x, out: np.multiply.accumulate(x, out=out),
    ):
        want, got = np.full((3, 4), 7.0), mg.full((3, 4), 7.0, dtype=mg.float64)
        call(a, want)
        assert call(x, got) is got
        np.testing.assert_allclose(got.detach().numpy(), want, rtol=1e-14)
        g = mg.grad((got * mg.tensor(a)).sum(), x)[0].numpy()
        slopes = np.zeros_like(a)
        for at in np.ndindex(a.shape):
            sides = []
            for step in (1e-6, -1e-6):
                moved, end = a.copy(), np.full((3, 4), 7.0)
                moved[at] += step
                call(moved, end)
                sides.append(np.sum(end * a))
            slopes[at] = (sides[0] - sides[1]) / 2e-6
        np.testing.assert_allclose(g, slopes, rtol=1e-6, atol=1e-7)


def test_out_may_be_an_operand():
    x = mg.tensor([1.0, 2.0], requires_grad=True)
    y = x * 1
    assert np.multiply(y, y, out=y) is y
    np.subtract(y, 1.0, out=y, where=np.array([True, False]))
    (g,) = mg.grad(y.sum(), x)
    assert y.tolist() == [0, 4]
    assert g.tolist() == [2, 4]
    z = x * 1
    assert np.cumprod(z, out=z) is z
    (g,) = mg.grad(z.sum(), x)
    assert g.tolist() == [3, 1]
    n = mg.tensor([1, 2])
    assert np.multiply(n, 1.75, out=n, casting="unsafe").tolist() == [1, 3]


def test_out_of_reductions_and_of_two_results():
    x = mg.tensor([[1.5, -2.25], [3.0, 4.0]])
    total = mg.zeros(2)
    assert np.sum(x, axis=0, out=total) is total
    assert total.tolist() == [4.5, 1.75]
    np.add.reduce(x, axis=1, out=total)
    assert total.tolist() == [-0.75, 7]
    np.sum(np.ones((2, 2), np.float32), 0, None, total)
    assert total.tolist() == [2, 2]
    part, whole = mg.zeros(2, 2), mg.zeros(2, 2)
    found = np.modf(x, out=(part, whole))
    assert found[0] is part
    assert found[1] is whole
    assert part.tolist() == [[0.5, -0.25], [0, 0]]
    assert whole.tolist() == [[1, -2], [3, 4]]


def test_arrays_take_results_that_need_no_graph():
    x = mg.tensor([1.0, 2.0], dtype=mg.float64)
    a = np.array([10.0, 20.0])
    a += x
    assert type(a) is np.ndarray
    assert a.tolist() == [11, 22]
    assert np.exp(x * 0, out=a, where=np.array([True, False])) is a
    assert a.tolist() == [1, 22]
    with mg.no_grad():
        np.multiply(x.requires_grad_(), 2.0, out=a)
    assert a.tolist() == [2, 4]


def test_out_that_does_not_fit():
    x = mg.tensor([1.5, 2.5])
    leaf = mg.ones(2, requires_grad=True)
    for call, kind, message in (
        (lambda: np.exp(x, out=mg.zeros(2, dtype=mg.int64)), TypeError, "float32 is not cast to"),
        (lambda: np.exp(x, out=mg.zeros(3)), ValueError, r"\(2,\)"),
        (lambda: np.exp(x, out=leaf), RuntimeError, "tensor that requires grad"),
        (lambda: np.sum(leaf, out=np.zeros(())), TypeError, r"\[numpy.sum\].*out="),
        (lambda: np.sum(x, out=np.zeros((), int)), TypeError, "float32 is not cast to int64"),
    ):
        with pytest.raises(kind, match=message):
            call()


@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "maximum", "minimum", "divide"])
@pytest.mark.parametrize("kind", ["list", "tuple", "mask", "slice", "tensor"])
def test_at_counts_repeated_positions(name, kind, rng):
    ufunc = getattr(np, name)
    a = rng.uniform(1, 2, (4, 3))
    index = {
        "list": [0, 2, 0, 0],
        "tuple": ([0, 1, 0, 0], [2, 2, 2, 0]),
        "mask": a > 1.5,
        "slice": (slice(1, None), 0),
        "tensor": np.array([[3, 3], [1, 3]]),
    }[kind]
    v = rng.uniform(0.5, 2.5, a[index].shape)
    given = mg.tensor(index) if kind == "tensor" else index

    def call(a, v):
        end = a.copy()
        ufunc.at(end, index, v)
        return end

    x, w = mg.tensor(a, requires_grad=True), mg.tensor(v, requires_grad=True)
    y = x * 1
    assert ufunc.at(y, given, w) is None
    np.testing.assert_allclose(y.detach().numpy(), call(a, v), rtol=1e-12)
    assert_directional(call, [a, v], [x, w], y, rng)


def test_at_of_one_operand_and_of_numbers():
    x = mg.tensor([1.0, 2.0, 3.0])
    np.negative.at(x, [0, 0, 1])
    assert x.tolist() == [1, -2, 3]
    np.power.at(x, [1, 2, 2], 2)
    assert x.tolist() == [1, 4, 81]
    n = mg.tensor([1, 2, 3])
    np.add.at(n, [0, 0], 5)
    assert n.tolist() == [11, 2, 3]
    with pytest.raises(TypeError, match=r"\[numpy.add.at\] float32 is not cast to int64"):
        np.add.at(n, [0], 1.5)
    array = np.zeros(3)
    np.add.at(array, mg.tensor([1, 1]), mg.tensor([1.0, 2.0]))
    assert array.tolist() == [0, 3, 0]
    with pytest.raises(TypeError, match="requires grad cannot be written into an array"):
        np.add.at(array, [0], mg.ones(1, requires_grad=True))
    with pytest.raises(RuntimeError, match=r"\[numpy.add.at\] .*tensor that requires grad"):
        np.add.at(mg.ones(2, requires_grad=True), [0], 1.0)


def test_dtypes_of_universal_functions():
    x = mg.tensor([1.0, 2.0])
    assert np.exp(x, dtype=np.float64).dtype is mg.float64
    assert np.add(mg.tensor([1, 2]), 1, dtype=np.float64).tolist() == [2, 3]
    assert np.equal(x, 1.0, dtype=bool).tolist() == [True, False]
    with pytest.raises(TypeError, match="float32 is not cast to int64 by casting='same_kind'"):
        np.add(x, 1, dtype=np.int64)
    assert np.add(x, 1, dtype=np.int64, casting="unsafe").tolist() == [2, 3]
    with pytest.raises(TypeError, match="the result is of bools, not of float64"):
        np.equal(x, 1.0, dtype=float)


WRITES = {
    "copyto": lambda a, v: np.copyto(a, v[:4]),
    "copyto where": lambda a, v: np.copyto(a, v[:4], where=MASK),
    "put": lambda a, v: np.put(a, [0, 5, 0, -1], v),
    "put clip": lambda a, v: np.put(a, [0, 99], v, mode="clip"),
    "put_along_axis": lambda a, v: np.put_along_axis(a, np.array([[1], [0], [3]]), v[:3, None], 1),
    "putmask": lambda a, v: np.putmask(a, MASK, v),
    "place": lambda a, v: np.place(a, MASK, v[:3]),
    "fill_diagonal": lambda a, v: np.fill_diagonal(a, v[:3]),
}


@pytest.mark.parametrize("name", WRITES)
def test_functions_that_write_are_on_the_tape(name, rng):
    a, v = rng.uniform(1, 2, (3, 4)), rng.uniform(3, 4, 5)

    def call(a, v):
        end = a.copy()
        WRITES[name](end, v)
        return end

    x, w = mg.tensor(a, requires_grad=True), mg.tensor(v, requires_grad=True)
    y = x * 1
    assert WRITES[name](y, w) is None
    np.testing.assert_array_equal(y.detach().numpy(), call(a, v))
    assert_directional(call, [a, v], [x, w], y, rng)
    plain = mg.tensor(a)
    WRITES[name](plain, mg.tensor(v))
    np.testing.assert_array_equal(plain.numpy(), call(a, v))


@pytest.mark.filterwarnings("ignore")
def test_numpys_own_errors():
    x = mg.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    line = x[0]
    tracked = mg.ones(3, requires_grad=True)
    for call, kind, message in (
        (lambda x: np.delete(x, 9, axis=1), IndexError, "out of bounds"),
        (lambda x: np.insert(x, 9, 0.0, axis=1), IndexError, "out of bounds"),
        (lambda x: np.pad(x, -1), ValueError, "negative"),
        (lambda x: np.pad(x, 1, "nonsense"), ValueError, "not supported"),
        (lambda x: np.pad(x, 1.5), TypeError, "integ"),
        (lambda x: np.pad(x, ((1, 1),) * 3), ValueError, "broadcast"),
        (lambda x: np.pad(x[:0], 1, "edge"), ValueError, "empty axis"),
        (lambda x: np.pad(x, 1, "edge", constant_values=3), ValueError, "unsupported keyword"),
        (lambda x: np.pad(x, 1, "constant", stat_length=3), ValueError, "unsupported keyword"),
        (lambda x: np.sum(x, axis=0, out=x), ValueError, "dimension|shape"),
        (lambda x: np.sum(x, axis=1, out=x[0]), ValueError, "shape|dimension"),
        (lambda x: np.choose(np.array([7]), [x, x]), ValueError, "invalid entry"),
        (lambda x: np.select([x > 1], [x, x]), ValueError, "same length"),
        (lambda x: np.max(x, where=x > 1), ValueError, "initial"),
        (lambda x: np.average(x, weights=x[0]), TypeError, "(?i)axis"),
        (lambda x: np.average(x, weights=x * 0), ZeroDivisionError, "to (0|zero)"),
        (lambda x: np.vdot(x, x[0]), ValueError, ""),
        (lambda x: np.gradient(x, 1.0, 2.0, 3.0), TypeError, ""),
        (lambda x: np.gradient(x[:, :1]), ValueError, ""),
        (lambda x: np.interp(x, [1.0, 2.0], [1.0]), ValueError, ""),
        (lambda x: np.interp(x, [1.0, 2.0], [1.0, 2.0], period=0), ValueError, "period"),
        (lambda x: np.convolve(x[0], x[0][:0]), ValueError, ""),
        (lambda x: np.convolve(x[0], x[0], "odd"), ValueError, ""),
        (lambda x: np.cov(x, fweights=[1.5, 1.0, 1.0]), TypeError, "integer"),
        (lambda x: np.cov(x, aweights=[-1.0, 1.0, 1.0]), ValueError, "negative"),
        (lambda x: np.nanargmax(x * np.nan), ValueError, "NaN"),
        (lambda x: np.reshape(x, -1, order="Q"), ValueError, "order"),
        (lambda x: np.meshgrid(x, x, indexing="yx"), ValueError, "indexing"),
        (lambda x: np.piecewise(x, [x > 1], [1, 2, 3]), ValueError, "func"),
        (lambda x: np.polyval(x[0, 0], x), TypeError, ""),
        (lambda x: np.ediff1d(np.argsort(x), to_end=0.5), TypeError, ""),
    ):
        for given in (x, x.numpy()):
            with pytest.raises(kind, match=message):
                call(given)
    for call, message in (
        (lambda: np.pad(x, 1, "mean"), r"\[numpy.pad\] mode 'mean' is not offered for tensors"),
        (lambda: np.pad(x, 1, "reflect", reflect_type="odd"), "reflect_type='odd' is not offered"),
        (lambda: np.quantile(x, 0.5, method="hazen"), r"\[numpy.quantile\] method 'hazen' is not"),
        (lambda: np.nanmax(x, initial=3.0), r"\[numpy.nanmax\] initial= and where= are not"),
        (lambda: np.trim_zeros(x), r"\[numpy.trim_zeros\] a tensor of 2 dimensions is not"),
        (lambda: np.histogram2d(tracked, tracked), "results that are floats would get no gradient"),
        (lambda: np.polyfit(line, line, 1), r"\[numpy.polyfit\] not offered for tensors"),
    ):
        with pytest.raises(TypeError, match=message):
            call()


def test_bools_and_integers_of_a_list_stay_exact():
    x = mg.tensor([1, 0, 1, 1])
    assert np.convolve(x, [1, 2]).tolist() == [1, 2, 1, 3, 2]
    assert np.bincount(x > 0).tolist() == [1, 3]
    assert np.cov(mg.tensor([0.0, 1.0]), [1.1, 2.3]).dtype is mg.float64
    near = np.interp(mg.tensor([0.1]), [0.1, 0.2], [0.3, 0.4]).item()
    assert near == np.interp(np.float32(0.1), [0.1, 0.2], [0.3, 0.4])
    big = mg.tensor([2**53 + 1, 3])
    assert np.append(big, 1).tolist() == [2**53 + 1, 3, 1]
    assert np.pad(big, 1, "edge").tolist() == [2**53 + 1, 2**53 + 1, 3, 3]
    assert np.insert(mg.zeros(2, dtype=mg.float64), 1, 0.1).tolist() == [0, 0.1, 0]


def test_signs_and_infinities_of_modf():
    values = [-0.0, 0.0, np.inf, -np.inf, np.nan, -2.0, 2.0, -2.5, 3.25]
    x = mg.tensor(values, mg.float64, requires_grad=True)
    for got, want in zip(np.modf(x), np.modf(np.array(values)), strict=True):
        np.testing.assert_array_equal(got.detach().numpy(), want)
        np.testing.assert_array_equal(np.signbit(got.detach().numpy()), np.signbit(want))
    (g,) = mg.grad(np.modf(x)[0].nan_to_num().sum(), x)
    assert g[-4:].tolist() == [1, 1, 1, 1]


def test_results_share_no_memory_where_numpys_do_not():
    for shape in ((), (3,), (2, 3)):
        for call in (
            lambda x: np.pad(x, 0),
            lambda x: np.pad(x, 0, "edge"),
            lambda x: np.sum(x, axis=()),
            lambda x: np.max(x, axis=()),
            lambda x: np.conj(x),
            lambda x: np.copy(x),
            lambda x: np.fix(x),
            lambda x: np.append(np.ravel(x), []),
            lambda x: np.delete(x, []),
            lambda x: np.meshgrid(x)[0],
            lambda x: np.clip(x, None, 9),
            lambda x: np.resize(x, x.shape),
            lambda x: np.unique(x),
            lambda x: np.concatenate([np.ravel(x)]),
        ):
            a = np.ones(shape)
            x = mg.tensor(a)
            assert not np.shares_memory(call(a), a)
            assert not np.shares_memory(call(x), x)


def test_interp_at_its_points_and_of_infinite_values():
    at = np.array([0.0, 1.0, 2.0, -1.0, 3.0])
    x = mg.tensor(at, requires_grad=True)
    y = mg.tensor([0.0, 1.0, 5.0], mg.float64, requires_grad=True)
    gx, gy = mg.grad(np.interp(x, [0.0, 1.0, 2.0], y).sum(), [x, y])
    assert gx.tolist() == [1, 4, 0, 0, 0]
    assert gy.tolist() == [2, 1, 2]
    points = np.array([0.0, 1.0, 2.0, 3.0, 4.0, 5.0])
    values = np.array([np.inf, np.inf, 1.0, -np.inf, np.inf, np.nan])
    at = np.concatenate([points, points + 0.5, [np.nan, np.inf, -np.inf]])
    got = np.interp(mg.tensor(at), points, values).numpy()
    np.testing.assert_array_equal(got, np.interp(at, points, values))


def test_means_in_integers():
    a = np.array([1, 2, 4])
    assert np.mean(mg.tensor(a), dtype=np.int64).tolist() == np.mean(a, dtype=np.int64)


def test_nothing_but_nan():
    x = mg.tensor([[np.nan, np.nan], [1.0, np.nan]], requires_grad=True)
    y = np.nanmax(x, axis=1)
    np.testing.assert_array_equal(y.detach().numpy(), [np.nan, 1])
    (g,) = mg.grad(y[1], x)
    assert g.tolist() == [[0, 0], [1, 0]]
    assert np.nansum(x).item() == 1
    assert np.unique(x).shape == (2,)
    assert np.unique(x, equal_nan=False).shape == (4,)


# ---- what is not offered -------------------------------------------------------------------------


def offered():
    """For each function of NumPy's that asks its arguments: is it offered for tensors?"""
    found = {}
    for module, prefix in ((np, ""), (np.linalg, "linalg.")):
        for name in dir(module):
            function = getattr(module, name)
            if isinstance(function, np.ufunc):
                found[prefix + function.__name__] = protocol._found(function.__name__) is not None
            elif hasattr(function, "_implementation"):
                found[prefix + name] = table.implementation(function) is not None
    return found


@pytest.mark.skipif(not NUMPY2, reason="NumPy 1 has functions that have gone since")
def test_the_document_lists_what_is_not_offered():
    text = (Path(__file__).parent.parent.parent / "docs" / "numerics.md").read_text()
    section = text.partition("## NumPy's functions on tensors")[2].partition("\n## ")[0]
    listed = section.partition("These raise TypeError")[2].partition("- `reduceat`")[0]
    missing = {name for name, is_offered in offered().items() if not is_offered}
    named = set(re.findall(r"`([a-z_0-9.]+)`", listed))
    assert missing <= named
    assert not {name for name in named if offered().get(name)} - {"polyval"}
    assert sum(offered().values()) > 240
