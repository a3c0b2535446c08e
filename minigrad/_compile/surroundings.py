"""The surroundings of a function: tensors, modules and values that it can reach without arguments.

A search starts at the function: its closure, the globals it names, its defaults and the object of
a method. It goes on through containers, modules, optimizers, objects and classes of the user's, and
the methods of these. The values it finds are guards: a recording holds as long as they are what
they were.
"""

from __future__ import annotations

import functools
import sys
import threading
import weakref
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dis import get_instructions
from enum import IntEnum
from itertools import count
from operator import is_, itemgetter
from pathlib import Path
from types import (
    BuiltinFunctionType,
    CodeType,
    FunctionType,
    MappingProxyType,
    MethodType,
    ModuleType,
)
from typing import Any

from minigrad.nn.module import Module, _Hooked
from minigrad.optim.lr_scheduler import LRScheduler
from minigrad.optim.optimizers import Optimizer
from minigrad.random import Generator
from minigrad.runtime.lazy_numpy import is_numpys
from minigrad.tape.hooks import hooks_of
from minigrad.tape.tensor_base import TensorBase

__all__ = ["Guard", "Surroundings", "first_difference"]

_SCALARS = (bool, int, float, complex, str, bytes, type(None))
_LEFT_ALONE = (BuiltinFunctionType, CodeType)
_CONTAINERS = (dict, list, tuple, set, frozenset, deque)  # that a class of the user's may extend
_LIBRARIES = frozenset(("minigrad", "numpy", *sys.stdlib_module_names)) - {"__main__"}
# Libraries whose objects hold the user's values, and some of minigrad's whose objects do not.
_HOLDERS = frozenset(("minigrad", "functools", "types", "collections", "argparse", "enum"))
_MEMORY = frozenset(("array", "ctypes", "_ctypes"))  # libraries whose objects are memory
_KEEPERS = ("minigrad.data", "minigrad.utils", "minigrad.profiler")
_ARRAY_BYTES = 1 << 16  # a NumPy array of so many bytes is compared by its content
# Attributes by which a function reads numbers that a step of training changes.
_OPTIONS, _EPOCHS = frozenset(("param_groups",)), frozenset(("get_last_lr", "last_epoch"))


class Check(IntEnum):
    """How the accelerator checks a guard. The numbers are those in csrc/python/replay.h."""

    ITEM = 0  # of a dict or list, by its key
    CELL = 1  # the content of a cell
    LIST = 2  # all items of a list
    KEYS = 3  # all keys of a dict, in order
    VALUES = 4  # all values of a dict, in order
    LENGTH = 5
    ITEMS = 6  # all items of a mapping, by their keys
    ATTRIBUTE = 7  # of an object, by its name
    ABSENT = 8  # a dict lacks a key
    CALL = 9  # a function says whether the guard holds


Places = Sequence[tuple[Any, Any]] | tuple[Check, Any] | None


