"""Common interface of the libraries: make an array, finish a call, read a result."""

from __future__ import annotations

import importlib
import importlib.util
import time
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

__all__ = ["ALONE", "KINDS", "PEERS", "ChannelsLast", "Library", "fastest", "installed", "load"]

PEERS = ("minigrad", "numpy", "torch", "jax")  # the order of the table's columns
ALONE = "one thread"  # minigrad on one of several threads


class Library:
    """NumPy, and the base class of the other libraries."""

    name = "numpy"
    rebuilt = True  # a case is built several times, at different addresses

    def __init__(self, threads: int) -> None:
        """Load the library, and set its thread count unless the environment does."""
        self.xp: Any = importlib.import_module(self.name)

    def array(self, values: np.ndarray, requires_grad: bool = False) -> Any:
        """The values in a new array of the library."""
        del requires_grad
        return np.array(values)

    def placed(self, module: Any) -> Any:
        """The module, with parameters in the same layout as the arrays."""
        return module

    def finished(self, call: Callable[[], Any]) -> Callable[[], Any]:
        """A call that returns only when its result is complete."""
        return call

    def numpy(self, result: Any) -> np.ndarray:
        """A result of the library as a NumPy array."""
        return np.asarray(result)

    def results(self, result: Any) -> list[np.ndarray]:
        """One result, or a sequence of them, as NumPy arrays."""
        many = result if isinstance(result, (tuple, list)) else (result,)
        return [self.numpy(r) for r in many]


class Minigrad(Library):
    """minigrad, eager, in this process."""

    name = "minigrad"

    def __init__(self, threads: int) -> None:
        super().__init__(threads)
        self.nn, self.optim = (importlib.import_module(f"{self.name}.{m}") for m in ("nn", "optim"))
        self.functional = self.nn.functional

    def array(self, values: np.ndarray, requires_grad: bool = False) -> Any:
        return self.xp.tensor(values, requires_grad=requires_grad)

    def numpy(self, result: Any) -> np.ndarray:
        return np.asarray(result.detach().numpy())


class Torch(Minigrad):
    """Eager torch."""

    name = "torch"

    def __init__(self, threads: int) -> None:
        super().__init__(threads)
        self.xp.set_num_threads(threads)

    def array(self, values: np.ndarray, requires_grad: bool = False) -> Any:
        return self.xp.tensor(np.asarray(values), requires_grad=requires_grad)


class ChannelsLast(Torch):
    """torch with channels-last images."""

    def array(self, values: np.ndarray, requires_grad: bool = False) -> Any:
        made = super().array(values)
        if made.ndim == 4:
            made = made.contiguous(memory_format=self.xp.channels_last)
        return made.requires_grad_(requires_grad)

    def placed(self, module: Any) -> Any:
        return module.to(memory_format=self.xp.channels_last)


class Jax(Library):
    """jax. The builders jit, and every call waits for its result."""

    name = "jax"
    rebuilt = False  # each build would compile again; XLA aligns its buffers

    def array(self, values: np.ndarray, requires_grad: bool = False) -> Any:
        del requires_grad
        return self.xp.block_until_ready(self.xp.device_put(np.array(values)))

    def finished(self, call: Callable[[], Any]) -> Callable[[], Any]:
        wait = self.xp.block_until_ready
        return lambda: wait(call())


KINDS: dict[str, type[Library]] = {
    "minigrad": Minigrad,
    "numpy": Library,
    "torch": Torch,
    "jax": Jax,
    # Variants of a library, for comparison with itself. They are no peers.
    "again": Library,
    "contiguous": Minigrad,
    "short": Minigrad,
    "forward": Minigrad,
    "eager": Minigrad,
    ALONE: Minigrad,
}


def fastest(ways: Mapping[str, Callable[[], Callable[[], Any]]]) -> Callable[[], Any]:
    """The fastest of the calls that ``ways`` make. Its attribute ``way`` has the name.

    A way that the library lacks raises RuntimeError or TypeError.
    """

    def seconds(call: Callable[[], Any]) -> float:
        call()
        times = []
        for _ in range(3):
            begin = time.perf_counter()
            call()
            times.append(time.perf_counter() - begin)
        return min(times)

    found: dict[float, str] = {}
    for name, make in ways.items():
        try:
            found[seconds(make())] = name
        except (RuntimeError, TypeError):
            continue
    way = found[min(found)]
    call = ways[way]()  # built again, since a step changes its inputs
    call.way = way  # type: ignore[attr-defined]
    return call


def load(name: str, threads: int) -> Library:
    """Load a library by the name of its column, without the warnings of its import."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return KINDS[name](threads)


def installed(threads: int) -> dict[str, Library]:
    """The libraries that can be imported, by name. minigrad and NumPy are always included.

    Variants that a case times separately are included under their own names.
    """
    missing = [name for name in ("torch", "jax") if importlib.util.find_spec(name) is None]
    if threads == 1:
        missing.append(ALONE)
    return {name: load(name, threads) for name in KINDS if name not in missing}
