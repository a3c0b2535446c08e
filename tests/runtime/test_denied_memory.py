"""Every operation where there is no memory for one of its blocks: an error, and nothing else.

``mg_deny_blocks`` takes away the n-th block that C asks for, for every n until none is missing. A
call that fails raises MemoryError, holds nothing, has written nothing, and gives the same result
when it is called again.
"""

from __future__ import annotations

import contextlib
import copy
import gc

import numpy as np
import pytest
from samples import CATALOGUE
from samples.base import CONSTANTS

import minigrad as mg
import minigrad.nn.functional as F
from minigrad._c import lib
from minigrad.nn.functional.recurrent import layer_steps

ALL = {f"{name}-{k}": s for name, samples in CATALOGUE.items() for k, s in enumerate(samples)}
LAST = 1 << 60


@contextlib.contextmanager
def without(first, last):
    """Without the blocks of these numbers."""
    lib.mg_deny_blocks(first, last)
    try:
        yield
    finally:
        lib.mg_deny_blocks(1, 0)


def blocks_of(action):
    """How many blocks an action asks for."""
    with without(LAST, LAST):
        action()
        return lib.mg_deny_blocks(LAST, LAST)


def bits(results):
    return [
        (y.shape, y.detach().numpy().tobytes()) if isinstance(y, mg.Tensor) else repr(y)
        for y in results
    ]


def attempt(action, first, last):
    """The result of the action without these blocks and "", or None and the MemoryError's text."""
    with without(first, last):
        try:
            return action(), ""
        except MemoryError as error:
            return None, str(error)


def each_block(action):
    """The blocks that ``action`` asks for: each alone, and all from each on."""
    action()  # what is kept for good, is kept now
    count = blocks_of(action)
    for n in range(1, count + 1):
        yield n, n
        yield n, LAST


@pytest.fixture(autouse=True, scope="module")
def no_garbage_of_others():
    """Collect what earlier tests left now: a collection later would change the count."""
    gc.collect()


def forgetful(action):
    """The action, after which the catalogue does not hold what a sample made for itself."""

    def run():
        made = len(CONSTANTS)
        try:
            return action()
        finally:
            del CONSTANTS[made:]

    return run


def fails_everywhere(action, inputs):
    action = forgetful(action)
    expected, kept = bits(action()), bits(inputs)
    before = lib.mg_live_bytes()
    for first, last in each_block(action):
        result, told = attempt(action, first, last)
        where = f"block {first} to {last}: {told}"
        if result is None:
            assert told.startswith("["), where
        else:
            assert last == first, "an action that asks for memory went on without any"
            assert bits(result) == expected, where
            result = None
        assert lib.mg_live_bytes() == before, where
        assert bits(inputs) == kept, where
    assert bits(action()) == expected


def differentiable(y):
    return isinstance(y, mg.Tensor) and y.requires_grad


def derivatives(call, inputs, cotangents):
    """Results, gradients by kernels and by formulas, and gradients of these."""
    results = call(*inputs)
    pairs = [(y, g) for y, g in zip(results, cotangents, strict=True) if differentiable(y)]
    if not pairs:
        return results
    ys, gs = zip(*pairs, strict=True)
    fused = mg.grad(ys, inputs, gs, retain_graph=True)
    formulas = mg.grad(ys, inputs, gs, create_graph=True)
    found = [*results, *fused, *formulas]
    firsts = [g for g in formulas if g.requires_grad]
    if firsts:
        found += mg.grad(firsts, inputs, [mg.ones_like(g) for g in firsts])
    return found


def check_derivatives(call, arrays):
    inputs = [mg.tensor(x).requires_grad_() for x in arrays]
    cotangents = [mg.full_like(y, 1.25) if differentiable(y) else None for y in call(*inputs)]
    fails_everywhere(lambda: derivatives(call, inputs, cotangents), inputs)


