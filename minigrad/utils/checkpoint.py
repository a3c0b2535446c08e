"""Checkpointing: parts of a computation that backward computes again instead of saving them.

Source: T. Chen, B. Xu, C. Zhang and C. Guestrin, Training Deep Nets with Sublinear Memory Cost
(2016). The part is recorded as always. When it is done, its nodes are released, and one node stands
for them. The parents of that node are the tensors that the part was computed from, given or not.
Backward runs the function again, and the gradients through the new recording, down to the same
tensors.
"""

from __future__ import annotations

import zlib
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import Any

from minigrad import random
from minigrad.autograd.before import Before
from minigrad.autograd.bundle import Bundle
from minigrad.functions.creation import zeros
from minigrad.functions.grad_modes import enable_grad, no_grad
from minigrad.functions.shaping import contiguous
from minigrad.runtime.batched import by_rules, running
from minigrad.runtime.native import call, kernels
from minigrad.runtime.recorders import active, drawn_again, draws_so_far
from minigrad.tape.engine import ends, gradients, off_tape
from minigrad.tape.grad_mode import mode
from minigrad.tape.node import LEAF, Node, next_serial, record
from minigrad.tape.tensor_base import TensorBase, copied, parent_of, wrap

__all__ = ["checkpoint", "checkpoint_sequential"]


def _no_contexts() -> tuple[AbstractContextManager[Any], AbstractContextManager[Any]]:
    return nullcontext(), nullcontext()


def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = None,
    preserve_rng_state: bool = True,
    context_fn: Callable[[], tuple[Any, Any]] = _no_contexts,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    **kwargs: Any,
) -> Any:
    """``function(*args, **kwargs)``, of which only the results are kept until backward.

    Backward computes the values between again, by another call of the function.
    Parameters and other tensors that it uses without being given them get their gradients too.
    The state of the common random generator is put back for that call unless
    ``preserve_rng_state=False``. ``context_fn`` gives a context for each of both calls. The results
    may be tensors in tuples, lists and dicts. The other arguments are PyTorch's and change nothing.

    The second call must compute what the first one did. RuntimeError in backward where an argument
    was overwritten, or another tensor that a derivative needs, or where results or the tensors that
    they were computed from differ; with ``determinism_check="none"`` values of results are not
    compared.

    >>> import minigrad as mg
    >>> x = mg.tensor([1.0, 2.0], requires_grad=True)
    >>> y = mg.checkpoint(lambda t: t.exp().sin(), x)
    >>> y.sum().backward()
    >>> bool(mg.allclose(x.grad, x.exp().cos() * x.exp()))
    True
    """
    if not callable(function):
        raise TypeError(
            f"[checkpoint] expected a function or a module, not {type(function).__name__}"
        )
    if determinism_check not in ("default", "none"):
        raise ValueError(
            f"[checkpoint] determinism_check is {determinism_check!r}: use 'default' or 'none'"
        )
    first, second = context_fn()
    in_vmap = running and by_rules("level_of")((args, kwargs))
    if not mode.enabled or in_vmap:  # vmap has no call of its own to make again
        with first:
            return function(*args, **kwargs)
    part = _Part(function, args, kwargs, second, preserve_rng_state, determinism_check == "default")
    begin = next_serial()
    with first:
        result = function(*args, **kwargs)
    if running and by_rules("level_of")((result,)):  # the function uses a tensor of a vmap
        return result
    made = part.tracked(result, begin)
    if not made:
        return result
    others = part.stand_in(made, begin)
    return _mapped(lambda y: others.get(id(y), y), result)


