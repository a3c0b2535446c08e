"""``Function``: an operation with a derivative of one's own."""

from __future__ import annotations

import copy
import functools
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from types import CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple

from minigrad._tensor.inplace import check_writable, shows_tracked, update
from minigrad.autograd.bundle import Bundle
from minigrad.functions.creation import zeros
from minigrad.functions.grad_modes import no_grad
from minigrad.runtime.batched import by_rules, running
from minigrad.runtime.lazy_numpy import is_numpys
from minigrad.runtime.native import Saved, call, kernels, lib, save_as_is, saved_handle
from minigrad.tape.apply import check_keeps_grad
from minigrad.tape.engine import off_tape
from minigrad.tape.grad_mode import mode
from minigrad.tape.hooks import forwards, watchers
from minigrad.tape.node import Node, record
from minigrad.tape.tensor_base import TensorBase, copied, edge_of, parent_of, wrap

__all__ = ["Function", "FunctionOp", "once_differentiable"]


class Function:
    """An operation with a derivative of one's own, in either of two spellings.

    PyTorch's, static with a context::

        class Exp(Function):
            @staticmethod
            def forward(ctx, x):
                y = x.exp()
                ctx.save_for_backward(y)
                return y

            @staticmethod
            def backward(ctx, g):
                (y,) = ctx.saved_tensors
                return g * y

        y = Exp.apply(x)

    or with instance methods, ``forward(self, x)`` and ``backward(self, g)``, called as
    ``Exp()(x)``. Forward gets the arguments as they were given, and what it computes is not
    recorded; it returns a tensor or a tuple of them, copied where it shares memory with an argument
    or an earlier output. A tuple may hold other values beside tensors. Backward returns one
    gradient per argument, None for what has none; it is itself recorded under ``create_graph``, so
    a backward written in tensor operations can be differentiated again. A wrong number of
    gradients, a shape that the argument does not broadcast to, and a dtype that is no float are
    errors that name the class.

    Backward gets zeros for outputs that were not used, or None after
    ``ctx.set_materialize_grads(False)`` in forward.

    Arrays kept with ``save_for_backward`` are watched: RuntimeError if they are overwritten.

    Forward mode transposes backward, if that is written in tensor operations. A class may state it:
    ``jvp(ctx, *tangents)`` gets one tangent per argument, and returns one per output. Its
    ``saved_tensors`` are what ``ctx.save_for_forward`` kept, or else as those of backward.

    In ``vmap`` a Function runs once for each slice, and a warning says so. A class may state
    ``vmap(info, in_dims, *args)``, a static method. It gets the tensors with all slices, and where
    their batch is; None is for what has none. ``info`` has ``batch_size`` and ``randomness``. It
    returns the output and its ``out_dims``. With ``generate_vmap_rule = True`` forward, backward
    and jvp run once on all slices, if they are made of tensor operations.

    A class may split the first spelling: ``forward(x, ...)`` without the context, and
    ``setup_context(ctx, inputs, output)``, which keeps what backward needs.

    Forward is not recorded. The tape does not know how kept values depend on the inputs:
    intermediate tensors, NumPy's arrays and numbers made of them. A second derivative that runs
    through such a value is a RuntimeError, as is one through ``item()`` or ``numpy()`` in backward.
    A backward that computes with the inputs and outputs that were saved has one; ``detach()`` in
    backward says that a kept tensor is a constant. The same holds for tensors that forward leaves
    in a global variable or the class, if backward names it. Numbers and arrays left there count as
    constants, as do values that no variable named in the class's file leads to.
    """

    generate_vmap_rule = False
    needs_input_grad: tuple[bool, ...]
    _kept: tuple[Any, ...]  # during a backward
    _materialize: bool = True
    _once: bool = False  # is its backward that of once_differentiable?
    _unknown: _Unknown

    def save_for_backward(self, *tensors: Any) -> None:
        """Keep tensors (or None) for the backward."""
        for x in tensors:
            if x is not None and not isinstance(x, TensorBase):
                raise TypeError(
                    f"[{type(self).__name__}] save_for_backward takes tensors or None, not "
                    f"{type(x).__name__}: keep it as an attribute of the context"
                )
        self._to_save = tensors

    def save_for_forward(self, *tensors: Any) -> None:
        """Keep tensors (or None) for the jvp, if it needs others than the backward."""
        self._to_save_forward = tensors

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """The saved tensors, with the history they had."""
        kept: tuple[Any, ...] = self.__dict__.get("_kept", self.__dict__.get("_to_save", ()))
        return tuple([k() if type(k) is _Unpack else k for k in kept])

    def mark_non_differentiable(self, *tensors: Any) -> None:
        """Outputs that have no gradient."""
        self._undifferentiable = tensors

    def mark_dirty(self, *tensors: Any) -> None:
        """Inputs that forward wrote into and returns: their place on the tape is the output's."""
        self._dirty = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """Whether backward gets zeros for outputs that were not used (the default), or None."""
        self._materialize = bool(value)

    @classmethod
    def apply(cls, *args: Any) -> Any:
        """Run forward on the arguments and record the operation."""
        return cls()(*args)

    def __call__(self, *args: Any) -> Any:
        """Run forward on the arguments and record the operation. An instance runs once."""
        if "_used" in self.__dict__:
            return type(self)()(*args)
        if running and by_rules("level_of")(args) is not None:
            return by_rules("function")(self, args)
        self._used = True
        self.needs_input_grad = tuple(
            [isinstance(x, TensorBase) and x._edge is not None for x in args]
        )
        recorded = mode.enabled and any(self.needs_input_grad)
        watch = _Watch(args, self.needs_input_grad, self) if recorded else None
        with no_grad():
            result = self._forward(args, watch)
        outputs = result if isinstance(result, tuple) else (result,)
        if not any(isinstance(y, TensorBase) for y in outputs):
            kind = type(outputs[0]).__name__ if outputs else "nothing"
            raise TypeError(
                f"[{type(self).__name__}] forward returned {kind} as output 0, not a Tensor"
            )
        if not recorded:
            for x in self.__dict__.get("_dirty", ()) if mode.enabled else ():
                if shows_tracked(x):
                    check_writable(type(self).__name__, x)
            # An input that forward returned must not carry its history out of no_grad.
            plain = tuple([off_tape(y) if isinstance(y, TensorBase) else y for y in outputs])
            return plain if isinstance(result, tuple) else plain[0]
        if watch is not None:
            self._unknown = watch.found_in(self.__dict__)
        fixed = self.__dict__.get("_undifferentiable", ())
        # An output that is an input itself becomes a tensor of its own, with a place on the tape.
        made = _apart(args, outputs)
        differentiable = [
            isinstance(y, TensorBase)
            and y.dtype.is_floating_point
            and not any(y is z for z in fixed)
            for y in outputs
        ]
        for y, has_gradient in zip(outputs, differentiable, strict=True):
            if has_gradient:
                check_keeps_grad(type(self).__name__, y.dtype)
        parents = [parent_of(x) if isinstance(x, TensorBase) else None for x in args]
        whole = FunctionOp(self, _metas(args), _metas(outputs), differentiable)
        node = record(whole, None, (), None, *parents)
        ops = [_OutputOp(k, type(self)) if d else None for k, d in enumerate(differentiable)]
        for y, op in zip(made, ops, strict=True):
            if op is not None:
                y._edge = node if len(made) == 1 else record(op, None, (), None, node)
        for x in self.__dict__.pop("_dirty", ()):
            place = next((k for k, y in enumerate(outputs) if y is x), None)
            if place is None:
                raise RuntimeError(
                    f"[{type(self).__name__}] mark_dirty was given a tensor that forward does not "
                    "return: return what it wrote into"
                )
            check_writable(type(self).__name__, x)
            made[place] = update(type(self).__name__, x, made[place])
        node.saved = self._keep("_to_save", node, outputs, ops)
        node.args = self._keep("_to_save_forward", node, outputs, ops)
        return tuple(made) if isinstance(result, tuple) else made[0]

    def _forward(self, args: tuple[Any, ...], watch: _Watch | None = None) -> Any:
        """Forward, in any of its spellings."""
        if watch is not None:
            forwards.append(watch)
        try:
            if _raw(type(self), "setup_context") is None:
                return self._static("forward")(*args)
            result = type(self).forward(*args)  # type: ignore[attr-defined]
            self._static("setup_context")(args, result)
            return result
        finally:
            if watch is not None:
                forwards.remove(watch)

    def _static(self, name: str) -> Any:
        """forward or backward as a function of its arguments alone, in either spelling."""
        method = getattr(type(self), name, None)
        if method is None:
            raise NotImplementedError(f"[{type(self).__name__}] has no {name} method")
        static = isinstance(_raw(type(self), name), staticmethod)
        if static:
            return lambda *args: method(self, *args)
        return getattr(self, name)

    def _keep(
        self, given: str, node: Node, outputs: tuple[Any, ...], ops: list[Any]
    ) -> tuple[Any, ...]:
        """Pins of what was saved, for the node; the Function holds nothing longer than that."""
        kept: list[Any] = []
        for x in self.__dict__.pop(given, ()):
            if isinstance(x, TensorBase):
                place = next((k for k, y in enumerate(outputs) if y is x), None)
                is_output = place is not None and ops[place] is not None
                several = is_output and len(outputs) > 1
                unknown = any(x is y for y in self._unknown.tensors)
                x = _Unpack(x, node, ops[place] if several else None, is_output, unknown)  # type: ignore[index]
            kept.append(x)
        return tuple(kept)


