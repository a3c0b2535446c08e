"""Small layers: bilinear, containers of parameters, unpooling, norms of windows and channels."""

from __future__ import annotations

import copy
import pickle
import re

import numpy as np
import pytest
from torch_layers import same_as_torch

import minigrad as mg
from minigrad import nn

F = nn.functional


# ---- bilinear ------------------------------------------------------------------------------------


def test_bilinear(rng, restore_random):
    layer = nn.Bilinear(2, 3, 4).double()
    a, b = rng.standard_normal((5, 2)), rng.standard_normal((5, 3))
    expected = np.einsum("ni,kij,nj->nk", a, layer.weight.detach().numpy(), b)
    expected += layer.bias.detach().numpy()
    found = layer(mg.tensor(a), mg.tensor(b)).detach().numpy()
    np.testing.assert_allclose(found, expected, 1e-12, 1e-12)
    same_as_torch(lambda n: n.Bilinear(2, 3, 4), (5, 2), (5, 3))
    same_as_torch(lambda n: n.Bilinear(2, 3, 4, bias=False), (2, 5, 2), (2, 5, 3))
    assert abs(nn.Bilinear(4, 300, 10).weight).max().item() == pytest.approx(0.5, abs=1e-3)


# ---- containers ----------------------------------------------------------------------------------


def test_a_list_of_parameters():
    held = nn.ParameterList([mg.ones(2), nn.Parameter(mg.zeros(3))])
    held.append(mg.ones(1)).extend([mg.ones(4)])
    held += [mg.ones(5)]
    assert [len(p) for p in held] == [2, 3, 1, 4, 5]
    assert all(p.requires_grad for p in held)
    held[1] = mg.ones(7)
    assert list(held.state_dict()) == ["0", "1", "2", "3", "4"]
    assert [p.shape[0] for p in held.parameters()] == [2, 7, 1, 4, 5]
    assert len(held.pop()) == 5
    assert len(held) == 4
    assert [p.shape[0] for p in held[1:3]] == [7, 1]
    assert type(held[1:3]) is nn.ParameterList
    held.append("a word")
    assert held[-1] == "a word"
    assert len(list(held.parameters())) == 4
    with pytest.raises(RuntimeError, match="only holds parameters"):
        held()
    with pytest.raises(IndexError, match=re.escape("index 5 is out of range for 5 values")):
        held[5]
    with pytest.raises(TypeError, match="append adds one"):
        held.extend(mg.ones(2))


def test_a_dict_of_parameters():
    held = nn.ParameterDict({"a": mg.ones(2), "b": mg.ones(3)})
    assert list(held) == held.keys() == ["a", "b"]
    assert "a" in held
    assert "c" not in held
    held["c"] = mg.ones(1)
    held["a"] = mg.zeros(5)
    assert [n for n, _ in held.named_parameters()] == ["a", "b", "c"]
    assert held.pop("b").shape == (3,)
    assert len(held) == 2
    assert held.get("b") is None
    assert held.setdefault("d", mg.ones(1)).requires_grad
    assert (held | {"e": mg.ones(1)}).keys() == ["a", "c", "d", "e"]
    assert held.popitem()[0] == "d"
    assert list(reversed(held.copy())) == ["c", "a"]
    del held["a"]
    held.clear()
    assert not len(held)
    with pytest.raises(KeyError, match="has an attribute 'items' already"):
        held["items"] = mg.ones(1)
    with pytest.raises(KeyError):
        held["none"]


def test_containers_of_parameters_in_a_module():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.rows = nn.ParameterList(mg.ones(2) for _ in range(2))
            self.named = nn.ParameterDict({"x": mg.ones(2)})

        def forward(self):
            return (self.rows[0] * self.rows[1] * self.named["x"]).sum()

    model = Model()
    assert list(model.state_dict()) == ["rows.0", "rows.1", "named.x"]
    for twin in (copy.deepcopy(model), pickle.loads(pickle.dumps(model.rows))):
        assert len(list(twin.parameters())) in (2, 3)
    model().backward()
    assert all(p.grad is not None for p in model.parameters())
    assert repr(model.rows) == (
        "ParameterList(\n"
        "    (0): Parameter containing: [minigrad.float32 of size 2]\n"
        "    (1): Parameter containing: [minigrad.float32 of size 2]\n"
        ")"
    )


# ---- unpooling -----------------------------------------------------------------------------------


@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize("batch", [True, False])
@pytest.mark.parametrize("odd", [True, False])
def test_unpooling_as_pytorch(axes, batch, odd):
    shape = (2,) * batch + (3,) + (6 + odd, 4 + odd, 8 + odd)[:axes]

    def make(n):
        pool = getattr(n, f"MaxPool{axes}d")(2, 2, return_indices=True)
        return n.ModuleDict({"pool": pool, "unpool": getattr(n, f"MaxUnpool{axes}d")(2, 2)})

    def both(layers, x):
        y, places = layers["pool"](x)
        return layers["unpool"](y, places, x.shape[-axes:] if odd else None)

    same_as_torch(make, shape, call=both)


