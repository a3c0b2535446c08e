"""Shared helpers of activations and losses: arguments, and the reduction of losses."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from minigrad import functions as f
from minigrad.functions.arguments import common_shape, tensor_operand
from minigrad.functions.arguments import real as real
from minigrad.functions.creation import tensor
from minigrad.runtime.dtypes import float32, float64
from minigrad.tape.tensor_base import TensorBase

if TYPE_CHECKING:
    from minigrad._tensor import Tensor

__all__: list[str] = []


def floats(op: str, *given: Any) -> list[Tensor]:
    """Tensors in their common float dtype, which numbers take. Integers become float32."""
    codes = [x._h.dtype if isinstance(x, TensorBase) else -1 for x in given]
    if codes[0] in (float32.code, float64.code) and codes.count(codes[0]) == len(codes):
        return list(given)  # the common case, without a cast
    own = [tensor_operand(op, x) for x in given if not isinstance(x, (int, float))]
    dtype = float64 if any(x.dtype is float64 for x in own) else float32
    rest = iter(own)
    return [
        tensor(x, dtype) if isinstance(x, (int, float)) else f.to(next(rest), dtype) for x in given
    ]


def one_shape(
    op: str,
    input: Any,
    target: Any,
    reduction: str,
) -> tuple[Tensor, Tensor]:
    """Two tensors of one dtype, checked to have one shape.

    Broadcasting in a loss is nearly always a mistake.
    """
    check_reduction(op, reduction)
    x, t = floats(op, input, target)
    if x.shape != t.shape:
        raise ValueError(
            f"[{op}] input has shape {x.shape}, target {t.shape}: a loss does not broadcast; "
            "give both one shape, with reshape or squeeze"
        )
    return x, t


def weighted(op: str, name: str, weight: Any, losses: Tensor) -> Tensor:
    """The losses times weights that broadcast to them.

    A weight of 0 gives 0 for infinity and NaN.
    """
    if weight is None:
        return losses
    w, losses = floats(op, weight, losses)
    if common_shape(op, w, losses) != losses.shape:
        raise ValueError(f"[{op}] {name} has shape {w.shape}, but must broadcast to {losses.shape}")
    return w.scale(losses)


def legacy_reduction(size_average: Any, reduce: Any) -> str:
    """The reduction for PyTorch's older arguments, with PyTorch's warning."""
    found = "none" if reduce is False else "sum" if size_average is False else "mean"
    warnings.warn(f"size_average and reduce are deprecated: use reduction={found!r}", stacklevel=3)
    return found


def check_reduction(op: str, reduction: str) -> None:
    """Raise a ValueError for an unknown reduction."""
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"[{op}] reduction is {reduction!r}, but must be 'mean', 'sum' or 'none'")


def reduced(losses: Tensor, reduction: str) -> Tensor:
    """The mean or the sum of the losses, or the losses themselves."""
    if reduction == "none":
        return losses
    return losses.mean() if reduction == "mean" else losses.sum()
