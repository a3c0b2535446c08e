"""Tests of the rarer distributions: densities, gradients, samples, moments, far parameters."""

from __future__ import annotations

import math

import numpy as np
import oracle
import pytest
from scipy import stats

import minigrad as mg
from minigrad import distributions as D
from minigrad.distributions import stable
from minigrad.distributions.incomplete_gamma import incomplete_gamma
from minigrad.distributions.relaxed_bernoulli import LogitRelaxedBernoulli
from minigrad.distributions.relaxed_categorical import ExpRelaxedCategorical

pytestmark = pytest.mark.usefixtures("restore_random")


def double(x):
    return mg.tensor(x, dtype=mg.float64)


A = np.array([0.7, 2.5, 1.3])
B = np.array([1.9, 4.6, 3.2])
X = np.array([0.3, 0.8, 0.45])
LOC = np.array([-0.5, 0.2, 1.0])
FACTOR = np.arange(6.0).reshape(3, 2) / 4
COVARIANCE = np.array([[2.0, 0.3, 0.1], [0.3, 1.0, 0.2], [0.1, 0.2, 1.5]])
CORRELATION = np.array([[1.0, 0.3, 0.1], [0.3, 1.0, 0.2], [0.1, 0.2, 1.0]])

# name: parameters, and values of which the density is asked
FAMILIES = {
    "ContinuousBernoulli": ([X], X[::-1].copy()),
    "FisherSnedecor": ([3 * A, 3 * B], X),
    "InverseGamma": ([A, B], X),
    "Kumaraswamy": ([A, B], X),
    "VonMises": ([LOC, B], X),
    "GeneralizedPareto": ([LOC, B, np.array([0.1, -0.2, 0.3])], LOC + X),
    "RelaxedBernoulli": ([np.array(0.7), X], X[::-1].copy()),
    "RelaxedOneHotCategorical": ([np.array(0.7), X], np.array([0.2, 0.3, 0.5])),
    "LogisticNormal": ([LOC, B], np.array([0.1, 0.2, 0.3, 0.4])),
    "LowRankMultivariateNormal": ([LOC, FACTOR, B], X),
    "LKJCholesky": ([A], np.linalg.cholesky(CORRELATION)),
    "Wishart": ([np.array([3.5, 4.0, 6.0]), COVARIANCE], COVARIANCE + np.eye(3)),
}
every = pytest.mark.parametrize("name", FAMILIES)


def build(name, parameters, library=D):
    first = (3,) if name == "LKJCholesky" else ()
    return getattr(library, name)(*first, *parameters, validate_args=False)


def made(name):
    return build(name, [double(p) for p in FAMILIES[name][0]])


@every
def test_gradients_of_log_prob(name, rng):
    parameters, x = FAMILIES[name]

    def log_prob(*given):
        *p, value = given
        if name == "Wishart":  # the matrices stay symmetric
            p[1], value = (p[1] + p[1].mT) / 2, (value + value.mT) / 2
        return build(name, p).log_prob(value)

    oracle.check_gradients(log_prob, [*parameters, x], rng, rtol=1e-7, second=name != "Wishart")


@every
def test_gradients_of_moments(name, rng):
    parameters, _ = FAMILIES[name]
    for which in ("mean", "variance", "entropy"):

        def moment(*p, which=which):
            if name == "Wishart":  # the matrix stays symmetric
                p = p[0], (p[1] + p[1].mT) / 2
            found = getattr(build(name, p), which)
            return found() if callable(found) else found

        try:
            value = moment(*[double(p) for p in parameters])
        except NotImplementedError:
            continue
        if bool(value.isfinite().all()):
            oracle.check_gradients(moment, parameters, rng, second=False, rtol=1e-7)


@pytest.mark.parametrize(
    "name", [n for n in FAMILIES if n not in {"VonMises", "LKJCholesky", "FisherSnedecor"}]
)
def test_gradients_of_samples(name, rng):
    parameters, _ = FAMILIES[name]
    parameters = parameters[1:] if name == "Wishart" else parameters

    def sample(*p):
        mg.manual_seed(7)
        if name == "Wishart":
            p = double(FAMILIES[name][0][0]), (p[0] + p[0].mT) / 2
        if name == "InverseGamma":  # by the rate; the shape's is implicit, see below
            p = p[0].detach(), p[1]
        return build(name, p).rsample((2,))

    if name == "InverseGamma":
        oracle.check_gradients(lambda r: sample(double(A), r), [B], rng, second=False)
        return
    oracle.check_gradients(sample, parameters, rng, second=False, rtol=1e-7)


def test_implicit_gradients_of_samples():
    """dx/da = -(dF/da) / p, by central differences of SciPy's distribution functions."""
    h = 1e-5
    for name, other in (
        ("InverseGamma", lambda a, b: stats.invgamma(a, scale=b)),
        ("FisherSnedecor", lambda a, b: stats.f(a, b)),
    ):
        a, b = (double(2 * p).requires_grad_() for p in (A, B))
        mg.manual_seed(5)
        x = getattr(D, name)(a, b).rsample()
        if name == "FisherSnedecor":  # two samples make one: the gradient is right in the mean
            mg.manual_seed(5)
            x = getattr(D, name)(a, b).rsample((20_000,))
            found = np.stack([g.numpy() for g in mg.grad(x.clip(max=1.0).mean(0).sum(), [a, b])])
            step = 1e-3

            def mean(a, b):  # of the values up to 1
                return [
                    stats.f(*p).expect(lambda v: min(v, 1.0), lb=0, ub=np.inf, limit=200)
                    for p in zip(a, b, strict=True)
                ]

            own = 2 * A, 2 * B
            for k in range(2):
                moved = [[p + s * step * (n == k) for n, p in enumerate(own)] for s in (1, -1)]
                wanted = (np.array(mean(*moved[0])) - mean(*moved[1])) / (2 * step)
                np.testing.assert_allclose(found[k], wanted, atol=0.01)
            continue
        found = mg.grad(x.sum(), [a, b])
        value = x.detach().numpy()
        for k in range(2):
            up, down = ([2 * A + s * h * (k == 0), 2 * B + s * h * (k == 1)] for s in (1, -1))
            slope = (other(*up).cdf(value) - other(*down).cdf(value)) / (2 * h)
            wanted = -slope / other(2 * A, 2 * B).pdf(value)
            np.testing.assert_allclose(found[k].numpy(), wanted, rtol=1e-6)


