"""The tape: what was computed from what.

Every recorded operation makes a :class:`Node`, whose ``parents`` say where each input came from:
another node, a leaf tensor, or None for what needs no gradient. Nodes point only backwards and keep
only what their derivative needs, so a graph holds no cycle and is freed the moment it is dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TypeVar, overload

from minigrad.runtime.accelerator import speed

__all__ = [
    "LEAF",
    "Node",
    "Removable",
    "Scope",
    "begin",
    "enable_grad",
    "end",
    "forwards",
    "inference_mode",
    "is_grad_enabled",
    "mode",
    "no_grad",
    "note_leaving",
    "pauses",
    "record",
    "set_grad_enabled",
]

LEAF = True  # the edge of a leaf that requires a gradient: it ends at the tensor itself
Gradient = Any  # a Tensor; this layer stands below it
Parent = Any  # a Node, a leaf Tensor or None

# ---- grad mode -----------------------------------------------------------------------------------


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
pauses: list[Scope] = []


def begin(enabled: bool) -> Scope:
    """Record from here on, or not, in this thread, until :func:`end` is given the result."""
    scope = Scope()
    scope.enabled = enabled
    scope.outer = None if _scope.get() is None else _innermost()
    scope.open = True
    try:
        if not enabled:
            for over in [pause for pause in pauses if not pause.open] if pauses else ():
                _forget(over)
            pauses.append(scope)
        _scope.set(scope)
    except BaseException:  # interrupted: nobody would end it
        end(scope)
        raise
    return scope


def end(scope: Scope) -> None:
    """The scope is over that :func:`begin` opened.

    It need not be the innermost, nor of this thread: a generator may be closed anywhere. An
    interrupt may come as soon as this is called: ``scope.open = False`` before it is beyond one.
    What is then left in ``pauses`` goes with the next :func:`begin`.
    """
    scope.open = False
    if _scope.get() is scope:
        _scope.set(scope.outer)
    if not scope.enabled:
        _forget(scope)


def _forget(scope: Scope) -> None:
    """Take a scope that is over out of ``pauses``, unless it is not there or another thread did."""
    try:  # noqa: SIM105 - a third of a no_grad's time
        pauses.remove(scope)
    except ValueError:
        pass


def is_grad_enabled() -> bool:
    """Whether operations are recorded in this thread."""
    return mode.enabled


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
        import inspect

        if not callable(function):
            raise TypeError(
                f"[{type(self).__name__}] decorates functions, not {type(function).__name__}"
            )
        flags = getattr(getattr(function, "__code__", None), "co_flags", 0)
        if flags & inspect.CO_ASYNC_GENERATOR:
            raise TypeError(
                f"[{type(self).__name__}] {function.__name__} is an asynchronous generator: use "
                f"`with {type(self).__name__}():` in it"
            )
        if flags & inspect.CO_COROUTINE:

            @functools.wraps(function)
            async def awaited(*args: Any, **kwargs: Any) -> Any:
                return await _Awaited(_resumed(self.enabled, function(*args, **kwargs)))

            return awaited  # type: ignore[return-value]
        if flags & inspect.CO_GENERATOR:

            @functools.wraps(function)
            def generated(*args: Any, **kwargs: Any) -> Any:
                return _resumed(self.enabled, function(*args, **kwargs))

            return generated  # type: ignore[return-value]

        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            scope = begin(self.enabled)
            try:
                return function(*args, **kwargs)
            finally:
                scope.open = False
                end(scope)

        return wrapped  # type: ignore[return-value]


def _resumed(enabled: bool, generator: Any) -> Generator[Any, Any, Any]:
    """A generator, or a coroutine, with this grad mode while it runs, but not between its steps."""
    step: Callable[[Any], Any] = generator.send
    given: Any = None
    while True:
        scope = begin(enabled)
        try:
            made = step(given)
        except StopIteration as stop:
            return stop.value
        finally:
            scope.open = False
            end(scope)
        try:
            step, given = generator.send, (yield made)
        except BaseException as error:  # thrown in, or the GeneratorExit of close()
            step, given = generator.throw, error


class _Awaited:
    """Awaitable that runs a coroutine in steps."""

    def __init__(self, steps: Generator[Any, Any, Any]) -> None:
        self.steps = steps

    def __await__(self) -> Generator[Any, Any, Any]:
        return self.steps


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
            pauses.append(scope)
        scope.enabled = enabled
        if enabled:
            _forget(scope)


# ---- values that leave the tape ------------------------------------------------------------------

# The forwards of Functions that run, in any thread, each a function that is told of tensors whose
# values become Python's or NumPy's.
forwards: list[Callable[[Any], None]] = []


def note_leaving(x: Any) -> None:
    """Tell the forwards that run that the values of x leave the tape."""
    for told in tuple(forwards):
        told(x)


# ---- nodes ---------------------------------------------------------------------------------------

if TYPE_CHECKING:

    class Node:
        """One recorded operation; :meth:`record` makes one. It is C: ``csrc/node.h``."""

        # Anything with a `name` and two rules for the gradients of a node's inputs, None where
        # there is none: `vjp(node, g)`, which records nothing, and `graph_vjp(node, g)`, whose
        # results can be differentiated again.
        op: Any
        saved: Any  # the arrays the derivative needs, pinned in C
        args: Any  # the operation's other arguments; None once the graph was freed
        # (shape, dtype's code) of each input where one was broadcast or cast, to be undone on the
        # way back
        adapted: tuple[Any, ...] | None
        hooks: list[Callable[[Gradient], Gradient | None]] | None
        serial: int  # a node is always younger than its parents
        parents: tuple[Parent, ...] | None  # made when asked for; None once the graph was freed
        wanted: int  # a bit for each of the first 16 parents: is it not None?

        # What follows is in nodes.py, but for `name`.

        @property
        def next_functions(self) -> tuple[tuple[Any, int], ...]:
            """Where each input came from."""

        @property
        def metadata(self) -> dict[Any, Any]:
            """A dict for what programs note of a node."""

        def name(self) -> str:
            """The name of the operation."""

        def register_hook(self, hook: Callable[[Any, Any], Any], /) -> Removable:
            """Call ``hook(grad_inputs, grad_outputs)`` after the node's rule."""

        def register_prehook(self, hook: Callable[[Any], Any], /) -> Removable:
            """Call ``hook(grad_outputs)`` before the node's rule."""

        @staticmethod
        def record(
            op: Any, saved: Any, args: Any, adapted: tuple[Any, ...] | None, /, *parents: Parent
        ) -> Node:
            """The node of an operation that was just executed."""

        def release(self) -> None:
            """Let go of the parents, and of what else only the node's own backward needs."""

