"""Scaled dot-product attention."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf
from typing import Any

from minigrad.ops.pointwise import GE
from minigrad.ops.saved_values import SavedValues
from minigrad.ops.table import custom, zero
from minigrad.runtime.native import Array, call, kernels, lib

T = Any  # a Tensor; this layer stands below it


def _causal(scores: Array) -> Array:
    rows, columns = (
        call(kernels.arange, lib.MG_INT64, 0.0, 0.0, 0, 1, n) for n in scores.shape[-2:]
    )
    return call(GE.id, call(kernels.reshape, rows, (-1, 1)), columns)


CAUSAL = zero("causal", 1, "whether query i sees key j: i >= j", forward=_causal)


def attention_weights(q: T, k: T, mask: T | None, causal: bool, scale: float) -> T:
    """How much each query takes of each value, (..., L, S): rows add up to 1, or are 0."""
    scores = (q * scale) @ k.mT
    if mask is None and not causal:
        return scores.softmax(-1)
    if mask is not None:
        scores = scores.where(mask, -inf) if mask._h.dtype == lib.MG_BOOL else scores + mask
    if causal:
        scores = scores.where(scores.apply_row(CAUSAL), -inf)
    seen = (scores != -inf).any(-1, True)
    return scores.where(seen, 0.0).softmax(-1).where(seen, 0.0)


def _forward(q: Array, k: Array, v: Array, saved: SavedValues, causal: bool, scale: float) -> Array:
    mask = saved.take()
    y, statistics = call(kernels.attention, q, k, v, mask, scale, causal)
    saved.save(mask, y, statistics)
    return y


def _vjp(by_mask: bool) -> Callable[..., Sequence[Array]]:
    return lambda g, q, k, v, saved, causal, scale: call(
        kernels.attention_vjp, g, q, k, v, *saved.handles(ATTENTION.name), scale, causal, by_mask
    )


def _by_scores(
    g: T, queries: T, keys: T, values: T, saved: SavedValues, causal: bool, scale: float
) -> T:
    """As softmax's, with the gradient g v^T of the weights; it is that of an added mask."""
    w = attention_weights(queries, keys, saved.operand(ATTENTION.name), causal, scale)
    by_weights = g @ values.mT
    return (by_weights - by_weights.scale(w).sum((-1,), True)).scale(w)


def _pushed(
    tangents: tuple[T | None, ...],
    queries: T,
    keys: T,
    values: T,
    saved: SavedValues,
    causal: bool,
    scale: float,
) -> T:
    """As softmax's, with the tangent of the scores; that of a mask comes last."""
    q, k, v, *mask = tangents
    w = attention_weights(queries, keys, saved.operand(ATTENTION.name), causal, scale)
    parts = [
        None if q is None else (q * scale) @ keys.mT,
        None if k is None else (queries * scale) @ k.mT,
        *mask,
    ]
    scores = [part for part in parts if part is not None]
    made = [] if v is None else [w @ v]
    if scores:
        by_scores = sum(scores[1:], scores[0])
        spread = w.scale(by_scores)
        made.append((spread - w.scale(spread.sum((-1,), True))) @ values)
    return sum(made[1:], made[0])


def _by_query(
    g: T, queries: T, keys: T, values: T, saved: SavedValues, causal: bool, scale: float
) -> T:
    return (_by_scores(g, queries, keys, values, saved, causal, scale) * scale) @ keys


def _by_key(
    g: T, queries: T, keys: T, values: T, saved: SavedValues, causal: bool, scale: float
) -> T:
    return (_by_scores(g, queries, keys, values, saved, causal, scale) * scale).mT @ queries


def _by_value(
    g: T, queries: T, keys: T, values: T, saved: SavedValues, causal: bool, scale: float
) -> T:
    return attention_weights(queries, keys, saved.operand(ATTENTION.name), causal, scale).mT @ g


ATTENTION = custom(
    "scaled_dot_product_attention",
    _forward,
    _by_query,
    _by_key,
    _by_value,
    together=_vjp(False),
    jvp=_pushed,
    doc="softmax(queries @ keys.mT * scale + mask) @ values, keeping no matrix of weights",
)
ATTENTION_BY_MASK = custom(
    "masked_attention",
    lambda q, k, v, mask, *args: _forward(q, k, v, *args),
    _by_query,
    _by_key,
    _by_value,
    _by_scores,
    together=_vjp(True),
    jvp=_pushed,
    doc="the same for a mask that has a gradient",
)
