"""``nn.summary``: a table of a model's layers with shapes, parameters and FLOPs."""

from __future__ import annotations

from threading import get_ident
from typing import Any, NamedTuple

from minigrad.functions.grad_modes import no_grad
from minigrad.nn.calls import (
    ModuleCall,
    check_depth,
    run_model,
    shapes_of,
    unchanged,
    watched_calls,
)
from minigrad.nn.module import Module
from minigrad.runtime.costs import cost
from minigrad.runtime.native import trace

__all__ = ["summary"]


class LayerRow(NamedTuple):
    """A module that was called: how often, its last output, and what it and those within it cost.

    ``parameters`` counts elements. It is None for a module whose row stands above already.
    """

    name: str
    kind: str
    level: int
    calls: int
    output: list[tuple[int, ...]]
    parameters: int | None
    flops: int


class Summary:
    """The rows of a table of layers, and totals of the model. ``print`` shows the table."""

    def __init__(self, rows: list[LayerRow], model: Module, flops: int) -> None:
        self.rows = rows
        parameters = list(model.parameters())
        self.parameters = sum([p.size for p in parameters])
        self.trainable = sum([p.size for p in parameters if p.requires_grad])
        self.parameter_bytes = sum([p.size * p.dtype.itemsize for p in parameters])
        self.buffers = sum([b.size for b in model.buffers()])
        self.flops = flops

    def __repr__(self) -> str:
        return f"<summary of {len(self.rows)} layers, {self.parameters:,} parameters>"

    def __str__(self) -> str:
        table = [("layer", "output shape", "parameters", "FLOPs")]
        for row in self.rows:
            name = f"{row.name.rpartition('.')[2]}: " if row.name else ""
            times = f" x {row.calls}" if row.calls > 1 else ""
            count = "shared" if row.parameters is None else f"{row.parameters:,}"
            shapes = ", ".join(map(str, row.output))
            layer = f"{'  ' * row.level}{name}{row.kind}{times}"
            table.append((layer, shapes, count, f"{row.flops:,}"))
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        lines = []
        for row_texts in table:
            a, b, c, d = (
                text.ljust(width) if i < 2 else text.rjust(width)
                for i, (text, width) in enumerate(zip(row_texts, widths, strict=True))
            )
            lines.append(f"{a}  {b}  {c}  {d}".rstrip())
        lines.insert(1, "  ".join(["-" * width for width in widths]))
        fixed = self.parameters - self.trainable
        lines += [
            f"parameters: {self.parameters:,}, of which {fixed:,} do not require grad",
            f"memory of parameters: {self.parameter_bytes:,} bytes",
            f"FLOPs of a forward: {self.flops:,}",
        ]
        if self.buffers:
            lines.insert(-2, f"elements of buffers: {self.buffers:,}")
        return "\n".join(lines)


def summary(
    model: Module, input: Any = None, *, depth: int | None = None, quiet: bool = False
) -> Summary:
    """Run a model once on ``input``, and print its layers with shapes, parameters and FLOPs.

    ``input`` is a tensor, a tuple or list of arguments, or a dict of keyword arguments. A dict that
    does not fit the names of forward is the one argument. Modules down to ``depth`` levels are
    listed, all if it is None. A module that another one calls several times has one row. Counts of
    a row are those of the module and of all within it. FLOPs are counted by the kernels that run: a
    multiplication and an addition are two.

    The model runs in eval mode and records nothing. Its mode, its buffers and the random generator
    are as before. Returns the rows and totals; nothing is printed if ``quiet``. Raises TypeError if
    ``model`` is no module, ValueError for a negative ``depth``.

    >>> import minigrad as mg
    >>> model = mg.nn.Sequential(mg.nn.Linear(4, 8), mg.nn.ReLU(), mg.nn.Linear(8, 2))
    >>> table = mg.nn.summary(model, mg.ones(3, 4))
    layer        output shape  parameters  FLOPs
    -----------  ------------  ----------  -----
    Sequential   (3, 2)                58    342
      0: Linear  (3, 8)                40    216
      1: ReLU    (3, 8)                 0     24
      2: Linear  (3, 2)                18    102
    parameters: 58, of which 0 do not require grad
    memory of parameters: 232 bytes
    FLOPs of a forward: 342
    >>> table.flops
    342
    """
    if not isinstance(model, Module):
        raise TypeError(f"[summary] expected a Module, not {type(model).__name__}")
    check_depth("summary", depth)
    modes = [(module, module.training) for module in model.modules()]
    thread = get_ident()
    try:
        model.eval()
        with unchanged(model), no_grad(), watched_calls(model) as (calls, stack):

            def count(name: str, args: tuple[Any, ...], made: Any) -> None:
                if stack and get_ident() == thread:
                    stack[-1].flops += cost(name, args, made)[1]

            with trace(count):
                run_model(model, input)
    finally:
        for module, training in modes:
            module.training = training
    rows = _rows(calls, depth)
    found = Summary(rows, model, sum([call.flops for call in calls]))
    if not quiet:
        print(found)
    return found


class _Group:
    """The calls of one module from within one call of another, or calls of that."""

    def __init__(self, call: ModuleCall, level: int) -> None:
        self.call = call
        self.level = level
        self.calls = 0
        self.flops = 0
        self.inner: dict[int, _Group] = {}  # by the id of the module, in order

    def add(self, call: ModuleCall) -> None:
        self.call = call
        self.calls += 1


def _rows(calls: list[ModuleCall], depth: int | None) -> list[LayerRow]:
    """A row for each module that was called, below that which called it."""
    top: dict[int, _Group] = {}
    for call in calls:
        groups = top
        chain = call.around()
        for outer in chain:
            group = groups.setdefault(id(outer.module), _Group(outer, outer.level))
            group.flops += call.flops
            groups = group.inner
        group.add(call)
    rows: list[LayerRow] = []
    _list(top, depth, set(), rows)
    return rows


def _list(
    groups: dict[int, _Group], depth: int | None, seen: set[int], rows: list[LayerRow]
) -> None:
    for group in groups.values():
        call = group.call
        if depth is not None and group.level > depth:
            return
        again = id(call.module) in seen
        seen.add(id(call.module))
        parameters = sum([p.size for p in call.module.parameters()])
        rows.append(
            LayerRow(
                call.name,
                type(call.module).__name__,
                group.level,
                group.calls,
                shapes_of(call.output),
                None if again and parameters else parameters,
                group.flops,
            )
        )
        _list(group.inner, depth, seen, rows)