def _raw(cls: type, name: str) -> Any:
    for base in cls.__mro__:
        if name in base.__dict__:
            return base.__dict__[name]
    return None


def _apart(args: Sequence[Any], outputs: Sequence[Any]) -> list[Any]:
    """The outputs as tensors of their own: copied where an argument or output has the memory.

    Other values stay as they are.

    The tape could not follow a write into memory that both share: a Function may do anything to it.
    """
    taken = {x._h.buffer for x in args if isinstance(x, TensorBase)}
    made: list[Any] = []
    for y in outputs:
        if not isinstance(y, TensorBase):
            made.append(y)
            continue
        place = y._h.buffer
        made.append(copied(y) if place in taken else wrap(call(kernels.view_alias, y._h)))
        taken.add(place)
    return made


def _metas(args: Sequence[Any]) -> list[Any]:
    return [(x.shape, x.dtype) if isinstance(x, TensorBase) else None for x in args]


class _Unpack:
    """A saved tensor of a Function, with the place on the tape that it had.

    An output's place is the Function's own node, which holds this: it is known by a weak reference,
    so that there is no cycle. The node is alive whenever its backward runs.
    """

    __slots__ = ("edge", "name", "node", "op", "pin", "unknown")

    def __init__(
        self, x: Any, node: Node, op: _OutputOp | None, is_output: bool, unknown: bool
    ) -> None:
        self.name = node.op.name
        self.pin = (_packed(x, self.name) if watchers else None) or save_as_is(x._h)
        self.edge = None if is_output else parent_of(x)
        self.node = weakref.ref(node) if is_output or unknown else None
        self.op = op  # of this output, where there are several
        self.unknown = unknown and not is_output

    def __call__(self) -> Any:
        edge = self.edge
        if self.unknown:
            node = self.node() if self.node is not None and mode.enabled else None
            edge = None if node is None else _unknown_edge(node)
        elif self.node is not None:
            edge = self.node()
            if self.op is not None and edge is not None:
                edge = record(self.op, None, (), None, edge)
        if type(self.pin) is Saved:
            return wrap(saved_handle(self.pin, 0, self.name), edge)
        return wrap(self.pin.array(), edge)


