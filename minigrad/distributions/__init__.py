"""Probability distributions: samples, densities, entropies, divergences.

Names, arguments and shapes are PyTorch's. Samples come from minigrad's generator.

>>> import minigrad as mg
>>> from minigrad.distributions import Normal
>>> Normal(0.0, 1.0).log_prob(mg.tensor(0.0)).item() + 0.9189385 < 1e-6
True
"""

import sys

from minigrad.distributions import (
    composed,
    constraints,
    continuous,
    discrete,
    gamma_family,
    kl_between,
    multivariate,
    transforms,
)
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
from minigrad.distributions.continuous_bernoulli import ContinuousBernoulli
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
from minigrad.distributions.exp_family import ExponentialFamily
from minigrad.distributions.gamma_family import (
    Beta,
    Chi2,
    Dirichlet,
    FisherSnedecor,
    Gamma,
    InverseGamma,
    StudentT,
)
from minigrad.distributions.generalized_pareto import GeneralizedPareto
from minigrad.distributions.kl import kl_divergence, register_kl
from minigrad.distributions.kumaraswamy import Kumaraswamy
from minigrad.distributions.lkj_cholesky import LKJCholesky
from minigrad.distributions.logistic_normal import LogisticNormal
from minigrad.distributions.lowrank_multivariate_normal import LowRankMultivariateNormal
from minigrad.distributions.multivariate import MultivariateNormal
from minigrad.distributions.relaxed_bernoulli import RelaxedBernoulli
from minigrad.distributions.relaxed_categorical import RelaxedOneHotCategorical
from minigrad.distributions.transforms import (
    AbsTransform,
    AffineTransform,
    CatTransform,
    ComposeTransform,
    CorrCholeskyTransform,
    CumulativeDistributionTransform,
    ExpTransform,
    IndependentTransform,
    LowerCholeskyTransform,
    PositiveDefiniteTransform,
    PowerTransform,
    ReshapeTransform,
    SigmoidTransform,
    SoftmaxTransform,
    SoftplusTransform,
    StackTransform,
    StickBreakingTransform,
    TanhTransform,
    Transform,
    identity_transform,
)
from minigrad.distributions.von_mises import VonMises
from minigrad.distributions.wishart import Wishart

# PyTorch has a module for each family: ``from torch.distributions.normal import Normal``. These are
# the names of families that share a module here.
_SHARED = {
    composed: "independent mixture_same_family transformed_distribution",
    continuous: "cauchy exponential gumbel half_cauchy half_normal laplace log_normal normal "
    "pareto uniform weibull",
    discrete: "bernoulli binomial categorical geometric multinomial negative_binomial "
    "one_hot_categorical poisson",
    gamma_family: "beta chi2 dirichlet fishersnedecor gamma inverse_gamma studentT",
    multivariate: "multivariate_normal",
}
for _module, _names in _SHARED.items():
    for _name in _names.split():
        sys.modules[f"{__name__}.{_name}"] = globals()[_name] = _module

del kl_between  # imported only for its registrations

__all__ = [
    "AbsTransform",
    "AffineTransform",
    "Bernoulli",
    "Beta",
    "Binomial",
    "CatTransform",
    "Categorical",
    "Cauchy",
    "Chi2",
    "ComposeTransform",
    "ContinuousBernoulli",
    "CorrCholeskyTransform",
    "CumulativeDistributionTransform",
    "Dirichlet",
    "Distribution",
    "ExpTransform",
    "Exponential",
    "ExponentialFamily",
    "FisherSnedecor",
    "Gamma",
    "GeneralizedPareto",
    "Geometric",
    "Gumbel",
    "HalfCauchy",
    "HalfNormal",
    "Independent",
    "IndependentTransform",
    "InverseGamma",
    "Kumaraswamy",
    "LKJCholesky",
    "Laplace",
    "LogNormal",
    "LogisticNormal",
    "LowRankMultivariateNormal",
    "LowerCholeskyTransform",
    "MixtureSameFamily",
    "Multinomial",
    "MultivariateNormal",
    "NegativeBinomial",
    "Normal",
    "OneHotCategorical",
    "OneHotCategoricalStraightThrough",
    "Pareto",
    "Poisson",
    "PositiveDefiniteTransform",
    "PowerTransform",
    "RelaxedBernoulli",
    "RelaxedOneHotCategorical",
    "ReshapeTransform",
    "SigmoidTransform",
    "SoftmaxTransform",
    "SoftplusTransform",
    "StackTransform",
    "StickBreakingTransform",
    "StudentT",
    "TanhTransform",
    "Transform",
    "TransformedDistribution",
    "Uniform",
    "VonMises",
    "Weibull",
    "Wishart",
    "biject_to",
    "constraints",
    "identity_transform",
    "kl_divergence",
    "register_kl",
    "transform_to",
    "transforms",
]
