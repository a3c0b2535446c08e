"""Fusion of a layer with the batch normalisation after it, for evaluation."""

from __future__ import annotations

import copy
from typing import Any

from minigrad import functions as f
from minigrad.functions.grad_modes import no_grad
from minigrad.nn.module import Module, Parameter

__all__ = [
    "fuse_conv_bn_eval",
    "fuse_conv_bn_weights",
    "fuse_linear_bn_eval",
    "fuse_linear_bn_weights",
]


def fuse_conv_bn_weights(
    conv_w: Any,
    conv_b: Any,
    bn_rm: Any,
    bn_rv: Any,
    bn_eps: float,
    bn_w: Any,
    bn_b: Any,
    transpose: bool = False,
) -> tuple[Parameter, Parameter]:
    """The weight and the bias of a convolution that includes normalisation by these statistics."""
    with no_grad():
        factor = f.rsqrt(bn_rv + bn_eps) * (1.0 if bn_w is None else bn_w)
        shape = [1] * conv_w.ndim
        shape[1 if transpose else 0] = -1
        bias = ((0.0 if conv_b is None else conv_b) - bn_rm) * factor
        weight = conv_w * f.reshape(factor, shape)
        bias = bias if bn_b is None else bias + bn_b
    wants = conv_w.requires_grad
    return Parameter(weight, wants), Parameter(
        bias, wants if conv_b is None else conv_b.requires_grad
    )


def fuse_linear_bn_weights(
    linear_w: Any, linear_b: Any, bn_rm: Any, bn_rv: Any, bn_eps: float, bn_w: Any, bn_b: Any
) -> tuple[Parameter, Parameter]:
    """The weight and the bias of a linear layer that includes normalisation by these statistics."""
    return fuse_conv_bn_weights(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b)


def _fused(op: str, layer: Module, bn: Any, transpose: bool) -> Any:
    if layer.training or bn.training:
        raise ValueError(f"[{op}] fusion is for evaluation: call eval() of both first")
    if bn.running_mean is None:
        raise ValueError(f"[{op}] {type(bn).__name__} has no running statistics")
    fused: Any = copy.deepcopy(layer)
    rest = (bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias, transpose)
    fused.weight, fused.bias = fuse_conv_bn_weights(fused.weight, fused.bias, *rest)
    return fused


def fuse_conv_bn_eval(conv: Module, bn: Module, transpose: bool = False) -> Any:
    """A convolution equal to ``conv`` followed by ``bn`` in evaluation.

    ``transpose`` says that ``conv`` is a transposed convolution. Raises ValueError for modules in
    training.

    >>> import minigrad as mg
    >>> conv, bn = mg.nn.Conv2d(1, 2, 3).eval(), mg.nn.BatchNorm2d(2).eval()
    >>> x = mg.ones(1, 1, 4, 4)
    >>> bool(mg.allclose(mg.nn.utils.fuse_conv_bn_eval(conv, bn)(x), bn(conv(x)), atol=1e-6))
    True
    """
    return _fused("fuse_conv_bn_eval", conv, bn, transpose)


def fuse_linear_bn_eval(linear: Module, bn: Module) -> Any:
    """Like :func:`fuse_conv_bn_eval`, for a linear layer."""
    return _fused("fuse_linear_bn_eval", linear, bn, False)
