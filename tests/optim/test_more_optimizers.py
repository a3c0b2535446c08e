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


def test_lbfgs_needs_a_closure_and_one_group():
    x, y = _tensors(mg, [[1.0], [2.0]])
    with pytest.raises(TypeError, match=r"^\[LBFGS\] step needs a function that computes the loss"):
        optim.LBFGS([x]).step()
    with pytest.raises(TypeError, match=r"^\[LBFGS\] the closure returned NoneType, but must retu"):
        optim.LBFGS([x]).step(lambda: None)
    with pytest.raises(ValueError, match=r"^\[LBFGS\] there can be one group of parameters only"):
        optim.LBFGS([{"params": [x]}, {"params": [y]}])


@pytest.mark.parametrize("options", LBFGS_OPTIONS[::6])
def test_lbfgs_moves_nothing_when_the_closure_fails(options):
    (x,) = _tensors(mg, [[-1.2, 1.0]])
    optimizer = optim.LBFGS([x], **options)
    calls = []

    def closure():
        calls.append(1)
        if len(calls) == 4:
            raise KeyboardInterrupt
        optimizer.zero_grad()
        loss = (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2
        loss.backward()
        return loss

    with pytest.raises(KeyboardInterrupt):
        optimizer.step(closure)
    assert x.tolist() == pytest.approx([-1.2, 1.0])
    assert not optimizer.state
    optimizer.step(closure)
    assert optimizer.state[x]["func_evals"] == len(calls) - 4


def test_lbfgs_goes_on_from_its_state(tmp_path):
    whole, _, _ = _minimize(mg, 4, max_iter=4, line_search_fn="strong_wolfe")
    first, _, optimizer = _minimize(mg, 2, max_iter=4, line_search_fn="strong_wolfe")
    mg.save(optimizer.state_dict(), tmp_path / "state")
    params = _tensors(mg, [first[-1][:3], first[-1][3:4]])
    second = optim.LBFGS(params)
    second.load_state_dict(mg.load(tmp_path / "state"))

    def closure():
        second.zero_grad()
        loss = _rosenbrock(*params)
        loss.backward()
        return loss

    for _ in range(2):
        second.step(closure)
    np.testing.assert_array_equal(params[0].tolist(), whole[-1][:3])
    good = optimizer.state_dict()
    for key, value, message in (
        ("d", mg.zeros(3), "the state 'd' of parameter 0 is no tensor of shape"),
        ("ro", [], "the state of parameter 0 has histories of"),
        ("old_dirs", 3, "the state of parameter 0 has old_dirs, old_stps, ro as lists"),
        ("t", "x", "the state 't' of parameter 0 is a str, but must be a number"),
        ("t", None, "the state of parameter 0 lacks t"),
        ("n_iter", 0.5, "the state 'n_iter' of parameter 0 is 0.5, but must be a whole number"),
    ):
        bad = {**good, "state": {0: {**good["state"][0], key: value}}}
        with pytest.raises((TypeError, ValueError)) as caught:
            second.load_state_dict(bad)
        assert str(caught.value).startswith(f"[LBFGS] {message}")


def test_lbfgs_takes_pytorchs_state(torch_in):
    torch = torch_in("float64")
    _, _, theirs = _minimize(torch, 3, max_iter=4, line_search_fn="strong_wolfe")
    params = _tensors(mg, [np.zeros(3), np.zeros((1, 1))])
    ours = optim.LBFGS(params)
    ours.load_state_dict(theirs.state_dict())
    held = ours.state[params[0]]
    assert (held["n_iter"], "al" in held) == (12, False)
    np.testing.assert_array_equal(held["d"].tolist(), theirs.state_dict()["state"][0]["d"].tolist())


def test_lbfgs_with_nothing_to_move():
    x, y = _tensors(mg, [np.zeros((0, 2)), [1.0]])
    assert optim.LBFGS([x]).step(lambda: mg.tensor(2.0)).item() == 2.0
    optim.LBFGS([x, y]).step(lambda: (y * 0).sum())  # no gradients at all
    assert y.tolist() == [1.0]


# ---- the first two steps by hand -----------------------------------------------------------------


def _by_adagrad(p, g, s, t):
    s["sum"] = s.get("sum", 0.25) + g * g
    return p - 0.1 / (1 + (t - 1) * 0.5) * g / (np.sqrt(s["sum"]) + 1e-10)


def _by_adadelta(p, g, s, t):
    s["v"] = 0.9 * s.get("v", 0) + 0.1 * g * g
    step = np.sqrt(s.get("d", 0) + 1e-6) / np.sqrt(s["v"] + 1e-6) * g
    s["d"] = 0.9 * s.get("d", 0) + 0.1 * step * step
    return p - 0.1 * step


def _by_adafactor(p, g, s, t):
    share = t**-0.8
    rms = np.sqrt(np.mean(p * p))
    s["row"] = (1 - share) * s.get("row", 0) + share * np.mean(g * g, axis=-1, keepdims=True)
    s["col"] = (1 - share) * s.get("col", 0) + share * np.mean(g * g, axis=-2, keepdims=True)
    step = g / np.sqrt(s["row"] @ s["col"] / np.mean(s["row"], axis=-2, keepdims=True))
    step = step / max(1, np.sqrt(np.mean(step * step)))
    return p - max(1e-3, rms) * min(0.1, t**-0.5) * step


def _by_adamax(p, g, s, t):
    s["m"] = 0.9 * s.get("m", 0) + 0.1 * g
    s["u"] = np.maximum(0.999 * s.get("u", 0), np.abs(g) + 1e-8)
    return p - 0.1 / (1 - 0.9**t) * s["m"] / s["u"]


def _by_asgd(p, g, s, t):
    eta = 0.1 / (1 + 0.5 * 0.1 * (t - 1)) ** 0.75
    return p - eta * (0.5 * p + g)


def _moments(g, s):
    s["m"] = 0.9 * s.get("m", 0) + 0.1 * g
    s["v"] = 0.999 * s.get("v", 0) + 0.001 * g * g
    return s["m"], s["v"]


def _by_nadam(p, g, s, t):
    m, v = _moments(g, s)
    now, after = (0.9 * (1 - 0.5 * 0.96 ** (k * 0.004)) for k in (t, t + 1))
    s["product"] = s.get("product", 1) * now
    mean = after * m / (1 - s["product"] * after) + (1 - now) * g / (1 - s["product"])
    return p - 0.1 * mean / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)


