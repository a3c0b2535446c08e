"""References of reductions, scans, sorting, counting and statistics."""

from __future__ import annotations

import math

import numpy as np

from expected.base import axes, each, log_softmax, per_line, softmax


def _over(f):
    return lambda x, dim=None, keepdim=False: f(x, axis=axes(dim), keepdims=keepdim)


def _logsumexp(x, axis, keepdims):
    return np.log(np.exp(x).sum(axis=axis, keepdims=keepdims))


def _var(x, dim=None, keepdim=False, unbiased=True):
    return np.var(x, axis=axes(dim), keepdims=keepdim, ddof=int(unbiased))


def _with_mean(spread):
    def reference(x, dim=None, keepdim=False, unbiased=True):
        mean = np.mean(x, axis=axes(dim), keepdims=keepdim)
        return spread(x, dim, keepdim, unbiased), mean

    return reference


def _std(*args, **kwargs):
    return np.sqrt(_var(*args, **kwargs))


def _norm(x, p=2, dim=None, keepdim=False):
    p = 2 if p in ("fro", None) else p
    size, how = np.abs(x), {"axis": axes(dim), "keepdims": keepdim}
    if math.isinf(p):
        return size.max(**how) if p > 0 else size.min(**how)
    return (size**p).sum(**how) ** (1 / p)


def _found(value, place):
    """Values and indices along a dimension, or one value for all elements."""

    def reference(x, dim=None, keepdim=False):
        if dim is None:
            return value(x.ravel())
        return per_line(value)(x, dim, keepdim), per_line(place)(x, dim, keepdim)

    return reference


