"""Samples of activations, layers and losses."""

from __future__ import annotations

import itertools
from typing import Any

import minigrad.nn.functional as F
from samples.base import (
    NEGATIVE,
    POSITIVE,
    UNIT,
    S,
    Sample,
    Z,
    bools,
    constant,
    each,
    ints,
)


def activation(f: Any, *bounds: float) -> tuple[Sample, ...]:
    """Samples between the bounds at which the function is not smooth."""
    ends = (-4.0, *bounds, 4.0)
    pieces = [(low + 0.1, high - 0.1) for low, high in itertools.pairwise(ends)]
    return tuple(S(f, (2, 1, 3), over=piece) for piece in pieces)


ACTIVATIONS = {
    "nn.functional.celu": activation(lambda x: F.celu(x, 1.5), 0),
    "nn.functional.elu": activation(lambda x: F.elu(x, 0.7), 0),
    "nn.functional.gelu": (
        *activation(F.gelu),
        *activation(lambda x: F.gelu(x, approximate="tanh")),
    ),
    "nn.functional.glu": (S(F.glu, (2, 4)), S(lambda x: F.glu(x, 0), (2, 3))),
    "nn.functional.gumbel_softmax": (
        S(lambda x: F.gumbel_softmax(x, tau=0.8), (2, 3), random=True),
        Z(lambda x: F.gumbel_softmax(x, hard=True, dim=0), (2, 3), random=True),
    ),
    "nn.functional.relu_": activation(lambda x: F.relu_(x.clone()), 0),
    "nn.functional.leaky_relu_": activation(lambda x: F.leaky_relu_(x.clone(), 0.2), 0),
    "nn.functional.rrelu_": (S(lambda x: F.rrelu_(x.clone()), (2, 3), over=NEGATIVE),),
    "nn.functional.threshold_": activation(lambda x: F.threshold_(x.clone(), 0.6, -1.2), 0.6),
    "nn.functional.hardtanh_": activation(lambda x: F.hardtanh_(x.clone(), -1.5, 0.5), -1.5, 0.5),
    "nn.functional.elu_": activation(lambda x: F.elu_(x.clone(), 0.7), 0),
    "nn.functional.celu_": activation(lambda x: F.celu_(x.clone(), 1.5), 0),
    "nn.functional.selu_": activation(lambda x: F.selu_(x.clone()), 0),
    "nn.functional.hardshrink": activation(F.hardshrink, -0.5, 0.5),
    "nn.functional.hardsigmoid": activation(F.hardsigmoid, -3, 3),
    "nn.functional.hardswish": activation(F.hardswish, -3, 3),
    "nn.functional.hardtanh": activation(lambda x: F.hardtanh(x, -1.5, 0.5), -1.5, 0.5),
    "nn.functional.leaky_relu": activation(lambda x: F.leaky_relu(x, 0.2), 0),
    "nn.functional.logsigmoid": activation(F.logsigmoid),
    "nn.functional.mish": activation(F.mish),
    "nn.functional.prelu": (
        S(F.prelu, (2, 3, 2), (3,), over=[NEGATIVE, UNIT]),
        S(F.prelu, (2, 3), (1,)),
    ),
    "nn.functional.relu": activation(F.relu, 0),
    "nn.functional.relu6": activation(lambda x: F.relu6(2 * x), 0, 3),
    "nn.functional.rrelu": (
        S(F.rrelu, (2, 3), over=NEGATIVE),
        S(lambda x: F.rrelu(x, training=True), (2, 3), over=NEGATIVE, random=True),
    ),
    "nn.functional.selu": activation(F.selu, 0),
    "nn.functional.silu": activation(F.silu),
    "nn.functional.softplus": (
        *activation(F.softplus),
        *activation(lambda x: F.softplus(x, beta=1.7, threshold=1.7), 1),
    ),
    "nn.functional.softshrink": activation(lambda x: F.softshrink(x, 0.8), -0.8, 0.8),
    "nn.functional.softsign": activation(F.softsign, 0),
    "nn.functional.tanhshrink": activation(F.tanhshrink),
    "nn.functional.threshold": activation(lambda x: F.threshold(x, 0.6, -1.2), 0.6),
}


