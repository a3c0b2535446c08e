"""What every operation must do, over the catalogue of sample calls.

Values in both float types, derivatives by finite differences, and the same bits whatever the
memory layout of inputs and upstream gradients.
"""

from __future__ import annotations

import itertools

import numpy as np
import oracle
import pytest
from samples import CATALOGUE, function

import minigrad as mg
from minigrad import functions, linalg, special
from minigrad.nn import functional
from minigrad.tape.node import record

ALL = {f"{name}-{k}": s for name, samples in CATALOGUE.items() for k, s in enumerate(samples)}
SMOOTH = {title: sample for title, sample in ALL.items() if sample.smooth}
SPACES = {"": functions, "special.": special, "linalg.": linalg, "nn.functional.": functional}

every_title = pytest.mark.parametrize("title", ALL)
every_sample = pytest.mark.parametrize("sample", ALL.values(), ids=ALL)
smooth_samples = pytest.mark.parametrize("sample", SMOOTH.values(), ids=SMOOTH)
BOTH_PATHS = (False, True)  # create_graph: the fused kernels, and the formulas


def leaves(arrays, wanted=None):
    """Tensors of the arrays; those that are wanted require grad, or all."""
    return [
        mg.tensor(x).requires_grad_(wanted is None or wanted == place)
        for place, x in enumerate(arrays)
    ]


def nodes_made():
    """How many nodes there have been; this makes another."""
    return record(None, None, (), None, None).serial


def arrays_of(results):
    return [y.detach().numpy() if isinstance(y, mg.Tensor) else np.asarray(y) for y in results]


def upstream(results, rng):
    """A random upstream gradient, as an array, per result; None for one that has no gradient."""

    def drawn(shape):
        return np.asarray(rng.uniform(0.5, 1.5, shape) * rng.choice([-1.0, 1.0], shape))

    return [drawn(y.shape) if differentiable(y) else None for y in results]


def differentiable(y):
    return isinstance(y, mg.Tensor) and y.requires_grad


def gradients(results, inputs, cotangents, graph=False):
    """Of all results that have a gradient, for all inputs; none where no result has one."""
    pairs = [(y, g) for y, g in zip(results, cotangents, strict=True) if differentiable(y)]
    if not pairs:
        return []
    gs = [g if isinstance(g, mg.Tensor) else mg.tensor(g, y.dtype) for y, g in pairs]
    return mg.grad([y for y, _ in pairs], inputs, gs, create_graph=graph)


# ---- the world is closed -------------------------------------------------------------------------


def test_every_operation_has_samples_and_every_sample_an_operation():
    public = {
        f"{prefix}{name}": getattr(space, name)
        for prefix, space in SPACES.items()
        for name in space.__all__
        if not isinstance(getattr(space, name), type)
    }
    sampled = {function(name) for name in CATALOGUE}
    missing = sorted(name for name, f in public.items() if f not in sampled)
    assert not missing, f"operations without a sample in tests/samples: {missing}"
    assert set(CATALOGUE) <= set(public)


# ---- values --------------------------------------------------------------------------------------


@every_sample
def test_float32_is_float64_rounded(sample):
    wide = sample(*leaves(sample.inputs()))
    narrow = sample(*leaves(sample.inputs(np.float32)))
    assert len(narrow) == len(wide)
    for got, want in zip(narrow, wide, strict=True):
        if not isinstance(want, mg.Tensor) or not want.is_floating_point():
            oracle.assert_same(*arrays_of([got, want]))
            continue
        assert want.dtype is mg.float64
        assert got.dtype is mg.float32
        a, b = arrays_of([got, want])
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5 * np.abs(b).max(initial=1))


@smooth_samples
def test_gradients_in_float32(sample, rng):
    found, cotangents = [], None
    for dtype in (np.float64, np.float32):
        inputs = leaves(sample.inputs(dtype))
        results = sample(*inputs)
        cotangents = cotangents or upstream(results, rng)
        found.append(gradients(results, inputs, cotangents))
    for want, got in zip(*found, strict=True):
        assert got.dtype is mg.float32
        a, b = arrays_of([got, want])
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4 * np.abs(b).max(initial=1))


@smooth_samples
def test_a_backward_without_a_graph_records_nothing(sample, rng):
    inputs = leaves(sample.inputs())
    results = sample(*inputs)
    cotangents = upstream(results, rng)
    before = nodes_made()
    found = gradients(results, inputs, cotangents)
    assert nodes_made() == before + 1
    assert not any(g.requires_grad for g in found)


# ---- derivatives ---------------------------------------------------------------------------------


def joined(sample):
    """The sample as a function with one result: all of its floats in a line."""

    def one(*tensors):
        floats = [y for y in sample(*tensors) if y.is_floating_point()]
        return floats[0] if len(floats) == 1 else mg.cat([y.reshape(-1) for y in floats])

    return one


@smooth_samples
def test_derivatives(sample, rng):
    """First and second, by finite differences with random cotangents, on both paths."""
    oracle.check_gradients(joined(sample), sample.inputs(), rng)


