"""Calls of functions of trees, recorded on the arguments to differentiate by."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from minigrad.autograd.recording import Recording
from minigrad.func.trees import Tree, leaves, mapped, structure
from minigrad.tape.tensor_base import TensorBase

__all__ = ["Call", "flat_like", "rebuilt"]


class Call:
    """A call whose arguments numbered by ``argnums`` are fresh tensors.

    ``output`` and ``aux`` are what the function returned. With ``has_aux`` it must be a pair.
    """

    def __init__(
        self,
        op: str,
        func: Callable[..., Any],
        args: Sequence[Tree],
        kwargs: dict[str, Any],
        argnums: int | tuple[int, ...],
        has_aux: bool,
    ) -> None:
        self.op, self.has_aux = op, has_aux
        self.argnums = argnums
        self.places = _places(op, argnums, len(args))
        self.args = args
        own = list(dict.fromkeys(self.places))
        flat = [_checked(op, x) for k in own for x in leaves(args[k])]
        self.recording = Recording(flat)
        fresh = iter(self.recording.given)
        given = dict(enumerate(args))
        for k in own:
            given[k] = mapped(lambda _: next(fresh), args[k])
        result = self.recording.run(lambda: func(*given.values(), **kwargs), self._split)
        self.output: Tree
        self.aux: Tree
        self.output, self.aux = result if has_aux else (result, None)

    def _split(self, result: Any) -> tuple[list[Any], list[Any]]:
        """The tensors to differentiate, and those beside them."""
        if not self.has_aux:
            return self._tensors(result), []
        if not (isinstance(result, tuple) and len(result) == 2):
            raise TypeError(
                f"[{self.op}] with has_aux the function must return a pair, of a tensor and more"
            )
        beside = [x for x in leaves(result[1]) if isinstance(x, TensorBase)]
        return self._tensors(result[0]), beside

    def _tensors(self, output: Tree) -> list[Any]:
        found = list(leaves(output))
        for y in found:
            if not isinstance(y, TensorBase):
                raise TypeError(
                    f"[{self.op}] the function must return a tensor, not {type(y).__name__}"
                )
        return found

    def one_element(self) -> Any:
        """The output, which must be a tensor of one element."""
        y = self.output
        if not isinstance(y, TensorBase):
            raise TypeError(
                f"[{self.op}] the function must return a tensor, not {type(y).__name__}"
            )
        if y._h.size != 1:
            raise RuntimeError(
                f"[{self.op}] the function returned the shape {y.shape}, but must return one "
                "element"
            )
        return y

    def like_args(self, found: Sequence[Any]) -> Tree:
        """A value for each input, as the arguments are nested: a tuple for a tuple of argnums."""
        values = iter(found)
        trees = {
            k: mapped(lambda _: next(values), self.args[k]) for k in dict.fromkeys(self.places)
        }
        if isinstance(self.argnums, tuple):
            return tuple(trees[k] for k in self.places)
        return trees[self.places[0]]

    def like_output(self, found: Sequence[Any]) -> Tree:
        """A value for each output, as the function's result is nested."""
        return rebuilt(self.output, found)

    def shown_output(self) -> Tree:
        """The output as the caller may have it."""
        return mapped(self.recording.shown, self.output)

    def with_aux(self, *results: Any) -> Any:
        """The results, and what the function returned beside its output."""
        if self.has_aux:
            results = (*results, mapped(self.recording.shown, self.aux))
        return results if len(results) > 1 else results[0]


def rebuilt(tree: Tree, found: Sequence[Any]) -> Tree:
    """A tree like this one with other leaves."""
    values = iter(found)
    return mapped(lambda _: next(values), tree)


def flat_like(op: str, what: str, tree: Tree, like: Tree, name: str) -> list[Any]:
    """The leaves of a tree of tensors, which must be nested and shaped as another one is.

    They are cast to the dtypes there.
    """
    if structure(tree) != structure(like):
        raise ValueError(f"[{op}] {what} must be nested as {name}, with one tensor for each")
    made: list[Any] = []
    for t, x in zip(leaves(tree), leaves(like), strict=True):
        if not isinstance(t, TensorBase):
            raise TypeError(f"[{op}] {what} must hold tensors, not {type(t).__name__}")
        if t.shape != x.shape:
            raise ValueError(f"[{op}] {what} has shape {t.shape} for a tensor of {x.shape}")
        made.append(t.to(x.dtype) if x.dtype.is_floating_point else None)  # type: ignore[attr-defined]
    return made


def _places(op: str, argnums: int | tuple[int, ...], count: int) -> list[int]:
    """The numbers of the arguments to differentiate by."""
    given = argnums if isinstance(argnums, tuple) else (argnums,)
    if not given:
        raise ValueError(f"[{op}] argnums is empty: number the arguments to differentiate by")
    for k in given:
        if isinstance(k, bool) or not isinstance(k, int):
            raise TypeError(f"[{op}] argnums must be integers, not {type(k).__name__}")
        if not -count <= k < count:
            raise ValueError(f"[{op}] argnums is {k}, but there are {count} positional arguments")
    return [k % count for k in given]


def _checked(op: str, x: Any) -> Any:
    """A tensor of floats to differentiate by."""
    if not isinstance(x, TensorBase):
        raise TypeError(f"[{op}] an argument to differentiate by holds {type(x).__name__}")
    if not x.dtype.is_floating_point:
        raise TypeError(
            f"[{op}] an argument to differentiate by is {x.dtype.name}: derivatives are by floats, "
            "so convert it with .to(mg.float32)"
        )
    return x
