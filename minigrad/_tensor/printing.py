"""Repr of a tensor: values as NumPy prints them, then shape, dtype and grad_fn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from minigrad.functions.creation import to_numpy
from minigrad.runtime.dtypes import bfloat16, bool_, float32, int64
from minigrad.tape.hooks import forwards, note_leaving

if TYPE_CHECKING:
    from minigrad._tensor import Tensor

__all__ = ["html", "text"]


def _values(x: Tensor) -> np.ndarray[Any, Any]:
    if forwards:
        note_leaving(x)
    return to_numpy(x._h if x.dtype is not bfloat16 else x.float()._h)


def text(x: Tensor) -> str:
    """The repr: values, shape if empty or shortened, dtype unless it is obvious, and grad_fn."""
    values = np.array2string(_values(x), separator=", ", prefix="tensor(")
    notes = []
    if not x.size or x.size > np.get_printoptions()["threshold"]:
        notes.append(f"shape={x.shape}")
    shows_dtype = x.dtype in (float32, int64, bool_)
    if not shows_dtype or not x.size:
        notes.append(f"dtype={x.dtype!r}")
    if x.grad_fn is not None:
        notes.append(f"grad_fn={x.grad_fn!r}")
    elif x.requires_grad:
        notes.append("requires_grad=True")
    return f"tensor({', '.join([values, *notes])})"


def html(x: Tensor) -> str:
    """An HTML table for notebooks: dtype and shape, range, mean and number of NaN."""
    from html import escape

    rows = [("shape", str(x.shape)), ("dtype", x.dtype.name)]
    if x.grad_fn is not None:
        rows.append(("grad_fn", repr(x.grad_fn)))
    elif x.requires_grad:
        rows.append(("requires_grad", "True"))
    values = _values(x)
    known = values[~np.isnan(values)] if x.dtype.is_floating_point else values
    if known.size:
        with np.errstate(all="ignore"):  # the mean of infinities warns
            mean = known.mean(dtype=np.float64)
        rows += [
            ("min", f"{float(known.min()):.6g}"),
            ("max", f"{float(known.max()):.6g}"),
            ("mean", f"{mean:.6g}"),
        ]
    if x.dtype.is_floating_point:
        rows.append(("NaN", str(values.size - known.size)))
    text = np.array2string(values, separator=", ", threshold=100, edgeitems=2)
    cells = "".join(
        f"<tr><th>{name}</th><td><pre>{escape(value)}</pre></td></tr>"
        for name, value in (*rows, ("values", text))
    )
    return f'<table class="minigrad-tensor"><tbody>{cells}</tbody></table>'
