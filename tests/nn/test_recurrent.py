"""Recurrent layers and packed sequences: by hand, against slopes, and against torch."""

from __future__ import annotations

import itertools
import sys
import threading

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn
from minigrad.nn.utils import rnn

pytestmark = pytest.mark.usefixtures("restore_random")  # layers draw their weights

KINDS = ("RNN", "GRU", "LSTM")
OPTIONS = [
    {},
    {"bias": False},
    {"num_layers": 2, "batch_first": True},
    {"bidirectional": True},
    {"num_layers": 2, "bidirectional": True},
]
CASES = [
    *itertools.product(KINDS, OPTIONS),
    ("RNN", {"nonlinearity": "relu", "num_layers": 2}),
    ("LSTM", {"proj_size": 2, "bidirectional": True, "num_layers": 2}),
]


def states_of(kind, h):
    return list(h) if kind == "LSTM" else [h]


def pair(kind, options):
    """A layer of torch's and one with its weights, in float64."""
    torch = pytest.importorskip("torch")
    theirs = getattr(torch.nn, kind)(3, 4, dtype=torch.float64, **options)
    ours = getattr(nn, kind)(3, 4, dtype=mg.float64, **options)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    assert repr(ours) == repr(theirs)
    ours.load_state_dict({k: mg.tensor(v.numpy()) for k, v in theirs.state_dict().items()})
    return torch, theirs, ours


def compare(ours, theirs):
    np.testing.assert_allclose(ours.detach().numpy(), theirs.detach().numpy(), 1e-9, 1e-12)


def compare_gradients(ours, theirs):
    for (name, p), (_, q) in zip(ours.named_parameters(), theirs.named_parameters(), strict=True):
        np.testing.assert_allclose(p.grad.numpy(), q.grad.numpy(), 1e-8, 1e-11, err_msg=name)


@pytest.mark.filterwarnings("ignore:LSTM with projections")
@pytest.mark.parametrize(("kind", "options"), CASES)
@pytest.mark.parametrize("shape", [(5, 2), (1, 3), (5,), (2, 0)])
def test_layers_are_torchs(rng, kind, options, shape):
    torch, theirs, ours = pair(kind, options)
    x = rng.standard_normal((*shape, 3))
    if options.get("batch_first") and len(shape) == 2:
        x = x.swapaxes(0, 1)
    t = torch.tensor(x, requires_grad=True)
    m = mg.tensor(x, requires_grad=True)
    (y, h), (our_y, our_h) = theirs(t), ours(m)
    given = [rng.standard_normal(s.shape) for s in states_of(kind, h)]
    compare(our_y, y)
    for a, b in zip(states_of(kind, our_h), states_of(kind, h), strict=True):
        compare(a, b)
    leaves = [torch.tensor(s, requires_grad=True) for s in given]
    our_leaves = [mg.tensor(s, requires_grad=True) for s in given]
    one = kind != "LSTM"
    y, h = theirs(t, leaves[0] if one else tuple(leaves))
    our_y, our_h = ours(m, our_leaves[0] if one else tuple(our_leaves))
    upstream = [rng.standard_normal(s.shape) for s in (y, *states_of(kind, h))]
    sum(
        (s * torch.tensor(u)).sum() for s, u in zip((y, *states_of(kind, h)), upstream, strict=True)
    ).backward()
    sum(
        (s * mg.tensor(u)).sum()
        for s, u in zip((our_y, *states_of(kind, our_h)), upstream, strict=True)
    ).backward()
    compare(our_y, y)
    compare(m.grad, t.grad)
    for a, b in zip(our_leaves, leaves, strict=True):
        compare(a.grad, b.grad)
    compare_gradients(ours, theirs)


