"""Random training programs against PyTorch: optimizers, schedules and the state of modules.

A failing program names its seed; ``test_optimizers(seed)`` alone runs it again.
"""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import minigrad as mg

torch = pytest.importorskip("torch")

FEW = range(40)
MANY = [pytest.param(range(40, 2000), marks=pytest.mark.exhaustive)]
SHAPES = [(), (1,), (7,), (0,), (3, 0), (2, 3), (65,), (4, 1, 5)]


def options_of(kind, rng):
    """Options of an optimizer, as both take them."""
    pick = lambda *values: values[rng.integers(len(values))]  # noqa: E731
    found = {
        "lr": pick(0.1, 0.01, 0.0),
        "weight_decay": pick(0, 0.1),
        "maximize": pick(True, False),
    }
    if kind == "SGD":
        found |= {"momentum": pick(0, 0.9), "nesterov": pick(True, False)}
        found["nesterov"] = found["nesterov"] and found["momentum"] > 0
        found["dampening"] = 0 if found["nesterov"] else pick(0, 0.3)
    elif kind == "RMSprop":
        found |= {"momentum": pick(0, 0.9), "centered": pick(True, False), "alpha": pick(0.9, 0.5)}
        found["eps"] = pick(1e-8, 1e-3)
    else:
        found |= {"betas": pick((0.9, 0.999), (0.5, 0.9), (0.0, 0.5)), "amsgrad": pick(True, False)}
        found["eps"] = pick(1e-8, 1e-3)
    return found


class Side:
    """Parameters and their optimizer in one of the two libraries."""

    def __init__(self, library, kind, arrays, groups):
        self.library, self.kind = library, kind
        self.ps = [library.nn.Parameter(library.tensor(a)) for a in arrays]
        self.optimizer = self.made(groups)

    def made(self, groups):
        given = [{**group, "params": [self.ps[k] for k in group["params"]]} for group in groups]
        return getattr(self.library.optim, self.kind)(given)

    def set_gradients(self, gradients):
        for p, g in zip(self.ps, gradients, strict=True):
            if g is None:
                p.grad = None
            elif g.ndim == 1:  # every second element of a wider one
                p.grad = self.library.tensor(np.repeat(g, 2))[::2]
            else:
                p.grad = self.library.tensor(g)


def change(side, what, groups, value):
    """A random change between two steps."""
    if what == "rate":
        side.optimizer.param_groups[-1]["lr"] = value
    elif what == "reload":
        state = copy.deepcopy(side.optimizer.state_dict())
        side.optimizer = side.made(groups)
        side.optimizer.load_state_dict(state)
    elif what == "deepcopy":
        side.ps, side.optimizer = copy.deepcopy((side.ps, side.optimizer))
    elif what == "pickle":
        side.ps, side.optimizer = pickle.loads(pickle.dumps((side.ps, side.optimizer)))
    elif what == "zero":
        side.optimizer.zero_grad(set_to_none=value > 0.05)


def run_optimizer(seed):
    rng = np.random.default_rng(seed)
    kind = ["SGD", "Adam", "AdamW", "RMSprop"][rng.integers(4)]
    dtype = [np.float32, np.float64][rng.integers(2)]
    shapes = [SHAPES[rng.integers(len(SHAPES))] for _ in range(rng.integers(1, 5))]
    arrays = [np.asarray(rng.normal(size=shape), dtype) for shape in shapes]
    cut = int(rng.integers(len(arrays)))
    places = [part for part in (range(cut), range(cut, len(arrays))) if part]
    groups = [{"params": list(part), **options_of(kind, rng)} for part in places]
    sides = [Side(library, kind, arrays, groups) for library in (mg, torch)]
    for step in range(25):
        gradients = [
            None
            if rng.random() < 0.15
            else np.asarray(rng.normal(size=s) * (rng.random() > 0.1), dtype)
            for s in shapes
        ]
        what = ["", "", "", "rate", "reload", "deepcopy", "pickle", "zero"][rng.integers(8)]
        value = float(rng.uniform(0, 0.1))
        for side in sides:
            if what != "zero":
                change(side, what, groups, value)
            side.set_gradients(gradients)
            if what == "zero":
                change(side, what, groups, value)
            side.optimizer.step()
        tolerance = 2e-4 if dtype is np.float32 else 1e-9
        for ours, theirs in zip(sides[0].ps, sides[1].ps, strict=True):
            np.testing.assert_allclose(
                ours.detach().numpy(),
                theirs.detach().numpy(),
                rtol=tolerance,
                atol=tolerance,
                err_msg=f"seed {seed}, step {step}, {kind}, {groups}, {what}",
            )


@pytest.mark.parametrize("seeds", [FEW, *MANY], ids=lambda seeds: f"{len(seeds)}")
def test_optimizers(seeds):
    for seed in seeds:
        run_optimizer(seed)


