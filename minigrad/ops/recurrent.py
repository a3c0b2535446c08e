"""Rows of recurrent layers over all time steps: Elman, gated recurrent units and LSTM.

The rows take the projected inputs (T, B, gates * H), the first state and a weight (gates * H, P).
Some rows take one more operand. Then follow `SavedValues` and the number of LSTM's last c to
return. A state packs h (B, P) and c (B, H) into one row of numbers. The result is the h of all
steps, followed by these c.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from minigrad.ops.saved_values import SavedValues
from minigrad.ops.shape import CAT, STACK
from minigrad.ops.table import Row, custom
from minigrad.runtime.native import Array, call, kernels, lib

T = Any  # a Tensor, whose class this layer may not import
Shape = tuple[int, ...]


def _parts(x: T) -> list[T]:
    return [x.select(0, k) for k in range(x.shape[0])]


def _stacked(parts: list[T]) -> T:
    return parts[0].apply_row(STACK, 0, len(parts), beside=tuple(parts[1:]))


def _beside(parts: list[T]) -> T:
    """Matrices concatenated along the columns."""
    bounds = [0]
    for x in parts:
        bounds.append(bounds[-1] + x.shape[-1])
    return parts[0].apply_row(CAT, len(parts[0].shape) - 1, bounds, beside=tuple(parts[1:]))


def _in_one_row(parts: list[T]) -> T:
    return _beside([x.reshape((math.prod(x.shape),)) for x in parts])


def _apart(x: T, *shapes: Shape) -> list[T]:
    """Split one row of numbers into tensors of these shapes."""
    found, at = [], 0
    for shape in shapes:
        size = math.prod(shape)
        found.append(x.narrow(0, at, size).reshape(shape))
        at += size
    return found


def _lstm_back(
    g: T, projected: T, state: T, weight: T, projection: T | None, cells: int
) -> tuple[T, ...]:
    """Gradients of c = f c' + i g and h = o tanh(c). The gates are computed again."""
    (steps, batch, wide), out = projected.shape, weight.shape[-1]
    size = wide // 4
    h, c = _apart(state, (batch, out), (batch, size))
    passed = []
    for x in _parts(projected):
        gates = x + h @ weight.mT
        i, f, n, o = [gates.narrow(-1, k * size, size) for k in range(4)]
        i, f, n, o = i.sigmoid(), f.sigmoid(), n.tanh(), o.sigmoid()
        new = f * c + i * n
        passed.append((h, c, i, f, n, o, new.tanh()))
        c, h = new, o * passed[-1][-1]
        h = h if projection is None else h @ projection.mT
    by_h, by_c = map(_parts, _apart(g, (steps, batch, out), (cells, batch, size)))
    dh: T = 0.0
    dc: T = 0.0
    dw: T = 0.0
    by_projection: T = 0.0
    sums: list[T] = []
    for t, (h, c, i, f, n, o, bent) in reversed(list(enumerate(passed))):
        dh = by_h[t] + dh
        if projection is not None:
            by_projection = dh.mT @ (o * bent) + by_projection
            dh = dh @ projection
        if t >= steps - cells:
            dc = by_c[t - (steps - cells)] + dc
        dc = dc + dh * o * (1.0 - bent * bent)
        partials = (dc * n * i * (1.0 - i), dc * c * f * (1.0 - f), dc * i * (1.0 - n * n))
        d = _beside([*partials, dh * bent * o * (1.0 - o)])
        sums.append(d)
        dh, dc, dw = d @ weight, dc * f, d.mT @ h + dw
    return _stacked(sums[::-1]), _in_one_row([dh, dc]), dw, by_projection


