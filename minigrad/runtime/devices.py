"""Devices: ``device("cpu")``, and the error for any other."""

from __future__ import annotations

from typing import Any

__all__ = ["CPU", "destination", "device", "on_cpu"]


class device:  # noqa: N801 - PyTorch's name
    """The CPU, the only device: ``device("cpu")``. Any other name raises RuntimeError.

    An index may follow, as in "cpu:0" or ``device("cpu", 0)``. A device may be used in a ``with``
    statement.

    >>> import minigrad as mg
    >>> where = mg.device("cpu")
    >>> mg.zeros(2, device=where).to(where).device == where
    True
    """

    __slots__ = ("index", "type")

    def __init__(self, type: Any = "cpu", index: int | None = None) -> None:  # noqa: A002
        name, _, number = str(type).partition(":")
        if name != "cpu" or not (number == "" or number.isdecimal()):
            raise RuntimeError(f"[device] {str(type)!r} is not there: minigrad computes on the CPU")
        self.type: str = name
        self.index: int | None = int(number) if number else index

    def __repr__(self) -> str:
        index = "" if self.index is None else f", index={self.index}"
        return f"device(type={self.type!r}{index})"

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, device) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))

    def __reduce__(self) -> tuple[Any, ...]:
        return device, (self.type, self.index)

    def __enter__(self) -> device:
        return self

    def __exit__(self, *error: object) -> None:
        pass


CPU = device("cpu")


def on_cpu(where: Any) -> None:
    """Raise a RuntimeError unless ``where`` names the CPU or is None."""
    if where is not None and where is not CPU:
        device(where)


_OTHERS = {"cuda", "mps", "xpu", "xla", "hip", "hpu", "mtia", "meta", "ipu", "vulkan", "cpu"}


def destination(op: str, given: tuple[Any, ...], where: Any, dtype: Any) -> Any:
    """Check the device in the arguments of a ``to``, and return the dtype in them, or None.

    As in PyTorch, the arguments are a dtype, a device, a device and a dtype, or a tensor. Two flags
    may follow.
    """
    for x in given:
        if isinstance(x, (device, int)) or (isinstance(x, str) and x.split(":")[0] in _OTHERS):
            if not isinstance(x, bool):
                on_cpu(f"cuda:{x}" if isinstance(x, int) else x)
        elif hasattr(x, "_h"):
            dtype = x.dtype
        elif x is not None:
            dtype = x
    on_cpu(where)
    if where is None and dtype is None and not any(x is not None for x in given):
        raise TypeError(f"[{op}] a dtype is needed: x.to(mg.float32)")
    return dtype
