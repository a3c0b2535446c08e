"""minigrad.testing: comparison of tensors, random tensors, and checks of Functions."""

from __future__ import annotations

import numpy as np
import pytest

import minigrad as mg
from minigrad.checking import GradcheckError
from minigrad.testing import assert_close, check_function, make_tensor

ALL = ("gradients", "second derivatives", "float32", "layouts", "needs_input_grad")


def leaf(values):
    return mg.tensor(np.asarray(values), dtype=mg.float64, requires_grad=True)


# ---- assert_close --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("a", "b", "options"),
    [
        (mg.tensor([1.0]), mg.tensor([1.0 + 1e-6]), {}),
        (mg.tensor([1.0]), mg.tensor([1.1]), {"rtol": 0.1, "atol": 0}),
        (mg.tensor([float("inf"), -1.0]), mg.tensor([float("inf"), -1.0]), {}),
        (mg.tensor([float("nan")]), mg.tensor([float("nan")]), {"equal_nan": True}),
        (mg.tensor([1.0]), mg.tensor([1.0], dtype=mg.float64), {"check_dtype": False}),
        (mg.tensor([1, 2]), np.array([1, 2]), {}),
        (1.5, 1.5, {}),
        ({"a": [mg.ones(2), 1]}, {"a": [mg.ones(2), 1]}, {}),
        (mg.ones(0), mg.ones(0), {}),
        (mg.tensor(True), True, {}),
        (mg.ones(2, requires_grad=True), mg.ones(2), {}),
    ],
)
def test_what_is_close(a, b, options):
    assert_close(a, b, **options)


@pytest.mark.parametrize(
    ("a", "b", "message"),
    [
        (
            mg.tensor([[1.0, 2.0], [3.0, 4.0]]),
            mg.tensor([[1.0, 3.0], [3.0, 4.1]]),
            "2 of 4 elements differ, most at index (0, 1): 2 is not 3, by 1 where 1.39e-05 is "
            "allowed (rtol=1.3e-06, atol=1e-05)",
        ),
        (mg.ones(2), mg.ones(3), "the shapes are (2,) and (3,)"),
        (
            mg.ones(2),
            mg.ones(2, dtype=mg.int64),
            "the dtypes are float32 and int64; check_dtype=False compares the values alone",
        ),
        ([1, 2], [1], "there are 2 items, not 1"),
        ([1, 2], [1, 3], "item 1: 1 of 1 elements differ, most at index (): 2 is not 3"),
        ({"a": 1}, {"b": 1}, "the keys are ['a'] and ['b']"),
        ({"a": (1, 2.0)}, {"a": (1, 2.5)}, "item 'a': item 1: 1 of 1 elements differ"),
        (float("inf"), 1.0, "inf is not 1"),
        (1.0, float("inf"), "1 is not inf"),
        (float("nan"), float("nan"), "nan is not nan"),
        (True, False, "1 is not 0"),
        (2**62, -(2**62) - 1, f"{2**62} is not {-(2**62) - 1}, by 9.22e+18"),
    ],
)
def test_how_values_differ(a, b, message):
    with pytest.raises(AssertionError) as caught:
        assert_close(a, b)
    assert f"[assert_close] {message}" in str(caught.value) or message in str(caught.value)


def test_texts_and_refusals():
    with pytest.raises(AssertionError, match=r"^mine$"):
        assert_close(1, 2, msg="mine")
    with pytest.raises(AssertionError, match=r"^row 3: \[assert_close\] 1 of 1"):
        assert_close(1, 2, msg=lambda text: f"row 3: {text}")
    with pytest.raises(ValueError, match=r"rtol is 0\.1 and atol is None: give both"):
        assert_close(1, 1, rtol=0.1)
    with pytest.raises(TypeError, match="cannot compare object"):
        assert_close(object(), 1)
    with pytest.raises(AssertionError, match=r"the strides are \(1,\) and \(2,\)"):
        assert_close(mg.ones(2), mg.ones(4)[::2], check_stride=True)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("factor", [0.5, 2.0])
