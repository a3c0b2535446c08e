"""How a tensor is shown: its values as NumPy prints them, then what sets it apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

from minigrad.creation import to_numpy
from minigrad.dtypes import float32

if TYPE_CHECKING:
    from minigrad._tensor import Tensor


def text(x: Tensor) -> str:
    """The repr: values, shape if empty, dtype unless it shows, and the place on the tape."""
    import numpy as np

    values = np.array2string(to_numpy(x._h), separator=", ", prefix="tensor(")
    notes = []
    if not x.size:
        notes.append(f"shape={x.shape}")
    shows_dtype = x.dtype is float32 or not x.dtype.is_floating_point
    if not shows_dtype or not x.size:
        notes.append(f"dtype={x.dtype!r}")
    if x.grad_fn is not None:
        notes.append(f"grad_fn={x.grad_fn!r}")
    elif x.requires_grad:
        notes.append("requires_grad=True")
    return f"tensor({', '.join([values, *notes])})"
