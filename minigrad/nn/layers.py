"""Linear, Identity, Flatten and Unflatten layers, and containers of modules."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, overload

from minigrad.functions.arguments import integer, size_of
from minigrad.functions.creation import check_room, tensor
from minigrad.functions.grad_modes import no_grad
from minigrad.functions.shaping import flatten, unflatten
from minigrad.nn import functional as F  # noqa: N812 - its usual name
from minigrad.nn.function_module import FunctionModule
from minigrad.nn.module import Module, Parameter
from minigrad.random import drawing
from minigrad.runtime.devices import on_cpu
from minigrad.runtime.dtypes import as_dtype

if TYPE_CHECKING:
    from minigrad._tensor import Tensor

__all__ = [
    "Flatten",
    "Identity",
    "Linear",
    "ModuleDict",
    "ModuleList",
    "Sequential",
    "Unflatten",
]


def uniform_parameter(op: str, shape: tuple[int, ...], bound: float, dtype: Any) -> Parameter:
    """A parameter with values drawn from U(-bound, bound)."""
    check_room(op, shape)
    return Parameter(tensor(drawing().uniform(-bound, bound, shape), dtype))


def redraw(module: Any, bound: float) -> None:
    """Draw weight and bias again from U(-bound, bound), in place."""
    with no_grad():
        for p in (module.weight, module.bias):
            if p is not None:
                p.uniform_(-bound, bound)


class Linear(Module):
    """Linear layer ``x @ weight.T + bias``: (..., in_features) gives (..., out_features).

    The weight has shape (out_features, in_features). Weight and bias start in U(-b, b) with b =
    1/sqrt(in_features), as in PyTorch. For the weight this is He's (Kaiming) uniform distribution
    with a = sqrt(5) (He et al. 2015).

    Raises ValueError for negative sizes. A call raises ValueError if the shapes do not fit.

    >>> import minigrad as mg
    >>> layer = mg.nn.Linear(3, 2)
    >>> layer(mg.ones(4, 3)).shape
    (4, 2)
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        on_cpu(device)
        inputs = self.in_features = integer("Linear", "in_features", in_features, 0)
        outputs = self.out_features = integer("Linear", "out_features", out_features, 0)
        kind = as_dtype(dtype)
        bound = 1.0 / math.sqrt(inputs) if inputs else 0.0
        self.weight = uniform_parameter("Linear", (outputs, inputs), bound, kind)
        self.bias = uniform_parameter("Linear", (outputs,), bound, kind) if bias else None

    def reset_parameters(self) -> None:
        """Draw new starting values."""
        redraw(self, 1.0 / math.sqrt(self.in_features) if self.in_features else 0.0)

    def forward(self, x: Tensor) -> Tensor:
        """``x @ weight.T + bias``."""
        return F.linear(x, self.weight, self.bias)

    def extra_repr(self) -> str:
        """The sizes."""
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, "
            f"bias={self.bias is not None}"
        )


class Identity(Module):
    """The identity function as a module, which takes the place of a layer.

    It accepts any arguments.

    >>> import minigrad as mg
    >>> mg.nn.Identity(16, affine=True)(mg.ones(2)).tolist()
    [1.0, 1.0]
    """

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def forward(self, x: Any) -> Any:
        """The input itself."""
        return x


class Flatten(FunctionModule, function=flatten):
    """:func:`minigrad.flatten` as a module: by default of all dimensions except the batch.

    >>> import minigrad as mg
    >>> mg.nn.Flatten()(mg.ones(2, 3, 4)).shape
    (2, 12)
    """

    start_dim: int = 1
    end_dim: int = -1


class Unflatten(Module):
    """:func:`minigrad.unflatten` as a module: splits one dimension into several.

    >>> import minigrad as mg
    >>> mg.nn.Unflatten(1, (2, 3))(mg.ones(4, 6)).shape
    (4, 2, 3)
    """

    def __init__(self, dim: int, unflattened_size: Sequence[int]) -> None:
        self.dim = integer("Unflatten", "dim", dim)
        if not isinstance(unflattened_size, (tuple, list)):
            kind = type(unflattened_size).__name__
            raise TypeError(f"[Unflatten] unflattened_size is a tuple of sizes, not {kind}")
        self.unflattened_size = size_of("Unflatten", tuple(unflattened_size))

    def forward(self, x: Tensor) -> Tensor:
        """Split the dimension of x into several."""
        return unflatten(x, self.dim, self.unflattened_size)

    def extra_repr(self) -> str:
        """The arguments."""
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"


