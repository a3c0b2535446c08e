"""Probability distributions: samples, densities, entropies, divergences.

Names, arguments and shapes are PyTorch's. Samples come from minigrad's generator.

>>> import minigrad as mg
>>> from minigrad.distributions import Normal
>>> Normal(0.0, 1.0).log_prob(mg.tensor(0.0)).item() + 0.9189385 < 1e-6
True
"""

from minigrad.distributions import constraints, transforms
from minigrad.distributions.composed import (
    Independent,
    MixtureSameFamily,
    TransformedDistribution,
)
from minigrad.distributions.constraint_registry import biject_to, transform_to
from minigrad.distributions.continuous import (
    Cauchy,
    Exponential,
    Gumbel,
    HalfCauchy,
    HalfNormal,
    Laplace,
    LogNormal,
    Normal,
    Pareto,
    Uniform,
    Weibull,
)
from minigrad.distributions.discrete import (
    Bernoulli,
    Binomial,
    Categorical,
    Geometric,
    Multinomial,
    NegativeBinomial,
    OneHotCategorical,
    OneHotCategoricalStraightThrough,
    Poisson,
)
from minigrad.distributions.distribution import Distribution
from minigrad.distributions.gamma_family import Beta, Chi2, Dirichlet, Gamma, StudentT
from minigrad.distributions.kl import kl_divergence, register_kl
from minigrad.distributions.multivariate import MultivariateNormal

__all__ = [
    "Bernoulli",
    "Beta",
    "Binomial",
    "Categorical",
    "Cauchy",
    "Chi2",
    "Dirichlet",
    "Distribution",
    "Exponential",
    "Gamma",
    "Geometric",
    "Gumbel",
    "HalfCauchy",
    "HalfNormal",
    "Independent",
    "Laplace",
    "LogNormal",
    "MixtureSameFamily",
    "Multinomial",
    "MultivariateNormal",
    "NegativeBinomial",
    "Normal",
    "OneHotCategorical",
    "OneHotCategoricalStraightThrough",
    "Pareto",
    "Poisson",
    "StudentT",
    "TransformedDistribution",
    "Uniform",
    "Weibull",
    "biject_to",
    "constraints",
    "kl_divergence",
    "register_kl",
    "transform_to",
    "transforms",
]
