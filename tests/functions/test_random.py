"""Random tensors: NumPy's Philox bit for bit, states that can be kept, distributions, refusals."""

from __future__ import annotations

import ast
import copy
import os
import pickle
import threading

import numpy as np
import oracle
import pytest
from scipy import stats

import minigrad as mg


def numpys(seed):
    return np.random.Generator(np.random.Philox(seed))


@pytest.fixture
def g():
    return mg.Generator().manual_seed(11)


def test_random_is_numpys_philox(restore_random):
    mg.manual_seed(7)
    ours = [
        mg.rand(2, 3),
        mg.randn(4, dtype=mg.float64),
        mg.randint(5, (3,)),
        mg.randint(-2, 2, (2, 2)),
        mg.randperm(9),
        mg.zeros(5).uniform_(-1, 3),
        mg.zeros(5, dtype=mg.float64).normal_(2, 0.5),
        mg.zeros(4).exponential_(2.0),
    ]
    theirs = numpys(7)
    want = [
        theirs.random((2, 3), np.float32),
        theirs.standard_normal(4),
        theirs.integers(0, 5, 3),
        theirs.integers(-2, 2, (2, 2)),
        theirs.permutation(9),
        theirs.random(5, np.float32) * np.float32(4) + np.float32(-1),
        theirs.standard_normal(5) * 0.5 + 2,
        theirs.standard_exponential(4, np.float32) / np.float32(2),
    ]
    for got, expected in zip(ours, want, strict=True):
        oracle.assert_same(got.numpy(), expected)
    mg.manual_seed(7)
    oracle.assert_same(mg.rand(2, 3).numpy(), want[0])


def test_a_state_can_be_kept_and_put_back(restore_random, g):
    mg.manual_seed(3)
    assert mg.initial_seed() == 3
    mg.rand(5)
    state = mg.get_rng_state()
    first = mg.rand(4).tolist()
    mg.set_rng_state(state)
    assert mg.rand(4).tolist() == first
    for other in (g.clone_state(), pickle.loads(pickle.dumps(g)), copy.deepcopy(g)):
        before = g.get_state()
        assert mg.rand(3, generator=other).tolist() == mg.rand(3, generator=g).tolist()
        g.set_state(before)
    assert mg.Generator().initial_seed() != mg.Generator().initial_seed()
    assert g.seed() == g.initial_seed()


def test_a_generator_of_ones_own_leaves_the_shared_one_alone(g):
    mg.rand(3, generator=g)
    mg.randn_like(mg.zeros(3), generator=g)
    mg.bernoulli(mg.full((3,), 0.5), generator=g)


def test_shapes_and_dtypes(g):
    x = mg.zeros(2, 3, dtype=mg.float64)
    for like in (mg.rand_like, mg.randn_like):
        assert (like(x, generator=g).shape, like(x, generator=g).dtype) == ((2, 3), mg.float64)
    assert mg.randint_like(x, 3, generator=g).dtype is mg.float64
    assert mg.rand(2, requires_grad=True, generator=g).requires_grad
    assert mg.rand(generator=g).shape == ()
    assert mg.rand(0, 3, generator=g).shape == (0, 3)
    assert mg.randperm(0, generator=g).shape == (0,)


def test_distributions(g):
    n = 20000
    assert stats.kstest(mg.rand(n, generator=g).numpy(), "uniform").pvalue > 1e-3
    drawn = mg.normal(mg.tensor([1.0, -2.0]).unsqueeze(1).expand(2, n), 3.0, generator=g)
    for row, mean in zip(drawn.numpy(), (1, -2), strict=True):
        assert stats.kstest(row, stats.norm(mean, 3).cdf).pvalue > 1e-3
    assert mg.normal(0.0, 1.0, (2, 3), generator=g).shape == (2, 3)
    share = mg.bernoulli(mg.full((n,), 0.3), generator=g).mean().item()
    assert abs(share - 0.3) < 4 * (0.21 / n) ** 0.5
    assert mg.zeros(n).bernoulli_(0.0, generator=g).sum().item() == 0
    assert mg.bernoulli(mg.ones(n), generator=g).sum().item() == n


