"""Samplers: iterables over the indices, or batches of indices, that a loader uses."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence, Sized
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from minigrad import functions as f
from minigrad.functions.arguments import integer
from minigrad.functions.creation import arange, as_tensor
from minigrad.random import Generator, multinomial, randint, randperm
from minigrad.runtime.dtypes import float64

if TYPE_CHECKING:
    from minigrad._tensor import Tensor

__all__ = [
    "BatchSampler",
    "DistributedSampler",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "SubsetRandomSampler",
    "WeightedRandomSampler",
]

_WHOLE = 2**20  # most indices that are drawn at once
_PIECE = 2**12

T_co = TypeVar("T_co", covariant=True)


class Sampler(Generic[T_co]):
    """Base class of iterables over indices, or over lists of indices for a ``batch_sampler``.

    A subclass defines ``__iter__``, and ``__len__`` if the number is known.
    """

    def __init__(self, data_source: Any = None) -> None:
        del data_source  # an argument of older PyTorch

    def __iter__(self) -> Iterator[T_co]:
        raise NotImplementedError(f"[{type(self).__name__}] a sampler has to define __iter__")


class _IndexSampler(Sampler[int]):
    """A sampler whose indices of an epoch are one int64 tensor."""

    def order(self) -> Tensor:
        """The indices of the next epoch. Random indices are drawn here."""
        raise NotImplementedError

    def __iter__(self) -> Iterator[int]:
        return iter(self.order().tolist())


class SequentialSampler(_IndexSampler):
    """The indices 0, 1, 2, ...

    >>> from minigrad.data import SequentialSampler
    >>> list(SequentialSampler("abc"))
    [0, 1, 2]
    """

    def __init__(self, data_source: Sized) -> None:
        self.data_source = data_source

    def order(self) -> Tensor:
        """All indices, ascending."""
        return arange(len(self))

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(_IndexSampler):
    """Random indices, all different or drawn with replacement.

    ``num_samples`` is by default the size of the dataset. A larger number without replacement uses
    several permutations in turn. ``generator`` is by default the shared generator, which
    ``mg.manual_seed`` seeds. An epoch of more than a million indices that is longer than the
    dataset is drawn in pieces during the iteration. Such an epoch may be endless.

    >>> import minigrad as mg
    >>> sampler = mg.data.RandomSampler(range(4), generator=mg.Generator().manual_seed(0))
    >>> sorted(sampler)
    [0, 1, 2, 3]
    """

    def __init__(
        self,
        data_source: Sized,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: Generator | None = None,
    ) -> None:
        if not isinstance(replacement, bool):
            raise TypeError(
                f"[RandomSampler] replacement must be a bool, not {type(replacement).__name__}"
            )
        if num_samples is not None:
            least = 0 if num_samples == 0 and len(data_source) == 0 else 1
            num_samples = _count("RandomSampler", "num_samples", num_samples, least)
        self.data_source, self.replacement = data_source, replacement
        self._num_samples, self.generator = num_samples, generator

    @property
    def num_samples(self) -> int:
        """The number of indices in an epoch."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def order(self) -> Tensor:
        """Draw the indices of an epoch."""
        size, count = len(self.data_source), self.num_samples
        if count:
            self._check_size()
        if self.replacement and count:
            return randint(size, (count,), generator=self.generator)
        rounds = math.ceil(count / size) if size else 1
        parts = [randperm(size, generator=self.generator) for _ in range(rounds)]
        return (f.cat(parts) if len(parts) > 1 else parts[0])[:count] if parts else arange(0)

    @property
    def in_pieces(self) -> bool:
        """True if an epoch is too long to be drawn at once."""
        return self.num_samples > max(len(self.data_source), _WHOLE)

    def __iter__(self) -> Iterator[int]:
        if not self.in_pieces:
            return super().__iter__()
        first = self._piece()  # drawn now, like a whole epoch
        pieces = itertools.chain([first], iter(self._piece, None))
        return itertools.islice(itertools.chain.from_iterable(pieces), self.num_samples)

    def _check_size(self) -> None:
        if not len(self.data_source):
            raise ValueError(f"[RandomSampler] {len(self)} samples of a dataset that has none")

    def _piece(self) -> list[int]:
        self._check_size()
        size = len(self.data_source)
        if self.replacement:
            drawn = randint(size, (_PIECE,), generator=self.generator)
        else:
            drawn = randperm(size, generator=self.generator)
        indices: list[int] = drawn.tolist()
        return indices

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(_IndexSampler):
    """Given indices in random order."""

    def __init__(self, indices: Sequence[int], generator: Generator | None = None) -> None:
        self.indices, self.generator = indices, generator

    def order(self) -> Tensor:
        """The indices in a newly drawn order."""
        mixed = randperm(len(self.indices), generator=self.generator)
        return _long(self.indices)[mixed]

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(_IndexSampler):
    """``num_samples`` of the indices ``0..len(weights)-1``, drawn in proportion to the weights.

    Weights need not add up to 1. Raises ValueError for weights that are no vector.

    >>> from minigrad.data import WeightedRandomSampler
    >>> list(WeightedRandomSampler([0.0, 1.0, 0.0], 3))
    [1, 1, 1]
    """

    def __init__(
        self,
        weights: Any,
        num_samples: int,
        replacement: bool = True,
        generator: Generator | None = None,
    ) -> None:
        if not isinstance(replacement, bool):
            raise TypeError(
                "[WeightedRandomSampler] replacement must be a bool, "
                f"not {type(replacement).__name__}"
            )
        self.num_samples = _count("WeightedRandomSampler", "num_samples", num_samples, 1)
        self.weights = as_tensor(weights, dtype=float64)
        if self.weights.ndim != 1:
            raise ValueError(
                f"[WeightedRandomSampler] weights have shape {tuple(self.weights.shape)}, "
                "but must be a vector"
            )
        self.replacement, self.generator = replacement, generator

    def order(self) -> Tensor:
        """Draw the indices of an epoch."""
        return multinomial(
            self.weights, self.num_samples, self.replacement, generator=self.generator
        )

    def __len__(self) -> int:
        return self.num_samples


