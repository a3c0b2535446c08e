"""The namespace of the array API standard, against NumPy's, which is another of them."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import minigrad as mg
from minigrad import array_api as xp

needs_numpy_2 = pytest.mark.skipif(
    np.lib.NumpyVersion(np.__version__) < "2.1.0", reason="NumPy is a namespace from 2.1 on"
)

X = np.array([[3.0, -1.0, 2.0], [0.5, 4.0, -2.5]])
N = np.array([3, 1, 3, 2, 1])
CALLS = {
    "arange": lambda m, a: (m.arange(5), m.arange(1, 7, 2)),
    "empty": lambda m, a: m.empty((2, 3)).shape,
    "ones": lambda m, a: m.ones(shape=(2, 3), dtype=m.float64),
    "zeros": lambda m, a: m.zeros(3, dtype=m.int64),
    "full": lambda m, a: m.full((2,), fill_value=5),
    "eye": lambda m, a: (m.eye(3, dtype=m.int64), m.eye(2, 4, k=1, dtype=m.int64)),
    "eye below": lambda m, a: m.eye(3, 2, k=-1, dtype=m.float64),
    "linspace": lambda m, a: m.linspace(0.0, 1.0, num=5, dtype=m.float64),
    "linspace open": lambda m, a: m.linspace(0.0, 1.0, 4, endpoint=False, dtype=m.float64),
    "meshgrid": lambda m, a: m.meshgrid(a(N), a(X[0])),
    "tril": lambda m, a: (m.tril(a(X), k=-1), m.triu(a(X), k=1)),
    "astype": lambda m, a: m.astype(a(X), m.int64),
    "clip": lambda m, a: (m.clip(a(X), -1, 1), m.clip(a(X), max=0), m.clip(a(X))),
    "equal": lambda m, a: m.equal(a(X), a(X[0])),
    "invert": lambda m, a: m.bitwise_invert(a(N)),
    "divide": lambda m, a: m.divide(a(X), 2.0),
    "parts": lambda m, a: (m.real(a(X)), m.imag(a(X)), m.conj(a(X))),
    "max": lambda m, a: (m.max(a(X)), m.max(a(X), axis=0), m.min(a(X), axis=(0, 1))),
    "min kept": lambda m, a: m.min(a(X), axis=1, keepdims=True),
    "std": lambda m, a: (m.std(a(X)), m.std(a(X), axis=0, correction=1.0)),
    "var": lambda m, a: (m.var(a(X), axis=1, keepdims=True), m.var(a(X), correction=0.5)),
    "sum": lambda m, a: (m.sum(a(X), axis=0), m.prod(a(X)), m.mean(a(X), axis=-1, keepdims=True)),
    "cumulative": lambda m, a: (m.cumulative_sum(a(N)), m.cumulative_prod(a(X), axis=1)),
    "with initial": lambda m, a: m.cumulative_sum(a(X), axis=-1, include_initial=True),
    "prod initial": lambda m, a: m.cumulative_prod(a(N), include_initial=True),
    "diff": lambda m, a: (m.diff(a(X)), m.diff(a(X), axis=0, n=1, prepend=a(X))),
    "counts": lambda m, a: (m.all(a(X), axis=0), m.any(a(X)), m.count_nonzero(a(X), axis=1)),
    "broadcast": lambda m, a: m.broadcast_arrays(a(X), a(X[0])),
    "expand": lambda m, a: m.expand_dims(a(X), axis=-1),
    "permute": lambda m, a: m.permute_dims(a(X), (1, 0)),
    "repeat": lambda m, a: (m.repeat(a(X), 2), m.repeat(a(X), a(np.array([2, 0])), axis=0)),
    "reshape": lambda m, a: (m.reshape(a(X), (3, 2)), m.reshape(a(X), (-1,), copy=True)),
    "unstack": lambda m, a: m.unstack(a(X), axis=1),
    "transpose": lambda m, a: m.matrix_transpose(a(X)),
    "moved": lambda m, a: (m.flip(a(X), axis=0), m.roll(a(X), 1, axis=1), m.tile(a(X), (1, 2))),
    "joined": lambda m, a: (m.concat([a(X), a(X)], axis=1), m.stack([a(X), a(X)], axis=-1)),
    "nonzero": lambda m, a: m.nonzero(a(X) > 0),
    "sort": lambda m, a: (m.sort(a(X)), m.sort(a(X), axis=0), m.argsort(a(X), axis=1)),
    "take": lambda m, a: (m.take(a(N), a(N - 1)), m.take(a(X), a(N - 1), axis=1)),
    "take along": lambda m, a: m.take_along_axis(a(X), m.argsort(a(X), axis=0), axis=0),
    "places": lambda m, a: (m.argmax(a(X), axis=1), m.argmin(a(X), keepdims=True)),
    "search": lambda m, a: m.searchsorted(a(np.array([1, 2, 4])), a(N), side="right"),
    "unique": lambda m, a: (
        m.sort(m.unique_values(a(N))),
        m.unique_counts(a(N)),
        m.unique_inverse(a(N)),
    ),
    "unique all": lambda m, a: m.unique_all(a(N)),
    "unique 2d": lambda m, a: m.unique_inverse(a(N[:4].reshape(2, 2))),
    "products": lambda m, a: (m.vecdot(a(X), a(X)), m.tensordot(a(X), a(X.T), axes=1)),
    "linalg": lambda m, a: (m.linalg.outer(a(X[0]), a(X[1])), m.linalg.trace(a(X), offset=1)),
    "norms": lambda m, a: (m.linalg.matrix_norm(a(X)), m.linalg.vector_norm(a(X), axis=1, ord=1)),
    "factors": lambda m, a: m.linalg.cholesky(a(X @ X.T), upper=True),
    "inverse": lambda m, a: (m.linalg.pinv(a(X)), m.linalg.matrix_rank(a(X))),
    "cross": lambda m, a: (m.linalg.cross(a(X[0]), a(X[1])), m.linalg.diagonal(a(X), offset=1)),
    "svd": lambda m, a: m.linalg.svd(a(X), full_matrices=False).S,
}


def flat(results):
    if isinstance(results, (tuple, list)):
        return [y for part in results for y in flat(part)]
    return [results]


@needs_numpy_2
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_functions_are_numpys(call):
    ours, theirs = flat(call(xp, mg.tensor)), flat(call(np, np.asarray))
    for got, want in zip(ours, theirs, strict=True):
        assert getattr(got, "shape", ()) == getattr(want, "shape", ())
        if isinstance(got, mg.Tensor):
            assert got.dtype.name == want.dtype.name
            got = got.numpy()
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-14)


@needs_numpy_2
def test_arguments_are_those_of_numpys_functions():
    """Each parameter that NumPy's function of the standard takes by name is taken here too."""
    for name in ("unique_all", "cumulative_sum", "cumulative_prod", "matrix_transpose"):
        ours = inspect.signature(getattr(xp, name)).parameters
        try:
            theirs = inspect.signature(getattr(np, name)).parameters
        except ValueError:  # written in C
            continue
        named = {n for n, p in theirs.items() if p.kind is p.KEYWORD_ONLY} - {"out"}
        assert named <= set(ours), name


