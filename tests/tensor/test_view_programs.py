"""Random programs of views and writes, against index maps of NumPy.

Every operation is linear in the leaf. The reference holds, for each element of memory, its value,
and for each history of that memory the matrix of its derivatives. A result is right, or an error.
"""

import numpy as np
import pytest

import minigrad as mg

SEEDS, STEPS, LENGTH = 200, 25, 8
MANY = 20000  # with -m exhaustive
REFUSED = "made under no_grad"


class Memory:
    """A piece of memory: the values of its elements."""

    def __init__(self, x):
        self.values = x.numpy().reshape(-1).copy()
        self.alive = x  # or others would get the same addresses

    def holds(self, x):
        start = self.alive.numpy().__array_interface__["data"][0]
        return start <= x.detach().numpy().__array_interface__["data"][0] < start + 8 * len(self)

    def __len__(self):
        return len(self.values)


class History:
    """Memory as the tape knows it: detached tensors have one of their own."""

    def __init__(self, memory, slopes):
        self.memory = memory
        self.slopes = slopes
        self.unknown = False  # was something refused written into it?


class Known:
    """A tensor, which elements of memory it shows, and the history that it belongs to."""

    def __init__(self, x, places, history, marked=None, several=False):
        self.x, self.places, self.history = x, places, history
        self.marked = marked  # made under no_grad: the slopes that the memory had then
        self.several = several  # does an element, here or in a base, stand for several?

    def values(self):
        return self.history.memory.values[self.places]

    def slopes(self):
        found = self.history.slopes[self.places]
        return found if self.marked is None else 0 * found

    def unknown(self):
        return self.history.unknown or (self.marked is not None and self.x.requires_grad)


def fresh(x, values, slopes):
    """State of a tensor with memory of its own."""
    memory = Memory(x.detach().contiguous().clone() if not x.is_contiguous() else x.detach())
    memory.values[:] = values.reshape(-1)
    history = History(memory, slopes.reshape(-1, LENGTH).copy())
    return Known(x, np.arange(x.size).reshape(x.shape), history)


def split(x, rng):
    return x.split(2) if isinstance(x, mg.Tensor) else np.split(x, range(2, len(x), 2))


def some_slice(x, rng):
    index = []
    for size in x.shape:
        start = int(rng.integers(0, max(size, 1)))
        step = int(rng.integers(1, 3))
        index.append(slice(start, int(rng.integers(start, size + 1)), step))
        if rng.random() < 0.2 and size:
            index[-1] = start
    return x[tuple(index)]


# Each takes a tensor or an index map, and a generator that draws the same for both.
VIEWS = {
    "slice": some_slice,
    "transpose": lambda x, rng: x.T,
    "flat": lambda x, rng: x.reshape(-1),
    "columns": lambda x, rng: x.reshape(2, -1) if not np.prod(x.shape) % 2 else x,
    "axis": lambda x, rng: x[None],
    "squeeze": lambda x, rng: x.squeeze(),
    "diagonal": lambda x, rng: x.diagonal() if x.ndim == 2 else x,
    "select": lambda x, rng: x[-1] if x.ndim and x.shape[0] else x,
    "unbind": lambda x, rng: (
        (x.unbind() if isinstance(x, mg.Tensor) else tuple(x)) if x.ndim else x
    ),
    "split": lambda x, rng: split(x, rng) if x.ndim and x.shape[0] else x,
    "expand": lambda x, rng: (
        x.expand(2, *x.shape) if isinstance(x, mg.Tensor) else np.broadcast_to(x, (2, *x.shape))
    ),
}


