"""Matrix products against the measured FMA peak, products with vectors against bandwidth."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np

from benchmarks.cases.common import by_hand, eager_backward, jax_backward, jitted, plain
from benchmarks.libraries import ALONE
from benchmarks.registry import (
    BACKWARD,
    Builder,
    Case,
    Target,
    faster,
    register,
    share,
    time_ratio,
)

_TOLERANCE = {"float32": 2e-5, "float64": 1e-13}
_FAST, _AT_PEAK = [faster(1.5)], [share(0.9), time_ratio(1.0)]
_QUICK = {f"{n}x{n} @ {n}x{n}" for n in (16, 17, 64, 255, 512)} | {
    "1024 @ 1024x1024",
    "64 times 32x32 @ 32x32",
    "A.T @ B 512",
}


def _matmul(lib: Any) -> Any:
    return lib.xp.matmul


_PRODUCT: dict[str, Builder] = {
    "minigrad": plain(_matmul),
    "numpy": plain(_matmul),
    "torch": plain(_matmul),
    "jax": jitted(lambda jax, a, b: a @ b),
}


def _alone(lib: Any, a: Any, b: Any) -> Callable[[], Any]:
    """The product on one thread, while the other libraries have several."""
    matmul, a, b = lib.xp.matmul, lib.array(a), lib.array(b)
    use, threads = lib.xp.set_num_threads, lib.xp.get_num_threads()

    def call() -> Any:
        use(1)
        y = matmul(a, b)
        use(threads)
        return y

    return call


def _values(*shapes: tuple[int, ...], dtype: str = "float32") -> Callable[[Any], list[np.ndarray]]:
    return lambda rng: [rng.uniform(-1, 1, shape).astype(dtype) for shape in shapes]


def _declare(
    name: str,
    a: tuple[int, ...],
    b: tuple[int, ...],
    targets: list[Target],
    dtypes: tuple[str, ...] = ("float32", "float64"),
    builders: dict[str, Builder] = _PRODUCT,
) -> None:
    """Register a product. A product with a vector is bound by reading the matrix."""
    columns = b[-1] if len(b) > 1 else 1
    for dtype in dtypes:
        size = np.dtype(dtype).itemsize
        with_vector = len(a) == 1 or len(b) == 1
        work = (
            {"reads": size * (np.prod(a) + np.prod(b))}
            if with_vector
            else {"flops": 2 * float(np.prod(a)) * columns}
        )
        register(
            Case(
                "matmul",
                name,
                _values(a, b, dtype=dtype),
                builders,
                dtype=dtype,
                quick=name in _QUICK and dtype == "float32",
                tolerance=_TOLERANCE[dtype],
                targets=targets,
                **work,
            )
        )


for _n in (16, 32, 64, 128):
    _declare(f"{_n}x{_n} @ {_n}x{_n}", (_n, _n), (_n, _n), _FAST)
_declare("256x256 @ 256x256", (256, 256), (256, 256), _AT_PEAK)
for _n in (512, 1024):
    _declare(
        f"{_n}x{_n} @ {_n}x{_n}",
        (_n, _n),
        (_n, _n),
        [*_AT_PEAK, faster(1.85, ALONE, threads=2)],
        builders=_PRODUCT | {ALONE: _alone},
    )
for _n in (17, 63):
    _declare(f"{_n}x{_n} @ {_n}x{_n}", (_n, _n), (_n, _n), _FAST)
for _n in (255, 1000):
    _declare(f"{_n}x{_n} @ {_n}x{_n}", (_n, _n), (_n, _n), _AT_PEAK)
_declare("2048x64 @ 64x2048", (2048, 64), (64, 2048), [time_ratio(1.0)])
_declare("64x4096 @ 4096x64", (64, 4096), (4096, 64), [time_ratio(1.0)])
_declare("1024 @ 1024x1024", (1024,), (1024, 1024), [time_ratio(1.0), share(0.85)])
_declare("1024x1024 @ 1024", (1024, 1024), (1024,), [time_ratio(1.0), share(0.85)])
_declare("8192 @ 8192x4096", (8192,), (8192, 4096), [time_ratio(1.0), share(0.85)], ("float32",))
_declare("8192x4096 @ 4096", (8192, 4096), (4096,), [time_ratio(1.0), share(0.85)], ("float32",))
_declare("64x128 @ 128x10", (64, 128), (128, 10), _FAST, ("float32",))
_declare("64 times 32x32 @ 32x32", (64, 32, 32), (64, 32, 32), _FAST)
_declare("1024 times 8x8 @ 8x8", (1024, 8, 8), (1024, 8, 8), _FAST, ("float32",))
_declare("16 times 128x64 @ 64x128", (16, 128, 64), (16, 64, 128), _FAST, ("float32",))

# ---- transposed and strided operands -------------------------------------------------------------


def _with_views(views: Callable[[Any, Any], tuple[Any, Any]]) -> dict[str, Builder]:
    """The product of views that each call makes, and of contiguous copies of the views."""

    def eager(lib: Any, a: Any, b: Any) -> Any:
        matmul, a, b = lib.xp.matmul, lib.array(a), lib.array(b)
        return lambda: matmul(*views(a, b))

    def contiguous(lib: Any, a: Any, b: Any) -> Any:
        matmul, (a, b) = lib.xp.matmul, views(a, b)
        a, b = lib.array(np.ascontiguousarray(a)), lib.array(np.ascontiguousarray(b))
        return lambda: matmul(a, b)

    def jax(jax: Any, a: Any, b: Any) -> Any:
        return jax.numpy.matmul(*views(a, b))

    return {
        **dict.fromkeys(("minigrad", "numpy", "torch"), eager),
        "jax": jitted(jax),
        "contiguous": contiguous,
    }


_NOT_SLOWER = [time_ratio(1.1, "contiguous"), time_ratio(1.0)]
_VIEWS: tuple[tuple[str, Any, tuple[int, ...], tuple[int, ...]], ...] = (
    ("A.T @ B 512", lambda a, b: (a.T, b), (512, 512), (512, 512)),
    ("A @ B.T 512", lambda a, b: (a, b.T), (512, 512), (512, 512)),
    ("A.T @ B.T 512", lambda a, b: (a.T, b.T), (512, 512), (512, 512)),
    ("A[:, ::2] @ B[::2] 512", lambda a, b: (a[:, ::2], b[::2]), (512, 1024), (1024, 512)),
)
for (_name, _views, _a, _b), _dtype in product(_VIEWS, _TOLERANCE):
    _case = Case(
        "matmul",
        _name,
        _values(_a, _b, dtype=_dtype),
        _with_views(_views),
        dtype=_dtype,
        flops=2 * 512**3,
        quick=_name in _QUICK and _dtype == "float32",
        tolerance=_TOLERANCE[_dtype],
        targets=_NOT_SLOWER,
    )
    register(_case)

# ---- forward and backward ------------------------------------------------------------------------

_recorded = eager_backward(_matmul)
for _n in (64, 256):
    _case = Case(
        "matmul",
        f"{_n}x{_n} @ {_n}x{_n}{BACKWARD}",
        _values((_n, _n), (_n, _n), (_n, _n)),
        {
            "minigrad": _recorded,
            "numpy": by_hand(lambda g, a, b: (a @ b, g @ b.T, a.T @ g)),
            "torch": _recorded,
            "jax": jax_backward(lambda jax, a, b: a @ b),
        },
        flops=6 * _n**3,
        targets=[time_ratio(1.0)],
    )
    register(_case)
