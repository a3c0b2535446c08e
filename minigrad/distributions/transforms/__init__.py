"""Transforms: invertible functions with the log-determinants of their Jacobians.

``t(x)`` is the function, ``t.inv(y)`` its inverse, and ``t.log_abs_det_jacobian(x, y)`` is
log|dy / dx|. Names are PyTorch's.

>>> import minigrad as mg
>>> from minigrad.distributions.transforms import ExpTransform
>>> t = ExpTransform()
>>> x = mg.tensor([0.0, 1.0])
>>> t.inv(t(x)).allclose(x), t.log_abs_det_jacobian(x, t(x))
(True, tensor([0., 1.]))
"""

from minigrad.distributions.transforms.base import (
    ComposeTransform,
    IndependentTransform,
    ReshapeTransform,
    Transform,
    identity_transform,
)
from minigrad.distributions.transforms.matrices import (
    CatTransform,
    CorrCholeskyTransform,
    LowerCholeskyTransform,
    PositiveDefiniteTransform,
    SoftmaxTransform,
    StackTransform,
    StickBreakingTransform,
)
from minigrad.distributions.transforms.numbers import (
    AbsTransform,
    AffineTransform,
    CumulativeDistributionTransform,
    ExpTransform,
    PowerTransform,
    SigmoidTransform,
    SoftplusTransform,
    TanhTransform,
)

__all__ = [
    "AbsTransform",
    "AffineTransform",
    "CatTransform",
    "ComposeTransform",
    "CorrCholeskyTransform",
    "CumulativeDistributionTransform",
    "ExpTransform",
    "IndependentTransform",
    "LowerCholeskyTransform",
    "PositiveDefiniteTransform",
    "PowerTransform",
    "ReshapeTransform",
    "SigmoidTransform",
    "SoftmaxTransform",
    "SoftplusTransform",
    "StackTransform",
    "StickBreakingTransform",
    "TanhTransform",
    "Transform",
    "identity_transform",
]
