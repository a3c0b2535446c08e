"""Activation functions.

Integers become float32. Each docstring gives the derivative at a kink. Derivatives of higher order
are 0 there.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from minigrad import functions as f
from minigrad._tensor.inplace import check_writable, update
from minigrad.functions import log_softmax, sigmoid, softmax, softmin, tanh
from minigrad.functions.arguments import one_dim
from minigrad.functions.creation import zeros
from minigrad.functions.reductions import as_float
from minigrad.functions.row_functions import binary, unary
from minigrad.nn.functional.operands import floats, real
from minigrad.ops import special as _s
from minigrad.random import Draw, Generator
from minigrad.runtime.dtypes import int64
from minigrad.runtime.recorders import drawn
from minigrad.tape.apply import apply
from minigrad.tape.grad_mode import mode
from minigrad.tape.tensor_base import TensorBase

if TYPE_CHECKING:
    from minigrad._tensor import Tensor

__all__ = [
    "celu",
    "celu_",
    "elu",
    "elu_",
    "gelu",
    "glu",
    "gumbel_softmax",
    "hardshrink",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "hardtanh_",
    "leaky_relu",
    "leaky_relu_",
    "log_softmax",
    "logsigmoid",
    "mish",
    "prelu",
    "relu",
    "relu6",
    "relu_",
    "rrelu",
    "rrelu_",
    "selu",
    "selu_",
    "sigmoid",
    "silu",
    "softmax",
    "softmin",
    "softplus",
    "softshrink",
    "softsign",
    "tanh",
    "tanhshrink",
    "threshold",
    "threshold_",
]


def _activated(
    op: str,
    input: Any,
    inplace: bool,
    formula: Callable[[Tensor], Tensor],
) -> Tensor:
    """Apply a formula to the input as floats.

    With ``inplace`` the result is written over the input.
    """
    if not inplace:
        return formula(as_float(op, input))
    if not isinstance(input, TensorBase) or not input.dtype.is_floating_point:
        kind = input.dtype.name if isinstance(input, TensorBase) else type(input).__name__
        raise TypeError(f"[{op}] only a Tensor of floats can be written in place, not {kind}")
    x: Any = input
    if mode.enabled and x._edge is not None:
        check_writable(op, x)
        return update(op, x, formula(f.clone(x)))  # a copy, which the graph may save
    return update(op, x, formula(x))


# ---- two straight lines --------------------------------------------------------------------------


_leaky = binary(_s.LEAKY)


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """``max(x, 0)``. The derivative at 0 is 0. NaN gives NaN, with derivative 1.

    Integers stay integers.
    """
    return _activated("relu", input, True, f.relu) if inplace else f.relu(input)


def leaky_relu(
    input: Tensor,
    negative_slope: float = 0.01,
    inplace: bool = False,
) -> Tensor:
    """``x`` above 0, ``negative_slope * x`` below. The derivative at 0 is ``negative_slope``.

    >>> import minigrad as mg
    >>> leaky_relu(mg.tensor([-2.0, 3.0]), 0.5).tolist()
    [-1.0, 3.0]
    """
    slope = real("leaky_relu", "negative_slope", negative_slope)
    return _activated("leaky_relu", input, inplace, lambda x: _leaky(x, slope))


def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """``x`` above 0, ``weight * x`` below (He et al. 2015).

    ``weight`` is one number, or one for each channel, which is dimension 1 of the input. The
    derivative by x at 0 is the weight. Raises ValueError for any other shape.

    >>> import minigrad as mg
    >>> prelu(mg.tensor([[-2.0, -2.0]]), mg.tensor([0.5, 1.0])).tolist()
    [[-1.0, -2.0]]
    """
    x, w = floats("prelu", input, weight)
    channels = x.shape[1] if x.ndim > 1 else 1
    if w.ndim > 1 or w.size not in (1, channels):
        raise ValueError(
            f"[prelu] weight has shape {w.shape}, but must be one number or one for each channel: "
            f"the input {x.shape} has {channels}"
        )
    w = w.reshape((w.size,) + (1,) * (x.ndim - 2)) if x.ndim > 1 else w.reshape(())
    return _leaky(x, w)


def rrelu(
    input: Tensor,
    lower: float = 1.0 / 8,
    upper: float = 1.0 / 3,
    training: bool = False,
    inplace: bool = False,
    *,
    generator: Generator | None = None,
) -> Tensor:
    """Like :func:`leaky_relu`, with a random slope for each element in training (Xu et al. 2015).

    Slopes are drawn from U(lower, upper). Without ``training`` the slope is the mean, ``(lower +
    upper) / 2``.

    Drawn from ``generator``, by default the one that :func:`minigrad.manual_seed` starts. Raises
    ValueError if ``lower`` is above ``upper``.
    """
    lower, upper = real("rrelu", "lower", lower), real("rrelu", "upper", upper)
    if lower > upper:
        raise ValueError(f"[rrelu] lower {lower} is above upper {upper}")

    def formula(x: Tensor) -> Tensor:
        slope: Any = (lower + upper) / 2.0
        if training:
            slope = drawn(Draw("double", x.shape, x.dtype, (lower, upper), generator))
        return _leaky(x, slope)

    return _activated("rrelu", input, inplace, formula)


def threshold(
    input: Tensor,
    threshold: float,
    value: float,
    inplace: bool = False,
) -> Tensor:
    """``x`` above the threshold, else ``value``, with derivative 0 at the threshold; NaN passes.

    Integers stay integers if ``value`` is a whole number, and become float32 else.
    """
    at, below = real("threshold", "threshold", threshold), real("threshold", "value", value)
    if not inplace and _stay_integers(input, below) and abs(at) < 2.0**63:
        kept: Tensor = f.where(f.gt(input, math.floor(at)), input, int(below))
        return kept
    return _activated("threshold", input, inplace, lambda x: _level(x, -math.inf, at, below))


def _stay_integers(x: Any, *numbers: float) -> bool:
    """Whether x has integers, and so has a result made of them and these numbers."""
    if not isinstance(x, TensorBase) or x.dtype is not int64:
        return False
    return all(n.is_integer() and abs(n) < 2.0**63 for n in numbers)


def _level(x: Tensor, low: float, high: float, level: float = 0.0, shift: float = 0.0) -> Tensor:
    return apply(_s.SHRINK, (x,), (low, high, level, shift))


# ---- bounded lines -------------------------------------------------------------------------------


_relu6, _hardsigmoid, _hardswish = unary(_s.RELU6), unary(_s.HARDSIGMOID), unary(_s.HARDSWISH)


def hardtanh(
    input: Tensor,
    min_val: float = -1.0,
    max_val: float = 1.0,
    inplace: bool = False,
) -> Tensor:
    """``min(max(x, min_val), max_val)``. The derivative on the bounds is 0. NaN gives NaN.

    :func:`minigrad.clamp` has derivative 1 on the bounds. Integers stay integers if both bounds are
    integers, else they become float32. Raises ValueError for crossed bounds.
    """
    low, high = real("hardtanh", "min_val", min_val), real("hardtanh", "max_val", max_val)
    if low > high:
        raise ValueError(f"[hardtanh] min_val {min_val} is above max_val {max_val}")
    if not inplace and _stay_integers(input, low, high):
        return f.clamp(input, int(low), int(high))
    return _activated("hardtanh", input, inplace, lambda x: apply(_s.HARDTANH, (x,), (low, high)))


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """``min(max(x, 0), 6)``. The derivative at 0 and 6 is 0. NaN gives NaN.

    Integers stay integers.
    """
    return _activated("relu6", input, True, _relu6) if inplace else _relu6(input)


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """``min(max(x + 3, 0), 6) / 6``. The derivative at -3 and 3 is 0."""
    return _activated("hardsigmoid", input, True, _hardsigmoid) if inplace else _hardsigmoid(input)


def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """``x * hardsigmoid(x)`` (Howard et al. 2019). At minus infinity it is 0, the limit.

    The derivative is 0 at -3 and 1 at 3.
    """
    return _activated("hardswish", input, True, _hardswish) if inplace else _hardswish(input)


def softshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """``x - lambd * sign(x)``, and 0, with derivative 0, where ``|x| <= lambd``.

    Raises ValueError for a negative ``lambd``.
    """
    lambd = real("softshrink", "lambd", lambd)
    if not lambd >= 0.0:
        raise ValueError(f"[softshrink] lambd is {lambd}, but must not be negative")
    return _level(as_float("softshrink", input), -lambd, lambd, 0.0, lambd)


def hardshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """``x``, and 0, with derivative 0, where ``|x| <= lambd``."""
    x, lambd = as_float("hardshrink", input), real("hardshrink", "lambd", lambd)
    return _level(x, -lambd, lambd)


# ---- exponential below 0 -------------------------------------------------------------------------


def _exponential(x: Tensor, height: float, width: float, slope: float) -> Tensor:
    """``slope * x`` above 0, ``height * (exp(x / width) - 1)`` below."""
    return apply(_s.ELU, (x,), (height, width, slope))


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """``x`` above 0, ``alpha * (exp(x) - 1)`` below (Clevert et al. 2016).

    Its derivative at 0 is ``alpha``, the second derivative 0.
    """
    height = real("elu", "alpha", alpha)
    return _activated("elu", input, inplace, lambda x: _exponential(x, height, 1.0, 1.0))


def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """``x`` above 0, ``alpha * (exp(x / alpha) - 1)`` below (Barron 2017).

    Its derivative at 0 is 1, the second derivative 0. Raises ValueError for an alpha of 0.
    """
    width = real("celu", "alpha", alpha)
    if width == 0.0:
        raise ValueError("[celu] alpha must not be 0: x is divided by it")
    return _activated("celu", input, inplace, lambda x: _exponential(x, width, width, 1.0))


_SELU_ALPHA, _SELU_SCALE = 1.6732632423543772, 1.0507009873554805  # Klambauer et al., appendix 1


def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """``scale * elu(x, alpha)`` with scale 1.0507 and alpha 1.6733 (Klambauer et al. 2017).

    These constants keep mean 0 and variance 1 from layer to layer.
    """
    return _activated(
        "selu",
        input,
        inplace,
        lambda x: _exponential(x, _SELU_SCALE * _SELU_ALPHA, 1.0, _SELU_SCALE),
    )


# ---- smooth --------------------------------------------------------------------------------------

_softplus, _logsigmoid, _silu = unary(_s.SOFTPLUS), unary(_s.LOGSIGMOID), unary(_s.SILU)
_softsign = unary(_s.SOFTSIGN)
_gelu = {"none": unary(_s.GELU), "tanh": unary(_s.GELU_TANH)}


def gelu(input: Tensor, approximate: str = "none") -> Tensor:
    """``x * ndtr(x)``, where ndtr is the normal distribution (Hendrycks and Gimpel 2016).

    ``approximate="tanh"`` gives ``x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x**3)))``. Both
    forms and their derivatives are 0 at minus infinity. Raises ValueError for another
    ``approximate``.
    """
    if not isinstance(approximate, str) or approximate not in _gelu:
        raise ValueError(f"[gelu] approximate is {approximate!r}, but must be 'none' or 'tanh'")
    return _gelu[approximate](input)


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """``x * sigmoid(x)``. At minus infinity it is 0, the limit, with derivative 0."""
    return _activated("silu", input, True, _silu) if inplace else _silu(input)


def _mish(x: Tensor) -> Tensor:
    # Beyond 800 the gate is 0 or 1 and flat, so no factor becomes infinite.
    return f.tanh(_softplus(f.clamp(x, -800.0, 800.0))).scale(x)


def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """``x * tanh(softplus(x))`` (Misra 2019). At minus infinity it is 0, with derivative 0."""
    return _activated("mish", input, inplace, _mish)


def softplus(
    input: Tensor,
    beta: float = 1.0,
    threshold: float = math.inf,
) -> Tensor:
    """``log(1 + exp(beta * x)) / beta``, computed as ``max(x, 0) + log1p(exp(-|x|))`` for beta 1.

    Where ``beta * x`` is above ``threshold`` the result is x, with derivative 1. By default there
    is no threshold, since this form cannot overflow. PyTorch's default is 20, with an error of up
    to 2e-9.

    >>> import minigrad as mg
    >>> softplus(mg.tensor([-1000.0, 1000.0])).tolist()
    [0.0, 1000.0]
    """
    if threshold == math.inf and beta == 1.0:
        return _softplus(input)
    beta, threshold = real("softplus", "beta", beta), real("softplus", "threshold", threshold)
    x = as_float("softplus", input)
    y = _softplus(x * beta) / beta
    return y if threshold == math.inf else f.where(x * beta > threshold, x, y)


def logsigmoid(input: Tensor) -> Tensor:
    """``log(sigmoid(x)) = -softplus(-x)``, without overflow."""
    return _logsigmoid(input)


def softsign(input: Tensor) -> Tensor:
    """``x / (1 + |x|)``. At infinity it is 1 or -1, the limit, with derivative 0."""
    return _softsign(input)


def tanhshrink(input: Tensor) -> Tensor:
    """``x - tanh(x)``."""
    x = as_float("tanhshrink", input)
    return x - f.tanh(x)


# ---- along a dimension ---------------------------------------------------------------------------


def glu(input: Tensor, dim: int = -1) -> Tensor:
    """``a * sigmoid(b)`` of the two halves a and b along a dimension (Dauphin et al. 2017).

    Raises ValueError if the size is odd, IndexError for a missing dimension.

    >>> import minigrad as mg
    >>> glu(mg.tensor([3.0, 4.0, 0.0, 0.0])).tolist()
    [1.5, 2.0]
    """
    x = as_float("glu", input)
    axis = one_dim("glu", dim, x.ndim)
    half, odd = divmod(x.shape[axis], 2)
    if odd:
        raise ValueError(
            f"[glu] dim {dim} of the input {x.shape} has size {2 * half + 1}, but must be even: "
            "it is halved"
        )
    return f.narrow(x, axis, 0, half) * f.sigmoid(f.narrow(x, axis, half, half))


def gumbel_softmax(
    logits: Tensor,
    tau: float = 1,
    hard: bool = False,
    eps: float = 1e-10,
    dim: int = -1,
    *,
    noise: Tensor | None = None,
    generator: Generator | None = None,
) -> Tensor:
    """``softmax((logits + noise) / tau)`` along a dimension: a soft draw of classes.

    With ``hard`` the result is one-hot, with the gradient of the soft draw. ``noise`` has the
    Gumbel distribution -log(-log(U)). Unless given it is drawn from ``generator``, by default the
    generator that :func:`minigrad.manual_seed` seeds. ``eps`` has no effect, as in PyTorch.
    Sources: Jang et al. 2017, Maddison et al. 2017. Raises ValueError if noise has another shape
    than the logits.

    >>> import minigrad as mg
    >>> gumbel_softmax(mg.tensor([0.0, 9.0]), hard=True, noise=mg.tensor([1.0, 2.0])).tolist()
    [0.0, 1.0]
    """
    op = "gumbel_softmax"
    x = as_float(op, logits)
    if noise is None:
        added = drawn(Draw("gumbel", x.shape, x.dtype, (), generator))
    else:
        x, added = floats(op, x, noise)
        if added.shape != x.shape:
            raise ValueError(f"[{op}] noise has shape {added.shape}, the logits {x.shape}")
    y = f.softmax((x + added) / real(op, "tau", tau), dim)
    if not hard:
        return y
    at = f.argmax(y, dim if y.ndim else None, True)
    chosen = f.scatter(zeros(y.shape, dtype=y.dtype), dim, at, 1.0)
    return chosen + (y - y.detach())  # one-hot plus an exact 0


# ---- written over the input ----------------------------------------------------------------------


def relu_(input: Tensor) -> Tensor:
    """:func:`relu` with ``inplace=True``: the result is written over the input, which is returned.

    >>> import minigrad as mg
    >>> x = mg.tensor([-1.0, 2.0])
    >>> relu_(x) is x, x.tolist()
    (True, [0.0, 2.0])
    """
    return relu(input, True)


def leaky_relu_(input: Tensor, negative_slope: float = 0.01) -> Tensor:
    """Like :func:`leaky_relu` with ``inplace=True``."""
    return leaky_relu(input, negative_slope, True)


def rrelu_(
    input: Tensor,
    lower: float = 1.0 / 8.0,
    upper: float = 1.0 / 3.0,
    training: bool = False,
) -> Tensor:
    """Like :func:`rrelu` with ``inplace=True``."""
    return rrelu(input, lower, upper, training, True)


def threshold_(input: Tensor, threshold: float, value: float) -> Tensor:
    """The function without the underscore, with ``inplace=True``."""
    return _threshold(input, threshold, value, True)


def hardtanh_(input: Tensor, min_val: float = -1.0, max_val: float = 1.0) -> Tensor:
    """Like :func:`hardtanh` with ``inplace=True``."""
    return hardtanh(input, min_val, max_val, True)


def elu_(input: Tensor, alpha: float = 1.0) -> Tensor:
    """Like :func:`elu` with ``inplace=True``."""
    return elu(input, alpha, True)


def celu_(input: Tensor, alpha: float = 1.0) -> Tensor:
    """Like :func:`celu` with ``inplace=True``."""
    return celu(input, alpha, True)


def selu_(input: Tensor) -> Tensor:
    """Like :func:`selu` with ``inplace=True``."""
    return selu(input, True)


_threshold = threshold
