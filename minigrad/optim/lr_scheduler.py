"""Learning rate schedules with PyTorch's names and values.

A schedule is created for an optimizer and sets its rates at once. Each ``step()`` sets new rates.
It is called after the optimizer's step, once per epoch or once per batch. Schedules that only
multiply the present rate can be combined. In this module t counts steps from 0. *base* is the rate
of a group when its first schedule was created.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from typing import Any

from minigrad.functions.arguments import integer, real
from minigrad.optim.optimizers import Optimizer
from minigrad.runtime.recorders import give_up, repeated
from minigrad.tape.tensor_base import TensorBase

__all__ = [
    "ChainedScheduler",
    "ConstantLR",
    "CosineAnnealingLR",
    "CosineAnnealingWarmRestarts",
    "CyclicLR",
    "ExponentialLR",
    "LRScheduler",
    "LambdaLR",
    "LinearLR",
    "MultiStepLR",
    "MultiplicativeLR",
    "OneCycleLR",
    "PolynomialLR",
    "ReduceLROnPlateau",
    "SequentialLR",
    "StepLR",
]


class LRScheduler:
    """Base class of schedules. A subclass defines ``get_lr()``.

    ``get_lr()`` returns the rates of the groups for step ``last_epoch``, from their present rates
    or from ``base_lrs``. ``last_epoch`` is -1 at the start. A run that resumes without a saved
    state of the schedule passes the last completed step. Its groups must have an "initial_lr", as
    in an optimizer's state.

    Such a run keeps rates that are neither the base rates nor the schedule's rates of that step.
    Another schedule or the user set them. The first of several combined schedules would therefore
    hide the effect of the others. Load the optimizer's state first, or resume each schedule by its
    own state.

    Raises TypeError unless ``optimizer`` is an optimizer. Raises ValueError for a missing initial
    rate and for arguments out of range.

    >>> import minigrad as mg
    >>> class Halving(mg.optim.lr_scheduler.LRScheduler):
    ...     def get_lr(self):
    ...         return [base * 0.5**self.last_epoch for base in self.base_lrs]
    >>> optimizer = mg.optim.SGD([mg.zeros(1, requires_grad=True)], lr=0.8)
    >>> scheduler = Halving(optimizer)
    >>> for _ in range(3):
    ...     optimizer.step()
    ...     scheduler.step()
    >>> scheduler.get_last_lr()
    [0.1]
    """

    optimizer: Optimizer
    base_lrs: list[float]
    last_epoch: int
    _last_lr: list[float]
    _no_state: tuple[str, ...] = ("optimizer",)  # attributes that are not part of the state

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        groups = self._groups_of(optimizer)
        self.last_epoch = self._whole("last_epoch", last_epoch, -1)
        for place, group in enumerate(groups):
            if self.last_epoch == -1:
                group.setdefault("initial_lr", group["lr"])
            elif "initial_lr" not in group:
                raise ValueError(
                    f"[{type(self).__name__}] to go on from step {last_epoch} group {place} needs "
                    "an 'initial_lr'"
                )
        self.base_lrs = [group["initial_lr"] for group in groups]
        if self.last_epoch >= 0:
            self._go_on()
        else:
            self.step()

    def _go_on(self) -> None:
        """Make the step after ``last_epoch`` of a resumed run."""
        self.step()

    def _groups_of(self, optimizer: Any) -> list[dict[str, Any]]:
        """Set the optimizer, and return its groups."""
        if not isinstance(optimizer, Optimizer):
            raise TypeError(
                f"[{type(self).__name__}] expected an optimizer, not {type(optimizer).__name__}"
            )
        self.optimizer = optimizer
        return optimizer.param_groups

    def get_lr(self) -> list[float]:
        """The rates of the groups for step ``last_epoch``."""
        raise NotImplementedError(f"[{type(self).__name__}] has no get_lr method")

    @repeated
    def step(self) -> None:
        """Advance to the next step, and set its rates."""
        self.last_epoch += 1
        self._set(self.get_lr())

    def get_last_lr(self) -> list[float]:
        """The rates that were set last, one for each group."""
        return list(self._last_lr)

    def state_dict(self) -> dict[str, Any]:
        """The progress and options of the schedule, without functions.

        "_last_lr" has the rates of the optimizer.
        """
        own = {k: deepcopy(v) for k, v in self.__dict__.items() if k not in self._no_state}
        return own | {"_last_lr": self._now()}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Resume from a state of a schedule of this class, and set the optimizer's rates.

        The optimizer's state may be loaded before or after it. Raises TypeError unless the state is
        a dict, and for entries of another type. Raises ValueError for other entries or values out
        of range. An error changes nothing.
        """
        self._check_state(state_dict)
        self._take(state_dict)
        self._restore()

    def _take(self, state: Mapping[str, Any]) -> None:
        """Set the attributes of a state, except the optimizer."""
        found = deepcopy(dict(state))
        if "milestones" in found and isinstance(self.__dict__.get("milestones"), Counter):
            found["milestones"] = Counter(found["milestones"])
        self.__dict__.update(found)

    def _restore(self) -> None:
        """Set the rates of this schedule in the optimizer again."""
        for group, rate in zip(self.optimizer.param_groups, self._last_lr, strict=False):
            group["lr"] = rate

    def _check_state(self, state: Any) -> None:
        """Raise an error unless this is a state of a schedule of this class."""
        name = type(self).__name__
        if not isinstance(state, Mapping):
            raise TypeError(
                f"[{name}] a state is what state_dict gives, not {type(state).__name__}"
            )
        own = self.__dict__.keys() - set(self._no_state)
        if state.keys() != own:
            raise ValueError(
                f"[{name}] a state has {', '.join(sorted(own))}, "
                f"this one {', '.join(sorted(map(str, state)))}"
            )
        most = len(self.optimizer.param_groups)
        for key, value in state.items():
            checked = type(self).__module__.startswith("minigrad.optim.") or key in _CHECKED
            if checked and not _alike(self.__dict__[key], value, key):
                raise ValueError(
                    f"[{name}] {key!r} of the state is {value!r}, which cannot take the place of "
                    f"{self.__dict__[key]!r}"
                )
            if key in ("base_lrs", "_last_lr") and not 0 < len(value) <= most:
                raise ValueError(f"[{name}] {key!r} has {len(value)} rates for {most} groups")

    # ---- what subclasses use ----

    def _now(self) -> list[float]:
        """The present rates of the groups."""
        return [group["lr"] for group in self.optimizer.param_groups]

    def _set(self, rates: Sequence[float]) -> None:
        give_up(f"{type(self).__name__}.step", "is a method of the user's")  # ours are repeated
        self._last_lr = list(rates)
        for group, rate in zip(self.optimizer.param_groups, rates, strict=False):
            group["lr"] = rate  # groups that were added later keep their rates

    def _begin(self) -> None:
        """Make the first step again, from the base rates."""
        self.last_epoch = -1
        self.step()

    def _follow(self, rates: Sequence[float]) -> None:
        """Make the first step after another schedule, from the base rates."""
        for group, rate in zip(self.optimizer.param_groups, rates, strict=False):
            group["lr"] = rate
        self._begin()

    def _number(
        self, name: str, value: Any, least: float = -math.inf, most: float = math.inf
    ) -> float:
        """An argument within [least, most], and not NaN."""
        op = type(self).__name__
        found = real(op, name, value)
        if not least <= found <= most:
            rule = f"at least {least:g}" if most == math.inf else f"in [{least:g}, {most:g}]"
            rule = rule if least > -math.inf else "a number"
            raise ValueError(f"[{op}] {name} is {value}, but must be {rule}")
        return found

    def _whole(self, name: str, value: Any, least: int = 0) -> int:
        return integer(type(self).__name__, name, value, least)

    def _for_each_group(self, name: str, value: Any) -> list[Any]:
        """A list with a value for each group, from such a list or from one value."""
        count = len(self.optimizer.param_groups)
        if not isinstance(value, (list, tuple)):
            return [value] * count
        if len(value) != count:
            raise ValueError(
                f"[{type(self).__name__}] {name} has {len(value)} entries for {count} groups"
            )
        return list(value)


