"""Activation modules. The docstring of each function has the formula."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from minigrad.functions.arguments import integer
from minigrad.functions.creation import full
from minigrad.functions.grad_modes import no_grad
from minigrad.nn import functional as F  # noqa: N812 - its usual name
from minigrad.nn.function_module import FunctionModule
from minigrad.nn.module import Module, Parameter
from minigrad.runtime.devices import on_cpu

if TYPE_CHECKING:
    from minigrad._tensor import Tensor

__all__ = [
    "CELU",
    "ELU",
    "GELU",
    "GLU",
    "SELU",
    "Hardshrink",
    "Hardsigmoid",
    "Hardswish",
    "Hardtanh",
    "LeakyReLU",
    "LogSigmoid",
    "LogSoftmax",
    "Mish",
    "PReLU",
    "RReLU",
    "ReLU",
    "ReLU6",
    "SiLU",
    "Sigmoid",
    "Softmax",
    "Softmax2d",
    "Softmin",
    "Softplus",
    "Softshrink",
    "Softsign",
    "Tanh",
    "Tanhshrink",
    "Threshold",
]


class _Activation(FunctionModule):
    def forward(self, input: Tensor) -> Tensor:
        """Apply the function to the input."""
        kept = [getattr(self, name) for name in self._arguments]
        return self._function(input, *kept)

    def extra_repr(self) -> str:
        """The arguments, and ``inplace`` if it is set."""
        parts = [(name, getattr(self, name)) for name in self._arguments]
        return ", ".join(f"{n}={v!r}" for n, v in parts if n != "inplace" or v)


# ---- straight lines ------------------------------------------------------------------------------


class ReLU(_Activation, function=F.relu):
    """``max(x, 0)``. See :func:`minigrad.nn.functional.relu`."""

    inplace: bool = False

    def forward(self, input: Tensor) -> Tensor:
        """Apply relu directly, without the lookup of arguments: a third of the time."""
        return F.relu(input, self.inplace)


class ReLU6(_Activation, function=F.relu6):
    """``min(max(x, 0), 6)``. See :func:`minigrad.nn.functional.relu6`."""

    inplace: bool = False


class LeakyReLU(_Activation, function=F.leaky_relu):
    """``x`` above 0, ``negative_slope * x`` below.

    See :func:`minigrad.nn.functional.leaky_relu`.
    """

    negative_slope: float = 0.01
    inplace: bool = False


class RReLU(_Activation, function=F.rrelu):
    """LeakyReLU with random slopes in training. See :func:`minigrad.nn.functional.rrelu`."""

    lower: float = 1.0 / 8
    upper: float = 1.0 / 3
    inplace: bool = False

    def forward(self, input: Tensor) -> Tensor:
        """Apply the function, with slopes drawn in training."""
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)


class PReLU(Module):
    """``x`` above 0, ``weight * x`` below. See :func:`minigrad.nn.functional.prelu`.

    The weight is one parameter, or one for each channel. It starts at ``init``.

    >>> import minigrad as mg
    >>> mg.nn.PReLU()(mg.tensor([-4.0, 4.0])).tolist()
    [-1.0, 4.0]
    """

    def __init__(
        self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None
    ) -> None:
        on_cpu(device)
        count = self.num_parameters = integer("PReLU", "num_parameters", num_parameters, 0)
        self.init = init
        self.weight = Parameter(full((count,), init, dtype=dtype))

    def reset_parameters(self) -> None:
        """Reset the weight to its starting value."""
        with no_grad():
            self.weight.fill_(self.init)

    def forward(self, input: Tensor) -> Tensor:
        """Apply the function to the input."""
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        """The number of parameters."""
        return f"num_parameters={self.num_parameters}"


class Threshold(_Activation, function=F.threshold):
    """``x`` above the threshold, else ``value``. See :func:`minigrad.nn.functional.threshold`."""

    threshold: float
    value: float
    inplace: bool = False


class Hardtanh(_Activation, function=F.hardtanh):
    """``min(max(x, min_val), max_val)``. See :func:`minigrad.nn.functional.hardtanh`."""

    min_val: float = -1.0
    max_val: float = 1.0
    inplace: bool = False

    def __post_init__(self) -> None:
        F.hardtanh(0.0, self.min_val, self.max_val)  # type: ignore[arg-type] # refuses crossed bounds


class Hardsigmoid(_Activation, function=F.hardsigmoid):
    """``min(max(x + 3, 0), 6) / 6``. See :func:`minigrad.nn.functional.hardsigmoid`."""

    inplace: bool = False


class Hardswish(_Activation, function=F.hardswish):
    """``x * hardsigmoid(x)``. See :func:`minigrad.nn.functional.hardswish`."""

    inplace: bool = False


class _Shrink(_Activation):
    def extra_repr(self) -> str:
        """The bound."""
        return str(self.lambd)  # type: ignore[attr-defined]


class Hardshrink(_Shrink, function=F.hardshrink):
    """``x``, and 0 where ``|x| <= lambd``. See :func:`minigrad.nn.functional.hardshrink`."""

    lambd: float = 0.5


class Softshrink(_Shrink, function=F.softshrink):
    """``x - lambd * sign(x)``, and 0 where ``|x| <= lambd``.

    See :func:`minigrad.nn.functional.softshrink`.
    """

    lambd: float = 0.5


# ---- curves --------------------------------------------------------------------------------------


class ELU(_Activation, function=F.elu):
    """``x`` above 0, ``alpha * (exp(x) - 1)`` below. See :func:`minigrad.nn.functional.elu`."""

    alpha: float = 1.0
    inplace: bool = False


class CELU(_Activation, function=F.celu):
    """``x`` above 0, ``alpha * (exp(x / alpha) - 1)`` below.

    See :func:`minigrad.nn.functional.celu`.
    """

    alpha: float = 1.0
    inplace: bool = False


class SELU(_Activation, function=F.selu):
    """ELU with the constants of self-normalising networks.

    See :func:`minigrad.nn.functional.selu`.
    """

    inplace: bool = False


class GELU(_Activation, function=F.gelu):
    """``x`` times the normal distribution, exactly or by tanh.

    See :func:`minigrad.nn.functional.gelu`.
    """

    approximate: str = "none"


class SiLU(_Activation, function=F.silu):
    """``x * sigmoid(x)``. See :func:`minigrad.nn.functional.silu`."""

    inplace: bool = False


class Mish(_Activation, function=F.mish):
    """``x * tanh(softplus(x))``. See :func:`minigrad.nn.functional.mish`."""

    inplace: bool = False


class Softplus(_Activation, function=F.softplus):
    """``log(1 + exp(beta * x)) / beta``. See :func:`minigrad.nn.functional.softplus`."""

    beta: float = 1.0
    threshold: float = math.inf


class Sigmoid(_Activation, function=F.sigmoid):
    """``1 / (1 + exp(-x))``. See :func:`minigrad.sigmoid`."""


class Tanh(_Activation, function=F.tanh):
    """The hyperbolic tangent. See :func:`minigrad.tanh`."""


class LogSigmoid(_Activation, function=F.logsigmoid):
    """``log(sigmoid(x))``. See :func:`minigrad.nn.functional.logsigmoid`."""


class Softsign(_Activation, function=F.softsign):
    """``x / (1 + |x|)``. See :func:`minigrad.nn.functional.softsign`."""


class Tanhshrink(_Activation, function=F.tanhshrink):
    """``x - tanh(x)``. See :func:`minigrad.nn.functional.tanhshrink`."""


# ---- along a dimension ---------------------------------------------------------------------------


class GLU(_Activation, function=F.glu):
    """``a * sigmoid(b)`` of the halves a and b. See :func:`minigrad.nn.functional.glu`."""

    dim: int = -1


class Softmax(_Activation, function=F.softmax):
    """``exp(x) / sum(exp(x))`` along a dimension. See :func:`minigrad.softmax`."""

    dim: int | None = None


class LogSoftmax(_Activation, function=F.log_softmax):
    """``x - log(sum(exp(x)))`` along a dimension. See :func:`minigrad.log_softmax`."""

    dim: int | None = None


class Softmin(_Activation, function=F.softmin):
    """``exp(-x) / sum(exp(-x))`` along a dimension. See :func:`minigrad.softmin`."""

    dim: int | None = None


class Softmax2d(_Activation, function=F.softmax):
    """The softmax over the channels of (N, C, H, W) or (C, H, W).

    Raises ValueError for other shapes.
    """

    def forward(self, input: Tensor) -> Tensor:
        """The softmax of the input over its channels."""
        if input.ndim not in (3, 4):
            raise ValueError(
                f"[Softmax2d] the input has shape {input.shape}, but must be (N, C, H, W) or "
                "(C, H, W)"
            )
        return F.softmax(input, -3)
