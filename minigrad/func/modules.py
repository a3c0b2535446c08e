"""``functional_call``: modules called as functions of their parameters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from minigrad.nn.module import Module, Parameter

__all__ = ["functional_call"]


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
    try:
        for attributes, name, value in placed:
            attributes[name] = value
        yield
    finally:
        for attributes, name, value in before:
            attributes[name] = value
