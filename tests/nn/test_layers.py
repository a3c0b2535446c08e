"""Convolution, pooling, normalisation, dropout, embedding and attention as modules."""

from __future__ import annotations

import math

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn
from minigrad.nn import functional as F

pytestmark = pytest.mark.usefixtures("restore_random")  # layers draw their weights


def drawn(rng, *shape):
    return mg.tensor(rng.standard_normal(shape), mg.float32)


# module, input shape, the same as a function of the module and the input
LAYERS = [
    (lambda: nn.Conv1d(4, 6, 3, 2, 1, 2, 2), (2, 4, 9), lambda m, x: F.conv1d(
        x, m.weight, m.bias, 2, 1, 2, 2)),
    (lambda: nn.Conv2d(2, 3, (3, 2), padding="same", bias=False), (2, 5, 5), lambda m, x: F.conv2d(
        x, m.weight, None, padding="same")),
    (lambda: nn.Conv3d(1, 2, 2), (1, 1, 3, 3, 3), lambda m, x: F.conv3d(x, m.weight, m.bias)),
    (lambda: nn.ConvTranspose1d(4, 6, 3, 2, 1, 1, 2), (2, 4, 5), lambda m, x: F.conv_transpose1d(
        x, m.weight, m.bias, 2, 1, 1, 2)),
    (lambda: nn.ConvTranspose2d(2, 3, 2, dilation=2), (2, 4, 4), lambda m, x: F.conv_transpose2d(
        x, m.weight, m.bias, dilation=2)),
    (lambda: nn.ConvTranspose3d(1, 2, 2), (1, 1, 2, 2, 2), lambda m, x: F.conv_transpose3d(
        x, m.weight, m.bias)),
    (lambda: nn.MaxPool1d(2), (2, 3, 6), lambda m, x: F.max_pool1d(x, 2)),
    (lambda: nn.MaxPool2d(3, 2, 1, ceil_mode=True), (2, 6, 6), lambda m, x: F.max_pool2d(
        x, 3, 2, 1, ceil_mode=True)),
    (lambda: nn.MaxPool3d(2), (1, 4, 4, 4), lambda m, x: F.max_pool3d(x, 2)),
    (lambda: nn.AvgPool1d(2, 1, 1), (2, 3, 6), lambda m, x: F.avg_pool1d(x, 2, 1, 1)),
    (lambda: nn.AvgPool2d(2, divisor_override=3), (2, 4, 4), lambda m, x: F.avg_pool2d(
        x, 2, divisor_override=3)),
    (lambda: nn.AvgPool3d(2), (1, 4, 4, 4), lambda m, x: F.avg_pool3d(x, 2)),
    (lambda: nn.AdaptiveAvgPool1d(3), (2, 7), lambda m, x: F.adaptive_avg_pool1d(x, 3)),
    (lambda: nn.AdaptiveAvgPool2d((1, None)), (2, 5, 4), lambda m, x: F.adaptive_avg_pool2d(
        x, (1, None))),
    (lambda: nn.AdaptiveAvgPool3d(2), (1, 3, 3, 3), lambda m, x: F.adaptive_avg_pool3d(x, 2)),
    (lambda: nn.AdaptiveMaxPool1d(3), (2, 7), lambda m, x: F.adaptive_max_pool1d(x, 3)),
    (lambda: nn.AdaptiveMaxPool2d(2), (2, 5, 4), lambda m, x: F.adaptive_max_pool2d(x, 2)),
    (lambda: nn.AdaptiveMaxPool3d(2), (1, 3, 3, 3), lambda m, x: F.adaptive_max_pool3d(x, 2)),
    (lambda: nn.LayerNorm((3, 2), 0.1), (4, 3, 2), lambda m, x: F.layer_norm(
        x, (3, 2), m.weight, m.bias, 0.1)),
    (lambda: nn.RMSNorm(3), (4, 3), lambda m, x: F.rms_norm(x, 3, m.weight)),
    (lambda: nn.GroupNorm(2, 4, 0.1), (2, 4, 3), lambda m, x: F.group_norm(
        x, 2, m.weight, m.bias, 0.1)),
    (lambda: nn.InstanceNorm1d(3), (2, 3, 4), lambda m, x: F.instance_norm(x)),
    (lambda: nn.InstanceNorm2d(3, affine=True), (3, 4, 2), lambda m, x: F.instance_norm(
        x.unsqueeze(0), weight=m.weight, bias=m.bias)[0]),
    (lambda: nn.InstanceNorm3d(3), (2, 3, 2, 2, 2), lambda m, x: F.instance_norm(x)),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(LAYERS)))
