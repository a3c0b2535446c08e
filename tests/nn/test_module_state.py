"""Modules' states: loaded whole or not at all, from whatever library, with extra states."""

from __future__ import annotations

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn


class Two(nn.Module):
    """Parameters, and buffers that may be hard to write into."""

    def __init__(self, buffer=None):
        self.a, self.b = nn.Parameter(mg.ones(2)), nn.Parameter(mg.full((2,), 2.0))
        self.register_buffer("c", mg.zeros(3) if buffer is None else buffer)


def _read_only():
    array = np.zeros(3, dtype=np.float32)
    array.flags.writeable = False
    return mg.from_numpy(array)


@pytest.mark.parametrize(
    ("buffer", "value"),
    [
        (lambda: mg.zeros(1).expand(3), mg.ones(3)),
        (_read_only, mg.ones(3)),
        (lambda: mg.zeros(3), mg.ones(4)),
        (lambda: mg.zeros(3), mg.ones(1)),
        (lambda: mg.zeros(3), "x"),
        (lambda: mg.zeros(3), None),
        (lambda: mg.zeros(3), ["x", "y", "z"]),
        (lambda: mg.zeros(3), np.array(["x", "y", "z"])),
        (lambda: mg.zeros(3), np.zeros(3, dtype=complex)),
        (lambda: mg.zeros(3), object()),
    ],
)
@pytest.mark.parametrize("strict", [True, False])
def test_where_the_last_entry_does_not_fit_none_is_loaded(buffer, value, strict):
    module = Two(buffer())
    with pytest.raises((TypeError, ValueError)):
        module.load_state_dict({"a": mg.zeros(2), "b": mg.zeros(2), "c": value}, strict=strict)
    assert (module.a.tolist(), module.b.tolist()) == ([1.0, 1.0], [2.0, 2.0])
    assert module.c.tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("change", [{"d": mg.ones(1)}, {5: mg.ones(1)}, {"c": None}])
def test_strict_names_are_checked_before_anything_is_written(change):
    module = Two()
    state = {"a": mg.zeros(2), "b": mg.zeros(2), "c": mg.ones(3), **change}
    if change == {"c": None}:
        del state["c"]
    with pytest.raises(ValueError, match=r"missing: c|unexpected: [d5]"):
        module.load_state_dict(state)
    assert module.a.tolist() == [1.0, 1.0]


def test_values_may_lie_in_the_modules_own_memory():
    module = Two()
    module.load_state_dict({"a": module.b, "b": module.a.detach(), "c": module.c})
    assert (module.a.tolist(), module.b.tolist()) == ([2.0, 2.0], [1.0, 1.0])


@pytest.mark.usefixtures("restore_random")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_pytorchs_states_are_loaded(dtype):
    torch = pytest.importorskip("torch")
    kind = getattr(torch, dtype)
    theirs = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3)).to(kind)
    theirs(torch.randn(4, 2, dtype=kind))
    ours = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3)).to(dtype)
    for state in (theirs.state_dict(), {**theirs.state_dict(), **dict(theirs.named_parameters())}):
        ours.load_state_dict(state)
        for name, value in theirs.state_dict().items():
            np.testing.assert_array_equal(ours.state_dict()[name].numpy(), value.numpy())


# ---- extra states --------------------------------------------------------------------------------


class Counting(nn.Module):
    """A part that remembers more than tensors."""

    def __init__(self):
        self.scale = nn.Parameter(mg.ones(1))
        self.seen = 0

    def get_extra_state(self):
        return {"seen": self.seen}

    def set_extra_state(self, state):
        self.seen = state["seen"]


def test_extra_states_are_saved_and_loaded():
    one, other = nn.Sequential(Counting(), nn.ReLU()), nn.Sequential(Counting(), nn.ReLU())
    one[0].seen = 3
    state = one.state_dict()
    assert list(state) == ["0.scale", "0._extra_state"]
    assert state["0._extra_state"] == {"seen": 3}
    assert other.load_state_dict(state) == ([], [])
    assert other[0].seen == 3
    del state["0._extra_state"]
    with pytest.raises(ValueError, match=r"missing: 0\._extra_state"):
        other.load_state_dict(state)
    assert other.load_state_dict(state, strict=False).missing_keys == ["0._extra_state"]
    with pytest.raises(ValueError, match="unexpected: _extra_state"):
        nn.ReLU().load_state_dict({"_extra_state": 1})
    for method in (nn.Module().get_extra_state, lambda: nn.Module().set_extra_state(1)):
        with pytest.raises(NotImplementedError, match=r"^\[Module\] has no .et_extra_state"):
            method()


