"""The surroundings of a function: tensors, modules and values that it can reach without arguments.

A search starts at the function: its closure, the globals it names, its defaults and the object of
a method. It goes on through containers, modules, optimizers and objects of the user's classes. The
values it finds are guards: a recording holds as long as they are what they were.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from minigrad.nn.module import Module, _Hooked
from minigrad.optim.optimizers import Optimizer
from minigrad.tape.tensor_base import TensorBase

__all__ = ["Guard", "Surroundings", "first_difference"]

_SCALARS = (bool, int, float, complex, str, bytes, type(None))
_LEFT_ALONE = (ModuleType, type, BuiltinFunctionType, CodeType)
_OURS = ("minigrad", "numpy", "builtins", "functools", "collections", "typing", "math")


@dataclasses.dataclass(frozen=True, slots=True)
class Guard:
    """A place that held a value when the program was recorded."""

    where: Any  # a dict or list, or a cell of a closure
    key: Any
    value: Any
    name: str

    @property
    def place(self) -> Any:
        """The key, or Ellipsis for the contents of a cell."""
        return ... if self.key is _CELL else self.key

    def now(self) -> Any:
        """The value that is there now; Ellipsis if the place is gone."""
        try:
            return self.where.cell_contents if self.key is _CELL else self.where[self.key]
        except (KeyError, IndexError, ValueError):
            return ...

    def holds(self) -> bool:
        """True if the value is the same object, or an equal number or text."""
        value, now = self.value, self.now()
        return now is value or (
            type(now) is type(value) and isinstance(value, _SCALARS) and _equal(now, value)
        )

    def difference(self) -> str:
        """What changed."""
        return f"{self.name} was {_shown(self.value)} and is {_shown(self.now())}"


_CELL = object()


def _equal(a: Any, b: Any) -> bool:
    return bool(a == b) and str(a) == str(b)  # 0.0 is not -0.0; NaN is never equal


def _shown(x: Any) -> str:
    if isinstance(x, _SCALARS):
        return repr(x)
    return "gone" if x is ... else f"a {type(x).__name__}"


def first_difference(guards: list[Guard]) -> str | None:
    """What the first guard that does not hold says; None if all hold."""
    try:
        for guard in guards:
            where = guard.where
            now = where.cell_contents if guard.key is _CELL else where[guard.key]
            if now is not guard.value and not guard.holds():
                return guard.difference()
    except (KeyError, IndexError, ValueError):
        return guard.difference()
    return None


class Surroundings:
    """Tensors, modules, optimizers and guards that were found from a function."""

    def __init__(self, starts: list[Any]) -> None:
        self.tensors: dict[int, Any] = {}
        self.names: dict[int, str] = {}
        self.modules: list[Any] = []
        self.optimizers: list[Any] = []
        self.guards: list[Guard] = []
        self._seen: set[int] = set()
        self._alive: list[Any] = []  # so that no id is used again
        self._methods: list[tuple[str, FunctionType]] = []  # of the classes of what was found
        self._named: set[str] = set()  # names in the code of functions
        # The module whose forward method is the function: its own hooks run outside.
        first = starts[0]
        of = first.__self__ if isinstance(first, MethodType) else None
        is_forward = isinstance(of, Module) and first.__func__ is getattr(type(of), "forward", None)
        self._inside = of if is_forward else None
        for start in starts:
            self._search(start, getattr(start, "__name__", type(start).__name__))
        self._attributes = [self._held(module) for module in self.modules]

    def _held(self, module: Any) -> dict[str, Any]:
        """The attributes of a module that count."""
        held = dict(module.__dict__)
        if module is self._inside:
            held.pop("forward", None)
        return held

    def _module_guards(self) -> Iterator[Guard]:
        for module, held in zip(self.modules, self._attributes, strict=True):
            name = type(module).__name__
            length = len(self._held(module))
            yield Guard({0: length}, 0, len(held), f"the attributes of {name}")
            for key, value in held.items():
                yield Guard(module.__dict__, key, value, f"{name}.{key}")

    def modules_hold(self) -> bool:
        """True if no attribute of a module was set to something else."""
        return all(guard.holds() for guard in self._module_guards())

    def modules_difference(self) -> str:
        """The first attribute of a module that changed."""
        return next((g.difference() for g in self._module_guards() if not g.holds()), "")

    def _search(self, start: Any, name: str) -> None:
        waiting = [(start, name)]
        while waiting or (waiting := self._called()):
            x, name = waiting.pop()
            if isinstance(x, (*_SCALARS, *_LEFT_ALONE)) or id(x) in self._seen:
                continue
            self._seen.add(id(x))
            self._alive.append(x)
            waiting += self._within(x, name)

    def _called(self) -> list[tuple[Any, str]]:
        """The methods that functions found so far may call, and that were not searched."""
        methods, self._methods = self._methods, []
        found: list[tuple[Any, str]] = []
        for name, function in methods:
            if name in self._named or name in _CALLED:
                found.append((function, name))
            else:
                self._methods.append((name, function))
        return found

    def _within(self, x: Any, name: str) -> list[tuple[Any, str]]:
        """The values in an object, each with its name; they become guards."""
        if isinstance(x, TensorBase):
            self.tensors[id(x)] = x
            self.names[id(x)] = name
            return []
        if isinstance(x, Optimizer):
            return self._of_optimizer(x, name)
        if isinstance(x, Module):
            if not self.modules:
                call = Module.__dict__["__call__"]
                self.guards.append(Guard(Module.__dict__, "__call__", call, "hooks of all modules"))
            self.modules.append(x)
            self._methods += _methods_of(type(x))
            return [(value, f"{name}.{key}") for key, value in self._held(x).items()]
        if isinstance(x, _Hooked):
            lists = x.before, x.after, x.backward_before, x.backward
            return [(hooks, f"hooks of {name}") for hooks in lists]
        if isinstance(x, FunctionType):
            return self._of_function(x, name)
        if isinstance(x, MethodType):
            return [(x.__self__, "self"), (x.__func__, name)]
        if isinstance(x, functools.partial):
            return [(x.func, name), (x.args, "args"), (x.keywords, "keywords")]
        if isinstance(x, dict):
            self.guards.append(Guard(_Length(x), 0, len(x), f"len({name})"))
            return self._guarded(x, list(x), f"{name}[{{!r}}]")
        if isinstance(x, list):
            self.guards.append(Guard(_Length(x), 0, len(x), f"len({name})"))
            return self._guarded(x, range(len(x)), f"{name}[{{!r}}]")
        if isinstance(x, (tuple, set, frozenset)):
            return [(value, f"{name}[{i}]") for i, value in enumerate(x)]
        if type(x).__module__.split(".")[0] in _OURS or not hasattr(x, "__dict__"):
            return []
        held = x.__dict__
        self._methods += _methods_of(type(x))
        return self._guarded(held, list(held), f"{name}.{{}}")

    def _guarded(self, where: Any, keys: Any, name: str) -> list[tuple[Any, str]]:
        found = []
        for key in keys:
            value = where[key]
            self.guards.append(Guard(where, key, value, name.format(key)))
            found.append((value, name.format(key)))
        return found

    def _of_optimizer(self, x: Any, name: str) -> list[tuple[Any, str]]:
        self.optimizers.append(x)
        self.guards.append(
            Guard(x.__dict__, "param_groups", x.param_groups, f"{name}.param_groups")
        )
        found = []
        for place, group in enumerate(x.param_groups):
            found.append((group["params"], f"{name}.param_groups[{place}]['params']"))
        for p, state in x.state.items():
            found += [
                (p, f"{name}.state"),
                *[(v, f"{name}.state[...][{k!r}]") for k, v in state.items()],
            ]
        return found

    def _of_function(self, x: FunctionType, name: str) -> list[tuple[Any, str]]:
        if x.__module__ is None or x.__module__.split(".")[0] in _OURS:
            return []
        found: list[tuple[Any, str]] = []
        for variable, cell in zip(x.__code__.co_freevars, x.__closure__ or (), strict=True):
            try:
                value = cell.cell_contents
            except ValueError:
                continue
            self.guards.append(Guard(cell, _CELL, value, variable))
            found.append((value, variable))
        known = x.__globals__
        self._named.update(_globals_of(x.__code__))
        for variable in _globals_of(x.__code__):
            if variable in known and not isinstance(known[variable], _LEFT_ALONE):
                found += self._guarded_global(known, variable)
        for value in (*(x.__defaults__ or ()), *(x.__kwdefaults__ or {}).values()):
            found.append((value, f"a default of {name}"))
        return found

    def _guarded_global(self, known: dict[str, Any], variable: str) -> list[tuple[Any, str]]:
        value = known[variable]
        self.guards.append(Guard(known, variable, value, variable))
        return [(value, variable)]


class _Length:
    """The length of a container, as a place of a guard."""

    def __init__(self, held: Any) -> None:
        self.held = held

    def __getitem__(self, _: Any) -> int:
        return len(self.held)


# Methods that are called by no name.
_CALLED = ("forward", *[f"__{name}__" for name in ("call", "iter", "len", "getitem", "getattr")])


def _methods_of(cls: type) -> list[tuple[str, FunctionType]]:
    """The functions of a class of the user's, by name, also of properties and compiled methods."""
    found = []
    for base in cls.__mro__:
        if base.__module__.split(".")[0] in _OURS:
            continue
        for name, value in vars(base).items():
            for of in ("__func__", "function", "fget", "__wrapped__"):
                value = getattr(value, of, value)
            if isinstance(value, FunctionType):
                found.append((name, value))
    return found


def _globals_of(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for x in code.co_consts:
        if isinstance(x, CodeType):
            yield from _globals_of(x)
