"""Steady state of a glowing rod: fit its properties through SciPy's solver.

    python -m pip install '.[examples]'
    python examples/steady_state.py

A rod is heated along its length, and cools by conduction to its ends and by radiation. Its
temperatures u are the root of 40 nonlinear equations, which scipy.optimize.root solves. From noisy
measurements of u the conductivity and the heating are found, by gradients through the solver. Each
gradient costs one linear solve, whatever the solver did.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import optimize

import minigrad as mg
from minigrad import func

NODES, NOISE, STEPS, SEED = 40, 0.002, 60, 0
CONDUCTIVITY, HEATING = 0.3, 2.0  # to be found


class Fit(NamedTuple):
    """The parameters found, and the mean squared misfit after each step."""

    conductivity: float
    heating: float
    losses: list[float]


def residual(u: mg.Tensor, conductivity: mg.Tensor, heating: mg.Tensor) -> mg.Tensor:
    """The lack of balance of conduction, radiation and heating at each node."""
    padded = mg.nn.functional.pad(u, (1, 1), value=1.0)  # the ends are kept at 1
    bend = (padded[2:] - 2 * u + padded[:-2]) * (NODES + 1) ** 2
    return conductivity * bend - (u**4 - 1) + heating


def solve(conductivity: mg.Tensor, heating: mg.Tensor) -> np.ndarray:
    """The temperatures, by SciPy and with the Jacobian from minigrad."""

    def missing(u: mg.Tensor) -> mg.Tensor:
        return residual(u, conductivity, heating)

    def equations(u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        x = mg.tensor(u)
        with mg.enable_grad():
            jacobian = mg.autograd.functional.jacobian(missing, x)
        return missing(x).numpy(), jacobian.numpy()

    found = optimize.root(equations, np.ones(NODES), jac=True)
    if not found.success:
        raise RuntimeError(found.message)
    return found.x


temperatures = func.custom_root(residual, solve)


def measured() -> mg.Tensor:
    """Temperatures of the true rod, with noise."""
    truth = [mg.tensor(x, dtype=mg.float64) for x in (CONDUCTIVITY, HEATING)]
    noise = np.random.default_rng(SEED).normal(0, NOISE, NODES)
    return temperatures(*truth) + mg.tensor(noise)


def fit(target: mg.Tensor, steps: int = STEPS) -> Fit:
    """Conductivity and heating whose temperatures are nearest to the measured ones."""
    logs = mg.tensor([0.0, 0.0], dtype=mg.float64, requires_grad=True)  # both are positive
    optimizer = mg.optim.LBFGS([logs], lr=1, max_iter=steps, line_search_fn="strong_wolfe")
    losses: list[float] = []

    def closure() -> Any:
        optimizer.zero_grad()
        loss = ((temperatures(*logs.exp()) - target) ** 2).mean()
        loss.backward()
        losses.append(loss.item())
        return loss

    optimizer.step(closure)
    conductivity, heating = logs.exp().tolist()
    return Fit(conductivity, heating, losses)


def main() -> None:
    """Fit, and say what was found."""
    found = fit(measured())
    print(f"conductivity {found.conductivity:.3f} (true {CONDUCTIVITY})")
    print(f"heating      {found.heating:.3f} (true {HEATING})")
    print(f"misfit       {found.losses[-1]:.2e} after {len(found.losses)} solves")


if __name__ == "__main__":
    main()