def test_extra_states_wait_for_what_does_not_fit():
    one = Counting()
    with pytest.raises(ValueError, match="shape"):
        one.load_state_dict({"scale": mg.ones(2), "_extra_state": {"seen": 7}})
    assert one.seen == 0


# ---- names and modes -----------------------------------------------------------------------------


def test_names_in_use_are_refused():
    module = Two()
    for call in (
        lambda: module.register_parameter("c", nn.Parameter(mg.ones(1))),
        lambda: module.register_parameter("forward", None),
        lambda: module.register_buffer("a", mg.ones(1)),
        lambda: module.add_module("a", nn.ReLU()),
        lambda: module.add_module("c", nn.ReLU()),
        lambda: module.add_module("forward", nn.ReLU()),
        lambda: module.add_module("x.y", nn.ReLU()),
    ):
        with pytest.raises(KeyError, match=r"\[(register_parameter|register_buffer|add_module)\]"):
            call()
    module.add_module("layer", nn.ReLU())
    module.add_module("layer", nn.Tanh())
    assert repr(module.layer) == "Tanh()"
    with pytest.raises(TypeError, match=r"\[add_module\] 'layer' is a int, not a Module"):
        module.add_module("layer", 3)


@pytest.mark.parametrize("mode", ["x", 1, None, mg.tensor(True)])
def test_training_is_true_or_false(mode):
    module = nn.Sequential(nn.ReLU())
    with pytest.raises(TypeError, match=r"\[train\] mode must be True or False"):
        module.train(mode)
    assert not module.train(np.bool_(False))[0].training


def test_an_extra_state_that_is_refused_leaves_tensors_as_they_were():
    class Refusing(nn.Module):
        def __init__(self):
            self.scale = nn.Parameter(mg.ones(2))
            self.register_buffer("seen", mg.zeros(1))

        def get_extra_state(self):
            return 1

        def set_extra_state(self, state):
            assert self.scale.tolist() == [3.0, 3.0]  # tensors are there already
            raise RuntimeError("refused")

    module = Refusing()
    state = {"scale": mg.full((2,), 3.0), "seen": mg.ones(1), "_extra_state": 2}
    with pytest.raises(RuntimeError, match="refused"):
        module.load_state_dict(state)
    assert (module.scale.tolist(), module.seen.tolist()) == ([1.0, 1.0], [0.0])


# ---- PyTorch's dicts of what a module holds ------------------------------------------------------


@pytest.mark.usefixtures("restore_random")
def test_modules_and_parameters_as_dicts():
    model = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1, bias=False))
    assert list(model._modules) == ["0", "1", "2"]
    assert model._modules["1"] is model[1]
    assert [type(m).__name__ for m in model._modules.values()] == ["Linear", "ReLU", "Linear"]
    assert list(model[0]._parameters) == ["weight", "bias"]
    assert model[0]._parameters["bias"] is model[0].bias
    assert "bias" not in model[2]._parameters
    assert len(model._parameters) == 0
    assert repr(nn.Linear(1, 1)._modules) == "{}"
    model._modules["1"] = nn.Tanh()
    del model._modules["2"]
    assert repr(model) == repr(nn.Sequential(nn.Linear(2, 3), nn.Tanh()))
    model[0]._parameters["weight"] = new = nn.Parameter(mg.ones(3, 2))
    assert next(model.parameters()) is new
    with pytest.raises(KeyError, match="training"):
        model._modules["training"]
    with pytest.raises(TypeError, match=r"^\[Linear\] 'weight' cannot be Tensor among"):
        model[0]._parameters["weight"] = mg.ones(3, 2)  # would not be found again
    with pytest.raises(AttributeError):
        model._parameters = {}