# ---- beside SciPy --------------------------------------------------------------------------------

SCIPY = {
    "FisherSnedecor": stats.f(3 * A, 3 * B),
    "InverseGamma": stats.invgamma(A, scale=B),
    "GeneralizedPareto": stats.genpareto([0.1, -0.2, 0.3], LOC, B),
    "VonMises": stats.vonmises(B, LOC),
}


@pytest.mark.parametrize("name", SCIPY)
def test_densities_are_scipys(name):
    _, x = FAMILIES[name]
    d, theirs = made(name), SCIPY[name]
    np.testing.assert_allclose(d.log_prob(double(x)).numpy(), theirs.logpdf(x), rtol=1e-10)
    if name == "VonMises":
        np.testing.assert_allclose(d.entropy().numpy(), theirs.entropy(), rtol=1e-9)
        return
    mean, variance = theirs.stats("mv")
    finite = np.isfinite(mean)
    np.testing.assert_allclose(d.mean.numpy()[finite], mean[finite], rtol=1e-10)
    finite = np.isfinite(variance)
    np.testing.assert_allclose(d.variance.numpy()[finite], variance[finite], rtol=1e-10)
    if name != "FisherSnedecor":
        np.testing.assert_allclose(d.entropy().numpy(), theirs.entropy(), rtol=1e-7)
        np.testing.assert_allclose(d.cdf(double(x)).numpy(), theirs.cdf(x), rtol=1e-10)
    if name == "GeneralizedPareto":
        np.testing.assert_allclose(d.icdf(double(X)).numpy(), theirs.ppf(X), rtol=1e-10)


@pytest.mark.parametrize("name", ["ContinuousBernoulli", "Kumaraswamy"])
def test_densities_are_slopes_of_distribution_functions(name):
    d = made(name)
    x = double(X).requires_grad_()
    p = d.cdf(x)
    (slope,) = mg.grad(p.sum(), x)
    np.testing.assert_allclose(slope.log().numpy(), d.log_prob(x).detach().numpy(), rtol=1e-10)
    np.testing.assert_allclose(d.icdf(p.detach()).numpy(), X, rtol=1e-12)
    assert d.cdf(double(0.0)).tolist() == [0, 0, 0]
    assert d.cdf(double(1.0)).tolist() == [1, 1, 1]
    # moments and entropy by Gauss-Legendre quadrature, the square root at 0 smoothed away
    nodes, weights = np.polynomial.legendre.leggauss(100)
    u = (nodes + 1) / 2
    at, w = u**4, weights / 2 * 4 * u**3
    log = d.log_prob(double(at[:, None])).numpy()
    density = w[:, None] * np.exp(log)
    mean = (density * at[:, None]).sum(0)
    np.testing.assert_allclose(d.mean.numpy(), mean, rtol=1e-7)
    spread = (density * (at[:, None] - mean) ** 2).sum(0)
    np.testing.assert_allclose(d.variance.numpy(), spread, rtol=1e-7)
    np.testing.assert_allclose(d.entropy().numpy(), -(density * log).sum(0), atol=1e-6)


def test_wishart_is_scipys():
    df, v = 5.5, COVARIANCE
    theirs = stats.wishart(df, v)
    x = COVARIANCE + np.eye(3)
    for name, matrix in (
        ("covariance_matrix", v),
        ("precision_matrix", np.linalg.inv(v)),
        ("scale_tril", np.linalg.cholesky(v)),
    ):
        d = D.Wishart(double(df), **{name: double(matrix)}, validate_args=False)
        np.testing.assert_allclose(d.log_prob(double(x)).item(), theirs.logpdf(x), rtol=1e-10)
        np.testing.assert_allclose(d.entropy().item(), theirs.entropy(), rtol=1e-10)
        np.testing.assert_allclose(d.mean.numpy(), theirs.mean(), rtol=1e-10)
        np.testing.assert_allclose(d.mode.numpy(), theirs.mode(), rtol=1e-10)
        np.testing.assert_allclose(d.variance.numpy(), theirs.var(), rtol=1e-10)
        np.testing.assert_allclose(d.precision_matrix.numpy(), np.linalg.inv(v), rtol=1e-10)
    mg.manual_seed(3)
    drawn = d.sample((20_000,))
    np.testing.assert_allclose(drawn.mean(0).numpy(), theirs.mean(), rtol=0.05, atol=0.1)
    np.testing.assert_allclose(drawn.var(0).numpy(), theirs.var(), rtol=0.08)
    assert bool((drawn == drawn.mT).all())


def test_low_rank_normal_is_the_normal_of_its_covariance():
    d = made("LowRankMultivariateNormal")
    covariance = FACTOR @ FACTOR.T + np.diag(B)
    theirs = stats.multivariate_normal(LOC, covariance)
    x = np.stack([X, -X])
    np.testing.assert_allclose(d.log_prob(double(x)).numpy(), theirs.logpdf(x), rtol=1e-12)
    np.testing.assert_allclose(d.entropy().item(), theirs.entropy(), rtol=1e-12)
    np.testing.assert_allclose(d.covariance_matrix.numpy(), covariance)
    np.testing.assert_allclose(d.precision_matrix.numpy(), np.linalg.inv(covariance))
    np.testing.assert_allclose(d.scale_tril.numpy(), np.linalg.cholesky(covariance))
    np.testing.assert_allclose(d.variance.numpy(), np.diag(covariance))
    mg.manual_seed(2)
    drawn = d.sample((20_000,)).numpy()
    np.testing.assert_allclose(np.cov(drawn.T), covariance, atol=0.25)
    np.testing.assert_allclose(drawn.mean(0), LOC, atol=0.1)


def test_a_large_factor_beside_a_small_diagonal():
    """The squared distance of a vector in the factor's range is not lost beside the diagonal's."""
    mpmath = pytest.importorskip("mpmath")
    w, diagonal = np.array([[1.0], [2.0], [-1.0]]), np.full(3, 1e-9)
    away = np.array([3.0, 6.0, -3.0])
    d = D.LowRankMultivariateNormal(double(np.zeros(3)), double(w), double(diagonal))
    with mpmath.workdps(50):
        v = mpmath.matrix(away.tolist())
        m = mpmath.matrix(w.tolist())
        s = m * m.T + mpmath.diag([mpmath.mpf(x) for x in diagonal])
        square = (v.T * mpmath.inverse(s) * v)[0]
        log = float(-(square + mpmath.log(mpmath.det(s)) + 3 * mpmath.log(2 * mpmath.pi)) / 2)
    np.testing.assert_allclose(d.log_prob(double(away)).item(), log, rtol=1e-9)


