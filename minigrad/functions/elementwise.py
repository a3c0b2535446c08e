"""Elementwise operations as functions."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from minigrad.functions.arguments import integer, older_form, real, tensor_operand
from minigrad.functions.operands import as_operand, operand_error, tensor_operands
from minigrad.functions.row_functions import binary, composed, unary
from minigrad.functions.shaping import to, widen
from minigrad.ops import composed as _m
from minigrad.ops import elementary as _e
from minigrad.ops import pointwise as _p
from minigrad.ops import special as _s
from minigrad.runtime.dtypes import bool_, float32, int64
from minigrad.runtime.native import call, kernels
from minigrad.tape.apply import apply, operation
from minigrad.tape.tensor_base import TensorBase

if TYPE_CHECKING:
    from minigrad._tensor import Tensor

__all__ = [
    "abs",
    "absolute",
    "acos",
    "acosh",
    "add",
    "addcdiv",
    "addcmul",
    "allclose",
    "arccos",
    "arccosh",
    "arcsin",
    "arcsinh",
    "arctan",
    "arctan2",
    "arctanh",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "bitwise_and",
    "bitwise_left_shift",
    "bitwise_not",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "cbrt",
    "ceil",
    "clamp",
    "clamp_max",
    "clamp_min",
    "clip",
    "copysign",
    "cos",
    "cosh",
    "deg2rad",
    "digamma",
    "div",
    "divide",
    "eq",
    "equal",
    "erf",
    "erfc",
    "erfinv",
    "exp",
    "exp2",
    "expm1",
    "fix",
    "floor",
    "floor_divide",
    "fmax",
    "fmin",
    "fmod",
    "frac",
    "ge",
    "greater",
    "greater_equal",
    "gt",
    "heaviside",
    "hypot",
    "i0",
    "isclose",
    "isfinite",
    "isinf",
    "isnan",
    "isneginf",
    "isposinf",
    "le",
    "lerp",
    "less",
    "less_equal",
    "lgamma",
    "log",
    "log1p",
    "log2",
    "log10",
    "logaddexp",
    "logaddexp2",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "logit",
    "lt",
    "maximum",
    "minimum",
    "mul",
    "multiply",
    "nan_to_num",
    "ne",
    "neg",
    "negative",
    "nextafter",
    "not_equal",
    "polygamma",
    "positive",
    "pow",
    "rad2deg",
    "reciprocal",
    "relu",
    "remainder",
    "round",
    "rsqrt",
    "rsub",
    "sgn",
    "sigmoid",
    "sign",
    "signbit",
    "sin",
    "sinc",
    "sinh",
    "sqrt",
    "square",
    "sub",
    "subtract",
    "tan",
    "tanh",
    "true_divide",
    "trunc",
    "xlogy",
]

# ---- one input -----------------------------------------------------------------------------------

neg = negative = unary(_p.NEG)
abs = absolute = unary(_p.ABS)  # noqa: A001 - NumPy's and PyTorch's name
sign = sgn = unary(_p.SIGN)
square = unary(_p.SQUARE)
reciprocal = unary(_p.RECIPROCAL)
floor = unary(_p.FLOOR)
ceil = unary(_p.CEIL)
trunc = fix = unary(_p.TRUNC)
frac = composed(_m.FRAC)
_round = unary(_p.ROUND)

exp = unary(_e.EXP)
exp2 = unary(_e.EXP2)
expm1 = unary(_e.EXPM1)
log = unary(_e.LOG)
log2 = unary(_e.LOG2)
log10 = unary(_e.LOG10)
log1p = unary(_e.LOG1P)
sqrt = unary(_e.SQRT)
rsqrt = unary(_e.RSQRT)
cbrt = unary(_e.CBRT)
sin = unary(_e.SIN)
cos = unary(_e.COS)
tan = unary(_e.TAN)
asin = arcsin = unary(_e.ASIN)
acos = arccos = unary(_e.ACOS)
atan = arctan = unary(_e.ATAN)
sinh = unary(_e.SINH)
cosh = unary(_e.COSH)
tanh = unary(_e.TANH)
asinh = arcsinh = unary(_e.ASINH)
acosh = arccosh = unary(_e.ACOSH)
atanh = arctanh = unary(_e.ATANH)
sinc = unary(_e.SINC)
deg2rad = composed(_m.DEG2RAD)
rad2deg = composed(_m.RAD2DEG)

relu = unary(_s.RELU)
sigmoid = unary(_s.SIGMOID)
erf = unary(_s.ERF)
erfc = unary(_s.ERFC)
erfinv = unary(_s.ERFINV)
lgamma = unary(_s.LGAMMA)
digamma = unary(_s.DIGAMMA)
_trigamma = unary(_s.TRIGAMMA)
_logit = composed(_m.LOGIT)
i0 = unary(_s.I0)

isnan = unary(_p.ISNAN)
isinf = unary(_p.ISINF)
isfinite = unary(_p.ISFINITE)
signbit = unary(_p.SIGNBIT)
logical_not = unary(_p.LOGICAL_NOT)
bitwise_not = unary(_p.BITWISE_NOT)

# ---- two inputs ----------------------------------------------------------------------------------

_add, _sub = binary(_p.ADD), binary(_p.SUB)
true_divide = binary(_p.DIV)
true_divide.__qualname__ = "true_divide"  # the row is named div
mul = multiply = binary(_p.MUL)
_pow = binary(_p.POW)
floor_divide = binary(_p.FLOOR_DIVIDE)
remainder = binary(_p.REMAINDER)
fmod = binary(_p.FMOD)
maximum = binary(_p.MAXIMUM)
minimum = binary(_p.MINIMUM)
fmax = binary(_p.FMAX)
fmin = binary(_p.FMIN)
atan2 = arctan2 = binary(_p.ATAN2)
hypot = binary(_p.HYPOT)
copysign = binary(_p.COPYSIGN)
nextafter = binary(_p.NEXTAFTER)
_heaviside = composed(_m.HEAVISIDE)
logaddexp = binary(_e.LOGADDEXP)
logaddexp2 = binary(_e.LOGADDEXP2)
xlogy = binary(_s.XLOGY)
scale = binary(_p.SCALE)

eq = binary(_p.EQ)
ne = not_equal = binary(_p.NE)
lt = less = binary(_p.LT)
le = less_equal = binary(_p.LE)
gt = greater = binary(_p.GT)
ge = greater_equal = binary(_p.GE)
logical_and = binary(_p.LOGICAL_AND)
logical_or = binary(_p.LOGICAL_OR)
logical_xor = binary(_p.LOGICAL_XOR)
bitwise_and = binary(_p.BITWISE_AND)
bitwise_or = binary(_p.BITWISE_OR)
bitwise_xor = binary(_p.BITWISE_XOR)
bitwise_left_shift = binary(_p.BITWISE_LEFT_SHIFT)
bitwise_right_shift = binary(_p.BITWISE_RIGHT_SHIFT)


def add(input: Any, other: Any, *older: Any, alpha: float = 1) -> Tensor:
    """input + alpha * other, broadcast together. For two bools it is logical or.

    PyTorch's older form ``add(input, alpha, other)`` is accepted too.
    """
    if older:
        alpha, other = older_form("add", "alpha", alpha, (other, *older), 1)
    return _add(input, other if alpha == 1 else mul(other, alpha))


def sub(input: Any, other: Any, *older: Any, alpha: float = 1) -> Tensor:
    """input - alpha * other, broadcast together. Raises TypeError for bools: use logical_xor."""
    if older:
        alpha, other = older_form("sub", "alpha", alpha, (other, *older), 1)
    return _sub(input, other if alpha == 1 else mul(other, alpha))


def div(input: Any, other: Any, *, rounding_mode: str | None = None) -> Tensor:
    """input / other, broadcast together. Integers give the default float dtype.

    ``rounding_mode`` is None, ``"trunc"`` (towards 0) or ``"floor"`` (as :func:`floor_divide`). A
    rounded quotient of integers is an integer. A rounded quotient has a zero gradient. Raises
    ValueError for another mode, and ZeroDivisionError for integers rounded with a 0 among the
    divisors.
    """
    if rounding_mode is None:
        return true_divide(input, other)
    if rounding_mode == "floor":
        return floor_divide(input, other)
    if rounding_mode != "trunc":
        raise ValueError(f"[div] rounding_mode is {rounding_mode!r}: use None, 'trunc' or 'floor'")
    rest = fmod(input, other)
    if rest.dtype.is_floating_point:
        return trunc(true_divide(input, other))
    return floor_divide(_sub(input, rest), other)


subtract, divide = sub, div


def pow(input: Any, exponent: Any) -> Tensor:  # noqa: A001
    """The input to the power ``exponent``. For int64 the exponent must not be negative."""
    return _pow(input, exponent)


def heaviside(input: Any, values: Any) -> Tensor:
    """The step function: 0 for negative input, ``values`` for input = 0, 1 for positive input.

    There is no gradient with respect to the input.
    """
    return _heaviside(input, values)


def rsub(input: Any, other: Any, *, alpha: float = 1) -> Tensor:
    """other - alpha * input, broadcast together: :func:`sub` with the operands exchanged."""
    return _sub(other, input if alpha == 1 else mul(input, alpha))


def positive(input: Any) -> Tensor:
    """The input itself. Raises TypeError for bool."""
    given: Tensor = tensor_operand("positive", input)
    if given.dtype is bool_:
        raise TypeError("[positive] not offered for bool")
    return given


def round(input: Any, *, decimals: int = 0) -> Tensor:  # noqa: A001
    """The nearest multiple of 10^-decimals, halves to even. The derivative is 0 everywhere.

    Integers are returned unchanged. Raises TypeError for integers with negative decimals.

    >>> import minigrad as mg
    >>> mg.round(mg.tensor([2.5, -0.127]), decimals=2)
    tensor([ 2.5 , -0.13])
    """
    x = tensor_operand("round", input)
    decimals = integer("round", "decimals", decimals)
    if decimals == 0 or (decimals > 0 and not x.dtype.is_floating_point):
        return _round(x)
    if not x.dtype.is_floating_point:
        raise TypeError(f"[round] decimals={decimals} is for floats: convert {x.dtype.name} first")
    x = widen(x)
    places = decimals if decimals > 0 else -decimals
    unit = 10.0**places if places <= 308 else math.inf
    if decimals > 0:
        units = mul(x, unit)  # too large a value has no fraction to round
        return _where(isfinite(units), true_divide(_round(units), unit), x.detach())
    units = _round(true_divide(x, unit))
    return _where(eq(units, 0.0), units, mul(units, unit))


# ---- bounds and choices --------------------------------------------------------------------------


def _where(condition: Tensor, a: Any, b: Any) -> Tensor:
    return operation(_p.WHERE)(condition, as_operand(a), as_operand(b))


def _bound(op: str, given: Any, sign: float, others: tuple[Any, ...]) -> Tensor:
    """A bound as an operand. A missing bound becomes an infinite one."""
    if given is None:
        floats = any(t is not None and t.dtype.is_floating_point for t in others)
        return as_operand(sign * math.inf if floats else (2**63 - 1 if sign > 0 else -(2**63)))
    found = as_operand(given)
    if found is None:
        raise operand_error(op, given)
    return found


_NUMBERS = {float, int, type(None)}


def clamp(input: Any, min: Any = None, max: Any = None) -> Tensor:  # noqa: A002
    """The input raised to ``min`` and lowered to ``max``. Where min > max the result is ``max``.

    Bounds are numbers or tensors.

    Input and bounds are broadcast together. One bound may be left out. NaN in the input or in a
    bound gives NaN.

    The gradient goes to the input where the result equals the input, also on a bound, since bounds
    are inclusive. Elsewhere the gradient goes to the bound. At NaN it is 0. Second derivatives are
    0.

    Raises ValueError if both bounds are left out, TypeError for bool.

    >>> import minigrad as mg
    >>> mg.clamp(mg.tensor([-2.0, 0.5, 3.0]), min=0, max=1)
    tensor([0. , 0.5, 1. ])
    """
    if min is None and max is None:
        raise ValueError("[clamp] neither min nor max is given: give at least one")
    x = tensor_operand("clamp", input)
    if type(min) in _NUMBERS and type(max) in _NUMBERS and x.dtype.is_floating_point:
        low, high = (-math.inf if min is None else min), (math.inf if max is None else max)
        if type(low) is not float or type(high) is not float:
            low, high = real("clamp", "min", low), real("clamp", "max", high)
        return apply(_p.CLIP, (x,), (low, high))
    given = (x, as_operand(min), as_operand(max))
    low, high = _bound("clamp", min, -1.0, given), _bound("clamp", max, 1.0, given)
    return operation(_p.CLAMP)(x, low, high)


def clamp_min(input: Any, min: Any) -> Tensor:  # noqa: A002
    """The input raised to ``min``. Gradients are as for :func:`clamp`."""
    return clamp(input, min)


def clamp_max(input: Any, max: Any) -> Tensor:  # noqa: A002
    """The input lowered to ``max``. Gradients are as for :func:`clamp`."""
    return clamp(input, None, max)


clip = clamp


def nan_to_num(
    input: Any, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None
) -> Tensor:
    """The input with NaN, inf and -inf replaced by numbers.

    By default NaN becomes 0, inf the dtype's largest number, and -inf the lowest. The gradient is 0
    where a value was replaced. Integers are returned unchanged.
    """
    given: Tensor = tensor_operand("nan_to_num", input)
    if not given.dtype.is_floating_point:
        return given
    x = given = widen(given)
    largest = 3.4028234663852886e38 if x.dtype is float32 else 1.7976931348623157e308
    number = real("nan_to_num", "nan", nan)
    high = largest if posinf is None else real("nan_to_num", "posinf", posinf)
    low = -largest if neginf is None else real("nan_to_num", "neginf", neginf)
    if posinf is None and neginf is None:
        y = clamp(x, low, high)
    else:
        y = _where(isposinf(x), high, _where(isneginf(x), low, x))
    return _where(isnan(x), number, y)


# ---- several inputs ------------------------------------------------------------------------------


def lerp(input: Any, end: Any, weight: Any) -> Tensor:
    """input + weight * (end - input). It is exact for the weights 0 and 1."""
    a, b = tensor_operands("lerp", input, end)
    step = sub(b, a)
    if isinstance(weight, (int, float)):
        near = -0.5 < weight < 0.5
        return add(a, mul(step, weight)) if near else sub(b, mul(step, 1 - weight))
    _, w = tensor_operands("lerp", step, weight)
    return _where(lt(abs(w), 0.5), add(a, mul(step, w)), sub(b, mul(step, sub(1.0, w))))


def addcmul(input: Any, tensor1: Any, tensor2: Any, *older: Any, value: float = 1) -> Tensor:
    """input + value * tensor1 * tensor2, broadcast together."""
    if older:
        given = (tensor1, tensor2, *older)
        value, tensor1, tensor2 = older_form("addcmul", "value", value, given, 2)
    product = mul(tensor1, tensor2)
    return _add(input, product if value == 1 else mul(product, value))


def addcdiv(input: Any, tensor1: Any, tensor2: Any, *older: Any, value: float = 1) -> Tensor:
    """input + value * tensor1 / tensor2, broadcast together. Integers become floats."""
    if older:
        given = (tensor1, tensor2, *older)
        value, tensor1, tensor2 = older_form("addcdiv", "value", value, given, 2)
    quotient = true_divide(tensor1, tensor2)
    return _add(input, quotient if value == 1 else mul(quotient, value))


def logit(input: Any, eps: float | None = None) -> Tensor:
    """log(input / (1 - input)), the inverse of the sigmoid.

    With ``eps`` the input is first clamped to [eps, 1 - eps].

    Without ``eps`` the result is NaN outside [0, 1], -inf at 0 and inf at 1.
    """
    if eps is None:
        return _logit(input)
    eps = real("logit", "eps", eps)
    return _logit(clamp(input, eps, 1.0 - eps))


def polygamma(n: Any, input: Any) -> Tensor:
    """The n-th derivative of the digamma function, n = 0, 1, 2, ...

    The method is ``input.polygamma(n)``. Raises ValueError for a negative n and for n above 170,
    whose factorial overflows float64. Raises TypeError if n is no integer.
    """
    x = input
    if isinstance(n, TensorBase) and not isinstance(x, TensorBase):
        n, x = x, n  # called as a method
    n = integer("polygamma", "n", n, 0)
    if n > 170:
        raise ValueError(f"[polygamma] n is {n}, but must be at most 170: n! overflows beyond")
    if n < 2:
        return digamma(x) if n == 0 else _trigamma(x)
    x = tensor_operand("polygamma", x)
    return _m.polygamma(n, x if x.dtype.is_floating_point else to(x, float32))


# ---- questions -----------------------------------------------------------------------------------


def isposinf(input: Any) -> Tensor:
    """True where the input is inf."""
    return eq(input, math.inf)


def isneginf(input: Any) -> Tensor:
    """True where the input is -inf."""
    return eq(input, -math.inf)


def _countable(op: str, x: Any) -> Tensor:
    """An operand that can be subtracted: bool becomes int64."""
    found = as_operand(x)
    if found is None:
        raise operand_error(op, x)
    return to(found, int64) if found.dtype is bool_ else found


def isclose(
    input: Any, other: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> Tensor:
    """True where |input - other| <= atol + rtol |other|. Equal infinities are close.

    NaN is close to nothing; with ``equal_nan`` it is close to NaN. Raises ValueError for negative
    tolerances.
    """
    if not (real("isclose", "rtol", rtol) >= 0 and real("isclose", "atol", atol) >= 0):
        raise ValueError(f"[isclose] rtol={rtol} and atol={atol} must not be negative")
    a, b = _countable("isclose", input), _countable("isclose", other)
    distance = abs(_sub(a, b))
    near = le(distance, _add(mul(abs(b), rtol), atol))
    near = logical_or(eq(a, b), logical_and(near, isfinite(distance)))
    return logical_or(near, logical_and(isnan(a), isnan(b))) if equal_nan else near


def _every(x: Tensor) -> bool:
    return bool(call(kernels.all, x._h, None, False).item())


def allclose(
    input: Any, other: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> bool:
    """True if all elements are close, as a Python bool. See :func:`isclose`."""
    return _every(isclose(input, other, rtol, atol, equal_nan))


def equal(input: Any, other: Any) -> bool:
    """True if shapes and all elements are equal, as a Python bool. NaN is equal to nothing."""
    a, b = tensor_operands("equal", input, other)
    return a.shape == b.shape and _every(eq(a, b))