_LRScheduler = LRScheduler  # PyTorch's older name


class _FromRates(LRScheduler):
    """Base of schedules that start from the present rates, with a formula for the rates alone."""

    def _own_rates(self, t: int) -> list[float]:
        """The rates of step t if there is no other schedule."""
        raise NotImplementedError

    def _go_on(self) -> None:
        before, after = self._own_rates(self.last_epoch), self._own_rates(self.last_epoch + 1)
        self.last_epoch += 1
        rates = self._now()
        for k, (base, old, new) in enumerate(zip(self.base_lrs, before, after, strict=True)):
            if any(math.isclose(rates[k], one, rel_tol=1e-6) for one in (base, old)):
                rates[k] = new
        self._set(rates)


_CHECKED = ("last_epoch", "base_lrs", "_last_lr")  # entries checked for subclasses of users

# The smallest and largest values of options with a limited range.
_RANGES = {
    **dict.fromkeys(["step_size", "T_max", "T_0", "T_i", "T_mult", "total_steps"], (1, math.inf)),
    **dict.fromkeys(["factor", "end_factor"], (0.0, 1.0)),
    **{"step_size_up": (5e-324, math.inf), "step_size_down": (0.0, math.inf)},
    "start_factor": (5e-324, 1.0),
    "T_cur": (0.0, 2.0**53),
}
_CHOICES = {
    "mode": ("min", "max"),
    "threshold_mode": ("rel", "abs"),
    "anneal_strategy": ("cos", "linear"),
    "scale_mode": ("cycle", "iterations"),
    "": ("start", "max", "end", "base"),  # ends of a phase of OneCycleLR
}
_CYCLES = ("triangular", "triangular2", "exp_range")  # modes of CyclicLR


