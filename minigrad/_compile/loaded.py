"""Loaded programs: programs of files, which run without the function that was recorded."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from minigrad._compile.arguments import HOLE, filled, flatten
from minigrad._compile.file_format import FormatError, number, parse
from minigrad._compile.program import Differs, Misfit, Program
from minigrad._compile.recorder import NONE, Step
from minigrad._compile.saving import OPTIMIZERS
from minigrad._tensor.inplace import replace
from minigrad.functions.creation import require_grad
from minigrad.functions.grad_modes import no_grad
from minigrad.nn.module import Parameter
from minigrad.random import DRAWS, Draw
from minigrad.runtime.dtypes import by_name
from minigrad.runtime.native import call, kernels, lib, names, signatures
from minigrad.tape.node import LEAF
from minigrad.tape.tensor_base import TensorBase, result_type, wrap

__all__ = ["LoadedProgram", "load_program"]

_MOST = 2**31 - 1
_ALLOWED = {
    name: k
    for k, name in enumerate(names)
    if "p" not in signatures[k].split(":")[0]
    and name not in ("set_num_threads", "saved_array")
    and not name.endswith("_vjp_over")
}
_BASIC = {"bool": bool, "int": int, "str": str, "float": str, "NoneType": type(None)}
# Errors to which damaged JSON leads, where no check foresaw it.
_DAMAGE = (LookupError, TypeError, AttributeError, OverflowError, ValueError, RecursionError)


def load_program(path: Any) -> LoadedProgram:
    """The program of a file that ``save`` of a compiled function wrote.

    It is called like the function: with tensors of the same shapes, dtypes and strides, and with
    the same values of everything else. The tensors that the function captured, such as parameters,
    are the program's own: see ``state_dict()`` and ``optimizers``. No code of the file is run.
    ``docs/program-files.md`` specifies the format.

    Raises FileNotFoundError for a missing file, and ValueError for a damaged one.

    >>> import os, tempfile
    >>> import minigrad as mg
    >>> w = mg.tensor([2.0, 3.0])
    >>> scaled = mg.compile(lambda x: x * w)
    >>> scaled(mg.ones(2))
    tensor([2., 3.])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "scaled.safetensors")
    ...     scaled.save(path)
    ...     program = mg.load_program(path)
    >>> program(mg.tensor([10.0, 10.0]))
    tensor([20., 30.])
    """
    file = Path(path)
    try:
        return LoadedProgram(*parse(file))
    except FormatError as error:
        raise ValueError(f"[load_program] {path}: {error}") from None
    except (MemoryError, OSError):
        raise
    except _DAMAGE as error:
        raise ValueError(f"[load_program] {path} is damaged: {error}") from None


class _Look(NamedTuple):
    """The look that an array must have, as :class:`Program` reads it."""

    dtype: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    buffer: Any

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)


def _whole(x: Any, low: int = 0, high: int = _MOST) -> int:
    if type(x) is not int or not low <= x <= high:
        raise FormatError(f"{x!r} is no integer from {low} to {high}")
    return x


def _wholes(items: Any, low: int = 0, high: int = _MOST) -> list[int]:
    if type(items) is not list:
        raise FormatError(f"{items!r} is no list of integers")
    return [_whole(x, low, high) for x in items]


class LoadedProgram:
    """A program of a file, which is called like the function that was recorded.

    :func:`minigrad.load_program` makes these. ``optimizers`` has the optimizers whose steps the
    program makes. Their options and states are live: a new ``lr`` counts from the next call on.
    """

    def __init__(self, arrays: dict[str, Any], program: Any) -> None:
        self._lock = threading.RLock()
        self._holes = 0
        self._form = self._read_form(program["arguments"])
        self._arguments = [_argument(x) for x in program["tensors"]]
        if self._holes != len(self._arguments):
            raise FormatError("its arguments have more or fewer tensors than it describes")
        self._grads_at_start: list[str] = []
        self._state: list[Any] = []
        self._names: list[str] = []
        for entry in program["state"]:
            self._read_state(entry, arrays)
        self.optimizers = [self._read_optimizer(x) for x in program["optimizers"]]
        self._draws = [_draw_of(x) for x in program["draws"]]
        self._given = [self._source(x) for x in program["given"]]
        self._constants: dict[int, Any] = {}
        looks = [self._look(k, x, arrays) for k, x in enumerate(program["given"])]
        slots = _whole(program["slots"])
        steps = [self._step(x) for x in program["steps"]]
        results = _wholes(program["results"], 0, slots - 1)
        self._program = Program(slots, looks, steps, results, bool(program["writes"]))
        self._moves = [step for step in self._program.steps if step.move is not None]
        self._count = len(results)
        self._left = [(self._target(x), self._place(p)) for x, p in program["grads"]]
        self._moved = [
            (self._target(x), _whole(p, 0, self._count - 1)) for x, p in program["moved"]
        ]
        self._undo = _wholes(program["undo"], 0, len(looks) - 1)
        self._outputs: list[tuple[str, int]] = []
        self._template = self._read_output(program["outputs"])

    # ---- reading ----

    def _read_form(self, x: Any) -> Any:
        """The form of arguments, as :func:`flatten` makes it."""
        if x == "tensor":
            self._holes += 1
            return result_type()
        ((kind, value),) = x.items()
        if kind == "call":
            first, second = value
            return self._read_form(first), self._read_form(second)
        if kind in ("list", "tuple"):
            return (list if kind == "list" else tuple), *[self._read_form(item) for item in value]
        if kind == "dict":
            return dict, *[(_scalar(key), self._read_form(item)) for key, item in value]
        return _basic(kind), _typed(kind, value)

    def _read_output(self, x: Any) -> Any:
        ((kind, value),) = x.items()
        if kind in ("made", "argument", "state"):
            most = {"made": self._count, "argument": self._holes, "state": len(self._state)}[kind]
            self._outputs.append((kind, _whole(value, 0, most - 1)))
            return HOLE
        if kind in ("list", "tuple"):
            items = [self._read_output(item) for item in value]
            return items if kind == "list" else tuple(items)
        if kind == "dict":
            return {_scalar(key): self._read_output(item) for key, item in value}
        made = _typed(kind, value)
        return float(made) if kind == "float" else made

    def _read_state(self, entry: Any, arrays: dict[str, Any]) -> None:
        name = entry["name"]
        x = _ordered(arrays[name](), entry["order"])
        grad = entry["grad"]
        if type(name) is not str or type(grad) is not str or name in self._names:
            raise FormatError(f"a tensor has the name {name!r}, or a grad that is no text")
        made: Any = Parameter(x, bool(entry["requires_grad"])) if entry["parameter"] else x
        if entry["requires_grad"] and not entry["parameter"]:
            require_grad(made)
        if grad not in ("any", "none", "some"):
            made._grad = _ordered(arrays[grad](), entry["order_of_grad"])
            grad = "read"
        self._grads_at_start.append(grad)
        self._state.append(made)
        self._names.append(name)

    def _tensor(self, k: Any) -> Any:
        return self._state[_whole(k, 0, len(self._state) - 1)]

    def _read_optimizer(self, entry: Any) -> Any:
        groups = [
            {
                **{key: _option(x) for key, x in g["options"].items()},
                "params": [self._tensor(k) for k in g["params"]],
            }
            for g in entry["groups"]
        ]
        used = [g for g in groups if g["params"]]
        if len(used) != len(groups):
            raise FormatError("a group of an optimizer has no parameters")
        made = OPTIMIZERS[entry["class"]](groups)
        for k, tensors, others in entry["state"]:
            state = {key: _option(x) for key, x in others.items()}
            made.state[self._tensor(k)] = state | {n: self._tensor(t) for n, t in tensors.items()}
        return made

    def _source(self, x: Any) -> tuple[str, int]:
        kind: Any = next(iter(x), None)
        most = {"argument": self._holes, "argument_grad": self._holes}.get(kind, len(self._state))
        if kind not in ("argument", "argument_grad", "state", "grad", "constant", "draw"):
            raise FormatError(f"an array comes from {kind!r}")
        if kind == "constant":
            return kind, 0
        if kind == "draw":
            return kind, _whole(x[kind], 0, len(self._draws) - 1)
        return kind, _whole(x[kind], 0, most - 1)

    def _look(self, k: int, x: Any, arrays: dict[str, Any]) -> Any:
        """The look that the k-th array given to a run must have."""
        kind, place = self._given[k]
        if kind == "state":
            return self._state[place]._h
        if kind == "grad":
            if self._state[place]._grad is None:
                raise FormatError(f"{self._names[place]} has no grad")
            return self._state[place]._grad._h
        if kind == "constant":
            array = _ordered(arrays[x["constant"]](), x["order"])._h
            if x["weak"]:
                array.mark_weak()
            self._constants[k] = array
            return array
        if kind == "draw":
            draw = self._draws[place]
            shape = draw.shape
            return _Look(draw.dtype.code, shape, _row_major(shape), ("draw", k))
        if kind == "argument_grad":
            raise FormatError("the grad of an argument is read")
        entry = self._arguments[place]
        shape = tuple(_wholes(entry["shape"], 0, 2**62))
        strides = tuple(_wholes(entry["strides"], -(2**62), 2**62))
        if len(shape) != len(strides) or len(shape) > lib.MG_MAX_NDIM:
            raise FormatError("an argument has more strides than dimensions, or fewer")
        alias = _whole(entry["alias"], 0, self._holes - 1)
        return _Look(by_name[entry["dtype"]].code, shape, strides, ("argument", alias))

    def _step(self, x: Any) -> Step:
        if x["kernel"] not in _ALLOWED:
            raise FormatError(f"there is no kernel {x['kernel']!r}")
        kernel = _ALLOWED[x["kernel"]]
        most = 2**63 - 1
        saved = x.get("saved")
        step = Step(
            kernel,
            _wholes(x["in"], NONE),
            None if saved is None else _wholes(saved, NONE),
            _wholes(x.get("ints", []), -most - 1, most),
            [number(value) for value in x.get("floats", [])],
            _wholes(x.get("out", []), NONE),
            _whole(x.get("expected", -1), -1, 1),
        )
        if step.saved is not None and len(step.saved) != 3:
            raise FormatError("a step saves three arrays")
        if "move" in x:
            step.move = self._move(step, *x["move"])
        return step

    def _move(self, step: Step, place: Any, group: Any, params: Any) -> Any:
        """An optimizer's step of these parameters."""
        optimizer = self.optimizers[_whole(place, 0, len(self.optimizers) - 1)]
        tensors = [self._tensor(k) for k in _wholes(params)]
        group = optimizer.param_groups[_whole(group, 0, len(optimizer.param_groups) - 1)]
        held = [(p, p._grad) for p in group["params"]]
        try:
            for p, _ in held:
                p._grad = p if any(p is x for x in tensors) else None
            moves = optimizer._moves(group)
        finally:
            for p, grad in held:
                p._grad = grad
        takes = signatures[step.number].split(":")[0]
        fits = len(moves) == 1 and moves[0].kernel == step.number
        fits = fits and len(moves[0].params) == len(tensors) == step.ints[0]
        fits = fits and len(moves[0].options) == takes.count("d") + takes.count("i")
        if not fits or moves[0].renew() is None or len(step.floats) != takes.count("d"):
            raise FormatError("a step of an optimizer does not fit its parameters")
        return moves[0]

    def _target(self, x: Any) -> tuple[str, int]:
        ((kind, value),) = x.items()
        most = {"argument": self._holes, "state": len(self._state)}[kind]
        return kind, _whole(value, 0, most - 1)

    def _place(self, x: Any) -> int | None:
        return None if x is None else _whole(x, 0, self._count - 1)

    # ---- use ----

    def state_dict(self) -> dict[str, Any]:
        """The tensors that the function captured, by name. They are the program's own."""
        return dict(zip(self._names, self._state, strict=True))

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Copy tensors of these names into the program's. Raises KeyError for other names."""
        own = self.state_dict()
        for name, x in state.items():
            if name not in own:
                raise KeyError(f"[load_state_dict] the program has no tensor {name!r}")
            with no_grad():
                own[name].copy_(x)

    def __repr__(self) -> str:
        return f"<program of {len(self._program.steps)} steps>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The result of the program for these arguments."""
        tensors: list[Any] = []
        form = flatten(args, tensors, [])
        if kwargs:
            form = form, flatten(kwargs, tensors, [])
        if form != self._form:
            raise ValueError(
                "[program] the arguments are not like the recorded ones: "
                f"it takes {_shown(self._form)}, not {_shown(form)}"
            )
        with self._lock:
            self._check(tensors)
            return self._run(tensors)

    def _check(self, tensors: list[Any]) -> None:
        for k, (x, entry) in enumerate(zip(tensors, self._arguments, strict=True)):
            if (x._edge is LEAF) != entry["requires_grad"] or x._edge not in (None, LEAF):
                needs = "a leaf that requires" if entry["requires_grad"] else "one without"
                raise ValueError(f"[program] tensor {k} of the arguments must be {needs} grad")
            _check_grad(x, entry["grad"], f"tensor {k} of the arguments")
            if "shape" not in entry:
                continue
            now = x._h.shape, x._h.strides, x.dtype.name
            if (list(now[0]), now[2]) != (entry["shape"], entry["dtype"]):
                raise ValueError(
                    f"[program] tensor {k} of the arguments has shape {now[0]} and dtype {now[2]}, "
                    f"and was recorded with {tuple(entry['shape'])} and {entry['dtype']}"
                )
        for x, grad, name in zip(self._state, self._grads_at_start, self._names, strict=True):
            _check_grad(x, grad, name)

    def _run(self, tensors: list[Any]) -> Any:
        drawn = [draw() for draw in self._draws]
        given = []
        for k, (kind, place) in enumerate(self._given):
            if kind == "argument":
                given.append(tensors[place]._h)
            elif kind == "state":
                given.append(self._state[place]._h)
            elif kind == "grad":
                given.append(self._state[place]._grad._h)
            else:
                given.append(self._constants[k] if kind == "constant" else drawn[place]._h)
        ints: list[int] = []
        floats: list[float] = []
        notes = []
        for step in self._moves:
            move = step.move.renew()
            if move is None:
                raise ValueError("[program] an option of an optimizer asks for other kernels")
            reals = len(step.floats)
            floats += [float(x) for x in move.options[:reals]]
            ints += [int(x) for x in move.options[reals:]]
            notes.append(move.note)
        undo = [(given[k], call(kernels.copy, given[k])) for k in self._undo]
        try:
            made = self._program.run(given, ints, floats)
        except Misfit:
            raise ValueError(
                "[program] an array has other strides, or shares other memory, than in the "
                "recorded call: clone() it first"
            ) from None
        except Differs:
            for array, copy in undo:
                call(kernels.write, array, copy)
            raise RuntimeError(
                "[program] a question about values has another answer than in the recorded call, "
                "whose function computes something else then"
            ) from None
        for note in notes:
            if note is not None:
                note()
        return self._left_behind(made, tensors)

    def _left_behind(self, made: list[Any], tensors: list[Any]) -> Any:
        of: dict[str, Any] = {"argument": tensors, "state": self._state}
        for (kind, k), place in self._left:
            of[kind][k]._grad = None if place is None else wrap(made[place])
        slot: Any
        for (kind, k), slot in self._moved:
            replace(of[kind][k], made[slot])
        found = [wrap(made[k]) if kind == "made" else of[kind][k] for kind, k in self._outputs]
        return filled(self._template, found, set())


