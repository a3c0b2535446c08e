"""Tests of distributions: densities, samples, their gradients, entropies and divergences."""

from __future__ import annotations

import math

import numpy as np
import oracle
import pytest
from scipy import stats

import minigrad as mg
from minigrad import distributions as D
from minigrad.distributions import transforms as T

pytestmark = pytest.mark.usefixtures("restore_random")


def double(x):
    return mg.tensor(x, dtype=mg.float64)


A = np.array([0.7, 2.5, 1.3])
B = np.array([1.9, 0.6, 3.2])
X = np.array([0.3, 0.8, 0.45])  # inside every continuous support from 0 to 1
LOC = np.array([-0.5, 0.2, 1.0])

# a distribution, SciPy's, and values
CONTINUOUS = {
    "Normal": (lambda: D.Normal(double(LOC), double(B)), stats.norm(LOC, B), X),
    "Laplace": (lambda: D.Laplace(double(LOC), double(B)), stats.laplace(LOC, B), X),
    "Cauchy": (lambda: D.Cauchy(double(LOC), double(B)), stats.cauchy(LOC, B), X),
    "Gumbel": (lambda: D.Gumbel(double(LOC), double(B)), stats.gumbel_r(LOC, B), X),
    "Uniform": (
        lambda: D.Uniform(double(LOC), double(LOC + B)),
        stats.uniform(LOC, B),
        LOC + X / 2,
    ),
    "Exponential": (lambda: D.Exponential(double(B)), stats.expon(scale=1 / B), X),
    "LogNormal": (
        lambda: D.LogNormal(double(LOC), double(A)),
        stats.lognorm(A, scale=np.exp(LOC)),
        X,
    ),
    "HalfNormal": (lambda: D.HalfNormal(double(B)), stats.halfnorm(scale=B), X),
    "HalfCauchy": (lambda: D.HalfCauchy(double(B)), stats.halfcauchy(scale=B), X),
    "Pareto": (lambda: D.Pareto(double(A), double(B)), stats.pareto(B, scale=A), A + X),
    "Weibull": (lambda: D.Weibull(double(A), double(B)), stats.weibull_min(B, scale=A), X),
    "Gamma": (lambda: D.Gamma(double(A), double(B)), stats.gamma(A, scale=1 / B), X),
    "Chi2": (lambda: D.Chi2(double(B)), stats.chi2(B), X),
    "Beta": (lambda: D.Beta(double(A), double(B)), stats.beta(A, B), X),
    "StudentT": (
        lambda: D.StudentT(double(B), double(LOC), double(A)),
        stats.t(B, LOC, A),
        X,
    ),
}
P = np.array([0.2, 0.5, 0.9])
N = np.array([4.0, 4.0, 4.0])
DISCRETE = {
    "Bernoulli": (lambda: D.Bernoulli(double(P)), stats.bernoulli(P), [1, 0, 1]),
    "Geometric": (lambda: D.Geometric(double(P)), stats.geom(P, -1), [0, 3, 1]),
    "Binomial": (lambda: D.Binomial(double(N), double(P)), stats.binom(4, P), [0, 2, 4]),
    "NegativeBinomial": (
        lambda: D.NegativeBinomial(double(N), double(P)),
        stats.nbinom(4, 1 - P),
        [0, 2, 7],
    ),
    "Poisson": (lambda: D.Poisson(double(B)), stats.poisson(B), [0, 1, 5]),
}
EVERY = {**CONTINUOUS, **DISCRETE}
every = pytest.mark.parametrize("name", EVERY)


