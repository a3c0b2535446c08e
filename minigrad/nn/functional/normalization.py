"""Functions for normalisation to mean 0 and variance 1, or to length 1, over some dimensions.

Variances are computed from deviations from the mean, so that a large mean costs no digits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from minigrad import functions as f
from minigrad.functions.arguments import integer, tensor_operand
from minigrad.functions.grad_modes import no_grad
from minigrad.nn.functional.spatial import Sizes, check_places, require_floats
from minigrad.ops.normalization import CHANNEL_NORM, LAYER_NORM, RMS_NORM
from minigrad.ops.reduction import UNITS, deviations
from minigrad.ops.table import Row
from minigrad.ops.window import POOL_SUM, PoolingWindows
from minigrad.runtime.batched import BatchedOperandError, BatchedValueError, by_rules
from minigrad.runtime.dtypes import float32
from minigrad.runtime.native import call, kernels
from minigrad.runtime.recorders import cached
from minigrad.tape.apply import apply
from minigrad.tape.tensor_base import wrap
from minigrad.tape.writing import write

if TYPE_CHECKING:
    from minigrad._tensor import Tensor

__all__ = [
    "batch_norm",
    "group_norm",
    "instance_norm",
    "layer_norm",
    "local_response_norm",
    "normalize",
    "rms_norm",
]

# ---- what they share -----------------------------------------------------------------------------


def _input(op: str, x: Any, least: int) -> Tensor:
    x = require_floats(op, tensor_operand(op, x))
    if x.ndim < least:
        raise ValueError(
            f"[{op}] the input has shape {x.shape}, but must have at least {least} dimensions: "
            "(batch, channels, ...)"
        )
    return x


def _of_shape(op: str, name: str, value: Any, shape: Sizes) -> Tensor | None:
    """An optional tensor argument. Raises ValueError if it has another shape."""
    if value is None:
        return None
    found = tensor_operand(op, value)
    if found.shape != shape:
        raise ValueError(f"[{op}] {name} has shape {found.shape}, but must be {shape}")
    return found


def _standardised(x: Tensor, mean: Tensor, var: Tensor, eps: float) -> Tensor:
    return (x - mean) / (var + eps).sqrt()


def _with_care(x: Tensor, axes: Sizes, centred: bool, eps: float) -> Tensor:
    """x normalised over the dimensions. Each set of values is scaled by a power of two."""
    if not x._h.size:
        return x * 1.0
    unit = apply(UNITS, (f.amax(f.abs(x.detach()), axes, True),), (True,))
    near = x * unit
    count = math.prod(x.shape[d] for d in axes)
    if centred:
        root, near = f.std(near, axes, correction=0, keepdim=True), deviations(near, axes)
    else:
        root = f.norm(near, 2.0, axes, True) / count**0.5
    return near / f.hypot(root, unit * eps**0.5)


def _affine(y: Tensor, w: Tensor | None, b: Tensor | None, after: int) -> Tensor:
    """``y * w + b``, where y has ``after`` more dimensions at the end than w and b."""
    if w is not None:
        y = y * w.reshape(w.shape + (1,) * after)
    return y if b is None else y + b.reshape(b.shape + (1,) * after)


# Statistics that kernels save for each set of values (minigrad.h): positions of mean and variance.
_KEPT, _MEAN, _VAR = 4, 0, 3


@cached(16)
def _neutral(value: float, shape: Sizes, code: int) -> Tensor:
    """The weight of ones, or bias of zeros, that replaces a missing one."""
    return wrap(call(kernels.full, code, shape, value, 0))


def _fused(
    row: Row, x: Tensor, w: Tensor | None, b: Tensor | None, shape: Sizes, sets: int, *args: Any
) -> tuple[Tensor, Tensor] | None:
    """Apply a row of normalisation to x.

    Returns the result and the statistics of the sets of values.

    None if the kernel does not take the operands: empty ones, or several dtypes.
    """
    h = x._h
    code = h.dtype
    if w is None:
        w = _neutral(1.0, shape, code)
    if b is None:
        b = _neutral(0.0, shape, code)
    if not h.size or w._h.dtype != code or b._h.dtype != code:
        return None
    stats = wrap(call(kernels.empty, code, (_KEPT, sets)))
    try:
        return apply(row, (x, w, b), (stats, *args)), stats
    except BatchedOperandError:  # vmap: by other operations
        return None


def _mended(
    made: tuple[Tensor, Tensor], eps: float, sets: Sizes, careful: Callable[[], Tensor]
) -> Tensor:
    """The fused result, with sets of values computed again if their squares overflowed.

    ``careful`` computes the result without overflow. ``sets`` is the shape in which the statistics
    broadcast to the result.
    """
    y, stats = made
    var, most = stats[_VAR], 2.0**100 if y.dtype is float32 else 2.0**960
    fine = (var <= most) & ((var > 1.0 / most) | (eps > 1.0 / most))
    return f.where(fine.reshape(sets), y, careful())


def _track(
    mean: Tensor | None, var: Tensor | None, stats: Tensor, momentum: float, count: int
) -> None:
    """Move running statistics towards those of a batch, in place."""
    if mean is not None:
        write(kernels.norm_track, mean, mean._h, stats._h, False, momentum, 1.0)
    if var is not None:
        unbiased = count / (count - 1)
        write(kernels.norm_track, var, var._h, stats._h, True, momentum, unbiased)


def _update(running: Tensor | None, now: Tensor, momentum: float) -> None:
    """Move a running statistic towards this batch's statistic, in place."""
    if running is None:
        return
    with no_grad():
        running.copy_(running * (1.0 - momentum) + now.reshape(running.shape) * momentum)


