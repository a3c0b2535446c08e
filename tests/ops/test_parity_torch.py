"""Against PyTorch, where its catalogue has no samples: methods, dtypes, programs of writes.

The operations themselves are compared in test_torch_samples. Decisions that differ between the two
(docs/numerics.md) are not sampled here.
"""

from __future__ import annotations

import numpy as np
import pytest

import minigrad as mg
from minigrad import functions

torch = pytest.importorskip("torch")

# ---- everything is compared ----------------------------------------------------------------------

# In the catalogue for integers only, under another name, or not at all; compared below or by value
# in other files.
ELSEWHERE = {
    "adjoint",
    "bitwise_and",
    "bitwise_left_shift",
    "bitwise_not",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "bincount",
    "imag",
    "relu",  # nn.functional.relu
    "slogdet",  # linalg.slogdet
    "tril_indices",
    "triu_indices",
    "unravel_index",
    "vander",
}


def test_every_operation_is_compared():
    pytest.importorskip("expecttest")  # PyTorch's catalogue imports it
    import torch_samples

    compared = {op.name for op in torch_samples.shared()} | torch_samples.RANDOM
    compared |= {alias.name for op in torch_samples.shared() for alias in op.aliases}
    missing = {name for name in functions.__all__ if hasattr(torch, name)} - compared
    assert missing == ELSEWHERE


# ---- methods and operators -----------------------------------------------------------------------

METHODS = {
    "reshape": lambda m, t: t.reshape(4, 6),
    "view": lambda m, t: t.view(-1, 2),
    "permute": lambda m, t: t.permute(2, 0, 1),
    "transpose": lambda m, t: t.transpose(0, 2),
    "expand": lambda m, t: t.unsqueeze(1).expand(2, 5, 3, -1),
    "broadcast_to": lambda m, t: m.broadcast_to(t, (2, 2, 3, 4)),
    "squeeze": lambda m, t: t[:1].squeeze(0),
    "squeeze several": lambda m, t: t[:1, :, :1].squeeze((0, 2)),
    "unsqueeze": lambda m, t: t.unsqueeze(-2),
    "flatten": lambda m, t: t.flatten(1),
    "flip": lambda m, t: t.flip((0, 2)),
    "narrow": lambda m, t: t.narrow(1, 1, 2),
    "split": lambda m, t: t.split(2, 1)[1],
    "split sizes": lambda m, t: t.split([1, 3], 2)[1],
    "clone": lambda m, t: t.clone(),
    "contiguous": lambda m, t: t.mT.contiguous(),
    "cat": lambda m, t: m.cat([t, t * 2], 1),
    "stack": lambda m, t: m.stack([t, t * t], 2),
    "sum_to_size": lambda m, t: t.sum_to_size(3, 1),
    "mT": lambda m, t: t.mT,
    "index": lambda m, t: t[1, :, 2],
    "index slice": lambda m, t: t[:, 1:, ::2],
    "index arrays": lambda m, t: t[[0, 1, 1], :, [0, 3, 3]],
    "index array": lambda m, t: t[:, [2, 0, 0]],
    "index None": lambda m, t: t[None, ..., 1],
    "to": lambda m, t: t.to(m.float64) * t,
    "where": lambda m, t: m.where(t > 0, t * t, t),
    "masked_fill": lambda m, t: t.masked_fill(t > 0, 3.0) * t,
    "take_along_dim": lambda m, t: m.take_along_dim(t, m.argmax(t, 1, True), 1),
    "pow number": lambda m, t: (t * t + 1) ** 1.5,
    "number pow": lambda m, t: 2.0**t,
    "pow 2": lambda m, t: t**2,
    "pow 3": lambda m, t: t**3,
    "rdiv": lambda m, t: 1 / (t * t + 1),
    "rsub": lambda m, t: 1 - t,
    "mixed": lambda m, t: m.tanh(t @ t.mT).sum(1) * t[..., 0],
}


def grad(module, outputs, inputs, seeds=None):
    """Vector-Jacobian products that can be differentiated again; zeros where nothing depends."""
    live = [k for k, y in enumerate(outputs) if y.requires_grad]
    if not live:
        return [module.zeros_like(x) for x in inputs]
    outputs = [outputs[k] for k in live]
    seeds = None if seeds is None else [seeds[k] for k in live]
    if module is torch:
        return torch.autograd.grad(
            outputs, inputs, seeds, create_graph=True, materialize_grads=True
        )
    return mg.grad(outputs, inputs, seeds, create_graph=True)


