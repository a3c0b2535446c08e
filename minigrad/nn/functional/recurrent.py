"""Functions for all steps of recurrent layers, from projected inputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from minigrad.functions import cat
from minigrad.functions.arguments import promoted
from minigrad.nn.functional.spatial import require_floats
from minigrad.ops.recurrent import GRU, LSTM, LSTM_PROJECTED, RNN_RELU, RNN_TANH
from minigrad.ops.saved_values import SavedValues
from minigrad.ops.table import Row
from minigrad.runtime.batched import BatchedOperandError, by_rules
from minigrad.tape.apply import apply
from minigrad.tape.tensor_base import parent_of, wrap

if TYPE_CHECKING:
    from minigrad._tensor import Tensor

__all__ = ["gru_steps", "lstm_steps", "rnn_steps"]


def gru_steps(projected: Tensor, state: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """All states of gated recurrent units (Cho et al. 2014), (1, T, B, H).

    Let r', z' and n' be the thirds of ``projected[t]``, and a, b and m the thirds of ``h @ weight.T
    + bias``. The next h is ``n + z * (h - n)``, where ``r = sigmoid(r' + a)``, ``z = sigmoid(z' +
    b)`` and ``n = tanh(n' + r * m)``. ``projected`` has the shape (T, B, 3 * H), and ``state``, the
    first h, (1, B, H). ``weight`` has (3 * H, H) and ``bias`` (3 * H). `nn.GRU` uses this function.
    PyTorch has no such function.

    Raises ValueError if the shapes do not fit or T is 0, TypeError unless the dtype is a float.

    >>> import minigrad as mg
    >>> x, state, weight = mg.zeros(3, 1, 3), mg.ones(1, 1, 1), mg.zeros(3, 1)
    >>> gru_steps(x, state, weight, mg.zeros(3)).flatten().tolist()
    [0.5, 0.25, 0.125]
    """
    return _steps("gru_steps", GRU, 1, 3, projected, state, weight, bias)


def lstm_steps(projected: Tensor, state: Tensor, weight: Tensor) -> Tensor:
    """All states of long short-term memory (Hochreiter and Schmidhuber 1997), (2, T, B, H).

    The gates i, f, g and o are the quarters of ``projected[t] + h @ weight.T``. The next states are
    ``c = sigmoid(f) * c + sigmoid(i) * tanh(g)`` and ``h = sigmoid(o) * tanh(c)``. ``projected``
    has the shape (T, B, 4 * H), and ``state``, the first h and c, (2, B, H). ``weight`` has (4 * H,
    H). `nn.LSTM` uses this function. PyTorch has no such function.

    Raises ValueError if the shapes do not fit or T is 0, TypeError unless the dtype is a float.

    >>> import minigrad as mg
    >>> lstm_steps(mg.zeros(3, 1, 4), mg.ones(2, 1, 1), mg.zeros(4, 1))[1].flatten().tolist()
    [0.5, 0.25, 0.125]
    """
    return _steps("lstm_steps", LSTM, 2, 4, projected, state, weight)


def rnn_steps(
    projected: Tensor, state: Tensor, weight: Tensor, nonlinearity: str = "tanh"
) -> Tensor:
    """All states of ``h = tanh(projected[t] + h @ weight.T)`` (Elman 1990), or relu, (1, T, B, H).

    The shapes are (T, B, H) for ``projected``, (1, B, H) for ``state``, the first h, and (H, H) for
    ``weight``. `nn.RNN` uses this function. PyTorch has no such function.

    Raises ValueError if the shapes do not fit, T is 0 or the nonlinearity is neither "tanh" nor
    "relu". Raises TypeError unless the dtype is a float.

    >>> import minigrad as mg
    >>> x, state, weight = mg.ones(3, 1, 1), mg.zeros(1, 1, 1), mg.ones(1, 1)
    >>> rnn_steps(x, state, weight, "relu").flatten().tolist()
    [1.0, 2.0, 3.0]
    """
    if nonlinearity not in ("tanh", "relu"):
        raise ValueError(
            f'[rnn_steps] nonlinearity is {nonlinearity!r}, but may be "tanh" or "relu"'
        )
    row = RNN_TANH if nonlinearity == "tanh" else RNN_RELU
    return _steps("rnn_steps", row, 1, 1, projected, state, weight)


def _steps(op: str, row: Row, states: int, gates: int, *given: Any) -> Tensor:
    given = _floats(op, *given)
    projected, state, weight, *bias = given
    steps, batch = projected.shape[:2] if projected.ndim == 3 else (0, 0)
    size = weight.shape[-1] if weight.ndim else 0
    shapes = ((steps, batch, gates * size), (states, batch, size), (gates * size, size))
    if not steps or (projected.shape, state.shape, weight.shape) != shapes:
        raise ValueError(
            f"[{op}] projected {projected.shape}, state {state.shape} and weight {weight.shape} do "
            f"not fit: they must be (T, B, {gates} * H), ({states}, B, H) and ({gates} * H, H), "
            "with T at least 1"
        )
    if bias and bias[0].shape != shapes[2][:1]:
        raise ValueError(f"[{op}] bias {bias[0].shape} must have the shape {shapes[2][:1]}")
    y = _apply(row, projected, state.flatten(), weight, *bias, cells=(states - 1) * steps)
    return y.reshape(states, steps, batch, size)


def _floats(op: str, *given: Any) -> Any:
    return tuple([require_floats(op, x) for x in promoted(op, given)])


def _apply(
    row: Row, projected: Tensor, state: Tensor, weight: Tensor, *operand: Tensor, cells: int
) -> Tensor:
    """Apply a row of `minigrad.ops.recurrent`, which may take a fourth operand."""
    given = operand[0] if operand else None
    try:
        edge = None if given is None else parent_of(given)
        saved = SavedValues(given, edge, wrap)
        return apply(row, (projected, state, weight, *operand), (saved, cells))
    except BatchedOperandError:

        def steps(*inputs: Tensor) -> Tensor:
            return _apply(row, *inputs, cells=cells)

        inputs = projected, state, weight, *operand
        made: Tensor = by_rules("recurrent_steps")(row.name, steps, inputs, cells)
        return made


_ROWS = {"RNN_TANH": RNN_TANH, "RNN_RELU": RNN_RELU, "GRU": GRU, "LSTM": LSTM}


def layer_steps(
    mode: str, projected: Tensor, states: Sequence[Tensor], weight: Tensor, operand: Tensor | None
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """The h of all steps of a layer (T, B, P), and its last states.

    The first states are h (B, P), and c (B, H) for an LSTM. ``operand`` is the bias of a GRU, or
    the projection of an LSTM's h.

    Raises TypeError unless the dtype is a float.
    """
    row = LSTM_PROJECTED if mode == "LSTM" and operand is not None else _ROWS[mode]
    state = cat([s.flatten() for s in states])
    beside = () if operand is None else (operand,)
    given = _floats(row.name, projected, state, weight, *beside)
    y = _apply(row, *given, cells=len(states) - 1)
    steps, batch = projected.shape[:2]
    shape = (steps, batch, weight.shape[-1])
    if mode != "LSTM":
        every = y.reshape(shape)
        return every, (every.select(0, steps - 1),)
    count = steps * batch * weight.shape[-1]
    every, c = y.narrow(0, 0, count).reshape(shape), y.narrow(0, count, y.shape[0] - count)
    return every, (every.select(0, steps - 1), c.reshape(states[1].shape))