@every
def test_densities_and_moments_are_scipys(name):
    make, theirs, x = EVERY[name]
    d = make()
    assert d.batch_shape == (3,)
    assert d.event_shape == ()
    x = np.asarray(x, float)
    wanted = theirs.logpdf(x) if name in CONTINUOUS else theirs.logpmf(x)
    np.testing.assert_allclose(d.log_prob(double(x)).numpy(), wanted, rtol=1e-10, atol=1e-12)
    if name not in ("Cauchy", "StudentT"):  # where one does not exist SciPy says it otherwise
        mean, variance = theirs.stats("mv")
        np.testing.assert_allclose(d.mean.numpy(), mean, rtol=1e-9)
        np.testing.assert_allclose(d.variance.numpy(), variance, rtol=1e-9)
        np.testing.assert_allclose(d.stddev.numpy(), np.sqrt(variance), rtol=1e-9)
    if name not in ("NegativeBinomial", "Poisson"):
        np.testing.assert_allclose(d.entropy().numpy(), theirs.entropy(), rtol=1e-6)
    assert d.log_prob(double(x).expand(5, 3)).shape == (5, 3)
    assert name in repr(d)


@pytest.mark.parametrize(
    "name", [n for n in CONTINUOUS if n not in {"Gamma", "Chi2", "Beta", "StudentT"}]
)
def test_cumulative_probabilities_and_quantiles(name):
    make, theirs, x = CONTINUOUS[name]
    d = make()
    np.testing.assert_allclose(d.cdf(double(x)).numpy(), theirs.cdf(x), rtol=1e-10)
    np.testing.assert_allclose(d.icdf(double(X)).numpy(), theirs.ppf(X), rtol=1e-9)


@every
def test_samples_are_distributed_so(name):
    make, theirs, _ = EVERY[name]
    d = make()
    mg.manual_seed(20)
    drawn = d.sample((4000,))
    assert drawn.shape == (4000, 3)
    assert not drawn.requires_grad
    again = d.sample((2, 0))
    assert again.shape == (2, 0, 3)
    values = drawn.numpy()
    for k in range(3):
        args = [a[k] if np.ndim(a) else a for a in theirs.args]
        kwds = {n: v[k] if np.ndim(v) else v for n, v in theirs.kwds.items()}
        own = theirs.dist(*args, **kwds)
        if name in CONTINUOUS:
            assert stats.kstest(values[:, k], own.cdf).pvalue > 1e-4
        else:
            counts = [(values[:, k] == i).mean() for i in range(6)]
            np.testing.assert_allclose(counts, own.pmf(range(6)), atol=0.03)


@pytest.mark.parametrize("name", CONTINUOUS)
def test_gradients_of_samples_are_those_of_quantiles(name):
    make, _, _ = CONTINUOUS[name]
    d = make()
    names = [n for n in d._parameters() if n != "rate" or name != "Chi2"]
    parameters = [d.__dict__[n].detach().clone().requires_grad_() for n in names]
    build = {"Chi2": lambda a: D.Gamma(a, 0.5)}.get(name, getattr(D, name))
    mg.manual_seed(3)
    x = build(*parameters).rsample((5,))
    grads = mg.grad(x.sum(), parameters, allow_unused=True)
    assert all(g is not None for g in grads)
    if name not in ("Gamma",):
        return
    # dx/da = -(dP/da) / p, by central differences of SciPy's distribution function
    a, b, h = A, B, 1e-5
    values = x.detach().numpy()
    own = stats.gamma
    above, below = (own.cdf(values, a + step, scale=1 / b) for step in (h, -h))
    by_a = (above - below) / (2 * h)
    wanted = -(by_a / stats.gamma.pdf(values, a, scale=1 / b)).sum(0)
    np.testing.assert_allclose(grads[0].numpy(), wanted, rtol=1e-5)
    np.testing.assert_allclose(grads[1].numpy(), -(values / b).sum(0), rtol=1e-12)


@pytest.mark.parametrize("a", [0.01, 0.3, 1.0, 5.0, 80.0, 3000.0])
def test_gradients_of_gamma_samples_for_shapes_of_any_size(a):
    mpmath = pytest.importorskip("mpmath")
    mg.manual_seed(1)
    shape = double(np.full(4, a)).requires_grad_()
    x = D.Gamma(shape, 1.0).rsample()
    x.sum().backward()
    with mpmath.workdps(40):
        for value, slope in zip(x.tolist(), shape.grad.tolist(), strict=True):
            if value < 1e-280:
                continue
            z = mpmath.mpf(value)
            by_a = mpmath.diff(lambda s, z=z: mpmath.gammainc(s, 0, z, regularized=True), a)
            density = mpmath.exp((a - 1) * mpmath.log(z) - z - mpmath.loggamma(a))
            assert abs(slope / float(-by_a / density) - 1) < 1e-6


