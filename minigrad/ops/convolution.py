"""Convolution, its transpose and its gradient of weights, each bilinear.

``sum(y * conv(x, w))`` is linear in x, w and y. Its derivative by y is the convolution, by x its
transpose, and by w the gradient of weights. Each of these three rows has the other two as its
derivatives, to any order.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import chain
from typing import Any, NamedTuple

from minigrad.ops.table import Row, bilinear, custom
from minigrad.runtime.native import call, kernels

T = Any  # a Tensor; this layer stands below it
Sizes = tuple[int, ...]


class Geometry(NamedTuple):
    """Output i takes with tap k of the kernel the input i * stride + k * dilation - before, along
    each of the last axes; beyond the inputs are zeros.
    """

    groups: int
    size: Sizes
    kernel: Sizes
    counts: Sizes
    stride: Sizes
    dilation: Sizes
    before: Sizes


@lru_cache(512)
def _numbers(at: Geometry) -> Sizes:
    """The geometry as kernels take it: see ``op_read_conv`` in csrc."""
    groups, *lists = at
    return (len(at.size), groups, *chain.from_iterable(lists))


def _by_input(g: T, b: T, at: Geometry) -> T:
    return g.apply_row(CONV_SPREAD, at, beside=(b,))


def _by_weight(g: T, a: T, at: Geometry) -> T:
    return g.apply_row(CONV_WEIGHT, at, beside=(a,))


def _by_bias(g: T, at: Geometry) -> T:
    return g.sum((0, *range(2, 2 + len(at.size))))


CONV = bilinear(
    "conv",
    lambda a, b, at: call(kernels.conv_forward, a, b, None, _numbers(at)),
    _by_input,
    _by_weight,
    doc="the convolution of inputs (N, C, ...) with weights (O, C / groups, ...)",
)
CONV_BIAS = custom(
    "conv_bias",
    lambda a, b, bias, at: call(kernels.conv_forward, a, b, bias, _numbers(at)),
    _by_input,
    _by_weight,
    _by_bias,
    jvp=(
        lambda t, b, at: t.apply_row(CONV, at, beside=(b,)),
        lambda t, a, at: a.apply_row(CONV, at, beside=(t,)),
        lambda t, size, at: t.reshape((-1, *(1,) * len(at.size))).expand(size),
    ),
    doc="the convolution plus a bias for each output channel",
)
CONV_SPREAD: Row = bilinear(
    "conv_spread",
    lambda a, b, at: call(kernels.conv_backward_data, a, b, _numbers(at)),
    lambda g, b, at: g.apply_row(CONV, at, beside=(b,)),
    lambda g, a, at: a.apply_row(CONV_WEIGHT, at, beside=(g,)),
    doc="the transpose of conv in its input: of outputs (N, O, ...) and weights",
)
CONV_WEIGHT: Row = bilinear(
    "conv_weight",
    lambda a, b, at: call(kernels.conv_backward_weights, a, b, _numbers(at)),
    lambda g, b, at: b.apply_row(CONV, at, beside=(g,)),
    lambda g, a, at: a.apply_row(CONV_SPREAD, at, beside=(g,)),
    doc="the transpose of conv in its weights: of outputs (N, O, ...) and inputs",
)
