"""Costs of a plan: bytes and floating-point operations of its steps, and the memory that it needs.

The formulas are those of :mod:`minigrad.runtime.costs`, by which the profiler counts too.
"""

from __future__ import annotations

from typing import Any

from minigrad._compile.plan import Layout, Plan, is_view, reads
from minigrad._compile.recorder import NONE, Step
from minigrad.runtime.costs import REDUCTIONS, Sized, chain_members, cost
from minigrad.runtime.dtypes import by_code
from minigrad.runtime.native import Array, kernels, names, signatures

__all__ = ["arguments_of", "cost_of", "members_of", "peak_scratch", "size_of", "title"]


def members_of(step: Step) -> list[str]:
    """The kernels in a chain, in order; none for any other step."""
    if step.number == kernels.chain_reduce:
        return [*chain_members(step.ints[7:]), REDUCTIONS[step.ints[0]]]
    return chain_members(step.ints[3:]) if step.number == kernels.chain else []


def title(step: Step) -> str:
    """The name of a step's kernel, and for a chain the kernels in it."""
    found = members_of(step)
    return f"{step.name} ({', '.join(found)})" if found else step.name


def size_of(array: Layout | Array) -> int:
    """The bytes of the elements of an array, or of a layout."""
    return Sized(array.dtype, array.shape).size * by_code[array.dtype].itemsize


def arguments_of(plan: Plan, step: Step) -> list[Any]:
    """The arguments of a step's kernel: numbers, and in place of arrays their dtypes and shapes.

    Saved arrays are a list.
    """

    def sized(slot: int) -> Sized | None:
        return None if slot == NONE else Sized(*plan.layouts[slot][:2])

    arrays, ints, floats = iter(step.inputs), iter(step.ints), iter(step.floats)
    found: list[Any] = []
    for kind in signatures[step.number].split(":")[0]:
        if kind in "asm":
            found.append(sized(next(arrays)))
        elif kind in "ip":
            found.append(next(ints))
        elif kind == "d":
            found.append(next(floats))
        elif kind == "k":
            found.append([sized(slot) for slot in step.saved or ()])
        else:
            count, source = next(ints), {"A": arrays, "S": arrays, "D": floats}.get(kind, ints)
            items: list[Any] = [next(source) for _ in range(count)]
            found.append([sized(x) for x in items] if kind in "AS" else items)
    return found


def cost_of(plan: Plan, step: Step) -> tuple[int, int]:
    """Bytes that a step reads and writes, and its floating-point operations."""
    made = [Sized(*plan.layouts[slot][:2]) for slot in step.outputs if slot != NONE]
    return cost(names[step.number], arguments_of(plan, step), made)


def peak_scratch(plan: Plan) -> int:
    """The largest sum of bytes of arrays that live at once, which the plan makes and does not keep.

    Views share memory with what they are views of. What kernels need inside does not count. A
    kernel that writes over an operand needs less.
    """
    layouts = plan.layouts
    kept = plan.given_roots() | {layouts[slot].root for slot in plan.results}
    sizes: dict[int, int] = {}
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    for number, step in enumerate(plan.steps):
        made = [slot for slot in step.outputs if slot != NONE]
        for slot in (*made, *reads(step)):
            root = layouts[slot].root
            if root not in kept:
                first.setdefault(root, number)
                last[root] = number
        for slot in made:
            if not is_view(step) or step.name == "reshape":
                root = layouts[slot].root
                sizes[root] = max(sizes.get(root, 0), size_of(layouts[slot]))
    change = [0] * (len(plan.steps) + 1)
    for root, begin in first.items():
        change[begin] += sizes.get(root, 0)
        change[last[root] + 1] -= sizes.get(root, 0)
    alive, most = 0, 0
    for difference in change:
        alive += difference
        most = max(most, alive)
    return most
