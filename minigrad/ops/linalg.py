"""Inverses, determinants and factorisations: values from C or LAPACK, derivatives as formulas.

LAPACK is NumPy's, and only :func:`through_numpy` calls it. All rows take stacks of matrices. A
factorisation has several results, which a row packs into one array, one above the other. Its
derivative unpacks them, so it is an ordinary formula.

Unless another source is named, the formulas are those of Giles, "An extended collection of matrix
derivative results for forward and reverse mode algorithmic differentiation" (2008).
"""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite
from typing import Any

import numpy as np

from minigrad.ops.table import Row, custom
from minigrad.runtime.native import Array, call, ffi, kernels, lib

T = Any  # a Tensor; this layer stands below it
NumpyArray = np.ndarray[Any, Any]

# ---- the door to LAPACK --------------------------------------------------------------------------


def _array(handle: Array) -> NumpyArray:
    """A NumPy array on the memory of a contiguous C array of float64 that the caller holds."""
    memory = ffi.buffer(ffi.cast("char *", handle.data), 8 * handle.size)
    made: NumpyArray = np.ndarray(handle.shape, np.float64, memory)
    return made


_MOST_LINES = 2**24


def through_numpy(name: str, function: Callable[..., NumpyArray], *handles: Array) -> Array:
    """``function`` of NumPy arrays, on C arrays: the one door to NumPy's LAPACK.

    It computes in float64, as NumPy's linear algebra does in any case; the result is a C array of
    its own in the first one's dtype. NumPy's LinAlgError is raised again in the operation's name.
    """
    for h in handles:
        if not h.size and max(h.shape) > _MOST_LINES:
            raise MemoryError(
                f"[{name}] shape {h.shape} has no element, but LAPACK would take its lines one by "
                f"one: it may have {_MOST_LINES}"
            )
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
    """The function of a stack of matrices, with NaN for those that hold a NaN or an infinity.

    LAPACK may fail to converge on them; it sees an identity instead.
    """

    def guarded(a: NumpyArray, *others: NumpyArray) -> NumpyArray:
        # the sum of squares is quickly found, and may overflow
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
    # L^-T inner L^-1, each inverse a substitution in the upper triangle L^T
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

    For constant rank: Golub and Pereyra, "The differentiation of pseudo-inverses and nonlinear
    least squares problems whose variables separate" (1973).
    """
    # A residual comes first: P^T P times P may leave the range where P^T P does not.
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
    """The derivative of det: by products of elements up to size 3, where it is exact."""
    n = x.shape[-1]
    if n == 0:
        return x
    if n == 1:
        return x**0
    if n == 2:
        return x.flip((-2, -1)) * np.array([[1, -1], [-1, 1]])
    if n == 3:
        # rows and columns counted on cyclically, by one and by two
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
    """U, s, V^T with U diag(s) V^T = A and det U det V = 1: the last of s may be negative."""
    u, s, vt = np.linalg.svd(a)
    sign = np.asarray(np.sign(np.linalg.det(u) * np.linalg.det(vt)))
    u[..., -1:] *= sign[..., None, None]
    s[..., -1:] *= sign[..., None]
    return u, s, vt


def _others(s: NumpyArray) -> NumpyArray:
    """For each element along the last axis, the product of all others."""
    size = np.abs(s[s != 0])
    if size.size and s.shape[-1] * np.abs(np.log2(size)).max() > 1000:  # parts may leave the range
        return _others_apart(s)
    one = np.ones_like(s[..., :1])
    before = np.concatenate([one, s[..., :-1]], -1).cumprod(-1)
    after = np.concatenate([one, s[..., :0:-1]], -1).cumprod(-1)
    return np.asarray(before * after[..., ::-1])


def _others_apart(s: NumpyArray) -> NumpyArray:
    """The same from parts near 1, with their exponents apart."""
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
    """In the frame of the singular vectors the matrix is diagonal, and so are its cofactors."""
    u, s, vt = _frame(a)
    return np.asarray((u * _others(s)[..., None, :]) @ vt)


@np.errstate(all="ignore")
def _cofactors_derivative(a: NumpyArray, h: NumpyArray) -> NumpyArray:
    """The derivative of the cofactors in direction h, which is its own transpose.

    In the frame of the singular vectors, with K = U^T h V and q_ij the product of all singular
    values but two: -q_ij K_ji off the diagonal, and the sum over j of q_ij K_jj on it.
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
    """The sum over i, j of (-1)^(i + j) b_ij times the derivative of minor ij, in its place in A.

    Every cofactor is the determinant of a minor, so this third derivative of det needs the second
    one of the minors, n^2 matrices of size n - 1. It is right for singular matrices too.
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
    """inv(A)^T, and cofactors / 0 where A is singular: log has the derivative 1 / 0 at 0."""
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
