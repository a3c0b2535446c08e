"""Sobol' sequences: points that fill the unit cube more evenly than random ones.

I. M. Sobol', On the distribution of points in a cube and the approximate evaluation of integrals
(1967). Points come in the order of Antonov and Saleev (1979), one bit of a Gray code after another.
``sobol.bin`` has the direction numbers of S. Joe and F. Y. Kuo, Constructing Sobol sequences with
better two-dimensional projections (2008). They are the first 1111 dimensions of the file
new-joe-kuo-6.21201.
"""

from __future__ import annotations

import zlib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from minigrad.functions.arguments import integer
from minigrad.functions.creation import numpy_dtype, tensor
from minigrad.random import Generator, drawing
from minigrad.runtime.dtypes import as_dtype

if TYPE_CHECKING:
    from minigrad._tensor import Tensor

__all__ = ["SobolEngine"]

_BITS = 30  # bits of a coordinate: the sequence has 2**30 points
_FILE = Path(__file__).with_name("sobol.bin")

Array = np.ndarray[Any, Any]


class SobolEngine:
    """The points of a Sobol' sequence in [0, 1), of up to 1111 dimensions.

    With ``scramble`` the digits are multiplied by matrices of random bits, and a random shift is
    added. Sources are Matousek, On the L2-discrepancy for anchored boxes, 1998, and Owen,
    Scrambling Sobol' and Niederreiter-Xing points, 1998. ``seed`` seeds the random bits, which
    otherwise come from the shared generator. Without scrambling the first point is the origin.

    Estimates of integrals are best after 2**m points.

    Raises ValueError for another number of dimensions.

    >>> import minigrad as mg
    >>> mg.quasirandom.SobolEngine(2).draw(4)
    tensor([[0.  , 0.  ],
            [0.5 , 0.5 ],
            [0.75, 0.25],
            [0.25, 0.75]])
    """

    MAXBIT = _BITS
    MAXDIM = 1111

    def __init__(self, dimension: int, scramble: bool = False, seed: int | None = None) -> None:
        self.dimension = integer("SobolEngine", "dimension", dimension, 1)
        if self.dimension > self.MAXDIM:
            raise ValueError(
                f"[SobolEngine] dimension is {dimension}, but must be at most {self.MAXDIM}"
            )
        self.scramble = bool(scramble)
        self.seed = seed
        self.num_generated = 0
        self._directions = _directions()[: self.dimension]
        self._shift = np.zeros(self.dimension, np.int64)
        if scramble:
            self._mix(drawing(None if seed is None else Generator().manual_seed(seed)))
        self._next = self._shift.copy()

    def _mix(self, random: np.random.Generator) -> None:
        """Scramble the direction numbers, and draw the shift."""
        places = 1 << np.arange(_BITS, dtype=np.int64)
        self._shift = random.integers(0, 2, (self.dimension, _BITS)) @ places
        lower = np.tril(random.integers(0, 2, (self.dimension, _BITS, _BITS)))
        lower[:, range(_BITS), range(_BITS)] = 1
        digits = (self._directions[:, :, None] >> np.arange(_BITS - 1, -1, -1)) & 1
        # the first digit is the most significant
        mixed = np.einsum("dij,dkj->dki", lower, digits) & 1
        self._directions = mixed @ places[::-1]

    def draw(self, n: int = 1, out: None = None, dtype: Any = None) -> Tensor:
        """The next n points, as rows, in the default float dtype or another.

        Raises ValueError for a negative n and past the end of the sequence.
        """
        count = integer("SobolEngine.draw", "n", n, 0)
        if out is not None:
            raise TypeError("[SobolEngine.draw] out is not offered: use the result")
        kind = as_dtype(dtype)
        points = np.empty((count, self.dimension), np.int64)
        if count:
            self._check_room(count)
            changed = self._directions[:, self._steps(count)].T
            points[0] = self._next
            points[1:] = changed[:-1]
            np.bitwise_xor.accumulate(points, 0, out=points)
            self._next = points[-1] ^ changed[-1]
            self.num_generated += count
        wide = numpy_dtype(kind.wide)
        values = (points * 2.0**-_BITS).astype(wide)
        below_1 = np.nextafter(wide.type(1), wide.type(0))
        return tensor(np.minimum(values, below_1), kind)  # float32 may round up

    def draw_base2(self, m: int, out: None = None, dtype: Any = None) -> Tensor:
        """The next 2**m points. Raises ValueError unless the total is then a power of 2."""
        n = 2 ** integer("SobolEngine.draw_base2", "m", m, 0)
        total = self.num_generated + n
        if total & (total - 1):
            raise ValueError(
                f"[SobolEngine.draw_base2] {self.num_generated} points and {n} are not a power of "
                "2, which a balanced sequence needs: use draw, or reset"
            )
        return self.draw(n, out, dtype)

    def fast_forward(self, n: int) -> SobolEngine:
        """Skip n points, and return the engine."""
        count = integer("SobolEngine.fast_forward", "n", n, 0)
        if count:
            self._check_room(count)
        at = self.num_generated + count
        code, self._next = at ^ (at >> 1), self._shift.copy()
        for bit in range(_BITS):
            if code >> bit & 1:
                self._next ^= self._directions[:, bit]
        self.num_generated = at
        return self

    def reset(self) -> SobolEngine:
        """Start again from the first point, with the same scrambling, and return the engine."""
        self._next, self.num_generated = self._shift.copy(), 0
        return self

    def _steps(self, count: int) -> Array:
        """The bit of the Gray code that changes after each of the next points."""
        after = np.arange(self.num_generated + 1, self.num_generated + count + 1, dtype=np.int64)
        lowest = after & -after
        steps: Array = np.minimum(np.log2(lowest).astype(np.int64), _BITS - 1)
        return steps

    def _check_room(self, count: int) -> None:
        if self.num_generated + count > 2**_BITS:
            raise ValueError(
                f"[SobolEngine] {self.num_generated} points and {count} are more than the "
                f"{2**_BITS} of the sequence"
            )

    def __repr__(self) -> str:
        parts = [f"dimension={self.dimension}"]
        if self.scramble:
            parts += ["scramble=True", *([] if self.seed is None else [f"seed={self.seed}"])]
        return f"SobolEngine({', '.join(parts)})"


