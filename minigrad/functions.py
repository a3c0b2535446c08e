"""The operations as functions. Tensor's methods and operators are these same functions."""

from __future__ import annotations

import itertools
from builtins import all as builtin_all
from builtins import max as builtin_max
from builtins import min as builtin_min
from builtins import sum as builtin_sum
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from minigrad import ops
from minigrad._c import call, lib
from minigrad.creation import arange, size_of
from minigrad.dispatch import (
    TensorBase,
    apply,
    as_operand,
    bilinear,
    binary,
    operand_error,
    strong_operand,
    unary,
    wrap,
)
from minigrad.dtypes import as_dtype, bool_, int64

if TYPE_CHECKING:
    from minigrad._tensor import Tensor

__all__ = [
    "abs",
    "add",
    "all",
    "amax",
    "amin",
    "any",
    "argmax",
    "argmin",
    "broadcast_to",
    "cat",
    "clone",
    "contiguous",
    "cos",
    "div",
    "eq",
    "exp",
    "expand",
    "flatten",
    "flip",
    "ge",
    "gt",
    "le",
    "log",
    "log_softmax",
    "logsumexp",
    "lt",
    "masked_fill",
    "matmul",
    "max",
    "maximum",
    "mean",
    "min",
    "minimum",
    "mul",
    "narrow",
    "ne",
    "neg",
    "nonzero",
    "permute",
    "pow",
    "prod",
    "reciprocal",
    "relu",
    "reshape",
    "sigmoid",
    "sign",
    "sin",
    "softmax",
    "split",
    "sqrt",
    "square",
    "squeeze",
    "stack",
    "sub",
    "sum",
    "sum_to_size",
    "take_along_dim",
    "tanh",
    "to",
    "transpose",
    "unsqueeze",
    "var",
    "view",
    "where",
]

_p, _r, _s = ops.pointwise, ops.reduction, ops.shape

# ---- elementwise ---------------------------------------------------------------------------------

neg = unary(_p.NEG)
abs = unary(_p.ABS)  # noqa: A001 - NumPy's and PyTorch's name
sign = unary(_p.SIGN)
exp = unary(_p.EXP)
log = unary(_p.LOG)
sqrt = unary(_p.SQRT)
square = unary(_p.SQUARE)
reciprocal = unary(_p.RECIPROCAL)
sin = unary(_p.SIN)
cos = unary(_p.COS)
tanh = unary(_p.TANH)
sigmoid = unary(_p.SIGMOID)
relu = unary(_p.RELU)

add = binary(_p.ADD)
sub = binary(_p.SUB)
mul = binary(_p.MUL)
div = binary(_p.DIV)
pow = binary(_p.POW)  # noqa: A001
maximum = binary(_p.MAXIMUM)
minimum = binary(_p.MINIMUM)
scale = binary(_p.SCALE)
eq = binary(_p.EQ)
ne = binary(_p.NE)
lt = binary(_p.LT)
le = binary(_p.LE)
gt = binary(_p.GT)
ge = binary(_p.GE)


def tensor_operand(op: str, x: Any) -> Tensor:
    """``x`` as a tensor; TypeError naming the operation for anything else."""
    if isinstance(x, TensorBase):
        return x  # type: ignore[return-value]
    return strong_operand(op, x)  # type: ignore[no-any-return]


def where(condition: Any, a: Any, b: Any) -> Tensor:
    """a where the condition holds, else b; the three are broadcast together.

    The gradient of what was not chosen is exactly 0, also where it is infinite or NaN.
    """
    c = tensor_operand("where", condition)
    if c.dtype is not bool_:
        raise TypeError(f"[where] the condition must be bool, not {c.dtype.name}: compare it first")
    x, y = as_operand(a), as_operand(b)
    for given, found in ((a, x), (b, y)):
        if found is None:
            raise operand_error("where", given)
    return apply(_p.WHERE, (c, x, y))


def masked_fill(x: Tensor, mask: Tensor, value: float) -> Tensor:
    """x with ``value`` where the mask is true."""
    return where(mask, value, x)


# ---- reductions ----------------------------------------------------------------------------------


