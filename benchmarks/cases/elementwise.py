"""Elementwise functions in the second-level cache (2^16) and in memory (2^24), both ways."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import pi, sqrt
from typing import Any

import numpy as np

from benchmarks.cases.common import both_ways
from benchmarks.registry import Target, faster, share, time_ratio

_Slope = Callable[..., tuple[Any, ...]]


@dataclass(frozen=True)
class _Op:
    """A function in each library, and its hand-written gradients."""

    name: str
    numpy: Callable[..., Any] | None
    gradients: _Slope | None  # function of (upstream, result, *inputs)
    jax: Callable[..., Any]  # function of jax and the inputs
    domains: tuple[tuple[float, float], ...]
    saved: int = 1  # arrays that the backward reads in addition to the upstream gradient
    eager: Callable[..., Any] | None = None  # from the library; by default the function ``name``
    ufunc: str = ""  # the ufunc in which NumPy spends most of the time
    note: str = ""


_ANY, _POSITIVE, _UNIT, _NARROW = (-4.0, 4.0), (0.1, 4.0), (-0.95, 0.95), (-1.5, 1.5)


def _same(name: str, slope: Any, domain: Any = _ANY, numpy: str = "") -> _Op:
    """A function of NumPy, and of jax.numpy under the same name."""
    ufunc = numpy or name
    return _Op(
        name,
        getattr(np, ufunc),
        lambda *a: (slope(*a),),
        lambda jax, *xs: getattr(jax.numpy, ufunc)(*xs),
        (domain,),
        ufunc=ufunc,
    )


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def _silu_slope(g: Any, y: Any, x: Any) -> Any:
    s = _sigmoid(x)
    return g * (s + y * (1 - s))


def _gelu_tanh(x: Any) -> Any:
    return 0.5 * x * (1 + np.tanh(_scaled(x, x * x)))


def _scaled(x: Any, square: Any) -> Any:
    return x.dtype.type(sqrt(2 / pi)) * x * (1 + x.dtype.type(0.044715) * square)


def _gelu_tanh_slope(g: Any, y: Any, x: Any) -> Any:
    square = x * x
    t = np.tanh(_scaled(x, square))
    inner = x.dtype.type(sqrt(2 / pi)) * (1 + x.dtype.type(3 * 0.044715) * square)
    return g * (0.5 * (1 + t) + 0.5 * x * (1 - t * t) * inner)


def _power_slopes(g: Any, y: Any, a: Any, b: Any) -> tuple[Any, Any]:
    """Gradients of the power for positive bases, computed from the power."""
    scaled = g * y
    return scaled * b / a, scaled * np.log(a)


_FUNCTIONS = [
    _same("exp", lambda g, y, x: g * y),
    _same("expm1", lambda g, y, x: g * (y + 1)),
    _same("exp2", lambda g, y, x: g * y * x.dtype.type(np.log(2))),
    _same("log", lambda g, y, x: g / x, _POSITIVE),
    _same("log1p", lambda g, y, x: g / (1 + x), _POSITIVE),
    _same("log2", lambda g, y, x: g / (x * x.dtype.type(np.log(2))), _POSITIVE),
    _same("sin", lambda g, y, x: g * np.cos(x)),
    _same("cos", lambda g, y, x: -g * np.sin(x)),
    _same("tan", lambda g, y, x: g * (1 + y * y), _NARROW),
    _same("tanh", lambda g, y, x: g * (1 - y * y)),
    _same("sinh", lambda g, y, x: g * np.cosh(x)),
    _same("cosh", lambda g, y, x: g * np.sinh(x)),
    _same("asin", lambda g, y, x: g / np.sqrt(1 - x * x), _UNIT, "arcsin"),
    _same("acos", lambda g, y, x: -g / np.sqrt(1 - x * x), _UNIT, "arccos"),
    _same("atan", lambda g, y, x: g / (1 + x * x), _ANY, "arctan"),
    _Op(
        "atan2",
        np.arctan2,
        lambda g, y, a, b: (g * b / (a * a + b * b), -g * a / (a * a + b * b)),
        lambda jax, a, b: jax.numpy.arctan2(a, b),
        (_ANY, _ANY),
        saved=2,
        ufunc="arctan2",
    ),
    _Op(
        "pow",
        np.power,
        _power_slopes,
        lambda jax, a, b: a**b,
        (_POSITIVE, _ANY),
        saved=3,
        ufunc="power",
    ),
    _Op(
        "sigmoid",
        _sigmoid,
        lambda g, y, x: (g * (y * (1 - y)),),
        lambda jax, x: jax.nn.sigmoid(x),
        (_ANY,),
        ufunc="exp",
    ),
    _Op(
        "softplus",
        lambda x: np.log1p(np.exp(x)),
        lambda g, y, x: (g * _sigmoid(x),),
        lambda jax, x: jax.nn.softplus(x),
        (_ANY,),
        eager=lambda lib: lib.functional.softplus,
        ufunc="exp",
    ),
    _Op(
        "silu",
        lambda x: x * _sigmoid(x),
        lambda *a: (_silu_slope(*a),),
        lambda jax, x: jax.nn.silu(x),
        (_ANY,),
        eager=lambda lib: lib.functional.silu,
        ufunc="exp",
    ),
    _Op(
        "gelu",
        None,
        None,
        lambda jax, x: jax.nn.gelu(x, approximate=False),
        (_ANY,),
        eager=lambda lib: lib.functional.gelu,
        note="NumPy has no erf",
    ),
    _Op(
        "gelu tanh",
        _gelu_tanh,
        lambda *a: (_gelu_tanh_slope(*a),),
        lambda jax, x: jax.nn.gelu(x, approximate=True),
        (_ANY,),
        eager=lambda lib: lambda x: lib.functional.gelu(x, approximate="tanh"),
        ufunc="tanh",
    ),
    _Op("erf", None, None, lambda jax, x: jax.lax.erf(x), (_ANY,), note="NumPy has no erf"),
    _Op("erfc", None, None, lambda jax, x: jax.lax.erfc(x), (_ANY,), note="NumPy has no erfc"),
    _Op(
        "rsqrt",
        lambda x: 1 / np.sqrt(x),
        lambda g, y, x: (-0.5 * g * y * y * y,),
        lambda jax, x: jax.lax.rsqrt(x),
        (_POSITIVE,),
    ),
]
_ARITHMETIC = [
    _Op(
        "add",
        np.add,
        lambda g, y, a, b: (g.copy(), g.copy()),  # separate arrays, like .grad of two leaves
        lambda jax, a, b: a + b,
        (_ANY, _ANY),
        saved=0,
    ),
    _Op(
        "mul",
        np.multiply,
        lambda g, y, a, b: (g * b, g * a),
        lambda jax, a, b: a * b,
        (_ANY, _ANY),
        saved=2,
    ),
    _Op(
        "div",
        np.divide,
        lambda g, y, a, b: (g / b, -g * y / b),
        lambda jax, a, b: a / b,
        (_ANY, _POSITIVE),
        saved=2,
    ),
    _same("sqrt", lambda g, y, x: g / (2 * y), _POSITIVE),
]
_CACHE, _MEMORY = 2**16, 2**24
_IN_MEMORY = {"add", "mul", "div", "sqrt", "exp", "log", "tanh", "sigmoid", "sin"}
_QUICK_IN_MEMORY, _QUICK_BACKWARD = {"add", "exp"}, {"exp", "tanh", "mul", "gelu"}


def numpy_has_vectors(ufunc: str, dtype: str) -> bool:
    """True if NumPy reports vector code for a function on this machine."""
    code = "f" if dtype == "float32" else "d"
    try:
        found = np.lib.introspect.opt_func_info(f"^{ufunc}$", f"^{dtype}$")
    except AttributeError:  # NumPy 1 does not report it
        return True
    loops = [loop for name, loop in found.get(ufunc, {}).items() if set(name) == {code}]
    return any(not loop["current"].startswith("baseline") for loop in loops)


def _targets(op: _Op, size: int, dtype: str) -> list[Target]:
    if size == _MEMORY:
        return [share(0.9), time_ratio(1.0)]
    if op in _ARITHMETIC:
        return [time_ratio(1.0)]
    if not op.ufunc:
        return [faster(2.0)]
    return [faster(2.0), faster(2.0 if numpy_has_vectors(op.ufunc, dtype) else 3.0, "numpy")]


def _operands(op: _Op, size: int, dtype: str) -> Callable[[Any], list[np.ndarray]]:
    ranges = ((0.5, 1.5), *op.domains)
    return lambda rng: [rng.uniform(low, high, size).astype(dtype) for low, high in ranges]


def _declare(op: _Op, size: int, dtype: str) -> None:
    def hand(g: Any, *xs: Any) -> Any:
        assert op.numpy is not None
        assert op.gradients is not None
        y = op.numpy(*xs)
        return y, *op.gradients(g, y, *xs)

    def eager(lib: Any) -> Callable[..., Any]:
        return op.eager(lib) if op.eager else getattr(lib.xp, op.name)

    array, operands = size * np.dtype(dtype).itemsize, len(op.domains)
    both_ways(
        "elementwise",
        f"{op.name} 2^{size.bit_length() - 1}",
        _operands(op, size, dtype),
        eager,
        op.jax,
        op.numpy,
        hand if op.gradients else None,
        {
            "reads": (operands * array, (operands + 1 + op.saved) * array),
            "writes": (array, (1 + operands) * array),
            "footprint": ((operands + 1) * array, 2 * (operands + 1) * array),
        },
        dtype=dtype,
        quick=(
            dtype == "float32" and (size == _CACHE or op.name in _QUICK_IN_MEMORY),
            dtype == "float32" and size == _CACHE and op.name in _QUICK_BACKWARD,
        ),
        tolerance=2e-5 if dtype == "float32" else 1e-13,
        targets=_targets(op, size, dtype),
        note=op.note,
    )


for _op in (*_ARITHMETIC, *_FUNCTIONS):
    for _dtype in ("float32", "float64"):
        _declare(_op, _CACHE, _dtype)
    if _op.name in _IN_MEMORY:
        _declare(_op, _MEMORY, "float32")
