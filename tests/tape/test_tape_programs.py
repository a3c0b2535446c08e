"""Random programs of Functions, hooks, grad modes and writes, against complex steps in NumPy.

NumPy runs each program on complex numbers: the imaginary part of the result is the derivative
(Squire and Trapp 1998). A gradient is right, or an error. Second derivatives are differences of
first ones. Hooks keep gradients and write into them later, which must change nothing.
"""

import numpy as np
import pytest

import minigrad as mg

SEEDS, STEPS, LENGTH = 300, 12, 4
MANY = 20000  # with -m exhaustive
TINY = 1e-30


class Same(mg.Function):
    """The input itself, which the tape takes for a new tensor."""

    @staticmethod
    def forward(ctx, x):
        return x

    @staticmethod
    def backward(ctx, g):
        return g


class Triple(mg.Function):
    """Function that writes into its input."""

    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(3.0)

    @staticmethod
    def backward(ctx, g):
        return g.mul_(3.0)


class Both(mg.Function):
    """Function of two inputs and two outputs, with a context that is set up afterwards."""

    @staticmethod
    def forward(x, y):
        return x * y, x + 2.0 * y

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, g, h):
        x, y = ctx.saved_tensors
        return g * y + h, g * x + 2.0 * h


class Either(mg.Function):
    """Function that gets None for an output that was not used, and marks one as constant."""

    @staticmethod
    def forward(ctx, x):
        positive = (x > 0).to(x.dtype)
        ctx.mark_non_differentiable(positive)
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(positive)
        return x * positive, positive

    @staticmethod
    def backward(ctx, g, _):
        (positive,) = ctx.saved_tensors
        return None if g is None else g * positive.detach()


class ExpSin(mg.Function):
    """Function that saves its output."""

    @staticmethod
    def forward(ctx, x):
        y = x.sin().exp()
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return g * y * x.cos()


class Within(mg.Function):
    """Function with another one in its forward and in its backward."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return ExpSin.apply(x)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * ExpSin.apply(x) * x.cos()


class Stores(mg.Function):
    """Function that keeps an intermediate in its class."""

    square = None

    @staticmethod
    def forward(ctx, x):
        ctx.square = Stores.square = x * x
        return Stores.square * x

    @staticmethod
    def backward(ctx, g):
        Stores.square = ctx.square
        return 3.0 * g * Stores.square


class RunsBack(mg.Function):
    """Function whose backward runs another backward."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x.sin()

    @staticmethod
    @mg.autograd.once_differentiable
    def backward(ctx, g):
        with mg.enable_grad():
            x = ctx.saved_tensors[0].detach().requires_grad_()
            (x * x.sin()).sum().backward()
        return g * x.grad


class Keeps(mg.Function):
    """x + y, with a backward that keeps the gradient that it returns for both."""

    box: list

    @staticmethod
    def forward(ctx, x, y, box):
        ctx.box = box
        return x + y

    @staticmethod
    def backward(ctx, g):
        g = g * 1.0
        ctx.box.append(g)
        return g, g, None


def same(x):
    """The input by a Function; one that is not recorded returns the memory that it was given."""
    return Same.apply(x) if x.requires_grad else x.clone()


def written(x, value):
    x[...] = value
    return (x,)


def tripled(x):
    x *= 3
    return x


def step_of(x):
    return (x.real > 0).astype(float)


# For each operation: of tensors, and of NumPy's arrays. Both give a tuple; the last takes a box.
OPERATIONS = {
    "mul": (lambda x, y, b: (x * y,), lambda x, y: (x * y,)),
    "add": (lambda x, y, b: (x + y,), lambda x, y: (x + y,)),
    "sin": (lambda x, y, b: (x.sin(),), lambda x, y: (np.sin(x),)),
    "slice": (lambda x, y, b: (x[1:3],), lambda x, y: (x[1:3],)),
    "first": (lambda x, y, b: (x[:1],), lambda x, y: (x[:1],)),
    "matrix": (lambda x, y, b: (x[None].mT,), lambda x, y: (x[None].swapaxes(-1, -2),)),
    "flat": (lambda x, y, b: (x.flatten() * 1.0,), lambda x, y: (x.flatten(),)),
    "Same": (lambda x, y, b: (same(x),), lambda x, y: (x.copy(),)),
    "Triple": (lambda x, y, b: (Triple.apply(x),), lambda x, y: (tripled(x),)),
    "Both": (lambda x, y, b: Both.apply(x, y), lambda x, y: (x * y, x + 2 * y)),
    "Either": (lambda x, y, b: Either.apply(x), lambda x, y: (x * step_of(x), step_of(x) + 0j)),
    "ExpSin": (lambda x, y, b: (ExpSin.apply(x),), lambda x, y: (np.exp(np.sin(x)),)),
    "Within": (lambda x, y, b: (Within.apply(x),), lambda x, y: (np.exp(np.sin(x)),)),
    "Stores": (lambda x, y, b: (Stores.apply(x),), lambda x, y: (x**3,)),
    "RunsBack": (lambda x, y, b: (RunsBack.apply(x),), lambda x, y: (x * np.sin(x),)),
    "Keeps": (lambda x, y, b: (Keeps.apply(x, y, b),), lambda x, y: (x + y,)),
    "write": (lambda x, y, b: written(x, y), lambda x, y: written(x, y.copy())),
    "scale": (lambda x, y, b: (x.mul_(0.5),), lambda x, y: (np.multiply(x, 0.5, out=x),)),
}
SHARE = ("Triple", "write", "scale", "slice", "first", "matrix", "Same")


def paused():
    """A generator that stops within no_grad, and then goes on."""
    with mg.no_grad():
        yield
    yield


