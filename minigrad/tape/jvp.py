"""Forward mode: the Jacobian of a recorded function as a linear map of tangents.

A function is run once, recorded. Tangents are then pushed through its nodes, oldest first. The
rules come from the rows of the op table and are written in tensor operations, so tangents can be
differentiated again. A tangent starts at the inputs of its own map, and no other map sees it.
Loaded with the first transform that needs it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import sin
from typing import Any

from minigrad.ops.composed import product
from minigrad.ops.pointwise import SCALE
from minigrad.ops.table import PLACES, Row
from minigrad.runtime.batched import by_rules, running
from minigrad.runtime.dtypes import DType, by_code, float64
from minigrad.runtime.errors import forward_hook_error, freed_error
from minigrad.runtime.native import call, kernels, vjp_of
from minigrad.tape.apply import apply
from minigrad.tape.engine import gradients, topological_order, unbroadcast
from minigrad.tape.grad_mode import begin, end, mode
from minigrad.tape.node import LEAF, Node, Parent
from minigrad.tape.slice_grad import SliceGrad
from minigrad.tape.tensor_base import TensorBase, parent_of, result_type, wrap
from minigrad.tape.vjp import cast, fused_or_formula, pointwise_formula, rules, unpack

__all__ = [
    "LinearMap",
    "Tangent",
    "Tangents",
    "arguments_of",
    "by_formula",
    "in_one_dtype",
    "joined",
    "sum_of",
    "transposed",
]

Tangent = Any  # a Tensor, or None for what does not depend on the inputs: a real zero
Tangents = Sequence[Tangent]
Meta = tuple[tuple[int, ...], DType]


class LinearMap:
    """The Jacobian of a recorded function, which :meth:`push` multiplies with tangents.

    ``inputs`` are edges, ``outputs`` tensors that were computed from them. Nodes up to the serial
    ``oldest`` were made before.
    """

    def __init__(
        self, inputs: Sequence[Parent], outputs: Sequence[TensorBase], oldest: int = -1
    ) -> None:
        self.inputs = list(inputs)
        self.outputs = list(outputs)
        self.edges = [parent_of(x) for x in outputs]
        self.nodes = self._between(oldest)
        self.done = self._last_uses()
        self._metas: dict[Node, Meta] | None = None

    def _between(self, oldest: int) -> list[Node]:
        """The nodes on the ways from inputs to outputs, oldest first; RuntimeError for a hook."""
        reached: set[Any] = set(self.inputs)
        for edge in self.inputs:
            if _has_hooks(edge.hooks if type(edge) is Node else getattr(edge, "_hooks", None)):
                raise forward_hook_error("an input")
        found = []
        roots = [edge for edge in self.edges if type(edge) is Node]
        for node in topological_order(roots, oldest):
            if node in reached or reached.isdisjoint(node.parents or ()):
                continue
            if _has_hooks(node.hooks):
                raise forward_hook_error(node.op.name)
            reached.add(node)
            found.append(node)
        return found

    def _last_uses(self) -> list[list[Any]]:
        """For each node, the edges whose tangents no later one needs."""
        kept = set(self.edges)
        done: list[list[Any]] = []
        for node in reversed(self.nodes):
            parents = set(node.parents or ())
            last = [edge for edge in parents if edge is not None and edge not in kept]
            kept.update(last)
            done.append(last)
        return done[::-1]

    def push(self, tangents: Tangents, recorded: bool) -> list[Tangent]:
        """The tangents of the outputs; on the tape if they are ``recorded``.

        Raises RuntimeError where the graph was freed, or a value that a rule needs overwritten.
        """
        found = {edge: t for edge, t in zip(self.inputs, tangents, strict=True) if t is not None}
        # Kernels take ordinary tensors, and leave no graph.
        by_kernels = not recorded and all(type(t) is result_type() for t in found.values())
        scope = begin(recorded)
        try:
            for node, done in zip(self.nodes, self.done, strict=True):
                parents = node.parents
                if not parents:
                    raise freed_error(node)
                given = [None if edge is None else found.get(edge) for edge in parents]
                if any(t is not None for t in given):
                    made = self._pushed(node, given, by_kernels)
                    if made is not None:
                        found[node] = made
                for edge in done:
                    found.pop(edge, None)
        finally:
            end(scope)
        made = [None if edge is None else found.get(edge) for edge in self.edges]
        pairs = zip(made, self.outputs, strict=True)
        return [None if t is None else cast(t, y.dtype) for t, y in pairs]

    def _pushed(self, node: Node, tangents: Tangents, by_kernels: bool) -> Tangent:
        """The tangent of a node's output, by fused kernels or by formulas."""
        op = node.op
        if type(op) is not Row:
            rule = getattr(op, "jvp", None)
            if rule is not None:
                return rule(node, tangents)
        elif op.jvp and _states_all(op, tangents):
            return self._by_formulas(op, node, tangents, by_kernels)
        elif op.family in _FAMILIES:
            return _FAMILIES[op.family](op, node, tangents, by_kernels)
        made, _ = transposed(
            lambda us: rules(op)[1](node, us[0]),
            [self._meta(node)],
            tangents,
            mode.enabled,
            node.input_meta,
        )
        return made[0]

    def _by_formulas(self, row: Row, node: Node, tangents: Tangents, by_kernels: bool) -> Tangent:
        """The sum of what the row's formulas make of each tangent.

        A formula with the parameter ``size`` comes last: the sum of the others has that shape.
        """
        given = in_one_dtype(node, tangents)
        if callable(row.jvp):
            arguments = _saved_and_args(row, node, row.jvp_needs[0])
            return row.jvp(tuple(given), *arguments)
        total = None
        for i in sorted(range(len(given)), key=lambda i: "size" in row.jvp_needs[i]):
            t, names = given[i], row.jvp_needs[i]
            formula: Any = row.jvp[i]
            if t is None:
                continue
            if row.is_symmetric and by_kernels and node.input_meta is None:
                rules(row)  # which find where the saved arrays are
                made = fused_or_formula(row, i, node, t)
            else:
                beside: list[Any] = []
                if "size" in names:
                    beside.append(self._meta(node)[0] if total is None else total.shape)
                if "pull" in names:
                    beside.append(_pull_of(row, i, node, by_kernels))
                made = formula(t, *beside, *_saved_and_args(row, node, names))
            total = made if total is None else total + made
        return _broadcast(node, total) if row.is_symmetric else total

    def _meta(self, node: Node) -> Meta:
        """The shape and dtype of a node's output."""
        op = node.op
        if type(op) is Row and "y" in op.keeps and node.saved.buffer(op.place_of("y")):
            y = unpack(op, node, "y")
            return y.shape, y.dtype
        if (known := getattr(op, "meta", None)) is not None:
            return known
        if self._metas is None:
            self._metas = self._all_metas()
        if node not in self._metas:
            raise RuntimeError(
                f"[jvp] no gradient comes to {op.name!r}, whose rule forward mode transposes: "
                "detach() its result, or use reverse mode"
            )
        return self._metas[node]

    def _all_metas(self) -> dict[Node, Meta]:
        """Shapes and dtypes of all nodes: those of the gradients of a backward pass."""
        pairs = [(e, y) for e, y in zip(self.edges, self.outputs, strict=True) if type(e) is Node]
        roots, upstream = [e for e, _ in pairs], [_filled(y.shape, y.dtype) for _, y in pairs]
        found = gradients(roots, upstream, True, False, set(self.nodes))
        return {node: (g.shape, g.dtype) for node, g in found.items() if isinstance(g, TensorBase)}


