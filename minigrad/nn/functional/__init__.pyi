# Written by docs/stubs.py from the modules themselves: change those.
from minigrad.elementwise import sigmoid as sigmoid
from minigrad.elementwise import tanh as tanh
from minigrad.nn.functional.activation import celu as celu
from minigrad.nn.functional.activation import elu as elu
from minigrad.nn.functional.activation import gelu as gelu
from minigrad.nn.functional.activation import glu as glu
from minigrad.nn.functional.activation import gumbel_softmax as gumbel_softmax
from minigrad.nn.functional.activation import hardshrink as hardshrink
from minigrad.nn.functional.activation import hardsigmoid as hardsigmoid
from minigrad.nn.functional.activation import hardswish as hardswish
from minigrad.nn.functional.activation import hardtanh as hardtanh
from minigrad.nn.functional.activation import leaky_relu as leaky_relu
from minigrad.nn.functional.activation import logsigmoid as logsigmoid
from minigrad.nn.functional.activation import mish as mish
from minigrad.nn.functional.activation import prelu as prelu
from minigrad.nn.functional.activation import relu as relu
from minigrad.nn.functional.activation import relu6 as relu6
from minigrad.nn.functional.activation import rrelu as rrelu
from minigrad.nn.functional.activation import selu as selu
from minigrad.nn.functional.activation import silu as silu
from minigrad.nn.functional.activation import softplus as softplus
from minigrad.nn.functional.activation import softshrink as softshrink
from minigrad.nn.functional.activation import softsign as softsign
from minigrad.nn.functional.activation import tanhshrink as tanhshrink
from minigrad.nn.functional.activation import threshold as threshold
from minigrad.nn.functional.attention import (
    scaled_dot_product_attention as scaled_dot_product_attention,
)
from minigrad.nn.functional.classification import binary_cross_entropy as binary_cross_entropy
from minigrad.nn.functional.classification import (
    binary_cross_entropy_with_logits as binary_cross_entropy_with_logits,
)
from minigrad.nn.functional.classification import cross_entropy as cross_entropy
from minigrad.nn.functional.classification import multi_margin_loss as multi_margin_loss
from minigrad.nn.functional.classification import (
    multilabel_soft_margin_loss as multilabel_soft_margin_loss,
)
from minigrad.nn.functional.classification import nll_loss as nll_loss
from minigrad.nn.functional.classification import soft_margin_loss as soft_margin_loss
from minigrad.nn.functional.convolution import conv1d as conv1d
from minigrad.nn.functional.convolution import conv2d as conv2d
from minigrad.nn.functional.convolution import conv3d as conv3d
from minigrad.nn.functional.convolution import conv_transpose1d as conv_transpose1d
from minigrad.nn.functional.convolution import conv_transpose2d as conv_transpose2d
from minigrad.nn.functional.convolution import conv_transpose3d as conv_transpose3d
from minigrad.nn.functional.dense import bilinear as bilinear
from minigrad.nn.functional.dense import linear as linear
from minigrad.nn.functional.distance import cosine_embedding_loss as cosine_embedding_loss
from minigrad.nn.functional.distance import cosine_similarity as cosine_similarity
from minigrad.nn.functional.distance import hinge_embedding_loss as hinge_embedding_loss
from minigrad.nn.functional.distance import margin_ranking_loss as margin_ranking_loss
from minigrad.nn.functional.distance import pairwise_distance as pairwise_distance
from minigrad.nn.functional.distance import triplet_margin_loss as triplet_margin_loss
from minigrad.nn.functional.distance import (
    triplet_margin_with_distance_loss as triplet_margin_with_distance_loss,
)
from minigrad.nn.functional.loss import gaussian_nll_loss as gaussian_nll_loss
from minigrad.nn.functional.loss import huber_loss as huber_loss
from minigrad.nn.functional.loss import kl_div as kl_div
from minigrad.nn.functional.loss import l1_loss as l1_loss
from minigrad.nn.functional.loss import mse_loss as mse_loss
from minigrad.nn.functional.loss import poisson_nll_loss as poisson_nll_loss
from minigrad.nn.functional.loss import smooth_l1_loss as smooth_l1_loss
from minigrad.nn.functional.normalization import batch_norm as batch_norm
from minigrad.nn.functional.normalization import group_norm as group_norm
from minigrad.nn.functional.normalization import instance_norm as instance_norm
from minigrad.nn.functional.normalization import layer_norm as layer_norm
from minigrad.nn.functional.normalization import local_response_norm as local_response_norm
from minigrad.nn.functional.normalization import normalize as normalize
from minigrad.nn.functional.normalization import rms_norm as rms_norm
from minigrad.nn.functional.pooling import adaptive_avg_pool1d as adaptive_avg_pool1d
from minigrad.nn.functional.pooling import adaptive_avg_pool2d as adaptive_avg_pool2d
from minigrad.nn.functional.pooling import adaptive_avg_pool3d as adaptive_avg_pool3d
from minigrad.nn.functional.pooling import adaptive_max_pool1d as adaptive_max_pool1d
from minigrad.nn.functional.pooling import adaptive_max_pool2d as adaptive_max_pool2d
from minigrad.nn.functional.pooling import adaptive_max_pool3d as adaptive_max_pool3d
from minigrad.nn.functional.pooling import avg_pool1d as avg_pool1d
from minigrad.nn.functional.pooling import avg_pool2d as avg_pool2d
from minigrad.nn.functional.pooling import avg_pool3d as avg_pool3d
from minigrad.nn.functional.pooling import max_pool1d as max_pool1d
from minigrad.nn.functional.pooling import max_pool2d as max_pool2d
from minigrad.nn.functional.pooling import max_pool3d as max_pool3d
from minigrad.nn.functional.regularization import alpha_dropout as alpha_dropout
from minigrad.nn.functional.regularization import dropout as dropout
from minigrad.nn.functional.regularization import dropout1d as dropout1d
from minigrad.nn.functional.regularization import dropout2d as dropout2d
from minigrad.nn.functional.regularization import dropout3d as dropout3d
from minigrad.nn.functional.sparse import embedding as embedding
from minigrad.nn.functional.sparse import one_hot as one_hot
from minigrad.nn.functional.vision import fold as fold
from minigrad.nn.functional.vision import interpolate as interpolate
from minigrad.nn.functional.vision import pixel_shuffle as pixel_shuffle
from minigrad.nn.functional.vision import pixel_unshuffle as pixel_unshuffle
from minigrad.nn.functional.vision import unfold as unfold
from minigrad.padding import pad as pad
from minigrad.scans import log_softmax as log_softmax
from minigrad.scans import softmax as softmax
from minigrad.scans import softmin as softmin

