"""Products and linear algebra."""

from __future__ import annotations

from typing import Any

import numpy as np

import minigrad as mg
from samples.base import (
    POSITIVE,
    Array,
    S,
    Sample,
    Z,
    each,
)


def near_identity(x: Array) -> Array:
    """Square matrices, well conditioned."""
    return x + 4 * np.eye(x.shape[-1])


def definite(x: Array) -> Array:
    """Symmetric positive definite matrices."""
    return x @ np.swapaxes(x, -1, -2) + 2 * np.eye(x.shape[-1])


def symmetric(x: Any) -> Any:
    """A tensor of symmetric matrices with distinct eigenvalues."""
    return (x + x.mT) / 2 + mg.diag(2 * mg.arange(x.shape[-1]).to(x.dtype))


def positive(x: Any) -> Any:
    """A tensor of symmetric positive definite matrices."""
    return x @ x.mT + 2 * mg.eye(x.shape[-1], dtype=x.dtype)


def square(f: Any, **rest: Any) -> tuple[Sample, ...]:
    """Of one well conditioned matrix and of several."""
    return S(f, (3, 3), matrix=near_identity, **rest), S(f, (2, 2, 2), matrix=near_identity, **rest)


def signless(f: Any) -> Any:
    """Vectors are found up to their signs."""
    return lambda x: [mg.abs(part) for part in f(x)]


PRODUCTS = {
    **each(
        "matmul",
        lambda f: (
            S(f, (2, 3), (3, 2)),
            S(f, (3,), (3,)),
            S(f, (2, 1, 2, 3), (3, 3, 1)),
            S(f, (3,), (2, 3, 2)),
        ),
    ),
    "mm": (S(mg.mm, (2, 3), (3, 2)),),
    "bmm": (S(mg.bmm, (2, 2, 3), (2, 3, 1)),),
    "mv": (S(mg.mv, (2, 3), (3,)),),
    **each("dot vdot", lambda f: (S(f, (4,), (4,)),)),
    **each("outer ger", lambda f: (S(f, (2,), (3,)),)),
    "inner": (S(mg.inner, (2, 3), (2, 3)), S(mg.inner, (3,), (3,)), S(mg.inner, (), (3,))),
    "addmm": (
        S(mg.addmm, (2,), (2, 3), (3, 2)),
        S(lambda c, a, b: mg.addmm(c, a, b, beta=0.5, alpha=-2), (2, 2), (2, 3), (3, 2)),
    ),
    "addmv": (S(lambda c, a, b: mg.addmv(c, a, b, beta=0.5, alpha=-2), (2,), (2, 3), (3,)),),
    "addr": (S(lambda c, a, b: mg.addr(c, a, b, beta=0.5, alpha=-2), (2, 3), (2,), (3,)),),
    "baddbmm": (
        S(lambda c, a, b: mg.baddbmm(c, a, b, beta=0.5, alpha=-2), (1, 2), (2, 2, 3), (2, 3, 2)),
    ),
    "addbmm": (
        S(lambda c, a, b: mg.addbmm(c, a, b, beta=0.5, alpha=-2), (2, 2), (2, 2, 3), (2, 3, 2)),
    ),
    "kron": (S(mg.kron, (2, 2), (1, 3)), S(mg.kron, (2,), (2, 2))),
    "cross": (S(mg.cross, (2, 3), (2, 3)), S(lambda a, b: mg.cross(a, b, dim=0), (3, 2), (3, 1))),
    "linalg.cross": (S(mg.linalg.cross, (2, 3), (1, 3)),),
    "linalg.vecdot": (
        S(mg.linalg.vecdot, (2, 3), (3,)),
        S(lambda a, b: mg.linalg.vecdot(a, b, dim=0), (3, 2), (3, 2)),
    ),
    "linalg.multi_dot": (S(lambda a, b, c: mg.linalg.multi_dot([a, b, c]), (3,), (3, 2), (2, 3)),),
    "cdist": (
        S(mg.cdist, (2, 3), (4, 3)),
        *[S(lambda a, b, p=p: mg.cdist(a, b, p), (2, 2, 2), (3, 2)) for p in (1, 3, np.inf)],
    ),
    "einsum": (
        S(lambda a, b: mg.einsum("ij,kj->ki", a, b), (2, 3), (2, 3)),
        S(lambda a: mg.einsum("iij->j", a), (3, 3, 2)),
        S(lambda a, b, c: mg.einsum("...i,ij,j->...", a, b, c), (2, 2), (2, 3), (3,)),
        S(lambda a, b: mg.einsum("i,j", a, b), (2,), (3,)),
    ),
    "tensordot": (
        S(mg.tensordot, (2, 2, 3), (2, 3, 1)),
        S(lambda a, b: mg.tensordot(a, b, ([0, 2], [1, 0])), (2, 1, 3), (3, 2)),
    ),
}