def reduced(f: Any, *shapes: tuple[int, ...], **rest: Any) -> tuple[Sample, ...]:
    """Samples of a loss with each reduction."""
    return tuple(
        S(lambda *x, r=r: f(*x, reduction=r), *shapes, **rest) for r in ("mean", "sum", "none")
    )


def statistics(x: Any) -> list[Any]:
    """Running means and variances of three channels."""
    return [constant([0.1, 0.2, 0.3], x.dtype), constant([1.1, 0.9, 1.3], x.dtype)]


LAYERS = {
    "nn.functional.linear": (
        S(F.linear, (2, 2, 3), (2, 3), (2,)),
        S(F.linear, (3,), (2, 3)),
    ),
    "nn.functional.bilinear": (S(F.bilinear, (2, 2), (2, 3), (2, 2, 3), (2,)),),
    "nn.functional.conv1d": (
        S(F.conv1d, (2, 2, 5), (3, 2, 3), (3,)),
        S(
            lambda x, w: F.conv1d(x, w, stride=2, padding=2, dilation=2, groups=2),
            (4, 5),
            (4, 2, 2),
        ),
        S(lambda x, w: F.conv1d(x, w, padding="same"), (1, 1, 5), (2, 1, 4)),
    ),
    "nn.functional.conv2d": (
        S(F.conv2d, (1, 2, 3, 4), (2, 2, 2, 3), (2,)),
        S(
            lambda x, w: F.conv2d(x, w, stride=2, padding=(0, 1), groups=2),
            (1, 2, 4, 3),
            (2, 1, 3, 2),
        ),
        S(lambda x, w: F.conv2d(x, w, dilation=2, padding=1), (1, 4, 3), (2, 1, 2, 2)),
    ),
    "nn.functional.conv3d": (
        S(
            lambda x, w, b: F.conv3d(x, w, b, stride=(1, 2, 1), padding=1),
            (1, 1, 2, 3, 2),
            (2, 1, 2, 2, 1),
            (2,),
        ),
    ),
    "nn.functional.conv_transpose1d": (
        S(F.conv_transpose1d, (2, 2, 3), (2, 2, 2), (2,)),
        S(
            lambda x, w: F.conv_transpose1d(
                x, w, stride=2, padding=1, output_padding=1, groups=2, dilation=2
            ),
            (1, 4, 3),
            (4, 1, 2),
        ),
    ),
    "nn.functional.conv_transpose2d": (
        S(
            lambda x, w, b: F.conv_transpose2d(x, w, b, stride=2, padding=(0, 1)),
            (1, 2, 2, 3),
            (2, 1, 2, 3),
            (1,),
        ),
    ),
    "nn.functional.conv_transpose3d": (
        S(
            lambda x, w: F.conv_transpose3d(x, w, stride=(2, 1, 1)),
            (1, 1, 2, 2, 2),
            (1, 2, 2, 1, 2),
        ),
    ),
    **each(
        "nn.functional.max_pool1d nn.functional.avg_pool1d",
        lambda f: (
            S(lambda x: f(x, 2), (2, 1, 5)),
            S(lambda x: f(x, 3, stride=2, padding=1, ceil_mode=True), (2, 6)),
        ),
    ),
    **each(
        "nn.functional.max_pool2d nn.functional.avg_pool2d",
        lambda f: (
            S(lambda x: f(x, 2), (1, 2, 4, 3)),
            S(lambda x: f(x, (3, 2), stride=(2, 1), padding=1, ceil_mode=True), (1, 4, 3)),
        ),
    ),
    **each(
        "nn.functional.max_pool3d nn.functional.avg_pool3d",
        lambda f: (S(lambda x: f(x, (1, 2, 2), stride=1, padding=(0, 1, 0)), (1, 1, 2, 3, 3)),),
    ),
    "nn.functional.lp_pool1d": (S(lambda x: F.lp_pool1d(x, 3, 2), (2, 1, 5), over=POSITIVE),),
    "nn.functional.lp_pool2d": (S(lambda x: F.lp_pool2d(x, 2, 2, 1), (1, 3, 3), over=POSITIVE),),
    "nn.functional.lp_pool3d": (S(lambda x: F.lp_pool3d(x, 2, 2), (1, 2, 2, 3), over=POSITIVE),),
    "nn.functional.max_unpool1d": (S(lambda x: F.max_unpool1d(x, ints([1, 2]), 2), (1, 2)),),
    "nn.functional.max_unpool2d": (S(lambda x: F.max_unpool2d(x, ints([[1, 6]]), 2), (1, 1, 2)),),
    "nn.functional.max_unpool3d": (
        S(lambda x: F.max_unpool3d(x, ints([[[1, 12]]]), 2), (1, 1, 1, 2)),
    ),
    **each(
        "nn.functional.adaptive_avg_pool1d nn.functional.adaptive_max_pool1d",
        lambda f: (S(lambda x: f(x, 3), (2, 1, 5)),),
    ),
    **each(
        "nn.functional.adaptive_avg_pool2d nn.functional.adaptive_max_pool2d",
        lambda f: (S(lambda x: f(x, (3, None)), (1, 2, 5, 2)), S(lambda x: f(x, 2), (1, 3, 4))),
    ),
    **each(
        "nn.functional.adaptive_avg_pool3d nn.functional.adaptive_max_pool3d",
        lambda f: (S(lambda x: f(x, (2, 1, 2)), (1, 1, 3, 2, 3)),),
    ),
    "nn.functional.batch_norm": (
        S(
            lambda x, w, b: F.batch_norm(x, *statistics(x), w, b, training=True),
            (2, 3, 2),
            (3,),
            (3,),
        ),
        S(lambda x, w, b: F.batch_norm(x, *statistics(x), w, b), (2, 3), (3,), (3,)),
        S(lambda x: F.batch_norm(x, None, None, training=True), (4, 3)),
    ),
    "nn.functional.instance_norm": (
        S(lambda x, w, b: F.instance_norm(x, weight=w, bias=b), (2, 3, 3), (3,), (3,)),
        S(lambda x: F.instance_norm(x, *statistics(x), use_input_stats=False), (2, 3, 2)),
    ),
    "nn.functional.layer_norm": (
        S(lambda x, w, b: F.layer_norm(x, (3,), w, b), (2, 2, 3), (3,), (3,)),
        S(lambda x: F.layer_norm(x, (2, 3)), (2, 2, 3)),
    ),
    "nn.functional.rms_norm": (
        S(lambda x, w: F.rms_norm(x, (3,), w), (2, 2, 3), (3,)),
        S(lambda x: F.rms_norm(x, (2, 3), eps=0.1), (2, 2, 3)),
    ),
    "nn.functional.group_norm": (
        S(lambda x, w, b: F.group_norm(x, 2, w, b), (2, 4, 2), (4,), (4,)),
    ),
    "nn.functional.fractional_max_pool2d": (
        S(lambda x: F.fractional_max_pool2d(x, 2, 3), (1, 2, 5, 6), random=True),
        S(lambda x: F.fractional_max_pool2d(x, (2, 1), None, 0.6), (2, 5, 4), random=True),
    ),
    "nn.functional.fractional_max_pool3d": (
        S(lambda x: F.fractional_max_pool3d(x, 2, 2), (1, 4, 3, 4), random=True),
    ),
    "nn.functional.local_response_norm": (
        S(lambda x: F.local_response_norm(x, 3, alpha=0.5), (2, 4, 2)),
    ),
    "nn.functional.normalize": (
        S(F.normalize, (2, 3, 2)),
        S(lambda x: F.normalize(x, p=3.0, dim=0), (3, 2), over=POSITIVE),
    ),
    **each(
        "nn.functional.dropout nn.functional.alpha_dropout",
        lambda f: (
            S(lambda x: f(x, 0.3, training=True), (3, 4), random=True),
            S(lambda x: f(x, training=False), (3,)),
        ),
    ),
    "nn.functional.feature_alpha_dropout": (
        S(lambda x: F.feature_alpha_dropout(x, 0.3, training=True), (2, 3, 2), random=True),
    ),
    "nn.functional.dropout1d": (S(lambda x: F.dropout1d(x, 0.3), (2, 3, 2), random=True),),
    "nn.functional.dropout2d": (S(lambda x: F.dropout2d(x, 0.3), (2, 3, 2, 1), random=True),),
    "nn.functional.dropout3d": (S(lambda x: F.dropout3d(x, 0.3), (2, 3, 1, 2, 1), random=True),),
    "nn.functional.embedding": (
        S(lambda w: F.embedding(ints([2, 0], [2, 1]), w), (3, 2)),
        S(lambda w: F.embedding(ints(2, 0, 1), w), (3, 2)),
    ),
    "nn.functional.embedding_bag": tuple(
        S(lambda w, m=mode: F.embedding_bag(ints(2, 0, 1, 2), w, ints(0, 1, 1), mode=m), (3, 2))
        for mode in ("sum", "mean", "max")
    ),
    "nn.functional.one_hot": (Z(lambda: F.one_hot(ints(2, 0, 1), 4)),),
    "nn.functional.gru_steps": (
        S(F.gru_steps, (2, 2, 6), (1, 2, 2), (6, 2), (6,)),
        S(F.gru_steps, (1, 3, 3), (1, 3, 1), (3, 1), (3,)),
    ),
    "nn.functional.lstm_steps": (
        S(F.lstm_steps, (2, 2, 8), (2, 2, 2), (8, 2)),
        S(F.lstm_steps, (1, 3, 4), (2, 3, 1), (4, 1)),
    ),
    "nn.functional.rnn_steps": (
        S(F.rnn_steps, (3, 2, 2), (1, 2, 2), (2, 2)),
        S(
            lambda x, h, w: F.rnn_steps(x, h, w, "relu"),
            (3, 2, 2),
            (1, 2, 2),
            (2, 2),
            over=POSITIVE,
        ),
    ),
    "nn.functional.scaled_dot_product_attention": (
        S(F.scaled_dot_product_attention, (2, 2, 3), (2, 4, 3), (2, 4, 2)),
        S(
            lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=0.7),
            (3, 2),
            (3, 2),
            (3, 2),
        ),
        S(
            lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, m),
            (2, 2),
            (3, 2),
            (3, 2),
            (2, 3),
        ),
        S(
            lambda q, k, v: F.scaled_dot_product_attention(q, k, v, bools([1, 0, 1], [1, 1, 0])),
            (2, 2),
            (3, 2),
            (3, 2),
        ),
    ),
    "nn.functional.fold": (
        S(lambda x: F.fold(x, (3, 4), (2, 2), stride=(1, 2)), (1, 4, 4)),
        S(lambda x: F.fold(x, 2, 2, dilation=2, padding=1), (1, 4, 4)),
    ),
    "nn.functional.unfold": (
        S(lambda x: F.unfold(x, (2, 2), stride=(1, 2)), (1, 2, 3, 4)),
        S(lambda x: F.unfold(x, 2, dilation=2, padding=1), (1, 1, 3, 3)),
    ),
    "nn.functional.interpolate": (
        S(lambda x: F.interpolate(x, scale_factor=2), (1, 2, 3)),
        S(lambda x: F.interpolate(x, 5, mode="linear"), (2, 1, 3)),
        S(lambda x: F.interpolate(x, (4, 3), mode="bilinear"), (1, 1, 3, 4)),
        S(lambda x: F.interpolate(x, (4, 3), mode="bilinear", align_corners=True), (1, 1, 3, 2)),
    ),
    "nn.functional.affine_grid": (S(lambda t: F.affine_grid(t, (1, 2, 2, 3)), (1, 2, 3)),),
    "nn.functional.grid_sample": (
        S(
            lambda x, g: F.grid_sample(x, g, align_corners=True),
            (1, 2, 2, 2),
            (1, 2, 1, 2),
            over=[UNIT, UNIT],
        ),
    ),
    "nn.functional.channel_shuffle": (S(lambda x: F.channel_shuffle(x, 2), (2, 4, 2)),),
    "nn.functional.upsample": (S(lambda x: F.upsample(x, scale_factor=2), (1, 2, 3)),),
    "nn.functional.pixel_shuffle": (S(lambda x: F.pixel_shuffle(x, 2), (1, 4, 2, 3)),),
    "nn.functional.pixel_unshuffle": (S(lambda x: F.pixel_unshuffle(x, 2), (1, 4, 2)),),
}

