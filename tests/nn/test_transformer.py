"""Attention layers and the Transformer: by NumPy, and everything as in PyTorch."""

from __future__ import annotations

import re

import numpy as np
import pytest
from torch_layers import same_as_torch

import minigrad as mg
from minigrad import nn

PADDING = np.array([[False, False, True, True, True], [False, False, False, False, True]])
CAUSAL = np.triu(np.full((5, 5), -np.inf), 1)
# PyTorch warns of nested tensors, which are not here, and of masks of two kinds.
pytestmark = pytest.mark.filterwarnings("ignore:.*nested_tensor", "ignore:.*mismatched")


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def norm(x):
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)


@pytest.mark.parametrize("norm_first", [False, True])
def test_an_encoder_layer_by_numpy(norm_first, rng, restore_random):
    layer = nn.TransformerEncoderLayer(
        6, 2, 8, activation="gelu", norm_first=norm_first, dtype=mg.float64
    ).eval()
    w = {name: value.numpy() for name, value in layer.state_dict().items()}
    x = rng.standard_normal((4, 1, 6))

    def attended(y):
        q, k, v = np.split(y @ w["self_attn.in_proj_weight"].T + w["self_attn.in_proj_bias"], 3, -1)
        heads = [
            softmax(q[..., cut] @ k[..., cut].T / np.sqrt(3)) @ v[..., cut]
            for cut in (slice(0, 3), slice(3, 6))
        ]
        out = np.concatenate(heads, -1)
        return out @ w["self_attn.out_proj.weight"].T + w["self_attn.out_proj.bias"]

    def fed(y):
        y = y @ w["linear1.weight"].T + w["linear1.bias"]
        y = mg.nn.functional.gelu(mg.tensor(y)).numpy()
        return y @ w["linear2.weight"].T + w["linear2.bias"]

    y = x[:, 0]
    if norm_first:
        y = y + attended(norm(y))
        y = y + fed(norm(y))
    else:
        y = norm(y + attended(y))
        y = norm(y + fed(y))
    found = layer(mg.tensor(x)).detach().numpy()
    np.testing.assert_allclose(found[:, 0], y, rtol=1e-10, atol=1e-12)


def test_gradients(rng, restore_random):
    layer = nn.TransformerDecoderLayer(4, 2, 3, 0.0, nn.Tanh(), dtype=mg.float64)
    x, memory = (mg.tensor(rng.standard_normal((n, 4)), requires_grad=True) for n in (2, 3))
    assert mg.gradcheck(layer, (x, memory))
    parameters = dict(layer.named_parameters())
    names = [name for name in parameters if "multihead_attn.in_proj" in name]
    weights = tuple(parameters[name] for name in names)

    def run(*values):
        return mg.func.functional_call(layer, dict(zip(names, values, strict=True)), (x, memory))

    assert mg.gradcheck(run, weights)


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_layers_as_pytorch(batch_first, norm_first, activation):
    rest = {"batch_first": batch_first, "norm_first": norm_first, "activation": activation}
    shape, memory = ((2, 5, 6), (2, 3, 6)) if batch_first else ((5, 2, 6), (3, 2, 6))
    mask = lambda layer, x, m, p: layer(x, m, p)  # noqa: E731
    for bias in (True, False):
        make = lambda n: n.TransformerEncoderLayer(6, 2, 7, 0.0, **rest, bias=bias)  # noqa: B023, E731
        same_as_torch(make, shape)
        same_as_torch(make, shape, CAUSAL, PADDING, call=mask)
        same_as_torch(make, (5, 6))
        make = lambda n: n.TransformerDecoderLayer(6, 2, 7, 0.0, **rest, bias=bias)  # noqa: B023, E731
        same_as_torch(make, shape, memory)
        same_as_torch(
            make,
            shape,
            memory,
            CAUSAL,
            PADDING,
            call=lambda layer, x, y, m, p: layer(x, y, m, tgt_key_padding_mask=p),
        )


