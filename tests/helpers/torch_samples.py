"""Comparison of all operations shared with PyTorch, on PyTorch's catalogue of sample inputs.

Values, gradients and second derivatives of each sample are compared with PyTorch's in float64.
Values and gradients are compared in float32. ``python -m tests.helpers.torch_samples``, run in the
repository's root, prints the number of samples and the samples that differ. It also prints the
inputs that minigrad accepts and PyTorch refuses. The test of the same name fails if a sample
differs without an explanation here, or an explained sample agrees. Needs torch and expecttest.
"""

from __future__ import annotations

import operator
import re
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parent))  # where pytest finds the tests' helpers

import checkout  # noqa: F401 - first
import numpy as np
import torch
from torch.testing._internal.common_methods_invocations import op_db

import minigrad as mg

torch.set_num_threads(1)  # the samples are tiny

# ---- which operation of ours is meant ------------------------------------------------------------


def reflected(function: Any) -> Any:
    """The operator with its operands exchanged."""
    return lambda x, other: function(other, x)


REFLECTED = {
    "__radd__": reflected(operator.add),
    "__rsub__": reflected(operator.sub),
    "__rmul__": reflected(operator.mul),
    "__rdiv__": reflected(operator.truediv),
    "__rpow__": reflected(operator.pow),
    "__rmod__": reflected(operator.mod),
    "__rmatmul__": reflected(operator.matmul),
    "__rand__": reflected(operator.and_),
    "__ror__": reflected(operator.or_),
    "__rxor__": reflected(operator.xor),
}
OURS = {
    **REFLECTED,
    "__getitem__": operator.getitem,
    "T": lambda x: x.T,
    "mT": lambda x: x.mT,
    "bool": lambda x: x.bool(),
    "double": lambda x: x.double(),
    "float": lambda x: x.float(),
    "long": lambda x: x.long(),
    "item": lambda x: x.item(),
    "rsub": lambda x, other, alpha=1: mg.sub(mg.asarray(other), x, alpha=alpha),
    "where": lambda x, condition, other: mg.where(condition, x, other),
    "zero_": lambda x: mg.zero_(x.clone()),  # like the catalogue's entry
    "einsum": lambda tensors, equation: mg.einsum(equation, tensors),
    "linalg.pinv.singular": lambda a, b: mg.linalg.pinv(a @ b.mT),
    "linalg.lstsq.grad_oriented": lambda a, b, driver=None: mg.linalg.lstsq(a, b)[:2],
    "nn.functional.embedding": lambda weight, index, **options: mg.nn.functional.embedding(
        index, weight, **options
    ),
    "nn.functional.embedding_bag": lambda weight, index, *args, **options: (
        mg.nn.functional.embedding_bag(index, weight, *args, **options)
    ),
    "nn.functional.triplet_margin_with_distance_loss": lambda *xs, distance_function, **options: (
        mg.nn.functional.triplet_margin_with_distance_loss(
            *xs, distance_function=mg.nn.functional.pairwise_distance, **options
        )
    ),
}


def triangle(x: Any, upper: bool) -> Any:
    """The triangle of a matrix from which a Cholesky factor is read."""
    return x.triu() if upper else x.tril()


# Operations that read a part of a matrix, or take it as symmetric, get such a matrix in both. The
# gradient of the other part is 0 here, and not always in PyTorch.
PREPARED = {
    "cholesky_inverse": lambda f: lambda x, upper=False: f(triangle(x, upper), upper=upper),
    "cholesky_solve": lambda f: lambda b, x, upper=False: f(b, triangle(x, upper), upper=upper),
    # PyTorch's gradient is right only for normalised log-probabilities.
    "nn.functional.ctc_loss": lambda f: (
        lambda x, *args, **options: f(x.log_softmax(-1), *args, **options)
    ),
    "linalg.pinv.hermitian": lambda f: lambda x, **options: f(x + x.mT, **options),
}
# PyTorch returns empty results for what the chosen driver does not compute. minigrad returns all.
FILLED = {"linalg.lstsq"}
# Operations with random results, and operations without a comparable result.
RANDOM = {
    "bernoulli",
    "empty",
    "empty_like",
    "multinomial",
    "nn.functional.alpha_dropout",
    "nn.functional.dropout",
    "nn.functional.dropout1d",
    "nn.functional.dropout2d",
    "nn.functional.dropout3d",
    "nn.functional.feature_alpha_dropout",
    "nn.functional.fractional_max_pool2d",
    "nn.functional.fractional_max_pool3d",
    "nn.functional.rrelu",
    "normal",
    "rand_like",
    "randint",
    "randint_like",
    "randn",
    "randn_like",
    "uniform",
}


