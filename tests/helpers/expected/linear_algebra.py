"""References of products and linear algebra."""

from __future__ import annotations

import functools
import math

import numpy as np
from scipy import linalg

from expected.base import Given, each


def _addbmm(c, a, b, beta=1, alpha=1):
    return beta * c + alpha * (a @ b).sum(0)


def _added(c, a, b, beta=1, alpha=1):
    return beta * c + alpha * (a @ b)


def _distance(d, p):
    size = np.abs(d)
    return size.max(-1) if math.isinf(p) else (size**p).sum(-1) ** (1 / p)


def _cdist(a, b, p=2.0):
    return _distance(a[..., :, None, :] - b[..., None, :, :], p)


def _tensordot(a, b, dims=2):
    return np.tensordot(a, b, dims)


def _lower(x, upper):
    return np.swapaxes(x, -1, -2) if upper else x


def _cholesky(x, upper=False):
    return _lower(np.linalg.cholesky(x), upper)


def _read(x, upper):
    """The triangle that is read of a factor, as a lower triangle."""
    return _lower(np.triu(x) if upper else np.tril(x), upper)


def _cholesky_inverse(x, upper=False):
    factor = _read(x, upper)
    return np.linalg.inv(factor @ np.swapaxes(factor, -1, -2))


def _cholesky_solve(b, x, upper=False):
    factor = _read(x, upper)
    return np.linalg.solve(factor @ np.swapaxes(factor, -1, -2), b)


def _solve(a, b, left=True):
    if not left:
        return b @ np.linalg.inv(a)
    vectors = b.ndim == a.ndim - 1
    return np.linalg.solve(a, b[..., None])[..., 0] if vectors else np.linalg.solve(a, b)


def _solve_triangular(a, b, upper, left=True, unitriangular=False):
    a = np.triu(a) if upper else np.tril(a)
    if unitriangular:
        a = a - a * np.eye(a.shape[-1]) + np.eye(a.shape[-1])
    return _solve(a, b, left)


def _power(x, n):
    x = x if n >= 0 else np.linalg.inv(x)
    return functools.reduce(np.matmul, [x] * abs(n), np.broadcast_to(np.eye(x.shape[-1]), x.shape))


def _matrix_norm(x, p="fro", dim=(-2, -1), keepdim=False):
    y = _norm_of_last(np.moveaxis(x, dim, (-2, -1)), p)
    return np.expand_dims(y, dim) if keepdim else y


def _norm_of_last(x, p):
    values = np.linalg.svd(x, compute_uv=False)
    of = {
        "fro": lambda: np.sqrt((values**2).sum(-1)),
        "nuc": lambda: values.sum(-1),
        2: lambda: values.max(-1),
        -2: lambda: values.min(-1),
        1: lambda: abs(x).sum(-2).max(-1),
        -1: lambda: abs(x).sum(-2).min(-1),
        math.inf: lambda: abs(x).sum(-1).max(-1),
        -math.inf: lambda: abs(x).sum(-1).min(-1),
    }
    return of[p]()


def _norm(x, p=None, dim=None, keepdim=False):
    if p is None:
        return np.sqrt((x**2).sum())
    if dim is None:
        return _matrix_norm(x, p)
    return (abs(x) ** p).sum(dim, keepdims=keepdim) ** (1 / p)


def _signed(got, want, axis):
    """The expected vectors along an axis, with the signs of the results."""
    return want * np.sign((got * want).sum(axis, keepdims=True))


def _svd(results, x, full_matrices=True):
    u, s, vh = np.linalg.svd(x, full_matrices=full_matrices)
    return _signed(results[0], u, -2), s, _signed(results[2], vh, -1)


def _eigh(results, x, uplo="L"):
    values, vectors = np.linalg.eigh(x, uplo)
    return values, _signed(results[1], vectors, -2)


def _qr(results, x, mode="reduced"):
    q, r = np.linalg.qr(x)
    if mode == "r":
        return np.zeros(0), _signed(results[1], r, -1)
    return _signed(results[0], q, -2), _signed(results[1], r, -1)


def _slogdet(x):
    d = np.linalg.det(x)
    return np.sign(d), np.log(abs(d))


def _pinv(x, rcond=None, atol=0.0, rtol=None, hermitian=False):
    """The pseudoinverse by singular values. Values up to a bound count as 0."""
    u, s, vt = np.linalg.svd(x, full_matrices=False)
    share = rcond if rtol is None else rtol
    share = 1e-14 if share is None and not atol else share or 0.0
    kept = s > np.maximum(atol, share * s[..., :1])
    inverse = np.where(kept, 1 / np.where(kept, s, 1), 0)
    return np.swapaxes(vt, -1, -2) * inverse[..., None, :] @ np.swapaxes(u, -1, -2)


def _matrix_rank(x, atol=0.0, rtol=None, hermitian=False):
    s = np.linalg.svd(x, compute_uv=False)
    share = 1e-14 if rtol is None and not atol else rtol or 0.0
    return (s > np.maximum(atol, share * s[..., :1])).sum(-1)


def _lstsq(a, b):
    x, residuals, rank, values = np.linalg.lstsq(a, b, rcond=None)
    return x, residuals, np.array(rank), values


PRODUCTS = {
    "matmul": np.matmul,
    **each("mm bmm mv", np.matmul),
    **each("dot vdot", np.dot),
    **each("outer ger", np.outer),
    "inner": np.inner,
    **each("addmm addmv baddbmm", _added),
    "addr": lambda c, a, b, beta=1, alpha=1: beta * c + alpha * np.outer(a, b),
    "addbmm": _addbmm,
    "kron": np.kron,
    "cross": lambda a, b, dim=-1: np.cross(*np.broadcast_arrays(a, b), axis=dim),
    "linalg.cross": lambda a, b, dim=-1: np.cross(*np.broadcast_arrays(a, b), axis=dim),
    "linalg.vecdot": lambda a, b, dim=-1: (a * b).sum(dim),
    "linalg.multi_dot": lambda xs: functools.reduce(np.matmul, xs),
    "cdist": _cdist,
    "einsum": np.einsum,
    "tensordot": _tensordot,
}

LINALG = {
    **each("inverse linalg.inv", np.linalg.inv),
    **each("pinverse linalg.pinv", _pinv),
    "linalg.cond": np.linalg.cond,
    "det": np.linalg.det,
    "logdet": lambda x: np.log(np.linalg.det(x)),
    "slogdet": _slogdet,
    "matrix_exp": linalg.expm,
    "matrix_power": _power,
    "cholesky": _cholesky,
    "cholesky_inverse": _cholesky_inverse,
    "cholesky_solve": _cholesky_solve,
    "linalg.solve": _solve,
    "linalg.solve_triangular": _solve_triangular,
    "linalg.qr": Given(_qr),
    "linalg.svd": Given(_svd),
    "linalg.svdvals": lambda x: np.linalg.svd(x, compute_uv=False),
    "linalg.eigh": Given(_eigh),
    "linalg.eigvalsh": np.linalg.eigvalsh,
    "linalg.lstsq": _lstsq,
    "linalg.matrix_norm": _matrix_norm,
    "linalg.norm": _norm,
    "linalg.matrix_rank": _matrix_rank,
    "linalg.tensorinv": lambda x, ind=2: np.linalg.tensorinv(x, ind),
    "linalg.tensorsolve": lambda a, b, dims=None: np.linalg.tensorsolve(a, b, dims),
}
