"""Samples of reductions, scans and sorting."""

from __future__ import annotations

from typing import Any

import numpy as np

import minigrad as mg
from samples.base import (
    NEGATIVE,
    POSITIVE,
    Interval,
    S,
    Sample,
    Z,
    constant,
    each,
    ints,
)


def reduction(f: Any, over: Interval = (-2, 2), smooth: bool = True) -> tuple[Sample, ...]:
    """Samples over all dimensions, along one and along two."""
    return (
        S(f, (2, 3, 2), over=over, smooth=smooth),
        S(lambda x: f(x, dim=1), (2, 3, 2), over=over, smooth=smooth),
        S(lambda x: f(x, dim=(0, -1), keepdim=True), (3, 2, 2), over=over, smooth=smooth),
    )


def indexed(f: Any, smooth: bool = True) -> tuple[Sample, ...]:
    """Samples over all dimensions and along one, with indices."""
    return (
        S(f, (2, 3), smooth=smooth),
        S(lambda x: f(x, dim=0), (3, 4), smooth=smooth),
        S(lambda x: f(x, dim=-2, keepdim=True), (2, 3, 2), smooth=smooth),
    )


REDUCTIONS = {
    **each("sum mean prod amax amin logsumexp nansum nanmean var std", reduction),
    **each("aminmax max min median nanmedian", indexed),
    **each("var_mean std_mean", reduction),
    **each(
        "norm linalg.vector_norm",
        lambda f: (
            *reduction(f, POSITIVE),
            *[
                S(lambda x, p=p: f(x, p), (2, 3), over=NEGATIVE)
                for p in (1, 3, 0.5, np.inf, -np.inf)
            ],
            S(lambda x: f(x, 3, dim=-1), (2, 3), over=NEGATIVE),
        ),
    ),
    "dist": (
        S(mg.dist, (2, 3), (2, 3)),
        S(lambda a, b: mg.dist(a, b, 3), (2, 3), (3,)),
    ),
    **each("all any", lambda f: (*reduction(f, smooth=False), Z(lambda x: f(x > 0, 1), (3, 4)))),
    "count_nonzero": reduction(lambda x, **k: mg.count_nonzero(x > 0, **k), smooth=False),
    **each("argmax argmin", lambda f: indexed(f, smooth=False)),
    "trace": (S(mg.trace, (3, 4)),),
    **each(
        "cumsum cumprod logcumsumexp softmax log_softmax softmin",
        lambda f: (
            S(lambda x: f(x, dim=0), (3, 4)),
            S(lambda x: f(x, dim=1), (2, 4, 1)),
        ),
    ),
    **each(
        "cummax cummin",
        lambda f: (
            S(lambda x: f(x, dim=0), (3, 4)),
            S(lambda x: f(x, dim=-1), (2, 5)),
        ),
    ),
    "diff": (
        S(mg.diff, (2, 5)),
        S(lambda x: mg.diff(x, n=2, dim=0), (4, 2)),
        S(lambda x, a, b: mg.diff(x, dim=0, prepend=a, append=b), (3, 2), (1, 2), (2, 2)),
    ),
    **each(
        "sort argsort",
        lambda f: (
            S(f, (2, 5), smooth=f is mg.sort),
            S(lambda x: f(x, dim=0, descending=True), (4, 2), smooth=f is mg.sort),
        ),
    ),
    "topk": (
        S(lambda x: mg.topk(x, 2), (2, 5)),
        S(lambda x: mg.topk(x, 3, dim=0, largest=False), (4, 2)),
    ),
    "kthvalue": (
        S(lambda x: mg.kthvalue(x, 2), (2, 5)),
        S(lambda x: mg.kthvalue(x, 3, dim=0, keepdim=True), (4, 2)),
    ),
    "searchsorted": (Z(lambda a, v: mg.searchsorted(mg.sort(a).values, v), (2, 5), (2, 3)),),
    "bucketize": (Z(lambda v: mg.bucketize(v, [-1.0, 0.0, 1.0], right=True), (2, 3)),),
    **each(
        "quantile nanquantile",
        lambda f: (
            S(lambda x: f(x, 0.3), (2, 4)),
            S(lambda x: f(x, constant([0.1, 0.8], x.dtype), dim=1, keepdim=True), (2, 5)),
            S(lambda x: f(x, 0.4, dim=0, interpolation="nearest"), (4, 2)),
            S(lambda x: f(x, 0.5, dim=0, interpolation="midpoint"), (4, 2)),
        ),
    ),
    "mode": (
        S(mg.mode, (2, 5)),
        S(lambda x: mg.mode(x, 0, keepdim=True), (3, 2)),
    ),
    "gradient": (
        S(mg.gradient, (3, 4)),
        S(lambda x: mg.gradient(x, spacing=0.5, dim=1, edge_order=2), (2, 4)),
        S(lambda x, c: mg.gradient(x, spacing=[c], dim=0, edge_order=2), (5, 2), (5,)),
    ),
    **each(
        "trapezoid trapz cumulative_trapezoid",
        lambda f: (
            S(f, (2, 4)),
            S(lambda x: f(x, dx=0.5, dim=0), (3, 2)),
            S(lambda x, c: f(x, c, dim=0), (3, 2), (3,)),
        ),
    ),
    "vander": (S(mg.vander, (3,)), S(lambda x: mg.vander(x, 4, increasing=True), (2,))),
    "cov": (
        S(mg.cov, (3, 4)),
        S(lambda x: mg.cov(x, correction=0, fweights=ints(1, 2, 1)), (2, 3)),
        S(lambda x, w: mg.cov(x, aweights=w), (2, 3), (3,), over=((-2, 2), POSITIVE)),
    ),
    "corrcoef": (S(mg.corrcoef, (2, 5)),),
    "renorm": (S(lambda x: mg.renorm(x, 2, 0, 1.0), (3, 2, 2)),),
    "histogram": (Z(lambda x: mg.histogram(x, 4, range=(-1, 1)), (3, 4)),),
    "isin": (Z(lambda x: mg.isin(x, x[0]), (2, 3)),),
    "bincount": (S(lambda w: mg.bincount(ints(0, 2, 2, 1, 0), w, minlength=5), (5,)),),
    "histc": (Z(lambda x: mg.histc(x, 4, -1, 1), (3, 4)),),
    **each(
        "unique unique_consecutive",
        lambda f: (
            Z(lambda x: f((2 * x).long(), return_inverse=True, return_counts=True), (3, 4)),
            Z(lambda x: f(x > 0, dim=1), (2, 4)),
        ),
    ),
}
