"""NumPy's products of tensors: dot, matmul, outer and others, and convolution of vectors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minigrad import functions as f
from minigrad.functions.arguments import common_shape
from minigrad.functions.operands import tensor_operands
from minigrad.interop.numpy_functions.reading import (
    as_line,
)

__all__ = ["TABLE", "matvec", "vecmat"]

# ---- products ------------------------------------------------------------------------------------


def _dot(a: Any, b: Any) -> Any:
    a, b = tensor_operands("numpy.dot", a, b)
    if not a.ndim or not b.ndim:
        return a * b
    return f.matmul(a, b) if b.ndim <= 2 else f.tensordot(a, b, ([-1], [-2]))


def _vdot(a: Any, b: Any) -> Any:
    x, y = [f.ravel(t) for t in tensor_operands("numpy.vdot", a, b)]
    if x.size != y.size:
        raise ValueError(f"[numpy.vdot] {x.size} and {y.size} elements: both need the same number")
    return f.matmul(x, y)


def matvec(a: Any, b: Any) -> Any:
    """Matrices times vectors. Both may be batches."""
    a, b = tensor_operands("numpy.matvec", a, b)
    return f.squeeze(f.matmul(a, f.unsqueeze(b, -1)), -1)


def vecmat(a: Any, b: Any) -> Any:
    """Vectors times matrices. Both may be batches."""
    a, b = tensor_operands("numpy.vecmat", a, b)
    return f.squeeze(f.matmul(f.unsqueeze(a, -2), b), -2)


def _cross(
    a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: Any = None
) -> Any:
    if axis is not None:
        axisa = axisb = axisc = axis
    x, y = tensor_operands("numpy.cross", a, b)
    x, y = f.moveaxis(x, axisa, -1), f.moveaxis(y, axisb, -1)
    if x.shape[-1] != 3 or y.shape[-1] != 3:
        raise ValueError(
            f"[numpy.cross] vectors of {x.shape[-1]} and {y.shape[-1]} elements: both need 3"
        )
    shape = common_shape("numpy.cross", x, y)
    (x0, x1, x2), (y0, y1, y2) = (f.unbind(f.broadcast_to(t, shape), -1) for t in (x, y))
    result = f.stack([x1 * y2 - x2 * y1, x2 * y0 - x0 * y2, x0 * y1 - x1 * y0], -1)
    return f.moveaxis(result, -1, axisc) if result.ndim > 1 else result


# ---- sliding products ----------------------------------------------------------------------------


def _correlate(a: Any, v: Any, mode: str = "valid") -> Any:
    return _slid("correlate", a, v, mode, flipped=False)


def _convolve(a: Any, v: Any, mode: str = "full") -> Any:
    return _slid("convolve", a, v, mode, flipped=True)


_MODES = "valid", "same", "full"


def _slid(op: str, a: Any, v: Any, mode: Any, flipped: bool) -> Any:
    """The products of a vector's windows with a shorter vector, which ``flipped`` reverses."""
    x, y = map(as_line, tensor_operands(f"numpy.{op}", a, v))
    if x.ndim > 1 or y.ndim > 1:
        raise ValueError(f"[numpy.{op}] shapes {x.shape} and {y.shape} are not both vectors")
    if not x.size or not y.size:
        raise ValueError(f"[numpy.{op}] a vector has no elements")
    if isinstance(mode, int) and 0 <= mode < 3:
        mode = _MODES[mode]
    if mode not in _MODES:
        raise ValueError(f"[numpy.{op}] mode is {mode!r}, but must be one of {', '.join(_MODES)}")
    swapped = x.size < y.size
    if swapped:
        x, y = y, x
    found = _windows(x, f.flip(y, 0) if flipped else y, mode)
    return f.flip(found, 0) if swapped and not flipped else found


def _windows(x: Any, y: Any, mode: str) -> Any:
    m = y.size
    left = {"valid": 0, "same": m // 2, "full": m - 1}[mode]
    right = {"valid": 0, "same": m - m // 2 - 1, "full": m - 1}[mode]
    padded = f.pad(x, (left, right))
    if x.dtype.is_floating_point or y.dtype.is_floating_point:
        from minigrad.nn.functional import conv1d

        dtype = max(x.dtype, y.dtype, key=lambda d: d.code)
        lines = [f.reshape(f.to(t, dtype), (1, 1, -1)) for t in (padded, y)]
        return f.reshape(conv1d(lines[0], lines[1]), (-1,))
    return f.to(f.sum(f.unfold(padded, 0, m, 1) * y, 1), (x[:1] * y[:1]).dtype)


TABLE: dict[str, Callable[..., Any]] = {
    "convolve": _convolve,
    "correlate": _correlate,
    "cross": _cross,
    "dot": _dot,
    "outer": lambda a, b: f.outer(f.ravel(a), f.ravel(b)),
    "tensordot": lambda a, b, axes=2: f.tensordot(a, b, axes),
    "vdot": _vdot,
}
