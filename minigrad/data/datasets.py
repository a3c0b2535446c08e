"""Datasets: map-style (a sample per index) and iterable-style (a stream of samples)."""

from __future__ import annotations

import bisect
import itertools
import math
import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from minigrad.functions.arguments import integer
from minigrad.random import Generator, randperm
from minigrad.tape.tensor_base import TensorBase

if TYPE_CHECKING:
    from minigrad._tensor import Tensor

__all__ = [
    "ChainDataset",
    "ConcatDataset",
    "Dataset",
    "IterableDataset",
    "StackDataset",
    "Subset",
    "TensorDataset",
    "random_split",
]

T_co = TypeVar("T_co", covariant=True)


class Dataset(Generic[T_co]):
    """Base class of map-style datasets: ``dataset[index]`` is a sample.

    A subclass defines ``__getitem__``, and ``__len__`` for the samplers that need the size. It may
    define ``__getitems__(indices)``, which returns the list of samples of a whole batch.

    >>> from minigrad.data import Dataset
    >>> class Squares(Dataset):
    ...     def __len__(self):
    ...         return 4
    ...     def __getitem__(self, index):
    ...         return index**2
    >>> Squares()[3]
    9
    """

    def __getitem__(self, index: Any) -> T_co:
        raise NotImplementedError(f"[{type(self).__name__}] a dataset has to define __getitem__")

    def __add__(self, other: Dataset[Any]) -> ConcatDataset[Any]:
        return ConcatDataset([self, other])


class IterableDataset(Dataset[T_co], Iterable[T_co]):
    """Base class of iterable-style datasets: ``iter(dataset)`` is a stream of samples.

    Each of several workers iterates over its own copy of the dataset. ``__iter__`` must therefore
    ask :func:`~minigrad.data.get_worker_info` for its part of the data.

    >>> from minigrad.data import DataLoader, IterableDataset
    >>> class Count(IterableDataset):
    ...     def __iter__(self):
    ...         return iter(range(3))
    >>> list(DataLoader(Count(), batch_size=2))
    [tensor([0, 1]), tensor([2])]
    """

    def __iter__(self) -> Iterator[T_co]:
        raise NotImplementedError(f"[{type(self).__name__}] a dataset has to define __iter__")

    def __add__(self, other: Dataset[Any]) -> ChainDataset:  # type: ignore[override]
        return ChainDataset([self, other])


class TensorDataset(Dataset[tuple[Any, ...]]):
    """Dataset of the rows of tensors: sample i is ``(a[i], b[i], ...)``.

    Raises ValueError if the tensors differ in their first size.

    >>> import minigrad as mg
    >>> data = mg.data.TensorDataset(mg.tensor([[1.0, 2.0], [3.0, 4.0]]), mg.tensor([0, 1]))
    >>> len(data), data[1]
    (2, (tensor([3., 4.]), tensor(1)))
    """

    tensors: tuple[Tensor, ...]

    def __init__(self, *tensors: Tensor) -> None:
        for t in tensors:
            if not isinstance(t, TensorBase):
                raise TypeError(
                    f"[TensorDataset] expected tensors, not {type(t).__name__}: "
                    "mg.from_numpy makes one of an array"
                )
        sizes = [tuple(t.shape) for t in tensors]
        if not tensors or not all(sizes) or len({size[0] for size in sizes}) > 1:
            raise ValueError(
                f"[TensorDataset] shapes {sizes}: at least one tensor is needed, "
                "and all must have the same first size"
            )
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Any, ...]:
        return tuple(t[index] for t in self.tensors)

    def __len__(self) -> int:
        return int(self.tensors[0].shape[0])


class StackDataset(Dataset[Any]):
    """Datasets in parallel: sample i is the tuple, or the dict, of the datasets' samples i.

    Raises ValueError if their lengths differ.

    >>> from minigrad.data import StackDataset
    >>> StackDataset([1, 2], ["a", "b"])[1], StackDataset(x=[1, 2], y=[3, 4])[0]
    ((2, 'b'), {'x': 1, 'y': 3})
    """

    datasets: tuple[Any, ...] | dict[str, Any]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if bool(args) == bool(kwargs):
            raise ValueError(
                "[StackDataset] takes datasets by position (for tuples) or by name (for dicts)"
            )
        self.datasets = args or kwargs
        lengths = [len(d) for d in self._parts()]
        if len(set(lengths)) > 1:
            raise ValueError(f"[StackDataset] lengths {lengths} differ")

    def _parts(self) -> Iterable[Any]:
        return self.datasets.values() if isinstance(self.datasets, dict) else self.datasets

    def _joined(self, parts: Iterable[Any]) -> Any:
        if isinstance(self.datasets, dict):
            return dict(zip(self.datasets, parts, strict=True))
        return tuple(parts)

    def __getitem__(self, index: Any) -> Any:
        return self._joined(d[index] for d in self._parts())

    def __getitems__(self, indices: Sequence[Any]) -> list[Any]:
        columns = [_samples(d, indices) for d in self._parts()]
        return [self._joined(row) for row in zip(*columns, strict=True)]

    def __len__(self) -> int:
        return len(next(iter(self._parts())))