def test_multinomial_entropy():
    p = X / X.sum()
    for n in (0, 1, 7):
        found = D.Multinomial(n, probs=double(p)).entropy().item()
        np.testing.assert_allclose(found, stats.multinomial(n, p).entropy(), rtol=1e-9, atol=1e-12)


# ---- LKJ -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("dim", [2, 3, 4])
@pytest.mark.parametrize("k", [0.5, 1.0, 3.0])
def test_lkj_correlations_have_their_marginals(dim, k):
    """Each correlation is 2 Beta(k - 1 + n / 2, k - 1 + n / 2) - 1 (Lewandowski et al. 2009)."""
    mg.manual_seed(11)
    factor = D.LKJCholesky(dim, double(k)).sample((4000,))
    matrix = (factor @ factor.mT).numpy()
    marginal = stats.beta(k - 1 + dim / 2, k - 1 + dim / 2, -1, 2)
    for i in range(dim):
        np.testing.assert_allclose(matrix[:, i, i], 1, rtol=1e-12)
        for j in range(i):
            assert stats.kstest(matrix[:, i, j], marginal.cdf).pvalue > 1e-4


@pytest.mark.parametrize("k", [0.7, 1.0, 2.5])
def test_lkj_density_has_the_integral_1(k):
    nodes, weights = np.polynomial.legendre.leggauss(100)
    x = np.sin(nodes * np.pi / 2)  # of the one element below the diagonal
    w = weights * np.pi / 2 * np.cos(nodes * np.pi / 2)
    factor = np.zeros((100, 2, 2))
    factor[:, 0, 0], factor[:, 1, 0], factor[:, 1, 1] = 1, x, np.sqrt(1 - x**2)
    d = D.LKJCholesky(2, double(k), validate_args=False)
    total = (w * d.log_prob(double(factor)).exp().numpy()).sum()
    np.testing.assert_allclose(total, 1, rtol=1e-4)


def test_lkj_density_of_three():
    """At 1 the correlation matrices are even in a volume of pi^2 / 2, with dR/dL = L22 / 1."""
    factor = np.linalg.cholesky(CORRELATION)
    found = D.LKJCholesky(3, double(1.0)).log_prob(double(factor)).item()
    np.testing.assert_allclose(found, math.log(factor[1, 1] * 2 / math.pi**2), rtol=1e-12)


# ---- relaxed categories --------------------------------------------------------------------------


def test_relaxed_distributions_are_transformed_ones():
    t, p = double(0.6), double(X)
    base, d = LogitRelaxedBernoulli(t, probs=p), D.RelaxedBernoulli(t, probs=p)
    x = d.rsample((5,))
    assert bool(((x > 0) & (x < 1)).all())
    logit = x.log() - (-x).log1p()
    wanted = base.log_prob(logit) - x.log() - (-x).log1p()
    np.testing.assert_allclose(d.log_prob(x).numpy(), wanted.numpy(), rtol=1e-10)
    assert d.temperature is base.temperature or d.temperature == 0.6
    np.testing.assert_allclose(d.probs.numpy(), X)
    np.testing.assert_allclose(d.logits.numpy(), base.logits.numpy())
    c = D.RelaxedOneHotCategorical(t, probs=p)
    y = c.rsample((5,))
    np.testing.assert_allclose(y.sum(-1).numpy(), 1, rtol=1e-12)
    base = ExpRelaxedCategorical(t, probs=p)
    wanted = base.log_prob(y.log()) - y.log().sum(-1)
    np.testing.assert_allclose(c.log_prob(y).numpy(), wanted.numpy(), rtol=1e-10)
    np.testing.assert_allclose(c.probs.numpy(), X / X.sum())
    assert (base.param_shape, c.expand((2,)).batch_shape) == ((3,), (2,))


def test_relaxed_densities_have_the_integral_1():
    nodes, weights = np.polynomial.legendre.leggauss(100)
    u = (nodes + 1) / 2
    x, w = u**2 * (3 - 2 * u), weights / 2 * 6 * u * (1 - u)
    both = D.RelaxedBernoulli(double(0.6), probs=double(0.3), validate_args=False)
    two = D.RelaxedOneHotCategorical(double(0.6), probs=double([0.3, 0.7]), validate_args=False)
    for log in (both.log_prob(double(x)), two.log_prob(double(np.stack([x, 1 - x], 1)))):
        np.testing.assert_allclose((w * log.exp().numpy()).sum(), 1, rtol=1e-3)


def test_relaxed_samples_choose_as_the_probabilities():
    mg.manual_seed(4)
    x = D.RelaxedBernoulli(double(0.5), probs=double(X)).sample((8000,))
    np.testing.assert_allclose((x > 0.5).to(mg.float64).mean(0).numpy(), X, atol=0.03)
    y = D.RelaxedOneHotCategorical(double(0.5), probs=double(X)).sample((8000,))
    chosen = np.bincount(y.argmax(-1).numpy(), minlength=3) / 8000
    np.testing.assert_allclose(chosen, X / X.sum(), atol=0.03)


# ---- samples -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    ["ContinuousBernoulli", "FisherSnedecor", "InverseGamma", "Kumaraswamy", "GeneralizedPareto"],
)
def test_samples_are_distributed_so(name):
    d = made(name)
    mg.manual_seed(20)
    drawn = d.sample((4000,))
    assert (drawn.shape, drawn.requires_grad) == ((4000, 3), False)
    assert d.sample((2, 0)).shape == (2, 0, 3)
    for k in range(3):
        if name == "FisherSnedecor":
            cdf = stats.f(3 * A[k], 3 * B[k]).cdf
        else:
            cdf = lambda x, k=k: d.cdf(double(x[:, None]).expand(-1, 3)).numpy()[:, k]  # noqa: E731
        assert stats.kstest(drawn.numpy()[:, k], cdf).pvalue > 1e-4


