"""minigrad.tutorial.draw: what the picture says."""

from __future__ import annotations

import builtins
import re
import shutil
from pathlib import Path

import pytest

import minigrad as mg
from minigrad.tutorial.draw import draw_graph
from minigrad.tutorial.scalar import Value
from minigrad.tutorial.variable import Variable

graphviz = pytest.importorskip("graphviz", reason="the package graphviz is not installed")


def nodes(graph):
    """Name -> (label, color, shape)."""
    found = {}
    for line in re.split(r"\n(?=\t)", graph.source):
        match = re.match(r"\t\"?(\w+)\"? \[label=(\"[^\"]*\"|\S+) ?(.*)\]", line.strip("\n"))
        if match:
            name, label, style = match.groups()
            color = re.search(r"fillcolor=(\w+)", style)
            shape = re.search(r"shape=(\w+)", style)
            found[name] = (label.strip('"'), color and color[1], shape and shape[1])
    return found


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
    assert isinstance(graph, graphviz.Digraph)
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
    assert "(2, 3)" in labels
    assert "constant (4,)" in labels


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


def test_the_package_graphviz_is_asked_for(monkeypatch):
    real = builtins.__import__

    def without_graphviz(name, *args, **kwargs):
        if name == "graphviz":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without_graphviz)
    with pytest.raises(ImportError, match=r"pip install graphviz.*dot"):
        draw_graph(mg.ones(1))


@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz's dot is not installed")
def test_a_picture_is_written(tmp_path):
    x = mg.tensor(2.0, requires_grad=True)
    path = draw_graph(x * x + 1).render(str(tmp_path / "graph"), format="png")
    assert Path(path).read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
