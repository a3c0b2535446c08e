"""Runs a row of the op table: forward through the door, and a node on the tape.

:class:`TensorBase` is what operations work on: a C array and its *edge* on the tape. The edge is
None for what needs no gradient, ``LEAF`` for a leaf that does, the node of a result, or, for a
saved copy of a leaf, that leaf.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, SupportsIndex, TypeVar, overload

from minigrad._c import (
    NULL,
    Handle,
    call,
    ffi,
    lib,
    overwritten_at,
    save,
    settle,
    settle_run,
    tracers,
)
from minigrad._c import run as run_kernel
from minigrad.ops.table import PLACES, Row
from minigrad.parts import Part
from minigrad.runtime.dtypes import DType, by_code
from minigrad.runtime.lazy_numpy import is_numpys, np
from minigrad.tape import Node, Parent, mode, pauses, record

if TYPE_CHECKING:
    from minigrad._tensor import Tensor
    from minigrad.tape import LeafHooks

Change = tuple[Any, str, Any]  # an object, an attribute, and its new value; Ellipsis deletes it

__all__ = [
    "Fields",
    "Size",
    "TensorBase",
    "Views",
    "apply",
    "apply_to_one",
    "as_operand",
    "binary",
    "commit",
    "composed",
    "copied",
    "cut",
    "floats",
    "from_lists",
    "ints",
    "join",
    "keep",
    "link",
    "mark",
    "of_all",
    "operation",
    "operator",
    "parent_of",
    "result_type",
    "results_are",
    "shown",
    "spans",
    "to_lists",
    "unary",
    "use",
    "wrap",
    "write",
]


if TYPE_CHECKING:

    class Size(tuple[int, ...]):
        """A shape: a tuple of the size of each dimension, with ``numel()``."""

        @overload
        def __getitem__(self, index: SupportsIndex, /) -> int: ...
        @overload
        def __getitem__(self, index: slice, /) -> Size: ...
        def __getitem__(self, index: Any, /) -> Any: ...
        def numel(self) -> int:
            """The number of elements of such a shape."""

    class Fields:
        """What a tensor holds, and its operators of arithmetic. It is C: ``csrc/parts.h``."""

        # The last three are set for views, for what views were taken of, and for leaves with hooks.
        # `grad` is `_grad`, and what is assigned to it has to fit.
        _h: Handle
        _edge: Any
        _shape: tuple[int, ...] | None
        grad: Tensor | None
        _grad: Any
        # A view's `_alias` is its base, row and arguments; or, if it was made under no_grad and the
        # tape knows nothing of it, a weak reference to its topmost base alone.
        _alias: tuple[Any, ...]
        _views: Views
        _hooks: LeafHooks

        @property
        def shape(self) -> Size:
            """The size of each dimension."""

        def __add__(self, other: Any, /) -> Tensor: ...

        __sub__ = __mul__ = __truediv__ = __add__
        __radd__ = __rsub__ = __rmul__ = __rtruediv__ = __add__
        __pow__ = __rpow__ = __add__

    def wrap(handle: Handle, edge: Any = None, /) -> Tensor:
        """A tensor around a C array."""

    def _operation(*args: Any) -> Callable[..., Any]:
        """The function of an operation that is one call of a kernel."""

    def _single(*args: Any) -> Callable[..., Any]:
        """The function of a row with one input, on a tensor and the tuple of other arguments."""

    def parent_of(x: TensorBase, /) -> Parent:
        """What a node has for an input: the node that it came from, the leaf itself, or None."""

    def link(view: TensorBase, base: TensorBase, row: Row, args: tuple[Any, ...], /) -> None:
        """Note that ``view`` shows ``base``'s memory through a row of the table."""

    def cut(x: TensorBase, index: Any, /) -> tuple[int, tuple[Any, ...]] | None:
        """The number of the view that integers, slices, None and ... make of x, or 0 for x as it
        is, and its arguments; None for all other indices, and for wrong ones.
        """

    def spans(
        run: Any, x: TensorBase, axis: int, bounds: tuple[int, ...], drop: bool, /
    ) -> tuple[Tensor, ...]:
        """What lies from each bound to the next along an axis, by the :func:`operation` of a slice;
        where ``drop`` is true single entries, without the axis, by that of a slice_view.
        """

    def join(row: Row, tensors: Any, dim: Any, stacked: bool, /) -> Tensor | None:
        """A list of tensors side by side, recorded; None where they are no such, or do not fit."""

    def shown(handle: Handle, /) -> Any:
        """What NumPy makes an array of, on the same memory; read-only while a graph needs that."""

    def keep(handle: Handle, owner: object, /) -> None:
        """The owner of a handle's borrowed memory lives until the last array on it has gone."""

    def from_lists(data: Any, floats: int, weak: bool, /) -> Tensor | None:
        """A tensor of a number of Python's own, or of nested lists and tuples of such, with floats
        in the dtype of this number. None for all else, and for what is wrong.
        """

    def to_lists(handle: Handle, /) -> Any:
        """The elements as nested lists of numbers; of an array without dimensions, the number."""

    def use(*used: Any) -> None:
        """Tell C what it has from Python: ``csrc/tensor.h`` says in which order."""

    def commit(kernel: Any, args: tuple[Any, ...], changes: list[Change], /) -> int:
        """Call a kernel, unless it is None, and make the changes if it succeeds; its code.

        An interrupt comes before all of this or after it.
        """