class ConcatDataset(Dataset[T_co]):
    """Concatenation of map-style datasets.

    Raises ValueError for no dataset at all, TypeError for an iterable-style one.

    >>> from minigrad.data import ConcatDataset
    >>> both = ConcatDataset([[1, 2], [3]])
    >>> len(both), both[2], both[-3]
    (3, 3, 1)
    """

    datasets: list[Any]
    cumulative_sizes: list[int]

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise ValueError("[ConcatDataset] needs at least one dataset")
        if any(isinstance(d, IterableDataset) for d in self.datasets):
            raise TypeError(
                "[ConcatDataset] an IterableDataset has no indices: ChainDataset joins streams"
            )
        self.cumulative_sizes = list(itertools.accumulate(len(d) for d in self.datasets))

    def __getitem__(self, index: int) -> T_co:
        size = len(self)
        if not -size <= index < size:
            raise IndexError(f"[ConcatDataset] index {index} is out of range for {size} samples")
        index %= size
        at = bisect.bisect_right(self.cumulative_sizes, index)
        before = self.cumulative_sizes[at - 1] if at else 0
        return self.datasets[at][index - before]

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]


class ChainDataset(IterableDataset[Any]):
    """Concatenation of iterable-style datasets.

    Raises TypeError for a dataset that is not iterable-style.
    """

    datasets: list[Any]

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = list(datasets)
        for d in self.datasets:
            if not isinstance(d, IterableDataset):
                raise TypeError(
                    f"[ChainDataset] expected IterableDatasets, not {type(d).__name__}: "
                    "ConcatDataset joins those with indices"
                )

    def __iter__(self) -> Iterator[Any]:
        return itertools.chain.from_iterable(self.datasets)

    def __len__(self) -> int:
        return sum(len(d) for d in self.datasets)


class Subset(Dataset[T_co]):
    """The samples of a dataset at given indices.

    >>> from minigrad.data import Subset
    >>> list(Subset("abcd", [3, 0]))
    ['d', 'a']
    """

    dataset: Any
    indices: Sequence[int]

    def __init__(self, dataset: Any, indices: Sequence[int]) -> None:
        self.dataset = dataset
        self.indices = indices

    def __getitem__(self, index: Any) -> T_co:
        if isinstance(index, list):
            return self.dataset[[self.indices[i] for i in index]]
        return self.dataset[self.indices[index]]

    def __getitems__(self, indices: Sequence[int]) -> list[T_co]:
        return _samples(self.dataset, [self.indices[i] for i in indices])

    def __len__(self) -> int:
        return len(self.indices)


def _samples(dataset: Any, indices: Sequence[Any]) -> list[Any]:
    """The samples at some indices, by one call if the dataset has ``__getitems__``."""
    whole = getattr(dataset, "__getitems__", None)
    if whole is None:
        return [dataset[i] for i in indices]
    found = whole(indices)
    if len(found) != len(indices):
        raise ValueError(
            f"[{type(dataset).__name__}] __getitems__ returned {len(found)} samples "
            f"for {len(indices)} indices"
        )
    return list(found)


def _fractions_as_lengths(fractions: Sequence[float], size: int) -> list[int]:
    """Lengths rounded down. The first parts get one more each until the sum is right."""
    for at, part in enumerate(fractions):
        if not 0 <= part <= 1:
            raise ValueError(f"[random_split] fraction {at} is {part}, but must be in [0, 1]")
    lengths = [math.floor(size * part) for part in fractions]
    for i in range(size - sum(lengths)):
        lengths[i % len(lengths)] += 1
    return lengths


def random_split(
    dataset: Any, lengths: Sequence[float], generator: Generator | None = None
) -> list[Subset[Any]]:
    """Disjoint random subsets of a dataset with given lengths or fractions.

    Fractions add up to 1. Their lengths are rounded down, and the first subsets get one more sample
    each until all samples are used. Raises ValueError for lengths that do not add up to the
    dataset's.

    >>> import minigrad as mg
    >>> parts = mg.data.random_split(range(10), [0.7, 0.3], mg.Generator().manual_seed(0))
    >>> [len(p) for p in parts], sorted([*parts[0], *parts[1]]) == list(range(10))
    ([7, 3], True)
    """
    size = len(dataset)
    if lengths and math.isclose(sum(lengths), 1) and sum(lengths) <= 1 + 1e-9:
        whole = _fractions_as_lengths(lengths, size)
    else:
        whole = [integer("random_split", "length", n, 0) for n in lengths]
    for at, length in enumerate(whole):
        if length == 0:
            warnings.warn(f"[random_split] subset {at} is empty", stacklevel=2)
    if sum(whole) != size:
        raise ValueError(
            f"[random_split] lengths {list(lengths)} add up to {sum(whole)}, "
            f"but the dataset has {size} samples"
        )
    order = randperm(size, generator=generator).tolist()
    ends = itertools.accumulate(whole)
    return [Subset(dataset, order[end - n : end]) for n, end in zip(whole, ends, strict=True)]
