"""nn.summary: layers, shapes, parameters and FLOPs of a model."""

from __future__ import annotations

import pytest

import minigrad as mg
from minigrad import nn
from minigrad.runtime.costs import cost
from minigrad.runtime.native import trace

pytestmark = pytest.mark.usefixtures("restore_random")


def test_the_table(capsys):
    model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU(), nn.Flatten())
    model[0].bias.requires_grad = False
    table = nn.summary(model, mg.ones(2, 1, 6, 6))
    text = """\
layer             output shape  parameters  FLOPs
----------------  ------------  ----------  -----
Sequential        (2, 32)               24  1,792
  0: Conv2d       (2, 2, 4, 4)          20  1,216
  1: BatchNorm2d  (2, 2, 4, 4)           4    512
  2: ReLU         (2, 2, 4, 4)           0     64
  3: Flatten      (2, 32)                0      0
parameters: 24, of which 2 do not require grad
elements of buffers: 5
memory of parameters: 96 bytes
FLOPs of a forward: 1,792
"""
    assert capsys.readouterr().out == text
    assert (table.parameters, table.trainable, table.buffers) == (24, 22, 5)
    assert (table.flops, table.parameter_bytes) == (1792, 96)
    assert repr(table) == "<summary of 5 layers, 24 parameters>"


class Shared(nn.Module):
    """One layer in two places, and one place that is called three times."""

    def __init__(self):
        super().__init__()
        layer = nn.Linear(4, 4)
        self.first = nn.Sequential(layer, nn.Tanh())
        self.second = nn.Sequential(layer)

    def forward(self, batch):
        x = batch["x"]
        for _ in range(3):
            x = self.first(x)
        return {"a": x, "b": self.second(x)}


def test_shared_and_repeated_modules_and_a_dict_as_input():
    table = nn.summary(Shared(), {"x": mg.ones(2, 4)}, quiet=True)
    rows = [(r.level, r.name, r.kind, r.calls, r.parameters, r.flops) for r in table.rows]
    assert rows == [
        (0, "", "Shared", 1, 20, 312),
        (1, "first", "Sequential", 3, 20, 240),
        (2, "first.0", "Linear", 3, 20, 216),
        (2, "first.1", "Tanh", 3, 0, 24),
        (1, "second", "Sequential", 1, 20, 72),
        (2, "first.0", "Linear", 1, None, 72),
    ]
    assert table.rows[0].output == [(2, 4), (2, 4)]
    assert (table.parameters, table.flops) == (20, 312)
    assert "0: Linear x 3" in str(table)
    assert "shared" in str(table)


def test_inputs_by_name_several_and_none():
    class Add(nn.Module):
        def forward(self, a=None, b=None):
            return mg.ones(3) if a is None else a + b

    a = mg.ones(5)
    for given in ({"a": a, "b": a}, (a, a), [a, a]):
        assert nn.summary(Add(), given, quiet=True).flops == 5
    assert nn.summary(Add(), quiet=True).rows[0].output == [(3,)]


def test_depth_keeps_the_totals():
    model = nn.Transformer(8, 2, 1, 1, 16)
    inputs = (mg.ones(3, 1, 8), mg.ones(2, 1, 8))
    whole = nn.summary(model, inputs, quiet=True)
    part = nn.summary(model, inputs, depth=1, quiet=True)
    assert [row.kind for row in part.rows] == [
        "Transformer",
        "TransformerEncoder",
        "TransformerDecoder",
    ]
    assert part.flops == whole.flops == part.rows[0].flops == sum(r.flops for r in part.rows[1:])
    assert [row for row in whole.rows if row.level <= 1] == part.rows


def test_a_lazy_model_and_one_on_its_own():
    table = nn.summary(nn.Sequential(nn.LazyLinear(3)), mg.ones(2, 5), quiet=True)
    assert table.parameters == 18
    assert nn.summary(nn.ReLU(), mg.ones(7), quiet=True).flops == 7


