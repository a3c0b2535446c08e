"""Workers of a loader: threads or processes that fetch one batch after the other."""

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
    """The description of a worker that :func:`get_worker_info` returns there."""

    id: int  # from 0 on
    num_workers: int
    seed: int  # of this worker
    dataset: Any  # this worker's own: a copy


_at = threading.local()


def get_worker_info() -> WorkerInfo | None:
    """The worker that this code runs in; None in the main thread.

    A stream asks it which part of the data is its own.
    """
    return getattr(_at, "info", None)


class _End:
    """A stream has ended; a class, which stays the same between processes."""


END = _End


class Source:
    """A dataset and how to make a batch of it, which workers have copies of."""

    def __init__(self, dataset: Any, collate: Callable[[Any], Any], batched: bool) -> None:
        self.dataset = dataset
        self.collate = collate
        self.batched = batched

    def fetch(self, index: Any) -> Any:
        """The batch at these indices, or the sample at this one; an error names the sample."""
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
    """The words for this index, or these, with which an error in a worker says where it is."""
    where = f"[DataLoader] sample{'s' if isinstance(index, list) else ''} {index}"
    try:
        return take()
    except StopIteration as error:  # which would end the loop without a word
        raise RuntimeError(f"{where} raised StopIteration") from error
    except Exception as error:
        if get_worker_info() is None:
            raise  # the traceback says where
        raise _with(error, where) from error


def _with(error: Exception, where: str) -> Exception:
    """An error of the same class that says where it was raised, or a RuntimeError."""
    try:
        made = type(error)(f"{where}: {error}")
    except Exception:
        return RuntimeError(f"{where}: {type(error).__name__}: {error}")
    return made


# ---- in the worker -------------------------------------------------------------------------------


def _begin(source: Source, number: int, count: int, seed: int, init: Any, process: bool) -> None:
    """Start a worker: take a copy of the dataset, and call the user's function."""
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
    """One thread or one process, and the batches that were requested of it."""

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
        """The batch at these indices, to come."""
        return self._run.submit(_fetch, index, seed)

    def open(self, batch_size: int | None, drop_last: bool) -> None:
        """Begin an epoch of a stream."""
        self._run.submit(_open, batch_size, drop_last)

    def next(self, seed: int) -> Future[Any]:
        """The next batch of the stream, to come, or END."""
        return self._run.submit(_next, seed)

    def close(self, waits: bool = True) -> None:
        """End after the batch that is being fetched, for which it waits; others are given up."""
        self._run.shutdown(wait=waits, cancel_futures=True)