def checkpoint_sequential(
    functions: Any,
    segments: int,
    input: Any,
    use_reentrant: bool | None = None,
    **kwargs: Any,
) -> Any:
    """The input through modules in order, in ``segments`` parts of which all but the last are
    checkpoints.

    ``functions`` is a Sequential or a list of modules or functions. Raises ValueError unless there
    are at least as many as parts.

    >>> import minigrad as mg
    >>> model = mg.nn.Sequential(mg.nn.Linear(2, 2), mg.nn.Tanh(), mg.nn.Linear(2, 1))
    >>> mg.checkpoint_sequential(model, 2, mg.ones(3, 2)).shape
    (3, 1)
    """
    steps = list(functions)
    if not 1 <= segments <= max(len(steps), 1):
        raise ValueError(
            f"[checkpoint_sequential] {len(steps)} functions cannot be in {segments} segments"
        )

    def through(first: int, last: int) -> Callable[[Any], Any]:
        def run(x: Any) -> Any:
            for step in steps[first:last]:
                x = step(x)
            return x

        return run

    size = len(steps) // segments
    for first in range(0, size * (segments - 1), size):
        input = checkpoint(through(first, first + size), input, **kwargs)
    return through(size * (segments - 1), len(steps))(input)


# ---- a part of the tape --------------------------------------------------------------------------


def _flat(result: Any) -> Iterator[Any]:
    """The elements of tuples, lists and dicts."""
    if isinstance(result, (tuple, list)):
        for item in result:
            yield from _flat(item)
    elif isinstance(result, dict):
        yield from _flat(list(result.values()))
    else:
        yield result


def _mapped(change: Callable[[Any], Any], x: Any) -> Any:
    """A value like this one with other elements of its tuples, lists and dicts.

    Collections of other classes than Python's own and named tuples stay as they are.
    """
    if type(x) in (dict, OrderedDict):
        return type(x)((key, _mapped(change, value)) for key, value in x.items())
    if type(x) in (tuple, list):
        return type(x)([_mapped(change, item) for item in x])
    if isinstance(x, tuple) and hasattr(x, "_fields"):
        return type(x)(*[_mapped(change, item) for item in x])
    return change(x)


def _digest(x: Any) -> int:
    """A number that is another one for other values in x, but once in four billion."""
    return zlib.crc32(contiguous(x.detach()).numpy().data)


class _Part:
    """A call whose nodes were let go, and what it takes to make them again."""

    def __init__(
        self,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        context: Any,
        preserve_rng_state: bool,
        compared: bool,
    ) -> None:
        self.function, self.context, self.compared = function, context, compared
        self.before = Before()
        # Edges as they are now; a leaf is its own.
        self.args: tuple[Any, ...] = _mapped(_kept, args)
        self.kwargs: dict[str, Any] = _mapped(_kept, kwargs)
        for x in _flat((args, kwargs)):
            if isinstance(x, TensorBase):
                self.before.pin(x._h)
        self.random = random.get_rng_state() if preserve_rng_state else None
        self.recorder, self.draws = active(), draws_so_far()
        self.first_draw = len(self.draws or ())
        self.ends: list[Any] = []
        self.digests: list[int] = []
        self.count = 0  # of results

    def tracked(self, result: Any, begin: int) -> list[Any]:
        """The tensors of a result that the call recorded, each once."""
        found = {
            id(y): y
            for y in _flat(result)
            if isinstance(y, TensorBase) and type(y._edge) is Node and y._edge.serial > begin
        }
        return list(found.values())

    @no_grad
    def stand_in(self, made: list[Any], begin: int) -> dict[int, Any]:
        """Results on the tape by one node for the whole call, by the ids of those that are made."""
        edges = [y._edge for y in made]
        self.ends, self.count = ends(edges, begin), len(made)
        self.before.keep(edges)
        for end in self.ends:
            if isinstance(end, TensorBase):
                self.before.pin_shared(end._h)
        if active() is not None:  # a recorder, for which there are no values to compare
            self.compared = False
            self.draws = self.draws and self.draws[self.first_draw :]
            self.random = None if not self.draws and self._drew_nothing() else self.random
        self.digests = [_digest(y) for y in made] if self.compared else []
        node = record(_Checkpoint([(y.shape, y.dtype) for y in made]), self, (), None, *self.ends)
        found = {}
        for place, y in enumerate(made):
            # Writes into a view would have to reach what it is a view of.
            other = copied(y) if hasattr(y, "_alias") else wrap(call(kernels.view_alias, y._h))
            several = len(made) > 1
            other._edge = record(_Output(place), None, (), None, node) if several else node
            found[id(y)] = other
        return found

    def _drew_nothing(self) -> bool:
        """True if the call left the common generator where it was."""
        return self.random is not None and repr(self.random) == repr(random.get_rng_state())

    def again(self) -> list[Any]:
        """The results of another call, as the first one gave them; RuntimeError if they differ."""
        self.before.check("checkpoint")
        begin = next_serial()
        with self._replayed(), enable_grad(), self.context:
            result = self.function(*self.args, **self.kwargs)
            made = self.tracked(result, begin)
            self._compare(made, begin)
        return made

    def _compare(self, made: list[Any], begin: int) -> None:
        what = None
        if len(made) != self.count:
            what = f"{len(made)} results in place of {self.count}"
        elif set(ends([y._edge for y in made], begin)) != set(self.ends):
            what = "results of other tensors"
        elif self.compared and [_digest(y) for y in made] != self.digests:
            what = "results of other values"
        if what is not None:
            raise RuntimeError(
                f"[checkpoint] the function gave {what} when it was called again: it must compute "
                "the same from tensors that are not overwritten before backward"
            )

    @contextmanager
    def _replayed(self) -> Iterator[None]:
        """Random numbers as at the first call, which change none that come after."""
        if self.random is None:
            yield
            return
        before, go_back = random.get_rng_state(), partial(random.set_rng_state, self.random)
        recorded = self.draws is not None and self.recorder is active()
        try:
            if recorded and draws_so_far() is not None:
                with drawn_again(self.draws, go_back):
                    yield
            else:
                go_back()
                yield
        finally:
            random.set_rng_state(before)


