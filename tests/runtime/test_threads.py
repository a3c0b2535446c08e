"""The number of threads changes the time only: the same bits for any, also after a fork."""

from __future__ import annotations

import os
import re
import sys
import threading
import time
from pathlib import Path

import numpy as np
import oracle
import pytest

import minigrad as mg
from minigrad.nn import functional as F

COUNTS = [1, 2, 3, 7]


@pytest.fixture
def threads():
    before = mg.get_num_threads()
    yield mg.set_num_threads
    mg.set_num_threads(before)


BIG = np.random.default_rng(0).normal(size=(1031, 977)).astype(np.float32)
INDEX = np.random.default_rng(1).integers(0, 1031, 3000)


def gradient(f):
    def run(x):
        leaf = x.detach().requires_grad_()
        y = f(leaf)
        cotangent = mg.tensor(np.linspace(-1, 1, y.size, dtype=np.float32)).reshape(y.shape)
        return mg.grad(y, leaf, cotangent)[0]

    return run


TARGETS = mg.tensor(np.random.default_rng(3).integers(0, 103, (10, 977)))


def of_images(x, reduction):
    scores = x[:1030].reshape(10, 103, 977)
    return F.cross_entropy(scores, TARGETS, reduction=reduction, label_smoothing=0.1)


def resized(x):
    return F.interpolate(x[:1030].reshape(1, 10, 103, 977), size=(77, 1200), mode="bilinear")


