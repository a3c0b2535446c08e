# Written by docs/stubs.py from the modules themselves: change those.
import builtins
from typing import Any
from minigrad.functions.elementwise import sigmoid as sigmoid
from minigrad.functions.elementwise import tanh as tanh
from minigrad.functions.padding import pad as pad
from minigrad.functions.scans import log_softmax as log_softmax
from minigrad.functions.scans import softmax as softmax
from minigrad.functions.scans import softmin as softmin
from minigrad.nn.functional.activation import celu as celu
from minigrad.nn.functional.activation import celu_ as celu_
from minigrad.nn.functional.activation import elu as elu
from minigrad.nn.functional.activation import elu_ as elu_
from minigrad.nn.functional.activation import gelu as gelu
from minigrad.nn.functional.activation import glu as glu
from minigrad.nn.functional.activation import gumbel_softmax as gumbel_softmax
from minigrad.nn.functional.activation import hardshrink as hardshrink
from minigrad.nn.functional.activation import hardsigmoid as hardsigmoid
from minigrad.nn.functional.activation import hardswish as hardswish
from minigrad.nn.functional.activation import hardtanh as hardtanh
from minigrad.nn.functional.activation import hardtanh_ as hardtanh_
from minigrad.nn.functional.activation import leaky_relu as leaky_relu
from minigrad.nn.functional.activation import leaky_relu_ as leaky_relu_
from minigrad.nn.functional.activation import logsigmoid as logsigmoid
from minigrad.nn.functional.activation import mish as mish
from minigrad.nn.functional.activation import prelu as prelu
from minigrad.nn.functional.activation import relu as relu
from minigrad.nn.functional.activation import relu6 as relu6
from minigrad.nn.functional.activation import relu_ as relu_
from minigrad.nn.functional.activation import rrelu as rrelu
from minigrad.nn.functional.activation import rrelu_ as rrelu_
from minigrad.nn.functional.activation import selu as selu
from minigrad.nn.functional.activation import selu_ as selu_
from minigrad.nn.functional.activation import silu as silu
from minigrad.nn.functional.activation import softplus as softplus
from minigrad.nn.functional.activation import softshrink as softshrink
from minigrad.nn.functional.activation import softsign as softsign
from minigrad.nn.functional.activation import tanhshrink as tanhshrink
from minigrad.nn.functional.activation import threshold as threshold
from minigrad.nn.functional.activation import threshold_ as threshold_
from minigrad.nn.functional.attention import *
from minigrad.nn.functional.bags import *
from minigrad.nn.functional.classification import *
from minigrad.nn.functional.convolution import *
from minigrad.nn.functional.ctc import *
from minigrad.nn.functional.dense import *
from minigrad.nn.functional.distance import *
from minigrad.nn.functional.fractional import *
from minigrad.nn.functional.loss import *
from minigrad.nn.functional.normalization import *
from minigrad.nn.functional.pooling import *
from minigrad.nn.functional.recurrent import *
from minigrad.nn.functional.regularization import *
from minigrad.nn.functional.sampling import *
from minigrad.nn.functional.sparse import embedding as embedding
from minigrad.nn.functional.sparse import one_hot as one_hot
from minigrad.nn.functional.unpooling import *
from minigrad.nn.functional.vision import *

TOPICS: Any
__all__: list[str]
