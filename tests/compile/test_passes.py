"""Passes of the planner, each on a small plan written by hand, and left out of programs."""

from __future__ import annotations

import pytest

import minigrad as mg
from minigrad._compile.passes import PASSES
from minigrad._compile.passes.fuse import fuse_elementwise
from minigrad._compile.passes.simplify import (
    drop_aliases,
    drop_copies,
    drop_unused,
    reuse_results,
    sum_into_new,
)
from minigrad._compile.plan import Layout, Plan, compact, own_constants
from minigrad._compile.recorder import Step
from minigrad.runtime.native import kernels, lib


def layout(root, shape=(4,), **changes):
    made = Layout(lib.MG_FLOAT32, shape, True, False, root)
    return made._replace(**changes)


def step(name, inputs, outputs, ints=()):
    return Step(getattr(kernels, name), list(inputs), None, list(ints), [], list(outputs))


def plan(slots, given, steps, results, **changes):
    """A plan in which each slot lies on memory of its own, but for the ``changes`` of layouts."""
    layouts = [changes.get(f"at{k}", layout(k)) for k in range(slots)]
    return Plan(tuple(layouts), given, tuple(steps), tuple(results), {})


def shown(made):
    return [(one.name, one.inputs, one.outputs) for one in made.steps]


def test_an_alias_is_read_as_the_array_itself():
    steps = [step("view_alias", [0], [1]), step("exp", [1], [2])]
    made = drop_aliases(plan(3, 1, steps, [2], at1=layout(0)))
    assert shown(made) == [("exp", [0], [2])]


def test_an_alias_that_is_a_result_stays():
    steps = [step("view_alias", [0], [1])]
    assert shown(drop_aliases(plan(2, 1, steps, [1], at1=layout(0)))) == [("view_alias", [0], [1])]


def test_a_sum_in_place_becomes_a_new_array():
    steps = [step("exp", [0], [1]), step("accumulate", [1, 0], []), step("sin", [1], [2])]
    made = sum_into_new(plan(3, 1, steps, [1, 2]))
    assert shown(made) == [("exp", [0], [1]), ("add", [1, 0], [3]), ("sin", [3], [2])]
    assert made.results == (3, 2)


@pytest.mark.parametrize("reason", ["it is given", "another array lies there", "it is written"])
def test_a_sum_in_place_stays_where_somebody_else_sees_it(reason):
    steps = [step("exp", [0], [1]), step("accumulate", [1, 0], [])]
    changes = {}
    if reason == "it is given":
        steps = [step("accumulate", [0, 1], [])]
    elif reason == "another array lies there":
        steps.insert(1, step("view_alias", [1], [2]))
        changes = {"at2": layout(1)}
    else:
        steps.insert(1, step("write", [1, 0], []))
    made = sum_into_new(plan(3, 2 if reason == "it is given" else 1, steps, [1], **changes))
    assert "accumulate" in [one.name for one in made.steps]


def test_a_copy_that_nobody_writes_goes():
    steps = [step("copy", [0], [1]), step("exp", [1], [2])]
    assert shown(drop_copies(plan(3, 1, steps, [2]))) == [("exp", [0], [2])]


@pytest.mark.parametrize("written", [0, 1])
def test_a_copy_stays_if_it_or_the_array_is_written(written):
    steps = [step("copy", [0], [1]), step("write", [written, 2], []), step("exp", [1], [3])]
    assert shown(drop_copies(plan(4, 3, steps, [3])))[0] == ("copy", [0], [1])


def test_a_copied_argument_that_is_a_result_stays_a_copy():
    assert shown(drop_copies(plan(2, 1, [step("copy", [0], [1])], [1]))) == [("copy", [0], [1])]


def test_a_result_is_the_array_itself_if_only_the_copy_reads_it():
    steps = [step("exp", [0], [1]), step("copy", [1], [2])]
    made = drop_copies(plan(3, 1, steps, [2]))
    assert (shown(made), made.results) == ([("exp", [0], [1])], (1,))


