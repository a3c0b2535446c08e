"""Functions for fractional max pooling (Graham, Fractional Max-Pooling, 2014).

The i-th window starts at ``int((i + u) * step) - int(u * step)``. u is drawn for each sample,
channel and dimension. The last window ends with the input.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from minigrad import functions as f
from minigrad.functions.arguments import real, tensor_operand
from minigrad.functions.creation import arange, asarray, full_like
from minigrad.nn.functional.spatial import per_axis
from minigrad.random import rand
from minigrad.runtime.dtypes import float64, int64

if TYPE_CHECKING:
    from minigrad._tensor import Tensor

__all__ = ["fractional_max_pool2d", "fractional_max_pool3d"]


def fractional_max_pool2d(
    input: Tensor,
    kernel_size: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Any:
    """The maxima of windows with random steps. The output may have any size.

    ``input`` has shape (N, C, H, W) or (C, H, W). Either ``output_size`` or ``output_ratio`` is
    given. ``output_ratio`` is a fraction of the input's size below 1. The gradient goes to the
    first maximum of a window. With ``return_indices`` the result also has the positions of the
    maxima in each flattened plane. ``_random_samples`` of shape (N, C, 2) are numbers in [0, 1) for
    W and H, used in place of drawn ones.

    Raises ValueError if shapes or sizes do not fit, or unless exactly one of the sizes is given.

    >>> import minigrad as mg
    >>> fractional_max_pool2d(mg.ones(1, 1, 7, 7), 2, output_size=3).shape
    (1, 1, 3, 3)
    """
    size = output_size, output_ratio
    return _pool(
        "fractional_max_pool2d", 2, input, kernel_size, *size, return_indices, _random_samples
    )


def fractional_max_pool3d(
    input: Tensor,
    kernel_size: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Any:
    """Like :func:`fractional_max_pool2d`, over three spatial dimensions.

    ``_random_samples`` have shape (N, C, 3), in the order of the dimensions.
    """
    size = output_size, output_ratio
    return _pool(
        "fractional_max_pool3d", 3, input, kernel_size, *size, return_indices, _random_samples
    )


def _pool(
    op: str, axes: int, given: Any, kernel: Any, size: Any, ratio: Any, indices: bool, samples: Any
) -> Any:
    x = tensor_operand(op, given)
    if x.ndim not in (axes + 1, axes + 2):
        raise ValueError(f"[{op}] the input has {x.ndim} dimensions: {axes + 1} or {axes + 2}")
    batched = x if x.ndim == axes + 2 else f.unsqueeze(x, 0)
    window = per_axis(op, "kernel_size", kernel, axes, 1)
    sizes = batched.shape[2:]
    outputs = _outputs(op, axes, sizes, size, ratio)
    for n, k, out in zip(sizes, window, outputs, strict=True):
        if out + k - 1 > n:
            raise ValueError(
                f"[{op}] {out} windows of {k} do not fit into a size of {n}: make them smaller"
            )
    drawn = _samples(op, axes, batched, samples)
    flat = _places(batched.shape, window, outputs, drawn)
    planes = f.flatten(batched, 2)
    windows = f.gather(planes, 2, f.flatten(flat, 2))
    found = f.max(f.reshape(windows, flat.shape), -1)
    values = found.values if x.ndim == axes + 2 else f.squeeze(found.values, 0)
    if not indices:
        return values
    where = f.squeeze(f.gather(flat, -1, f.unsqueeze(found.indices, -1)), -1)
    return values, where if x.ndim == axes + 2 else f.squeeze(where, 0)


def _outputs(op: str, axes: int, sizes: Any, size: Any, ratio: Any) -> tuple[int, ...]:
    """The sizes of the output."""
    if (size is None) == (ratio is None):
        raise ValueError(f"[{op}] give output_size or output_ratio, one of both")
    if size is not None:
        return per_axis(op, "output_size", size, axes, 1)
    ratios = ratio if isinstance(ratio, (tuple, list)) else (ratio,) * axes
    parts = [real(op, "output_ratio", part) for part in ratios]
    if len(parts) != axes or not all(0 < part < 1 for part in parts):
        raise ValueError(f"[{op}] output_ratio is {ratio}, but must be between 0 and 1")
    return tuple([int(n * part) for n, part in zip(sizes, parts, strict=True)])


def _samples(op: str, axes: int, x: Tensor, samples: Any) -> Tensor:
    """The given or drawn numbers in [0, 1) for each plane and dimension."""
    shape = (*x.shape[:2], axes)
    if samples is None:
        return rand(shape, dtype=float64)
    found = f.to(asarray(samples).detach(), float64)
    if found.shape != shape:
        raise ValueError(f"[{op}] _random_samples of shape {found.shape}, but {shape} is needed")
    return found


def _places(shape: Any, window: Any, outputs: Any, samples: Tensor) -> Tensor:
    """The positions in a flattened plane of each window's elements: (N, C, *outputs, elements)."""
    axes = len(window)
    found: Any = None
    for d, (n, k, out) in enumerate(zip(shape[2:], window, outputs, strict=True)):
        u = f.unsqueeze(samples[:, :, 1 - d if axes == 2 else d], -1)  # in PyTorch's order
        step = (n - k) / (out - 1) if out > 1 else 0.0
        start = f.sub(_whole((arange(out) + u) * step), _whole(u * step))
        start = f.cat([start[:, :, :-1], full_like(start[:, :, -1:], n - k)], -1)
        along = f.unsqueeze(start, -1) + arange(k)  # (N, C, out, k)
        ones = (1,) * axes
        split = (*ones[:d], out, *ones[d + 1 :], *ones[:d], k, *ones[d + 1 :])
        along = f.reshape(along, (*along.shape[:2], *split))
        found = along if found is None else found * n + along
    return f.flatten(found, 2 + axes)


def _whole(x: Tensor) -> Tensor:
    return f.to(f.floor(x), int64)
