"""Compiled steps of optimizers: parameters and state have the bits of the same steps without it."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn
from minigrad.optim import swa_utils

F = nn.functional
OPTIONS = {
    "Adagrad": {"lr": 0.1, "lr_decay": 0.1},
    "Adadelta": {},
    "Rprop": {"lr": 0.01},
    "Adafactor": {"lr": 0.1},
    "Adamax": {"lr": 0.01},
    "NAdam": {"lr": 0.01},
    "RAdam": {"lr": 0.01},
    "SparseAdam": {"lr": 0.01},
    "Lion": {"lr": 0.01},
    "ASGD": {"lr": 0.1, "t0": 5, "lambd": 0.01},
    "Muon": {"lr": 0.05},
    "SGD": {"lr": 0.1, "momentum": 0.9},
    "Adam": {"lr": 0.01},
    "AdamW": {"lr": 0.01},
    "RMSprop": {"lr": 0.01},
}
DECAYED = [name for name in OPTIONS if name not in ("Rprop", "SparseAdam")]
MOVED = {
    "Adagrad": {"eps": 1e-3, "lr_decay": 0.5, "weight_decay": 0.2},
    "Adadelta": {"rho": 0.5, "eps": 1e-3, "weight_decay": 0.2},
    "Rprop": {"etas": (0.25, 1.5), "step_sizes": (1e-3, 1)},
    "Adafactor": {"beta2_decay": -0.5, "d": 2, "eps": (1e-3, 1e-2), "weight_decay": 0.2},
    "Adamax": {"betas": (0.8, 0.9), "eps": 1e-3},
    "NAdam": {"betas": (0.8, 0.9), "momentum_decay": 0.1},
    "RAdam": {"betas": (0.8, 0.9), "eps": 1e-3},
    "SparseAdam": {"betas": (0.8, 0.9), "eps": 1e-3},
    "Lion": {"betas": (0.8, 0.95), "weight_decay": 0.2},
    "ASGD": {"alpha": 0.5, "t0": 2, "lambd": 0.1},
    "Muon": {"momentum": 0.8, "eps": 1e-3, "ns_coefficients": (3, -4, 2), "weight_decay": 0.2},
}


@pytest.fixture(autouse=True)
def _seeded(restore_random):
    mg.manual_seed(0)


class Small(nn.Module):
    """A layer with a bias, unless only matrices can be trained, and a table with unused rows."""

    def __init__(self, name, dtype):
        self.table = nn.Parameter(mg.randn(5, 4, dtype=dtype))
        self.hidden = nn.Linear(4, 4, bias=name != "Muon", dtype=dtype)
        self.unused = nn.Parameter(mg.randn(2, 2, dtype=dtype))

    def forward(self, rows):
        return self.hidden(self.table[rows]).tanh()


def stepper(model, optimizer, schedule=None, times=1):
    """A training step, which makes several steps of the optimizer if ``times`` says so."""

    def step(rows, target):
        for _ in range(times):
            optimizer.zero_grad()
            loss = F.mse_loss(model(rows), target)
            loss.backward()
            optimizer.step()
            if schedule:
                schedule.step()
        return loss

    return step


class Training:
    """A model, its optimizer and a step; ``compiled`` is the step as a program, if it is one."""

    def __init__(
        self, name, dtype=mg.float32, compiled=False, inside=None, groups=False, times=1, **options
    ):
        mg.manual_seed(0)
        self.model = Small(name, dtype)
        params = list(self.model.parameters())
        if groups:
            last = {"params": params[1:], "lr": 0.003}
            params = [{"params": params[:1]}, last]
        self.optimizer = getattr(mg.optim, name)(params, **{**OPTIONS[name], **options})
        self.schedule = inside(self.optimizer) if inside else None
        self.step = stepper(self.model, self.optimizer, self.schedule, times)
        self.compiled = mg.compile(self.step, fullgraph=True) if compiled else None
        self.run = self.compiled or self.step

    def seen(self):
        """All values: parameters, gradients, state and options."""
        tensors = [*self.model.parameters(), *[p.grad for p in self.model.parameters()]]
        found = [bits(x) for x in tensors]
        for state in self.optimizer.state.values():
            found.append({key: bits(x) for key, x in state.items()})
        options = [[x for k, x in g.items() if k != "params"] for g in self.optimizer.param_groups]
        return found, options


def bits(x):
    """A tensor's values, exactly; anything else as it is."""
    return x.detach().numpy().tobytes() if isinstance(x, mg.Tensor) else x