class Guard:
    """Places that held these values when the program was recorded.

    ``read`` gives the values that are there now, ``names`` the names of the places. ``places`` says
    how the accelerator reads these values: a container and a key for each, or one kind of
    :class:`Check` and a container for all. It is None if only ``read`` can tell.
    """

    __slots__ = ("names", "places", "read", "values")

    def __init__(
        self,
        read: Callable[[], Iterable[Any]],
        values: Iterable[Any],
        names: Sequence[str],
        places: Places = None,
    ) -> None:
        self.read, self.values, self.names = read, tuple(values), names
        self.places = places

    def checks(self) -> list[tuple[Any, ...]]:
        """The guard as the accelerator checks it: kinds, containers, keys and values."""
        if self.places is None:
            return [(Check.CALL, self.holds, None, None)]
        if isinstance(self.places, tuple):
            kind, container = self.places
            if kind is Check.ATTRIBUTE:
                return [(kind, *container, getattr(*container))]
            if kind is Check.ABSENT:
                return [(kind, *container, None)]
            if kind is Check.LENGTH:
                return [(kind, container, None, self.values[0])]
            keys = ()
            if kind is Check.ITEMS:
                keys = tuple([key for key in container if key != _COPIED])
            copied = [container[_COPIED]] if kind is Check.ITEMS and _COPIED in container else []
            return [(kind, container, keys + (_COPIED,) * len(copied), (*self.values, *copied))]
        return [
            (Check.CELL if key is ... else Check.ITEM, container, key, x)
            for (container, key), x in zip(self.places, self.values, strict=True)
        ]

    def holds(self) -> bool:
        """True if the values are the same objects, or equal numbers or texts."""
        now = self._now()
        values = self.values
        if len(now) != len(values):
            return False
        if all(map(is_, now, values)):
            return True
        if all(map(_alike, values, now)):
            self.values = now
            return True
        return False

    def _now(self) -> tuple[Any, ...]:
        try:
            return tuple(self.read())
        except (LookupError, ValueError, AttributeError):
            return ()

    def difference(self) -> str:
        """Name the place that changed, its old and its new value."""
        now = self._now()
        for name, value, other in zip(self.names, self.values, now, strict=False):
            if not _alike(value, other):
                return f"{name} was {_shown(value)} and is {_shown(other)}"
        if len(now) == len(self.values):
            return ""
        missing = self.names[len(now) :]
        if missing:
            return f"{missing[0]} was {_shown(self.values[len(now)])} and is gone"
        where = self.names[0].split("[")[0] if self.names else "a container"
        return f"{where} had {len(self.values)} items and has {len(now)}"


def _alike(a: Any, b: Any) -> bool:
    """True for the same object, or equal numbers or texts. 0.0 is not -0.0, NaN is never equal."""
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if isinstance(a, _SCALARS):
        return bool(a == b) and str(a) == str(b)
    return type(a) is MethodType and a.__self__ is b.__self__ and a.__func__ is b.__func__


def _shown(x: Any) -> str:
    return repr(x) if isinstance(x, _SCALARS) else f"a {type(x).__name__}"


def first_difference(guards: list[Guard]) -> str | None:
    """The difference that the first broken guard tells; None if all hold."""
    return next((guard.difference() for guard in guards if not guard.holds()), None)


