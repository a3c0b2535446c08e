"""A function that was run once, recorded: products with its Jacobian from both sides.

``mg.func`` and ``mg.autograd.functional`` are made of it. The inputs are replaced by fresh tensors
that share their values. What is computed from those alone can be given back off the tape.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any
from weakref import WeakValueDictionary

from minigrad.autograd import constant, grad
from minigrad.functions import cat, stack
from minigrad.functions.creation import arange, eye, zeros, zeros_like
from minigrad.functions.grad_modes import enable_grad
from minigrad.functions.shaping import clone, contiguous, movedim
from minigrad.ops.table import Row
from minigrad.runtime.batched import BatchedArray, by_rules, running
from minigrad.runtime.native import call, kernels
from minigrad.tape.batched_jvp import BatchedLinearMap
from minigrad.tape.engine import leading_to
from minigrad.tape.grad_mode import is_grad_enabled
from minigrad.tape.jvp import LinearMap
from minigrad.tape.node import LEAF, Node, record
from minigrad.tape.tensor_base import TensorBase, edge_of, wrap

__all__ = ["Recording", "basis", "columns", "off_graph", "rows", "unshared", "zeros_for"]

Tensors = Sequence[Any]

# Leaves that were the inputs of calls that are over, by id: nobody else differentiates by them.
_finished: WeakValueDictionary[int, Any] = WeakValueDictionary()


class Recording:
    """A call of a function on fresh tensors: those ``given``, which it may write into.

    ``inputs`` have their places on the tape as they were before.
    ``with_graph`` says whether results can be differentiated by something else than the inputs. It
    is asked for by the caller, and granted where recording is on and there is anything else.
    """

    def __init__(self, inputs: Tensors, with_graph: bool = True) -> None:
        self.with_graph = with_graph and is_grad_enabled()
        self.given = [_fresh(x, self.with_graph) for x in inputs]
        self.inputs = [_in_place_of(x) for x in self.given]
        self.edges = [edge_of(x) for x in self.inputs]
        self.begin = record(None, None, (), None, None).serial
        self.outputs: list[Any] = []
        self._linear: LinearMap | None = None
        self._batched: BatchedLinearMap | None = None

    def run(self, function: Callable[[], Any], split: Callable[[Any], tuple[Tensors, Any]]) -> Any:
        """The result of the function, recorded.

        ``split`` parts it into the tensors to differentiate, and those that are given back beside.
        """
        with enable_grad():
            result = function()
        outputs, beside = split(result)
        self.outputs = list(outputs)
        self.with_graph = self.with_graph and self._has_others([*outputs, *beside])
        leaves = [edge for edge in self.edges if isinstance(edge, TensorBase)]
        _finished.update({id(leaf): leaf for leaf in leaves})
        return result

    def _has_others(self, tensors: Tensors) -> bool:
        """True if the graph of the tensors leads to more than the inputs."""
        own = set(self.edges)
        if any(type(edge) is Node for edge in own):
            return True  # an input has a history
        stack = [edge_of(y) for y in tensors]
        seen = {None, *own}
        while stack:
            edge = stack.pop()
            if edge in seen:
                continue
            seen.add(edge)
            if type(edge) is Node:
                if edge.serial < self.begin:
                    return True
                stack.extend(edge.parents or ())
            elif id(edge) not in _finished:
                return True
        return False

    def is_recorded(self, given: Tensors) -> bool:
        """Whether products with these tensors are on the tape."""
        others = any(g is not None and g._edge is not None for g in given)
        return self.with_graph or (others and is_grad_enabled())

    def pull(self, upstream: Tensors, retain_graph: bool = True, graph: Any = None) -> list[Any]:
        """The gradients of the inputs by gradients of the outputs; None where none depends.

        They are on the tape if ``graph`` says so, by default where there is anything else than the
        inputs to differentiate by.
        """
        graph = self.is_recorded(upstream) if graph is None else graph
        pairs = [
            (y, g)
            for y, g in zip(self.outputs, upstream, strict=True)
            if y._edge is not None and g is not None
        ]
        if not pairs:
            return [None] * len(self.inputs)
        ys, gs = [y for y, _ in pairs], [g for _, g in pairs]
        retain_graph = retain_graph or graph
        return list(grad(ys, self.inputs, gs, retain_graph, graph, allow_unused=True))

    def push(self, tangents: Tensors, graph: Any = None) -> list[Any]:
        """The tangents of the outputs by tangents of the inputs; None where none depends."""
        graph = self.is_recorded(tangents) if graph is None else graph
        given = [_given(t, x, graph) for t, x in zip(tangents, self.inputs, strict=True)]
        if running:  # vmap, which has another way where a tensor is batched
            where = self.edges, self.inputs, self.outputs
            return list(by_rules("pushed")(*where, given, self.begin, graph))
        if self._linear is None:
            self._linear = LinearMap(self.edges, self.outputs, self.begin)
        return unshared(self._linear.push(given, graph), tangents)

    def push_many(self, place: int, batch: Any, graph: Any = None) -> list[Any]:
        """The tangents of the outputs by a batch of tangents of one input, the batch in front."""
        graph = self.is_recorded([batch]) if graph is None else graph
        if running:  # vmap: the map is that of tensors with all slices
            where = self.edges, self.inputs, self.outputs
            return list(by_rules("pushed_columns")(*where, place, batch, self.begin, graph))
        if self._batched is None:
            self._batched = BatchedLinearMap(self.edges, self.outputs, self.begin)
        tangents: list[Any] = [None] * len(self.inputs)
        tangents[place] = batch
        return self._batched.push(tangents, graph)

    def only_rows(self, y: Any) -> bool:
        """Whether a pull from an output runs no code of the user's: no hook and no Function."""
        edges = set(self.edges)
        nodes = leading_to(edges, [edge_of(y)])
        with_hooks = any(getattr(e, "_hooks", None) for e in edges if isinstance(e, TensorBase))
        return not with_hooks and not any(
            node.hooks or (type(node.op) is not Row and hasattr(node.op, "lends"))
            for node in nodes.union(e for e in edges if type(e) is Node)
        )

    def shown(self, x: Any) -> Any:
        """A result of the function for the caller, off the tape of the recording."""
        return x if self.with_graph else off_graph(x)


