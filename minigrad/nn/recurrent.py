"""Recurrent layers and cells: Elman's, gated recurrent units and long short-term memory."""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from minigrad import functions as f
from minigrad.functions.arguments import integer, real, tensor_operand
from minigrad.functions.creation import zeros
from minigrad.functions.grad_modes import no_grad
from minigrad.nn import functional as F  # noqa: N812 - its usual name
from minigrad.nn.functional.recurrent import layer_steps
from minigrad.nn.layers import uniform_parameter
from minigrad.nn.module import Module
from minigrad.nn.utils.rnn import PackedSequence
from minigrad.runtime.dtypes import as_dtype, float32

if TYPE_CHECKING:
    from minigrad._tensor import Tensor

__all__ = ["GRU", "LSTM", "RNN", "GRUCell", "LSTMCell", "RNNBase", "RNNCell", "RNNCellBase"]

State = tuple[Any, ...]  # h, or h and c, of shape (batch, size) each
Weights = tuple[Any, Any, Any, Any, Any]  # weight_ih, weight_hh, bias_ih, bias_hh, weight_hr


# ---- one step ------------------------------------------------------------------------------------
# Each function takes the projected input x @ weight_ih.T + bias_ih, the state and the other
# weights.


def _elman(activation: Callable[[Any], Any]) -> Callable[..., State]:
    def step(projected: Tensor, state: State, w_hh: Any, b_hh: Any, _: Any) -> State:
        return (activation(projected + F.linear(state[0], w_hh, b_hh)),)

    return step


def _gru(projected: Tensor, state: State, w_hh: Any, b_hh: Any, _: Any) -> State:
    """One step of a GRU (Cho et al. 2014), with the reset gate after the product, as in PyTorch."""
    (h,) = state
    own_r, own_z, own_n = projected.chunk(3, -1)
    r, z, n = F.linear(h, w_hh, b_hh).chunk(3, -1)
    r, z = (own_r + r).sigmoid(), (own_z + z).sigmoid()
    n = (own_n + r * n).tanh()
    return (n + z * (h - n),)


def _lstm(projected: Tensor, state: State, w_hh: Any, b_hh: Any, w_hr: Any) -> State:
    """One step of an LSTM (Hochreiter and Schmidhuber 1997) with forget gates (Gers et al. 2000).

    w_hr projects h.
    """
    h, c = state
    i, o_f, g, o = (projected + F.linear(h, w_hh, b_hh)).chunk(4, -1)
    c = o_f.sigmoid() * c + i.sigmoid() * g.tanh()
    h = o.sigmoid() * c.tanh()
    return h if w_hr is None else F.linear(h, w_hr), c


_STEPS: dict[str, Callable[..., State]] = {
    "RNN_TANH": _elman(lambda x: x.tanh()),
    "RNN_RELU": _elman(lambda x: x.relu()),
    "GRU": _gru,
    "LSTM": _lstm,
}
_GATES = {"RNN_TANH": 1, "RNN_RELU": 1, "GRU": 3, "LSTM": 4}


def _mode(op: str, nonlinearity: str) -> str:
    if nonlinearity not in ("tanh", "relu"):
        raise ValueError(f'[{op}] nonlinearity is {nonlinearity!r}, but may be "tanh" or "relu"')
    return "RNN_" + nonlinearity.upper()


# ---- all steps -----------------------------------------------------------------------------------


def _projected(mode: str, rows: Tensor, weights: Weights) -> Tensor:
    """rows @ weight_ih.T + bias_ih, plus bias_hh unless the layer multiplies it."""
    w_ih, _, b_ih, b_hh, _ = weights
    return F.linear(rows, w_ih, b_ih if mode == "GRU" or b_hh is None else b_ih + b_hh)


def _run(mode: str, projected: Tensor, state: State, weights: Weights) -> tuple[Tensor, State]:
    """Run all steps of (T, B, gates).

    Returns the h of all steps, (T, B, size), and the last state.
    """
    _, w_hh, _, b_hh, operand = weights
    if mode == "GRU":
        operand = zeros(w_hh.shape[:1], dtype=w_hh.dtype) if b_hh is None else b_hh
    return layer_steps(mode, projected, state, w_hh, operand)