# ---- containers ----------------------------------------------------------------------------------


if TYPE_CHECKING:

    class AnyModule(Module):
        """A module of a class that type checkers do not know. It may have any attribute."""

        def __getattr__(self, name: str) -> Any: ...


class _Row(Module):
    """Base of containers: modules in order, named "0", "1", ... unless given other names."""

    def append(self: _R, module: Module) -> _R:
        """Add a module at the end, and return the container. Raises TypeError for anything else."""
        return self.extend((module,))

    def extend(self: _R, modules: Iterable[Module]) -> _R:
        """Add modules at the end, and return the container. Raises TypeError for anything else."""
        number = len(self)
        for module in list(modules):
            while str(number) in self.__dict__:  # after a slice, or with names of the user's
                number += 1
            setattr(self, str(number), _checked(self, module))
            number += 1
        return self

    def insert(self, index: int, module: Module) -> None:
        """Insert a module, as into a list. All modules are renumbered."""
        modules = self._held()
        modules.insert(integer(type(self).__name__, "an index", index), _checked(self, module))
        self._renumber(modules)

    def pop(self, index: int) -> Module:
        """Remove a module and return it. Later modules are renumbered."""
        module: Module = self[index]
        del self[index]
        return module

    def __iadd__(self: _R, modules: Iterable[Module]) -> _R:
        return self.extend(modules)

    def __add__(self: _R, modules: Iterable[Module]) -> _R:
        joined: Any = self[:]
        return joined.extend(modules)

    def _names(self) -> list[str]:
        return [name for name, value in self.__dict__.items() if isinstance(value, Module)]

    def _held(self) -> list[Module]:
        return [value for value in self.__dict__.values() if isinstance(value, Module)]

    def _renumber(self, modules: list[Module]) -> None:
        """Replace the modules by these, named "0", "1", ..."""
        for name in self._names():
            delattr(self, name)
        self.extend(modules)

    def _part(self, modules: dict[str, Module]) -> Module:
        """A container of some of the modules, with the names they have here."""
        raise NotImplementedError

    def __len__(self) -> int:
        return len(self._held())

    def __iter__(self) -> Iterator[AnyModule]:
        return iter(self._held())  # type: ignore[arg-type]

    @overload
    def __getitem__(self: _R, index: slice) -> _R: ...
    @overload
    def __getitem__(self, index: int) -> AnyModule: ...
    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return self._part({name: self.__dict__[name] for name in self._names()[index]})
        return self.__dict__[self._name(index)]

    def __setitem__(self, index: int, module: Module) -> None:
        setattr(self, self._name(index), _checked(self, module))

    def __delitem__(self, index: Any) -> None:
        names = self._names()
        gone = names[index] if isinstance(index, slice) else [self._name(index)]
        self._renumber([self.__dict__[name] for name in names if name not in gone])

    def _name(self, index: int) -> str:
        """The name of the module at an index, which may be negative."""
        names = self._names()
        op = type(self).__name__
        try:
            return names[integer(op, "an index", index)]
        except IndexError:
            raise IndexError(
                f"[{op}] index {index} is out of range for {len(names)} modules"
            ) from None


_R = TypeVar("_R", bound=_Row)


def _checked(container: Module, module: Any) -> Module:
    if not isinstance(module, Module):
        op = type(container).__name__
        if isinstance(module, type) and issubclass(module, Module):
            hint = f": {module.__name__} is the class, {module.__name__}() a module of it"
        elif isinstance(module, (list, tuple)) and isinstance(container, Sequential):
            hint = f": give the modules one by one, {op}(*modules)"
        else:
            hint = ""
        raise TypeError(f"[{op}] expected a Module, not {type(module).__name__}{hint}")
    return module