def test_tolerances_are_those_of_pytorch(dtype, factor):
    torch = pytest.importorskip("torch")
    rtol = {"float16": 1e-3, "bfloat16": 1.6e-2, "float32": 1.3e-6, "float64": 1e-7}[dtype]
    outcomes = []
    for lib in (mg, torch):
        kind = getattr(lib, dtype)
        a, b = (lib.tensor([x], dtype=kind) for x in (64 * (1 + factor * rtol), 64.0))
        try:
            lib.testing.assert_close(a, b)
            outcomes.append(True)
        except AssertionError:
            outcomes.append(False)
    assert outcomes[0] == outcomes[1]


# ---- make_tensor ---------------------------------------------------------------------------------


@pytest.mark.usefixtures("restore_random")
@pytest.mark.parametrize(
    ("dtype", "low", "high"),
    [
        (mg.float32, -9, 9),
        (mg.float64, -9, 9),
        (mg.int64, -9, 10),
        (mg.uint8, 0, 10),
        (mg.bool, 0, 2),
        (mg.float16, -9, 9),
    ],
)
def test_random_tensors(dtype, low, high):
    mg.manual_seed(0)
    x = make_tensor(40, 50, dtype=dtype)
    assert (x.shape, x.dtype) == ((40, 50), dtype)
    values = x.to(mg.float64)
    assert low <= values.min().item() < low + 0.1 * (high - low)
    last = high if dtype.is_floating_point else high - 1
    assert last - 0.1 * (high - low) < values.max().item() <= last


@pytest.mark.usefixtures("restore_random")
def test_options_of_random_tensors():
    mg.manual_seed(0)
    x = make_tensor((3, 4), dtype=mg.float64, requires_grad=True, noncontiguous=True)
    assert (x.shape, x.is_contiguous(), x.requires_grad, x.is_leaf) == ((3, 4), False, True, True)
    assert make_tensor(dtype=mg.float32).shape == ()
    assert make_tensor(0, 3, dtype=mg.float32).shape == (0, 3)
    assert bool((make_tensor(99, dtype=mg.int64, low=0, high=2, exclude_zero=True) == 1).all())
    narrow = make_tensor(1000, dtype=mg.float32, low=1, high=1 + 2**-20)
    assert bool((narrow < 1 + 2**-20).all())
    with pytest.raises(ValueError, match="low is 3 and high is 3"):
        make_tensor(2, dtype=mg.float32, low=3, high=3)


# ---- check_function ------------------------------------------------------------------------------


class Scaled(mg.Function):
    """a b with a number k: two inputs that need gradients, one argument that does not."""

    @staticmethod
    def forward(ctx, a, b, k):
        ctx.save_for_backward(a, b)
        ctx.k = k
        return k * a * b

    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        return ctx.k * g * b, ctx.k * g * a, None


def test_a_right_function_passes(rng):
    a, b = leaf(rng.random((2, 3))), leaf(rng.random((2, 3)))
    assert check_function(Scaled, a, b, 3.0) == ALL
    assert check_function(lambda a, b: (a @ b.T).tanh(), a, b) == ALL
    assert check_function(mg.nn.functional.softmax, a, 1) == ALL
    assert a.requires_grad
    assert a.grad is None


@pytest.mark.usefixtures("restore_random")
def test_modules_and_arguments_given_twice(rng):
    x = leaf(rng.random((2, 3)))
    assert check_function(lambda a, b: a * b.exp(), x, x) == ALL
    without = tuple(name for name in ALL if name != "float32")
    assert check_function(mg.nn.Linear(3, 2).double(), x) == without


@pytest.mark.parametrize("shape", [(), (0,), (0, 3), (1,), (1, 1)])
def test_small_inputs(shape):
    assert check_function(lambda x: x.exp() * x, leaf(np.full(shape, 0.5))) == ALL


def test_a_function_that_is_differentiable_once():
    class Once(Scaled):
        @staticmethod
        @mg.autograd.once_differentiable
        def backward(ctx, g):
            return Scaled.backward(ctx, g)

    assert check_function(Once, leaf([1.0]), leaf([2.0]), 3.0) == (ALL[0], *ALL[2:])


