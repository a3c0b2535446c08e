"""Generator of the functions behind ``mg_run``: one thunk for each operation of ``ops.def``.

A thunk takes arrays, integers and floats in the order of the operation's parameters, and calls the
kernel. ``generate()`` returns C source, which the build compiles as part of the extension module.
"""

import re
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
ENTRY = re.compile(
    r'^MG_(KERNEL|CORE|FAMILY)\(([^,]+), (\w+),\s+\(([^)]*)\)(?:,\s*"([^"]+)")?\)'
    r'|^MG_OP\((\w+), (\w+), (\w+), "([^"]+)"\)',
    re.MULTILINE,
)
RESULTS = {"mg_array *": "1", "mg_arrays *": "n", "mg_status": "s", "mg_answer": "?"}
ARRAYS = {"mg_array *": "a", "mg_stored *": "s", "mg_maybe *": "m"}
LISTS = {
    "mg_array **": "A",
    "mg_stored **": "S",
    "mg_maybe **": "A",
    "mg_optional **": "A",
    "int32_t *": "I",
    "int64_t *": "L",
    "double *": "D",
}
ARRAY_LISTS = ("mg_array **", "mg_stored **", "mg_maybe **", "mg_optional **")
GEOMETRIES = ("mg_windows *", "mg_conv *")
NUMBERS = {
    "int": "(int)op_int(*ints++)",
    "int64_t": "*ints++",
    "double": "*floats++",
    "float": "(float)*floats++",
}
ADDRESSES = ("uint64_t *", "void *")


class Operation(NamedTuple):
    """An operation: its names, its parameters and the kernel that computes it."""

    name: str
    title: str  # the name in error messages
    result: str
    kernel: str
    parameters: tuple[tuple[str, str], ...]  # type and name of each
    constant: str | None  # the kernel's first argument, if it has several operations


def _parameters(text: str) -> tuple[tuple[str, str], ...]:
    pairs = []
    for part in re.sub(r"\s+", " ", text).split(", "):
        found = re.fullmatch(r"(?:const )?(\w+(?: \**)?)(\w+)", part)
        if found is None:
            raise RuntimeError(f"ops.def: what is the parameter {part!r}?")
        pairs.append((found.group(1).strip(), found.group(2)))
    return tuple(pairs)


def operations() -> list[Operation]:
    """The operations of ``ops.def``, in order."""
    found: list[Operation] = []
    families: dict[str, tuple[str, tuple[tuple[str, str], ...]]] = {}
    for entry in ENTRY.finditer((HERE / "ops.def").read_text(encoding="utf-8")):
        kind, result, kernel, parameters, title, *of_family = entry.groups()
        if kind == "FAMILY":
            families[kernel] = result, _parameters(parameters)
        elif kind:
            name = kernel.removeprefix("mg_")
            found.append(Operation(name, title, result, kernel, _parameters(parameters), None))
        else:
            name, kernel, constant, title = of_family
            result, (_, *rest) = families[kernel]
            found.append(Operation(name, title, result, kernel, tuple(rest), constant))
    return found


def _call(op: Operation) -> tuple[str, list[str], list[str]]:
    """The signature of an operation, the lines before the call, and the kernel's arguments."""
    signature, before, passed, counts = "", [], [], ""
    if op.constant:
        passed.append(op.constant)
    rest = list(op.parameters)
    while rest:
        kind, name = rest.pop(0)
        if kind == "int" and rest and rest[0][0] in LISTS:  # the length of the next list
            passed.append(f"(int){name}")
            counts, new = name, True
            kind, listed = rest.pop(0)
        else:
            listed, new = name, False
        if kind in LISTS:
            signature += LISTS[kind]
            number = name if new else f"{listed}_count"
            before.append(f"int64_t {number} = *ints++;")
            arrays = kind in ARRAY_LISTS
            if not new:
                left_out = f" && {number} >= 0" * (kind == "mg_optional **")
                length = counts or "first[0]->ndim"
                before.append(f"if ({number} != {length}{left_out}) goto misfit;")
            elif arrays:
                before.append(f"if ({number} < 0) goto misfit;")
            passed.append(listed)
            length = f"({number} > 0 ? {number} : 0)"
            if arrays:
                before.append(f"mg_array **{listed} = {number} < 0 ? NULL : (mg_array **)in;")
                if kind != "mg_maybe **":
                    before.append(f"if (!op_all_there({listed}, {number})) goto misfit;")
                before.append(f"in += {length};")
            elif kind == "double *":
                before.append(f"const double *{listed} = floats;")
                before.append(f"floats += {length};")
            elif kind == "int64_t *":
                before.append(f"const int64_t *{listed} = ints;")
                before.append(f"ints += {length};")
            else:
                before.append(f"int32_t {listed}[MG_MAX_NDIM + 1];")
                before.append(f"ints = op_axes(ints, &{number}, {listed});")
        elif kind in GEOMETRIES:
            signature += "L"
            kind = kind.removesuffix(" *")
            before.append(f"{kind} {name};")
            before.append(
                f"if (!op_read_{kind.removeprefix('mg_')}(ints + 1, *ints, &{name})) goto misfit;"
            )
            before.append("ints += 1 + *ints;")
            passed.append(f"&{name}")
        else:
            if kind in ARRAYS:
                signature += ARRAYS[kind]
                value = f"mg_array *{name} = *in++;"
            elif kind == "mg_saved *":
                signature += "k"
                value = f"mg_saved *{name} = args->saved;"
            elif kind in ADDRESSES:
                signature += "p"
                value = f"{kind}{name} = ({kind})(intptr_t)*ints++;"
            else:
                signature += "d" if kind in ("double", "float") else "i"
                value = f"{kind} {name} = {NUMBERS[kind]};"
            before.append(value)
            passed.append(name)
    return signature, before, passed


def _thunk(op: Operation) -> tuple[str, str]:
    """The signature of an operation, and the function that calls its kernel."""
    signature, before, passed = _call(op)
    call = f"{op.kernel}({', '.join(passed)})"
    end = {
        "mg_array *": f"return op_made(out, {call});",
        "mg_arrays *": f"return op_made_several(out, {call});",
    }.get(op.result, f"return {call};")
    misfit = ["misfit:", "    return mg_fail_code(MG_EARG, 0, 0);"] * any(
        "misfit" in line for line in before
    )
    lines = [
        f"static int op_{op.name}(mg_array *const *in, const mg_args *args, mg_arrays *out) {{",
        "    const int64_t *ints = args->ints;",
        "    const double *floats = args->floats;",
        "    mg_array *const *first = in;",
        *[f"    {line}" for line in before],
        "    (void)in, (void)first, (void)ints, (void)floats, (void)out;",
        f"    {end}",
        *misfit,
        "}",
    ]
    return f"{signature}:{RESULTS[op.result]}", "\n".join(lines)


def generate() -> str:
    """The thunks, and the table of them."""
    table, functions = [], []
    for op in operations():
        signature, function = _thunk(op)
        functions.append(function)
        table.append(f'    {{"{op.name}", "{op.title}", "{signature}", op_{op.name}}},')
    return (
        "\n\n".join(functions)
        + "\n\nstatic const op_entry op_table[] = {\n"
        + "\n".join(table)
        + "\n};\n"
    )


if __name__ == "__main__":
    print(generate())
