"""Helpers for users' distributions, under PyTorch's names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minigrad import functions as f
from minigrad.distributions.continuous import EULER
from minigrad.distributions.discrete import inside
from minigrad.distributions.distribution import floats
from minigrad.distributions.transforms.matrices import lower_matrix, matrix_size, places
from minigrad.functions.grad_modes import enable_grad

__all__ = [
    "broadcast_all",
    "clamp_probs",
    "euler_constant",
    "lazy_property",
    "logits_to_probs",
    "probs_to_logits",
    "tril_matrix_to_vec",
    "vec_to_tril_matrix",
]

euler_constant = EULER


def broadcast_all(*values: Any) -> tuple[Any, ...]:
    """Parameters as tensors of floats, broadcast together. Numbers take the tensors' dtype.

    >>> import minigrad as mg
    >>> broadcast_all(mg.zeros(2), 1)
    (tensor([0., 0.]), tensor([1., 1.]))
    """
    return floats(*values)


def clamp_probs(probs: Any) -> Any:
    """Clamp probabilities p so that log(p) and log(1 - p) are finite."""
    return inside(probs)


def logits_to_probs(logits: Any, is_binary: bool = False) -> Any:
    """sigmoid(logits) if ``is_binary``, else softmax along the last dimension."""
    return f.sigmoid(logits) if is_binary else f.softmax(logits, -1)


def probs_to_logits(probs: Any, is_binary: bool = False) -> Any:
    """log(p / (1 - p)) if ``is_binary``, else log(p)."""
    p = inside(probs)
    return f.log(p) - f.log1p(-p) if is_binary else f.log(p)


class lazy_property:  # noqa: N801 - PyTorch's name
    """A property that is computed at first use, and kept in the instance."""

    def __init__(self, wrapped: Callable[[Any], Any]) -> None:
        self.wrapped = wrapped
        self.__doc__ = wrapped.__doc__

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self
        with enable_grad():
            value = self.wrapped(instance)
        setattr(instance, self.wrapped.__name__, value)
        return value


def vec_to_tril_matrix(vec: Any, diag: int = 0) -> Any:
    """Fill lower triangles with vectors, row by row, up to the diagonal number ``diag``.

    >>> import minigrad as mg
    >>> vec_to_tril_matrix(mg.tensor([1.0, 2.0, 3.0]))
    tensor([[1., 0.],
            [2., 3.]])

    Raises ValueError for a ``diag`` above 0, and for vectors that fill no triangle.
    """
    if diag > 0:
        raise ValueError(f"[vec_to_tril_matrix] diag is {diag}, but must be 0 or less")
    n = matrix_size("vec_to_tril_matrix", vec.shape[-1]) - 1 - diag
    return lower_matrix(vec, n, diag)


def tril_matrix_to_vec(mat: Any, diag: int = 0) -> Any:
    """The lower triangles of square matrices as vectors: the inverse of vec_to_tril_matrix.

    Raises ValueError for a ``diag`` outside the matrix.
    """
    n = mat.shape[-1]
    if not -n <= diag < n:
        raise ValueError(f"[tril_matrix_to_vec] diag is {diag}, but must be from {-n} to {n - 1}")
    return f.reshape(mat, (*mat.shape[:-2], n * n))[..., places(n, diag)]