else:
    Fields, Size, wrap, _operation, _single, *_others = lib.mg_tensor_parts()
    parent_of, link, cut, spans, join, shown, keep, from_lists, to_lists, use, commit, _know = (
        _others
    )
    _know(
        *[
            ffi.typeof(f"mg_{kind} *")
            for kind in ("array", "array *", "stored", "stored *", "saved")
        ]
    )


class TensorBase(Fields):
    """A C array and its edge on the tape."""

    __slots__ = ()

    @property
    def dtype(self) -> DType:
        """The element type."""
        return by_code[self._h.dtype]

    def apply_row(self, row: Row, *args: Any, beside: tuple[TensorBase, ...] = ()) -> Any:
        """A row of the table on this tensor, and those beside it: for rows with no public name."""
        if row.id >= 0:
            return operation(row)(self, *beside)
        return apply(row, (self, *beside), args)


_result_type: Any = TensorBase
_T = TypeVar("_T", bound=type)


def results_are(cls: _T) -> _T:
    """Class decorator: operations return instances of this subclass of TensorBase."""
    global _result_type
    _result_type = cls
    return cls


def result_type() -> Any:
    """The class that operations return instances of."""
    return _result_type


def copied(x: TensorBase) -> Tensor:
    """A contiguous copy that the tape knows nothing of."""
    handle = _copy(x._h)  # as `call` does it
    if handle is None or tracers:
        settle(handle, _copy, (x._h,))
    return wrap(handle)


_copy = lib.mg_copy
Part.wrap = wrap


# ---- numbers and arrays as operands --------------------------------------------------------------

# The tensors of plain numbers in recent use, where C looks first.
ints: dict[int, Any] = {}
floats: dict[float, Any] = {}
_known: dict[type, dict[Any, Any]] = {int: ints, float: floats}
_NUMBERS_LIMIT = 256
_FIRST_FLOAT = lib.MG_FLOAT32
_INT64 = range(-(2**63), 2**63)


def number(value: float) -> Tensor:
    """A 0-d tensor for a Python number, which takes on the dtype of what it meets.

    Raises OverflowError for an integer beyond int64.
    """
    if isinstance(value, bool):
        made = wrap(call(lib.mg_weak_bool, value))
    elif isinstance(value, int):
        if int(value) not in _INT64:  # a range looks for what is not exactly an int one by one
            raise OverflowError(f"[int64] {value} does not fit; use a float")
        made = wrap(call(lib.mg_weak_int, value))
    else:
        made = wrap(call(lib.mg_weak_float, value))
    lib.mg_seal(made._h)
    known: dict[Any, Any] | None = _known.get(type(value))
    if known is not None and (value or known is ints):  # 0.0 and -0.0 are equal and yet differ
        if len(known) >= _NUMBERS_LIMIT:
            known.clear()
        known[value] = made
    return made


def as_operand(value: Any) -> Any:
    """A tensor, a Python or NumPy number, or anything NumPy reads as an array, as an operand.

    None for what none of these is.
    """
    known = _known.get(type(value))
    if known is not None:
        found = known.get(value)
        return number(value) if found is None else found
    if isinstance(value, TensorBase):
        return value
    if isinstance(value, (bool, int, float)):
        return number(value)
    if isinstance(value, (list, tuple, range)):
        from minigrad.functions.creation import from_sequence

        return from_sequence(value)
    if is_numpys("generic", value):  # a longdouble is its own item
        return as_operand(float(value) if isinstance(value, np.longdouble) else value.item())
    if is_numpys("ndarray", value):
        from minigrad.functions.creation import asarray

        return asarray(value)
    return None