def wrong(message):
    """A test case: a Function's methods, and how the error goes on."""
    return lambda cls: pytest.param(cls, message, id=cls.__name__)


@wrong("the derivative of output 0 with respect to input 0 is wrong in 2 of 4")
class Large(Scaled):
    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        return ctx.k * g * b * 1.0005, ctx.k * g * a, None


@wrong("[gradgradcheck] in the function from 3 inputs, then 1 grad_outputs")
class Detached(Scaled):
    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        return ctx.k * g * b.detach(), ctx.k * g * a, None


@wrong("output 0 is float64 for float32 inputs")
class Widened(Scaled):
    @staticmethod
    def forward(ctx, a, b, k):
        return Scaled.forward(ctx, a, b, k).double()


@wrong("if input 0 is strided")
class IgnoresStrides(Scaled):
    @staticmethod
    def forward(ctx, a, b, k):
        y = Scaled.forward(ctx, a, b, k)
        return y if a.is_contiguous() else y * 1.5


@wrong("the gradient of input 0 changes if input 0 alone requires grad, by")
class NeedsBoth(Scaled):
    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        scale = 1.0 if all(ctx.needs_input_grad[:2]) else 2.0
        return ctx.k * g * b * scale, ctx.k * g * a, None


@wrong("it fails if input 0 alone requires grad: ZeroDivisionError: division by zero")
class FailsAlone(Scaled):
    @staticmethod
    def backward(ctx, g):
        assert 1 / ctx.needs_input_grad[1]
        return Scaled.backward(ctx, g)


@wrong("the forward modified input 1: write into a copy")
class Writes(Scaled):
    @staticmethod
    def forward(ctx, a, b, k):
        y = Scaled.forward(ctx, a, b, k)
        b.detach().mul_(2)
        return y


@pytest.mark.parametrize(
    ("case", "message"),
    [Large, Detached, Widened, IgnoresStrides, NeedsBoth, FailsAlone, Writes],
)
def test_a_wrong_function_is_named_with_its_fault(case, message):
    with pytest.raises(AssertionError) as caught:
        check_function(case, leaf([1.0, 2.0]), leaf([3.0, 4.0]), 3.0)
    text = str(caught.value)
    assert text.startswith(f"[check_function] {case.__name__}: ")
    assert message in text
    assert isinstance(caught.value, GradcheckError)


def test_options_go_to_gradcheck():
    x = leaf([1.0, 2.0])
    assert check_function(mg.exp, x, fast_mode=True, check_batched_grad=True, seed=3) == ALL
    with pytest.raises(AssertionError, match="is wrong in 2 of 4"):
        check_function(mg.exp, x, rtol=1e-14, atol=1e-14)
    assert check_function(mg.exp, x, check_forward_ad=False) == ALL


def test_inputs_that_cannot_be_checked():
    with pytest.raises(ValueError, match="no input requires grad"):
        check_function(Scaled, mg.ones(1), mg.ones(1), 1.0)
    with pytest.raises(TypeError, match="use float64 inputs"):
        check_function(Scaled, mg.ones(1, requires_grad=True), mg.ones(1), 1.0)


@pytest.mark.parametrize("factor", [1.0, 1.001])
def test_a_function_with_a_rule_for_forward_mode(factor):
    class Square(mg.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return 2 * x * g

        @staticmethod
        def jvp(ctx, tangent):
            (x,) = ctx.saved_tensors
            return 2 * x * tangent * factor

    x = leaf([1.0, 2.0])
    if factor == 1:
        assert check_function(Square, x) == (*ALL, "forward mode")
        return
    with pytest.raises(AssertionError, match=r"input index \(1,\): forward mode 4\.004, numeric 4"):
        check_function(Square, x)


def test_a_function_with_a_batching_rule():
    class Batched(Scaled):
        @staticmethod
        def vmap(info, in_dims, a, b, k):
            return Scaled.apply(a, b, k), 0

    done = check_function(Batched, leaf([1.0, 2.0]), leaf([3.0, 4.0]), 3.0)
    assert done == (*ALL, "vmap")
