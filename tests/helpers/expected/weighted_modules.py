"""References of layers with weights: linear, convolution, normalisation, recurrence, attention."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import minigrad.nn as nn
from expected.base import log_softmax, softmax
from expected.module_base import LINES, Layer, State, f

X, CLASSES = (3, 4), np.array([2, 0, 1])


def _convolutions(d: int) -> dict[str, Layer]:
    shape = (1, 2, *LINES[d][2:])

    def conv(w: State, x: np.ndarray) -> Any:
        return f(f"conv{d}d")(x, w["weight"], w["bias"], stride=2, padding=1)

    def transposed(w: State, x: np.ndarray) -> Any:
        return f(f"conv_transpose{d}d")(x, w["weight"], w["bias"], stride=2)

    args: dict[str, Any] = {"kernel_size": 2, "stride": 2}
    return {
        f"Conv{d}d": Layer(
            lambda: getattr(nn, f"Conv{d}d")(2, 3, padding=1, **args), (shape,), conv
        ),
        f"LazyConv{d}d": Layer(
            lambda: getattr(nn, f"LazyConv{d}d")(3, padding=1, **args), (shape,), conv
        ),
        f"ConvTranspose{d}d": Layer(
            lambda: getattr(nn, f"ConvTranspose{d}d")(2, 1, **args), (shape,), transposed
        ),
        f"LazyConvTranspose{d}d": Layer(
            lambda: getattr(nn, f"LazyConvTranspose{d}d")(1, **args), (shape,), transposed
        ),
    }


def _norms(d: int) -> dict[str, Layer]:
    """Normalisation in training. test_reference_layers.py tests the running statistics."""
    shape = (3, 2, *LINES[d][2:])

    def batch(w: State, x: np.ndarray) -> Any:
        return f("batch_norm")(x, None, None, w["weight"], w["bias"], training=True)

    def instance(w: State, x: np.ndarray) -> Any:
        return f("instance_norm")(x, None, None, w["weight"], w["bias"])

    return {
        f"BatchNorm{d}d": Layer(lambda: getattr(nn, f"BatchNorm{d}d")(2), (shape,), batch),
        f"LazyBatchNorm{d}d": Layer(lambda: getattr(nn, f"LazyBatchNorm{d}d")(), (shape,), batch),
        f"InstanceNorm{d}d": Layer(
            lambda: getattr(nn, f"InstanceNorm{d}d")(2, affine=True), (shape,), instance
        ),
        f"LazyInstanceNorm{d}d": Layer(
            lambda: getattr(nn, f"LazyInstanceNorm{d}d")(), (shape,), instance
        ),
    }


def _linear(w: State, x: np.ndarray, at: str = "") -> Any:
    return x @ w[f"{at}weight"].T + w.get(f"{at}bias", 0)


def _adaptive_log_softmax(w: State, x: np.ndarray, target: np.ndarray) -> Any:
    """Two frequent classes, and clusters of the classes 2..3 and 4..5."""
    head = log_softmax(x @ w["head.weight"].T, 1)
    tails = [
        log_softmax(x @ w[f"tail.{k}.0.weight"].T @ w[f"tail.{k}.1.weight"].T, 1) for k in (0, 1)
    ]
    logs = np.hstack([head[:, :2], head[:, 2:3] + tails[0], head[:, 3:4] + tails[1]])
    found = logs[np.arange(len(x)), target]
    return found, -found.mean()


def _linear_cross_entropy(w: State, x: np.ndarray, target: np.ndarray) -> Any:
    return f("linear_cross_entropy")(x, w["linear.weight"], target)


def _projected(w: State, x: np.ndarray, end: str) -> Any:
    """The inputs of all steps, with both biases."""
    return x @ w[f"weight_ih{end}"].T + w[f"bias_ih{end}"] + w[f"bias_hh{end}"]


def _direction(kind: str, w: State, x: np.ndarray, end: str) -> Any:
    """All h of one direction of a layer with zero first states, and its last states."""
    weight = w[f"weight_hh{end}"]
    zeros = np.zeros((1, x.shape[1], weight.shape[1]))
    if kind == "LSTM":
        h, c = f("lstm_steps")(_projected(w, x, end), np.concatenate([zeros, zeros]), weight)
        return h, h[-1], c[-1]
    if kind == "GRU":
        steps = x @ w[f"weight_ih{end}"].T + w[f"bias_ih{end}"]
        (h,) = f("gru_steps")(steps, zeros, weight, w[f"bias_hh{end}"])
    else:
        (h,) = f("rnn_steps")(_projected(w, x, end), zeros, weight)
    return h, h[-1]


def _recurrent(kind: str) -> Layer:
    """Two bidirectional layers. The second reads the results of both directions of the first."""

    def reference(w: State, x: np.ndarray) -> Any:
        last: list[list[np.ndarray]] = []
        for layer in ("_l0", "_l1"):
            ahead = _direction(kind, w, x, layer)
            back = _direction(kind, w, x[::-1], f"{layer}_reverse")
            x = np.concatenate([ahead[0], back[0][::-1]], -1)
            last += [list(ahead[1:]), list(back[1:])]
        return [x, *(np.array(states) for states in zip(*last, strict=True))]

    return Layer(
        lambda: getattr(nn, kind)(3, 2, num_layers=2, bidirectional=True), ((4, 2, 3),), reference
    )


def _cell(kind: str) -> Layer:
    def reference(w: State, x: np.ndarray) -> Any:
        return list(_direction(kind, w, x[None], "")[1:])

    return Layer(lambda: getattr(nn, f"{kind}Cell")(3, 2), ((2, 3),), reference)


def _attended(
    w: State, at: str, query: np.ndarray, key: np.ndarray, value: np.ndarray, heads: int = 2
) -> Any:
    """Attention of (L, N, E), and its weights (Vaswani et al. 2017)."""
    rows, bias = np.split(w[f"{at}in_proj_weight"], 3), np.split(w[f"{at}in_proj_bias"], 3)

    def projected(x: np.ndarray, k: int) -> Any:
        y = x @ rows[k].T + bias[k]
        return y.reshape(len(x), -1, heads, y.shape[-1] // heads).transpose(1, 2, 0, 3)

    q, k, v = projected(query, 0), projected(key, 1), projected(value, 2)
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    weights = softmax(scores, -1)
    mixed = (weights @ v).transpose(2, 0, 1, 3).reshape(query.shape)
    return _linear(w, mixed, f"{at}out_proj."), weights.mean(1)


def _normed(w: State, x: np.ndarray, at: str) -> Any:
    return f("layer_norm")(x, x.shape[-1:], w[f"{at}weight"], w[f"{at}bias"])


def _fed(w: State, x: np.ndarray, at: str) -> Any:
    return _linear(w, np.maximum(_linear(w, x, f"{at}linear1."), 0), f"{at}linear2.")


def _encoded(w: State, x: np.ndarray, at: str = "") -> Any:
    x = _normed(w, x + _attended(w, f"{at}self_attn.", x, x, x)[0], f"{at}norm1.")
    return _normed(w, x + _fed(w, x, at), f"{at}norm2.")


def _decoded(w: State, x: np.ndarray, memory: np.ndarray, at: str = "") -> Any:
    x = _normed(w, x + _attended(w, f"{at}self_attn.", x, x, x)[0], f"{at}norm1.")
    x = _normed(w, x + _attended(w, f"{at}multihead_attn.", x, memory, memory)[0], f"{at}norm2.")
    return _normed(w, x + _fed(w, x, at), f"{at}norm3.")


def _transformer(w: State, source: np.ndarray, target: np.ndarray) -> Any:
    memory = _encoded(w, source, "encoder.layers.0.")
    memory = _normed(w, memory, "encoder.norm.")
    return _normed(w, _decoded(w, target, memory, "decoder.layers.0."), "decoder.norm.")


def _stacked(
    one: Callable[..., Any],
) -> Callable[..., Any]:
    def reference(w: State, x: np.ndarray, *memory: np.ndarray) -> Any:
        for k in (0, 1):
            x = one(w, x, *memory, f"layers.{k}.")
        return x

    return reference


def _sequential(w: State, x: np.ndarray) -> Any:
    return _linear(w, np.tanh(_linear(w, x, "0.")), "2.")


SEQUENCES = (3, 2, 4), (5, 2, 4)

WEIGHTED: dict[str, Layer] = {
    "Linear": Layer(lambda: nn.Linear(4, 2), (X,), _linear),
    "LazyLinear": Layer(lambda: nn.LazyLinear(2), (X,), _linear),
    "Bilinear": Layer(
        lambda: nn.Bilinear(4, 3, 2),
        (X, (3, 3)),
        lambda w, a, b: f("bilinear")(a, b, w["weight"], w["bias"]),
    ),
    "PReLU": Layer(lambda: nn.PReLU(4), (X,), lambda w, x: f("prelu")(x, w["weight"])),
    "Embedding": Layer(
        lambda: nn.Embedding(4, 3), (np.array([[3, 0], [1, 3]]),), lambda w, i: w["weight"][i]
    ),
    "EmbeddingBag": Layer(
        lambda: nn.EmbeddingBag(4, 3),
        (np.array([[3, 0], [1, 3]]),),
        lambda w, i: w["weight"][i].mean(1),
    ),
    "LayerNorm": Layer(
        lambda: nn.LayerNorm(4),
        (X,),
        lambda w, x: f("layer_norm")(x, (4,), w["weight"], w["bias"]),
    ),
    "RMSNorm": Layer(lambda: nn.RMSNorm(4), (X,), lambda w, x: f("rms_norm")(x, (4,), w["weight"])),
    "GroupNorm": Layer(
        lambda: nn.GroupNorm(2, 4),
        ((2, 4, 3),),
        lambda w, x: f("group_norm")(x, 2, w["weight"], w["bias"]),
    ),
    "Sequential": Layer(
        lambda: nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 1)), (X,), _sequential
    ),
    "DataParallel": Layer(
        lambda: nn.DataParallel(nn.Linear(4, 2)), (X,), lambda w, x: _linear(w, x, "module.")
    ),
    "DistributedDataParallel": Layer(
        lambda: nn.DistributedDataParallel(nn.Linear(4, 2)),
        (X,),
        lambda w, x: _linear(w, x, "module."),
    ),
    "AdaptiveLogSoftmaxWithLoss": Layer(
        lambda: nn.AdaptiveLogSoftmaxWithLoss(4, 6, [2, 4], div_value=2.0),
        ((5, 4), np.array([0, 5, 2, 1, 4])),
        _adaptive_log_softmax,
    ),
    "LinearCrossEntropyLoss": Layer(
        lambda: nn.LinearCrossEntropyLoss(4, 5), (X, CLASSES), _linear_cross_entropy
    ),
    **{kind: _recurrent(kind) for kind in ("RNN", "LSTM", "GRU")},
    **{f"{kind}Cell": _cell(kind) for kind in ("RNN", "LSTM", "GRU")},
    "MultiheadAttention": Layer(
        lambda: nn.MultiheadAttention(4, 2),
        (*SEQUENCES, SEQUENCES[1]),
        lambda w, q, k, v: _attended(w, "", q, k, v),
    ),
    "TransformerEncoderLayer": Layer(
        lambda: nn.TransformerEncoderLayer(4, 2, 6, dropout=0.0), SEQUENCES[:1], _encoded
    ),
    "TransformerDecoderLayer": Layer(
        lambda: nn.TransformerDecoderLayer(4, 2, 6, dropout=0.0), SEQUENCES, _decoded
    ),
    "TransformerEncoder": Layer(
        lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 6, dropout=0.0), 2),
        SEQUENCES[:1],
        _stacked(_encoded),
    ),
    "TransformerDecoder": Layer(
        lambda: nn.TransformerDecoder(nn.TransformerDecoderLayer(4, 2, 6, dropout=0.0), 2),
        SEQUENCES,
        _stacked(_decoded),
    ),
    "Transformer": Layer(
        lambda: nn.Transformer(4, 2, 1, 1, 6, dropout=0.0), SEQUENCES, _transformer
    ),
}

for _axes in (1, 2, 3):
    WEIGHTED |= {**_convolutions(_axes), **_norms(_axes)}
