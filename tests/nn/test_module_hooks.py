"""Hooks of modules in backward and around states, states that are assigned, and parts by name."""

from __future__ import annotations

import re

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn

pytestmark = pytest.mark.usefixtures("restore_random")


def model():
    return nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1)).double()


# ---- backward ------------------------------------------------------------------------------------


def test_backward_hooks_see_gradients():
    layer, seen = nn.Linear(2, 3), []
    layer.register_full_backward_pre_hook(lambda m, out: seen.append((m, out)))
    layer.register_full_backward_hook(lambda m, given, out: seen.append((m, given, out)))
    x = mg.ones(4, 2, requires_grad=True)
    (layer(x) * 2.0).sum().backward()
    (first, (out,)), (second, (given,), (again,)) = seen
    assert first is second is layer
    assert out is again
    assert out.tolist() == [[2.0] * 3] * 4
    assert given.tolist() == x.grad.tolist() == (out @ layer.weight).tolist()
    assert layer.weight.grad.tolist() == (out.mT @ x).tolist()


def test_what_they_return_replaces_gradients():
    layer = nn.ReLU()
    first = layer.register_full_backward_pre_hook(lambda m, out: (out[0] * 10.0,))
    second = layer.register_full_backward_hook(lambda m, given, out: (given[0] + 1.0,))
    x = mg.tensor([1.0, -1.0], requires_grad=True)
    layer(x).sum().backward()
    assert x.grad.tolist() == [11.0, 1.0]
    first.remove()
    second.remove()
    x.grad = None
    layer(x).sum().backward()
    assert x.grad.tolist() == [1.0, 0.0]
    assert "forward" not in vars(layer)


def test_arguments_and_outputs_of_all_kinds():
    class Pair(nn.Module):
        def forward(self, x, word, y, z):
            return x * y, word, (y + z).detach()

    seen, pair = [], Pair()
    pair.register_full_backward_hook(lambda m, *both: seen.append(both))
    x, y = (mg.ones(2, requires_grad=True) for _ in range(2))
    outputs = pair(x, "word", y, mg.ones(2))
    assert outputs[1] == "word"
    outputs[0].sum().backward()
    ((given, out),) = seen
    assert [g is None for g in given] == [False, True, False, True]
    assert [g is None for g in out] == [False, True, True]
    with mg.no_grad():
        assert not pair(x, "word", y, mg.ones(2))[0].requires_grad
    pair(mg.ones(2), "word", mg.ones(2), mg.ones(2))
    assert len(seen) == 1


def test_an_input_that_requires_no_grad():
    layer, seen = nn.Linear(2, 1), []
    layer.register_full_backward_hook(lambda m, given, out: seen.append((given, len(out))))
    layer(mg.ones(3, 2)).sum().backward()
    assert seen == [((None,), 1)]


def test_second_derivatives_through_hooks(rng):
    net = model()
    net[0].register_full_backward_hook(lambda m, given, out: (given[0] * 1.0,))
    x = mg.tensor(rng.standard_normal((2, 2)), requires_grad=True)
    assert mg.gradcheck(net, (x,))
    assert mg.gradgradcheck(net, (x,))


def test_a_wrong_number_of_gradients():
    layer = nn.ReLU()
    layer.register_full_backward_hook(lambda m, given, out: (1, 2))
    text = "[ReLU] a backward hook returned 2 gradients for 1 inputs: return None or one for each"
    with pytest.raises(RuntimeError, match=re.escape(text)):
        layer(mg.ones(2, requires_grad=True)).sum().backward()


def test_backward_hooks_as_pytorch(rng):
    torch = pytest.importorskip("torch")
    values, seen = rng.standard_normal((4, 2)), []
    state = {name: v.numpy() for name, v in model().state_dict().items()}
    for t in (torch, mg):
        n, own = t.nn, []
        net = n.Sequential(n.Linear(2, 3), n.Tanh(), n.Linear(3, 1)).double()
        net.load_state_dict({name: t.tensor(v) for name, v in state.items()})
        for name, part in net.named_modules():
            part.register_full_backward_pre_hook(
                lambda m, out, own=own, name=name: own.append((name, *out))
            )
            part.register_full_backward_hook(
                lambda m, given, out, own=own, name=name: own.append((name, *given, *out))
            )
        x = t.tensor(values, requires_grad=True)
        net(x).square().sum().backward()
        seen.append([(name, *[g.numpy() for g in rest]) for name, *rest in own])
    theirs, ours = seen
    assert [entry[0] for entry in ours] == [entry[0] for entry in theirs]
    for a, b in zip(ours, theirs, strict=True):
        for g, h in zip(a[1:], b[1:], strict=True):
            np.testing.assert_allclose(g, h, rtol=1e-12)


