"""Verified calls: faults of programs are found and named, and right programs pass."""

from __future__ import annotations

import copy
import functools
import os
import pickle
import threading
import warnings
from dataclasses import replace
from pathlib import Path

import pytest
import test_compiled_training as training
import test_random_programs as programs

import minigrad as mg
from minigrad import nn
from minigrad._compile import compiled as compiled_calls
from minigrad._compile.history import History
from minigrad._compile.passes import PASSES
from minigrad._compile.program import Program
from minigrad._compile.recorded import Recorded
from minigrad.runtime.native import kernels

HERE = Path(__file__).name
ENVIRONMENT = "MINIGRAD_TEST_SCALE"


@pytest.fixture(autouse=True)
def _seeded(restore_random):
    mg.manual_seed(0)


@pytest.fixture
def fault(monkeypatch):
    """Adds a faulty pass, which changes or drops (None) each step with a kernel's name."""

    def add(kernel, change, place=0):
        def faulty(plan):
            made = [change(step) if step.name == kernel else step for step in plan.steps]
            return plan.with_steps([step for step in made if step is not None])

        passes = list(PASSES.items())
        passes.insert(place, ("faulty", faulty))
        for name in list(PASSES):
            monkeypatch.delitem(PASSES, name)
        for name, one in passes:
            monkeypatch.setitem(PASSES, name, one)

    return add


def other_kernel(name):
    return lambda step: replace(step, number=getattr(kernels, name))


def line_of(text):
    """The place of the first line in this file with a mark."""
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    return f"{HERE}:{next(k for k, line in enumerate(lines, 1) if line.endswith('# ' + text))}"


def failure(compiled, *args):
    """The error's text of a verified call, after one that recorded the program."""
    compiled(*args)
    with pytest.raises(RuntimeError, match=r"^\[compile\] verify: ") as error:
        compiled(*args)
    return str(error.value)


def bits(tensors):
    return [None if x is None else x.detach().numpy().tobytes() for x in tensors]


# ---- faults of programs --------------------------------------------------------------------------


def test_a_kernel_in_place_of_another_is_named_with_line_and_values(fault):
    fault("mean", other_kernel("sum"))

    def step(x):
        y = x @ x
        z = y.mean(0)  # mean
        return z.cumsum(0)

    x = mg.tensor([[1.0, 2.0], [3.0, 4.0]])
    text = failure(mg.compile(step, verify=True), x)
    assert "step: the result differs: at index 0 of float32(2,)" in text
    assert "The first kernel that differs is sum, where the function calls mean at" in text
    assert f"{line_of('mean')} (step 1 of 3)" in text
    assert "the program has 22.0 and the function has 11.0; 2 of 2 elements differ" in text


def test_a_kernel_in_a_chain_is_found(fault):
    fault("sin", other_kernel("cos"))

    def step(x):
        y = x * 2
        z = y.sin()  # sin
        return (z + 1).tanh()

    text = failure(mg.compile(step, verify=True), mg.ones(3))
    assert "is cos, where the function calls sin at" in text
    assert line_of("sin") in text
    assert "It is in chain (mul, cos, add, tanh)" in text


def test_a_fault_of_the_chain_itself_names_the_chain(fault):
    def wrong(step):  # the last instruction is another operation
        words = list(step.ints)
        words[-5] = kernels.cos
        return replace(step, ints=words)

    fault("chain", wrong, len(PASSES))
    text = failure(mg.compile(lambda x: (x * 2).sin(), verify=True), mg.ones(3))
    assert "is chain (mul, cos), where the function calls sin at" in text
    assert "Its kernels one by one do not differ" in text


def test_a_changed_number_is_found(fault):
    fault("norm_rows", lambda step: replace(step, floats=[0.5]))
    layer = nn.LayerNorm(4)
    text = failure(mg.compile(lambda x: layer(x).detach(), verify=True), mg.randn(3, 4))
    assert "The first kernel that differs is norm_rows at" in text


def test_a_write_that_is_left_out_is_found(fault):
    fault("write", lambda step: None)
    total = mg.zeros(3)

    def step(x):
        total.add_(x)  # write
        return x * 2

    text = failure(mg.compile(step, verify=True), mg.ones(3))
    assert "total differs: at index 0 of float32(3,) the program has 1.0" in text
    assert "No kernel differs, but the program lacks write at" in text
    assert line_of("write") in text
    assert total.tolist() == [2.0] * 3


def test_a_step_that_reads_what_a_missing_write_left_names_the_write(fault):
    fault("write", lambda step: None)
    total = mg.zeros(3)

    def step(x):
        total.add_(x)  # missing
        return total.cumsum(0)

    text = failure(mg.compile(step, verify=True), mg.ones(3))
    assert "The first kernel that differs is cumsum at" in text
    assert "The program lacks write at" in text
    assert line_of("missing") in text


