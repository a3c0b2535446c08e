"""``assert_close`` and ``make_tensor``: tensors compared within tolerances, and random tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from minigrad.functions.creation import tensor
from minigrad.functions.grad_modes import no_grad
from minigrad.functions.promotion import finfo
from minigrad.random import rand, randint
from minigrad.runtime.devices import on_cpu
from minigrad.runtime.dtypes import (
    as_dtype,
    bfloat16,
    bool_,
    float16,
    float32,
    float64,
    int64,
    uint8,
)
from minigrad.tape.tensor_base import TensorBase

__all__ = ["assert_close", "make_tensor"]

# rtol and atol by dtype, as PyTorch has them; 0 for all others.
_TOLERANCES = {
    float16: (1e-3, 1e-5),
    bfloat16: (1.6e-2, 1e-5),
    float32: (1.3e-6, 1e-5),
    float64: (1e-7, 1e-7),
}


def assert_close(
    actual: Any,
    expected: Any,
    *,
    allow_subclasses: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: str | Callable[[str], str] | None = None,
) -> None:
    """Raise AssertionError unless ``|actual - expected| <= atol + rtol * |expected|`` everywhere.

    Both are tensors, arrays or numbers, or lists, tuples and dicts of these with the same
    structure. Shapes must be equal, and so must dtypes if ``check_dtype``, and strides if
    ``check_stride``. Tolerances are given both or not at all. Without them they follow the less
    accurate dtype: 1.3e-6 and 1e-5 for float32, 1e-7 and 1e-7 for float64, 0 for integers. With
    ``equal_nan`` NaN equals NaN. ``msg`` replaces the text of the error, or makes one of it. The
    other options are PyTorch's and change nothing.

    >>> import minigrad as mg
    >>> mg.testing.assert_close(mg.tensor([1.0, 2.0]), mg.tensor([1.0, 2.0 + 1e-6]))
    >>> mg.testing.assert_close(mg.tensor([1.0, 2.0]), mg.tensor([1.0, 2.5]))
    Traceback (most recent call last):
        ...
    AssertionError: [assert_close] 1 of 2 elements differ, most at index (1,): 2 is not 2.5, by ...
    """
    if (rtol is None) != (atol is None):
        raise ValueError(f"[assert_close] rtol is {rtol} and atol is {atol}: give both, or neither")
    tolerances = None if rtol is None or atol is None else (float(rtol), float(atol))
    options = _Options(tolerances, equal_nan, check_dtype, check_stride)
    text = _difference(actual, expected, options, "")
    if text:
        text = f"[assert_close] {text}"
        raise AssertionError(text if msg is None else msg(text) if callable(msg) else msg)


class _Options(NamedTuple):
    """How two values are compared."""

    tolerances: tuple[float, float] | None
    equal_nan: bool
    check_dtype: bool
    check_stride: bool


def _difference(a: Any, b: Any, options: _Options, where: str) -> str:
    """How two values differ, or an empty text; ``where`` says at which item."""
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        if a.keys() != b.keys():
            return f"{where}the keys are {sorted(map(str, a))} and {sorted(map(str, b))}"
        pairs = [(f"{where}item {key!r}: ", a[key], b[key]) for key in b]
    elif _is_sequence(a) and _is_sequence(b):
        if len(a) != len(b):
            return f"{where}there are {len(a)} items, not {len(b)}"
        pairs = [(f"{where}item {i}: ", *items) for i, items in enumerate(zip(a, b, strict=True))]
    else:
        return _of_tensors(a, b, options, where)
    return next(filter(None, (_difference(x, y, options, at) for at, x, y in pairs)), "")


def _is_sequence(x: Any) -> bool:
    return isinstance(x, Sequence) and not isinstance(x, (str, bytes))


def _of_tensors(a: Any, b: Any, options: _Options, where: str) -> str:
    x, y = (_as_tensor(v) for v in (a, b))
    if x.shape != y.shape:
        return f"{where}the shapes are {x.shape} and {y.shape}"
    if options.check_dtype and x.dtype is not y.dtype:
        return (
            f"{where}the dtypes are {x.dtype.name} and {y.dtype.name}; check_dtype=False compares "
            "the values alone"
        )
    if options.check_stride and x.stride() != y.stride():
        return f"{where}the strides are {x.stride()} and {y.stride()}"
    kinds = [_TOLERANCES.get(v.dtype, (0.0, 0.0)) for v in (x, y)]
    rtol, atol = options.tolerances or map(max, zip(*kinds, strict=True))
    floats = x.dtype.is_floating_point or y.dtype.is_floating_point
    p, q = (np.asarray(v.to(float64 if floats else int64).numpy()) for v in (x, y))
    with np.errstate(invalid="ignore", over="ignore"):
        off = np.abs(p - q) if floats else _integer_distance(p, q)
        allowed = atol + rtol * np.abs(q)
        # Infinities are equal to themselves, and close to nothing else.
        close = (p == q) | ((off <= allowed) & np.isfinite(q))
        if options.equal_nan:
            close |= np.isnan(p) & np.isnan(q)
        excess = np.where(close, -1.0, np.nan_to_num(off - allowed, nan=np.inf))
    if close.all():
        return ""
    at = tuple([int(i) for i in np.unravel_index(np.argmax(excess), close.shape)])
    return (
        f"{where}{(~close).sum()} of {close.size} elements differ, most at index {at}: "
        f"{_text(p[at])} is not {_text(q[at])}, by {off[at]:.3g} where {allowed[at]:.3g} is "
        f"allowed (rtol={rtol:.3g}, atol={atol:.3g})"
    )


def _integer_distance(p: Any, q: Any) -> Any:
    """|p - q| as floats; int64 is too narrow for some of them."""
    wide = [x.astype(np.uint64) for x in (np.maximum(p, q), np.minimum(p, q))]
    return (wide[0] - wide[1]).astype(np.float64)


def _text(x: Any) -> str:
    return f"{x:.10g}" if x.dtype.kind == "f" else str(x)


def _as_tensor(x: Any) -> Any:
    if isinstance(x, TensorBase):
        return x.detach()  # type: ignore[attr-defined]
    try:
        return tensor(x, float64) if isinstance(x, float) else tensor(x)
    except (TypeError, ValueError):
        raise TypeError(
            f"[assert_close] cannot compare {type(x).__name__}: give tensors, arrays or numbers, "
            "or lists, tuples and dicts of them"
        ) from None


def make_tensor(
    *shape: Any,
    dtype: Any,
    device: Any = None,
    low: float | None = None,
    high: float | None = None,
    requires_grad: bool = False,
    noncontiguous: bool = False,
    exclude_zero: bool = False,
    memory_format: Any = None,
) -> Any:
    """A tensor of random values from ``[low, high)``, by the global random generator.

    Without bounds these are -9 and 9 for floats, -9 and 10 for integers, 0 and 10 for uint8, 0 and
    2 for bool. ``noncontiguous`` leaves gaps in memory. ``exclude_zero`` puts the smallest positive
    number in place of 0. ``device`` is the CPU, and ``memory_format`` changes nothing.

    Raises ValueError for an empty range.

    >>> import minigrad as mg
    >>> _ = mg.manual_seed(0)
    >>> x = mg.testing.make_tensor(2, 3, dtype=mg.float64, low=1, requires_grad=True)
    >>> x.shape, bool((x >= 1).all()), bool((x < 9).all())
    ((2, 3), True, True)
    """
    if device is not None:
        on_cpu(device)
    kind: Any = as_dtype(dtype)
    sizes = tuple(shape[0]) if len(shape) == 1 and not isinstance(shape[0], int) else shape
    start, end = (0, 2) if kind is bool_ else (0, 10) if kind is uint8 else (-9, 10)
    if kind.is_floating_point:
        end = 9
    first: Any = start if low is None else low
    last: Any = end if high is None else high
    if not first < last:
        raise ValueError(f"[make_tensor] low is {first} and high is {last}: low must be smaller")
    with no_grad():
        wide = (*sizes[:-1], 2 * sizes[-1]) if noncontiguous and sizes else sizes
        if kind.is_floating_point:
            made = rand(wide, dtype=float64) * (last - first) + first
            made = made.clamp(max=_below(last, kind)).to(kind)
        else:
            made = randint(int(first), int(last), wide).to(kind)
        if exclude_zero:
            least = finfo(kind).tiny if kind.is_floating_point else 1
            made = made.where(made != 0, tensor(least, kind))
        if noncontiguous and sizes:
            made = made[..., ::2]
    return made.requires_grad_(requires_grad)


def _below(last: float, kind: Any) -> float:
    """The largest number of a dtype below ``last``, which rounding must not reach."""
    if kind is float64:
        return float(np.nextafter(last, -np.inf))
    if kind is float32:
        return float(np.nextafter(np.float32(last), np.float32(-np.inf)))
    return float(last)  # halves: the bound itself may be reached
