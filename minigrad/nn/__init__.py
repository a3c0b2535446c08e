"""Neural networks: modules, parameters, layers and losses.

>>> import minigrad as mg
>>> model = mg.nn.Sequential(mg.nn.Linear(2, 8), mg.nn.Tanh(), mg.nn.Linear(8, 1))
>>> sum(p.size for p in model.parameters())
33
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from minigrad.nn import functional, utils
from minigrad.nn.activations import (
    CELU,
    ELU,
    GELU,
    GLU,
    SELU,
    Hardshrink,
    Hardsigmoid,
    Hardswish,
    Hardtanh,
    LeakyReLU,
    LogSigmoid,
    LogSoftmax,
    Mish,
    PReLU,
    ReLU,
    ReLU6,
    RReLU,
    Sigmoid,
    SiLU,
    Softmax,
    Softmax2d,
    Softmin,
    Softplus,
    Softshrink,
    Softsign,
    Tanh,
    Tanhshrink,
    Threshold,
)
from minigrad.nn.attention import (
    MultiheadAttention,
)
from minigrad.nn.convolution import (
    Conv1d,
    Conv2d,
    Conv3d,
    ConvTranspose1d,
    ConvTranspose2d,
    ConvTranspose3d,
)
from minigrad.nn.layers import (
    Flatten,
    Identity,
    Linear,
    ModuleDict,
    ModuleList,
    Sequential,
    Unflatten,
)
from minigrad.nn.losses import (
    BCELoss,
    BCEWithLogitsLoss,
    CosineEmbeddingLoss,
    CosineSimilarity,
    CrossEntropyLoss,
    CTCLoss,
    GaussianNLLLoss,
    HingeEmbeddingLoss,
    HuberLoss,
    KLDivLoss,
    L1Loss,
    MarginRankingLoss,
    MSELoss,
    MultiLabelMarginLoss,
    MultiLabelSoftMarginLoss,
    MultiMarginLoss,
    NLLLoss,
    PairwiseDistance,
    PoissonNLLLoss,
    SmoothL1Loss,
    SoftMarginLoss,
    TripletMarginLoss,
    TripletMarginWithDistanceLoss,
)
from minigrad.nn.module import (
    Module,
    Parameter,
)
from minigrad.nn.normalization import (
    BatchNorm1d,
    BatchNorm2d,
    BatchNorm3d,
    GroupNorm,
    InstanceNorm1d,
    InstanceNorm2d,
    InstanceNorm3d,
    LayerNorm,
    RMSNorm,
)
from minigrad.nn.pooling import (
    AdaptiveAvgPool1d,
    AdaptiveAvgPool2d,
    AdaptiveAvgPool3d,
    AdaptiveMaxPool1d,
    AdaptiveMaxPool2d,
    AdaptiveMaxPool3d,
    AvgPool1d,
    AvgPool2d,
    AvgPool3d,
    LPPool1d,
    LPPool2d,
    LPPool3d,
    MaxPool1d,
    MaxPool2d,
    MaxPool3d,
)
from minigrad.nn.recurrent import (
    GRU,
    LSTM,
    RNN,
    GRUCell,
    LSTMCell,
    RNNBase,
    RNNCell,
    RNNCellBase,
)
from minigrad.nn.regularization import (
    AlphaDropout,
    Dropout,
    Dropout1d,
    Dropout2d,
    Dropout3d,
    FeatureAlphaDropout,
)
from minigrad.nn.sparse import (
    Embedding,
    EmbeddingBag,
)

__all__ = [
    "CELU",
    "ELU",
    "GELU",
    "GLU",
    "GRU",
    "LSTM",
    "RNN",
    "SELU",
    "AdaptiveAvgPool1d",
    "AdaptiveAvgPool2d",
    "AdaptiveAvgPool3d",
    "AdaptiveMaxPool1d",
    "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d",
    "AlphaDropout",
    "AvgPool1d",
    "AvgPool2d",
    "AvgPool3d",
    "BCELoss",
    "BCEWithLogitsLoss",
    "BatchNorm1d",
    "BatchNorm2d",
    "BatchNorm3d",
    "CTCLoss",
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "ConvTranspose3d",
    "CosineEmbeddingLoss",
    "CosineSimilarity",
    "CrossEntropyLoss",
    "Dropout",
    "Dropout1d",
    "Dropout2d",
    "Dropout3d",
    "Embedding",
    "EmbeddingBag",
    "FeatureAlphaDropout",
    "Flatten",
    "GRUCell",
    "GaussianNLLLoss",
    "GroupNorm",
    "Hardshrink",
    "Hardsigmoid",
    "Hardswish",
    "Hardtanh",
    "HingeEmbeddingLoss",
    "HuberLoss",
    "Identity",
    "InstanceNorm1d",
    "InstanceNorm2d",
    "InstanceNorm3d",
    "KLDivLoss",
    "L1Loss",
    "LPPool1d",
    "LPPool2d",
    "LPPool3d",
    "LSTMCell",
    "LayerNorm",
    "LeakyReLU",
    "Linear",
    "LogSigmoid",
    "LogSoftmax",
    "MSELoss",
    "MarginRankingLoss",
    "MaxPool1d",
    "MaxPool2d",
    "MaxPool3d",
    "Mish",
    "Module",
    "ModuleDict",
    "ModuleList",
    "MultiLabelMarginLoss",
    "MultiLabelSoftMarginLoss",
    "MultiMarginLoss",
    "MultiheadAttention",
    "NLLLoss",
    "PReLU",
    "PairwiseDistance",
    "Parameter",
    "PoissonNLLLoss",
    "RMSNorm",
    "RNNBase",
    "RNNCell",
    "RNNCellBase",
    "RReLU",
    "ReLU",
    "ReLU6",
    "Sequential",
    "SiLU",
    "Sigmoid",
    "SmoothL1Loss",
    "SoftMarginLoss",
    "Softmax",
    "Softmax2d",
    "Softmin",
    "Softplus",
    "Softshrink",
    "Softsign",
    "Tanh",
    "Tanhshrink",
    "Threshold",
    "TripletMarginLoss",
    "TripletMarginWithDistanceLoss",
    "Unflatten",
    "functional",
    "init",
    "utils",
]


# Names that are loaded at first use, by module; a name may be a module itself.
_HOMES = {
    "adaptive": "AdaptiveLogSoftmaxWithLoss",
    "bilinear": "Bilinear",
    "layer_table": "summary",
    "lazy": "LazyBatchNorm1d LazyBatchNorm2d LazyBatchNorm3d LazyConv1d LazyConv2d LazyConv3d "
    "LazyConvTranspose1d LazyConvTranspose2d LazyConvTranspose3d LazyInstanceNorm1d "
    "LazyInstanceNorm2d LazyInstanceNorm3d LazyLinear UninitializedBuffer UninitializedParameter",
    "linear_loss": "LinearCrossEntropyLoss LinearCrossEntropyOptions",
    "local_norm": "CrossMapLRN2d LocalResponseNorm",
    "fractional": "FractionalMaxPool2d FractionalMaxPool3d",
    "parameters": "ParameterDict ParameterList",
    "transformer": "Transformer TransformerDecoder TransformerDecoderLayer TransformerEncoder "
    "TransformerEncoderLayer",
    "unpooling": "MaxUnpool1d MaxUnpool2d MaxUnpool3d",
    "padding": "CircularPad1d CircularPad2d CircularPad3d ConstantPad1d ConstantPad2d "
    "ConstantPad3d ReflectionPad1d ReflectionPad2d ReflectionPad3d ReplicationPad1d "
    "ReplicationPad2d ReplicationPad3d ZeroPad1d ZeroPad2d ZeroPad3d",
    "vision": "ChannelShuffle Fold PixelShuffle PixelUnshuffle Unfold Upsample "
    "UpsamplingBilinear2d UpsamplingNearest2d",
    "parallel": "DataParallel DistributedDataParallel",
    "": "init modules parallel parameter",
}
_LATER = {name: home for home, names in _HOMES.items() for name in names.split()}
__all__ += [name for name in _LATER if name not in __all__]


if TYPE_CHECKING:  # type checkers see these names and no others
    from minigrad.nn import init as init
    from minigrad.nn import modules as modules
    from minigrad.nn import parallel as parallel
    from minigrad.nn import parameter as parameter
    from minigrad.nn.adaptive import AdaptiveLogSoftmaxWithLoss as AdaptiveLogSoftmaxWithLoss
    from minigrad.nn.bilinear import Bilinear as Bilinear
    from minigrad.nn.fractional import FractionalMaxPool2d as FractionalMaxPool2d
    from minigrad.nn.fractional import FractionalMaxPool3d as FractionalMaxPool3d
    from minigrad.nn.layer_table import summary as summary
    from minigrad.nn.lazy import LazyBatchNorm1d as LazyBatchNorm1d
    from minigrad.nn.lazy import LazyBatchNorm2d as LazyBatchNorm2d
    from minigrad.nn.lazy import LazyBatchNorm3d as LazyBatchNorm3d
    from minigrad.nn.lazy import LazyConv1d as LazyConv1d
    from minigrad.nn.lazy import LazyConv2d as LazyConv2d
    from minigrad.nn.lazy import LazyConv3d as LazyConv3d
    from minigrad.nn.lazy import LazyConvTranspose1d as LazyConvTranspose1d
    from minigrad.nn.lazy import LazyConvTranspose2d as LazyConvTranspose2d
    from minigrad.nn.lazy import LazyConvTranspose3d as LazyConvTranspose3d
    from minigrad.nn.lazy import LazyInstanceNorm1d as LazyInstanceNorm1d
    from minigrad.nn.lazy import LazyInstanceNorm2d as LazyInstanceNorm2d
    from minigrad.nn.lazy import LazyInstanceNorm3d as LazyInstanceNorm3d
    from minigrad.nn.lazy import LazyLinear as LazyLinear
    from minigrad.nn.lazy import UninitializedBuffer as UninitializedBuffer
    from minigrad.nn.lazy import UninitializedParameter as UninitializedParameter
    from minigrad.nn.linear_loss import LinearCrossEntropyLoss as LinearCrossEntropyLoss
    from minigrad.nn.linear_loss import LinearCrossEntropyOptions as LinearCrossEntropyOptions
    from minigrad.nn.local_norm import CrossMapLRN2d as CrossMapLRN2d
    from minigrad.nn.local_norm import LocalResponseNorm as LocalResponseNorm
    from minigrad.nn.padding import CircularPad1d as CircularPad1d
    from minigrad.nn.padding import CircularPad2d as CircularPad2d
    from minigrad.nn.padding import CircularPad3d as CircularPad3d
    from minigrad.nn.padding import ConstantPad1d as ConstantPad1d
    from minigrad.nn.padding import ConstantPad2d as ConstantPad2d
    from minigrad.nn.padding import ConstantPad3d as ConstantPad3d
    from minigrad.nn.padding import ReflectionPad1d as ReflectionPad1d
    from minigrad.nn.padding import ReflectionPad2d as ReflectionPad2d
    from minigrad.nn.padding import ReflectionPad3d as ReflectionPad3d
    from minigrad.nn.padding import ReplicationPad1d as ReplicationPad1d
    from minigrad.nn.padding import ReplicationPad2d as ReplicationPad2d
    from minigrad.nn.padding import ReplicationPad3d as ReplicationPad3d
    from minigrad.nn.padding import ZeroPad1d as ZeroPad1d
    from minigrad.nn.padding import ZeroPad2d as ZeroPad2d
    from minigrad.nn.padding import ZeroPad3d as ZeroPad3d
    from minigrad.nn.parallel import DataParallel as DataParallel
    from minigrad.nn.parallel import DistributedDataParallel as DistributedDataParallel
    from minigrad.nn.parameters import ParameterDict as ParameterDict
    from minigrad.nn.parameters import ParameterList as ParameterList
    from minigrad.nn.transformer import Transformer as Transformer
    from minigrad.nn.transformer import TransformerDecoder as TransformerDecoder
    from minigrad.nn.transformer import TransformerDecoderLayer as TransformerDecoderLayer
    from minigrad.nn.transformer import TransformerEncoder as TransformerEncoder
    from minigrad.nn.transformer import TransformerEncoderLayer as TransformerEncoderLayer
    from minigrad.nn.unpooling import MaxUnpool1d as MaxUnpool1d
    from minigrad.nn.unpooling import MaxUnpool2d as MaxUnpool2d
    from minigrad.nn.unpooling import MaxUnpool3d as MaxUnpool3d
    from minigrad.nn.vision import ChannelShuffle as ChannelShuffle
    from minigrad.nn.vision import Fold as Fold
    from minigrad.nn.vision import PixelShuffle as PixelShuffle
    from minigrad.nn.vision import PixelUnshuffle as PixelUnshuffle
    from minigrad.nn.vision import Unfold as Unfold
    from minigrad.nn.vision import Upsample as Upsample
    from minigrad.nn.vision import UpsamplingBilinear2d as UpsamplingBilinear2d
    from minigrad.nn.vision import UpsamplingNearest2d as UpsamplingNearest2d
else:

    def __getattr__(name: str) -> Any:
        home = _LATER.get(name)
        if home is None:
            # Without ``obj`` Python's message suggests no other name, such as "divide" for
            # "device".
            raise AttributeError(f"module {__name__!r} has no {name}", name=name, obj=None)
        found = import_module(f"{__name__}.{home or name}")
        if home:
            found = getattr(found, name)
        globals()[name] = found
        return found


def __dir__() -> list[str]:
    return sorted(__all__)