def _segments(counts: list[int]) -> list[tuple[int, int, int]]:
    """Runs of steps with the same number of sequences: first row, steps and sequences of each."""
    found: list[tuple[int, int, int]] = []
    row = 0
    for count in counts:
        if found and found[-1][2] == count:
            found[-1] = (found[-1][0], found[-1][1] + 1, count)
        else:
            found.append((row, 1, count))
        row += count
    return found


def _forwards(
    mode: str, rows: Tensor, counts: list[int], state: State, weights: Weights
) -> tuple[Tensor, State]:
    """Run all rows in the order of the steps. A sequence that ends keeps its last state."""
    out, ended = [], []
    for first, steps, batch in _segments(counts):
        if batch < state[0].shape[0]:
            ended.append([s[batch:] for s in state])
            state = tuple([s[:batch] for s in state])
        part = rows[first : first + steps * batch].reshape(steps, batch, rows.shape[-1])
        y, state = _run(mode, part, state, weights)
        out.append(y.flatten(0, 1))
    ended.append(list(state))
    return _joined(out), tuple([_joined(list(pieces)) for pieces in zip(*ended[::-1], strict=True)])


def _backwards(
    mode: str, rows: Tensor, counts: list[int], given: State, weights: Weights
) -> tuple[Tensor, State]:
    """Run all rows from the last step to the first.

    A sequence joins, with its state, at its end.
    """
    out: list[Tensor] = []
    state = tuple([s[:0] for s in given])
    for first, steps, batch in _segments(counts)[::-1]:
        known = state[0].shape[0]
        if batch > known:
            joining = [s[known:batch] for s in given]
            state = tuple([_joined([s, n]) for s, n in zip(state, joining, strict=True)])
        part = rows[first : first + steps * batch].reshape(steps, batch, rows.shape[-1])
        y, state = _run(mode, part.flip(0), state, weights)
        out.append(y.flip(0).flatten(0, 1))
    return _joined(out[::-1]), state


def _joined(parts: list[Tensor]) -> Tensor:
    parts = [p for p in parts if p.shape[0]] or parts[:1]
    return f.cat(parts) if len(parts) > 1 else parts[0]


# ---- layers --------------------------------------------------------------------------------------


class _Recurrent(Module):
    """Base of cells and layers: sizes, and weights that start in U(-b, b), b = 1/sqrt(size)."""

    input_size: int
    hidden_size: int

    def _add_weights(
        self, mode: str, inputs: int, outputs: int, suffix: str, bias: bool, kind: Any
    ) -> list[str]:
        rows, size = _GATES[mode] * self.hidden_size, self.hidden_size
        shapes: dict[str, tuple[int, ...]] = {
            "weight_ih": (rows, inputs),
            "weight_hh": (rows, outputs),
        }
        if bias:
            shapes["bias_ih"] = shapes["bias_hh"] = (rows,)
        if outputs != size:
            shapes["weight_hr"] = (outputs, size)
        for name, shape in shapes.items():
            bound = 1.0 / math.sqrt(size)
            setattr(self, name + suffix, uniform_parameter(self._op, shape, bound, kind))
        return [name + suffix for name in shapes]

    def _weights(self, suffix: str) -> Weights:
        names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh", "weight_hr")
        return tuple([getattr(self, name + suffix, None) for name in names])  # type: ignore[return-value]

    def reset_parameters(self) -> None:
        """Draw all weights again from U(-b, b) with b = 1/sqrt(hidden_size)."""
        bound = 1.0 / math.sqrt(self.hidden_size)
        with no_grad():
            for p in self.parameters():
                p.uniform_(-bound, bound)

    @property
    def _op(self) -> str:
        return type(self).__name__

    def _check_input(self, x: Tensor) -> None:
        if x.shape[-1] != self.input_size:
            raise ValueError(
                f"[{self._op}] the last dimension of the input {x.shape} must be "
                f"input_size={self.input_size}"
            )