def strong_operand(op: str, value: Any) -> Any:
    """An operand with a dtype of its own: of a plain float that is float32."""
    return tensor_operands(op, value)[0]


def tensor_operands(op: str, *values: Any) -> list[Any]:
    """Operands with dtypes of their own: numbers and lists have that of the float tensors beside
    them, or float32.
    """
    found = []
    floats, weak = _FIRST_FLOAT, False
    for value in values:
        x = value if isinstance(value, TensorBase) else as_operand(value)
        if x is None:
            raise operand_error(op, value)
        found.append(x)
        if x._h.weak:
            weak = True
        elif x._h.dtype > floats:
            floats = x._h.dtype
    return [_settled(x, floats) if x._h.weak else x for x in found] if weak else found


def _settled(x: Any, floats: int) -> Any:
    """A number or list in a dtype of its own: this one if it holds floats."""
    return wrap(call(lib.mg_cast, x._h, floats if x._h.dtype >= _FIRST_FLOAT else x._h.dtype))


def value_for(op: str, x: TensorBase, value: Any) -> Any:
    """What is to be written into x: numbers and lists in x's dtype."""
    found = as_operand(value)
    if found is None:
        raise operand_error(op, value)
    if not found._h.weak:
        return found
    code = x._h.dtype
    if code < 0:
        check_range(op, found._h, code)
    return wrap(call(lib.mg_cast, found._h, code))


def check_range(op: str, numbers: Handle, code: int) -> None:
    """OverflowError for Python's numbers that an integer dtype of storage has not; negative ones
    wrap around in uint8, as in PyTorch.
    """
    kind = by_code[code]
    if code >= 0 or kind.kind != 1 or numbers.dtype == lib.MG_BOOL or not numbers.size:
        return
    most = 2 ** (8 * kind.itemsize - kind.is_signed) - 1
    item = lib.mg_item_float if numbers.dtype >= _FIRST_FLOAT else lib.mg_item_int
    for which in (lib.MG_MIN, lib.MG_MAX):
        found = item(call(lib.mg_reduce, which, numbers, -1, NULL, 0))
        if not -most - kind.is_signed <= found <= most:
            raise OverflowError(f"[{op}] {found} does not fit in {kind.name}")


def check_keeps_grad(op: str, kind: DType) -> None:
    """Refuse a half as the result of what is recorded: its gradient would be lost unnoticed."""
    if kind.is_storage and kind.is_floating_point:
        raise TypeError(
            f"[{op}] a {kind.name} tensor cannot require grad: minigrad trains in float32 and "
            "float64, and halves are for storage; detach() first"
        )


def operand_error(name: str, value: object) -> TypeError:
    """Not something to compute with."""
    kind = type(value).__name__
    if is_foreign_tensor(value):
        library = type(value).__module__.partition(".")[0]
        kind = f"a {kind} of {library}'s: take its values with mg.tensor(x.detach().numpy())"
    return TypeError(f"[{name}] expected a Tensor, a number or an array, not {kind}")


def is_foreign_tensor(value: object) -> bool:
    """Whether it is a tensor of another library that has a tape of its own, such as PyTorch's."""
    kind = type(value)
    return hasattr(kind, "detach") and hasattr(kind, "numpy") and not isinstance(value, TensorBase)


# ---- recording -----------------------------------------------------------------------------------


def apply(row: Row, inputs: tuple[TensorBase, ...], args: tuple[Any, ...] = ()) -> Tensor:
    """Compute a row that has a forward of its own, and record it if an input needs a gradient."""
    if len(inputs) == 1:
        return apply_to_one(row, inputs[0], args)
    handles = [x._h for x in inputs]
    handle = row.forward(*handles, *args)  # type: ignore[misc]
    out = wrap(handle)
    for x in inputs:
        if x._edge is not None:
            if not (pauses and not mode.enabled):
                if handle.dtype >= _FIRST_FLOAT:
                    out._edge = _node(row, inputs, (*handles, handle, NULL), args)
                else:
                    check_keeps_grad(row.name, out.dtype)
            break
    return out


def apply_to_one(row: Row, x: TensorBase, args: tuple[Any, ...] = ()) -> Tensor:
    """As :func:`apply`, for a row with one input."""
    return (row.run or operation(row))(x, args)  # type: ignore[no-any-return]


