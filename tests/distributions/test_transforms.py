"""Tests of transforms, constraints, and the registry that leads from one to the other."""

from __future__ import annotations

import copy
import math
import pickle

import numpy as np
import pytest

import minigrad as mg
from minigrad import distributions as D
from minigrad.distributions import biject_to, constraints
from minigrad.distributions import transforms as T
from minigrad.distributions.constraint_registry import ConstraintRegistry

pytestmark = pytest.mark.usefixtures("restore_random")


def double(x):
    return mg.tensor(x, dtype=mg.float64)


# name: a transform by either library's modules, and an x
VECTORS = {
    "stick breaking": (lambda T, t: T.StickBreakingTransform(), [[0.3, -1.0, 2.0], [0, 0, 0]]),
    "corr cholesky": (
        lambda T, t: T.CorrCholeskyTransform(),
        [[0.3, -1.0, 0.2, 0.8, 0.0, -0.4]],
    ),
    "independent": (lambda T, t: T.IndependentTransform(T.ExpTransform(), 1), [[0.3, -1.0]]),
    "reshape": (
        lambda T, t: T.ReshapeTransform((4,), (2, 2)),
        [[0.3, -1.0, 2.0, 4.0], [1, 2, 3, 4]],
    ),
    "affine of vectors": (lambda T, t: T.AffineTransform(1.0, -2.0, 1), [[0.3, -1.0]]),
    "stack": (
        lambda T, t: T.StackTransform([T.ExpTransform(), T.AffineTransform(1.0, 3.0)], -1),
        [[0.3, -1.0], [0.1, 0.2]],
    ),
    "cat": (
        lambda T, t: T.CatTransform([T.ExpTransform(), T.AffineTransform(1.0, 3.0)], -1, [2, 1]),
        [[0.3, -1.0, 0.5], [0.1, 0.2, 0.7]],
    ),
    "cat of vectors": (
        lambda T, t: T.CatTransform(
            [T.AffineTransform(1.0, 2.0, 1), T.IndependentTransform(T.ExpTransform(), 1)],
            -1,
            [2, 1],
        ),
        [[0.3, -1.0, 0.5], [0.1, 0.2, 0.7]],
    ),
    "cumulative distribution": (
        lambda T, t: T.CumulativeDistributionTransform(
            t.distributions.Normal(t.tensor(0.5, dtype=t.float64), t.tensor(2.0, dtype=t.float64))
        ),
        [0.3, -1.0],
    ),
    "compose": (
        lambda T, t: T.ComposeTransform([T.AffineTransform(0.5, 0.3), T.StickBreakingTransform()]),
        [[0.3, -1.0, 2.0]],
    ),
    "compose to a matrix": (
        lambda T, t: T.ComposeTransform([T.TanhTransform(), T.ReshapeTransform((4,), (2, 2))]),
        [[0.3, -1.0, 2.0, 0.1]],
    ),
    "inverse": (lambda T, t: T.StickBreakingTransform().inv, [[0.3, 0.1, 0.6]]),
    "powers": (lambda T, t: T.PowerTransform(-1.0), [0.3, 2.0]),
    "softmax": (lambda T, t: T.SoftmaxTransform(), [[0.3, 0.1, 0.6]]),
    "lower cholesky": (lambda T, t: T.LowerCholeskyTransform(), [[0.3, 7.0], [0.1, -0.6]]),
    "positive definite": (lambda T, t: T.PositiveDefiniteTransform(), [[0.3, 7.0], [0.1, -0.6]]),
}
INVERTIBLE = [n for n in VECTORS if n not in {"softmax", "lower cholesky", "positive definite"}]


@pytest.mark.parametrize("name", VECTORS)
def test_transforms_are_pytorchs(name):
    torch = pytest.importorskip("torch")
    make, x = VECTORS[name]
    own, their = make(T, mg), make(torch.distributions.transforms, torch)
    y = own(double(x))
    wanted = their(torch.tensor(x, dtype=torch.float64))
    np.testing.assert_allclose(y.numpy(), wanted.numpy(), rtol=1e-12, atol=1e-15)
    back, other = own.inv(y), their.inv(wanted)
    np.testing.assert_allclose(back.numpy(), other.numpy(), rtol=1e-10, atol=1e-12)
    shape = np.shape(x)
    assert tuple(own.forward_shape(shape)) == tuple(their.forward_shape(shape)) == y.shape
    assert tuple(own.inverse_shape(y.shape)) == tuple(their.inverse_shape(y.shape)) == shape
    assert own.domain.event_dim == their.domain.event_dim
    assert own.codomain.event_dim == their.codomain.event_dim
    assert bool(own.domain.check(double(x)).all())
    assert bool(own.codomain.check(y).all())
    if name in INVERTIBLE:
        log = own.log_abs_det_jacobian(double(x), y)
        wanted = their.log_abs_det_jacobian(torch.tensor(x, dtype=torch.float64), wanted)
        if name == "stack":  # which PyTorch does not add up, though a value has this dimension
            wanted = wanted.sum(-1)
        np.testing.assert_allclose(log.numpy(), wanted.numpy(), rtol=1e-10, atol=1e-12)