def _gru_back(g: T, projected: T, state: T, weight: T, bias: T, cells: int) -> tuple[T, ...]:
    """Gradients of h = n + z (h' - n). The gates are computed again."""
    (steps, batch, _), size = projected.shape, weight.shape[-1]
    (h,) = _apart(state, (batch, size))
    passed = []
    for x in _parts(projected):
        own = [x.narrow(-1, k * size, size) for k in range(3)]
        sums = h @ weight.mT + bias
        r, z, m = [sums.narrow(-1, k * size, size) for k in range(3)]
        r, z = (own[0] + r).sigmoid(), (own[1] + z).sigmoid()
        n = (own[2] + r * m).tanh()
        passed.append((h, r, z, m, n))
        h = n + z * (h - n)
    (by_h,) = map(_parts, _apart(g, (steps, batch, size)))
    dh: T = 0.0
    dw: T = 0.0
    db: T = 0.0
    found: list[T] = []
    for t, (h, r, z, m, n) in reversed(list(enumerate(passed))):
        dh = by_h[t] + dh
        by_n = dh * (1.0 - z) * (1.0 - n * n)
        first = (by_n * m * r * (1.0 - r), dh * (h - n) * z * (1.0 - z))
        found.append(_beside([*first, by_n]))
        d = _beside([*first, by_n * r])
        dh, dw, db = dh * z + d @ weight, d.mT @ h + dw, d.sum((0,)) + db
    return _stacked(found[::-1]), _in_one_row([dh]), dw, db.reshape(bias.shape)


def _elman_back(tanh: bool) -> Callable[..., tuple[T, ...]]:
    def back(g: T, projected: T, state: T, weight: T, _: None, cells: int) -> tuple[T, ...]:
        """Gradients of h = f(x + h' W^T). The h of all steps are computed again."""
        steps, batch, size = projected.shape
        (h,) = _apart(state, (batch, size))
        passed = [h]
        for x in _parts(projected):
            sums = x + h @ weight.mT
            h = sums.tanh() if tanh else sums.relu()
            passed.append(h)
        (by_h,) = map(_parts, _apart(g, (steps, batch, size)))
        dh: T = 0.0
        dw: T = 0.0
        found: list[T] = []
        for t in range(steps - 1, -1, -1):
            h, d = passed[t + 1], by_h[t] + dh
            d = d * (1.0 - h * h) if tanh else d.where(h > 0.0, 0.0)
            found.append(d)
            dh, dw = d @ weight, d.mT @ passed[t] + dw
        return _stacked(found[::-1]), _in_one_row([dh]), dw

    return back


def _recurrence(
    name: str, kind: int, back: Callable[..., tuple[T, ...]], doc: str, operands: int = 3
) -> Row:
    """A row for one kind of layer. `back` is the formula for the gradients of all operands."""

    def forward(projected: Array, state: Array, weight: Array, *rest: Any) -> Array:
        saved, cells = rest[-2:]
        operand = saved.take()
        y, made = call(kernels.recurrent, kind, projected, state, weight, operand, cells)
        saved.save(operand, made)
        return y

    def vjp(
        g: Array, projected: Array, state: Array, weight: Array, saved: SavedValues, cells: int
    ) -> Sequence[Array]:
        operand, made = saved.handles(name)
        arrays = (g, projected, state, weight, operand, made)
        return call(kernels.recurrent_vjp, kind, *arrays, cells)

    def joint(
        g: T, projected: T, state: T, weight: T, saved: SavedValues, cells: int
    ) -> tuple[T, ...]:
        return back(g, projected, state, weight, saved.operand(name), cells)[:operands]

    def by(i: int) -> Callable[..., T]:
        return lambda g, projected, state, weight, saved, cells: joint(
            g, projected, state, weight, saved, cells
        )[i]

    return custom(name, forward, *map(by, range(operands)), together=vjp, joint=joint, doc=doc)


RNN_TANH = _recurrence(
    "rnn_tanh_steps", lib.MG_RNN_TANH, _elman_back(True), "the h of all steps of tanh(x + h W^T)"
)
RNN_RELU = _recurrence(
    "rnn_relu_steps", lib.MG_RNN_RELU, _elman_back(False), "the h of all steps of relu(x + h W^T)"
)
GRU = _recurrence("gru_steps", lib.MG_GRU, _gru_back, "the h of all steps of a GRU", operands=4)
LSTM = _recurrence(
    "lstm_steps", lib.MG_LSTM, _lstm_back, "the h of all steps of an LSTM, and its last c"
)
LSTM_PROJECTED = _recurrence(
    "lstm_projected_steps",
    lib.MG_LSTM,
    _lstm_back,
    "the same where h is projected",
    operands=4,
)
