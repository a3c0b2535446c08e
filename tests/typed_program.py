"""A program as a user would write it, for the type checker: mypy --strict passes on it."""

from __future__ import annotations

import numpy as np

import minigrad as mg
from minigrad import Tensor, nn, optim


class Model(nn.Module):
    """A small network."""

    def __init__(self, inputs: int, hidden: int, outputs: int) -> None:
        super().__init__()
        self.first = nn.Linear(inputs, hidden)
        self.second = nn.Linear(hidden, outputs)

    def forward(self, x: Tensor) -> Tensor:
        """Scores for a batch of rows."""
        scores: Tensor = self.second(mg.tanh(self.first(x)))
        return scores


def train(model: Model, x: Tensor, y: Tensor, steps: int) -> list[float]:
    """The losses on the way."""
    optimizer = optim.Adam(model.parameters(), lr=1e-2)
    losses: list[float] = []
    for _ in range(steps):
        loss: Tensor = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(float(loss))
    return losses


def methods(x: Tensor) -> Tensor:
    """Operators, methods and attributes."""
    shape: tuple[int, ...] = x.shape
    n: int = x.size
    a: Tensor = (x * 2 + 1).exp().sum(dim=0, keepdim=True)
    b: Tensor = 3.0 - a / x.abs().amax()
    c: Tensor = b[0, :2].reshape(-1).softmax(-1)
    values = x.max(1)
    d: Tensor = values.values
    e: np.ndarray[tuple[int, ...], np.dtype[np.float64]] = np.asarray(
        c.detach().numpy(), np.float64
    )
    inverse: Tensor = mg.linalg.inv(x @ x.T + mg.eye(shape[0]))
    (g,) = mg.grad((c.sum() + d.sum() + inverse.sum()) * n * float(e.sum()), [x])
    found: Tensor = g
    return found


if __name__ == "__main__":
    mg.manual_seed(0)
    data = mg.randn(8, 4)
    print(train(Model(4, 8, 3), data, mg.randint(3, (8,)), 3))
    print(methods(mg.rand(2, 3, requires_grad=True)))


@mg.no_grad()
def named(count: int) -> str:
    """A decorator keeps the type of what it decorates."""
    return str(count)


def misspelt() -> str:
    """Names that are not there are errors: each of these is one that is ignored."""
    mg.nn.Liner(1, 2)  # type: ignore[attr-defined]
    mg.optim.Adma([])  # type: ignore[attr-defined]
    mg.nn.ZeroPad2d(1)
    return named("one")  # type: ignore[arg-type]
