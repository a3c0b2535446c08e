"""minigrad.trace_backward: the steps of a backward, as a table and as a structure."""

from __future__ import annotations

import numpy as np
import pytest
from samples import CATALOGUE

import minigrad as mg
from minigrad import trace_backward
from minigrad.tutorial.scalar import Value
from minigrad.tutorial.variable import Variable


@pytest.mark.parametrize(
    "make", [lambda v: mg.tensor(v, requires_grad=True), Variable, lambda v: Value(v)]
)
def test_the_table_of_the_classic_example(make, capsys):
    x = make(2.0)
    trace = trace_backward(x**2 + 3 * x, names={"x": x})
    table = """\
step  node         operation  gradient  pushed to its inputs
----  -----------  ---------  --------  --------------------
1     y = v1 + v2  add        1         v1 += 1, v2 += 1
2     v2 = 3 * x   mul        1         x += 3
3     v1 = x ** 2  pow        1         x += 4
gradient of x: 7
"""
    assert capsys.readouterr().out == table
    assert str(trace) == table.rstrip()
    assert repr(trace) == "<backward of 3 steps to x>"
    assert not (x.grad.item() if isinstance(x.grad, mg.Tensor) else x.grad)


def test_the_steps_can_be_tested(capsys):
    x = mg.tensor(2.0, requires_grad=True)
    y = x**2 + 3 * x
    trace = trace_backward(y, quiet=True)
    assert capsys.readouterr().out == ""
    add, mul, power = trace.steps
    assert (add.name, add.operation, add.expression) == ("y", "add", "v1 + v2")
    assert add.node is y.grad_fn
    assert [(p.to, p.gradient.item()) for p in add.pushed] == [("v1", 1), ("v2", 1)]
    assert (mul.upstream.item(), power.upstream.item()) == (1, 1)
    assert [(p.to, p.gradient.item()) for p in power.pushed] == [("x", 4)]
    assert trace.gradients["x"].item() == 7


@pytest.mark.parametrize(
    "function",
    [
        lambda x, w: ((x @ w).tanh() * x[0]).sum(),
        lambda x, w: (w[0] * w[1] + x[:, 0]).exp().sum(),
        lambda x, w: mg.nn.functional.softmax(x @ w, 0).square().sum(),
        lambda x, w: mg.cat([x, w]).sort(0)[0][1:].prod(),
        lambda x, w: (x * w.sum()).mean() + w.double().sum(),
    ],
)
def test_gradients_are_those_of_backward(function, rng):
    values = rng.random((3, 3)).astype(np.float32), rng.random((3, 3)).astype(np.float32)
    x, w = (mg.tensor(v, requires_grad=True) for v in values)
    y = function(x, w)
    trace = trace_backward(y, names={"x": x, "w": w}, quiet=True)
    assert x.grad is None
    y.backward()
    for name, leaf in (("x", x), ("w", w)):
        assert trace.gradients[name].dtype is leaf.dtype
        np.testing.assert_allclose(trace.gradients[name].numpy(), leaf.grad.numpy(), rtol=1e-6)
    upstream = {step.name: step.upstream for step in trace.steps}
    for name, g in upstream.items():  # the gradient of a node is the sum of those pushed to it
        pushed = [p.gradient for step in trace.steps for p in step.pushed if p.to == name]
        if pushed:
            np.testing.assert_allclose(sum(pushed).numpy(), g.numpy(), rtol=1e-6)


@pytest.mark.usefixtures("restore_random")
@pytest.mark.parametrize("name", CATALOGUE)
def test_every_operation_is_traced_and_drawn(name):
    for sample in CATALOGUE[name]:
        xs = [mg.tensor(x, requires_grad=True) for x in sample.inputs()]
        for y in sample(*xs):
            if not isinstance(y, mg.Tensor) or y.grad_fn is None:
                continue
            trace = trace_backward(y, mg.ones_like(y), quiet=True)
            assert len(str(trace).splitlines()) == len(trace.steps) + len(trace.gradients) + 2
            assert len(str(y.grad_fn)) < 120
            assert mg.draw_graph(y).source.count(" -> ") >= len(trace.steps)


