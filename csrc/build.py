"""The cffi builder of the extension module ``minigrad._native``: its sources, and all flags.

Every ``.c`` file is a translation unit (``*.inc.c`` files are included by others). The files of
``csrc/kernels`` are compiled once for each instruction set, each with its own flags. All other
files are compiled once. ``setup.py`` compiles several files at a time, and only files whose text,
headers or flags have changed.

``MINIGRAD_DEV=avx2`` names one or more instruction sets, and the build leaves out all others. An
edit of one kernel file then takes seconds to build.
"""

import os
import platform
import re
import runpy
import shlex
import subprocess
import sysconfig
from collections.abc import Sequence
from pathlib import Path

import cffi

HERE = Path(__file__).resolve().parent
thunks = runpy.run_path(str(HERE / "thunks.py"))["generate"]

# Vector loops need no errno and no trapping arithmetic. No flag lets the compiler reorder or
# contract floating-point operations. The same source therefore gives the same bits everywhere.
COMMON_FLAGS = [
    "-std=gnu11",
    "-D_GNU_SOURCE",  # Linux extensions: read and set the CPUs of threads
    "-O3",
    "-g0",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-ffp-contract=off",
    "-fvisibility=hidden",
    "-pthread",
    "-Wno-pass-failed",  # clang, for loops whose length it knows too late to unroll
]

TO_OBJECT = ("-xc", "-c", os.devnull, "-o", os.devnull)


def compiles(flags: list[str], what: Sequence[str] = TO_OBJECT) -> bool:
    """True if the compiler for extension modules, and its assembler, accept the flags."""
    compiler = os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc"
    command = [*shlex.split(compiler), *flags, *what]
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        raise SystemExit(
            f"minigrad is built by a C compiler, and there is no {command[0]!r} here: install "
            "gcc or clang (on Debian: apt install gcc python3-dev), or name yours in CC"
        ) from None


# Intel's processors of 2015 to 2020 do not cache decoded instructions around some branches. These
# are branches that cross or end at a multiple of 32 bytes (Intel, "Mitigations for Jump Conditional
# Code Erratum", 2019). A vector loop with such a branch took a third longer. The assembler of gcc
# or clang pads the code so that no branch lies there.
APART = (
    ["-Wa,-malign-branch-boundary=32,-malign-branch=jcc+fused,-malign-branch-prefix-size=0"],
    ["-malign-branch-boundary=32", "-malign-branch=jcc,fused"],
)
BRANCHES_APART = next(filter(compiles, APART), [])
# Without these flags, copies and fills of a constant length up to 8 KB become string instructions.
# A string instruction takes some 30 cycles to start. The C library's functions are faster from 64
# bytes on.
STRINGS = ["-mmemcpy-strategy=libcall:-1:noalign", "-mmemset-strategy=libcall:-1:noalign"]
NO_STRINGS = STRINGS if compiles(STRINGS) else []

# Functions begin at multiples of 32 bytes. At 16, the time of a small call varies by up to 4 % with
# the code before the function. At 64 a module is 37 KB larger and no faster.
ALIGNED = ["-falign-functions=32"]

# Flags of all instruction sets, whose code runs on every machine.
CORE_FLAGS = [*ALIGNED, *BRANCHES_APART, *NO_STRINGS]
ISA_FLAGS = {
    "baseline": CORE_FLAGS,
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
    readable = ["-g1", "-O1"]
    return [f"-fsanitize={kinds}", "-fno-sanitize-recover=all", *readable]


def isas() -> list[str]:
    """The instruction sets to build: all for this kind of machine, the most basic one first."""
    here = ISAS_BY_MACHINE.get(platform.machine().lower(), ["baseline"])
    chosen = os.environ.get("MINIGRAD_DEV", "").replace(",", " ").split()
    unknown = [isa for isa in chosen if isa not in here]
    if unknown:
        raise SystemExit(
            f"MINIGRAD_DEV={unknown[0]!r} is not built here; choose of {', '.join(here)}"
        )
    return [isa for isa in here if isa in chosen] if chosen else here


def declarations() -> str:
    """The declarations for cffi: its part of ``minigrad.h``, and the Python function C calls."""
    header = (HERE / "minigrad.h").read_text(encoding="utf-8")
    found = re.search(r"/\* cffi: begin \*/(.*)/\* cffi: end \*/", header, re.DOTALL)
    if found is None:
        raise RuntimeError("minigrad.h has lost its cffi markers")
    return found.group(1) + 'extern "Python" void mg_owner_released(void *owner);'


def sources(*rooms: str) -> list[str]:
    """The translation units of some folders, the largest first: these compile the longest."""
    found = [file for room in rooms for file in (HERE / room).rglob("*.c")]
    units = [file for file in found if not file.name.endswith(".inc.c")]
    units.sort(key=lambda file: (-file.stat().st_size, file))
    return [file.relative_to(HERE.parent).as_posix() for file in units]


KERNELS = [*sources("kernels", "vmath"), "csrc/isa/table.c"]
CORE = [
    *sources("base", "memory", "threads", "arrays", "lapack", "sets", "distance"),
    "csrc/program/program.c",
]
DISPATCH = "csrc/isa/isa.c"  # compiled with a flag for each instruction set built


def kernel_flags(isa: str) -> list[str]:
    """The compiler's flags for the kernels of an instruction set."""
    return [f"-DMG_ISA={isa}", *COMMON_FLAGS, *ISA_FLAGS[isa], *sanitizers()]


def native() -> cffi.FFI:
    """The extension module without the kernels."""
    ffi = cffi.FFI()
    ffi.cdef(declarations())
    ffi.set_source(
        "minigrad._native",
        f'#include "program/run.h"\n{thunks()}\n#include "program/run.c"\n',
        sources=CORE,
        include_dirs=["csrc"],
        extra_compile_args=[*COMMON_FLAGS, *CORE_FLAGS, *sanitizers()],
        extra_link_args=["-pthread", *sanitizers()],
        libraries=["m"],
    )
    return ffi


def speed() -> dict[str, list[str]]:
    """The flags of the accelerator ``minigrad._speed``."""
    return {
        "extra_compile_args": [*COMMON_FLAGS, *CORE_FLAGS, *sanitizers()],
        "extra_link_args": ["-pthread", *sanitizers()],
    }
