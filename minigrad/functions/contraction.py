"""Functions for Einstein summation: products of tensors, summed over any of their dimensions.

Every operand has a label for each of its dimensions. Operands are multiplied in pairs. A pair with
a summed label is one matrix product. A label is summed as soon as no other operand and no output
needs it. The building blocks are diagonal, sum, permute, reshape, mul and matmul.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Collection, Hashable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from minigrad.functions.arguments import integer, one_dim, tensor_operands
from minigrad.functions.elementwise import mul
from minigrad.functions.products import matmul
from minigrad.functions.reductions import sum as total
from minigrad.functions.shaping import permute, reshape, squeeze

if TYPE_CHECKING:
    from minigrad._tensor import Tensor

__all__ = ["einsum", "inner", "tensordot"]

Label = Hashable
Labels = tuple[Label, ...]


def einsum(equation: Any, *operands: Any) -> Tensor:
    """The product of the operands' elements, summed over all labels that the output lacks.

    ``einsum("ij,jk->ik", a, b)`` is sum_j a[i, j] b[j, k]. The equation names each dimension of
    each operand by a letter. A letter that occurs twice in an operand takes the diagonal. Without
    ``->`` the output has the letters that occur once, in alphabetical order.

    ``...`` stands for any further dimensions, which are broadcast. They come first in an output
    that is not given. A size of 1 is broadcast against another size. The operands may be a list.
    Integers in lists may replace letters: ``einsum(a, [0, 1], b, [1, 2], [0, 2])``.

    Two operands that share a summed letter are one matrix product. With more operands, the pair
    with the cheapest product comes first. Raises ValueError for a malformed equation and for sizes
    that do not agree.

    >>> import minigrad as mg
    >>> a = mg.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> mg.einsum("ii", a).item(), mg.einsum("ij->j", a).tolist()
    (5.0, [4.0, 6.0])
    """
    if isinstance(equation, str):
        if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
            operands = tuple(operands[0])
    else:
        operands, equation = _from_sublists((equation, *operands))
    tensors = tensor_operands("einsum", *operands)
    return _planned(equation, tuple([x.shape for x in tensors])).run(tensors)


# ---- what is asked for ---------------------------------------------------------------------------


# The labels of each operand, and of the output; None for an implied output.
Terms = tuple[tuple[Labels, ...], Labels | None]


def _from_letters(equation: str) -> Terms:
    inputs, arrow, output = equation.replace(" ", "").partition("->")
    terms = tuple([_letters(equation, term) for term in inputs.split(",")])
    return terms, _letters(equation, output) if arrow else None


def _letters(equation: str, term: str) -> Labels:
    labels: list[Label] = []
    rest = term
    while rest:
        if rest.startswith("..."):
            labels.append(Ellipsis)
            rest = rest[3:]
        elif rest[0].isascii() and rest[0].isalpha():
            labels.append(rest[0])
            rest = rest[1:]
        else:
            raise ValueError(
                f"[einsum] {rest[0]!r} in {equation!r}: a term is made of letters and one '...', "
                "terms are separated by ',' and '->' stands before the output"
            )
    return tuple(labels)


def _from_sublists(args: Sequence[Any]) -> tuple[tuple[Any, ...], Terms]:
    """The operands and terms of alternating tensors and lists of integers."""
    paired = len(args) // 2 * 2
    operands, lists = args[0:paired:2], [*args[1::2], *args[paired:]]
    for given in lists:
        if not isinstance(given, (list, tuple)) or not all(
            item is Ellipsis or isinstance(item, int) for item in given
        ):
            raise TypeError(
                "[einsum] expected an equation and tensors, or tensors each followed by the list "
                "of its labels, integers and perhaps ...; at the end perhaps the output's list"
            )
    terms = [tuple(given) for given in lists]
    return tuple(operands), (tuple(terms[: paired // 2]), terms[-1] if len(args) > paired else None)


def _spread(k: int, shape: tuple[int, ...], term: Labels) -> Labels:
    """The operand's labels, with the ellipsis expanded and counted from the right."""
    if term.count(Ellipsis) > 1:
        raise ValueError(f"[einsum] operand {k} has more than one ellipsis")
    extra = len(shape) - len(term) + term.count(Ellipsis)
    if extra < 0 or (extra and Ellipsis not in term):
        beside = " beside the ellipsis" if Ellipsis in term else ""
        raise ValueError(
            f"[einsum] operand {k} of shape {shape} has {len(shape)} dimensions for "
            f"{len(term) - term.count(Ellipsis)} labels{beside}"
        )
    names: list[Label] = []
    for label in term:
        names += [(i,) for i in range(extra, 0, -1)] if label is Ellipsis else [label]
    return tuple(names)


