"""References of convolution, pooling and other functions of windows, as plain loops."""

from __future__ import annotations

import itertools
import math

import numpy as np

from expected.base import Given, prefixed


def per_axis(value, axes):
    return (value,) * axes if np.isscalar(value) else tuple(value) * (axes // len(value))


def _padded(x, padding, value=0.0):
    return np.pad(
        x, [(0, 0)] * (x.ndim - len(padding)) + [(p, p) for p in padding], constant_values=value
    )


def _conv(axes):
    def conv(x, w, bias=None, stride=1, padding=0, dilation=1, groups=1):
        batched = x.ndim == axes + 2
        x = x if batched else x[None]
        stride, dilation = per_axis(stride, axes), per_axis(dilation, axes)
        kernel = w.shape[2:]
        if padding == "same":  # the larger half goes to the end
            total = [d * (k - 1) for d, k in zip(dilation, kernel, strict=True)]
            x = np.pad(x, [(0, 0), (0, 0), *[(t // 2, t - t // 2) for t in total]])
        else:
            x = _padded(x, per_axis(padding, axes))
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
        stride, dilation = per_axis(stride, axes), per_axis(dilation, axes)
        padding, extra = per_axis(padding, axes), per_axis(output_padding, axes)
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
    """For each axis and output position: the window's elements outside the padding.

    The second result is the number of its elements in the padded input.
    """
    kernel, dilation = per_axis(kernel, axes), per_axis(dilation, axes)
    stride = kernel if stride is None else per_axis(stride, axes)
    padding = per_axis(padding, axes)
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
    """The flat position in each plane of a value that occurs once."""
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
        wanted = per_axis(output_size, axes)
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
            n * k for n, k in zip(x.shape[-axes:], per_axis(kernel, axes), strict=True)
        ]
        y = np.zeros((len(planes), math.prod(sizes)))
        for plane, values, where in zip(y, planes, indices.reshape(planes.shape), strict=True):
            plane[where] = values
        return y.reshape(*x.shape[:-axes], *sizes)

    return unpool


def _fractional(axes):
    def pool(results, x, kernel, output_size=None, output_ratio=None, return_indices=False):
        """The maxima of windows that start in order. The last one ends with the input."""
        y = results[0]
        kernel, sizes = per_axis(kernel, axes), x.shape[-axes:]
        if output_size is None:
            output_size = [
                int(n * r) for n, r in zip(sizes, per_axis(output_ratio, axes), strict=True)
            ]
        wanted = per_axis(output_size, axes)
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
    kernel, dilation = per_axis(kernel, 2), per_axis(dilation, 2)
    stride = per_axis(stride, 2)
    x = _padded(x, per_axis(padding, 2))
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
    """The transpose of unfold, computed from unfold's columns of unit vectors."""
    size = per_axis(output_size, 2)
    channels = x.shape[1] // math.prod(per_axis(kernel, 2))
    shape = (channels, *size)
    units = np.eye(math.prod(shape)).reshape(-1, *shape)
    columns = _unfold(units, kernel, dilation, padding, stride)
    return np.einsum("ukl,bkl->bu", columns, x).reshape(-1, *shape)


WINDOWS = prefixed(
    "nn.functional.",
    {
        **{f"conv{d}d": _conv(d) for d in (1, 2, 3)},
        **{f"conv_transpose{d}d": _conv_transpose(d) for d in (1, 2, 3)},
        **{f"max_pool{d}d": _max_pool(d) for d in (1, 2, 3)},
        **{f"avg_pool{d}d": _avg_pool(d) for d in (1, 2, 3)},
        **{f"lp_pool{d}d": _lp_pool(d) for d in (1, 2, 3)},
        **{f"max_unpool{d}d": _max_unpool(d) for d in (1, 2, 3)},
        **{f"adaptive_avg_pool{d}d": _adaptive(d, np.mean) for d in (1, 2, 3)},
        **{f"adaptive_max_pool{d}d": _adaptive(d, np.max) for d in (1, 2, 3)},
        **{f"fractional_max_pool{d}d": Given(_fractional(d)) for d in (2, 3)},
        "fold": _fold,
        "unfold": _unfold,
    },
)