def test_samples_of_angles():
    d = made("VonMises")
    mg.manual_seed(20)
    drawn = d.sample((4000,)).numpy()
    assert ((drawn >= -np.pi) & (drawn <= np.pi)).all()
    for k in range(3):
        turned = (drawn[:, k] - LOC[k] + np.pi) % (2 * np.pi) - np.pi
        assert stats.kstest(turned, stats.vonmises(B[k]).cdf).pvalue > 1e-4
    around = D.VonMises(double(3.1), double(50.0)).sample((1000,))  # on both sides of pi
    assert bool((around > 0).any() & (around < 0).any())
    np.testing.assert_allclose(d.variance.numpy(), 1 - np.cos(drawn - LOC).mean(0), atol=0.03)


def test_samples_of_the_logistic_normal():
    d = made("LogisticNormal")
    mg.manual_seed(1)
    x = d.sample((4000,))
    np.testing.assert_allclose(x.sum(-1).numpy(), 1, rtol=1e-12)
    back = d.transforms[0].inv(x).numpy()
    for k in range(3):
        assert stats.kstest(back[:, k], stats.norm(LOC[k], B[k]).cdf).pvalue > 1e-4


# ---- far parameters, beside mpmath ---------------------------------------------------------------


@pytest.mark.parametrize("t", [0.0, 1e-12, -1e-5, 0.3, -1.9, 2.1, 40.0, -90.0, 300.0, -2000.0])
def test_continuous_bernoulli_of_any_logit(t):
    mpmath = pytest.importorskip("mpmath")
    x = 0.37
    with mpmath.workdps(120):
        m = mpmath.mpf(t) if t else mpmath.mpf(10) ** -30
        normalizer = mpmath.log(mpmath.expm1(m) / m)
        mean = 1 / (1 - mpmath.exp(-m)) - 1 / m
        variance = 1 / m**2 - 1 / (2 * mpmath.sinh(m / 2)) ** 2
        wanted = {
            "log_prob": m * x - normalizer,
            "mean": mean,
            "variance": variance,
            "entropy": normalizer - m * mean,
            "cdf": mpmath.expm1(m * x) / mpmath.expm1(m),
            "icdf": mpmath.log1p(x * mpmath.expm1(m)) / m,
        }
        by_t = {  # the derivatives by the logit
            "log_prob": x - mean,
            "mean": variance,
            "entropy": -m * variance,
            "cdf": mpmath.diff(lambda s: mpmath.expm1(s * x) / mpmath.expm1(s), m),
            "icdf": mpmath.diff(lambda s: mpmath.log1p(x * mpmath.expm1(s)) / s, m),
        }
        wanted = {k: float(v) for k, v in wanted.items()}
        by_t = {k: float(v) for k, v in by_t.items()}
    for name, value in wanted.items():
        logit = double(t).requires_grad_()
        found = getattr(D.ContinuousBernoulli(logits=logit), name)
        if name in ("log_prob", "cdf", "icdf"):
            found = found(double(x))
        elif name == "entropy":
            found = found()
        np.testing.assert_allclose(found.item(), value, rtol=1e-12, atol=1e-28, err_msg=name)
        if name in by_t:
            (slope,) = mg.grad(found, logit)
            np.testing.assert_allclose(
                slope.item(), by_t[name], rtol=1e-11, atol=1e-15, err_msg=f"d {name}"
            )


@pytest.mark.parametrize("k", [1e-6, 0.5, 39.0, 41.0, 1e3, 1e8])
def test_von_mises_of_any_concentration(k):
    mpmath = pytest.importorskip("mpmath")
    with mpmath.workdps(60):
        m = mpmath.mpf(k)
        spread = 1 - mpmath.besseli(1, m) / mpmath.besseli(0, m)
        away = mpmath.mpf(0.1 / math.sqrt(1 + k))
        log = m * mpmath.cos(away) - mpmath.log(2 * mpmath.pi * mpmath.besseli(0, m))
        entropy = mpmath.log(2 * mpmath.pi * mpmath.besseli(0, m)) - m * (1 - spread)
    d = D.VonMises(double(0.0), double(k))
    np.testing.assert_allclose(d.variance.item(), float(spread), rtol=1e-12)
    np.testing.assert_allclose(d.log_prob(double(float(away))).item(), float(log), rtol=1e-13)
    np.testing.assert_allclose(d.entropy().item(), float(entropy), rtol=1e-13)


@pytest.mark.parametrize("k", [0.0, 1e-14, -1e-8, 1e-3, -0.4, 0.6])
def test_generalized_pareto_is_smooth_at_0(k):
    mpmath = pytest.importorskip("mpmath")
    x = 1.7
    shape = double(k).requires_grad_()
    d = D.GeneralizedPareto(double(0.0), double(1.0), shape)
    with mpmath.workdps(60):

        def log(s):
            return -(1 / s + 1) * mpmath.log1p(s * x)

        def quantile(s):
            return mpmath.expm1(-s * mpmath.log1p(mpmath.mpf(-0.3))) / s

        m = mpmath.mpf(k) if k else mpmath.mpf(10) ** -25
        wanted = [float(g(m)) for g in (log, quantile)]
        slopes = [float(mpmath.diff(g, m, h=mpmath.mpf(10) ** -28)) for g in (log, quantile)]
    for found, value, slope in zip(
        (d.log_prob(double(x)), d.icdf(double(0.3))), wanted, slopes, strict=True
    ):
        np.testing.assert_allclose(found.item(), value, rtol=1e-14)
        np.testing.assert_allclose(
            mg.grad(found, shape, retain_graph=True)[0].item(), slope, rtol=1e-12
        )


@pytest.mark.parametrize("df", [0.01, 3.0, 25.0, 1e4, 1e9, 1e15])
def test_student_and_f_of_many_degrees_of_freedom(df):
    mpmath = pytest.importorskip("mpmath")
    n, x = double(df).requires_grad_(), 1.3
    with mpmath.workdps(60):

        def student(n):
            log = mpmath.loggamma((n + 1) / 2) - mpmath.loggamma(n / 2)
            log -= mpmath.log(n * mpmath.pi) / 2
            return log - (n + 1) / 2 * mpmath.log1p(mpmath.mpf(x) ** 2 / n)

        def f(n):
            a, b, v = mpmath.mpf(2.5), n / 2, mpmath.mpf(x)
            log = a * mpmath.log(a / b) + (a - 1) * mpmath.log(v) - mpmath.log(mpmath.beta(a, b))
            return log - (a + b) * mpmath.log1p(a / b * v)

        m = mpmath.mpf(df)
        wanted = [float(student(m)), float(f(m))]
        slopes = [float(mpmath.diff(g, m, h=m * mpmath.mpf(10) ** -20)) for g in (student, f)]
    logs = D.StudentT(n).log_prob(double(x)), D.FisherSnedecor(5.0, n).log_prob(double(x))
    for log, value, slope in zip(logs, wanted, slopes, strict=True):
        np.testing.assert_allclose(log.item(), value, rtol=2e-13)
        (found,) = mg.grad(log, n, retain_graph=True)
        np.testing.assert_allclose(found.item(), slope, rtol=1e-6, atol=1e-15 / df)


