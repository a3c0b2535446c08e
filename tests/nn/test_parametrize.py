"""Weights that are computed from others, vectors of all parameters, and fused layers."""

from __future__ import annotations

import copy
import re

import numpy as np
import pytest
from torch_layers import same_as_torch

import minigrad as mg
from minigrad import nn
from minigrad.nn.utils import parametrizations, parametrize

pytestmark = [
    pytest.mark.usefixtures("restore_random"),
    pytest.mark.filterwarnings("ignore:.*deprecated in favor of"),
]


class Symmetric(nn.Module):
    def forward(self, x):
        return x.triu() + x.triu(1).T

    def right_inverse(self, x):
        return x.triu()


class Doubled(nn.Module):
    def forward(self, x):
        return 2.0 * x


# ---- parametrizations in general -----------------------------------------------------------------


def test_a_weight_that_is_computed(rng):
    layer = nn.Linear(3, 3)
    original = layer.weight
    parametrize.register_parametrization(layer, "weight", Symmetric())
    assert type(layer).__name__ == "ParametrizedLinear"
    assert isinstance(layer, nn.Linear)
    assert parametrize.type_before_parametrizations(layer) is nn.Linear
    assert parametrize.is_parametrized(layer)
    assert parametrize.is_parametrized(layer, "weight")
    assert not parametrize.is_parametrized(layer, "bias")
    assert layer.weight.tolist() == layer.weight.T.tolist()
    layer(mg.ones(2, 3)).sum().backward()
    held = layer.parametrizations.weight.original
    assert held.grad.tolist() == [[2, 4, 4], [0, 2, 4], [0, 0, 2]]
    assert [name for name, _ in layer.named_parameters()] == [
        "bias",
        "parametrizations.weight.original",
    ]
    value = mg.tensor([[1.0, 2, 3], [2, 4, 5], [3, 5, 6]])
    layer.weight = value
    assert layer.weight.tolist() == value.tolist()
    parametrize.register_parametrization(layer, "weight", Doubled())
    assert layer.weight.tolist() == (2.0 * value).tolist()
    twin = copy.deepcopy(layer)
    parametrize.remove_parametrizations(layer, "weight")
    assert type(layer) is nn.Linear
    assert isinstance(layer.weight, nn.Parameter)
    assert layer.weight.tolist() == twin.weight.tolist() == (2.0 * value).tolist()
    parametrize.remove_parametrizations(twin, "weight", leave_parametrized=False)
    assert twin.weight.tolist() == value.triu().tolist()
    assert original.shape == (3, 3)


def test_it_is_computed_once_within_a_block():
    calls = []

    class Counting(nn.Module):
        def forward(self, x):
            calls.append(1)
            return x * 1.0

    layer = parametrize.register_parametrization(nn.Linear(1, 1), "bias", Counting())
    calls.clear()
    with parametrize.cached(), parametrize.cached():
        assert layer.bias is layer.bias
    assert len(calls) == 1
    assert layer.bias is not layer.bias


def test_two_tensors_and_a_buffer():
    layer = nn.BatchNorm1d(2)
    for name in ("weight", "bias", "running_mean"):
        parametrize.register_parametrization(layer, name, Doubled())
    assert layer.weight.tolist() == [2.0, 2.0]
    assert list(layer.state_dict()) == [
        "running_var",
        "num_batches_tracked",
        "parametrizations.weight.original",
        "parametrizations.bias.original",
        "parametrizations.running_mean.original",
    ]
    parametrize.remove_parametrizations(layer, "weight")
    assert parametrize.is_parametrized(layer, "bias")
    assert layer.bias.tolist() == [0.0, 0.0]
    parametrize.remove_parametrizations(layer, "running_mean")
    assert "running_mean" in dict(layer.named_buffers())


# ---- those that are there ------------------------------------------------------------------------

UTILS = "torch.nn.utils.parametrizations"


def find(n, name):
    """A parametrization of the package that ``n`` is the ``nn`` of."""
    if n is nn:
        return getattr(parametrizations, name)
    return getattr(pytest.importorskip(UTILS), name)


