"""Derivatives compared with differences, and whatever else a derivative can get wrong.

The slow mode compares the whole Jacobian: a difference for each input element against a backward
for each output element. The fast mode compares random projections of it, v J u, and calls the slow
mode to name the place when one is off. In either mode it is also checked that

* each gradient has its input's shape and dtype,
* the same backward twice gives the same bits,
* the function gives the same values twice, so it draws nothing at random,
* the gradients of several outputs add up to the gradient of all of them together,
* the backward is linear in the upstream gradient,
* upstream gradients that are strided, transposed or broadcast give what contiguous ones give,
* neither forward nor backward writes into an input.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from minigrad.arguments import listed_tensors
from minigrad.autograd import enable_grad, grad
from minigrad.creation import from_numpy, numpy_dtype, tensor
from minigrad.dtypes import float32, float64
from minigrad.tape.tensor_base import TensorBase

if TYPE_CHECKING:
    from minigrad._tensor import Tensor

__all__ = ["GradcheckError", "gradcheck", "gradgradcheck", "numerical_gradient_check"]

Array = np.ndarray[Any, Any]

# Offsets in steps, and weights, of the central differences of second and fourth order.
_STENCILS = {
    2: ((1, -1), (1 / 2, -1 / 2)),
    4: ((1, -1, 2, -2), (8 / 12, -8 / 12, -1 / 12, 1 / 12)),
}
_FLOAT32_TOLERANCE = 1e-4  # of a float32 gradient, relative to its largest element


class GradcheckError(RuntimeError):
    """A derivative is wrong; the message says which and where."""


def gradcheck(
    func: Callable[..., Any],
    inputs: Tensor | Sequence[Any],
    *,
    eps: float = 1e-6,
    atol: float = 1e-7,
    rtol: float = 1e-5,
    fast: int = 0,
    stencil: int = 2,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    allow_no_grad: bool = False,
    check_float32: bool = False,
    seed: int = 0,
) -> bool:
    """Whether the gradients of ``func(*inputs)`` are those that central differences show.

    Checked are the inputs that require grad; they are float64, of any shape and strides. They are
    perturbed in place and put back, so ``func`` may also reach them as a module does its
    parameters. ``func`` returns a tensor or several; a float output that does not require grad must
    not vary with the inputs, and at least one must require grad unless ``allow_no_grad``.

    Agreement is ``|analytic - numeric| <= atol + rtol * |numeric|``. The step is ``eps``, rounded
    to a power of two, which makes x + h exact; ``stencil=4`` takes the difference of fourth order
    with the square root of ``eps``, for values that are too large or noisy for the other. ``fast``
    is the number of random projections to use in place of the whole Jacobian, 4 for instance.
    ``nondet_tol`` is how far two runs of one backward may differ. With ``check_float32`` float32
    inputs are accepted: the function is checked in float64, and its gradient in float32 compared
    with that in float64.

    Raises GradcheckError for a wrong derivative, or returns False if not ``raise_exception``; in
    any case ValueError for inputs that cannot be checked (none requires grad, elements that share
    memory, read-only memory) and TypeError for float32 inputs.

    >>> import minigrad as mg
    >>> from minigrad import gradcheck
    >>> x = mg.tensor([0.5, 1.5], dtype=mg.float64, requires_grad=True)
    >>> gradcheck(lambda x: (x * x.exp()).sum(), x)
    True
    """
    if stencil not in _STENCILS:
        raise ValueError(f"[gradcheck] stencil is {stencil!r}, but must be 2 or 4")
    if not eps > 0:
        raise ValueError(f"[gradcheck] eps is {eps!r}, but must be positive")
    step = 2.0 ** round(math.log2(eps if stencil == 2 else math.sqrt(eps)))
    options = _Options(atol, rtol, fast, step, stencil, nondet_tol, allow_no_grad, seed)
    with enable_grad(), np.errstate(invalid="ignore"):  # inf - inf is reported as a mismatch
        check = _Check(func, inputs, options)
        try:
            if not check.is_float32:
                check.in_float64()
            elif check_float32:
                check.in_float32()
            else:
                raise TypeError(
                    "[gradcheck] differences in float32 are too coarse to find faults: "
                    "use float64 inputs, or check_float32=True"
                )
        except GradcheckError:
            if raise_exception:
                raise
            return False
    return True


numerical_gradient_check = gradcheck


def gradgradcheck(
    func: Callable[..., Any],
    inputs: Tensor | Sequence[Any],
    grad_outputs: Tensor | Sequence[Tensor] | None = None,
    *,
    strided_grad_outputs: bool = False,
    raise_exception: bool = True,
    seed: int = 0,
    **options: Any,
) -> bool:
    """Whether the second derivatives of ``func`` are right: gradcheck of its gradient.

    The function checked takes the inputs and an upstream gradient for each output that requires
    grad, random unless ``grad_outputs`` are given, and returns the gradients of the inputs. With
    ``strided_grad_outputs`` it is checked twice more: with non-contiguous upstream gradients, and
    with single numbers broadcast (stride 0). Other options are those of :func:`gradcheck`.

    >>> import minigrad as mg
    >>> from minigrad import gradgradcheck
    >>> gradgradcheck(lambda x: x * x * x, mg.tensor([0.5], dtype=mg.float64, requires_grad=True))
    True
    """
    args = _as_tuple(inputs)
    with enable_grad():
        shapes = [(y.shape, y.dtype) for y in _outputs(func, args) if y.requires_grad]
    rng = np.random.default_rng(seed)
    if grad_outputs is None:
        grad_outputs = [
            tensor(_direction(rng, shape), dtype, requires_grad=True) for shape, dtype in shapes
        ]
    upstream = _as_tuple(grad_outputs)
    variants = [upstream]
    if strided_grad_outputs:
        variants.append(tuple([_interleaved(v).requires_grad_() for v in upstream]))
        one = _direction(rng, ())
        variants.append(tuple([tensor(one, v.dtype, requires_grad=True) for v in upstream]))

    def gradients(*values: Any) -> tuple[Any, ...]:
        xs, vs = values[: len(args)], values[len(args) :]
        outputs = [y for y in _outputs(func, xs) if y.requires_grad]
        if not outputs:
            raise GradcheckError("no output of func requires grad")
        upstream = [v.expand(y.shape) for v, y in zip(vs, outputs, strict=True)]
        return grad(outputs, [x for x in xs if _is_checked(x)], upstream, create_graph=True)

    try:
        for vs in variants:
            gradcheck(gradients, (*args, *vs), seed=seed, **options)
    except GradcheckError as error:
        if raise_exception:
            raise GradcheckError(
                f"[gradgradcheck] in the function from {len(args)} inputs, then {len(upstream)} "
                f"grad_outputs, to the gradients: {error}"
            ) from None
        return False
    return True


# ---- the function under test ---------------------------------------------------------------------


def _as_tuple(values: Any) -> tuple[Any, ...]:
    if isinstance(values, TensorBase):
        return (values,)
    return tuple(listed_tensors("gradcheck", values))


def _is_checked(x: Any) -> bool:
    return isinstance(x, TensorBase) and x._edge is not None


def _outputs(func: Callable[..., Any], args: Sequence[Any]) -> list[Any]:
    """The outputs that hold floats."""
    result = func(*args)
    outputs = _as_tuple(result) if isinstance(result, (TensorBase, tuple, list)) else (result,)
    if not outputs or not all(isinstance(y, TensorBase) for y in outputs):
        raise TypeError(f"[gradcheck] func returned {result!r}, not a tensor or several")
    return [y for y in outputs if y.dtype.is_floating_point]


def _values(x: Any) -> Array:
    """A copy in NumPy."""
    return np.array(x.detach().numpy())


def _write(x: Any, values: Any) -> None:
    x.detach().copy_(from_numpy(np.asarray(values)))


def _direction(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Random sixteenths of either sign between 1/2 and 1.

    None is near 0, where a fault would hide; and being short in binary, they leave x + h u exact.
    """
    return np.asarray(rng.integers(8, 17, shape) / 16 * rng.choice((-1.0, 1.0), shape))


