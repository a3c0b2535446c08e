"""Discrete distributions: categories, trials and counts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from minigrad import functions as f
from minigrad import special
from minigrad.distributions import constraints
from minigrad.distributions.distribution import Distribution, floats
from minigrad.distributions.exp_family import ExponentialFamily
from minigrad.distributions.stable import log_beta, log_poisson
from minigrad.functions.creation import arange, tensor, zeros
from minigrad.nn.functional import binary_cross_entropy_with_logits, logsigmoid, one_hot
from minigrad.random import bernoulli, drawing, multinomial
from minigrad.runtime.lazy_numpy import np

__all__ = [
    "Bernoulli",
    "Binomial",
    "Categorical",
    "Geometric",
    "Multinomial",
    "NegativeBinomial",
    "OfTrials",
    "OneHotCategorical",
    "OneHotCategoricalStraightThrough",
    "Poisson",
    "inside",
]


def _one_of(name: str, probs: Any, logits: Any) -> None:
    if (probs is None) == (logits is None):
        raise ValueError(f"[{name}] give either probs or logits, and not both")


def inside(probs: Any) -> Any:
    """Clamp probabilities so that their logarithms are finite."""
    eps = 2.0**-23 if probs.dtype.itemsize == 4 else 2.0**-52
    return f.clamp(probs, eps, 1 - eps)


class OfTrials(Distribution):
    """Base of distributions of trials, with a probability or its logit."""

    arg_constraints = {  # noqa: RUF012
        "_probs": constraints.unit_interval,
        "_logits": constraints.real,
    }

    def _take(self, probs: Any, logits: Any) -> Any:
        _one_of(type(self).__name__, probs, logits)
        self._probs = None if probs is None else floats(probs)[0]
        self._logits = None if logits is None else floats(logits)[0]
        return self._probs if logits is None else self._logits

    @property
    def probs(self) -> Any:
        """The probability of success."""
        return f.sigmoid(self._logits) if self._probs is None else self._probs

    @property
    def logits(self) -> Any:
        """log(p / (1 - p))."""
        if self._logits is not None:
            return self._logits
        p = inside(self._probs)
        return f.log(p) - f.log1p(-p)

    @property
    def param_shape(self) -> Any:
        """The shape of the parameters."""
        given: Any = self._probs if self._logits is None else self._logits
        return given.shape

    def __repr__(self) -> str:
        return super().__repr__().replace("_probs: ", "probs: ").replace("_logits: ", "logits: ")


class Bernoulli(OfTrials, ExponentialFamily):
    """The Bernoulli distribution: 1 with probability ``probs``, else 0.

    >>> import minigrad as mg
    >>> mg.distributions.Bernoulli(probs=0.25).log_prob(mg.tensor(1.0)).exp()
    tensor(0.25)
    """

    has_enumerate_support = True

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        given = self._take(probs, logits)
        super().__init__(given.shape, validate_args=validate_args)

    @property
    def support(self) -> constraints.Constraint:
        """0 and 1."""
        return constraints.boolean

    def sample(self, sample_shape: Sequence[int] = ()) -> Any:
        """Samples: zeros and ones."""
        return bernoulli(self.probs.detach().expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Any) -> Any:
        """x log(p) + (1 - x) log(1 - p)."""
        logits, x = f.broadcast_tensors(self.logits, self._validate_sample(value))
        return -binary_cross_entropy_with_logits(logits, f.to(x, logits.dtype), reduction="none")

    def entropy(self) -> Any:
        """-p log(p) - (1 - p) log(1 - p)."""
        return binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")

    def enumerate_support(self, expand: bool = True) -> Any:
        """0 and 1."""
        values = f.reshape(arange(2.0), (2,) + (1,) * len(self.batch_shape))
        return values.expand((2, *self.batch_shape)) if expand else values

    @property
    def mean(self) -> Any:
        """p."""
        return self.probs

    @property
    def mode(self) -> Any:
        """1 where p > 1/2, else 0; NaN at 1/2."""
        p = self.probs
        return f.where(p == 0.5, math.nan, f.to(p > 0.5, p.dtype))

    @property
    def variance(self) -> Any:
        """p (1 - p)."""
        return self.probs * (1 - self.probs)

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        return (self.logits,)

    def _log_normalizer(self, *natural_params: Any) -> Any:
        return -logsigmoid(-natural_params[0])

    @property
    def _mean_carrier_measure(self) -> Any:
        return 0.0


class Geometric(OfTrials):
    """The number of failures before the first success of probability ``probs``."""

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        given = self._take(probs, logits)
        super().__init__(given.shape, validate_args=validate_args)

    @property
    def support(self) -> constraints.Constraint:
        """Non-negative integers."""
        return constraints.nonnegative_integer

    def sample(self, sample_shape: Sequence[int] = ()) -> Any:
        """Samples: counts as floats."""
        p = self.probs.detach().expand(self._extended_shape(sample_shape))
        drawn = drawing().geometric(np.maximum(p.numpy().astype(np.float64), 1e-300)) - 1
        return tensor(np.asarray(drawn), p.dtype)

    def log_prob(self, value: Any) -> Any:
        """x log(1 - p) + log(p)."""
        p = self.probs
        return special.xlog1py(self._validate_sample(value), -p) + f.log(p)

    def entropy(self) -> Any:
        """The entropy of a trial divided by p."""
        p = self.probs
        return binary_cross_entropy_with_logits(self.logits, p, reduction="none") / p

    @property
    def mean(self) -> Any:
        """(1 - p) / p."""
        return (1 - self.probs) / self.probs

    @property
    def mode(self) -> Any:
        """0."""
        return self.probs * 0

    @property
    def variance(self) -> Any:
        """(1 - p) / p^2."""
        return (1 - self.probs) / self.probs**2


class _OfCounts(OfTrials):
    """Base of distributions with a number of trials, ``total_count``."""

    _counts: constraints.Constraint = constraints.nonnegative

    def __init__(
        self,
        total_count: Any = 1,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        given = self._take(probs, logits)
        given, self.total_count = floats(given, total_count)
        if self._probs is None:
            self._logits = given
        else:
            self._probs = given
        super().__init__(given.shape, validate_args=validate_args)
        if self._validate_args:
            self._check("the parameter total_count", self._counts, self.total_count)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        """The distribution with its parameters expanded to a larger batch shape."""
        made: Any = super().expand(batch_shape)
        made.total_count = self.total_count.expand(batch_shape)
        return made


class Binomial(_OfCounts):
    """The number of successes in ``total_count`` trials."""

    has_enumerate_support = True
    _counts = constraints.nonnegative_integer

    @property
    def support(self) -> constraints.Constraint:
        """Integers from 0 to the number of trials."""
        return constraints.integer_interval(0, self.total_count)

    def sample(self, sample_shape: Sequence[int] = ()) -> Any:
        """Samples: counts as floats."""
        shape = self._extended_shape(sample_shape)
        n = self.total_count.expand(shape).detach().numpy().astype(np.int64)
        p = self.probs.detach().expand(shape)
        drawn = drawing().binomial(n, p.numpy().astype(np.float64).clip(0, 1))
        return tensor(np.asarray(drawn), p.dtype)

    def log_prob(self, value: Any) -> Any:
        """log(n over x) + x log(p) + (n - x) log(1 - p)."""
        x, n, t = self._validate_sample(value), self.total_count, self.logits
        ways = -log_beta(x + 1, n - x + 1) - f.log(n + 1)
        return ways + x * t + n * logsigmoid(-t)  # the last term is n log(1 - p)

    def entropy(self) -> Any:
        """The sum over all counts. All distributions must have the same number of trials."""
        values = self.enumerate_support(False)
        log = self.log_prob(values)
        return -f.sum(f.exp(log) * log, 0)

    def enumerate_support(self, expand: bool = True) -> Any:
        """The counts 0 to n. Raises NotImplementedError if n differs within the batch."""
        n = int(self.total_count.max()) if self.total_count.numel() else 0
        if bool((self.total_count != n).any()):
            raise NotImplementedError("[Binomial] the numbers of trials differ")
        values = f.reshape(
            arange(n + 1, dtype=self.total_count.dtype), (-1,) + (1,) * len(self.batch_shape)
        )
        return values.expand((n + 1, *self.batch_shape)) if expand else values

    @property
    def mean(self) -> Any:
        """n p."""
        return self.total_count * self.probs

    @property
    def mode(self) -> Any:
        """The integer part of (n + 1) p, n at most."""
        return f.minimum(f.floor((self.total_count + 1) * self.probs), self.total_count)

    @property
    def variance(self) -> Any:
        """n p (1 - p)."""
        return self.total_count * self.probs * (1 - self.probs)


class NegativeBinomial(_OfCounts):
    """The number of successes with probability ``probs`` before ``total_count`` failures."""

    @property
    def support(self) -> constraints.Constraint:
        """Non-negative integers."""
        return constraints.nonnegative_integer

    def sample(self, sample_shape: Sequence[int] = ()) -> Any:
        """Samples: counts as floats, of Poisson distributions with gamma distributed rates."""
        shape = self._extended_shape(sample_shape)
        n = self.total_count.expand(shape).detach().numpy().astype(np.float64)
        odds = f.exp(self.logits.detach().expand(shape))
        rates = drawing().standard_gamma(n) * odds.numpy().astype(np.float64)
        return tensor(np.asarray(drawing().poisson(rates)), odds.dtype)

    def log_prob(self, value: Any) -> Any:
        """log of (n + x - 1 over x) (1 - p)^n p^x."""
        x, n, t = self._validate_sample(value), self.total_count, self.logits
        ways = -log_beta(n, x + 1) - f.log(n + x)
        return ways + n * logsigmoid(-t) + x * logsigmoid(t)

    @property
    def mean(self) -> Any:
        """n p / (1 - p)."""
        return self.total_count * f.exp(self.logits)

    @property
    def mode(self) -> Any:
        """The integer part of (n - 1) p / (1 - p)."""
        return f.floor(f.clamp((self.total_count - 1) * f.exp(self.logits), min=0.0))

    @property
    def variance(self) -> Any:
        """n p / (1 - p)^2."""
        return self.mean / f.sigmoid(-self.logits)


class Poisson(ExponentialFamily):
    """The Poisson distribution of counts of events with a ``rate``."""

    arg_constraints = {"rate": constraints.nonnegative}  # noqa: RUF012

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        (self.rate,) = floats(rate)
        super().__init__(self.rate.shape, validate_args=validate_args)

    @property
    def support(self) -> constraints.Constraint:
        """Non-negative integers."""
        return constraints.nonnegative_integer

    def sample(self, sample_shape: Sequence[int] = ()) -> Any:
        """Samples: counts as floats."""
        rate = self.rate.detach().expand(self._extended_shape(sample_shape))
        drawn = drawing().poisson(rate.numpy().astype(np.float64))
        return tensor(np.asarray(drawn), rate.dtype)

    def log_prob(self, value: Any) -> Any:
        """x log(rate) - rate - log(x!)."""
        x = self._validate_sample(value)
        return log_poisson(f.to(x, self.rate.dtype), self.rate)

    @property
    def mean(self) -> Any:
        """The rate."""
        return self.rate

    @property
    def mode(self) -> Any:
        """The integer part of the rate."""
        return f.floor(self.rate)

    @property
    def variance(self) -> Any:
        """The rate."""
        return self.rate

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        return (f.log(self.rate),)

    def _log_normalizer(self, *natural_params: Any) -> Any:
        return f.exp(natural_params[0])


# ---- categories ----------------------------------------------------------------------------------


class Categorical(Distribution):
    """The distribution of a category from 0 to k - 1, with probabilities along the last dimension.

    ``probs`` need not add up to 1. ``logits`` are logarithms of probabilities, up to a constant.

    >>> import minigrad as mg
    >>> d = mg.distributions.Categorical(probs=mg.tensor([1.0, 3.0]))
    >>> d.log_prob(mg.tensor(1)).exp()
    tensor(0.75)
    """

    arg_constraints = {"logits": constraints.real_vector}  # noqa: RUF012
    has_enumerate_support = True

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        name = type(self).__name__
        _one_of(name, probs, logits)
        (given,) = floats(logits if probs is None else probs)
        if not given.ndim:
            raise ValueError(f"[{name}] probs or logits need a dimension, of the categories")
        if probs is not None:
            valid = (given.detach() >= 0).all(-1) & (given.detach().sum(-1) > 0)
            checks = self._validate_args if validate_args is None else validate_args
            if checks and not bool(valid.all()):
                raise ValueError(f"[{name}] probs must not be negative, and not all 0")
            self.probs = given / given.sum(-1, keepdim=True)
            self.logits = f.log(inside(self.probs))
        else:
            self.logits = given - f.logsumexp(given, -1, keepdim=True)
            self.probs = f.softmax(given, -1)
        self._by = "logits" if probs is None else "probs"
        self._num_events = given.shape[-1]
        super().__init__(given.shape[:-1], self._event(), validate_args)

    def _event(self) -> tuple[int, ...]:
        return ()

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        """The distribution with its parameters expanded to a larger batch shape."""
        shape = (*batch_shape, self._num_events)
        made: Any = type(self)(logits=self.logits.expand(shape), validate_args=False)
        made._by = self._by
        return made

    @property
    def support(self) -> constraints.Constraint:
        """The numbers of the categories."""
        return constraints.integer_interval(0, self._num_events - 1)

    @property
    def param_shape(self) -> Any:
        """The shape of the parameters."""
        return self.logits.shape

    def sample(self, sample_shape: Sequence[int] = ()) -> Any:
        """Samples: categories as int64."""
        shape = (*((sample_shape,) if isinstance(sample_shape, int) else sample_shape),)
        count = math.prod(shape)
        rows = f.reshape(self.probs.detach(), (-1, self._num_events))
        if not count or not rows.shape[0]:
            return zeros((*shape, *self.batch_shape), dtype="int64")
        drawn = multinomial(rows, count, True)
        return f.reshape(drawn.mT, (*shape, *self.batch_shape))

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the category's probability."""
        x = f.to(self._validate_sample(value), "int64")
        x, _ = f.broadcast_tensors(f.unsqueeze(x, -1), self.logits[..., :1])
        logits = self.logits.expand((*x.shape[:-1], self._num_events))
        return f.squeeze(f.gather(logits, -1, x), -1)

    def entropy(self) -> Any:
        """-sum of p log(p)."""
        return -f.sum(f.xlogy(self.probs, self.probs), -1)

    def enumerate_support(self, expand: bool = True) -> Any:
        """All categories."""
        values = f.reshape(arange(self._num_events), (-1,) + (1,) * len(self.batch_shape))
        return values.expand((self._num_events, *self.batch_shape)) if expand else values

    @property
    def mean(self) -> Any:
        """NaN: categories are no numbers."""
        return f.sum(self.probs, -1) * math.nan

    @property
    def mode(self) -> Any:
        """The most likely category."""
        return f.argmax(self.probs, -1)

    @property
    def variance(self) -> Any:
        """NaN: categories are no numbers."""
        return f.sum(self.probs, -1) * math.nan

    def __repr__(self) -> str:
        value = getattr(self, self._by)
        return f"{type(self).__name__}({self._by}: {value if value.numel() == 1 else value.shape})"


