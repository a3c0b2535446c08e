"""``reset_parameters`` brings layers back to initial values."""

from __future__ import annotations

import pytest

import minigrad as mg
from minigrad import nn

pytestmark = pytest.mark.usefixtures("restore_random")

DRAWN = {
    "Linear": lambda: nn.Linear(4, 50),
    "Bilinear": lambda: nn.Bilinear(4, 3, 50),
    "Conv2d": lambda: nn.Conv2d(4, 50, 2, groups=2),
    "ConvTranspose1d": lambda: nn.ConvTranspose1d(20, 50, 3),
    "AdaptiveLogSoftmaxWithLoss": lambda: nn.AdaptiveLogSoftmaxWithLoss(8, 90, [50, 70], 2.0),
}


@pytest.mark.parametrize("name", DRAWN)
def test_drawn_values(name):
    mg.manual_seed(0)
    layer, fresh = DRAWN[name](), DRAWN[name]()
    held = list(layer.parameters())
    with mg.no_grad():
        for p in held:
            p.fill_(100.0)
    layer.reset_parameters()
    for p, q in zip(layer.parameters(), fresh.parameters(), strict=True):
        assert p.requires_grad
        assert abs(p).max().item() == pytest.approx(abs(q).max().item(), rel=0.3)
        assert p.std().item() == pytest.approx(q.std().item(), rel=0.6)
    assert all(p is q for p, q in zip(layer.parameters(), held, strict=True))


def test_embeddings():
    for layer in (nn.Embedding(500, 3, padding_idx=2), nn.EmbeddingBag(500, 3, padding_idx=2)):
        with mg.no_grad():
            layer.weight.fill_(9.0)
        layer.reset_parameters()
        assert layer.weight[2].tolist() == [0.0, 0.0, 0.0]
        assert layer.weight.std().item() == pytest.approx(1.0, abs=0.1)


@pytest.mark.parametrize(
    "make",
    [
        lambda: nn.BatchNorm1d(3),
        lambda: nn.BatchNorm1d(3, affine=False),
        lambda: nn.InstanceNorm1d(3, affine=True, track_running_stats=True),
        lambda: nn.InstanceNorm1d(3),
        lambda: nn.LayerNorm(3, bias=False),
        lambda: nn.RMSNorm(3),
        lambda: nn.GroupNorm(1, 3),
        lambda: nn.PReLU(2, 0.5),
    ],
)
def test_fixed_values(make):
    layer, fresh = make(), make()
    for value in layer.state_dict().values():
        value.fill_(7)
    layer.reset_parameters()
    for name, value in fresh.state_dict().items():
        assert layer.state_dict()[name].tolist() == value.tolist(), name


def test_lazy_layers():
    model = nn.Sequential(nn.LazyLinear(4), nn.LazyBatchNorm1d())
    model.apply(lambda m: m.reset_parameters() if hasattr(m, "reset_parameters") else None)
    model(mg.ones(2, 3))
    model.apply(lambda m: m.reset_parameters() if hasattr(m, "reset_parameters") else None)
    assert model[1].num_batches_tracked.item() == 0
