"""References of log-densities by SciPy or formulas, and of transforms' values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import special, stats

import minigrad as mg
from expected.base import log_softmax, sigmoid, softmax
from minigrad import distributions as D

Case = tuple[Callable[[], Any], Any]

A, B = np.array([0.7, 2.5, 1.3]), np.array([1.9, 4.6, 3.2])
X, LOC = np.array([0.3, 0.8, 0.45]), np.array([-0.5, 0.2, 1.0])
P = np.array([0.2, 0.5, 0.9])
COUNTS = np.array([0.0, 2.0, 4.0])
SHARES, SIMPLEX = np.array([0.2, 0.3, 0.5]), np.array([0.6, 0.1, 0.3])
SPREAD = np.array([[2.0, 0.3, 0.1], [0.3, 1.0, 0.2], [0.1, 0.2, 1.5]])
BROADER = SPREAD + np.eye(3)
FACTOR = np.arange(6.0).reshape(3, 2) / 4


def _t(values: Any) -> Any:
    return mg.tensor(np.asarray(values, float))


def _density(name: str, parameters: Any, value: Any, expected: Any) -> dict[str, list[Case]]:
    """A case: the log-density of a distribution with these parameters."""

    def call(name: str = name) -> Any:
        given = [p if isinstance(p, int) else _t(p) for p in parameters]
        return getattr(D, name)(*given).log_prob(_t(value))

    return {name: [(call, np.asarray(expected))]}


def _log_stick(x: np.ndarray) -> float:
    """The change of the log-density when a normal x is mapped to the simplex."""
    rest, total = 1.0, 0.0
    for k, v in enumerate(x):
        z = sigmoid(v - np.log(len(x) - k))
        total += np.log(rest * z * (1 - z))
        rest *= 1 - z
    return total


def _stick(x: np.ndarray) -> np.ndarray:
    rest, found = 1.0, []
    for k, v in enumerate(x):
        z = sigmoid(v - np.log(len(x) - k))
        found.append(rest * z)
        rest *= 1 - z
    return np.array([*found, rest])


def _relaxed(x: np.ndarray, t: float, p: np.ndarray) -> np.ndarray:
    """Maddison et al. 2017, equation 23, with respect to the logit of x."""
    logits = special.logit(p) - t * special.logit(x)
    return np.log(t) + logits - 2 * np.log1p(np.exp(logits)) - np.log(x * (1 - x))


def _concrete(x: np.ndarray, t: float, p: np.ndarray) -> Any:
    """Maddison et al. 2017, equation 10."""
    n = len(p)
    terms = np.log(p) - t * np.log(x)
    constant = special.gammaln(n) + (n - 1) * np.log(t)
    return constant + (terms - np.log(x)).sum() - n * special.logsumexp(terms)


def _continuous_bernoulli(x: np.ndarray, p: np.ndarray) -> np.ndarray:
    """Loaiza-Ganem and Cunningham 2019, for p away from 1/2."""
    return x * np.log(p) + (1 - x) * np.log(1 - p) + np.log(2 * np.arctanh(1 - 2 * p) / (1 - 2 * p))


def _lkj(factor: np.ndarray, eta: float) -> float:
    """Lewandowski, Kurowicka and Joe 2009, page 1999, with respect to the matrix's factor."""
    n = len(factor)
    order = np.arange(2, n + 1)
    powers = ((n - order + 2 * eta - 2) * np.log(np.diag(factor)[1:])).sum()
    alpha = eta + (n - 1) / 2
    k = np.arange(1, n)
    constant = (
        (n - 1) * special.gammaln(alpha)
        - sum(special.gammaln(alpha - i / 2) for i in k)
        - (n - 1) * n / 4 * np.log(np.pi)
    )
    return powers + constant


CORRELATION = np.linalg.cholesky(np.array([[1.0, 0.3, 0.1], [0.3, 1.0, 0.2], [0.1, 0.2, 1.0]]))