def _alike(own: Any, value: Any, key: str = "") -> bool:
    """True if a state's value may replace a schedule's value with this key."""
    if isinstance(own, str):
        choices = _CYCLES if own in _CYCLES else _CHOICES[key]
        return isinstance(value, str) and value in choices
    if isinstance(own, Counter):
        return isinstance(value, Mapping) and all(
            type(n) is int and n >= 0 for pair in value.items() for n in pair
        )
    if isinstance(own, dict):
        same = isinstance(value, Mapping) and own.keys() == value.keys()
        return same and all(_alike(own[k], value[k]) for k in own)
    if isinstance(own, (list, tuple)):
        if not isinstance(value, (list, tuple)) or bool(own) > bool(value):
            return False
        if isinstance(own, tuple):
            return len(own) == len(value) and all(map(_alike, own, value))
        return all(_alike(own[-1] if own else 0.0, v) for v in value)
    if isinstance(own, (int, float)) and not isinstance(own, bool):
        whole = isinstance(own, int) and key != ""  # rates in a list may be integers
        least, most = _RANGES.get(key, (0 if whole else -math.inf, math.inf))
        kind = int if whole else (int, float)
        return isinstance(value, kind) and not isinstance(value, bool) and least <= value <= most
    return type(own) is type(value)


# ---- functions of one's own ----------------------------------------------------------------------


class LambdaLR(LRScheduler):
    """``base * lr_lambda(t)``, with one function or a list with a function for each group.

    >>> import minigrad as mg
    >>> optimizer = mg.optim.SGD([mg.zeros(1, requires_grad=True)], lr=0.5)
    >>> scheduler = LambdaLR(optimizer, lambda t: 1 / (1 + t))
    >>> scheduler.step()
    >>> scheduler.get_last_lr()
    [0.25]
    """

    _no_state = ("optimizer", "lr_lambdas")

    def __init__(self, optimizer: Optimizer, lr_lambda: Any, last_epoch: int = -1) -> None:
        self._groups_of(optimizer)
        self.lr_lambdas: list[Callable[[int], float]] = self._for_each_group("lr_lambda", lr_lambda)
        for function in self.lr_lambdas:
            if not callable(function):
                raise TypeError(
                    f"[{type(self).__name__}] lr_lambda must be a function, not "
                    f"{type(function).__name__}"
                )
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """The base rates times the functions' results."""
        both = zip(self.base_lrs, self.lr_lambdas, strict=False)
        return [base * f(self.last_epoch) for base, f in both]


class MultiplicativeLR(_FromRates, LambdaLR):
    """The rate times ``lr_lambda(t)`` at each step except the first.

    After other schedules in a :class:`SequentialLR` it continues from their rate, times
    ``lr_lambda(0)``.
    """

    def get_lr(self) -> list[float]:
        """The rates times the functions' results."""
        return self._product() if self.last_epoch else self._now()

    def _product(self) -> list[float]:
        both = zip(self._now(), self.lr_lambdas, strict=False)
        return [rate * f(self.last_epoch) for rate, f in both]

    def _own_rates(self, t: int) -> list[float]:
        both = zip(self.base_lrs, self.lr_lambdas, strict=True)
        return [base * math.prod(map(f, range(1, t + 1))) for base, f in both]

    def _follow(self, rates: Sequence[float]) -> None:
        self.last_epoch = 0
        self._set(self._product())


# ---- factors -------------------------------------------------------------------------------------


class _Factors(_FromRates):
    """Base of schedules whose steps multiply the present rates."""

    def _factor(self, t: int) -> float:
        """The factor of step t."""
        raise NotImplementedError

    def get_lr(self) -> list[float]:
        """The rates times the factor of this step."""
        factor = self._factor(self.last_epoch)
        return [rate * factor for rate in self._now()]

    def _total(self, t: int) -> float:
        """The product of the factors of all steps up to t."""
        raise NotImplementedError

    def _own_rates(self, t: int) -> list[float]:
        return [base * self._total(t) for base in self.base_lrs]


