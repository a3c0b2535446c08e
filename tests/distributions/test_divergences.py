"""Tests of divergences between distributions: integrals, gradients, infinities, PyTorch's pairs."""

from __future__ import annotations

import math

import numpy as np
import oracle
import pytest
from scipy import integrate

import minigrad as mg
from minigrad import distributions as D
from minigrad.distributions import transforms as T

pytestmark = pytest.mark.usefixtures("restore_random")


def double(x):
    return mg.tensor(x, dtype=mg.float64)


# parameters of p and of q, each with the other kinds' values inside its own where that can be
KINDS = {
    "Beta": ([1.7, 2.5], [0.8, 1.6]),
    "Cauchy": ([0.3, 0.8], [-0.2, 1.5]),
    "ContinuousBernoulli": ([0.3], [0.6]),
    "Exponential": ([0.7], [1.6]),
    "Gamma": ([1.7, 0.9], [2.4, 1.3]),
    "Gumbel": ([0.2, 0.8], [-0.3, 1.4]),
    "HalfCauchy": ([0.7], [1.6]),
    "HalfNormal": ([0.7], [1.6]),
    "InverseGamma": ([2.7, 0.9], [2.4, 1.3]),
    "Laplace": ([0.2, 0.8], [-0.3, 1.4]),
    "LogNormal": ([0.2, 0.8], [-0.3, 1.4]),
    "Normal": ([0.2, 0.8], [-0.3, 1.4]),
    "Pareto": ([0.9, 3.7], [0.7, 1.6]),
    "Uniform": ([0.2, 0.9], [-0.3, 1.4]),
}
RANGES = {  # where p has its values
    "Beta": (0, 1),
    "ContinuousBernoulli": (0, 1),
    "Exponential": (0, np.inf),
    "Gamma": (0, np.inf),
    "HalfCauchy": (0, np.inf),
    "HalfNormal": (0, np.inf),
    "InverseGamma": (0, np.inf),
    "LogNormal": (0, np.inf),
    "Pareto": (0.9, np.inf),
    "Uniform": (0.2, 0.9),
}
FINITE = {  # by the kind of q
    "Normal": "Beta ContinuousBernoulli Exponential Gamma Gumbel Laplace Normal Pareto Uniform",
    "Exponential": "Beta ContinuousBernoulli Exponential Gamma Pareto Uniform",
    "Gamma": "Beta Exponential Gamma Pareto Uniform",
    "Gumbel": "Normal Exponential Gamma Gumbel Uniform",
    "Laplace": "Normal Laplace",
    "Uniform": "Beta ContinuousBernoulli Uniform",
    "ContinuousBernoulli": "Beta ContinuousBernoulli Uniform",
    "Beta": "Beta Uniform",
    "Pareto": "Pareto",
    "Cauchy": "Cauchy",
    "HalfCauchy": "HalfCauchy",
    "HalfNormal": "HalfNormal",
    "InverseGamma": "InverseGamma",
    "LogNormal": "LogNormal",
}
PAIRS = [(p, q) for q, kinds in FINITE.items() for p in kinds.split()]


@pytest.mark.parametrize(("p", "q"), PAIRS)
def test_divergences_are_integrals(p, q, rng):
    mine, other = KINDS[p][0], KINDS[q][1]
    a = getattr(D, p)(*map(double, mine), validate_args=False)
    b = getattr(D, q)(*map(double, other), validate_args=False)

    def term(x):
        log = a.log_prob(double(x)).item()
        return math.exp(log) * (log - b.log_prob(double(x)).item()) if log > -700 else 0.0

    low, high = RANGES.get(p, (-np.inf, np.inf))
    wanted = integrate.quad(term, low, high, limit=200, epsabs=1e-9, epsrel=1e-9)[0]
    np.testing.assert_allclose(D.kl_divergence(a, b).item(), wanted, rtol=1e-6)

    def divergence(*given):
        n = len(mine)
        return D.kl_divergence(getattr(D, p)(*given[:n]), getattr(D, q)(*given[n:]))

    oracle.check_gradients(divergence, [*mine, *other], rng, rtol=1e-7)


INFINITE = {
    "Normal Gumbel Laplace": "Beta ContinuousBernoulli Exponential Gamma Pareto Uniform",
    "Exponential Gamma": "Beta ContinuousBernoulli Pareto Uniform",
    "Pareto": "Beta ContinuousBernoulli Uniform",
    "Beta ContinuousBernoulli": "Pareto",
}


@pytest.mark.parametrize("kinds", INFINITE)
def test_divergences_from_what_has_fewer_values_are_infinite(kinds):
    for p in kinds.split():
        for q in INFINITE[kinds].split():
            a = getattr(D, p)(*[double(x).expand(2, 1) for x in KINDS[p][0]])
            b = getattr(D, q)(*[double(x).expand(3) for x in KINDS[q][1]])
            found = D.kl_divergence(a, b)
            assert (found.shape, found.dtype) == ((2, 3), mg.float64)
            assert bool((found == math.inf).all())


