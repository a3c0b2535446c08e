"""Kullback-Leibler divergences between distributions of different classes, in closed form.

Each is the cross-entropy, the mean of -log(q(x)) over p, less the entropy of p. For each class of q
the cross-entropy is a formula in a few means over p: of x, x^2, log(x), exp(-x).
"""

from __future__ import annotations

import math
from typing import Any

from minigrad import functions as f
from minigrad.distributions.continuous import (
    EULER,
    Exponential,
    Gumbel,
    Laplace,
    Normal,
    Pareto,
    Uniform,
)
from minigrad.distributions.continuous_bernoulli import ContinuousBernoulli
from minigrad.distributions.discrete import Bernoulli, Binomial, Poisson
from minigrad.distributions.gamma_family import Beta, Gamma
from minigrad.distributions.kl import register_kl
from minigrad.distributions.stable import expm1_ratio, log1p_ratio, log_beta
from minigrad.functions.creation import full
from minigrad.functions.predicates import broadcast_shapes

__all__: list[str] = []


ON_ALL = (Normal, Laplace, Gumbel)
ABOVE_0 = (Exponential, Gamma)
FROM_0_TO_1 = (Beta, ContinuousBernoulli)


def _register(kinds: tuple[type, ...], others: tuple[type, ...], formula: Any) -> None:
    for kind in kinds:
        for other in others:
            register_kl(kind, other)(formula)


# ---- p has values where q has none ---------------------------------------------------------------


def _infinite(p: Any, q: Any) -> Any:
    return full(broadcast_shapes(p.batch_shape, q.batch_shape), math.inf, dtype=p.mean.dtype)


_register(ON_ALL, (*ABOVE_0, *FROM_0_TO_1, Pareto, Uniform), _infinite)
_register(ABOVE_0, (*FROM_0_TO_1, Pareto, Uniform), _infinite)
_register((Pareto,), (*FROM_0_TO_1, Uniform), _infinite)
_register(FROM_0_TO_1, (Pareto,), _infinite)
_register((Poisson,), (Bernoulli, Binomial), _infinite)


# ---- means of p ----------------------------------------------------------------------------------


def _mean_log(p: Any) -> Any:
    """The mean of log(x)."""
    if isinstance(p, Beta):
        return f.digamma(p.concentration1) - f.digamma(p.concentration1 + p.concentration0)
    if isinstance(p, Exponential):
        return -EULER - f.log(p.rate)
    if isinstance(p, Pareto):
        return f.log(p.scale) + 1 / p.alpha
    return _mean_log_between(p.low, p.high)


def _mean_log_between(low: Any, high: Any) -> Any:
    """The mean of log(x) for x uniform from low to high. Neither is negative."""
    from_0 = low <= 0
    z = f.where(from_0, high, low)
    away = f.where(from_0, 0.0, log1p_ratio((high - z) / z))
    return f.log(high) - 1 + away


def _mean_exp(p: Any, scale: Any) -> Any:
    """The mean of exp(-x / scale)."""
    if isinstance(p, Normal):
        return f.exp((p.scale / scale) ** 2 / 2 - p.loc / scale)
    if isinstance(p, Uniform):
        return f.exp(-p.low / scale) * expm1_ratio((p.low - p.high) / scale)
    a = p.concentration if isinstance(p, Gamma) else 1.0
    return f.exp(-a * f.log1p(1 / (p.rate * scale)))


# ---- by the kind of q ----------------------------------------------------------------------------


def _from_normal(p: Any, q: Any) -> Any:
    square = (p.variance + (p.mean - q.loc) ** 2) / q.scale**2
    return 0.5 * (square + math.log(2 * math.pi)) + f.log(q.scale) - p.entropy()


def _from_exponential(p: Any, q: Any) -> Any:
    return q.rate * p.mean - f.log(q.rate) - p.entropy()


def _from_gamma(p: Any, q: Any) -> Any:
    a, r = q.concentration, q.rate
    cross = r * p.mean - (a - 1) * _mean_log(p) + f.lgamma(a) - a * f.log(r)
    return cross - p.entropy()


