"""Recorded calls as C: a folder with the program, the kernels and a main, built without Python."""

from __future__ import annotations

import runpy
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from minigrad._compile.file_format import bytes_of
from minigrad._compile.saving import Description, refuse
from minigrad.runtime.native import ffi, lib, names
from minigrad.runtime.native import isa as isa_in_use

__all__ = ["write_c"]

_HERE = Path(__file__).resolve().parent
# The flags of csrc/build.py that decide about values, and the instruction sets.
_FLAGS = (
    "-std=gnu11 -D_GNU_SOURCE -fno-math-errno -fno-trapping-math -ffp-contract=off "
    "-fvisibility=hidden -pthread"
)
_ISA_FLAGS = {
    "baseline": "",
    "neon": "",
    "avx2": "-mavx2 -mfma -mbmi2",
    "avx512": "-mavx512f -mavx512bw -mavx512dq -mavx512vl -mfma -mbmi2 -mprefer-vector-width=512",
}
# Compiled for an instruction set.
_KERNELS = ("csrc/kernels/", "csrc/vmath/", "csrc/isa/table.c")
_COUNTS = {"adam_step": (1,)}  # which integers of an optimizer's step count the steps


def write_c(recorded: Any, folder: Path, csrc: Any, isa: str | None) -> None:
    """Write a recorded call as C. Raises ValueError for what it cannot do in C."""
    sources = _found(csrc)
    chosen = isa_in_use if isa is None else isa
    if chosen not in _ISA_FLAGS:
        raise ValueError(f"[to_c] isa is {chosen!r}: choose one of {', '.join(_ISA_FLAGS)}")
    made = Description(recorded)
    if made.program["draws"]:
        raise ValueError("[to_c] the program draws random numbers, which the C program cannot do")
    text = _data(recorded, made)
    folder.mkdir(parents=True, exist_ok=True)
    kept = shutil.ignore_patterns("python", "*.py", "__pycache__")
    shutil.copytree(sources, folder / "csrc", ignore=kept, dirs_exist_ok=True)
    thunks = runpy.run_path(str(sources / "thunks.py"))["generate"]()
    included = f'#include "program/run.h"\n\n{thunks}\n#include "program/run.c"\n'
    head = "/* thunks.c: the functions behind mg_run, made from csrc/ops.def. */\n"
    (folder / "thunks.c").write_text(head + included, "utf-8")
    (folder / "program_data.c").write_text(text, "utf-8")
    for name in ("program_data.h", "main.c"):
        shutil.copyfile(_HERE / "c" / name, folder / name)
    units = sorted(
        file.relative_to(folder).as_posix()
        for file in (folder / "csrc").rglob("*.c")
        if not file.name.endswith(".inc.c") and file.name != "run.c"
    )
    units += ["thunks.c", "program_data.c", "main.c"]
    (folder / "Makefile").write_text(_makefile(units, chosen), "utf-8")


def _found(csrc: Any) -> Path:
    """The folder of the C sources."""
    found = Path(csrc) if csrc is not None else _HERE.parent.parent / "csrc"
    if not (found / "ops.def").is_file():
        raise ValueError(
            f"[to_c] {found} has no C sources, which an installed package lacks: unpack the source "
            "distribution of this version (pip download --no-binary minigrad --no-deps minigrad), "
            "and give its folder as csrc="
        )
    operations = runpy.run_path(str(found / "thunks.py"))["operations"]()
    own = [operation.name for operation in operations]
    if names[-len(own) :] != own:
        raise ValueError(f"[to_c] {found} is of another version: give the sources of this one")
    return found


def _makefile(units: list[str], isa: str) -> str:
    kernels = [u for u in units if u.startswith(_KERNELS)]
    others = [u for u in units if u not in kernels]

    def objects(some: list[str]) -> str:
        return " \\\n    ".join(f"build/{unit[:-2]}.o" for unit in some)

    return (
        "# Builds the program with a C compiler alone: make, or make -j4 CC=clang.\n"
        f"CC = cc\nOPTIMIZE = -O3\nFLAGS = {_FLAGS} -Icsrc -I.\n"
        f"KERNELS = {objects(kernels)}\nOTHERS = {objects(others)}\n\n"
        "program: $(KERNELS) $(OTHERS)\n\t$(CC) -pthread -o $@ $(KERNELS) $(OTHERS) -lm\n\n"
        f"$(KERNELS): FLAGS += -DMG_ISA={isa} {_ISA_FLAGS[isa]}\n"
        f"build/csrc/isa/isa.o: FLAGS += '-DMG_ISAS=MG_EACH_ISA({isa})'\n\n"
        "build/%.o: %.c\n\t@mkdir -p $(dir $@)\n\t$(CC) $(FLAGS) $(OPTIMIZE) -c -o $@ $<\n\n"
        "clean:\n\trm -rf build program\n"
    )


# ---- the data ------------------------------------------------------------------------------------


