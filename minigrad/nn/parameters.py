"""Containers of parameters: ParameterList and ParameterDict."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from minigrad.functions.arguments import integer
from minigrad.nn.module import Module, Parameter, changes
from minigrad.tape.tensor_base import TensorBase

__all__ = ["ParameterDict", "ParameterList"]


def _kept(value: Any) -> Any:
    """A tensor as a parameter. Any other value is returned as is."""
    if isinstance(value, TensorBase) and not isinstance(value, Parameter):
        return Parameter(value)
    return value


def _shown(name: str, value: Any) -> str:
    if not isinstance(value, TensorBase):
        return f"  ({name}): Object of type: {type(value).__name__}"
    kind = "Parameter" if isinstance(value, Parameter) else "Tensor"
    size = "x".join(map(str, value.shape))
    return f"  ({name}): {kind} containing: [{value.dtype} of size {size}]"


class _Parameters(Module):
    """Base of containers. The entries are attributes with the names in ``_names``."""

    def __init__(self) -> None:
        self._held: dict[str, None] = {}

    def _values(self) -> list[Any]:
        return [self.__dict__[name] for name in self._held]

    def _put(self, name: str, value: Any) -> None:
        if name not in self._held:
            self._check_name(type(self).__name__, name, Parameter)
        self.__dict__.pop(name, None)
        if name in self._held:  # keeps parameters in the order of the names
            later = list(self._held)[list(self._held).index(name) + 1 :]
            moved = {each: self.__dict__.pop(each) for each in later}
            self.__dict__[name] = _kept(value)
            self.__dict__.update(moved)
        else:
            self._held[name] = None
            self.__dict__[name] = _kept(value)
        changes.count += 1

    def _take(self, name: str) -> Any:
        changes.count += 1
        del self._held[name]
        return self.__dict__.pop(name)

    def __len__(self) -> int:
        return len(self._held)

    def forward(self, *_: Any, **__: Any) -> Any:
        """Raise a RuntimeError: a container computes nothing."""
        raise RuntimeError(f"[{type(self).__name__}] is not called: it only holds parameters")

    def extra_repr(self) -> str:
        """The repr's text: a line for each entry."""
        return "\n".join(_shown(name, self.__dict__[name]) for name in self._held)


class ParameterList(_Parameters):
    """A list whose tensors are parameters. A module finds them, unlike those in a plain list.

    Tensors become parameters on the same memory. Other values are kept as they are.

    >>> import minigrad as mg
    >>> weights = mg.nn.ParameterList([mg.ones(2), mg.zeros(3)])
    >>> [name for name, p in weights.named_parameters()], weights[-1].shape
    (['0', '1'], (3,))
    """

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self.extend(() if values is None else values)

    def append(self, value: Any) -> ParameterList:
        """Add a value at the end, and return the list."""
        self._put(str(len(self)), value)
        return self

    def extend(self, values: Iterable[Any]) -> ParameterList:
        """Add values at the end, and return the list. Raises TypeError for one tensor."""
        if isinstance(values, TensorBase) or not isinstance(values, Iterable):
            raise TypeError(
                f"[ParameterList] expected several parameters, not {type(values).__name__}: "
                "append adds one"
            )
        for value in list(values):
            self.append(value)
        return self

    def pop(self, index: Any = -1) -> Any:
        """Remove a value, and return it."""
        values = self._values()
        found = values.pop(index)
        for name in list(self._held):
            self._take(name)
        self.extend(values)
        return found

    def _name(self, index: Any) -> str:
        at = integer("ParameterList", "an index", index)
        if not -len(self) <= at < len(self):
            raise IndexError(f"[ParameterList] index {at} is out of range for {len(self)} values")
        return str(at % len(self))

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)(self._values()[index])
        return self.__dict__[self._name(index)]

    def __setitem__(self, index: int, value: Any) -> None:
        self._put(self._name(index), value)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._values())

    def __iadd__(self, values: Iterable[Any]) -> ParameterList:
        return self.extend(values)

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if not name.isdigit()]


class ParameterDict(_Parameters):
    """A dict whose tensors are parameters. A module finds them, unlike those in a plain dict.

    Tensors become parameters on the same memory. Other values are kept as they are. Raises KeyError
    for names of the dict's own attributes, such as ``items``.

    >>> import minigrad as mg
    >>> scales = mg.nn.ParameterDict({"left": mg.ones(2), "right": mg.ones(3)})
    >>> [name for name, p in scales.named_parameters()], scales["right"].shape
    (['left', 'right'], (3,))
    """

    def __init__(self, parameters: Any = None) -> None:
        super().__init__()
        self.update({} if parameters is None else parameters)

    def update(self, parameters: Any) -> None:
        """Set all values of a dict, or of pairs of a name and a value."""
        if isinstance(parameters, (Mapping, ParameterDict)):
            pairs: Any = parameters.items()
        else:
            try:
                pairs = dict(parameters).items()
            except (TypeError, ValueError):
                raise TypeError(
                    "[ParameterDict] expected a dict or pairs of a name and a value, not "
                    f"{type(parameters).__name__}"
                ) from None
        for name, value in pairs:
            self[name] = value

    def keys(self) -> list[str]:
        """The names, in the order in which they were set."""
        return list(self._held)

    def values(self) -> list[Any]:
        """The values."""
        return self._values()

    def items(self) -> list[tuple[str, Any]]:
        """The names and the values."""
        return list(zip(self.keys(), self.values(), strict=True))

    def get(self, name: str, default: Any = None) -> Any:
        """The value with this name, or the default if there is none."""
        return self.__dict__[name] if name in self._held else default

    def setdefault(self, name: str, default: Any = None) -> Any:
        """The value with this name, which is set to the default if there is none."""
        if name not in self:
            self[name] = default
        return self[name]

    def pop(self, name: str) -> Any:
        """Remove a value, and return it. Raises KeyError for a missing name."""
        if name not in self:
            raise KeyError(name)
        return self._take(name)

    def popitem(self) -> tuple[str, Any]:
        """Remove the last name and its value, and return them."""
        name = next(reversed(self._held))
        return name, self._take(name)

    def clear(self) -> None:
        """Remove all values."""
        for name in self.keys():
            self._take(name)

    def copy(self) -> ParameterDict:
        """A container of the same parameters."""
        return type(self)(self.items())

    def fromkeys(self, keys: Iterable[str], default: Any = None) -> ParameterDict:
        """A container with the default for each of these names."""
        return type(self)([(name, default) for name in keys])

    def __getitem__(self, name: str) -> Any:
        if name not in self:
            raise KeyError(name)
        return self.__dict__[name]

    def __setitem__(self, name: str, value: Any) -> None:
        self._put(name, value)

    def __delitem__(self, name: str) -> None:
        self.pop(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def __reversed__(self) -> Iterator[str]:
        return reversed(self.keys())

    def __contains__(self, name: object) -> bool:
        return name in self._held

    def __or__(self, other: Any) -> ParameterDict:
        joined = self.copy()
        joined.update(other)
        return joined

    def __ior__(self, other: Any) -> ParameterDict:
        self.update(other)
        return self