@pytest.mark.exhaustive
@pytest.mark.parametrize("title", ALL)
def test_derivatives_of_every_operation(title):
    check_derivatives(ALL[title], ALL[title].inputs())


# One of each family, and those that ask for most blocks of their own.
SOME = (
    *("var-0", "std-0", "var_mean-0", "norm-0", "logsumexp-0", "amax-0", "prod-0", "cumsum-0"),
    *("softmax-0", "sort-0", "topk-0", "matmul-0", "cat-0", "where-0", "gather-0", "mul-0"),
    *("linalg.solve-0", "linalg.svd-1", "det-0", "cdist-0", "index_add-0", "unique-0"),
    *("nn.functional.layer_norm-0", "nn.functional.batch_norm-0", "nn.functional.conv2d-0"),
    *(
        "nn.functional.cross_entropy-0",
        "nn.functional.max_pool2d-0",
        "pow-0",
        "nn.functional.linear-0",
    ),
    "nn.functional.scaled_dot_product_attention-0",
    "nn.functional.gru_steps-0",
    "nn.functional.lstm_steps-0",
)


@pytest.mark.parametrize("title", SOME)
def test_derivatives(title):
    check_derivatives(ALL[title], ALL[title].inputs())


# ---- sizes at which kernels ask for room of their own --------------------------------------------


def drawn(*shape, dtype=np.float64):
    return np.random.default_rng(sum(shape)).uniform(0.5, 1.5, shape).astype(dtype)


ROOMY = {
    "rows": (lambda x: [x.sum(1), x.var(1), x.amax(1), x.logsumexp(1), x.norm(dim=1)], (2, 20_000)),
    "columns": (lambda x: [x.sum(0), x.std(0), x.amin(0), x.logsumexp(0), x.prod(0)], (3000, 3)),
    "groups": (lambda x: [x.var((0, 2)), x.sum((0, 2)), x.amax((0, 2))], (3, 4, 5)),
    "places": (lambda x: [x.argmax(), x.argmin(0), x.argmax(1)], (3, 9000)),
    "expanded": (lambda x: [x.expand(5, 3000, 3).var((0, 1)), x.expand(9000, 3).sum(0)], (1, 3)),
    "softmax": (lambda x: [x.softmax(0), x.log_softmax(1)], (3, 20_000)),
    "columns of softmax": (lambda x: [x.softmax(0), x.log_softmax(0)], (3000, 2)),
    "sort": (lambda x: [*x.sort(0), *x.topk(2, 0), x.median(0), x.argsort(1)], (300, 3)),
    "products": (
        lambda a, b: [a @ b, a.mT @ b.mT, a.mT[::2] @ b.mT[:, ::2]],
        (130, 140),
        (140, 130),
    ),
    "vectors": (lambda a, b: [a @ b, b @ a.mT, a[:, ::2] @ b[::2]], (60, 700), (700,)),
    "linear": (lambda x, w, b: [F.linear(x, w, b)], (40, 90), (60, 90), (60,)),
    "layer_norm": (lambda x, w, b: [F.layer_norm(x, (50,), w, b)], (300, 50), (50,), (50,)),
    "batch_norm": (lambda x: [F.batch_norm(x, None, None, training=True)], (20, 5, 9)),
    "batch_norm of lines": (lambda x: [F.batch_norm(x, None, None, training=True)], (200, 5)),
    "group_norm": (lambda x: [F.group_norm(x, 2)], (3, 4, 30)),
    "conv1d": (lambda x, w: [F.conv1d(x, w, stride=2)], (2, 3, 50), (4, 3, 5)),
    "conv2d": (lambda x, w: [F.conv2d(x, w, padding=1)], (2, 8, 12, 12), (8, 8, 3, 3)),
    "conv2d of planes": (lambda x, w: [F.conv2d(x, w, groups=6)], (2, 6, 20, 20), (6, 1, 3, 3)),
    "conv_transpose": (
        lambda x, w: [F.conv_transpose2d(x, w, stride=2)],
        (2, 4, 6, 6),
        (4, 3, 3, 3),
    ),
    "attention": (
        lambda q, k, v: [F.scaled_dot_product_attention(q, k, v, is_causal=True)],
        *[(2, 3, 70, 8)] * 3,
    ),
    "projected lstm": (
        lambda x, h, c, w, p: [(made := layer_steps("LSTM", x, (h, c), w, p))[0], *made[1]],
        *((2, 3, 8), (3, 1), (3, 2), (8, 1), (1, 2)),
    ),
    "rows by index": (
        lambda x: [x[mg.arange(3000) % 7], x[:, mg.tensor([0, 0, 2])], x[mg.arange(7) % 2 == 0]],
        (7, 5),
    ),
    "systems": (lambda a: [mg.linalg.inv(a @ a.mT + 70 * mg.eye(70, dtype=mg.float64))], (70, 70)),
    "distances": (lambda a, b: [mg.cdist(a, b)], (300, 3), (280, 3)),
}


