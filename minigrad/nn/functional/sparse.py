"""Functions for one-hot encoding and embedding, and PyTorch's ``pad``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from minigrad import functions as f
from minigrad.functions.arguments import integer, tensor_operand
from minigrad.functions.creation import ones_like, zeros
from minigrad.functions.grad_modes import no_grad
from minigrad.functions.padding import pad
from minigrad.functions.selection import gather_rows, index_operand
from minigrad.runtime.native import call, kernels
from minigrad.tape.tensor_base import wrap

if TYPE_CHECKING:
    from minigrad._tensor import Tensor

__all__ = ["embedding", "one_hot", "pad"]


def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """The one-hot encoding in a new last dimension: 1 at each class, 0 elsewhere, as int64.

    The size of this dimension is ``num_classes``, by default one more than the largest class.
    Raises ValueError for a class outside 0..num_classes - 1, and for an empty input without
    ``num_classes``.

    >>> import minigrad as mg
    >>> one_hot(mg.tensor([2, 0]))
    tensor([[0, 0, 1],
            [1, 0, 0]])
    """
    classes = index_operand("one_hot", tensor)
    count = integer("one_hot", "num_classes", num_classes)
    if not classes.size and count < 1:
        raise ValueError("[one_hot] no classes to count: name num_classes")
    if count < -1:
        raise ValueError(f"[one_hot] num_classes is {count}, but must be at least 0")
    try:
        return wrap(call(kernels.one_hot, classes._h, count))
    except IndexError:
        raise ValueError(f"[one_hot] {_not_within(classes, count)}") from None


def _not_within(classes: Tensor, count: int, what: str = "classes") -> str:
    low, high = (extreme(classes).item() for extreme in (f.amin, f.amax))
    return f"{what} from {low} to {high} are not in 0..{(high + 1 if count < 0 else count) - 1}"


def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """The rows of ``weight`` (classes, features) at the classes in ``input``: (..., features).

    The row ``padding_idx`` gets no gradient. With ``max_norm`` the used rows are first scaled down
    to this norm of order ``norm_type``, in place and off the tape. With ``scale_grad_by_freq`` the
    gradient of a row is divided by the number of its uses. ``sparse`` changes nothing: gradients
    are dense.

    Raises IndexError for a class outside 0..classes - 1, ValueError for a ``max_norm`` that is no
    positive number.

    >>> import minigrad as mg
    >>> embedding(mg.tensor([1, 0, 1]), mg.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor([[3., 4.],
            [1., 2.],
            [3., 4.]])
    """
    classes, table = index_operand("embedding", input), tensor_operand("embedding", weight)
    if table._h.ndim != 2:
        raise ValueError(
            f"[embedding] the weight has shape {table.shape}, but must be (classes, features)"
        )
    count = table.shape[0]
    try:
        call(kernels.index_within, classes._h, count)
    except IndexError:
        raise IndexError(f"[embedding] {_not_within(classes, count, 'indices')}") from None
    if max_norm is not None:
        _shorten(table, classes, max_norm, norm_type)
    rows = gather_rows(table, (classes,), "embedding")
    if scale_grad_by_freq and rows.requires_grad:
        shares = _shares(classes, count).to(rows.dtype)
        rows.register_hook(lambda g: g * shares)
    if padding_idx is None:
        return rows
    padding = integer("embedding", "padding_idx", padding_idx)
    if not -count <= padding < count:
        raise IndexError(f"[embedding] padding_idx {padding} is out of range for {count} classes")
    is_padding = f.unsqueeze(f.eq(classes, padding % count), -1)
    return f.where(is_padding, rows.detach(), rows)


def _shares(classes: Tensor, count: int) -> Tensor:
    """1 / the number of uses of each class, with a last dimension for the features."""
    line = classes.reshape(-1)
    named = f.index_add(zeros(count, dtype="int64"), 0, line, ones_like(line))
    return 1.0 / named[classes].unsqueeze(-1)


def _shorten(table: Tensor, classes: Tensor, longest: float, order: float) -> None:
    """Scale the used rows of the table down to the norm ``longest``, if theirs is larger."""
    if not longest > 0:
        raise ValueError(f"[embedding] max_norm is {longest}, but must be positive")
    with no_grad():
        named = f.unique(classes)
        rows = table[named]
        norms = f.norm(rows, order, 1, True)
        far = norms > longest
        if far.any():
            table[named] = f.where(far, rows * (longest / norms), rows)