def _packed(x: Any, name: str) -> Any:
    """The tensor as hooks of saved tensors pack it; None where there are none."""
    from minigrad.autograd.saved_tensors import packed_array

    return packed_array(x, name)


class _Unknown(NamedTuple):
    """The values that a Function keeps of its forward and the tape cannot trace to the inputs."""

    tensors: list[Any] = []  # noqa: RUF012 - nobody adds to it
    numbers: bool = False  # NumPy's arrays, or numbers
    watch: Any = None  # the _Watch of the forward
    end: int = 0  # when forward was over

    def outside(self, cls: type) -> bool:
        """True if backward reaches a tensor that forward left in a global or the class."""
        return any(
            isinstance(x, TensorBase) and x._h.version <= self.end and self.watch._made(x)
            for x in _outside(cls)
        )


class _Watch:
    """Watches a forward, or a backward that leaves a graph: what of its values leaves the tape?"""

    def __init__(
        self, args: Sequence[Any], needs_grad: Sequence[bool], forward: Function | None = None
    ) -> None:
        self.args = args
        self.of_backward = forward is None
        # Does a Function around this one need not note what leaves here?
        self.is_known = forward is not None and bool(forwards) and _has_arguments_alone(forward)
        given = [x for x, want in zip(args, needs_grad, strict=True) if want]
        self.buffers = {x._h.buffer for x in given}
        self.start = int(lib.mg_clock_tick())
        self.left = False  # did values leave for NumPy or Python?
        self.thread = threading.get_ident()

    def _made(self, x: Any) -> bool:
        """Was this tensor made, or written, meanwhile? Or is it part of an input?"""
        if not x.dtype.is_floating_point or x._edge is not None:
            return False
        h = x._h
        return h.version >= self.start or h.buffer in self.buffers

    def __call__(self, x: Any) -> None:
        """Note that a tensor's values leave the tape.

        Nothing is noted in a backward, while a Function runs within it that was recorded and gets
        all tensors as arguments: the tape holds that Function.
        """
        if threading.get_ident() != self.thread or (self.of_backward and self._has_known()):
            return
        if x.dtype.is_floating_point:
            self.left = self.left or x._edge is not None or self._made(x)

    def _has_known(self) -> bool:
        """Whether the innermost Function, which runs within this one, knows of what leaves."""
        own = [watch for watch in forwards if getattr(watch, "thread", None) == self.thread]
        return bool(getattr(own[-1], "is_known", False))

    def found_in(self, kept: dict[str, Any]) -> _Unknown:
        """The attributes of a Function that forward made, without its arguments."""
        known = {id(x) for x in (*self.args, None)}
        values = [x for value in kept.values() for x in _inner(value) if id(x) not in known]
        tensors = [x for x in values if isinstance(x, TensorBase) and self._made(x)]
        hidden = [y for x in values for y in _hidden(x) if id(y) not in known]
        numbers = self.left and any(_holds_floats(x) for x in (*values, *hidden))
        beside = any(isinstance(y, TensorBase) and self._made(y) for y in hidden)
        return _Unknown(tensors, numbers or beside, self, int(lib.mg_clock_tick()))