def one_dim(op: str, dim: Any, ndim: int) -> int:
    """A dimension counted from the front; IndexError if there is none such."""
    try:
        axis: int = dim.__index__()
    except AttributeError:
        raise TypeError(f"[{op}] dim must be an integer, not {type(dim).__name__}") from None
    if not -ndim <= axis < ndim:
        raise IndexError(
            f"[{op}] dim {axis} is out of range for {ndim} dimensions"
            + (f": use {-ndim}..{ndim - 1}" if ndim else "")
        )
    return axis % ndim


def one_size(op: str, size: Any) -> int:
    """An integer; TypeError for anything else."""
    try:
        return int(size.__index__())
    except AttributeError:
        raise TypeError(f"[{op}] a size is an integer, not {type(size).__name__}") from None


_EVERY = tuple(tuple(range(ndim)) for ndim in range(lib.MG_MAX_NDIM + 1))


def some_dims(op: str, dim: Any, ndim: int) -> tuple[int, ...]:
    """Dimensions counted from the front, in order; None means all."""
    if dim is None:
        return _EVERY[ndim]
    if not isinstance(dim, (tuple, list)):
        return (one_dim(op, dim, ndim),)
    axes = sorted([one_dim(op, d, ndim) for d in dim])
    for before, after in itertools.pairwise(axes):
        if before == after:
            raise ValueError(f"[{op}] dim {after} is given twice in {tuple(dim)}")
    return tuple(axes)


def _spelled(op: str, dim: Any, keepdim: bool, numpy: dict[str, Any]) -> tuple[Any, bool]:
    """NumPy's spelling: ``axis`` for dim, ``keepdims`` for keepdim."""
    for name, value in numpy.items():
        if name == "axis" and dim is None:
            dim = value
        elif name == "keepdims":
            keepdim = value
        else:
            raise TypeError(f"[{op}] unexpected argument {name!r} (dim/axis, keepdim/keepdims)")
    return dim, bool(keepdim)


def sum(  # noqa: A001
    x: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None, **numpy: Any
) -> Tensor:
    """The sum over one, several or all dimensions; bool and int64 give int64.

    Summed in blocks and pairwise along every dimension, with the same result for any memory layout
    and number of threads. ``axis`` and ``keepdims`` are accepted for dim and keepdim.
    """
    x = tensor_operand("sum", x)
    if numpy:
        dim, keepdim = _spelled("sum", dim, keepdim, numpy)
    if dtype is not None:
        x = to(x, dtype)
    return apply(_r.SUM, (x,), (some_dims("sum", dim, x._h.ndim), keepdim))


def mean(x: Tensor, dim: Any = None, keepdim: bool = False, **numpy: Any) -> Tensor:
    """The mean over one, several or all dimensions; NaN of nothing."""
    x = tensor_operand("mean", x)
    if numpy:
        dim, keepdim = _spelled("mean", dim, keepdim, numpy)
    return apply(_r.MEAN, (x,), (some_dims("mean", dim, x._h.ndim), keepdim))


def prod(x: Tensor, dim: Any = None, keepdim: bool = False, **numpy: Any) -> Tensor:
    """The product over one, several or all dimensions."""
    x = tensor_operand("prod", x)
    if numpy:
        dim, keepdim = _spelled("prod", dim, keepdim, numpy)
    return apply(_r.PROD, (x,), (some_dims("prod", dim, x._h.ndim), keepdim))


def amax(x: Tensor, dim: Any = None, keepdim: bool = False, **numpy: Any) -> Tensor:
    """The maximum over one, several or all dimensions; ties share the gradient evenly."""
    x = tensor_operand("amax", x)
    if numpy:
        dim, keepdim = _spelled("amax", dim, keepdim, numpy)
    return apply(_r.AMAX, (x,), (some_dims("amax", dim, x._h.ndim), keepdim))


def amin(x: Tensor, dim: Any = None, keepdim: bool = False, **numpy: Any) -> Tensor:
    """The minimum over one, several or all dimensions; ties share the gradient evenly."""
    x = tensor_operand("amin", x)
    if numpy:
        dim, keepdim = _spelled("amin", dim, keepdim, numpy)
    return apply(_r.AMIN, (x,), (some_dims("amin", dim, x._h.ndim), keepdim))


class Extremum(NamedTuple):
    """The values of a maximum or minimum along a dimension, and where they were found."""

    values: Any
    indices: Any


