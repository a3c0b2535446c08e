"""Grid sampling: by hand, by finite differences and as in PyTorch."""

from __future__ import annotations

import re

import numpy as np
import pytest

import minigrad as mg

F = mg.nn.functional
MODES = ("bilinear", "nearest", "bicubic")
PADDING = ("zeros", "border", "reflection")


def test_by_hand():
    x = mg.tensor([[[[0.0, 10.0], [20.0, 30.0]]]])
    points = mg.tensor([[[[-1.0, -1.0], [0.0, 0.0], [1.0, 0.0], [3.0, 3.0]]]])
    assert F.grid_sample(x, points, align_corners=True).flatten().tolist() == [0, 15, 20, 0]
    nearest = F.grid_sample(x, points * 0.9, "nearest", "border", True)
    assert nearest.flatten().tolist()[::3] == [0, 30]
    # Without align_corners the corner of the image is a quarter of the corner pixel.
    corner = F.grid_sample(x + 4.0, points, align_corners=False)[0, 0, 0, 0]
    assert corner.item() == 1.0
    assert F.grid_sample(x, points, "bilinear", "border").flatten().tolist()[::3] == [0, 30]
    lost = mg.tensor([[[[float("nan"), 0.0], [float("inf"), 0.0]]]])
    assert F.grid_sample(x, lost, align_corners=True).flatten().tolist() == [0, 0]


def test_the_same_image(rng):
    x = mg.tensor(rng.standard_normal((2, 3, 4, 5)))
    same = mg.tensor([[[1.0, 0, 0], [0, 1, 0]]] * 2, dtype=mg.float64)
    for align in (True, False):
        for mode in MODES:
            grid = F.affine_grid(same, (2, 3, 4, 5), align)
            found = F.grid_sample(x, grid, mode, align_corners=align)
            np.testing.assert_allclose(found.numpy(), x.numpy(), atol=1e-12)


def test_nothing_to_read():
    assert F.grid_sample(mg.ones(0, 1, 2, 2), mg.ones(0, 1, 3, 2)).shape == (0, 1, 1, 3)
    assert F.grid_sample(mg.ones(1, 1, 2, 2), mg.ones(1, 0, 1, 2)).shape == (1, 1, 0, 1)


@pytest.mark.parametrize("padding", PADDING)
@pytest.mark.parametrize("mode", MODES)
def test_gradients(mode, padding, rng):
    x = mg.tensor(rng.standard_normal((1, 2, 3, 4)), requires_grad=True)
    grid = mg.tensor(rng.uniform(-1.7, 1.7, (1, 2, 3, 2)), requires_grad=mode != "nearest")
    assert mg.gradcheck(lambda a, g: F.grid_sample(a, g, mode, padding), (x, grid))


@pytest.mark.parametrize("align", [True, False])
@pytest.mark.parametrize("padding", PADDING)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("axes", [2, 3])
def test_as_pytorch(mode, padding, align, axes, rng):
    torch = pytest.importorskip("torch")
    if mode == "bicubic" and axes == 3:
        return
    x = rng.standard_normal((2, 3, 4, 5, 6)[: axes + 2])
    theta = rng.standard_normal((2, axes, axes + 1))
    found = []
    for t, functional in ((torch, torch.nn.functional), (mg, F)):
        a, m = (t.tensor(v, requires_grad=True) for v in (x, theta))
        grid = functional.affine_grid(m, [2, 3, 3, 2, 4][: axes + 2], align_corners=align)
        y = functional.grid_sample(a, grid, mode, padding, align)
        y.square().sum().backward()
        found.append([v.detach().numpy() for v in (grid, y, a.grad, m.grad) if v is not None])
    for theirs, ours in zip(*found, strict=False):
        np.testing.assert_allclose(ours, theirs, rtol=1e-8, atol=1e-9)


X = mg.ones(1, 1, 2, 2)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (
            lambda: F.grid_sample(X, mg.ones(1, 2, 2, 3)),
            "[grid_sample] input (1, 1, 2, 2) and grid (1, 2, 2, 3) do not fit",
        ),
        (
            lambda: F.grid_sample(X, mg.ones(1, 2, 2, 2), "linear"),
            "[grid_sample] mode is 'linear', but must be 'bilinear', 'nearest' or, for images, "
            "'bicubic'",
        ),
        (
            lambda: F.grid_sample(X, mg.ones(1, 2, 2, 2), padding_mode="wrap"),
            "[grid_sample] padding_mode is 'wrap', but must be 'zeros', 'border' or 'reflection'",
        ),
        (
            lambda: F.affine_grid(mg.ones(1, 2, 2), (1, 1, 2, 2)),
            "[affine_grid] theta has shape (1, 2, 2) and size is (1, 1, 2, 2)",
        ),
    ],
)
def test_refusals(call, text):
    with pytest.raises(ValueError, match=re.escape(text)):
        call()