def data(k, dtype):
    rng = np.random.default_rng(k)
    return mg.tensor(rng.integers(0, 4, 3)), mg.tensor(rng.normal(size=(3, 4)), dtype=dtype)


def same_bits(name, dtype=mg.float32, between=None, steps=12, most=2, **options):
    """Train both ways, with ``between(training, step)`` before each step, and compare."""
    plain = Training(name, dtype, **options)
    other = Training(name, dtype, compiled=True, **options)
    for k in range(steps):
        for one in (plain, other):
            if between is not None:
                between(one, k)
        a, b = (one.run(*data(k, dtype)) for one in (plain, other))
        assert bits(a) == bits(b)
        assert plain.seen() == other.seen(), k
    assert other.compiled.recordings <= most, other.compiled.reasons
    return other


dtypes = pytest.mark.parametrize("dtype", [mg.float32, mg.float64], ids=["float32", "float64"])
names = pytest.mark.parametrize("name", OPTIONS)
changed = pytest.mark.parametrize("name", MOVED)


@dtypes
@names
def test_plain(name, dtype):
    same_bits(name, dtype)


@dtypes
@pytest.mark.parametrize("name", DECAYED)
def test_weight_decay(name, dtype):
    same_bits(name, dtype, weight_decay=0.1)


@dtypes
@pytest.mark.parametrize("name", ["NAdam", "RAdam"])
def test_decoupled_weight_decay(name, dtype):
    same_bits(name, dtype, weight_decay=0.1, decoupled_weight_decay=True)


@dtypes
@names
def test_maximize(name, dtype):
    same_bits(name, dtype, maximize=True)


@dtypes
@names
def test_a_schedule_in_the_step(name, dtype):
    def decaying(optimizer):
        return mg.optim.lr_scheduler.ExponentialLR(optimizer, 0.8)

    same_bits(name, dtype, inside=decaying)


@names
def test_a_schedule_of_betas_in_the_step(name):
    if "betas" not in getattr(mg.optim, name)([mg.ones(1, 1, requires_grad=True)]).defaults:
        return

    def cycle(optimizer):
        return mg.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=20)

    same_bits(name, inside=cycle)


@dtypes
@names
def test_a_rate_that_is_set_by_hand(name, dtype):
    def between(one, k):
        one.optimizer.param_groups[0]["lr"] = (0.1, 0.02, 1, 0.0)[k % 4]

    same_bits(name, dtype, between)


@dtypes
@names
def test_a_state_that_is_loaded_between_steps(name, dtype):
    kept = {}

    def between(one, k):
        if k == 3:
            kept[one] = copy.deepcopy(one.optimizer.state_dict())
        if k == 8:
            one.optimizer.load_state_dict(kept[one])

    same_bits(name, dtype, between, most=3)


@dtypes
@names
def test_two_groups(name, dtype):
    same_bits(name, dtype, groups=True)


@dtypes
@changed
def test_other_options_between_steps(name, dtype):
    def between(one, k):
        if k == 6:
            one.optimizer.param_groups[0].update(MOVED[name])

    same_bits(name, dtype, between, most=3)


@names
def test_switches_between_steps_lead_to_another_recording(name):
    def between(one, k):
        one.optimizer.param_groups[0]["maximize"] = 4 <= k < 8

    if name in ("SGD", "Adam", "AdamW", "RMSprop"):
        same_bits(name, between=between)
    else:
        other = same_bits(name, between=between, most=3)
        assert "an optimizer takes another step" in other.compiled.reasons[-1]


@changed
def test_counts_that_differ_between_parameters(name):
    def between(one, k):
        if k == 1:
            states = list(one.optimizer.state.values())
            if "step" in states[0]:
                states[0]["step"] = 20
            if "mu_product" in states[0]:
                states[0]["mu_product"] = 0.25

    other = same_bits(name, between=between)
    steps = [state["step"] for state in other.optimizer.state.values() if "step" in state]
    assert not steps or len(set(steps)) == 2


