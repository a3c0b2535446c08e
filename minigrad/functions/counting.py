"""Functions that count values and find unique values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, overload

from minigrad.functions.arguments import integer, one_dim, promoted, real, tensor_operand
from minigrad.functions.creation import zeros
from minigrad.functions.elementwise import clamp, eq, logical_not
from minigrad.functions.reductions import amax, amin, as_float
from minigrad.functions.selection import gather_rows, handles
from minigrad.functions.shaping import permute, ravel, reshape, to, widen
from minigrad.functions.sorting import searchsorted
from minigrad.functions.sorting import sort as order
from minigrad.ops import indexing as _i
from minigrad.runtime.dtypes import bool_, float64, int64
from minigrad.runtime.native import call, kernels
from minigrad.tape.apply import apply
from minigrad.tape.tensor_base import TensorBase, wrap

if TYPE_CHECKING:
    from minigrad._tensor import Tensor

__all__ = [
    "bincount",
    "histc",
    "isin",
    "unique",
    "unique_consecutive",
]

# ---- counts --------------------------------------------------------------------------------------


def bincount(input: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """How often each of 0, 1, 2, ... occurs, as int64, or the sum of its weights.

    The input has one dimension and non-negative integers. The result has ``minlength`` elements, or
    more if the input has larger values. Gradients go to the weights. Integer weights are summed in
    float64.

    >>> import minigrad as mg
    >>> mg.bincount(mg.tensor([0, 2, 2]))
    tensor([1, 0, 2])
    """
    x = widen(tensor_operand("bincount", input))
    if x.dtype is not int64:
        raise TypeError(f"[bincount] counts int64, not {x.dtype.name}")
    if x._h.ndim != 1:
        raise ValueError(f"[bincount] x has {x._h.ndim} dimensions, but must have one")
    size = integer("bincount", "minlength", minlength, 0)
    if weights is None:
        return wrap(call(kernels.bincount, x._h, size))
    given = widen(tensor_operand("bincount", weights))
    if given.shape != x.shape:
        raise ValueError(f"[bincount] weights of shape {given.shape} for x of shape {x.shape}")
    if not given.dtype.is_floating_point:
        given = to(given, float64)
    if x._h.size:
        least = amin(x).item()
        if least < 0:
            raise ValueError(f"[bincount] {least} in x: only non-negative integers are counted")
        size = max(size, int(amax(x).item()) + 1)
    if not size:
        return zeros(0, dtype=given.dtype)
    return apply(_i.SCATTER_ADD, (given,), ((size,), handles((x,), given)))


def histc(input: Tensor, bins: int = 100, min: float = 0, max: float = 0) -> Tensor:  # noqa: A002
    """The number of elements in each of ``bins`` equal parts of [min, max], in the input's dtype.

    The last part includes max. Elements outside, and NaN, are not counted. With min = max = 0 the
    range is that of the input. If all elements are equal, the range goes from 1 below to 1 above.
    Integers give float32. Raises ValueError for no bins, min > max, or a range that is not finite.
    """
    x = as_float("histc", input).detach()
    bins = integer("histc", "bins", bins, 1)
    low, high = real("histc", "min", min), real("histc", "max", max)
    if low == high == 0 and x._h.size:
        low, high = float(amin(x).item()), float(amax(x).item())
    if low == high:
        low, high = low - 1, high + 1
    if not (low < high and high - low < float("inf")):
        raise ValueError(f"[histc] [{low}, {high}] is no finite range: give min and max")
    return to(wrap(call(kernels.histc, x._h, bins, low, high)), x.dtype)


# ---- without repetition --------------------------------------------------------------------------


@overload
def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: Literal[False] = False,
    return_counts: Literal[False] = False,
    dim: int | None = None,
) -> Tensor: ...
@overload
def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any: ...
def unique(
    input: Tensor,
    sorted: bool = True,  # noqa: A002 - PyTorch's name
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """The distinct elements in sorted order, or the distinct slices along a dimension.

    With ``return_inverse`` or ``return_counts`` the result is a tuple. The inverse has the position
    of each input element among the distinct ones. The counts say how often each occurs. The result
    is sorted whatever ``sorted`` says. Slices are in lexicographic order. NaN differs from NaN, as
    in PyTorch. The gradient of a value goes to its first element.

    >>> import minigrad as mg
    >>> mg.unique(mg.tensor([3, 1, 3]), return_counts=True)
    (tensor([1, 3]), tensor([1, 2]))
    """
    return _distinct("unique", input, dim, return_inverse, return_counts, arrange=True)


def unique_consecutive(
    input: Tensor,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """The input without elements that equal their predecessor. Arguments are as for unique."""
    return _distinct("unique_consecutive", input, dim, return_inverse, return_counts, arrange=False)


# ---- membership ----------------------------------------------------------------------------------


def isin(
    elements: Any, test_elements: Any, *, assume_unique: bool = False, invert: bool = False
) -> Tensor:
    """True for each element that is among the test elements, or False with ``invert``.

    One of the two may be a number. NaN is never found. ``assume_unique`` changes nothing: the test
    elements are always sorted and searched.

    Raises TypeError if both are numbers.

    >>> import minigrad as mg
    >>> mg.isin(mg.tensor([1, 2, 3]), mg.tensor([3, 1]))
    tensor([ True, False,  True])
    """
    if not isinstance(elements, TensorBase) and not isinstance(test_elements, TensorBase):
        raise TypeError("[isin] one of both must be a tensor")
    given = promoted("isin", [_comparable(elements), _comparable(test_elements)])
    x, among = given[0].detach(), order(ravel(given[1].detach()), 0).values
    if not among._h.size:
        found = zeros(x.shape, dtype=bool_)
    else:
        place = clamp(searchsorted(among, x), max=among._h.size - 1)
        found = eq(gather_rows(among, (place,)), x)
    return logical_not(found) if invert else found


def _comparable(x: Any) -> Tensor:
    """A number, list or tensor as a tensor that can be sorted: bool becomes int64."""
    x = widen(tensor_operand("isin", x))
    return to(x, int64) if x.dtype is bool_ else x


# ---- the distinct values -------------------------------------------------------------------------


def _distinct(
    op: str, x: Any, dim: Any, return_inverse: bool, return_counts: bool, arrange: bool
) -> Any:
    x = tensor_operand(op, x)
    if dim is None:
        slices = reshape(x, (x._h.size,))
    else:
        axis = one_dim(op, dim, x._h.ndim)
        axes = (axis, *[d for d in range(x._h.ndim) if d != axis])
        slices = permute(x, *axes)
    n = slices.shape[0]
    rows = reshape(slices.detach(), (n, slices._h.size // n if n else 0))
    places, counts, number = call(kernels.distinct, rows._h, arrange, return_inverse)
    values = gather_rows(slices, (wrap(places),))
    if dim is not None:
        values = permute(values, *[axes.index(d) for d in range(len(axes))])
    found = [values]
    if return_inverse:
        found.append(reshape(wrap(number), x.shape) if dim is None else wrap(number))
    if return_counts:
        found.append(wrap(counts))
    return found[0] if len(found) == 1 else tuple(found)