else:
    Node = speed.Node

    def _in_nodes(name: str, *more: Any) -> Callable[..., Any]:
        """A function of nodes.py, which is loaded when it is first called."""

        def method(node: Node, *args: Any) -> Any:
            from minigrad import nodes

            return getattr(nodes, name)(node, *args, *more)

        method.__name__ = name
        return method

    for _name in ("register_hook", "register_prehook"):
        setattr(Node, _name, _in_nodes(_name))
    for _name in ("next_functions", "metadata"):
        setattr(Node, _name, property(_in_nodes(_name)))
    for _name in ("_saved_self", "_saved_other", "_saved_result"):
        setattr(Node, _name, property(_in_nodes("saved_value", _name)))

record = Node.record


class LeafHooks(list[Callable[..., Any]]):
    """Hooks that the gradient of a leaf passes through; ``after`` wait until it is in ``grad``."""

    __slots__ = ("after",)

    def __init__(self) -> None:
        super().__init__()
        self.after: list[Callable[[Any], Any]] = []


class Removable:
    """Removes a hook when ``remove`` is called, or it itself: once, whatever else is registered."""

    __slots__ = ("_hook", "_hooks")

    def __init__(self, hooks: list[Any], hook: Callable[..., Any]) -> None:
        self._hooks = hooks
        self._hook = hook

    def remove(self) -> None:
        """Remove the hook."""
        hooks, self._hooks = self._hooks, []
        if self._hook in hooks:
            hooks.remove(self._hook)

    __call__ = remove