def _unit(shape: tuple[int, ...], e: int) -> Array:
    """1 at one element, counted in row-major order, else 0."""
    u = np.zeros(shape)
    u.flat[e] = 1
    return u


def _interleaved(v: Any) -> Any:
    """The same values, every other one in memory, with NaN between them."""
    spread = np.full((*v.shape, 2), np.nan, numpy_dtype(v.dtype))
    spread[..., 0] = _values(v)
    return tensor(spread)[..., 0]


def _layouts(upstream: Sequence[Any]) -> Iterator[tuple[str, list[tuple[Any, Any]]]]:
    """Ways for upstream gradients to lie in memory: pairs of equal values, contiguous and not."""
    yield "strided", [(v, _interleaved(v)) for v in upstream]
    yield "transposed", [(v, v.T.clone().T) for v in upstream]
    rows = [(v[:1] if v.ndim and v.size else v).expand(v.shape) for v in upstream]
    yield "broadcast rows", [(v.clone(), v) for v in rows]
    ones = [tensor(0.75, v.dtype).expand(v.shape) for v in upstream]
    yield "one number broadcast", [(v.clone(), v) for v in ones]


class _Options(NamedTuple):
    atol: float
    rtol: float
    fast: int
    step: float
    stencil: int
    nondet_tol: float
    allow_no_grad: bool
    seed: int


