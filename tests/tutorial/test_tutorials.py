"""The facts of the classic tutorials, in every spelling that applies: Tensor, Value, Variable."""

from __future__ import annotations

import copy
import math
import pickle

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn, optim
from minigrad.tutorial.scalar import MLP, Layer, Neuron, Value
from minigrad.tutorial.variable import Variable

SPELLINGS = {
    "Tensor": lambda data: mg.tensor(data, dtype=mg.float64, requires_grad=True),
    "Value": Value,
    "Variable": lambda data: Variable(data, dtype=mg.float64),
}


@pytest.fixture(params=SPELLINGS)
def make(request):
    """Makes a number that tracks."""
    return SPELLINGS[request.param]


@pytest.fixture(params=[name for name in SPELLINGS if name != "Value"])
def make_array(request):
    """Makes an array that tracks."""
    return SPELLINGS[request.param]


def number(x):
    """The number in a result, in any spelling."""
    return x.data if isinstance(x, Value) else x.item()


def slope(x):
    """Its gradient."""
    return x.grad if isinstance(x, Value) else x.grad.item()


# ---- numbers -------------------------------------------------------------------------------------


def test_a_parabola(make):
    x = make(2.0)
    y = x**2 + 3 * x
    y.backward()
    assert number(y) == 10
    assert slope(x) == 7


def test_a_product_and_a_sum(make):
    x, y, z = make(2.0), make(-3.0), make(10.0)
    f = x * y + z
    f.backward()
    assert number(f) == 4
    assert [slope(v) for v in (x, y, z)] == [-3, 2, 1]


def test_two_paths_from_one_input(make):
    a, b, c, d = make(2.0), make(3.0), make(4.0), make(5.0)
    loss = ((a * b) + c) * (a + d)
    loss.backward()
    assert number(loss) == 70
    assert [slope(v) for v in (a, b, c, d)] == [31, 14, 7, 10]


def test_a_square_of_a_sum(make):
    a, b, c = make(2.0), make(3.0), make(1.0)
    loss = (a * b + c) ** 2
    loss.backward()
    assert number(loss) == 49
    assert [slope(v) for v in (a, b, c)] == [42, 28, 14]


def test_one_input_used_twice(make):
    a = make(3.0)
    (a * a).backward()
    assert slope(a) == 6
    a = make(3.0)
    (a * a + a).backward()
    assert slope(a) == 7


def test_tanh(make):
    x = make(0.5)
    y = x.tanh()
    y.backward()
    assert round(number(y), 4) == 0.4621
    assert round(slope(x), 4) == 0.7864


def test_gradients_add_up_over_backwards(make):
    x = make(3.0)
    for _ in range(2):
        (x * x).backward()
    assert slope(x) == 12


def test_numbers_on_either_side(make):
    x = make(2.0)
    y = 1 + x + 2 - (3 - x) + 4 * x * 5 + x / 2 + 6 / x + 2**x - -x
    y.backward()
    assert number(y) == pytest.approx(3 + 2 - 1 + 40 + 1 + 3 + 4 + 2)
    assert slope(x) == pytest.approx(1 + 1 + 20 + 0.5 - 1.5 + 4 * math.log(2) + 1)


# ---- arrays --------------------------------------------------------------------------------------


def test_products_of_vectors(make_array):
    a, b, w = make_array([2.0, 3.0]), make_array([4.0, 5.0]), make_array([3.0, 2.0])
    d = a * b * w
    d.sum().backward()
    assert a.grad.tolist() == [12, 10]
    assert b.grad.tolist() == [6, 6]
    assert w.grad.tolist() == [8, 15]


