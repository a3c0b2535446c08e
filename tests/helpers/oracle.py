"""Oracle of the operations: NumPy in a wider type, finite differences, and distances in ULP.

Nothing here uses formulas of the op table or the engine's derivatives. References take and return
arrays of ``wide(dtype)``, also for float32.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import strategies as st
from references import BITS, COMPARISONS, LONG, PARTIALS, POINTWISE, TERMS, TESTS

import minigrad as mg
from minigrad.runtime.native import isa

__all__ = ["BITS", "COMPARISONS", "PARTIALS", "POINTWISE", "TESTS"]

HAS_LONG = np.finfo(LONG).nmant > np.finfo(np.float64).nmant


def wide(dtype):
    """A wider type, in which references are computed."""
    return np.float64 if np.dtype(dtype) == np.float32 else LONG


# ---- elementwise ---------------------------------------------------------------------------------


def accuracy(row, dtype):
    """The largest error in ULP that a row of the op table states for this build."""
    limit = row.accuracy[np.dtype(dtype) == np.float64]
    if limit and np.dtype(dtype) == np.float64 and not HAS_LONG:
        limit += 0.5  # the reference is rounded too
    return limit * (2 if isa == "baseline" else 1)  # the baseline has no fused multiply-add


def size_of_terms(name, inputs):
    """The size of the terms that cancel in an operation, if its error is relative to them."""
    if name not in TERMS:
        return 0
    with np.errstate(all="ignore"):
        size = np.abs(TERMS[name](*inputs))
    return np.where(np.isfinite(size), size, 0)


def assert_pointwise(row, got, *inputs):
    """Assert that ``got`` is the result of a row within the accuracy that the row states."""
    limit = accuracy(row, got.dtype)
    if limit:
        want = pointwise(row.name, *inputs)
    else:  # correctly rounded is NumPy in the dtype itself, without rounding twice
        with np.errstate(all="ignore"):
            want = np.asarray(POINTWISE[row.name](*inputs))
    assert_ulps(got, want, limit, inputs, size_of_terms(row.name, inputs))


def pointwise(name, *inputs):
    """The reference of an elementwise operation, in the wide type of the inputs."""
    to = wide(inputs[0].dtype)
    with np.errstate(all="ignore"):
        return POINTWISE[name](*[x.astype(to) for x in inputs])


# ---- distances -----------------------------------------------------------------------------------


def ulps(got, reference, size=0):
    """The distance of each value from a wider reference, in ULP of the result.

    The unit is that of ``size``, the size of cancelling terms, where it is larger. NaN and
    infinities have the distance 0 if they agree, else infinity.
    """
    with np.errstate(all="ignore"):
        rounded = reference.astype(got.dtype)
        unit = np.spacing(np.maximum(np.abs(rounded), size).astype(got.dtype))
        unit = unit.astype(reference.dtype)
        # Values that only rounding makes infinite are measured from the largest finite number.
        largest = np.finfo(got.dtype).max
        top = np.isinf(rounded) & np.isfinite(reference)
        unit = np.where(top, np.spacing(largest), unit)
        limited = np.where(np.isinf(got) & top, reference, got.astype(reference.dtype))
        distance = np.abs(limited - reference) / unit
        same = (got == rounded) | (np.isnan(got) & np.isnan(rounded))
        return np.where(
            same & ~np.isfinite(rounded), 0, np.where(np.isnan(distance), np.inf, distance)
        )


def assert_ulps(got, reference, limit, inputs=(), size=0):
    """Assert that every value is within ``limit`` ULP. 0 means correctly rounded, with its sign."""
    assert got.shape == reference.shape
    if not got.size:
        return
    if limit == 0:
        with np.errstate(all="ignore"):
            expected = reference.astype(got.dtype)
        wrong = ~same_values(got, expected)
    else:
        wrong = ulps(got, reference, size) > limit
    if wrong.any():
        place = np.unravel_index(np.argmax(wrong), got.shape) if got.ndim else ()
        values = [np.broadcast_to(x, got.shape)[place] for x in inputs]
        pytest.fail(
            f"{wrong.sum()} of {got.size} values off by more than {limit} ULP, the worst by "
            f"{ulps(got, reference, size).max()}: at {values!r} got {got[place]!r}, not "
            f"{reference[place]!r}"
        )


def same_values(a, b):
    """True where two arrays have the same value. NaN equals NaN, and 0 differs from -0."""
    if a.dtype.kind != "f":
        return a == b
    return (np.isnan(a) & np.isnan(b)) | ((a == b) & (np.signbit(a) == np.signbit(b)))


def assert_same(got, expected):
    """Assert the same dtype, shape and values, including NaN and signs of zero."""
    got, expected = np.asarray(got), np.asarray(expected)
    assert got.dtype == expected.dtype, f"{got.dtype} is not {expected.dtype}"
    assert got.shape == expected.shape, f"{got.shape} is not {expected.shape}"
    same = same_values(got, expected)
    assert same.all(), f"{(~same).sum()} of {same.size} values differ: {got!r}, not {expected!r}"


# ---- layouts -------------------------------------------------------------------------------------

LAYOUTS = (
    *("contiguous", "transposed", "channels_last"),
    *("stepped", "reversed", "offset", "odd_ones", "padded_rows"),
)


def laid_out(values, layout):
    """A read-only array of the same values in another memory layout."""
    values = np.asarray(values)
    ndim = values.ndim
    if layout in ("transposed", "reversed") and not ndim:
        out = values.copy()
    elif layout == "transposed":
        out = values.T.copy().T
    elif layout == "channels_last" and ndim > 2:
        out = np.moveaxis(np.moveaxis(values, 1, -1).copy(), -1, 1)
    elif layout == "stepped" and ndim:
        wider = np.zeros((*values.shape[:-1], 3 * values.shape[-1]), values.dtype)
        out = wider[..., ::3]
        out[...] = values
    elif layout == "reversed" and ndim:
        back = (slice(None, None, -1),) * ndim
        out = values[back].copy()[back]
    elif layout == "offset" and ndim:
        wider = np.zeros((*values.shape[:-1], values.shape[-1] + 3), values.dtype)
        out = wider[..., 1 : 1 + values.shape[-1]]
        out[...] = values
    elif layout == "odd_ones":  # an axis of size 1 may have any stride
        copy = values.copy()
        strides = tuple(
            s + 5 * values.itemsize if n == 1 else s
            for n, s in zip(copy.shape, copy.strides, strict=True)
        )
        out = np.lib.stride_tricks.as_strided(copy, copy.shape, strides, writeable=False)
    elif layout == "padded_rows" and ndim > 1:
        wider = np.zeros((2 * values.shape[0], *values.shape[1:]), values.dtype)
        out = wider[::-2]
        out[...] = values
    else:
        out = values.copy()
    out.flags.writeable = False
    return out


def tensor_in_layout(values, layout, requires_grad=False):
    """A leaf on read-only NumPy memory of that layout."""
    return mg.from_numpy(laid_out(values, layout)).requires_grad_(requires_grad)


def any_view(data, shape, elements):
    """A view with drawn strides: an array of ``shape`` and the same view of it as a tensor.

    ``data`` is Hypothesis's. Axes are permuted, strided, reversed, cut and broadcast.
    """
    ndim = len(shape)
    order = data.draw(st.permutations(range(ndim)))
    steps = [data.draw(st.sampled_from([1, 1, 2, 3, -1, -2])) for _ in shape]
    starts = [data.draw(st.integers(0, 2)) for _ in shape]
    repeats = [data.draw(st.booleans()) and data.draw(st.booleans()) for _ in shape]
    sizes = [
        1 if repeat else start + n * abs(step)
        for n, step, start, repeat in zip(shape, steps, starts, repeats, strict=True)
    ]
    index = tuple(
        slice(None) if repeat else slice(start, start + n * abs(step))
        for n, step, start, repeat in zip(shape, steps, starts, repeats, strict=True)
    )
    by_step = tuple(
        slice(None) if r else slice(None, None, s) for s, r in zip(steps, repeats, strict=True)
    )
    base = elements(tuple(sizes[d] for d in order)).transpose(np.argsort(order))
    array = np.broadcast_to(base[index][by_step], shape)
    tensor = mg.from_numpy(base)[index][by_step].expand(shape)
    return array, tensor


# ---- derivatives ---------------------------------------------------------------------------------


def numerical_vjp(f, inputs, cotangent, step=1e-3):
    """The gradient of ``(f(*inputs) * cotangent).sum()`` for each input, by five-point differences.

    ``f`` maps float64 arrays to a float64 array. The error is of the order of step**4 and
    1e-16 / step, about 1e-12 for functions of moderate size.
    """
    gradients = []
    for place, x in enumerate(inputs):
        gradient = np.zeros(x.shape)
        for at in np.ndindex(x.shape):

            def value(offset, place=place, x=x, at=at):
                moved = x.copy()
                moved[at] += offset
                return (f(*inputs[:place], moved, *inputs[place + 1 :]) * cotangent).sum()

            near = value(step) - value(-step)
            far = value(2 * step) - value(-2 * step)
            gradient[at] = (8 * near - far) / (12 * step)
        gradients.append(gradient)
    return gradients


def forward_of(op):
    """``op`` on tensors, as a function on float64 arrays."""

    def f(*arrays):
        with mg.no_grad():
            return op(*[mg.tensor(a) for a in arrays]).numpy()

    return f


def gradients_of(op, create_graph=False):
    """``op``'s vector-Jacobian product, as a function of inputs and cotangent on arrays."""

    def vjp(*arrays):
        *arrays, cotangent = arrays
        leaves = [mg.tensor(a, requires_grad=True) for a in arrays]
        out = op(*leaves)
        found = mg.grad(out, leaves, mg.tensor(cotangent), create_graph=create_graph)
        return [g.detach().numpy() for g in found]

    return vjp