class RNNBase(_Recurrent):
    """Base of RNN, GRU and LSTM: arguments, weights, layers and directions."""

    def __init__(
        self,
        mode: str,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        op, self.mode = self._op, mode
        self.input_size = integer(op, "input_size", input_size, 0)
        self.hidden_size = integer(op, "hidden_size", hidden_size, 1)
        self.num_layers = integer(op, "num_layers", num_layers, 1)
        self.bias, self.batch_first, self.bidirectional = bias, batch_first, bool(bidirectional)
        if not 0.0 <= real(op, "dropout", dropout) <= 1.0:
            raise ValueError(f"[{op}] dropout is {dropout}, but a probability is between 0 and 1")
        self.dropout = float(dropout)
        if dropout and self.num_layers == 1:
            warnings.warn(
                f"[{op}] dropout is between layers: one layer has none, for dropout={dropout}",
                stacklevel=3,
            )
        self.proj_size = integer(op, "proj_size", proj_size, 0)
        if self.proj_size >= self.hidden_size:
            raise ValueError(f"[{op}] proj_size={proj_size} must be less than {hidden_size=}")
        kind = as_dtype(float32 if dtype is None else dtype)
        size = self.proj_size or self.hidden_size
        self._all_weights = []
        for suffix in self._suffixes():
            first = suffix in ("_l0", "_l0_reverse")
            inputs = self.input_size if first else size * self._directions
            self._all_weights.append(self._add_weights(mode, inputs, size, suffix, bias, kind))

    @property
    def _directions(self) -> int:
        return 2 if self.bidirectional else 1

    def _suffixes(self) -> list[str]:
        ends = ("", "_reverse")[: self._directions]
        return [f"_l{layer}{end}" for layer in range(self.num_layers) for end in ends]

    @property
    def all_weights(self) -> list[list[Any]]:
        """The parameters, with a list for each direction of each layer."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    def flatten_parameters(self) -> None:
        """Do nothing: the kernels read the weights as they are."""

    def extra_repr(self) -> str:
        """The arguments that differ from their defaults."""
        text = f"{self.input_size}, {self.hidden_size}"
        plain = {"proj_size": 0, "num_layers": 1, "bias": True, "batch_first": False}
        plain |= {"dropout": 0, "bidirectional": False}
        for name, value in plain.items():
            own = getattr(self, name)
            text += "" if own == value else f", {name}={own}"
        return text

    # -- forward --

    def _sizes(self) -> tuple[int, ...]:
        """The sizes of the states."""
        return (self.proj_size or self.hidden_size,)

    def _call(self, given: Any, states: State | None) -> tuple[Any, State]:
        if isinstance(given, PackedSequence):
            return self._packed(given, states)
        x = tensor_operand(self._op, given)
        if x.ndim not in (2, 3):
            raise ValueError(f"[{self._op}] the input has shape {x.shape}, but needs 2 or 3 dims")
        self._check_input(x)
        single = x.ndim == 2
        x = x.unsqueeze(1) if single else x.transpose(0, 1) if self.batch_first else x
        steps, batch = x.shape[:2]
        if not steps:
            raise ValueError(f"[{self._op}] the input has no steps: shape {given.shape}")
        if states is not None and single:
            for s in states:
                if s.ndim != 2:
                    raise ValueError(f"[{self._op}] a state has shape {s.shape}, but needs 2 dims")
            states = tuple([s.unsqueeze(1) for s in states])
        y, states = self._layers(x.flatten(0, 1), [batch] * steps, states)
        y = y.reshape(steps, batch, y.shape[-1])
        if single:
            return y.squeeze(1), tuple([s.squeeze(1) for s in states])
        return y.transpose(0, 1) if self.batch_first else y, states

    def _packed(self, given: PackedSequence, states: State | None) -> tuple[Any, State]:
        x, sizes, order, back = given
        if x.ndim != 2:
            raise ValueError(f"[{self._op}] packed data has shape {x.shape}, but needs 2 dims")
        self._check_input(x)
        counts = sizes.tolist()
        falls = all(a >= b for a, b in itertools.pairwise(counts))
        if not counts or counts[-1] < 1 or not falls or sum(counts) != x.shape[0]:
            raise ValueError(
                f"[{self._op}] batch_sizes {counts} must be positive, not grow, and add up to "
                f"{x.shape[0]}, the rows of the data"
            )
        if states is not None and order is not None:
            states = tuple([s.index_select(1, order) for s in states])
        y, states = self._layers(x, counts, states)
        if back is not None:
            states = tuple([s.index_select(1, back) for s in states])
        return PackedSequence(y, sizes, order, back), states

    def _layers(self, rows: Tensor, counts: list[int], given: State | None) -> tuple[Tensor, State]:
        states = self._initial(rows, counts[0], given)
        last = []
        suffixes = iter(enumerate(self._suffixes()))
        for layer in range(self.num_layers):
            if layer and self.dropout and self.training:
                rows = F.dropout(rows, self.dropout)
            out = []
            for k, suffix in [next(suffixes) for _ in range(self._directions)]:
                weights = self._weights(suffix)
                projected = _projected(self.mode, rows, weights)
                go = _backwards if suffix.endswith("_reverse") else _forwards
                y, end = go(self.mode, projected, counts, tuple([s[k] for s in states]), weights)
                out.append(y)
                last.append(end)
            rows = f.cat(out, -1) if len(out) > 1 else out[0]
        return rows, tuple([f.stack(list(ends)) for ends in zip(*last, strict=True)])

    def _initial(self, rows: Tensor, batch: int, given: State | None) -> State:
        """The given states, or zeros, of shape (layers * directions, batch, size) each."""
        count = self.num_layers * self._directions
        shapes = [(count, batch, size) for size in self._sizes()]
        if given is None:
            return tuple([zeros(shape, dtype=rows.dtype) for shape in shapes])
        for s, shape in zip(given, shapes, strict=True):
            if s.shape != shape:
                raise ValueError(
                    f"[{self._op}] a state has shape {s.shape}, but must be {shape}: (num_layers * "
                    "directions, batch, size), of one sequence without the batch"
                )
        return given


class _OneState(RNNBase):
    def forward(self, input: Any, hx: Tensor | None = None) -> tuple[Any, Tensor]:
        """The h of all steps, and the last h."""
        states = None if hx is None else (tensor_operand(self._op, hx),)
        y, (h,) = self._call(input, states)
        return y, h


class RNN(_OneState):
    """Elman's recurrent layers: ``h = tanh(W_ih x + b_ih + W_hh h + b_hh)``, or relu (Elman 1990).

    A call takes (T, B, input_size), (T, input_size) or a PackedSequence. With ``batch_first`` it
    takes (B, T, input_size). The states (layers * directions, B, hidden_size) are zeros if left
    out. The result has all h of the last layer, with both directions concatenated, and the last h
    of each layer.

    In training, elements of the inputs of later layers are dropped with probability ``dropout``.
    Parameters start in U(-b, b) with b = 1/sqrt(hidden_size), as in PyTorch.

    Raises ValueError for arguments out of range. A call raises ValueError if the shapes do not fit.

    >>> import minigrad as mg
    >>> y, h = mg.nn.RNN(3, 4)(mg.ones(5, 2, 3))
    >>> y.shape, h.shape
    ((5, 2, 4), (1, 2, 4))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        self.nonlinearity = nonlinearity
        rest = (bias, batch_first, dropout, bidirectional, 0, device, dtype)
        super().__init__(_mode("RNN", nonlinearity), input_size, hidden_size, num_layers, *rest)


class GRU(_OneState):
    """Gated recurrent units (Cho et al. 2014). Arguments, shapes and states are those of `RNN`.

    The gates are ``r = sigmoid(W_ir x + b_ir + W_hr h + b_hr)`` and z likewise. With ``n =
    tanh(W_in x + b_in + r * (W_hn h + b_hn))`` the next state is ``h = (1 - z) * n + z * h``. The
    weights have the rows of r, z and n in this order.

    >>> import minigrad as mg
    >>> y, h = mg.nn.GRU(3, 4, num_layers=2, bidirectional=True)(mg.ones(5, 2, 3))
    >>> y.shape, h.shape
    ((5, 2, 8), (4, 2, 4))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        rest = (bias, batch_first, dropout, bidirectional, 0, device, dtype)
        super().__init__("GRU", input_size, hidden_size, num_layers, *rest)


class LSTM(RNNBase):
    """Long short-term memory (Hochreiter and Schmidhuber 1997). Arguments are those of `RNN`.

    The formulas are ``c = sigmoid(f) * c + sigmoid(i) * tanh(g)`` and ``h = sigmoid(o) * tanh(c)``.
    Each gate is ``W_i x + b_i + W_h h + b_h``. The weights have the rows of i, f, g and o in this
    order. The states are a pair (h, c). With ``proj_size`` each h is projected to this size by
    ``weight_hr`` (Sak et al. 2014).

    >>> import minigrad as mg
    >>> y, (h, c) = mg.nn.LSTM(3, 4, batch_first=True, proj_size=2)(mg.ones(2, 5, 3))
    >>> y.shape, h.shape, c.shape
    ((2, 5, 2), (1, 2, 2), (1, 2, 4))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        rest = (bias, batch_first, dropout, bidirectional, proj_size, device, dtype)
        super().__init__("LSTM", input_size, hidden_size, num_layers, *rest)

    def _sizes(self) -> tuple[int, ...]:
        return (self.proj_size or self.hidden_size, self.hidden_size)

    def forward(
        self,
        input: Any,
        hx: tuple[Tensor, Tensor] | None = None,
    ) -> tuple[Any, tuple[Tensor, Tensor]]:
        """The h of all steps, and the last h and c."""
        return self._call(input, _pair(self._op, hx))


def _pair(op: str, hx: Any) -> State | None:
    if hx is None:
        return None
    if not isinstance(hx, (tuple, list)) or len(hx) != 2:
        raise TypeError(f"[{op}] the state is {type(hx).__name__}, but must be a pair (h, c)")
    return tuple([tensor_operand(op, s) for s in hx])


# ---- cells ---------------------------------------------------------------------------------------


class RNNCellBase(_Recurrent):
    """Base of cells. A cell maps (B, input_size) or (input_size) and a state to the next state."""

    def __init__(
        self, mode: str, input_size: int, hidden_size: int, bias: bool, dtype: Any
    ) -> None:
        self.input_size = integer(self._op, "input_size", input_size, 0)
        size = self.hidden_size = integer(self._op, "hidden_size", hidden_size, 1)
        self.bias, self._mode = bias, mode
        kind = as_dtype(float32 if dtype is None else dtype)
        self._add_weights(mode, self.input_size, size, "", bias, kind)

    def extra_repr(self) -> str:
        """The sizes, and the arguments that differ from their defaults."""
        text = f"{self.input_size}, {self.hidden_size}"
        return text if self.bias is True else f"{text}, bias={self.bias}"

    def _step(self, given: Any, states: State | None) -> State:
        x = tensor_operand(self._op, given)
        if x.ndim not in (1, 2):
            raise ValueError(f"[{self._op}] the input has shape {x.shape}, but needs 1 or 2 dims")
        self._check_input(x)
        shape = (*x.shape[:-1], self.hidden_size)
        if states is None:
            states = (zeros(shape, dtype=x.dtype),) * (2 if self._mode == "LSTM" else 1)
        for s in states:
            if s.shape != shape:
                raise ValueError(f"[{self._op}] a state has shape {s.shape}, but must be {shape}")
        w_ih, w_hh, b_ih, b_hh, _ = self._weights("")
        if x.ndim == 2:
            return _STEPS[self._mode](F.linear(x, w_ih, b_ih), states, w_hh, b_hh, None)
        x, states = x.unsqueeze(0), tuple([s.unsqueeze(0) for s in states])
        found = _STEPS[self._mode](F.linear(x, w_ih, b_ih), states, w_hh, b_hh, None)
        return tuple([s.squeeze(0) for s in found])


class _OneStateCell(RNNCellBase):
    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """The next h."""
        states = None if hx is None else (tensor_operand(self._op, hx),)
        return self._step(input, states)[0]


class RNNCell(_OneStateCell):
    """One step of `RNN`.

    >>> import minigrad as mg
    >>> mg.nn.RNNCell(3, 4)(mg.ones(2, 3)).shape
    (2, 4)
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        self.nonlinearity = nonlinearity
        super().__init__(_mode("RNNCell", nonlinearity), input_size, hidden_size, bias, dtype)

    def extra_repr(self) -> str:
        """The sizes, and the arguments that differ from their defaults."""
        text = super().extra_repr()
        other = self.nonlinearity
        return text if other == "tanh" else f"{text}, nonlinearity={other}"


class GRUCell(_OneStateCell):
    """One step of `GRU`.

    >>> import minigrad as mg
    >>> mg.nn.GRUCell(3, 4)(mg.ones(2, 3)).shape
    (2, 4)
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__("GRU", input_size, hidden_size, bias, dtype)


class LSTMCell(RNNCellBase):
    """One step of `LSTM`. The state and the result are a pair (h, c).

    >>> import minigrad as mg
    >>> h, c = mg.nn.LSTMCell(3, 4)(mg.ones(2, 3))
    >>> h.shape, c.shape
    ((2, 4), (2, 4))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__("LSTM", input_size, hidden_size, bias, dtype)

    def forward(
        self,
        input: Tensor,
        hx: tuple[Tensor, Tensor] | None = None,
    ) -> tuple[Tensor, Tensor]:
        """The next h and c."""
        return self._step(input, _pair(self._op, hx))
