"""References of losses and distances, by definition."""

from __future__ import annotations

import itertools

import numpy as np

from expected.base import log_softmax, prefixed, sigmoid


def _reduced(losses, reduction="mean"):
    return {"mean": np.mean, "sum": np.sum, "none": np.asarray}[reduction](losses)


def _weighted(losses, weight, reduction="mean"):
    """Weighted losses. The mean divides by the sum of weights."""
    if weight is None:
        return _reduced(losses, reduction)
    total = losses * weight
    return (
        total.sum() / np.broadcast_to(weight, losses.shape).sum()
        if reduction == "mean"
        else (_reduced(total, reduction))
    )


def _huber(a, b, delta=1.0, weight=None, reduction="mean"):
    d = np.abs(a - b)
    losses = np.where(d <= delta, d * d / 2, delta * (d - delta / 2))
    # the mean is over all elements
    return _reduced(losses * (1 if weight is None else weight), reduction)


def _smooth_l1(a, b, beta=1.0, reduction="mean"):
    d = np.abs(a - b)
    inner = d * d / (2 * beta) if beta else d
    return _reduced(np.where(d < beta, inner, d - beta / 2), reduction)


def _nll(x, target, weight=None, ignore_index=-100, reduction="mean"):
    """The negative log-likelihood.

    Classes are the second dimension, or the first without a batch.
    """
    weight = np.ones(x.shape[1]) if weight is None else weight
    lines = np.moveaxis(x, 1, -1)
    losses, counts = np.zeros(target.shape), np.zeros(target.shape)
    for at in np.ndindex(target.shape):
        if target[at] != ignore_index:
            counts[at] = weight[target[at]]
            losses[at] = -counts[at] * lines[at][target[at]]
    return losses.sum() / counts.sum() if reduction == "mean" else _reduced(losses, reduction)


def _cross_entropy(
    x, target, weight=None, ignore_index=-100, reduction="mean", label_smoothing=0.0
):
    logs = log_softmax(x, 1)
    classes = x.shape[1]
    if target.dtype.kind == "f":
        soft = (1 - label_smoothing) * target + label_smoothing / classes
        return (
            _reduced(-(soft * logs).sum(1), reduction)
            if reduction != "mean"
            else (-(soft * logs).sum() / (x.size / classes))
        )
    plain = _nll(logs, target, weight, ignore_index, reduction)
    if not label_smoothing:
        return plain
    # each class has label_smoothing / classes; the mean is over the weights of the targets
    w = np.ones(classes) if weight is None else weight
    even = -(logs * w).sum(1) / classes
    even = even.sum() / w[target].sum() if reduction == "mean" else _reduced(even, reduction)
    return (1 - label_smoothing) * plain + label_smoothing * even


def _linear_cross_entropy(x, linear_weight, target, linear_bias=None, **options):
    """Cross entropy of a product. Further dimensions of the weights follow the classes."""
    lines = linear_weight.reshape(-1, linear_weight.shape[-1])
    bias = 0 if linear_bias is None else linear_bias.ravel()
    scores = (x @ lines.T + bias).reshape(*x.shape[:-1], *linear_weight.shape[:-1])
    return _cross_entropy(scores, target, **options)


def _bce(x, t, weight=None, reduction="mean"):
    losses = -(t * np.log(x) + (1 - t) * np.log(1 - x))
    return _reduced(losses * (1 if weight is None else weight), reduction)


def _bce_logits(x, t, weight=None, reduction="mean", pos_weight=None):
    p = sigmoid(x)
    positive = 1 if pos_weight is None else pos_weight
    losses = -(positive * t * np.log(p) + (1 - t) * np.log(1 - p))
    return _reduced(losses * (1 if weight is None else weight), reduction)


def _kl_div(x, t, reduction="mean", log_target=False):
    losses = np.exp(t) * (t - x) if log_target else t * (np.log(t) - x)
    return losses.sum() / len(x) if reduction == "batchmean" else _reduced(losses, reduction)


def _gaussian_nll(x, t, var, full=False, eps=1e-6, reduction="mean"):
    var = np.maximum(var, eps)
    losses = (np.log(var) + (x - t) ** 2 / var + full * np.log(2 * np.pi)) / 2
    return _reduced(losses, reduction)


def _poisson_nll(x, t, log_input=True, full=False, reduction="mean", eps=1e-8):
    losses = np.exp(x) - t * x if log_input else x - t * np.log(x + eps)
    if full:
        stirling = t * np.log(t) - t + np.log(2 * np.pi * t) / 2
        losses = losses + np.where(t > 1, stirling, 0)
    return _reduced(losses, reduction)


def _hinge_embedding(x, t, margin=1.0, reduction="mean"):
    return _reduced(np.where(t == 1, x, np.maximum(margin - x, 0)), reduction)


def _margin_ranking(a, b, t, margin=0.0, reduction="mean"):
    return _reduced(np.maximum(-t * (a - b) + margin, 0), reduction)