# ---- states --------------------------------------------------------------------------------------


def test_hooks_around_a_state():
    net, order = model(), []
    net[0].register_state_dict_pre_hook(lambda m, prefix, keep: order.append((prefix, keep)))

    def after(module, state, prefix, metadata):
        order.append((prefix, len(state)))
        state[f"{prefix}extra"] = 1

    handle = net[0].register_state_dict_post_hook(after)
    net.register_state_dict_post_hook(
        lambda m, state, prefix, _: order.append((prefix, len(state)))
    )
    assert net.state_dict(prefix="a.", keep_vars=True)["a.0.extra"] == 1
    assert order == [("a.0.", True), ("a.0.", 4), ("a.", 5)]
    handle.remove()
    assert "0.extra" not in net.state_dict()


def test_a_state_that_is_renamed_while_it_is_loaded():
    net = model()
    old = {name.replace("weight", "w"): value for name, value in net.state_dict().items()}

    def rename(module, state, prefix, metadata, strict, missing, unexpected, errors):
        for name in list(state):
            if name.endswith(".w"):
                state[name.replace(".w", ".weight")] = state.pop(name)

    with pytest.raises(ValueError, match=r"missing: 0\.weight, 2\.weight; unexpected"):
        net.load_state_dict(old)
    handle = net.register_load_state_dict_pre_hook(rename)
    assert net.load_state_dict(old) == ([], [])
    assert "0.w" in old  # the dict that was given is as it was
    handle.remove()
    net.register_load_state_dict_pre_hook(lambda *args: args[-1].append("never this"))
    with pytest.raises(ValueError, match="does not fit Sequential: never this"):
        net.load_state_dict(net.state_dict())


def test_names_that_may_be_missing():
    net, state = model(), model().state_dict()
    del state["0.bias"]

    def forgive(module, keys):
        keys.missing_keys.clear()

    handle = net.register_load_state_dict_post_hook(forgive)
    assert net.load_state_dict(state) == ([], [])
    assert net[2].weight.tolist() == state["2.weight"].tolist()
    handle.remove()
    net[0].register_load_state_dict_post_hook(lambda module, keys: None)
    with pytest.raises(ValueError, match=re.escape("missing: 0.bias")):
        net.load_state_dict(state)


def test_a_state_that_is_assigned():
    net, state = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)), {}
    net[0].weight.requires_grad_(False)
    for name, value in net.state_dict().items():
        floats = value.dtype.is_floating_point
        state[name] = mg.ones(value.shape, dtype=mg.float64) if floats else value.clone()
    assert net.load_state_dict(state, assign=True) == ([], [])
    assert net[0].weight.dtype is net[1].running_mean.dtype is mg.float64
    assert [p.requires_grad for p in net.parameters()] == [False, True, True, True]
    with mg.no_grad():
        state["0.bias"].fill_(5.0)
    assert net[0].bias.tolist() == [5.0, 5.0]  # it is the same memory
    with pytest.raises(ValueError, match="has shape"):
        net.load_state_dict(state | {"0.bias": mg.ones(3)}, assign=True)
    held = net.state_dict(keep_vars=True)
    assert held["0.bias"] is net[0].bias
    found = {}
    assert net.state_dict(destination=found) is found


# ---- parts by name -------------------------------------------------------------------------------


def test_parts_by_name():
    net = nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.BatchNorm1d(2)))
    assert net.get_submodule("1.0") is net[1][0]
    assert net.get_submodule("") is net
    assert net.get_parameter("1.0.weight") is net[1][0].weight
    assert net.get_buffer("1.0.running_var") is net[1][0].running_var
    net.set_submodule("1.0", nn.ReLU())
    assert repr(net[1][0]) == "ReLU()"
    with pytest.raises(AttributeError, match=re.escape("there is no parameter '0.w': Linear has")):
        net.get_parameter("0.w")
    with pytest.raises(AttributeError, match="is no buffer of"):
        net.get_buffer("0.weight")
    with pytest.raises(AttributeError, match=r"there is no submodule '3\.x'"):
        net.get_submodule("3.x")