class StepLR(_Factors):
    """The rate times ``gamma`` every ``step_size`` steps.

    >>> import minigrad as mg
    >>> optimizer = mg.optim.SGD([mg.zeros(1, requires_grad=True)], lr=1.0)
    >>> scheduler = StepLR(optimizer, step_size=2, gamma=0.5)
    >>> for _ in range(5):
    ...     scheduler.step()
    >>> scheduler.get_last_lr()
    [0.25]
    """

    def __init__(
        self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.step_size = self._whole("step_size", step_size, 1)
        self.gamma = self._number("gamma", gamma)
        super().__init__(optimizer, last_epoch)

    def _factor(self, t: int) -> float:
        return self.gamma if t and t % self.step_size == 0 else 1.0

    def _total(self, t: int) -> float:
        return float(self.gamma ** (t // self.step_size))


class MultiStepLR(_Factors):
    """The rate times ``gamma`` at each of the steps in ``milestones``."""

    def __init__(
        self,
        optimizer: Optimizer,
        milestones: Iterable[int],
        gamma: float = 0.1,
        last_epoch: int = -1,
    ) -> None:
        self.milestones = Counter([self._whole("a milestone", t) for t in milestones])
        self.gamma = self._number("gamma", gamma)
        super().__init__(optimizer, last_epoch)

    def _factor(self, t: int) -> float:
        return float(self.gamma ** self.milestones[t])

    def _total(self, t: int) -> float:
        passed = sum(count for milestone, count in self.milestones.items() if milestone <= t)
        return float(self.gamma**passed)


class ExponentialLR(_Factors):
    """``base * gamma**t``."""

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = self._number("gamma", gamma)
        super().__init__(optimizer, last_epoch)

    def _factor(self, t: int) -> float:
        return self.gamma if t else 1.0

    def _total(self, t: int) -> float:
        return float(self.gamma**t)


class ConstantLR(_Factors):
    """``base * factor`` before step ``total_iters``, then the base rate.

    As in PyTorch, ``total_iters=0`` keeps ``base * factor`` for ever.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        factor: float = 1.0 / 3,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        self.factor = self._number("factor", factor, 0.0, 1.0)
        if not self.factor:
            raise ValueError("[ConstantLR] from a factor of 0 there is no way back")
        self.total_iters = self._whole("total_iters", total_iters)
        super().__init__(optimizer, last_epoch)

    def _factor(self, t: int) -> float:
        if not t:
            return self.factor
        return 1.0 / self.factor if t == self.total_iters else 1.0

    def _total(self, t: int) -> float:
        return 1.0 if 0 < self.total_iters <= t else self.factor


class LinearLR(_Factors):
    """A line from ``base * start_factor`` to ``base * end_factor`` at ``total_iters``.

    >>> import minigrad as mg
    >>> optimizer = mg.optim.SGD([mg.zeros(1, requires_grad=True)], lr=1.0)
    >>> warmup = LinearLR(optimizer, start_factor=0.25, total_iters=3)
    >>> for _ in range(3):
    ...     print(optimizer.param_groups[0]["lr"])
    ...     warmup.step()
    0.25
    0.5
    0.75
    """

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        self.start_factor = self._number("start_factor", start_factor, 0.0, 1.0)
        if not self.start_factor:
            raise ValueError("[LinearLR] from a start_factor of 0 there is no way back")
        self.end_factor = self._number("end_factor", end_factor, 0.0, 1.0)
        self.total_iters = self._whole("total_iters", total_iters)
        super().__init__(optimizer, last_epoch)

    def _factor(self, t: int) -> float:
        if not t:
            return self.start_factor
        if t > self.total_iters:
            return 1.0
        # a weighted mean of both ends, since a difference may be rounded below 0
        start, end, left = self.start_factor, self.end_factor, self.total_iters - t
        return (start * left + end * t) / (start * (left + 1) + end * (t - 1))

    def _total(self, t: int) -> float:
        done = min(t, self.total_iters) / (self.total_iters or 1)
        return self.start_factor * (1.0 - done) + self.end_factor * done


class PolynomialLR(_Factors):
    """``base * (1 - t / total_iters) ** power``, and 0 from step ``total_iters`` on."""

    def __init__(
        self,
        optimizer: Optimizer,
        total_iters: int = 5,
        power: float = 1.0,
        last_epoch: int = -1,
    ) -> None:
        self.total_iters = self._whole("total_iters", total_iters)
        self.power = self._number("power", power, 0.0)
        super().__init__(optimizer, last_epoch)

    def _factor(self, t: int) -> float:
        n = self.total_iters
        if not t or t > n:
            return 1.0
        return float(((1.0 - t / n) / (1.0 - (t - 1) / n)) ** self.power)

    def _total(self, t: int) -> float:
        n = self.total_iters
        return float((1.0 - min(t, n) / n) ** self.power) if n else 1.0


# ---- cosines and cycles --------------------------------------------------------------------------


class CosineAnnealingLR(_FromRates):
    """``eta_min + (base - eta_min) * (1 + cos(pi * t / T_max)) / 2``: falls in ``T_max`` steps.

    Then it rises in as many steps, and so on. This is equation 5 of Loshchilov & Hutter 2017 (SGDR)
    without restarts. :class:`CosineAnnealingWarmRestarts` has restarts. Each step starts from the
    present rates.

    >>> import minigrad as mg
    >>> optimizer = mg.optim.SGD([mg.zeros(1, requires_grad=True)], lr=1.0)
    >>> scheduler = CosineAnnealingLR(optimizer, T_max=4)
    >>> for _ in range(2):
    ...     scheduler.step()
    >>> round(scheduler.get_last_lr()[0], 6)
    0.5
    """

    def __init__(
        self,
        optimizer: Optimizer,
        T_max: int,  # noqa: N803 - PyTorch's name
        eta_min: float = 0.0,
        last_epoch: int = -1,
    ) -> None:
        self.T_max = self._whole("T_max", T_max, 1)
        self.eta_min = self._number("eta_min", eta_min)
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """The rates of this step, computed from the rates of the last step."""
        t, n, least = self.last_epoch, self.T_max, self.eta_min
        if not t:
            return self._now()
        if (t - 1) % (2 * n) == n:  # up from the lowest rate, by addition
            up = (1.0 - math.cos(math.pi / n)) / 2
            both = zip(self._now(), self.base_lrs, strict=False)
            return [rate + (base - least) * up for rate, base in both]
        part = (1.0 + math.cos(math.pi * t / n)) / (1.0 + math.cos(math.pi * (t - 1) / n))
        return [least + (rate - least) * part for rate in self._now()]

    def _own_rates(self, t: int) -> list[float]:
        height = (1.0 + math.cos(math.pi * t / self.T_max)) / 2
        return [self.eta_min + (base - self.eta_min) * height for base in self.base_lrs]


class CosineAnnealingWarmRestarts(LRScheduler):
    """Repeated cosines from the base rate down to ``eta_min`` (SGDR).

    This is Loshchilov & Hutter 2017, equation 5. The first cosine takes ``T_0`` steps, and each
    later one ``T_mult`` times as many as the last. ``step(epoch)`` goes to any point, also between
    two steps: ``scheduler.step(epoch + batch / batches)``.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        T_0: int,  # noqa: N803 - PyTorch's name
        T_mult: int = 1,  # noqa: N803
        eta_min: float = 0.0,
        last_epoch: int = -1,
    ) -> None:
        self.T_0 = self.T_i = self._whole("T_0", T_0, 1)
        self.T_mult = self._whole("T_mult", T_mult, 1)
        self.eta_min = self._number("eta_min", eta_min)
        self.T_cur = float(last_epoch)  # position in the present cosine of T_i steps
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """The rates at this point of the present cosine."""
        height = (1.0 + math.cos(math.pi * self.T_cur / self.T_i)) / 2
        return [self.eta_min + (base - self.eta_min) * height for base in self.base_lrs]

    @repeated
    def step(self, epoch: float | None = None) -> None:
        """Advance by one step, or to a given point."""
        if epoch is None:
            self.last_epoch += 1
            self.T_cur += 1.0
        else:
            self.T_cur, self.T_i = self._number("epoch", epoch, 0.0), self.T_0
            if self.T_cur == math.inf:
                raise ValueError("[CosineAnnealingWarmRestarts] epoch is inf")
            self.last_epoch = math.floor(self.T_cur)
        if self.T_mult == 1:
            self.T_cur %= self.T_i
        while self.T_cur >= self.T_i:
            self.T_cur -= self.T_i
            self.T_i *= self.T_mult
        self._set(self.get_lr())

    def _begin(self) -> None:
        self.step(0)


class _WithMomentum(LRScheduler):
    """Base of schedules whose ``get_lr`` also sets momenta, or the first of Adam's betas."""

    _momenta: dict[str, list[float]] | None

    def _cycled(self, cycle: bool, base: Any, most: Any) -> dict[str, list[float]] | None:
        """The "base" and "max" momenta of the groups; None if momenta do not cycle."""
        name = type(self).__name__
        if not cycle:
            return None
        if not {"momentum", "betas"} & set(self.optimizer.defaults):
            raise ValueError(
                f"[{name}] {type(self.optimizer).__name__} has no momentum: use "
                "cycle_momentum=False"
            )
        return {
            which: [
                self._number(f"{which}_momentum", m, 0.0, 1.0)
                for m in self._for_each_group(f"{which}_momentum", value)
            ]
            for which, value in (("base", base), ("max", most))
        }

    def _set_momenta(self, momenta: Iterable[float]) -> None:
        for group, m in zip(self.optimizer.param_groups, momenta, strict=False):
            if "betas" in group:
                group["betas"] = (m, *group["betas"][1:])
            else:
                group["momentum"] = m

    def _restore(self) -> None:
        self.get_lr()  # sets the momenta
        super()._restore()


class CyclicLR(_WithMomentum):
    """Cycles from ``base_lr`` up to ``max_lr`` and back (Smith 2017).

    The rate rises for ``step_size_up`` steps and falls for ``step_size_down`` steps, by default as
    many. If ``mode`` is "triangular" all cycles have the same height. For "triangular2" the height
    halves with each cycle. For "exp_range" it is multiplied by ``gamma`` at each step. ``scale_fn``
    replaces these modes: it gives the height as a function of the cycle's number from 1 or, if
    ``scale_mode`` is "iterations", of t.

    With ``cycle_momentum`` the momentum, or the first of the betas, moves in the opposite
    direction, from ``max_momentum`` to ``base_momentum`` and back. Rates and momenta may be lists
    with a value per group. A saved state has no function.

    >>> import minigrad as mg
    >>> optimizer = mg.optim.SGD([mg.zeros(1, requires_grad=True)], lr=1.0, momentum=0.9)
    >>> scheduler = CyclicLR(optimizer, base_lr=0.5, max_lr=1.0, step_size_up=2)
    >>> for _ in range(3):
    ...     scheduler.step()
    ...     scheduler.get_last_lr()
    [0.75]
    [1.0]
    [0.75]
    """

    _no_state = ("optimizer", "scale_fn")

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: Any,
        max_lr: Any,
        step_size_up: float = 2000,
        step_size_down: float | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: Any = 0.8,
        max_momentum: Any = 0.9,
        last_epoch: int = -1,
    ) -> None:
        groups = self._groups_of(optimizer)
        if mode not in _CYCLES:
            choices = ", ".join(map(repr, _CYCLES))
            raise ValueError(f"[CyclicLR] mode is {mode!r}, but must be one of {choices}")
        if scale_mode not in _CHOICES["scale_mode"]:
            raise ValueError(
                f"[CyclicLR] scale_mode is {scale_mode!r}, but must be 'cycle' or 'iterations'"
            )
        if scale_fn is not None and not callable(scale_fn):
            raise TypeError(
                f"[CyclicLR] scale_fn must be a function, not {type(scale_fn).__name__}"
            )
        self.mode, self.scale_mode, self.scale_fn = mode, scale_mode, scale_fn
        self.gamma = self._number("gamma", gamma)
        up = self.step_size_up = self._number("step_size_up", step_size_up, 0.0)
        down = up if step_size_down is None else step_size_down
        self.step_size_down = self._number("step_size_down", down, 0.0)
        if not up > 0.0:
            raise ValueError(f"[CyclicLR] step_size_up is {step_size_up}, but must be above 0")
        self._rates = {
            name: [self._number(f"{name}_lr", r) for r in self._for_each_group(f"{name}_lr", value)]
            for name, value in (("base", base_lr), ("max", max_lr))
        }
        self._momenta = self._cycled(cycle_momentum, base_momentum, max_momentum)
        if last_epoch == -1:
            for group, rate in zip(groups, self._rates["base"], strict=True):
                group["initial_lr"] = rate
        super().__init__(optimizer, last_epoch)

    def _scale(self, cycle: int) -> float:
        """The height of a cycle, as a fraction of the full height."""
        if self.scale_fn is not None:
            return self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.mode == "exp_range":
            return float(self.gamma**self.last_epoch)
        return 0.5 ** (cycle - 1) if self.mode == "triangular2" else 1.0

    def get_lr(self) -> list[float]:
        """The rates of this step. The momenta are set too."""
        total = self.step_size_up + self.step_size_down
        cycle = math.floor(1 + self.last_epoch / total)
        part, top = 1 + self.last_epoch / total - cycle, self.step_size_up / total
        height = (part / top if part <= top else (part - 1) / (top - 1)) * self._scale(cycle)
        if self._momenta is not None:
            both = zip(self._momenta["max"], self._momenta["base"], strict=True)
            self._set_momenta([most - (most - base) * height for most, base in both])
        both = zip(self._rates["base"], self._rates["max"], strict=True)
        return [base + (most - base) * height for base, most in both]


class OneCycleLR(_WithMomentum):
    """One cycle over a run: up to ``max_lr`` and down to almost 0 (Smith & Topin 2019).

    The rate rises from ``max_lr / div_factor`` during the first fraction ``pct_start`` of
    ``total_steps`` (or of ``epochs * steps_per_epoch``). Then it falls to the starting rate divided
    by ``final_div_factor``. With ``three_phase`` it first falls to the starting rate in as many
    steps as it rose. ``anneal_strategy`` is "cos" or "linear".

    With ``cycle_momentum`` the momentum, or the first of the betas, moves in the opposite
    direction, from ``max_momentum`` to ``base_momentum`` and back. Step the schedule after each
    batch. ``max_lr`` and the momenta may be lists with a value per group.

    Raises ValueError for a step after the last one.

    >>> import minigrad as mg
    >>> optimizer = mg.optim.SGD([mg.zeros(1, requires_grad=True)], lr=0.1, momentum=0.9)
    >>> scheduler = OneCycleLR(optimizer, max_lr=1.0, total_steps=10)
    >>> for _ in range(2):
    ...     scheduler.step()
    >>> optimizer.param_groups[0]["lr"], optimizer.param_groups[0]["momentum"]
    (1.0, 0.85)
    """

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: Any,
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: Any = 0.85,
        max_momentum: Any = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        groups = self._groups_of(optimizer)
        if total_steps is None:
            if epochs is None or steps_per_epoch is None:
                raise ValueError("[OneCycleLR] give total_steps, or epochs and steps_per_epoch")
            total_steps = self._whole("epochs", epochs, 1) * self._whole(
                "steps_per_epoch", steps_per_epoch, 1
            )
        n = self.total_steps = self._whole("total_steps", total_steps, 1)
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                f"[OneCycleLR] anneal_strategy is {anneal_strategy!r}, but must be 'cos' or "
                "'linear'"
            )
        self.anneal_strategy = anneal_strategy
        top = self._number("pct_start", pct_start, 0.0, 1.0) * n - 1
        down = self._number("div_factor", div_factor), self._number("final_div", final_div_factor)
        if not min(down) > 0.0:
            raise ValueError("[OneCycleLR] the factors to divide by must be above 0")
        rates = {"max": self._for_each_group("max_lr", max_lr)}
        rates["start"] = [self._number("max_lr", rate) / down[0] for rate in rates["max"]]
        rates["end"] = [rate / down[1] for rate in rates["start"]]
        # The last step of each phase, and the ends of its rates and momenta.
        self._phases = [(top, "start", "max", "max", "base"), (n - 1, "max", "end", "base", "max")]
        if three_phase:
            self._phases = [
                (top, "start", "max", "max", "base"),
                (2 * top, "max", "start", "base", "max"),
                (n - 1, "start", "end", "max", "max"),
            ]
        self._rates = rates
        self._momenta = self._cycled(cycle_momentum, base_momentum, max_momentum)
        for group, rate in zip(groups, rates["start"], strict=True):
            group["initial_lr"] = rate
        super().__init__(optimizer, last_epoch)

    def _check_state(self, state: Any) -> None:
        super()._check_state(state)
        t, n = state["last_epoch"], state["total_steps"]
        if t > n:
            raise ValueError(f"[OneCycleLR] the state is of step {t} of a run of {n} steps")

    def get_lr(self) -> list[float]:
        """The rates of this step. The momenta are set too."""
        t, start = self.last_epoch, 0.0
        if t > self.total_steps:
            raise ValueError(f"[OneCycleLR] step {t} of a run of {self.total_steps} steps")
        phase = bisect_left([end for end, *_ in self._phases[:-1]], t)
        if phase:
            start = self._phases[phase - 1][0]
        end, *ways = self._phases[phase]
        part = min((t - start) / (end - start), 1.0) if end > start else 1.0
        if self.anneal_strategy == "cos":
            part = (1.0 - math.cos(math.pi * part)) / 2

        def between(values: dict[str, list[float]], first: str, last: str) -> list[float]:
            both = zip(values[first], values[last], strict=True)
            return [b + (a - b) * (1.0 - part) for a, b in both]

        if self._momenta is not None:
            self._set_momenta(between(self._momenta, *ways[2:]))
        return between(self._rates, *ways[:2])