def _implied(terms: Sequence[Labels]) -> Labels:
    """The implied output: the ellipsis, then the labels that occur once."""
    every = [label for term in terms for label in term]
    once = [label for label in every if label is not Ellipsis and every.count(label) == 1]
    return (*([Ellipsis] if Ellipsis in every else []), *sorted(once))  # type: ignore[type-var]


def _output_names(output: Labels, operands: Sequence[Labels]) -> Labels:
    present = set(itertools.chain(*operands))
    broadcast = sorted((n for n in present if isinstance(n, tuple)), reverse=True)
    names: list[Label] = []
    for label in output:
        names += broadcast if label is Ellipsis else [label]
    for label in names:
        if label not in present:
            raise ValueError(f"[einsum] the output has {label!r}, which no operand has")
        if names.count(label) > 1:
            raise ValueError(f"[einsum] the output has {label!r} twice")
    if output.count(Ellipsis) > 1:
        raise ValueError("[einsum] the output has more than one ellipsis")
    return tuple(names)


# ---- how it is computed --------------------------------------------------------------------------


class _Plan:
    """The steps from the operands to the result, which depend only on the shapes.

    Operands and results of steps have places in one list. Each is used once.
    """

    __slots__ = ("places", "steps")

    def __init__(self, operands: int) -> None:
        self.places = operands
        self.steps: list[tuple[Callable[..., Any], tuple[int, ...], tuple[Any, ...]]] = []

    def step(self, function: Callable[..., Any], places: tuple[int, ...], *args: Any) -> int:
        """Add a step: call a function on these places. Returns the place of its result."""
        self.steps.append((function, places, args))
        self.places += 1
        return self.places - 1

    def run(self, tensors: Sequence[Tensor]) -> Tensor:
        """Run the steps on these operands."""
        held: dict[int, Any] = dict(enumerate(tensors))
        place = len(tensors)
        for function, places, args in self.steps:
            held[place] = function(*[held.pop(i) for i in places], *args)
            place += 1
        return held.popitem()[1]


@lru_cache(256)
def _planned(equation: str | Terms, shapes: tuple[tuple[int, ...], ...]) -> _Plan:
    """The plan of an einsum for operands of these shapes."""
    terms, output = _from_letters(equation) if isinstance(equation, str) else equation
    if len(terms) != len(shapes) or not shapes:
        raise ValueError(f"[einsum] {len(terms)} terms for {len(shapes)} operands")
    labelled = [
        _spread(k, shape, term) for k, (shape, term) in enumerate(zip(shapes, terms, strict=True))
    ]
    names = _output_names(_implied(terms) if output is None else output, labelled)
    plan = _Plan(len(shapes))
    operands = [
        _diagonals(_Operand(plan, k, shape, own))
        for k, (shape, own) in enumerate(zip(shapes, labelled, strict=True))
    ]
    _plan_product(operands, names)
    return plan


class _Operand:
    """A tensor of a plan: its place, its shape, and the labels of its dimensions."""

    __slots__ = ("names", "place", "plan", "shape")

    def __init__(self, plan: _Plan, place: int, shape: Sequence[int], names: Sequence[Label]):
        self.plan = plan
        self.place = place
        self.shape = tuple(shape)
        self.names = tuple(names)

    def sizes(self) -> dict[Label, int]:
        return dict(zip(self.names, self.shape, strict=True))

    def _reduced(self, function: Callable[..., Any], dropped: Collection[Label]) -> _Operand:
        """The operand without the labels whose axes the function removes."""
        axes = [d for d, name in enumerate(self.names) if name in dropped]
        if not axes:
            return self
        place = self.plan.step(function, (self.place,), tuple(axes))
        kept = [
            (n, name) for n, name in zip(self.shape, self.names, strict=True) if name not in dropped
        ]
        return _Operand(self.plan, place, [n for n, _ in kept], [name for _, name in kept])

    def without(self, dropped: Collection[Label]) -> _Operand:
        """The operand summed over the labels."""
        return self._reduced(total, dropped)

    def squeezed(self, dropped: Collection[Label]) -> _Operand:
        """The operand without these labels of size 1."""
        return self._reduced(squeeze, dropped)

    def permuted(self, names: Labels, as_view: bool = False) -> _Operand:
        """The operand with its labels in this order. With ``as_view`` it is always a new tensor."""
        if names == self.names and not as_view:
            return self
        order = tuple([self.names.index(name) for name in names])
        place = self.plan.step(permute, (self.place,), order)
        return _Operand(self.plan, place, [self.shape[d] for d in order], names)

    def shaped(self, shape: Sequence[int], names: Sequence[Label] = ()) -> _Operand:
        """The operand reshaped."""
        place = self.place
        if tuple(shape) != self.shape:
            place = self.plan.step(reshape, (place,), tuple(shape))
        return _Operand(self.plan, place, shape, names)

    def grouped(self, *groups: Labels) -> _Operand:
        """The operand permuted to the groups' order.

        Each group except the first is one dimension.
        """
        sizes = self.sizes()
        shape = [sizes[name] for name in groups[0]]
        shape += [math.prod([sizes[name] for name in group]) for group in groups[1:]]
        return self.permuted(tuple(itertools.chain(*groups))).shaped(shape)

    def aligned(self, names: Labels) -> _Operand:
        """The operand permuted to the order of names, with a size of 1 for each missing name."""
        sizes = self.sizes()
        own = self.permuted(tuple([name for name in names if name in sizes]))
        return own.shaped([sizes.get(name, 1) for name in names], names)