def test_nothing_is_changed():
    model = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3), nn.Dropout())
    model[2].eval()
    state, before = mg.get_rng_state(), model[1].running_mean.tolist()
    nn.summary(model, mg.ones(4, 3), quiet=True)
    assert str(mg.get_rng_state()) == str(state)
    assert [m.training for m in model] == [True, True, False]
    assert model[1].running_mean.tolist() == before
    assert "forward" not in vars(model[0])


def test_a_model_that_fails_is_as_before():
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(4, 4))
    with pytest.raises(ValueError, match="linear"):
        nn.summary(model, mg.ones(2, 3))
    assert model.training
    assert "forward" not in vars(model[0])
    with pytest.raises(ValueError, match=r"\[summary\] depth is -1: give 0 or more levels"):
        nn.summary(model, mg.ones(2, 3), depth=-1)
    with pytest.raises(TypeError, match=r"\[summary\] expected a Module, not Tensor"):
        nn.summary(mg.ones(2))


# ---- FLOPs ---------------------------------------------------------------------------------------


def counted(function):
    total = []
    with mg.no_grad(), trace(lambda *call: total.append(cost(*call)[1])):
        function()
    return sum(total)


A, B = mg.ones(2, 3, 4), mg.ones(2, 4, 5)
IMAGE, KERNEL = mg.ones(2, 4, 7, 7), mg.ones(6, 2, 3, 3)
F = nn.functional


@pytest.mark.parametrize(
    ("function", "flops"),
    [
        (lambda: A @ B, 2 * 2 * 3 * 4 * 5),
        (lambda: F.linear(A, mg.ones(5, 4), mg.ones(5)), 2 * 6 * 4 * 5 + 30),
        (lambda: F.conv2d(IMAGE, KERNEL, groups=2), 2 * (2 * 6 * 5 * 5) * (2 * 9)),
        (lambda: F.conv_transpose2d(IMAGE, mg.ones(4, 3, 3, 3)), 2 * IMAGE.numel() * 3 * 9),
        (lambda: A.exp() + 1, 24 + 24),
        (lambda: A.sum(), 24),
        (lambda: A.softmax(-1), 5 * 24),
        (lambda: A.var(), 4 * 24),
        (lambda: A.reshape(6, 4).T.contiguous(), 0),
        (lambda: A[0].clone(), 0),
        (lambda: mg.linalg.inv(mg.eye(3)), 2 * 27),
        (lambda: mg.linalg.cholesky(mg.eye(3)), 9),
        (
            lambda: F.scaled_dot_product_attention(*[mg.ones(2, 2, 5, 4)] * 3),
            4 * 5 * 5 * (8 + 8 + 5),
        ),
        (lambda: mg.ones(3).where(mg.tensor(True), 0.0), 0),
    ],
)
def test_counts(function, flops):
    assert counted(function) == flops


@pytest.mark.parametrize(
    "build",
    [
        lambda lib: (lib.nn.Linear(7, 5, bias=False), (3, 7)),
        lambda lib: (lib.nn.Conv2d(4, 6, 3, stride=2, bias=False), (2, 4, 9, 9)),
        lambda lib: (lib.nn.ConvTranspose2d(4, 6, 3, bias=False), (2, 4, 5, 5)),
    ],
)
def test_products_count_as_in_pytorch(build):
    torch = pytest.importorskip("torch")
    from torch.utils.flop_counter import FlopCounterMode

    model, shape = build(torch)
    with FlopCounterMode(display=False) as counter:
        model(torch.ones(shape))
    ours, _ = build(mg)
    assert nn.summary(ours, mg.ones(shape), quiet=True).flops == counter.get_total_flops()


def test_a_recurrent_layer_counts_its_products():
    layer = nn.LSTM(4, 3, bias=False)
    flops = nn.summary(layer, mg.ones(5, 2, 4), quiet=True).flops
    products = 2 * 5 * 2 * 12 * (4 + 3)
    assert products <= flops <= products * 1.6