LINALG = {
    **each(
        "det logdet slogdet inverse linalg.inv matrix_exp linalg.pinv pinverse linalg.qr", square
    ),
    **each("linalg.svdvals linalg.cond linalg.eigvalsh", square),
    "det": (*square(mg.det), S(mg.det, (1, 1)), S(lambda x: mg.det(x.mT @ x), (2, 3))),
    "matrix_exp": (S(mg.matrix_exp, (3, 3)), S(lambda x: mg.matrix_exp(0.01 * x), (2, 2, 2))),
    "matrix_power": tuple(
        S(lambda x, n=n: mg.matrix_power(x, n), (3, 3), matrix=near_identity) for n in (0, 1, 3, -2)
    ),
    "cholesky": (
        S(lambda x: mg.cholesky(positive(x)), (3, 3)),
        S(lambda x: mg.cholesky(positive(x), upper=True), (2, 2, 2)),
        Z(mg.cholesky, (3, 3), matrix=definite),
    ),
    "cholesky_inverse": (
        S(lambda x: mg.cholesky_inverse(mg.tril(x)), (3, 3), matrix=near_identity),
    ),
    "cholesky_solve": (
        S(lambda b, x: mg.cholesky_solve(b, mg.tril(x)), (2, 2), (2, 2), over=[(-2, 2), POSITIVE]),
    ),
    "linalg.solve": (
        S(lambda a, b: mg.linalg.solve(near(a), b), (2, 2), (2, 2, 1)),
        S(lambda a, b: mg.linalg.solve(near(a), b), (2, 3, 3), (2, 3)),
        S(lambda a, b: mg.linalg.solve(near(a), b, left=False), (2, 2), (3, 2)),
    ),
    "linalg.solve_triangular": (
        S(lambda a, b: mg.linalg.solve_triangular(near(a), b, upper=True), (3, 3), (3, 2)),
        S(
            lambda a, b: mg.linalg.solve_triangular(near(a), b, upper=False, left=False),
            (2, 2),
            (3, 2),
        ),
        S(
            lambda a, b: mg.linalg.solve_triangular(a, b, upper=True, unitriangular=True),
            (2, 2),
            (2, 2, 1),
        ),
    ),
    "linalg.qr": (
        S(mg.linalg.qr, (4, 2)),
        S(mg.linalg.qr, (2, 3)),
        S(lambda x: mg.linalg.qr(x, "r")[1], (3, 2)),
    ),
    "linalg.svd": (
        S(signless(lambda x: mg.linalg.svd(x, full_matrices=False)), (3, 2)),
        S(signless(lambda x: mg.linalg.svd(x, full_matrices=False)), (2, 2, 3)),
        Z(mg.linalg.svd, (3, 2)),
    ),
    "linalg.svdvals": (S(mg.linalg.svdvals, (3, 2)), S(mg.linalg.svdvals, (2, 2, 3))),
    "linalg.eigh": (
        S(signless(lambda x: mg.linalg.eigh(symmetric(x))), (3, 3)),
        Z(lambda x: mg.linalg.eigh(x, "U"), (3, 3), matrix=definite),
    ),
    "linalg.eigvalsh": (
        S(lambda x: mg.linalg.eigvalsh(symmetric(x)), (3, 3)),
        Z(mg.linalg.eigvalsh, (2, 2, 2)),
    ),
    "linalg.pinv": (
        S(mg.linalg.pinv, (3, 2)),
        S(lambda x: mg.linalg.pinv(positive(x), hermitian=True), (2, 2)),
    ),
    "linalg.lstsq": (S(lambda a, b: mg.linalg.lstsq(a, b)[:2], (4, 2), (4, 2)),),
    "linalg.matrix_norm": tuple(
        S(lambda x, p=p: mg.linalg.matrix_norm(x, p), (2, 3, 2))
        for p in ("fro", "nuc", 2, -2, 1, -1, np.inf, -np.inf)
    ),
    "linalg.norm": (
        S(mg.linalg.norm, (2, 3)),
        S(lambda x: mg.linalg.norm(x, 2), (2, 3)),
        S(lambda x: mg.linalg.norm(x, 3, dim=0, keepdim=True), (2, 3), over=POSITIVE),
    ),
    "linalg.matrix_rank": (Z(mg.linalg.matrix_rank, (2, 3, 2)),),
    "linalg.tensorinv": (S(lambda x: mg.linalg.tensorinv(near(x).reshape(2, 2, 4), 2), (4, 4)),),
    "linalg.tensorsolve": (
        S(lambda a, b: mg.linalg.tensorsolve(near(a).reshape(2, 2, 4), b), (4, 4), (2, 2)),
    ),
}


def near(x: Any) -> Any:
    """A tensor of well conditioned square matrices."""
    return x + 4 * mg.eye(x.shape[-1], dtype=x.dtype)
