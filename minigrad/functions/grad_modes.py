"""Context managers and decorators that set the grad mode, such as ``no_grad``."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, overload

from minigrad.tape.grad_mode import Scope, begin, end, is_grad_enabled, switch

__all__ = ["enable_grad", "inference_mode", "no_grad", "set_grad_enabled"]

# Code flags of generators, coroutines and asynchronous generators.
_RUNS_IN_STEPS = 0x20 | 0x80 | 0x200
_F = TypeVar("_F", bound=Callable[..., Any])
_S = TypeVar("_S", bound="_SetMode")


class _SetMode:
    """Base of the context managers and decorators that set the grad mode of this thread."""

    enabled: bool
    _scopes: list[Scope]

    @overload
    def __new__(cls: type[_S], function: None = None) -> _S: ...
    @overload
    def __new__(cls, function: _F) -> _F: ...  # type: ignore[misc]
    def __new__(cls, function: Any = None) -> Any:
        """Serve ``@no_grad()``, and ``@no_grad`` without parentheses."""
        made = super().__new__(cls)
        made._scopes = []
        return made if function is None else made(function)

    def __enter__(self) -> None:
        scope = begin(self.enabled)
        try:
            self._scopes.append(scope)
        except BaseException:  # interrupted: __exit__ will not be called
            end(scope)
            raise

    def __exit__(self, *_: object) -> None:
        scopes = self._scopes
        scopes[-1].open = False
        end(scopes.pop())

    def __call__(self, function: _F) -> _F:
        if not callable(function):
            raise TypeError(
                f"[{type(self).__name__}] decorates functions, not {type(function).__name__}"
            )
        code = getattr(function, "__code__", None)
        if getattr(code, "co_flags", 0) & _RUNS_IN_STEPS:
            from minigrad.functions.coroutines import in_steps

            return in_steps(type(self).__name__, self.enabled, function)

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
    """Turn recording off: ``with no_grad():``, or ``@no_grad()`` on a function.

    >>> import minigrad as mg
    >>> x = mg.tensor(2.0, requires_grad=True)
    >>> with mg.no_grad():
    ...     (x * x).requires_grad
    False
    """

    enabled = False


class inference_mode(no_grad):  # noqa: N801
    """:class:`no_grad` under another of PyTorch's names. It saves nothing more here."""


class enable_grad(_SetMode):  # noqa: N801 - PyTorch's name
    """Turn recording on, also inside :class:`no_grad`."""

    enabled = True


class set_grad_enabled(_SetMode):  # noqa: N801 - PyTorch's name
    """Turn recording on or off, from here on or in a block: ``with set_grad_enabled(training):``.

    Without ``with`` the mode holds until the end of the enclosing block of :class:`no_grad` or a
    similar manager, if there is one.

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
        switch(made.enabled)
        return made

    def __enter__(self) -> None:
        switch(self._before)  # the mode was for the block only
        super().__enter__()

    def __call__(self, function: _F) -> _F:
        """Decorate a function to run with this mode."""
        switch(self._before)
        return super().__call__(function)
