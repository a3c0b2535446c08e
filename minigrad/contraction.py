"""Einstein's summation: any product of tensors with any of their dimensions summed.

Every operand carries a label for each of its dimensions. Operands are multiplied two at a time, as
one matrix product whenever a label is summed, and a label is summed as soon as nothing else needs
it; so everything is made of diagonal, sum, permute, reshape, mul and matmul.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from minigrad.arguments import integer, one_dim, tensor_operands
from minigrad.elementwise import mul
from minigrad.products import matmul
from minigrad.reductions import sum as total
from minigrad.shaping import (
    permute,
    reshape,
    squeeze,
    unsqueeze,
)

if TYPE_CHECKING:
    from minigrad._tensor import Tensor

__all__ = ["einsum", "inner", "tensordot"]

Label = Hashable
Labels = tuple[Label, ...]


def einsum(equation: Any, *operands: Any) -> Tensor:
    """The sum over the labels that the output lacks of the product of the operands' elements.

    ``einsum("ij,jk->ik", a, b)`` is sum_j a[i, j] b[j, k]. The equation names each dimension of
    each operand by a letter; one letter twice in an operand takes its diagonal. Without ``->`` the
    output has the letters that occur once, in alphabetical order. ``...`` stands for any further
    dimensions, which are broadcast, and come first in an output that is not given. A size of 1
    is broadcast against another size. The operands may be a list, and integers in lists may
    take the place of letters: ``einsum(a, [0, 1], b, [1, 2], [0, 2])``.

    Two operands that share a summed letter are one matrix product; of more, the pair with the
    cheapest product comes first. Raises ValueError for a malformed equation and for sizes that do
    not agree.

    >>> import minigrad as mg
    >>> a = mg.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> mg.einsum("ii", a).item(), mg.einsum("ij->j", a).tolist()
    (5.0, [4.0, 6.0])
    """
    if isinstance(equation, str):
        if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
            operands = tuple(operands[0])
        terms, output = _from_letters(equation)
    else:
        operands, terms, output = _from_sublists((equation, *operands))
    tensors = tensor_operands("einsum", *operands)
    if len(terms) != len(tensors) or not tensors:
        raise ValueError(f"[einsum] {len(terms)} terms for {len(tensors)} operands")
    labelled = [_spread(k, x, t) for k, (x, t) in enumerate(zip(tensors, terms, strict=True))]
    if output is None:
        output = _implied(terms)
    names = _output_names(output, [names for _, names in labelled])
    return _product([_diagonals(k, *operand) for k, operand in enumerate(labelled)], names)


# ---- what is asked for ---------------------------------------------------------------------------


@lru_cache(256)
def _from_letters(equation: str) -> tuple[Sequence[list[Label]], list[Label] | None]:
    """The labels of the operands and of the output, None if that is implied; to be read only."""
    inputs, arrow, output = equation.replace(" ", "").partition("->")
    terms = [_letters(equation, term) for term in inputs.split(",")]
    return terms, _letters(equation, output) if arrow else None


def _letters(equation: str, term: str) -> list[Label]:
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
    return labels


def _from_sublists(
    args: Sequence[Any],
) -> tuple[tuple[Any, ...], list[list[Label]], list[Label] | None]:
    """As above, of tensors and lists of integers in turn."""
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
    terms = [list(given) for given in lists]
    return tuple(operands), terms[: paired // 2], terms[-1] if len(args) > paired else None


def _spread(k: int, x: Tensor, term: list[Label]) -> tuple[Tensor, Labels]:
    """The operand's labels with the ellipsis written out, counted from its right."""
    if term.count(Ellipsis) > 1:
        raise ValueError(f"[einsum] operand {k} has more than one ellipsis")
    if len(term) == x._h.ndim and Ellipsis not in term:
        return x, tuple(term)
    extra = x._h.ndim - len(term) + term.count(Ellipsis)
    if extra < 0 or (extra and Ellipsis not in term):
        beside = " beside the ellipsis" if Ellipsis in term else ""
        raise ValueError(
            f"[einsum] operand {k} of shape {x.shape} has {x._h.ndim} dimensions for "
            f"{len(term) - term.count(Ellipsis)} labels{beside}"
        )
    names: list[Label] = []
    for label in term:
        names += [(i,) for i in range(extra, 0, -1)] if label is Ellipsis else [label]
    return x, tuple(names)


def _implied(terms: Sequence[Sequence[Label]]) -> list[Label]:
    """The ellipsis, then what occurs once."""
    every = [label for term in terms for label in term]
    once = [label for label in every if label is not Ellipsis and every.count(label) == 1]
    return [*([Ellipsis] if Ellipsis in every else []), *sorted(once)]  # type: ignore[type-var]


def _output_names(output: list[Label], operands: Sequence[Labels]) -> Labels:
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


