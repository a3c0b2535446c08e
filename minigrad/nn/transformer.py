"""The Transformer and its layers (Vaswani et al. 2017)."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from minigrad.functions.arguments import integer
from minigrad.functions.creation import full
from minigrad.functions.diagonals import triu
from minigrad.nn import functional as F  # noqa: N812 - its usual name
from minigrad.nn.attention import MultiheadAttention
from minigrad.nn.init import xavier_uniform_
from minigrad.nn.layers import Linear, ModuleList
from minigrad.nn.module import Module
from minigrad.nn.normalization import LayerNorm
from minigrad.nn.regularization import Dropout
from minigrad.runtime.devices import on_cpu

if TYPE_CHECKING:
    from minigrad._tensor import Tensor

__all__ = [
    "Transformer",
    "TransformerDecoder",
    "TransformerDecoderLayer",
    "TransformerEncoder",
    "TransformerEncoderLayer",
]

_ACTIVATIONS: dict[Any, Callable[[Tensor], Tensor]] = {"relu": F.relu, "gelu": F.gelu}


def _activation(op: str, given: Any) -> Callable[[Tensor], Tensor]:
    if callable(given):
        return given
    if given not in _ACTIVATIONS:
        raise ValueError(f"[{op}] activation is {given!r}: give 'relu', 'gelu' or a function")
    return _ACTIVATIONS[given]


class _Layer(Module):
    """Base of transformer layers: self-attention and a feed-forward network, with residuals."""

    def _set(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int,
        dropout: float,
        attentions: tuple[str, ...],
        layer_norm_eps: float,
        batch_first: bool,
        norm_first: bool,
        bias: bool,
        dtype: Any,
    ) -> None:
        for name in attentions:
            attention = MultiheadAttention(
                d_model, nhead, dropout, bias, batch_first=batch_first, dtype=dtype
            )
            setattr(self, name, attention)
        self.linear1 = Linear(d_model, dim_feedforward, bias, dtype=dtype)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias, dtype=dtype)
        self.norm_first = norm_first
        blocks = range(1, len(attentions) + 2)
        for k in blocks:
            setattr(self, f"norm{k}", LayerNorm(d_model, layer_norm_eps, bias=bias, dtype=dtype))
        for k in blocks:
            setattr(self, f"dropout{k}", Dropout(dropout))

    def _residual(self, k: int, x: Tensor, block: Callable[[Tensor], Tensor]) -> Tensor:
        """x plus the output of block number k, normalised before the block or after the sum."""
        norm, dropout = getattr(self, f"norm{k}"), getattr(self, f"dropout{k}")
        if self.norm_first:
            return x + dropout(block(norm(x)))
        return norm(x + dropout(block(x)))

    def _fed(self, x: Tensor) -> Tensor:
        """Apply the feed-forward network of two linear layers."""
        y: Tensor = self.linear2(self.dropout(self.activation(self.linear1(x))))
        return y

    activation: Callable[[Tensor], Tensor]


def _attended(
    attention: Module, x: Tensor, memory: Tensor, mask: Any, padding: Any, is_causal: bool
) -> Tensor:
    y: Tensor = attention(
        x,
        memory,
        memory,
        key_padding_mask=padding,
        need_weights=False,
        attn_mask=mask,
        is_causal=is_causal,
    )[0]
    return y


class TransformerEncoderLayer(_Layer):
    """Self-attention and a feed-forward network, both with a residual connection and a layer norm.

    The input has shape (L, N, d_model), (N, L, d_model) with ``batch_first``, or (L, d_model).
    ``activation`` is "relu", "gelu" or a function. With ``norm_first`` the norms come before the
    blocks, not after the sums. Raises ValueError if the heads do not divide d_model.

    >>> import minigrad as mg
    >>> layer = mg.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    >>> layer(mg.ones(4, 5, 8)).shape
    (4, 5, 8)
    """

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Any = F.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        on_cpu(device)
        self._set(
            d_model,
            nhead,
            dim_feedforward,
            dropout,
            ("self_attn",),
            layer_norm_eps,
            batch_first,
            norm_first,
            bias,
            dtype,
        )
        self.activation = _activation("TransformerEncoderLayer", activation)

    self_attn: MultiheadAttention

    def forward(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        """The output of the layer for ``src``, in its shape.

        The masks are those of :class:`MultiheadAttention`. ``is_causal`` says that ``src_mask``,
        which is then required, is the causal mask.
        """
        attention, padding = self.self_attn, src_key_padding_mask
        x = self._residual(
            1, src, lambda x: _attended(attention, x, x, src_mask, padding, is_causal)
        )
        return self._residual(2, x, self._fed)


class TransformerDecoderLayer(_Layer):
    """Like :class:`TransformerEncoderLayer`, with attention to the encoder's output in between.

    >>> import minigrad as mg
    >>> layer = mg.nn.TransformerDecoderLayer(8, 2, 16, batch_first=True)
    >>> layer(mg.ones(4, 3, 8), mg.ones(4, 5, 8)).shape
    (4, 3, 8)
    """

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Any = F.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        on_cpu(device)
        self._set(
            d_model,
            nhead,
            dim_feedforward,
            dropout,
            ("self_attn", "multihead_attn"),
            layer_norm_eps,
            batch_first,
            norm_first,
            bias,
            dtype,
        )
        self.activation = _activation("TransformerDecoderLayer", activation)

    self_attn: MultiheadAttention
    multihead_attn: MultiheadAttention

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """The output of the layer for ``tgt``, in its shape. ``memory`` is the encoder's output."""
        own, other = self.self_attn, self.multihead_attn
        x = self._residual(
            1,
            tgt,
            lambda x: _attended(own, x, x, tgt_mask, tgt_key_padding_mask, tgt_is_causal),
        )
        x = self._residual(
            2,
            x,
            lambda x: _attended(
                other, x, memory, memory_mask, memory_key_padding_mask, memory_is_causal
            ),
        )
        return self._residual(3, x, self._fed)


