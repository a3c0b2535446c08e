"""The steps of recurrent layers whose inputs are projected already."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from minigrad.arguments import promoted
from minigrad.dispatch import apply
from minigrad.nn.functional.spatial import require_floats
from minigrad.ops.recurrent import LSTM, RNN_RELU, RNN_TANH, Kept
from minigrad.ops.table import Row

if TYPE_CHECKING:
    from minigrad._tensor import Tensor

__all__ = ["lstm_steps", "rnn_steps"]


def lstm_steps(projected: Tensor, state: Tensor, weight: Tensor) -> Tensor:
    """All states of long short-term memory (Hochreiter and Schmidhuber 1997), (2, T, B, H).

    The gates i, f, g and o are the quarters of ``projected[t] + h @ weight.T``, and
    ``c = sigmoid(f) * c + sigmoid(i) * tanh(g)``, ``h = sigmoid(o) * tanh(c)``. ``projected`` has
    the shape (T, B, 4 * H), ``state``, the first h and c, (2, B, H), and ``weight`` (4 * H, H).
    `nn.LSTM` is made of it; PyTorch has no function for it.

    Raises ValueError where the shapes do not fit or T is 0, TypeError for other than floats.

    >>> import minigrad as mg
    >>> lstm_steps(mg.zeros(3, 1, 4), mg.ones(2, 1, 1), mg.zeros(4, 1))[1].flatten().tolist()
    [0.5, 0.25, 0.125]
    """
    return _steps("lstm_steps", LSTM, 2, 4, projected, state, weight)


def rnn_steps(
    projected: Tensor, state: Tensor, weight: Tensor, nonlinearity: str = "tanh"
) -> Tensor:
    """All states of ``h = tanh(projected[t] + h @ weight.T)`` (Elman 1990), or relu, (1, T, B, H).

    ``projected`` has the shape (T, B, H), ``state``, the first h, (1, B, H), and ``weight`` (H, H).
    `nn.RNN` is made of it; PyTorch has no function for it.

    Raises ValueError where the shapes do not fit, T is 0 or the nonlinearity is neither "tanh" nor
    "relu", TypeError for other than floats.

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
    projected, state, weight = [require_floats(op, x) for x in promoted(op, given)]
    steps, batch = projected.shape[:2] if projected.ndim == 3 else (0, 0)
    size = weight.shape[-1] if weight.ndim else 0
    shapes = ((steps, batch, gates * size), (states, batch, size), (gates * size, size))
    if not steps or (projected.shape, state.shape, weight.shape) != shapes:
        raise ValueError(
            f"[{op}] projected {projected.shape}, state {state.shape} and weight {weight.shape} do "
            f"not fit: they must be (T, B, {gates} * H), ({states}, B, H) and ({gates} * H, H), "
            "with T at least 1"
        )
    return apply(row, (projected, state, weight), (Kept(),))
