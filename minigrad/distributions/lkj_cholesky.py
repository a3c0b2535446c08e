"""The LKJ distribution of correlation matrices, as their Cholesky factors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from minigrad import functions as f
from minigrad.distributions import constraints
from minigrad.distributions.distribution import Distribution, floats
from minigrad.distributions.gamma_family import Beta
from minigrad.distributions.stable import log_gamma_gap
from minigrad.functions.creation import arange
from minigrad.functions.grad_modes import no_grad
from minigrad.random import randn

__all__ = ["LKJCholesky"]


class LKJCholesky(Distribution):
    """Cholesky factors of ``dim`` x ``dim`` correlation matrices with density det^(k - 1).

    k is ``concentration``. At k = 1 all correlation matrices are equally likely. A larger k brings
    them nearer to the identity (Lewandowski, Kurowicka and Joe 2009). The density of the factor is
    the product of its diagonal elements L_ii to the power of 2 (k - 1) + dim - i.

    >>> import minigrad as mg
    >>> L = mg.distributions.LKJCholesky(3, 0.5).sample()
    >>> (L @ L.mT).diagonal().allclose(mg.ones(3))
    True
    """

    arg_constraints = {"concentration": constraints.positive}  # noqa: RUF012

    def __init__(
        self, dim: int, concentration: Any = 1.0, validate_args: bool | None = None
    ) -> None:
        if dim < 2:
            raise ValueError(f"[LKJCholesky] dim is {dim}, but must be 2 or more")
        self.dim = dim
        (self.concentration,) = floats(concentration)
        super().__init__(self.concentration.shape, (dim, dim), validate_args)

    @property
    def support(self) -> constraints.Constraint:
        """Cholesky factors of correlation matrices."""
        return constraints.corr_cholesky

    def sample(self, sample_shape: Sequence[int] = ()) -> Any:
        """Samples by the onion method: each row has a beta distributed squared length.

        The direction of a row is random. A row with i elements before the diagonal has the squared
        length Beta(i / 2, ...).
        """
        shape, n = self._extended_shape(sample_shape), self.dim
        with no_grad():
            k = f.unsqueeze(self.concentration.detach(), -1)
            before = arange(1, n, dtype=k.dtype)
            lengths = Beta(before / 2, k + (n - 1 - before) / 2, validate_args=False)
            square = lengths.sample(shape[: len(shape) - 2 - len(self.batch_shape)])
            direction = f.tril(randn((*shape[:-2], n - 1, n), dtype=k.dtype))
            norm = f.sqrt(f.sum(direction**2, -1, keepdim=True))
            rows = direction / norm * f.unsqueeze(f.sqrt(square), -1)
            below = f.pad(rows, (0, 0, 1, 0))
            diagonal = f.pad(f.sqrt(1 - square), (1, 0), value=1.0)
            return below + f.diag_embed(diagonal)

    def log_prob(self, value: Any) -> Any:
        """The sum of (2 (k - 1) + dim - i) log(L_ii), less the log of the normalising integral."""
        x, k, n = self._validate_sample(value), self.concentration, self.dim
        row = arange(2, n + 1, dtype=k.dtype)
        order = 2 * (f.unsqueeze(k, -1) - 1) + n - row
        logs = f.log(f.diagonal(x, 0, -2, -1)[..., 1:])
        return f.sum(order * logs, -1) - self._log_integral()

    def _log_integral(self) -> Any:
        """The sum over j < dim of log(pi^(j / 2) Gamma(a - j / 2) / Gamma(a)), a = k + (dim - 1)/2.

        Row j + 1 has j elements before its diagonal, on a half sphere.
        """
        j = arange(1, self.dim, dtype=self.concentration.dtype) / 2
        top = f.unsqueeze(self.concentration, -1) + (self.dim - 1) / 2
        return f.sum(math.log(math.pi) * j - log_gamma_gap(top - j, j), -1)
