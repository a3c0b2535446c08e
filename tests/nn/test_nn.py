"""minigrad.nn: against plain NumPy, and against PyTorch where it is installed."""

from __future__ import annotations

import copy
import gc
import math
import pickle
import weakref

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn
from minigrad.checking import gradcheck, gradgradcheck
from minigrad.nn import functional as F

pytestmark = pytest.mark.usefixtures("restore_random")  # layers draw their weights


def _double(rng, *shape):
    return mg.tensor(rng.standard_normal(shape), requires_grad=True)


def _log_softmax(x, axis):
    shifted = x - x.max(axis, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis, keepdims=True))


# ---- parameters ----------------------------------------------------------------------------------


def test_a_parameter_is_a_leaf_whose_results_are_plain_tensors():
    p = nn.Parameter(mg.ones(2))
    assert isinstance(p, nn.Parameter)
    assert isinstance(p, mg.Tensor)
    assert p.requires_grad
    assert p.is_leaf
    for result in (p + 1, p.exp(), p[0], p.detach(), p.clone(), p.reshape(2, 1), -p):
        assert type(result) is mg.Tensor


def test_a_parameter_takes_attributes_of_ones_own():
    p = nn.Parameter(mg.ones(2))
    p.decay = 0.5
    again = pickle.loads(pickle.dumps(p))
    assert (again.decay, again.tolist(), again.requires_grad) == (0.5, [1, 1], True)
    assert copy.copy(p).decay == 0.5
    assert not hasattr(copy.deepcopy(p), "decay")  # as in PyTorch
    layer = nn.Linear(2, 2)
    layer.weight.layer = layer  # a cycle
    gone = weakref.ref(layer)
    del layer
    gc.collect()
    assert gone() is None


def test_a_parameter_shares_memory_with_its_tensor_and_stays_itself_in_place():
    source = mg.zeros(3)
    p = nn.Parameter(source, requires_grad=False)
    assert not p.requires_grad
    before = p
    p += 2
    assert p is before
    assert source.tolist() == [2.0, 2.0, 2.0]


def test_a_parameter_of_integers_is_refused():
    with pytest.raises(TypeError, match="float"):
        nn.Parameter(mg.arange(3))


def test_parameters_survive_deepcopy_and_pickle_as_parameters():
    p = nn.Parameter(mg.tensor([1.0, 2.0]))
    (p * p).sum().backward()
    for other in (copy.deepcopy(p), pickle.loads(pickle.dumps(p))):
        assert isinstance(other, nn.Parameter)
        assert other.requires_grad
        assert other.tolist() == [1.0, 2.0]
    other = copy.deepcopy(p)
    assert other.grad is None  # a plain tensor's copy keeps its own
    with mg.no_grad():
        other.zero_()
    assert p.tolist() == [1.0, 2.0]


# ---- modules -------------------------------------------------------------------------------------


class Net(nn.Module):
    """Two layers, a buffer, and a child that has one of its own."""

    def __init__(self):
        self.first = nn.Linear(2, 3)
        self.scale = nn.Parameter(mg.ones(1))
        self.register_buffer("mean", mg.zeros(2))
        self.register_buffer("cache", mg.zeros(1), persistent=False)
        self.rest = nn.Sequential(nn.ReLU(), nn.Linear(3, 1, bias=False))

    def forward(self, x):
        return self.rest(self.first(x - self.mean)) * self.scale


def test_modules_name_their_parts():
    net = Net()
    names = [name for name, _ in net.named_parameters()]
    assert sorted(names) == ["first.bias", "first.weight", "rest.1.weight", "scale"]
    assert [id(p) for p in net.parameters()] == [id(p) for _, p in net.named_parameters()]
    assert [name for name, _ in net.named_modules()] == ["", "first", "rest", "rest.0", "rest.1"]
    assert [name for name, _ in net.named_children()] == ["first", "rest"]
    assert list(net.children()) == [net.first, net.rest]
    assert [name for name, _ in net.named_buffers()] == ["mean", "cache"]


def test_a_shared_parameter_is_listed_once_and_stored_under_both_names():
    net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    net[1].weight = net[0].weight
    assert len(list(net.parameters())) == 3
    assert sorted(net.state_dict()) == ["0.bias", "0.weight", "1.bias", "1.weight"]


def test_train_eval_zero_grad_and_apply_reach_every_module():
    net = Net()
    assert net.training
    assert net.eval() is net
    assert not any(module.training for module in net.modules())
    assert all(module.training for module in net.train().modules())
    net(mg.ones(4, 2)).sum().backward()
    assert all(p.grad is not None for p in net.parameters())
    net.zero_grad(set_to_none=False)
    assert all(p.grad.tolist() == mg.zeros_like(p).tolist() for p in net.parameters())
    net.zero_grad()
    assert all(p.grad is None for p in net.parameters())
    seen = []
    net.apply(lambda module: seen.append(type(module).__name__))
    assert seen == ["Linear", "ReLU", "Linear", "Sequential", "Net"]


def test_registering_checks_names_and_types():
    net = nn.Module()
    net.register_parameter("bias", None)
    assert net.bias is None
    assert list(net.parameters()) == []
    with pytest.raises(TypeError, match="Parameter"):
        net.register_parameter("w", mg.zeros(1))
    with pytest.raises(TypeError, match="Tensor"):
        net.register_buffer("b", [1.0])
    for name in ("", "a.b"):
        with pytest.raises(KeyError, match="is no name: it is empty or holds a dot"):
            net.register_parameter(name, None)
    with pytest.raises(KeyError, match="already"):
        net.register_buffer("forward", mg.zeros(1))
    with pytest.raises(NotImplementedError, match="forward"):
        net(1)


REGISTERED = {
    "register_parameter": lambda lib: lib.nn.Parameter(lib.ones(1)),
    "add_module": lambda lib: lib.nn.ReLU(),
    "register_module": lambda lib: lib.nn.ReLU(),
    "register_buffer": lambda lib: lib.zeros(1),
}


@pytest.mark.parametrize("again", REGISTERED)
@pytest.mark.parametrize("first", REGISTERED)
def test_a_name_in_use_is_free_for_what_is_of_its_kind(first, again):
    net = nn.Module()
    getattr(net, first)("name", REGISTERED[first](mg))
    modules = {"add_module", "register_module"}
    if first == again or {first, again} == modules:
        value = REGISTERED[again](mg)
        getattr(net, again)("name", value)
        assert net.name is value
        return
    op = again.replace("register_module", "add_module")
    with pytest.raises(KeyError) as caught:
        getattr(net, again)("name", REGISTERED[again](mg))
    assert caught.value.args == (f"[{op}] Module has an attribute 'name' already",)


