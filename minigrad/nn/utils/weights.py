"""Weight norm and spectral norm by hooks: PyTorch's older form of parametrizations."""

from __future__ import annotations

from typing import Any

from minigrad import functions as f
from minigrad.functions.grad_modes import no_grad
from minigrad.nn import functional as F  # noqa: N812 - its usual name
from minigrad.nn.module import Module, Parameter
from minigrad.nn.utils.parametrizations import as_rows, iterated, norm_except_dim, outputs_dim
from minigrad.random import randn

__all__ = ["remove_spectral_norm", "remove_weight_norm", "spectral_norm", "weight_norm"]


class _Computed:
    """A hook before forward that computes a weight."""

    def __init__(self, name: str) -> None:
        self.name = name

    def attach(self, module: Module) -> None:
        """Compute the weight now, and before each forward."""
        setattr(module, self.name, self.weight(module))
        handle = module.register_forward_pre_hook(self)
        module.__dict__.setdefault("_computed_weights", {})[self.name] = (self, handle)

    def __call__(self, module: Module, _: Any) -> None:
        setattr(module, self.name, self.weight(module))

    def weight(self, module: Module) -> Any:
        """Compute the weight from the module's parameters and buffers."""
        raise NotImplementedError

    parts: tuple[str, ...]


def _taken(op: str, module: Module, name: str) -> Any:
    """Remove a parameter from the module's attributes, and return it."""
    weight = module.__dict__.get(name)
    if isinstance(weight, Parameter):
        delattr(module, name)
        return weight
    raise ValueError(f"[{op}] {type(module).__name__} has no parameter named {name!r}")


def _removed(op: str, kind: type[_Computed], module: Module, name: str) -> Module:
    """Make the weight a parameter again."""
    held: Any = module.__dict__.get("_computed_weights", {}).get(name, (None, None))
    hook, handle = held
    if hook is None or not isinstance(hook, kind):
        raise ValueError(f"[{op}] {type(module).__name__} has no computed weight named {name!r}")
    training, module.training = module.training, False  # no power iteration in evaluation
    with no_grad():
        value = hook.weight(module).clone()
    module.training = training
    handle.remove()
    del module.__dict__["_computed_weights"][name]
    delattr(module, name)
    for part in hook.parts:
        delattr(module, f"{name}_{part}")
    setattr(module, name, Parameter(value))
    return module


class _WeightNorm(_Computed):
    parts = ("g", "v")

    def __init__(self, name: str, dim: int | None) -> None:
        super().__init__(name)
        self.dim = -1 if dim is None else dim

    def weight(self, module: Module) -> Any:
        g, v = (getattr(module, f"{self.name}_{part}") for part in self.parts)
        return v * (g / norm_except_dim(v, self.dim))


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """:func:`minigrad.nn.utils.parametrizations.weight_norm` by a hook before forward.

    The module itself gets parameters ``weight_g`` and ``weight_v``. Raises ValueError if there is
    no such parameter.

    >>> import minigrad as mg
    >>> list(mg.nn.utils.weight_norm(mg.nn.Linear(2, 3)).state_dict())
    ['bias', 'weight_g', 'weight_v']
    """
    hook = _WeightNorm(name, dim)
    weight = _taken("weight_norm", module, name).detach()
    setattr(module, f"{name}_g", Parameter(norm_except_dim(weight, hook.dim)))
    setattr(module, f"{name}_v", Parameter(weight))
    hook.attach(module)
    return module


def remove_weight_norm(module: Module, name: str = "weight") -> Module:
    """Make the weight a parameter again, with the value that it has.

    Raises ValueError for no such one.
    """
    return _removed("remove_weight_norm", _WeightNorm, module, name)


class _SpectralNorm(_Computed):
    parts = ("orig", "u", "v")

    def __init__(self, name: str, times: int, eps: float, dim: int) -> None:
        super().__init__(name)
        self.times, self.eps, self.dim = times, eps, dim

    def weight(self, module: Module) -> Any:
        weight, u, v = (getattr(module, f"{self.name}_{part}") for part in self.parts)
        matrix = as_rows(weight, self.dim)
        if module.training:
            iterated(matrix.mT, v, u, self.times, self.eps)  # v first, as in PyTorch
        return weight / f.dot(u.clone(), f.mv(matrix, v.clone()))


def spectral_norm(
    module: Module,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> Module:
    """:func:`minigrad.nn.utils.parametrizations.spectral_norm` by a hook before forward.

    The module itself gets a parameter ``weight_orig`` and buffers ``weight_u`` and ``weight_v``.
    The singular vectors start at random. Raises ValueError if there is no such parameter.
    """
    hook = _SpectralNorm(name, n_power_iterations, eps, outputs_dim(module) if dim is None else dim)
    weight = _taken("spectral_norm", module, name)
    setattr(module, f"{name}_orig", weight)
    matrix = as_rows(weight.detach(), hook.dim)
    for part, size in zip(("u", "v"), matrix.shape, strict=True):
        start = F.normalize(randn(size, dtype=weight.dtype), dim=0, eps=eps)
        module.register_buffer(f"{name}_{part}", start)
    training, module.training = module.training, False
    hook.attach(module)
    module.training = training
    return module


def remove_spectral_norm(module: Module, name: str = "weight") -> Module:
    """Make the weight a parameter again, with the value that it has.

    Raises ValueError for no such one.
    """
    return _removed("remove_spectral_norm", _SpectralNorm, module, name)