@pytest.mark.parametrize("name", ROOMY)
def test_derivatives_of_larger_arrays(name):
    call, *shapes = ROOMY[name]
    check_derivatives(call, [drawn(*shape) for shape in shapes])


def test_many_channels_in_float32():
    """Which share products between neighbouring outputs."""
    check_derivatives(
        lambda x, w: [F.conv2d(x, w, padding=1)],
        [drawn(1, 32, 14, 14, dtype=np.float32), drawn(32, 32, 3, 3, dtype=np.float32)],
    )


# ---- what writes ---------------------------------------------------------------------------------


def half(x):
    return mg.arange(len(x)) % 2 == 0


WRITES = {
    "add_": lambda x, v: x.add_(v),
    "mul_ of a view": lambda x, v: x[::2].mul_(v[::2]),
    "an integer": lambda x, v: x.mul_(3),
    "copy_": lambda x, v: x.copy_(v),
    "copy_ over itself": lambda x, v: x[1:].copy_(x[:-1]),
    "copy_ from another dtype": lambda x, v: x.copy_(v.double()),
    "a slice": lambda x, v: x.__setitem__(slice(None, None, 3), v[::3]),
    "places": lambda x, v: x.__setitem__(mg.tensor([3, 1, 1]), v[:3]),
    "a mask": lambda x, v: x.__setitem__(half(x), 2.0),
    "masked_fill_": lambda x, v: x.masked_fill_(half(x), 2.0),
    "index_add_": lambda x, v: x.index_add_(0, mg.tensor([3, 1, 1]), v[:3]),
    "scatter_": lambda x, v: x.scatter_(0, mg.tensor([3, 1, 1]), v[:3]),
    "fill_": lambda x, v: x.fill_(2.0),
    "exp_": lambda x, v: x.exp_(),
}


@pytest.mark.parametrize("name", WRITES)
@pytest.mark.parametrize("on_the_tape", [False, True])
def test_writes_are_whole_or_not_at_all(name, on_the_tape):
    v = mg.tensor(drawn(40, dtype=np.float32), requires_grad=on_the_tape)
    old = mg.tensor(drawn(41, dtype=np.float32)[:40])

    def written(y):
        WRITES[name](y, v)
        return y

    new = bits([written(old.clone())])
    for first, last in each_block(lambda: written(old.clone())):
        y = old.clone()
        made, told = attempt(lambda y=y: written(y), first, last)
        assert bits([y]) in ((new,) if made is not None else (bits([old]), new)), told
        assert not told or told.startswith("["), told


