"""The tapes in Python and in C: which one runs, and that both compute the same."""

from __future__ import annotations

import minigrad as mg
from minigrad.runtime.accelerator import tape_name

TRAINING = """
import minigrad as mg
from minigrad import nn, optim

mg.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.LayerNorm(16), nn.Linear(16, 3))
step = optim.Adam(model.parameters(), lr=0.01)
x, y = mg.randn(8, 4), mg.arange(8) % 3
for _ in range(5):
    step.zero_grad()
    out = model(x)
    loss = nn.functional.cross_entropy(out, y) + (out[:, 1:] * out[:, :-1]).mean() / 2
    (by_out,) = mg.grad(loss, out, create_graph=True)
    (loss + by_out.square().sum()).backward()
    step.step()
print(loss.item().hex(), *[p.grad.numpy().tobytes().hex() for p in model.parameters()])
"""


def test_the_same_bits(fresh):
    assert fresh(TRAINING, MINIGRAD_TAPE="python") == fresh(TRAINING, MINIGRAD_TAPE="c")


def test_which_tape_runs(fresh):
    assert f"tape: {tape_name}" in mg.show_config().splitlines()
    shown = "import minigrad as mg; print(mg.show_config())"
    assert "tape: Python\n" in fresh(shown, MINIGRAD_TAPE="python")
    assert "tape: C\n" in fresh(shown, MINIGRAD_TAPE="")


def test_a_tape_that_is_not_there(fresh):
    error = fresh("import minigrad", fails=True, MINIGRAD_TAPE="rust")
    assert "MINIGRAD_TAPE='rust' is neither" in error
