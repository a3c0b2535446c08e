"""Functions of the array API standard whose arguments or results differ from PyTorch's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from minigrad import functions as f
from minigrad.functions import creation
from minigrad.functions.arguments import one_dim, tensor_operand
from minigrad.runtime.devices import CPU, on_cpu
from minigrad.runtime.dtypes import DType, as_dtype, by_name, default_dtype, int64, promoted_dtype

if TYPE_CHECKING:
    from minigrad._tensor import Tensor

Dims = int | tuple[int, ...] | None

# ---- creation ------------------------------------------------------------------------------------


def arange(
    start: float,
    /,
    stop: float | None = None,
    step: float = 1,
    *,
    dtype: Any = None,
    device: Any = None,
) -> Tensor:
    """A vector of start, start + step, ... below stop. It may be empty."""
    return creation.arange(start, stop, step, dtype=dtype, device=device)


def empty(shape: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """An uninitialised tensor."""
    return creation.empty(shape, dtype=dtype, device=device)


def ones(shape: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """A tensor of ones."""
    return creation.ones(shape, dtype=dtype, device=device)


def zeros(shape: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """A tensor of zeros."""
    return creation.zeros(shape, dtype=dtype, device=device)


def full(shape: Any, fill_value: float, *, dtype: Any = None, device: Any = None) -> Tensor:
    """A tensor filled with one value."""
    return creation.full(shape, fill_value, dtype=dtype, device=device)


def eye(
    n_rows: int,
    n_cols: int | None = None,
    /,
    *,
    k: int = 0,
    dtype: Any = None,
    device: Any = None,
) -> Tensor:
    """Ones on the k-th diagonal of a matrix, zeros elsewhere."""
    on_cpu(device)
    shape = n_rows, n_rows if n_cols is None else n_cols
    rows = f.unsqueeze(creation.arange(shape[0]), 1)
    return f.to(f.eq(f.add(rows, k), creation.arange(shape[1])), as_dtype(dtype))


def linspace(
    start: float,
    stop: float,
    /,
    num: int,
    *,
    dtype: Any = None,
    device: Any = None,
    endpoint: bool = True,
) -> Tensor:
    """``num`` evenly spaced values from start to stop. ``endpoint`` says if stop is included."""
    if endpoint:
        return creation.linspace(start, stop, num, dtype=dtype, device=device)
    return creation.linspace(start, stop, num + 1, dtype=dtype, device=device)[:-1]


def meshgrid(*arrays: Tensor, indexing: str = "xy") -> tuple[Tensor, ...]:
    """Grids of coordinates. The first two dimensions are swapped unless ``indexing="ij"``."""
    return f.meshgrid(*arrays, indexing=indexing)


def tril(x: Tensor, /, *, k: int = 0) -> Tensor:
    """Matrices with zeros above the k-th diagonal."""
    return f.tril(x, k)


def triu(x: Tensor, /, *, k: int = 0) -> Tensor:
    """Matrices with zeros below the k-th diagonal."""
    return f.triu(x, k)


# ---- dtypes --------------------------------------------------------------------------------------

_KINDS = {
    "bool": {"bool"},
    "signed integer": {"int8", "int16", "int32", "int64"},
    "unsigned integer": {"uint8"},
    "real floating": {"float16", "bfloat16", "float32", "float64"},
    "complex floating": set[str](),
}
_KINDS["integral"] = _KINDS["signed integer"] | _KINDS["unsigned integer"]
_KINDS["numeric"] = _KINDS["integral"] | _KINDS["real floating"]


def astype(x: Tensor, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Tensor:
    """The values in another dtype. Without ``copy`` it is x itself if it has this dtype."""
    on_cpu(device)
    made = f.to(x, as_dtype(dtype))
    return f.clone(made) if copy and made is x else made


def can_cast(from_: Any, to: Any, /) -> bool:
    """True if the other dtype can hold every value of a dtype, or of a tensor's dtype."""
    given, target = as_dtype(getattr(from_, "dtype", from_)), as_dtype(to)
    return promoted_dtype(given, target) is target


def isdtype(dtype: DType, kind: DType | str | tuple[DType | str, ...]) -> bool:
    """True if a dtype is of a kind, of one of several kinds, or equal to a dtype.

    The kinds are "bool", "signed integer", "unsigned integer", "integral", "real floating",
    "complex floating" and "numeric". Raises ValueError for any other name.
    """
    if isinstance(kind, tuple):
        return any(isdtype(dtype, one) for one in kind)
    if not isinstance(kind, str):
        return as_dtype(dtype) is as_dtype(kind)
    if kind not in _KINDS:
        raise ValueError(f"[isdtype] kind is {kind!r}, but must be one of {', '.join(_KINDS)}")
    return as_dtype(dtype).name in _KINDS[kind]


