"""Modules as functions of their parameters: ``functional_call`` and ``stack_module_state``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from minigrad.functions import stack
from minigrad.nn.module import Module, Parameter, changes

__all__ = ["functional_call", "stack_module_state"]


def functional_call(
    module: Module,
    parameters_and_buffers: Mapping[str, Any] | Sequence[Mapping[str, Any]],
    args: Any = None,
    kwargs: Mapping[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """The output of a module with other tensors in place of its parameters and buffers.

    They are named as in ``state_dict()``; what is not named stays. ``args`` is the tuple of
    arguments, or the only one. The module itself is unchanged afterwards. With ``tie_weights`` a
    tensor that the module has under several names is replaced under all of them. ``strict`` wants
    all names.

    Raises KeyError for a name that the module does not have, RuntimeError for missing names.

    >>> import minigrad as mg
    >>> layer = mg.nn.Linear(2, 1, bias=False)
    >>> mg.func.functional_call(layer, {"weight": mg.ones(1, 2)}, mg.tensor([3.0, 4.0]))
    tensor([7.])
    """
    one = isinstance(parameters_and_buffers, Mapping)
    given: dict[str, Any] = {}
    for some in [parameters_and_buffers] if one else parameters_and_buffers:
        given.update(some)  # type: ignore[arg-type]
    arguments = () if args is None else args if isinstance(args, tuple) else (args,)
    with _replaced(_placed(module, given, tie_weights, strict)):
        return module(*arguments, **(kwargs or {}))


def stack_module_state(
    models: Sequence[Module],
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The parameters of several models of one class, stacked by name, and their buffers.

    With ``vmap`` of a ``functional_call`` all models run at once. The stacked parameters are leaves
    that require grad as the models' do.

    Raises RuntimeError without a model, and for models of several classes, in both modes, or of
    which some parameters are frozen and others are not.

    >>> import minigrad as mg
    >>> models = [mg.nn.Linear(2, 1) for _ in range(3)]
    >>> parameters, buffers = mg.func.stack_module_state(models)
    >>> {name: x.shape for name, x in parameters.items()}
    {'weight': (3, 1, 2), 'bias': (3, 1)}
    """
    op = "stack_module_state"
    if not models:
        raise RuntimeError(f"[{op}] there is no model: give one or more")
    if any(type(model) is not type(models[0]) for model in models):
        names = sorted({type(model).__name__ for model in models})
        raise RuntimeError(f"[{op}] models must be of one class, not {' and '.join(names)}")
    if any(model.training is not models[0].training for model in models):
        raise RuntimeError(f"[{op}] some models are in training mode, some are not: choose one")
    parameters = _stacked(op, [dict(model.named_parameters()) for model in models])
    buffers = _stacked(op, [dict(model.named_buffers()) for model in models])
    return parameters, buffers


def _stacked(op: str, states: list[dict[str, Any]]) -> dict[str, Any]:
    """Tensors of the same name on top of each other, as leaves."""
    made = {}
    for name in states[0]:
        tensors = [state[name] for state in states if name in state]
        if len(tensors) < len(states):
            raise RuntimeError(f"[{op}] a model has no {name!r}: models must have the same names")
        grads = {x.requires_grad for x in tensors}
        if len(grads) > 1:
            raise RuntimeError(f"[{op}] {name!r} requires grad in some models, and not in others")
        shapes = {x.shape for x in tensors}
        if len(shapes) > 1:
            found = " and ".join(map(str, sorted(shapes)))
            raise RuntimeError(f"[{op}] {name!r} has the shapes {found}: they must be one")
        made[name] = stack([x.detach() for x in tensors]).requires_grad_(grads.pop())
    return made


def _placed(
    module: Module, given: Mapping[str, Any], tie_weights: bool, strict: bool
) -> list[tuple[dict[str, Any], str, Any]]:
    """Where each tensor goes: the attributes of a module, and a name among them."""
    held = {
        f"{path}.{name}" if path else name: (child.__dict__, name)
        for path, child in _modules(module)
        for name in child.__dict__
        if name in child._buffers or isinstance(child.__dict__[name], Parameter)
    }
    unknown = [name for name in given if name not in held]
    if unknown:
        raise KeyError(f"[functional_call] the module has no parameter or buffer {unknown[0]!r}")
    values = {
        id(attributes[name]): given[full]
        for full, (attributes, name) in held.items()
        if full in given
    }
    placed = []
    for full, (attributes, name) in held.items():
        tied = tie_weights and id(attributes[name]) in values and attributes[name] is not None
        if full in given or tied:
            placed.append((attributes, name, given.get(full, values.get(id(attributes[name])))))
        elif strict:
            raise RuntimeError(f"[functional_call] strict: {full!r} is not given")
    return placed


def _modules(module: Module, path: str = "") -> Iterator[tuple[str, Module]]:
    """All modules by their paths, one that is there twice under both."""
    yield path, module
    for name, child in module.__dict__.items():
        if isinstance(child, Module):
            yield from _modules(child, f"{path}.{name}" if path else name)


@contextmanager
def _replaced(placed: list[tuple[dict[str, Any], str, Any]]) -> Iterator[None]:
    """The modules hold these tensors for as long as this lasts."""
    before = [(attributes, name, attributes[name]) for attributes, name, _ in placed]
    changes.replaced += 1
    changes.count += 1
    try:
        for attributes, name, value in placed:
            attributes[name] = value
        yield
    finally:
        for attributes, name, value in before:
            attributes[name] = value
        changes.count += 1
        changes.replaced -= 1
