"""Calls for rows of the op table that no sample records, with references, by the row's name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import minigrad as mg
import minigrad.nn.functional as F
from expected.base import sigmoid


def _leaf(*values: Any) -> Any:
    return mg.tensor(np.array(values, float)).requires_grad_()


def _complete_basis() -> Any:
    q, r = mg.linalg.qr(_leaf([3.0, 1.0], [4.0, 2.0], [0.0, 2.0]).detach(), "complete")
    return [q.mT @ q, q @ r]


def _weights_of_causal_attention() -> Any:
    """With scores of 0 each query gets the mean of the values up to it."""
    v = _leaf([1.0], [2.0], [4.0])
    zeros = mg.zeros(3, 1, dtype=mg.float64)
    y = F.scaled_dot_product_attention(zeros, zeros, v, is_causal=True)
    return mg.grad(y.sum(), v, create_graph=True)


def _products_of_the_others() -> Any:
    x = _leaf(1e300, 1e250, 1e-300, 1e-250)
    return mg.grad(mg.prod(x), x, create_graph=True)


def _projected() -> Any:
    """Two steps of an LSTM with two cells, whose h is projected to one number."""
    layer = mg.nn.LSTM(1, 2, proj_size=1, dtype=mg.float64)
    for k, p in enumerate(layer.parameters()):
        p.data = mg.linspace(-0.5, 0.5, p.numel(), dtype=mg.float64).reshape(p.shape) + 0.1 * k
    return layer(mg.tensor([[[0.5]], [[-1.0]]], mg.float64))[0]


def _projected_by_numpy() -> Any:
    shapes = [(8, 1), (8, 1), (8,), (8,), (1, 2)]
    w = [np.linspace(-0.5, 0.5, int(np.prod(s))).reshape(s) + 0.1 * k for k, s in enumerate(shapes)]
    h, c, found = np.zeros(1), np.zeros(2), []
    for x in ([0.5], [-1.0]):
        i, f, g, o = np.split(w[0] @ x + w[2] + w[1] @ h + w[3], 4)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = w[4] @ (sigmoid(o) * np.tanh(c))
        found.append([h])
    return np.array(found)


ROWS: dict[str, tuple[Callable[[], Any], Any]] = {
    "basis": (
        _complete_basis,
        [np.eye(3), np.array([[3.0, 1.0], [4.0, 2.0], [0.0, 2.0]])],
    ),
    "pool_argmax": (
        lambda: F.max_pool1d(_leaf([1.0, 5.0, 4.0, 3.0]), 2, return_indices=True)[1],
        np.array([[1, 2]]),
    ),
    "causal": (_weights_of_causal_attention, np.array([[11 / 6], [5 / 6], [2 / 6]])),
    "lstm_projected_steps": (_projected, _projected_by_numpy()),
    "median_positions": (lambda: mg.median(_leaf(3.0, 1.0, 8.0, 2.0)), 2.5),
    "order_statistics": (lambda: mg.kthvalue(_leaf(3.0, 1.0, 8.0, 2.0), 3), [3.0, 0]),
    "shifted": (_products_of_the_others, np.array([1e-300, 1e-250, 1e300, 1e250])),
    "to": (lambda: _leaf(1.5, -2.0).to(mg.float32), np.array([1.5, -2.0], np.float32)),
    "units": (
        lambda: F.cosine_similarity(_leaf(3e-200, 4e-200), _leaf(1e-200, 0.0), 0, 0.0),
        0.6,
    ),
}
