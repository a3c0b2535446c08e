# Written by docs/stubs.py from the modules themselves: change those.
from minigrad.arranging import atleast_1d as atleast_1d
from minigrad.arranging import atleast_2d as atleast_2d
from minigrad.arranging import atleast_3d as atleast_3d
from minigrad.arranging import cartesian_prod as cartesian_prod
from minigrad.arranging import chunk as chunk
from minigrad.arranging import column_stack as column_stack
from minigrad.arranging import dsplit as dsplit
from minigrad.arranging import dstack as dstack
from minigrad.arranging import flip as flip
from minigrad.arranging import fliplr as fliplr
from minigrad.arranging import flipud as flipud
from minigrad.arranging import hsplit as hsplit
from minigrad.arranging import hstack as hstack
from minigrad.arranging import meshgrid as meshgrid
from minigrad.arranging import repeat as repeat
from minigrad.arranging import repeat_interleave as repeat_interleave
from minigrad.arranging import roll as roll
from minigrad.arranging import rot90 as rot90
from minigrad.arranging import row_stack as row_stack
from minigrad.arranging import split as split
from minigrad.arranging import split_with_sizes as split_with_sizes
from minigrad.arranging import tensor_split as tensor_split
from minigrad.arranging import tile as tile
from minigrad.arranging import vsplit as vsplit
from minigrad.arranging import vstack as vstack
from minigrad.contraction import einsum as einsum
from minigrad.contraction import inner as inner
from minigrad.contraction import tensordot as tensordot
from minigrad.counting import bincount as bincount
from minigrad.counting import histc as histc
from minigrad.counting import unique as unique
from minigrad.counting import unique_consecutive as unique_consecutive
from minigrad.diagonals import block_diag as block_diag
from minigrad.diagonals import diag as diag
from minigrad.diagonals import diag_embed as diag_embed
from minigrad.diagonals import diagflat as diagflat
from minigrad.diagonals import diagonal as diagonal
from minigrad.diagonals import diagonal_scatter as diagonal_scatter
from minigrad.diagonals import tril as tril
from minigrad.diagonals import tril_indices as tril_indices
from minigrad.diagonals import triu as triu
from minigrad.diagonals import triu_indices as triu_indices
from minigrad.elementwise import abs as abs
from minigrad.elementwise import absolute as absolute
from minigrad.elementwise import acos as acos
from minigrad.elementwise import acosh as acosh
from minigrad.elementwise import add as add
from minigrad.elementwise import addcdiv as addcdiv
from minigrad.elementwise import addcmul as addcmul
from minigrad.elementwise import allclose as allclose
from minigrad.elementwise import arccos as arccos
from minigrad.elementwise import arccosh as arccosh
from minigrad.elementwise import arcsin as arcsin
from minigrad.elementwise import arcsinh as arcsinh
from minigrad.elementwise import arctan as arctan
from minigrad.elementwise import arctan2 as arctan2
from minigrad.elementwise import arctanh as arctanh
from minigrad.elementwise import asin as asin
from minigrad.elementwise import asinh as asinh
from minigrad.elementwise import atan as atan
from minigrad.elementwise import atan2 as atan2
from minigrad.elementwise import atanh as atanh
from minigrad.elementwise import bitwise_and as bitwise_and
from minigrad.elementwise import bitwise_left_shift as bitwise_left_shift
from minigrad.elementwise import bitwise_not as bitwise_not
from minigrad.elementwise import bitwise_or as bitwise_or
from minigrad.elementwise import bitwise_right_shift as bitwise_right_shift
from minigrad.elementwise import bitwise_xor as bitwise_xor
from minigrad.elementwise import cbrt as cbrt
from minigrad.elementwise import ceil as ceil
from minigrad.elementwise import clamp as clamp
from minigrad.elementwise import clamp_max as clamp_max
from minigrad.elementwise import clamp_min as clamp_min
from minigrad.elementwise import clip as clip
from minigrad.elementwise import copysign as copysign
from minigrad.elementwise import cos as cos
from minigrad.elementwise import cosh as cosh
from minigrad.elementwise import deg2rad as deg2rad
from minigrad.elementwise import digamma as digamma
from minigrad.elementwise import div as div
from minigrad.elementwise import divide as divide
from minigrad.elementwise import eq as eq
from minigrad.elementwise import equal as equal
from minigrad.elementwise import erf as erf
from minigrad.elementwise import erfc as erfc
from minigrad.elementwise import erfinv as erfinv
from minigrad.elementwise import exp as exp
from minigrad.elementwise import exp2 as exp2
from minigrad.elementwise import expm1 as expm1
from minigrad.elementwise import fix as fix
from minigrad.elementwise import floor as floor
from minigrad.elementwise import floor_divide as floor_divide
from minigrad.elementwise import fmax as fmax
from minigrad.elementwise import fmin as fmin
from minigrad.elementwise import fmod as fmod
from minigrad.elementwise import frac as frac
from minigrad.elementwise import ge as ge
from minigrad.elementwise import greater as greater
from minigrad.elementwise import greater_equal as greater_equal
from minigrad.elementwise import gt as gt
from minigrad.elementwise import heaviside as heaviside
from minigrad.elementwise import hypot as hypot
from minigrad.elementwise import i0 as i0
from minigrad.elementwise import isclose as isclose
from minigrad.elementwise import isfinite as isfinite
from minigrad.elementwise import isinf as isinf
from minigrad.elementwise import isnan as isnan
from minigrad.elementwise import isneginf as isneginf
from minigrad.elementwise import isposinf as isposinf
from minigrad.elementwise import le as le
from minigrad.elementwise import lerp as lerp
from minigrad.elementwise import less as less
from minigrad.elementwise import less_equal as less_equal
from minigrad.elementwise import lgamma as lgamma
from minigrad.elementwise import log as log
from minigrad.elementwise import log10 as log10
from minigrad.elementwise import log1p as log1p
from minigrad.elementwise import log2 as log2
from minigrad.elementwise import logaddexp as logaddexp
from minigrad.elementwise import logaddexp2 as logaddexp2
from minigrad.elementwise import logical_and as logical_and
from minigrad.elementwise import logical_not as logical_not
from minigrad.elementwise import logical_or as logical_or
from minigrad.elementwise import logical_xor as logical_xor
from minigrad.elementwise import logit as logit
from minigrad.elementwise import lt as lt
from minigrad.elementwise import maximum as maximum
from minigrad.elementwise import minimum as minimum
from minigrad.elementwise import mul as mul
from minigrad.elementwise import multiply as multiply
from minigrad.elementwise import nan_to_num as nan_to_num
from minigrad.elementwise import ne as ne
from minigrad.elementwise import neg as neg
from minigrad.elementwise import negative as negative
from minigrad.elementwise import nextafter as nextafter
from minigrad.elementwise import not_equal as not_equal
from minigrad.elementwise import polygamma as polygamma
from minigrad.elementwise import positive as positive
from minigrad.elementwise import pow as pow
from minigrad.elementwise import rad2deg as rad2deg
from minigrad.elementwise import reciprocal as reciprocal
from minigrad.elementwise import relu as relu
from minigrad.elementwise import remainder as remainder
from minigrad.elementwise import round as round
from minigrad.elementwise import rsqrt as rsqrt
from minigrad.elementwise import sgn as sgn
from minigrad.elementwise import sigmoid as sigmoid
from minigrad.elementwise import sign as sign
from minigrad.elementwise import signbit as signbit
from minigrad.elementwise import sin as sin
from minigrad.elementwise import sinc as sinc
from minigrad.elementwise import sinh as sinh
from minigrad.elementwise import sqrt as sqrt
from minigrad.elementwise import square as square
from minigrad.elementwise import sub as sub
from minigrad.elementwise import subtract as subtract
from minigrad.elementwise import tan as tan
from minigrad.elementwise import tanh as tanh
from minigrad.elementwise import true_divide as true_divide
from minigrad.elementwise import trunc as trunc
from minigrad.elementwise import xlogy as xlogy
from minigrad.linalg import matmul as matmul
from minigrad.padding import pad as pad
from minigrad.products import addbmm as addbmm
from minigrad.products import addmm as addmm
from minigrad.products import addmv as addmv
from minigrad.products import addr as addr
from minigrad.products import baddbmm as baddbmm
from minigrad.products import bmm as bmm
from minigrad.products import cdist as cdist
from minigrad.products import cross as cross
from minigrad.products import dot as dot
from minigrad.products import ger as ger
from minigrad.products import kron as kron
from minigrad.products import mm as mm
from minigrad.products import mv as mv
from minigrad.products import outer as outer
from minigrad.products import vdot as vdot
from minigrad.quantiles import median as median
from minigrad.quantiles import nanmedian as nanmedian
from minigrad.quantiles import nanquantile as nanquantile
from minigrad.quantiles import quantile as quantile
from minigrad.reductions import all as all
from minigrad.reductions import amax as amax
from minigrad.reductions import amin as amin
from minigrad.reductions import aminmax as aminmax
from minigrad.reductions import any as any
from minigrad.reductions import argmax as argmax
from minigrad.reductions import argmin as argmin
from minigrad.reductions import count_nonzero as count_nonzero
from minigrad.reductions import logsumexp as logsumexp
from minigrad.reductions import max as max
from minigrad.reductions import mean as mean
from minigrad.reductions import min as min
from minigrad.reductions import nanmean as nanmean
from minigrad.reductions import nansum as nansum
from minigrad.reductions import norm as norm
from minigrad.reductions import prod as prod
from minigrad.reductions import std as std
from minigrad.reductions import std_mean as std_mean
from minigrad.reductions import sum as sum
from minigrad.reductions import trace as trace
from minigrad.reductions import var as var
from minigrad.reductions import var_mean as var_mean
from minigrad.reductions import vector_norm as vector_norm
from minigrad.scans import cummax as cummax
from minigrad.scans import cummin as cummin
from minigrad.scans import cumprod as cumprod
from minigrad.scans import cumsum as cumsum
from minigrad.scans import diff as diff
from minigrad.scans import log_softmax as log_softmax
from minigrad.scans import logcumsumexp as logcumsumexp
from minigrad.scans import softmax as softmax
from minigrad.scans import softmin as softmin
from minigrad.scattering import index_add as index_add
from minigrad.scattering import index_copy as index_copy
from minigrad.scattering import index_fill as index_fill
from minigrad.scattering import index_put as index_put
from minigrad.scattering import index_reduce as index_reduce
from minigrad.scattering import masked_scatter as masked_scatter
from minigrad.scattering import scatter as scatter
from minigrad.scattering import scatter_add as scatter_add
from minigrad.scattering import scatter_reduce as scatter_reduce
from minigrad.scattering import select_scatter as select_scatter
from minigrad.scattering import slice_scatter as slice_scatter
from minigrad.selection import argwhere as argwhere
from minigrad.selection import gather as gather
from minigrad.selection import index_select as index_select
from minigrad.selection import masked_fill as masked_fill
from minigrad.selection import masked_select as masked_select
from minigrad.selection import nonzero as nonzero
from minigrad.selection import take as take
from minigrad.selection import take_along_dim as take_along_dim
from minigrad.selection import where as where
from minigrad.shaping import broadcast_tensors as broadcast_tensors
from minigrad.shaping import broadcast_to as broadcast_to
from minigrad.shaping import cat as cat
from minigrad.shaping import clone as clone
from minigrad.shaping import concat as concat
from minigrad.shaping import concatenate as concatenate
from minigrad.shaping import contiguous as contiguous
from minigrad.shaping import expand as expand
from minigrad.shaping import expand_as as expand_as
from minigrad.shaping import flatten as flatten
from minigrad.shaping import moveaxis as moveaxis
from minigrad.shaping import movedim as movedim
from minigrad.shaping import narrow as narrow
from minigrad.shaping import permute as permute
from minigrad.shaping import ravel as ravel
from minigrad.shaping import reshape as reshape
from minigrad.shaping import reshape_as as reshape_as
from minigrad.shaping import select as select
from minigrad.shaping import squeeze as squeeze
from minigrad.shaping import stack as stack
from minigrad.shaping import sum_to_size as sum_to_size
from minigrad.shaping import swapaxes as swapaxes
from minigrad.shaping import swapdims as swapdims
from minigrad.shaping import t as t
from minigrad.shaping import to as to
from minigrad.shaping import transpose as transpose
from minigrad.shaping import type_as as type_as
from minigrad.shaping import unbind as unbind
from minigrad.shaping import unflatten as unflatten
from minigrad.shaping import unfold as unfold
from minigrad.shaping import unsqueeze as unsqueeze
from minigrad.shaping import view as view
from minigrad.shaping import view_as as view_as
from minigrad.solving import cholesky as cholesky
from minigrad.solving import cholesky_inverse as cholesky_inverse
from minigrad.solving import cholesky_solve as cholesky_solve
from minigrad.solving import det as det
from minigrad.solving import inverse as inverse
from minigrad.solving import logdet as logdet
from minigrad.solving import matrix_exp as matrix_exp
from minigrad.solving import matrix_power as matrix_power
from minigrad.solving import pinverse as pinverse
from minigrad.solving import slogdet as slogdet
from minigrad.sorting import argsort as argsort
from minigrad.sorting import bucketize as bucketize
from minigrad.sorting import kthvalue as kthvalue
from minigrad.sorting import searchsorted as searchsorted
from minigrad.sorting import sort as sort
from minigrad.sorting import topk as topk