def test_layers_are_their_functions(rng, number):
    make, shape, function = LAYERS[number]
    layer, x = make(), drawn(rng, *shape)
    with mg.no_grad():
        for parameter in layer.parameters():
            parameter.copy_(drawn(rng, *parameter.shape))
    assert layer(x).tolist() == function(layer, x).tolist()
    assert repr(layer).startswith(type(layer).__name__ + "(")


def test_weights_have_pytorchs_shapes_and_bounds():
    for layer, shape, inputs in (
        (nn.Conv1d(8, 6, 5, groups=2), (6, 4, 5), 20),
        (nn.Conv2d(8, 6, (3, 2)), (6, 8, 3, 2), 48),
        (nn.ConvTranspose2d(8, 6, 3, groups=2), (8, 3, 3, 3), 27),
    ):
        bound = 1 / math.sqrt(inputs)
        w = layer.weight.detach().numpy()
        assert w.shape == shape
        assert layer.bias.shape == (6,)
        assert abs(w).max() <= bound
        assert abs(w).max() > 0.8 * bound
        assert abs(layer.bias.detach().numpy()).max() <= bound
    assert nn.Conv2d(2, 3, 2, bias=False).bias is None
    assert list(nn.Conv2d(2, 3, 2).state_dict()) == ["weight", "bias"]
    assert nn.Conv2d(2, 3, 2, dtype=mg.float64).weight.dtype is mg.float64


@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular"])
@pytest.mark.parametrize("padding", [(1, 2), "same"])
def test_padding_modes(rng, mode, padding):
    layer, x = nn.Conv2d(1, 1, (2, 5), padding=padding, padding_mode=mode), drawn(rng, 1, 4, 5)
    around = ((0, 0), (0, 1), (2, 2)) if padding == "same" else ((0, 0), (1, 1), (2, 2))
    numpys = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}[mode]
    wide = mg.tensor(np.pad(x.numpy(), around, numpys))
    assert layer(x).tolist() == F.conv2d(wide, layer.weight, layer.bias).tolist()


def test_the_output_size_of_a_transposed_convolution(rng):
    layer, x = nn.ConvTranspose2d(2, 3, 3, stride=2, padding=1), drawn(rng, 1, 2, 4, 5)
    assert layer(x).shape == (1, 3, 7, 9)
    assert layer(x, output_size=(8, 9)).shape == (1, 3, 8, 9)
    assert layer(x, output_size=(1, 3, 7, 10)).shape == (1, 3, 7, 10)
    with pytest.raises(ValueError, match=r"output_size \(9, 9\) is out of reach"):
        layer(x, output_size=9)


@pytest.mark.parametrize("momentum", [0.3, None])
def test_batch_norm_tracks_statistics(rng, momentum):
    layer = nn.BatchNorm1d(2, momentum=momentum)
    batches = [drawn(rng, 5, 2) * 2 + 1 for _ in range(3)]
    mean, var = np.zeros(2), np.ones(2)
    for count, x in enumerate(batches, 1):
        y = layer(x)
        np.testing.assert_allclose(y.detach().numpy().mean(0), 0, atol=1e-6)
        share = 1 / count if momentum is None else momentum
        mean = mean * (1 - share) + share * x.numpy().mean(0)
        var = var * (1 - share) + share * x.numpy().var(0, ddof=1)
    np.testing.assert_allclose(layer.running_mean.numpy(), mean, rtol=1e-5)
    np.testing.assert_allclose(layer.running_var.numpy(), var, rtol=1e-5)
    assert layer.num_batches_tracked.item() == 3
    layer.eval()
    y = layer(batches[0]).detach().numpy()
    np.testing.assert_allclose(y, (batches[0].numpy() - mean) / np.sqrt(var + 1e-5), atol=1e-5)
    assert layer.num_batches_tracked.item() == 3


def test_batch_norm_without_statistics_uses_the_batch(rng):
    layer, x = nn.BatchNorm2d(3, affine=False, track_running_stats=False), drawn(rng, 2, 3, 2, 2)
    expected = F.batch_norm(x, None, None, training=True).tolist()
    assert layer(x).tolist() == expected
    assert layer.eval()(x).tolist() == expected
    assert not layer.state_dict()


def test_state_of_normalisation():
    names = ["weight", "bias", "running_mean", "running_var", "num_batches_tracked"]
    assert list(nn.BatchNorm3d(2).state_dict()) == names
    assert list(nn.InstanceNorm1d(2, affine=True, track_running_stats=True).state_dict()) == names
    assert list(nn.InstanceNorm1d(2).state_dict()) == []
    assert list(nn.GroupNorm(1, 2).state_dict()) == names[:2]
    assert list(nn.LayerNorm(2, bias=False).state_dict()) == names[:1]
    assert list(nn.RMSNorm(2, elementwise_affine=False).state_dict()) == []
    copy = nn.BatchNorm1d(2)
    layer = nn.BatchNorm1d(2)
    layer(mg.tensor([[1.0, 2.0], [3.0, 5.0]]))
    copy.load_state_dict(layer.state_dict())
    assert copy.num_batches_tracked.item() == 1
    assert copy.running_mean.tolist() == layer.running_mean.tolist()