def _by_radam(p, g, s, t):
    m, _ = _moments(g, s)
    return p - 0.1 * m / (1 - 0.9**t)  # not rectified before the sixth step


def _by_sparse_adam(p, g, s, t):
    m, v = _moments(g, s)
    return p - 0.1 * np.sqrt(1 - 0.999**t) / (1 - 0.9**t) * m / (np.sqrt(v) + 1e-8)


def _by_lion(p, g, s, t):
    m = s.get("m", 0)
    s["m"] = 0.99 * m + 0.01 * g
    return p * (1 - 0.1 * 0.2) - 0.1 * np.sign(0.9 * m + 0.1 * g)


def _by_rprop(p, g, s, t):
    turned = s.get("g", 0) * g
    s["size"] = s.get("size", 0.1) * np.select([turned > 0, turned < 0], [1.2, 0.5], 1.0)
    s["g"] = np.where(turned < 0, 0, g)
    return p - s["size"] * np.sign(s["g"])


def _by_muon(p, g, s, t):
    s["m"] = 0.95 * s.get("m", 0) + 0.05 * g
    x = 0.05 * g + 0.95 * s["m"]
    x = x / np.linalg.norm(x)
    for _ in range(5):
        gram = x @ x.T
        x = 3.4445 * x - 4.775 * gram @ x + 2.0315 * gram @ gram @ x
    rows, columns = p.shape
    return p * (1 - 0.1 * 0.1) - 0.1 * np.sqrt(max(1, rows / columns)) * x


BY_HAND = {
    "Adagrad": (_by_adagrad, {"initial_accumulator_value": 0.25, "lr_decay": 0.5}),
    "Adadelta": (_by_adadelta, {}),
    "Adafactor": (_by_adafactor, {}),
    "Adamax": (_by_adamax, {}),
    "ASGD": (_by_asgd, {"lambd": 0.5}),
    "NAdam": (_by_nadam, {}),
    "RAdam": (_by_radam, {}),
    "SparseAdam": (_by_sparse_adam, {}),
    "Lion": (_by_lion, {"weight_decay": 0.2}),
    "Rprop": (_by_rprop, {}),
    "Muon": (_by_muon, {}),
}


