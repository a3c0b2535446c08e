"""Layers and losses of minigrad.nn: how each is made, called and computed in NumPy.

A reference takes the layer's state, arrays by name, and the inputs. Weights are those that the
layer draws; the functions are the references of minigrad.nn.functional.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import minigrad.nn as nn
from expected import planes
from expected.activations import ACTIVATIONS
from expected.base import Given, log_softmax, softmax
from expected.layers import LAYERS
from expected.losses import LOSSES
from expected.shapes import SHAPES
from expected.windows import WINDOWS

FUNCTIONS = {**ACTIVATIONS, **WINDOWS, **LAYERS, **planes.PLANES, **LOSSES}
State = dict[str, np.ndarray]


@dataclass(frozen=True)
class Layer:
    """A layer, its inputs as arrays or as shapes of random ones, and its reference."""

    make: Callable[[], Any]
    inputs: tuple[Any, ...]
    reference: Callable[..., Any]


def f(name: str) -> Any:
    """The reference of a function of minigrad.nn.functional."""
    found = FUNCTIONS[f"nn.functional.{name}"]
    return found.reference if isinstance(found, Given) else found


def plain(make: Callable[[], Any], reference: Callable[..., Any], *inputs: Any) -> Layer:
    """A layer without a state, of arrays or of shapes."""
    given = isinstance(reference, Given)
    call = reference.reference if given else reference
    stateless = (lambda y, _, *xs: call(y, *xs)) if given else (lambda _, *xs: call(*xs))
    return Layer(make, inputs, Given(stateless) if given else stateless)


X, PLANES, SIGNS = (3, 4), (1, 2, 4, 3), np.array([1, -1, 1])
CLASSES = np.array([2, 0, 1])

PLAIN: dict[str, Layer] = {
    "CELU": plain(lambda: nn.CELU(1.5), lambda x: f("celu")(x, 1.5), X),
    "ELU": plain(lambda: nn.ELU(0.7), lambda x: f("elu")(x, 0.7), X),
    "GELU": plain(lambda: nn.GELU("tanh"), lambda x: f("gelu")(x, "tanh"), X),
    "GLU": plain(lambda: nn.GLU(1), lambda x: f("glu")(x, 1), X),
    "SELU": plain(lambda: nn.SELU(), f("selu"), X),
    "Hardshrink": plain(lambda: nn.Hardshrink(0.3), lambda x: f("hardshrink")(x, 0.3), X),
    "Hardsigmoid": plain(lambda: nn.Hardsigmoid(), f("hardsigmoid"), X),
    "Hardswish": plain(lambda: nn.Hardswish(), f("hardswish"), X),
    "Hardtanh": plain(lambda: nn.Hardtanh(-0.5, 0.7), lambda x: np.clip(x, -0.5, 0.7), X),
    "Identity": plain(lambda: nn.Identity(), lambda x: x, X),
    "LeakyReLU": plain(lambda: nn.LeakyReLU(0.3), lambda x: f("leaky_relu")(x, 0.3), X),
    "LogSigmoid": plain(lambda: nn.LogSigmoid(), f("logsigmoid"), X),
    "LogSoftmax": plain(lambda: nn.LogSoftmax(1), lambda x: log_softmax(x, 1), X),
    "Mish": plain(lambda: nn.Mish(), f("mish"), X),
    "ReLU": plain(lambda: nn.ReLU(), lambda x: np.maximum(x, 0), X),
    "ReLU6": plain(lambda: nn.ReLU6(), lambda x: np.clip(x, 0, 6), X),
    "RReLU": plain(
        lambda: nn.RReLU(0.1, 0.2), Given(lambda y, x: f("rrelu")(y, x, 0.1, 0.2, True)), X
    ),
    "Sigmoid": plain(lambda: nn.Sigmoid(), lambda x: 1 / (1 + np.exp(-x)), X),
    "SiLU": plain(lambda: nn.SiLU(), f("silu"), X),
    "Softmax": plain(lambda: nn.Softmax(0), lambda x: softmax(x, 0), X),
    "Softmax2d": plain(lambda: nn.Softmax2d(), lambda x: softmax(x, 1), PLANES),
    "Softmin": plain(lambda: nn.Softmin(1), lambda x: softmax(-x, 1), X),
    "Softplus": plain(lambda: nn.Softplus(2.0), lambda x: f("softplus")(x, 2.0), X),
    "Softshrink": plain(lambda: nn.Softshrink(0.3), lambda x: f("softshrink")(x, 0.3), X),
    "Softsign": plain(lambda: nn.Softsign(), f("softsign"), X),
    "Tanh": plain(lambda: nn.Tanh(), np.tanh, X),
    "Tanhshrink": plain(lambda: nn.Tanhshrink(), f("tanhshrink"), X),
    "Threshold": plain(lambda: nn.Threshold(0.2, -3.0), lambda x: np.where(x > 0.2, x, -3.0), X),
    "Flatten": plain(lambda: nn.Flatten(), lambda x: x.reshape(1, -1), PLANES),
    "Unflatten": plain(lambda: nn.Unflatten(1, (2, 2)), lambda x: x.reshape(3, 2, 2), X),
    "ChannelShuffle": plain(
        lambda: nn.ChannelShuffle(2), lambda x: f("channel_shuffle")(x, 2), (1, 4, 2, 3)
    ),
    "PixelShuffle": plain(
        lambda: nn.PixelShuffle(2), lambda x: f("pixel_shuffle")(x, 2), (1, 4, 2, 3)
    ),
    "PixelUnshuffle": plain(
        lambda: nn.PixelUnshuffle(2), lambda x: f("pixel_unshuffle")(x, 2), (1, 1, 4, 2)
    ),
    "Fold": plain(lambda: nn.Fold(3, 2), lambda x: f("fold")(x, 3, 2), (1, 4, 4)),
    "Unfold": plain(lambda: nn.Unfold(2), lambda x: f("unfold")(x, 2), PLANES),
    "Upsample": plain(
        lambda: nn.Upsample(size=5, mode="linear"),
        lambda x: f("interpolate")(x, 5, mode="linear"),
        (1, 2, 3),
    ),
    "UpsamplingBilinear2d": plain(
        lambda: nn.UpsamplingBilinear2d(size=(5, 4)),
        lambda x: f("interpolate")(x, (5, 4), mode="bilinear", align_corners=True),
        PLANES,
    ),
    "UpsamplingNearest2d": plain(
        lambda: nn.UpsamplingNearest2d(scale_factor=2),
        lambda x: f("interpolate")(x, scale_factor=2),
        PLANES,
    ),
    "LocalResponseNorm": plain(
        lambda: nn.LocalResponseNorm(3, 0.5),
        lambda x: f("local_response_norm")(x, 3, 0.5),
        (1, 4, 3),
    ),
    "CrossMapLRN2d": plain(
        lambda: nn.CrossMapLRN2d(3, 0.5),
        lambda x: f("local_response_norm")(x, 3, 0.5),
        (1, 4, 2, 2),
    ),
}

# ---- pooling, padding, dropout -------------------------------------------------------------------

LINES = {1: (2, 2, 6), 2: (1, 2, 4, 5), 3: (1, 1, 4, 3, 4)}


def _by_axes(d: int) -> dict[str, Layer]:
    """The layers that come for lines, planes and volumes."""
    shape = LINES[d]

    def made(name: str, *args: Any) -> Callable[[], Any]:
        return lambda: getattr(nn, f"{name}{d}d")(*args)

    def padded(mode: str, value: float = 0.0) -> Callable[[np.ndarray], Any]:
        return lambda x: SHAPES["pad"](x, (2, 1) * d, mode, value)

    positive = np.linspace(0.2, 2, math.prod(shape)).reshape(shape)
    pooled = tuple(n // 2 for n in shape[2:])
    places = np.arange(math.prod(pooled)).reshape(1, 1, *pooled) * 2
    return {
        f"MaxPool{d}d": plain(made("MaxPool", 2, 1), lambda x: f(f"max_pool{d}d")(x, 2, 1), shape),
        f"AvgPool{d}d": plain(made("AvgPool", 2, 1), lambda x: f(f"avg_pool{d}d")(x, 2, 1), shape),
        f"LPPool{d}d": plain(made("LPPool", 3, 2), lambda x: f(f"lp_pool{d}d")(x, 3, 2), positive),
        f"AdaptiveAvgPool{d}d": plain(
            made("AdaptiveAvgPool", 2), lambda x: f(f"adaptive_avg_pool{d}d")(x, 2), shape
        ),
        f"AdaptiveMaxPool{d}d": plain(
            made("AdaptiveMaxPool", 2), lambda x: f(f"adaptive_max_pool{d}d")(x, 2), shape
        ),
        f"MaxUnpool{d}d": plain(
            made("MaxUnpool", 2),
            lambda x, i: f(f"max_unpool{d}d")(x, i, 2),
            (1, 1, *pooled),
            places,
        ),
        f"ZeroPad{d}d": plain(made("ZeroPad", (2, 1) * d), padded("constant"), shape),
        f"ConstantPad{d}d": plain(
            made("ConstantPad", (2, 1) * d, 1.5), padded("constant", 1.5), shape
        ),
        f"ReflectionPad{d}d": plain(made("ReflectionPad", (2, 1) * d), padded("reflect"), shape),
        f"ReplicationPad{d}d": plain(
            made("ReplicationPad", (2, 1) * d), padded("replicate"), shape
        ),
        f"CircularPad{d}d": plain(made("CircularPad", (2, 1) * d), padded("circular"), shape),
        f"Dropout{d}d": plain(
            made("Dropout", 0.3),
            Given(lambda y, x: f(f"dropout{d}d")(y, x, 0.3)),
            (3, 4, *shape[2:]),
        ),
    }


DROPOUTS: dict[str, Layer] = {
    "Dropout": plain(lambda: nn.Dropout(0.3), Given(lambda y, x: f("dropout")(y, x, 0.3)), (5, 6)),
    "AlphaDropout": plain(
        lambda: nn.AlphaDropout(0.3),
        Given(lambda y, x: f("alpha_dropout")(y, x, 0.3, True)),
        (5, 6),
    ),
    "FeatureAlphaDropout": plain(
        lambda: nn.FeatureAlphaDropout(0.3),
        Given(lambda y, x: f("feature_alpha_dropout")(y, x, 0.3, True)),
        (4, 5, 2),
    ),
    **{
        f"FractionalMaxPool{d}d": plain(
            lambda d=d: getattr(nn, f"FractionalMaxPool{d}d")(2, 2),
            Given(lambda y, x, d=d: f(f"fractional_max_pool{d}d")(y, x, 2, 2)),
            LINES[d],
        )
        for d in (2, 3)
    },
}

# ---- layers with weights -------------------------------------------------------------------------


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
    """In training; test_reference_layers.py has what the running statistics become."""
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
    """All h of one direction of a layer that begins with zeros, and its last states."""
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
    """Two layers of both directions; the second one reads what both of the first one say."""

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
    """Attention of (L, N, E), and the weights of its values (Vaswani et al. 2017)."""
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

# ---- losses --------------------------------------------------------------------------------------

PROBABILITIES = np.array([[0.2, 0.7], [0.5, 0.1], [0.9, 0.4]])
ROWS = PROBABILITIES[:, ::-1].copy()
PAIR = ((3, 2), (3, 2))

LOSS_LAYERS: dict[str, Layer] = {
    "L1Loss": plain(lambda: nn.L1Loss(), f("l1_loss"), *PAIR),
    "MSELoss": plain(
        lambda: nn.MSELoss(reduction="sum"),
        lambda a, b: f("mse_loss")(a, b, reduction="sum"),
        *PAIR,
    ),
    "HuberLoss": plain(
        lambda: nn.HuberLoss(delta=0.5), lambda a, b: f("huber_loss")(a, b, 0.5), *PAIR
    ),
    "SmoothL1Loss": plain(
        lambda: nn.SmoothL1Loss(beta=0.5), lambda a, b: f("smooth_l1_loss")(a, b, 0.5), *PAIR
    ),
    "BCELoss": plain(lambda: nn.BCELoss(), f("binary_cross_entropy"), PROBABILITIES, ROWS),
    "BCEWithLogitsLoss": plain(
        lambda: nn.BCEWithLogitsLoss(), f("binary_cross_entropy_with_logits"), (3, 2), ROWS
    ),
    "KLDivLoss": plain(
        lambda: nn.KLDivLoss(reduction="batchmean"),
        lambda x, t: f("kl_div")(x, t, "batchmean"),
        (3, 2),
        ROWS,
    ),
    "GaussianNLLLoss": plain(
        lambda: nn.GaussianNLLLoss(full=True),
        lambda x, t, v: f("gaussian_nll_loss")(x, t, v, full=True),
        *PAIR,
        PROBABILITIES,
    ),
    "PoissonNLLLoss": plain(
        lambda: nn.PoissonNLLLoss(full=True),
        lambda x, t: f("poisson_nll_loss")(x, t, full=True),
        (3, 2),
        4 * ROWS,
    ),
    "CrossEntropyLoss": plain(
        lambda: nn.CrossEntropyLoss(label_smoothing=0.1),
        lambda x, t: f("cross_entropy")(x, t, label_smoothing=0.1),
        (3, 4),
        CLASSES,
    ),
    "NLLLoss": plain(lambda: nn.NLLLoss(), f("nll_loss"), (3, 4), CLASSES),
    "MultiMarginLoss": plain(
        lambda: nn.MultiMarginLoss(p=2, margin=0.5),
        lambda x, t: f("multi_margin_loss")(x, t, 2, 0.5),
        (3, 4),
        CLASSES,
    ),
    "MultiLabelMarginLoss": plain(
        lambda: nn.MultiLabelMarginLoss(),
        f("multilabel_margin_loss"),
        (2, 3),
        np.array([[2, 0, -1], [1, -1, 0]]),
    ),
    "MultiLabelSoftMarginLoss": plain(
        lambda: nn.MultiLabelSoftMarginLoss(),
        f("multilabel_soft_margin_loss"),
        (2, 3),
        np.array([[1, 0, 1], [0, 0, 1]]),
    ),
    "SoftMarginLoss": plain(lambda: nn.SoftMarginLoss(), f("soft_margin_loss"), (3,), SIGNS),
    "HingeEmbeddingLoss": plain(
        lambda: nn.HingeEmbeddingLoss(0.7),
        lambda x, t: f("hinge_embedding_loss")(x, t, 0.7),
        (3,),
        SIGNS,
    ),
    "MarginRankingLoss": plain(
        lambda: nn.MarginRankingLoss(0.3),
        lambda a, b, t: f("margin_ranking_loss")(a, b, t, 0.3),
        (3,),
        (3,),
        SIGNS,
    ),
    "CosineEmbeddingLoss": plain(
        lambda: nn.CosineEmbeddingLoss(-0.5),
        lambda a, b, t: f("cosine_embedding_loss")(a, b, t, -0.5),
        *PAIR,
        SIGNS,
    ),
    "CosineSimilarity": plain(
        lambda: nn.CosineSimilarity(0), lambda a, b: f("cosine_similarity")(a, b, 0), *PAIR
    ),
    "PairwiseDistance": plain(
        lambda: nn.PairwiseDistance(3.0), lambda a, b: f("pairwise_distance")(a, b, 3.0), *PAIR
    ),
    "TripletMarginLoss": plain(
        lambda: nn.TripletMarginLoss(2.0, swap=True),
        lambda a, p, n: f("triplet_margin_loss")(a, p, n, 2.0, swap=True),
        *PAIR,
        (3, 2),
    ),
    "TripletMarginWithDistanceLoss": plain(
        lambda: nn.TripletMarginWithDistanceLoss(margin=2.0),
        lambda a, p, n: f("triplet_margin_with_distance_loss")(a, p, n, margin=2.0),
        *PAIR,
        (3, 2),
    ),
    "CTCLoss": plain(
        lambda: nn.CTCLoss(),
        lambda x, t, n, m: f("ctc_loss")(x, t, n, m),
        (4, 2, 3),
        np.array([[1, 1], [2, 1]]),
        np.array([4, 3]),
        np.array([2, 1]),
    ),
}

MODULES: dict[str, Layer] = {**PLAIN, **DROPOUTS, **WEIGHTED, **LOSS_LAYERS}
for _axes in (1, 2, 3):
    MODULES |= {**_by_axes(_axes), **_convolutions(_axes), **_norms(_axes)}

# Classes that compute nothing by themselves.
CONTAINERS = {
    *("Module", "ModuleDict", "ModuleList", "ParameterDict", "ParameterList"),
    *("RNNBase", "RNNCellBase", "LinearCrossEntropyOptions"),
    *("Parameter", "UninitializedBuffer", "UninitializedParameter"),
}