def _multi_margin(x, target, p=1, margin=1.0, weight=None, reduction="mean"):
    losses = []
    for line, t in zip(x, target, strict=True):
        terms = [
            max(margin - line[t] + v, 0) ** p * (1 if weight is None else weight[t])
            for k, v in enumerate(line)
            if k != t
        ]
        losses.append(sum(terms) / len(line))
    return _reduced(np.array(losses), reduction)


def _multilabel_margin(x, target, reduction="mean"):
    losses = []
    for line, t in zip(x, target, strict=True):
        labels = list(itertools.takewhile(lambda k: k >= 0, t))
        others = [k for k in range(len(line)) if k not in labels]
        terms = [max(1 - (line[a] - line[b]), 0) for a in labels for b in others]
        losses.append(sum(terms) / len(line))
    return _reduced(np.array(losses), reduction)


def _multilabel_soft_margin(x, t, weight=None, reduction="mean"):
    p = sigmoid(x)
    losses = -(t * np.log(p) + (1 - t) * np.log(1 - p)) * (1 if weight is None else weight)
    return _reduced(losses.mean(-1), reduction)


def _ctc(x, targets, input_lengths, target_lengths, blank=0, reduction="mean", zero_infinity=False):
    """CTC by all alignments of each sample, one by one (Graves et al. 2006, section 3)."""
    losses = []
    for n, (steps, length) in enumerate(zip(input_lengths, target_lengths, strict=True)):
        labels = list(targets[n][:length])
        total = 0.0
        for path in itertools.product(range(x.shape[2]), repeat=int(steps)):
            merged = [k for k, _ in itertools.groupby(path)]
            if [k for k in merged if k != blank] == labels:
                total += np.exp(sum(x[t, n, k] for t, k in enumerate(path)))
        losses.append(0.0 if zero_infinity and not total else -np.log(total))
    losses = np.array(losses)
    if reduction == "mean":
        return (losses / np.array(target_lengths)).mean()
    return _reduced(losses, reduction)


def _cosine(a, b, dim=1, eps=1e-8):
    a, b = np.broadcast_arrays(a, b)
    norms = [np.maximum(np.sqrt((v * v).sum(dim)), eps) for v in (a, b)]
    return (a * b).sum(dim) / norms[0] / norms[1]


def _cosine_embedding(a, b, t, margin=0.0, reduction="mean"):
    c = _cosine(a, b)
    return _reduced(np.where(t == 1, 1 - c, np.maximum(c - margin, 0)), reduction)


def _distance(a, b, p=2.0, eps=1e-6, keepdim=False):
    return (np.abs(a - b + eps) ** p).sum(-1, keepdims=keepdim) ** (1 / p)


def _pdist(x, p=2.0):
    return np.array(
        [(np.abs(a - b) ** p).sum() ** (1 / p) for a, b in itertools.combinations(x, 2)]
    )


def _triplet(a, p, n, margin=1.0, order=2.0, swap=False, reduction="mean", distance=None, eps=1e-6):
    distance = distance or (lambda u, v: _distance(u, v, order, eps))
    near, far = distance(a, p), distance(a, n)
    far = np.minimum(far, distance(p, n)) if swap else far
    return _reduced(np.maximum(near - far + margin, 0), reduction)


def _triplet_with(a, p, n, distance_function=None, margin=1.0, swap=False, reduction="mean"):
    # the distance function of the sample is the square of the distance
    squared = None if distance_function is None else lambda u, v: ((u - v) ** 2).sum(-1)
    return _triplet(a, p, n, margin, swap=swap, reduction=reduction, distance=squared)


LOSSES = prefixed(
    "nn.functional.",
    {
        "l1_loss": lambda a, b, weight=None, reduction="mean": _weighted(
            np.abs(a - b), weight, reduction
        ),
        "mse_loss": lambda a, b, weight=None, reduction="mean": _weighted(
            (a - b) ** 2, weight, reduction
        ),
        "huber_loss": _huber,
        "smooth_l1_loss": _smooth_l1,
        "linear_cross_entropy": _linear_cross_entropy,
        "cross_entropy": _cross_entropy,
        "nll_loss": _nll,
        "binary_cross_entropy": _bce,
        "binary_cross_entropy_with_logits": _bce_logits,
        "kl_div": _kl_div,
        "gaussian_nll_loss": _gaussian_nll,
        "poisson_nll_loss": _poisson_nll,
        "hinge_embedding_loss": _hinge_embedding,
        "soft_margin_loss": lambda x, t, reduction="mean": _reduced(
            np.log1p(np.exp(-t * x)), reduction
        ),
        "margin_ranking_loss": _margin_ranking,
        "multi_margin_loss": _multi_margin,
        "multilabel_margin_loss": _multilabel_margin,
        "ctc_loss": _ctc,
        "multilabel_soft_margin_loss": _multilabel_soft_margin,
        "cosine_embedding_loss": _cosine_embedding,
        "cosine_similarity": _cosine,
        "pdist": _pdist,
        "pairwise_distance": _distance,
        "triplet_margin_loss": lambda a, q, n, /, margin=1.0, p=2.0, **rest: _triplet(
            a, q, n, margin, p, **rest
        ),
        "triplet_margin_with_distance_loss": _triplet_with,
    },
)
