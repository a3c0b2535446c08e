"""The recorder: writes down the kernel calls of a function as steps on numbered arrays."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from minigrad.autograd.upstream import one
from minigrad.random import Draw
from minigrad.runtime import recorders
from minigrad.runtime.caller import caller
from minigrad.runtime.native import Array, call, kernels, lib, names, signatures, title_of, tracers
from minigrad.runtime.recorders import RecordingError
from minigrad.tape.hooks import forwards
from minigrad.tape.tensor_base import wrap

__all__ = ["NONE", "Live", "Recorder", "Step", "Value", "place_of"]

NONE = -1  # the slot of an array that is left out
_numbers = {name: number for number, name in enumerate(names)}
# Kernels whose result depends on memory that no kernel wrote.
_FOREIGN = {"borrow": "memory of NumPy's or of another library"}
# Kernels that make an array whose shape depends on values.
_SHAPELESS = {"nonzero", "repeat_positions", "bincount"}
# Kernels that only check, or that are of the process.
_PYTHONS = {"python_float", "python_int", "python_bool"}
_SKIPPED = {"step_check", "check_writable", "set_num_threads"}
_WIDE = {**dict.fromkeys(range(lib.MG_UINT8, lib.MG_FLOAT16), lib.MG_INT64)} | dict.fromkeys(
    (lib.MG_FLOAT16, lib.MG_BFLOAT16), lib.MG_FLOAT32
)


@dataclass
class Value:
    """An array of a program.

    ``kind`` is "argument", "captured", "constant", "drawn" or "made". ``source`` says which
    argument, the tensor that was captured, or the function that draws.
    """

    kind: str
    array: Any
    source: Any = None


@dataclass
class Step:
    """A call of a kernel: its number, the slots it reads and makes, and its numbers."""

    number: int
    inputs: list[int]
    saved: list[int] | None
    ints: list[int]
    floats: list[float]
    outputs: list[int]
    expected: int = -1  # the answer of a question
    line: tuple[str, int] | None = None
    move: Any = None  # what gives the numbers for each run: a step of an optimizer, or Live

    @property
    def name(self) -> str:
        """The name of the kernel."""
        return names[self.number]


class Drawn(NamedTuple):
    """A draw from the shared generator, the slot of its array, and when that was written last."""

    make: Any
    slot: int
    version: int


class Live(NamedTuple):
    """All numbers that a turn gives for each run, or one at a place. See ``recorders.live``."""

    turn: Any
    place: int = NONE

    @property
    def renew(self) -> Callable[[], Any]:
        """A function that gives the numbers of a run, and what to call after it."""
        renew: Callable[[], Any] = self.turn.renew
        return renew


@dataclass
class Recorder:
    """Writes down what a thread computes between ``begin`` and ``end``.

    It holds each array that it knows, so no memory is used again meanwhile and an array is known
    by its place in memory.
    """

    values: list[Value] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    events: list[Any] = field(default_factory=list)  # draws and moves, in order
    generators: list[Any] = field(default_factory=list)  # that it draws from; None: the shared one
    failed: str | None = None  # why the function cannot be a program

    def __post_init__(self) -> None:
        self._thread = threading.get_ident()
        self._by_handle: dict[int, int] = {}
        self._by_place: dict[Any, int] = {}
        self._handles: list[Array] = []  # further handles of known arrays
        self._paused = 0
        self._drawing = False
        self.draws_made: list[Drawn] = []
        self._again: list[Any] = []  # functions that give a draw again
        self._busy = False  # in a call of the recorder's own
        self.start = 0
        self.before: Callable[[], None] | None = None  # called before the first kernel is recorded
        self.finds_older = False  # unknown arrays from before are constants

    # ---- what is known before ----

    def know(self, kind: str, array: Array, source: Any = None) -> int:
        """The slot of an array that is there already."""
        slot = self._by_place.get(place := place_of(array))
        if slot is None:
            slot = self._new(kind, array, source, place)
        return slot

    def _new(self, kind: str, array: Array, source: Any, place: Any) -> int:
        slot = len(self.values)
        self.values.append(Value(kind, array, source))
        self._by_handle[id(array)] = slot
        self._by_place[place] = slot
        return slot

    def slot_of(self, array: Array) -> int | None:
        """The slot of an array, or None if it is unknown."""
        slot = self._by_handle.get(id(array))
        if slot is None:
            slot = self._by_place.get(place_of(array))
            if slot is not None:
                self._by_handle[id(array)] = slot
                self._handles.append(array)
        return slot

    # ---- the time of recording ----

    def begin(self, since: int | None = None) -> None:
        """Record what this thread computes from here on.

        Arrays that are unknown and older than ``since``, or than now, are constants.
        """
        for code in (lib.MG_FLOAT32, lib.MG_FLOAT64):
            one(code)  # made at first use and kept
        self.start = int(lib.mg_clock_tick()) if since is None else since
        self.finds_older = since is not None
        recorders.own.recorder = self
        recorders.running.append(self)
        tracers.append(self._traced)
        forwards.append(self._leaving)

    def end(self) -> None:
        """Record no longer."""
        forwards.remove(self._leaving)
        tracers.remove(self._traced)
        recorders.running.remove(self)
        recorders.own.recorder = None

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Context manager: kernels that run meanwhile are not recorded."""
        self._paused += 1
        try:
            yield
        finally:
            self._paused -= 1

    def give_up(self, op: str, why: str) -> None:
        """The function does something that no program repeats: it runs on, and nothing is kept."""
        if not self._paused and self.failed is None:
            file, line = caller()
            self.failed = f"{op} at {file}:{line} {why}"

    def _leaving(self, x: Any) -> None:
        if threading.get_ident() != self._thread or self._paused or self._busy or self.failed:
            return
        if _asked_by_library():  # a step that must have the same answer in each run
            call(kernels.truth, x._h)
            return
        if (reader := _library_reader()) is not None:
            self.give_up(reader, "reads a tensor's value")
            return
        self.give_up("a tensor's value", "is read in Python")
        file, line = caller()
        raise RecordingError(
            f"[compile] {file}:{line} reads a tensor's value, and a recorded program has none yet: "
            "compute with tensors, as in where(), or return the tensor and read it outside"
        )

    # ---- calls ----

    def _traced(self, name: str, args: tuple[Any, ...], made: Any) -> None:
        if threading.get_ident() != self._thread or self._paused or self.failed:
            return
        if self._busy or name in _SKIPPED:
            return
        self._busy = True
        try:
            self._record(_numbers[name], args, made)
        finally:
            self._busy = False

    def _record(self, number: int, args: tuple[Any, ...], made: Any) -> None:
        if self.before is not None:
            self.before()
            self.before = None
        name = names[number]
        if name in _FOREIGN:
            self.give_up("a tensor", f"is made from {_FOREIGN[name]}: pass it as an argument")
            return
        if name == "saved_array":
            return  # the same array under another handle
        if name in _PYTHONS:
            self.know("constant", made)
            return
        if name in _SHAPELESS:
            self.give_up(title_of(number), "makes a tensor whose shape depends on values")
        takes, result = signatures[number].split(":")
        step = Step(number, [], None, [], [], [], line=caller())
        widens = result != "s"
        for place, kind in enumerate(takes):
            value = args[place] if place < len(args) else None
            self._argument(step, kind, value, widens)
        if result == "?":
            step.expected = int(made)
        elif result == "1":
            step.outputs = [self._made(made)]
        elif result == "n":
            step.outputs = [NONE if x is None else self._made(x) for x in made]
        self.steps.append(step)

    def _argument(self, step: Step, kind: str, value: Any, widens: bool) -> None:
        if kind in "asm":
            step.inputs.append(self._input(step, value, widens and kind != "s"))
        elif kind in "ip":
            if kind == "p":
                self.give_up(names[step.number], "takes an address, which no program repeats")
            step.ints.append(int(value or 0))
        elif kind == "d":
            step.floats.append(float(value))
        elif kind == "k":
            step.saved = self._saved(step, value)
        elif kind in "ILD":
            step.ints.append(-1 if value is None else len(value))
            if kind == "D":
                step.floats += [float(x) for x in value or ()]
            else:
                step.ints += [int(x) for x in value or ()]
        else:
            step.ints.append(-1 if value is None else len(value))
            step.inputs += [self._input(step, x, widens and kind == "A") for x in value or ()]

    def _input(self, step: Step, array: Any, widens: bool) -> int:
        if array is None:
            return NONE
        slot = self._known(step, array)
        if widens and array.dtype < 0:
            wide = _WIDE[array.dtype]
            made = self._made(call(kernels.cast, array, wide))
            self.steps.append(Step(kernels.cast, [slot], None, [wide], [], [made], line=step.line))
            return made
        return slot

    def _known(self, step: Step, array: Array) -> int:
        slot = self.slot_of(array)
        if slot is not None:
            return slot
        numbers = array.weak or (not array.ndim and not array.writable)  # that minigrad keeps
        if numbers or (self.finds_older and array.version < self.start):
            return self.know("constant", array)
        self.give_up(
            title_of(step.number),
            "takes a tensor from where no program finds it again: pass it as an argument"
            if array.version < self.start
            else "takes memory that no operation made during the call: pass it as an argument, or "
            "make it before",
        )
        return NONE

    def _saved(self, step: Step, saved: Any) -> list[int] | None:
        if saved is None:
            return None
        slots = []
        for i in range(3):
            if not saved.buffer(i):
                slots.append(NONE)
                continue
            array = call(kernels.saved_array, saved, i)
            slot = self.slot_of(array)
            if slot is None and array.version >= self.start and not array.weak:
                self.give_up(
                    title_of(step.number),
                    "saves a copy for backward, of a storage dtype or of memory that NumPy can "
                    "write: cast it, or clone() it first",
                )
            slots.append(self._known(step, array))
        return slots

    def _made(self, array: Array) -> int:
        """A new slot for a result. A result may be an array that is known."""
        return self._new("made", array, None, place_of(array))

    # ---- what does not come from kernels ----

    def keep(self, x: Any) -> None:
        """A tensor of Python's numbers, whose values the program keeps."""
        if self._paused:
            return
        slot = self.know("constant", x._h)
        with self.paused():  # the function may write into the tensor
            self.values[slot].source = call(kernels.copy, x._h)
        if self.values[slot].kind == "made":  # by a kernel that only takes memory
            self.values[slot].kind = "constant"
            self.steps = [step for step in self.steps if step.outputs != [slot]]

    def draw(self, make: Callable[[], Any]) -> Any:
        """A tensor that is drawn anew for each run."""
        if self._paused or self.failed:
            return make()
        is_shared = not isinstance(make, Draw) or make.is_shared()
        if self._again and is_shared:
            return self._again[-1](make)
        self._drawing = True
        try:
            with self.paused():
                x = make()
        finally:
            self._drawing = False
        slot = self._new("drawn", x._h, make, place_of(x._h))
        self.events.append(slot)
        if is_shared:
            self.draws_made.append(Drawn(make, slot, x._h.version))
        return x

    @contextmanager
    def drawn_again(self, draws: Sequence[Drawn], go_back: Callable[[], Any]) -> Iterator[None]:
        """Context manager: the shared generator's next draws are these."""
        left = list(draws)

        def draw(make: Callable[[], Any]) -> Any:
            if left and self._is_like(left[0], make):
                self.draws_made.append(left[0])
                return wrap(self.values[left.pop(0).slot].array)
            self.give_up("a checkpoint", "draws other random numbers when it computes again")
            go_back()
            for draw in draws[: len(draws) - len(left)]:
                draw.make()
            return make()

        self._again.append(draw)
        try:
            yield
        finally:
            self._again.remove(draw)

    def _is_like(self, one: Drawn, make: Any) -> bool:
        """True if the array of a draw still has the numbers of such a draw as ``make``."""
        same = isinstance(make, Draw) and isinstance(one.make, Draw) and one.make.is_like(make)
        return same and self.values[one.slot].array.version == one.version

    def draws(self, generator: Any) -> None:
        """Numbers come from a generator; None stands for the shared one of the thread."""
        if self._drawing:
            self.generators.append(generator)
        else:
            self.give_up("random numbers", "are drawn in Python")

    def repeat(self, run: Callable[[], Any]) -> Any:
        """Something that changes Python's state alone, and is done again for each run."""
        if self._paused:
            return run()
        self.events.append(run)
        with self.paused():
            return run()

    def live(self, numbers: list[float], turn: Any) -> list[Any]:
        """Tensors of numbers that are others for each run."""
        if self._paused or self.failed:
            return numbers
        with self.paused():
            made = [wrap(call(kernels.python_float, x)) for x in numbers]
        line = caller()
        for k, (number, x) in enumerate(zip(numbers, made, strict=True)):
            step = Step(kernels.python_float, [], None, [], [number], [self._made(x._h)])
            step.line, step.move = line, Live(turn, k)
            self.steps.append(step)
        self.events.append(Live(turn))
        return made

    def step(self, move: Any) -> None:
        """The last call is a step of an optimizer."""
        if self._paused:
            return
        for step in self.events if move.note is not None else ():
            before = step.move if isinstance(step, Step) else None
            if before is not None and before.note is not None and _share(before, move):
                self.give_up("an optimizer", "steps a parameter twice, and counts its steps")
        self.steps[-1].move = move
        self.events.append(self.steps[-1])


