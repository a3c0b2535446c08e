"""PyTorch's parallel modules, which pass calls through: the kernels use all cores."""

from __future__ import annotations

from typing import Any

from minigrad.nn.module import Module

__all__ = ["DataParallel", "DistributedDataParallel"]


class DataParallel(Module):
    """A wrapper that calls its ``module``. Given devices are not used.

    >>> import minigrad as mg
    >>> model = mg.nn.DataParallel(mg.nn.ReLU())
    >>> model(mg.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """

    def __init__(
        self, module: Module, device_ids: Any = None, output_device: Any = None, dim: int = 0
    ) -> None:
        self.module = module

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Call the module."""
        return self.module(*args, **kwargs)


class DistributedDataParallel(DataParallel):
    """Like :class:`DataParallel`, for one process."""

    def __init__(
        self, module: Module, device_ids: Any = None, output_device: Any = None, **options: Any
    ) -> None:
        super().__init__(module)