# ---- what is decided otherwise -------------------------------------------------------------------


@dataclass(frozen=True)
class Explained:
    """Samples of one operation that differ: the reason, the samples, and the message."""

    why: str
    when: Callable[[Any, Any], bool]  # function of sample and dtype
    says: str  # a regular expression for the message
    always: bool = True  # True if all of them differ; False if only some do, by rounding


def even(sample: Any, _dtype: Any) -> bool:
    """True if there are two different middle elements."""
    x, dim = sample.input, (*sample.args, None)[0] if sample.args else sample.kwargs.get("dim")
    n = x.numel() if dim is None or not x.ndim else x.shape[dim]
    return n > 0 and n % 2 == 0


def twice(sample: Any, _dtype: Any) -> bool:
    """True if two values go to the same position of a plane."""
    index = sample.args[0].flatten(-(sample.input.ndim - 2) or -1)
    rows = index.reshape(-1, index.shape[-1])
    return any(len(set(row.tolist())) < row.numel() for row in rows)


OVERWRITTEN = Explained(
    "a value that another overwrites has the gradient 0; in PyTorch both have that of the position",
    twice,
    "gradient",
    always=False,
)


def at_zero(sample: Any, dtype: Any) -> bool:
    """True for norms of zeros whose derivatives in PyTorch are NaN, or those of one singular
    vector.
    """
    order = sample.args[0]
    if not sample.input.numel():
        return False
    if sample.input.ndim == 2 and order in ("nuc", 2, -2):
        return True
    sharp = {None, "fro"} if sample.input.ndim == 2 else {None, 0.5, 2, -0.5, -1, -2, -3.5}
    return dtype is torch.float64 and order in sharp  # only the second derivative differs


LOWER_MEDIAN = Explained(
    "of an even number the mean of the middle two, as in NumPy; PyTorch takes the lower", even, ""
)
EXPLAINED = {
    "median": LOWER_MEDIAN,
    "nanmedian": LOWER_MEDIAN,
    "linalg.norm.subgradients_at_zero": Explained(
        "at zero the subgradient of least norm, whose derivative is a real 0",
        at_zero,
        "gradient|second derivative nan location",
    ),
    "cov": Explained(
        "weights are brought to float64 first; PyTorch multiplies and sums them in float32",
        lambda sample, dtype: dtype is torch.float64 and sample.kwargs.get("aweights") is not None,
        r"(value|gradient) Mismatched elements",
        always=False,
    ),
    "nn.functional.hardsigmoid": Explained(
        "1/6 in float64; PyTorch rounds it to float32 first",
        lambda sample, dtype: dtype is torch.float64 and sample.input.numel() == 20,
        r"gradient .* Max absolute difference among violations: \d\.\d+e-09",
    ),
    "nn.functional.layer_norm": Explained(
        "the gradient of a single element is 0; PyTorch's is the rounding error of a difference",
        lambda sample, dtype: dtype is torch.float32 and sample.input.numel() == 1,
        r"gradient .* \[0\]: 0.0 \(ACTUAL\)",
        always=False,
    ),
    "logcumsumexp": Explained(
        "within 1e-6 of the gradient in float64; PyTorch's is a difference of large numbers",
        lambda sample, dtype: dtype is torch.float32 and sample.input.ndim == 3,
        r"gradient Mismatched elements: \d / 125",
        always=False,
    ),
    **{f"nn.functional.max_unpool{d}d": OVERWRITTEN for d in (1, 2, 3)},
    "nn.functional.batch_norm": Explained(
        "the channels are dimension 1, and there must be one; PyTorch asks that of no empty input",
        lambda sample, _: sample.input.ndim < 2,
        "must have at least 2 dimensions",
    ),
}


