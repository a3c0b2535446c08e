"""The function ``pad``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from minigrad.functions.arguments import integer, row_of_numbers, tensor_operand
from minigrad.functions.operands import check_range
from minigrad.functions.shaping import cat, expand, narrow
from minigrad.ops import shape as _s
from minigrad.tape.apply import apply

if TYPE_CHECKING:
    from minigrad._tensor import Tensor

__all__ = ["constant_pad_nd", "pad"]


def pad(
    input: Tensor,
    pad: Sequence[int],
    mode: str = "constant",
    value: float | None = None,
) -> Tensor:
    """Add elements at both ends of the last dimensions. Negative numbers remove elements.

    ``pad`` has (left, right) of the last dimension, then of the dimension before it, and so on. Any
    number of dimensions may be padded in any mode:

    - "constant" adds ``value``, 0 by default
    - "replicate" repeats the element at the edge
    - "reflect" mirrors the elements next to the edge, without the edge
    - "circular" adds the elements of the other end

    Raises ValueError if there are not enough elements to reflect, repeat or wrap around. Raises
    TypeError for a value that the tensor cannot hold.

    >>> import minigrad as mg
    >>> pad(mg.tensor([1, 2, 3]), (2, 1), "reflect")
    tensor([3, 2, 1, 2, 3, 2])
    """
    x = tensor_operand("pad", input)
    if not isinstance(pad, (tuple, list)) and not row_of_numbers(pad):
        raise TypeError(f"[pad] pad is a list of amounts, not {type(pad).__name__}")
    ndim = x._h.ndim
    if not isinstance(pad, (tuple, list)):
        pad = pad[: 2 * ndim + 2]  # a range may be of any length
    amounts = [integer("pad", "an amount", n) for n in pad]
    if len(amounts) % 2 or len(amounts) > 2 * ndim:
        raise ValueError(
            f"[pad] {len(amounts)} amounts for {ndim} dimensions: they come in pairs, last "
            "dimension first"
        )
    if mode != "constant" and value is not None:
        raise ValueError(f"[pad] mode {mode!r} takes no value")
    pairs = [(ndim - 1 - k, *amounts[2 * k : 2 * k + 2]) for k in range(len(amounts) // 2)]
    for axis, left, right in pairs:
        n = x.shape[axis]
        if left + right + n < 0 or -left > n or -right > n:
            raise ValueError(f"[pad] {left} and {right} leave less than nothing of size {n}")
    if mode == "constant":
        return _constant(x, pairs, value)
    if mode not in _BORDERS:
        raise ValueError(f"[pad] mode is constant, reflect, replicate or circular, not {mode!r}")
    for axis, left, right in pairs:
        x = _BORDERS[mode](x, axis, left, right)
    return x


def constant_pad_nd(input: Tensor, pad: Sequence[int], value: float = 0) -> Tensor:
    """:func:`minigrad.pad` in the mode "constant"."""
    return _pad(input, pad, "constant", value)


_pad = pad


def _cut(x: Tensor, axis: int, left: int, right: int) -> Tensor:
    """The tensor without the elements that negative amounts remove."""
    if left >= 0 and right >= 0:
        return x
    return narrow(x, axis, max(-left, 0), x.shape[axis] + min(left, 0) + min(right, 0))


def _constant(x: Tensor, pairs: Sequence[tuple[int, int, int]], value: Any) -> Tensor:
    fill = 0 if value is None else value
    if isinstance(fill, float) and not x.dtype.is_floating_point:
        raise TypeError(f"[pad] the value {fill} does not fit into {x.dtype.name}")
    if x.dtype.is_storage:
        check_range("pad", tensor_operand("pad", fill)._h, x._h.dtype)
    for pair in pairs:
        x = _cut(x, *pair)
    shape, start = list(x.shape), [0] * x._h.ndim
    for axis, left, right in pairs:
        start[axis] = max(left, 0)
        shape[axis] += max(left, 0) + max(right, 0)
    return apply(_s.PAD, (x,), (tuple(shape), tuple(start), fill))


def _enough(mode: str, amount: int, least: int, n: int) -> None:
    if amount > least:
        raise ValueError(f"[pad] {amount} elements to {mode} where size {n} has {least}: pad less")


def _reflect(x: Tensor, axis: int, left: int, right: int) -> Tensor:
    x, left, right = _cut(x, axis, left, right), max(left, 0), max(right, 0)
    n = x.shape[axis]
    _enough("reflect", max(left, right), max(n - 1, 0), n)
    return apply(_s.SPANS, (x,), (axis, (left, -1, left, 0, 1, n, n - 2, -1, right)))


def _replicate(x: Tensor, axis: int, left: int, right: int) -> Tensor:
    n = x.shape[axis]
    if not n:
        _enough("replicate", max(left, right), 0, n)
        return x
    parts = [_cut(x, axis, left, right)]
    shape = x.shape
    for edge, count, place in ((0, left, 0), (n - 1, right, 2)):
        if count > 0:
            size = (*shape[:axis], count, *shape[axis + 1 :])
            parts.insert(place, expand(narrow(x, axis, edge, 1), size))
    return cat(parts, axis)


def _circular(x: Tensor, axis: int, left: int, right: int) -> Tensor:
    x, left, right = _cut(x, axis, left, right), max(left, 0), max(right, 0)
    n = x.shape[axis]
    _enough("wrap around", max(left, right), n, n)
    return apply(_s.SPANS, (x,), (axis, (n - left, 1, left, 0, 1, n, 0, 1, right)))


_BORDERS = {"reflect": _reflect, "replicate": _replicate, "circular": _circular}
