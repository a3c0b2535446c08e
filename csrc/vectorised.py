"""Check that the compiler vectorises the marked loops: ``python csrc/vectorised.py``.

Kernels are plain loops, and nothing in C requires that a loop be compiled to vector instructions.
If a change stops the compiler from vectorising, the only sign is a kernel several times slower. The
macro ``MG_APART``, on a line of its own, marks the loops that must be vectorised.

The script compiles the files with marked loops, with the flags of the build, and reads gcc's
report. The report lists every copy of a loop. There is a copy for each function into which the loop
was inlined, and for each condition moved out of the loop. The script exits with 1 if a loop is not
compiled to vectors of the instruction set's width, and prints its place. Arguments are further
flags for the compiler. With ``-fno-unswitch-loops`` the check must fail in ``optim.inc.c``.
"""

import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path

from build import isas, kernel_flags

HERE = Path(__file__).resolve().parent
WIDTH = {"avx2": 32, "avx512": 64}  # bytes; the baseline is compiled to be small
REPORT = re.compile(
    r"([^\s:]+):(\d+):\d+: (?:missed: couldn't vectorize loop"
    r"|optimized: loop vectorized using (\d+) byte vectors)"
)

Place = tuple[str, int]  # a file and a line


def marks(file: Path) -> set[Place]:
    """The marked loops in a file and in the templates that the file includes."""
    text = file.read_text(encoding="utf-8")
    found = {
        (str(file), number)
        for number, line in enumerate(text.splitlines(), 2)
        if line.strip() == "MG_APART"
    }
    for included in set(re.findall(r'#include "(\w+\.inc\.[ch])"', text)):
        found |= marks(file.parent / included)
    return found


def report(isa: str, file: Path, flags: list[str]) -> dict[Place, list[int]]:
    """The vector width in bytes, or 0, of every copy of each loop, by the loop's place."""
    command = [os.environ.get("CC", "gcc"), *kernel_flags(isa), *flags, "-DNDEBUG", f"-I{HERE}"]
    command += ["-fopt-info-vec-optimized-missed", "-S", str(file), "-o", os.devnull]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    copies: dict[Place, list[int]] = {}
    for name, line, width in REPORT.findall(said):
        copies.setdefault((str(Path(name).resolve()), int(line)), []).append(int(width or 0))
    return copies


def main(flags: list[str]) -> int:
    """Compile the files, and print the marked loops that are not vectorised."""
    marked = {file: marks(file) for file in sorted((HERE / "kernels").rglob("*.c"))}
    files = [file for file, places in marked.items() if places and ".inc" not in file.name]
    jobs = list(product([isa for isa in isas() if isa in WIDTH], files))
    failed = 0
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        reports = pool.map(lambda job: report(*job, flags), jobs)
        for (isa, file), copies in zip(jobs, reports, strict=True):
            bad = []
            for place in sorted(marked[file]):
                widths = copies.get(place, [])
                if 0 in widths or WIDTH[isa] not in widths:
                    bad.append(place)
            vectors = len(marked[file]) - len(bad)
            print(f"{isa} {file.name}: {vectors} of {len(marked[file])} marked loops are vectors")
            for name, line in bad:
                print(f"  {name}:{line}: not everywhere")
            failed += len(bad)
    if not jobs:
        print("nothing to check on this machine")
    return 1 if failed or not jobs else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
