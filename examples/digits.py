"""Handwritten digits: train a small network on scikit-learn's 8x8 images in a few seconds.

    python -m pip install '.[examples]'
    python examples/digits.py

Four fifths of the 1797 images are trained on, in shuffled minibatches; the rest says how good the
network is. A picture of the learning curve and of some mistakes is written, and the time per epoch
is compared with the same network whose gradients are written out by hand in NumPy.
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import Any, NamedTuple

import numpy as np

import minigrad as mg
from minigrad import nn, optim

BATCH, HIDDEN, CLASSES = 64, 256, 10
LEARNING_RATE, MOMENTUM, NOISE = 0.15, 0.9, 0.2
GOAL = 0.97


class Data(NamedTuple):
    """Images as rows of 64 numbers in [0, 1], and the digits they show."""

    train_x: np.ndarray
    train_y: np.ndarray
    test_x: np.ndarray
    test_y: np.ndarray


class Result(NamedTuple):
    """The results of a training."""

    model: Any
    losses: list[float]  # the mean loss of each epoch
    accuracies: list[float]  # on the held-out images, after each epoch
    seconds: list[float]  # of training, per epoch


def load(seed: int) -> Data:
    """The images, shuffled, a fifth of them held out."""
    from sklearn.datasets import load_digits

    digits = load_digits()
    order = np.random.default_rng(seed).permutation(len(digits.target))
    x = (digits.data[order] / 16.0).astype(np.float32)
    y = digits.target[order].astype(np.int64)
    held_out = len(y) // 5
    return Data(x[held_out:], y[held_out:], x[:held_out], y[:held_out])


def batches(data: Data, rng: np.random.Generator) -> list[tuple[np.ndarray, np.ndarray]]:
    """The training images in random order, in minibatches, with fresh noise against overfitting."""
    order = rng.permutation(len(data.train_y))
    noisy = data.train_x + NOISE * rng.standard_normal(data.train_x.shape, np.float32)
    parts = [order[start : start + BATCH] for start in range(0, len(order), BATCH)]
    return [(noisy[part], data.train_y[part]) for part in parts]


# ---- with minigrad -------------------------------------------------------------------------------


def make_model() -> nn.Sequential:
    """64 pixels, a hidden layer, 10 scores."""
    return nn.Sequential(nn.Linear(64, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, CLASSES))


def predict(model: nn.Module, images: np.ndarray) -> np.ndarray:
    """The digit with the highest score, for each image."""
    with mg.no_grad():
        return model(mg.from_numpy(images)).argmax(1).numpy()


def train(data: Data, epochs: int, seed: int, progress: bool = True) -> Result:
    """Minibatch SGD with momentum. The same seed gives the same result."""
    mg.manual_seed(seed)
    rng = np.random.default_rng(seed)
    model = make_model()
    optimizer = optim.SGD(model.parameters(), lr=LEARNING_RATE, momentum=MOMENTUM)
    result = Result(model, [], [], [])
    bar = _progress_bar(epochs, progress)
    for _ in bar:
        epoch = [(mg.from_numpy(x), mg.from_numpy(y)) for x, y in batches(data, rng)]
        total, start = 0.0, time.perf_counter()
        for x, y in epoch:
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(y)
        result.seconds.append(time.perf_counter() - start)
        result.losses.append(total / len(data.train_y))
        result.accuracies.append(float((predict(model, data.test_x) == data.test_y).mean()))
        if progress:
            bar.set_postfix(
                loss=f"{result.losses[-1]:.4f}", accuracy=f"{result.accuracies[-1]:.2%}"
            )
    return result


def _progress_bar(epochs: int, shown: bool) -> Any:
    if not shown:
        return range(epochs)
    from tqdm import tqdm

    return tqdm(range(epochs), desc="training", unit="epoch")


# ---- by hand -------------------------------------------------------------------------------------


def train_by_hand(data: Data, epochs: int, seed: int, start: list[np.ndarray]) -> list[float]:
    """The same training with the gradients written out in NumPy; returns the seconds per epoch.

    ``start`` holds the parameters, which are changed in place.
    """
    rng = np.random.default_rng(seed)
    w1, b1, w2, b2 = start
    momenta = [np.zeros_like(p) for p in start]
    seconds = []
    for _ in range(epochs):
        epoch = batches(data, rng)
        total, began = 0.0, time.perf_counter()
        for x, y in epoch:
            n = np.arange(len(y))
            h = np.maximum(x @ w1.T + b1, 0)
            scores = h @ w2.T + b2
            scores -= scores.max(1, keepdims=True)
            log_p = scores - np.log(np.exp(scores).sum(1, keepdims=True))
            total -= float(log_p[n, y].sum())

            d_scores = np.exp(log_p)  # of the loss: softmax minus one-hot, over the batch
            d_scores[n, y] -= 1
            d_scores /= len(y)
            d_h = d_scores @ w2
            d_h[h <= 0] = 0
            gradients = d_h.T @ x, d_h.sum(0), d_scores.T @ h, d_scores.sum(0)
            for p, m, g in zip(start, momenta, gradients, strict=True):
                m *= MOMENTUM
                m += g
                p -= LEARNING_RATE * m
        seconds.append(time.perf_counter() - began)
    return seconds


# ---- the picture ---------------------------------------------------------------------------------


def save_picture(path: str, data: Data, result: Result) -> None:
    """The learning curve, and up to ten held-out images that were taken for another digit."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    predicted = predict(result.model, data.test_x)
    mistakes = np.flatnonzero(predicted != data.test_y)[:10]
    figure = plt.figure(figsize=(10, 4), layout="constrained")
    curve, images = figure.subfigures(1, 2)
    left = curve.subplots()
    left.plot(result.losses, color="tab:blue")
    left.set(xlabel="epoch", yscale="log")
    left.set_ylabel("mean training loss", color="tab:blue")
    right = left.twinx()
    right.plot(result.accuracies, color="tab:orange")
    right.set_ylabel("held-out accuracy", color="tab:orange")
    images.suptitle(f"mistakes: {int((predicted != data.test_y).sum())} of {len(predicted)}")
    for axes, place in zip(images.subplots(2, 5).flat, [*mistakes, *[None] * 10], strict=False):
        axes.axis("off")
        if place is not None:
            axes.imshow(data.test_x[place].reshape(8, 8), cmap="gray_r")
            axes.set_title(f"{data.test_y[place]}, not {predicted[place]}", fontsize=9)
    figure.savefig(path, dpi=100)
    plt.close(figure)