def _diagonal(x: Tensor, first: int, second: int) -> Tensor:
    return x.diagonal(0, first, second)


def _diagonals(x: _Operand) -> _Operand:
    """The operand with a diagonal taken for each label that occurs twice."""
    while len(set(x.names)) < len(x.names):
        name = next(name for name in x.names if x.names.count(name) > 1)
        first = x.names.index(name)
        second = x.names.index(name, first + 1)
        n = x.shape[first]
        if n != x.shape[second]:
            raise ValueError(
                f"[einsum] {name!r} stands twice for operand {x.place}, but sizes "
                f"{n} and {x.shape[second]} differ"
            )
        place = x.plan.step(_diagonal, (x.place,), first, second)
        rest = [d for d in range(len(x.names)) if d not in (first, second)]
        shape = *[x.shape[d] for d in rest], n
        x = _Operand(x.plan, place, shape, [*[x.names[d] for d in rest], name])
    return x


def _agreeing(operands: list[_Operand]) -> dict[Label, int]:
    """The size of every label. Broadcast axes of size 1 are removed from the operands."""
    sizes: dict[Label, int] = {}
    for k, operand in enumerate(operands):
        for name, n in operand.sizes().items():
            known = sizes.get(name, 1)
            if n not in (1, known) and known != 1:
                raise ValueError(
                    f"[einsum] operand {k} has size {n} for {_shown(name)}, which has size {known}"
                )
            sizes[name] = known if n == 1 else n
    for k, operand in enumerate(operands):
        operands[k] = operand.squeezed([s for s, n in operand.sizes().items() if n != sizes[s]])
    return sizes


def _shown(name: Label) -> str:
    return "a dimension of the ellipsis" if isinstance(name, tuple) else repr(name)


def _plan_product(operands: list[_Operand], output: Labels) -> None:
    """The steps from the operands to their product, summed over what the output has not."""
    sizes = _agreeing(operands)
    alone = len(operands) == 1  # the result is then a view
    while True:
        # Labels that occur in one operand alone, and not in the output, are summed first.
        for k, operand in enumerate(operands):
            needed = set(output).union(*[o.names for o in operands if o is not operand])
            operands[k] = operand.without(set(operand.names) - needed)
        if len(operands) == 1:
            operands[0].permuted(output, as_view=alone)
            return
        i, j = _cheapest(operands, sizes) if len(operands) > 2 else (0, 1)
        b, a = operands.pop(j), operands.pop(i)
        operands.append(_pair(a, b, set(output).union(*[o.names for o in operands])))


def _cheapest(operands: Sequence[_Operand], sizes: dict[Label, int]) -> tuple[int, int]:
    """The pair whose product takes the fewest multiplications; the first one in case of a tie."""

    def cost(pair: tuple[int, int]) -> int:
        names = {*operands[pair[0]].names, *operands[pair[1]].names}
        return math.prod(sizes[name] for name in names)

    return min(itertools.combinations(range(len(operands)), 2), key=cost)


