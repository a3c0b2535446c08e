"""Writes into a tensor's memory, together with the changes to the tape that belong to a write."""

from __future__ import annotations

from functools import partial
from typing import Any

from minigrad.runtime.caller import caller
from minigrad.runtime.native import overwritten_at, run_steps, step
from minigrad.tape.speed import accelerator
from minigrad.tape.tensor_base import TensorBase

__all__ = ["Change", "commit", "write"]

# An object, the name of an attribute, and its new value. Ellipsis deletes the attribute.
Change = tuple[Any, str, Any]


def commit(kernel: int | None, args: tuple[Any, ...], changes: list[Change], /) -> None:
    """Call a writing kernel, unless it is None, and make the changes if the kernel succeeds.

    An interrupt comes before the write or after all changes: see :func:`run_steps`.
    """
    steps: list[partial[Any]] = [] if kernel is None else [step(kernel, *args)]
    for x, name, value in changes:
        change = partial(delattr, x, name) if value is ... else partial(setattr, x, name, value)
        steps.append(change)
    run_steps(steps)


if accelerator:
    commit = accelerator.commit


def write(kernel: Any, target: TensorBase, *args: Any, changes: list[Change] | None = None) -> None:
    """Run a kernel that writes into ``target``'s memory. The caller says how the tape changes.

    The ``changes`` to the tape are made with the write. An interrupt leaves both or neither.
    """
    handle = target._h
    if handle.pins > 0:  # noted before the write, after which an interrupt may come at once
        if len(overwritten_at) > 1000:
            overwritten_at.clear()
        overwritten_at[handle.buffer] = "{}:{}".format(*caller())
    commit(kernel, args, changes or [])
