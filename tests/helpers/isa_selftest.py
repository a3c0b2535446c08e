"""A compact numerical self-test, which test_isa.py runs in a process per instruction set.

It checks results against NumPy. It prints digests of elementwise results, which are compared
between runs.
"""

from __future__ import annotations

import hashlib
import json

import numpy as np
import oracle

import minigrad as mg
from minigrad.functions.row_functions import binary, unary
from minigrad.ops import TABLE
from minigrad.runtime import native

rng = np.random.default_rng(0)


def digest(values):
    """A digest of the bits. All NaN count as equal."""
    return hashlib.sha256(np.where(np.isnan(values), 7, values).tobytes()).hexdigest()


def elementwise(dtype):
    """Check every elementwise operation on numbers of all sizes, and return digests."""
    bits, top = (np.uint32, 2**31) if dtype is np.float32 else (np.uint64, 2**63)
    digests = {}
    for row in [row for row in TABLE.values() if row.family == "pointwise"]:
        count = 30 if hasattr(oracle.POINTWISE[row.name], "is_slow") else 3000
        inputs = [
            np.concatenate(
                [
                    rng.integers(0, top, count).astype(bits).view(dtype),
                    rng.uniform(-20, 20, count + 1).astype(dtype),
                    np.array([0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 2], dtype),
                ]
            )
            for _ in range(row.arity)
        ]
        function = unary(row) if row.arity == 1 else binary(row)
        got = function(*[mg.from_numpy(x) for x in inputs]).numpy()
        oracle.assert_pointwise(row, got, *inputs)
        digests[f"{row.name} {got.dtype}"] = digest(got)
    return digests


def close(got, want, ulps, size=1.0):
    """True within so many ULP of terms whose absolute values add up to ``size``."""
    tolerance = ulps * np.finfo(got.detach().numpy().dtype).eps
    np.testing.assert_allclose(got.detach().numpy(), want, rtol=tolerance, atol=tolerance * size)


def arrays(dtype):
    """Check products, reductions, softmax, indexing and a gradient."""
    a, b = rng.normal(size=(67, 129)).astype(dtype), rng.normal(size=(129, 45)).astype(dtype)
    x, y = mg.tensor(a), mg.tensor(b)
    p, q = a.astype(np.float64), b.astype(np.float64)
    size = (np.abs(p) @ np.abs(q)).max()
    close(x @ y, p @ q, 4, size)
    close(y.T @ x.T, q.T @ p.T, 4, size)
    close(x @ y[:, 0], p @ q[:, 0], 4, size)
    close(x[0] @ y, p[0] @ q, 4, size)
    for axis in (0, 1):
        e = np.exp(p)
        close(x.softmax(axis), e / e.sum(axis, keepdims=True), 16)
        close(x.log_softmax(axis), p - np.log(e.sum(axis, keepdims=True)), 16)
    for axis in (None, 0, 1):
        close(x.sum(axis), p.sum(axis), 4, np.abs(p).sum(axis).max())
        close(x.mean(axis), p.mean(axis), 4)
        close(x.amax(axis), p.max(axis), 0)
        close(x.amin(axis), p.min(axis), 0)
        close(x.var(axis), p.var(axis, ddof=1), 16)
        close(x.logsumexp(axis), np.log(np.exp(p).sum(axis)), 16)
        np.testing.assert_array_equal(x.argmax(axis).numpy(), a.argmax(axis))
    index = rng.integers(0, 67, 300)
    oracle.assert_same(x[index].numpy(), a[index])
    oracle.assert_same(mg.cat([x, x.flip(0)], 1).numpy(), np.concatenate([a, a[::-1]], 1))
    leaf = mg.tensor(a, requires_grad=True)
    mg.tanh(leaf @ y).sum().backward()
    slope = 1 - np.tanh(p @ q) ** 2
    close(leaf.grad, slope @ q.T, 16, (slope @ np.abs(q.T)).max() + size)


if __name__ == "__main__":
    found = {}
    with np.errstate(all="ignore"):
        for kind in (np.float32, np.float64):
            found |= elementwise(kind)
            arrays(kind)
    print(json.dumps({"isa": native.isa, "digests": found}))