class OneHotCategorical(Categorical):
    """The distribution of a category as a one-hot vector."""

    def _event(self) -> tuple[int, ...]:
        return (self._num_events,)

    @property
    def support(self) -> constraints.Constraint:
        """Vectors with a single 1."""
        return constraints.one_hot

    def sample(self, sample_shape: Sequence[int] = ()) -> Any:
        """Samples: one-hot vectors of floats."""
        return f.to(one_hot(super().sample(sample_shape), self._num_events), self.probs.dtype)

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the category's probability."""
        return f.sum(f.to(self._validate_sample(value), self.logits.dtype) * self.logits, -1)

    def enumerate_support(self, expand: bool = True) -> Any:
        """All vectors."""
        n = self._num_events
        ones = f.to(one_hot(arange(n), n), self.probs.dtype)
        values = f.reshape(ones, (n,) + (1,) * len(self.batch_shape) + (n,))
        return values.expand((n, *self.batch_shape, n)) if expand else values

    @property
    def mean(self) -> Any:
        """The probabilities."""
        return self.probs

    @property
    def mode(self) -> Any:
        """The vector of the most likely category."""
        return f.to(one_hot(super().mode, self._num_events), self.probs.dtype)

    @property
    def variance(self) -> Any:
        """p (1 - p)."""
        return self.probs * (1 - self.probs)


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """One-hot vectors with the gradient of the probabilities (Bengio et al. 2013)."""

    has_rsample = True

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        """Samples whose gradient is the gradient of the probabilities."""
        return self.sample(sample_shape) + (self.probs - self.probs.detach())


