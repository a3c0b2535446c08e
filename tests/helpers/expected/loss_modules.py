"""References of losses as modules."""

from __future__ import annotations

import numpy as np

import minigrad.nn as nn
from expected.module_base import Layer, f, plain

CLASSES, SIGNS = np.array([2, 0, 1]), np.array([1, -1, 1])

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