@pytest.mark.parametrize("lib", ["minigrad", "torch"])
def test_names_are_refused_as_in_pytorch(lib):
    lib = pytest.importorskip(lib)
    for register, make in REGISTERED.items():
        net = lib.nn.Module()
        net.number = 1
        for name in ("number", "forward", "", "a.b"):
            with pytest.raises(KeyError):
                getattr(net, register)(name, make(lib))
            with pytest.raises(KeyError):
                getattr(net, register)(name, None)
        getattr(net, register)("none", None)
        getattr(net, register)("none", make(lib))
    with pytest.raises(KeyError):
        lib.nn.ModuleDict({"items": lib.nn.ReLU()})


def test_to_changes_dtype_in_place():
    net = Net()
    weight = net.first.weight
    net(mg.ones(1, 2)).sum().backward()
    assert net.to(mg.float64) is net
    assert net.first.weight is weight
    assert all(t.dtype is mg.float64 for t in [*net.parameters(), *net.buffers(), weight.grad])
    assert net(mg.ones(1, 2, dtype=mg.float64)).dtype is mg.float64
    assert net.float().scale.dtype is mg.float32
    assert net.double().scale.dtype is mg.float64
    with pytest.raises(TypeError, match="int64"):
        net.to(mg.int64)


def test_a_view_taken_before_to_is_one_of_the_memory_before():
    net, w = nn.Module(), mg.ones(1, requires_grad=True)
    net.register_buffer("seen", mg.zeros(2))
    view = net.seen[:1]
    net.double()
    view.add_(w)
    assert (view.tolist(), net.seen.tolist()) == ([1.0], [0.0, 0.0])
    assert view.requires_grad
    assert not net.seen.requires_grad


def test_the_repr_is_nested_as_in_pytorch():
    assert repr(nn.Sequential(nn.Sequential(nn.Linear(2, 3), nn.Tanh()), nn.Sigmoid())) == (
        "Sequential(\n"
        "  (0): Sequential(\n"
        "    (0): Linear(in_features=2, out_features=3, bias=True)\n"
        "    (1): Tanh()\n"
        "  )\n"
        "  (1): Sigmoid()\n"
        ")"
    )


def test_modules_can_be_copied_and_pickled():
    net = Net()
    x = mg.ones(1, 2)
    for other in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        assert other(x).tolist() == net(x).tolist()
        assert not set(map(id, other.parameters())) & set(map(id, net.parameters()))


# ---- state ---------------------------------------------------------------------------------------


def test_the_state_goes_from_one_module_to_another():
    a, b = Net(), Net()
    state = a.state_dict()
    assert sorted(state) == ["first.bias", "first.weight", "mean", "rest.1.weight", "scale"]
    assert not any(value.requires_grad for value in state.values())
    result = b.load_state_dict({name: value.numpy() for name, value in state.items()})
    assert result == ([], [])
    x = mg.tensor([[1.0, -2.0]])
    assert a(x).tolist() == b(x).tolist()
    with mg.no_grad():
        a.scale.fill_(7.0)
    assert state["scale"].tolist() == [7.0]  # the same memory
    assert b.scale.tolist() == [1.0]  # a copy


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda s: s.pop("scale"), "missing: scale"),
        (lambda s: s.update(extra=mg.zeros(1)), "unexpected: extra"),
        (lambda s: s.update(scale=mg.zeros(2)), r"scale has shape \(2,\), the module's \(1,\)"),
    ],
)
def test_a_state_that_does_not_fit_changes_nothing(change, message):
    net = Net()
    before = {name: value.tolist() for name, value in net.state_dict().items()}
    state = {name: value.clone() + 1 for name, value in net.state_dict().items()}
    change(state)
    with pytest.raises(ValueError, match=message):
        net.load_state_dict(state)
    assert {name: value.tolist() for name, value in net.state_dict().items()} == before


def test_a_state_need_not_be_whole_if_not_strict():
    net = Net()
    result = net.load_state_dict({"scale": [5.0], "extra": 1.0}, strict=False)
    assert net.scale.tolist() == [5.0]
    assert result.unexpected_keys == ["extra"]
    assert sorted(result.missing_keys) == ["first.bias", "first.weight", "mean", "rest.1.weight"]
    with pytest.raises(ValueError, match="shape"):
        net.load_state_dict({"scale": mg.zeros(2)}, strict=False)
    with pytest.raises(TypeError, match="dict"):
        net.load_state_dict([1.0])


# ---- layers --------------------------------------------------------------------------------------


def test_linear_starts_uniform_within_its_bound():
    mg.manual_seed(3)
    layer = nn.Linear(100, 200)
    assert layer.weight.shape == (200, 100)
    assert layer.bias.shape == (200,)
    for values in (layer.weight.detach().numpy(), layer.bias.detach().numpy()):
        assert np.abs(values).max() <= 0.1
        assert abs(values.std() - 0.1 / math.sqrt(3)) < 0.006
    mg.manual_seed(3)
    assert nn.Linear(100, 200).weight.tolist() == layer.weight.tolist()
    assert nn.Linear(2, 2, dtype=mg.float64).weight.dtype is mg.float64
    assert nn.Linear(2, 2, bias=False).bias is None
    with pytest.raises(ValueError, match=r"\[Linear\] in_features is -1, but must be at least 0"):
        nn.Linear(-1, 2)


@pytest.mark.parametrize("shape", [(3,), (4, 3), (2, 4, 3), (0, 3), (2, 0, 3)])
@pytest.mark.parametrize("bias", [True, False])
def test_linear_is_the_product_with_the_transpose(rng, shape, bias):
    x, w, b = _double(rng, *shape), _double(rng, 5, 3), _double(rng, 5)
    y = F.linear(x, w, b if bias else None)
    expected = x.detach().numpy() @ w.detach().numpy().T + (b.detach().numpy() if bias else 0)
    np.testing.assert_allclose(y.detach().numpy(), expected, rtol=1e-12, atol=1e-14)
    g = rng.standard_normal(y.shape)
    y.backward(mg.tensor(g))
    rows = g.reshape(-1, 5) if g.size else np.zeros((0, 5))
    inputs = x.detach().numpy().reshape(-1, 3) if g.size else np.zeros((0, 3))
    np.testing.assert_allclose(x.grad.numpy(), g @ w.detach().numpy(), atol=1e-13)
    np.testing.assert_allclose(w.grad.numpy(), rows.T @ inputs, atol=1e-13)
    assert w.grad.is_contiguous()
    if bias:
        np.testing.assert_allclose(b.grad.numpy(), rows.sum(0), atol=1e-13)