@pytest.mark.filterwarnings("ignore:LSTM with projections")
@pytest.mark.parametrize(("kind", "options"), CASES)
@pytest.mark.parametrize("lengths", [[4, 4, 2, 1], [2, 4, 1]])
def test_layers_take_packed_sequences(rng, kind, options, lengths):
    torch, theirs, ours = pair(kind, options)
    pack = torch.nn.utils.rnn
    x = rng.standard_normal((len(lengths), 5, 3))
    t = pack.pack_padded_sequence(torch.tensor(x), lengths, True, enforce_sorted=False)
    m = rnn.pack_padded_sequence(mg.tensor(x), lengths, True, enforce_sorted=False)
    (y, h), (our_y, our_h) = theirs(t), ours(m)
    given = [rng.standard_normal(s.shape) for s in states_of(kind, h)]
    one = kind != "LSTM"
    y, h = theirs(t, torch.tensor(given[0]) if one else tuple(map(torch.tensor, given)))
    our_y, our_h = ours(m, mg.tensor(given[0]) if one else tuple(map(mg.tensor, given)))
    for a, b in zip(our_y[:2], y[:2], strict=True):
        compare(a, b)
    padded, sizes = pack.pad_packed_sequence(y)
    our_padded, our_sizes = rnn.pad_packed_sequence(our_y)
    compare(our_padded, padded)
    assert our_sizes.tolist() == sizes.tolist() == lengths
    total = (padded**2).sum() + sum(s.cos().sum() for s in states_of(kind, h))
    ours_total = (our_padded**2).sum() + sum(s.cos().sum() for s in states_of(kind, our_h))
    total.backward()
    ours_total.backward()
    compare_gradients(ours, theirs)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(2, 3), (3,)])
@pytest.mark.parametrize("bias", [True, False])
def test_cells_are_torchs(rng, kind, shape, bias):
    torch, theirs, ours = pair(kind + "Cell", {"bias": bias})
    x, one = rng.standard_normal(shape), kind != "LSTM"
    for state in (None, [rng.standard_normal((*shape[:-1], 4)) for _ in range(1 if one else 2)]):
        given = our_given = None
        if state is not None:
            given, our_given = (tuple(map(f, state)) for f in (torch.tensor, mg.tensor))
            if one:
                given, our_given = given[0], our_given[0]
        found, our_found = theirs(torch.tensor(x), given), ours(mg.tensor(x), our_given)
        for a, b in zip(states_of(kind, our_found), states_of(kind, found), strict=True):
            compare(a, b)


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        *[(kind, {"bidirectional": True}) for kind in KINDS],
        ("GRU", {"bias": False}),
        ("LSTM", {"proj_size": 2}),
    ],
)
def test_slopes_to_second_order(rng, kind, options):
    layer = getattr(nn, kind)(2, 3, dtype=mg.float64, **options)
    x = mg.tensor(rng.standard_normal((3, 2, 2)), requires_grad=True)

    def loss(x, *weights):
        y, h = layer(x)
        return y.square().sum() + sum(s.sin().sum() for s in states_of(kind, h))

    inputs = (x, *layer.parameters())
    assert mg.autograd.gradcheck(loss, inputs)
    assert mg.autograd.gradgradcheck(loss, inputs)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_not_contiguous_is_read_as_it_lies(rng, kind):
    layer = getattr(nn, kind)(3, 4)
    x = mg.tensor(rng.standard_normal((3, 4, 5)), dtype=mg.float32).permute(2, 1, 0)
    np.testing.assert_array_equal(
        layer(x)[0].detach().numpy(), layer(x.contiguous())[0].detach().numpy()
    )


def test_dropout_is_between_layers_in_training():
    layer = nn.LSTM(3, 4, num_layers=2, dropout=1.0)
    x = mg.ones(3, 1, 3)
    other = mg.zeros(3, 1, 3)
    np.testing.assert_array_equal(layer(x)[0].detach().numpy(), layer(other)[0].detach().numpy())
    layer.eval()
    assert not np.array_equal(layer(x)[0].detach().numpy(), layer(other)[0].detach().numpy())
    with pytest.warns(UserWarning, match="dropout is between layers"):
        nn.GRU(3, 4, dropout=0.5)


@pytest.mark.parametrize("kind", KINDS)
def test_weights_start_in_their_bounds(kind):
    layer = getattr(nn, kind)(30, 64)
    for drawn in range(2):
        values = np.concatenate([p.detach().numpy().ravel() for p in layer.parameters()])
        assert 0.124 < values.max() <= 0.125
        assert -0.125 <= values.min() < -0.124
        if not drawn:
            layer.reset_parameters()
    layer.flatten_parameters()
    assert [len(weights) for weights in layer.all_weights] == [4]


