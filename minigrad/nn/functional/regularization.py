"""Functions for dropout: set elements or whole channels to zero at random."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from minigrad import functions as f
from minigrad.functions.arguments import real, tensor_operand
from minigrad.functions.shaping import widen
from minigrad.nn.functional.spatial import Sizes, require_floats
from minigrad.ops.random import DROP
from minigrad.random import keep
from minigrad.tape.apply import apply

if TYPE_CHECKING:
    from minigrad._tensor import Tensor

__all__ = [
    "alpha_dropout",
    "dropout",
    "dropout1d",
    "dropout2d",
    "dropout3d",
    "feature_alpha_dropout",
]


_SATURATION = -1.7580993408473766  # SELU at minus infinity: -scale * alpha


def _input(op: str, input: Any, p: float) -> Tensor:
    x = tensor_operand(op, input)
    require_floats(op, x)
    if not 0.0 <= real(op, "p", p) <= 1.0:
        raise ValueError(f"[{op}] p is {p}, but a probability is between 0 and 1")
    return x


def _dropped(x: Tensor, shape: Sizes, p: float, training: bool, inplace: bool) -> Tensor:
    """Draw once for each element of ``shape``, which broadcasts to x."""
    if not training or p == 0.0:
        return x
    y = apply(DROP, (x,), (keep(shape, p), 1.0 / (1.0 - p) if p < 1.0 else 1.0))
    return x.copy_(y) if inplace else y


def _channels_dropped(
    op: str,
    input: Any,
    p: float,
    training: bool,
    inplace: bool,
    dims: tuple[int, int],
    channel: int,
) -> Tensor:
    """Apply dropout with one draw per channel.

    ``dims`` are the allowed numbers of dimensions. ``channel`` is the channels' dimension, counted
    as in an index.
    """
    x = _input(op, input, p)
    if x.ndim not in dims:
        raise ValueError(
            f"[{op}] the input has shape {x.shape}, but must have {dims[0]} or {dims[1]} dimensions"
        )
    kept = channel % x.ndim + 1
    return _dropped(x, x.shape[:kept] + (1,) * (x.ndim - kept), p, training, inplace)


def dropout(
    input: Tensor,
    p: float = 0.5,
    training: bool = True,
    inplace: bool = False,
) -> Tensor:
    """Set each element to 0 with probability ``p``, else to ``x / (1 - p)``.

    Without ``training`` the result is x (Srivastava et al. 2014). Draws come from the generator
    that :func:`minigrad.manual_seed` seeds. A dropped element has value and gradient 0 even if it
    is infinite or NaN. ``inplace`` writes into the input, which must not require grad. Raises
    ValueError unless p is a probability, TypeError unless the dtype is a float.

    >>> import minigrad as mg
    >>> x = mg.ones(1000)
    >>> sorted(set(dropout(x, 0.75).tolist()))
    [0.0, 4.0]
    >>> dropout(x, training=False) is x
    True
    """
    x = _input("dropout", input, p)
    return _dropped(x, x.shape, p, training, inplace)


def dropout1d(
    input: Tensor,
    p: float = 0.5,
    training: bool = True,
    inplace: bool = False,
) -> Tensor:
    """Like :func:`dropout`, for whole channels (Tompson et al. 2015).

    There is one draw for each row of (N, C, L) or (C, L).
    """
    return _channels_dropped("dropout1d", input, p, training, inplace, (2, 3), -2)


def dropout2d(
    input: Tensor,
    p: float = 0.5,
    training: bool = True,
    inplace: bool = False,
) -> Tensor:
    """Like :func:`dropout1d`, for (N, C, H, W); three dimensions are, as in PyTorch, (N, C, L)."""
    return _channels_dropped("dropout2d", input, p, training, inplace, (3, 4), 1)


def dropout3d(
    input: Tensor,
    p: float = 0.5,
    training: bool = True,
    inplace: bool = False,
) -> Tensor:
    """Like :func:`dropout1d`, for (N, C, D, H, W) or (C, D, H, W)."""
    return _channels_dropped("dropout3d", input, p, training, inplace, (4, 5), -4)


def alpha_dropout(
    input: Tensor,
    p: float = 0.5,
    training: bool = False,
    inplace: bool = False,
) -> Tensor:
    """Dropout that keeps mean 0 and variance 1 (Klambauer et al. 2017).

    With probability ``p`` an element becomes SELU's value at minus infinity. Then all elements are
    scaled and shifted.

    Arguments are as for :func:`dropout`.
    """
    x = _input("alpha_dropout", input, p)
    return _saturated(x, x.shape, p, training, inplace)


def _saturated(x: Tensor, shape: Sizes, p: float, training: bool, inplace: bool) -> Tensor:
    """Draw once for each element of ``shape``, which broadcasts to x."""
    if not training or p == 0.0:
        return x
    scale = 1.0 / math.sqrt((1.0 - p) * (1.0 + p * _SATURATION**2)) if p < 1.0 else 0.0
    y = f.where(keep(shape, p), widen(x), _SATURATION) * scale - scale * _SATURATION * p
    return x.copy_(y) if inplace else y


def feature_alpha_dropout(
    input: Tensor,
    p: float = 0.5,
    training: bool = False,
    inplace: bool = False,
) -> Tensor:
    """Like :func:`alpha_dropout`, for whole channels: one draw for each row of (N, C, ...)."""
    x = _input("feature_alpha_dropout", input, p)
    if x.ndim < 2:
        raise ValueError(
            f"[feature_alpha_dropout] the input has shape {x.shape}, but must be (N, C, ...)"
        )
    return _saturated(x, x.shape[:2] + (1,) * (x.ndim - 2), p, training, inplace)
