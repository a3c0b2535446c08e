"""The tape: what was computed from what, and how gradients run back over it.

Every recorded operation makes a :class:`Node`, whose ``parents`` say where each input came from:
another node, a leaf tensor, or None for what needs no gradient. Nodes point only backwards and keep
only what their derivative needs, so a graph holds no cycle and is freed the moment it is dropped.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar
from heapq import heappop, heappush, heappushpop
from operator import attrgetter
from typing import Any

from minigrad.parts import Part

__all__ = [
    "LEAF",
    "Bundle",
    "Node",
    "Scope",
    "backward",
    "begin",
    "enable_grad",
    "end",
    "is_grad_enabled",
    "mode",
    "no_grad",
    "pauses",
    "record",
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
# One item for each open scope, of any thread, in which nothing is recorded. While there is none,
# nobody needs to look at the mode of its thread, which takes a twentieth of a small operation.
pauses: list[None] = []


def begin(enabled: bool) -> Scope:
    """Record from here on, or not, in this thread, until :func:`end` is given the result."""
    scope = Scope()
    scope.enabled = enabled
    scope.outer = None if _scope.get() is None else _innermost()
    scope.open = True
    if not enabled:
        pauses.append(None)
    _scope.set(scope)
    return scope


def end(scope: Scope) -> None:
    """The scope is over that :func:`begin` opened.

    It need not be the innermost, nor of this thread: a generator may be closed anywhere.
    """
    scope.open = False
    if _scope.get() is scope:
        _scope.set(scope.outer)
    if not scope.enabled:
        pauses.pop()


def is_grad_enabled() -> bool:
    """Whether operations are recorded in this thread."""
    return mode.enabled


class _SetMode:
    """A context manager, and a decorator, that sets the grad mode of this thread."""

    enabled: bool
    _scopes: list[Scope]

    def __new__(cls, function: Callable[..., Any] | None = None) -> Any:
        """As ``@no_grad()``, or on a function without parentheses."""
        made = super().__new__(cls)
        made._scopes = []
        return made if function is None else made(function)

    def __enter__(self) -> None:
        self._scopes.append(begin(self.enabled))

    def __exit__(self, *_: object) -> None:
        end(self._scopes.pop())

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        import functools
        import inspect

        later = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
        if getattr(function, "__code__", None) and function.__code__.co_flags & later:
            raise TypeError(
                f"[{type(self).__name__}] {function.__name__} runs after it has returned: use "
                f"`with {type(self).__name__}():` in it"
            )

        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with type(self)():
                return function(*args, **kwargs)

        return wrapped


class no_grad(_SetMode):  # noqa: N801 - PyTorch's name
    """Inside it nothing is recorded: ``with no_grad():``, or ``@no_grad()`` on a function.

    >>> import minigrad as mg
    >>> x = mg.tensor(2.0, requires_grad=True)
    >>> with mg.no_grad():
    ...     (x * x).requires_grad
    False
    """

    enabled = False


class enable_grad(_SetMode):  # noqa: N801 - PyTorch's name
    """Inside it operations are recorded again, also within :class:`no_grad`."""

    enabled = True


_serials = itertools.count()


# ---- nodes ---------------------------------------------------------------------------------------


class Node:
    """One recorded operation; :func:`record` makes one."""

    __slots__ = ("__weakref__", "adapted", "args", "hooks", "op", "parents", "saved", "serial")

    # Anything with a `name` and two rules for the gradients of a node's inputs, None where there
    # is none: `vjp(node, g)`, and `graph_vjp(node, g)`, which can be differentiated again.
    op: Any
    parents: tuple[Parent, ...] | None  # None once the graph was freed
    saved: Any  # the arrays the derivative needs, pinned in C
    args: Any  # the operation's other arguments
    # (shape, dtype) of each input where one was broadcast or cast, to be undone on the way back
    adapted: tuple[Any, ...] | None
    hooks: list[Callable[[Gradient], Gradient | None]] | None
    serial: int  # a node is always younger than its parents

    @property
    def name(self) -> str:
        """The name of the operation."""
        return str(self.op.name)

    @property
    def next_functions(self) -> tuple[Parent, ...]:
        """Where each input came from."""
        return self.parents or ()

    def __repr__(self) -> str:
        return f"<{self.name}>"


def record(
    op: Any,
    parents: tuple[Parent, ...],
    saved: Any = None,
    args: Any = (),
    adapted: tuple[Any, ...] | None = None,
) -> Node:
    """The node of an operation that was just executed.

    A function and no ``__init__``, which would take as long as the rest of it.
    """
    node = Node()
    node.op = op
    node.parents = parents
    node.saved = saved
    node.args = args
    node.adapted = adapted
    node.hooks = None
    node.serial = next(_serials)
    return node


class Bundle:
    """The gradients of a node with several outputs, by output position; they add up as one."""

    __slots__ = ("parts",)

    def __init__(self, parts: dict[int, Gradient]) -> None:
        self.parts = parts

    def __add__(self, other: Bundle) -> Bundle:
        parts = dict(self.parts)
        for k, g in other.parts.items():
            parts[k] = parts[k] + g if k in parts else g
        return Bundle(parts)


_JOINT = (Bundle, Part)  # gradients that no other is added to in place


# ---- backward ------------------------------------------------------------------------------------


_by_age = attrgetter("serial")


def topological_order(roots: Iterable[Node], oldest: int = -1) -> list[Node]:
    """Every node that the roots were computed from, inputs before what was made of them.

    That is the order in which they were made, so finding them is enough, and sorting puts them
    right; nothing recurses, so a chain of a million nodes is no deeper than one.
    """
    found = set(roots)
    stack = list(found)
    while stack:
        node = stack.pop()
        if node.serial <= oldest:
            continue  # nothing before it is wanted
        if node.parents is None:
            raise freed_error(node)
        for parent in node.parents:
            if type(parent) is Node and parent not in found:
                found.add(parent)
                stack.append(parent)
    return sorted(found, key=_by_age)


def freed_error(node: Node) -> RuntimeError:
    """The graph was used up by an earlier backward."""
    return RuntimeError(
        f"[backward] the graph was freed at {node.name!r} by an earlier backward; "
        "call that one with retain_graph=True, or compute the forward again"
    )


def _leading_to(wanted: set[Any], roots: Sequence[Parent]) -> set[Node]:
    """The nodes that a gradient passes through on its way from the roots to something wanted."""
    # What is older than all that is wanted was not made from any of it.
    oldest = min([edge.serial if type(edge) is Node else -1 for edge in wanted], default=-1)
    useful: set[Node] = set()
    for node in topological_order([edge for edge in roots if type(edge) is Node], oldest):
        parents = node.parents or ()
        if any(p is not None and (p in wanted or p in useful) for p in parents):
            useful.add(node)
    return useful


def backward(
    roots: Sequence[Parent],
    upstream: Sequence[Gradient],
    deliver: Callable[[Any, Gradient, bool], None],
    *,
    wanted: set[Any] | None = None,
    retain_graph: bool = False,
    create_graph: bool = False,
) -> None:
    """Run gradients from the roots back to the leaves.

    ``roots`` are edges, ``upstream`` has a gradient for each. ``deliver(edge, gradient, shared)``
    is called once for each leaf reached, or, where ``wanted`` is given, for each edge in it;
    ``shared`` says that others may hold the gradient too. The graph is freed on the way unless it
    is retained.
    """
    useful = None if wanted is None else _leading_to(wanted, roots)
    gradients: dict[Any, Gradient] = {}
    owned: set[Any] = set()  # edges whose gradient was made here by adding, and may be added to
    shared: set[Any] = set()  # leaves whose gradient was handed on as it came
    queue: list[tuple[int, Node]] = []  # nodes that have a gradient: a heap, youngest first
    scope = begin(create_graph)
    try:
        parents: Sequence[Parent] = roots
        backs: Sequence[Gradient | None] = upstream
        g: Gradient = None
        while True:
            # Hand the gradients to the parents. The first that becomes ready waits beside the heap,
            # which in a chain is never needed.
            ready: Node | None = None
            for parent, back in zip(parents, backs):  # noqa: B905 - ops give one each
                if back is None or parent is None:
                    continue
                held = gradients.get(parent)
                if held is None:
                    gradients[parent] = back
                    if type(parent) is not Node:
                        if back is g or g is None:
                            shared.add(parent)
                    elif ready is None:
                        ready = parent
                    else:
                        heappush(queue, (-parent.serial, parent))
                elif parent in owned:
                    held.accumulate_(back)
                else:
                    total = gradients[parent] = held + back
                    shared.discard(parent)
                    if not create_graph and type(total) not in _JOINT:
                        owned.add(parent)
            # The youngest node that has a gradient has all of it.
            if ready is None:
                if not queue:
                    break
                node = heappop(queue)[1]
            elif queue:
                node = heappushpop(queue, (-ready.serial, ready))[1]
            else:
                node = ready
            g = gradients.pop(node)
            if type(g) is Part:
                g = g.whole()
            if node.hooks is not None:
                g = _hooked(node, g)
            if useful is not None and wanted is not None:
                if node in wanted:
                    deliver(node, g, True)
                if node not in useful:
                    parents = ()
                    continue
            parents = node.parents  # type: ignore[assignment]
            if parents is None:
                raise freed_error(node)
            backs = node.op.graph_vjp(node, g) if create_graph else node.op.vjp(node, g)
            if node.adapted is not None:
                backs = unadapted(backs, node.adapted)
            if not retain_graph:
                node.parents = node.saved = node.args = None
    finally:
        end(scope)
    for edge, g in gradients.items():
        if wanted is None or edge in wanted:
            deliver(edge, g.whole() if type(g) is Part else g, edge in shared)


def unadapted(gradients: Sequence[Gradient], adapted: Sequence[Any]) -> list[Gradient]:
    """Broadcasting and casts of the inputs undone: the gradient in each input's shape and dtype."""
    back = []
    for gi, (shape, dtype) in zip(gradients, adapted, strict=True):
        if gi is not None and gi.shape != shape:
            gi = gi.sum_to_size(shape)
        if gi is not None and gi.dtype is not dtype:
            gi = gi.to(dtype)
        back.append(gi)
    return back


def _hooked(node: Node, g: Gradient) -> Gradient:
    for hook in tuple(node.hooks or ()):
        replaced = hook(g)
        if replaced is None:
            continue
        if not isinstance(replaced, type(g)):
            raise TypeError(
                f"[{node.name}] a hook returned {type(replaced).__name__}, not a Tensor or None"
            )
        if replaced.shape != g.shape or replaced.dtype is not g.dtype:
            raise ValueError(
                f"[{node.name}] a hook returned {replaced.dtype.name} of shape {replaced.shape} "
                f"for a gradient that is {g.dtype.name} of shape {g.shape}"
            )
        g = replaced
    return g
