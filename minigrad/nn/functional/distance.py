"""Functions for distances and similarities of vectors, and the losses that compare them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from minigrad import functions as f
from minigrad.functions.arguments import one_dim, tensor_operand
from minigrad.nn.functional.operands import (
    check_reduction,
    floats,
    legacy_reduction,
    one_shape,
    real,
    reduced,
)
from minigrad.ops.reduction import UNITS
from minigrad.runtime.native import call, kernels
from minigrad.tape.apply import apply

if TYPE_CHECKING:
    from minigrad._tensor import Tensor

__all__ = [
    "cosine_embedding_loss",
    "cosine_similarity",
    "hinge_embedding_loss",
    "margin_ranking_loss",
    "pairwise_distance",
    "pdist",
    "triplet_margin_loss",
    "triplet_margin_with_distance_loss",
]


# ---- of two vectors ------------------------------------------------------------------------------


def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """``sum(x1 * x2) / (max(|x1|, eps) * max(|x2|, eps))`` along a dimension.

    This is the cosine of the angle between vectors. The two inputs are broadcast together. A zero
    vector gives 0. The gradient of a zero vector is 0, the one of least norm. PyTorch's is as large
    as 1 / eps. Raises IndexError for a missing dimension.

    >>> import minigrad as mg
    >>> x = mg.tensor([[2.0, 0.0], [0.0, 0.0]])
    >>> cosine_similarity(x, mg.tensor([3.0, 4.0])).tolist()
    [0.6000000238418579, 0.0]
    """
    op = "cosine_similarity"
    a, b = floats(op, x1, x2)
    if a.shape != b.shape:
        a, b = f.broadcast_tensors(a, b)
    if not a.ndim:  # as in PyTorch, a 0-d tensor is a line of one element
        a, b = a.reshape(1), b.reshape(1)
    axis = one_dim(op, dim, a.ndim)
    of_a, of_b = f.norm(a, 2.0, axis, True), f.norm(b, 2.0, axis, True)
    least_a, least_b = f.maximum(of_a, eps), f.maximum(of_b, eps)
    both = f.mul(of_a.detach(), of_b.detach())._h
    if call(kernels.roots_extreme, both) or call(
        kernels.squares_lost, both, 1
    ):  # products may overflow
        unit_a, unit_b = (apply(UNITS, (n.detach(),), (True,)) for n in (least_a, least_b))
        a, b, least_a, least_b = a * unit_a, b * unit_b, least_a * unit_a, least_b * unit_b
    of_a, of_b = f.squeeze(of_a, axis), f.squeeze(of_b, axis)
    cosine = f.sum(a * b, axis) / f.squeeze(least_a * least_b, axis)
    return f.where((of_a == 0.0) | (of_b == 0.0), 0.0, cosine)


def pairwise_distance(
    x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> Tensor:
    """``norm(x1 - x2 + eps, p)`` along the last dimension. The two inputs are broadcast together.

    ``keepdim`` keeps this dimension with size 1.

    >>> import minigrad as mg
    >>> pairwise_distance(mg.tensor([3.0, 4.0]), mg.zeros(2), eps=0.0).item()
    5.0
    """
    op = "pairwise_distance"
    a, b = floats(op, x1, x2)
    return f.norm(a - b + eps, p, one_dim(op, -1, max(a.ndim, b.ndim)), keepdim)


def pdist(input: Tensor, p: float = 2.0) -> Tensor:
    """The distances ``norm(x[i] - x[j], p)`` of all pairs i < j of the rows of (N, M), in order.

    Raises ValueError for other shapes.

    >>> import minigrad as mg
    >>> pdist(mg.tensor([[0.0], [1.0], [3.0]])).tolist()
    [1.0, 3.0, 2.0]
    """
    (x,) = floats("pdist", input)
    if x.ndim != 2:
        raise ValueError(f"[pdist] the input has shape {x.shape}, but must be (N, M)")
    first, second = f.triu_indices(x.shape[0], x.shape[0], 1)
    return f.norm(x[first] - x[second], p, 1)


# ---- losses --------------------------------------------------------------------------------------


def hinge_embedding_loss(
    input: Tensor,
    target: Tensor,
    margin: float = 1.0,
    reduction: str = "mean",
    *,
    size_average: bool | None = None,
    reduce: bool | None = None,
) -> Tensor:
    """``x`` where the target is 1, ``max(0, margin - x)`` where it is -1, for distances x.

    The gradient at the margin is 0. Raises ValueError if the shapes differ.
    """
    if size_average is not None or reduce is not None:
        reduction = legacy_reduction(size_average, reduce)
    x, t = one_shape("hinge_embedding_loss", input, target, reduction)
    margin = real("hinge_embedding_loss", "margin", margin)
    near, far = f.where(t != -1.0, x, 0.0), f.where(t != 1.0, f.relu(margin - x), 0.0)
    return reduced(near + far, reduction)


def margin_ranking_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0.0,
    reduction: str = "mean",
    *,
    size_average: bool | None = None,
    reduce: bool | None = None,
) -> Tensor:
    """``max(0, margin - t * (input1 - input2))``: targets t of 1 want input1 larger, -1 smaller.

    The three are broadcast together, as in PyTorch, but must have the same number of dimensions.
    The gradient is 0 where the difference just reaches the margin. Raises ValueError if shapes do
    not fit.
    """
    if size_average is not None or reduce is not None:
        reduction = legacy_reduction(size_average, reduce)
    op = "margin_ranking_loss"
    check_reduction(op, reduction)
    a, b, t = floats(op, input1, input2, target)
    margin = real(op, "margin", margin)
    if not a.ndim == b.ndim == t.ndim:
        raise ValueError(
            f"[{op}] the inputs have shapes {a.shape} and {b.shape}, the target {t.shape}: "
            "they must have as many dimensions"
        )
    return reduced(f.relu(margin - t * (a - b)), reduction)


def cosine_embedding_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0.0,
    reduction: str = "mean",
    *,
    size_average: bool | None = None,
    reduce: bool | None = None,
) -> Tensor:
    """``1 - cos`` where the target is 1, ``max(0, cos - margin)`` where it is -1.

    cos is the :func:`cosine_similarity` of the inputs. The inputs have shape (N, D) and the target
    (N,), or (D,) and (). The gradient at the margin is
    0. Raises ValueError for other shapes.
    """
    if size_average is not None or reduce is not None:
        reduction = legacy_reduction(size_average, reduce)
    op = "cosine_embedding_loss"
    check_reduction(op, reduction)
    a, b = floats(op, input1, input2)
    t, margin = tensor_operand(op, target), real(op, "margin", margin)
    if a.ndim not in (1, 2) or a.shape != b.shape or t.shape != a.shape[:-1]:
        raise ValueError(
            f"[{op}] the inputs have shapes {a.shape} and {b.shape}, the target {t.shape}, but "
            "must be (N, D), (N, D) and (N,), or (D,), (D,) and ()"
        )
    cosine = cosine_similarity(a, b, -1)
    other = f.where(t == -1, f.relu(cosine - margin), 0.0)
    return reduced(f.where(t == 1, 1.0 - cosine, other), reduction)


def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2.0,
    eps: float = 1e-6,
    swap: bool = False,
    reduction: str = "mean",
    *,
    size_average: bool | None = None,
    reduce: bool | None = None,
) -> Tensor:
    """``max(0, d(anchor, positive) - d(anchor, negative) + margin)`` (Balntas et al. 2016).

    d is the :func:`pairwise_distance` along the last dimension. With ``swap`` the smaller of
    d(anchor, negative) and d(positive, negative) is subtracted. The gradient at the margin is 0.
    Raises ValueError if the numbers of dimensions differ and for a margin that is not positive.
    """
    if size_average is not None or reduce is not None:
        reduction = legacy_reduction(size_average, reduce)

    def distance(a: Tensor, b: Tensor) -> Tensor:
        return pairwise_distance(a, b, p, eps)

    given = (anchor, positive, negative)
    return _triplets("triplet_margin_loss", given, distance, margin, swap, reduction)


def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
    size_average: bool | None = None,
    reduce: bool | None = None,
) -> Tensor:
    """Like :func:`triplet_margin_loss`, with any distance, by default :func:`pairwise_distance`."""
    if size_average is not None or reduce is not None:
        reduction = legacy_reduction(size_average, reduce)
    distance = pairwise_distance if distance_function is None else distance_function
    given = (anchor, positive, negative)
    return _triplets("triplet_margin_with_distance_loss", given, distance, margin, swap, reduction)


def _triplets(
    op: str,
    given: tuple[Any, Any, Any],
    distance: Callable[[Tensor, Tensor], Tensor],
    margin: float,
    swap: bool,
    reduction: str,
) -> Tensor:
    check_reduction(op, reduction)
    margin = real(op, "margin", margin)
    if not margin > 0.0:
        raise ValueError(f"[{op}] margin is {margin}, but must be positive")
    a, p, n = floats(op, *given)
    if not a.ndim == p.ndim == n.ndim:
        raise ValueError(
            f"[{op}] anchor {a.shape}, positive {p.shape} and negative {n.shape} must have as many "
            "dimensions"
        )
    far = distance(a, n)
    if swap:
        far = f.minimum(far, distance(p, n))
    return reduced(f.relu(distance(a, p) - far + margin), reduction)