@changed
def test_counts_that_are_set_apart_lead_to_another_recording(name):
    def between(one, k):
        state = next(iter(one.optimizer.state.values()), {})
        if k == 6 and "step" in state:
            state["step"] = 1

    same_bits(name, between=between, most=3)


def test_equal_numbers_are_not_taken_for_one():
    """beta and momentum_decay are equal at first, and eps equals the rate."""

    def between(one, k):
        group = one.optimizer.param_groups[0]
        group["eps"], group["lr"] = 0.01 + 0.01 * k, 0.01 + 0.002 * k

    same_bits("Adagrad", between=between)
    same_bits("NAdam", between=between)


@changed
def test_two_steps_in_a_call(name):
    def decaying(optimizer):
        return mg.optim.lr_scheduler.ExponentialLR(optimizer, 0.8)

    plain = Training(name, times=2, inside=decaying)
    other = Training(name, times=2, inside=decaying, compiled=True)
    for k in range(6):
        for one in (plain, other):
            one.run(*data(k, mg.float32))
        assert plain.seen() == other.seen()
    assert other.compiled.recordings == 2


@pytest.mark.parametrize("name", ["Adam", "RMSprop"])
def test_two_steps_of_an_optimizer_in_c_are_no_program(name):
    plain, other = (Training(name, times=2) for _ in range(2))
    compiled = mg.compile(other.step)
    with pytest.warns(UserWarning, match="steps a parameter twice"):
        compiled(*data(0, mg.float32))
    plain.step(*data(0, mg.float32))
    for k in range(1, 4):
        plain.step(*data(k, mg.float32))
        compiled(*data(k, mg.float32))
        assert plain.seen() == other.seen()


@names
def test_an_option_out_of_range_is_the_error_of_the_step(name):
    plain, other = Training(name), Training(name, compiled=True)
    for k in range(4):
        for one in (plain, other):
            one.run(*data(k, mg.float32))
    errors = []
    for one in (plain, other):
        one.optimizer.param_groups[0]["lr"] = -1.0
        with pytest.raises(ValueError, match="lr is -1") as error:
            one.run(*data(4, mg.float32))
        errors.append(str(error.value))
        one.optimizer.param_groups[0]["lr"] = 0.1
    assert errors[0] == errors[1]
    assert plain.seen() == other.seen()
    for one in (plain, other):
        one.run(*data(5, mg.float32))
    assert plain.seen() == other.seen()
    assert other.compiled.recordings == 2


@changed
def test_a_count_out_of_range_is_the_error_of_the_step(name):
    made = Training(name, compiled=True)
    for k in range(3):
        made.run(*data(k, mg.float32))
    state = next(iter(made.optimizer.state.values()))
    if "step" not in state:
        return
    state["step"] = -3
    with pytest.raises(ValueError, match="'step' of a parameter is -3"):
        made.run(*data(4, mg.float32))


@pytest.mark.parametrize("name", ["NAdam", "ASGD", "Adafactor"])
def test_a_run_that_differs_counts_once(name):
    """A norm of huge gradients takes another way than in the recording."""

    def clipped(one):
        model, optimizer = one.model, one.optimizer

        def step(rows, target):
            optimizer.zero_grad()
            loss = (model(rows) * target).sum()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            return loss

        return step

    plain, other = Training(name), Training(name)
    eager, run = clipped(plain), mg.compile(clipped(other), fullgraph=True)
    for k in range(9):
        rows, target = data(k, mg.float32)
        if k in (5, 6):
            target = target * 1e30
        eager(rows, target)
        run(rows, target)
        assert plain.seen() == other.seen()
    assert run.recordings == 2


@changed
def test_gradients_that_come_later(name):
    """A parameter has its first gradient at the fourth step, and none in every third."""
    plain, other = Training(name), Training(name)

    def sometimes(one):
        model, optimizer = one.model, one.optimizer

        def step(rows, target, use):
            optimizer.zero_grad()
            loss = F.mse_loss(model(rows), target)
            if use:
                loss = loss + model.unused.square().sum()
            loss.backward()
            optimizer.step()
            return loss

        return step

    eager, run = sometimes(plain), mg.compile(sometimes(other), fullgraph=True)
    for k in range(12):
        given = (*data(k, mg.float32), k > 2 and k % 3 > 0)
        eager(*given)
        run(*given)
        assert plain.seen() == other.seen()
    assert run.recordings <= 6  # with and without it, and a gradient, and a state


