"""minigrad.tutorial.draw: what the picture says."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest

import minigrad as mg
from minigrad.tutorial.dot import Drawing
from minigrad.tutorial.draw import draw_graph
from minigrad.tutorial.scalar import Value
from minigrad.tutorial.variable import Variable


def nodes(graph):
    """Name -> (label, color, shape)."""
    found = {}
    for line in re.split(r"\n(?=\t|})", graph.source):
        match = re.match(r"\t+\"?(\w+)\"? \[label=(\"[^\"]*\"|\S+) ?(.*)\]", line.strip("\n"))
        if match:
            name, label, style = match.groups()
            color = re.search(r"fillcolor=(\w+)", style)
            shape = re.search(r"shape=(\w+)", style)
            found[name] = (label.strip('"'), color and color[1], shape and shape[1])
    return found


def clusters(graph):
    """The labels of modules that are open."""
    return re.findall(r'\t+label="([^"]*)"', graph.source)


def edges(graph):
    """Pairs of labels, first lines only."""
    labels = {name: label.split("\n")[0] for name, (label, *_) in nodes(graph).items()}
    return {(labels[a], labels[b]) for a, b in re.findall(r"\t(\w+) -> (\w+)", graph.source)}


@pytest.mark.parametrize(
    "make", [lambda v: mg.tensor(v, requires_grad=True), Variable, lambda v: Value(v)]
)
def test_leaves_constants_and_operations_have_their_colours(make):
    x = make(2.0)
    y = x**2 + 3 * x
    graph = draw_graph(y, {"x": x})
    assert isinstance(graph, Drawing)
    found = nodes(graph).values()
    assert ("x\n2", "palegreen", "ellipse") in found
    assert {(label, shape) for label, color, shape in found if color == "lightblue"} == {
        ("pow", "box"),
        ("mul", "box"),
        ("add", "box"),
    }
    assert sorted(label for label, color, _ in found if color == "lightgray") == ["2", "3"]
    assert edges(graph) == {
        ("x", "pow"),
        ("2", "pow"),
        ("x", "mul"),
        ("3", "mul"),
        ("pow", "add"),
        ("mul", "add"),
        ("add", "10"),
    }


def test_a_leaf_used_twice_is_drawn_once_and_shows_its_gradient():
    x = mg.tensor(3.0, requires_grad=True)
    y = x * x
    y.backward(retain_graph=True)
    graph = draw_graph(y, {"x": x, "y": y})
    assert [label for label, color, _ in nodes(graph).values() if color == "palegreen"] == [
        "x\n3\ngrad 6"
    ]
    assert graph.source.count("leaf1 -> op0") == 2
    assert ("mul", "y") in edges(graph)


def test_arrays_are_shown_by_their_shape():
    x = mg.ones(2, 3, requires_grad=True)
    graph = draw_graph((x @ mg.ones(3, 4) + mg.ones(4)).sum())
    labels = [label for label, *_ in nodes(graph).values()]
    assert "(2, 3) float32" in labels
    assert "matmul\n(2, 4) float32\nsaves 72 B" in labels
    assert "constant\n(4,) float32" in labels


def test_a_leaf_alone_and_a_constant_alone():
    assert nodes(draw_graph(mg.tensor(1.0, requires_grad=True))) == {
        "y": ("1", "palegreen", "ellipse")
    }
    assert nodes(draw_graph(mg.tensor(1.0))) == {"y": ("1", "lightgray", "ellipse")}


def test_a_value_is_shown_with_its_label():
    y = Value(1.0, label="a") * 2
    y.label = "y"
    assert ("mul", "y") in edges(draw_graph(y))


def test_a_freed_graph_cannot_be_drawn():
    x = mg.tensor(3.0, requires_grad=True)
    y = x.exp() * 2
    y.backward()
    with pytest.raises(RuntimeError, match="retain_graph=True"):
        draw_graph(y)


def test_only_tensors_are_drawn():
    with pytest.raises(TypeError, match="float"):
        draw_graph(1.0)


def test_text_needs_no_graphviz(monkeypatch, tmp_path):
    monkeypatch.setattr(shutil, "which", lambda program: None)
    graph = draw_graph(mg.ones(1))
    assert str(graph).startswith("digraph graph_of_operations {")
    path = graph.save(tmp_path / "graph.dot")
    assert Path(path).read_text() == graph.source
    assert graph._repr_svg_() is None
    assert graph._repr_mimebundle_() == {"text/plain": graph.source}
    assert repr(graph) == "<drawing of 0 edges>"
    with pytest.raises(RuntimeError, match=r"needs Graphviz's program dot.*apt install graphviz"):
        graph.render(tmp_path / "graph")


@pytest.fixture
def a_dot(tmp_path, monkeypatch):
    """A program in place of Graphviz's, which says how it was called; it fails for gif."""
    program = tmp_path / "bin" / "dot"
    program.parent.mkdir()
    program.write_text(
        '#!/bin/sh\nif [ "$1" = -Tgif ]; then echo no such format >&2; exit 1; fi\n'
        'echo "<svg>$1"; cat\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")


@pytest.mark.usefixtures("a_dot")
@pytest.mark.skipif(os.name != "posix", reason="the program is a shell script")
def test_pictures_are_made_by_the_program_dot(tmp_path):
    graph = draw_graph(mg.ones(1))
    assert graph._repr_svg_() == f"<svg>-Tsvg\n{graph.source}"
    assert set(graph._repr_mimebundle_()) == {"text/plain", "image/svg+xml"}
    path = graph.render(str(tmp_path / "graph"), format="png")
    assert path == str(tmp_path / "graph.png")
    assert Path(path).read_text().startswith("<svg>-Tpng")
    assert (tmp_path / "graph").read_text() == graph.source
    with pytest.raises(RuntimeError, match=r"dot failed: no such format"):
        graph.pipe("gif")


@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz's dot is not installed")
def test_a_picture_is_written(tmp_path):
    x = mg.tensor(2.0, requires_grad=True)
    path = draw_graph(x * x + 1).render(str(tmp_path / "graph"), format="png")
    assert Path(path).read_bytes().startswith(b"\x89PNG\r\n\x1a\n")


# ---- modules -------------------------------------------------------------------------------------


@pytest.fixture
def model(restore_random):
    return mg.nn.Sequential(
        mg.nn.Linear(4, 8), mg.nn.ReLU(), mg.nn.Sequential(mg.nn.Linear(8, 8), mg.nn.Tanh())
    )


def boxes(graph):
    """The labels of closed modules."""
    return [label for label, color, _ in nodes(graph).values() if color == "wheat"]


def test_a_model_is_one_box(model):
    graph = draw_graph(model, inputs=mg.ones(3, 4), depth=0)
    (box,) = boxes(graph)
    assert box == "Sequential\n(3, 8) float32\n112 parameters\nsaves 624 B"
    assert edges(graph) == {("input", "Sequential"), ("Sequential", "(3, 8) float32")}
    assert not clusters(graph)


def test_the_parts_of_a_model_are_boxes(model):
    graph = draw_graph(model, inputs=mg.ones(3, 4))
    assert [box.split("\n")[0] for box in boxes(graph)] == ["0: Linear", "1: ReLU", "2: Sequential"]
    assert clusters(graph) == ["Sequential"]
    assert edges(graph) == {
        ("input", "0: Linear"),
        ("0: Linear", "1: ReLU"),
        ("1: ReLU", "2: Sequential"),
        ("2: Sequential", "(3, 8) float32"),
    }


def test_open_modules_show_operations_and_parameters(model):
    graph = draw_graph(model, inputs=mg.ones(3, 4), depth=None)
    assert not boxes(graph)
    assert clusters(graph) == [
        *("Sequential", "0: Linear", "1: ReLU", "2: Sequential", "0: Linear", "1: Tanh")
    ]
    assert ("0.weight", "linear_bias") in edges(graph)
    assert ("2.0.bias", "linear_bias") in edges(graph)
    assert ("linear_bias", "relu") in edges(graph)


def test_boxes_of_a_transformer_open_one_by_one(restore_random):
    model = mg.nn.TransformerEncoder(mg.nn.TransformerEncoderLayer(8, 2, 16), 2)
    counts = [
        len(boxes(draw_graph(model, inputs=mg.ones(3, 1, 8), depth=depth))) for depth in (0, 1, 2)
    ]
    assert counts[0] == 1
    graph = draw_graph(model, inputs=mg.ones(3, 1, 8), depth=2)
    assert "self_attn: MultiheadAttention" in {box.split("\n")[0] for box in boxes(graph)}
    assert counts[2] > counts[1] >= 1
    opened = draw_graph(model, inputs=mg.ones(3, 1, 8), depth=None)
    assert "layers.0.norm1.weight" in {label.split("\n")[0] for label, *_ in nodes(opened).values()}


def test_inputs_and_outputs_of_models(restore_random):
    class Words(mg.nn.Module):
        def __init__(self):
            super().__init__()
            self.table = mg.nn.Embedding(5, 3)
            self.shared = mg.nn.Linear(3, 3)

        def forward(self, words, scale):
            x = self.table(words)
            return self.shared(self.shared(x)) * scale, {"sum": x.sum()}

    model = Words()
    given = {"words": mg.tensor([0, 1]), "scale": mg.ones(3)}
    graph = draw_graph(model, inputs=given)
    assert [box.split("\n")[0] for box in boxes(graph)] == [
        "table: Embedding",
        "shared: Linear",
        "shared: Linear",
    ]
    labels = {label.split("\n")[0] for label, *_ in nodes(graph).values()}
    assert {"input", "input 1", "mul", "sum"} <= labels
    assert ("input", "table: Embedding") in edges(graph)
    assert ("input 1", "mul") in edges(graph)
    assert re.search(r"op\d+ -> y0", graph.source)
    assert re.search(r"op\d+ -> y1", graph.source)


def test_drawing_a_model_changes_nothing(restore_random):
    model = mg.nn.Sequential(mg.nn.Linear(3, 3), mg.nn.BatchNorm1d(3), mg.nn.Dropout())
    x = mg.ones(4, 3)
    state, before = mg.get_rng_state(), model[1].running_mean.tolist()
    with mg.no_grad():
        draw_graph(model, inputs=x, depth=None)
    assert str(mg.get_rng_state()) == str(state)
    assert model[1].running_mean.tolist() == before
    assert model[1].num_batches_tracked.item() == 0
    assert not x.requires_grad
    assert all(p.grad is None for p in model.parameters())
    assert "forward" not in vars(model[0])  # no hooks are left


def test_a_model_without_a_graph_and_a_wrong_depth(model):
    class Positions(mg.nn.Module):
        def forward(self, x):
            return x.argmax()

    graph = draw_graph(Positions(), inputs=mg.tensor([1.0, 3.0]))
    assert [label for label, *_ in nodes(graph).values()] == ["1"]
    with pytest.raises(ValueError, match=r"\[draw_graph\] depth is -1: give 0 or more levels"):
        draw_graph(model, inputs=mg.ones(3, 4), depth=-1)


def test_names_of_a_module_in_the_graph_of_a_loss(model):
    loss = model(mg.ones(2, 4)).square().mean()
    assert ("2.0.weight", "linear_bias") in edges(draw_graph(loss, model))


def test_shapes_may_be_left_out():
    x = mg.ones(2, 3, requires_grad=True)
    labels = [label for label, *_ in nodes(draw_graph(x.exp().sum(), shapes=False)).values()]
    assert {"exp", "sum"} <= set(labels)


def test_a_graph_with_an_overwritten_value_is_drawn():
    x = mg.ones(2, 3, requires_grad=True)
    y = x * 2
    z = (y * y).sum()
    with mg.no_grad():
        y.zero_()
    labels = {label.split("\n")[0] for label, *_ in nodes(draw_graph(z)).values()}
    assert {"mul", "sum"} <= labels


def test_labels_are_quoted():
    x = mg.tensor(1.0, requires_grad=True)
    assert r'label="a \"b\" c:\\d' in draw_graph(x * 2, {'a "b" c:\\d': x}).source