def _share(one: Any, other: Any) -> bool:
    """True if two steps of optimizers move a tensor both."""
    return not {id(p) for p in one.params}.isdisjoint([id(p) for p in other.params])


def _asked_by_library() -> bool:
    """True if code of this package asks whether a tensor is true."""
    frame: Any = sys._getframe(1)
    while frame is not None and frame.f_code.co_name != "__bool__":
        if not frame.f_globals.get("__name__", "").startswith("minigrad."):
            return False
        frame = frame.f_back
    asks = frame and frame.f_back.f_globals.get("__name__", "")
    return bool(asks) and asks.startswith("minigrad.")


# Methods and functions by which a program asks for values.
_ASKING = frozenset(
    """__array__ __bool__ __complex__ __contains__ __dlpack__ __float__ __format__ __index__ __int__
    __iter__ __reduce__ __reduce_ex__ __repr__ __str__ item numpy tolist to_numpy""".split()  # noqa: SIM905
)


def _library_reader() -> str | None:
    """Name of the function of this package that reads a value for its own use.

    None if the program itself asked for the value.
    """
    frame: Any = sys._getframe(1)
    name = None
    while frame is not None and frame.f_globals.get("__name__", "").startswith("minigrad."):
        name, frame = frame.f_code.co_name, frame.f_back
    return None if name in _ASKING else name


def place_of(array: Array) -> Any:
    """Where an array lies, and how it is read there."""
    return array.buffer, array.data, array.dtype, array.weak, array.shape, array.strides