def _lower_middle(x):
    return np.argsort(x)[(len(x) - 1) // 2]


def _running(choose, place):
    def reference(x, dim):
        indices = np.apply_along_axis(lambda v: [place(v[: k + 1]) for k in range(len(v))], dim, x)
        return choose.accumulate(x, axis=dim), indices

    return reference


def _sort(x, dim=-1, descending=False):
    order = np.argsort(-x if descending else x, axis=dim)
    return np.take_along_axis(x, order, dim), order


def _topk(x, k, dim=-1, largest=True):
    values, order = _sort(x, dim, largest)
    first = [slice(None)] * x.ndim
    first[dim] = slice(k)
    return values[tuple(first)], order[tuple(first)]


def _kthvalue(x, k, dim=-1, keepdim=False):
    return (
        per_line(lambda v: np.sort(v)[k - 1])(x, dim, keepdim),
        per_line(lambda v: np.argsort(v)[k - 1])(x, dim, keepdim),
    )


def _searchsorted(rows, values, right=False, side="left", sorter=None):
    side = "right" if right else side
    if rows.ndim == 1:
        return np.searchsorted(rows, values, side, sorter)
    return np.array([np.searchsorted(r, v, side) for r, v in zip(rows, values, strict=True)])


def _quantile(x, q, dim=None, keepdim=False, interpolation="linear"):
    return np.quantile(x, q, axis=dim, keepdims=keepdim, method=interpolation)


def _trapezoid(y, x=None, dx=1, dim=-1):
    return np.moveaxis(_areas(y, x, dx, dim), 0, -1).sum(-1)


def _areas(y, x, dx, dim):
    y = np.moveaxis(y, dim, 0)
    step = np.full(len(y) - 1, dx) if x is None else x[1:] - x[:-1]
    return (y[1:] + y[:-1]) / 2 * step.reshape(-1, *[1] * (y.ndim - 1))


def _cumulative_trapezoid(y, x=None, dx=1, dim=-1):
    return np.moveaxis(np.cumsum(_areas(y, x, dx, dim), 0), 0, dim)


def _gradient(x, spacing=1, dim=None, edge_order=1):
    at = [spacing] if np.isscalar(spacing) else list(spacing)
    found = np.gradient(x, *at, axis=dim, edge_order=edge_order)
    return list(found) if isinstance(found, (list, tuple)) else [found]


def _cov(x, correction=1, fweights=None, aweights=None):
    return np.cov(x, ddof=correction, fweights=fweights, aweights=aweights)


def _renorm(x, p, dim, maxnorm):
    y = np.moveaxis(x, dim, 0)
    norms = (np.abs(y) ** p).reshape(len(y), -1).sum(1) ** (1 / p)
    factor = np.where(norms > maxnorm, maxnorm / (norms + 1e-7), 1)
    return np.moveaxis(y * factor.reshape(-1, *[1] * (y.ndim - 1)), 0, dim)


def _unique(x, return_inverse=False, return_counts=False, dim=None):
    found = np.unique(x, return_inverse=True, return_counts=True, axis=dim)
    inverse = found[1].reshape(x.shape if dim is None else (x.shape[dim],))
    return [found[0], *[inverse] * return_inverse, *[found[2]] * return_counts]


def _unique_consecutive(x, return_inverse=False, return_counts=False, dim=None):
    lines = x.ravel() if dim is None else np.moveaxis(x, dim, 0)
    new = [True, *[bool((a != b).any()) for a, b in zip(lines[1:], lines[:-1], strict=True)]]
    inverse = np.cumsum(new) - 1
    kept = lines[new] if dim is None else np.moveaxis(lines[new], 0, dim)
    shape = x.shape if dim is None else (-1,)
    more = [inverse.reshape(shape)] * return_inverse, [np.bincount(inverse)] * return_counts
    return [kept, *more[0], *more[1]]


def _histogram(x, bins, ends, weight=None, density=False):
    counts, edges = np.histogram(x, bins, ends, weights=weight, density=density)
    return counts.astype(x.dtype), edges


def _mode(v):
    values, counts = np.unique(v, return_counts=True)
    return values[counts.argmax()]


REDUCTIONS = {
    "sum": _over(np.sum),
    "mean": _over(np.mean),
    "prod": _over(np.prod),
    "amax": _over(np.max),
    "amin": _over(np.min),
    "nansum": _over(np.nansum),
    "nanmean": _over(np.nanmean),
    "logsumexp": _over(_logsumexp),
    "var": _var,
    "std": _std,
    "var_mean": _with_mean(_var),
    "std_mean": _with_mean(_std),
    "all": _over(np.all),
    "any": _over(np.any),
    "count_nonzero": _over(np.count_nonzero),
    "argmax": per_line(np.argmax),
    "argmin": per_line(np.argmin),
    "max": _found(np.max, np.argmax),
    "min": _found(np.min, np.argmin),
    "aminmax": lambda x, dim=None, keepdim=False: [
        f(x, axis=dim, keepdims=keepdim) for f in (np.min, np.max)
    ],
    **each("median nanmedian", _found(np.median, _lower_middle)),
    **each("norm linalg.vector_norm", _norm),
    "dist": lambda a, b, p=2: _norm(a - b, p),
    "trace": np.trace,
    "cumsum": lambda x, dim: np.cumsum(x, dim),
    "cumprod": lambda x, dim: np.cumprod(x, dim),
    "logcumsumexp": lambda x, dim: np.log(np.cumsum(np.exp(x), dim)),
    "softmax": softmax,
    "log_softmax": log_softmax,
    "softmin": lambda x, dim: softmax(-x, dim),
    "cummax": _running(np.maximum, np.argmax),
    "cummin": _running(np.minimum, np.argmin),
    "diff": lambda x, n=1, dim=-1, **ends: np.diff(x, n, dim, **ends),
    "sort": _sort,
    "argsort": lambda x, dim=-1, descending=False: _sort(x, dim, descending)[1],
    "topk": _topk,
    "kthvalue": _kthvalue,
    "searchsorted": _searchsorted,
    "bucketize": lambda x, at, right=False: np.searchsorted(at, x, "right" if right else "left"),
    **each("quantile nanquantile", _quantile),
    "mode": lambda x, dim=-1, keepdim=False: [
        per_line(_mode)(x, dim, keepdim),
        per_line(lambda v: np.flatnonzero(v == _mode(v))[-1])(x, dim, keepdim),
    ],
    "gradient": _gradient,
    **each("trapezoid trapz", _trapezoid),
    "cumulative_trapezoid": _cumulative_trapezoid,
    "vander": np.vander,
    "cov": _cov,
    "corrcoef": np.corrcoef,
    "renorm": _renorm,
    "histogram": lambda x, bins, **rest: _histogram(x, bins, rest.pop("range"), **rest),
    "histc": lambda x, bins, low, high: _histogram(x, bins, (low, high))[0],
    "isin": np.isin,
    "bincount": lambda x, w=None, minlength=0: np.bincount(x, w, minlength),
    "unique": _unique,
    "unique_consecutive": _unique_consecutive,
}