@pytest.mark.parametrize("maximize", EITHER)
@pytest.mark.parametrize("name", BY_HAND)
def test_first_steps_by_hand(name, maximize):
    formula, options = BY_HAND[name]
    start = _values((4, 3), 0)
    (p,) = _tensors(mg, [start])
    optimizer = getattr(optim, name)([p], lr=0.1, maximize=maximize, **options)
    state, want = {}, start
    for step in (1, 2, 3):
        g = _values((4, 3), step)
        p.grad = mg.tensor(g)
        optimizer.step()
        want = formula(want, -g if maximize else g, state, step)
        np.testing.assert_allclose(p.detach().numpy(), want, rtol=1e-7, atol=1e-9)


# ---- what all have in common ---------------------------------------------------------------------

METHODS = [*BY_HAND, "SGD", "Adam", "AdamW", "RMSprop"]


def _matrices(count=3):
    return _tensors(mg, [_values((2, 2), k) for k in range(count)])


def _step(optimizer, params, seed):
    for k, p in enumerate(params):
        p.grad = mg.tensor(_values((2, 2), 50 * seed + k))
    optimizer.step()


@pytest.mark.parametrize("name", BY_HAND)
def test_a_run_goes_on_from_a_saved_state(name, tmp_path):
    make = getattr(optim, name)
    whole, first = _matrices(), _matrices()
    optimizer = make([{"params": whole[:2]}, {"params": whole[2:], "lr": 0.02}], lr=0.1)
    for seed in range(8):
        _step(optimizer, whole, seed)
    optimizer = make([{"params": first[:2]}, {"params": first[2:], "lr": 0.02}], lr=0.1)
    for seed in range(4):
        _step(optimizer, first, seed)
    mg.save(optimizer.state_dict(), tmp_path / "state")
    second = [mg.tensor(p.detach(), requires_grad=True) for p in first]
    optimizer = make([{"params": second[:2]}, {"params": second[2:]}])
    optimizer.load_state_dict(mg.load(tmp_path / "state"))
    for seed in range(4, 8):
        _step(optimizer, second, seed)
    for a, b in zip(whole, second, strict=True):
        np.testing.assert_array_equal(a.tolist(), b.tolist())


@pytest.mark.parametrize("name", [n for n in BY_HAND if n not in ("Lion", "SparseAdam")])
def test_a_run_goes_on_from_pytorchs_state(torch_in, monkeypatch, name):
    torch = torch_in("float64")
    monkeypatch.setattr(torch.Tensor, "bfloat16", torch.Tensor.clone)  # for Muon
    theirs, ours = _tensors(torch, [_values((2, 2), 0)]), _tensors(mg, [_values((2, 2), 0)])
    optimizer = getattr(torch.optim, name)(theirs, lr=0.1)
    gradients = [[_values((2, 2), k)] for k in range(8)]
    _run(lambda _: optimizer, torch.tensor, theirs, gradients[:4])
    taken = getattr(optim, name)(ours)
    taken.load_state_dict(optimizer.state_dict())
    with mg.no_grad():
        ours[0].copy_(mg.tensor(theirs[0].detach().numpy()))
    _run(lambda _: optimizer, torch.tensor, theirs, gradients[4:])
    _run(lambda _: taken, mg.tensor, ours, gradients[4:])
    _close(ours, theirs, 1e-9 if name == "Muon" else 1e-12)


@pytest.mark.parametrize("name", BY_HAND)
def test_a_step_moves_all_parameters_or_none(name):
    params = _matrices()
    optimizer = getattr(optim, name)([{"params": params[:1]}, {"params": params[1:]}], lr=0.1)
    _step(optimizer, params, 0)
    before = [p.tolist() for p in params]
    kept = {p: dict(state) for p, state in optimizer.state.items()}
    entry = next(key for key, value in kept[params[2]].items() if isinstance(value, mg.Tensor))
    optimizer.state[params[2]][entry] = mg.zeros(7)
    with pytest.raises((TypeError, ValueError), match=rf"^\[{name}\]"):
        _step(optimizer, params, 1)
    assert [p.tolist() for p in params] == before
    optimizer.state[params[2]][entry] = kept[params[2]][entry]
    assert all(optimizer.state[p] == state for p, state in kept.items())
    _step(optimizer, params, 1)
    assert all(p.tolist() != old for p, old in zip(params, before, strict=True))


