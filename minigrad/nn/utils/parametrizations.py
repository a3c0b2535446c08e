"""Parametrizations of weights: weight norm, spectral norm and orthogonal matrices."""

from __future__ import annotations

from typing import Any

from minigrad import functions as f
from minigrad import linalg
from minigrad.functions.arguments import integer
from minigrad.functions.creation import eye, zeros, zeros_like
from minigrad.functions.grad_modes import no_grad
from minigrad.nn import functional as F  # noqa: N812 - its usual name
from minigrad.nn.module import Module
from minigrad.nn.utils.parametrize import register_parametrization
from minigrad.random import randn

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]


def norm_except_dim(v: Any, dim: int) -> Any:
    """The norms over all dimensions except ``dim``, which keep size 1. -1 means all dimensions."""
    if dim == -1:
        return f.norm(v)
    dims = tuple([d for d in range(v.ndim) if d != dim % v.ndim])
    return f.vector_norm(v, 2.0, dims, True) if dims else f.abs(v)


class _WeightNorm(Module):
    def __init__(self, dim: int | None = 0) -> None:
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g: Any, weight_v: Any) -> Any:
        return weight_v * (weight_g / norm_except_dim(weight_v, self.dim))

    def right_inverse(self, weight: Any) -> Any:
        return norm_except_dim(weight, self.dim), weight


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """``weight = g * v / |v|`` with a length g per entry of ``dim`` (Salimans and Kingma 2016).

    If dim is None there is one length. The module's ``parametrizations.weight`` has g as
    ``original0`` and v as ``original1``. States of the older :func:`minigrad.nn.utils.weight_norm`
    can be loaded. Returns the module.

    >>> import minigrad as mg
    >>> layer = mg.nn.utils.parametrizations.weight_norm(mg.nn.Linear(2, 3))
    >>> layer.parametrizations.weight.original0.shape
    (3, 1)
    """
    register_parametrization(module, name, _WeightNorm(dim), unsafe=True)

    def renamed(_: Any, state: Any, prefix: str, *__: Any) -> None:
        for old, new in (("g", 0), ("v", 1)):
            if f"{prefix}{name}_{old}" in state:
                key = f"{prefix}parametrizations.{name}.original{new}"
                state[key] = state.pop(f"{prefix}{name}_{old}")

    module.register_load_state_dict_pre_hook(renamed)
    return module


def as_rows(weight: Any, dim: int) -> Any:
    """The weight as a matrix with a row for each entry of ``dim``."""
    return f.movedim(weight, dim, 0).flatten(1)


def iterated(matrix: Any, u: Any, v: Any, times: int, eps: float) -> None:
    """Run the power method in place: u and v approach the first singular vectors."""
    with no_grad():
        for _ in range(times):
            u.copy_(F.normalize(f.mv(matrix, v), dim=0, eps=eps))
            v.copy_(F.normalize(f.mv(matrix.mT, u), dim=0, eps=eps))


class _SpectralNorm(Module):
    _u: Any
    _v: Any

    def __init__(self, weight: Any, n_power_iterations: int, dim: int, eps: float) -> None:
        self.n_power_iterations = integer(
            "spectral_norm", "n_power_iterations", n_power_iterations, 1
        )
        if not -weight.ndim <= dim < weight.ndim:
            raise IndexError(f"[spectral_norm] dim {dim} is not in a weight of {weight.shape}")
        self.dim, self.eps = dim % weight.ndim, eps
        if weight.ndim > 1:
            matrix = as_rows(weight.detach(), self.dim)
            for name, size in zip(("_u", "_v"), matrix.shape, strict=True):
                start = F.normalize(randn(size, dtype=matrix.dtype), dim=0, eps=eps)
                self.register_buffer(name, start)
            iterated(matrix, self._u, self._v, 15, eps)

    def forward(self, weight: Any) -> Any:
        if weight.ndim == 1:
            return F.normalize(weight, dim=0, eps=self.eps)
        matrix = as_rows(weight, self.dim)
        if self.training:
            iterated(matrix, self._u, self._v, self.n_power_iterations, self.eps)
        # Copies, since another forward may change the vectors before this backward.
        return weight / f.dot(self._u.clone(), f.mv(matrix, self._v.clone()))

    def right_inverse(self, value: Any) -> Any:
        return value


def outputs_dim(module: Module) -> int:
    """The dimension of a module's weight that belongs to the outputs."""
    return 1 if getattr(module, "transposed", False) else 0