def test_duplicates():
    shared = nn.Linear(1, 1, bias=False)
    net = nn.Sequential(shared, shared)
    assert [name for name, _ in net.named_modules()] == ["", "0"]
    assert [name for name, _ in net.named_modules(remove_duplicate=False)] == ["", "0", "1"]
    assert [name for name, _ in net.named_parameters()] == ["0.weight"]
    both = [name for name, _ in net.named_parameters("net", remove_duplicate=False)]
    assert both == ["net.0.weight", "net.1.weight"]
    memo = {shared}
    assert [name for name, _ in net.named_modules(memo, "net")] == ["net"]
    assert memo == {shared, net}


# ---- hooks of all modules ------------------------------------------------------------------------

everywhere = nn.modules.module


def test_hooks_around_every_forward_come_before_its_own():
    layers, seen = nn.Sequential(nn.Linear(2, 3), nn.ReLU()), []
    layers[1].register_forward_hook(lambda m, args, out: seen.append("own"))
    handles = [
        everywhere.register_module_forward_pre_hook(lambda m, args: seen.append(("before", m))),
        everywhere.register_module_forward_hook(lambda m, args, out: seen.append(("after", m))),
    ]
    layers(mg.ones(1, 2))
    first, second = layers
    assert seen == [
        *[("before", layers), ("before", first), ("after", first)],
        *[("before", second), ("after", second), "own", ("after", layers)],
    ]
    for handle in handles:
        handle.remove()
        handle.remove()
    seen.clear()
    layers(mg.ones(1, 2))
    assert seen == ["own"]
    assert nn.Module.__call__ is everywhere.register_module_forward_hook.__globals__["_plain"]


def test_hooks_of_all_modules_change_arguments_and_outputs():
    before = everywhere.register_module_forward_pre_hook(lambda m, args: -args[0])
    after = everywhere.register_module_forward_hook(
        lambda m, args, kwargs, out: out + kwargs.get("more", 1.0), with_kwargs=True
    )
    try:
        assert nn.ReLU()(mg.tensor(-2.0)).item() == 3.0
    finally:
        before.remove()
        after.remove()
    assert nn.ReLU()(mg.tensor(-2.0)).item() == 0.0


def test_hooks_of_all_modules_in_backward():
    layers, seen = nn.Sequential(nn.Linear(2, 2), nn.Tanh()), []
    handles = [
        everywhere.register_module_full_backward_pre_hook(lambda m, out: seen.append(("out", m))),
        everywhere.register_module_full_backward_hook(lambda m, g, out: seen.append(("in", m))),
    ]
    try:
        layers(mg.ones(1, 2, requires_grad=True)).sum().backward()
    finally:
        for handle in handles:
            handle.remove()
    first, second = layers
    assert seen == [
        *[("out", layers), ("out", second), ("in", second)],
        *[("out", first), ("in", first), ("in", layers)],
    ]


def test_a_hook_of_all_modules_that_is_always_called():
    class Failing(nn.Module):
        def forward(self, x):
            raise ZeroDivisionError

    seen = []
    handle = everywhere.register_module_forward_hook(
        lambda m, args, out: seen.append(out), always_call=True
    )
    try:
        with pytest.raises(ZeroDivisionError):
            Failing()(1)
    finally:
        handle.remove()
    assert seen == [None]
    with pytest.raises(TypeError, match=r"\[register_module_forward_hook\] a hook is a function"):
        everywhere.register_module_forward_hook(3)


@pytest.mark.filterwarnings("ignore:.*no batching rule")
def test_backward_hooks_in_vmap_get_both_gradients_of_one_slice(rng):
    layer = nn.Linear(3, 2)
    layer.register_full_backward_hook(lambda module, gi, go: (gi[0] * go[0].sum(),))
    x = mg.tensor(rng.normal(size=(4, 3)), dtype=mg.float32)
    weights = mg.tensor(rng.normal(size=(4, 2, 3)), dtype=mg.float32)

    def loss(x, weight=None):
        given = {} if weight is None else {"weight": weight}
        return (mg.func.functional_call(layer, given, (x,)) ** 2).sum()

    def near(a, b):
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-5)

    gradient = mg.func.grad(loss)
    alone = mg.stack([gradient(row) for row in x])
    near(mg.vmap(gradient)(x), alone)
    near(mg.func.grad(lambda x: mg.vmap(loss)(x).sum())(x), alone)
    near(
        mg.vmap(gradient, (None, 0))(x[0], weights),
        mg.stack([gradient(x[0], weight) for weight in weights]),
    )
    leaf = x[0].clone().requires_grad_()
    with pytest.raises(RuntimeError, match=r"\[Linear\] in vmap a backward hook gets .* one slice"):
        mg.vmap(lambda weight: mg.grad(loss(leaf, weight), leaf)[0])(weights)