X = mg.ones(5, 2, 3)
WRONG = [
    (
        lambda: nn.LSTM(4, 4)(X),
        r"\[LSTM\] the last dimension of the input \(5, 2, 3\) must be inpu",
    ),
    (lambda: nn.GRU(3, 4)(X, mg.ones(1, 2, 5)), r"\[GRU\] a state has shape \(1, 2, 5\), but must"),
    (lambda: nn.RNN(3, 4)(X, mg.ones(2, 2, 4)), r"must be \(1, 2, 4\)"),
    (lambda: nn.RNN(3, 4)(mg.ones(3)), "needs 2 or 3 dims"),
    (lambda: nn.RNN(3, 4)(mg.ones(0, 2, 3)), "the input has no steps"),
    (lambda: nn.RNN(3, 4)(X[0], mg.ones(1, 2, 4)), "a state has shape .* but needs 2 dims"),
    (lambda: nn.RNN(3, 4, nonlinearity="elu"), 'may be "tanh" or "relu"'),
    (lambda: nn.GRU(3, 0), "hidden_size"),
    (lambda: nn.GRU(3, 4, 0), "num_layers"),
    (lambda: nn.GRU(3, 4, 2, dropout=2.0), "a probability is between 0 and 1"),
    (lambda: nn.LSTM(3, 4, proj_size=4), "proj_size=4 must be less than hidden_size=4"),
    (lambda: nn.LSTMCell(3, 4)(mg.ones(2, 4)), "must be input_size=3"),
    (lambda: nn.GRUCell(3, 4)(mg.ones(2, 3), mg.ones(3, 4)), r"must be \(2, 4\)"),
    (lambda: nn.GRUCell(3, 4)(X), "needs 1 or 2 dims"),
    (
        lambda: nn.GRU(3, 4)(rnn.PackedSequence(mg.ones(3, 3), mg.tensor([3, 0]))),
        r"batch_sizes \[3, 0\] must be positive",
    ),
    (lambda: rnn.pack_padded_sequence(X, [5, 0]), r"length 0 is not in 1\.\.5"),
    (lambda: rnn.pack_padded_sequence(X, [5, 6], enforce_sorted=False), "length 6 is not in"),
    (lambda: rnn.pack_padded_sequence(X, [4, 5]), "pass enforce_sorted=False"),
    (lambda: rnn.pack_padded_sequence(X, [4]), "1 lengths do not fit a batch of 2"),
    (lambda: rnn.pad_sequence([]), "at least one"),
    (lambda: rnn.pad_sequence([X, X[0]]), "may differ in their length alone"),
    (lambda: rnn.pad_sequence([X], padding_side="top"), 'may be "left" or "right"'),
]


WRONG += [
    (
        lambda: nn.functional.lstm_steps(X, mg.ones(2, 2, 1), mg.ones(4, 1)),
        r"\[lstm_steps\] projected \(5, 2, 3\), state \(2, 2, 1\) and weight \(4, 1\) do not fit",
    ),
    (lambda: nn.functional.rnn_steps(X[:0], mg.ones(1, 2, 3), mg.ones(3, 3)), "T at least 1"),
    (
        lambda: nn.functional.gru_steps(X, mg.ones(1, 2, 1), mg.ones(3, 1), mg.ones(2)),
        r"\[gru_steps\] bias \(2,\) must have the shape \(3,\)",
    ),
    (
        lambda: nn.functional.rnn_steps(X, mg.ones(1, 2, 3), mg.ones(3, 3), "elu"),
        '"tanh" or "relu"',
    ),
]


@pytest.mark.parametrize(("call", "message"), WRONG)
def test_what_does_not_fit_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_a_state_of_lstm_is_a_pair():
    with pytest.raises(TypeError, match=r"\[LSTM\] the state is Tensor, but must be a pair"):
        nn.LSTM(3, 4)(X, mg.ones(1, 2, 4))


@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize("side", ["right", "left"])
def test_padding_is_torchs(rng, batch_first, side):
    theirs = pytest.importorskip("torch").nn.utils.rnn
    import torch

    rows = [rng.standard_normal((n, 2)) for n in (2, 4, 1)]
    a = theirs.pad_sequence([torch.tensor(r) for r in rows], batch_first, 7.0, side)
    compare(rnn.pad_sequence([mg.tensor(r) for r in rows], batch_first, 7.0, side), a)


def test_packed_sequences_come_back(rng):
    rows = [mg.tensor(rng.standard_normal((n, 2)), requires_grad=True) for n in (2, 4, 1)]
    packed = rnn.pack_sequence(rows, enforce_sorted=False)
    assert packed.batch_sizes.tolist() == [3, 2, 1, 1]
    assert packed.sorted_indices.tolist() == [1, 0, 2]
    assert packed.unsorted_indices.tolist() == [1, 0, 2]
    for a, b in zip(rnn.unpack_sequence(packed), rows, strict=True):
        np.testing.assert_array_equal(a.detach().numpy(), b.detach().numpy())
    padded, lengths = rnn.pad_packed_sequence(packed, True, 9.0, 5)
    assert padded.shape == (3, 5, 2)
    assert (padded[2, 1:] == 9.0).all()
    assert lengths.tolist() == [2, 4, 1]
    padded.square().sum().backward()
    for r in rows:
        np.testing.assert_array_equal(r.grad.numpy(), 2 * r.detach().numpy())
    with pytest.raises(ValueError, match="total_length 3 is less than the longest, 4"):
        rnn.pad_packed_sequence(packed, total_length=3)
    assert packed.float().data.dtype == mg.float32


