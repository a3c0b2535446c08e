"""Arguments by the names that PyTorch gives them."""

import inspect
import re
from importlib import import_module

import numpy as np
import pytest

import minigrad as mg
from minigrad import functions

# These take several tensors, call theirs otherwise in PyTorch too, or are methods there.
OTHERS = """
broadcast_tensors cat concat concatenate stack cartesian_prod column_stack dstack hstack vstack
row_stack atleast_1d atleast_2d atleast_3d block_diag meshgrid einsum tensordot cdist searchsorted
isin unravel_index vander trapezoid trapz cumulative_trapezoid polygamma where tril_indices
triu_indices split cholesky_inverse
cholesky_solve vector_norm contiguous expand expand_as reshape_as sum_to_size to type_as unfold
view view_as repeat
"""


def public(topic):
    module = import_module(f"minigrad.functions.{topic}")
    return [
        (n, getattr(module, n)) for n in module.__all__ if inspect.isfunction(getattr(module, n))
    ]


@pytest.mark.parametrize("topic", functions.TOPICS)
def test_the_first_tensor_is_called_input(topic):
    first = {name: next(iter(inspect.signature(f).parameters)) for name, f in public(topic)}
    assert {name for name, given in first.items() if given != "input"} <= {*OTHERS.split()}


X = mg.tensor([[1.5, -2.0], [0.25, 3.0]])
Y = mg.tensor([[0.5, 2.0], [1.0, 4.0]])


@pytest.mark.parametrize(
    ("named", "wanted"),
    [
        (lambda: mg.exp(input=X), lambda: np.exp(X.numpy())),
        (lambda: mg.add(input=X, other=Y, alpha=2), lambda: X.numpy() + 2 * Y.numpy()),
        (lambda: X.sub(other=Y), lambda: X.numpy() - Y.numpy()),
        (lambda: mg.pow(input=Y, exponent=3.0), lambda: Y.numpy() ** 3),
        (lambda: Y.clone().pow_(exponent=2), lambda: Y.numpy() ** 2),
        (lambda: X.clone().mul_(other=Y), lambda: X.numpy() * Y.numpy()),
        (lambda: mg.matmul(input=X, other=Y), lambda: X.numpy() @ Y.numpy()),
        (lambda: mg.mm(input=X, mat2=Y), lambda: X.numpy() @ Y.numpy()),
        (lambda: mg.outer(input=X[0], vec2=Y[1]), lambda: np.outer(X[0], Y[1])),
        (lambda: mg.lerp(input=X, end=Y, weight=0.5), lambda: (X.numpy() + Y.numpy()) / 2),
        (lambda: mg.heaviside(input=X, values=Y), lambda: np.heaviside(X.numpy(), Y.numpy())),
        (lambda: mg.clamp(input=X, min=0.0), lambda: np.maximum(X.numpy(), 0)),
        (lambda: mg.sum(input=X, dim=0), lambda: X.numpy().sum(0)),
        (lambda: mg.max(input=X, dim=1).values, lambda: X.numpy().max(1)),
        (lambda: mg.cumsum(input=X, dim=1), lambda: X.numpy().cumsum(1)),
        (lambda: mg.transpose(input=X, dim0=0, dim1=1), lambda: X.numpy().T),
        (lambda: mg.gather(input=X, dim=0, index=mg.tensor([[1, 0]])), lambda: [[0.25, -2.0]]),
        (lambda: mg.masked_fill(input=X, mask=X < 0, value=9.0), lambda: [[1.5, 9], [0.25, 3]]),
        (lambda: mg.split(tensor=X, split_size_or_sections=1)[1], lambda: X.numpy()[1:]),
        (lambda: mg.unique(input=mg.tensor([2, 1, 2])), lambda: [1, 2]),
        (lambda: mg.det(input=X), lambda: 5.0),
    ],
)
def test_arguments_by_name(named, wanted):
    np.testing.assert_allclose(named().numpy(), wanted(), rtol=1e-6)


