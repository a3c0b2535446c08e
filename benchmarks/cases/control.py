"""The control rows: NumPy against NumPy. The distance of their ratio from 1 is the noise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.cases.common import by_hand
from benchmarks.registry import Case, register


def _control(name: str, function: Callable[..., Any], *shapes: tuple[int, ...]) -> None:
    builder = by_hand(function)
    register(
        Case(
            "control",
            name,
            lambda rng: [rng.random(shape, dtype=np.float32) for shape in shapes],
            {"again": builder, "numpy": builder},
            subject="again",
            note="NumPy against itself: no code of ours",
        )
    )


_control("add 8x8", np.add, (8, 8), (8, 8))
_control("exp 2^16", np.exp, (2**16,))
_control("copy 2^22", np.copy, (2**22,))
_control("matmul 256", np.matmul, (256, 256), (256, 256))
