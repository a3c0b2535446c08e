"""``vmap``: a function of one sample as a function of a batch."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from minigrad.func.trees import Tree, mapped
from minigrad.functions import stack
from minigrad.random import get_rng_state, set_rng_state
from minigrad.tape.tensor_base import TensorBase

__all__ = ["vmap"]


def vmap(
    func: Callable[..., Any],
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """The function that applies ``func`` to each slice of its arguments and stacks the results.

    ``in_dims`` says along which dimension an argument is cut: a number for all, or a tuple with one
    for each, where None hands the argument on whole; for a dict, list or tuple of tensors it is
    one number for all of them, or as nested as they are. ``out_dims`` says likewise where the
    results have the new dimension. ``func`` is called once for each slice, so it may do anything
    that it does alone, and takes as long as that; gradients go through. With ``randomness`` "same"
    each call draws the same numbers, with "different" each its own. ``chunk_size`` is PyTorch's and
    changes nothing.

    Raises RuntimeError where ``func`` draws and ``randomness`` does not say which. Raises
    ValueError for no slices, for sizes that differ and for dimensions that are not there, TypeError
    for results that are no tensors.

    >>> import minigrad as mg
    >>> mg.vmap(mg.dot)(mg.ones(2, 3), mg.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]))
    tensor([ 6., 15.])
    >>> mg.vmap(lambda w, x: w * x, in_dims=(None, 0), out_dims=1)(mg.ones(2), mg.arange(3.0))
    tensor([[0., 1., 2.],
            [0., 1., 2.]])
    """
    if randomness not in ("error", "different", "same"):
        raise ValueError(f'[vmap] randomness is {randomness!r}: give "different" or "same"')

    def of_batch(*args: Any, **kwargs: Any) -> Any:
        dims = _spread("in_dims", in_dims, args)
        along_first = mapped(lambda x: 0 if isinstance(x, TensorBase) else None, kwargs)
        whole, cut = (args, kwargs), (dims, along_first)
        size = _size(whole, cut)
        state = get_rng_state()
        results = []
        for place in range(size):
            if randomness == "same":
                set_rng_state(state)
            given, named = mapped(partial(_slice, place), whole, cut)
            results.append(func(*given, **named))
        if randomness == "error" and repr(get_rng_state()) != repr(state):
            set_rng_state(state)
            raise RuntimeError(
                '[vmap] the function draws random numbers: give randomness="different" for numbers '
                'of its own at each slice, or "same"'
            )
        return mapped(_stacked, _spread("out_dims", out_dims, results[0]), *results)

    return of_batch


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


def _slice(place: int, x: Any, dim: int | None) -> Any:
    return x if dim is None else x.select(dim, place)


def _stacked(dim: int | None, *results: Any) -> Any:
    for result in results:
        if not isinstance(result, TensorBase):
            raise TypeError(f"[vmap] the function returned {type(result).__name__}, not a tensor")
    return results[0] if dim is None else stack(results, dim)