def _has_hooks(hooks: Any) -> bool:
    """Whether a hook may change the gradient."""
    return any(not hasattr(hook, "only_reads") for hook in hooks or ())


def _filled(shape: tuple[int, ...], dtype: DType) -> Any:
    return wrap(call(kernels.full, dtype.code, shape, 0.0, 0))


# ---- rules of the families -----------------------------------------------------------------------


def sum_of(parts: Sequence[Tangent]) -> Tangent:
    """The sum of those that are there; None if none is."""
    total = None
    for t in parts:
        if t is not None:
            total = t if total is None else total + t
    return total


def _pointwise(row: Row, node: Node, tangents: Tangents, by_kernels: bool) -> Tangent:
    """The sum of partials times tangents."""
    if by_kernels and node.input_meta is None:
        return sum_of([_by_kernel(row, i, node, t) for i, t in enumerate(tangents)])
    parts = []
    for i, t in enumerate(in_one_dtype(node, tangents)):
        if t is not None and row.derivatives[i] != 0.0:
            parts.append(by_formula(row, i, node, t))
    return _broadcast(node, sum_of(parts))


def _by_kernel(row: Row, i: int, node: Node, t: Tangent) -> Tangent:
    """A tangent times the i-th partial, by the kernel that multiplies gradients with it."""
    partial = row.derivatives[i]
    if t is None or partial == 0.0:
        return None
    kernel = vjp_of(row.id) if callable(partial) and row is not SCALE else None
    if kernel is None or node.saved is None:
        return by_formula(row, i, node, t)
    if row.arity == 1:
        return wrap(call(kernel, t._h, node.saved))
    return wrap(call(kernel, 1 << i, t._h, node.saved)[i])


