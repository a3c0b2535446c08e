"""Fashion-MNIST: a two-layer network on 28x28 pictures of clothes, to 88 % in a few epochs.

    python examples/fashion_mnist.py [FOLDER]

The folder holds the four IDX files of the data set, gzipped or not; without one, that of the Debian
package dataset-fashion-mnist is used.
"""

from __future__ import annotations

import argparse
import gzip
import sys
import time
import zlib
from pathlib import Path

import numpy as np

import minigrad as mg
from minigrad import nn, optim

DEBIAN_FOLDER = Path("/usr/share/datasets/fashion-mnist")
SOURCE = (
    "get the files with `apt install dataset-fashion-mnist`, or from "
    "https://github.com/zalandoresearch/fashion-mnist, and name their folder on the command line"
)
BATCH, LEARNING_RATE, GOAL = 128, 2e-3, 0.88


class DataError(Exception):
    """The data set is missing or damaged."""


# ---- the IDX format ------------------------------------------------------------------------------


def read_idx(path: Path) -> np.ndarray:
    """The array of bytes in an IDX file, gzipped or not.

    The format (http://yann.lecun.com/exdb/mnist): two zero bytes, the type (8: unsigned bytes), the
    number of dimensions; the size of each as a big-endian 32-bit number; the elements in row-major
    order. Raises DataError for anything else.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from error
    if content[:2] == b"\x1f\x8b":
        try:
            content = gzip.decompress(content)
        except (EOFError, OSError, zlib.error) as error:
            raise DataError(f"{path} is damaged: {error}") from error
    if len(content) < 4 or content[:3] != b"\0\0\x08" or content[3] == 0:
        raise DataError(f"{path} is not an IDX file of bytes: it begins with {content[:4]!r}")
    ndim = content[3]
    header = 4 + 4 * ndim
    if len(content) < header:
        raise DataError(f"{path} is truncated in its header")
    shape = [int(n) for n in np.frombuffer(content[4:header], ">u4")]
    expected, found = int(np.prod(shape, dtype=object)), len(content) - header
    if found != expected:
        problem = "is truncated" if found < expected else "is too long"
        raise DataError(f"{path} {problem}: {found} elements where its header says {expected}")
    return np.frombuffer(content, np.uint8, offset=header).reshape(shape)


def find(folder: Path, name: str) -> Path:
    """The file of that name, gzipped or not."""
    for path in (folder / name, folder / f"{name}.gz"):
        if path.exists():
            return path
    raise DataError(f"there is no {name} or {name}.gz in {folder}")


def load(folder: Path, part: str) -> tuple[np.ndarray, np.ndarray]:
    """The images of "train" or "t10k" as rows of 784 floats around 0, and their classes 0..9."""
    images_path = find(folder, f"{part}-images-idx3-ubyte")
    labels_path = find(folder, f"{part}-labels-idx1-ubyte")
    images, labels = read_idx(images_path), read_idx(labels_path)
    if images.ndim != 3 or images.shape[1:] != (28, 28):
        raise DataError(f"{images_path} holds an array of shape {images.shape}, not 28x28 images")
    if labels.shape != images.shape[:1]:
        raise DataError(f"{labels_path}: {labels.shape} labels for {len(images)} images")
    if not len(labels) or labels.max() > 9:
        raise DataError(f"{labels_path} holds no labels, or others than 0..9")
    rows = images.reshape(len(images), 784).astype(np.float32)
    return (rows - 73) / 90, labels.astype(np.int64)  # the training pixels' mean and deviation


# ---- training ------------------------------------------------------------------------------------


def accuracy(model: nn.Module, images: np.ndarray, labels: np.ndarray) -> float:
    """The share of images whose class gets the highest score."""
    with mg.no_grad():
        return float((model(mg.from_numpy(images)).argmax(1).numpy() == labels).mean())


def train(folder: Path, epochs: int, seed: int) -> float:
    """Train with Adam, its rate falling to 0; returns the accuracy on the test images."""
    train_x, train_y = load(folder, "train")
    test_x, test_y = load(folder, "t10k")
    mg.manual_seed(seed)
    rng = np.random.default_rng(seed)
    model = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 10))
    optimizer = optim.Adam(model.parameters())
    reached = 0.0
    for epoch in range(1, epochs + 1):
        start, total = time.perf_counter(), 0.0
        order = rng.permutation(len(train_y))
        for at in range(0, len(order), BATCH):
            done = (epoch - 1 + at / len(order)) / epochs
            optimizer.param_groups[0]["lr"] = LEARNING_RATE * (1 - done)
            chosen = order[at : at + BATCH]
            x, y = mg.from_numpy(train_x[chosen]), mg.from_numpy(train_y[chosen])
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(chosen)
        seconds = time.perf_counter() - start
        reached = accuracy(model, test_x, test_y)
        print(
            f"epoch {epoch}: loss {total / len(order):.4f}, test accuracy {reached:.2%}, "
            f"{seconds:.1f} s",
            flush=True,
        )
    return reached


def main(arguments: list[str] | None = None) -> int:
    """Returns 0, 1 if the accuracy stays below the goal, 2 if the data cannot be read."""
    parser = argparse.ArgumentParser(description="Train a network on Fashion-MNIST.")
    parser.add_argument("folder", nargs="?", type=Path, default=DEBIAN_FOLDER)
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    if options.epochs < 1:
        parser.error("--epochs must be at least 1")
    try:
        reached = train(options.folder, options.epochs, options.seed)
    except DataError as error:
        print(f"fashion_mnist: {error}\n{SOURCE}", file=sys.stderr)
        return 2
    if reached < GOAL:
        print(f"the accuracy is below {GOAL:.0%}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
