"""The Wishart distribution, of symmetric positive definite matrices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from minigrad import functions as f
from minigrad import linalg
from minigrad.distributions import constraints
from minigrad.distributions.distribution import Distribution, floats
from minigrad.distributions.gamma_family import standard_gamma
from minigrad.distributions.multivariate import scale_from
from minigrad.functions.creation import arange
from minigrad.random import randn

__all__ = ["Wishart"]


class Wishart(Distribution):
    """The distribution of the sum of x x^T over ``df`` normal vectors x with covariance V.

    Give one of ``covariance_matrix``, ``precision_matrix`` (its inverse) and ``scale_tril``, the
    Cholesky factor of V. ``df`` may be any number above n - 1 for n x n matrices.

    >>> import minigrad as mg
    >>> d = mg.distributions.Wishart(mg.tensor(3.0), mg.eye(2))
    >>> d.mean, d.rsample((4,)).shape
    (tensor([[3., 0.],
            [0., 3.]]), (4, 2, 2))
    """

    arg_constraints = {  # noqa: RUF012
        "df": constraints.positive,
        "_scale": constraints.lower_cholesky,
    }
    has_rsample = True

    def __init__(
        self,
        df: Any,
        covariance_matrix: Any = None,
        precision_matrix: Any = None,
        scale_tril: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        checks = self._validate_args if validate_args is None else validate_args
        scale = scale_from(self, covariance_matrix, precision_matrix, scale_tril, checks)
        n = scale.shape[-1]
        df, _ = floats(df, scale[..., 0, 0])
        if checks and bool((df.detach() <= n - 1).any()):
            raise ValueError(f"[Wishart] df must be above {n - 1} for matrices of {n} by {n}")
        self.df, self._scale = df, scale.expand((*df.shape, n, n))
        super().__init__(df.shape, (n, n), validate_args)

    @property
    def support(self) -> constraints.Constraint:
        """Symmetric positive definite matrices."""
        return constraints.positive_definite

    @property
    def scale_tril(self) -> Any:
        """The Cholesky factor L with V = L L^T."""
        return self._scale

    @property
    def covariance_matrix(self) -> Any:
        """V."""
        return self._scale @ self._scale.mT

    @property
    def precision_matrix(self) -> Any:
        """The inverse of V."""
        return f.cholesky_inverse(self._scale)

    def _halves(self) -> Any:
        """(df - i) / 2 for i from 0 to n - 1."""
        n = self.event_shape[0]
        return (f.unsqueeze(self.df, -1) - arange(n, dtype=self.df.dtype)) / 2

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        """Samples L A A^T L^T, A of chi and normal noise (Bartlett 1933), with all gradients."""
        shape = self._extended_shape(sample_shape)
        chi = f.sqrt(2 * standard_gamma(self._halves().expand(shape[:-1])))
        noise = f.tril(randn(shape, dtype=self.df.dtype), -1) + f.diag_embed(chi)
        root = self._scale @ noise
        return root @ root.mT

    def _log_det(self) -> Any:
        """log|V|."""
        return 2 * f.sum(f.log(f.diagonal(self._scale, 0, -2, -1)), -1)

    def _log_gamma(self) -> Any:
        """The logarithm of the multivariate gamma function of df / 2."""
        n = self.event_shape[0]
        return n * (n - 1) / 4 * math.log(math.pi) + f.sum(f.lgamma(self._halves()), -1)

    def log_normalizer(self) -> Any:
        """log(2^(df n / 2) |V|^(df / 2) Gamma_n(df / 2))."""
        n = self.event_shape[0]
        return self.df / 2 * (n * math.log(2) + self._log_det()) + self._log_gamma()

    def log_prob(self, value: Any) -> Any:
        """(df - n - 1) / 2 log|X| - tr(V^-1 X) / 2 less the log-normaliser."""
        x, n = self._validate_sample(value), self.event_shape[0]
        root = linalg.cholesky(x)
        log_det = 2 * f.sum(f.log(f.diagonal(root, 0, -2, -1)), -1)
        scale, root = f.broadcast_tensors(self._scale, root)
        trace = f.sum(f.flatten(linalg.solve_triangular(scale, root, upper=False) ** 2, -2), -1)
        return (self.df - n - 1) / 2 * log_det - trace / 2 - self.log_normalizer()

    def mean_log_det(self) -> Any:
        """The mean of log|X|: the sum of digamma((df - i) / 2) + n log(2) + log|V|."""
        n = self.event_shape[0]
        return f.sum(f.digamma(self._halves()), -1) + n * math.log(2) + self._log_det()

    def entropy(self) -> Any:
        """The entropy in nats."""
        n = self.event_shape[0]
        return self.log_normalizer() - (self.df - n - 1) / 2 * self.mean_log_det() + self.df * n / 2

    @property
    def mean(self) -> Any:
        """df V."""
        return self._wide(self.df) * self.covariance_matrix

    @property
    def mode(self) -> Any:
        """(df - n - 1) V; NaN where the factor is not positive."""
        factor = self.df - self.event_shape[0] - 1
        return self._wide(f.where(factor > 0, factor, math.nan)) * self.covariance_matrix

    @property
    def variance(self) -> Any:
        """df (V_ij^2 + V_ii V_jj)."""
        v = self.covariance_matrix
        diagonal = f.diagonal(v, 0, -2, -1)
        outer = f.unsqueeze(diagonal, -1) * f.unsqueeze(diagonal, -2)
        return self._wide(self.df) * (v**2 + outer)

    @staticmethod
    def _wide(x: Any) -> Any:
        return f.unsqueeze(f.unsqueeze(x, -1), -1)

    def __repr__(self) -> str:
        return f"Wishart(df: {self.df.shape}, covariance_matrix: {self._scale.shape})"
