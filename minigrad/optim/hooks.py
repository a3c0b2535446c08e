"""Hooks of optimizers: functions called around steps, and around reading and loading states."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from minigrad.tape.hooks import Removable

__all__ = ["Hooked"]

Hook = Callable[..., Any]


class Hooked:
    """Base of optimizers with hooks. As in PyTorch, copies and pickles have no hooks."""

    _name: str
    _hooks: dict[str, list[Hook]] | None = None  # hooks by the time of their call

    def register_step_pre_hook(self, hook: Hook) -> Removable:
        """Call ``hook(optimizer, args, kwargs)`` before each step.

        The hook may return a pair of other arguments for the step. Returns a handle that removes
        the hook.

        >>> import minigrad as mg
        >>> optimizer = mg.optim.SGD([mg.zeros(1, requires_grad=True)], lr=0.1)
        >>> handle = optimizer.register_step_pre_hook(lambda *given: print("step"))
        >>> optimizer.step()
        step
        >>> handle.remove()
        """
        return self._hooked_step("step_before", hook)

    def register_step_post_hook(self, hook: Hook) -> Removable:
        """Call ``hook(optimizer, args, kwargs)`` after each step.

        Returns a handle that removes the hook.
        """
        return self._hooked_step("step_after", hook)

    def register_state_dict_pre_hook(self, hook: Hook, prepend: bool = False) -> Removable:
        """Call ``hook(optimizer)`` before its state is read.

        Returns a handle that removes the hook.
        """
        return self._hook("state_before", hook, prepend)

    def register_state_dict_post_hook(self, hook: Hook, prepend: bool = False) -> Removable:
        """Call ``hook(optimizer, state_dict)`` with the state that was read.

        The hook may change the dict or return another one. Returns a handle that removes the hook.
        """
        return self._hook("state_after", hook, prepend)

    def register_load_state_dict_pre_hook(self, hook: Hook, prepend: bool = False) -> Removable:
        """Call ``hook(optimizer, state_dict)`` before a state is loaded.

        The hook may change the dict, which is a shallow copy, or return another one. Returns a
        handle that removes the hook.
        """
        return self._hook("load_before", hook, prepend)

    def register_load_state_dict_post_hook(self, hook: Hook, prepend: bool = False) -> Removable:
        """Call ``hook(optimizer)`` after a state was loaded.

        Returns a handle that removes the hook.
        """
        return self._hook("load_after", hook, prepend)

    def _hook(self, when: str, hook: Hook, prepend: bool = False) -> Removable:
        if not callable(hook):
            raise TypeError(f"[{self._name}] a hook is a function, not {type(hook).__name__}")
        if self._hooks is None:
            self._hooks = {}
        hooks = self._hooks.setdefault(when, [])
        hooks.insert(0 if prepend else len(hooks), hook)
        return Removable(hooks, hook)

    def _hooked_step(self, when: str, hook: Hook) -> Removable:
        handle = self._hook(when, hook)
        self.__dict__["step"] = partial(_step, self)  # optimizers without hooks have no overhead
        return handle

    def _call(self, when: str) -> None:
        for hook in tuple((self._hooks or {}).get(when, ())):
            hook(self)

    def _changed(self, when: str, state: Any) -> Any:
        """The state after these hooks."""
        for hook in tuple((self._hooks or {}).get(when, ())):
            returned = hook(self, state)
            state = state if returned is None else returned
        return state

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in self.__dict__.items() if k not in ("step", "_hooks")}


def _step(optimizer: Any, *args: Any, **kwargs: Any) -> Any:
    """Run a step with its hooks."""
    hooks = optimizer._hooks
    for hook in tuple(hooks.get("step_before", ())):
        found = hook(optimizer, args, kwargs)
        if found is None:
            continue
        if not (isinstance(found, tuple) and len(found) == 2):
            raise RuntimeError(
                f"[{optimizer._name}.step] a hook returned {type(found).__name__}: return None or "
                "a pair, the arguments and the named arguments of the step"
            )
        args, kwargs = found
    result = type(optimizer).step(optimizer, *args, **kwargs)
    for hook in tuple(hooks.get("step_after", ())):
        hook(optimizer, args, kwargs)
    return result
