"""Loss and distance modules. The docstring of each function has the formula.

A call takes the inputs of the function. Weights are buffers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY
from typing import TYPE_CHECKING

from minigrad.nn import functional as F  # noqa: N812 - its usual name
from minigrad.nn.function_module import FunctionModule

if TYPE_CHECKING:
    from minigrad._tensor import Tensor

__all__ = [
    "BCELoss",
    "BCEWithLogitsLoss",
    "CTCLoss",
    "CosineEmbeddingLoss",
    "CosineSimilarity",
    "CrossEntropyLoss",
    "GaussianNLLLoss",
    "HingeEmbeddingLoss",
    "HuberLoss",
    "KLDivLoss",
    "L1Loss",
    "MSELoss",
    "MarginRankingLoss",
    "MultiLabelMarginLoss",
    "MultiLabelSoftMarginLoss",
    "MultiMarginLoss",
    "NLLLoss",
    "PairwiseDistance",
    "PoissonNLLLoss",
    "SmoothL1Loss",
    "SoftMarginLoss",
    "TripletMarginLoss",
    "TripletMarginWithDistanceLoss",
]

# ---- numbers and distributions -------------------------------------------------------------------


class MSELoss(FunctionModule, function=F.mse_loss):
    """:func:`minigrad.nn.functional.mse_loss` as a module."""

    reduction: str = "mean"


class L1Loss(FunctionModule, function=F.l1_loss):
    """:func:`minigrad.nn.functional.l1_loss` as a module."""

    reduction: str = "mean"


class HuberLoss(FunctionModule, function=F.huber_loss):
    """:func:`minigrad.nn.functional.huber_loss` as a module."""

    reduction: str = "mean"
    delta: float = 1.0


class SmoothL1Loss(FunctionModule, function=F.smooth_l1_loss):
    """:func:`minigrad.nn.functional.smooth_l1_loss` as a module."""

    reduction: str = "mean"
    beta: float = 1.0


class KLDivLoss(FunctionModule, function=F.kl_div):
    """:func:`minigrad.nn.functional.kl_div` as a module."""

    reduction: str = "mean"
    log_target: bool = False


class GaussianNLLLoss(FunctionModule, function=F.gaussian_nll_loss):
    """:func:`minigrad.nn.functional.gaussian_nll_loss` as a module."""

    _: KW_ONLY
    full: bool = False
    eps: float = 1e-6
    reduction: str = "mean"


class PoissonNLLLoss(FunctionModule, function=F.poisson_nll_loss):
    """:func:`minigrad.nn.functional.poisson_nll_loss` as a module."""

    log_input: bool = True
    full: bool = False
    eps: float = 1e-8
    reduction: str = "mean"


# ---- classes -------------------------------------------------------------------------------------


class CrossEntropyLoss(FunctionModule, function=F.cross_entropy, buffers=("weight",)):
    """:func:`minigrad.nn.functional.cross_entropy` as a module; the weight is a buffer."""

    weight: Tensor | None = None
    ignore_index: int = -100
    reduction: str = "mean"
    label_smoothing: float = 0.0


class NLLLoss(FunctionModule, function=F.nll_loss, buffers=("weight",)):
    """:func:`minigrad.nn.functional.nll_loss` as a module; the weight is a buffer."""

    weight: Tensor | None = None
    ignore_index: int = -100
    reduction: str = "mean"


class MultiMarginLoss(FunctionModule, function=F.multi_margin_loss, buffers=("weight",)):
    """:func:`minigrad.nn.functional.multi_margin_loss` as a module; the weight is a buffer."""

    p: int = 1
    margin: float = 1.0
    weight: Tensor | None = None
    reduction: str = "mean"


class CTCLoss(FunctionModule, function=F.ctc_loss):
    """:func:`minigrad.nn.functional.ctc_loss` as a module."""

    blank: int = 0
    reduction: str = "mean"
    zero_infinity: bool = False


class BCELoss(FunctionModule, function=F.binary_cross_entropy, buffers=("weight",)):
    """:func:`minigrad.nn.functional.binary_cross_entropy` as a module; the weight is a buffer."""

    weight: Tensor | None = None
    reduction: str = "mean"


class BCEWithLogitsLoss(
    FunctionModule, function=F.binary_cross_entropy_with_logits, buffers=("weight", "pos_weight")
):
    """:func:`minigrad.nn.functional.binary_cross_entropy_with_logits` as a module; the weights are
    buffers.
    """

    weight: Tensor | None = None
    reduction: str = "mean"
    pos_weight: Tensor | None = None


class SoftMarginLoss(FunctionModule, function=F.soft_margin_loss):
    """:func:`minigrad.nn.functional.soft_margin_loss` as a module."""

    reduction: str = "mean"


class MultiLabelMarginLoss(FunctionModule, function=F.multilabel_margin_loss):
    """:func:`minigrad.nn.functional.multilabel_margin_loss` as a module."""

    reduction: str = "mean"


class MultiLabelSoftMarginLoss(
    FunctionModule, function=F.multilabel_soft_margin_loss, buffers=("weight",)
):
    """:func:`minigrad.nn.functional.multilabel_soft_margin_loss` as a module; the weight is a
    buffer.
    """

    weight: Tensor | None = None
    reduction: str = "mean"


# ---- distances -----------------------------------------------------------------------------------


class PairwiseDistance(FunctionModule, function=F.pairwise_distance):
    """:func:`minigrad.nn.functional.pairwise_distance` as a module."""

    p: float = 2.0
    eps: float = 1e-6
    keepdim: bool = False


class CosineSimilarity(FunctionModule, function=F.cosine_similarity):
    """:func:`minigrad.nn.functional.cosine_similarity` as a module."""

    dim: int = 1
    eps: float = 1e-8


class HingeEmbeddingLoss(FunctionModule, function=F.hinge_embedding_loss):
    """:func:`minigrad.nn.functional.hinge_embedding_loss` as a module."""

    margin: float = 1.0
    reduction: str = "mean"


class MarginRankingLoss(FunctionModule, function=F.margin_ranking_loss):
    """:func:`minigrad.nn.functional.margin_ranking_loss` as a module."""

    margin: float = 0.0
    reduction: str = "mean"


class CosineEmbeddingLoss(FunctionModule, function=F.cosine_embedding_loss):
    """:func:`minigrad.nn.functional.cosine_embedding_loss` as a module."""

    margin: float = 0.0
    reduction: str = "mean"


class TripletMarginLoss(FunctionModule, function=F.triplet_margin_loss):
    """:func:`minigrad.nn.functional.triplet_margin_loss` as a module."""

    margin: float = 1.0
    p: float = 2.0
    eps: float = 1e-6
    swap: bool = False
    reduction: str = "mean"


class TripletMarginWithDistanceLoss(FunctionModule, function=F.triplet_margin_with_distance_loss):
    """:func:`minigrad.nn.functional.triplet_margin_with_distance_loss` as a module."""

    _: KW_ONLY
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None
    margin: float = 1.0
    swap: bool = False
    reduction: str = "mean"
