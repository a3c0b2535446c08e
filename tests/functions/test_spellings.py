"""Tests of PyTorch's other names for what there is, and of its small functions."""

from __future__ import annotations

import math
from importlib import import_module

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn, optim

pytestmark = pytest.mark.usefixtures("restore_random")

X = mg.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


def test_constants():
    assert (mg.pi, mg.e, mg.inf) == (math.pi, math.e, math.inf)
    assert math.isnan(mg.nan)
    assert X[:, mg.newaxis].shape == (2, 1, 3)
    assert mg.float is mg.float32
    assert X.to(memory_format=mg.channels_last, dtype=mg.float) is X


DTYPES = {
    "FloatTensor": mg.float32,
    "DoubleTensor": mg.float64,
    "HalfTensor": mg.float16,
    "BFloat16Tensor": mg.bfloat16,
    "LongTensor": mg.int64,
    "IntTensor": mg.int32,
    "ShortTensor": mg.int16,
    "CharTensor": mg.int8,
    "ByteTensor": mg.uint8,
    "BoolTensor": mg.bool,
}


@pytest.mark.parametrize("name", DTYPES)
def test_classes_of_dtypes(name):
    cls, dtype = getattr(mg, name), DTYPES[name]
    assert cls(2, 3).shape == (2, 3)
    assert cls().shape == (0,)
    made = cls([1, 0])
    assert (made.dtype, made.tolist()) == (dtype, [1, 0])
    assert isinstance(made, cls)
    assert not isinstance(X.to(mg.int8 if dtype is mg.float32 else mg.float32), cls)
    assert made.type() == mg.typename(made) == f"minigrad.{name}"
    for given in (dtype, cls, f"torch.{name}", f"minigrad.{name}"):
        assert X.type(given).dtype is dtype
    with pytest.raises(TypeError, match=rf"^\[{name}\] takes sizes or one argument of data"):
        cls([1], [2])


def test_variables_of_old_programs():
    labels = mg.tensor([1, 2])
    made = mg.autograd.Variable(labels)
    assert (made.dtype, made.requires_grad) == (mg.int64, False)
    assert mg.autograd.Variable(X, requires_grad=True).requires_grad
    assert not X.requires_grad
    assert isinstance(X, mg.autograd.Variable)
    made = mg.autograd.Variable(np.ones(2), volatile=True)
    assert made.dtype is mg.float64


def test_questions():
    assert mg.is_tensor(X)
    assert not mg.is_tensor([1])
    assert not mg.is_storage(X)
    assert (mg.numel(X), X.nelement(), X.ndimension(), X.element_size()) == (6, 6, 2, 4)
    assert mg.is_nonzero(mg.tensor([2.0]))
    assert not mg.tensor(0).is_nonzero()
    with pytest.raises(RuntimeError, match=r"^\[is_nonzero\] a tensor of shape \(2, 3\) has not"):
        mg.is_nonzero(X)
    assert mg.is_same_size(X, X * 2)
    assert not X.is_same_size(X.T)
    assert (mg.is_complex(X), X.is_complex()) == (False, False)
    assert X.is_signed()
    assert not X.byte().is_signed()
    assert mg.broadcast_shapes((2, 1), 3, (1, 1, 1)) == (1, 2, 3)
    with pytest.raises(ValueError, match="broadcast_shapes"):
        mg.broadcast_shapes((2,), (3,))
    assert mg.typename(3) == "int"


def test_places_in_memory():
    assert (X.stride(), X.stride(0), X.T.stride(-1)) == ((3, 1), 3, 3)
    assert (X.storage_offset(), X[1, 1:].storage_offset()) == (0, 4)
    assert X[1].data_ptr() - X.data_ptr() == 12
    y = (X.clone().requires_grad_() * 2).detach_()
    assert (y.requires_grad, y.is_leaf, y.grad_fn) == (False, True, None)
    with pytest.raises(RuntimeError, match=r"^\[detach_\] this tensor is a view: use detach"):
        (X.clone().requires_grad_() * 2)[0].detach_()
    assert X.share_memory_() is X
    assert not X.is_shared()


RESHAPED = {
    "unsqueeze_": ((1,), (2, 1, 3)),
    "t_": ((), (3, 2)),
    "transpose_": ((0, 1), (3, 2)),
    "swapaxes_": ((0, 1), (3, 2)),
    "swapdims_": ((-1, 0), (3, 2)),
}


