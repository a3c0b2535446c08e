"""Models of the training steps, each written for minigrad and torch, for jax, and for NumPy.

All libraries start from the same weights and see the same batch in every step.
"""

from __future__ import annotations

from benchmarks.models.gpt import Gpt
from benchmarks.models.lenet import LeNet
from benchmarks.models.mlp import Mlp
from benchmarks.models.problem import Problem

__all__ = ["PROBLEMS", "Problem"]

PROBLEMS: dict[str, Problem] = {
    problem.name: problem
    for problem in (
        Mlp((4, 16, 16, 3), 32, "SGD"),
        Mlp((784, 256, 128, 10), 128, "Adam"),
        Mlp((1024, 1024, 1024, 1024, 1024), 256, "Adam"),
        LeNet(28, 64, "Adam"),
        Gpt(layers=4, width=128, heads=4, length=64, batch=16, words=256, optimiser="AdamW"),
    )
}
