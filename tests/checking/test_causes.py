"""Reports of gradcheck: kinks, suspects, forward mode, batches and the options of PyTorch."""

from __future__ import annotations

import numpy as np
import pytest

import minigrad as mg
from minigrad import gradcheck, gradgradcheck
from minigrad.checking import GradcheckError


def leaf(values):
    return mg.tensor(np.asarray(values), dtype=mg.float64, requires_grad=True)


class Wrong(mg.Function):
    """sin, with a gradient 0.1 % too large."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sin()

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * x.cos() * 1.001


class Same(mg.Function):
    """A copy."""

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, g):
        return g


class WrongOfTwo(Wrong):
    """sin and twice; the gradient of the first is wrong."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sin(), x * 2

    @staticmethod
    def backward(ctx, g, h):
        (x,) = ctx.saved_tensors
        return g * x.cos() * 1.001 + 2 * h


def report(function, inputs, **options):
    with pytest.raises(GradcheckError) as caught:
        gradcheck(function, inputs, **options)
    return str(caught.value)


# ---- kinks ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"fast_mode": True}, {"stencil": 4}])
def test_a_kink_is_told_from_a_wrong_derivative(options):
    text = report(lambda x: x.relu().sum(), leaf([1.0, 0.0]), **options)
    assert "has a kink with respect to input 0 at output index (), input index (1,)" in text
    assert "differences are 0 to the left and 1 to the right, analytic 0 lies between" in text
    assert "wrong" not in text


def test_a_wrong_derivative_beside_a_kink_comes_first():
    text = report(lambda x: x.relu() + Wrong.apply(x), leaf([1.0, 0.0]))
    assert "is wrong in 2 of 4 elements, most at output index (0,), input index (0,)" in text
    assert "the suspect is the operation 'Wrong'" in text


def test_a_value_outside_of_both_sides_is_wrong_at_a_kink_too():
    class Five(Wrong):
        @staticmethod
        def forward(ctx, x):
            return x.relu()

        @staticmethod
        def backward(ctx, g):
            return g * 5

    text = report(Five.apply, leaf([0.0]))
    assert "is wrong in 1 of 1" in text
    assert "disagree too, 0 to the left and 1 to the right: there is a kink or jump" in text


def test_a_jump_and_the_edge_of_a_domain():
    assert "has a jump with respect to input 0" in report(lambda x: x.floor() + 0 * x, leaf([1.0]))
    text = report(lambda x: x.sign() + x, leaf([0.0]))
    assert "changes as much for a quarter of the step: there is a jump" in text
    assert "the output is -inf at this point" in report(lambda x: x.log(), leaf([0.0]))
    text = report(lambda x: x.sqrt(), leaf([0.0]))
    assert "no finite value to the left: this point is at the edge of the domain" in text


def test_many_kinks_and_one_fault(rng):
    class Relu(Wrong):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.relu()

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            slope = (x > 0).double()
            slope[2, 1] *= 1.001
            return g * slope

    values = np.zeros((3, 2))
    values[2, 1] = 0.5
    text = report(Relu.apply, leaf(values))
    assert "most at output index (2, 1), input index (2, 1): analytic 1.001, numeric 1," in text
    assert "the suspect is the operation 'Relu'" in text


def test_a_symmetric_kink_passes():
    assert gradcheck(lambda x: x.abs(), leaf([0.0]))  # 0 is the middle of both sides


# ---- suspects ------------------------------------------------------------------------------------


def written(x):
    y = x * 3
    y[0] = Wrong.apply(x)[1]
    return y * y


@pytest.mark.parametrize(
    "function",
    [
        lambda x: (Wrong.apply(x * 2) + x.exp()).sum(),
        lambda x: (Wrong.apply(x).outer(x) @ x).tanh(),
        lambda x: Wrong.apply(Wrong.apply(x).detach() * x),
        lambda x: mg.linalg.svdvals(Wrong.apply(x).outer(x) + mg.eye(2, dtype=mg.float64)),
        lambda x: mg.cat([x, Wrong.apply(x)])[1:].softmax(0),
        written,
        Wrong.apply,
    ],
)
def test_the_operation_is_named(function):
    text = report(function, leaf([0.3, 0.7]))
    assert "'Wrong'" in text or "needs no gradient" in text
    assert "sin'" not in text