# ---- public --------------------------------------------------------------------------------------


def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Normalise each channel of a batch: ``(x - mean) / sqrt(var + eps) * weight + bias``.

    ``input`` has shape (N, C, ...), the other tensors (C,). With ``training`` the mean and the
    variance, divided by n, are those of the batch. The running statistics, unless None, are then
    updated in place: ``running = (1 - momentum) * running + momentum * batch``. The running
    variance uses the batch variance divided by n - 1. An empty batch changes nothing. Without
    ``training`` the running statistics are used. The source is Ioffe and Szegedy 2015.

    Raises ValueError if shapes do not fit. Raises it also with ``training`` for a batch of one
    value per channel, and without ``training`` for missing running statistics. Raises TypeError
    unless the dtype is a float.
    """
    op = "batch_norm"
    x = _input(op, input, 2)
    channels = x.shape[1:2]
    mean = _of_shape(op, "running_mean", running_mean, channels)
    var = _of_shape(op, "running_var", running_var, channels)
    w, b = _of_shape(op, "weight", weight, channels), _of_shape(op, "bias", bias, channels)
    if not training:
        if mean is None or var is None:
            raise ValueError(f"[{op}] running_mean and running_var are needed without training")
        return _by_given(x, mean, var, w, b, eps)
    count = x.shape[0] * math.prod(x.shape[2:])
    if count == 1:
        raise ValueError(
            f"[{op}] the input {x.shape} has one value a channel: training needs several"
        )
    same = all(s is None or s.dtype is x.dtype for s in (mean, var))
    made = _fused(CHANNEL_NORM, x, w, b, channels, channels[0], 0, None, eps) if same else None
    if made is not None and not call(kernels.norm_lost, made[1]._h, eps):
        _track(mean, var, made[1], momentum, count)
        return made[0]
    axes = (0, *range(2, x.ndim))

    def careful() -> Tensor:
        return _affine(_with_care(x, axes, True, eps), w, b, x.ndim - 2)

    own_mean, own_var = x.mean(axes, True), x.var(axes, correction=0, keepdim=True)
    sets = channels + (1,) * (x.ndim - 2)
    y = careful() if made is None else _mended(made, eps, sets, careful)
    if count:
        _update(mean, own_mean, momentum)
        _update(var, own_var * (count / (count - 1)), momentum)
    return y


def _by_given(
    x: Tensor, mean: Tensor, var: Tensor, w: Tensor | None, b: Tensor | None, eps: float
) -> Tensor:
    """Normalise the channels of x by the given statistics."""
    plain = mean._edge is None and var._edge is None
    if plain and mean.dtype is x.dtype and var.dtype is x.dtype:
        given = (mean._h, var._h)
        made = _fused(CHANNEL_NORM, x, w, b, mean.shape, mean._h.size, 0, given, eps)
        if made is not None:
            return made[0]
    over = mean.shape + (1,) * (x.ndim - 2)
    y = _standardised(x, mean.reshape(over), var.reshape(over), eps)
    return _affine(y, w, b, x.ndim - 2)


def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Normalise each channel of each sample by its own mean and variance over space.

    Then the channels are multiplied by ``weight``, and ``bias`` is added (Ulyanov, Vedaldi and
    Lempitsky 2016). ``input`` has shape (N, C, ...) with space after the channels, the other
    tensors (C,). The running statistics, unless None, move towards the samples' statistics,
    averaged over the batch. If ``use_input_stats`` is False, the running statistics are used. See
    :func:`batch_norm`.

    Raises ValueError if shapes do not fit, or space has only one element.
    """
    op = "instance_norm"
    x = _input(op, input, 3 if use_input_stats else 2)
    if not use_input_stats:
        return batch_norm(x, running_mean, running_var, weight, bias, False, momentum, eps)
    channels, count = x.shape[1:2], math.prod(x.shape[2:])
    mean = _of_shape(op, "running_mean", running_mean, channels)
    var = _of_shape(op, "running_var", running_var, channels)
    if count == 1:
        raise ValueError(f"[{op}] the input {x.shape} has one element of space: several are needed")
    w, b = _of_shape(op, "weight", weight, channels), _of_shape(op, "bias", bias, channels)
    groups = channels[0]
    made = _fused(CHANNEL_NORM, x, w, b, channels, x.shape[0] * groups, groups, None, eps)
    axes = tuple(range(2, x.ndim))

    def careful() -> Tensor:
        return _affine(_with_care(x, axes, True, eps), w, b, x.ndim - 2)

    if made is not None and not call(kernels.norm_lost, made[1]._h, eps):
        y, stats = made
        own_mean, own_var = (stats[k].reshape(x.shape[:2]) for k in (_MEAN, _VAR))
    else:
        own_mean, own_var = x.mean(axes, True), x.var(axes, correction=0, keepdim=True)
        sets = x.shape[:2] + (1,) * len(axes)
        y = careful() if made is None else _mended(made, eps, sets, careful)
    if x._h.size:
        _update(mean, own_mean.detach().mean(0), momentum)
        _update(var, own_var.detach().mean(0) * (count / (count - 1)), momentum)
    return y


