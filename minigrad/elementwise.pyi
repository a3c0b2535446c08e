# Written by docs/stubs.py from the modules themselves: change those.
from minigrad._tensor import Tensor
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

def abs(x: Any) -> Tensor:
    """|x|; its derivative at 0 is 0."""
def absolute(x: Any) -> Tensor:
    """|x|; its derivative at 0 is 0."""
def acos(x: Any) -> Tensor:
    """The angle from 0 to pi whose cosine is x; NaN beyond -1 and 1."""
def acosh(x: Any) -> Tensor:
    """The inverse hyperbolic cosine, log(x + sqrt(x^2 - 1)); NaN below 1."""
def add(a: Any, b: Any, *older: Any, alpha: float = 1) -> Tensor:
    """a + alpha * b, broadcast together; of bools, `or`."""
def addcdiv(x: Any, tensor1: Any, tensor2: Any, *older: Any, value: float = 1) -> Tensor:
    """x + value * tensor1 / tensor2, broadcast together; of integers too, which become floats."""
def addcmul(x: Any, tensor1: Any, tensor2: Any, *older: Any, value: float = 1) -> Tensor:
    """x + value * tensor1 * tensor2, broadcast together."""
def allclose(a: Any, b: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> bool:
    """Whether all elements are close, as a Python bool; see :func:`isclose`."""
def arccos(x: Any) -> Tensor:
    """The angle from 0 to pi whose cosine is x; NaN beyond -1 and 1."""
def arccosh(x: Any) -> Tensor:
    """The inverse hyperbolic cosine, log(x + sqrt(x^2 - 1)); NaN below 1."""
def arcsin(x: Any) -> Tensor:
    """The angle from -pi/2 to pi/2 whose sine is x; NaN beyond -1 and 1."""
def arcsinh(x: Any) -> Tensor:
    """The inverse hyperbolic sine, log(x + sqrt(x^2 + 1))."""
def arctan(x: Any) -> Tensor:
    """The angle from -pi/2 to pi/2 whose tangent is x."""
def arctan2(a: Any, b: Any) -> Tensor:
    """The angle of the point (b, a) in radians, from -pi to pi; its gradient at (0, 0) is 0."""
def arctanh(x: Any) -> Tensor:
    """The inverse hyperbolic tangent, log((1 + x) / (1 - x)) / 2; NaN beyond -1 and 1."""
def asin(x: Any) -> Tensor:
    """The angle from -pi/2 to pi/2 whose sine is x; NaN beyond -1 and 1."""
def asinh(x: Any) -> Tensor:
    """The inverse hyperbolic sine, log(x + sqrt(x^2 + 1))."""
def atan(x: Any) -> Tensor:
    """The angle from -pi/2 to pi/2 whose tangent is x."""
def atan2(a: Any, b: Any) -> Tensor:
    """The angle of the point (b, a) in radians, from -pi to pi; its gradient at (0, 0) is 0."""
def atanh(x: Any) -> Tensor:
    """The inverse hyperbolic tangent, log((1 + x) / (1 - x)) / 2; NaN beyond -1 and 1."""
def bitwise_and(a: Any, b: Any) -> Tensor:
    """The bits set in both a and b; int64 and bool."""
def bitwise_left_shift(a: Any, b: Any) -> Tensor:
    """a 2^b in int64, which wraps around; 0 where b is not in 0..63."""
def bitwise_not(x: Any) -> Tensor:
    """The complement of every bit of an int64, and `not` of a bool."""
def bitwise_or(a: Any, b: Any) -> Tensor:
    """The bits set in a or b; int64 and bool."""
def bitwise_right_shift(a: Any, b: Any) -> Tensor:
    """a / 2^b rounded down in int64; for b not in 0..63 as by 63."""
def bitwise_xor(a: Any, b: Any) -> Tensor:
    """The bits set in just one of a and b; int64 and bool."""
def cbrt(x: Any) -> Tensor:
    """The real cube root."""
def ceil(x: Any) -> Tensor:
    """The smallest integer not below x; its derivative is 0 everywhere."""
def clamp(x: Any, min: Any = None, max: Any = None) -> Tensor:
    """x raised to ``min`` and lowered to ``max``, numbers or tensors; of crossed bounds, ``max``."""
def clamp_max(x: Any, max: Any) -> Tensor:
    """x lowered to ``max``; as :func:`clamp`."""
def clamp_min(x: Any, min: Any) -> Tensor:
    """x raised to ``min``; as :func:`clamp`."""
def clip(x: Any, min: Any = None, max: Any = None) -> Tensor:
    """x raised to ``min`` and lowered to ``max``, numbers or tensors; of crossed bounds, ``max``."""
def copysign(a: Any, b: Any) -> Tensor:
    """|a| with the sign of b; the derivative with respect to a is 0 at a = 0, as that of abs."""
def cos(x: Any) -> Tensor:
    """The cosine of x radians."""
def cosh(x: Any) -> Tensor:
    """The hyperbolic cosine, (exp(x) + exp(-x)) / 2."""
def deg2rad(x: Any) -> Tensor:
    """x degrees in radians, x pi / 180."""
def digamma(x: Any) -> Tensor:
    """The derivative of lgamma; NaN at negative integers, where that has poles."""
def div(a: Any, b: Any, *, rounding_mode: str | None = None) -> Tensor:
    """a / b, of integers in the default float dtype; or rounded, when integers stay integers."""
def divide(a: Any, b: Any, *, rounding_mode: str | None = None) -> Tensor:
    """a / b, of integers in the default float dtype; or rounded, when integers stay integers."""
def eq(a: Any, b: Any) -> Tensor:
    """a == b."""
def equal(a: Any, b: Any) -> bool:
    """Whether shapes and elements are equal, as a Python bool; NaN never is."""
def erf(x: Any) -> Tensor:
    """The error function 2 / sqrt(pi) times the integral of exp(-t^2) from 0 to x."""
def erfc(x: Any) -> Tensor:
    """1 - erf(x), precise where that is small."""
def erfinv(x: Any) -> Tensor:
    """The y with erf(y) = x; NaN beyond -1 and 1."""
def exp(x: Any) -> Tensor:
    """e to the power x."""
def exp2(x: Any) -> Tensor:
    """2 to the power x."""
def expm1(x: Any) -> Tensor:
    """exp(x) - 1, precise near 0."""
def fix(x: Any) -> Tensor:
    """x without its fraction, rounded towards 0; its derivative is 0 everywhere."""
def floor(x: Any) -> Tensor:
    """The largest integer not above x; its derivative is 0 everywhere."""
def floor_divide(a: Any, b: Any) -> Tensor:
    """The largest integer not above a / b, as Python's //; its derivative is 0 everywhere."""
def fmax(a: Any, b: Any) -> Tensor:
    """The larger of a and b, or the one that is not NaN; a tie shares the gradient."""
def fmin(a: Any, b: Any) -> Tensor:
    """The smaller of a and b, or the one that is not NaN; a tie shares the gradient."""
def fmod(a: Any, b: Any) -> Tensor:
    """The exact remainder a - b trunc(a / b), which has the sign of a."""
def frac(x: Any) -> Tensor:
    """The fraction x - trunc(x), with the sign of x."""
def ge(a: Any, b: Any) -> Tensor:
    """a >= b."""
def greater(a: Any, b: Any) -> Tensor:
    """a > b."""
def greater_equal(a: Any, b: Any) -> Tensor:
    """a >= b."""
def gt(a: Any, b: Any) -> Tensor:
    """a > b."""
def heaviside(a: Any, b: Any) -> Tensor:
    """0 for negative a, b for a = 0, 1 for positive a; no gradient with respect to a."""
def hypot(a: Any, b: Any) -> Tensor:
    """sqrt(a^2 + b^2) without overflow on the way; its gradient at (0, 0) is 0."""
def i0(x: Any) -> Tensor:
    """The modified Bessel function of the first kind of order 0: sum of (x / 2)^2k / k!^2."""
def isclose(a: Any, b: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Tensor:
    """Whether |a - b| <= atol + rtol * |b|, as bool; infinities are close to themselves only."""
def isfinite(x: Any) -> Tensor:
    """Whether x is neither infinite nor NaN; of integers always."""
def isinf(x: Any) -> Tensor:
    """Whether x is inf or -inf; of integers never."""
def isnan(x: Any) -> Tensor:
    """Whether x is NaN; of integers never."""
def isneginf(x: Any) -> Tensor:
    """Whether x is -inf."""
def isposinf(x: Any) -> Tensor:
    """Whether x is inf."""
def le(a: Any, b: Any) -> Tensor:
    """a <= b."""
def lerp(a: Any, b: Any, weight: Any) -> Tensor:
    """a + weight * (b - a): exactly a at weight 0 and b at weight 1, a number or a tensor."""
def less(a: Any, b: Any) -> Tensor:
    """a < b."""
def less_equal(a: Any, b: Any) -> Tensor:
    """a <= b."""
def lgamma(x: Any) -> Tensor:
    """The logarithm of |gamma(x)|, the integral of t^(x - 1) exp(-t) from 0 to infinity."""
def log(x: Any) -> Tensor:
    """The natural logarithm; NaN below 0."""
def log10(x: Any) -> Tensor:
    """The logarithm to base 10; NaN below 0."""
def log1p(x: Any) -> Tensor:
    """log(1 + x), precise near 0."""
def log2(x: Any) -> Tensor:
    """The logarithm to base 2; NaN below 0."""
def logaddexp(a: Any, b: Any) -> Tensor:
    """log(exp(a) + exp(b)) without overflow; the gradient of two -inf is 0."""
def logaddexp2(a: Any, b: Any) -> Tensor:
    """log2(2^a + 2^b) without overflow; the gradient of two -inf is 0."""
def logical_and(a: Any, b: Any) -> Tensor:
    """Whether a and b both differ from 0, as bool."""
def logical_not(x: Any) -> Tensor:
    """x == 0, as bool."""
def logical_or(a: Any, b: Any) -> Tensor:
    """Whether a or b differs from 0, as bool."""
def logical_xor(a: Any, b: Any) -> Tensor:
    """Whether exactly one of a and b differs from 0, as bool."""
def logit(x: Any, eps: float | None = None) -> Tensor:
    """log(x / (1 - x)), the inverse of the sigmoid; with ``eps``, of x clamped to [eps, 1 - eps]."""
def lt(a: Any, b: Any) -> Tensor:
    """a < b."""
def maximum(a: Any, b: Any) -> Tensor:
    """The larger of a and b; a tie shares the gradient, NaN wins."""
def minimum(a: Any, b: Any) -> Tensor:
    """The smaller of a and b; a tie shares the gradient, NaN wins."""
def mul(a: Any, b: Any) -> Tensor:
    """a * b."""
def multiply(a: Any, b: Any) -> Tensor:
    """a * b."""
def nan_to_num(x: Any, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None) -> Tensor:
    """x with numbers in place of NaN, inf and -inf: 0, and the largest and lowest of the dtype."""
def ne(a: Any, b: Any) -> Tensor:
    """a != b."""
def neg(x: Any) -> Tensor:
    """-x."""
def negative(x: Any) -> Tensor:
    """-x."""
def nextafter(a: Any, b: Any) -> Tensor:
    """The next number after a towards b; its derivatives are 1 and 0, and both 0 where a = b."""
def not_equal(a: Any, b: Any) -> Tensor:
    """a != b."""
def polygamma(n: Any, x: Any) -> Tensor:
    """The n-th derivative of the digamma function, n = 0, 1, 2, ...; or ``x.polygamma(n)``."""
def positive(x: Any) -> Tensor:
    """x itself. Raises TypeError for bool."""
def pow(a: Any, b: Any) -> Tensor:
    """a to the power b; of int64, b >= 0."""
def rad2deg(x: Any) -> Tensor:
    """x radians in degrees, 180 x / pi."""
def reciprocal(x: Any) -> Tensor:
    """1 / x."""
def relu(x: Any) -> Tensor:
    """max(x, 0); its derivative at 0 is 0, and NaN passes."""
def remainder(a: Any, b: Any) -> Tensor:
    """The exact remainder a - b floor(a / b), which has the sign of b, as Python's %."""
def round(x: Any, *, decimals: int = 0) -> Tensor:
    """The nearest multiple of 10^-decimals, halves to the even one; its derivative is 0 everywhere."""
def rsqrt(x: Any) -> Tensor:
    """1 / sqrt(x)."""
def rsub(a: Any, b: Any, *, alpha: float = 1) -> Tensor:
    """b - alpha * a, broadcast together: :func:`minigrad.sub` with the operands exchanged."""
def scale(a: Any, b: Any) -> Tensor:
    """a * b, and 0 where a is 0 whatever b is: how a gradient meets a partial derivative."""
def sgn(x: Any) -> Tensor:
    """-1, 0 or 1; its derivative is 0 everywhere."""
def sigmoid(x: Any) -> Tensor:
    """1 / (1 + exp(-x))."""
def sign(x: Any) -> Tensor:
    """-1, 0 or 1; its derivative is 0 everywhere."""
def signbit(x: Any) -> Tensor:
    """Whether the sign bit is set, also of -0.0; of integers x < 0."""
def sin(x: Any) -> Tensor:
    """The sine of x radians."""
def sinc(x: Any) -> Tensor:
    """sin(pi x) / (pi x), and 1 at 0."""
def sinh(x: Any) -> Tensor:
    """The hyperbolic sine, (exp(x) - exp(-x)) / 2."""
def sqrt(x: Any) -> Tensor:
    """The square root; NaN below 0."""
def square(x: Any) -> Tensor:
    """x * x."""
def sub(a: Any, b: Any, *older: Any, alpha: float = 1) -> Tensor:
    """a - alpha * b, broadcast together. TypeError for bools: use logical_xor."""
def subtract(a: Any, b: Any, *older: Any, alpha: float = 1) -> Tensor:
    """a - alpha * b, broadcast together. TypeError for bools: use logical_xor."""
def tan(x: Any) -> Tensor:
    """The tangent of x radians."""
def tanh(x: Any) -> Tensor:
    """The hyperbolic tangent, sinh(x) / cosh(x)."""
def true_divide(a: Any, b: Any) -> Tensor:
    """a / b; integers give the default float dtype."""
def trunc(x: Any) -> Tensor:
    """x without its fraction, rounded towards 0; its derivative is 0 everywhere."""
def xlogy(a: Any, b: Any) -> Tensor:
    """a log(b), and 0 where a is 0 unless b is NaN."""
