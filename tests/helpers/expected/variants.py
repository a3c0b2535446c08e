"""Further sample calls, for values only: options that no sample of the catalogue sets."""

from __future__ import annotations

from typing import Any

import numpy as np
from samples import Sample
from samples.base import POSITIVE, UNIT, Z, bools, each, ints
from samples.linear_algebra import near_identity

import minigrad as mg
import minigrad.nn.functional as F
from minigrad import linalg


def undefined(x: Any) -> Any:
    """The tensor with NaN in its first column."""
    return x + (x - x) / bools(0, 1, 1)


def maxima(f: Any, *shape: int) -> tuple[Sample, ...]:
    """Maxima of dilated windows, and their positions."""
    return (Z(lambda x: f(x, 2, 1, 1, 2, True, True), shape),)


def means(f: Any, *shape: int) -> tuple[Sample, ...]:
    """Means without the padding, and means with sizes rounded up."""
    return (Z(lambda x: f(x, 2, 2, 1, ceil_mode=True, count_include_pad=False), shape),)


CLASSES = ints(2, 0, 1)

PLAIN: dict[str, tuple[Sample, ...]] = {
    "nan_to_num": (Z(lambda x: mg.nan_to_num(x, nan=7.0), (2, 3), before=undefined),),
    **each(
        "isclose allclose",
        lambda f: (
            Z(lambda a, b: f(a, b, rtol=0.3, atol=0.4), (2, 3), (2, 3)),
            Z(lambda x: f(x, x, equal_nan=True), (2, 3), before=undefined),
        ),
    ),
    **each(
        "var std var_mean std_mean", lambda f: (Z(lambda x: f(x, dim=0, unbiased=False), (3, 2)),)
    ),
    **each(
        "softmax log_softmax",
        lambda f: (Z(lambda x: f(x, dim=1, where=bools(1, 0, 1)), (2, 3)),),
    ),
    "searchsorted": (
        Z(lambda v: mg.searchsorted(ints(-1, 0, 0, 1), v.round(), right=True), (9,)),
        Z(lambda v: mg.searchsorted(ints(-1, 0, 0, 1), v.round(), side="right"), (9,)),
        Z(lambda v: mg.searchsorted(ints(1, 0, -1), v, sorter=ints(2, 1, 0)), (9,)),
    ),
    "histogram": (
        Z(lambda x, w: mg.histogram(x, 4, range=(-1.0, 1.0), weight=w), (3, 4), (3, 4)),
        Z(lambda x: mg.histogram(x, 4, range=(-1.0, 1.0), density=True), (3, 4)),
    ),
    "isin": (Z(lambda x: mg.isin(x, x[0], invert=True), (2, 3)),),
    "ravel": (Z(lambda x: mg.ravel(x, order="F"), (2, 3)),),
    "flatten": (Z(lambda x: mg.flatten(x, order="F"), (2, 3)),),
    "diagonal": (Z(lambda x: mg.diagonal(x, 0, 1, 2), (2, 3, 3)),),
    "linalg.diagonal": (Z(lambda x: linalg.diagonal(x, dim1=0, dim2=1), (3, 3, 2)),),
    "diagonal_scatter": (Z(lambda x, v: mg.diagonal_scatter(x, v, 1, 1, 0), (3, 4), (2,)),),
    "nonzero": (Z(lambda x: mg.nonzero(x > 0, as_tuple=True), (2, 3)),),
    "scatter": (Z(lambda x: mg.scatter(x, 0, ints([1, 0, 1]), value=1.5), (2, 3)),),
    "linalg.cross": (Z(lambda a, b: linalg.cross(a, b, dim=0), (3, 2), (3, 2)),),
    "pinverse": (Z(lambda x: mg.pinverse(x, rcond=0.5), (3, 2)),),
    "linalg.pinv": (
        Z(lambda x: linalg.pinv(x, rtol=0.5), (3, 2)),
        Z(lambda x: linalg.pinv(x, atol=1.5), (3, 2)),
    ),
    "linalg.cond": (Z(lambda x: linalg.cond(x, 1), (3, 3), matrix=near_identity),),
    "linalg.eigvalsh": (Z(lambda x: linalg.eigvalsh(x, "U"), (3, 3)),),
    "linalg.matrix_norm": (Z(lambda x: linalg.matrix_norm(x, "nuc", (0, 1), True), (3, 2, 2)),),
    "linalg.matrix_rank": (
        Z(lambda x: linalg.matrix_rank(x, rtol=0.5), (3, 2)),
        Z(lambda x: linalg.matrix_rank(x, atol=1.5), (3, 2)),
        Z(lambda x: linalg.matrix_rank(x + x.mT, hermitian=True), (3, 3)),
    ),
    "linalg.tensorinv": (
        Z(lambda x: linalg.tensorinv(x.reshape(4, 2, 2), ind=1), (4, 4), matrix=near_identity),
    ),
    "linalg.tensorsolve": (
        Z(
            lambda a, b: linalg.tensorsolve(a.reshape(2, 4, 2), b, dims=(1,)),
            (4, 4),
            (2, 2),
            matrix=lambda x: x + 3 * np.eye(len(x)),
        ),
    ),
}

