"""Recording of a sample's calls of one public function, with arguments and results as arrays."""

from __future__ import annotations

from dataclasses import dataclass
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

import minigrad as mg


@dataclass(frozen=True)
class Call:
    """One call: arguments as they were before it, and the flat list of results."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    results: list[Any]


def as_arrays(value: Any) -> Any:
    """Copy tensors to arrays, and dtypes to NumPy's, also in lists, tuples and dicts."""
    if isinstance(value, mg.Tensor):
        return value.detach().numpy().copy()
    if isinstance(value, mg.dtype):
        return np.dtype(value.name)
    if isinstance(value, list):
        return [as_arrays(v) for v in value]
    if isinstance(value, tuple):
        return tuple([as_arrays(v) for v in value])
    if isinstance(value, dict):
        return {key: as_arrays(v) for key, v in value.items()}
    return value


def as_tensors(value: Any) -> Any:
    """Convert arrays to tensors, also in lists, tuples and dicts."""
    if isinstance(value, (np.ndarray, np.generic)):
        return mg.tensor(value)
    if isinstance(value, (list, tuple)):
        return type(value)([as_tensors(v) for v in value])
    if isinstance(value, dict):
        return {key: as_tensors(v) for key, v in value.items()}
    return value


def flat(result: Any) -> list[Any]:
    """The arrays and numbers in a result, in order."""
    if isinstance(result, dict):
        return flat(list(result.values()))
    if isinstance(result, (list, tuple)):
        return [x for part in result for x in flat(part)]
    return [result]


def calls_of(target: Any, sample: Any, recorded_too: bool = True) -> list[Call]:
    """The calls of the function ``target`` that the sample makes.

    The sample is first called with tensors that need no gradient. Then it is called with leaves,
    whose recorded operations may run other rows.
    """
    found = _calls(target, sample, False)
    return found + _calls(target, sample, True) if recorded_too else found


def _calls(target: Any, sample: Any, requires_grad: bool) -> list[Call]:
    found: list[Call] = []

    def recorded(*args: Any, **kwargs: Any) -> Any:
        given = as_arrays(args), as_arrays(kwargs)
        result = target(*args, **kwargs)
        found.append(Call(*given, flat(as_arrays(result))))
        return result

    rerouted = _Rerouting(target, recorded)
    tensors = [mg.tensor(x).requires_grad_(requires_grad) for x in sample.inputs()]
    given = sample.prepared(*tensors)
    state = mg.get_rng_state()
    try:
        if sample.random:
            mg.manual_seed(0)
        rerouted(sample.call)(*given)
    finally:
        mg.set_rng_state(state)
    return found


class _Rerouting:
    """Replaces a function by another one wherever a sample's call refers to it."""

    def __init__(self, target: Any, instead: Any) -> None:
        self.target = target
        self.instead = instead

    def __call__(self, value: Any) -> Any:
        """The value, or a copy of it that refers to the other function."""
        if value is self.target:
            return self.instead
        if isinstance(value, ModuleType) and value.__name__.startswith("minigrad"):
            return _Module(value, self)
        if isinstance(value, FunctionType) and not value.__module__.startswith("minigrad"):
            return self.function(value)
        return value

    def function(self, f: FunctionType) -> FunctionType:
        """A copy of a function with rerouted globals, defaults and closure."""
        names = f.__code__.co_names
        scope = {
            **f.__globals__,
            **{n: self(f.__globals__[n]) for n in names if n in f.__globals__},
        }
        cells = tuple(_cell(self(c.cell_contents)) for c in f.__closure__ or ())
        defaults = tuple(map(self, f.__defaults__ or ()))
        made = FunctionType(f.__code__, scope, f.__name__, defaults, cells)
        made.__kwdefaults__ = {k: self(v) for k, v in (f.__kwdefaults__ or {}).items()}
        return made


class _Module:
    """A module of the engine with rerouted attributes."""

    def __init__(self, module: ModuleType, rerouting: _Rerouting) -> None:
        self._module = module
        self._rerouting = rerouting

    def __getattr__(self, name: str) -> Any:
        return self._rerouting(getattr(self._module, name))


def _cell(value: Any) -> Any:
    return (lambda: value).__closure__[0]  # type: ignore[index]
