"""Scaled dot-product attention against its definition in NumPy, with every argument."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import oracle
import pytest

import minigrad as mg
from minigrad import _c
from minigrad.nn import functional as F
from minigrad.ops.attention import attention_weights

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


@pytest.mark.parametrize("keys", [1, 5, 16, 37, 513, 1100])
@pytest.mark.parametrize("queries", [1, 2, 3, 5, 65])
@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_few_queries_are_as_among_many(rng, queries, keys, options, dtype):
    """A query that is alone in a block has scores along the keys, others side by side."""
    many = 80
    q, k, v, g = (
        rng.standard_normal((2, n, d)).astype(dtype)
        for n, d in ((many, 24), (keys, 24), (keys, 7), (many, 7))
    )
    rest = dict(options)
    kind = rest.pop("mask", None)
    mask = None
    if kind:
        mask = mask_of(rng, kind, (keys, many)).T
        mask = mask if kind == "bool" else mask.astype(dtype)
    g[:, queries:] = 0
    results = []
    for n in (queries, many):
        inputs = [mg.tensor(a, requires_grad=True) for a in (q[:, :n], k, v)]
        y = attention(*inputs, None if mask is None else mg.from_numpy(mask[:n]), **rest)
        y.backward(mg.tensor(g[:, :n]))
        grads = [t.grad.numpy() for t in inputs]
        results.append([y.detach().numpy()[:, :queries], grads[0][:, :queries], *grads[1:]])
    tolerance = 100 * np.finfo(dtype).eps
    expected = reference(q[:, :queries], k, v, None if mask is None else mask[:queries], **rest)
    np.testing.assert_allclose(results[0][0], expected, rtol=tolerance, atol=tolerance)
    for few, more in zip(*results, strict=True):
        np.testing.assert_allclose(few, more, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_one_query_and_nan_infinity_and_large_scores(dtype):
    k = np.zeros((40, 1), dtype)
    v = np.arange(40, dtype=dtype)[:, None]
    one = mg.tensor(np.ones((1, 1), dtype))
    assert attention(one, mg.tensor(k), mg.tensor(v)).item() == 19.5
    k[39] = math.nan
    assert math.isnan(attention(one, mg.tensor(k), mg.tensor(v)).item())
    k[:] = -math.inf
    k[33] = 1e30
    assert attention(one, mg.tensor(k), mg.tensor(v)).item() == 33
    q = mg.tensor(np.full((1, 1), 1e18, dtype), requires_grad=True)
    k[:] = 1e18  # all alike, so the shares are: also on the way back
    y = attention(q, mg.tensor(k), mg.tensor(v), scale=1.0)
    assert y.item() == 19.5
    y.backward()
    assert abs(q.grad.item()) <= 1e18 * 100 * np.finfo(dtype).eps


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


# ---- the kernel, over the edges of its blocks ----------------------------------------------------

SIZES = [(1, 1, 1, 1), (65, 3, 5, 2), (70, 600, 33, 17), (130, 1100, 8, 40), (3, 513, 20, 1)]
SIZES += [(64, 64, 32, 32), (37, 23, 9, 18), (200, 200, 16, 8)]


def by_formula(q, k, v, mask=None, is_causal=False, scale=None):
    """The composition, which dropout and masks with a gradient take."""
    scale = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
    return attention_weights(q, k, mask, is_causal, scale) @ v


def values_and_gradients(function, arrays, upstream, *rest, **options):
    inputs = [mg.tensor(x, requires_grad=True) for x in arrays]
    y = function(*inputs, *rest, **options)
    return [y.detach().numpy()] + [g.numpy() for g in mg.grad(y, inputs, mg.tensor(upstream))]


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("mask", [None, "bool", "float", "keys", "queries"])
@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_kernel_agrees_with_the_formula(rng, sizes, mask, is_causal, dtype):
    rows, keys, depth, width = sizes
    shapes = ((2, rows, depth), (2, keys, depth), (2, keys, width), (2, rows, width))
    *arrays, upstream = (rng.standard_normal(s).astype(dtype) for s in shapes)
    arrays[0] *= 3
    drawn = None
    if mask:
        shape = {"keys": (2, 1, keys), "queries": (rows, 1)}.get(mask, (rows, keys))
        drawn = mask_of(rng, "float" if mask == "float" else "bool", shape)
        drawn = mg.tensor(drawn if mask != "float" else drawn.astype(dtype))
    options = {"is_causal": is_causal, "scale": 0.4}
    got = values_and_gradients(attention, arrays, upstream, drawn, **options)
    wide = [a.astype(np.float64) for a in arrays]
    want = values_and_gradients(by_formula, wide, upstream.astype(np.float64), drawn, **options)
    for g, w in zip(got, want, strict=True):
        tolerance = 40 * np.finfo(dtype).eps * max(1.0, abs(w).max())
        np.testing.assert_allclose(g, w, rtol=tolerance, atol=tolerance)


def test_any_strides_and_broadcast_heads(rng):
    q = rng.standard_normal((2, 5, 3, 8))
    k, v = rng.standard_normal((3, 8, 7)), rng.standard_normal((1, 1, 7, 4))
    upstream = rng.standard_normal((2, 3, 5, 4))

    def turned(function):
        return lambda q, k, v: function(q.transpose(1, 2).flip(-1), k.mT, v)

    got = values_and_gradients(turned(attention), (q, k, v), upstream)
    want = values_and_gradients(turned(by_formula), (q, k, v), upstream)
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(g, w, atol=1e-13)


@pytest.mark.parametrize("is_causal", [False, True])
def test_the_same_bits_for_any_number_of_threads(rng, is_causal):
    arrays = [
        rng.standard_normal(s).astype(np.float32) for s in ((2, 130, 40), *2 * [(2, 1500, 40)])
    ]
    upstream = rng.standard_normal((2, 130, 40)).astype(np.float32)
    before = mg.get_num_threads()
    found = []
    try:
        for threads in (1, 2, 3):
            mg.set_num_threads(threads)
            found.append(values_and_gradients(attention, arrays, upstream, is_causal=is_causal))
    finally:
        mg.set_num_threads(before)
    for others in found[1:]:
        for a, b in zip(found[0], others, strict=True):
            oracle.assert_same(a, b)


LENGTH = 8192  # the scores of so many queries and keys are 256 MB
PEAK = f"""
import sys
from pathlib import Path
import minigrad as mg
from minigrad.nn.functional import scaled_dot_product_attention as attention