def title(op: Any) -> str:
    """The name of a catalogue entry with its variant."""
    return f"{op.name}.{op.variant_test_name}" if op.variant_test_name else op.name


def ours(op: Any) -> Any:
    """minigrad's function for an entry of the catalogue, or None."""
    for name in (title(op), op.name):
        if name in OURS:
            return OURS[name]
    found: Any = mg
    for part in op.name.split("."):
        found = getattr(found, part, None)
        if found is None:
            return None
    if callable(found) and not isinstance(found, type):
        return found
    return None


def shared() -> list[Any]:
    """The entries of the catalogue that minigrad has too and that are not random."""
    return [
        op
        for op in op_db
        if op.name not in RANDOM and ours(op) is not None and torch.float64 in op.dtypes
    ]


# ---- one sample ----------------------------------------------------------------------------------

DTYPES = {
    torch.float32: mg.float32,
    torch.float64: mg.float64,
    torch.int64: mg.int64,
    torch.bool: mg.bool,
}
ELSEWHERE = {"device", "layout", "memory_format", "pin_memory", "out"}


class NotOfferedError(Exception):
    """The sample needs an unsupported dtype or device."""


class Twin:
    """Translator of a sample's arguments to minigrad.

    A tensor is always translated to the same one.
    """

    def __init__(self) -> None:
        self.pairs: dict[int, tuple[Any, Any]] = {}

    def __call__(self, value: Any) -> Any:
        """Translate tensors, dtypes and containers of them. Other values are unchanged."""
        if isinstance(value, torch.Tensor):
            return self.tensor(value)
        if isinstance(value, torch.dtype):
            if value not in DTYPES:
                raise NotOfferedError(value)
            return DTYPES[value]
        if isinstance(value, torch.Size):
            return tuple(value)
        if isinstance(value, (torch.device, torch.layout, torch.memory_format)):
            raise NotOfferedError(type(value))
        if isinstance(value, complex):
            raise NotOfferedError("complex")
        if isinstance(value, (list, tuple)):
            return type(value)([self(v) for v in value])
        return value

    def tensor(self, x: Any) -> Any:
        """A minigrad tensor with the same values, strides and requires_grad."""
        if id(x) not in self.pairs:
            if x.is_meta:
                raise NotOfferedError(x.device)
            if x.dtype not in DTYPES and x.dtype not in (torch.int32, torch.uint8, torch.int16):
                raise NotOfferedError(x.dtype)
            array = x.detach().numpy()
            made = mg.from_numpy(array) if x.dtype in DTYPES else mg.tensor(array)
            self.pairs[id(x)] = (x, made.requires_grad_(x.requires_grad))
        return self.pairs[id(x)][1]

    def leaves(self) -> list[tuple[Any, Any]]:
        """The pairs of tensors that require grad."""
        return [pair for pair in self.pairs.values() if pair[0].requires_grad]


def flat(result: Any) -> list[Any]:
    """The tensors and numbers in a result, in order."""
    if isinstance(result, (list, tuple)):
        return [x for part in result for x in flat(part)]
    return [result]


def close(stage: str, got: Any, want: Any, tolerance: float) -> None:
    """Raises Raise an AssertionError unless two results agree in shape, dtype and values."""
    if not isinstance(want, torch.Tensor):
        assert got == want or (got != got and want != want), f"{stage}: {got} != {want}"
        return
    a, b = got.detach().numpy(), want.detach().numpy(force=True)
    assert a.shape == b.shape, f"{stage}: shape {a.shape}, theirs {b.shape}"
    if want.dtype in DTYPES:
        assert a.dtype == b.dtype, f"{stage}: dtype {a.dtype}, theirs {b.dtype}"
    scale = float(np.abs(b[np.isfinite(b)]).max(initial=1.0)) if b.dtype.kind == "f" else 1.0
    np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance * scale, err_msg=stage)


