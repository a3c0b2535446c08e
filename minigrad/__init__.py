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

from minigrad import functions
from minigrad._tensor import Tensor
from minigrad.creation import (
    arange,
    as_tensor,
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
from minigrad.devices import device
from minigrad.dispatch import Size
from minigrad.dtypes import DType as dtype  # noqa: N813 - PyTorch's name
from minigrad.dtypes import (
    bfloat16,
    bool_,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
)
from minigrad.tape import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    no_grad,
    set_grad_enabled,
)

bool, long, double = bool_, int64, float64  # noqa: A001 - PyTorch's names for the dtypes
int, short, float, half = int32, int16, float32, float16  # noqa: A001

# What is found, or loaded, when it is first asked for, and in which module; or a module itself.
_HOMES = {
    "autograd": "Function grad",
    "checking": "gradcheck gradgradcheck numerical_gradient_check",
    "config": "get_num_threads set_num_threads show_config",
    "amp": "autocast",
    "draw": "draw_graph",
    "dtypes": "get_default_dtype set_default_dtype",
    "interop": "as_torch",
    "io": "load save",
    "promotion": "can_cast finfo iinfo is_floating_point promote_types result_type",
    "random": "Generator bernoulli default_generator get_rng_state initial_seed manual_seed "
    "multinomial normal rand rand_like randint randint_like randn randn_like randperm seed "
    "set_rng_state",
    "variable": "Variable",
    "version": "__version__",
    "": "accelerator amp autograd backends cuda func linalg mps nn optim random scalar special xpu",
}
_LATER = {name: home for home, names in _HOMES.items() for name in names.split()}
_LATER |= dict.fromkeys(functions.__all__, "functions")

__all__ = [
    "Size",
    "Tensor",
    "arange",
    "as_tensor",
    "asarray",
    "bfloat16",
    "bool",
    "device",
    "double",
    "dtype",
    "empty",
    "empty_like",
    "enable_grad",
    "eye",
    "float",
    "float16",
    "float32",
    "float64",
    "from_numpy",
    "full",
    "full_like",
    "half",
    "inference_mode",
    "int",
    "int8",
    "int16",
    "int32",
    "int64",
    "is_grad_enabled",
    "linspace",
    "long",
    "no_grad",
    "ones",
    "ones_like",
    "set_grad_enabled",
    "short",
    "tensor",
    "uint8",
    "zeros",
    "zeros_like",
]
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
    return sorted(__all__)
