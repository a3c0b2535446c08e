"""Dicts of a module's parts under PyTorch's names: ``_modules``, ``_parameters``, ``_buffers``.

minigrad's modules keep all parts as attributes. These mappings read and write the attributes.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from typing import Any

__all__ = ["Held"]


class Held(MutableMapping[str, Any]):
    """The attributes of a module with one class, by name, in the order in which they were set."""

    def __init__(self, module: Any, kind: type) -> None:
        self._module, self._kind = module, kind

    def __getitem__(self, name: str) -> Any:
        held = self._module.__dict__[name]
        if not isinstance(held, self._kind):
            raise KeyError(name)
        return held

    def __setitem__(self, name: str, value: Any) -> None:
        """Set the attribute. Raises TypeError for a value of another class."""
        if not isinstance(value, self._kind):
            raise TypeError(
                f"[{type(self._module).__name__}] {name!r} cannot be {type(value).__name__} among "
                f"those of the class {self._kind.__name__}: "
                "mg.func.functional_call(module, values, args) computes with other values"
            )
        setattr(self._module, name, value)

    def __delitem__(self, name: str) -> None:
        self[name]
        delattr(self._module, name)

    def __iter__(self) -> Iterator[str]:
        return iter([k for k, v in self._module.__dict__.items() if isinstance(v, self._kind)])

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __repr__(self) -> str:
        return repr(dict(self))