DENSITIES: dict[str, list[Case]] = {
    **_density("Normal", (LOC, B), X, stats.norm(LOC, B).logpdf(X)),
    **_density("Laplace", (LOC, B), X, stats.laplace(LOC, B).logpdf(X)),
    **_density("Cauchy", (LOC, B), X, stats.cauchy(LOC, B).logpdf(X)),
    **_density("Gumbel", (LOC, B), X, stats.gumbel_r(LOC, B).logpdf(X)),
    **_density("Uniform", (LOC, LOC + B), LOC + X, -np.log(B)),
    **_density("Exponential", (B,), X, stats.expon(scale=1 / B).logpdf(X)),
    **_density("LogNormal", (LOC, A), X, stats.lognorm(A, scale=np.exp(LOC)).logpdf(X)),
    **_density("HalfNormal", (B,), X, stats.halfnorm(scale=B).logpdf(X)),
    **_density("HalfCauchy", (B,), X, stats.halfcauchy(scale=B).logpdf(X)),
    **_density("Pareto", (A, B), A + X, stats.pareto(B, scale=A).logpdf(A + X)),
    **_density("Weibull", (A, B), X, stats.weibull_min(B, scale=A).logpdf(X)),
    **_density("Gamma", (A, B), X, stats.gamma(A, scale=1 / B).logpdf(X)),
    **_density("InverseGamma", (A, B), X, stats.invgamma(A, scale=B).logpdf(X)),
    **_density("Chi2", (B,), X, stats.chi2(B).logpdf(X)),
    **_density("Beta", (A, B), X, stats.beta(A, B).logpdf(X)),
    **_density("StudentT", (B, LOC, A), X, stats.t(B, LOC, A).logpdf(X)),
    **_density("FisherSnedecor", (A, B), X, stats.f(A, B).logpdf(X)),
    **_density("VonMises", (LOC, B), X, stats.vonmises(B, LOC).logpdf(X)),
    **_density(
        "GeneralizedPareto",
        (LOC, B, P),
        LOC + X,
        stats.genpareto(P, LOC, B).logpdf(LOC + X),
    ),
    **_density(
        "Kumaraswamy", (A, B), X, np.log(A * B) + (A - 1) * np.log(X) + (B - 1) * np.log1p(-(X**A))
    ),
    **_density("Bernoulli", (P,), [1, 0, 1], stats.bernoulli(P).logpmf([1, 0, 1])),
    **_density("ContinuousBernoulli", (X,), P, _continuous_bernoulli(P, X)),
    **_density("Geometric", (P,), COUNTS, stats.geom(P, -1).logpmf(COUNTS)),
    **_density("Binomial", (4, P), COUNTS, stats.binom(4, P).logpmf(COUNTS)),
    **_density("NegativeBinomial", (4, P), COUNTS, stats.nbinom(4, 1 - P).logpmf(COUNTS)),
    **_density("Poisson", (B,), COUNTS, stats.poisson(B).logpmf(COUNTS)),
    **_density("Categorical", (SHARES,), 2, np.log(0.5)),
    **_density("OneHotCategorical", (SHARES,), [0, 1, 0], np.log(0.3)),
    **_density("OneHotCategoricalStraightThrough", (SHARES,), [0, 1, 0], np.log(0.3)),
    **_density("Multinomial", (6, SHARES), COUNTS, stats.multinomial(6, SHARES).logpmf(COUNTS)),
    **_density("Dirichlet", (A,), SIMPLEX, stats.dirichlet(A).logpdf(SIMPLEX)),
    **_density(
        "MultivariateNormal", (LOC, SPREAD), X, stats.multivariate_normal(LOC, SPREAD).logpdf(X)
    ),
    **_density(
        "LowRankMultivariateNormal",
        (LOC, FACTOR, B),
        X,
        stats.multivariate_normal(LOC, FACTOR @ FACTOR.T + np.diag(B)).logpdf(X),
    ),
    **_density(
        "Wishart",
        (4.5, SPREAD),
        BROADER,
        stats.wishart(4.5, SPREAD).logpdf(BROADER),
    ),
    **_density("RelaxedBernoulli", (0.7, X), P, _relaxed(P, 0.7, X)),
    **_density("RelaxedOneHotCategorical", (0.7, SHARES), SIMPLEX, _concrete(SIMPLEX, 0.7, SHARES)),
    **_density(
        "LogisticNormal",
        (LOC, B),
        _stick(X),
        stats.norm(LOC, B).logpdf(X).sum() - _log_stick(X),
    ),
    **_density("LKJCholesky", (3, 1.3), CORRELATION, _lkj(CORRELATION, 1.3)),
    "Independent": [
        (
            lambda: D.Independent(D.Normal(_t(LOC), _t(B)), 1).log_prob(_t(X)),
            stats.norm(LOC, B).logpdf(X).sum(),
        )
    ],
    "MixtureSameFamily": [
        (
            lambda: D.MixtureSameFamily(
                D.Categorical(_t(SHARES)), D.Normal(_t(LOC), _t(B))
            ).log_prob(_t(0.4)),
            np.log((SHARES * stats.norm(LOC, B).pdf(0.4)).sum()),
        )
    ],
    "TransformedDistribution": [
        (
            lambda: D.TransformedDistribution(
                D.Normal(_t(LOC), _t(B)), [D.ExpTransform()]
            ).log_prob(_t(X)),
            stats.lognorm(B, scale=np.exp(LOC)).logpdf(X),
        )
    ],
    "kl_divergence": [
        (
            lambda: D.kl_divergence(D.Bernoulli(_t(P)), D.Bernoulli(_t(X))),
            P * np.log(P / X) + (1 - P) * np.log((1 - P) / (1 - X)),
        )
    ],
}

# ---- transforms ----------------------------------------------------------------------------------


