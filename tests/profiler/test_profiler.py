"""The profiler: counts by hand, modules forward and backward, tables, traces and pictures."""

from __future__ import annotations

import json
import sys
import threading

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn
from minigrad.nn.functional import conv2d, linear, scaled_dot_product_attention
from minigrad.nn.module import Module
from minigrad.profiler.limits import Limits, measured_limits
from minigrad.runtime import native
from minigrad.tape.hooks import watchers

pytestmark = pytest.mark.usefixtures("restore_random")

_plain_call = Module.__call__


@pytest.fixture(autouse=True)
def _nothing_watches_afterwards():
    yield
    assert not watchers
    assert not native.tracers
    assert Module.__call__ is _plain_call
    begun = native.lib.mg_run_begun()
    mg.ones(2) + 1
    assert native.lib.mg_run_begun() == begun  # nothing is timed


def rows(p, by="operation"):
    return {row.name: row for row in p.totals(by=by)}


def profiled(action):
    with mg.profile() as p:
        action()
    return p


# ---- operations ----------------------------------------------------------------------------------


def test_calls_bytes_and_times():
    x = mg.ones(1000)
    with mg.profile() as p:
        y = x.exp()
        y.exp()
        x + y
    found = rows(p)
    assert set(found) == {"exp", "add"}
    assert (found["exp"].calls, found["exp"].bytes, found["exp"].flops) == (2, 16_000, 2000)
    assert (found["add"].calls, found["add"].bytes, found["add"].flops) == (1, 12_000, 1000)
    assert all(row.seconds > 0 for row in found.values())
    assert p.kernel_seconds <= p.wall
    assert p.kernel_seconds == pytest.approx(sum(e.end - e.begin for e in p.events) * 1e-9)


A = mg.ones(5, 2, 3)
FLOPS = {
    "matmul": (lambda: A @ mg.ones(3, 4), 2 * 5 * 2 * 3 * 4),
    "matrix and vector": (lambda: A @ mg.ones(3), 2 * 5 * 2 * 3),
    "linear": (lambda: linear(A, mg.ones(4, 3), mg.ones(4)), 2 * 5 * 2 * 3 * 4 + 40),
    "conv2d": (
        lambda: conv2d(mg.ones(2, 4, 8, 8), mg.ones(6, 2, 3, 3), groups=2),
        2 * 2 * 6 * 36 * 18,
    ),
    "attention": (
        lambda: scaled_dot_product_attention(mg.ones(8, 7, 8), mg.ones(8, 9, 8), mg.ones(8, 9, 6)),
        8 * 7 * 9 * (2 * 8 + 2 * 6 + 5),
    ),
    "sum": (lambda: A.sum(), 30),
    "views and copies": (lambda: A.transpose(0, 1)[1:].clone(), 0),
    "inv": (lambda: mg.linalg.inv(mg.eye(10)), 2000),
    "cholesky": (lambda: mg.cholesky(mg.eye(9)), 243),
    "cdist": (lambda: mg.cdist(mg.ones(4, 3), mg.ones(5, 3)), 3 * 4 * 5 * 3),
}  # fmt: skip


@pytest.mark.parametrize("case", FLOPS.values(), ids=FLOPS)
def test_operations_are_counted(case):
    action, expected = case
    assert sum(row.flops for row in profiled(action).totals()) == expected


def leaf(*shape):
    return mg.ones(*shape, requires_grad=True)


BACKWARD = {
    "matmul": (lambda: leaf(5, 2, 3) @ leaf(3, 4), "matmul backward", 2 * 2 * 5 * 2 * 3 * 4),
    "first factor": (lambda: leaf(5, 2, 3) @ mg.ones(3, 4), "matmul backward", 2 * 5 * 2 * 3 * 4),
    "second factor": (lambda: mg.ones(5, 2, 3) @ leaf(3, 4), "matmul backward", 2 * 5 * 2 * 3 * 4),
    "vector": (lambda: leaf(5, 2, 3) @ leaf(3), "matmul backward", 2 * 2 * 5 * 2 * 3),
    "linear": (
        lambda: linear(leaf(10, 3), leaf(4, 3), leaf(4)),
        "linear backward",
        2 * 2 * 10 * 3 * 4 + 40,
    ),
    "conv2d": (
        lambda: conv2d(leaf(2, 3, 8, 8), leaf(6, 3, 3, 3)),
        "convolution backward",
        2 * 2 * 2 * 6 * 36 * 27,
    ),
    "attention": (
        lambda: scaled_dot_product_attention(leaf(2, 7, 8), leaf(2, 9, 8), leaf(2, 9, 6)),
        "scaled_dot_product_attention backward",
        2 * 2 * 7 * 9 * (3 * 8 + 2 * 6),
    ),
    "elementwise": (lambda: leaf(30).exp(), "exp backward", 30),
}