@pytest.mark.parametrize(
    ("p", "q"),
    [
        (D.Uniform(-0.5, 0.5), D.Beta(1.5, 2.5)),
        (D.Uniform(0.5, 1.5), D.Beta(1.5, 2.5)),
        (D.Uniform(0.5, 1.5), D.ContinuousBernoulli(0.3)),
        (D.Uniform(-0.5, 1.5), D.Exponential(0.3)),
        (D.Uniform(-0.5, 1.5), D.Gamma(0.3, 2.0)),
        (D.Uniform(0.5, 1.5), D.Pareto(0.6, 2.0)),
        (D.Uniform(0.5, 1.5), D.Uniform(0.6, 2.0)),
        (D.Beta(1.5, 2.5), D.Uniform(0.1, 2.0)),
        (D.Pareto(0.5, 2.5), D.Pareto(0.6, 2.0)),
        (D.Pareto(0.5, 0.9), D.Exponential(2.0)),
        (D.Pareto(0.5, 1.9), D.Normal(2.0, 1.0)),
        (D.Poisson(2.0), D.Bernoulli(0.5)),
        (D.Poisson(2.0), D.Binomial(5, 0.5)),
    ],
)
def test_infinite_divergences(p, q):
    assert D.kl_divergence(p, q).item() == math.inf


def test_a_value_outside_leaves_the_gradients_of_others():
    low, high = double([0.2, -1.0]).requires_grad_(), double([0.9, 0.5]).requires_grad_()
    a, b = double([1.5, 1.5]).requires_grad_(), double([2.5, 2.5]).requires_grad_()
    for q in (D.Beta(a, b), D.Gamma(a, b)):
        found = D.kl_divergence(D.Uniform(low, high), q)
        assert found.tolist()[1] == math.inf
        for g in mg.grad(found[0], [low, high, a, b], retain_graph=True):
            assert math.isfinite(g[0].item())
            assert g[1].item() == 0


def test_uniform_from_0_on():
    """The mean of log(x) has its limit where the interval starts at 0."""
    found = D.kl_divergence(D.Uniform(double(0.0), double(1.0)), D.Beta(double(2.0), double(3.0)))
    np.testing.assert_allclose(found.item(), 1 + 2 - math.log(12))
    narrow = D.Uniform(double(0.5), double(0.5 + 1e-9))
    found = D.kl_divergence(narrow, D.Gamma(double(2.0), double(3.0))).item()
    wanted = (
        -math.log(narrow.high.item() - 0.5) - D.Gamma(double(2.0), 3.0).log_prob(double(0.5)).item()
    )
    np.testing.assert_allclose(found, wanted, rtol=1e-8)


def test_bernoulli_and_poisson():
    p, rate = 0.3, 1.7
    found = D.kl_divergence(D.Bernoulli(double(p)), D.Poisson(double(rate)))
    wanted = p * math.log(p / (rate * math.exp(-rate))) + (1 - p) * math.log(
        (1 - p) * math.exp(rate)
    )
    np.testing.assert_allclose(found.item(), wanted)


# ---- vectors and matrices ------------------------------------------------------------------------


def normals(rng):
    factor, diagonal = rng.standard_normal((3, 2)), rng.uniform(0.5, 2, 3)
    covariance = factor @ factor.T + np.diag(diagonal)
    loc = rng.standard_normal(3)
    low = D.LowRankMultivariateNormal(double(loc), double(factor), double(diagonal))
    return low, D.MultivariateNormal(double(loc), double(covariance), validate_args=False)


def test_low_rank_normals(rng):
    p, q = normals(rng), normals(rng)
    wanted = D.kl_divergence(p[1], q[1]).item()
    for a in p:
        for b in q:
            np.testing.assert_allclose(D.kl_divergence(a, b).item(), wanted, rtol=1e-12)
    np.testing.assert_allclose(D.kl_divergence(p[0], p[1]).item(), 0, atol=1e-12)
    wide = D.kl_divergence(p[0].expand((2, 1)), q[0].expand((3,)))
    np.testing.assert_allclose(wide.numpy(), np.full((2, 3), wanted), rtol=1e-12)
    with pytest.raises(ValueError, match=r"^\[kl_divergence\] vectors of \(3,\) and \(2,\)"):
        D.kl_divergence(p[0], D.MultivariateNormal(mg.zeros(2), mg.eye(2)))


def test_gradients_of_low_rank_normals(rng):
    p, q = normals(rng)[0], normals(rng)[0]
    given = [getattr(d, n).numpy() for d in (p, q) for n in ("loc", "cov_factor", "cov_diag")]
    oracle.check_gradients(
        lambda *v: D.kl_divergence(
            D.LowRankMultivariateNormal(*v[:3]), D.LowRankMultivariateNormal(*v[3:])
        ),
        given,
        rng,
        rtol=1e-7,
        second=False,
    )