def by_formula(row: Row, i: int, node: Node, t: Tangent) -> Tangent:
    """A tangent times the i-th partial of a pointwise row."""
    if row is SCALE and i == 1:
        return product(t, cast(unpack(row, node, "a"), t.dtype))
    return pointwise_formula(row, i, node, t)


def in_one_dtype(node: Node, tangents: Tangents) -> Tangents:
    """The tangents in the dtype of the output, the widest of the inputs.

    Beside arrays that ``where`` and ``clamp`` broadcast there may be a Python scalar, whose dtype
    does not count: a 0-d input without a gradient is taken for one.
    """
    meta = node.input_meta
    if meta is None:
        return tangents
    scalars = node.op.family == "custom"
    codes = [
        code
        for (shape, code), edge in zip(meta, node.parents or (), strict=True)
        if shape or edge is not None or not scalars
    ]
    dtype = by_code[max(codes)]
    return [None if t is None else cast(t, dtype) for t in tangents]


def _broadcast(node: Node, t: Tangent) -> Tangent:
    """The tangent in the shape to which the inputs were broadcast."""
    if t is None or node.input_meta is None:
        return t
    shapes = [shape for shape, _ in node.input_meta]
    ndim = max(map(len, shapes))
    lines = [(1,) * (ndim - len(shape)) + tuple(shape) for shape in shapes]
    shape = tuple([next((n for n in sizes if n != 1), 1) for sizes in zip(*lines, strict=True)])
    return t if t.shape == shape else t.expand(shape)


def arguments_of(row: Row, names: Sequence[str], node: Node) -> tuple[Any, ...]:
    """The node's arguments for a formula: ``shape`` comes first where that takes it."""
    skips = row.wants_shape and "shape" not in names
    return node.args[1:] if skips else node.args


def _saved_and_args(row: Row, node: Node, names: Sequence[str]) -> list[Any]:
    """The saved arrays and the arguments that a formula takes."""
    saved = [unpack(row, node, name) for name in names if name in PLACES]
    return [*saved, *arguments_of(row, names, node)]


def _states_all(row: Row, tangents: Tangents) -> bool:
    """Whether the row states a formula for each of the tangents."""
    if callable(row.jvp):
        return True
    return all(t is None or f is not None for t, f in zip(tangents, row.jvp, strict=True))


def _pull_of(row: Row, i: int, node: Node, by_kernels: bool) -> Callable[[Any], Any]:
    """The gradient of the i-th input as a function of the upstream gradient."""
    rule = rules(row)[0 if by_kernels else 1]
    return lambda g: rule(node, g)[i]


def _linear(row: Row, node: Node, tangents: Tangents, _: bool) -> Tangent:
    """The operation itself."""
    return apply(row, (tangents[0],), arguments_of(row, (), node))


def _bilinear(row: Row, node: Node, tangents: Tangents, _: bool) -> Tangent:
    """The product rule."""
    a, b = in_one_dtype(node, tangents)
    return sum_of(
        [
            None if a is None else apply(row, (a, unpack(row, node, "b")), node.args),
            None if b is None else apply(row, (unpack(row, node, "a"), b), node.args),
        ]
    )


def _variadic(row: Row, node: Node, tangents: Tangents, _: bool) -> Tangent:
    """The operation itself, with zeros for inputs without a tangent."""
    parts = joined(row, node, tangents)
    return None if parts is None else apply(row, parts, node.args)


