"""Chooses the tape: C's, the accelerator, or plain Python."""

from __future__ import annotations

import os
from typing import Any

from minigrad.tape_in_c import names

__all__ = ["accelerator", "tape_name"]

_wanted = os.environ.get("MINIGRAD_TAPE", "").strip().lower()
if _wanted not in ("", "c", "python"):
    raise ImportError(f"MINIGRAD_TAPE={_wanted!r} is not a tape: choose c or python")

# Holds what the modules of the tape take in place of their own, by the same names.
accelerator: Any = None if _wanted == "python" else names()
tape_name = "C" if accelerator else "Python"
