"""NumPy's functions on tensors: ``np.exp(t)``, ``np.sum(t, axis=0)``, ``array * t`` record too.

NumPy hands such calls over (NEP 13 and NEP 18); here they are bound to NumPy's own signature and
passed on to the function of ours that means the same. What has none raises TypeError and names the
function. This module is loaded at the first such call.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from minigrad import creation
from minigrad import functions as f
from minigrad.arguments import one_dim, some_dims
from minigrad.dispatch import TensorBase, shown, strong_operand

__all__ = ["array_function", "array_ufunc"]

# ---- universal functions -------------------------------------------------------------------------

# NumPy's name: ours, where they differ.
_UFUNC_NAMES = {
    "absolute": "abs",
    "fabs": "abs",
    "negative": "neg",
    "true_divide": "div",
    "divide": "div",
    "multiply": "mul",
    "subtract": "sub",
    "power": "pow",
    "float_power": "pow",
    "arcsin": "asin",
    "arccos": "acos",
    "arctan": "atan",
    "arctan2": "atan2",
    "arcsinh": "asinh",
    "arccosh": "acosh",
    "arctanh": "atanh",
    "radians": "deg2rad",
    "degrees": "rad2deg",
    "rint": "round",
    "mod": "remainder",
    "equal": "eq",
    "not_equal": "ne",
    "less": "lt",
    "less_equal": "le",
    "greater": "gt",
    "greater_equal": "ge",
    "invert": "bitwise_not",
    "left_shift": "bitwise_left_shift",
    "right_shift": "bitwise_right_shift",
    "vecdot": "linalg.vecdot",
}
_REDUCE = {
    "add": "sum",
    "multiply": "prod",
    "maximum": "amax",
    "minimum": "amin",
    "logical_and": "all",
    "logical_or": "any",
    "logaddexp": "logsumexp",
}
_ACCUMULATE = {"add": "cumsum", "multiply": "cumprod"}


def _found(name: str) -> Callable[..., Any] | None:
    """The function of ours with this name, which may lie in linalg."""
    if name.startswith("linalg."):
        from minigrad import linalg

        return getattr(linalg, name.removeprefix("linalg."), None)
    return getattr(f, name, None) if name in f.__all__ else None


def _refused(name: str, why: str) -> TypeError:
    return TypeError(
        f"[numpy.{name}] {why}: convert with x.detach().numpy() to leave the graph, or use "
        "minigrad's own functions"
    )


def _divmod(a: Any, b: Any) -> tuple[Any, Any]:
    return f.floor_divide(a, b), f.remainder(a, b)


def array_ufunc(ufunc: Any, method: str, inputs: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """What ``Tensor.__array_ufunc__`` does."""
    name = ufunc.__name__
    if options.pop("out", None) is not None:
        raise _refused(
            name, "a result that may need a graph cannot be written into an array (out=)"
        )
    if method == "__call__":
        function = _divmod if name == "divmod" else _found(_UFUNC_NAMES.get(name, name))
        if function is None:
            raise _refused(name, "not offered for tensors")
        if options:
            raise _refused(name, f"{', '.join(options)}= is not offered for tensors")
        return function(*inputs)
    if method == "outer" and len(inputs) == 2 and not options:
        a, b = (strong_operand(name, x) for x in inputs)
        return array_ufunc(ufunc, "__call__", (a.reshape(a.shape + (1,) * b.ndim), b), {})
    ours = {"reduce": _REDUCE, "accumulate": _ACCUMULATE}.get(method, {}).get(name)
    if ours is None:
        raise _refused(f"{name}.{method}", "not offered for tensors")
    wanted = {"axis": options.pop("axis", 0)}
    if method == "reduce":
        wanted["keepdims"] = options.pop("keepdims", False)
    if len(inputs) != 1 or any(value is not None for value in options.values()):
        raise _refused(f"{name}.{method}", "only axis and keepdims are offered for tensors")
    return getattr(f, ours)(inputs[0], **wanted)


# ---- other functions -----------------------------------------------------------------------------

_SAME = """
sum mean prod amax amin argmax argmin all any nansum nanmean quantile count_nonzero ravel squeeze
broadcast_to moveaxis swapaxes hstack vstack dstack column_stack stack hsplit vsplit dsplit tile
rot90 flip fliplr flipud kron inner trace diagonal diagflat nan_to_num isclose allclose einsum
zeros_like ones_like empty_like full_like atleast_1d atleast_2d atleast_3d searchsorted argwhere
diff sinc
"""


def _functions() -> dict[Any, Callable[..., Any]]:
    """NumPy's function: one of ours with the same parameters, or close enough."""
    table: dict[Any, Callable[..., Any]] = {}
    for name in _SAME.split():
        found = getattr(f, name, None) or getattr(creation, name, None)
        if found is not None and hasattr(np, name):
            table[getattr(np, name)] = found
    table.update(
        {
            np.max: f.amax,
            np.min: f.amin,
            np.var: _spread(f.var),
            np.std: _spread(f.std),
            np.median: _median,
            np.cumsum: _flat_by_default(lambda a, axis: f.cumsum(f.atleast_1d(a), axis)),
            np.cumprod: _flat_by_default(lambda a, axis: f.cumprod(f.atleast_1d(a), axis)),
            np.roll: _roll,
            np.concatenate: _concatenate,
            np.reshape: lambda a, shape: f.reshape(a, shape),
            np.shape: lambda a: a.shape,
            np.ndim: lambda a: a.ndim,
            np.size: lambda a, axis=None: a.size if axis is None else a.shape[axis],
            np.copy: lambda a: f.clone(a),
            np.transpose: _transpose,
            np.expand_dims: lambda a, axis: _expand_dims(a, axis),
            np.where: _where,
            np.clip: lambda a, a_min=None, a_max=None, min=None, max=None: f.clamp(  # noqa: A006
                a, a_min if min is None else min, a_max if max is None else max
            ),
            np.round: lambda a, decimals=0: f.round(a, decimals=decimals),
            np.around: lambda a, decimals=0: f.round(a, decimals=decimals),
            np.diag: lambda v, k=0: f.diag(v, k),
            np.outer: lambda a, b: f.outer(f.ravel(a), f.ravel(b)),
            np.dot: _dot,
            np.take: lambda a, indices, axis=None: _take(a, indices, axis),
            np.take_along_axis: lambda arr, indices, axis=-1: f.take_along_dim(arr, indices, axis),
            np.nonzero: lambda a: f.nonzero(a, as_tuple=True),
            np.repeat: lambda a, repeats, axis=None: f.repeat_interleave(
                f.atleast_1d(a), repeats, axis
            ),
            np.array_equal: lambda a1, a2: f.equal(
                strong_operand("array_equal", a1), strong_operand("array_equal", a2)
            ),
            np.shares_memory: _on_arrays(np.shares_memory),
            np.may_share_memory: _on_arrays(np.may_share_memory),
            np.split: _split,
            np.tril: lambda m, k=0: f.tril(m, k),
            np.triu: lambda m, k=0: f.triu(m, k),
            np.sort: _flat_by_default(_sorted, -1),
            np.argsort: _flat_by_default(lambda a, axis: f.argsort(f.atleast_1d(a), axis), -1),
            np.tensordot: lambda a, b, axes=2: f.tensordot(a, b, axes),
            np.broadcast_arrays: _broadcast_arrays,
            np.array_split: lambda ary, indices_or_sections, axis=0: f.tensor_split(
                ary, indices_or_sections, axis
            ),
            np.ptp: lambda a, axis=None, keepdims=False: (
                f.amax(a, axis, keepdims=keepdims) - f.amin(a, axis, keepdims=keepdims)
            ),
        }
    )
    return table