class Views:
    """The living views of a tensor, as weak references; ``current`` are those that know all writes
    into it, which the next one must tell. From ``limit`` of them on C takes the dead from both.
    """

    __slots__ = ("current", "limit", "refs")

    def __init__(self) -> None:
        self.refs: list[weakref.ref[TensorBase]] = []
        self.current: list[weakref.ref[TensorBase]] = []
        self.limit = 16


def mark(view: TensorBase, alias: tuple[Any, ...]) -> None:
    """Note that the tape knows nothing of ``view``, as of the one that had this ``_alias``."""
    view._alias = alias
    top = alias[0]()
    if top is not None:
        for views in (top._views.refs, top._views.current):
            views.append(weakref.ref(view))


def view_node(row: Row, base: TensorBase, args: tuple[Any, ...], parent: Parent) -> Node | None:
    """The edge of a view of ``base``, whose own place on the tape is ``parent``."""
    if parent is None:
        return None
    if row.wants_shape:
        args = (base.shape, *args)
    return record(row, None, args, None, parent)


def _node(
    row: Row, inputs: Sequence[TensorBase], arrays: Sequence[Handle], args: tuple[Any, ...]
) -> Node:
    """The node of a row with several inputs; ``arrays`` are theirs, the result's and NULL."""
    if row.wants_shape:
        args = (inputs[0].shape, *args)
    parents = [parent_of(x) for x in inputs]
    saved = None
    if row.arity > 0:  # of any number of inputs nothing is saved
        wanted = 1
        for parent in parents:
            wanted += wanted + (parent is not None)
        sources = row.sources.get(wanted)
        if sources is None:
            sources = row.find_sources(parents, wanted)
        if sources:
            a, b, c = sources
            saved = save(arrays[a], arrays[b], arrays[c])
    adapted = tuple([(x.shape, x._h.dtype) for x in inputs]) if arrays[-2].adapted else None
    return record(row, saved, args, adapted, *parents)


# ---- operations that are one call of a kernel ----------------------------------------------------


def operation(row: Row) -> Callable[..., Any]:
    """The function of a row on tensors.

    Of a row with a forward of its own and one input, it takes that and the tuple of the other
    arguments. Of a pointwise row, or of another one that C knows by number, it takes the inputs,
    and returns NotImplemented where one is no tensor.
    """
    if row.run is None and row.forward is not None and row.arity < 2:  # or any number of inputs
        keeps = "x" in row.keeps, "y" in row.keeps
        row.run = _single(row, row.forward, row.view, row.wants_shape, *keeps)
    elif row.run is None and row.choice >= 0:
        kernel = lib.mg_where if row.choice == lib.MG_WHERE else lib.mg_clamp
        row.run = _operation(row, kernel, row.choice, 3, True, True, _saved_places(row))
    elif row.run is None:
        pointwise = row.family == "pointwise" or row.id >= 0
        kernel = (
            (lib.mg_unary if row.arity == 1 else lib.mg_binary)
            if pointwise
            else (lib.mg_bilinear if row.arity == 2 else lib.mg_linear)
        )
        row.run = _operation(
            row,
            kernel,
            row.id if pointwise else row.product,
            row.arity,
            pointwise,
            bool(row.derivatives),
            _saved_places(row),
        )
    return row.run


def of_all(row: Row, number: int) -> Callable[..., Any]:
    """The function of a reduction that saves nothing, on all elements of a tensor."""
    return _operation(row, lib.mg_reduce, number, 1, False, True, bytes([2] * 24))


def _saved_places(row: Row) -> bytes:
    """For each set of inputs that want gradients, where the three arrays to save lie.

    That is among the inputs, after which comes the result, and then nothing.
    """
    arity = row.arity
    nothing = bytes([arity + 1] * 3)
    if not any(row.needs):
        return nothing * 8  # sets of up to three inputs
    places = [nothing]
    for wanted in range(1, 1 << arity):
        found = bytearray(nothing)
        for name in row.saves([bool(wanted >> i & 1) for i in range(arity)]):
            place = 1 if name == "y" and arity == 1 else PLACES[name]
            found[place] = arity if name == "y" else place
        places.append(bytes(found))
    return b"".join(places).ljust(24, b"\0")


