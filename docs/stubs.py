"""Writes the type stubs of modules whose functions are made from the op table.

``python docs/stubs.py`` writes them; a test fails when they are not what this would write.
"""

from __future__ import annotations
import __future__

import ast
import inspect
import re
import sys
import typing
from functools import cache
from pathlib import Path
from types import FunctionType, ModuleType, NoneType

import minigrad as mg
from minigrad import elementwise, functions
from minigrad._tensor import Tensor
from minigrad.nn import functional

ROOT = Path(mg.__file__).parent
HEADER = "# Written by docs/stubs.py from the modules themselves: change those.\n"
# Where names come from that a module imports for type checkers only.
FOR_CHECKERS = {
    "Tensor": "minigrad._tensor",
    "Callable": "collections.abc",
    "Iterator": "collections.abc",
    "Iterable": "collections.abc",
    "Sequence": "collections.abc",
}
# Methods that share their name with a builtin type hide it in the rest of the class.
HIDDEN = {"float", "int", "bool"}
FACADES = ("minigrad", "minigrad.functions", "minigrad.nn.functional")
EXPORTED_AS = {
    "bool": "bool_",
    "double": "float64",
    "float": "float32",
    "half": "float16",
    "int": "int32",
    "short": "int16",
    "dtype": "DType",
    "long": "int64",
}  # what a facade names otherwise
SIMPLE = (type(None), bool, int, float, str)  # defaults that are written out


class Stub:
    """The text of one stub, and the names its annotations need."""

    def __init__(self, home: str) -> None:
        self.home = home
        self.imports: dict[str, set[str]] = {}
        self.lines: list[str] = []

    def annotation(self, given: object, function: FunctionType) -> str:
        """An annotation as text; what its names refer to is imported."""
        text = given if isinstance(given, str) else getattr(given, "__name__", repr(given))
        for name in re.findall(r"(?<![.\w])[A-Za-z_]\w*", re.sub(r"'[^']*'", "", text)):
            found = function.__globals__.get(name)
            if isinstance(found, type) and found.__module__.startswith("minigrad"):
                self.imported(found.__module__, found.__name__)
            elif name in FOR_CHECKERS:
                self.imported(FOR_CHECKERS[name], name)
            elif name == "np":
                self.imported("numpy", "np")
            elif hasattr(typing, name):
                self.imported("typing", name)
            elif isinstance(found, type):
                self.imported(found.__module__, found.__name__)
        return text

    def imported(self, module: str, name: str) -> None:
        """Note an import."""
        if module != self.home:
            self.imports.setdefault(module, set()).add(name)

    def signature(self, function: FunctionType, method: bool) -> str:
        """Parameters and result as they are written in a stub."""
        signature = inspect.signature(function)
        parameters = list(signature.parameters.values())
        parts, keyword_only = [], False
        for place, p in enumerate(parameters):
            if method and place == 0:
                parts.append("self" if p.name not in ("cls", "mcs") else p.name)
                continue
            if p.kind is p.KEYWORD_ONLY and not keyword_only:
                keyword_only = True
                if not any(q.kind is q.VAR_POSITIONAL for q in parameters[:place]):
                    parts.append("*")
            stars = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
            text = stars + p.name
            if p.annotation is not p.empty:
                text += f": {self.annotation(p.annotation, function)}"
            if p.default is not p.empty:
                default = repr(p.default) if type(p.default) in SIMPLE else "..."
                text += f" = {default}" if p.annotation is not p.empty else f"={default}"
            parts.append(text)
        result = "Any"
        if signature.return_annotation is not signature.empty:
            result = self.annotation(signature.return_annotation, function)
        else:
            self.imported("typing", "Any")
        return f"({', '.join(parts)}) -> {result}"

    def function(self, name: str, function: FunctionType, indent: str = "") -> None:
        """A function or a method, in each of its overloads."""
        if indent and name in ("__eq__", "__ne__"):
            self.lines.append(
                f"{indent}def {name}(self, other: Any) -> Tensor: ...  # type: ignore[override]"
            )
            return
        found = overloads(function)
        for form in found or [function]:
            if found:
                self.imported("typing", "overload")
                self.lines.append(f"{indent}@overload")
            head = f"{indent}def {name}{self.signature(form, bool(indent))}:"
            self.lines.append(head + self.body(function, indent))

    def body(self, documented: object, indent: str) -> str:
        """The first paragraph of a docstring as a body, or three dots."""
        text = first_paragraph(documented)
        if not text:
            return " ..."
        inside = text.replace("\n", f"\n{indent}    ")
        return f'\n{indent}    """{inside}"""'

    def text(self) -> str:
        """The whole stub."""
        head = [HEADER]
        if self.home == "minigrad._tensor":
            head.append("import builtins\n")
        for module in sorted(self.imports):
            names = ", ".join(sorted(self.imports[module]))
            head.append(
                "import numpy as np\n" if module == "numpy" else f"from {module} import {names}\n"
            )
        return "".join(head) + "\n" + "\n".join(self.lines) + "\n"


def first_paragraph(documented: object) -> str:
    """The first paragraph of a docstring."""
    text = inspect.getdoc(documented) or ""
    return text.split("\n\n")[0].replace("\\", "\\\\")


@cache
def overloaded(module: str) -> dict[str, list[FunctionType]]:
    """The forms that a module's source gives of its functions for type checkers."""
    home = sys.modules[module]
    found: dict[str, list[FunctionType]] = {}
    for item in ast.parse(inspect.getsource(home)).body:
        if isinstance(item, ast.FunctionDef) and any(
            isinstance(d, ast.Name) and d.id == "overload" for d in item.decorator_list
        ):
            item.decorator_list = []
            space = dict(vars(home))
            flags = __future__.annotations.compiler_flag
            code = compile(ast.Module([item], []), module, "exec", flags, True)
            exec(code, space)
            found.setdefault(item.name, []).append(space[item.name])
    return found


