"""Compiled functions: the first call of a kind records a program, later ones run it."""

from __future__ import annotations

import functools
import os
import sys
import threading
import types
import warnings
import weakref
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

from minigrad._compile.arguments import difference, form_of, names_of, shown
from minigrad._compile.attempt import Attempt
from minigrad._compile.explanation import Explanation, ProgramExplanation
from minigrad._compile.in_c import write_c
from minigrad._compile.program import Misfit
from minigrad._compile.recorded import Recorded
from minigrad._compile.saving import save_program
from minigrad._compile.surroundings import Surroundings
from minigrad.nn.module import Module, Uninitialized, changes
from minigrad.runtime import recorders
from minigrad.runtime.batched import running as vmaps
from minigrad.runtime.dtypes import default_dtype
from minigrad.runtime.native import tracers
from minigrad.runtime.recorders import RecordingError
from minigrad.tape.grad_mode import is_grad_enabled
from minigrad.tape.hooks import hook_changes, hooks_of, watchers
from minigrad.tape.node import LEAF

__all__ = ["Compiled", "CompiledModule"]

MOST_RECORDINGS = 8
_all: weakref.WeakSet[Any] = weakref.WeakSet()


class Compiled:
    """A function of which each kind of call is recorded once and then run as a program.

    :func:`minigrad.compile` makes these.
    """

    def __init__(self, function: Callable[..., Any], fullgraph: bool = False) -> None:
        self.function = function
        self.fullgraph = fullgraph
        self.recordings = 0  # how often the function was recorded
        self.reasons: list[str] = []  # why it was recorded again, or runs without a program
        self._recorded: list[Recorded] = []
        self._eager: set[Any] = set()  # kinds of calls that no program repeats
        self._warm: dict[Any, int] = {}  # kinds of calls that made state, and how often
        self._shown: dict[str, str] = {}  # the arguments of the last recording
        self._lock = threading.RLock()
        functools.update_wrapper(self, function, updated=())
        _all.add(self)

    def __get__(self, owner: Any, _: Any = None) -> Any:
        return self if owner is None else types.MethodType(self, owner)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or "function" not in self.__dict__:
            raise AttributeError(name)
        return getattr(self.function, name)

    def __reduce__(self) -> Any:
        """A copy, and what is read from a pickle, has recorded nothing yet."""
        found: Any = sys.modules.get(self.__module__)
        for name in self.__dict__.get("__qualname__", "?").split("."):
            found = getattr(found, name, None)
        if found is self:  # a decorated function: it is known by its name
            return self.__qualname__
        return Compiled, (self.function, self.fullgraph)

    def __copy__(self) -> Compiled:
        return Compiled(self.function, self.fullgraph)

    def __deepcopy__(self, memo: dict[int, Any]) -> Compiled:
        return Compiled(deepcopy(self.function, memo), self.fullgraph)

    def __repr__(self) -> str:
        return f"<compiled {self.function!r}>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not kwargs:
            for recorded in self._recorded:
                if recorded.fast is None:
                    continue
                try:
                    if (result := recorded.fast(args)) is not ...:
                        return recorded.stopped(args) if result is NotImplemented else result
                except Misfit:
                    break
        if recorders.active() is not None or vmaps or watchers or tracers or changes.replaced:
            return self.function(*args, **kwargs)
        others: list[Any] = []
        tensors, kind = self._kind(args, kwargs, others)
        if self._eager and kind in self._eager:
            return self.function(*args, **kwargs)
        if hook_changes.count and any(map(hooks_of, tensors)):
            return self.function(*args, **kwargs)
        with self._lock:
            why: list[str] = []
            for recorded in self._recorded:
                if recorded.kind != kind:
                    continue
                reason = recorded.difference(tensors)
                if reason is None:
                    try:
                        return recorded.run(tensors, args, kwargs)
                    except Misfit:
                        reason = recorded.misfit(tensors)
                why.append(reason)
            return self._record(kind, tensors, others, args, kwargs, why)

    def to_c(
        self, folder: Any, *args: Any, csrc: Any = None, isa: str | None = None, **kwargs: Any
    ) -> None:
        """Write a recorded call as C11: the program, its kernels, a main and a Makefile.

        The arguments choose the call, as for :meth:`save`. ``make`` in the folder builds it without
        Python. ``csrc`` is the folder of minigrad's C sources, which a source checkout has and an
        installed package lacks. ``isa`` is the instruction set of the kernels, by default the one
        in use. Raises ValueError for random numbers, and for what ``save`` refuses.
        """
        write_c(self._chosen(args, kwargs), Path(folder), csrc, isa)

    @staticmethod
    def _kind(args: Any, kwargs: Any, others: list[Any]) -> tuple[list[Any], Any]:
        """The tensors among the arguments, and all else that two calls of a kind share."""
        tensors: list[Any] = []
        form = form_of(args, kwargs, tensors, others)
        return tensors, (form, is_grad_enabled(), default_dtype(), _edges_of(tensors))

    def save(self, path: Any, *args: Any, **kwargs: Any) -> None:
        """Write a recorded call to a file, which :func:`minigrad.load_program` reads.

        That is the call with arguments like these; without arguments it is the last that was
        recorded. The file has the program, its constants and the tensors that the function
        captured. Raises ValueError if there is no such call, and for what a file cannot hold.
        """
        save_program(self._chosen(args, kwargs), Path(path))

    def _chosen(self, args: Any, kwargs: Any) -> Recorded:
        """The recorded call with arguments like these, or the last one."""
        if not args and not kwargs:
            if self._recorded:
                return self._recorded[0]
            raise ValueError("[save] no call was recorded: call the function first")
        tensors, kind = self._kind(args, kwargs, [])
        for recorded in self._recorded:
            if recorded.kind == kind and recorded.fits(tensors):
                return recorded
        raise ValueError("[save] no call with arguments like these was recorded: make it first")

    def explain(self) -> Explanation:
        """Explain what was recorded: kernels, bytes, constants, guards, reasons of recordings.

        >>> import minigrad as mg
        >>> f = mg.compile(lambda x: (x * x).sum())
        >>> y = f(mg.ones(3))
        >>> f.explain().programs[0].recorded
        2
        """
        name = getattr(self.function, "__name__", type(self.function).__name__)
        programs = [ProgramExplanation.of(one) for one in self._recorded]
        return Explanation(name, self.recordings, list(self.reasons), programs)

    # ---- recording ----

    def _record(
        self,
        kind: Any,
        tensors: list[Any],
        others: list[Any],
        args: Any,
        kwargs: Any,
        why: list[str],
    ) -> Any:
        looks = shown(self.function, args, kwargs)
        looks |= {"grad mode": str(kind[1]), "the default dtype": kind[2].name}
        if self._recorded and not why:
            why = [difference(self._shown, looks) or "arguments of another kind"]
        reason = why[0] if why else ""
        if self.recordings >= MOST_RECORDINGS:
            self._without(kind, f"it was recorded {self.recordings} times, at last since {reason}")
            return self.function(*args, **kwargs)
        surroundings = Surroundings([self.function, *others])
        if any(isinstance(x, Uninitialized) for x in surroundings.tensors.values()):
            return self.function(*args, **kwargs)  # a lazy layer makes its parameters first
        attempt = Attempt(self.function, kind, tensors, others, surroundings)
        result = attempt.run(args, kwargs)
        if not attempt.recorder.steps and not attempt.recorder.failed:
            self._eager.add(kind)  # there is nothing to record
            return result
        self.recordings += 1
        self._shown = looks
        if reason:
            self.reasons.append(reason)
        recorded, refusal, warm = attempt.recorded(result)
        if recorded is not None:
            recorded.argument_names = names_of(self.function, args, kwargs)
            self._recorded.insert(0, recorded)
            return result
        if warm and self._warm.get(kind, 0) < 2:
            self._warm[kind] = self._warm.get(kind, 0) + 1
            self.reasons.append(refusal)
            return result
        self._without(kind, refusal)
        return result

    def _without(self, kind: Any, reason: str) -> None:
        """Calls of this kind run without a program."""
        self._eager.add(kind)
        self.reasons.append(f"runs without a program: {reason}")
        name = getattr(self.function, "__name__", type(self.function).__name__)
        text = f"[compile] {name} runs without a program: {reason}"
        if self.fullgraph:
            raise RecordingError(text)
        warnings.warn(text, UserWarning, stacklevel=4)