@pytest.mark.parametrize("case", BACKWARD.values(), ids=BACKWARD)
def test_operations_of_backward_are_counted(case):
    make, name, expected = case
    y = make()
    p = profiled(lambda: y.backward(mg.ones_like(y)))
    assert rows(p)[name].flops == expected


def test_recurrent_layers_are_counted():
    layer = nn.LSTM(3, 4)
    x = mg.randn(5, 2, 3)
    p = profiled(lambda: layer(x)[0].sum().backward())
    product = 2 * 5 * 2 * 16 * 4
    assert rows(p)["recurrent"].flops == product
    assert rows(p)["recurrent backward"].flops == 2 * product


# ---- modules and lines ---------------------------------------------------------------------------


class Net(nn.Module):
    """Two layers, one of them in a block."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 8)
        self.block = nn.Sequential(nn.Tanh(), nn.Linear(8, 2))

    def forward(self, x):
        return self.block(self.first(x)).square()


def test_modules_forward_and_backward():
    net = Net()
    x = mg.randn(3, 4)
    loss = net(x).sum()
    with mg.profile() as p:
        loss = net(x).sum()
        loss.backward()
    found = {name: row.calls for name, row in rows(p, "module").items()}
    assert set(found) == {"Net", "Net.first", "Net.block", "Net.block.0", "Net.block.1", ""}
    assert (found["Net.first"], found["Net.block.0"], found["Net.block.1"]) == (2, 2, 2)
    assert (found["Net.block"], found["Net"]) == (4, 8)
    by_operation = {
        (e.operation, e.backward): e.modules
        for e in p.events
        if e.modules and e.operation != "linear"
    }
    assert by_operation == {
        ("tanh", False): ("Net", "Net.block", "Net.block.0"),
        ("tanh", True): ("Net", "Net.block", "Net.block.0"),
        ("square", False): ("Net",),
        ("square", True): ("Net",),
    }


def test_a_module_that_fails_or_was_entered_before():
    class Fails(nn.Module):
        def forward(self, x):
            raise ZeroDivisionError

    with mg.profile() as p:
        with pytest.raises(ZeroDivisionError):
            nn.Sequential(nn.ReLU(), Fails())(mg.ones(2))
        mg.ones(2).exp()
    assert [e.modules for e in p.events if e.operation == "exp"] == [()]

    class Starts(nn.Module):
        def forward(self, x):
            profile.__enter__()
            return x.exp()

    profile = mg.profile()
    nn.Sequential(Starts(), nn.ReLU())(mg.ones(2))
    profile.__exit__(None, None, None)
    assert [e.operation for e in profile.events] == ["exp", "relu"]


def test_source_lines():
    x = mg.ones(10)
    line = test_source_lines.__code__.co_firstlineno
    with mg.profile() as p:
        for _ in range(3):
            x.exp()
        x.exp()
    found = {name: row.calls for name, row in rows(p, "line").items()}
    assert found == {f"{__file__}:{line + 5}": 3, f"{__file__}:{line + 6}": 1}


def test_threads_and_nested_tools():
    def run():
        layer(mg.ones(2, 3)).sum().backward()

    layer = nn.Linear(3, 3)
    with mg.profile() as p, mg.detect_anomaly(), mg.profile() as inner:
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    assert {e.thread for e in p.events} != {threading.get_ident()}
    assert [e[:4] for e in p.events] == [e[:4] for e in inner.events]
    assert all(e.end >= e.begin for e in p.events)


def test_a_run_gives_the_same_bits():
    def trained(context):
        mg.manual_seed(0)
        net = Net()
        optimizer = mg.optim.Adam(net.parameters(), lr=0.1)
        x = mg.randn(5, 4)
        with context:
            for _ in range(3):
                optimizer.zero_grad()
                net(x).sum().backward()
                optimizer.step()
        return [p.detach().numpy().copy() for p in net.parameters()]

    for a, b in zip(trained(mg.profile()), trained(mg.enable_grad()), strict=True):
        np.testing.assert_array_equal(a, b)


# ---- reports -------------------------------------------------------------------------------------


def made_up():
    """A profile with known numbers."""
    p = mg.profile()
    here = "main.py", 3
    p._sums = {
        ("matmul", False, ("Net", "Net.0"), here): [2, 1_000_000, 4_000_000, 50_000_000],
        ("matmul", True, ("Net", "Net.0"), here): [2, 3_000_000, 8_000_000, 100_000_000],
        ("relu", False, (), ("main.py", 4)): [1, 4000, 8000, 1000],
    }
    p.wall = 0.005
    return p


def test_the_table():
    assert str(made_up()).splitlines() == [
        "operation        calls     time   share    bytes   FLOPs  FLOP/s",
        "matmul backward      2  3.00 ms  74.9 %  8.00 MB   100 M  33.3 G",
        "matmul               2  1.00 ms  25.0 %  4.00 MB  50.0 M  50.0 G",
        "relu                 1  4.00 us   0.1 %  8.00 kB  1.00 k   250 M",
        "5 calls, 4.00 ms in kernels, 5.00 ms in all",
    ]
    p = made_up().calibrate(flops=1e11, bandwidth=1e10)
    assert p.table(limit=1).splitlines()[:3] == [
        "operation        calls     time   share    bytes  FLOPs  FLOP/s  of limit",
        "matmul backward      2  3.00 ms  74.9 %  8.00 MB  100 M  33.3 G      33 %",
        "and 2 more",
    ]
    assert rows(p)["relu"].limit == pytest.approx(8000 / 1e10 / 4e-6)
    lines = p.table(by="module").splitlines()
    assert [line.split()[0] for line in lines[1:4]] == ["Net", "Net.0", "(no"]
    assert [r.name for r in p.totals(by="line")] == ["main.py:3", "main.py:4"]
    assert repr(p) == "<profile of 5 calls of kernels>"


def test_orders():
    p = made_up()
    names = {key: [r.name for r in p.totals(key)] for key in ("name", "flops", "bytes", "time")}
    assert names["name"] == ["matmul", "matmul backward", "relu"]
    assert (
        names["flops"] == names["bytes"] == names["time"] == ["matmul backward", "matmul", "relu"]
    )
    assert p.totals("calls")[-1].name == "relu"


def test_nothing_ran():
    p = profiled(lambda: None)
    assert str(p).splitlines()[-1].startswith("0 calls, 0 s in kernels")
    assert p.totals() == []


def test_only_so_many_events_are_kept():
    with mg.profile(max_events=2) as p:
        for _ in range(5):
            mg.ones(3)
    assert len(p.events) == 2
    assert rows(p)["full"].calls == 5


def test_a_profile_goes_on():
    p = mg.profile()
    for _ in range(2):
        with p:
            mg.ones(3)
    assert rows(p)["full"].calls == 2


def test_a_profile_within_itself_is_refused():
    with mg.profile() as p, pytest.raises(RuntimeError, match="it runs already"):
        p.__enter__()


def test_chrome_trace(tmp_path):
    x = mg.ones(10, requires_grad=True)
    p = profiled(lambda: x.exp().sum().backward())
    p.chrome_trace(tmp_path / "trace.json")
    traced = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    spans = [event for event in traced if event["ph"] == "X"]
    assert [event["name"] for event in spans][:2] == ["exp", "sum"]
    assert "exp backward" in [event["name"] for event in spans]
    assert {event["cat"] for event in spans} == {"forward", "backward"}
    starts = [event["ts"] for event in spans]
    assert starts == sorted(starts)
    assert starts[0] == 0
    assert all(event["dur"] >= 0 and event["pid"] and event["tid"] for event in spans)
    assert spans[0]["args"]["line"].startswith(__file__)
    live = [event["args"]["bytes"] for event in traced if event["ph"] == "C"]
    assert len(live) == len(spans)
    assert min(live) > 0
    mg.profile().chrome_trace(str(tmp_path / "empty.json"))
    assert json.loads((tmp_path / "empty.json").read_text())["traceEvents"] == []


def test_memory_timeline(tmp_path):
    pytest.importorskip("matplotlib")
    p = profiled(lambda: [mg.ones(1000, 1000) for _ in range(3)])
    p.memory_timeline(tmp_path / "memory.png")
    assert (tmp_path / "memory.png").read_bytes().startswith(b"\x89PNG")
    mg.profile().memory_timeline(tmp_path / "empty.svg")
    assert (tmp_path / "empty.svg").read_text().startswith("<?xml")


def test_memory_timeline_without_matplotlib(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    monkeypatch.setitem(sys.modules, "matplotlib.backends.backend_agg", None)
    with pytest.raises(
        ImportError, match="needs the Python package matplotlib: pip install matplotlib"
    ):
        mg.profile().memory_timeline(tmp_path / "memory.png")


def test_limits_are_measured_once():
    p = mg.profile().calibrate()
    assert p.limits == measured_limits()
    assert p.limits.flops > 1e8
    assert p.limits.bandwidth > 1e7
    assert mg.profile().calibrate(flops=5.0).limits == Limits(5.0, p.limits.bandwidth)


def test_errors():
    p = made_up()
    with pytest.raises(ValueError, match=r"\[profile\] by is 'kernel': give operation, module or"):
        p.totals(by="kernel")
    with pytest.raises(ValueError, match=r"\[profile\] sort_by is 'size': give time, calls"):
        p.table(sort_by="size")
    with pytest.raises(ValueError, match=r"\[calibrate\] flops is 0: give a number above 0"):
        p.calibrate(flops=0)
    for wrong in (-1, 2.5, True):
        with pytest.raises(ValueError, match=r"\[profile\] max_events is"):
            mg.profile(max_events=wrong)