def _on_arrays(theirs: Callable[..., Any]) -> Callable[..., Any]:
    """NumPy's own function of where two arrays lie, which asks for no values."""

    def function(a: Any, b: Any, max_work: Any = None) -> Any:
        arrays = [shown(x._h) if isinstance(x, TensorBase) else x for x in (a, b)]
        return theirs(*[np.asarray(x) for x in arrays], max_work)

    return function


def _spread(ours: Callable[..., Any]) -> Callable[..., Any]:
    """var and std divide by n unless told otherwise, as NumPy has it, not by n - 1 as PyTorch."""

    def spread(
        a: Any, axis: Any = None, ddof: float = 0, keepdims: bool = False, correction: Any = None
    ) -> Any:
        return ours(
            a, axis, correction=ddof if correction is None else correction, keepdims=keepdims
        )

    return spread


def _median(a: Any, axis: Any = None, keepdims: bool = False) -> Any:
    if isinstance(axis, int):
        return f.median(a, axis, keepdims=keepdims).values
    return f.quantile(a, 0.5, axis, keepdims=keepdims)


def _flat_by_default(ours: Callable[..., Any], default: Any = None) -> Callable[..., Any]:
    """Along an axis, or over all elements in order where it is None."""

    def function(a: Any, axis: Any = default) -> Any:
        return ours(f.ravel(a), 0) if axis is None else ours(a, axis)

    return function