def _transform(
    name: str, arguments: Any, value: Any, expected: Any, slope: Any = None
) -> dict[str, list[Case]]:
    """A case: a transform's value, the inverse of this value, and the log-determinant."""

    def made(name: str = name) -> Any:
        return getattr(D, name)(*arguments())

    x = np.asarray(value)
    cases: list[Case] = [(lambda name=name: made()(_t(x)), np.asarray(expected))]
    if slope is not None:
        cases += [
            (lambda name=name: made().inv(_t(expected)), x),
            (lambda name=name: made().log_abs_det_jacobian(_t(x), _t(expected)), np.log(slope)),
        ]
    return {name: cases}


EXPONENTIATED = np.tril(SPREAD, -1) + np.diag(np.exp(np.diag(SPREAD)))


def _partial_correlations(x: np.ndarray) -> np.ndarray:
    """The factor of a 3 x 3 correlation matrix from three numbers."""
    a, b, c = np.tanh(x)
    return np.array(
        [
            [1, 0, 0],
            [a, np.sqrt(1 - a**2), 0],
            [b, c * np.sqrt(1 - b**2), np.sqrt(1 - b**2) * np.sqrt(1 - c**2)],
        ]
    )


TRANSFORMS: dict[str, list[Case]] = {
    **_transform("ExpTransform", lambda: (), X, np.exp(X), np.exp(X)),
    **_transform("AffineTransform", lambda: (1.5, -2.0), X, 1.5 - 2 * X, np.full(3, 2.0)),
    **_transform("PowerTransform", lambda: (_t(2.5),), X, X**2.5, 2.5 * X**1.5),
    **_transform("SigmoidTransform", lambda: (), LOC, sigmoid(LOC), sigmoid(LOC) * sigmoid(-LOC)),
    **_transform("TanhTransform", lambda: (), LOC, np.tanh(LOC), 1 - np.tanh(LOC) ** 2),
    **_transform("SoftplusTransform", lambda: (), LOC, np.log1p(np.exp(LOC)), sigmoid(LOC)),
    **_transform("AbsTransform", lambda: (), LOC, abs(LOC)),
    **_transform("SoftmaxTransform", lambda: (), LOC, softmax(LOC, 0)),
    **_transform("StickBreakingTransform", lambda: (), LOC, _stick(LOC), np.exp(_log_stick(LOC))),
    **_transform("LowerCholeskyTransform", lambda: (), SPREAD, EXPONENTIATED),
    **_transform("PositiveDefiniteTransform", lambda: (), SPREAD, EXPONENTIATED @ EXPONENTIATED.T),
    **_transform("CorrCholeskyTransform", lambda: (), LOC, _partial_correlations(LOC)),
    **_transform(
        "ComposeTransform",
        lambda: ([D.AffineTransform(0.0, 2.0), D.ExpTransform()],),
        X,
        np.exp(2 * X),
        2 * np.exp(2 * X),
    ),
    **_transform(
        "IndependentTransform", lambda: (D.ExpTransform(), 1), X, np.exp(X), np.exp(X.sum())
    ),
    **_transform("ReshapeTransform", lambda: ((3,), (3, 1)), X, X[:, None], 1.0),
    **_transform(
        "CatTransform",
        lambda: ([D.ExpTransform(), D.TanhTransform()], 0, [1, 2]),
        X,
        np.array([np.exp(X[0]), *np.tanh(X[1:])]),
        np.array([np.exp(X[0]), *(1 - np.tanh(X[1:]) ** 2)]),
    ),
    **_transform(
        "StackTransform",
        lambda: ([D.ExpTransform(), D.TanhTransform()], 0),
        SPREAD[:2],
        np.array([np.exp(SPREAD[0]), np.tanh(SPREAD[1])]),
        np.array([np.exp(SPREAD[0]), 1 - np.tanh(SPREAD[1]) ** 2]),
    ),
    **_transform(
        "CumulativeDistributionTransform",
        lambda: (D.Normal(_t(LOC), _t(B)),),
        X,
        stats.norm(LOC, B).cdf(X),
        stats.norm(LOC, B).pdf(X),
    ),
    "identity_transform": [(lambda: D.identity_transform(_t(X)), X)],
    "biject_to": [
        (lambda: D.biject_to(D.constraints.positive)(_t(LOC)), np.exp(LOC)),
        (lambda: D.biject_to(D.constraints.unit_interval)(_t(LOC)), sigmoid(LOC)),
    ],
    "transform_to": [
        (lambda: D.transform_to(D.constraints.simplex)(_t(LOC)), np.exp(log_softmax(LOC, 0))),
        (lambda: D.transform_to(D.constraints.less_than(2.0))(_t(LOC)), 2 - np.exp(LOC)),
    ],
}

DISTRIBUTIONS = {f"distributions.{n}": case for n, case in {**DENSITIES, **TRANSFORMS}.items()}