def _from_gumbel(p: Any, q: Any) -> Any:
    away = (p.mean - q.loc) / q.scale
    return away + f.exp(q.loc / q.scale) * _mean_exp(p, q.scale) + f.log(q.scale) - p.entropy()


def _from_continuous_bernoulli(p: Any, q: Any) -> Any:
    return q._log_normalizer(q.logits) - q.logits * p.mean - p.entropy()


_register((*FROM_0_TO_1, *ABOVE_0, Gumbel, Laplace, Pareto, Uniform), (Normal,), _from_normal)
_register((*FROM_0_TO_1, Gamma, Pareto), (Exponential,), _from_exponential)
_register((Beta, Exponential, Pareto), (Gamma,), _from_gamma)
_register((Normal, *ABOVE_0), (Gumbel,), _from_gumbel)
_register((Beta,), (ContinuousBernoulli,), _from_continuous_bernoulli)


@register_kl(Beta, Uniform)
@register_kl(ContinuousBernoulli, Uniform)
def _unit_uniform(p: Any, q: Any) -> Any:
    return f.where((q.low <= 0) & (q.high >= 1), f.log(q.high - q.low) - p.entropy(), math.inf)


@register_kl(Normal, Laplace)
def _normal_laplace(p: Any, q: Any) -> Any:
    z = (p.loc - q.loc) / (math.sqrt(2) * p.scale)
    away = p.scale * (math.sqrt(2 / math.pi) * f.exp(-(z**2)) + math.sqrt(2) * z * f.erf(z))
    return away / q.scale + f.log(2 * q.scale) - p.entropy()


@register_kl(Bernoulli, Poisson)
def _bernoulli_poisson(p: Any, q: Any) -> Any:
    return q.rate - f.xlogy(p.probs, q.rate) - p.entropy()


# ---- uniform p, whose values may or may not lie where q has some ---------------------------------


def _inside(p: Any, inside: Any, low: Any, high: Any) -> Uniform:
    """p where its support lies in q's, and elsewhere a replacement in q's support."""
    return Uniform(f.where(inside, p.low, low), f.where(inside, p.high, high), False)


def _uniform_above_0(formula: Any) -> Any:
    def divergence(p: Any, q: Any) -> Any:
        inside = p.low >= 0
        return f.where(inside, formula(_inside(p, inside, 0.0, 1.0), q), math.inf)

    return divergence


def _uniform_from_0_to_1(formula: Any) -> Any:
    def divergence(p: Any, q: Any) -> Any:
        inside = (p.low >= 0) & (p.high <= 1)
        return f.where(inside, formula(_inside(p, inside, 0.0, 1.0), q), math.inf)

    return divergence


def _uniform_beta(p: Any, q: Any) -> Any:
    a, b = q.concentration1, q.concentration0
    above = _mean_log_between(1 - p.high, 1 - p.low)  # the mean of log(1 - x)
    return log_beta(a, b) - (a - 1) * _mean_log(p) - (b - 1) * above - p.entropy()


register_kl(Uniform, Gumbel)(_from_gumbel)
register_kl(Uniform, Exponential)(_uniform_above_0(_from_exponential))
register_kl(Uniform, Gamma)(_uniform_above_0(_from_gamma))
register_kl(Uniform, Beta)(_uniform_from_0_to_1(_uniform_beta))
register_kl(Uniform, ContinuousBernoulli)(_uniform_from_0_to_1(_from_continuous_bernoulli))


@register_kl(Uniform, Pareto)
def _uniform_pareto(p: Any, q: Any) -> Any:
    inside = p.low >= q.scale
    own = _inside(p, inside, q.scale, 2 * q.scale)
    cross = (q.alpha + 1) * _mean_log(own) - f.log(q.alpha) - q.alpha * f.log(q.scale)
    return f.where(inside, cross - own.entropy(), math.inf)
