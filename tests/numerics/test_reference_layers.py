"""Every layer, loss, optimizer and schedule gives the values of a reference in NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from expected import Given
from expected.modules import CONTAINERS, MODULES
from expected.optimizers import OPTIMIZERS, RATE, SCHEDULES, lbfgs
from expected.recording import as_arrays, flat
from test_reference_values import assert_expected

import minigrad as mg
from minigrad import nn, optim
from minigrad.optim import lr_scheduler

pytestmark = pytest.mark.usefixtures("restore_random")  # layers draw their weights


def test_every_layer_has_a_reference():
    classes = {n for n in dir(nn) if isinstance(getattr(nn, n), type)}
    missing = sorted(classes - set(MODULES) - set(CONTAINERS))
    assert not missing, f"layers without a reference in tests/helpers/expected: {missing}"
    assert {*MODULES, *CONTAINERS} <= classes
    assert CONTAINERS.isdisjoint(MODULES)


@pytest.mark.parametrize("name", MODULES)
def test_layers(name, rng):
    case = MODULES[name]
    mg.manual_seed(1)
    layer = case.make().double()
    assert isinstance(layer, getattr(nn, name))
    arrays = [rng.uniform(-2, 2, x) if isinstance(x, tuple) else x for x in case.inputs]
    with mg.no_grad():
        if name.startswith("Lazy"):
            layer(mg.tensor(arrays[0]))
        for p in layer.parameters():  # norms begin with ones and zeros, which would hide much
            p.copy_(mg.tensor(rng.uniform(-1, 1, p.shape)))
        got = flat(as_arrays(layer(*map(mg.tensor, arrays))))
    state = {key: as_arrays(value) for key, value in layer.state_dict().items()}
    before = (got,) if isinstance(case.reference, Given) else ()
    wanted = flat(case.reference(*before, state, *arrays))
    for a, b in zip(got, wanted, strict=True):
        assert_expected(a, b, name)


@pytest.mark.parametrize("name", ["BatchNorm1d", "InstanceNorm1d"])
def test_running_statistics(name, rng):
    """A tenth of the way from (0, 1) to the mean and the variance, which are then used."""
    layer = getattr(nn, name)(2, track_running_stats=True).double()
    x = rng.uniform(-2, 2, (3, 2, 4))
    layer(mg.tensor(x))
    if name == "BatchNorm1d":
        mean, var = x.mean((0, 2)), x.var((0, 2), ddof=1)
    else:
        mean, var = x.mean(2).mean(0), x.var(2, ddof=1).mean(0)
    assert_expected(layer.running_mean.numpy(), 0.1 * mean, "mean")
    assert_expected(layer.running_var.numpy(), 0.9 + 0.1 * var, "variance")
    y = layer.eval()(mg.tensor(x)).detach().numpy()
    want = (x - 0.1 * mean[:, None]) / np.sqrt(0.9 + 0.1 * var[:, None] + 1e-5)
    assert_expected(y, want, "output")


# ---- optimizers and schedules --------------------------------------------------------------------


def test_every_optimizer_and_schedule_has_a_reference():
    methods = {n for n in optim.__all__ if isinstance(getattr(optim, n), type)}
    assert methods - {"Optimizer"} == {*OPTIMIZERS, "LBFGS"}
    listed = {n for n in lr_scheduler.__all__ if isinstance(getattr(lr_scheduler, n), type)}
    assert listed - {"LRScheduler"} == set(SCHEDULES)


@pytest.mark.parametrize("maximize", [False, True])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers(name, maximize, rng):
    method = OPTIMIZERS[name]
    want = rng.standard_normal((4, 3))
    p = mg.tensor(want, requires_grad=True)
    optimizer = getattr(optim, name)([p], lr=0.1, maximize=maximize, **method.options)
    state = {}
    for t in (1, 2, 3):
        g = rng.standard_normal((4, 3))
        p.grad = mg.tensor(g)
        optimizer.step()
        want = method.step(want, -g if maximize else g, state, t)
        np.testing.assert_allclose(p.detach().numpy(), want, rtol=1e-7, atol=1e-9, err_msg=f"{t}")


def test_lbfgs():
    """Of a quadratic, whose minimum it nears in three iterations."""
    weights, start = np.array([1.0, 3.0, 0.5]), np.array([1.0, -2.0, 0.5])
    x = mg.tensor(start, requires_grad=True)
    optimizer = optim.LBFGS([x], lr=0.8, max_iter=3, max_eval=9)

    def closure():
        optimizer.zero_grad()
        loss = (x * x * mg.tensor(weights)).sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    want = lbfgs(start, lambda v: 2 * weights * v, 0.8, 3)
    np.testing.assert_allclose(x.detach().numpy(), want, rtol=1e-9)


@pytest.mark.parametrize("name", SCHEDULES)
def test_schedules(name):
    make, rate = SCHEDULES[name]
    optimizer = optim.SGD([mg.zeros(1, requires_grad=True)], lr=RATE)
    schedule = make(lr_scheduler, optimizer)
    for t in range(12):
        assert optimizer.param_groups[0]["lr"] == pytest.approx(rate(t), rel=1e-12), t
        optimizer.step()
        schedule.step(*[1.0] * (name == "ReduceLROnPlateau"))
