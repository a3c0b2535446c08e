"""Grad mode: whether operations are recorded, for each thread and each asynchronous task."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

__all__ = [
    "Scope",
    "begin",
    "end",
    "is_grad_enabled",
    "mode",
    "no_grad_scopes",
    "switch",
    "without_recording",
]


class Scope:
    """A scope of one thread or task in which recording is on or off."""

    __slots__ = ("enabled", "open", "outer")

    enabled: bool
    outer: Scope | None
    open: bool


class _Mode:
    """The recording mode of the current thread or task. Recording is on when a thread starts.

    An asynchronous task starts in the scope that it was created in, while this scope is open.
    """

    __slots__ = ()

    @property
    def enabled(self) -> bool:
        scope = _scope.get()
        if scope is not None and not scope.open:
            scope = _innermost()
        return scope is None or scope.enabled


_scope: ContextVar[Scope | None] = ContextVar("minigrad.scope", default=None)


def _innermost() -> Scope | None:
    """The innermost open scope of this thread or task. Closed scopes are skipped and unlinked."""
    scope = _scope.get()
    while scope is not None and not scope.open:
        scope = scope.outer
    while scope is not None and scope.outer is not None and not scope.outer.open:
        scope.outer = scope.outer.outer
    return scope


mode = _Mode()
# Open scopes of all threads in which nothing is recorded. While this list is empty, no operation
# needs to look at its thread's mode, which takes a twentieth of a small operation.
no_grad_scopes: list[Scope] = []


def begin(enabled: bool) -> Scope:
    """Open a scope that turns recording on or off in this thread, until :func:`end` closes it."""
    scope = Scope()
    scope.enabled = enabled
    scope.outer = None if _scope.get() is None else _innermost()
    scope.open = True
    try:
        if not enabled:
            if no_grad_scopes:
                _forget_closed()
            no_grad_scopes.append(scope)
        _scope.set(scope)
    except BaseException:  # interrupted: the caller has no scope to end
        end(scope)
        raise
    return scope


def end(scope: Scope) -> None:
    """Close a scope that :func:`begin` opened.

    The scope need not be the innermost one, and another thread may have opened it: a generator may
    be closed anywhere. An interrupt may come as soon as this function is called. Callers that must
    not be interrupted set ``scope.open = False`` first, which is one store. A scope that is then
    left in ``no_grad_scopes`` is removed by the next :func:`begin`.
    """
    scope.open = False
    if _scope.get() is scope:
        _scope.set(scope.outer)
    if not scope.enabled:
        _forget(scope)


def _forget(scope: Scope) -> None:
    """Remove a closed scope from ``no_grad_scopes``, unless another thread has done so."""
    try:  # noqa: SIM105 - suppress() takes a third of a no_grad's time
        no_grad_scopes.remove(scope)
    except ValueError:
        pass


def _forget_closed() -> None:
    """Remove the scopes that an interrupt left in ``no_grad_scopes`` after they were closed."""
    for scope in [scope for scope in no_grad_scopes if not scope.open]:
        _forget(scope)


def is_grad_enabled() -> bool:
    """True if operations are recorded in this thread or task."""
    return mode.enabled


def switch(enabled: bool) -> None:
    """Turn recording on or off in the current scope of this thread or task."""
    scope = _innermost()
    if scope is None:
        if not enabled:
            begin(False)
    elif scope.enabled is not enabled:
        if not enabled:
            no_grad_scopes.append(scope)
        scope.enabled = enabled
        if enabled:
            _forget(scope)


def without_recording(function: Callable[..., Any]) -> Callable[..., Any]:
    """A wrapper that turns recording off while the function runs."""

    def paused(*args: Any) -> Any:
        scope = begin(False)
        try:
            return function(*args)
        finally:
            scope.open = False
            end(scope)

    return paused