@pytest.mark.parametrize("kind", ["SGD", "Adam", "AdamW", "RMSprop"])
def test_a_step_is_taken_as_a_whole_or_not_at_all(kind):
    def trained():
        ps = [mg.nn.Parameter(mg.tensor(drawn(n, dtype=np.float32))) for n in (5, 300)]
        more = {"momentum": 0.9} if kind in ("SGD", "RMSprop") else {}
        optimizer = getattr(mg.optim, kind)(ps, lr=0.1, **more)
        for p in ps:
            p.grad = mg.tensor(drawn(len(p) + 1, dtype=np.float32)[1:])
        optimizer.step()
        return ps, optimizer

    ps, optimizer = trained()
    before = bits(ps)
    optimizer.step()
    after = bits(ps)
    optimizer.step()
    twice = bits(ps)
    assert before != after
    for first, last in each_block(lambda: trained()[1].step()):
        ps, optimizer = trained()
        _, told = attempt(optimizer.step, first, last)
        if told:
            assert bits(ps) == before, told
            optimizer.step()
        assert bits(ps) == after, "what failed was counted as a step"
        optimizer.step()
        assert bits(ps) == twice


@pytest.mark.parametrize("kind", ["SGD", "Adam", "AdamW", "RMSprop"])
@pytest.mark.parametrize("way", ["own", "strided", "pinned"])
def test_a_step_of_several_groups_is_whole_too(kind, way):
    more = {"momentum": 0.9} if kind in ("SGD", "RMSprop") else {}
    graphs = []

    def trained():
        ps = [mg.nn.Parameter(mg.tensor(drawn(n, dtype=np.float32))) for n in (5, 30, 7, 8)]
        pairs = [{"params": ps[:2]}, {"params": ps[2:], "lr": 0.2}]
        optimizer = getattr(mg.optim, kind)(pairs, lr=0.1, **more)
        for p in ps:
            wide = mg.tensor(drawn(2 * len(p), dtype=np.float32))
            p.grad = wide[::2] if way == "strided" else wide[: len(p)].clone()
        optimizer.step()
        graphs[:] = [p.exp() * p for p in ps if way == "pinned"]
        return ps, optimizer

    ps, optimizer = trained()
    before = bits(ps)
    optimizer.step()
    after = bits(ps)
    for first, last in each_block(lambda: trained()[1].step()):
        ps, optimizer = trained()
        _, told = attempt(optimizer.step, first, last)
        if told:
            assert bits(ps) == before, told
            optimizer.step()
        assert bits(ps) == after, told


def test_backward_gives_all_leaves_their_gradients_or_none():
    leaves = [mg.tensor(drawn(n), requires_grad=True) for n in (3, 1, 3)]

    def backward():
        a, b, c = leaves
        for x in leaves:
            x.grad = None
        ((a * b).exp() * c + a.var()).sum().backward()
        return [x.grad for x in leaves]

    expected = bits(backward())
    for first, last in each_block(backward):
        made, told = attempt(backward, first, last)
        if made is None:
            assert [x.grad for x in leaves] == [None] * 3, told
        else:
            assert bits(made) == expected


MAKERS = {
    "a list": lambda: [mg.tensor([[1.0, 2.0], [3.0, 4.0]])],
    "an array": lambda: [mg.tensor(np.arange(9)), mg.from_numpy(np.ones(3)[::2])],
    "filled": lambda: [
        mg.zeros(3),
        mg.full((2,), 5),
        mg.eye(3),
        mg.arange(5),
        mg.linspace(0, 1, 4),
    ],
    "copies": lambda: [copy.deepcopy(mg.ones(3)), mg.ones(2, 3).mT.contiguous(), mg.ones(3).long()],
    "drawn": lambda: [
        mg.rand(5000, generator=G()),
        mg.randn(3, generator=G()),
        mg.multinomial(mg.ones(4), 2, generator=G()),
    ],
    "questions": lambda: [
        mg.ones(3).isnan().any(),
        mg.ones(3).nonzero(),
        mg.bincount(mg.arange(3)),
    ],
}


def G():
    return mg.Generator().manual_seed(1)


@pytest.mark.parametrize("name", MAKERS)
def test_new_tensors(name):
    fails_everywhere(MAKERS[name], [])