# ---- what depends on how it goes -----------------------------------------------------------------


class ReduceLROnPlateau(LRScheduler):
    """The rate times ``factor`` when a metric has not improved for more than ``patience`` steps.

    ``mode`` is "min" or "max". An improvement must be larger than ``threshold``. The threshold is a
    fraction of the best value if ``threshold_mode`` is "rel", and a difference if "abs". After a
    change of the rate no steps are counted for ``cooldown`` steps. A rate does not fall below
    ``min_lr``, and does not change by ``eps`` or less.

    >>> import minigrad as mg
    >>> optimizer = mg.optim.SGD([mg.zeros(1, requires_grad=True)], lr=1.0)
    >>> scheduler = ReduceLROnPlateau(optimizer, factor=0.5, patience=1)
    >>> for loss in [3.0, 2.0, 2.0, 2.0]:
    ...     scheduler.step(loss)
    >>> scheduler.get_last_lr()
    [0.5]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: Any = 0.0,
        eps: float = 1e-8,
    ) -> None:
        for name, value, choices in (
            ("mode", mode, ("min", "max")),
            ("threshold_mode", threshold_mode, ("rel", "abs")),
        ):
            if value not in choices:
                raise ValueError(
                    f"[ReduceLROnPlateau] {name} is {value!r}, but must be "
                    f"{choices[0]!r} or {choices[1]!r}"
                )
        self._groups_of(optimizer)
        self.mode, self.threshold_mode = mode, threshold_mode
        self.factor = self._number("factor", factor, 0.0)
        if self.factor >= 1.0:
            raise ValueError(f"[ReduceLROnPlateau] factor is {factor}, but must be below 1")
        self.patience = self._whole("patience", patience)
        self.threshold = self._number("threshold", threshold)
        self.cooldown = self._whole("cooldown", cooldown)
        self.min_lrs = [self._number("min_lr", m) for m in self._for_each_group("min_lr", min_lr)]
        self.eps = self._number("eps", eps)
        self.last_epoch = self.num_bad_epochs = self.cooldown_counter = 0
        self.best = math.inf if mode == "min" else -math.inf
        self._last_lr = self._now()

    def _is_better(self, metric: float) -> bool:
        relative = self.threshold_mode == "rel" and math.isfinite(self.best)
        margin = self.threshold * (self.best if relative else 1.0)
        if self.mode == "min":
            return metric < self.best - margin
        return metric > self.best + margin

    def step(self, metrics: Any = None) -> None:
        """Advance to the next step, with a metric: a number or a tensor of one element."""
        if metrics is None:
            raise TypeError("[ReduceLROnPlateau] step needs the metric: scheduler.step(loss)")
        value = metrics.item() if isinstance(metrics, TensorBase) else metrics  # type: ignore[attr-defined]
        metric = real("ReduceLROnPlateau", "the metric", value)
        self.last_epoch += 1
        self.num_bad_epochs += 1
        if self._is_better(metric):
            self.best, self.num_bad_epochs = metric, 0
        if self.cooldown_counter:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        rates = self._now()
        if self.num_bad_epochs > self.patience:
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0
            least = self.min_lrs + [0.0] * (len(rates) - len(self.min_lrs))
            lower = [max(r * self.factor, m) for r, m in zip(rates, least, strict=True)]
            rates = [b if a - b > self.eps else a for a, b in zip(rates, lower, strict=True)]
        self._set(rates)


# ---- several -------------------------------------------------------------------------------------


class _Several(LRScheduler):
    """Base of combined schedules of one optimizer."""

    _no_state = ("optimizer", "schedulers")

    def __init__(self, optimizer: Optimizer | None, schedulers: Sequence[LRScheduler]) -> None:
        name = type(self).__name__
        self.schedulers = list(schedulers)
        for one in self.schedulers:
            if not isinstance(one, LRScheduler) or isinstance(one, ReduceLROnPlateau):
                raise TypeError(
                    f"[{name}] cannot step a {type(one).__name__} with others: step it by itself"
                )
        if not self.schedulers:
            raise ValueError(f"[{name}] needs at least one schedule")
        groups = self._groups_of(self.schedulers[0].optimizer if optimizer is None else optimizer)
        if any(one.optimizer is not self.optimizer for one in self.schedulers):
            raise ValueError(f"[{name}] the schedules are not all for the same optimizer")
        self.base_lrs = [group["initial_lr"] for group in groups]
        self.last_epoch = 0
        self._last_lr = self._now()

    def state_dict(self) -> dict[str, Any]:
        """The state, with a list of the schedules' states as "schedulers"."""
        return super().state_dict() | {"schedulers": [s.state_dict() for s in self.schedulers]}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Resume from a state of the same schedules. A state that does not fit changes nothing."""
        super().load_state_dict(state_dict)

    def _take(self, state: Mapping[str, Any]) -> None:
        for one, of in zip(self.schedulers, state["schedulers"], strict=True):
            one._take(of)
        super()._take({k: v for k, v in state.items() if k != "schedulers"})

    def _restore(self) -> None:
        for one in self.schedulers[: self._begun()]:
            one._restore()
        super()._restore()

    def _begun(self) -> int:
        """The number of schedules that have begun."""
        return len(self.schedulers)

    def _check_state(self, state: Any) -> None:
        states = state.get("schedulers", ()) if isinstance(state, Mapping) else ()
        if not isinstance(states, (list, tuple)) or len(states) != len(self.schedulers):
            raise ValueError(
                f"[{type(self).__name__}] the state is not that of {len(self.schedulers)} schedules"
            )
        super()._check_state({k: v for k, v in state.items() if k != "schedulers"})
        for one, of in zip(self.schedulers, states, strict=True):
            one._check_state(of)


class ChainedScheduler(_Several):
    """Several schedules at once: each changes the rates that the schedules before it have set.

    >>> import minigrad as mg
    >>> optimizer = mg.optim.SGD([mg.zeros(1, requires_grad=True)], lr=1.0)
    >>> both = [ConstantLR(optimizer, 0.5, total_iters=2), ExponentialLR(optimizer, 0.5)]
    >>> scheduler = ChainedScheduler(both)
    >>> for _ in range(2):
    ...     scheduler.step()
    >>> scheduler.get_last_lr()
    [0.25]
    """

    def __init__(
        self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None
    ) -> None:
        super().__init__(optimizer, schedulers)

    @repeated
    def step(self) -> None:
        """Step each schedule."""
        self.last_epoch += 1
        for one in self.schedulers:
            one.step()
        self._last_lr = self._now()

    def _begin(self) -> None:
        self.last_epoch = 0
        for one in self.schedulers:
            one._begin()
        self._last_lr = self._now()


class SequentialLR(_Several):
    """Schedules in sequence: the next one begins at each step in ``milestones``.

    A schedule begins with its own first step and from the base rate, except
    :class:`MultiplicativeLR`.

    >>> import minigrad as mg
    >>> optimizer = mg.optim.SGD([mg.zeros(1, requires_grad=True)], lr=1.0)
    >>> warmup = LinearLR(optimizer, start_factor=0.1, total_iters=10)
    >>> decay = CosineAnnealingLR(optimizer, T_max=90)
    >>> scheduler = SequentialLR(optimizer, [warmup, decay], milestones=[10])
    >>> scheduler.get_last_lr()
    [0.1]
    """

    def __init__(
        self, optimizer: Optimizer, schedulers: Sequence[LRScheduler], milestones: Sequence[int]
    ) -> None:
        super().__init__(optimizer, schedulers)
        self.milestones = [self._whole("a milestone", t, 1) for t in milestones]
        if len(self.milestones) != len(self.schedulers) - 1:
            raise ValueError(
                f"[SequentialLR] {len(self.schedulers)} schedules need "
                f"{len(self.schedulers) - 1} milestones, not {len(self.milestones)}"
            )
        self._check_milestones(self.milestones)
        self._begin()

    def _check_milestones(self, milestones: Sequence[int]) -> None:
        if list(milestones) != sorted(set(milestones)):
            raise ValueError(f"[SequentialLR] the milestones {milestones} do not rise")

    def _check_state(self, state: Any) -> None:
        super()._check_state(state)
        found = state["milestones"]
        if len(found) != len(self.milestones) or not all(type(t) is int and t > 0 for t in found):
            raise ValueError(
                f"[SequentialLR] the milestones {found} are no {len(self.milestones)} steps"
            )
        self._check_milestones(found)

    def _begun(self) -> int:
        return bisect_right(self.milestones, self.last_epoch) + 1

    @repeated
    def step(self) -> None:
        """Step the current schedule."""
        self.last_epoch += 1
        turn = bisect_right(self.milestones, self.last_epoch)
        if turn and self.milestones[turn - 1] == self.last_epoch:
            self.schedulers[turn]._follow(self.base_lrs)
        else:
            self.schedulers[turn].step()
        self._last_lr = self._now()

    def _begin(self) -> None:
        self.last_epoch = 0
        LRScheduler._follow(self.schedulers[0], self.base_lrs)
        self._last_lr = self._now()