PROGRAMS = {
    "add": lambda x: x + x,
    "exp": mg.exp,
    "broadcast": lambda x: x * x[0] + x[:, :1],
    "transposed": lambda x: x.T + x.T.contiguous(),
    "copy": lambda x: x.T.contiguous(),
    "cast": lambda x: x.double(),
    "compare": lambda x: x > 0,
    "where": lambda x: mg.where(x > 0, x, -x),
    **{
        f"{name} {axis}": lambda x, name=name, axis=axis: getattr(mg, name)(x, axis)
        for name in ("sum", "mean", "prod", "amax", "amin", "var", "logsumexp", "argmax")
        for axis in (None, 0, 1)
    },
    "sum transposed": lambda x: x.T.sum(0),
    "any": lambda x: (x > 100).any(),
    "softmax 0": lambda x: x.softmax(0),
    "softmax 1": lambda x: x.softmax(1),
    "log_softmax 1": lambda x: x.log_softmax(1),
    "cumsum": lambda x: x.reshape(-1).cumsum(0),
    "matmul": lambda x: x @ x[:977, :513],
    "matmul transposed": lambda x: x.T @ x,
    "matvec": lambda x: x @ x[0],
    "vecmat": lambda x: x[:, 0] @ x,
    "vecmat wide": lambda x: x[0, :200] @ x.reshape(-1)[:1000000].reshape(200, 5000),
    "batched": lambda x: x[:1030].reshape(10, 103, 977) @ x[:977, :20],
    "index": lambda x: x[INDEX],
    "cat": lambda x: mg.cat([x, x.flip(1)], 1),
    "exp'": gradient(mg.exp),
    "exp' few": gradient(lambda x: mg.exp(x[:70].contiguous())),
    "mul'": gradient(lambda x: x * x[0]),
    "matmul'": gradient(lambda x: x @ x[:977, :513]),
    "index'": gradient(lambda x: x[INDEX]),
    "sum'": gradient(lambda x: x.sum(0)),
    "amax'": gradient(lambda x: x.amax(1)),
    "softmax'": gradient(lambda x: x.softmax(1)),
    "softmax 0'": gradient(lambda x: x.softmax(0)),
    "cumsum'": gradient(lambda x: x.reshape(-1).cumsum(0)),
    "std'": gradient(lambda x: x.std(1)),
    "norm'": gradient(lambda x: x.norm(2, 0)),
    "var'": gradient(lambda x: x.var(0)),
    "logsumexp'": gradient(lambda x: x.logsumexp(0)),
    "cross_entropy": lambda x: of_images(x, "none"),
    "cross_entropy'": gradient(lambda x: of_images(x, "mean")),
    "interpolate": lambda x: resized(x),
    "interpolate'": gradient(lambda x: resized(x)),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_same_bits_for_any_number_of_threads(name, threads):
    x = mg.from_numpy(BIG)
    results = []
    for count in COUNTS:
        threads(count)
        assert mg.get_num_threads() == count
        results.append(PROGRAMS[name](x).numpy())
    for other in results[1:]:
        oracle.assert_same(other, results[0])


@pytest.mark.parametrize("axis", [None, 0, 1])
@pytest.mark.parametrize("shape", [(2500, 1000), (3, 900001), (1, 2500003)])
def test_long_sums_have_the_same_bits_for_any_number_of_threads(shape, axis, threads):
    """How many rows, or chunks of one, are taken at a time depends on the number of threads."""
    x = np.random.default_rng(2).normal(size=shape).astype(np.float32)
    threads(1)
    expected = mg.tensor(x).sum(axis).numpy()
    np.testing.assert_allclose(expected, x.sum(axis, dtype=np.float64), rtol=1e-5, atol=1e-2)
    for count in COUNTS[1:]:
        threads(count)
        assert mg.tensor(x).sum(axis).numpy().tobytes() == expected.tobytes()


def test_python_threads_compute_at_the_same_time(threads):
    threads(3)
    x = mg.from_numpy(BIG)
    want = (mg.exp(x) @ x.T).sum(1).numpy()
    wrong = []

    def work():
        for _ in range(5):
            got = (mg.exp(x) @ x.T).sum(1).numpy()
            if not np.array_equal(got, want):
                wrong.append(got)

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong


@pytest.mark.only_tape("C", "cffi gives up the interpreter in each call of the tape in Python")
@pytest.mark.parametrize(("shape", "gives_up"), [((8, 8), False), ((1024, 1024), True)])
def test_only_a_long_call_gives_up_the_interpreter(shape, gives_up):
    """Another thread runs during a large operation, and is not let in by a small one."""
    x, before = mg.ones(*shape), sys.getswitchinterval()
    gate, ran = threading.Lock(), []
    gate.acquire()
    worker = threading.Thread(target=lambda: (gate.acquire(), ran.append(True)))
    worker.start()
    sys.setswitchinterval(1000.0)  # so that nobody is made to give it up
    try:
        gate.release()
        for _ in range(2000):
            mg.exp(x)
            if ran:
                break
        assert bool(ran) is gives_up
    finally:
        sys.setswitchinterval(before)
        worker.join()


@pytest.mark.skipif(
    not hasattr(os, "sched_getaffinity") or len(os.sched_getaffinity(0)) < 2,
    reason="needs a second processor, and to ask which of them a thread may use",
)
def test_workers_keep_off_one_processor_their_callers(threads):
    threads(1)
    tasks = Path("/proc/self/task")
    before = set(tasks.iterdir())
    threads(3)
    mg.exp(mg.from_numpy(BIG))
    workers = set(tasks.iterdir()) - before
    mine = os.sched_getaffinity(0)
    assert len(workers) == 2
    for worker in workers:
        theirs = os.sched_getaffinity(int(worker.name))
        assert theirs < mine
        assert len(theirs) == len(mine) - 1


def _naps(task):
    """How often a thread has given up its processor to wait."""
    status = (task / "status").read_text(encoding="ascii") if task.exists() else ""
    count = re.search(r"^voluntary_ctxt_switches:\s*(\d+)", status, re.MULTILINE)
    return count and int(count[1])


@pytest.mark.skipif(_naps(Path("/proc/self")) is None, reason="the system does not count naps")
def test_only_a_long_loop_wakes_a_worker(threads):
    threads(1)
    tasks = Path("/proc/self/task")
    before = set(tasks.iterdir())
    threads(2)
    short, long = mg.ones(2**15 + 1), mg.ones(2**22)
    mg.exp(long)
    (worker,) = set(tasks.iterdir()) - before

    def naps_between(operation):
        begin = _naps(worker)
        for _ in range(20):
            time.sleep(0.005)
            operation()
        return _naps(worker) - begin

    # what is short is measured: now and then a busy machine makes it long, and waking cheap
    assert min(naps_between(lambda: short + short) for _ in range(8)) < 10
    assert max(naps_between(lambda: mg.exp(long)) for _ in range(8)) >= 10


def test_grad_mode_is_each_threads_own():
    seen = []
    with mg.no_grad():
        worker = threading.Thread(target=lambda: seen.append(mg.is_grad_enabled()))
        worker.start()
        worker.join()
    assert seen == [True]


FORK = """
import os, warnings
warnings.simplefilter("ignore")
import numpy as np
import minigrad as mg
mg.set_num_threads(3)
x = mg.from_numpy(np.random.default_rng(0).normal(size=(1000, 1000)))
want = (mg.exp(x) @ x).sum().item()
child = os.fork()
same = (mg.exp(x) @ x).sum().item() == want
if child == 0:
    os._exit(0 if same and mg.get_num_threads() == 3 else 1)
assert same
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_process_computes_too(fresh):
    fresh(FORK, timeout=60)


DIVISORS = """
import threading
import minigrad as mg

a, b = mg.ones(2**17, dtype=mg.int64), mg.ones(2**17, dtype=mg.int64)
over = False

def disturb():
    while not over:
        b[-1:] = wrong
        b[-1:] = 1

for function, wrong in (mg.floor_divide, 0), (mg.remainder, 0), (mg.fmod, 0), (mg.pow, -1):
    other = threading.Thread(target=disturb)
    other.start()
    for _ in range(100):
        try:
            function(a, b)
        except (ZeroDivisionError, ValueError):
            pass
    over = True
    other.join()
    over = False
"""


def test_a_divisor_that_another_thread_writes_meanwhile_ends_no_process(fresh):
    fresh(DIVISORS, timeout=60)


@pytest.mark.parametrize("variable", ["MINIGRAD_NUM_THREADS", "OMP_NUM_THREADS"])
def test_the_environment_sets_the_number(variable, fresh):
    numbers = {"MINIGRAD_NUM_THREADS": "", "OMP_NUM_THREADS": "", variable: "1"}
    assert fresh("import minigrad as mg; print(mg.get_num_threads())", **numbers) == "1\n"


def test_wrong_numbers_are_refused():
    before = mg.get_num_threads()
    for wrong in (0, -1, 257, 2.0, True, "2", None):
        with pytest.raises(
            ValueError, match=r"\[set_num_threads\] .* is not a number of threads from 1 to 256"
        ):
            mg.set_num_threads(wrong)
    assert mg.get_num_threads() == before
