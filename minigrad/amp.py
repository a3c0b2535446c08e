"""``torch.amp`` for PyTorch programs: minigrad computes in float32 and float64 throughout.

Both classes behave like PyTorch's disabled classes, which PyTorch uses without a GPU.
"""

from __future__ import annotations

from contextlib import ContextDecorator
from typing import Any

__all__ = ["GradScaler", "autocast"]


class autocast(ContextDecorator):  # noqa: N801 - PyTorch's name
    """A context manager or decorator that changes nothing: there is no lower precision.

    >>> import minigrad as mg
    >>> with mg.amp.autocast("cpu", dtype=mg.bfloat16):
    ...     mg.ones(2) @ mg.ones(2)
    tensor(2.)
    """

    def __init__(
        self,
        device_type: str = "cpu",
        dtype: Any = None,
        enabled: bool = True,
        cache_enabled: bool | None = None,
    ) -> None:
        pass

    def __enter__(self) -> autocast:
        return self

    def __exit__(self, *error: object) -> None:
        pass


class GradScaler:
    """Scales losses by 1: float32 needs no other scale.

    >>> import minigrad as mg
    >>> x = mg.ones(1, requires_grad=True)
    >>> optimizer, scaler = mg.optim.SGD([x], lr=0.5), mg.amp.GradScaler()
    >>> scaler.scale((x * 2).sum()).backward()
    >>> scaler.step(optimizer)
    >>> scaler.update()
    >>> x
    tensor([0.], requires_grad=True)
    """

    def __init__(self, device: Any = "cpu", *, enabled: bool = True, **options: Any) -> None:
        pass

    def scale(self, outputs: Any) -> Any:
        """The outputs, unchanged."""
        return outputs

    def unscale_(self, optimizer: Any) -> None:
        """Do nothing: gradients are not scaled."""

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """``optimizer.step(...)``."""
        return optimizer.step(*args, **kwargs)

    def update(self, new_scale: float | None = None) -> None:
        """Do nothing: the scale stays 1."""

    def get_scale(self) -> float:
        """1.0."""
        return 1.0

    def is_enabled(self) -> bool:
        """False."""
        return False

    def state_dict(self) -> dict[str, Any]:
        """An empty dict."""
        return {}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Do nothing: there is no state."""