def _data(recorded: Any, made: Description) -> str:
    """The text of program_data.c."""
    program = recorded.program
    moves = [step for step in program.steps if step.move is not None]
    ints: list[int] = []
    floats: list[float] = []
    counts: list[int] = []
    for step in moves:
        move, reals = step.move.renew(), len(step.floats)
        if move is None:
            raise refuse("an option of an optimizer asks for other kernels now")
        counts += [len(ints) + k for k in _COUNTS.get(step.name, ())]
        floats += [float(x) for x in move.options[:reals]]
        ints += [int(x) for x in move.options[reals:]]
    arrays: dict[str, int] = {}
    blobs: list[str] = []

    def blob(name: str) -> int:
        if name not in arrays:
            arrays[name] = len(arrays)
            values = bytes_of(made.arrays[name])
            blobs.append(_bytes(arrays[name], name, values))
        return arrays[name]

    given = [_source(source, recorded, made, blob) for source in made.program["given"]]
    given = [
        f"    {{{source}, {_array(look)}}}"
        for source, look in zip(given, program.looks, strict=True)
    ]
    state: list[int] = [
        next((k for k, s in enumerate(made.program["given"]) if s.get("state") == n), -1)
        for n in range(len(made.state))
    ]
    grads = {s["grad"]: k for k, s in enumerate(made.program["given"]) if "grad" in s}
    left: list[tuple[int, int]] = []
    for target, place in made.program["grads"]:
        if "argument" not in target and target["state"] in grads and place is not None:
            left.append((grads[target["state"]], place))
    left += [(state[t["state"]], place) for t, place in made.program["moved"] if "state" in t]
    shown = list(_places(made.program["outputs"], made.program["given"]))
    used = sorted({step.number for step in program.steps})
    kernels = [f'    {{{k}, "{_run_name(k)}"}}' for k in used]
    return "\n\n".join(
        [
            "/* program_data.c: the program, its constants and its state, as program_data.h has "
            "them. */\n"
            '#include "program_data.h"',
            *blobs,
            _list("int64_t", "program_code", program.code),
            _list("double", "program_floats", [_real(x) for x in program.floats]),
            _list("int64_t", "program_live_ints", ints, ""),
            _list("double", "program_live_floats", [_real(x) for x in floats], ""),
            _list("int32_t", "program_counts", counts),
            _list("int64_t", "program_results", program.results),
            _rows("program_given_array", "program_given_arrays", given),
            _rows("program_pair", "program_left", [f"    {{{a}, {b}}}" for a, b in left]),
            _rows("program_pair", "program_shown", [f"    {{{a}, {b}}}" for a, b in shown]),
            _rows("program_kernel", "program_kernels", kernels),
            f"const int32_t program_arguments = {len(recorded._arguments)};\n"
            f"const int32_t program_operations = {len(names)};\n",
        ]
    )


def _run_name(number: int) -> str:
    """The name of a kernel in C, which is one for an elementwise operation and its derivative."""
    return str(ffi.string(lib.mg_run_name(number)).decode())


def _source(
    source: dict[str, Any], recorded: Any, made: Description, blob: Callable[[str], int]
) -> str:
    """Where a given array comes from: an argument, or bytes and the order of axes."""
    if "argument" in source:
        look = recorded.program.looks[recorded._arguments.index(source["argument"])]
        if list(look[2]) != _row_major(look[1]) and 0 not in look[1]:
            raise refuse("an argument was not contiguous in the recorded call")
        return "NULL, 0, {0}"
    if "argument_grad" in source:
        raise refuse("the program reads the grad of an argument")
    if "constant" in source:
        name, order, weak = source["constant"], source["order"], int(source["weak"])
    elif "state" in source:
        entry = made.state[source["state"]]
        name, order, weak = entry["name"], entry["order"], 0
    else:
        entry = made.state[source["grad"]]
        name, order, weak = entry["grad"], entry["order_of_grad"], 0
    axes = [order.index(d) for d in range(len(order))]
    return f"data_{blob(name)}, {weak}, {{{', '.join(map(str, axes or [0]))}}}"


def _array(look: Any) -> str:
    dtype, shape, _, _ = look
    return f"{dtype}, {len(shape)}, {{{', '.join(map(str, shape or [0]))}}}"


def _row_major(shape: Iterable[int]) -> list[int]:
    strides, step = [], 1
    for size in reversed(tuple(shape)):
        strides.append(step)
        step *= max(size, 1)
    return strides[::-1]


def _places(x: Any, given: list[Any]) -> Iterable[tuple[int, int]]:
    """For each tensor of the result 1 and its place among the results, or 0 and a given array."""
    ((kind, value),) = x.items()
    if kind == "made":
        yield 1, value
    elif kind in ("argument", "state"):
        place = next((k for k, s in enumerate(given) if s.get(kind) == value), None)
        if place is None:
            raise refuse("the result has a tensor that the program does not read")
        yield 0, place
    elif kind in ("list", "tuple"):
        for item in value:
            yield from _places(item, given)
    elif kind == "dict":
        for _, item in value:
            yield from _places(item, given)


def _real(x: float) -> str:
    if x != x:
        return "NAN"
    if x in (float("inf"), float("-inf")):
        return "INFINITY" if x > 0 else "-INFINITY"
    return x.hex()


def _lines(items: Iterable[Any]) -> str:
    texts, line, lines = [str(x) for x in items], "   ", []
    for text in texts or ["0"]:
        if len(line) + len(text) > 110:
            lines.append(line)
            line = "   "
        line += f" {text},"
    return "\n".join([*lines, line])


def _list(kind: str, name: str, items: list[Any], constant: str = "const ") -> str:
    texts = ["INT64_MIN" if x == -(2**63) else x for x in items]
    text = f"{constant}{kind} {name}[] = {{\n{_lines(texts)}\n}};"
    return f"{text}\nconst int64_t {name}_count = {len(items)};"


def _rows(kind: str, name: str, rows: list[str]) -> str:
    text = ",\n".join(rows or ["    {0}"])
    return f"const {kind} {name}[] = {{\n{text}\n}};\nconst int64_t {name}_count = {len(rows)};"


def _bytes(number: int, name: str, values: bytes) -> str:
    safe = name.replace("*/", "* /").replace("/*", "/ *").replace("\\", "/")
    return (
        f"/* {safe} */\n_Alignas(64) static const unsigned char data_{number}[] = {{\n"
        f"{_lines(values)}\n}};"
    )
