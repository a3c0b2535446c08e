"""Functions of old PyTorch programs: ``range``, ``svd`` and the default tensor type."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from minigrad import linalg
from minigrad._tensor import Tensor
from minigrad._tensor.typed_classes import dtype_of_class
from minigrad.functions.creation import arange, require_grad
from minigrad.runtime.devices import on_cpu
from minigrad.runtime.dtypes import default_dtype, float64, set_default_dtype

__all__ = ["range", "set_default_tensor_type", "svd"]


def set_default_tensor_type(t: Any) -> None:
    """Make the dtype of ``FloatTensor`` or ``DoubleTensor`` the default dtype of new floats.

    A name may stand for the class: "torch.DoubleTensor". See :func:`minigrad.set_default_dtype`.
    """
    set_default_dtype(dtype_of_class(t))


def range(  # noqa: A001 - PyTorch's name
    start: float,
    end: float,
    step: float = 1,
    *,
    dtype: Any = None,
    requires_grad: bool = False,
    device: Any = None,
) -> Tensor:
    """start, start + step, ... up to and including end, as floats. ``arange`` excludes the end.

    >>> import minigrad as mg
    >>> mg.range(1, 3)
    tensor([1., 2., 3.])
    """
    on_cpu(device)
    first, last, by = float(start), float(end), float(step)
    if not by or not all(map(math.isfinite, (first, last, by))) or (last - first) / by < 0:
        raise ValueError(f"[range] cannot count from {start} to {end} by {step}")
    count = math.floor((last - first) / by) + 1
    found = arange(count, dtype=float64) * by + first
    made: Any = found.to(default_dtype() if dtype is None else dtype)
    return require_grad(made, requires_grad)


def svd(input: Tensor, some: bool = True, compute_uv: bool = True) -> SVD:
    """U, S and V of a matrix, with the singular values S: ``U @ diag(S) @ V.mT`` is the matrix.

    If ``some`` is False, U and V are square. ``linalg.svd`` gives V transposed.

    >>> import minigrad as mg
    >>> U, S, V = mg.svd(mg.tensor([[3.0, 0.0], [0.0, -2.0]]))
    >>> S
    tensor([3., 2.])
    """
    found = linalg.svd(input, full_matrices=not some)
    u, s, v = found.U, found.S, found.Vh.mT
    return SVD(u, s, v) if compute_uv else SVD(u.detach() * 0, s, v.detach() * 0)


class SVD(NamedTuple):
    """The result of :func:`svd`."""

    U: Tensor
    S: Tensor
    V: Tensor
