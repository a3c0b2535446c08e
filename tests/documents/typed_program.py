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


def results(x: Tensor) -> tuple[float, Tensor]:
    """Results of methods by their arguments: pairs, tensors, numbers and parts of models."""
    largest, place = x.max(dim=0)
    both: Tensor = largest + place + x.min(1, keepdim=True).values + mg.median(x, axis=0).indices
    alone: Tensor = x.max() + mg.min(x, 1).values.sum() + x.max(both).sum() + mg.max(x, (0, 1))
    rows: tuple[Tensor, ...] = x.nonzero(as_tuple=True) + mg.where(x > 0)
    chosen: Tensor = mg.where(x > 0, x, 0.0) + x.nonzero().sum() + mg.unique(x).sum()
    model = nn.Sequential(nn.Linear(3, 3), nn.ReLU())
    first: nn.Module = model[0]
    weight: Tensor = model[0].weight
    front: nn.Sequential = model[:1]
    names: list[str] = [type(layer).__name__ for layer in front if layer is first]
    (alone + chosen.sum() + front(x).sum() + weight.sum()).backward()
    gradient = weight.grad
    assert gradient is not None
    total: float = gradient.sum().item() + len(rows) + len(names)
    return total, gradient


if __name__ == "__main__":
    mg.manual_seed(0)
    data = mg.randn(8, 4)
    print(train(Model(4, 8, 3), data, mg.randint(3, (8,)), 3))
    print(methods(mg.rand(2, 3, requires_grad=True)))
    print(results(mg.rand(2, 3, requires_grad=True)))


@mg.no_grad()
def named(count: int) -> str:
    """A decorator keeps the type of what it decorates."""
    return str(count)


def misspelt() -> str:
    """Names that are not there are errors: each of these is one that is ignored."""
    mg.nn.Liner(1, 2)  # type: ignore[attr-defined]
    mg.optim.Adma([])  # type: ignore[attr-defined]
    mg.nn.ZeroPad2d(1)
    mg.ones(2).grad.sum()  # type: ignore[union-attr]
    print(mg.ones(2).max(0).value)  # type: ignore[attr-defined]
    return named("one")  # type: ignore[arg-type]
