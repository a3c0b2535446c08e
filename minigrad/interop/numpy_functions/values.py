"""NumPy's elementwise functions, functions along a line, and functions without a gradient."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from minigrad import functions as f
from minigrad import special
from minigrad.functions import creation
from minigrad.functions.arguments import one_dim
from minigrad.functions.operands import strong_operand
from minigrad.functions.reductions import as_float
from minigrad.interop.numpy_functions.reading import (
    as_tensors,
    beside,
    refused,
    values_of,
)
from minigrad.tape.tensor_base import TensorBase

__all__ = ["TABLE", "divmod", "gcd", "lcm", "modf"]

# ---- parts of numbers ----------------------------------------------------------------------------


def modf(x: Any) -> tuple[Any, Any]:
    """The fractional and the integer part, both with the sign of the number."""
    x = as_float("numpy.modf", x)
    below = f.signbit(x)
    size = f.where(below, -x, x)  # so that a fraction of 0 has the sign too
    apart = f.where(f.isinf(size), 0.0, size - f.trunc(size))
    return f.where(below, -apart, apart), f.trunc(x)


def divmod(a: Any, b: Any) -> tuple[Any, Any]:  # noqa: A001 - NumPy's name
    """The quotient rounded down, and the remainder."""
    return f.floor_divide(a, b), f.remainder(a, b)


def _fix(x: Any) -> Any:
    return f.trunc(strong_operand("numpy.fix", x))


def _angle(z: Any, deg: bool = False) -> Any:
    z = as_float("numpy.angle", z)
    turned = f.atan2(creation.zeros_like(z), z)
    return f.rad2deg(turned) if deg else turned


def _all_of(value: bool) -> Callable[..., Any]:
    return lambda x: creation.full_like(x, value, dtype="bool")


def _infinite(value: float) -> Callable[..., Any]:
    return lambda x: f.eq(strong_operand("numpy.isposinf", x), value)


# ---- functions of functions ----------------------------------------------------------------------


def _apply_along_axis(func1d: Any, axis: int, arr: Any, *args: Any, **options: Any) -> Any:
    a = strong_operand("numpy.apply_along_axis", arr)
    d = one_dim("numpy.apply_along_axis", axis, a.ndim)
    outer = a.shape[:d] + a.shape[d + 1 :]
    if 0 in outer:
        raise ValueError("[numpy.apply_along_axis] there is no line to apply the function to")
    lines = f.reshape(f.moveaxis(a, d, -1), (math.prod(outer), a.shape[d]))
    found = [beside("apply_along_axis", a, func1d(line, *args, **options)) for line in lines]
    made = f.stack(found, 0)
    made = f.reshape(made, outer + made.shape[1:])
    inner = range(len(outer), made.ndim)
    return f.moveaxis(made, tuple(inner), tuple([d + i for i in range(len(inner))]))


def _apply_over_axes(func: Any, a: Any, axes: Any) -> Any:
    value = strong_operand("numpy.apply_over_axes", a)
    ndim = value.ndim
    for axis in axes if isinstance(axes, (tuple, list)) else (axes,):
        d = one_dim("numpy.apply_over_axes", axis, ndim)
        found = func(value, d)
        value = found if found.ndim == ndim else f.unsqueeze(found, d)
        if value.ndim != ndim:
            raise ValueError("[numpy.apply_over_axes] the function takes away more than an axis")
    return value


def _piecewise(x: Any, condlist: Any, funclist: Any, *args: Any, **options: Any) -> Any:
    x = strong_operand("numpy.piecewise", x)
    given = values_of(condlist)
    one = np.isscalar(given) or (np.ndim(given[0]) == 0 and x.ndim)
    masks = [np.asarray(mask, bool) for mask in ([given] if one else given)]
    if len(funclist) == len(masks) + 1:
        masks.append(~np.any(masks, axis=0))
    elif len(funclist) != len(masks):
        raise ValueError(
            f"[numpy.piecewise] {len(funclist)} functions for {len(masks)} conditions: one each, "
            "or one more"
        )
    y = creation.zeros_like(x)
    for mask, func in zip(masks, funclist, strict=True):
        if mask.any():
            chosen = creation.tensor(mask)
            y[chosen] = func(x[chosen], *args, **options) if callable(func) else func
    return y


# ---- counts, indices and texts -------------------------------------------------------------------

_BY_NUMPY = """
argpartition array2string array_equiv array_repr array_str can_cast common_type digitize
diag_indices_from flatnonzero histogram2d histogramdd isin ix_ lexsort min_scalar_type packbits
ravel_multi_index result_type shares_memory may_share_memory tril_indices_from triu_indices_from
unpackbits unravel_index
"""


def _by_numpy(theirs: Callable[..., Any]) -> Callable[..., Any]:
    """NumPy's own function, called on the values: for counts, indices, masks and texts."""

    def function(*args: Any, **options: Any) -> Any:
        named = {name: values_of(x) for name, x in options.items()}
        found = theirs(*values_of(args), **named)
        if _holds_floats(found) and _wants_gradient([*args, *options.values()]):
            raise refused(theirs.__name__, "results that are floats would get no gradient")
        return as_tensors(found)

    return function


def _holds_floats(found: Any) -> bool:
    if isinstance(found, (list, tuple)):
        return any(map(_holds_floats, found))
    return isinstance(found, (np.ndarray, np.generic)) and found.dtype.kind == "f"


def _wants_gradient(x: Any) -> bool:
    if isinstance(x, (list, tuple)):
        return any(map(_wants_gradient, x))
    return isinstance(x, TensorBase) and x._edge is not None


gcd, lcm = _by_numpy(np.gcd), _by_numpy(np.lcm)

TABLE: dict[str, Callable[..., Any]] = {
    name: _by_numpy(getattr(np, name)) for name in _BY_NUMPY.split() if hasattr(np, name)
}
TABLE |= {
    "angle": _angle,
    "apply_along_axis": _apply_along_axis,
    "apply_over_axes": _apply_over_axes,
    "fix": _fix,
    "i0": special.i0,
    "imag": lambda val: creation.zeros_like(val),
    "iscomplex": _all_of(False),
    "iscomplexobj": lambda x: False,
    "isneginf": _infinite(-np.inf),
    "isposinf": _infinite(np.inf),
    "isreal": _all_of(True),
    "isrealobj": lambda x: True,
    "piecewise": _piecewise,
    "real": lambda val: val,
    "real_if_close": lambda a, tol=100: a,
}
