"""Explanations of compiled functions: counts by hand, listings, and passes that are left out."""

from __future__ import annotations

from pathlib import Path

import pytest
import test_compiled_training as training

import minigrad as mg
from minigrad import nn
from minigrad._compile.cost import cost_of, peak_scratch
from minigrad._compile.passes import PASSES
from minigrad._compile.plan import Layout, Plan
from minigrad._compile.recorder import Step
from minigrad.runtime.native import kernels, lib


@pytest.fixture(autouse=True)
def _seeded(restore_random):
    mg.manual_seed(0)


def explained(function, *args, calls=1, **options):
    run = mg.compile(function, fullgraph=True, **options)
    for _ in range(calls):
        run(*args)
    return run.explain().programs[0]


def test_counts_of_a_chain_and_a_product():
    w = mg.ones(3, 4)

    def step(x):
        y = x @ w
        return ((y * 2 + 1).tanh() * y).sum(0)

    found = explained(step, mg.ones(5, 3))
    assert found.recorded == 6
    assert found.kernels == {"matmul": 1, "chain": 1, "sum": 1}
    assert found.fusions == [["mul", "add", "tanh", "mul"]]
    assert found.passes["fuse_elementwise"] == 3
    assert list(found.passes) == ["fold_constants", *PASSES]
    assert found.flops == 2 * 5 * 3 * 4 + 4 * 20 + 20
    assert found.bytes == 4 * (20 + 20 + 4)
    # the product reads 15 and 12 floats; the chain also reads two of Python's numbers
    assert found.moved == 4 * (15 + 12 + 20) + (4 * 40 + 16) + 4 * (20 + 4)
    assert found.scratch == 4 * (20 + 20)
    assert found.numbers == [2, 1]
    assert found.constants == []


def test_what_was_frozen_is_told():
    scale = mg.ones(2)

    def step(x):
        y = x + mg.tensor([1.0, 2.0])
        return nn.functional.layer_norm(y, (2,), scale, scale) * 3

    found = explained(step, mg.ones(2))
    assert (found.constants, found.numbers, found.questions) == (["float32(2,)"], [3], 1)
    assert "1 constants: float32(2,)" in str(found)
    assert "1 questions about values" in str(found)


def test_a_chain_that_ends_with_a_reduction_counts_it():
    found = explained(lambda x: (x * 2).sin().sum(1), mg.ones(5, 3))
    assert found.fusions == [["mul", "sin", "sum"]]
    assert found.flops == 3 * 15


def test_folded_constants_are_counted():
    found = explained(lambda x: x * mg.arange(3.0).sin(), mg.ones(3))
    assert found.passes["fold_constants"] == found.recorded - len(found.before) > 0


def test_steps_are_listed_before_and_after_planning():
    def step(x):
        y = x.sin() * 2
        return y @ y

    found = explained(step, mg.ones(3, 3))
    first = step.__code__.co_firstlineno + 1
    lines = found.listing().splitlines()
    assert [line.split()[:2] for line in lines] == [["0", "chain"], ["1", "matmul"]]
    assert "chain (sin, mul)  float32(3, 3), int64 -> float32(3, 3)" in lines[0]
    assert lines[0].endswith(f"{Path(__file__).name}:{first}")
    assert lines[1].endswith(f":{first + 1}")
    assert [one.kernel for one in found.before] == ["sin", "mul", "matmul"]
    assert found.listing(planned=False).splitlines()[0].split()[:2] == ["0", "sin"]
    assert (found.steps[1].flops, found.steps[1].bytes) == (54, 108)


@pytest.mark.parametrize("name", training.MODELS)
def test_flops_of_the_recorded_steps_are_those_of_the_profiler(name):
    make, inputs = training.MODELS[name]
    model = make()
    optimizer = mg.optim.Adam(model.parameters())
    x, labels = inputs(), mg.randint(0, 3, (training.BATCH,))

    def step():
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), labels).backward()
        optimizer.step()

    step()
    with mg.profile() as p:
        step()
    found = explained(step)
    flops = sum(one.flops for one in found.before)
    draws = sum(row.flops for row in p.totals() if row.name in ("uniform", "dropout"))
    assert flops == pytest.approx(sum(row.flops for row in p.totals()), abs=draws)
    assert found.flops <= flops


def test_the_backward_of_results_is_explained_too():
    w = mg.ones(3, 4, requires_grad=True)
    run = mg.compile(lambda x: (x @ w).tanh())
    for _ in range(2):  # the second call is a program
        run(mg.ones(2, 3)).sum().backward()
    (program,) = run.explain().programs
    (backward,) = program.backward
    assert backward.kernels == {"tanh_vjp": 1, "matmul_vjp": 1}
    assert backward.flops == 8 + 2 * 2 * 3 * 4
    assert "backward pass 0:" in str(program)


# ---- costs of plans written by hand --------------------------------------------------------------


def plan(shapes, given, steps, results, roots=None):
    layouts = [
        Layout(lib.MG_FLOAT32, shape, True, False, k if roots is None else roots[k])
        for k, shape in enumerate(shapes)
    ]
    return Plan(tuple(layouts), given, tuple(steps), tuple(results), {})


def step(name, inputs, outputs, ints=()):
    return Step(getattr(kernels, name), list(inputs), None, list(ints), [], list(outputs))