_RULES = ("backward", "jvp", "vmap")


def _has_arguments_alone(function: Function) -> bool:
    """Whether a forward gets values by its arguments alone, and none by a closure or its class."""
    if not function.__dict__.keys() <= {"_used", "needs_input_grad"}:
        return False
    bases = [b for b in type(function).__mro__ if issubclass(b, Function) and b is not Function]
    names = {
        name: x
        for base in bases
        for name, x in vars(base).items()
        if not name.startswith("__") and name not in _RULES
    }
    for x in names.values():
        x = getattr(x, "__func__", x)  # of a staticmethod
        if not isinstance(x, (FunctionType, str, int, float, type(None))):
            return False
        cells = getattr(x, "__closure__", None) or ()
        if not all(isinstance(cell.cell_contents, (type, ModuleType)) for cell in cells):
            return False
    return True


def _inner(value: Any) -> Iterator[Any]:
    """A value, or those in a list, a tuple or a dict."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        for x in value:
            yield from _inner(x)
    else:
        yield value


def _hidden(x: Any) -> Iterator[Any]:
    """The values in a user's object, or in the closure of a function."""
    if isinstance(x, (TensorBase, type)):
        return
    for cell in getattr(x, "__closure__", None) or ():
        try:
            yield from _inner(cell.cell_contents)
        except ValueError:  # it is empty yet
            continue
    yield from _inner(getattr(x, "__dict__", {}))


