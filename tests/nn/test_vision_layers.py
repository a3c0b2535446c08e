"""Layers for pixel shuffle, fold and upsampling."""

from __future__ import annotations

import re

import numpy as np
import pytest
from torch_layers import same_as_torch

import minigrad as mg
from minigrad import nn


def test_values(rng):
    x = rng.standard_normal((2, 6, 2, 3))
    shuffled = x.reshape(2, 3, 2, 2, 3).swapaxes(1, 2).reshape(x.shape)
    assert np.array_equal(nn.ChannelShuffle(3)(mg.tensor(x)).numpy(), shuffled)
    doubled = x.repeat(2, 2).repeat(2, 3)
    assert np.array_equal(nn.Upsample(scale_factor=2)(mg.tensor(x)).numpy(), doubled)
    assert np.array_equal(nn.UpsamplingNearest2d((4, 6))(mg.tensor(x)).numpy(), doubled)
    line = nn.Upsample(size=3, mode="linear", align_corners=True)(mg.tensor([[[0.0, 4.0]]]))
    assert line.tolist() == [[[0.0, 2.0, 4.0]]]
    assert nn.Unflatten(-1, (1, 3))(mg.tensor(x)).shape == (2, 6, 2, 1, 3)
    finer = nn.PixelShuffle(2)(mg.tensor(x[:, :4]))
    assert np.array_equal(nn.PixelUnshuffle(2)(finer).numpy(), x[:, :4])


def test_gradients(rng):
    x = mg.tensor(rng.standard_normal((1, 4, 2, 2)), requires_grad=True)
    for layer in (
        nn.ChannelShuffle(2),
        nn.PixelShuffle(2),
        nn.PixelUnshuffle(2),
        nn.Unfold(2),
        nn.UpsamplingBilinear2d(scale_factor=2),
        nn.Unflatten(1, (2, 2)),
    ):
        assert mg.gradcheck(layer, (x,)), layer


@pytest.mark.parametrize(
    ("make", "shape"),
    [
        (lambda n: n.Upsample(scale_factor=2), (2, 3, 4)),
        (lambda n: n.Upsample(scale_factor=(2, 1.5), mode="bilinear"), (2, 3, 4, 5)),
        (lambda n: n.Upsample(size=(5, 7), mode="bicubic", align_corners=True), (2, 3, 4, 5)),
        (lambda n: n.Upsample(5, mode="trilinear"), (1, 2, 2, 3, 4)),
        (lambda n: n.UpsamplingNearest2d(scale_factor=3), (2, 3, 4, 5)),
        (lambda n: n.UpsamplingBilinear2d(size=(3, 9)), (2, 3, 4, 5)),
        (lambda n: n.PixelShuffle(2), (2, 8, 3, 4)),
        (lambda n: n.PixelUnshuffle(2), (2, 3, 4, 6)),
        (lambda n: n.ChannelShuffle(3), (2, 6, 4, 3)),
        (lambda n: n.Unflatten(1, (2, 3)), (2, 6, 4)),
        (lambda n: n.Unfold((2, 3), padding=1, stride=(1, 2)), (2, 3, 4, 5)),
        (lambda n: n.Fold((4, 5), (2, 3), dilation=1, padding=1, stride=(1, 2)), (2, 12, 15)),
    ],
)
def test_as_pytorch(make, shape):
    same_as_torch(make, shape)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (
            lambda: nn.ChannelShuffle(4)(mg.ones(1, 6, 2)),
            ValueError,
            "[channel_shuffle] the input has shape (1, 6, 2), but must be (N, C, ...), C divisible "
            "by 4",
        ),
        (
            lambda: nn.PixelShuffle(0),
            ValueError,
            "[PixelShuffle] upscale_factor is 0, but must be at least 1",
        ),
        (
            lambda: nn.Unflatten(1, 3),
            TypeError,
            "[Unflatten] unflattened_size is a tuple of sizes, not int",
        ),
        (lambda: nn.Upsample()(mg.ones(1, 1, 2)), ValueError, "give one of size and scale_factor"),
    ],
)
def test_refusals(call, error, text):
    with pytest.raises(error, match=re.escape(text)):
        call()
