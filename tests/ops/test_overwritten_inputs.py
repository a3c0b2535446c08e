"""Gradients stay right, or raise, when an input or a result of an operation is overwritten.

For each sample call, every array in reach is overwritten in turn. These are the inputs, the
results, the upstream gradients and the first gradients. Tensors that the sample made for itself are
among them: indices, masks, targets, bounds, statistics. The write comes between forward and
backward, or between the first backward and the second. It is made through the tensor, or through
NumPy.
"""

from __future__ import annotations

import numpy as np
import pytest
from samples import CATALOGUE
from samples.base import CONSTANTS

import minigrad as mg

ALL = {f"{name}-{k}": s for name, samples in CATALOGUE.items() for k, s in enumerate(samples)}
SMOOTH = {title: sample for title, sample in ALL.items() if sample.smooth}
SHARED = len(CONSTANTS)  # constants of several samples: they are put right afterwards


def others(values):
    """Values that an operation may meet in place of these: nearly all differ."""
    if values.dtype == bool:
        return ~values
    if values.dtype.kind == "f":
        return values * 0.75 + 0.05
    return np.roll(values, 1)


def overwrite(x, by_numpy):
    """Write other values into a tensor's memory; what NumPy may not write stays as it is."""
    values = others(np.array(x.detach().numpy()))
    if not by_numpy:
        try:
            x.detach().copy_(mg.tensor(values))
        except ValueError as error:
            if "share" not in str(error):  # elements of an expanded tensor: nothing is written
                raise
    elif (array := x.detach().numpy()).flags.writeable:
        array[...] = values


class Run:
    """A forward and its backwards, in which one array is overwritten at one moment.

    ``second`` asks for a first backward that leaves a graph, and a second one. ``target`` names a
    list of arrays and a place in it. ``found`` holds the gradients that were found until an error.
    """

    def __init__(self, sample, second, target=None, when=0, by_numpy=False):
        self.target, self.when, self.by_numpy = target, when, by_numpy
        arrays = sample.inputs()
        made = len(CONSTANTS)
        self.inputs = [mg.from_numpy(x).requires_grad_() for x in arrays]
        self.results = [y for y in sample(*self.inputs) if isinstance(y, mg.Tensor)]
        self.constants = CONSTANTS[:SHARED] + CONSTANTS[made:]
        del CONSTANTS[made:]
        self.before = [np.array(x.numpy()) for x in self.constants[:SHARED]]
        outputs = [y for y in self.results if y.requires_grad]
        rng = np.random.default_rng(1)
        self.upstream = [mg.tensor(rng.uniform(0.5, 1.5, y.shape)) for y in outputs]
        if second:
            self.upstream = [g.requires_grad_() for g in self.upstream]
        self.firsts = []
        self.found = []
        try:
            self.run(outputs, second, rng)
        except RuntimeError as error:
            if "overwritten" not in str(error):
                raise
        finally:
            for x, values in zip(self.constants, self.before, strict=False):
                x.copy_(mg.tensor(values))

    def run(self, outputs, second, rng):
        if not outputs:
            return
        self.moment(0)
        self.firsts = mg.grad(outputs, self.inputs, self.upstream, create_graph=second)
        self.found = [np.array(g.detach().numpy()) for g in self.firsts]
        if not second:
            return
        total = mg.tensor(0.0, mg.float64)
        for g in self.firsts:
            total = total + (g * mg.tensor(rng.uniform(0.5, 1.5, g.shape))).sum()
        self.moment(1)
        if total.requires_grad:
            seconds = mg.grad(total, [*self.inputs, *self.upstream])
            self.found += [np.array(g.numpy()) for g in seconds]

    def moment(self, now):
        if self.target is not None and self.when == now:
            kind, place = self.target
            overwrite(getattr(self, kind)[place], self.by_numpy)


GIVEN = ["inputs", "constants", "results"]
BETWEEN = ["results", "upstream", "firsts"]


@pytest.mark.parametrize("title", SMOOTH)
def test_overwriting(title):
    """Each array in turn, before the first backward and before the second."""
    sample = SMOOTH[title]
    for second, when, by_numpy, kinds in (
        (False, 0, False, GIVEN),
        (False, 0, True, GIVEN),
        (True, 0, False, GIVEN),
        (True, 1, False, BETWEEN),
    ):
        plain = Run(sample, second)
        for target in [(kind, k) for kind in kinds for k in range(len(getattr(plain, kind)))]:
            run = Run(sample, second, target, when, by_numpy)
            for got, want in zip(run.found, plain.found, strict=False):
                what = f"{target} overwritten {'by NumPy ' * by_numpy}at moment {when}"
                np.testing.assert_allclose(got, want, 1e-12, 1e-12, err_msg=what)