def test_linear_takes_views_and_mixed_dtypes(rng):
    x, w = rng.standard_normal((3, 4)), rng.standard_normal((3, 5))
    a, b = mg.tensor(x, requires_grad=True), mg.tensor(w.astype(np.float32), requires_grad=True)
    y = F.linear(a.T, b.T)
    assert y.dtype is mg.float64
    np.testing.assert_allclose(y.detach().numpy(), x.T @ w.astype(np.float32), rtol=1e-12)
    y.sum().backward()
    assert a.grad.dtype is mg.float64
    assert b.grad.dtype is mg.float32
    np.testing.assert_allclose(b.grad.numpy(), np.outer(x.sum(1), np.ones(5)), rtol=1e-5)


@pytest.mark.parametrize("shape", [(4, 3), (2, 2, 3)])
def test_linear_has_right_gradients_to_second_order(rng, shape):
    inputs = (_double(rng, *shape), _double(rng, 2, 3), _double(rng, 2))
    assert gradcheck(F.linear, inputs)
    assert gradgradcheck(F.linear, inputs)
    assert gradgradcheck(lambda x, w: F.linear(x, w), inputs[:2])


def test_linear_refuses_what_does_not_fit():
    with pytest.raises(ValueError, match=r"\[linear\].*\(2, 4\).*\(5, 3\)"):
        F.linear(mg.ones(2, 4), mg.ones(5, 3))
    with pytest.raises(ValueError, match=r"bias has shape \(3,\)"):
        F.linear(mg.ones(2, 3), mg.ones(5, 3), mg.ones(3))
    with pytest.raises(ValueError, match=r"\(out, in\)"):
        F.linear(mg.ones(2, 3), mg.ones(3))


def test_sequential_is_a_list_of_modules():
    layers = [nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1)]
    net = nn.Sequential(*layers[:2]).append(layers[2])
    assert len(net) == 3
    assert list(net) == layers
    assert net[-1] is layers[2]
    assert list(net[:2]) == layers[:2]
    x = mg.ones(4, 2)
    assert net(x).tolist() == layers[2](layers[0](x).relu()).tolist()
    with pytest.raises(IndexError, match="3 modules"):
        net[3]
    with pytest.raises(TypeError, match="Module"):
        net.append(mg.tanh)


def test_sequential_takes_names():
    net = nn.Sequential({"first": nn.Linear(2, 3), "act": nn.ReLU()})
    assert list(net.state_dict()) == ["first.weight", "first.bias"]
    assert net[0] is net.first
    assert net(mg.ones(4, 2)).shape == (4, 3)
    with pytest.raises(KeyError, match="'forward' already"):
        nn.Sequential({"forward": nn.ReLU()})
    with pytest.raises(TypeError, match="a name must be a string, not int"):
        nn.Sequential({0: nn.ReLU()})


def test_a_part_of_a_sequential_keeps_names():
    net = nn.Sequential({"first": nn.Linear(2, 3), "act": nn.ReLU(), "last": nn.Linear(3, 1)})
    assert list(net[1:].state_dict()) == ["last.weight", "last.bias"]
    part = nn.Sequential(*net)[1:]
    assert list(part.state_dict()) == ["2.weight", "2.bias"]
    assert list(part.append(net.first)) == [net.act, net.last, net.first]


@pytest.mark.parametrize("kind", [nn.ModuleList, lambda layers: nn.Sequential(*layers)])
def test_modules_are_inserted_and_deleted(kind):
    layers = [nn.Linear(2, n) for n in range(1, 6)]
    row = kind(layers[:2])
    row.insert(1, layers[2])
    row.insert(-1, layers[3])
    row.insert(9, layers[4])
    assert list(row) == [layers[i] for i in (0, 2, 3, 1, 4)]
    del row[1]
    assert list(row) == [layers[i] for i in (0, 3, 1, 4)]
    assert list(row.state_dict())[::2] == ["0.weight", "1.weight", "2.weight", "3.weight"]
    del row[-2:]
    assert list(row) == [layers[0], layers[3]]
    for wrong, error in ((2, IndexError), ("0", TypeError)):
        with pytest.raises(error, match=type(row).__name__):
            del row[wrong]
    with pytest.raises(TypeError, match="expected a Module"):
        row.insert(0, 3)
    assert len(row) == 2


def test_a_module_list_is_a_list_that_is_found():
    net = nn.Module()
    assert len(nn.ModuleList(None)) == 0
    net.layers = nn.ModuleList([nn.Linear(2, 3), nn.Linear(3, 1)])
    assert list(net.state_dict())[::2] == ["layers.0.weight", "layers.1.weight"]
    first, second = net.layers
    assert net.layers.append(nn.ReLU()) is net.layers
    assert len(net.layers.extend([nn.Tanh()])) == 4
    net.layers[-1] = net.layers[0] = first
    assert list(net.layers) == [first, second, net.layers[2], first]
    assert type(net.layers[1:3]) is nn.ModuleList
    assert list(net.layers[1:3]) == [second, net.layers[2]]
    assert len(pickle.loads(pickle.dumps(net)).layers) == 4
    assert len(copy.deepcopy(net).layers) == 4
    for wrong, error in ((4, IndexError), (-5, IndexError), ("0", TypeError)):
        with pytest.raises(error, match="ModuleList"):
            net.layers[wrong]
    with pytest.raises(TypeError, match="ModuleList"):
        net.layers[0] = mg.tanh
    with pytest.raises(NotImplementedError, match="ModuleList"):
        net.layers(mg.ones(2))


def test_a_module_dict_is_a_dict_that_is_found():
    net = nn.Module()
    net.heads = nn.ModuleDict({"a": nn.Linear(2, 3), "b": nn.ReLU()})
    assert list(net.state_dict()) == ["heads.a.weight", "heads.a.bias"]
    assert list(net.heads) == list(net.heads.keys()) == ["a", "b"]
    assert dict(net.heads.items()) == dict(zip("ab", net.heads.values(), strict=True))
    net.heads["b"] = tanh = nn.Tanh()
    net.heads.update({"c": tanh})
    assert net.heads["b"] is tanh
    assert "c" in net.heads
    del net.heads["c"]
    assert len(net.heads) == 2
    for name in ("c", "training"):
        with pytest.raises(KeyError):
            net.heads[name]
    with pytest.raises(KeyError, match="'items' already"):
        net.heads["items"] = tanh
    with pytest.raises(TypeError, match="ModuleDict"):
        net.heads["d"] = 1


