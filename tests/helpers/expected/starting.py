"""References of starting values of weights, and of derivatives of functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import stats

import minigrad as mg
from expected.sampled import Sampled
from minigrad import nn
from minigrad.autograd import functional

Case = tuple[Callable[[], Any], Any]

A = np.array([[3.0, 1.0, 0.0], [4.0, 2.0, 2.0]])
U, V = np.array([1.0, -2.0]), np.array([0.5, 1.0])
F64 = mg.float64


def _a() -> Any:
    return mg.tensor(A)


def _vector(values: np.ndarray) -> Any:
    return mg.tensor(values)


def _seeded() -> Any:
    return mg.Generator().manual_seed(1)


WIDE = (40, 60)  # fans of 60 and 40


def _products_by(orthogonal: Any) -> Any:
    w = orthogonal(mg.empty(3, 5, dtype=F64), 2.0, generator=_seeded())
    return w @ w.T


def _uniform(low: float, high: float) -> Sampled:
    return Sampled(stats.uniform(low, high - low))


INIT: dict[str, list[Case]] = {
    "constant_": [(lambda: nn.init.constant_(mg.empty(2, 3), 1.5), np.full((2, 3), 1.5))],
    "zeros_": [(lambda: nn.init.zeros_(mg.empty(2, 3)), np.zeros((2, 3)))],
    "ones_": [(lambda: nn.init.ones_(mg.empty(2, 3)), np.ones((2, 3)))],
    "eye_": [(lambda: nn.init.eye_(mg.empty(2, 3)), np.eye(2, 3))],
    "dirac_": [
        (
            lambda: nn.init.dirac_(mg.empty(2, 2, 3)),
            np.array([[[0.0, 1.0, 0.0], [0.0] * 3], [[0.0] * 3, [0.0, 1.0, 0.0]]]),
        )
    ],
    "uniform_": [
        (lambda: nn.init.uniform_(mg.empty(*WIDE), -1, 3, generator=_seeded()), _uniform(-1, 3))
    ],
    "normal_": [
        (
            lambda: nn.init.normal_(mg.empty(*WIDE), 2, 3, generator=_seeded()),
            Sampled(stats.norm(2, 3)),
        )
    ],
    "trunc_normal_": [
        (
            lambda: nn.init.trunc_normal_(mg.empty(*WIDE), 0, 2, -1, 3, generator=_seeded()),
            Sampled(stats.truncnorm(-0.5, 1.5, scale=2)),
        )
    ],
    "xavier_uniform_": [
        (
            lambda: nn.init.xavier_uniform_(mg.empty(*WIDE), 2.0, generator=_seeded()),
            _uniform(-2 * np.sqrt(6 / 100), 2 * np.sqrt(6 / 100)),
        )
    ],
    "xavier_normal_": [
        (
            lambda: nn.init.xavier_normal_(mg.empty(*WIDE), 2.0, generator=_seeded()),
            Sampled(stats.norm(scale=2 * np.sqrt(2 / 100))),
        )
    ],
    "kaiming_uniform_": [
        (
            lambda: nn.init.kaiming_uniform_(mg.empty(*WIDE), generator=_seeded()),
            _uniform(-np.sqrt(6 / 60), np.sqrt(6 / 60)),
        )
    ],
    "kaiming_normal_": [
        (
            lambda: nn.init.kaiming_normal_(
                mg.empty(*WIDE), mode="fan_out", nonlinearity="relu", generator=_seeded()
            ),
            Sampled(stats.norm(scale=np.sqrt(2 / 40))),
        )
    ],
    "orthogonal_": [(lambda: _products_by(nn.init.orthogonal_), 4 * np.eye(3))],
    "calculate_gain": [
        (lambda: nn.init.calculate_gain("tanh"), 5 / 3),
        (lambda: nn.init.calculate_gain("leaky_relu", 0.5), np.sqrt(2 / 1.25)),
    ],
}

# ---- derivatives of functions --------------------------------------------------------------------


def _map(x: Any) -> Any:
    """The map of two numbers to x0 x1 and x0^2, with the Jacobian ((x1, x0), (2 x0, 0))."""
    return mg.stack([x[0] * x[1], x[0] ** 2])


def _bowl(x: Any) -> Any:
    """x0^2 x1, with the gradient (2 x0 x1, x0^2) and the Hessian ((2 x1, 2 x0), (2 x0, 0))."""
    return x[0] ** 2 * x[1]


def _jacobian(x: np.ndarray) -> np.ndarray:
    return np.array([[x[1], x[0]], [2 * x[0], 0]])


def _gradient(x: np.ndarray) -> np.ndarray:
    return np.array([2 * x[0] * x[1], x[0] ** 2])


def _hessian(x: np.ndarray) -> np.ndarray:
    return np.array([[2 * x[1], 2 * x[0]], [2 * x[0], 0]])


def _of_pair(pair: Any, *given: Any) -> list[Any]:
    """A value, and the function beside it applied to a vector; the results of either in a list."""
    value, function = pair
    made = function(*given)
    return [value, made[0] if isinstance(made, tuple) else made]


def _by_one(op: Any, function: Any, vector: np.ndarray) -> list[Any]:
    """An operation on tuples, of one argument and one vector."""
    value, product = op(function, (_vector(U),), (_vector(vector),))
    return [value, product[0] if isinstance(product, tuple) else product]


def _stacked_weights() -> Any:
    layers = [nn.Linear(3, 2) for _ in range(2)]
    for scale, layer in enumerate(layers):
        nn.init.constant_(layer.weight, scale)
    return mg.func.stack_module_state(layers)[0]["weight"]


VALUE, BOWL = np.array([-2.0, 1.0]), -2.0

DERIVATIVES: dict[str, list[Case]] = {
    "func.grad": [(lambda: mg.func.grad(_bowl)(_vector(U)), _gradient(U))],
    "func.value_and_grad": [
        (lambda: mg.func.value_and_grad(_bowl)(_vector(U)), [BOWL, _gradient(U)])
    ],
    "func.grad_and_value": [
        (lambda: mg.func.grad_and_value(_bowl)(_vector(U)), [_gradient(U), BOWL])
    ],
    "func.vjp": [
        (
            lambda: _of_pair(mg.func.vjp(_map, _vector(U)), _vector(V)),
            [VALUE, V @ _jacobian(U)],
        )
    ],
    "func.jvp": [(lambda: _by_one(mg.func.jvp, _map, V), [VALUE, _jacobian(U) @ V])],
    "func.linearize": [
        (
            lambda: _of_pair(mg.func.linearize(_map, _vector(U)), _vector(V)),
            [VALUE, _jacobian(U) @ V],
        )
    ],
    "func.jacrev": [(lambda: mg.func.jacrev(_map)(_vector(U)), _jacobian(U))],
    "func.jacfwd": [(lambda: mg.func.jacfwd(_map)(_vector(U)), _jacobian(U))],
    "func.jacobian": [(lambda: mg.func.jacobian(_map)(_vector(U)), _jacobian(U))],
    "func.hessian": [(lambda: mg.func.hessian(_bowl)(_vector(U)), _hessian(U))],
    "func.hvp": [(lambda: _by_one(mg.func.hvp, _bowl, V), [BOWL, _hessian(U) @ V])],
    "func.vhp": [(lambda: _by_one(mg.func.vhp, _bowl, V), [BOWL, V @ _hessian(U)])],
    "func.stack_module_state": [
        (_stacked_weights, np.repeat([0.0, 1.0], 6).reshape(2, 2, 3)),
    ],
    "func.functional_call": [
        (
            lambda: mg.func.functional_call(
                nn.Linear(3, 2), {"weight": _a(), "bias": _vector(U)}, (_a(),)
            ),
            A @ A.T + U,
        )
    ],
    "autograd.grad": [
        (lambda: mg.autograd.grad(_bowl(x := _vector(U).requires_grad_()), x), _gradient(U))
    ],
    "autograd.functional.jacobian": [(lambda: functional.jacobian(_map, _vector(U)), _jacobian(U))],
    "autograd.functional.hessian": [(lambda: functional.hessian(_bowl, _vector(U)), _hessian(U))],
    "autograd.functional.vjp": [
        (lambda: functional.vjp(_map, _vector(U), _vector(V)), [VALUE, V @ _jacobian(U)])
    ],
    "autograd.functional.jvp": [
        (lambda: functional.jvp(_map, _vector(U), _vector(V)), [VALUE, _jacobian(U) @ V])
    ],
    "autograd.functional.vhp": [
        (lambda: functional.vhp(_bowl, _vector(U), _vector(V)), [BOWL, V @ _hessian(U)])
    ],
    "autograd.functional.hvp": [
        (lambda: functional.hvp(_bowl, _vector(U), _vector(V)), [BOWL, _hessian(U) @ V])
    ],
}

STARTING: dict[str, list[Case]] = {
    **{f"nn.init.{n}": case for n, case in INIT.items()},
    **DERIVATIVES,
}
