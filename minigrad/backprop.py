"""What the backward pass in C asks of Python, by name (csrc/asked.h)."""

from minigrad.autograd.upstream import start
from minigrad.errors import freed_error, misfit_error, nested_error
from minigrad.tape.engine import (
    accumulated_off_tape,
    added,
    hooked,
    hooked_off_tape,
)
from minigrad.tape.engine import unbroadcast as unadapted

__all__ = [
    "accumulated_off_tape",
    "added",
    "freed_error",
    "hooked",
    "hooked_off_tape",
    "misfit_error",
    "nested_error",
    "pause",
    "start",
    "unadapted",
]


def pause() -> None:
    """Nothing; but the interpreter handles signals here, and lets other threads run."""
