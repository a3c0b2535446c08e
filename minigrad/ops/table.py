"""The op table: one row per operation, grouped into families that each state only what differs.

A derivative is a plain function, and its parameter names say what it needs. ``x`` (or ``a``, ``b``)
is an input and ``y`` the output, which the tape then saves. ``shape`` is the first input's shape;
all other names are the operation's own arguments, in order. The memory an operation costs is
therefore visible in its formula. A parameter with a default is for the kernel alone, which can do
without it. Formulas are written in tensor operations and are therefore differentiable themselves.

==============  ===========================================================================
pointwise       one partial derivative per input; the upstream gradient is multiplied on by
                the driver, where an exactly zero gradient stays zero
linear          its transpose, a function of the upstream gradient
bilinear        two transposes
custom          a vector-Jacobian product per input
variadic        one function for all of any number of inputs: of g and the input's position
zero            nothing: the derivative is zero everywhere
composition     nothing: a formula in tensor operations, elementwise, that differentiates itself
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
Forward = Callable[..., Array] | int  # a function of arrays and arguments, or a kernel's number

TABLE: dict[str, Row] = {}

# The names of saved arrays, and their places; a pointwise row with one input keeps y in place 1.
PLACES = {"x": 0, "a": 0, "c": 0, "b": 1, "y": 2, "queries": 0, "keys": 1, "values": 2}
PLACES |= {"projected": 0, "state": 1, "weight": 2}


Rule = Callable[..., Any]  # (node, g) -> a gradient per input


def _function(kernel: Any) -> Any:
    """The function that runs a kernel given by its number; anything else as it is."""
    return function_of(kernel) if isinstance(kernel, int) else kernel


class Row:
    """One operation: what it computes, how it is differentiated and what its tests need."""

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
        self.id = op_id  # of the C kernel, for pointwise rows
        # The number of the kernel that the row is one call of, and that of the kernel for the
        # gradients of its inputs; -1 for none.
        self.kernel = forward if isinstance(forward, int) else op_id
        self.vjp_kernel = vjp_kernel
        # Whether the kernel takes the arrays of the inputs, and nothing else.
        letters = signatures[self.kernel][:-2] if self.kernel >= 0 else "?"
        alone = set(letters) <= {"a", "m"} or takes is not None
        self.alone = alone and not letters[arity:].strip("m")
        self.fits = fits  # the number of a question, whether the kernel takes some arrays
        self.forward = _function(self.kernel if forward is None and op_id >= 0 else forward)
        self.formula = formula  # on tensors, for a composition
        self.run: Callable[..., Any] | None = None  # on tensors, for the tape to find it again
        self.derivatives = tuple(derivatives)
        self.fused = tuple(map(_function, fused)) or (None,) * len(self.derivatives)
        self.together = _function(together)  # one kernel for the gradients of all inputs
        self.joint = joint  # one formula for them, where all are wanted
        # For forward mode, a formula of each input's tangent, or one of the tuple of all tangents.
        # That of a symmetric row, whose Jacobians are their own transposes, is its derivative.
        self.jvp = self.derivatives if symmetric else jvp if callable(jvp) else tuple(jvp)
        self.is_symmetric = symmetric
        self.domain = tuple(domain)  # an interval per input on which it is smooth
        # The largest error in ULP in float32 and float64, where there is fused multiply-add; on the
        # plain baseline twice that. 0 stands for the correctly rounded result.
        self.accuracy = accuracy if isinstance(accuracy, tuple) else (accuracy, accuracy)
        self.view = view  # whether the result may share its input's memory
        self.special = tuple(special)  # rows of (inputs..., output) that hold exactly
        self.takes = takes  # whether its kernel takes these arrays; None: any
        self.rules = None
        self.sources: dict[tuple[bool, ...], tuple[int, ...]] = {}  # what find_sources has found
        # For each derivative, the names it takes beside the upstream gradient.
        self.needs = tuple([self._parameters(d) for d in self.derivatives])
        pushes = (self.jvp,) if callable(self.jvp) else self.jvp
        self.jvp_needs = tuple([self._parameters(d) for d in pushes])
        self.wants_shape = any("shape" in names for names in (*self.needs, *self.jvp_needs))
        self.keeps = self.saves([True] * len(self.derivatives))
        TABLE[name] = self

    # Found by the first backward, see tape.vjp: two rules (node, g) -> a gradient per input, the
    # second with a graph; and where the arrays that each derivative needs lie among the saved ones.
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
        """The names of the arrays to save for gradients of the inputs marked in ``needs_grad``."""
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
        """Where the three saved arrays lie in (arrays of the inputs, the result, None).

        ``needs_grad`` says which inputs need a gradient. The result is empty where nothing is
        saved; it is kept as ``sources[needs_grad]``.
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
    """A row for a C kernel of this name; ``d`` holds a partial derivative per input.

    A partial that is a constant is given as that number. ``accuracy`` is the largest error in ULP,
    or one for float32 and one for float64.
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
    """A row for an operation that is linear in its one input, perhaps with a faster transpose.

    ``view`` says that the result may share the input's memory. ``jvp`` is what forward mode does
    with a tangent where that is not the operation itself.
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
    """A row with a vector-Jacobian product per input, and perhaps a faster kernel for it.

    ``together`` is one for all inputs, whose derivatives then save the same arrays; ``joint`` is a
    formula for all, of what the first one takes, where all are wanted; ``vjp_kernel`` is as in
    :func:`bilinear`. ``jvp`` has a formula of each input's tangent, or is one of the tuple of all;
    ``symmetric`` says that the derivatives serve as such. Without them forward mode transposes the
    derivatives, and so where a formula is None. The names ``size`` and ``pull`` stand for the shape
    of the output, and for this derivative as a function of the upstream gradient. Whether the
    kernel takes some arrays is said by ``takes``, or by a kernel with the number ``fits``.
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
    """A row with one input and numbers, by a kernel that takes lists of both; that of its
    derivative takes only so many of the numbers.
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
    """A row with any number of inputs; ``d(g, i, *args)`` is the gradient of the i-th."""
    return Row(name, "variadic", -1, doc, forward=forward, derivatives=(d,))


def zero(name: str, arity: int, doc: str, *, forward: Forward | None = None) -> Row:
    """A row whose derivative is zero wherever it exists; its result never requires a gradient."""
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
    """A row for an elementwise operation that is made of others; it has no kernel of its own."""
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
