"""Tests of transforms beside torch.func: values, structures, and all nestings of two."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import minigrad as mg

torch = pytest.importorskip("torch")
pytest.importorskip("torch.func")

# torch's forward mode loads parts of torch that warn.
pytestmark = [
    pytest.mark.filterwarnings("ignore:.*torch.jit.script.*:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:Attempted to insert a get_attr Node:UserWarning"),
]

A = np.array([[0.3, -1.2, 0.7, 0.1], [0.5, 0.2, -0.4, 1.1], [-0.6, 0.9, 0.8, -0.3]])
B = np.array([0.4, -0.7, 1.3, 0.2])


def both(f):
    """The results of a function of a library and its maker of tensors, for either library."""
    return (f(mg, lambda x: mg.tensor(np.array(x)))), f(torch, lambda x: torch.tensor(np.array(x)))


def assert_same(found, wanted):
    if isinstance(wanted, dict):
        assert found.keys() == wanted.keys()
        found, wanted = list(found.values()), list(wanted.values())
    if isinstance(wanted, (tuple, list)):
        assert len(found) == len(wanted)
        for x, y in zip(found, wanted, strict=True):
            assert_same(x, y)
    elif not callable(wanted) or isinstance(wanted, torch.Tensor):
        assert tuple(found.shape) == tuple(wanted.shape)
        assert not found.requires_grad
        np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=1e-10, atol=1e-12)


def several(lib):
    return lambda a, b: (lib.tanh(a @ b), {"s": (a * a).sum() * b})


def one(lib):
    return lambda a, b: (lib.sin(a @ b) * (a.exp() @ b)).sum()


@pytest.mark.parametrize("argnums", [0, 1, (0,), (1, 0)])
@pytest.mark.parametrize("name", ["jacrev", "jacfwd", "hessian", "grad", "grad_and_value"])
def test_derivatives(name, argnums):
    f = several if name.startswith("jac") else one
    assert_same(*both(lambda lib, of: getattr(lib.func, name)(f(lib), argnums)(of(A), of(B))))


def test_products():
    assert_same(*both(lambda lib, of: lib.func.jvp(several(lib), (of(A), of(B)), (of(A), of(B)))))
    assert_same(
        *both(
            lambda lib, of: lib.func.vjp(several(lib), of(A), of(B))[1]((of(A[:, 0]), {"s": of(B)}))
        )
    )
    assert_same(
        *both(lambda lib, of: lib.func.linearize(several(lib), of(A), of(B))[1](of(A), of(B)))
    )


def _with_aux(lib):
    return lambda x: (x * x, {"sum": x.sum()})


def test_what_comes_beside():
    for name in ("jacrev", "jacfwd"):
        assert_same(
            *both(lambda lib, of, n=name: getattr(lib.func, n)(_with_aux(lib), has_aux=True)(of(B)))
        )
    assert_same(
        *both(lambda lib, of: lib.func.jvp(_with_aux(lib), (of(B),), (of(B),), has_aux=True))
    )
    (value, _, aux), (their_value, _, their_aux) = both(
        lambda lib, of: lib.func.vjp(_with_aux(lib), of(B), has_aux=True)
    )
    assert_same((value, aux), (their_value, their_aux))


def test_nested_arguments():
    assert_same(
        *both(
            lambda lib, of: lib.func.jacfwd(lambda d: {"o": d["a"] @ d["b"][0]})(
                {"a": of(A), "b": (of(B),)}
            )
        )
    )


def _derivative(lib, kind, f):
    func = lib.func
    return {
        "grad": lambda: func.grad(lambda x: f(x).sum()),
        "jvp": lambda: lambda x: func.jvp(f, (x,), (x * 0.5 + 1,))[1],
        "jacfwd": lambda: lambda x: func.jacfwd(f)(x).sum(0) * x,
        "jacrev": lambda: lambda x: func.jacrev(f)(x).sum(0) * x,
        "vjp": lambda: lambda x: func.vjp(f, x)[1](x.cos())[0],
    }[kind]()


KINDS = ["grad", "jvp", "jacfwd", "jacrev", "vjp"]


@pytest.mark.parametrize("kinds", [*itertools.product(KINDS, KINDS, KINDS)], ids="-".join)
def test_nested_transforms(kinds):
    def run(lib, of):
        def f(x):
            return (x.sin() * x.flip((0,))).exp() * x.sum()

        for kind in kinds:
            f = _derivative(lib, kind, f)
        return f(of([0.3, 0.5]))

    assert_same(*both(run))