@every
def test_gradients_of_log_prob(name, rng):
    make, _, x = EVERY[name]
    d = make()
    names = d._parameters()
    given = [d.__dict__[n].numpy() for n in names]
    build = {
        "Chi2": lambda a, r: D.Gamma(a, r),
        "Binomial": lambda p: D.Binomial(double(N), p),
        "NegativeBinomial": lambda p: D.NegativeBinomial(double(N), p),
    }.get(name, getattr(D, name))
    values = double(np.asarray(x, float))
    oracle.check_gradients(lambda *p: build(*p).log_prob(values), given, rng)


# ---- categories ----------------------------------------------------------------------------------


def test_categories():
    p = np.array([[1.0, 3.0, 4.0], [2.0, 2.0, 0.0]])
    d = D.Categorical(probs=double(p))
    wanted = p / p.sum(1, keepdims=True)
    np.testing.assert_allclose(d.probs.numpy(), wanted)
    np.testing.assert_allclose(d.log_prob(mg.tensor([2, 0])).exp().numpy(), [0.5, 0.5])
    entropy = stats.entropy(wanted, axis=1)
    np.testing.assert_allclose(d.entropy().numpy(), entropy)
    np.testing.assert_allclose(d.perplexity().numpy(), np.exp(entropy))
    assert d.mode.tolist()[0] == 2
    mg.manual_seed(0)
    drawn = d.sample((3000,))
    assert (drawn.dtype, drawn.shape) == (mg.int64, (3000, 2))
    counts = np.stack([(drawn.numpy() == k).mean(0) for k in range(3)], 1)
    np.testing.assert_allclose(counts, wanted, atol=0.03)
    assert d.enumerate_support().tolist() == [[0, 0], [1, 1], [2, 2]]
    logits = double([0.3, -1.0, 2.0])
    e = D.Categorical(logits=logits)
    np.testing.assert_allclose(e.log_prob(mg.arange(3)).numpy(), logits.log_softmax(0).numpy())
    assert e.sample().shape == ()
    assert e.expand((4,)).sample((2,)).shape == (2, 4)


def test_one_hot_categories():
    logits = double([[0.1, 0.7], [2.0, -1.0]]).requires_grad_()
    d = D.OneHotCategorical(logits=logits)
    drawn = d.sample((5,))
    assert drawn.shape == (5, 2, 2)
    assert (drawn.sum(-1) == 1).all()
    np.testing.assert_allclose(
        d.log_prob(double([[0, 1], [1, 0]])).detach().numpy(),
        logits.detach().log_softmax(1).numpy()[[0, 1], [1, 0]],
    )
    s = D.OneHotCategoricalStraightThrough(logits=logits)
    s.rsample()[..., 0].sum().backward()
    p = s.probs.detach().numpy()[:, 0]
    np.testing.assert_allclose(logits.grad.numpy()[:, 0], p * (1 - p))


def test_multinomial():
    d = D.Multinomial(5, probs=double([0.2, 0.3, 0.5]))
    theirs = stats.multinomial(5, [0.2, 0.3, 0.5])
    np.testing.assert_allclose(d.log_prob(double([1.0, 1, 3])).item(), theirs.logpmf([1, 1, 3]))
    np.testing.assert_allclose(d.mean.numpy(), [1, 1.5, 2.5])
    assert (d.sample((7,)).sum(-1) == 5).all()
    with pytest.raises(ValueError, match=r"^\[Multinomial\] a value must be"):
        d.log_prob(double([1.0, 1, 1]))


# ---- vectors -------------------------------------------------------------------------------------


def density(loc, scale, x):
    return D.MultivariateNormal(loc, scale_tril=scale, validate_args=False).log_prob(x)


