"""Start of a backward pass: an edge, and the upstream gradient that comes to it."""

from __future__ import annotations

from typing import Any

from minigrad.functions.arguments import renamed
from minigrad.functions.creation import tensor
from minigrad.runtime.dtypes import float64
from minigrad.runtime.errors import no_graph_error
from minigrad.runtime.native import call, kernels
from minigrad.tape.engine import gradients
from minigrad.tape.node import Gradient, Parent
from minigrad.tape.speed import accelerator
from minigrad.tape.tensor_base import TensorBase, parent_of, wrap

__all__ = ["into_grads", "start"]


def start(
    output: Any, gradient: Any, op: str = "backward", create_graph: bool = False
) -> tuple[Parent, Gradient]:
    """Where a backward starts: the output's edge, and its upstream gradient."""
    if output._edge is None:
        raise no_graph_error(op)
    return parent_of(output), _upstream(op, output, gradient, create_graph)


def _upstream(op: str, output: Any, gradient: Any, create_graph: bool) -> Gradient:
    """The gradient given, or 1 for one element; on the tape for a graph only."""
    if gradient is None:
        h = output._h
        if h.size != 1:
            raise RuntimeError(
                f"[{op}] a gradient can be left out only for a single element, not for shape "
                f"{output.shape}: pass one of that shape, or reduce first, as in y.sum()"
            )
        g = one(h.dtype)
        return g.expand(output.shape) if h.ndim else g
    if not isinstance(gradient, TensorBase):
        try:
            gradient = tensor(gradient, output.dtype)
        except (TypeError, ValueError) as error:
            raise renamed(op, error) from None
    if gradient._edge is not None and not create_graph:
        gradient = gradient.detach()
    if gradient._h.alike(output._h):
        return gradient
    if gradient.shape != output.shape:
        raise ValueError(
            f"[{op}] the gradient has shape {gradient.shape}, the tensor {output.shape}"
        )
    return gradient.to(output.dtype)


_ones: dict[int, Any] = {}


def one(dtype: int, /) -> Gradient:
    """A 1 whose memory is shared, so frozen; ``dtype`` is its code."""
    found = _ones.get(dtype)
    if found is None:
        if not 0 <= dtype <= float64.code:
            raise ValueError("one(dtype): no such dtype")
        found = _ones[dtype] = call(kernels.full, dtype, (), 1.0, 1)
        found.freeze()
    return wrap(found)


def into_grads(output: Any, gradient: Any, retain_graph: bool, /) -> None:
    """Run a gradient from an output back to the leaves, and add what arrives to their ``grad``."""
    if not isinstance(output, TensorBase):
        raise TypeError("[backward] expected a Tensor to start from")
    edge, g = start(output, gradient)
    gradients((edge,), (g,), retain_graph, False, add=True)


if accelerator:
    into_grads, one = accelerator.into_grads, accelerator.one
