"""Recurrent layers in ``vmap``: slices that share the weights are sequences of one batch."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import minigrad as mg
from minigrad import func

pytestmark = pytest.mark.usefixtures("restore_random")
LAYERS = {
    "lstm": (mg.nn.LSTM, {}),
    "lstm-projected": (mg.nn.LSTM, {"proj_size": 2}),
    "gru": (mg.nn.GRU, {}),
    "gru-both-ways": (mg.nn.GRU, {"bidirectional": True, "num_layers": 2}),
    "tanh": (mg.nn.RNN, {}),
    "relu": (mg.nn.RNN, {"nonlinearity": "relu"}),
}
X = mg.tensor(np.random.default_rng(0).normal(size=(4, 5, 2, 3)))


@pytest.fixture(params=LAYERS)
def run(request):
    """All results of a layer, in one flat tensor."""
    mg.manual_seed(0)
    cls, options = LAYERS[request.param]
    layer = cls(3, 4, dtype=mg.float64, **options)

    def results(x):
        y, states = layer(x)
        states = states if isinstance(states, tuple) else (states,)
        return mg.cat([one.flatten() for one in (y, *states)])

    results.layer = layer
    return results


def near(got, want):
    assert got.shape == want.shape
    np.testing.assert_allclose(got.detach().numpy(), want.detach().numpy(), rtol=1e-9, atol=1e-12)


def by_loop(function, xs):
    return mg.stack([function(x) for x in xs])


def test_values_and_derivatives_by_the_input(run):
    def loss(x):
        return run(x).square().sum()

    near(mg.vmap(run)(X), by_loop(run, X))
    near(mg.vmap(func.grad(loss))(X), by_loop(func.grad(loss), X))
    small = X[:2, :2, :1]
    near(mg.vmap(func.hessian(loss))(small), by_loop(func.hessian(loss), small))
    near(mg.vmap(mg.vmap(loss))(mg.stack([X, 2 * X]))[1], by_loop(loss, 2 * X))
    near(mg.vmap(run, 2)(X.movedim(0, 2)), by_loop(run, X))


def test_gradients_of_shared_weights(run):
    weights = list(run.layer.parameters())
    together = mg.grad(mg.vmap(run)(X).square().sum(), weights)
    alone = mg.grad(by_loop(run, X).square().sum(), weights)
    for got, want in zip(together, alone, strict=True):
        near(got, want)


def test_a_batch_runs_the_kernels_of_one_slice(run):
    def counted(x):
        with mg.profiler.profile() as found, mg.no_grad():
            mg.vmap(run)(x)
        return len(found.events)

    assert counted(X) == counted(mg.cat([X, X]))


def test_weights_of_each_slice_take_a_loop(run):
    parameters = {name: p.detach() for name, p in run.layer.named_parameters()}

    def loss(p, x):
        y, _ = func.functional_call(run.layer, p, (x,))
        return y.square().sum()

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"\[vmap\] .*_steps has no batching rule")
        found = mg.vmap(func.grad(loss), (None, 0))(parameters, X)
    for name, got in found.items():
        near(got, by_loop(lambda x, name=name: func.grad(loss)(parameters, x)[name], X))
