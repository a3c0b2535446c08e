"""The accelerator ``minigrad._speed``, if it was built and ``MINIGRAD_TAPE`` is not ``python``."""

from __future__ import annotations

import importlib
import os
from typing import Any

__all__ = ["speed", "tape_name"]


def _found() -> Any:
    wanted = os.environ.get("MINIGRAD_TAPE", "").strip().lower()
    if wanted not in ("", "c", "python"):
        raise ImportError(f"MINIGRAD_TAPE={wanted!r} is neither 'c' nor 'python'")
    if wanted == "python":
        return None
    try:
        return importlib.import_module("minigrad._speed")
    except ModuleNotFoundError:
        if wanted:
            raise ImportError("MINIGRAD_TAPE='c', but minigrad._speed was not built") from None
        return None


speed: Any = _found()  # the module, or None
tape_name = "Python" if speed is None else "C"
