"""Normalisation layers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from minigrad.functions.arguments import integer
from minigrad.functions.creation import ones, tensor, zeros
from minigrad.functions.grad_modes import no_grad
from minigrad.nn import functional as F  # noqa: N812 - its usual name
from minigrad.nn.functional.spatial import Sizes
from minigrad.nn.module import Module, Parameter
from minigrad.runtime.devices import on_cpu
from minigrad.runtime.dtypes import as_dtype, int64
from minigrad.runtime.recorders import give_up

if TYPE_CHECKING:
    from minigrad._tensor import Tensor

__all__ = [
    "BatchNorm1d",
    "BatchNorm2d",
    "BatchNorm3d",
    "GroupNorm",
    "InstanceNorm1d",
    "InstanceNorm2d",
    "InstanceNorm3d",
    "LayerNorm",
    "RMSNorm",
]


class _Affine(Module):
    """Base of normalisation layers: the weight starts with ones, the bias with zeros."""

    weight: Parameter | None
    bias: Parameter | None

    def reset_parameters(self) -> None:
        """Reset the parameters to their starting values."""
        for name, value in (("weight", 1.0), ("bias", 0.0)):
            p = getattr(self, name, None)
            if p is not None:
                with no_grad():
                    p.fill_(value)


class _ByChannel(_Affine):
    """Base of normalisation of channels, with running statistics if they are tracked."""

    dims: tuple[int, ...]  # allowed numbers of dimensions of the input
    running_mean: Tensor | None
    running_var: Tensor | None
    num_batches_tracked: Tensor | None

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        on_cpu(device)
        self.num_features = integer(type(self).__name__, "num_features", num_features, 0)
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        kind, tracks = as_dtype(dtype), track_running_stats
        self.weight = Parameter(ones(num_features, dtype=kind)) if affine else None
        self.bias = Parameter(zeros(num_features, dtype=kind)) if affine and bias else None
        self.register_buffer("running_mean", zeros(num_features, dtype=kind) if tracks else None)
        self.register_buffer("running_var", ones(num_features, dtype=kind) if tracks else None)
        self.register_buffer("num_batches_tracked", tensor(0, int64) if tracks else None)

    def reset_running_stats(self) -> None:
        """Reset the running statistics: means 0, variances 1, no batches."""
        if self.running_mean is None or self.running_var is None:
            return
        with no_grad():
            self.running_mean.zero_()
            self.running_var.fill_(1.0)
            if self.num_batches_tracked is not None:
                self.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
        """Reset the parameters and the running statistics."""
        self.reset_running_stats()
        super().reset_parameters()

    def _check(self, x: Tensor) -> None:
        if x.ndim not in self.dims:
            expected = " or ".join(map(str, self.dims))
            raise ValueError(
                f"[{type(self).__name__}] the input has shape {x.shape}, but must have {expected} "
                "dimensions"
            )

    def _statistics(self) -> tuple[Tensor | None, Tensor | None]:
        """The running statistics, or None where the batch's statistics count."""
        if self.training and not self.track_running_stats:
            return None, None
        return self.running_mean, self.running_var

    def extra_repr(self) -> str:
        """The arguments."""
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}"
        )


class _BatchNorm(_ByChannel):
    def forward(self, x: Tensor) -> Tensor:
        """Normalise x by the batch's statistics in training, else by the running ones."""
        self._check(x)
        mean, var = self._statistics()
        training = self.training or mean is None
        momentum = self._momentum()
        return F.batch_norm(x, mean, var, self.weight, self.bias, training, momentum, self.eps)

    def _momentum(self) -> float:
        """Count this batch, and return its weight.

        A momentum of None gives the mean of all batches.
        """
        count = self.num_batches_tracked
        if count is None or not (self.training and self.track_running_stats):
            return self.momentum or 0.0
        with no_grad():
            count.copy_(count + 1)
        if self.momentum is not None:
            return self.momentum
        give_up(type(self).__name__, "counts batches in Python where momentum is None")
        return 1.0 / count.item()


class BatchNorm1d(_BatchNorm):
    """Like :class:`BatchNorm2d`, for inputs of shape (N, C) or (N, C, L)."""

    dims = (2, 3)


class BatchNorm2d(_BatchNorm):
    """:func:`minigrad.nn.functional.batch_norm` as a module, for inputs of shape (N, C, H, W).

    The weight starts with ones, the bias with zeros. In training the batch's statistics are used.
    The running statistics are then updated with ``momentum``. If it is None they become the mean of
    all batches. In evaluation the running statistics are used, unless ``track_running_stats`` is
    False.

    >>> import minigrad as mg
    >>> list(mg.nn.BatchNorm2d(3).state_dict())
    ['weight', 'bias', 'running_mean', 'running_var', 'num_batches_tracked']
    """

    dims = (4,)