def _extremum(op: str, x: Any, dim: Any, keepdim: bool, numpy: dict[str, Any]) -> Any:
    whole, at, pair = (amax, argmax, maximum) if op == "max" else (amin, argmin, minimum)
    if numpy:
        dim, keepdim = _spelled(op, dim, keepdim, numpy)
    if isinstance(dim, TensorBase):
        return pair(x, dim)
    x = tensor_operand(op, x)
    if dim is None:
        return whole(x)
    axis = one_dim(op, dim, x._h.ndim)
    indices = at(x, axis, True)
    values = take_along_dim(x, indices, axis)
    if not keepdim:
        values, indices = squeeze(values, axis), squeeze(indices, axis)
    return Extremum(values, indices)


def max(x: Any, dim: Any = None, keepdim: bool = False, **numpy: Any) -> Any:  # noqa: A001
    """``max(x)``: the maximum of all, ties sharing the gradient. ``max(x, dim)``: values and
    indices, whose gradient goes to that one index. ``max(a, b)``: the elementwise maximum.
    """
    return _extremum("max", x, dim, keepdim, numpy)


def min(x: Any, dim: Any = None, keepdim: bool = False, **numpy: Any) -> Any:  # noqa: A001
    """As max, for the minimum."""
    return _extremum("min", x, dim, keepdim, numpy)


def _arg(row: Any, x: Any, dim: Any, keepdim: bool, numpy: dict[str, Any]) -> Tensor:
    x = tensor_operand(row.name, x)
    if numpy:
        dim, keepdim = _spelled(row.name, dim, keepdim, numpy)
    axis = None if dim is None else one_dim(row.name, dim, x._h.ndim)
    return apply(row, (x,), (axis, keepdim))


def argmax(x: Tensor, dim: int | None = None, keepdim: bool = False, **numpy: Any) -> Tensor:
    """Where the maximum is, as int64: the first of ties, NaN before all. Of all elements,
    flattened, unless a dimension is given.
    """
    return _arg(_r.ARGMAX, x, dim, keepdim, numpy)


def argmin(x: Tensor, dim: int | None = None, keepdim: bool = False, **numpy: Any) -> Tensor:
    """Where the minimum is; as argmax."""
    return _arg(_r.ARGMIN, x, dim, keepdim, numpy)


def all(x: Tensor, dim: Any = None, keepdim: bool = False, **numpy: Any) -> Tensor:  # noqa: A001
    """Are all elements true (not 0)?"""
    x = tensor_operand("all", x)
    if numpy:
        dim, keepdim = _spelled("all", dim, keepdim, numpy)
    return apply(_r.ALL, (x,), (some_dims("all", dim, x._h.ndim), keepdim))


def any(x: Tensor, dim: Any = None, keepdim: bool = False, **numpy: Any) -> Tensor:  # noqa: A001
    """Is any element true (not 0)?"""
    x = tensor_operand("any", x)
    if numpy:
        dim, keepdim = _spelled("any", dim, keepdim, numpy)
    return apply(_r.ANY, (x,), (some_dims("any", dim, x._h.ndim), keepdim))


def var(
    x: Tensor, dim: Any = None, correction: float | None = None, keepdim: bool = False, **numpy: Any
) -> Tensor:
    """The variance, divided by n - correction with ``correction=1`` by default, as in PyTorch.

    NumPy's ``ddof`` is accepted for correction; two passes over the data. NaN where n equals the
    correction.
    """
    x = tensor_operand("var", x)
    if "ddof" in numpy and correction is None:
        correction = numpy.pop("ddof")
    if numpy:
        dim, keepdim = _spelled("var", dim, keepdim, numpy)
    axes = some_dims("var", dim, x._h.ndim)
    return apply(_r.VAR, (x,), (axes, keepdim, 1.0 if correction is None else float(correction)))


def logsumexp(x: Tensor, dim: Any = None, keepdim: bool = False, **numpy: Any) -> Tensor:
    """log(sum(exp(x))) without overflow; -inf of nothing."""
    x = tensor_operand("logsumexp", x)
    if numpy:
        dim, keepdim = _spelled("logsumexp", dim, keepdim, numpy)
    return apply(_r.LOGSUMEXP, (x,), (some_dims("logsumexp", dim, x._h.ndim), keepdim))