@pytest.mark.parametrize("replacement", [False, True])
def test_multinomial(replacement, g):
    weights = mg.tensor([0.0, 1.0, 3.0, 0.0, 4.0, 0.0])
    n = 4000
    first = mg.multinomial(weights.expand(n, 6), 2, replacement, generator=g).numpy()
    assert first.shape == (n, 2)
    counts = np.bincount(first[:, 0], minlength=6)
    assert (counts[[0, 3, 5]] == 0).all()
    assert stats.chisquare(counts[[1, 2, 4]], np.array([1, 3, 4]) * n / 8).pvalue > 1e-3
    assert (first[:, 0] != first[:, 1]).all() != replacement
    assert sorted(mg.multinomial(weights, 3, generator=g).tolist()) == [1, 2, 4]


@pytest.mark.parametrize("size", [1e308, 1.0, 1e-300])
def test_multinomial_of_weights_of_any_size(size, g):
    """Their sum may be beyond what a float holds."""
    weights = mg.tensor(np.array([3.0, 1.0, 0.0, 4.0]) * (size / 4), dtype=mg.float64)
    drawn = mg.multinomial(weights.expand(3, 4), 2000, True, generator=g).numpy()
    counts = np.bincount(drawn.ravel(), minlength=4)
    assert counts[2] == 0
    assert stats.chisquare(counts[[0, 1, 3]], np.array([3, 1, 4]) * 750).pvalue > 1e-3


# ---- forked children -----------------------------------------------------------------------------


def in_a_child(action):
    """Report of a forked child: the repr of what ``action`` gives there."""
    near, far = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.write(far, repr(action()).encode())
        finally:
            os._exit(0)
    os.close(far)
    with os.fdopen(near, "rb") as pipe:
        said = pipe.read()  # until the child has ended
    assert os.waitpid(child, 0)[1] == 0
    return ast.literal_eval(said.decode())


def test_a_child_frees_the_locks_before_it_reads_a_state(restore_random, monkeypatch):
    """NumPy takes its lock to read a state, too: whatever comes first would wait for ever."""
    asked = []

    class Watched:
        def __init__(self, generator):
            self.bit_generator = self
            self.lock = self
            self.name = generator

        def _at_fork_reinit(self):
            asked.append(self.name)

        @property
        def state(self):
            assert asked, "a state is read, which waits for the lock"
            return {}

    mg.manual_seed(3)
    own = mg.Generator().manual_seed(4)
    for generator, name in ((mg.random.default_generator(), "shared"), (own, "own")):
        monkeypatch.setattr(generator, "_numpy", Watched(name))
    mg.random._begin_child()
    assert {"shared", "own"} <= set(asked)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_draws_though_a_thread_was_drawing_when_it_was_forked(restore_random):
    bits = mg.manual_seed(3).numpy.bit_generator
    at_it, done = threading.Event(), threading.Event()

    def draw():
        with bits.lock:
            at_it.set()
            done.wait()

    thread = threading.Thread(target=draw)
    thread.start()
    at_it.wait()

    def attempt():  # it must not wait for a thread that is not there
        free = bits.lock.acquire(blocking=False)
        return free and mg.rand(2).tolist()

    try:
        drawn = in_a_child(attempt)
    finally:
        done.set()
        thread.join()
    assert drawn == mg.rand(2).tolist()


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_children_repeat_the_numbers_of_a_chosen_seed_and_no_other(restore_random, g):
    own = mg.Generator()
    mg.seed()
    drawn = [in_a_child(lambda: mg.rand(3).tolist()) for _ in range(2)]
    assert drawn[0] != drawn[1]
    assert mg.rand(3).tolist() not in drawn
    assert in_a_child(own.initial_seed) != own.initial_seed()
    state = g.get_state()
    mg.manual_seed(5)
    for action in (lambda: mg.rand(3).tolist(), lambda: mg.rand(3, generator=g).tolist()):
        assert in_a_child(action) == in_a_child(action) == action()
    g.set_state(state)


def _other(philox):
    return {**philox, "state": {"counter": philox["state"]["counter"]}}


