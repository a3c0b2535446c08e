"""The multivariate normal distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from minigrad import functions as f
from minigrad import linalg
from minigrad.distributions import constraints
from minigrad.distributions.distribution import Distribution
from minigrad.random import randn
from minigrad.tape.tensor_base import Size

__all__ = ["MultivariateNormal", "scale_from"]


def scale_from(
    of: Distribution, covariance: Any, precision: Any, scale_tril: Any, checks: bool | None
) -> Any:
    """The Cholesky factor of a covariance that is given in one of three ways.

    Raises ValueError unless exactly one is given, and unless it is a matrix. With ``checks`` a
    matrix that is not positive definite raises ValueError too.
    """
    name = type(of).__name__
    given = [m for m in (covariance, precision, scale_tril) if m is not None]
    if len(given) != 1:
        raise ValueError(f"[{name}] give one of covariance_matrix, precision_matrix, scale_tril")
    (matrix,) = given
    if matrix.ndim < 2 or matrix.shape[-1] != matrix.shape[-2]:
        raise ValueError(f"[{name}] the matrix has the shape {matrix.shape}, which is not square")
    if scale_tril is not None:
        return scale_tril
    if checks:
        of._check("the matrix", constraints.positive_definite, matrix)
    if covariance is not None:
        return linalg.cholesky(covariance)
    # Let P with reversed rows and columns be L L^T. The inverse of L, reversed, is the factor of
    # P's inverse.
    turned = linalg.cholesky(f.flip(precision, (-2, -1)))
    upper = f.flip(turned, (-2, -1)).mT
    return linalg.solve_triangular(upper, f.broadcast_to(_eye(upper), upper.shape), upper=False)


class MultivariateNormal(Distribution):
    """The normal distribution of vectors with mean ``loc``.

    Give one of ``covariance_matrix``, ``precision_matrix`` (its inverse) and ``scale_tril``.
    ``scale_tril`` is the lower triangular L with the covariance L L^T. The last dimension of
    ``loc`` is the vector.

    >>> import minigrad as mg
    >>> d = mg.distributions.MultivariateNormal(mg.zeros(2), mg.eye(2))
    >>> d.sample((5,)).shape, d.event_shape
    ((5, 2), (2,))
    """

    arg_constraints = {  # noqa: RUF012
        "loc": constraints.real_vector,
        "_scale": constraints.lower_cholesky,
    }
    has_rsample = True

    def __init__(
        self,
        loc: Any,
        covariance_matrix: Any = None,
        precision_matrix: Any = None,
        scale_tril: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        if loc.ndim < 1:
            raise ValueError("[MultivariateNormal] loc needs a dimension, of the vector")
        checks = self._validate_args if validate_args is None else validate_args
        scale = scale_from(self, covariance_matrix, precision_matrix, scale_tril, checks)
        n = loc.shape[-1]
        batch = f.broadcast_tensors(loc[..., 0], scale[..., 0, 0])[0].shape
        self.loc = loc.expand((*batch, n))
        self._scale = scale.expand((*batch, n, n))
        super().__init__(batch, (n,), validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        """The distribution with its parameters expanded to a larger batch shape."""
        n = self.event_shape[0]
        return MultivariateNormal(
            self.loc.expand((*batch_shape, n)),
            scale_tril=self._scale.expand((*batch_shape, n, n)),
            validate_args=False,
        )

    @property
    def support(self) -> constraints.Constraint:
        """All vectors."""
        return constraints.real_vector

    @property
    def scale_tril(self) -> Any:
        """The lower triangular L."""
        return self._scale

    @property
    def covariance_matrix(self) -> Any:
        """L L^T."""
        return self._scale @ self._scale.mT

    @property
    def precision_matrix(self) -> Any:
        """The inverse of the covariance."""
        return f.cholesky_inverse(self._scale)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        """Samples loc + L noise, differentiable with respect to both."""
        noise = randn(Size(self._extended_shape(sample_shape)), dtype=self.loc.dtype)
        return self.loc + f.squeeze(self._scale @ f.unsqueeze(noise, -1), -1)

    def half_log_det(self) -> Any:
        """Half the logarithm of the determinant of the covariance, log|L|."""
        return f.sum(f.log(f.diagonal(self._scale, 0, -2, -1)), -1)

    def square(self, away: Any) -> Any:
        """v^T S^-1 v for the covariance S and vectors v: |L^-1 v|^2."""
        scale = self._scale.expand((*away.shape, away.shape[-1]))
        z = linalg.solve_triangular(scale, f.unsqueeze(away, -1), upper=False)
        return f.sum(f.squeeze(z, -1) ** 2, -1)

    def log_prob(self, value: Any) -> Any:
        """-|L^-1 (x - loc)|^2 / 2 - log|L| - n log(2 pi) / 2."""
        away = self._validate_sample(value) - self.loc
        constant = self.event_shape[0] * math.log(2 * math.pi)
        return -0.5 * (constant + self.square(away)) - self.half_log_det()

    def entropy(self) -> Any:
        """n (1 + log(2 pi)) / 2 + log|L|."""
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
        return f.sum(self._scale**2, -1)

    def __repr__(self) -> str:
        return f"MultivariateNormal(loc: {self.loc.shape}, covariance_matrix: {self._scale.shape})"


def _eye(like: Any) -> Any:
    from minigrad.functions.creation import eye

    return eye(like.shape[-1], dtype=like.dtype)
