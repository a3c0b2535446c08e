"""The cffi builder of the extension module ``minigrad._native``: its sources, and all flags.

Every ``.c`` file is a translation unit (``*.inc.c`` files are included by others). The files of
``csrc/kernels`` are compiled once for each instruction set, with flags of its own, and all others
once. ``setup.py`` compiles them, several at a time, and again only those whose text, headers or
flags have changed.

``MINIGRAD_DEV=avx2``, the name of one or more instruction sets, builds no others: an edit of one
kernel file then takes seconds.
"""

import os
import platform
import re
import shlex
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Sequence
from pathlib import Path

import cffi

HERE = Path(__file__).resolve().parent

# Vector loops need no errno and no trapping arithmetic; nothing here lets the compiler reorder or
# contract floating-point operations, so the same source gives the same bits everywhere. Nothing
# throws through these functions, so they carry no tables for unwinding the stack. Left alone, the
# compiler writes out the up to 15 elements left over by a loop of vectors, and gives loops over
# strides a twin for a stride of 1: much code, and no faster. Loops over registers that must be
# written out say so (MG_UNROLL), and those that meet both strides ask. A function becomes part of
# those that call it if it says so (MG_INLINE), is very short, or has one caller; of others there is
# one copy.
COMMON_FLAGS = [
    "-std=gnu11",
    "-D_GNU_SOURCE",  # where threads run is asked and told by extensions of Linux
    "-O3",
    "-g0",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-ffp-contract=off",
    "-fvisibility=hidden",
    "-fno-asynchronous-unwind-tables",
    "-pthread",
]

TO_OBJECT = ("-xc", "-c", os.devnull, "-o", os.devnull)


def compiles(flags: list[str], what: Sequence[str] = TO_OBJECT) -> bool:
    """Whether the compiler of extension modules, and the assembler behind it, knows the flags."""
    compiler = os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc"
    command = [*shlex.split(compiler), *flags, *what]
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        raise SystemExit(
            f"minigrad is built by a C compiler, and there is no {command[0]!r} here: install "
            "gcc or clang (on Debian: apt install gcc python3-dev), or name yours in CC"
        ) from None


# Only gcc has these habits. Clang refuses to be asked for the first, and would take the last to
# mean that nothing is inlined that does not say so, however short.
GCC_FLAGS = [
    *("-fno-version-loops-for-strides", "-fno-ipa-cp-clone", "-fno-inline-functions"),
    *("--param", "max-completely-peel-times=8"),
]
# Clang warns of functions that C calls inline and others call too, though all is one file, and of
# loops whose length it learns too late to write them out.
CLANG_FLAGS = ["-Wno-static-in-inline", "-Wno-pass-failed"]
COMMON_FLAGS += GCC_FLAGS if compiles(GCC_FLAGS) else CLANG_FLAGS

# On Intel's processors of 2015 to 2020 a branch that crosses or ends at a multiple of 32 bytes
# keeps its line out of the cache of decoded instructions (Intel, "Mitigations for Jump Conditional
# Code Erratum", 2019): a loop of vectors took a third longer where it happened to have one. The
# assembler, gcc's or clang's, keeps branches clear of that with a few bytes of nothing. To start
# loops and labels at multiples of 16 as well would take 6 KB of a wheel for each instruction set.
APART = (
    [
        "-Wa,-malign-branch-boundary=32,-malign-branch=jcc+fused,-malign-branch-prefix-size=0",
        *("-fno-align-loops", "-fno-align-jumps", "-fno-align-labels"),
    ],
    ["-malign-branch-boundary=32", "-malign-branch=jcc,fused"],
)
BRANCHES_APART = next(filter(compiles, APART), [])
# Copies and fills of up to 8 KB whose length is known are otherwise string instructions, which take
# some 30 cycles before they begin: the C library's functions are faster from 64 bytes on.
STRINGS = ["-mmemcpy-strategy=libcall:-1:noalign", "-mmemset-strategy=libcall:-1:noalign"]
NO_STRINGS = STRINGS if compiles(STRINGS) else []
# Twins of two float widths stand side by side where the linker is GNU's; others refuse.
TWINS = ["-Xlinker", "-T", "-Xlinker", str(HERE / "twins.ld")]


def links(flags: list[str]) -> bool:
    """Whether the linker of extension modules knows the flags."""
    with tempfile.TemporaryDirectory() as folder:
        made = str(Path(folder) / "made.so")
        return compiles(["-shared", "-fPIC", *flags], ["-xc", os.devnull, "-o", made])


SIDE_BY_SIDE = TWINS if sys.platform == "linux" and links(TWINS) else []
if SIDE_BY_SIDE:
    COMMON_FLAGS += ["-ffunction-sections"]

