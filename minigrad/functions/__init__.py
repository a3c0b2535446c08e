"""Facade of all operations as functions. Most are also methods or operators of Tensor.

A topic that few programs need is loaded when one of its functions is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from minigrad.functions import elementwise, products, reductions, scans, selection, shaping
from minigrad.functions.elementwise import *  # noqa: F403 - each __all__ is the public operations of a topic
from minigrad.functions.products import *  # noqa: F403
from minigrad.functions.reductions import *  # noqa: F403
from minigrad.functions.scans import *  # noqa: F403
from minigrad.functions.selection import *  # noqa: F403
from minigrad.functions.shaping import *  # noqa: F403

# Topics that are loaded at first use, with their functions.
_LATER = {
    "sorting": "argsort bucketize kthvalue searchsorted sort topk",
    "quantiles": "median nanmedian nanquantile quantile",
    "counting": "bincount histc isin unique unique_consecutive",
    "contraction": "einsum inner tensordot",
    "solving": "cholesky cholesky_inverse cholesky_solve det inverse logdet matrix_exp "
    "matrix_power pinverse slogdet",
    "arranging": "atleast_1d atleast_2d atleast_3d cartesian_prod chunk column_stack combinations "
    "dsplit dstack flip fliplr flipud hsplit hstack meshgrid repeat repeat_interleave roll rot90 "
    "row_stack split split_with_sizes tensor_split tile vsplit vstack",
    "diagonals": "block_diag diag diag_embed diagflat diagonal diagonal_scatter tril tril_indices "
    "triu triu_indices",
    "padding": "constant_pad_nd pad",
    "calculus": "cumulative_trapezoid gradient trapezoid trapz vander",
    "statistics": "corrcoef cov histogram mode",
    "scattering": "index_add index_copy index_fill index_put index_reduce masked_scatter put "
    "scatter scatter_add scatter_reduce select_scatter slice_scatter",
}
LATER = {name: topic for topic, names in _LATER.items() for name in names.split()}

# All modules, in the order of the reference.
TOPICS = (
    "elementwise",
    "reductions",
    "scans",
    "sorting",
    "quantiles",
    "counting",
    "shaping",
    "selection",
    "products",
    "contraction",
    "solving",
    "arranging",
    "diagonals",
    "padding",
    "scattering",
    "calculus",
    "statistics",
)

# Functions that are no methods: they do not take a tensor first, or the method differs.
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
        "constant_pad_nd",
        "cumulative_trapezoid",
        "gradient",
        "imag",
        "combinations",
        "concat",
        "concatenate",
        "dstack",
        "einsum",
        "hstack",
        "isin",
        "meshgrid",
        "pad",
        "real",
        "row_stack",
        "rsub",
        "searchsorted",
        "softmin",
        "stack",
        "trapezoid",
        "trapz",
        "unravel_index",
        "vander",
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

__all__: list[str] = []
__all__ += elementwise.__all__
__all__ += reductions.__all__
__all__ += scans.__all__
__all__ += shaping.__all__
__all__ += selection.__all__
__all__ += products.__all__
__all__ += LATER


def __getattr__(name: str) -> Any:
    topic = LATER.get(name)
    if topic is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(f"minigrad.functions.{topic}"), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *LATER})
