"""Table of PyTorch modules whose names are in another module of minigrad."""

from __future__ import annotations

__all__ = ["PLACES"]

# (package of PyTorch, module of minigrad) -> modules of the package with names in that module.
_SAME_NAMES = {
    ("torch", ""): "functional",
    ("torch.cuda", "random"): "random",
    ("torch.distributions", "distributions"): "bernoulli beta binomial categorical cauchy chi2 "
    "dirichlet exponential gamma geometric gumbel half_cauchy half_normal independent laplace "
    "log_normal mixture_same_family multinomial multivariate_normal negative_binomial normal "
    "one_hot_categorical pareto poisson studentT transformed_distribution uniform weibull",
    ("torch.nn.modules", "nn"): "adaptive container distance dropout flatten fold "
    "lazy linear pixelshuffle rnn upsampling",
    ("torch.nn.modules", "nn.activations"): "activation",
    ("torch.nn.modules", "nn.convolution"): "conv",
    ("torch.nn.modules", "nn.normalization"): "batchnorm instancenorm normalization",
    ("torch.nn.modules", "nn.padding"): "padding",
    ("torch.nn.modules", "nn.pooling"): "pooling",
    ("torch.nn.modules", "nn.sparse"): "sparse",
    ("torch.nn.modules", "nn.transformer"): "transformer",
    ("torch.nn.utils", "nn.utils"): "clip_grad convert_parameters spectral_norm weight_norm",
    ("torch.optim", "optim"): "adadelta adagrad adam adamax adamw asgd lbfgs nadam radam rmsprop "
    "rprop sgd sparse_adam",
    ("torch", "io"): "serialization",
    ("torch.utils.data", "data"): "dataloader",
    ("torch.utils.data", "data.datasets"): "dataset",
    ("torch.utils.data", "data.samplers"): "distributed sampler",
}
PLACES = {
    f"{package}.{name}": f"minigrad.{own}".rstrip(".")
    for (package, own), names in _SAME_NAMES.items()
    for name in names.split()
}
