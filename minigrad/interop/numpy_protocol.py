"""NumPy's dispatch protocols, for ``np.exp(t)``, ``np.sum(t, axis=0)`` and ``array * t``.

NumPy passes such calls on (NEP 13 and NEP 18), and they are recorded. This module finds universal
functions by name, with ``out=``, ``where=``, ``dtype=`` and ``at``. For other functions the
arguments are bound to NumPy's signature and passed to the function in
:mod:`minigrad.interop.numpy_functions.table`. A function without a counterpart raises a TypeError
with its name. This module is loaded at the first such call.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache, lru_cache
from importlib import import_module
from typing import Any

import numpy as np

from minigrad import functions as f
from minigrad.functions import creation
from minigrad.functions.operands import strong_operand, tensor_operands
from minigrad.interop.numpy_functions.reading import check_cast, refused, values_of, write_over
from minigrad.runtime.dtypes import as_dtype, bool_
from minigrad.tape.tensor_base import TensorBase

__all__ = ["array_function", "array_ufunc"]

# NumPy's name -> minigrad's name, if they differ.
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
    "conjugate": "functions.clone",
    "divmod": "interop.numpy_functions.values.divmod",
    "gcd": "interop.numpy_functions.values.gcd",
    "lcm": "interop.numpy_functions.values.lcm",
    "matvec": "interop.numpy_functions.products.matvec",
    "modf": "interop.numpy_functions.values.modf",
    "vecmat": "interop.numpy_functions.products.vecmat",
}


@cache
def _found(name: str) -> Callable[..., Any] | None:
    """The function of minigrad for a universal function of NumPy."""
    module, _, ours = _UFUNC_NAMES.get(name, name).rpartition(".")
    if module:
        return getattr(import_module(f"minigrad.{module}"), ours)
    return getattr(f, ours, None) if ours in f.__all__ else None


# ---- universal functions -------------------------------------------------------------------------


def array_ufunc(ufunc: Any, method: str, inputs: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """The body of ``Tensor.__array_ufunc__``."""
    name = ufunc.__name__ if method == "__call__" else f"{ufunc.__name__}.{method}"
    if not options and method == "__call__":
        return _called(ufunc, name, inputs, options)
    if method == "at":
        return _at(ufunc, *inputs)
    out = _targets(options.pop("out", None))
    if out:  # the tape may save their values before the write
        inputs = tuple([_apart(x, out) for x in inputs])
    options = {key: value for key, value in options.items() if key not in _WITHOUT_MEANING}
    where = options.pop("where", True) if method == "__call__" else True
    if where is not True and not out:
        raise refused(name, "where= is offered with out=, whose values stay elsewhere, only")
    casting = options.get("casting", "same_kind")
    result = _METHODS[method](ufunc, name, inputs, options)
    if method != "__call__":
        _check_shapes(name, out, result)
    return _written(name, out, result, where, casting)


# Results always have memory order C, and are always tensors.
_WITHOUT_MEANING = frozenset(("subok", "order"))


def _apart(x: Any, out: tuple[Any, ...]) -> Any:
    """An operand, copied if it is a tensor of ``out``."""
    return f.clone(x) if isinstance(x, TensorBase) and any(x is y for y in out) else x  # type: ignore[arg-type]


def _targets(out: Any) -> tuple[Any, ...]:
    """The tensors and arrays to write into; None for a new result."""
    if out is None:
        return ()
    out = out if isinstance(out, tuple) else (out,)
    return out if any(x is not None for x in out) else ()


def _written(
    name: str, out: tuple[Any, ...], result: Any, where: Any = True, casting: str = "same_kind"
) -> Any:
    """The result, written over ``out`` if it is given."""
    if not out:
        return result
    results = result if isinstance(result, tuple) else (result,)
    both = zip(out, results, strict=True)
    found = [y if x is None else _over(name, x, y, where, casting) for x, y in both]
    return tuple(found) if isinstance(result, tuple) else found[0]


def _check_shapes(name: str, out: tuple[Any, ...], result: Any) -> None:
    """Raise an error if a result must not be broadcast to ``out``: only elementwise results are."""
    if out and result.shape != out[0].shape:
        raise ValueError(
            f"[numpy.{name}] the result of shape {result.shape} does not fit out= of shape "
            f"{out[0].shape}"
        )


def _over(name: str, target: Any, result: Any, where: Any, casting: str) -> Any:
    check_cast(name, result.dtype, target.dtype, casting)
    if isinstance(target, np.ndarray):
        if result._edge is not None:
            raise refused(name, "a result that needs a graph cannot go into an array (out=)")
        np.copyto(target, values_of(result), "unsafe", values_of(where))
        return target
    if where is not True:
        result = f.where(strong_operand(f"numpy.{name}", where), result, f.clone(target))
    return write_over(name, target, result)


def _called(ufunc: Any, name: str, inputs: tuple[Any, ...], options: dict[str, Any]) -> Any:
    function = _found(name)
    if function is None:
        raise refused(name, "not offered for tensors")
    if not options:
        return function(*inputs)
    dtype, casting = options.pop("dtype", None), options.pop("casting", "same_kind")
    if dtype is not None:
        inputs = _cast(ufunc, name, inputs, as_dtype(dtype), casting)
    if "axis" in options and name == "vecdot":
        options["dim"] = options.pop("axis")
    elif options:
        raise refused(name, f"{', '.join(options)}= is not offered for tensors")
    return function(*inputs, **options)


def _cast(ufunc: Any, name: str, inputs: Any, dtype: Any, casting: str) -> tuple[Any, ...]:
    """The operands cast to the dtype of computation. For a predicate ``dtype`` is the result's."""
    if {"d->?", "dd->?"} & set(ufunc.types):
        if dtype is not bool_:
            raise TypeError(f"[numpy.{name}] the result is of bools, not of {dtype.name}")
        return tuple(inputs)
    found = []
    for x in inputs:
        if isinstance(x, (TensorBase, np.ndarray)):
            x = strong_operand(f"numpy.{name}", x)
            check_cast(name, x.dtype, dtype, casting)
        found.append(f.to(strong_operand(f"numpy.{name}", x), dtype))
    return tuple(found)


