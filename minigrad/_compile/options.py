"""Options of compiled functions, as a user gives them to ``mg.compile``."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, NamedTuple

from minigrad._compile.passes import PASSES

__all__ = ["PLAIN", "Options", "passes_left_out"]

SWITCHES = ("fold_constants", *PASSES)


class Options(NamedTuple):
    """The choices of a user. ``without`` names the planner's passes that are left out."""

    fullgraph: bool = False
    verify: bool = False
    without: frozenset[str] = frozenset()


PLAIN = Options()


def passes_left_out(options: Mapping[str, Any] | None) -> frozenset[str]:
    """The passes that are switched off, from a dict of names and booleans.

    A UserWarning names options that are no passes, such as those of PyTorch's compiler. Raises
    TypeError for anything else than a dict, and for a pass that is neither True nor False.
    """
    if options is None:
        return frozenset()
    known = dict(options) if isinstance(options, Mapping) else None
    others = [name for name in known or () if name not in SWITCHES]
    chosen = {name: on for name, on in (known or {}).items() if name in SWITCHES}
    if known is None or not all(isinstance(on, bool) for on in chosen.values()):
        raise TypeError(
            f"[compile] options is {options!r}, but must be a dict of passes that are switched on "
            'or off: {"fuse_elementwise": False}'
        )
    if others:
        warnings.warn(
            f"[compile] options: {others[0]!r} is no pass and changes nothing; the passes are "
            f"{', '.join(SWITCHES)}",
            UserWarning,
            stacklevel=3,
        )
    return frozenset([name for name, on in chosen.items() if not on])
