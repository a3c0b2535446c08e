"""``check_function``: every check of a user's Function in one line."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import combinations
from typing import Any

import numpy as np

from minigrad import func
from minigrad.autograd import Function, enable_grad, grad
from minigrad.checking import GradcheckError, gradcheck, gradgradcheck
from minigrad.checking.inputs import direction, interleaved, is_checked, outputs_of, values_of
from minigrad.functions import stack
from minigrad.functions.creation import tensor
from minigrad.runtime.dtypes import float32, float64
from minigrad.tape.tensor_base import TensorBase

__all__ = ["check_function"]

_ALL_SUBSETS = 4  # inputs of which every subset is asked for its gradients
_UNKNOWN = "the second derivative is not known"  # of the error of a Function that has none


def check_function(function: Any, *inputs: Any, seed: int = 0, **options: Any) -> tuple[str, ...]:
    """Check a Function, or any function, in all respects; the names of what was checked.

    ``inputs`` are the arguments; those that require grad are float64. The checks are

    * ``gradients``: :func:`minigrad.gradcheck`, which takes the ``options``, also with upstream
      gradients that are strided or broadcast,
    * ``second derivatives``: :func:`minigrad.gradgradcheck`, unless backward is not differentiable,
    * ``float32``: gradients in float32 against those in float64, and float32 outputs; left out for
      a function with float64 outputs that is no Function, as a module with float64 parameters,
    * ``layouts``: inputs that are strided or transposed give what contiguous ones give,
    * ``needs_input_grad``: the gradients of some inputs alone are those of all together,
    * ``forward mode`` and ``vmap``, for a Function that has the method ``jvp`` or ``vmap``.

    Raises GradcheckError, an AssertionError, with the name of the function and what is wrong.
    Raises ValueError or TypeError for inputs that cannot be checked, as gradcheck does.

    >>> import minigrad as mg
    >>> class Square(mg.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x * x
    ...
    ...     @staticmethod
    ...     def backward(ctx, g):
    ...         (x,) = ctx.saved_tensors
    ...         return 2 * x * g
    >>> mg.testing.check_function(Square, mg.ones(3, dtype=mg.float64, requires_grad=True))
    ('gradients', 'second derivatives', 'float32', 'layouts', 'needs_input_grad')
    """
    is_class = isinstance(function, type) and issubclass(function, Function)
    run: Callable[..., Any] = function.apply if is_class else function
    name = getattr(function, "__name__", type(function).__name__)
    own = {n for n in ("jvp", "vmap") if is_class and _defines(function, n)}
    options = {"seed": seed, **options}
    with _named(name):
        gradcheck(run, inputs, **{"check_forward_ad": "jvp" in own, **options})
        done = ["gradients"]
        if _has_second_derivatives(run, inputs, options):
            done.append("second derivatives")
        probe = _Probe(run, inputs, seed)
        if probe.is_float32_right(is_class):
            done.append("float32")
        probe.check_layouts()
        probe.check_subsets()
        done += ["layouts", "needs_input_grad"]
        if "jvp" in own:
            done.append("forward mode")
        if "vmap" in own:
            probe.check_vmap()
            done.append("vmap")
    return tuple(done)


def _defines(function: Any, name: str) -> bool:
    """Whether a Function's class, or one above it below Function, has a method of this name."""
    bases = [b for b in function.__mro__ if issubclass(b, Function) and b is not Function]
    return any(name in vars(base) for base in bases)


@contextmanager
def _named(name: str) -> Iterator[None]:
    """Errors of the checks begin with the name of the function."""
    try:
        yield
    except GradcheckError as error:
        raise GradcheckError(f"[check_function] {name}: {error}") from None


def _has_second_derivatives(run: Any, inputs: Any, options: dict[str, Any]) -> bool:
    """Check the second derivatives; False if the function says that it has none."""
    try:
        gradgradcheck(run, inputs, strided_grad_outputs=True, **options)
    except GradcheckError:
        raise
    except RuntimeError as error:
        if _UNKNOWN not in str(error):
            raise
        return False
    return True


class _Probe:
    """A function, its arguments, and its outputs and gradients for random upstream gradients."""

    def __init__(self, run: Callable[..., Any], args: Sequence[Any], seed: int) -> None:
        self.run = run
        self.args = args
        first = {id(x): i for i, x in reversed([*enumerate(args)]) if is_checked(x)}
        self.places = sorted(first.values())  # a tensor given twice counts once
        rng = np.random.default_rng(seed)
        with enable_grad():
            outputs = outputs_of(run, args)
        self.upstream = [tensor(direction(rng, y.shape), float64) for y in outputs]
        self.outputs, self.gradients = self.results(args)

    def results(self, args: Sequence[Any]) -> tuple[list[Any], dict[int, Any]]:
        """The outputs, and the gradients by the place of the argument."""
        with enable_grad():
            outputs = outputs_of(self.run, args)
        places = [i for i, x in enumerate(args) if is_checked(x)]
        pairs = zip(outputs, self.upstream, strict=True)
        recorded = [(y, v.to(y.dtype)) for y, v in pairs if y.requires_grad]
        if not recorded:
            return outputs, {}
        ys, vs = zip(*recorded, strict=True)
        found = grad(ys, [args[i] for i in places], vs, allow_unused=True, materialize_grads=True)
        return outputs, dict(zip(places, found, strict=True))

    def expect_same(self, args: Sequence[Any], when: str) -> None:
        """Outputs, and the gradients of the arguments that still require grad, as at first."""
        try:
            outputs, gradients = self.results(args)
        except GradcheckError:
            raise
        except Exception as error:
            raise GradcheckError(f"it fails {when}: {type(error).__name__}: {error}") from error
        pairs = zip(outputs, self.outputs, strict=True)
        named = [(f"output {j}", y, z) for j, (y, z) in enumerate(pairs)]
        for i, g in gradients.items():
            named.append((f"the gradient of input {i}", g, self.gradients[i]))
        for what, found, expected in named:
            a, b = values_of(found), values_of(expected)
            if a.shape != b.shape:
                raise GradcheckError(f"{what} has shape {a.shape} {when}, not {b.shape}")
            off = np.abs(a - b).max(initial=0.0)
            if not off <= 1e-12 * (1 + np.abs(b).max(initial=0.0)):
                raise GradcheckError(f"{what} changes {when}, by {off:.3g}")

    def replaced(self, others: dict[int, Any]) -> list[Any]:
        """The arguments with others for those in some places, wherever these are given."""
        given = {id(self.args[i]): other for i, other in others.items()}
        return [given.get(id(x), x) for x in self.args]

    def check_layouts(self) -> None:
        """Inputs that do not lie in memory as a kernel may think."""
        for i, x in enumerate(self.args):
            if not isinstance(x, TensorBase) or not x.shape or not x.dtype.is_floating_point:
                continue
            values: Any = x.detach()  # type: ignore[attr-defined]
            reverse = tuple(reversed(range(values.ndim)))
            laid = {
                "strided": interleaved(values),
                "transposed": values.permute(reverse).contiguous().permute(reverse),
                "a part of a larger tensor": stack([values, values])[1],
            }
            for layout, other in laid.items():
                args = self.replaced({i: other.requires_grad_(is_checked(x))})
                self.expect_same(args, f"if input {i} is {layout}")

    def check_subsets(self) -> None:
        """Some inputs alone require grad."""
        count = len(self.places)
        sizes = range(1, count) if count <= _ALL_SUBSETS else (1, count - 1)
        for size in sizes:
            for some in combinations(self.places, size):
                others = {i: self.args[i].detach() for i in self.places if i not in some}
                listed = ", ".join(map(str, some))
                self.expect_same(self.replaced(others), f"if input {listed} alone requires grad")

    def is_float32_right(self, must: bool) -> bool:
        """Check the function in float32: its outputs' dtype, and its gradients against float64.

        False if it has float64 outputs, as with parameters of its own, unless it ``must`` not.
        """
        narrow = list(self.args)
        for i, x in enumerate(self.args):
            if isinstance(x, TensorBase) and x.dtype is float64:
                narrow[i] = tensor(x, float32, requires_grad=is_checked(x))
        with enable_grad():
            outputs = outputs_of(self.run, narrow)
        for j, y in enumerate(outputs):
            if y.dtype is not float32 and must:
                raise GradcheckError(f"output {j} is {y.dtype.name} for float32 inputs")
        if any(y.dtype is not float32 for y in outputs):
            return False
        return gradcheck(self.run, narrow, check_float32=True, allow_no_grad=True)

    def check_vmap(self) -> None:
        """A batch of inputs at once gives what each of them gives."""
        plain = {i: self.args[i].detach() for i in self.places}
        batch = {i: stack([x, x * 1.25]) for i, x in plain.items()}
        dims = tuple([0 if i in batch else None for i in range(len(self.args))])

        def tuples(*args: Any) -> tuple[Any, ...]:
            return tuple(outputs_of(self.run, args))

        together = func.vmap(tuples, dims)(*self.replaced(batch))
        for place in range(2):
            alone = tuples(*self.replaced({i: x[place] for i, x in batch.items()}))
            for j, (found, expected) in enumerate(zip(together, alone, strict=True)):
                a, b = values_of(found[place]), values_of(expected)
                if a.shape != b.shape or not np.allclose(a, b, 1e-12, 1e-12):
                    raise GradcheckError(f"output {j} by vmap is not what each input gives")