def test_instance_norm_tracks_statistics_when_asked(rng):
    layer, x = nn.InstanceNorm1d(2, track_running_stats=True), drawn(rng, 3, 2, 5)
    layer(x)
    np.testing.assert_allclose(layer.running_mean.numpy(), 0.1 * x.numpy().mean((0, 2)), atol=1e-6)
    y = layer.eval()(x)
    expected = F.batch_norm(x, layer.running_mean, layer.running_var)
    assert y.tolist() == expected.tolist()


@pytest.mark.parametrize(
    "kind", [nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.AlphaDropout]
)
def test_dropout_is_for_training(kind):
    layer = kind(0.5)
    x = mg.ones({nn.Dropout1d: (4, 9), nn.Dropout2d: (9, 4, 2, 2)}.get(kind, (9, 4, 2, 2, 2)))
    mg.manual_seed(0)
    y = layer(x).numpy()
    assert len(np.unique(y)) == 2
    mg.manual_seed(0)
    assert (layer(x).numpy() == y).all()
    assert layer.eval()(x) is x


def test_embedding():
    layer = nn.Embedding(5, 3, padding_idx=-1)
    assert layer.padding_idx == 4
    assert layer.weight.tolist()[4] == [0.0] * 3
    y = layer(mg.tensor([[0, 4], [1, 1]]))
    assert y.shape == (2, 2, 3)
    y.sum().backward()
    assert layer.weight.grad.tolist() == [[1.0] * 3, [2.0] * 3, [0.0] * 3, [0.0] * 3, [0.0] * 3]


# ---- attention -----------------------------------------------------------------------------------