def test_flatten_keeps_the_batch_and_identity_everything():
    x = mg.ones(2, 3, 4)
    assert nn.Flatten()(x).shape == (2, 12)
    assert nn.Flatten(0, 1)(x).shape == (6, 4)
    assert nn.Identity(3, any="thing")(x) is x


def _with_gradients():
    x, y = mg.tensor([3.0, 4.0], requires_grad=True), mg.tensor(2.0, requires_grad=True)
    ((x**2).sum() + 5.0 * y).backward()  # gradients 6, 8 and 5
    return x, y, mg.tensor(1.0, requires_grad=True)


@pytest.mark.parametrize(("order", "norm"), [(2.0, 125**0.5), (1.0, 19.0), (math.inf, 8.0)])
def test_clip_grad_norm_scales_all_gradients(order, norm):
    parameters = _with_gradients()
    total = nn.utils.clip_grad_norm_((p for p in parameters), 2.0, order)
    assert total.item() == pytest.approx(norm)
    assert parameters[0].grad.tolist() == pytest.approx([12.0 / norm, 16.0 / norm], rel=1e-5)
    assert parameters[1].grad.item() == pytest.approx(10.0 / norm, rel=1e-5)
    assert parameters[2].grad is None
    assert not parameters[0].grad.requires_grad
    assert nn.utils.clip_grad_norm_(parameters, 3.0, order).item() == pytest.approx(2.0, rel=1e-5)
    assert parameters[0].grad[0].item() == pytest.approx(12.0 / norm, rel=1e-5)


def test_clip_grad_norm_of_nothing_and_of_what_is_not_finite():
    assert nn.utils.clip_grad_norm_([], 1.0).item() == 0.0
    assert nn.utils.clip_grad_norm_([], 1.0, "inf").item() == 0.0
    x = mg.tensor([1.0, 2.0], requires_grad=True)
    (x * mg.tensor([math.inf, 1.0])).sum().backward()
    with pytest.raises(RuntimeError, match="norm of the gradients is inf"):
        nn.utils.clip_grad_norm_(x, 1.0, error_if_nonfinite=True)
    assert x.grad.tolist() == [math.inf, 1.0]
    assert nn.utils.clip_grad_norm_(x, 1.0).item() == math.inf
    assert math.isnan(x.grad[0].item())
    assert x.grad[1].item() == 0.0


def test_clip_grad_value():
    x, y, z = _with_gradients()
    nn.utils.clip_grad_value_([x, y, z], 5.5)
    assert (x.grad.tolist(), y.grad.item(), z.grad) == ([5.5, 5.5], 5.0, None)


def test_activations_are_the_functions():
    x = mg.tensor([-1.0, 0.0, 2.0])
    assert nn.ReLU()(x).tolist() == [0.0, 0.0, 2.0]
    assert nn.Tanh()(x).tolist() == x.tanh().tolist()
    assert nn.Sigmoid()(x).tolist() == x.sigmoid().tolist()
    assert F.softmax(x, dim=0).tolist() == x.softmax(0).tolist()


# ---- losses of differences -----------------------------------------------------------------------


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_mse_and_l1_are_what_they_say(rng, reduction):
    x, t = _double(rng, 3, 2), mg.tensor(rng.standard_normal((3, 2)))
    reduce = {"mean": np.mean, "sum": np.sum, "none": lambda v: v}[reduction]
    difference = x.detach().numpy() - t.numpy()
    for loss, expected in ((F.mse_loss, difference**2), (F.l1_loss, abs(difference))):
        value = loss(x, t, reduction=reduction).detach().numpy()
        np.testing.assert_allclose(value, reduce(expected), rtol=1e-14)
        assert gradcheck(lambda a, loss=loss: loss(a, t, reduction=reduction), (x,))
    assert nn.MSELoss(reduction)(x, t).tolist() == F.mse_loss(x, t, reduction).tolist()


@pytest.mark.parametrize("loss", [F.mse_loss, F.l1_loss, nn.MSELoss()])
def test_losses_do_not_broadcast(loss):
    with pytest.raises(ValueError, match=r"\(4, 1\).*\(4,\)"):
        loss(mg.ones(4, 1), mg.ones(4))


def test_an_unknown_reduction_is_named():
    for loss in (F.mse_loss, F.l1_loss):
        with pytest.raises(ValueError, match="'men'"):
            loss(mg.ones(1), mg.ones(1), reduction="men")
    for loss in (F.cross_entropy, F.nll_loss):
        with pytest.raises(ValueError, match="'men'"):
            loss(mg.ones(2), mg.tensor(1), reduction="men")


# ---- cross entropy -------------------------------------------------------------------------------


def _reference(x, t, weight, ignore, reduction, smoothing):
    """The cross entropy with classes, element by element, by its definition."""
    axis = 0 if x.ndim == 1 else 1
    log_p = np.moveaxis(_log_softmax(x, axis), axis, -1)
    classes = log_p.shape[-1]
    w = np.ones(classes) if weight is None else weight
    losses, shares = np.zeros(t.shape), np.zeros(t.shape)
    for place in np.ndindex(t.shape):
        k = t[place]
        if k != ignore:
            shares[place] = w[k]
            losses[place] = -w[k] * log_p[place][k] * (1 - smoothing)
            losses[place] -= smoothing / classes * (w * log_p[place]).sum()
    if reduction == "none":
        return losses
    return losses.sum() / (shares.sum() if reduction == "mean" else 1)


@pytest.mark.parametrize("shape", [(5,), (4, 5), (1, 5), (3, 5, 2), (2, 5, 2, 3), (2, 5, 3, 6)])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_cross_entropy_with_classes(rng, shape, reduction, weighted, smoothing):
    x = _double(rng, *shape)
    t = rng.integers(0, 5, shape[:1] + shape[2:] if len(shape) > 1 else ())
    w = rng.uniform(0.5, 2, 5) if weighted else None

    def loss(a):
        return F.cross_entropy(
            a,
            mg.tensor(t),
            weight=None if w is None else mg.tensor(w),
            reduction=reduction,
            label_smoothing=smoothing,
        )

    expected = _reference(x.detach().numpy(), t, w, -100, reduction, smoothing)
    np.testing.assert_allclose(loss(x).detach().numpy(), expected, rtol=1e-12)
    assert gradcheck(loss, (x,))
    assert gradgradcheck(loss, (x,))


@pytest.mark.parametrize("ignore", [-100, 2])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_ignored_targets_count_nothing(rng, ignore, reduction):
    x = _double(rng, 4, 3)
    t = np.array([0, ignore, 1, ignore])
    loss = F.cross_entropy(x, mg.tensor(t), ignore_index=ignore, reduction=reduction)
    expected = _reference(x.detach().numpy(), t, None, ignore, reduction, 0.0)
    np.testing.assert_allclose(loss.detach().numpy(), expected, rtol=1e-12)
    loss.sum().backward()
    assert not x.grad.numpy()[1].any()
    assert x.grad.numpy()[0].all()


