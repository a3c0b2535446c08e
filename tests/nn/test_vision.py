"""Unfold, fold, pixel shuffle and interpolation against their definitions, element by element."""

from __future__ import annotations

import math

import numpy as np
import oracle
import pytest

import minigrad as mg
from minigrad.nn import functional as F


def columns(x, kernel, dilation=(1, 1), padding=(0, 0), stride=(1, 1)):
    """Every window of (N, C, H, W), taken one by one."""
    x = np.pad(x, [(0, 0), (0, 0), *[(p, p) for p in padding]])
    spans = [d * (k - 1) + 1 for k, d in zip(kernel, dilation, strict=True)]
    found = [
        x[:, :, i : i + spans[0] : dilation[0], j : j + spans[1] : dilation[1]].reshape(
            x.shape[0], x.shape[1] * math.prod(kernel)
        )
        for i in range(0, x.shape[2] - spans[0] + 1, stride[0])
        for j in range(0, x.shape[3] - spans[1] + 1, stride[1])
    ]
    return np.stack(found, -1)


WINDOWS = [
    {"kernel_size": (2, 2)},
    {"kernel_size": (1, 1)},
    {"kernel_size": (2, 3), "padding": (1, 0), "stride": (2, 1)},
    {"kernel_size": (2, 2), "dilation": (2, 1), "padding": (0, 2), "stride": (1, 3)},
]