def of_pytorch(function):
    """The names in the signature that begins the docstring."""
    found = re.match(r"[\w.]*\((.*?)\)\s*(->|$)", (function.__doc__ or "").strip().split("\n")[0])
    return (
        [re.sub(r"[=:].*", "", name).strip(" *") for name in found[1].split(",")] if found else []
    )


def test_the_names_are_pytorchs():
    """The first two of every function that both have."""
    torch = pytest.importorskip("torch")
    # where what PyTorch takes is not what its docstring says, or both `axis` and `dim`
    known = {"true_divide", "broadcast_to", "searchsorted", "matrix_exp", "concatenate"}
    wrong, compared = {}, 0
    for topic in functions.TOPICS:
        for name, function in public(topic):
            theirs = of_pytorch(getattr(torch, name, None))[:2]
            ours = list(inspect.signature(function).parameters)
            if not theirs or name in known:
                continue
            compared += 1
            lacking = [t for t in theirs if t.isidentifier() and t not in ours]
            if lacking:
                wrong[name] = lacking
    assert not wrong
    assert compared > 150


def test_arguments_that_mean_nothing_on_a_cpu():
    """They are taken, and change nothing."""
    x = mg.tensor([[1.0, -2.0]], requires_grad=True)
    for format_ in (None, mg.preserve_format, mg.contiguous_format, mg.channels_last):
        assert mg.equal(x.clone(memory_format=format_), x)
        assert x.contiguous(memory_format=format_) is x
        assert x.double(memory_format=format_).dtype is mg.float64
    assert mg.equal(mg.zeros(1, 2).copy_(x.detach(), True), x)
    assert mg.equal(mg.zeros(1, 2).copy_(other=x.detach(), non_blocking=True), x)
    for made in (x.new_zeros(2, pin_memory=True), x.new_full((2,), 0.0, pin_memory=True)):
        assert made.tolist() == [0, 0]
    assert mg.tril_indices(2, 2, device="cpu").tolist() == [[0, 1, 1], [0, 0, 1]]
    assert mg.range(0, 2, device="cpu").tolist() == [0, 1, 2]
    with pytest.raises(RuntimeError, match="minigrad computes on the CPU"):
        mg.triu_indices(2, 2, device="cuda")
    x.grad = mg.tensor([[3.0, 4.0]])
    assert mg.nn.utils.clip_grad_norm_([x], 1.0, foreach=True).item() == 5
    np.testing.assert_allclose(x.grad.numpy(), [[0.6, 0.8]], rtol=1e-6)
    mg.nn.utils.clip_grad_value_([x], 0.5, foreach=False)
    assert x.grad.tolist() == [[0.5, 0.5]]
    assert mg.linalg.svdvals(mg.eye(2), driver="gesvd").tolist() == [1, 1]


def test_numpy_by_force():
    x = mg.tensor([1.0], requires_grad=True)
    with pytest.raises(RuntimeError, match="detach"):
        x.numpy()
    assert x.numpy(force=True).tolist() == [1]


def test_is_contiguous_by_format():
    images = mg.zeros(2, 4, 5, 3).permute(0, 3, 1, 2)
    assert not images.is_contiguous()
    assert images.is_contiguous(memory_format=mg.channels_last)
    assert not images.contiguous().is_contiguous(memory_format=mg.channels_last)
    assert images.contiguous().is_contiguous(memory_format=mg.contiguous_format)
    assert not mg.zeros(2).is_contiguous(memory_format=mg.channels_last)


def test_modules_by_name():
    shared = mg.nn.Identity()
    model = mg.nn.Sequential(shared, shared)
    assert len(list(model.modules())) == 2
    assert len(list(model.modules(remove_duplicate=False))) == 3
    seen = []
    model.apply(fn=seen.append)
    assert seen[-1] is model
    model.register_buffer("scale", tensor=mg.ones(1))
    assert model.state_dict()["scale"].tolist() == [1]
