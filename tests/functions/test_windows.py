"""Windows, and other tensors of the values of a function: values, dtypes and errors."""

from __future__ import annotations

import numpy as np
import pytest

import minigrad as mg

COSINES = {"hann": np.hanning, "hamming": np.hamming, "blackman": np.blackman}


@pytest.mark.parametrize("length", [1, 2, 3, 7, 16])
def test_symmetric_windows_are_numpys(length):
    for name, theirs in {**COSINES, "bartlett": np.bartlett}.items():
        got = getattr(mg, f"{name}_window")(length, periodic=False, dtype=mg.float64)
        np.testing.assert_allclose(got.numpy(), theirs(length), atol=1e-15)
    got = mg.kaiser_window(length, False, 8.6, dtype=mg.float64)
    np.testing.assert_allclose(got.numpy(), np.kaiser(length, 8.6), rtol=1e-13, atol=1e-16)


def test_a_periodic_window_is_a_longer_one_without_its_end():
    for name in ("hann", "hamming", "blackman", "bartlett", "kaiser"):
        window = getattr(mg, f"{name}_window")
        got, longer = window(6, dtype=mg.float64), window(7, False, dtype=mg.float64)
        np.testing.assert_array_equal(got.numpy(), longer[:-1].numpy())


def test_small_windows_and_options():
    assert mg.hann_window(0).shape == (0,)
    assert mg.hann_window(1).tolist() == [1.0]
    assert mg.bartlett_window(3, requires_grad=True).requires_grad
    assert mg.hann_window(3).dtype is mg.float32
    weights = mg.hamming_window(4, True, 0.6, 0.4, dtype=mg.float64)
    np.testing.assert_allclose(weights.numpy(), [0.2, 0.6, 1.0, 0.6], atol=1e-15)
    assert mg.kaiser_window(3, False, 2000.0).tolist() == [0.0, 1.0, 0.0]


def test_errors_of_windows():
    with pytest.raises(ValueError, match=r"\[hann_window\] window_length is -1"):
        mg.hann_window(-1)
    with pytest.raises(TypeError, match=r"\[hann_window\] a window holds floats, not int64"):
        mg.hann_window(3, dtype=mg.int64)


def test_logspace():
    for ends in ((0.0, 3.0, 4), (-2.0, 1.0, 7), (1.5, 1.5, 1), (0.0, 1.0, 0)):
        got = mg.logspace(*ends, dtype=mg.float64)
        np.testing.assert_allclose(got.numpy(), np.logspace(*ends), rtol=1e-14)
    assert mg.logspace(0, 3, 4, 2, dtype=mg.int64).tolist() == [1, 2, 4, 8]
    assert mg.logspace(1, 2, 2, base=-2.0).tolist()[0] == -2.0
    with pytest.raises(ValueError, match=r"\[linspace\] steps is -1"):
        mg.logspace(0, 1, -1)


def test_a_number_as_a_tensor():
    made = mg.scalar_tensor(3)
    assert (made.dtype, made.shape, made.item()) == (mg.float32, (), 3.0)
    assert mg.scalar_tensor(3, dtype=mg.int64).dtype is mg.int64
    with pytest.raises(TypeError, match=r"\[scalar_tensor\] s must be a number"):
        mg.scalar_tensor([1, 2])


def test_values_are_pytorchs():
    torch = pytest.importorskip("torch")
    for name in ("hann", "hamming", "blackman", "bartlett", "kaiser"):
        for periodic in (False, True):
            got, want = (
                getattr(m, f"{name}_window")(9, periodic, dtype=m.float64) for m in (mg, torch)
            )
            np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-12, atol=1e-15)
    for arguments in ((0, 2, 5), (-1.5, 1, 4, 2.0)):
        got, want = (m.logspace(*arguments, dtype=m.float64) for m in (mg, torch))
        np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-12)
