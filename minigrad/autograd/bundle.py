"""The gradients of a node with several outputs."""

from __future__ import annotations

from minigrad.tape.node import Gradient

__all__ = ["Bundle"]


class Bundle:
    """The gradients of a node with several outputs, by output position; they add up as one."""

    __slots__ = ("parts",)

    def __init__(self, parts: dict[int, Gradient]) -> None:
        self.parts = parts

    def __add__(self, other: Bundle) -> Bundle:
        parts = dict(self.parts)
        for k, g in other.parts.items():
            parts[k] = parts[k] + g if k in parts else g
        return Bundle(parts)
