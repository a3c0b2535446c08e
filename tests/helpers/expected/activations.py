"""References of activations."""

from __future__ import annotations

import numpy as np
from scipy import special

from expected.base import Given, prefixed, sigmoid, softmax


def _elu(x, alpha=1.0):
    return np.where(x > 0, x, alpha * np.expm1(x))


def _selu(x):
    return 1.0507009873554804934193349852946 * _elu(x, 1.6732632423543772848170429916717)


def _gelu(x, approximate="none"):
    if approximate == "tanh":
        return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
    return x * special.ndtr(x)


def _glu(x, dim=-1):
    a, b = np.split(x, 2, dim)
    return a * sigmoid(b)


def _softplus(x, beta=1.0, threshold=20.0):
    return np.where(beta * x > threshold, x, np.log1p(np.exp(beta * x)) / beta)


def _leaky(x, slope=0.01):
    return np.where(x > 0, x, slope * x)


def _rrelu(results, x, lower=1 / 8, upper=1 / 3, training=False):
    """Check that the drawn slopes lie between the bounds."""
    if not training:
        return _leaky(x, (lower + upper) / 2)
    slopes = results[0] / x
    assert np.logical_or(x > 0, (lower <= slopes) & (slopes <= upper)).all()
    assert (x > 0).sum() + len(np.unique(slopes[x <= 0])) == x.size
    return _leaky(x, slopes)


def _prelu(x, weight):
    return np.where(x > 0, x, x * weight.reshape(-1, *[1] * (x.ndim - 2)))


def _gumbel_softmax(results, x, tau=1.0, hard=False, dim=-1, noise=None):
    """Check that lines sum to 1, and that their noise may be Gumbel distributed."""
    if noise is not None:
        return softmax((x + noise) / tau, dim)
    (y,) = results
    np.testing.assert_allclose(y.sum(dim), 1)
    if hard:
        assert ((y == 0) | (np.abs(y - 1) < 1e-12)).all()
        return y
    # softmax((x + g) / tau) = y gives g up to a constant for each line
    noise = tau * np.log(y) - x
    assert np.ptp(noise, axis=dim).max() < 20
    return softmax((x + noise) / tau, dim)


def _threshold(x, threshold, value):
    return np.where(x > threshold, x, value)


def _hardshrink(x, lambd=0.5):
    return np.where(np.abs(x) > lambd, x, 0)


def _softshrink(x, lambd=0.5):
    return np.sign(x) * np.maximum(np.abs(x) - lambd, 0)


def _relu(x, inplace=False):
    return np.maximum(x, 0)


def _hardtanh(x, low=-1.0, high=1.0):
    return np.clip(x, low, high)


def _celu(x, alpha=1.0):
    return np.where(x > 0, x, alpha * np.expm1(x / alpha))


ACTIVATIONS = prefixed(
    "nn.functional.",
    {
        "celu": _celu,
        "celu_": _celu,
        "elu": _elu,
        "elu_": _elu,
        "gelu": _gelu,
        "glu": _glu,
        "gumbel_softmax": Given(_gumbel_softmax),
        "hardshrink": _hardshrink,
        "hardsigmoid": lambda x: np.clip(x + 3, 0, 6) / 6,
        "hardswish": lambda x: x * np.clip(x + 3, 0, 6) / 6,
        "hardtanh": _hardtanh,
        "hardtanh_": _hardtanh,
        "leaky_relu": _leaky,
        "leaky_relu_": _leaky,
        "logsigmoid": lambda x: -np.log1p(np.exp(-x)),
        "mish": lambda x: x * np.tanh(np.log1p(np.exp(x))),
        "prelu": _prelu,
        "relu": _relu,
        "relu_": _relu,
        "relu6": lambda x: np.clip(x, 0, 6),
        "rrelu": Given(_rrelu),
        "rrelu_": Given(_rrelu),
        "selu": _selu,
        "selu_": _selu,
        "silu": lambda x: x * sigmoid(x),
        "softplus": _softplus,
        "softshrink": _softshrink,
        "softsign": lambda x: x / (1 + abs(x)),
        "tanhshrink": lambda x: x - np.tanh(x),
        "threshold": _threshold,
        "threshold_": _threshold,
    },
)