def test_the_namespace_of_a_tensor():
    x = mg.ones(2)
    assert x.__array_namespace__() is xp
    assert x.__array_namespace__(api_version="2023.12") is xp
    assert xp.__array_api_version__ == "2024.12"
    assert all(hasattr(xp, name) for name in xp.__all__)
    with pytest.raises(ValueError, match=r"\[array_namespace\] version '1999.1' .* not offered"):
        x.__array_namespace__(api_version="1999.1")


def test_what_is_said_of_the_namespace():
    info = xp.__array_namespace_info__()
    assert info.capabilities()["boolean indexing"] is True
    assert info.default_device() == mg.device("cpu")
    assert info.devices() == [mg.device("cpu")]
    assert info.default_dtypes()["real floating"] is mg.float32
    assert set(info.dtypes(kind="real floating")) == {"float32", "float64"}
    assert set(info.dtypes(kind=("bool", "unsigned integer"))) == {"bool", "uint8"}
    assert info.dtypes()["int16"] is mg.int16


def test_kinds_of_dtypes():
    assert xp.isdtype(mg.float32, "real floating")
    assert xp.isdtype(mg.int8, ("integral", "bool"))
    assert xp.isdtype(mg.int8, mg.int8)
    assert not xp.isdtype(mg.bool, "numeric")
    assert not xp.isdtype(mg.float64, "complex floating")
    with pytest.raises(ValueError, match=r"\[isdtype\] kind is 'float'"):
        xp.isdtype(mg.float64, "float")


def test_casts_that_keep_values():
    assert xp.can_cast(mg.int8, mg.int64)
    assert not xp.can_cast(mg.float64, mg.float32)
    assert xp.can_cast(mg.zeros(2), mg.float64)
    x = mg.zeros(2)
    assert xp.astype(x, mg.float32, copy=False) is x
    assert xp.astype(x, mg.float32) is not x


def test_results_have_gradients():
    x = mg.tensor([1.0, 2.0, 3.0], requires_grad=True)
    (xp.cumulative_prod(x, include_initial=True).sum() + xp.max(x)).backward()
    assert x.grad.tolist() == [9.0, 4.0, 3.0]


def test_errors_of_the_namespace():
    for function in (xp.cumulative_sum, xp.cumulative_prod):
        with pytest.raises(ValueError, match="of 2 dimensions needs an axis"):
            function(mg.ones(2, 2))
    with pytest.raises(ValueError, match=r"\[take\] a tensor of 2 dimensions needs an axis"):
        xp.take(mg.ones(2, 2), mg.tensor([0]))
    with pytest.raises(ValueError, match=r"\[nonzero\]"):
        xp.nonzero(mg.tensor(1.0))
    with pytest.raises(ValueError, match=r"\[matrix_transpose\]"):
        xp.matrix_transpose(mg.ones(2))
    with pytest.raises(ValueError, match="view"):
        xp.reshape(mg.ones(2, 3).mT, (6,), copy=False)


def test_methods_of_the_standard():
    x = mg.tensor(2.5)
    assert complex(x) == 2.5 + 0j
    assert x.to_device("cpu") is x
    assert x.to_device(mg.device("cpu"), stream=None) is x
    assert x.__dlpack_device__() == (1, 0)
    assert x.real is x
    assert x.imag.item() == 0.0
    with pytest.raises(RuntimeError, match="cuda"):
        x.to_device("cuda")
