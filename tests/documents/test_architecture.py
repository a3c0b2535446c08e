"""Layers of the package and of the C sources: each file uses only what stands above it.

The layers are the rows of the tables in docs/design.md. Imports inside functions count as well.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
PACKAGE = ROOT / "minigrad"
DESIGN = (ROOT / "docs/design.md").read_text(encoding="utf-8")
ROWS = [line.split("|")[1:3] for line in DESIGN.splitlines() if line.startswith("| `")]
TOP = len(ROWS)


def _named(pattern, columns=slice(0, 2)):
    """By what is named in the table, by which pattern, the number of its row."""
    found = {}
    for k, row in enumerate(ROWS):
        for name in re.findall(pattern, "".join(row[columns])):
            found.setdefault(name, k)
    return found


FOLDERS = _named(r"`csrc/(\w+)`")
LAYERS = _named(r"`minigrad/(\w+)(?:\.py)?`", slice(0, 1))

# Imports of a higher layer: the importing module, what it imports, and the reason.
_METHOD = "body of a method, loaded when it is first called"
UPWARD = {
    ("tape.node", "autograd.expression"): _METHOD,
    ("tape.node", "autograd.graph"): _METHOD,
    ("_tensor.tensor", "array_api"): _METHOD,
    ("_tensor.late_methods", "autograd"): _METHOD,
    ("_tensor.tensor", "interop.dlpack"): _METHOD,
    ("_tensor.tensor", "interop.legacy"): _METHOD,
    ("_tensor.tensor", "interop.numpy_protocol"): _METHOD,
    ("_tensor.late_methods", "random"): _METHOD,
    ("nn.module", "compiler"): _METHOD,
    ("runtime.batched", "func.dispatch"): "rules of vmap; loaded with the first batched tensor",
    ("autograd", "checking"): "PyTorch has gradcheck in autograd too; loaded when first asked for",
}


def dotted(file):
    """The name of a module, within the package."""
    parts = file.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {dotted(file): file for file in sorted(PACKAGE.rglob("*.py"))}
TREES = {name: ast.parse(file.read_text(encoding="utf-8")) for name, file in MODULES.items()}
each = pytest.mark.parametrize("module", MODULES, ids=lambda name: name or "minigrad")


def layer(module):
    """The number of a module's layer; the package itself and its command stand on top."""
    return {"_native": 0, "_speed": 0}.get(module, LAYERS.get(module.partition(".")[0], TOP))


def for_checkers(node):
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def executed(node):
    """All nodes below one, but those that only type checkers read."""
    for child in ast.iter_child_nodes(node):
        if for_checkers(child):
            for other in child.orelse:
                yield other
                yield from executed(other)
            continue
        yield child
        yield from executed(child)


def run_at_import(node):
    """The nodes below one that run when their module is loaded."""
    for child in ast.iter_child_nodes(node):
        if for_checkers(child):
            continue
        yield child
        if not isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            yield from run_at_import(child)


def imported_from(module, node):
    """Modules that ``from home import names`` loads: the names that are modules, else the home."""
    home = node.module or ""
    if node.level:
        package = module if MODULES[module].name == "__init__.py" else module.rpartition(".")[0]
        parts = package.split(".") if package else []
        parts = parts[: len(parts) - node.level + 1]
        home = ".".join(["minigrad", *parts, *([home] if home else [])])
    if home.partition(".")[0] != "minigrad":
        return
    home = home.partition(".")[2]
    for name in node.names:
        full = f"{home}.{name.name}".lstrip(".")
        yield full if full in MODULES else home


def imports(module, nodes):
    """The modules of the package that these nodes of a module import."""
    for node in nodes:
        if isinstance(node, ast.ImportFrom):
            yield from imported_from(module, node)
        elif isinstance(node, ast.Import):
            for name in node.names:
                if name.name.partition(".")[0] == "minigrad":
                    yield name.name.partition(".")[2]
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            # The beginning counts of a name that is put together.
            name = node.args[0]
            parts = name.values if isinstance(name, ast.JoinedStr) else [name]
            text = parts[0].value if isinstance(parts[0], ast.Constant) else ""
            found = re.fullmatch(r"minigrad\.([\w.]+?)\.?", text)
            if found:
                yield found.group(1)


@pytest.mark.parametrize(
    "page",
    ["README.md", "CONTRIBUTING.md", "docs/design.md", "docs/numerics.md", "docs/adding-an-op.md"],
)
def test_files_that_a_document_names_are_there(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    named = set(
        re.findall(r"\b(?:minigrad|tests|csrc|docs|examples)/[\w/-]*\w\.(?:py|md|def|[ch])\b", text)
    )
    assert not [name for name in sorted(named) if not (ROOT / name).exists()]


def test_every_folder_of_tests_is_in_the_table():
    folders = {path.parent.name for path in (ROOT / "tests").glob("*/*.py")}
    assert folders == set(re.findall(r"`tests/(\w+)`", DESIGN))


def test_every_module_has_a_layer():
    rooms = {name.partition(".")[0] for name in MODULES} - {"", "__main__"}
    assert rooms == set(LAYERS)


@each
def test_imports_point_to_layers_above(module):
    found = set(imports(module, executed(TREES[module])))
    upward = {name for name in found if layer(name) > layer(module)}
    assert upward == {name for home, name in UPWARD if home == module}


def test_imports_at_load_have_no_circle():
    graph = {name: set(imports(name, run_at_import(tree))) - {name} for name, tree in TREES.items()}
    while True:
        done = {name for name, needs in graph.items() if not needs & graph.keys()}
        if not done:
            break
        graph = {name: needs for name, needs in graph.items() if name not in done}
    assert not graph, sorted(graph)


def set_on(node):
    """The objects of which a statement sets attributes."""
    if isinstance(node, ast.Call) and ast.unparse(node.func) == "setattr":
        yield node.args[0]
    targets = getattr(node, "targets", [getattr(node, "target", None)])
    for target in targets if isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign)) else []:
        for part in target.elts if isinstance(target, ast.Tuple) else [target]:
            if isinstance(part, ast.Attribute):
                yield part


def patched(module):
    """Attributes that a module sets, when it is loaded, on objects that it imported."""
    nodes = list(run_at_import(TREES[module]))
    imported = {
        name.asname or name.name.partition(".")[0]
        for node in nodes
        if isinstance(node, (ast.ImportFrom, ast.Import))
        for name in node.names
    }
    for node in nodes:
        for target in set_on(node):
            if ast.unparse(target).partition(".")[0] in imported:
                yield ast.unparse(target)


def test_no_module_patches_another():
    found = {(module, target) for module in MODULES for target in patched(module)}
    assert found == set()


@pytest.mark.parametrize("file", sorted((ROOT / "csrc").rglob("*.[ch]")), ids=lambda f: f.name)
def test_c_includes_what_stands_above(file):
    def row(path):
        folder = path.relative_to(ROOT / "csrc").parts[0]
        return FOLDERS.get(folder, TOP)

    for name in re.findall(r'#include "(.*\.h)"', file.read_text(encoding="utf-8")):
        beside, at_root = file.parent / name, ROOT / "csrc" / name
        path = (beside if beside.exists() else at_root).resolve()
        if path.name != "minigrad.h":  # which declares everything
            assert row(path) <= row(file), name