def _fresh(x: Any, with_graph: bool) -> Any:
    """A tensor with the values of x: on the graph of x, or a leaf."""
    given, x = x, by_rules("cut")(x) if running else x
    if with_graph and x._edge is not None:
        return x if x is not given else clone(x)  # a write of the function's must not reach x
    return x.detach().requires_grad_()


def _in_place_of(x: Any) -> Any:
    """A tensor that stays where x is on the tape now, and that nobody can write into."""
    return x if x._edge is LEAF else wrap(call(kernels.view_alias, x._h), x._edge)


def off_graph(x: Any) -> Any:
    """A tensor without its history; anything else as it is."""
    is_on = isinstance(x, TensorBase) and x._edge is not None
    return wrap(call(kernels.view_alias, x._h)) if is_on else x


def _given(g: Any, like: Any, graph: bool) -> Any:
    """A gradient or tangent in the dtype of its tensor, with its history if that counts."""
    if g is None:
        return None
    with enable_grad():
        return (g if graph else off_graph(g)).to(like.dtype)


def unshared(made: list[Any], given: Tensors) -> list[Any]:
    """Results that share no memory with one another or with what was given."""
    taken = {_memory(g).buffer for g in given if g is not None}
    results = []
    for x in made:
        if x is not None:
            if _memory(x).buffer in taken or _memory(x).overlapping:
                with enable_grad():  # its history goes on
                    x = clone(contiguous(x))
            taken.add(_memory(x).buffer)
        results.append(x)
    return results


def _memory(x: Any) -> Any:
    """The array of a tensor; of a batched one that of all slices."""
    array = x._h
    while type(array) is BatchedArray:
        array = array.held
    return array


# ---- Jacobians -----------------------------------------------------------------------------------


def basis(x: Any) -> Iterator[Any]:
    """The tensors of the shape of x with a 1 in one place, and else zeros."""
    if x._h.size:
        for row in eye(x._h.size, dtype=x.dtype).unbind():
            yield row.reshape(x.shape)


def rows(
    recording: Recording, place: int, graph: Any = None, chunk_size: int | None = None
) -> list[Any]:
    """The Jacobians of one output by all inputs, by a pull of all its basis tensors.

    ``chunk_size`` basis tensors are pulled at once, by default all of a moderate size. They are
    pulled one by one where they are few, or where the pass would run code of the user's: that gets
    ordinary gradients. None where the output does not depend on an input.
    """
    y = recording.outputs[place]
    if y._edge is None:
        return [None] * len(recording.inputs)
    graph = recording.is_recorded(()) if graph is None else graph
    if _memory(y).size > _FEW and chunk_size != 1 and recording.only_rows(y):
        # The loop has its own error, and takes what rules of batches do not.
        with suppress(Exception):
            return _rows_together(recording, y, graph, chunk_size)
    return _rows_one_by_one(recording, place, graph)