def leaf(rng, *shape, dtype=mg.float64):
    return mg.tensor(rng.standard_normal(shape), dtype=dtype, requires_grad=True)


def initial(rng, kind, batch, size):
    """The first states of a layer, of one direction."""
    return [leaf(rng, 1, batch, size) for _ in range(2 if kind == "LSTM" else 1)]


def given_as(kind, states):
    return tuple(states) if kind == "LSTM" else states[0]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(("steps", "batch", "size"), [(3, 17, 1), (1, 1, 17), (4, 33, 5)])
def test_a_layer_is_its_cell_step_by_step(rng, kind, bias, steps, batch, size):
    layer = getattr(nn, kind)(3, size, bias=bias, dtype=mg.float64)
    cell = getattr(nn, kind + "Cell")(3, size, bias=bias, dtype=mg.float64)
    cell.load_state_dict({k.removesuffix("_l0"): v for k, v in layer.state_dict().items()})
    x, states = leaf(rng, steps, batch, 3), initial(rng, kind, batch, size)
    y, last = layer(x, given_as(kind, states))
    found = [y, *states_of(kind, last)]
    state, every = given_as(kind, [s[0] for s in states]), []
    for own in x:
        state = cell(own, state)
        every.append(states_of(kind, state)[0])
    expected = [mg.stack(every), *[s.unsqueeze(0) for s in states_of(kind, state)]]
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), 1e-12, 1e-14)
    upstream = [mg.tensor(rng.standard_normal(y.shape)) for y in found]
    got = mg.grad(found, (x, *states, *layer.parameters()), upstream)
    want = mg.grad(expected, (x, *states, *cell.parameters()), upstream)
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), 1e-11, 1e-13)


@pytest.mark.filterwarnings("ignore:LSTM with projections")
@pytest.mark.parametrize(
    ("kind", "options"), [*[(kind, {}) for kind in KINDS], ("LSTM", {"proj_size": 9})]
)
@pytest.mark.parametrize(("batch", "size"), [(1, 64), (15, 257), (17, 31)])
def test_float32_is_torchs(rng, kind, options, batch, size):
    torch = pytest.importorskip("torch")
    theirs = getattr(torch.nn, kind)(10, size, **options)
    ours = getattr(nn, kind)(10, size, **options)
    ours.load_state_dict({k: mg.tensor(v.numpy()) for k, v in theirs.state_dict().items()})
    x = rng.standard_normal((7, batch, 10)).astype(np.float32)
    t, m = torch.tensor(x, requires_grad=True), mg.tensor(x, requires_grad=True)
    y, our_y = theirs(t)[0], ours(m)[0]
    np.testing.assert_allclose(our_y.detach().numpy(), y.detach().numpy(), 1e-5, 1e-6)
    g = rng.standard_normal(y.shape).astype(np.float32)
    y.backward(torch.tensor(g))
    our_y.backward(mg.tensor(g))
    pairs = zip((m, *ours.parameters()), (t, *theirs.parameters()), strict=True)
    for a, b in pairs:
        want = b.grad.numpy()
        np.testing.assert_allclose(a.grad.numpy(), want, 1e-4, 1e-5 * np.abs(want).max())


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_of_what_is_not_contiguous(rng, kind):
    """States, weights and the gradient itself, which a sum expands."""
    layer = getattr(nn, kind)(3, 4, dtype=mg.float64)
    for p in layer.parameters():
        p.data = p.detach().mT.clone().mT if p.ndim == 2 else p.detach()
    x, states = leaf(rng, 3, 2, 5), [leaf(rng, 4, 2, 1) for _ in states_of(kind, (0, 0))]

    def result(x, *states):
        y, last = layer(x.permute(2, 1, 0), given_as(kind, [s.permute(2, 1, 0) for s in states]))
        return y.sum() + sum(s.sin().sum() for s in states_of(kind, last))

    assert not layer.weight_hh_l0.is_contiguous()
    assert mg.autograd.gradcheck(result, (x, *states))
    total = result(x, *states)
    expected = mg.grad(total, list(layer.parameters()))
    for p in layer.parameters():
        p.data = p.detach().clone()
    for a, b in zip(mg.grad(result(x, *states), list(layer.parameters())), expected, strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), 1e-12, 1e-14)