def assert_alike(ours, theirs, tolerance):
    for a, b in zip(ours, theirs, strict=True):
        assert tuple(a.shape) == tuple(b.shape)
        a, b = a.detach().numpy(), b.detach().numpy(force=True)
        assert a.dtype == b.dtype
        scale = np.abs(b).max(initial=1.0)
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance * scale)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("call", METHODS.values(), ids=METHODS)
def test_methods_and_operators(call, dtype, rng):
    """Values, gradients, and the derivative of these by the input and by the upstream gradient."""
    x = rng.permutation(np.linspace(-2, 2, 24) + 0.05).reshape(2, 3, 4).astype(dtype)
    direction = rng.normal(size=x.shape).astype(dtype)
    upstream, results = None, []
    for module in (mg, torch):
        t = module.tensor(x.copy(), requires_grad=True)
        y = call(module, t)
        if upstream is None:
            upstream = rng.normal(size=y.shape).astype(y.detach().numpy().dtype)
        g = module.tensor(upstream, requires_grad=True)
        (first,) = grad(module, [y], [t], [g])
        second = grad(module, [(first * module.tensor(direction)).sum()], [t, g])
        results.append([y, first, *second])
    assert_alike(*results, 2e-5 if dtype == "float32" else 1e-11)


# ---- programs of writes --------------------------------------------------------------------------
#
# A statement is a function of the engine and of the list of tensors so far; it writes into one or
# appends one. Each is drawn once and run on both engines.

SHAPE = (4, 3)
BASIC = [
    (slice(1, None),),
    (slice(None, 2),),
    (slice(None), slice(1, 3)),
    (slice(None, None, 2),),
    (slice(1, 3), 0),
    (2,),
    (-1, slice(None, 2)),
    (Ellipsis, 1),
    (None, slice(0, 2)),
]
VIEWS = [
    lambda t: t.mT if t.ndim > 1 else t.unsqueeze(0),
    lambda t: t.unsqueeze(-1),
    lambda t: t.flatten() if t.is_contiguous() else t.transpose(0, -1),
    lambda t: t.diagonal() if t.ndim > 1 else t[::2],
    lambda t: t.squeeze(),
    lambda t: t.view_as(t),
]


def an_index(rng, shape):
    """Basic, by arrays without repetitions, or a mask."""
    if not shape:
        return Ellipsis
    kind = rng.integers(4)
    if kind == 0:
        return rng.permutation(shape[0])[: rng.integers(1, shape[0] + 1)].tolist()
    if kind == 1:
        return rng.random(shape) < 0.5
    fitting = [i for i in BASIC if _fits(i, shape)]
    return fitting[rng.integers(len(fitting))]


def _fits(index, shape):
    try:
        return np.empty(shape)[index].size > 0
    except IndexError:
        return False


def spoken(module, index):
    """An index as the engine takes it."""
    return module.tensor(index) if isinstance(index, (np.ndarray, list)) else index


def statements(rng, shapes):
    """One random statement; ``shapes`` of the tensors so far is kept."""
    k, j = rng.integers(len(shapes), size=2)
    number = float(rng.uniform(0.5, 1.5))
    kind = rng.choice(
        ["index", "index_tensor", "index_add", "add", "sub", "mul", "div", "pow", "copy", "fill"]
        + ["view", "slice", "new", "overlap"]
    )
    index = an_index(rng, shapes[k])

    def run(module, env):
        t, other = env[k], env[j].clone()  # what is kept for the derivative is not written into
        i = spoken(module, index)
        if kind == "index":
            t[i] = number
        elif kind == "index_tensor":
            t[i] = (other * number).mean()
        elif kind == "index_add":
            t[i] += (other * other).mean() * number
        elif kind == "add":
            t += other.mean() * number
        elif kind == "sub":
            t -= t.clone().sin() * number
        elif kind == "mul":
            t *= other.mean().sin() + number
        elif kind == "div":
            t /= (other * other).mean() + number
        elif kind == "pow":
            t **= 2
        elif kind == "copy":
            t.copy_(other.mean() * number)
        elif kind == "fill":
            t.fill_(number)
        elif kind == "view":
            env.append(VIEWS[int(number * 1000) % len(VIEWS)](t))
            return
        elif kind == "slice":
            env.append(t[basic])
            return
        elif kind == "new":
            env.append((t * number).sin() + t.clone())
            return
        elif kind == "overlap" and t.ndim and t.shape[0] > 1:
            source = t[:-1]  # PyTorch refuses it as it is
            t[1:] = source if module is mg else source.clone()

    basic = index if isinstance(index, tuple) else Ellipsis
    return run


@pytest.mark.parametrize("seed", range(300))
def test_programs_of_writes(seed):
    """Views taken and written, in any order: values, gradients and second derivatives."""
    rng = np.random.default_rng(seed)
    values = rng.uniform(0.5, 1.5, (2, *SHAPE))
    leaves = {m: [m.tensor(v, requires_grad=True) for v in values] for m in (mg, torch)}
    env = {m: [x.clone() for x in leaves[m]] for m in leaves}
    for _ in range(rng.integers(3, 7)):
        statement = statements(rng, [tuple(t.shape) for t in env[torch]])
        for module in env:
            statement(module, env[module])
    results = []
    for module, tensors in env.items():
        total = sum((t / (1 + t * t) * (n + 1)).sum() for n, t in enumerate(tensors))
        first = grad(module, [total], leaves[module])
        second = grad(module, [g.cos().sum() for g in first], leaves[module])
        results.append([*tensors, *first, *second])
    assert_alike(*results, 1e-10)