# where a value has more parts than degrees of freedom, the parts that are coordinates
COORDINATES = {
    "stick breaking": lambda y: y[:-1],
    "corr cholesky": lambda y: mg.cat([y[i, :i] for i in range(1, 4)]),
    "compose": lambda y: y[:-1],
}


@pytest.mark.parametrize("name", INVERTIBLE)
def test_jacobians(name):
    make, x = VECTORS[name]
    t, x = make(T, mg), double(x)
    log = t.log_abs_det_jacobian(x, t(x))
    dims = t.domain.event_dim
    if not dims:
        x.requires_grad_()
        (slope,) = mg.grad(t(x).sum(), x)
        np.testing.assert_allclose(log.detach().numpy(), np.log(np.abs(slope.numpy())), rtol=1e-9)
        return
    for at in np.ndindex(x.shape[: x.ndim - dims]):
        value = x[at].clone()
        if name == "inverse":  # the last part follows from those before it
            free = value[:-1].requires_grad_()
            y = t(mg.cat([free, 1 - free.sum(-1, keepdim=True)]))
        else:
            free = value.requires_grad_()
            y = COORDINATES.get(name, mg.flatten)(t(free))
        rows = [mg.grad(part, free, retain_graph=True)[0] for part in y]
        wanted = np.linalg.slogdet(mg.stack(rows).numpy())[1]
        np.testing.assert_allclose(log[at].item(), wanted, rtol=1e-9, atol=1e-12)
    assert log.shape == x.shape[: x.ndim - dims]


@pytest.mark.parametrize("kind", [T.StickBreakingTransform, T.CorrCholeskyTransform])
@pytest.mark.parametrize("size", [1e-12, 1.0, 12.0, 200.0])
def test_vectors_far_out_come_back(kind, size):
    x = size * double([0.5, -0.7, 0.9])
    y = kind()(x)
    assert bool((y >= -1).all() & (y <= 1).all())
    log = kind().log_abs_det_jacobian(x, y)
    assert math.isfinite(log.item())
    if size < 100:
        np.testing.assert_allclose(kind().inv(y).numpy(), x.numpy(), rtol=1e-9, atol=1e-15)


def test_caches():
    plain, kept = T.TanhTransform(), T.TanhTransform(cache_size=1)
    x = mg.tensor([20.0])
    assert plain.inv(plain(x)).item() == math.inf
    y = kept(x)
    assert kept.inv(y) is x
    assert kept(x) is y
    chain = T.ComposeTransform([T.AffineTransform(1.0, 2.0), T.TanhTransform()], cache_size=1)
    assert chain.inv(chain(x)) is x
    assert plain.with_cache(1).inv.inv(x).item() == 1
    assert plain.with_cache(0) is plain
    with pytest.raises(ValueError, match=r"^\[TanhTransform\] cache_size is 2, not 0 or 1"):
        T.TanhTransform(cache_size=2)


def test_transforms_compare_by_their_parameters():
    assert T.ExpTransform() == T.ExpTransform(cache_size=1)
    assert T.ExpTransform() != T.TanhTransform()
    assert T.AffineTransform(mg.zeros(2), 1.0) == T.AffineTransform(mg.zeros(2), 1.0)
    assert T.AffineTransform(mg.zeros(2), 1.0) != T.AffineTransform(mg.ones(2), 1.0)
    assert T.ExpTransform().inv == T.ExpTransform().inv
    assert T.ComposeTransform([T.ExpTransform()]) == T.ComposeTransform([T.ExpTransform()])
    assert repr(T.ExpTransform().inv) == "ExpTransform().inv"


