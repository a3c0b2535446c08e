"""The class SummaryWriter: logs of scalars, histograms, images and texts for TensorBoard.

It needs the package ``tensorboard`` for the file format: ``pip install "minigrad[tensorboard]"``.
"""

from __future__ import annotations

import io
import socket
import struct
import time
import warnings
import zlib
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from minigrad.runtime.lazy_numpy import np
from minigrad.tape.tensor_base import TensorBase

__all__ = ["SummaryWriter"]


class SummaryWriter:
    """Writer of logs to a directory, with the methods of PyTorch's class that programs use.

    ``log_dir`` is by default ``runs/`` followed by the time, the machine's name and ``comment``. At
    most ``max_queue`` events wait, for at most ``flush_secs`` seconds. A step is an integer.
    ``walltime`` is in seconds since 1970, by default now. Values may be tensors of any library,
    arrays or numbers.

    Raises ImportError without the package tensorboard.

    ::

        with SummaryWriter("runs/first") as writer:
            for step, loss in enumerate(losses):
                writer.add_scalar("loss", loss, step)
    """

    def __init__(
        self,
        log_dir: Any = None,
        comment: str = "",
        purge_step: int | None = None,
        max_queue: int = 10,
        flush_secs: int = 120,
        filename_suffix: str = "",
    ) -> None:
        self._made = _of_package("tensorboard.compat.proto.summary_pb2")
        self._events = _of_package("tensorboard.compat.proto.event_pb2")
        if not log_dir:
            now = time.strftime("%b%d_%H-%M-%S")
            log_dir = Path("runs") / f"{now}_{socket.gethostname()}{comment}"
        self.log_dir = str(log_dir)
        self._options = (max_queue, flush_secs, filename_suffix)
        self._files: dict[str, Any] = {}  # open files by directory
        if purge_step is not None:
            log = self._events.SessionLog(status=self._events.SessionLog.START)
            self._file(self.log_dir).add_event(
                self._events.Event(wall_time=time.time(), step=purge_step, session_log=log)
            )

    def add_scalar(
        self,
        tag: str,
        scalar_value: Any,
        global_step: int | None = None,
        walltime: float | None = None,
        new_style: bool = False,
        double_precision: bool = False,
    ) -> None:
        """Write a number. Tags with the same text before a "/" are shown together."""
        self._write(self._scalar(tag, scalar_value), global_step, walltime)

    def add_scalars(
        self,
        main_tag: str,
        tag_scalar_dict: Mapping[str, Any],
        global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:
        """Write several numbers that are drawn together, each as a separate run."""
        for tag, number in tag_scalar_dict.items():
            run = f"{self.log_dir}/{main_tag.replace('/', '_')}_{tag}"
            self._write(self._scalar(main_tag, number), global_step, walltime, run)

    def add_histogram(
        self,
        tag: str,
        values: Any,
        global_step: int | None = None,
        bins: Any = "tensorflow",
        walltime: float | None = None,
        max_bins: int | None = None,
    ) -> None:
        """Write a histogram of values.

        ``bins`` is NumPy's argument, or by default TensorFlow's bins.

        Raises ValueError if there are no values, or none is finite.
        """
        x = _array(values).ravel().astype(np.float64)
        x = x[np.isfinite(x)]
        if not x.size:
            raise ValueError(f"[add_histogram] {tag} has no finite values")
        edges = _edges() if isinstance(bins, str) and bins == "tensorflow" else bins
        counts, limits = np.histogram(x, edges)
        full = np.flatnonzero(counts)
        first, last = (full[0], full[-1]) if full.size else (0, len(counts) - 1)
        proto = self._made.HistogramProto(
            min=x.min(),
            max=x.max(),
            num=x.size,
            sum=x.sum(),
            sum_squares=x @ x,
            bucket_limit=limits[first : last + 2].tolist(),
            bucket=[0.0, *counts[first : last + 1].tolist()],
        )
        self._write(self._made.Summary.Value(tag=tag, histo=proto), global_step, walltime)

    def add_image(
        self,
        tag: str,
        img_tensor: Any,
        global_step: int | None = None,
        walltime: float | None = None,
        dataformats: str = "CHW",
    ) -> None:
        """Write an image of 1 or 3 channels. Floats are from 0 to 1, uint8 from 0 to 255."""
        pixels = _pixels(_array(img_tensor), dataformats)
        height, width, channels = pixels.shape
        image = self._made.Summary.Image(
            height=height,
            width=width,
            colorspace=channels,
            encoded_image_string=_png(pixels),
        )
        self._write(self._made.Summary.Value(tag=tag, image=image), global_step, walltime)

    def add_images(
        self,
        tag: str,
        img_tensor: Any,
        global_step: int | None = None,
        walltime: float | None = None,
        dataformats: str = "NCHW",
    ) -> None:
        """Write several images of one size as one image, with about eight in a row."""
        x = np.moveaxis(_array(img_tensor), dataformats.upper().index("N"), 0)
        images = [_pixels(image, dataformats.upper().replace("N", "")) for image in x]
        columns = min(8, len(images))
        blank = np.zeros_like(images[0])
        images += [blank] * (-len(images) % columns)
        rows = [images[at : at + columns] for at in range(0, len(images), columns)]
        whole = np.concatenate([np.concatenate(row, 1) for row in rows], 0)
        self.add_image(tag, whole, global_step, walltime, "HWC")

    def add_figure(
        self,
        tag: str,
        figure: Any,
        global_step: int | None = None,
        close: bool = True,
        walltime: float | None = None,
    ) -> None:
        """Write a matplotlib figure, or a list of figures, and close them if ``close`` is True."""
        pyplot = import_module("matplotlib.pyplot")
        figures = figure if isinstance(figure, list) else [figure]
        for one in figures:
            file = io.BytesIO()
            one.savefig(file, format="rgba", dpi=one.dpi)
            width, height = one.canvas.get_width_height()
            pixels = np.frombuffer(file.getvalue(), np.uint8).reshape(height, width, 4)
            self.add_image(tag, pixels[:, :, :3], global_step, walltime, "HWC")
            if close:
                pyplot.close(one)

    def add_text(
        self,
        tag: str,
        text_string: str,
        global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:
        """Write a text, which is shown as Markdown."""
        text = _of_package("tensorboard.plugins.text.metadata")
        proto = _of_package("tensorboard.compat.proto.tensor_pb2")
        shape = _of_package("tensorboard.compat.proto.tensor_shape_pb2").TensorShapeProto
        tensor = proto.TensorProto(
            dtype="DT_STRING",
            string_val=[text_string.encode()],
            tensor_shape=shape(dim=[shape.Dim(size=1)]),
        )
        value = self._made.Summary.Value(
            tag=f"{tag}/text_summary",
            metadata=text.create_summary_metadata(display_name=tag, description=""),
            tensor=tensor,
        )
        self._write(value, global_step, walltime)

    def add_hparams(
        self,
        hparam_dict: Mapping[str, Any],
        metric_dict: Mapping[str, Any],
        hparam_domain_discrete: Any = None,
        run_name: str | None = None,
        global_step: int | None = None,
    ) -> None:
        """Write a run's hyperparameters, as a table, and its metrics."""
        lines = [f"| {name} | {value} |" for name, value in hparam_dict.items()]
        table = "\n".join(["| name | value |", "|---|---|", *lines])
        self.add_text(run_name or "hparams", table, global_step)
        for name, number in metric_dict.items():
            self.add_scalar(name, number, global_step)

    def add_graph(self, model: Any, input_to_model: Any = None, *args: Any, **kwargs: Any) -> None:
        """Warn that nothing is written: :func:`minigrad.draw_graph` draws graphs."""
        warnings.warn(
            "[add_graph] TensorBoard's graphs are not written: mg.draw_graph draws them",
            stacklevel=2,
        )

    def get_logdir(self) -> str:
        """The directory of the logs."""
        return self.log_dir

    def flush(self) -> None:
        """Write waiting events to the files."""
        for file in self._files.values():
            file.flush()

    def close(self) -> None:
        """Write waiting events and close the files. A later call opens new files."""
        for file in self._files.values():
            file.close()
        self._files.clear()

    def __enter__(self) -> SummaryWriter:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _scalar(self, tag: str, number: Any) -> Any:
        x = _array(number)
        if x.size != 1:
            raise ValueError(f"[add_scalar] {tag} has the shape {x.shape}: give one number")
        return self._made.Summary.Value(tag=tag, simple_value=float(x.reshape(())))

    def _write(self, value: Any, step: Any, walltime: float | None, run: str = "") -> None:
        event = self._events.Event(
            wall_time=time.time() if walltime is None else walltime,
            summary=self._made.Summary(value=[value]),
            step=0 if step is None else int(step),
        )
        self._file(run or self.log_dir).add_event(event)

    def _file(self, directory: str) -> Any:
        if directory not in self._files:
            files = _of_package("tensorboard.summary.writer.event_file_writer")
            self._files[directory] = files.EventFileWriter(directory, *self._options)
        return self._files[directory]


def _of_package(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        if (error.name or "").split(".")[0] != "tensorboard":
            raise
        raise ImportError(
            "[SummaryWriter] the package tensorboard is not installed: pip install tensorboard"
        ) from None


def _array(x: Any) -> Any:
    if isinstance(x, TensorBase):
        tensor: Any = x
        return tensor.detach().numpy()
    return np.asarray(x)


def _edges() -> Any:
    """The bins of TensorFlow's histograms: each is a tenth wider than the next one towards 0."""
    positive = 1e-12 * 1.1 ** np.arange(774)  # to 1e20
    return np.concatenate([[-np.inf], -positive[::-1], [0.0], positive, [np.inf]])


def _pixels(x: Any, order: str) -> Any:
    """An image as an array (height, width, 1 or 3) of uint8."""
    order = order.upper()
    if x.ndim != len(order) or not set(order) <= set("HWC"):
        raise ValueError(f"[add_image] the shape {x.shape} is not {order}, which dataformats says")
    if "C" not in order:
        x, order = x[..., None], order + "C"
    x = x.transpose([order.index(axis) for axis in "HWC"])
    if x.shape[2] not in (1, 3):
        raise ValueError(f"[add_image] {x.shape[2]} channels: give 1 or 3")
    return x if x.dtype == np.uint8 else (x * 255).clip(0, 255).astype(np.uint8)


def _png(pixels: Any) -> bytes:
    """A PNG file, of lines without a filter (PNG specification, sections 9 and 11.2)."""
    height, width, channels = pixels.shape
    lines = np.zeros((height, 1 + width * channels), np.uint8)
    lines[:, 1:] = pixels.reshape(height, -1)
    header = struct.pack(">IIBBBBB", width, height, 8, 0 if channels == 1 else 2, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(lines.tobytes())), (b"IEND", b""))
    parts = [b"\x89PNG\r\n\x1a\n"]
    for kind, content in chunks:
        parts += [struct.pack(">I", len(content)), kind, content]
        parts.append(struct.pack(">I", zlib.crc32(kind + content)))
    return b"".join(parts)
