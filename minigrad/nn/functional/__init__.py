"""Layers and losses as functions, with PyTorch's names, arguments and meaning."""

from __future__ import annotations

from minigrad.nn.functional import (
    activation,
    attention,
    bags,
    classification,
    convolution,
    ctc,
    dense,
    distance,
    fractional,
    loss,
    normalization,
    pooling,
    recurrent,
    regularization,
    sampling,
    sparse,
    unpooling,
    vision,
)
from minigrad.nn.functional.activation import *  # noqa: F403 - each __all__ is a topic's operations
from minigrad.nn.functional.attention import *  # noqa: F403
from minigrad.nn.functional.bags import *  # noqa: F403
from minigrad.nn.functional.classification import *  # noqa: F403
from minigrad.nn.functional.convolution import *  # noqa: F403
from minigrad.nn.functional.ctc import *  # noqa: F403
from minigrad.nn.functional.dense import *  # noqa: F403
from minigrad.nn.functional.distance import *  # noqa: F403
from minigrad.nn.functional.fractional import *  # noqa: F403
from minigrad.nn.functional.loss import *  # noqa: F403
from minigrad.nn.functional.normalization import *  # noqa: F403
from minigrad.nn.functional.pooling import *  # noqa: F403
from minigrad.nn.functional.recurrent import *  # noqa: F403
from minigrad.nn.functional.regularization import *  # noqa: F403
from minigrad.nn.functional.sampling import *  # noqa: F403
from minigrad.nn.functional.sparse import *  # noqa: F403
from minigrad.nn.functional.unpooling import *  # noqa: F403
from minigrad.nn.functional.vision import *  # noqa: F403

TOPICS = (
    activation,
    attention,
    bags,
    classification,
    convolution,
    ctc,
    dense,
    distance,
    fractional,
    loss,
    normalization,
    pooling,
    recurrent,
    regularization,
    sampling,
    sparse,
    unpooling,
    vision,
)

# Spelled out for type checkers.
__all__: list[str] = []
__all__ += activation.__all__
__all__ += attention.__all__
__all__ += bags.__all__
__all__ += classification.__all__
__all__ += convolution.__all__
__all__ += ctc.__all__
__all__ += dense.__all__
__all__ += distance.__all__
__all__ += fractional.__all__
__all__ += loss.__all__
__all__ += normalization.__all__
__all__ += pooling.__all__
__all__ += recurrent.__all__
__all__ += regularization.__all__
__all__ += sampling.__all__
__all__ += sparse.__all__
__all__ += unpooling.__all__
__all__ += vision.__all__
