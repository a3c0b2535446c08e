"""Grad mode: whether operations are recorded, for each thread and each asynchronous task."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, TypeVar, overload

__all__ = [
    "Scope",
    "begin",
    "enable_grad",
    "end",
    "inference_mode",
    "is_grad_enabled",
    "mode",
    "no_grad",
    "no_grad_scopes",
    "set_grad_enabled",
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
            for over in [other for other in no_grad_scopes if not other.open]:
                _forget(over)
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
    What is then left in ``no_grad_scopes`` goes with the next :func:`begin`.
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


def is_grad_enabled() -> bool:
    """Whether operations are recorded in this thread."""
    return mode.enabled


# The flags of the code of a generator, of a coroutine and of an asynchronous generator.
_RUNS_IN_STEPS = 0x20 | 0x80 | 0x200
_F = TypeVar("_F", bound=Callable[..., Any])
_S = TypeVar("_S", bound="_SetMode")


class _SetMode:
    """A context manager, and a decorator, that sets the grad mode of this thread."""

    enabled: bool
    _scopes: list[Scope]

    @overload
    def __new__(cls: type[_S], function: None = None) -> _S: ...
    @overload
    def __new__(cls, function: _F) -> _F: ...  # type: ignore[misc]
    def __new__(cls, function: Any = None) -> Any:
        """As ``@no_grad()``, or on a function without parentheses."""
        made = super().__new__(cls)
        made._scopes = []
        return made if function is None else made(function)

    def __enter__(self) -> None:
        scope = begin(self.enabled)
        try:
            self._scopes.append(scope)
        except BaseException:  # interrupted: there will be no exit
            end(scope)
            raise

    def __exit__(self, *_: object) -> None:
        scopes = self._scopes
        scopes[-1].open = False
        end(scopes.pop())

    def __call__(self, function: _F) -> _F:
        import functools

        if not callable(function):
            raise TypeError(
                f"[{type(self).__name__}] decorates functions, not {type(function).__name__}"
            )
        code = getattr(function, "__code__", None)
        if getattr(code, "co_flags", 0) & _RUNS_IN_STEPS:
            from minigrad.autograd.coroutines import in_steps

            return in_steps(type(self).__name__, self.enabled, function)  # type: ignore[no-any-return]

        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            scope = begin(self.enabled)
            try:
                return function(*args, **kwargs)
            finally:
                scope.open = False
                end(scope)

        return wrapped  # type: ignore[return-value]


class no_grad(_SetMode):  # noqa: N801 - PyTorch's name
    """Inside it nothing is recorded: ``with no_grad():``, or ``@no_grad()`` on a function.

    >>> import minigrad as mg
    >>> x = mg.tensor(2.0, requires_grad=True)
    >>> with mg.no_grad():
    ...     (x * x).requires_grad
    False
    """

    enabled = False


class inference_mode(no_grad):  # noqa: N801
    """As :class:`no_grad`, under PyTorch's other name: there is nothing more to save here."""


class enable_grad(_SetMode):  # noqa: N801 - PyTorch's name
    """Inside it operations are recorded again, also within :class:`no_grad`."""

    enabled = True


class set_grad_enabled(_SetMode):  # noqa: N801 - PyTorch's name
    """Record, or do not, from here on or in a block: ``with set_grad_enabled(training):``.

    Without ``with`` it holds to the end of the block of :class:`no_grad` or its like that it is
    called in, if any.

    >>> import minigrad as mg
    >>> with mg.set_grad_enabled(False):
    ...     mg.is_grad_enabled()
    False
    """

    _before: bool

    def __new__(cls, mode: bool) -> Any:
        """Set the mode at once."""
        made = super().__new__(cls)
        made.enabled, made._before = bool(mode), is_grad_enabled()
        _switch(made.enabled)
        return made

    def __enter__(self) -> None:
        _switch(self._before)  # it was meant for the block only
        super().__enter__()

    def __call__(self, function: _F) -> _F:
        """The function with this mode, as a decorator."""
        _switch(self._before)
        return super().__call__(function)


def _switch(enabled: bool) -> None:
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
