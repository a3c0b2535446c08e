"""The graph that a recorded call leaves: its form, and another one like it for a later call.

The program of such a call keeps the arrays that the tape saved in the recorded call. A result gets
one node for the whole call, and its rule runs a recorded backward pass. The rule can also make the
nodes of the recorded graph again, on the kept arrays. It does so in order to record, and where no
recorded pass fits: for gradients that are differentiated again, or after a write in place.

Where one result is computed from another, gradients must pass through both. Each call then gets
nodes like all those recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from types import FunctionType
from typing import Any

from minigrad._compile.arguments import each
from minigrad._compile.folding import fold_constants
from minigrad._compile.plan import Plan, writes
from minigrad._compile.planner import planned
from minigrad._compile.program import Differs, Misfit, Program
from minigrad._compile.recorder import NONE, Recorder, Step
from minigrad._tensor.inplace import OVERWRITE, WRITE_VIEW
from minigrad.autograd.bundle import Bundle
from minigrad.functions.creation import zeros
from minigrad.ops.saved_values import SavedValues
from minigrad.ops.table import Row
from minigrad.runtime import recorders
from minigrad.runtime.accelerator import speed
from minigrad.runtime.dtypes import DType
from minigrad.runtime.native import Array, Saved, call, kernels, save, saved_handle
from minigrad.runtime.recorders import RecordingError
from minigrad.tape.engine import gradients, topological_order
from minigrad.tape.grad_mode import mode
from minigrad.tape.hooks import watchers
from minigrad.tape.node import Node, new_node, record
from minigrad.tape.tensor_base import parent_of, result_type, wrap

__all__ = ["History", "NoHistory", "outside"]

MOST_PASSES = 4  # recorded passes for one choice of outputs that have a gradient

_FROM_SAVED, _FROM_LOOSE, _FROM_UPSTREAM, _FROM_CONSTANT = range(4)
_OPERATIONS = (
    kernels.program_run,
    kernels.program_take,
    kernels.program_end,
    kernels.view_alias,
)
_PLAIN = (bool, int, float, complex, str, bytes, type(None), Row, DType)


# Arrays that one call keeps for its backward: groups that are pinned, and those in arguments.
Made = tuple[tuple[Saved, ...], tuple[Array, ...]]


class NoHistory(Exception):  # noqa: N818 - no error: the function runs without a program
    """The graph of a call cannot be made again; the message says why."""


@dataclass(frozen=True, slots=True)
class _Hole:
    """The place of an array in the arguments of a node.

    ``of`` is the tensor or the SavedValues that held it, and ``edge`` the edge of the operand.
    """

    place: int  # of the array or, for SavedValues, of the saved group
    of: Any = None
    edge: int | None = None


@dataclass(frozen=True, slots=True)
class _Kept:
    """A node of the recorded graph. Edges are numbers: see :meth:`History.edge`."""

    op: Any
    group: int  # of the saved arrays, or NONE
    args: Any
    meta: Any
    parents: tuple[int | None, ...]


class History:
    """The form of the graph that a recorded call left behind its results.

    ``roots`` are the edges of the results, and ``begin`` is the serial number of the last node
    before the call. ``sources`` gives for each edge at which the graph may end where it comes from.
    ``slots`` are the recorder's slots whose arrays a program keeps. Raises NoHistory.
    """

    def __init__(
        self, roots: Sequence[Any], begin: int, recorder: Recorder, sources: dict[Any, Any]
    ) -> None:
        self._recorder: Recorder | None = recorder
        self._sources = sources
        self.since = recorder.start
        self.groups: list[tuple[int, ...]] = []  # places of arrays that are saved together
        self.slots: list[int] = []  # by place
        self.loose: list[int] = []  # places of arrays in arguments, which are not watched
        self.ends: list[Any] = []  # where the edges come from at which the graph ends
        self._edges: dict[Any, int] = {}
        self._nodes: list[_Kept] = []
        try:
            found = topological_order([x for x in roots if type(x) is Node], begin)
        except RuntimeError:
            raise NoHistory("a part of its graph was freed") from None
        for node in found:
            if node.serial > begin and node not in sources:
                self._nodes.append(self._kept(node))
                self._edges[node] = len(self._nodes) - 1
        self.roots = [self._number(x) for x in roots]
        # whether a result is computed from another one: gradients then pass through both
        behind = {number for kept in self._nodes for number in kept.parents}
        self.is_chained = len(set(self.roots)) < len(roots) or not behind.isdisjoint(self.roots)
        self._where = {
            p: (g, i) for g, group in enumerate(self.groups) for i, p in enumerate(group)
        }
        self._loose_at = {place: k for k, place in enumerate(self.loose)}
        self.op = _CallOp(self)
        self.outputs = [_OutputOp(k) for k in range(len(roots))]
        self.metas: list[Any] = []
        self.without: Collection[str] = ()  # passes of the planner that are left out
        self._passes: dict[Any, list[_Pass]] = {}
        self._without: set[Any] = set()  # choices of outputs that no program repeats
        self._edges, self._sources, self._recorder = {}, {}, None

    # ---- the form of the graph ----

    def _kept(self, node: Node) -> _Kept:
        op = node.op
        if type(op) is not Row and op is not WRITE_VIEW and op is not OVERWRITE:
            raise NoHistory(f"its graph holds {op.name!r}, an operation with a rule of its own")
        if node.hooks:
            raise NoHistory(f"it registers a hook on the result of {op.name!r}")
        group = NONE if node.saved is None else self._group(op.name, node.saved)
        args = self._template(op.name, node.args)
        parents = tuple([None if x is None else self._number(x) for x in node.parents or ()])
        return _Kept(op, group, args, node.input_meta, parents)

    def _number(self, edge: Any) -> int:
        number = self._edges.get(edge)
        if number is None:
            if edge not in self._sources:
                if type(edge) is Node:
                    raise NoHistory("its graph goes on behind a tensor that is no argument")
                raise NoHistory("its graph ends at a leaf that it makes, or that is hidden")
            self.ends.append(self._sources[edge])
            number = self._edges[edge] = -len(self.ends)
        return number

    def _group(self, op: str, saved: Any) -> int:
        if type(saved) is not Saved:
            raise NoHistory(f"hooks packed what {op!r} saved")
        places = []
        for i in range(3):
            try:
                array = saved_handle(saved, i) if saved.buffer(i) else None
            except RuntimeError:
                raise NoHistory(f"it writes over what {op!r} saved for backward") from None
            places.append(NONE if array is None else self._place(op, array))
        self.groups.append(tuple(places))
        return len(self.groups) - 1

    def _place(self, op: str, array: Array) -> int:
        slot = None if self._recorder is None else self._recorder.slot_of(array)
        if slot is None:
            raise NoHistory(
                f"{op!r} saves a copy of memory that NumPy can write, or of a storage dtype; "
                "clone() or cast that before the call"
            )
        if slot not in self.slots:
            self.slots.append(slot)
        return self.slots.index(slot)

    def _template(self, op: str, x: Any) -> Any:
        """The arguments of a node with holes in place of arrays."""
        if isinstance(x, _PLAIN) or (type(x) is FunctionType and x.__closure__ is None):
            return x
        if type(x) is SavedValues:
            edge = None if x.edge is None else self._number(x.edge)
            return _Hole(self._group(op, x._saved), x, edge)
        if type(x) is Array:
            return self._loose(op, x, None, None)
        if type(x) is result_type():
            parent = parent_of(x)
            return self._loose(op, x._h, True, None if parent is None else self._number(parent))
        if isinstance(x, (tuple, list, dict)):
            return each(lambda item: self._template(op, item), x)
        raise NoHistory(f"{op!r} keeps a {type(x).__name__}")

    def _loose(self, op: str, array: Array, of: Any, edge: int | None) -> _Hole:
        place = self._place(op, array)
        if place not in self.loose:
            self.loose.append(place)
        return _Hole(place, of, edge)

    # ---- the graph of another call ----

    def edges(self, arrays: list[Array], parents: list[Any]) -> list[Node]:
        """The edges of the results of a call, which kept these arrays.

        ``parents`` are the edges at which its graph ends, in the order of ``ends``.
        """
        saved = [save(*[None if p < 0 else arrays[p] for p in group]) for group in self.groups]
        made = tuple(saved), tuple([arrays[p] for p in self.loose])
        if self.is_chained:
            return self._nodes_on(made, parents)
        node = record(self.op, made, (), None, *parents)
        if len(self.roots) == 1:
            return [node]
        return [record(op, None, (), None, node) for op in self.outputs]

    def again(self, made: Made, parents: Sequence[Any]) -> tuple[list[Node], list[Node]]:
        """The edges at which the recorded graph ends and those of its results, of new nodes."""
        ends = [record(outside, None, (), None, parent) for parent in parents]
        return ends, self._nodes_on(made, ends)

    def _nodes_on(self, made: Made, ends: Sequence[Any]) -> list[Node]:
        """The edges of the results on new nodes like those recorded, from these ends on."""
        nodes: list[Node] = []

        def edge(number: int | None) -> Any:
            if number is None:
                return None
            return nodes[number] if number >= 0 else ends[-1 - number]

        for kept in self._nodes:
            saved = None if kept.group < 0 else made[0][kept.group]
            parents = tuple([edge(number) for number in kept.parents])
            args = self._filled(kept.args, made, edge)
            nodes.append(new_node(kept.op, saved, args, kept.meta, parents))
        return [edge(number) for number in self.roots]

    def _filled(self, x: Any, made: Made, edge: Callable[[int | None], Any]) -> Any:
        """The arguments of a node, with arrays in place of holes."""
        if type(x) is not _Hole:
            return each(lambda item: self._filled(item, made, edge), x)
        if type(x.of) is SavedValues:
            return x.of.like(made[0][x.place], edge(x.edge))
        array = made[1][self._loose_at[x.place]]
        return array if x.of is None else wrap(array, edge(x.edge))

    # ---- backward ----

    def backward(self, node: Node, upstream: list[Any], graph: bool) -> list[Any]:
        """The gradients of the node's parents, from those of the results, or None for each."""
        made = node.saved
        if recorders.active() is not None:
            recorders.give_up("backward", "goes through the graph of a call outside")
        elif not graph and not watchers and all(g is None or _is_plain(g) for g in upstream):
            return self._by_program(node, made, upstream)
        return self._eagerly(node, made, upstream, graph)

    def _eagerly(self, node: Node, made: Made, upstream: list[Any], graph: bool) -> list[Any]:
        ends, roots = self.again(made, node.parents or ())
        pairs = [(edge, g) for edge, g in zip(roots, upstream, strict=True) if g is not None]
        edges, given = [edge for edge, _ in pairs], [g for _, g in pairs]
        found = gradients(edges, given, graph, graph, set(ends), ends=True)
        results: list[Any] = []
        others = {id(g) for g in given}
        for end in ends:
            g = found.get(end)
            if g is not None and not graph and id(g) in others:
                g = _gradient(g._h, True)
            others.add(id(g))
            results.append(g)
        return results

    def _by_program(self, node: Node, made: Made, upstream: list[Any]) -> list[Any]:
        key = _key(upstream)
        passes = self._passes.get(key)
        if passes is None:
            passes = self._passes[key] = []
        for one in passes:
            found = one.run(self, made, upstream)
            if found is not None:
                return found
        if key in self._without or len(passes) >= MOST_PASSES:
            return self._eagerly(node, made, upstream, False)
        return self._recorded(key, node, made, upstream)

    def _recorded(self, key: Any, node: Node, made: Made, upstream: list[Any]) -> list[Any]:
        """The gradients of a pass that is recorded."""
        recorder = Recorder()
        if not self.know(recorder, key, made, upstream):
            return self._eagerly(node, made, upstream, False)
        found = self.watched(recorder, node, made, upstream)
        if found is None:
            self._without.add(key)
            return self._eagerly(node, made, upstream, False)
        one = (
            None
            if recorder.failed or recorder.events
            else _Pass.of(self, recorder, found, self.without)
        )
        if one is None:
            self._without.add(key)
        else:
            self._passes[key].append(one)
            if key == (0,) and one.fast is not None:
                self.op.passes.append(one)
        return found

    def know(self, recorder: Recorder, key: Any, made: Made, upstream: list[Any]) -> bool:
        """Tell a recorder of the arrays of a pass. False if no pass can be recorded."""
        try:
            arrays = [self.array(made, place) for place in range(len(self.slots))]
        except RuntimeError:  # overwritten; the pass says so if it needs that array
            return False
        for place, array in enumerate(arrays):
            recorder.know("kept", array, place)
        for k, g in enumerate(upstream):
            if g is not None and key[k] == k:
                recorder.know("upstream", g._h, k)
        # a gradient may be a kept array
        return len(recorder.values) == len(arrays) + len({k for k in key if k is not None})

    def watched(
        self, recorder: Recorder, node: Node, made: Made, upstream: list[Any]
    ) -> list[Any] | None:
        """The gradients of a pass that a recorder writes down; None if it reads values."""
        recorder.begin(self.since)
        try:
            return self._eagerly(node, made, upstream, False)
        except RecordingError:
            return None
        finally:
            recorder.end()

    def passes(self) -> list[_Pass]:
        """The recorded backward passes."""
        return [one for found in self._passes.values() for one in found]

    def source(self, kind: str, x: Any) -> tuple[int, int, Any]:
        """Where the accelerator finds an array of a pass: see csrc/python/replayed_pass.c."""
        if kind == "upstream":
            return _FROM_UPSTREAM, x, 0
        if kind != "kept":
            return _FROM_CONSTANT, 0, x
        if x in self._where:
            return (_FROM_SAVED, *self._where[x])
        return _FROM_LOOSE, self._loose_at[x], 0

    def array(self, made: Made, place: int) -> Array:
        """A kept array. Raises RuntimeError if it is watched and was overwritten."""
        if place in self._where:
            group, i = self._where[place]
            return saved_handle(made[0][group], i)
        return made[1][self._loose_at[place]]