class Multinomial(Distribution):
    """The distribution of the counts of k categories in ``total_count`` draws."""

    arg_constraints = {"logits": constraints.real_vector}  # noqa: RUF012

    def __init__(
        self,
        total_count: int = 1,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        self.total_count = int(total_count)
        self._one = Categorical(probs, logits, validate_args)
        self.probs, self.logits = self._one.probs, self._one.logits
        n = self._one._num_events
        super().__init__(self._one.batch_shape, (n,), validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        """The distribution with its parameters expanded to a larger batch shape."""
        shape = (*batch_shape, *self.event_shape)
        return Multinomial(self.total_count, logits=self.logits.expand(shape), validate_args=False)

    @property
    def support(self) -> constraints.Constraint:
        """Counts that add up to ``total_count``."""
        return constraints.multinomial(self.total_count)

    def sample(self, sample_shape: Sequence[int] = ()) -> Any:
        """Samples: counts as floats."""
        shape = self._extended_shape(sample_shape)
        p = self.probs.detach().expand(shape).numpy().astype(np.float64)
        drawn = drawing().multinomial(self.total_count, p / p.sum(-1, keepdims=True))
        return tensor(np.asarray(drawn), self.probs.dtype)

    def log_prob(self, value: Any) -> Any:
        """log(n! / (x1! ... xk!)) + sum of x log(p)."""
        x = f.to(self._validate_sample(value), self.logits.dtype)
        ways = f.lgamma(f.sum(x, -1) + 1) - f.sum(f.lgamma(x + 1), -1)
        return ways + f.sum(f.where(x == 0, 0.0, x * self.logits), -1)

    def entropy(self) -> Any:
        """n H - log(n!) + the sum over the categories of the mean of log(x!), with x binomial."""
        n, p = self.total_count, self.probs
        counts = f.reshape(arange(n + 1, dtype=p.dtype), (-1,) + (1,) * p.ndim)
        each = Binomial(n, p, validate_args=False)
        terms = f.exp(each.log_prob(counts)) * f.lgamma(counts + 1)
        return n * self._one.entropy() - math.lgamma(n + 1) + f.sum(f.sum(terms, 0), -1)

    @property
    def mean(self) -> Any:
        """n p."""
        return self.total_count * self.probs

    @property
    def variance(self) -> Any:
        """n p (1 - p)."""
        return self.total_count * self.probs * (1 - self.probs)