@pytest.mark.parametrize("name", RESHAPED)
def test_shapes_change_in_place(name):
    arguments, shape = RESHAPED[name]
    x = X.clone()
    assert getattr(x, name)(*arguments) is x
    wanted = getattr(X, name[:-1])(*arguments)
    assert x.shape == shape
    assert (x == wanted).all()
    leaf = X.clone().requires_grad_()
    y = leaf * 3
    getattr(y, name)(*arguments)
    (y * wanted).sum().backward()
    np.testing.assert_array_equal(leaf.grad.numpy(), 3 * X.numpy())
    with pytest.raises(RuntimeError, match=rf"^\[{name}\] a leaf that requires grad is not"):
        getattr(leaf, name)(*arguments)
    with mg.no_grad():
        assert getattr(leaf, name)(*arguments).requires_grad
    base = X.clone()
    part = base[:]
    for x in (base, part):
        with pytest.raises(RuntimeError, match=rf"^\[{name}\] this tensor is a view or has views"):
            getattr(x, name)(*arguments)


def test_squeeze_in_place():
    assert mg.ones(1, 2, 1).squeeze_().shape == (2,)
    assert mg.ones(1, 2, 1).squeeze_(0).shape == (2, 1)


def test_resize_in_place():
    x = X.clone()
    assert x.resize_(2, 2) is x
    assert x.tolist() == [[1, 2], [3, 4]]
    assert x.resize_((3, 3)).flatten()[:4].tolist() == [1, 2, 3, 4]
    assert x.resize_as_(X).shape == (2, 3)
    with pytest.raises(RuntimeError, match=r"^\[resize_\] a tensor that requires grad"):
        X.clone().requires_grad_().resize_(2)


def test_random_numbers_in_place():
    mg.manual_seed(0)
    x = mg.empty(1000)
    assert set(x.random_(3).tolist()) == {0, 1, 2}
    assert set(x.random_(2, 4).tolist()) == {2, 3}
    assert 2**20 < x.random_().max().item() <= 2**24
    assert mg.empty(1000, dtype=mg.uint8).random_().max().item() > 200
    assert set(mg.empty(100, dtype=mg.bool).random_().tolist()) == {False, True}
    assert x.geometric_(0.5).min().item() == 1
    assert abs(x.geometric_(0.25).mean().item() - 4) < 0.5
    assert abs(x.log_normal_(0.0, 1.0).log().mean().item()) < 0.15
    assert abs(x.cauchy_(2.0, 0.1).median().item() - 2) < 0.05
    for call, text in (
        (lambda: x.random_(3, 3), r"^\[random_\] the range \[3, 3\) is empty"),
        (lambda: x.geometric_(1.5), r"^\[geometric_\] p is 1.5"),
        (lambda: x.log_normal_(0, -1), r"^\[log_normal_\] the standard deviation"),
        (lambda: x.cauchy_(0, 0), r"^\[cauchy_\] the width 0 is not positive"),
    ):
        with pytest.raises(ValueError, match=text):
            call()


def test_older_functions():
    a = X.double()
    u, s, v = mg.svd(a)
    np.testing.assert_allclose((u * s @ v.mT).numpy(), a.numpy(), atol=1e-12)
    u, s, v = a.svd(some=False)
    assert (u.shape, s.shape, v.shape) == ((2, 2), (2,), (3, 3))
    assert mg.dist(X, X + 1, 1).item() == 6
    assert mg.range(0, 1, 0.25).tolist() == [0, 0.25, 0.5, 0.75, 1]
    assert mg.range(3, 1, -1).tolist() == [3, 2, 1]
    with pytest.raises(ValueError, match=r"^\[range\] cannot count from 1 to 0 by 1"):
        mg.range(1, 0)
    assert (mg.adjoint(X) == X.T).all()
    assert (X.mH == X.H).all()
    with pytest.raises(ValueError, match=r"^\[adjoint\] the tensor has 1 dimensions"):
        mg.adjoint(X[0])


@pytest.mark.parametrize(
    "name",
    ["absolute_", "arctan_", "clip_", "multiply_", "subtract_", "true_divide_", "negative_"],
)
def test_other_names_in_place(name):
    arguments = () if name in ("absolute_", "arctan_", "negative_") else (2.0,)
    x = X.clone()
    assert getattr(x, name)(*arguments) is x
    np.testing.assert_array_equal(x.numpy(), getattr(X, name[:-1])(*arguments).numpy())


def test_printing():
    before = np.get_printoptions()
    try:
        mg.set_printoptions(precision=2)
        assert repr(mg.tensor([1.23456])) == "tensor([1.23])"
        mg.set_printoptions(threshold=4, edgeitems=1)
        assert repr(mg.arange(9)) == "tensor([0, ..., 8], shape=(9,))"
        mg.set_printoptions(profile="full", sci_mode=False)
        assert "..." not in repr(mg.arange(2000))
        with pytest.raises(ValueError, match=r"^\[set_printoptions\] profile 'spam' is not one of"):
            mg.set_printoptions(profile="spam")
    finally:
        np.set_printoptions(**before)


