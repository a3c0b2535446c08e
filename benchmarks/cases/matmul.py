"""Matrix products, as GFLOP/s and as a share of the measured FMA peak."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.cases.common import by_hand, eager_backward, jax_backward, jitted, ones_like, plain
from benchmarks.registry import Builder, Case, Target, faster, register, share

SIZES = (16, 32, 64, 128, 256, 512, 1024)
AVX512_FASTER_FROM = 128
PEAK_FROM = 512


def _matmul(xp: Any) -> Any:
    return xp.matmul


_PRODUCT: dict[str, Builder] = {
    "minigrad": plain(_matmul),
    "numpy": plain(_matmul),
    "torch": plain(_matmul),
    "jax": jitted(lambda jnp, a, b: a @ b),
}


def _pair(*shapes: tuple[int, ...], dtype: str) -> Callable[[Any], list[np.ndarray]]:
    return lambda rng: [rng.uniform(-1, 1, shape).astype(dtype) for shape in shapes]


def _square_targets(n: int) -> list[Target]:
    targets = [faster(1.0, "numpy")]
    if n >= AVX512_FASTER_FROM:
        targets.append(faster(1.3, "numpy", isa="avx512"))
    if n >= PEAK_FROM:
        targets.append(share(0.75))
    return targets


for _dtype in ("float32", "float64"):
    _tolerance = 2e-5 if _dtype == "float32" else 1e-13
    for _n in SIZES:
        register(
            Case(
                "matmul",
                f"{_n}x{_n} @ {_n}x{_n}",
                _pair((_n, _n), (_n, _n), dtype=_dtype),
                _PRODUCT,
                dtype=_dtype,
                flops=2 * _n**3,
                quick=_n <= 512,
                tolerance=_tolerance,
                targets=_square_targets(_n),
            )
        )

register(
    Case(
        "matmul",
        "64x128 @ 128x10",
        _pair((64, 128), (128, 10), dtype="float32"),
        _PRODUCT,
        flops=2 * 64 * 128 * 10,
    )
)
register(
    Case(
        "matmul",
        "64 times 32x32 @ 32x32",
        _pair((64, 32, 32), (64, 32, 32), dtype="float32"),
        _PRODUCT,
        flops=2 * 64 * 32**3,
    )
)
register(
    Case(
        "matmul",
        "1024 @ 1024x1024",
        _pair((1024,), (1024, 1024), dtype="float32"),
        _PRODUCT,
        bytes=4 * 1024**2,
    )
)

# ---- transposed operands -------------------------------------------------------------------------


def _with_views(views: Callable[[Any, Any], tuple[Any, Any]]) -> dict[str, Builder]:
    """The product of transposed views, made anew in each call."""

    def eager(lib: Any, a: Any, b: Any) -> Any:
        matmul, a, b = lib.xp.matmul, lib.array(a), lib.array(b)
        return lambda: matmul(*views(a, b))

    def jax(jnp: Any, a: Any, b: Any) -> Any:
        return jnp.matmul(*views(a, b))

    return {"minigrad": eager, "numpy": eager, "torch": eager, "jax": jitted(jax)}


for _name, _views in (
    ("A.T @ B 512", lambda a, b: (a.T, b)),
    ("A @ B.T 512", lambda a, b: (a, b.T)),
):
    register(
        Case(
            "matmul",
            _name,
            _pair((512, 512), (512, 512), dtype="float32"),
            _with_views(_views),
            flops=2 * 512**3,
        )
    )

# ---- forward and backward ------------------------------------------------------------------------


def _with_upstream(rng: Any) -> list[np.ndarray]:
    a, b = _pair((256, 256), (256, 256), dtype="float32")(rng)
    return [ones_like(a), a, b]


_both = eager_backward(lambda xp, a, b: xp.matmul(a, b))
register(
    Case(
        "matmul",
        "256x256 @ 256x256, forward+backward",
        _with_upstream,
        {
            "minigrad": _both,
            "numpy": by_hand(lambda g, a, b: (a @ b, g @ b.T, a.T @ g)),
            "torch": _both,
            "jax": jax_backward(lambda jnp, a, b: a @ b),
        },
        flops=6 * 256**3,
    )
)