LAYERS: dict[str, tuple[Sample, ...]] = {
    "gumbel_softmax": (Z(lambda x, n: F.gumbel_softmax(x, 0.8, noise=n, dim=0), (2, 3), (2, 3)),),
    "hardshrink": (Z(lambda x: F.hardshrink(x, 0.8), (2, 3)),),
    **{
        name: (Z(lambda x, f=f: f(x.clone(), 0.2, 0.4, True), (3, 4), random=True),)
        for name, f in (("rrelu", F.rrelu), ("rrelu_", F.rrelu_))
    },
    "conv3d": (
        Z(
            lambda x, w: F.conv3d(x, w, dilation=(1, 2, 1), groups=2),
            (1, 2, 2, 3, 2),
            (2, 1, 2, 2, 1),
        ),
    ),
    "conv_transpose2d": (
        Z(
            lambda x, w: F.conv_transpose2d(x, w, stride=2, output_padding=1, groups=2, dilation=2),
            (1, 2, 2, 3),
            (2, 1, 2, 2),
        ),
    ),
    "conv_transpose3d": (
        Z(
            lambda x, w, b: F.conv_transpose3d(
                x, w, b, stride=2, padding=1, output_padding=1, groups=2, dilation=2
            ),
            (1, 2, 2, 2, 2),
            (2, 1, 2, 2, 2),
            (2,),
        ),
    ),
    "max_pool1d": maxima(F.max_pool1d, 1, 2, 6),
    "max_pool2d": maxima(F.max_pool2d, 1, 5, 4),
    "max_pool3d": maxima(F.max_pool3d, 1, 4, 3, 4),
    "avg_pool1d": means(F.avg_pool1d, 1, 2, 6),
    "avg_pool2d": (
        *means(F.avg_pool2d, 1, 5, 4),
        Z(lambda x: F.avg_pool2d(x, 2, divisor_override=3), (1, 4, 4)),
    ),
    "avg_pool3d": (
        *means(F.avg_pool3d, 1, 4, 3, 4),
        Z(lambda x: F.avg_pool3d(x, 2, divisor_override=3), (1, 2, 4, 4)),
    ),
    "lp_pool1d": (Z(lambda x: F.lp_pool1d(x, 3, 2, 3, True), (1, 7), over=POSITIVE),),
    "lp_pool2d": (Z(lambda x: F.lp_pool2d(x, 2, 2, 3, True), (1, 4, 4), over=POSITIVE),),
    "lp_pool3d": (Z(lambda x: F.lp_pool3d(x, 2, 2, 3, True), (1, 4, 4, 4), over=POSITIVE),),
    "max_unpool1d": (Z(lambda x: F.max_unpool1d(x, ints([1, 3]), 3, 2, 1, (4,)), (1, 2)),),
    "max_unpool2d": (Z(lambda x: F.max_unpool2d(x, ints([[1, 7]]), 3, 2, 1, (2, 4)), (1, 1, 2)),),
    "max_unpool3d": (
        Z(lambda x: F.max_unpool3d(x, ints([[[1, 15]]]), 3, 2, 1, (2, 2, 4)), (1, 1, 1, 2)),
    ),
    "adaptive_max_pool1d": (Z(lambda x: F.adaptive_max_pool1d(x, 3, True), (2, 5)),),
    "adaptive_max_pool2d": (Z(lambda x: F.adaptive_max_pool2d(x, 2, True), (2, 3, 5)),),
    "adaptive_max_pool3d": (Z(lambda x: F.adaptive_max_pool3d(x, 2, True), (2, 3, 2, 4)),),
    "fractional_max_pool2d": (
        Z(
            lambda x: F.fractional_max_pool2d(x, 2, 3, return_indices=True),
            (1, 5, 6),
            random=True,
        ),
    ),
    "fractional_max_pool3d": (
        Z(
            lambda x: F.fractional_max_pool3d(x, 2, None, 0.6, return_indices=True),
            (1, 4, 4, 4),
            random=True,
        ),
    ),
    "batch_norm": (Z(lambda x: F.batch_norm(x, None, None, training=True, eps=0.1), (4, 3)),),
    "instance_norm": (Z(lambda x: F.instance_norm(x, eps=0.1), (2, 3, 4)),),
    "layer_norm": (Z(lambda x: F.layer_norm(x, (3,), eps=0.1), (2, 3)),),
    "group_norm": (Z(lambda x: F.group_norm(x, 2, eps=0.1), (2, 4, 3)),),
    "local_response_norm": (Z(lambda x: F.local_response_norm(x, 3, 0.5, 0.6, 1.5), (2, 4, 2)),),
    "normalize": (Z(lambda x: F.normalize(x, eps=2.0), (4, 2)),),
    "embedding": (
        Z(
            lambda w: F.embedding(ints(2, 0, 2), w.detach().clone(), max_norm=1.0, norm_type=1.0),
            (3, 2),
        ),
    ),
    "embedding_bag": (
        Z(
            lambda w, s: F.embedding_bag(ints([2, 0], [1, 2]), w, mode="sum", per_sample_weights=s),
            (3, 2),
            (2, 2),
        ),
        Z(
            lambda w: F.embedding_bag(
                ints(2, 0, 1, 2), w, ints(0, 1, 4), include_last_offset=True, padding_idx=1
            ),
            (3, 2),
        ),
        Z(
            lambda w: F.embedding_bag(
                ints([2, 0]), w.detach().clone(), max_norm=1.0, norm_type=1.0
            ),
            (3, 2),
        ),
    ),
    "scaled_dot_product_attention": (
        Z(
            lambda q, k, v: F.scaled_dot_product_attention(q, k, v, enable_gqa=True),
            (1, 4, 2, 3),
            (1, 2, 3, 3),
            (1, 2, 3, 2),
        ),
    ),
    "interpolate": (
        *[
            Z(lambda x, m=m: F.interpolate(x, (5, 3), mode=m), (1, 1, 3, 4))
            for m in ("area", "bicubic", "nearest-exact", "nearest")
        ],
        Z(lambda x: F.interpolate(x, (2, 3, 4), mode="trilinear"), (1, 1, 3, 2, 2)),
        Z(
            lambda x: F.interpolate(
                x, scale_factor=1.5, mode="linear", recompute_scale_factor=True
            ),
            (1, 1, 5),
        ),
    ),
    "upsample": (
        Z(
            lambda x: F.upsample(x, size=(5, 3), mode="bilinear", align_corners=True),
            (1, 1, 3, 4),
        ),
    ),
    "affine_grid": (Z(lambda t: F.affine_grid(t, (1, 2, 2, 3), align_corners=True), (1, 2, 3)),),
    "grid_sample": tuple(
        Z(
            lambda x, g, m=m, p=p, a=a: F.grid_sample(x, g, m, p, a),
            (1, 2, 3, 4),
            (1, 3, 5, 2),
            over=[(-2, 2), (-1.6, 1.6)],
        )
        for m in ("bilinear", "nearest", "bicubic")
        for p in ("zeros", "border", "reflection")
        for a in (False, True)
    ),
}

