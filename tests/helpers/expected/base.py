"""Helpers that several references share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Array = np.ndarray


class Given:
    """A reference that also gets the results.

    It serves results that the arguments do not determine: random draws, and signs of vectors. The
    reference takes the list of results, then the arguments. It returns the expected results for the
    same draws.
    """

    def __init__(self, reference: Callable[..., Any]) -> None:
        self.reference = reference

    def __call__(self, results: list[Any], *args: Any, **kwargs: Any) -> Any:
        return self.reference(results, *args, **kwargs)


def each(names: str, reference: Any) -> dict[str, Any]:
    """One reference for several names."""
    return dict.fromkeys(names.split(), reference)


def prefixed(prefix: str, references: dict[str, Any]) -> dict[str, Any]:
    """References under their full names."""
    return {prefix + name: f for name, f in references.items()}


def axes(dim: Any) -> Any:
    """``dim`` as NumPy's axis."""
    return tuple(dim) if isinstance(dim, (list, tuple)) else dim


def per_line(f: Callable[[Array], Any]) -> Callable[..., Any]:
    """A reference that applies ``f`` to each line along ``dim``, or to all elements."""

    def reference(x: Array, dim: Any = None, keepdim: bool = False) -> Any:
        if dim is None:
            y = np.asarray(f(x.ravel()))
            return y.reshape((1,) * x.ndim) if keepdim else y
        y = np.apply_along_axis(f, dim, x)
        return np.expand_dims(y, dim) if keepdim else y

    return reference


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def log_softmax(x: Any, dim: Any = None, dtype: Any = None, where: Any = True) -> Any:
    x = np.where(where, x, -np.inf)
    z = x - x.max(dim, keepdims=True)
    return z - np.log(np.exp(z).sum(dim, keepdims=True))


def softmax(x: Any, dim: Any = None, dtype: Any = None, where: Any = True) -> Any:
    return np.exp(log_softmax(x, dim, dtype, where))
