"""Imported before minigrad by programs run in the repository's root, whose own may not be compiled.

The installed one is then found instead.
"""

from __future__ import annotations

import sys
from pathlib import Path

_here = Path(sys.path[0] or ".", "minigrad")
if _here.is_dir() and not list(_here.glob("_native*")):
    del sys.path[0]