@pytest.mark.parametrize(
    ("spoil", "error"),
    [
        (lambda seed, philox: {"seed": 0.5, "philox": philox}, TypeError),
        (lambda seed, philox: {"seed": -1, "philox": philox}, ValueError),
        (lambda seed, philox: {"seed": seed, "philox": None}, ValueError),
        (lambda seed, philox: {"seed": seed, "philox": {}}, ValueError),
        (lambda seed, philox: {"seed": seed, "philox": _other(philox)}, ValueError),
        (lambda seed, philox: {"seed": seed, "philox": philox | {"buffer_pos": -3}}, ValueError),
        (lambda seed, philox: {"seed": seed, "philox": philox | {"buffer": [1, 2]}}, ValueError),
        (lambda seed, philox: {"seed": seed, "philox": numpys(3).bit_generator}, ValueError),
    ],
)
def test_what_is_no_state_changes_nothing(spoil, error, g):
    mg.rand(3, generator=g)
    state = g.get_state()
    with pytest.raises(error, match=r"^\[set_state\]"):
        g.set_state(spoil(**g.get_state()))
    assert repr(g.get_state()) == repr(state)


def test_errors(g):
    for wrong, kind, message in (
        (lambda: mg.rand(2, dtype=mg.int64), TypeError, r"\[rand\] draws floats, not int64"),
        (lambda: mg.randint(3, 3, (2,)), ValueError, r"\[randint\] the range \[3, 3\) is empty"),
        (lambda: mg.randint(3), TypeError, r"\[randint\] a size is needed"),
        (lambda: mg.randperm(-1), ValueError, r"\[randperm\] n is -1, but must be at least 0"),
        (lambda: mg.rand(-1), ValueError, r"\[rand\] negative size"),
        (lambda: mg.bernoulli(mg.tensor([1.5])), ValueError, r"probabilities lie in \[0, 1\]"),
        (lambda: mg.bernoulli(mg.tensor([np.nan])), ValueError, r"probabilities lie in \[0, 1\]"),
        (lambda: mg.normal(0.0, -1.0, (2,)), ValueError, "deviation is negative"),
        (lambda: mg.normal(0.0, 1.0), TypeError, "two numbers need a size"),
        (lambda: mg.multinomial(mg.tensor([1.0, 0.0]), 2), ValueError, "use replacement=True"),
        (lambda: mg.multinomial(mg.tensor([1.0, -1.0]), 1), ValueError, "not negative"),
        (lambda: mg.multinomial(mg.zeros(2), 1), ValueError, "a positive weight in each row"),
        (
            lambda: g.manual_seed(-(2**64)),
            ValueError,
            r"\[manual_seed\] seed is -18446744073709551616, but must be",
        ),
        (lambda: mg.zeros(2, dtype=mg.int64).normal_(), TypeError, r"\[normal_\] draws floats"),
        (lambda: mg.zeros(2, requires_grad=True).uniform_(), RuntimeError, "requires grad"),
    ):
        with pytest.raises(kind, match=message):
            wrong()


def test_uniform_values_stay_below_the_end():
    """Where the range has few values, rounding must not reach its end."""
    generator = mg.Generator().manual_seed(0)
    x = mg.zeros(100_000).uniform_(1, 1 + 2**-22, generator=generator)
    assert set(x.tolist()) == {1, 1 + 2**-23}
    assert mg.zeros(3).uniform_(2, 2, generator=generator).tolist() == [2, 2, 2]
    with pytest.raises(ValueError, match=r"\[uniform_\] the range \[0, inf\) is not finite"):
        mg.zeros(2).uniform_(0, float("inf"))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: mg.manual_seed(1.5), r"\[manual_seed\] seed must be an integer, not float"),
        (lambda: mg.Generator().manual_seed(None), "seed must be an integer, not NoneType"),
        (lambda: mg.randint(0.5, 3, (2,)), r"\[randint\] low must be an integer, not float"),
        (lambda: mg.randperm(2.5), r"\[randperm\] n must be an integer, not float"),
        (
            lambda: mg.multinomial(mg.ones(2), 1.5),
            r"\[multinomial\] num_samples must be",
        ),
    ],
)
def test_what_must_be_an_integer(call, message):
    with pytest.raises(TypeError, match=message):
        call()


# ---- extreme words -------------------------------------------------------------------------------

WORDS = [0, 1, 2**64 - 1, 2**63, 2**32 - 1, 2**32, 0x1FF, 0xFFFFFFFF_FFFFF800, 0x00000001_000001FF]


