"""Global settings of PyTorch programs: print options, and switches that change nothing here."""

from __future__ import annotations

from typing import Any

from minigrad.runtime.devices import CPU, device, on_cpu
from minigrad.runtime.lazy_numpy import np

__all__ = [
    "are_deterministic_algorithms_enabled",
    "get_default_device",
    "get_num_interop_threads",
    "set_default_device",
    "set_float32_matmul_precision",
    "set_num_interop_threads",
    "set_printoptions",
    "use_deterministic_algorithms",
]

_PROFILES: dict[str, dict[str, Any]] = {
    "default": {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80},
    "short": {"precision": 2, "threshold": 1000, "edgeitems": 2, "linewidth": 80},
    "full": {"precision": 4, "threshold": 2**62, "edgeitems": 3, "linewidth": 80},
}


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Set how tensors are printed.

    ``precision`` is the number of digits after the point, and ``linewidth`` the characters in a
    line. Tensors of more than ``threshold`` elements are shortened to ``edgeitems`` at each edge.

    NumPy prints tensors, so these options change NumPy's printing too. ``profile`` is "default",
    "short" or "full" and comes first; ``sci_mode`` False prints no exponents.

    Raises ValueError for another profile.
    """
    if profile is not None and profile not in _PROFILES:
        raise ValueError(f"[set_printoptions] profile {profile!r} is not one of {list(_PROFILES)}")
    options: dict[str, Any] = dict(_PROFILES.get(profile or "", {}))
    given = {"precision": precision, "edgeitems": edgeitems, "linewidth": linewidth}
    options.update({name: value for name, value in given.items() if value is not None})
    if threshold is not None:
        options["threshold"] = int(min(threshold, 2**62))
    if sci_mode is not None:
        options["suppress"] = not sci_mode
    np.set_printoptions(**options)


def set_default_device(where: Any) -> None:
    """Accept the CPU and change nothing. Raises RuntimeError for another device."""
    on_cpu(where)


def get_default_device() -> device:
    """The CPU."""
    return CPU


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Do nothing: results are the same bits for any number of threads."""


def are_deterministic_algorithms_enabled() -> bool:
    """True: results are the same bits for any number of threads."""
    return True


def set_float32_matmul_precision(precision: str) -> None:
    """Do nothing: products of float32 are always computed in float32."""


def get_num_interop_threads() -> int:
    """1: operations run one after another."""
    return 1


def set_num_interop_threads(num: int) -> None:
    """Do nothing: operations run one after another."""