@pytest.mark.parametrize("update", ["optimizer", "by hand"])
def test_linear_regression(make_array, rng, update):
    x = mg.tensor(rng.uniform(-1, 1, (100, 1)))
    target = 3 * x + 2
    w, b = make_array([[0.0]]), make_array([0.0])
    optimizer = optim.SGD([w, b], lr=0.1)
    for _ in range(300):
        loss = nn.functional.mse_loss(x @ w + b, target)
        optimizer.zero_grad()
        loss.backward()
        if update == "optimizer":
            optimizer.step()
        else:
            with mg.no_grad():
                w -= 0.1 * w.grad
                b -= 0.1 * b.grad
    assert loss.item() < 1e-6
    assert w.item() == pytest.approx(3, abs=1e-2)
    assert b.item() == pytest.approx(2, abs=1e-2)


def test_linear_regression_one_sample_at_a_time(make, rng):
    w, b = make(0.0), make(0.0)
    for _ in range(5):
        for x in rng.uniform(-1, 1, 100):
            w.grad = b.grad = 0.0 if isinstance(w, Value) else None
            loss = (w * x + b - (3 * x + 2)) ** 2
            loss.backward()
            if isinstance(w, mg.Tensor):
                with mg.no_grad():
                    w -= 0.1 * w.grad
                    b -= 0.1 * b.grad
            else:
                w.data -= 0.1 * w.grad
                b.data -= 0.1 * b.grad
    assert number(w) == pytest.approx(3, abs=1e-3)
    assert number(b) == pytest.approx(2, abs=1e-3)


# ---- the network of 41 numbers -------------------------------------------------------------------

INPUTS = [[2.0, 3.0, -1.0], [3.0, -1.0, 0.5], [0.5, 1.0, 1.0], [1.0, 1.0, -1.0]]
TARGETS = [1.0, -1.0, -1.0, 1.0]


@pytest.mark.usefixtures("restore_random")
def test_an_mlp_of_values_learns_four_samples():
    mg.manual_seed(1337)
    net = MLP(3, [4, 4, 1])
    assert len(net.parameters()) == 41
    for _ in range(150):
        loss = sum((net(x) - t) ** 2 for x, t in zip(INPUTS, TARGETS, strict=True))
        net.zero_grad()
        assert all(p.grad == 0.0 for p in net.parameters())
        loss.backward()
        for p in net.parameters():
            p.data -= 0.1 * p.grad
    assert loss.data < 0.01


@pytest.mark.usefixtures("restore_random")
@pytest.mark.parametrize("kind", [mg.tensor, lambda data: Variable(data, requires_grad=False)])
def test_an_mlp_of_tensors_learns_four_samples(kind):
    mg.manual_seed(0)
    net = nn.Sequential(
        nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1), nn.Tanh()
    )
    assert sum(p.size for p in net.parameters()) == 41
    x, t = kind(INPUTS), kind(TARGETS)
    optimizer = optim.SGD(net.parameters(), lr=0.1)
    for _ in range(500):
        loss = nn.functional.mse_loss(net(x).squeeze(1), t, reduction="sum")
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loss.item() < 0.01


@pytest.mark.usefixtures("restore_random")
def test_neurons_are_made_of_layers_of_numbers():
    neuron, layer = Neuron(2), Layer(2, 3)
    assert len(neuron.parameters()) == 3
    assert all(-1 <= w.data <= 1 for w in neuron.w)
    assert neuron.b.data == 0.0
    x = [0.5, Value(-1.0)]
    total = neuron.w[0].data * 0.5 - neuron.w[1].data
    assert neuron(x).data == pytest.approx(math.tanh(total))
    assert len(layer(x)) == 3
    assert len(layer.parameters()) == 9
    with pytest.raises(ValueError, match="3 inputs for 2 weights"):
        neuron([1.0, 2.0, 3.0])
    assert repr(MLP(2, [1])) == "MLP of [Layer of [Neuron(2)]]"


# ---- Value ---------------------------------------------------------------------------------------


def test_a_value_holds_floats():
    x = Value(3)
    assert type(x.data) is float
    assert type(x.grad) is float
    assert x.grad == 0.0
    assert repr(x) == "Value(data=3.0, grad=0.0)"
    x.data = 5
    x.grad += 2
    assert (x.data, x.grad, float(x)) == (5.0, 2.0, 5.0)