def next_words(word):
    """A generator that gives this word as long as its counter gives out the words it has."""
    generator = mg.Generator().manual_seed(0)
    state = generator.get_state()
    state["philox"]["buffer"] = np.full(4, word, np.uint64)
    state["philox"]["buffer_pos"] = 1  # NumPy 2.5.2 takes no 0
    generator.set_state(state)
    return generator


def within(low, high, closed="both"):
    def check(x):
        assert ((x >= low) & (x <= high)).all()
        if closed == "left":
            assert (x < high).all()
        if closed == "none":
            assert ((x > low) & (x < high)).all()

    return check


def trunc(bounds):
    return lambda x, g: mg.nn.init.trunc_normal_(x, 0.0, 1.0, *bounds, generator=g)


def unlikely(x, g):
    """The weights are 0 but for one in the middle."""
    drawn = mg.multinomial(mg.tensor([0.0, 0.0, 1e-30, 0.0, 0.0]), 3, True, generator=g)
    return mg.cat([drawn, mg.multinomial(mg.tensor([0.0, 1e-30, 0.0]), 1, generator=g) + 1])


FINITE = within(-np.finfo(np.float32).max, np.finfo(np.float32).max)
POSITIVE = within(0, np.inf, "none")
EDGES = {
    "rand": (lambda x, g: mg.rand(len(x), dtype=x.dtype, generator=g), within(0, 1, "left")),
    "uniform_": (lambda x, g: x.uniform_(-1e30, 1e-30, generator=g), within(-1e30, 1e-30, "left")),
    "uniform_ near 1": (
        lambda x, g: x.uniform_(1, 1 + 2**-20, generator=g),
        within(1, 1 + 2**-20, "left"),
    ),
    "randn": (lambda x, g: mg.randn(len(x), dtype=x.dtype, generator=g), FINITE),
    "normal_": (lambda x, g: x.normal_(generator=g), FINITE),
    "exponential_": (lambda x, g: x.exponential_(generator=g), POSITIVE),
    "exponential_ of a large rate": (lambda x, g: x.exponential_(1e38, generator=g), POSITIVE),
    "log of exponential_": (lambda x, g: x.exponential_(3.0, generator=g).log(), FINITE),
    "gumbel": (lambda x, g: mg.nn.functional.gumbel_softmax(x, generator=g), FINITE),
    "randint": (lambda x, g: mg.randint(-2, 3, (len(x),), generator=g), within(-2, 2)),
    "randint of all": (
        lambda x, g: mg.randint(-(2**63), 2**63, (4,), generator=g) // 2**62,
        within(-2, 1),
    ),
    "bernoulli of 0": (lambda x, g: mg.bernoulli(x * 0, generator=g), within(0, 0)),
    "bernoulli of 1": (lambda x, g: mg.bernoulli(x * 0 + 1, generator=g), within(1, 1)),
    "multinomial": (unlikely, within(2, 2)),
    "trunc_normal_": (trunc((-2.0, 2.0)), within(-2, 2)),
    "trunc_normal_ of a tail": (trunc((-5.5, float("inf"))), FINITE),
    "trunc_normal_ of all": (trunc((-float("inf"), float("inf"))), FINITE),
}


@pytest.mark.parametrize("name", EDGES)
@pytest.mark.parametrize("dtype", [mg.float32, mg.float64])
@pytest.mark.parametrize("word", WORDS, ids=hex)
def test_extreme_words_stay_in_range(name, dtype, word):
    draw, check = EDGES[name]
    check(draw(mg.ones(5, dtype=dtype), next_words(word)).numpy())


@pytest.mark.parametrize("size", [5, 8192])
def test_the_largest_word_is_below_1(size):
    """In C, one by one and many together, rounding to the dtype must not reach 1."""
    for dtype in (mg.float32, mg.float64):
        ends = [mg.rand(size, dtype=dtype, generator=next_words(w))[0].item() for w in WORDS[::2]]
        assert ends[:2] == [0.0, 1 - (2.0**-24 if dtype is mg.float32 else 2.0**-53)]


