"""Configuration: version, instruction set, compiler and the number of threads."""

from __future__ import annotations

from minigrad.runtime.accelerator import tape_name
from minigrad.runtime.native import available_isas, call, ffi, isa, kernels, lib
from minigrad.version import __version__

__all__ = ["get_num_threads", "set_num_threads", "show_config"]


def get_num_threads() -> int:
    """The number of threads that a large operation may use."""
    return int(lib.mg_get_num_threads())


def set_num_threads(n: int) -> None:
    """Let large operations use up to ``n`` threads, 1 to 256.

    Results are the same bits for any number.
    """
    if not isinstance(n, int) or isinstance(n, bool) or not 1 <= n <= 256:
        raise ValueError(f"[set_num_threads] {n!r} is not a number of threads from 1 to 256")
    call(kernels.set_num_threads, n)


def show_config() -> str:
    """The version, instruction set, compiler and number of threads as text.

    >>> import minigrad as mg
    >>> print(mg.show_config())  # doctest: +ELLIPSIS
    minigrad 0.1.0
    instruction set: ...
    """
    compiler = ffi.string(lib.mg_compiler()).decode()
    return "\n".join(
        [
            f"minigrad {__version__}",
            f"instruction set: {isa} (available: {', '.join(available_isas)})",
            f"tape: {tape_name}",
            f"threads: {get_num_threads()}",
            f"compiler: {compiler}",
        ]
    )
