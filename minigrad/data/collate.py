"""Collation: conversion of a list of samples to one batch of tensors in the same structure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from minigrad import functions as f
from minigrad.functions.creation import asarray, tensor
from minigrad.runtime.dtypes import float64
from minigrad.runtime.lazy_numpy import np
from minigrad.tape.tensor_base import TensorBase

__all__ = ["default_collate", "default_convert"]


def _is_array(x: Any) -> bool:
    """True for an array, a NumPy scalar, or an object with an array interface, as PIL's images."""
    return hasattr(x, "__array_interface__") or hasattr(x, "__array__")


def _is_named_tuple(x: Any) -> bool:
    return isinstance(x, tuple) and hasattr(x, "_fields")


def default_convert(data: Any) -> Any:
    """Convert the arrays of a sample to tensors, for loaders with ``batch_size=None``.

    Mappings, lists, tuples and named tuples are converted element by element. Numbers and text stay
    unchanged.

    >>> import numpy as np
    >>> from minigrad.data import default_convert
    >>> default_convert({"x": np.array([1.0, 2.0]), "name": "a"})
    {'x': tensor([1., 2.], dtype=minigrad.float64), 'name': 'a'}
    """
    if isinstance(data, TensorBase):
        return data
    if isinstance(data, (str, bytes)):
        return data
    if _is_array(data):
        array = np.asarray(data)
        return data if array.dtype.kind in "USO" else tensor(array)
    if isinstance(data, Mapping):
        return _like(data, {key: default_convert(data[key]) for key in data})
    if _is_named_tuple(data):
        return type(data)(*map(default_convert, data))
    if isinstance(data, tuple):
        return [default_convert(x) for x in data]
    if isinstance(data, Sequence):
        return _like(data, [default_convert(x) for x in data])
    return data


def default_collate(batch: Sequence[Any]) -> Any:
    """Collate samples into a batch: each part gets a new first dimension.

    ==============================  ===========================================================
    samples                         batch
    ==============================  ===========================================================
    tensors, arrays                 a tensor on them, stacked; shapes must be equal
    Python ints, floats, bools      a vector of int64, float64, bool
    str, bytes                      the list of them
    mappings                        a mapping of batches by key
    named tuples                    a named tuple of batches
    tuples, lists                   a list of batches; the lengths must be equal
    ==============================  ===========================================================

    Raises TypeError for other samples, naming their type: give the loader a ``collate_fn``.

    >>> from minigrad.data import default_collate
    >>> default_collate([(1, 0.5, "a"), (2, 1.5, "b")])
    [tensor([1, 2]), tensor([0.5, 1.5], dtype=minigrad.float64), ['a', 'b']]
    """
    if len(batch) == 0:
        raise ValueError("[default_collate] a batch needs at least one sample")
    first = batch[0]
    if isinstance(first, TensorBase):
        return f.stack(list(batch))
    if isinstance(first, (str, bytes)):
        return list(batch)
    if _is_array(first):
        return _collate_arrays(batch)
    if isinstance(first, float):
        return asarray(list(batch), dtype=float64)
    if isinstance(first, int):
        return tensor(list(batch))
    if isinstance(first, Mapping):
        return _like(first, {key: default_collate([d[key] for d in batch]) for key in first})
    if _is_named_tuple(first):
        return type(first)(*map(default_collate, _columns(batch)))
    if isinstance(first, tuple):
        return [default_collate(c) for c in _columns(batch)]
    if isinstance(first, Sequence):
        return _like(first, [default_collate(c) for c in _columns(batch)])
    raise TypeError(
        "[default_collate] samples must hold tensors, arrays, numbers, text, mappings or "
        f"sequences, not {type(first).__name__}: give a collate_fn"
    )


def _collate_arrays(batch: Sequence[Any]) -> Any:
    arrays = [np.asarray(x) for x in batch]
    if arrays[0].dtype.kind in "USO":
        raise TypeError(
            f"[default_collate] arrays of {arrays[0].dtype} make no tensor: give a collate_fn"
        )
    return tensor(np.stack(arrays))


def _columns(batch: Sequence[Any]) -> list[tuple[Any, ...]]:
    sizes = {len(sample) for sample in batch}
    if len(sizes) > 1:
        raise RuntimeError(
            f"[default_collate] samples have {sorted(sizes)} elements, "
            "but all must have the same number"
        )
    return list(zip(*batch, strict=True))


def _like(model: Any, made: Any) -> Any:
    """The new container, converted to the class of ``model`` if possible."""
    if type(model) in (dict, list):
        return made
    try:
        return type(model)(made)
    except TypeError:
        return made
