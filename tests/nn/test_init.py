"""minigrad.nn.init: what is written where, and how it is distributed."""

from __future__ import annotations

import math

import numpy as np
import pytest

import minigrad as mg
from minigrad.nn import init


@pytest.fixture
def generator():
    return mg.Generator().manual_seed(7)


def _weight(*shape, dtype=mg.float32):
    return mg.nn.Parameter(mg.full(shape, 99.0, dtype=dtype))


def test_plain_values():
    w = _weight(2, 3)
    assert init.constant_(w, 0.5) is w
    assert w.tolist() == [[0.5] * 3] * 2
    assert init.zeros_(w).tolist() == [[0.0] * 3] * 2
    assert init.ones_(w).tolist() == [[1.0] * 3] * 2
    assert init.eye_(w).tolist() == [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    assert w.is_leaf
    assert w.requires_grad


# With the standard deviation and the largest magnitude of what is drawn for the shape (40, 30, 2).
SPREADS = {
    "uniform": (lambda w, g: init.uniform_(w, -2.0, 2.0, g), 2 / math.sqrt(3), 2.0),
    "normal": (lambda w, g: init.normal_(w, 0.0, 0.3, g), 0.3, None),
    "xavier uniform": (
        lambda w, g: init.xavier_uniform_(w, 2.0, g),
        2 * math.sqrt(2 / 140),
        2 * math.sqrt(6 / 140),
    ),
    "xavier normal": (lambda w, g: init.xavier_normal_(w, 2.0, g), 2 * math.sqrt(2 / 140), None),
    "he uniform": (
        lambda w, g: init.kaiming_uniform_(w, math.sqrt(5), generator=g),
        1 / math.sqrt(3 * 60),
        1 / math.sqrt(60),
    ),
    "he normal": (
        lambda w, g: init.kaiming_normal_(w, 0, "fan_out", "relu", g),
        math.sqrt(2 / 80),
        None,
    ),
    "truncated": (
        lambda w, g: init.trunc_normal_(w, std=0.02, a=-0.04, b=0.04, generator=g),
        0.02 * 0.8796256610342398,
        0.04,
    ),
}


@pytest.mark.parametrize("dtype", [mg.float32, mg.float64])
@pytest.mark.parametrize("name", SPREADS)
def test_spreads(name, dtype, generator):
    fill, std, most = SPREADS[name]
    w = _weight(40, 30, 2, dtype=dtype)
    assert fill(w, generator) is w
    values = w.detach().numpy()
    assert abs(values.mean()) < 4 * std / math.sqrt(values.size)
    assert values.std() == pytest.approx(std, rel=0.05)
    if most is not None:
        assert most * 0.98 < np.abs(values).max() <= most
    again = fill(_weight(40, 30, 2, dtype=dtype), mg.Generator().manual_seed(7))
    assert again.tolist() == w.tolist()


@pytest.mark.parametrize(
    ("mean", "std", "a", "b"),
    [(0.0, 1.0, -2.0, 2.0), (1.0, 2.0, 0.0, 0.5), (0.0, 1.0, 2.0, math.inf), (0.0, 1.0, -5, -4)],
)
def test_a_truncated_normal_is_scipys(mean, std, a, b, generator):
    stats = pytest.importorskip("scipy.stats")
    x = init.trunc_normal_(mg.empty(20_000, dtype=mg.float64), mean, std, a, b, generator).numpy()
    law = stats.truncnorm((a - mean) / std, (b - mean) / std, mean, std)
    assert a <= x.min() <= x.max() <= b
    assert stats.kstest(x, law.cdf).pvalue > 0.01


@pytest.mark.parametrize("shape", [(4, 4), (3, 5), (5, 3), (4, 3, 2, 2), (0, 3), (1, 1)])
def test_orthogonal_rows_or_columns(shape, generator):
    w = init.orthogonal_(_weight(*shape, dtype=mg.float64), 2.0, generator).detach().numpy()
    m = w.reshape(shape[0], -1) if shape[0] else w
    small = m @ m.T if m.shape[0] <= m.shape[1] else m.T @ m
    np.testing.assert_allclose(small, 4.0 * np.eye(min(m.shape)), atol=1e-12)


def test_orthogonal_matrices_have_no_preferred_sign(generator):
    signs = [math.copysign(1, init.orthogonal_(mg.empty(1, 1), 1.0, generator)) for _ in range(200)]
    assert 60 < signs.count(1.0) < 140


def test_gains_are_pytorchs():
    torch = pytest.importorskip("torch")
    names = "linear conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d"
    for name in [*names.split(), "sigmoid", "tanh", "relu", "leaky_relu", "selu"]:
        assert init.calculate_gain(name) == pytest.approx(torch.nn.init.calculate_gain(name)), name
    assert init.calculate_gain("leaky_relu", 0.3) == math.sqrt(2 / 1.09)


def test_fans():
    assert init._calculate_fan_in_and_fan_out(mg.empty(6, 5, 3, 2)) == (30, 36)


@pytest.mark.parametrize("fill", [init.xavier_uniform_, init.kaiming_normal_, init.orthogonal_])
def test_weights_without_elements(fill):
    assert fill(mg.empty(0, 0)).shape == (0, 0)


def test_arguments_have_pytorchs_names():
    torch = pytest.importorskip("torch")
    import inspect

    for name in init.__all__:
        ours = list(inspect.signature(getattr(init, name)).parameters.values())
        theirs = list(inspect.signature(getattr(torch.nn.init, name)).parameters.values())
        assert [(p.name, p.default) for p in ours] == [(p.name, p.default) for p in theirs], name


@pytest.mark.parametrize(
    ("error", "call", "message"),
    [
        (TypeError, lambda: init.zeros_([1.0]), r"\[zeros_\] expected a Tensor, not list"),
        (TypeError, lambda: init.constant_(mg.empty(2), "x"), r"\[constant_\] val must be a num"),
        (
            ValueError,
            lambda: init.dirac_(mg.empty(2, 2)),
            r"\[dirac_\] the weight has 3 to 5 dim",
        ),
        (
            ValueError,
            lambda: init.dirac_(mg.empty(3, 1, 1), 2),
            "2 groups do not divide 3 outp",
        ),
        (ValueError, lambda: init.eye_(mg.empty(2)), r"\[eye_\] a matrix has 2 dimensions"),
        (
            ValueError,
            lambda: init.xavier_normal_(mg.empty(2)),
            r"\[xavier_normal_\] a tensor of shape \(2,\) has fewer than 2 dimensions",
        ),
        (ValueError, lambda: init.orthogonal_(mg.empty(2)), r"\[orthogonal_\] a tensor of shape"),
        (
            ValueError,
            lambda: init.kaiming_normal_(mg.empty(2, 2), mode="fan"),
            r"\[kaiming_normal_\] mode is 'fan', but must be 'fan_in' or 'fan_out'",
        ),
        (ValueError, lambda: init.calculate_gain("gelu"), r"no gain for 'gelu': there are leaky"),
        (ValueError, lambda: init.trunc_normal_(mg.empty(2), a=3.0), "needs std > 0 and a < b"),
        (ValueError, lambda: init.trunc_normal_(mg.empty(2), a=9.0, b=10.0), "nearly nothing"),
        (ValueError, lambda: init.normal_(mg.empty(2), std=-1.0), r"\[normal_\] the standard dev"),
        (TypeError, lambda: init.uniform_(mg.tensor([1])), r"\[uniform_\] draws floats, not int"),
        (TypeError, lambda: init.trunc_normal_(mg.tensor([1])), r"\[trunc_normal_\] draws floats"),
        (TypeError, lambda: init.orthogonal_(mg.tensor([[1]])), r"\[orthogonal_\] draws floats"),
    ],
)
def test_errors(error, call, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize(
    ("shape", "groups"),
    [((3, 2, 5), 1), ((4, 3, 2, 3), 2), ((6, 4, 1, 3, 2), 3), ((2, 5, 4), 1), ((0, 2, 3), 1)],
)
def test_dirac_is_pytorchs(shape, groups):
    torch = pytest.importorskip("torch")
    found = init.dirac_(mg.empty(*shape, dtype=mg.float64), groups)
    if not shape[0]:
        assert found.shape == shape
        return
    wanted = torch.nn.init.dirac_(torch.empty(*shape, dtype=torch.float64), groups)
    assert found.tolist() == wanted.tolist()


@pytest.mark.usefixtures("restore_random")
def test_a_convolution_with_dirac_hands_on_its_input():
    layer = mg.nn.Conv2d(3, 3, 3, padding=1, bias=False)
    init.dirac_(layer.weight)
    x = mg.arange(48.0).reshape(1, 3, 4, 4)
    assert layer(x).tolist() == x.tolist()
