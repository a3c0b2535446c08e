"""References of layers without weights: activations, pooling, padding, dropout and shapes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import minigrad.nn as nn
from expected.base import Given, log_softmax, softmax
from expected.module_base import LINES, Layer, f, plain
from expected.shapes import SHAPES

X, IMAGES = (3, 4), (1, 2, 4, 3)

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
    "Softmax2d": plain(lambda: nn.Softmax2d(), lambda x: softmax(x, 1), IMAGES),
    "Softmin": plain(lambda: nn.Softmin(1), lambda x: softmax(-x, 1), X),
    "Softplus": plain(lambda: nn.Softplus(2.0), lambda x: f("softplus")(x, 2.0), X),
    "Softshrink": plain(lambda: nn.Softshrink(0.3), lambda x: f("softshrink")(x, 0.3), X),
    "Softsign": plain(lambda: nn.Softsign(), f("softsign"), X),
    "Tanh": plain(lambda: nn.Tanh(), np.tanh, X),
    "Tanhshrink": plain(lambda: nn.Tanhshrink(), f("tanhshrink"), X),
    "Threshold": plain(lambda: nn.Threshold(0.2, -3.0), lambda x: np.where(x > 0.2, x, -3.0), X),
    "Flatten": plain(lambda: nn.Flatten(), lambda x: x.reshape(1, -1), IMAGES),
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
    "Unfold": plain(lambda: nn.Unfold(2), lambda x: f("unfold")(x, 2), IMAGES),
    "Upsample": plain(
        lambda: nn.Upsample(size=5, mode="linear"),
        lambda x: f("interpolate")(x, 5, mode="linear"),
        (1, 2, 3),
    ),
    "UpsamplingBilinear2d": plain(
        lambda: nn.UpsamplingBilinear2d(size=(5, 4)),
        lambda x: f("interpolate")(x, (5, 4), mode="bilinear", align_corners=True),
        IMAGES,
    ),
    "UpsamplingNearest2d": plain(
        lambda: nn.UpsamplingNearest2d(scale_factor=2),
        lambda x: f("interpolate")(x, scale_factor=2),
        IMAGES,
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


def _by_axes(d: int) -> dict[str, Layer]:
    """The layers that exist for lines, planes and volumes."""
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

for _axes in (1, 2, 3):
    PLAIN |= _by_axes(_axes)
PLAIN |= DROPOUTS