def test_equal_steps_run_once():
    steps = [step("exp", [0], [1]), step("exp", [0], [2]), step("add", [1, 2], [3])]
    made = reuse_results(plan(4, 1, steps, [3]))
    assert shown(made) == [("exp", [0], [1]), ("add", [1, 1], [3])]


def test_equal_steps_run_twice_if_both_are_results_or_memory_is_written():
    twice = [step("exp", [0], [1]), step("exp", [0], [2])]
    assert len(reuse_results(plan(3, 1, twice, [1, 2])).steps) == 2
    between = [twice[0], step("write", [0, 3], []), twice[1], step("add", [1, 2], [4])]
    assert len(reuse_results(plan(5, 1, between, [4])).steps) == 4


def test_steps_that_nobody_reads_go_and_effects_stay():
    steps = [
        step("exp", [0], [2]),  # nobody reads it
        step("index_within", [1], [], [4]),  # a check
        step("sin", [0], [3]),
        step("write", [1, 3], []),  # into memory that is given
    ]
    made = drop_unused(plan(4, 2, steps, []))
    assert [one.name for one in made.steps] == ["index_within", "sin", "write"]


def test_elementwise_steps_become_a_chain_with_the_results_that_are_read():
    steps = [step("mul", [0, 1], [2]), step("tanh", [2], [3]), step("sub", [3, 0], [4])]
    (chain,) = fuse_elementwise(plan(5, 2, steps, [3, 4])).steps
    assert (chain.name, chain.inputs, chain.outputs) == ("chain", [0, 1], [3, 4])


def test_a_write_into_an_operand_ends_a_chain():
    steps = [step("exp", [0], [2]), step("write", [0, 1], []), step("sin", [2], [3])]
    made = fuse_elementwise(plan(4, 2, steps, [3]))
    assert [one.name for one in made.steps] == ["exp", "write", "sin"]


def test_steps_of_other_shapes_are_other_chains():
    steps = [
        step("exp", [0], [2]),
        step("exp", [1], [3]),
        step("sin", [2], [4]),
        step("sin", [3], [5]),
    ]
    wide = layout(0, (2, 3))
    changes = {f"at{k}": wide._replace(root=k) for k in (1, 3, 5)}
    made = fuse_elementwise(plan(6, 2, steps, [4, 5], **changes))
    assert [one.name for one in made.steps] == ["chain", "chain"]


def test_constants_that_are_written_are_copied_first():
    made = own_constants(plan(2, 2, [step("write", [1, 0], [])], [1]), [1])
    assert shown(made) == [("copy", [1], [2]), ("write", [2, 0], [])]
    assert made.results == (2,)


def test_slots_are_numbered_anew():
    made = compact(plan(9, 1, [step("exp", [0], [7])], [7]))
    assert (shown(made), made.results, len(made.layouts)) == ([("exp", [0], [1])], (1,), 2)


@pytest.mark.parametrize("left_out", PASSES)
def test_programs_have_the_same_bits_with_a_pass_left_out(left_out, monkeypatch):
    monkeypatch.delitem(PASSES, left_out)
    w = mg.tensor([0.5, -1.0, 2.0], requires_grad=True)

    def step(x):
        w.grad = None
        y = (w * x).tanh() + (w * x).detach() + w**2
        y.sum().backward()
        return y.detach()

    compiled = mg.compile(step, fullgraph=True)
    for k in range(3):
        x = mg.tensor([1.0, 2.0, k])
        expected, grad = step(x), w.grad
        assert mg.equal(compiled(x), expected)
        assert mg.equal(w.grad, grad)


def test_a_view_of_a_constant_that_is_written_lies_on_its_copy():
    steps = [step("view_alias", [1], [2]), step("write", [1, 0], []), step("exp", [2], [3])]
    made = own_constants(plan(4, 2, steps, [3], at2=layout(1)), [1])
    assert shown(made)[0] == ("copy", [1], [4])
    assert made.layouts[2].root == made.layouts[4].root != made.layouts[1].root
    assert len(drop_unused(made).steps) == 4