def test_scratch_counts_arrays_from_their_step_to_the_last_that_reads_them():
    steps = [step("exp", [0], [1]), step("sin", [1], [2]), step("cos", [2], [3])]
    assert peak_scratch(plan([(8,)] * 4, 1, steps, [3])) == 64
    assert peak_scratch(plan([(8,)] * 4, 1, steps, [2, 3])) == 32
    late = [*steps, step("add", [1, 3], [4])]
    assert peak_scratch(plan([(8,)] * 5, 1, late, [4])) == 96


def test_views_share_the_scratch_of_what_they_are_views_of():
    steps = [
        step("exp", [0], [1]),
        step("view_expand", [1], [2], [2, 4, 8]),
        step("sum", [2], [3], [-1, 0]),
    ]
    made = plan([(8,), (8,), (4, 8), ()], 1, steps, [3], roots=[0, 1, 1, 3])
    assert peak_scratch(made) == 32
    held = plan([(8,), (8,), (4, 8), ()], 1, steps[:2], [2], roots=[0, 1, 1, 3])
    assert peak_scratch(held) == 0


def test_costs_of_steps():
    product = step("matmul", [0, 1], [2])
    made = plan([(5, 3), (3, 4), (5, 4)], 2, [product], [2])
    assert cost_of(made, product) == (4 * (15 + 12 + 20), 2 * 5 * 3 * 4)
    view = step("view_reshape", [0], [2], [1, 15])
    assert cost_of(plan([(5, 3), (), (15,)], 2, [view], [2]), view) == (0, 0)


@pytest.mark.parametrize(
    ("make", "each"),
    [
        (lambda ps: mg.optim.SGD(ps, lr=0.1), 2),
        (lambda ps: mg.optim.SGD(ps, lr=0.1, momentum=0.9), 5),
        (lambda ps: mg.optim.Adam(ps), 13),
        (lambda ps: mg.optim.RMSprop(ps), 9),
    ],
)
def test_a_step_of_an_optimizer_counts_every_parameter(make, each):
    params = [mg.ones(n, requires_grad=True) for n in (3, 4)]
    optimizer = make(params)
    for p in params:
        p.grad = mg.ones(p.shape[0])
    optimizer.step()
    with mg.profile() as p:
        optimizer.step()
    assert sum(row.flops for row in p.totals()) == each * 7
    assert explained(optimizer.step, calls=2).flops == each * 7


# ---- passes that are left out --------------------------------------------------------------------


def test_a_pass_can_be_switched_off():
    x = mg.ones(3)
    whole = explained(lambda x: (x.sin() + 1).tanh(), x)
    alone = explained(lambda x: (x.sin() + 1).tanh(), x, options={"fuse_elementwise": False})
    assert whole.kernels == {"chain": 1}
    assert alone.kernels == {"sin": 1, "add": 1, "tanh": 1}
    assert alone.flops == whole.flops == 9
    assert alone.without == ["fuse_elementwise"]
    assert "fuse_elementwise is off" in str(alone)
    assert "fuse_elementwise" not in alone.passes


def test_a_pass_is_left_out_of_the_backward_too():
    w = mg.ones(3, requires_grad=True)
    run = mg.compile(lambda x: (w * x).sin().tanh(), options={"fuse_elementwise": False})
    for _ in range(2):
        run(mg.ones(3)).sum().backward()
    (backward,) = run.explain().programs[0].backward
    assert "chain" not in backward.kernels


@pytest.mark.parametrize("name", ["fold_constants", *PASSES])
def test_every_pass_can_be_left_out_by_its_name(name):
    run = mg.compile(lambda x: (x * x).sum(), options={name: False}, verify=True)
    for _ in range(3):
        assert run(mg.ones(3)).item() == 3.0
    assert run.explain().programs[0].without == [name]


def test_passes_that_are_on_and_decorators():
    @mg.compile(options={"drop_copies": True, "fuse_elementwise": False})
    def step(x):
        return (x + 1).sin()

    step(mg.ones(2))
    assert step.explain().programs[0].without == ["fuse_elementwise"]
    layer = nn.Linear(2, 2)
    layer.compile(options={"fuse_elementwise": False})
    wrapped = mg.compile(nn.Tanh(), options={"fuse_elementwise": False})
    wrapped(mg.ones(2))
    assert wrapped.explain().programs[0].without == ["fuse_elementwise"]


def test_options_of_other_compilers_warn_and_change_nothing():
    text = r"'triton.cudagraphs' is no pass and changes nothing; the passes are"
    with pytest.warns(UserWarning, match=text):
        run = mg.compile(lambda x: x + 1, options={"triton.cudagraphs": True, "max_threads": 4})
    assert run(mg.ones(2)).tolist() == [2.0, 2.0]
    with pytest.warns(UserWarning, match="the passes are fold_constants, drop_aliases"):
        mg.compile(options={"fuse": False})


def test_other_values_of_passes_are_errors():
    with pytest.raises(TypeError, match=r"options is \['fuse_elementwise'\], but must be a dict"):
        mg.compile(abs, options=["fuse_elementwise"])
    with pytest.raises(TypeError, match="must be a dict of passes"):
        mg.compile(abs, options={"fuse_elementwise": 0})