def test_a_wrong_derivative_is_found_in_the_gradient(fault):
    fault("tanh_vjp", other_kernel("sigmoid_vjp"))
    w = mg.tensor([0.5, 1.0], requires_grad=True)

    def step(x):
        w.grad = None
        (w * x).tanh().sum().backward()  # backward

    run = mg.compile(step, verify=True)
    run(mg.ones(2))
    text = failure(run, mg.ones(2))
    assert "w.grad differs" in text
    assert "is sigmoid_vjp, where the function calls tanh_vjp at" in text
    assert line_of("backward") in text


def test_a_wrong_step_of_an_optimizer_is_found(fault):
    def crossed(step):  # each parameter gets the other's gradient
        p, q, g, h, *rest = step.inputs
        return replace(step, inputs=[p, q, h, g, *rest])

    fault("adam_step", crossed)
    a, b = (mg.ones(2, requires_grad=True) for _ in range(2))
    optimizer = mg.optim.Adam([a, b], lr=0.1)

    def step(x):
        optimizer.zero_grad()
        (a * x - b * 2).sum().backward()
        optimizer.step()  # step

    run = mg.compile(step, verify=True)
    run(mg.ones(2))
    text = failure(run, mg.ones(2))
    assert "The first kernel that differs is adam_step at" in text
    assert line_of("step") in text
    assert "what it writes into input 0" in text
    assert [state["step"] for state in optimizer.state.values()] == [3, 3]


def test_wrong_statistics_of_batch_norm_are_found(fault):
    fault("norm_track", lambda step: replace(step, floats=[0.5, step.floats[1]]))
    norm = nn.BatchNorm1d(3)
    text = failure(mg.compile(norm, verify=True), mg.randn(4, 3))
    assert "running_mean differs" in text or "running_var differs" in text
    assert "The first kernel that differs is norm_track" in text


def test_a_schedule_that_a_program_forgets_is_found(monkeypatch):
    optimizer = mg.optim.SGD([mg.ones(2, requires_grad=True)], lr=0.5)
    schedule = mg.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)

    def step(x):
        schedule.step()
        return x * 2

    monkeypatch.setattr(Recorded, "_event", lambda *_: lambda *_: None)
    text = failure(mg.compile(step, verify=True), mg.ones(2))
    assert "ExponentialLR['last_epoch'] differs: the program left 1 and the function 2" in text
    assert schedule.last_epoch == 2


def test_a_program_that_draws_once_more_is_found(monkeypatch):
    own = Recorded._event

    def twice(self, event, recorder):
        made = own(self, event, recorder)
        return lambda *args: (mg.rand(1), made(*args))[1]

    monkeypatch.setattr(Recorded, "_event", twice)
    text = failure(mg.compile(lambda x: x + mg.rand(2), verify=True), mg.ones(2))
    assert "the result differs" in text


def test_a_gradient_of_a_backward_outside_is_compared(monkeypatch):
    own = History.backward
    monkeypatch.setattr(History, "backward", lambda *args: [g * 2 for g in own(*args)])
    w = mg.ones(2, requires_grad=True)
    text = failure(mg.compile(lambda x: (w * x).tanh(), verify=True), mg.ones(2))
    assert "the gradient of w by a backward outside differs: at index 0 of float32(2,)" in text


def test_a_wrong_derivative_of_a_backward_outside_is_found(fault):
    fault("tanh_vjp", other_kernel("sigmoid_vjp"))
    w = mg.ones(2, requires_grad=True)
    text = failure(mg.compile(lambda x: (w * x).tanh().sum(), verify=True), mg.ones(2))
    assert "the gradient of w by a backward outside differs" in text
    assert "is sigmoid_vjp, where the function calls tanh_vjp" in text


def test_a_kernel_whose_result_is_seen_nowhere_is_found(fault):
    fault("mul_vjp", other_kernel("div_vjp"))
    w = mg.tensor([2.0, 3.0], requires_grad=True)
    optimizer = mg.optim.SGD([w], lr=0.1)

    def step(x):
        optimizer.zero_grad()
        (w * x + w**2).sum().backward()
        optimizer.step()

    run = mg.compile(step, verify=True)
    run(mg.full((2,), 4.0))
    text = failure(run, mg.full((2,), 4.0))
    assert "is div_vjp, where the function calls mul_vjp at" in text


