"""Samples in slices: several of each input, and the results by vmap and by a loop."""

from __future__ import annotations

from typing import Any

import numpy as np

import minigrad as mg

SIZE = 3


def batches(sample: Any, dtype: Any = np.float64) -> list[np.ndarray[Any, Any]]:
    """For each input of a sample so many of its kind, along a new first axis."""
    made = []
    for x in sample.inputs(dtype):
        if sample.matrix is not None:
            slices = [x * (1 + 0.1 * k) for k in range(SIZE)]
        else:
            slices = [np.roll(x.reshape(-1), 2 * k).reshape(x.shape) for k in range(SIZE)]
        made.append(np.stack(slices).astype(dtype))
    return made


def floats(results: Any) -> list[Any]:
    """The tensors among results."""
    return [y for y in results if isinstance(y, mg.Tensor)]


def by_vmap(sample: Any, inputs: Any, dims: Any) -> list[Any]:
    """The results for all slices at once."""
    return list(mg.vmap(lambda *xs: tuple(floats(sample(*xs))), dims, **how(sample))(*inputs))


def how(sample: Any) -> dict[str, str]:
    """How a vmap of the sample draws: a sample draws the same numbers at each call."""
    return {"randomness": "same"} if sample.random else {}


def by_loop(sample: Any, inputs: Any, dims: Any) -> list[Any]:
    """The results of a call for each slice, stacked."""
    slices = []
    for k in range(SIZE):
        given = [x if d is None else x.select(d, k) for x, d in zip(inputs, dims, strict=True)]
        slices.append(floats(sample(*given)))
    return [mg.stack(list(each)) for each in zip(*slices, strict=True)]
