"""Memory that the tape holds: bytes by operation, shapes and source line."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn
from minigrad.autograd.graph import saved_tensors_hooks, source_lines
from minigrad.runtime import native
from minigrad.runtime.native import lib
from minigrad.tape.hooks import watchers


@pytest.fixture(autouse=True)
def _nothing_watches_afterwards():
    yield
    assert not watchers
    assert not native.tracers


def entries(memory):
    return {entry.operation: (entry.nodes, entry.bytes) for entry in memory.entries}


def test_the_total_is_the_memory_that_goes_with_the_graph(restore_random):
    mg.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 128), nn.Tanh(), nn.LayerNorm(128), nn.Linear(128, 64))
    x = mg.randn(512, 64)
    y = model(x).sum()
    memory = mg.graph_memory(y)
    gc.collect()
    before = lib.mg_live_bytes()
    y.backward()
    model.zero_grad()
    freed = before - lib.mg_live_bytes()
    assert memory.total - x.nbytes == pytest.approx(freed, rel=0.02)  # x is held here too
    assert memory.of_leaves == model[2].weight.nbytes + model[3].weight.nbytes


def test_each_buffer_counts_once_for_the_oldest():
    x = mg.ones(100, requires_grad=True)
    y = x.exp()
    z = (y * y + y.reshape(10, 10).exp().sum()).sum()
    memory = mg.graph_memory(z)
    found = {(e.operation, e.saved): e.bytes for e in memory.entries}
    assert found[("exp", "float32 (100,)")] == 400
    assert found[("exp", "float32 (10, 10)")] == 400
    assert found[("mul", "float32 (100,), float32 (100,)")] == 0
    assert (memory.total, memory.of_leaves, memory.nodes) == (800, 0, 7)
    sizes = [e.bytes for e in memory.entries]
    assert sizes == sorted(sizes, reverse=True)


def test_several_outputs_share_what_they_share():
    x = mg.ones(100, requires_grad=True)
    y = x.exp()
    a, b = y.sin(), y.cos()
    assert mg.graph_memory([a, b]).total == 400
    assert mg.graph_memory([a, b]).nodes == 3
    assert mg.graph_memory((a,)).nodes == 2


def test_views_count_what_they_span():
    x = mg.ones(100, 4, requires_grad=True)
    h = x.sign() + x
    y = h[:, 0].exp() * h[:, 1]
    memory = mg.graph_memory(y.sum())
    assert entries(memory)["exp"] == (1, 400)
    assert entries(memory)["mul"][1] >= 4 * 397  # a column of h


class Keeps(mg.Function):
    """Keeps a tensor in its context, and one that it saves."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x.exp())
        ctx.double = x * 2
        return x * 1

    @staticmethod
    def backward(ctx, g):
        return g


def test_functions_checkpoints_and_packed_tensors():
    x = mg.ones(100, requires_grad=True)
    assert entries(mg.graph_memory(Keeps.apply(x)))["Keeps"] == (1, 800)
    y = mg.checkpoint(lambda t: t.exp().sin(), x * 2.0)
    assert entries(mg.graph_memory(y))["checkpoint"] == (1, 400)
    with saved_tensors_hooks(lambda t: t.half(), lambda t: t.float()):
        y = x.exp()
    assert entries(mg.graph_memory(y))["exp"] == (1, 200)
    with saved_tensors_hooks(lambda t: t.detach().numpy().copy(), mg.tensor):
        y = x.exp()
    memory = mg.graph_memory(y)
    assert (memory.entries[0].saved, memory.total) == ("float32 (100,)", 400)


def test_statistics_of_attention_count(restore_random):
    mg.manual_seed(0)
    q = mg.randn(2, 4, 16, 8, requires_grad=True)
    y = nn.functional.scaled_dot_product_attention(q, q, q)
    memory = mg.graph_memory(y)
    assert memory.of_leaves == q.nbytes
    assert memory.total > y.nbytes


def test_source_lines():
    x = mg.ones(100, requires_grad=True)
    with source_lines():
        y = x.exp()
        z = y * 2.0
    w = z.sin()
    found = {e.operation: e.line for e in mg.graph_memory(w).entries}
    line = test_source_lines.__code__.co_firstlineno
    assert found == {
        "exp": f"{__file__}:{line + 3}",
        "mul": f"{__file__}:{line + 4}",
        "sin": None,
    }
    with mg.detect_anomaly():
        y = x.exp()
    assert mg.graph_memory(y).entries[0].line == f"{__file__}:{line + 14}"


def test_lines_come_apart():
    x = mg.ones(4, requires_grad=True)
    with source_lines():
        for _ in range(3):
            x = x.exp()
        x = x.exp()
    assert [e.nodes for e in mg.graph_memory(x).entries] == [3, 1]


def test_the_table():
    x = mg.ones(1000, requires_grad=True)
    y = (x.sin() * 2.0).exp().sum()
    assert str(mg.graph_memory(y)).splitlines() == [
        "operation  nodes  bytes  saved",
        "exp            1  4,000  float32 (1000,)",
        "mul            1      8  float64 ()",
        "sin            1      0  float32 (1000,)",
        "sum            1      0",
        "4,008 bytes held by 4 operations, and 4,000 that leaves hold",
    ]
    short = mg.graph_memory(y).table(limit=1).splitlines()
    assert short[2:] == [
        "and 3 more",
        "4,008 bytes held by 4 operations, and 4,000 that leaves hold",
    ]
    with source_lines():
        y = x.exp()
    text = mg.graph_memory(y).table(None)
    assert text.splitlines()[0].split() == ["operation", "nodes", "bytes", "saved", "line"]
    assert "test_graph_memory.py:" in text
    assert repr(mg.graph_memory(y)) == "<GraphMemory of 4,000 bytes>"


def test_graphs_that_are_not_there():
    x = mg.ones(3, requires_grad=True)
    assert mg.graph_memory(x).total == mg.graph_memory(mg.ones(2)).nodes == 0
    assert str(mg.graph_memory([])).endswith("0 bytes held by 0 operations, and 0 that leaves hold")
    y = (x * x).sum()
    y.backward()
    with pytest.raises(RuntimeError, match="the graph was freed at 'sum'"):
        mg.graph_memory(y)
    for wrong in (np.ones(3), [np.ones(3)]):
        with pytest.raises(
            TypeError, match=r"\[graph_memory\] expected a Tensor or a list of them"
        ):
            mg.graph_memory(wrong)
    with pytest.raises(TypeError, match=r"\[graph_memory\]"):
        mg.graph_memory(3)


def test_what_was_overwritten_is_left_out():
    x = mg.ones(3, requires_grad=True)
    w = mg.ones(3)
    y = x * w
    w += 1
    assert mg.graph_memory(y).total == 0
