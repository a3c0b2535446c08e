"""Backward hooks of modules: hooks that get the gradients of a module's outputs and inputs.

Inputs and outputs of the module pass through an identity function, whose backward calls the hooks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

from minigrad.autograd import Function
from minigrad.tape.tensor_base import TensorBase

__all__ = ["Watched"]


class _Passing(Function):
    """Identity function of several tensors. ``see`` gets their gradients, and may change them.

    It also gets the number of the call: a vmap makes one for each slice.
    """

    @staticmethod
    def forward(
        ctx: Any,
        see: Callable[[int, tuple[Any, ...]], tuple[Any, ...]],
        numbers: Iterator[int],
        *xs: Any,
    ) -> Any:
        ctx.see, ctx.number = see, next(numbers)
        ctx.set_materialize_grads(False)
        return xs

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        return (None, None, *ctx.see(ctx.number, gradients))


def _wanted(values: tuple[Any, ...]) -> list[int]:
    tracked = [isinstance(x, TensorBase) and x._edge is not None for x in values]
    return [k for k, found in enumerate(tracked) if found]


class Watched:
    """One call of a module with hooks.

    It keeps the outputs' gradients until the inputs have theirs.

    The hooks ``before`` get the gradients of the outputs. The hooks ``after`` get the gradients of
    inputs and outputs.
    """

    def __init__(self, module: Any, before: list[Any], after: list[Any]) -> None:
        self.module, self.before, self.after = module, before, after
        self.outgoing: dict[int, tuple[Any, ...]] = {}  # by the number of the slice of a vmap
        self.calls: dict[str, int] = {}  # of the identity, for inputs and outputs

    def inputs(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments, passed through the identity that calls the hooks."""
        self.places, self.count = _wanted(args), len(args)
        if not (self.places and self.after):
            self.places = []
            return args
        return self._passed(args, self.places, self._see_inputs)

    def outputs(self, output: Any) -> Any:
        """The output, passed through the identity that calls the hooks."""
        several = isinstance(output, (tuple, list))
        values = tuple(output) if several else (output,)
        self.out_places, self.out_count = _wanted(values), len(values)
        if not self.out_places:
            return output
        passed = self._passed(values, self.out_places, self._see_outputs)
        if hasattr(output, "_fields"):
            return type(output)(*passed)
        return type(output)(passed) if several else passed[0]

    def _passed(self, values: tuple[Any, ...], places: list[int], see: Any) -> tuple[Any, ...]:
        """The values, with the tensors at these positions passed through the identity."""
        changed, numbers = list(values), count()
        passed = _Passing.apply(see, numbers, *[values[k] for k in places])
        self.calls[see.__name__] = next(numbers)
        for k, x in zip(places, passed, strict=True):
            changed[k] = x
        return tuple(changed)

    def _see_outputs(self, number: int, gradients: tuple[Any, ...]) -> tuple[Any, ...]:
        full = _spread(gradients, self.out_places, self.out_count)
        for hook in tuple(self.before):
            full = self._changed(hook.function(self.module, full), full, "output")
        self.outgoing[number] = full
        if not self.places:  # no input gets a gradient, so the hooks are called now
            for hook in tuple(self.after):
                none = (None,) * self.count
                given = self._changed(hook.function(self.module, none, full), none, "input")
                if any(g is not None for g in given):
                    raise RuntimeError(
                        f"[{type(self.module).__name__}] a backward hook returned a gradient, but "
                        "no input requires grad: return None"
                    )
        return tuple([full[k] for k in self.out_places])

    def _see_inputs(self, number: int, gradients: tuple[Any, ...]) -> tuple[Any, ...]:
        if self.calls["_see_inputs"] != self.calls["_see_outputs"]:
            raise RuntimeError(
                f"[{type(self.module).__name__}] in vmap a backward hook gets the gradients of one "
                "slice, and here all slices share the input: hand it to vmap too, or take the "
                "gradient by mg.func.grad"
            )
        full = _spread(gradients, self.places, self.count)
        outgoing = self.outgoing.pop(number, (None,) * self.out_count)
        for hook in tuple(self.after):
            full = self._changed(hook.function(self.module, full, outgoing), full, "input")
        return tuple([full[k] for k in self.places])

    def _changed(self, given: Any, full: tuple[Any, ...], what: str) -> tuple[Any, ...]:
        if given is None:
            return full
        found = tuple(given) if isinstance(given, (tuple, list)) else (given,)
        if len(found) != len(full):
            raise RuntimeError(
                f"[{type(self.module).__name__}] a backward hook returned {len(found)} gradients "
                f"for {len(full)} {what}s: return None or one for each"
            )
        return found


def _spread(gradients: tuple[Any, ...], places: list[int], count: int) -> tuple[Any, ...]:
    """A tuple of ``count`` entries with the gradients at their positions, None elsewhere."""
    full = [None] * count
    for k, g in zip(places, gradients, strict=True):
        full[k] = g
    return tuple(full)
