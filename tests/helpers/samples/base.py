"""The class of a sample call."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import minigrad as mg
from minigrad import special

Interval = tuple[float, float]
Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Sample:
    """A call, and the shapes and intervals of its inputs."""

    call: Callable[..., Any]
    shapes: tuple[tuple[int, ...], ...]
    over: tuple[Interval, ...]  # one per shape
    smooth: bool = True  # has a gradient that finite differences find
    random: bool = False  # draws from the global generator
    # turns a drawn square matrix into a structured one
    matrix: Callable[[Array], Array] | None = None
    independent: bool = False  # has a gradient only if rows, or columns, are independent
    before: Callable[..., Any] | None = None  # converts the inputs to the call's arguments
    after: Callable[[Any], Any] | None = None  # converts each result to a smooth one

    def inputs(self, dtype: Any = np.float64) -> list[Array]:
        """The inputs: always the same arrays, without equal or nearly equal elements.

        All elements are a permutation of evenly spaced numbers, each moved a little. They are then
        scaled to the interval of each input.
        """
        sizes = [int(np.prod(shape)) for shape in self.shapes]
        rng = np.random.default_rng(sum(sizes))
        spots = (rng.permutation(sum(sizes)) + rng.uniform(0.25, 0.75, sum(sizes))) / sum(sizes)
        drawn = []
        for shape, (low, high) in zip(self.shapes, self.over, strict=True):
            part, spots = np.split(spots, [int(np.prod(shape))])
            x = (low + (high - low) * part).reshape(shape)
            if self.matrix and shape[-2:] == 2 * shape[-1:]:
                x = self.matrix(x)
            drawn.append(x.astype(dtype))
        return drawn

    def __call__(self, *tensors: Any) -> list[Any]:
        """The results, as a flat list."""
        results = self.called(*self.prepared(*tensors))
        return [self.after(y) for y in results] if self.after else results

    def prepared(self, *tensors: Any) -> Any:
        """The arguments of the call."""
        if self.before is None:
            return tensors
        made = self.before(*tensors)
        return made if isinstance(made, tuple) else (made,)

    def called(self, *tensors: Any) -> list[Any]:
        """The results of the call, as a flat list. Its random numbers are always the same."""
        if not self.random:
            return list(_flat(self.call(*tensors)))
        state = mg.get_rng_state()
        try:
            mg.manual_seed(0)
            return list(_flat(self.call(*tensors)))
        finally:
            mg.set_rng_state(state)

    def results(self) -> list[Any]:
        """The float tensors among the results of the call, for leaves that require grad."""
        given = self.prepared(*[mg.tensor(x) for x in self.inputs()])
        results = self.called(*[x.clone().requires_grad_() for x in given])
        return [y for y in results if isinstance(y, mg.Tensor) and y.is_floating_point()]


def _flat(result: Any) -> Iterator[Any]:
    if isinstance(result, (tuple, list)):
        for part in result:
            yield from _flat(part)
    else:
        yield result


def S(
    call: Callable[..., Any],
    *shapes: tuple[int, ...],
    over: Interval | Sequence[Interval] = (-2, 2),
    **rest: Any,
) -> Sample:
    """A sample. One interval serves all inputs."""
    intervals = (over,) * len(shapes) if not isinstance(over[0], tuple) else tuple(over)
    return Sample(call, shapes, intervals, **rest)


def Z(call: Callable[..., Any], *shapes: tuple[int, ...], **rest: Any) -> Sample:
    """A sample without a gradient, or with one that finite differences do not find."""
    return S(call, *shapes, smooth=False, **rest)


# The tensors that samples created: targets, indices, masks and statistics. A test that overwrites
# an operation's arguments finds them here.
CONSTANTS: list[Any] = []


def constant(values: Any, dtype: Any = None) -> Any:
    """A tensor that a call takes in addition to the drawn inputs."""
    made = mg.tensor(values, dtype)
    CONSTANTS.append(mg.from_numpy(made.numpy()))  # NumPy can write it too
    return CONSTANTS[-1]


def ints(*values: Any) -> Any:
    """A tensor of int64."""
    return constant(np.array(values, np.int64))


def bools(*values: Any) -> Any:
    """A tensor of bool, from 0 and 1."""
    return constant(np.array(values, bool))


def each(names: str, sample: Callable[[Any], tuple[Sample, ...]]) -> dict[str, Any]:
    """The same samples for several functions."""
    return {name: sample(function(name)) for name in names.split()}


def function(name: str) -> Any:
    """A public operation by its name."""
    found = mg
    for part in name.split("."):
        found = getattr(found, part) if part != "special" else special  # type: ignore[assignment]
    return found


POSITIVE, NEGATIVE, UNIT = (0.2, 2.0), (-2.0, -0.2), (0.1, 0.9)
