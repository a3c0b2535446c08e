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
    """A stretch of one thread or task in which operations are recorded, or are not."""

    __slots__ = ("enabled", "open", "outer")

    enabled: bool
    outer: Scope | None
    open: bool


class _Mode:
    """Is anything recorded? Each thread starts with yes.

    An asynchronous task starts in the scope that it was made in, as long as that is open.
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
    """The scope that this thread or task is in; those that are over are skipped, and forgotten."""
    scope = _scope.get()
    while scope is not None and not scope.open:
        scope = scope.outer
    while scope is not None and scope.outer is not None and not scope.outer.open:
        scope.outer = scope.outer.outer
    return scope


mode = _Mode()
# The open scopes, of any thread, in which nothing is recorded. While there is none, nobody needs to
# look at the mode of its thread, which takes a twentieth of a small operation.
no_grad_scopes: list[Scope] = []


def begin(enabled: bool) -> Scope:
    """Record from here on, or not, in this thread, until :func:`end` is given the result."""
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
    except BaseException:  # interrupted: nobody would end it
        end(scope)
        raise
    return scope


def end(scope: Scope) -> None:
    """The scope is over that :func:`begin` opened.

    It need not be the innermost, nor of this thread: a generator may be closed anywhere. An
    interrupt may come as soon as this is called: ``scope.open = False`` before it is beyond one.
    The next :func:`begin` removes a scope that is then left in ``no_grad_scopes``.
    """
    scope.open = False
    if _scope.get() is scope:
        _scope.set(scope.outer)
    if not scope.enabled:
        _forget(scope)


def _forget(scope: Scope) -> None:
    """Take a scope that is over out of ``no_grad_scopes``, if no other thread has done so."""
    try:  # noqa: SIM105 - a third of a no_grad's time
        no_grad_scopes.remove(scope)
    except ValueError:
        pass


def _forget_closed() -> None:
    """Remove the scopes that an interrupt left in ``no_grad_scopes`` after they were closed."""
    for scope in [scope for scope in no_grad_scopes if not scope.open]:
        _forget(scope)


def is_grad_enabled() -> bool:
    """Whether operations are recorded in this thread."""
    return mode.enabled


def switch(enabled: bool) -> None:
    """Change the mode of the scope that this thread or task is in."""
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
    """The function with recording off while it runs."""

    def paused(*args: Any) -> Any:
        scope = begin(False)
        try:
            return function(*args)
        finally:
            scope.open = False
            end(scope)

    return paused
