"""Saving of recorded calls: what a file of a program says, made from a recording."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from minigrad._compile.arguments import HOLE
from minigrad._compile.file_format import plain, write_to
from minigrad._compile.recorder import Step
from minigrad.io.files import write_whole
from minigrad.nn.module import Parameter
from minigrad.optim.optimizers import SGD, Adam, AdamW, Optimizer, RMSprop
from minigrad.random import Draw
from minigrad.runtime.dtypes import by_code
from minigrad.runtime.native import call, kernels, names
from minigrad.tape.node import LEAF
from minigrad.tape.tensor_base import TensorBase, wrap

__all__ = ["OPTIMIZERS", "Description", "save_program"]

OPTIMIZERS = {kind.__name__: kind for kind in (SGD, Adam, AdamW, RMSprop)}
_SCALARS = (bool, int, float, str, type(None))


def save_program(recorded: Any, path: Path) -> None:
    """Write a recorded call to a file. Raises ValueError for what a file cannot hold."""
    made = Description(recorded)
    write_whole(path, lambda file: write_to(file, made.arrays, made.program))


def refuse(what: str) -> ValueError:
    """The error for something that no file of a program holds."""
    return ValueError(f"[program] {what}")


class Description:
    """A recorded call as JSON, and its arrays as tensors by name."""

    def __init__(self, recorded: Any) -> None:
        self.recorded = recorded
        self.arrays: dict[str, Any] = {}
        self.state: list[dict[str, Any]] = []
        self._numbers: dict[int, int] = {}  # id of a captured tensor -> its number
        self._tensors: list[Any] = []
        self._optimizers: list[Optimizer] = []
        self._draws = [_draw(act) for act in recorded.acts]
        self._stems = self._names_of_state()
        steps = [self._step(step) for step in recorded.program.steps]
        given = self._given()
        self.program = {
            "arguments": self._form(recorded.kind[0]),
            "tensors": self._arguments(),
            "given": given,
            "writes": recorded.program.writes,
            "slots": recorded.program.slots,
            "steps": steps,
            "results": recorded.program.results,
            "outputs": self._outputs(),
            "grads": [
                [self._target(x), None if k is None else recorded.left[k][1]]
                for x, k in recorded._grads
            ],
            "moved": [[self._target(x), place] for x, place in recorded._moved],
            "undo": recorded._undo,
            "draws": self._draws,
            "optimizers": [self._optimizer(x) for x in self._optimizers],
            "state": self.state,
        }
        self._check_memory()
        if recorded.links:
            raise refuse("it returns a view of a tensor that can be seen outside")

    # ---- tensors that the function captured ----

    def _names_of_state(self) -> dict[int, str]:
        """Names of the tensors in the states of optimizers, after their parameters."""
        found = {}
        for optimizer in self.recorded.surroundings.optimizers:
            for p, state in optimizer.state.items():
                stem = self.recorded.surroundings.names.get(id(p), "parameter")
                for key, x in state.items():
                    if isinstance(x, TensorBase):
                        found[id(x)] = f"{stem}.{key}"
        return found

    def _number(self, x: Any) -> int:
        """The number of a captured tensor among the program's state."""
        if id(x) in self._numbers:
            return self._numbers[id(x)]
        number = self._numbers[id(x)] = len(self._tensors)
        self._tensors.append(x)
        known = self.recorded.surroundings.names
        name = self._new(self._stems.get(id(x)) or known.get(id(x)) or "tensor")
        entry: dict[str, Any] = {"name": name, "order": self._keep(name, x)}
        entry["parameter"] = isinstance(x, Parameter)
        entry["requires_grad"] = x._edge is LEAF
        entry["grad"] = "any"
        for leaf, without in self.recorded.leaves():
            if leaf is x and without is not None:
                entry["grad"] = "none" if without else "some"
        self.state.append(entry)
        return number

    def _new(self, name: str) -> str:
        """A name that no array has yet."""
        found, count = name, 1
        while found in self.arrays or found == "__metadata__":
            count += 1
            found = f"{name}#{count}"
        return found

    def _keep(self, name: str, x: Any) -> list[int]:
        """Keep an array in the order of its memory; the order of its axes there."""
        order = sorted(range(x._h.ndim), key=lambda d: -x._h.strides[d])
        dense = wrap(call(kernels.view_permute, x._h, order))
        if not dense._h.contiguous:
            order, dense = list(range(x._h.ndim)), wrap(x._h)
        self.arrays[name] = dense
        return order

    def _target(self, x: Any) -> dict[str, int]:
        return {"argument": x} if type(x) is int else {"state": self._number(x)}

    # ---- arrays and steps ----

    def _given(self) -> list[dict[str, Any]]:
        """For each array that a run is given, where it comes from."""
        recorded = self.recorded
        found: list[dict[str, Any]] = [{"argument": k} for k in recorded._arguments]
        found += [{"state": self._number(x)} for x in recorded._captured]
        for x in recorded._with_grad:
            if type(x) is int:
                found.append({"argument_grad": x})
                continue
            entry = self.state[self._number(x)]
            if x._grad is None:
                raise refuse(f"the program adds to the grad of {entry['name']}, which has none now")
            name = self._new(f"{entry['name']}.grad")
            entry["grad"], entry["order_of_grad"] = name, self._keep(name, x._grad)
            found.append({"grad": self._number(x)})
        for number, array in enumerate(recorded._constants):
            name = self._new(f"constant.{number}")
            order = self._keep(name, wrap(array))
            found.append({"constant": name, "order": order, "weak": bool(array.weak)})
        found += [{"draw": k} for k in range(len(recorded._drawn))]
        return found

    def _step(self, step: Step) -> dict[str, Any]:
        made: dict[str, Any] = {"kernel": names[step.number], "in": step.inputs}
        if step.saved is not None:
            made["saved"] = step.saved
        if step.ints:
            made["ints"] = step.ints
        if step.floats:
            made["floats"] = [plain(x) for x in step.floats]
        if step.outputs:
            made["out"] = step.outputs
        if step.expected >= 0:
            made["expected"] = step.expected
        if step.move is not None:
            made["move"] = self._move(step.move)
        return made

    def _check_memory(self) -> None:
        """Refuse arrays that share memory, if the program writes: each gets its own in a file."""
        looks, given = self.recorded.program.looks, self.program["given"]
        if not self.recorded.program.writes:
            return
        for (*_, alias), source in zip(looks, given, strict=True):
            first = given[alias]
            if first != source and not ("argument" in first and "argument" in source):
                raise refuse(
                    f"{self._called(source)} shares memory with {self._called(first)}, and the "
                    "program writes into memory: give each its own"
                )

    def _called(self, source: dict[str, Any]) -> str:
        for key in ("state", "grad"):
            if key in source:
                return str(self.state[source[key]]["name"])
        return f"argument {source['argument']}" if "argument" in source else "a constant"

    # ---- forms ----

    def _arguments(self) -> list[dict[str, Any]]:
        """For each tensor among the arguments, what it must look like; null if nobody reads it."""
        recorded = self.recorded
        edges = [number % 3 for number in recorded.kind[3]]  # 1: a leaf, 2: a history
        if 2 in edges:
            raise refuse("an argument has a history: detach() it before the recorded call")
        made: list[dict[str, Any]] = [{"requires_grad": edge == 1, "grad": "any"} for edge in edges]
        for place, (dtype, shape, strides, alias) in zip(
            recorded._arguments, recorded.program.looks, strict=False
        ):
            made[place] |= {
                "dtype": by_code[dtype].name,
                "shape": shape,
                "strides": strides,
                "alias": recorded._arguments[alias],
            }
        for leaf, without in recorded.leaves():
            if type(leaf) is int and without is not None:
                made[leaf]["grad"] = "none" if without else "some"
        return made

    def _form(self, form: Any) -> Any:
        """The form of arguments as JSON."""
        if isinstance(form, type):
            return "tensor"
        first = form[0]
        if isinstance(first, tuple):  # positional arguments, and arguments by name
            return {"call": [self._form(x) for x in form]}
        if first is list or first is tuple:
            return {first.__name__: [self._form(x) for x in form[1:]]}
        if first is dict:
            return {"dict": [[_key(key), self._form(x)] for key, x in form[1:]]}
        if first in (bool, int, str, float, type(None)):
            return {first.__name__: form[1]}
        raise refuse(
            f"an argument is of the class {first.__name__}: a file holds calls with tensors, "
            "numbers, texts, lists, tuples and dicts"
        )

    def _origin(self, output: Any) -> tuple[str, Any]:
        """Where a result comes from. The history of one that was differentiable is left out."""
        source, value = output[:2]
        return ("made", self.recorded._living[value]) if source == "living" else (source, value)

    def _outputs(self) -> Any:
        """The result of the function as JSON, with the place of each tensor."""
        holes = iter([self.recorded.left[k] for k in self.recorded._outputs])

        def fill(x: Any) -> Any:
            if x is HOLE:
                source, value = self._origin(next(holes))
                if source == "captured":
                    return {"state": self._number(value)}
                return {source: value}
            kind = type(x)
            if kind in (list, tuple):
                return {kind.__name__: [fill(item) for item in x]}
            if kind is dict:
                return {"dict": [[_key(key), fill(item)] for key, item in x.items()]}
            if kind in _SCALARS:
                return {kind.__name__: repr(x) if kind is float else x}
            raise refuse(
                f"the result has a {kind.__name__}: a file holds tensors, numbers, texts, lists, "
                "tuples and dicts"
            )

        return fill(self.recorded._template)

    # ---- optimizers ----

    def _move(self, move: Any) -> list[Any]:
        """The optimizer, the group and the parameters of an optimizer's step."""
        renew: Any = move.renew
        optimizer: Any = getattr(getattr(renew, "func", None), "__self__", None)
        if type(optimizer) not in OPTIMIZERS.values():
            raise refuse(f"a file holds steps of {', '.join(OPTIMIZERS)} alone")
        if not any(x is optimizer for x in self._optimizers):
            self._optimizers.append(optimizer)
        place = next(k for k, x in enumerate(self._optimizers) if x is optimizer)
        groups = optimizer.param_groups
        group = next(k for k, x in enumerate(groups) if x is renew.args[0])
        return [place, group, [self._number(p) for p in move.params]]

    def _optimizer(self, optimizer: Optimizer) -> dict[str, Any]:
        groups = []
        for group in optimizer.param_groups:
            options = {key: _option(key, x) for key, x in group.items() if key not in _LISTS}
            params = [self._numbers[id(p)] for p in group["params"] if id(p) in self._numbers]
            groups.append({"options": options, "params": params})
        states = []
        for p, state in optimizer.state.items():
            if id(p) not in self._numbers:
                continue
            tensors = {k: self._number(x) for k, x in state.items() if isinstance(x, TensorBase)}
            others = {k: _option(k, x) for k, x in state.items() if k not in tensors}
            states.append([self._numbers[id(p)], tensors, others])
        return {"class": type(optimizer).__name__, "groups": groups, "state": states}


_LISTS = ("params", "param_names")


def _key(key: Any) -> Any:
    if type(key) not in (str, int, bool, type(None)):
        raise refuse(f"a dict has the key {key!r}: keys are texts and integers")
    return key


def _option(key: str, x: Any) -> Any:
    """An option of an optimizer as JSON."""
    if isinstance(x, (list, tuple)):
        return [_option(key, item) for item in x]
    if type(x) not in (bool, int, float, type(None)):
        raise refuse(f"the option {key} is a {type(x).__name__}: give a number")
    return plain(x)


def _draw(act: Any) -> list[Any]:
    """How random numbers are drawn."""
    if not isinstance(act, Draw):
        what = getattr(getattr(act, "func", act), "__qualname__", "")
        if "step" in what:
            raise refuse(
                "a schedule's step is Python: call it outside, and set the rate of the loaded "
                "program's optimizer"
            )
        raise refuse("a file has no recipe for some random numbers of the function")
    if act.generator is not None:
        raise refuse("random numbers come from a generator of their own: use the shared one")
    return [act.kind, list(act.shape), act.dtype.name, [plain(x) for x in act.numbers]]