def unary(row: Row) -> Callable[[Any], Tensor]:
    """The public function of a pointwise row with one input."""
    run, name = operation(row), row.name

    def function(input: Any) -> Tensor:
        out = run(input)
        if out is NotImplemented:
            out = run(strong_operand(name, input))
        return out  # type: ignore[no-any-return]

    return _named(function, row)


def binary(row: Row, operator: bool = False) -> Callable[[Any, Any], Tensor]:
    """The public function of a pointwise row with two inputs, or of a product.

    As an operator it leaves types it does not know to their own methods.
    """
    run, name = operation(row), row.name

    def function(input: Any, other: Any) -> Tensor:
        out = run(input, other)
        if out is NotImplemented:
            pair = _operands(name, input, other, operator)
            if pair is not None:
                out = run(*pair)
        return out  # type: ignore[no-any-return]

    return _named(function, row)


def operator(row: Row) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The two halves of an operator that is C: on tensors, and on other operands."""
    run = operation(row)

    def otherwise(a: Any, b: Any) -> Any:
        left = a if isinstance(a, TensorBase) else as_operand(a)
        right = b if isinstance(b, TensorBase) else as_operand(b)
        if left is None or right is None:
            for given in (a, b):
                if is_foreign_tensor(given):
                    raise operand_error(row.name, given)
            return NotImplemented
        return run(left, right)

    return run, otherwise


def composed(row: Row) -> Callable[..., Tensor]:
    """The public function of a composition row: tensors, numbers and arrays go into its formula."""
    name, formula = row.name, row.formula

    def unary_function(input: Any) -> Tensor:
        x = input if isinstance(input, TensorBase) else strong_operand(name, input)
        return formula(x)  # type: ignore[misc,no-any-return]

    def binary_function(input: Any, other: Any) -> Tensor:
        a, b = input, other
        if not isinstance(a, TensorBase):
            a = as_operand(a) if isinstance(b, TensorBase) else strong_operand(name, a)
        if not isinstance(b, TensorBase):
            b = as_operand(b)
        if a is None or b is None:
            raise TypeError(f"[{name}] expected Tensors, numbers or arrays")
        return formula(a, b)  # type: ignore[misc,no-any-return]

    return _named(unary_function if row.arity == 1 else binary_function, row)


def _operands(name: str, a: Any, b: Any, operator: bool) -> tuple[Any, Any] | None:
    """Both as tensors; None where an operator's second operand is of a type that it leaves alone.

    A number beside a tensor takes on its dtype; two numbers have only their own.
    """
    if not isinstance(a, TensorBase):
        given, a = a, as_operand(a) if isinstance(b, TensorBase) else strong_operand(name, a)
        if a is None:
            raise operand_error(name, given)
    if not isinstance(b, TensorBase):
        given, b = b, as_operand(b)
        if b is None and (not operator or is_foreign_tensor(given)):
            raise operand_error(name, given)
    return None if b is None else (a, b)


def _named(function: Callable[..., Tensor], row: Row) -> Callable[..., Tensor]:
    function.__name__ = function.__qualname__ = row.name
    word, doc = row.doc.split()[0], row.doc
    if word.isalpha() and len(word) > 1:  # neither a variable nor a formula
        doc = doc[0].upper() + doc[1:]
    function.__doc__ = f"{doc}."
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals is globals():
        frame = frame.f_back
    function.__module__ = frame.f_globals["__name__"]  # which asks for it: pickle looks there
    return function


def _rules(row: Row) -> Any:
    """How a row runs backward; loaded with the first that does."""
    from minigrad.vjp import rules

    return rules(row)


Row.rules = _rules


# ---- writing in place ----------------------------------------------------------------------------


def write(kernel: Any, target: TensorBase, *args: Any, changes: list[Change] | None = None) -> None:
    """Run a kernel that writes into ``target``'s memory; the tape is the caller's business.

    The ``changes`` to the tape are made with the write: an interrupt leaves both or neither.
    """
    handle = target._h
    if lib.mg_pins(handle) > 0:  # noted first: an interrupt may follow the write at once
        if len(overwritten_at) > 1000:
            overwritten_at.clear()
        overwritten_at[lib.mg_buffer_id(handle)] = _caller()
    if not changes:
        run_kernel(kernel, *args)
        return
    code = commit(kernel, args, changes)
    if code or tracers:
        settle_run(code, kernel, args)


def _caller() -> str:
    """The nearest line outside this package, as ``file:line``."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("minigrad"):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"