def gradients(module: Any, outputs: list[Any], leaves: list[Any], cotangents: list[Any]) -> Any:
    """Vector-Jacobian products with a graph, zeros where an output does not depend on a leaf."""
    make = module.tensor
    seeds = [make(c) for c in cotangents]
    if module is torch:
        return torch.autograd.grad(
            outputs, leaves, seeds, create_graph=True, materialize_grads=True
        )
    return mg.grad(outputs, leaves, seeds, create_graph=True)


def compare(op: Any, function: Any, sample: Any, dtype: Any) -> None:
    """Raise an AssertionError, or the function's error, unless minigrad agrees with PyTorch."""
    tolerance = 1e-9 if dtype is torch.float64 else 2e-4
    twin = Twin()
    if set(sample.kwargs) & ELSEWHERE or sample.kwargs.get("dropout_p"):
        raise NotOfferedError(sample.kwargs)
    args = [twin(a) for a in (sample.input, *sample.args)]
    kwargs = {k: twin(v) for k, v in sample.kwargs.items()}
    settled = sample.output_process_fn_grad  # removes undetermined parts, such as signs
    prepared = PREPARED.get(title(op), lambda f: f)
    theirs = flat(settled(prepared(op)(sample.input, *sample.args, **sample.kwargs)))
    if any(isinstance(t, torch.Tensor) and t.is_complex() for t in theirs):
        raise NotOfferedError("complex result")
    mine = flat(settled(prepared(function)(*args, **kwargs)))
    assert len(mine) == len(theirs), f"{len(mine)} results, theirs {len(theirs)}"
    if op.name in FILLED:
        given = [k for k, t in enumerate(theirs) if t.numel() or not mine[k].numel()]
        mine, theirs = [mine[k] for k in given], [theirs[k] for k in given]
    for a, b in zip(mine, theirs, strict=True):
        close("value", a, b, tolerance)
    pairs = twin.leaves() if op.supports_autograd else []
    tracked = [
        (a, b)
        for a, b in zip(mine, theirs, strict=True)
        if isinstance(b, torch.Tensor) and b.requires_grad
    ]
    if not pairs or not tracked:
        return
    rng = np.random.default_rng(0)
    cotangents = [
        np.asarray(rng.uniform(0.5, 1.5, tuple(b.shape)), b.detach().numpy().dtype)
        for _, b in tracked
    ]
    # Results that do not depend smoothly on inputs need no graph here. PyTorch's gradients must
    # then be zeros.
    constant = [b for a, b in tracked if not a.requires_grad]
    for got in theirs_of(
        constant, [t for t, _ in pairs], [np.ones(tuple(b.shape)) for b in constant]
    ):
        assert not got.any(), "our result does not require grad, and theirs has a gradient"
    kept = [k for k, (a, _) in enumerate(tracked) if a.requires_grad]
    if not kept:
        return
    tracked, cotangents = [tracked[k] for k in kept], [cotangents[k] for k in kept]
    leaves = [m for _, m in pairs]
    first = gradients(mg, [a for a, _ in tracked], leaves, cotangents)
    first_theirs = theirs_of([b for _, b in tracked], [t for t, _ in pairs], cotangents)
    if not first_theirs:
        return
    for a, b in zip(first, first_theirs, strict=True):
        close("gradient", a, b, tolerance)
    if dtype is not torch.float64 or not op.supports_gradgrad:
        return
    followed = [(a, b) for a, b in zip(first, first_theirs, strict=True) if b.requires_grad]
    if not followed:
        return
    weights = [np.asarray(rng.uniform(0.5, 1.5, tuple(b.shape))) for _, b in followed]
    second_theirs = theirs_of([b for _, b in followed], [t for t, _ in pairs], weights)
    live = [(a, w) for (a, _), w in zip(followed, weights, strict=True) if a.requires_grad]
    second = (
        gradients(mg, [a for a, _ in live], leaves, [w for _, w in live])
        if live
        else [mg.zeros_like(m) for m in leaves]
    )
    for a, b in zip(second, second_theirs, strict=False):
        close("second derivative", a, b, 10 * tolerance)