@changed
def test_only_the_step_is_compiled(name):
    plain, other = Training(name), Training(name)
    run = mg.compile(other.optimizer.step, fullgraph=True)
    for k in range(6):
        for one, step in ((plain, plain.optimizer.step), (other, run)):
            one.optimizer.zero_grad()
            F.mse_loss(one.model(data(k, mg.float32)[0]), data(k, mg.float32)[1]).backward()
            step()
        assert plain.seen() == other.seen()
    assert run.recordings == 2


@changed
def test_steps_outside_take_turns_with_programs(name):
    plain, other = Training(name), Training(name, compiled=True)
    for k in range(12):
        plain.step(*data(k, mg.float32))
        (other.run if k % 3 else other.step)(*data(k, mg.float32))
        assert plain.seen() == other.seen()
    assert other.compiled.recordings <= 2


def test_hooks_of_an_optimizer_are_no_program():
    made = Training("Adagrad")
    made.optimizer.register_step_pre_hook(lambda *_: None)
    with pytest.warns(UserWarning, match="calls hooks"):
        mg.compile(made.step)(*data(0, mg.float32))


@pytest.mark.parametrize("owner", ["optimizer", "schedule"])
def test_methods_of_an_object_alone_come_and_go(owner):
    w = nn.Parameter(mg.ones(1))
    optimizer = mg.optim.SGD([w], lr=1.0)
    schedule = mg.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
    owners = {"optimizer": optimizer, "schedule": schedule}

    @mg.compile
    def step():
        optimizer.zero_grad()
        w.sum().backward()
        optimizer.step()
        schedule.step()
        return w.clone()

    def seen():
        with mg.no_grad():
            w.fill_(1.0)
        optimizer.param_groups[0]["lr"] = 1.0
        return step().item(), optimizer.param_groups[0]["lr"]

    for _ in range(2):
        assert seen() == (0.0, 0.5)
    for value in (3.0, 4.0):
        owners[owner].step = lambda value=value: w.data.fill_(value)
        for _ in range(2):
            assert seen() == (value, 0.5 if owner == "optimizer" else 1.0)
    del owners[owner].step
    for _ in range(2):
        assert seen() == (0.0, 0.5)


def test_a_file_holds_no_such_step(tmp_path):
    made = Training("Lion", compiled=True)
    for k in range(3):
        made.run(*data(k, mg.float32))
    with pytest.raises(ValueError, match="steps of SGD"):
        made.compiled.save(tmp_path / "step.mg")


AVERAGES = {
    "mean": {},
    "mean of each": {"avg_fn": swa_utils.get_swa_avg_fn()},
    "moving": {"multi_avg_fn": swa_utils.get_ema_multi_avg_fn(0.9)},
    "moving far": {"multi_avg_fn": swa_utils.get_ema_multi_avg_fn(0.2)},
    "moving of each": {"avg_fn": swa_utils.get_ema_avg_fn(0.9)},
    "with buffers": {"use_buffers": True},
}


@dtypes
@pytest.mark.parametrize("momentum", [0.0, 0.9])
@pytest.mark.parametrize("name", AVERAGES)
def test_averaged_models_in_the_step(name, momentum, dtype):
    found = []
    for compiled in (False, True):
        mg.manual_seed(0)
        model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4)).to(dtype)
        average = swa_utils.AveragedModel(model, **AVERAGES[name])
        optimizer = mg.optim.SGD(model.parameters(), lr=0.1, momentum=momentum)

        def step(x, model=model, average=average, optimizer=optimizer):
            optimizer.zero_grad()
            model(x).square().sum().backward()
            optimizer.step()
            average.update_parameters(model)

        run = mg.compile(step, fullgraph=True) if compiled else step
        steps = []
        for _ in range(8):
            run(mg.randn(5, 4, dtype=dtype))
            steps.append([bits(x) for x in average.state_dict().values()])
            for one in run._recorded if compiled else ():
                one.function = None  # which runs where a program stops
        found.append(steps)
        if compiled:
            assert run.recordings == 2
    assert found[0] == found[1]
