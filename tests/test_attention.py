"""Scaled dot-product attention against its definition in NumPy, with every argument."""

from __future__ import annotations

import math

import numpy as np
import oracle
import pytest

import minigrad as mg
from minigrad.nn import functional as F

attention = F.scaled_dot_product_attention


def reference(q, k, v, mask=None, is_causal=False, scale=None):
    """By the definition, in a wider type; rows without a key give zeros."""
    to = oracle.wide(q.dtype)
    q, k, v = q.astype(to), k.astype(to), v.astype(to)
    scores = q @ np.swapaxes(k, -1, -2) * (1 / np.sqrt(q.shape[-1]) if scale is None else scale)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask
    if is_causal:
        scores = np.where(np.tri(*scores.shape[-2:], dtype=bool), scores, -np.inf)
    top = scores.max(-1, keepdims=True, initial=-np.inf)
    shares = np.exp(scores - np.where(np.isfinite(top), top, 0))
    total = shares.sum(-1, keepdims=True)
    return np.divide(shares, total, out=np.zeros_like(shares), where=total > 0) @ v


SHAPES = [  # query, key, value
    ((3, 4), (5, 4), (5, 2)),
    ((2, 4, 3), (2, 4, 3), (2, 4, 3)),
    ((2, 2, 3, 4), (2, 2, 5, 4), (2, 2, 5, 1)),
    ((2, 3, 4), (5, 4), (1, 5, 2)),
    ((0, 4), (5, 4), (5, 2)),
    ((3, 4), (0, 4), (0, 2)),
    ((0, 3, 4), (0, 5, 4), (0, 5, 2)),
]
OPTIONS = [
    {},
    {"is_causal": True},
    {"scale": 0.3},
    {"mask": "bool"},
    {"mask": "float"},
    {"mask": "bool", "is_causal": True, "scale": 2.0},
]


def mask_of(rng, kind, shape):
    if kind == "bool":
        return rng.random(shape) < 0.5
    return np.where(rng.random(shape) < 0.5, rng.standard_normal(shape), -np.inf)


