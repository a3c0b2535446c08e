"""Lazy layers, which take their input size from the first input, and uninitialised parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from minigrad._tensor import Tensor
from minigrad._tensor.inplace import replace
from minigrad.functions.arguments import integer, size_of
from minigrad.functions.creation import zeros
from minigrad.nn.convolution import (
    Conv1d,
    Conv2d,
    Conv3d,
    ConvTranspose1d,
    ConvTranspose2d,
    ConvTranspose3d,
)
from minigrad.nn.layers import Linear
from minigrad.nn.module import Module, Parameter, Uninitialized
from minigrad.nn.normalization import (
    BatchNorm1d,
    BatchNorm2d,
    BatchNorm3d,
    InstanceNorm1d,
    InstanceNorm2d,
    InstanceNorm3d,
)
from minigrad.runtime.devices import on_cpu
from minigrad.runtime.dtypes import as_dtype

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = [
    "LazyBatchNorm1d",
    "LazyBatchNorm2d",
    "LazyBatchNorm3d",
    "LazyConv1d",
    "LazyConv2d",
    "LazyConv3d",
    "LazyConvTranspose1d",
    "LazyConvTranspose2d",
    "LazyConvTranspose3d",
    "LazyInstanceNorm1d",
    "LazyInstanceNorm2d",
    "LazyInstanceNorm3d",
    "LazyLinear",
    "UninitializedBuffer",
    "UninitializedParameter",
]

# ---- tensors without a shape ---------------------------------------------------------------------


class _Unset(Uninitialized):
    """A tensor without a shape. :meth:`materialize` turns it into an ordinary tensor."""

    __slots__ = ()
    _becomes: ClassVar[type]

    def materialize(self, shape: Any, device: Any = None, dtype: Any = None) -> None:
        """Take a shape, filled with zeros, and the ordinary class. The object stays the same."""
        on_cpu(device)
        kind = self.dtype if dtype is None else as_dtype(dtype)  # type: ignore[attr-defined]
        self._take(zeros(size_of("materialize", (shape,)), dtype=kind))

    def _take(self, values: Tensor) -> None:
        """Take the memory of these values."""
        replace(self, values._h)  # type: ignore[arg-type]
        self.__class__ = self._becomes

    @property
    def shape(self) -> Any:
        """Raise a ValueError: there is no shape yet."""
        raise ValueError(
            f"[{type(self).__name__}] has no shape yet: call its module once with an input"
        )

    def numel(self) -> int:
        """ValueError: there is no shape yet."""
        return len(self.shape)

    @property
    def size(self) -> Any:
        """ValueError: there is no shape yet."""
        return self.shape

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return _unset, (type(self), self.requires_grad, self.dtype.name)  # type: ignore[attr-defined]

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        function, arguments = self.__reduce__()
        memo[id(self)] = copy = function(*arguments)
        return copy


class UninitializedParameter(_Unset, Parameter):
    """A parameter without a shape. A lazy layer sets the shape at its first call.

    >>> import minigrad as mg
    >>> p = mg.nn.UninitializedParameter()
    >>> p.materialize((2, 3))
    >>> type(p).__name__, p.shape
    ('Parameter', (2, 3))
    """

    __slots__ = ()
    _becomes = Parameter

    def __new__(cls, requires_grad: bool = True, device: Any = None, dtype: Any = None) -> Self:
        """An uninitialised parameter of this dtype."""
        on_cpu(device)
        return Parameter.__new__(cls, zeros(0, dtype=as_dtype(dtype)), requires_grad)  # type: ignore[return-value]


class UninitializedBuffer(_Unset, Tensor):
    """Like :class:`UninitializedParameter`, for a buffer."""

    __slots__ = ()
    _becomes = Tensor

    def __new__(cls, requires_grad: bool = False, device: Any = None, dtype: Any = None) -> Self:
        """An uninitialised buffer of this dtype."""
        on_cpu(device)
        self = zeros(0, dtype=as_dtype(dtype), requires_grad=requires_grad)
        self.__class__ = cls
        return self  # type: ignore[return-value]


def _unset(cls: Any, requires_grad: bool, dtype: str) -> Any:
    return cls(requires_grad, dtype=dtype)


# ---- layers --------------------------------------------------------------------------------------


class _Lazy(Module):
    """Base of lazy layers: the first call turns the layer into one of class ``cls_to_become``.

    The object's class changes, so that later calls have no overhead. Parameters and buffers stay
    the same objects, so an optimizer may hold them from the start.
    """

    cls_to_become: ClassVar[Any]
    _size: ClassVar[str]  # name of the attribute that the first input determines

    def has_uninitialized_params(self) -> bool:
        """True if a parameter or buffer has no shape yet."""
        return any(isinstance(value, Uninitialized) for value in self.__dict__.values())

    def reset_parameters(self) -> None:
        """Reset the parameters that have shapes to their starting values."""
        if not self.has_uninitialized_params():
            self.cls_to_become.reset_parameters(self)

    def initialize_parameters(self, x: Tensor) -> None:
        """Give parameters and buffers the shapes for this input, and their starting values."""
        size = self._size_of(x)
        setattr(self, self._size, size)
        if self.has_uninitialized_params():
            made = self._made(size)
            for name, value in tuple(self.__dict__.items()):
                if isinstance(value, _Unset):
                    value._take(getattr(made, name))

    def forward(self, x: Tensor, *args: Any, **kwargs: Any) -> Any:
        """Become the ordinary layer, and return its output for x."""
        self.initialize_parameters(x)
        self.__class__ = self.cls_to_become
        return type(self).forward(self, x, *args, **kwargs)  # hooks are already being called

    def _size_of(self, x: Tensor) -> int:
        """The sizes that the input determines."""
        raise NotImplementedError

    def _made(self, size: int) -> Any:
        """An ordinary layer of this size, with starting values."""
        raise NotImplementedError

    def _unset(self, name: str, dtype: Any) -> None:
        setattr(self, name, UninitializedParameter(dtype=dtype))


class LazyLinear(_Lazy, Linear):
    """:class:`Linear` that learns ``in_features`` from its first input.

    A state may be loaded before the first input. Raises ValueError for a size below 0.

    >>> import minigrad as mg
    >>> layer = mg.nn.LazyLinear(2)
    >>> layer.weight
    <UninitializedParameter>
    >>> layer(mg.ones(4, 3)).shape
    (4, 2)
    >>> layer
    Linear(in_features=3, out_features=2, bias=True)
    """

    cls_to_become = Linear
    _size = "in_features"

    def __init__(
        self, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__(0, 0, False, device, dtype)
        self.out_features = integer("LazyLinear", "out_features", out_features, 0)
        self._unset("weight", dtype)
        if bias:
            self._unset("bias", dtype)

    def _size_of(self, x: Tensor) -> int:
        if not x.ndim:
            raise ValueError("[LazyLinear] the input is a number: it has no last dimension")
        return x.shape[-1]

    def _made(self, size: int) -> Any:
        return Linear(size, self.out_features, self.bias is not None, dtype=self.weight.dtype)


class _LazyConvolution(_Lazy):
    _size = "in_channels"
    axes: int

    def _set_lazily(self, out_channels: int, bias: bool, dtype: Any) -> None:
        name = type(self).__name__
        self.out_channels = integer(name, "out_channels", out_channels, 0)
        if self.out_channels % self.groups:
            raise ValueError(
                f"[{name}] groups={self.groups} must divide out_channels={out_channels}"
            )
        self._unset("weight", dtype)
        if bias:
            self._unset("bias", dtype)

    def _size_of(self, x: Tensor) -> int:
        least = self.axes + 1
        if x.ndim not in (least, least + 1):
            raise ValueError(
                f"[{type(self).__name__}] the input has shape {x.shape}, but must have {least} or "
                f"{least + 1} dimensions"
            )
        return x.shape[-least]

    groups: int
    bias: Parameter | None
    weight: Parameter


class _LazyConv(_LazyConvolution):
    def __init__(
        self,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        rest: Any = (stride, padding, dilation, groups, False, padding_mode, device, dtype)
        super().__init__(0, 0, kernel_size, *rest)  # type: ignore[call-arg]
        self._set_lazily(out_channels, bias, dtype)

    def _made(self, size: int) -> Any:
        own: Any = self
        return self.cls_to_become(
            size,
            own.out_channels,
            own.kernel_size,
            groups=own.groups,
            bias=own.bias is not None,
            dtype=own.weight.dtype,
        )


class LazyConv1d(_LazyConv, Conv1d):
    """Like :class:`LazyConv2d`, over one spatial dimension."""

    cls_to_become = Conv1d


class LazyConv2d(_LazyConv, Conv2d):
    """:class:`Conv2d` that learns ``in_channels`` from its first input.

    >>> import minigrad as mg
    >>> layer = mg.nn.LazyConv2d(8, 3)
    >>> layer(mg.ones(1, 3, 5, 5)).shape, layer.in_channels
    ((1, 8, 3, 3), 3)
    """

    cls_to_become = Conv2d


class LazyConv3d(_LazyConv, Conv3d):
    """Like :class:`LazyConv2d`, over three spatial dimensions."""

    cls_to_become = Conv3d


class _LazyConvTranspose(_LazyConvolution):
    def __init__(
        self,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Any = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        rest: Any = (stride, padding, output_padding, groups, False)
        options: Any = (dilation, padding_mode, device, dtype)
        super().__init__(0, 0, kernel_size, *rest, *options)  # type: ignore[call-arg]
        self._set_lazily(out_channels, bias, dtype)

    _made = _LazyConv._made


class LazyConvTranspose1d(_LazyConvTranspose, ConvTranspose1d):
    """Like :class:`LazyConvTranspose2d`, over one spatial dimension."""

    cls_to_become = ConvTranspose1d


class LazyConvTranspose2d(_LazyConvTranspose, ConvTranspose2d):
    """:class:`ConvTranspose2d` that learns ``in_channels`` from its first input."""

    cls_to_become = ConvTranspose2d


class LazyConvTranspose3d(_LazyConvTranspose, ConvTranspose3d):
    """Like :class:`LazyConvTranspose2d`, over three spatial dimensions."""

    cls_to_become = ConvTranspose3d


class _LazyNorm(_Lazy):
    _size = "num_features"

    def __init__(
        self,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        rest: Any = (eps, momentum, affine, track_running_stats, device, dtype)
        super().__init__(0, *rest, bias=bias)  # type: ignore[call-arg]
        for name in ("weight", "bias"):
            if getattr(self, name) is not None:
                self._unset(name, dtype)
        for name in ("running_mean", "running_var"):
            if getattr(self, name) is not None:
                setattr(self, name, UninitializedBuffer(dtype=dtype))

    def _size_of(self, x: Tensor) -> int:
        own: Any = self
        own._check(x)
        return x.shape[0 if self._without_batch and x.ndim == own.dims[0] else 1]

    _without_batch: ClassVar[bool] = False

    def _made(self, size: int) -> Any:
        own: Any = self
        kind = next(v.dtype for v in self.__dict__.values() if isinstance(v, _Unset))  # type: ignore[attr-defined]
        return self.cls_to_become(
            size,
            affine=own.affine,
            track_running_stats=own.track_running_stats,
            bias=own.bias is not None,
            dtype=kind,
        )


class LazyBatchNorm1d(_LazyNorm, BatchNorm1d):
    """Like :class:`LazyBatchNorm2d`, for inputs of shape (N, C) or (N, C, L)."""

    cls_to_become = BatchNorm1d


class LazyBatchNorm2d(_LazyNorm, BatchNorm2d):
    """:class:`BatchNorm2d` that learns ``num_features`` from its first input.

    >>> import minigrad as mg
    >>> layer = mg.nn.LazyBatchNorm2d()
    >>> layer(mg.ones(2, 3, 4, 4)).shape, layer.weight.shape
    ((2, 3, 4, 4), (3,))
    """

    cls_to_become = BatchNorm2d


class LazyBatchNorm3d(_LazyNorm, BatchNorm3d):
    """Like :class:`LazyBatchNorm2d`, for inputs of shape (N, C, D, H, W)."""

    cls_to_become = BatchNorm3d


class _LazyInstanceNorm(_LazyNorm):
    _without_batch = True

    def __init__(
        self,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(eps, momentum, affine, track_running_stats, device, dtype)


class LazyInstanceNorm1d(_LazyInstanceNorm, InstanceNorm1d):
    """Like :class:`LazyInstanceNorm2d`, for inputs of shape (N, C, L) or (C, L)."""

    cls_to_become = InstanceNorm1d


class LazyInstanceNorm2d(_LazyInstanceNorm, InstanceNorm2d):
    """:class:`InstanceNorm2d` that learns ``num_features`` from its first input."""

    cls_to_become = InstanceNorm2d


class LazyInstanceNorm3d(_LazyInstanceNorm, InstanceNorm3d):
    """Like :class:`LazyInstanceNorm2d`, for inputs of shape (N, C, D, H, W) or (C, D, H, W)."""

    cls_to_become = InstanceNorm3d
