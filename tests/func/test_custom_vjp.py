"""Functions of NumPy's arrays, or of tensors, with derivatives that are given."""

from __future__ import annotations

import ctypes
import ctypes.util

import numpy as np
import pytest

import minigrad as mg
from minigrad.func import custom_vjp

F64 = {"dtype": mg.float64}

sin = custom_vjp(np.sin, lambda g, x: g * np.cos(x))


def matmul(a, b):
    return a @ b


product = custom_vjp(matmul, lambda g, a, b: (g @ b.T, a.T @ g))


def random(rng, *shape):
    return mg.tensor(rng.standard_normal(shape), requires_grad=True)


def test_values_and_gradients(rng):
    x, a, b = random(rng, 3, 4), random(rng, 2, 3), random(rng, 3, 2)
    np.testing.assert_array_equal(sin(x).detach().numpy(), np.sin(x.detach().numpy()))
    assert mg.gradcheck(sin, (x,))
    assert mg.gradcheck(product, (a, b))
    assert sin(x).grad_fn.name() == "sin"
    assert sin.__name__ == "sin"


def test_several_results_and_the_output(rng):
    def polar(x, y):
        return np.hypot(x, y), np.arctan2(y, x)

    def vjp(g, x, y, output):
        (gr, gt), (r, _) = g, output
        return gr * x / r - gt * y / r**2, gr * y / r + gt * x / r**2

    f = custom_vjp(polar, vjp)
    x, y = random(rng, 5), random(rng, 5)
    assert mg.gradcheck(f, (x, y))
    r, _ = f(x, y)
    r.sum().backward()  # one of them alone: the gradient of the other is zero
    np.testing.assert_allclose(x.grad.numpy(), (x / mg.hypot(x, y)).detach().numpy(), rtol=1e-12)


def test_numbers_and_other_arguments(rng):
    def scaled(x, factor, table, *, shift):
        assert type(factor) is float
        return float((x * factor).sum()) + shift + len(table)

    f = custom_vjp(
        scaled,
        lambda g, x, factor, table, shift: (np.full(x.shape, float(g) * factor), None, None),
    )
    x = random(rng, 3)
    y = f(x, 2.0, {"a": 1}, shift=5)
    assert y.item() == pytest.approx(2 * x.sum().item() + 6)
    y.backward()
    assert x.grad.tolist() == [2, 2, 2]


def test_constants_need_no_gradient(rng):
    calls = []

    def vjp(g, a, b):
        calls.append(1)
        return g @ b.T, None

    f = custom_vjp(matmul, vjp)
    a = random(rng, 2, 3)
    f(a, mg.ones(3, 2, **F64)).sum().backward()
    assert a.grad.tolist() == [[2, 2, 2]] * 2
    f(np.ones((2, 3)), mg.ones(3, 2, **F64))  # nothing requires grad
    assert len(calls) == 1


def test_a_function_of_c():
    lib = ctypes.CDLL(ctypes.util.find_library("m"))
    lib.erf.restype, lib.erf.argtypes = ctypes.c_double, [ctypes.c_double]
    erf = custom_vjp(np.vectorize(lib.erf), lambda g, x: g * 2 / np.pi**0.5 * np.exp(-(x**2)))
    x = mg.tensor([0.3, -1.2], requires_grad=True, **F64)
    assert mg.gradcheck(erf, (x,))


def test_what_a_solver_keeps_or_writes_changes_nothing():
    buffer = np.zeros(2)

    def into_buffer(x):
        buffer[...] = x * 2
        return buffer

    f = custom_vjp(into_buffer, lambda g, x: np.multiply(g, 2, out=buffer))
    x = mg.tensor([1.0, 2.0], requires_grad=True, **F64)
    y = f(x)
    z = f(x * 10)
    assert y.tolist() == [2, 4]
    (y + z).sum().backward()
    assert x.grad.tolist() == [22, 22]

    def writes(x):
        x[0] = 7
        return x

    with pytest.raises(ValueError, match="read-only"):
        custom_vjp(writes, lambda g, x: g)(x)
    assert x.tolist() == [1, 2]


def test_vjp_may_write_over_the_upstream_gradient():
    def writes(g, x):
        g *= np.cos(x)
        return g

    x = mg.tensor([1.0, 2.0], requires_grad=True, **F64)
    for upstream in (None, mg.tensor([2.0, 3.0], **F64)):
        y = custom_vjp(np.sin, writes)(x)
        x.grad = None
        (y.sum() if upstream is None else y).backward(upstream)
        scale = [1, 1] if upstream is None else [2, 3]
        np.testing.assert_allclose(x.grad.numpy(), np.cos([1, 2]) * scale)
        assert upstream is None or upstream.tolist() == [2, 3]


def test_a_result_that_is_an_argument(rng):
    same = custom_vjp(lambda x: x, lambda g, x: g * 3)
    x = random(rng, 3)
    y = same(x)
    assert y is not x
    y.sum().backward()
    assert x.grad.tolist() == [3, 3, 3]


