"""A small convolutional network like LeNet-5 (LeCun et al. 1998), with relu and max pooling."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from benchmarks.libraries import ChannelsLast, fastest
from benchmarks.models.mlp import linear_weights
from benchmarks.models.problem import WAYS, Problem

__all__ = ["LeNet"]

_CLASSES = 10


class LeNet(Problem):
    """Two convolutions of 5x5, each pooled by 2x2, then three linear layers."""

    def __init__(self, image: int, batch: int, optimiser: str) -> None:
        self.image, self.batch, self.optimiser = image, batch, optimiser
        self.name = f"LeNet {image}x{image}, batch {batch}, {optimiser}"
        half = image // 2
        self._left = (half - 4) // 2  # the size of the image after both
        self._linear = (16 * self._left**2, 120, 84, _CLASSES)
        first, second = 6 * 25 * image**2, 16 * 6 * 25 * (half - 4) ** 2
        linear = sum(a * b for a, b in pairwise(self._linear))
        self.flops = 2.0 * batch * (2 * first + 3 * (second + linear))

    def tiny(self) -> LeNet:
        return LeNet(12, 2, self.optimiser)

    def inputs(self, rng: Any) -> list[np.ndarray]:
        x = rng.standard_normal((self.batch, 1, self.image, self.image), dtype=np.float32)
        found = [x, rng.integers(0, _CLASSES, self.batch)]
        for channels, outputs in ((1, 6), (6, 16)):
            weight, bias = linear_weights(rng, channels * 25, outputs)
            found += [weight.reshape(outputs, channels, 5, 5), bias]
        for fan_in, fan_out in pairwise(self._linear):
            found += linear_weights(rng, fan_in, fan_out)
        return found

    def module(self, lib: Any) -> Any:
        nn, functional, sizes = lib.nn, lib.functional, self._linear

        class Net(nn.Module):  # type: ignore[misc, name-defined]
            def __init__(self) -> None:
                super().__init__()
                self.conv1 = nn.Conv2d(1, 6, 5, padding=2)
                self.conv2 = nn.Conv2d(6, 16, 5)
                self.linear1 = nn.Linear(sizes[0], sizes[1])
                self.linear2 = nn.Linear(sizes[1], sizes[2])
                self.linear3 = nn.Linear(sizes[2], sizes[3])

            def forward(self, x: Any) -> Any:
                relu, pool = functional.relu, functional.max_pool2d
                x = pool(relu(self.conv1(x)), 2)
                x = pool(relu(self.conv2(x)), 2)
                x = relu(self.linear1(x.reshape(len(x), -1)))
                return self.linear3(relu(self.linear2(x)))

        return Net()

    def _torch(self, lib: Any, *inputs: Any) -> Any:
        """The module, for both layouts of channels."""
        last = ChannelsLast(lib.xp.get_num_threads())
        makers = {
            f"{way}{layout}": partial(self._eager, library, *inputs, way=options)
            for way, options in WAYS.items()
            for layout, library in (("", lib), (", channels last", last))
        }
        return fastest(makers)

    def jax(self, jax: Any, weights: Sequence[Any], x: Any) -> Any:
        """jax with the channels last, its fastest layout, and the same weights as the others."""
        relu = jax.nn.relu

        def convolved(x: Any, w: Any, b: Any, padding: int) -> Any:
            around = [(padding, padding)] * 2
            layout = ("NHWC", "OIHW", "NHWC")
            y = jax.lax.conv_general_dilated(x, w, (1, 1), around, dimension_numbers=layout)
            return relu(y + b)

        def pooled(x: Any) -> Any:
            batch, rows, columns, channels = x.shape
            return x.reshape(batch, rows // 2, 2, columns // 2, 2, channels).max((2, 4))

        w1, b1, w2, b2, *linear = weights
        x = pooled(convolved(x.reshape(len(x), self.image, self.image, 1), w1, b1, 2))
        x = pooled(convolved(x, w2, b2, 0)).transpose(0, 3, 1, 2).reshape(len(x), -1)
        for i in range(0, len(linear), 2):
            x = x @ linear[i].T + linear[i + 1]
            if i + 2 < len(linear):
                x = relu(x)
        return x
