"""Public names without a value to compare, by reason."""

from __future__ import annotations

WITHOUT: dict[str, str] = {
    "classes and dtypes, which values are instances of": """
        Function Generator Size Tensor Variable bfloat16 bool device double dtype float
        float16 float32 float64 half int int16 int32 int64 int8 long short uint8
    """,
    "constants and words": """
        channels_last channels_last_3d contiguous_format e inf nan newaxis pi preserve_format
        strided
    """,
    "modules": """
        accelerator amp array_api autograd backends compiler cuda data distributions func linalg
        mps nn optim profiler quasirandom random special testing tutorial utils xpu
    """,
    "settings of the process": """
        are_deterministic_algorithms_enabled autocast default_generator fork_rng
        get_default_device get_default_dtype get_num_interop_threads get_num_threads get_rng_state
        initial_seed manual_seed seed set_default_device set_default_dtype set_default_tensor_type
        set_float32_matmul_precision set_num_interop_threads set_num_threads set_printoptions
        set_rng_state show_config use_deterministic_algorithms
    """,
    "scopes, which only change what is recorded": """
        enable_grad inference_mode is_grad_enabled no_grad set_grad_enabled
    """,
    "tools, which only look": "detect_anomaly graph_memory profile",
    "calls of functions that are given": """
        checkpoint checkpoint_sequential func.custom_root func.custom_vjp func.fixed_point
    """,
    "files, pictures, tables and other libraries' objects": """
        as_torch draw_graph load load_program save trace_backward typename
    """,
    "memory whose contents are whatever is there": "empty empty_like Tensor.new_empty",
    "the tensor's place in memory": "Tensor.ctypes Tensor.data_ptr",
    "the tensor's place on the tape": """
        Tensor.grad_fn Tensor.is_leaf Tensor.output_nr Tensor.register_hook
        Tensor.register_post_accumulate_grad_hook Tensor.requires_grad Tensor.retain_grad
        Tensor.retains_grad Tensor.apply_row
    """,
    "the tensor's kind and device": """
        Tensor.cuda Tensor.device Tensor.dtype Tensor.is_cpu Tensor.is_cuda Tensor.is_meta
        Tensor.is_mps Tensor.is_pinned Tensor.is_quantized Tensor.is_shared Tensor.is_sparse
        Tensor.is_xpu
    """,
    "what other tests call through": """
        autograd.Function autograd.backward autograd.once_differentiable nn.utils.parametrizations
        nn.utils.parametrize nn.utils.rnn nn.utils.rnn.PackedSequence
        nn.utils.parametrize.ParametrizationList nn.utils.parametrize.cached
        distributions.Distribution distributions.ExponentialFamily distributions.Transform
        distributions.constraints distributions.register_kl distributions.transforms
    """,
    "protocols that other tests call through": """
        Tensor.__array_function__ Tensor.__array_namespace__ Tensor.__array_ufunc__
        Tensor.__dlpack__ Tensor.__dlpack_device__
    """,
}
WITHOUT_NAMES = {name: why for why, names in WITHOUT.items() for name in names.split()}