@pytest.mark.parametrize("name", BY_HAND)
def test_a_state_of_another_method_is_refused(name):
    params = _matrices(1)
    optimizer = getattr(optim, name)(params)
    other = optim.RMSprop(params)
    _step(other, params, 0)
    foreign = {**optimizer.state_dict(), "state": other.state_dict()["state"]}
    with pytest.raises(ValueError, match=rf"^\[{name}\] the state of parameter 0 holds step, squ"):
        optimizer.load_state_dict(foreign)
    assert not optimizer.state


@pytest.mark.parametrize("name", METHODS)
def test_switches_of_pytorchs_are_taken_and_forgotten(name):
    make = getattr(optim, name)
    (p,) = _matrices(1)
    group = {"params": [p], "foreach": False}
    optimizer = make([group], foreach=True, fused=None, capturable=True, differentiable=False)
    plain = make([p])
    assert optimizer.param_groups == plain.param_groups
    assert optimizer.defaults == plain.defaults
    with pytest.raises(NotImplementedError) as caught:
        make([p], differentiable=True)
    assert str(caught.value).startswith(f"[{name}] differentiable=True is not offered: a step is n")
    with pytest.raises(TypeError) as caught:
        make([p], fused="yes")
    assert str(caught.value) == f"[{name}] fused must be True or False, not 'yes'"
    with pytest.raises(ValueError, match=rf"^\[{name}\] foreach and fused cannot both be True"):
        make([p], fused=True, foreach=True)
    with pytest.raises(TypeError) as caught:
        make([p], betta=1)
    assert str(caught.value) == f"[{name}] got an unexpected keyword argument 'betta'"


@pytest.mark.parametrize("name", METHODS)
def test_named_parameters_and_a_closure(name):
    named = [(f"w{k}", p) for k, p in enumerate(_matrices(2))]
    optimizer = getattr(optim, name)(iter(named))
    assert optimizer.param_groups[0]["param_names"] == ["w0", "w1"]

    def closure():
        optimizer.zero_grad()
        loss = sum((p * p).sum() for _, p in named)
        loss.backward()
        return loss

    first = optimizer.step(closure).item()
    for _ in range(3):
        last = optimizer.step(closure).item()
    assert last < first


def test_adam_with_decoupled_weight_decay_is_adamw():
    one, other = _matrices(1), _matrices(1)
    a = optim.Adam(one, weight_decay=0.1, decoupled_weight_decay=True)
    b = optim.AdamW(other, weight_decay=0.1)
    for seed in range(3):
        _step(a, one, seed)
        _step(b, other, seed)
    assert one[0].tolist() == other[0].tolist()
    taken = optim.Adam(other)  # as PyTorch's it goes by what the state says
    taken.load_state_dict(b.state_dict())
    _step(a, one, 9)
    _step(taken, other, 9)
    assert one[0].tolist() == other[0].tolist()
    state = a.state_dict()
    state["param_groups"] *= 2
    state["param_groups"][1] = {**state["param_groups"][0], "decoupled_weight_decay": False}
    with pytest.raises(ValueError, match=r"^\[Adam\] decoupled_weight_decay differs between the"):
        a.load_state_dict(state)


@pytest.mark.parametrize("name", [n for n in BY_HAND if n != "Muon"])
def test_odd_shapes(name):
    params = _tensors(mg, [np.zeros((0, 3)), np.array(1.0), np.ones((2, 1, 3))])
    optimizer = getattr(optim, name)(params, lr=0.1)
    for _ in range(2):
        params[0].grad = mg.zeros(0, 3, dtype=mg.float64)
        params[1].grad = mg.tensor(2.0, dtype=mg.float64)
        params[2].grad = mg.ones(3, 2, 1, dtype=mg.float64).permute(1, 2, 0)
        optimizer.step()
    assert [p.shape for p in params] == [(0, 3), (), (2, 1, 3)]
    assert params[1].item() < 1.0
    assert len({v for row in params[2].tolist() for col in row for v in col}) == 1


