"""Values and gradients at every size at which a kernel splits its work or takes another path.

``csrc/kernels/sizes.def`` is the table of these sizes, from which C takes its constants. Each row
is tested here at its size, at its double, and at one less and one more than both. A row names
functions of ``size_families.py``, which make operations of a size. A kernel's constant that stands
elsewhere fails the last test, unless it is listed there as one that no result depends on.

Values are compared with NumPy in float64. Gradients in float64 are compared with differences of
NumPy's values along a random direction, which sees each element that is wrong. Gradients in float32
are compared with those in float64, element by element.
"""

from __future__ import annotations

import faulthandler
import re
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from guards import HAS_GUARDS, apart, guarded
from size_families import FAMILIES, close, numpy_of

import minigrad as mg

CSRC = Path(__file__).parent.parent.parent / "csrc"
SHORT = 2100  # longest axis of the default run
NARROW = 18  # and between guards
LIGHT = 40000  # most elements or multiply-adds of a whole call there

# ---- the table -----------------------------------------------------------------------------------


class Size(NamedTuple):
    name: str
    values: tuple[int, ...]  # one for each kind of vectors, where they differ
    unit: str
    families: tuple[str, ...]


def read_table():
    text = re.sub(r"/\*.*?\*/", "", (CSRC / "kernels" / "sizes.def").read_text(), flags=re.DOTALL)
    known: list[dict[str, int]] = [{}, {}, {}, {}]
    found = []
    for match in re.finditer(r"MG_SIZE(_BY_VECTORS)?\(([^()]*)\)", text):
        name, *values, unit, families = [part.strip() for part in match[2].split(",")]
        for kind, names in enumerate(known):
            value = values[kind] if match[1] else values[0]
            names[name] = eval(value.replace("/", "//"), {}, dict(names))
        numbers = tuple(sorted({names[name] for names in known}))
        found.append(Size(name, numbers, unit, tuple(families.split())))
    assert len(found) == text.count("MG_SIZE"), "a row of sizes.def could not be read"
    return found


TABLE = read_table()
VECTORS = (8, 16, 32, 64)  # all families meet the edges of some vectors


def around(value):
    return [m * value + d for m in (1, 2) for d in (-1, 0, 1)]


