"""Functions for convolutions and transposed convolutions.

Kernels read inputs and weights in place, without unfolding. The tape saves only these two. Integers
are convolved exactly, by a matrix product over windows.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from minigrad.functions.arguments import integer, tensor_operand
from minigrad.nn.functional.spatial import Sizes, fit, padded, per_axis, spatial_input
from minigrad.ops.convolution import CONV, CONV_BIAS, CONV_SPREAD, Geometry
from minigrad.ops.window import WINDOWS, Windows
from minigrad.tape.apply import apply

if TYPE_CHECKING:
    from minigrad._tensor import Tensor

__all__ = [
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
]

# ---- arguments -----------------------------------------------------------------------------------


def _batched(op: str, input: Any, axes: int) -> tuple[Tensor, bool]:
    """The input with a batch dimension, and True if it had one."""
    x = spatial_input(op, input, axes)
    return (x, True) if x.ndim == axes + 2 else (x.unsqueeze(0), False)


def _weight(op: str, weight: Any, axes: int, channels: str) -> Tensor:
    w = tensor_operand(op, weight)
    if w.ndim != axes + 2 or min(w.shape[2:]) < 1:
        raise ValueError(
            f"[{op}] the weight has shape {w.shape}, but must have {axes + 2} dimensions, "
            f"({channels}, {axes} of a kernel that is not empty)"
        )
    return w


def _padding(
    op: str, padding: Any, kernel: Sizes, stride: Sizes, dilation: Sizes
) -> tuple[Sizes, Sizes]:
    """Padding before and after. For an odd total, "same" puts more after, as PyTorch does."""
    if not isinstance(padding, str) or padding == "valid":
        both = per_axis(op, "padding", 0 if padding == "valid" else padding, len(kernel), 0)
        return both, both
    if padding != "same":
        raise ValueError(f"[{op}] padding is {padding!r}, but must be 'same', 'valid' or integers")
    if max(stride) > 1:
        raise ValueError(f"[{op}] padding 'same' needs stride 1, not {stride}")
    total = [d * (k - 1) for k, d in zip(kernel, dilation, strict=True)]
    return tuple([n // 2 for n in total]), tuple([n - n // 2 for n in total])


def _bias(op: str, bias: Any, channels: int) -> Tensor:
    b = tensor_operand(op, bias)
    if b.shape != (channels,):
        raise ValueError(
            f"[{op}] the bias has shape {b.shape}, but must be ({channels},): "
            "one number an output channel"
        )
    return b


def _across(b: Tensor, axes: int) -> Tensor:
    """The bias, reshaped to broadcast to an output with so many spatial dimensions."""
    return b.reshape(b.shape[0], *(1,) * axes)


@lru_cache(512)
def _geometry(
    op: str,
    shape: Sizes,
    weight: Sizes,
    stride: Sizes,
    padding: tuple[Sizes, Sizes],
    dilation: Sizes,
    groups: int,
) -> Geometry:
    """The geometry of a convolution. Raises ValueError if weight and input do not fit."""
    if shape[1] != weight[1] * groups:
        raise ValueError(
            f"[{op}] the input {shape} has {shape[1]} channels, but the weight {weight} with "
            f"groups={groups} takes {weight[1] * groups}"
        )
    if weight[0] % groups:
        raise ValueError(
            f"[{op}] groups={groups} does not divide the {weight[0]} output channels of the "
            f"weight {weight}"
        )
    around = zip(shape[2:], *padding, strict=True)
    wide = tuple([n + before + after for n, before, after in around])
    at = fit(op, wide, weight[2:], stride, dilation)
    return Geometry(groups, shape[2:], at.kernel, at.counts, stride, dilation, padding[0])


def _convolution(
    axes: int,
    input: Any,
    weight: Any,
    bias: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    groups: Any,
) -> Tensor:
    op = f"conv{axes}d"
    x, batched = _batched(op, input, axes)
    w = _weight(op, weight, axes, "out_channels, in_channels / groups")
    steps = per_axis(op, "stride", stride, axes, 1)
    gaps = per_axis(op, "dilation", dilation, axes, 1)
    parts = integer(op, "groups", groups, 1)
    around = _padding(op, padding, w.shape[2:], steps, gaps)
    at = _geometry(op, x.shape, w.shape, steps, around, gaps, parts)
    b = None if bias is None else _bias(op, bias, w.shape[0])
    if not (x.dtype.is_floating_point or w.dtype.is_floating_point):
        y = _of_integers(padded(x, *around), w, at)
        y = y if b is None else y + _across(b, axes)
    elif b is None:
        y = apply(CONV, (x, w), (at,))
    else:
        y = apply(CONV_BIAS, (x, w, b), (at,))
    return y if batched else y.squeeze(0)


def _of_integers(x: Tensor, weight: Tensor, at: Geometry) -> Tensor:
    """The convolution of integers x (N, C, *sizes) with a weight (O, C / groups, *kernel).

    Each group is one matrix product of shapes (O / groups, C / groups * kernel) and (C / groups *
    kernel, N * windows).
    """
    out_channels, inner = weight.shape[0], math.prod(weight.shape[1:])
    axes, batch = len(at.counts), x.shape[0]
    seen = apply(WINDOWS, (x,), (Windows(at.counts, at.kernel, at.stride, at.dilation),))
    inside, over = range(2 + axes, 2 + 2 * axes), range(2, 2 + axes)
    columns = seen.permute(1, *inside, 0, *over)
    columns = columns.reshape(at.groups, inner, batch * math.prod(at.counts))
    rows = weight.reshape(at.groups, out_channels // at.groups, inner)
    y = (rows @ columns).reshape(out_channels, batch, *at.counts)
    return y.transpose(0, 1).contiguous()


def _transposed(
    axes: int,
    input: Any,
    weight: Any,
    bias: Any,
    stride: Any,
    padding: Any,
    output_padding: Any,
    groups: Any,
    dilation: Any,
) -> Tensor:
    op = f"conv_transpose{axes}d"
    x, batched = _batched(op, input, axes)
    w = _weight(op, weight, axes, "in_channels, out_channels / groups")
    steps = per_axis(op, "stride", stride, axes, 1)
    gaps = per_axis(op, "dilation", dilation, axes, 1)
    cut = per_axis(op, "padding", padding, axes, 0)
    extra = per_axis(op, "output_padding", output_padding, axes, 0)
    parts = integer(op, "groups", groups, 1)
    if not (x.dtype.is_floating_point or w.dtype.is_floating_point):
        raise TypeError(f"[{op}] offered for floats, not {x.dtype.name} and {w.dtype.name}")
    if x.shape[1] != w.shape[0] or x.shape[1] % parts:
        raise ValueError(
            f"[{op}] the input {x.shape} has {x.shape[1]} channels, the weight {w.shape} takes "
            f"{w.shape[0]}, in groups={parts}: the two must agree and the groups divide them"
        )
    for e, s, d in zip(extra, steps, gaps, strict=True):
        if e >= max(s, d):
            raise ValueError(
                f"[{op}] output_padding {e} must be smaller than stride {s} or dilation {d}"
            )
    kernel, count = w.shape[2:], x.shape[2:]
    along = zip(count, kernel, steps, gaps, cut, extra, strict=True)
    sizes = tuple([max(n - 1, 0) * s + d * (k - 1) + 1 - 2 * c + e for n, k, s, d, c, e in along])
    if min(sizes) < 0 or min(count) < 1:
        raise ValueError(
            f"[{op}] the output would have spatial size {sizes}, from {count} by a kernel "
            f"{kernel} with padding {cut}: neither may be less than nothing, nor the input empty"
        )
    y = apply(CONV_SPREAD, (x, w), (Geometry(parts, sizes, kernel, count, steps, gaps, cut),))
    if bias is not None:
        y = y + _across(_bias(op, bias, y.shape[1]), axes)
    return y if batched else y.squeeze(0)


# ---- public --------------------------------------------------------------------------------------


def conv1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """Like :func:`conv2d`, over one spatial dimension: shapes (N, C, L) and (O, C / groups, K).

    >>> import minigrad as mg
    >>> conv1d(mg.tensor([[1.0, 2.0, 4.0, 8.0]]), mg.tensor([[[-1.0, 1.0]]])).tolist()
    [[1.0, 2.0, 4.0]]
    """
    return _convolution(1, input, weight, bias, stride, padding, dilation, groups)


def conv2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """The cross-correlation of images with kernels.

    ``y[n, o, i, j] = bias[o] + sum over c, k, l of w[o, c, k, l] * x[n, c, i*s + k*d, j*s + l*d]``.

    ``input`` has shape (N, C, H, W) or (C, H, W), ``weight`` (O, C / groups, K, L), ``bias`` (O,).
    ``stride`` s, ``dilation`` d and ``padding`` are an integer or one for each dimension.
    ``padding`` is the number of zeros on both sides. It may also be "valid" for none, or "same" for
    an output of the input's size. "same" needs stride 1. It puts the larger half of an odd number
    of zeros after.

    The output has ``(H + 2 * padding - d * (K - 1) - 1) // s + 1`` rows. Each of ``groups`` equal
    parts of the input channels makes its part of the output channels.

    Raises ValueError if shapes and arguments do not fit, or no window fits into the input.

    >>> import minigrad as mg
    >>> conv2d(mg.ones(1, 3, 3), mg.ones(1, 1, 2, 2), padding="same").tolist()
    [[[4.0, 4.0, 2.0], [4.0, 4.0, 2.0], [2.0, 2.0, 1.0]]]
    """
    return _convolution(2, input, weight, bias, stride, padding, dilation, groups)


def conv3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """Like :func:`conv2d`, over three spatial dimensions: the input has shape (N, C, D, H, W)."""
    return _convolution(3, input, weight, bias, stride, padding, dilation, groups)


def conv_transpose1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> Tensor:
    """Like :func:`conv_transpose2d`, over one spatial dimension.

    >>> import minigrad as mg
    >>> conv_transpose1d(mg.tensor([[1.0, 2.0]]), mg.tensor([[[1.0, 10.0]]]), stride=2).tolist()
    [[1.0, 10.0, 2.0, 20.0]]
    """
    return _transposed(1, input, weight, bias, stride, padding, output_padding, groups, dilation)


def conv_transpose2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> Tensor:
    """The transpose of :func:`conv2d`: conv2d's gradient with respect to its input.

    ``y[n, o, i*s + k*d, j*s + l*d] += x[n, c, i, j] * w[c, o, k, l]``, plus the bias.

    ``input`` has shape (N, C, H, W) or (C, H, W), ``weight`` (C, O / groups, K, L), ``bias`` (O,).
    ``padding`` is the number of elements cut off on both sides. conv2d maps several output sizes to
    the input's size. ``output_padding`` chooses among them, and is smaller than the stride or the
    dilation. The output has ``(H - 1) * s - 2 * padding + d * (K - 1) + 1 + output_padding`` rows.

    Raises ValueError if shapes and arguments do not fit, or the output would be empty.
    """
    return _transposed(2, input, weight, bias, stride, padding, output_padding, groups, dilation)


def conv_transpose3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> Tensor:
    """Like :func:`conv_transpose2d`, over three spatial dimensions."""
    return _transposed(3, input, weight, bias, stride, padding, output_padding, groups, dilation)
