"""Samples of products and linear algebra."""

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
    """Well conditioned square matrices."""
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
    """Samples of one well conditioned matrix and of several."""
    return S(f, (3, 3), matrix=near_identity, **rest), S(f, (2, 2, 2), matrix=near_identity, **rest)


PRODUCTS = {
    "matmul": (
        S(mg.matmul, (2, 3), (3, 2)),
        S(mg.matmul, (3,), (3,)),
        S(mg.matmul, (2, 1, 2, 3), (3, 3, 1)),
        S(mg.matmul, (3,), (2, 3, 2)),
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
        S(mg.baddbmm, (2, 2, 2), (2, 2, 3), (2, 3, 2)),
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
    **each("logdet slogdet inverse linalg.inv pinverse linalg.cond", square),
    "det": (
        *square(mg.det),
        S(mg.det, (4, 4)),
        S(mg.det, (1, 1)),
        S(mg.det, (2, 3), before=lambda x: x.mT @ x),
    ),
    "matrix_exp": (S(mg.matrix_exp, (3, 3)), S(mg.matrix_exp, (2, 2, 2), over=(-0.02, 0.02))),
    "matrix_power": tuple(
        S(lambda x, n=n: mg.matrix_power(x, n), (3, 3), matrix=near_identity) for n in (0, 1, 3, -2)
    ),
    "cholesky": (
        S(mg.cholesky, (3, 3), before=positive),
        S(lambda x: mg.cholesky(x, upper=True), (2, 2, 2), before=positive),
        Z(mg.cholesky, (3, 3), matrix=definite),
    ),
    "cholesky_inverse": (
        S(mg.cholesky_inverse, (3, 3), matrix=near_identity),
        S(lambda x: mg.cholesky_inverse(x, upper=True), (2, 2, 2), matrix=near_identity),
    ),
    "cholesky_solve": (
        S(mg.cholesky_solve, (3, 2), (3, 3), matrix=near_identity),
        S(lambda b, x: mg.cholesky_solve(b, x, True), (2, 2, 1), (2, 2), matrix=near_identity),
    ),
    "linalg.solve": (
        S(mg.linalg.solve, (2, 2), (2, 2, 1), matrix=near_identity),
        S(mg.linalg.solve, (2, 3, 3), (2, 3), matrix=near_identity),
        S(lambda a, b: mg.linalg.solve(a, b, left=False), (2, 2), (3, 2), matrix=near_identity),
    ),
    "linalg.solve_triangular": tuple(
        S(
            lambda a, b, options=options: mg.linalg.solve_triangular(a, b, **options),
            *shapes,
            matrix=near_identity,
        )
        for shapes, options in (
            (((3, 3), (3, 2)), {"upper": True}),
            (((2, 2), (3, 2)), {"upper": False, "left": False}),
            (((2, 2), (2, 2, 1)), {"upper": True, "unitriangular": True}),
        )
    ),
    "linalg.qr": (
        S(mg.linalg.qr, (4, 2), independent=True),
        S(mg.linalg.qr, (2, 3), independent=True),
        S(lambda x: mg.linalg.qr(x, "r")[1], (3, 2), independent=True),
    ),
    "linalg.svd": (
        S(lambda x: mg.linalg.svd(x, full_matrices=False), (3, 2), after=mg.abs),
        S(lambda x: mg.linalg.svd(x, full_matrices=False), (2, 2, 3), after=mg.abs),
        Z(mg.linalg.svd, (3, 2)),
    ),
    "linalg.svdvals": (S(mg.linalg.svdvals, (3, 2)), S(mg.linalg.svdvals, (2, 2, 3))),
    "linalg.eigh": (
        S(mg.linalg.eigh, (3, 3), before=symmetric, after=mg.abs),
        Z(lambda x: mg.linalg.eigh(x, "U"), (3, 3), matrix=definite),
    ),
    "linalg.eigvalsh": (
        S(mg.linalg.eigvalsh, (3, 3), before=symmetric),
        Z(mg.linalg.eigvalsh, (2, 2, 2)),
    ),
    "linalg.pinv": (
        S(mg.linalg.pinv, (3, 2)),
        S(lambda x: mg.linalg.pinv(x, hermitian=True), (2, 2), before=positive),
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
    "linalg.tensorinv": (
        S(lambda x: mg.linalg.tensorinv(x.reshape(2, 2, 4)), (4, 4), matrix=near_identity),
    ),
    "linalg.tensorsolve": (
        S(
            lambda a, b: mg.linalg.tensorsolve(a.reshape(2, 2, 4), b),
            (4, 4),
            (2, 2),
            matrix=near_identity,
        ),
    ),
}