class _Check:
    """A function, its inputs ``xs`` that require grad and where they stand among the arguments."""

    def __init__(self, func: Callable[..., Any], inputs: Any, options: _Options) -> None:
        self.func = func
        self.options = options
        self.args = _as_tuple(inputs)
        found = {id(x): i for i, x in reversed([*enumerate(self.args)]) if _is_checked(x)}
        self.places = sorted(found.values())  # a tensor given twice is checked once, as a whole
        self.xs = [self.args[i] for i in self.places]
        self.start = [_values(x) for x in self.xs]
        self.is_float32 = any(x.dtype is float32 for x in self.xs)
        if not self.xs:
            raise ValueError("[gradcheck] no input requires grad: set requires_grad=True on one")
        for i, x, start in zip(self.places, self.xs, self.start, strict=True):
            try:
                _write(x, start)
            except ValueError as error:
                raise ValueError(f"[gradcheck] input {i} cannot be perturbed: {error}") from None

    # ---- what is run ----

    def in_float64(self) -> None:
        """Everything, the Jacobians against differences."""
        rng = np.random.default_rng(self.options.seed)
        outputs = self.recorded_outputs()
        for j, y in enumerate(outputs):
            if y.dtype is float32:
                raise GradcheckError(f"[gradcheck] output {j} is float32: compute it in float64")
        self.check_backward(outputs, rng)
        if not self.options.fast or not self.projections_agree(outputs, rng):
            self.compare_jacobians()
        self.check_linear(self.recorded_outputs(), rng)
        self.expect_inputs_unchanged("forward or backward")

    def in_float32(self) -> None:
        """Everything in float64; then the Jacobians in float32 against those."""
        doubles = {id(x): tensor(x.detach(), float64, requires_grad=True) for x in self.xs}
        wide = _Check(self.func, [doubles.get(id(a), a) for a in self.args], self.options)
        wide.in_float64()
        tolerance = _FLOAT32_TOLERANCE
        self.options = self.options._replace(atol=tolerance, rtol=tolerance)
        outputs = self.recorded_outputs()
        self.check_backward(outputs, np.random.default_rng(self.options.seed))
        for j, (y, exact) in enumerate(zip(outputs, wide.recorded_outputs(), strict=True)):
            pairs = zip(self.jacobian(y), wide.jacobian(exact), strict=True)
            for k, (found, wanted) in enumerate(pairs):
                allowed = np.full(found.shape, tolerance * np.abs(wanted).max(initial=0.0))
                self.expect_equal(k, j, y, found, wanted, allowed, "float64")

    # ---- the pieces ----

    def recorded_outputs(self) -> list[Any]:
        """The outputs of a forward that kept the graph and left the inputs alone."""
        outputs = _outputs(self.func, self.args)
        self.expect_inputs_unchanged("forward")
        if not self.options.allow_no_grad and not any(y.requires_grad for y in outputs):
            raise GradcheckError(
                "[gradcheck] no output requires grad: the graph was lost, as by detach() or "
                "numpy(); pass allow_no_grad=True if the function is meant to be constant"
            )
        return outputs

    def expect_inputs_unchanged(self, by: str) -> None:
        """Compare the inputs' bytes with those at the start; put them right before complaining."""
        for i, x, start in zip(self.places, self.xs, self.start, strict=True):
            if _values(x).tobytes() != start.tobytes():
                _write(x, start)
                raise GradcheckError(f"[gradcheck] the {by} modified input {i}")

    def gradients(self, outputs: Sequence[Any], upstream: Sequence[Any]) -> list[Array]:
        """One backward from these outputs; zeros where no gradient arrives."""
        found = grad(outputs, self.xs, list(upstream), retain_graph=True, allow_unused=True)
        for i, x, g in zip(self.places, self.xs, found, strict=True):
            if g is not None and (g.shape != x.shape or g.dtype is not x.dtype):
                raise GradcheckError(
                    f"[gradcheck] the gradient of input {i} has shape {g.shape} and dtype "
                    f"{g.dtype.name}, the input {x.shape} and {x.dtype.name}"
                )
        pairs = zip(found, self.start, strict=True)
        return [np.zeros_like(start) if g is None else _values(g) for g, start in pairs]

    def gradients_of(self, y: Any, v: Array) -> list[Array]:
        """As above from one output; zeros if it is constant."""
        if not y.requires_grad:
            return [np.zeros_like(start) for start in self.start]
        return self.gradients([y], [tensor(v, y.dtype)])

    def values_at(self, k: int, u: Array, distances: Sequence[float]) -> list[list[Array]]:
        """The outputs with the k-th input moved along u, for each distance."""
        x = self.xs[k]
        moved = []
        try:
            for t in distances:
                _write(x, self.start[k] + t * u)
                moved.append([_values(y) for y in _outputs(self.func, self.args)])
        finally:
            _write(x, self.start[k])
        return moved

    def derivative(self, k: int, u: Array) -> list[Array]:
        """The difference quotient of each output along u, a direction of the k-th input."""
        offsets, weights = _STENCILS[self.options.stencil]
        step = self.options.step
        moved = self.values_at(k, u, [n * step for n in offsets])
        if any([y.shape for y in ys] != [y.shape for y in moved[0]] for ys in moved):
            raise GradcheckError("[gradcheck] the shapes of outputs vary with the inputs' values")
        pairs = [zip(weights, ys, strict=True) for ys in zip(*moved, strict=True)]
        return [np.asarray(sum(w * y for w, y in pair)) / step for pair in pairs]

    def jacobian(self, y: Any) -> list[Array]:
        """The derivative of each element of y by each element of each input, from backwards."""
        rows = [np.zeros((y.size, x.size)) for x in self.xs]
        for e in range(y.size):
            for row, g in zip(rows, self.gradients_of(y, _unit(y.shape, e)), strict=True):
                row[e] = g.ravel()
        return rows

    # ---- the checks ----

    def expect_same_values(self, outputs: Sequence[Any]) -> None:
        """The function again gives the same, so that differences say something."""
        again = _outputs(self.func, self.args)
        for j, (y, z) in enumerate(zip(outputs, again, strict=False)):
            same = _values(y).tobytes() == _values(z).tobytes()
            if not same and not np.allclose(_values(y), _values(z), 1e-9, 1e-12, equal_nan=True):
                raise GradcheckError(
                    f"[gradcheck] output {j} differs when the function runs twice on the same "
                    "inputs: it is random or keeps a state, so differences say nothing; seed it "
                    "in the function, as with mg.manual_seed(0), or turn dropout off"
                )

    def check_linear(self, all_outputs: Sequence[Any], rng: np.random.Generator) -> None:
        """The gradients of a sum of two upstream gradients are the sums of those of both."""
        outputs = [y for y in all_outputs if y.requires_grad]
        if not outputs:
            return
        upstream = [tensor(_direction(rng, y.shape), y.dtype) for y in outputs]
        whole = self.gradients(outputs, upstream)
        shares = [3.0 * _direction(rng, v.shape) for v in upstream]  # some are of either sign
        parts = [
            [tensor(a, v.dtype) for a, v in zip(shares, upstream, strict=True)],
            [tensor(_values(v) - a, v.dtype) for a, v in zip(shares, upstream, strict=True)],
        ]
        first, second = (self.gradients(outputs, part) for part in parts)
        added = [a + b for a, b in zip(first, second, strict=True)]
        largest = [np.abs(a).max(initial=0.0) for a in first]
        atol, rtol = self.options.atol, self.options.rtol
        for i, a, b, size in zip(self.places, added, whole, largest, strict=True):
            off = np.abs(a - b).max(initial=0.0)
            if not off <= atol + rtol * max(size, np.abs(b).max(initial=0.0)):
                raise GradcheckError(
                    f"[gradcheck] the gradient of input {i} is not linear in grad_outputs: those "
                    f"of two parts do not add up to that of their sum, by {off:.3g}"
                )

    def check_backward(self, all_outputs: Sequence[Any], rng: np.random.Generator) -> None:
        """What must hold for random upstream gradients, without any differences."""
        self.expect_same_values(all_outputs)
        outputs = [y for y in all_outputs if y.requires_grad]
        if not outputs:
            return
        upstream = [tensor(_direction(rng, y.shape), y.dtype) for y in outputs]
        before = [_values(v).tobytes() for v in upstream]
        together = self.gradients(outputs, upstream)
        self.expect_inputs_unchanged("backward")
        if [_values(v).tobytes() for v in upstream] != before:
            raise GradcheckError("[gradcheck] the backward modified the grad_outputs it was given")
        again = self.gradients(outputs, upstream)
        wobble = self.options.nondet_tol, 0.0
        self.expect_same(again, together, *wobble, "differs when the same backward runs again")
        tolerance = self.options.atol, self.options.rtol
        alone = [self.gradients([y], [v]) for y, v in zip(outputs, upstream, strict=True)]
        added = [np.asarray(sum(parts)) for parts in zip(*alone, strict=True)]
        what = "from each output alone does not add up to that of all"
        self.expect_same(added, together, *tolerance, what)
        for name, pairs in _layouts(upstream):
            wanted = self.gradients(outputs, [plain for plain, _ in pairs])
            found = self.gradients(outputs, [laid for _, laid in pairs])
            self.expect_same(found, wanted, *tolerance, f"changes when grad_outputs are {name}")

    def expect_same(
        self, found: list[Array], wanted: list[Array], atol: float, rtol: float, what: str
    ) -> None:
        """Gradients of all inputs that must agree, relative to the largest element."""
        for i, a, b in zip(self.places, found, wanted, strict=True):
            if a.tobytes() != b.tobytes():
                off = np.abs(a - b).max()
                if not off <= atol + rtol * np.abs(b).max():
                    raise GradcheckError(
                        f"[gradcheck] the gradient of input {i} {what}, by {off:.3g}"
                    )

    def projections_agree(self, outputs: Sequence[Any], rng: np.random.Generator) -> bool:
        """The fast mode: v J u for random v and u, for each output and input."""
        options = self.options
        vs = [[_direction(rng, y.shape) for y in outputs] for _ in range(options.fast)]
        backwards = [[self.gradients_of(y, v[j]) for j, y in enumerate(outputs)] for v in vs]
        for v, analytic in zip(vs, backwards, strict=True):
            for k, x in enumerate(self.xs):
                u = _direction(rng, x.shape)
                for j, difference in enumerate(self.derivative(k, u)):
                    numeric = float((v[j] * difference).sum())
                    off = abs(float((analytic[j][k] * u).sum()) - numeric)
                    if not off <= options.atol + options.rtol * abs(numeric):
                        return False
        return True

    def compare_jacobians(self) -> None:
        """The slow mode: every element of every Jacobian."""
        outputs = self.recorded_outputs()
        analytic = [self.jacobian(y) for y in outputs]
        for k, x in enumerate(self.xs):
            numeric = [np.zeros((y.size, x.size)) for y in outputs]
            for e in range(x.size):
                for j, d in enumerate(self.derivative(k, _unit(x.shape, e))):
                    numeric[j][:, e] = d.ravel()
            for j, y in enumerate(outputs):
                allowed = self.options.atol + self.options.rtol * np.abs(numeric[j])
                self.expect_equal(k, j, y, analytic[j][k], numeric[j], allowed, "numeric")

    # ---- the message ----

    def expect_equal(
        self, k: int, j: int, y: Any, found: Array, wanted: Array, allowed: Array, source: str
    ) -> None:
        """Name the worst element of the Jacobian of output j by input k."""
        off = np.abs(found - wanted)
        wrong = ~(off <= allowed)  # NaN is wrong too
        if not wrong.any():
            return
        excess = np.where(wrong, np.nan_to_num(off - allowed, nan=np.inf), -1.0)
        here = np.unravel_index(np.argmax(excess), off.shape)
        row, column = (int(i) for i in here)
        x = self.xs[k]
        message = (
            f"[gradcheck] the derivative of output {j} with respect to input {self.places[k]} is "
            f"wrong in {wrong.sum()} of {wrong.size} elements, most at output index "
            f"{_index(row, y.shape)}, input index {_index(column, x.shape)}: "
            f"analytic {found[here]:.10g}, {source} {wanted[here]:.10g}, "
            f"difference {off[here]:.3g} where {allowed[here]:.3g} is allowed"
        )
        if not y.requires_grad:
            message += "; this output does not require grad: its graph was lost on the way"
        if source == "numeric":
            message += self.blame(k, j, row, column, float(off[here]))
        raise GradcheckError(message)

    def blame(self, k: int, j: int, row: int, column: int, off: float) -> str:
        """How much of a mismatch the difference itself may be to blame for."""
        step = self.options.step
        if self.options.stencil == 4:
            step /= 16  # where a smooth function is nearly straight
        u = _unit(self.xs[k].shape, column)
        moved = self.values_at(k, u, (-step, 0.0, step))
        left, middle, right = (float(values[j].ravel()[row]) for values in moved)
        noise = float(np.finfo(np.float64).eps) * abs(middle) / self.options.step
        text = f"; rounding makes the numeric one uncertain by about {noise:.2g}"
        if off <= 4 * noise:
            text += ", so this may be noise: try stencil=4 or smaller values"
        elif abs(right - 2 * middle + left) > off * step / 2:
            text += "; differences to the left and right disagree: a kink or jump near this point"
        return text


def _index(flat: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple([int(i) for i in np.unravel_index(flat, shape)])
