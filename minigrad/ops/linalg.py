"""Rows of inverses, determinants and factorisations: values from C or LAPACK, formulas as VJPs.

The LAPACK is NumPy's, and only :func:`through_numpy` calls it. All rows take stacks of matrices. A
row packs the several results of a factorisation into one array, one above the other. The derivative
unpacks them with tensor operations, so it is an ordinary formula.

The formulas come from Giles, unless another source is named: "An extended collection of matrix
derivative results for forward and reverse mode algorithmic differentiation" (2008).
"""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite
from typing import Any

import numpy as np

from minigrad.ops.table import Row, custom
from minigrad.runtime.native import Array, call, ffi, kernels, lib
from minigrad.runtime.recorders import give_up

T = Any  # a Tensor, whose class this layer may not import
NumpyArray = np.ndarray[Any, Any]

# ---- the door to LAPACK --------------------------------------------------------------------------


def _array(handle: Array) -> NumpyArray:
    """A NumPy array on the memory of a contiguous float64 C array. The caller keeps the C array."""
    memory = ffi.buffer(ffi.cast("char *", handle.data), 8 * handle.size)
    made: NumpyArray = np.ndarray(handle.shape, np.float64, memory)
    return made


_MOST_LINES = 2**24


def through_numpy(name: str, function: Callable[..., NumpyArray], *handles: Array) -> Array:
    """Call a function of NumPy arrays on C arrays. All uses of NumPy's LAPACK go through here.

    The function computes in float64, as NumPy's linear algebra always does. The result is a new C
    array with the dtype of the first handle. A LinAlgError of NumPy is raised again with the
    operation's name.
    """
    for h in handles:
        if not h.size and max(h.shape) > _MOST_LINES:
            raise MemoryError(
                f"[{name}] shape {h.shape} has no element, but LAPACK would take its lines one by "
                f"one: it may have {_MOST_LINES}"
            )
    give_up(name, "is computed by NumPy's LAPACK")
    wide = [call(kernels.cast, h, lib.MG_FLOAT64) for h in handles]
    try:
        made = function(*[_array(h) for h in wide])
    except np.linalg.LinAlgError as error:
        raise np.linalg.LinAlgError(f"[{name}] {error}") from None
    result = call(kernels.empty, lib.MG_FLOAT64, made.shape)
    _array(result)[...] = made
    dtype = handles[0].dtype
    return result if dtype == lib.MG_FLOAT64 else call(kernels.cast, result, dtype)


def where_finite(function: Callable[..., NumpyArray]) -> Callable[..., NumpyArray]:
    """Wrap a function of a stack of matrices: matrices with NaN or infinity give NaN.

    LAPACK may fail to converge on such matrices. It gets an identity matrix instead.
    """

    def guarded(a: NumpyArray, *others: NumpyArray) -> NumpyArray:
        # the sum of squares is quick to compute, but may overflow
        if isfinite(np.vdot(a, a)) or np.isfinite(a).all():
            return function(a, *others)
        finite = np.asarray(np.isfinite(a).all((-2, -1)))
        stand_in = np.eye(*a.shape[-2:])
        made = np.asarray(function(np.where(finite[..., None, None], a, stand_in), *others))
        made[~finite] = np.nan
        return made

    return guarded


# ---- inverses and systems ------------------------------------------------------------------------

INV = custom(
    "inv",
    kernels.inv,
    lambda g, y: -(y.mT @ g @ y.mT),
    jvp=[lambda t, y: -(y @ t @ y)],
    doc="the inverse",
)


def _solve_by_both(g: T, a: T, y: T) -> tuple[T, T]:
    by_b = _solve_by_b(g, a)
    return -(by_b @ y.mT), by_b


def _solve_by_b(g: T, a: T) -> T:
    return a.mT.apply_row(SOLVE, beside=(g,))


SOLVE: Row = custom(
    "solve",
    kernels.solve,
    lambda g, a, y: _solve_by_both(g, a, y)[0],
    _solve_by_b,
    joint=_solve_by_both,
    jvp=(
        lambda t, a, y: -a.apply_row(SOLVE, beside=(t @ y,)),
        lambda t, a: a.apply_row(SOLVE, beside=(t,)),
    ),
    doc="X with A @ X = B, for stacks of matrices of one batch shape",
)


def _triangular_by_both(g: T, a: T, y: T, upper: bool, unit: bool) -> tuple[T, T]:
    by_b = _triangular_by_b(g, a, upper, unit)
    return _read(-(by_b @ y.mT), upper, unit), by_b


def _triangular_by_b(g: T, a: T, upper: bool, unit: bool) -> T:
    return _substituted(a.mT, g, not upper, unit)


def _read(a: T, upper: bool, unit: bool) -> T:
    """The triangle that is read."""
    return a.triu(int(unit)) if upper else a.tril(-int(unit))


def _substituted(a: T, b: T, upper: bool, unit: bool) -> T:
    return a.apply_row(SOLVE_TRIANGULAR, upper, unit, beside=(b,))


