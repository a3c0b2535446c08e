# Written by docs/stubs.py from the modules themselves: change those.
from minigrad._tensor.tensor import Tensor
from typing import Any

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

def abs(input: Any) -> Tensor:
    """|x|; its derivative at 0 is 0."""
def absolute(input: Any) -> Tensor:
    """|x|; its derivative at 0 is 0."""
def acos(input: Any) -> Tensor:
    """The angle from 0 to pi whose cosine is x; NaN beyond -1 and 1."""
def acosh(input: Any) -> Tensor:
    """The inverse hyperbolic cosine, log(x + sqrt(x^2 - 1)); NaN below 1."""
def add(input: Any, other: Any, *older: Any, alpha: float = 1) -> Tensor:
    """input + alpha * other, broadcast together. For two bools it is logical or."""
def addcdiv(input: Any, tensor1: Any, tensor2: Any, *older: Any, value: float = 1) -> Tensor:
    """input + value * tensor1 / tensor2, broadcast together. Integers become floats."""
def addcmul(input: Any, tensor1: Any, tensor2: Any, *older: Any, value: float = 1) -> Tensor:
    """input + value * tensor1 * tensor2, broadcast together."""
def allclose(input: Any, other: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> bool:
    """True if all elements are close, as a Python bool. See :func:`isclose`."""
def arccos(input: Any) -> Tensor:
    """The angle from 0 to pi whose cosine is x; NaN beyond -1 and 1."""
def arccosh(input: Any) -> Tensor:
    """The inverse hyperbolic cosine, log(x + sqrt(x^2 - 1)); NaN below 1."""
def arcsin(input: Any) -> Tensor:
    """The angle from -pi/2 to pi/2 whose sine is x; NaN beyond -1 and 1."""
def arcsinh(input: Any) -> Tensor:
    """The inverse hyperbolic sine, log(x + sqrt(x^2 + 1))."""
def arctan(input: Any) -> Tensor:
    """The angle from -pi/2 to pi/2 whose tangent is x."""
def arctan2(input: Any, other: Any) -> Tensor:
    """The angle of the point (b, a) in radians, from -pi to pi; its gradient at (0, 0) is 0."""
def arctanh(input: Any) -> Tensor:
    """The inverse hyperbolic tangent, log((1 + x) / (1 - x)) / 2; NaN beyond -1 and 1."""
def asin(input: Any) -> Tensor:
    """The angle from -pi/2 to pi/2 whose sine is x; NaN beyond -1 and 1."""
def asinh(input: Any) -> Tensor:
    """The inverse hyperbolic sine, log(x + sqrt(x^2 + 1))."""
def atan(input: Any) -> Tensor:
    """The angle from -pi/2 to pi/2 whose tangent is x."""
def atan2(input: Any, other: Any) -> Tensor:
    """The angle of the point (b, a) in radians, from -pi to pi; its gradient at (0, 0) is 0."""
def atanh(input: Any) -> Tensor:
    """The inverse hyperbolic tangent, log((1 + x) / (1 - x)) / 2; NaN beyond -1 and 1."""
def bitwise_and(input: Any, other: Any) -> Tensor:
    """The bits set in both a and b; int64 and bool."""
def bitwise_left_shift(input: Any, other: Any) -> Tensor:
    """a 2^b in int64, which wraps around; 0 where b is not in 0..63."""
def bitwise_not(input: Any) -> Tensor:
    """The complement of every bit of an int64, and `not` of a bool."""
def bitwise_or(input: Any, other: Any) -> Tensor:
    """The bits set in a or b; int64 and bool."""
def bitwise_right_shift(input: Any, other: Any) -> Tensor:
    """a / 2^b rounded down in int64; for b not in 0..63 as by 63."""
def bitwise_xor(input: Any, other: Any) -> Tensor:
    """The bits set in just one of a and b; int64 and bool."""
def cbrt(input: Any) -> Tensor:
    """The real cube root."""
def ceil(input: Any) -> Tensor:
    """The smallest integer not below x; its derivative is 0 everywhere."""
def clamp(input: Any, min: Any = None, max: Any = None) -> Tensor:
    """The input raised to ``min`` and lowered to ``max``. Where min > max the result is ``max``."""
def clamp_max(input: Any, max: Any) -> Tensor:
    """The input lowered to ``max``. Gradients are as for :func:`clamp`."""
def clamp_min(input: Any, min: Any) -> Tensor:
    """The input raised to ``min``. Gradients are as for :func:`clamp`."""
def clip(input: Any, min: Any = None, max: Any = None) -> Tensor:
    """The input raised to ``min`` and lowered to ``max``. Where min > max the result is ``max``."""
def copysign(input: Any, other: Any) -> Tensor:
    """|a| with the sign of b; the derivative with respect to a is 0 at a = 0, as that of abs."""
def cos(input: Any) -> Tensor:
    """The cosine of x radians."""
def cosh(input: Any) -> Tensor:
    """The hyperbolic cosine, (exp(x) + exp(-x)) / 2."""
def deg2rad(input: Any) -> Tensor:
    """x degrees in radians, x pi / 180."""
def digamma(input: Any) -> Tensor:
    """The derivative of lgamma; NaN at negative integers, where that has poles."""
def div(input: Any, other: Any, *, rounding_mode: str | None = None) -> Tensor:
    """input / other, broadcast together. Integers give the default float dtype."""
def divide(input: Any, other: Any, *, rounding_mode: str | None = None) -> Tensor:
    """input / other, broadcast together. Integers give the default float dtype."""
def eq(input: Any, other: Any) -> Tensor:
    """a == b."""
def equal(input: Any, other: Any) -> bool:
    """True if shapes and all elements are equal, as a Python bool. NaN is equal to nothing."""
def erf(input: Any) -> Tensor:
    """The error function 2 / sqrt(pi) times the integral of exp(-t^2) from 0 to x."""
def erfc(input: Any) -> Tensor:
    """1 - erf(x), precise where that is small."""
def erfinv(input: Any) -> Tensor:
    """The y with erf(y) = x; NaN beyond -1 and 1."""
def exp(input: Any) -> Tensor:
    """e to the power x."""
def exp2(input: Any) -> Tensor:
    """2 to the power x."""
def expm1(input: Any) -> Tensor:
    """exp(x) - 1, precise near 0."""
def fix(input: Any) -> Tensor:
    """x without its fraction, rounded towards 0; its derivative is 0 everywhere."""
def floor(input: Any) -> Tensor:
    """The largest integer not above x; its derivative is 0 everywhere."""
def floor_divide(input: Any, other: Any) -> Tensor:
    """The largest integer not above a / b, as Python's //; its derivative is 0 everywhere."""
def fmax(input: Any, other: Any) -> Tensor:
    """The larger of a and b, or the one that is not NaN; a tie shares the gradient."""
def fmin(input: Any, other: Any) -> Tensor:
    """The smaller of a and b, or the one that is not NaN; a tie shares the gradient."""
def fmod(input: Any, other: Any) -> Tensor:
    """The exact remainder a - b trunc(a / b), which has the sign of a."""
def frac(input: Any) -> Tensor:
    """The fraction x - trunc(x), with the sign of x."""
def ge(input: Any, other: Any) -> Tensor:
    """a >= b."""
def greater(input: Any, other: Any) -> Tensor:
    """a > b."""
def greater_equal(input: Any, other: Any) -> Tensor:
    """a >= b."""
def gt(input: Any, other: Any) -> Tensor:
    """a > b."""
def heaviside(input: Any, values: Any) -> Tensor:
    """The step function: 0 for negative input, ``values`` for input = 0, 1 for positive input."""
def hypot(input: Any, other: Any) -> Tensor:
    """sqrt(a^2 + b^2) without overflow on the way; its gradient at (0, 0) is 0."""
def i0(input: Any) -> Tensor:
    """The modified Bessel function of the first kind of order 0: sum of (x / 2)^2k / k!^2."""
def isclose(input: Any, other: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Tensor:
    """True where |input - other| <= atol + rtol |other|. Equal infinities are close."""
def isfinite(input: Any) -> Tensor:
    """Whether x is neither infinite nor NaN; of integers always."""
def isinf(input: Any) -> Tensor:
    """Whether x is inf or -inf; of integers never."""
def isnan(input: Any) -> Tensor:
    """Whether x is NaN; of integers never."""
def isneginf(input: Any) -> Tensor:
    """True where the input is -inf."""
def isposinf(input: Any) -> Tensor:
    """True where the input is inf."""
def le(input: Any, other: Any) -> Tensor:
    """a <= b."""
def lerp(input: Any, end: Any, weight: Any) -> Tensor:
    """input + weight * (end - input). It is exact for the weights 0 and 1."""
def less(input: Any, other: Any) -> Tensor:
    """a < b."""
def less_equal(input: Any, other: Any) -> Tensor:
    """a <= b."""
def lgamma(input: Any) -> Tensor:
    """The logarithm of |gamma(x)|, the integral of t^(x - 1) exp(-t) from 0 to infinity."""
def log(input: Any) -> Tensor:
    """The natural logarithm; NaN below 0."""
def log10(input: Any) -> Tensor:
    """The logarithm to base 10; NaN below 0."""
def log1p(input: Any) -> Tensor:
    """log(1 + x), precise near 0."""
def log2(input: Any) -> Tensor:
    """The logarithm to base 2; NaN below 0."""
def logaddexp(input: Any, other: Any) -> Tensor:
    """log(exp(a) + exp(b)) without overflow; the gradient of two -inf is 0."""
def logaddexp2(input: Any, other: Any) -> Tensor:
    """log2(2^a + 2^b) without overflow; the gradient of two -inf is 0."""
def logical_and(input: Any, other: Any) -> Tensor:
    """Whether a and b both differ from 0, as bool."""
def logical_not(input: Any) -> Tensor:
    """x == 0, as bool."""
def logical_or(input: Any, other: Any) -> Tensor:
    """Whether a or b differs from 0, as bool."""
def logical_xor(input: Any, other: Any) -> Tensor:
    """Whether exactly one of a and b differs from 0, as bool."""
def logit(input: Any, eps: float | None = None) -> Tensor:
    """log(input / (1 - input)), the inverse of the sigmoid."""
def lt(input: Any, other: Any) -> Tensor:
    """a < b."""
def maximum(input: Any, other: Any) -> Tensor:
    """The larger of a and b; a tie shares the gradient, NaN wins."""
def minimum(input: Any, other: Any) -> Tensor:
    """The smaller of a and b; a tie shares the gradient, NaN wins."""
def mul(input: Any, other: Any) -> Tensor:
    """a * b."""
def multiply(input: Any, other: Any) -> Tensor:
    """a * b."""
def nan_to_num(input: Any, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None) -> Tensor:
    """The input with NaN, inf and -inf replaced by numbers."""
def ne(input: Any, other: Any) -> Tensor:
    """a != b."""
def neg(input: Any) -> Tensor:
    """-x."""
def negative(input: Any) -> Tensor:
    """-x."""
def nextafter(input: Any, other: Any) -> Tensor:
    """The next number after a towards b; its derivatives are 1 and 0, and both 0 where a = b."""
def not_equal(input: Any, other: Any) -> Tensor:
    """a != b."""
def polygamma(n: Any, input: Any) -> Tensor:
    """The n-th derivative of the digamma function, n = 0, 1, 2, ..."""
def positive(input: Any) -> Tensor:
    """The input itself. Raises TypeError for bool."""
def pow(input: Any, exponent: Any) -> Tensor:
    """The input to the power ``exponent``. For int64 the exponent must not be negative."""
def rad2deg(input: Any) -> Tensor:
    """x radians in degrees, 180 x / pi."""
def reciprocal(input: Any) -> Tensor:
    """1 / x."""
def relu(input: Any) -> Tensor:
    """max(x, 0); its derivative at 0 is 0, and NaN passes."""
def remainder(input: Any, other: Any) -> Tensor:
    """The exact remainder a - b floor(a / b), which has the sign of b, as Python's %."""
def round(input: Any, *, decimals: int = 0) -> Tensor:
    """The nearest multiple of 10^-decimals, halves to even. The derivative is 0 everywhere."""
def rsqrt(input: Any) -> Tensor:
    """1 / sqrt(x)."""
def rsub(input: Any, other: Any, *, alpha: float = 1) -> Tensor:
    """other - alpha * input, broadcast together: :func:`sub` with the operands exchanged."""
def scale(input: Any, other: Any) -> Tensor:
    """a * b, and 0 where a is 0 whatever b is: how a gradient meets a partial derivative."""
def sgn(input: Any) -> Tensor:
    """-1, 0 or 1; its derivative is 0 everywhere."""
def sigmoid(input: Any) -> Tensor:
    """1 / (1 + exp(-x))."""
def sign(input: Any) -> Tensor:
    """-1, 0 or 1; its derivative is 0 everywhere."""
def signbit(input: Any) -> Tensor:
    """Whether the sign bit is set, also of -0.0; of integers x < 0."""
def sin(input: Any) -> Tensor:
    """The sine of x radians."""
def sinc(input: Any) -> Tensor:
    """sin(pi x) / (pi x), and 1 at 0."""
def sinh(input: Any) -> Tensor:
    """The hyperbolic sine, (exp(x) - exp(-x)) / 2."""
def sqrt(input: Any) -> Tensor:
    """The square root; NaN below 0."""
def square(input: Any) -> Tensor:
    """x * x."""
def sub(input: Any, other: Any, *older: Any, alpha: float = 1) -> Tensor:
    """input - alpha * other, broadcast together. Raises TypeError for bools: use logical_xor."""
def subtract(input: Any, other: Any, *older: Any, alpha: float = 1) -> Tensor:
    """input - alpha * other, broadcast together. Raises TypeError for bools: use logical_xor."""
def tan(input: Any) -> Tensor:
    """The tangent of x radians."""
def tanh(input: Any) -> Tensor:
    """The hyperbolic tangent, sinh(x) / cosh(x)."""
def true_divide(input: Any, other: Any) -> Tensor:
    """a / b; integers give the default float dtype."""
def trunc(input: Any) -> Tensor:
    """x without its fraction, rounded towards 0; its derivative is 0 everywhere."""
def xlogy(input: Any, other: Any) -> Tensor:
    """a log(b), and 0 where a is 0 unless b is NaN."""