def test_multivariate_normal(rng):
    m = rng.standard_normal((3, 3))
    covariance, loc, x = m @ m.T + np.eye(3), rng.standard_normal(3), rng.standard_normal((4, 3))
    wanted = stats.multivariate_normal(loc, covariance)
    for name, matrix in (
        ("covariance_matrix", covariance),
        ("precision_matrix", np.linalg.inv(covariance)),
        ("scale_tril", np.linalg.cholesky(covariance)),
    ):
        d = D.MultivariateNormal(double(loc), **{name: double(matrix)}, validate_args=False)
        np.testing.assert_allclose(d.log_prob(double(x)).numpy(), wanted.logpdf(x), rtol=1e-9)
        np.testing.assert_allclose(d.entropy().item(), wanted.entropy(), rtol=1e-9)
        np.testing.assert_allclose(d.covariance_matrix.numpy(), covariance, rtol=1e-9)
        np.testing.assert_allclose(d.variance.numpy(), np.diag(covariance), rtol=1e-9)
    mg.manual_seed(5)
    drawn = d.sample((20_000,)).numpy()
    np.testing.assert_allclose(np.cov(drawn.T), covariance, atol=0.25)
    oracle.check_gradients(
        lambda v, s: D.MultivariateNormal(v, scale_tril=s.tril(), validate_args=False).log_prob(
            double(x)
        ),
        [loc, np.linalg.cholesky(covariance)],
        rng,
    )
    assert d.expand((2,)).sample().shape == (2, 3)
    with pytest.raises(ValueError, match=r"^\[MultivariateNormal\] give one of"):
        D.MultivariateNormal(double(loc))
    with pytest.raises(ValueError, match=r"^\[MultivariateNormal\] the matrix must be Positive"):
        D.MultivariateNormal(double(loc), -double(covariance))


def test_dirichlet():
    a = np.array([0.7, 2.0, 3.5])
    d, theirs = D.Dirichlet(double(a)), stats.dirichlet(a)
    x = np.array([0.2, 0.3, 0.5])
    np.testing.assert_allclose(d.log_prob(double(x)).item(), theirs.logpdf(x))
    np.testing.assert_allclose(d.entropy().item(), theirs.entropy())
    np.testing.assert_allclose(d.mean.numpy(), theirs.mean())
    np.testing.assert_allclose(d.variance.numpy(), theirs.var())
    drawn = d.sample((4000,))
    np.testing.assert_allclose(drawn.sum(-1).numpy(), 1)
    np.testing.assert_allclose(drawn.mean(0).numpy(), theirs.mean(), atol=0.03)


# ---- made of others ------------------------------------------------------------------------------


def test_independent_parts():
    base = D.Normal(double(np.zeros((4, 3))), double(np.ones((4, 3))))
    d = D.Independent(base, 1)
    assert (d.batch_shape, d.event_shape) == ((4,), (3,))
    x = double(np.ones((4, 3)))
    np.testing.assert_array_equal(d.log_prob(x).numpy(), base.log_prob(x).sum(-1).numpy())
    np.testing.assert_array_equal(d.entropy().numpy(), base.entropy().sum(-1).numpy())
    assert d.rsample((2,)).shape == (2, 4, 3)
    with pytest.raises(ValueError, match=r"^\[Independent\] 3 dimensions are to be parts"):
        D.Independent(base, 3)


