"""Functions that initialise parameters: each fills a tensor outside the tape and returns it.

The *fans* belong to a weight of shape (outputs, inputs, *kernel). ``fan_in`` is the number of
inputs of each result: inputs times the kernel's size. ``fan_out`` is the number of results that use
each input: outputs times the kernel's size.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from minigrad.functions.arguments import integer, real
from minigrad.functions.creation import asarray, eye, zeros
from minigrad.functions.grad_modes import no_grad
from minigrad.random import drawing, filled
from minigrad.runtime.lazy_numpy import np
from minigrad.tape.tensor_base import TensorBase

if TYPE_CHECKING:
    from minigrad._tensor import Tensor
    from minigrad.random import Generator

__all__ = [
    "calculate_gain",
    "constant_",
    "dirac_",
    "eye_",
    "kaiming_normal_",
    "kaiming_uniform_",
    "normal_",
    "ones_",
    "orthogonal_",
    "trunc_normal_",
    "uniform_",
    "xavier_normal_",
    "xavier_uniform_",
    "zeros_",
]


def _checked(op: str, x: Any, ndim: int = 0) -> Any:
    """Check that x is a tensor with at least so many dimensions."""
    if not isinstance(x, TensorBase):
        raise TypeError(f"[{op}] expected a Tensor, not {type(x).__name__}")
    if len(x.shape) < ndim:
        raise ValueError(f"[{op}] a tensor of shape {x.shape} has fewer than {ndim} dimensions")
    return x


def _write(x: Any, values: Any) -> Tensor:
    with no_grad():
        return x.copy_(values)


# ---- of values that do not depend on the shape ---------------------------------------------------


def constant_(tensor: Tensor, val: float) -> Tensor:
    """Fill with one value."""
    return _write(_checked("constant_", tensor), real("constant_", "val", val))


def zeros_(tensor: Tensor) -> Tensor:
    """Fill with zeros."""
    return _write(_checked("zeros_", tensor), 0)


def ones_(tensor: Tensor) -> Tensor:
    """Fill with ones."""
    return _write(_checked("ones_", tensor), 1)


def eye_(tensor: Tensor) -> Tensor:
    """Fill a matrix with the identity. Raises ValueError for other shapes."""
    if _checked("eye_", tensor).ndim != 2:
        raise ValueError(f"[eye_] a matrix has 2 dimensions, this tensor {tensor.ndim}")
    return _write(tensor, eye(*tensor.shape, dtype=tensor.dtype))


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Fill a convolution's weight so that it copies input channels to output channels.

    The weight (out, in, ...) has 1 at the centre of the filter from each channel to the same
    channel, and 0 elsewhere. This holds in each of ``groups`` parts of the outputs. Raises
    ValueError for other than 3 to 5 dimensions, or where the groups do not divide the outputs.

    >>> import minigrad as mg
    >>> mg.nn.init.dirac_(mg.empty(1, 1, 3)).tolist()
    [[[0.0, 1.0, 0.0]]]
    """
    shape = _checked("dirac_", tensor).shape
    if not 3 <= len(shape) <= 5:
        raise ValueError(f"[dirac_] the weight has 3 to 5 dimensions, not {len(shape)}")
    groups = integer("dirac_", "groups", groups, 1)
    if shape[0] % groups:
        raise ValueError(f"[dirac_] {groups} groups do not divide {shape[0]} outputs")
    values = zeros(shape, dtype=tensor.dtype)
    size = shape[0] // groups
    centre = tuple(n // 2 for n in shape[2:])
    for first in range(0, shape[0], max(size, 1)):
        for channel in range(min(size, shape[1])):
            place = (first + channel, channel, *centre)
            values[place] = 1
    return _write(tensor, values)


def uniform_(
    tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Generator | None = None
) -> Tensor:
    """Fill with uniform values in [a, b)."""
    with no_grad():
        filled: Tensor = _checked("uniform_", tensor).uniform_(a, b, generator=generator)
    return filled


def normal_(
    tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Generator | None = None
) -> Tensor:
    """Fill with normally distributed values."""
    with no_grad():
        filled: Tensor = _checked("normal_", tensor).normal_(mean, std, generator=generator)
    return filled


def trunc_normal_(
    tensor: Tensor,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    generator: Generator | None = None,
) -> Tensor:
    """Fill with values of the normal distribution truncated to [a, b].

    Values are computed in float64 by the inverse of the distribution function. Raises ValueError
    for crossed bounds, and if both bounds are beyond 6 standard deviations on one side.

    >>> import minigrad as mg
    >>> x = mg.nn.init.trunc_normal_(mg.empty(1000), std=0.02, a=-0.04, b=0.04)
    >>> x.abs().max().item() <= 0.04
    True
    """
    from minigrad.functions.elementwise import erf, erfinv

    op = "trunc_normal_"
    center, scale = real(op, "mean", mean), real(op, "std", std)
    low, high = real(op, "a", a), real(op, "b", b)
    if not (scale > 0.0 and low < high):
        raise ValueError(f"[{op}] std is {std} and [a, b] is [{a}, {b}]: needs std > 0 and a < b")
    ends = [(bound - center) / (scale * math.sqrt(2.0)) for bound in (low, high)]
    if min(map(abs, ends)) * math.sqrt(2.0) > 6.0 and ends[0] * ends[1] > 0.0:
        raise ValueError(f"[{op}] nearly nothing of the distribution lies in [{a}, {b}]")

    def draw(shape: tuple[int, ...], kind: Any) -> Any:
        first, last = erf(np.array(ends)).tolist()
        drawn = np.asarray(drawing(generator).uniform(first, last, shape))
        inside = np.clip(drawn, -1 + 2**-53, 1 - 2**-53)  # -1 and 1 stand for infinity
        values = center + scale * math.sqrt(2.0) * erfinv(asarray(inside))
        return values.clamp(low, high).numpy().astype(kind)

    with no_grad():
        return filled(op, _checked(op, tensor), draw)


# ---- of a spread that depends on the fans --------------------------------------------------------


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """The factor that makes up for the loss of standard deviation in the function of this name.

    It is 1 for "linear", "sigmoid" and convolutions by their names. It is 5/3 for "tanh", sqrt(2)
    for "relu" and 3/4 for "selu". "leaky_relu" has sqrt(2 / (1 + param**2)), where the slope
    ``param`` is by default 0.01. Raises ValueError for other names.

    >>> calculate_gain("tanh")
    1.6666666666666667
    """
    if nonlinearity == "leaky_relu":
        slope = 0.01 if param is None else real("calculate_gain", "param", param)
        return math.sqrt(2.0 / (1.0 + slope**2))
    gains = {"tanh": 5.0 / 3, "relu": math.sqrt(2.0), "selu": 3.0 / 4, "linear": 1.0}
    gains |= dict.fromkeys(("sigmoid", *_CONVOLUTIONS), 1.0)
    if nonlinearity not in gains:
        raise ValueError(
            f"[calculate_gain] no gain for {nonlinearity!r}: there are leaky_relu, "
            f"{', '.join(gains)}"
        )
    return gains[nonlinearity]


_CONVOLUTIONS = [f"conv{transposed}{n}d" for transposed in ("", "_transpose") for n in (1, 2, 3)]


def _calculate_fan_in_and_fan_out(tensor: Tensor) -> tuple[int, int]:
    """The fans of a weight, under PyTorch's name, which users' layers call."""
    outputs, inputs, *kernel = _checked("init", tensor, 2).shape
    size = math.prod(kernel)
    return inputs * size, outputs * size


def _glorot(op: str, tensor: Tensor, gain: float) -> float:
    """The standard deviation by Glorot & Bengio 2010, equation 12."""
    fans = sum(_calculate_fan_in_and_fan_out(_checked(op, tensor, 2)))
    return real(op, "gain", gain) * math.sqrt(2.0 / fans) if fans else 0.0


def xavier_uniform_(
    tensor: Tensor, gain: float = 1.0, generator: Generator | None = None
) -> Tensor:
    """Fill with uniform values in (-b, b), ``b = gain * sqrt(6 / (fan_in + fan_out))``.

    Glorot & Bengio 2010, equation 16. Raises ValueError for fewer than two dimensions.

    >>> import minigrad as mg
    >>> w = mg.nn.init.xavier_uniform_(mg.empty(3, 5), mg.nn.init.calculate_gain("relu"))
    >>> w.abs().max().item() < 2**0.5 * (6 / 8) ** 0.5
    True
    """
    bound = math.sqrt(3.0) * _glorot("xavier_uniform_", tensor, gain)
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fill with normal values with ``std = gain * sqrt(2 / (fan_in + fan_out))``.

    Glorot & Bengio 2010, equation 12. Raises ValueError for fewer than two dimensions.
    """
    return normal_(tensor, 0.0, _glorot("xavier_normal_", tensor, gain), generator)


def _he(op: str, tensor: Tensor, a: float, mode: str, nonlinearity: str) -> float:
    """The standard deviation by He et al. 2015, equations 14 and 15."""
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"[{op}] mode is {mode!r}, but must be 'fan_in' or 'fan_out'")
    fan = _calculate_fan_in_and_fan_out(_checked(op, tensor, 2))[mode == "fan_out"]
    return calculate_gain(nonlinearity, a) / math.sqrt(fan) if fan else 0.0


def kaiming_uniform_(
    tensor: Tensor,
    a: float = 0.0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    """Fill with uniform values in (-b, b), ``b = gain * sqrt(3 / fan)``.

    The source is He et al. 2015, equation 14. ``a`` is the slope of a leaky_relu. ``mode`` says
    which fan counts: "fan_in" keeps the variance in forward, "fan_out" in backward. Raises
    ValueError for fewer than two dimensions.
    """
    bound = math.sqrt(3.0) * _he("kaiming_uniform_", tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Tensor,
    a: float = 0.0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    """Fill with normal values with ``std = gain / sqrt(fan)``. See :func:`kaiming_uniform_`.

    >>> import minigrad as mg
    >>> layer = mg.nn.Conv2d(3, 64, 3)
    >>> w = mg.nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")
    >>> w is layer.weight
    True
    """
    std = _he("kaiming_normal_", tensor, a, mode, nonlinearity)
    return normal_(tensor, 0.0, std, generator)


def orthogonal_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fill with ``gain`` times a random matrix with orthonormal rows, or columns if fewer.

    The distribution over such matrices is uniform (Saxe et al. 2014). The matrix is the Q of a
    normal matrix whose R has a positive diagonal (Mezzadri 2007). Dimensions from the second on
    count as one. Raises ValueError for fewer than two dimensions.

    >>> import minigrad as mg
    >>> w = mg.nn.init.orthogonal_(mg.empty(3, 5))
    >>> mg.allclose(w @ w.T, mg.eye(3), atol=1e-6)
    True
    """
    _checked("orthogonal_", tensor, 2)
    factor = real("orthogonal_", "gain", gain)

    def draw(shape: tuple[int, ...], kind: Any) -> Any:
        rows, columns = shape[0], math.prod(shape[1:])
        normal = drawing(generator).standard_normal((max(rows, columns), min(rows, columns)))
        q, r = np.linalg.qr(normal)
        q *= np.where(np.diagonal(r) < 0.0, -1.0, 1.0)
        found = q if rows >= columns else q.T
        return (factor * found).reshape(shape).astype(kind)

    with no_grad():
        return filled("orthogonal_", tensor, draw)