def _is_plain(g: Any) -> bool:
    """True for a tensor of its own kind, whose values are in an array."""
    return type(g) is result_type() and type(g._h) is Array


def _key(upstream: list[Any]) -> tuple[int | None, ...]:
    """For each gradient the number of the first one on the same memory, or None."""
    if len(upstream) == 1:
        return (0,) if upstream[0] is not None else (None,)
    first: dict[Any, int] = {}
    return tuple(
        [None if g is None else first.setdefault(_memory(g), k) for k, g in enumerate(upstream)]
    )


def _memory(g: Any) -> Any:
    h = g._h
    return h.buffer, h.data, h.shape, h.strides


class _Pass:
    """A recorded backward pass."""

    plan: Plan
    constants: range  # their slots
    order: list[int]  # the recorder's slots by their number in the plan
    steps: list[Step]  # that were recorded

    def __init__(
        self, history: History, program: Program, sources: list[Any], results: list[Any]
    ) -> None:
        self.program = program
        self.sources = sources  # of the given arrays: a kind, and a place or an array
        self.results = results  # for each end the number of a result or None, and if it is shared
        self.fast: Any = None
        if speed is not None:
            places = tuple([history.source(kind, x) for kind, x in sources])
            self.fast = speed.replayed_pass(
                (program.address, places, tuple(program.results), tuple(results), _OPERATIONS)
            )

    @classmethod
    def of(
        cls, history: History, recorder: Recorder, found: list[Any], without: Collection[str]
    ) -> _Pass | None:
        """The pass that a recorder wrote down; None if it cannot be one."""
        steps = recorder.steps
        if "fold_constants" not in without:
            fold_constants(recorder, [g._h for g in found if g is not None])
        values = recorder.values
        ends = [None if g is None else recorder.slot_of(g._h) for g in found]
        asked = [slot for slot in ends if slot is not None]
        if len(asked) < sum(g is not None for g in found):
            return None
        used = set(asked)
        for step in recorder.steps:
            used.update(step.inputs, step.saved or ())
        kinds = ("kept", "upstream", "hidden", "constant")
        given = [k for kind in kinds for k, v in enumerate(values) if v.kind == kind and k in used]
        order = [*given, *[k for k, v in enumerate(values) if v.kind == "made"]]
        numbers = {slot: k for k, slot in enumerate(order)}
        results = sorted({numbers[slot] for slot in asked})
        count = sum(values[k].kind == "constant" for k in given)
        constants = range(len(given) - count, len(given))
        plan = planned(recorder, order, len(given), constants, numbers, results, without)
        if any(plan.layouts[s].root in plan.given_roots() for x in plan.steps for s in writes(x)):
            return None
        arrays = [values[k].array for k in given]
        program = Program(len(plan.layouts), arrays, plan.steps, plan.results, False)
        roots = [plan.layouts[slot].root for slot in plan.results]
        outer = plan.given_roots()
        places = [None if slot is None else results.index(numbers[slot]) for slot in ends]
        shared = [
            k is not None
            and (places.count(k) > 1 or roots[k] in outer or roots.count(roots[k]) > 1)
            for k in places
        ]
        sources = [
            (v.kind, v.array if v.kind in ("hidden", "constant") else v.source)
            for v in (values[k] for k in given)
        ]
        one = cls(history, program, sources, list(zip(places, shared, strict=True)))
        one.plan, one.constants, one.order, one.steps = plan, constants, order, steps
        return one

    def given(self, history: History, made: Made, upstream: list[Any]) -> list[Array] | None:
        """The arrays of the pass, or None if one was overwritten."""
        given: list[Array] = []
        for kind, x in self.sources:
            if kind == "kept":
                try:
                    given.append(history.array(made, x))
                except RuntimeError:  # the nodes say where
                    return None
            else:
                given.append(upstream[x]._h if kind == "upstream" else x)
        return given

    def run(self, history: History, made: Made, upstream: list[Any]) -> list[Any] | None:
        """The gradients, or None if this pass does not fit now."""
        if self.fast is not None:
            gradients = self.fast(made, upstream)
            if gradients is NotImplemented:
                gradients = self.stopped()
            if gradients is not ...:
                return gradients
        given = self.given(history, made, upstream)
        if given is None:
            return None
        return self._of(partial(self.program.run, given, [], []))

    def stopped(self) -> Any:
        """The gradients after the accelerator's run stopped; Ellipsis if it did not begin."""
        return ... if self.program.is_busy() else self._of(self.program.finish)

    def _of(self, run: Callable[[], list[Array]]) -> list[Any] | None:
        try:
            found = run()
        except (Differs, Misfit):
            return None
        return [None if k is None else _gradient(found[k], shared) for k, shared in self.results]