@pytest.mark.parametrize("a", [1e-8, 0.4, 9.0, 300.0, 1e7])
@pytest.mark.parametrize("b", [1e-5, 2.0, 11.0, 1e9])
def test_log_beta(a, b):
    mpmath = pytest.importorskip("mpmath")
    with mpmath.workdps(60):
        x, y = mpmath.mpf(a), mpmath.mpf(b)
        wanted = float(mpmath.loggamma(x) + mpmath.loggamma(y) - mpmath.loggamma(x + y))
        slopes = [float(mpmath.digamma(z) - mpmath.digamma(x + y)) for z in (x, y)]
        gap = float(mpmath.loggamma(x + y) - mpmath.loggamma(x))
    given = double(a).requires_grad_(), double(b).requires_grad_()
    log = stable.log_beta(*given)
    np.testing.assert_allclose(log.item(), wanted, rtol=1e-13)
    for found, slope in zip(mg.grad(log, given), slopes, strict=True):
        np.testing.assert_allclose(found.item(), slope, rtol=1e-8)
    found = stable.log_gamma_gap(*[v.detach() for v in given]).item()
    np.testing.assert_allclose(found, gap, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("x", [0.0, 1e-9, -1e-3, 0.49, 0.51, -0.8, 0.99, 1.01, 30.0])
def test_ratios_near_their_singularity(x):
    mpmath = pytest.importorskip("mpmath")
    with mpmath.workdps(120):
        functions = {
            "expm1_ratio": lambda t: mpmath.expm1(t) / t,
            "log1p_ratio": lambda t: mpmath.log1p(t) / t,
            "log_sinh_ratio": lambda t: mpmath.log(mpmath.sinh(t) / t),
            "langevin": lambda t: mpmath.coth(t) - 1 / t,
            "langevin_derivative": lambda t: 1 / t**2 - 1 / mpmath.sinh(t) ** 2,
        }
        m = mpmath.mpf(x) if x else mpmath.mpf(10) ** -25
        for name, function in functions.items():
            t = double(x).requires_grad_()
            found = getattr(stable, name)(t)
            (slope,) = mg.grad(found, t)
            np.testing.assert_allclose(
                [found.item(), slope.item()],
                [float(function(m)), float(mpmath.diff(function, m, h=mpmath.mpf(10) ** -28))],
                rtol=1e-13,
                atol=1e-20,
                err_msg=name,
            )


@pytest.mark.parametrize("a", [1e-3, 0.5, 7.0, 40.0, 2e3, 5e4])
def test_incomplete_gamma(a):
    mpmath = pytest.importorskip("mpmath")
    spread = math.sqrt(a)
    for x in (
        1e-3 * a,
        max(a - 3 * spread, 0.1 * a),
        a,
        a + 0.5,
        a + 3 * spread,
        a + 12 * spread + 5,
    ):
        shape, value = double(a).requires_grad_(), double(x).requires_grad_()
        with mpmath.workdps(40):
            low = float(mpmath.gammainc(a, 0, x, regularized=True))
            high = float(mpmath.gammainc(a, x, mpmath.inf, regularized=True))
            density = float(
                mpmath.exp((a - 1) * mpmath.log(x) - x - mpmath.loggamma(mpmath.mpf(a)))
            )
            slope = None
            if a < 1e3:
                step = mpmath.mpf(10) ** -15
                up, down = (mpmath.gammainc(a + s, 0, x, regularized=True) for s in (step, -step))
                slope = float((up - down) / (2 * step))
        p, q = (incomplete_gamma(shape, value, upper=u) for u in (False, True))
        np.testing.assert_allclose(p.item(), low, rtol=1e-11, atol=1e-300)
        np.testing.assert_allclose(q.item(), high, rtol=1e-11, atol=1e-300)
        by_shape, by_value = mg.grad(p, [shape, value])
        np.testing.assert_allclose(by_value.item(), density, rtol=1e-10, atol=1e-300)
        if slope is not None:
            np.testing.assert_allclose(by_shape.item(), slope, rtol=1e-8, atol=1e-12)


def test_incomplete_gamma_at_the_ends():
    a = double([2.0, 2.0, 2.0, math.nan])
    x = double([0.0, math.inf, math.nan, 1.0])
    low, high = (incomplete_gamma(a, x, upper=u).tolist() for u in (False, True))
    assert (low[:2], high[:2]) == ([0, 1], [1, 0])
    assert all(math.isnan(v) for v in (*low[2:], *high[2:]))
    assert incomplete_gamma(mg.zeros(0), mg.zeros(0)).shape == (0,)
    assert incomplete_gamma(mg.ones(2), mg.ones(2)).dtype is mg.float32


# ---- the base of exponential families ------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "parameters"),
    [
        (D.Normal, [LOC, A]),
        (D.Gamma, [A, B]),
        (D.Beta, [A, B]),
        (D.Dirichlet, [B]),
        (D.Exponential, [A]),
        (D.Bernoulli, [X]),
        (D.ContinuousBernoulli, [X]),
    ],
)
def test_entropies_follow_from_the_normaliser(make, parameters):
    given = [double(p).requires_grad_() for p in parameters]
    d = make(*given)
    assert isinstance(d, D.ExponentialFamily)
    found, wanted = D.ExponentialFamily.entropy(d), d.entropy()
    constant = 0.5 * math.log(2 * math.pi) if make is D.Normal else 0.0
    constant = -constant + 0.5 * math.log(2 * math.pi) if make is D.Normal else constant
    np.testing.assert_allclose(
        found.detach().numpy() + constant, wanted.detach().numpy(), rtol=1e-10
    )
    weights = double(np.random.default_rng(0).normal(size=wanted.shape))
    for a, b in zip(
        mg.grad((found * weights).sum(), given, retain_graph=True),
        mg.grad((wanted * weights).sum(), given),
        strict=True,
    ):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-8, atol=1e-10)
    plain = make(*[p.detach() for p in given])
    assert not D.ExponentialFamily.entropy(plain).requires_grad


