"""Workers of a loader: threads or processes that fetch batches one after another."""

from __future__ import annotations

import copy
import itertools
import random
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from operator import getitem
from typing import Any, NamedTuple

from minigrad.random import own_generator
from minigrad.runtime.lazy_numpy import np

__all__ = ["END", "Source", "Worker", "WorkerInfo", "get_worker_info"]


class WorkerInfo(NamedTuple):
    """The description of a worker, as :func:`get_worker_info` returns it."""

    id: int  # from 0 on
    num_workers: int
    seed: int  # the worker's seed
    dataset: Any  # the worker's own copy


_at = threading.local()


def get_worker_info() -> WorkerInfo | None:
    """The description of the worker that runs this code, or None in the main thread.

    An iterable dataset uses it to choose its part of the data.
    """
    return getattr(_at, "info", None)


class _End:
    """Marks the end of a stream. A class stays the same object between processes."""


END = _End


class Source:
    """A dataset and the function that collates its samples. Each worker has a copy."""

    def __init__(self, dataset: Any, collate: Callable[[Any], Any], batched: bool) -> None:
        self.dataset = dataset
        self.collate = collate
        self.batched = batched

    def fetch(self, index: Any) -> Any:
        """The batch at these indices, or the sample at one index. An error names the sample."""
        if not self.batched:
            return _named(index, lambda: self.collate(self.dataset[index]))
        if hasattr(self.dataset, "__getitems__"):
            samples = _named(index, lambda: self.dataset.__getitems__(index))
        else:
            samples = [_named(i, partial(getitem, self.dataset, i)) for i in index]
        return _named(index, lambda: self.collate(samples))

    def stream(self, batch_size: int | None, drop_last: bool) -> Iterator[Any]:
        """The batches of an iterable-style dataset."""
        samples = iter(self.dataset)
        if batch_size is None:
            yield from map(self.collate, samples)
            return
        while batch := list(itertools.islice(samples, batch_size)):
            if drop_last and len(batch) < batch_size:
                return
            yield self.collate(batch)


def _named(index: Any, take: Callable[[], Any]) -> Any:
    """The text by which an error in a worker names an index or indices."""
    where = f"[DataLoader] sample{'s' if isinstance(index, list) else ''} {index}"
    try:
        return take()
    except StopIteration as error:  # it would silently end the loop
        raise RuntimeError(f"{where} raised StopIteration") from error
    except Exception as error:
        if get_worker_info() is None:
            raise  # the traceback names the place
        raise _with(error, where) from error


def _with(error: Exception, where: str) -> Exception:
    """An error of the same class, or a RuntimeError, that says where it was raised."""
    try:
        made = type(error)(f"{where}: {error}")
    except Exception:
        return RuntimeError(f"{where}: {type(error).__name__}: {error}")
    return made


# ---- in the worker -------------------------------------------------------------------------------


def _begin(source: Source, number: int, count: int, seed: int, init: Any, process: bool) -> None:
    """Start a worker: copy the dataset, and call the user's ``worker_init_fn``."""
    own = Source(copy.copy(source.dataset), source.collate, source.batched)
    _at.source, _at.stream = own, None
    _at.info = WorkerInfo(number, count, seed, own.dataset)
    if process:  # threads share these generators
        random.seed(seed)
        np.random.seed(seed % 2**32)
    if init is not None:
        init(number)


def _fetch(index: Any, seed: int) -> Any:
    with own_generator(seed):
        return _at.source.fetch(index)


def _open(batch_size: int | None, drop_last: bool) -> None:
    _at.stream = _at.source.stream(batch_size, drop_last)


def _next(seed: int) -> Any:
    with own_generator(seed):
        return next(_at.stream, END)


# ---- in the main thread --------------------------------------------------------------------------


class Worker:
    """One thread or process, and the batches that were requested from it."""

    def __init__(
        self, source: Source, number: int, count: int, seed: int, init: Any, context: Any
    ) -> None:
        args = (source, number, count, seed + number, init, context is not None)
        self.number = number
        self._run: Executor
        if context is None:
            name = f"minigrad-data-{number}"
            self._run = ThreadPoolExecutor(1, name, initializer=_begin, initargs=args)
        else:
            self._run = ProcessPoolExecutor(1, context, initializer=_begin, initargs=args)

    def fetch(self, index: Any, seed: int) -> Future[Any]:
        """A future of the batch at these indices."""
        return self._run.submit(_fetch, index, seed)

    def open(self, batch_size: int | None, drop_last: bool) -> None:
        """Begin an epoch of a stream."""
        self._run.submit(_open, batch_size, drop_last)

    def next(self, seed: int) -> Future[Any]:
        """A future of the next batch of the stream, or of END."""
        return self._run.submit(_next, seed)

    def close(self, waits: bool = True) -> None:
        """Stop after the current batch, and wait for it. Other requested batches are dropped."""
        self._run.shutdown(wait=waits, cancel_futures=True)