@pytest.mark.parametrize("shapes", SHAPES)
@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_attention_is_its_definition(rng, shapes, options, dtype):
    q, k, v = (rng.standard_normal(s).astype(dtype) for s in shapes)
    rest = dict(options)
    kind = rest.pop("mask", None)
    mask = None
    if kind:
        mask = mask_of(rng, kind, (shapes[0][-2], shapes[1][-2]))
        mask = mask if kind == "bool" else mask.astype(dtype)
    y = attention(*map(mg.tensor, (q, k, v)), None if mask is None else mg.tensor(mask), **rest)
    expected = reference(q, k, v, mask, **rest)
    assert y.dtype == dtype
    tolerance = 30 * np.finfo(dtype).eps
    np.testing.assert_allclose(y.numpy(), expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("options", OPTIONS)
def test_gradients(rng, options):
    rest = dict(options)
    kind = rest.pop("mask", None)
    mask = mask_of(rng, kind, (3, 4)) if kind else None
    if mask is not None:
        mask[1] = False if kind == "bool" else -np.inf  # a query that sees nothing
    given = None if mask is None else mg.tensor(mask)
    inputs = [rng.standard_normal(s) for s in ((3, 2), (4, 2), (4, 2))]
    oracle.check_gradients(lambda *qkv: attention(*qkv, given, **rest), inputs, rng)


def test_an_added_mask_has_a_gradient(rng):
    q, k, v = (mg.tensor(rng.standard_normal((2, 3, 2))) for _ in range(3))
    oracle.check_gradients(lambda m: attention(q, k, v, m), [rng.standard_normal((3, 3))], rng)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("mask", [False, -math.inf])
def test_a_query_that_sees_nothing_gets_zeros_and_gives_zero_gradients(rng, dtype, mask):
    q, k, v = (mg.tensor(rng.standard_normal((2, 2)).astype(dtype)) for _ in range(3))
    for t in (q, k, v):
        t.requires_grad_(True)
    y = attention(q, k, v, mg.tensor(np.full((2, 2), mask)))
    assert y.tolist() == [[0.0, 0.0], [0.0, 0.0]]
    firsts = mg.grad((y * y + y).sum(), [q, k, v], create_graph=True)
    for g in firsts:
        assert g.dtype == dtype
        assert not g.detach().numpy().any()
    for gg in mg.grad(sum((g * g + g).sum() for g in firsts), [q, k, v]):
        assert not gg.numpy().any()


def test_heads_of_a_group_share_keys_and_values(rng):
    q, k, v = (rng.standard_normal(s) for s in ((2, 6, 3, 4), (2, 2, 5, 4), (2, 3, 5, 2)))
    y = attention(*map(mg.tensor, (q, k, v)), enable_gqa=True)
    expected = reference(q, np.repeat(k, 3, 1), np.repeat(v, 2, 1))
    np.testing.assert_allclose(y.numpy(), expected, atol=1e-14)
    small = [rng.standard_normal(s) for s in ((4, 1, 2), (2, 2, 2), (2, 2, 1))]
    oracle.check_gradients(lambda *qkv: attention(*qkv, enable_gqa=True), small, rng)


def test_masked_keys_do_not_matter(rng):
    q, v = mg.tensor(rng.standard_normal((2, 3))), mg.tensor(rng.standard_normal((3, 2)))
    k = rng.standard_normal((3, 3))
    mask = mg.tensor([True, True, False])
    expected = attention(q, mg.tensor(k), v, mask).tolist()
    k[2] = math.nan
    bad = mg.tensor(k, requires_grad=True)
    y = attention(q, bad, v, mask)
    assert y.tolist() == expected
    y.sum().backward()
    assert np.isfinite(bad.grad.numpy()[:2]).all()
    assert not bad.grad.numpy()[2].any()


def test_large_scores_do_not_overflow():
    q = mg.tensor([[1e4]], requires_grad=True)
    y = attention(q, mg.tensor([[1e4], [-1e4]]), mg.tensor([[1.0], [2.0]]), scale=1.0)
    assert y.tolist() == [[1.0]]
    assert mg.grad(y.sum(), [q])[0].tolist() == [[0.0]]


@pytest.mark.usefixtures("restore_random")
def test_weights_are_dropped(rng):
    mg.manual_seed(0)
    q, k = mg.zeros(50, 2), mg.zeros(40, 2)
    y = attention(q, k, mg.ones(40, 1), dropout_p=0.5).numpy()
    assert len(np.unique(y)) > 5
    assert abs(y.mean() - 1.0) < 0.1


Q = mg.ones(2, 3, 4)
MESSAGES = [
    (lambda: attention(mg.ones(4), Q, Q), ValueError, "query has shape (4,), but needs two"),
    (lambda: attention(Q, mg.ones(2, 3, 5), Q), ValueError, "query (2, 3, 4), key (2, 3, 5) and"),
    (lambda: attention(Q, Q, mg.ones(2, 4, 4)), ValueError, "value (2, 4, 4) do not fit"),
    (lambda: attention(Q, Q, Q, mg.ones(2, 2) > 0), ValueError, "attn_mask has shape (2, 2)"),
    (lambda: attention(Q, Q, Q, mg.ones(2, 2)), ValueError, "attn_mask has shape (2, 2)"),
    (lambda: attention(Q, Q, Q, mg.ones(4, 3, 3)), ValueError, "attn_mask has shape (4, 3, 3)"),
    (lambda: attention(Q, Q, Q, mg.arange(3)), TypeError, "offered for floats, not int64"),
    (lambda: attention(Q.to(mg.int64), Q, Q), TypeError, "offered for floats, not int64"),
    (lambda: attention(Q, Q, Q, dropout_p=2.0), ValueError, "p is 2.0"),
    (
        lambda: attention(mg.ones(3, 2, 4), Q, Q, enable_gqa=True),
        ValueError,
        "with enable_gqa the heads of key (2, 3, 4), dimension -3, must divide those of query",
    ),
]


@pytest.mark.parametrize("number", range(len(MESSAGES)))
def test_errors_show_the_values_and_the_rule(number):
    f, kind, text = MESSAGES[number]
    with pytest.raises(kind) as caught:
        f()
    assert text in str(caught.value)
