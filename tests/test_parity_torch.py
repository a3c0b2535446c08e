"""Values, gradients and second derivatives against PyTorch on generated samples, where it is there.

What the two decide differently (docs/numerics.md) is not sampled here: singular points and kinks.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import minigrad as mg
from minigrad import functions
from minigrad.ops import TABLE

torch = pytest.importorskip("torch")

SHAPES = [(), (1,), (5,), (3, 4), (2, 1, 3), (0, 3)]
PAIRS = [
    ((), (3,)),
    ((3,), (3,)),
    ((2, 3), (3,)),
    ((2, 1), (1, 3)),
    ((4, 1, 3), (2, 1)),
    ((0, 3), (1, 3)),
    ((1,), (0,)),
]
MATMULS = [
    ((3,), (3,)),
    ((2, 3), (3,)),
    ((3,), (3, 2)),
    ((2, 3), (3, 4)),
    ((2, 2, 3), (3, 4)),
    ((2, 1, 2, 3), (3, 3, 2)),
    ((4, 2, 3), (3,)),
    ((3,), (2, 3, 4)),
    ((2, 0), (0, 3)),
]


def ranged(domain):
    return lambda rng, shapes: [
        rng.uniform(low, high, s) for (low, high), s in zip(domain, shapes, strict=True)
    ]


def spaced(rng, shapes):
    """Values with no two close together, so that extrema are clear."""
    out = []
    for shape in shapes:
        n = int(np.prod(shape))
        out.append(
            rng.permutation(np.linspace(-2, 2, n) + 0.05).reshape(shape) if n else np.zeros(shape)
        )
    return out


def reductions():
    for name in ("sum", "mean", "prod", "amax", "amin", "logsumexp", "var"):
        for shape in [(5,), (3, 4), (2, 3, 2)]:
            for dim in [
                *range(-len(shape), len(shape)),
                *([(0, -1)] if len(shape) > 1 and name != "prod" else []),
            ]:
                for keep in (False, True):
                    if name == "var":

                        def call(m, x, dim=dim, keep=keep):
                            return m.var(x, dim, correction=1, keepdim=keep)
                    else:

                        def call(m, x, dim=dim, keep=keep, name=name):
                            return getattr(m, name)(x, dim, keep)

                    yield f"{name}{shape}{dim}{keep}", call, spaced, [shape]
    for name in ("sum", "mean", "prod", "var", "max", "min", "amax"):
        for shape in [(), (5,), (3, 4)]:
            if name == "var" and shape == ():
                continue
            yield f"{name}{shape}", lambda m, x, name=name: getattr(m, name)(x), spaced, [shape]
    for name in ("max", "min"):
        for dim in (0, 1, -1):
            yield (
                f"{name}.values{dim}",
                lambda m, x, dim=dim, name=name: getattr(m, name)(x, dim)[0],
                spaced,
                [(3, 4)],
            )
    for name in ("softmax", "log_softmax"):
        for shape in [(), (5,), (3, 4), (0, 3), (2, 3, 2)]:
            for dim in range(-max(len(shape), 1), max(len(shape), 1)):
                yield (
                    f"{name}{shape}{dim}",
                    lambda m, x, dim=dim, name=name: getattr(m, name)(x, dim),
                    spaced,
                    [shape],
                )


def shapes():
    x = [(2, 3, 4)]
    calls = {
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
    for name, call in calls.items():
        yield name, call, spaced, x


def pointwise():
    for row in TABLE.values():
        if row.family == "pointwise" and row.name != "scale":
            for sizes in [(s,) for s in SHAPES] if row.arity == 1 else PAIRS:
                yield (
                    f"{row.name}{sizes}",
                    lambda m, *x, name=row.name: getattr(m, name)(*x),
                    ranged(row.domain),
                    sizes,
                )


def products():
    for pair in MATMULS:
        yield f"matmul{pair}", lambda m, a, b: m.matmul(a, b), ranged([(-2, 2)] * 2), pair


CASES = [*pointwise(), *reductions(), *shapes(), *products()]
UNSAMPLED = {
    "eq",
    "ne",
    "lt",
    "le",
    "gt",
    "ge",
    "all",
    "any",
    "argmax",
    "argmin",
    "nonzero",
}  # compared below


def test_every_operation_is_compared():
    sampled = " ".join(case[0] for case in CASES)
    missing = [
        name
        for name in functions.__all__
        if hasattr(torch, name) and name not in UNSAMPLED and name not in sampled
    ]
    assert not missing


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("case", CASES, ids=[c[0] for c in CASES])
def test_values_gradients_and_second_derivatives(case, dtype, rng):
    _, call, sample, sizes = case
    arrays = [x.astype(dtype) for x in sample(rng, sizes)]
    tolerance = (
        {"rtol": 2e-5, "atol": 2e-5} if dtype == "float32" else {"rtol": 1e-11, "atol": 1e-12}
    )
    g, directions = None, [rng.normal(size=x.shape).astype(dtype) for x in arrays]
    results = []
    for module in (mg, torch):
        xs = [module.tensor(x.copy(), requires_grad=True) for x in arrays]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            y = call(module, *xs)
        if g is None:
            g = np.asarray(rng.normal(size=tuple(y.shape)))
        upstream = module.tensor(g.astype(str(y.detach().numpy().dtype)), requires_grad=True)
        if module is torch:
            first = torch.autograd.grad(y, xs, upstream, create_graph=True, materialize_grads=True)
        else:
            plain = mg.grad(y, xs, upstream.detach(), retain_graph=True)
            first = mg.grad(y, xs, upstream, create_graph=True)
            for a, b in zip(plain, first, strict=True):
                np.testing.assert_allclose(a.numpy(), b.detach().numpy(), **tolerance)
        total = sum((f * module.tensor(d)).sum() for f, d in zip(first, directions, strict=True))
        if module is torch:
            second = (
                torch.autograd.grad(total, [*xs, upstream], materialize_grads=True)
                if total.requires_grad
                else [torch.zeros_like(x) for x in (*xs, upstream)]
            )
        else:
            second = (
                mg.grad(total, [*xs, upstream])
                if total.requires_grad
                else [mg.zeros_like(x) for x in (*xs, upstream)]
            )
        results.append([y, *first, *second])
    for ours, theirs in zip(*results, strict=True):
        a, b = ours.detach().numpy(), theirs.detach().numpy(force=True)
        assert a.shape == b.shape
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, **tolerance)


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
