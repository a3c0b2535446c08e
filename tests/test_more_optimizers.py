"""Optimizers in tensor operations, LBFGS and averaged models: against formulas and PyTorch."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import minigrad as mg
from minigrad import optim

SHAPES = [(3,), (2, 3), (), (4, 1, 3), (0,), (5, 2)]
STEPS = 100


def _combinations(**options):
    """All combinations, or where these are many each value with the first of the others."""
    values = [dict(zip(options, v, strict=True)) for v in itertools.product(*options.values())]
    if len(values) <= 16:
        return values
    first = {k: v[0] for k, v in options.items()}
    last = {k: v[-1] for k, v in options.items()}
    return [first, last, *({**first, k: v} for k, some in options.items() for v in some[1:])]


BETAS = [(0.9, 0.999), (0.5, 0.7)]
DECAY = [0.0, 0.1]
EITHER = [False, True]
OPTIONS = {
    "Adagrad": _combinations(
        lr_decay=[0.0, 0.1],
        weight_decay=DECAY,
        initial_accumulator_value=[0.0, 0.5],
        eps=[1e-10, 1e-3],
        maximize=EITHER,
    ),
    "Adadelta": _combinations(
        rho=[0.9, 0.5], eps=[1e-6, 1e-3], weight_decay=DECAY, maximize=EITHER
    ),
    "Adafactor": _combinations(
        beta2_decay=[-0.8, -0.3],
        eps=[(None, 1e-3), (1e-2, 0.5)],
        d=[1.0, 2.0],
        weight_decay=DECAY,
        maximize=EITHER,
    ),
    "Adamax": _combinations(betas=BETAS, eps=[1e-8, 1e-2], weight_decay=DECAY, maximize=EITHER),
    "ASGD": _combinations(
        lambd=[1e-4, 0.1], alpha=[0.75, 0.5], t0=[1e6, 10], weight_decay=DECAY, maximize=EITHER
    ),
    "NAdam": _combinations(
        betas=BETAS,
        momentum_decay=[4e-3, 0.1],
        weight_decay=DECAY,
        decoupled_weight_decay=EITHER,
        maximize=EITHER,
    ),
    "RAdam": _combinations(
        betas=BETAS, weight_decay=DECAY, decoupled_weight_decay=EITHER, maximize=EITHER
    ),
    "Rprop": _combinations(etas=[(0.5, 1.2), (0.3, 1.5)], step_sizes=[(1e-6, 50), (1e-3, 0.05)]),
}
CASES = [(name, options) for name, some in OPTIONS.items() for options in some]


def _values(shape, seed):
    return np.random.default_rng(seed).standard_normal(shape)


def _gradients(steps, dtype):
    """For each step one gradient of each shape; now and then none."""
    return [
        [
            None if (step + k) % 7 == 6 else _values(shape, 100 * step + k).astype(dtype)
            for k, shape in enumerate(SHAPES)
        ]
        for step in range(steps)
    ]


def _run(make, tensor, params, gradients):
    """Make the steps, and the values after each."""
    optimizer = make(params)
    for some in gradients:
        for p, g in zip(params, some, strict=True):
            p.grad = None if g is None else tensor(g)
        optimizer.step()
    return optimizer


def _tensors(module, values):
    return [module.tensor(v, requires_grad=True) for v in values]


def _close(ours, theirs, tolerance):
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(
            a.detach().numpy(), b.detach().numpy(), rtol=tolerance, atol=tolerance
        )


@pytest.fixture(name="torch_in")
def _torch_in():
    """PyTorch with a default dtype, which the numbers in its states have."""
    torch = pytest.importorskip("torch")
    before = torch.get_default_dtype()

    def chosen(dtype):
        torch.set_default_dtype(getattr(torch, dtype))
        return torch

    yield chosen
    torch.set_default_dtype(before)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("name", "options"), CASES)
def test_hundred_steps_are_pytorchs(torch_in, name, options, dtype):
    torch = torch_in(dtype)
    start = [_values(shape, k).astype(dtype) for k, shape in enumerate(SHAPES)]
    used = [k for k, v in enumerate(start) if v.size or name != "Adafactor"]  # it divides by 0
    start = [start[k] for k in used]
    gradients = [[some[k] for k in used] for some in _gradients(STEPS, dtype)]
    theirs, ours = _tensors(torch, start), _tensors(mg, start)
    for module, params in ((torch, theirs), (mg, ours)):
        _run(
            lambda p, m=module: getattr(m.optim, name)(p, lr=0.05, **options),
            module.tensor,
            params,
            gradients,
        )
    _close(ours, theirs, 1e-5 if dtype == "float32" else 1e-12)


# ---- Muon and SparseAdam -------------------------------------------------------------------------


@pytest.mark.parametrize("adjust_lr_fn", [None, "original", "match_rms_adamw"])
@pytest.mark.parametrize("nesterov", EITHER)
def test_muon_is_pytorchs_but_for_bfloat16(torch_in, monkeypatch, nesterov, adjust_lr_fn):
    torch = torch_in("float64")
    monkeypatch.setattr(torch.Tensor, "bfloat16", torch.Tensor.clone)
    shapes = [(3, 4), (5, 2), (1, 1), (6, 6)]
    start = [_values(shape, k) for k, shape in enumerate(shapes)]
    gradients = [[_values(s, 9 * step + k) for k, s in enumerate(shapes)] for step in range(STEPS)]
    theirs, ours = _tensors(torch, start), _tensors(mg, start)
    for module, params in ((torch, theirs), (mg, ours)):
        _run(
            lambda p, m=module: m.optim.Muon(p, 0.05, nesterov=nesterov, adjust_lr_fn=adjust_lr_fn),
            module.tensor,
            params,
            gradients,
        )
    _close(ours, theirs, 1e-9)


def test_sparse_adam_is_pytorchs_with_sparse_gradients(torch_in):
    torch = torch_in("float64")
    (theirs,), (ours,) = _tensors(torch, [_values((6, 3), 0)]), _tensors(mg, [_values((6, 3), 0)])
    their_optimizer = torch.optim.SparseAdam([theirs], lr=0.1)
    our_optimizer = optim.SparseAdam([ours], lr=0.1)
    for step in range(STEPS):
        g = _values((6, 3), step + 1)
        g[[step % 6, (step * step) % 6]] = 0
        theirs.grad = torch.tensor(g).to_sparse(1)
        ours.grad = mg.tensor(g)
        their_optimizer.step()
        our_optimizer.step()
    _close([ours], [theirs], 1e-12)


# ---- LBFGS ---------------------------------------------------------------------------------------


def _rosenbrock(x, y):
    return ((1 - x[:-1]) ** 2 + 100 * (x[1:] - x[:-1] ** 2) ** 2).sum() + (y[0] - x[0]) ** 2


def _minimize(module, steps, function=_rosenbrock, dtype="float64", **options):
    """The values after each step, the number of calls and the optimizer."""
    params = _tensors(module, [np.array([-1.2, 1.0, 0.5], dtype), np.array([[0.3]], dtype)])
    optimizer = module.optim.LBFGS(params, **options)
    trace, calls = [], []

    def closure():
        calls.append(1)
        optimizer.zero_grad()
        loss = function(params[0], params[1][0])
        loss.backward()
        return loss

    for _ in range(steps):
        loss = optimizer.step(closure)
        trace.append([*params[0].tolist(), *params[1][0].tolist(), loss.item()])
    return np.array(trace), len(calls), optimizer


LBFGS_OPTIONS = [
    {"line_search_fn": "strong_wolfe"},
    {"line_search_fn": "strong_wolfe", "max_eval": 4},
    {"line_search_fn": "strong_wolfe", "max_iter": 4, "history_size": 2},
    {"line_search_fn": "strong_wolfe", "max_iter": 1},
    {"line_search_fn": "strong_wolfe", "lr": 0.3, "max_iter": 100},
    {"lr": 0.01, "max_iter": 5, "history_size": 3},
    {"lr": 0.1},
]


@pytest.mark.parametrize("options", LBFGS_OPTIONS)
def test_lbfgs_goes_the_way_of_pytorchs(torch_in, options):
    theirs, their_calls, _ = _minimize(torch_in("float64"), 15, **options)
    ours, our_calls, _ = _minimize(mg, 15, **options)
    assert our_calls == their_calls
    np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


def test_lbfgs_finds_the_minimum_of_rosenbrocks_function():
    trace, _, _ = _minimize(
        mg,
        1,
        max_iter=200,
        tolerance_grad=1e-12,
        tolerance_change=1e-16,
        line_search_fn="strong_wolfe",
    )
    np.testing.assert_allclose(trace[-1][:4], 1.0, rtol=0, atol=1e-8)


def test_lbfgs_without_a_line_search_solves_a_quadratic():
    def quadratic(x, y):
        return ((x - mg.tensor([1.0, 2.0, 3.0])) ** 2 * mg.tensor([1.0, 3.0, 0.5])).sum() + y[
            0
        ] ** 2

    trace, _, _ = _minimize(mg, 3, quadratic, max_iter=30)
    np.testing.assert_allclose(trace[-1][:4], [1, 2, 3, 0], rtol=0, atol=1e-5)
