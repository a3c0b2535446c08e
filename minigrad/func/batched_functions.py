"""Functions of one's own inside a vmap: by a stated rule, by a generated one, or in a loop.

A Function with ``generate_vmap_rule`` runs once, on tensors with all slices. Its node is that of a
Function of physical tensors, whose forward and rules run the user's as a vmap of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from functools import partial
from typing import Any, NamedTuple

from minigrad import functions as f
from minigrad.autograd.function import Function, FunctionOp
from minigrad.func.batched_tensor import (
    Level,
    is_batched,
    level_of,
    made,
    of_all_slices,
)
from minigrad.functions import creation
from minigrad.functions.predicates import is_tensor
from minigrad.runtime.batched import BatchedOperandError, BatchedValueError
from minigrad.tape.tensor_base import TensorBase

__all__ = ["VmapInfo", "function"]


class VmapInfo(NamedTuple):
    """Argument of a Function's ``vmap``: the number of slices, and how the vmap draws."""

    batch_size: int
    randomness: str


def function(one: Function, args: tuple[Any, ...]) -> Any:
    """The result of a Function, not used yet, some of whose arguments are batched."""
    from minigrad.func.dispatch import looped

    cls = type(one)
    level = level_of(args)
    assert level is not None
    generates, rule = cls.generate_vmap_rule, getattr(cls, "vmap", None)
    if rule is not None and generates:
        raise RuntimeError(
            f"[{cls.__name__}] states vmap and sets generate_vmap_rule: leave out one of them"
        )
    if rule is not None:
        return _by_rule(cls, rule, level, args)
    if generates and level_of([x for x in args if not isinstance(x, TensorBase)]) is not level:
        try:
            return _by_generated_rule(cls, level, args)
        except (BatchedOperandError, BatchedValueError):
            pass  # it asks for the value of a slice
    return looped(cls.__name__, lambda *given: copy(one)(*given), *args)


# ---- a rule that the class states ----------------------------------------------------------------


def _by_rule(cls: type[Function], rule: Any, level: Level, args: tuple[Any, ...]) -> Any:
    """The result of the class's own vmap on the tensors with all slices."""
    name, dims = cls.__name__, tuple([0 if is_batched(x, level) else None for x in args])
    given = [x._physical if is_batched(x, level) else x for x in args]
    returned = rule(VmapInfo(level.size, level.randomness), dims, *given)
    if not (isinstance(returned, tuple) and len(returned) == 2):
        raise TypeError(
            f"[{name}] vmap returned {type(returned).__name__}, not a pair of the output and "
            "out_dims"
        )
    output, out_dims = returned
    several = isinstance(output, (tuple, list))
    outputs = list(output) if several else [output]
    each = list(out_dims) if isinstance(out_dims, (tuple, list)) else [out_dims] * len(outputs)
    if len(each) != len(outputs):
        raise ValueError(
            f"[{name}] vmap returned {len(each)} out_dims for {len(outputs)} outputs: one each"
        )
    results = [_placed(name, level, y, dim) for y, dim in zip(outputs, each, strict=True)]
    return tuple(results) if several else results[0]


def _placed(name: str, level: Level, y: Any, dim: Any) -> Any:
    """An output of a rule as a tensor of one slice."""
    if dim is None:
        return y
    if not is_tensor(y):
        raise TypeError(
            f"[{name}] vmap returned {type(y).__name__} with the out_dim {dim}: give None for what "
            "is no tensor"
        )
    if not isinstance(dim, int) or not -len(y.shape) <= dim < len(y.shape):
        raise ValueError(f"[{name}] vmap returned the out_dim {dim!r} for the shape {y.shape}")
    if y.shape[dim] != level.size:
        raise ValueError(
            f"[{name}] vmap returned the shape {y.shape}, whose dimension {dim} has not the size "
            f"of the batch, {level.size}"
        )
    whole: Any = y
    return made(level, f.movedim(whole, dim, 0))


# ---- a rule that is generated --------------------------------------------------------------------


def _by_generated_rule(cls: type[Function], level: Level, args: tuple[Any, ...]) -> Any:
    """The result of a Function of the physical tensors."""
    given = [x._physical if is_batched(x, level) else x for x in args]
    plan = _Plan(level.size, level.randomness, tuple([is_batched(x, level) for x in args]))
    base = _OfAllSlices if getattr(cls, "jvp", None) is None else _WithTangents
    own = {"of": cls, "__module__": cls.__module__}
    whole: Any = type(cls.__name__, (base,), own)
    result = whole.apply(plan, *given)
    if isinstance(result, tuple):
        return tuple([made(level, y) if isinstance(y, TensorBase) else y for y in result])
    return made(level, result)


class _Plan(NamedTuple):
    """The vmap as the Function of physical tensors knows it: which arguments have a batch."""

    size: int
    randomness: str
    batched: tuple[bool, ...]


_SLICES = "one for each slice"  # the mark of a batched tensor among kept values
_OWN = ("_used", "_to_save", "_to_save_forward", "_undifferentiable", "_dirty")