def test_an_error_of_the_program_alone_is_told(monkeypatch):
    def broken(*_):
        raise ValueError("broken")

    run = mg.compile(lambda x: x * 2, verify=True)
    run(mg.ones(2))
    monkeypatch.setattr(Program, "run", broken)
    monkeypatch.setattr(Recorded, "_failed", broken)
    text = failure(run, mg.ones(2)) if not run._recorded else ""
    with pytest.raises(RuntimeError, match=r"has a result and the program raises ValueError: bro"):
        run(mg.ones(2))
    assert text == ""


# ---- functions that no longer do what was recorded -----------------------------------------------


def test_another_kernel_than_recorded_is_told_with_both_lines(monkeypatch):
    def step(x):
        if os.environ.get(ENVIRONMENT):
            return x.cos()  # now
        return x.sin()  # before

    run = mg.compile(step, verify=True)
    for _ in range(2):
        run(mg.ones(2))
    monkeypatch.setenv(ENVIRONMENT, "1")
    with pytest.raises(RuntimeError, match="the function is no longer what was recorded") as error:
        run(mg.ones(2))
    text = str(error.value)
    before, _, now = text.partition("and is now")
    assert "kernel 0 was sin at" in before
    assert line_of("before") in before
    assert line_of("now") in now


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: x * float(os.environ[ENVIRONMENT]), "has 2.0 and the function now has 3"),
        (lambda x: x.repeat(int(os.environ[ENVIRONMENT])), "had"),
        (lambda x: sum([x.exp()] * int(os.environ[ENVIRONMENT])), "runs 4 now; only one of both"),
        (lambda x: x.var(correction=int(os.environ[ENVIRONMENT]) - 2), "had 0.0 and has now 1.0"),
    ],
)
def test_a_value_that_no_guard_knows_is_told(function, message, monkeypatch):
    monkeypatch.setenv(ENVIRONMENT, "2")
    run = mg.compile(function, verify=True)
    for _ in range(2):
        run(mg.ones(4))
    monkeypatch.setenv(ENVIRONMENT, "3")
    with pytest.raises(RuntimeError, match=message):
        run(mg.ones(4))


def test_an_error_of_the_function_alone_is_told(monkeypatch):
    def step(x):
        if os.environ.get(ENVIRONMENT):
            raise KeyError("missing")
        return x * 2

    run = mg.compile(step, verify=True)
    run(mg.ones(2))
    monkeypatch.setenv(ENVIRONMENT, "1")
    with pytest.raises(RuntimeError, match=r"the function raises KeyError: 'missing'") as error:
        run(mg.ones(2))
    assert isinstance(error.value.__cause__, KeyError)


# ---- right programs ------------------------------------------------------------------------------


@pytest.fixture
def verifying(monkeypatch):
    """Makes ``mg.compile`` verify; a list with an entry for each verified call."""
    calls = []
    own = compiled_calls.verified

    def counted(*args):
        found = own(*args)
        calls.append(1)
        return found

    monkeypatch.setattr(compiled_calls, "verified", counted)
    monkeypatch.setattr(mg, "compile", functools.partial(mg.compile, verify=True))
    return calls


def test_random_programs_pass(verifying):
    programs.check_all(range(1000, 1150))
    assert len(verifying) > 200


@pytest.mark.parametrize("optimizer", training.OPTIMIZERS)
@pytest.mark.parametrize("model", training.MODELS)
def test_training_with_a_backward_outside_passes(model, optimizer, verifying):
    own = training.MODELS[model], training.OPTIMIZERS[optimizer]
    expected, _ = training.trained(*own[0], own[1], False, steps=4)
    found, _ = training.trained(*own[0], own[1], True, steps=4)
    assert found == expected
    assert len(verifying) == 3


OPTIMIZERS = {
    **training.OPTIMIZERS,
    "adamw": lambda ps: mg.optim.AdamW(ps, lr=0.01, amsgrad=True),
    "plain": lambda ps: mg.optim.SGD(ps, lr=0.05),
}


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("model", training.MODELS)
def test_whole_training_steps_pass(model, optimizer, verifying):
    make, inputs = training.MODELS[model]

    def train(compiled):
        mg.manual_seed(0)
        made = make()
        steps = OPTIMIZERS[optimizer](made.parameters())
        schedule = mg.optim.lr_scheduler.CosineAnnealingLR(steps, 5)

        def step(x, labels):
            steps.zero_grad()
            loss = nn.functional.cross_entropy(made(x), labels)
            loss.backward()
            nn.utils.clip_grad_norm_(made.parameters(), 0.5)
            steps.step()
            schedule.step()
            return loss.detach()

        run = mg.compile(step, fullgraph=True) if compiled else step
        mg.manual_seed(1)
        losses = [run(inputs(), mg.randint(0, 3, (training.BATCH,))) for _ in range(6)]
        return bits([*losses, *made.parameters(), *made.buffers()]), schedule.state_dict()

    assert train(True) == train(False)
    assert len(verifying) >= 3