def hook_on(x, kind, box):
    """Register a hook of this kind; the result removes it."""

    def keeps(g):
        box.append(g)

    def keeps_result(g):
        box.append(g * 1.0)
        return box[-1]

    def writes(g):
        for kept in box:
            kept.mul_(100.0)

    def keeps_all(inputs, outputs=()):
        box.extend([g for g in (*inputs, *outputs) if g is not None])
        return inputs

    def runs(g):
        with mg.enable_grad():
            leaf = mg.ones(2, requires_grad=True)
            ExpSin.apply(leaf).sum().backward()

    hook = {"keeps": keeps, "result": keeps_result, "writes": writes, "runs": runs}.get(kind)
    if hook is not None:
        return x.register_hook(hook)
    node = x.grad_fn
    return node.register_hook(keeps_all) if kind == "node" else node.register_prehook(keeps_all)


HOOKS = ("keeps", "result", "writes", "runs", "node", "before")


class Program:
    """Draws steps and runs them on tensors; NumPy runs those that were no error again."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.start = self.rng.uniform(-1.2, 1.2, LENGTH)
        self.leaf = mg.tensor(self.start, requires_grad=True)
        self.tensors = [self.leaf * 1.0, self.leaf.sin()]
        self.done = []  # (name, places of the operands, values if these are constants)
        self.box, self.hooks = [], []
        for _ in range(STEPS):
            self.step()
        self.weights = [self.rng.standard_normal(x.shape) for x in self.tensors]

    def step(self):
        i = int(self.rng.integers(len(self.tensors)))
        x = self.tensors[i]
        fits = [k for k, y in enumerate(self.tensors) if y.shape == x.shape]
        j = int(self.rng.choice(fits))
        if self.rng.random() < 0.35:
            self.hook(x)
            return
        name = str(self.rng.choice(list(OPERATIONS)))
        mode = self.rng.choice(["plain", "plain", "plain", "no_grad", "enabled", "suspended"])
        if mode == "no_grad" and name in SHARE:
            mode = "plain"  # test_view_programs.py draws what shares memory under no_grad
        try:
            made = self.run(OPERATIONS[name][0], x, self.tensors[j], mode)
        except RuntimeError:
            return
        self.tensors += made
        values = [y.detach().numpy().copy() for y in made] if mode == "no_grad" else None
        self.done.append((name, i, j, values))

    def run(self, operation, x, y, mode):
        if mode == "no_grad":
            with mg.no_grad():
                return operation(x, y, self.box)
        if mode == "enabled":
            with mg.no_grad(), mg.enable_grad():
                return operation(x, y, self.box)
        if mode == "suspended":
            steps = paused()
            next(steps)
            next(steps)
        return operation(x, y, self.box)

    def hook(self, x):
        if self.hooks and self.rng.random() < 0.2:
            self.hooks.pop().remove()
        elif x.requires_grad:
            self.hooks.append(hook_on(x, str(self.rng.choice(HOOKS)), self.box))

    def in_numpy(self, x):
        """The weighted sum of all tensors as a function of the leaf, in complex numbers."""
        arrays = [x * 1.0, np.sin(x)]
        for name, i, j, values in self.done:
            if values is None:
                arrays += OPERATIONS[name][1](arrays[i], arrays[j])
            else:
                arrays += [value + 0j for value in values]
        return sum((w * a).sum() for w, a in zip(self.weights, arrays, strict=True)), arrays

    def slopes(self, at):
        steps = TINY * 1j * np.eye(LENGTH)
        return np.array([self.in_numpy(at + step)[0].imag / TINY for step in steps])

    def check(self):
        """How many of the two derivatives were right; the others were errors."""
        for x, a in zip(self.tensors, self.in_numpy(self.start + 0j)[1], strict=True):
            np.testing.assert_allclose(x.detach().numpy(), a.real, rtol=1e-10, atol=1e-12)
        pairs = zip(self.tensors, self.weights, strict=True)
        total = sum((x * mg.tensor(w)).sum() for x, w in pairs)
        wanted = self.slopes(self.start)
        try:
            (plain,) = mg.grad(total, self.leaf, retain_graph=True)
            (g,) = mg.grad(total, self.leaf, create_graph=True)
        except RuntimeError:
            return 0
        np.testing.assert_allclose(plain.numpy(), wanted, rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(g.detach().numpy(), wanted, rtol=1e-7, atol=1e-9)
        v = self.rng.standard_normal(LENGTH)
        try:
            (second,) = mg.grad((g * mg.tensor(v)).sum(), self.leaf)
        except RuntimeError:
            return 1
        ends = [
            self.slopes(self.start + d * 1e-5 * np.eye(LENGTH)[k]) @ v
            for k in range(LENGTH)
            for d in (1, -1)
        ]
        ends = np.array(ends).reshape(LENGTH, 2)
        near = (ends[:, 0] - ends[:, 1]) / 2e-5
        scale = 1 + np.abs(near).max()
        np.testing.assert_allclose(second.numpy() / scale, near / scale, rtol=1e-4, atol=1e-6)
        return 2


def run(seed):
    with np.errstate(all="ignore"):
        try:
            return Program(seed).check()
        except AssertionError as error:
            raise AssertionError(f"program {seed}: {error}") from error


def test_programs_of_functions_hooks_and_modes():
    right = [run(seed) for seed in range(SEEDS)]
    assert right.count(0) < SEEDS / 2
    assert right.count(2) > SEEDS / 10


@pytest.mark.exhaustive
def test_many_programs_of_functions_hooks_and_modes():
    for seed in range(SEEDS, MANY):
        run(seed)