@pytest.mark.parametrize("options", WINDOWS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
def test_unfold_takes_windows_and_fold_puts_them_back(rng, options, dtype):
    x = rng.integers(-9, 9, (2, 3, 5, 4)).astype(dtype)
    expected = columns(
        x,
        options["kernel_size"],
        *[
            options.get(name, default)
            for name, default in (("dilation", (1, 1)), ("padding", (0, 0)), ("stride", (1, 1)))
        ],
    )
    y = F.unfold(mg.tensor(x), **options)
    oracle.assert_same(y.numpy(), expected)
    oracle.assert_same(F.unfold(mg.tensor(x[1]), **options).numpy(), expected[1])
    if dtype == np.int64:
        return
    g = rng.integers(-9, 9, y.shape).astype(dtype)
    back = F.fold(mg.tensor(g), (5, 4), **options)
    assert back.shape == x.shape
    assert (back.numpy() * x).sum() == (y.numpy() * g).sum()  # the transpose, exactly
    oracle.assert_same(F.fold(mg.tensor(g[1]), (5, 4), **options).numpy(), back.numpy()[1])


def test_unfold_does_not_share_memory():
    x = mg.ones(1, 2, 3)
    assert not np.shares_memory(F.unfold(x, 1).numpy(), x.numpy())


def test_folding_counts_how_often_each_element_is_seen():
    ones = mg.ones(4, 4)
    assert F.fold(ones, 3, 2).tolist() == [[[1.0, 2.0, 1.0], [2.0, 4.0, 2.0], [1.0, 2.0, 1.0]]]


@pytest.mark.parametrize("r", [1, 2, 3])
def test_pixels_are_shuffled_and_back(rng, r):
    x = rng.standard_normal((2, 2 * r * r, 3, 2))
    y = F.pixel_shuffle(mg.tensor(x), r)
    assert y.shape == (2, 2, 3 * r, 2 * r)
    for c, h, w, i, j in np.ndindex(2, 3, 2, r, r):
        assert (y.numpy()[:, c, h * r + i, w * r + j] == x[:, (c * r + i) * r + j, h, w]).all()
    oracle.assert_same(F.pixel_unshuffle(y, r).numpy(), x)
    assert F.pixel_shuffle(mg.zeros(0, r * r, 2, 2), r).shape == (0, 1, 2 * r, 2 * r)


# ---- interpolation -------------------------------------------------------------------------------


def weights(n, m, mode, align, step=None):
    """The matrix (m, n) by which one dimension is resampled, from the formulas."""
    step = n / m if step is None else step
    out = np.zeros((m, n))
    for i in range(m):
        if mode == "nearest":
            out[i, min(int(i * step), n - 1)] = 1
        elif mode == "nearest-exact":
            out[i, min(int((i + 0.5) * step), n - 1)] = 1
        else:
            at = i * (n - 1) / max(m - 1, 1) if align else (i + 0.5) * step - 0.5
            if mode == "linear":
                at = min(max(at, 0), n - 1)
                for j in range(n):
                    out[i, j] = max(1 - abs(at - j), 0)
            else:
                for j in range(math.floor(at) - 1, math.floor(at) + 3):
                    d, a = abs(at - j), -0.75
                    near = (a + 2) * d**3 - (a + 3) * d**2 + 1
                    far = a * d**3 - 5 * a * d**2 + 8 * a * d - 4 * a
                    out[i, min(max(j, 0), n - 1)] += near if d <= 1 else far
    return out


MODES = [
    ("nearest", 1, None),
    ("nearest", 2, None),
    ("nearest", 3, None),
    ("nearest-exact", 2, None),
    ("linear", 1, False),
    ("linear", 1, True),
    ("bilinear", 2, False),
    ("bilinear", 2, True),
    ("trilinear", 3, False),
    ("bicubic", 2, False),
    ("bicubic", 2, True),
]


@pytest.mark.parametrize(("mode", "axes", "align"), MODES)
@pytest.mark.parametrize(
    "target",
    [
        {"size": 7},
        {"size": 2},
        {"size": 1},
        {"scale_factor": 2},
        {"scale_factor": 0.7},
        {"scale_factor": 1.6, "recompute_scale_factor": True},
    ],
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_interpolation_is_its_definition(rng, mode, axes, align, target, dtype):
    sizes = (4, 5, 3)[:axes]
    x = rng.standard_normal((2, 3, *sizes)).astype(dtype)
    y = F.interpolate(mg.tensor(x), mode=mode, align_corners=align, **target)
    kind = {"bilinear": "linear", "trilinear": "linear", "bicubic": "cubic"}.get(mode, mode)
    expected = x.astype(np.float64)
    for k, n in enumerate(sizes):
        factor = target.get("scale_factor")
        m = target["size"] if factor is None else math.floor(n * factor)
        given = factor is not None and "recompute_scale_factor" not in target
        matrix = weights(n, m, kind, align, 1 / factor if given else None)
        expected = np.moveaxis(np.moveaxis(expected, 2 + k, -1) @ matrix.T, -1, 2 + k)
    assert y.dtype == dtype
    np.testing.assert_allclose(y.numpy(), expected, atol=20 * np.finfo(dtype).eps)


@pytest.mark.parametrize("m", [5, 1500])  # whose taps are kept, and are not
def test_taps_serve_any_input(m, rng):
    """Kept ones are found by all that they depend on: dtype, dimensions and corners."""
    x = rng.standard_normal((1, 1, 3))
    for align in (False, True):
        matrix = weights(3, m, "linear", align, None)
        for dtype in (np.float32, np.float64, np.float32):
            y = F.interpolate(mg.tensor(x.astype(dtype)), m, mode="linear", align_corners=align)
            assert y.dtype == dtype
            np.testing.assert_allclose(y.numpy(), x @ matrix.T, atol=20 * np.finfo(dtype).eps)
        both = F.interpolate(mg.tensor(x[..., None]), (m, m), mode="bilinear", align_corners=align)
        np.testing.assert_allclose(
            both.numpy(), np.repeat((x @ matrix.T)[..., None], m, -1), atol=1e-14
        )


def test_area_is_the_adaptive_mean(rng):
    for axes, pool in (
        (1, F.adaptive_avg_pool1d),
        (2, F.adaptive_avg_pool2d),
        (3, F.adaptive_avg_pool3d),
    ):
        x = mg.tensor(rng.standard_normal((1, 2, *(5, 4, 3)[:axes])))
        assert F.interpolate(x, size=2, mode="area").tolist() == pool(x, 2).tolist()


def test_nearest_takes_integers():
    x = mg.tensor([[[1, 2, 3]]])
    assert F.interpolate(x, size=5).tolist() == [[[1, 1, 2, 2, 3]]]


def test_neighbours_that_do_not_count_do_not_spread():
    x = mg.tensor([[[math.inf, 1.0, math.nan]]], requires_grad=True)
    y = F.interpolate(x, size=3, mode="linear", align_corners=True)
    assert y.tolist()[0][0][:2] == [math.inf, 1.0]
    assert math.isnan(y.tolist()[0][0][2])
    assert mg.grad(y.sum(), [x])[0].tolist() == [[[1.0, 1.0, 1.0]]]


GRADIENTS = {
    "unfold": (lambda x: F.unfold(x, 2, padding=1, stride=2).square(), (1, 2, 3, 3)),
    "fold": (lambda x: F.fold(x, (3, 4), 2, padding=(0, 1)).square(), (1, 4, 10)),
    "pixel_shuffle": (lambda x: F.pixel_shuffle(x, 2).square(), (1, 4, 2, 1)),
    "pixel_unshuffle": (lambda x: F.pixel_unshuffle(x, 2).square(), (1, 1, 2, 4)),
    "nearest": (lambda x: F.interpolate(x, size=(3, 2)).square(), (1, 1, 2, 3)),
    "linear": (lambda x: F.interpolate(x, 5, mode="linear").square(), (1, 2, 3)),
    "bilinear": (
        lambda x: F.interpolate(x, (4, 3), mode="bilinear", align_corners=True).square(),
        (1, 1, 3, 2),
    ),
    "bicubic": (lambda x: F.interpolate(x, (2, 5), mode="bicubic").square(), (1, 1, 3, 3)),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients(rng, name):
    f, shape = GRADIENTS[name]
    oracle.check_gradients(f, [rng.standard_normal(shape)], rng)


def test_gradients_of_empty_batches_have_their_shape():
    for f, shape in (
        (lambda t: F.unfold(t, 2), (0, 2, 3, 3)),
        (lambda t: F.fold(t, 3, 2), (0, 4, 4)),
        (lambda t: F.pixel_shuffle(t, 2), (0, 4, 2, 2)),
        (lambda t: F.interpolate(t, 3, mode="linear"), (0, 2, 2)),
    ):
        x = mg.zeros(shape, requires_grad=True)
        assert mg.grad(f(x).sum(), [x])[0].shape == shape


X = mg.ones(1, 4, 3, 3)
MESSAGES = [
    (lambda: F.unfold(mg.ones(3, 3), 2), ValueError, "[unfold] the input has shape (3, 3)"),
    (lambda: F.unfold(X, 4), ValueError, "no window fits: it spans (4, 4)"),
    (lambda: F.fold(mg.ones(4), 3, 2), ValueError, "[fold] the input has shape (4,)"),
    (lambda: F.fold(mg.ones(4, 5), 3, 2), ValueError, "by kernel (2, 2) has (channels * 4, 4)"),
    (lambda: F.fold(mg.ones(3, 4), 3, 2), ValueError, "the input has shape (3, 4), but an output"),
    (lambda: F.fold(mg.arange(16).reshape(4, 4), 3, 2), TypeError, "[fold] offered for floats"),
    (lambda: F.pixel_shuffle(X, 3), ValueError, "but must be (..., C * 9, H, W)"),
    (lambda: F.pixel_shuffle(X, 0), ValueError, "upscale_factor is 0"),
    (lambda: F.pixel_unshuffle(X, 2), ValueError, "but must be (..., C, H * 2, W * 2)"),
    (lambda: F.interpolate(mg.ones(2, 3), 2), ValueError, "1 to 3 dimensions of space"),
    (lambda: F.interpolate(X), ValueError, "give one of size and scale_factor: None and None"),
    (lambda: F.interpolate(X, 2, 2.0), ValueError, "give one of size and scale_factor: 2 and 2.0"),
    (lambda: F.interpolate(X, 2, mode="cubic"), ValueError, "mode is 'cubic', but must be one of"),
    (lambda: F.interpolate(X, 2, mode="linear"), ValueError, "is for 1 dimensions of space, not 2"),
    (lambda: F.interpolate(X, 2, align_corners=True), ValueError, "has no meaning for mode"),
    (lambda: F.interpolate(X, 2, antialias=True), ValueError, "antialias is not offered"),
    (lambda: F.interpolate(X, 0), ValueError, "size is 0, but must be at least 1"),
    (lambda: F.interpolate(X, scale_factor=0.1), ValueError, "spatial size (0, 0)"),
    (lambda: F.interpolate(X, scale_factor=-1.0), ValueError, "must be a positive number"),
    (lambda: F.interpolate(X, scale_factor=(2, 2, 2)), ValueError, "each of 2 spatial dimensions"),
    (
        lambda: F.interpolate(X, 2, recompute_scale_factor=True),
        ValueError,
        "recompute_scale_factor is for scale_factor",
    ),
    (
        lambda: F.interpolate(mg.ones(1, 1, 2, 2, dtype=mg.int64), 3, mode="bilinear"),
        TypeError,
        "[interpolate] offered for floats, not int64",
    ),
]


@pytest.mark.parametrize("number", range(len(MESSAGES)))
def test_errors_show_the_values_and_the_rule(number):
    f, kind, text = MESSAGES[number]
    with pytest.raises(kind) as caught:
        f()
    assert text in str(caught.value)
