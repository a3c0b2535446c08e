"""Measurement of the elementwise functions' largest errors in ULP, against the op table's
contracts.

    python -m tests.helpers.ulp [NAME ...] [--dtype float32|float64] [--stride N] [--exhaustive]

prints a line per function and dtype, and exits with 1 if a contract is broken. MINIGRAD_ISA chooses
the instruction set. A function of one float32 is tried on every ``--stride``-th bit pattern, or on
all of them. All functions are tried around critical points (``CENTRES``), at random bit patterns
and over typical ranges.

References are oracle.py's: double for float32 and long double for float64. Functions that NumPy
lacks are screened with SciPy. mpmath then checks the points with the largest errors. For float64 it
checks the largest errors of each interval, since SciPy's own errors in double are larger than the
measured ones.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).parent))  # where pytest finds the tests' helpers

import checkout  # noqa: F401 - first
import oracle

import minigrad as mg
from minigrad.functions.row_functions import binary, composed, unary
from minigrad.ops import TABLE
from minigrad.runtime import native

ROWS = [
    row
    for row in TABLE.values()
    if row.name in oracle.POINTWISE and (row.arity == 1 or max(row.accuracy) > 0)
]
ELEMENTARY = [row for row in ROWS if max(row.accuracy) > 0 or row.name == "sqrt"]
DTYPES = (np.float32, np.float64)
CHUNK = 2**22

# ---- arguments -----------------------------------------------------------------------------------

_TURNS = np.array([*range(1, 12), 100, 3819, 10**6, 636619, 2**40 + 1])
CENTRES = np.concatenate(
    [
        np.arange(12.0),  # poles and zeros of the gamma functions and of sinc
        np.arange(12.0) + 0.5,
        2.0 ** np.array([-1022, -126, -54, -52, -30, -25, -24, -23, -10, -3, -2, 4, 7, 9, 10]),
        2.0 ** np.array([23, 24, 31, 52, 53, 60, 63, 100, 127, 1023]),
        _TURNS * (np.pi / 2),
        np.sqrt([0.5, 2, 3]),
        [np.pi / 4, np.e, 1 / np.e, np.log(2) / 2, np.log(2), 0.3, 0.9, 1e2, 1e3, 1e5],
        # where exponentials and similar functions reach the ends of the range, or one
        [87.3365, 88.7228, 89.416, 103.2789, 103.9721, 708.3964, 709.7827, 710.4758, 744.4401],
        [745.1332, 126, 149, 150, 1022, 1024, 1074, 1075, 8.664, 9.0109, 17.3287, 19.0615, 37],
        # the same for the error function, the normal distribution and the Bessel functions
        [3.8325, 5.8636, 10.0546, 13.0, 14.1711, 26.5433, 27.2261, 37.6771, 38.4857, 91.9, 713.98],
        # zeros of lgamma and digamma near integers; where lgamma overflows
        [2.4570247382208006, 2.7476826467274127, 3.1435808883499690, 3.9552942848585985],
        [1.4616321449683623, 0.5040830082644554, 1.5734984731623904, 2.6107208684441447],
        [4.0850034e36, 2.559983327851638e305],
    ]
)


def around(dtype, n):
    """All floats within ``n`` floats of a centre, of the ends of the range or of a subnormal."""
    bits, info = (np.uint32 if dtype is np.float32 else np.uint64), np.finfo(dtype)
    with np.errstate(over="ignore", under="ignore"):
        centres = CENTRES.astype(dtype)
    ends = np.array([info.max, np.inf, info.tiny, np.sqrt(info.max), np.sqrt(info.tiny)], dtype)
    places = np.unique(np.concatenate([centres, ends])).view(bits).astype(np.int64)
    near = (places[:, None] + np.arange(-n, n + 1)).ravel()
    x = np.unique(near[near >= 0]).astype(bits).view(dtype)
    return np.concatenate([x, -x])


def spread(dtype, n, rng):
    """Random bit patterns, typical ranges, and all distances from the centres; ``n`` of each."""
    patterns = rng.integers(0, 2**64, n, np.uint64, endpoint=False)
    patterns = patterns.astype(np.uint32) if dtype is np.float32 else patterns
    signs = rng.choice([-1.0, 1.0], n)
    away = 1 + signs * 2.0 ** rng.uniform(-np.finfo(dtype).nmant - 1, -2, n)
    ranges = [
        *[rng.uniform(-size, size, n) for size in (1, 20, 110, 760)],
        signs * 2.0 ** rng.uniform(-60, 20, n),
        rng.choice(CENTRES, n) * away * rng.permutation(signs),
        signs * 10.0 ** rng.uniform(3, 30, n),  # large angles
    ]
    with np.errstate(over="ignore", under="ignore"):
        rest = [x.astype(dtype) for x in ranges]
    return np.concatenate([patterns.view(dtype), *rest])


def every(stride):
    """Chunks of every ``stride``-th float32."""
    for start in range(0, 2**32, CHUNK * stride):
        stop = min(start + CHUNK * stride, 2**32)
        yield np.arange(start, stop, stride, np.uint64).astype(np.uint32).view(np.float32)


def pairs(row, dtype, n, rng):
    """Pairs: independent, nearly equal, of all distances, and hard ones for this function."""
    a, b = (rng.permutation(spread(dtype, n, rng)) for _ in range(2))
    edges = around(dtype, 0)
    edge_a, edge_b = (x.ravel() for x in np.meshgrid(edges, edges))
    few = rng.permutation(len(edge_a))[: 20 * n]
    x = rng.uniform(-30, 30, n)
    with np.errstate(all="ignore"):
        near = x * (1 + 2.0 ** rng.uniform(-60, 1, n))
        beside = x + rng.uniform(-50, 50, n)
        wide = [(x, near), (x, -near), (x, beside), HARD.get(row.name, _none)(dtype, n, rng)]
        wide.append(tuple(rng.uniform(low, high, n) for low, high in row.domain))
        some = [(u.astype(dtype), v.astype(dtype)) for u, v in wide]
    parts = [(a, b), (edge_a[few], edge_b[few]), *some]
    return tuple(np.concatenate(part) for part in zip(*parts, strict=True))


def _none(dtype, n, rng):
    return np.empty(0), np.empty(0)


def _hard_powers(dtype, n, rng):
    """Pairs with results over the whole range of exponents, from bases of all sizes and near 1."""
    e = np.finfo(dtype).maxexp
    size = 2.0 ** rng.uniform(-e, e, n)
    base = np.where(rng.random(n) < 0.5, size, 1 + 2.0 ** rng.uniform(-e / 20, -1, n))
    base = base.astype(dtype).astype(np.float64)
    power = rng.uniform(-1.2 * e, 1.1 * e, n) / np.log2(base)
    whole = rng.random(n) < 0.3
    return np.where(whole, -base, base), np.where(whole, np.round(power), power)


def _hard_sums(log, power):
    """Arguments of log(e^a + e^b) with a result near 0, for negative a of all sizes."""

    def f(dtype, n, rng):
        a = -(2.0 ** rng.uniform(-20, 4, n))
        b = log(1 - power(a))
        return a, b * (1 + 2.0 ** rng.uniform(-np.finfo(dtype).nmant, 0, n))

    return f


def _logarithms_near_0(dtype, n, rng):
    return rng.uniform(-3, 3, n), 1 + rng.choice([-1, 1], n) * 2.0 ** rng.uniform(-52, -1, n)


HARD = {
    "pow": _hard_powers,
    "logaddexp": _hard_sums(np.log, np.exp),
    "logaddexp2": _hard_sums(np.log2, np.exp2),
    "xlogy": _logarithms_near_0,
}


def arguments(row, dtype, n, rng, stride=None):
    """Batches of arguments. ``stride`` is as in the module's text; None means no such sweep."""
    if row.arity == 2:
        yield pairs(row, dtype, n, rng)
        return
    yield (np.concatenate([around(dtype, n // 100), spread(dtype, n, rng)]),)
    if stride is not None and dtype is np.float32:
        yield from ((x,) for x in every(stride))


# ---- errors --------------------------------------------------------------------------------------


@dataclasses.dataclass
class Report:
    """The largest error of one function, its argument, and the allowed error."""

    name: str
    dtype: type
    contract: float
    error: float = 0.0
    at: tuple[float, ...] = ()
    count: int = 0

    @property
    def ok(self):
        """True if the contract holds. NaN in place of a number counts as inf."""
        return self.error <= self.contract

    def add(self, errors, inputs):
        """Add the errors of one batch."""
        self.count += errors.size
        worst = np.argmax(errors)
        if errors[worst] > self.error or not self.at:
            self.error, self.at = float(errors[worst]), tuple(x[worst] for x in inputs)

    def __str__(self):
        exact = ", ".join(float(x).hex() for x in self.at)
        decimal = ", ".join(f"{x:.9g}" for x in self.at)
        verdict = "ok" if self.ok else "NOT OK"
        return (
            f"{self.name:<11} {self.dtype.__name__:<8} {self.error:7.3f} {self.contract:5.1f}  "
            f"{verdict:<6} {self.count:>11,}  {exact}  ({decimal})"
        )


HEADER = (
    f"{'function':<11} {'dtype':<8} {'error':>7} {'limit':>5}  {'':<6} {'arguments':>11}  worst at"
)


def function_of(row):
    """The function that runs this row on tensors."""
    if row.family == "composition":
        return composed(row)
    return unary(row) if row.arity == 1 else binary(row)


def measure(row, dtype, batches, function=None, settled=400):
    """The largest error of a row over batches of arguments; ``settled`` of each by mpmath."""
    report = Report(row.name, dtype, oracle.accuracy(row, dtype))
    function = function or function_of(row)
    for inputs in batches:
        got = function(*[mg.from_numpy(x) for x in inputs]).numpy()
        assert got.dtype == dtype
        if not report.contract:
            errors = _rounding_errors(row, got, inputs)
        elif hasattr(oracle.POINTWISE[row.name], "is_slow"):
            errors = _settled_errors(row, got, inputs, settled)
        else:
            errors = _errors(row.name, got, oracle.pointwise(row.name, *inputs), inputs)
        report.add(errors, inputs)
    return report


def _errors(name, got, want, inputs):
    return oracle.ulps(got, want, oracle.size_of_terms(name, inputs))


def _rounding_errors(row, got, inputs):
    """0 where a result is correctly rounded, as NumPy's result in the dtype itself is."""
    with np.errstate(all="ignore"):
        want = np.asarray(oracle.POINTWISE[row.name](*inputs))
        distance = oracle.ulps(got, want.astype(oracle.wide(got.dtype)))
    wrong = np.where(got == want, np.inf, distance)  # a zero of the wrong sign
    return np.where(oracle.same_values(got, want), 0, wrong)


def _settled_errors(row, got, inputs, budget):
    """Errors against SciPy in double, and against mpmath where these are largest.

    For float64 only errors against mpmath count, since SciPy's own errors are larger.
    """
    with np.errstate(all="ignore"):
        quick = np.asarray(oracle.POINTWISE[row.name](*[x.astype(np.float64) for x in inputs]))
    errors = _errors(row.name, got, quick, inputs)

    def settle(places):
        chosen = [x[places] for x in inputs]
        with np.errstate(all="ignore"):
            exact = oracle.POINTWISE[row.name](*[x.astype(oracle.LONG) for x in chosen])
        return _errors(row.name, got[places], exact, chosen)

    if got.dtype == np.float64:
        stretches = np.array_split(np.argsort(inputs[0]), min(budget // 2, got.size))
        places = [k for part in stretches for k in (part[0], part[np.argmax(errors[part])])]
        errors = np.zeros(got.shape)
        errors[places] = settle(places)
        return errors
    worst = np.argsort(-errors)[:budget]
    for k in range(0, len(worst), 8):
        places = worst[k : k + 8]
        known, screened = settle(places), errors[places]
        errors[places] = known
        if np.allclose(known, screened, atol=1e-3):
            break  # SciPy was right here, so it is right for smaller errors
    return errors


# ---- the program ---------------------------------------------------------------------------------


def with_progress(batches, name):
    """The same batches, with occasional progress lines on stderr."""
    for i, batch in enumerate(batches):
        if i and i % 128 == 0:
            print(f"{name}: {i} batches", file=sys.stderr, flush=True)
        yield batch


def main(words=None):
    """Print the table. Returns 1 if a contract is broken."""
    names = {row.name: row for row in ROWS}
    parser = argparse.ArgumentParser(
        prog="python -m tests.helpers.ulp", description=__doc__.split("\n")[0]
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="functions; none for all")
    parser.add_argument("--dtype", choices=[d.__name__ for d in DTYPES], help="only this one")
    parser.add_argument("--stride", type=int, default=997, help="between float32 bit patterns")
    parser.add_argument("--exhaustive", action="store_true", help="--stride 1")
    parser.add_argument("--samples", type=int, default=100_000, help="of each kind")
    options = parser.parse_args(words)
    if unknown := set(options.names) - names.keys():
        parser.error(f"no such function: {', '.join(sorted(unknown))}")
    rows = [names[name] for name in options.names] or ELEMENTARY
    stride = 1 if options.exhaustive else options.stride
    print(f"instruction set: {native.isa}\n{HEADER}", flush=True)
    broken = False
    for dtype in DTYPES:
        if options.dtype not in (None, dtype.__name__):
            continue
        for row in rows:
            batches = arguments(row, dtype, options.samples, np.random.default_rng(1), stride)
            report = measure(row, dtype, with_progress(batches, row.name))
            print(report, flush=True)
            broken |= not report.ok
    return int(broken)


if __name__ == "__main__":
    sys.exit(main())