def check_gradients(op, inputs, rng, *, second=True, rtol=1e-8, atol=1e-9):
    """Compare first and second derivatives of ``op`` with finite differences, in float64.

    The cotangents are random and the inputs read-only. The first derivative is checked on both
    paths: the fused kernels, and the formulas that ``create_graph`` uses. The second derivative is
    checked along a random direction of the inputs.
    """
    inputs = [np.array(x, np.float64) for x in inputs]
    for x in inputs:
        x.flags.writeable = False
    shape = forward_of(op)(*inputs).shape
    cotangent = np.asarray(rng.uniform(0.5, 1.5, shape) * rng.choice([-1.0, 1.0], shape))
    expected = numerical_vjp(forward_of(op), inputs, cotangent)
    for graph in (False, True):
        found = gradients_of(op, graph)(*inputs, cotangent)
        for got, want, x in zip(found, expected, inputs, strict=True):
            assert got.shape == x.shape
            np.testing.assert_allclose(got, want, rtol, atol, err_msg=f"first, graph={graph}")
    if not second:
        return
    directions = [rng.uniform(-1, 1, x.shape) for x in inputs]
    leaves = [mg.tensor(x, requires_grad=True) for x in inputs]
    g = mg.tensor(cotangent, requires_grad=True)
    firsts = mg.grad(op(*leaves), leaves, g, create_graph=True)
    total = mg.tensor(0.0, mg.float64)
    for first, direction in zip(firsts, directions, strict=True):
        total = total + (first * mg.tensor(direction)).sum()
    found = (
        mg.grad(total, [*leaves, g])
        if total.requires_grad
        else [mg.zeros_like(x) for x in (*leaves, g)]
    )

    def at(offset):
        moved = [x + offset * d for x, d in zip(inputs, directions, strict=True)]
        return [*gradients_of(op)(*moved, cotangent), forward_of(op)(*moved)]

    step = 1e-3
    around = zip(at(step), at(-step), at(2 * step), at(-2 * step), strict=True)
    expected = [(8 * (a - b) - (c - d)) / (12 * step) for a, b, c, d in around]
    for got, want in zip(found, expected, strict=True):
        np.testing.assert_allclose(
            got.detach().numpy(), want, rtol * 10, atol * 10, err_msg="second"
        )