def status(field):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(field + ":"))

def step(length):
    q, k, v = (mg.full((length, 8), 0.5, requires_grad=True) for _ in range(3))
    attention(q, k, v, is_causal=sys.argv[1] == "causal").sum().backward()
    return v.grad.sum().item()

step(64)
before = status("VmHWM")
total = step({LENGTH})
print(total, status("VmHWM") - before)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the system names no peak")
@pytest.mark.parametrize("kind", ["causal", "all"])
def test_no_matrix_of_scores_is_ever_there(kind, tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", PEAK, kind],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    )
    total, rise = map(float, done.stdout.split())
    assert total == pytest.approx(8 * LENGTH, rel=1e-4)  # each query's shares add up to 1
    assert rise < 4 * LENGTH**2 / 8


def test_close_large_scores_keep_their_shares():
    q, k = mg.tensor([[1e4]], requires_grad=True), mg.tensor([[1e4], [1e4]], requires_grad=True)
    v = mg.tensor([[1.0], [3.0]], requires_grad=True)
    y = attention(q, k, v, scale=1.0)
    assert y.tolist() == [[2.0]]
    assert mg.grad(y.sum(), [v])[0].tolist() == [[0.5], [0.5]]


@pytest.mark.parametrize(
    ("dtype", "bits"),
    [("float32", 0x7FC00001), ("float32", 0xFFC00155), ("float64", 0x7FF00000000007A2)],
)
def test_a_nan_stays_one_whatever_its_low_bits_say(rng, dtype, bits):
    """They are an exponent to what makes powers of two; the last is R's missing value."""
    q, k, v = rng.standard_normal((3, 20, 4)).astype(dtype)
    q.view(f"u{q.itemsize}")[5, 1] = bits
    y = attention(mg.tensor(q), mg.tensor(k), mg.tensor(v)).numpy()
    assert np.isnan(y).any(-1).nonzero()[0].tolist() == [5]
    assert np.isnan(y[5]).all()


def test_a_zero_gradient_passes_a_query_of_nan():
    q = mg.tensor([[math.nan], [1.0]], requires_grad=True)
    k = mg.tensor([[1.0], [2.0]], requires_grad=True)
    y = attention(q, k, mg.tensor([[1.0], [3.0]]))
    assert np.isnan(y.detach().numpy()[:, 0]).tolist() == [True, False]
    by_q, by_k = mg.grad(y[1].sum(), [q, k])
    assert by_q[0].tolist() == [0.0]
    assert by_q[1].item() > 0
    assert by_k.shape == (2, 1)


@pytest.mark.parametrize("which", [0, 1, 2, 3])
def test_what_was_overwritten_is_noticed(rng, which):
    q, k, v = (mg.tensor(rng.standard_normal((3, 2)), requires_grad=True) for _ in range(3))
    held = [(x * 1.0) for x in (q, k, v)]
    y = attention(*held)
    with mg.no_grad():
        [*held, y][which].fill_(0.0)
    with pytest.raises(RuntimeError, match="overwritten"):
        y.sum().backward()


def test_results_lie_in_memory_as_the_operands_do(rng):
    """Heads that were split off a row are put together again without a copy."""
    batch, length, heads, depth = 2, 70, 3, 8
    rows = mg.tensor(rng.standard_normal((batch, length, heads * depth)), requires_grad=True)
    x = rows.reshape(batch, length, heads, depth).transpose(1, 2)
    y = attention(x, x.clone(), x.clone(), is_causal=True)
    upstream = mg.tensor(rng.standard_normal(y.shape))
    assert y.transpose(1, 2).is_contiguous()
    plain = x.detach().clone().requires_grad_()
    z = attention(plain, x.detach().clone(), x.detach().clone(), is_causal=True)
    assert z.is_contiguous()
    oracle.assert_same(y.detach().numpy(), z.detach().numpy())
    y = attention(x, x.detach().clone(), x.detach().clone(), is_causal=True)
    (by_x,), (by_plain,) = mg.grad(y, [x], upstream), mg.grad(z, [plain], upstream)
    assert by_x.transpose(1, 2).is_contiguous()
    assert by_plain.is_contiguous()
    oracle.assert_same(by_x.numpy(), by_plain.numpy())


# Queries, keys and values (2, 3, 5, 4) cut from one tensor, as its shape and by what function.
PROJECTIONS = {
    "parts of a row": (
        (2, 5, 36),
        lambda x: [part.reshape(2, 5, 3, 4).transpose(1, 2) for part in x.split(12, 2)],
    ),
    "a dimension of three": (
        (2, 5, 36),
        lambda x: x.reshape(2, 5, 3, 3, 4).permute(2, 0, 3, 1, 4).unbind(),
    ),
    "in each head": (
        (2, 5, 36),
        lambda x: x.reshape(2, 5, 3, 12).transpose(1, 2).split(4, -1),
    ),
    "one after the other": ((3, 2, 3, 5, 4), lambda x: x.unbind()),
    "the last first": ((3, 2, 3, 5, 4), lambda x: [x[2], x[1], x[0]]),
    "with more beside": ((4, 2, 3, 5, 4), lambda x: [x[0], x[1], x[2]]),
    "with gaps": ((5, 2, 3, 5, 4), lambda x: [x[0], x[2], x[4]]),
    "overlapping": ((4, 3, 5, 4), lambda x: [x[0:2], x[1:3], x[2:4]]),
    "one of them twice": ((2, 2, 3, 5, 4), lambda x: [x[0], x[1], x[1]]),
}
WITHOUT_COPY = ("parts of a row", "a dimension of three", "in each head", "one after the other")


@pytest.mark.parametrize("name", PROJECTIONS)
def test_gradients_of_one_projection_are_put_together(rng, name):
    shape, cut = PROJECTIONS[name]
    x = mg.tensor(rng.standard_normal(shape), requires_grad=True)
    upstream = mg.tensor(rng.standard_normal((2, 3, 5, 4)))
    copies = []

    def watch(kernel, args, made):
        if kernel.__name__ in ("mg_write", "mg_copy"):
            copies.append(kernel.__name__)

    y = attention(*cut(x * 1), is_causal=True)
    with _c.trace(watch):
        (got,) = mg.grad(y, x, upstream)
    (want,) = mg.grad(attention(*[p.clone() for p in cut(x)], is_causal=True), x, upstream)
    np.testing.assert_allclose(got.numpy(), want.numpy(), atol=1e-13)
    assert (not copies) == (name in WITHOUT_COPY)
    x.grad = None
    attention(*cut(x), is_causal=True).backward(upstream)
    np.testing.assert_allclose(x.grad.numpy(), want.numpy(), atol=1e-13)
    assert x.grad.is_contiguous()
