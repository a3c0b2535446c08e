"""Refusals of optimizers: states, options and gradients that do not fit, with nothing changed."""

from __future__ import annotations

import copy
import math
import pickle

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn, optim

METHODS = {
    "SGD": lambda p: optim.SGD(p, lr=0.1, momentum=0.9),
    "Adam": lambda p: optim.Adam(p, lr=0.1),
    "amsgrad": lambda p: optim.Adam(p, lr=0.1, amsgrad=True),
    "AdamW": lambda p: optim.AdamW(p, lr=0.1),
    "RMSprop": lambda p: optim.RMSprop(p, lr=0.1, momentum=0.9, centered=True),
}


def _stepped(name, steps=2):
    """An optimizer of two groups after some steps, and its parameters."""
    params = [mg.tensor([1.0, 2.0], requires_grad=True) for _ in range(3)]
    optimizer = METHODS[name]([{"params": params[:2]}, {"params": params[2:], "lr": 0.01}])
    for step in range(steps):
        for k, p in enumerate(params):
            p.grad = mg.tensor([k + 1.0, step + 0.5])
        optimizer.step()
    return optimizer, params


def _everything(optimizer):
    """All that a step or a load may change, as plain values."""

    def plain(value):
        return value.tolist() if isinstance(value, mg.Tensor) else value

    state = optimizer.state_dict()
    return (
        {k: {n: plain(v) for n, v in s.items()} for k, s in state["state"].items()},
        state["param_groups"],
        [p.tolist() for group in optimizer.param_groups for p in group["params"]],
    )


# ---- states --------------------------------------------------------------------------------------

BAD_VALUES = {
    "text": "x",
    "a number": 3.0,
    "a list": [1.0, 2.0],
    "another shape": mg.zeros(3),
    "no dimensions": mg.tensor(1.0),
    "integers": mg.tensor([1, 2]),
    "strings": np.array(["a", "b"]),
}
BAD_STEPS = {
    "text": "a",
    "negative": -5,
    "huge": 10**30,
    "beyond floats": 10**400,
    "nan": math.nan,
    "infinite": math.inf,
    "a half": 1.5,
    "bool": True,
    "none": None,
    "a vector": mg.zeros(2),
}


def _refused(optimizer, state):
    before = _everything(optimizer)
    with pytest.raises((TypeError, ValueError), match=rf"^\[{type(optimizer).__name__}\]"):
        optimizer.load_state_dict(state)
    assert _everything(optimizer) == before


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("wrong", BAD_VALUES)
def test_unusable_tensors_in_a_state_are_refused(name, wrong):
    for key in _stepped(name)[0].state_dict()["state"][2]:
        optimizer, _ = _stepped(name)
        state = copy.deepcopy(optimizer.state_dict())
        if key != "step":
            state["state"][2][key] = BAD_VALUES[wrong]  # of the last parameter
            _refused(optimizer, state)


@pytest.mark.parametrize("name", [name for name in METHODS if name != "SGD"])
@pytest.mark.parametrize("wrong", BAD_STEPS)
def test_unusable_numbers_of_steps_are_refused(name, wrong):
    optimizer, _ = _stepped(name)
    state = copy.deepcopy(optimizer.state_dict())
    state["state"][2]["step"] = BAD_STEPS[wrong]
    _refused(optimizer, state)


@pytest.mark.parametrize("name", METHODS)
def test_states_with_entries_missing_or_foreign_are_refused(name):
    optimizer, _ = _stepped(name)
    good = optimizer.state_dict()
    optional = {"max_exp_avg_sq", "momentum_buffer", "grad_avg"} if name != "SGD" else set()
    for key in good["state"][2].keys() - optional:
        state = copy.deepcopy(good)
        del state["state"][2][key]
        if state["state"][2]:  # nothing at all says that there was no step
            _refused(optimizer, state)
    for place, foreign in ((2, {"other": mg.zeros(2)}), (7, good["state"][2]), ("a", {})):
        state = copy.deepcopy(good)
        state["state"].setdefault(place, {}).update(foreign)
        _refused(optimizer, state)


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize(
    ("number", "change"),
    [
        (1, {"lr": -1.0}),
        (1, {"lr": "fast"}),
        (1, {"lr": math.nan}),
        (1, {"lr": None}),
        (1, {"maximize": "no"}),
        (1, {"initial_lr": "x"}),
        (1, {"weight_decay": math.inf}),
        (1, {"speed": 1.0}),
        (0, {"params": [0, 0]}),
        (0, {"params": [0, "a"]}),
        (0, {"params": [0, 2]}),
        (0, {"params": [0]}),
        (0, {"params": [[0], [1]]}),
    ],
)
def test_groups_that_do_not_fit_are_refused(name, number, change):
    optimizer, _ = _stepped(name)
    state = copy.deepcopy(optimizer.state_dict())
    state["param_groups"][number].update(change)
    _refused(optimizer, state)


