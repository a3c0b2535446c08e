"""References of normalisation, dropout, attention, recurrence and embeddings, by definition."""

from __future__ import annotations

import numpy as np

from expected.base import Given, each, prefixed, sigmoid, softmax

# ---- normalisation -------------------------------------------------------------------------------


def _over_channels(v, x):
    return 1 if v is None else v.reshape(-1, *[1] * (x.ndim - 2))


def _scaled(y, weight, bias):
    y = y * _over_channels(weight, y)
    return y if bias is None else y + _over_channels(bias, y)


def _standard(x, over, eps):
    mean = x.mean(over, keepdims=True)
    return (x - mean) / np.sqrt(((x - mean) ** 2).mean(over, keepdims=True) + eps)


def _batch_norm(x, mean, var, weight=None, bias=None, training=False, momentum=0.1, eps=1e-5):
    if training:
        y = _standard(x, (0, *range(2, x.ndim)), eps)
    else:
        y = (x - _over_channels(mean, x)) / np.sqrt(_over_channels(var, x) + eps)
    return _scaled(y, weight, bias)


def _instance_norm(
    x, mean=None, var=None, weight=None, bias=None, use_input_stats=True, momentum=0.1, eps=1e-5
):
    if not use_input_stats:
        return _batch_norm(x, mean, var, weight, bias, eps=eps)
    return _scaled(_standard(x, tuple(range(2, x.ndim)), eps), weight, bias)


def _layer_norm(x, shape, weight=None, bias=None, eps=1e-5):
    y = _standard(x, tuple(range(-len(shape), 0)), eps)
    return y * (1 if weight is None else weight) + (0 if bias is None else bias)


def _rms_norm(x, shape, weight=None, eps=None):
    eps = np.finfo(x.dtype).eps if eps is None else eps
    mean = (x * x).mean(tuple(range(-len(shape), 0)), keepdims=True)
    return x / np.sqrt(mean + eps) * (1 if weight is None else weight)


def _group_norm(x, groups, weight=None, bias=None, eps=1e-5):
    parts = x.reshape(len(x), groups, -1)
    return _scaled(_standard(parts, 2, eps).reshape(x.shape), weight, bias)


