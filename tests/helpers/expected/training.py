"""References, by hand, of calls that change, pack and average models and sequences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import minigrad as mg
from minigrad import nn
from minigrad.nn.utils import parametrizations, parametrize, rnn
from minigrad.optim import swa_utils

Case = tuple[Callable[[], Any], Any]

A = np.array([[3.0, 1.0, 0.0], [4.0, 2.0, 2.0]])
U, V = np.array([1.0, -2.0]), np.array([0.5, 1.0])
F64 = mg.float64


def _a() -> Any:
    return mg.tensor(A)


def _vector(values: np.ndarray) -> Any:
    return mg.tensor(values)


# ---- weights and gradients -----------------------------------------------------------------------


def _with_gradient() -> list[Any]:
    """Two parameters with gradients whose norm is 13."""
    found = []
    for g in (np.array([3.0, -4.0]), np.array([[12.0]])):
        p = mg.zeros(g.shape, dtype=F64, requires_grad=True)
        p.grad = mg.tensor(g)
        found.append(p)
    return found


def _clipped(clip: Callable[[Any], Any]) -> list[Any]:
    parameters = _with_gradient()
    norm = clip(parameters)
    gradients = [p.grad for p in parameters]
    return gradients if norm is None else [norm, *gradients]


HALF = 6.5 / (13 + 1e-6)
SHORTER = [13.0, HALF * np.array([3.0, -4.0]), HALF * np.array([[12.0]])]


def _linear() -> Any:
    layer = nn.Linear(3, 2, dtype=F64)
    layer.weight.data, layer.bias.data = _a(), _vector(U)
    return layer


def _norm_layer(make: Any, count: int) -> Any:
    """A batch normalisation layer in evaluation, with a weight, a bias and statistics."""
    layer = make(count).double()
    layer.weight.data, layer.bias.data = _vector(U), _vector(V)
    layer.running_mean, layer.running_var = _vector(V), _vector(np.array([4.0, 9.0]) - 1e-5)
    return layer.eval()


SCALE = U / np.array([2.0, 3.0])
FUSED_LINEAR = [A * SCALE[:, None], (U - V) * SCALE + V]


def _filled(fill: Any) -> Any:
    p = [mg.zeros(2, dtype=F64), mg.zeros(1, 1, dtype=F64)]
    fill(mg.tensor([1.0, 2.0, 3.0], F64), p)
    return p


def _conv() -> Any:
    layer = nn.Conv1d(3, 2, 1, dtype=F64)
    layer.weight.data, layer.bias.data = _a().unsqueeze(-1), _vector(U)
    return layer


ROWS = np.sqrt((A**2).sum(1, keepdims=True))


def _of_weight(change: Callable[[Any], Any]) -> Any:
    """The weight of a changed layer, computed once."""
    layer = change(_linear())
    layer(_a())
    return layer.weight


def _halved_norms(change: Callable[[Any], Any]) -> Any:
    """The weight after the lengths of its rows were halved."""
    layer = change(_linear())
    lengths = [p for p in layer.parameters() if p.shape == (2, 1)]
    with mg.no_grad():
        lengths[0].mul_(0.5)
    layer(_a())
    return layer.weight


def _largest_is_one(change: Callable[[Any], Any]) -> Any:
    """The largest singular value after many iterations."""
    layer = change(_linear())
    for _ in range(30):
        layer(_a())
    return mg.linalg.svdvals(layer.weight)[0]


def _products_of_rows(change: Callable[[Any], Any]) -> Any:
    weight = change(_linear()).weight
    return weight @ weight.T


def _after_iterations(remove: Any) -> Any:
    layer = nn.utils.spectral_norm(_linear(), n_power_iterations=50)
    layer(_a())
    return remove(layer)


BY_LARGEST = A / np.linalg.svd(A, compute_uv=False)[0]


class _Double(nn.Module):
    def forward(self, x: Any) -> Any:
        return 2 * x


def _registered(register: Any = parametrize.register_parametrization) -> Any:
    return register(_linear(), "weight", _Double())


UTILS: dict[str, list[Case]] = {
    "clip_grad_norm_": [(lambda: _clipped(lambda p: nn.utils.clip_grad_norm_(p, 6.5)), SHORTER)],
    "clip_grad_norm": [(lambda: _clipped(lambda p: nn.utils.clip_grad_norm(p, 6.5)), SHORTER)],
    "clip_grad_value_": [
        (
            lambda: _clipped(lambda p: nn.utils.clip_grad_value_(p, 3.5)),
            [np.array([3.0, -3.5]), np.array([[3.5]])],
        )
    ],
    "parameters_to_vector": [
        (
            lambda: nn.utils.parameters_to_vector([_vector(U), _a()]),
            np.concatenate([U, A.ravel()]),
        )
    ],
    "vector_to_parameters": [
        (
            lambda: _filled(nn.utils.vector_to_parameters),
            [np.array([1.0, 2.0]), np.array([[3.0]])],
        )
    ],
    "skip_init": [(lambda: nn.utils.skip_init(nn.Linear, 3, 2).weight.shape, [2, 3])],
    "fuse_linear_bn_weights": [
        (
            lambda: nn.utils.fuse_linear_bn_weights(
                *map(_vector, (A, U, V, np.array([4.0, 9.0]))), 0.0, _vector(U), _vector(V)
            ),
            FUSED_LINEAR,
        )
    ],
    "fuse_conv_bn_weights": [
        (
            lambda: nn.utils.fuse_conv_bn_weights(
                *map(_vector, (A[..., None], U, V, np.array([4.0, 9.0]))),
                0.0,
                _vector(U),
                _vector(V),
            ),
            [FUSED_LINEAR[0][..., None], FUSED_LINEAR[1]],
        )
    ],
    "fuse_linear_bn_eval": [
        (
            lambda: list(
                nn.utils.fuse_linear_bn_eval(
                    _linear().eval(), _norm_layer(nn.BatchNorm1d, 2)
                ).parameters()
            ),
            FUSED_LINEAR,
        )
    ],
    "fuse_conv_bn_eval": [
        (
            lambda: list(
                nn.utils.fuse_conv_bn_eval(
                    _conv().eval(), _norm_layer(nn.BatchNorm1d, 2)
                ).parameters()
            ),
            [FUSED_LINEAR[0][..., None], FUSED_LINEAR[1]],
        )
    ],
    "weight_norm": [
        (lambda: _of_weight(lambda m: nn.utils.weight_norm(m)), A),
        (lambda: _halved_norms(lambda m: nn.utils.weight_norm(m)), A / 2),
    ],
    "remove_weight_norm": [
        (lambda: nn.utils.remove_weight_norm(nn.utils.weight_norm(_linear())).weight, A)
    ],
    "spectral_norm": [(lambda: _largest_is_one(lambda m: nn.utils.spectral_norm(m)), 1.0)],
    "remove_spectral_norm": [
        (lambda: _after_iterations(nn.utils.remove_spectral_norm).weight, BY_LARGEST)
    ],
    "parametrizations.weight_norm": [
        (lambda: _of_weight(lambda m: parametrizations.weight_norm(m)), A),
        (lambda: _halved_norms(lambda m: parametrizations.weight_norm(m)), A / 2),
    ],
    "parametrizations.spectral_norm": [
        (lambda: _largest_is_one(lambda m: parametrizations.spectral_norm(m)), 1.0)
    ],
    "parametrizations.orthogonal": [
        (lambda: _products_of_rows(lambda m: parametrizations.orthogonal(m)), np.eye(2))
    ],
    "parametrize.register_parametrization": [
        (lambda: _registered(parametrize.register_parametrization).weight, 2 * A)
    ],
    "parametrize.remove_parametrizations": [
        (lambda: parametrize.remove_parametrizations(_registered(), "weight").weight, 2 * A)
    ],
    "parametrize.is_parametrized": [
        (lambda: parametrize.is_parametrized(_registered()), True),
        (lambda: parametrize.is_parametrized(_linear()), False),
    ],
    "parametrize.type_before_parametrizations": [
        (lambda: parametrize.type_before_parametrizations(_registered()) is nn.Linear, True)
    ],
}

# ---- sequences -----------------------------------------------------------------------------------


def _sequences() -> list[Any]:
    return [mg.tensor([1.0, 2.0, 3.0], F64), mg.tensor([4.0], F64), mg.tensor([5.0, 6.0], F64)]


PADDED = np.array([[1.0, 4.0, 5.0], [2.0, 0.0, 6.0], [3.0, 0.0, 0.0]])
PACKED = [np.array([1.0, 5.0, 4.0, 2.0, 6.0, 3.0]), np.array([3, 2, 1])]


def _packed() -> Any:
    return rnn.pack_sequence(_sequences(), enforce_sorted=False)


def _data(packed: Any) -> list[Any]:
    return [packed.data, packed.batch_sizes]


RNN: dict[str, list[Case]] = {
    "pad_sequence": [(lambda: rnn.pad_sequence(_sequences()), PADDED)],
    "unpad_sequence": [
        (
            lambda: rnn.unpad_sequence(_vector(PADDED), mg.tensor([3, 1, 2])),
            [np.array([1.0, 2.0, 3.0]), np.array([4.0]), np.array([5.0, 6.0])],
        )
    ],
    "pack_sequence": [
        (lambda: _data(rnn.pack_sequence(_sequences(), enforce_sorted=False)), PACKED)
    ],
    "pack_padded_sequence": [
        (
            lambda: _data(
                rnn.pack_padded_sequence(_vector(PADDED), [3, 1, 2], enforce_sorted=False)
            ),
            PACKED,
        )
    ],
    "pad_packed_sequence": [
        (lambda: rnn.pad_packed_sequence(_packed()), [PADDED, np.array([3, 1, 2])])
    ],
    "unpack_sequence": [
        (
            lambda: rnn.unpack_sequence(_packed()),
            [np.array([1.0, 2.0, 3.0]), np.array([4.0]), np.array([5.0, 6.0])],
        )
    ],
    "invert_permutation": [
        (lambda: rnn.invert_permutation(mg.tensor([2, 0, 1])), np.array([1, 2, 0]))
    ],
}

# ---- averages ------------------------------------------------------------------------------------


def _averaged(make: Callable[[Any], Any]) -> Any:
    """The weight of an average of A, 2 A and 4 A."""
    layer = _linear()
    average = make(layer)
    for factor in (1, 2, 4):
        layer.weight.data = factor * _a()
        average.update_parameters(layer)
    return average.module.weight


def _on_lists(average: Callable[..., Any]) -> Any:
    first = [_a()]
    average(first, [4 * _a()], 2)
    return first[0]


def _rates(make: Any) -> list[float]:
    """The rate falls linearly from 0.5 to 0.1 in four steps, and stays there."""
    optimizer = mg.optim.SGD([mg.zeros(1, requires_grad=True)], lr=0.5)
    schedule = make(optimizer, 0.1, 4, "linear")
    found = []
    for _ in range(5):
        optimizer.step()
        schedule.step()
        found.append(optimizer.param_groups[0]["lr"])
    return found


def _statistics(update: Any, batches: list[Any]) -> Any:
    layer = nn.BatchNorm1d(3).double()
    update(batches, layer)
    return [layer.running_mean, layer.running_var]


SWA: dict[str, list[Case]] = {
    "AveragedModel": [(lambda: _averaged(swa_utils.AveragedModel), A * 7 / 3)],
    "get_swa_avg_fn": [(lambda: swa_utils.get_swa_avg_fn()(_a(), 4 * _a(), 2), 2 * A)],
    "get_ema_avg_fn": [(lambda: swa_utils.get_ema_avg_fn(0.75)(_a(), 5 * _a(), 2), 2 * A)],
    "get_swa_multi_avg_fn": [(lambda: _on_lists(swa_utils.get_swa_multi_avg_fn()), 2 * A)],
    "get_ema_multi_avg_fn": [(lambda: _on_lists(swa_utils.get_ema_multi_avg_fn(2 / 3)), 2 * A)],
    "SWALR": [(lambda: _rates(swa_utils.SWALR), [0.4, 0.3, 0.2, 0.1, 0.1])],
    "update_bn": [
        (
            lambda: _statistics(swa_utils.update_bn, [_a(), 3 * _a()]),
            [2 * A.mean(0), (A.var(0, ddof=1) + 9 * A.var(0, ddof=1)) / 2],
        )
    ],
}

TRAINING: dict[str, list[Case]] = {
    **{f"nn.utils.{n}": case for n, case in UTILS.items()},
    **{f"nn.utils.rnn.{n}": case for n, case in RNN.items()},
    **{f"optim.swa_utils.{n}": case for n, case in SWA.items()},
}