@pytest.mark.parametrize("name", METHODS)
def test_groups_without_an_option_and_other_numbers_of_groups_are_refused(name):
    optimizer, _ = _stepped(name)
    for option in optimizer.defaults:
        state = copy.deepcopy(optimizer.state_dict())
        del state["param_groups"][1][option]
        _refused(optimizer, state)
    groups = optimizer.state_dict()["param_groups"]
    for some in (groups[:1], [*groups, groups[1]], groups[::-1]):
        _refused(optimizer, {**optimizer.state_dict(), "param_groups": some})


@pytest.mark.parametrize("name", METHODS)
def test_pytorchs_own_state_is_taken(name):
    torch = pytest.importorskip("torch")
    kind = {"amsgrad": "Adam"}.get(name, name)
    options = {
        "SGD": {"momentum": 0.9},
        "amsgrad": {"amsgrad": True},
        "RMSprop": {"momentum": 0.9, "centered": True},
    }.get(name, {})
    p = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
    theirs = getattr(torch.optim, kind)([p], lr=0.1, **options)
    q = mg.tensor([1.0, 2.0], dtype=mg.float64, requires_grad=True)
    ours = METHODS[name]([q])
    for step in range(6):
        if step == 3:
            ours.load_state_dict(theirs.state_dict())
            q.data = mg.tensor(p.detach().numpy())
        g = np.array([1.0, -0.5]) * (step + 1)
        p.grad, q.grad = torch.tensor(g), mg.tensor(g)
        theirs.step()
        if step >= 3:
            ours.step()
    np.testing.assert_allclose(q.tolist(), p.tolist(), rtol=1e-12)


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("copied", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_a_state_that_was_copied_goes_on(name, copied):
    optimizer, params = _stepped(name)
    other, others = _stepped(name, steps=1)
    other.load_state_dict(copied(optimizer.state_dict()))
    for p, q in zip(params, others, strict=True):
        q.data = p.detach().clone()
        p.grad = q.grad = mg.tensor([0.3, -2.0])
    optimizer.step()
    other.step()
    assert _everything(optimizer) == _everything(other)


# ---- steps ---------------------------------------------------------------------------------------


def _spoil_gradient(optimizer, params):
    params[2].data = mg.ones(3)


def _spoil_dtype(optimizer, params):
    params[2].data = mg.ones(2, dtype=mg.float64)
    params[2].grad = mg.ones(2, dtype=mg.float64)


def _spoil_state(value):
    def spoil(optimizer, params):
        state = optimizer.state[params[2]]
        state[next(key for key in state if key != "step")] = value

    return spoil


def _spoil_option(**options):
    def spoil(optimizer, params):
        optimizer.param_groups[1].update(options)

    return spoil


SPOILS = {
    "gradient": _spoil_gradient,
    "dtype": _spoil_dtype,
    "state of text": _spoil_state("x"),
    "state of another shape": _spoil_state(mg.zeros(3)),
    "state of another dtype": _spoil_state(mg.zeros(2, dtype=mg.float64)),
    "rate of text": _spoil_option(lr="x"),
    "rate of nan": _spoil_option(lr=math.nan),
    "no rate": _spoil_option(lr=None),
    "negative rate": _spoil_option(lr=-0.1),
    "decay": _spoil_option(weight_decay=math.inf),
    "switch": _spoil_option(maximize="yes"),
}


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("spoil", SPOILS)
def test_where_the_last_parameter_cannot_move_none_moves(name, spoil):
    optimizer, params = _stepped(name)
    SPOILS[spoil](optimizer, params)
    before = _everything(optimizer)
    for _ in range(2):
        with pytest.raises((TypeError, ValueError)):
            optimizer.step()
        assert repr(_everything(optimizer)) == repr(before)
    assert mg.is_grad_enabled()


@pytest.mark.parametrize("name", METHODS)
def test_where_one_that_starts_later_cannot_move_none_moves(name):
    """Parameters that start with this step move in a call of their own."""
    optimizer, _params = _stepped(name)
    late = [mg.tensor([1.0, 2.0], requires_grad=True) for _ in range(2)]
    optimizer.add_param_group({"params": late})
    for p in late:
        p.grad = mg.ones(2)
    late[1].data = mg.ones(3)
    before = _everything(optimizer)
    with pytest.raises(ValueError, match=r"a parameter is float32 of shape \(3,\), its gradient"):
        optimizer.step()
    assert _everything(optimizer) == before
    late[1].grad = mg.ones(3)
    optimizer.step()
    assert late[1].tolist() != [1.0, 1.0, 1.0]


@pytest.mark.parametrize("step", ["a", -5, 10**30, math.nan, None])
@pytest.mark.parametrize("name", [name for name in METHODS if name != "SGD"])
def test_a_number_of_steps_that_was_spoiled_moves_nothing(name, step):
    optimizer, params = _stepped(name)
    optimizer.state[params[2]]["step"] = step
    before = _everything(optimizer)[2]
    with pytest.raises((TypeError, ValueError), match="'step' of a parameter"):
        optimizer.step()
    assert _everything(optimizer)[2] == before


@pytest.mark.parametrize("option", ["dampening", "nesterov", "momentum"])
def test_options_of_sgd_are_all_checked(option):
    p = mg.ones(2, requires_grad=True)
    for wrong in ("x", math.nan, None):
        with pytest.raises((TypeError, ValueError)):
            optim.SGD([p], **{"momentum": 0.9, option: wrong})
    optim.SGD([p], momentum=0.9, dampening=-0.5)


# ---- names ---------------------------------------------------------------------------------------


@pytest.mark.usefixtures("restore_random")
def test_parameters_may_have_names():
    layer = nn.Linear(2, 3)
    optimizer = optim.SGD(layer.named_parameters(), lr=0.1)
    (group,) = optimizer.param_groups
    assert group["params"] == list(layer.parameters())
    assert group["param_names"] == ["weight", "bias"]
    assert optimizer.state_dict()["param_groups"][0]["param_names"] == ["weight", "bias"]
    optimizer.add_param_group({"params": [("scale", mg.ones(1, requires_grad=True))], "lr": 1.0})
    assert optimizer.param_groups[1]["param_names"] == ["scale"]
    plain = optim.SGD([{"params": list(layer.parameters())}, {"params": mg.ones(1)}], lr=5.0)
    plain.load_state_dict(optimizer.state_dict())
    assert "param_names" not in plain.param_groups[0]
    assert [group["lr"] for group in plain.param_groups] == [0.1, 1.0]
    optimizer.load_state_dict(plain.state_dict())
    assert optimizer.param_groups[1]["param_names"] == ["scale"]


@pytest.mark.parametrize(
    "make",
    [
        lambda a, b: optim.SGD([("a", a), b]),
        lambda a, b: optim.SGD([a, ("b", b)]),
        lambda a, b: optim.SGD([("a", a), ("a", b)]),
        lambda a, b: optim.SGD([("a", a), (1, b)]),
        lambda a, b: optim.SGD([("a", a, 1)]),
        lambda a, b: optim.SGD([{"params": [("a", a)]}, {"params": [b]}]),
        lambda a, b: optim.SGD([{"params": [a]}, {"params": [("b", b)]}]),
        lambda a, b: optim.SGD([{"params": [("a", a)]}, {"params": [("a", b)]}]),
        lambda a, b: optim.SGD([{"params": [a, b], "param_names": ["a"]}]),
    ],
)
def test_names_that_do_not_fit_are_refused(make):
    with pytest.raises((TypeError, ValueError), match=r"^\[SGD\]"):
        make(mg.ones(1, requires_grad=True), mg.ones(2, requires_grad=True))
