"""Attention layers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from minigrad.functions.arguments import integer
from minigrad.functions.creation import zeros
from minigrad.functions.shaping import cat
from minigrad.nn import functional as F  # noqa: N812 - its usual name
from minigrad.nn.layers import Linear, uniform_parameter
from minigrad.nn.module import Module, Parameter
from minigrad.ops.attention import attention_weights
from minigrad.random import randn
from minigrad.runtime.devices import on_cpu
from minigrad.runtime.dtypes import DType, as_dtype, bool_

if TYPE_CHECKING:
    from minigrad._tensor import Tensor

__all__ = ["MultiheadAttention"]

_OP = "MultiheadAttention"


class NonDynamicallyQuantizableLinear(Linear):
    """The last linear layer of attention, under PyTorch's name."""


class MultiheadAttention(Module):
    """Multi-head attention (Vaswani et al. 2017).

    ``embed_dim`` is split into ``num_heads`` parts. Each part attends separately, and a linear
    layer mixes the results.

    A call takes query (L, N, E), key (S, N, kdim) and value (S, N, vdim). The batch N comes first
    if ``batch_first`` is set, and may be left out. ``kdim`` and ``vdim`` are embed_dim unless
    given. The projections are the rows of one ``in_proj_weight`` (3 * E, E), or three weights if
    the sizes differ. As in PyTorch, weights start with Glorot's uniform distribution (Glorot and
    Bengio 2010), biases with zeros. ``add_bias_kv`` adds a learned key and value to each sequence,
    ``add_zero_attn`` a key and value of zeros.

    Raises ValueError if the heads do not divide embed_dim.

    >>> import minigrad as mg
    >>> layer = mg.nn.MultiheadAttention(8, 2, batch_first=True)
    >>> x = mg.ones(4, 5, 8)
    >>> y, weights = layer(x, x, x)
    >>> y.shape, weights.shape
    ((4, 5, 8), (4, 5, 5))
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        on_cpu(device)
        width = self.embed_dim = integer(_OP, "embed_dim", embed_dim, 1)
        self.num_heads = integer(_OP, "num_heads", num_heads, 1)
        if embed_dim % num_heads:
            raise ValueError(f"[{_OP}] num_heads={num_heads} does not divide embed_dim={embed_dim}")
        self.kdim = width if kdim is None else integer(_OP, "kdim", kdim, 1)
        self.vdim = width if vdim is None else integer(_OP, "vdim", vdim, 1)
        self.dropout = dropout
        self.batch_first = batch_first
        kind = as_dtype(dtype)
        self.in_proj_weight = self.q_proj_weight = self.k_proj_weight = self.v_proj_weight = None
        if self.kdim == self.vdim == width:
            self.in_proj_weight = _glorot(3 * width, width, kind)
        else:
            self.q_proj_weight = _glorot(width, width, kind)
            self.k_proj_weight = _glorot(width, self.kdim, kind)
            self.v_proj_weight = _glorot(width, self.vdim, kind)
        self.in_proj_bias = Parameter(zeros(3 * width, dtype=kind)) if bias else None
        self.out_proj = NonDynamicallyQuantizableLinear(width, width, bias, dtype=kind)
        if bias:
            self.out_proj.bias = Parameter(zeros(width, dtype=kind))
        self.bias_k = self.bias_v = None
        if add_bias_kv:  # Glorot's normal distribution, with the fans of shape (1, 1, width)
            deviation = math.sqrt(2.0 / (2 * width))
            self.bias_k = Parameter(randn(1, 1, width, dtype=kind) * deviation)
            self.bias_v = Parameter(randn(1, 1, width, dtype=kind) * deviation)
        self.add_zero_attn = add_zero_attn

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """The result in the query's shape, and the attention weights.

        The weights have shape (N, L, S), or (N, heads, L, S) unless they are averaged. They are
        None unless ``need_weights`` is set.

        A bool mask is true for the keys that a query must ignore. This is as in PyTorch, and the
        opposite of scaled_dot_product_attention. Float masks are added. ``key_padding_mask`` has
        shape (N, S), ``attn_mask`` (L, S) or (N * heads, L, S). ``is_causal`` says that attn_mask,
        which is then required, is the causal mask. A query that ignores all keys gets zeros.
        """
        if is_causal and attn_mask is None:
            raise ValueError(f"[{_OP}] is_causal describes attn_mask, which is needed")
        batched = query.ndim == 3
        if self.batch_first or not batched:
            q, k, v = (x if batched else x.unsqueeze(0) for x in (query, key, value))
        else:
            q, k, v = (x.transpose(0, 1) for x in (query, key, value))
        if key_padding_mask is not None and not batched:
            key_padding_mask = key_padding_mask.unsqueeze(0)
        q, k, v = self._projected(q, k, v)
        if self.bias_k is not None:
            k, v = _longer(k, self.bias_k), _longer(v, self.bias_v)
        if self.add_zero_attn:
            none = zeros(1, 1, self.embed_dim, dtype=k.dtype)
            k, v = _longer(k, none), _longer(v, none)
        q, k, v = self._heads(q), self._heads(k), self._heads(v)
        # added keys are never masked
        added = int(self.bias_k is not None) + int(self.add_zero_attn)
        if added and attn_mask is not None:
            attn_mask = F.pad(attn_mask, (0, added))
        if added and key_padding_mask is not None:
            key_padding_mask = F.pad(key_padding_mask, (0, added))
        mask = self._mask(attn_mask, key_padding_mask, q, k)
        weights = None
        if need_weights:
            scale = 1.0 / math.sqrt(q.shape[-1])
            weights = F.dropout(
                attention_weights(q, k, mask, False, scale), self.dropout, self.training
            )
            mixed = weights @ v
            weights = weights.mean(1) if average_attn_weights else weights
        else:
            mixed = F.scaled_dot_product_attention(q, k, v, mask, self.dropout * self.training)
        y = self.out_proj(mixed.transpose(1, 2).flatten(2))
        if not batched:
            y, weights = y.squeeze(0), None if weights is None else weights.squeeze(0)
        elif not self.batch_first:
            y = y.transpose(0, 1).contiguous()
        return y, weights

    def _projected(self, q: Tensor, k: Tensor, v: Tensor) -> list[Tensor]:
        weights: Any = (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight)
        if self.in_proj_weight is not None:
            weights = self.in_proj_weight.split(self.embed_dim)
        biases: Any = (None, None, None)
        if self.in_proj_bias is not None:
            biases = self.in_proj_bias.split(self.embed_dim)
        return [F.linear(x, w, b) for x, w, b in zip((q, k, v), weights, biases, strict=True)]

    def _heads(self, x: Tensor) -> Tensor:
        """Reshape (N, L, E) to (N, heads, L, E / heads)."""
        batch, length, width = x.shape
        return x.reshape(batch, length, self.num_heads, width // self.num_heads).transpose(1, 2)

    def _mask(self, attn_mask: Any, padding: Any, q: Tensor, k: Tensor) -> Tensor | None:
        """Both masks as one mask to add, of shape (N or 1, heads or 1, L or 1, S)."""
        total = None
        if attn_mask is not None:
            if attn_mask.ndim == 3:
                attn_mask = attn_mask.reshape(q.shape[0], self.num_heads, *attn_mask.shape[1:])
            total = _added(attn_mask, q.dtype)
        if padding is not None:
            own = _added(padding, q.dtype).reshape(k.shape[0], 1, 1, k.shape[2])
            total = own if total is None else total + own
        return total


def _longer(x: Tensor, row: Any) -> Tensor:
    """Append one row, (1, 1, E), to each sequence of (N, S, E)."""
    return cat((x, row.expand(x.shape[0], 1, x.shape[2])), 1)


def _glorot(rows: int, columns: int, dtype: Any) -> Parameter:
    return uniform_parameter(
        "MultiheadAttention", (rows, columns), math.sqrt(6.0 / (rows + columns)), dtype
    )


def _added(mask: Tensor, dtype: DType) -> Tensor:
    """A mask to add to the scores: minus infinity where a bool mask is true."""
    if mask.dtype is not bool_:
        return mask
    return zeros(mask.shape, dtype=dtype).masked_fill(mask, -math.inf)
