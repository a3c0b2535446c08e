"""All steps of a recurrent layer at once: h = tanh or relu of x + h W^T, and LSTM's gates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from minigrad._c import NULL, Handle, call, lib, save, saved_handle
from minigrad.ops.shape import STACK
from minigrad.ops.table import Row, custom

T = Any  # a Tensor; this layer stands below it


class Kept:
    """The result of a forward, and LSTM's gates, saved for its backward."""

    __slots__ = ("saved",)

    saved: Any

    def handles(self, op: str) -> tuple[Handle, Handle]:
        """The two; RuntimeError if one was overwritten."""
        gates = lib.mg_saved_buffer(self.saved, 1)
        return saved_handle(self.saved, 0, op), saved_handle(self.saved, 1, op) if gates else NULL


def _parts(x: T) -> list[T]:
    return [x.select(0, k) for k in range(x.shape[0])]


def _stacked(parts: list[T]) -> T:
    return parts[0].apply_row(STACK, 0, len(parts), beside=tuple(parts[1:]))


def _lstm_back(g: T, projected: T, state: T, weight: T) -> tuple[T, T, T]:
    """Back through c = f c' + i g and h = o tanh(c), with the gates made again."""
    h, c = _parts(state)
    size = h.shape[-1]
    passed = []
    for x in _parts(projected):
        gates = x + h @ weight.mT
        i, f, n, o = [gates.narrow(-1, k * size, size) for k in range(4)]
        i, f, n, o = i.sigmoid(), f.sigmoid(), n.tanh(), o.sigmoid()
        new = f * c + i * n
        passed.append((h, c, i, f, n, o, new.tanh()))
        c, h = new, o * passed[-1][-1]
    by_h, by_c = [_parts(one) for one in _parts(g)]
    dh: T = 0.0
    dc: T = 0.0
    dw: T = 0.0
    sums: list[T] = []
    for t, (h, c, i, f, n, o, bent) in reversed(list(enumerate(passed))):
        dh = by_h[t] + dh
        dc = by_c[t] + dc + dh * o * (1.0 - bent * bent)
        slopes = (dc * n * i * (1.0 - i), dc * c * f * (1.0 - f), dc * i * (1.0 - n * n))
        each = [*slopes, dh * bent * o * (1.0 - o)]
        # Side by side along the last axis: stacked before it, and the two axes joined.
        d = _stacked(each).permute((1, 0, 2)).reshape((h.shape[0], 4 * size))
        sums.append(d)
        dh, dc, dw = d @ weight, dc * f, d.mT @ h + dw
    return _stacked(sums[::-1]), _stacked([dh, dc]), dw


def _elman_back(tanh: bool) -> Callable[..., tuple[T, T, T]]:
    def back(g: T, projected: T, state: T, weight: T) -> tuple[T, T, T]:
        """Back through h = f(x + h' W^T), with the h made again."""
        h = state.select(0, 0)
        passed = [h]
        for x in _parts(projected):
            sums = x + h @ weight.mT
            h = sums.tanh() if tanh else sums.relu()
            passed.append(h)
        dh: T = 0.0
        dw: T = 0.0
        found: list[T] = []
        for t, by_h in reversed(list(enumerate(_parts(g.select(0, 0))))):
            h, d = passed[t + 1], by_h + dh
            d = d * (1.0 - h * h) if tanh else d.where(h > 0.0, 0.0)
            found.append(d)
            dh, dw = d @ weight, d.mT @ passed[t] + dw
        return _stacked(found[::-1]), dh.unsqueeze(0), dw

    return back


def _recurrence(name: str, kind: int, back: Callable[..., tuple[T, T, T]], doc: str) -> Row:
    def forward(projected: Handle, state: Handle, weight: Handle, kept: Kept) -> Handle:
        y, gates = call(lib.mg_recurrent, kind, projected, state, weight)
        kept.saved = save(y, NULL if gates is None else gates)
        return y

    def vjp(g: Handle, x: Handle, state: Handle, weight: Handle, kept: Kept) -> Sequence[Handle]:
        return call(lib.mg_recurrent_vjp, kind, g, x, state, weight, *kept.handles(name))  # type: ignore[no-any-return]

    def by_projected(g: T, projected: T, state: T, weight: T, kept: Kept) -> T:
        return back(g, projected, state, weight)[0]

    def by_state(g: T, projected: T, state: T, weight: T, kept: Kept) -> T:
        return back(g, projected, state, weight)[1]

    def by_weight(g: T, projected: T, state: T, weight: T, kept: Kept) -> T:
        return back(g, projected, state, weight)[2]

    return custom(
        name,
        forward,
        by_projected,
        by_state,
        by_weight,
        together=vjp,
        joint=lambda g, projected, state, weight, kept: back(g, projected, state, weight),
        doc=doc,
    )


LSTM = _recurrence(
    "lstm_steps", lib.MG_LSTM, _lstm_back, "the h and c of all steps of an LSTM, (2, T, B, H)"
)
RNN_TANH = _recurrence(
    "rnn_tanh_steps",
    lib.MG_RNN_TANH,
    _elman_back(True),
    "the h of all steps of tanh(x + h W^T), (1, T, B, H)",
)
RNN_RELU = _recurrence(
    "rnn_relu_steps",
    lib.MG_RNN_RELU,
    _elman_back(False),
    "the h of all steps of relu(x + h W^T), (1, T, B, H)",
)
