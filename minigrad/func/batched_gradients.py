"""Gradients inside a vmap: ``autograd.grad`` of batched tensors.

The graph is that of physical tensors, and slices never meet on it. A gradient that starts with the
upstream gradients of all slices is therefore that of each slice, by an input that has the batch.
By an input without one the pass would add up the slices: it runs once for each of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minigrad import autograd
from minigrad import functions as f
from minigrad.autograd.recording import unshared
from minigrad.func.batched_tensor import (
    BatchedTensor,
    Level,
    every_slice,
    has_level,
    is_batched,
    level_of,
    made,
    of_all_slices,
)
from minigrad.functions import creation
from minigrad.runtime.batched import BatchedOperandError, BatchedValueError
from minigrad.runtime.dtypes import DType
from minigrad.tape.batched_jvp import BatchedLinearMap
from minigrad.tape.engine import gradients as run_gradients
from minigrad.tape.jvp import LinearMap
from minigrad.tape.tensor_base import TensorBase, parent_of

__all__ = ["gradients", "pulled_rows", "pushed", "pushed_columns"]


def gradients(
    outputs: list[Any],
    inputs: list[Any],
    upstream: list[Any],
    retain_graph: bool | None,
    create_graph: bool,
    allow_unused: bool,
    materialize_grads: bool,
) -> tuple[Any, ...]:
    """As ``autograd.grad``, where outputs, inputs or upstream gradients are batched."""
    how = {
        "retain_graph": retain_graph,
        "create_graph": create_graph,
        "allow_unused": allow_unused,
        "materialize_grads": materialize_grads,
    }
    upstream = [_upstream(y, g) for y, g in zip(outputs, upstream, strict=True)]
    found = _found(outputs, inputs, upstream, how)
    if create_graph:
        found = [g if g is None else _connected(g, x) for g, x in zip(found, inputs, strict=True)]
    return tuple(found)


def _found(outputs: Any, inputs: Any, upstream: Any, how: Any) -> Sequence[Any]:
    level = level_of(outputs)
    if level is None:
        return _of_shared_outputs(outputs, inputs, upstream, how)
    with_batch = [i for i, x in enumerate(inputs) if has_level(x, level)]
    results: list[Any] = [None] * len(inputs)
    physical = [_strip(y, level, True) for y in outputs]
    started = [_strip(g, level, True) for g in upstream]
    others = [i for i in range(len(inputs)) if i not in with_batch]
    for some, run in ((others, _of_each_slice), (with_batch, _of_all)):
        if some:
            more = {**how, "retain_graph": True} if some is others else how
            wanted = [_strip(inputs[i], level, False) for i in some]
            for i, g in zip(some, run(level, physical, wanted, started, more), strict=True):
                results[i] = g
    return results


def _connected(g: Any, x: Any) -> Any:
    """A gradient that can be differentiated by its input, also where it is constant."""
    if g._edge is not None:
        return g
    if type(g) is BatchedTensor:
        return made(g._level, _connected(g._physical, x))
    while type(x) is BatchedTensor:
        x = x._physical
    return autograd.constant(g, x)


def _upstream(y: Any, g: Any) -> Any:
    """The upstream gradient of an output, in its shape and dtype."""
    if g is None:
        if y._h.size != 1:
            raise RuntimeError(
                "[grad] a gradient can be left out only for a single element, not for shape "
                f"{y.shape}: pass one of that shape, or reduce first, as in y.sum()"
            )
        return creation.ones(y.shape, dtype=y.dtype)
    if not isinstance(g, TensorBase):
        g = creation.tensor(g, y.dtype)
    if g.shape != y.shape:
        raise ValueError(f"[grad] the gradient has shape {g.shape}, the tensor {y.shape}")
    kind: DType = y.dtype
    return g.to(kind)


# ---- levels --------------------------------------------------------------------------------------


def _strip(x: Any, level: Level, expand: bool) -> Any:
    """The physical tensor of a level, which may lie below others; its batch comes first."""
    if is_batched(x, level):
        return x._physical
    if type(x) is BatchedTensor and x._level.number > level.number:
        below = _strip(x._physical, level, expand)
        if not expand and not has_level(x, level):
            return x
        return made(x._level, f.movedim(below, 1, 0))
    return of_all_slices(x, level) if expand else x


def _with_level(g: Any, level: Level) -> Any:
    """The reverse: a physical tensor of a level as a batched one."""
    if type(g) is BatchedTensor and g._level.number > level.number:
        return made(g._level, _with_level(f.movedim(g._physical, 0, 1), level))
    return made(level, g)


# ---- passes --------------------------------------------------------------------------------------


def _of_all(level: Level, outputs: Any, inputs: Any, upstream: Any, how: Any) -> list[Any]:
    """One pass for all slices, by inputs that have the batch."""
    found = autograd.grad(outputs, inputs, upstream, **how)
    return [None if g is None else _with_level(g, level) for g in found]


def _of_each_slice(level: Level, outputs: Any, inputs: Any, upstream: Any, how: Any) -> list[Any]:
    """A pass for each slice, by inputs that all of them share."""
    from minigrad.func.dispatch import warn_of_loop

    warn_of_loop("grad by a tensor that all slices share", level)
    passes = []
    for place in range(level.size):
        alone = f.unsqueeze(creation.arange(level.size) == place, -1)
        some = [f.where(_lined(alone, g), g, 0.0) for g in upstream]
        passes.append(autograd.grad(outputs, inputs, some, **how))
    if any(map(_has_nan, passes)):
        # Alone, a slice whose values are infinite or NaN makes none of the others' gradients NaN.
        nothing = [creation.zeros_like(g) for g in upstream]
        if _has_nan(autograd.grad(outputs, inputs, nothing, **how)):
            raise RuntimeError(
                "[grad] by a tensor that all slices share, infinite or NaN values of one slice "
                "make NaN of the others' gradients: use mg.func.grad, which gives each slice its "
                'own, or call vmap with fallback="loop"'
            )
    return [_stacked(each, level) for each in zip(*passes, strict=True)]


def _has_nan(found: Any) -> bool:
    return any(bool(f.isnan(every_slice(g)).any().item()) for g in found if g is not None)


def _stacked(each: Any, level: Level) -> Any:
    """The gradients of each slice; None where no slice has one."""
    like = next((g for g in each if g is not None), None)
    if like is None:
        return None
    whole = [creation.zeros_like(like) if g is None else g for g in each]
    return _with_level(f.stack(whole), level)


def _lined(mask: Any, g: Any) -> Any:
    return f.reshape(mask, (mask.shape[0], *(1,) * (g.ndim - 1)))


def _of_shared_outputs(outputs: Any, inputs: Any, upstream: Any, how: Any) -> tuple[Any, ...]:
    """Gradients of outputs that no level has in slices: they depend on no input that one has."""
    absent = how["allow_unused"] and not how["materialize_grads"]
    results = [None if absent else creation.zeros_like(x) for x in inputs]
    some = [i for i, x in enumerate(inputs) if type(x) is not BatchedTensor]
    if some:
        found = _of_batched_upstream(outputs, [inputs[i] for i in some], upstream, how)
        for i, g in zip(some, found, strict=True):
            results[i] = g
    return tuple(results)


def _of_batched_upstream(outputs: Any, inputs: Any, upstream: Any, how: Any) -> tuple[Any, ...]:
    """A pass whose gradients are batched, over a graph that is not.

    The rules then are formulas in tensor operations, as for a graph of gradients.
    """
    level = level_of(upstream)
    if level is None:
        return autograd.grad(outputs, inputs, upstream, **how)
    try:
        found = _by_formulas(outputs, inputs, upstream, how)
    except (BatchedOperandError, BatchedValueError):
        return _of_each_upstream(level, outputs, inputs, upstream, how)
    return tuple(found)


def _by_formulas(outputs: Any, inputs: Any, upstream: Any, how: Any) -> list[Any]:
    graph = how["create_graph"]
    edges = [parent_of(x) for x in inputs]
    started = [g if graph else g.detach() for g in upstream]
    roots = [parent_of(y) for y in outputs]
    # The graph is kept: a rule that takes no batch ends this pass, and each slice has its own.
    found = run_gradients(roots, started, True, graph, set(edges), by_formulas=True)
    absent = how["allow_unused"] and not how["materialize_grads"]
    results: list[Any] = []
    for x, edge in zip(inputs, edges, strict=True):
        if edge in found:
            results.append(found[edge] if graph else found[edge].detach())
        else:
            results.append(None if absent else creation.zeros_like(x))
    return results


def _of_each_upstream(
    level: Level, outputs: Any, inputs: Any, upstream: Any, how: Any
) -> tuple[Any, ...]:
    from minigrad.func.dispatch import warn_of_loop

    warn_of_loop("grad of a function of one's own", level)
    how = {**how, "retain_graph": True}
    passes = []
    for place in range(level.size):
        some = [g._physical.select(0, place) if is_batched(g, level) else g for g in upstream]
        passes.append(autograd.grad(outputs, inputs, some, **how))
    return tuple([_stacked(each, level) for each in zip(*passes, strict=True)])


def pulled_rows(output: Any, inputs: list[Any], upstream: Any, graph: bool) -> list[Any]:
    """The gradients of inputs by a batch of upstream gradients of one output, the batch in front.

    One pass pulls the whole batch. None where the output does not depend on an input.
    """
    level = Level(upstream.shape[0], quiet=True)
    try:
        level.begin()
        found = gradients([output], inputs, [made(level, upstream)], True, graph, True, False)
        return [None if g is None else of_all_slices(g, level) for g in found]
    finally:
        level.end()


# ---- forward mode --------------------------------------------------------------------------------


def pushed(
    edges: list[Any],
    inputs: list[Any],
    outputs: list[Any],
    tangents: list[Any],
    oldest: int,
    recorded: bool,
) -> list[Any]:
    """The tangents of outputs by those of inputs, as of a LinearMap, where some are batched."""
    level = level_of((inputs, outputs))
    if level is None:
        made_ = LinearMap(edges, outputs, oldest).push(tangents, True)
        kept = [t if t is None or recorded else t.detach() for t in made_]
        return unshared(kept, tangents)
    given = []
    for x, t in zip(inputs, tangents, strict=True):
        if t is not None and has_level(x, level):
            t = _strip(t, level, True)
        elif t is not None and has_level(t, level):
            raise BatchedOperandError(
                "[jvp] a tangent is one slice's, and its tensor is not: hand both to vmap"
            )
        given.append(t)
    below = [_strip(x, level, False) for x in inputs], [_strip(y, level, False) for y in outputs]
    found = pushed(edges, *below, given, oldest, recorded)
    return [
        t if t is None or not has_level(y, level) else _with_level(t, level)
        for t, y in zip(found, outputs, strict=True)
    ]


def pushed_columns(
    edges: list[Any],
    inputs: list[Any],
    outputs: list[Any],
    place: int,
    batch: Any,
    oldest: int,
    recorded: bool,
) -> list[Any]:
    """The tangents of outputs by a batch of those of one input, as of a BatchedLinearMap.

    Where inputs or outputs are batched, the map is that of tensors with all slices, and one push
    serves all of them.
    """
    level = level_of((inputs, outputs))
    if level is None:
        tangents: list[Any] = [None] * len(inputs)
        tangents[place] = batch
        return BatchedLinearMap(edges, outputs, oldest).push(tangents, recorded)
    if has_level(inputs[place], level):
        batch = f.expand(f.unsqueeze(batch, 1), (batch.shape[0], level.size, *batch.shape[1:]))
    below = [_strip(x, level, False) for x in inputs], [_strip(y, level, False) for y in outputs]
    found = pushed_columns(edges, *below, place, batch, oldest, recorded)
    return [
        t if t is None or not has_level(y, level) else made(level, f.movedim(t, 1, 0))
        for t, y in zip(found, outputs, strict=True)
    ]
