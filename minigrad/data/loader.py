"""The class DataLoader: batches of a dataset, fetched in the main thread or by workers."""

from __future__ import annotations

import multiprocessing
import sys
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import Any, Generic, TypeVar

from minigrad.data.collate import default_collate, default_convert
from minigrad.data.datasets import IterableDataset, Subset, TensorDataset
from minigrad.data.samplers import BatchSampler, RandomSampler, SequentialSampler, cuts
from minigrad.data.workers import END, Source, Worker
from minigrad.functions.arguments import integer, real
from minigrad.functions.creation import tensor
from minigrad.random import Generator, randint

__all__ = ["DataLoader"]

T_co = TypeVar("T_co", covariant=True)
_OP = "DataLoader"


class _SlowWorkerError(RuntimeError):
    """A worker took longer than the timeout. The loader stops waiting for it."""


class DataLoader(Generic[T_co]):
    """Iterable over the batches of a dataset. Each iteration is one epoch.

    ``collate_fn`` collates ``batch_size`` samples at a time to tensors. ``batch_size=None`` gives
    single samples. Samples come in order, or in random order with ``shuffle``. ``sampler`` may give
    the indices, or ``batch_sampler`` lists of indices. ``drop_last`` leaves out a shorter last
    batch. ``generator`` draws the order. By default it is the shared generator, which
    ``mg.manual_seed`` seeds.

    ``num_workers`` threads fetch ``prefetch_factor`` batches each in advance. They are processes if
    a ``multiprocessing_context`` is given ("fork", "spawn", "forkserver"). The order of batches is
    the same for any number of workers, unless ``in_order`` is False. An error in a worker is raised
    again in the main thread, and names the sample. ``worker_init_fn`` is called in each worker with
    its number. ``timeout`` is in seconds. With ``persistent_workers`` the workers stay for the next
    epoch.

    In a worker, random functions draw from a generator of the batch. Their numbers are therefore
    the same for any number of workers. Without workers they draw from the shared generator. NumPy's
    and Python's generators are shared between threads. ``pin_memory`` changes nothing, since memory
    is the CPU's.

    A batch of a :class:`TensorDataset`, or of a :class:`Subset` of one, is read by one index.

    Raises ValueError for arguments that exclude each other or are out of range.

    >>> import minigrad as mg
    >>> from minigrad.data import DataLoader, TensorDataset
    >>> x, y = mg.arange(6.0).reshape(3, 2), mg.tensor([0, 1, 0])
    >>> for batch, labels in DataLoader(TensorDataset(x, y), batch_size=2):
    ...     print(batch.shape, labels)
    (2, 2) tensor([0, 1])
    (1, 2) tensor([0])
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Any = None,
        batch_sampler: Any = None,
        num_workers: int = 0,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], None] | None = None,
        multiprocessing_context: Any = None,
        generator: Generator | None = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ) -> None:
        self.dataset = dataset
        self.num_workers = _number("num_workers", num_workers, 0)
        self.timeout = real(_OP, "timeout", timeout)
        self._streams = isinstance(dataset, IterableDataset)
        self._check_workers(prefetch_factor, persistent_workers, multiprocessing_context)
        self._check_samplers(batch_size, shuffle, sampler, batch_sampler, drop_last)
        if batch_sampler is not None:
            batch_size, drop_last = None, False
        self.batch_size = None if batch_size is None else _number("batch_size", batch_size, 1)
        self.drop_last = bool(drop_last)
        self.generator = generator
        self.pin_memory, self.pin_memory_device = pin_memory, pin_memory_device
        self.in_order = bool(in_order)
        self.worker_init_fn = worker_init_fn
        self.multiprocessing_context = multiprocessing_context
        self.prefetch_factor = prefetch_factor
        self.persistent_workers = bool(persistent_workers)
        if sampler is None and not self._streams:
            mixed = RandomSampler(dataset, generator=generator) if shuffle else None
            sampler = SequentialSampler(dataset) if mixed is None else mixed
        self.sampler: Any = sampler
        if self.batch_size is not None and batch_sampler is None and not self._streams:
            batch_sampler = BatchSampler(self.sampler, self.batch_size, self.drop_last)
        self.batch_sampler: Any = batch_sampler
        self._batched = self.batch_size is not None or batch_sampler is not None
        by_default = default_collate if self._batched else default_convert
        self.collate_fn = by_default if collate_fn is None else collate_fn
        self._kept: list[Worker] = []

    def _check_workers(self, prefetch: Any, persistent: Any, context: Any) -> None:
        if self.timeout < 0:
            raise ValueError(f"[{_OP}] timeout is {self.timeout}, but must not be negative")
        given = {
            "prefetch_factor": prefetch,
            "persistent_workers": persistent or None,
            "multiprocessing_context": context,
        }
        for name, value in given.items():
            if value is not None and not self.num_workers:
                raise ValueError(f"[{_OP}] {name} is for workers: num_workers must be more than 0")
        if prefetch is not None:
            _number("prefetch_factor", prefetch, 1)
        if isinstance(context, str) and context not in multiprocessing.get_all_start_methods():
            raise ValueError(
                f"[{_OP}] multiprocessing_context is {context!r}, but there are "
                f"{multiprocessing.get_all_start_methods()}"
            )

    def _check_samplers(
        self, batch_size: Any, shuffle: Any, sampler: Any, batch_sampler: Any, drop_last: Any
    ) -> None:
        if self._streams:
            for name, value in (
                ("shuffle", shuffle or None),
                ("sampler", sampler),
                ("batch_sampler", batch_sampler),
            ):
                if value is not None:
                    raise ValueError(f"[{_OP}] an IterableDataset has its own order: no {name}")
        if sampler is not None and shuffle:
            raise ValueError(f"[{_OP}] sampler gives the order: no shuffle beside it")
        if batch_sampler is not None and (batch_size != 1 or shuffle or sampler or drop_last):
            raise ValueError(
                f"[{_OP}] batch_sampler gives the batches: no batch_size, shuffle, sampler or "
                "drop_last beside it"
            )
        if batch_size is None and drop_last:
            raise ValueError(f"[{_OP}] without batches (batch_size=None) drop_last means nothing")

    def __len__(self) -> int:
        """The number of batches of an epoch. Raises TypeError if the dataset has no length."""
        if not self._streams:
            return len(self.batch_sampler if self._batched else self.sampler)
        size = len(self.dataset)
        if self.batch_size is None:
            return size
        return size // self.batch_size if self.drop_last else -(-size // self.batch_size)

    def __iter__(self) -> Iterator[T_co]:
        rows = self._rows()
        if rows is not None:
            return rows
        source = Source(self.dataset, self.collate_fn, self._batched)
        indices = None if self._streams else iter(self._indices())  # this draws the order
        if not self.num_workers:
            if indices is None:
                return source.stream(self.batch_size, self.drop_last)
            return map(source.fetch, indices)
        seed = int(randint(2**62, (), generator=self.generator))
        workers = self._kept or self._workers(source, seed)
        self._kept = workers if self.persistent_workers else []
        if indices is None:
            return self._of_streams(workers, seed)
        return self._of_workers(workers, indices, seed)

    def _indices(self) -> Any:
        return self.batch_sampler if self._batched else self.sampler

    # ---- whole batches of tensors ----

    def _rows(self) -> Iterator[Any] | None:
        """Batches read by one index per tensor. None if samples must be read one by one."""
        plain = self.worker_init_fn is None and self.multiprocessing_context is None
        if not (plain and self._batched and self.collate_fn is default_collate):
            return None
        dataset, subsets = self.dataset, []
        while type(dataset) is Subset:
            subsets.append(dataset.indices)
            dataset = dataset.dataset
        if type(dataset) is not TensorDataset:
            return None
        places = None
        for indices in reversed(subsets):
            own = tensor(list(indices)).long()
            places = own if places is None else places[own]
        found = cuts(self.batch_sampler)
        batches = iter(self.batch_sampler) if found is None else found
        return _taken(dataset.tensors, places, batches)

    # ---- workers ----

    def _workers(self, source: Source, seed: int) -> list[Worker]:
        context = self.multiprocessing_context
        if isinstance(context, str):
            context = multiprocessing.get_context(context)
        return [
            Worker(source, number, self.num_workers, seed, self.worker_init_fn, context)
            for number in range(self.num_workers)
        ]

    def _of_workers(
        self, workers: list[Worker], indices: Iterator[Any], seed: int
    ) -> Iterator[Any]:
        """The batches in the order of the indices. Some are fetched in advance."""
        pending: deque[Future[Any]] = deque()
        most = self.num_workers * (self.prefetch_factor or 2)
        number = 0
        try:
            while True:
                while len(pending) < most:
                    index = next(indices, END)
                    if index is END:
                        most = 0
                        break
                    worker = workers[number % self.num_workers]
                    pending.append(worker.fetch(index, seed + number))
                    number += 1
                if not pending:
                    return
                yield self._result(pending)
        finally:
            self._end(workers, pending)

    def _of_streams(self, workers: list[Worker], seed: int) -> Iterator[Any]:
        """The batches of the workers' streams in turn, until all streams end."""
        pending: deque[Future[Any]] = deque()
        numbers: deque[int] = deque()
        most = self.prefetch_factor or 2
        try:
            for worker in workers:
                worker.open(self.batch_size, self.drop_last)
            steps = 0
            for _ in range(most):
                for number in range(len(workers)):
                    numbers.append(number)
                    pending.append(workers[number].next(seed + steps))
                    steps += 1
            while pending:
                number = numbers.popleft()
                batch = self._of(pending.popleft())
                if batch is END:
                    continue
                numbers.append(number)
                pending.append(workers[number].next(seed + steps))
                steps += 1
                yield batch
        finally:
            self._end(workers, pending)

    def _result(self, pending: deque[Future[Any]]) -> Any:
        if not self.in_order:
            done, _ = wait(pending, self.timeout or None, FIRST_COMPLETED)
            if done:
                first = next(future for future in pending if future in done)
                pending.remove(first)
                return self._of(first)
        return self._of(pending.popleft())

    def _of(self, future: Future[Any]) -> Any:
        try:
            return future.result(self.timeout or None)
        except FutureTimeoutError:
            if future.done():
                raise  # an error of the user's code
            raise _SlowWorkerError(
                f"[{_OP}] a worker took longer than the timeout of {self.timeout:g} seconds"
            ) from None
        except BrokenExecutor as error:
            raise RuntimeError(f"[{_OP}] a worker process ended by itself: {error}") from error

    def _end(self, workers: list[Worker], pending: deque[Future[Any]]) -> None:
        for future in pending:
            future.cancel()
        if self.persistent_workers and self._kept is workers:
            wait([future for future in pending if not future.cancelled()])
            return
        hangs = isinstance(sys.exc_info()[1], (KeyboardInterrupt, _SlowWorkerError))
        for worker in workers:
            worker.close(waits=not hangs)


def _taken(tensors: tuple[Any, ...], places: Any, batches: Iterator[Any]) -> Iterator[list[Any]]:
    """The rows of tensors for each batch of indices. Adjacent rows are copied, not shared."""
    for rows in batches:
        if isinstance(rows, slice) and places is None:
            yield [x[rows].clone() for x in tensors]
            continue
        index = tensor(rows).long() if isinstance(rows, (list, tuple)) else rows
        index = index if places is None else places[index]
        yield [x[index] for x in tensors]


def _number(name: str, value: Any, least: int) -> int:
    """A count. As in PyTorch, anything else raises ValueError."""
    try:
        return integer(_OP, name, value, least)
    except TypeError as error:
        raise ValueError(str(error)) from None
