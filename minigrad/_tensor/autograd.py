"""Methods of Tensor for its place on the tape: leaves, hooks and kept gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from minigrad._tensor.inplace import KeepGrad, kept_by
from minigrad.functions.creation import require_grad
from minigrad.runtime.native import call, kernels
from minigrad.tape.hooks import LeafHooks, Removable, hook_changes
from minigrad.tape.node import LEAF, Node
from minigrad.tape.slice_grad import SliceGrad
from minigrad.tape.tensor_base import TensorBase, parent_of, wrap

if TYPE_CHECKING:
    from minigrad._tensor import Tensor

__all__ = [
    "accumulate_",
    "detach",
    "register_hook",
    "register_post_accumulate_grad_hook",
    "requires_grad_",
    "retain_grad",
]


def _hook_of_leaf(
    leaf: TensorBase, hook: Callable[[Tensor], Any], after: bool = False
) -> Removable:
    if not hasattr(leaf, "_hooks"):
        leaf._hooks = LeafHooks()
    hooks = leaf._hooks.after if after else leaf._hooks
    hooks.append(hook)
    hook_changes.count += 1
    return Removable(hooks, hook)


def requires_grad_(self: Tensor, requires_grad: bool = True) -> Tensor:
    """Set whether this leaf requires a gradient, and return it."""
    if type(self._edge) is Node:
        if not requires_grad:
            raise RuntimeError("[requires_grad_] only leaves can stop requiring grad; use detach()")
        return self
    return require_grad(self, requires_grad)


def detach(self: Tensor) -> Tensor:
    """A tensor on the same memory, without a history."""
    return wrap(call(kernels.view_alias, self._h))


def register_hook(self: Tensor, hook: Callable[[Tensor], Tensor | None]) -> Removable:
    """Call ``hook(gradient)`` when this tensor's gradient is known.

    The hook may return another one.

    The gradient of a leaf is the sum that one backward adds to ``grad``. It is known at the end of
    the pass. Returns a handle: ``handle.remove()`` removes the hook. Raises RuntimeError for a
    tensor that does not require grad.

    >>> import minigrad as mg
    >>> x = mg.tensor(3.0, requires_grad=True)
    >>> handle = x.register_hook(lambda g: g.clamp(max=1.0))
    >>> (x * x).backward()
    >>> x.grad
    tensor(1.)
    """
    edge = self._edge
    if edge is None:
        raise RuntimeError(
            "[register_hook] this tensor does not require grad: no gradient comes to it"
        )
    if not callable(hook):
        raise TypeError(f"[register_hook] a hook is a function, not {type(hook).__name__}")
    if type(edge) is not Node:
        return _hook_of_leaf(parent_of(self), hook)
    if edge.hooks is None:
        edge.hooks = []
    hooks = edge.hooks
    # these hooks come last: they keep the final gradient
    kept = sum([type(other) is KeepGrad for other in hooks])
    hooks.insert(len(hooks) - (kept if type(hook) is not KeepGrad else 0), hook)
    return Removable(hooks, hook)


def register_post_accumulate_grad_hook(self: Tensor, hook: Callable[[Tensor], None]) -> Removable:
    """Call ``hook(tensor)`` after each backward that added to this leaf's ``grad``.

    The hook is called when all leaves have their gradients. Nothing is recorded in the hook unless
    the backward creates a graph. An optimizer may step in it, and ``grad`` may be set to None.
    Returns a handle: ``handle.remove()`` removes the hook. Raises RuntimeError for a tensor that is
    no leaf or does not require grad.

    >>> import minigrad as mg
    >>> x = mg.tensor(3.0, requires_grad=True)
    >>> handle = x.register_post_accumulate_grad_hook(lambda leaf: leaf.sub_(leaf.grad))
    >>> (x * 2).backward()
    >>> x.item()
    1.0
    """
    op = "register_post_accumulate_grad_hook"
    if self._edge is not LEAF:
        raise RuntimeError(f"[{op}] only a leaf that requires grad has a grad to wait for")
    if not callable(hook):
        raise TypeError(f"[{op}] a hook is a function, not {type(hook).__name__}")
    return _hook_of_leaf(parent_of(self), hook, after=True)


def retain_grad(self: Tensor) -> None:
    """Keep the gradient of this non-leaf tensor in ``grad`` at each backward.

    The gradient of a leaf is always kept. Raises RuntimeError for a tensor that does not require
    grad.
    """
    node = self._edge
    if node is None:
        raise RuntimeError("[retain_grad] this tensor does not require grad: it will have none")
    if type(node) is Node and not kept_by(node, self):
        self.register_hook(KeepGrad(self))


def accumulate_(self: Tensor, g: Tensor | SliceGrad) -> None:
    """Add a gradient of the same shape and dtype in place. Only the caller has this memory."""
    if type(g) is SliceGrad:
        g.add_to(self._h)
        return
    call(kernels.accumulate, self._h, g._h)
