"""Builds ops.md, the reference of all operations, from the operations themselves.

``python docs/reference.py [FOLDER]`` writes it into a folder, build/docs by default. The page is
not kept in the tree. Its text is docstrings, inspected signatures, and accuracy and exact values of
the op table. The samples of tests/helpers/samples show what an operation saves for backward.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "tests/helpers"))

from samples import CATALOGUE

import minigrad as mg
from minigrad import functions, linalg, random, special
from minigrad.nn import functional
from minigrad.ops import TABLE
from minigrad.ops.table import PLACES, Row
from minigrad.runtime.native import saved_handle
from minigrad.tape.node import Node

FOLDER = Path(__file__).parent.parent / "build" / "docs"
HEAD = """# The operations

Written by `docs/reference.py` from the operations themselves. Names, argument order and meaning are
PyTorch's; `import minigrad as mg`, and what has no prefix here is `mg.name`. Where a dimension is
taken, NumPy's `axis` and `keepdims` are accepted for `dim` and `keepdim`. Where a tensor is taken,
a number or an array does too. `x.name` is a method of tensors, `x.name_` one that writes into `x`.
Edge cases follow `docs/numerics.md`; a derivative that is infinite counts as such, but as 0
against an upstream gradient of exactly 0.

In formulas `x` is the input, or `a`, `b` and `c` are the inputs in order, and `y` is the result.

*Keeps* says which of these values a recorded call holds for its gradient; an operation
made of others lists what each of those keeps. Not listed are plain numbers, shapes, and the
positions of elements that were picked.

*Accuracy* is the largest error in units of the last place (ULP), on instruction sets with fused
multiply-add; the tests assert it. *Exactly* lists arguments and the results that they must have.
"""

# ---- which operations there are ------------------------------------------------------------------


def namespaces() -> Iterator[tuple[str, ModuleType]]:
    """Each topic's module, with the prefix of its public names."""
    for topic in functions.TOPICS:
        yield "", import_module(f"minigrad.functions.{topic}")
    yield "special.", special
    yield "linalg.", linalg
    for topic in functional.TOPICS:
        yield "nn.functional.", topic
    yield "", random


def title(topic: ModuleType) -> str:
    """The first line of a topic's docstring, as a heading."""
    line = (topic.__doc__ or topic.__name__).strip().splitlines()[0].rstrip(".")
    return re.sub(r",? as (a )?functions?\b.*|: functions\b.*|\. .*|``", "", line)


def sections() -> dict[str, dict[str, list[str]]]:
    """By title and name: the operations, each with the other names that it goes by."""
    names: dict[Callable[..., Any], list[str]] = defaultdict(list)
    found: dict[str, dict[str, list[str]]] = {}
    homes = {}
    for prefix, topic in namespaces():
        for name in topic.__all__:
            function = getattr(topic, name)
            if isinstance(function, FunctionType):
                names[function].append(prefix + name)
                homes.setdefault(function, title(topic))
    for function, known in names.items():
        own = function.__name__ if function.__name__ in known else known[0]
        found.setdefault(homes[function], {})[own] = [n for n in known if n != own]
    return found


def lookup(name: str) -> Callable[..., Any]:
    """An operation by its name with its prefix."""
    place, _, last = name.rpartition(".")
    spaces = {"": mg, "special": special, "linalg": linalg, "nn.functional": functional}
    return getattr(spaces[place], last)


# ---- what is said of one -------------------------------------------------------------------------


def signature(function: Callable[..., Any]) -> str:
    """The parameters, without annotations and without NumPy's spelling."""
    parts = [
        p.replace(annotation=p.empty)
        for p in inspect.signature(function).parameters.values()
        if not (p.kind is p.VAR_KEYWORD and p.name in ("numpy", "named"))
    ]
    return str(inspect.Signature(parts)).replace("minigrad.", "mg.")


def also(name: str, others: list[str]) -> str:
    """The methods that are the operation, and its other names."""
    plain = [n for n in (name, *others) if "." not in n and n in functions.__all__]
    methods = [f"x.{m}" for n in plain for m in (n, f"{n}_") if hasattr(mg.Tensor, m)]
    listed = ", ".join(f"`{n}`" for n in (*methods, *others))
    return f", also {listed}" if listed else ""