def sizes_of(family):
    """All sizes to test a family at, with the unit in which they are given."""
    total = any(family in s.families and s.unit == "WORK" for s in TABLE)
    found = set() if total else {n for v in VECTORS for n in around(v)}
    for size in TABLE:
        if family in size.families:
            assert total == (size.unit == "WORK"), f"{family} is given lengths, and work"
            shares = (4, 8) if size.unit == "BYTES" else (1,)
            found |= {n for v in size.values for s in shares for n in around(v // s)}
    return sorted(n for n in found if n > 0), total


# ---- what is checked -----------------------------------------------------------------------------


def check(op, rng, place):
    """Value and gradients of an operation, with operands where ``place`` puts them."""
    inputs = [a.astype(np.float32).astype(np.float64) for a in op.inputs]
    want = np.asarray(op.value(*inputs))
    g = rng.standard_normal(want.shape).astype(np.float32)
    grads = None
    for dtype, limit in ((np.float64, 1e-11), (np.float32, 3e-5 * op.slack)):
        what = f"{op.name}, {np.dtype(dtype)}"
        tensors = [place(rng, a.astype(dtype)).requires_grad_(op.smooth) for a in inputs]
        y = op.call(*tensors)
        close(numpy_of(y), want, limit, f"value of {what}")
        if not op.smooth:
            continue
        found = [numpy_of(d) for d in mg.grad(y, tensors, place(rng, g.astype(dtype)))]
        if dtype == np.float32:
            for i, (d, wide) in enumerate(zip(found, grads, strict=True)):
                close(d, wide, 2 * limit, f"gradient {i} of {what}")
            continue
        grads, step = found, 2.0**-17
        ways = [rng.choice([-1.0, 1.0], a.shape) for a in inputs]
        low, high = (
            op.value(*[a + s * step * w for a, w in zip(inputs, ways, strict=True)])
            for s in (-1, 1)
        )
        slope = float((g * (high - low)).sum()) / (2 * step)
        terms = [d * w for d, w in zip(found, ways, strict=True)]
        size = sum(float(np.abs(t).sum()) for t in terms) + float(np.abs(g * want).max(initial=0))
        sums = sum(float(t.sum()) for t in terms)
        assert abs(sums - slope) <= 1e-6 * size + 1e-7, f"gradient of {what}: {sums}, not {slope}"


# ---- tests ---------------------------------------------------------------------------------------


def plainly(_, a):
    return mg.tensor(a)


def between_guards(rng, a):
    return mg.from_numpy(guarded(rng, a))


def run(name, sizes, place=plainly):
    for n in sizes:
        rng = np.random.default_rng([n, *name.encode()])
        for op in FAMILIES[name](n, rng):
            if place is between_guards:
                print(f"{name} of {n}: {op.name}", flush=True)
            check(op, rng, place)


def light(name):
    sizes, total = sizes_of(name)
    return [n for n in sizes if n <= (LIGHT if total else SHORT)]


def heavy(name):
    return [n for n in sizes_of(name)[0] if n not in light(name)]


@pytest.mark.parametrize("name", FAMILIES)
def test_sizes_at_which_work_is_cut(name):
    run(name, light(name))


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", FAMILIES)
def test_large_sizes_at_which_work_is_cut(name):
    run(name, heavy(name))


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_sizes_at_which_work_is_cut_with_threads(name, threads):
    mg.set_num_threads(threads)
    run(name, sizes_of(name)[0])


@pytest.mark.skipif(not HAS_GUARDS, reason="protects pages by Linux's mprotect")
def test_no_operand_is_read_outside():
    apart(__file__, NARROW)


@pytest.mark.exhaustive
@pytest.mark.skipif(not HAS_GUARDS, reason="protects pages by Linux's mprotect")
def test_no_large_operand_is_read_outside():
    apart(__file__, SHORT)


def test_each_size_has_families_that_exist():
    for size in TABLE:
        assert size.unit in ("ELEMENTS", "BYTES", "WORK"), size
        assert size.families, f"{size.name} governs nothing"
        assert not set(size.families) - set(FAMILIES), size
    governed = {name for size in TABLE for name in size.families}
    assert set(FAMILIES) == governed, "a family that no size names"


# Constants on which no result depends, or which are no sizes; all others belong into the table.
ELSEWHERE = {
    # what is asked for ahead of its use
    *("ATTENTION_AHEAD", "POOL_AHEAD", "CONV_FAR", "CONV_FETCH", "CONV_SHARE", "INDEX_FETCH"),
    *("NDITER_AHEAD", "NDITER_FOLLOWS", "NDITER_STREAM_AHEAD", "NDITER_WAITS", "POOL_IN_CACHE"),
    # what something costs, in multiply-adds
    *("CONV_TRANSPOSE", "SQUARE", "SUMS", "WEIGHTS"),
    # limits that nothing reaches, rounds of a cipher, widths of types
    *("REDUCE_ALL_LEVELS", "RANDOM_ROUNDS", "MG_REAL", "ELEMENTWISE_WIDTH", "MG_VECTOR_BYTES"),
    # limits and chunks of chains, whose loops are those of single operations
    *("CHAIN_OPERANDS", "CHAIN_REGISTERS", "CHAIN_STEPS", "CHAIN_BYTES"),
    # the width of a line of cache, and lanes of the random numbers' generator
    *("LINE", "RANDOM_LANES"),
    # exponents of numbers
    *("NEAR", "SCAN_WITHIN"),
}


def numbers_in(text):
    """Names that an enumerator or a macro gives a number of at least 8, written in digits."""
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    digits = r"([-+*/<() \d]*\d[-+*/<() \d]*)"
    for enum in re.findall(r"\benum\b[^{};]*\{([^}]*)\}", text):
        yield from re.findall(rf"(\w+) = {digits}(?:,|$)", enum.replace("\n", " ").strip())
    yield from re.findall(rf"^#define (\w+)[ \t]+{digits}$", text, flags=re.MULTILINE)


def test_all_sizes_are_in_the_table():
    strangers = {}
    for folder in ("kernels", "lapack", "sets", "distance"):
        for path in sorted((CSRC / folder).rglob("*.[ch]")):
            for name, value in numbers_in(path.read_text()):
                if name not in ELSEWHERE and eval(value.strip().replace("/", "//")) >= 8:
                    strangers[name] = path.name
    assert not strangers, f"not in sizes.def: {strangers}"


if __name__ == "__main__":
    faulthandler.enable()
    for family in FAMILIES:
        sizes, total = sizes_of(family)
        most = int(sys.argv[1]) * (20 if total else 1)
        run(family, [n for n in sizes if n <= most], between_guards)
