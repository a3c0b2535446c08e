"""Losses whose whole value is one row: what is worth more than composing it from others."""

from __future__ import annotations

from typing import Any

from minigrad._c import Handle, call, ffi, lib
from minigrad.ops.indexing import SCATTER_ADD
from minigrad.ops.pointwise import NEG
from minigrad.ops.table import linear

T = Any  # a Tensor; this layer stands below it


def _mean_nll(x: Handle, rows: Handle, target: Handle) -> Handle:
    picked = call(lib.mg_gather, x, 2, ffi.new("mg_array *[]", (rows, target)))
    mean = call(lib.mg_reduce, lib.MG_MEAN, picked, 1, (0,), False)
    return call(lib.mg_unary, NEG.id, mean)


def _mean_nll_transpose(g: T, shape: tuple[int, ...], rows: Handle, target: Handle) -> T:
    share = (g * (-1.0 / max(shape[0], 1))).expand((shape[0],))
    return share.apply_row(SCATTER_ADD, shape, (rows, target))


MEAN_NLL = linear(
    "mean_nll",
    _mean_nll,
    _mean_nll_transpose,
    doc="-mean(x[i, target[i]]) over the rows of a matrix of log-probabilities",
)