def test_weight_norm(rng):
    layer = parametrizations.weight_norm(nn.Linear(3, 2).double())
    weight, held = layer.weight.detach(), layer.parametrizations.weight
    np.testing.assert_allclose(
        held.original0.detach().numpy()[:, 0], np.linalg.norm(weight.numpy(), axis=1), 1e-12
    )
    with mg.no_grad():
        held.original0.mul_(2.0)
    np.testing.assert_allclose(layer.weight.detach().numpy(), 2.0 * weight.numpy(), rtol=1e-12)
    names = ("parametrizations.weight.original0", "parametrizations.weight.original1")
    x = mg.tensor(rng.standard_normal((2, 3)))
    assert mg.gradcheck(
        lambda *v: mg.func.functional_call(layer, dict(zip(names, v, strict=True)), (x,)),
        (held.original0, held.original1),
    )


@pytest.mark.parametrize("dim", [0, 1, -1, None])
def test_weight_norm_as_pytorch(dim):
    same_as_torch(lambda n: find(n, "weight_norm")(n.Linear(3, 2), dim=dim), (4, 3))
    same_as_torch(lambda n: n.utils.weight_norm(n.Linear(3, 2), dim=dim), (4, 3))
    if dim is not None:
        same_as_torch(lambda n: find(n, "weight_norm")(n.Conv1d(3, 2, 2), dim=dim), (4, 3, 5))


def test_a_state_of_the_older_weight_norm():
    old = nn.utils.weight_norm(nn.Linear(3, 2))
    new = parametrizations.weight_norm(nn.Linear(3, 2))
    assert new.load_state_dict(old.state_dict()) == ([], [])
    assert mg.allclose(new.weight, old.weight)
    weight = old.weight.tolist()
    nn.utils.remove_weight_norm(old)
    assert list(old.state_dict()) == ["bias", "weight"]
    assert old.weight.tolist() == weight
    assert isinstance(old.weight, nn.Parameter)
    assert "forward" not in vars(old)


def test_spectral_norm(rng):
    layer = nn.Conv2d(2, 3, 2).double()
    largest = np.linalg.norm(layer.weight.detach().numpy().reshape(3, -1), 2)
    before = layer.weight.detach().numpy()
    parametrizations.spectral_norm(layer, n_power_iterations=50)
    np.testing.assert_allclose(layer.weight.detach().numpy(), before / largest, rtol=1e-6)
    kept = layer.eval().parametrizations.weight[0]._u.tolist()
    x = mg.tensor(rng.standard_normal((1, 2, 3, 3)), requires_grad=True)
    (layer(x).sum() - layer(-x).square().sum()).backward()
    assert layer.parametrizations.weight[0]._u.tolist() == kept
    assert mg.gradcheck(layer, (x,))


@pytest.mark.parametrize(
    ("make", "shape"),
    [
        (lambda n: n.Linear(3, 4), (2, 3)),
        (lambda n: n.Conv2d(2, 3, 2), (2, 2, 3, 3)),
        (lambda n: n.ConvTranspose2d(2, 3, 2), (2, 2, 3, 3)),
    ],
)
def test_spectral_norm_as_pytorch(make, shape):
    same_as_torch(lambda n: find(n, "spectral_norm")(make(n), n_power_iterations=3), shape)
    same_as_torch(lambda n: n.utils.spectral_norm(make(n)), shape)
    same_as_torch(lambda n: n.utils.spectral_norm(make(n)).eval(), shape)


def test_the_older_spectral_norm_is_removed():
    layer = nn.utils.spectral_norm(nn.Linear(3, 4), n_power_iterations=20)
    layer(mg.ones(1, 3)).sum().backward()
    assert layer.weight_orig.grad is not None
    assert np.linalg.norm(layer.weight.detach().numpy(), 2) == pytest.approx(1.0, rel=1e-3)
    nn.utils.remove_spectral_norm(layer)
    assert list(layer.state_dict()) == ["bias", "weight"]
    with pytest.raises(ValueError, match="has no computed weight named 'weight'"):
        nn.utils.remove_spectral_norm(layer)