def test_both_sides_of_the_suspect():
    text = report(lambda x: Wrong.apply(x * 2), leaf([0.5]))
    rule, truth = 2 * np.cos(1.0) * 1.001, 2 * np.cos(1.0)
    assert f"its rule gives {rule:.6g}"[:-1] in text
    assert f"differences of its result {truth:.6g}"[:-1] in text


def test_an_operation_with_two_outputs_is_named():
    def function(x):
        a, b = WrongOfTwo.apply(x * 2)
        return (a * b + x.exp()).sum()

    assert "the suspect is the operation 'WrongOfTwo'" in report(function, leaf([0.3, 0.7]))


def test_operations_that_cannot_be_checked_alone_are_listed():
    text = report(lambda x: Same.apply(Wrong.apply(x)).exp(), leaf([0.3, 0.7]))
    assert "; the suspects are the operations 'Same', 'Wrong': together their rules give" in text


@pytest.mark.parametrize("lose", [lambda x: x.detach(), lambda x: mg.tensor(x.detach().numpy())])
def test_a_lost_graph_within(lose):
    text = report(lambda x: (x.exp() * lose(x).sin()).sum(), leaf([0.3, 0.7]))
    assert "operand 1 of the operation 'mul' varies with this input but needs no gradient" in text


def test_a_hook_that_changes_the_gradient():
    def function(x):
        y = x * 2
        y.register_hook(lambda g: g * 2)
        return y.exp()

    assert "the suspect is a hook of the result of 'mul'" in report(function, leaf([0.3]))


def test_the_second_derivative_names_its_operation():
    class Once(Wrong):
        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * x.detach().cos()

    with pytest.raises(GradcheckError, match=r"operand \d of the operation 'mul' varies with"):
        gradgradcheck(Once.apply, leaf([0.3, 0.7]))


def test_inputs_are_as_before_a_report():
    x = leaf([0.3, 0.7])
    report(Wrong.apply, x)
    assert x.tolist() == [0.3, 0.7]


def test_a_failure_is_an_assertion_of_a_test():
    with pytest.raises(AssertionError):
        gradcheck(Wrong.apply, leaf([0.3]))


# ---- random functions, and those that write ------------------------------------------------------


@pytest.mark.usefixtures("restore_random")
def test_what_draws_is_named():
    text = report(lambda x: (x * mg.rand(2)).exp(), leaf([0.5, 1.0]))
    assert text.endswith("; the first kernel to give another result is 'uniform'")
    text = report(lambda x: mg.nn.functional.dropout(x.exp(), 0.5), leaf(np.ones(32)))
    assert text.endswith("; the first kernel to give another result is 'dropout_mask'")


def test_a_function_that_counts_its_calls():
    state = [0.0]

    def function(x):
        state[0] += 1
        return x * state[0]

    text = report(function, leaf([0.5]))
    assert "it is random or keeps a state" in text
    assert text.endswith("turn dropout off")


def test_a_function_that_writes_over_its_input():
    text = report(lambda x: x.mul_(2), leaf([0.3]) * 2)
    assert text == ("[gradcheck] the forward modified input 0: write into a copy, x = x.clone()")
    with pytest.raises(RuntimeError, match=r"\[mul\] cannot write in place"):
        gradcheck(lambda x: x.mul_(2), leaf([0.3]))


# ---- the options of PyTorch ----------------------------------------------------------------------


