"""Report on two Jacobians that differ: where, by how much, and what may be the cause."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from minigrad.checking.inputs import Array, outputs_of, unit, write
from minigrad.checking.suspect import suspect

if TYPE_CHECKING:
    from minigrad.checking.check import Check

__all__ = ["GradcheckError", "Jacobians", "expect_equal"]


class GradcheckError(RuntimeError, AssertionError):
    """A derivative is wrong; the message says which and where. A test that it ends has failed."""


class Jacobians(NamedTuple):
    """The derivatives of output j by the k-th input: those found, and those they should be.

    Rows are elements of the output ``y``, columns those of the input.
    """

    k: int
    j: int
    y: Any
    found: Array
    expected: Array
    allowed: Array
    found_by: str
    expected_by: str = "numeric"


class _Sides(NamedTuple):
    """One-sided difference quotients of an output, and its value, by one element of an input."""

    left: Array
    right: Array
    value: Array
    jumps: Array  # elements whose differences do not shrink with the step


def expect_equal(check: Check, pair: Jacobians) -> None:
    """Name the worst element that differs, or a kink if there is nothing else."""
    off = np.abs(pair.found - pair.expected)
    wrong = ~(off <= pair.allowed)  # NaN is wrong too
    if not wrong.any():
        return
    excess = np.where(wrong, np.nan_to_num(off - pair.allowed, nan=np.inf), -1.0)
    row, column = here = _place(excess)
    if pair.expected_by == "numeric":
        found = _first_without_kink(check, pair, excess)
        if found is None:
            raise GradcheckError(_kink_text(check, pair, here))
        row, column = here = found
    y, x = pair.y, check.xs[pair.k]
    message = (
        f"[gradcheck] the derivative of output {pair.j} with respect to input "
        f"{check.places[pair.k]} is wrong in {wrong.sum()} of {wrong.size} elements, most at "
        f"output index {_index(row, y.shape)}, input index {_index(column, x.shape)}: "
        f"{pair.found_by} {pair.found[here]:.10g}, "
        f"{pair.expected_by} {pair.expected[here]:.10g}, "
        f"difference {off[here]:.3g} where {pair.allowed[here]:.3g} is allowed"
    )
    if not y.requires_grad:
        message += "; this output does not require grad: its graph was lost on the way"
    if pair.expected_by == "numeric":
        noise, text = _doubts(check, pair, row, column, float(off[here]))
        message += text
        if not noise and y.requires_grad and pair.found_by == "analytic":
            message += _suspect(check, pair, row, column, float(off[here]))
    raise GradcheckError(message)


# ---- kinks ---------------------------------------------------------------------------------------


def _sides(check: Check, k: int, j: int, column: int) -> _Sides:
    """The one-sided differences of output j by one element of the k-th input."""
    step = check.options.step
    if check.options.stencil == 4:
        step /= 16  # where a smooth function is nearly straight
    u = unit(check.xs[k].shape, column)
    moved = check.values_at(k, u, (-step, -step / 4, 0.0, step / 4, step))
    far_left, left, value, right, far_right = (values[j].ravel() for values in moved)
    jumps = np.zeros(value.shape, bool)
    for near, far in ((left, far_left), (right, far_right)):
        jumps |= np.abs(near - value) > np.abs(far - value) / 2
    return _Sides((value - far_left) / step, (far_right - value) / step, value, jumps)


def _first_without_kink(check: Check, pair: Jacobians, excess: Array) -> tuple[int, int] | None:
    """The worst element that is not at a kink; None if all that differ are."""
    left, seen = excess.copy(), set()
    while left.max() >= 0:
        row, column = _place(left)
        if column in seen:
            return row, column
        seen.add(column)
        left[_kinks(check, pair, column), column] = -1.0
    return None


def _kinks(check: Check, pair: Jacobians, column: int) -> Array:
    """Elements where one-sided differences disagree, and what was found lies between them."""
    sides = _sides(check, pair.k, pair.j, column)
    found, off = pair.found[:, column], np.abs(pair.found - pair.expected)[:, column]
    low, high = np.minimum(sides.left, sides.right), np.maximum(sides.left, sides.right)
    slack = pair.allowed[:, column] + 1e-3 * (high - low)
    between = (low - slack <= found) & (found <= high + slack)
    apart = (high - low > off / 2) & np.isfinite(high - low)
    noise = 4 * np.finfo(np.float64).eps * np.abs(sides.value) / check.options.step
    return np.asarray(between & apart & (off > noise))


def _kink_text(check: Check, pair: Jacobians, here: tuple[int, int]) -> str:
    row, column = here
    sides = _sides(check, pair.k, pair.j, column)
    what = "jump" if sides.jumps[row] else "kink"
    return (
        f"[gradcheck] output {pair.j} has a {what} with respect to input {check.places[pair.k]} at "
        f"output index {_index(row, pair.y.shape)}, input index "
        f"{_index(column, check.xs[pair.k].shape)}: the one-sided differences are "
        f"{sides.left[row]:.10g} to the left and {sides.right[row]:.10g} to the right, "
        f"{pair.found_by} {pair.found[here]:.10g} lies between them; there is no derivative at "
        "this point, so check one beside it"
    )


# ---- what may be the cause -----------------------------------------------------------------------


def _doubts(check: Check, pair: Jacobians, row: int, column: int, off: float) -> tuple[bool, str]:
    """True if a mismatch may be noise of the difference; and what is to be said of that."""
    sides = _sides(check, pair.k, pair.j, column)
    left, right, value = (float(x[row]) for x in sides[:3])
    noise = float(np.finfo(np.float64).eps) * abs(value) / check.options.step
    text = f"; rounding makes the numeric one uncertain by about {noise:.2g}"
    if off <= 4 * noise:
        return True, text + ", so this may be noise: try stencil=4 or smaller values"
    if not np.isfinite(value):
        text += f"; the output is {value} at this point"
    elif np.isfinite(left) != np.isfinite(right):
        side = "right" if np.isfinite(left) else "left"
        text += f"; there is no finite value to the {side}: this point is at the edge of the domain"
    elif sides.jumps[row]:
        text += "; the output changes as much for a quarter of the step: there is a jump"
    elif abs(right - left) > 1e-3 * (abs(left) + abs(right)) + 4 * noise:
        text += (
            f"; one-sided differences disagree too, {left:.10g} to the left and {right:.10g} to "
            "the right: there is a kink or jump near this point"
        )
    return False, text


def _suspect(check: Check, pair: Jacobians, row: int, column: int, off: float) -> str:
    """The operation that is to blame for one element, if it is found."""
    k, x = pair.k, check.xs[pair.k]
    u, v = unit(x.shape, column), unit(pair.y.shape, row)

    def run_at(t: float) -> Callable[[], Any]:
        def run() -> Any:
            write(x, check.start[k] + t * u)
            return outputs_of(check.func, check.args)[pair.j]

        return run

    text = ""
    try:
        with suppress(Exception):  # this only adds to a message that stands without it
            text = suspect(run_at, x, u, v, check.options.step, off)
    finally:
        write(x, check.start[k])
    return text


def _place(excess: Array) -> tuple[int, int]:
    row, column = np.unravel_index(np.argmax(excess), excess.shape)
    return int(row), int(column)


def _index(flat: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple([int(i) for i in np.unravel_index(flat, shape)])