class DistributedSampler(_IndexSampler):
    """The part of the indices for process ``rank`` of ``num_replicas``.

    All parts have the same length: the last indices are dropped, or the first ones repeated. The
    order depends on ``seed`` and the epoch, which :meth:`set_epoch` sets, and not on the shared
    generator. By default there is one process.

    >>> from minigrad.data import DistributedSampler
    >>> [list(DistributedSampler("abc", 2, rank, shuffle=False)) for rank in (0, 1)]
    [[0, 2], [1, 0]]
    """

    def __init__(
        self,
        dataset: Sized,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        self.num_replicas = 1 if num_replicas is None else num_replicas
        self.rank = 0 if rank is None else rank
        if not 0 <= self.rank < self.num_replicas:
            raise ValueError(
                f"[DistributedSampler] rank is {rank}, but must be from 0 to "
                f"num_replicas - 1 = {self.num_replicas - 1}"
            )
        self.dataset, self.shuffle, self.seed = dataset, shuffle, seed
        self.drop_last, self.epoch = drop_last, 0
        rounded = math.floor if drop_last else math.ceil
        self.num_samples = rounded(len(dataset) / self.num_replicas)
        self.total_size = self.num_samples * self.num_replicas

    def order(self) -> Tensor:
        """This process's indices of the epoch."""
        size = len(self.dataset)
        if self.shuffle:
            mixed = Generator().manual_seed(self.seed + self.epoch)
            indices = randperm(size, generator=mixed)
        else:
            indices = arange(size)
        if size:
            repeated = math.ceil(self.total_size / size)
            indices = f.cat([indices] * max(repeated, 1))[: self.total_size]
        return indices[self.rank :: self.num_replicas]

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch, which determines the order of the next iteration."""
        self.epoch = epoch


class BatchSampler(Sampler[list[int]]):
    """Lists of ``batch_size`` indices of a sampler. A shorter last list may be dropped.

    >>> from minigrad.data import BatchSampler
    >>> list(BatchSampler(range(5), 2, drop_last=False))
    [[0, 1], [2, 3], [4]]
    """

    def __init__(self, sampler: Iterable[Any], batch_size: int, drop_last: bool) -> None:
        self.sampler = sampler
        self.batch_size = _count("BatchSampler", "batch_size", batch_size, 1)
        if not isinstance(drop_last, bool):
            raise ValueError(  # noqa: TRY004 - as in PyTorch
                f"[BatchSampler] drop_last must be a bool, not {type(drop_last).__name__}"
            )
        self.drop_last = drop_last

    def __iter__(self) -> Iterator[list[int]]:
        return self._batches(iter(self.sampler))  # draws now, not at the first batch

    def _batches(self, indices: Iterator[Any]) -> Iterator[list[int]]:
        while batch := list(itertools.islice(indices, self.batch_size)):
            if self.drop_last and len(batch) < self.batch_size:
                return
            yield batch

    def __len__(self) -> int:
        size: int = len(self.sampler)  # type: ignore[arg-type]
        return size // self.batch_size if self.drop_last else -(-size // self.batch_size)


def cuts(batch_sampler: Any) -> Iterator[Any] | None:
    """The batches of an epoch as slices or index tensors, if both samplers are minigrad's."""
    if type(batch_sampler) is not BatchSampler:
        return None
    sampler: Any = batch_sampler.sampler
    size = batch_sampler.batch_size
    if type(sampler) not in _PLAIN or (type(sampler) is RandomSampler and sampler.in_pieces):
        return None
    ends = (slice(at, at + size) for at in range(0, len(batch_sampler) * size, size))
    if type(sampler) is SequentialSampler:
        return ends
    return map(sampler.order().__getitem__, ends)


_PLAIN = {
    SequentialSampler,
    RandomSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
    DistributedSampler,
}


def _long(indices: Any) -> Tensor:
    return as_tensor(list(indices)).long() if len(indices) else arange(0)


def _count(op: str, name: str, value: Any, least: int) -> int:
    """A number of samples. As in PyTorch, anything else raises ValueError."""
    if isinstance(value, bool):
        raise ValueError(f"[{op}] {name} is {value}, but must be a positive integer")  # noqa: TRY004
    try:
        return integer(op, name, value, least)
    except TypeError as error:
        raise ValueError(str(error)) from None
