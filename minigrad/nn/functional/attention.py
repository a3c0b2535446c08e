"""The function ``scaled_dot_product_attention``."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from minigrad.functions.arguments import broadcast_shape, tensor_operand
from minigrad.nn.functional.regularization import dropout
from minigrad.nn.functional.spatial import require_floats
from minigrad.ops.attention import ATTENTION, ATTENTION_BY_MASK, attention_weights
from minigrad.ops.saved_values import SavedValues
from minigrad.runtime.batched import BatchedOperandError
from minigrad.runtime.dtypes import bool_
from minigrad.tape.apply import apply
from minigrad.tape.grad_mode import mode
from minigrad.tape.tensor_base import parent_of, wrap

if TYPE_CHECKING:
    from minigrad._tensor import Tensor

__all__ = ["scaled_dot_product_attention"]

_OP = "scaled_dot_product_attention"


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """``softmax(query @ key.mT * scale + attn_mask) @ value`` (Vaswani et al. 2017).

    ``query`` has shape (..., L, E), ``key`` (..., S, E), ``value`` (..., S, V), and the result
    (..., L, V). Leading dimensions are broadcast. ``scale`` is 1 / sqrt(E) unless given.

    ``attn_mask`` is broadcast to (..., L, S). A float mask is added to the scores. A bool mask is
    True for the keys that a query sees. With ``is_causal`` query i sees only keys 0 to i of these.
    A query that sees no key gets zeros, with zero gradients.

    A weight is dropped with probability ``dropout_p``. With ``enable_gqa`` key and value may have
    fewer heads, dimension -3. Each of their heads then serves several neighbouring heads of the
    query.

    Raises ValueError if shapes do not fit, TypeError unless the dtype is a float.

    >>> import minigrad as mg
    >>> q, k, v = mg.zeros(2, 1), mg.zeros(2, 1), mg.tensor([[2.0], [4.0]])
    >>> scaled_dot_product_attention(q, k, v, is_causal=True).tolist()
    [[2.0], [3.0]]
    """
    q, k, v = [_operand(name, x) for name, x in (("query", query), ("key", key), ("value", value))]
    if enable_gqa:
        k, v = _repeated(q, k, "key"), _repeated(q, v, "value")
    if q.shape[-1] != k.shape[-1] or k.shape[-2] != v.shape[-2]:
        raise ValueError(
            f"[{_OP}] query {q.shape}, key {k.shape} and value {v.shape} do not fit: the last "
            "sizes of query and key agree, and the sizes before those of key and value"
        )
    if scale is None:
        scale = 1.0 / math.sqrt(q.shape[-1]) if q.shape[-1] else 1.0
    mask = None if attn_mask is None else _mask(attn_mask, q, k)
    if dropout_p or not (q._h.size and k._h.size and v._h.size):
        return dropout(attention_weights(q, k, mask, is_causal, scale), dropout_p) @ v
    try:
        edge = None if mask is None else parent_of(mask)
    except BatchedOperandError:  # vmap cuts the mask
        return _by_operations(q, k, v, mask, is_causal, scale)
    args = (SavedValues(mask, edge, wrap), bool(is_causal), float(scale))
    if mask is None or not mask.requires_grad or not mode.enabled:
        return apply(ATTENTION, (q, k, v), args)
    try:
        return apply(ATTENTION_BY_MASK, (q, k, v, mask), args)
    except BatchedOperandError:
        return _by_operations(q, k, v, mask, is_causal, scale)


def _by_operations(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, causal: bool, scale: float
) -> Tensor:
    weights: Tensor = attention_weights(q, k, mask, causal, scale)
    return weights @ v


def _operand(name: str, x: Any) -> Tensor:
    x = require_floats(_OP, tensor_operand(_OP, x))
    if x.ndim < 2:
        raise ValueError(f"[{_OP}] {name} has shape {x.shape}, but needs two dimensions or more")
    return x


def _repeated(q: Tensor, x: Tensor, name: str) -> Tensor:
    """The heads of x, dimension -3, repeated to the number of q's heads."""
    heads, own = (t.shape[-3] if t.ndim > 2 else 0 for t in (q, x))
    if not own or heads % own:
        raise ValueError(
            f"[{_OP}] with enable_gqa the heads of {name} {x.shape}, dimension -3, must divide "
            f"those of query {q.shape}"
        )
    *lead, _, length, width = x.shape
    wide = x.unsqueeze(-3).expand(*lead, own, heads // own, length, width)
    return wide.reshape(*lead, heads, length, width)


def _mask(attn_mask: Any, q: Tensor, k: Tensor) -> Tensor:
    """Check that the mask broadcasts to the scores."""
    mask: Tensor = tensor_operand(_OP, attn_mask)
    lead = broadcast_shape(_OP, q.shape[:-2], k.shape[:-2])
    scores = (*lead, q.shape[-2], k.shape[-2])
    near = zip(reversed(mask.shape), reversed(scores), strict=False)
    if mask.ndim > len(scores) or any(m not in (1, n) for m, n in near):
        raise ValueError(
            f"[{_OP}] attn_mask has shape {mask.shape}, but must broadcast to that of the "
            f"scores, {scores}"
        )
    mask = mask if mask.dtype is bool_ else require_floats(_OP, mask)
    return mask.reshape((1,) * (2 - mask.ndim) + mask.shape) if mask.ndim < 2 else mask
