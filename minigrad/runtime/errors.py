"""Errors of the tape, made in one place for Python and for its accelerator."""

from __future__ import annotations

from typing import Any

__all__ = [
    "forward_hook_error",
    "freed_error",
    "hook_error",
    "misfit_error",
    "nested_error",
    "no_graph_error",
]


def freed_error(node: Any) -> RuntimeError:
    """The graph was used up by an earlier backward."""
    return RuntimeError(
        f"[backward] the graph was freed at {node.op.name!r} by an earlier backward; "
        "call that one with retain_graph=True, or compute the forward again"
    )


def no_graph_error(op: str) -> RuntimeError:
    """The tensor to start from has no graph."""
    return RuntimeError(
        f"[{op}] this tensor does not require grad and has no graph: none of what it was "
        "computed from had requires_grad=True, or it was computed under no_grad()"
    )


def nested_error() -> RecursionError:
    """Too many backward passes run inside one another."""
    return RecursionError(
        "[backward] 1000 backwards run inside one another: a Function's backward, or a hook, that "
        "calls backward must not do so without end"
    )


def misfit_error(x: Any, g: Any) -> Exception:
    """``g`` cannot be assigned to the ``grad`` of ``x``."""
    if not hasattr(type(g), "_edge"):
        return TypeError(f"[grad] expected a Tensor or None, not {type(g).__name__}")
    if g is x:
        return ValueError("[grad] a tensor cannot be its own gradient: use detach().clone()")
    if g.shape != x.shape:
        return ValueError(f"[grad] the gradient has shape {g.shape}, the tensor {x.shape}")
    return TypeError(
        f"[grad] the gradient is {g.dtype.name}, the tensor {x.dtype.name}: "
        f"convert it with .to(mg.{x.dtype.name})"
    )


def forward_hook_error(where: str) -> RuntimeError:
    """A tangent comes to a node with a hook."""
    return RuntimeError(
        f"[jvp] {where} has a hook, which may change gradients: forward mode has none, so remove "
        "the hook, or use reverse mode"
    )


def hook_error(name: str, returned: Any, g: Any) -> Exception:
    """A hook returned what cannot take the place of the gradient ``g``."""
    if not isinstance(returned, type(g)):
        return TypeError(
            f"[{name}] a hook returned {type(returned).__name__}, not a Tensor or None"
        )
    return ValueError(
        f"[{name}] a hook returned {returned.dtype.name} of shape {returned.shape} "
        f"for a gradient that is {g.dtype.name} of shape {g.shape}"
    )