class Surroundings:
    """Tensors, modules, optimizers and guards that were found from a function."""

    def __init__(self, starts: list[Any]) -> None:
        self.tensors: dict[int, Any] = {}
        self.names: dict[int, str] = {}
        self.modules: list[Any] = []
        self.optimizers: list[Any] = []
        self.guards: list[Guard] = []
        self.state_guards: list[Guard] = []  # of the tensors that optimizers keep
        self.reached: set[int] = set()
        self.unknown = ""  # an object whose state cannot be known
        self._module_guards: list[Guard] = []
        self.schedules: list[Any] = []
        self._streams: list[tuple[str, Callable[[], Any], Any]] = []
        self._alive: list[Any] = []  # so that no id is used again
        self._named: frozenset[str] = frozenset()
        self._starts = {id(start) for start in starts}  # searched, wherever they are from
        # The module whose forward method is the function: its own hooks run outside.
        first = starts[0]
        of = first.__self__ if isinstance(first, MethodType) else None
        is_forward = isinstance(of, Module) and first.__func__ is getattr(type(of), "forward", None)
        self._inside = of if is_forward else None
        for module, state in (("random", _state_of_random), ("numpy.random", _state_of_numpy)):
            if module in sys.modules:
                self._stream(module, state)
        for start in starts:
            self._search(start, getattr(start, "__name__", type(start).__name__))
        self._guard_live_numbers()

    def modules_hold(self) -> bool:
        """True if no attribute of a module was set to something else."""
        return all(guard.holds() for guard in self._module_guards)

    def modules_difference(self) -> str:
        """The first attribute of a module that changed."""
        return next((g.difference() for g in self._module_guards if not g.holds()), "")

    def advanced(self) -> str:
        """The name of a generator of random numbers, or iterator, that has moved since; or ""."""
        return next((name for name, state, before in self._streams if state() != before), "")

    # ---- the search ----

    def _search(self, start: Any, name: str) -> None:
        waiting = [(start, name)]
        while waiting:
            x, name = waiting.pop()
            if isinstance(x, _SCALARS) or id(x) in self.reached:
                continue
            self._alive.append(x)
            if isinstance(x, BuiltinFunctionType) and not isinstance(x.__self__, ModuleType):
                waiting.append((x.__self__, f"{name}.__self__"))
            if isinstance(x, _LEFT_ALONE) or is_numpys("generic", x):
                continue
            self.reached.add(id(x))
            waiting += self._within(x, name)

    def _within(self, x: Any, name: str) -> list[tuple[Any, str]]:
        """The values in an object, each with its name; they become guards."""
        if isinstance(x, TensorBase):
            self.tensors[id(x)] = x
            self.names[id(x)] = name
            return [(hook, f"a hook of {name}") for hook in hooks_of(x)]
        for kinds, method in _SEARCHES:
            if isinstance(x, kinds):
                found = method(self, x, name)
                if isinstance(x, _CONTAINERS) and not _is_library(type(x)):
                    found = [*found, *self._of_attributes(x, name)]
                return found
        return self._of_object(x, name)

    def _keep(
        self,
        read: Callable[[], Iterable[Any]],
        names: Sequence[str],
        places: Places = None,
    ) -> list[tuple[Any, str]]:
        guard = Guard(read, read(), names, places)
        self.guards.append(guard)
        return list(zip(guard.values, names, strict=True))

    def _of_module(self, x: Any, name: str) -> list[tuple[Any, str]]:
        if not self.modules:
            place = Module.__dict__, "__call__"
            self._keep(lambda: (Module.__dict__["__call__"],), ["hooks of all modules"], [place])
        self.modules.append(x)
        read = functools.partial(_attributes, x, x is self._inside)
        held = read()
        names = [f"{name}.{key}" for key in held]
        self._module_guards.append(Guard(lambda: read().values(), held.values(), names))
        found = zip(held.values(), names, strict=True)
        return [*found, (type(x), type(x).__name__)]

    def _of_hooked(self, x: Any, name: str) -> list[tuple[Any, str]]:
        lists = x.before, x.after, x.backward_before, x.backward
        return [(hooks, f"hooks of {name}") for hooks in lists]

    def _of_optimizer(self, x: Any, name: str) -> list[tuple[Any, str]]:
        self.optimizers.append(x)
        own = self._own_methods(x, name, "step", "zero_grad")
        held = [(vars(x), "param_groups")] if "param_groups" in vars(x) else None
        self._keep(lambda: (x.param_groups,), [f"{name}.param_groups"], held)
        found: list[tuple[Any, str]] = []
        groups = [f"{name}.param_groups[{k}]" for k in range(len(x.param_groups))]
        self._keep(lambda: x.param_groups, groups, _whole(x.param_groups))
        found += self._keep(
            lambda: [group["params"] for group in x.param_groups],
            [f"{group}['params']" for group in groups],
            [(group, "params") for group in x.param_groups],
        )
        for p, state in x.state.items():
            found.append((p, f"{name}.state"))
            kept = {k: v for k, v in state.items() if isinstance(v, TensorBase)}
            names = [f"{name}.state[...][{k!r}]" for k in kept]
            found += zip(kept.values(), names, strict=True)
            read = functools.partial(_state_of, x, p)
            places = [(x.state, p), *[(state, key) for key in kept]]
            self.state_guards.append(
                Guard(read, [state, *kept.values()], [f"{name}.state[...]", *names], places)
            )
        count = Guard(lambda: (len(x.state),), (len(x.state),), [f"len({name}.state)"])
        if "state" in vars(x):
            self.state_guards.append(
                Guard(lambda: (x.state,), (x.state,), [f"{name}.state"], [(vars(x), "state")])
            )
            count.places = Check.LENGTH, x.state
        self.state_guards.append(count)
        return [*found, *own, (type(x), type(x).__name__)]

    def _own_methods(self, x: Any, name: str, *methods: str) -> list[tuple[Any, str]]:
        """The methods among these that an object has instead of its class; guards for all."""
        held, found = vars(x), []
        for method in methods:
            if method in held:
                place = [(held, method)]
                found += self._keep(_reader(held, [method]), [f"{name}.{method}"], place)
            else:
                read = functools.partial(_has, held, method)
                absent = Check.ABSENT, (held, method)
                self._keep(read, [f"that {name} has a {method} of its own"], absent)
        return found

    def _of_schedule(self, x: Any, name: str) -> list[tuple[Any, str]]:
        self.schedules.append(x)
        inner = getattr(x, "schedulers", ())
        found = [(each, f"{name}.schedulers[{k}]") for k, each in enumerate(inner)]
        found += self._own_methods(x, name, "step")
        return [*found, (x.optimizer, f"{name}.optimizer"), (type(x), type(x).__name__)]

    def _of_function(self, x: Any, name: str) -> list[tuple[Any, str]]:
        code = x.__code__
        found: list[tuple[Any, str]] = []
        cells = [c for c in x.__closure__ or () if _filled(c)]
        if cells:
            named = [
                v
                for v, c in zip(code.co_freevars, x.__closure__ or (), strict=True)
                if any(c is other for other in cells)
            ]
            places = [(cell, ...) for cell in cells]
            found += self._keep(lambda: [cell.cell_contents for cell in cells], named, places)
        if x.__defaults__:
            named = [f"a default of {name}"] * len(x.__defaults__)
            where = Check.ATTRIBUTE, (x, "__defaults__")
            found += self._keep(lambda: x.__defaults__, named, where)
        for extra in (x.__kwdefaults__, x.__dict__):
            if extra:
                named = [f"{name}.{key}" for key in extra]
                found += self._keep(extra.values, named, _whole(extra, Check.VALUES))
        if id(x) not in self._starts and _in_library(code.co_filename):
            return found
        read, names = _names_in(code)
        self._named |= (_OPTIONS | _EPOCHS).intersection(names)
        known = x.__globals__
        used = [n for n in read if n in known]
        found += self._keep(_reader(known, used), used, [(known, n) for n in used])
        self._keep(
            lambda: (x.__code__,), [f"the code of {name}"], (Check.ATTRIBUTE, (x, "__code__"))
        )
        for builtin in read:
            if builtin not in known:
                hides = f"that a global hides {builtin}"
                absent = Check.ABSENT, (known, builtin)
                self._keep(functools.partial(_has, known, builtin), [hides], absent)
        modules = {variable: known.get(variable, sys.modules.get(variable)) for variable in names}
        for variable, module in (*modules.items(), *[(name, x) for x, name in found]):
            if isinstance(module, ModuleType):
                found += self._of_python_module(module, variable, names)
        return found

    def _of_python_module(
        self, x: ModuleType, name: str, names: Iterable[str], depth: int = 0
    ) -> list[tuple[Any, str]]:
        """The values of a user's module under names that a function mentions."""
        if _of_library(x.__name__):
            return []
        held = vars(x)
        used = [key for key in names if key in held]
        named = [f"{name}.{key}" for key in used]
        found = self._keep(_reader(held, used), named, [(held, key) for key in used])
        for value, path in tuple(found):
            if isinstance(value, ModuleType) and depth < 4:
                found += self._of_python_module(value, path, names, depth + 1)
        return found

    def _of_method(self, x: Any, name: str) -> list[tuple[Any, str]]:
        return [(x.__self__, "self"), (x.__func__, name)]

    def _of_partial(self, x: Any, name: str) -> list[tuple[Any, str]]:
        return [(x.func, name), (x.args, "args"), (x.keywords, "keywords")]

    def _of_dict(self, x: Any, name: str) -> list[tuple[Any, str]]:
        self._keep(x.keys, [f"a key of {name}"] * len(x), _whole(x, Check.KEYS))
        named = [f"{name}[{key!r}]" for key in x]
        return self._keep(x.values, named, _whole(x, Check.VALUES))

    def _of_sequence(self, x: Any, name: str) -> list[tuple[Any, str]]:
        return self._keep(lambda: x, [f"{name}[{k}]" for k in range(len(x))], _whole(x))

    def _of_tuple(self, x: Any, name: str) -> list[tuple[Any, str]]:
        return [(value, f"{name}[{k}]") for k, value in enumerate(x)]

    def _of_set(self, x: Any, name: str) -> list[tuple[Any, str]]:
        before = frozenset(x)
        self._keep(lambda: (x == before,), [f"that {name} is as it was"])
        return [(value, f"an item of {name}") for value in before]

    def _of_descriptor(self, x: Any, name: str) -> list[tuple[Any, str]]:
        parts = [getattr(x, key, None) for key in ("__func__", "fget", "fset", "func")]
        return [(part, name) for part in parts if part is not None]

    def _of_class(self, x: Any, name: str) -> list[tuple[Any, str]]:
        found: list[tuple[Any, str]] = []
        for each in x.__mro__:
            if _is_library(each) or (each is not x and id(each) in self.reached):
                continue
            self.reached.add(id(each))
            keys = [key for key in vars(each) if key != _COPIED]
            names = [f"{each.__name__}.{key}" for key in keys]
            places = Check.ITEMS, vars(each)
            found += self._keep(functools.partial(_held_by, each), names, places)
        return found

    def _of_object(self, x: Any, name: str) -> list[tuple[Any, str]]:
        stream = _stream_of(x)
        if stream is not None:
            self._stream(name, stream)
            return []
        kind, module = type(x), type(x).__module__
        if module == "minigrad._compile.compiled":
            return [(x.function, name)]
        if is_numpys("ndarray", x):
            self._of_numpys_array(x, name)
            return []
        if isinstance(x, Iterator) and _is_library(kind):
            self.unknown = self.unknown or f"{name} is an iterator, whose state no program knows"
            return []
        if isinstance(x, weakref.ref):
            return self._keep(lambda: (x(),), [f"what {name} refers to"])
        if isinstance(x, ContextVar):
            return self._keep(lambda: (x.get(None),), [f"the value of {name}"])
        if isinstance(x, threading.local):
            self.unknown = self.unknown or f"{name} differs from thread to thread"
            return []
        top = module.split(".")[0]
        if isinstance(x, bytearray) or top in _MEMORY:
            return self._of_memory(x, name)
        if (
            _is_library(kind)
            and top in _LIBRARIES
            and (top not in _HOLDERS or module.startswith(_KEEPERS))
        ):
            return []
        return self._of_attributes(x, name)

    def _of_attributes(self, x: Any, name: str) -> list[tuple[Any, str]]:
        """The attributes and the class of an object of the user's."""
        kind = type(x)
        found: list[tuple[Any, str]] = []
        self._keep(
            lambda: (type(x),), [f"the class of {name}"], (Check.ATTRIBUTE, (x, "__class__"))
        )
        held = getattr(x, "__dict__", None)
        if held is not None:
            named = [f"{name}.{key}" for key in held]
            self._keep(held.keys, named, _whole(held, Check.KEYS))
            found += self._keep(held.values, named, _whole(held, Check.VALUES))
        slots = [key for each in kind.__mro__ for key in _slots(each) if hasattr(x, key)]
        if slots and not isinstance(x, Generator):
            found += self._keep(
                lambda: [getattr(x, key) for key in slots], [f"{name}.{key}" for key in slots]
            )
        return [*found, (kind, kind.__name__)]

    def _of_memory(self, x: Any, name: str) -> list[tuple[Any, str]]:
        """The content of an object with memory of its own, as of ``array`` and ``ctypes``."""
        try:
            size = memoryview(x).nbytes
        except TypeError:
            return []
        if size <= _ARRAY_BYTES:
            self._keep(lambda: (bytes(memoryview(x)),), [f"the content of {name}"])
        else:
            self.unknown = self.unknown or f"{name} has {size} bytes, which may change"
        return []

    def _of_numpys_array(self, x: Any, name: str) -> None:
        if x.nbytes <= _ARRAY_BYTES and not x.dtype.hasobject:
            self._keep(lambda: (x.tobytes(),), [f"the content of {name}"])
        else:
            self.unknown = self.unknown or (
                f"{name} is a NumPy array of {x.nbytes} bytes, whose values may change: make it a "
                "tensor"
            )

    # ---- numbers that change by themselves ----

    def _stream(self, name: str, state: Callable[[], Any]) -> None:
        self._streams.append((name, state, state()))

    def _guard_live_numbers(self) -> None:
        """Guards for the options that the function reads in Python."""
        for x in self.optimizers if self._named else ():
            for k, group in enumerate(x.param_groups):
                keys = [key for key in group if key != "params"]
                name = type(x).__name__
                names = [f"{name}.param_groups[{k}][{key!r}]" for key in keys]
                places = [(group, key) for key in keys]
                self._keep(functools.partial(_items_of, group, keys), names, places)
        for x in self.schedules if self._named & _EPOCHS else ():
            keys = [key for key in vars(x) if key != "optimizer"]
            names = [f"{type(x).__name__}.{key}" for key in keys]
            for value, name in self._keep(functools.partial(_items_of, vars(x), keys), names):
                if isinstance(value, list):
                    self._of_sequence(value, name)


