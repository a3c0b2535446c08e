"""minigrad: a C-accelerated reverse-mode autograd engine for the CPU.

>>> import minigrad as mg
>>> x = mg.tensor([1.0, 2.0, 3.0], requires_grad=True)
>>> y = (x**2 + 3 * x).sum()
>>> y.backward()
>>> x.grad
tensor([5., 7., 9.])
"""

from importlib import import_module
from typing import Any

from minigrad import autograd, functions, random
from minigrad._tensor import Tensor
from minigrad.autograd import Function, enable_grad, grad, is_grad_enabled, no_grad
from minigrad.config import get_num_threads, set_num_threads, show_config
from minigrad.creation import (
    arange,
    asarray,
    empty,
    empty_like,
    eye,
    from_numpy,
    full,
    full_like,
    linspace,
    ones,
    ones_like,
    tensor,
    zeros,
    zeros_like,
)
from minigrad.dtypes import DType as dtype  # noqa: N813 - PyTorch's name
from minigrad.dtypes import bool_, float32, float64, int64
from minigrad.functions import *  # noqa: F403 - its __all__ is the public operations
from minigrad.random import *  # noqa: F403
from minigrad.version import __version__

bool = bool_  # noqa: A001 - PyTorch's name for the dtype

# What is loaded when first asked for: modules, and what else modules hold.
_LATER = {
    "Variable": "variable",
    "draw_graph": "draw",
    "gradcheck": "checking",
    "gradgradcheck": "checking",
    "linalg": "",
    "nn": "",
    "numerical_gradient_check": "checking",
    "optim": "",
    "scalar": "",
    "special": "",
}

__all__ = [
    "Function",
    "Tensor",
    "__version__",
    "arange",
    "asarray",
    "autograd",
    "bool",
    "dtype",
    "empty",
    "empty_like",
    "enable_grad",
    "eye",
    "float32",
    "float64",
    "from_numpy",
    "full",
    "full_like",
    "get_num_threads",
    "grad",
    "int64",
    "is_grad_enabled",
    "linspace",
    "no_grad",
    "ones",
    "ones_like",
    "random",
    "set_num_threads",
    "show_config",
    "tensor",
    "zeros",
    "zeros_like",
]
__all__ += functions.__all__
__all__ += random.__all__
__all__ += _LATER


def __getattr__(name: str) -> Any:
    home = _LATER.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = import_module(f"{__name__}.{home or name}")
    if home:
        found = getattr(found, name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER})
