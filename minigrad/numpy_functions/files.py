"""NumPy's functions that write files, on tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from minigrad.tape.tensor_base import TensorBase

__all__ = ["TABLE"]


def _array(x: Any) -> Any:
    return x.numpy() if isinstance(x, TensorBase) else x  # type: ignore[attr-defined]


def _save(file: Any, arr: Any, **options: Any) -> None:
    np.save(file, _array(arr), **options)


def _archive(write: Callable[..., None]) -> Callable[..., None]:
    def write_arrays(file: Any, *args: Any, **named: Any) -> None:
        write(file, *map(_array, args), **{name: _array(x) for name, x in named.items()})

    return write_arrays


TABLE: dict[str, Callable[..., Any]] = {
    "save": _save,
    "savez": _archive(np.savez),
    "savez_compressed": _archive(np.savez_compressed),
}
