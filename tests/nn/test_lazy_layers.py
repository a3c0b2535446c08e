"""Layers that learn the size of their input from the first one."""

from __future__ import annotations

import copy
import pickle
import re

import pytest

import minigrad as mg
from minigrad import nn

pytestmark = pytest.mark.usefixtures("restore_random")

LAYERS = {
    "Linear": (lambda n: n(4), (2, 3)),
    "Conv1d": (lambda n: n(4, 2), (2, 3, 5)),
    "Conv2d": (lambda n: n(4, 3, padding="same", groups=2), (2, 6, 5, 5)),
    "Conv3d": (lambda n: n(4, 2, 2, bias=False), (2, 3, 4, 4, 4)),
    "ConvTranspose1d": (lambda n: n(4, 2), (2, 3, 5)),
    "ConvTranspose2d": (lambda n: n(4, 2, 2, groups=2), (2, 6, 5, 5)),
    "ConvTranspose3d": (lambda n: n(4, 2, 2, 1, 1, dilation=2), (2, 3, 4, 4, 4)),
    "BatchNorm1d": (lambda n: n(), (5, 3)),
    "BatchNorm2d": (lambda n: n(affine=False), (2, 3, 4, 4)),
    "BatchNorm3d": (lambda n: n(track_running_stats=False), (2, 3, 4, 4, 4)),
    "InstanceNorm1d": (lambda n: n(), (2, 3, 4)),
    "InstanceNorm2d": (lambda n: n(affine=False), (2, 3, 4, 4)),
    "InstanceNorm3d": (lambda n: n(track_running_stats=False), (2, 3, 4, 4, 4)),
}
EACH = pytest.mark.parametrize("name", LAYERS)


def made(name):
    make, shape = LAYERS[name]
    return make(getattr(nn, f"Lazy{name}")), mg.ones(shape)


@EACH
def test_the_first_call_makes_an_ordinary_layer(name):
    layer, x = made(name)
    held = dict(layer.named_parameters())
    assert layer.has_uninitialized_params()
    assert all(repr(p) == "<UninitializedParameter>" for p in held.values())
    y = layer(x)
    assert type(layer) is getattr(nn, name)
    assert {n: id(p) for n, p in layer.named_parameters()} == {n: id(p) for n, p in held.items()}
    assert all(type(p) is nn.Parameter and p.requires_grad for p in held.values())
    assert all(type(b) is mg.Tensor for b in layer.buffers())
    if held:
        y.sum().backward()
        assert all(p.grad.shape == p.shape for p in held.values())
    assert layer(x).shape == y.shape
    fresh = copy.deepcopy(layer)
    assert fresh.load_state_dict(layer.state_dict()) == ([], [])


@EACH
def test_as_pytorch(name):
    torch = pytest.importorskip("torch")
    make, shape = LAYERS[name]
    theirs = make(getattr(torch.nn, f"Lazy{name}"))
    ours = made(name)[0]
    assert repr(ours) == repr(theirs)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    x = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    theirs(x)
    ours(mg.tensor(x.numpy()))
    assert repr(ours) == repr(theirs)
    ours.load_state_dict(theirs.state_dict())
    late = made(name)[0]
    assert late.load_state_dict(theirs.state_dict()) == ([], [])  # before its first call
    expected = theirs.eval()(x).detach()
    for layer in (ours, late):
        found = layer.eval()(mg.tensor(x.numpy())).detach()
        assert type(layer) is type(ours)
        torch.testing.assert_close(torch.tensor(found.numpy()), expected, rtol=1e-5, atol=1e-5)
    assert repr(late) == repr(theirs)


@EACH
def test_copies(name):
    layer, x = made(name)
    for twin in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert twin.has_uninitialized_params()
        assert twin.load_state_dict(layer.state_dict()) == ([], [])
        assert twin.has_uninitialized_params()
        assert twin(x).shape == made(name)[0](x).shape
    assert layer.has_uninitialized_params()


def test_without_a_batch():
    layer = nn.LazyInstanceNorm2d(dtype=mg.float64)
    assert layer(mg.ones(3, 4, 5)).shape == (3, 4, 5)
    assert layer.num_features == 3
    assert layer.weight.dtype is layer.running_mean.dtype is mg.float64
    layer = nn.LazyConv2d(2, 3)
    assert layer(mg.ones(5, 4, 4)).shape == (2, 2, 2)


def test_starting_values():
    layer = nn.LazyLinear(2000)
    layer(mg.ones(1, 4))
    assert abs(layer.weight).max().item() == pytest.approx(0.5, abs=1e-3)
    assert abs(layer.bias).max().item() == pytest.approx(0.5, abs=1e-3)


def test_an_optimizer_may_hold_parameters_from_the_start():
    model = nn.Sequential(nn.LazyConv2d(3, 2), nn.ReLU(), nn.Flatten(), nn.LazyLinear(1))
    optimizer = mg.optim.SGD(model.parameters(), lr=0.1)
    before = model(mg.ones(2, 1, 3, 3)).sum()
    before.backward()
    optimizer.step()
    assert model(mg.ones(2, 1, 3, 3)).sum().item() < before.item()


def test_hooks_and_dtypes():
    layer = nn.LazyLinear(2).double()
    seen = []
    layer.register_forward_hook(lambda module, args, output: seen.append(output.shape))
    layer(mg.ones(1, 3, dtype=mg.float64))
    layer(mg.ones(2, 3, dtype=mg.float64))
    assert seen == [(1, 2), (2, 2)]
    assert layer.weight.dtype is mg.float64
    assert nn.LazyLinear(2, dtype=mg.float64).weight.dtype is mg.float64


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (
            lambda: nn.LazyLinear(2).weight.shape,
            "[UninitializedParameter] has no shape yet: call its module once with an input",
        ),
        (lambda: nn.init.zeros_(nn.LazyLinear(2).weight).shape, "has no shape yet"),
        (lambda: nn.LazyLinear(2).bias.numel(), "has no shape yet"),
        (lambda: nn.LazyLinear(2).bias.size(), "has no shape yet"),
        (lambda: nn.LazyLinear(-1), "[LazyLinear] out_features is -1, but must be at least 0"),
        (
            lambda: nn.LazyConv2d(2, 1)(mg.ones(3)),
            "[LazyConv2d] the input has shape (3,), but must have 3 or 4 dimensions",
        ),
        (lambda: nn.LazyLinear(2)(mg.tensor(1.0)), "[LazyLinear] the input is a number"),
        (lambda: nn.LazyConv1d(3, 1, groups=2), "groups=2 must divide out_channels=3"),
    ],
)
def test_refusals(call, text):
    with pytest.raises(ValueError, match=re.escape(text)):
        call()