# ---- arguments -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: D.LKJCholesky(1), r"\[LKJCholesky\] dim is 1, but must be 2 or more"),
        (lambda: D.LKJCholesky(3, -1.0), r"\[LKJCholesky\] the parameter concentration must be"),
        (lambda: D.LKJCholesky(2).log_prob(2 * mg.eye(2)), r"\[LKJCholesky\] a value must be Corr"),
        (lambda: D.Wishart(1.0, mg.eye(3)), r"\[Wishart\] df must be above 2 for matrices of 3"),
        (lambda: D.Wishart(3.0), r"\[Wishart\] give one of covariance_matrix"),
        (lambda: D.Wishart(3.0, -mg.eye(2)), r"\[Wishart\] the matrix must be PositiveDefinite"),
        (lambda: D.Wishart(3.0, mg.ones(2)), r"\[Wishart\] the matrix has the shape \(2,\)"),
        (
            lambda: D.Wishart(3.0, mg.eye(2)).log_prob(-mg.eye(2)),
            r"\[Wishart\] a value must be",
        ),
        (
            lambda: D.LowRankMultivariateNormal(mg.zeros(3), mg.ones(2, 1), mg.ones(3)),
            r"\[LowRankMultivariateNormal\] cov_factor has the shape \(2, 1\), not",
        ),
        (
            lambda: D.LowRankMultivariateNormal(mg.zeros(3), mg.ones(3, 1), mg.ones(2)),
            r"\[LowRankMultivariateNormal\] cov_diag has the shape \(2,\)",
        ),
        (
            lambda: D.LowRankMultivariateNormal(mg.zeros(3), mg.ones(3, 1), -mg.ones(3)),
            r"\[LowRankMultivariateNormal\] the parameter cov_diag must be Independent\(Positive",
        ),
        (
            lambda: D.LowRankMultivariateNormal(mg.tensor(0.0), mg.ones(3, 1), mg.ones(3)),
            r"\[LowRankMultivariateNormal\] loc needs a dimension",
        ),
        (lambda: D.InverseGamma(0.0, 1.0), r"\[InverseGamma\] the parameter concentration must"),
        (lambda: D.FisherSnedecor(1.0, -1.0), r"\[FisherSnedecor\] the parameter df2 must be Pos"),
        (lambda: D.Kumaraswamy(1.0, 0.0), r"\[Kumaraswamy\] the parameter concentration0 must"),
        (lambda: D.VonMises(0.0, 0.0), r"\[VonMises\] the parameter concentration must be Pos"),
        (lambda: D.GeneralizedPareto(0.0, -1.0, 0.0), r"\[GeneralizedPareto\] the parameter scale"),
        (
            lambda: D.GeneralizedPareto(0.0, 1.0, -1.0).log_prob(mg.tensor(1.5)),
            r"\[GeneralizedPareto\] a value must be Interval",
        ),
        (lambda: D.ContinuousBernoulli(1.5), r"\[ContinuousBernoulli\] the parameter _probs must"),
        (lambda: D.ContinuousBernoulli(), r"\[ContinuousBernoulli\] give either probs or logits"),
        (
            lambda: D.ContinuousBernoulli(0.5).log_prob(mg.tensor(1.5)),
            r"\[ContinuousBernoulli\] a value must be UnitInterval",
        ),
        (lambda: D.RelaxedBernoulli(1.0), r"\[LogitRelaxedBernoulli\] give either probs or logits"),
        (
            lambda: D.RelaxedOneHotCategorical(1.0, probs=mg.ones(2)).log_prob(mg.ones(2)),
            r"\[RelaxedOneHotCategorical\] a value must be Simplex",
        ),
        (lambda: D.LogisticNormal(0.0, -1.0), r"\[Normal\] the parameter scale must be Positive"),
    ],
)
def test_what_is_refused(make, text):
    with pytest.raises(ValueError, match=rf"^{text}"):
        make()


@every
def test_expanded_parameters(name):
    d = made(name)
    wide = d.expand((2, *d.batch_shape))
    assert wide.batch_shape == (2, *d.batch_shape)
    assert wide.event_shape == d.event_shape
    x = double(FAMILIES[name][1])
    np.testing.assert_allclose(
        wide.log_prob(x).numpy(), np.stack([d.log_prob(x).numpy()] * 2), rtol=1e-12
    )
    mg.manual_seed(0)
    drawn = wide.sample((4,))
    assert drawn.shape == (4, 2, *d.batch_shape, *d.event_shape)
    assert d.sample_n(3).shape == (3, *d.batch_shape, *d.event_shape)
    assert drawn.dtype is mg.float64
    assert name in repr(d)


# ---- beside PyTorch ------------------------------------------------------------------------------


@every
def test_as_pytorch(name):
    torch = pytest.importorskip("torch")
    parameters, x = FAMILIES[name]
    if name == "GeneralizedPareto":  # whose log_prob takes no float64 there
        return
    d = made(name)
    other = build(
        name, [torch.tensor(p, dtype=torch.float64) for p in parameters], torch.distributions
    )
    assert d.batch_shape == tuple(other.batch_shape)
    assert d.event_shape == tuple(other.event_shape)
    assert d.has_rsample == other.has_rsample
    rough = name == "VonMises"  # PyTorch's Bessel functions are polynomials of 8 digits
    tolerance = 1e-6 if rough else 1e-10
    np.testing.assert_allclose(
        d.log_prob(double(x)).numpy(), other.log_prob(torch.tensor(x)).numpy(), rtol=tolerance
    )
    for which in ("mean", "mode", "variance", "stddev", "entropy"):
        if (name, which) == ("Kumaraswamy", "mode"):  # NaN there for all parameters
            continue
        try:
            wanted = getattr(other, which)
            wanted = wanted() if callable(wanted) else wanted
        except NotImplementedError:
            continue
        found = getattr(d, which)
        found = found() if callable(found) else found
        np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=tolerance, atol=1e-12)


# ---- far values and parameters of the common distributions, beside mpmath ------------------------