__all__ = [
    "abs",
    "absolute",
    "acos",
    "acosh",
    "add",
    "addcdiv",
    "addcmul",
    "allclose",
    "arccos",
    "arccosh",
    "arcsin",
    "arcsinh",
    "arctan",
    "arctan2",
    "arctanh",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "bitwise_and",
    "bitwise_left_shift",
    "bitwise_not",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "cbrt",
    "ceil",
    "clamp",
    "clamp_max",
    "clamp_min",
    "clip",
    "copysign",
    "cos",
    "cosh",
    "deg2rad",
    "digamma",
    "div",
    "divide",
    "eq",
    "equal",
    "erf",
    "erfc",
    "erfinv",
    "exp",
    "exp2",
    "expm1",
    "fix",
    "floor",
    "floor_divide",
    "fmax",
    "fmin",
    "fmod",
    "frac",
    "ge",
    "greater",
    "greater_equal",
    "gt",
    "heaviside",
    "hypot",
    "i0",
    "isclose",
    "isfinite",
    "isinf",
    "isnan",
    "isneginf",
    "isposinf",
    "le",
    "lerp",
    "less",
    "less_equal",
    "lgamma",
    "log",
    "log1p",
    "log2",
    "log10",
    "logaddexp",
    "logaddexp2",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "logit",
    "lt",
    "maximum",
    "minimum",
    "mul",
    "multiply",
    "nan_to_num",
    "ne",
    "neg",
    "negative",
    "nextafter",
    "not_equal",
    "polygamma",
    "positive",
    "pow",
    "rad2deg",
    "reciprocal",
    "relu",
    "remainder",
    "round",
    "rsqrt",
    "sgn",
    "sigmoid",
    "sign",
    "signbit",
    "sin",
    "sinc",
    "sinh",
    "sqrt",
    "square",
    "sub",
    "subtract",
    "tan",
    "tanh",
    "true_divide",
    "trunc",
    "xlogy",
    "all",
    "amax",
    "amin",
    "aminmax",
    "any",
    "argmax",
    "argmin",
    "count_nonzero",
    "logsumexp",
    "max",
    "mean",
    "min",
    "nanmean",
    "nansum",
    "norm",
    "prod",
    "std",
    "std_mean",
    "sum",
    "trace",
    "var",
    "var_mean",
    "vector_norm",
    "cummax",
    "cummin",
    "cumprod",
    "cumsum",
    "diff",
    "log_softmax",
    "logcumsumexp",
    "softmax",
    "softmin",
    "argsort",
    "bucketize",
    "kthvalue",
    "searchsorted",
    "sort",
    "topk",
    "median",
    "nanmedian",
    "nanquantile",
    "quantile",
    "bincount",
    "histc",
    "unique",
    "unique_consecutive",
    "broadcast_tensors",
    "broadcast_to",
    "cat",
    "clone",
    "concat",
    "concatenate",
    "contiguous",
    "expand",
    "expand_as",
    "flatten",
    "moveaxis",
    "movedim",
    "narrow",
    "permute",
    "ravel",
    "reshape",
    "reshape_as",
    "select",
    "squeeze",
    "stack",
    "sum_to_size",
    "swapaxes",
    "swapdims",
    "t",
    "to",
    "transpose",
    "type_as",
    "unbind",
    "unflatten",
    "unfold",
    "unsqueeze",
    "view",
    "view_as",
    "argwhere",
    "gather",
    "index_select",
    "masked_fill",
    "masked_select",
    "nonzero",
    "take",
    "take_along_dim",
    "where",
    "addbmm",
    "addmm",
    "addmv",
    "addr",
    "baddbmm",
    "bmm",
    "cdist",
    "cross",
    "dot",
    "ger",
    "kron",
    "matmul",
    "mm",
    "mv",
    "outer",
    "vdot",
    "einsum",
    "inner",
    "tensordot",
    "cholesky",
    "cholesky_inverse",
    "cholesky_solve",
    "det",
    "inverse",
    "logdet",
    "matrix_exp",
    "matrix_power",
    "pinverse",
    "slogdet",
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "cartesian_prod",
    "chunk",
    "column_stack",
    "dsplit",
    "dstack",
    "flip",
    "fliplr",
    "flipud",
    "hsplit",
    "hstack",
    "meshgrid",
    "repeat",
    "repeat_interleave",
    "roll",
    "rot90",
    "row_stack",
    "split",
    "split_with_sizes",
    "tensor_split",
    "tile",
    "vsplit",
    "vstack",
    "block_diag",
    "diag",
    "diag_embed",
    "diagflat",
    "diagonal",
    "diagonal_scatter",
    "tril",
    "tril_indices",
    "triu",
    "triu_indices",
    "pad",
    "index_add",
    "index_copy",
    "index_fill",
    "index_put",
    "index_reduce",
    "masked_scatter",
    "scatter",
    "scatter_add",
    "scatter_reduce",
    "select_scatter",
    "slice_scatter",
]