def softmax(x: Tensor, dim: int | None = None, **numpy: Any) -> Tensor:
    """exp(x) / sum(exp(x)) along a dimension; a row of only -inf gives NaN."""
    return _normalised(_r.SOFTMAX, x, dim, numpy)


def log_softmax(x: Tensor, dim: int | None = None, **numpy: Any) -> Tensor:
    """log(softmax(x)) along a dimension, without losing precision."""
    return _normalised(_r.LOG_SOFTMAX, x, dim, numpy)


def _normalised(row: Any, x: Any, dim: Any, numpy: dict[str, Any]) -> Tensor:
    x = tensor_operand(row.name, x)
    if numpy:
        dim, _ = _spelled(row.name, dim, False, numpy)
    if dim is None:
        raise TypeError(f"[{row.name}] a dim is needed: {row.name}(x, dim=-1)")
    if not x._h.ndim:  # as in PyTorch, a number is a row of one
        return reshape(apply(row, (reshape(x, (1,)),), (one_dim(row.name, dim, 1),)), ())
    return apply(row, (x,), (one_dim(row.name, dim, x._h.ndim),))


# ---- shape ---------------------------------------------------------------------------------------


def reshape(x: Tensor, *shape: Any) -> Tensor:
    """The same elements in another shape, one size of which may be -1; a view where possible."""
    x = tensor_operand("reshape", x)
    return apply(_s.RESHAPE, (x,), (size_of("reshape", shape),))


def view(x: Tensor, *shape: Any) -> Tensor:
    """As reshape, but ValueError where it would need a copy."""
    x = tensor_operand("view", x)
    return apply(_s.VIEW, (x,), (size_of("view", shape),))


def permute(x: Tensor, *dims: Any) -> Tensor:
    """The dimensions in another order; a view."""
    x = tensor_operand("permute", x)
    order = size_of("permute", dims)
    if len(order) != x._h.ndim:
        raise ValueError(f"[permute] {len(order)} dims given for {x._h.ndim} dimensions")
    axes = tuple([one_dim("permute", d, x._h.ndim) for d in order])
    return apply(_s.PERMUTE, (x,), (axes,))


def transpose(x: Tensor, dim0: int | None = None, dim1: int | None = None) -> Tensor:
    """Two dimensions swapped; all of them reversed where none is named, as NumPy does."""
    x = tensor_operand("transpose", x)
    order = list(range(x._h.ndim))
    if dim0 is None or dim1 is None:
        order.reverse()
    else:
        a, b = one_dim("transpose", dim0, x._h.ndim), one_dim("transpose", dim1, x._h.ndim)
        order[a], order[b] = order[b], order[a]
    return apply(_s.PERMUTE, (x,), (tuple(order),))


def expand(x: Tensor, *size: Any) -> Tensor:
    """Size-1 dimensions repeated, and new ones in front, without a copy; -1 keeps a size."""
    x = tensor_operand("expand", x)
    shape = size_of("expand", size)
    added = len(shape) - x._h.ndim
    if added < 0:
        raise ValueError(f"[expand] shape {x.shape} cannot expand to {shape}: too few dimensions")
    if -1 in shape:
        if -1 in shape[: added if added > 0 else 0]:
            raise ValueError(f"[expand] -1 keeps a size, but a new dimension has none: {shape}")
        own = x.shape
        shape = tuple([own[d - added] if n == -1 else n for d, n in enumerate(shape)])
    return apply(_s.EXPAND, (x,), (shape,))


def broadcast_to(x: Tensor, size: Any) -> Tensor:
    """As expand."""
    return expand(x, size)


def sum_to_size(x: Tensor, *size: Any) -> Tensor:
    """The sum over the dimensions along which ``size`` would be broadcast to x's shape."""
    x = tensor_operand("sum_to_size", x)
    return apply(_s.SUM_TO, (x,), (size_of("sum_to_size", size),))


def squeeze(x: Tensor, dim: Any = None) -> Tensor:
    """Without the dimensions of size 1: all, or those named that have size 1."""
    x = tensor_operand("squeeze", x)
    shape = x.shape
    axes = some_dims("squeeze", dim, len(shape))
    kept = [n for d, n in enumerate(shape) if d not in axes or n != 1]
    return apply(_s.VIEW, (x,), (tuple(kept),))


