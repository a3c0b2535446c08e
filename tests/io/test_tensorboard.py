"""Tests of SummaryWriter: what TensorBoard reads of its files, the error without the package."""

from __future__ import annotations

import io
import sys

import numpy as np
import pytest

import minigrad as mg
from minigrad.utils.tensorboard import SummaryWriter


def test_without_the_package_the_error_says_what_to_install(monkeypatch, tmp_path):
    for name in [n for n in sys.modules if n.split(".")[0] == "tensorboard"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    with pytest.raises(
        ImportError, match=r"^\[SummaryWriter\] the package tensorboard is not inst"
    ):
        SummaryWriter(tmp_path)


pytestmark = pytest.mark.usefixtures("restore_random")  # layers draw their weights


@pytest.fixture
def read(tmp_path):
    """Values that TensorBoard finds in a directory below tmp_path, by tag."""
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    def found(below=""):
        return EventAccumulator(str(tmp_path / below), {"images": 0, "histograms": 0}).Reload()

    return found


def test_scalars(read, tmp_path):
    with SummaryWriter(tmp_path, max_queue=2) as writer:
        for step, loss in enumerate([mg.tensor(3.0, requires_grad=True), np.float32(2.5), 1]):
            writer.add_scalar("loss/train", loss, mg.tensor(step), walltime=5.0)
        writer.add_scalars("both", {"a": 1.5, "b": mg.tensor([2])}, 7)
        with pytest.raises(ValueError, match=r"^\[add_scalar\] x has the shape \(2,\): give one"):
            writer.add_scalar("x", [1, 2])
    events = read().Scalars("loss/train")
    assert [(e.wall_time, e.step, e.value) for e in events] == [(5, 0, 3), (5, 1, 2.5), (5, 2, 1)]
    assert [(e.step, e.value) for e in read("both_b").Scalars("both")] == [(7, 2)]


def test_histograms(read, tmp_path):
    x = mg.tensor([[-2.0, 0.5, 0.5], [0.0, 3.0, float("nan")]])
    with SummaryWriter(tmp_path) as writer:
        writer.add_histogram("w", x, 1)
        writer.add_histogram("even", [0.0, 1.0, 2.0, 2.0], 1, bins=2)
        with pytest.raises(ValueError, match=r"^\[add_histogram\] none has no finite values"):
            writer.add_histogram("none", [float("inf")])
    (one,) = read().Histograms("w")
    value = one.histogram_value
    assert (value.min, value.max, value.num, value.sum, value.sum_squares) == (-2, 3, 5, 2, 13.5)
    assert sum(value.bucket) == 5
    assert len(value.bucket) == len(value.bucket_limit)
    (even,) = read().Histograms("even")
    assert even.histogram_value.bucket_limit == [0, 1, 2]
    assert even.histogram_value.bucket == [0, 1, 3]


def test_images(read, tmp_path):
    Image = pytest.importorskip("PIL.Image")
    x = mg.arange(24.0).reshape(2, 3, 2, 2) / 23
    with SummaryWriter(tmp_path) as writer:
        writer.add_image("one", x[0], 3)
        writer.add_images("two", x)
        writer.add_image("grey", np.array([[0, 255]], dtype=np.uint8), dataformats="HW")
        with pytest.raises(ValueError, match=r"^\[add_image\] the shape \(2, 2\) is not CHW"):
            writer.add_image("x", mg.ones(2, 2))
        with pytest.raises(ValueError, match=r"^\[add_image\] 2 channels: give 1 or 3"):
            writer.add_image("x", mg.ones(2, 2, 2))

    def shown(tag):
        (event,) = read().Images(tag)
        return np.asarray(Image.open(io.BytesIO(event.encoded_image_string)))

    wanted = (x.numpy() * 255).astype(np.uint8).transpose(0, 2, 3, 1)
    np.testing.assert_array_equal(shown("one"), wanted[0])
    np.testing.assert_array_equal(shown("two"), np.concatenate(list(wanted), 1))
    np.testing.assert_array_equal(shown("grey"), [[0, 255]])


def test_texts_and_hyperparameters(read, tmp_path):
    with SummaryWriter(tmp_path, purge_step=0) as writer:
        writer.add_text("note", "**bold**", 2)
        writer.add_hparams({"lr": 0.1}, {"accuracy": 0.5})
        with pytest.warns(
            UserWarning, match=r"^\[add_graph\] TensorBoard's graphs are not written"
        ):
            writer.add_graph(mg.nn.Linear(1, 1), mg.ones(1, 1))
        assert writer.get_logdir() == str(tmp_path)
    (note,) = read().Tensors("note/text_summary")
    assert (note.step, note.tensor_proto.string_val) == (2, [b"**bold**"])
    assert b"| lr | 0.1 |" in read().Tensors("hparams/text_summary")[0].tensor_proto.string_val[0]
    assert read().Scalars("accuracy")[0].value == 0.5


def test_figures(read, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.setenv("MPLBACKEND", "Agg")
    from matplotlib import pyplot

    figure = pyplot.figure(figsize=(2, 1), dpi=50)
    with SummaryWriter(tmp_path) as writer:
        writer.add_figure("plot", figure, 1)
    assert not pyplot.fignum_exists(figure.number)
    (event,) = read().Images("plot")
    assert (event.width, event.height) == (100, 50)
