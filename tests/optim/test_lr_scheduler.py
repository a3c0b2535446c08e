"""minigrad.optim.lr_scheduler: against formulas, and against PyTorch where it is installed."""

from __future__ import annotations

import math
import pickle

import pytest

import minigrad as mg
from minigrad import optim
from minigrad.optim import lr_scheduler as lrs

STEPS = 50
RATES = [0.1, 0.7]


def _optimizer(library=mg, method="SGD", **options):
    """Two groups with rates of their own, in minigrad or in torch."""
    options = options or ({"momentum": 0.9} if method == "SGD" else {})
    groups = [{"params": [library.zeros(1, requires_grad=True)], "lr": lr} for lr in RATES]
    return getattr(library.optim, method)(groups, **options)


# Each makes a schedule, from minigrad's or torch's module of them.
SCHEDULES = {
    "lambda": lambda s, o: s.LambdaLR(o, lambda t: 0.9**t),
    "lambdas": lambda s, o: s.LambdaLR(o, [lambda t: 1 / (1 + t), lambda t: 0.5 ** (t // 7)]),
    "multiplicative": lambda s, o: s.MultiplicativeLR(o, lambda t: 1 - 1 / (1 + t)),
    "step": lambda s, o: s.StepLR(o, 7, 0.5),
    "multi step": lambda s, o: s.MultiStepLR(o, [3, 10, 10, 40], 0.3),
    "constant": lambda s, o: s.ConstantLR(o, 0.25, 6),
    "constant at once": lambda s, o: s.ConstantLR(o, 0.25, 0),
    "linear": lambda s, o: s.LinearLR(o, 0.1, 0.8, 20),
    "linear at once": lambda s, o: s.LinearLR(o, total_iters=0),
    "exponential": lambda s, o: s.ExponentialLR(o, 0.93),
    "polynomial": lambda s, o: s.PolynomialLR(o, 30, 2.0),
    "cosine": lambda s, o: s.CosineAnnealingLR(o, 20, 0.01),
    "cosine of one step": lambda s, o: s.CosineAnnealingLR(o, 1),
    "restarts": lambda s, o: s.CosineAnnealingWarmRestarts(o, 5, 2, 0.001),
    "even restarts": lambda s, o: s.CosineAnnealingWarmRestarts(o, 7),
    "cycle": lambda s, o: s.OneCycleLR(o, 1.0, total_steps=STEPS + 1),
    "cycle of three": lambda s, o: s.OneCycleLR(
        o, [1.0, 2.0], epochs=17, steps_per_epoch=3, pct_start=0.4, three_phase=True
    ),
    "straight cycle": lambda s, o: s.OneCycleLR(
        o, 1.0, 60, anneal_strategy="linear", div_factor=5.0, final_div_factor=7.0, pct_start=0.0
    ),
    "chained": lambda s, o: s.ChainedScheduler(
        [s.ConstantLR(o, 0.1, 5), s.ExponentialLR(o, 0.9), s.CosineAnnealingLR(o, 15)]
    ),
    "sequence": lambda s, o: s.SequentialLR(
        o,
        [
            s.LinearLR(o, 0.1, total_iters=8),
            s.CosineAnnealingLR(o, 20, 0.01),
            s.ExponentialLR(o, 0.9),
            s.CosineAnnealingWarmRestarts(o, 3, 2),
        ],
        [8, 28, 40],
    ),
    "products after others": lambda s, o: s.SequentialLR(
        o,
        [
            s.MultiplicativeLR(o, lambda t: 0.9),
            s.LinearLR(o, 0.3, total_iters=8),
            s.MultiplicativeLR(o, lambda t: 0.8 + 0.01 * t),
            s.MultiplicativeLR(o, lambda t: 1.1),
            s.StepLR(o, 2, 0.5),
        ],
        [4, 9, 20, 30],
    ),
}


def _rates(optimizer, scheduler, steps=STEPS):
    """Rates and momenta before each step."""
    found = []
    for _ in range(steps):
        groups = optimizer.param_groups
        momenta = [g["momentum"] if "momentum" in g else g["betas"][0] for g in groups]
        found.append([*[g["lr"] for g in groups], *momenta])
        assert scheduler.get_last_lr() == [g["lr"] for g in groups]
        optimizer.step()
        scheduler.step()
    return found


@pytest.mark.parametrize("method", ["SGD", "AdamW"])
@pytest.mark.parametrize("name", SCHEDULES)
def test_fifty_steps_are_pytorchs(name, method):
    torch = pytest.importorskip("torch")
    ours, theirs = _optimizer(mg, method), _optimizer(torch, method)
    make = SCHEDULES[name]
    found = _rates(ours, make(lrs, ours))
    wanted = _rates(theirs, make(torch.optim.lr_scheduler, theirs))
    for a, b in zip(found, wanted, strict=True):
        assert a == pytest.approx(b, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("mode", ["min", "max"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"factor": 0.5, "patience": 0, "min_lr": [0.2, 0.01]},
        {"patience": 1, "cooldown": 3, "threshold": 0.1},
        {"patience": 2, "threshold": 0.05, "threshold_mode": "abs", "eps": 0.02},
    ],
)
def test_plateaus_are_pytorchs(rng, mode, options):
    torch = pytest.importorskip("torch")
    metrics = rng.random(STEPS).tolist()
    metrics[7], metrics[20], metrics[30] = math.nan, math.inf, -0.5
    ours, theirs = _optimizer(), _optimizer(torch)
    a = lrs.ReduceLROnPlateau(ours, mode, **options)
    b = torch.optim.lr_scheduler.ReduceLROnPlateau(theirs, mode, **options)
    for metric in metrics:
        a.step(mg.tensor(metric, dtype=mg.float64))
        b.step(metric)
        assert a.get_last_lr() == pytest.approx(b.get_last_lr(), rel=1e-12)
        assert [g["lr"] for g in ours.param_groups] == a.get_last_lr()


# The formulas of the docstrings, by step and base rate.
def _line(t):
    return 0.1 + 0.7 * min(t, 20) / 20


def _cycle(t):
    up, all_steps = 0.3 * 51 - 1, 50
    if t <= up:
        return 1.0 + (0.04 - 1.0) * (1 + math.cos(math.pi * t / up)) / 2
    return 4e-6 + (1.0 - 4e-6) * (1 + math.cos(math.pi * (t - up) / (all_steps - up))) / 2


FORMULAS = {
    "lambda": lambda t, base: base * 0.9**t,
    "step": lambda t, base: base * 0.5 ** (t // 7),
    "multi step": lambda t, base: base * 0.3 ** ((t >= 3) + 2 * (t >= 10) + (t >= 40)),
    "constant": lambda t, base: base * (0.25 if t < 6 else 1.0),
    "linear": lambda t, base: base * _line(t),
    "exponential": lambda t, base: base * 0.93**t,
    "polynomial": lambda t, base: base * max(0.0, 1 - t / 30) ** 2,
    "cosine": lambda t, base: 0.01 + (base - 0.01) * (1 + math.cos(math.pi * t / 20)) / 2,
    "even restarts": lambda t, base: base * (1 + math.cos(math.pi * (t % 7) / 7)) / 2,
    "cycle": lambda t, base: _cycle(t),
}


@pytest.mark.parametrize("name", FORMULAS)
def test_the_formulas(name):
    optimizer = _optimizer()
    rates = _rates(optimizer, SCHEDULES[name](lrs, optimizer))
    for t, (*found, _, _) in enumerate(rates):
        wanted = [FORMULAS[name](t, base) for base in RATES]
        assert found == pytest.approx(wanted, rel=1e-9, abs=1e-12), t


@pytest.mark.parametrize("name", SCHEDULES)
def test_a_run_goes_on_from_a_saved_state(name):
    whole = _optimizer()
    wanted = _rates(whole, SCHEDULES[name](lrs, whole))
    first = _optimizer()
    scheduler = SCHEDULES[name](lrs, first)
    _rates(first, scheduler, 20)
    if "lambda" in name or name == "multiplicative":
        assert "lr_lambdas" not in scheduler.state_dict()
    saved = pickle.loads(pickle.dumps((first.state_dict(), scheduler.state_dict())))
    again = _optimizer()
    other = SCHEDULES[name](lrs, again)
    again.load_state_dict(saved[0])
    other.load_state_dict(saved[1])
    scheduler.step()  # of its own
    assert _rates(again, other, 30) == wanted[20:]


@pytest.mark.parametrize("steps", range(1, 60))
def test_a_line_to_0_ends_at_0(steps):
    optimizer = _optimizer()
    scheduler = lrs.LinearLR(optimizer, 0.1, end_factor=0.0, total_iters=steps)
    for _ in range(steps + 1):
        assert min(scheduler.get_last_lr()) > 0.0 or scheduler.last_epoch >= steps
        scheduler.step()
    assert scheduler.get_last_lr() == [0.0, 0.0]
    _optimizer().load_state_dict(optimizer.state_dict())


def _all_rates(optimizer, scheduler, steps):
    """Rates and momenta before each step, also of a plateau, whose metric gets no better."""
    metric = [1.0] if isinstance(scheduler, lrs.ReduceLROnPlateau) else []
    found = []
    for _ in range(steps):
        for group in optimizer.param_groups:
            found += [group["lr"], group["momentum"]]
        optimizer.step()
        scheduler.step(*metric)
    return found


ORDERS = [
    ("make", "schedule"),
    ("make", "optimizer", "schedule"),
    ("make", "schedule", "optimizer"),
    ("optimizer", "make", "schedule"),
    ("optimizer", "make", "schedule", "optimizer"),
    ("optimizer", "make", "schedule", "schedule"),
]
RESUMED = SCHEDULES | {"plateau": lambda s, o: s.ReduceLROnPlateau(o, factor=0.5, patience=1)}


@pytest.mark.parametrize("order", ORDERS, ids="-".join)
@pytest.mark.parametrize("name", RESUMED)
def test_states_may_be_loaded_in_any_order(name, order):
    for done in (0, 1, 7, 8, 9, 28, 29):
        first = _optimizer()
        scheduler = RESUMED[name](lrs, first)
        _all_rates(first, scheduler, done)
        saved = pickle.loads(pickle.dumps((first.state_dict(), scheduler.state_dict())))
        wanted = _all_rates(first, scheduler, 15)
        again, other = _optimizer(), None
        for group in again.param_groups:
            group["lr"] *= 3  # made with other arguments
        for what in order:
            if what == "make":
                other = RESUMED[name](lrs, again)
            elif what == "optimizer":
                again.load_state_dict(saved[0])
            else:
                other.load_state_dict(saved[1])
        assert _all_rates(again, other, 15) == wanted


@pytest.mark.parametrize("order", ["one", "other"])
def test_schedules_side_by_side_may_be_loaded_in_any_order(order):
    def make(optimizer):
        return [lrs.ExponentialLR(optimizer, 0.9), lrs.StepLR(optimizer, 3, 0.5)]

    def go(optimizer, schedulers, steps):
        found = []
        for _ in range(steps):
            found.append([g["lr"] for g in optimizer.param_groups])
            for scheduler in schedulers:
                scheduler.step()
        return found

    first, again = _optimizer(), _optimizer()
    both, others = make(first), make(again)
    go(first, both, 4)
    states = [scheduler.state_dict() for scheduler in both]
    pairs = list(zip(others, states, strict=True))
    for scheduler, state in pairs if order == "one" else pairs[::-1]:
        scheduler.load_state_dict(state)
    assert go(again, others, 6) == go(first, both, 6)


FROM_A_STEP = {
    "lambda": lambda o, e: lrs.LambdaLR(o, lambda t: 0.9**t, e),
    "multiplicative": lambda o, e: lrs.MultiplicativeLR(o, lambda t: 1 - 1 / (2 + t), e),
    "step": lambda o, e: lrs.StepLR(o, 3, 0.5, e),
    "multi step": lambda o, e: lrs.MultiStepLR(o, [3, 3, 8], 0.3, e),
    "constant": lambda o, e: lrs.ConstantLR(o, 0.25, 6, e),
    "constant at once": lambda o, e: lrs.ConstantLR(o, 0.25, 0, e),
    "linear": lambda o, e: lrs.LinearLR(o, 0.1, 0.8, 9, e),
    "linear at once": lambda o, e: lrs.LinearLR(o, 0.1, 0.8, 0, e),
    "exponential": lambda o, e: lrs.ExponentialLR(o, 0.9, e),
    "polynomial": lambda o, e: lrs.PolynomialLR(o, 9, 2.0, e),
    "cosine": lambda o, e: lrs.CosineAnnealingLR(o, 5, 0.01, e),
    "restarts": lambda o, e: lrs.CosineAnnealingWarmRestarts(o, 3, 2, 0.01, e),
    "cycle": lambda o, e: lrs.OneCycleLR(o, 1.0, 40, last_epoch=e),
}


@pytest.mark.parametrize("loaded", ["after the step", "before the step", "not at all"])
@pytest.mark.parametrize("name", FROM_A_STEP)
def test_a_run_goes_on_from_a_step_that_is_given(name, loaded):
    """Whether the optimizer's state is from before or after the schedule's step of that epoch."""
    for last in (0, 1, 2, 3, 5, 6, 7, 9, 12):
        first = _optimizer()
        scheduler = FROM_A_STEP[name](first, -1)
        _all_rates(first, scheduler, last)
        before = first.state_dict()
        scheduler.step()
        state = before if loaded == "before the step" else first.state_dict()
        wanted = _all_rates(first, scheduler, 12)
        again = _optimizer()
        if loaded == "not at all":
            for group in again.param_groups:
                group["initial_lr"] = group["lr"]
        else:
            again.load_state_dict(state)
        other = FROM_A_STEP[name](again, last)
        assert _all_rates(again, other, 12) == pytest.approx(wanted, rel=1e-9, abs=1e-12)


def test_rates_that_another_schedule_had_a_hand_in_are_kept():
    first, again = _optimizer(), _optimizer()
    both = [lrs.ExponentialLR(first, 0.9), lrs.CosineAnnealingLR(first, 9)]
    for scheduler in both * 5:
        scheduler.step()
    again.load_state_dict(first.state_dict())
    others = [lrs.ExponentialLR(again, 0.9, 4), lrs.CosineAnnealingLR(again, 9, 0.0, 4)]
    assert [g["lr"] for g in again.param_groups] == [g["lr"] for g in first.param_groups]
    for one, other in zip(both, others, strict=True):
        one.step()
        other.step()
    assert [g["lr"] for g in again.param_groups] == [g["lr"] for g in first.param_groups]


WRONG = ["x", None, math.nan, [], {}, -3, True, [None, None], object(), ["a"], {0.5: "x"}, 1e400]


def _values(state):
    """A state with nothing in it that compares by identity."""
    return repr(state)


@pytest.mark.parametrize("name", RESUMED)
def test_no_entry_of_a_state_may_be_anything(name):
    """A schedule goes on with a state that is accepted; one that is refused changes nothing."""
    optimizer = _optimizer()
    scheduler = RESUMED[name](lrs, optimizer)
    _all_rates(optimizer, scheduler, 3)
    good = scheduler.state_dict()
    places = [(good, key) for key in good if key != "schedulers"]
    for inner in good.get("schedulers", ()):
        places += [(inner, key) for key in inner if key != "schedulers"]
    refused = 0
    for state, key in places:
        kept = state[key]
        for wrong in WRONG:
            state[key] = wrong
            taker_optimizer = _optimizer()
            taker = RESUMED[name](lrs, taker_optimizer)
            before = _values((taker.state_dict(), taker_optimizer.param_groups))
            try:
                taker.load_state_dict(good)
            except (TypeError, ValueError):
                refused += 1
                assert _values((taker.state_dict(), taker_optimizer.param_groups)) == before
            else:
                _all_rates(taker_optimizer, taker, 1)
        state[key] = kept
    assert refused >= 7 * len(places)


def test_a_plateau_goes_on_from_a_saved_state():
    first, again = _optimizer(), _optimizer()
    one, other = (lrs.ReduceLROnPlateau(o, patience=2) for o in (first, again))
    for loss in (1.0, 2.0, 2.0):
        one.step(loss)
    other.load_state_dict(one.state_dict())
    for scheduler in (one, other):
        scheduler.step(2.0)
        assert scheduler.get_last_lr() == pytest.approx([0.01, 0.07])


@pytest.mark.parametrize("several", [lrs.ChainedScheduler, "in a row"])
def test_a_state_of_other_schedules_changes_none(several):
    def make(*kinds):
        optimizer = _optimizer()
        made = [kind(optimizer, gamma=0.5) for kind in kinds]
        if several == "in a row":
            return lrs.SequentialLR(optimizer, made, [2])
        return several(made, optimizer)

    one = make(lrs.ExponentialLR, lambda o, gamma: lrs.StepLR(o, 2, gamma))
    other = make(lrs.ExponentialLR, lrs.ExponentialLR)
    for _ in range(3):
        other.step()
    before = one.state_dict()
    with pytest.raises(ValueError, match=r"\[StepLR\] a state has"):
        one.load_state_dict(other.state_dict())
    assert one.state_dict() == before


def test_going_on_from_a_step_that_is_given():
    optimizer = _optimizer()
    with pytest.raises(ValueError, match=r"\[StepLR\] to go on from step 13 group 0 needs"):
        lrs.StepLR(optimizer, 7, 0.5, last_epoch=13)
    p = mg.zeros(1, requires_grad=True)
    optimizer = optim.SGD([{"params": [p], "lr": 0.5, "initial_lr": 1.0}])
    assert lrs.StepLR(optimizer, 7, 0.5, last_epoch=13).get_last_lr() == [0.25]
    scheduler = lrs.CosineAnnealingWarmRestarts(optimizer, 4, 2, last_epoch=9)
    assert scheduler.get_last_lr() == pytest.approx([(1 + math.cos(math.pi * 6 / 8)) / 2])


def test_schedules_side_by_side_multiply():
    optimizer = _optimizer()
    one, other = lrs.ExponentialLR(optimizer, 0.9), lrs.StepLR(optimizer, 3, 0.5)
    for _ in range(10):
        one.step()
        other.step()
    rates = [g["lr"] for g in optimizer.param_groups]
    assert rates == pytest.approx([base * 0.9**10 * 0.5**3 for base in RATES])


def test_a_restart_may_be_gone_to_between_two_steps():
    optimizer = _optimizer()
    scheduler = lrs.CosineAnnealingWarmRestarts(optimizer, 5, 2)
    scheduler.step(17.5)  # 5 + 10, and 2.5 of 20
    wanted = [base * (1 + math.cos(math.pi * 2.5 / 20)) / 2 for base in RATES]
    assert scheduler.get_last_lr() == pytest.approx(wanted)
    assert (scheduler.last_epoch, scheduler.T_cur, scheduler.T_i) == (17, 2.5, 20)
    scheduler.step()
    assert scheduler.T_cur == 3.5
    scheduler.step(3)  # and back
    assert (scheduler.T_cur, scheduler.T_i) == (3.0, 5)


def test_a_cycle_ends_with_its_steps():
    optimizer = _optimizer()
    scheduler = lrs.OneCycleLR(optimizer, 1.0, 10)
    for _ in range(10):
        scheduler.step()
    assert scheduler.get_last_lr() == pytest.approx([4e-6, 4e-6])
    with pytest.raises(ValueError, match=r"\[OneCycleLR\] step 11 of a run of 10 steps"):
        scheduler.step()


def test_a_cycle_may_leave_momenta_alone():
    optimizer = _optimizer(method="AdamW")
    lrs.OneCycleLR(optimizer, 1.0, 10, cycle_momentum=False).step()
    assert optimizer.param_groups[0]["betas"] == (0.9, 0.999)


def test_sequences_and_chains_nest():
    optimizer = _optimizer()
    warmup = lrs.LinearLR(optimizer, 0.5, total_iters=2)
    chain = lrs.ChainedScheduler([lrs.ExponentialLR(optimizer, 0.5), lrs.StepLR(optimizer, 2, 0.1)])
    inner = lrs.SequentialLR(optimizer, [chain, lrs.ConstantLR(optimizer, 0.3, 9)], [3])
    scheduler = lrs.SequentialLR(optimizer, [warmup, inner], [2])
    found = [rate[0] for rate in _rates(optimizer, scheduler, 7)]
    assert found == pytest.approx([0.05, 0.075, 0.1, 0.05, 0.0025, 0.03, 0.03])


def test_groups_that_come_later_keep_their_rate_where_it_is_no_product():
    optimizer = _optimizer()
    one = lrs.LambdaLR(optimizer, lambda t: 0.5)
    optimizer.add_param_group({"params": [mg.zeros(2, requires_grad=True)], "lr": 0.8})
    one.step()
    assert [g["lr"] for g in optimizer.param_groups] == pytest.approx([0.05, 0.35, 0.8])


def test_an_optimizers_state_keeps_what_a_schedule_needs():
    optimizer = _optimizer()
    lrs.ExponentialLR(optimizer, 0.5).step()
    other = _optimizer()
    other.load_state_dict(optimizer.state_dict())
    scheduler = lrs.LambdaLR(other, lambda t: 1.0)
    assert scheduler.base_lrs == RATES


@pytest.mark.parametrize(
    ("error", "make", "message"),
    [
        (TypeError, lambda o: lrs.StepLR([], 3), r"\[StepLR\] expected an optimizer, not list"),
        (ValueError, lambda o: lrs.StepLR(o, 0), r"\[StepLR\] step_size is 0"),
        (TypeError, lambda o: lrs.StepLR(o, 2.5), r"\[StepLR\] step_size must be an integer"),
        (TypeError, lambda o: lrs.StepLR(o, 3, "x"), r"\[StepLR\] gamma must be a number"),
        (ValueError, lambda o: lrs.ExponentialLR(o, math.nan), "gamma is nan, but must be a num"),
        (ValueError, lambda o: lrs.LinearLR(o, 0.0), r"\[LinearLR\] from a start_factor of 0"),
        (ValueError, lambda o: lrs.LinearLR(o, end_factor=2.0), r"end_factor is 2.0, but must be"),
        (ValueError, lambda o: lrs.ConstantLR(o, 0.0), r"\[ConstantLR\] from a factor of 0"),
        (ValueError, lambda o: lrs.LambdaLR(o, [abs]), "lr_lambda has 1 entries for 2 groups"),
        (TypeError, lambda o: lrs.LambdaLR(o, 0.5), r"\[LambdaLR\] lr_lambda must be a function"),
        (ValueError, lambda o: lrs.CosineAnnealingLR(o, 0), "T_max is 0"),
        (ValueError, lambda o: lrs.CosineAnnealingWarmRestarts(o, 5).step(-1), "epoch is -1"),
        (ValueError, lambda o: lrs.OneCycleLR(o, 1.0), "give total_steps, or epochs and"),
        (ValueError, lambda o: lrs.OneCycleLR(o, 1.0, 9, pct_start=2), "pct_start is 2"),
        (ValueError, lambda o: lrs.OneCycleLR(o, 1.0, 9, anneal_strategy="x"), "'cos' or"),
        (ValueError, lambda o: lrs.OneCycleLR(o, [1.0], 9), "max_lr has 1 entries for 2 groups"),
        (ValueError, lambda o: lrs.ReduceLROnPlateau(o, "least"), "mode is 'least'"),
        (ValueError, lambda o: lrs.ReduceLROnPlateau(o, factor=1.0), "factor is 1.0, but must be"),
        (TypeError, lambda o: lrs.ReduceLROnPlateau(o).step(), "step needs the metric"),
        (ValueError, lambda o: lrs.ChainedScheduler([]), "needs at least one schedule"),
        (
            TypeError,
            lambda o: lrs.ChainedScheduler([lrs.ReduceLROnPlateau(o)]),
            r"\[ChainedScheduler\] cannot step a ReduceLROnPlateau with others",
        ),
        (
            ValueError,
            lambda o: lrs.ChainedScheduler([lrs.StepLR(o, 1), lrs.StepLR(_optimizer(), 1)]),
            "not all for the same optimizer",
        ),
        (
            ValueError,
            lambda o: lrs.SequentialLR(o, [lrs.StepLR(o, 1)], [3]),
            "1 schedules need 0 milestones, not 1",
        ),
        (
            ValueError,
            lambda o: lrs.SequentialLR(o, [lrs.StepLR(o, 1)] * 3, [5, 2]),
            r"the milestones \[5, 2\] do not rise",
        ),
        (TypeError, lambda o: lrs.StepLR(o, 3).load_state_dict(3), r"\[StepLR\] a state is what"),
        (
            ValueError,
            lambda o: lrs.StepLR(o, 3).load_state_dict({"gamma": 1}),
            r"\[StepLR\] a state has _last_lr, base_lrs, gamma, last_epoch, step_size, this one",
        ),
        (NotImplementedError, lambda o: lrs.LRScheduler(o), "has no get_lr method"),
    ],
)
def test_errors(error, make, message):
    with pytest.raises(error, match=message):
        make(_optimizer())


def test_no_momentum_to_cycle():
    class Plain(optim.Optimizer):
        def __init__(self, params):
            super().__init__(params, {"lr": 0.1})

    plain = Plain([mg.zeros(1, requires_grad=True)])
    with pytest.raises(ValueError, match=r"\[OneCycleLR\] Plain has no momentum"):
        lrs.OneCycleLR(plain, 1.0, 10)
    lrs.OneCycleLR(plain, 1.0, 10, cycle_momentum=False)
