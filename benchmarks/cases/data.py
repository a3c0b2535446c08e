"""One pass over rows in memory by each library's data loader. NumPy indexes by hand."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.registry import Case, faster, register

_FEATURES = 64


def _loader(batch: int, shuffle: bool) -> Callable[..., Any]:
    def build(lib: Any, *inputs: Any) -> Callable[[], list[Any]]:
        data = importlib.import_module(f"{lib.name}.utils.data")
        dataset = data.TensorDataset(*[lib.array(v) for v in inputs])
        loader = data.DataLoader(dataset, batch_size=batch, shuffle=shuffle)
        return lambda: [tensor for pair in loader for tensor in pair]

    return build


def _by_hand(batch: int, shuffle: bool) -> Callable[..., Any]:
    def build(lib: Any, *inputs: Any) -> Callable[[], list[Any]]:
        arrays, rng = [lib.array(v) for v in inputs], np.random.default_rng(0)
        rows = len(arrays[0])

        def once() -> list[Any]:
            order = rng.permutation(rows) if shuffle else np.arange(rows)
            parts = [order[at : at + batch] for at in range(0, rows, batch)]
            return [array[part] for part in parts for array in arrays]

        return once

    return build


def _in_order(library: str, results: list[Any]) -> list[Any]:
    """All rows and labels in a common order. The labels are the rows' positions."""
    rows, labels = np.concatenate(results[::2]), np.concatenate(results[1::2])
    order = np.argsort(labels)
    return [rows[order], labels[order]]


def _pass(rows: int, batch: int, shuffle: bool, quick: bool) -> None:
    moved = rows * (4.0 * _FEATURES + 8)
    register(
        Case(
            "data",
            f"{rows} rows of {_FEATURES} in batches of {batch}" + (", shuffled" * shuffle),
            lambda rng: [rng.random((rows, _FEATURES), dtype=np.float32), np.arange(rows)],
            {
                "minigrad": _loader(batch, shuffle),
                "torch": _loader(batch, shuffle),
                "numpy": _by_hand(batch, shuffle),
            },
            reads=moved,
            writes=moved,
            quick=quick,
            targets=[faster(5, "torch")],
            compared=_in_order,
        )
    )


_pass(5000, 64, True, True)
_pass(50000, 64, True, False)
_pass(50000, 256, True, False)
_pass(50000, 64, False, False)
