"""The pass that makes chains: several elementwise steps of one shape become one step.

A chain runs at the place of its last member. Between its members no other step may read what a
member made, or write what a member reads. A sum, mean, maximum or minimum over the last axes may
end a chain, if nothing else reads its terms.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod
from typing import NamedTuple

from minigrad._compile.plan import Plan, reads, writes
from minigrad._compile.recorder import NONE, Step
from minigrad.runtime.costs import REDUCTIONS
from minigrad.runtime.native import kernels, lib

__all__ = ["fuse_elementwise"]

_ELEMENTWISE = lib.mg_elementwise_count()
_FLOATS = (lib.MG_FLOAT32, lib.MG_FLOAT64)
# The limits of csrc/kernels/elementwise/chain.inc.c.
_OPERANDS, _REGISTERS, _STEPS, _RESULTS = 16, 32, 256, 4
# Powers that have kernels of their own, and operations that powers become.
_OWN_POWERS = (3.0, 0.5, -0.5)
_SHORTCUTS = {2.0: kernels.square, -1.0: kernels.reciprocal}


# The reductions that may end a chain, by kernel.
_REDUCTIONS = {getattr(kernels, name): number for number, name in REDUCTIONS.items()}


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
            if found is not None:
                self._join(step, found)
            elif not self._ends_a_chain(step):
                self._close_for(step)
                self.steps.append(step)
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

    def _ends_a_chain(self, step: Step) -> bool:
        """Close the chain that makes the terms of a reduction; True if the chain reduces them."""
        if step.number not in _REDUCTIONS or not _last_axes(self.plan, step):
            return False
        chain = next((c for c in self.open if step.inputs[0] in c.made), None)
        return chain is not None and self._close(chain, step)

    def _close(self, chain: _Chain, reduction: Step | None = None) -> bool:
        """Emit a chain. True if it ends with the reduction."""
        self.open.remove(chain)
        # A chain that reads what another one makes runs after it.
        for other in tuple(self.open):
            if not other.made.isdisjoint(chain.reads):
                self._close(other)
        return self._emit(chain, chain.members, reduction)

    def _emit(
        self,
        chain: _Chain,
        members: list[tuple[Step, list[Instruction]]],
        reduction: Step | None = None,
    ) -> bool:
        """The step of a chain; several if it is beyond the limits. True if the last one reduces."""
        step = self._step(chain, members, reduction) if reduction is not None else None
        if step is not None:
            self.steps.append(step)
            return True
        step = members[0][0] if len(members) == 1 else self._step(chain, members, None)
        if step is not None:
            self.steps.append(step)
            return False
        half = len(members) // 2
        self._emit(chain, members[:half])
        return self._emit(chain, members[half:], reduction)

    def _step(
        self,
        chain: _Chain,
        members: list[tuple[Step, list[Instruction]]],
        reduction: Step | None,
    ) -> Step | None:
        code = [one for _, found in members for one in found]
        made = {one.output for one in code}
        terms = None if reduction is None else reduction.inputs[0]
        if terms is not None and terms not in made:
            return None
        operands = list(dict.fromkeys(s for one in code for s in one.inputs if s not in made))
        inside = {self.place[id(step)] for step, _ in members}
        if reduction is not None:
            inside.add(self.place[id(reduction)])
        results = [
            one.output
            for one in code
            if one.output in self.kept or not inside.issuperset(self.uses.get(one.output, ()))
        ]
        if terms in results:
            return None  # it is read soon from a cache: a chain would only stage it
        arrays = len(results) + (reduction is not None)
        if len(operands) > _OPERANDS or len(code) > _STEPS or not 1 <= arrays <= _RESULTS:
            return None
        registers, words = _registers(operands, code, results, terms)
        if max(registers.values()) >= _REGISTERS:
            return None
        layouts = self.plan.layouts
        if not any(layouts[s].shape == chain.shape for s in operands):
            return None  # the operands alone would give another shape
        head = [1 + max(registers.values()), len(results), *[registers[s] for s in results]]
        ints = [chain.dtype, len(operands), len(head) + len(words), *head, *words]
        line = members[0][0].line
        if reduction is None:
            return Step(kernels.chain, operands, None, ints, [], results, line=line)
        axes, keepdims = _last_axes(self.plan, reduction), reduction.ints[-1]
        head = [_REDUCTIONS[reduction.number], axes, keepdims, registers[reduction.inputs[0]]]
        outputs = [*results, *reduction.outputs]
        return Step(kernels.chain_reduce, operands, None, [*head, *ints], [], outputs, line=line)


def _last_axes(plan: Plan, step: Step) -> int:
    """The number of axes that a reduction reduces if these are the last ones of floats, else 0."""
    layout, count = plan.layouts[step.inputs[0]], step.ints[0]
    ndim = len(layout.shape)
    axes = set(range(ndim)) if count < 0 else {axis % (ndim or 1) for axis in step.ints[1:-1]}
    last = axes == set(range(ndim - len(axes), ndim))
    size: int = prod(layout.shape)
    terms: int = prod(layout.shape[ndim - len(axes) :])
    return len(axes) if last and size and terms > 1 and layout.dtype in _FLOATS else 0


def _kind(plan: Plan, found: list[Instruction]) -> tuple[int, tuple[int, ...]]:
    """The float dtype and the shape of instructions."""
    layouts = [plan.layouts[found[0].output]]
    layouts += [plan.layouts[s] for one in found for s in one.inputs if not plan.layouts[s].weak]
    dtype = next(x.dtype for x in layouts if x.dtype in _FLOATS)
    return dtype, layouts[0].shape


def _registers(
    operands: list[int], code: list[Instruction], results: list[int], terms: int | None
) -> tuple[dict[int, int], list[int]]:
    """The register of each slot, and the instructions on registers.

    Results, and the terms of a reduction, keep their registers. Others are used again.
    """
    kept = {*operands, *results, terms}
    last: dict[int, int] = {}
    for k, one in enumerate(code):
        for slot in one.inputs:
            last[slot] = k
    register = {slot: k for k, slot in enumerate(operands)}
    count, free = len(operands), list[int]()
    words: list[int] = []
    for k, one in enumerate(code):
        inputs = [register[slot] for slot in one.inputs]
        if one.output in kept or not free:
            register[one.output], count = count, count + 1
        else:
            register[one.output] = free.pop()
        words += [one.kind, one.op, one.place, len(inputs), *inputs, register[one.output]]
        for slot in {*one.inputs, one.output} - kept:
            if last.get(slot, k) == k:
                free.append(register[slot])
    return register, words


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
