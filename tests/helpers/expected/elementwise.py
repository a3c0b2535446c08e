"""References of elementwise functions with options. references.py has the references of rows."""

from __future__ import annotations

import numpy as np
from references import BITS, COMPARISONS, POINTWISE, TESTS
from scipy import special

from expected.base import sigmoid


def _div(a, b, rounding_mode=None):
    q = np.divide(a, b)
    return {None: q, "floor": np.floor(q), "trunc": np.trunc(q)}[rounding_mode]


def _clamp(x, low=None, high=None, **bounds):
    low, high = bounds.get("min", low), bounds.get("max", high)
    y = x if low is None else np.maximum(x, low)
    return y if high is None else np.minimum(y, high)


def _nan_to_num(x, nan=0.0, posinf=None, neginf=None):
    return np.nan_to_num(x, nan=nan, posinf=posinf, neginf=neginf)


def _round(x, decimals=0):
    return np.round(x * 10.0**decimals) / 10.0**decimals


def _logit(x, eps=None):
    p = x if eps is None else np.clip(x, eps, 1 - eps)
    return np.log(p / (1 - p))


ELEMENTWISE = {
    **POINTWISE,
    **TESTS,
    **COMPARISONS,
    **BITS,
    "add": lambda a, b, alpha=1: a + alpha * b,
    "sub": lambda a, b, alpha=1: a - alpha * b,
    "rsub": lambda a, b, alpha=1: b - alpha * a,
    "div": _div,
    "true_divide": np.divide,
    "round": _round,
    "positive": np.positive,
    "logit": _logit,
    "polygamma": lambda n, x: special.polygamma(n, x),
    "clamp": _clamp,
    "clamp_min": np.maximum,
    "clamp_max": np.minimum,
    "nan_to_num": _nan_to_num,
    "lerp": lambda a, b, w: a + w * (b - a),
    "addcmul": lambda x, a, b, value=1: x + value * a * b,
    "addcdiv": lambda x, a, b, value=1: x + value * a / b,
    "isneginf": np.isneginf,
    "isposinf": np.isposinf,
    "isclose": np.isclose,
    "allclose": np.allclose,
    "equal": lambda a, b: a.shape == b.shape and bool((a == b).all()),
    "special.expit": sigmoid,
}
