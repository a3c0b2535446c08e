# Written by docs/stubs.py from the modules themselves: change those.
from typing import Any
from minigrad import autograd as autograd
from minigrad import linalg as linalg
from minigrad import nn as nn
from minigrad import optim as optim
from minigrad import random as random
from minigrad import scalar as scalar
from minigrad import special as special
from minigrad._tensor import *
from minigrad.arranging import *
from minigrad.autograd import Function as Function
from minigrad.autograd import grad as grad
from minigrad.checking import gradcheck as gradcheck
from minigrad.checking import gradgradcheck as gradgradcheck
from minigrad.checking import numerical_gradient_check as numerical_gradient_check
from minigrad.config import *
from minigrad.contraction import *
from minigrad.counting import *
from minigrad.creation import *
from minigrad.diagonals import *
from minigrad.draw import *
from minigrad.dtypes import bfloat16 as bfloat16
from minigrad.dtypes import bool_ as bool
from minigrad.dtypes import float64 as double
from minigrad.dtypes import DType as dtype
from minigrad.dtypes import float32 as float
from minigrad.dtypes import float16 as float16
from minigrad.dtypes import float32 as float32
from minigrad.dtypes import float64 as float64
from minigrad.dtypes import float16 as half
from minigrad.dtypes import int32 as int
from minigrad.dtypes import int16 as int16
from minigrad.dtypes import int32 as int32
from minigrad.dtypes import int64 as int64
from minigrad.dtypes import int8 as int8
from minigrad.dtypes import int64 as long
from minigrad.dtypes import int16 as short
from minigrad.dtypes import uint8 as uint8
from minigrad.elementwise import *
from minigrad.padding import *
from minigrad.products import *
from minigrad.promotion import *
from minigrad.quantiles import *
from minigrad.random import *
from minigrad.reductions import *
from minigrad.scans import *
from minigrad.scattering import *
from minigrad.selection import *
from minigrad.shaping import *
from minigrad.solving import *
from minigrad.sorting import *
from minigrad.tape import enable_grad as enable_grad
from minigrad.tape import inference_mode as inference_mode
from minigrad.tape import is_grad_enabled as is_grad_enabled
from minigrad.tape import no_grad as no_grad
from minigrad.tape import set_grad_enabled as set_grad_enabled
from minigrad.variable import *
from minigrad.version import *

__all__: list[str]
