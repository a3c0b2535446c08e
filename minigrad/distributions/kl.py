"""Kullback-Leibler divergences between distributions of one class, in closed form."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from minigrad import functions as f
from minigrad import linalg
from minigrad.distributions.composed import Independent, TransformedDistribution
from minigrad.distributions.continuous import (
    EULER,
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
)
from minigrad.distributions.continuous_bernoulli import ContinuousBernoulli
from minigrad.distributions.discrete import Bernoulli, Binomial, Categorical, Geometric, Poisson
from minigrad.distributions.distribution import Distribution
from minigrad.distributions.exp_family import ExponentialFamily, bregman
from minigrad.distributions.gamma_family import Beta, Dirichlet, Gamma, InverseGamma
from minigrad.distributions.lowrank_multivariate_normal import LowRankMultivariateNormal
from minigrad.distributions.multivariate import MultivariateNormal
from minigrad.distributions.wishart import Wishart
from minigrad.nn.functional import logsigmoid

__all__ = ["kl_divergence", "register_kl"]

Formula = Callable[[Any, Any], Any]
_FORMULAS: dict[tuple[type, type], Formula] = {}


def register_kl(type_p: type, type_q: type) -> Callable[[Formula], Formula]:
    """Decorator that registers a function for the divergence of p from q, by their classes.

    Subclasses use the formula of the nearest base classes. Nearness of p's class counts first.
    """

    def register(formula: Formula) -> Formula:
        _FORMULAS[type_p, type_q] = formula
        return formula

    return register


def kl_divergence(p: Distribution, q: Distribution) -> Any:
    """The Kullback-Leibler divergence: the mean of log(p(x) / q(x)) over p, in the batch's shape.

    Raises NotImplementedError if no formula was registered.

    >>> import minigrad as mg
    >>> from minigrad.distributions import Normal, kl_divergence
    >>> kl_divergence(Normal(1.0, 1.0), Normal(0.0, 1.0))
    tensor(0.5)
    """
    for a in type(p).__mro__:
        for b in type(q).__mro__:
            if (a, b) in _FORMULAS:
                return _FORMULAS[a, b](p, q)
    raise _no_formula(p, q)


def _no_formula(p: Distribution, q: Distribution) -> NotImplementedError:
    return NotImplementedError(
        f"[kl_divergence] there is no formula for {type(p).__name__} and {type(q).__name__}"
    )


@register_kl(Normal, Normal)
def _normal(p: Any, q: Any) -> Any:
    ratio = (p.scale / q.scale) ** 2
    away = ((p.loc - q.loc) / q.scale) ** 2
    return 0.5 * (ratio + away - 1 - f.log(ratio))


@register_kl(LogNormal, LogNormal)
def _log_normal(p: Any, q: Any) -> Any:
    return _normal(p, q)


@register_kl(HalfNormal, HalfNormal)
def _half_normal(p: Any, q: Any) -> Any:
    ratio = (p.scale / q.scale) ** 2
    return 0.5 * (ratio - 1 - f.log(ratio))


@register_kl(Laplace, Laplace)
def _laplace(p: Any, q: Any) -> Any:
    ratio, away = p.scale / q.scale, f.abs(p.loc - q.loc)
    return -f.log(ratio) + away / q.scale + ratio * f.exp(-away / p.scale) - 1


@register_kl(Gumbel, Gumbel)
def _gumbel(p: Any, q: Any) -> Any:
    ratio, away = p.scale / q.scale, (q.loc - p.loc) / q.scale
    third = f.exp(away + f.lgamma(1 + ratio))
    return -f.log(ratio) - away + ratio * EULER + third - (1 + EULER)


@register_kl(Exponential, Exponential)
def _exponential(p: Any, q: Any) -> Any:
    ratio = q.rate / p.rate
    return ratio - 1 - f.log(ratio)


@register_kl(Uniform, Uniform)
def _uniform(p: Any, q: Any) -> Any:
    inside = (q.low <= p.low) & (q.high >= p.high)
    return f.where(inside, f.log((q.high - q.low) / (p.high - p.low)), math.inf)


@register_kl(Gamma, Gamma)
def _gamma(p: Any, q: Any) -> Any:
    a, b = p.concentration, q.concentration
    first = b * f.log(p.rate / q.rate) + f.lgamma(b) - f.lgamma(a)
    return first + (a - b) * f.digamma(a) + (q.rate - p.rate) * (a / p.rate)


@register_kl(Dirichlet, Dirichlet)
def _dirichlet(p: Any, q: Any) -> Any:
    a, b = p.concentration, q.concentration
    total = f.sum(a, -1)
    first = f.lgamma(total) - f.lgamma(f.sum(b, -1))
    second = f.sum(f.lgamma(b) - f.lgamma(a), -1)
    change = f.digamma(a) - f.unsqueeze(f.digamma(total), -1)
    return first + second + f.sum((a - b) * change, -1)


@register_kl(Beta, Beta)
def _beta(p: Any, q: Any) -> Any:
    return _dirichlet(p._both, q._both)


@register_kl(Bernoulli, Bernoulli)
def _bernoulli(p: Any, q: Any) -> Any:
    a = p.probs
    hit = a * (logsigmoid(p.logits) - logsigmoid(q.logits))
    miss = (1 - a) * (logsigmoid(-p.logits) - logsigmoid(-q.logits))
    return hit + miss


@register_kl(Binomial, Binomial)
def _binomial(p: Any, q: Any) -> Any:
    if bool((p.total_count > q.total_count).any()):
        raise NotImplementedError("[kl_divergence] Binomials of different numbers of trials")
    same = p.total_count == q.total_count
    return f.where(same, p.total_count * _bernoulli(p, q), math.inf)


@register_kl(Geometric, Geometric)
def _geometric(p: Any, q: Any) -> Any:
    return -p.entropy() - f.log1p(-q.probs) / p.probs - q.logits


@register_kl(Poisson, Poisson)
def _poisson(p: Any, q: Any) -> Any:
    return f.xlogy(p.rate, p.rate / q.rate) - (p.rate - q.rate)


@register_kl(Categorical, Categorical)
def _categorical(p: Any, q: Any) -> Any:
    t = f.where(p.probs == 0, 0.0, p.probs * (p.logits - q.logits))
    t = f.where((q.probs == 0) & (p.probs != 0), math.inf, t)
    return f.sum(t, -1)


@register_kl(MultivariateNormal, MultivariateNormal)
@register_kl(MultivariateNormal, LowRankMultivariateNormal)
@register_kl(LowRankMultivariateNormal, MultivariateNormal)
@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
def _multivariate(p: Any, q: Any) -> Any:
    if p.event_shape != q.event_shape:
        raise ValueError(f"[kl_divergence] vectors of {p.event_shape} and {q.event_shape}")
    if isinstance(p, LowRankMultivariateNormal):
        columns = f.cat([p.cov_factor, f.diag_embed(f.sqrt(p.cov_diag))], -1)
    else:
        columns = p.scale_tril
    # With the covariance C C^T of p, the trace of S^-1 C C^T adds up over the columns of C.
    columns = f.movedim(columns, -1, 0)
    columns, _ = f.broadcast_tensors(columns, q.loc)
    trace = f.sum(q.square(columns), 0)
    distance = q.square(q.loc - p.loc)
    n = p.event_shape[0]
    return q.half_log_det() - p.half_log_det() + 0.5 * (trace + distance - n)


@register_kl(Wishart, Wishart)
def _wishart(p: Any, q: Any) -> Any:
    if p.event_shape != q.event_shape:
        raise ValueError(f"[kl_divergence] matrices of {p.event_shape} and {q.event_shape}")
    scale, own = f.broadcast_tensors(q.scale_tril, p.scale_tril)
    ratio = linalg.solve_triangular(scale, own, upper=False)
    trace = f.sum(f.flatten(ratio**2, -2), -1)
    n = p.event_shape[0]
    change = (p.df - q.df) / 2 * p.mean_log_det() + p.df / 2 * (trace - n)
    return q.log_normalizer() - p.log_normalizer() + change


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def _continuous_bernoulli(p: Any, q: Any) -> Any:
    change = q._log_normalizer(q.logits) - p._log_normalizer(p.logits)
    return change - (q.logits - p.logits) * p.mean


@register_kl(Pareto, Pareto)
def _pareto(p: Any, q: Any) -> Any:
    ratio = q.alpha / p.alpha
    found = q.alpha * f.log(p.scale / q.scale) - f.log(ratio) + ratio - 1
    return f.where(p.scale < q.scale, math.inf, found)


@register_kl(Cauchy, Cauchy)
def _cauchy(p: Any, q: Any) -> Any:
    away = (p.loc - q.loc) ** 2 + (p.scale - q.scale) ** 2
    return f.log1p(away / (4 * p.scale * q.scale))


@register_kl(HalfCauchy, HalfCauchy)
def _half_cauchy(p: Any, q: Any) -> Any:
    return _cauchy(p.base_dist, q.base_dist)


@register_kl(InverseGamma, InverseGamma)
def _inverse_gamma(p: Any, q: Any) -> Any:
    return _gamma(p, q)


@register_kl(ExponentialFamily, ExponentialFamily)
def _exponential_family(p: Any, q: Any) -> Any:
    if type(p) is not type(q):
        raise _no_formula(p, q)
    return bregman(p, q)


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed(p: Any, q: Any) -> Any:
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError("[kl_divergence] the transforms of the two are different")
    return kl_divergence(p.base_dist, q.base_dist)


@register_kl(Independent, Independent)
def _independent(p: Any, q: Any) -> Any:
    n = p.reinterpreted_batch_ndims
    if n != q.reinterpreted_batch_ndims:
        raise NotImplementedError("[kl_divergence] Independents of different dimensions")
    found = kl_divergence(p.base_dist, q.base_dist)
    return f.sum(found, tuple(range(-n, 0))) if n else found