def test_a_mean_of_ignored_targets_only_is_nan():
    assert math.isnan(F.cross_entropy(mg.ones(2, 3), mg.tensor([-100, -100])).item())
    assert math.isnan(F.cross_entropy(mg.ones(0, 3), mg.zeros(0, dtype=mg.int64)).item())


@pytest.mark.parametrize("shape", [(4,), (3, 4), (2, 4, 3)])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("smoothing", [0.0, 0.2])
def test_cross_entropy_with_probabilities(rng, shape, reduction, weighted, smoothing):
    axis = 0 if len(shape) == 1 else 1
    x = _double(rng, *shape)
    p = rng.uniform(0, 1, shape)
    p /= p.sum(axis, keepdims=True)
    w = rng.uniform(0.5, 2, 4) if weighted else np.ones(4)
    mixed = p * (1 - smoothing) + smoothing / 4
    along = w.reshape([4 if d == axis else 1 for d in range(len(shape))])
    losses = -(along * mixed * _log_softmax(x.detach().numpy(), axis)).sum(axis)
    expected = {"none": losses, "sum": losses.sum(), "mean": losses.mean()}[reduction]

    def loss(a, target):
        return F.cross_entropy(
            a,
            target,
            weight=mg.tensor(w) if weighted else None,
            reduction=reduction,
            label_smoothing=smoothing,
        )

    target = mg.tensor(p, requires_grad=True)
    np.testing.assert_allclose(loss(x, target).detach().numpy(), expected, rtol=1e-12)
    assert gradcheck(loss, (x, target))


