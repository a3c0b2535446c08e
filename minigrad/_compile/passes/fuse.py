"""The pass that makes chains: several elementwise steps of one shape become one step.

A chain runs at the place of its last member. Between its members no other step may read what a
member made, or write what a member reads.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from minigrad._compile.plan import Plan, reads, writes
from minigrad._compile.recorder import NONE, Step
from minigrad.runtime.native import kernels, lib

__all__ = ["fuse_elementwise"]

_ELEMENTWISE = lib.mg_elementwise_count()
_FLOATS = (lib.MG_FLOAT32, lib.MG_FLOAT64)
# The limits of csrc/kernels/elementwise/chain.inc.c.
_OPERANDS, _REGISTERS, _STEPS, _RESULTS = 16, 32, 256, 4
# Powers that have kernels of their own, and operations that powers become.
_OWN_POWERS = (3.0, 0.5, -0.5)
_SHORTCUTS = {2.0: kernels.square, -1.0: kernels.reciprocal}


class Instruction(NamedTuple):
    """An instruction of a chain, on slots."""

    kind: int
    op: int
    place: int  # the input by which a derivative is taken
    inputs: tuple[int, ...]
    output: int


@dataclass
class _Chain:
    """A chain that may still grow."""

    dtype: int
    shape: tuple[int, ...]
    members: list[tuple[Step, list[Instruction]]] = field(default_factory=list)
    made: set[int] = field(default_factory=set)
    reads: set[int] = field(default_factory=set)


def fuse_elementwise(plan: Plan) -> Plan:
    """Chains in place of runs of elementwise steps."""
    return _Fusion(plan).run()


class _Fusion:
    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.uses = plan.uses()
        self.kept = set(plan.results)
        self.open: list[_Chain] = []
        self.steps: list[Step] = []
        self.place: dict[int, int] = {id(step): k for k, step in enumerate(plan.steps)}

    def run(self) -> Plan:
        """The plan with chains."""
        for step in self.plan.steps:
            found = instructions(self.plan, step)
            if found is None:
                self._close_for(step)
                self.steps.append(step)
            else:
                self._join(step, found)
        while self.open:
            self._close(self.open[0])
        return self.plan.with_steps(self.steps)

    def _close_for(self, step: Step) -> None:
        """Close the chains that a step needs, or whose operands it writes."""
        needed = set(reads(step))
        roots = {self.plan.layouts[slot].root for slot in writes(step)}
        for chain in tuple(self.open):
            touched = roots and any(self.plan.layouts[s].root in roots for s in chain.reads)
            if touched or not chain.made.isdisjoint(needed):
                self._close(chain)

    def _join(self, step: Step, found: list[Instruction]) -> None:
        """Add a step to the open chain of its shape and dtype, or begin a chain."""
        dtype, shape = _kind(self.plan, found)
        needed = set(reads(step))
        own = next((c for c in self.open if (c.dtype, c.shape) == (dtype, shape)), None)
        for chain in tuple(self.open):
            if chain is not own and not chain.made.isdisjoint(needed):
                self._close(chain)
        if own is None:
            own = _Chain(dtype, shape)
            self.open.append(own)
        own.members.append((step, found))
        own.made.update(slot for slot in step.outputs if slot != NONE)
        own.reads |= needed

    def _close(self, chain: _Chain) -> None:
        self.open.remove(chain)
        # A chain that reads what another one makes runs after it.
        for other in tuple(self.open):
            if not other.made.isdisjoint(chain.reads):
                self._close(other)
        self._emit(chain, chain.members)

    def _emit(self, chain: _Chain, members: list[tuple[Step, list[Instruction]]]) -> None:
        """The step of a chain; several if it is beyond the limits."""
        if len(members) == 1:
            self.steps.append(members[0][0])
            return
        step = self._step(chain, members)
        if step is not None:
            self.steps.append(step)
            return
        half = len(members) // 2
        self._emit(chain, members[:half])
        self._emit(chain, members[half:])

    def _step(self, chain: _Chain, members: list[tuple[Step, list[Instruction]]]) -> Step | None:
        code = [one for _, found in members for one in found]
        made = {one.output for one in code}
        operands = list(dict.fromkeys(s for one in code for s in one.inputs if s not in made))
        inside = {self.place[id(step)] for step, _ in members}
        results = [
            one.output
            for one in code
            if one.output in self.kept or not inside.issuperset(self.uses.get(one.output, ()))
        ]
        if len(operands) > _OPERANDS or len(code) > _STEPS or not 1 <= len(results) <= _RESULTS:
            return None
        registers, words = _registers(operands, code, results)
        if registers > _REGISTERS:
            return None
        layouts = self.plan.layouts
        if not any(layouts[s].shape == chain.shape for s in operands):
            return None  # the operands alone would give another shape
        head = [registers, len(results)]
        ints = [chain.dtype, len(operands), len(head) + len(words), *head, *words]
        first = members[0][0]
        return Step(kernels.chain, operands, None, ints, [], results, line=first.line)


def _kind(plan: Plan, found: list[Instruction]) -> tuple[int, tuple[int, ...]]:
    """The float dtype and the shape of instructions."""
    layouts = [plan.layouts[found[0].output]]
    layouts += [plan.layouts[s] for one in found for s in one.inputs if not plan.layouts[s].weak]
    dtype = next(x.dtype for x in layouts if x.dtype in _FLOATS)
    return dtype, layouts[0].shape


def _registers(
    operands: list[int], code: list[Instruction], results: list[int]
) -> tuple[int, list[int]]:
    """The number of registers, the registers of the results, and the instructions on registers."""
    last: dict[int, int] = {}
    for k, one in enumerate(code):
        for slot in one.inputs:
            last[slot] = k
    register = {slot: k for k, slot in enumerate(operands)}
    count, free = len(operands), list[int]()
    words: list[int] = []
    for k, one in enumerate(code):
        inputs = [register[slot] for slot in one.inputs]
        if one.output in results or not free:
            register[one.output], count = count, count + 1
        else:
            register[one.output] = free.pop()
        words += [one.kind, one.op, one.place, len(inputs), *inputs, register[one.output]]
        for slot in {*one.inputs, one.output}:
            ends = last.get(slot, k) == k and slot not in results and slot not in operands
            if ends:
                free.append(register[slot])
    return count, [*[register[slot] for slot in results], *words]


# ---- which steps are elementwise -----------------------------------------------------------------


def instructions(plan: Plan, step: Step) -> list[Instruction] | None:
    """The instructions of an elementwise step on floats; None for any other step."""
    number = step.number
    if number < _ELEMENTWISE:
        found = _forward(plan, step)
    elif number < 2 * _ELEMENTWISE:
        found = _derivatives(plan, step)
    elif number == kernels.where:
        found = [Instruction(lib.MG_CHAIN_WHERE, 0, 0, tuple(step.inputs), step.outputs[0])]
    elif number == kernels.clamp:
        found = [Instruction(lib.MG_CHAIN_CLAMP, 0, 0, tuple(step.inputs), step.outputs[0])]
    else:
        return None
    return found if found and _fits(plan, step, found) else None


def _fits(plan: Plan, step: Step, found: list[Instruction]) -> bool:
    """True if all operands have one float dtype, or are bools where a bool is read."""
    outs = [plan.layouts[slot] for slot in step.outputs if slot != NONE]
    if len({out.shape for out in outs}) != 1 or any(out.weak for out in outs):
        return False
    floats: set[int] = set()
    for one in found:
        for k, slot in enumerate(one.inputs):
            layout = plan.layouts[slot]
            is_mask = one.kind == lib.MG_CHAIN_WHERE and k == 0
            if is_mask:
                if layout.dtype != lib.MG_BOOL or layout.weak:
                    return False
            elif not layout.weak:
                floats.add(layout.dtype)
            elif layout.shape:
                return False
        out = plan.layouts[one.output]
        if out.dtype != lib.MG_BOOL:
            floats.add(out.dtype)
    return len(floats) == 1 and floats <= set(_FLOATS)


def _forward(plan: Plan, step: Step) -> list[Instruction] | None:
    op, inputs = step.number, tuple(step.inputs)
    if op == kernels.pow:
        exponent = plan.numbers.get(inputs[1])
        if plan.layouts[inputs[1]].weak and exponent is None:
            return None
        if exponent in _OWN_POWERS:
            return None
        if exponent in _SHORTCUTS:
            op, inputs = _SHORTCUTS[exponent], inputs[:1]
    return [Instruction(lib.MG_CHAIN_FORWARD, op, 0, inputs, step.outputs[0])]


def _derivatives(plan: Plan, step: Step) -> list[Instruction] | None:
    op, saved = step.number - _ELEMENTWISE, step.saved or [NONE] * 3
    g = step.inputs[0]
    given = [g if slot == NONE else slot for slot in saved]
    if not step.ints:  # of a unary operation
        return [Instruction(lib.MG_CHAIN_VJP, op, 0, (g, *given[:2]), step.outputs[0])]
    wanted = step.ints[0]
    if op == kernels.pow and wanted == 1 and saved[1] != NONE:
        exponent = plan.numbers.get(saved[1])
        if exponent == 2.0 and plan.layouts[saved[1]].weak:
            square = (g, given[0], g)
            return [Instruction(lib.MG_CHAIN_VJP, kernels.square, 0, square, step.outputs[0])]
        if saved[2] == NONE:
            return None
    return [
        Instruction(lib.MG_CHAIN_VJP, op, i, (g, *given), step.outputs[i])
        for i in range(2)
        if wanted >> i & 1
    ]