# ---- edges ---------------------------------------------------------------------------------------


def derivatives(f, *values, dtype=mg.float64, upstream=1.0, graph=True):
    """The value of ``f`` at numbers or lists of numbers, and its gradients, all as numbers.

    With ``graph`` also the gradients of the sum of these gradients.
    """
    xs = [mg.tensor(v, dtype, requires_grad=True) for v in values]
    y = f(*xs)
    g = mg.grad(y, xs, mg.full_like(y, upstream), create_graph=graph)
    for found, x in zip(g, xs, strict=True):
        assert found.dtype is dtype
        assert found.shape == x.shape
    if not graph:
        return y.detach().tolist(), [t.tolist() for t in g]
    second = mg.grad(sum((t.sum() for t in g[1:]), g[0].sum()), xs)
    return y.detach().tolist(), [t.detach().tolist() for t in g], [t.tolist() for t in second]


def assert_row(f, values, y, g, gg=None, *, upstream=1.0, dtype=None, within=0):
    """Check a row of the edge table: value, gradient on both paths and, if given, second
    derivative.

    The check is in the dtype, or in both. It is exact, or within ``within`` times 1e-6 (float32) or
    1e-14.
    """
    for of in (mg.float32, mg.float64) if dtype is None else (dtype,):
        limit = within * (1e-6 if of is mg.float32 else 1e-14)
        for graph in (False, True):
            found = derivatives(f, *values, dtype=of, upstream=upstream, graph=graph)
            for order, wanted in enumerate(((y,), g, gg or ())[: len(found)]):
                parts = (found[0],) if order == 0 else found[order]
                for got, want in zip(parts, wanted, strict=bool(wanted)):
                    what = f"derivative {order} in {of.name}, graph={graph}"
                    _assert_near(got, want, of, limit, what)


def _assert_near(got, want, dtype, limit, what):
    # 0 and -0 are the same derivative
    got, want = (np.array(v, dtype.name) + 0.0 for v in (got, want))
    np.testing.assert_allclose(got, want, limit, 0, err_msg=what)
