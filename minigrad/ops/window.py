"""Windows that slide over the last axes, and boxes of any size on them: what pooling and
convolution are made of. All linear but one, and each other's transposes.

``Windows`` says where windows of one size lie; a row shows them all at once as a view, with the
windows on the axes they slide along and what is inside them on new ones at the end. ``Boxes`` says
where boxes of any size lie, axis by axis; what is in them is summed, or its maximum found.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from minigrad._c import call, lib
from minigrad.ops.table import Row, linear, zero

Sizes = tuple[int, ...]


class Windows(NamedTuple):
    """Window c of an axis takes the elements c * stride + k * dilation, k < kernel."""

    counts: Sizes
    kernel: Sizes
    stride: Sizes
    dilation: Sizes


class Boxes(NamedTuple):
    """Box i of an axis takes the elements start + j * step, j < size.

    ``starts`` and ``sizes`` hold those of the first axis, then of the next.
    """

    counts: Sizes
    starts: Sizes
    sizes: Sizes
    step: Sizes


def _apply(row: Row, x: Any, *args: Any) -> Any:
    """The row on a tensor; the tensor knows how."""
    return x.apply_row(row, *args)


WINDOWS = linear(
    "windows",
    lambda x, at: call(lib.mg_view_windows, x, len(at.counts), *at),
    lambda g, shape, at: _apply(FOLD_WINDOWS, g, shape, at),
    doc="all windows on the last axes, as a view",
    view=True,
)
FOLD_WINDOWS: Row = linear(
    "fold_windows",
    lambda g, to, at: call(
        lib.mg_fold_windows, g, len(to), to, len(at.counts), at.stride, at.dilation
    ),
    lambda g, to, at: _apply(WINDOWS, g, at),
    doc="zeros of a shape with all windows added to where they lie: the transpose of windows",
)
BOX_SUM = linear(
    "box_sum",
    lambda x, at: call(lib.mg_box_sum, x, len(at.counts), *at),
    lambda g, shape, at: _apply(BOX_SPREAD, g, shape, at),
    doc="the sum of every box on the last axes",
)
BOX_SPREAD: Row = linear(
    "box_spread",
    lambda g, to, at: call(lib.mg_box_spread, g, len(to), to, len(at.counts), *at),
    lambda g, to, at: _apply(BOX_SUM, g, at),
    doc="zeros of a shape with x added to all elements of its box: the transpose of box_sum",
)
BOX_ARGMAX = zero(
    "box_argmax",
    1,
    "where in the last axes the maximum of every box is: the first of ties, NaN first",
    forward=lambda x, at: call(lib.mg_box_argmax, x, len(at.counts), *at),
)