_SEARCHES: list[tuple[Any, Callable[[Any, Any, str], list[tuple[Any, str]]]]] = [
    (Optimizer, Surroundings._of_optimizer),
    (LRScheduler, Surroundings._of_schedule),
    (Module, Surroundings._of_module),
    (_Hooked, Surroundings._of_hooked),
    (FunctionType, Surroundings._of_function),
    (MethodType, Surroundings._of_method),
    (functools.partial, Surroundings._of_partial),
    ((dict, MappingProxyType), Surroundings._of_dict),
    ((list, deque), Surroundings._of_sequence),
    (tuple, Surroundings._of_tuple),
    ((set, frozenset), Surroundings._of_set),
    ((staticmethod, classmethod, property, functools.cached_property), Surroundings._of_descriptor),
    (type, Surroundings._of_class),
    (ModuleType, lambda *_: []),
]


@functools.cache
def _of_library(name: str | None) -> bool:
    """True for the name of a module that is not the user's own."""
    top = (name or "sys").split(".")[0]
    file = getattr(sys.modules.get(top), "__file__", None) or ""
    return top in _LIBRARIES or "site-packages" in file or "dist-packages" in file


def _attributes(module: Any, inside: bool) -> dict[str, Any]:
    """The attributes of a module; without ``forward`` where its own hooks run outside."""
    held: dict[str, Any] = module.__dict__
    return {k: v for k, v in held.items() if k != "forward"} if inside else held


