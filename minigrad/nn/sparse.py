"""Layers on classes given as integers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from minigrad.arguments import integer
from minigrad.devices import on_cpu
from minigrad.dtypes import as_dtype
from minigrad.nn import functional as F  # noqa: N812 - its usual name
from minigrad.nn.module import Module, Parameter
from minigrad.random import randn

if TYPE_CHECKING:
    from minigrad._tensor import Tensor

__all__ = ["Embedding"]


class Embedding(Module):
    """A table of vectors, one for each class: int64 of shape (...) to (..., embedding_dim).

    The weight, (num_embeddings, embedding_dim), starts from the standard normal distribution; the
    row ``padding_idx`` starts with zeros and gets no gradient. With ``max_norm`` each forward first
    scales the rows that it names down to that norm, of order ``norm_type``, in place.

    >>> import minigrad as mg
    >>> mg.nn.Embedding(10, 3)(mg.tensor([[1, 2]])).shape
    (1, 2, 3)
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        on_cpu(device)
        self.num_embeddings = integer("Embedding", "num_embeddings", num_embeddings, 0)
        self.embedding_dim = integer("Embedding", "embedding_dim", embedding_dim, 0)
        values = randn(num_embeddings, embedding_dim, dtype=as_dtype(dtype))
        self.padding_idx = padding_idx
        if padding_idx is not None:
            if not -num_embeddings <= padding_idx < num_embeddings:
                raise ValueError(
                    f"[Embedding] padding_idx {padding_idx} is not in 0..{num_embeddings - 1}"
                )
            self.padding_idx = padding_idx % num_embeddings
            values[self.padding_idx] = 0.0
        self.max_norm, self.norm_type = max_norm, norm_type
        self.weight = Parameter(values)

    def forward(self, x: Tensor) -> Tensor:
        """The rows of the weight that x names."""
        return F.embedding(x, self.weight, self.padding_idx, self.max_norm, self.norm_type)

    def extra_repr(self) -> str:
        """The sizes."""
        padding = "" if self.padding_idx is None else f", padding_idx={self.padding_idx}"
        longest = "" if self.max_norm is None else f", max_norm={self.max_norm}"
        return f"{self.num_embeddings}, {self.embedding_dim}{padding}{longest}"
