"""The line of the user's program that runs: the nearest frame outside this package."""

from __future__ import annotations

import sys

__all__ = ["caller"]


def caller() -> tuple[str, int]:
    """The file and the number of the nearest line outside this package."""
    frame = sys._getframe(1)
    while frame.f_back is not None:
        name = frame.f_globals.get("__name__", "")
        if name != "minigrad" and not name.startswith("minigrad."):
            break
        frame = frame.f_back
    return frame.f_code.co_filename, frame.f_lineno
