"""Averages of weights, and the schedules CyclicLR and SWALR: by hand and against PyTorch."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn, optim
from minigrad.optim import swa_utils
from minigrad.optim.lr_scheduler import CyclicLR
from minigrad.optim.swa_utils import SWALR, AveragedModel, update_bn

pytestmark = pytest.mark.usefixtures("restore_random")  # layers draw their first weights


def _model():
    return nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3), nn.Linear(3, 1))


def _set(model, seed):
    """Other values for all parameters and statistics."""
    random = np.random.default_rng(seed)
    state = {
        k: mg.tensor(seed + 1)
        if "num" in k
        else mg.tensor(np.abs(random.standard_normal(v.shape)), v.dtype)
        for k, v in model.state_dict().items()
    }
    model.load_state_dict(state)
    return {k: v.numpy() for k, v in state.items()}


KINDS = {
    "mean": (dict, lambda values: np.mean(values, axis=0)),
    "moving": (
        lambda: {"avg_fn": swa_utils.get_ema_avg_fn(0.75)},
        lambda values: 0.75 * (0.75 * values[0] + 0.25 * values[1]) + 0.25 * values[2],
    ),
    "moving lists": (
        lambda: {"multi_avg_fn": swa_utils.get_ema_multi_avg_fn(0.75)},
        lambda values: 0.75 * (0.75 * values[0] + 0.25 * values[1]) + 0.25 * values[2],
    ),
    "own function": (
        lambda: {"avg_fn": lambda a, b, n: mg.maximum(a, b) + n * 0},
        lambda values: np.max(values, axis=0),
    ),
}


@pytest.mark.parametrize("use_buffers", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_averages_by_hand(kind, use_buffers):
    make, reference = KINDS[kind]
    model = _model()
    averaged = AveragedModel(model, use_buffers=use_buffers, **make())
    seen = []
    for seed in range(3):
        seen.append(_set(model, seed))
        averaged.update_parameters(model)
    assert averaged.n_averaged.item() == 3
    found = averaged.state_dict()
    assert found.keys() == {"n_averaged", *(f"module.{k}" for k in seen[0])}
    for key in seen[0]:
        last, value = seen[-1][key], found[f"module.{key}"].numpy()
        if "running" in key or "num" in key:
            if "num" in key and use_buffers:
                continue  # an average of integers, cut off
            want = reference([s[key] for s in seen]) if use_buffers else last
        else:
            want = reference([s[key] for s in seen])
        np.testing.assert_allclose(value, want, rtol=1e-6)


@pytest.mark.parametrize("use_buffers", [False, True])
@pytest.mark.parametrize("kind", ["mean", "moving", "moving lists"])
def test_averages_are_pytorchs(kind, use_buffers):
    torch = pytest.importorskip("torch")
    theirs = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Linear(3, 1))
    ours = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))

    def options(module):
        one = module.optim.swa_utils
        return {
            "mean": {},
            "moving": {"avg_fn": one.get_ema_avg_fn(0.9)},
            "moving lists": {"multi_avg_fn": one.get_ema_multi_avg_fn(0.9)},
        }[kind]

    a = AveragedModel(ours, use_buffers=use_buffers, **options(mg))
    b = torch.optim.swa_utils.AveragedModel(theirs, use_buffers=use_buffers, **options(torch))
    for seed in range(5):
        values = _set(ours, seed)
        theirs.load_state_dict({k: torch.tensor(v) for k, v in values.items()})
        a.update_parameters(ours)
        b.update_parameters(theirs)
    assert list(a.state_dict()) == list(b.state_dict())
    for key, value in a.state_dict().items():
        np.testing.assert_allclose(value.numpy(), b.state_dict()[key].numpy(), rtol=1e-6)
    a.load_state_dict({k: mg.tensor(v.numpy()) for k, v in b.state_dict().items()})


def test_an_averaged_model_is_a_copy_and_refuses_others():
    model = _model()
    averaged = AveragedModel(model)
    x = mg.ones(4, 2)
    np.testing.assert_array_equal(averaged(x).detach().numpy(), model(x).detach().numpy())
    assert averaged.module[0].weight is not model[0].weight
    with pytest.raises(ValueError, match=r"^\[AveragedModel\] the parameters of the model have"):
        averaged.update_parameters(nn.Linear(2, 3))
    with pytest.raises(ValueError, match=r"^\[AveragedModel\] give avg_fn or multi_avg_fn, not bo"):
        AveragedModel(model, avg_fn=max, multi_avg_fn=max)
    with pytest.raises(ValueError, match=r"^\[get_ema_avg_fn\] decay is 1.5, but must be in \[0"):
        swa_utils.get_ema_avg_fn(1.5)


@pytest.mark.parametrize("as_pair", [False, True])
def test_update_bn_computes_the_statistics_of_all_data(as_pair):
    model = nn.Sequential(nn.BatchNorm1d(2, momentum=0.3), nn.Dropout(0.5)).eval()
    batches = [np.random.default_rng(k).standard_normal((8, 2)).astype("f") for k in range(3)]
    loader = [(mg.tensor(b), None) if as_pair else mg.tensor(b) for b in batches]
    update_bn(loader, model)
    norm = model[0]
    np.testing.assert_allclose(
        norm.running_mean.numpy(), np.mean([b.mean(0) for b in batches], 0), rtol=1e-4, atol=1e-6
    )
    np.testing.assert_allclose(
        norm.running_var.numpy(), np.mean([b.var(0, ddof=1) for b in batches], 0), rtol=1e-5
    )
    assert (norm.momentum, norm.num_batches_tracked.item(), model.training) == (0.3, 3, False)


def test_update_bn_puts_back_what_it_changed_after_an_error():
    model = nn.Sequential(nn.BatchNorm1d(2, momentum=0.3)).eval()
    with pytest.raises(ValueError, match="BatchNorm1d"):
        update_bn([mg.zeros(4)], model)
    assert (model[0].momentum, model.training) == (0.3, False)
    update_bn([], nn.Linear(1, 1))  # nothing to do


# ---- schedules -----------------------------------------------------------------------------------

CYCLES = [
    {"mode": mode, "step_size_down": down, "gamma": 0.9}
    for mode, down in itertools.product(["triangular", "triangular2", "exp_range"], [None, 3, 0])
] + [
    {"scale_fn": lambda k: 1 / (k + 1), "scale_mode": "cycle"},
    {"scale_fn": lambda k: 1 / (k + 1), "scale_mode": "iterations"},
    {"cycle_momentum": False},
    {"base_momentum": 0.5, "max_momentum": 0.7},
]


def _optimizers(module, momentum=True):
    params = [module.zeros(1, requires_grad=True) for _ in range(2)]
    groups = [{"params": [params[0]]}, {"params": [params[1]], "lr": 0.5}]
    if momentum:
        return module.optim.SGD(groups, lr=1.0, momentum=0.9)
    return module.optim.Adam(groups, lr=1.0)


def _rates(optimizer, scheduler, steps):
    found = []
    for _ in range(steps):
        for group in optimizer.param_groups:
            found += [group["lr"], group["betas"][0] if "betas" in group else group["momentum"]]
        optimizer.step()
        scheduler.step()
    return found


@pytest.mark.parametrize("momentum", [True, False])
@pytest.mark.parametrize("options", CYCLES)
def test_cyclic_rates_are_pytorchs(options, momentum):
    torch = pytest.importorskip("torch")
    found = []
    for module in (mg, torch):
        optimizer = _optimizers(module, momentum)
        scheduler = module.optim.lr_scheduler.CyclicLR(
            optimizer, [0.1, 0.2], 2.0, step_size_up=4, **options
        )
        found.append(_rates(optimizer, scheduler, 40))
    np.testing.assert_allclose(*found, rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("strategy", ["cos", "linear"])
@pytest.mark.parametrize("epochs", [0, 1, 5])
def test_swalr_is_pytorchs(epochs, strategy):
    torch = pytest.importorskip("torch")
    found = []
    for module in (mg, torch):
        optimizer = _optimizers(module)
        before = module.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
        rates = _rates(optimizer, before, 3)
        scheduler = module.optim.swa_utils.SWALR(
            optimizer, [0.05, 0.1], anneal_epochs=epochs, anneal_strategy=strategy
        )
        found.append(rates + _rates(optimizer, scheduler, 10))
    np.testing.assert_allclose(*found, rtol=1e-10)


def test_cyclic_rates_by_hand():
    optimizer = _optimizers(mg)
    scheduler = CyclicLR(optimizer, 1.0, 3.0, step_size_up=2, mode="triangular2")
    rates = _rates(optimizer, scheduler, 8)
    np.testing.assert_allclose(rates[::4], [1, 2, 3, 2, 1, 1.5, 2, 1.5])
    np.testing.assert_allclose(rates[1::4], [0.9, 0.85, 0.8, 0.85, 0.9, 0.875, 0.85, 0.875])


SCHEDULES = {
    "CyclicLR": lambda o: CyclicLR(o, 0.1, 1.0, step_size_up=3, mode="exp_range", gamma=0.9),
    "SWALR": lambda o: SWALR(o, 0.1, anneal_epochs=4),
}


@pytest.mark.parametrize("name", SCHEDULES)
def test_a_schedule_goes_on_from_its_state(name, tmp_path):
    whole = _optimizers(mg)
    rates = _rates(whole, SCHEDULES[name](whole), 10)
    first = _optimizers(mg)
    scheduler = SCHEDULES[name](first)
    begun = _rates(first, scheduler, 4)
    mg.save({"o": first.state_dict(), "s": scheduler.state_dict()}, tmp_path / "run")
    saved = mg.load(tmp_path / "run")
    second = _optimizers(mg)
    scheduler = SCHEDULES[name](second)
    second.load_state_dict(saved["o"])
    scheduler.load_state_dict(saved["s"])
    assert begun + _rates(second, scheduler, 6) == rates


REFUSED = {
    "mode is 'x', but must be one of 'triangular', 'triangular2', 'exp_range'": {"mode": "x"},
    "scale_mode is 'x', but must be 'cycle' or 'iterations'": {"scale_mode": "x"},
    "scale_fn must be a function, not int": {"scale_fn": 3},
    "step_size_up is 0, but must be above 0": {"step_size_up": 0},
    "step_size_down is -1, but must be at least 0": {"step_size_down": -1},
    "max_lr has 3 entries for 2 groups": {"max_lr": [1.0, 2.0, 3.0]},
    "max_momentum is 2.0, but must be in [0, 1]": {"max_momentum": 2.0},
}


@pytest.mark.parametrize("message", REFUSED)
def test_cyclic_rates_refuse(message):
    with pytest.raises((TypeError, ValueError)) as caught:
        CyclicLR(_optimizers(mg), **{"base_lr": 0.1, "max_lr": 1.0, **REFUSED[message]})
    assert str(caught.value) == f"[CyclicLR] {message}"


def test_schedules_refuse_what_does_not_fit():
    plain = optim.Adagrad([mg.zeros(1, requires_grad=True)])
    with pytest.raises(ValueError, match=r"^\[CyclicLR\] Adagrad has no momentum: use cycle_mom"):
        CyclicLR(plain, 0.1, 1.0)
    with pytest.raises(ValueError, match=r"^\[SWALR\] anneal_strategy is 'x', but must be 'cos' o"):
        SWALR(plain, 0.1, anneal_strategy="x")
    cyclic = CyclicLR(plain, 0.1, 1.0, cycle_momentum=False)
    before = cyclic.state_dict()
    for key, value in {"mode": "min", "step_size_up": 0.0, "scale_mode": 3}.items():
        with pytest.raises(ValueError, match=rf"^\[CyclicLR\] '{key}' of the state"):
            cyclic.load_state_dict({**before, key: value})
    swa = SWALR(plain, 0.1)
    with pytest.raises(ValueError, match=r"^\[SWALR\] 'anneal_epochs' of the state is -1"):
        swa.load_state_dict({**swa.state_dict(), "anneal_epochs": -1})
