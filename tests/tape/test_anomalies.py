"""Detection of anomalies: where the first NaN or infinity is made, in forward and backward."""

from __future__ import annotations

import contextlib
import linecache
import pickle
import re
import threading
import warnings

import numpy as np
import pytest
from samples import CATALOGUE

import minigrad as mg
from minigrad import nn
from minigrad.autograd.anomaly_mode import AnomalyError, is_anomaly_enabled
from minigrad.runtime import native
from minigrad.tape.engine import topological_order
from minigrad.tape.hooks import watchers
from minigrad.tape.watching import Lines, WatchedOp


@pytest.fixture(autouse=True)
def _nothing_watches_afterwards():
    yield
    assert not watchers
    assert not native.tracers
    assert not is_anomaly_enabled()


@contextlib.contextmanager
def anomaly(operation, index, *texts, **options):
    """What is run within must make a NaN or an infinity there."""
    with mg.detect_anomaly(**options), pytest.raises(AnomalyError) as caught:
        yield
    error = caught.value
    assert (error.operation, error.index) == (operation, index)
    for text in texts:
        assert text in str(error)


def line_of(error):
    """The text of the line that an error names."""
    file, _, number = error.line.rpartition(":")
    assert file == __file__
    return linecache.getline(file, int(number)).strip()


# ---- forward -------------------------------------------------------------------------------------


def test_the_message_of_an_infinity_in_forward():
    x = mg.tensor([[4.0, 1.0], [0.0, 0.0]])
    with mg.detect_anomaly(), pytest.raises(RuntimeError) as caught:
        x.log()
    assert str(caught.value).splitlines() == [
        "[detect_anomaly] log made -inf at index (1, 0) of its result, "
        "float32 of shape (2, 2): 2 of 4 elements not finite",
        f"  at {caught.value.line}: x.log()",
        "  input 0: float32 of shape (2, 2), 0 to 4, 0 of 4 not finite",
        "  check_inf=False lets infinities pass",
    ]
    assert line_of(caught.value) == "x.log()"


MADE = {
    "quotient": (lambda: mg.zeros(2) / mg.tensor([1, 0]), "div", (1,), "nan"),
    "overflow": (lambda: mg.tensor([1e38, 1.0]) * 10, "mul", (0,), "inf"),
    "cast": (lambda: mg.tensor([1.0, 1e300], dtype=mg.float64).float(), "to", (1,), "inf"),
    "difference": (lambda: mg.full((2,), mg.inf) - mg.inf, "sub", (0,), "nan"),
    "masked row": (lambda: mg.full((1, 2), -mg.inf).softmax(1), "softmax", (0, 0), "nan"),
    "product": (lambda: mg.full((2, 2), 1e30) @ mg.full((2, 2), 1e30), "matmul", (0, 0), "inf"),
    "root": (lambda: mg.tensor(-1.0).sqrt(), "sqrt", (), "nan"),
    "not contiguous": (lambda: mg.tensor([[1.0, 2.0], [0.0, 3.0]]).T.log(), "log", (0, 1), "-inf"),
    "float64": (lambda: mg.zeros(1, dtype=mg.float64).reciprocal(), "reciprocal", (0,), "inf"),
}  # fmt: skip


@pytest.mark.parametrize("case", MADE.values(), ids=MADE)
def test_the_first_bad_element_is_found(case):
    action, operation, index, value = case
    with anomaly(operation, index, f"{operation} made {value} at index {index}"):
        action()


def test_what_is_there_already_is_not_made():
    mask = mg.tensor([0.0, -mg.inf])
    x = mg.tensor([1.0, 2.0], requires_grad=True)
    with mg.detect_anomaly():
        y = ((x + mask).softmax(0) * x).sum()
        z = x.masked_fill(mg.tensor([True, False]), -mg.inf).logsumexp(0)
        (y + z).backward()
        w = mg.full((3,), mg.inf).minimum(mg.ones(3))
    assert np.isfinite(x.grad.numpy()).all()
    assert w.tolist() == [1, 1, 1]


def test_finite_numbers_whose_sum_overflows_are_finite():
    with mg.detect_anomaly():
        mg.full((4,), 2e38) * 1