__all__ = [
    "celu",
    "elu",
    "gelu",
    "glu",
    "gumbel_softmax",
    "hardshrink",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "leaky_relu",
    "log_softmax",
    "logsigmoid",
    "mish",
    "prelu",
    "relu",
    "relu6",
    "rrelu",
    "selu",
    "sigmoid",
    "silu",
    "softmax",
    "softmin",
    "softplus",
    "softshrink",
    "softsign",
    "tanh",
    "tanhshrink",
    "threshold",
    "scaled_dot_product_attention",
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "cross_entropy",
    "multi_margin_loss",
    "multilabel_soft_margin_loss",
    "nll_loss",
    "soft_margin_loss",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "bilinear",
    "linear",
    "cosine_embedding_loss",
    "cosine_similarity",
    "hinge_embedding_loss",
    "margin_ranking_loss",
    "pairwise_distance",
    "triplet_margin_loss",
    "triplet_margin_with_distance_loss",
    "gaussian_nll_loss",
    "huber_loss",
    "kl_div",
    "l1_loss",
    "mse_loss",
    "poisson_nll_loss",
    "smooth_l1_loss",
    "batch_norm",
    "group_norm",
    "instance_norm",
    "layer_norm",
    "local_response_norm",
    "normalize",
    "rms_norm",
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
    "adaptive_max_pool1d",
    "adaptive_max_pool2d",
    "adaptive_max_pool3d",
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "max_pool1d",
    "max_pool2d",
    "max_pool3d",
    "alpha_dropout",
    "dropout",
    "dropout1d",
    "dropout2d",
    "dropout3d",
    "embedding",
    "one_hot",
    "pad",
    "fold",
    "interpolate",
    "pixel_shuffle",
    "pixel_unshuffle",
    "unfold",
]
