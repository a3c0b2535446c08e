"""Writes docs/ops.md, the reference of all operations, from the operations themselves.

``python docs/reference.py`` writes it; a test fails when it is not what this would write. What is
said of an operation is its docstring; its signature is inspected; what it keeps for backward is
observed by running the sample calls of tests/samples.py; accuracy and exact values come from the op
table.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

import samples

import minigrad as mg
from minigrad import functions, linalg, random, special
from minigrad.nn import functional
from minigrad.ops import TABLE
from minigrad.tape import Node

PAGE = Path(__file__).parent / "ops.md"
HEAD = """# The operations

Written by `docs/reference.py` from the operations themselves. Names, argument order and meaning are
PyTorch's; NumPy's `axis` and `keepdims` are accepted for `dim` and `keepdim`. `import minigrad as mg`;
what is listed without a prefix is `mg.name` and, where its first argument is a tensor, a method too.

*Keeps* says what a recorded call holds for its gradient: `x`, `a`, `b`, `c` are inputs, `y` a result;
operations made of others list what those keep. *Accuracy* is the largest error in units of the last
place (ULP), on instruction sets with fused multiply-add, and is asserted by the tests; 0 is correctly
rounded. Edge cases follow [numerics.md](numerics.md).
"""


def namespaces() -> Iterator[tuple[str, ModuleType]]:
    """Each topic's module, with the prefix of its public names."""
    for topic in functions.TOPICS:
        yield "", topic
    yield "special.", special
    yield "linalg.", linalg
    for topic in functional.TOPICS:
        yield "nn.functional.", topic
    yield "", random


def public(prefix: str, topic: ModuleType) -> list[str]:
    """The operations of a topic that are not another namespace's under the same name."""
    names = [n for n in topic.__all__ if isinstance(getattr(topic, n), FunctionType)]
    if not prefix:
        return names
    return [n for n in names if getattr(topic, n) is not getattr(functions, n, None)]


def signature(function: Callable[..., Any]) -> str:
    """The parameters, without annotations."""
    parts = []
    for p in inspect.signature(function).parameters.values():
        if p.name == "numpy" and p.kind is p.VAR_KEYWORD:
            continue  # NumPy's spelling, said once in the head
        parts.append(p.replace(annotation=p.empty))
    return str(inspect.Signature(parts))


def description(function: Callable[..., Any]) -> str:
    """The docstring without its examples."""
    text = inspect.getdoc(function) or ""
    kept = re.sub(r"(?m)^>>> .*(\n(?!\n).*)*\n?", "", text).strip()
    kept = re.sub(r":(?:func|meth|class):`~?(?:minigrad\.)?([\w.]+)`", r"`\1`", kept)
    return kept.replace("``", "`")


def kept(function_name: str) -> str | None:
    """What sample calls recorded: each operation, and the names of what it saves."""
    seen: dict[str, None] = {}
    for sample in samples.CATALOGUE.get(function_name, ()):
        for result in sample.results():
            stack, found = [result.grad_fn], set()
            while stack:
                node = stack.pop()
                if type(node) is not Node or node in found:
                    continue
                found.add(node)
                row = TABLE.get(node.name)
                if row is not None:
                    names = ", ".join(row.saves([p is not None for p in node.parents or ()]))
                    if names:
                        seen.setdefault(f"{node.name}({names})")
                stack += node.parents or ()
    if not seen:
        return "nothing" if function_name in samples.CATALOGUE else None
    own = f"{function_name}("
    if len(seen) == 1 and next(iter(seen)).startswith(own):
        return next(iter(seen)).removeprefix(own).removesuffix(")")
    return ", ".join(sorted(seen))


def entry(prefix: str, name: str, function: Callable[..., Any]) -> str:
    """One operation."""
    lines = [f"### `{prefix}{name}{signature(function)}`", "", description(function), ""]
    row = TABLE.get(name) if not prefix else None
    facts = []
    keeps = kept(prefix + name)
    if keeps is not None:
        facts.append(f"*Keeps* {keeps}.")
    if row is not None and row.accuracy is not None:
        facts.append(f"*Accuracy* {row.accuracy} ULP.")
    if row is not None and row.special:
        exact = "; ".join(
            f"{', '.join(map(str, values[:-1]))} → {values[-1]}" for values in row.special
        )
        facts.append(f"*Exactly* {exact}.")
    if facts:
        lines += [" ".join(facts), ""]
    return "\n".join(lines)


def page() -> str:
    """The whole reference."""
    mg.manual_seed(0)
    parts = [HEAD]
    for prefix, topic in namespaces():
        names = public(prefix, topic)
        title = (topic.__doc__ or topic.__name__).strip().splitlines()[0].rstrip(".")
        parts.append(f"## {title}\n")
        parts += [entry(prefix, name, getattr(topic, name)) for name in sorted(names)]
    return "\n".join(parts).rstrip() + "\n"


if __name__ == "__main__":
    PAGE.write_text(page())