def _rows_one_by_one(recording: Recording, place: int, graph: Any) -> list[Any]:
    """The Jacobians of an output by a pull for each of its elements."""
    y, none = recording.outputs[place], [None] * len(recording.outputs)
    pulled = []
    for one in basis(y):
        upstream: list[Any] = [*none]
        upstream[place] = one
        pulled.append(recording.pull(upstream, True, graph))
    return [
        _joined(column, 0, (*y.shape, *x.shape), x)
        for x, column in zip(recording.inputs, _columns(pulled, len(recording.inputs)), strict=True)
    ]


def _rows_together(recording: Recording, y: Any, graph: bool, chunk_size: int | None) -> list[Any]:
    """The same by pulls of batches of basis tensors."""
    xs = recording.inputs
    batches = _batches(y, [y, *xs], chunk_size)
    pulled = [by_rules("pulled_rows")(y, xs, batch, graph) for batch in batches]
    made: list[Any] = []
    for x, chunks in zip(xs, _columns(pulled, len(xs)), strict=True):
        if any(g is None for g in chunks):
            made.append(None)
            continue
        whole: Any = chunks[0] if len(chunks) == 1 else cat(chunks)
        made.append(whole.reshape((*y.shape, *x.shape)))
    made = unshared(made, ())
    return [constant(j, x) if j is not None and graph else j for j, x in zip(made, xs, strict=True)]


def columns(
    recording: Recording, place: int, graph: Any = None, chunk_size: int | None = None
) -> list[Any]:
    """The Jacobians of all outputs by one input, by a push of all its basis tensors.

    So many are pushed at once as ``chunk_size`` says, by default all of a moderate size. None where
    an output does not depend on the input.
    """
    x, ys = recording.inputs[place], recording.outputs
    batches = _batches(x, [x, *ys], chunk_size)
    sizes = [len(batch) for batch in batches]
    pushed = [recording.push_many(place, batch, graph) for batch in batches]
    for i, y in enumerate(ys):  # a jvp of the user's may give a tangent or none
        if any(found[i] is not None for found in pushed):
            for size, found in zip(sizes, pushed, strict=True):
                found[i] = zeros_for(found[i], (size, *y.shape), y.dtype)
    chunks = _columns(pushed, len(ys))
    return [
        _side_by_side(some, (*y.shape, *x.shape), y) for y, some in zip(ys, chunks, strict=True)
    ]


_FEW = 6  # so many rows are faster one by one
_MANY = 2**22  # elements of a batch of tangents or gradients


def _batches(x: Any, beside: list[Any], chunk_size: int | None) -> list[Any]:
    """The basis tensors of x in batches, which come in front.

    A batch of tensors like those beside it is of a moderate size unless ``chunk_size`` is given.
    """
    count = x._h.size
    if chunk_size is None:
        largest = max([_memory(t).size for t in beside])
        chunk_size = max(1, _MANY // max(largest, 1))
    batches = []
    for first in range(0, count, chunk_size):
        size = min(chunk_size, count - first)
        numbers = arange(first, first + size).reshape((size, 1))
        batches.append((arange(count) == numbers).to(x.dtype).reshape((size, *x.shape)))
    return batches


def _side_by_side(chunks: tuple[Any, ...], shape: tuple[int, ...], like: Any) -> Any:
    """Batches of tangents as one Jacobian of this shape; None where no chunk has any."""
    if all(t is None for t in chunks):
        return None if chunks else zeros(shape, dtype=like.dtype)
    whole: Any = chunks[0] if len(chunks) == 1 else cat(chunks)
    return clone(movedim(whole, 0, -1).reshape(shape))


def _columns(found: list[list[Any]], count: int) -> list[tuple[Any, ...]]:
    return list(zip(*found, strict=True)) if found else [()] * count


def _joined(parts: tuple[Any, ...], dim: int, shape: tuple[int, ...], like: Any) -> Any:
    """The parts side by side; None where none is there."""
    if all(part is None for part in parts):
        return None if parts else zeros(shape, dtype=like.dtype)
    given = [zeros_like(like) if part is None else part for part in parts]
    return stack(given, dim).reshape(shape)


def zeros_for(found: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """The tangents or gradients, with zeros in place of None."""
    return zeros(shape, dtype=dtype) if found is None else found