def _gradient(array: Array, shared: bool) -> Any:
    """A gradient as a tensor; a view of its memory if others have it too."""
    return wrap(call(kernels.view_alias, array) if shared else array)


class _CallOp:
    """A call of a compiled function on the tape."""

    name = "compiled"

    def __init__(self, history: History) -> None:
        self.history = history
        self.passes: list[_Pass] = []  # for a gradient of the only result

    def vjp(self, node: Node, g: Any) -> list[Any]:
        if self.passes and not recorders.running and not watchers and type(g) is result_type():
            for one in self.passes:
                found = one.fast(node.saved, [g])
                if type(found) is list:
                    return found
                if found is NotImplemented and type(found := one.stopped()) is list:
                    return found
        return self.history.backward(node, self._upstream(g), False)

    def graph_vjp(self, node: Node, g: Any) -> list[Any]:
        return self.history.backward(node, self._upstream(g), True)

    def _upstream(self, g: Any) -> list[Any]:
        if type(g) is not Bundle:
            return [g]
        return [g.parts.get(k) for k in range(len(self.history.roots))]

    def jvp(self, node: Node, tangents: Sequence[Any]) -> Any:
        """The tangents of the results, through nodes that are made again."""
        from minigrad.tape.jvp import LinearMap

        ends, roots = self.history.again(node.saved, node.parents or ())
        shown = [
            wrap(zeros(shape, dtype=dtype)._h, edge)
            for edge, (shape, dtype) in zip(roots, self.history.metas, strict=True)
        ]
        made = LinearMap(ends, shown).push(tangents, mode.enabled)
        if len(made) == 1:
            return made[0]
        return Bundle({k: t for k, t in enumerate(made) if t is not None})


class _OutputOp:
    """One of several results of a call on the tape."""

    def __init__(self, place: int) -> None:
        self.place = place
        self.name = f"compiled[{place}]"

    def vjp(self, node: Node, g: Any) -> list[Any]:
        return [Bundle({self.place: g})]

    graph_vjp = vjp

    def jvp(self, node: Node, tangents: Sequence[Any]) -> Any:
        return tangents[0].parts.get(self.place)


class _Outside:
    """The way from a recorded graph to what was there before."""

    name = "argument"

    @staticmethod
    def vjp(node: Node, g: Any) -> tuple[Any]:
        recorders.give_up("backward", "goes on behind the arguments of the function")
        return (g,)

    graph_vjp = vjp

    @staticmethod
    def jvp(node: Node, tangents: Sequence[Any]) -> Any:
        return tangents[0]


outside = _Outside()