def test_transforms_pass(verifying):
    def function(x):
        return (x**3).sum() + x.prod()

    x = mg.tensor([1.0, 2.0, 3.0])
    for transform in (mg.func.grad, mg.func.hessian, mg.func.jacrev, mg.func.jacfwd):
        run = mg.compile(transform(function))
        for _ in range(3):
            assert bits([run(x)]) == bits([transform(function)(x)])
    assert len(verifying) == 8


def test_in_place_updates_and_their_errors_pass(verifying):
    table = mg.zeros(4, 2)

    def step(k, x):
        table[k] += x
        return table.sum(0)

    run = mg.compile(step)
    for k in (0, 1, 3, 1):
        run(mg.tensor([k]), mg.ones(2))
    assert table.tolist() == [[1.0, 1.0], [2.0, 2.0], [0.0, 0.0], [1.0, 1.0]]
    with pytest.raises(IndexError, match="out of range"):
        run(mg.tensor([9]), mg.ones(2))
    assert table.sum().item() == 8.0


def test_nan_is_equal_to_nan(verifying):
    run = mg.compile(lambda x: (x.log(), x / x))
    for _ in range(3):
        run(mg.tensor([-1.0, 0.0, 1.0]))
    assert len(verifying) == 2


def test_a_question_with_another_answer_passes(verifying):
    run = mg.compile(lambda x: x.norm())
    for scale in (1.0, 1e30, 1.0, 1e-30):
        x = mg.full((3,), scale)
        assert bits([run(x)]) == bits([x.norm()])
    assert len(verifying) == 3


def test_gradients_after_a_question_with_another_answer(verifying):
    normalised = mg.compile(lambda x: nn.functional.layer_norm(x, (2,)))
    for row in ([1.0, 2.0], [3e30, 1e30], [1.0, 2.0]):
        x = mg.tensor([row], requires_grad=True)
        normalised(x).sum().backward()
        assert x.grad.tolist() == [[0.0, 0.0]]
    assert normalised.recordings == 1


def test_the_results_can_be_differentiated_outside(verifying):
    w = mg.tensor([1.0, 2.0], requires_grad=True)
    run = mg.compile(lambda x: ((w * x).tanh(), w.exp()))
    for _ in range(3):
        x = mg.ones(2).requires_grad_()
        y, z = run(x * 2)
        found = mg.grad((y * z).sum(), [w, x])
        expected = mg.grad(((w * x * 2).tanh() * w.exp()).sum(), [w, x])
        assert bits(found) == bits(expected)
    assert len(verifying) == 2


def test_threads_may_verify_at_once(verifying):
    total, failed = mg.zeros(3), []

    def step(x):
        total.add_(x)
        return x * 2

    run = mg.compile(step)
    run(mg.zeros(3))

    def work():
        try:
            for _ in range(10):
                run(mg.ones(3))
        except RuntimeError as error:
            failed.append(error)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    assert total.tolist() == [30.0] * 3


# ---- the option ----------------------------------------------------------------------------------


@mg.compile(verify=True)
def decorated(x):
    return x * 2


def test_the_option_goes_wherever_compile_goes(verifying):
    model = nn.Linear(2, 2)
    wrapped = mg.compile(model)
    wrapped.half_done = 1
    other = nn.Linear(2, 2)
    other.compile(verify=True)
    single = mg.compile(nn.functional.relu, verify=True)
    for run in (decorated, wrapped, other, single, copy.deepcopy(wrapped), copy.copy(single)):
        count = len(verifying)
        run(mg.ones(3, 2)), run(mg.ones(3, 2))
        assert len(verifying) == count + 1
    assert pickle.loads(pickle.dumps(decorated)) is decorated
    assert pickle.loads(pickle.dumps(single))._options.verify
    assert copy.deepcopy(single)._options == single._options
    wrapped._orig_mod = nn.Linear(2, 2)
    assert wrapped.compiled._options.verify


def test_the_accelerators_run_is_not_used():
    layer = nn.Linear(2, 2)
    run = mg.compile(lambda x: layer(x).detach(), verify=True)
    for factor in (1.0, 2.0):
        layer.factor = factor  # guards are looked at again
        run(mg.ones(2))
        assert all(recorded.fast is None for recorded in run._recorded)


def test_an_unverified_function_is_not_compared(verifying, monkeypatch):
    monkeypatch.undo()
    run = mg.compile(lambda x: x * 2)
    run(mg.ones(2)), run(mg.ones(2))
    assert not verifying


def test_functions_without_a_program_run_as_they_are(verifying):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run = mg.compile(lambda x: x[x > 0])
        assert run(mg.ones(2)).tolist() == run(mg.ones(2)).tolist()
    assert not verifying
