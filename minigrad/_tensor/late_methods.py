"""Methods of Tensor that are created at their first use.

The modules that such a method needs are loaded then, not at import.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from minigrad import functions as f
from minigrad._tensor.inplace import become
from minigrad._tensor.operators import in_place_method

if TYPE_CHECKING:
    from minigrad._tensor import Tensor

__all__ = ["install"]

# Functions that have an in-place method, such as exp_() for exp().
_IN_PLACE = """
abs neg square sqrt rsqrt reciprocal exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos
atan sinh cosh tanh asinh acosh atanh sigmoid sign floor ceil round trunc frac erf erfc erfinv
lgamma digamma relu nan_to_num logit add sub mul div floor_divide remainder fmod pow atan2 hypot
copysign lerp addcmul addcdiv addmm addmv addbmm baddbmm addr clamp clamp_min clamp_max eq ne lt
le gt ge logical_and logical_or logical_xor logical_not bitwise_and bitwise_or bitwise_xor
bitwise_not masked_fill masked_scatter put renorm index_add index_copy index_fill index_put scatter
scatter_add scatter_reduce cumsum cumprod tril triu
absolute negative arccos arccosh arcsin arcsinh arctan arctanh arctan2 clip deg2rad
rad2deg divide true_divide multiply subtract fix greater greater_equal less less_equal
not_equal heaviside i0 sgn sinc xlogy bitwise_left_shift bitwise_right_shift
"""

_FILLED_RANDOMLY = "uniform_ normal_ bernoulli_ exponential_ random_ geometric_ log_normal_ cauchy_"
_RESHAPED = "squeeze_ unsqueeze_ t_ transpose_ swapaxes_ swapdims_"

_Make = Callable[[type, str], Callable[..., Any]]


class _Later:
    """A descriptor that creates a method at the first access and is replaced by it."""

    __slots__ = ("make", "name", "owner")

    def __init__(self, owner: type, name: str, make: _Make) -> None:
        self.owner = owner
        self.name = name
        self.make = make

    def __get__(self, x: Tensor | None, cls: type) -> Any:
        method: Any = self.make(self.owner, self.name)
        if method.__qualname__ == f"{self.owner.__name__}.{self.name}":  # created for this class
            method.__module__ = self.owner.__module__  # pickle looks it up there
        setattr(self.owner, self.name, method)
        return method.__get__(x, cls)


def _backward(owner: type, name: str) -> Callable[..., Any]:
    from minigrad.autograd import backward

    return backward


def _loaded(owner: type, name: str) -> Callable[..., Any]:
    return getattr(f, name)


def _written_over(owner: type, name: str) -> Callable[..., Any]:
    function = getattr(f, name.removesuffix("_"))
    own = f"{function.__name__}_"  # a function with several names has one method
    return in_place_method(function) if own == name else getattr(owner, own)


def _filled_randomly(owner: type, name: str) -> Callable[..., Any]:
    from minigrad import random

    return getattr(random, name)


def _reshaped(owner: type, name: str) -> Callable[..., Any]:
    function = getattr(f, name[:-1])

    def reshaped(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        made: Tensor = become(name, self, lambda x: function(x, *args, **kwargs))
        return made

    reshaped.__name__, reshaped.__qualname__ = name, f"Tensor.{name}"
    reshaped.__doc__ = f"As :func:`minigrad.{name[:-1]}`, of this tensor itself; returns it."
    return reshaped


def install(owner: type) -> None:
    """Give a class its late methods, and those loaded functions that it does not define itself."""

    def later(name: str, make: _Make) -> None:
        setattr(owner, name, _Later(owner, name, make))

    later("backward", _backward)
    for name in _RESHAPED.split():
        later(name, _reshaped)
    for name in _IN_PLACE.split():
        later(f"{name}_", _written_over)
    for name in _FILLED_RANDOMLY.split():
        later(name, _filled_randomly)
    for name in f.__all__:
        if name in f.NOT_METHODS or name in vars(owner):
            continue
        if name in f.LATER:
            later(name, _loaded)
        else:
            setattr(owner, name, getattr(f, name))