SOLVE_TRIANGULAR: Row = custom(
    "solve_triangular",
    kernels.solve_triangular,
    lambda g, a, y, upper, unit: _triangular_by_both(g, a, y, upper, unit)[0],
    _triangular_by_b,
    joint=_triangular_by_both,
    jvp=(
        lambda t, a, y, upper, unit: -_substituted(a, _read(t, upper, unit) @ y, upper, unit),
        lambda t, a, upper, unit: _substituted(a, t, upper, unit),
    ),
    doc="X with A @ X = B, for one triangle of A, whose diagonal may count as ones",
)


def _cholesky_vjp(g: T, y: T) -> T:
    """Murray, "Differentiation of the Cholesky decomposition" (2016), equation 10, symmetric."""
    inner = y.mT @ g.tril()
    inner = 0.5 * (inner.tril() + inner.tril(-1))
    # L^-T inner L^-1: each inverse is a substitution in the upper triangle L^T
    half = y.mT.apply_row(SOLVE_TRIANGULAR, True, False, beside=(inner,))
    whole = y.mT.apply_row(SOLVE_TRIANGULAR, True, False, beside=(half.mT,))
    return 0.5 * (whole + whole.mT)


CHOLESKY = custom(
    "cholesky",
    kernels.cholesky,
    _cholesky_vjp,
    doc="lower triangular L with L @ L^T = A, of which the lower triangle is read",
)


@np.errstate(all="ignore")
def _pinv(a: NumpyArray, rtol: Any, atol: Any) -> NumpyArray:
    u, s, vt = np.linalg.svd(a, full_matrices=False)
    cutoff = np.maximum(atol, rtol * s.max(-1, keepdims=True, initial=0))
    inverse = np.divide(1, s, where=s > cutoff, out=np.zeros_like(s))
    return np.asarray((vt.swapaxes(-1, -2) * inverse[..., None, :]) @ u.swapaxes(-1, -2))


def _pinv_vjp(g: T, x: T, y: T) -> T:
    """With P = pinv(A): - P^T G P^T + (I - A P) G^T P P^T + P^T P G^T (I - P A).

    The formula holds for constant rank: Golub and Pereyra, "The differentiation of pseudo-inverses
    and nonlinear least squares problems whose variables separate" (1973).
    """
    # The residual is multiplied first, since P^T P times P may overflow where P^T P does not.
    gt = g.mT
    left = ((gt - x @ (y @ gt)) @ y) @ y.mT
    right = y.mT @ (y @ (gt - (gt @ y) @ x))
    return left + right - y.mT @ g @ y.mT


PINV = custom(
    "pinv",
    lambda a, rtol, atol: through_numpy("pinv", where_finite(lambda a: _pinv(a, rtol, atol)), a),
    lambda g, x, y, rtol, atol: _pinv_vjp(g, x, y),
    doc="the pseudoinverse; singular values up to max(atol, rtol * largest) count as 0",
)

# ---- determinants --------------------------------------------------------------------------------


def _cofactors(x: T) -> T:
    """The cofactors, the derivative of det. Up to size 3 they are exact products of elements."""
    n = x.shape[-1]
    if n == 0:
        return x
    if n == 1:
        return x**0
    if n == 2:
        return x.flip((-2, -1)) * np.array([[1, -1], [-1, 1]])
    if n == 3:
        # rows and columns shifted cyclically, by one and by two
        turned = {(i, j): x.roll((-i, -j), (-2, -1)) for i in (1, 2) for j in (1, 2)}
        return turned[1, 1] * turned[2, 2] - turned[1, 2] * turned[2, 1]
    return x.apply_row(COFACTORS)


DET = custom(
    "det",
    lambda a: call(kernels.det, a, False),
    lambda g, x: g.unsqueeze(-1).unsqueeze(-1) * _cofactors(x),
    jvp=[lambda t, x: (t * _cofactors(x)).sum((-2, -1))],
    doc="the determinant; its derivative never divides",
)


def _frame(a: NumpyArray) -> tuple[NumpyArray, NumpyArray, NumpyArray]:
    """U, s, V^T with U diag(s) V^T = A and det U det V = 1. The last entry of s may be negative."""
    u, s, vt = np.linalg.svd(a)
    sign = np.asarray(np.sign(np.linalg.det(u) * np.linalg.det(vt)))
    u[..., -1:] *= sign[..., None, None]
    s[..., -1:] *= sign[..., None]
    return u, s, vt


def _others(s: NumpyArray) -> NumpyArray:
    """For each element along the last axis, the product of all other elements."""
    size = np.abs(s[s != 0])
    # partial products may overflow
    if size.size and s.shape[-1] * np.abs(np.log2(size)).max() > 1000:
        return _others_apart(s)
    one = np.ones_like(s[..., :1])
    before = np.concatenate([one, s[..., :-1]], -1).cumprod(-1)
    after = np.concatenate([one, s[..., :0:-1]], -1).cumprod(-1)
    return np.asarray(before * after[..., ::-1])