def test_results_have_gradients_too():
    a, b = Value(2.0), Value(3.0)
    c = a * b
    y = c + a
    y.backward()
    assert (y.grad, c.grad, a.grad, b.grad) == (1.0, 1.0, 4.0, 2.0)


def test_a_value_can_go_backward_again():
    x = Value(3.0)
    y = x * x
    y.backward()
    y.backward()
    assert x.grad == 12.0


@pytest.mark.parametrize(
    ("name", "y", "dy"),
    [
        ("tanh", math.tanh(0.7), 1 - math.tanh(0.7) ** 2),
        ("exp", math.exp(0.7), math.exp(0.7)),
        ("log", math.log(0.7), 1 / 0.7),
        ("relu", 0.7, 1.0),
    ],
)
def test_functions_of_a_value(name, y, dy):
    x = Value(0.7)
    result = getattr(x, name)()
    result.backward()
    assert result.data == pytest.approx(y, rel=1e-15)
    assert x.grad == pytest.approx(dy, rel=1e-14)


def test_relu_of_a_negative_value_passes_nothing():
    x = Value(-1.0)
    x.relu().backward()
    assert x.grad == 0.0


def test_a_value_is_made_from_a_number_only():
    for wrong in ("1", None, [1.0], Value(1.0)):
        with pytest.raises(TypeError, match="number"):
            Value(wrong)
    with pytest.raises(TypeError):
        Value(1.0) + "1"
    assert (np.float32(2.0) * Value(3.0)).data == 6.0


# ---- Variable ------------------------------------------------------------------------------------


def test_a_variable_tracks_by_default():
    x = Variable(2)
    assert x.requires_grad
    assert x.dtype is mg.float32
    assert x.creator is None
    assert isinstance(x, mg.Tensor)
    fixed = Variable([1, 2], requires_grad=False)
    assert fixed.dtype is mg.int64
    assert not fixed.requires_grad


def test_results_are_variables_with_a_creator():
    x = Variable([[1.0, 2.0], [3.0, 4.0]])
    for result in (x + 1, 1 - x, x @ x, x.exp(), x.sum(), x[0], x.T.reshape(4), x.detach(), -x):
        assert isinstance(result, Variable)
    values, indices = x.max(dim=1)
    assert isinstance(values, Variable)
    assert isinstance(indices, Variable)
    assert (x * x).creator.name() == "mul"
    assert x.detach().creator is None
    assert mg.exp(x).grad_fn.name() == "exp"  # a plain tensor in the same graph


def test_a_variables_data_is_its_memory_outside_the_graph():
    x = Variable([1.0, 2.0])
    (x * x).sum().backward()
    assert isinstance(x.grad, Variable)
    x.data -= 0.5 * x.grad.data
    assert x.tolist() == [0.0, 0.0]
    assert x.is_leaf
    assert x.requires_grad
    x.data = [5.0, 6.0]
    assert x.tolist() == [5.0, 6.0]
    x.grad = None
    (x * x).sum().backward()
    assert x.grad.tolist() == [10.0, 12.0]


def test_a_variable_keeps_its_kind_when_copied():
    x = Variable([1.0, 2.0])
    (x * x).sum().backward()
    first, second = copy.deepcopy([x, x])
    assert first is second
    assert first.grad.tolist() == [2.0, 4.0]
    x += 1.0
    assert x.creator.name() == "add"
    leaf = Variable([1.0])
    for other in (copy.deepcopy(leaf), pickle.loads(pickle.dumps(leaf))):
        assert isinstance(other, Variable)
        assert other.requires_grad
        assert other.tolist() == [1.0]
    assert repr(leaf) == "Variable([1.], requires_grad=True)"


def test_variables_are_trained_by_layers_and_optimizers():
    w = Variable([[1.0, 1.0]])
    optimizer = optim.SGD([w], lr=0.1)
    nn.functional.linear(Variable([[1.0, 2.0]], requires_grad=False), w).sum().backward()
    optimizer.step()
    np.testing.assert_allclose(w.tolist(), [[0.9, 0.8]], rtol=1e-6)