def test_stacks_as_pytorch():
    def encoder(n):
        layer = n.TransformerEncoderLayer(6, 3, 7, 0.0, batch_first=True)
        return n.TransformerEncoder(layer, 2, n.LayerNorm(6))

    same_as_torch(encoder, (2, 5, 6))
    for causal in (None, True):
        same_as_torch(
            encoder,
            (2, 5, 6),
            CAUSAL,
            call=lambda model, x, m, c=causal: model(x, m, is_causal=c),
        )

    def decoder(n):
        return n.TransformerDecoder(n.TransformerDecoderLayer(6, 3, 7, 0.0), 3)

    same_as_torch(decoder, (4, 2, 6), (5, 2, 6))


@pytest.mark.parametrize("batch_first", [False, True])
def test_a_transformer_as_pytorch(batch_first):
    def make(n):
        return n.Transformer(6, 2, 2, 1, 7, 0.0, batch_first=batch_first)

    def call(model, src, tgt, padding):
        mask = model.generate_square_subsequent_mask(4, dtype=src.dtype)
        return model(src, tgt, tgt_mask=mask, src_key_padding_mask=padding, tgt_is_causal=True)

    first, second = (5, 2, 6), (4, 2, 6)
    if batch_first:
        first, second = (2, 5, 6), (2, 4, 6)
    same_as_torch(make, first, second, PADDING, call=call)
    same_as_torch(make, (5, 6), (4, 6))


@pytest.mark.parametrize("rest", [{}, {"kdim": 3, "vdim": 4}])
@pytest.mark.parametrize(
    "added", [{"add_bias_kv": True}, {"add_zero_attn": True}, {"bias": False, "add_bias_kv": True}]
)
def test_added_keys_as_pytorch(rest, added):
    own, other = (3, 4) if rest else (6, 6)
    for batch_first in (False, True):
        shapes = [(2, 5, n) if batch_first else (5, 2, n) for n in (6, own, other)]
        for need in (True, False):
            same_as_torch(
                lambda n: n.MultiheadAttention(6, 2, batch_first=batch_first, **rest, **added),  # noqa: B023
                *shapes,
                CAUSAL,
                PADDING,
                call=lambda m, q, k, v, mask, padding: m(
                    q,
                    k,
                    v,
                    attn_mask=mask,
                    key_padding_mask=padding,
                    need_weights=need,  # noqa: B023
                    average_attn_weights=False,
                ),
            )


def test_starting_values(restore_random):
    layer = nn.MultiheadAttention(200, 2, add_bias_kv=True)
    assert layer.bias_k.std().item() == pytest.approx((2 / 400) ** 0.5, rel=0.3)
    stack = nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8), 2)
    first, second = (dict(each.named_parameters()) for each in stack.layers)
    assert all(first[n] is not second[n] and bool((first[n] == second[n]).all()) for n in first)
    model = nn.Transformer(4, 2, 2, 1, 96)
    first, second = (dict(each.named_parameters()) for each in model.encoder.layers)
    weight = first["linear1.weight"]
    assert bool((weight != second["linear1.weight"]).any())
    assert abs(weight).max().item() == pytest.approx((6 / 100) ** 0.5, rel=0.02)


def test_neighbours_that_look_alike_are_shown_once():
    layers = nn.ModuleList([nn.ReLU(), nn.ReLU(), nn.Tanh(), nn.Sequential(nn.Tanh())])
    assert repr(layers) == (
        "ModuleList(\n  (0-1): 2 x ReLU()\n  (2): Tanh()\n  (3): Sequential(\n    (0): Tanh()\n"
        "  )\n)"
    )
    assert repr(nn.ModuleList()) == "ModuleList()"


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (
            lambda: nn.TransformerEncoderLayer(4, 2, activation="tanh"),
            "[TransformerEncoderLayer] activation is 'tanh': give 'relu', 'gelu' or a function",
        ),
        (
            lambda: nn.TransformerEncoderLayer(4, 2, 3)(mg.ones(3, 1, 4), is_causal=True),
            "[MultiheadAttention] is_causal describes attn_mask, which is needed",
        ),
        (
            lambda: nn.Transformer(4, 2, 1, 1, 3)(mg.ones(3, 2, 4), mg.ones(3, 1, 4)),
            "[Transformer] source (3, 2, 4) and target (3, 1, 4) do not fit: they have the same "
            "batch, and the last size d_model, 4",
        ),
    ],
)
def test_refusals(call, text, restore_random):
    with pytest.raises(ValueError, match=re.escape(text)):
        call()