def test_dtypes(rng):
    x = mg.ones(2, requires_grad=True)
    y = custom_vjp(lambda x: x.astype(np.float64) * 2, lambda g, x: g * 2)(x)
    assert y.dtype is mg.float64
    y.sum().backward()
    assert x.grad.dtype is mg.float32
    count = custom_vjp(lambda x: (x > 0).sum(), lambda g, x: None)(x)
    assert not count.requires_grad
    assert count.item() == 2


def test_tensors_can_be_differentiated_twice(rng):
    cube = custom_vjp(lambda x: x**3, lambda g, x: 3 * g * x**2, tensors=True)
    x = random(rng, 4)
    assert mg.gradcheck(cube, (x,))
    assert mg.gradgradcheck(cube, (x,))
    exp = custom_vjp(mg.exp, lambda g, x, output: g * output, tensors=True)
    assert mg.gradgradcheck(exp, (x,))


def test_arrays_can_be_differentiated_once(rng):
    x = random(rng, 3)
    (dx,) = mg.grad(sin(x).sum(), x, create_graph=True)
    np.testing.assert_allclose(dx.detach().numpy(), np.cos(x.detach().numpy()))
    with pytest.raises(RuntimeError, match=r"\[sin\] the second derivative is not known"):
        dx.sum().backward()


def wrong(value):
    return custom_vjp(matmul, lambda g, a, b: value)


ERRORS = {
    "number": (wrong((np.ones((2, 3)),)), RuntimeError, "vjp returned 1 gradients for 2 arguments"),
    "shape": (
        wrong((np.ones((3, 2)), None)),
        RuntimeError,
        r"vjp returned shape \(3, 2\) as gradient 0 for an argument of shape \(2, 3\)",
    ),
    "broadcast": (wrong((np.ones((1, 3)), None)), RuntimeError, r"vjp returned shape \(1, 3\) as"),
    "complex": (wrong((np.ones((2, 3)) * 1j, None)), TypeError, "gradient 0 is complex128"),
    "text": (wrong(("a", None)), TypeError, "gradient 0 is str, not an array of real numbers"),
    "integers": (wrong((np.ones((2, 3), int), None)), TypeError, "gradient 0 is int64"),
    "tensor": (wrong((mg.ones(2, 3), None)), TypeError, "gradient 0 is Tensor, not an array"),
}  # fmt: skip


@pytest.mark.parametrize("case", ERRORS.values(), ids=ERRORS)
def test_wrong_gradients_are_errors(case):
    f, error, text = case
    a = mg.ones(2, 3, requires_grad=True)
    y = f(a, mg.ones(3, 2)).sum()
    with pytest.raises(error, match=r"\[matmul\] " + text):
        y.backward()
    assert a.grad is None


def test_other_errors(rng):
    x = random(rng, 2)
    with pytest.raises(TypeError, match=r"\[<lambda>\] output 0 is object, not an array of real"):
        custom_vjp(lambda x: np.array(None), lambda g, x: g)(x)
    with pytest.raises(TypeError, match=r"\[<lambda>\] output 1 is NoneType"):
        custom_vjp(lambda x: (x, None), lambda g, x: g)(x)
    with pytest.raises(TypeError, match=r"\[<lambda>\] output 0 is ndarray, not a Tensor"):
        custom_vjp(lambda x: x.detach().numpy(), lambda g, x: g, tensors=True)(x)
    with pytest.raises(TypeError, match=r"\[custom_vjp\] expected a function, not int"):
        custom_vjp(np.sin, 3)
    with pytest.raises(TypeError, match=r"\[matmul\] the argument b requires grad: give it by pos"):
        product(mg.ones(2, 2), b=mg.ones(2, 2, requires_grad=True))


def test_an_argument_that_was_overwritten(rng):
    x = mg.ones(2, requires_grad=True)
    h = x * 2
    y = sin(h)
    h += 1
    with pytest.raises(RuntimeError, match="overwritten in place"):
        y.sum().backward()


def test_sizes_and_layouts(rng):
    for x in (random(rng, 0, 3), random(rng), random(rng, 4, 6)[::2, 1::2].T):
        y = sin(x)
        np.testing.assert_allclose(y.detach().numpy(), np.sin(x.detach().numpy()))
        (dx,) = mg.grad(y.sum(), x)
        np.testing.assert_allclose(dx.numpy(), np.cos(x.detach().numpy()))


@pytest.mark.parametrize("tensors", [False, True])
def test_a_tensor_by_keyword_that_was_overwritten_is_noticed(tensors):
    def forward(x, *, factor):
        return x * (factor if tensors else factor.numpy())

    scaled = mg.func.custom_vjp(
        forward, lambda g, x, *, factor: forward(g, factor=factor), tensors=tensors
    )
    x, factor = mg.tensor([1.0, 2.0], requires_grad=True), mg.tensor([3.0, 4.0])
    scaled(x, factor=factor).sum().backward()
    assert x.grad.tolist() == [3.0, 4.0]
    y = scaled(x, factor=factor)
    factor.mul_(2.0)
    with pytest.raises(RuntimeError, match="a tensor saved for backward was overwritten"):
        y.sum().backward()
