"""The operations as functions, gathered: Tensor's methods and operators are these functions."""

from __future__ import annotations

from minigrad import (
    arranging,
    contraction,
    counting,
    diagonals,
    elementwise,
    padding,
    products,
    quantiles,
    reductions,
    scans,
    scattering,
    selection,
    shaping,
    solving,
    sorting,
)
from minigrad.arranging import *  # noqa: F403
from minigrad.contraction import *  # noqa: F403 - each __all__ is the public operations of a topic
from minigrad.counting import *  # noqa: F403
from minigrad.diagonals import *  # noqa: F403
from minigrad.elementwise import *  # noqa: F403
from minigrad.padding import *  # noqa: F403
from minigrad.products import *  # noqa: F403
from minigrad.quantiles import *  # noqa: F403
from minigrad.reductions import *  # noqa: F403
from minigrad.scans import *  # noqa: F403
from minigrad.scattering import *  # noqa: F403
from minigrad.selection import *  # noqa: F403
from minigrad.shaping import *  # noqa: F403
from minigrad.solving import *  # noqa: F403
from minigrad.sorting import *  # noqa: F403

TOPICS = (
    elementwise,
    reductions,
    scans,
    sorting,
    quantiles,
    counting,
    shaping,
    selection,
    products,
    contraction,
    solving,
    arranging,
    diagonals,
    padding,
    scattering,
)

# What does not start with a tensor, or means something else as a method.
NOT_METHODS = frozenset(
    (
        "atleast_1d",
        "atleast_2d",
        "atleast_3d",
        "block_diag",
        "broadcast_tensors",
        "bucketize",
        "cartesian_prod",
        "cat",
        "cdist",
        "column_stack",
        "concat",
        "concatenate",
        "dstack",
        "einsum",
        "hstack",
        "meshgrid",
        "pad",
        "row_stack",
        "searchsorted",
        "softmin",
        "stack",
        "std_mean",
        "tensordot",
        "tril_indices",
        "triu_indices",
        "var_mean",
        "vector_norm",
        "vstack",
        "where",
    )
)

# Spelled out for type checkers.
__all__: list[str] = []
__all__ += elementwise.__all__
__all__ += reductions.__all__
__all__ += scans.__all__
__all__ += sorting.__all__
__all__ += quantiles.__all__
__all__ += counting.__all__
__all__ += shaping.__all__
__all__ += selection.__all__
__all__ += products.__all__
__all__ += contraction.__all__
__all__ += solving.__all__
__all__ += arranging.__all__
__all__ += diagonals.__all__
__all__ += padding.__all__
__all__ += scattering.__all__
