"""``vmap`` against ``torch.func``: per-sample gradients, Jacobians, nesting and dimensions."""

from __future__ import annotations

import numpy as np
import pytest

import minigrad as mg

torch = pytest.importorskip("torch")
pytestmark = [
    pytest.mark.usefixtures("restore_random"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # of its own in forward mode
]

R = np.random.default_rng(1)
X = R.normal(size=(4, 3))
Y = R.normal(size=(4, 2))
W = R.normal(size=(2, 3))
A = R.normal(size=(2, 4, 3))


def loss(lib):
    return lambda w, x, y: (lib.tanh(w @ x) - y).square().sum()


CASES = {
    "per-sample": lambda lib: lib.func.vmap(lib.func.grad(loss(lib)), (None, 0, 0)),
    "jacobians": lambda lib: (
        lambda w, x, y: lib.func.vmap(lib.func.jacrev(lambda v: lib.tanh(w @ v)))(x)
    ),
    "hessians": lambda lib: (
        lambda w, x, y: lib.func.vmap(lib.func.hessian(lambda v: lib.tanh(w @ v).prod()))(x)
    ),
    "jvp": lambda lib: (
        lambda w, x, y: lib.func.vmap(
            lambda a, b: lib.func.jvp(lambda v: lib.tanh(w @ v), (a,), (b,))[1]
        )(x, x.sin())
    ),
    "pairs": lambda lib: (
        lambda w, x, y: lib.func.vmap(
            lambda a: lib.func.vmap(lambda b: (a * b).cumsum(0).exp().sum())(x)
        )(x)
    ),
    "last dimension": lambda lib: (
        lambda w, x, y: lib.func.vmap(
            lambda a, b: lib.sort(a).values * b.max(), in_dims=(-1, None), out_dims=-1
        )(x, y)
    ),
    "chunks": lambda lib: (
        lambda w, x, y: lib.func.vmap(lambda a, b: lib.outer(a, b), chunk_size=3, out_dims=1)(x, y)
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_results_are_those_of_torch(name):
    ours = CASES[name](mg)(*[mg.tensor(x) for x in (W, X, Y)])
    theirs = CASES[name](torch)(*[torch.tensor(x) for x in (W, X, Y)])
    np.testing.assert_allclose(ours.detach().numpy(), theirs.detach().numpy(), rtol=1e-9)


def test_a_module_by_functional_call():
    layers = [torch.nn.Linear(3, 5), torch.nn.ReLU(), torch.nn.Linear(5, 2)]
    theirs = torch.nn.Sequential(*layers).double()
    ours = mg.nn.Sequential(mg.nn.Linear(3, 5), mg.nn.ReLU(), mg.nn.Linear(5, 2)).double()
    state = {name: mg.tensor(p.detach().numpy()) for name, p in theirs.state_dict().items()}
    targets = np.array([0, 1, 1, 0])

    def gradients(lib, model, params, x, t):
        def loss(params, x, t):
            scores = lib.func.functional_call(model, params, (x,))
            return lib.nn.functional.cross_entropy(scores[None], t[None])

        return lib.func.vmap(lib.func.grad(loss), (None, 0, 0))(params, x, t)

    found = gradients(mg, ours, state, mg.tensor(X), mg.tensor(targets))
    params = {name: p.detach() for name, p in theirs.named_parameters()}
    want = gradients(torch, theirs, params, torch.tensor(X), torch.tensor(targets))
    for name, each in want.items():
        np.testing.assert_allclose(found[name].numpy(), each.numpy(), rtol=1e-9)