# ---- dtypes and integers -------------------------------------------------------------------------


def as_torch_dtype(dtype):
    return getattr(torch, dtype.name)


@pytest.mark.parametrize(
    "name", ["add", "sub", "mul", "div", "pow", "maximum", "minimum", "eq", "lt"]
)
@pytest.mark.parametrize("a", [mg.bool, mg.int64, mg.float32, mg.float64], ids=lambda d: d.name)
@pytest.mark.parametrize("b", [mg.bool, mg.int64, mg.float32, mg.float64, True, 2, 2.5], ids=str)
def test_dtypes_of_results(name, a, b):
    if name in ("maximum", "minimum") and not isinstance(b, mg.dtype):
        pytest.skip("PyTorch takes no numbers here")
    if name == "pow" and a is mg.bool and (b is mg.bool or b is True):
        pytest.skip("PyTorch gives bool, we give int64 as NumPy does for integers")
    x = mg.ones(2, dtype=a)
    y = mg.ones(2, dtype=b) if isinstance(b, mg.dtype) else b
    s = torch.ones(2, dtype=as_torch_dtype(a))
    t = torch.ones(2, dtype=as_torch_dtype(b)) if isinstance(b, mg.dtype) else b
    try:
        want = getattr(torch, name)(s, t)
    except RuntimeError:
        if a is b is mg.bool:  # of a float and a bool, we take the difference as NumPy does
            with pytest.raises(TypeError):
                getattr(mg, name)(x, y)
        return
    got = getattr(mg, name)(x, y)
    assert got.dtype.name == str(want.dtype).removeprefix("torch.")
    assert got.tolist() == want.tolist()


@pytest.mark.parametrize("name", ["argmax", "argmin", "all", "any", "nonzero"])
def test_integer_results(name, rng):
    x = rng.integers(0, 3, (4, 5)).astype(np.float32)
    if name == "nonzero":
        ours, theirs = (m.nonzero(m.tensor(x), as_tuple=True) for m in (mg, torch))
        assert [t.tolist() for t in ours] == [t.tolist() for t in theirs]
        return
    for args in ((), (0,), (1,), (-1, True)):
        ours = getattr(mg, name)(mg.tensor(x), *args)
        theirs = getattr(torch, name)(torch.tensor(x), *args)
        assert ours.tolist() == theirs.tolist()
        assert tuple(ours.shape) == tuple(theirs.shape)


# ---- other sizes ---------------------------------------------------------------------------------

RESIZED = [(mode, 1) for mode in ("nearest", "nearest-exact", "linear", "area")]
RESIZED += [(mode, 2) for mode in ("nearest", "nearest-exact", "bilinear", "bicubic", "area")]
RESIZED += [(mode, 3) for mode in ("nearest", "nearest-exact", "trilinear", "area")]


@pytest.mark.parametrize("recompute", [None, False, True])
@pytest.mark.parametrize(("mode", "axes"), RESIZED, ids=str)
def test_interpolation_by_a_factor(mode, axes, recompute, rng):
    """The factor itself makes the grid, or the ratio of sizes, in values and gradients.

    A factor that leaves a size as it is is not compared: PyTorch then copies along that dimension,
    in the forward of some modes and in the backward of others.
    """
    from torch.nn.functional import interpolate

    aligned = (None, False, True) if mode.endswith(("linear", "cubic")) else (None,)
    for factor in (0.5, 0.7, 0.9, 1.1, 1.5, 2, 3, 5.7, 1 / 3):
        for size in (5, 7, 11):
            x = rng.standard_normal((1, 2, *(size - k for k in range(axes))))
            made = tuple(int(n * factor) for n in x.shape[2:])
            same = any(m == n for m, n in zip(made, x.shape[2:], strict=True))
            if not all(made) or (same and not recompute):
                continue
            for align in aligned:
                given = {"scale_factor": factor, "mode": mode, "align_corners": align}
                given["recompute_scale_factor"] = recompute
                ours = mg.tensor(x, requires_grad=True)
                theirs = torch.tensor(x, requires_grad=True)
                y, z = mg.nn.functional.interpolate(ours, **given), interpolate(theirs, **given)
                g = rng.standard_normal(y.shape)
                y.backward(mg.tensor(g))
                z.backward(torch.tensor(g))
                for a, b in ((y.detach(), z.detach()), (ours.grad, theirs.grad)):
                    np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-12, atol=1e-12)