def _local_response_norm(x, size, alpha=1e-4, beta=0.75, k=1.0):
    y = np.empty(x.shape)
    for c in range(x.shape[1]):
        near = x[:, max(c - size // 2, 0) : c + (size - 1) // 2 + 1]
        y[:, c] = x[:, c] / (k + alpha * (near**2).sum(1) / size) ** beta
    return y


def _normalize(x, p=2.0, dim=1, eps=1e-12):
    return x / np.maximum((np.abs(x) ** p).sum(dim, keepdims=True) ** (1 / p), eps)


# ---- random zeros --------------------------------------------------------------------------------


def _dropout(results, x, p=0.5, training=True):
    if not training:
        return x
    kept = results[0] != 0
    assert kept.any()
    assert x.size < 4 or not kept.all()
    return np.where(kept, x / (1 - p), 0)


def _channel_dropout(results, x, p=0.5, training=True):
    channels = results[0].reshape(*x.shape[:2], -1)
    kept = (channels != 0).all(-1)
    assert (kept | (channels == 0).all(-1)).all()
    assert kept.any()
    return np.where(kept.reshape(*kept.shape, *[1] * (x.ndim - 2)), x / (1 - p), 0)


def _alpha_dropout(results, x, p=0.5, training=False):
    """Dropped values become -1.758, then mean and variance are restored (Klambauer et al. 2017)."""
    if not training:
        return x
    low = -1.6732632423543772848170429916717 * 1.0507009873554804934193349852946
    a = 1 / np.sqrt((1 - p) * (1 + p * low**2))
    b = -a * p * low
    dropped = np.isclose(results[0], a * low + b)
    assert dropped.any()
    assert not dropped.all()
    return np.where(dropped, a * low + b, a * x + b)


# ---- attention and recurrence --------------------------------------------------------------------


def _attention(q, k, v, mask=None, is_causal=False, scale=None, enable_gqa=False):
    if enable_gqa:  # each head of keys serves several heads of queries
        k, v = (np.repeat(t, q.shape[-3] // t.shape[-3], -3) for t in (k, v))
    scale = 1 / np.sqrt(q.shape[-1]) if scale is None else scale
    scores = scale * (q @ np.swapaxes(k, -1, -2))
    if is_causal:
        scores = np.where(np.tril(np.ones(scores.shape[-2:], bool)), scores, -np.inf)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask
    return softmax(scores, -1) @ v


def _rnn_steps(projected, state, weight, nonlinearity="tanh"):
    h, states = state[0], []
    for x in projected:
        h = (np.tanh if nonlinearity == "tanh" else lambda z: np.maximum(z, 0))(x + h @ weight.T)
        states.append(h)
    return np.array(states)[None]


def _gru_steps(projected, state, weight, bias):
    h, states = state[0], []
    for x in projected:
        (rx, zx, nx), (a, b, m) = np.split(x, 3, -1), np.split(h @ weight.T + bias, 3, -1)
        r, z = sigmoid(rx + a), sigmoid(zx + b)
        n = np.tanh(nx + r * m)
        h = (1 - z) * n + z * h
        states.append(h)
    return np.array(states)[None]


def _lstm_steps(projected, state, weight):
    (h, c), hs, cs = state, [], []
    for x in projected:
        i, f, g, o = np.split(x + h @ weight.T, 4, -1)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        hs.append(h)
        cs.append(c)
    return np.array([hs, cs])


# ---- tables of vectors ---------------------------------------------------------------------------


def _shortened(index, weight, max_norm, norm_type):
    """The weight with the used rows scaled down to a norm if theirs is larger."""
    if max_norm is None:
        return weight
    norms = (np.abs(weight) ** norm_type).sum(1, keepdims=True) ** (1 / norm_type)
    named = np.isin(np.arange(len(weight)), index)[:, None]
    return np.where(named & (norms > max_norm), weight * max_norm / norms, weight)


def _embedding(index, weight, max_norm=None, norm_type=2.0):
    return _shortened(index, weight, max_norm, norm_type)[index]


def _embedding_bag(
    index,
    weight,
    offsets=None,
    max_norm=None,
    norm_type=2.0,
    mode="mean",
    per_sample_weights=None,
    include_last_offset=False,
    padding_idx=None,
):
    weight = _shortened(index, weight, max_norm, norm_type)
    if offsets is None:
        offsets, index = np.arange(0, index.size, index.shape[1]), index.ravel()
    factors = np.ones(index.size) if per_sample_weights is None else per_sample_weights.ravel()
    ends = [*offsets[1:], *[len(index)] * (not include_last_offset)]
    of = {"sum": np.sum, "mean": np.mean, "max": np.max}[mode]
    found = []
    for a, b in zip(offsets, ends, strict=False):
        rows = [factors[k] * weight[index[k]] for k in range(a, b) if index[k] != padding_idx]
        found.append(of(rows, 0) if rows else np.zeros(weight.shape[1]))
    return np.array(found)


def _one_hot(x, n):
    return np.eye(n, dtype=np.int64)[x]


def _linear(x, w, bias=None):
    return x @ w.T + (0 if bias is None else bias)


def _bilinear(a, b, w, bias=None):
    return np.einsum("...i,oij,...j->...o", a, w, b) + (0 if bias is None else bias)


LAYERS = prefixed(
    "nn.functional.",
    {
        "linear": _linear,
        "bilinear": _bilinear,
        "batch_norm": _batch_norm,
        "instance_norm": _instance_norm,
        "layer_norm": _layer_norm,
        "rms_norm": _rms_norm,
        "group_norm": _group_norm,
        "local_response_norm": _local_response_norm,
        "normalize": _normalize,
        "dropout": Given(_dropout),
        **each("dropout1d dropout2d dropout3d", Given(_channel_dropout)),
        **each("alpha_dropout feature_alpha_dropout", Given(_alpha_dropout)),
        "embedding": _embedding,
        "embedding_bag": _embedding_bag,
        "one_hot": _one_hot,
        "gru_steps": _gru_steps,
        "lstm_steps": _lstm_steps,
        "rnn_steps": _rnn_steps,
        "scaled_dot_product_attention": _attention,
    },
)