class Cube(T.Transform):
    """A transform of a user's, as PyTorch's documentation writes one."""

    domain = constraints.real
    codomain = constraints.real
    bijective = True
    sign = +1

    def _call(self, x):
        return x**3

    def _inverse(self, y):
        return y.sign() * y.abs() ** (1 / 3)

    def log_abs_det_jacobian(self, x, y):
        return math.log(3) + 2 * x.abs().log()


def test_a_transform_of_ones_own():
    d = D.TransformedDistribution(D.Normal(double(0.0), 1.0), [Cube(), T.AffineTransform(1.0, 2.0)])
    x = double(1.3)
    y = 1 + 2 * x**3
    wanted = D.Normal(double(0.0), 1.0).log_prob(x).item() - math.log(6 * 1.3**2)
    np.testing.assert_allclose(d.log_prob(y).item(), wanted)
    np.testing.assert_allclose(d.cdf(y).item(), D.Normal(double(0.0), 1.0).cdf(x).item())
    with pytest.raises(NotImplementedError, match=r"^\[AbsTransform\] log_abs_det_jacobian"):
        T.AbsTransform().log_abs_det_jacobian(x, y)
    with pytest.raises(NotImplementedError, match=r"^\[Transform\] has no inverse"):
        T.Transform().inv(x)


def test_decreasing_transforms():
    d = D.TransformedDistribution(D.Exponential(double(1.0)), [T.AffineTransform(0.0, -2.0)])
    x = double([-0.5, -3.0])
    np.testing.assert_allclose(d.cdf(x).numpy(), np.exp(x.numpy() / 2))
    np.testing.assert_allclose(d.icdf(d.cdf(x)).numpy(), x.numpy())
    each = T.AffineTransform(0.0, double([1.0, -1.0]))
    e = D.TransformedDistribution(D.Normal(double([0.0, 0.0]), 1.0), each)
    wanted = D.Normal(double(0.0), 1.0).cdf(double([0.3, 0.3]))
    np.testing.assert_allclose(e.cdf(double([0.3, 0.3])).numpy(), wanted.numpy())


def test_shapes_of_transformed_distributions():
    normal = D.Normal(mg.zeros(3), 1.0)
    d = D.TransformedDistribution(normal, T.StickBreakingTransform())
    assert (d.batch_shape, d.event_shape, d.sample((5,)).shape) == ((), (4,), (5, 4))
    assert d.log_prob(d.sample((5,))).shape == (5,)
    assert d.expand((2,)).sample((5,)).shape == (5, 2, 4)
    e = D.TransformedDistribution(normal, T.AffineTransform(mg.zeros(2, 1), 1.0))
    assert (e.batch_shape, e.sample().shape) == ((2, 3), (2, 3))
    g = D.TransformedDistribution(D.Normal(mg.zeros(2, 4), 1.0), T.ReshapeTransform((4,), (2, 2)))
    assert (g.batch_shape, g.event_shape) == ((2,), (2, 2))
    assert g.log_prob(g.sample((5,))).shape == (5, 2)
    assert g.expand((3, 2)).rsample().shape == (3, 2, 2, 2)
    with pytest.raises(ValueError, match=r"the transforms take values of 1 dimensions, but the"):
        D.TransformedDistribution(D.Normal(0.0, 1.0), T.StickBreakingTransform())
    with pytest.raises(ValueError, match=r"transforms must be one or a list of them"):
        D.TransformedDistribution(normal, [abs])


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: T.ReshapeTransform((4,), (3,)), r"\[ReshapeTransform\] \(4,\) and \(3,\) have"),
        (
            lambda: T.ReshapeTransform((4,), (2, 2))(mg.zeros(3)),
            r"\[ReshapeTransform\] the shape \(3,\) must end in \(4,\)",
        ),
        (lambda: T.CorrCholeskyTransform()(mg.zeros(4)), r"\[CorrCholeskyTransform\] 4 numbers"),
        (
            lambda: T.CorrCholeskyTransform().inverse_shape((2, 3)),
            r"\[CorrCholeskyTransform\] \(2, 3\) is not of square",
        ),
        (lambda: T.StickBreakingTransform().forward_shape(()), r"\[StickBreakingTransform\] a val"),
        (lambda: T.StackTransform([]), r"\[StackTransform\] tseq must be transforms"),
        (
            lambda: T.StackTransform([T.ExpTransform()])(mg.zeros(2)),
            r"\[StackTransform\] dimension 0 is 2, not 1",
        ),
        (
            lambda: T.CatTransform([T.ExpTransform()], 0, [3])(mg.zeros(2)),
            r"\[CatTransform\] dimension 0 is 2, not 3",
        ),
        (lambda: T.CatTransform([T.ExpTransform()], 0, [3, 1]), r"\[CatTransform\] 2 lengths for"),
        (
            lambda: T.IndependentTransform(T.ExpTransform(), 2)(mg.zeros(2)),
            r"\[IndependentTransform\] x has 1 dimensions, not 2 or more",
        ),
        (lambda: T.CorrCholeskyTransform().event_dim, r"\[CorrCholeskyTransform\] values of 1 dim"),
    ],
)
def test_what_transforms_refuse(make, text):
    with pytest.raises(ValueError, match=rf"^{text}"):
        make()


