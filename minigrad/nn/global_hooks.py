"""Hooks that are called for every module, as by ``register_module_forward_hook``.

The functions are in ``mg.nn.modules.module``. These hooks are called before a module's own hooks.
Without such hooks, calls of modules run as in :mod:`minigrad.nn.module`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minigrad.nn.module import Module, _Hook, _Hooked
from minigrad.tape.hooks import Removable

__all__ = [
    "register_module_backward_hook",
    "register_module_forward_hook",
    "register_module_forward_pre_hook",
    "register_module_full_backward_hook",
    "register_module_full_backward_pre_hook",
]

_of_all = _Hooked(Module(), None)  # has the hooks of all modules, and is never called itself
_plain: Any = Module.__call__


def register_module_forward_hook(
    hook: Callable[..., Any], *, with_kwargs: bool = False, always_call: bool = False
) -> Removable:
    """Call ``hook(module, args, output)`` after the forward of any module.

    This is :meth:`minigrad.nn.Module.register_forward_hook` for all present and future modules.

    >>> import minigrad as mg
    >>> register = mg.nn.modules.module.register_module_forward_hook
    >>> handle = register(lambda module, args, output: print(type(module).__name__, output.shape))
    >>> _ = mg.nn.Sequential(mg.nn.Linear(2, 3), mg.nn.ReLU())(mg.ones(1, 2))
    Linear (1, 3)
    ReLU (1, 3)
    Sequential (1, 3)
    >>> handle.remove()
    """
    return _registered("register_module_forward_hook", "after", hook, with_kwargs, always_call)


def register_module_forward_pre_hook(hook: Callable[..., Any]) -> Removable:
    """Call ``hook(module, args)`` before the forward of any module."""
    return _registered("register_module_forward_pre_hook", "before", hook)


def register_module_full_backward_pre_hook(hook: Callable[..., Any]) -> Removable:
    """Call ``hook(module, grad_output)`` in backward, for any module.

    Like :meth:`minigrad.nn.Module.register_full_backward_pre_hook`.
    """
    return _registered("register_module_full_backward_pre_hook", "backward_before", hook)


def register_module_full_backward_hook(hook: Callable[..., Any]) -> Removable:
    """Call ``hook(module, grad_input, grad_output)`` in backward, for any module.

    Like :meth:`minigrad.nn.Module.register_full_backward_hook`.
    """
    return _registered("register_module_full_backward_hook", "backward", hook)


register_module_backward_hook = register_module_full_backward_hook


def _registered(
    op: str, when: str, function: Any, with_kwargs: bool = False, always: bool = False
) -> Removable:
    if not callable(function):
        raise TypeError(f"[{op}] a hook is a function, not {type(function).__name__}")
    hooks: list[_Hook] = getattr(_of_all, when)
    hook = _Hook(function, bool(with_kwargs), bool(always))
    hooks.append(hook)
    Module.__call__ = _called  # type: ignore[method-assign]
    return _RemovableFromAll(hooks, hook)  # type: ignore[arg-type]


class _RemovableFromAll(Removable):
    """Handle that removes a hook of all modules. The last one also restores ``Module.__call__``."""

    __slots__ = ()

    def remove(self) -> None:
        """Remove the hook."""
        super().remove()
        if not (_of_all.before or _of_all.after or _of_all.backward_before or _of_all.backward):
            Module.__call__ = _plain  # type: ignore[method-assign]

    __call__ = remove


def _called(self: Module, *args: Any, **kwargs: Any) -> Any:
    """``Module.__call__`` while there are hooks of all modules."""
    own = self.__dict__.get("forward")
    hooked = own if type(own) is _Hooked else _Hooked(self, own)
    return hooked.with_those(_of_all)(*args, **kwargs)
