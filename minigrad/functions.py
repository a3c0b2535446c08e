"""The operations as functions. Tensor's methods and operators are these same functions."""

from __future__ import annotations

from builtins import max as builtin_max
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from minigrad import ops
from minigrad._c import call, lib
from minigrad.creation import arange
from minigrad.dispatch import (
    TensorBase,
    apply,
    as_operand,
    bilinear,
    binary,
    operand_error,
    unary,
    wrap,
)
from minigrad.dtypes import bool_, int64
from minigrad.shaping import (
    broadcast_to,
    cat,
    clone,
    contiguous,
    expand,
    flatten,
    flip,
    narrow,
    one_dim,
    permute,
    reshape,
    some_dims,
    spelled,
    split,
    squeeze,
    stack,
    sum_to_size,
    tensor_operand,
    to,
    transpose,
    unsqueeze,
    view,
)

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


def sum(  # noqa: A001
    x: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None, **numpy: Any
) -> Tensor:
    """The sum over one, several or all dimensions; bool and int64 give int64.

    Summed in blocks and pairwise along every dimension, with the same result for any memory layout
    and number of threads. ``axis`` and ``keepdims`` are accepted for dim and keepdim.
    """
    x = tensor_operand("sum", x)
    if numpy:
        dim, keepdim = spelled("sum", dim, keepdim, numpy)
    if dtype is not None:
        x = to(x, dtype)
    return apply(_r.SUM, (x,), (some_dims("sum", dim, x._h.ndim), keepdim))


def mean(x: Tensor, dim: Any = None, keepdim: bool = False, **numpy: Any) -> Tensor:
    """The mean over one, several or all dimensions; NaN of nothing."""
    x = tensor_operand("mean", x)
    if numpy:
        dim, keepdim = spelled("mean", dim, keepdim, numpy)
    return apply(_r.MEAN, (x,), (some_dims("mean", dim, x._h.ndim), keepdim))


def prod(x: Tensor, dim: Any = None, keepdim: bool = False, **numpy: Any) -> Tensor:
    """The product over one, several or all dimensions."""
    x = tensor_operand("prod", x)
    if numpy:
        dim, keepdim = spelled("prod", dim, keepdim, numpy)
    return apply(_r.PROD, (x,), (some_dims("prod", dim, x._h.ndim), keepdim))


def amax(x: Tensor, dim: Any = None, keepdim: bool = False, **numpy: Any) -> Tensor:
    """The maximum over one, several or all dimensions; ties share the gradient evenly."""
    x = tensor_operand("amax", x)
    if numpy:
        dim, keepdim = spelled("amax", dim, keepdim, numpy)
    return apply(_r.AMAX, (x,), (some_dims("amax", dim, x._h.ndim), keepdim))


def amin(x: Tensor, dim: Any = None, keepdim: bool = False, **numpy: Any) -> Tensor:
    """The minimum over one, several or all dimensions; ties share the gradient evenly."""
    x = tensor_operand("amin", x)
    if numpy:
        dim, keepdim = spelled("amin", dim, keepdim, numpy)
    return apply(_r.AMIN, (x,), (some_dims("amin", dim, x._h.ndim), keepdim))


class Extremum(NamedTuple):
    """The values of a maximum or minimum along a dimension, and where they were found."""

    values: Any
    indices: Any


def _extremum(op: str, x: Any, dim: Any, keepdim: bool, numpy: dict[str, Any]) -> Any:
    whole, at, pair = (amax, argmax, maximum) if op == "max" else (amin, argmin, minimum)
    if numpy:
        dim, keepdim = spelled(op, dim, keepdim, numpy)
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
        dim, keepdim = spelled(row.name, dim, keepdim, numpy)
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
        dim, keepdim = spelled("all", dim, keepdim, numpy)
    return apply(_r.ALL, (x,), (some_dims("all", dim, x._h.ndim), keepdim))


def any(x: Tensor, dim: Any = None, keepdim: bool = False, **numpy: Any) -> Tensor:  # noqa: A001
    """Is any element true (not 0)?"""
    x = tensor_operand("any", x)
    if numpy:
        dim, keepdim = spelled("any", dim, keepdim, numpy)
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
        dim, keepdim = spelled("var", dim, keepdim, numpy)
    axes = some_dims("var", dim, x._h.ndim)
    return apply(_r.VAR, (x,), (axes, keepdim, 1.0 if correction is None else float(correction)))


def logsumexp(x: Tensor, dim: Any = None, keepdim: bool = False, **numpy: Any) -> Tensor:
    """log(sum(exp(x))) without overflow; -inf of nothing."""
    x = tensor_operand("logsumexp", x)
    if numpy:
        dim, keepdim = spelled("logsumexp", dim, keepdim, numpy)
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
        dim, _ = spelled(row.name, dim, False, numpy)
    if dim is None:
        raise TypeError(f"[{row.name}] a dim is needed: {row.name}(x, dim=-1)")
    if not x._h.ndim:  # as in PyTorch, a number is a row of one
        return reshape(apply(row, (reshape(x, (1,)),), (one_dim(row.name, dim, 1),)), ())
    return apply(row, (x,), (one_dim(row.name, dim, x._h.ndim),))


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
