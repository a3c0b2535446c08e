"""Number of floating-point operations of one call of a kernel, from the shapes of its arrays.

A multiplication and an addition are two operations. An elementary function counts as one, and so
does any other element of an elementwise result. Copies, views and gathers count nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from minigrad.runtime.native import lib, names

__all__ = ["flops_of"]

Count = Callable[[Sequence[Any], Any], float]  # of the arguments and the result of a call


def _product(args: Sequence[Any], made: Any) -> int:
    return 2 * made.size * args[0].shape[-1]


def _linear(args: Sequence[Any], made: Any) -> int:
    bias = made.size if len(args) > 2 and args[2] is not None else 0
    return _product(args, made) + bias


def _convolution(args: Sequence[Any], made: Any) -> int:
    bias = made.size if args[2] is not None else 0
    return 2 * made.size * math.prod(args[1].shape[1:]) + bias


def _transposed_convolution(args: Sequence[Any], made: Any) -> int:
    return 2 * args[0].size * math.prod(args[1].shape[1:])


def _attention(args: Sequence[Any], made: Any) -> int:
    queries, keys, values = args[:3]
    scores = queries.size // max(queries.shape[-1], 1) * keys.shape[-2]
    return scores * (2 * queries.shape[-1] + 2 * values.shape[-1] + 5)


def _recurrent(args: Sequence[Any], made: Any) -> int:
    projected, weight = args[1], args[3]
    return projected.size * (2 * weight.shape[-1] + 5)


def _cubic(factor: float) -> Count:
    """A factorisation of matrices: ``factor`` n^3 operations each, for right sides as well."""

    def count(args: Sequence[Any], made: Any) -> float:
        n = args[0].shape[-1]
        right = 2 * args[1].size * n if len(args) > 1 and hasattr(args[1], "size") else 0
        return factor * args[0].size * n + right

    return count


def _each_read(times: int) -> Count:
    """Some operations for each element of the first array."""
    return lambda args, made: times * args[0].size


def _each_made(args: Sequence[Any], made: Any) -> int:
    return made.size


_COUNTS: dict[str, Count] = {
    "matmul": _product,
    "linear": _linear,
    "conv_forward": _convolution,
    "conv_backward_data": _transposed_convolution,
    "attention": _attention,
    "recurrent": _recurrent,
    "solve": _cubic(2 / 3),
    "inv": _cubic(2),
    "det": _cubic(2 / 3),
    "cholesky": _cubic(1 / 3),
    "qr": _cubic(4 / 3),
    "solve_triangular": lambda args, made: made.size * args[0].shape[-1],
    "cdist": lambda args, made: 3 * made.size * args[0].shape[-1],
}
for _times, _kernels in (
    (1, "sum mean prod amax amin norm cumsum cumprod pool_sum pool_max pool_argmax"),
    (4, "var std logsumexp logcumsumexp"),
    (5, "softmax log_softmax cross_entropy"),
    (8, "norm_rows norm_channels"),
):
    _COUNTS |= dict.fromkeys(_kernels.split(), _each_read(_times))
_COUNTS |= dict.fromkeys([*names[: lib.mg_elementwise_count()], "clamp", "where"], _each_made)
_OTHERS = (
    "apply_mask binary_cross_entropy binary_cross_entropy_with_logits clip elu hardtanh huber_loss "
    "recurrence shrink"
)
_COUNTS |= dict.fromkeys(_OTHERS.split(), _each_made)


def flops_of(name: str, args: Sequence[Any], made: Any) -> int:
    """The floating-point operations of a call of the kernel of this name; 0 where none count."""
    count = _COUNTS.get(name)
    return 0 if count is None else round(count(args, made))