def test_settings_that_change_nothing():
    mg.set_default_device("cpu")
    assert mg.get_default_device() == mg.device("cpu")
    with pytest.raises(RuntimeError, match="minigrad computes on the CPU"):
        mg.set_default_device("cuda")
    mg.use_deterministic_algorithms(True, warn_only=True)
    assert mg.are_deterministic_algorithms_enabled()
    mg.set_float32_matmul_precision("high")
    mg.set_num_interop_threads(4)
    assert mg.get_num_interop_threads() == 1


@pytest.mark.parametrize(
    ("path", "name", "found"),
    [
        ("optim.optimizer", "Optimizer", optim.Optimizer),
        ("optim.lr_scheduler", "_LRScheduler", optim.lr_scheduler.LRScheduler),
        ("nn.modules", "Linear", nn.Linear),
        ("nn.modules.module", "Module", nn.Module),
        ("nn.modules.loss", "MSELoss", nn.MSELoss),
        ("nn.parameter", "Parameter", nn.Parameter),
        ("autograd.function", "Function", mg.autograd.Function),
        ("autograd.variable", "Variable", mg.autograd.Variable),
    ],
)
def test_where_programs_import_from(path, name, found):
    assert getattr(import_module(f"minigrad.{path}"), name) is found


def test_functions_of_layers_at_the_top():
    for name in ("layer_norm", "conv2d", "dropout", "prelu", "cosine_similarity"):
        assert getattr(mg, name) is getattr(nn.functional, name)
    from minigrad.nn.modules.utils import _pair

    assert (_pair(2), _pair((1, 3))) == ((2, 2), (1, 3))
    p = nn.Parameter(mg.ones(4))
    p.grad = mg.full((4,), 2.0)
    assert nn.utils.clip_grad_norm([p], 1.0).item() == 4


def test_in_place_methods_are_functions():
    from minigrad._tensor import inplace_functions as in_place

    for name in in_place.__all__:
        assert getattr(mg, name) is getattr(mg.Tensor, name)
    x = mg.tensor([0.25, 4.0])
    assert mg.sqrt_(x) is x
    assert x.tolist() == [0.5, 2.0]
    assert mg.clamp_(x, min=1.0).tolist() == [1.0, 2.0]


def test_compile_takes_functions_and_modules():
    model = nn.Linear(2, 1)
    made = mg.compile(model, mode="reduce-overhead")
    assert isinstance(made, nn.Module)
    assert made._orig_mod is model
    assert mg.compile(model, disable=True) is model
    assert model.compile(backend="inductor") is None

    @mg.compile
    def double(x):
        return 2 * x

    @mg.compile(dynamic=True)
    def triple(x):
        return 3 * x

    @mg.compiler.disable
    def same(x):
        return x

    assert (double(2), triple(2), same(2), mg.compiler.is_compiling()) == (4, 6, 2, False)
    with pytest.raises(
        TypeError, match=r"^\[compile\] Tensor cannot be called: give a module or a"
    ):
        mg.compile(X)


@pytest.mark.parametrize("make", [mg.Tensor, mg.FloatTensor, mg.LongTensor, X.new])
def test_a_shape_is_sizes_and_other_sequences_are_data(make):
    assert make(X.size()).shape == make(X.shape).shape == make(2, 3).shape == (2, 3)
    assert make((2, 3)).tolist() == make([2, 3]).tolist() == [2, 3]
    assert make().shape == (0,)
    assert make([1]).dtype is (mg.int64 if make is mg.LongTensor else mg.float32)
    with pytest.raises(TypeError, match=r"^\[\w+\] takes sizes or one argument of data"):
        make([1], [2])


def test_randint_like_names_its_bound():
    drawn = mg.randint_like(mg.ones(100), high=2)
    assert sorted(set(drawn.tolist())) == [0.0, 1.0]


def test_the_default_as_a_class():
    try:
        for given in (mg.DoubleTensor, "torch.DoubleTensor"):
            mg.set_default_tensor_type(given)
            assert mg.zeros(1).dtype is mg.float64
            mg.set_default_tensor_type("torch.FloatTensor")
            assert mg.zeros(1).dtype is mg.float32
        with pytest.raises(RuntimeError, match="minigrad computes on the CPU"):
            mg.set_default_tensor_type("torch.cuda.FloatTensor")
    finally:
        mg.set_default_dtype(mg.float32)
