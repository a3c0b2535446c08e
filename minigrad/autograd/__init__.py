"""Autograd: ``backward``, ``grad`` and ``Function``, an operation with its own derivative."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from minigrad.autograd.function import Function, once_differentiable
from minigrad.autograd.upstream import into_grads, start
from minigrad.functions.arguments import listed_tensors
from minigrad.functions.creation import zeros, zeros_like
from minigrad.functions.grad_modes import enable_grad, no_grad
from minigrad.runtime.batched import BatchedOperandError, by_rules
from minigrad.runtime.native import call, kernels
from minigrad.tape.engine import accumulated, gradients
from minigrad.tape.grad_mode import is_grad_enabled
from minigrad.tape.hooks import watchers
from minigrad.tape.node import LEAF, Node, record
from minigrad.tape.tensor_base import TensorBase, parent_of, wrap

if TYPE_CHECKING:
    from minigrad._tensor import Tensor

__all__ = [
    "Function",
    "backward",
    "enable_grad",
    "grad",
    "is_grad_enabled",
    "no_grad",
    "once_differentiable",
]

# ---- backward and grad ---------------------------------------------------------------------------


def backward(
    tensors: Tensor | Sequence[Tensor],
    gradient: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Tensor | Sequence[Tensor] | None = None,
    grad_tensors: Any = None,
) -> None:
    """Add the gradient of this tensor with respect to every leaf to the leaf's ``grad``.

    ``gradient`` is the upstream gradient, of this tensor's shape; it may be left out for a
    tensor with one element. No hook may write into it while backward runs. The graph is freed
    unless ``retain_graph`` (default: create_graph).
    ``autograd.backward`` takes several tensors, too, and a gradient, or None, for each; their name
    in PyTorch is ``grad_tensors``.
    With ``inputs`` only these get a gradient, and only what leads to them is run through; those
    that are no leaves retain theirs from then on, as after ``retain_grad``.

    Raises RuntimeError if there is no graph, or it was freed, or a saved tensor was
    overwritten, or an input does not require a gradient.

    >>> import minigrad as mg
    >>> x, w = mg.tensor(3.0, requires_grad=True), mg.tensor(2.0, requires_grad=True)
    >>> (x * w).backward(inputs=w)
    >>> (w.grad.item(), x.grad)
    (3.0, None)
    """
    retain = create_graph if retain_graph is None else retain_graph
    if grad_tensors is not None:
        if gradient is not None:
            raise TypeError("[backward] gradient and grad_tensors are two names of one argument")
        gradient = grad_tensors
    if gradient is not None and isinstance(tensors, TensorBase) and _is_list_of_tensors(gradient):
        tensors = [tensors]
    single = type(tensors) is not list and type(tensors) is not tuple
    if single and not create_graph and inputs is None and not watchers:
        into_grads(tensors, gradient, retain)
        return
    if create_graph:
        warnings.warn(
            "[backward] create_graph=True makes a cycle of each leaf and its grad, which holds the "
            "graph until a garbage collection: use mg.grad(..., create_graph=True), or set grad to "
            "None after use",
            stacklevel=2,
        )
    outputs = _tensors("backward", "output", tensors)
    given = [gradient] if isinstance(tensors, TensorBase) else _given(gradient, len(outputs))
    roots = [start(y, g, "backward", create_graph) for y, g in zip(outputs, given, strict=True)]
    to_fill = None if inputs is None else _to_be_filled(inputs)
    edges, upstream = [edge for edge, _ in roots], [g for _, g in roots]
    found = gradients(edges, upstream, retain, create_graph, to_fill, not create_graph)
    for leaf, made in (found or {}).items():
        if type(leaf) is not Node and leaf._edge is LEAF:
            leaf._grad = made.clone() if leaf._grad is None else leaf._grad + made
    for leaf in found or ():
        if type(leaf) is not Node and hasattr(leaf, "_hooks"):
            accumulated(leaf)


def _is_list_of_tensors(gradient: Any) -> bool:
    """A list for one tensor, as PyTorch takes it; one of numbers is a gradient itself."""
    listed = isinstance(gradient, (list, tuple)) and len(gradient) == 1
    return listed and (gradient[0] is None or isinstance(gradient[0], TensorBase))


def _given(gradient: Any, count: int) -> list[Any]:
    """An upstream gradient for each of several outputs."""
    if gradient is None:
        return [None] * count
    given = [gradient] if isinstance(gradient, TensorBase) else list(gradient)
    if len(given) != count:
        raise ValueError(f"[backward] {len(given)} gradients for {count} tensors")
    return given


def _to_be_filled(inputs: Any) -> set[Any]:
    """The edges of tensors that are to get a ``grad``."""
    tensors = _tensors("backward", "input", inputs)
    if not tensors:
        raise ValueError("[backward] inputs is empty: leave it out for all leaves")
    edges = _edges("backward", tensors)
    for x in tensors:
        x.retain_grad()
    return set(edges)


def grad(
    outputs: Tensor | Sequence[Tensor],
    inputs: Tensor | Sequence[Tensor],
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool = False,
    *,
    materialize_grads: bool = False,
) -> tuple[Any, ...]:
    """The gradients of the outputs with respect to the inputs, as a tuple; no ``grad`` is touched.

    ``grad_outputs`` holds an upstream gradient per output, which may be None for a single element.
    With ``create_graph`` the gradients can be differentiated again, also where they are constant:
    that gives zeros. An input that the outputs do not depend on gets zeros, or None with
    ``allow_unused``, unless ``materialize_grads`` asks for zeros. ``only_inputs`` is PyTorch's.

    Raises RuntimeError where there is no graph or it was freed, ValueError if ``only_inputs`` is
    False.

    >>> import minigrad as mg
    >>> x = mg.tensor(3.0, requires_grad=True)
    >>> (dx,) = mg.grad(x * x * x, x, create_graph=True)
    >>> mg.grad(dx, x)[0].item()
    18.0
    """
    if not only_inputs:
        raise ValueError("[grad] only_inputs is False, and grad writes no grad: use backward()")
    output_list: list[Any] = _tensors("grad", "output", outputs)
    input_list: list[Any] = _tensors("grad", "input", inputs)
    if not input_list:
        raise ValueError("[grad] no inputs are given: name the tensors whose gradients are wanted")
    if grad_outputs is None:
        given: list[Any] = [None] * len(output_list)
    elif isinstance(grad_outputs, TensorBase) or isinstance(outputs, TensorBase):
        one = not isinstance(grad_outputs, (list, tuple))
        given = [grad_outputs] if one else list(grad_outputs)
    else:
        given = list(grad_outputs)
    if len(given) != len(output_list):
        raise ValueError(f"[grad] {len(given)} grad_outputs for {len(output_list)} outputs")
    try:
        edges = _edges("grad", input_list)
        roots = [start(y, g, "grad", create_graph) for y, g in zip(output_list, given, strict=True)]
    except BatchedOperandError:
        how = retain_graph, create_graph, allow_unused, materialize_grads
        return tuple(by_rules("gradients")(output_list, input_list, given, *how))
    found = gradients(
        [edge for edge, _ in roots],
        [g for _, g in roots],
        create_graph if retain_graph is None else retain_graph,
        create_graph,
        set(edges),
    )
    absent = allow_unused and not materialize_grads
    results = [
        found[edge] if edge in found else None if absent else zeros_like(x)
        for x, edge in zip(input_list, edges, strict=True)
    ]
    if create_graph:
        pairs = zip(results, input_list, strict=True)
        results = [None if g is None else constant(g, x) for g, x in pairs]
    return tuple(_unshared(results, given))


def _unshared(results: Sequence[Any], given: Sequence[Any]) -> list[Any]:
    """The gradients, copied where one has the memory of another or of a gradient that was given.

    A sum hands the same gradient to all its inputs, and clipping writes into each result.
    """
    taken = {g._h.buffer for g in given if isinstance(g, TensorBase)}
    made = []
    for g in results:
        if g is not None:
            place = g._h.buffer
            if place in taken:
                with enable_grad():  # its history goes on, also that of a leaf
                    g = g.clone()
            taken.add(place)
        made.append(g)
    return made


def _tensors(op: str, kind: str, given: Any) -> list[Any]:
    """One tensor, or those of a list, as a list."""
    tensors = [given] if isinstance(given, TensorBase) else listed_tensors(op, given)
    for place, x in enumerate(tensors):
        if not isinstance(x, TensorBase):
            raise TypeError(f"[{op}] {kind} {place} is {type(x).__name__}, not a Tensor")
    return tensors


def _edges(op: str, inputs: list[Any]) -> list[Any]:
    """Where their gradients arrive."""
    for place, x in enumerate(inputs):
        if x._edge is None:
            raise RuntimeError(
                f"[{op}] input {place} does not require grad: set requires_grad before computing "
                "the outputs"
            )
    return [parent_of(x) for x in inputs]


class _Constant:
    """A gradient that does not depend on its input, as of something linear: its own are zeros."""

    name = "constant"

    @staticmethod
    def vjp(node: Node, g: Tensor) -> tuple[Tensor]:
        shape, dtype = node.args
        return (zeros(shape, dtype=dtype),)

    graph_vjp = vjp

    @staticmethod
    def jvp(node: Node, tangents: Sequence[Any]) -> None:
        """A real zero."""


_CONSTANT = _Constant()


def constant(g: Any, x: Any) -> Any:
    """A derivative by x on the tape: if it has no history, that by x is of zeros."""
    if g._edge is not None:
        return g
    edge = record(_CONSTANT, None, (x.shape, x.dtype), None, parent_of(x))
    return wrap(call(kernels.view_alias, g._h), edge)


_MODULES = ("anomaly_mode", "functional", "graph", "variable")


def __getattr__(name: str) -> Any:
    if name in _MODULES:  # loaded when it is first asked for
        return import_module(f"minigrad.autograd.{name}")
    if name in ("detect_anomaly", "set_detect_anomaly"):
        return getattr(import_module("minigrad.autograd.anomaly_mode"), name)
    if name == "Variable":
        return import_module("minigrad._tensor.typed_classes").Variable
    if name not in ("gradcheck", "gradgradcheck"):  # PyTorch has them here too
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from minigrad import checking

    return getattr(checking, name)
