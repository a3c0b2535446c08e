"""Profiler: calls, time, bytes and floating-point operations of each operation and module.

Every kernel is timed in C, from where it begins to where it ends. What a kernel belongs to is known
beside it: the module that runs, the source line, and in backward the node whose rule runs.
"""

from __future__ import annotations

import threading
import time
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from minigrad.nn.global_hooks import (
    register_module_forward_hook,
    register_module_forward_pre_hook,
)
from minigrad.profiler import report
from minigrad.profiler.limits import Limits, measured_limits
from minigrad.runtime.costs import cost
from minigrad.runtime.native import lib, names, signatures, title_of, tracers
from minigrad.tape.watching import Lines, Watcher

__all__ = ["Event", "Totals", "profile"]

_TITLES = {name: title_of(number) or name for number, name in enumerate(names)}
# Kernels that compute nothing: questions, and a view of what the tape saved.
_QUESTIONS = {name for name, kind in zip(names, signatures, strict=True) if kind.endswith("?")}
_QUESTIONS |= {"saved_array", "check_writable", "index_within", "step_check"}


class Event(NamedTuple):
    """One call of a kernel. Times are in nanoseconds of one clock."""

    operation: str
    backward: bool
    modules: tuple[str, ...]  # those that ran, outermost first
    line: tuple[str, int]  # file and number, outside this package
    thread: int
    begin: int
    end: int
    bytes: int
    flops: int
    live: int  # bytes in use after it

    @property
    def name(self) -> str:
        """The operation, and whether it ran in backward."""
        return f"{self.operation} backward" if self.backward else self.operation


class Totals(NamedTuple):
    """Sums over the calls that have something in common."""

    name: str
    calls: int
    seconds: float
    bytes: int
    flops: int
    limit: float | None  # the share of the machine's limit; None where that is not known


