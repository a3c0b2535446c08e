"""Averages of a model's weights over a run: stochastic weight averaging and moving averages.

The source is Izmailov et al., Averaging Weights Leads to Wider Optima and Better Generalization
(2018). Names are PyTorch's.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable
from copy import deepcopy
from typing import TYPE_CHECKING, Any

from minigrad.functions.creation import tensor
from minigrad.functions.grad_modes import no_grad
from minigrad.functions.selection import where
from minigrad.nn.module import Module
from minigrad.nn.normalization import BatchNorm1d, BatchNorm2d, BatchNorm3d
from minigrad.optim.lr_scheduler import LRScheduler
from minigrad.optim.optimizers import Optimizer
from minigrad.runtime.dtypes import float64, int64
from minigrad.runtime.recorders import active
from minigrad.tape.tensor_base import TensorBase, wrap

if TYPE_CHECKING:
    from minigrad._tensor import Tensor

__all__ = [
    "SWALR",
    "AveragedModel",
    "get_ema_avg_fn",
    "get_ema_multi_avg_fn",
    "get_swa_avg_fn",
    "get_swa_multi_avg_fn",
    "update_bn",
]

_One = Callable[[Any, Any, Any], Any]
_Many = Callable[[list[Any], list[Any], Any], None]


# ---- kinds of averages ---------------------------------------------------------------------------


def get_swa_avg_fn() -> _One:
    """A function of the mean, the new value and the number of earlier values: the new mean.

    >>> get_swa_avg_fn()(2.0, 5.0, 2)
    3.0
    """

    def mean(averaged: Any, current: Any, count: Any) -> Any:
        return averaged + (current - averaged) / (count + 1)

    return mean


def get_ema_avg_fn(decay: float = 0.999) -> _One:
    """A function for the moving average that keeps ``decay`` of the old average.

    Raises ValueError for a decay outside [0, 1].

    >>> get_ema_avg_fn(0.75)(2.0, 6.0, 1)
    3.0
    """
    _check_decay("get_ema_avg_fn", decay)

    def moving(averaged: Any, current: Any, count: Any) -> Any:
        return decay * averaged + (1 - decay) * current

    return moving


def get_swa_multi_avg_fn() -> _Many:
    """A function that writes the mean of all values into a list of tensors."""
    return _on_lists(lambda count: 1 / (_number(count) + 1))


def get_ema_multi_avg_fn(decay: float = 0.999) -> _Many:
    """A function that writes the moving average with ``decay`` into a list of tensors.

    Raises ValueError for a decay outside [0, 1].

    >>> import minigrad as mg
    >>> averaged = [mg.tensor([2.0])]
    >>> get_ema_multi_avg_fn(0.75)(averaged, [mg.tensor([6.0])], 1)
    >>> averaged
    [tensor([3.])]
    """
    _check_decay("get_ema_multi_avg_fn", decay)
    return _on_lists(lambda _: 1 - decay)


def _number(count: Any) -> Any:
    """A count as a float. While recording, a tensor stays one, in float64."""
    if active() is not None and isinstance(count, TensorBase):
        return wrap(count._h).to(float64)
    return float(count)


def _on_lists(share: Callable[[Any], Any]) -> _Many:
    """A function for averages of lists.

    The new value's weight depends on the number of earlier ones.
    """

    def update(averaged: list[Any], current: list[Any], count: Any) -> None:
        weight = share(count)
        with no_grad():
            for a, b in zip(averaged, current, strict=True):
                if a.dtype.is_floating_point:
                    a.lerp_(b, _beside(a, weight))
                else:
                    old, new = a * _beside(a, 1 - weight), b * _beside(a, weight)
                    a.copy_((old + new).to(a.dtype))

    return update


def _beside(x: Any, weight: Any) -> Any:
    """A weight of the dtype in which x is multiplied by a number."""
    return weight if isinstance(weight, float) else weight.to((x * 1.0).dtype)


def _check_decay(name: str, decay: float) -> None:
    if not 0 <= decay <= 1:
        raise ValueError(f"[{name}] decay is {decay}, but must be in [0, 1]")


# ---- models --------------------------------------------------------------------------------------


class AveragedModel(Module):
    """A copy of a model whose parameters are averages of the model's parameters over training.

    ``update_parameters(model)`` adds the present parameters to the averages. The first call copies
    them. ``avg_fn(averaged, current, n_averaged)`` returns a new average of one parameter.
    ``multi_avg_fn`` writes new averages into the first of two lists of tensors of one dtype. At
    most one of the two may be given. The default is the mean of all values. With ``use_buffers``
    buffers are averaged too, else they are copied. ``n_averaged`` is the number of updates.

    Raises ValueError if both functions are given, and for a model with other parameters.

    >>> import minigrad as mg
    >>> model = mg.nn.Linear(1, 1, bias=False)
    >>> averaged = AveragedModel(model)
    >>> for weight in [1.0, 2.0, 6.0]:
    ...     mg.nn.init.constant_(model.weight, weight).item()
    ...     averaged.update_parameters(model)
    1.0
    2.0
    6.0
    >>> averaged(mg.ones(1, 1)).item()
    3.0
    """

    n_averaged: Tensor

    def __init__(
        self,
        model: Module,
        device: Any = None,
        avg_fn: _One | None = None,
        multi_avg_fn: _Many | None = None,
        use_buffers: bool = False,
    ) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise ValueError("[AveragedModel] give avg_fn or multi_avg_fn, not both")
        self.module = deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", tensor(0, int64))
        self.avg_fn, self.multi_avg_fn, self.use_buffers = avg_fn, multi_avg_fn, use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The output of the averaged model for these arguments."""
        return self.module(*args, **kwargs)

    def update_parameters(self, model: Module) -> None:
        """Add the present parameters of the model to the averages."""
        averaged, taken = self._pairs(model)
        recording = active() is not None  # the first call may be another than the recorded one
        with no_grad():
            if not recording and not self.n_averaged:
                taken += averaged
            elif self.avg_fn is not None:
                new = [self.avg_fn(a, b, self.n_averaged) for a, b in averaged]
                taken += [(a, b) for (a, _), b in zip(averaged, new, strict=True)]
            else:
                self._average_lists(averaged)
            for own, value in taken:
                own.copy_(value)
            for own, value in averaged if recording else ():
                own.copy_(where(self.n_averaged == 0, value, own))
            self.n_averaged += 1

    def _pairs(self, model: Module) -> tuple[list[tuple[Any, Any]], list[tuple[Any, Any]]]:
        """Pairs of an own tensor and the model's tensor: first pairs to average, then pairs to
        copy.
        """
        both = []
        for kind in ("parameters", "buffers"):
            own, other = (list(getattr(m, kind)()) for m in (self.module, model))
            if [x.shape for x in own] != [x.shape for x in other]:
                raise ValueError(
                    f"[AveragedModel] the {kind} of the model have other shapes than those that "
                    "were averaged"
                )
            both.append([(a.detach(), b.detach()) for a, b in zip(own, other, strict=True)])
        parameters, buffers = both
        return (parameters + buffers, []) if self.use_buffers else (parameters, buffers)

    def _average_lists(self, pairs: list[tuple[Any, Any]]) -> None:
        by_dtype = defaultdict(list)
        for pair in pairs:
            by_dtype[pair[0].dtype].append(pair)
        average = self.multi_avg_fn or get_swa_multi_avg_fn()
        for some in by_dtype.values():
            average([a for a, _ in some], [b for _, b in some], self.n_averaged)