def unsqueeze(x: Tensor, dim: int) -> Tensor:
    """With a new dimension of size 1 at ``dim``."""
    x = tensor_operand("unsqueeze", x)
    shape = list(x.shape)
    shape.insert(one_dim("unsqueeze", dim, len(shape) + 1), 1)
    return apply(_s.VIEW, (x,), (tuple(shape),))


def flatten(x: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """The dimensions from start_dim to end_dim as one."""
    x = tensor_operand("flatten", x)
    shape = x.shape
    if not shape:
        return reshape(x, (1,))
    a, b = one_dim("flatten", start_dim, len(shape)), one_dim("flatten", end_dim, len(shape))
    if a > b:
        raise ValueError(f"[flatten] start_dim {start_dim} comes after end_dim {end_dim}")
    count = 1
    for n in shape[a : b + 1]:
        count *= n
    return apply(_s.RESHAPE, (x,), ((*shape[:a], count, *shape[b + 1 :]),))


def flip(x: Tensor, dims: Any) -> Tensor:
    """The elements in reverse order along the dimensions named; a view."""
    x = tensor_operand("flip", x)
    axes = some_dims("flip", dims, x._h.ndim)
    shape = x.shape
    start = tuple([n - 1 if d in axes and n else 0 for d, n in enumerate(shape)])
    step = tuple([-1 if d in axes else 1 for d in range(len(shape))])
    return apply(_s.SLICE, (x,), (start, step, shape))


def narrow(x: Tensor, dim: int, start: int, length: int) -> Tensor:
    """``length`` elements from ``start`` on along a dimension; a view."""
    x = tensor_operand("narrow", x)
    axis = one_dim("narrow", dim, x._h.ndim)
    shape = x.shape
    first = start + shape[axis] if start < 0 else start
    if first < 0 or length < 0 or first + length > shape[axis]:
        raise IndexError(
            f"[narrow] start {start} and length {length} leave size {shape[axis]} of dim {dim}"
        )
    begin = tuple([first if d == axis and length else 0 for d in range(len(shape))])
    count = tuple([length if d == axis else n for d, n in enumerate(shape)])
    return apply(_s.SLICE, (x,), (begin, (1,) * len(shape), count))


def split(x: Tensor, split_size_or_sections: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """Views of pieces of one size (the last may be shorter), or of the sizes in a list."""
    x = tensor_operand("split", x)
    axis = one_dim("split", dim, x._h.ndim)
    total = x.shape[axis]
    if isinstance(split_size_or_sections, (tuple, list)):
        sizes = list(split_size_or_sections)
        if builtin_sum(sizes) != total:
            raise ValueError(
                f"[split] the sizes {sizes} add up to {builtin_sum(sizes)}, not to {total}"
            )
    else:
        step = one_size("split", split_size_or_sections)
        if step < 1:
            raise ValueError(f"[split] the size of a piece is {step}, but must be at least 1")
        sizes = [builtin_min(step, total - at) for at in range(0, total, step)] or [0]
    pieces, at = [], 0
    for size in sizes:
        pieces.append(narrow(x, axis, at if size else 0, size))
        at += size
    return tuple(pieces)


def _promoted(op: str, tensors: Sequence[Any]) -> list[Tensor]:
    found = [tensor_operand(op, t) for t in tensors]
    if not found:
        raise ValueError(f"[{op}] needs at least one tensor")
    dtype = builtin_max((t.dtype for t in found), key=lambda d: d.code)
    return [to(t, dtype) for t in found]


def cat(tensors: Sequence[Any], dim: int = 0, **numpy: Any) -> Tensor:
    """Tensors laid side by side along a dimension; all other sizes must agree."""
    if numpy:
        dim, _ = _spelled("cat", None, False, numpy)
    parts = _promoted("cat", tensors)
    axis = one_dim("cat", dim, parts[0]._h.ndim)
    for part in parts:
        same = len(part.shape) == len(parts[0].shape) and builtin_all(
            n == m or d == axis
            for d, (n, m) in enumerate(zip(part.shape, parts[0].shape, strict=True))
        )
        if not same:
            raise ValueError(
                f"[cat] shapes {parts[0].shape} and {part.shape} differ outside dim {axis}"
            )
    return apply(_s.CAT, tuple(parts), (axis, tuple([t.shape[axis] for t in parts])))


def stack(tensors: Sequence[Any], dim: int = 0, **numpy: Any) -> Tensor:
    """Tensors of one shape side by side along a new dimension."""
    if numpy:
        dim, _ = _spelled("stack", None, False, numpy)
    parts = _promoted("stack", tensors)
    for part in parts:
        if part.shape != parts[0].shape:
            raise ValueError(f"[stack] shapes differ: {parts[0].shape} and {part.shape}")
    axis = one_dim("stack", dim, parts[0]._h.ndim + 1)
    return cat([unsqueeze(t, axis) for t in parts], axis)


def clone(x: Tensor) -> Tensor:
    """A contiguous copy with a gradient."""
    x = tensor_operand("clone", x)
    return apply(_s.COPY, (x,))


def contiguous(x: Tensor) -> Tensor:
    """x itself where its elements lie in order without gaps, else a copy."""
    x = tensor_operand("contiguous", x)
    return x if lib.mg_contiguous_now(x._h) else clone(x)


def to(x: Tensor, dtype: Any) -> Tensor:
    """The same values in another dtype, x itself where it has it; gradients are cast back."""
    x = tensor_operand("to", x)
    wanted, was = as_dtype(dtype), x.dtype
    if wanted is was and not x._h.weak:
        return x
    return apply(_s.CAST, (x,), (wanted, was))


# ---- products and picks --------------------------------------------------------------------------


matmul = bilinear(ops.contraction.MATMUL, lib.MG_MATMUL)
matmul.__doc__ = """The matrix product by NumPy's rules.

Vectors count as a row on the left and a column on the right, and the added dimension is removed
from the result; leading dimensions are broadcast. Raises ValueError where inner sizes differ and
for 0-d operands.

>>> import minigrad as mg
>>> (mg.ones(2, 3) @ mg.ones(3)).tolist()
[3.0, 3.0]
"""


def gather_rows(x: Tensor, index: Sequence[Tensor]) -> Tensor:
    """x[i0, i1, ...] for int64 tensors of one shape on the first dimensions."""
    handles = tuple([i._h for i in index])
    if x._edge is not None:  # the graph's own copy: the caller may overwrite theirs
        handles = tuple([call(lib.mg_copy, h) for h in handles])
    return apply(ops.indexing.GATHER, (x,), (handles,))


def take_along_dim(x: Tensor, indices: Tensor, dim: int) -> Tensor:
    """x[..., indices[..., k, ...], ...] along a dimension; other sizes agree or are broadcast."""
    x, indices = tensor_operand("take_along_dim", x), tensor_operand("take_along_dim", indices)
    if indices.dtype is not int64:
        raise TypeError(f"[take_along_dim] indices must be int64, not {indices.dtype.name}")
    axis = one_dim("take_along_dim", dim, x._h.ndim)
    if indices._h.ndim != x._h.ndim:
        raise ValueError(
            f"[take_along_dim] {indices._h.ndim} dimensions of indices for {x._h.ndim} of x"
        )
    shape = tuple(
        [
            m if d == axis else builtin_max(n, m)
            for d, (n, m) in enumerate(zip(x.shape, indices.shape, strict=True))
        ]
    )
    grid = []
    for d, n in enumerate(shape):
        if d == axis:
            grid.append(expand(indices, shape))
        else:
            along = reshape(arange(n), tuple([n if k == d else 1 for k in range(len(shape))]))
            grid.append(expand(along, shape))
    source = expand(x, tuple([x.shape[d] if d == axis else n for d, n in enumerate(shape)]))
    return gather_rows(source, grid)


def nonzero(mask: Tensor) -> tuple[Tensor, ...]:
    """The positions of true elements, as one int64 tensor per dimension (NumPy's form)."""
    given = tensor_operand("nonzero", mask)
    x = given if given.dtype is bool_ else ne(given, 0)
    found = wrap(call(lib.mg_nonzero, x._h))
    return tuple(
        [reshape(narrow(found, 0, d, 1), (-1 if found.size else 0,)) for d in range(x._h.ndim)]
    )
