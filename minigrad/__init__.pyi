# Written by docs/stubs.py from the modules themselves: change those.
import builtins
from typing import Any
from minigrad import accelerator as accelerator
from minigrad import amp as amp
from minigrad import array_api as array_api
from minigrad import autograd as autograd
from minigrad import backends as backends
from minigrad import compiler as compiler
from minigrad import cuda as cuda
from minigrad import data as data
from minigrad import distributions as distributions
from minigrad import func as func
from minigrad import linalg as linalg
from minigrad import mps as mps
from minigrad import nn as nn
from minigrad import optim as optim
from minigrad import quasirandom as quasirandom
from minigrad import random as random
from minigrad import scalar as scalar
from minigrad import special as special
from minigrad import utils as utils
from minigrad import xpu as xpu
from minigrad._tensor import *
from minigrad.amp import autocast as autocast
from minigrad.arranging import *
from minigrad.autograd import Function as Function
from minigrad.autograd import grad as grad
from minigrad.calculus import *
from minigrad.checking import gradcheck as gradcheck
from minigrad.checking import gradgradcheck as gradgradcheck
from minigrad.checking import numerical_gradient_check as numerical_gradient_check
from minigrad.compiler import compile as compile
from minigrad.config import *
from minigrad.contraction import *
from minigrad.counting import *
from minigrad.creation import *
from minigrad.devices import device as device
from minigrad.diagonals import *
from minigrad.dlpack import from_dlpack as from_dlpack
from minigrad.draw import *
from minigrad.dtypes import bfloat16 as bfloat16
from minigrad.dtypes import bool_ as bool
from minigrad.dtypes import float64 as double
from minigrad.dtypes import DType as dtype
from minigrad.dtypes import float32 as float
from minigrad.dtypes import float16 as float16
from minigrad.dtypes import float32 as float32
from minigrad.dtypes import float64 as float64
from minigrad.dtypes import get_default_dtype as get_default_dtype
from minigrad.dtypes import float16 as half
from minigrad.dtypes import int32 as int
from minigrad.dtypes import int16 as int16
from minigrad.dtypes import int32 as int32
from minigrad.dtypes import int64 as int64
from minigrad.dtypes import int8 as int8
from minigrad.dtypes import int64 as long
from minigrad.dtypes import set_default_dtype as set_default_dtype
from minigrad.dtypes import int16 as short
from minigrad.dtypes import uint8 as uint8
from minigrad.elementwise import *
from minigrad.func.batching import *
from minigrad.grad_modes import *
from minigrad.in_place import *
from minigrad.interop.torch_names import as_torch as as_torch
from minigrad.io.files import *
from minigrad.legacy import BFloat16Tensor as BFloat16Tensor
from minigrad.legacy import BoolTensor as BoolTensor
from minigrad.legacy import ByteTensor as ByteTensor
from minigrad.legacy import CharTensor as CharTensor
from minigrad.legacy import DoubleTensor as DoubleTensor
from minigrad.legacy import FloatTensor as FloatTensor
from minigrad.legacy import HalfTensor as HalfTensor
from minigrad.legacy import IntTensor as IntTensor
from minigrad.legacy import LongTensor as LongTensor
from minigrad.legacy import ShortTensor as ShortTensor
from minigrad.legacy import range as range
from minigrad.legacy import set_default_tensor_type as set_default_tensor_type
from minigrad.legacy import svd as svd
from minigrad.nn.functional.activation import celu as celu
from minigrad.nn.functional.activation import hardshrink as hardshrink
from minigrad.nn.functional.activation import prelu as prelu
from minigrad.nn.functional.activation import rrelu as rrelu
from minigrad.nn.functional.activation import selu as selu
from minigrad.nn.functional.activation import threshold as threshold
from minigrad.nn.functional.classification import binary_cross_entropy_with_logits as binary_cross_entropy_with_logits
from minigrad.nn.functional.convolution import *
from minigrad.nn.functional.dense import bilinear as bilinear
from minigrad.nn.functional.distance import cosine_embedding_loss as cosine_embedding_loss
from minigrad.nn.functional.distance import cosine_similarity as cosine_similarity
from minigrad.nn.functional.distance import hinge_embedding_loss as hinge_embedding_loss
from minigrad.nn.functional.distance import margin_ranking_loss as margin_ranking_loss
from minigrad.nn.functional.distance import pairwise_distance as pairwise_distance
from minigrad.nn.functional.distance import pdist as pdist
from minigrad.nn.functional.distance import triplet_margin_loss as triplet_margin_loss
from minigrad.nn.functional.loss import kl_div as kl_div
from minigrad.nn.functional.loss import poisson_nll_loss as poisson_nll_loss
from minigrad.nn.functional.normalization import batch_norm as batch_norm
from minigrad.nn.functional.normalization import group_norm as group_norm
from minigrad.nn.functional.normalization import instance_norm as instance_norm
from minigrad.nn.functional.normalization import layer_norm as layer_norm
from minigrad.nn.functional.normalization import rms_norm as rms_norm
from minigrad.nn.functional.pooling import avg_pool1d as avg_pool1d
from minigrad.nn.functional.pooling import max_pool1d as max_pool1d
from minigrad.nn.functional.pooling import max_pool2d as max_pool2d
from minigrad.nn.functional.pooling import max_pool3d as max_pool3d
from minigrad.nn.functional.regularization import alpha_dropout as alpha_dropout
from minigrad.nn.functional.regularization import dropout as dropout
from minigrad.nn.functional.sparse import embedding as embedding
from minigrad.padding import *
from minigrad.products import *
from minigrad.promotion import *
from minigrad.quantiles import *
from minigrad.questions import *
from minigrad.random import *
from minigrad.reductions import *
from minigrad.scans import *
from minigrad.scattering import *
from minigrad.selection import *
from minigrad.settings import *
from minigrad.shaping import *
from minigrad.solving import *
from minigrad.sorting import *
from minigrad.statistics import *
from minigrad.tape.grad_mode import is_grad_enabled as is_grad_enabled
from minigrad.tape.tensor_base import Size as Size
from minigrad.variable import *
from minigrad.windows import *

__version__: builtins.str
channels_last: builtins.str
channels_last_3d: builtins.str
contiguous_format: builtins.str
e: builtins.float
inf: builtins.float
nan: builtins.float
newaxis: None
pi: builtins.float
preserve_format: builtins.str
strided: builtins.str
__all__: list[str]
