"""``mg.compile``, and PyTorch's namespace ``torch.compiler``."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any

from minigrad._compile.compiled import Compiled, CompiledModule
from minigrad._compile.loaded import load_program
from minigrad._compile.options import Options, passes_left_out
from minigrad.nn.module import Module
from minigrad.runtime import recorders

__all__ = ["compile", "disable", "is_compiling", "load_program"]


def compile(  # noqa: A001 - PyTorch's name
    model: Any = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: Any = None,
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    disable: bool = False,
    verify: bool = False,
) -> Any:
    """A function or module whose calls are recorded once, and then run as one program in C.

    The first call with arguments of a kind runs as always and is recorded. Later calls run the
    recorded kernels, without Python in between. A call whose shapes, dtypes, Python values or
    surroundings differ is recorded again. ``recordings`` counts the recordings, and ``reasons`` has
    their reasons. ``docs/compile.md`` explains what can be recorded.

    A call that cannot be recorded runs as always, with a UserWarning that says why. With
    ``fullgraph`` that is a RuntimeError. ``disable``, or ``MINIGRAD_COMPILE=0`` in the environment,
    returns the function itself. Without a model this is a decorator.

    With ``verify`` each call that runs a program also runs the function, compares bit for bit all
    that the two leave, and returns the function's result. A RuntimeError names the first kernel
    that differs. Such a call costs several times what the function costs, and some milliseconds.

    ``options`` switches passes of the planner on or off: ``{"fuse_elementwise": False}``.
    ``dynamic``, ``backend`` and ``mode`` are PyTorch's and change nothing.

    Raises TypeError unless the model can be called and ``options`` is a dict of booleans. Options
    that are no passes, such as those of PyTorch's compiler, change nothing and warn.

    >>> import minigrad as mg
    >>> f = mg.compile(lambda x: (x * x).sum())
    >>> f(mg.ones(3)), f(mg.full((3,), 2.0)), f.recordings
    (tensor(3.), tensor(12.), 1)
    """
    if model is None:
        passes_left_out(options)
        return functools.partial(
            compile, fullgraph=fullgraph, options=options, disable=disable, verify=verify
        )
    _called("compile", model)
    without = passes_left_out(options)
    if disable or os.environ.get("MINIGRAD_COMPILE", "").strip() == "0":
        return model
    made = CompiledModule if isinstance(model, Module) else Compiled
    return made(model, Options(bool(fullgraph), bool(verify), without))


def disable(fn: Any = None, recursive: bool = True, **options: Any) -> Any:
    """Return the given function, or a decorator that does so."""
    return _called("disable", fn) if fn is not None else disable


def is_compiling() -> bool:
    """True while this thread records a program."""
    return recorders.active() is not None


def _called(name: str, given: Any) -> Callable[..., Any]:
    if not callable(given):
        raise TypeError(
            f"[{name}] {type(given).__name__} cannot be called: give a module or a function"
        )
    found: Callable[..., Any] = given
    return found