# ---- constraints ---------------------------------------------------------------------------------

INF, NAN = math.inf, math.nan
C = constraints
# a constraint, values that fulfil it and values that do not
CONSTRAINTS = {
    "boolean": ([0.0, 1], [0.5, -1]),
    "integer_interval(1, 3)": ([1.0, 3], [0.0, 4, 1.5]),
    "nonnegative_integer": ([0.0, 7], [-1.0, 0.5]),
    "positive_integer": ([1.0, 7], [0.0, 1.5]),
    "real": ([0.0, -7, INF], [NAN]),
    "positive": ([1e-30, INF], [0.0, -1, NAN]),
    "nonnegative": ([0.0, 3], [-1e-30, NAN]),
    "greater_than(2.0)": ([2.1], [2.0]),
    "greater_than_eq(2.0)": ([2.0], [1.9]),
    "less_than(2.0)": ([1.9], [2.0]),
    "interval(1.0, 2.0)": ([1.0, 2], [0.9, 2.1]),
    "half_open_interval(1.0, 2.0)": ([1.0], [2.0, 0.9]),
    "unit_interval": ([0.0, 1], [-0.1, 1.1]),
    "real_vector": ([[0.0, 1]], [[NAN, 1]]),
    "simplex": ([[0.5, 0.5]], [[0.5, 0.6], [1.5, -0.5]]),
    "one_hot": ([[0.0, 1]], [[0.0, 0], [1, 1]]),
    "multinomial(3)": ([[1.0, 2]], [[1.0, 1], [4, -1], [1.5, 1.5]]),
    "lower_triangular": ([[[0.0, 0], [1, -1]]], [[[0.0, 1], [1, 1]]]),
    "lower_cholesky": ([[[1.0, 0], [1, 2]]], [[[1.0, 0], [1, -1]]]),
    "corr_cholesky": ([[[1.0, 0], [0.6, 0.8]]], [[[1.0, 0], [0.6, 0.9]]]),
    "square": ([[[1.0, 0], [0.6, 0.8]]], [[[1.0, 0, 1], [0.6, 0.9, 1]]]),
    "symmetric": ([[[1.0, 2], [2, 0]], [[1e4, 2e4], [2e4 + 0.01, 0]]], [[[1.0, 2], [1, 0]]]),
    "positive_definite": ([[[2.0, 1], [1, 2]]], [[[1.0, 2], [2, 1]]]),
    "positive_semidefinite": ([[[2.0, 1], [1, 2]], [[1, 0], [0, 0]]], [[[1.0, 2], [2, 1]]]),
    "independent(C.positive, 1)": ([[1.0, 2]], [[1.0, 0]]),
    "stack([C.positive, C.real], -1)": None,
}


@pytest.mark.parametrize("name", [n for n, cases in CONSTRAINTS.items() if cases])
def test_constraints(name):
    constraint = eval(f"C.{name}")
    good, bad = CONSTRAINTS[name]
    assert bool(constraint.check(double(good)).all())
    found = constraint.check(double(bad))
    assert not bool(found.any())
    assert found.shape == np.shape(bad)[: np.ndim(bad) - constraint.event_dim]
    torch = pytest.importorskip("torch")
    other = eval(f"C.{name}", {"C": torch.distributions.constraints})
    assert bool(other.check(torch.tensor(good, dtype=torch.float64)).all())
    assert constraint.event_dim == other.event_dim
    assert constraint.is_discrete == other.is_discrete