class Program:
    """Draws steps, and does each on tensors and on what is known of them."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        values = self.rng.standard_normal(LENGTH)
        self.leaf = mg.tensor(values, requires_grad=True)
        eye = np.eye(LENGTH)
        self.known = [
            fresh(self.leaf * 1, values, eye),
            fresh((self.leaf * 2).reshape(2, 4), 2 * values, 2 * eye),
            fresh(mg.zeros(LENGTH, dtype=mg.float64), 0 * values, 0 * eye),
        ]

    def drawn(self):
        return self.known[self.rng.integers(len(self.known))]

    def step(self):
        paused = self.rng.random() < 0.25
        kind = self.rng.choice(["view", "view", "write", "write", "detach", "clone", "forget"])
        with mg.set_grad_enabled(not paused):
            getattr(self, kind)(self.drawn(), paused)

    def view(self, base, paused):
        name = self.rng.choice(list(VIEWS))
        seed = int(self.rng.integers(2**31))
        made = VIEWS[name](base.x, np.random.default_rng(seed))
        maps = VIEWS[name](base.places, np.random.default_rng(seed))
        pairs = zip(made, maps, strict=True) if isinstance(made, (tuple, list)) else [(made, maps)]
        for x, places in pairs:
            places = np.asarray(places)
            assert x.shape == places.shape
            if x is base.x or not x.size:
                continue
            if base.history.memory.holds(x):
                marked = base.marked
                if marked is None and paused:
                    marked = base.history.slopes.copy()
                several = base.several or len(np.unique(places)) < places.size
                self.known.append(Known(x, places, base.history, marked, several))
            else:  # a copy
                slopes = base.slopes() if not paused else 0 * base.slopes()
                at = np.empty(len(base.history.memory), int)
                at[base.places.reshape(-1)] = np.arange(base.places.size)
                flat = at[places]
                new = fresh(x, base.values().reshape(-1)[flat], slopes.reshape(-1, LENGTH)[flat])
                new.history.unknown = base.unknown() and not paused
                self.known.append(new)

    def write(self, target, paused):
        fits = [k for k in self.known if k.x.shape == target.x.shape]
        source = fits[self.rng.integers(len(fits))]
        name = self.rng.choice(["mul", "add", "copy", "zero", "item", "iadd"])
        if target.several:
            return
        values, slopes = target.values(), target.history.slopes[target.places]
        own = 0.0 if name in ("copy", "zero", "item") else 3.0 if name == "mul" else 1.0
        other = 0.0 if name in ("mul", "zero") else 1.0 if name in ("item", "copy") else 2.0
        x, y = target.x, source.x
        new = own * values + (other * source.values() if other else 0)
        turned = own * slopes + (other * source.slopes() if other else 0)
        unknown = bool(other) and source.unknown()
        try:
            if name == "mul":
                x.mul_(3.0)
            elif name == "add":
                x.add_(y, alpha=2.0)
            elif name == "copy":
                x.copy_(y)
            elif name == "zero":
                x.zero_()
            elif name == "item":
                x[...] = y
            else:
                x += y * 2
        except RuntimeError as error:
            if target.marked is None or paused or REFUSED not in str(error):
                raise
            return
        target.history.memory.values[target.places] = new
        if paused:
            return
        if target.marked is not None:  # else it would have been refused
            assert not (other and source.slopes().any())
            assert not unknown
            assert np.array_equal(turned, slopes) or not self.tape_shows(target.history)
            return
        target.history.slopes[target.places] = turned
        target.history.unknown |= unknown

    def tape_shows(self, history):
        """Whether a tensor that the tape knows has this history."""
        return any(k.history is history and k.marked is None for k in self.known)

    def detach(self, base, paused):
        history = History(base.history.memory, 0 * base.history.slopes)
        x = base.x.detach() if self.rng.random() < 0.5 else base.x.data
        self.known.append(Known(x, base.places, history, None, base.several))

    def clone(self, base, paused):
        new = fresh(base.x.clone(), base.values(), base.slopes() * (not paused))
        new.history.unknown = base.unknown() and not paused
        self.known.append(new)

    def forget(self, base, paused):
        if len(self.known) > 4:
            self.known.remove(base)

    def check(self):
        for known in self.known:
            np.testing.assert_allclose(known.x.detach().numpy(), known.values(), rtol=1e-12)
            if not known.x.requires_grad:
                assert not known.slopes().any()
                if known.marked is not None:
                    places = known.places
                    assert np.array_equal(known.marked[places], known.history.slopes[places])
                continue
            weights = self.rng.standard_normal(known.x.shape)
            total = (known.x * mg.tensor(weights)).sum()
            try:
                (g,) = mg.grad(total, self.leaf, retain_graph=True, allow_unused=True)
            except RuntimeError as error:
                if not known.unknown() or REFUSED not in str(error):
                    raise
                continue
            assert known.marked is None
            g = np.zeros(LENGTH) if g is None else g.numpy()
            wanted = np.tensordot(weights, known.slopes(), weights.ndim)
            np.testing.assert_allclose(g, wanted, rtol=1e-9, atol=1e-9)


def run(seed):
    program = Program(seed)
    for step in range(STEPS):
        program.step()
        if step % 8 == 7:
            program.check()
    program.check()


@pytest.mark.parametrize("part", range(10))
def test_programs_of_views_and_writes(part):
    for seed in range(part, SEEDS, 10):
        run(seed)


@pytest.mark.exhaustive
def test_many_programs_of_views_and_writes():
    for seed in range(SEEDS, MANY):
        run(seed)
