"""``vmap``: a function of one sample as a function of a batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from minigrad import functions as f
from minigrad.func.batched_tensor import Level, is_batched, made
from minigrad.func.trees import Tree, mapped
from minigrad.random import (
    Draws,
    drawing_error,
    drawn_by,
    get_rng_state,
    set_rng_state,
)
from minigrad.tape.tensor_base import TensorBase

__all__ = ["vmap"]


def vmap(
    func: Callable[..., Any],
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
    fallback: str = "rules",
) -> Callable[..., Any]:
    """The function that applies ``func`` to each slice of its arguments and stacks the results.

    ``in_dims`` says along which dimension an argument is cut: a number for all, or a tuple with one
    for each, where None hands the argument on whole; for a dict, list or tuple of tensors it is
    one number for all of them, or as nested as they are. ``out_dims`` says likewise where the
    results have the new dimension.

    ``func`` is called once, on tensors that show the shape of one slice and hold all. Its
    operations run on all slices together. One that has no rule for that runs once for each slice,
    and a warning says so once. Gradients go through, and may be taken inside. The number of a
    slice is not known inside: ``item()``, ``bool()`` and shapes that depend on values are errors.
    With ``chunk_size`` at most so many slices are held at a time.

    With ``randomness`` "same" all slices have the same random numbers, with "different" each its
    own. With ``fallback="loop"``, or for different numbers, ``func`` is called once for each
    slice, so it may do anything that it does alone, and takes as long as that.

    Raises RuntimeError where ``func`` draws and ``randomness`` does not say which, where it asks
    for the value of a slice, or writes one into memory that all slices share. Raises ValueError for
    no slices, for sizes that differ and for dimensions that are not there, TypeError for results
    that are no tensors.

    >>> import minigrad as mg
    >>> mg.vmap(mg.dot)(mg.ones(2, 3), mg.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]))
    tensor([ 6., 15.])
    >>> mg.vmap(lambda w, x: w * x, in_dims=(None, 0), out_dims=1)(mg.ones(2), mg.arange(3.0))
    tensor([[0., 1., 2.],
            [0., 1., 2.]])
    """
    if randomness not in ("error", "different", "same"):
        raise ValueError(f'[vmap] randomness is {randomness!r}: give "different" or "same"')
    if fallback not in ("rules", "loop"):
        raise ValueError(f'[vmap] fallback is {fallback!r}: give "rules" or "loop"')
    if chunk_size is not None and (not isinstance(chunk_size, int) or chunk_size < 1):
        raise ValueError(f"[vmap] chunk_size is {chunk_size!r}, but must be a number above 0")

    def of_batch(*args: Any, **kwargs: Any) -> Any:
        dims = _spread("in_dims", in_dims, args)
        along_first = mapped(lambda x: 0 if isinstance(x, TensorBase) else None, kwargs)
        given, cut = (args, kwargs), (dims, along_first)
        size = _size(given, cut)
        # A function that draws differently is not tried first: it might write before it draws.
        if fallback == "loop" or randomness == "different":
            return _in_a_loop(func, given, cut, size, out_dims, randomness)
        draws = Draws(randomness, chunk_size is not None and chunk_size < size)
        return _in_chunks(func, given, cut, size, chunk_size, out_dims, draws)

    return of_batch


# ---- all slices together -------------------------------------------------------------------------


def _in_chunks(
    func: Callable[..., Any],
    given: Tree,
    cut: Tree,
    size: int,
    chunk_size: int | None,
    out_dims: Any,
    draws: Draws,
) -> Any:
    """The results of so many slices at a time, side by side."""
    step = size if chunk_size is None else chunk_size
    state = get_rng_state()
    parts: list[Any] = []
    dims: Any = None
    for first in range(0, size, step):
        if draws.randomness == "same":
            set_rng_state(state)
        count = min(step, size - first)
        some = given if count == size else mapped(partial(_narrowed, first, count), given, cut)
        part, dims = _together(func, some, cut, count, out_dims, draws)
        parts.append(part)
    return parts[0] if len(parts) == 1 else mapped(_joined, dims, *parts)


def _together(
    func: Callable[..., Any], given: Tree, cut: Tree, size: int, out_dims: Any, draws: Draws
) -> tuple[Tree, Tree]:
    """The results of all slices in one call, and where their new dimensions are."""
    level = Level(size, draws.randomness)
    try:
        level.begin()
        args, kwargs = mapped(partial(_batched, level), given, cut)
        with drawn_by(draws):
            result = func(*args, **kwargs)
        dims = _spread("out_dims", out_dims, result)
        return mapped(partial(_unbatched, level), result, dims), dims
    finally:
        level.alive = False  # also where an interrupt comes as end() is called
        level.end()


def _joined(dim: int | None, *parts: Any) -> Any:
    return _same(parts) if dim is None else f.cat(parts, dim)


def _same(results: Sequence[Any]) -> Any:
    """The one result of all slices; ValueError where they differ."""
    first = results[0]
    if any(not f.equal(x, first) for x in results[1:]):
        raise ValueError("[vmap] out_dims is None for a result that differs from slice to slice")
    return first


def _batched(level: Level, x: Any, dim: int | None) -> Any:
    return x if dim is None else made(level, f.movedim(x, dim, 0))


def _unbatched(level: Level, given: Any, dim: int | None) -> Any:
    if not isinstance(given, TensorBase):
        raise TypeError(f"[vmap] the function returned {type(given).__name__}, not a tensor")
    x: Any = given
    if not is_batched(x, level):
        if dim is None:
            return x
        return f.stack([x] * level.size, dim)
    if dim is None:
        raise ValueError("[vmap] out_dims is None for a result that differs from slice to slice")
    physical = x._physical
    if not -physical.ndim <= dim < physical.ndim:
        raise ValueError(f"[vmap] there is no dimension {dim} for a result of shape {x.shape}")
    return f.movedim(physical, 0, dim)


def _narrowed(first: int, count: int, x: Any, dim: int | None) -> Any:
    return x if dim is None else f.narrow(x, dim, first, count)


# ---- one slice after the other -------------------------------------------------------------------


def _in_a_loop(
    func: Callable[..., Any], given: Tree, cut: Tree, size: int, out_dims: Any, randomness: str
) -> Any:
    """The results of a call for each slice, stacked."""
    state = get_rng_state()
    results = []
    for place in range(size):
        if randomness == "same":
            set_rng_state(state)
        args, kwargs = mapped(partial(_slice, place), given, cut)
        results.append(func(*args, **kwargs))
    if randomness == "error" and repr(get_rng_state()) != repr(state):
        set_rng_state(state)
        raise drawing_error()
    return mapped(_stacked, _spread("out_dims", out_dims, results[0]), *results)


def _slice(place: int, x: Any, dim: int | None) -> Any:
    return x if dim is None else x.select(dim, place)


def _stacked(dim: int | None, *results: Any) -> Any:
    for result in results:
        if not isinstance(result, TensorBase):
            raise TypeError(f"[vmap] the function returned {type(result).__name__}, not a tensor")
    return _same(results) if dim is None else f.stack(results, dim)


# ---- dimensions ----------------------------------------------------------------------------------


def _spread(name: str, dims: Any, tree: Tree) -> Tree:
    """A tree like the one that is given, with the dimension for each of its leaves."""
    if dims is None or isinstance(dims, int):
        return mapped(lambda _: dims, tree)
    keys: Any = dims
    if isinstance(dims, dict) and isinstance(tree, dict) and dims.keys() == tree.keys():
        return type(tree)((key, _spread(name, dims[key], x)) for key, x in tree.items())
    if isinstance(dims, (list, tuple)) and isinstance(tree, (list, tuple)):
        if len(dims) == len(tree):
            return tuple(_spread(name, d, x) for d, x in zip(dims, tree, strict=True))
        keys = f"{len(dims)} dimensions for {len(tree)} values"
    raise ValueError(f"[vmap] {name} is not as nested as the values: {keys}")


def _size(whole: Tree, cut: Tree) -> int:
    """The number of slices, the same of all that is cut."""
    sizes: dict[int, None] = {}

    def note(x: Any, dim: int | None) -> None:
        if dim is None:
            return
        if not isinstance(x, TensorBase):
            raise TypeError(f"[vmap] {type(x).__name__} cannot be cut: its in_dims must be None")
        if not -len(x.shape) <= dim < len(x.shape):
            raise ValueError(f"[vmap] there is no dimension {dim} in the shape {x.shape}")
        sizes.setdefault(x.shape[dim])

    mapped(note, whole, cut)
    if len(sizes) != 1 or 0 in sizes:
        found = ", ".join(map(str, sizes)) or "none, as all in_dims are None"
        raise ValueError(f"[vmap] the sizes to cut must be one number above 0: {found}")
    (size,) = sizes
    return size