def overloads(function: FunctionType) -> list[FunctionType]:
    """The forms of a function for type checkers; none where it has one."""
    module = function.__module__
    return overloaded(module).get(function.__name__, []) if module in sys.modules else []


def tensor_stub() -> str:
    """``_tensor.pyi``: the class with all its methods."""
    stub = Stub("minigrad._tensor")
    stub.imported("minigrad.tape.tensor_base", "TensorBase")
    stub.imported("typing", "Any")
    stub.lines += ['__all__ = ["Tensor"]', "", f"class Tensor(TensorBase):{stub.body(Tensor, '')}"]
    for name in vars(Tensor):
        getattr(Tensor, name)  # methods that wait are made
    for name, member in vars(Tensor).items():
        if isinstance(member, property):
            assert isinstance(member.fget, FunctionType)
            result = stub.annotation(member.fget.__annotations__.get("return", "Any"), member.fget)
            body = stub.body(member, "    ")
            stub.lines += ["    @property", f"    def {name}(self) -> {result}:{body}"]
            if member.fset is not None:
                stub.lines += [
                    f"    @{name}.setter",
                    f"    def {name}(self, value: Any) -> None: ...",
                ]
        elif isinstance(member, (classmethod, staticmethod)):
            kind = "classmethod" if isinstance(member, classmethod) else "staticmethod"
            if name == "__new__":
                stub.function(name, member.__func__, "    ")
                continue
            stub.lines.append(f"    @{kind}")
            stub.function(name, member.__func__, "    ")
        elif isinstance(member, FunctionType):
            stub.function(name, member, "    ")
    lines = "\n".join(stub.lines).split("\n")
    stub.lines = [unhidden(line) if line.startswith("    def ") else line for line in lines]
    return stub.text()


def unhidden(line: str) -> str:
    """The line of a method with the builtin types that other methods hide."""
    for name in HIDDEN & set(vars(Tensor)):
        line = re.sub(rf"(?<=[:>\[|] ){name}\b|(?<=[\[]){name}\b", f"builtins.{name}", line)
    return line


def module_stub(module: ModuleType) -> str:
    """The stub of a module of functions, some of which are made from rows."""
    stub = Stub(module.__name__)
    own = [
        name
        for name, value in sorted(vars(module).items())
        if isinstance(value, FunctionType) and value.__module__ == module.__name__
    ]
    stub.lines += ["__all__ = [", *(f'    "{n}",' for n in module.__all__), "]", ""]
    for name in own:
        if not name.startswith("_"):
            stub.function(name, getattr(module, name))
    return stub.text()


def home_of(name: str, value: object, facade: ModuleType) -> str:
    """The module that defines what a facade hands on."""
    homes = [
        module.__name__
        for module in list(sys.modules.values())
        if module.__name__.startswith("minigrad")
        and module.__name__ not in FACADES
        and vars(module).get(EXPORTED_AS.get(name, name)) is value
    ]
    own = getattr(value, "__module__", None)
    if own in homes:
        return str(own)
    real = EXPORTED_AS.get(name, name)
    exporting = [h for h in homes if real in getattr(sys.modules[h], "__all__", ("__version__",))]
    topics = [f"minigrad.{topic}" for topic in functions.TOPICS]
    topics += [topic.__name__ for topic in functional.TOPICS]
    exporting.sort(key=lambda home: (home not in topics, home))
    return (exporting or homes or [facade.__name__])[0]


def kind(value: object) -> str:
    """The class of a plain value, whose name a facade may use otherwise."""
    return "None" if value is None else f"builtins.{type(value).__name__}"


def facade_stub(module: ModuleType) -> str:
    """The stub of a module that gathers others': what it hands on, and from where."""
    found: dict[str, list[str]] = {}
    values = {name: getattr(module, name) for name in module.__all__}
    own = {n: v for n, v in values.items() if isinstance(v, (float, str, NoneType))}
    for name in sorted(set(module.__all__) - set(own)):
        value = getattr(module, name)
        of_package = isinstance(value, ModuleType)
        home = value.__name__.rpartition(".")[0] if of_package else home_of(name, value, module)
        found.setdefault(home, []).append(name)
    lines = []
    for home, names in sorted(found.items()):
        if set(getattr(sys.modules[home], "__all__", ())) <= set(names):
            lines.append(f"from {home} import *")
        else:
            lines += [f"from {home} import {EXPORTED_AS.get(n, n)} as {n}" for n in names]
    constants = [n for n in vars(module) if n.isupper() and not n.startswith("_")]
    plain = [f"{n}: {kind(own[n])}" for n in sorted(own)]
    lines = [
        "import builtins",
        "from typing import Any",
        *lines,
        "",
        *(f"{n}: Any" for n in constants),
        *plain,
    ]
    lines.append("__all__: list[str]")
    return HEADER + "\n".join(lines) + "\n"


def stubs() -> dict[Path, str]:
    """Every stub: where it goes, and its text."""
    return {
        ROOT / "_tensor.pyi": tensor_stub(),
        ROOT / "elementwise.pyi": module_stub(elementwise),
        ROOT / "functions.pyi": facade_stub(functions),
        ROOT / "nn" / "functional" / "__init__.pyi": facade_stub(functional),
        ROOT / "__init__.pyi": facade_stub(mg),
    }


if __name__ == "__main__":
    for path, text in stubs().items():
        path.write_text(text)