@smooth_samples
def test_third_derivatives(sample, rng):
    """Along a random direction, by finite differences of the second derivative along it."""
    arrays, f = sample.inputs(), joined(sample)
    directions = [rng.uniform(-1, 1, x.shape) for x in arrays]
    cotangent = mg.tensor(rng.uniform(0.5, 1.5, f(*leaves(arrays)).shape))

    def derivative(order, offset=0.0):
        xs = leaves([x + offset * d for x, d in zip(arrays, directions, strict=True)])
        y = (f(*xs) * cotangent).sum()
        for _ in range(order):
            if not y.requires_grad:
                return 0.0
            gs = mg.grad(y, xs, create_graph=True)
            y = sum((g * mg.tensor(d)).sum() for g, d in zip(gs, directions, strict=True))
        return y.item()

    step = 3e-4
    near = derivative(2, step) - derivative(2, -step)
    far = derivative(2, 2 * step) - derivative(2, -2 * step)
    assert derivative(3) == pytest.approx((8 * near - far) / (12 * step), rel=1e-7, abs=1e-7)


@smooth_samples
def test_a_zero_upstream_gradient_gives_exactly_zero(sample):
    for graph in BOTH_PATHS:
        inputs = leaves(sample.inputs())
        results = sample(*inputs)
        zeros = [np.zeros(y.shape) if differentiable(y) else None for y in results]
        for g, x in zip(gradients(results, inputs, zeros, graph), inputs, strict=True):
            assert g.shape == x.shape
            assert not g.detach().numpy().any(), f"graph={graph}"


@smooth_samples
def test_each_input_alone_has_the_same_gradient(sample, rng):
    for graph in BOTH_PATHS:
        inputs = leaves(sample.inputs())
        results = sample(*inputs)
        cotangents = upstream(results, rng)
        together = gradients(results, inputs, cotangents, graph)
        for place, want in enumerate(together):
            lone = leaves(sample.inputs(), wanted=place)
            (got,) = gradients(sample(*lone), [lone[place]], cotangents, graph)
            oracle.assert_same(*arrays_of([got, want]))


# ---- memory --------------------------------------------------------------------------------------


def outcome(sample, inputs, cotangents):
    """Values, and gradients on both paths, as arrays."""
    values = sample(*inputs)
    fused, formulas = (gradients(sample(*inputs), inputs, cotangents, g) for g in BOTH_PATHS)
    return arrays_of([*values, *fused, *formulas])


def assert_same_bits(got, expected):
    for a, b in zip(got, expected, strict=True):
        oracle.assert_same(a, b)


@every_title
def test_layouts(title, rng):
    """Every input, and every upstream gradient, in every layout, and read-only."""
    sample = ALL[title]
    arrays = sample.inputs()
    plain = leaves(arrays)
    cotangents = upstream(sample(*plain), rng)
    expected = outcome(sample, plain, cotangents)
    n = len(oracle.LAYOUTS)
    for k in range(n):
        layouts = itertools.cycle(oracle.LAYOUTS[k:] + oracle.LAYOUTS[:k])
        inputs = [oracle.tensor_in_layout(x, next(layouts), True) for x in arrays]
        moved = [g if g is None else oracle.tensor_in_layout(g, next(layouts)) for g in cotangents]
        assert_same_bits(outcome(sample, inputs, moved), expected)


@pytest.mark.parametrize("title", [t for t in ALL if not (ALL[t].matrix or ALL[t].independent)])
def test_strides_of_zero(title, rng):
    """Inputs that are expanded along an axis, and upstream gradients that are along all."""
    sample = ALL[title]
    arrays = sample.inputs()
    for axis in (0, -1):
        rows = [x.take([0], axis) if x.ndim else x for x in arrays]
        expanded = [np.broadcast_to(r, x.shape) for r, x in zip(rows, arrays, strict=True)]
        inputs = [mg.from_numpy(x).requires_grad_() for x in expanded]
        one = mg.tensor(rng.uniform(0.5, 1.5), mg.float64)
        ones = [one.expand(y.shape) if differentiable(y) else None for y in sample(*inputs)]
        plain = [g if g is None else g.clone() for g in ones]
        expected = outcome(sample, leaves(expanded), plain)
        assert_same_bits(outcome(sample, inputs, ones), expected)


@every_sample
def test_inputs_stay_as_they_are(sample, rng):
    inputs = leaves(sample.inputs())
    results = sample(*inputs)
    cotangents = [g if g is None else mg.tensor(g) for g in upstream(results, rng)]
    kept = [x for x in (*inputs, *cotangents) if x is not None]
    before = [x.detach().numpy().tobytes() for x in kept]
    gradients(results, inputs, cotangents)
    assert [x.detach().numpy().tobytes() for x in kept] == before
    for x, array in zip(inputs, sample.inputs(), strict=True):
        oracle.assert_same(x.detach().numpy(), array)
