"""Convolutions and their transposes against their definition, and the windows they are made of."""

from __future__ import annotations

import itertools
import math

import numpy as np
import oracle
import pytest
from scipy import signal

import minigrad as mg
from minigrad._c import ffi, lib
from minigrad.nn import functional as F
from minigrad.ops.window import FOLD_WINDOWS, WINDOWS, Windows

CONV = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}
TRANSPOSE = {1: F.conv_transpose1d, 2: F.conv_transpose2d, 3: F.conv_transpose3d}


def axes_of(value, axes):
    return value if isinstance(value, tuple) else (value,) * axes


def taps(kernel, count, stride, dilation):
    """Each place in the kernel, and the slices at which it meets all windows."""
    for tap in np.ndindex(*kernel):
        yield (
            tap,
            tuple(
                slice(k * d, k * d + (c - 1) * s + 1, s)
                for k, c, s, d in zip(tap, count, stride, dilation, strict=True)
            ),
        )


def convolution(x, w, b=None, stride=1, padding=0, dilation=1, groups=1):
    """By the definition, one place of the kernel after the other; x has a batch."""
    axes = w.ndim - 2
    stride, dilation = axes_of(stride, axes), axes_of(dilation, axes)
    spans = [d * (k - 1) for k, d in zip(w.shape[2:], dilation, strict=True)]
    if padding == "same":
        around = [(n // 2, n - n // 2) for n in spans]
    else:
        around = [(p, p) for p in axes_of(0 if padding == "valid" else padding, axes)]
    x = np.pad(x, [(0, 0), (0, 0), *around])
    count = [(n - r - 1) // s + 1 for n, r, s in zip(x.shape[2:], spans, stride, strict=True)]
    y = np.zeros((x.shape[0], w.shape[0], *count), x.dtype)
    for group in range(groups):
        c = slice(group * w.shape[1], (group + 1) * w.shape[1])
        share = w.shape[0] // groups
        o = slice(group * share, (group + 1) * share)
        for tap, at in taps(w.shape[2:], count, stride, dilation):
            y[:, o] += np.einsum("nc...,oc->no...", x[:, c][(..., *at)], w[o][(..., *tap)])
    return y if b is None else y + b.reshape(-1, *(1,) * axes)


def transposed(x, w, b=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
    axes = w.ndim - 2
    stride, dilation = axes_of(stride, axes), axes_of(dilation, axes)
    padding, extra = axes_of(padding, axes), axes_of(output_padding, axes)
    count = x.shape[2:]
    full = [
        (n - 1) * s + d * (k - 1) + 1 + e
        for n, k, s, d, e in zip(count, w.shape[2:], stride, dilation, extra, strict=True)
    ]
    y = np.zeros((x.shape[0], w.shape[1] * groups, *full))
    share = w.shape[0] // groups
    for group in range(groups):
        c = slice(group * share, (group + 1) * share)
        o = slice(group * w.shape[1], (group + 1) * w.shape[1])
        for tap, at in taps(w.shape[2:], count, stride, dilation):
            y[:, o][(..., *at)] += np.einsum("nc...,co->no...", x[:, c], w[c][(..., *tap)])
    y = y[(..., *[slice(p, n - p) for p, n in zip(padding, full, strict=True)])]
    return y if b is None else y + b.reshape(-1, *(1,) * axes)


# shape of the input, of the weight, arguments
CASES = [
    ((2, 3, 7), (4, 3, 3), {}),
    ((2, 4, 9), (6, 2, 3), {"stride": 2, "padding": 1, "groups": 2}),
    ((1, 1, 6), (1, 1, 4), {"padding": "same"}),
    ((1, 2, 5), (2, 1, 2), {"padding": 3, "dilation": 3, "groups": 2}),
    ((0, 2, 5), (3, 2, 2), {"padding": 1}),
    ((2, 2, 5), (0, 2, 2), {}),
    ((1, 0, 4), (3, 0, 2), {}),
    ((2, 0, 4), (3, 0, 1), {}),
    ((1, 0, 4, 5), (2, 0, 1, 1), {}),
    ((2, 2, 5, 4), (3, 2, 2, 3), {}),
    ((1, 4, 6, 5), (4, 1, 3, 2), {"groups": 4, "padding": (1, 0), "stride": (2, 1)}),
    ((2, 2, 4, 5), (2, 2, 2, 4), {"padding": "same", "dilation": (2, 1)}),
    ((2, 3, 4, 4), (5, 3, 1, 1), {"padding": "valid"}),
    ((1, 2, 3, 4, 3), (2, 2, 2, 3, 1), {"stride": (1, 2, 1), "padding": (1, 0, 2)}),
    ((1, 4, 3, 3, 3), (2, 2, 3, 2, 2), {"groups": 2, "padding": "same"}),
    # lines of whole vectors, of fewer and of more terms than are added in one go
    ((2, 3, 4, 32), (13, 3, 3, 3), {"padding": 1}),
    ((1, 50, 64), (11, 50, 5), {"padding": 2}),
    ((1, 5, 3, 16), (20, 5, 1, 1), {}),
    # a channel alone in its group: lines side by side, of several images, and along
    ((3, 2, 7, 14), (2, 1, 5, 5), {"groups": 2, "padding": 2}),
    ((2, 3, 6, 75), (3, 1, 3, 3), {"groups": 3, "padding": 1}),
    ((1, 2, 3, 20), (2, 1, 2, 3), {"groups": 2}),
    # by three lines of three taps: few lines, narrow ones, taps apart, every second output
    ((2, 2, 4, 3), (2, 1, 3, 3), {"groups": 2, "padding": 1}),
    ((2, 2, 3, 9), (2, 1, 3, 3), {"groups": 2, "padding": (1, 0)}),
    ((1, 2, 7, 21), (2, 1, 3, 3), {"groups": 2, "padding": 2, "dilation": (1, 2)}),
    ((2, 2, 11, 34), (2, 1, 3, 3), {"groups": 2, "padding": (2, 1), "stride": (1, 2)}),
    ((1, 3, 6, 10), (3, 1, 3, 3), {"groups": 3}),
    ((1, 1, 5, 18), (1, 1, 13, 13), {"padding": 6}),
    # squares of taps on planes: of several outputs, fewer lines than taps, some lines at a time
    ((2, 2, 2, 17), (6, 1, 5, 5), {"groups": 2, "padding": (2, 4)}),
    ((1, 1, 1, 40), (2, 1, 3, 3), {"padding": (3, 0)}),
    ((1, 2, 60, 300), (2, 1, 3, 3), {"groups": 2, "padding": 1}),
    ((2, 1, 45, 257), (1, 1, 5, 5), {"padding": (1, 2), "dilation": (1, 3)}),
    # every second or third of a line's neighbours side by side
    ((2, 3, 5, 75), (2, 3, 3, 3), {"stride": 2, "padding": 1}),
    ((1, 2, 4, 33), (2, 2, 2, 1), {"stride": (1, 2)}),
    ((1, 2, 2, 50), (2, 2, 1, 4), {"stride": 3, "padding": (0, 5)}),
    ((2, 2, 9, 45), (2, 1, 3, 3), {"stride": 2, "padding": 1, "groups": 2}),
    # more zeros than elements
    ((1, 2, 3, 2), (3, 2, 2, 3), {"padding": (5, 40)}),
    ((1, 17, 4, 5), (19, 17, 2, 2), {"padding": (9, 7), "dilation": (4, 3)}),
    ((2, 2, 2, 3, 4), (17, 2, 2, 2, 2), {"padding": (3, 2, 37), "stride": (1, 2, 2)}),
]
TRANSPOSED = [
    ((2, 3, 4), (3, 2, 3), {}),
    ((1, 4, 3), (4, 1, 2), {"stride": 3, "output_padding": 2, "groups": 2}),
    ((1, 1, 3), (1, 1, 3), {"padding": 2}),
    ((1, 1, 3), (1, 1, 2), {"stride": 2, "dilation": 4, "output_padding": 3}),
    ((0, 2, 3), (2, 2, 2), {}),
    ((2, 0, 3), (0, 2, 1), {}),
    ((1, 2, 3, 2), (2, 1, 2, 3), {"stride": (2, 1), "padding": (1, 0)}),
    ((1, 4, 2, 3), (4, 1, 3, 2), {"groups": 4, "dilation": (1, 2), "stride": 2}),
    ((1, 2, 2, 2, 3), (2, 1, 2, 3, 2), {"stride": (2, 1, 2), "output_padding": (1, 0, 1)}),
    ((1, 3, 1, 3), (3, 1, 1, 1), {"stride": (2, 1), "output_padding": (1, 0)}),
]


@pytest.mark.parametrize(("shape", "kernel", "options"), CASES)
@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_convolution_is_its_definition(rng, shape, kernel, options, biased, dtype):
    x, w = (rng.standard_normal(s).astype(dtype) for s in (shape, kernel))
    b = rng.standard_normal(kernel[0]).astype(dtype) if biased else None
    f = CONV[len(shape) - 2]
    y = f(mg.tensor(x), mg.tensor(w), b if b is None else mg.tensor(b), **options)
    expected = convolution(
        *[v if v is None else v.astype(np.float64) for v in (x, w, b)], **options
    )
    # rounding grows with the number of terms, and with their size
    size = convolution(
        *[v if v is None else abs(v.astype(np.float64)) for v in (x, w, b)], **options
    )
    bound = (np.prod(kernel[1:]) + 2) * np.finfo(dtype).eps * size
    assert y.dtype == dtype
    assert y.shape == expected.shape
    assert y.is_contiguous()
    assert (abs(y.numpy() - expected) <= bound).all()
    one = (
        f(mg.tensor(x)[0], mg.tensor(w), b if b is None else mg.tensor(b), **options)
        if len(x)
        else None
    )
    if one is not None:
        assert one.shape == y.shape[1:]
        np.testing.assert_allclose(one.numpy(), y.numpy()[0], rtol=1e-5)


@pytest.mark.parametrize(("shape", "kernel", "options"), TRANSPOSED)
@pytest.mark.parametrize("biased", [False, True])
def test_transposed_convolution_is_its_definition(rng, shape, kernel, options, biased):
    x, w = rng.standard_normal(shape), rng.standard_normal(kernel)
    b = rng.standard_normal(kernel[1] * options.get("groups", 1)) if biased else None
    f = TRANSPOSE[len(shape) - 2]
    y = f(mg.tensor(x), mg.tensor(w), b if b is None else mg.tensor(b), **options)
    np.testing.assert_allclose(y.numpy(), transposed(x, w, b, **options), atol=1e-13)
    assert y.is_contiguous()
    if len(x):
        one = f(mg.tensor(x[0]), mg.tensor(w), b if b is None else mg.tensor(b), **options)
        np.testing.assert_allclose(one.numpy(), y.numpy()[0], atol=1e-13)


def test_one_channel_is_a_correlation(rng):
    x, w = rng.standard_normal((6, 7)), rng.standard_normal((3, 2))
    y = F.conv2d(mg.tensor(x[None]), mg.tensor(w[None, None]))
    np.testing.assert_allclose(y.numpy()[0], signal.correlate(x, w, "valid"), atol=1e-14)
    full = F.conv_transpose2d(mg.tensor(x[None]), mg.tensor(w[None, None]))
    np.testing.assert_allclose(full.numpy()[0], signal.convolve(x, w, "full"), atol=1e-14)


SMALL = [
    ((1, 2, 5), (2, 2, 2), {}),
    ((1, 2, 5), (4, 1, 3), {"stride": 2, "padding": 1, "groups": 2}),
    ((1, 1, 3, 4), (2, 1, 2, 2), {"padding": "same", "dilation": (1, 2)}),
    ((1, 1, 2, 3, 2), (1, 1, 2, 2, 1), {"stride": (1, 2, 1), "padding": (0, 1, 0)}),
    # one output of several inputs along an axis, and more outputs than inputs
    ((1, 1, 2, 2), (2, 1, 1, 1), {"stride": (2, 1)}),
    ((1, 1, 3, 2, 2), (3, 1, 1, 1, 1), {"stride": (2, 3, 1)}),
]


@pytest.mark.parametrize(("shape", "kernel", "options"), SMALL)
def test_convolution_gradients(rng, shape, kernel, options):
    inputs = [rng.standard_normal(s) for s in (shape, kernel, kernel[:1])]
    oracle.check_gradients(lambda x, w, b: CONV[len(shape) - 2](x, w, b, **options), inputs, rng)


@pytest.mark.parametrize(
    ("shape", "kernel", "options"), [c for c in TRANSPOSED if np.prod(c[0]) and np.prod(c[0]) < 13]
)
def test_transposed_convolution_gradients(rng, shape, kernel, options):
    bias = kernel[1] * options.get("groups", 1)
    inputs = [rng.standard_normal(s) for s in (shape, kernel, (bias,))]
    oracle.check_gradients(
        lambda x, w, b: TRANSPOSE[len(shape) - 2](x, w, b, **options), inputs, rng
    )


@pytest.mark.parametrize("options", [{}, {"stride": 2, "padding": 1}, {"dilation": 2, "groups": 2}])
def test_the_transpose_is_the_gradient_with_respect_to_the_input(rng, options):
    x = mg.tensor(rng.standard_normal((2, 4, 7, 7)), requires_grad=True)
    w = mg.tensor(rng.standard_normal((6, 4 // options.get("groups", 1), 3, 3)))
    y = F.conv2d(x, w, **options)
    g = mg.tensor(rng.standard_normal(y.shape))
    y.backward(g)
    found = F.conv_transpose2d(g, w, **options)
    np.testing.assert_allclose(found.numpy(), x.grad.numpy(), atol=1e-13)


@pytest.mark.parametrize("outs", [1, 5, 32])  # lines of one channel, of several, lanes of channels
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_neighbours_that_come_of_two_sums_are_woven(rng, outs, dtype):
    for count in (1, 2, 7, 8, 9, 16, 17, 31, 33, 65, 600):
        for kernel, extra in (((1, 2), 0), ((2, 3), 0), ((2, 3), 1)):
            x = rng.standard_normal((2, 3, 3, count)).astype(dtype)
            w = rng.standard_normal((3, outs, *kernel)).astype(dtype)
            options = {"stride": (1, 2), "padding": (0, 1), "output_padding": (0, extra)}
            y = transposed(x.astype(float), w.astype(float), **options)
            got = F.conv_transpose2d(mg.tensor(x), mg.tensor(w), **options)
            np.testing.assert_allclose(got.numpy(), y, rtol=0, atol=40 * np.finfo(dtype).eps)


def test_steps_that_are_not_taken_cost_nothing():
    """One output takes no stride, one tap no dilation: copies of inputs had room for them."""
    x, w = mg.ones(1, 1, 3).requires_grad_(), mg.ones(1, 1, 2).requires_grad_()
    y = F.conv1d(x, w, stride=2**61)
    y.sum().backward()
    assert (y.tolist(), x.grad.tolist(), w.grad.tolist()) == ([[[2]]], [[[1, 1, 0]]], [[[1, 1]]])
    assert F.conv1d(x, w[..., :1], dilation=2**61).tolist() == [[[1, 1, 1]]]
    assert F.conv_transpose1d(x[..., :1], w, stride=2**61).tolist() == [[[1, 1]]]


@pytest.mark.parametrize("huge", [2**63, 10**30])
def test_sizes_beyond_int64_are_refused(huge):
    x, w = mg.ones(1, 1, 5), mg.ones(1, 1, 2)
    for wrong in ({"padding": huge}, {"stride": huge}, {"dilation": huge, "padding": huge}):
        with pytest.raises(ValueError, match=r"\[convolution\] a size or index is beyond int64"):
            F.conv1d(x, w, **wrong)
    with pytest.raises(ValueError, match=r"\[pooling\] a size or index is beyond int64"):
        F.avg_pool1d(x, huge, padding=huge // 2)


def test_a_transpose_may_be_empty():
    x, w = mg.ones(2, 4, 2, 3, requires_grad=True), mg.ones(4, 3, 1, 2, requires_grad=True)
    b = mg.ones(6, requires_grad=True)
    y = F.conv_transpose2d(x, w, b, padding=(1, 0), groups=2)
    assert y.shape == (2, 6, 0, 4)
    for g, t in zip(mg.grad(y.sum(), [x, w, b]), (x, w, b), strict=True):
        assert g.shape == t.shape
        assert not g.numpy().any()


def test_gradients_of_empty_inputs_have_their_shape():
    for shape, kernel in (((0, 2, 5), (3, 2, 2)), ((2, 2, 5), (0, 2, 2)), ((1, 0, 4), (3, 0, 2))):
        x, w = mg.zeros(shape, requires_grad=True), mg.zeros(kernel, requires_grad=True)
        gx, gw = mg.grad(F.conv1d(x, w).sum(), [x, w])
        assert (gx.shape, gw.shape) == (shape, kernel)
        assert not gw.numpy().any()


def test_gradients_keep_the_dtype_of_each_input(rng):
    x = mg.tensor(rng.standard_normal((1, 2, 5)), requires_grad=True)
    w = mg.tensor(rng.standard_normal((3, 2, 2)), mg.float32, requires_grad=True)
    y = F.conv1d(x, w)
    assert y.dtype is mg.float64
    gx, gw = mg.grad(y.sum(), [x, w])
    assert (gx.dtype, gw.dtype) == (mg.float64, mg.float32)


def test_any_layout_gives_the_same_bits(rng):
    x, w = rng.standard_normal((2, 3, 6, 5)), rng.standard_normal((4, 3, 2, 3))
    expected = F.conv2d(mg.tensor(x), mg.tensor(w), padding=1).numpy()
    g = rng.standard_normal(expected.shape)
    gradients = None
    for layout in oracle.LAYOUTS:
        a, b = (oracle.tensor_in_layout(v, layout, True) for v in (x, w))
        y = F.conv2d(a, b, padding=1)
        oracle.assert_same(y.detach().numpy(), expected)
        found = [v.numpy() for v in mg.grad(y, [a, b], oracle.tensor_in_layout(g, layout))]
        gradients = gradients or found
        for got, first in zip(found, gradients, strict=True):
            np.testing.assert_allclose(got, first, atol=1e-13)


def test_integers_are_convolved_exactly():
    y = F.conv1d(mg.tensor([[1, 2, 3]]), mg.tensor([[[2, 1]]]))
    oracle.assert_same(y.numpy(), np.array([[4, 7]]))
    with pytest.raises(TypeError, match=r"\[conv_transpose1d\].*int64"):
        F.conv_transpose1d(mg.tensor([[1, 2, 3]]), mg.tensor([[[2, 1]]]))


X, W = mg.ones(1, 4, 5, 5), mg.ones(6, 4, 3, 3)
MESSAGES = [
    (lambda: F.conv2d(mg.ones(5, 5), W), ValueError, "[conv2d] the input has shape (5, 5)"),
    (lambda: F.conv2d(X, mg.ones(6, 4, 3)), ValueError, "[conv2d] the weight has shape (6, 4, 3)"),
    (lambda: F.conv2d(X, mg.ones(6, 4, 0, 3)), ValueError, "a kernel that is not empty"),
    (lambda: F.conv2d(X, W, groups=2), ValueError, "4 channels, but the weight (6, 4, 3, 3) with"),
    (lambda: F.conv2d(X, mg.ones(5, 2, 1, 1), groups=2), ValueError, "groups=2 does not divide"),
    (lambda: F.conv2d(X, W, mg.ones(5)), ValueError, "the bias has shape (5,), but must be (6,)"),
    (lambda: F.conv2d(X, W, stride=0), ValueError, "[conv2d] stride is 0, but must be at least 1"),
    (lambda: F.conv2d(X, W, stride=1.5), TypeError, "stride must be an integer, not float"),
    (lambda: F.conv2d(X, W, stride=(1, 2, 1)), ValueError, "stride is (1, 2, 1), but there are 2"),
    (lambda: F.conv2d(X, W, padding=-1), ValueError, "padding is -1, but must be at least 0"),
    (lambda: F.conv2d(X, W, padding="full"), ValueError, "padding is 'full', but must be 'same'"),
    (lambda: F.conv2d(X, W, padding="same", stride=2), ValueError, "'same' needs stride 1"),
    (lambda: F.conv2d(X, W, dilation=3), ValueError, "spans (7, 7), the input with its padding"),
    (lambda: F.conv2d("x", W), TypeError, "[conv2d] expected a Tensor"),
    (
        lambda: F.conv_transpose2d(X, W),
        ValueError,
        "[conv_transpose2d] the input (1, 4, 5, 5) has 4 channels, the weight (6, 4, 3, 3) takes 6",
    ),
    (
        lambda: F.conv_transpose2d(X, mg.ones(4, 1, 2, 2), output_padding=1),
        ValueError,
        "output_padding 1 must be smaller than stride 1 or dilation 1",
    ),
    (
        lambda: F.conv_transpose2d(X, mg.ones(4, 1, 2, 2), padding=4),
        ValueError,
        "the output would have spatial size (-2, -2)",
    ),
]


@pytest.mark.parametrize("number", range(len(MESSAGES)))
def test_errors_show_the_values_and_the_rule(number):
    f, kind, text = MESSAGES[number]
    with pytest.raises(kind) as caught:
        f()
    assert text in str(caught.value)


# ---- windows -------------------------------------------------------------------------------------

WINDOW_CASES = [
    ((7,), Windows((3,), (3,), (2,), (1,))),
    ((2, 9), Windows((2,), (3,), (1,), (3,))),
    ((3, 4, 5), Windows((2, 3), (2, 2), (2, 1), (1, 2))),
    ((2, 3, 4, 5), Windows((2, 2, 3), (2, 3, 1), (1, 1, 2), (1, 1, 1))),
    ((4, 4), Windows((1, 0), (2, 2), (1, 1), (1, 1))),
    ((0, 4), Windows((3,), (2,), (1,), (1,))),
]


@pytest.mark.parametrize(("shape", "at"), WINDOW_CASES)
def test_windows_are_a_view_and_folding_is_the_transpose(rng, shape, at):
    x = mg.tensor(rng.integers(-9, 9, shape).astype(np.float64))
    seen = x.apply_row(WINDOWS, at)
    axes = len(at.counts)
    assert seen.shape == (*shape[:-axes], *at.counts, *at.kernel)
    for place in itertools.product(*map(range, at.counts)):
        for tap in itertools.product(*map(range, at.kernel)):
            where = tuple(
                c * s + k * d for c, k, s, d in zip(place, tap, at.stride, at.dilation, strict=True)
            )
            assert (seen.numpy()[(..., *place, *tap)] == x.numpy()[(..., *where)]).all()
    if seen.size:
        assert np.shares_memory(seen.numpy(), x.numpy())
    g = mg.tensor(rng.integers(-9, 9, seen.shape).astype(np.float64))
    back = g.apply_row(FOLD_WINDOWS, shape, at)
    assert back.shape == shape
    assert (back * x).sum().item() == (seen * g).sum().item()  # integers: exactly


@pytest.mark.parametrize(("shape", "at"), WINDOW_CASES[:3])
def test_windows_have_gradients_of_every_order(rng, shape, at):
    oracle.check_gradients(
        lambda x: x.apply_row(WINDOWS, at).square(), [rng.standard_normal(shape)], rng
    )
    seen = mg.zeros(shape).apply_row(WINDOWS, at).shape
    oracle.check_gradients(
        lambda g: g.apply_row(FOLD_WINDOWS, shape, at).square(), [rng.standard_normal(seen)], rng
    )


def test_the_kernels_refuse_windows_beyond_the_array():
    x = mg.ones(2, 5)
    for wrong in (((4,), (2,), (1,), (2,)), ((6,), (1,), (1,), (1,)), ((2,), (2,), (2**62,), (1,))):
        with pytest.raises((ValueError, IndexError)):
            x.apply_row(WINDOWS, Windows(*wrong))
    for wrong in (((1,), (0,), (1,), (1,)), ((-1,), (1,), (1,), (1,)), ((1,), (1,), (0,), (1,))):
        with pytest.raises(ValueError, match="windows"):
            x.apply_row(WINDOWS, Windows(*wrong))
    at = Windows((2,), (2,), (1,), (1,))
    with pytest.raises(ValueError, match="fold_windows"):
        mg.ones(3, 2, 2).apply_row(FOLD_WINDOWS, (2, 5), at)
    with pytest.raises(IndexError, match="fold_windows"):
        mg.ones(2, 2, 2).apply_row(FOLD_WINDOWS, (2, 2), at)
    with pytest.raises(TypeError, match="int64"):
        mg.ones(2, 2, 2, dtype=mg.int64).apply_row(FOLD_WINDOWS, (2, 5), at)
    shape = ffi.new("int64_t[]", [1] * 16)
    assert not lib.mg_view_windows(mg.ones((1,) * 16)._h, 1, shape, shape, shape, shape)
    assert lib.mg_error() == lib.MG_ENDIM


def test_folding_gives_the_same_bits_for_any_number_of_threads(rng):
    at = Windows((30, 30), (3, 3), (1, 1), (1, 1))
    g = mg.tensor(rng.standard_normal((64, 30, 30, 3, 3)).astype(np.float32))
    found, before = [], mg.get_num_threads()
    for threads in (1, 2, 3):
        mg.set_num_threads(threads)
        found.append(g.apply_row(FOLD_WINDOWS, (64, 32, 32), at).numpy())
    mg.set_num_threads(before)
    oracle.assert_same(found[1], found[0])
    oracle.assert_same(found[2], found[0])


# ---- every path ----------------------------------------------------------------------------------


def drawn(rng):
    """The shapes of an input and a weight, and options that fit them."""
    axes = int(rng.integers(1, 4))
    largest = {1: 70, 2: 20, 3: 7}[axes]
    groups = int(rng.choice([1, 1, 1, 2, 3, 8]))
    channels = groups * int(rng.choice([1, 1, 2, 3, 5, 17, 40]))
    outs = groups * int(rng.choice([1, 1, 2, 3, 7, 16, 33]))
    kernel = tuple(int(n) for n in rng.integers(1, 5, axes))
    options = {
        "stride": tuple(int(n) for n in rng.choice([1, 1, 2, 3], axes)),
        "dilation": tuple(int(n) for n in rng.choice([1, 1, 2, 3], axes)),
        "padding": tuple(int(n) for n in rng.choice([0, 1, 2, 4], axes)),
        "groups": groups,
    }
    if rng.random() < 0.2:
        options |= {"stride": 1, "padding": "same"}
    reach = 1 + max(d * (k - 1) for k, d in zip(kernel, options["dilation"], strict=True))
    sizes = tuple(int(n) for n in rng.integers(reach, reach + largest, axes))
    batch = int(rng.choice([0, 1, 2, 3, 9]))
    return (batch, channels, *sizes), (outs, channels // groups, *kernel), options


def check_with_threads(rng, shape, kernel, options, dtype):
    """Values and both gradients against float64 sums; the gradients as those of a linear map."""
    x, w, b = (rng.standard_normal(s).astype(dtype) for s in (shape, kernel, kernel[:1]))
    exact = [v.astype(np.float64) for v in (x, w, b)]
    expected = convolution(*exact, **options)
    size = convolution(*[abs(v) for v in exact], **options)
    bound = (np.prod(kernel[1:]) + 2) * np.finfo(dtype).eps * size
    g = rng.standard_normal(expected.shape).astype(dtype)
    found, before = [], mg.get_num_threads()
    for threads in (1, 2, 3):
        mg.set_num_threads(threads)
        leaves = [mg.tensor(v, requires_grad=True) for v in (x, w, b)]
        y = CONV[len(shape) - 2](*leaves, **options)
        back = mg.grad(y, leaves, mg.tensor(g))
        found.append([y.detach().numpy(), *[v.numpy() for v in back]])
    mg.set_num_threads(before)
    for again in found[1:]:
        for got, first in zip(again, found[0], strict=True):
            oracle.assert_same(got, first)
    y, gx, gw, gb = found[0]
    assert (abs(y - expected) <= bound).all()
    # <g, conv(v, w)> = <gx, v> for any v, and likewise for the weight: here unit vectors
    wide = g.astype(np.float64)
    for gradient, place in ((gx, 0), (gw, 1)):
        for _ in range(4 if gradient.size else 0):
            where = tuple(int(rng.integers(n)) for n in gradient.shape)
            one = [np.zeros(shape), np.zeros(kernel)]
            one[place][where] = 1
            one[1 - place] = exact[1 - place]
            terms = wide * convolution(*one, **options)
            slack = (terms.size + 2) * np.finfo(dtype).eps * abs(terms).sum()
            assert abs(gradient[where] - terms.sum()) <= slack
    axes = (0, *range(2, wide.ndim))
    np.testing.assert_allclose(gb, wide.sum(axes), rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("seed", range(60))
def test_random_shapes_are_right_with_the_same_bits_for_any_number_of_threads(seed):
    rng = np.random.default_rng(seed)
    check_with_threads(rng, *drawn(rng), rng.choice([np.float32, np.float64]))


PADDED = [
    ((3, 40, 7, 9), (70, 40, 3, 3), {"padding": 1}),
    ((2, 130, 7, 7), (33, 130, 3, 3), {"padding": 1}),
    ((5, 48, 5, 14), (64, 48, 3, 3), {"padding": (1, 2), "dilation": (1, 2)}),
    ((2, 64, 13, 3), (80, 32, 3, 5), {"padding": (3, 4), "stride": (2, 1), "groups": 2}),
    ((9, 33, 28), (96, 33, 5), {"padding": 9, "dilation": 2}),
    ((1, 64, 2, 2), (64, 64, 3, 3), {"padding": 4}),
    ((2, 17, 4, 5, 6), (130, 17, 3, 3, 3), {"padding": 1}),
    ((11, 65, 3, 3), (35, 65, 3, 3), {"padding": 1, "stride": (1, 2)}),
]


@pytest.mark.parametrize(("shape", "kernel", "options"), PADDED)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_many_channels_in_much_padding(rng, shape, kernel, options, dtype):
    """Where the terms whose inputs lie in the padding are left out, of some outputs or of all."""
    check_with_threads(rng, shape, kernel, options, dtype)


SQUARES = [
    ((3, 48, 14, 13), (40, 48, 3, 3), {"padding": 1}),
    ((1, 33, 9, 70), (64, 33, 3, 3), {}),
    ((2, 130, 8, 8), (33, 130, 3, 3), {"padding": 2}),
    ((2, 40, 17, 31), (40, 40, 3, 3), {"padding": 2, "dilation": 2}),
    ((1, 64, 31, 13), (96, 32, 3, 3), {"padding": (3, 1), "dilation": (3, 1), "groups": 2}),
    ((2, 48, 3, 12, 11), (48, 48, 1, 3, 3), {"padding": (1, 1, 1), "stride": (2, 1, 1)}),
    ((9, 64, 10, 9), (64, 64, 3, 3), {"padding": 1}),
    ((1, 40, 4, 1030), (40, 40, 3, 3), {"padding": 1}),
    ((5, 80, 12), (72, 80, 3), {}),
    # fewer squares than outputs
    ((4, 96, 7, 7), (160, 96, 3, 3), {"padding": 1}),
    ((3, 128, 9, 12), (384, 64, 3, 3), {"padding": 2, "dilation": 2, "groups": 2}),
]


@pytest.mark.parametrize(("shape", "kernel", "options"), SQUARES)
def test_three_taps_by_three_of_many_channels(rng, shape, kernel, options):
    """Where squares of outputs may share products, whatever is left of squares at the edges."""
    check_with_threads(rng, shape, kernel, options, np.float32)


# stride, dilation, and outputs along a line of the transpose, an odd and an even number
BY_HALVES = [
    ((1, 2), (1, 2), 45),
    ((1, 2), (1, 4), 46),
    ((1, 2), (2, 2), 46),
    ((2, 2), (2, 4), 46),  # and every second line
]


@pytest.mark.parametrize(("stride", "dilation", "size"), BY_HALVES)
def test_squares_of_every_second_output(rng, stride, dilation, size):
    """All nine taps meet every second output, which waits at the end of its line to be woven."""
    shape, kernel = (2, 40, 47, size), (40, 40, 3, 3)
    options = {"stride": stride, "dilation": dilation, "padding": 2}
    check_with_threads(rng, shape, kernel, options, np.float32)
    g = rng.standard_normal((2, 40, 21, 22)).astype(np.float32)
    w = rng.standard_normal(kernel).astype(np.float32)
    y = F.conv_transpose2d(mg.tensor(g), mg.tensor(w), **options)
    expected = transposed(g.astype(float), w.astype(float), **options)
    np.testing.assert_allclose(y.numpy(), expected, rtol=0, atol=2e-4)


@pytest.mark.parametrize(("stride", "dilation", "size"), BY_HALVES)
@pytest.mark.parametrize("taps", [3, 5])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_planes_of_every_second_output(rng, stride, dilation, size, taps, dtype):
    """The same where a channel is a group of its own."""
    shape, kernel = (2, 3, 23, size), (3, 1, taps, taps)
    options = {"stride": stride, "dilation": dilation, "padding": 2, "groups": 3}
    check_with_threads(rng, shape, kernel, options, dtype)
    g, w = (rng.standard_normal(s).astype(dtype) for s in ((2, 3, 11, 17), kernel))
    y = F.conv_transpose2d(mg.tensor(g), mg.tensor(w), **options)
    expected = transposed(g.astype(float), w.astype(float), **options)
    np.testing.assert_allclose(y.numpy(), expected, rtol=0, atol=100 * np.finfo(dtype).eps)


def both_ways(x, w, g, options):
    """The outputs, and the gradients by inputs and by weights, which are the same by any thread."""
    found, before = [], mg.get_num_threads()
    for threads in (1, 2, 3):
        mg.set_num_threads(threads)
        a, b = mg.tensor(x, requires_grad=True), mg.tensor(w, requires_grad=True)
        y = F.conv2d(a, b, **options)
        found.append([v.detach().numpy() for v in (y, *mg.grad(y, [a, b], mg.tensor(g)))])
    mg.set_num_threads(before)
    for again in found[1:]:
        for got, first in zip(again, found[0], strict=True):
            oracle.assert_same(got, first)
    return found[0]


def weights_gradient(x, g, w, dilation=1):
    """By the definition, without padding."""
    gw = np.zeros(w.shape)
    for tap, at in taps(w.shape[2:], g.shape[2:], (1, 1), axes_of(dilation, 2)):
        gw[(..., *tap)] = np.einsum("nchw,nohw->oc", x[(..., *at)], g)
    return gw


@pytest.mark.parametrize("dilation", [1, 2])
@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
def test_what_is_not_finite_reaches_the_sums_that_hold_it(rng, value, dilation):
    """As it is or as NaN, as the sum of its terms has it, one of weight zero among them."""
    shape, kernel = (2, 48, 15, 14), (40, 48, 3, 3)
    x, w = (rng.standard_normal(s).astype(np.float32) for s in (shape, kernel))
    g = rng.standard_normal((2, 40, *(n - 2 * dilation for n in shape[2:]))).astype(np.float32)
    w[3, 5, 1] = 0
    for of in (x, g):
        clean = of[1, 5, 4, 6]
        of[1, 5, 4, 6] = value
        got = both_ways(x, w, g, {"dilation": dilation})
        wide = [v.astype(np.float64) for v in (x, w, g)]
        with np.errstate(invalid="ignore"):
            expected = [
                convolution(wide[0], wide[1], dilation=dilation),
                transposed(wide[2], wide[1], dilation=dilation),
                weights_gradient(wide[0], wide[2], w, dilation),
            ]
        for one, other in zip(got, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-3)
        of[1, 5, 4, 6] = clean


def test_sums_near_the_largest_numbers_do_not_overflow_on_the_way(rng):
    x = rng.uniform(-1, 1, (1, 40, 12, 12)).astype(np.float32)
    w = rng.uniform(-0.2, 0.2, (40, 40, 3, 3)).astype(np.float32)
    g = rng.uniform(-1, 1, (1, 40, 10, 10)).astype(np.float32)
    x[0, 7, 5:7, 5:7] = g[0, 7, 5:7, 5:7] = 3e38
    g *= np.float32(2**-130)
    y, by_input, by_weight = both_ways(x, w, g, {})
    wide = [v.astype(np.float64) for v in (x, w, g)]
    for got, expected in (
        (y, convolution(wide[0], wide[1])),
        (by_input, transposed(wide[2], wide[1])),
        (by_weight, weights_gradient(wide[0], wide[2], w)),
    ):
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-4 * abs(expected).max())


def test_integers_are_summed_exactly_whatever_they_are_scaled_by(rng):
    """Down to subnormal numbers, which have no bits to lose."""
    x, w, g = (
        rng.integers(-8, 9, s).astype(np.float32)
        for s in ((2, 40, 13, 12), (48, 40, 3, 3), (2, 48, 11, 10))
    )
    expected = convolution(x, w), transposed(g, w), weights_gradient(x, g, w)
    for scales in ((0, 0, 0), (100, -149, 100), (-149, 100, 90), (100, 90, -149)):
        small = [np.ldexp(v, n) for v, n in zip((x, w, g), scales, strict=True)]
        got = both_ways(*small, {})
        for one, other, n in zip(
            got,
            expected,
            [scales[0] + scales[1], scales[2] + scales[1], scales[0] + scales[2]],
            strict=True,
        ):
            if abs(n) < 110:
                np.testing.assert_array_equal(one, np.ldexp(other, n))


LONG_LINES = [
    ((2, 8, 33), (16, 8, 3), {"padding": 1}),
    ((2, 40, 31), (16, 40, 3), {}),
    ((1, 32, 5, 33), (32, 16, 3, 3), {"groups": 2, "padding": 1}),
    ((1, 16, 4, 59), (16, 16, 2, 3), {"padding": (0, 2)}),
    ((1, 16, 3, 3, 30), (16, 16, 1, 2, 3), {"padding": (0, 1, 0)}),
    ((3, 27, 5, 7), (9, 9, 3, 3), {"groups": 3, "padding": 1}),
    ((2, 16, 3, 4), (40, 16, 2, 3), {}),
    ((2, 9, 2, 300), (7, 9, 1, 3), {"padding": (0, 1)}),
    ((1, 8, 3, 3), (8, 8, 3, 3), {}),
    ((5, 17, 7, 7), (19, 17, 3, 3), {"padding": 1}),
    ((2, 15, 11, 24), (16, 15, 3, 3), {"padding": 1, "stride": (2, 1)}),
    ((9, 130, 1, 3), (24, 130, 1, 1), {}),
]


@pytest.mark.parametrize(("shape", "kernel", "options"), LONG_LINES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_three_taps_along_a_long_line_of_few_channels(rng, shape, kernel, options, dtype):
    """Where a number may be read once for all taps that it meets, in either direction."""
    x, w = (rng.standard_normal(s).astype(dtype) for s in (shape, kernel))
    x[(0,) * (x.ndim - 1)][2] = np.inf  # meets nothing but its own windows
    a, b = mg.tensor(x, requires_grad=True), mg.tensor(w, requires_grad=True)
    y = CONV[len(shape) - 2](a, b, **options)
    g = rng.standard_normal(y.shape).astype(dtype)
    back, by_weight = mg.grad(y, [a, b], mg.tensor(g))
    wide = [v.astype(np.float64) for v in (x, w, g)]
    for got, f, args in (
        (y.detach().numpy(), convolution, (wide[0], wide[1])),
        (back.numpy(), transposed, (wide[2], wide[1])),
    ):
        expected = f(*args, **options)
        slack = f(*[abs(v) for v in args], **options) * (w.size * np.finfo(dtype).eps)
        finite = np.isfinite(slack)
        assert (abs(got[finite] - expected[finite]) <= slack[finite]).all()
        assert not np.isfinite(got[~finite]).any()
    infinite, one = np.isinf(wide[0]), np.zeros(kernel)
    for where in map(tuple, rng.permutation(list(np.ndindex(*kernel)))[:200]):
        one[where] = 1
        terms = wide[2] * convolution(np.where(infinite, 0, wide[0]), one, **options)
        met = convolution(infinite.astype(float), one, **options).any()
        one[where] = 0
        got = by_weight.numpy()[where]
        slack = abs(terms).sum() * terms.size * np.finfo(dtype).eps
        assert not np.isfinite(got) if met else abs(got - terms.sum()) <= slack


@pytest.mark.parametrize("dtype", [mg.float32, mg.float64])
def test_infinity_stays_in_the_windows_that_hold_it(dtype):
    x = mg.ones(1, 1, 7, 19, dtype=dtype)
    x[0, 0, 3, 4] = math.inf
    for outs in (1, 3, 16):
        y = F.conv2d(x, mg.ones(outs, 1, 3, 3, dtype=dtype), padding=1).numpy()
        inside = np.zeros((7, 19), bool)
        inside[2:5, 3:6] = True
        assert (np.isinf(y) == inside).all()
        assert not np.isnan(y).any()


@pytest.mark.parametrize("size", [3, 5])
@pytest.mark.parametrize("width", [7, 16, 37])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_planes_see_no_element_of_the_planes_around_them(rng, size, width, dtype):
    """A plane lies between two of infinities, whose lines follow on its own."""
    x = np.full((2, 3, 6, width), math.inf, dtype)
    x[:, 1] = rng.standard_normal((2, 6, width))
    a, w = mg.tensor(x, requires_grad=True), mg.ones(3, 1, size, size, dtype=mg.tensor(x).dtype)
    w.requires_grad = True
    for padding in range(size):
        if width + 2 * padding >= size:
            y = F.conv2d(a, w, padding=padding, groups=3)
            g = np.full(y.shape, math.inf, dtype)
            g[:, 1] = 1
            back, by_weight = mg.grad(y, [a, w], mg.tensor(g))
            assert np.isfinite(y.detach().numpy()[:, 1]).all()
            assert np.isfinite(back.numpy()[:, 1]).all()
            assert np.isfinite(by_weight.numpy()[1]).all()


@pytest.mark.parametrize("outs", [1, 2, 9, 16])
def test_gradients_of_weights_see_no_element_beyond_their_outputs(outs):
    """Rows of the input are longer than those of the output: what is not used may be infinite."""
    x = mg.ones(2, 1, 5, 21)
    x[:, :, :, 20] = math.inf
    w = mg.zeros(outs, 1, 3, 3, requires_grad=True)
    y = F.conv2d(x, w, stride=(1, 2))[..., :9]
    (g,) = mg.grad(y.sum(), [w])
    assert g.numpy()[..., :2].tolist() == np.full((outs, 1, 3, 2), 54.0).tolist()