@pytest.mark.parametrize("kind", KINDS)
def test_an_empty_batch_has_gradients_of_zeros(kind):
    layer = getattr(nn, kind)(3, 4, bidirectional=True, num_layers=2)
    x = mg.zeros(5, 0, 3, requires_grad=True)
    y, _ = layer(x)
    assert y.shape == (5, 0, 8)
    for create_graph in (False, True):
        inputs = (x, *layer.parameters())
        found = mg.grad(layer(x)[0].sum(), inputs, create_graph=create_graph)
        for g, p in zip(found, inputs, strict=True):
            assert g.shape == p.shape
            assert not g.detach().numpy().any()


@pytest.mark.parametrize("kind", KINDS)
def test_a_graph_is_run_back_twice(rng, kind):
    layer = getattr(nn, kind)(3, 4)
    y, _ = layer(leaf(rng, 5, 2, 3, dtype=mg.float32))
    first, second = (
        mg.grad(y.sum(), list(layer.parameters()), retain_graph=True) for _ in range(2)
    )
    for a, b in zip(first, second, strict=True):
        np.testing.assert_array_equal(a.numpy(), b.numpy())


@pytest.mark.parametrize("kind", KINDS)
def test_long_runs_of_one_block_let_other_threads_run(kind):
    layer = getattr(nn, kind)(2, 64)
    x, gate, came = mg.zeros(900, 1, 2), threading.Lock(), []
    gate.acquire()
    other = threading.Thread(target=lambda: (gate.acquire(), came.append(True)))
    other.start()
    before = sys.getswitchinterval()
    try:
        sys.setswitchinterval(3600.0)  # so that it comes where a call lets it, and only there
        gate.release()
        for _ in range(10_000):
            if came:
                break
            layer(x)
        assert came
    finally:
        sys.setswitchinterval(before)
        other.join()


@pytest.mark.parametrize(
    ("kind", "options"), [*[(kind, {}) for kind in KINDS], ("LSTM", {"proj_size": 40})]
)
def test_the_number_of_countchanges_no_bit(rng, kind, options):
    layer = getattr(nn, kind)(96, 96, **options)
    x = mg.tensor(rng.standard_normal((6, 50, 96)), dtype=mg.float32, requires_grad=True)
    found = []
    before = mg.get_num_threads()
    for count in (1, 3):
        mg.set_num_threads(count)
        y, _ = layer(x)
        found.append([y, *mg.grad(y.square().sum(), (x, *layer.parameters()))])
    mg.set_num_threads(before)
    for a, b in zip(*found, strict=True):
        np.testing.assert_array_equal(a.detach().numpy(), b.detach().numpy())


WRITES = {
    "relu": (lambda y: nn.ReLU(inplace=True)(y), lambda y: y.relu()),
    "a step": (lambda y: y[-1].mul_(3.0), lambda y: mg.cat([y[:-1], 3.0 * y[-1:]])),
    "zeros": (lambda y: y.zero_(), lambda y: 0.0 * y),
}


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize(("kind", "options"), CASES)
def test_results_may_be_overwritten(rng, kind, options, write):
    """As in PyTorch: backward reads none of them, and their values and states are apart."""
    layer = getattr(nn, kind)(3, 4, dtype=mg.float64, **options)
    x = mg.tensor(rng.standard_normal((5, 2, 3)), requires_grad=True)
    inputs = (x, *layer.parameters())
    in_place, apart = WRITES[write]

    def gradients(write):
        y, h = layer(x)
        states = states_of(kind, h)
        y = write(y)
        total = y.cos().sum() + sum((s * (s.detach() + 2.0)).sum() for s in states)
        for s in states:
            s.detach().zero_()
        return mg.grad(total, inputs)

    def written(y):
        in_place(y)
        return y

    for a, b in zip(gradients(written), gradients(apart), strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), 1e-12, 1e-14)


def test_forget_gates_are_named():
    layer = nn.LSTM(3, 4, num_layers=2)
    assert isinstance(layer, nn.RNNBase)
    assert isinstance(nn.GRUCell(3, 4), nn.RNNCellBase)
    assert layer._all_weights[1] == ["weight_ih_l1", "weight_hh_l1", "bias_ih_l1", "bias_hh_l1"]