class _Operand:
    """A tensor whose dimensions are labelled, each label once."""

    __slots__ = ("names", "tensor")

    def __init__(self, tensor: Tensor, names: Labels) -> None:
        self.tensor = tensor
        self.names = names

    def sizes(self) -> dict[Label, int]:
        return dict(zip(self.names, self.tensor.shape, strict=True))

    def without(self, dropped: set[Label]) -> _Operand:
        """Summed over the labels."""
        axes = [d for d, name in enumerate(self.names) if name in dropped]
        if not axes:
            return self
        kept = tuple([name for name in self.names if name not in dropped])
        return _Operand(total(self.tensor, axes), kept)

    def grouped(self, *groups: Labels) -> Tensor:
        """Permuted to the groups' order, each but the first group as one dimension."""
        order = [self.names.index(name) for group in groups for name in group]
        x = self.tensor
        if order != sorted(order):
            x = permute(x, order)
        at = len(groups[0])
        shape = list(x.shape[:at])
        for group in groups[1:]:
            shape.append(math.prod(x.shape[at : at + len(group)]))
            at += len(group)
        return _shaped(x, shape)

    def aligned(self, names: Labels) -> Tensor:
        """Permuted to the order of names, with a size of 1 for those it has not."""
        x = permute(self.tensor, [self.names.index(name) for name in names if name in self.names])
        for d, name in enumerate(names):
            if name not in self.names:
                x = unsqueeze(x, d)
        return x


def _diagonals(k: int, x: Tensor, names: Labels) -> _Operand:
    """Labels that occur twice brought to once."""
    if len(set(names)) == len(names):
        return _Operand(x, names)
    labels = list(names)
    for name in dict.fromkeys(names):
        while labels.count(name) > 1:
            first = labels.index(name)
            second = labels.index(name, first + 1)
            if x.shape[first] != x.shape[second]:
                raise ValueError(
                    f"[einsum] {name!r} stands twice for operand {k}, but sizes "
                    f"{x.shape[first]} and {x.shape[second]} differ"
                )
            x = x.diagonal(0, first, second)
            del labels[second], labels[first]
            labels.append(name)
    return _Operand(x, tuple(labels))


def _agreeing(operands: list[_Operand]) -> dict[Label, int]:
    """The size of every label; sizes of 1 that are broadcast are taken off the operands."""
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
        own = operand.sizes()
        stretched = [name for name in operand.names if own[name] != sizes[name]]
        if stretched:
            axes = [operand.names.index(name) for name in stretched]
            names = tuple([name for name in operand.names if name not in stretched])
            operands[k] = _Operand(squeeze(operand.tensor, axes), names)
    return sizes


def _shown(name: Label) -> str:
    return "a dimension of the ellipsis" if isinstance(name, tuple) else repr(name)


def _product(operands: list[_Operand], output: Labels) -> Tensor:
    sizes = _agreeing(operands)
    joined = False  # one operand alone is given back as a view
    while True:
        # What only one operand has, and the output not, is summed at once.
        for k, operand in enumerate(operands):
            needed = set(output).union(*[o.names for o in operands if o is not operand])
            operands[k] = operand.without(set(operand.names) - needed)
        if len(operands) == 1:
            last = operands[0]
            return last.tensor if last.names == output and joined else last.aligned(output)
        joined = True
        i, j = _cheapest(operands, sizes) if len(operands) > 2 else (0, 1)
        b, a = operands.pop(j), operands.pop(i)
        operands.append(_pair(a, b, set(output).union(*[o.names for o in operands])))


def _cheapest(operands: Sequence[_Operand], sizes: dict[Label, int]) -> tuple[int, int]:
    """The pair whose product takes the fewest multiplications; the first of equals."""

    def cost(pair: tuple[int, int]) -> int:
        names = {*operands[pair[0]].names, *operands[pair[1]].names}
        return math.prod(sizes[name] for name in names)

    return min(itertools.combinations(range(len(operands)), 2), key=cost)


def _pair(a: _Operand, b: _Operand, needed: set[Label]) -> _Operand:
    """The product of two, summed over the labels that both have and nothing else needs."""
    both = [name for name in a.names if name in b.names]
    batch = tuple([name for name in both if name in needed])
    summed = tuple([name for name in both if name not in needed])
    rows = tuple([name for name in a.names if name not in both])
    columns = tuple([name for name in b.names if name not in both])
    names = (*batch, *rows, *columns)
    if not summed:
        return _Operand(mul(a.aligned(names), b.aligned(names)), names)
    product = matmul(a.grouped(batch, rows, summed), b.grouped(batch, summed, columns))
    sizes = a.sizes() | b.sizes()
    return _Operand(_shaped(product, [sizes[name] for name in names]), names)


def _shaped(x: Tensor, shape: list[int]) -> Tensor:
    return x if x.shape == tuple(shape) else reshape(x, shape)


def tensordot(a: Any, b: Any, dims: Any = 2) -> Tensor:
    """The sum of a * b over pairs of dimensions: a's others come first, then b's.

    ``dims`` is the number of a's last dimensions to be summed with as many first ones of b, or a
    pair of lists, of a's dimensions and of those of b they go with. A size of 1 is broadcast.
    Raises ValueError where sizes differ.

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
    return _product([_Operand(x, tuple(names_x)), _Operand(y, tuple(names_y))], tuple(kept))


def _pairs(dims: Any, x: Tensor, y: Tensor) -> tuple[list[int], list[int]]:
    """The dimensions of x and those of y, counted from the front."""
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


def inner(a: Any, b: Any) -> Tensor:
    """The sum of products over the last dimensions; the product where one operand is 0-d.

    Shapes (..., n) and (..., n) give the other dimensions of a and then those of b. Raises
    ValueError where the last sizes differ.
    """
    x, y = tensor_operands("inner", a, b)
    if not (x._h.ndim and y._h.ndim):
        return mul(x, y)
    if x.shape[-1] != y.shape[-1]:
        raise ValueError(f"[inner] the last sizes differ: {x.shape} and {y.shape}")
    return tensordot(x, y, ([-1], [-1]))