def test_an_exponential_below_the_least_step_of_numpys_is_drawn_as_half_of_it():
    """And all others are NumPy's."""
    zero = next_words(0)
    assert zero.clone_state().numpy.standard_exponential(4, np.float32)[0] == 0
    drawn = mg.empty(4).exponential_(2.0, generator=zero.clone_state()).tolist()
    numpys_own = zero.numpy.standard_exponential(4, np.float32) / np.float32(2)
    assert drawn[0] == 2.0**-25
    assert [x for x in drawn if x != 2.0**-25] == [x for x in numpys_own.tolist() if x]


# ---- drawn in C ----------------------------------------------------------------------------------


def left_over(generator, before):
    """NumPy's generator after it gave out some words and half words."""
    words, halves = before
    generator.random(words)
    generator.random(halves, np.float32)
    return generator


def same_state(a, b):
    for key in ("counter", "key"):
        np.testing.assert_array_equal(a["philox"]["state"][key], b["state"][key])
    np.testing.assert_array_equal(a["philox"]["buffer"], b["buffer"])
    for key in ("buffer_pos", "has_uint32", "uinteger"):
        assert a["philox"][key] == b[key]


@pytest.mark.parametrize("before", [(0, 0), (1, 0), (3, 1), (0, 5), (2, 3), (4, 8)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [4096, 4097, 70_003])
def test_many_numbers_are_numpys_too_and_so_is_the_state(g, before, dtype, size):
    left_over(g.numpy, before)
    theirs = left_over(numpys(11), before)
    oracle.assert_same(mg.rand(size, generator=g, dtype=dtype).numpy(), theirs.random(size, dtype))
    same_state(g.get_state(), theirs.bit_generator.state)
    oracle.assert_same(mg.rand(3, generator=g).numpy(), theirs.random(3, np.float32))


def test_a_counter_carries_into_its_next_words(g):
    state = g.get_state()
    state["philox"]["state"]["counter"] = np.array([2**64 - 5, 2**64 - 1, 2**64 - 1, 7], np.uint64)
    g.set_state(state)
    theirs = np.random.Generator(np.random.Philox(11))
    theirs.bit_generator.state = state["philox"]
    oracle.assert_same(mg.rand(9000, generator=g).numpy(), theirs.random(9000, np.float32))


@pytest.mark.parametrize("p", [0.0, 0.1, 0.3, 1.0, 1e-9, 1 - 2**-24])
@pytest.mark.parametrize("size", [1000, 10_000])
def test_dropout_draws_numpys_floats(restore_random, p, size):
    mg.manual_seed(5)
    y = mg.nn.functional.dropout(mg.ones(size), p).numpy()
    kept = numpys(5).random(size, np.float32) >= np.float32(p)
    if p == 0:
        kept[:] = True
    assert ((y != 0) == kept).all()
    np.testing.assert_allclose(y[kept], 1 / (1 - p) if p < 1 else 1.0, rtol=1e-6)


def test_draws_are_the_same_for_any_number_of_threads(g):
    before, state, drawn = mg.get_num_threads(), g.get_state(), []
    try:
        for threads in (1, 2, 5):
            mg.set_num_threads(threads)
            g.set_state(state)
            drawn.append(mg.rand(300_001, generator=g).numpy())
    finally:
        mg.set_num_threads(before)
    oracle.assert_same(drawn[0], drawn[1])
    oracle.assert_same(drawn[0], drawn[2])


def test_negative_seeds_count_from_the_end():
    assert mg.Generator().manual_seed(-1).initial_seed() == 2**64 - 1


def test_randint_below_a_number():
    draws = mg.randint(high=3, size=(200,), generator=mg.Generator().manual_seed(1)).numpy()
    assert set(draws) == {0, 1, 2}


def test_fork_rng_puts_the_generator_back():
    with mg.random.fork_rng():
        mg.manual_seed(3)
        inside = mg.rand(2)
    with mg.random.fork_rng(devices=[], enabled=True):
        mg.manual_seed(3)
        assert mg.equal(mg.rand(2), inside)
    state = mg.get_rng_state()
    try:
        with pytest.raises(KeyError), mg.random.fork_rng():
            {}[mg.rand(5).dtype]
        again = mg.get_rng_state()
        mg.rand(2)
        with mg.random.fork_rng(enabled=False):
            mg.set_rng_state(again)
            first = mg.rand(3)
        mg.set_rng_state(state)
        assert mg.equal(mg.rand(3), first)
    finally:
        mg.set_rng_state(state)
