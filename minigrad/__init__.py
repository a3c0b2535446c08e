"""minigrad: a C-accelerated reverse-mode autograd engine for the CPU.

>>> import minigrad as mg
>>> x = mg.tensor([1.0, 2.0, 3.0], requires_grad=True)
>>> y = (x**2 + 3 * x).sum()
>>> y.backward()
>>> x.grad
tensor([5., 7., 9.])
"""

from minigrad import autograd, functions, linalg, nn, optim, random, special
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
from minigrad.draw import draw_graph
from minigrad.dtypes import DType as dtype  # noqa: N813 - PyTorch's name
from minigrad.dtypes import bool_, float32, float64, int64
from minigrad.functions import *  # noqa: F403 - its __all__ is the public operations
from minigrad.gradcheck import gradcheck, gradgradcheck, numerical_gradient_check
from minigrad.random import *  # noqa: F403
from minigrad.variable import Variable
from minigrad.version import __version__

bool = bool_  # noqa: A001 - PyTorch's name for the dtype

__all__ = [
    "Function",
    "Tensor",
    "Variable",
    "__version__",
    "arange",
    "asarray",
    "autograd",
    "bool",
    "draw_graph",
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
    "gradcheck",
    "gradgradcheck",
    "int64",
    "is_grad_enabled",
    "linalg",
    "linspace",
    "nn",
    "no_grad",
    "numerical_gradient_check",
    "ones",
    "ones_like",
    "optim",
    "random",
    "set_num_threads",
    "show_config",
    "special",
    "tensor",
    "zeros",
    "zeros_like",
]
__all__ += functions.__all__
__all__ += random.__all__