def test_a_backward_that_writes_over_its_gradients():
    class Writes(mg.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2, x * 3

        @staticmethod
        def backward(ctx, g, h):
            return g.mul_(2) + h.mul_(3)

    x = mg.tensor(1.0, requires_grad=True)
    a, b = Writes.apply(x)
    trace = trace_backward(a + b, quiet=True)
    assert [g.item() for g in trace.steps[-1].upstream] == [1, 1]
    assert trace.gradients["x"].item() == 5


@pytest.mark.usefixtures("restore_random")
def test_names_of_a_module(capsys):
    model = mg.nn.Linear(2, 1)
    trace = trace_backward(model(mg.ones(4, 2)).sum(), names=model)
    assert set(trace.gradients) == {"weight", "bias"}
    assert trace.gradients["bias"].tolist() == [4]
    assert "linear_bias(c, weight, bias)" in capsys.readouterr().out


def test_names_are_never_given_twice():
    a, b, c = (mg.tensor(float(k), requires_grad=True) for k in range(3))
    y = a * b + c.exp()
    trace = trace_backward(y, names={"v1": a, "x1": b, "out": y}, quiet=True)
    assert set(trace.gradients) == {"v1", "x1", "x"}
    assert [step.name for step in trace.steps] == ["out", "v3", "v2"]


def test_upstream_gradients_and_arrays(capsys):
    x = mg.tensor([1.0, 2.0], requires_grad=True)
    trace_backward(x * x, mg.tensor([1.0, 10.0]))
    out = capsys.readouterr().out
    assert "mul        [1, 10]   x += [1, 20], x += [1, 20]" in out
    assert out.endswith("gradient of x: [2, 40]\n")
    w = mg.ones(3, 4, requires_grad=True)
    trace_backward(w.sum())
    assert "w" not in str(trace_backward(w.sum(), quiet=True).gradients)
    assert "gradient of x: (3, 4) float32" in capsys.readouterr().out
    with pytest.raises(ValueError, match="shape"):
        trace_backward(x * x, mg.ones(3))
    with pytest.raises(RuntimeError, match=r"\[trace_backward\] a gradient can be left out only"):
        trace_backward(x * x)


def test_a_function_with_two_outputs(capsys):
    class Two(mg.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2, x * 3

        @staticmethod
        def backward(ctx, g, h):
            return g * 2 + h * 3

    x = mg.tensor(1.0, requires_grad=True)
    a, b = Two.apply(x)
    trace = trace_backward(a * b)
    assert [(s.operation, s.expression) for s in trace.steps] == [
        ("mul", "v2 * v3"),
        ("Two[1]", "v1[1]"),
        ("Two[0]", "v1[0]"),
        ("Two", "Two(x)"),
    ]
    assert [g.item() for g in trace.steps[-1].upstream] == [3, 2]
    assert "Two        (3, 2)    x += 12" in capsys.readouterr().out


def test_hooks_of_results_are_called():
    x = mg.tensor(2.0, requires_grad=True)
    y = x * 3
    y.register_hook(lambda g: g * 10)
    trace = trace_backward(y.exp(), quiet=True)
    assert trace.gradients["x"].item() == pytest.approx(30 * np.exp(6.0))


def test_leaves_and_what_has_no_graph():
    x = mg.tensor(2.0, requires_grad=True)
    trace = trace_backward(x, quiet=True)
    assert (trace.steps, trace.gradients["x"].item()) == ([], 1)
    with pytest.raises(RuntimeError, match=r"\[trace_backward\]"):
        trace_backward(mg.tensor(2.0))
    with pytest.raises(TypeError, match="expected a Tensor or a Value, not float"):
        trace_backward(2.0)
    with pytest.raises(TypeError, match="names is list: give a dict"):
        trace_backward(x * 2, names=[x])
    y = x.exp()
    y.backward()
    with pytest.raises(RuntimeError, match="freed"):
        trace_backward(y)
