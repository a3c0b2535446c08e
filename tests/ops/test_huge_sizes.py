"""Numbers beyond all memory beside a size of 0: an answer at once, and never an endless loop.

The calls run in a process that is ended after a generous time, too short for a loop over 2**40
elements.
"""

from __future__ import annotations

N = 2**40
CALLS = [
    # what has no element has a result, or is refused
    "mg.zeros(0, N).pinverse()",
    "mg.linalg.svdvals(mg.zeros(0, N))",
    "mg.linalg.svd(mg.zeros(N, 0))",
    "mg.linalg.lstsq(mg.zeros(N, 0), mg.zeros(N, 0))",
    "mg.linalg.qr(mg.zeros(N, 0))",
    "mg.linalg.solve(mg.zeros(N, 0, 0), mg.zeros(N, 0, 1))",
    "mg.linalg.inv(mg.zeros(N, 0, 0))",
    "mg.linalg.eigh(mg.zeros(N, 0, 0))",
    "mg.linalg.det(mg.zeros(0, N, N))",
    "mg.zeros(N, 0) @ mg.zeros(0, 0)",
    "mg.zeros(N, 0).sort()",
    "mg.zeros(N, 0).cumsum(0)",
    "mg.zeros(0, N).unbind(1)",
    "mg.zeros(N, 0).split(1)",
    "mg.zeros(N, 0).chunk(N)",
    "mg.zeros(N, 0).diff(N, 0)",
    "mg.zeros(0, N).diff(N - 1)",
    "mg.ones(3).diff(10**30)",
    "repr(mg.zeros(N, 0))",
    "mg.zeros(N, 0).tolist()",
    "F.max_pool1d(mg.zeros(0, 1, N), 2)",
    "F.avg_pool2d(mg.zeros(0, 1, N, 2), 2)",
    "F.adaptive_avg_pool1d(mg.zeros(0, 1, 5), N)",
    "F.interpolate(mg.zeros(0, 1, 5), N)",
    "F.local_response_norm(mg.zeros(0, N, 1), 2)",
    "F.one_hot(mg.zeros(0, dtype=mg.int64), N)",
    # numbers of things to make
    "scalar.Neuron(10**30)",
    "scalar.Layer(1, 10**30)",
    "scalar.MLP(1, [10**30])",
    "mg.rand(10**30)",
    "mg.randperm(10**12)",
    "mg.eye(10**30)",
    "mg.linspace(0, 1, 10**30)",
    "mg.arange(10**30)",
    "mg.ones(3).repeat(10**30)",
    "mg.ones(3).repeat_interleave(10**30)",
    "mg.ones(3).chunk(10**30)",
    "mg.tensor_split(mg.ones(3), 10**30)",
    "mg.bincount(mg.arange(3), minlength=10**15)",
    "mg.histc(mg.ones(3), 10**15)",
    "mg.multinomial(mg.ones(3), 10**15, replacement=True)",
    "mg.polygamma(10**30, mg.ones(1))",
    "mg.ones(3).tril(10**30)",
    "mg.ones(3).roll(10**30)",
    "mg.linalg.matrix_power(mg.eye(2), 10**30)",
]

PROGRAM = """
import minigrad as mg, minigrad.nn.functional as F
from minigrad.tutorial import scalar
N = {n}
for call in {calls!r}:
    print(call, flush=True)
    try:
        eval(call)
    except (ValueError, MemoryError, OverflowError, IndexError, TypeError, RuntimeError) as error:
        assert str(error).startswith("[") or type(error) is MemoryError, error
print("all")
"""


def test_huge_numbers_are_answered_at_once(fresh):
    """A call that is in a loop is the last that is printed."""
    said = fresh(PROGRAM.format(n=N, calls=CALLS), timeout=300)
    assert said.splitlines() == [*CALLS, "all"]
