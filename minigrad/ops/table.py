"""The op table: classes and constructors of rows, one row per operation, grouped into families.

A row states its derivatives as plain functions, whose parameter names say what they need. ``x`` (or
``a``, ``b``) is an input and ``y`` the output, which the tape then saves. ``shape`` is the first
input's shape. All other names are the operation's own arguments, in order.

A formula therefore shows which memory its operation keeps. A parameter with a default serves the
kernel alone, and the formula does without it. Formulas use tensor operations, so they can be
differentiated again.

==============  ===========================================================================
pointwise       one partial derivative per input; shared loops multiply by the upstream
                gradient, and an exactly zero gradient stays zero
linear          the transpose, a function of the upstream gradient
bilinear        two transposes
custom          a vector-Jacobian product per input
variadic        one function of g and the input's position, for any number of inputs
zero            nothing: the derivative is zero everywhere
composition     nothing: the elementwise formula is made of operations with derivatives
==============  ===========================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from minigrad.runtime.native import Array, call, function_of, lib, names, signatures

__all__ = [
    "TABLE",
    "Row",
    "bilinear",
    "composition",
    "custom",
    "linear",
    "pointwise",
    "variadic",
    "with_numbers",
    "zero",
]

Formula = Callable[..., Any]
Interval = tuple[float, float]
# a function of arrays and arguments, or the number of a kernel
Forward = Callable[..., Array] | int

TABLE: dict[str, Row] = {}

# Places of the saved arrays, by name. A pointwise row with one input saves y in place 1.
PLACES = {"x": 0, "a": 0, "c": 0, "b": 1, "y": 2, "queries": 0, "keys": 1, "values": 2}
PLACES |= {"projected": 0, "state": 1, "weight": 2}


Rule = Callable[..., Any]  # (node, g) -> a gradient per input


def _function(kernel: Any) -> Any:
    """The function that calls a kernel given by its number.

    Functions and None are returned as is.
    """
    return function_of(kernel) if isinstance(kernel, int) else kernel


class Row:
    """One operation: its forward, its derivatives and what its tests need."""

    __slots__ = (
        "accuracy",
        "alone",
        "arity",
        "derivatives",
        "doc",
        "domain",
        "family",
        "fits",
        "formula",
        "forward",
        "fused",
        "id",
        "is_symmetric",
        "joint",
        "jvp",
        "jvp_needs",
        "keeps",
        "kernel",
        "name",
        "needs",
        "places",
        "rules",
        "run",
        "sources",
        "special",
        "takes",
        "together",
        "view",
        "vjp_kernel",
        "wants_shape",
    )

    def __init__(
        self,
        name: str,
        family: str,
        arity: int,
        doc: str,
        *,
        op_id: int = -1,
        vjp_kernel: int = -1,
        forward: Forward | None = None,
        formula: Formula | None = None,
        derivatives: Sequence[Formula | float | None] = (),
        fused: Sequence[Forward | None] = (),
        together: Callable[..., Sequence[Array]] | int | None = None,
        joint: Formula | None = None,
        jvp: Sequence[Formula | None] | Formula = (),
        symmetric: bool = False,
        domain: Sequence[Interval] = (),
        special: Sequence[tuple[float, ...]] = (),
        accuracy: float | tuple[float, float] = 0,
        view: bool = False,
        takes: Callable[..., bool] | None = None,
        fits: int = -1,
    ) -> None:
        if name in TABLE:
            raise ValueError(f"[{name}] is in the table already")
        self.name = name
        self.family = family
        self.arity = arity
        self.doc = doc
        self.id = op_id  # number of the elementwise kernel, for pointwise rows
        # Numbers of kernels, or -1: the kernel that is the whole forward, and the kernel for the
        # gradients of the inputs.
        self.kernel = forward if isinstance(forward, int) else op_id
        self.vjp_kernel = vjp_kernel
        # True if the forward takes the input arrays and no other arguments.
        letters = signatures[self.kernel][:-2] if self.kernel >= 0 else "?"
        alone = set(letters) <= {"a", "m"} or takes is not None
        self.alone = alone and not letters[arity:].strip("m")
        # number of a kernel that says whether the forward takes given arrays, or -1
        self.fits = fits
        self.forward = _function(self.kernel if forward is None and op_id >= 0 else forward)
        self.formula = formula  # function of tensors, for a composition
        self.run: Callable[..., Any] | None = None  # the function on tensors, kept by the tape
        self.derivatives = tuple(derivatives)
        self.fused = tuple(map(_function, fused)) or (None,) * len(self.derivatives)
        self.together = _function(together)  # one kernel for the gradients of all inputs, or None
        self.joint = joint  # one formula for the gradients of all inputs, used if all need one
        # For forward mode, a formula of each input's tangent, or one of the tuple of all tangents.
        # A symmetric row's Jacobians are their own transposes, so its derivatives serve.
        self.jvp = self.derivatives if symmetric else jvp if callable(jvp) else tuple(jvp)
        self.is_symmetric = symmetric
        self.domain = tuple(domain)  # an interval per input on which the operation is smooth
        # The largest error in ULP, in float32 and float64, with fused multiply-add. The baseline
        # without it may have twice this error. 0 means correctly rounded.
        self.accuracy = accuracy if isinstance(accuracy, tuple) else (accuracy, accuracy)
        self.view = view  # True if the result may share the input's memory
        self.special = tuple(special)  # exact values: rows of (inputs..., output)
        # function that says whether the kernel takes given arrays; None: any arrays
        self.takes = takes
        self.rules = None
        self.sources: dict[tuple[bool, ...], tuple[int, ...]] = {}  # cache of find_sources
        # For each derivative, its parameter names after the upstream gradient.
        self.needs = tuple([self._parameters(d) for d in self.derivatives])
        pushes = (self.jvp,) if callable(self.jvp) else self.jvp
        self.jvp_needs = tuple([self._parameters(d) for d in pushes])
        self.wants_shape = any("shape" in names for names in (*self.needs, *self.jvp_needs))
        self.keeps = self.saves([True] * len(self.derivatives))
        TABLE[name] = self

    # Set by the first backward, see tape.vjp. ``rules`` are two functions (node, g) -> a gradient
    # per input; the second leaves a graph. ``places`` says for each derivative which saved arrays
    # it needs.
    rules: tuple[Rule, Rule] | None
    places: tuple[tuple[int, ...], ...]

    def _parameters(self, derivative: Formula | float | None) -> tuple[str, ...]:
        if not callable(derivative):
            return ()
        code = derivative.__code__
        names: tuple[str, ...] = code.co_varnames[: code.co_argcount]
        return names if self.family == "pointwise" else names[1:]

    def __repr__(self) -> str:
        return f"<op {self.name}>"

    def saves(self, needs_grad: Sequence[bool]) -> tuple[str, ...]:
        """The names of the arrays to save if the inputs marked in ``needs_grad`` need gradients."""
        if self.family == "variadic" or not any(self.needs):
            return ()
        pairs = zip(self.needs, needs_grad, strict=True)
        saved = {name for names, needed in pairs if needed for name in names}
        return tuple([name for name in PLACES if name in saved])

    def place_of(self, name: str) -> int:
        """The place of a saved array, by its name."""
        result_of_unary = name == "y" and self.family == "pointwise" and self.arity == 1
        return 1 if result_of_unary else PLACES[name]

    def find_sources(self, needs_grad: tuple[bool, ...]) -> tuple[int, ...]:
        """The positions of the three saved arrays in (arrays of the inputs, the result, None).

        ``needs_grad`` says which inputs need a gradient. The result is empty if nothing is saved.
        It is cached as ``sources[needs_grad]``.
        """
        names = self.saves(needs_grad)
        found = [-1, -1, -1] if names else []
        for name in names:
            found[self.place_of(name)] = -2 if name == "y" else PLACES[name]
        self.sources[needs_grad] = known = tuple(found)
        return known


_ids = {name: number for number, name in enumerate(names[: lib.mg_elementwise_count()])}


def pointwise(
    name: str,
    *d: Formula | float,
    domain: Sequence[Interval],
    doc: str,
    special: Sequence[tuple[float, ...]] = (),
    accuracy: float | tuple[float, float] = 0,
) -> Row:
    """A row for the elementwise C kernel of this name. ``d`` has a partial derivative per input.

    A constant partial is given as a number. ``accuracy`` is the largest error in ULP: one number,
    or a pair for float32 and float64.
    """
    return Row(
        name,
        "pointwise",
        len(d),
        doc,
        op_id=_ids[name],
        derivatives=d,
        domain=domain,
        special=special,
        accuracy=accuracy,
    )


def linear(
    name: str,
    forward: Forward,
    transpose: Formula,
    doc: str,
    fused: Forward | None = None,
    view: bool = False,
    jvp: Formula | None = None,
) -> Row:
    """A row for a linear operation with one input. ``fused`` may be a faster transpose.

    ``view`` is True if the result may share the input's memory. ``jvp`` maps a tangent in forward
    mode, if the operation itself does not.
    """
    return Row(
        name,
        "linear",
        1,
        doc,
        forward=forward,
        derivatives=(transpose,),
        fused=(fused,),
        view=view,
        jvp=() if jvp is None else (jvp,),
    )


def bilinear(
    name: str,
    forward: Forward,
    by_a: Formula,
    by_b: Formula,
    doc: str,
    vjp_kernel: int = -1,
) -> Row:
    """A row for an operation that is linear in each of its two inputs.

    ``vjp_kernel`` is the number of a kernel for the gradients of both.
    """
    return Row(
        name,
        "bilinear",
        2,
        doc,
        forward=forward,
        derivatives=(by_a, by_b),
        vjp_kernel=vjp_kernel,
    )


def custom(
    name: str,
    forward: Forward,
    *d: Formula | None,
    doc: str,
    fused: Sequence[Forward | None] = (),
    together: Callable[..., Sequence[Array]] | int | None = None,
    joint: Formula | None = None,
    jvp: Sequence[Formula | None] | Formula = (),
    symmetric: bool = False,
    vjp_kernel: int = -1,
    fits: int = -1,
    takes: Callable[..., bool] | None = None,
) -> Row:
    """A row with a VJP per input. ``fused`` may have a faster kernel for each.

    ``together`` is one kernel for the gradients of all inputs. All derivatives then save the same
    arrays. ``joint`` is a formula for all inputs, used if all need a gradient. It takes the
    parameters of the first derivative. ``vjp_kernel`` is as in :func:`bilinear`. ``takes``, or a
    kernel with the number ``fits``, says whether the forward takes given arrays.

    ``jvp`` has a formula of each input's tangent, or is one formula of the tuple of all tangents.
    ``symmetric`` says that the derivatives serve as such formulas. If both are missing, or a
    formula is None, forward mode transposes the derivative. In these formulas ``size`` is the shape
    of the output, and ``pull`` is this derivative as a function of the upstream gradient.
    """
    return Row(
        name,
        "custom",
        len(d),
        doc,
        forward=forward,
        derivatives=d,
        fused=fused,
        together=together,
        joint=joint,
        jvp=jvp,
        symmetric=symmetric,
        vjp_kernel=vjp_kernel,
        fits=fits,
        takes=takes,
    )


def with_numbers(
    name: str, kernel: int, vjp: int, d: Formula, doc: str, taken: int | None = None
) -> Row:
    """A row with one input and numbers as arguments.

    The kernel takes a list of arrays and a list of numbers. The kernel of the derivative takes only
    the first ``taken`` numbers.
    """
    return custom(
        name,
        lambda x, *numbers: call(kernel, (x,), numbers),
        d,
        fused=[lambda g, x, *numbers: call(vjp, (g, x), numbers[:taken])],
        symmetric=True,
        doc=doc,
    )


def variadic(name: str, forward: Forward, d: Formula, doc: str) -> Row:
    """A row with any number of inputs. ``d(g, i, *args)`` is the gradient of the i-th input."""
    return Row(name, "variadic", -1, doc, forward=forward, derivatives=(d,))


def zero(name: str, arity: int, doc: str, *, forward: Forward | None = None) -> Row:
    """A row whose derivative is zero wherever it exists. Its result never requires a gradient."""
    return Row(name, "zero", arity, doc, op_id=_ids.get(name, -1), forward=forward)


def composition(
    name: str,
    formula: Formula,
    *,
    domain: Sequence[Interval],
    doc: str,
    special: Sequence[tuple[float, ...]] = (),
    accuracy: float | tuple[float, float] = 0,
) -> Row:
    """A row for an elementwise operation that is a formula of other operations.

    The row has no kernel.
    """
    arity = formula.__code__.co_argcount
    return Row(
        name,
        "composition",
        arity,
        doc,
        formula=formula,
        domain=domain,
        special=special,
        accuracy=accuracy,
    )
