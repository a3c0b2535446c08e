"""The function ``embedding_bag``: sums, means and maxima of embedded classes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from minigrad import functions as f
from minigrad.functions.arguments import integer, tensor_operand
from minigrad.functions.creation import arange, ones_like, zeros
from minigrad.functions.selection import index_operand
from minigrad.nn.functional.sparse import embedding

if TYPE_CHECKING:
    from minigrad._tensor import Tensor

__all__ = ["embedding_bag"]

_OP = "embedding_bag"


def _starts(classes: Tensor, offsets: Any, include_last_offset: bool) -> tuple[Tensor, Tensor]:
    """The start of each bag in the vector of classes, and the number of its classes."""
    if classes.ndim == 2:
        if offsets is not None:
            raise ValueError(f"[{_OP}] bags of one size, rows of the input, need no offsets")
        bags, size = classes.shape
        return arange(bags) * size, zeros(bags, dtype="int64") + size
    if classes.ndim != 1:
        raise ValueError(f"[{_OP}] the input has shape {classes.shape}, but must be a line or rows")
    if offsets is None:
        raise ValueError(f"[{_OP}] a line of classes needs offsets, where bags start")
    starts, count = index_operand(_OP, offsets), classes.shape[0]
    if starts.ndim != 1:
        raise ValueError(f"[{_OP}] offsets has shape {starts.shape}, but must be a line")
    if include_last_offset and not starts.size:
        raise ValueError(f"[{_OP}] offsets is empty, but include_last_offset says where bags end")
    ends = starts[1:] if include_last_offset else f.cat((starts[1:], arange(count, count + 1)))
    if include_last_offset:
        starts = starts[:-1]
    elif not starts.size:
        ends = starts
    sizes = ends - starts
    if starts.size and (starts[0].item() != 0 or sizes.amin().item() < 0 or ends[-1] > count):
        raise ValueError(
            f"[{_OP}] offsets is {offsets.tolist()}: it starts with 0, does not fall, and ends "
            f"within the {count} classes"
        )
    return starts, sizes


def _sums(rows: Tensor, bag: Tensor, bags: int) -> Tensor:
    return zeros((bags, *rows.shape[1:]), dtype=rows.dtype).index_add(0, bag, rows)


def _maxima(rows: Tensor, counted: Tensor, starts: Tensor, sizes: Tensor) -> Tensor:
    """The maximum of each bag; 0 for a bag without a counted class."""
    longest = sizes.amax().item() if sizes.size else 0
    if not longest:
        return zeros((*sizes.shape, rows.shape[1]), dtype=rows.dtype)
    step = arange(longest)
    inside = step < sizes.unsqueeze(1)
    places = f.where(inside, starts.unsqueeze(1) + step, 0)
    inside = (inside & counted[places]).unsqueeze(2)
    found = f.where(inside, rows[places], -float("inf")).max(1).values
    return f.where(inside.any(1), found, 0.0)


def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """The sums, means or maxima (``mode``) of embeddings of bags of classes: (bags, features).

    A bag is a row of the input. If the input is a vector, a bag goes from one of the ``offsets`` to
    the next. With ``include_last_offset`` the last offset is the end of the last bag. An empty bag
    gives zeros. Classes equal to ``padding_idx`` do not count. ``per_sample_weights`` has the
    input's shape. They multiply the embeddings that are summed. Other arguments are those of
    :func:`embedding`.

    Raises ValueError for offsets and weights that do not fit, IndexError for a class outside
    0..classes - 1.

    >>> import minigrad as mg
    >>> table = mg.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> embedding_bag(mg.tensor([0, 1, 1]), table, mg.tensor([0, 2]), mode="sum").tolist()
    [[4.0, 6.0], [3.0, 4.0]]
    """
    if mode not in ("sum", "mean", "max"):
        raise ValueError(f"[{_OP}] mode is {mode!r}, but must be 'sum', 'mean' or 'max'")
    if scale_grad_by_freq and mode == "max":
        raise ValueError(f"[{_OP}] scale_grad_by_freq is for sums and means, not for mode 'max'")
    classes = index_operand(_OP, input)
    starts, sizes = _starts(classes, offsets, bool(include_last_offset))
    line = classes.reshape(-1)
    if padding_idx is not None:
        padding_idx = integer(_OP, "padding_idx", padding_idx)
        count = tensor_operand(_OP, weight).shape[0]
        if not -count <= padding_idx < count:
            raise IndexError(
                f"[{_OP}] padding_idx {padding_idx} is out of range for {count} classes"
            )
        padding_idx %= count
    rows = embedding(line, weight, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse)
    counted = ones_like(line, dtype="bool") if padding_idx is None else line != padding_idx
    if mode == "max":
        if per_sample_weights is not None:
            raise ValueError(f"[{_OP}] per_sample_weights are for mode 'sum', not 'max'")
        return _maxima(rows, counted, starts, sizes)
    if per_sample_weights is not None:
        if mode != "sum":
            raise ValueError(f"[{_OP}] per_sample_weights are for mode 'sum', not {mode!r}")
        factors = tensor_operand(_OP, per_sample_weights)
        if factors.shape != classes.shape:
            raise ValueError(
                f"[{_OP}] per_sample_weights has shape {factors.shape}, the input {classes.shape}"
            )
        rows = rows * factors.reshape(-1, 1)
    if padding_idx is not None:
        rows = f.where(counted.unsqueeze(1), rows, 0.0)
    bags = sizes.shape[0]
    bag = f.repeat_interleave(arange(bags), sizes)
    total = _sums(rows[: bag.shape[0]], bag, bags)
    if mode == "sum":
        return total
    numbers = _sums(counted[: bag.shape[0]].to(rows.dtype), bag, bags)
    return total / numbers.clamp(min=1.0).unsqueeze(1)