class profile(Watcher):  # noqa: N801 - a context, named as a function
    """Context that measures what runs in it, in all threads.

    ``print(p)`` shows a table by operation, and :meth:`table` others. Times are those of kernels
    alone; what Python does between them is the rest of ``p.wall``. Bytes are those of the arrays
    that a kernel reads and writes. Floating-point operations are counted by formulas, for products
    two for each multiplication. Of the first ``max_events`` calls each is kept, for the trace and
    the timeline; later ones count in the tables alone.

    After :meth:`calibrate` the tables show the share of the machine's limit that was reached: the
    least time that the operations at peak speed, or the bytes at full bandwidth, would take, by the
    time that was taken. It can be above 1 for data in a cache.

    >>> import minigrad as mg
    >>> with mg.profile() as p:
    ...     y = mg.ones(4, 3) @ mg.ones(3, 2)
    >>> [(row.name, row.calls, row.flops) for row in p.totals(sort_by="flops")]
    [('matmul', 1, 48), ('full', 2, 0)]
    """

    wants_lines = True

    def __init__(self, *, max_events: int = 200_000) -> None:
        if isinstance(max_events, bool) or not isinstance(max_events, int) or max_events < 0:
            raise ValueError(f"[profile] max_events is {max_events!r}: give a number of calls")
        self.max_events = max_events
        self.events: list[Event] = []
        self.wall = 0.0  # seconds in the context
        self.limits: Limits | None = None
        self._sums: dict[tuple[Any, ...], list[int]] = {}  # by operation, backward, modules, line
        self._modules = Lines()  # of nodes, the modules in which they were recorded
        self._names: WeakKeyDictionary[Any, str] = WeakKeyDictionary()
        self._here = threading.local()
        self._hooks: list[Any] = []
        self._lock = threading.Lock()

    # ---- watching ----

    def __enter__(self) -> profile:
        if self._hooks:
            raise RuntimeError("[profile] it runs already: use another profile within it")
        self._hooks = [
            register_module_forward_pre_hook(self._enter_module),
            register_module_forward_hook(self._leave_module, always_call=True),
        ]
        self._begun = time.perf_counter()
        lib.mg_run_measure(1)
        self.begin()
        tracers.insert(0, tracers.pop())  # before others run kernels, which are timed too
        return self

    def __exit__(self, *error: object) -> None:
        self.end()
        lib.mg_run_measure(-1)
        self.wall += time.perf_counter() - self._begun
        while self._hooks:
            self._hooks.pop().remove()

    def on_kernel(self, name: str, args: tuple[Any, ...], made: Any, place: Any) -> None:
        """Note a call."""
        if name in _QUESTIONS:
            return
        begin, end = lib.mg_run_begun(), lib.mg_run_ended()
        here = self._state()
        backward = bool(here.rules)
        of = _TITLES[name], backward, here.rules[-1] if backward else here.modules, place
        count, flops = cost(name, args, made)
        with self._lock:
            sums = self._sums.get(of)
            if sums is None:
                sums = self._sums[of] = [0, 0, 0, 0]
            sums[0] += 1
            sums[1] += end - begin
            sums[2] += count
            sums[3] += flops
            if len(self.events) < self.max_events:
                rest = threading.get_ident(), begin, end, count, flops, lib.mg_live_bytes()
                self.events.append(Event(*of, *rest))

    def before_node(self, node: Any, g: Any) -> None:
        """Kernels that run now belong to the modules in which the node was recorded."""
        self._state().rules.append(self._modules.of(node) or ())

    def after_node(self, node: Any, g: Any, made: Any) -> None:
        """The rule is over."""
        self._state().rules.pop()

    def _state(self) -> Any:
        """The modules that run in this thread, and the modules of the rules of nodes."""
        here = self._here
        if not hasattr(here, "rules"):
            here.modules, here.rules = (), []
        return here

    # ---- modules ----

    def _enter_module(self, module: Any, args: Any) -> None:
        here = self._state()
        if not here.modules or module not in self._names:
            root = type(module).__name__
            for path, child in module.named_modules():
                self._names[child] = f"{root}.{path}" if path else root
        self._run_in(here, (*here.modules, self._names[module]))

    def _leave_module(self, module: Any, args: Any, output: Any) -> None:
        here = self._state()
        self._run_in(here, here.modules[:-1])  # none where it was entered before the context

    def _run_in(self, here: Any, modules: tuple[str, ...]) -> None:
        here.modules = modules
        self._modules.mark(modules)

    # ---- results ----

    def calibrate(self, flops: float | None = None, bandwidth: float | None = None) -> profile:
        """Measure the machine's limits, unless both are given; returns the profile.

        ``flops`` are operations and ``bandwidth`` bytes a second. What is not given is measured,
        in about half a second: products of matrices of float32, and copies of memory that fits in
        no cache. The measured limits are kept for the process.
        """
        for name, value in (("flops", flops), ("bandwidth", bandwidth)):
            if value is not None and not value > 0:
                raise ValueError(f"[calibrate] {name} is {value!r}: give a number above 0")
        if flops is None or bandwidth is None:
            found = measured_limits()
            flops, bandwidth = flops or found.flops, bandwidth or found.bandwidth
        self.limits = Limits(float(flops), float(bandwidth))
        return self

    def totals(self, sort_by: str = "time", by: str = "operation") -> list[Totals]:
        """Sums by "operation", "module" or "line", the largest first.

        ``sort_by`` is "time", "calls", "bytes", "flops" or "name". A module's sums include those of
        modules within it, also in backward; what runs in none has the name "".
        """
        if by not in _KEYS:
            raise ValueError(f"[profile] by is {by!r}: give operation, module or line")
        places = {"time": 1, "calls": 0, "bytes": 2, "flops": 3, "name": None}
        if sort_by not in places:
            raise ValueError(
                f"[profile] sort_by is {sort_by!r}: give time, calls, bytes, flops or name"
            )
        with self._lock:
            each = [(of, tuple(sums)) for of, sums in self._sums.items()]
        added: dict[str, list[int]] = {}
        for of, sums in each:
            for name in _KEYS[by](*of):
                before = added.get(name, (0, 0, 0, 0))
                added[name] = [a + b for a, b in zip(before, sums, strict=True)]
        place = places[sort_by]
        rows = sorted(added.items(), key=lambda row: row[0] if place is None else -row[1][place])
        return [self._totals(name, *sums) for name, sums in rows]

    def _totals(self, name: str, calls: int, duration: int, count: int, flops: int) -> Totals:
        limit = None
        if self.limits is not None and duration:
            least = max(flops / self.limits.flops, count / self.limits.bandwidth)
            limit = least / (duration * 1e-9)
        return Totals(name, calls, duration * 1e-9, count, flops, limit)

    @property
    def kernel_seconds(self) -> float:
        """Time in kernels, of all threads."""
        return sum([row.seconds for row in self.totals()])

    def table(self, sort_by: str = "time", by: str = "operation", limit: int | None = 20) -> str:
        """The sums as a table with at most ``limit`` rows; arguments as of :meth:`totals`."""
        return report.table(self, sort_by, by, limit)

    __str__ = table

    def __repr__(self) -> str:
        calls = sum([row.calls for row in self.totals()])
        return f"<profile of {calls} calls of kernels>"

    def chrome_trace(self, path: Any) -> None:
        """Write the calls as a trace that chrome://tracing and ui.perfetto.dev show."""
        report.chrome_trace(self, path)

    def memory_timeline(self, path: Any) -> None:
        """Draw the memory in use over time, to a file whose name says the kind of picture.

        ImportError without matplotlib.
        """
        report.memory_timeline(self, path)


def _operation(op: str, backward: bool, modules: Any, line: Any) -> tuple[str, ...]:
    return (f"{op} backward" if backward else op,)


def _module(op: str, backward: bool, modules: Any, line: Any) -> tuple[str, ...]:
    return tuple(dict.fromkeys(modules)) or ("",)


def _line(op: str, backward: bool, modules: Any, line: Any) -> tuple[str, ...]:
    return (f"{line[0]}:{line[1]}",)


# Under which names the tables count a call.
_KEYS = {"operation": _operation, "module": _module, "line": _line}