@functools.cache
def _in_library(file: str) -> bool:
    """True for a file of Python, minigrad or an installed package. Code of exec() has no file."""
    own = (str(Path(__file__).parent.parent), str(Path(functools.__file__).parent), "<frozen")
    return file.startswith(own) or "site-packages" in file or "dist-packages" in file


def _is_library(kind: type) -> bool:
    """True for a class that is not the user's own. exec() makes classes of ``builtins``."""
    made_in_python = bool(kind.__flags__ >> 9 & 1)
    return _of_library(kind.__module__) and not (kind.__module__ == "builtins" and made_in_python)


def _filled(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018 - raises an error for an empty cell
    except ValueError:
        return False
    return True


def _whole(x: Any, kind: Check = Check.LIST) -> tuple[Check, Any] | None:
    """How the accelerator checks all of a container, if it is of a kind that it knows."""
    known = type(x) is list if kind is Check.LIST else type(x) in (dict, defaultdict)
    return (kind, x) if known else None


def _reader(held: Mapping[str, Any], keys: Sequence[str]) -> Callable[[], tuple[Any, ...]]:
    """A function that reads some values of a dict."""
    if len(keys) == 1:
        return lambda: (held[keys[0]],)
    get = itemgetter(*keys) if keys else lambda _: ()
    return lambda: get(held)


def _has(held: Mapping[str, Any], key: str) -> tuple[bool]:
    return (key in held,)


def _items_of(held: Mapping[str, Any], keys: Sequence[str]) -> list[Any]:
    return [held[key] for key in keys]


def _state_of(optimizer: Any, p: Any) -> list[Any]:
    """The state of a parameter, and the tensors in it."""
    state = optimizer.state.get(p, {})
    return [state, *[value for value in state.values() if isinstance(value, TensorBase)]]


def _slots(kind: type) -> tuple[str, ...]:
    slots = vars(kind).get("__slots__", ())
    slots = (slots,) if isinstance(slots, str) else tuple(slots)
    private = f"_{kind.__name__.lstrip('_')}"
    return tuple(
        [
            private + key if key.startswith("__") and not key.endswith("__") else key
            for key in slots
            if key not in ("__weakref__", "__dict__")
        ]
    )


_COPIED = "__slotnames__"  # a note that copies of an object leave in its class


def _held_by(kind: type) -> list[Any]:
    return [value for key, value in vars(kind).items() if key != _COPIED]


@functools.lru_cache(1024)
def _names_in(code: CodeType) -> tuple[list[str], list[str]]:
    """The globals that code reads, and all names in it, attributes included, in order."""
    loads = ("LOAD_GLOBAL", "LOAD_NAME")
    read = [x.argval for x in get_instructions(code) if x.opname in loads]
    mentioned = [*code.co_names]
    for x in code.co_consts:
        if isinstance(x, CodeType):
            inner = _names_in(x)
            read += inner[0]
            mentioned += inner[1]
    return list(dict.fromkeys(read)), list(dict.fromkeys(mentioned))


# ---- streams: objects that give another value each time ------------------------------------------


def _state_of_random() -> Any:
    return sys.modules["random"].getstate()


def _state_of_numpy() -> Any:
    kind, key, *rest = sys.modules["numpy.random"].get_state()
    return kind, key.tobytes(), *rest


_EMPTY: list[Any] = [[], (), range(0), {}, {}.values(), {}.items(), set(), ""]
_LISTS = tuple([type(iter(x)) for x in _EMPTY])


def _stream_of(x: Any) -> Callable[[], Any] | None:
    """A function that says where a stream is; None if x is none, or if that cannot be told."""
    drawing = sys.modules.get("random")
    if drawing is not None and isinstance(x, drawing.Random):
        return x.getstate
    numpys = sys.modules.get("numpy.random")
    if numpys is not None and isinstance(x, numpys.Generator):
        return lambda: repr(x.bit_generator.state)
    if numpys is not None and isinstance(x, numpys.RandomState):
        return lambda: repr(x.get_state())
    if isinstance(x, count):
        return lambda: repr(x)
    if isinstance(x, _LISTS):
        left: Any = x
        state: Callable[[], Any] = left.__length_hint__
        return state
    return None
