"""The multivariate normal distribution whose covariance is of low rank plus a diagonal."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from minigrad import functions as f
from minigrad import linalg
from minigrad.distributions import constraints
from minigrad.distributions.distribution import Distribution
from minigrad.functions.creation import eye
from minigrad.random import randn
from minigrad.tape.tensor_base import Size

__all__ = ["LowRankMultivariateNormal"]


class LowRankMultivariateNormal(Distribution):
    """The normal distribution of vectors of n numbers with the covariance W W^T + D.

    ``cov_factor`` is W, n x r, and ``cov_diag`` the diagonal of D. Densities and samples solve r x
    r systems with the capacitance I + W^T D^-1 W (Woodbury). The squared distance is computed as in
    a ridge regression, which does not cancel if W is much larger than D.

    >>> import minigrad as mg
    >>> d = mg.distributions.LowRankMultivariateNormal(mg.zeros(2), mg.ones(2, 1), mg.ones(2))
    >>> d.covariance_matrix
    tensor([[2., 1.],
            [1., 2.]])
    """

    arg_constraints = {  # noqa: RUF012
        "loc": constraints.real_vector,
        "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }
    has_rsample = True

    def __init__(
        self, loc: Any, cov_factor: Any, cov_diag: Any, validate_args: bool | None = None
    ) -> None:
        name = "[LowRankMultivariateNormal]"
        if loc.ndim < 1:
            raise ValueError(f"{name} loc needs a dimension, of the vector")
        n = loc.shape[-1]
        if cov_factor.ndim < 2 or cov_factor.shape[-2] != n:
            raise ValueError(
                f"{name} cov_factor has the shape {cov_factor.shape}, not (..., {n}, r)"
            )
        if cov_diag.ndim < 1 or cov_diag.shape[-1] != n:
            raise ValueError(f"{name} cov_diag has the shape {cov_diag.shape}, not (..., {n})")
        ones = f.broadcast_tensors(loc[..., 0], cov_factor[..., 0, 0], cov_diag[..., 0])
        batch = ones[0].shape
        self.loc = loc.expand((*batch, n))
        self.cov_factor = cov_factor.expand((*batch, n, cov_factor.shape[-1]))
        self.cov_diag = cov_diag.expand((*batch, n))
        super().__init__(batch, (n,), validate_args)

    @property
    def support(self) -> constraints.Constraint:
        """All vectors."""
        return constraints.real_vector

    def _scaled_factor(self) -> Any:
        """D^-1/2 W."""
        return self.cov_factor / f.unsqueeze(f.sqrt(self.cov_diag), -1)

    def capacitance_tril(self) -> Any:
        """The Cholesky factor of the capacitance I + W^T D^-1 W."""
        scaled = self._scaled_factor()
        return linalg.cholesky(scaled.mT @ scaled + eye(scaled.shape[-1], dtype=scaled.dtype))

    def half_log_det(self) -> Any:
        """Half the logarithm of the determinant of the covariance."""
        diagonal = f.diagonal(self.capacitance_tril(), 0, -2, -1)
        return f.sum(f.log(diagonal), -1) + 0.5 * f.sum(f.log(self.cov_diag), -1)

    def square(self, away: Any) -> Any:
        """v^T S^-1 v for the covariance S: the minimum over c of |D^-1/2 (v - W c)|^2 + |c|^2.

        It is attained at c = K^-1 W^T D^-1 v, with the capacitance K.
        """
        scaled, tril = self._scaled_factor(), self.capacitance_tril()
        v = f.unsqueeze(away / f.sqrt(self.cov_diag), -1)
        c = scaled.mT @ v
        tril = tril.expand((*c.shape[:-2], *tril.shape[-2:]))
        c = linalg.solve_triangular(tril, c, upper=False)
        c = linalg.solve_triangular(tril.mT, c, upper=True)
        return f.sum(f.flatten((v - scaled @ c) ** 2, -2), -1) + f.sum(f.flatten(c**2, -2), -1)

    @property
    def scale_tril(self) -> Any:
        """The lower triangular L with the covariance L L^T."""
        return linalg.cholesky(self.covariance_matrix)

    @property
    def covariance_matrix(self) -> Any:
        """W W^T + D."""
        return self.cov_factor @ self.cov_factor.mT + f.diag_embed(self.cov_diag)

    @property
    def precision_matrix(self) -> Any:
        """The inverse of the covariance: D^-1 - D^-1 W K^-1 W^T D^-1."""
        inner = (self.cov_factor / f.unsqueeze(self.cov_diag, -1)).mT
        found = linalg.solve_triangular(self.capacitance_tril(), inner, upper=False)
        return f.diag_embed(1 / self.cov_diag) - found.mT @ found

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        """loc + W noise + D^1/2 noise, with gradients by all parameters."""
        shape = self._extended_shape(sample_shape)
        few = Size((*shape[:-1], self.cov_factor.shape[-1], 1))
        shared = f.squeeze(self.cov_factor @ randn(few, dtype=self.loc.dtype), -1)
        return self.loc + shared + f.sqrt(self.cov_diag) * randn(shape, dtype=self.loc.dtype)

    def log_prob(self, value: Any) -> Any:
        """-((x - loc)^T S^-1 (x - loc) + log|S| + n log(2 pi)) / 2 of the covariance S."""
        away = self._validate_sample(value) - self.loc
        constant = self.event_shape[0] * math.log(2 * math.pi)
        return -0.5 * (constant + self.square(away)) - self.half_log_det()

    def entropy(self) -> Any:
        """(n (1 + log(2 pi)) + log|S|) / 2 of the covariance S."""
        return 0.5 * self.event_shape[0] * (1 + math.log(2 * math.pi)) + self.half_log_det()

    @property
    def mean(self) -> Any:
        """The mean."""
        return self.loc

    @property
    def mode(self) -> Any:
        """The mean."""
        return self.loc

    @property
    def variance(self) -> Any:
        """The variances of the vector's elements."""
        return f.sum(self.cov_factor**2, -1) + self.cov_diag
