"""Tests of forward mode: tangents pushed through the nodes of every operation."""

from __future__ import annotations

import numpy as np
import pytest
from samples import CATALOGUE

import minigrad as mg
from minigrad.ops.table import PLACES, TABLE
from minigrad.tape.batched_jvp import BatchedLinearMap
from minigrad.tape.jvp import LinearMap

ALL = {f"{name}-{k}": s for name, samples in CATALOGUE.items() for k, s in enumerate(samples)}
SMOOTH = {title: sample for title, sample in ALL.items() if sample.smooth}
smooth_samples = pytest.mark.parametrize("sample", SMOOTH.values(), ids=SMOOTH)


def leaves(arrays, wanted=None):
    """Tensors of the arrays; the one that is wanted requires grad, or all."""
    return [mg.tensor(x).requires_grad_(wanted in (None, i)) for i, x in enumerate(arrays)]


def drawn(rng, shape):
    """Random numbers of a shape, in memory with gaps and the axes in reverse."""
    if not shape:
        return mg.tensor(rng.normal(), dtype=mg.float64)
    wide = rng.normal(size=tuple(2 * n for n in reversed(shape)))
    return mg.from_numpy(wide[(slice(None, None, 2),) * len(shape)].T)


def dots(pairs):
    """The sum of the products of pairs of tensors, of which the second may be None."""
    found = [(x * t).sum() for x, t in pairs if t is not None]
    return sum(found[1:], found[0]) if found else mg.tensor(0.0, dtype=mg.float64)


def close(found, wanted, size, rtol=1e-10):
    np.testing.assert_allclose(found, wanted, rtol=rtol, atol=rtol * (1 + size))


def recorded(sample, wanted=None):
    """The inputs by which a sample is differentiated, and its results that depend on them."""
    inputs = leaves(sample.inputs(), wanted)
    results = [y for y in sample(*inputs) if isinstance(y, mg.Tensor) and y.requires_grad]
    return [x for x in inputs if x.requires_grad], results


# ---- every operation -----------------------------------------------------------------------------


@smooth_samples
def test_a_push_is_the_transpose_of_a_pull(sample, rng):
    """<u, J v> = <J^T u, v>, for all inputs and each alone, and so are the gradients of both."""
    alone = range(len(sample.shapes)) if len(sample.shapes) > 1 else ()
    for wanted in (None, *alone):
        xs, ys = recorded(sample, wanted)
        if not ys:
            continue
        vs, us = [drawn(rng, x.shape) for x in xs], [drawn(rng, y.shape) for y in ys]
        pushed = LinearMap(xs, ys).push(vs, True)
        for y, t in zip(ys, pushed, strict=True):
            assert t is None or (t.shape == y.shape and t.dtype is y.dtype)
        pulled = mg.grad(ys, xs, us, create_graph=True)
        left = dots(zip(us, pushed, strict=True))
        right = dots(zip(pulled, vs, strict=True))
        size = sum(float((abs(g.detach() * v)).sum()) for g, v in zip(pulled, vs, strict=True))
        close(left.item(), right.item(), size)
        twice = [
            mg.grad(total, xs, retain_graph=True, materialize_grads=True, allow_unused=True)
            if total.requires_grad
            else [mg.zeros_like(x) for x in xs]
            for total in (left, right)
        ]
        for a, b in zip(*twice, strict=True):
            close(a.numpy(), b.numpy(), np.abs(b.numpy()).max(initial=0), 1e-8)


@smooth_samples
def test_a_push_without_a_graph_is_off_the_tape(sample, rng):
    xs, ys = recorded(sample)
    if ys:
        vs = [drawn(rng, x.shape) for x in xs]
        linear = LinearMap(xs, ys)
        for t, again in zip(linear.push(vs, False), linear.push(vs, True), strict=True):
            if t is not None:
                assert not t.requires_grad
                again = again.detach().numpy()
                close(t.numpy(), again, np.abs(again).max(initial=0))


@smooth_samples
def test_pushes_in_float32(sample, rng):
    inputs, tangents = sample.inputs(), None
    found = []
    for dtype in (mg.float64, mg.float32):
        xs = [mg.tensor(x, dtype=dtype, requires_grad=True) for x in inputs]
        ys = [y for y in sample(*xs) if isinstance(y, mg.Tensor) and y.requires_grad]
        tangents = tangents or [drawn(rng, x.shape) for x in xs]
        found.append(LinearMap(xs, ys).push([t.to(dtype) for t in tangents], False))
        for y, t in zip(ys, found[-1], strict=True):
            assert t is None or t.dtype is y.dtype
    for wide, narrow in zip(*found, strict=True):
        if wide is not None:
            wide = wide.numpy()
            close(narrow.numpy(), wide, np.abs(wide).max(initial=0), 1e-4)


@smooth_samples
def test_a_batch_of_tangents_is_pushed_as_each_alone(sample, rng):
    alone = range(len(sample.shapes)) if len(sample.shapes) > 1 else ()
    for wanted in (None, *alone):
        xs, ys = recorded(sample, wanted)
        if not ys:
            continue
        batches = [drawn(rng, (3, *x.shape)) for x in xs]
        one_by_one, together = LinearMap(xs, ys), BatchedLinearMap(xs, ys)
        for graph in (False, True):
            found = together.push(batches, graph)
            for k in range(3):
                each = one_by_one.push([t[k] for t in batches], graph)
                for whole, t, y in zip(found, each, ys, strict=True):
                    assert (whole is None) == (t is None)
                    if t is not None:
                        assert whole.shape == (3, *y.shape)
                        assert whole.dtype is y.dtype
                        t = t.detach().numpy()
                        close(whole[k].detach().numpy(), t, np.abs(t).max(initial=0))


# ---- rows ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("row", [row for row in TABLE.values() if row.jvp], ids=lambda r: r.name)
def test_a_tangent_needs_no_more_than_the_gradient_saves(row):
    """The node saves for the gradients of the inputs that have one."""
    of_all = callable(row.jvp)
    assert of_all or len(row.jvp) == len(row.derivatives)
    stated = row.jvp_needs * len(row.needs) if of_all else row.jvp_needs
    for forward, backward in zip(stated, row.needs, strict=True):
        assert {n for n in forward if n in PLACES} <= {n for n in backward if n in PLACES}


def test_a_hook_of_a_node_that_was_removed_changes_nothing():
    def function(x):
        y = x * x
        handle = y.grad_fn.register_hook(lambda inputs, outputs: None)
        with pytest.raises(RuntimeError, match=r"\[jvp\] mul has a hook"):
            mg.func.jvp(lambda x: hooked(x * x), (x,), (x,))
        handle.remove()
        return y.sin()

    def hooked(y):
        y.grad_fn.register_prehook(lambda outputs: None)
        return y

    x = mg.tensor([1.0, 2.0])
    want = (2 * x * (x * x).cos()).tolist()
    assert mg.func.jvp(function, (x,), (mg.ones(2),))[1].tolist() == pytest.approx(want)
