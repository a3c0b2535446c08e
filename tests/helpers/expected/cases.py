"""References of calls without a sample, computed by hand or by NumPy and SciPy, by name.

They are creation, predicates, conversions, random numbers and methods of tensors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import stats
from scipy.signal import windows

import minigrad as mg
from expected.distributions import DISTRIBUTIONS
from expected.sampled import Sampled
from expected.starting import STARTING
from expected.training import TRAINING

Case = tuple[Callable[[], Any], Any]


def _x() -> Any:
    return mg.tensor([[1.5, -2.0, 3.0], [0.0, 4.0, -5.0]], mg.float64)


def _n() -> Any:
    return mg.tensor([[1, -2, 3], [0, 4, -5]])


def _generator() -> Any:
    return mg.Generator().manual_seed(1)


X = np.array([[1.5, -2.0, 3.0], [0.0, 4.0, -5.0]])
N = np.array([[1, -2, 3], [0, 4, -5]])
F64 = mg.float64
MANY = 2000


def _typed(name: str, values: list[Any]) -> list[Case]:
    return [(lambda: getattr(mg, name)([1, 0, 3]), np.array(values))]


CREATION: dict[str, list[Case]] = {
    "tensor": [
        (lambda: mg.tensor([[1.5, 2.0], [3.0, 4.25]]), np.array([[1.5, 2.0], [3.0, 4.25]])),
        (lambda: mg.tensor(7), 7),
    ],
    "as_tensor": [(lambda: mg.as_tensor([1, 2, 3]), np.array([1, 2, 3]))],
    "asarray": [(lambda: mg.asarray(np.array([1.5, 2.5])), np.array([1.5, 2.5]))],
    "from_numpy": [(lambda: mg.from_numpy(X), X)],
    "from_dlpack": [(lambda: mg.from_dlpack(X.copy()), X)],
    "scalar_tensor": [(lambda: mg.scalar_tensor(2.5), 2.5)],
    "arange": [
        (lambda: mg.arange(4), np.array([0, 1, 2, 3])),
        (lambda: mg.arange(1, 8, 3), np.array([1, 4, 7])),
        (lambda: mg.arange(1.0, 0.0, -0.25), np.array([1.0, 0.75, 0.5, 0.25])),
    ],
    "range": [(lambda: mg.range(1, 4), np.array([1.0, 2.0, 3.0, 4.0]))],
    "linspace": [(lambda: mg.linspace(-1, 2, 7, dtype=F64), np.linspace(-1, 2, 7))],
    "logspace": [
        (lambda: mg.logspace(-1, 1, 3, dtype=F64), np.array([0.1, 1.0, 10.0])),
        (lambda: mg.logspace(0, 3, 4, base=2, dtype=F64), np.array([1.0, 2.0, 4.0, 8.0])),
    ],
    "eye": [(lambda: mg.eye(2, 3), np.eye(2, 3))],
    "zeros": [(lambda: mg.zeros(2, 3), np.zeros((2, 3)))],
    "ones": [(lambda: mg.ones(2, 3), np.ones((2, 3)))],
    "full": [(lambda: mg.full((2, 3), 2.5), np.full((2, 3), 2.5))],
    "zeros_like": [(lambda: mg.zeros_like(_n()), np.zeros((2, 3), int))],
    "ones_like": [(lambda: mg.ones_like(_n()), np.ones((2, 3), int))],
    "full_like": [(lambda: mg.full_like(_x(), 2.5), np.full((2, 3), 2.5))],
    "bartlett_window": [(lambda: mg.bartlett_window(6, dtype=F64), windows.bartlett(6, False))],
    "blackman_window": [(lambda: mg.blackman_window(6, dtype=F64), windows.blackman(6, False))],
    "hamming_window": [(lambda: mg.hamming_window(6, dtype=F64), windows.hamming(6, False))],
    "hann_window": [(lambda: mg.hann_window(6, dtype=F64), windows.hann(6, False))],
    "kaiser_window": [(lambda: mg.kaiser_window(6, dtype=F64), windows.kaiser(6, 12.0, False))],
    **{
        f"{kind}Tensor": _typed(f"{kind}Tensor", values)
        for kinds, values in (
            ("Double Float Half", [1.0, 0.0, 3.0]),
            ("Char Int Long Short", [1, 0, 3]),
            ("Byte", np.array([1, 0, 3], np.uint8)),
            ("Bool", [True, False, True]),
        )
        for kind in kinds.split()
    },
    "BFloat16Tensor": [(lambda: mg.BFloat16Tensor([1, 0, 3]).float(), np.array([1.0, 0.0, 3.0]))],
}

QUESTIONS: dict[str, list[Case]] = {
    "broadcast_shapes": [(lambda: mg.broadcast_shapes((2, 1), (3,)), [2, 3])],
    "can_cast": [
        (lambda: mg.can_cast(mg.int64, mg.float32), True),
        (lambda: mg.can_cast(mg.float32, mg.int64), False),
    ],
    "get_device": [(lambda: mg.get_device(_x()), -1)],
    "is_complex": [(lambda: mg.is_complex(_x()), False)],
    "is_conj": [(lambda: mg.is_conj(_x()), False)],
    "is_floating_point": [
        (lambda: mg.is_floating_point(_x()), True),
        (lambda: mg.is_floating_point(_n()), False),
    ],
    "is_nonzero": [
        (lambda: mg.is_nonzero(mg.tensor(0.5)), True),
        (lambda: mg.is_nonzero(mg.tensor([0])), False),
    ],
    "is_same_size": [
        (lambda: mg.is_same_size(_x(), _n()), True),
        (lambda: mg.is_same_size(_x(), _x().T), False),
    ],
    "is_storage": [(lambda: mg.is_storage(_x()), False)],
    "is_tensor": [(lambda: mg.is_tensor(_x()), True), (lambda: mg.is_tensor(X), False)],
    "numel": [(lambda: mg.numel(_x()), 6)],
    "promote_types": [(lambda: mg.promote_types(mg.int64, mg.float32) is mg.float32, True)],
    "result_type": [(lambda: mg.result_type(_n(), 1.5) is mg.float32, True)],
    "finfo": [
        (lambda: mg.finfo(F64).eps, np.finfo(np.float64).eps),
        (lambda: mg.finfo(mg.float32).max, float(np.finfo(np.float32).max)),
    ],
    "iinfo": [(lambda: [mg.iinfo(mg.int64).min, mg.iinfo(mg.int64).max], [-(2**63), 2**63 - 1])],
}


def _written(call: Callable[[Any], Any]) -> Any:
    """The tensor after a write that returns None."""
    x = _x()
    call(x)
    return x


def _cube(x: Any) -> Any:
    return (x**3).sum()


def _run_back(backward: Callable[[Any], Any]) -> Any:
    """The gradient of a sum of cubes after ``backward``."""
    x = _x().requires_grad_()
    backward(_cube(x))
    return x.grad


def _leaf_after_backward() -> Any:
    x = _x().requires_grad_()
    _cube(x).backward()
    return x


DERIVATIVES: dict[str, list[Case]] = {
    "svd": [(lambda: mg.svd(_x())[1], np.linalg.svd(X, compute_uv=False))],
    "grad": [(lambda: mg.grad(_cube(y := _x().requires_grad_()), y), 3 * X**2)],
    "vmap": [(lambda: mg.vmap(_cube)(_x()), (X**3).sum(1))],
    "gradcheck": [(lambda: mg.gradcheck(_cube, _x().requires_grad_()), True)],
    "gradgradcheck": [(lambda: mg.gradgradcheck(_cube, _x().requires_grad_()), True)],
    "numerical_gradient_check": [
        (lambda: mg.numerical_gradient_check(_cube, _x().requires_grad_()), True)
    ],
    "compile": [(lambda: mg.compile(_cube)(_x()), (X**3).sum())],
}

RANDOM: dict[str, list[Case]] = {
    "rand": [(lambda: mg.rand(MANY, generator=_generator()), Sampled(stats.uniform()))],
    "rand_like": [
        (lambda: mg.rand_like(mg.zeros(MANY), generator=_generator()), Sampled(stats.uniform()))
    ],
    "randn": [(lambda: mg.randn(MANY, generator=_generator()), Sampled(stats.norm()))],
    "randn_like": [
        (lambda: mg.randn_like(mg.zeros(MANY), generator=_generator()), Sampled(stats.norm()))
    ],
    "randint": [
        (lambda: mg.randint(-1, 3, (MANY,), generator=_generator()), Sampled(stats.randint(-1, 3)))
    ],
    "randint_like": [
        (
            lambda: mg.randint_like(mg.zeros(MANY), -1, 3, generator=_generator()),
            Sampled(stats.randint(-1, 3)),
        )
    ],
    "randperm": [
        (lambda: np.sort(mg.randperm(50, generator=_generator()).numpy()), np.arange(50)),
        (lambda: len(set(mg.randperm(50, generator=_generator()).diff().tolist())) > 10, True),
    ],
    "normal": [
        (
            lambda: mg.normal(2.0, 3.0, (MANY,), generator=_generator()),
            Sampled(stats.norm(2, 3)),
        )
    ],
    "bernoulli": [
        (
            lambda: mg.bernoulli(mg.full((MANY,), 0.3), generator=_generator()),
            Sampled(stats.bernoulli(0.3)),
        )
    ],
    "multinomial": [
        (
            lambda: mg.multinomial(mg.tensor([1.0, 3.0]), MANY, True, generator=_generator()),
            Sampled(stats.bernoulli(0.75)),
        )
    ],
    "Tensor.uniform_": [
        (
            lambda: mg.empty(MANY).uniform_(-1, 3, generator=_generator()),
            Sampled(stats.uniform(-1, 4)),
        )
    ],
    "Tensor.normal_": [
        (lambda: mg.empty(MANY).normal_(2, 3, generator=_generator()), Sampled(stats.norm(2, 3)))
    ],
    "Tensor.exponential_": [
        (
            lambda: mg.empty(MANY).exponential_(2.0, generator=_generator()),
            Sampled(stats.expon(scale=0.5)),
        )
    ],
    "Tensor.bernoulli_": [
        (
            lambda: mg.empty(MANY).bernoulli_(0.3, generator=_generator()),
            Sampled(stats.bernoulli(0.3)),
        )
    ],
    "Tensor.random_": [
        (
            lambda: mg.empty(MANY).random_(-1, 3, generator=_generator()),
            Sampled(stats.randint(-1, 3)),
        )
    ],
    "Tensor.geometric_": [
        (
            lambda: mg.empty(MANY).geometric_(0.3, generator=_generator()),
            Sampled(stats.geom(0.3)),
        )
    ],
    "Tensor.log_normal_": [
        (
            lambda: mg.empty(MANY).log_normal_(0.5, 0.7, generator=_generator()),
            Sampled(stats.lognorm(0.7, scale=np.exp(0.5))),
        )
    ],
    "Tensor.cauchy_": [
        (lambda: mg.empty(MANY).cauchy_(1, 2, generator=_generator()), Sampled(stats.cauchy(1, 2)))
    ],
}

METHODS: dict[str, list[Case]] = {
    "Tensor.H": [(lambda: _x().H, X.T)],
    "Tensor.T": [(lambda: _x().T, X.T)],
    "Tensor.mH": [(lambda: _x().mH, X.T)],
    "Tensor.mT": [(lambda: _x().mT, X.T)],
    "Tensor.real": [(lambda: _x().real, X)],
    "Tensor.imag": [(lambda: _x().imag, 0 * X)],
    "Tensor.copy": [(lambda: _x().copy(), X)],
    "Tensor.where": [(lambda: _x().where(_x() > 0, _x() * 2), np.where(X > 0, X, 2 * X))],
    "Tensor.scale": [(lambda: _x().scale(_x()), X * X)],
    "Tensor.cat_with": [(lambda: _x().cat_with(_x(), 1), np.hstack([X, X]))],
    "Tensor.to": [(lambda: _x().to(mg.int64), X.astype(int))],
    "Tensor.astype": [(lambda: _x().astype(mg.int64), X.astype(int))],
    "Tensor.type": [(lambda: _x().type(mg.int64), X.astype(int))],
    "Tensor.bool": [(lambda: _x().bool(), X != 0)],
    **{
        f"Tensor.{name}": [(lambda name=name: getattr(_x(), name)(), X)]
        for name in ["half", "float", "double"]
    },
    **{
        f"Tensor.{name}": [(lambda name=name: getattr(_x(), name)(), X.astype(int))]
        for name in ["char", "int", "long", "short"]
    },
    "Tensor.bfloat16": [(lambda: _x().bfloat16().double(), X)],
    "Tensor.byte": [(lambda: _n().abs().byte(), abs(N).astype(np.uint8))],
    "Tensor.__round__": [(lambda: (_x() / 4).__round__(1), np.round(X / 4, 1))],
    "Tensor.cpu": [(lambda: _x().cpu(), X)],
    "Tensor.to_device": [(lambda: _x().to_device("cpu"), X)],
    "Tensor.pin_memory": [(lambda: _x().pin_memory(), X)],
    "Tensor.share_memory_": [(lambda: _x().share_memory_(), X)],
    "Tensor.data": [(lambda: _x().data, X)],
    "Tensor.detach": [(lambda: _x().detach(), X)],
    "Tensor.detach_": [(lambda: _x().detach_(), X)],
    "Tensor.requires_grad_": [(lambda: _x().requires_grad_(), X)],
    "Tensor.numpy": [(lambda: _x().numpy(), X)],
    "Tensor.tolist": [(lambda: _x().tolist(), X.tolist())],
    "Tensor.item": [(lambda: _x()[0, 1].item(), -2.0)],
    "Tensor.shape": [(lambda: list(_x().shape), [2, 3])],
    "Tensor.size": [(lambda: [_x().size, _x().size(1), *_x().size()], [6, 3, 2, 3])],
    "Tensor.ndim": [(lambda: _x().ndim, 2)],
    "Tensor.dim": [(lambda: _x().dim(), 2)],
    "Tensor.ndimension": [(lambda: _x().ndimension(), 2)],
    "Tensor.numel": [(lambda: _x().numel(), 6)],
    "Tensor.nelement": [(lambda: _x().nelement(), 6)],
    "Tensor.itemsize": [(lambda: _x().itemsize, 8)],
    "Tensor.element_size": [(lambda: _x().element_size(), 8)],
    "Tensor.nbytes": [(lambda: _x().nbytes, 48)],
    "Tensor.stride": [(lambda: _x().stride(), [3, 1]), (lambda: _x().T.stride(0), 1)],
    "Tensor.strides": [(lambda: _x().T.strides, [1, 3])],
    "Tensor.storage_offset": [(lambda: _x()[1, 1:].storage_offset(), 4)],
    "Tensor.new": [(lambda: _x().new([1.5, 2.5]), np.array([1.5, 2.5]))],
    "Tensor.new_zeros": [(lambda: _x().new_zeros(2), np.zeros(2))],
    "Tensor.new_ones": [(lambda: _x().new_ones(2), np.ones(2))],
    "Tensor.new_full": [(lambda: _x().new_full((2,), 1.5), np.full(2, 1.5))],
    "Tensor.new_tensor": [(lambda: _x().new_tensor([1.5]), np.array([1.5]))],
    "Tensor.copy_": [(lambda: _x().copy_(_x() + 1), X + 1)],
    "Tensor.fill_": [(lambda: _x().fill_(1.5), np.full((2, 3), 1.5))],
    "Tensor.zero_": [(lambda: _x().zero_(), np.zeros((2, 3)))],
    "Tensor.fill_diagonal_": [
        (lambda: _x().fill_diagonal_(9), np.array([[9.0, -2.0, 3.0], [0.0, 9.0, -5.0]]))
    ],
    "Tensor.accumulate_": [(lambda: _written(lambda x: x.accumulate_(_x())), 2 * X)],
    "Tensor.resize_": [(lambda: _x().resize_(2, 2), np.array([[1.5, -2.0], [3.0, 0.0]]))],
    "Tensor.resize_as_": [
        (lambda: _x().resize_as_(mg.zeros(2)), np.array([1.5, -2.0])),
    ],
    "Tensor.svd": [(lambda: _x().svd()[1], np.linalg.svd(X, compute_uv=False))],
    "Tensor.backward": [(lambda: _run_back(lambda y: y.backward()), 3 * X**2)],
    "Tensor.grad": [(lambda: _leaf_after_backward().grad, 3 * X**2)],
    "Tensor.is_complex": [(lambda: _x().is_complex(), False)],
    "Tensor.is_floating_point": [
        (lambda: _x().is_floating_point(), True),
        (lambda: _n().is_floating_point(), False),
    ],
    "Tensor.is_signed": [
        (lambda: _x().is_signed(), True),
        (lambda: _n().byte().is_signed(), False),
    ],
    "Tensor.is_nonzero": [
        (lambda: mg.tensor(0.5).is_nonzero(), True),
        (lambda: mg.tensor(0.0).is_nonzero(), False),
    ],
    "Tensor.is_same_size": [
        (lambda: _x().is_same_size(_n()), True),
        (lambda: _x().is_same_size(_n().T), False),
    ],
    "Tensor.is_contiguous": [
        (lambda: _x().is_contiguous(), True),
        (lambda: _x().T.is_contiguous(), False),
    ],
    "Tensor.__setitem__": [
        (
            lambda: _written(lambda x: x.__setitem__((0, slice(1, None)), 7.0)),
            np.array([[1.5, 7.0, 7.0], [0.0, 4.0, -5.0]]),
        )
    ],
    "Tensor.get_device": [(lambda: _x().get_device(), -1)],
}

CASES: dict[str, list[Case]] = {
    **CREATION,
    **QUESTIONS,
    **DERIVATIVES,
    **RANDOM,
    **METHODS,
    **STARTING,
    **TRAINING,
    **DISTRIBUTIONS,
}
