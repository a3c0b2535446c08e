"""Options of compiled functions: what a user chose in the call of ``mg.compile``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from minigrad._compile.passes import PASSES

__all__ = ["PLAIN", "Options", "passes_left_out"]


class Options(NamedTuple):
    """What a user chose. ``without`` has the names of the planner's passes that are left out."""

    fullgraph: bool = False
    verify: bool = False
    without: frozenset[str] = frozenset()


PLAIN = Options()


def passes_left_out(options: Mapping[str, Any] | None) -> frozenset[str]:
    """The passes that are switched off, from a dict of names and booleans.

    Raises TypeError for anything else than such a dict, and ValueError for an unknown name.
    """
    if options is None:
        return frozenset()
    if not isinstance(options, Mapping) or not all(isinstance(x, bool) for x in options.values()):
        raise TypeError(
            f"[compile] options is {options!r}, but must be a dict of passes that are switched on "
            'or off: {"fuse_elementwise": False}'
        )
    for name in options:
        if name not in PASSES:
            raise ValueError(
                f"[compile] options: there is no pass {name!r}; there are {', '.join(PASSES)}"
            )
    return frozenset([name for name, on in options.items() if not on])
