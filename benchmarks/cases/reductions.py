"""Reductions, softmax and scans over all sets of axes of a few shapes, forward and backward."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.cases.common import both_ways, by_hand, jitted, plain
from benchmarks.registry import Case, either, faster, register, share

Axes = tuple[int, ...]


@dataclass(frozen=True)
class _Reduction:
    """A reduction in each library, as a function of an array and a tuple of axes.

    ``gradient`` takes (upstream, result, array, axes), the first two with the reduced axes kept.
    ``traffic`` counts reads and writes of a whole array, forward and both ways.
    """

    numpy: Callable[..., Any]
    eager: Callable[..., Any]  # takes minigrad or torch first
    jax: Callable[..., Any]  # takes jax first
    gradient: Callable[..., Any] | None
    traffic: tuple[tuple[int, int], tuple[int, int]] = ((1, 0), (2, 1))
    one_axis: bool = False
    keeps_shape: bool = False
    tolerance: float = 2e-4


def _count(x: Any, axes: Axes) -> int:
    return int(np.prod([x.shape[axis] for axis in axes]))


def _spread(g: Any, x: Any) -> Any:
    return np.broadcast_to(g, x.shape).copy()


def _centred(x: Any, axes: Axes) -> Any:
    return x - x.mean(axes, keepdims=True)


def _norm(x: Any, axes: Axes) -> Any:
    """The norm by a product of x and itself, which stores no squares."""
    if len(axes) == x.ndim:
        return np.linalg.norm(x)
    letters = "abc"[: x.ndim]
    kept = "".join(letter for axis, letter in enumerate(letters) if axis not in axes)
    return np.sqrt(np.einsum(f"{letters},{letters}->{kept}", x, x))


def _logsumexp(x: Any, axes: Axes) -> Any:
    top = x.max(axes, keepdims=True)
    return np.squeeze(top, axes) + np.log(np.exp(x - top).sum(axes))


def _softmax(x: Any, axes: Axes) -> Any:
    y = np.exp(x - x.max(axes, keepdims=True))
    y /= y.sum(axes, keepdims=True)
    return y


def _log_softmax(x: Any, axes: Axes) -> Any:
    y = x - x.max(axes, keepdims=True)
    y -= np.log(np.exp(y).sum(axes, keepdims=True))
    return y


def _cumsum_gradient(g: Any, y: Any, x: Any, axes: Axes) -> Any:
    return np.flip(np.flip(g, axes).cumsum(axes[0]), axes)


def _method(name: str, gradient: Any, **options: Any) -> _Reduction:
    """A function with the same name and meaning in all libraries.

    In NumPy and jax it is a method.
    """
    return _Reduction(
        lambda x, axes: getattr(x, name)(axes),
        lambda xp, x, axes: getattr(xp, name)(x, axes),
        lambda jax, x, axes: getattr(x, name)(axes),
        gradient,
        **options,
    )


_KEEPS: dict[str, Any] = {
    "traffic": ((1, 1), (3, 2)),
    "one_axis": True,
    "keeps_shape": True,
}
_REDUCTIONS: dict[str, _Reduction] = {
    "sum": _method("sum", lambda g, y, x, axes: _spread(g, x), traffic=((1, 0), (1, 1))),
    "mean": _method(
        "mean", lambda g, y, x, axes: _spread(g / _count(x, axes), x), traffic=((1, 0), (1, 1))
    ),
    "max": _Reduction(
        lambda x, axes: x.max(axes),
        lambda xp, x, axes: xp.amax(x, axes),
        lambda jax, x, axes: x.max(axes),
        lambda g, y, x, axes: g * (x == y),
    ),
    "argmax": _Reduction(
        lambda x, axes: x.argmax(axes[0] if len(axes) == 1 else None),
        lambda xp, x, axes: xp.argmax(x, axes[0] if len(axes) == 1 else None),
        lambda jax, x, axes: x.argmax(axes[0] if len(axes) == 1 else None),
        None,
    ),
    "var": _Reduction(
        lambda x, axes: x.var(axes, ddof=1),
        lambda xp, x, axes: xp.var(x, axes),
        lambda jax, x, axes: x.var(axes, ddof=1),
        lambda g, y, x, axes: g * (2 / (_count(x, axes) - 1)) * _centred(x, axes),
    ),
    "std": _Reduction(
        lambda x, axes: x.std(axes, ddof=1),
        lambda xp, x, axes: xp.std(x, axes),
        lambda jax, x, axes: x.std(axes, ddof=1),
        lambda g, y, x, axes: g / ((_count(x, axes) - 1) * y) * _centred(x, axes),
    ),
    "norm": _Reduction(
        _norm,
        lambda xp, x, axes: xp.linalg.vector_norm(x, 2, axes),
        lambda jax, x, axes: jax.numpy.sqrt((x * x).sum(axes)),
        lambda g, y, x, axes: g / y * x,
        tolerance=2e-3,  # torch and NumPy add one by one
    ),
    "logsumexp": _Reduction(
        _logsumexp,
        lambda xp, x, axes: xp.logsumexp(x, axes),
        lambda jax, x, axes: jax.nn.logsumexp(x, axes),
        lambda g, y, x, axes: g * np.exp(x - y),
    ),
    "softmax": _Reduction(
        _softmax,
        lambda xp, x, axes: xp.softmax(x, axes[0]),
        lambda jax, x, axes: jax.nn.softmax(x, axes),
        lambda g, y, x, axes: y * (g - (g * y).sum(axes, keepdims=True)),
        **_KEEPS,
    ),
    "log_softmax": _Reduction(
        _log_softmax,
        lambda xp, x, axes: xp.log_softmax(x, axes[0]),
        lambda jax, x, axes: jax.nn.log_softmax(x, axes),
        lambda g, y, x, axes: g - np.exp(y) * g.sum(axes, keepdims=True),
        **_KEEPS,
    ),
    "cumsum": _Reduction(
        lambda x, axes: x.cumsum(axes[0]),
        lambda xp, x, axes: xp.cumsum(x, axes[0]),
        lambda jax, x, axes: x.cumsum(axes[0]),
        _cumsum_gradient,
        # NumPy adds one by one in float32, so errors accumulate.
        **_KEEPS | {"traffic": ((1, 1), (2, 2)), "tolerance": 5e-3},
    ),
}


def _declare(
    name: str, shape: tuple[int, ...], axes: Axes, where: str, quick: tuple[bool, bool]
) -> None:
    op = _REDUCTIONS[name]
    kept = [1 if axis in axes and not op.keeps_shape else n for axis, n in enumerate(shape)]
    dropped = [n for axis, n in enumerate(shape) if axis not in axes or op.keeps_shape]

    def inputs(rng: Any) -> list[np.ndarray]:
        # Values away from zero: with random signs the terms of a sum cancel, and the error is
        # relative to the terms.
        x = rng.standard_normal(shape, dtype=np.float32) + np.float32(0.5)
        return [np.asarray(rng.uniform(0.5, 1.5, dropped), dtype=np.float32), x]

    def eager(lib: Any) -> Callable[..., Any]:
        xp = lib.xp
        return lambda x: op.eager(xp, x, axes)

    def jax(jax: Any, x: Any) -> Any:
        return op.jax(jax, x, axes)

    def hand(g: Any, x: Any) -> Any:
        assert op.gradient is not None
        y = op.numpy(x, axes)
        return y, op.gradient(g.reshape(kept), y.reshape(kept), x, axes)

    size = 4.0 * float(np.prod(shape))
    shared: dict[str, Any] = {
        "patience": 0.5,  # there are many rows
        "tolerance": op.tolerance,
        "targets": [either(share(0.85), faster(1.2))],
    }
    (reads, writes), (more_reads, more_writes) = op.traffic
    if op.gradient is None:
        register(
            Case(
                "reductions",
                f"{name} {where}",
                lambda rng: inputs(rng)[1:],
                {
                    **dict.fromkeys(("minigrad", "torch"), plain(eager)),
                    "numpy": by_hand(lambda x: op.numpy(x, axes)),
                    "jax": jitted(jax),
                },
                reads=reads * size,
                quick=quick[0],
                **shared,
            )
        )
        return
    both_ways(
        "reductions",
        f"{name} {where}",
        inputs,
        eager,
        jax,
        lambda x: op.numpy(x, axes),
        hand,
        {
            "reads": (reads * size, more_reads * size),
            "writes": (writes * size, more_writes * size),
            "footprint": ((reads + writes) * size, 2 * (reads + writes) * size),
        },
        quick,
        **shared,
    )


def _choices(dimensions: int) -> list[Axes]:
    """Every set of axes except the empty one."""
    sets = (tuple(a for a in range(dimensions) if n >> a & 1) for n in range(1, 2**dimensions))
    return sorted(sets, key=lambda axes: (len(axes), axes))


_SHAPES = ((4096, 1024), (1024, 4096), (64, 64, 1024))
# along axis 0, forward and backward
_QUICK, _QUICK_BACKWARD = {"sum", "softmax"}, {"sum", "max", "softmax"}
for _name, _op in _REDUCTIONS.items():
    for _shape in _SHAPES:
        for _axes in _choices(len(_shape)):
            _all = len(_axes) == len(_shape)
            if len(_axes) > 1 and (_op.one_axis or (_name == "argmax" and not _all)):
                continue
            _where = "x".join(map(str, _shape)) + (
                " all" if _all else f" axis {','.join(map(str, _axes))}"
            )
            _quick = _shape == _SHAPES[0] and (_axes == (1,) or (_axes == (0,) and _name in _QUICK))
            _declare(
                _name,
                _shape,
                _axes,
                _where,
                (_quick, _quick and _axes == (1,) and _name in _QUICK_BACKWARD),
            )
    _long = 22 if _op.keeps_shape else 24
    _declare(_name, (2**_long,), (0,), f"2^{_long} vector", (False, False))