@cache
def _directions() -> Array:
    """The direction numbers of all dimensions, as integers of _BITS bits.

    The file has the differences of the primitive polynomials, whose coefficients are bits. Then
    come the low and the high bytes of (m - 1) / 2 for the first odd numbers m of each dimension.
    """
    raw = np.frombuffer(zlib.decompress(_FILE.read_bytes()), np.uint8)
    polynomials = np.cumsum(raw[: SobolEngine.MAXDIM].astype(np.int64)).tolist()
    low, high = np.split(raw[SobolEngine.MAXDIM :].astype(np.int64), 2)
    first, place = (high << 8 | low) * 2 + 1, 0
    made = np.empty((SobolEngine.MAXDIM, _BITS), np.int64)
    for d, polynomial in enumerate(polynomials):
        degree = polynomial.bit_length() - 1
        made[d] = _recurrence(polynomial, degree, first[place : place + degree].tolist())
        place += degree
    return made


def _recurrence(polynomial: int, degree: int, numbers: list[int]) -> list[int]:
    """The direction numbers of a dimension from its first ones (Bratley and Fox 1988).

    The source is Algorithm 659. The numbers of the first dimension are the powers of 1/2.
    """
    numbers = list(numbers) if degree else [1] * _BITS
    for k in range(len(numbers), _BITS):
        m = numbers[k - degree]
        for i in range(degree):
            if polynomial >> (degree - 1 - i) & 1:
                m ^= numbers[k - 1 - i] << (i + 1)
        numbers.append(m)
    return [m << (_BITS - 1 - k) for k, m in enumerate(numbers)]
