"""gradcheck itself: true derivatives pass in every mode, each planted fault is named."""

from __future__ import annotations

import numpy as np
import pytest

import minigrad as mg
from minigrad.checking import (
    GradcheckError,
    gradcheck,
    gradgradcheck,
    numerical_gradient_check,
)
from minigrad.tape.node import record

MODES = [
    pytest.param({}, id="slow"),
    pytest.param({"fast": 4}, id="fast"),
    pytest.param({"stencil": 4}, id="fourth-order"),
    pytest.param({"fast": 4, "stencil": 4}, id="fast-fourth-order"),
]


def leaf(values, dtype=mg.float64):
    return mg.tensor(np.asarray(values), dtype=dtype, requires_grad=True)


@pytest.fixture
def x(rng):
    return leaf(rng.uniform(0.5, 1.5, (2, 3)))


@pytest.fixture
def w(rng):
    return leaf(rng.uniform(0.5, 1.5, (3, 2)))


def raw(name, forward, vjp):
    """An operation put on the tape by hand, without the checks that Function makes."""

    class Op:
        def __init__(self):
            self.name = name

        def vjp(self, node, g):
            return vjp(g)

        graph_vjp = vjp

    def function(*xs):
        with mg.no_grad():
            y = forward(*xs).clone()
        if any(x.requires_grad for x in xs):
            parents = [x if x.is_leaf and x.requires_grad else x.grad_fn for x in xs]
            y._edge = record(Op(), None, (), None, *parents)
        return y

    return function


