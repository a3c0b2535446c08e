"""Table from NumPy's functions to their implementations on tensors.

NumPy passes on calls with a tensor among the arguments. :mod:`minigrad.interop.numpy_protocol` then
looks the function up here. An implementation takes the supported arguments of NumPy's function,
without ``out``. This module is loaded with the first such call.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from minigrad import functions as f
from minigrad import linalg
from minigrad.functions import creation
from minigrad.functions.operands import strong_operand
from minigrad.interop.numpy_functions import (
    arranging,
    calculus,
    files,
    picking,
    products,
    reducing,
    statistics,
    values,
    writing,
)
from minigrad.runtime.dtypes import as_dtype

__all__ = ["implementation", "implementations"]

# Functions of minigrad with NumPy's name and parameters.
_SAME = """
argmax argmin count_nonzero squeeze broadcast_to moveaxis swapaxes stack hsplit vsplit dsplit tile
rot90 flip fliplr flipud kron inner trace diagonal diagflat nan_to_num isclose allclose einsum
zeros_like ones_like empty_like full_like atleast_1d atleast_2d atleast_3d searchsorted argwhere
diff sinc
"""


def _clip(a: Any, a_min: Any = None, a_max: Any = None, min: Any = None, max: Any = None) -> Any:  # noqa: A002
    return f.clamp(a, a_min if min is None else min, a_max if max is None else max)


def _astype(x: Any, dtype: Any, copy: bool = True) -> Any:
    found = f.to(x, as_dtype(dtype))
    return f.clone(x) if copy and found is x else found


_BY_NAME: dict[str, Callable[..., Any]] = {
    **{name: getattr(f, name, None) or getattr(creation, name) for name in _SAME.split()},
    "shape": lambda a: a.shape,
    "ndim": lambda a: a.ndim,
    "size": lambda a, axis=None: a.size if axis is None else a.shape[axis],
    "copy": lambda a: f.clone(a),
    "astype": _astype,
    "clip": _clip,
    "round": lambda a, decimals=0: f.round(a, decimals=decimals),
    "around": lambda a, decimals=0: f.round(a, decimals=decimals),
    "array_equal": lambda a1, a2: f.equal(
        strong_operand("array_equal", a1), strong_operand("array_equal", a2)
    ),
    **arranging.TABLE,
    **calculus.TABLE,
    **files.TABLE,
    **picking.TABLE,
    **products.TABLE,
    **reducing.TABLE,
    **statistics.TABLE,
    **values.TABLE,
    **writing.TABLE,
}


@cache
def implementations() -> dict[Any, Callable[..., Any]]:
    """The implementations for tensors by NumPy's functions. An older NumPy lacks some functions."""
    table = {getattr(np, name): ours for name, ours in _BY_NAME.items() if hasattr(np, name)}
    for name in dir(np.linalg):
        ours = getattr(linalg, name, None) if name in linalg.__all__ else None
        if ours is not None or name in _BY_NAME:
            table.setdefault(getattr(np.linalg, name), ours or _BY_NAME[name])
    return table


def implementation(function: Any) -> Callable[..., Any] | None:
    """The implementation of a NumPy function for tensors, or None if it is not supported."""
    return implementations().get(function)