class BatchNorm3d(_BatchNorm):
    """Like :class:`BatchNorm2d`, for inputs of shape (N, C, D, H, W)."""

    dims = (5,)


class _InstanceNorm(_ByChannel):
    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        on_cpu(device)
        rest = (eps, momentum, affine, track_running_stats, device, dtype)
        super().__init__(num_features, *rest, bias=bias)

    def forward(self, x: Tensor) -> Tensor:
        """Normalise x by its own statistics, or in evaluation by the running ones if tracked."""
        self._check(x)
        one = x.unsqueeze(0) if x.ndim == self.dims[0] else x
        mean, var = self._statistics() if self.track_running_stats else (None, None)
        own = self.training or mean is None
        # which leaves the statistics unchanged
        momentum = 0.0 if self.momentum is None else self.momentum
        y = F.instance_norm(one, mean, var, self.weight, self.bias, own, momentum, self.eps)
        return y.squeeze(0) if one is not x else y


class InstanceNorm1d(_InstanceNorm):
    """Like :class:`InstanceNorm2d`, for inputs of shape (N, C, L) or (C, L)."""

    dims = (2, 3)


class InstanceNorm2d(_InstanceNorm):
    """:func:`minigrad.nn.functional.instance_norm` as a module, for (N, C, H, W) or (C, H, W).

    ``affine`` adds weight and bias, and ``track_running_stats`` running statistics. As in PyTorch,
    batches are not counted, and ``momentum=None`` leaves the statistics unchanged.
    """

    dims = (3, 4)


class InstanceNorm3d(_InstanceNorm):
    """Like :class:`InstanceNorm2d`, for inputs of shape (N, C, D, H, W) or (C, D, H, W)."""

    dims = (4, 5)


def _shape(op: str, normalized_shape: Any) -> Sizes:
    given = normalized_shape if isinstance(normalized_shape, (tuple, list)) else (normalized_shape,)
    return tuple([integer(op, "normalized_shape", n, 0) for n in given])


class LayerNorm(_Affine):
    """:func:`minigrad.nn.functional.layer_norm` as a module with weight and bias.

    The weight starts with ones, the bias with zeros.

    >>> import minigrad as mg
    >>> mg.nn.LayerNorm(2)(mg.tensor([[1.0, 3.0]])).shape
    (1, 2)
    """

    def __init__(
        self,
        normalized_shape: Any,
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        on_cpu(device)
        self.normalized_shape = _shape("LayerNorm", normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        kind, affine = as_dtype(dtype), elementwise_affine
        self.weight = Parameter(ones(self.normalized_shape, dtype=kind)) if affine else None
        self.bias = Parameter(zeros(self.normalized_shape, dtype=kind)) if affine and bias else None

    def forward(self, x: Tensor) -> Tensor:
        """Normalise x over its last dimensions."""
        return F.layer_norm(x, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        """The arguments."""
        return (
            f"{self.normalized_shape}, eps={self.eps}, "
            f"elementwise_affine={self.elementwise_affine}, bias={self.bias is not None}"
        )


class RMSNorm(_Affine):
    """:func:`minigrad.nn.functional.rms_norm` as a module with a weight that starts with ones."""

    def __init__(
        self,
        normalized_shape: Any,
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        on_cpu(device)
        self.normalized_shape = _shape("RMSNorm", normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        kind = as_dtype(dtype)
        self.weight = (
            Parameter(ones(self.normalized_shape, dtype=kind)) if elementwise_affine else None
        )

    def forward(self, x: Tensor) -> Tensor:
        """Normalise x over its last dimensions."""
        return F.rms_norm(x, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        """The arguments."""
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"
        )


class GroupNorm(_Affine):
    """:func:`minigrad.nn.functional.group_norm` as a module with weight and bias.

    The weight starts with ones, the bias with zeros. Raises ValueError if the groups do not divide
    the channels.
    """

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        on_cpu(device)
        self.num_groups = integer("GroupNorm", "num_groups", num_groups, 1)
        self.num_channels = integer("GroupNorm", "num_channels", num_channels, 0)
        if num_channels % num_groups:
            raise ValueError(
                f"[GroupNorm] num_groups={num_groups} does not divide the {num_channels} channels"
            )
        self.eps = eps
        self.affine = affine
        kind = as_dtype(dtype)
        self.weight = Parameter(ones(num_channels, dtype=kind)) if affine else None
        self.bias = Parameter(zeros(num_channels, dtype=kind)) if affine and bias else None

    def forward(self, x: Tensor) -> Tensor:
        """Normalise x by groups of channels."""
        return F.group_norm(x, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        """The arguments."""
        return (
            f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, "
            f"bias={self.bias is not None}"
        )
