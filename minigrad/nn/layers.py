"""Modules: the linear layer and the container."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from minigrad.arguments import integer
from minigrad.creation import tensor
from minigrad.dtypes import as_dtype, float32
from minigrad.nn import functional as F  # noqa: N812 - its usual name
from minigrad.nn.module import Module, Parameter
from minigrad.random import drawing

if TYPE_CHECKING:
    from minigrad._tensor import Tensor

__all__ = [
    "Linear",
    "Sequential",
]


def uniform_parameter(shape: tuple[int, ...], bound: float, dtype: Any) -> Parameter:
    """A parameter of values drawn from U(-bound, bound)."""
    return Parameter(tensor(drawing().uniform(-bound, bound, shape), dtype))


class Linear(Module):
    """``x @ weight.T + bias``: (..., in_features) to (..., out_features).

    The weight has shape (out_features, in_features). Both start in U(-b, b) with b =
    1/sqrt(in_features), which is He et al. 2015 (Kaiming) uniform with a = sqrt(5), as in PyTorch.

    Raises ValueError for negative sizes, and when called where the shapes do not fit.

    >>> import minigrad as mg
    >>> layer = mg.nn.Linear(3, 2)
    >>> layer(mg.ones(4, 3)).shape
    (4, 2)
    """

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, dtype: Any = float32
    ) -> None:
        inputs = self.in_features = integer("Linear", "in_features", in_features, 0)
        outputs = self.out_features = integer("Linear", "out_features", out_features, 0)
        kind = as_dtype(dtype)
        bound = 1.0 / math.sqrt(inputs) if inputs else 0.0
        self.weight = uniform_parameter((outputs, inputs), bound, kind)
        self.bias = uniform_parameter((outputs,), bound, kind) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        """``x @ weight.T + bias``."""
        return F.linear(x, self.weight, self.bias)

    def extra_repr(self) -> str:
        """The sizes."""
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, "
            f"bias={self.bias is not None}"
        )


# ---- containers ----------------------------------------------------------------------------------


class Sequential(Module):
    """Modules one after the other, named "0", "1", ...

    >>> import minigrad as mg
    >>> mg.nn.Sequential(mg.nn.Linear(4, 3), mg.nn.ReLU())
    Sequential(
      (0): Linear(in_features=4, out_features=3, bias=True)
      (1): ReLU()
    )
    """

    def __init__(self, *modules: Module) -> None:
        for module in modules:
            self.append(module)

    def append(self, module: Module) -> Sequential:
        """Add a module at the end; returns the container. TypeError for anything else."""
        if not isinstance(module, Module):
            raise TypeError(f"[Sequential] expected a Module, not {type(module).__name__}")
        setattr(self, str(len(self)), module)
        return self

    def _modules(self) -> list[Module]:
        return [value for value in self.__dict__.values() if isinstance(value, Module)]

    def __len__(self) -> int:
        return len(self._modules())

    def __iter__(self) -> Iterator[Module]:
        return iter(self._modules())

    def __getitem__(self, index: Any) -> Any:
        modules = self._modules()
        if isinstance(index, slice):
            return Sequential(*modules[index])
        try:
            return modules[integer("Sequential", "an index", index)]
        except IndexError:
            raise IndexError(
                f"[Sequential] index {index} is out of range for {len(modules)} modules"
            ) from None

    def forward(self, x: Any) -> Any:
        """The input through all modules in order."""
        for module in self.__dict__.values():
            if isinstance(module, Module):
                x = module(x)
        return x