TRANSFORMS = {
    "exp": T.ExpTransform(),
    "affine": T.AffineTransform(1.5, -2.0),
    "sigmoid": T.SigmoidTransform(),
    "tanh": T.TanhTransform(),
    "softplus": T.SoftplusTransform(),
    "compose": T.ComposeTransform([T.AffineTransform(0.5, 0.3), T.TanhTransform()]),
    "inverse": T.ExpTransform().inv,
    "power": T.PowerTransform(2.5),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms(name):
    t = TRANSFORMS[name]
    x = double([0.3, 0.9, 2.0]).requires_grad_()
    y = t(x)
    np.testing.assert_allclose(t.inv(y).detach().numpy(), x.detach().numpy(), rtol=1e-10)
    (slope,) = mg.grad(y.sum(), x)
    np.testing.assert_allclose(
        t.log_abs_det_jacobian(x, y).detach().numpy(), np.log(np.abs(slope.numpy())), rtol=1e-9
    )


def test_transformed_distribution():
    d = D.TransformedDistribution(D.Normal(double(0.3), double(0.8)), [T.ExpTransform()])
    same = D.LogNormal(double(0.3), double(0.8))
    x = double([0.5, 2.0])
    np.testing.assert_allclose(d.log_prob(x).numpy(), same.log_prob(x).numpy())
    np.testing.assert_allclose(d.cdf(x).numpy(), same.cdf(x).numpy())
    assert (d.sample((9,)) > 0).all()
    base = D.Independent(D.Normal(double(np.zeros(2)), 1.0), 1)
    e = D.TransformedDistribution(base, [T.AffineTransform(1.0, 2.0)])
    assert (e.batch_shape, e.event_shape) == ((), (2,))
    np.testing.assert_allclose(
        e.log_prob(double([1.0, 3.0])).item(), stats.norm(1, 2).logpdf([1, 3]).sum()
    )


def test_mixture():
    weights, loc, scale = np.array([0.3, 0.7]), np.array([-1.0, 2.0]), np.array([0.5, 1.5])
    d = D.MixtureSameFamily(D.Categorical(double(weights)), D.Normal(double(loc), double(scale)))
    x = np.array([-0.5, 1.0, 4.0])
    wanted = np.log((weights * stats.norm(loc, scale).pdf(x[:, None])).sum(1))
    np.testing.assert_allclose(d.log_prob(double(x)).numpy(), wanted)
    mean = (weights * loc).sum()
    variance = (weights * (scale**2 + loc**2)).sum() - mean**2
    np.testing.assert_allclose([d.mean.item(), d.variance.item()], [mean, variance])
    mg.manual_seed(2)
    assert abs(d.sample((5000,)).mean().item() - mean) < 0.1
    with pytest.raises(ValueError, match=r"^\[MixtureSameFamily\] 2 weights for components"):
        D.MixtureSameFamily(D.Categorical(double(weights)), D.Normal(double(np.zeros(3)), 1.0))


# ---- divergences ---------------------------------------------------------------------------------

PAIRS = {
    "Normal": (D.Normal(double(LOC), double(A)), D.Normal(double(X), double(B))),
    "Laplace": (D.Laplace(double(LOC), double(A)), D.Laplace(double(X), double(B))),
    "Gumbel": (D.Gumbel(double(LOC), double(A)), D.Gumbel(double(X), double(B))),
    "Exponential": (D.Exponential(double(A)), D.Exponential(double(B))),
    "LogNormal": (D.LogNormal(double(LOC), double(A)), D.LogNormal(double(X), double(B))),
    "HalfNormal": (D.HalfNormal(double(A)), D.HalfNormal(double(B))),
    "Gamma": (D.Gamma(double(A), double(B)), D.Gamma(double(B), double(A))),
    "Beta": (D.Beta(double(A), double(B)), D.Beta(double(B), double(A))),
    "Uniform": (D.Uniform(double(0.0), double(1.0)), D.Uniform(double(-1.0), double(3.0))),
    "Uniform, Normal": (D.Uniform(double(LOC), double(LOC + A)), D.Normal(double(X), double(B))),
    "Bernoulli": (D.Bernoulli(double(P)), D.Bernoulli(double(P[::-1].copy()))),
    "Binomial": (D.Binomial(4, double(P)), D.Binomial(4, double(P[::-1].copy()))),
    "Geometric": (D.Geometric(double(P)), D.Geometric(double(P[::-1].copy()))),
    "Poisson": (D.Poisson(double(A)), D.Poisson(double(B))),
}


@pytest.mark.parametrize("name", PAIRS)
def test_divergences_are_integrals(name):
    p, q = PAIRS[name]
    found = D.kl_divergence(p, q).numpy()
    if name in DISCRETE:
        x = double(np.arange(5.0 if name == "Binomial" else 2.0 if name == "Bernoulli" else 400.0))
        shape = (-1, *[1] * len(p.batch_shape))
        log, other = p.log_prob(x.reshape(shape)), q.log_prob(x.reshape(shape))
        wanted = (log.exp() * (log - other)).sum(0).numpy()
        np.testing.assert_allclose(found, wanted, rtol=1e-7)
        return
    mg.manual_seed(4)
    x = p.sample((200_000,))
    error = (p.log_prob(x) - q.log_prob(x)).numpy()
    bound = 6 * error.std(0) / math.sqrt(len(error)) + 1e-12
    assert (np.abs(found - error.mean(0)) < bound).all()
    zero = D.kl_divergence(p, p).numpy()
    np.testing.assert_allclose(zero, 0, atol=1e-12)


def test_other_divergences():
    p, q = D.Categorical(double([0.2, 0.8])), D.Categorical(double([0.5, 0.5]))
    wanted = stats.entropy([0.2, 0.8], [0.5, 0.5])
    np.testing.assert_allclose(D.kl_divergence(p, q).item(), wanted)
    a, b = (
        D.MultivariateNormal(double(v), scale_tril=double(np.diag(s)))
        for v, s in ((LOC, A), (X, B))
    )
    parts = [D.Independent(D.Normal(double(v), double(s)), 1) for v, s in ((LOC, A), (X, B))]
    np.testing.assert_allclose(D.kl_divergence(a, b).item(), D.kl_divergence(*parts).item())
    with pytest.raises(NotImplementedError, match=r"no formula for Normal and Poisson"):
        D.kl_divergence(D.Normal(0.0, 1.0), D.Poisson(1.0))

    class Own(D.Normal):
        pass

    assert D.kl_divergence(Own(1.0, 1.0), D.Normal(0.0, 1.0)).item() == 0.5

    @D.register_kl(Own, Own)
    def formula(p, q):
        return mg.tensor(7.0)

    assert D.kl_divergence(Own(1.0, 1.0), Own(0.0, 1.0)).item() == 7


# ---- arguments -----------------------------------------------------------------------------------


def test_shapes_and_dtypes():
    d = D.Normal(mg.zeros(2, 1), mg.ones(3))
    assert d.batch_shape == (2, 3)
    assert d.sample().shape == d.log_prob(mg.tensor(0.0)).shape == (2, 3)
    assert d.sample().dtype is mg.float32
    assert D.Normal(0, 1).sample().dtype is mg.float32
    assert D.Normal(double(0.0), 1).sample((4,)).dtype is mg.float64
    wide = d.expand((5, 2, 3))
    assert wide.sample((7,)).shape == (7, 5, 2, 3)
    mg.manual_seed(1)
    first = d.sample()
    mg.manual_seed(1)
    assert (d.sample() == first).all()


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: D.Normal(0.0, -1.0), r"\[Normal\] the parameter scale must be Positive\(\)"),
        (lambda: D.Normal(math.nan, 1.0), r"\[Normal\] the parameter loc must be Real\(\)"),
        (lambda: D.Uniform(1.0, 0.0), r"\[Uniform\] low must be below high"),
        (lambda: D.Bernoulli(1.5), r"\[Bernoulli\] the parameter _probs must be UnitInterval"),
        (lambda: D.Bernoulli(), r"\[Bernoulli\] give either probs or logits"),
        (lambda: D.Categorical(mg.ones(2), mg.ones(2)), r"\[Categorical\] give either probs or"),
        (lambda: D.Categorical(mg.tensor([-1.0, 2.0])), r"\[Categorical\] probs must not be neg"),
        (lambda: D.Categorical(mg.tensor(1.0)), r"\[Categorical\] probs or logits need a dim"),
        (lambda: D.Categorical(mg.ones(2)).log_prob(mg.tensor(2)), r"\[Categorical\] a value must"),
        (lambda: D.Exponential(1.0).log_prob(mg.tensor(-1.0)), r"\[Exponential\] a value must be"),
        (lambda: D.Poisson(1.0).log_prob(mg.tensor(0.5)), r"\[Poisson\] a value must be NonNeg"),
    ],
)
def test_what_is_refused(make, text):
    with pytest.raises(ValueError, match=rf"^{text}"):
        make()