def _outer(ufunc: Any, name: str, inputs: tuple[Any, ...], options: dict[str, Any]) -> Any:
    name = ufunc.__name__
    a, b = (strong_operand(name, x) for x in inputs)
    return _called(ufunc, name, (a.reshape(a.shape + (1,) * b.ndim), b), options)


def _reduced(ufunc: Any, name: str, inputs: tuple[Any, ...], options: dict[str, Any]) -> Any:
    return _along(name, _reducing().REDUCE.get(ufunc.__name__), inputs, options)


def _accumulated(ufunc: Any, name: str, inputs: tuple[Any, ...], options: dict[str, Any]) -> Any:
    return _along(name, _reducing().ACCUMULATE.get(ufunc.__name__), inputs, options)


def _reducing() -> Any:
    from minigrad.interop.numpy_functions import reducing

    return reducing


def _along(name: str, ours: Any, inputs: tuple[Any, ...], options: dict[str, Any]) -> Any:
    if ours is None:
        raise refused(name, "not offered for tensors")
    axis = options.pop("axis", 0)
    named = {key: value for key, value in options.items() if value is not None}
    _check_parameters(name, ours, inputs, {"axis": axis, **named})
    return ours(*inputs, axis=axis, **named)


def _not_offered(ufunc: Any, name: str, inputs: tuple[Any, ...], options: dict[str, Any]) -> Any:
    raise refused(name, "not offered for tensors")


_METHODS = {
    "__call__": _called,
    "outer": _outer,
    "reduce": _reduced,
    "accumulate": _accumulated,
    "reduceat": _not_offered,
}


# ---- ufunc.at ------------------------------------------------------------------------------------

_AT = {"multiply": "prod", "maximum": "amax", "minimum": "amin"}


def _at(ufunc: Any, target: Any, index: Any, *values: Any) -> None:
    """``ufunc.at``, in place on the tape. A repeated position counts each time."""
    name = f"{ufunc.__name__}.at"
    if isinstance(target, TensorBase):
        _at_tensor(ufunc, name, target, values_of(index), values)
    elif any(isinstance(v, TensorBase) and v._edge is not None for v in values):
        raise refused(name, "a tensor that requires grad cannot be written into an array")
    else:
        ufunc.at(target, values_of(index), *values_of(values))