def _roll(a: Any, shift: Any, axis: Any = None) -> Any:
    """By all shifts in order where there is no axis; shifts and axes are broadcast."""
    if axis is None:
        return f.roll(a, int(np.sum(np.asarray(shift))))
    shifts, axes = np.broadcast_arrays(np.asarray(shift, int), np.asarray(axis, int))
    if shifts.ndim > 1:
        raise ValueError("[numpy.roll] shift and axis are numbers or flat sequences of them")
    if not shifts.size:
        return f.clone(a)
    total: dict[int, int] = {}
    for n, d in zip(shifts.flat, axes.flat, strict=True):
        place = one_dim("numpy.roll", int(d), a.ndim)
        total[place] = total.get(place, 0) + int(n)
    return f.roll(a, tuple(total.values()), tuple(total))


def _transpose(a: Any, axes: Any = None) -> Any:
    if axes is None:
        return a.T
    return f.permute(a, *(axes if isinstance(axes, (tuple, list)) else (axes,)))


def _sorted(a: Any, axis: Any) -> Any:
    if not a.ndim:
        raise ValueError("[numpy.sort] a 0-d tensor has no axis to sort along: ravel() it")
    return f.sort(a, axis).values


def _concatenate(arrays: Any, axis: Any = 0) -> Any:
    return f.cat([f.ravel(a) for a in arrays], 0) if axis is None else f.cat(arrays, axis)


def _broadcast_arrays(*args: Any) -> Any:
    if not any(x is None for x in args):
        return f.broadcast_tensors(*args)
    # Plotting libraries broadcast None along, which only an array can hold.
    return np.broadcast_arrays(*[np.asarray(x) for x in args])


def _expand_dims(a: Any, axis: Any) -> Any:
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    ndim = a.ndim + len(axes)
    for d in some_dims("numpy.expand_dims", tuple(axes), ndim):
        a = f.unsqueeze(a, d)
    return a


def _where(condition: Any, x: Any = None, y: Any = None) -> Any:
    if x is None and y is None:
        return f.nonzero(condition, as_tuple=True)
    return f.where(condition, x, y)


def _dot(a: Any, b: Any) -> Any:
    a, b = strong_operand("dot", a), strong_operand("dot", b)
    if not a.ndim or not b.ndim:
        return a * b
    return f.matmul(a, b) if b.ndim <= 2 else f.tensordot(a, b, ([-1], [-2]))


def _take(a: Any, indices: Any, axis: Any) -> Any:
    if axis is None:
        return f.reshape(a, (-1,))[indices]
    return a[(slice(None),) * one_dim("numpy.take", axis, a.ndim) + (indices,)]


def _split(ary: Any, indices_or_sections: Any, axis: int = 0) -> Any:
    if isinstance(indices_or_sections, int) and ary.shape[axis] % indices_or_sections:
        raise ValueError("[numpy.split] the array does not divide into equal parts")
    return f.tensor_split(ary, indices_or_sections, axis)


@lru_cache(maxsize=1)
def _table() -> dict[Any, Callable[..., Any]]:
    return _functions()


def _linalg(function: Any) -> Callable[..., Any] | None:
    from minigrad import linalg

    name = function.__name__
    return getattr(linalg, name, None) if name in linalg.__all__ else None


@lru_cache(maxsize=256)
def _signature(function: Any, ours: Callable[..., Any]) -> inspect.Signature:
    """NumPy's; before NumPy 2.4 its functions in C tell none, and ours stands in for it."""
    try:
        return inspect.signature(function)
    except ValueError:
        return inspect.signature(ours)


def array_function(function: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """What ``Tensor.__array_function__`` does."""
    module = (getattr(function, "__module__", None) or "").removeprefix("numpy").lstrip(".")
    name = f"{module}.{function.__name__}" if module else function.__name__
    ours = _linalg(function) if module == "linalg" else _table().get(function)
    if ours is None:
        raise _refused(name, "not offered for tensors")
    signature = _signature(function, ours)
    positional: list[Any] = []
    named: dict[str, Any] = {}
    try:
        bound = signature.bind(*args, **options)
        for place, (parameter, value) in enumerate(bound.arguments.items()):
            declared = signature.parameters[parameter]
            if declared.kind is declared.VAR_POSITIONAL:
                positional += value
            elif declared.kind is declared.VAR_KEYWORD:
                named.update(value)
            elif place == 0 or declared.default is declared.empty:
                positional.append(value)
            elif value is not declared.default:
                named[parameter] = value
        inspect.signature(ours).bind(*positional, **named)
    except TypeError as error:
        raise _refused(
            name, f"{error} (its arguments are offered as far as ours have them)"
        ) from None
    return ours(*[_operand(x) for x in positional], **named)


def _operand(x: Any) -> Any:
    """An array beside a tensor, as a tensor; everything else as it is."""
    return creation.asarray(x) if isinstance(x, np.ndarray) else x


def is_ours(types: Any) -> bool:
    """Whether NumPy's dispatch is between tensors and arrays only."""
    return all(issubclass(t, (TensorBase, np.ndarray)) for t in types)
