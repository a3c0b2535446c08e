"""What is running: version, instruction set, compiler, threads."""

from __future__ import annotations

from minigrad import _c
from minigrad._c import ffi, lib, run
from minigrad.tape.speed import tape_name
from minigrad.version import __version__

__all__ = ["get_num_threads", "set_num_threads", "show_config"]


def get_num_threads() -> int:
    """How many threads a large operation may use."""
    return int(lib.mg_get_num_threads())


def set_num_threads(n: int) -> None:
    """Use up to ``n`` threads, 1 to 256. Results are the same bits for any number."""
    if not isinstance(n, int) or isinstance(n, bool) or not 1 <= n <= 256:
        raise ValueError(f"[set_num_threads] {n!r} is not a number of threads from 1 to 256")
    run(lib.mg_set_num_threads, n)


def show_config() -> str:
    """Version, instruction set, compiler and threads, as text; printed in interactive use.

    >>> import minigrad as mg
    >>> print(mg.show_config())  # doctest: +ELLIPSIS
    minigrad 0.1.0
    instruction set: ...
    """
    compiler = ffi.string(lib.mg_compiler()).decode()
    return "\n".join(
        [
            f"minigrad {__version__}",
            f"instruction set: {_c.isa} (available: {', '.join(_c.available_isas)})",
            f"tape: {tape_name}",
            f"threads: {get_num_threads()}",
            f"compiler: {compiler}",
        ]
    )