class _Stack(Module):
    """Base of stacks: copies of a layer, called one after another, and a norm at the end."""

    def _set(self, layer: Module, num_layers: int, norm: Module | None) -> None:
        count = integer(type(self).__name__, "num_layers", num_layers, 0)
        self.layers = ModuleList(copy.deepcopy(layer) for _ in range(count))
        self.num_layers = count
        self.norm = norm

    def _normed(self, x: Tensor) -> Tensor:
        return x if self.norm is None else self.norm(x)


class TransformerEncoder(_Stack):
    """``num_layers`` copies of a layer with the same starting weights, and a norm at the end.

    ``enable_nested_tensor`` and ``mask_check`` are PyTorch's and change nothing.

    >>> import minigrad as mg
    >>> layer = mg.nn.TransformerEncoderLayer(8, 2, 16)
    >>> mg.nn.TransformerEncoder(layer, num_layers=3)(mg.ones(5, 4, 8)).shape
    (5, 4, 8)
    """

    def __init__(
        self,
        encoder_layer: Module,
        num_layers: int,
        norm: Module | None = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:
        self._set(encoder_layer, num_layers, norm)
        self.enable_nested_tensor, self.mask_check = enable_nested_tensor, mask_check

    def forward(
        self,
        src: Tensor,
        mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool | None = None,
    ) -> Tensor:
        """The output of the layers for ``src``. The masks are those of a layer."""
        for layer in self.layers:
            src = layer(
                src,
                src_mask=mask,
                src_key_padding_mask=src_key_padding_mask,
                is_causal=bool(is_causal),
            )
        return self._normed(src)


class TransformerDecoder(_Stack):
    """Like :class:`TransformerEncoder`, of layers that also attend to the encoder's output."""

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        self._set(decoder_layer, num_layers, norm)

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """The layers' output for ``tgt`` and the encoder's output.

        The masks are those of a layer.
        """
        for layer in self.layers:
            tgt = layer(
                tgt,
                memory,
                tgt_mask=tgt_mask,
                memory_mask=memory_mask,
                tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=memory_key_padding_mask,
                tgt_is_causal=bool(tgt_is_causal),
                memory_is_causal=memory_is_causal,
            )
        return self._normed(tgt)


class Transformer(Module):
    """An encoder and a decoder: source (S, N, E) and target (T, N, E) give (T, N, E).

    The batch comes first with ``batch_first``, or is left out. All weights with two dimensions
    start with Glorot's uniform distribution (Glorot and Bengio 2010). Other arguments are those of
    the layers.

    >>> import minigrad as mg
    >>> model = mg.nn.Transformer(8, 2, 1, 1, 16)
    >>> mask = model.generate_square_subsequent_mask(3)
    >>> model(mg.ones(5, 4, 8), mg.ones(3, 4, 8), tgt_mask=mask).shape
    (3, 4, 8)
    """

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Any = F.relu,
        custom_encoder: Module | None = None,
        custom_decoder: Module | None = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        on_cpu(device)
        rest: Any = (
            dropout,
            activation,
            layer_norm_eps,
            batch_first,
            norm_first,
            bias,
            None,
            dtype,
        )

        def norm() -> LayerNorm:
            return LayerNorm(d_model, layer_norm_eps, bias=bias, dtype=dtype)

        if custom_encoder is None:
            layer: Module = TransformerEncoderLayer(d_model, nhead, dim_feedforward, *rest)
            self.encoder: Module = TransformerEncoder(layer, num_encoder_layers, norm())
        else:
            self.encoder = custom_encoder
        if custom_decoder is None:
            layer = TransformerDecoderLayer(d_model, nhead, dim_feedforward, *rest)
            self.decoder: Module = TransformerDecoder(layer, num_decoder_layers, norm())
        else:
            self.decoder = custom_decoder
        for p in self.parameters():
            if p.ndim > 1:
                xavier_uniform_(p)
        self.d_model, self.nhead, self.batch_first = d_model, nhead, batch_first

    def forward(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """The decoder's output. Raises ValueError if the batches or the widths do not fit."""
        batch = 0 if self.batch_first else 1
        batches = src.ndim == 3 and src.shape[batch] != tgt.shape[batch]
        if batches or not src.shape[-1] == tgt.shape[-1] == self.d_model:
            raise ValueError(
                f"[Transformer] source {src.shape} and target {tgt.shape} do not fit: they have "
                f"the same batch, and the last size d_model, {self.d_model}"
            )
        memory = self.encoder(
            src,
            mask=src_mask,
            src_key_padding_mask=src_key_padding_mask,
            is_causal=src_is_causal,
        )
        return self.decoder(
            tgt,
            memory,
            tgt_mask=tgt_mask,
            memory_mask=memory_mask,
            tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask,
            tgt_is_causal=tgt_is_causal,
            memory_is_causal=memory_is_causal,
        )

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Tensor:
        """The causal mask to add to the scores: minus infinity above the diagonal, 0 elsewhere.

        >>> import minigrad as mg
        >>> mg.nn.Transformer.generate_square_subsequent_mask(2).tolist()
        [[0.0, -inf], [0.0, 0.0]]
        """
        on_cpu(device)
        return triu(full((sz, sz), -math.inf, dtype=dtype), 1)