def theirs_of(outputs: list[Any], leaves: list[Any], cotangents: list[Any]) -> list[Any]:
    """PyTorch's gradients, or None if it has no derivative."""
    if not outputs:
        return []
    try:
        return list(gradients(torch, outputs, leaves, cotangents))
    except (NotImplementedError, RuntimeError) as error:
        if "not implemented" in str(error):
            return []
        raise


@dataclass
class Outcome:
    """Outcome of one operation's samples."""

    samples: int = 0
    outside: int = 0  # samples of another dtype or device, not compared
    explained: list[str] = field(default_factory=list)
    # differences without explanation, or explanations without difference
    different: list[str] = field(default_factory=list)


def samples(op: Any, dtype: Any) -> Iterator[Any]:
    """The catalogue's samples of an operation. They are always the same."""
    torch.manual_seed(0)
    np.random.seed(0)
    yield from op.sample_inputs("cpu", dtype, requires_grad=op.supports_autograd)


def difference(op: Any, function: Any, sample: Any, dtype: Any) -> str | None:
    """The difference in a sample, or None."""
    try:
        compare(op, function, sample, dtype)
    except NotOfferedError:
        raise
    except Exception as error:
        return f"{type(error).__name__}: {error}".strip().replace("\n", " ")
    return None


def outcome(op: Any, dtype: Any) -> Outcome:
    """All samples of one operation in one dtype."""
    found = Outcome()
    function, reason = ours(op), EXPLAINED.get(title(op))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for place, sample in enumerate(samples(op, dtype)):
            try:
                text = difference(op, function, sample, dtype)
            except NotOfferedError:
                found.outside += 1
                continue
            found.samples += 1
            expected = reason is not None and reason.when(sample, dtype)
            line = f"sample {place} {dtype}: {text or 'agrees, but is explained as different'}"[
                :300
            ]
            if text is not None and expected and re.search(reason.says, text):
                found.explained.append(line)
            elif text is not None or (expected and reason.always):
                found.different.append(line)
    return found


# ---- what is refused -----------------------------------------------------------------------------


def accepted(op: Any) -> Iterator[str]:
    """The inputs that PyTorch refuses and minigrad accepts."""
    function = ours(op)
    for entry in op.error_inputs("cpu") if op.error_inputs_func is not None else ():
        sample, twin = entry.sample_input, Twin()
        operands = (sample.input, *sample.args)
        if len(operands) == 2 and any(isinstance(x, (int, float)) for x in operands):
            continue
        try:
            args = [twin(x) for x in operands]
            kwargs = {k: twin(v) for k, v in sample.kwargs.items()}
        except (NotOfferedError, ValueError):
            continue
        try:
            function(*args, **kwargs)
        except (TypeError, ValueError, IndexError, RuntimeError):
            continue
        shapes = [tuple(x.shape) if hasattr(x, "shape") else x for x in args]
        yield f"{shapes} {sample.kwargs or ''}: {entry.error_regex}"[:200]


def main(names: list[str]) -> None:
    """Print the counts and every difference."""
    total = Counter[str]()
    chosen = [op for op in shared() if not names or op.name in names]
    for op in chosen:
        for dtype in (torch.float64, torch.float32):
            found = outcome(op, dtype)
            total["samples"] += found.samples
            total["outside"] += found.outside
            total["explained"] += len(found.explained)
            total["different"] += len(found.different)
            for line in found.different:
                print(f"{title(op)}: {line}")
            if found.explained:
                count, why = len(found.explained), EXPLAINED[title(op)].why
                print(f"{title(op)}: {count} of {found.samples} in {dtype} differ: {why}")
        for line in accepted(op):
            print(f"{title(op)}: accepted here, refused by PyTorch: {line}")
    print(
        f"{len({op.name for op in chosen})} operations, {total['samples']} samples compared, "
        f"{total['explained']} different for a reason, {total['different']} different without one, "
        f"{total['outside']} of dtypes or devices that are not offered"
    )


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
