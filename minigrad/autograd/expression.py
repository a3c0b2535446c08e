"""Text of an expression that a node was computed by: what ``print(y.grad_fn)`` shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from minigrad.autograd.graph import _plain
from minigrad.functions.creation import to_numpy
from minigrad.ops.table import Row
from minigrad.runtime.native import Saved, saved_handle
from minigrad.tape.node import Node

__all__ = ["Term", "applied", "constant", "expression", "node_text"]

_LONGEST = 80  # characters of an expression
_DEEPEST = 20  # operations within one another
_MOST_INPUTS = 6  # that are shown of one operation


class Term(NamedTuple):
    """A text and how strongly it binds: one that binds less than is needed gets brackets."""

    text: str
    binds: int = 9


# The operator of an operation, how strongly it binds, and what its operands must at least.
_OPERATORS = {
    "add": (" + ", 1, 1, 2),
    "sub": (" - ", 1, 1, 2),
    "mul": (" * ", 2, 2, 3),
    "div": (" / ", 2, 2, 3),
    "matmul": (" @ ", 2, 2, 3),
    "pow": (" ** ", 5, 6, 5),
}
_NEGATIVE = 4
_POSTFIX = 8


def node_text(node: Node) -> str:
    """The operation of a node and its expression; the operation alone once the graph was freed.

    >>> import minigrad as mg
    >>> x = mg.tensor(2.0, requires_grad=True)
    >>> print((x**2 + 3 * x).grad_fn)
    <add: x ** 2 + 3 * x>
    """
    if node.parents is None:
        return repr(node)
    return f"<{node.op.name}: {expression(node)}>"


def expression(node: Node, names: Mapping[int, str] | None = None, longest: int = _LONGEST) -> str:
    """The expression of a node in at most about ``longest`` characters.

    Operations that are too deep for that are "...". ``names`` gives names to leaves by their
    ``id``; other ones are x, or x1, x2 and so on. A constant whose value was not saved is c.
    """
    shown = ""
    for depth in range(1, _DEEPEST):
        text = _at_depth(node, names or {}, depth)
        if text == shown or (shown and len(text) > longest):
            break
        shown = text
    return shown


def _at_depth(node: Node, names: Mapping[int, str], depth: int) -> str:
    """The expression with this many operations within one another."""
    found: dict[int, str] = {}
    text = _term(node, names, found, depth).text
    if len(found) > 1:
        return text
    return _term(node, {**names, **dict.fromkeys(found, "x")}, {}, depth).text


def _term(edge: Any, names: Mapping[int, str], found: dict[int, str], depth: int) -> Term:
    if id(edge) in names:
        return Term(names[id(edge)])
    if not isinstance(edge, Node):
        return Term(found.setdefault(id(edge), f"x{len(found) + 1}"))
    parents = edge.parents
    if parents is None or depth <= 0:
        return Term("...")
    terms = [
        constant(edge, i) if parent is None else _term(parent, names, found, depth - 1)
        for i, parent in enumerate(parents[:_MOST_INPUTS])
    ]
    if len(parents) > _MOST_INPUTS:
        terms.append(Term("..."))
    return applied(edge, terms)


def applied(node: Node, terms: Sequence[Term]) -> Term:
    """The operation of a node applied to the texts of its inputs."""
    op = _plain(node.op)
    name = op.name
    if name in _OPERATORS and len(terms) == 2:
        sign, binds, left, right = _OPERATORS[name]
        a, b = terms
        return Term(f"{_bound(a, left)}{sign}{_bound(b, right)}", binds)
    if name == "neg" and len(terms) == 1:
        return Term(f"-{_bound(terms[0], _NEGATIVE)}", _NEGATIVE)
    if hasattr(op, "place") and len(terms) == 1:  # one of several outputs
        return Term(f"{terms[0].text}[{op.place}]")
    if name in ("slice", "slice_view", "index") and len(terms) == 1:
        place = "..." if name == "index" else _slice(*node.args)
        return Term(f"{_bound(terms[0], _POSTFIX)}[{place}]", _POSTFIX)
    if name == "permute" and node.args[0] == (1, 0):
        return Term(f"{_bound(terms[0], _POSTFIX)}.T", _POSTFIX)
    return Term(f"{name}({', '.join([term.text for term in terms])})")


def _slice(shape: Any, start: Any, step: Any, count: Any, *to: Any) -> str:
    """The text between the brackets of a basic index; ``to`` is a shape with axes left out."""
    texts = []
    for n, first, by, many in zip(shape, start, step, count, strict=True):
        if to and many == 1 and n != 1:
            texts.append(str(first))
        elif (by, many) == (1, n):
            texts.append(":")
        else:
            texts.append(f"{first}:{first + by * many}" + (f":{by}" if by != 1 else ""))
    while len(texts) > 1 and texts[-1] == ":":
        texts.pop()
    return ", ".join(texts)


def _bound(term: Term, least: int) -> str:
    return term.text if term.binds >= least else f"({term.text})"


def constant(node: Node, place: int) -> Term:
    """The value of an input without a gradient, if it is one number and was saved; else c."""
    row = _plain(node.op)
    if type(row) is Row and row.family == "pointwise" and isinstance(node.saved, Saved):
        with suppress(RuntimeError):  # overwritten since
            if node.saved.buffer(place):
                handle = saved_handle(node.saved, place)
                if handle.size == 1:
                    return _number(to_numpy(handle).item())
    return Term("c")


def _number(value: Any) -> Term:
    text = f"{value:.4g}" if isinstance(value, float) else str(value)
    return Term(text, _NEGATIVE if text.startswith("-") else 9)