@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (3, 5)])
@pytest.mark.parametrize("kind", [None, "matrix_exp", "cayley", "householder"])
def test_orthogonal(shape, kind, rng):
    layer = nn.Linear(shape[1], shape[0]).double()
    parametrizations.orthogonal(layer, orthogonal_map=kind)

    def check():
        q = layer.weight.detach().numpy()
        q = q if shape[0] >= shape[1] else q.T
        np.testing.assert_allclose(q.T @ q, np.eye(min(shape)), atol=1e-12)

    check()
    optimizer = mg.optim.SGD(layer.parameters(), lr=0.1)
    x = mg.tensor(rng.standard_normal((4, shape[1])))
    start = layer.weight.detach().numpy()
    layer(x).square().sum().backward()
    optimizer.step()
    check()
    assert abs(layer.weight.detach().numpy() - start).max() > 1e-4 or shape == (4, 4)
    wanted = np.linalg.qr(rng.standard_normal((5, 5)))[0][: shape[0], : shape[1]]
    if max(shape) == 5:
        layer.weight = mg.tensor(wanted)
        np.testing.assert_allclose(layer.weight.detach().numpy(), wanted, atol=1e-12)
    same_as_torch(
        lambda n: find(n, "orthogonal")(n.Linear(shape[1], shape[0]), orthogonal_map=kind),
        (2, shape[1]),
    )


# ---- vectors and fusion --------------------------------------------------------------------------


def test_parameters_as_a_vector():
    net = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))
    vector = nn.utils.parameters_to_vector(net.parameters())
    assert vector.shape == (13,)
    assert vector.requires_grad
    nn.utils.vector_to_parameters(mg.arange(13.0), net.parameters())
    assert net[0].weight.tolist() == [[0, 1], [2, 3], [4, 5]]
    assert net[1].bias.tolist() == [12.0]
    assert net[0].weight.is_leaf
    text = "the vector has shape (12,), but the parameters have 13 elements"
    with pytest.raises(ValueError, match=re.escape(text)):
        nn.utils.vector_to_parameters(mg.ones(12), net.parameters())


@pytest.mark.parametrize("bias", [True, False])
def test_fusion(bias, rng):
    cases = [
        (nn.Conv2d(3, 4, 2, bias=bias), nn.BatchNorm2d(4), (2, 3, 3, 3), False),
        (nn.ConvTranspose1d(3, 4, 2, bias=bias), nn.BatchNorm1d(4, affine=bias), (2, 3, 3), True),
        (nn.Linear(3, 4, bias=bias), nn.BatchNorm1d(4), (2, 3), False),
    ]
    for layer, bn, shape, transposed in cases:
        both = nn.Sequential(layer, bn).double()
        x = mg.tensor(rng.standard_normal(shape))
        both(x)
        expected = both.eval()(x).detach().numpy()
        if type(layer) is nn.Linear:
            fused = nn.utils.fuse_linear_bn_eval(layer, bn)
        else:
            fused = nn.utils.fuse_conv_bn_eval(layer, bn, transposed)
        assert type(fused) is type(layer)
        np.testing.assert_allclose(fused(x).detach().numpy(), expected, rtol=1e-10, atol=1e-12)
    with pytest.raises(ValueError, match="fusion is for evaluation"):
        nn.utils.fuse_conv_bn_eval(nn.Conv1d(1, 1, 1), nn.BatchNorm1d(1))


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (
            lambda: parametrize.register_parametrization(nn.Linear(2, 3), "w", Doubled()),
            ValueError,
            "[register_parametrization] Linear has no parameter or buffer that is named 'w'",
        ),
        (
            lambda: parametrize.register_parametrization(nn.Linear(2, 3), "weight", nn.Flatten(0)),
            ValueError,
            "turns float32 (3, 2) into float32 (6,): with unsafe=True it may",
        ),
        (
            lambda: parametrize.remove_parametrizations(nn.Linear(2, 3), "weight"),
            ValueError,
            "[remove_parametrizations] Linear has no parametrized 'weight'",
        ),
        (
            lambda: parametrizations.orthogonal(nn.Linear(2, 3), "bias"),
            ValueError,
            "[orthogonal] bias has shape (3,): it is no matrix",
        ),
        (
            lambda: nn.utils.weight_norm(nn.ReLU()),
            ValueError,
            "[weight_norm] ReLU has no parameter named 'weight'",
        ),
    ],
)
def test_refusals(call, error, text):
    with pytest.raises(error, match=re.escape(text)):
        call()