def _at_tensor(ufunc: Any, name: str, target: Any, index: Any, values: tuple[Any, ...]) -> None:
    places = np.arange(target.size).reshape(target.shape)[index]
    given = tensor_operands(f"numpy.{name}", target, *values)[1:]
    for v in given:
        check_cast(name, v.dtype, target.dtype)
    given = [f.ravel(f.broadcast_to(f.to(v, target.dtype), places.shape)) for v in given]
    line = f.ravel(f.clone(target))  # a copy, which the tape may save
    line = _at_places(ufunc, name, line, places.ravel(), given)
    write_over(name, target, f.reshape(line, target.shape))


def _at_places(ufunc: Any, name: str, line: Any, places: Any, given: list[Any]) -> Any:
    """A vector with the function applied at positions, one after another."""
    if ufunc.__name__ in ("add", "subtract"):
        sign = 1 if ufunc.__name__ == "add" else -1
        return f.index_add(line, 0, creation.tensor(places), given[0], alpha=sign)
    if ufunc.__name__ in _AT:
        return f.scatter_reduce(line, 0, creation.tensor(places), given[0], _AT[ufunc.__name__])
    for turn in _turns(places):
        at, entries = creation.tensor(places[turn]), creation.tensor(turn)
        made = _called(ufunc, ufunc.__name__, (line[at], *[v[entries] for v in given]), {})
        check_cast(name, made.dtype, line.dtype)
        line = f.index_put(line, [at], made)
    return line


def _turns(places: Any) -> list[Any]:
    """The entries of ``places`` in groups without repetition, in order of occurrence."""
    order = np.argsort(places, kind="stable")
    line = places[order]
    first = np.concatenate([[0], np.flatnonzero(np.diff(line)) + 1]) if line.size else line
    rank = np.arange(line.size) - np.repeat(first, np.diff([*first, line.size]))
    return [order[rank == k] for k in range(int(rank.max(initial=-1)) + 1)]


# ---- other functions -----------------------------------------------------------------------------


@lru_cache(maxsize=256)
def _signature(function: Any, ours: Callable[..., Any]) -> inspect.Signature:
    """NumPy's signature. Before NumPy 2.4 its C functions have none, and ``ours`` gives it."""
    try:
        return inspect.signature(function)
    except ValueError:
        return inspect.signature(ours)


_own_signature = lru_cache(maxsize=512)(inspect.signature)


def _check_parameters(name: str, ours: Any, positional: Any, named: dict[str, Any]) -> None:
    """Raise a TypeError that names NumPy's function, for arguments that ``ours`` lacks."""
    try:
        _own_signature(ours).bind(*positional, **named)
    except TypeError as error:
        raise refused(
            name, f"{error} (its arguments are offered as far as ours have them)"
        ) from None


def array_function(function: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """The body of ``Tensor.__array_function__``."""
    module = (getattr(function, "__module__", None) or "").removeprefix("numpy").lstrip(".")
    name = f"{module}.{function.__name__}" if module else function.__name__
    from minigrad.interop.numpy_functions.table import implementation

    ours = implementation(function)
    if ours is None:
        raise refused(name, "not offered for tensors")
    signature = _signature(function, ours)
    positional: list[Any] = []
    named: dict[str, Any] = {}
    out: tuple[Any, ...] = ()
    try:
        bound = signature.bind(*args, **options)
    except TypeError as error:
        raise refused(
            name, f"{error} (its arguments are offered as far as ours have them)"
        ) from None
    for place, (parameter, value) in enumerate(bound.arguments.items()):
        declared = signature.parameters[parameter]
        if parameter == "out":
            out = _targets(value)
        elif declared.kind is declared.VAR_POSITIONAL:
            positional += value
        elif declared.kind is declared.VAR_KEYWORD:
            named.update(value)
        elif place == 0 or declared.default is declared.empty:
            positional.append(value)
        elif value is not declared.default:
            named[parameter] = value
    _check_parameters(name, ours, positional, named)
    result = ours(*[_operand(_apart(x, out)) for x in positional], **named)
    _check_shapes(name, out, result)
    return _written(name, out, result)


def _operand(x: Any) -> Any:
    """An array beside a tensor becomes a tensor. Other values are unchanged."""
    return creation.asarray(x) if isinstance(x, np.ndarray) else x


def is_ours(types: Any) -> bool:
    """True if NumPy's dispatch is between tensors and arrays only."""
    return all(issubclass(t, (TensorBase, np.ndarray)) for t in types)