def description(function: Callable[..., Any]) -> str:
    """The docstring without its examples, as Markdown."""
    text = inspect.getdoc(function) or ""
    text = re.sub(r"(?m)^>>> .*(\n(?!\n).*)*\n?", "", text).strip()
    text = re.sub(r":(?:func|meth|class):`~?(?:minigrad\.)?([\w.]+)`", r"`\1`", text)
    text = text.replace("``", "`")
    parts = re.split(r"(`[^`]*`)", text)  # what is not code may look like markup
    parts[::2] = [re.sub(r"(<(?=[a-z/])|\*(?=\S)|\b_)", r"\\\1", part) for part in parts[::2]]
    return "".join(parts)


def recorded(results: list[Any]) -> Iterator[Node]:
    """The operations that results were made by."""
    stack, found = [y.grad_fn for y in results], set()
    while stack:
        node = stack.pop()
        if type(node) is Node and node not in found:
            found.add(node)
            stack += node.parents or ()
            yield node


def saved(node: Node, row: Row) -> list[str]:
    """The names of the values that one of them holds, but for plain numbers."""
    names = row.saves([p is not None for p in node.parents or ()])
    return [n for n in names if n == "y" or not saved_handle(node.saved, PLACES[n]).weak]


def kept(name: str) -> str:
    """What sample calls recorded: each operation, and what it saves."""
    samples = [sample.results() for sample in CATALOGUE[name]]
    if not any(y.requires_grad for results in samples for y in results):
        return "*No gradient.*"
    seen: dict[str, set[str]] = defaultdict(set)
    for results in samples:
        for node in recorded(results):
            if node.op.name in TABLE:
                seen[node.op.name].update(saved(node, TABLE[node.op.name]))
    own = name.rpartition(".")[2]
    parts = [", ".join(sorted(seen.pop(own)))] if seen.get(own) else []
    parts += [f"{op}: {', '.join(sorted(names))}" for op, names in sorted(seen.items()) if names]
    return f"*Keeps* {'; '.join(parts) or 'nothing'}."


def accuracy(row: Row) -> str:
    """The largest error in each float type."""
    single, double = row.accuracy
    if not single and not double:
        return "*Accuracy* correctly rounded."
    if single == double:
        return f"*Accuracy* {single} ULP."
    return f"*Accuracy* {single} ULP in float32, {double} in float64."


def entry(name: str, others: list[str]) -> str:
    """One operation."""
    function = lookup(name)
    facts = [kept(name)] if name in CATALOGUE else []
    row = TABLE.get(name.removeprefix("special.").removeprefix("nn.functional."))
    if row is not None and row.domain:
        facts.append(accuracy(row))
    if row is not None and row.special:
        exact = [f"{', '.join(map(str, case[:-1]))} → {case[-1]}" for case in row.special]
        facts.append(f"*Exactly* {'; '.join(exact)}.")
    call = f"`{name}{signature(function)}`{also(name, others)}"
    return "\n\n".join([f"### {name}", call, description(function), " ".join(facts)]).rstrip()


def link(name: str) -> str:
    """A name that leads to its entry."""
    return f"[{name.rpartition('.')[2]}](#{name.replace('.', '').lower()})"


def page() -> str:
    """The whole reference."""
    found = sections()
    contents = [
        f"**{heading}**: {' '.join(link(name) for name in sorted(operations))}"
        for heading, operations in found.items()
    ]
    parts = [HEAD.rstrip(), "## Contents", *contents]
    for heading, operations in found.items():
        parts.append(f"## {heading}")
        parts += [entry(name, others) for name, others in sorted(operations.items())]
    return "\n\n".join(parts) + "\n"


def write(folder: Path) -> Path:
    """Build the reference into a folder; returns the file."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "ops.md"
    path.write_text(page())
    return path


if __name__ == "__main__":
    print(write(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER))