class Sequential(_Row):
    """Modules that are called one after another, named "0", "1", ... or by the names of a dict.

    A slice keeps the names.

    >>> import minigrad as mg
    >>> mg.nn.Sequential(mg.nn.Linear(4, 3), mg.nn.ReLU())
    Sequential(
      (0): Linear(in_features=4, out_features=3, bias=True)
      (1): ReLU()
    )
    """

    def __init__(self, *modules: Module | Mapping[str, Module]) -> None:
        if len(modules) == 1 and isinstance(modules[0], Mapping):
            for name, module in modules[0].items():
                self._check_name("Sequential", name)
                setattr(self, name, _checked(self, module))
        else:
            self.extend(modules)  # type: ignore[arg-type]

    def _part(self, modules: dict[str, Module]) -> Module:
        return Sequential(modules)

    def forward(self, x: Any) -> Any:
        """Pass the input through all modules in order."""
        for module in self.__dict__.values():
            if isinstance(module, Module):
                x = module(x)
        return x


class ModuleList(_Row):
    """A list of modules. A module finds their parameters, unlike those in a plain list.

    >>> import minigrad as mg
    >>> layers = mg.nn.ModuleList(mg.nn.Linear(2, 2) for _ in range(3))
    >>> len(layers), [name for name, p in layers[:1].named_parameters()]
    (3, ['0.weight', '0.bias'])
    """

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        self.extend(() if modules is None else modules)

    def _part(self, modules: dict[str, Module]) -> Module:
        return ModuleList(modules.values())

    def __repr__(self) -> str:
        """The repr. Adjacent modules with the same repr are shown once, with their number."""
        lines, start = [], 0
        for text, alike in itertools.groupby(map(repr, self)):
            count = len(list(alike))
            end = start + count - 1
            line = f"({start}): {text}" if count == 1 else f"({start}-{end}): {count} x {text}"
            lines.append(line.replace("\n", "\n  "))
            start += count
        inside = "\n  ".join(lines)
        return f"{type(self).__name__}(\n  {inside}\n)" if lines else f"{type(self).__name__}()"


class ModuleDict(Module):
    """A dict of modules. A module finds their parameters, unlike those in a plain dict.

    Raises ValueError for names of the dict's own attributes, such as ``items``.

    >>> import minigrad as mg
    >>> heads = mg.nn.ModuleDict({"mean": mg.nn.Linear(2, 1), "scale": mg.nn.Linear(2, 1)})
    >>> list(heads), heads["mean"](mg.ones(4, 2)).shape
    (['mean', 'scale'], (4, 1))
    """

    def __init__(
        self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]] | None = None
    ) -> None:
        self.update({} if modules is None else modules)

    def update(self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]]) -> None:
        """Set all modules of a dict, or of pairs of a name and a module."""
        try:
            named = dict(modules)
        except (TypeError, ValueError):
            raise TypeError(
                "[ModuleDict] expected a dict or pairs of a name and a Module, not "
                f"{type(modules).__name__}"
            ) from None
        for name, module in named.items():
            self[name] = module

    def keys(self) -> list[str]:
        """The names, in the order in which they were set."""
        return [name for name, value in self.__dict__.items() if isinstance(value, Module)]

    def values(self) -> list[Module]:
        """The modules."""
        return [value for value in self.__dict__.values() if isinstance(value, Module)]

    def items(self) -> list[tuple[str, Module]]:
        """The names and the modules."""
        return list(zip(self.keys(), self.values(), strict=True))

    def __len__(self) -> int:
        return len(self.keys())

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def __contains__(self, name: object) -> bool:
        return isinstance(self.__dict__.get(name), Module)  # type: ignore[call-overload]

    def __getitem__(self, name: str) -> AnyModule:
        if name not in self:
            raise KeyError(name)
        return self.__dict__[name]

    def __setitem__(self, name: str, module: Module) -> None:
        if name not in self:
            self._check_name("ModuleDict", name)
        setattr(self, name, _checked(self, module))

    def __delitem__(self, name: str) -> None:
        if name not in self:
            raise KeyError(name)
        delattr(self, name)

    def pop(self, name: str) -> Module:
        """Remove a module, and return it. Raises KeyError for a missing name."""
        module: Module = self[name]
        del self[name]
        return module

    def clear(self) -> None:
        """Remove all modules."""
        for name in self.keys():
            del self[name]
