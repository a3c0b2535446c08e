"""Kernels that write into the memory of a tensor, and the changes to the tape beside the write."""

from __future__ import annotations

from functools import partial
from typing import Any

from minigrad.runtime.caller import caller
from minigrad.runtime.native import overwritten_at, run_steps, step
from minigrad.tape.speed import accelerator
from minigrad.tape.tensor_base import TensorBase

__all__ = ["Change", "commit", "write"]

Change = tuple[Any, str, Any]  # an object, an attribute, and its new value; Ellipsis deletes it


def commit(kernel: int | None, args: tuple[Any, ...], changes: list[Change], /) -> None:
    """Call a kernel that writes, unless it is None, and make the changes if it succeeds.

    An interrupt comes before all of this or after it: see :func:`run_steps`.
    """
    steps: list[partial[Any]] = [] if kernel is None else [step(kernel, *args)]
    for x, name, value in changes:
        change = partial(delattr, x, name) if value is ... else partial(setattr, x, name, value)
        steps.append(change)
    run_steps(steps)


if accelerator:
    commit = accelerator.commit


def write(kernel: Any, target: TensorBase, *args: Any, changes: list[Change] | None = None) -> None:
    """Run a kernel that writes into ``target``'s memory; the tape is the caller's business.

    The ``changes`` to the tape are made with the write: an interrupt leaves both or neither.
    """
    handle = target._h
    if handle.pins > 0:  # noted first: an interrupt may follow the write at once
        if len(overwritten_at) > 1000:
            overwritten_at.clear()
        overwritten_at[handle.buffer] = "{}:{}".format(*caller())
    commit(kernel, args, changes or [])