def test_a_nan_from_outside_is_a_warning_once():
    x = mg.tensor([1.0, mg.nan])
    with mg.detect_anomaly(), pytest.warns(UserWarning, match="mul was given a NaN") as told:
        (x * 2).exp()
    assert len(told) == 1
    assert "test_anomalies.py" in str(told[0].message)
    with mg.detect_anomaly():  # what takes NaN out has none
        assert mg.where(x.isnan(), 0.0, x).tolist() == [1, 0]


def test_a_nan_that_backward_is_given():
    y = mg.ones(2, requires_grad=True) * 2
    with (
        mg.detect_anomaly(),
        pytest.warns(UserWarning, match="the backward of mul was given a NaN"),
    ):
        y.backward(mg.tensor([1.0, mg.nan]))


def test_either_kind_can_pass():
    with mg.detect_anomaly(check_inf=False):
        mg.zeros(1).log()
    with mg.detect_anomaly(check_nan=False):
        mg.tensor(-1.0).sqrt()
    with anomaly("sqrt", (), check_inf=False):
        mg.tensor(-1.0).sqrt()
    with anomaly("log", (0,), check_nan=False):
        mg.zeros(1).log()


def test_a_nan_counts_before_an_infinity():
    """The element that is named is of the kind that is made."""
    with anomaly("div", (1,), "made nan"):
        mg.tensor([1.0, 0.0]) / mg.zeros(2)


def test_writes_and_steps_of_optimizers():
    x = mg.tensor([1e38])
    with anomaly("mul", (0,)):
        x *= 10
    parameter = mg.tensor([3e38], requires_grad=True)
    parameter.grad = mg.tensor([-3e38])
    optimizer = mg.optim.SGD([parameter], lr=1.0)
    with anomaly("SGD", (0,), "input 0: float32 of shape (1,), -3e+38 to -3e+38"):
        optimizer.step()


# ---- backward ------------------------------------------------------------------------------------


def test_the_message_of_a_backward():
    x = mg.tensor([4.0, 0.0], requires_grad=True)
    with mg.detect_anomaly():
        y = x.sqrt()
        with pytest.raises(AnomalyError) as caught:
            y.sum().backward()
    error = caught.value
    first, recorded, now, *ranges = str(error).splitlines()
    assert first == (
        "[detect_anomaly] the backward of sqrt made inf at index (1,) of the gradient of input 0, "
        "float32 of shape (2,): 1 of 2 elements not finite"
    )
    assert recorded == f"  recorded at {error.line}: y = x.sqrt()"
    assert re.fullmatch(r"  backward at .*test_anomalies.py:\d+: y.sum\(\).backward\(\)", now)
    assert ranges == [
        "  upstream gradient 0: float32 of shape (2,), 1 to 1, 0 of 2 not finite",
        "  saved y: float32 of shape (2,), 0 to 2, 0 of 2 not finite",
        "  check_inf=False lets infinities pass",
    ]
    assert x.grad is None  # a failure on the way changes no grad


BACKWARD = {
    "backward": lambda y, x: y.backward(),
    "several outputs": lambda y, x: mg.autograd.backward([y, y]),
    "inputs": lambda y, x: y.backward(inputs=[x]),
    "grad": lambda y, x: mg.grad(y, x),
    "create_graph": lambda y, x: mg.grad(y, x, create_graph=True),
    "in a checkpoint": lambda y, x: mg.grad(
        mg.utils.checkpoint.checkpoint(lambda t: t.sqrt().sum(), x), x
    ),
}


@pytest.mark.parametrize("run", BACKWARD.values(), ids=BACKWARD)
def test_all_ways_back_are_watched(run):
    x = mg.tensor([4.0, 0.0], requires_grad=True)
    with anomaly("sqrt", (1,), "the backward of sqrt made inf"):
        run(x.sqrt().sum(), x)


def test_a_line_before_the_context_is_not_known():
    x = mg.tensor([0.0], requires_grad=True)
    y = x.sqrt()
    with anomaly("sqrt", (0,), "recorded at a line that was not noted"):
        y.sum().backward()