CLASSES = ints(2, 0, 1)

SIGNS = ints(1, -1, 1)
TARGETS = ints([1, 0, 1], [0, 0, 1])

LOSSES = {
    "nn.functional.l1_loss": reduced(F.l1_loss, (2, 3), (2, 3)),
    "nn.functional.huber_loss": (
        *reduced(lambda a, b, **k: F.huber_loss(a, b, delta=1.3, **k), (2, 3), (2, 3)),
        S(lambda a, b, w: F.huber_loss(a, b, weight=w), (2, 3), (2, 3), (2, 3), over=POSITIVE),
    ),
    "nn.functional.smooth_l1_loss": (
        *reduced(lambda a, b, **k: F.smooth_l1_loss(a, b, beta=1.3, **k), (2, 3), (2, 3)),
        S(lambda a, b: F.smooth_l1_loss(a, b, beta=0), (3,), (3,)),
    ),
    "nn.functional.mse_loss": (
        *reduced(F.mse_loss, (2, 3), (2, 3)),
        S(lambda a, b, w: F.mse_loss(a, b, weight=w), (2, 3), (2, 3), (2, 3), over=POSITIVE),
    ),
    "nn.functional.linear_cross_entropy": (
        S(lambda x, w: F.linear_cross_entropy(x, w, CLASSES), (3, 2), (4, 2)),
        S(
            lambda x, w, b: F.linear_cross_entropy(x, w, ints([0, 2], [1, 1]), linear_bias=b),
            *((2, 3), (3, 2, 3), (3, 2)),
        ),
    ),
    "nn.functional.cross_entropy": (
        *reduced(lambda x, **k: F.cross_entropy(x, CLASSES, **k), (3, 4)),
        S(
            lambda x, w: F.cross_entropy(x, CLASSES, w, label_smoothing=0.2),
            (3, 4),
            (4,),
            over=POSITIVE,
        ),
        S(lambda x, t: F.cross_entropy(x, t, label_smoothing=0.1), (2, 3, 2), (2, 3, 2)),
        S(lambda x: F.cross_entropy(x, CLASSES, ignore_index=0), (3, 4)),
    ),
    "nn.functional.nll_loss": (
        *reduced(lambda x, **k: F.nll_loss(x, CLASSES, **k), (3, 4)),
        S(lambda x, w: F.nll_loss(x, CLASSES, w, ignore_index=0), (3, 4), (4,), over=POSITIVE),
    ),
    "nn.functional.binary_cross_entropy": (
        *reduced(F.binary_cross_entropy, (2, 3), (2, 3), over=UNIT),
        S(F.binary_cross_entropy, (2, 3), (2, 3), (3,), over=UNIT),
    ),
    "nn.functional.binary_cross_entropy_with_logits": (
        *reduced(F.binary_cross_entropy_with_logits, (2, 3), (2, 3), over=[(-3, 3), UNIT]),
        S(
            lambda x, t, w, p: F.binary_cross_entropy_with_logits(x, t, w, pos_weight=p),
            (2, 3),
            (2, 3),
            (3,),
            (3,),
            over=[(-3, 3), UNIT, UNIT, POSITIVE],
        ),
    ),
    "nn.functional.kl_div": (
        *reduced(F.kl_div, (2, 3), (2, 3), over=[NEGATIVE, UNIT]),
        S(lambda x, t: F.kl_div(x, t, "batchmean", log_target=True), (2, 3), (2, 3)),
    ),
    "nn.functional.gaussian_nll_loss": reduced(
        lambda x, t, v, **k: F.gaussian_nll_loss(x, t, v, full=True, **k),
        (2, 3),
        (2, 3),
        (2, 3),
        over=[(-2, 2), (-2, 2), POSITIVE],
    ),
    "nn.functional.poisson_nll_loss": (
        *reduced(F.poisson_nll_loss, (2, 3), (2, 3), over=POSITIVE),
        S(
            lambda x, t: F.poisson_nll_loss(x, t, log_input=False, full=True),
            (2, 3),
            (2, 3),
            over=[POSITIVE, (1.1, 4)],
        ),
    ),
    "nn.functional.hinge_embedding_loss": reduced(
        lambda x, **k: F.hinge_embedding_loss(x, SIGNS.expand(2, 3), **k), (2, 3)
    ),
    "nn.functional.soft_margin_loss": reduced(
        lambda x, **k: F.soft_margin_loss(x, SIGNS.expand(2, 3), **k), (2, 3)
    ),
    "nn.functional.margin_ranking_loss": reduced(
        lambda a, b, **k: F.margin_ranking_loss(a, b, SIGNS, margin=0.1, **k), (3,), (3,)
    ),
    "nn.functional.multi_margin_loss": (
        *reduced(lambda x, **k: F.multi_margin_loss(x, CLASSES, **k), (3, 4)),
        S(lambda x, w: F.multi_margin_loss(x, CLASSES, 2, 0.5, w), (3, 3), (3,), over=POSITIVE),
    ),
    "nn.functional.multilabel_margin_loss": reduced(
        lambda x, reduction: F.multilabel_margin_loss(
            x, ints([2, 0, -1], [1, -1, 0]), reduction=reduction
        ),
        (2, 3),
        over=UNIT,
    ),
    "nn.functional.ctc_loss": reduced(
        lambda x, reduction: F.ctc_loss(
            x, ints([1, 1], [2, 1]), [4, 3], [2, 1], reduction=reduction
        ),
        (4, 2, 3),
    ),
    "nn.functional.multilabel_soft_margin_loss": (
        *reduced(lambda x, **k: F.multilabel_soft_margin_loss(x, TARGETS, **k), (2, 3)),
        S(lambda x, w: F.multilabel_soft_margin_loss(x, TARGETS, w), (2, 3), (3,)),
    ),
    "nn.functional.cosine_embedding_loss": reduced(
        lambda a, b, **k: F.cosine_embedding_loss(a, b, SIGNS, margin=-0.9, **k), (3, 2), (3, 2)
    ),
    "nn.functional.cosine_similarity": (
        S(F.cosine_similarity, (2, 3), (2, 3)),
        S(lambda a, b: F.cosine_similarity(a, b, dim=0), (3, 2), (3, 1)),
    ),
    "nn.functional.pdist": (S(F.pdist, (4, 2)), S(lambda x: F.pdist(x, 3.0), (3, 2))),
    "nn.functional.pairwise_distance": (
        S(F.pairwise_distance, (2, 3), (2, 3)),
        S(lambda a, b: F.pairwise_distance(a, b, p=3, keepdim=True), (2, 3), (3,)),
    ),
    "nn.functional.triplet_margin_loss": (
        *reduced(lambda *x, **k: F.triplet_margin_loss(*x, margin=3, **k), (2, 3), (2, 3), (2, 3)),
        S(lambda *x: F.triplet_margin_loss(*x, p=1, swap=True), (2, 3), (2, 3), (2, 3)),
    ),
    "nn.functional.triplet_margin_with_distance_loss": (
        S(F.triplet_margin_with_distance_loss, (2, 3), (2, 3), (2, 3)),
        S(
            lambda *x: F.triplet_margin_with_distance_loss(
                *x, distance_function=lambda a, b: (a - b).square().sum(-1), swap=True, margin=9
            ),
            (2, 3),
            (2, 3),
            (2, 3),
        ),
    ),
}