def _others_apart(s: NumpyArray) -> NumpyArray:
    """:func:`_others` from fractions near 1, with the exponents kept separate."""
    parts, powers = np.frexp(s)

    def before(part: NumpyArray, power: NumpyArray) -> tuple[NumpyArray, NumpyArray]:
        made, ends = np.ones_like(part), np.zeros(part.shape, np.int64)
        for i in range(1, part.shape[-1]):
            made[..., i], more = np.frexp(made[..., i - 1] * part[..., i - 1])
            ends[..., i] = ends[..., i - 1] + power[..., i - 1] + more
        return made, ends

    left, left_power = before(parts, powers)
    right, right_power = before(parts[..., ::-1], powers[..., ::-1])
    power = np.clip(left_power + right_power[..., ::-1], -5000, 5000).astype(np.int32)
    return np.asarray(np.ldexp(left * right[..., ::-1], power))


@np.errstate(all="ignore")
def _cofactors_by_svd(a: NumpyArray) -> NumpyArray:
    """The cofactors by singular values: in the basis of the singular vectors they are diagonal."""
    u, s, vt = _frame(a)
    return np.asarray((u * _others(s)[..., None, :]) @ vt)


@np.errstate(all="ignore")
def _cofactors_derivative(a: NumpyArray, h: NumpyArray) -> NumpyArray:
    """The derivative of the cofactors in direction h. This linear map is its own transpose.

    Let K = U^T h V, and q_ij the product of all singular values except i and j. In the basis of the
    singular vectors the derivative is -q_ij K_ji off the diagonal. On the diagonal it is the sum
    over j of q_ij K_jj.
    """
    u, s, vt = _frame(a)
    ut, v = u.swapaxes(-1, -2), vt.swapaxes(-1, -2)
    k = ut @ h @ v
    same = np.eye(s.shape[-1], dtype=bool)
    q = np.where(same, 0, _others(np.where(same, 1, s[..., None, :])))
    trace = np.diagonal(k, axis1=-2, axis2=-1)
    derivative = -q * k.swapaxes(-1, -2)
    diagonal = np.arange(s.shape[-1])
    derivative[..., diagonal, diagonal] = (q @ trace[..., None])[..., 0]
    return np.asarray(u @ derivative @ vt)


def _derivative_by_a(g: T, a: T, b: T) -> T:
    """The sum over i, j of (-1)^(i + j) b_ij times the derivative of minor ij with respect to A.

    Every cofactor is the determinant of a minor. This third derivative of det therefore needs the
    second derivative of n^2 minors of size n - 1. The result is right for singular matrices too.
    """
    n = a.shape[-1]
    rows = np.stack([np.delete(np.eye(n, dtype=a.dtype.name), i, 0) for i in range(n)])[:, None]
    columns = rows.swapaxes(0, 1).swapaxes(-1, -2)

    def minors(x: T) -> T:
        return rows @ x.unsqueeze(-3).unsqueeze(-3) @ columns  # without row i and column j

    derivative = minors(a).apply_row(COFACTORS_DERIVATIVE, beside=(minors(g),))
    signs = np.where(np.indices((n, n)).sum(0) % 2, -1, 1)
    weighted = (b * signs).unsqueeze(-1).unsqueeze(-1) * derivative
    return (rows.swapaxes(-1, -2) @ weighted @ columns.swapaxes(-1, -2)).sum((-4, -3))


COFACTORS_DERIVATIVE: Row = custom(
    "cofactors_derivative",
    lambda a, b: through_numpy("det", where_finite(_cofactors_derivative), a, b),
    _derivative_by_a,
    lambda g, a: a.apply_row(COFACTORS_DERIVATIVE, beside=(g,)),
    doc="the derivative of the cofactors of A in direction B",
)
COFACTORS = custom(
    "cofactors",
    lambda a: through_numpy("det", where_finite(_cofactors_by_svd), a),
    lambda g, x: x.apply_row(COFACTORS_DERIVATIVE, beside=(g,)),
    doc="the signed minors, which are det(A) inv(A)^T, of singular matrices too",
)


def _slogdet_vjp(g: T, x: T, y: T) -> T:
    """inv(A)^T; for a singular A, cofactors / 0, since the derivative of log at 0 is 1 / 0."""
    regular = (y[..., 0].detach() != 0.0).unsqueeze(-1).unsqueeze(-1)
    stand_in = np.eye(x.shape[-1], dtype=x.dtype.name)
    partial = x.where(regular, stand_in).apply_row(INV).mT
    if not regular.all():
        det = x.apply_row(DET).unsqueeze(-1).unsqueeze(-1)
        partial = partial.where(regular, _cofactors(x) / det)
    return g[..., 1].unsqueeze(-1).unsqueeze(-1).scale(partial)


SLOGDET = custom(
    "slogdet",
    lambda a: call(kernels.det, a, True),
    _slogdet_vjp,
    doc="the sign of the determinant and the logarithm of its magnitude, side by side",
)