@pytest.mark.parametrize("a", [0.5, 29.0, 31.0, 1e4, 1e10])
def test_gamma_and_poisson_of_any_size(a):
    mpmath = pytest.importorskip("mpmath")
    for away in (0.0, 1.5, -3.0):
        x = a + away * math.sqrt(a) if a > 20 else a * (1 + away / 10)
        count = float(round(x)) if a > 1 else 1.0
        shape, value = double(a).requires_grad_(), double(x).requires_grad_()
        with mpmath.workdps(60):
            m, z, k = mpmath.mpf(a), mpmath.mpf(x), mpmath.mpf(count)
            wanted = {
                "Gamma": (m - 1) * mpmath.log(z) - z - mpmath.loggamma(m),
                "InverseGamma": -(m + 1) * mpmath.log(1 / z) - z - mpmath.loggamma(m),
                "Poisson": k * mpmath.log(m) - m - mpmath.loggamma(k + 1),
                "entropy": m + mpmath.loggamma(m) + (1 - m) * mpmath.digamma(m),
            }
            by_shape = float(mpmath.log(z) - mpmath.digamma(m))
            by_value = float((m - 1) / z - 1)
            wanted = {n: float(v) for n, v in wanted.items()}
        gamma = D.Gamma(shape, double(1.0))
        log = gamma.log_prob(value)
        # x itself has half an ULP, by which the density changes
        size = 1e-13 + 4e-16 * math.sqrt(a)
        np.testing.assert_allclose(log.item(), wanted["Gamma"], rtol=size)
        found = [g.item() for g in mg.grad(log, [shape, value])]
        np.testing.assert_allclose(found, [by_shape, by_value], rtol=1e-6, atol=1e-14)
        inverse = D.InverseGamma(double(a), double(1.0)).log_prob(1 / double(x)).item()
        np.testing.assert_allclose(inverse, wanted["InverseGamma"], rtol=size)
        poisson = D.Poisson(double(a)).log_prob(double(count)).item()
        np.testing.assert_allclose(poisson, wanted["Poisson"], rtol=size)
        np.testing.assert_allclose(gamma.entropy().item(), wanted["entropy"], rtol=1e-13)


def test_gamma_at_the_end_of_its_values():
    for a, wanted in ((0.5, math.inf), (1.0, math.log(2.0)), (2.0, -math.inf), (50.0, -math.inf)):
        found = D.Gamma(double(a), double(2.0)).log_prob(double(0.0)).item()
        np.testing.assert_allclose(found, wanted)
    both = D.Gamma(double([2.0, 500.0]), double(1.0))
    oracle.check_gradients(
        lambda a, x: D.Gamma(a, double(1.0)).log_prob(x),
        [np.array([2.0, 500.0]), np.array([1.5, 480.0])],
        np.random.default_rng(0),
        rtol=1e-7,
    )
    np.testing.assert_allclose(
        both.log_prob(double([1.5, 480.0])).numpy(),
        [stats.gamma(2.0).logpdf(1.5), stats.gamma(500.0).logpdf(480.0)],
        rtol=1e-12,
    )
    assert D.Poisson(double(0.0)).log_prob(double([0.0, 2.0])).tolist() == [0, -math.inf]


@pytest.mark.parametrize("n", [5.0, 1e5, 1e12])
def test_counts_of_many_trials(n):
    mpmath = pytest.importorskip("mpmath")
    p = 3.0 / n
    x, far = 4.0, math.floor(0.3 * n)
    with mpmath.workdps(60):

        def binomial(x, p):
            ways = mpmath.loggamma(n + 1) - mpmath.loggamma(x + 1) - mpmath.loggamma(n - x + 1)
            return float(ways + x * mpmath.log(p) + (n - x) * mpmath.log1p(-mpmath.mpf(p)))

        def negative(x, p):
            ways = mpmath.loggamma(n + x) - mpmath.loggamma(x + 1) - mpmath.loggamma(n)
            return float(ways + n * mpmath.log1p(-mpmath.mpf(p)) + x * mpmath.log(p))

        geometric = float(x * mpmath.log1p(-mpmath.mpf(1 / n)) + mpmath.log(1 / mpmath.mpf(n)))
        pairs = [
            (D.Binomial(double(n), double(p)).log_prob(double(x)), binomial(x, p)),
            (D.NegativeBinomial(double(n), double(p)).log_prob(double(x)), negative(x, p)),
            (D.Geometric(double(1 / n)).log_prob(double(x)), geometric),
            (D.Binomial(double(n), double(0.5)).log_prob(double(far)), binomial(far, 0.5)),
        ]
    for found, wanted in pairs:
        np.testing.assert_allclose(found.item(), wanted, rtol=1e-12)


@pytest.mark.parametrize("n", [0.3, 19.0, 21.0, 1e6, 1e14])
def test_student_entropy_of_many_degrees_of_freedom(n):
    mpmath = pytest.importorskip("mpmath")
    df = double(n).requires_grad_()
    with mpmath.workdps(60):

        def entropy(m):
            gap = mpmath.digamma((m + 1) / 2) - mpmath.digamma(m / 2)
            beta = mpmath.loggamma(m / 2) + mpmath.loggamma(0.5) - mpmath.loggamma((m + 1) / 2)
            return (m + 1) / 2 * gap + mpmath.log(m) / 2 + beta

        m = mpmath.mpf(n)
        wanted, slope = (
            float(entropy(m)),
            float(mpmath.diff(entropy, m, h=m * mpmath.mpf(10) ** -20)),
        )
    found = D.StudentT(df).entropy()
    np.testing.assert_allclose(found.item(), wanted, rtol=1e-13)
    np.testing.assert_allclose(mg.grad(found, df)[0].item(), slope, rtol=1e-6, atol=1e-14 / n)


TAILS = {  # the distribution function far below, its argument, and mpmath's value
    "Laplace": (D.Laplace(double(0.0), double(1.0)), -200.0, math.exp(-200) / 2),
    "Cauchy": (D.Cauchy(double(0.0), double(1.0)), -1e20, 1e-20 / math.pi),
    "HalfNormal": (D.HalfNormal(double(1.0)), 1e-20, 1e-20 * math.sqrt(2 / math.pi)),
    "HalfCauchy": (D.HalfCauchy(double(1.0)), 1e-20, 2e-20 / math.pi),
    "Exponential": (D.Exponential(double(1.0)), 1e-20, 1e-20),
    "Weibull": (D.Weibull(double(1.0), double(2.0)), 1e-20, 1e-40),
    "Kumaraswamy": (D.Kumaraswamy(double(2.0), double(3.0)), 1e-20, 3e-40),
    "Gamma": (D.Gamma(double(2.0), double(1.0)), 1e-20, 0.5e-40),
    "LogNormal": (D.LogNormal(double(0.0), double(1.0)), math.exp(-20), 2.7536241186062337e-89),
    "Normal": (D.Normal(double(0.0), double(1.0)), -20.0, 2.7536241186062337e-89),
}


