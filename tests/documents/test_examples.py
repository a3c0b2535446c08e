"""The examples: what they read, what they learn and how they fail."""

from __future__ import annotations

import gzip
import importlib.util
import re
import struct
import sys
from pathlib import Path

import numpy as np
import pytest

EXAMPLES = Path(__file__).parent.parent.parent / "examples"

pytestmark = pytest.mark.usefixtures("restore_random")  # they seed the global generator


def load_example(name):
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def fashion():
    return load_example("fashion_mnist")


@pytest.fixture(scope="module")
def digits():
    return load_example("digits")


# ---- IDX files -----------------------------------------------------------------------------------


def idx(array, code=8):
    """The content of an IDX file."""
    shape = b"".join(struct.pack(">I", n) for n in array.shape)
    return bytes([0, 0, code, array.ndim]) + shape + array.tobytes()


@pytest.mark.parametrize("shape", [(5,), (2, 3, 4), (0,), (3, 0)])
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_idx_files_are_read(fashion, tmp_path, shape, pack):
    array = np.arange(np.prod(shape), dtype=np.uint8).reshape(shape)
    path = tmp_path / "file"
    path.write_bytes(pack(idx(array)))
    found = fashion.read_idx(path)
    assert found.dtype == np.uint8
    np.testing.assert_array_equal(found, array)
    assert found.shape == shape


WHOLE = idx(np.arange(12, dtype=np.uint8).reshape(3, 4))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not an IDX file"),
        (b"\0\0\x08", "not an IDX file"),
        (b"PNG file", "not an IDX file"),
        (b"\0\0\x0d" + WHOLE[3:], "not an IDX file"),  # floats
        (b"\0\0\x08\0", "not an IDX file"),  # no dimensions
        (WHOLE[:7], "truncated in its header"),
        (WHOLE[:-1], "is truncated: 11 elements where its header says 12"),
        (WHOLE + b"\0", "is too long: 13 elements"),
        (b"\0\0\x08\x03" + b"\xff" * 12 + b"\0", "is truncated"),  # a size beyond any memory
        (gzip.compress(WHOLE)[:-9], "is damaged"),
        (gzip.compress(WHOLE)[:12] + b"\xff\xff\xff" + gzip.compress(WHOLE)[15:], "is damaged"),
        (gzip.compress(WHOLE[:-1]), "is truncated: 11"),
    ],
)
def test_a_damaged_idx_file_is_explained(fashion, tmp_path, content, message):
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(fashion.DataError, match=message) as error:
        fashion.read_idx(path)
    assert str(path) in str(error.value)


def test_a_missing_idx_file_is_named(fashion, tmp_path):
    with pytest.raises(fashion.DataError, match=r"cannot read .*nothing"):
        fashion.read_idx(tmp_path / "nothing")


# ---- Fashion-MNIST -------------------------------------------------------------------------------


def write_data(folder, rng, pack=bytes, suffix=""):
    """A tiny data set in which the first pixels tell the class."""
    for part, count in (("train", 600), ("t10k", 100)):
        labels = rng.integers(0, 10, count).astype(np.uint8)
        images = rng.integers(0, 30, (count, 28, 28)).astype(np.uint8)
        images[np.arange(count), 0, labels] = 255
        for name, array in (("images-idx3-ubyte", images), ("labels-idx1-ubyte", labels)):
            (folder / f"{part}-{name}{suffix}").write_bytes(pack(idx(array)))


def test_fashion_mnist_learns_and_judges_itself(fashion, tmp_path, rng, capsys):
    write_data(tmp_path, rng)
    assert fashion.main([str(tmp_path), "--epochs", "30"]) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith("epoch 30: loss")
    assert fashion.main([str(tmp_path), "--epochs", "1"]) == 1
    assert "below 88%" in capsys.readouterr().err


