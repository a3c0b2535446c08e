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
from minigrad import profiler as profiler
from minigrad import quasirandom as quasirandom
from minigrad import random as random
from minigrad import special as special
from minigrad import testing as testing
from minigrad import tutorial as tutorial
from minigrad import utils as utils
from minigrad import xpu as xpu
from minigrad._compile.loaded import load_program as load_program
from minigrad._tensor.inplace_functions import *
from minigrad._tensor.tensor import *
from minigrad._tensor.typed_classes import BFloat16Tensor as BFloat16Tensor
from minigrad._tensor.typed_classes import BoolTensor as BoolTensor
from minigrad._tensor.typed_classes import ByteTensor as ByteTensor
from minigrad._tensor.typed_classes import CharTensor as CharTensor
from minigrad._tensor.typed_classes import DoubleTensor as DoubleTensor
from minigrad._tensor.typed_classes import FloatTensor as FloatTensor
from minigrad._tensor.typed_classes import HalfTensor as HalfTensor
from minigrad._tensor.typed_classes import IntTensor as IntTensor
from minigrad._tensor.typed_classes import LongTensor as LongTensor
from minigrad._tensor.typed_classes import ShortTensor as ShortTensor
from minigrad.amp import autocast as autocast
from minigrad.autograd import grad as grad
from minigrad.autograd.anomaly_mode import detect_anomaly as detect_anomaly
from minigrad.autograd.function import Function as Function
from minigrad.autograd.graph_memory import graph_memory as graph_memory
from minigrad.checking import gradcheck as gradcheck
from minigrad.checking import gradgradcheck as gradgradcheck
from minigrad.checking import numerical_gradient_check as numerical_gradient_check
from minigrad.compiler import compile as compile
from minigrad.func.batching import *
from minigrad.functions.arranging import *
from minigrad.functions.calculus import *
from minigrad.functions.contraction import *
from minigrad.functions.counting import *
from minigrad.functions.creation import *
from minigrad.functions.diagonals import *
from minigrad.functions.elementwise import *
from minigrad.functions.grad_modes import *
from minigrad.functions.padding import *
from minigrad.functions.predicates import *
from minigrad.functions.products import *
from minigrad.functions.promotion import *
from minigrad.functions.quantiles import *
from minigrad.functions.reductions import *
from minigrad.functions.scans import *
from minigrad.functions.scattering import *
from minigrad.functions.selection import *
from minigrad.functions.shaping import *
from minigrad.functions.solving import *
from minigrad.functions.sorting import *
from minigrad.functions.statistics import *
from minigrad.functions.windows import *
from minigrad.interop.dlpack import from_dlpack as from_dlpack
from minigrad.interop.legacy import *
from minigrad.interop.torch_names import as_torch as as_torch
from minigrad.io.files import load as load
from minigrad.io.files import save as save
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
from minigrad.profiler import profile as profile
from minigrad.random import *
from minigrad.runtime.config import *
from minigrad.runtime.devices import device as device
from minigrad.runtime.dtypes import bfloat16 as bfloat16
from minigrad.runtime.dtypes import bool_ as bool
from minigrad.runtime.dtypes import float64 as double
from minigrad.runtime.dtypes import DType as dtype
from minigrad.runtime.dtypes import float32 as float
from minigrad.runtime.dtypes import float16 as float16
from minigrad.runtime.dtypes import float32 as float32
from minigrad.runtime.dtypes import float64 as float64
from minigrad.runtime.dtypes import get_default_dtype as get_default_dtype
from minigrad.runtime.dtypes import float16 as half
from minigrad.runtime.dtypes import int32 as int
from minigrad.runtime.dtypes import int16 as int16
from minigrad.runtime.dtypes import int32 as int32
from minigrad.runtime.dtypes import int64 as int64
from minigrad.runtime.dtypes import int8 as int8
from minigrad.runtime.dtypes import int64 as long
from minigrad.runtime.dtypes import set_default_dtype as set_default_dtype
from minigrad.runtime.dtypes import int16 as short
from minigrad.runtime.dtypes import uint8 as uint8
from minigrad.runtime.settings import *
from minigrad.tape.grad_mode import is_grad_enabled as is_grad_enabled
from minigrad.tape.tensor_base import Size as Size
from minigrad.tutorial.draw import *
from minigrad.tutorial.trace import *
from minigrad.tutorial.variable import *
from minigrad.utils.checkpoint import *

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