@pytest.mark.parametrize("name", TAILS)
def test_distribution_functions_keep_their_digits_below(name):
    d, x, wanted = TAILS[name]
    np.testing.assert_allclose(d.cdf(double(x)).item(), wanted, rtol=1e-12)
    if name not in ("Gamma", "Normal", "LogNormal"):
        np.testing.assert_allclose(d.icdf(double(wanted)).item(), x, rtol=1e-12)


@pytest.mark.parametrize("k", [0.7, 9.9, 10.1, 1e4, 1e9])
def test_weibull_variance_of_any_shape(k):
    mpmath = pytest.importorskip("mpmath")
    shape = double(k).requires_grad_()
    with mpmath.workdps(80):

        def variance(k):
            return mpmath.gamma(1 + 2 / k) - mpmath.gamma(1 + 1 / k) ** 2

        m = mpmath.mpf(k)
        wanted = float(variance(m)), float(mpmath.diff(variance, m, h=m * mpmath.mpf(10) ** -25))
    found = D.Weibull(double(1.0), shape).variance
    np.testing.assert_allclose(found.item(), wanted[0], rtol=1e-12)
    np.testing.assert_allclose(mg.grad(found, shape)[0].item(), wanted[1], rtol=1e-11)


def test_numbers_of_trials_are_checked():
    for n in (-1.0, math.nan, 1.5):
        with pytest.raises(ValueError, match=r"^\[Binomial\] the parameter total_count must"):
            D.Binomial(double(n), double(0.5))
    with pytest.raises(ValueError, match=r"^\[NegativeBinomial\] the parameter total_count must"):
        D.NegativeBinomial(double(-0.5), double(0.5))
    D.NegativeBinomial(double(1.5), double(0.5))
    assert D.Binomial(double(np.zeros(0)), double(0.5)).entropy().shape == (0,)


def test_relaxed_samples_that_are_rounded_have_their_density():
    mg.manual_seed(6)
    logits = mg.tensor([3.0, -4.0, 0.5])
    for d in (
        D.RelaxedBernoulli(mg.tensor(0.02), logits=logits),
        D.RelaxedOneHotCategorical(mg.tensor(0.004), logits=logits),
    ):
        x = d.sample((50,))
        assert bool(((x == 0) | (x == 1)).any())
        exact = type(d)(d.temperature.to(mg.float64), logits=logits.to(mg.float64))
        inner = d.transforms[0].inv(x)
        wanted = exact.base_dist.log_prob(inner.to(mg.float64))
        log = exact.transforms[0].log_abs_det_jacobian(inner.to(mg.float64), x.to(mg.float64))
        wanted = wanted - (log.sum(-1) if d.event_shape else log)
        np.testing.assert_allclose(d.log_prob(x).numpy(), wanted.numpy(), rtol=1e-4)
    ends = D.RelaxedBernoulli(mg.tensor(0.5), logits=logits).log_prob(mg.tensor([0.0, 1.0, 1.0]))
    assert bool(ends.isfinite().all())


@pytest.mark.parametrize("a", [2e7, 1e10, 1e15])
def test_gamma_of_a_huge_shape(a):
    mpmath = pytest.importorskip("mpmath")
    z = np.array([-30.0, -5.0, -0.3, 0.0, 1.2, 6.0, 30.0])
    x = a + z * math.sqrt(a)
    shape = double(np.full(7, a)).requires_grad_()
    low, high = (incomplete_gamma(shape, double(x), upper=u) for u in (False, True))
    with mpmath.workdps(40):
        m = mpmath.mpf(a)
        root, log = mpmath.sqrt(m), mpmath.loggamma(m)

        def scaled(s):
            t = m + root * s
            return root * mpmath.exp((m - 1) * mpmath.log(t) - t - log)

        for n, value in enumerate(x.tolist()):
            at = (mpmath.mpf(value) - m) / root
            down = z[n] < 0  # the smaller tail is integrated
            ends = [at + (-k if down else k) for k in (0, 1, 3, 7, 15)]
            size = scaled(at)  # the errors of quad are absolute
            tail = size * mpmath.quad(lambda s, size=size: scaled(s) / size, ends)
            tail = -tail if down else tail
            wanted = (tail, 1 - tail) if down else (1 - tail, tail)
            found = low[n].item(), high[n].item()
            np.testing.assert_allclose(found, [float(v) for v in wanted], rtol=1e-9)
    density = mg.distributions.Gamma(shape.detach(), double(1.0)).log_prob(double(x)).exp()
    (by_shape,) = mg.grad(low.sum(), shape)
    wanted = -density.numpy() * (1 + z / (2 * math.sqrt(a)))
    np.testing.assert_allclose(by_shape.numpy(), wanted, rtol=1e-4)
    mg.manual_seed(1)
    sample = D.Gamma(shape, double(1.0)).rsample()
    (slope,) = mg.grad(sample.sum(), shape)
    np.testing.assert_allclose(slope.numpy(), 1, atol=5 / math.sqrt(a))


def test_gradients_of_gamma_samples_agree_where_the_method_changes():
    from minigrad.distributions import incomplete_gamma as module

    a = np.full(3, 1.0001e7)
    x = a + np.array([-4.0, 0.5, 3.0]) * np.sqrt(a)
    np.testing.assert_allclose(
        module.sample_partial(a, x), module._slope_by_series(a, x), rtol=1e-9
    )
    plain = np.exp(module._log_density(a, x))
    low = module._regularised(a, x, False)
    np.testing.assert_allclose(low, plain * module._lower_series(a, x), rtol=1e-9)
    high = module._regularised(a[1:], x[1:], True)
    fraction = module._upper_fraction(a[1:], x[1:])
    np.testing.assert_allclose(high, plain[1:] * fraction, rtol=1e-9)