# ---- the program ---------------------------------------------------------------------------------


def main(arguments: list[str] | None = None) -> int:
    """Train, compare, draw. Returns 1 if the accuracy stays below the goal."""
    parser = argparse.ArgumentParser(description="Train a network on 8x8 handwritten digits.")
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", default="digits.png", help="where the picture is written")
    parser.add_argument("--no-plot", action="store_true", help="write no picture")
    options = parser.parse_args(arguments)
    if options.epochs < 1:
        parser.error("--epochs must be at least 1")

    data = load(options.seed)
    mg.manual_seed(options.seed)
    start = [p.detach().numpy().copy() for p in make_model().parameters()]
    result = train(data, options.epochs, options.seed)
    by_hand = train_by_hand(data, options.epochs, options.seed, start)

    accuracy = result.accuracies[-1]
    ours, numpys = (1e3 * float(np.median(times)) for times in (result.seconds, by_hand))
    print(f"accuracy on {len(data.test_y)} held-out images: {accuracy:.2%}")
    print(
        f"time per epoch (median): minigrad {ours:.1f} ms, NumPy by hand {numpys:.1f} ms, "
        f"{numpys / ours:.2f} times as long"
    )
    if not options.no_plot:
        save_picture(options.out, data, result)
        print(f"the learning curve and some mistakes: {options.out}")
    if accuracy < GOAL:
        print(f"the accuracy is below {GOAL:.0%}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