def _kept(x: Any) -> Any:
    """An argument; a result of an operation with the place on the tape that it has now."""
    if not isinstance(x, TensorBase) or x._edge is None or x._edge is LEAF:
        return x
    return wrap(call(kernels.view_alias, x._h), parent_of(x))


class _Output:
    """One of several results on the tape."""

    def __init__(self, place: int) -> None:
        self.place = place
        self.name = f"checkpoint[{place}]"

    def vjp(self, node: Node, g: Any) -> list[Any]:
        return [Bundle({self.place: g})]

    graph_vjp = vjp

    def jvp(self, node: Node, tangents: Sequence[Any]) -> Any:
        return tangents[0].parts.get(self.place)


class _Checkpoint:
    """A checkpoint on the tape; ``outputs`` are the shapes and dtypes of its results."""

    name = "checkpoint"
    lends = True  # the function's hooks and Functions may write over the gradient

    def __init__(self, outputs: list[Any]) -> None:
        self.outputs = outputs

    @no_grad
    def vjp(self, node: Node, g: Any) -> list[Any]:
        return [None if gi is None else off_tape(gi) for gi in self._run(node, g, False)]

    def graph_vjp(self, node: Node, g: Any) -> list[Any]:
        return self._run(node, g, True)

    def jvp(self, node: Node, tangents: Sequence[Any]) -> Any:
        from minigrad.tape.jvp import LinearMap

        part, begin = node.saved, next_serial()
        results = part.again()
        # The others count as constants, whatever hooks they have.
        moved = [(end, t) for end, t in zip(part.ends, tangents, strict=True) if t is not None]
        pushed, given = [end for end, _ in moved], [t for _, t in moved]
        made = LinearMap(pushed, results, begin).push(given, mode.enabled)
        if len(made) == 1:
            return made[0]
        return Bundle({k: t for k, t in enumerate(made) if t is not None})

    def _run(self, node: Node, g: Any, graph: bool) -> list[Any]:
        part = node.saved
        upstream = [g]
        if type(g) is Bundle:
            upstream = [
                zeros(shape, dtype=dtype) if (gk := g.parts.get(k)) is None else gk
                for k, (shape, dtype) in enumerate(self.outputs)
            ]
        edges = [y._edge for y in part.again()]
        found = gradients(edges, upstream, graph, graph, set(part.ends), ends=True)
        return [found.get(end) for end in part.ends]