def _argument(x: Any) -> dict[str, Any]:
    """The look that a tensor among the arguments must have."""
    if type(x) is not dict or type(x["requires_grad"]) is not bool or type(x["grad"]) is not str:
        raise FormatError(f"{x!r} describes no argument")
    return x


def _check_grad(x: Any, grad: str, name: str) -> None:
    if (grad == "none" and x._grad is not None) or (grad == "read" and x._grad is None):
        now = "has a grad now and had none" if grad == "none" else "has no grad now and had one"
        raise ValueError(f"[program] {name} {now} when the call was recorded: set its grad so")


def _shown(form: Any) -> str:
    return str(form).replace("<class '", "").replace("'>", "")


def _scalar(x: Any) -> Any:
    if type(x) not in (str, int, bool, type(None)):
        raise FormatError(f"{x!r} is no key")
    return x


def _basic(kind: str) -> type:
    return {"bool": bool, "int": int, "str": str, "float": float, "NoneType": type(None)}[kind]


def _typed(kind: str, value: Any) -> Any:
    """A number or text. Floats are texts."""
    if type(value) is not _BASIC[kind]:
        raise FormatError(f"{value!r} is no {kind}")
    return value


def _option(x: Any) -> Any:
    if type(x) is list:
        return tuple([_option(item) for item in x])
    return x if type(x) in (bool, int, type(None)) else number(x)


def _ordered(x: TensorBase, order: Any) -> Any:
    """A tensor whose axes lie in this order in memory."""
    axes = _wholes(order, 0, x._h.ndim - 1)
    if sorted(axes) != list(range(x._h.ndim)):
        raise FormatError(f"{order} is no order of axes")
    if axes == sorted(axes):
        return x
    return wrap(call(kernels.view_permute, x._h, [axes.index(d) for d in range(len(axes))]))


def _row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    if step >= 2**62:
        raise FormatError(f"no array has the shape {shape}")
    return tuple(reversed(strides))


def _draw_of(x: Any) -> Draw:
    kind, shape, dtype, numbers = x
    if kind not in DRAWS or len(numbers) != DRAWS[kind][0]:
        raise FormatError(f"random numbers are {kind!r} of {numbers!r}")
    whole = tuple(_wholes(shape, 0, 2**62))
    _row_major(whole)
    given = tuple([x if type(x) is int else number(x) for x in numbers])
    return Draw(kind, whole, by_name[dtype], given)