def test_wishart(rng):
    v, w = (m @ m.T + np.eye(3) for m in rng.standard_normal((2, 3, 3)))
    p, q = D.Wishart(double(4.5), double(v), validate_args=False), D.Wishart(double(7.0), double(w))
    found = D.kl_divergence(p, q)
    mg.manual_seed(1)
    x = p.sample((20_000,))
    error = (p.log_prob(x) - q.log_prob(x)).numpy()
    assert abs(found.item() - error.mean()) < 6 * error.std() / math.sqrt(len(error))
    np.testing.assert_allclose(D.kl_divergence(p, p).item(), 0, atol=1e-12)
    factors = [np.linalg.cholesky(m) for m in (v, w)]

    def divergence(n, a, m, b):
        return D.kl_divergence(
            *(D.Wishart(df, scale_tril=s.tril(), validate_args=False) for df, s in ((n, a), (m, b)))
        )

    oracle.check_gradients(
        divergence, [4.5, factors[0], 7.0, factors[1]], rng, rtol=1e-7, second=False
    )


# ---- made of others ------------------------------------------------------------------------------


def test_transformed_distributions():
    a, b = D.Normal(double(0.2), double(0.8)), D.Normal(double(-0.3), double(1.4))
    wanted = D.kl_divergence(a, b).item()
    p, q = (D.TransformedDistribution(d, [T.AffineTransform(1.0, 2.0)]) for d in (a, b))
    assert D.kl_divergence(p, q).item() == wanted
    with pytest.raises(NotImplementedError, match=r"the transforms of the two are different"):
        D.kl_divergence(p, D.TransformedDistribution(b, [T.AffineTransform(1.0, 3.0)]))
    p, q = (
        D.LogisticNormal(double([0.2]), double([0.8])),
        D.LogisticNormal(double([-0.3]), double([1.4])),
    )
    np.testing.assert_allclose(D.kl_divergence(p, q).item(), wanted)


def test_exponential_families_of_ones_own():
    class Waiting(D.ExponentialFamily):
        def __init__(self, rate):
            self.rate = rate
            super().__init__(rate.shape)

        @property
        def _natural_params(self):
            return (-self.rate,)

        def _log_normalizer(self, theta):
            return -(-theta).log()

        _mean_carrier_measure = 0.0

    a, b = double([0.7, 2.0]).requires_grad_(), double([1.6, 2.0]).requires_grad_()
    found = D.kl_divergence(Waiting(a), Waiting(b))
    wanted = D.kl_divergence(D.Exponential(a), D.Exponential(b))
    np.testing.assert_allclose(found.detach().numpy(), wanted.detach().numpy(), atol=1e-15)
    for g, w in zip(mg.grad(found.sum(), [a, b]), mg.grad(wanted.sum(), [a, b]), strict=True):
        np.testing.assert_allclose(g.numpy(), w.numpy(), atol=1e-14)
    np.testing.assert_allclose(
        Waiting(a).entropy().detach().numpy(), D.Exponential(a).entropy().detach().numpy()
    )
    with pytest.raises(NotImplementedError, match=r"no formula for Waiting and Exponential"):
        D.kl_divergence(Waiting(a), D.Exponential(b))


# ---- beside PyTorch ------------------------------------------------------------------------------

ARRAYS = {
    **{name: [np.array([x, 0.4 + x / 2]) for x in given] for name, (given, _) in KINDS.items()},
    "Bernoulli": [np.array([0.3, 0.8])],
    "Binomial": [5, np.array([0.3, 0.8])],
    "Categorical": [np.array([0.3, 0.8])],
    "Dirichlet": [np.array([1.3, 0.8])],
    "Geometric": [np.array([0.3, 0.8])],
    "LowRankMultivariateNormal": [np.array([0.1, 0.2]), np.array([[0.3], [0.9]]), np.ones(2)],
    "MultivariateNormal": [np.array([0.3, -0.4]), np.array([[1.0, 0.2], [0.2, 0.7]])],
    "OneHotCategorical": [np.array([0.3, 0.8])],
    "Poisson": [np.array([0.7, 2.0])],
}


def test_every_pair_that_pytorch_has():
    torch = pytest.importorskip("torch")
    from torch.distributions import kl

    abstract = {"ExponentialFamily", "TransformedDistribution", "Independent"}
    pairs = [(a.__name__, b.__name__) for a, b in kl._KL_REGISTRY]
    seen = 0
    for p, q in pairs:
        if p in abstract:
            continue
        ours, theirs = [], []
        for name in (p, q):
            given = ARRAYS[name]
            ours.append(getattr(D, name)(*[g if isinstance(g, int) else double(g) for g in given]))
            theirs.append(
                getattr(torch.distributions, name)(
                    *[g if isinstance(g, int) else torch.tensor(g) for g in given]
                )
            )
        found, wanted = D.kl_divergence(*ours).numpy(), kl.kl_divergence(*theirs).numpy()
        np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-12, err_msg=f"{p}, {q}")
        seen += 1
    assert seen > 80