def update_bn(loader: Iterable[Any], model: Module, device: Any = None) -> None:
    """Compute the running statistics of a model's batch normalizations in one pass over data.

    ``loader`` gives batches: tensors, or lists or tuples with the input first. The model's training
    mode is restored.

    >>> import minigrad as mg
    >>> model = mg.nn.BatchNorm1d(1)
    >>> update_bn([mg.tensor([[1.0], [3.0]]), mg.tensor([[5.0], [7.0]])], model)
    >>> model.running_mean
    tensor([4.])
    """
    kinds = (BatchNorm1d, BatchNorm2d, BatchNorm3d)
    norms = [m for m in model.modules() if isinstance(m, kinds) and m.running_mean is not None]
    if not norms:
        return
    momenta, training = [norm.momentum for norm in norms], model.training
    with no_grad():
        for norm in norms:
            norm.reset_running_stats()
        try:
            model.train()
            for norm in norms:
                norm.momentum = None  # the mean of all batches
            for batch in loader:
                x = batch[0] if isinstance(batch, (list, tuple)) else batch
                model(x if device is None else x.to(device))
        finally:
            for norm, momentum in zip(norms, momenta, strict=True):
                norm.momentum = momentum
            model.train(training)


# ---- the schedule --------------------------------------------------------------------------------


class SWALR(LRScheduler):
    """A rate that moves to ``swa_lr`` within ``anneal_epochs`` steps and stays there.

    ``anneal_strategy`` is "cos" or "linear". The schedule may follow another one, and starts from
    the present rate. ``swa_lr`` may be a list with a value for each group.

    >>> import minigrad as mg
    >>> optimizer = mg.optim.SGD([mg.zeros(1, requires_grad=True)], lr=1.0)
    >>> scheduler = SWALR(optimizer, swa_lr=0.5, anneal_epochs=2, anneal_strategy="linear")
    >>> for _ in range(3):
    ...     scheduler.step()
    ...     scheduler.get_last_lr()
    [0.75]
    [0.5]
    [0.5]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: Any,
        anneal_epochs: int = 10,
        anneal_strategy: str = "cos",
        last_epoch: int = -1,
    ) -> None:
        self._groups_of(optimizer)
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                f"[SWALR] anneal_strategy is {anneal_strategy!r}, but must be 'cos' or 'linear'"
            )
        self.anneal_strategy = anneal_strategy
        self.anneal_epochs = self._whole("anneal_epochs", anneal_epochs)
        self.swa_lrs = [
            self._number("swa_lr", rate, 0.0) for rate in self._for_each_group("swa_lr", swa_lr)
        ]
        super().__init__(optimizer, last_epoch)

    def _part(self, t: int) -> float:
        """The fraction of the annealing that is done at step t."""
        part = min(max(t, 0) / self.anneal_epochs, 1.0) if self.anneal_epochs else float(t >= 0)
        return (1 - math.cos(math.pi * part)) / 2 if self.anneal_strategy == "cos" else part

    def get_lr(self) -> list[float]:
        """The rates of this step, between the first and the last rates."""
        before, now = self._part(self.last_epoch - 1), self._part(self.last_epoch)
        rates = []
        for rate, last in zip(self._now(), self.swa_lrs, strict=False):
            first = last if before == 1 else (rate - before * last) / (1 - before)
            rates.append(last * now + first * (1 - now))
        return rates
