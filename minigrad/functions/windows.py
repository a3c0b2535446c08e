"""Window functions of signal processing, ``logspace`` and ``scalar_tensor``."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from minigrad.functions.arguments import integer, real
from minigrad.functions.creation import arange, linspace, ones, require_grad, tensor
from minigrad.functions.elementwise import abs as size
from minigrad.functions.elementwise import add, clamp, cos, div, exp, mul, sqrt, sub
from minigrad.functions.elementwise import pow as power
from minigrad.functions.row_functions import unary
from minigrad.functions.shaping import to
from minigrad.ops.special import I0E
from minigrad.runtime.devices import on_cpu
from minigrad.runtime.dtypes import DType, as_dtype, default_dtype, float64

if TYPE_CHECKING:
    from minigrad._tensor import Tensor

__all__ = [
    "bartlett_window",
    "blackman_window",
    "hamming_window",
    "hann_window",
    "kaiser_window",
    "logspace",
    "scalar_tensor",
]

_i0e = unary(I0E)


def hann_window(window_length: int, periodic: bool = True, **options: Any) -> Tensor:
    """(1 - cos(2 pi n / N)) / 2 for n = 0, 1, ..., ``window_length`` - 1.

    N is the length of a periodic window, and one less for a symmetric window. A window of one
    element is 1. The options are ``dtype``, which is a float, ``requires_grad`` and ``device``.
    Values are computed in float64.

    Raises ValueError for a negative length, TypeError for a dtype of integers.

    >>> import minigrad as mg
    >>> mg.hann_window(4)
    tensor([0. , 0.5, 1. , 0.5])
    """
    return _cosines("hann_window", window_length, periodic, (0.5, 0.5), options)


def hamming_window(
    window_length: int,
    periodic: bool = True,
    alpha: float = 0.54,
    beta: float = 0.46,
    **options: Any,
) -> Tensor:
    """alpha - beta * cos(2 pi n / N). Arguments are as for :func:`minigrad.hann_window`."""
    weights = real("hamming_window", "alpha", alpha), real("hamming_window", "beta", beta)
    return _cosines("hamming_window", window_length, periodic, weights, options)


def blackman_window(window_length: int, periodic: bool = True, **options: Any) -> Tensor:
    """0.42 - 0.5 cos(2 pi n / N) + 0.08 cos(4 pi n / N).

    Arguments are as for :func:`minigrad.hann_window`.
    """
    return _cosines("blackman_window", window_length, periodic, (0.42, 0.5, 0.08), options)


def bartlett_window(window_length: int, periodic: bool = True, **options: Any) -> Tensor:
    """The triangle 1 - abs(2 n / N - 1). Arguments are as for :func:`minigrad.hann_window`."""
    return _window(
        "bartlett_window", window_length, periodic, options, lambda u: sub(1.0, size(sub(u, 1.0)))
    )


def kaiser_window(
    window_length: int, periodic: bool = True, beta: float = 12.0, **options: Any
) -> Tensor:
    """I0(beta * sqrt(1 - (2 n / N - 1)^2)) / I0(beta), where I0 is the Bessel function.

    Arguments are as for :func:`minigrad.hann_window`. A large beta does not overflow.
    """
    width = abs(real("kaiser_window", "beta", beta))

    def values(u: Tensor) -> Tensor:
        apart = sub(u, 1.0)
        at = mul(sqrt(clamp(sub(1.0, mul(apart, apart)), min=0.0)), width)
        return mul(div(_i0e(at), _i0e(tensor(width, float64))), exp(sub(at, width)))

    return _window("kaiser_window", window_length, periodic, options, values)


def _cosines(
    op: str, length: Any, periodic: Any, weights: tuple[float, ...], options: dict[str, Any]
) -> Tensor:
    """A window of cosines of the harmonics, with these weights and alternating signs."""

    def values(u: Tensor) -> Tensor:
        made = tensor(weights[0], float64)
        for k, weight in enumerate(weights[1:], 1):
            made = add(made, mul(cos(mul(u, k * math.pi)), (-1) ** k * weight))
        return made

    return _window(op, length, periodic, options, values)


def _window(op: str, length: Any, periodic: Any, options: dict[str, Any], values: Any) -> Tensor:
    """A window of values of a function of 2 n / N, in the dtype of the options."""
    kind, requires_grad = _options(op, **options)
    count = integer(op, "window_length", length, 0)
    if count < 2:
        made = ones(count, dtype=float64)
    else:
        u = arange(count, dtype=float64)
        made = values(div(mul(u, 2.0), float(count if periodic else count - 1)))
    return require_grad(to(made, kind), requires_grad)


def _options(
    op: str,
    *,
    dtype: Any = None,
    requires_grad: bool = False,
    device: Any = None,
    layout: Any = None,
    pin_memory: bool = False,
) -> tuple[DType, bool]:
    """The dtype and requires_grad of the options."""
    on_cpu(device)
    kind = default_dtype() if dtype is None else as_dtype(dtype)
    if not kind.is_floating_point:
        raise TypeError(f"[{op}] a window holds floats, not {kind.name}")
    return kind, requires_grad


def logspace(
    start: float,
    end: float,
    steps: int,
    base: float = 10.0,
    *,
    dtype: Any = None,
    requires_grad: bool = False,
    device: Any = None,
    layout: Any = None,
    pin_memory: bool = False,
) -> Tensor:
    """``steps`` values from base**start to base**end with evenly spaced exponents.

    Values are computed in float64. Raises ValueError for a negative number of steps.

    >>> import minigrad as mg
    >>> mg.logspace(0, 2, 3)
    tensor([  1.,  10., 100.])
    """
    on_cpu(device)
    kind = default_dtype() if dtype is None else as_dtype(dtype)
    number = tensor(real("logspace", "base", base), float64)
    values = power(number, linspace(start, end, steps, dtype=float64))
    return require_grad(to(values, kind), requires_grad)


def scalar_tensor(
    s: float,
    *,
    dtype: Any = None,
    requires_grad: bool = False,
    device: Any = None,
    layout: Any = None,
    pin_memory: bool = False,
) -> Tensor:
    """A 0-d tensor of a number, in the default float dtype unless another is given.

    >>> import minigrad as mg
    >>> mg.scalar_tensor(3)
    tensor(3.)
    """
    kind = default_dtype() if dtype is None else dtype
    return tensor(real("scalar_tensor", "s", s), kind, requires_grad, device=device)