def test_checks_can_be_left_out():
    assert math.isnan(D.Normal(0.0, -1.0, validate_args=False).log_prob(mg.tensor(0.0)).item())
    outside = D.Uniform(0.0, 1.0, validate_args=False).log_prob(mg.tensor(2.0))
    assert outside.item() == -math.inf
    with pytest.raises(NotImplementedError, match=r"^\[Poisson\] samples have no gradient"):
        D.Poisson(1.0).rsample()


# ---- beside PyTorch ------------------------------------------------------------------------------


@every
def test_as_pytorch(name):
    torch = pytest.importorskip("torch")
    make, _, x = EVERY[name]
    d = make()
    names = d._parameters()
    given = [torch.tensor(d.__dict__[n].numpy()) for n in names]
    if name == "Chi2":
        other = torch.distributions.Chi2(torch.tensor(B))
    elif name in ("Binomial", "NegativeBinomial"):
        other = getattr(torch.distributions, name)(torch.tensor(N), torch.tensor(P))
    else:
        other = getattr(torch.distributions, name)(*given)
    values = np.asarray(x, float)
    np.testing.assert_allclose(
        d.log_prob(double(values)).numpy(), other.log_prob(torch.tensor(values)).numpy(), rtol=1e-9
    )
    np.testing.assert_allclose(d.mean.numpy(), other.mean.numpy(), rtol=1e-9)
    if name != "Weibull":  # 0 below a shape of 1, where PyTorch has NaN
        np.testing.assert_allclose(d.mode.numpy(), other.mode.numpy(), rtol=1e-9)
    assert d.has_rsample == other.has_rsample