class Square(mg.Function):
    """x squared, with a derivative for tests to spoil."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * x * g


# ---- what is right passes ------------------------------------------------------------------------

TRUE = {
    "polynomial": lambda x, w: x * x * x + 2 * x,
    "matmul": lambda x, w: x @ w,
    "exp_log": lambda x, w: (x.exp() + 1).log(),
    "softmax": lambda x, w: x.softmax(-1),
    "broadcast": lambda x, w: x * w[:, 0],
    "reduction": lambda x, w: (x @ w).tanh().mean(),
    "several": lambda x, w: (x.sum(), (x @ w).sqrt(), w.T),
    "identity": lambda x, w: x,
    "view": lambda x, w: x[0],
    "one_unused": lambda x, w: w.exp(),
    "function": lambda x, w: Square.apply(x) + w.T,
    "with_indices": lambda x, w: (x.argmax(), x.sin()),
    "large": lambda x, w: 1e3 * (x @ w).exp(),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", TRUE)
def test_true_derivatives_pass(name, mode, x, w):
    assert gradcheck(TRUE[name], (x, w), **mode) is True


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", TRUE)
def test_true_second_derivatives_pass(name, mode, x, w):
    assert gradgradcheck(TRUE[name], (x, w), strided_grad_outputs=True, **mode) is True


def test_second_derivatives_with_given_grad_outputs(x):
    g = leaf([[1.0, -2.0, 0.5], [0.0, 3.0, 1.0]])
    assert gradgradcheck(lambda x: x.exp(), x, g)
    assert gradgradcheck(lambda x: x.exp(), x, g.detach())


def test_a_single_tensor_and_the_tutorials_name(x):
    assert numerical_gradient_check is gradcheck
    assert numerical_gradient_check(lambda x: x.sin(), x)


@pytest.mark.parametrize("shape", [(), (1,), (0,), (0, 3), (1, 1, 1), (2, 1, 2)])
@pytest.mark.parametrize("mode", MODES)
def test_shapes(shape, mode, rng):
    x = leaf(rng.uniform(0.5, 1.5, shape))
    assert gradcheck(lambda x: x.exp() * x, x, **mode)
    assert gradgradcheck(lambda x: x.exp() * x, x, strided_grad_outputs=True, **mode)


@pytest.mark.parametrize("mode", MODES)
def test_non_contiguous_inputs(mode, rng):
    whole = mg.tensor(rng.uniform(0.5, 1.5, (4, 6)))
    transposed = whole.T.requires_grad_()
    assert not transposed.is_contiguous()
    assert gradcheck(lambda x: x.exp() @ mg.tensor(np.eye(4, 2)), transposed, **mode)
    stepped = mg.tensor(rng.uniform(0.5, 1.5, (4, 6)))[::2, 1::2].requires_grad_()
    assert not stepped.is_contiguous()
    assert gradcheck(lambda x: (x.log(), x.sum(0)), stepped, **mode)


@pytest.mark.parametrize("mode", MODES)
def test_the_same_tensor_twice(mode, x):
    assert gradcheck(lambda a, b: a * b.exp(), (x, x), **mode)
    assert gradgradcheck(lambda a, b: a * b.exp(), (x, x), **mode)


@pytest.mark.parametrize("mode", MODES)
def test_arguments_without_gradient_in_between(mode, x, w):
    fixed = mg.tensor(np.arange(6.0).reshape(2, 3))
    before = fixed.tolist()
    assert gradcheck(lambda a, c, n, b: (a * c) @ b * n, (x, fixed, 3, w), **mode)
    assert gradgradcheck(lambda a, c, n, b: (a * c) @ b * n, (x, fixed, 3, w), **mode)
    assert fixed.tolist() == before


@pytest.mark.parametrize("mode", MODES)
def test_inputs_that_are_results(mode, x, w):
    assert gradcheck(lambda y, z: y.sin() @ z, (x * 2, w.exp()), **mode)


@pytest.mark.parametrize("mode", MODES)
def test_a_function_that_reaches_its_inputs_by_itself(mode, x, w):
    assert gradcheck(lambda *_: x @ w, (x, w), **mode)
    with pytest.raises(GradcheckError, match="wrong in"):
        gradcheck(lambda *_: Slightly.apply(x) @ w, (x, w), **mode)


def test_inputs_and_their_grads_are_as_before(x, w):
    x.grad = mg.tensor(np.ones((2, 3)))
    values = x.tolist()
    assert gradcheck(lambda x, w: x @ w, (x, w))
    with pytest.raises(ZeroDivisionError):
        gradcheck(lambda x: x * x if x.tolist() == values else 1 // 0, x)
    assert x.tolist() == values
    assert x.grad.tolist() == [[1.0] * 3] * 2
    assert w.grad is None


def test_works_under_no_grad(x):
    with mg.no_grad():
        assert gradcheck(lambda x: x * x, x)
        assert gradgradcheck(lambda x: x * x, x)
        assert not mg.is_grad_enabled()


def test_large_inputs_are_perturbed_exactly():
    assert gradcheck(lambda x: x * 3, leaf([1e6, 12345.678, -1e4 / 3]), rtol=1e-3, stencil=4)
    assert gradcheck(lambda x: (x - 1e6).exp(), leaf([1e6 + 1 / 3]))


def test_float32_against_float64(rng):
    x = leaf(rng.uniform(0.5, 1.5, (2, 3)), mg.float32)
    w = leaf(rng.uniform(0.5, 1.5, (3, 2)), mg.float32)
    for mode in ({}, {"fast": 4}):
        assert gradcheck(lambda x, w: ((x @ w).tanh(), x.exp()), (x, w), check_float32=True, **mode)
    assert x.dtype is mg.float32


# ---- planted faults ------------------------------------------------------------------------------


class Slightly(Square):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * x * g * 1.0005


@pytest.mark.parametrize("mode", MODES)
def test_a_gradient_slightly_too_large(mode):
    x = leaf([1.0, 2.0, 0.5])
    with pytest.raises(GradcheckError) as caught:
        gradcheck(lambda w, x: Slightly.apply(x), (mg.tensor(1.0), x), **mode)
    message = str(caught.value)
    assert "derivative of output 0 with respect to input 1 is wrong in 3 of 9 elements" in message
    assert "output index (1,), input index (1,)" in message
    assert "analytic 4.002, numeric 4" in message
    assert "difference 0.002 where 4.01e-05 is allowed" in message
    assert "uncertain by about" in message
    assert "noise" not in message
    assert "kink" not in message
    assert gradcheck(Slightly.apply, x, raise_exception=False, **mode) is False
    assert gradcheck(Slightly.apply, x, rtol=1e-3, **mode)


@pytest.mark.parametrize("mode", MODES)
def test_a_fault_in_one_element_of_many(mode, rng):
    class OneWrong(Square):
        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            wrong = np.ones((8, 8))
            wrong[3, 5] = 1.001
            return 2 * x * g * mg.tensor(wrong)

    x = leaf(rng.uniform(0.5, 1.5, (8, 8)))
    with pytest.raises(GradcheckError, match=r"wrong in 1 of 4096 .*input index \(3, 5\)"):
        gradcheck(OneWrong.apply, x, **mode)


@pytest.mark.parametrize("mode", MODES)
def test_a_detached_second_derivative(mode, x):
    class Detached(Square):
        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return 2 * x.detach() * g

    assert gradcheck(Detached.apply, x, **mode)
    with pytest.raises(GradcheckError) as caught:
        gradgradcheck(Detached.apply, x, **mode)
    message = str(caught.value)
    assert message.startswith("[gradgradcheck] in the function from 1 inputs, then 1 grad_outputs")
    assert "derivative of output 0 with respect to input 0 is wrong in 6 of 36" in message
    assert "analytic 0," in message
    assert gradgradcheck(Detached.apply, x, raise_exception=False, **mode) is False


def test_a_gradient_without_any_graph(x):
    class Numpy(Square):
        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return mg.tensor(2 * x.detach().numpy() * g.detach().numpy())

    assert gradcheck(Numpy.apply, x)
    with pytest.raises(RuntimeError, match=r"\[Numpy\] the second derivative is not known"):
        gradgradcheck(Numpy.apply, x)


@pytest.mark.parametrize("mode", MODES)
def test_an_ignored_cotangent(mode, x):
    class Ignores(Square):
        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return 2 * x

    with pytest.raises(
        GradcheckError, match=r"output 0 with respect to input 0 is wrong in 30 of 36"
    ):
        gradcheck(Ignores.apply, x, **mode)


@pytest.mark.parametrize("mode", MODES)
def test_a_wobbling_gradient(mode, x, rng):
    class Wobbles(Square):
        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return 2 * x * g * (1 + 1e-9 * rng.random())

    with pytest.raises(
        GradcheckError, match="input 0 differs when the same backward runs again, by"
    ):
        gradcheck(Wobbles.apply, x, **mode)
    assert gradcheck(Wobbles.apply, x, nondet_tol=1e-7, **mode)


@pytest.mark.parametrize("mode", MODES)
def test_a_wrong_dtype(mode, x):
    op = raw("narrow", lambda x: x * 2, lambda g: [(g * 2).float()])
    with pytest.raises(
        GradcheckError,
        match=r"gradient of input 0 has shape \(2, 3\) and dtype float32, the input .* float64",
    ):
        gradcheck(op, x, **mode)


@pytest.mark.parametrize("mode", MODES)
def test_broadcasting_not_summed_back(mode, x):
    row = leaf([1.0, 2.0, 3.0])
    op = raw("add", lambda x, row: x + row, lambda g: [g, g])
    with pytest.raises(
        GradcheckError, match=r"gradient of input 1 has shape \(2, 3\) .* the input \(3,\)"
    ):
        gradcheck(op, (x, row), **mode)


@pytest.mark.parametrize("mode", MODES)
def test_a_sum_back_over_the_wrong_axis(mode, rng):
    x, row = leaf(rng.random((3, 3))), leaf(rng.random(3))
    op = raw("add", lambda x, row: x + row, lambda g: [g, g.sum(1)])
    with pytest.raises(
        GradcheckError, match="output 0 with respect to input 1 is wrong in 12 of 27"
    ):
        gradcheck(op, (x, row), **mode)


@pytest.mark.parametrize("when", ["forward", "backward"])
@pytest.mark.parametrize("mode", MODES)
def test_an_overwritten_input(mode, when, x, w):
    def spoil(w):
        w.detach().copy_(w.detach() * 2)

    class Overwrites(mg.Function):
        @staticmethod
        def forward(ctx, x, w):
            ctx.w = w
            y = x @ w
            if when == "forward":
                spoil(w)
            ctx.save_for_backward(x, w.clone())
            return y

        @staticmethod
        def backward(ctx, g):
            x, w = ctx.saved_tensors
            if when == "backward":
                spoil(ctx.w)
            return g @ w.T, x.T @ g

    before = w.tolist()
    with pytest.raises(GradcheckError, match=f"the {when} modified input 1"):
        gradcheck(Overwrites.apply, (x, w), **mode)
    assert w.tolist() == before


@pytest.mark.parametrize("mode", MODES)
def test_an_overwritten_cotangent(mode, x):
    def vjp(g):
        g.copy_(g * 2)
        return [g]

    with pytest.raises(GradcheckError, match="the backward modified the grad_outputs it was given"):
        gradcheck(raw("double", lambda x: x * 2, vjp), x, **mode)


def as_if_contiguous(g):
    """The first elements of the memory behind g, as a kernel that ignores strides reads them."""
    view = g.detach().numpy()
    n = view.size
    end = (
        1 + sum((n - 1) * s for n, s in zip(view.shape, view.strides, strict=True)) // view.itemsize
    )
    memory = np.lib.stride_tricks.as_strided(view, (end,), (view.itemsize,))
    return mg.tensor(np.resize(memory, n).reshape(view.shape))


@pytest.mark.parametrize("mode", MODES)
def test_a_strided_cotangent_read_as_contiguous(mode, x):
    op = raw("scale", lambda x: x * 2, lambda g: [as_if_contiguous(g) * 2])
    with pytest.raises(
        GradcheckError, match="gradient of input 0 changes when grad_outputs are strided"
    ):
        gradcheck(op, x, **mode)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("layout", ["transposed", "broadcast rows", "one number broadcast"])
def test_cotangents_of_other_layouts_read_as_contiguous(layout, mode, rng):
    broken = {
        "transposed": lambda strides: 0 not in strides and list(strides) == sorted(strides),
        "broadcast rows": lambda strides: strides == (0, 1),
        "one number broadcast": lambda strides: strides == (0, 0),
    }[layout]

    def vjp(g):
        if broken(g.strides):
            return [g * 1.5]
        return [g.clone()]

    x = leaf(rng.random((2, 3)))
    with pytest.raises(GradcheckError, match=f"changes when grad_outputs are {layout}, by"):
        gradcheck(raw("copy", lambda x: x, vjp), x, **mode)


def test_strided_grad_outputs_in_the_second_derivative(x):
    """A backward that is wrong in g's layout, but only while a graph of it is recorded.

    A Function gets a copy, in order, of what others hold too, unless that cannot be written.
    """

    class Layout(Square):
        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            if mg.is_grad_enabled() and g.strides == (0, 0):
                x = x.detach()
            return 2 * x * g

    assert gradcheck(Layout.apply, x)
    assert gradgradcheck(Layout.apply, x)
    with pytest.raises(GradcheckError, match="output 0 with respect to input 0 is wrong"):
        gradgradcheck(Layout.apply, x, strided_grad_outputs=True)


@pytest.mark.parametrize("mode", MODES)
def test_a_missing_gradient_of_one_output_misread(mode, x):
    class Two(mg.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(False)
            return x * 2, x * 3

        @staticmethod
        def backward(ctx, g, h):
            if h is None:
                return g
            return h * 3 if g is None else g * 2 + h * 3

    with pytest.raises(
        GradcheckError, match="from each output alone does not add up to that of all"
    ):
        gradcheck(Two.apply, x, **mode)


@pytest.mark.parametrize("mode", MODES)
def test_a_lost_graph(mode, x):
    with pytest.raises(GradcheckError, match="no output requires grad: the graph was lost"):
        gradcheck(lambda x: x.detach() * 2, x, **mode)
    with pytest.raises(GradcheckError, match="no output requires grad"):
        gradcheck(lambda x: x.argmax(), x, **mode)
    assert gradcheck(lambda x: x.argmax(), x, allow_no_grad=True, **mode)
    assert gradcheck(lambda x: mg.ones(3, dtype=mg.float64), x, allow_no_grad=True, **mode)
    with pytest.raises(GradcheckError, match=r"output 0 .* its graph was lost on the way"):
        gradcheck(lambda x: x.detach() * 2, x, allow_no_grad=True, **mode)
    with pytest.raises(GradcheckError, match=r"output 1 .* its graph was lost on the way"):
        gradcheck(lambda x: (x * 2, x.detach() * 2), x, **mode)


def test_a_kink_is_called_one():
    with pytest.raises(GradcheckError) as caught:
        gradcheck(lambda x: x.relu(), leaf([1.0, 0.0]))
    assert str(caught.value) == (
        "[gradcheck] output 0 has a kink with respect to input 0 at output index (1,), input index "
        "(1,): the one-sided differences are 0 to the left and 1 to the right, analytic 0 lies "
        "between them; there is no derivative at this point, so check one beside it"
    )


def test_noise_is_called_noise():
    x = leaf([0.5])
    with pytest.raises(GradcheckError, match="may be noise: try stencil=4"):
        gradcheck(lambda x: x.sin() + 1e7, x)
    assert gradcheck(lambda x: x.sin() + 1e7, x, stencil=4, atol=1e-4)


def test_nan_is_wrong():
    class NaN(Square):
        @staticmethod
        def backward(ctx, g):
            return g * float("nan")

    for mode in ({}, {"fast": 2}):
        with pytest.raises(GradcheckError, match="analytic nan, numeric"):
            gradcheck(NaN.apply, leaf([1.0, 2.0]), **mode)


def test_infinite_values_are_a_mismatch_without_warnings():
    for mode in ({}, {"fast": 2}):
        with pytest.raises(GradcheckError, match="numeric nan"):
            gradcheck(lambda x: x / 0.0, leaf([1.0, 2.0]), **mode)


def test_a_fault_in_float32_only(rng):
    class Narrow(Square):
        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return 2 * x * g * (1.001 if x.dtype is mg.float32 else 1.0)

    with pytest.raises(GradcheckError, match=r"is wrong in .* analytic .*, float64 "):
        gradcheck(Narrow.apply, leaf([1.0, 2.0], mg.float32), check_float32=True)
    with pytest.raises(GradcheckError, match="numeric"):
        gradcheck(Slightly.apply, leaf([1.0, 2.0], mg.float32), check_float32=True)


def test_outputs_in_float32(x):
    with pytest.raises(GradcheckError, match="output 0 is float32"):
        gradcheck(lambda x: x.float() * 2, x)


def test_a_shape_that_varies():
    x = leaf([1.0, 2.0])
    with pytest.raises(GradcheckError, match="shapes of outputs vary"):
        gradcheck(lambda x: x * 2 if float(x.detach()[0]) <= 1 else x[:1] * 2, x)


# ---- what cannot be checked ----------------------------------------------------------------------


def test_refusals(x):
    with pytest.raises(TypeError, match=r"differences in float32 .* check_float32=True"):
        gradcheck(lambda x: x * 2, leaf([1.0], mg.float32), raise_exception=False)
    with pytest.raises(ValueError, match="no input requires grad"):
        gradcheck(lambda x: x * 2, x.detach())
    with pytest.raises(ValueError, match=r"input 0 cannot be perturbed.*share one place"):
        gradcheck(lambda x: x * 2, mg.tensor(np.ones(1)).expand((3,)).requires_grad_())
    frozen = np.ones(3)
    frozen.flags.writeable = False
    with pytest.raises(ValueError, match=r"input 0 cannot be perturbed.*read-only"):
        gradcheck(lambda x: x * 2, mg.from_numpy(frozen).requires_grad_())
    for bad in (float("nan"), float("inf")):
        with pytest.raises(ValueError, match="input 1 has elements that are NaN or infinite"):
            gradcheck(lambda x, y: x * y, (x, leaf([bad, 1.0, 2.0])))
    with pytest.raises(ValueError, match="stencil is 3"):
        gradcheck(lambda x: x * 2, x, stencil=3)
    with pytest.raises(ValueError, match="eps is 0"):
        gradcheck(lambda x: x * 2, x, eps=0)
    with pytest.raises(TypeError, match=r"func returned 3\.0"):
        gradcheck(lambda x: 3.0, x)


def test_the_checks_are_found_in_autograd_too():
    assert mg.autograd.gradcheck is mg.gradcheck
    assert mg.autograd.gradgradcheck is mg.gradgradcheck
    assert not hasattr(mg.autograd, "nothing")


@pytest.mark.parametrize("mode", [{}, {"fast": 2}])
@pytest.mark.parametrize(
    "wrong",
    [
        lambda g: g * g,  # right for each unit vector, as the Jacobian is found by
        lambda g: g.abs(),
        lambda g: g.clamp(-1.0, 1.0),
        lambda g: g * g * g,
    ],
)
def test_a_backward_that_is_not_linear(wrong, mode):
    class Twice(mg.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2.0

        @staticmethod
        def backward(ctx, g):
            return wrong(g) * 2.0

    x = mg.tensor([1.0, 2.0], mg.float64, requires_grad=True)
    with pytest.raises(GradcheckError, match=r"not linear in grad_outputs|derivative of output"):
        gradcheck(Twice.apply, x, **mode)


def test_a_random_function_is_named_as_such(restore_random):
    x = mg.tensor(np.linspace(1.0, 2.0, 64), requires_grad=True)
    with pytest.raises(GradcheckError, match="it is random or keeps a state"):
        gradcheck(lambda t: mg.nn.functional.dropout(t, 0.5), x)

    def seeded(t):
        mg.manual_seed(0)
        return mg.nn.functional.dropout(t, 0.5)

    assert gradcheck(seeded, x)