LOSSES: dict[str, tuple[Sample, ...]] = {
    "l1_loss": (
        Z(lambda a, b, w: F.l1_loss(a, b, weight=w), (2, 3), (2, 3), (2, 3), over=POSITIVE),
    ),
    "linear_cross_entropy": (
        Z(
            lambda x, w, v: F.linear_cross_entropy(
                x, w, CLASSES, weight=v, label_smoothing=0.2, reduction="sum"
            ),
            (3, 2),
            (4, 2),
            (4,),
            over=POSITIVE,
        ),
        Z(lambda x, w: F.linear_cross_entropy(x, w, CLASSES, ignore_index=0), (3, 2), (4, 2)),
    ),
    "gaussian_nll_loss": (
        Z(lambda x, t, v: F.gaussian_nll_loss(x, t, v, eps=1.0), (2, 3), (2, 3), (2, 3), over=UNIT),
    ),
    "poisson_nll_loss": (
        Z(
            lambda x, t: F.poisson_nll_loss(x, t, log_input=False, eps=0.5),
            (2, 3),
            (2, 3),
            over=POSITIVE,
        ),
    ),
    "hinge_embedding_loss": (
        Z(lambda x: F.hinge_embedding_loss(x, ints(1, -1, -1), margin=0.3), (3,)),
    ),
    "ctc_loss": (
        Z(
            lambda x: F.ctc_loss(x, ints([0, 0], [2, 0]), [4, 3], [2, 1], blank=1),
            (4, 2, 3),
        ),
        Z(
            lambda x: F.ctc_loss(
                x, ints([1, 1], [2, 2]), [4, 2], [2, 2], reduction="none", zero_infinity=True
            ),
            (4, 2, 3),
        ),
    ),
    "cosine_similarity": (Z(lambda a, b: F.cosine_similarity(a, b, eps=2.0), (2, 3), (2, 3)),),
    "pairwise_distance": (Z(lambda a, b: F.pairwise_distance(a, b, eps=0.5), (2, 3), (2, 3)),),
    "triplet_margin_loss": (
        Z(lambda *x: F.triplet_margin_loss(*x, eps=0.5), (2, 3), (2, 3), (2, 3)),
    ),
    "triplet_margin_with_distance_loss": (
        Z(
            lambda *x: F.triplet_margin_with_distance_loss(*x, reduction="sum", margin=9),
            (2, 3),
            (2, 3),
            (2, 3),
        ),
    ),
}