REFUSED = [
    ("Adagrad", {"lr_decay": -1}, "lr_decay is -1, but must not be negative or infinite"),
    ("Adagrad", {"lr": "x"}, "lr must be a number, not str"),
    ("Adadelta", {"rho": 1.5}, "rho is 1.5, but must be in [0, 1]"),
    ("Adafactor", {"d": 0.5}, "d is 0.5, but must be at least 1"),
    ("Adafactor", {"beta2_decay": 0.5}, "beta2_decay is 0.5, but must not be above 0"),
    ("Adafactor", {"beta2_decay": "x"}, "the size of beta2_decay must be a number, not str"),
    ("Adafactor", {"eps": 1e-3}, "eps must be two numbers, or None and one, not 0.001"),
    ("Adamax", {"betas": (0.9, 1.0)}, "betas[1] is 1.0, but must be in [0, 1)"),
    ("Adamax", {"betas": 0.9}, "betas must be two numbers, not 0.9"),
    ("NAdam", {"momentum_decay": -1.0}, "momentum_decay is -1.0, but must not be negative or infi"),
    ("RAdam", {"decoupled_weight_decay": 2}, "decoupled_weight_decay must be True or False, not 2"),
    ("Rprop", {"etas": (0.5, 0.9)}, "etas is (0.5, 0.9), but must be below and above 1"),
    ("Rprop", {"step_sizes": (1.0, -1.0)}, "step_sizes[1] is -1.0, but must not be negative or in"),
    ("Lion", {"maximize": "no"}, "maximize must be True or False, not 'no'"),
    ("Muon", {"ns_steps": 100}, "ns_steps is 100, but must be below 100"),
    ("Muon", {"ns_coefficients": (1, 2)}, "ns_coefficients must be three numbers, not (1, 2)"),
    ("Muon", {"adjust_lr_fn": "x"}, "adjust_lr_fn is 'x', but must be None, 'original' or 'match"),
    ("LBFGS", {"line_search_fn": "x"}, "line_search_fn is 'x', but must be None or 'strong_wolfe'"),
    ("LBFGS", {"lr": -1.0}, "lr is -1.0, but must not be negative or infinite"),
    ("LBFGS", {"history_size": 0}, "history_size "),
]


@pytest.mark.parametrize(("name", "options", "message"), REFUSED)
def test_options_out_of_range_are_refused(name, options, message):
    with pytest.raises((TypeError, ValueError)) as caught:
        getattr(optim, name)(_matrices(1), **options)
    assert str(caught.value).startswith(f"[{name}] {message}")


def test_muon_refuses_what_is_no_matrix():
    with pytest.raises(ValueError, match=r"^\[Muon\] parameter 1 has shape \(3,\), but must be a"):
        optim.Muon([*_matrices(1), mg.zeros(3, requires_grad=True)])


def test_lbfgs_of_two_dtypes_goes_uphill():
    a = mg.ones(2, requires_grad=True)
    b = mg.ones(2, 2, dtype=mg.float64, requires_grad=True)
    optimizer = optim.LBFGS([a, b], line_search_fn="strong_wolfe", maximize=True)

    def closure():
        optimizer.zero_grad()
        height = -((a - 2) ** 2).sum() - ((b - 3) ** 2).sum()
        height.backward()
        return height

    assert optimizer.step(closure).item() == -18.0
    np.testing.assert_allclose(a.tolist(), 2.0, rtol=1e-6)
    np.testing.assert_allclose(b.tolist(), 3.0, rtol=1e-12)
    assert (a.dtype, b.dtype) == (mg.float32, mg.float64)


@pytest.mark.parametrize("name", [n for n in BY_HAND if n != "Muon"])
def test_a_gradient_that_is_the_parameter_and_memory_that_cannot_be_written(name):
    one, other = (mg.ones(2, 2, requires_grad=True) for _ in range(2))
    for p, g in ((one, one.detach()), (other, mg.ones(2, 2))):
        p.grad = g
        getattr(optim, name)([p], lr=0.1).step()
    assert one.tolist() == other.tolist()
    values = np.ones((2, 2), np.float32)
    values.flags.writeable = False
    fixed = mg.from_numpy(values)
    fixed.requires_grad = True
    fixed.grad = one.grad = mg.ones(2, 2)
    before = one.tolist()
    with pytest.raises(ValueError, match=rf"^\[{name}\] the memory is read-only"):
        getattr(optim, name)([one, fixed]).step()
    assert one.tolist() == before