def by_hand(layer, q, k, v, hidden):
    """Batch first; ``hidden`` (N, heads, L, S) is true where a query must not look."""
    e, heads = layer.embed_dim, layer.num_heads
    parameters = {name: p.detach().numpy() for name, p in layer.named_parameters()}
    if layer.in_proj_weight is not None:
        weights = np.split(parameters["in_proj_weight"], 3)
    else:
        weights = [parameters[f"{n}_proj_weight"] for n in "qkv"]
    biases = np.split(parameters["in_proj_bias"], 3) if "in_proj_bias" in parameters else [0, 0, 0]
    parts = [
        (x @ w.T + b).reshape(*x.shape[:2], heads, e // heads).transpose(0, 2, 1, 3)
        for x, w, b in zip((q, k, v), weights, biases, strict=True)
    ]
    scores = parts[0] @ parts[1].swapaxes(-1, -2) / math.sqrt(e // heads)
    shares = np.exp(np.where(hidden, -np.inf, scores))
    shares /= shares.sum(-1, keepdims=True)
    y = (shares @ parts[2]).transpose(0, 2, 1, 3).reshape(*q.shape[:2], e)
    return y @ parameters["out_proj.weight"].T + parameters.get("out_proj.bias", 0), shares


@pytest.mark.parametrize("sizes", [{}, {"kdim": 3, "vdim": 5}])
@pytest.mark.parametrize("bias", [False, True])
def test_multihead_attention(rng, sizes, bias):
    layer = nn.MultiheadAttention(4, 2, bias=bias, batch_first=True, dtype=mg.float64, **sizes)
    first = nn.MultiheadAttention(4, 2, bias=bias, dtype=mg.float64, **sizes)
    first.load_state_dict(layer.state_dict())
    shapes = (3, 4), (5, sizes.get("kdim", 4)), (5, sizes.get("vdim", 4))
    q, k, v = (rng.standard_normal((2, *s)) for s in shapes)
    tensors = [mg.tensor(x) for x in (q, k, v)]
    rows = rng.random((3, 5)) < 0.4
    keys = rng.random((2, 5)) < 0.4
    heads = rng.random((4, 3, 5)) < 0.4
    for mask in (rows, keys, heads):
        mask[..., 0] = False
    for attn_mask, padding in ((None, None), (rows, keys), (heads, None)):
        hidden = np.zeros((2, 2, 3, 5), bool)
        options = {}
        if attn_mask is not None:
            hidden |= attn_mask if attn_mask.ndim == 2 else attn_mask.reshape(2, 2, 3, 5)
            options["attn_mask"] = mg.tensor(attn_mask)
        if padding is not None:
            hidden |= padding[:, None, None]
            options["key_padding_mask"] = mg.tensor(padding)
        expected, shares = by_hand(layer, q, k, v, hidden)
        y, weights = layer(*tensors, average_attn_weights=False, **options)
        np.testing.assert_allclose(y.detach().numpy(), expected, atol=1e-12)
        np.testing.assert_allclose(weights.detach().numpy(), shares, atol=1e-12)
        y, weights = first(*[t.transpose(0, 1) for t in tensors], **options)
        np.testing.assert_allclose(y.detach().numpy(), expected.swapaxes(0, 1), atol=1e-12)
        np.testing.assert_allclose(weights.detach().numpy(), shares.mean(1), atol=1e-12)
        assert layer(*tensors, need_weights=False, **options)[1] is None
    y, weights = layer(*[t[0] for t in tensors])
    np.testing.assert_allclose(y.detach().numpy(), by_hand(layer, q, k, v, False)[0][0], atol=1e-12)
    assert weights.shape == (3, 5)


def test_the_parameters_of_multihead_attention():
    layer = nn.MultiheadAttention(4, 2)
    names = ["in_proj_weight", "in_proj_bias", "out_proj.weight", "out_proj.bias"]
    assert list(layer.state_dict()) == names
    assert layer.in_proj_weight.shape == (12, 4)
    assert abs(layer.in_proj_weight.detach().numpy()).max() <= math.sqrt(6 / 16)
    assert not layer.in_proj_bias.detach().numpy().any()
    assert not layer.out_proj.bias.detach().numpy().any()
    other = nn.MultiheadAttention(4, 2, bias=False, kdim=3, vdim=5)
    assert [p.shape for p in other.parameters()] == [(4, 4), (4, 3), (4, 5), (4, 4)]


MESSAGES = [
    (lambda: nn.Conv2d(3, 4, 2, groups=2), "groups=2 must divide in_channels=3"),
    (lambda: nn.Conv2d(3, 4, 0), "[Conv2d] kernel_size is 0"),
    (lambda: nn.Conv1d(3, 4, 2, padding="some"), "[Conv1d] padding is 'some'"),
    (lambda: nn.Conv1d(3, 4, 2, padding_mode="some"), "[Conv1d] padding_mode is 'some'"),
    (lambda: nn.ConvTranspose1d(3, 4, 2, padding_mode="reflect"), "only 'zeros'"),
    (lambda: nn.BatchNorm2d(3)(mg.ones(2, 3)), "[BatchNorm2d] the input has shape (2, 3)"),
    (lambda: nn.GroupNorm(2, 3), "num_groups=2 does not divide the 3 channels"),
    (lambda: nn.Dropout(1.5), "[Dropout] p is 1.5"),
    (lambda: nn.Embedding(3, 2, padding_idx=3), "padding_idx 3 is not in 0..2"),
    (lambda: nn.MultiheadAttention(5, 2), "num_heads=2 does not divide embed_dim=5"),
    (
        lambda: nn.MultiheadAttention(2, 1)(
            mg.ones(1, 2), mg.ones(1, 2), mg.ones(1, 2), is_causal=True
        ),
        "is_causal describes attn_mask",
    ),
]


@pytest.mark.parametrize("number", range(len(MESSAGES)))
def test_errors_show_the_values_and_the_rule(number):
    f, text = MESSAGES[number]
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the text is checked below
        f()
    assert text in str(caught.value)


def test_embeddings_of_a_largest_norm():
    """Rows that are named are shortened in place; others stay, and so do those that are short."""
    values = [[3.0, 4.0], [0.1, 0.1], [30.0, 40.0], [0.0, 2.0]]
    layer = nn.Embedding(4, 2, max_norm=1.0)
    layer.weight.data = mg.tensor(values)
    y = layer(mg.tensor([[0, 1], [0, 3]]))
    want = np.array([[0.6, 0.8], [0.1, 0.1], [30.0, 40.0], [0.0, 1.0]], np.float32)
    np.testing.assert_allclose(layer.weight.detach().numpy(), want, rtol=1e-6)
    np.testing.assert_allclose(y.detach().numpy(), want[[[0, 1], [0, 3]]], rtol=1e-6)
    y.sum().backward()
    assert layer.weight.grad.tolist() == [[2, 2], [1, 1], [0, 0], [1, 1]]
    one = mg.tensor(values)
    nn.functional.embedding(mg.tensor([0]), one, max_norm=3.5, norm_type=1.0)
    np.testing.assert_allclose(one[0].numpy(), [1.5, 2.0], rtol=1e-6)
    with pytest.raises(ValueError, match="max_norm is 0, but must be positive"):
        nn.functional.embedding(mg.tensor([0]), one, max_norm=0)
