"""Local response normalisation as a layer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from minigrad.functions.arguments import integer
from minigrad.nn import functional as F  # noqa: N812 - its usual name
from minigrad.nn.module import Module

if TYPE_CHECKING:
    from minigrad._tensor import Tensor

__all__ = ["CrossMapLRN2d", "LocalResponseNorm"]


class LocalResponseNorm(Module):
    """:func:`minigrad.nn.functional.local_response_norm` as a module.

    >>> import minigrad as mg
    >>> mg.nn.LocalResponseNorm(2)
    LocalResponseNorm(2, alpha=0.0001, beta=0.75, k=1.0)
    """

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        self.size = integer("LocalResponseNorm", "size", size, 1)
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def forward(self, x: Tensor) -> Tensor:
        """Divide x by the local response of neighbouring channels."""
        return F.local_response_norm(x, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        """The arguments."""
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


class CrossMapLRN2d(LocalResponseNorm):
    """:class:`LocalResponseNorm` over equally many channels on both sides, as in old programs.

    There are ``2 * ((size + 1) // 2) - 1`` channels. alpha is always divided by ``size``, also if
    it is even. PyTorch's sums keep a channel one step too long. These sums do not.

    >>> import minigrad as mg
    >>> mg.nn.CrossMapLRN2d(3)
    CrossMapLRN2d(3, alpha=0.0001, beta=0.75, k=1)
    """

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1) -> None:
        super().__init__(size, alpha, beta, k)

    def forward(self, x: Tensor) -> Tensor:
        """Divide x by the local response of neighbouring channels."""
        count = 2 * ((self.size + 1) // 2) - 1
        return F.local_response_norm(x, count, self.alpha * count / self.size, self.beta, self.k)
