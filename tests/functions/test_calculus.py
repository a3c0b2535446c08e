"""Derivatives and integrals of sampled functions, and matrices of powers: values and errors."""

from __future__ import annotations

import numpy as np
import oracle
import pytest

import minigrad as mg

Y = np.array([[1.0, 4.0, 2.0, 8.0], [0.5, -1.0, 3.0, 2.0], [2.0, 2.0, 7.0, -3.0]])
POINTS = np.array([0.0, 0.5, 2.0, 2.25])


@pytest.mark.parametrize("order", [1, 2])
def test_gradient_is_numpys(order):
    for spacing, steps in ((1, (1.0,)), (0.5, (0.5,)), ([0.5, 2.0], (0.5, 2.0))):
        ours = mg.gradient(mg.tensor(Y), spacing=spacing, edge_order=order)
        for got, want in zip(ours, np.gradient(Y, *steps, edge_order=order), strict=True):
            oracle.assert_same(got.numpy(), want)
    (along,) = mg.gradient(mg.tensor(Y), spacing=[POINTS], dim=1, edge_order=order)
    np.testing.assert_allclose(along.numpy(), np.gradient(Y, POINTS, axis=1, edge_order=order))


def test_gradient_along_dimensions_in_their_order():
    ours = mg.gradient(mg.tensor(Y), spacing=[2.0, 1.0], dim=(1, 0))
    np.testing.assert_array_equal(ours[0].numpy(), np.gradient(Y, 2.0, axis=1))
    np.testing.assert_array_equal(ours[1].numpy(), np.gradient(Y, axis=0))


def test_integers_are_differentiated_as_floats():
    (slope,) = mg.gradient(mg.tensor([0, 1, 4]))
    assert slope.dtype is mg.float32
    assert slope.tolist() == [1.0, 2.0, 3.0]


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"dim": 2}, IndexError, "dim 2 is out of range"),
        ({"dim": (0, 0)}, ValueError, "dim 0 is given twice"),
        ({"edge_order": 3}, ValueError, "edge_order is 3, but must be 1 or 2"),
        ({"spacing": [1.0]}, ValueError, "1 spacings for 2 dimensions"),
        ({"spacing": [mg.zeros(2), 1.0]}, ValueError, r"coordinates of shape \(2,\) for 3"),
        ({"spacing": "far"}, TypeError, "spacing must be a number"),
    ],
)
def test_errors_of_gradient(options, error, text):
    with pytest.raises(error, match=rf"\[gradient\] .*{text}"):
        mg.gradient(mg.tensor(Y), **options)


def test_too_few_elements_for_a_gradient():
    with pytest.raises(ValueError, match=r"\[gradient\] 2 elements along dim 0: 3 are needed"):
        mg.gradient(mg.zeros(2), edge_order=2)


def test_trapezoid_is_numpys():
    trapezoid = getattr(np, "trapezoid", None) or np.trapz
    y = mg.tensor(Y)
    for options, given in (({}, {}), ({"dx": 0.5}, {"dx": 0.5}), ({"dim": 0}, {"axis": 0})):
        np.testing.assert_allclose(mg.trapezoid(y, **options).numpy(), trapezoid(Y, **given))
    np.testing.assert_allclose(mg.trapezoid(y, mg.tensor(POINTS)).numpy(), trapezoid(Y, POINTS))
    assert mg.trapz is mg.trapezoid
    assert mg.trapezoid(mg.zeros(3, 0)).tolist() == [0.0, 0.0, 0.0]
    assert mg.trapezoid(mg.ones(1)).item() == 0.0


def test_cumulative_trapezoid_is_scipys():
    integrate = pytest.importorskip("scipy.integrate")
    got = mg.cumulative_trapezoid(mg.tensor(Y), mg.tensor(POINTS))
    np.testing.assert_allclose(got.numpy(), integrate.cumulative_trapezoid(Y, POINTS))
    got = mg.cumulative_trapezoid(mg.tensor(Y), dx=0.5, dim=0)
    np.testing.assert_allclose(got.numpy(), integrate.cumulative_trapezoid(Y, dx=0.5, axis=0))


def test_errors_of_trapezoid():
    with pytest.raises(TypeError, match=r"\[trapezoid\] x and dx are two ways"):
        mg.trapezoid(mg.ones(3), mg.ones(3), dx=1.0)
    with pytest.raises(ValueError, match=r"\[trapezoid\] coordinates of shape \(2,\) for 3"):
        mg.trapezoid(mg.ones(3), mg.ones(2))


def test_vander_is_numpys():
    for x in (np.array([2.0, -1.0, 0.0]), np.array([3, 2]), np.array([0.5]), np.zeros(0)):
        for count in (None, 0, 1, 4):
            for increasing in (False, True):
                got = mg.vander(mg.tensor(x), count, increasing)
                oracle.assert_same(got.numpy(), np.vander(x, count, increasing=increasing))


def test_gradient_of_vander_at_zero():
    x = mg.tensor([0.0, 2.0], dtype=mg.float64, requires_grad=True)
    mg.vander(x, 4, increasing=True)[:, 1].sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]
    x.grad = None
    mg.vander(x, 4).sum().backward()
    assert x.grad.tolist() == [1.0, 17.0]


def test_errors_of_vander():
    with pytest.raises(ValueError, match=r"\[vander\] x has 2 dimensions, but must have one"):
        mg.vander(mg.ones(2, 2))
    with pytest.raises(ValueError, match=r"\[vander\] N is -1"):
        mg.vander(mg.ones(2), -1)
