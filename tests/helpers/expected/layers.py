"""Convolution, pooling, normalisation, attention, recurrence and other functions of layers.

Each is the loop that the definition states; nothing here is fast.
"""

from __future__ import annotations

import itertools
import math

import numpy as np

from expected.base import Given, each, prefixed, sigmoid, softmax

# ---- windows -------------------------------------------------------------------------------------


def _per_axis(value, axes):
    return (value,) * axes if np.isscalar(value) else tuple(value) * (axes // len(value))


def _padded(x, padding, value=0.0):
    return np.pad(
        x, [(0, 0)] * (x.ndim - len(padding)) + [(p, p) for p in padding], constant_values=value
    )


def _conv(axes):
    def conv(x, w, bias=None, stride=1, padding=0, dilation=1, groups=1):
        batched = x.ndim == axes + 2
        x = x if batched else x[None]
        stride, dilation = _per_axis(stride, axes), _per_axis(dilation, axes)
        kernel = w.shape[2:]
        if padding == "same":  # an odd one goes to the end
            total = [d * (k - 1) for d, k in zip(dilation, kernel, strict=True)]
            x = np.pad(x, [(0, 0), (0, 0), *[(t // 2, t - t // 2) for t in total]])
        else:
            x = _padded(x, _per_axis(padding, axes))
        sizes = [
            (n - d * (k - 1) - 1) // s + 1
            for n, k, s, d in zip(x.shape[2:], kernel, stride, dilation, strict=True)
        ]
        y = np.zeros((len(x), len(w), *sizes))
        per = len(w) // groups
        for n, o in itertools.product(range(len(x)), range(len(w))):
            first = o // per * w.shape[1]
            for at in np.ndindex(*sizes):
                for tap in np.ndindex(*kernel):
                    place = tuple(
                        a * s + t * d for a, s, t, d in zip(at, stride, tap, dilation, strict=True)
                    )
                    for c in range(w.shape[1]):
                        y[(n, o, *at)] += w[(o, c, *tap)] * x[(n, first + c, *place)]
        if bias is not None:
            y += bias.reshape(-1, *[1] * axes)
        return y if batched else y[0]

    return conv


def _conv_transpose(axes):
    def conv(x, w, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
        batched = x.ndim == axes + 2
        x = x if batched else x[None]
        stride, dilation = _per_axis(stride, axes), _per_axis(dilation, axes)
        padding, extra = _per_axis(padding, axes), _per_axis(output_padding, axes)
        kernel, per = w.shape[2:], w.shape[1]
        whole = [
            (n - 1) * s + d * (k - 1) + 1 + e
            for n, s, d, k, e in zip(x.shape[2:], stride, dilation, kernel, extra, strict=True)
        ]
        y = np.zeros((len(x), groups * per, *whole))
        inputs = x.shape[1] // groups
        for at in np.ndindex(x.shape):
            n, c, *place = at
            for tap in np.ndindex(*kernel):
                to = tuple(
                    p * s + t * d for p, s, t, d in zip(place, stride, tap, dilation, strict=True)
                )
                for o in range(per):
                    y[(n, c // inputs * per + o, *to)] += x[at] * w[(c, o, *tap)]
        cut = [slice(p, n - p) for p, n in zip(padding, whole, strict=True)]
        y = y[(slice(None), slice(None), *cut)]
        if bias is not None:
            y = y + bias.reshape(-1, *[1] * axes)
        return y if batched else y[0]

    return conv


def _windows(x, axes, kernel, stride, padding, ceil_mode, dilation):
    """For each axis and output position: the elements of the window that are no padding, and how
    many elements of the padded input it has.
    """
    kernel, dilation = _per_axis(kernel, axes), _per_axis(dilation, axes)
    stride = kernel if stride is None else _per_axis(stride, axes)
    padding = _per_axis(padding, axes)
    along = []
    for n, k, s, p, d in zip(x.shape[-axes:], kernel, stride, padding, dilation, strict=True):
        count = (math.ceil if ceil_mode else math.floor)((n + 2 * p - d * (k - 1) - 1) / s) + 1
        if ceil_mode and (count - 1) * s >= n + p:  # a window starts within the input
            count -= 1
        places = [[a * s + t * d - p for t in range(k)] for a in range(count)]
        along.append([([i for i in w if 0 <= i < n], sum(i < n + p for i in w)) for w in places])
    return along


def _pooled(axes, of_window):
    def pool(x, kernel, stride=None, padding=0, ceil_mode=False, dilation=1):
        along = _windows(x, axes, kernel, stride, padding, ceil_mode, dilation)
        y = np.zeros((*x.shape[:-axes], *map(len, along)))
        for at in np.ndindex(*map(len, along)):
            found = [along[k][a] for k, a in enumerate(at)]
            window = x[(..., *np.ix_(*[f[0] for f in found]))]
            size = math.prod(f[1] for f in found)
            y[(..., *at)] = of_window(window, tuple(range(-axes, 0)), size)
        return y

    return pool


def _place_of(x, window_values, axes):
    """Where in each plane, as one line, a value is that it has once."""
    planes = x.reshape(*x.shape[:-axes], -1)
    values = window_values.reshape(*x.shape[:-axes], -1)
    return (planes[..., None, :] == values[..., None]).argmax(-1).reshape(window_values.shape)


def _max_pool(axes):
    plain = _pooled(axes, lambda w, over, _: w.max(over))

    def pool(x, kernel, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
        y = plain(x, kernel, stride, padding, ceil_mode, dilation)
        return (y, _place_of(x, y, axes)) if return_indices else y

    return pool


def _avg_pool(axes):
    def pool(
        x,
        kernel,
        stride=None,
        padding=0,
        ceil_mode=False,
        count_include_pad=True,
        divisor_override=None,
    ):
        def mean(w, over, size):
            inside = math.prod(w.shape[k] for k in over)
            return w.sum(over) / (divisor_override or (size if count_include_pad else inside))

        return _pooled(axes, mean)(x, kernel, stride, padding, ceil_mode)

    return pool


def _lp_pool(axes):
    def pool(x, p, kernel, stride=None, ceil_mode=False):
        norm = _pooled(axes, lambda w, over, _: (w**p).sum(over) ** (1 / p))
        return norm(x, kernel, stride, 0, ceil_mode)

    return pool


def _adaptive(axes, of_window):
    def pool(x, output_size, return_indices=False):
        wanted = _per_axis(output_size, axes)
        sizes = [n if w is None else w for n, w in zip(x.shape[-axes:], wanted, strict=True)]
        y = np.zeros((*x.shape[:-axes], *sizes))
        for at in np.ndindex(*sizes):
            cut = [
                slice(a * n // m, -(-(a + 1) * n // m))
                for a, n, m in zip(at, x.shape[-axes:], sizes, strict=True)
            ]
            y[(..., *at)] = of_window(x[(..., *cut)], tuple(range(-axes, 0)))
        return (y, _place_of(x, y, axes)) if return_indices else y

    return pool


def _max_unpool(axes):
    def unpool(x, indices, kernel, stride=None, padding=0, output_size=None):
        planes = x.reshape(-1, math.prod(x.shape[-axes:]))
        sizes = output_size or [
            n * k for n, k in zip(x.shape[-axes:], _per_axis(kernel, axes), strict=True)
        ]
        y = np.zeros((len(planes), math.prod(sizes)))
        for plane, values, where in zip(y, planes, indices.reshape(planes.shape), strict=True):
            plane[where] = values
        return y.reshape(*x.shape[:-axes], *sizes)

    return unpool


def _fractional(axes):
    def pool(results, x, kernel, output_size=None, output_ratio=None, return_indices=False):
        """The maxima of windows that start in order, the last one at the end."""
        y = results[0]
        kernel, sizes = _per_axis(kernel, axes), x.shape[-axes:]
        if output_size is None:
            output_size = [
                int(n * r) for n, r in zip(sizes, _per_axis(output_ratio, axes), strict=True)
            ]
        wanted = _per_axis(output_size, axes)
        assert y.shape == (*x.shape[:-axes], *wanted)
        starts = [
            [list(s) for s in itertools.combinations(range(n - k + 1), m) if s[-1] == n - k]
            for n, k, m in zip(sizes, kernel, wanted, strict=True)
        ]
        expected = np.empty(y.shape)
        for plane in np.ndindex(x.shape[:-axes]):
            candidates = itertools.product(*starts)
            near = (_maxima(x[plane], c, kernel) for c in candidates)
            expected[plane] = next((e for e in near if np.array_equal(e, y[plane])), np.nan)
        return (expected, _place_of(x, expected, axes)) if return_indices else expected

    return pool


def _maxima(x, starts, kernel):
    y = np.empty([len(s) for s in starts])
    for at in np.ndindex(y.shape):
        cut = [slice(s[a], s[a] + k) for s, a, k in zip(starts, at, kernel, strict=True)]
        y[at] = x[tuple(cut)].max()
    return y


def _unfold(x, kernel, dilation=1, padding=0, stride=1):
    kernel, dilation = _per_axis(kernel, 2), _per_axis(dilation, 2)
    stride = _per_axis(stride, 2)
    x = _padded(x, _per_axis(padding, 2))
    sizes = [
        (n - d * (k - 1) - 1) // s + 1
        for n, k, s, d in zip(x.shape[2:], kernel, stride, dilation, strict=True)
    ]
    columns = [
        x[:, :, a * stride[0] :, b * stride[1] :][
            :, :, : dilation[0] * kernel[0] : dilation[0], : dilation[1] * kernel[1] : dilation[1]
        ].reshape(len(x), -1)
        for a, b in np.ndindex(*sizes)
    ]
    return np.stack(columns, -1)


def _fold(x, output_size, kernel, dilation=1, padding=0, stride=1):
    """The transpose of unfold, which its columns of unit vectors show."""
    size = _per_axis(output_size, 2)
    channels = x.shape[1] // math.prod(_per_axis(kernel, 2))
    shape = (channels, *size)
    units = np.eye(math.prod(shape)).reshape(-1, *shape)
    columns = _unfold(units, kernel, dilation, padding, stride)
    return np.einsum("ukl,bkl->bu", columns, x).reshape(-1, *shape)


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
    if enable_gqa:  # each head of keys serves several of queries
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
    """The weight, whose named rows are brought to a norm where theirs is larger."""
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


# ---- planes --------------------------------------------------------------------------------------


def _source(i, n, m, align_corners):
    if align_corners:
        return i * (n - 1) / (m - 1) if m > 1 else 0
    return (i + 0.5) * n / m - 0.5


def _cubic(t, a=-0.75):
    """Keys 1981, with PyTorch's a."""
    t = abs(t)
    if t <= 1:
        return (a + 2) * t**3 - (a + 3) * t**2 + 1
    return a * (t**3 - 5 * t**2 + 8 * t - 4) if t < 2 else 0.0


def _line_matrix(n, m, mode, align_corners):
    """How each of m positions weighs the n samples of a line."""
    y = np.zeros((m, n))
    for i in range(m):
        if mode == "nearest":
            y[i, i * n // m] = 1
        elif mode == "nearest-exact":
            y[i, int((i + 0.5) * n / m)] = 1
        elif mode == "area":
            y[i, i * n // m : -(-(i + 1) * n // m)] = 1
        elif mode == "bicubic":
            at = _source(i, n, m, align_corners)
            for k in range(math.floor(at) - 1, math.floor(at) + 3):
                y[i, min(max(k, 0), n - 1)] += _cubic(at - k)
        else:
            at = np.clip(_source(i, n, m, align_corners), 0, n - 1)
            low = int(at)
            y[i, low] += 1 - (at - low)
            y[i, min(low + 1, n - 1)] += at - low
        y[i] /= y[i].sum()
    return y


def _interpolate(
    x,
    size=None,
    scale_factor=None,
    mode="nearest",
    align_corners=None,
    recompute_scale_factor=None,
):
    axes = x.ndim - 2
    sizes = _per_axis(size, axes) if size is not None else None
    for k in range(axes):
        n = x.shape[2 + k]
        m = sizes[k] if sizes else int(n * scale_factor)
        lines = _line_matrix(n, m, mode, align_corners)
        x = np.moveaxis(np.moveaxis(x, 2 + k, -1) @ lines.T, -1, 2 + k)
    return x


def _affine_grid(theta, size, align_corners=False):
    n, _, h, w = size

    def ends(m):
        return np.linspace(-1, 1, m) if align_corners else (2 * np.arange(m) + 1) / m - 1

    y, x = np.meshgrid(ends(h), ends(w), indexing="ij")
    points = np.stack([x, y, np.ones((h, w))], -1)
    return np.stack([points @ t.T for t in theta[:n]])


def _within(at, n, padding_mode, align_corners):
    """A coordinate as the padding mode brings it into the plane."""
    if padding_mode == "reflection":
        low, high = (0, n - 1) if align_corners else (-0.5, n - 0.5)
        span = high - low
        offset = abs(at - low) % (2 * span) if span else 0.0
        at = low + min(offset, 2 * span - offset)
    return at if padding_mode == "zeros" else min(max(at, 0), n - 1)


def _weights(at, n, mode, padding_mode, align_corners):
    """The samples of a line that count at a coordinate, and by how much."""
    whole = math.floor(at)
    if mode == "bicubic":  # each sample is brought into the plane by itself
        taps = [(k, _cubic(at - k)) for k in range(whole - 1, whole + 3)]
        taps = [(round(_within(k, n, padding_mode, align_corners)), w) for k, w in taps]
    else:
        at = _within(at, n, padding_mode, align_corners)
        whole = math.floor(at)
        taps = (
            [(round(at), 1.0)]
            if mode == "nearest"
            else [
                (whole, 1 - (at - whole)),
                (whole + 1, at - whole),
            ]
        )
    return [(k, w) for k, w in taps if 0 <= k < n]


def _grid_sample(x, grid, mode="bilinear", padding_mode="zeros", align_corners=False):
    sizes = x.shape[2:]
    y = np.zeros((*x.shape[:2], *grid.shape[1:3]))
    for n, i, j in np.ndindex(grid.shape[:3]):
        rows, columns = (
            _weights(
                (g + 1) / 2 * (m - 1) if align_corners else ((g + 1) * m - 1) / 2,
                m,
                mode,
                padding_mode,
                align_corners,
            )
            for g, m in zip(grid[n, i, j, ::-1], sizes, strict=True)
        )
        for (a, v), (b, w) in itertools.product(rows, columns):
            y[n, :, i, j] += v * w * x[n, :, a, b]
    return y


def _pixel_shuffle(x, r):
    n, c, h, w = x.shape
    y = np.empty((n, c // r**2, h * r, w * r))
    for k, i, j in np.ndindex(c // r**2, r, r):
        y[:, k, i::r, j::r] = x[:, k * r * r + i * r + j]
    return y


def _pixel_unshuffle(x, r):
    *rest, c, h, w = x.shape
    y = np.empty((*rest, c * r**2, h // r, w // r))
    for k, i, j in np.ndindex(c, r, r):
        y[..., k * r * r + i * r + j, :, :] = x[..., k, i::r, j::r]
    return y


def _channel_shuffle(x, groups):
    return np.stack(
        [x[:, k :: x.shape[1] // groups] for k in range(x.shape[1] // groups)], 1
    ).reshape(x.shape)


def _linear(x, w, bias=None):
    return x @ w.T + (0 if bias is None else bias)


def _bilinear(a, b, w, bias=None):
    return np.einsum("...i,oij,...j->...o", a, w, b) + (0 if bias is None else bias)


LAYERS = prefixed(
    "nn.functional.",
    {
        "linear": _linear,
        "bilinear": _bilinear,
        **{f"conv{d}d": _conv(d) for d in (1, 2, 3)},
        **{f"conv_transpose{d}d": _conv_transpose(d) for d in (1, 2, 3)},
        **{f"max_pool{d}d": _max_pool(d) for d in (1, 2, 3)},
        **{f"avg_pool{d}d": _avg_pool(d) for d in (1, 2, 3)},
        **{f"lp_pool{d}d": _lp_pool(d) for d in (1, 2, 3)},
        **{f"max_unpool{d}d": _max_unpool(d) for d in (1, 2, 3)},
        **{f"adaptive_avg_pool{d}d": _adaptive(d, np.mean) for d in (1, 2, 3)},
        **{f"adaptive_max_pool{d}d": _adaptive(d, np.max) for d in (1, 2, 3)},
        **{f"fractional_max_pool{d}d": Given(_fractional(d)) for d in (2, 3)},
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
        "fold": _fold,
        "unfold": _unfold,
        **each("interpolate upsample", _interpolate),
        "affine_grid": _affine_grid,
        "grid_sample": _grid_sample,
        "channel_shuffle": _channel_shuffle,
        "pixel_shuffle": _pixel_shuffle,
        "pixel_unshuffle": _pixel_unshuffle,
    },
)