def test_constraints_of_parts():
    parts = C.stack([C.positive, C.real], -1)
    assert parts.check(double([[1.0, -1], [-1, -1]])).tolist() == [[True, True], [False, True]]
    joined = C.cat([C.positive, C.real], -1, [2, 1])
    assert joined.check(double([1.0, -1, -1])).tolist() == [True, False, True]
    mixed = C.MixtureSameFamilyConstraint(C.interval(double([0.0, 1]), double([3.0, 2])))
    assert mixed.check(double([1.5, 0.5])).tolist() == [True, False]
    with pytest.raises(ValueError, match=r"^\[Independent\] a value has 0 dimensions, not 1"):
        C.independent(C.real, 1).check(double(1.0))


def test_constraints_that_depend_on_parameters():
    class Own(D.Distribution):
        arg_constraints = {"low": C.dependent}  # noqa: RUF012

        def __init__(self, low):
            self.low = low
            super().__init__()

        @C.dependent_property(is_discrete=False, event_dim=0)
        def support(self):
            return C.greater_than(self.low)

    assert C.is_dependent(Own.support)
    assert not C.is_dependent(C.real)
    assert Own(mg.tensor(2.0)).support.lower_bound == 2
    assert C.dependent(event_dim=1).event_dim == 1
    with pytest.raises(ValueError, match=r"a dependent constraint needs the other parameters"):
        C.dependent.check(mg.zeros(2))


def test_a_constraint_of_ones_own():
    class Even(C.Constraint):
        is_discrete = True

        def check(self, value):
            return value % 2 == 0

    assert repr(Even()) == "Even()"
    registry = ConstraintRegistry()

    @registry.register(Even)
    def even(constraint):
        return T.AffineTransform(0, 2)

    assert registry(Even())(mg.tensor(3.0)) == 6
    with pytest.raises(NotImplementedError, match=r"there is no transform for Real\(\)"):
        registry(C.real)
    with pytest.raises(TypeError, match=r"^\[register\] needs a Constraint"):
        registry.register(int, even)


# ---- the registry --------------------------------------------------------------------------------

REACHED = {
    "real": (3,),
    "positive": (3,),
    "nonnegative": (3,),
    "greater_than(2.0)": (3,),
    "greater_than_eq(-2.0)": (3,),
    "less_than(2.0)": (3,),
    "interval(1.0, 4.0)": (3,),
    "half_open_interval(-1.0, 4.0)": (3,),
    "unit_interval": (3,),
    "real_vector": (2, 3),
    "simplex": (2, 3),
    "lower_cholesky": (2, 3, 3),
    "positive_definite": (3, 3),
    "corr_cholesky": (2, 6),
    "independent(C.positive, 1)": (2, 3),
    "stack([C.positive, C.unit_interval], -1)": (3, 2),
    "cat([C.positive, C.unit_interval], -1, [2, 1])": (2, 3),
}


PAIRS = [
    (registry, name)
    for registry in ("biject_to", "transform_to")
    for name in REACHED
    if (registry, name) not in {("biject_to", "lower_cholesky"), ("biject_to", "positive_definite")}
]


@pytest.mark.parametrize(("registry", "name"), PAIRS)
def test_registered_transforms_reach_their_constraint(registry, name, rng):
    constraint = eval(f"C.{name}")
    t = getattr(D, registry)(constraint)
    assert t.bijective or registry == "transform_to"
    x = double(rng.standard_normal(REACHED[name]))
    y = t(x)
    assert bool(constraint.check(y).all())
    np.testing.assert_allclose(t(t.inv(y)).numpy(), y.numpy(), rtol=1e-12, atol=1e-14)
    torch = pytest.importorskip("torch")
    names = {"C": torch.distributions.constraints}
    other = getattr(torch.distributions, registry)(eval(f"C.{name}", names))
    np.testing.assert_allclose(y.numpy(), other(torch.tensor(x.numpy())).numpy(), rtol=1e-10)


def test_supports_are_reached():
    for d in (
        D.Gamma(mg.ones(2), 1.0),
        D.Beta(mg.ones(2), 1.0),
        D.Uniform(mg.zeros(2), 3.0),
        D.Dirichlet(mg.ones(2)),
        D.Pareto(mg.ones(2), 1.0),
    ):
        x = biject_to(d.support)(mg.randn(2))
        assert bool(d.support.check(x).all())


def test_transforms_with_a_cache_can_be_copied():
    t = T.SigmoidTransform(cache_size=1)
    x = mg.tensor([0.5, 2.0], requires_grad=True) * 2
    y = t(x)
    for made in (copy.deepcopy(t), pickle.loads(pickle.dumps(t))):
        assert made == t
        np.testing.assert_allclose(made.inv(y).detach().numpy(), [1, 4], rtol=1e-5)
