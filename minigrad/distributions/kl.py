"""Kullback-Leibler divergences between distributions, in closed form."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from minigrad import functions as f
from minigrad import linalg
from minigrad.distributions.composed import Independent
from minigrad.distributions.continuous import (
    Exponential,
    Gumbel,
    HalfNormal,
    Laplace,
    LogNormal,
    Normal,
    Uniform,
)
from minigrad.distributions.discrete import Bernoulli, Binomial, Categorical, Geometric, Poisson
from minigrad.distributions.distribution import Distribution
from minigrad.distributions.gamma_family import Beta, Dirichlet, Gamma
from minigrad.distributions.multivariate import MultivariateNormal
from minigrad.nn.functional import logsigmoid

__all__ = ["kl_divergence", "register_kl"]

Formula = Callable[[Any, Any], Any]
_FORMULAS: dict[tuple[type, type], Formula] = {}


def register_kl(type_p: type, type_q: type) -> Callable[[Formula], Formula]:
    """A decorator: the function computes the divergence of such p from such q.

    For subclasses the formula of the nearest classes is taken, those of p first.
    """

    def register(formula: Formula) -> Formula:
        _FORMULAS[type_p, type_q] = formula
        return formula

    return register


def kl_divergence(p: Distribution, q: Distribution) -> Any:
    """The mean of log(p(x) / q(x)) over p, of the shape of their batch.

    Raises NotImplementedError where no formula was registered.

    >>> import minigrad as mg
    >>> from minigrad.distributions import Normal, kl_divergence
    >>> kl_divergence(Normal(1.0, 1.0), Normal(0.0, 1.0))
    tensor(0.5)
    """
    for a in type(p).__mro__:
        for b in type(q).__mro__:
            if (a, b) in _FORMULAS:
                return _FORMULAS[a, b](p, q)
    raise NotImplementedError(
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
    euler = 0.5772156649015329
    ratio, away = p.scale / q.scale, (q.loc - p.loc) / q.scale
    third = f.exp(away + f.lgamma(1 + ratio))
    return -f.log(ratio) - away + ratio * euler + third - (1 + euler)


@register_kl(Exponential, Exponential)
def _exponential(p: Any, q: Any) -> Any:
    ratio = q.rate / p.rate
    return ratio - 1 - f.log(ratio)


@register_kl(Uniform, Uniform)
def _uniform(p: Any, q: Any) -> Any:
    inside = (q.low <= p.low) & (q.high >= p.high)
    return f.where(inside, f.log((q.high - q.low) / (p.high - p.low)), math.inf)


@register_kl(Uniform, Normal)
def _uniform_normal(p: Any, q: Any) -> Any:
    width = p.high - p.low
    away = (p.high + p.low - 2 * q.loc) / 2
    square = (width**2 / 12 + away**2) / (2 * q.scale**2)
    return f.log(q.scale / width) + 0.5 * math.log(2 * math.pi) + square


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
def _multivariate(p: Any, q: Any) -> Any:
    if p.event_shape != q.event_shape:
        raise ValueError(f"[kl_divergence] vectors of {p.event_shape} and {q.event_shape}")
    n = p.event_shape[0]
    away = q.loc - p.loc
    shape = (*away.shape, n)
    scale, own = q.scale_tril.expand(shape), p.scale_tril.expand(shape)
    trace = f.sum(f.flatten(linalg.solve_triangular(scale, own, upper=False) ** 2, -2), -1)
    z = f.squeeze(linalg.solve_triangular(scale, f.unsqueeze(away, -1), upper=False), -1)
    return q._half_log_det() - p._half_log_det() + 0.5 * (trace + f.sum(z**2, -1) - n)


@register_kl(Independent, Independent)
def _independent(p: Any, q: Any) -> Any:
    n = p.reinterpreted_batch_ndims
    if n != q.reinterpreted_batch_ndims:
        raise NotImplementedError("[kl_divergence] Independents of different dimensions")
    found = kl_divergence(p.base_dist, q.base_dist)
    return f.sum(found, tuple(range(-n, 0))) if n else found