def spectral_norm(
    module: Module,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> Module:
    """The weight divided by its largest singular value (Miyato et al. 2018).

    The weight is seen as a matrix with a row for each entry of ``dim``, by default the dimension of
    outputs. The singular vectors are approximated by 15 steps of the power method, then
    ``n_power_iterations`` steps at each use in training. Returns the module.

    >>> import minigrad as mg
    >>> layer = mg.nn.utils.parametrizations.spectral_norm(mg.nn.Linear(3, 3), n_power_iterations=9)
    >>> list(layer.state_dict())[2:]
    ['parametrizations.weight.0._u', 'parametrizations.weight.0._v']
    """
    weight = getattr(module, name)
    dim = outputs_dim(module) if dim is None else dim
    norm = _SpectralNorm(weight, n_power_iterations, dim, eps)
    return register_parametrization(module, name, norm)


class _Orthogonal(Module):
    base: Any

    def __init__(self, weight: Any, kind: str, use_trivialization: bool) -> None:
        self.shape, self.kind = weight.shape, kind
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, x: Any) -> Any:
        n, k = x.shape[-2:]
        wide = n < k
        if wide:
            x, n, k = x.mT, k, n
        if self.kind == "householder":
            q = _reflected(x)
        else:
            x = f.tril(x)
            if n != k:
                x = f.cat((x, zeros(*x.shape[:-1], n - k, dtype=x.dtype)), -1)
            skew = x - x.mT
            if self.kind == "matrix_exp":
                q = linalg.matrix_exp(skew)
            else:
                one = eye(n, dtype=x.dtype)
                q = linalg.solve(one - 0.5 * skew, one + 0.5 * skew)
            q = q[..., :k]
        if "base" in self._buffers:
            q = self.base @ q
        return q.mT if wide else q

    def right_inverse(self, value: Any) -> Any:
        if "base" not in self._buffers:
            raise NotImplementedError(
                "[orthogonal] without a base the weight cannot be set: use_trivialization=True"
            )
        n, k = value.shape[-2:]
        q = value.mT if n < k else value
        n, k = q.shape[-2:]
        if n != k:
            q = f.cat((q, randn(*q.shape[:-1], n - k, dtype=q.dtype)), -1)
        one = eye(n, dtype=q.dtype)
        if n != k or not f.allclose(q.mT @ q, one.expand_as(q), atol=10 * n * _EPS[q.dtype.name]):
            q, r = linalg.qr(q)
            q = q * f.sign(f.diagonal(r, 0, -2, -1)).unsqueeze(-2)
        self.base = q.clone()
        start = zeros_like(value)
        f.diagonal(start, 0, -2, -1).fill_(-1.0)
        return start


_EPS = {"float32": 2.0**-23, "float64": 2.0**-52}


def _reflected(x: Any) -> Any:
    """The product of Householder reflections by the columns of x, times its diagonal's signs."""
    below = f.tril(x, -1)
    n, k = x.shape[-2:]
    one = eye(n, k, dtype=x.dtype)
    v = below + one
    tau = 2.0 / (1.0 + f.sum(below * below, -2, keepdim=True))
    q = one.expand(x.shape)
    for column in reversed(range(k)):  # (1 - tau v v') applied from the last to the first
        at = v[..., column : column + 1]
        q = q - tau[..., column : column + 1] * at * (at.mT @ q)
    return q * f.diagonal(x, 0, -2, -1).detach().trunc().unsqueeze(-2)


def orthogonal(
    module: Module,
    name: str = "weight",
    orthogonal_map: str | None = None,
    *,
    use_trivialization: bool = True,
) -> Module:
    """Parametrize a weight to have orthonormal columns, or rows if wide (Lezcano-Casado 2019).

    ``orthogonal_map`` computes the weight from the parameter: "matrix_exp", "cayley" or
    "householder". The default is "matrix_exp" for square matrices, else "householder". The result
    is multiplied by a fixed ``base``, the orthogonal matrix nearest to the value that was set.
    Without ``use_trivialization`` there is no base, and the weight starts as the map of its value.
    "householder" needs the base. Returns the module.

    Raises ValueError for an unknown map, and for fewer than two dimensions.

    >>> import minigrad as mg
    >>> layer = mg.nn.utils.parametrizations.orthogonal(mg.nn.Linear(4, 2))
    >>> bool(mg.allclose(layer.weight @ layer.weight.T, mg.eye(2), atol=1e-5))
    True
    """
    weight = getattr(module, name)
    if weight.ndim < 2:
        raise ValueError(f"[orthogonal] {name} has shape {weight.shape}: it is no matrix")
    square = weight.shape[-2] == weight.shape[-1]
    kind = orthogonal_map or ("matrix_exp" if square else "householder")
    if kind not in ("matrix_exp", "cayley", "householder"):
        raise ValueError(
            f"[orthogonal] orthogonal_map is {kind!r}, but must be 'matrix_exp', 'cayley' or "
            "'householder'"
        )
    if kind == "householder" and not use_trivialization:
        raise ValueError(
            "[orthogonal] reflections without a base are not offered: use_trivialization=True"
        )
    made = _Orthogonal(weight, kind, use_trivialization)
    return register_parametrization(module, name, made, unsafe=True)