def test_a_masked_partial_is_no_anomaly():
    """A zero gradient stays zero whatever the partial is, in formulas as in kernels."""
    x = mg.tensor([2.0, 0.0], requires_grad=True)
    with mg.detect_anomaly():
        y = mg.where(x > 0, x.sqrt(), 0.0).sum()
        (dx,) = mg.grad(y, x, create_graph=True)
        (d2x,) = mg.grad(dx.sum(), x)
    assert dx.tolist() == [pytest.approx(0.5 / 2**0.5), 0]
    assert d2x.tolist()[1] == 0


def test_second_derivatives_name_the_line_of_the_first_backward():
    x = mg.tensor([1e-30], requires_grad=True)
    with mg.detect_anomaly():
        (dx,) = mg.grad(x.sqrt().sum(), x, create_graph=True)
        with pytest.raises(AnomalyError) as caught:
            dx.sum().backward()
    assert line_of(caught.value).startswith("(dx,) = mg.grad(")


def test_upstream_gradients_of_all_slices_of_a_vmap():
    _, pull = mg.func.vjp(mg.sqrt, mg.tensor([1.0, 0.0]))
    with anomaly("sqrt", (1, 1), "the backward of sqrt made inf"):
        mg.vmap(pull)(mg.eye(2))


def test_gradients_that_add_up_to_an_infinity():
    x = mg.tensor([1.0], requires_grad=True)
    y = x * 1.0
    with anomaly("accumulate", (0,)):
        mg.autograd.backward([y * 2.0, y * 2.0], [mg.tensor([1.5e38]), mg.tensor([1.5e38])])


class Broken(mg.Function):
    """An operation whose derivative divides by zero outside the tape."""

    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        with np.errstate(divide="ignore"):
            return mg.tensor(g.numpy() / 0)


class BrokenInTensors(mg.Function):
    """An operation whose derivative divides by zero."""

    @staticmethod
    def forward(ctx, x, y):
        return x * 2, y * 2

    @staticmethod
    def backward(ctx, g, h):
        return g / 0, h


def test_functions_of_the_users():
    x = mg.ones(2, requires_grad=True)
    with mg.detect_anomaly(), pytest.raises(AnomalyError, match="the backward of Broken made inf"):
        Broken.apply(x).sum().backward()
    with mg.detect_anomaly(), pytest.raises(AnomalyError) as caught:
        BrokenInTensors.apply(x, x)[0].sum().backward()
    assert line_of(caught.value) == "return g / 0, h"


def test_slices_and_several_outputs_are_looked_at():
    x = mg.tensor([[0.0, 1.0], [4.0, 9.0]], requires_grad=True)
    with anomaly("sqrt", (0,), "gradient of input 0"):
        x[0].sqrt().sum().backward()
    with mg.detect_anomaly():
        first, second = x.exp().unbind(0)
        (first.sum() + (second * 2).sum()).backward()
    np.testing.assert_allclose(x.grad.numpy(), x.detach().exp().numpy() * [[1], [2]], rtol=1e-6)


def test_the_graph_is_as_it_was_afterwards():
    x = mg.ones(3, requires_grad=True)
    y = (x.exp() * 2).sum()
    nodes = topological_order([y.grad_fn])
    seen = []
    handle = y.grad_fn.register_hook(lambda inputs, outputs: seen.append(len(inputs)))
    with mg.detect_anomaly():
        y.backward(retain_graph=True)
    handle.remove()
    assert len(nodes) == 3
    assert not [node for node in nodes if type(node.op) is WatchedOp]
    y.backward()
    assert seen == [1]
    np.testing.assert_allclose(x.grad.numpy(), 4 * np.e, rtol=1e-6)


def test_a_hook_registered_in_a_watched_backward_stays():
    x = mg.ones(3, requires_grad=True)
    a = x.exp()
    b = a * 2
    seen = []
    a.grad_fn.register_prehook(lambda outputs: seen.append("before"))
    b.register_hook(lambda g: a.grad_fn.register_hook(lambda *both: seen.append("after")) and None)
    with mg.detect_anomaly():
        b.sum().backward()
    assert seen == ["before", "after"]


# ---- a training run ------------------------------------------------------------------------------