def test_unpooling(rng):
    places = mg.tensor([[[1, 2], [9, 15]]])
    x = mg.tensor([[[1.0, 2.0], [3.0, 4.0]]], requires_grad=True)
    y = F.max_unpool2d(x, places, 2)
    flat = np.zeros(16)
    flat[[1, 2, 9, 15]] = [1, 2, 3, 4]
    assert y.flatten().tolist() == flat.tolist()
    assert mg.gradcheck(
        lambda v: F.max_unpool2d(v, places, 2), (mg.tensor(x.tolist(), "float64", True),)
    )
    assert F.max_unpool2d(x, places, 2, output_size=(5, 4)).shape == (1, 5, 4)


# ---- norms ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_norms_of_windows(axes, rng):
    shape = (2, 3) + (4, 5, 4)[:axes]
    for arguments in ((2, 2), (2, 3, 1), (4, 2, 1, True)):
        same_as_torch(lambda n, a=arguments: getattr(n, f"LPPool{axes}d")(*a), shape)
    x = mg.tensor(rng.uniform(0.1, 1, shape), requires_grad=True)
    assert mg.gradcheck(lambda v: getattr(F, f"lp_pool{axes}d")(v, 3, 2), (x,))


def test_a_window_of_zeros_has_no_slope():
    x = mg.zeros(1, 2, requires_grad=True)
    F.lp_pool1d(x, 2, 2).sum().backward()
    assert x.grad.tolist() == [[0.0, 0.0]]
    assert F.lp_pool1d(mg.tensor([[3.0, -4.0]]), 2, 2).tolist() == [[5.0]]


def test_response_norms():
    for size in (1, 2, 3, 4):
        same_as_torch(lambda n, s=size: n.LocalResponseNorm(s, 0.5, 0.7, 2.0), (2, 5, 3, 2))


def test_feature_alpha_dropout(restore_random):
    mg.manual_seed(0)
    layer = nn.FeatureAlphaDropout(0.4)
    assert repr(layer) == "FeatureAlphaDropout(p=0.4, inplace=False)"
    x = mg.randn(200, 100, 3)
    y = layer(x)
    low = y.amin(2)
    same = (y.amax(2) == low).to("float32").mean().item()
    assert same == pytest.approx(0.4, abs=0.02)  # channels are dropped as a whole
    assert y.mean().item() == pytest.approx(0.0, abs=0.05)
    assert y.var().item() == pytest.approx(1.0, abs=0.05)
    assert layer.eval()(x) is x


# ---- distances -----------------------------------------------------------------------------------


@pytest.mark.parametrize("p", [1.0, 2.0, 3.0, np.inf])
def test_pdist(p, rng):
    distance = pytest.importorskip("scipy.spatial.distance")
    x = rng.standard_normal((5, 3))
    expected = distance.pdist(x, "minkowski", p=p)
    np.testing.assert_allclose(F.pdist(mg.tensor(x), p).numpy(), expected, rtol=1e-12)
    assert mg.gradcheck(lambda v: F.pdist(v, p), (mg.tensor(x, requires_grad=True),))
    assert F.pdist(mg.ones(1, 3)).shape == (0,)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (
            lambda: F.pdist(mg.ones(3)),
            ValueError,
            "[pdist] the input has shape (3,), but must be (N, M)",
        ),
        (
            lambda: F.max_unpool1d(mg.ones(1, 2), mg.tensor([[0, 4]]), 2),
            IndexError,
            "[max_unpool1d] an index is not in 0..3, the places of (4,)",
        ),
        (
            lambda: F.max_unpool1d(mg.ones(1, 2), mg.tensor([[0, 1]]), 2, output_size=[7]),
            ValueError,
            "[max_unpool1d] output_size (7,) is out of reach: it is (4,), or differs from that by "
            "less than the stride (2,)",
        ),
        (
            lambda: F.lp_pool1d(mg.ones(1, 2), 0, 2),
            ValueError,
            "[lp_pool1d] norm_type is 0: there is no such norm",
        ),
        (
            lambda: F.feature_alpha_dropout(mg.ones(2)),
            ValueError,
            "[feature_alpha_dropout] the input has shape (2,), but must be (N, C, ...)",
        ),
        (
            lambda: nn.Bilinear(0, 1, 1),
            ValueError,
            "[Bilinear] in1_features is 0, but must be at least 1",
        ),
    ],
)
def test_refusals(call, error, text):
    with pytest.raises(error, match=re.escape(text)):
        call()
