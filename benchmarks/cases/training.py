"""Whole training steps of each model: forward, loss, backward and optimiser.

The loss and all weights are checked after the first step.
"""

from __future__ import annotations

from benchmarks.models import PROBLEMS
from benchmarks.registry import Case, Target, register, time_ratio

_TARGETS: dict[str, Target] = {
    "MLP 4-": time_ratio(0.35, "torch"),
    "MLP 784-": time_ratio(1.0),
    "MLP 1024-": time_ratio(1.0),
    "LeNet": time_ratio(0.7),
    "GPT": time_ratio(0.7),
}

for _problem in PROBLEMS.values():
    _builders = _problem.builders()
    register(
        Case(
            "training",
            _problem.name,
            _problem.inputs,
            _builders,
            flops=_problem.flops,
            quick=not _problem.name.startswith("MLP 1024"),
            # The first step of Adam has the size of the rate, whatever the size of the gradient.
            # Where the gradient is 0 up to rounding, the step's sign is arbitrary.
            tolerance=1e-4 if _problem.optimiser == "SGD" else 4e-3,
            targets=[t for start, t in _TARGETS.items() if _problem.name.startswith(start)],
            note="torch: nn modules, and the optimiser by loop, foreach or fused, whichever is "
            "fastest; jax: one jitted step"
            + ("" if "numpy" in _builders else "; no NumPy by hand"),
        )
    )