# Functions begin at multiples of 32 bytes: at 16, what a small call takes depends on what stands
# before the function, by up to 4 %. At 64 a module is 37 KB larger and no faster.
ALIGNED = ["-falign-functions=32"]

# What is the same for all instruction sets, and runs on every machine.
CORE_FLAGS = [*ALIGNED, *BRANCHES_APART, *NO_STRINGS]
ISA_FLAGS = {
    # For the few machines without AVX2 code is kept small: three fifths of what -O3 makes of it.
    "baseline": ["-Os", "-ftree-vectorize"],
    "neon": [],
    "avx2": ["-mavx2", "-mfma", "-mbmi2", *CORE_FLAGS],
    "avx512": [
        *("-mavx512f", "-mavx512bw", "-mavx512dq", "-mavx512vl", "-mfma", "-mbmi2"),
        "-mprefer-vector-width=512",
        *CORE_FLAGS,
    ],
}
ISAS_BY_MACHINE = {
    "x86_64": ["baseline", "avx2", "avx512"],
    "amd64": ["baseline", "avx2", "avx512"],
    "aarch64": ["neon"],
    "arm64": ["neon"],
}


def sanitizers() -> list[str]:
    """Compiler flags for MINIGRAD_SANITIZE=address,undefined or thread: a checked, slow build."""
    kinds = os.environ.get("MINIGRAD_SANITIZE")
    if not kinds:
        return []
    readable = ["-g1", "-O1", "-fasynchronous-unwind-tables"]
    return [f"-fsanitize={kinds}", "-fno-sanitize-recover=all", *readable]


def link_flags() -> list[str]:
    """Linker flags. Symbols, a thirtieth of a wheel, stay if MINIGRAD_SYMBOLS is set."""
    kept = os.environ.get("MINIGRAD_SYMBOLS") or os.environ.get("MINIGRAD_SANITIZE")
    small = ["-Wl,-z,noseparate-code"] if sys.platform == "linux" else []  # no pages half filled
    strip = ["-Wl,--strip-all"] if sys.platform == "linux" and not kept else []
    return ["-pthread", *small, *strip, *SIDE_BY_SIDE, *sanitizers()]


def isas() -> list[str]:
    """The instruction sets to build: all of this kind of machine, the one that each has first."""
    here = ISAS_BY_MACHINE.get(platform.machine().lower(), ["baseline"])
    chosen = os.environ.get("MINIGRAD_DEV", "").replace(",", " ").split()
    unknown = [isa for isa in chosen if isa not in here]
    if unknown:
        raise SystemExit(
            f"MINIGRAD_DEV={unknown[0]!r} is not built here; choose of {', '.join(here)}"
        )
    return [isa for isa in here if isa in chosen] if chosen else here


def declarations() -> str:
    """The declarations for cffi: its parts of ``minigrad.h`` and ``kernels.def``."""
    header = (HERE / "minigrad.h").read_text(encoding="utf-8")
    found = re.search(r"/\* cffi: begin \*/(.*)/\* cffi: end \*/", header, re.DOTALL)
    if found is None:
        raise RuntimeError("minigrad.h has lost its cffi markers")
    kernels = (HERE / "kernels.def").read_text(encoding="utf-8").partition("/* cffi: end */")[0]
    plain = re.sub(r"MG_KERNEL\(([^,]+), (\w+),\s+(\([^)]*\))\)", r"\1 \2\3;", kernels)
    return found.group(1) + plain


def sources(*rooms: str) -> list[str]:
    """The translation units of some rooms, the largest first: they take the longest."""
    found = [file for room in rooms for file in (HERE / room).rglob("*.c")]
    units = [file for file in found if not file.name.endswith(".inc.c")]
    units.sort(key=lambda file: (-file.stat().st_size, file))
    return [file.relative_to(HERE.parent).as_posix() for file in units]


KERNELS = [*sources("kernels", "vmath"), "csrc/isa/table.c"]
CORE = sources("base", "memory", "threads", "lapack", "sets", "distance")
DISPATCH = "csrc/isa/isa.c"  # which is told what instruction sets there are


def kernel_flags(isa: str) -> list[str]:
    """The compiler's flags for the kernels of an instruction set."""
    return [f"-DMG_ISA={isa}", *COMMON_FLAGS, *ISA_FLAGS[isa], *sanitizers()]


def native() -> cffi.FFI:
    """The extension module, but for the kernels."""
    ffi = cffi.FFI()
    ffi.cdef(declarations())
    ffi.set_source(
        "minigrad._native",
        '#include "wrapper.h"',
        sources=CORE,
        include_dirs=["csrc"],
        extra_compile_args=[*COMMON_FLAGS, *CORE_FLAGS, *sanitizers()],
        extra_link_args=link_flags(),
        libraries=["m"],
    )
    return ffi
