"""Train a small network eagerly and compiled: the same losses, and both times."""

from __future__ import annotations

import time
from typing import NamedTuple

import minigrad as mg
from minigrad import nn


class Run(NamedTuple):
    losses: list[float]
    seconds: float


def train(compiled: bool, steps: int = 500, seed: int = 0) -> Run:
    """Learn whether points lie in a circle."""
    mg.manual_seed(seed)
    model = nn.Sequential(
        nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 1)
    )
    optimizer = mg.optim.Adam(model.parameters(), lr=1e-2)

    def step(x, y):
        optimizer.zero_grad()
        loss = nn.functional.binary_cross_entropy_with_logits(model(x), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    step = mg.compile(step, disable=not compiled)
    points = 2 * mg.rand(steps, 32, 2) - 1
    inside = ((points**2).sum(-1, keepdim=True) < 0.5).float()
    batches = list(zip(points, inside, strict=True))
    losses = [step(x, y) for x, y in batches[:3]]  # these are recorded
    start = time.perf_counter()
    losses += [step(x, y) for x, y in batches[3:]]
    return Run([loss.item() for loss in losses], time.perf_counter() - start)


def main() -> None:
    eager, compiled = train(False), train(True)
    print(f"loss {eager.losses[0]:.3f} to {eager.losses[-1]:.3f}, the same: ", end="")
    print(eager.losses == compiled.losses)
    print(f"eager {eager.seconds:.3f} s, compiled {compiled.seconds:.3f} s")


if __name__ == "__main__":
    main()