class _OfAllSlices(Function):
    """A Function of physical tensors, of a Function of slices, the class attribute ``of``.

    Tensors that the user's Function keeps are kept as physical ones, so that the tape knows them.
    """

    of: type[Function]
    generate_vmap_rule = True
    plan: _Plan
    metas: list[Any]  # of the arguments as slices
    outputs: list[Any]
    attributes: dict[str, Any]
    marks: dict[str, list[bool]]  # which saved tensors have a batch

    @staticmethod
    def forward(ctx: Any, plan: _Plan, *args: Any) -> Any:
        context = ctx.of()
        context._used = True
        context.needs_input_grad = ctx.needs_input_grad[1:]
        level = Level(plan.size, plan.randomness)
        try:
            level.begin()
            given = [made(level, x) if b else x for x, b in zip(args, plan.batched, strict=True)]
            result = context._forward(tuple(given), None)
            outputs = result if isinstance(result, tuple) else (result,)
            ctx.plan, ctx.metas, ctx.outputs = plan, _metas(given), _metas(outputs)
            ctx.keep(context, level, outputs)
            physical = [
                of_all_slices(y, level) if isinstance(y, TensorBase) else y for y in outputs
            ]
            fixed = context.__dict__.get("_undifferentiable", ())
            pairs = zip(physical, outputs, strict=True)
            ctx.mark_non_differentiable(*[p for p, y in pairs if any(y is z for z in fixed)])
        finally:
            level.end()
        return tuple(physical) if isinstance(result, tuple) else physical[0]

    def keep(self, context: Any, level: Level, outputs: Any) -> None:
        """Keep what the context of slices does."""
        if context.__dict__.get("_dirty"):
            raise RuntimeError(
                f"[{type(self).__name__}] mark_dirty does not go with generate_vmap_rule: state "
                "vmap, or leave both out"
            )
        self.marks = {}
        for name in ("_to_save", "_to_save_forward"):
            kept = context.__dict__.get(name, ())
            self.marks[name] = [x is not None and is_batched(x, level) for x in kept]
            self.__dict__[name] = tuple(
                [x._physical if x is not None and is_batched(x, level) else x for x in kept]
            )
        own = {name: x for name, x in context.__dict__.items() if name not in _OWN}
        self.attributes = _held(own, level)
        self._materialize = context._materialize

    @staticmethod
    def backward(ctx: Any, *upstream: Any) -> Any:
        def run(given: Callable[[Any], Any]) -> list[Any]:
            context = ctx.context("_to_save", given)
            gs = [None if g is None else given(g) for g in upstream]
            found = context._static("backward")(*gs)
            ctx._once = ctx._once or context._once
            return FunctionOp(context, ctx.metas, [], []).gradients_in(found)

        gradients = ctx.over_slices(run)
        pairs = zip(gradients, ctx.plan.batched, strict=True)
        return None, *[g if g is None or batched else f.sum(g, 0) for g, batched in pairs]

    def context(self, kept: str, given: Callable[[Any], Any]) -> Any:
        """The context of slices again; ``given`` makes a slice of a tensor with all of them."""
        context: Any = self.of()
        context.__dict__.update(_shown(self.attributes, given))
        pairs = zip(self.saved_tensors, self.marks[kept], strict=True)
        context._kept = tuple([given(x) if batched else x for x, batched in pairs])
        return context

    def over_slices(self, run: Callable[[Callable[[Any], Any]], list[Any]]) -> list[Any]:
        """The results for all slices: of them together, or of each where that cannot be."""
        from minigrad.func.dispatch import warn_of_loop

        level = Level(self.plan.size, self.plan.randomness)
        try:
            level.begin()
            results = run(partial(made, level))
            return [None if x is None else of_all_slices(x, level) for x in results]
        except (BatchedOperandError, BatchedValueError):
            warn_of_loop(type(self).__name__, level)
        finally:
            level.end()
        slices = [run(partial(_select, place)) for place in range(level.size)]
        return [_stacked(list(each)) for each in zip(*slices, strict=True)]


class _WithTangents(_OfAllSlices):
    """The same of a Function that states its jvp."""

    @staticmethod
    def jvp(ctx: Any, _: Any, *tangents: Any) -> Any:
        def run(given: Callable[[Any], Any]) -> list[Any]:
            kept = "_to_save_forward" if ctx.marks["_to_save_forward"] else "_to_save"
            context = ctx.context(kept, given)
            pairs = zip(tangents, ctx.plan.batched, strict=True)
            ts = [given(t) if t is not None and batched else t for t, batched in pairs]
            op = FunctionOp(context, ctx.metas, ctx.outputs, [])
            return op.tangents_in(context._static("jvp")(*ts))

        return tuple(ctx.over_slices(run))


def _metas(values: Any) -> list[Any]:
    return [(x.shape, x.dtype) if isinstance(x, TensorBase) else None for x in values]


def _held(value: Any, level: Level) -> Any:
    """A value with a marked physical tensor in place of each batched one."""
    if is_batched(value, level):
        return _SLICES, value._physical
    if type(value) in (list, tuple):
        return type(value)([_held(x, level) for x in value])
    if type(value) is dict:
        return {key: _held(x, level) for key, x in value.items()}
    return value


def _shown(value: Any, given: Callable[[Any], Any]) -> Any:
    """The reverse."""
    if type(value) is tuple and len(value) == 2 and value[0] is _SLICES:
        return given(value[1])
    if type(value) in (list, tuple):
        return type(value)([_shown(x, given) for x in value])
    if type(value) is dict:
        return {key: _shown(x, given) for key, x in value.items()}
    return value


def _select(place: int, x: Any) -> Any:
    return x.select(0, place)


def _stacked(parts: list[Any]) -> Any:
    """The results of slices in one tensor; zeros where one has none."""
    like = next((x for x in parts if x is not None), None)
    if like is None:
        return None
    return f.stack([creation.zeros_like(like) if x is None else x for x in parts])