# ---- PyTorch's places ----------------------------------------------------------------------------


def test_pytorchs_modules(fresh):
    """Every module of PyTorch's that has a family is there, with the family in it."""
    places = {
        "bernoulli": "Bernoulli",
        "beta": "Beta",
        "binomial": "Binomial",
        "categorical": "Categorical",
        "cauchy": "Cauchy",
        "chi2": "Chi2",
        "constraint_registry": "biject_to transform_to",
        "continuous_bernoulli": "ContinuousBernoulli",
        "dirichlet": "Dirichlet",
        "distribution": "Distribution",
        "exp_family": "ExponentialFamily",
        "exponential": "Exponential",
        "fishersnedecor": "FisherSnedecor",
        "gamma": "Gamma",
        "generalized_pareto": "GeneralizedPareto",
        "geometric": "Geometric",
        "gumbel": "Gumbel",
        "half_cauchy": "HalfCauchy",
        "half_normal": "HalfNormal",
        "independent": "Independent",
        "inverse_gamma": "InverseGamma",
        "kl": "kl_divergence register_kl",
        "kumaraswamy": "Kumaraswamy",
        "laplace": "Laplace",
        "lkj_cholesky": "LKJCholesky",
        "log_normal": "LogNormal",
        "logistic_normal": "LogisticNormal",
        "lowrank_multivariate_normal": "LowRankMultivariateNormal",
        "mixture_same_family": "MixtureSameFamily",
        "multinomial": "Multinomial",
        "multivariate_normal": "MultivariateNormal",
        "negative_binomial": "NegativeBinomial",
        "normal": "Normal",
        "one_hot_categorical": "OneHotCategorical OneHotCategoricalStraightThrough",
        "pareto": "Pareto",
        "poisson": "Poisson",
        "relaxed_bernoulli": "LogitRelaxedBernoulli RelaxedBernoulli",
        "relaxed_categorical": "ExpRelaxedCategorical RelaxedOneHotCategorical",
        "studentT": "StudentT",
        "transformed_distribution": "TransformedDistribution",
        "transforms": "Transform StickBreakingTransform",
        "uniform": "Uniform",
        "utils": "broadcast_all lazy_property",
        "von_mises": "VonMises",
        "weibull": "Weibull",
        "wishart": "Wishart",
    }
    lines = ["import minigrad", "minigrad.as_torch()"]
    for module, names in places.items():
        for name in names.split():
            lines.append(f"from torch.distributions.{module} import {name}")
    lines += ["import torch", "print(torch.distributions.normal.Normal(0.0, 1.0).mean)"]
    assert fresh("\n".join(lines)).strip() == "tensor(0.)"