def _outside(cls: type) -> Iterator[Any]:
    """The values that the backward of a Function reaches without its context.

    Global variables that it names, cells of its closure and attributes of its class; also through
    functions and classes of the same file.
    """
    passed = ("forward", "setup_context")
    own = [base for base in cls.__mro__ if issubclass(base, Function) and base is not Function]
    todo = [x for base in own for name, x in vars(base).items() if name not in passed]
    seen: set[int] = {id(base) for base in own}
    while todo:
        x = todo.pop()
        x = getattr(x, "__func__", x)  # of a staticmethod
        if id(x) in seen or isinstance(x, ModuleType):
            continue
        seen.add(id(x))
        if isinstance(x, FunctionType):
            if x.__module__ == cls.__module__:
                known = x.__globals__
                todo += [known[name] for name in _names(x.__code__) if name in known]
                todo += _hidden(x)
        elif isinstance(x, type):
            todo += vars(x).values() if x.__module__ == cls.__module__ else ()
        else:
            yield from _inner(x)
            yield from _hidden(x)


def _names(code: CodeType) -> set[str]:
    """The names of globals, and of attributes, in the code of a function and of those within."""
    inner = [_names(x) for x in code.co_consts if isinstance(x, CodeType)]
    return set(code.co_names).union(*inner)


def _holds_floats(x: Any) -> bool:
    """A float, or an array of floats of NumPy's."""
    if is_numpys("ndarray", x) or is_numpys("generic", x):
        return bool(x.dtype.kind == "f")
    return isinstance(x, float)


def _exchanged(value: Any, tensors: list[Any], edge: Node) -> Any:
    """The value, with new tensors at this edge in place of some that it is or holds."""
    if isinstance(value, TensorBase):
        if not any(value is x for x in tensors):
            return value
        return wrap(call(kernels.view_alias, value._h), edge)
    if type(value) in (list, tuple):
        return type(value)([_exchanged(x, tensors, edge) for x in value])
    if type(value) is dict:
        return {name: _exchanged(x, tensors, edge) for name, x in value.items()}
    return value


class _NotKnownError(RuntimeError):
    """A derivative runs through a value of which the tape does not know how it was made."""


class _UnknownOp:
    """The place on the tape of what a forward kept: its gradient is not known."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def vjp(self, node: Node, g: Any) -> Any:
        raise _NotKnownError(
            f"[{self.name}] the second derivative is not known: backward computed with a value "
            "that forward made of its inputs outside the tape, or is once_differentiable; compute "
            "it in backward from inputs and outputs kept with save_for_backward, or detach() it "
            "there if it is a constant"
        )

    graph_vjp = vjp

    def jvp(self, node: Node, tangents: Sequence[Any]) -> Any:
        return self.vjp(node, None)


class _BesideUnknown:
    """A gradient that was computed with something unknown beside what the tape knows."""

    name = "gradient"

    @staticmethod
    def vjp(node: Node, g: Any) -> Any:
        return g, g

    graph_vjp = vjp

    @staticmethod
    def jvp(node: Node, tangents: Sequence[Any]) -> Any:
        return tangents[0]


_BESIDE_UNKNOWN = _BesideUnknown()


def _unknown_edge(node: Node) -> Node:
    """A place on the tape that leads to the inputs of a Function, by ways that are not known."""
    return record(_UnknownOp(node.op.name), None, (), None, *(node.parents or ()))


def once_differentiable(backward: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator for the backward of a :class:`Function` that can be differentiated once.

    It is not recorded, and a second derivative through it is a RuntimeError.

    >>> import minigrad as mg
    >>> class Double(mg.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         return x * 2
    ...
    ...     @staticmethod
    ...     @once_differentiable
    ...     def backward(ctx, g):
    ...         return mg.tensor(g.numpy() * 2)
    >>> x = mg.tensor(3.0, requires_grad=True)
    >>> Double.apply(x).backward()
    >>> x.grad.item()
    2.0
    """

    @functools.wraps(backward)
    def once(ctx: Function, *upstream: Any) -> Any:
        ctx._once = True
        with no_grad():
            return backward(ctx, *[off_tape(g) for g in upstream])

    return once