def schedule(rng, deep=True):
    """A schedule as a function of the library and the optimizer."""
    n, gamma = int(rng.integers(1, 6)), float(rng.uniform(0.3, 1))
    marks = sorted(int(k) for k in rng.integers(1, 12, 3))
    kinds = {
        "StepLR": (n, gamma),
        "MultiStepLR": (marks, gamma),
        "ConstantLR": (gamma, n),
        "LinearLR": (gamma, 1.0, n),
        "ExponentialLR": (gamma,),
        "PolynomialLR": (n + 3, 1 + gamma),
        "CosineAnnealingLR": (n + 2, 0.001),
        "CosineAnnealingWarmRestarts": (n, int(rng.integers(1, 3)), 0.001),
        "LambdaLR": (lambda t: gamma**t,),
        "MultiplicativeLR": (lambda t: gamma,),
    }
    names = [*kinds, "OneCycleLR", *(["SequentialLR", "ChainedScheduler"] if deep else [])]
    name = names[rng.integers(len(names))]
    if name == "OneCycleLR":
        return name, lambda m, o: m.optim.lr_scheduler.OneCycleLR(o, 0.5, total_steps=40)
    if name in kinds:
        return name, lambda m, o: getattr(m.optim.lr_scheduler, name)(o, *kinds[name])
    parts = []
    while len(parts) < 2:
        part = schedule(rng, deep=False)
        if part[0] != "OneCycleLR":
            parts.append(part)
    kinds_of = [part[0] for part in parts]
    if name == "SequentialLR":
        return f"{name} {kinds_of} {n}", lambda m, o: m.optim.lr_scheduler.SequentialLR(
            o, [make(m, o) for _, make in parts], [n]
        )
    return f"{name} {kinds_of}", lambda m, o: m.optim.lr_scheduler.ChainedScheduler(
        [make(m, o) for _, make in parts], o
    )


def run_schedule(seed):
    rng = np.random.default_rng(seed)
    name, make = schedule(rng)
    rates = [float(rng.uniform(0.01, 1)) for _ in range(2)]
    turn = int(rng.integers(0, 20))
    found = []
    for m in (mg, torch):

        def optimizer(m=m):
            ps = [m.zeros(1, requires_grad=True) for _ in rates]
            return m.optim.SGD([{"params": [p], "lr": r} for p, r in zip(ps, rates, strict=True)])

        o, seen = optimizer(), []
        s = make(m, o)
        for t in range(20):
            if t == turn:
                states = copy.deepcopy((o.state_dict(), s.state_dict()))
                o = optimizer()
                s = make(m, o)
                o.load_state_dict(states[0])
                s.load_state_dict(states[1])
            if min(group["lr"] for group in o.param_groups) >= 0:  # chained ones may cross 0
                o.step()
            s.step()
            seen.append([float(group["lr"]) for group in o.param_groups])
        found.append(seen)
    np.testing.assert_allclose(*found, rtol=1e-6, atol=1e-9, err_msg=f"seed {seed}: {name}, {turn}")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "seeds",
    [range(200), pytest.param(range(200, 4000), marks=pytest.mark.exhaustive)],
    ids=lambda seeds: f"{len(seeds)}",
)
def test_schedules(seeds):
    for seed in seeds:
        run_schedule(seed)


def module(m, seed):
    """A tree of modules with shared parts, and buffers that the state may leave out."""
    rng = np.random.default_rng(seed)
    made = []

    def below(depth):
        one = m.nn.Module()
        if not hasattr(one, "scale") and rng.random() < 0.7:
            one.register_parameter("scale", m.nn.Parameter(m.tensor(rng.normal(size=2))))
        if rng.random() < 0.5:
            one.register_buffer("seen", m.tensor(rng.normal(size=3)), bool(rng.random() < 0.6))
        for k in range(int(rng.integers(0, 3)) if depth else 0):
            shared = made and rng.random() < 0.3
            child = made[rng.integers(len(made))] if shared else below(depth - 1)
            one.add_module(f"part{k}", child)
        made.append(one)
        return one

    return below(3)


def shown(net):
    """All that a module says of its state."""
    arrays = [
        [(name, x.detach().numpy().tolist()) for name, x in some]
        for some in (net.named_parameters(), net.named_buffers(), net.state_dict().items())
    ]
    visited = []
    net.apply(lambda part: visited.append((len(list(part.modules())), part.training)))
    names = [name for name, _ in net.named_modules()]
    return [sorted(some) for some in arrays], names, visited


def run_module(seed):
    rng = np.random.default_rng(seed + 10**6)
    copied = int(rng.integers(4))
    frozen, dropped, strict = int(rng.integers(4)), int(rng.integers(5)), bool(rng.integers(2))
    found = []
    for m in (mg, torch):
        net, other = module(m, seed), module(m, seed)
        for x in other.state_dict().values():
            x.mul_(2)
        if copied == 1:
            net = copy.deepcopy(net)
        elif copied == 2:
            net = pickle.loads(pickle.dumps(net))
        parts = list(net.modules())
        parts[frozen % len(parts)].eval()
        state = dict(other.state_dict())
        if state and dropped < 3:
            del state[sorted(state)[dropped % len(state)]]
        elif dropped == 3:
            state["none.such"] = m.zeros(1)
        try:
            result = net.load_state_dict(state, strict=strict)
            told = sorted(result.missing_keys), sorted(result.unexpected_keys)
        except (RuntimeError, ValueError):
            told = "does not fit"
        # PyTorch writes what fits before it refuses the rest; here nothing is written
        found.append((told, None if told == "does not fit" else shown(net)))
    assert found[0] == found[1], f"seed {seed}"


@pytest.mark.parametrize(
    "seeds",
    [range(300), pytest.param(range(300, 5000), marks=pytest.mark.exhaustive)],
    ids=lambda seeds: f"{len(seeds)}",
)
def test_modules(seeds):
    for seed in seeds:
        run_module(seed)