class Info:
    """Result of ``__array_namespace_info__()``: the dtypes, devices and capabilities."""

    def capabilities(self) -> dict[str, Any]:
        """The capabilities: boolean indices, data-dependent shapes, and the most dimensions."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 16}

    def default_device(self) -> Any:
        """The CPU."""
        return CPU

    def devices(self) -> list[Any]:
        """A list with the CPU."""
        return [CPU]

    def default_dtypes(self, *, device: Any = None) -> dict[str, DType]:
        """The default dtypes of new tensors."""
        on_cpu(device)
        return {"real floating": default_dtype(), "integral": int64, "indexing": int64}

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, DType]:
        """The dtypes by name, or the dtypes of a kind."""
        on_cpu(device)
        standard = {n: d for n, d in by_name.items() if n not in ("float16", "bfloat16")}
        return {n: d for n, d in standard.items() if kind is None or isdtype(d, kind)}


def namespace_info() -> Info:
    """The dtypes, devices and capabilities of this namespace."""
    return Info()


# ---- elementwise ---------------------------------------------------------------------------------


def clip(x: Tensor, /, min: Any = None, max: Any = None) -> Tensor:  # noqa: A002
    """Clamp each element to [min, max]. None means no bound."""
    return f.clone(x) if min is None and max is None else f.clamp(x, min, max)


# ---- reductions ----------------------------------------------------------------------------------


def max(x: Tensor, /, *, axis: Dims = None, keepdims: bool = False) -> Tensor:  # noqa: A001
    """The largest element."""
    return f.amax(x, axis, keepdims)


def min(x: Tensor, /, *, axis: Dims = None, keepdims: bool = False) -> Tensor:  # noqa: A001
    """The smallest element."""
    return f.amin(x, axis, keepdims)


def std(
    x: Tensor, /, *, axis: Dims = None, correction: float = 0.0, keepdims: bool = False
) -> Tensor:
    """The standard deviation. Sums of squares are divided by n - correction."""
    return f.std(x, axis, keepdim=keepdims, correction=correction)


def var(
    x: Tensor, /, *, axis: Dims = None, correction: float = 0.0, keepdims: bool = False
) -> Tensor:
    """The variance. Sums of squares are divided by n - correction."""
    return f.var(x, axis, keepdim=keepdims, correction=correction)


def cumulative_sum(
    x: Tensor, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False
) -> Tensor:
    """Cumulative sums along an axis, which is optional for a vector.

    ``include_initial`` puts a 0 before the sums.
    """
    return _running("cumulative_sum", f.cumsum, 0, x, axis, dtype, include_initial)


def cumulative_prod(
    x: Tensor, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False
) -> Tensor:
    """Cumulative products along an axis, which is optional for a vector.

    ``include_initial`` puts a 1 before the products.
    """
    return _running("cumulative_prod", f.cumprod, 1, x, axis, dtype, include_initial)


def _running(
    op: str, scan: Any, start: int, x: Tensor, axis: int | None, dtype: Any, initial: bool
) -> Tensor:
    x = tensor_operand(op, x)
    if axis is None:
        if x.ndim != 1:
            raise ValueError(f"[{op}] a tensor of {x.ndim} dimensions needs an axis")
        axis = 0
    y: Tensor = scan(x, axis, dtype=dtype)
    if not initial:
        return y
    d = one_dim(op, axis, y.ndim)
    shape = [1 if k == d else n for k, n in enumerate(y.shape)]
    return f.cat([creation.full(shape, start, dtype=y.dtype), y], d)


def diff(
    x: Tensor, /, *, axis: int = -1, n: int = 1, prepend: Any = None, append: Any = None
) -> Tensor:
    """Differences of neighbours along an axis, taken n times."""
    return f.diff(x, n, axis, prepend, append)


# ---- shapes --------------------------------------------------------------------------------------


def broadcast_arrays(*arrays: Tensor) -> tuple[Tensor, ...]:
    """The tensors broadcast to their common shape."""
    return f.broadcast_tensors(*arrays)


def broadcast_to(x: Tensor, /, shape: tuple[int, ...]) -> Tensor:
    """A view with the elements repeated along dimensions of size 1 and new dimensions."""
    return f.broadcast_to(x, shape)


def expand_dims(x: Tensor, /, *, axis: int = 0) -> Tensor:
    """Insert a dimension of size 1 at ``axis`` of the result."""
    return f.unsqueeze(x, axis)


def permute_dims(x: Tensor, /, axes: tuple[int, ...]) -> Tensor:
    """The dimensions in another order."""
    return f.permute(x, axes)


def repeat(x: Tensor, repeats: Any, /, *, axis: int | None = None) -> Tensor:
    """Repeat each element along an axis, or of the flattened tensor."""
    return f.repeat_interleave(x, repeats, axis)


def reshape(x: Tensor, /, shape: tuple[int, ...], *, copy: bool | None = None) -> Tensor:
    """The elements in another shape. Raises ValueError if ``copy=False`` and a copy is needed."""
    if copy is False:
        return f.view(x, shape)
    return f.reshape(f.clone(x) if copy else x, shape)


def unstack(x: Tensor, /, *, axis: int = 0) -> tuple[Tensor, ...]:
    """The entries along an axis."""
    return f.unbind(x, axis)


def matrix_transpose(x: Tensor, /) -> Tensor:
    """The last two dimensions swapped. Raises ValueError for fewer dimensions."""
    if x.ndim < 2:
        raise ValueError(f"[matrix_transpose] a tensor of {x.ndim} dimensions holds no matrix")
    return f.transpose(x, -2, -1)


# ---- searching and sorting -----------------------------------------------------------------------


def nonzero(x: Tensor, /) -> tuple[Tensor, ...]:
    """The positions of the elements that are not 0, as an index for each dimension."""
    if not x.ndim:
        raise ValueError("[nonzero] a tensor without dimensions has no positions")
    return f.nonzero(x, as_tuple=True)


def sort(x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """The elements in order along an axis."""
    return f.sort(x, axis, descending, stable).values


def take(x: Tensor, indices: Tensor, /, *, axis: int | None = None) -> Tensor:
    """The entries at positions along an axis, which is optional for a vector."""
    if axis is None:
        if x.ndim != 1:
            raise ValueError(f"[take] a tensor of {x.ndim} dimensions needs an axis")
        axis = 0
    return f.index_select(x, axis, indices)


def take_along_axis(x: Tensor, indices: Tensor, /, *, axis: int = -1) -> Tensor:
    """Elements at positions along an axis, one position for each of ``indices``."""
    return f.take_along_dim(x, indices, axis)


# ---- sets ----------------------------------------------------------------------------------------


class UniqueAll(NamedTuple):
    """The distinct values, their first positions, the inverse indices and the counts."""

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCounts(NamedTuple):
    """The distinct values and their counts."""

    values: Tensor
    counts: Tensor


class UniqueInverse(NamedTuple):
    """The distinct values, and the index of each element among them."""

    values: Tensor
    inverse_indices: Tensor


def unique_all(x: Tensor, /) -> UniqueAll:
    """The distinct values in order, first positions, inverse and counts. NaN differs from NaN."""
    values, inverse, counts = f.unique(x, return_inverse=True, return_counts=True)
    order = f.argsort(f.ravel(inverse), 0)
    first = f.sub(f.cumsum(counts, 0), counts)
    return UniqueAll(values, f.take(order, first), inverse, counts)


def unique_counts(x: Tensor, /) -> UniqueCounts:
    """The distinct values in order, and their counts. NaN differs from NaN."""
    return UniqueCounts(*f.unique(x, return_counts=True))


def unique_inverse(x: Tensor, /) -> UniqueInverse:
    """The distinct values in order, and each element's index among them. NaN differs from NaN."""
    return UniqueInverse(*f.unique(x, return_inverse=True))


def unique_values(x: Tensor, /) -> Tensor:
    """The distinct values in order. NaN differs from NaN."""
    return f.unique(x)


# ---- products ------------------------------------------------------------------------------------


def tensordot(
    x1: Tensor, x2: Tensor, /, *, axes: int | tuple[Sequence[int], Sequence[int]] = 2
) -> Tensor:
    """Sums of products over pairs of axes, or over the last axes of x1 and the first of x2."""
    return f.tensordot(x1, x2, axes)


def vecdot(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """Sums of products along an axis, counted from the end. The other axes are broadcast."""
    from minigrad.functions.products import vecdot as product

    return product(x1, x2, dim=axis)
