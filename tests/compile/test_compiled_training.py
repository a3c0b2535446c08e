"""Classic training loops: a compiled model, and loss, backward and optimizer outside.

Values, parameters and buffers have the bits of the same loop without ``compile``.
"""

from __future__ import annotations

import warnings

import pytest

import minigrad as mg
from minigrad import nn


@pytest.fixture(autouse=True)
def _seeded(restore_random):
    mg.manual_seed(0)


BATCH = 4


class Recurrent(nn.Module):
    """An LSTM of which the last step is read."""

    def __init__(self):
        self.lstm = nn.LSTM(3, 5, num_layers=2, batch_first=True, dropout=0.25)
        self.out = nn.Linear(5, 3)

    def forward(self, x):
        states, _ = self.lstm(x)
        return self.out(states[:, -1])


class Transformer(nn.Module):
    """Embeddings, an encoder layer with dropout, and a mean over the words."""

    def __init__(self):
        self.embed = nn.Embedding(11, 8)
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.1, batch_first=True)
        self.out = nn.Linear(8, 3)

    def forward(self, x):
        return self.out(self.layer(self.embed(x)).mean(1))


def mlp():
    return nn.Sequential(nn.Linear(6, 7), nn.Tanh(), nn.Linear(7, 7), nn.ReLU(), nn.Linear(7, 3))


def cnn():
    return nn.Sequential(
        nn.Conv2d(1, 4, 3),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Dropout(0.5),
        nn.Flatten(),
        nn.Linear(36, 3),
    )


MODELS = {
    "mlp": (mlp, lambda: mg.randn(BATCH, 6)),
    "cnn": (cnn, lambda: mg.randn(BATCH, 1, 8, 8)),
    "lstm": (Recurrent, lambda: mg.randn(BATCH, 4, 3)),
    "transformer": (Transformer, lambda: mg.randint(0, 11, (BATCH, 5))),
}
OPTIMIZERS = {
    "sgd": lambda ps: mg.optim.SGD(ps, lr=0.05, momentum=0.9),
    "adam": lambda ps: mg.optim.Adam(ps, lr=0.01),
    "rmsprop": lambda ps: mg.optim.RMSprop(ps, lr=0.01),
}


def bits(tensors):
    """The values of tensors, exactly; None for what has none."""
    return [None if x is None else x.detach().numpy().tobytes() for x in tensors]


def trained(model, inputs, optimizer, compiled, steps=10, first_zero=True):
    """All that a loop computes, and how often the model was recorded."""
    mg.manual_seed(0)
    made = model()
    run = mg.compile(made) if compiled else made
    steps_of = optimizer(made.parameters())
    mg.manual_seed(1)
    seen = []
    for _ in range(steps):
        x, labels = inputs(), mg.randint(0, 3, (BATCH,))
        if first_zero:
            steps_of.zero_grad()
        loss = nn.functional.cross_entropy(run(x), labels)
        if not first_zero:
            steps_of.zero_grad()
        loss.backward()
        seen += bits([loss, *[p.grad for p in made.parameters()]])
        steps_of.step()
        seen += bits([*made.parameters(), *made.buffers()])
    return seen, run.compiled if compiled else None


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("model", MODELS)
def test_ten_steps_have_the_bits_of_eager_training(model, optimizer):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        expected, _ = trained(*MODELS[model], OPTIMIZERS[optimizer], False)
        found, compiled = trained(*MODELS[model], OPTIMIZERS[optimizer], True)
    assert found == expected
    assert compiled.recordings == 1
    assert compiled.reasons == []


def test_zero_grad_after_forward_needs_no_other_recording():
    expected, _ = trained(*MODELS["mlp"], OPTIMIZERS["adam"], False, first_zero=False)
    found, compiled = trained(*MODELS["mlp"], OPTIMIZERS["adam"], True, first_zero=False)
    assert found == expected
    assert compiled.recordings == 1


def test_the_backward_is_a_program_too():
    _, compiled = trained(*MODELS["cnn"], OPTIMIZERS["sgd"], True, steps=4)
    (recorded,) = compiled._recorded
    passes = recorded._history._passes
    assert [len(found) for found in passes.values()] == [1]
    assert not recorded._history._without


def test_training_and_evaluation_take_turns():
    mg.manual_seed(0)
    plain = cnn()
    mg.manual_seed(0)
    model = cnn()
    run = mg.compile(model)
    for step in range(6):
        x = mg.randn(BATCH, 1, 8, 8)
        plain.train(step % 2 == 0)
        run.train(step % 2 == 0)
        mg.manual_seed(step)
        a = plain(x)
        a.sum().backward()
        mg.manual_seed(step)
        b = run(x)
        b.sum().backward()
        assert bits([a, *[p.grad for p in plain.parameters()], *plain.buffers()]) == bits(
            [b, *[p.grad for p in model.parameters()], *model.buffers()]
        )
        with mg.no_grad():
            assert bits([plain(x)]) == bits([run(x)]) or plain.training
    assert run.recordings <= 4


def test_frozen_layers_are_seen():
    mg.manual_seed(0)
    model = mlp()
    run = mg.compile(model)
    x = mg.randn(BATCH, 6)
    for frozen in (False, False, True, True, False):
        model[0].requires_grad_(not frozen)
        model.zero_grad()
        run(x).sum().backward()
        found = bits([p.grad for p in model.parameters()])
        model.zero_grad()
        model(x).sum().backward()
        assert found == bits([p.grad for p in model.parameters()])
        assert (model[0].weight.grad is None) is frozen
    assert run.recordings == 2


def test_a_layer_that_is_frozen_at_first_is_seen_later():
    model = mlp()
    model[0].requires_grad_(False)
    run = mg.compile(model)
    x = mg.randn(BATCH, 6)
    for _ in range(2):
        run(x).sum().backward()
    assert model[0].weight.grad is None
    model[0].requires_grad_(True)
    run(x).sum().backward()
    assert model[0].weight.grad is not None


def test_loading_a_state_between_calls_is_seen():
    model = mlp()
    run = mg.compile(model)
    x = mg.randn(BATCH, 6)
    for seed in range(4):
        mg.manual_seed(seed)
        model.load_state_dict(mlp().state_dict(), assign=seed == 3)
        assert bits([run(x)]) == bits([model(x)])