class _OutputOp:
    """One of several outputs of a Function."""

    __slots__ = ("name", "place")
    lends = True  # the user's backward may write over the gradient it is given

    def __init__(self, place: int, cls: type) -> None:
        self.place = place
        self.name = f"{cls.__name__}[{place}]"

    def vjp(self, node: Node, g: Any) -> list[Any]:
        return [Bundle({self.place: g})]

    graph_vjp = vjp

    def jvp(self, node: Node, tangents: Sequence[Any]) -> Any:
        return tangents[0].parts.get(self.place)


def _materialized(given: Sequence[Any], metas: Sequence[Any]) -> list[Any]:
    """Gradients or tangents with zeros in place of those that are missing."""
    return [
        zeros(meta[0], dtype=meta[1]) if g is None and meta is not None else g
        for g, meta in zip(given, metas, strict=True)
    ]


def _beside(g: Any, unknown: Node | None) -> Any:
    """A gradient or tangent, beside what is not known of it."""
    if g is not None and unknown is not None:
        g._edge = record(_BESIDE_UNKNOWN, None, (), None, parent_of(g), unknown)
    return g


class FunctionOp:
    """A Function on the tape."""

    __slots__ = ("differentiable", "function", "metas", "name", "outputs")
    lends = True

    def __init__(
        self,
        function: Function,
        metas: list[Any],
        outputs: list[Any],
        differentiable: list[bool],
    ) -> None:
        self.function = function
        self.metas = metas  # of the arguments
        self.outputs = outputs
        self.differentiable = differentiable
        self.name = type(function).__name__

    @no_grad
    def vjp(self, node: Node, g: Any) -> list[Any]:
        """:meth:`graph_vjp` without recording."""
        return [off_tape(gi) for gi in self.graph_vjp(node, g)]

    def graph_vjp(self, node: Node, g: Any) -> list[Any]:
        """The gradients of the arguments, by the class's backward."""
        upstream = [g]
        if type(g) is Bundle:
            upstream = [g.parts.get(k) for k in range(len(self.outputs))]
            if self.function._materialize:
                upstream = _materialized(upstream, self.outputs)
        result, unknown = self._run("backward", node, node.saved, upstream)
        return [_beside(gi, unknown) for gi in self.gradients_in(result)]

    def gradients_in(self, result: Any) -> list[Any]:
        """The gradients that a backward returned, one for each argument."""
        gradients = list(result) if isinstance(result, (tuple, list)) else [result]
        count = len(self.metas)
        while len(gradients) > count and gradients[-1] is None:
            gradients.pop()
        if len(gradients) != count:
            raise RuntimeError(
                f"[{self.name}] backward returned {len(gradients)} gradients for {count} "
                "arguments of forward: one each, None where there is none"
            )
        return [
            self._checked(i, gi, meta)
            for i, (gi, meta) in enumerate(zip(gradients, self.metas, strict=True))
        ]

    def _run(
        self, name: str, node: Node, kept: tuple[Any, ...], given: list[Any]
    ) -> tuple[Any, Node | None]:
        """The result of backward or jvp, and the edge of what the tape does not know of it."""
        context = copy.copy(self.function)  # one for each run: several threads may be at it
        context._kept = kept
        unknown = context._unknown
        if mode.enabled and unknown.tensors:
            edge = _unknown_edge(node)
            for attribute, value in context.__dict__.items():
                if attribute not in ("_kept", "_unknown"):
                    context.__dict__[attribute] = _exchanged(value, unknown.tensors, edge)
        watch = _Watch([], []) if mode.enabled else None
        if watch is not None:
            used = [k.pin for k in kept if type(k) is _Unpack]
            watch.buffers = {pin.buffer(0) for pin in used}
            watch.buffers |= {g._h.buffer for g in given if g is not None}
            forwards.append(watch)
        try:
            result = context._static(name)(*given)
        finally:
            if watch is not None:
                forwards.remove(watch)
        left = watch is not None and (watch.left or unknown.outside(type(self.function)))
        if not (mode.enabled and (unknown.numbers or left or context._once)):
            return result, None
        by_g = left or context._once  # which may be among what left
        sources = [parent_of(g) for g in given if by_g and isinstance(g, TensorBase)]
        parents = (*(node.parents or ()), *sources)
        return result, record(_UnknownOp(self.name), None, (), None, *parents)

    def jvp(self, node: Node, tangents: Sequence[Any]) -> Any:
        """The tangents of the outputs, by the class's jvp, or by transposing its backward."""
        if getattr(type(self.function), "jvp", None) is None:
            made = self._by_transposing(node, tangents)
        else:
            made = self._by_jvp(node, tangents)
        if len(self.outputs) == 1:
            return made[0]
        return Bundle({k: t for k, t in enumerate(made) if t is not None})

    def _by_jvp(self, node: Node, tangents: Sequence[Any]) -> list[Any]:
        given = list(tangents)
        if self.function._materialize:
            given = _materialized(given, self.metas)
        result, unknown = self._run("jvp", node, node.args or node.saved, given)
        return [_beside(t, unknown) for t in self.tangents_in(result)]

    def tangents_in(self, result: Any) -> list[Any]:
        """The tangents that a jvp returned, one for each output."""
        made = list(result) if isinstance(result, (tuple, list)) else [result]
        if len(made) != len(self.outputs):
            raise RuntimeError(
                f"[{self.name}] jvp returned {len(made)} tangents for {len(self.outputs)} outputs "
                "of forward: one each, None where there is none"
            )
        for k, (t, meta) in enumerate(zip(made, self.outputs, strict=True)):
            if t is None:
                continue
            if not isinstance(t, TensorBase):
                raise TypeError(
                    f"[{self.name}] jvp returned {type(t).__name__} as tangent {k}, not a Tensor"
                )
            if meta is None:
                raise RuntimeError(
                    f"[{self.name}] jvp returned a tangent of output {k}, which is no tensor"
                )
            shape, dtype = meta
            if t.shape != shape or t.dtype is not dtype:
                raise RuntimeError(
                    f"[{self.name}] jvp returned {t.dtype.name} of shape {t.shape} as tangent {k} "
                    f"of an output that is {dtype.name} of shape {shape}"
                )
        # The user may hold it, or return an argument.
        return [t if t is None else wrap(call(kernels.view_alias, t._h), edge_of(t)) for t in made]

    def _by_transposing(self, node: Node, tangents: Sequence[Any]) -> list[Any]:
        from minigrad.tape.jvp import transposed

        places = [k for k, is_one in enumerate(self.differentiable) if is_one]
        several = len(self.outputs) > 1

        def pull(us: list[Any]) -> list[Any]:
            parts = dict(zip(places, us, strict=True))
            return self.graph_vjp(node, Bundle(parts) if several else us[0])

        way_out = "state jvp(ctx, *tangents) beside backward"
        try:
            metas = [self.outputs[k] for k in places]
            found, linear = transposed(pull, metas, tangents, mode.enabled, checked=True)
        except _NotKnownError:
            raise RuntimeError(
                f"[{self.name}] forward mode transposes backward, which is once_differentiable or "
                f"computes outside the tape: {way_out}"
            ) from None
        if not linear:
            raise RuntimeError(
                f"[{self.name}] forward mode transposes backward, which is not linear in the "
                f"gradient, or detaches it: {way_out}"
            )
        made: list[Any] = [None] * len(self.outputs)
        for k, t in zip(places, found, strict=True):
            made[k] = t
        return made

    def _checked(self, i: int, g: Any, meta: Any) -> Any:
        if g is None or meta is None:
            return None
        if not isinstance(g, TensorBase):
            raise TypeError(
                f"[{self.name}] backward returned {type(g).__name__} as gradient {i}, not a Tensor"
            )
        shape, dtype = meta
        if not g.dtype.is_floating_point:
            raise TypeError(
                f"[{self.name}] backward returned {g.dtype.name} as gradient {i} for a "
                f"{dtype.name} argument: gradients are floats, as of g.to(mg.{dtype.name})"
            )
        if g.shape != shape:
            try:
                g = g.sum_to_size(shape)  # type: ignore[attr-defined]
            except ValueError:
                raise RuntimeError(
                    f"[{self.name}] backward returned shape {g.shape} as gradient {i} for an "
                    f"argument of shape {shape}"
                ) from None
        # The user may hold it, or return it twice, so it is shown as memory that others have too.
        g = g.to(dtype)
        return wrap(call(kernels.view_alias, g._h), g._edge)