def test_helpers_of_distributions_of_ones_own():
    from minigrad.distributions import utils

    _, b = utils.broadcast_all(double([1.0, 2.0]), 3)
    assert (b.tolist(), b.dtype) == ([3, 3], mg.float64)
    p = double([0.2, 0.8])
    for binary in (False, True):
        logits = utils.probs_to_logits(p, is_binary=binary)
        np.testing.assert_allclose(utils.logits_to_probs(logits, is_binary=binary).numpy(), p)
    assert bool(utils.clamp_probs(double([0.0, 1.0])).log().isfinite().all())
    for diag, count in ((0, 6), (-1, 3), (-2, 1)):
        v = double(np.arange(1.0, 2 * count + 1).reshape(2, count))
        m = utils.vec_to_tril_matrix(v, diag)
        assert m.shape == (2, 3, 3)
        assert (m.tril(diag) == m).all()
        assert (utils.tril_matrix_to_vec(m, diag) == v).all()
    with pytest.raises(ValueError, match=r"^\[vec_to_tril_matrix\] 4 numbers are not"):
        utils.vec_to_tril_matrix(mg.zeros(4))
    with pytest.raises(ValueError, match=r"^\[vec_to_tril_matrix\] diag is 1, but must be 0 or"):
        utils.vec_to_tril_matrix(mg.zeros(4), 1)
    with pytest.raises(ValueError, match=r"^\[tril_matrix_to_vec\] diag is 3, but must"):
        utils.tril_matrix_to_vec(mg.zeros(3, 3), 3)

    class Squared(D.Distribution):
        """As PyTorch's own distributions are written."""

        arg_constraints = {"loc": D.constraints.real, "scale": D.constraints.positive}  # noqa: RUF012
        support = D.constraints.positive
        asked = 0

        def __init__(self, loc, scale, validate_args=None):
            self.loc, self.scale = utils.broadcast_all(loc, scale)
            super().__init__(self.loc.size(), validate_args=validate_args)

        def expand(self, batch_shape, _instance=None):
            new = self._get_checked_instance(Squared, _instance)
            new.loc, new.scale = (x.expand(batch_shape) for x in (self.loc, self.scale))
            super(Squared, new).__init__(batch_shape, validate_args=False)
            new._validate_args = self._validate_args
            return new

        def rsample(self, sample_shape=()):
            shape = self._extended_shape(sample_shape)
            return (self.loc + self.scale * mg.randn(shape)) ** 2

        def log_prob(self, value):
            if self._validate_args:
                self._validate_sample(value)
            return value * 0

        @utils.lazy_property
        def width(self):
            self.asked += 1
            return self.scale * 2

    class Other(Squared):
        def __init__(self):
            super().__init__(0.0, 1.0)

    d = Squared(mg.zeros(3), 1.0)
    wide = d.expand((2, 3))
    assert (wide.batch_shape, wide.sample((4,)).shape) == ((2, 3), (4, 2, 3))
    assert [d.width.tolist(), d.width.tolist(), d.asked] == [[2, 2, 2], [2, 2, 2], 1]
    with pytest.raises(ValueError, match=r"^\[Squared\] a value must be Positive"):
        wide.log_prob(-mg.ones(3))
    with pytest.raises(NotImplementedError, match=r"^\[Other\] has an __init__ of its own"):
        Other().expand((2,))