def test_fashion_mnist_is_reproducible_and_reads_gzip(fashion, tmp_path, rng):
    write_data(tmp_path, rng, gzip.compress, ".gz")
    a, b = (fashion.train(tmp_path, epochs=2, seed=5) for _ in range(2))
    assert a == b


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda folder: (folder / "train-labels-idx1-ubyte").unlink(), "there is no train-labels"),
        (lambda folder: (folder / "t10k-images-idx3-ubyte").write_bytes(b"x" * 50), "not an IDX"),
        (
            lambda folder: (folder / "t10k-labels-idx1-ubyte").write_bytes(
                idx(np.zeros(99, np.uint8))
            ),
            r"99,.* labels for 100 images",
        ),
        (
            lambda folder: (folder / "t10k-labels-idx1-ubyte").write_bytes(
                idx(np.full(100, 10, np.uint8))
            ),
            "others than 0..9",
        ),
        (
            lambda folder: (folder / "train-images-idx3-ubyte").write_bytes(
                idx(np.zeros((600, 8, 8), np.uint8))
            ),
            "not 28x28",
        ),
    ],
)
def test_fashion_mnist_says_what_is_wrong_with_the_data(
    fashion, tmp_path, rng, capsys, damage, message
):
    write_data(tmp_path, rng)
    damage(tmp_path)
    assert fashion.main([str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert re.search(message, error)
    assert "dataset-fashion-mnist" in error


def test_a_folder_that_is_not_there(fashion, tmp_path, capsys):
    assert fashion.main([str(tmp_path / "nowhere")]) == 2
    assert "nowhere" in capsys.readouterr().err


# ---- digits --------------------------------------------------------------------------------------


@pytest.fixture
def data(digits):
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    return digits.load(seed=0)


def test_a_fifth_of_the_digits_is_held_out(data):
    assert data.train_x.shape == (1438, 64)
    assert data.test_x.shape == (359, 64)
    assert data.train_x.max() == 1.0
    assert sorted(set(data.test_y.tolist())) == list(range(10))


def test_digits_learn_in_a_few_epochs_and_reproducibly(digits, data):
    a = digits.train(data, epochs=5, seed=3, progress=False)
    b = digits.train(data, epochs=5, seed=3, progress=False)
    assert a.losses == b.losses
    assert a.losses[-1] < a.losses[0] / 4
    assert a.accuracies[-1] > 0.9


def test_the_gradients_by_hand_train_the_same_network(digits, data):
    import minigrad as mg

    mg.manual_seed(4)
    start = [p.detach().numpy().copy() for p in digits.make_model().parameters()]
    digits.train_by_hand(data, 1, 4, start)
    ours = digits.train(data, 1, 4, progress=False).model
    for p, q in zip(ours.parameters(), start, strict=True):
        np.testing.assert_allclose(p.detach().numpy(), q, rtol=2e-3, atol=2e-3)


def test_the_picture_is_written(digits, data, tmp_path):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    result = digits.train(data, epochs=1, seed=0, progress=False)
    path = tmp_path / "digits.png"
    digits.save_picture(str(path), data, result)
    assert path.read_bytes().startswith(b"\x89PNG\r\n\x1a\n")


def test_the_program_judges_its_accuracy(digits, data, capsys):
    pytest.importorskip("tqdm", reason="tqdm is not installed")
    assert digits.main(["--epochs", "1", "--no-plot"]) == 1
    out = capsys.readouterr()
    assert "time per epoch (median): minigrad" in out.out
    assert "NumPy by hand" in out.out
    assert "below 97%" in out.err


def test_the_rod_is_found_through_its_steady_state():
    rod = load_example("steady_state")
    found = rod.fit(rod.measured())
    assert found.conductivity == pytest.approx(rod.CONDUCTIVITY, rel=0.05)
    assert found.heating == pytest.approx(rod.HEATING, rel=0.05)
    assert found.losses[-1] < 2 * rod.NOISE**2 < found.losses[0] / 100


def test_compiled_training_gives_the_same_losses():
    example = load_example("compiled_training")
    eager, compiled = (example.train(how, steps=200) for how in (False, True))
    assert eager.losses == compiled.losses
    assert sum(eager.losses[-10:]) < sum(eager.losses[:10])