def _pair(a: _Operand, b: _Operand, needed: set[Label]) -> _Operand:
    """The product of two operands, summed over labels that both have and nothing else needs."""
    both = [name for name in a.names if name in b.names]
    batch = tuple([name for name in both if name in needed])
    summed = tuple([name for name in both if name not in needed])
    rows = tuple([name for name in a.names if name not in both])
    columns = tuple([name for name in b.names if name not in both])
    names = (*batch, *rows, *columns)
    sizes = a.sizes() | b.sizes()
    shape = [sizes[name] for name in names]
    if not summed:
        place = a.plan.step(mul, (a.aligned(names).place, b.aligned(names).place))
        return _Operand(a.plan, place, shape, names)
    left, right = a.grouped(batch, rows, summed), b.grouped(batch, summed, columns)
    place = a.plan.step(matmul, (left.place, right.place))
    return _Operand(a.plan, place, (*left.shape[:-1], right.shape[-1]), ()).shaped(shape, names)


def _shaped(x: Tensor, shape: list[int]) -> Tensor:
    return x if x.shape == tuple(shape) else reshape(x, shape)


def tensordot(a: Any, b: Any, dims: Any = 2) -> Tensor:
    """The sum of a * b over pairs of dimensions. The other dimensions of a come first, then b's.

    ``dims`` is a number n: the last n dimensions of a are summed with the first n of b. It may also
    be two lists, of a's dimensions and of their partners in b. A size of 1 is broadcast. Raises
    ValueError if sizes differ.

    >>> import minigrad as mg
    >>> mg.tensordot(mg.ones(2, 3, 4), mg.ones(4, 3, 5), ([1, 2], [1, 0])).shape
    (2, 5)
    """
    x, y = tensor_operands("tensordot", a, b)
    of_x, of_y = _pairs(dims, x, y)
    for d, e in zip(of_x, of_y, strict=True):
        n, m = x.shape[d], y.shape[e]
        if n != m and 1 not in (n, m):
            raise ValueError(
                f"[tensordot] dim {d} of {x.shape} and dim {e} of {y.shape} differ: {n} != {m}"
            )
    count, rows = len(of_x), x._h.ndim - len(of_x)
    lined_up = of_x == list(range(rows, x._h.ndim)) and of_y == list(range(count))
    if lined_up and count and x.shape[rows:] == y.shape[:count]:
        left, inner, right = x.shape[:rows], y.shape[:count], y.shape[count:]
        n = math.prod(inner)
        a, b = _shaped(x, [math.prod(left), n]), _shaped(y, [n, math.prod(right)])
        return _shaped(matmul(a, b), [*left, *right])
    names_x: list[Label] = list(range(x._h.ndim))
    names_y: list[Label] = [x._h.ndim + e for e in range(y._h.ndim)]
    for d, e in zip(of_x, of_y, strict=True):
        names_y[e] = d
    kept = [name for name in names_x if name not in of_x]
    kept += [name for e, name in enumerate(names_y) if e not in of_y]
    plan = _Plan(2)
    operands = [_Operand(plan, 0, x.shape, names_x), _Operand(plan, 1, y.shape, names_y)]
    _plan_product(operands, tuple(kept))
    return plan.run((x, y))


def _pairs(dims: Any, x: Tensor, y: Tensor) -> tuple[list[int], list[int]]:
    """The dimensions of x and of y, counted from the front."""
    if isinstance(dims, (tuple, list)):
        if len(dims) != 2:
            raise ValueError("[tensordot] dims is a number, or a pair of lists of dimensions")
        of_x, of_y = ([d] if isinstance(d, int) else list(d) for d in dims)
    else:
        count = integer("tensordot", "dims", dims)
        if not 0 <= count <= min(x._h.ndim, y._h.ndim):
            raise ValueError(f"[tensordot] {count} dims are not in {x.shape} and {y.shape}")
        of_x, of_y = list(range(x._h.ndim - count, x._h.ndim)), list(range(count))
    if len(of_x) != len(of_y):
        raise ValueError(f"[tensordot] {len(of_x)} dims of a for {len(of_y)} of b: {dims}")
    for found, ndim in ((of_x, x._h.ndim), (of_y, y._h.ndim)):
        found[:] = [one_dim("tensordot", d, ndim) for d in found]
        if len(set(found)) < len(found):
            raise ValueError(f"[tensordot] a dim is given twice: {dims}")
    return of_x, of_y


def inner(input: Any, other: Any) -> Tensor:
    """The sum of products over the last dimensions, or the product if one operand is 0-d.

    Shapes (..., n) and (..., n) give the other dimensions of a, then the other dimensions of b.
    Raises ValueError if the last sizes differ.
    """
    x, y = tensor_operands("inner", input, other)
    if not (x._h.ndim and y._h.ndim):
        return mul(x, y)
    if x.shape[-1] != y.shape[-1]:
        raise ValueError(f"[inner] the last sizes differ: {x.shape} and {y.shape}")
    return tensordot(x, y, ([-1], [-1]))
