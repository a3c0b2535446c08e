"""Checks that the compiler made vectors of the loops left to it: ``python csrc/vectorised.py``.

Kernels are plain loops, and nothing in C says that one must be compiled to vector instructions; a
change that stops the compiler shows only as a kernel several times slower. So this reads the
machine code that ``pip install .`` leaves in ``build``: every kernel on floats must hold arithmetic
on vectors of its instruction set's width, itself or in a function it calls. Needs objdump
(binutils). Exits with 1 and the names of the kernels that fail.
"""

import re
import subprocess
import sys
from pathlib import Path

BUILD = Path(__file__).resolve().parent.parent / "build"

# The widest registers of an instruction set; the baseline is compiled to be small instead.
REGISTERS = {"avx2": "%ymm", "avx512": "%zmm"}
KERNELS = re.compile(
    r"(\w+_(kernel|vjp|vjp_a|vjp_b)|accumulate|clamp"
    r"|(reduce|softmax|norm)_(rows|columns|into)|gemm_(tile|vector)\w*|optim_\w+)_f(32|64)"
)
# What need not be vectors, and why.
SCALAR = {
    "formulas that differ from place to place, one number at a time": (
        *("digamma", "trigamma", "lgamma", "erfcx", "erfinv", "log_ndtr"),
        *("i0", "i0e", "i1", "i1e", "nextafter"),
    ),
}
ARITHMETIC = re.compile(r"v?(?!mov)\w+(ps|pd)|vp(?!broadcast|erm)\w+")


def functions(built: Path) -> tuple[dict[str, list[tuple[str, str]]], dict[str, set[str]]]:
    """The instructions (mnemonic, operands) of every function, and the functions it calls."""
    command = ["objdump", "-d", "--no-show-raw-insn", str(built)]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    code: dict[str, list[tuple[str, str]]] = {}
    calls: dict[str, set[str]] = {}
    name = ""
    for line in text.splitlines():
        if opened := re.match(r"[0-9a-f]+ <([^>]+)>:", line):
            name = re.sub(r"\.(part|constprop|isra|cold).*", "", opened[1])
            code.setdefault(name, [])
            calls.setdefault(name, set())
        elif found := re.match(r"\s*[0-9a-f]+:\s+(\S+)\s*(.*)", line):
            op, operands = found[1], found[2]
            code[name].append((op, operands))
            target = re.search(r"<([\w.]+)>", operands)
            if target and op.startswith(("call", "jmp")):
                calls[name].add(re.sub(r"\.(part|constprop|isra|cold).*", "", target[1]))
    return code, calls


def scalar_kernels(built: Path, register: str) -> tuple[list[str], int]:
    """The kernels without vector arithmetic, and how many there are in all."""
    code, calls = functions(built)
    vectors = {
        name
        for name, lines in code.items()
        if any(register in operands and ARITHMETIC.fullmatch(op) for op, operands in lines)
    }
    grown = True
    while grown:
        more = {name for name in code if name not in vectors and calls[name] & vectors}
        vectors |= more
        grown = bool(more)
    kernels = [name for name in code if KERNELS.fullmatch(name)]
    scalar = {
        f"{name}_kernel_f{bits}" for names in SCALAR.values() for name in names for bits in (32, 64)
    }
    wanted = set(kernels) - scalar
    return sorted(wanted - vectors), len(kernels)


def main() -> int:
    """Check the objects of the last build."""
    failed = checked = 0
    for built in sorted(BUILD.rglob("isa/*.o")):
        if built.stem not in REGISTERS:
            continue
        scalar, count = scalar_kernels(built, REGISTERS[built.stem])
        print(f"{built.stem}: {count - len(scalar)} of {count} kernels hold vector arithmetic")
        for name in scalar:
            print(f"  {name}: none")
        failed += len(scalar)
        checked += count
    if not checked:
        print(f"no kernels found in {BUILD}: run pip install . here first")
    return 1 if failed or not checked else 0


if __name__ == "__main__":
    sys.exit(main())