def layer_norm(
    input: Tensor,
    normalized_shape: Any,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """``(x - mean) / sqrt(var + eps) * weight + bias`` over the last dimensions.

    ``normalized_shape`` has the sizes of these dimensions: an integer or several. It is also the
    shape of ``weight`` and ``bias``. The variance is divided by n (Ba, Kiros and Hinton 2016).
    Raises ValueError if shapes do not fit, TypeError unless the dtype is a float.

    >>> import minigrad as mg
    >>> layer_norm(mg.tensor([[1.0, 3.0], [10.0, 30.0]]), 2, eps=0.0).tolist()
    [[-1.0, 1.0], [-1.0, 1.0]]
    """
    op = "layer_norm"
    x, shape = _last_dims(op, input, normalized_shape)
    w, b = _of_shape(op, "weight", weight, shape), _of_shape(op, "bias", bias, shape)
    made = _fused(LAYER_NORM, x, w, b, shape, _rows(x, shape), eps)
    if made is not None and not call(kernels.norm_lost, made[1]._h, eps):
        return made[0]

    def careful() -> Tensor:
        return _affine(_with_care(x, _axes(x, shape), True, eps), w, b, 0)

    return careful() if made is None else _mended(made, eps, _row_sets(x, shape), careful)


def rms_norm(
    input: Tensor,
    normalized_shape: Any,
    weight: Tensor | None = None,
    eps: float | None = None,
) -> Tensor:
    """``x / sqrt(mean(x**2) + eps) * weight`` over the last dimensions (Zhang and Sennrich 2019).

    ``eps`` is by default the machine epsilon of x's dtype. Arguments and errors are those of
    :func:`layer_norm`.

    >>> import minigrad as mg
    >>> rms_norm(mg.tensor([1.0, 7.0]), 2, eps=0.0).tolist()
    [0.20000000298023224, 1.399999976158142]
    """
    op = "rms_norm"
    x, shape = _last_dims(op, input, normalized_shape)
    if eps is None:
        eps = 2.0**-23 if x.dtype is float32 else 2.0**-52
    w = _of_shape(op, "weight", weight, shape)
    made = _fused(RMS_NORM, x, w, None, shape, _rows(x, shape), eps)
    if made is not None and not call(kernels.norm_lost, made[1]._h, eps):
        return made[0]
    least = eps

    def careful() -> Tensor:
        return _affine(_with_care(x, _axes(x, shape), False, least), w, None, 0)

    return careful() if made is None else _mended(made, eps, _row_sets(x, shape), careful)


def _last_dims(op: str, input: Any, normalized_shape: Any) -> tuple[Tensor, Sizes]:
    """The input, and the sizes of its last dimensions."""
    x = _input(op, input, 0)
    given = normalized_shape if isinstance(normalized_shape, (tuple, list)) else (normalized_shape,)
    shape = tuple([n if type(n) is int else integer(op, "normalized_shape", n, 0) for n in given])
    if not shape or x.shape[-len(shape) :] != shape:
        raise ValueError(
            f"[{op}] normalized_shape {shape} must be the last sizes of the input {x.shape}"
        )
    return x, shape


def _rows(x: Tensor, shape: Sizes) -> int:
    """The number of rows of this shape in x."""
    return math.prod(x.shape[: x.ndim - len(shape)])


def _axes(x: Tensor, shape: Sizes) -> Sizes:
    """The dimensions of x that make up a row."""
    return tuple(range(x.ndim - len(shape), x.ndim))


def _row_sets(x: Tensor, shape: Sizes) -> Sizes:
    """The shape in which statistics of rows broadcast to x."""
    return x.shape[: x.ndim - len(shape)] + (1,) * len(shape)


def group_norm(
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Normalise each of ``num_groups`` equal groups of a sample's channels.

    Each group is normalised by its mean and variance. Then each channel is multiplied by
    ``weight``, and ``bias`` is added (Wu and He 2018). ``input`` has shape (N, C, ...), the other
    tensors (C,). Raises ValueError if shapes do not fit, the groups do not divide the channels, or
    a single sample has groups of one value. Raises TypeError unless the dtype is a float.
    """
    op = "group_norm"
    x = _input(op, input, 2)
    groups = integer(op, "num_groups", num_groups, 1)
    batch, channels, *space = x.shape
    if channels % groups:
        raise ValueError(f"[{op}] num_groups={groups} does not divide the {channels} channels")
    if batch * channels // groups * math.prod(space) == 1:
        raise ValueError(f"[{op}] the input {x.shape} has one value a group: several are needed")
    sizes = (channels,)
    w, b = _of_shape(op, "weight", weight, sizes), _of_shape(op, "bias", bias, sizes)
    made = _fused(CHANNEL_NORM, x, w, b, sizes, batch * groups, groups, None, eps)
    if made is not None and not call(kernels.norm_lost, made[1]._h, eps):
        return made[0]
    sets = (batch, groups, channels // groups * math.prod(space))

    def careful() -> Tensor:
        y = _with_care(x.reshape(sets), (2,), True, eps).reshape(x.shape)
        return _affine(y, w, b, len(space)).reshape(sets)

    if made is None:
        return careful().reshape(x.shape)
    grouped = made[0].reshape(sets), made[1]
    return _mended(grouped, eps, (batch, groups, 1), careful).reshape(x.shape)


def local_response_norm(
    input: Tensor,
    size: int,
    alpha: float = 1e-4,
    beta: float = 0.75,
    k: float = 1.0,
) -> Tensor:
    """``x / (k + alpha * m)**beta``, where m is the mean of x**2 over ``size`` adjacent channels.

    Channels beyond the ends count as 0 (Krizhevsky, Sutskever and Hinton 2012). ``input`` has shape
    (N, C, ...). The neighbours of channel c start at ``c - size // 2``. Raises ValueError for fewer
    than 3 dimensions or a size below 1, TypeError unless the dtype is a float.
    """
    op = "local_response_norm"
    x = _input(op, input, 3)
    count = integer(op, "size", size, 1)
    channels = x.shape[1]
    check_places(op, (channels,))
    starts = [max(c - count // 2, 0) for c in range(channels)]
    ends = [min(c + (count - 1) // 2, channels - 1) for c in range(channels)]
    sizes = [end - start + 1 for start, end in zip(starts, ends, strict=True)]
    boxes = PoolingWindows((channels,), tuple(starts), tuple(sizes), (1,))

    def base(t: Tensor, least: float | Tensor) -> Tensor:
        sums = apply(POOL_SUM, (t.square().transpose(1, -1),), (boxes,)).transpose(1, -1)
        return sums * (alpha / count) + least

    divisor = base(x, k)
    if not x._h.size or not (
        call(kernels.roots_extreme, divisor._h) or call(kernels.squares_lost, divisor._h, count)
    ):
        return x / divisor**beta
    unit = apply(UNITS, (f.amax(f.abs(x.detach())),), (True,))  # squares may overflow
    near = x * unit
    return near / base(near, unit * k * unit) ** beta * unit ** (2.0 * beta - 1.0)


def normalize(input: Tensor, p: float = 2.0, dim: Any = 1, eps: float = 1e-12) -> Tensor:
    """``x / max(norm(x), eps)``: scale vectors along ``dim`` to length 1 in the p-norm.

    ``dim`` is one dimension or several. The zero vector stays zero. Its gradient is 0, the one of
    least norm. PyTorch's is 1 / eps. Raises IndexError for a missing dimension, TypeError unless
    the dtype is a float.

    >>> import minigrad as mg
    >>> normalize(mg.tensor([[3.0, 4.0], [0.0, 0.0]])).tolist()
    [[0.6000000238418579, 0.800000011920929], [0.0, 0.0]]
    """
    x = _input("normalize", input, 0)
    length = f.norm(x, p, dim, True)
    try:
        least = f.amin(length.detach()).item() if length.size else math.inf
    except BatchedValueError:
        least = f.amin(by_rules("every_slice")(length)).item()
    if not least >= eps > 0.0:
        zero = length == 0.0
        length = f.where(zero, math.inf, f.where(length < eps, eps, length))  # a gradient of 0
    return x / length
