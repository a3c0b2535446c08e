"""Parametrization: parameters computed from other parameters.

A module with such a parameter gets a class of its own. A property of this class computes the
parameter. The original parameters are in ``module.parametrizations``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any

from minigrad.functions.grad_modes import no_grad
from minigrad.nn.layers import ModuleDict, ModuleList
from minigrad.nn.module import Module, Parameter
from minigrad.tape.tensor_base import TensorBase

__all__ = [
    "ParametrizationList",
    "cached",
    "is_parametrized",
    "register_parametrization",
    "remove_parametrizations",
    "type_before_parametrizations",
]

_cache: ContextVar[dict[tuple[int, str], Any] | None] = ContextVar("_cache", default=None)


@contextmanager
def cached() -> Iterator[None]:
    """Context manager: compute each parametrized tensor only once in the block.

    >>> from minigrad.nn.utils import parametrize
    >>> with parametrize.cached():
    ...     pass
    """
    token = None if _cache.get() is not None else _cache.set({})
    try:
        yield
    finally:
        if token is not None:
            _cache.reset(token)


class ParametrizationList(ModuleList):
    """The parametrizations of one tensor in order, and the original parameters.

    The first parametrization gets ``original``. It gets ``original0``, ``original1``, ... if its
    ``right_inverse`` gives several tensors.
    """

    def __init__(self, modules: Sequence[Module], original: Any) -> None:
        value = original
        with no_grad(), suppress(NotImplementedError):
            for module in reversed(modules):
                inverse = getattr(module, "right_inverse", None)
                if inverse is not None:
                    value = inverse(value)
        self.is_tensor = isinstance(value, TensorBase)
        wants = original.requires_grad
        if self.is_tensor:
            if isinstance(original, Parameter):
                kept: Any = original if value is original else Parameter(value.detach(), wants)
                self.original = kept
            else:
                self.register_buffer("original", value)
        else:
            self.ntensors = len(value)
            for k, part in enumerate(value):
                if isinstance(original, Parameter):
                    setattr(self, f"original{k}", Parameter(part.detach().clone(), wants))
                else:
                    self.register_buffer(f"original{k}", part)
        super().__init__(modules)

    def _originals(self) -> list[Any]:
        if self.is_tensor:
            return [self.original]
        return [getattr(self, f"original{k}") for k in range(self.ntensors)]

    def right_inverse(self, value: Any) -> None:
        """Set the originals so that the tensor becomes this value, as far as possible.

        Raises RuntimeError if a parametrization has no ``right_inverse``.
        """
        with no_grad():
            for module in reversed(list(self)):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(
                        f"[{type(module).__name__}] has no right_inverse: the tensor cannot be set"
                    )
                value = module.right_inverse(value)
            parts = [value] if isinstance(value, TensorBase) else list(value)
            for original, part in zip(self._originals(), parts, strict=True):
                original.copy_(part)

    def forward(self) -> Any:
        """Compute the tensor."""
        first, *rest = self
        x = first(*self._originals())
        for module in rest:
            x = module(x)
        return x


def _attribute(name: str) -> property:
    def get(module: Any) -> Any:
        kept = _cache.get()
        if kept is None:
            return module.parametrizations[name]()
        key = (id(module), name)
        if key not in kept:
            kept[key] = module.parametrizations[name]()
        return kept[key]

    def put(module: Any, value: Any) -> None:
        module.parametrizations[name].right_inverse(value)

    return property(get, put)


def _reclass(module: Module) -> None:
    """Give the module the class that computes its parametrized tensors, or its original class."""
    own = type_before_parametrizations(module)
    names = list(module.__dict__["parametrizations"])
    body: dict[str, Any] = {name: _attribute(name) for name in names}
    body["_before_parametrizations"] = own
    module.__class__ = type(f"Parametrized{own.__name__}", (own,), body) if names else own


def type_before_parametrizations(module: Module) -> type[Module]:
    """The class that the module had before it was parametrized."""
    return getattr(type(module), "_before_parametrizations", type(module))


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """True if this tensor of the module, or any tensor, is parametrized."""
    held = module.__dict__.get("parametrizations")
    if not isinstance(held, ModuleDict):
        return False
    return bool(len(held)) if tensor_name is None else tensor_name in held


def register_parametrization(
    module: Module, tensor_name: str, parametrization: Module, *, unsafe: bool = False
) -> Module:
    """Replace a parameter or buffer of a module by the output of ``parametrization``.

    The attribute is computed when it is read. Setting the attribute calls the parametrization's
    ``right_inverse``, which also computes the first original. It may return several tensors, which
    forward then gets. A second parametrization takes the output of the first. Unless ``unsafe`` is
    set, shape and dtype must stay the same. Returns the module.

    Raises ValueError if no tensor has this name, and for another shape or dtype.

    >>> import minigrad as mg
    >>> from minigrad.nn.utils import parametrize
    >>> class Symmetric(mg.nn.Module):
    ...     def forward(self, x):
    ...         return x.triu() + x.triu(1).T
    >>> layer = parametrize.register_parametrization(mg.nn.Linear(3, 3), "weight", Symmetric())
    >>> bool((layer.weight == layer.weight.T).all()), list(layer.state_dict())
    (True, ['bias', 'parametrizations.weight.original'])
    """
    op = "register_parametrization"
    if is_parametrized(module, tensor_name):
        held: Any = module.__dict__["parametrizations"][tensor_name]
        if not unsafe:
            before = getattr(module, tensor_name)
            _check(op, tensor_name, before, _computed(lambda: parametrization(before)))
        held.append(parametrization)
        return module
    original = module.__dict__.get(tensor_name)
    if not isinstance(original, TensorBase) or not (
        isinstance(original, Parameter) or tensor_name in module._buffers
    ):
        raise ValueError(
            f"[{op}] {type(module).__name__} has no parameter or buffer that is named "
            f"{tensor_name!r}"
        )
    listed = ParametrizationList([parametrization], original)
    if not unsafe:
        _check(op, tensor_name, original, _computed(listed))
    delattr(module, tensor_name)
    if "parametrizations" not in module.__dict__:
        module.__setattr__("parametrizations", ModuleDict())
    module.__dict__["parametrizations"][tensor_name] = listed
    _reclass(module)
    return module


def _computed(call: Any) -> Any:
    with no_grad():
        return call()


def _check(op: str, name: str, before: Any, after: Any) -> None:
    if not isinstance(after, TensorBase):
        raise TypeError(
            f"[{op}] the parametrization of {name!r} gives {type(after).__name__}, not a Tensor"
        )
    if after.shape != before.shape or after.dtype is not before.dtype:
        raise ValueError(
            f"[{op}] the parametrization of {name!r} turns {before.dtype.name} {before.shape} into "
            f"{after.dtype.name} {after.shape}: with unsafe=True it may"
        )


def remove_parametrizations(
    module: Module, tensor_name: str, leave_parametrized: bool = True
) -> Module:
    """Make the tensor an ordinary attribute again, and return the module.

    The tensor keeps its present value, or gets the original without ``leave_parametrized``.

    Raises ValueError if it is not parametrized, or has no single original.
    """
    op = "remove_parametrizations"
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"[{op}] {type(module).__name__} has no parametrized {tensor_name!r}")
    lists: Any = module.__dict__["parametrizations"]
    held = lists[tensor_name]
    if not leave_parametrized and not held.is_tensor:
        raise ValueError(
            f"[{op}] {tensor_name!r} is made of {held.ntensors} tensors, of which none is the "
            "original: leave_parametrized=False"
        )
    originals = held._originals()
    value = originals[0]
    if leave_parametrized:
        found = _computed(held)
        if not held.is_tensor or value.shape != found.shape or value.dtype is not found.dtype:
            value = found.clone()
            if isinstance(originals[0], Parameter):
                value = Parameter(value, any(p.requires_grad for p in originals))
        else:
            with no_grad():
                value.copy_(found)
    del lists[tensor_name]
    _reclass(module)
    if not lists:
        module.__delattr__("parametrizations")
    if isinstance(value, Parameter):
        setattr(module, tensor_name, value)
    else:
        module.register_buffer(tensor_name, value)
    return module
