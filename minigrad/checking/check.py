"""Check of one function: its Jacobians against finite differences, and properties of backward."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from minigrad import func
from minigrad.autograd import grad
from minigrad.checking.inputs import (
    Array,
    as_tuple,
    direction,
    is_checked,
    layouts,
    outputs_of,
    unit,
    values_of,
    write,
)
from minigrad.checking.mismatch import GradcheckError, Jacobians, expect_equal
from minigrad.checking.suspect import first_difference
from minigrad.functions.creation import tensor, zeros_like
from minigrad.runtime.dtypes import float32, float64

__all__ = ["STENCILS", "Check", "Options"]

# Offsets in steps, and weights, of the central differences of second and fourth order.
STENCILS = {
    2: ((1, -1), (1 / 2, -1 / 2)),
    4: ((1, -1, 2, -2), (8 / 12, -8 / 12, -1 / 12, 1 / 12)),
}
_BATCH = 3  # upstream gradients, or tangents, that are checked at once
_FLOAT32_TOLERANCE = 1e-4  # of a float32 gradient, relative to its largest element


class Options(NamedTuple):
    """Tolerances and modes of a check, as :func:`minigrad.gradcheck` takes them."""

    atol: float
    rtol: float
    fast: int
    step: float
    stencil: int
    nondet_tol: float
    allow_no_grad: bool
    seed: int
    undefined: bool  # upstream gradients of some outputs alone
    dtypes: bool
    backward: bool
    forward: bool
    batched: bool
    batched_forward: bool


class Check:
    """A function, its inputs ``xs`` that require grad and where they stand among the arguments."""

    def __init__(self, func: Callable[..., Any], inputs: Any, options: Options) -> None:
        self.func = func
        self.options = options
        self.args = as_tuple(inputs)
        found = {id(x): i for i, x in reversed([*enumerate(self.args)]) if is_checked(x)}
        self.places = sorted(found.values())  # a tensor given twice is checked once, as a whole
        self.xs = [self.args[i] for i in self.places]
        self.start = [values_of(x) for x in self.xs]
        self.is_float32 = any(x.dtype is float32 for x in self.xs)
        if not self.xs:
            raise ValueError("[gradcheck] no input requires grad: set requires_grad=True on one")
        for i, x, start in zip(self.places, self.xs, self.start, strict=True):
            if not np.isfinite(start).all():
                raise ValueError(
                    f"[gradcheck] input {i} has elements that are NaN or infinite: differences say "
                    "nothing there; give finite values"
                )
            try:
                write(x, start)
            except ValueError as error:
                raise ValueError(f"[gradcheck] input {i} cannot be perturbed: {error}") from None

    # ---- what is run ----

    def in_float64(self) -> None:
        """Everything, the Jacobians against differences."""
        rng = np.random.default_rng(self.options.seed)
        outputs = self.recorded_outputs()
        for j, y in enumerate(outputs):
            if y.dtype is float32:
                raise GradcheckError(f"[gradcheck] output {j} is float32: compute it in float64")
        self.expect_same_values(outputs)
        if self.options.backward:
            self.check_backward(outputs, rng)
        if not self.options.fast or not self.projections_agree(outputs, rng):
            self.compare_jacobians()
        if self.options.backward:
            self.check_linear(self.recorded_outputs(), rng)
        if self.options.batched:
            self.check_batched(self.recorded_outputs(), rng)
        if self.options.batched_forward:
            self.check_batched_forward(rng)
        self.expect_inputs_unchanged("forward or backward")

    def in_float32(self) -> None:
        """Everything in float64; then the Jacobians in float32 against those."""
        doubles = {id(x): tensor(x.detach(), float64, requires_grad=True) for x in self.xs}
        wide = Check(self.func, [doubles.get(id(a), a) for a in self.args], self.options)
        wide.in_float64()
        if not self.options.backward:
            return
        tolerance = _FLOAT32_TOLERANCE
        self.options = self.options._replace(atol=tolerance, rtol=tolerance)
        outputs = self.recorded_outputs()
        self.check_backward(outputs, np.random.default_rng(self.options.seed))
        for j, (y, exact) in enumerate(zip(outputs, wide.recorded_outputs(), strict=True)):
            pairs = zip(self.jacobian(y), wide.jacobian(exact), strict=True)
            for k, (found, expected) in enumerate(pairs):
                allowed = np.full(found.shape, tolerance * np.abs(expected).max(initial=0.0))
                one = Jacobians(k, j, y, found, expected, allowed, "analytic", "float64")
                expect_equal(self, one)

    # ---- the pieces ----

    def recorded_outputs(self) -> list[Any]:
        """The outputs of a forward that kept the graph and left the inputs alone."""
        outputs = outputs_of(self.func, self.args)
        self.expect_inputs_unchanged("forward")
        if not self.options.allow_no_grad and not any(y.requires_grad for y in outputs):
            raise GradcheckError(
                "[gradcheck] no output requires grad: the graph was lost, as by detach() or "
                "numpy(); pass allow_no_grad=True if the function is meant to be constant"
            )
        return outputs

    def output(self, j: int) -> Any:
        """The j-th output."""
        return outputs_of(self.func, self.args)[j]

    def expect_inputs_unchanged(self, by: str) -> None:
        """Compare the inputs' bytes with those at the start; put them right before complaining."""
        for i, x, start in zip(self.places, self.xs, self.start, strict=True):
            if values_of(x).tobytes() != start.tobytes():
                write(x, start)
                raise GradcheckError(
                    f"[gradcheck] the {by} modified input {i}: write into a copy, x = x.clone()"
                )

    def gradients(self, outputs: Sequence[Any], upstream: Sequence[Any]) -> list[Array]:
        """One backward from these outputs; zeros where no gradient arrives."""
        found = grad(outputs, self.xs, list(upstream), retain_graph=True, allow_unused=True)
        for i, x, g in zip(self.places, self.xs, found, strict=True):
            if g is None:
                continue
            if g.shape != x.shape or (self.options.dtypes and g.dtype is not x.dtype):
                raise GradcheckError(
                    f"[gradcheck] the gradient of input {i} has shape {g.shape} and dtype "
                    f"{g.dtype.name}, the input {x.shape} and {x.dtype.name}"
                )
        pairs = zip(found, self.start, strict=True)
        return [np.zeros_like(start) if g is None else values_of(g) for g, start in pairs]

    def tangents(self, k: int, u: Any) -> tuple[Any, ...]:
        """The tangents of the outputs by forward mode, for one of the k-th input."""
        moved = [zeros_like(x.detach()) for x in self.xs]
        moved[k] = u
        _, found = func.jvp(self.of_inputs, tuple([x.detach() for x in self.xs]), tuple(moved))
        return tuple(found)

    def of_inputs(self, *xs: Any) -> tuple[Any, ...]:
        """The outputs where other tensors stand in the places of the inputs that are checked."""
        given = {id(x): other for x, other in zip(self.xs, xs, strict=True)}
        return tuple(outputs_of(self.func, [given.get(id(a), a) for a in self.args]))

    def gradients_of(self, y: Any, v: Array) -> list[Array]:
        """As above from one output; zeros if it is constant."""
        if not y.requires_grad:
            return [np.zeros_like(start) for start in self.start]
        return self.gradients([y], [tensor(v, y.dtype)])

    def values_at(self, k: int, u: Array, distances: Sequence[float]) -> list[list[Array]]:
        """The outputs with the k-th input moved along u, for each distance."""
        x = self.xs[k]
        moved = []
        try:
            for t in distances:
                write(x, self.start[k] + t * u)
                moved.append([values_of(y) for y in outputs_of(self.func, self.args)])
        finally:
            write(x, self.start[k])
        return moved

    def derivative(self, k: int, u: Array) -> list[Array]:
        """The difference quotient of each output along u, a direction of the k-th input."""
        offsets, weights = STENCILS[self.options.stencil]
        step = self.options.step
        moved = self.values_at(k, u, [n * step for n in offsets])
        if any([y.shape for y in ys] != [y.shape for y in moved[0]] for ys in moved):
            raise GradcheckError("[gradcheck] the shapes of outputs vary with the inputs' values")
        pairs = [zip(weights, ys, strict=True) for ys in zip(*moved, strict=True)]
        return [np.asarray(sum(w * y for w, y in pair)) / step for pair in pairs]

    def jacobian(self, y: Any) -> list[Array]:
        """The derivative of each element of y by each element of each input, from backwards."""
        rows = [np.zeros((y.size, x.size)) for x in self.xs]
        for e in range(y.size):
            for row, g in zip(rows, self.gradients_of(y, unit(y.shape, e)), strict=True):
                row[e] = g.ravel()
        return rows

    # ---- the checks ----

    def expect_same_values(self, outputs: Sequence[Any]) -> None:
        """The function again gives the same, so that differences say something."""
        again = outputs_of(self.func, self.args)
        for j, (y, z) in enumerate(zip(outputs, again, strict=False)):
            same = values_of(y).tobytes() == values_of(z).tobytes()
            if not same and not np.allclose(
                values_of(y), values_of(z), 1e-9, 1e-12, equal_nan=True
            ):
                kernel = first_difference(partial(self.output, j))
                raise GradcheckError(
                    f"[gradcheck] output {j} differs when the function runs twice on the same "
                    "inputs: it is random or keeps a state, so differences say nothing; seed it "
                    "in the function, as with mg.manual_seed(0), or turn dropout off"
                    + (f"; the first kernel to give another result is {kernel!r}" if kernel else "")
                )

    def check_linear(self, all_outputs: Sequence[Any], rng: np.random.Generator) -> None:
        """The gradients of a sum of two upstream gradients are the sums of those of both."""
        outputs = [y for y in all_outputs if y.requires_grad]
        if not outputs:
            return
        upstream = [tensor(direction(rng, y.shape), y.dtype) for y in outputs]
        whole = self.gradients(outputs, upstream)
        shares = [3.0 * direction(rng, v.shape) for v in upstream]  # some are of either sign
        parts = [
            [tensor(a, v.dtype) for a, v in zip(shares, upstream, strict=True)],
            [tensor(values_of(v) - a, v.dtype) for a, v in zip(shares, upstream, strict=True)],
        ]
        first, second = (self.gradients(outputs, part) for part in parts)
        added = [a + b for a, b in zip(first, second, strict=True)]
        largest = [np.abs(a).max(initial=0.0) for a in first]
        atol, rtol = self.options.atol, self.options.rtol
        for i, a, b, size in zip(self.places, added, whole, largest, strict=True):
            off = np.abs(a - b).max(initial=0.0)
            if not off <= atol + rtol * max(size, np.abs(b).max(initial=0.0)):
                raise GradcheckError(
                    f"[gradcheck] the gradient of input {i} is not linear in grad_outputs: those "
                    f"of two parts do not add up to that of their sum, by {off:.3g}"
                )

    def check_backward(self, all_outputs: Sequence[Any], rng: np.random.Generator) -> None:
        """Check the properties that hold for random upstream gradients, without differences."""
        outputs = [y for y in all_outputs if y.requires_grad]
        if not outputs:
            return
        upstream = [tensor(direction(rng, y.shape), y.dtype) for y in outputs]
        before = [values_of(v).tobytes() for v in upstream]
        together = self.gradients(outputs, upstream)
        self.expect_inputs_unchanged("backward")
        if [values_of(v).tobytes() for v in upstream] != before:
            raise GradcheckError("[gradcheck] the backward modified the grad_outputs it was given")
        again = self.gradients(outputs, upstream)
        wobble = self.options.nondet_tol, 0.0
        self.expect_same(again, together, *wobble, "differs when the same backward runs again")
        tolerance = self.options.atol, self.options.rtol
        if self.options.undefined:
            self.check_undefined(outputs, upstream, together)
        for name, pairs in layouts(upstream):
            expected = self.gradients(outputs, [plain for plain, _ in pairs])
            found = self.gradients(outputs, [laid for _, laid in pairs])
            self.expect_same(found, expected, *tolerance, f"changes when grad_outputs are {name}")

    def check_undefined(
        self, outputs: Sequence[Any], upstream: Sequence[Any], together: list[Array]
    ) -> None:
        """Upstream gradients that do not come to some outputs count as zeros."""
        tolerance = self.options.atol, self.options.rtol
        alone = [self.gradients([y], [v]) for y, v in zip(outputs, upstream, strict=True)]
        added = [np.asarray(sum(parts)) for parts in zip(*alone, strict=True)]
        what = "from each output alone does not add up to that of all"
        self.expect_same(added, together, *tolerance, what)
        for j in range(len(outputs) if len(outputs) > 2 else 0):
            rest = [i for i in range(len(outputs)) if i != j]
            found = self.gradients([outputs[i] for i in rest], [upstream[i] for i in rest])
            expected = [np.asarray(sum(alone[i][k] for i in rest)) for k in range(len(self.xs))]
            self.expect_same(found, expected, *tolerance, f"is wrong without one of output {j}")

    def check_batched(self, all_outputs: Sequence[Any], rng: np.random.Generator) -> None:
        """A backward of several upstream gradients at once gives what each of them gives alone."""
        outputs = [y for y in all_outputs if y.requires_grad]
        if not outputs:
            return
        batches = [_batch(rng, y) for y in outputs]

        def backward(*vs: Any) -> tuple[Any, ...]:
            return grad(outputs, self.xs, list(vs), True, materialize_grads=True)

        found = [values_of(g) for g in func.vmap(backward)(*batches)]
        for place in range(_BATCH):
            expected = self.gradients(outputs, [v[place] for v in batches])
            self.expect_same(
                [g[place] for g in found],
                expected,
                self.options.atol,
                self.options.rtol,
                "by vmap over grad_outputs is not what each of them gives",
            )

    def check_batched_forward(self, rng: np.random.Generator) -> None:
        """Forward mode with several tangents at once gives what each of them gives alone."""
        for k, x in enumerate(self.xs):
            batch = _batch(rng, x)
            found = [values_of(y) for y in func.vmap(partial(self.tangents, k))(batch)]
            for place in range(_BATCH):
                for j, y in enumerate(self.tangents(k, batch[place])):
                    off = np.abs(found[j][place] - values_of(y)).max(initial=0.0)
                    if not off <= self.options.atol:
                        raise GradcheckError(
                            f"[gradcheck] the tangent of output {j} by vmap over tangents of input "
                            f"{self.places[k]} is not what each of them gives, by {off:.3g}"
                        )

    def expect_same(
        self, found: list[Array], expected: list[Array], atol: float, rtol: float, what: str
    ) -> None:
        """Gradients of all inputs that must agree, relative to the largest element."""
        for i, a, b in zip(self.places, found, expected, strict=True):
            if a.tobytes() != b.tobytes():
                off = np.abs(a - b).max()
                if not off <= atol + rtol * np.abs(b).max():
                    raise GradcheckError(
                        f"[gradcheck] the gradient of input {i} {what}, by {off:.3g}"
                    )

    def projections_agree(self, outputs: Sequence[Any], rng: np.random.Generator) -> bool:
        """The fast mode: v J u for random v and u, for each output and input."""
        options = self.options
        vs = [[direction(rng, y.shape) for y in outputs] for _ in range(options.fast)]
        backwards = [
            [self.gradients_of(y, v[j]) for j, y in enumerate(outputs) if options.backward]
            for v in vs
        ]  # all of them before an input moves
        for v, backward in zip(vs, backwards, strict=True):
            for k, x in enumerate(self.xs):
                u = direction(rng, x.shape)
                forward = self.tangents(k, tensor(u, x.dtype)) if options.forward else ()
                for j, difference in enumerate(self.derivative(k, u)):
                    numeric = float((v[j] * difference).sum())
                    found = [float((g[k] * u).sum()) for g in backward[j : j + 1]]
                    found += [float((v[j] * values_of(t)).sum()) for t in forward[j : j + 1]]
                    allowed = options.atol + options.rtol * abs(numeric)
                    if not all(abs(one - numeric) <= allowed for one in found):
                        return False
        return True

    def compare_jacobians(self) -> None:
        """The slow mode: every element of every Jacobian."""
        outputs = self.recorded_outputs()
        backward = [self.jacobian(y) for y in outputs if self.options.backward]
        for k, x in enumerate(self.xs):
            numeric = [np.zeros((y.size, x.size)) for y in outputs]
            forward = [np.zeros((y.size, x.size)) for y in outputs if self.options.forward]
            for e in range(x.size):
                u = unit(x.shape, e)
                for j, d in enumerate(self.derivative(k, u)):
                    numeric[j][:, e] = d.ravel()
                if forward:
                    for j, t in enumerate(self.tangents(k, tensor(u, x.dtype))):
                        forward[j][:, e] = values_of(t).ravel()
            for j, y in enumerate(outputs):
                allowed = self.options.atol + self.options.rtol * np.abs(numeric[j])
                if backward:
                    found = Jacobians(k, j, y, backward[j][k], numeric[j], allowed, "analytic")
                    expect_equal(self, found)
                if forward:
                    found = Jacobians(k, j, y, forward[j], numeric[j], allowed, "forward mode")
                    expect_equal(self, found)


def _batch(rng: np.random.Generator, x: Any) -> Any:
    """A few random tensors like x, stacked."""
    return tensor(direction(rng, (_BATCH, *x.shape)), x.dtype)