VARIANTS: dict[str, tuple[Sample, ...]] = {
    **PLAIN,
    **{f"nn.functional.{n}": s for n, s in (LAYERS | LOSSES).items()},
}

# Options that change no value of a result, by reason; of one function, or of all.
NO_VALUE: dict[str, str] = {
    "where a result lies, and its dtype, which tests of dtypes compare": """
        device dtype generator inplace layout memory_format out out_int32
    """,
    "PyTorch's older spelling of the reduction": "reduce size_average",
    "how a value is found, or how exactly": """
        isin.assume_unique cdist.compute_mode linalg.lstsq.driver linalg.svd.driver
        linalg.svdvals.driver
        nn.functional.linear_cross_entropy.options repeat_interleave.output_size
        linalg.lstsq.rcond sort.stable argsort.stable topk.sorted unique.sorted
    """,
    "gradients alone": """
        gather.sparse_grad nn.functional.embedding.padding_idx
        nn.functional.embedding.scale_grad_by_freq nn.functional.embedding.sparse
        nn.functional.embedding_bag.scale_grad_by_freq nn.functional.embedding_bag.sparse
    """,
    "running statistics, which test_running_statistics compares": """
        nn.functional.batch_norm.momentum nn.functional.instance_norm.momentum
    """,
    "refused, or of no effect as in PyTorch": """
        nn.functional.fractional_max_pool2d._random_samples
        nn.functional.fractional_max_pool3d._random_samples nn.functional.interpolate.antialias
        nn.functional.gumbel_softmax.eps
    """,
    "the input as it is, in evaluation": """
        nn.functional.dropout1d.training nn.functional.dropout2d.training
        nn.functional.dropout3d.training nn.functional.scaled_dot_product_attention.dropout_p
    """,
}
NO_VALUE_NAMES = {option for names in NO_VALUE.values() for option in names.split()}