def _after_fork() -> None:
    """Locks may be held by threads that a child does not have."""
    for compiled in tuple(_all):
        compiled._lock = threading.RLock()


os.register_at_fork(after_in_child=_after_fork)


def _edges_of(tensors: list[Any]) -> tuple[int, ...]:
    """For each tensor a number that is the same for the same tensor.

    It is a multiple of 3. One is added for a leaf that requires a gradient, and two for a tensor
    with a history.
    """
    ids = [id(x) for x in tensors]
    kinds = [0 if x._edge is None else 1 if x._edge is LEAF else 2 for x in tensors]
    return tuple([3 * ids.index(own) + kind for own, kind in zip(ids, kinds, strict=True)])


class CompiledModule(Module):
    """A module whose calls are compiled, as PyTorch's OptimizedModule.

    It holds the module as ``_orig_mod``, and has the module's attributes. Names in its state begin
    with ``_orig_mod``.
    """

    def __init__(self, module: Module, fullgraph: bool = False) -> None:
        self.__dict__["_orig_mod"] = module
        self.__dict__["compiled"] = Compiled(module, fullgraph)

    @property
    def training(self) -> bool:
        """Whether the module is in training mode."""
        return bool(self._orig_mod.training)

    @training.setter
    def training(self, mode: bool) -> None:
        self._orig_mod.training = mode

    def __getattr__(self, name: str) -> Any:
        if name == "_orig_mod" or name.startswith("__"):
            raise AttributeError(name)
        try:
            return getattr(self._orig_mod, name)
        except AttributeError:
            return getattr(self.compiled, name)

    def __setattr__(self, name: str, value: Any) -> None:
        """Set an attribute of the module; ``forward`` and what the class defines, of this one."""
        if name == "_orig_mod":
            self.__dict__["_orig_mod"] = value
            self.__dict__["compiled"] = Compiled(value, self.compiled.fullgraph)
        elif hasattr(type(self), name):
            super().__setattr__(name, value)
        else:
            setattr(self._orig_mod, name, value)

    def __delattr__(self, name: str) -> None:
        """Delete an attribute of the module."""
        delattr(self._orig_mod, name)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *dir(self._orig_mod)})

    def __len__(self) -> int:
        return len(self._orig_mod)

    def __bool__(self) -> bool:
        return True

    def __iter__(self) -> Any:
        return iter(self._orig_mod)

    def __getitem__(self, key: Any) -> Any:
        return self._orig_mod[key]

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The module's output, of a program."""
        return self.compiled(*args, **kwargs)