def joined(row: Row, node: Node, tangents: Tangents, skipped: int = 0) -> list[Any] | None:
    """The tangents of arrays that are joined, zeros where one is missing; None if all are.

    ``skipped`` first dimensions of the tangents are none of the arrays.
    """
    given = [t if t is None or t._h.size else None for t in in_one_dtype(node, tangents)]
    like = next((t for t in given if t is not None), None)
    if like is None:
        return None
    first, shape = like.shape[:skipped], like.shape[skipped:]
    return [
        _filled((*first, *_part_shape(row, i, node.args, shape)), like.dtype) if t is None else t
        for i, t in enumerate(given)
    ]


def _part_shape(row: Row, i: int, args: Any, like: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of the i-th of some arrays that are joined, one of which has the shape ``like``."""
    if row.name == "block_diag":
        shape: tuple[int, ...] = args[1][i][1]
        return shape
    if row.name == "stack":
        return like
    axis, bounds = args
    return (*like[:axis], bounds[i + 1] - bounds[i], *like[axis + 1 :])


_FAMILIES: dict[str, Callable[[Row, Node, Tangents, bool], Tangent]] = {
    "pointwise": _pointwise,
    "linear": _linear,
    "bilinear": _bilinear,
    "variadic": _variadic,
}

# ---- transposing ---------------------------------------------------------------------------------


def transposed(
    pull: Callable[[list[Any]], Sequence[Any]],
    metas: Sequence[Meta],
    tangents: Tangents,
    recorded: bool,
    input_meta: Any = None,
    checked: bool = False,
) -> tuple[list[Tangent], bool]:
    """Tangents of outputs by differentiating a VJP, which is linear in its upstream gradients.

    ``pull`` makes gradients of the inputs of upstream gradients, whose shapes and dtypes are
    ``metas``. The gradient of <pull(u), t> by u is the tangent that t is pushed to (J. Townsend,
    "A new trick for calculating Jacobian vector products", 2017). Returns the tangents, and
    whether <pull(u), t> is <u, tangent> where that is ``checked``: else the pull is not linear.
    """
    scope = begin(True)
    try:
        us = [_upstream(shape, dtype) for shape, dtype in metas]
        edges = [u._edge for u in us]
        roots, backs, pulled = [], [], []
        for i, (g, t) in enumerate(zip(pull(us), tangents, strict=True)):
            if g is None or t is None:
                continue
            g = g.whole() if type(g) is SliceGrad else g
            g = g if input_meta is None else unbroadcast(g, input_meta[i])
            roots.append(parent_of(g))
            backs.append(t)
            pulled.append(g)
    finally:
        end(scope)
    found = gradients(roots, backs, True, recorded, set(edges)) if roots else {}
    made = [found.get(edge) for edge in edges]
    return made, not checked or _is_adjoint(
        zip(pulled, backs, strict=True), zip(us, made, strict=True)
    )


def _is_adjoint(left: Iterable[tuple[Any, Any]], right: Iterable[tuple[Any, Any]]) -> bool:
    """Whether both sums of inner products are equal, but for rounding; NaN is equal to all."""
    sums: list[Any] = []
    size: Any = 0.0
    for pairs in (left, right):
        products = [(a.detach() * b.detach()).to(float64) for a, b in pairs if b is not None]
        sums.append(sum([x.sum() for x in products]))
        size = size + sum([x.abs().sum() for x in products])
    differs = abs(sums[0] - sums[1]) > 1e-4 * size
    if running and isinstance(differs, TensorBase):
        differs = by_rules("every_slice")(differs).any()  # of a vmap around
    return not differs


def _upstream(shape: tuple[int, ...], dtype: DType) -> Any:
    """An upstream gradient of distinct elements, on the tape, of which formulas make no exception.

    Rules of factorisations, for example, look for equal upstream gradients of equal values.
    """
    u: Any = wrap(call(kernels.full, dtype.code, shape, 64.0, 0), LEAF)
    count: Any = wrap(call(kernels.arange, dtype.code, 0.0, 1.0, 0, 1, u._h.size))
    factors = 1.0 + 0.5 * (count * sin(1.0)).sin()
    return u * factors.reshape(shape)