def test_a_run_gives_the_same_bits(restore_random):
    def trained(context):
        mg.manual_seed(0)
        model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.GELU(), nn.Linear(8, 3))
        optimizer = mg.optim.Adam(model.parameters(), lr=0.01)
        x, target = mg.randn(16, 4), mg.arange(16) % 3
        with context:
            for _ in range(3):
                optimizer.zero_grad()
                nn.functional.cross_entropy(model(x), target).backward()
                optimizer.step()
        return [p.detach().numpy().copy() for p in model.parameters()]

    for a, b in zip(trained(mg.detect_anomaly()), trained(contextlib.nullcontext()), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", sorted(CATALOGUE))
def test_no_operation_makes_an_anomaly_on_the_way(name):
    """Where all results and gradients are finite, so is all that is computed between."""
    for sample in CATALOGUE[name]:
        inputs = [mg.tensor(x, requires_grad=True) for x in sample.inputs()]
        given = sample.prepared(*inputs)
        if not all(np.isfinite(x.detach().numpy()).all() for x in given):
            continue  # such as nan_to_num's
        with mg.detect_anomaly():
            ys = [y for y in sample.called(*given) if isinstance(y, mg.Tensor) and y.requires_grad]
            if ys and sample.smooth:
                ones = [mg.ones_like(y) for y in ys]
                mg.grad(ys, inputs, ones, create_graph=True, allow_unused=True)


# ---- switching -----------------------------------------------------------------------------------


def test_set_detect_anomaly_switches_and_restores():
    set_detect_anomaly = mg.autograd.set_detect_anomaly
    set_detect_anomaly(True)
    try:
        assert is_anomaly_enabled()
        with pytest.raises(AnomalyError):
            mg.zeros(1).log()
        with set_detect_anomaly(False):
            assert not is_anomaly_enabled()
            mg.zeros(1).log()
        with pytest.raises(AnomalyError):
            mg.zeros(1).log()
    finally:
        set_detect_anomaly(False)
    with mg.detect_anomaly():
        mg.zeros(1).log()  # off is off
    with set_detect_anomaly(True, check_inf=False):
        mg.zeros(1).log()
    set_detect_anomaly(True)
    set_detect_anomaly(False)
    assert not is_anomaly_enabled()


@pytest.fixture(autouse=True)
def _switched_back():
    yield
    from minigrad.autograd.anomaly_mode import _switched

    _switched.to(None, False)


def test_contexts_nest_and_end_after_errors():
    for _ in range(2):
        with pytest.raises(ZeroDivisionError), mg.detect_anomaly(), mg.detect_anomaly():
            raise ZeroDivisionError
        assert not is_anomaly_enabled()
    context = mg.detect_anomaly()
    with context, context, anomaly("log", (0,)):
        mg.zeros(1).log()


def test_a_context_goes_on_after_the_error_of_one_within():
    with anomaly("log", (0,)):
        with pytest.raises(AnomalyError), mg.detect_anomaly():
            mg.zeros(1, requires_grad=True).sqrt().backward()
        mg.zeros(1).log()


def test_threads_are_watched_too():
    found = []

    def run():
        try:
            mg.zeros(1).log()
        except AnomalyError as error:
            found.append(error.operation)

    with mg.detect_anomaly():
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    assert found == ["log"]


def test_nothing_is_watched_outside():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        x = mg.zeros(1, requires_grad=True)
        (x.log() + mg.nan).sum().backward()


def test_the_error_is_pickled():
    with mg.detect_anomaly(), pytest.raises(AnomalyError) as caught:
        mg.zeros(1).log()
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.operation, again.line, again.index) == (
        str(caught.value), "log", caught.value.line, (0,)
    )  # fmt: skip


def test_empty_tensors_and_numbers():
    with mg.detect_anomaly():
        x = mg.ones(0, 3, requires_grad=True)
        (x * 2).exp().sum().backward()
        assert mg.tensor(2.0).log().item() == pytest.approx(np.log(2))


def test_lines_of_long_runs_are_bounded(monkeypatch):
    monkeypatch.setattr(Lines, "most", 8)
    x = mg.zeros(1, requires_grad=True)
    with anomaly("sqrt", (0,), "recorded at"):
        y = x.sqrt()
        for _ in range(20):
            y = y * 1
            y = y + 0
        assert y.requires_grad
        y.sum().backward()


def test_names_where_pytorch_has_them():
    assert mg.detect_anomaly is mg.autograd.detect_anomaly
    assert mg.autograd.set_detect_anomaly is mg.autograd.anomaly_mode.set_detect_anomaly