@pytest.mark.parametrize(
    "shape", [(3, 1), (5, 17), (300, 3), (41, 65), (3, 128), (2, 513), (40, 1300), (3, 5000)]
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("order", ["drawn", "rising", "falling"])
def test_cross_entropy_kernel_and_formula_agree(rng, shape, dtype, order):
    x = rng.standard_normal(shape) * 20
    x = {"drawn": x, "rising": np.sort(x), "falling": np.sort(x)[:, ::-1]}[order].astype(dtype)
    t, w = rng.integers(0, shape[1], shape[0]), rng.uniform(0, 2, shape[1]).astype(dtype)
    t[0] = -100
    for options in ({}, {"weight": mg.tensor(w), "label_smoothing": 0.1}):
        for reduction in ("none", "mean"):
            a = mg.tensor(x, requires_grad=True)
            loss = F.cross_entropy(a, mg.tensor(t), reduction=reduction, **options)
            u = options.get("weight")
            expected = _reference(
                x.astype(np.float64),
                t,
                None if u is None else u.numpy(),
                -100,
                reduction,
                options.get("label_smoothing", 0.0),
            )
            near = 2e-6 if dtype is np.float32 else 1e-13
            np.testing.assert_allclose(loss.detach().numpy(), expected, near, near)
            g = mg.tensor(rng.standard_normal(loss.shape).astype(dtype))
            fused, formula = (mg.grad(loss, [a], g, True, graph)[0] for graph in (False, True))
            np.testing.assert_allclose(fused.numpy(), formula.detach().numpy(), 10 * near, near)


def _images(rng, shape, dtype):
    """Scores of pixels, a target for each of which some are hidden, and weights."""
    x = (rng.standard_normal(shape) * 10).astype(dtype)
    t = rng.integers(0, shape[1], shape[:1] + shape[2:])
    t[..., ::7] = -100
    return x, t, rng.uniform(0, 2, shape[1]).astype(dtype)


@pytest.mark.parametrize(
    "shape", [(2, 3, 300), (3, 21, 16), (2, 17, 13, 23), (1, 1, 40), (1, 1100, 18), (0, 3, 20)]
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("loss", [F.cross_entropy, F.nll_loss])
def test_images_are_as_their_pixels_one_by_one(rng, shape, dtype, loss):
    x, t, w = _images(rng, shape, dtype)
    near = 3e-6 if dtype is np.float32 else 1e-13
    pixels = np.moveaxis(x, 1, -1).reshape(-1, shape[1]).astype(np.float64)
    smoothed = [{}, {"weight": mg.tensor(w)}]
    if loss is F.cross_entropy:
        smoothed.append({"weight": mg.tensor(w), "label_smoothing": 0.1})
    for options in smoothed:
        for reduction in ("none", "sum", "mean"):
            a, b = mg.tensor(x, requires_grad=True), mg.tensor(pixels, requires_grad=True)
            of_images = loss(a, mg.tensor(t), reduction=reduction, **options)
            one_by_one = loss(b, mg.tensor(t.reshape(-1)), reduction=reduction, **options)
            expected = one_by_one.detach().numpy().reshape(of_images.shape)
            np.testing.assert_allclose(of_images.detach().numpy(), expected, 10 * near, near)
            g = rng.standard_normal(of_images.shape).astype(dtype)
            fused, formula = (
                mg.grad(of_images, [a], mg.tensor(g), True, graph)[0] for graph in (False, True)
            )
            g = g.reshape(one_by_one.shape).astype(np.float64)
            (of_pixels,) = mg.grad(one_by_one, [b], mg.tensor(g))
            back = of_pixels.numpy().reshape(np.moveaxis(x, 1, -1).shape)
            for made in (fused, formula):
                made = np.moveaxis(made.detach().numpy(), 1, -1)
                np.testing.assert_allclose(made, back, 10 * near, near)


def test_images_whose_classes_lie_side_by_side_are_rows(rng):
    x, t = rng.standard_normal((2, 6, 5, 3)), mg.tensor(rng.integers(0, 3, (2, 6, 5)))
    rows = F.cross_entropy(mg.tensor(x).reshape(60, 3), t.reshape(60), reduction="none")
    losses = F.cross_entropy(mg.tensor(x).permute(0, 3, 1, 2), t, reduction="none")
    assert losses.reshape(60).tolist() == rows.tolist()


@pytest.mark.parametrize("classes", [3, 21, 600])
def test_scores_without_end_stay_in_their_pixels(rng, classes):
    x = rng.standard_normal((2, classes, 40)).astype(np.float32)
    x[0, ::2, ::3] = -math.inf  # a mask
    x[1, 2, 4], x[1, 1, 9], x[0, :, 11] = math.nan, math.inf, -math.inf
    t = np.ones((2, 40), dtype=np.int64)
    t[1, 5], x[1, :, 5] = -100, math.nan  # hidden
    bad = np.zeros((2, 40), dtype=bool)
    bad[1, 4] = bad[1, 9] = bad[0, 11] = True
    a = mg.tensor(x, requires_grad=True)
    losses = F.cross_entropy(a, mg.tensor(t), reduction="none")
    for graph in (False, True):
        (g,) = mg.grad(losses, [a], mg.ones(2, 40), True, graph)
        g = np.moveaxis(g.detach().numpy(), 1, -1)
        assert (np.isnan(losses.detach().numpy()) == bad).all()
        assert np.isnan(g[bad]).all()
        assert not g[1, 5].any()
        assert not np.isnan(g[~bad]).any()
    (g,) = mg.grad(losses, [a], mg.zeros(2, 40), True)
    assert not g.numpy().any()


@pytest.mark.parametrize("loss", [F.cross_entropy, F.nll_loss])
def test_a_target_of_a_pixel_that_is_no_class_is_named(loss):
    t = mg.zeros(1, 4, 5, dtype=mg.int64)
    t[0, 3, 2] = 3
    with pytest.raises(IndexError, match=rf"\[{loss.__name__}\] target 3 is no class: there are 3"):
        loss(mg.ones(1, 3, 4, 5), t)


def test_a_hidden_row_of_scores_may_be_anything():
    x = mg.tensor([[math.nan] * 3, [math.inf, 0.0, 1.0], [1.0, 2.0, 3.0]], requires_grad=True)
    loss = F.cross_entropy(x, mg.tensor([-100, -100, 0]))
    assert loss.item() == pytest.approx(math.log(1 + math.e + math.e**2), rel=1e-6)
    for graph in (False, True):
        (g,) = mg.grad(loss, [x], retain_graph=True, create_graph=graph)
        assert not g.detach().numpy()[:2].any()
    losses = F.cross_entropy(x, mg.tensor([0, 0, 0]), reduction="none")
    assert np.isnan(losses.detach().numpy()[:2]).all()
    (g,) = mg.grad(losses, [x], mg.tensor([0.0, 1.0, 1.0]))
    assert not g.numpy()[0].any()
    assert np.isnan(g.numpy()[1]).all()


def test_certain_targets_meet_impossible_scores_without_nan():
    x = mg.tensor([[0.0, -math.inf]], requires_grad=True)
    loss = F.cross_entropy(x, mg.tensor([[1.0, 0.0]]))
    loss.backward()
    assert loss.item() == 0.0
    assert x.grad.tolist() == [[0.0, 0.0]]
    assert F.cross_entropy(x, mg.tensor([1])).item() == math.inf


@pytest.mark.parametrize("loss", [F.cross_entropy, F.nll_loss])
def test_weights_beside_an_impossible_class_have_a_gradient(loss):
    x = mg.tensor([[0.0, -math.inf], [1.0, 0.0]], mg.float64)
    w = mg.ones(2, dtype=mg.float64).requires_grad_()
    losses = loss(x, mg.tensor([0, 1]), reduction="none").numpy()
    loss(x, mg.tensor([0, 1]), w).backward()
    np.testing.assert_allclose(w.grad.numpy(), (losses - losses.mean()) / 2, atol=1e-15)


@pytest.mark.parametrize("classes", [5, 17, 128, 129, 600])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_scores_without_end_stay_in_their_rows(rng, classes, dtype):
    """Whether rows are taken together, as short ones are, or one by one."""
    x = rng.standard_normal((70, classes)).astype(dtype)
    x[::3, ::2] = -math.inf  # a mask
    x[4, 3], x[9, 1], x[11] = math.nan, math.inf, -math.inf
    bad, t = [4, 9, 11], np.ones(70, dtype=np.int64)
    a = mg.tensor(x, requires_grad=True)
    losses = F.cross_entropy(a, mg.tensor(t), reduction="none")
    (g,) = mg.grad(losses, [a], mg.ones(70, dtype=a.dtype))
    assert np.isnan(losses.detach().numpy()[bad]).all()
    assert np.isnan(g.numpy()[bad]).all()
    good = np.setdiff1d(np.arange(70), bad)
    wide = _log_softmax(x[good].astype(np.float64), 1)
    near = 2e-6 if dtype is np.float32 else 1e-13
    np.testing.assert_allclose(losses.detach().numpy()[good], -wide[:, 1], near, near)
    expected = np.exp(wide) - np.eye(classes)[t[good]]
    np.testing.assert_allclose(g.numpy()[good], expected, 10 * near, near)
    assert (g.numpy()[good][x[good] == -math.inf] == 0).all()


def test_the_gradient_is_softmax_minus_one_hot(rng):
    x, t = _double(rng, 6, 3), rng.integers(0, 3, 6)
    F.cross_entropy(x, mg.tensor(t)).backward()
    p = np.exp(_log_softmax(x.detach().numpy(), 1))
    np.testing.assert_allclose(x.grad.numpy(), (p - np.eye(3)[t]) / 6, atol=1e-15)


def test_targets_may_change_after_the_forward(rng):
    x, t = _double(rng, 2, 3), mg.tensor([0, 1])
    loss = F.cross_entropy(x, t)
    t.copy_(mg.tensor([2, 2]))
    loss.backward()
    assert x.grad.numpy()[0, 0] < 0
    assert x.grad.numpy()[1, 1] < 0


@pytest.mark.parametrize("wrong", [3, -1, 100])
@pytest.mark.parametrize("loss", [F.cross_entropy, F.nll_loss])
@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_a_target_that_is_no_class_is_named(wrong, loss, reduction):
    with pytest.raises(IndexError, match=rf"target {wrong} is no class: there are 3"):
        loss(mg.ones(2, 3), mg.tensor([0, wrong]), reduction=reduction)


def test_targets_of_the_wrong_kind_are_refused():
    x = mg.ones(4, 3)
    with pytest.raises(ValueError, match=r"\(4, 3\).*\(3,\)"):
        F.cross_entropy(x, mg.tensor([0, 1, 2]))
    with pytest.raises(ValueError, match=r"\(4, 3\).*\(4,\)"):
        F.cross_entropy(x, mg.ones(4))
    with pytest.raises(ValueError, match=r"\(4, 1\)"):
        F.nll_loss(x, mg.zeros(4, 1, dtype=mg.int64))
    with pytest.raises(TypeError, match="bool"):
        F.cross_entropy(x, mg.zeros(4, dtype=mg.bool))
    with pytest.raises(ValueError, match="3 classes"):
        F.cross_entropy(x, mg.tensor([0, 1, 2, 0]), weight=mg.ones(4))
    with pytest.raises(ValueError, match=r"label_smoothing is 1\.5"):
        F.cross_entropy(x, mg.tensor([0, 1, 2, 0]), label_smoothing=1.5)
    with pytest.raises(ValueError, match="0-d"):
        F.cross_entropy(mg.tensor(1.0), mg.tensor(0))


def test_nll_loss_of_log_probabilities_is_cross_entropy(rng):
    x, t = _double(rng, 4, 3, 2), mg.tensor(rng.integers(0, 3, (4, 2)))
    for reduction in ("mean", "sum", "none"):
        np.testing.assert_allclose(
            F.nll_loss(x.log_softmax(1), t, reduction=reduction).tolist(),
            F.cross_entropy(x, t, reduction=reduction).tolist(),
            rtol=1e-13,
        )


def test_cross_entropy_as_a_module(rng):
    x, t, w = _double(rng, 4, 3), mg.tensor([0, 1, 2, 0]), mg.tensor([1.0, 2.0, 3.0])
    loss = nn.CrossEntropyLoss(w, ignore_index=2, reduction="sum", label_smoothing=0.1)
    assert list(loss.state_dict()) == ["weight"]
    assert loss(x, t).item() == F.cross_entropy(x, t, w, 2, "sum", 0.1).item()


# ---- PyTorch -------------------------------------------------------------------------------------


def test_losses_agree_with_pytorch(rng):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    x, t = rng.standard_normal((6, 4, 3)), rng.integers(0, 4, (6, 3))
    t[0, 0] = -100
    w = rng.uniform(0.5, 2, 4)
    for reduction in ("mean", "sum", "none"):
        for smoothing in (0.0, 0.3):
            ours = mg.tensor(x, requires_grad=True)
            theirs = torch.tensor(x, requires_grad=True)
            options = {"reduction": reduction, "label_smoothing": smoothing}
            a = F.cross_entropy(ours, mg.tensor(t), mg.tensor(w), **options)
            b = torch.nn.functional.cross_entropy(
                theirs, torch.tensor(t), torch.tensor(w), **options
            )
            a.sum().backward()
            b.sum().backward()
            np.testing.assert_allclose(a.tolist(), b.tolist(), rtol=1e-12)
            np.testing.assert_allclose(ours.grad.numpy(), theirs.grad.numpy(), atol=1e-14)


def test_containers_do_not_look_at_all_modules_for_each(monkeypatch):
    asked = []
    for kind, method in ((nn.layers._Row, "_modules"), (nn.ModuleDict, "keys")):
        original = getattr(kind, method)

        def counted(self, original=original):
            asked.append(original)
            return original(self)

        monkeypatch.setattr(kind, method, counted)
    layers = [nn.Identity() for _ in range(100)]
    for made in (nn.Sequential(*layers), nn.ModuleList(layers)):
        made.extend(nn.Identity() for _ in range(100))
        assert [name for name, _ in made.named_children()] == [str(i) for i in range(200)]
    heads = nn.ModuleDict({f"n{i}": nn.Identity() for i in range(100)})
    assert dict(heads.items())["n7"] is heads["n7"]
    assert heads.values()[7] is heads["n7"]
    assert "n100" not in heads
    assert len(asked) < 10


def test_a_module_dict_takes_pairs_too():
    heads = nn.ModuleDict([("b", nn.ReLU()), ("a", nn.Tanh())])
    assert list(heads) == ["b", "a"]
    again = nn.ModuleDict(heads)
    assert list(again) == ["b", "a"]
    assert again["a"] is heads["a"]
    heads.update(zip("cd", (nn.ReLU(), nn.Tanh()), strict=True))
    assert list(heads) == ["b", "a", "c", "d"]


def test_a_module_dict_gives_modules_back():
    heads = nn.ModuleDict({"a": nn.ReLU(), "b": nn.Tanh(), "c": nn.Tanh()})
    assert isinstance(heads.pop("a"), nn.ReLU)
    assert list(heads) == ["b", "c"]
    with pytest.raises(KeyError):
        heads.pop("a")
    heads.clear()
    assert len(heads) == 0


def test_parameters_and_submodules_are_not_lost_by_an_assignment():
    layer = mg.nn.Linear(2, 2)
    net = mg.nn.Sequential(layer)
    for wrong in (mg.ones(2, 2), 3.0, mg.nn.ReLU()):
        name = type(wrong).__name__
        with pytest.raises(
            TypeError,
            match=rf"cannot assign '{name}' as parameter 'weight' \(Parameter or None expected\)",
        ):
            layer.weight = wrong
    net.child = layer
    for wrong in (mg.ones(2), 3.0):
        name = type(wrong).__name__
        with pytest.raises(
            TypeError,
            match=rf"cannot assign '{name}' as child module 'child' \(Module or None expected\)",
        ):
            net.child = wrong
    assert net.child is layer
    layer.weight = other = mg.nn.Parameter(mg.zeros(2, 2))
    assert dict(layer.named_parameters())["weight"] is other
    layer.weight, net.child = None, mg.nn.ReLU()
    assert [name for name, _ in layer.named_parameters()] == ["bias"]
    del layer.bias
    layer.bias = 3.0
    assert layer.bias == 3.0


def test_hooks_see_and_change_what_a_module_takes_and_gives():
    layer = nn.Linear(2, 2)
    net = nn.Sequential(layer, nn.ReLU())
    x = mg.tensor([[1.0, -2.0]])
    plain = net(x).tolist()
    seen = []
    before = layer.register_forward_pre_hook(lambda module, args: seen.append((module, args)))
    after = layer.register_forward_hook(lambda module, args, out: seen.append(out))
    assert net(x).tolist() == plain
    assert seen[0][0] is layer
    assert seen[0][1][0] is x
    assert seen[1].shape == (1, 2)
    double = layer.register_forward_hook(lambda module, args, out: out * 2)
    zero = layer.register_forward_pre_hook(lambda module, args: (args[0] * 0,))
    wanted = (2 * layer.bias).relu().tolist()
    assert net(x).tolist() == [wanted]
    for handle in (before, after, double, zero, zero):
        handle.remove()
    assert net(x).tolist() == plain
    assert len(seen) == 4
    with pytest.raises(TypeError, match=r"\[Linear\] a hook is a function, not int"):
        layer.register_forward_hook(3)


class ScaledBy(nn.Module):
    def forward(self, x, *, by=1.0):
        return x * by


def test_hooks_get_keyword_arguments():
    module, seen = ScaledBy(), []
    module.register_forward_hook(lambda *given: seen.append(given), with_kwargs=True)
    x = mg.ones(1)
    y = module(x, by=3.0)
    assert seen == [(module, (x,), {"by": 3.0}, y)]
    module.register_forward_pre_hook(
        lambda module, args, kwargs: ((args[0] + 1,), {"by": kwargs["by"] * 2}), with_kwargs=True
    )
    assert module(x, by=3.0).tolist() == [12.0]
    module.register_forward_pre_hook(lambda *given: 3, with_kwargs=True)
    with pytest.raises(TypeError, match="a pair of arguments and keyword arguments, not 3"):
        module(x, by=1.0)


def test_hooks_that_come_before_others():
    module, seen = ScaledBy(), []
    for name, prepend in (("a", False), ("b", True), ("c", False)):
        add = lambda *_, name=name: seen.append(name)  # noqa: E731
        module.register_forward_hook(add, prepend=prepend)
        module.register_forward_pre_hook(add, prepend=prepend)
    module(mg.ones(1))
    assert seen == ["b", "a", "c"] * 2


def test_hooks_that_are_always_called():
    module, seen = ScaledBy(), []

    def fails(*_):
        raise KeyError("from a hook")

    module.register_forward_hook(lambda m, args, out: seen.append(out), always_call=True)
    module.register_forward_hook(lambda m, args, out: seen.append("not this one"))
    with pytest.raises(TypeError):
        module(None)
    assert seen == [None]
    module.register_forward_hook(fails, prepend=True)
    with pytest.raises(KeyError):
        module(mg.ones(1))
    assert [None if out is None else out.tolist() for out in seen] == [None, [1.0]]


def test_a_module_whose_hooks_were_removed_is_as_it_was():
    gc.collect()
    gc.disable()
    try:
        module = ScaledBy()
        handles = [
            module.register_forward_hook(lambda m, args, out: None),
            module.register_forward_pre_hook(lambda m, args: None),
        ]
        for handle in (*handles, *handles):
            handle.remove()
        assert "forward" not in module.__dict__
        known = weakref.ref(module)
        del module
        assert known() is None
        module = ScaledBy()
        module.forward = own = lambda x: x + 5.0
        handle = module.register_forward_hook(lambda m, args, out: out * 2)
        assert module(mg.ones(1)).tolist() == [12.0]
        handle.remove()
        assert module.forward is own
    finally:
        gc.enable()


def test_a_copy_of_a_module_with_hooks_is_its_own():
    net = nn.Sequential(nn.Linear(2, 2))
    seen = []
    net[0].register_forward_hook(lambda module, args, out: seen.append(module))
    other = copy.deepcopy(net)
    other(mg.ones(1, 2))
    assert seen[0] is other[0]
    assert list(net.state_dict()) == ["0.weight", "0.bias"]


def test_parameters_of_a_module_itself():
    net = nn.Sequential(nn.Linear(2, 2))
    net.scale = nn.Parameter(mg.ones(1))
    net.register_buffer("offset", mg.zeros(1))
    assert [name for name, _ in net.named_parameters(recurse=False)] == ["scale"]
    assert list(net.parameters(recurse=False)) == [net.scale]
    names = [name for name, _ in net.named_parameters(prefix="net")]
    assert names == ["net.scale", "net.0.weight", "net.0.bias"]
    assert [name for name, _ in net.named_buffers("net", recurse=False)] == ["net.offset"]
    assert [b.tolist() for b in net.buffers()] == [[0.0]]


class Scaled(nn.Module):
    def __init__(self):
        self.register_buffer("factor", mg.ones(2))
        self.register_buffer("offset", None)


def test_what_is_no_tensor_does_not_take_the_place_of_a_buffer():
    net, loss = Scaled(), nn.CrossEntropyLoss(weight=[1.0, 2.0])
    for module, name in ((net, "factor"), (net, "offset"), (loss, "weight")):
        for value in (3, [1.0, 2.0], np.ones(2)):
            with pytest.raises(
                TypeError, match=rf"\] cannot assign '\w+' as buffer '{name}' \(Tensor or None exp"
            ):
                setattr(module, name, value)
    net.factor, net.offset = mg.zeros(2), mg.ones(1)
    assert {k: v.tolist() for k, v in net.state_dict().items()} == {"factor": [0, 0], "offset": [1]}
    net.factor = None
    assert [name for name, _ in net.named_buffers()] == list(net.state_dict()) == ["offset"]


def test_a_buffer_that_was_taken_out_or_made_something_else_is_none():
    net = Scaled()
    del net.factor
    net.factor = 3
    net.offset = nn.Parameter(mg.ones(1))
    assert [name for name, _ in net.named_parameters()] == list(net.state_dict()) == ["offset"]
    assert list(net.buffers()) == []
    assert Scaled().factor.tolist() == [1, 1]
    net = Scaled()
    net.factor = nn.Linear(2, 1, bias=False)
    assert list(net.buffers()) == []
    assert list(net.double().state_dict()) == ["factor.weight"]


@pytest.mark.parametrize("kind", [nn.ModuleList, lambda layers: nn.Sequential(*layers)])
def test_rows_of_modules_are_added_as_lists_are(kind):
    a, b, c = nn.ReLU(), nn.Tanh(), nn.Sigmoid()
    row = kind([a])
    same = row
    row += [b]
    assert row is same
    longer = row + kind([c])
    assert (type(longer), list(longer), list(row)) == (type(row), [a, b, c], [a, b])
    assert longer.pop(1) is b
    assert (list(longer), longer.pop(-1)) == ([a, c], c)
    assert [name for name, _ in longer.named_children()] == ["0"]
    with pytest.raises(TypeError, match="expected a Module, not int"):
        row += [3]
    with pytest.raises(IndexError, match="index 2 is out of range for 2 modules"):
        row.pop(2)


def test_a_program_derives_its_losses_of_pytorchs_base():
    from minigrad.nn.modules.loss import _Loss, _WeightedLoss

    class Weighted(_WeightedLoss):
        def forward(self, x, y):
            return nn.functional.cross_entropy(x, y, self.weight, reduction=self.reduction)

    x, y, weight = mg.tensor([[1.0, 2.0], [0.5, 0.0]]), mg.tensor([0, 1]), mg.tensor([1.0, 3.0])
    loss = Weighted(weight, reduction="sum")
    wanted = nn.CrossEntropyLoss(weight, reduction="sum")(x, y)
    assert loss(x, y).item() == wanted.item()
    assert list(loss.state_dict()) == ["weight"]
    with pytest.warns(UserWarning, match="use reduction='sum'"):
        assert _Loss(size_average=False).reduction == "sum"
    assert Weighted().weight is None