def test_options_under_the_names_of_pytorch():
    x = leaf([0.3, 0.7])
    options = {
        "eps": 1e-6,
        "atol": 1e-5,
        "rtol": 1e-3,
        "raise_exception": True,
        "nondet_tol": 0.0,
        "check_undefined_grad": True,
        "check_grad_dtypes": False,
        "check_batched_grad": True,
        "check_backward_ad": True,
        "check_forward_ad": False,
        "fast_mode": True,
        "masked": False,
    }
    assert gradcheck(lambda x: (x.exp(), x.sum()), x, **options)
    assert gradgradcheck(lambda x: x.exp(), x, gen_non_contig_grad_outputs=True, fast_mode=True)
    with pytest.raises(ValueError, match="neither check_backward_ad nor check_forward_ad"):
        gradcheck(lambda x: x.exp(), x, check_backward_ad=False)


def test_a_batch_of_upstream_gradients(rng):
    x, w = leaf(rng.random((2, 3))), leaf(rng.random((3, 2)))
    assert gradcheck(lambda x, w: ((x @ w).tanh(), x.sum()), (x, w), check_batched_grad=True)


def test_a_wrong_batch(monkeypatch):
    def wrong(function, in_dims=0):
        return lambda batch: (1.5 * mg.stack([function(v)[0] for v in batch]),)

    monkeypatch.setattr(mg.func, "vmap", wrong)
    text = report(lambda x: x.exp(), leaf([0.5, 1.0]), check_batched_grad=True)
    assert "gradient of input 0 by vmap over grad_outputs is not what each of them gives" in text


def test_one_of_three_gradients_left_out():
    class Three(mg.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(False)
            return x * 1, x * 2, x * 3

        @staticmethod
        def backward(ctx, *gs):
            present = [g is not None for g in gs]
            total = sum(k * g for k, g in enumerate(gs, 1) if g is not None)
            return total * 2 if present == [True, False, True] else total

    x = leaf([1.0, 2.0])
    assert "gradient of input 0 is wrong without one of output 1" in report(Three.apply, x)
    assert gradcheck(Three.apply, x, check_undefined_grad=False)


# ---- forward mode --------------------------------------------------------------------------------


def by_two_backwards(function, primals, tangents):
    """Forward mode by differentiating a backward, which is linear in its upstream gradients."""
    xs = [x.detach().requires_grad_() for x in primals]
    with mg.enable_grad():
        outputs = function(*xs)
        vs = [mg.zeros_like(y).requires_grad_() for y in outputs]
        gs = mg.grad(outputs, xs, vs, create_graph=True, materialize_grads=True)
        found = mg.grad(gs, vs, list(tangents), materialize_grads=True)
    return tuple(y.detach() for y in outputs), tuple(t.detach() for t in found)


def test_forward_mode(rng):
    x, w = leaf(rng.random((2, 3))), leaf(rng.random((3, 2)))

    def function(x, w):
        return (x @ w).tanh(), x.exp()

    for mode in ({}, {"fast_mode": True}):
        assert gradcheck(function, (x, w), check_forward_ad=True, **mode)
        assert gradcheck(function, (x, w), check_forward_ad=True, check_backward_ad=False, **mode)
    assert gradcheck(lambda x, y: x * y, (x, x), check_forward_ad=True)
    assert gradcheck(lambda k, x: x * k, (3, x), check_forward_ad=True)


@pytest.mark.parametrize("mode", [{}, {"fast_mode": True}])
def test_a_wrong_forward_mode(monkeypatch, mode):
    def wrong(function, primals, tangents):
        outputs, found = by_two_backwards(function, primals, tangents)
        return outputs, tuple(1.001 * t for t in found)

    monkeypatch.setattr(mg.func, "jvp", wrong)
    text = report(lambda x: x.exp(), leaf([0.0, 1.0]), check_forward_ad=True, **mode)
    assert "forward mode 2.721000" in text
    assert "numeric 2.71828" in text


def test_forward_over_reverse_and_batches_of_tangents(rng):
    x = leaf(rng.random(3))
    assert gradgradcheck(lambda x: x.exp() * x, x, check_fwd_over_rev=True)
    options = {"check_forward_ad": True, "check_batched_forward_grad": True}
    assert gradcheck(lambda x: x.exp() * x, x, **options)
