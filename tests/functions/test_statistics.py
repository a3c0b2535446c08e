"""Covariances, histograms, most frequent values and membership: values, edges and errors."""

from __future__ import annotations

import numpy as np
import oracle
import pytest

import minigrad as mg

NAN = float("nan")

# ---- covariances ---------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(3, 5), (5,), (1, 4)])
def test_covariances_are_numpys(shape, rng):
    x = rng.normal(size=shape)
    n = shape[-1]
    whole, part = rng.integers(1, 4, n), rng.uniform(0.5, 2, n)
    for ddof in (0, 1):
        for f in (None, whole):
            for a in (None, part):
                got = mg.cov(
                    mg.tensor(x),
                    correction=ddof,
                    fweights=None if f is None else mg.tensor(f),
                    aweights=None if a is None else mg.tensor(a),
                )
                want = np.cov(x, ddof=ddof, fweights=f, aweights=a)
                np.testing.assert_allclose(got.numpy(), want, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(mg.corrcoef(mg.tensor(x)).numpy(), np.corrcoef(x), rtol=1e-12)


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"fweights": mg.ones(3)}, TypeError, "fweights holds float32, but must hold integers"),
        ({"aweights": mg.tensor([1, 2, 3])}, TypeError, "aweights holds int64, but must hold"),
        ({"aweights": mg.ones(2)}, ValueError, r"aweights of shape \(2,\) for 3 observations"),
        ({"aweights": -mg.ones(3)}, ValueError, "aweights cannot be negative"),
        ({"correction": 0.5}, TypeError, "correction must be an integer"),
    ],
)
def test_errors_of_covariances(options, error, text):
    with pytest.raises(error, match=rf"\[cov\] {text}"):
        mg.cov(mg.ones(2, 3), **options)


def test_covariances_of_more_than_a_matrix():
    for name in ("cov", "corrcoef"):
        with pytest.raises(ValueError, match=rf"\[{name}\] input has 3 dimensions"):
            getattr(mg, name)(mg.ones(1, 2, 3))


# ---- histograms ----------------------------------------------------------------------------------


@pytest.mark.parametrize("density", [False, True])
def test_histograms_are_numpys(density, rng):
    x, w = rng.normal(size=(6, 7)), rng.uniform(size=(6, 7))
    edges = np.array([-1.0, -0.5, 0.25, 2.0])
    for bins, given, limits in ((5, 5, None), (5, 5, (-1.0, 1.5)), (mg.tensor(edges), edges, None)):
        for weight in (None, w):
            options = {} if limits is None else {"range": limits}
            got = mg.histogram(
                mg.tensor(x),
                bins,
                weight=None if weight is None else mg.tensor(weight),
                density=density,
                **options,
            )
            want, want_edges = np.histogram(
                x, given, weights=weight, density=density or None, **options
            )
            np.testing.assert_allclose(got.hist.numpy(), want, rtol=1e-12)
            np.testing.assert_allclose(got.bin_edges.numpy(), want_edges, rtol=1e-12)


def test_histogram_at_its_edges():
    x = mg.tensor([0.0, 1.0, 2.0, 2.0, NAN, -1.0, 3.0])
    assert mg.histogram(x, mg.tensor([0.0, 1.0, 2.0])).hist.tolist() == [1.0, 3.0]
    assert mg.histogram(mg.tensor([2.0, 2.0]), 2).hist.tolist() == [0.0, 2.0]
    assert mg.histogram(mg.zeros(0), 2).hist.tolist() == [0.0, 0.0]


def test_errors_of_histogram():
    with pytest.raises(TypeError, match=r"\[histogram\] not offered for int64"):
        mg.histogram(mg.tensor([1]), 2)
    with pytest.raises(ValueError, match=r"\[histogram\] .* is no finite range"):
        mg.histogram(mg.tensor([1.0, NAN]), 2)
    with pytest.raises(ValueError, match=r"\[histogram\] edges of shape \(1,\)"):
        mg.histogram(mg.ones(3), mg.ones(1))
    with pytest.raises(ValueError, match=r"\[histogram\] a weight of shape \(2,\) for \(3,\)"):
        mg.histogram(mg.ones(3), 2, weight=mg.ones(2))


# ---- most frequent values ------------------------------------------------------------------------


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("dtype", [np.float64, np.int64, np.bool_])
def test_mode_is_the_smallest_of_the_most_frequent(axis, dtype, rng):
    x = rng.integers(0, 2 if dtype is np.bool_ else 4, (5, 8)).astype(dtype)
    got = mg.mode(mg.tensor(x), axis)

    def of(line):
        values, counts = np.unique(line, return_counts=True)
        value = values[np.argmax(counts)]
        return value, np.flatnonzero(line == value)[-1]

    want = [of(line) for line in np.moveaxis(x, axis, -1)]
    assert got.values.tolist() == [value for value, _ in want]
    assert got.indices.tolist() == [place for _, place in want]
    kept = mg.mode(mg.tensor(x), axis, keepdim=True)
    oracle.assert_same(kept.values.squeeze(axis).numpy(), got.values.numpy())


def test_mode_of_one_and_of_none():
    assert mg.mode(mg.tensor(3.0)).values.item() == 3.0
    assert mg.mode(mg.tensor([[3.0], [1.0]])).values.tolist() == [3.0, 1.0]
    assert mg.mode(mg.zeros(2, 0), 0).values.shape == (0,)
    with pytest.raises(ValueError, match=r"\[mode\] dim 0 of shape \(0,\) has no elements"):
        mg.mode(mg.zeros(0), 0)


def test_the_gradient_of_mode_goes_to_its_index():
    x = mg.tensor([3.0, 1.0, 3.0, 2.0], requires_grad=True)
    mg.mode(x).values.backward()
    assert x.grad.tolist() == [0.0, 0.0, 1.0, 0.0]


# ---- membership ----------------------------------------------------------------------------------


def test_isin_is_numpys(rng):
    for dtype in (np.int64, np.float64, np.bool_, np.uint8):
        x, y = (rng.integers(0, 9, n).astype(dtype) for n in (20, 4))
        for invert in (False, True):
            got = mg.isin(mg.tensor(x).reshape(4, 5), mg.tensor(y), invert=invert)
            oracle.assert_same(got.numpy(), np.isin(x.reshape(4, 5), y, invert=invert))


def test_isin_with_numbers_nan_and_nothing():
    x = mg.tensor([1.0, NAN, 2.5])
    assert mg.isin(x, 2.5).tolist() == [False, False, True]
    assert mg.isin(1, mg.tensor([1, 2])).item() is True
    assert mg.isin(x, x).tolist() == [True, False, True]
    assert mg.isin(x, mg.zeros(0)).tolist() == [False] * 3
    assert mg.isin(mg.tensor([1, 2]), mg.tensor([1.5, 2.0])).tolist() == [False, True]
    with pytest.raises(TypeError, match=r"\[isin\] one of both must be a tensor"):
        mg.isin(1, [1, 2])
