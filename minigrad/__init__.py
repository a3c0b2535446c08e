"""minigrad: a C-accelerated reverse-mode autograd engine for the CPU.

>>> import minigrad as mg
>>> x = mg.tensor([1.0, 2.0, 3.0], requires_grad=True)
>>> y = (x**2 + 3 * x).sum()
>>> y.backward()
>>> x.grad
tensor([5., 7., 9.])
"""

from importlib import import_module
from math import e, inf, nan, pi
from typing import Any

from minigrad import functions
from minigrad._tensor import Tensor
from minigrad.functions.creation import (
    arange,
    as_tensor,
    asarray,
    empty,
    empty_like,
    eye,
    from_numpy,
    full,
    full_like,
    linspace,
    ones,
    ones_like,
    tensor,
    zeros,
    zeros_like,
)
from minigrad.functions.grad_modes import enable_grad, inference_mode, no_grad, set_grad_enabled
from minigrad.runtime.devices import device
from minigrad.runtime.dtypes import DType as dtype  # noqa: N813 - PyTorch's name
from minigrad.runtime.dtypes import (
    bfloat16,
    bool_,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
)
from minigrad.tape.grad_mode import is_grad_enabled
from minigrad.tape.tensor_base import Size

bool, long, double = bool_, int64, float64  # noqa: A001 - PyTorch's names for the dtypes
int, short, float, half = int32, int16, float32, float16  # noqa: A001
newaxis = None
contiguous_format, preserve_format = "contiguous_format", "preserve_format"
channels_last, channels_last_3d, strided = "channels_last", "channels_last_3d", "strided"

# Names that are loaded at first use, by module; a name may be a module itself.
_HOMES = {
    "_tensor.inplace_functions": "abs_ acos_ acosh_ addmv_ arccos_ arccosh_ arcsin_ arcsinh_ "
    "arctan_ arctanh_ asin_ asinh_ atan_ atanh_ ceil_ clamp_ clamp_max_ clamp_min_ clip_ cos_ "
    "cosh_ deg2rad_ detach_ erf_ erfc_ exp2_ exp_ expm1_ fill_ fix_ floor_ frac_ i0_ index_put_ "
    "log10_ log1p_ log2_ log_ logit_ nan_to_num_ neg_ negative_ rad2deg_ reciprocal_ relu_ "
    "resize_as_ round_ rsqrt_ sigmoid_ sin_ sinc_ sinh_ sqrt_ square_ tan_ tanh_ trunc_ xlogy_ "
    "zero_",
    "_tensor.typed_classes": "BFloat16Tensor BoolTensor ByteTensor CharTensor DoubleTensor "
    "FloatTensor HalfTensor IntTensor LongTensor ShortTensor",
    "amp": "autocast",
    "autograd": "Function grad",
    "autograd.anomaly_mode": "detect_anomaly",
    "autograd.graph_memory": "graph_memory",
    "checking": "gradcheck gradgradcheck numerical_gradient_check",
    "compiler": "compile load_program",
    "func": "vmap",
    "functions.predicates": "broadcast_shapes get_device is_complex is_conj is_nonzero "
    "is_same_size is_storage is_tensor numel typename",
    "functions.promotion": "can_cast finfo iinfo is_floating_point promote_types result_type",
    "functions.windows": "bartlett_window blackman_window hamming_window hann_window kaiser_window "
    "logspace scalar_tensor",
    "interop.dlpack": "from_dlpack",
    "interop.legacy": "range set_default_tensor_type svd",
    "interop.torch_names": "as_torch",
    "io": "load save",
    "nn.functional": "alpha_dropout avg_pool1d batch_norm bilinear "
    "binary_cross_entropy_with_logits celu conv1d conv2d conv3d conv_transpose1d conv_transpose2d "
    "conv_transpose3d cosine_embedding_loss cosine_similarity dropout embedding group_norm "
    "hardshrink hinge_embedding_loss instance_norm kl_div layer_norm margin_ranking_loss "
    "max_pool1d max_pool2d max_pool3d pairwise_distance pdist poisson_nll_loss prelu rms_norm "
    "rrelu selu threshold triplet_margin_loss",
    "profiler": "profile",
    "random": "Generator bernoulli default_generator fork_rng get_rng_state initial_seed "
    "manual_seed multinomial normal rand rand_like randint randint_like randn randn_like randperm "
    "seed set_rng_state",
    "runtime.config": "get_num_threads set_num_threads show_config",
    "runtime.dtypes": "get_default_dtype set_default_dtype",
    "runtime.settings": "are_deterministic_algorithms_enabled get_default_device "
    "get_num_interop_threads set_default_device set_float32_matmul_precision "
    "set_num_interop_threads set_printoptions use_deterministic_algorithms",
    "tutorial.draw": "draw_graph",
    "tutorial.trace": "trace_backward",
    "tutorial.variable": "Variable",
    "utils.checkpoint": "checkpoint checkpoint_sequential",
    "version": "__version__",
    "": "accelerator amp array_api autograd backends compiler cuda data distributions func linalg "
    "mps nn optim profiler quasirandom random special testing tutorial utils xpu",
}
_LATER = {name: home for home, names in _HOMES.items() for name in names.split()}
_LATER |= dict.fromkeys(functions.__all__, "functions")

__all__ = [
    "Size",
    "Tensor",
    "arange",
    "as_tensor",
    "asarray",
    "bfloat16",
    "bool",
    "channels_last",
    "channels_last_3d",
    "contiguous_format",
    "device",
    "double",
    "dtype",
    "e",
    "empty",
    "empty_like",
    "enable_grad",
    "eye",
    "float",
    "float16",
    "float32",
    "float64",
    "from_numpy",
    "full",
    "full_like",
    "half",
    "inf",
    "inference_mode",
    "int",
    "int8",
    "int16",
    "int32",
    "int64",
    "is_grad_enabled",
    "linspace",
    "long",
    "nan",
    "newaxis",
    "no_grad",
    "ones",
    "ones_like",
    "pi",
    "preserve_format",
    "set_grad_enabled",
    "short",
    "strided",
    "tensor",
    "uint8",
    "zeros",
    "zeros_like",
]
__all__ += _LATER


def __getattr__(name: str) -> Any:
    home = _LATER.get(name)
    if home is None:
        # Without ``obj`` Python's message suggests no other name, such as "divide" for "device".
        raise AttributeError(f"module {__name__!r} has no {name}", name=name, obj=None)
    found = import_module(f"{__name__}.{home or name}")
    if home:
        found = getattr(found, name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
