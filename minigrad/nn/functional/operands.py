"""How activations and losses read their arguments, and how losses are reduced."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from minigrad import functions as f
from minigrad.arguments import common_shape, tensor_operand
from minigrad.arguments import real as real
from minigrad.creation import tensor
from minigrad.dtypes import float32, float64
from minigrad.tape.tensor_base import TensorBase

if TYPE_CHECKING:
    from minigrad._tensor import Tensor

__all__: list[str] = []


def floats(op: str, *given: Any) -> list[Tensor]:
    """Tensors in the float dtype they have together, which numbers take on; of integers float32."""
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
    """Two tensors of one shape and dtype: to broadcast a loss is nearly always a mistake."""
    check_reduction(op, reduction)
    x, t = floats(op, input, target)
    if x.shape != t.shape:
        raise ValueError(
            f"[{op}] input has shape {x.shape}, target {t.shape}: a loss does not broadcast; "
            "give both one shape, with reshape or squeeze"
        )
    return x, t


def weighted(op: str, name: str, weight: Any, losses: Tensor) -> Tensor:
    """The losses times weights that broadcast to them; a weight of 0 hides infinity and NaN."""
    if weight is None:
        return losses
    w, losses = floats(op, weight, losses)
    if common_shape(op, w, losses) != losses.shape:
        raise ValueError(f"[{op}] {name} has shape {w.shape}, but must broadcast to {losses.shape}")
    return w.scale(losses)


def legacy_reduction(size_average: Any, reduce: Any) -> str:
    """The reduction that PyTorch's older arguments name, with its warning."""
    found = "none" if reduce is False else "sum" if size_average is False else "mean"
    warnings.warn(f"size_average and reduce are deprecated: use reduction={found!r}", stacklevel=3)
    return found


def check_reduction(op: str, reduction: str) -> None:
    """ValueError for a reduction that there is not."""
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"[{op}] reduction is {reduction!r}, but must be 'mean', 'sum' or 'none'")


def reduced(losses: Tensor, reduction: str) -> Tensor:
    """The mean, the sum, or all of them."""
    if reduction == "none":
        return losses
    return losses.mean() if reduction == "mean" else losses.sum()
