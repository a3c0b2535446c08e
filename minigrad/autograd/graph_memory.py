"""Memory that the tape holds for a backward pass, by operation, shapes and source line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any, NamedTuple

from minigrad.functions.arguments import listed_tensors
from minigrad.runtime.dtypes import by_code
from minigrad.runtime.native import Array, Saved, saved_handle
from minigrad.runtime.texts import aligned
from minigrad.tape.engine import topological_order
from minigrad.tape.node import Node
from minigrad.tape.tensor_base import TensorBase
from minigrad.tape.watching import SourceLines, lines

__all__ = ["Entry", "GraphMemory", "graph_memory", "source_lines"]


class source_lines:  # noqa: N801 - a context, named as a function
    """Context in which the tape notes the source line of each operation that it records.

    :func:`graph_memory` shows them, also later. ``detect_anomaly`` and ``profile`` note them too.
    The lines of some million operations are kept, and the oldest are forgotten.

    >>> import minigrad as mg
    >>> x = mg.ones(3, requires_grad=True)
    >>> with mg.autograd.graph.source_lines():
    ...     y = x.exp()
    >>> mg.graph_memory(y).entries[0].line is None
    False
    """

    def __init__(self) -> None:
        self._watchers: list[SourceLines] = []

    def __enter__(self) -> None:
        self._watchers.append(SourceLines())
        self._watchers[-1].begin()

    def __exit__(self, *error: object) -> None:
        self._watchers.pop().end()


class Entry(NamedTuple):
    """Operations of one name, line and shapes, and the memory that is held for them alone."""

    operation: str
    line: str | None  # "file:number", where it was noted
    saved: str  # dtypes and shapes of what each of them saved
    nodes: int
    bytes: int


class GraphMemory:
    """Result of :func:`graph_memory`; printing it shows a table.

    ``total`` counts the bytes that the graph holds, each buffer once. ``of_leaves`` counts those
    that leaves hold anyway, which are not in the total. ``nodes`` is the number of operations, and
    ``entries`` has them by operation, line and shapes, the largest first.
    """

    def __init__(self, entries: list[Entry], of_leaves: int, nodes: int) -> None:
        self.entries, self.of_leaves, self.nodes = entries, of_leaves, nodes
        self.total = sum(entry.bytes for entry in entries)

    def table(self, limit: int | None = 20) -> str:
        """The table with at most ``limit`` entries, or all for None."""
        shown = self.entries[:limit]
        with_lines = any(entry.line for entry in shown)
        rows = [["operation", "nodes", "bytes", "saved", *(["line"] if with_lines else [])]]
        for entry in shown:
            row = [entry.operation, str(entry.nodes), f"{entry.bytes:,}", entry.saved]
            rows.append([*row, entry.line or ""] if with_lines else row)
        left = len(self.entries) - len(shown)
        return "\n".join(
            [
                *aligned(rows, "<>><<"),
                *([f"and {left} more"] if left else []),
                f"{self.total:,} bytes held by {self.nodes} operations, "
                f"and {self.of_leaves:,} that leaves hold",
            ]
        )

    __str__ = table

    def __repr__(self) -> str:
        return f"<GraphMemory of {self.total:,} bytes>"


def graph_memory(outputs: Any) -> GraphMemory:
    """The memory that the graph of a tensor, or of a list of tensors, holds for its backward.

    A buffer counts once, for the oldest operation that saved it, and as large as the largest view
    that was saved. Results of ``pack`` of saved_tensors_hooks count as tensors and NumPy arrays.
    Source lines are shown where :class:`source_lines` or another tool noted them.

    Raises TypeError for what is no tensor, RuntimeError where the graph was freed.

    >>> import minigrad as mg
    >>> x = mg.ones(1000, requires_grad=True)
    >>> y = x.sin().exp().sum()
    >>> memory = mg.graph_memory(y)
    >>> print(memory)
    operation  nodes  bytes  saved
    exp            1  4,000  float32 (1000,)
    sin            1      0  float32 (1000,)
    sum            1      0
    4,000 bytes held by 3 operations, and 4,000 that leaves hold
    """
    tensors = [outputs] if isinstance(outputs, TensorBase) else listed_tensors(_OP, outputs)
    for x in tensors:
        if not isinstance(x, TensorBase):
            raise TypeError(f"[{_OP}] expected a Tensor or a list of them, not {type(x).__name__}")
    nodes = topological_order([x._edge for x in tensors if type(x._edge) is Node])
    leaves = {
        p._h.buffer for node in nodes for p in node.parents or () if isinstance(p, TensorBase)
    }
    sizes = _sizes(x for node in nodes for x in _held(node))
    taken: set[Any] = set()
    counts: dict[tuple[Any, ...], list[int]] = {}
    for node in nodes:
        saved = list(_held(node))
        place = lines.of(node)
        line = None if place is None else f"{place[0]}:{place[1]}"
        texts = ", ".join([_text(x) for x in saved])
        count = counts.setdefault((node.op.name, line, texts), [0, 0])
        count[0] += 1
        new = {_key(x) for x in saved} - taken
        taken |= new
        count[1] += sum([sizes[key] for key in new - leaves])
    entries = [Entry(*of, *count) for of, count in counts.items()]
    entries.sort(key=lambda entry: -entry.bytes)
    return GraphMemory(entries, sum([sizes[key] for key in taken & leaves]), len(nodes))


_OP = "graph_memory"


def _sizes(held: Iterable[Any]) -> dict[Any, int]:
    sizes: dict[Any, int] = {}
    for x in held:
        key = _key(x)
        sizes[key] = max(sizes.get(key, 0), _bytes(x))
    return sizes


def _key(x: Any) -> Any:
    """The key by which memory is told apart."""
    return x.buffer if isinstance(x, Array) else ("foreign", id(x))


def _bytes(x: Any) -> int:
    if not isinstance(x, Array):
        return int(x.nbytes)
    if not x.size:
        return 0
    span = sum([abs(step) * (n - 1) for step, n in zip(x.strides, x.shape, strict=True)]) + 1
    return span * by_code[x.dtype].itemsize


def _text(x: Any) -> str:
    name = by_code[x.dtype].name if isinstance(x, Array) else str(getattr(x, "dtype", "bytes"))
    return f"{name} {tuple(getattr(x, 'shape', ()))}"


def _held(node: Node) -> Iterator[Any]:
    """The arrays that a node holds, and what else of known size."""
    yield from _arrays(node.saved)
    yield from _arrays(node.args)
    function = getattr(node.op, "function", None)  # of a Function: what its context keeps
    if function is not None:
        yield from _arrays(list(function.__dict__.values()))


# Objects on the tape that hold arrays, by the names of their classes, and where.
_HOLDERS = {
    "Packed": ("arrays",),
    "PackedArray": ("packed", "pin"),
    "PackedValues": ("_packed",),
    "SavedValues": ("_saved",),
    "_Part": ("args", "kwargs"),
    "_Unpack": ("pin",),
}


def _arrays(x: Any) -> Iterator[Any]:
    if isinstance(x, Array):
        yield x
    elif isinstance(x, TensorBase):
        yield x._h
    elif isinstance(x, Saved):
        for k in range(3):
            with suppress(RuntimeError):  # it was overwritten since
                if x.buffer(k):
                    yield saved_handle(x, k)
    elif isinstance(x, (tuple, list)):
        for item in x:
            yield from _arrays(item)
    elif isinstance(x, dict):
        yield from _arrays(list(x.values()))
    elif type(x).__name__ in _HOLDERS:
        yield from _arrays([getattr(x, name) for name in _HOLDERS[type(x).__name__]])
    elif isinstance(getattr(x, "nbytes", None), int):
        yield x
